/*
  fused.c: the Galerkin product C = P^T A P in one walk through the rows of A, by outer products.

  Idea. Row i of A*P is formed in a dense accumulator and at once added to the rows of C that row i of P names:
    for each row i of A
      v = sum over k of A(i,k) * P(k,:)              in A's order
      for each I in row i of P:  C(I,:) += P(i,I) * v
  Every entry of C is the sum over ascending i of P(i,I) * v(J), exactly as P^T times (A*P) has it; neither factor is
  stored. What the numeric phase needs beside the operands is where v goes: the columns of each v, and for each pair (i,
  I) their places in row I of C.

  Several components a node make all this smaller. Consecutive rows of equal patterns in A and in P (up to four) form a
  group: one walk, four accumulators side by side, one list of columns and of places for all. Columns of P that come in
  aligned blocks of b (b coarse unknowns a node) count once: lists and places hold blocks. Elasticity with three
  unknowns a node and six a coarse node shrinks them by 3*6*6. Scalar problems are groups of one row and blocks of one
  column.

  Symbolic (patterns only, on groups and blocks):
    for each group g: columns of its v = union of the rows of P that A names (bitmap)
    transpose the groups' rows of P
    for each block row I of C: its columns = union of the v of the groups that name I; then, with a map from column to
    place, the places write C->i, C->j
  Where the places would take more memory than A and P themselves (long rows in P), or a row of C has more than 65536
  blocks, they are not kept but found anew in each numeric phase by walking row I of C beside the columns of v
  ("walked").

  Memory kept: columns of v (4 bytes each) and places (2 bytes each), by group and block. Working memory: the transposed
  pattern of P, and an accumulator over the window of coarse columns of one group. Time: products of A*P, and sum of
  (length of row i of P) * (length of v).

  Cost rule (applicable). The stages store A*P (12 bytes an entry, written and read), transpose P, and walk P^T's rows
  in an order that jumps in A*P. The fused form does the same multiplications without that traffic, so it is chosen
  unless P is not like a prolongator: more columns than rows, or rows so long (HYB_LONG on average) that places would
  have to be walked.

  Counters: "products" (scalar ones, of both kinds), "row groups", "column block" (b), "places" (kept) or "walked" (not
  kept).
  Reference: the row-wise outer-product formulation of the triple product is McCourt, Smith, Zhang, Sparse matrix-matrix
  products executed through coloring, SIMAX 36 (2015), section 5; blocks and groups are ours.
*/
#include <aijhybridgpu/private/hybptap.h>
#include "../../plan/colset.h"

#define HYB_GROUP  4
#define HYB_PLACES 6 /* places a nonzero of A and P: 12 bytes */
#define HYB_LONG   32
#define HYB_AHEAD  8

#if PetscDefined(USE_COMPLEX)
  #define HYB_NEUTRAL PetscCMPLX((PetscReal)-0.0, (PetscReal)-0.0)
#else
  #define HYB_NEUTRAL ((PetscReal)-0.0)
/* one value of each row of a group */
typedef PetscScalar HybGroupVector __attribute__((vector_size(HYB_GROUP * sizeof(PetscScalar)), aligned(sizeof(PetscScalar)), may_alias));
#endif

typedef struct {
  PetscInt    b; /* columns of P come in aligned blocks of b */
  PetscInt    ngroups;
  PetscInt   *gptr;      /* group g: rows gptr[g] .. gptr[g+1]-1 */
  PetscInt   *rptr, *rj; /* block columns of the rows of P of each group */
  PetscCount *vptr;      /* block columns of v of each group */
  PetscInt   *vj;
  /* for each entry of the groups' rows of P, in order, where the blocks of v lie in the row of C; or NULL */
  uint16_t *place;
  PetscInt  longest; /* blocks of the longest v */
  PetscInt  span;    /* columns of the widest v */
} HybFused;

static inline PetscBool HybSameRow(const HybCSR *A, PetscInt r, PetscInt q)
{
  const PetscInt len = A->i[r + 1] - A->i[r];

  return (PetscBool)(len == A->i[q + 1] - A->i[q] && (!len || (A->j[A->i[r]] == A->j[A->i[q]] && !memcmp(A->j + A->i[r], A->j + A->i[q], (size_t)len * sizeof(PetscInt)))));
}

/* do all rows consist of aligned runs of b columns? */
static PetscBool HybIsBlocked(const HybCSR *P, PetscInt b)
{
  if (P->n % b) return PETSC_FALSE;
  for (PetscInt r = 0; r < P->m; r++) {
    if ((P->i[r + 1] - P->i[r]) % b) return PETSC_FALSE;
    for (PetscInt k = P->i[r]; k < P->i[r + 1]; k += b) {
      if (P->j[k] % b || P->j[k + b - 1] != P->j[k] + b - 1) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

static HYB_MULTIVERSION PetscInt HybTake(const HybColSet *s, PetscInt last, PetscInt *cols)
{
  return HybColSetTake(s, 0, last, cols);
}

/* room for n more entries behind the used ones; doubles */
static PetscErrorCode HybListReserve(HybArena *work, PetscInt **list, PetscCount used, PetscCount n, PetscCount *size)
{
  PetscFunctionBegin;
  if (used + n > *size) {
    PetscCount grown = PetscMax(*size, (PetscCount)4096);
    PetscInt  *bigger;

    while (grown < used + n) grown *= 2;
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, grown, sizeof(PetscInt), &bigger));
    if (used) memcpy(bigger, *list, (size_t)used * sizeof(PetscInt));
    PetscCall(HybArenaFree(work, list));
    *list = bigger;
    *size = grown;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the exact part of a list goes to keep */
static PetscErrorCode HybListKeep(HybArena *work, HybArena *keep, PetscCount used, PetscInt **list)
{
  PetscInt *exact;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(keep, HYB_MEM_HOST, used, sizeof(PetscInt), &exact));
  if (used) memcpy(exact, *list, (size_t)used * sizeof(PetscInt));
  PetscCall(HybArenaFree(work, list));
  *list = exact;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPtAPApplicable_Fused(HybPtAP *pp, const HybCSR *A, const HybCSR *P, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = (PetscBool)(P->n <= P->m && P->nnz <= (PetscCount)HYB_LONG * P->m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* groups of rows, and their rows of P in blocks */
static PetscErrorCode HybFusedGroups(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybFused *f, PetscInt **group)
{
  PetscInt  g = 0, n = 0;
  PetscInt *id;

  PetscFunctionBegin;
  f->b = 1;
  for (PetscInt b = 8; P->nnz && b > 1; b--) {
    if (HybIsBlocked(P, b)) {
      f->b = b;
      break;
    }
  }
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, P->m, sizeof(PetscInt), &id));
  for (PetscInt r = 0, first = 0; r < P->m; r++) {
    if (r && (r - first >= HYB_GROUP || !HybSameRow(P, first, r) || !HybSameRow(A, first, r))) {
      g++;
      first = r;
    }
    id[r] = g;
  }
  f->ngroups = P->m ? g + 1 : 0;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, (PetscCount)f->ngroups + 1, sizeof(PetscInt), &f->gptr));
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, (PetscCount)f->ngroups + 1, sizeof(PetscInt), &f->rptr));
  for (PetscInt r = 0; r < P->m; r++) {
    if (!r || id[r] != id[r - 1]) {
      f->gptr[id[r]] = r;
      f->rptr[id[r]] = n;
      n += (P->i[r + 1] - P->i[r]) / f->b;
    }
  }
  f->gptr[f->ngroups] = P->m;
  f->rptr[f->ngroups] = n;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, n, sizeof(PetscInt), &f->rj));
  for (g = 0; g < f->ngroups; g++) {
    const PetscInt *pj = P->j + P->i[f->gptr[g]];

    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++, pj += f->b) f->rj[e] = pj[0] / f->b;
  }
  *group = id;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the block columns of a v, into the set; returns an upper bound of their number (and the largest in *last) */
static HYB_MULTIVERSION PetscInt HybFusedCollect(const HybColSet *set, PetscInt len, const PetscInt *cols, const PetscInt *group, const PetscInt *rptr, const PetscInt *rj, PetscInt *last)
{
  PetscInt before = -1, most = -1;

  for (PetscInt k = 0; k < len; k++) {
    const PetscInt g = group[cols[k]];

    /* rows of one group come one after the other */
    if (g == before) continue;
    before = g;
    if (rptr[g] < rptr[g + 1]) most = PetscMax(most, rj[rptr[g + 1] - 1]);
    for (PetscInt e = rptr[g]; e < rptr[g + 1]; e++) HybColSetAdd(set, rj[e] >> 6, (uint64_t)1 << (rj[e] & 63));
  }
  *last = most;
  return most + 1;
}

/* What only the symbolic phase has */
typedef struct {
  HybColSet   set;
  PetscInt   *group; /* of each row */
  PetscInt    nblocks;
  PetscCount  places;
  PetscBool   keepplaces;
  PetscInt   *tptr, *tg;   /* which groups name a block row of C */
  PetscCount *tslot;       /* where the places of their entries start */
  PetscInt   *cptr, *list; /* block rows of C */
} HybFusedWork;

/* columns of v; a group whose row of P is empty needs none */
static PetscErrorCode HybFusedColumns(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybFused *f, HybFusedWork *w)
{
  HybArena  *work = &pp->work;
  PetscInt  *list = NULL;
  PetscCount size = 0, used = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, (PetscCount)f->ngroups + 1, sizeof(PetscCount), &f->vptr));
  for (PetscInt g = 0; g < f->ngroups; g++) {
    const PetscInt r = f->gptr[g];

    f->vptr[g] = used;
    if (f->rptr[g] < f->rptr[g + 1]) {
      PetscInt       last, n;
      const PetscInt most = HybFusedCollect(&w->set, A->i[r + 1] - A->i[r], A->j + A->i[r], w->group, f->rptr, f->rj, &last);

      if (!most) continue;
      PetscCall(HybListReserve(work, &list, used, most, &size));
      n          = HybTake(&w->set, last, list + used);
      f->longest = PetscMax(f->longest, n);
      f->span    = PetscMax(f->span, (list[used + n - 1] - list[used] + 1) * f->b);
      used += n;
      w->places += (PetscCount)(f->rptr[g + 1] - f->rptr[g]) * n;
    }
  }
  f->vptr[f->ngroups] = used;
  PetscCall(HybListKeep(work, &pp->keep, used, &list));
  f->vj         = list;
  w->keepplaces = (PetscBool)(w->places <= HYB_PLACES * (A->nnz + P->nnz));
  if (w->keepplaces) PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, w->places, sizeof(uint16_t), &f->place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which groups name each block row of C */
static PetscErrorCode HybFusedTranspose(HybPtAP *pp, const HybFused *f, HybFusedWork *w)
{
  HybArena *work = &pp->work;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, (PetscCount)w->nblocks + 2, sizeof(PetscInt), &w->tptr));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->rptr[f->ngroups], sizeof(PetscInt), &w->tg));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->rptr[f->ngroups], sizeof(PetscCount), &w->tslot));
  for (PetscInt e = 0; e < f->rptr[f->ngroups]; e++) w->tptr[f->rj[e] + 2]++;
  for (PetscInt c = 0; c < w->nblocks; c++) w->tptr[c + 2] += w->tptr[c + 1];
  w->places = 0;
  for (PetscInt g = 0; g < f->ngroups; g++) {
    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++) {
      const PetscInt t = w->tptr[f->rj[e] + 1]++;

      w->tg[t]    = g;
      w->tslot[t] = w->places;
      w->places += f->vptr[g + 1] - f->vptr[g];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* places of the groups' entries in block row c, whose n columns are cols */
static void HybFusedPlaces(const HybFused *f, const HybFusedWork *w, PetscInt c, PetscInt n, const PetscInt *cols, uint16_t *map)
{
  for (PetscInt k = 0; k < n; k++) map[cols[k]] = (uint16_t)k;
  for (PetscInt t = w->tptr[c]; t < w->tptr[c + 1]; t++) {
    const PetscInt   g  = w->tg[t];
    const PetscCount lo = f->vptr[g], len = f->vptr[g + 1] - lo;
    uint16_t        *to = f->place + w->tslot[t];

    /* every entry writes elsewhere: fetch ahead */
    if (t + HYB_AHEAD < w->tptr[c + 1]) __builtin_prefetch(f->place + w->tslot[t + HYB_AHEAD], 1);
    for (PetscCount k = 0; k < len; k++) to[k] = map[f->vj[lo + k]];
  }
}

/* the block rows of C, and places in them where these are kept */
static PetscErrorCode HybFusedBlockRows(HybPtAP *pp, HybFused *f, HybFusedWork *w)
{
  HybArena  *work = &pp->work;
  uint16_t  *map  = NULL;
  PetscCount size = 0, used = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)w->nblocks + 1, sizeof(PetscInt), &w->cptr));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, w->nblocks, sizeof(uint16_t), &map));
  for (PetscInt c = 0; c < w->nblocks; c++) {
    const PetscInt *tptr = w->tptr, *tg = w->tg;
    PetscInt        n = 0, last = -1;

    PetscCall(HybIntCast(used, "The Galerkin product", &w->cptr[c]));
    for (PetscInt t = tptr[c]; t < tptr[c + 1]; t++) {
      const PetscCount lo = f->vptr[tg[t]], hi = f->vptr[tg[t] + 1];

      if (t + HYB_AHEAD < tptr[c + 1]) __builtin_prefetch(f->vj + f->vptr[tg[t + HYB_AHEAD]]);
      for (PetscCount k = lo; k < hi; k++) HybColSetAdd(&w->set, f->vj[k] >> 6, (uint64_t)1 << (f->vj[k] & 63));
      if (lo < hi) last = PetscMax(last, f->vj[hi - 1]);
    }
    if (last < 0) continue;
    PetscCall(HybListReserve(work, &w->list, used, (PetscCount)last + 1, &size));
    n = HybTake(&w->set, last, w->list + used);
    if (w->keepplaces && n > UINT16_MAX + 1) {
      w->keepplaces = PETSC_FALSE;
      PetscCall(HybArenaFree(&pp->keep, &f->place));
    }
    if (w->keepplaces) HybFusedPlaces(f, w, c, n, w->list + used, map);
    used += n;
  }
  PetscCall(HybIntCast(used, "The Galerkin product", &w->cptr[w->nblocks]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C's pattern from its block rows */
static PetscErrorCode HybFusedPattern(const HybExec *exec, const HybFused *f, const HybFusedWork *w, HybArena *out, HybCSR *C)
{
  PetscCount nnz = (PetscCount)w->cptr[w->nblocks] * f->b * f->b;
  PetscInt   innz;

  PetscFunctionBegin;
  PetscCall(HybIntCast(nnz, "The Galerkin product", &innz));
  C->nnz = nnz;
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  PetscCall(HybArenaAlloc(out, exec->result, nnz, sizeof(PetscInt), &C->j));
  nnz = 0;
  for (PetscInt c = 0; c < w->nblocks; c++) {
    for (PetscInt d = 0; d < f->b; d++) {
      C->i[c * f->b + d] = (PetscInt)nnz;
      for (PetscInt k = w->cptr[c]; k < w->cptr[c + 1]; k++) {
        for (PetscInt e = 0; e < f->b; e++) C->j[nnz++] = w->list[k] * f->b + e;
      }
    }
  }
  C->i[C->m] = (PetscInt)nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount HybFusedProducts(const HybCSR *A, const HybCSR *P, const HybFused *f)
{
  PetscCount products = 0;

  for (PetscInt g = 0; g < f->ngroups; g++) {
    const PetscInt r     = f->gptr[g];
    PetscCount     inner = 0;

    if (f->vptr[g] == f->vptr[g + 1]) continue;
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) inner += P->i[A->j[k] + 1] - P->i[A->j[k]];
    products += (f->gptr[g + 1] - r) * (inner + (PetscCount)(P->i[r + 1] - P->i[r]) * (f->vptr[g + 1] - f->vptr[g]) * f->b);
  }
  return products;
}

static PetscErrorCode HybPtAPSymbolic_Fused(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybArena *out, HybCSR *C)
{
  HybFused    *f;
  HybFusedWork w;

  PetscFunctionBegin;
  PetscCheck(A->m == A->n && A->n == P->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands do not conform: P^T A P with a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix", A->m, A->n, P->m, P->n);
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, 1, sizeof(*f), &f));
  PetscCall(PetscMemzero(f, sizeof(*f)));
  PetscCall(PetscMemzero(&w, sizeof(w)));
  pp->data = f;
  PetscCall(HybFusedGroups(pp, A, P, f, &w.group));
  w.nblocks = P->n / f->b;
  PetscCall(HybColSetCreate(&pp->work, w.nblocks, &w.set));
  PetscCall(HybFusedColumns(pp, A, P, f, &w));
  PetscCall(HybFusedTranspose(pp, f, &w));
  PetscCall(HybFusedBlockRows(pp, f, &w));
  C->m = P->n;
  C->n = P->n;
  PetscCall(HybFusedPattern(&pp->exec, f, &w, out, C));
  PetscCall(HybCountersSet(&pp->counters, "products", HybFusedProducts(A, P, f)));
  PetscCall(HybCountersSet(&pp->counters, "row groups", f->ngroups));
  PetscCall(HybCountersSet(&pp->counters, "column block", f->b));
  PetscCall(HybCountersSet(&pp->counters, w.keepplaces ? "places" : "walked", w.places));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v of one row: acc covers the columns from base on; then v[k*b + d] = the value of column vj[k]*b + d */
static HYB_MULTIVERSION void HybFusedRow(PetscInt len, const PetscInt *cols, const HybScalar *a, const PetscInt *restrict pi, const PetscInt *restrict pj, const HybScalar *restrict pa, PetscInt base, HybScalar *restrict acc, PetscInt b, PetscInt n, const PetscInt *restrict vj, HybScalar *restrict v)
{
  HybScalar *const shifted = acc - base;

  for (PetscInt k = 0; k < len; k++) {
    const HybScalar x  = a[k];
    const PetscInt  hi = pi[cols[k] + 1];

    for (PetscInt l = pi[cols[k]]; l < hi; l++) shifted[pj[l]] += x * pa[l];
  }
  for (PetscInt t = 0; t < n; t++) {
    for (PetscInt d = 0; d < b; d++) {
      v[t * b + d]           = shifted[vj[t] * b + d];
      shifted[vj[t] * b + d] = HYB_NEUTRAL;
    }
  }
}

/* the same for the rows of a group side by side: v[(k*b + d)*HYB_GROUP + q] */
static HYB_MULTIVERSION void HybFusedRows(PetscInt len, const PetscInt *cols, const HybScalar *const *a, const PetscInt *restrict pi, const PetscInt *restrict pj, const HybScalar *restrict pa, PetscInt base, HybScalar *restrict acc, PetscInt b, PetscInt n, const PetscInt *restrict vj, HybScalar *restrict v)
{
  HybScalar *const shifted = acc - (PetscCount)HYB_GROUP * base;

  for (PetscInt k = 0; k < len; k++) {
    const PetscInt hi = pi[cols[k] + 1];
#if PetscDefined(USE_COMPLEX)
    for (PetscInt l = pi[cols[k]]; l < hi; l++) {
      for (int q = 0; q < HYB_GROUP; q++) shifted[(PetscCount)HYB_GROUP * pj[l] + q] += a[q][k] * pa[l];
    }
#else
    HybGroupVector x;

    for (int q = 0; q < HYB_GROUP; q++) x[q] = a[q][k];
    for (PetscInt l = pi[cols[k]]; l < hi; l++) *(HybGroupVector *)(shifted + (PetscCount)HYB_GROUP * pj[l]) += x * pa[l];
#endif
  }
  for (PetscInt t = 0; t < n; t++) {
    HybScalar *from = shifted + (PetscCount)HYB_GROUP * vj[t] * b;

    for (PetscInt d = 0; d < b * HYB_GROUP; d++) {
      v[(PetscCount)t * b * HYB_GROUP + d] = from[d];
      from[d]                              = HYB_NEUTRAL;
    }
  }
}

/* row of C += sum over the rows of the group, in their order, of their value of P times v */
static inline __attribute__((always_inline)) void HybFusedAdd_Inline(PetscInt nrows, PetscInt b, PetscInt n, const uint16_t *restrict place, const PetscInt *restrict walked, const HybScalar *p, const HybScalar *restrict v, PetscInt stride, HybScalar *restrict crow)
{
  for (PetscInt t = 0; t < n; t++) {
    HybScalar *restrict const c       = crow + (PetscCount)(walked ? walked[t] : place[t]) * b;
    const HybScalar *restrict const w = v + (PetscCount)t * b * stride;

    for (PetscInt d = 0; d < b; d++) {
      HybScalar sum = c[d];

      for (PetscInt q = 0; q < nrows; q++) sum += p[q] * w[d * stride + q];
      c[d] = sum;
    }
  }
}

static HYB_MULTIVERSION void HybFusedAdd(PetscInt nrows, PetscInt b, PetscInt n, const uint16_t *place, const PetscInt *walked, const HybScalar *p, const HybScalar *v, PetscInt stride, HybScalar *crow)
{
  if (walked)
    HybFusedAdd_Inline(nrows, b, n, NULL, walked, p, v, stride, crow);
  else if (nrows == 1 && b == 1)
    HybFusedAdd_Inline(1, 1, n, place, NULL, p, v, 1, crow);
  else if (nrows == 3 && b == 6)
    HybFusedAdd_Inline(3, 6, n, place, NULL, p, v, HYB_GROUP, crow);
  else if (nrows == 2 && b == 3)
    HybFusedAdd_Inline(2, 3, n, place, NULL, p, v, HYB_GROUP, crow);
  else if (nrows == 3 && b == 3)
    HybFusedAdd_Inline(3, 3, n, place, NULL, p, v, HYB_GROUP, crow);
  else
    HybFusedAdd_Inline(nrows, b, n, place, NULL, p, v, stride, crow);
}

static PetscErrorCode HybPtAPNumeric_Fused(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  const HybFused *f = (const HybFused *)pp->data;
  HybScalar      *block, *acc, *v;
  PetscInt       *walked = NULL;
  const uint16_t *place  = f->place;
  const PetscInt  b      = f->b;
  PetscCount      room;

  PetscFunctionBegin;
  room = HYB_GROUP * (PetscCount)f->span;
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, room + 64 / (PetscCount)sizeof(HybScalar), sizeof(HybScalar), &block));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, HYB_GROUP * (PetscCount)f->longest * b, sizeof(HybScalar), &v));
  if (!place) PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, f->longest, sizeof(PetscInt), &walked));
  acc = block + (64 - (uintptr_t)block % 64) % 64 / sizeof(HybScalar);
  for (PetscCount c = 0; c < room; c++) acc[c] = HYB_NEUTRAL;
  for (PetscCount c = 0; c < C->nnz; c++) C->a[c] = HYB_NEUTRAL;
  for (PetscInt g = 0; g < f->ngroups; g++) {
    const PetscInt   r = f->gptr[g], nrows = f->gptr[g + 1] - r, n = (PetscInt)(f->vptr[g + 1] - f->vptr[g]), stride = nrows > 1 ? HYB_GROUP : 1;
    const PetscInt  *vj = f->vj + f->vptr[g];
    const HybScalar *a[HYB_GROUP];

    if (!n) continue;
    for (PetscInt q = 0; q < HYB_GROUP; q++) a[q] = A->a + A->i[r + PetscMin(q, nrows - 1)];
    if (nrows > 1)
      HybFusedRows(A->i[r + 1] - A->i[r], A->j + A->i[r], a, P->i, P->j, P->a, vj[0] * b, acc, b, n, vj, v);
    else
      HybFusedRow(A->i[r + 1] - A->i[r], A->j + A->i[r], a[0], P->i, P->j, P->a, vj[0] * b, acc, b, n, vj, v);
    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++) {
      const PetscInt I0 = f->rj[e] * b;

      if (walked) {
        const PetscInt *cj = C->j + C->i[I0];

        for (PetscInt t = 0, s = 0; t < n; t++) {
          while (cj[(PetscCount)s * b] != vj[t] * b) s++;
          walked[t] = s;
        }
      }
      for (PetscInt d = 0; d < b; d++) {
        HybScalar p[HYB_GROUP];

        for (PetscInt q = 0; q < nrows; q++) p[q] = P->a[P->i[r + q] + (e - f->rptr[g]) * b + d];
        HybFusedAdd(nrows, b, n, place, walked, p, v, stride, C->a + C->i[I0 + d]);
      }
      if (place) place += n;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybPtAPMethod HybPtAP_Fused = {
  .name       = "fused",
  .applicable = HybPtAPApplicable_Fused,
  .symbolic   = HybPtAPSymbolic_Fused,
  .numeric    = HybPtAPNumeric_Fused,
};
