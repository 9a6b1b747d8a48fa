/*
  csr.c: SpMV row by row on the host.

  Idea: one pass over the arrays as they are. What is left to gain over the textbook loop is how many loads of one core are under way:

    rows of less than eight entries on the average: one sum a row, the arrays prefetched some hundred entries ahead;
    longer rows: four interleaved sums (the textbook loop waits for each addition), in vector registers, prefetched likewise, from 16 entries on less far.

  Rows with the same columns, as with several components at a node, could share their loads of j and x (PETSc's inodes). Measured, that was
  no faster on small grids and up to three times slower on large ones, where the values come from memory in as many streams as rows are
  shared: one stream read once with four sums wins throughout, so there is no such path here.

  The order of addition is fixed by the row's length and by which kernel runs, which is fixed by the pattern: the same bits from run to run.

  Memory: none. Time: O(m + nnz), 12 bytes read an entry. "auto" takes it always: segsum was faster only where short rows read x at
  random over more than the caches hold, which no cheap look at the pattern tells (see docs/performance.md).
*/
#include "spmvvector.h"

#define HYB_SPMV_SHORT 8  /* average row length below which one sum is used */
#define HYB_SPMV_LONG  16 /* and from which on less is prefetched */

typedef enum {
  ROWS_SHORT,
  ROWS_MIDDLE,
  ROWS_LONG
} SpMV_Rows;

typedef struct {
  SpMV_Rows rows;
} SpMV_CSR;

static HYB_ALWAYS_INLINE void Short(PetscInt m, const PetscInt *i, const PetscInt *j, const HybScalar *a, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  for (PetscInt r = 0; r < m; r++) {
    PetscInt       k   = i[r];
    const PetscInt end = i[r + 1];
    HybScalar      sum = 0;

    HYB_PREFETCH(a, k);
    HYB_PREFETCH(a, k + 8);
    HYB_PREFETCH(j, k);
    for (; k < end; k++) sum += a[k] * x[j[k]];
    z[r] = HybSpMVCombine(mode, y, r, sum);
  }
}

static HYB_ALWAYS_INLINE void Long(PetscInt m, const PetscInt *i, const PetscInt *j, const HybScalar *a, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, PetscInt ahead)
{
  for (PetscInt r = 0; r < m; r++) {
    PetscInt       k    = i[r];
    const PetscInt end  = i[r + 1];
    HybFour        four = HYB_FOUR_ZERO;
    HybScalar      sum;

    for (; end - k >= 8; k += 8) {
      HYB_PREFETCH_AHEAD(a, k, ahead);
      HYB_PREFETCH_AHEAD(j, k, ahead);
      HYB_FOUR_ADDPRODUCT(four, a + k, x, j + k);
      HYB_FOUR_ADDPRODUCT(four, a + k + 4, x, j + k + 4);
    }
    HYB_PREFETCH_AHEAD(a, k, ahead);
    HYB_PREFETCH_AHEAD(j, k, ahead);
    for (; end - k >= 4; k += 4) HYB_FOUR_ADDPRODUCT(four, a + k, x, j + k);
    sum = HYB_FOUR_SUM(four);
    for (; k < end; k++) sum += a[k] * x[j[k]];
    z[r] = HybSpMVCombine(mode, y, r, sum);
  }
}

/* one copy for each mode, so that the loops do not ask */
HYB_MULTIVERSION static void Apply(SpMV_Rows rows, PetscInt m, const PetscInt *i, const PetscInt *j, const HybScalar *a, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  switch (mode) {
  case HYB_SPMV_SET:
    if (rows == ROWS_SHORT) Short(m, i, j, a, x, HYB_SPMV_SET, y, z);
    else if (rows == ROWS_MIDDLE) Long(m, i, j, a, x, HYB_SPMV_SET, y, z, HYB_SPMV_AHEAD);
    else Long(m, i, j, a, x, HYB_SPMV_SET, y, z, HYB_SPMV_AHEAD_LONG);
    break;
  case HYB_SPMV_ADD:
    if (rows == ROWS_SHORT) Short(m, i, j, a, x, HYB_SPMV_ADD, y, z);
    else if (rows == ROWS_MIDDLE) Long(m, i, j, a, x, HYB_SPMV_ADD, y, z, HYB_SPMV_AHEAD);
    else Long(m, i, j, a, x, HYB_SPMV_ADD, y, z, HYB_SPMV_AHEAD_LONG);
    break;
  case HYB_SPMV_RESIDUAL:
    if (rows == ROWS_SHORT) Short(m, i, j, a, x, HYB_SPMV_RESIDUAL, y, z);
    else if (rows == ROWS_MIDDLE) Long(m, i, j, a, x, HYB_SPMV_RESIDUAL, y, z, HYB_SPMV_AHEAD);
    else Long(m, i, j, a, x, HYB_SPMV_RESIDUAL, y, z, HYB_SPMV_AHEAD_LONG);
    break;
  }
}

static PetscErrorCode HybSpMVSetUp_CSR(HybSpMV *mv, const HybCSR *A)
{
  SpMV_CSR *csr;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mv->keep, HYB_MEM_HOST, 1, sizeof(*csr), &csr));
  csr->rows = A->nnz < HYB_SPMV_SHORT * (PetscCount)A->m ? ROWS_SHORT : A->nnz < HYB_SPMV_LONG * (PetscCount)A->m ? ROWS_MIDDLE : ROWS_LONG;
  mv->data  = csr;
  PetscCall(HybCountersSet(&mv->counters, "rows", A->m));
  PetscCall(HybCountersSet(&mv->counters, "sums a row", csr->rows == ROWS_SHORT ? 1 : 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_CSR(HybSpMV *mv, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const SpMV_CSR *csr = (const SpMV_CSR *)mv->data;

  PetscFunctionBegin;
  Apply(csr->rows, A->m, A->i, A->j, A->a, x, mode, y, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpMVMethod HybSpMV_CSR = {
  .name  = "csr",
  .setup = HybSpMVSetUp_CSR,
  .apply = HybSpMVApply_CSR,
};
