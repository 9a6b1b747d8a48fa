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

  Symbolic (patterns only, on groups and blocks; a column is new where its mark is an older one, no branch asks):
    for each group g: columns of its v = those of the rows of P that A names, in the order in which they come
    transpose the groups' rows of P
    for each block row I of C, through the v of the groups that name I: a new column gets the next place in the row;
    the place of each column of v is written down; then each column's rank among the row's is counted in a bitmap, and
    the places are rewritten by a table from place to rank
  Where the places would take more memory than A and P themselves (long rows in P), or a row of C has more than 65536
  blocks, they are not kept but found anew in each numeric phase by walking row I of C beside the columns of v, which
  are in order then ("walked").

  Memory kept: columns of v (4 bytes each) and places (2 bytes each), by group and block. Working memory: the transposed
  pattern of P, a mark and an accumulator for each coarse column. Time: products of A*P, and sum of (length of row i of
  P) * (length of v).

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
  PetscInt   b; /* columns of P come in aligned blocks of b */
  PetscInt   ngroups;
  PetscInt  *gptr;      /* group g: rows gptr[g] .. gptr[g+1]-1 */
  PetscInt  *rptr, *rj; /* block columns of the rows of P of each group */
  PetscInt **v;         /* block columns of v of each group, in the chunks of a list */
  PetscInt  *vlen;
  /* for each entry of the groups' rows of P, in order, where the blocks of v lie in the row of C; NULL: walked */
  uint16_t *place;
  PetscInt  nblocks; /* block rows of C */
  PetscInt  longest; /* blocks of the longest v */
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

/* the block columns of the v of group g, in the order in which they come; mark[c] == g: column c is among them already.
   Writes one more than it returns. */
static __attribute__((noinline)) PetscInt HybFusedCollect(PetscInt g, PetscInt len, const PetscInt *cols, const PetscInt *group, const PetscInt *rptr, const PetscInt *rj, PetscInt *restrict mark, PetscInt *restrict v)
{
  PetscInt before = -1, n = 0;

  for (PetscInt k = 0; k < len; k++) {
    const PetscInt q = group[cols[k]];

    /* rows of one group come one after the other */
    if (q == before) continue;
    before = q;
    for (PetscInt e = rptr[q]; e < rptr[q + 1]; e++) {
      const PetscInt c = rj[e];

      v[n] = c;
      n += mark[c] != g;
      mark[c] = g;
    }
  }
  return n;
}

/* What only the symbolic phase has */
typedef struct {
  PetscInt   *group; /* of each row */
  PetscInt   *mark;  /* of each block column of P */
  PetscCount  places, products;
  PetscBool   keepplaces;
  PetscInt   *tptr, *tg; /* which groups name a block row of C */
  PetscCount *tslot;     /* where the places of their entries start */
  PetscInt   *cptr;      /* block rows of C */
  HybColList  list;      /* their columns */
  HybColSet   set;
  PetscInt   *before; /* for each word of the set's members, how many there are in the words before */
  PetscInt   *sorted; /* a block row's columns in order */
  uint16_t   *rank;   /* of each place of a block row */
} HybFusedWork;

/* columns of v; a group whose row of P is empty needs none */
static PetscErrorCode HybFusedColumns(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybFused *f, HybFusedWork *w)
{
  HybColList list;

  PetscFunctionBegin;
  HybColListInit(&list, A->nnz);
  memset(w->mark, -1, (size_t)f->nblocks * sizeof(PetscInt));
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, f->ngroups, sizeof(PetscInt *), &f->v));
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, f->ngroups, sizeof(PetscInt), &f->vlen));
  for (PetscInt g = 0; g < f->ngroups; g++) {
    const PetscInt r = f->gptr[g], len = A->i[r + 1] - A->i[r], *cols = A->j + A->i[r], named = f->rptr[g + 1] - f->rptr[g];
    PetscCount     met = 0;

    f->v[g]    = NULL;
    f->vlen[g] = 0;
    if (!named) continue;
    for (PetscInt k = 0; k < len; k++) met += f->rptr[w->group[cols[k]] + 1] - f->rptr[w->group[cols[k]]];
    /* what Collect writes is kept where it is: the list's chunks */
    PetscCall(HybColListReserve(&pp->keep, &list, PetscMin(met, (PetscCount)f->nblocks) + 1));
    f->v[g]    = HybColListEnd(&list);
    f->vlen[g] = HybFusedCollect(g, len, cols, w->group, f->rptr, f->rj, w->mark, f->v[g]);
    f->longest = PetscMax(f->longest, f->vlen[g]);
    list.tail->used += f->vlen[g];
    w->places += (PetscCount)named * f->vlen[g];
    w->products += (f->gptr[g + 1] - r) * (met * f->b + (PetscCount)named * f->b * f->vlen[g] * f->b);
  }
  w->keepplaces = (PetscBool)(w->places <= HYB_PLACES * (A->nnz + P->nnz));
  if (w->keepplaces) PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, w->places, sizeof(uint16_t), &f->place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which groups name each block row of C */
static PetscErrorCode HybFusedTranspose(HybPtAP *pp, const HybFused *f, HybFusedWork *w)
{
  HybArena  *work   = &pp->work;
  PetscCount places = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, (PetscCount)f->nblocks + 2, sizeof(PetscInt), &w->tptr));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->rptr[f->ngroups], sizeof(PetscInt), &w->tg));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->rptr[f->ngroups], sizeof(PetscCount), &w->tslot));
  for (PetscInt e = 0; e < f->rptr[f->ngroups]; e++) w->tptr[f->rj[e] + 2]++;
  for (PetscInt c = 0; c < f->nblocks; c++) w->tptr[c + 2] += w->tptr[c + 1];
  for (PetscInt g = 0; g < f->ngroups; g++) {
    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++) {
      const PetscInt t = w->tptr[f->rj[e] + 1]++;

      w->tg[t]    = g;
      w->tslot[t] = places;
      places += f->vlen[g];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns v are met in block row of C whose marks begin at base: mark[c] >= base says that column c is there, at
   place mark[c] - base. New ones go behind the n that cols has (which is written one further); their number with the
   new ones is returned. No branch: whether a column is new cannot be foretold. */
static __attribute__((noinline)) PetscInt HybFusedMeet(PetscCount len, const PetscInt *restrict v, PetscInt base, PetscInt *restrict mark, PetscInt n, PetscInt *restrict cols, uint16_t *restrict to)
{
  for (PetscCount k = 0; k < len; k++) {
    const PetscInt c = v[k], seen = mark[c] - base, fresh = -(PetscInt)(seen < 0), place = seen ^ ((seen ^ n) & fresh);

    cols[n] = c;
    mark[c] = base + place;
    to[k]   = (uint16_t)place;
    n -= fresh;
  }
  return n;
}

/* Block row c of C, whose columns go to cols in the order in which they come, and the places of the groups' entries in
   that order, where they are kept. Returns the columns' number; writes one more. */
static PetscInt HybFusedBlockRow(const HybFused *f, const HybFusedWork *w, PetscInt c, PetscInt base, PetscInt *cols)
{
  const PetscInt end = w->tptr[c + 1];
  PetscInt       n   = 0;

  for (PetscInt t = w->tptr[c]; t < end; t++) {
    const PetscInt g = w->tg[t], *v = f->v[g];

    if (t + HYB_AHEAD < end) __builtin_prefetch(f->v[w->tg[t + HYB_AHEAD]]);
    if (w->keepplaces) {
      /* every entry writes elsewhere: fetch ahead */
      if (t + HYB_AHEAD < end) __builtin_prefetch(f->place + w->tslot[t + HYB_AHEAD], 1);
      n = HybFusedMeet(f->vlen[g], v, base, w->mark, n, cols, f->place + w->tslot[t]);
    } else {
      for (PetscInt k = 0; k < f->vlen[g]; k++) {
        cols[n] = v[k];
        n += w->mark[v[k]] < base;
        w->mark[v[k]] = base;
      }
    }
  }
  return n;
}

static HYB_MULTIVERSION void HybFusedSort(const HybColSet *set, PetscInt n, PetscInt *cols)
{
  PetscInt last = 0;

  for (PetscInt k = 0; k < n; k++) {
    HybColSetAdd(set, cols[k] >> 6, (uint64_t)1 << (cols[k] & 63));
    last = PetscMax(last, cols[k]);
  }
  (void)HybColSetTake(set, 0, last, cols);
}

/* The n columns, all different, in order, and the rank of each; only the loop through words asks anything, and columns
   that share a word cost it one turn. */
static HYB_MULTIVERSION void HybFusedRank(const HybColSet *set, PetscInt *restrict before, PetscInt n, PetscInt *restrict cols, PetscInt *restrict sorted, uint16_t *restrict rank)
{
  PetscInt last = 0, sum = 0;

  for (PetscInt k = 0; k < n; k++) {
    HybColSetAdd(set, cols[k] >> 6, (uint64_t)1 << (cols[k] & 63));
    last = PetscMax(last, cols[k]);
  }
  for (PetscInt w2 = 0; w2 <= last >> 18; w2++) {
    for (uint64_t b2 = set->l2[w2]; b2; b2 &= b2 - 1) {
      const PetscInt w1 = 64 * w2 + __builtin_ctzll(b2);

      for (uint64_t b1 = set->l1[w1]; b1; b1 &= b1 - 1) {
        const PetscInt w0 = 64 * w1 + __builtin_ctzll(b1);

        before[w0] = sum;
        sum += __builtin_popcountll(set->l0[w0]);
      }
      set->l1[w1] = 0;
    }
    set->l2[w2] = 0;
  }
  for (PetscInt k = 0; k < n; k++) {
    const uint64_t smaller = set->l0[cols[k] >> 6] & (((uint64_t)1 << (cols[k] & 63)) - 1);
    const PetscInt place   = before[cols[k] >> 6] + __builtin_popcountll(smaller);

    rank[k]       = (uint16_t)place;
    sorted[place] = cols[k];
  }
  for (PetscInt k = 0; k < n; k++) set->l0[cols[k] >> 6] = 0;
  if (n) memcpy(cols, sorted, (size_t)n * sizeof(PetscInt));
}

/* the places of block row c, counted as the columns came, become those in order */
static void HybFusedPlaces(const HybFused *f, const HybFusedWork *w, PetscInt c)
{
  const uint16_t *restrict rank = w->rank;

  for (PetscInt t = w->tptr[c]; t < w->tptr[c + 1]; t++) {
    const PetscInt len    = f->vlen[w->tg[t]];
    uint16_t *restrict to = f->place + w->tslot[t];

    for (PetscInt k = 0; k < len; k++) to[k] = rank[to[k]];
  }
}

/* no places: the numeric phase walks, for which the columns of each v must be in order */
static PetscErrorCode HybFusedWalked(HybPtAP *pp, HybFused *f, HybFusedWork *w)
{
  PetscFunctionBegin;
  w->keepplaces = PETSC_FALSE;
  PetscCall(HybArenaFree(&pp->keep, &f->place));
  for (PetscInt g = 0; g < f->ngroups; g++) HybFusedSort(&w->set, f->vlen[g], f->v[g]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the block rows of C, and places in them where these are kept */
static PetscErrorCode HybFusedBlockRows(HybPtAP *pp, HybFused *f, HybFusedWork *w)
{
  HybArena    *work  = &pp->work;
  const size_t marks = (size_t)f->nblocks * sizeof(PetscInt);
  PetscCount   used  = 0;
  PetscInt     base  = PETSC_MAX_INT - 4096; /* so near the end that beginning anew is no rare way */

  PetscFunctionBegin;
  PetscCall(HybColSetCreate(work, f->nblocks, &w->set));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->nblocks / 64 + 2, sizeof(PetscInt), &w->before));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, PetscMin(f->nblocks, UINT16_MAX + 1), sizeof(uint16_t), &w->rank));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, PetscMin(f->nblocks, UINT16_MAX + 1), sizeof(PetscInt), &w->sorted));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)f->nblocks + 1, sizeof(PetscInt), &w->cptr));
  if (!w->keepplaces) PetscCall(HybFusedWalked(pp, f, w));
  HybColListInit(&w->list, w->places / 8);
  memset(w->mark, -1, marks);
  for (PetscInt c = 0; c < f->nblocks; c++) {
    PetscInt   n, *cols;
    PetscCount met = 0;

    PetscCall(HybIntCast(used, "The Galerkin product", &w->cptr[c]));
    for (PetscInt t = w->tptr[c]; t < w->tptr[c + 1]; t++) met += f->vlen[w->tg[t]];
    met = PetscMin(met, (PetscCount)f->nblocks);
    if (base > PETSC_MAX_INT - met) {
      memset(w->mark, -1, marks);
      base = 0;
    }
    PetscCall(HybColListReserve(work, &w->list, met + 1));
    cols = HybColListEnd(&w->list);
    n    = HybFusedBlockRow(f, w, c, base, cols);
    if (w->keepplaces && n > UINT16_MAX + 1) PetscCall(HybFusedWalked(pp, f, w));
    if (w->keepplaces) {
      HybFusedRank(&w->set, w->before, n, cols, w->sorted, w->rank);
      HybFusedPlaces(f, w, c);
    } else
      HybFusedSort(&w->set, n, cols);
    w->list.tail->used += n;
    used += n;
    base += n;
  }
  PetscCall(HybIntCast(used, "The Galerkin product", &w->cptr[f->nblocks]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C's pattern from its block rows */
static PetscErrorCode HybFusedPattern(HybPtAP *pp, const HybFused *f, HybFusedWork *w, HybArena *out, HybCSR *C)
{
  const HybMem   mem = pp->exec.result;
  const PetscInt b   = f->b;
  PetscInt      *list, innz;

  PetscFunctionBegin;
  C->nnz = (PetscCount)w->cptr[f->nblocks] * b * b;
  PetscCall(HybIntCast(C->nnz, "The Galerkin product", &innz));
  PetscCall(HybArenaAlloc(out, mem, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  PetscCall(HybArenaAlloc(out, mem, C->nnz, sizeof(PetscInt), &C->j));
  list = C->j;
  if (b > 1) PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, w->cptr[f->nblocks], sizeof(PetscInt), &list));
  PetscCall(HybColListMove(&pp->work, &w->list, list));
  for (PetscInt c = 0; c < f->nblocks; c++) {
    const PetscInt lo = w->cptr[c], n = w->cptr[c + 1] - lo;

    for (PetscInt d = 0; d < b; d++) {
      PetscInt *cj = C->j + lo * b * b + n * b * d;

      C->i[c * b + d] = (PetscInt)(cj - C->j);
      for (PetscInt k = 0; k < n && b > 1; k++) {
        for (PetscInt e = 0; e < b; e++) *cj++ = list[lo + k] * b + e;
      }
    }
  }
  C->i[C->m] = innz;
  PetscFunctionReturn(PETSC_SUCCESS);
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
  f->nblocks = P->n / f->b;
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, f->nblocks, sizeof(PetscInt), &w.mark));
  PetscCall(HybFusedColumns(pp, A, P, f, &w));
  PetscCall(HybFusedTranspose(pp, f, &w));
  PetscCall(HybFusedBlockRows(pp, f, &w));
  C->m = P->n;
  C->n = P->n;
  PetscCall(HybFusedPattern(pp, f, &w, out, C));
  PetscCall(HybCountersSet(&pp->counters, "products", w.products));
  PetscCall(HybCountersSet(&pp->counters, "row groups", f->ngroups));
  PetscCall(HybCountersSet(&pp->counters, "column block", f->b));
  PetscCall(HybCountersSet(&pp->counters, w.keepplaces ? "places" : "walked", w.places));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v of one row, acc[c] for column c; then v[k*b + d] = the value of column vj[k]*b + d */
static HYB_MULTIVERSION void HybFusedRow(PetscInt len, const PetscInt *cols, const HybScalar *a, const PetscInt *restrict pi, const PetscInt *restrict pj, const HybScalar *restrict pa, HybScalar *restrict acc, PetscInt b, PetscInt n, const PetscInt *restrict vj, HybScalar *restrict v)
{
  for (PetscInt k = 0; k < len; k++) {
    const HybScalar x  = a[k];
    const PetscInt  hi = pi[cols[k] + 1];

    for (PetscInt l = pi[cols[k]]; l < hi; l++) acc[pj[l]] += x * pa[l];
  }
  for (PetscInt t = 0; t < n; t++) {
    for (PetscInt d = 0; d < b; d++) {
      v[t * b + d]       = acc[vj[t] * b + d];
      acc[vj[t] * b + d] = HYB_NEUTRAL;
    }
  }
}

/* the same for the rows of a group side by side: v[(k*b + d)*HYB_GROUP + q] */
static HYB_MULTIVERSION void HybFusedRows(PetscInt len, const PetscInt *cols, const HybScalar *const *a, const PetscInt *restrict pi, const PetscInt *restrict pj, const HybScalar *restrict pa, HybScalar *restrict acc, PetscInt b, PetscInt n, const PetscInt *restrict vj, HybScalar *restrict v)
{
  for (PetscInt k = 0; k < len; k++) {
    const PetscInt hi = pi[cols[k] + 1];
#if PetscDefined(USE_COMPLEX)
    for (PetscInt l = pi[cols[k]]; l < hi; l++) {
      for (int q = 0; q < HYB_GROUP; q++) acc[(PetscCount)HYB_GROUP * pj[l] + q] += a[q][k] * pa[l];
    }
#else
    HybGroupVector x;

    for (int q = 0; q < HYB_GROUP; q++) x[q] = a[q][k];
    for (PetscInt l = pi[cols[k]]; l < hi; l++) *(HybGroupVector *)(acc + (PetscCount)HYB_GROUP * pj[l]) += x * pa[l];
#endif
  }
  for (PetscInt t = 0; t < n; t++) {
    HybScalar *from = acc + (PetscCount)HYB_GROUP * vj[t] * b;

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
  room = (f->ngroups < P->m ? HYB_GROUP : 1) * (PetscCount)P->n;
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, room + 64 / (PetscCount)sizeof(HybScalar), sizeof(HybScalar), &block));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, HYB_GROUP * (PetscCount)f->longest * b, sizeof(HybScalar), &v));
  if (!place) PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, f->longest, sizeof(PetscInt), &walked));
  acc = block + (64 - (uintptr_t)block % 64) % 64 / sizeof(HybScalar);
  for (PetscCount c = 0; c < room; c++) acc[c] = HYB_NEUTRAL;
  for (PetscCount c = 0; c < C->nnz; c++) C->a[c] = HYB_NEUTRAL;
  for (PetscInt g = 0; g < f->ngroups; g++) {
    const PetscInt   r = f->gptr[g], nrows = f->gptr[g + 1] - r, n = f->vlen[g], stride = nrows > 1 ? HYB_GROUP : 1;
    const PetscInt  *vj = f->v[g];
    const HybScalar *a[HYB_GROUP];

    if (!n) continue;
    for (PetscInt q = 0; q < HYB_GROUP; q++) a[q] = A->a + A->i[r + PetscMin(q, nrows - 1)];
    if (nrows > 1)
      HybFusedRows(A->i[r + 1] - A->i[r], A->j + A->i[r], a, P->i, P->j, P->a, acc, b, n, vj, v);
    else
      HybFusedRow(A->i[r + 1] - A->i[r], A->j + A->i[r], a[0], P->i, P->j, P->a, acc, b, n, vj, v);
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
