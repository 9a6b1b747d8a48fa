/*
  binned.cu: SpGEMM method "binned", bhSPARSE on the device.

  Idea. No single way to gather a row's products is best for all lengths. An upper bound of each row (its number of
  products) puts it into a bin, and each group of bins has its own kernel:

    empty        nothing to do
    single       one product: copied                                                    a thread a row
    heap         2 to 8, 16, 32 products: a heap of (column, product) in shared memory;
                 equal columns meet at its root and are fused as they leave             a thread a row
    bitonic      33 to 512: products expanded into shared memory, sorted by a bitonic
                 network, runs of equal columns added up (expand, sort, compress)       a warp or a block a row
    merge        longer: the row's list of columns found so far is kept sorted. A batch of products, several
                 rows of B, whose columns are sorted, or a piece of a long one, is looked up in the list by
                 bisection, and what is new is squeezed together by a scan and merged in. Values come
                 afterwards: each product is added at the place of its column in C's row, found by
                 bisection                                                               a warp or a block a row

  The lengths of rows of the merge group cannot be foreseen (compression), so their lists grow: a warp's has
  BINNED_SHORT entries, in shared memory, that of a row with many products, or of one that has overflowed, BINNED_LIST
  and a block; a row that overflows that one as well starts again in a workspace four times as large, and so on
  ("growths"), which grows in place: addresses are reserved once for the longest lists possible, and each round puts
  memory behind as many of them as it needs. Where the count is known, C's own place is the list.

    symbolic   bins by upper bound; count each bin; growth rounds, if any row overflowed; scan; columns and values
               (two synchronisations, three with growth)
    numeric    values alone

  All groups order products by (column, A's entry), and add them in that order, the first one as it is: results have the
  same bits in every run and in every group.

  Memory beside C: the orders of rows; a workspace of at most 4 bytes for each upper bound of the overflowing rows in
  flight, only while they are counted.
  Complexity: heap and bitonic O(p log p) and O(p log^2 p) for p products; merge O(p (log^2 threads + log list) +
  batches * list) / threads a row, and a row has p / threads batches, or as many as A has entries where those of B are
  long.

  Reference: Liu, Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
  processors, JPDC 85 (2015).
*/
#include "../spgemm/operands.cuh"
#include "../structure/rowops.cuh"
#include "../device/hybgroup.cuh"
#include "../plan/bins.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

#define BINNED_BINS 9
enum {
  BINNED_EMPTY,
  BINNED_SINGLE,
  BINNED_HEAP8,
  BINNED_HEAP16,
  BINNED_HEAP32,
  BINNED_BITONIC128,
  BINNED_BITONIC512,
  BINNED_MERGE,
  BINNED_LONG
};
static const PetscCount  BinnedLimit[BINNED_BINS - 1] = {0, 1, 8, 16, 32, 128, 512, 8192};
static const char *const BinnedNames[BINNED_BINS]     = {"rows empty", "rows single", "rows heap 8", "rows heap 16", "rows heap 32", "rows bitonic 128", "rows bitonic 512", "rows merge", "rows merge long"};

#define BINNED_THREADS 256  /* of a long row of the merge group */
#define BINNED_SHORT   1024 /* entries of a warp's list */
#define BINNED_LIST    8192 /* entries that a block's list starts with */
#define BINNED_FLIGHT  512  /* rows whose lists have overflowed and that are in flight at once */
#define BINNED_FEW     4096 /* blocks for rows whose number is not known yet and that are few, if any */

struct BinnedArgs {
  const PetscInt  *ai, *aj, *bi, *bj;
  const HybScalar *aa, *ba;
  const PetscInt  *order, *binptr; /* rows order[binptr[0]] .. order[binptr[1]-1] */
  PetscInt        *count;          /* counting, or */
  const PetscInt  *ci;             /* filling */
  PetscInt        *cj;
  HybScalar       *ca; /* NULL: columns only */
  int              columns;
  /* the merge group */
  const PetscInt *rows, *nrows; /* rows that overflowed before; NULL: the bin */
  PetscInt       *over, *nover; /* rows that overflow now */
  PetscInt       *list;         /* workspace: capacity entries a block; NULL: shared memory */
  PetscInt        capacity;
};

__global__ void __launch_bounds__(256) BinnedSingle(BinnedArgs x)
{
  const PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (q >= x.binptr[1]) return;
  const PetscInt row = x.order[q];
  if (x.count) {
    x.count[row] = 1;
    return;
  }
  for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
    const PetscInt p = x.bi[x.aj[k]];

    if (p < x.bi[x.aj[k] + 1]) {
      if (x.columns) x.cj[x.ci[row]] = x.bj[p];
      if (x.ca) x.ca[x.ci[row]] = HybMul(x.aa[k], x.ba[p]);
    }
  }
}

/* entry e of a heap or of a list of products lies at [e*128]: threads do not meet in banks */
#define BINNED_AT(a, e) (a)[(e)*128]

template <int SIZE>
__global__ void __launch_bounds__(128) BinnedHeap(BinnedArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned long long, shared);
  unsigned long long *heap  = shared + threadIdx.x;
  HybScalar          *value = (HybScalar *)(shared + 128 * SIZE) + threadIdx.x;
  const PetscCount    q     = x.binptr[0] + (PetscCount)blockIdx.x * 128 + threadIdx.x;

  if (q >= x.binptr[1]) return;
  const PetscInt row = x.order[q];
  int            n = 0, out = 0;

  /* (column, product): products of one column leave in A's order */
  for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
    const PetscInt c = x.aj[k];

    for (PetscInt p = x.bi[c]; p < x.bi[c + 1]; p++) {
      const unsigned long long key = (unsigned long long)x.bj[p] << 8 | (unsigned)n;
      int                      e   = n++;

      if (x.ca) BINNED_AT(value, e) = HybMul(x.aa[k], x.ba[p]);
      for (; e > 0 && key < BINNED_AT(heap, (e - 1) / 2); e = (e - 1) / 2) BINNED_AT(heap, e) = BINNED_AT(heap, (e - 1) / 2);
      BINNED_AT(heap, e) = key;
    }
  }
  {
    const PetscInt at   = x.count ? 0 : x.ci[row];
    PetscInt       last = -1;
    HybScalar      sum  = HybScalar();

    while (n > 0) {
      const unsigned long long root = BINNED_AT(heap, 0), key = BINNED_AT(heap, n - 1);
      const PetscInt           col = (PetscInt)(root >> 8);
      int                      e   = 0;

      /* the last entry sinks from the root */
      n--;
      for (;;) {
        int child = 2 * e + 1;

        if (child >= n) break;
        if (child + 1 < n && BINNED_AT(heap, child + 1) < BINNED_AT(heap, child)) child++;
        if (key <= BINNED_AT(heap, child)) break;
        BINNED_AT(heap, e) = BINNED_AT(heap, child);
        e                  = child;
      }
      if (n > 0) BINNED_AT(heap, e) = key;
      if (col != last) {
        if (last >= 0 && x.ca) x.ca[at + out - 1] = sum;
        if (x.columns) x.cj[at + out] = col;
        if (x.ca) sum = BINNED_AT(value, (int)(root & 255));
        out++;
        last = col;
      } else if (x.ca)
        sum = sum + BINNED_AT(value, (int)(root & 255));
    }
    if (last >= 0 && x.ca) x.ca[at + out - 1] = sum;
  }
  if (x.count) x.count[row] = out;
}

/* expand, sort, compress */
template <int N, int SIZE>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) BinnedBitonic(BinnedArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned long long, shared);
  HYB_SHARED(int, scratch, HYB_WARP);
  unsigned long long *key   = shared + (size_t)G::index() * SIZE;
  HybScalar          *value = (HybScalar *)(shared + (size_t)G::GROUPS * SIZE) + (size_t)G::index() * SIZE;

  for (PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < x.binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt row = x.order[q];
    int            n = 0, out = 0;

    for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
      const PetscInt c = x.aj[k], begin = x.bi[c], len = x.bi[c + 1] - begin;

      for (PetscInt p = G::rank(); p < len; p += N) {
        key[n + p] = (unsigned long long)x.bj[begin + p] << 16 | (unsigned)(n + p);
        if (x.ca) value[n + p] = HybMul(x.aa[k], x.ba[begin + p]);
      }
      n += (int)len;
    }
    G::sync();
    HybGroupSort<N>(key, (unsigned)n);
    for (int e0 = 0; e0 < n; e0 += N) {
      const int e    = e0 + G::rank();
      const int head = e < n && (e == 0 || key[e] >> 16 != key[e - 1] >> 16);
      int       total;
      const int at = out + G::exclusiveSum(head, scratch, &total);

      if (head && !x.count) {
        if (x.columns) x.cj[x.ci[row] + at] = (PetscInt)(key[e] >> 16);
        if (x.ca) {
          HybScalar sum = value[key[e] & 0xffff];

          for (int f = e + 1; f < n && key[f] >> 16 == key[e] >> 16; f++) sum = sum + value[key[f] & 0xffff];
          x.ca[x.ci[row] + at] = sum;
        }
      }
      out += total;
    }
    if (x.count && G::rank() == 0) x.count[row] = out;
    G::sync();
  }
}

/* A batch of the merge group by N threads: whole rows of B of so many entries together, or so much of one */
template <int N>
struct BinnedBatch {
  static constexpr int EACH  = N == HYB_WARP ? 2 : sizeof(PetscInt) > 4 ? 4
                                                                        : 8;
  static constexpr int PIECE = N * EACH, ROWS = N == HYB_WARP ? N : PIECE;
  /* shared memory: of N entries of A, product q of one is entry from + q of B, and its last one is before end; then of
     the batch */
  PetscInt *from, *end, *column, *scratch;
};

/* sorts the columns of a warp's lanes, of which n are less than PETSC_MAX_INT, and all others that */
static __device__ __forceinline__ PetscInt BinnedSort(PetscInt column, int n)
{
  for (int k = 2; k < 2 * n; k <<= 1) {
    for (int j = k >> 1; j > 0; j >>= 1) {
      const PetscInt other = HybShflXor(HYB_FULL_MASK, column, j);

      column = ((HybLane() & j) == 0) == ((HybLane() & k) == 0) ? HybMin()(column, other) : HybMax()(column, other);
    }
  }
  return column;
}

/*
  Products q to stop - 1 of a chunk, of entries e to last - 1 of A or a piece of entry e: their columns in ascending
  order, entry u N + rank of them in column[u]; PETSC_MAX_INT behind the last one and instead of those that are there
  already.
*/
template <int N>
static __device__ __forceinline__ void BinnedGather(const BinnedArgs &x, const BinnedBatch<N> &s, PetscInt q, PetscInt stop, PetscInt e, PetscInt last, PetscInt column[BinnedBatch<N>::EACH])
{
  using G         = HybGroup<N>;
  const int  rank = G::rank(), n = (int)(stop - q);
  const auto fetch = [&](int p) { return x.bj[s.from[e + RowLowerBound(s.end + e, 0, last - e, q + p + 1)] + q + p]; };

  if (s.end[e] >= stop) {
#pragma unroll
    for (int u = 0; u < BinnedBatch<N>::EACH; u++) column[u] = u * N + rank < n ? x.bj[s.from[e] + q + u * N + rank] : PETSC_MAX_INT;
  } else if constexpr (N == HYB_WARP) {
#pragma unroll
    for (int u = 1; u < BinnedBatch<N>::EACH; u++) column[u] = PETSC_MAX_INT;
    column[0] = BinnedSort(rank < n ? fetch(rank) : PETSC_MAX_INT, n);

    const PetscInt before = HybShflUp(HYB_FULL_MASK, column[0], 1);

    if (rank && before == column[0]) column[0] = PETSC_MAX_INT;
  } else {
    for (int p = rank; p < n; p += N) s.column[p] = fetch(p);
    G::sync();
    HybGroupSort<N>(s.column, (unsigned)n);
#pragma unroll
    for (int u = 0; u < BinnedBatch<N>::EACH; u++) {
      const int p = u * N + rank;

      column[u] = p < n && (p == 0 || s.column[p - 1] != s.column[p]) ? s.column[p] : PETSC_MAX_INT;
    }
    G::sync();
  }
}

/* merges the columns of a batch, n of them, into the list; false where that overflows */
template <int N>
static __device__ __forceinline__ bool BinnedInsert(const BinnedBatch<N> &s, int n, const PetscInt column[BinnedBatch<N>::EACH], PetscInt *list, PetscInt capacity, PetscInt *length)
{
  using G            = HybGroup<N>;
  constexpr int EACH = BinnedBatch<N>::EACH;
  PetscInt      at[EACH], place[EACH], total = 0, old = *length;

#pragma unroll
  for (int u = 0; u < EACH; u++) {
    place[u] = -1;
    if (u * N < n) {
      PetscInt here;

      at[u]                = column[u] < PETSC_MAX_INT ? RowLowerBound(list, 0, old, column[u]) : 0;
      const bool     fresh = column[u] < PETSC_MAX_INT && (at[u] == old || list[at[u]] != column[u]);
      const PetscInt k     = total + G::exclusiveSum((PetscInt)fresh, s.scratch, &here);

      if (fresh) place[u] = k;
      total += here;
    }
  }
  if (!total) return true;
  if (old + total > capacity) return false;
#pragma unroll
  for (int u = 0; u < EACH; u++) {
    if (place[u] >= 0) s.column[place[u]] = column[u];
  }
  G::sync();
  /* the list moves apart, from its end; what lies below the first new column stays */
  for (PetscInt e1 = old; e1 > 0 && list[e1 - 1] > s.column[0]; e1 -= N) {
    const PetscInt e     = e1 - N + G::rank();
    PetscInt       moved = 0, below = 0;

    if (e >= 0) {
      moved = list[e];
      below = RowLowerBound(s.column, 0, total, moved);
    }
    G::sync();
    if (below) list[e + below] = moved;
    G::sync();
  }
#pragma unroll
  for (int u = 0; u < EACH; u++) {
    if (place[u] >= 0) list[at[u] + place[u]] = column[u];
  }
  *length = old + total;
  G::sync();
  return true;
}

/* The columns of a row of C, by batches of products, into a list; false where that overflows. The products of a chunk
   of N entries of A are fewer than PetscInt can count: they are of different rows of B. */
template <int N>
static __device__ __forceinline__ bool BinnedMergeRow(const BinnedArgs &x, PetscInt row, PetscInt *list, PetscInt capacity, const BinnedBatch<N> &s, PetscInt *length)
{
  using G             = HybGroup<N>;
  const int      rank = G::rank();
  const PetscInt aend = x.ai[row + 1];

  *length = 0;
  for (PetscInt k0 = x.ai[row]; k0 < aend; k0 += HybMin()(aend - k0, (PetscInt)N)) {
    const PetscInt entries = HybMin()(aend - k0, (PetscInt)N);
    PetscInt       begin = 0, len = 0, all;

    if (rank < entries) {
      const PetscInt c = x.aj[k0 + rank];

      begin = x.bi[c];
      len   = x.bi[c + 1] - begin;
    }
    const PetscInt before = G::exclusiveSum(len, s.scratch, &all);

    s.from[rank] = begin - before;
    s.end[rank]  = before + len;
    G::sync();
    /* e: the entry of A that the batch begins with */
    for (PetscInt q = 0, e = 0; q < all;) {
      PetscInt column[BinnedBatch<N>::EACH], last, stop;

      while (s.end[e] <= q) e++;
      last = e + RowLowerBound(s.end + e, 0, entries - e, all - q < BinnedBatch<N>::ROWS ? all + 1 : q + BinnedBatch<N>::ROWS + 1);
      stop = last > e ? s.end[last - 1] : s.end[e] - q < BinnedBatch<N>::PIECE ? s.end[e]
                                                                               : q + BinnedBatch<N>::PIECE;
      BinnedGather<N>(x, s, q, stop, e, last, column);
      if (!BinnedInsert<N>(s, (int)(stop - q), column, list, capacity, length)) return false;
      q = stop;
      /* all of C's columns, where their number is known */
      if (!x.count && *length == capacity) all = 0;
    }
    G::sync();
    if (!x.count && *length == capacity) break;
  }
  return true;
}

/* N threads a row: its count, or its columns. A list of x.capacity entries in shared memory, or in x.list; a block's
   columns are made in C */
template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS, N > HYB_WARP ? 4 : 12) BinnedMerge(BinnedArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(PetscInt, shared);
  HYB_SHARED(PetscInt, from, G::THREADS);
  HYB_SHARED(PetscInt, end, G::THREADS);
  HYB_SHARED(PetscInt, column, G::GROUPS * BinnedBatch<N>::PIECE);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  const BinnedBatch<N> s     = {from + G::index() * N, end + G::index() * N, column + G::index() * BinnedBatch<N>::PIECE, scratch};
  const PetscInt       first = x.rows ? 0 : x.binptr[0], last = x.rows ? *x.nrows : x.binptr[1];
  PetscInt *const      list = x.list ? x.list + (PetscCount)blockIdx.x * x.capacity : shared + (size_t)G::index() * x.capacity;

  for (PetscCount q = first + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < last; q += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt row = x.rows ? x.rows[q] : x.order[q];
    PetscInt       n;

    if (x.count) {
      const bool done = BinnedMergeRow<N>(x, row, list, x.capacity, s, &n);

      if (G::rank() == 0 && done) x.count[row] = n;
      if (G::rank() == 0 && !done) x.over[HybAtomicAdd(x.nover, 1)] = row;
    } else {
      PetscInt *const to   = x.cj + x.ci[row];
      const PetscInt  most = x.ci[row + 1] - x.ci[row];

      if (N > HYB_WARP)
        (void)BinnedMergeRow<N>(x, row, to, most, s, &n);
      else if (most <= x.capacity) { /* longer ones are a block's */
        (void)BinnedMergeRow<N>(x, row, list, most, s, &n);
        for (PetscInt e = G::rank(); e < n; e += N) to[e] = list[e];
      }
    }
    G::sync();
  }
}

/* The values of rows whose columns are known: a row of B, whose entries have different places, after the other */
template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) BinnedValues(BinnedArgs x)
{
  using G = HybGroup<N>;

  for (PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < x.binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt        row = x.order[q], aend = x.ai[row + 1], n = x.ci[row + 1] - x.ci[row];
    const PetscInt *const columns = x.cj + x.ci[row];
    HybScalar *const      sum     = x.ca + x.ci[row];

    for (PetscInt e = G::rank(); e < n; e += N) sum[e] = HybNegativeZero();
    G::sync();
    for (PetscInt k = x.ai[row]; k < aend; k++) {
      const PetscInt  c = x.aj[k], end = x.bi[c + 1];
      const HybScalar value = x.aa[k];

      for (PetscInt p = x.bi[c] + G::rank(); p < end; p += N) {
        const PetscInt at = RowLowerBound(columns, 0, n, x.bj[p]);

        sum[at] = HybMulAdd(value, x.ba[p], sum[at]);
      }
      G::sync();
    }
  }
}

typedef struct {
  PetscInt *order, *binptr;
  PetscInt  hostbinptr[BINNED_BINS + 1];
  int       lanes; /* across a row of B, of a mean length */
  /* during a symbolic phase: rows that a warp's list does not hold (NULL: it holds all), how many, and that on the host
     once it is known */
  PetscInt *beyond, *nbeyond, hostbeyond;
} Binned;

/* a bin of the merge group: counts, or columns (x.columns) and values, or values; rows: as many as there can be */
static PetscErrorCode BinnedMergeBin(const HybExec *exec, const Binned *b, int bin, PetscCount rows, BinnedArgs x)
{
  PetscFunctionBegin;
  if (x.count || x.columns) {
    BinnedArgs y    = x;
    PetscCount more = rows;

    if (bin == BINNED_MERGE) {
      y.over     = b->beyond;
      y.nover    = b->nbeyond;
      y.capacity = BINNED_SHORT;
      HYB_LAUNCH((BinnedMerge<HYB_WARP>), PetscMin(HybBlocks(rows, HybGroup<HYB_WARP>::GROUPS), 65536), HybGroup<HYB_WARP>::THREADS, HybGroup<HYB_WARP>::GROUPS * BINNED_SHORT * sizeof(PetscInt), exec->stream, y);
      y       = x;
      y.rows  = b->beyond;
      y.nrows = b->nbeyond;
      more    = x.count ? PetscMin(rows, BINNED_FEW) : b->hostbeyond;
    }
    y.capacity = BINNED_LIST;
    if (bin != BINNED_MERGE || b->beyond) HYB_LAUNCH((BinnedMerge<BINNED_THREADS>), PetscMin(more, 65536), BINNED_THREADS, x.count ? BINNED_LIST * sizeof(PetscInt) : 0, exec->stream, y);
  }
  if (!x.count && x.ca) {
    PetscCall(HybDispatch(bin == BINNED_MERGE ? b->lanes : BINNED_THREADS, HybCases<8, 16, HYB_WARP, BINNED_THREADS>(), [&](auto N) {
      HYB_LAUNCH((BinnedValues<N>), PetscMin(HybBlocks(rows, HybGroup<N>::GROUPS), 65536), HybGroup<N>::THREADS, 0, exec->stream, x);
      return PETSC_SUCCESS;
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* every bin once: counts (x.count), or fills */
static PetscErrorCode BinnedRun(HybSpGEMM *mm, const Binned *b, BinnedArgs x, bool known)
{
  const HybExec *exec = &mm->exec;
  const size_t   pair = sizeof(unsigned long long) + sizeof(HybScalar);

  PetscFunctionBegin;
  x.order = b->order;
  for (int bin = BINNED_SINGLE; bin < BINNED_BINS; bin++) {
    /* before the host knows the bins: as many rows as can be in this one */
    const PetscCount least = BinnedLimit[bin - 1] + 1;
    const PetscCount rows  = known ? b->hostbinptr[bin + 1] - b->hostbinptr[bin] : mm->stats.maxrow < least ? 0
                                                                                                            : PetscMin(mm->stats.products / least, (PetscCount)b->hostbinptr[BINNED_BINS]);

    x.binptr = b->binptr + bin;
    switch (bin) {
    case BINNED_SINGLE:
      HYB_LAUNCH(BinnedSingle, HybBlocks(rows, 256), 256, 0, exec->stream, x);
      break;
    case BINNED_HEAP8:
      HYB_LAUNCH((BinnedHeap<8>), HybBlocks(rows, 128), 128, 128 * 8 * pair, exec->stream, x);
      break;
    case BINNED_HEAP16:
      HYB_LAUNCH((BinnedHeap<16>), HybBlocks(rows, 128), 128, 128 * 16 * pair, exec->stream, x);
      break;
    case BINNED_HEAP32:
      HYB_LAUNCH((BinnedHeap<32>), HybBlocks(rows, 128), 128, 128 * 32 * pair, exec->stream, x);
      break;
    case BINNED_BITONIC128:
      HYB_LAUNCH((BinnedBitonic<32, 128>), PetscMin(HybBlocks(rows, 4), 65536), 128, 4 * 128 * pair, exec->stream, x);
      break;
    case BINNED_BITONIC512:
      HYB_LAUNCH((BinnedBitonic<128, 512>), PetscMin(rows, 65536), 128, 512 * pair, exec->stream, x);
      break;
    default:
      if (rows) PetscCall(BinnedMergeBin(exec, b, bin, rows, x));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each round takes the rows that overflowed in the one before, in lists four times as long, fewer blocks at a time.
   counted: where the number of rows that overflowed is, nover, which are in x->over. */
static PetscErrorCode BinnedGrow(HybSpGEMM *mm, PetscInt nover, PetscCount longest, const PetscInt *counted, BinnedArgs *x, PetscCount *growths)
{
  const HybExec *exec = &mm->exec;
  size_t         spare;
  PetscInt      *next, *numbers, *list;
  PetscCount     capacity = BINNED_LIST, grown = 0, most;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, nover, sizeof(PetscInt), &next));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 64, sizeof(PetscInt), &numbers));
  /* addresses for all that can be needed; memory is put behind them round by round, at no time more than the
     longest lists in flight take */
  PetscCall(HybMemorySpare(exec, &spare));
  most = PetscMax(longest, PetscMin(PetscMin((PetscCount)nover, BINNED_FLIGHT) * longest, (PetscCount)(spare / 4 / sizeof(PetscInt))));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_GROWING, most, sizeof(PetscInt), &list));
  x->nrows = counted;
  x->rows  = x->over;
  x->over  = next;
  while (capacity < longest) {
    PetscCount blocks;
    PetscInt  *swap = (PetscInt *)x->rows;

    capacity    = PetscMin(4 * capacity, longest);
    blocks      = PetscMin(PetscMin((PetscCount)nover, BINNED_FLIGHT), most / capacity);
    x->nover    = numbers + *growths;
    x->capacity = (PetscInt)capacity;
    x->list     = list;
    if (blocks * capacity > grown) {
      grown = blocks * capacity;
      PetscCall(HybArenaGrow(&mm->work, list, grown, sizeof(PetscInt)));
    }
    HYB_LAUNCH((BinnedMerge<BINNED_THREADS>), blocks, BINNED_THREADS, 0, exec->stream, *x);
    x->rows  = x->over;
    x->nrows = x->nover;
    x->over  = swap;
    (*growths)++;
  }
  PetscCall(HybCountersSet(&mm->counters, "entries grown", grown));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_BinnedCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec   *exec    = &mm->exec;
  const PetscInt   m       = A->m;
  const PetscCount longest = PetscMin(mm->stats.maxrow, (PetscCount)B->n);
  PetscInt        *count, *over = NULL, *head, *counters;
  PetscInt         bring[BINNED_BINS + 3];
  PetscCount       growths = 0;
  Binned          *b;
  BinnedArgs       x;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*b), &b));
  PetscCall(PetscMemzero(b, sizeof(*b)));
  mm->data                   = b;
  b->hostbinptr[BINNED_BINS] = m;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, m, sizeof(PetscInt), &b->order));
  /* the bins' offsets, then the numbers of rows that overflowed, of warps' and of blocks' lists: one copy */
  PetscCall(HybArenaCalloc(&mm->keep, HYB_MEM_DEVICE, BINNED_BINS + 3, sizeof(PetscInt), &head));
  b->binptr  = head;
  b->nbeyond = head + BINNED_BINS + 1;
  b->lanes   = HybLeastCase((int)PetscMin(mm->stats.products / PetscMax(1, A->nnz), HYB_WARP), HybCases<8, 16, HYB_WARP>());
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 2 * BINNED_BINS, sizeof(PetscInt), &counters));
  PetscCall(HybPlanBinsAnyOrder(exec, m, mm->rowproducts, BINNED_BINS, BinnedLimit, counters, b->order, b->binptr));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &count));
  if (longest > BINNED_SHORT) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, PetscMin((PetscCount)m, mm->stats.products / BINNED_SHORT) + 1, sizeof(PetscInt), &b->beyond));
  if (longest > BINNED_LIST) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, PetscMin((PetscCount)m, mm->stats.products / BINNED_LIST) + 1, sizeof(PetscInt), &over));
  HybSpGEMMOperands(A, B, &x);
  x.count = count;
  x.over  = over;
  x.nover = head + BINNED_BINS + 2;
  x.aa = x.ba = NULL;
  PetscCall(BinnedRun(mm, b, x, false));
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)m + 1, sizeof(PetscInt), &C->i));
  if (longest > BINNED_LIST) {
    PetscCall(exec->backend->copy(exec, bring, head, sizeof(bring), HYB_COPY_DEVICE_TO_HOST));
    if (bring[BINNED_BINS + 2]) PetscCall(BinnedGrow(mm, bring[BINNED_BINS + 2], longest, x.nover, &x, &growths));
  }
  {
    PetscCount *total, n[2];
    PetscInt   *ints;

    /* C's size, and the bins if they are not known yet, in one copy */
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, 1 + (BINNED_BINS + 2), sizeof(PetscCount), &total));
    ints = (PetscInt *)(total + 1);
    PetscCall(HybScanCounts(exec, &mm->work, m, count, C->i, total, NULL));
    PetscCall(exec->backend->copy(exec, ints, head, (BINNED_BINS + 2) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
    {
      PetscCount both[1 + BINNED_BINS + 2];

      PetscCall(exec->backend->copy(exec, both, total, sizeof(PetscCount) + (BINNED_BINS + 2) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
      n[0] = both[0];
      memcpy(bring, both + 1, (BINNED_BINS + 2) * sizeof(PetscInt));
      memcpy(b->hostbinptr, bring, (BINNED_BINS + 1) * sizeof(PetscInt));
      b->hostbeyond = bring[BINNED_BINS + 1];
    }
    /* memory that grew is given back now that nothing is on its way: later it would have to be waited for once more */
    if (x.list) PetscCall(HybArenaFree(&mm->work, &x.list));
    C->nnz = n[0];
  }
  for (int bin = 0; bin < BINNED_BINS; bin++) PetscCall(HybCountersSet(&mm->counters, BinnedNames[bin], b->hostbinptr[bin + 1] - b->hostbinptr[bin]));
  PetscCall(HybCountersSet(&mm->counters, "growths", growths));
  PetscCall(HybArenaReset(&mm->work));
  mm->rowproducts = NULL;
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  HybSpGEMMOperands(A, B, &x);
  x.ci      = C->i;
  x.cj      = C->j;
  x.ca      = C->a;
  x.columns = 1;
  PetscCall(BinnedRun(mm, b, x, true));
  PetscCall(HybArenaFree(&mm->keep, &b->beyond));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_BinnedCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  BinnedArgs x;

  PetscFunctionBegin;
  HybSpGEMMOperands(A, B, &x);
  x.ci = C->i;
  x.cj = C->j;
  x.ca = C->a;
  PetscCall(BinnedRun(mm, (const Binned *)mm->data, x, true));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_BinnedCUDA;
const HybSpGEMMMethod        HybSpGEMM_BinnedCUDA = {
         .name     = "binned",
         .symbolic = HybSpGEMMSymbolic_BinnedCUDA,
         .numeric  = HybSpGEMMNumeric_BinnedCUDA,
};
