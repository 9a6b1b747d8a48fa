/* csrhost.h: the host's elementary operations on CSR arrays, by file; the table is csr.c's. Contracts: HybCSROps in
   hyb.h. */
#ifndef AIJHYBRIDGPU_CSRHOST_H
#define AIJHYBRIDGPU_CSRHOST_H
#include <aijhybridgpu/private/hyb.h>

/* transpose.c */
extern PetscErrorCode HybCSRTransposeSymbolic_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, HybCSR *, PetscInt **);
extern PetscErrorCode HybCSRTranspose_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscBool, HybCSR *, PetscInt **);
extern PetscErrorCode HybCSRGather_Host(const HybExec *, PetscCount, const PetscInt *, PetscBool, const HybScalar *, HybScalar *);

/* values.c */
extern PetscErrorCode HybCSRSet_Host(const HybExec *, PetscCount, const HybScalar *, HybScalar *);
extern PetscErrorCode HybCSRScale_Host(const HybExec *, PetscCount, const HybScalar *, HybScalar *);
extern PetscErrorCode HybCSRAXPY_Host(const HybExec *, PetscCount, const HybScalar *, const HybScalar *, HybScalar *);
extern PetscErrorCode HybCSRDiagonalScale_Host(const HybExec *, HybCSR *, const HybScalar *, const HybScalar *);
extern PetscErrorCode HybCSRGetDiagonal_Host(const HybExec *, const HybCSR *, HybScalar *);
extern PetscErrorCode HybCSRDiagonalSet_Host(const HybExec *, HybArena *, HybCSR *, const HybScalar *, const HybScalar *, PetscBool, PetscCount *);
extern PetscErrorCode HybCSRNorm_Host(const HybExec *, HybArena *, const HybCSR *, HybNorm, PetscReal *);

/* pattern.c */
extern PetscErrorCode HybCSRAXPYSubset_Host(const HybExec *, HybArena *, const HybScalar *, const HybCSR *, HybCSR *, PetscCount *);
extern PetscErrorCode HybCSRAddSymbolic_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, const HybCSR *, HybCSR *);
extern PetscErrorCode HybCSRAddNumeric_Host(const HybExec *, const HybScalar *, const HybCSR *, const HybScalar *, const HybCSR *, HybCSR *);
extern PetscErrorCode HybCSRCheck_Host(const HybExec *, HybArena *, const HybCSR *, PetscCount *, PetscInt *);
extern PetscErrorCode HybCSRRowLengths_Host(const HybExec *, HybArena *, const HybCSR *, PetscInt *, PetscCount *, PetscCount *);
extern PetscErrorCode HybCSRDiagonalPlaces_Host(const HybExec *, const HybCSR *, PetscInt *);
extern PetscErrorCode HybCSRSameRows_Host(const HybExec *, const HybCSR *, unsigned char *);
extern PetscErrorCode HybCSRSubMatrixSymbolic_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, const PetscInt *, PetscInt, PetscInt, HybCSR *, PetscInt **);
extern PetscErrorCode HybCSRSubMatrixMapped_Host(const HybExec *, HybArena *, HybArena *, const HybCSR *, PetscInt, const PetscInt *, PetscInt, const PetscInt *, PetscBool, HybCSR *, PetscInt **);

/* local.c */
extern PetscErrorCode HybCSRMergeBlocks_Host(const HybExec *exec, HybArena *keep, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
extern PetscErrorCode HybCSRMergeValues_Host(const HybExec *exec, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
extern PetscErrorCode HybCSRSplitColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt cstart, PetscInt cend, HybCSR part[2], PetscInt *perm[2]);
extern PetscErrorCode HybCSRStackRows_Host(const HybExec *exec, HybArena *keep, PetscInt n, const HybCSR *const piece[], const PetscInt begin[], const PetscInt end[], HybCSR *C, PetscCount first[], PetscCount place[]);
extern PetscErrorCode HybCSROutsideColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt *count, PetscInt **list);
extern PetscErrorCode HybCSRNumberColumns_Host(const HybExec *exec, PetscCount n, PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt nlist, PetscInt nleft, const PetscInt *list);
extern PetscErrorCode HybCSRMapColumns_Host(const HybExec *exec, PetscCount n, const PetscInt *map, PetscInt *j);
extern PetscErrorCode HybCSRUsedColumns_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt *count, PetscInt **list, PetscInt **map);
extern PetscErrorCode HybCSRCompressRows_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *C, PetscInt **rows, PetscInt **map);
extern PetscErrorCode HybCSRExpandRows_Host(const HybExec *exec, PetscInt m, PetscInt n, const PetscInt *rows, const PetscInt *ci, PetscInt *i);
extern PetscErrorCode HybCSRSequence_Host(const HybExec *, PetscCount, PetscInt, PetscInt *);
extern PetscErrorCode HybCSRRowsOfEntries_Host(const HybExec *exec, const HybCSR *A, const PetscInt *rows, PetscInt *row);

/* dense.c */
extern PetscErrorCode HybCSRMultDense_Host(const HybExec *, const HybCSR *, PetscInt, const HybScalar *, PetscCount, HybScalar *, PetscCount);

/* hash.c */
extern PetscErrorCode HybCSRPatternHash_Host(const HybExec *, HybArena *, const HybCSR *, uint64_t *);

/* coo.c */
extern PetscErrorCode HybCSRCOOSymbolic_Host(const HybExec *, HybArena *, HybArena *, PetscCount, const PetscInt *, const PetscInt *, HybCSR *, PetscCount **, PetscCount **);
extern PetscErrorCode HybCSRCOONumeric_Host(const HybExec *, PetscCount, const PetscCount *, const PetscCount *, const HybScalar *, PetscBool, HybScalar *);
extern PetscErrorCode HybCSRCOOSplit_Host(const HybExec *, HybArena *, PetscCount, PetscInt *, PetscInt *, PetscInt, PetscInt, PetscInt, PetscInt, PetscCount *, PetscCount **, PetscInt **, PetscInt **);
extern PetscErrorCode HybCSRCOOCompose_Host(const HybExec *, PetscCount, const PetscCount *, PetscCount *);
#endif
