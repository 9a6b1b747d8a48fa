/*
  numeric.cu: the fill and the numeric phase of hashrows.cu: columns of rows without a list, values, places.

    for each row, in bins by the bytes of its table and its accumulators:
      the table, from the products (no columns yet: they are written) or from C's columns (ranked ones always)
      accumulators -0
      for each entry of A, in order: a lane for each entry of its row of B: acc[place] += product
      accumulators to C

  What does not depend on the order, loads and places, is done for several rows of B together.
*/
#include "hashtable.cuh"

/*
  The products of a row, added at their places: rows of B in the order of A's entries, the group's lanes across a row of
  B, which has each column once. What does not depend on the order is done for a batch of rows together: their entries
  are fetched and their places looked up, then they are added one after the other. Sub-warps, whose rows of B are often
  longer than they are wide, fetch two pieces of each row, and fewer rows.
*/
template <int N, int BATCH>
struct HashBatch {
  static constexpr int PIECES = N > 4 && N <= HYB_WARP ? 2 : 1;
  static constexpr int ROWS   = BATCH / PIECES;
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
  template <typename Place>
  __device__ __forceinline__ void findeach(Place place)
  {
#pragma unroll
    for (int h = 0; h < PIECES; h++) {
      bool some = h == 0;

#pragma unroll
      for (int u = 0; u < ROWS; u++) some = some || p[u] + h * N < end[u];
      if (some) {
#pragma unroll
        for (int u = 0; u < ROWS; u++) at[u][h] = place(p[u] + h * N < end[u], at[u][h]);
      }
    }
  }
  /* Where nothing probes, nothing branches either, but for pieces that no row has, so that all loads are under way
     together: lanes that have no entry look for the first column of the table. */
  __device__ __forceinline__ void find(const HashTable &t)
  {
    const PetscInt first = t.keys ? 0 : (PetscInt)t.base << 5; /* hashed: no base */

    if (t.shift == HASH_NOSHIFT)
      findeach([&](bool there, PetscInt col) { return HashRankedPlace(t, there ? col - first : 0); });
    else if (!t.keys)
      findeach([&](bool there, PetscInt col) { return HashSlotPlace(t, there ? (unsigned)((col - first) >> 5) : 0, col); });
    else
      findeach([&](bool there, PetscInt col) { return there ? HashSlotPlace(t, HashFind(t.keys, (unsigned)(col >> 5), t.shift, t.wrap), col) : 0; });
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

template <typename G, int N, int BATCH>
static __device__ __forceinline__ void HashAccumulate(const HashArgs &x, const HashTable &t, PetscInt abegin, PetscInt aend, HybScalar *acc, PetscInt *stagebegin, PetscInt *stageend, HybScalar *stagevalue)
{
  constexpr int ROWS = HashBatch<N, BATCH>::ROWS;

  if (G::SUBWARP) {
    for (PetscInt k = abegin; k < aend; k += ROWS) {
      HashBatch<N, BATCH> now;
      HybScalar           av[ROWS];

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
      const int           n = (int)HybMin()((PetscInt)HASH_STAGE, aend - k0);
      HashBatch<N, BATCH> now, next;

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

/*
  Fill and numeric of a row. MODE 0: table and accumulators in shared memory; 1: accumulators are C's values; 2: the
  table in global memory as well.
*/
template <int N, int MODE, int BATCH = HASH_BATCH>
static __device__ __forceinline__ void HashNumericRow(const HashArgs &x, PetscInt row, unsigned char *mine, unsigned *scratch, PetscInt *stagebegin, PetscInt *stageend, HybScalar *stagevalue)
{
  using G               = HybGroup<N>;
  const PetscInt abegin = x.ai[row], aend = x.ai[row + 1];
  const PetscInt cbegin = x.ci[row];
  const unsigned nnz    = (unsigned)(x.ci[row + 1] - cbegin);
  /* wider blocks have larger tables */
  const bool     ranked = MODE == 0 && N <= 128 && (x.size[row] & HASH_RANKED);
  const unsigned size = x.size[row] & ~HASH_RANKED, words = (size + 3) & ~3u;
  HybScalar     *acc = MODE == 0 ? (HybScalar *)mine : x.ca + cbegin;
  HashTable      t;

  if (x.places && (x.placeptr[row] < x.partbegin || x.placeptr[row] >= x.partend)) return;
  t.base   = x.base[row];
  t.wrap   = size - 1;
  t.shift  = __clz((int)t.wrap);
  t.mask   = MODE == 0 ? (unsigned *)(mine + (((size_t)nnz * (sizeof(HybScalar) > 8 ? sizeof(HybScalar) : 8) + 15) & ~(size_t)15)) : MODE == 1 ? (unsigned *)mine
                                                                                                                                               : x.global + (PetscCount)blockIdx.x * x.globalwords;
  t.prefix = t.mask + words;
  t.keys   = t.base == HASH_EMPTY ? t.prefix + words : nullptr;
  if (ranked) {
    const unsigned bits = 2 * ((size + 31) / 32);

    t.prefix = t.mask + bits;
    t.shift  = HASH_NOSHIFT;
    HashFill<G>(t.mask, bits, 0);
  } else {
    HashFill<G>(t.mask, size, 0);
    if (t.keys) HashFill<G>(t.keys, size, HASH_EMPTY);
  }
  G::sync();
  if (ranked)
    HashRank<G, N>(t, x.cj + cbegin, nnz, scratch);
  else if (x.products && !HashListed(x, row)) { /* no columns yet */
    if (t.keys)
      HashForEachPair<G, N>(x, abegin, (unsigned)(aend - abegin), x.lanes, HashSpans(), [&](unsigned block, unsigned mask) { atomicOr(t.mask + HashInsert(t.keys, block, t.shift, t.wrap), mask); });
    else
      HashForEachPair<G, N>(x, abegin, (unsigned)(aend - abegin), x.lanes, HashSpans(), [&](unsigned block, unsigned mask) { atomicOr(t.mask + (block - t.base), mask); });
    G::sync();
    /* the list of blocks lies where the accumulators will be */
    if (t.keys)
      HashOrderSlots<G, N>(t.keys, t.mask, t.prefix, size, MODE == 0 ? (unsigned long long *)mine : (unsigned long long *)(t.keys + words), MODE == 0 ? nnz * (unsigned)sizeof(unsigned long long) : 0, scratch);
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
    unsigned short *const to    = x.places + (x.placeptr[row] - x.partbegin);

    for (PetscInt k = abegin + (G::rank() >> lanes); k < aend; k += N >> lanes) {
      const PetscInt begin = x.from[k], first = x.off[k], len = x.bi[x.aj[k] + 1] - begin;

      for (PetscInt p = G::rank() & ((1 << lanes) - 1); p < len; p += 1 << lanes) to[first + p] = (unsigned short)HashPlace(t, x.bj[begin + p]);
    }
  }
  if (x.values) {
    HashAccumulate<G, N, BATCH>(x, t, abegin, aend, acc, stagebegin, stageend, stagevalue);
    if (MODE == 0) {
      for (unsigned e = (unsigned)G::rank(); e < nnz; e += N) x.ca[cbegin + e] = acc[e];
    }
  }
  G::sync();
}

template <int N, int MODE, int BATCH = HASH_BATCH>
static __device__ __forceinline__ void HashNumericRows(const HashArgs &x)
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
    HashNumericRow<N, MODE, BATCH>(x, row, shared + (size_t)G::index() * x.bytes, scratch, stagebegin, stageend, stagevalue);
  }
}

template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) HashNumericKernel(HashArgs x)
{
  HashNumericRows<N, 0>(x);
}

/* few rows: none waits for a multiprocessor, and each takes as long as its entries of A, one after the other */
template <int N>
__global__ void __launch_bounds__(N) HashNumericFewKernel(HashArgs x)
{
  HashNumericRows<N, 0, 2 * HASH_BATCH>(x);
}

/* Rows without room for accumulators or for a table in shared memory: one block a multiprocessor. Of 1024 threads each
   has 64 registers, and some bytes spill; half as many threads would leave half of the rows' products under way. */
template <int N, int MODE>
__global__ void __launch_bounds__(N, 1) HashNumericLargeKernel(HashArgs x)
{
  HashNumericRows<N, MODE>(x);
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
    x.bytes  = b < HASH_WHOLE ? (int)HashLimit[b] : (int)hash->maxbytes;
    if (b <= HASH_WHOLE) {
      /* short rows of B leave a wide block idle */
      int lanes = b == HASH_WHOLE ? 512 : b == HASH_MIDDLE ? 128
                                                           : 256;

      if (b < HASH_SMALL)
        lanes = 1 << HashGroupLanes(b, hash->lanes);
      else if (b == HASH_SMALL)
        lanes = hash->mean <= HASH_NARROW ? 64 : 128;

      if (b > HASH_SMALL && rows <= hash->multiprocessors) {
        PetscCall(HybDispatch(lanes, HybCases<128, 256, 512>(), [&](auto N) {
          HYB_LAUNCH((HashNumericFewKernel<N>), rows, N, x.bytes, exec->stream, x);
          return PETSC_SUCCESS;
        }));
        continue;
      }
      PetscCall(HybDispatch(lanes, HybCases<4, 8, 16, 32, 64, 128, 256, 512>(), [&](auto N) {
        HYB_LAUNCH((HashNumericKernel<N>), HybBlocks(rows, HybGroup<N>::GROUPS), HybGroup<N>::THREADS,
                   HybGroup<N>::GROUPS * x.bytes, exec->stream, x);
        return PETSC_SUCCESS;
      }));
    } else if (b == HASH_WHOLE + 1)
      HYB_LAUNCH((HashNumericLargeKernel<512, 1>), rows, 512, x.bytes, exec->stream, x);
    else {
      PetscCall(HybHashGlobalTables(exec, &mm->work, hash->multiprocessors, 2 * ((hash->words + 3) & ~(PetscCount)3), rows, &x, &blocks));
      HYB_LAUNCH((HashNumericLargeKernel<1024, 2>), blocks, 1024, 0, exec->stream, x);
      PetscCall(HybArenaFree(&mm->work, &x.global));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  All bins of the fill or of the numeric pass, large ones first. The last rows of a bin take long by themselves, so what
  comes next runs beside it. A fill puts the largest bins into one stream, the next into another, all small ones into
  the third: there rows without a list insert first, and others behind them in a stream would wait. Where columns are
  known bins are dealt in turn, so that none of the small ones waits for the end of another one.
*/
PetscErrorCode HybHashRun(HybSpGEMM *mm, const HybHashRows *hash, HashArgs x, int firstbin, int lastbin)
{
  const HybExec *exec  = &mm->exec;
  PetscCount     small = 0;
  int            bins = 0, n = 0, sides, bin[HYB_HASH_BINS], group[HYB_HASH_BINS], groups = 0;
  HybExec        side[HYB_SIDE_STREAMS];
  PetscErrorCode ierr, first = PETSC_SUCCESS;

  PetscFunctionBegin;
  x.order      = hash->order;
  x.base       = hash->base;
  x.size       = hash->size;
  x.lanes      = hash->pairlanes;
  x.grouplanes = hash->lanes;
  for (int b = HASH_SMALL; b >= firstbin; b--) {
    const PetscCount rows = hash->hostbinptr[b + 1] - hash->hostbinptr[b];

    bins += rows > 0;
    small += HybBlocks(rows, b == HASH_SMALL ? 1 : 128 >> HashGroupLanes(b, hash->lanes));
    x.firstblock[HASH_SMALL + 1 - b] = (int)PetscMin(small, HASH_MERGE + 1);
  }
  if (bins <= 1 || small > HASH_MERGE) small = 0;
  /* tables in global memory come from the stream's own pool */
  if (lastbin > HASH_WHOLE + 1) PetscCall(HashRunBins(mm, exec, hash, x, HASH_WHOLE + 2, HASH_WHOLE + 2, 0));
  for (int b = PetscMin(lastbin, HASH_WHOLE + 1), last = -1; b >= firstbin; b--) {
    const int kind = b >= HASH_WHOLE ? 0 : b > HASH_SMALL ? 1
                                                          : 2;

    if (small && b == HASH_SMALL) b = 1; /* all of them at once */
    if (b > 1 || !small) {
      if (hash->hostbinptr[b + 1] == hash->hostbinptr[b]) continue;
    }
    groups += !x.products || kind != last;
    group[n] = groups - 1;
    bin[n++] = b;
    last     = kind;
  }
  sides = PetscMin(PetscMax(groups - 1, 0), HYB_SIDE_STREAMS);
  PetscCall(HybDeviceFork(exec, sides, side));
  for (int k = 0; k < n; k++) {
    const int turn = group[k] % (sides + 1);

    ierr = HashRunBins(mm, turn < sides ? &side[turn] : exec, hash, x, bin[k], bin[k], bin[k] == 1 ? small : 0);
    if (!first) first = ierr;
  }
  ierr = HybDeviceJoin(exec, sides);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}
