/*
  binned.c: bhSPARSE's four stages on one core: upper bounds, bins, compute, arrange, each bin with the accumulator that
  suits its rows.

  Upper bounds. u = number of products of a row, from the plan.

  Bins, and how the columns of their rows are found (symbolic phase):
    rows empty     u = 0
    rows copied    one entry of A: the row of B is the row of C
    rows repeated  the row of A has the pattern of the row before (several components a node): so has the row of C
    rows sorted    u <= 64: sixteen rows at a time are sorted by one odd-even merging network, a row a lane: a
                   comparator is one vector minimum and one vector maximum, no branch depends on the data
    rows dense     the columns lie within a window that the cache holds: a bitmap with two summary levels above it,
                   walked by its set bits, so that columns come out sorted without sorting. Where B's columns come in
                   runs, B is first compressed into (word of 64 columns, mask) pairs, and a run costs one operation
    rows hashed    a wider window and u <= 4096: a hash table of the column, then a sort of what it holds
    rows merged    a wider window and more products: the rows of B are merged by segmerge, batch by batch, into a list
                   that grows by doubling ("growths"); a batch is as long as the list, so that a product is moved O(log)
                   times
  A window is narrow up to 2^20 columns, and up to all of 2^24 where the product has four times as many products as
  columns: measured with random columns, an accumulator that misses the caches is still faster than a hash table. A row
  so long that its products outnumber a sixteenth of the columns is dense whatever its window is.

  Compute. Symbolic and numeric are two passes. Space for short rows is their upper bound (a window of rows at a time),
  for long ones it grows.
  Numeric: a dense accumulator over the window of the row, which starts at -0 (neutral: the sum is the first product's
  own bits, plus the rest in A's order) and is gathered by C->j. Up to four consecutive rows of equal pattern share one
  walk through the rows of B, their accumulators side by side. Rows of wide windows look up the place of a column in a
  hash table made from C->j.

  Arrange. Rows leave in their order into chunks of columns; when all are counted, C->j is allocated exactly and the
  chunks are copied and freed one after the other. So the most that is held is 8 bytes a nonzero before the values
  exist, and 12 with them.

    for each window of rows of A
      for its rows of u <= 64: collect the columns, sort sixteen rows at once, drop duplicates
      for its rows in order: append columns (from the sort, the row before, B, bitmap, hash or merge)
    allocate C->j; copy
    numeric: for each group of rows of equal pattern: accumulate, gather

  Time: O(products) beside the sorts; memory beside C: 8 bytes a column of the widest dense window (at most 2^20
  columns, all of them where a row is long enough to pay for it), 12 bytes a pair of the compressed B while the pattern
  is computed. All sums are in A's order, so results do not depend on bins. A numeric phase is about the dense
  accumulation alone.

  Reference: Liu, Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
  processors, JPDC 85 (2015).
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include "../colset.h"
#include "segmerge.h"
#include <stdint.h>

#define HYB_SORT_MAX   64                  /* most products of a sorted row */
#define HYB_SORT_FEW   16                  /* the same, of a small product */
#define HYB_LANES      16                  /* rows sorted at once */
#define HYB_WINDOW     128                 /* rows that are arranged together */
#define HYB_DENSE_SPAN ((PetscInt)1 << 20) /* columns of a dense accumulator that is always affordable */
#define HYB_DENSE_MOST ((PetscInt)1 << 24) /* the same, where four products a column pay for it */
#define HYB_GROUP      4                   /* rows of equal pattern that share one walk */
#define HYB_GROUP_SPAN ((PetscInt)1 << 18)
#define HYB_HASH_MAX   4096 /* most products of a hashed row */
#define HYB_BATCH      ((PetscCount)1 << 14)
#define HYB_AHEAD      16 /* entries of A by which rows of B are fetched ahead */
#define HYB_FEW        64 /* columns whose accumulator is not allocated */
#define HYB_WIDE       16 /* products of a row, times this, that pay for an accumulator of all columns */

typedef struct {
  PetscInt *key, size; /* size: a power of two; -1: free */
  PetscInt  allocated;
} HybHash;

/* What the symbolic phase works with */
typedef struct {
  const HybCSR *A, *B;
  HybSpGEMM    *mm;
  HybColSet     bits;
  PetscInt      span; /* columns that bits covers */
  HybHash       hash;
  PetscInt     *bptr, *bword; /* compressed B, or NULL */
  uint64_t     *bmask;
  HybColList    list; /* of columns of C */
  PetscCount    growths;
  PetscInt     *lanes; /* HYB_SORT_MAX x HYB_LANES */
} HybSymbolic;

/* columns that a dense window may always span */
static inline PetscInt HybDenseSpan(const HybSpGEMM *mm, PetscInt n)
{
  return n <= HYB_DENSE_SPAN || (n <= HYB_DENSE_MOST && mm->stats.products / 4 >= n) ? n : HYB_DENSE_SPAN;
}

enum {
  HYB_EMPTY,
  HYB_COPIED,
  HYB_REPEATED,
  HYB_SORTED,
  HYB_DENSE,
  HYB_HASHED,
  HYB_MERGED,
  HYB_NBINS
};
static const char *const HybBinNames[HYB_NBINS] = {"rows empty", "rows copied", "rows repeated", "rows sorted", "rows dense", "rows hashed", "rows merged"};

static HYB_MULTIVERSION PetscInt HybTake(const HybColSet *s, PetscInt base, PetscInt last, PetscInt *cols)
{
  return HybColSetTake(s, base, last, cols);
}

/* Rows of B that are soon needed: offsets first, then what they point to. A's columns run on behind the row, to
   ahead. */
static inline void HybAhead(const PetscInt *col, const PetscInt *ahead, const PetscInt *bi, const PetscInt *bj, const HybScalar *ba)
{
  if (col + HYB_AHEAD < ahead) {
    const PetscInt l = bi[col[HYB_AHEAD / 2]];

    __builtin_prefetch(&bi[col[HYB_AHEAD]]);
    __builtin_prefetch(&bj[l]);
    if (ba) __builtin_prefetch(&ba[l]);
  }
}

/* the columns of the rows of B that cols[0..len-1] name, less 64*base */
static HYB_MULTIVERSION void HybCollect(const HybColSet *s, PetscInt len, const PetscInt *cols, const PetscInt *ahead, PetscInt base, const PetscInt *bi, const PetscInt *bj)
{
  for (PetscInt k = 0, run; k < len; k += run) {
    /* rows side by side are one array */
    for (run = 1; k + run < len && cols[k + run] == cols[k] + run; run++)
      ;
    HybAhead(cols + k, ahead, bi, bj, NULL);
    for (PetscInt l = bi[cols[k]], end = bi[cols[k] + run]; l < end; l++) HybColSetAdd(s, (bj[l] >> 6) - base, (uint64_t)1 << (bj[l] & 63));
  }
}

static HYB_MULTIVERSION void HybCollectCompressed(const HybColSet *s, PetscInt len, const PetscInt *cols, PetscInt base, const PetscInt *bptr, const PetscInt *bword, const uint64_t *bmask)
{
  for (PetscInt k = 0; k < len; k++) {
    for (PetscInt l = bptr[cols[k]]; l < bptr[cols[k] + 1]; l++) HybColSetAdd(s, bword[l] - base, bmask[l]);
  }
}

static HYB_MULTIVERSION PetscCount HybCountPairs(const HybCSR *B)
{
  const PetscInt *restrict const j = B->j;
  PetscCount pairs                 = B->nnz > 0;

  for (PetscCount l = 1; l < B->nnz; l++) pairs += j[l] >> 6 != j[l - 1] >> 6;
  /* a row begins with a pair, whatever the one before ends with */
  for (PetscInt r = 1; r < B->m; r++) pairs += B->i[r] && B->i[r] < B->i[r + 1] && j[B->i[r]] >> 6 == j[B->i[r] - 1] >> 6;
  return pairs;
}

/* B as (word, mask) pairs, if that makes it so much shorter that it pays */
static PetscErrorCode HybCompress(HybSymbolic *s)
{
  const HybCSR *B    = s->B;
  HybArena     *work = &s->mm->work;
  PetscCount    pairs;

  PetscFunctionBegin;
  s->bptr = NULL;
  if (s->mm->stats.products < 4 * B->nnz || s->mm->stats.maxrow <= HYB_SORT_MAX) PetscFunctionReturn(PETSC_SUCCESS);
  pairs = HybCountPairs(B);
  if (5 * pairs > 3 * B->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)B->m + 1, sizeof(PetscInt), &s->bptr));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, pairs, sizeof(PetscInt), &s->bword));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, pairs, sizeof(uint64_t), &s->bmask));
  pairs = 0;
  for (PetscInt r = 0; r < B->m; r++) {
    PetscInt last = -1;
    uint64_t mask = 0;

    s->bptr[r] = (PetscInt)pairs;
    for (PetscInt l = B->i[r]; l < B->i[r + 1]; l++) { /* no branch, which nothing would foretell */
      const PetscInt word = B->j[l] >> 6, fresh = word != last;

      mask = (mask & (uint64_t)(fresh - 1)) | (uint64_t)1 << (B->j[l] & 63);
      pairs += fresh;
      s->bword[pairs - 1] = last = word;
      s->bmask[pairs - 1]        = mask;
    }
  }
  s->bptr[B->m] = (PetscInt)pairs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 8 << size keys are sorted by so many comparators, which lie behind those of the smaller sizes. The same for all
   products: each size is made once. */
static const int     HybNetworkPtr[] = {0, 19, 19 + 63, 19 + 63 + 191, 19 + 63 + 191 + 543};
static unsigned char HybNetwork[19 + 63 + 191 + 543][2];

/* Batcher's odd-even merge sort of 8, 16, 32 or 64 keys as a list of comparators, when the first row needs it. Since
   no comparator's second key is the first of all, the last one's tells that the list is there. */
static void HybNetworkMake(int size)
{
  const int keys = 8 << size;
  int       n    = HybNetworkPtr[size];

  if (HybNetwork[HybNetworkPtr[size + 1] - 1][1]) return;
  for (int p = 1; p < keys; p *= 2) {
    for (int k = p; k >= 1; k /= 2) {
      for (int j = k % p; j <= keys - 1 - k; j += 2 * k) {
        for (int i = 0; i < PetscMin(k, keys - j - k); i++) {
          if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) {
            HybNetwork[n][0]   = (unsigned char)(i + j);
            HybNetwork[n++][1] = (unsigned char)(i + j + k);
          }
        }
      }
    }
  }
}

/* One key of as many lanes as a register of AVX2 has, which compares longer vectors one by one; what the vectorizer
   makes of a loop over the lanes is not worth having */
typedef PetscInt HybLaneVector __attribute__((vector_size(32), aligned(sizeof(PetscInt)), may_alias));
#define HYB_LANE_VECTORS (HYB_LANES * (int)sizeof(PetscInt) / 32)

static HYB_MULTIVERSION void HybSortLanes(int ncomparators, unsigned char (*network)[2], PetscInt *lanes)
{
  HybLaneVector *key = (HybLaneVector *)lanes;

  for (int c = 0; c < ncomparators; c++) {
    HybLaneVector *a = key + network[c][0] * HYB_LANE_VECTORS, *b = key + network[c][1] * HYB_LANE_VECTORS;

    for (int v = 0; v < HYB_LANE_VECTORS; v++) {
      const HybLaneVector x = a[v], y = b[v], less = x < y;

      a[v] = (x & less) | (y & ~less);
      b[v] = (y & less) | (x & ~less);
    }
  }
}

/* rows[0..nrows-1] (at most HYB_LANES) of at most 8 << size products: sorted columns without duplicates to slot[k],
   their number to count[k] */
static void HybSortRows(HybSymbolic *s, int size, int nrows, const PetscInt *rows, PetscInt *const *slot, PetscInt *count)
{
  const HybCSR *A = s->A, *B = s->B;
  const int     keys = 8 << size;

  for (int v = 0; v < nrows; v++) {
    int t = 0;

    for (PetscInt k = A->i[rows[v]]; k < A->i[rows[v] + 1]; k++) {
      HybAhead(A->j + k, A->j + A->nnz, B->i, B->j, NULL);
      for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) s->lanes[HYB_LANES * t++ + v] = B->j[l];
    }
    for (; t < keys; t++) s->lanes[HYB_LANES * t + v] = PETSC_MAX_INT;
  }
  HybNetworkMake(size);
  HybSortLanes(HybNetworkPtr[size + 1] - HybNetworkPtr[size], HybNetwork + HybNetworkPtr[size], s->lanes);
  for (int v = 0; v < nrows; v++) {
    const int products = (int)s->mm->rowproducts[rows[v]];
    PetscInt *out = slot[v], n = 0;

    for (int t = 0; t < products; t++) {
      const PetscInt c = s->lanes[HYB_LANES * t + v];

      out[n] = c;
      n += t + 1 == products || c != s->lanes[HYB_LANES * (t + 1) + v];
    }
    count[v] = n;
  }
}

static inline PetscInt HybHashSlot(const HybHash *h, PetscInt c)
{
  return (PetscInt)((((uint64_t)c * 0x9E3779B97F4A7C15u) >> 32) & (uint64_t)(h->size - 1));
}

/* an empty table of at least twice n places */
static PetscErrorCode HybHashReset(HybArena *work, HybHash *h, PetscInt n)
{
  PetscInt size = 64;

  PetscFunctionBegin;
  while (size < 2 * (PetscInt64)n && size <= PETSC_MAX_INT / 2) size *= 2;
  if (size > h->allocated) {
    PetscCall(HybArenaFree(work, &h->key));
    h->allocated = 0;
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, size, sizeof(PetscInt), &h->key));
    h->allocated = size;
  }
  h->size = size;
  memset(h->key, 0xff, (size_t)size * sizeof(PetscInt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybSortInts(PetscInt n, PetscInt *a)
{
  /* heap sort: no recursion, no worst case */
  for (PetscInt start = n / 2, end = n; end > 1;) {
    PetscInt root, x;

    if (start > 0)
      x = a[--start];
    else {
      x      = a[--end];
      a[end] = a[0];
    }
    for (root = start;;) {
      PetscInt child = 2 * root + 1;

      if (child >= end) break;
      child += child + 1 < end && a[child] < a[child + 1];
      if (a[child] <= x) break;
      a[root] = a[child];
      root    = child;
    }
    a[root] = x;
  }
}

/* appends the columns of a row of u products to cols */
static PetscErrorCode HybHashRow(HybSymbolic *s, PetscInt r, PetscInt u, PetscInt *cols, PetscInt *count)
{
  const HybCSR *A = s->A, *B = s->B;
  PetscInt      n = 0;

  PetscFunctionBegin;
  PetscCall(HybHashReset(&s->mm->work, &s->hash, u));
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) {
      const PetscInt c = B->j[l];
      PetscInt       p = HybHashSlot(&s->hash, c);

      while (s->hash.key[p] >= 0 && s->hash.key[p] != c) p = (p + 1) & (s->hash.size - 1);
      if (s->hash.key[p] < 0) {
        s->hash.key[p] = c;
        cols[n++]      = c;
      }
    }
  }
  HybSortInts(n, cols);
  *count = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Merges the rows of B batch by batch into a list (in work, the caller frees it) */
static PetscErrorCode HybMergeRow(HybSymbolic *s, PetscInt r, PetscInt **list, PetscInt *count)
{
  const HybCSR *A = s->A, *B = s->B;
  HybArena     *work = &s->mm->work;
  PetscInt     *acc = NULL, *next = NULL, *key = NULL, *sorted = NULL, segptr[2] = {0, 0}, k = A->i[r], n = 0;
  PetscCount    capacity = 0, room = 0, *subptr, *place = NULL, *placeout = NULL;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)A->i[r + 1] - k + 1, sizeof(PetscCount), &subptr));
  while (k < A->i[r + 1]) {
    const PetscCount want  = PetscMax(HYB_BATCH, (PetscCount)n);
    PetscCount       batch = 0;
    PetscInt         q = 0, merged = 0, end = k;

    /* the next rows of B, one at least */
    subptr[0] = 0;
    for (; end < A->i[r + 1]; end++) {
      const PetscInt len = B->i[A->j[end] + 1] - B->i[A->j[end]];

      if (q && batch + len > want) break;
      batch += len;
      subptr[++q] = batch;
    }
    if (batch > room) {
      PetscCall(HybArenaFree(work, &key, &sorted, &place, &placeout));
      room = PetscMax(batch, want);
      PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, room, sizeof(PetscInt), &key));
      PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, room, sizeof(PetscInt), &sorted));
      /* the primitive carries places; a pattern needs none of them, but it moves them all the same */
      PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, room, sizeof(PetscCount), &place));
      PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, room, sizeof(PetscCount), &placeout));
    }
    for (PetscInt b = 0; b < q; b++) memcpy(key + subptr[b], B->j + B->i[A->j[k + b]], (size_t)(subptr[b + 1] - subptr[b]) * sizeof(PetscInt));
    segptr[1] = q;
    PetscCall(HybSegMerge(work, 1, segptr, q, subptr, key, place, sorted, placeout, NULL));
    if (n + batch > capacity) {
      PetscCount grown = PetscMax(capacity, HYB_BATCH);

      s->growths += capacity > 0;
      while (grown < n + batch) grown *= 2;
      capacity = grown;
      PetscCall(HybArenaFree(work, &next));
    }
    if (!next) PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, capacity, sizeof(PetscInt), &next));
    for (PetscCount x = 0, y = 0; x < n || y < batch;) {
      const PetscInt c = y == batch || (x < n && acc[x] <= sorted[y]) ? acc[x] : sorted[y];

      next[merged++] = c;
      x += x < n && acc[x] == c;
      while (y < batch && sorted[y] == c) y++;
    }
    {
      PetscInt *swap = acc;

      acc  = next;
      next = swap;
      n    = merged;
    }
    /* acc has the capacity now, the other one perhaps less */
    if (s->growths) PetscCall(HybArenaFree(work, &next));
    k = end;
  }
  PetscCall(HybArenaFree(work, &next, &key, &sorted, &place, &placeout, &subptr));
  *list  = acc;
  *count = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscBool HybSamePattern(const HybCSR *A, PetscInt r, PetscInt q)
{
  const PetscInt len = A->i[r + 1] - A->i[r];

  return (PetscBool)(len == A->i[q + 1] - A->i[q] && len && A->j[A->i[r]] == A->j[A->i[q]] && !memcmp(A->j + A->i[r], A->j + A->i[q], (size_t)len * sizeof(PetscInt)));
}

static inline int HybSortSize(PetscCount u)
{
  return u <= 8 ? 0 : u <= 16 ? 1
                    : u <= 32 ? 2
                              : 3;
}

/* the columns of a row by bitmap, hash or merge, appended to the chunks */
static PetscErrorCode HybAppendRow(HybSymbolic *s, PetscInt r, PetscInt *count, int *bin)
{
  const HybCSR    *A = s->A, *B = s->B;
  const PetscCount u     = s->mm->rowproducts[r];
  PetscInt         first = PETSC_MAX_INT, last = -1, base;

  PetscFunctionBegin;
  if (B->n <= HYB_DENSE_SPAN) { /* the window is all columns */
    first = 0;
    last  = B->n - 1;
  } else
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt lo = B->i[A->j[k]], hi = B->i[A->j[k] + 1];

      if (lo < hi) {
        first = PetscMin(first, B->j[lo]);
        last  = PetscMax(last, B->j[hi - 1]);
      }
    }
  base = first >> 6;
  if (last - 64 * base >= s->span && u * HYB_WIDE >= B->n) {
    s->span = B->n;
    PetscCall(HybColSetCreate(&s->mm->work, s->span, &s->bits));
  }
  if (last - 64 * base < s->span) {
    *bin = HYB_DENSE;
    PetscCall(HybColListReserve(&s->mm->work, &s->list, PetscMin(u, (PetscCount)last - first + 1)));
    if (s->bptr)
      HybCollectCompressed(&s->bits, A->i[r + 1] - A->i[r], A->j + A->i[r], base, s->bptr, s->bword, s->bmask);
    else
      HybCollect(&s->bits, A->i[r + 1] - A->i[r], A->j + A->i[r], A->j + A->nnz, base, B->i, B->j);
    *count = HybTake(&s->bits, 64 * base, last - 64 * base, HybColListEnd(&s->list));
  } else if (u <= HYB_HASH_MAX) {
    *bin = HYB_HASHED;
    PetscCall(HybColListReserve(&s->mm->work, &s->list, u));
    PetscCall(HybHashRow(s, r, (PetscInt)u, HybColListEnd(&s->list), count));
  } else {
    PetscInt *list;

    *bin = HYB_MERGED;
    PetscCall(HybMergeRow(s, r, &list, count));
    PetscCall(HybColListReserve(&s->mm->work, &s->list, *count));
    memcpy(HybColListEnd(&s->list), list, (size_t)*count * sizeof(PetscInt));
    PetscCall(HybArenaFree(&s->mm->work, &list));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are looked at together, so that those to be sorted fill the lanes of a network */
typedef struct {
  PetscInt first, nrows;
  /* of rows that are sorted: where, and how many columns */
  PetscInt     *scratch, *slot[HYB_WINDOW], count[HYB_WINDOW];
  unsigned char bin[HYB_WINDOW];
} HybWindow;

/* The bins of a window's rows, of which the sorted ones are made at once; HYB_DENSE: or hashed or merged */
static void HybWindowSort(HybSymbolic *s, HybWindow *w)
{
  const HybCSR *A    = s->A;
  PetscInt     *free = w->scratch, queue[4][HYB_LANES];
  int           nqueue[4];

  for (int q = 0; q < 4; q++) nqueue[q] = 0;
  for (PetscInt k = 0; k < w->nrows; k++) {
    const PetscInt   r = w->first + k;
    const PetscCount u = s->mm->rowproducts[r];

    w->slot[k] = NULL;
    if (!u)
      w->bin[k] = HYB_EMPTY;
    else if (A->i[r + 1] - A->i[r] == 1)
      w->bin[k] = HYB_COPIED;
    else if (r && HybSamePattern(A, r - 1, r))
      w->bin[k] = HYB_REPEATED;
    /* a network for those takes longer */
    else if (u > HYB_SORT_MAX || (u > HYB_SORT_FEW && s->mm->stats.products < 1024))
      w->bin[k] = HYB_DENSE;
    else {
      const int q = HybSortSize(u);

      w->bin[k]  = HYB_SORTED;
      w->slot[k] = free;
      free += u;
      queue[q][nqueue[q]++] = k;
    }
    for (int q = 0; q < 4; q++) {
      if (nqueue[q] == HYB_LANES || (nqueue[q] && k == w->nrows - 1)) {
        PetscInt rows[HYB_LANES], count[HYB_LANES], *slot[HYB_LANES];

        for (int v = 0; v < nqueue[q]; v++) {
          rows[v] = w->first + queue[q][v];
          slot[v] = w->slot[queue[q][v]];
        }
        HybSortRows(s, q, nqueue[q], rows, slot, count);
        for (int v = 0; v < nqueue[q]; v++) w->count[queue[q][v]] = count[v];
        nqueue[q] = 0;
      }
    }
  }
}

/* A window's rows go to the end of the list, the others than sorted ones being made now. *previous: the row before, of
 *nprevious columns. rows: of each bin, counted. */
static PetscErrorCode HybWindowGather(HybSymbolic *s, const HybWindow *w, PetscInt **previous, PetscInt *nprevious, PetscCount rows[], HybCSR *C)
{
  const HybCSR *A = s->A, *B = s->B;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < w->nrows; k++) {
    const PetscInt  r = w->first + k;
    const PetscInt *source;
    PetscInt        n = 0;
    int             b = w->bin[k];

    if (b == HYB_EMPTY) {
      rows[b]++;
      *nprevious  = 0;
      C->i[r + 1] = (PetscInt)C->nnz;
      continue;
    }
    if (b == HYB_DENSE)
      PetscCall(HybAppendRow(s, r, &n, &b));
    else {
      if (b == HYB_COPIED) {
        source = B->j + B->i[A->j[A->i[r]]];
        n      = (PetscInt)s->mm->rowproducts[r];
      } else if (b == HYB_REPEATED) {
        source = *previous;
        n      = *nprevious;
      } else {
        source = w->slot[k];
        n      = w->count[k];
      }
      PetscCall(HybColListReserve(&s->mm->work, &s->list, n));
      memcpy(HybColListEnd(&s->list), source, (size_t)n * sizeof(PetscInt));
    }
    *previous  = HybColListEnd(&s->list);
    *nprevious = n;
    s->list.tail->used += n;
    C->nnz += n;
    rows[b]++;
    /* not one column more is gathered than could be kept */
    if (C->nnz > (PetscCount)PETSC_MAX_INT) PetscCall(HybSpGEMMCheckCount(&s->mm->exec, A, B, C->nnz, PETSC_TRUE));
    C->i[r + 1] = (PetscInt)C->nnz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_Binned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybSymbolic s;
  HybWindow   w;
  PetscInt   *previous = NULL, nprevious = 0;
  PetscCount  rows[HYB_NBINS] = {0};
  PetscInt    lanes[HYB_SORT_MAX * HYB_LANES] __attribute__((aligned(64))); /* a vector within one cache line */

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&s, sizeof(s)));
  s.A  = A;
  s.B  = B;
  s.mm = mm;
  HybColListInit(&s.list, mm->stats.products);
  s.span  = HybDenseSpan(mm, B->n);
  s.lanes = lanes;
  if (mm->stats.maxrow > HYB_SORT_FEW) PetscCall(HybColSetCreate(&mm->work, s.span, &s.bits));
  PetscCall(HybCompress(&s));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, PetscMin(mm->stats.products, (PetscCount)PetscMin(HYB_WINDOW, A->m) * HYB_SORT_MAX), sizeof(PetscInt), &w.scratch));
  PetscCall(HybArenaAlloc(out, mm->exec.result, (PetscCount)A->m + 1, sizeof(PetscInt), &C->i));
  C->i[0] = 0;
  C->nnz  = 0;
  for (PetscCount start = 0; start < A->m; start += HYB_WINDOW) {
    w.first = (PetscInt)start;
    w.nrows = (PetscInt)PetscMin(HYB_WINDOW, A->m - start);
    HybWindowSort(&s, &w);
    PetscCall(HybWindowGather(&s, &w, &previous, &nprevious, rows, C));
  }
  for (int b = 0; b < HYB_NBINS; b++) {
    if (rows[b]) PetscCall(HybCountersSet(&mm->counters, HybBinNames[b], rows[b]));
  }
  if (s.growths) PetscCall(HybCountersSet(&mm->counters, "growths", s.growths));
  /* what only the pattern needed goes before C->j comes */
  PetscCall(HybArenaFree(&mm->work, &s.bptr, &s.bword, &s.bmask));
  PetscCall(HybArenaAlloc(out, mm->exec.result, C->nnz, sizeof(PetscInt), &C->j));
  PetscCall(HybColListMove(&mm->work, &s.list, C->j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* does the next row share the walk of row r? */
static inline PetscBool HybShares(const HybCSR *A, PetscInt r, PetscInt span)
{
  return (PetscBool)(span <= HYB_GROUP_SPAN && r + 1 < A->m && HybSamePattern(A, r, r + 1));
}

/* Rows from r on, one by one, until one comes that is better computed otherwise or needs a longer accumulator: that row
   is returned */
static HYB_MULTIVERSION PetscInt HybRunDense(PetscInt r, const HybCSR *A, const HybCSR *B, HybCSR *C, HybScalar *acc, PetscCount size)
{
  const PetscInt *restrict const ai = A->i, *restrict const aj = A->j, *restrict const bi = B->i, *restrict const bj = B->j, *restrict const ci = C->i, *restrict const cj = C->j, m = A->m;
  const PetscInt *const ahead        = aj + A->nnz;
  const HybScalar *restrict const aa = A->a, *restrict const ba = B->a;
  HybScalar *restrict const ca = C->a;

  for (; r < m; r++) {
    const PetscInt klo = ai[r], khi = ai[r + 1], lo = ci[r], hi = ci[r + 1];

    if (lo == hi) continue;
    if (khi - klo == 1) {
      const HybScalar x                 = aa[klo];
      const HybScalar *restrict const y = ba + bi[aj[klo]];

      for (PetscInt t = lo; t < hi; t++) ca[t] = x * y[t - lo];
    } else {
      const PetscInt base = cj[lo], span = cj[hi - 1] - base + 1;
      HybScalar *restrict shifted;

      if (span > size || HybShares(A, r, span)) return r;
      shifted = acc - base;
      for (PetscInt k = klo; k < khi; k++) {
        const HybScalar x   = aa[k];
        const PetscInt  end = bi[aj[k] + 1];

        HybAhead(aj + k, ahead, bi, bj, ba);
        for (PetscInt l = bi[aj[k]]; l < end; l++) shifted[bj[l]] += x * ba[l];
      }
      for (PetscInt t = lo; t < hi; t++) {
        ca[t]          = shifted[cj[t]];
        shifted[cj[t]] = HYB_NEUTRAL;
      }
    }
  }
  return r;
}

#if !PetscDefined(USE_COMPLEX)
/* one value of each row of a group */
typedef PetscScalar HybGroupVector __attribute__((vector_size(HYB_GROUP * sizeof(PetscScalar)), aligned(sizeof(PetscScalar)), may_alias));
#endif

/* nrows rows of equal pattern: their accumulators lie side by side. A lane without a row computes what nobody reads. */
static HYB_MULTIVERSION void HybRowsDense(PetscInt nrows, PetscInt len, const PetscInt *cols, const HybScalar *const *a, const PetscInt *restrict bi, const PetscInt *restrict bj, const HybScalar *restrict ba, PetscInt base, HybScalar *restrict acc, PetscInt n, const PetscInt *restrict cj, HybScalar *restrict ca)
{
  HybScalar *const shifted = acc - (PetscCount)HYB_GROUP * base;

  for (PetscInt k = 0; k < len; k++) {
    const PetscInt hi = bi[cols[k] + 1];
#if PetscDefined(USE_COMPLEX)
    HybScalar x[HYB_GROUP];

    for (int q = 0; q < HYB_GROUP; q++) x[q] = a[q][k];
    for (PetscInt l = bi[cols[k]]; l < hi; l++) {
      for (int q = 0; q < HYB_GROUP; q++) shifted[(PetscCount)HYB_GROUP * bj[l] + q] += x[q] * ba[l];
    }
#else
    HybGroupVector x;

    for (int q = 0; q < HYB_GROUP; q++) x[q] = a[q][k];
    for (PetscInt l = bi[cols[k]]; l < hi; l++) *(HybGroupVector *)(shifted + (PetscCount)HYB_GROUP * bj[l]) += x * ba[l];
#endif
  }
  for (PetscInt t = 0; t < n; t++) {
    HybScalar *restrict p = shifted + (PetscCount)HYB_GROUP * cj[t];

    for (PetscInt q = 0; q < nrows; q++) ca[(PetscCount)q * n + t] = p[q];
    for (int q = 0; q < HYB_GROUP; q++) p[q] = HYB_NEUTRAL;
  }
}

/* wide windows: the place of a column from a table */
static PetscErrorCode HybRowHashed(HybSpGEMM *mm, HybHash *hash, PetscInt **place, const HybCSR *A, const HybCSR *B, PetscInt r, PetscInt n, const PetscInt *cj, HybScalar *ca)
{
  const PetscInt before = hash->allocated;

  PetscFunctionBegin;
  PetscCall(HybHashReset(&mm->work, hash, n));
  if (hash->allocated > before) {
    PetscCall(HybArenaFree(&mm->work, place));
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, hash->allocated, sizeof(PetscInt), place));
  }
  for (PetscInt t = 0; t < n; t++) {
    PetscInt p = HybHashSlot(hash, cj[t]);

    while (hash->key[p] >= 0) p = (p + 1) & (hash->size - 1);
    hash->key[p] = cj[t];
    (*place)[p]  = t;
    ca[t]        = HYB_NEUTRAL;
  }
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    const HybScalar x = A->a[k];

    HybAhead(A->j + k, A->j + A->nnz, B->i, B->j, B->a);
    for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) {
      PetscInt p = HybHashSlot(hash, B->j[l]);

      while (hash->key[p] != B->j[l]) p = (p + 1) & (hash->size - 1);
      ca[(*place)[p]] += x * B->a[l];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  HybScalar *block, *acc; /* acc: block, from a cache line's start on; or few */
  PetscCount size;
  HybScalar  few[HYB_FEW]; /* what a small product needs is sooner computed than allocated */
} HybAccumulator;

static PetscErrorCode HybAccumulatorGrow(HybArena *work, PetscCount n, HybAccumulator *s)
{
  PetscFunctionBegin;
  if (n > s->size) {
    PetscCall(HybArenaFree(work, &s->block));
    s->size = 0;
    s->acc  = s->few;
    if (n > HYB_FEW) {
      PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n + 64 / (PetscCount)sizeof(HybScalar), sizeof(HybScalar), &s->block));
      s->acc = s->block + (64 - (uintptr_t)s->block % 64) % 64 / sizeof(HybScalar);
    }
    for (PetscCount c = 0; c < n; c++) s->acc[c] = HYB_NEUTRAL;
    s->size = n;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_Binned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const PetscInt most = HybDenseSpan(mm, C->n);
  HybAccumulator acc;
  HybHash        hash  = {NULL, 0, 0};
  PetscInt      *place = NULL;

  PetscFunctionBegin;
  acc.block = acc.acc = NULL;
  acc.size            = 0;
  for (PetscInt r = 0;;) {
    const PetscInt *cj;
    PetscInt        n, span;

    r = HybRunDense(r, A, B, C, acc.acc, acc.size);
    if (r == A->m) break;
    n    = C->i[r + 1] - C->i[r];
    cj   = C->j + C->i[r];
    span = cj[n - 1] - cj[0] + 1;
    if (HybShares(A, r, span)) {
      const HybScalar *a[HYB_GROUP];
      PetscInt         nrows = 2;

      while (nrows < HYB_GROUP && r + nrows < A->m && HybSamePattern(A, r, r + nrows)) nrows++;
      for (PetscInt q = 0; q < HYB_GROUP; q++) a[q] = A->a + A->i[r + PetscMin(q, nrows - 1)];
      /* room doubles, so that it is cleared but a few times */
      if (HYB_GROUP * (PetscCount)span > acc.size) PetscCall(HybAccumulatorGrow(&mm->work, HYB_GROUP * PetscMin(2 * (PetscCount)span, C->n), &acc));
      HybRowsDense(nrows, A->i[r + 1] - A->i[r], A->j + A->i[r], a, B->i, B->j, B->a, cj[0], acc.acc, n, cj, C->a + C->i[r]);
      r += nrows;
    } else if (span <= most || (PetscCount)n * HYB_WIDE >= C->n) {
      PetscCall(HybAccumulatorGrow(&mm->work, PetscMin(2 * (PetscCount)span, C->n), &acc));
    } else {
      PetscCall(HybRowHashed(mm, &hash, &place, A, B, r, n, cj, C->a + C->i[r]));
      r++;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpGEMMMethod HybSpGEMM_Binned = {
  .name     = "binned",
  .symbolic = HybSpGEMMSymbolic_Binned,
  .numeric  = HybSpGEMMNumeric_Binned,
};
