/*
  hashrows.cu: SpGEMM by rows, each row's pattern in a table of (block of 32 columns, bit mask), each row's values at
  their final places.

  Idea. A table whose entries are single columns costs a probe for each product and a sort of the row at the end. Here
  an entry is a block of 32 neighbouring columns with a mask of those present. Three things follow.
    - B is compressed once into (block, mask) pairs, so that the symbolic pass inserts one pair for several neighbouring
      columns (a 27-point row is nine pairs), by atomicOr on integers in any order.
    - No entry is ever sorted: the place of column c in its row of C is
          prefix(block of c) + popcount(mask & bits below c),
      and prefix needs the order of the blocks only, of which there are several times fewer.
    - The numeric pass adds every product at its final place: a group of lanes goes across a row of B, A's entries one
      after the other, plain additions, hence the same bits in every run. Accumulators start from -0.0, the neutral
      element of addition, so the first product stands as it is.
  Where the row's blocks span few more words than it has blocks, the table is direct (a bitmap of the span): no probing,
  and prefix is a scan. Elsewhere it is a hash table with linear probing, and prefix comes from counting (few blocks) or
  from a bitonic sort of the blocks (many).

    symbolic   compress B                              if it is read often enough
               u[r] = pairs that row r will insert      upper bound of its blocks
               rows into bins by u
               count: insert, count new bits            -> nnz, number of blocks and span of each row -> kind and size of its numeric table; its blocks and masks as a list
               scan counts; rows into bins by table size          (one synchronisation)
               columns: from the lists, prefix by their order; lists are given back, and compressed B if there were
               lists of all rows values, as in a numeric phase; rows without a list (long ones, and what found no room)
               insert again on the way and write their columns
    numeric    the table from C's own columns (prefix is a by-product), values

  Groups of threads by the size of the table: sub-warps of 4 to 32 lanes up to 4 KiB, unless the row of A is so long
  that taking its entries one after the other keeps a sub-warp too long, blocks up to what a block may have (227 KiB);
  small products take several bins in one launch; rows whose table fits but whose accumulators do not add straight into
  C's values ("spilled"); rows whose table does not fit have it in global memory ("global"), a bitmap of the row's span
  for each resident block.

  A list is a few times shorter than what was inserted for it (3 to 20 on the matrices of the benchmarks), and C's
  values are taken when the lists have been given back: they cost no memory beside C. Room for them is taken when all
  that is known of C is how many nonzeros it has at least; rows take theirs by atomics, from one of 16 parts. Where some
  rows are much longer than others these decide how long it takes, and lists only add to it (H200, first product without
  and with: wiki-Vote 0.46 and 0.52 ms, uk-2007-05_100000 5.5 and 6.3 where long rows had them too; lattice 8^4 1.41 and
  1.14, cage11 0.46 and 0.42, hand_elasticity 0.69 and 0.53): none there.

  Memory beside C: 8 bytes for each entry of B (compressed B, only where the rows of B are read four times on average)
  and lists until C's columns are written, per-row arrays of 12 bytes that stay for the numeric phase, and the global
  tables of rows that need them. Nothing grows with the number of products.
  Complexity: one insertion for each pair, one addition for each product; blocks*log^2(blocks) a row at worst where the
  table is hashed.

  References: Gustavson, Two fast algorithms for sparse matrices, TOMS 4 (1978); Nagasaka, Nukada, Matsuoka,
  High-performance and memory-saving sparse general matrix-matrix multiplication for NVIDIA Pascal GPU, ICPP 2017 (hash
  tables by bin); Deveci, Trott, Rajamanickam, Multi-threaded sparse matrix-matrix multiplication for many-core and GPU
  architectures, Parallel Computing 78 (2018) (compressed symbolic pass).
*/
#include "hashrows.cuh"
#include "../plan/bins.cuh"
#include "../device/hybgroup.cuh"

#define HASH_EMPTY    0xffffffffu
#define HASH_SPILL    (1 << 29)       /* cost of a row whose table alone fits shared memory */
#define HASH_GLOBAL   ((1 << 29) + 1) /* cost of a row whose table does not */
#define HASH_LONGROW  2048            /* rows of B longer than this are compressed by a block */
#define HASH_SUBWARP  4096            /* bytes of the largest table that a sub-warp takes */
#define HASH_STAGE    64              /* entries of A that a block stages in shared memory */
#define HASH_SMALL    5               /* bins of the numeric pass up to this one can be taken by one launch */
#define HASH_SMALLMEM 16384           /* whose blocks have 128 threads and so many bytes of shared memory */
#define HASH_MERGE    32768           /* blocks up to which it is one launch: beyond, each bin fills the card by itself, with less shared memory a block */
#define HASH_ASK      (1 << 20)       /* entries of B from which the card is asked whether it has the memory for pairs: the question takes longer than a small product */
#define HASH_POOLS    16              /* parts of the room for lists, each with a counter of its own */
#define HASH_REGULAR  16              /* times the products of a mean row that the longest may have where rows are listed */
#define HASH_LONGLIST 256             /* rows of A with more entries get a block, as their entries are added one after the other */
#if defined(PETSC_USE_COMPLEX)
  #define HASH_BATCH 2 /* entries of A whose rows of B are on their way together */
#else
  #define HASH_BATCH 4
#endif

/* bins of the count: upper bounds of inserted pairs, slots of the table, threads a row */
#define HASH_COUNT_BINS 7
static const PetscCount HashCountLimit[HASH_COUNT_BINS - 1] = {0, 48, 192, 384, 1536, 6144};

/* bins of the numeric pass: bytes of shared memory a row */
static const PetscCount HashLimit[HYB_HASH_BINS - 1] = {0, 512, 1024, 2048, 4096, 16384, 49152, HASH_SPILL - 1, HASH_SPILL};

/* a block of 32 columns of B's row and which of them are present */
struct alignas(8) HashPair {
  unsigned block, mask;
};

/* log2 of the lanes that take a row whose table needs bin b: those of a mean row of B, no fewer than keep a
   multiprocessor full with tables of this size, and no more than twice as many, as rows with small tables meet short
   rows of B */
static __host__ __device__ __forceinline__ int HashGroupLanes(int b, int mean)
{
  const int least = b + 1, most = b + 2 < 5 ? b + 2 : 5;

  return mean < least ? least : mean > most ? most
                                            : mean;
}

struct HashArgs {
  const PetscInt  *ai, *aj, *bi, *bj;
  const HybScalar *aa, *ba;
  const HashPair  *pairs; /* of row r of B: from pairs[bi[r]], npairs[r] of them; NULL: B is not compressed */
  const PetscInt  *npairs;
  const PetscInt  *order, *binptr;             /* rows of this launch: order[binptr[0]] .. order[binptr[1]-1]; of the launches of many bins: of bin 0 */
  int              bytes;                      /* shared memory of a group */
  int              lanes;                      /* log2 of the lanes that take a row of B in unordered insertions, at most all of a group */
  int              grouplanes;                 /* numeric, many bins: log2 of the lanes across a row of B, at least */
  int              firstblock[HASH_SMALL + 1]; /* numeric, many bins: bin HASH_SMALL begins at block 0, bin HASH_SMALL-1 at firstblock[1], ... */
  /* the row's numeric table: first block and number of words (direct), or HASH_EMPTY and number of slots */
  unsigned *base, *size;
  /* count */
  const PetscCount *upper;
  PetscInt         *count, *need, *over; /* over[0]: rows left to global tables, the list follows */
  PetscInt          maxbytes;            /* of a block's table, for the choice of need */
  /* lists of what the count found: where (HASH_EMPTY: there was no room), twice the number of blocks and one more if
     they ascend */
  unsigned   *where, *listed;
  HashPair   *list;
  PetscCount *used, room; /* of each of HASH_POOLS parts */
  PetscCount *unlisted;   /* 1: there are rows without */
  /* fill and numeric */
  const PetscInt *ci;
  PetscInt       *cj;
  HybScalar      *ca;
  int             products, columns, values; /* table from the products (else from cj); write cj; compute ca */
  /* the plan of a numeric phase; in HashNumericRow(): places are to be found */
  PetscInt         *from, *off;
  const PetscCount *placeptr;
  unsigned short   *places;
  /* global tables: words a block */
  unsigned  *global;
  PetscCount globalwords;
};

template <typename G>
static __device__ __forceinline__ void HashFill(unsigned *p, unsigned n, unsigned v)
{
  /* p is aligned to 16 bytes, and room up to the next multiple of 4 words is ours */
  const unsigned      n4 = (n + 3) / 4;
  HybVec<unsigned, 4> q;

  q.v[0] = q.v[1] = q.v[2] = q.v[3] = v;
  for (unsigned k = (unsigned)G::rank(); k < n4; k += G::THREADS / G::GROUPS) HybStoreVec(p + 4 * k, q);
}

static __device__ __forceinline__ unsigned HashSlot(unsigned block, int shift)
{
  return (block * 2654435761u) >> shift;
}

/* the slot of a block, made if there is none */
static __device__ __forceinline__ unsigned HashInsert(unsigned *keys, unsigned block, int shift, unsigned wrap)
{
  for (unsigned h = HashSlot(block, shift);; h = (h + 1) & wrap) {
    unsigned k = *(volatile unsigned *)(keys + h);

    if (k == block) return h;
    if (k == HASH_EMPTY) {
      k = atomicCAS(keys + h, HASH_EMPTY, block);
      if (k == HASH_EMPTY || k == block) return h;
    }
  }
}

/* the slot of a block that is there */
static __device__ __forceinline__ unsigned HashFind(const unsigned *keys, unsigned block, int shift, unsigned wrap)
{
  unsigned h = HashSlot(block, shift);

  while (keys[h] != block) h = (h + 1) & wrap;
  return h;
}

/* log2 of slots for so many blocks: at most two thirds full, 16 at least */
static __device__ __forceinline__ int HashLogSlots(unsigned blocks)
{
  const unsigned want = blocks + blocks / 2;

  return want <= 16 ? 4 : 32 - __clz((int)(want - 1));
}

/*
  Calls insert(block, mask) for every pair that the products of a row consist of, in any order: groups of 2^lanes lanes
  take two rows of B each, which are on their way together. Both cursors go on until the longer row ends, so that of the
  shorter one passes its end by as much. Without a sign they do not wrap: an offset and the length of a row together
  stay below 2^32 (HybCheckEntries()).
*/
template <typename G, int N, typename Insert>
static __device__ __forceinline__ void HashForEachPair(const HashArgs &x, PetscInt abegin, PetscInt aend, Insert insert)
{
  using Cursor          = typename std::make_unsigned<PetscInt>::type;
  const int      lanes  = HybMin()(x.lanes, HybLog2(N));
  const int      step   = 1 << lanes;
  const PetscInt stride = N >> lanes;

  for (PetscInt k = abegin + (G::rank() >> lanes); k < aend; k += 2 * stride) {
    const bool     two = k + stride < aend;
    const PetscInt c0 = x.aj[k], c1 = two ? x.aj[k + stride] : c0;
    Cursor         p0 = (Cursor)x.bi[c0], p1 = (Cursor)x.bi[c1], e0, e1;

    if (x.pairs) {
      e0 = p0 + (Cursor)x.npairs[c0];
      e1 = two ? p1 + (Cursor)x.npairs[c1] : 0;
    } else {
      e0 = (Cursor)x.bi[c0 + 1];
      e1 = two ? (Cursor)x.bi[c1 + 1] : 0;
    }
    p0 += (Cursor)(G::rank() & (step - 1));
    p1 += (Cursor)(G::rank() & (step - 1));
    if (x.pairs) {
      for (; p0 < e0 || p1 < e1; p0 += (Cursor)step, p1 += (Cursor)step) {
        HybVec<unsigned, 2> q0, q1;

        if (p0 < e0) q0 = HybLoadVec<2>(&x.pairs[p0].block);
        if (p1 < e1) q1 = HybLoadVec<2>(&x.pairs[p1].block);
        if (p0 < e0) insert(q0.v[0], q0.v[1]);
        if (p1 < e1) insert(q1.v[0], q1.v[1]);
      }
    } else {
      for (; p0 < e0 || p1 < e1; p0 += (Cursor)step, p1 += (Cursor)step) {
        PetscInt col0 = 0, col1 = 0;

        if (p0 < e0) col0 = x.bj[p0];
        if (p1 < e1) col1 = x.bj[p1];
        if (p0 < e0) insert((unsigned)(col0 >> 5), 1u << (col0 & 31));
        if (p1 < e1) insert((unsigned)(col1 >> 5), 1u << (col1 & 31));
      }
    }
  }
}

/*
  B by rows into pairs. The lane of a block's first column gathers the mask.
*/
template <typename G, int N>
static __device__ __forceinline__ void HashCompressRow(PetscInt row, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, HashPair *__restrict__ pairs, PetscInt *__restrict__ npairs, unsigned *scratch)
{
  const PetscInt begin = bi[row], end = bi[row + 1];
  unsigned       n = 0;

  for (PetscInt p0 = begin; p0 < end; p0 += N) {
    const PetscInt p     = p0 + G::rank();
    bool           head  = false;
    unsigned       block = 0, total, place;

    if (p < end) {
      block = (unsigned)(bj[p] >> 5);
      head  = p == begin || (unsigned)(bj[p - 1] >> 5) != block;
    }
    place = G::exclusiveSum(head ? 1u : 0u, scratch, &total);
    if (head) {
      unsigned mask = 0;

      for (PetscInt q = p; q < end && (unsigned)(bj[q] >> 5) == block; q++) mask |= 1u << (bj[q] & 31);
      pairs[begin + n + place] = {block, mask};
    }
    n += total;
  }
  if (G::rank() == 0) npairs[row] = (PetscInt)n;
}

template <int N>
__global__ void __launch_bounds__(128) HashCompressKernel(PetscInt m, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, HashPair *__restrict__ pairs, PetscInt *__restrict__ npairs, PetscInt *over)
{
  using G              = HybGroup<N>;
  const PetscCount row = (PetscCount)blockIdx.x * G::GROUPS + G::index();

  if (row >= m) return;
  if (bi[row + 1] - bi[row] > HASH_LONGROW) {
    /* no list: the products name no such row */
    if (G::rank() == 0 && over) over[1 + HybAtomicAdd(over, 1)] = (PetscInt)row;
    return;
  }
  HashCompressRow<G, N>((PetscInt)row, bi, bj, pairs, npairs, nullptr);
}

__global__ void __launch_bounds__(512) HashCompressLongKernel(const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, HashPair *__restrict__ pairs, PetscInt *__restrict__ npairs, const PetscInt *over)
{
  HYB_SHARED(unsigned, scratch, HYB_WARP);

  for (PetscInt q = (PetscInt)blockIdx.x; q < over[0]; q += (PetscInt)gridDim.x) HashCompressRow<HybGroup<512>, 512>(over[1 + q], bi, bj, pairs, npairs, scratch);
}

/*
  What a row's table holds, n words of masks behind so many of their blocks, or (0) the masks of neighbouring blocks
  from base on, as a list: so that the columns can be written without inserting again. Rows that find no room have none.
  What was taken is never given back: others may have taken what follows meanwhile.
*/
template <typename G, int N>
static __device__ __forceinline__ void HashKeep(const HashArgs &x, PetscInt row, const unsigned *table, unsigned masks, unsigned base, unsigned n, unsigned blocks, bool serves, unsigned *scratch)
{
  const unsigned pool = blockIdx.x & (HASH_POOLS - 1), each = ((n + N - 1) / N) | 1u;
  const unsigned begin = HybMin()((unsigned)G::rank() * each, n), end = HybMin()(begin + each, n);
  unsigned       at = 0, mine = 0;

  if (G::rank() == 0) {
    PetscCount *const used  = x.used + 4 * pool;
    PetscCount        first = x.room;

    if (serves && *(volatile PetscCount *)used + blocks <= x.room) first = HybAtomicAdd(used, (PetscCount)blocks);
    at = first + blocks <= x.room ? (unsigned)(pool * x.room + first) : HASH_EMPTY;
    if (at == HASH_EMPTY && !*(volatile PetscCount *)x.unlisted) (void)HybAtomicMax(x.unlisted, (PetscCount)1);
    x.where[row]  = at;
    x.listed[row] = 2 * blocks + (masks == 0);
  }
  at = G::reduce(at, scratch, HybMax());
  if (at == HASH_EMPTY) return;
  for (unsigned w = begin; w < end; w++) mine += table[masks + w] != 0;
  at += G::exclusiveSum(mine, scratch);
  for (unsigned w = begin; w < end; w++) {
    const unsigned mask = table[masks + w];

    if (mask) x.list[at++] = {masks ? table[w] : base + w, mask};
  }
}

/*
  Count of a row. table: capacity words, in shared memory or (MODE 1) in global memory.
*/
template <int N, int MODE>
static __device__ __forceinline__ void HashCountRow(const HashArgs &x, PetscInt row, unsigned *table, unsigned capacity, unsigned *scratch)
{
  using G               = HybGroup<N>;
  const PetscInt abegin = x.ai[row], aend = x.ai[row + 1];
  unsigned       lo = HASH_EMPTY, hi = 0, nnz = 0, blocks = 0, span, slots, masks = 0; /* masks begin behind so many keys */
  bool           serves = false;

  /* the blocks that the row spans */
  for (PetscInt k = abegin + G::rank(); k < aend; k += N) {
    const PetscInt c = x.aj[k], begin = x.bi[c], end = x.bi[c + 1];

    if (begin < end) {
      lo = HybMin()(lo, (unsigned)(x.bj[begin] >> 5));
      hi = HybMax()(hi, (unsigned)(x.bj[end - 1] >> 5));
    }
  }
  lo   = G::reduce(lo, scratch, HybMin());
  hi   = G::reduce(hi, scratch, HybMax());
  span = slots = hi - lo + 1;
  if (span <= capacity) {
    HashFill<G>(table, span, 0);
    G::sync();
    HashForEachPair<G, N>(x, abegin, aend, [&](unsigned block, unsigned mask) {
      const unsigned old = atomicOr(table + (block - lo), mask);

      nnz += __popc(mask & ~old);
      blocks += old == 0;
    });
  } else {
    const PetscCount u      = x.upper[row];
    const int        most   = 31 - __clz((int)(capacity / 2));
    unsigned        *maskof = table + (1u << most);
    int              logslots;
    unsigned         wrap;

    if (u > (PetscCount)3 << (most - 2)) {
      /* could fill more than three quarters of the slots: a bitmap in global memory */
      if (G::rank() == 0) x.over[1 + HybAtomicAdd(x.over, 1)] = row;
      return;
    }
    logslots        = HybMin()(HashLogSlots((unsigned)u), most);
    wrap            = (1u << logslots) - 1;
    const int shift = 32 - logslots;

    masks = 1u << most;
    slots = wrap + 1;
    HashFill<G>(table, wrap + 1, HASH_EMPTY);
    HashFill<G>(maskof, wrap + 1, 0);
    G::sync();
    HashForEachPair<G, N>(x, abegin, aend, [&](unsigned block, unsigned mask) {
      const unsigned old = atomicOr(maskof + HashInsert(table, block, shift, wrap), mask);

      nnz += __popc(mask & ~old);
      blocks += old == 0;
    });
  }
  nnz    = G::reduce(nnz, scratch, HybSum());
  blocks = G::reduce(blocks, scratch, HybSum());
  if (G::rank() == 0) {
    /* the numeric table: direct where scanning the span is cheaper than ordering the blocks, in shared memory where it
       fits */
    const PetscCount acc    = (PetscCount)nnz * (sizeof(HybScalar) > 8 ? sizeof(HybScalar) : 8);
    const PetscCount pad    = 64; /* alignment of the three parts */
    const int        log    = HashLogSlots(blocks);
    const PetscCount direct = (PetscCount)span * 8, hashed = ((PetscCount)12 << log);
    bool             isdirect;
    PetscCount       bytes, need;

    /* a sub-warp's table is worth more than the ordering of a few blocks saved: it keeps many rows in flight */
    if (acc + direct + pad <= HASH_SUBWARP)
      isdirect = span <= 6 * (PetscCount)blocks + 16;
    else if (acc + hashed + pad <= HASH_SUBWARP)
      isdirect = false;
    else
      isdirect = span <= 32 * (PetscCount)blocks + 64;
    if (isdirect && direct + pad > x.maxbytes && hashed + 8 * (PetscCount)blocks + pad <= x.maxbytes) isdirect = false;
    bytes = isdirect ? direct : hashed;
    if (acc + bytes + pad <= x.maxbytes)
      need = acc + bytes + pad;
    else if (bytes + (isdirect ? 0 : 8 * (PetscCount)blocks) + pad <= x.maxbytes)
      need = HASH_SPILL;
    else {
      need     = HASH_GLOBAL;
      isdirect = true;
    }
    /* a sub-warp adds entry after entry of A, a block does so faster */
    if (need <= HASH_SUBWARP && aend - abegin > HASH_LONGLIST) need = HASH_SUBWARP + 1;
    x.count[row] = (PetscInt)nnz;
    x.need[row]  = (PetscInt)need;
    x.base[row]  = isdirect ? lo : HASH_EMPTY;
    x.size[row]  = isdirect ? span : 1u << log;
    serves       = need <= HASH_SMALLMEM; /* longer rows have many products for each block */
  }
  G::sync();
  if (x.where) {
    HashKeep<G, N>(x, row, table, masks, lo, slots, blocks, serves, scratch);
    G::sync();
  }
}

/* MODE 0: table in shared memory; 1: in global memory, rows from the list of those left over */
template <int N, int MODE>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) HashCountKernel(HashArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  unsigned *const table    = MODE ? x.global + (PetscCount)blockIdx.x * x.globalwords : (unsigned *)(shared + (size_t)G::index() * x.bytes);
  const unsigned  capacity = MODE ? (unsigned)x.globalwords : (unsigned)x.bytes / 4; /* words */
  const PetscInt  first = MODE ? 0 : x.binptr[0], last = MODE ? x.over[0] : x.binptr[1];

  for (PetscCount q = first + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < last; q += (PetscCount)gridDim.x * G::GROUPS) HashCountRow<N, MODE>(x, MODE ? x.over[1 + q] : x.order[q], table, capacity, scratch);
}

/* task t of bin b for sub-warps of N lanes: whatever its bin, a warp keeps to its own part of shared memory */
template <int N>
static __device__ __forceinline__ void HashCountTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared, unsigned *scratch)
{
  using G                = HybGroup<N>;
  const int        bytes = HASH_SMALLMEM / G::GROUPS;
  const PetscCount q     = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashCountRow<N, 0>(x, x.order[q], (unsigned *)(shared + (size_t)G::index() * bytes), (unsigned)bytes / 4, scratch);
}

/* bins 1 to 4 at once, the longest rows first */
__global__ void __launch_bounds__(128, 7) HashCountSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  const PetscCount n4 = x.binptr[5] - x.binptr[4], n3 = (x.binptr[4] - x.binptr[3] + 3) / 4, n2 = (x.binptr[3] - x.binptr[2] + 7) / 8, n1 = (x.binptr[2] - x.binptr[1] + 15) / 16;

  for (PetscCount t = (PetscCount)blockIdx.x; t < n4 + n3 + n2 + n1; t += (PetscCount)gridDim.x) {
    if (t < n4)
      HashCountTask<128>(x, 4, t, shared, scratch);
    else if (t < n4 + n3)
      HashCountTask<32>(x, 3, t - n4, shared, scratch);
    else if (t < n4 + n3 + n2)
      HashCountTask<16>(x, 2, t - n4 - n3, shared, scratch);
    else
      HashCountTask<8>(x, 1, t - n4 - n3 - n2, shared, scratch);
  }
}

/* prefix of a direct table: each thread scans neighbouring words, an odd number of them so that banks do not collide */
template <typename G, int N>
static __device__ __forceinline__ void HashScanWords(const unsigned *mask, unsigned *prefix, unsigned words, unsigned *scratch)
{
  const unsigned each  = ((words + N - 1) / N) | 1u;
  const unsigned begin = HybMin()((unsigned)G::rank() * each, words), end = HybMin()(begin + each, words);
  unsigned       sum = 0;

  for (unsigned w = begin; w < end; w++) sum += __popc(mask[w]);
  sum = G::exclusiveSum(sum, scratch);
  for (unsigned w = begin; w < end; w++) {
    prefix[w] = sum;
    sum += __popc(mask[w]);
  }
}

/* prefix of a hashed table: bits in all blocks that come before; list is room for 8 bytes a block */
template <typename G, int N>
static __device__ __forceinline__ void HashOrderSlots(const unsigned *keys, const unsigned *mask, unsigned *prefix, unsigned slots, unsigned long long *list, unsigned *scratch)
{
  unsigned blocks = 0;

  /* list: block << 32 | slot << 6 | bits of the mask */
  for (unsigned s0 = 0; s0 < slots; s0 += N) {
    const unsigned s    = s0 + (unsigned)G::rank();
    const bool     used = s < slots && keys[s] != HASH_EMPTY;
    unsigned       total;
    const unsigned place = blocks + G::exclusiveSum(used ? 1u : 0u, scratch, &total);

    if (used) list[place] = (unsigned long long)keys[s] << 32 | s << 6 | (unsigned)__popc(mask[s]);
    blocks += total;
  }
  G::sync();
  if (blocks <= 2 * HYB_WARP) {
    for (unsigned e = (unsigned)G::rank(); e < blocks; e += N) {
      const unsigned long long mine = list[e];
      unsigned                 sum  = 0;

      for (unsigned q = 0; q < blocks; q++) {
        const unsigned long long other = list[q];

        sum += other < mine ? (unsigned)other & 63u : 0u;
      }
      prefix[(unsigned)mine >> 6] = sum;
    }
  } else {
    const unsigned each  = ((blocks + N - 1) / N) | 1u;
    const unsigned begin = HybMin()((unsigned)G::rank() * each, blocks), end = HybMin()(begin + each, blocks);
    unsigned       sum = 0;

    HybGroupSort<N>(list, blocks);
    for (unsigned e = begin; e < end; e++) sum += (unsigned)list[e] & 63u;
    sum = G::exclusiveSum(sum, scratch);
    for (unsigned e = begin; e < end; e++) {
      prefix[(unsigned)list[e] >> 6] = sum;
      sum += (unsigned)list[e] & 63u;
    }
  }
}

struct HashTable {
  unsigned *mask, *prefix, *keys;
  unsigned  base, wrap;
  int       shift;
};

static __device__ __forceinline__ PetscInt HashPlace(const HashTable &t, PetscInt col)
{
  const unsigned block = (unsigned)(col >> 5);
  const unsigned s     = t.keys ? HashFind(t.keys, block, t.shift, t.wrap) : block - t.base;

  return (PetscInt)(t.prefix[s] + (unsigned)__popc(t.mask[s] & ((1u << (col & 31)) - 1u)));
}

/*
  The products of a row, added at their places: rows of B in the order of A's entries, the group's lanes across a row of
  B, which has each column once. What does not depend on the order is done for a batch of rows together: their entries
  are fetched and their places looked up, then they are added one after the other. Sub-warps, whose rows of B are often
  longer than they are wide, fetch two pieces of each row, and fewer rows.
*/
template <int N>
struct HashBatch {
  static constexpr int PIECES = N > 4 && N <= HYB_WARP ? 2 : 1;
  static constexpr int ROWS   = HASH_BATCH / PIECES;
  PetscInt             p[ROWS], end[ROWS], at[ROWS][PIECES]; /* at: a column, then its place */
  HybScalar            b[ROWS][PIECES];

  __device__ __forceinline__ void fetch(const HashArgs &x)
  {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
#pragma unroll
      for (int h = 0; h < PIECES; h++) {
        at[u][h] = 0;
        b[u][h]  = HybScalar();
        if (p[u] + h * N < end[u]) {
          at[u][h] = x.bj[p[u] + h * N];
          b[u][h]  = x.ba[p[u] + h * N];
        }
      }
    }
  }
  __device__ __forceinline__ void find(const HashTable &t)
  {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
#pragma unroll
      for (int h = 0; h < PIECES; h++) {
        if (p[u] + h * N < end[u]) at[u][h] = HashPlace(t, at[u][h]);
      }
    }
  }
  __device__ __forceinline__ void add(const HashArgs &x, const HashTable &t, int u, const HybScalar &av, HybScalar *acc) const
  {
#pragma unroll
    for (int h = 0; h < PIECES; h++) {
      if (p[u] + h * N < end[u]) acc[at[u][h]] = HybMulAdd(av, b[u][h], acc[at[u][h]]);
    }
    for (PetscInt q = p[u] + PIECES * N; q < end[u]; q += N) {
      const PetscInt place = HashPlace(t, x.bj[q]);

      acc[place] = HybMulAdd(av, x.ba[q], acc[place]);
    }
  }
};

template <typename G, int N>
static __device__ __forceinline__ void HashAccumulate(const HashArgs &x, const HashTable &t, PetscInt abegin, PetscInt aend, HybScalar *acc, PetscInt *stagebegin, PetscInt *stageend, HybScalar *stagevalue)
{
  constexpr int ROWS = HashBatch<N>::ROWS;

  if (G::SUBWARP) {
    for (PetscInt k = abegin; k < aend; k += ROWS) {
      HashBatch<N> now;
      HybScalar    av[ROWS];

#pragma unroll
      for (int u = 0; u < ROWS; u++) {
        now.p[u] = now.end[u] = 0;
        av[u]                 = HybScalar();
        if (k + u < aend) {
          const PetscInt c = x.aj[k + u];

          av[u]      = x.aa[k + u];
          now.p[u]   = x.bi[c] + G::rank();
          now.end[u] = x.bi[c + 1];
        }
      }
      now.fetch(x);
      now.find(t);
#pragma unroll
      for (int u = 0; u < ROWS; u++) {
        if (k + u < aend) {
          now.add(x, t, u, av[u], acc);
          G::sync();
        }
      }
    }
  } else {
    for (PetscInt k0 = abegin; k0 < aend; k0 += HASH_STAGE) {
      const int    n = (int)HybMin()((PetscInt)HASH_STAGE, aend - k0);
      HashBatch<N> now, next;

      for (int k = (int)threadIdx.x; k < n; k += N) {
        const PetscInt c = x.aj[k0 + k];

        stagebegin[k] = x.bi[c];
        stageend[k]   = x.bi[c + 1];
        stagevalue[k] = x.aa[k0 + k];
      }
      G::sync();
#pragma unroll
      for (int u = 0; u < ROWS; u++) {
        next.p[u]   = u < n ? stagebegin[u] + G::rank() : 0;
        next.end[u] = u < n ? stageend[u] : 0;
      }
      next.fetch(x);
      for (int k = 0; k < n; k += ROWS) {
        now = next;
        /* the next batch is on its way while this one is added */
#pragma unroll
        for (int u = 0; u < ROWS; u++) {
          const int e = k + ROWS + u;

          next.p[u]   = e < n ? stagebegin[e] + G::rank() : 0;
          next.end[u] = e < n ? stageend[e] : 0;
        }
        next.fetch(x);
        now.find(t);
#pragma unroll
        for (int u = 0; u < ROWS; u++) {
          if (k + u < n) {
            now.add(x, t, u, stagevalue[k + u], acc);
            G::sync();
          }
        }
      }
    }
  }
}

/* the row has its columns from its list */
static __device__ __forceinline__ bool HashListed(const HashArgs &x, PetscInt row)
{
  return x.where && x.where[row] != HASH_EMPTY;
}

/*
  Fill and numeric of a row. MODE 0: table and accumulators in shared memory; 1: accumulators are C's values; 2: the
  table in global memory as well.
*/
template <int N, int MODE>
static __device__ __forceinline__ void HashNumericRow(const HashArgs &x, PetscInt row, unsigned char *mine, unsigned *scratch, PetscInt *stagebegin, PetscInt *stageend, HybScalar *stagevalue)
{
  using G               = HybGroup<N>;
  const PetscInt abegin = x.ai[row], aend = x.ai[row + 1];
  const PetscInt cbegin = x.ci[row];
  const unsigned nnz    = (unsigned)(x.ci[row + 1] - cbegin);
  const unsigned size = x.size[row], words = (size + 3) & ~3u;
  HybScalar     *acc = MODE == 0 ? (HybScalar *)mine : x.ca + cbegin;
  HashTable      t;

  t.base   = x.base[row];
  t.wrap   = size - 1;
  t.shift  = __clz((int)t.wrap);
  t.mask   = MODE == 0 ? (unsigned *)(mine + (((size_t)nnz * (sizeof(HybScalar) > 8 ? sizeof(HybScalar) : 8) + 15) & ~(size_t)15)) : MODE == 1 ? (unsigned *)mine
                                                                                                                                               : x.global + (PetscCount)blockIdx.x * x.globalwords;
  t.prefix = t.mask + words;
  t.keys   = t.base == HASH_EMPTY ? t.prefix + words : nullptr;
  HashFill<G>(t.mask, size, 0);
  if (t.keys) HashFill<G>(t.keys, size, HASH_EMPTY);
  G::sync();
  if (x.products && !HashListed(x, row)) { /* no columns yet */
    if (t.keys)
      HashForEachPair<G, N>(x, abegin, aend, [&](unsigned block, unsigned mask) { atomicOr(t.mask + HashInsert(t.keys, block, t.shift, t.wrap), mask); });
    else
      HashForEachPair<G, N>(x, abegin, aend, [&](unsigned block, unsigned mask) { atomicOr(t.mask + (block - t.base), mask); });
    G::sync();
    /* the list of blocks lies where the accumulators will be */
    if (t.keys)
      HashOrderSlots<G, N>(t.keys, t.mask, t.prefix, size, MODE == 0 ? (unsigned long long *)mine : (unsigned long long *)(t.keys + words), scratch);
    else
      HashScanWords<G, N>(t.mask, t.prefix, size, scratch);
    G::sync();
    for (unsigned s = (unsigned)G::rank(); s < size; s += N) {
      unsigned mask = t.mask[s];

      if (mask) {
        const PetscInt col = (PetscInt)(t.keys ? t.keys[s] : t.base + s) << 5;
        PetscInt      *to  = x.cj + cbegin + t.prefix[s];

        for (; mask; mask &= mask - 1) *to++ = col + (__ffs((int)mask) - 1);
      }
    }
  } else {
    for (unsigned e = (unsigned)G::rank(); e < nnz; e += N) {
      const PetscInt col   = x.cj[cbegin + e];
      const unsigned block = (unsigned)(col >> 5);
      const unsigned s     = t.keys ? HashInsert(t.keys, block, t.shift, t.wrap) : block - t.base;

      atomicOr(t.mask + s, 1u << (col & 31));
      if (e == 0 || (unsigned)(x.cj[cbegin + e - 1] >> 5) != block) t.prefix[s] = e;
    }
  }
  G::sync();
  if (x.values) {
    for (unsigned e = (unsigned)G::rank(); e < nnz; e += N) acc[e] = HybNegativeZero();
    G::sync();
  }
  if (x.places) {
    const int             lanes = HybMin()(x.lanes, HybLog2(N));
    unsigned short *const to    = x.places + x.placeptr[row];

    for (PetscInt k = abegin + (G::rank() >> lanes); k < aend; k += N >> lanes) {
      const PetscInt begin = x.from[k], first = x.off[k], len = x.bi[x.aj[k] + 1] - begin;

      for (PetscInt p = G::rank() & ((1 << lanes) - 1); p < len; p += 1 << lanes) to[first + p] = (unsigned short)HashPlace(t, x.bj[begin + p]);
    }
  }
  if (x.values) {
    HashAccumulate<G, N>(x, t, abegin, aend, acc, stagebegin, stageend, stagevalue);
    if (MODE == 0) {
      for (unsigned e = (unsigned)G::rank(); e < nnz; e += N) x.ca[cbegin + e] = acc[e];
    }
  }
  G::sync();
}

template <int N, int MODE>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) HashNumericKernel(HashArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, stagebegin, G::SUBWARP ? 1 : HASH_STAGE);
  HYB_SHARED(PetscInt, stageend, G::SUBWARP ? 1 : HASH_STAGE);
  HYB_SHARED(HybScalar, stagevalue, G::SUBWARP ? 1 : HASH_STAGE);
  const PetscInt first = x.binptr[0], last = x.binptr[1];

  for (PetscCount q = first + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < last; q += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt row = x.order[q];

    if (!x.values && HashListed(x, row)) continue;
    HashNumericRow<N, MODE>(x, row, shared + (size_t)G::index() * x.bytes, scratch, stagebegin, stageend, stagevalue);
  }
}

template <int N>
static __device__ __forceinline__ void HashNumericTask(const HashArgs &x, int b, PetscCount t, int bytes, unsigned char *shared, unsigned *scratch, PetscInt *stagebegin, PetscInt *stageend, HybScalar *stagevalue)
{
  using G            = HybGroup<N>;
  const PetscCount q = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1] && (x.values || !HashListed(x, x.order[q]))) HashNumericRow<N, 0>(x, x.order[q], shared + (size_t)G::index() * bytes, scratch, stagebegin, stageend, stagevalue);
}

/* bins 1 to HASH_SMALL at once, a block for rows of one bin, the large tables first */
__global__ void __launch_bounds__(128, 8) HashNumericSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, stagebegin, HASH_STAGE);
  HYB_SHARED(PetscInt, stageend, HASH_STAGE);
  HYB_SHARED(HybScalar, stagevalue, HASH_STAGE);
  int b = HASH_SMALL;

  while (b > 1 && (int)blockIdx.x >= x.firstblock[HASH_SMALL + 1 - b]) b--;
  const PetscCount t = (PetscCount)blockIdx.x - x.firstblock[HASH_SMALL - b];

  if (b == HASH_SMALL)
    HashNumericTask<128>(x, b, t, HASH_SMALLMEM, shared, scratch, stagebegin, stageend, stagevalue);
  else {
    const int lanes = HashGroupLanes(b, x.grouplanes), bytes = 256 << b;

    if (lanes >= 5)
      HashNumericTask<32>(x, b, t, bytes, shared, scratch, stagebegin, stageend, stagevalue);
    else if (lanes == 4)
      HashNumericTask<16>(x, b, t, bytes, shared, scratch, stagebegin, stageend, stagevalue);
    else if (lanes == 3)
      HashNumericTask<8>(x, b, t, bytes, shared, scratch, stagebegin, stageend, stagevalue);
    else
      HashNumericTask<4>(x, b, t, bytes, shared, scratch, stagebegin, stageend, stagevalue);
  }
}

/* a list's columns, in ascending order; room: 8 bytes for each of its blocks, if they do not ascend */
template <int N>
static __device__ __forceinline__ void HashListRow(const HashArgs &x, PetscInt row, unsigned long long *room, unsigned *scratch)
{
  using G              = HybGroup<N>;
  const unsigned where = x.where[row], listed = x.listed[row], n = listed / 2;

  if (where == HASH_EMPTY) return;
  const HashPair *const list  = x.list + where;
  const auto            write = [&](HashPair p, unsigned at) {
    PetscInt *to = x.cj + x.ci[row] + at;

    for (unsigned mask = p.mask; mask; mask &= mask - 1) *to++ = ((PetscInt)p.block << 5) + (__ffs((int)mask) - 1);
  };
  if (listed & 1u) {
    unsigned before = 0;

    for (unsigned e0 = 0; e0 < n; e0 += N) {
      const unsigned e = e0 + (unsigned)G::rank();
      HashPair       p = {0, 0};
      unsigned       total;

      if (e < n) p = list[e];
      const unsigned at = before + G::exclusiveSum((unsigned)__popc(p.mask), scratch, &total);
      write(p, at);
      before += total;
    }
    return;
  }
  /* room: block << 32 | number << 6 | bits of the mask */
  for (unsigned e = (unsigned)G::rank(); e < n; e += N) room[e] = (unsigned long long)list[e].block << 32 | e << 6 | (unsigned)__popc(list[e].mask);
  G::sync();
  if (n <= 2 * HYB_WARP) {
    for (unsigned e = (unsigned)G::rank(); e < n; e += N) {
      const unsigned long long mine = room[e];
      unsigned                 sum  = 0;

      for (unsigned q = 0; q < n; q++) {
        const unsigned long long other = room[q];

        sum += other < mine ? (unsigned)other & 63u : 0u;
      }
      write(list[e], sum);
    }
  } else {
    const unsigned each  = ((n + N - 1) / N) | 1u;
    const unsigned begin = HybMin()((unsigned)G::rank() * each, n), end = HybMin()(begin + each, n);
    unsigned       sum = 0;

    HybGroupSort<N>(room, n);
    for (unsigned e = begin; e < end; e++) sum += (unsigned)room[e] & 63u;
    sum = G::exclusiveSum(sum, scratch);
    for (unsigned e = begin; e < end; e++) {
      write(list[(unsigned)room[e] >> 6], sum);
      sum += (unsigned)room[e] & 63u;
    }
  }
  G::sync();
}

template <int N>
static __device__ __forceinline__ void HashListTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared, unsigned *scratch)
{
  using G            = HybGroup<N>;
  const PetscCount q = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashListRow<N>(x, x.order[q], (unsigned long long *)(shared + (threadIdx.x & ~(unsigned)(N - 1)) * (HASH_SMALLMEM / 128)), scratch);
}

/* bins 1 to HASH_SMALL at once, as HashPlannedSmallKernel() */
__global__ void __launch_bounds__(128, 10) HashListSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  const PetscCount n5 = x.binptr[6] - x.binptr[5], n4 = (x.binptr[5] - x.binptr[3] + 3) / 4, n2 = (x.binptr[3] - x.binptr[2] + 7) / 8, n1 = (x.binptr[2] - x.binptr[1] + 15) / 16;

  for (PetscCount t = (PetscCount)blockIdx.x; t < n5 + n4 + n2 + n1; t += (PetscCount)gridDim.x) {
    if (t < n5)
      HashListTask<128>(x, 5, t, shared, scratch);
    else if (t < n5 + n4) {
      const PetscCount q = x.binptr[3] + (t - n5) * 4 + HybGroup<32>::index();

      if (q < x.binptr[5]) HashListRow<32>(x, x.order[q], (unsigned long long *)(shared + (threadIdx.x & ~31u) * (HASH_SMALLMEM / 128)), scratch);
    } else if (t < n5 + n4 + n2)
      HashListTask<16>(x, 2, t - n5 - n4, shared, scratch);
    else
      HashListTask<8>(x, 1, t - n5 - n4 - n2, shared, scratch);
  }
}

/*
  The numeric phase by a plan: where every product goes is stored (2 bytes each), and for each entry of A where its row
  of B begins and which product is its first (8 bytes). Nothing is looked up any more, B's columns are not read, and no
  load waits for more than one other.
*/
__global__ void __launch_bounds__(128) HashPlanEntries(PetscInt m, HashArgs x)
{
  const PetscCount row  = ((PetscCount)blockIdx.x * 128 + threadIdx.x) / 8;
  const int        lane = HybLane() & 7;

  if (row >= m) return;
  PetscInt before = 0;

  for (PetscInt k0 = x.ai[row]; k0 < x.ai[row + 1]; k0 += 8) {
    const PetscInt k     = k0 + lane;
    PetscInt       begin = 0, len = 0, total;

    if (k < x.ai[row + 1]) {
      begin = x.bi[x.aj[k]];
      len   = x.bi[x.aj[k] + 1] - begin;
    }
    const PetscInt at = before + HybSubwarpExclusiveSum<8>(len, &total);

    if (k < x.ai[row + 1]) {
      x.from[k] = begin;
      x.off[k]  = at;
    }
    before += total;
  }
}

/* bytes of the accumulators of each row */
__global__ void __launch_bounds__(256) HashPlanNeed(PetscInt m, const PetscInt *__restrict__ ci, PetscInt *__restrict__ need)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r < m) need[r] = (ci[r + 1] - ci[r]) * (PetscInt)sizeof(HybScalar);
}

template <int N>
static __device__ __forceinline__ void HashPlannedRow(const HashArgs &x, PetscInt row, HybScalar *acc)
{
  using G                            = HybGroup<N>;
  constexpr int               PIECES = G::SUBWARP ? 2 : 1; /* of a row of B that are fetched together */
  const PetscInt              abegin = x.ai[row], aend = x.ai[row + 1], cbegin = x.ci[row], nnz = x.ci[row + 1] - cbegin;
  const unsigned short *const places = x.places + x.placeptr[row];
  const PetscInt              total  = (PetscInt)(x.placeptr[row + 1] - x.placeptr[row]);

  for (PetscInt e = G::rank(); e < nnz; e += N) acc[e] = HybNegativeZero();
  G::sync();
  for (PetscInt k = abegin; k < aend; k += HASH_BATCH) {
    PetscInt  len[HASH_BATCH];
    int       at[HASH_BATCH][PIECES];
    HybScalar av[HASH_BATCH], b[HASH_BATCH][PIECES];

#pragma unroll
    for (int u = 0; u < HASH_BATCH; u++) {
      len[u] = 0;
      av[u]  = HybScalar();
#pragma unroll
      for (int h = 0; h < PIECES; h++) {
        at[u][h] = 0;
        b[u][h]  = HybScalar();
      }
      if (k + u < aend) {
        const PetscInt first = x.off[k + u];

        len[u] = (k + u + 1 < aend ? x.off[k + u + 1] : total) - first;
        av[u]  = x.aa[k + u];
#pragma unroll
        for (int h = 0; h < PIECES; h++) {
          if (G::rank() + h * N < len[u]) {
            at[u][h] = places[first + G::rank() + h * N];
            b[u][h]  = x.ba[x.from[k + u] + G::rank() + h * N];
          }
        }
      }
    }
#pragma unroll
    for (int u = 0; u < HASH_BATCH; u++) {
      if (k + u < aend) {
#pragma unroll
        for (int h = 0; h < PIECES; h++) {
          if (G::rank() + h * N < len[u]) acc[at[u][h]] = HybMulAdd(av[u], b[u][h], acc[at[u][h]]);
        }
        if (len[u] > PIECES * N) {
          const unsigned short *const to = places + x.off[k + u];
          const HybScalar *const      ba = x.ba + x.from[k + u];

          for (PetscInt p = G::rank() + PIECES * N; p < len[u]; p += N) {
            const int there = to[p];

            acc[there] = HybMulAdd(av[u], ba[p], acc[there]);
          }
        }
        G::sync();
      }
    }
  }
  for (PetscInt e = G::rank(); e < nnz; e += N) x.ca[cbegin + e] = acc[e];
  G::sync();
}

template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) HashPlannedKernel(HashArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(HybScalar, shared);

  for (PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < x.binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) HashPlannedRow<N>(x, x.order[q], shared);
}

template <int N>
static __device__ __forceinline__ void HashPlannedTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared)
{
  using G            = HybGroup<N>;
  const PetscCount q = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashPlannedRow<N>(x, x.order[q], (HybScalar *)shared);
}

/* Rows of bins 1 to HASH_SMALL, large ones first. Whatever its bin, a warp keeps to its own part of shared memory,
   which its groups share evenly: warps of a block go from bin to bin at different times. */
__global__ void __launch_bounds__(128, 6) HashPlannedSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  int        b     = HASH_SMALL;
  PetscCount begin = 0, end = x.binptr[b + 1] - x.binptr[b]; /* tasks of bin b */

  for (PetscCount t = (PetscCount)blockIdx.x;; t += (PetscCount)gridDim.x) {
    while (b > 1 && t >= end) {
      b--;
      begin            = end;
      const int groups = 128 >> HashGroupLanes(b, x.grouplanes);

      end += (x.binptr[b + 1] - x.binptr[b] + groups - 1) / groups;
    }
    if (t >= end) break;
    if (b == HASH_SMALL)
      HashPlannedTask<128>(x, b, t - begin, shared);
    else {
      const int      lanes = HashGroupLanes(b, x.grouplanes);
      unsigned char *part  = shared + (threadIdx.x >> lanes << lanes) * (HASH_SMALLMEM / 128);

      if (lanes >= 5)
        HashPlannedTask<32>(x, b, t - begin, part);
      else if (lanes == 4)
        HashPlannedTask<16>(x, b, t - begin, part);
      else if (lanes == 3)
        HashPlannedTask<8>(x, b, t - begin, part);
      else
        HashPlannedTask<4>(x, b, t - begin, part);
    }
  }
}

#define HASH_COUNT(N, MODE, grid, dynamic)   HYB_LAUNCH((HashCountKernel<N, MODE>), grid, HybGroup<N>::THREADS, dynamic, exec->stream, x)
#define HASH_NUMERIC(N, MODE, grid, dynamic) HYB_LAUNCH((HashNumericKernel<N, MODE>), grid, HybGroup<N>::THREADS, dynamic, exec->stream, x)

/* tables of so many words in global memory: one for each multiprocessor, fewer where they would take more than a
   sixteenth of free memory */
static PetscErrorCode HashGlobalTables(const HybExec *exec, HybArena *work, int multiprocessors, PetscCount words, PetscCount rows, HashArgs *x, PetscCount *blocks)
{
  HybMemoryReport report;

  PetscFunctionBegin;
  PetscCall(exec->backend->memory(&report));
  *blocks        = (PetscCount)(report.free_bytes / 16 / ((size_t)words * sizeof(unsigned)));
  *blocks        = PetscMax(1, PetscMin(*blocks, PetscMin(rows, (PetscCount)multiprocessors)));
  x->globalwords = words;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, *blocks * words, sizeof(unsigned), &x->global));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HashOperands(const HybCSR *A, const HybCSR *B, HashArgs *x)
{
  memset((void *)x, 0, sizeof(*x));
  x->ai = A->i;
  x->aj = A->j;
  x->aa = A->a;
  x->bi = B->i;
  x->bj = B->j;
  x->ba = B->a;
}

/* bins first to last of the fill or of the numeric pass; small: blocks of bins up to HASH_SMALL together, if they are
   to be one launch */
static PetscErrorCode HashRunBins(HybSpGEMM *mm, const HybExec *exec, const HybHashRows *hash, HashArgs x, int first, int last, PetscCount small)
{
  PetscFunctionBegin;
  if (small) {
    x.binptr = hash->binptr;
    HYB_LAUNCH(HashNumericSmallKernel, small, 128, HASH_SMALLMEM, exec->stream, x);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int b = last; b >= first; b--) {
    const PetscCount rows = hash->hostbinptr[b + 1] - hash->hostbinptr[b];
    PetscCount       blocks;

    if (!rows) continue;
    x.binptr = hash->binptr + b;
    x.bytes  = b < 7 ? (int)HashLimit[b] : (int)hash->maxbytes;
    if (b < HASH_SMALL) {
      const int lanes  = HashGroupLanes(b, hash->lanes);
      const int groups = 128 >> lanes;

      blocks = HybBlocks(rows, groups);
      switch (lanes) {
      case 2:
        HASH_NUMERIC(4, 0, blocks, groups * x.bytes);
        break;
      case 3:
        HASH_NUMERIC(8, 0, blocks, groups * x.bytes);
        break;
      case 4:
        HASH_NUMERIC(16, 0, blocks, groups * x.bytes);
        break;
      default:
        HASH_NUMERIC(32, 0, blocks, groups * x.bytes);
      }
    } else if (b == HASH_SMALL) {
      /* short rows of B leave a wide block idle */
      if (hash->mean <= 48)
        HASH_NUMERIC(64, 0, rows, x.bytes);
      else
        HASH_NUMERIC(128, 0, rows, x.bytes);
    } else if (b == 6)
      HASH_NUMERIC(256, 0, rows, x.bytes);
    else if (b == 7)
      HASH_NUMERIC(512, 0, rows, x.bytes);
    else if (b == 8)
      HASH_NUMERIC(512, 1, rows, x.bytes);
    else {
      PetscCall(HashGlobalTables(exec, &mm->work, hash->multiprocessors, 2 * ((hash->words + 3) & ~(PetscCount)3), rows, &x, &blocks));
      HASH_NUMERIC(1024, 2, blocks, 0);
      PetscCall(HybArenaFree(&mm->work, &x.global));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all bins of the fill or of the numeric pass. Large rows take long by themselves, so kernels of large bins run beside
   those of small ones. */
static PetscErrorCode HashRun(HybSpGEMM *mm, const HybHashRows *hash, HashArgs x)
{
  const HybExec *exec    = &mm->exec;
  const int      from[3] = {7, 6, 1}, to[3] = {8, 6, HASH_SMALL};
  PetscCount     small = 0;
  int            bins = 0, filled = 0, n = 0, group[3];
  HybExec        side[HYB_SIDE_STREAMS];
  PetscErrorCode ierr, first = PETSC_SUCCESS;

  PetscFunctionBegin;
  x.order      = hash->order;
  x.base       = hash->base;
  x.size       = hash->size;
  x.lanes      = hash->pairlanes;
  x.grouplanes = hash->lanes;
  for (int b = HASH_SMALL; b >= 1; b--) {
    const PetscCount rows = hash->hostbinptr[b + 1] - hash->hostbinptr[b];

    bins += rows > 0;
    small += HybBlocks(rows, b == HASH_SMALL ? 1 : 128 >> HashGroupLanes(b, hash->lanes));
    x.firstblock[HASH_SMALL + 1 - b] = (int)PetscMin(small, HASH_MERGE + 1);
  }
  if (bins <= 1 || small > HASH_MERGE) small = 0;
  /* tables in global memory come from the stream's own pool */
  PetscCall(HashRunBins(mm, exec, hash, x, 9, 9, 0));
  for (int k = 0; k < 3; k++) {
    if (hash->hostbinptr[to[k] + 1] > hash->hostbinptr[from[k]]) group[filled++] = k;
  }
  n = filled > 1 ? filled - 1 : 0;
  PetscCall(HybDeviceFork(exec, n, side));
  for (int k = 0; k < filled; k++) {
    ierr = HashRunBins(mm, k < n ? &side[k] : exec, hash, x, from[group[k]], to[group[k]], group[k] == 2 ? small : 0);
    if (!first) first = ierr;
  }
  ierr = HybDeviceJoin(exec, n);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B as pairs, where its rows are read often enough to pay for it and the memory is there */
static PetscErrorCode HashCompress(HybSpGEMM *mm, const HybCSR *B, HybHashRows *hash)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount mean = B->m ? B->nnz / B->m : 0;
  PetscInt        *over = NULL, *npairs;
  HashPair        *pairs;

  PetscFunctionBegin;
  if (mm->stats.products / 4 < B->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (B->nnz > HASH_ASK) {
    HybMemoryReport report;

    PetscCall(exec->backend->memory(&report));
    if ((size_t)B->nnz > report.free_bytes / 64) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, B->nnz * (PetscCount)sizeof(HashPair) + B->m * (PetscCount)sizeof(PetscInt), 1, &pairs));
  npairs = (PetscInt *)(pairs + B->nnz);
  if (mm->stats.maxbrow > HASH_LONGROW) {
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, B->nnz / HASH_LONGROW + 2, sizeof(PetscInt), &over));
    PetscCall(exec->backend->zero(exec, over, sizeof(PetscInt)));
  }
  if (mean <= 8)
    HYB_LAUNCH((HashCompressKernel<8>), HybBlocks(B->m, 16), 128, 0, exec->stream, B->m, B->i, B->j, pairs, npairs, over);
  else
    HYB_LAUNCH((HashCompressKernel<32>), HybBlocks(B->m, 4), 128, 0, exec->stream, B->m, B->i, B->j, pairs, npairs, over);
  if (mm->stats.maxbrow > HASH_LONGROW) HYB_LAUNCH(HashCompressLongKernel, PetscMin(B->nnz / HASH_LONGROW, 256), 512, 0, exec->stream, B->i, B->j, pairs, npairs, over);
  PetscCall(HybArenaFree(&mm->work, &over));
  hash->pairs  = pairs;
  hash->npairs = npairs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for lists: as much as nonzeros that C is known to have, or more, if that is not much beside the operands. They
   are given back before C's values are taken. */
static PetscErrorCode HashLists(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash)
{
  const HybExec *exec  = &mm->exec;
  const PetscInt lists = HybDeviceTuning()->hash_lists; /* entries for a nonzero that C is known to have */
  PetscCount     room;

  PetscFunctionBegin;
  room = PetscMin(mm->stats.products / 4, PetscMax(mm->stats.lower, PetscMin(lists * mm->stats.lower, 2 * (A->nnz + B->nnz))));
  room = PetscMin(room, (PetscCount)PETSC_MAX_INT) / HASH_POOLS;
  if (lists <= 0 || !room || mm->stats.maxrow / HASH_REGULAR * A->m > mm->stats.products) PetscFunctionReturn(PETSC_SUCCESS);
  if (HASH_POOLS * room > 4 * HASH_ASK) {
    HybMemoryReport report;

    PetscCall(exec->backend->memory(&report));
    room = PetscMin(room, (PetscCount)(report.free_bytes / 16 / sizeof(HashPair) / HASH_POOLS));
  }
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, HASH_POOLS * room * (PetscCount)sizeof(HashPair) + (PetscCount)A->m * (PetscCount)sizeof(unsigned), 1, &hash->list));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(unsigned), &hash->where));
  hash->room   = room;
  hash->listed = (unsigned *)((HashPair *)hash->list + HASH_POOLS * room);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the count of the bins that no block of 16 KiB takes: which is 5 (512 threads) or 6 (1024, and tables in global
   memory) */
static PetscErrorCode HashCountLarge(HybSpGEMM *mm, const HybExec *exec, const HybHashRows *hash, int which, PetscCount here, PetscCount rows, const PetscInt *binptr, HashArgs x)
{
  PetscFunctionBegin;
  x.binptr = binptr + which;
  if (which == 5) {
    x.bytes = 65536;
    HASH_COUNT(512, 0, PetscMin(here, rows), x.bytes);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  x.bytes = (int)hash->maxbytes;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, here + 1, sizeof(PetscInt), &x.over));
  PetscCall(exec->backend->zero(exec, x.over, sizeof(PetscInt)));
  HASH_COUNT(1024, 0, PetscMin(here, rows), x.bytes);
  if (hash->words > hash->maxbytes / 4) {
    PetscCount tables;

    PetscCall(HashGlobalTables(exec, &mm->work, hash->multiprocessors, (hash->words + 3) & ~(PetscCount)3, here, &x, &tables));
    HASH_COUNT(1024, 1, tables, 0);
    PetscCall(HybArenaFree(&mm->work, &x.global));
  }
  PetscCall(HybArenaFree(&mm->work, &x.over));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HashCountSmall(const HybExec *exec, PetscCount most, PetscCount m, PetscCount products, PetscCount rows, const PetscInt *binptr, HashArgs x)
{
  PetscFunctionBegin;
  if (most > HashCountLimit[1]) {
    x.binptr = binptr;
    HYB_LAUNCH(HashCountSmallKernel, PetscMin(PetscMin(m, products), rows), 128, HASH_SMALLMEM, exec->stream, x);
  } else {
    x.binptr = binptr + 1;
    x.bytes  = 512;
    HASH_COUNT(8, 0, PetscMin(HybBlocks(m, 16), rows), 16 * x.bytes);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* counts every row and chooses its numeric table: x->count, need, base, size. binptr, and the zeroed counters of its
   making, are workspace of the caller's. */
static PetscErrorCode HashCountRows(HybSpGEMM *mm, const HybHashRows *hash, const PetscCount *upper, PetscInt m, PetscInt *binptr, PetscInt *counters, HashArgs x)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount most = mm->stats.maxrow, rows = (PetscCount)hash->multiprocessors * 16 * 8; /* blocks that loop over the rows of their bin */
  const int        n = (most > HashCountLimit[4]) + (most > HashCountLimit[5]);
  HybExec          side[HYB_SIDE_STREAMS];
  PetscErrorCode   ierr, first = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybPlanBinsAnyOrder(exec, m, upper, HASH_COUNT_BINS, HashCountLimit, counters, hash->order, binptr));
  x.order    = hash->order;
  x.base     = hash->base;
  x.size     = hash->size;
  x.upper    = upper;
  x.maxbytes = hash->maxbytes;
  x.lanes    = hash->pairlanes;
  /* the longest rows on the operation's stream, which has their workspace, the others beside it */
  PetscCall(HybDeviceFork(exec, n, side));
  if (n == 2) first = HashCountLarge(mm, exec, hash, 6, PetscMin((PetscCount)m, mm->stats.products / (HashCountLimit[5] + 1)), rows, binptr, x);
  if (n >= 1) {
    ierr = HashCountLarge(mm, n == 2 ? &side[1] : exec, hash, 5, PetscMin((PetscCount)m, mm->stats.products / (HashCountLimit[4] + 1)), rows, binptr, x);
    if (!first) first = ierr;
  }
  ierr = HashCountSmall(n ? &side[0] : exec, most, m, mm->stats.products, rows, binptr, x);
  if (!first) first = ierr;
  ierr = HybDeviceJoin(exec, n);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int HashLog2(PetscCount n)
{
  int l = 0;

  while (l < 5 && ((PetscCount)1 << l) < n) l++;
  return l;
}

PetscErrorCode HybHashRowsCount(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool compress, const PetscCount *upper, PetscInt *count, HybHashRows *hash, PetscInt *offsets)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount mean = mm->stats.products / PetscMax(1, A->nnz);
  PetscInt        *need, *counters, *binptr;
  size_t           limit;
  char            *work;
  HashArgs         x;

  PetscFunctionBegin;
  PetscCheck(((PetscCount)B->n - 1) / 32 < (PetscCount)HASH_EMPTY, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Hash tables take fewer than 2^37 columns, not %" PetscInt_FMT, B->n);
  PetscCall(HybDeviceLimits(&limit, &hash->multiprocessors));
  hash->maxbytes  = (PetscInt)((limit - 6144) & ~(size_t)127);
  hash->words     = ((PetscCount)B->n + 31) / 32;
  hash->mean      = mean;
  hash->lanes     = PetscMax(2, HashLog2(mean));
  hash->pairlanes = HashLog2((mean + 1) / 2);
  /* one allocation: head, order, base, size */
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (HYB_HASH_BINS + 4) * (PetscCount)sizeof(PetscCount) + (PetscCount)A->m * (PetscCount)(sizeof(PetscInt) + 2 * sizeof(unsigned)), 1, &hash->head));
  hash->order  = (PetscInt *)(hash->head + HYB_HASH_BINS + 4);
  hash->base   = (unsigned *)(hash->order + A->m);
  hash->size   = hash->base + A->m;
  hash->binptr = (PetscInt *)(hash->head + 3);

  HashOperands(A, B, &x);
  if (compress) {
    PetscCall(HashCompress(mm, B, hash));
    PetscCall(HashLists(mm, A, B, hash));
  }
  x.pairs  = (const HashPair *)hash->pairs;
  x.npairs = hash->npairs;
  if (hash->list) {
    x.list   = (HashPair *)hash->list;
    x.where  = hash->where;
    x.listed = hash->listed;
    x.room   = hash->room;
  }
  {
    /* one allocation: costs in pairs and sums of counts, then what starts as zero: what lists have used, counters of
       both sorts into bins, need, and the counts, if they are ours; then the offsets of the first sort's bins */
    const PetscBool pairs  = (PetscBool)(hash->pairs && upper == mm->rowproducts);
    const size_t    ncosts = (HYB_PLAN_SUMS(A->m) + (pairs ? (size_t)A->m : 0)) * sizeof(PetscCount), nused = hash->list ? (4 * HASH_POOLS + 1) * sizeof(PetscCount) : 0, nzero = nused + (2 * HASH_COUNT_BINS + 2 * HYB_HASH_BINS + (count ? 1 : 2) * (size_t)A->m) * sizeof(PetscInt);

    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)(ncosts + nzero + (HASH_COUNT_BINS + 1) * sizeof(PetscInt)), 1, &work));
    PetscCall(exec->backend->zero(exec, work + ncosts, nzero));
    x.used     = (PetscCount *)(work + ncosts);
    x.unlisted = x.used + 4 * HASH_POOLS;
    counters   = (PetscInt *)(work + ncosts + nused);
    need       = counters + 2 * HASH_COUNT_BINS + 2 * HYB_HASH_BINS;
    binptr     = (PetscInt *)(work + ncosts + nzero);
    if (!count) count = need + A->m;
    if (pairs) {
      PetscCount *cost = (PetscCount *)work + HYB_PLAN_SUMS(A->m);

      PetscCall(HybPlanRowCosts(exec, A, B->i, hash->npairs, cost, NULL));
      upper = cost;
    }
  }
  x.count = count;
  x.need  = need;
  PetscCall(HashCountRows(mm, hash, upper, A->m, binptr, counters, x));
  PetscCall(HybPlanBinsAnyOrderInt(exec, A->m, need, HYB_HASH_BINS, HashLimit, counters + 2 * HASH_COUNT_BINS, hash->order, hash->binptr, count, (PetscCount *)work, offsets, hash->head, hash->list ? x.unlisted : NULL));
  PetscCall(HybArenaFree(&mm->work, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsFetch(HybSpGEMM *mm, HybHashRows *hash, PetscCount *nnz)
{
  static const char *const names[HYB_HASH_BINS] = {"rows empty", "rows up to 512 B", "rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 16 KiB", "rows up to 48 KiB", "rows up to a block", "rows spilled", "rows global"};
  PetscCount               bring[HYB_HASH_BINS + 4];

  PetscFunctionBegin;
  PetscCall(mm->exec.backend->copy(&mm->exec, bring, hash->head, 3 * sizeof(PetscCount) + (HYB_HASH_BINS + 1) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
  *nnz           = bring[0];
  hash->longest  = (PetscInt)bring[1];
  hash->unlisted = bring[2];
  memcpy(hash->hostbinptr, bring + 3, (HYB_HASH_BINS + 1) * sizeof(PetscInt));
  for (int b = 1; b < HYB_HASH_BINS; b++) PetscCall(HybCountersSet(&mm->counters, names[b], hash->hostbinptr[b + 1] - hash->hostbinptr[b]));
  PetscCall(HybCountersSet(&mm->counters, "compressed", hash->pairs ? 1 : 0));
  PetscCall(HybCountersSet(&mm->counters, "lists", hash->list ? hash->unlisted ? 1 : 2 : 0)); /* 2: of all rows */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsColumns(HybSpGEMM *mm, HybHashRows *hash, HybCSR *C)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount rows = hash->hostbinptr[HASH_SMALL + 1] - hash->hostbinptr[1];
  HashArgs         x;

  PetscFunctionBegin;
  if (!hash->list) PetscFunctionReturn(PETSC_SUCCESS);
  memset((void *)&x, 0, sizeof(x));
  x.order  = hash->order;
  x.binptr = hash->binptr;
  x.list   = (HashPair *)hash->list;
  x.where  = hash->where;
  x.listed = hash->listed;
  x.ci     = C->i;
  x.cj     = C->j;
  if (rows) HYB_LAUNCH(HashListSmallKernel, PetscMin(rows, (PetscCount)hash->multiprocessors * 16 * 8), 128, HASH_SMALLMEM, exec->stream, x);
  PetscCall(HybArenaFree(&mm->work, &hash->list));
  if (!hash->unlisted) PetscCall(HybArenaFree(&mm->work, &hash->pairs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsFill(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  PetscCall(HybHashRowsColumns(mm, hash, C));
  HashOperands(A, B, &x);
  x.pairs    = (const HashPair *)hash->pairs;
  x.npairs   = hash->npairs;
  x.ci       = C->i;
  x.cj       = C->j;
  x.ca       = C->a;
  x.where    = hash->where;
  x.products = !hash->where || hash->unlisted;
  x.values   = C->a != NULL;
  if (x.products || x.values) PetscCall(HashRun(mm, hash, x));
  PetscCall(HybArenaFree(&mm->work, &hash->pairs));
  PetscCall(HybArenaFree(&mm->work, &hash->where));
  hash->npairs = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  HashOperands(A, B, &x);
  x.ci     = C->i;
  x.cj     = C->j;
  x.ca     = C->a;
  x.values = 1;
  PetscCall(HashRun(mm, hash, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  const HybExec  *exec  = &mm->exec;
  const size_t    bytes = (size_t)mm->stats.products * sizeof(unsigned short) + (size_t)A->nnz * 2 * sizeof(PetscInt), most = (size_t)(A->nnz + B->nnz) * (sizeof(PetscInt) + sizeof(HybScalar));
  HybMemoryReport report;
  PetscCount     *cost;
  PetscInt       *need;
  unsigned short *places;
  HashArgs        x;

  PetscFunctionBegin;
  /* also after an error on the way */
  hash->unplanned = PETSC_TRUE;
  /* rows whose places 16 bits do not count are among those without a table in shared memory */
  if (bytes > most || hash->hostbinptr[HYB_HASH_BINS] > hash->hostbinptr[8] || mm->stats.maxrow > (PetscCount)PETSC_MAX_INT || hash->maxbytes / (PetscInt)sizeof(HybScalar) > 65536) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(exec->backend->memory(&report));
  if (bytes > report.free_bytes / 4) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->nnz, 2 * sizeof(PetscInt), &hash->from));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m + 1, sizeof(PetscCount), &hash->placeptr));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m + HYB_HASH_BINS + 1, sizeof(PetscInt), &hash->planorder));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscCount), &cost));
  PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, cost, NULL));
  PetscCall(HybScanCounts64(exec, &mm->work, A->m, cost, hash->placeptr, NULL, NULL));
  PetscCall(HybArenaFree(&mm->work, &cost));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, mm->stats.products, sizeof(unsigned short), &places));
  HashOperands(A, B, &x);
  x.ci       = C->i;
  x.cj       = C->j;
  x.from     = hash->from;
  x.off      = hash->from + A->nnz;
  x.placeptr = hash->placeptr;
  x.places   = places;
  HYB_LAUNCH(HashPlanEntries, HybBlocks((PetscCount)A->m * 8, 128), 128, 0, exec->stream, A->m, x);
  PetscCall(HashRun(mm, hash, x));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + 2 * HYB_HASH_BINS, sizeof(PetscInt), &need));
  HYB_LAUNCH(HashPlanNeed, HybBlocks(A->m, 256), 256, 0, exec->stream, A->m, C->i, need + 2 * HYB_HASH_BINS);
  PetscCall(HybPlanBinsAnyOrderInt(exec, A->m, need + 2 * HYB_HASH_BINS, HYB_HASH_BINS, HashLimit, need, hash->planorder, hash->planorder + A->m, NULL, NULL, NULL, NULL, NULL));
  PetscCall(HybArenaFree(&mm->work, &need));
  PetscCall(HybCountersSet(&mm->counters, "places", mm->stats.products));
  hash->places    = places;
  hash->unplanned = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsPlanned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount rows = (PetscCount)hash->multiprocessors * 16 * 8, most = PetscMin(mm->stats.maxrow, (PetscCount)C->n) * (PetscCount)sizeof(HybScalar);
  HashArgs         x;

  PetscFunctionBegin;
  HashOperands(A, B, &x);
  x.ci         = C->i;
  x.ca         = C->a;
  x.from       = hash->from;
  x.off        = hash->from + A->nnz;
  x.placeptr   = hash->placeptr;
  x.places     = hash->places;
  x.order      = hash->planorder;
  x.grouplanes = hash->lanes;
  if (most > HashLimit[6]) {
    x.binptr = hash->planorder + A->m + 7;
    HYB_LAUNCH((HashPlannedKernel<512>), PetscMin((PetscCount)A->m, rows), 512, hash->maxbytes, exec->stream, x);
  }
  if (most > HashLimit[5]) {
    x.binptr = hash->planorder + A->m + 6;
    HYB_LAUNCH((HashPlannedKernel<256>), PetscMin((PetscCount)A->m, rows), 256, HashLimit[6], exec->stream, x);
  }
  x.binptr = hash->planorder + A->m;
  HYB_LAUNCH(HashPlannedSmallKernel, PetscMin((PetscCount)A->m, rows), 128, HASH_SMALLMEM, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}
