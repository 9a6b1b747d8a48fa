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
    for each group g: columns of its v = those of the rows of P that A names, in order
    transpose the groups' rows of P
    for each block row I of C: its columns = those of the v of the groups that name I, in order
    for each block row I of C, through the same v again: which of the row's blocks v has, a bit each, or, where that is
    shorter, as in long rows of C, the place of each (2 bytes)
  Putting columns in order: the place of each is the number of smaller ones, by comparing each with all, a vector at
  a time, where they are few, else by a bitmap.
  Where the bits and places would take more memory than A and P themselves (dense coarse levels), they are not kept but
  found anew in each numeric phase by walking row I of C beside the columns of v ("walked"), in long steps where v has
  few. So are those of a row of C of more than 65536 blocks that bits are too long for.

  Memory kept: columns of v (4 bytes each), and for each entry of P, by group and block, the bits of a row of C or two
  bytes for each column of v. Working memory: the transposed pattern of P, a mark and an accumulator for each coarse
  column. Time: products of A*P, and sum of (length of row i of P) * (length of v), twice in the symbolic phase.

  Cost rule (applicable). The stages store A*P (12 bytes an entry, written and read), transpose P, and walk P^T's rows
  in an order that jumps in A*P. The fused form does the same multiplications without that traffic, and where nodes have
  several components each place serves many of them: it is chosen where columns of P come in blocks, or half of the rows
  are in groups. Of scalar problems the stages find columns faster, and each place of the fused form serves one product:
  they take less time, for more memory (docs/measured.md, Galerkin products), and those of short rows are for `thin`.
  The stages are chosen too where P is not like a
  prolongator: more columns than rows, or rows so long (HYB_LONG on average) that C's would have to be walked.

  Counters: "products" (scalar ones, of both kinds), "row groups", "column block" (b), "places" (of blocks of v in rows
  of C, found once), of them "places by bits", or "walked" (found in each numeric phase).
  Reference: the row-wise outer-product formulation of the triple product is McCourt, Smith, Zhang, Sparse matrix-matrix
  products executed through coloring, SIMAX 36 (2015), section 5; blocks and groups are ours.
*/
#include <aijhybridgpu/private/hybptap.h>
#include "../spgemm/colset.h"

#define HYB_GROUP 4
#define HYB_WHERE 12 /* bytes of places a nonzero of A and P */
#define HYB_LONG  32
#define HYB_AHEAD 8
#define HYB_NEAR  8  /* columns of a row of C that are looked at one by one */
#define HYB_WALK  -1 /* a row of C without places */

#if !PetscDefined(USE_COMPLEX)
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
  /* For each entry of the groups' rows of P, in order, where the blocks of v lie in the row of C; NULL: walked. A row
     with bits has so many bytes of them an entry, one with 0 has a uint16_t for each block of v, with HYB_WALK
     nothing. */
  unsigned char *where;
  PetscInt      *bits;
  PetscInt       nblocks; /* block rows of C */
  PetscInt       longest; /* blocks of the longest v */
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

/* the most columns, up to eight, in aligned blocks of which all rows come */
static PetscInt HybFusedBlock(const HybCSR *P)
{
  PetscInt b = P->nnz ? 8 : 1;

  while (b > 1 && !HybIsBlocked(P, b)) b--;
  return b;
}

static PetscErrorCode HybPtAPApplicable_Fused(const HybPtAP *pp, const HybCSR *A, const HybCSR *P, PetscBool *fits)
{
  PetscInt rows = 0; /* that could join the one before */

  PetscFunctionBegin;
  *fits = (PetscBool)(P->n <= P->m && P->nnz <= (PetscCount)HYB_LONG * P->m);
  if (!*fits || HybFusedBlock(P) > 1) PetscFunctionReturn(PETSC_SUCCESS);
  /* no further than the answer needs: groups look at all of them */
  for (PetscInt r = 1; r < P->m && rows < P->m / 2; r++) rows += HybSameRow(P, r - 1, r) && HybSameRow(A, r - 1, r);
  *fits = (PetscBool)(rows >= P->m / 2);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* groups of rows, and their rows of P in blocks */
static PetscErrorCode HybFusedGroups(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybFused *f, PetscInt **group)
{
  PetscInt  g = 0, n = 0;
  PetscInt *id;

  PetscFunctionBegin;
  f->b = HybFusedBlock(P);
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

/* Of columns c[0..len-1], those whose mark is not this one go behind the n that cols has (which is written one
   further), and get it; how many there are then. No branch: whether a column is new cannot be foretold. */
static inline __attribute__((always_inline)) PetscInt HybFusedMeet(PetscInt len, const PetscInt *restrict c, PetscInt this, PetscInt *restrict mark, PetscInt n, PetscInt *restrict cols)
{
  for (PetscInt k = 0; k < len; k++) {
    cols[n] = c[k];
    n += mark[c[k]] != this;
    mark[c[k]] = this;
  }
  return n;
}

/* The block columns of the v of group g, in the order in which they come. Writes one more than it returns. */
static __attribute__((noinline)) PetscInt HybFusedCollect(PetscInt g, PetscInt len, const PetscInt *cols, const PetscInt *group, const PetscInt *rptr, const PetscInt *rj, PetscInt *mark, PetscInt *v)
{
  PetscInt before = -1, n = 0;

  for (PetscInt k = 0; k < len; k++) {
    const PetscInt q = group[cols[k]];

    /* rows of one group come one after the other */
    if (q == before) continue;
    before = q;
    n      = HybFusedMeet(rptr[q + 1] - rptr[q], rj + rptr[q], g, mark, n, v);
  }
  return n;
}

/* What only the symbolic phase has */
typedef struct {
  PetscInt  *group; /* of each row */
  PetscInt  *mark;  /* of each block column of P */
  PetscCount places, bits, walked, products;
  PetscInt  *tptr, *tg; /* which groups name a block row of C */
  PetscInt  *cptr;      /* block rows of C */
  HybColList list;      /* their columns */
  HybColSet  set;
  PetscInt  *before; /* for each word of the set's members, how many there are in the words before */
  PetscInt  *sorted; /* columns that are being put in order */
} HybFusedWork;

/* The n columns, all different, in order. Of many, each sets its bit, and its place is the number of bits before its
   own: only the loop through the words asks anything, and columns that share a word cost it one turn. */
static HYB_MULTIVERSION void HybFusedSort(const HybColSet *set, PetscInt *restrict before, PetscInt *restrict sorted, PetscInt n, PetscInt *restrict cols)
{
  PetscInt last = 0, sum = 0;

  if (n <= HYB_COL_FEW) {
    HybColSortFew(n, cols, sorted);
    memcpy(cols, sorted, (size_t)n * sizeof(PetscInt));
    return;
  }
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

    sorted[before[cols[k] >> 6] + __builtin_popcountll(smaller)] = cols[k];
  }
  for (PetscInt k = 0; k < n; k++) set->l0[cols[k] >> 6] = 0;
  memcpy(cols, sorted, (size_t)n * sizeof(PetscInt));
}

/* columns of v; a group whose row of P is empty needs none */
static PetscErrorCode HybFusedColumns(HybPtAP *pp, const HybCSR *A, HybFused *f, HybFusedWork *w)
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
    /* they are kept where they are written: the list's chunks */
    PetscCall(HybColListReserve(&pp->keep, &list, PetscMin(met, (PetscCount)f->nblocks) + 1));
    f->v[g]    = HybColListEnd(&list);
    f->vlen[g] = HybFusedCollect(g, len, cols, w->group, f->rptr, f->rj, w->mark, f->v[g]);
    HybFusedSort(&w->set, w->before, w->sorted, f->vlen[g], f->v[g]);
    f->longest = PetscMax(f->longest, f->vlen[g]);
    list.tail->used += f->vlen[g];
    w->places += (PetscCount)named * f->vlen[g];
    w->products += (f->gptr[g + 1] - r) * (met * f->b + (PetscCount)named * f->b * f->vlen[g] * f->b);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which groups name each block row of C */
static PetscErrorCode HybFusedTranspose(HybPtAP *pp, const HybFused *f, HybFusedWork *w)
{
  HybArena *work = &pp->work;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, (PetscCount)f->nblocks + 2, sizeof(PetscInt), &w->tptr));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->rptr[f->ngroups], sizeof(PetscInt), &w->tg));
  for (PetscInt e = 0; e < f->rptr[f->ngroups]; e++) w->tptr[f->rj[e] + 2]++;
  for (PetscInt c = 0; c < f->nblocks; c++) w->tptr[c + 2] += w->tptr[c + 1];
  for (PetscInt g = 0; g < f->ngroups; g++) {
    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++) w->tg[w->tptr[f->rj[e] + 1]++] = g;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the columns of block row c of C, in the order in which they come; writes one more than it returns */
static __attribute__((noinline)) PetscInt HybFusedBlockRow(const HybFused *f, PetscInt c, PetscInt named, const PetscInt *g, PetscInt *mark, PetscInt *cols)
{
  PetscInt n = 0;

  for (PetscInt t = 0; t < named; t++) {
    if (t + HYB_AHEAD < named) __builtin_prefetch(f->v[g[t + HYB_AHEAD]]);
    n = HybFusedMeet(f->vlen[g[t]], f->v[g[t]], c, mark, n, cols);
  }
  return n;
}

/* the block rows of C */
static PetscErrorCode HybFusedBlockRows(HybPtAP *pp, HybFused *f, HybFusedWork *w)
{
  HybArena  *work = &pp->work;
  PetscCount used = 0;

  PetscFunctionBegin;
  HybColListInit(&w->list, w->places / 8);
  memset(w->mark, -1, (size_t)f->nblocks * sizeof(PetscInt));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)f->nblocks + 1, sizeof(PetscInt), &w->cptr));
  for (PetscInt c = 0; c < f->nblocks; c++) {
    const PetscInt lo = w->tptr[c], hi = w->tptr[c + 1];
    PetscInt       n   = 0, *cols;
    PetscCount     met = 0;

    PetscCall(HybIntCast(used, "The Galerkin product", &w->cptr[c]));
    for (PetscInt t = lo; t < hi; t++) met += f->vlen[w->tg[t]];
    PetscCall(HybColListReserve(work, &w->list, PetscMin(met, (PetscCount)f->nblocks) + 1));
    cols = HybColListEnd(&w->list);
    n    = HybFusedBlockRow(f, c, hi - lo, w->tg + lo, w->mark, cols);
    HybFusedSort(&w->set, w->before, w->sorted, n, cols);
    w->list.tail->used += n;
    used += n;
  }
  PetscCall(HybIntCast(used, "The Galerkin product", &w->cptr[f->nblocks]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where the columns v, in order, lie in a row whose columns' places are in mark: a bit each, bytes bytes in all */
static __attribute__((noinline)) void HybFusedBits(PetscInt len, const PetscInt *restrict v, const PetscInt *restrict mark, PetscInt bytes, unsigned char *restrict to)
{
  for (PetscInt k = 0, from = 0; from < bytes; from += 8) {
    const PetscCount end  = 8 * ((PetscCount)from + 8);
    uint64_t         word = 0;

    for (; k < len && mark[v[k]] < end; k++) word |= (uint64_t)1 << (mark[v[k]] & 63);
    for (PetscInt q = from; q < PetscMin(from + 8, bytes); q++, word >>= 8) to[q] = (unsigned char)(word & 255);
  }
}

/* bytes of places of n blocks of v in a row of C */
static inline PetscCount HybFusedBytes(PetscInt bits, PetscInt n)
{
  return bits == HYB_WALK ? 0 : n && bits ? bits
                                          : 2 * (PetscCount)n;
}

/* Where the blocks of each v lie in the rows of C, whose columns are cols: bits where they are no longer than places,
   none in a row whose places have no room in 16 bits. Nothing, if all of it would be longer than limit. */
static PetscErrorCode HybFusedWhere(HybPtAP *pp, HybFused *f, HybFusedWork *w, const PetscInt *cols, PetscCount limit)
{
  PetscCount *slot, bytes = 0, *next;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, f->nblocks, sizeof(PetscInt), &f->bits));
  for (PetscInt c = 0; c < f->nblocks; c++) {
    const PetscInt   n = w->cptr[c + 1] - w->cptr[c], width = n / 8 + (n % 8 != 0);
    const PetscCount all = (PetscCount)width * (w->tptr[c + 1] - w->tptr[c]);
    PetscCount       met = 0;

    for (PetscInt t = w->tptr[c]; t < w->tptr[c + 1]; t++) met += f->vlen[w->tg[t]];
    f->bits[c] = all <= 2 * met ? width : n > UINT16_MAX + 1 ? HYB_WALK
                                                             : 0;
    if (f->bits[c] == HYB_WALK)
      w->walked += met;
    else if (f->bits[c])
      w->bits += met;
    bytes += f->bits[c] == HYB_WALK ? 0 : f->bits[c] ? all
                                                     : 2 * met;
    if (bytes > limit) {
      w->walked = w->places;
      w->bits   = 0;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  /* eight bytes are read where one is left */
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, bytes + 8, 1, &f->where));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, f->rptr[f->ngroups], sizeof(PetscCount), &slot));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, f->nblocks, sizeof(PetscCount), &next));
  for (PetscInt c = 0; c < f->nblocks; c++) next[c] = w->tptr[c];
  bytes = 0;
  for (PetscInt g = 0; g < f->ngroups; g++) {
    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++) {
      const PetscInt c = f->rj[e];

      slot[next[c]++] = bytes;
      bytes += HybFusedBytes(f->bits[c], f->vlen[g]);
    }
  }
  memset(f->where + bytes, 0, 8);
  for (PetscInt c = 0; c < f->nblocks; c++) {
    const PetscInt end = w->tptr[c + 1];

    if (f->bits[c] == HYB_WALK) continue;
    for (PetscInt k = w->cptr[c]; k < w->cptr[c + 1]; k++) w->mark[cols[k]] = k - w->cptr[c];
    for (PetscInt t = w->tptr[c]; t < end; t++) {
      const PetscInt g = w->tg[t], *v = f->v[g];
      unsigned char *to = f->where + slot[t];

      if (!f->vlen[g]) continue;
      /* every entry writes elsewhere: fetch ahead */
      if (t + HYB_AHEAD < end) {
        __builtin_prefetch(f->v[w->tg[t + HYB_AHEAD]]);
        __builtin_prefetch(f->where + slot[t + HYB_AHEAD], 1);
      }
      if (f->bits[c]) {
        HybFusedBits(f->vlen[g], v, w->mark, f->bits[c], to);
      } else {
        for (PetscInt k = 0; k < f->vlen[g]; k++) {
          const uint16_t place = (uint16_t)w->mark[v[k]];

          memcpy(to + 2 * (size_t)k, &place, 2);
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C's pattern from its block rows, whose columns are in *cols then */
static PetscErrorCode HybFusedPattern(HybPtAP *pp, const HybFused *f, HybFusedWork *w, HybArena *out, HybCSR *C, PetscInt **cols)
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
  *cols      = list;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPtAPSymbolic_Fused(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybArena *out, HybCSR *C)
{
  HybArena    *work = &pp->work;
  HybFused    *f;
  HybFusedWork w;
  PetscInt    *cols = NULL;

  PetscFunctionBegin;
  PetscCheck(A->m == A->n && A->n == P->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands do not conform: P^T A P with a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix", A->m, A->n, P->m, P->n);
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, 1, sizeof(*f), &f));
  PetscCall(PetscMemzero(f, sizeof(*f)));
  PetscCall(PetscMemzero(&w, sizeof(w)));
  pp->data = f;
  PetscCall(HybFusedGroups(pp, A, P, f, &w.group));
  f->nblocks = P->n / f->b;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->nblocks, sizeof(PetscInt), &w.mark));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->nblocks, sizeof(PetscInt), &w.sorted));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, f->nblocks / 64 + 2, sizeof(PetscInt), &w.before));
  PetscCall(HybColSetCreate(work, f->nblocks, &w.set));
  PetscCall(HybFusedColumns(pp, A, f, &w));
  PetscCall(HybFusedTranspose(pp, f, &w));
  PetscCall(HybFusedBlockRows(pp, f, &w));
  C->m = P->n;
  C->n = P->n;
  PetscCall(HybFusedPattern(pp, f, &w, out, C, &cols));
  PetscCall(HybFusedWhere(pp, f, &w, cols, HYB_WHERE * (A->nnz + P->nnz)));
  PetscCall(HybCountersSet(&pp->counters, "products", w.products));
  PetscCall(HybCountersSet(&pp->counters, "row groups", f->ngroups));
  PetscCall(HybCountersSet(&pp->counters, "column block", f->b));
  PetscCall(HybCountersSet(&pp->counters, "places", w.places - w.walked));
  PetscCall(HybCountersSet(&pp->counters, "places by bits", w.bits));
  PetscCall(HybCountersSet(&pp->counters, "walked", w.walked));
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

/* up to eight bytes of bits, of which left are the row's */
static inline __attribute__((always_inline)) uint64_t HybFusedWord(const unsigned char *bits, PetscInt left)
{
  uint64_t word;

  memcpy(&word, bits, 8);
  if (PetscDefined(WORDS_BIGENDIAN)) word = __builtin_bswap64(word);
  return left < 8 ? word & (((uint64_t)1 << 8 * left) - 1) : word;
}

/* the places of the n blocks of v in a row of C, from its bits */
static HYB_MULTIVERSION void HybFusedPlaces(const unsigned char *bits, PetscInt bytes, PetscInt *restrict place)
{
  for (PetscInt q = 0, t = 0; q < bytes; q += 8) {
    for (uint64_t m = HybFusedWord(bits + q, bytes - q); m; m &= m - 1) place[t++] = 8 * q + __builtin_ctzll(m);
  }
}

/* Where column c is among the n blocks of a row, from place s on, of which it is one. As a rule it is one of the next;
   else steps that double go beyond it, and halves of the last one lead back. */
static inline PetscInt HybFusedSeek(PetscInt n, const PetscInt *cj, PetscInt b, PetscInt c, PetscCount s)
{
  PetscCount step = 1;

  for (int near = 0; near < HYB_NEAR && cj[s * b] < c; near++) s++;
  for (; s + step < n && cj[(s + step) * b] <= c; step *= 2) s += step;
  for (step /= 2; step; step /= 2) {
    if (s + step < n && cj[(s + step) * b] <= c) s += step;
  }
  return (PetscInt)s;
}

/* The rows of C that the entries pa of a row of P name += each entry times v, for groups of one row and blocks of one
   column; returns where the next row's places begin. */
static HYB_MULTIVERSION const unsigned char *HybFusedAddRow(PetscInt named, const PetscInt *restrict rj, const HybScalar *restrict pa, const PetscInt *restrict bits, const PetscInt *restrict ci, const PetscInt *restrict cj, PetscInt n, const PetscInt *restrict vj, const HybScalar *restrict v, const unsigned char *restrict where, HybScalar *restrict ca)
{
  for (PetscInt e = 0; e < named; e++) {
    HybScalar *restrict c = ca + ci[rj[e]];
    const HybScalar x     = pa[e];
    const PetscInt  bytes = bits[rj[e]];

    if (bytes == HYB_WALK) {
      const PetscInt lo = ci[rj[e]], length = ci[rj[e] + 1] - lo;

      for (PetscInt t = 0, s = 0; t < n; t++) c[s = HybFusedSeek(length, cj + lo, 1, vj[t], s)] += x * v[t];
      continue;
    }
    if (!bytes) {
      for (PetscInt t = 0; t < n; t++, where += 2) {
        uint16_t place;

        memcpy(&place, where, 2);
        c[place] += x * v[t];
      }
      continue;
    }
    for (PetscInt q = 0, t = 0; q < bytes; q += 8, c += 64) {
      for (uint64_t m = HybFusedWord(where + q, bytes - q); m; m &= m - 1) c[__builtin_ctzll(m)] += x * v[t++];
    }
    where += bytes;
  }
  return where;
}

/* row of C += sum over the rows of the group, in their order, of their value of P times v */
static inline __attribute__((always_inline)) void HybFusedAdd_Inline(PetscInt nrows, PetscInt b, PetscInt n, const PetscInt *restrict place, const HybScalar *p, const HybScalar *restrict v, PetscInt stride, HybScalar *restrict crow)
{
  for (PetscInt t = 0; t < n; t++) {
    HybScalar *restrict const c       = crow + (PetscCount)place[t] * b;
    const HybScalar *restrict const w = v + (PetscCount)t * b * stride;

    for (PetscInt d = 0; d < b; d++) {
      HybScalar sum = c[d];

      for (PetscInt q = 0; q < nrows; q++) sum += p[q] * w[d * stride + q];
      c[d] = sum;
    }
  }
}

static HYB_MULTIVERSION void HybFusedAdd(PetscInt nrows, PetscInt b, PetscInt n, const PetscInt *place, const HybScalar *p, const HybScalar *v, PetscInt stride, HybScalar *crow)
{
  if (nrows == 1 && b == 1)
    HybFusedAdd_Inline(1, 1, n, place, p, v, 1, crow);
  else if (nrows == 3 && b == 6)
    HybFusedAdd_Inline(3, 6, n, place, p, v, HYB_GROUP, crow);
  else if (nrows == 2 && b == 3)
    HybFusedAdd_Inline(2, 3, n, place, p, v, HYB_GROUP, crow);
  else if (nrows == 3 && b == 3)
    HybFusedAdd_Inline(3, 3, n, place, p, v, HYB_GROUP, crow);
  else
    HybFusedAdd_Inline(nrows, b, n, place, p, v, stride, crow);
}

/* the places of the blocks of v of group g in block row c of C; returns where the next ones begin */
static const unsigned char *HybFusedFind(const HybFused *f, const HybCSR *C, PetscInt g, PetscInt c, const unsigned char *where, PetscInt *place)
{
  const PetscInt n = f->vlen[g];

  if (!where || f->bits[c] == HYB_WALK) {
    const PetscInt *cj = C->j + C->i[c * f->b], length = (C->i[c * f->b + 1] - C->i[c * f->b]) / f->b;

    for (PetscInt t = 0, s = 0; t < n; t++) place[t] = s = HybFusedSeek(length, cj, f->b, f->v[g][t] * f->b, s);
    return where;
  }
  if (f->bits[c]) {
    HybFusedPlaces(where, f->bits[c], place);
    return where + f->bits[c];
  }
  for (PetscInt t = 0; t < n; t++, where += 2) {
    uint16_t p;

    memcpy(&p, where, 2);
    place[t] = p;
  }
  return where;
}

static PetscErrorCode HybPtAPNumeric_Fused(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  const HybFused      *f     = (const HybFused *)pp->data;
  const unsigned char *where = f->where;
  const PetscInt       b     = f->b;
  const PetscCount     room  = (f->ngroups < P->m ? HYB_GROUP : 1) * (PetscCount)P->n;
  HybScalar           *block, *acc, *v;
  PetscInt            *place;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, room + 64 / (PetscCount)sizeof(HybScalar), sizeof(HybScalar), &block));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, HYB_GROUP * (PetscCount)f->longest * b, sizeof(HybScalar), &v));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, f->longest, sizeof(PetscInt), &place));
  acc = block + (64 - (uintptr_t)block % 64) % 64 / sizeof(HybScalar);
  for (PetscCount c = 0; c < room; c++) acc[c] = HYB_NEUTRAL;
  for (PetscCount c = 0; c < C->nnz; c++) C->a[c] = HYB_NEUTRAL;
  for (PetscInt g = 0; g < f->ngroups; g++) {
    const PetscInt   r = f->gptr[g], nrows = f->gptr[g + 1] - r, n = f->vlen[g], stride = nrows > 1 ? HYB_GROUP : 1;
    const HybScalar *a[HYB_GROUP];

    if (!n) continue;
    for (PetscInt q = 0; q < HYB_GROUP; q++) a[q] = A->a + A->i[r + PetscMin(q, nrows - 1)];
    if (nrows > 1)
      HybFusedRows(A->i[r + 1] - A->i[r], A->j + A->i[r], a, P->i, P->j, P->a, acc, b, n, f->v[g], v);
    else
      HybFusedRow(A->i[r + 1] - A->i[r], A->j + A->i[r], a[0], P->i, P->j, P->a, acc, b, n, f->v[g], v);
    if (where && nrows == 1 && b == 1) {
      where = HybFusedAddRow(f->rptr[g + 1] - f->rptr[g], f->rj + f->rptr[g], P->a + P->i[r], f->bits, C->i, C->j, n, f->v[g], v, where, C->a);
      continue;
    }
    for (PetscInt e = f->rptr[g]; e < f->rptr[g + 1]; e++) {
      where = HybFusedFind(f, C, g, f->rj[e], where, place);
      for (PetscInt d = 0; d < b; d++) {
        HybScalar p[HYB_GROUP];

        for (PetscInt q = 0; q < nrows; q++) p[q] = P->a[P->i[r + q] + (e - f->rptr[g]) * b + d];
        HybFusedAdd(nrows, b, n, place, p, v, stride, C->a + C->i[f->rj[e] * b + d]);
      }
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
