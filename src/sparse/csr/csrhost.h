/* csrhost.h: the host's elementary operations on CSR arrays, by file; the table is csr.c's. Contracts: HybCSROps in
   hyb.h. */
#ifndef AIJHYBRIDGPU_CSRHOST_H
#define AIJHYBRIDGPU_CSRHOST_H
#include <aijhybridgpu/private/hyb.h>

/* transpose.c */
extern PetscErrorCode HybTransposeSymbolic_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, HybCSR *, PetscInt **);
extern PetscErrorCode HybTranspose_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscBool, HybCSR *, PetscInt **);
extern PetscErrorCode HybGather_Host(const HybExec *, PetscCount, const PetscInt *, PetscBool, const HybScalar *, HybScalar *);

/* values.c */
extern PetscErrorCode HybSet_Host(const HybExec *, PetscCount, const HybScalar *, HybScalar *);
extern PetscErrorCode HybScale_Host(const HybExec *, PetscCount, const HybScalar *, HybScalar *);
extern PetscErrorCode HybAXPY_Host(const HybExec *, PetscCount, const HybScalar *, const HybScalar *, HybScalar *);
extern PetscErrorCode HybDiagonalScale_Host(const HybExec *, HybCSR *, const HybScalar *, const HybScalar *);
extern PetscErrorCode HybGetDiagonal_Host(const HybExec *, const HybCSR *, HybScalar *);
extern PetscErrorCode HybDiagonalSet_Host(const HybExec *, HybArena *, HybCSR *, const HybScalar *, const HybScalar *, PetscBool, PetscCount *);
extern PetscErrorCode HybNorm_Host(const HybExec *, HybArena *, const HybCSR *, HybNorm, PetscReal *);

/* pattern.c */
extern PetscErrorCode HybAXPYSubset_Host(const HybExec *, HybArena *, const HybScalar *, const HybCSR *, HybCSR *, PetscCount *);
extern PetscErrorCode HybAddSymbolic_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, const HybCSR *, HybCSR *);
extern PetscErrorCode HybAddNumeric_Host(const HybExec *, const HybScalar *, const HybCSR *, const HybScalar *, const HybCSR *, HybCSR *);
extern PetscErrorCode HybCheck_Host(const HybExec *, HybArena *, const HybCSR *, PetscCount *, PetscInt *);
extern PetscErrorCode HybRowLengths_Host(const HybExec *, HybArena *, const HybCSR *, PetscInt *, PetscCount *, PetscCount *);
extern PetscErrorCode HybDiagonalPlaces_Host(const HybExec *, const HybCSR *, PetscInt *);
extern PetscErrorCode HybSameRows_Host(const HybExec *, const HybCSR *, unsigned char *);
extern PetscErrorCode HybSubmatrixSymbolic_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, const PetscInt *, PetscInt, PetscInt, HybCSR *, PetscInt **);
extern PetscErrorCode HybSubmatrixMapped_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, const PetscInt *, PetscInt, const PetscInt *, PetscBool, HybCSR *, PetscInt **);

/* dense.c */
extern PetscErrorCode HybMultDense_Host(const HybExec *, const HybCSR *, PetscInt, const HybScalar *, PetscCount, HybScalar *, PetscCount);

/* hash.c */
extern PetscErrorCode HybPatternHash_Host(const HybExec *, HybArena *, const HybCSR *, uint64_t *);

/* coo.c */
extern PetscErrorCode HybCOOSymbolic_Host(const HybExec *, HybArena *, HybArena *, PetscCount, const PetscInt *, const PetscInt *, HybCSR *, PetscCount **, PetscCount **);
extern PetscErrorCode HybCOONumeric_Host(const HybExec *, PetscCount, const PetscCount *, const PetscCount *, const HybScalar *, PetscBool, HybScalar *);
extern PetscErrorCode HybCOOSplit_Host(const HybExec *, HybArena *, PetscCount, PetscInt *, PetscInt *, PetscInt, PetscInt, PetscInt, PetscInt, PetscCount *, PetscCount **, PetscInt **, PetscInt **);
extern PetscErrorCode HybCOOCompose_Host(const HybExec *, PetscCount, const PetscCount *, PetscCount *);
#endif
