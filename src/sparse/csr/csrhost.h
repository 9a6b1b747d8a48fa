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

/* local.c */
extern PetscErrorCode HybMergeBlocks_Host(const HybExec *exec, HybArena *keep, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
extern PetscErrorCode HybMergeValues_Host(const HybExec *exec, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
extern PetscErrorCode HybSplitColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt cstart, PetscInt cend, HybCSR part[2], PetscInt *perm[2]);
extern PetscErrorCode HybStackRows_Host(const HybExec *exec, HybArena *keep, PetscInt n, const HybCSR *const piece[], const PetscInt begin[], const PetscInt end[], HybCSR *C, PetscCount first[], PetscCount place[]);
extern PetscErrorCode HybOutsideColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt *count, PetscInt **list);
extern PetscErrorCode HybNumberColumns_Host(const HybExec *exec, PetscCount n, PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt nlist, PetscInt nleft, const PetscInt *list);
extern PetscErrorCode HybMapColumns_Host(const HybExec *exec, PetscCount n, const PetscInt *map, PetscInt *j);
extern PetscErrorCode HybUsedColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt *count, PetscInt **list, PetscInt **map);
extern PetscErrorCode HybCompressRows_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *C, PetscInt **rows, PetscInt **map);
extern PetscErrorCode HybExpandRows_Host(const HybExec *exec, PetscInt m, PetscInt n, const PetscInt *rows, const PetscInt *ci, PetscInt *i);
extern PetscErrorCode HybSequence_Host(const HybExec *, PetscCount, PetscInt, PetscInt *);
extern PetscErrorCode HybRowsOfEntries_Host(const HybExec *exec, const HybCSR *A, const PetscInt *rows, PetscInt *row);

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
