/*
  smoothblocks.c: the prolongator of several unknowns a vertex and several near-null vectors, as it is or smoothed. As
  smooth.c, whose entries of P0 become rows of nvec entries, and whose parents are those of vertices:

    for k in row r of A, c = parent[j[k] / bs]:  sum[c][.] += a[k] q[j[k]][.]
    P(r, c nvec + .) = -omega (sum[c][.] / A(r,r)),  and q[r][.] more where c = parent[r / bs]

  A row's places are found by Gustavson's marker. They are sorted once all are known, before the sums begin: so nvec
  values need not be moved. Sums start at -0, which adds nothing.

  As a rule the rows of a vertex have the same columns, in whole blocks. Then their aggregates are found once, and block
  by block all of them meet q's rows, in loops whose lengths the compiler knows for the usual bs and nvec.

  Memory: nc integers twice, a byte for each vertex. Time: O(nnz nvec), and sorting.
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

/* what the rows of P are filled with */
typedef struct {
  const HybCSR        *A;
  const HybAggregates *agg;
  const HybAggBlock   *block;
  const HybScalar     *q;
  HybScalar            alpha;
  PetscInt            *place; /* of each aggregate, in a row of P */
  PetscInt            *list;  /* the aggregates of a row, in order */
  HybCSR              *P;
} HybBlocksWork;

/* the columns of row r of P, whose n aggregates are listed; nothing is summed yet */
static void HybBlocksColumns(const HybBlocksWork *w, PetscInt r, PetscInt n)
{
  const PetscInt nvec = w->block->nvec;
  PetscInt      *pj   = w->P->j + w->P->i[r];
  HybScalar     *pa   = w->P->a + w->P->i[r];

  for (PetscInt e = 0; e < n; e++) {
    for (PetscInt t = 0; t < nvec; t++) pj[e * nvec + t] = w->list[e] * nvec + t;
  }
  for (PetscInt e = 0; e < n * nvec; e++) pa[e] = HYB_NEUTRAL;
}

/* row r of P from its sums; d: A's diagonal entry */
static void HybBlocksEnd(const HybBlocksWork *w, PetscInt r, PetscInt n, HybScalar d)
{
  const PetscInt nvec = w->block->nvec, own = w->agg->parent[r / w->block->bs];
  HybScalar     *pa = w->P->a + w->P->i[r];

  if (d != (HybScalar)0) d = (HybScalar)1 / d;
  for (PetscInt e = 0; e < n * nvec; e++) pa[e] = w->alpha * (pa[e] * d);
  for (PetscInt e = 0; e < n; e++) {
    if (w->list[e] != own) continue;
    for (PetscInt t = 0; t < nvec; t++) pa[e * nvec + t] += w->q[(size_t)r * nvec + t];
  }
}

/* row r of P, whose n aggregates are listed */
static void HybBlocksFill(const HybBlocksWork *w, PetscInt r, PetscInt n)
{
  const HybCSR  *A  = w->A;
  const PetscInt bs = w->block->bs, nvec = w->block->nvec;
  HybScalar     *pa = w->P->a + w->P->i[r], d = 0;
  PetscInt       c = -1, behind = 0; /* of the entry's vertex: its aggregate, the first column behind it */

  HybBlocksColumns(w, r, n);
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    const PetscInt   v    = A->j[k];
    const HybScalar *from = w->q + (size_t)v * nvec, a = A->a[k];

    if (v == r) d = a;
    if (v >= behind) {
      behind = v - v % bs + bs;
      c      = w->agg->parent[v / bs];
    }
    if (c < 0) continue;
    for (PetscInt t = 0; t < nvec; t++) pa[w->place[c] * nvec + t] += a * from[t];
  }
  HybBlocksEnd(w, r, n, d);
}

/* the sums of the rows of vertex v, which have the same columns in whole blocks; d: their diagonal entries */
static inline __attribute__((always_inline)) void HybBlocksSum_Inline(PetscInt bs, PetscInt nvec, const HybBlocksWork *w, PetscInt v, HybScalar *d)
{
  const HybCSR  *A  = w->A;
  const PetscInt lo = A->i[v * bs], len = A->i[v * bs + 1] - lo, width = w->P->i[v * bs + 1] - w->P->i[v * bs];

  for (PetscInt k = 0; k < len; k += bs) {
    const PetscInt u = A->j[lo + k] / bs, c = w->agg->parent[u];
    const HybScalar *restrict const a    = A->a + lo + k;
    const HybScalar *restrict const from = w->q + (size_t)u * bs * nvec;
    HybScalar *restrict pa;

    if (u == v) {
      for (PetscInt s = 0; s < bs; s++) d[s] = a[(PetscCount)s * len + s];
    }
    if (c < 0) continue;
    pa = w->P->a + w->P->i[v * bs] + w->place[c] * nvec;
    for (PetscInt s = 0; s < bs; s++) {
      for (PetscInt e = 0; e < bs; e++) {
        for (PetscInt t = 0; t < nvec; t++) pa[(PetscCount)s * width + t] += a[(PetscCount)s * len + e] * from[e * nvec + t];
      }
    }
  }
}

static HYB_MULTIVERSION void HybBlocksSum(const HybBlocksWork *w, PetscInt v, HybScalar *d)
{
  const PetscInt bs = w->block->bs, nvec = w->block->nvec;

  if (bs == 3 && nvec == 3)
    HybBlocksSum_Inline(3, 3, w, v, d);
  else if (bs == 3 && nvec == 6)
    HybBlocksSum_Inline(3, 6, w, v, d);
  else if (bs == 6 && nvec == 6)
    HybBlocksSum_Inline(6, 6, w, v, d);
  else if (bs == 2 && nvec == 2)
    HybBlocksSum_Inline(2, 2, w, v, d);
  else if (bs == 2 && nvec == 3)
    HybBlocksSum_Inline(2, 3, w, v, d);
  else
    HybBlocksSum_Inline(bs, nvec, w, v, d);
}

/* the rows of P of vertex v */
static PetscErrorCode HybBlocksVertex(const HybBlocksWork *w, PetscBool whole, PetscInt v, PetscInt *mark, HybScalar *d)
{
  const PetscInt bs = w->block->bs;
  PetscInt       n  = 0;

  PetscFunctionBegin;
  for (PetscInt r = v * bs; r < v * bs + bs; r++) {
    if (r == v * bs || !whole) {
      n = HybBlocksRow(w->A, bs, w->agg->parent, r, mark, w->list);
      PetscCall(PetscSortInt(n, w->list));
      for (PetscInt e = 0; e < n; e++) w->place[w->list[e]] = e;
    }
    if (whole)
      HybBlocksColumns(w, r, n);
    else
      HybBlocksFill(w, r, n);
  }
  if (!whole) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt s = 0; s < bs; s++) d[s] = 0;
  HybBlocksSum(w, v, d);
  for (PetscInt s = 0; s < bs; s++) HybBlocksEnd(w, v * bs + s, n, d[s]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggSmoothedBlocks_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  const PetscInt bs = block->bs, nvec = block->nvec;
  HybBlocksWork  w   = {A, agg, block, q, -omega, NULL, NULL, P};
  PetscCount     sum = 0;
  PetscInt      *mark, nnz, longest = 0;
  unsigned char *whole;
  HybScalar     *d;

  PetscFunctionBegin;
  PetscCheck(A->m <= A->n && A->n == agg->n * bs && A->m % bs == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, bs, A->m, A->n);
  HybBlocksStart(A->m, agg, block, P);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &mark));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &w.place));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->m / bs, 1, &whole));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), bs, sizeof(HybScalar), &d));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &P->i));
  for (PetscInt c = 0; c < agg->nc; c++) mark[c] = -1;
  for (PetscInt v = 0; v < A->m / bs; v++) {
    PetscInt n = 0;

    whole[v] = (unsigned char)HybAggIsWhole(A, bs, v);
    for (PetscInt r = v * bs; r < v * bs + bs; r++) {
      if (r == v * bs || !whole[v]) n = HybBlocksRow(A, bs, agg->parent, r, mark, NULL);
      P->i[r] = (PetscInt)sum; /* overflow is found below, before anything is read */
      sum += (PetscCount)n * nvec;
      longest = PetscMax(longest, n);
    }
  }
  PetscCall(HybIntCast(sum, "nonzeros of a prolongator", &nnz));
  P->i[A->m] = nnz;
  P->nnz     = nnz;
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(HybScalar), &P->a));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), longest, sizeof(PetscInt), &w.list));
  for (PetscInt c = 0; c < agg->nc; c++) mark[c] = -1;
  for (PetscInt v = 0; v < A->m / bs; v++) PetscCall(HybBlocksVertex(&w, (PetscBool)whole[v], v, mark, d));
  PetscCall(HybArenaFree(work, &w.list));
  PetscCall(HybArenaFree(work, &d));
  PetscCall(HybArenaFree(work, &whole));
  PetscCall(HybArenaFree(work, &w.place));
  PetscCall(HybArenaFree(work, &mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}
