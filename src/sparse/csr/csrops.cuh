/*
  csrops.cuh: the device's elementary operations on CSR arrays, one function for each entry of HybCSROps (hyb.h says
  what each does); csrops.cu joins them into the table.
*/
#ifndef AIJHYBRIDGPU_CSROPS_CUH
#define AIJHYBRIDGPU_CSROPS_CUH

#include "rowops.cuh"

#define CSR_THREADS 256

/* a few bytes from the device, complete on return */
static inline PetscErrorCode CSRFetch(const HybExec *exec, void *host, const void *device, size_t bytes)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->copy(exec, host, device, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* transpose.cu */
extern PetscErrorCode HybCSRTransposeSymbolic_CUDA(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm);
extern PetscErrorCode HybCSRTranspose_CUDA(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscBool conjugate, HybCSR *T, PetscInt **perm);
/* values.cu */
extern PetscErrorCode HybCSRGather_CUDA(const HybExec *, PetscCount n, const PetscInt *perm, PetscBool conjugate, const HybScalar *src, HybScalar *dst);
extern PetscErrorCode HybCSRSet_CUDA(const HybExec *, PetscCount n, const HybScalar *alpha, HybScalar *a);
extern PetscErrorCode HybCSRScale_CUDA(const HybExec *, PetscCount n, const HybScalar *alpha, HybScalar *a);
extern PetscErrorCode HybCSRAXPY_CUDA(const HybExec *, PetscCount n, const HybScalar *alpha, const HybScalar *x, HybScalar *y);
extern PetscErrorCode HybCSRDiagonalScale_CUDA(const HybExec *, HybCSR *A, const HybScalar *l, const HybScalar *r);
extern PetscErrorCode HybCSRGetDiagonal_CUDA(const HybExec *, const HybCSR *A, HybScalar *d);
extern PetscErrorCode HybCSRDiagonalSet_CUDA(const HybExec *, HybArena *work, HybCSR *A, const HybScalar *d, const HybScalar *alpha, PetscBool add, PetscCount *missing);
extern PetscErrorCode HybCSRNorm_CUDA(const HybExec *, HybArena *work, const HybCSR *A, HybNorm type, PetscReal *norm);
extern PetscErrorCode HybCSRCOONumeric_CUDA(const HybExec *, PetscCount nnz, const PetscCount *mapptr, const PetscCount *map, const HybScalar *v, PetscBool add, HybScalar *a);
/* patterns.cu */
extern PetscErrorCode     HybCSRAXPYSubset_CUDA(const HybExec *, HybArena *work, const HybScalar *alpha, const HybCSR *X, HybCSR *Y, PetscCount *missing);
extern PetscErrorCode     HybCSRAddSymbolic_CUDA(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *B, HybCSR *C);
extern PetscErrorCode     HybCSRAddNumeric_CUDA(const HybExec *, const HybScalar *alpha, const HybCSR *A, const HybScalar *beta, const HybCSR *B, HybCSR *C);
extern "C" PetscErrorCode HybCSRPatternHash_CUDA(const HybExec *, HybArena *, const HybCSR *, uint64_t *);
extern PetscErrorCode     HybCSRCheck_CUDA(const HybExec *, HybArena *work, const HybCSR *A, PetscCount *nbad, PetscInt *badrow);
extern PetscErrorCode     HybCSRRowLengths_CUDA(const HybExec *, HybArena *work, const HybCSR *A, PetscInt *length, PetscCount *longest, PetscCount *nonempty);
extern PetscErrorCode     HybCSRDiagonalPlaces_CUDA(const HybExec *, const HybCSR *A, PetscInt *place);
extern PetscErrorCode     HybCSRSameRows_CUDA(const HybExec *, const HybCSR *A, unsigned char *same);
extern PetscErrorCode     HybCSRSubMatrixSymbolic_CUDA(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, HybCSR *S, PetscInt **perm);
extern PetscErrorCode     HybCSRSubMatrixMapped_CUDA(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt ncols, const PetscInt *colmap, PetscBool ascending, HybCSR *S, PetscInt **perm);
/* local.cu */
extern PetscErrorCode HybCSRMergeBlocks_CUDA(const HybExec *exec, HybArena *keep, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
extern PetscErrorCode HybCSRMergeValues_CUDA(const HybExec *exec, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
extern PetscErrorCode HybCSRSplitColumns_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt cstart, PetscInt cend, HybCSR part[2], PetscInt *perm[2]);
extern PetscErrorCode HybCSRStackRows_CUDA(const HybExec *exec, HybArena *keep, PetscInt n, const HybCSR *const piece[], const PetscInt begin[], const PetscInt end[], HybCSR *C, PetscCount first[], PetscCount place[]);
extern PetscErrorCode HybCSROutsideColumns_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt *count, PetscInt **list);
extern PetscErrorCode HybCSRNumberColumns_CUDA(const HybExec *exec, PetscCount n, PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt nlist, PetscInt nleft, const PetscInt *list);
extern PetscErrorCode HybCSRMapColumns_CUDA(const HybExec *exec, PetscCount n, const PetscInt *map, PetscInt *j);
extern PetscErrorCode HybCSRUsedColumns_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt *count, PetscInt **list, PetscInt **map);
extern PetscErrorCode HybCSRCompressRows_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *C, PetscInt **rows, PetscInt **map);
extern PetscErrorCode HybCSRExpandRows_CUDA(const HybExec *exec, PetscInt m, PetscInt n, const PetscInt *rows, const PetscInt *ci, PetscInt *i);
extern PetscErrorCode HybCSRSequence_CUDA(const HybExec *, PetscCount n, PetscInt first, PetscInt *v);
extern PetscErrorCode HybCSRRowsOfEntries_CUDA(const HybExec *exec, const HybCSR *A, const PetscInt *rows, PetscInt *row);
/* dense.cu */
extern PetscErrorCode HybCSRMultDense_CUDA(const HybExec *, const HybCSR *A, PetscInt p, const HybScalar *B, PetscCount ldb, HybScalar *C, PetscCount ldc);
/* coo.cu */
extern PetscErrorCode HybCSRCOOSymbolic_CUDA(const HybExec *, HybArena *keep, HybArena *work, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, HybCSR *C, PetscCount **mapptr, PetscCount **map);
extern PetscErrorCode HybCSRCOOSplit_CUDA(const HybExec *, HybArena *work, PetscCount ncoo, PetscInt *ci, PetscInt *cj, PetscInt rstart, PetscInt rend, PetscInt cstart, PetscInt cend, PetscCount *nother, PetscCount **place, PetscInt **oi, PetscInt **oj);
extern PetscErrorCode HybCSRCOOCompose_CUDA(const HybExec *, PetscCount n, const PetscCount *place, PetscCount *map);

#endif
