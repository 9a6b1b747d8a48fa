/*
  smoothblocks.c: the prolongator of several unknowns a vertex and several near-null vectors, as it is or smoothed. As
  smooth.c, whose entries of P0 become rows of nvec entries, and whose parents are those of vertices:

    for k in row r of A, c = parent[j[k] / bs]:  sum[c][.] += a[k] q[j[k]][.]
    P(r, c nvec + .) = -omega (sum[c][.] / A(r,r)),  and q[r][.] more where c = parent[r / bs]

  A row's places are found by Gustavson's marker. They are sorted once all are known, before the sums begin: so nvec
  values need not be moved.

  Memory: nc integers. Time: O(nnz nvec), and sorting.
*/
#include "agghost.h"

static void HybBlocksStart(PetscInt m, const HybAggregates *agg, const HybAggBlock *block, HybCSR *P)
{
  P->m   = m;
  P->n   = agg->nc * block->nvec;
  P->nnz = 0;
  P->i = P->j = NULL;
  P->a        = NULL;
}

PetscErrorCode HybAggUnsmoothedBlocks_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, HybCSR *P)
{
  const PetscInt bs = block->bs, nvec = block->nvec;
  PetscCount     sum = 0;
  PetscInt       nnz;

  PetscFunctionBegin;
  HybBlocksStart(agg->n * bs, agg, block, P);
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)P->m + 1, sizeof(PetscInt), &P->i));
  for (PetscInt r = 0; r < P->m; r++) {
    P->i[r] = (PetscInt)sum; /* overflow is found below, before anything is read */
    if (agg->parent[r / bs] >= 0) sum += nvec;
  }
  PetscCall(HybIntCast(sum, "nonzeros of a prolongator", &nnz));
  P->i[P->m] = nnz;
  P->nnz     = nnz;
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(HybScalar), &P->a));
  for (PetscInt r = 0; r < P->m; r++) {
    const PetscInt c = agg->parent[r / bs];

    for (PetscInt t = 0; c >= 0 && t < nvec; t++) {
      P->j[P->i[r] + t] = c * nvec + t;
      P->a[P->i[r] + t] = q[(size_t)r * nvec + t];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the aggregates that row r leads to, in the order of A's entries, into list (NULL: only counted) */
static PetscInt HybBlocksRow(const HybCSR *A, PetscInt bs, const PetscInt *parent, PetscInt r, PetscInt *mark, PetscInt *list)
{
  PetscInt n = 0, behind = 0; /* the first column behind the vertex */

  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    PetscInt u, c;

    if (A->j[k] < behind) continue;
    u      = A->j[k] / bs;
    c      = parent[u];
    behind = u * bs + bs;
    if (c < 0 || mark[c] == r) continue;
    mark[c] = r;
    if (list) list[n] = c;
    n++;
  }
  return n;
}

/* row r of P, whose n aggregates are listed; place: one entry for each aggregate */
static void HybBlocksFill(const HybCSR *A, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, HybScalar alpha, PetscInt r, PetscInt n, const PetscInt *list, PetscInt *place, PetscInt *pj, HybScalar *pa)
{
  const PetscInt bs = block->bs, nvec = block->nvec, own = agg->parent[r / bs];
  PetscInt       c = -1, behind = 0; /* of the entry's vertex: its aggregate, the first column behind it */
  HybScalar      d = 0;

  for (PetscInt e = 0; e < n; e++) {
    place[list[e]] = -1 - e * nvec; /* nothing was added yet */
    for (PetscInt t = 0; t < nvec; t++) pj[e * nvec + t] = list[e] * nvec + t;
  }
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    const PetscInt   v    = A->j[k];
    const HybScalar *from = q + (size_t)v * nvec, a = A->a[k];

    if (v == r) d = a;
    if (v >= behind) {
      behind = v - v % bs + bs;
      c      = agg->parent[v / bs];
    }
    if (c < 0) continue;
    if (place[c] < 0) {
      place[c] = -1 - place[c];
      for (PetscInt t = 0; t < nvec; t++) pa[place[c] + t] = a * from[t];
    } else {
      for (PetscInt t = 0; t < nvec; t++) pa[place[c] + t] += a * from[t];
    }
  }
  if (d != (HybScalar)0) d = (HybScalar)1 / d;
  for (PetscInt e = 0; e < n * nvec; e++) pa[e] = alpha * (pa[e] * d);
  for (PetscInt e = 0; e < n; e++) {
    if (list[e] != own) continue;
    for (PetscInt t = 0; t < nvec; t++) pa[e * nvec + t] += q[(size_t)r * nvec + t];
  }
}

PetscErrorCode HybAggSmoothedBlocks_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  const PetscInt nvec = block->nvec, *parent = agg->parent;
  PetscCount     sum = 0;
  PetscInt      *mark, *place, *list, nnz, longest = 0;

  PetscFunctionBegin;
  PetscCheck(A->m <= A->n && A->n == agg->n * block->bs, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, block->bs, A->m, A->n);
  HybBlocksStart(A->m, agg, block, P);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &mark));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &place));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &P->i));
  for (PetscInt c = 0; c < agg->nc; c++) mark[c] = -1;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt n = HybBlocksRow(A, block->bs, parent, r, mark, NULL);

    P->i[r] = (PetscInt)sum; /* overflow is found below, before anything is read */
    sum += (PetscCount)n * nvec;
    longest = PetscMax(longest, n);
  }
  PetscCall(HybIntCast(sum, "nonzeros of a prolongator", &nnz));
  P->i[A->m] = nnz;
  P->nnz     = nnz;
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(HybScalar), &P->a));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), longest, sizeof(PetscInt), &list));
  for (PetscInt c = 0; c < agg->nc; c++) mark[c] = -1;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt n = HybBlocksRow(A, block->bs, parent, r, mark, list);

    PetscCall(PetscSortInt(n, list));
    HybBlocksFill(A, agg, block, q, -omega, r, n, list, place, P->j + P->i[r], P->a + P->i[r]);
  }
  PetscCall(HybArenaFree(work, &list));
  PetscCall(HybArenaFree(work, &place));
  PetscCall(HybArenaFree(work, &mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}
