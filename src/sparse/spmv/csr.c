/*
  csr.c: SpMV row by row on the host.

  Idea: one pass over the arrays as they are. What is left to gain over the textbook loop is how many loads of one core
  are under way:

    rows of less than eight entries on the average: one sum a row, the arrays prefetched some hundred entries ahead;
    longer rows: four interleaved sums (the textbook loop waits for each addition), in vector registers, prefetched
    likewise, from 16 entries on less far.

  Rows with the same columns, as with several components at a node, could share their loads of j and x (PETSc's inodes).
  That was no faster on small grids and slower on large ones, where the values come from memory in as many streams as
  rows are shared: one stream read once with four sums wins throughout, so there is no such path here.

  Whether fetching ahead pays is the processor's matter: it makes stencils faster on one server and slower on another.
  So the first products of a larger matrix are done both ways in turn and timed, and the faster way stays. Both ways add
  the same numbers in the same order.

  The order of addition is fixed by the row's length and by which kernel runs, which is fixed by the pattern: the same
  bits from run to run.

  Where most rows are empty, as in a parallel matrix's block of others' columns, the others are listed, and what is
  added to a vector where it lies reads and writes nothing else of it. MATAIJ has such a list for the same matrices.

  Memory: that list. Time: O(m + nnz), 12 bytes read an entry. "auto" takes it always: segsum was faster only where
  short rows read x at random over more than the caches hold, which no cheap look at the pattern tells (see
  docs/measured.md).
*/
#include "spmvvector.h"
#include <petsctime.h>

#define HYB_SPMV_SHORT  8     /* average row length below which one sum is used */
#define HYB_SPMV_LONG   16    /* and from which on less is prefetched */
#define HYB_SPMV_TRIALS 4     /* timed products of each way */
#define HYB_SPMV_TRIED  50000 /* nonzeros from which on they are timed */
#define HYB_SPMV_EMPTY  0.6   /* share of empty rows above which the others are listed */

typedef enum {
  ROWS_SHORT,
  ROWS_MIDDLE,
  ROWS_LONG
} SpMV_Rows;

typedef struct {
  SpMV_Rows rows;
  PetscBool ahead;        /* are the arrays fetched ahead? */
  PetscInt  trials;       /* products still to be timed */
  double    best[2];      /* seconds, without and with */
  PetscInt  nlist, *list; /* the rows with entries; NULL: most have some */
} SpMV_CSR;

static HYB_ALWAYS_INLINE void Short(PetscInt m, const PetscInt *i, const PetscInt *j, const HybScalar *a, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, const HybSpMVStep *step, PetscInt ahead)
{
  for (PetscInt r = 0; r < m; r++) {
    PetscInt       k   = i[r];
    const PetscInt end = i[r + 1];
    HybScalar      sum = 0;

    if (ahead) {
      HYB_PREFETCH_AHEAD(a, k, ahead);
      HYB_PREFETCH_AHEAD(a, k, ahead + 8);
      HYB_PREFETCH_AHEAD(j, k, ahead);
    }
    for (; k < end; k++) sum += a[k] * x[j[k]];
    z[r] = mode == HYB_SPMV_STEP ? HybSpMVStepEnd(x, step, r, sum) : HybSpMVCombine(mode, y, r, sum);
  }
}

/* z, where the rows of the list have entries */
static HYB_ALWAYS_INLINE void Listed(PetscInt n, const PetscInt *restrict list, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, HybScalar *z)
{
  const PetscInt *const i = A->i, *const j = A->j;
  const HybScalar *const a = A->a;

  for (PetscInt q = 0; q < n; q++) {
    const PetscInt r = list[q], end = i[r + 1];
    HybScalar      sum = 0;

    for (PetscInt k = i[r]; k < end; k++) sum += a[k] * x[j[k]];
    z[r] = HybSpMVCombine(mode, z, r, sum);
  }
}

static HYB_ALWAYS_INLINE void Long(PetscInt m, const PetscInt *i, const PetscInt *j, const HybScalar *a, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, const HybSpMVStep *step, PetscInt ahead)
{
  for (PetscInt r = 0; r < m; r++) {
    PetscInt       k    = i[r];
    const PetscInt end  = i[r + 1];
    HybFour        four = HYB_FOUR_ZERO;
    HybScalar      sum;

    for (; end - k >= 8; k += 8) {
      if (ahead) {
        HYB_PREFETCH_AHEAD(a, k, ahead);
        HYB_PREFETCH_AHEAD(j, k, ahead);
      }
      HYB_FOUR_ADDPRODUCT(four, a + k, x, j + k);
      HYB_FOUR_ADDPRODUCT(four, a + k + 4, x, j + k + 4);
    }
    if (ahead) {
      HYB_PREFETCH_AHEAD(a, k, ahead);
      HYB_PREFETCH_AHEAD(j, k, ahead);
    }
    for (; end - k >= 4; k += 4) HYB_FOUR_ADDPRODUCT(four, a + k, x, j + k);
    sum = HYB_FOUR_SUM(four);
    for (; k < end; k++) sum += a[k] * x[j[k]];
    z[r] = mode == HYB_SPMV_STEP ? HybSpMVStepEnd(x, step, r, sum) : HybSpMVCombine(mode, y, r, sum);
  }
}

static HYB_ALWAYS_INLINE void ApplyMode(SpMV_Rows rows, PetscBool ahead, PetscInt m, const PetscInt *i, const PetscInt *j, const HybScalar *a, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, const HybSpMVStep *step)
{
  if (rows == ROWS_SHORT) {
    if (ahead)
      Short(m, i, j, a, x, mode, y, z, step, HYB_SPMV_AHEAD);
    else
      Short(m, i, j, a, x, mode, y, z, step, 0);
  } else if (!ahead)
    Long(m, i, j, a, x, mode, y, z, step, 0);
  else if (rows == ROWS_MIDDLE)
    Long(m, i, j, a, x, mode, y, z, step, HYB_SPMV_AHEAD);
  else
    Long(m, i, j, a, x, mode, y, z, step, HYB_SPMV_AHEAD_LONG);
}

/* one copy for each mode and way, so that the loops do not ask */
HYB_MULTIVERSION static void Apply(const SpMV_CSR *csr, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, const HybSpMVStep *step)
{
  switch (mode) {
  case HYB_SPMV_SET:
    ApplyMode(csr->rows, csr->ahead, A->m, A->i, A->j, A->a, x, HYB_SPMV_SET, y, z, NULL);
    break;
  case HYB_SPMV_ADD:
    if (csr->list && y == z)
      Listed(csr->nlist, csr->list, A, x, HYB_SPMV_ADD, z);
    else
      ApplyMode(csr->rows, csr->ahead, A->m, A->i, A->j, A->a, x, HYB_SPMV_ADD, y, z, NULL);
    break;
  case HYB_SPMV_RESIDUAL:
    if (csr->list && y == z)
      Listed(csr->nlist, csr->list, A, x, HYB_SPMV_RESIDUAL, z);
    else
      ApplyMode(csr->rows, csr->ahead, A->m, A->i, A->j, A->a, x, HYB_SPMV_RESIDUAL, y, z, NULL);
    break;
  case HYB_SPMV_STEP:
    ApplyMode(csr->rows, csr->ahead, A->m, A->i, A->j, A->a, x, HYB_SPMV_STEP, NULL, step->z, step);
    break;
  }
}

static PetscErrorCode List(HybSpMV *mv, const HybCSR *A, SpMV_CSR *csr)
{
  PetscInt n = 0;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < A->m; r++) n += A->i[r] < A->i[r + 1];
  if ((double)(A->m - n) <= HYB_SPMV_EMPTY * (double)A->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&mv->keep, HYB_MEM_HOST, n, sizeof(PetscInt), &csr->list));
  for (PetscInt r = 0; r < A->m; r++) {
    if (A->i[r] < A->i[r + 1]) csr->list[csr->nlist++] = r;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_CSR(HybSpMV *mv, const HybCSR *A)
{
  SpMV_CSR *csr;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mv->keep, HYB_MEM_HOST, 1, sizeof(*csr), &csr));
  csr->rows  = A->nnz < HYB_SPMV_SHORT * (PetscCount)A->m ? ROWS_SHORT : A->nnz < HYB_SPMV_LONG * (PetscCount)A->m ? ROWS_MIDDLE
                                                                                                                   : ROWS_LONG;
  csr->ahead = (PetscBool)(A->nnz > HYB_SPMV_AHEAD); /* else there is nothing ahead */
  /* the first one brings the arrays, and does not count */
  csr->trials  = A->nnz < HYB_SPMV_TRIED ? 0 : 2 * HYB_SPMV_TRIALS + 1;
  csr->best[0] = csr->best[1] = PETSC_MAX_REAL;
  csr->list                   = NULL;
  csr->nlist                  = 0;
  mv->data                    = csr;
  if (csr->rows == ROWS_SHORT) PetscCall(List(mv, A, csr)); /* the sums of longer rows are others */
  PetscCall(HybCountersSet(&mv->counters, "rows", A->m));
  PetscCall(HybCountersSet(&mv->counters, "sums a row", csr->rows == ROWS_SHORT ? 1 : 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyTimed(HybSpMV *mv, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, const HybSpMVStep *step)
{
  SpMV_CSR *csr = (SpMV_CSR *)mv->data;

  PetscFunctionBegin;
  if (csr->trials) {
    PetscLogDouble begin, end;

    csr->ahead = (PetscBool)(csr->trials & 1);
    PetscCall(PetscTime(&begin));
    Apply(csr, A, x, mode, y, z, step);
    PetscCall(PetscTime(&end));
    if (csr->trials <= 2 * HYB_SPMV_TRIALS) csr->best[csr->ahead] = PetscMin(csr->best[csr->ahead], end - begin);
    if (--csr->trials == 0) {
      csr->ahead = (PetscBool)(csr->best[1] <= csr->best[0]);
      PetscCall(HybCountersSet(&mv->counters, "fetched ahead", csr->ahead));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  Apply(csr, A, x, mode, y, z, step);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_CSR(HybSpMV *mv, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(ApplyTimed(mv, A, x, mode, y, z, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVStep_CSR(HybSpMV *mv, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCall(ApplyTimed(mv, A, x, HYB_SPMV_STEP, step->y, step->z, step));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpMVMethod HybSpMV_CSR = {
  .name  = "csr",
  .setup = HybSpMVSetUp_CSR,
  .apply = HybSpMVApply_CSR,
  .step  = HybSpMVStep_CSR,
};
