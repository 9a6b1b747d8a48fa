/*
  smooth.c: the prolongator, as it is or smoothed, without forming the tentative one or its product with A.

  P0 has nvec entries a row at most, q[r][.], in the columns of the aggregate of the row's vertex r / bs. So row r of
  A P0 names the parents of the vertices of row r's columns, each entry of A adds a row of q to one of them, and what
  MatMatMult(), MatDiagonalScale() and MatAYPX() do one after the other is done row by row, in the same order of
  roundings:

    for k in row r of A, c = parent[j[k] / bs]:  sum[c][.] += a[k] q[j[k]][.]
    P(r, c nvec + .) = -omega (sum[c][.] / A(r,r)),  and q[r][.] more where c = parent[r / bs]

  Row r need not lead to parent[r / bs] where it lacks its diagonal entry: it is named last then, as MatAYPX() inserts
  what A P0 has not.

  Gustavson's marker tells where in the row a parent is. Sums start at -0, which adds nothing.

  One unknown and one vector: mark[c] holds the place of c's entry in P, which belongs to this row if it is not before
  the row's start. Nothing branches on that: whether a parent is new cannot be foretold. A row's few entries are put in
  order at its end, up to eight by their ranks: an entry's place is how many columns are smaller.

  Else a row's aggregates are listed and sorted before the sums begin: so nvec values need not be moved. As a rule the
  rows of a vertex have the same columns, in whole blocks. Then their aggregates are found once, and block by block all
  of them meet q's rows, in loops whose lengths the compiler knows for the usual bs and nvec.

  Memory: nc integers, or twice as many and a byte for each vertex. Time: O(nnz nvec), and sorting.

  Reference: F. Gustavson, Two fast algorithms for sparse matrices: multiplication and permuted transposition, ACM TOMS
  4(3), 1978.
*/
#include "agghost.h"

#define HYB_AGG_RANK   8  /* rows of P up to this length are sorted by ranks */
#define HYB_AGG_INSERT 48 /* up to this one by insertion */

/* what the rows of P are made of */
typedef struct {
  const HybCSR    *A;
  const PetscInt  *parent;
  PetscInt         bs, nvec;
  const HybScalar *q;
  HybScalar        alpha;   /* -omega */
  PetscInt        *mark;    /* of each aggregate: the last row that named it, or its place in P */
  PetscInt        *place;   /* of each aggregate, in a row of P */
  PetscInt        *list;    /* the aggregates of a row, in order */
  PetscInt         longest; /* of such lists */
  unsigned char   *whole;   /* have a vertex's rows the same columns, in whole blocks? */
  HybScalar       *d;       /* bs */
  HybCSR          *P;
} HybSmooth;

/* from the rows' offsets, the last one being sum, to arrays for the entries */
static PetscErrorCode HybSmoothArrays(const HybExec *exec, HybArena *keep, PetscCount sum, HybCSR *P)
{
  PetscInt nnz;

  PetscFunctionBegin;
  PetscCall(HybIntCast(sum, "nonzeros of a prolongator", &nnz)); /* before any offset is read */
  P->i[P->m] = nnz;
  P->nnz     = nnz;
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(HybScalar), &P->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggUnsmoothed_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, HybCSR *P)
{
  const PetscInt bs = block->bs, nvec = block->nvec;
  PetscCount     sum = 0;

  PetscFunctionBegin;
  *P = (HybCSR){agg->n * bs, agg->nc * nvec, 0, NULL, NULL, NULL};
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)P->m + 1, sizeof(PetscInt), &P->i));
  for (PetscInt v = 0; v < agg->n; v++) {
    for (PetscInt r = v * bs; r < v * bs + bs; r++) {
      P->i[r] = (PetscInt)sum;
      sum += agg->parent[v] >= 0 ? nvec : 0;
    }
  }
  PetscCall(HybSmoothArrays(exec, keep, sum, P));
  for (PetscInt v = 0; v < agg->n; v++) {
    const PetscInt c = agg->parent[v];

    for (PetscInt r = v * bs; c >= 0 && r < v * bs + bs; r++) {
      for (PetscInt t = 0; t < nvec; t++) {
        P->j[P->i[r] + t] = c * nvec + t;
        P->a[P->i[r] + t] = q[(size_t)r * nvec + t];
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the aggregates that row r leads to, in the order of A's entries, and its own one, into list (NULL: only counted),
   which has room for one more */
static inline __attribute__((always_inline)) PetscInt HybSmoothRow(PetscInt bs, const HybSmooth *w, PetscInt r, PetscInt *list)
{
  const PetscInt *aj = w->A->j, *parent = w->parent, end = w->A->i[r + 1];
  const PetscInt  own  = parent[r / bs];
  PetscInt       *mark = w->mark, n = 0, behind = 0; /* the first column behind the vertex */

  for (PetscInt k = w->A->i[r]; k < end; k++) {
    PetscInt u, c;

    if (bs > 1 && aj[k] < behind) continue;
    u      = aj[k] / bs;
    c      = parent[u];
    behind = u * bs + bs;
    if (c < 0) continue;
    if (list) list[n] = c;
    n += mark[c] != r;
    mark[c] = r;
  }
  if (own >= 0 && mark[own] != r) {
    if (list) list[n] = own;
    n++;
    mark[own] = r;
  }
  return n;
}

/* the rows' offsets */
static inline __attribute__((always_inline)) PetscCount HybSmoothCount_Inline(PetscInt bs, PetscInt nvec, HybSmooth *w)
{
  const PetscBool one = (PetscBool)(bs == 1 && nvec == 1);
  PetscInt       *pi  = w->P->i;
  PetscCount      sum = 0;

  for (PetscInt v = 0; v < w->A->m / bs; v++) {
    PetscInt n = 0;

    if (!one) w->whole[v] = (unsigned char)HybAggIsWhole(w->A, bs, v);
    for (PetscInt r = v * bs; r < v * bs + bs; r++) {
      if (one || r == v * bs || !w->whole[v]) n = HybSmoothRow(bs, w, r, NULL);
      pi[r] = (PetscInt)sum;
      sum += (PetscCount)n * nvec;
      if (!one) w->longest = PetscMax(w->longest, n);
    }
  }
  return sum;
}

static PetscCount HybSmoothCount(HybSmooth *w)
{
  return w->bs == 1 && w->nvec == 1 ? HybSmoothCount_Inline(1, 1, w) : HybSmoothCount_Inline(w->bs, w->nvec, w);
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

/* all rows of one unknown a vertex and one vector */
static PetscErrorCode HybSmoothOnes(const HybSmooth *w)
{
  const PetscInt  *parent = w->parent, *ai = w->A->i, *aj = w->A->j, *pi = w->P->i;
  const HybScalar *aa = w->A->a, *q = w->q, alpha = w->alpha;
  PetscInt        *mark = w->mark, *pj = w->P->j;
  HybScalar       *pa = w->P->a;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < w->A->m; r++) {
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
    if (own >= 0 && mark[own] < start) {
      mark[own] = end;
      pj[end++] = own;
    }
    if (d != (HybScalar)0) d = (HybScalar)1 / d;
    for (PetscInt e = start; e < end; e++) {
      pa[e] = alpha * (pa[e] * d);
      if (pj[e] == own) pa[e] += q[r];
    }
    PetscCall(HybAggSort(end - start, pj + start, pa + start));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the columns of row r of P, whose n aggregates are listed; nothing is summed yet */
static void HybSmoothColumns(const HybSmooth *w, PetscInt r, PetscInt n)
{
  const PetscInt nvec = w->nvec;
  PetscInt      *pj   = w->P->j + w->P->i[r];
  HybScalar     *pa   = w->P->a + w->P->i[r];

  for (PetscInt e = 0; e < n; e++) {
    for (PetscInt t = 0; t < nvec; t++) pj[e * nvec + t] = w->list[e] * nvec + t;
  }
  for (PetscInt e = 0; e < n * nvec; e++) pa[e] = HYB_NEUTRAL;
}

/* row r of P from its sums; d: A's diagonal entry */
static void HybSmoothEnd(const HybSmooth *w, PetscInt r, PetscInt n, HybScalar d)
{
  const PetscInt nvec = w->nvec, own = w->parent[r / w->bs];
  HybScalar     *pa = w->P->a + w->P->i[r];

  if (d != (HybScalar)0) d = (HybScalar)1 / d;
  for (PetscInt e = 0; e < n * nvec; e++) pa[e] = w->alpha * (pa[e] * d);
  for (PetscInt e = 0; e < n; e++) {
    if (w->list[e] != own) continue;
    for (PetscInt t = 0; t < nvec; t++) pa[e * nvec + t] += w->q[(size_t)r * nvec + t];
  }
}

/* row r of P, whose n aggregates are listed */
static void HybSmoothFill(const HybSmooth *w, PetscInt r, PetscInt n)
{
  const HybCSR  *A  = w->A;
  const PetscInt bs = w->bs, nvec = w->nvec;
  HybScalar     *pa = w->P->a + w->P->i[r], d = 0;
  PetscInt       c = -1, behind = 0; /* of the entry's vertex: its aggregate, the first column behind it */

  HybSmoothColumns(w, r, n);
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    const PetscInt   v    = A->j[k];
    const HybScalar *from = w->q + (size_t)v * nvec, a = A->a[k];

    if (v == r) d = a;
    if (v >= behind) {
      behind = v - v % bs + bs;
      c      = w->parent[v / bs];
    }
    if (c < 0) continue;
    for (PetscInt t = 0; t < nvec; t++) pa[w->place[c] * nvec + t] += a * from[t];
  }
  HybSmoothEnd(w, r, n, d);
}

/* the sums of the rows of vertex v, which have the same columns in whole blocks; d: their diagonal entries */
static inline __attribute__((always_inline)) void HybSmoothSum_Inline(PetscInt bs, PetscInt nvec, const HybSmooth *w, PetscInt v, HybScalar *d)
{
  const HybCSR  *A  = w->A;
  const PetscInt lo = A->i[v * bs], len = A->i[v * bs + 1] - lo, width = w->P->i[v * bs + 1] - w->P->i[v * bs];

  for (PetscInt k = 0; k < len; k += bs) {
    const PetscInt u = A->j[lo + k] / bs, c = w->parent[u];
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

static HYB_MULTIVERSION void HybSmoothSum(const HybSmooth *w, PetscInt v, HybScalar *d)
{
  const PetscInt bs = w->bs, nvec = w->nvec;

  if (bs == 3 && nvec == 3)
    HybSmoothSum_Inline(3, 3, w, v, d);
  else if (bs == 3 && nvec == 6)
    HybSmoothSum_Inline(3, 6, w, v, d);
  else if (bs == 6 && nvec == 6)
    HybSmoothSum_Inline(6, 6, w, v, d);
  else if (bs == 2 && nvec == 2)
    HybSmoothSum_Inline(2, 2, w, v, d);
  else if (bs == 2 && nvec == 3)
    HybSmoothSum_Inline(2, 3, w, v, d);
  else
    HybSmoothSum_Inline(bs, nvec, w, v, d);
}

/* the rows of P of vertex v */
static PetscErrorCode HybSmoothVertex(const HybSmooth *w, PetscInt v)
{
  const PetscInt bs = w->bs;
  PetscInt       n  = 0;

  PetscFunctionBegin;
  for (PetscInt r = v * bs; r < v * bs + bs; r++) {
    if (r == v * bs || !w->whole[v]) {
      n = HybSmoothRow(bs, w, r, w->list);
      PetscCall(PetscSortInt(n, w->list));
      for (PetscInt e = 0; e < n; e++) w->place[w->list[e]] = e;
    }
    if (w->whole[v])
      HybSmoothColumns(w, r, n);
    else
      HybSmoothFill(w, r, n);
  }
  if (!w->whole[v]) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt s = 0; s < bs; s++) w->d[s] = 0;
  HybSmoothSum(w, v, w->d);
  for (PetscInt s = 0; s < bs; s++) HybSmoothEnd(w, v * bs + s, n, w->d[s]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggSmoothed_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt longest, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  const PetscInt  bs  = block->bs;
  const PetscBool one = HybAggIsScalar(block);
  HybSmooth       w   = {.A = A, .parent = agg->parent, .bs = bs, .nvec = block->nvec, .q = q, .alpha = -omega, .P = P};

  PetscFunctionBegin;
  PetscCheck(A->m <= A->n && A->n == agg->n * bs && A->m % bs == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, bs, A->m, A->n);
  *P = (HybCSR){A->m, agg->nc * block->nvec, 0, NULL, NULL, NULL};
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &w.mark));
  if (!one) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), agg->nc, sizeof(PetscInt), &w.place));
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->m / bs, 1, &w.whole));
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), bs, sizeof(HybScalar), &w.d));
  }
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &P->i));
  for (PetscInt c = 0; c < agg->nc; c++) w.mark[c] = -1;
  PetscCall(HybSmoothArrays(exec, keep, HybSmoothCount(&w), P));
  for (PetscInt c = 0; c < agg->nc; c++) w.mark[c] = -1;
  if (one)
    PetscCall(HybSmoothOnes(&w));
  else {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)w.longest + 1, sizeof(PetscInt), &w.list));
    for (PetscInt v = 0; v < A->m / bs; v++) PetscCall(HybSmoothVertex(&w, v));
  }
  PetscCall(HybArenaFree(work, &w.list, &w.d, &w.whole, &w.place, &w.mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}
