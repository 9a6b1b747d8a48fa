/*
  smooth.c: the prolongator, as it is or smoothed, without forming the tentative one or its product with A.

  P0 has one entry a row at most, (parent[v], q[v]). So row r of A P0 names the parents of row r's columns, each entry
  of A adds a q to one of them, and what MatMatMult(), MatDiagonalScale() and MatAYPX() do one after the other is done
  row by row, in the same order of roundings:

    for k in row r of A, c = parent[j[k]]:  sum[c] += a[k] q[j[k]]
    P(r,c) = -omega (sum[c] / A(r,r)),  and q[r] more where c = parent[r]

  Gustavson's marker tells where in the row a parent is: mark[c] holds the place of its entry in P, which belongs to
  this row if it is not before the row's start. Nothing branches on that: whether a parent is new cannot be foretold;
  sums start at -0, which adds nothing. A row's few entries are put in order at its end, up to eight by their ranks: an
  entry's place is how many columns are smaller.

  Memory: nc integers. Time: O(nnz), and sorting.

  Reference: F. Gustavson, Two fast algorithms for sparse matrices: multiplication and permuted transposition, ACM TOMS
  4(3), 1978.
*/
#include "agghost.h"

#define HYB_AGG_RANK   8  /* rows of P up to this length are sorted by ranks */
#define HYB_AGG_INSERT 48 /* up to this one by insertion */

static PetscErrorCode HybAggCheck(const HybCSR *A, const HybAggregates *agg)
{
  PetscFunctionBegin;
  PetscCheck(A->m <= agg->n && A->n == agg->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, A->m, A->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggUnsmoothed_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybAggregates *agg, const HybScalar *q, HybCSR *P)
{
  const PetscInt n   = agg->n;
  PetscInt       nnz = 0;

  PetscFunctionBegin;
  P->m = n;
  P->n = agg->nc;
  P->i = P->j = NULL;
  P->a        = NULL;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(PetscInt), &P->i));
  for (PetscInt v = 0; v < n; v++) {
    P->i[v] = nnz;
    nnz += agg->parent[v] >= 0;
  }
  P->i[n] = nnz;
  P->nnz  = nnz;
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(HybScalar), &P->a));
  for (PetscInt v = 0; v < n; v++) {
    if (agg->parent[v] < 0) continue;
    P->j[P->i[v]] = agg->parent[v];
    P->a[P->i[v]] = q[v];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the rows' lengths, as offsets */
static PetscErrorCode HybAggCount(const HybCSR *A, const HybAggregates *agg, PetscInt *mark, PetscInt *pi, PetscInt *nnz)
{
  const PetscInt *parent = agg->parent;
  PetscCount      sum    = 0;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < agg->nc; c++) mark[c] = -1;
  for (PetscInt r = 0; r < A->m; r++) {
    pi[r] = (PetscInt)sum; /* overflow is found below, before anything is read */
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt c = parent[A->j[k]];

      if (c < 0) continue;
      sum += mark[c] != r;
      mark[c] = r;
    }
  }
  PetscCall(HybIntCast(sum, "nonzeros of a prolongator", nnz));
  pi[A->m] = *nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* at most most entries, all of different columns */
static inline __attribute__((always_inline)) void HybAggSortFew(int most, PetscInt n, PetscInt *restrict j, HybScalar *restrict a)
{
  PetscInt  key[HYB_AGG_RANK], place[HYB_AGG_RANK];
  HybScalar value[HYB_AGG_RANK];

  for (int k = 0; k < most; k++) {
    key[k]   = k < n ? j[k] : PETSC_MAX_INT;
    place[k] = 0;
  }
  for (int k = 0; k < most; k++) {
    for (int l = 0; l < most; l++) place[k] += key[l] < key[k];
  }
  for (PetscInt k = 0; k < n; k++) value[k] = a[k];
  for (PetscInt k = 0; k < n; k++) {
    j[place[k]] = key[k];
    a[place[k]] = value[k];
  }
}

static PetscErrorCode HybAggSort(PetscInt n, PetscInt *j, HybScalar *a)
{
  PetscFunctionBegin;
  if (n <= HYB_AGG_RANK / 2) {
    HybAggSortFew(HYB_AGG_RANK / 2, n, j, a);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (n <= HYB_AGG_RANK) {
    HybAggSortFew(HYB_AGG_RANK, n, j, a);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (n > HYB_AGG_INSERT) {
    PetscCall(PetscSortIntWithScalarArray(n, j, a));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt k = 1; k < n; k++) {
    const PetscInt  c = j[k];
    const HybScalar s = a[k];
    PetscInt        l = k;

    for (; l > 0 && j[l - 1] > c; l--) {
      j[l] = j[l - 1];
      a[l] = a[l - 1];
    }
    j[l] = c;
    a[l] = s;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggSmoothed_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt longest, const HybAggregates *agg, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  const PetscInt  *parent = agg->parent, *ai = A->i, *aj = A->j;
  const HybScalar *aa = A->a, alpha = -omega;
  PetscInt        *mark, *pi, *pj, nnz = 0;
  HybScalar       *pa;

  PetscFunctionBegin;
  (void)longest;
  PetscCall(HybAggCheck(A, agg));
  P->m = A->m;
  P->n = agg->nc;
  P->i = P->j = NULL;
  P->a        = NULL;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &mark));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &pi));
  PetscCall(HybAggCount(A, agg, mark, pi, &nnz));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &pj));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(HybScalar), &pa));
  for (PetscInt c = 0; c < agg->nc; c++) mark[c] = -1;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt start = pi[r], own = parent[r];
    PetscInt       end = start;
    HybScalar      d   = 0;

    for (PetscInt e = start; e < pi[r + 1]; e++) pa[e] = HYB_NEUTRAL;
    for (PetscInt k = ai[r]; k < ai[r + 1]; k++) {
      const PetscInt v = aj[k], c = parent[v];
      PetscInt       e;

      if (v == r) d = aa[k];
      if (c < 0) continue;
      e = mark[c] < start ? end : mark[c];
      end += e == end;
      mark[c] = e;
      pj[e]   = c;
      pa[e] += aa[k] * q[v];
    }
    if (d != (HybScalar)0) d = (HybScalar)1 / d;
    for (PetscInt e = start; e < end; e++) {
      pa[e] = alpha * (pa[e] * d);
      if (pj[e] == own) pa[e] += q[r];
    }
    PetscCall(HybAggSort(end - start, pj + start, pa + start));
  }
  PetscCall(HybArenaFree(work, &mark));
  P->nnz = nnz;
  P->i   = pi;
  P->j   = pj;
  P->a   = pa;
  PetscFunctionReturn(PETSC_SUCCESS);
}
