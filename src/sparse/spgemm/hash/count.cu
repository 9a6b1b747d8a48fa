/*
  count.cu: the count of hashrows.cu: how many nonzeros each row of C has, which table its numeric phase needs, and,
  where there is room, what its table holds as a list.

    for each row, in bins by the pairs that it inserts:
      lo, hi = the blocks that its rows of B span         first and last columns of them
      insert every pair: a bitmap of the span where it fits, else a hash table, else (over) a bitmap in global memory
      bits that are new are counted where they are set
      keep the table's (block, mask) as a list
*/
#include "hashtable.cuh"

/* The table that a row was counted in, and the row's numeric one */
struct HashCounted {
  const unsigned *table;
  unsigned        lo, span; /* first block, blocks to the last one */
  /* hashed: so many masks from so many words on; direct: from the first one on, one for each block of the span */
  unsigned        masks, slots;
  const unsigned *met; /* a bit for each block of the span that the row has; NULL: there are no such words */
  unsigned        nnz, blocks;
  /* bytes of a ranked table, which serves if there is a list; 0: another one serves better */
  PetscInt ranked;
  bool     listed; /* the row is worth a list */
};

/*
  The numeric table of a row of so many entries of A: direct where scanning the span is cheaper than ordering the
  blocks, in shared memory where it fits. A ranked one takes two loads of a place, none of which probes, and less memory
  than a hashed one unless blocks lie far apart; it is made from columns, so it is for rows that have a list.
*/
static __device__ __forceinline__ void HashChoose(const HashArgs &x, PetscInt row, PetscInt entries, HashCounted &c)
{
  const PetscCount acc    = (PetscCount)c.nnz * (sizeof(HybScalar) > 8 ? sizeof(HybScalar) : 8);
  const PetscCount pad    = 64; /* alignment of the three parts */
  const int        log    = HashLogSlots(c.blocks);
  const PetscCount direct = (PetscCount)c.span * 8, hashed = ((PetscCount)12 << log), ranked = (PetscCount)((c.span + 31) / 32 + c.blocks) * 8;
  bool             isdirect;
  PetscCount       bytes, need;

  /* a sub-warp's table is worth more than the ordering of a few blocks saved: it keeps many rows in flight */
  if (acc + direct + pad <= HASH_SUBWARP)
    isdirect = c.span <= 6 * (PetscCount)c.blocks + 16;
  else if (acc + hashed + pad <= HASH_SUBWARP)
    isdirect = false;
  else
    isdirect = c.span <= 32 * (PetscCount)c.blocks + 64;
  if (isdirect && direct + pad > x.maxbytes && hashed + 8 * (PetscCount)c.blocks + pad <= x.maxbytes) isdirect = false;
  bytes = isdirect ? direct : hashed;
  if (acc + bytes + pad <= x.maxbytes)
    need = acc + bytes + pad;
  else if (bytes + (isdirect ? 0 : 8 * (PetscCount)c.blocks) + pad <= x.maxbytes)
    need = HASH_SPILL;
  else {
    need     = HASH_GLOBAL;
    isdirect = true;
  }
  c.ranked = 0;
  if (acc + ranked + pad <= HASH_SMALLMEM) {
    const PetscInt taken = (PetscInt)(acc + ranked + pad);

    /* nor does it take a row from a sub-warp to a block */
    if (isdirect ? (need > HASH_SUBWARP && taken <= HASH_SUBWARP) || need > HASH_SMALLMEM : 2 * ranked <= HASH_RANKMOST * hashed && (need > HASH_SUBWARP || taken <= HASH_SUBWARP)) c.ranked = taken;
  }
  /* a sub-warp adds entry after entry of A, a block does so faster */
  if (entries > HASH_LONGLIST) {
    if (need <= HASH_SUBWARP) need = HASH_SUBWARP + 1;
    if (c.ranked && c.ranked <= HASH_SUBWARP) c.ranked = HASH_SUBWARP + 1;
  }
  x.count[row] = (PetscInt)c.nnz;
  x.need[row]  = (PetscInt)need;
  x.base[row]  = isdirect ? c.lo : HASH_EMPTY;
  x.size[row]  = isdirect ? c.span : 1u << log;
  c.listed     = c.ranked || need <= HASH_SMALLMEM; /* longer rows have many products for each block */
}

/*
  What a row's table holds as a list of blocks and masks: so that the columns can be written without inserting again.
  Rows that find no room have none. What was taken is never given back: others may have taken what follows meanwhile.
*/
template <typename G, int N>
static __device__ __forceinline__ void HashKeep(const HashArgs &x, PetscInt row, const HashCounted &c, unsigned *scratch)
{
  const unsigned pool  = blockIdx.x & (HASH_POOLS - 1);
  const unsigned words = c.met ? (c.span + 31) / 32 : c.slots, each = c.met ? (words + N - 1) / N : ((words + N - 1) / N) | 1u;
  const unsigned begin = HybMin()((unsigned)G::rank() * each, words), end = HybMin()(begin + each, words);
  unsigned       at = 0, mine = 0;

  if (G::rank() == 0) {
    PetscCount *const used  = x.used + 4 * pool;
    PetscCount        first = x.room;

    if (c.listed && *(volatile PetscCount *)used + c.blocks <= x.room) first = HybAtomicAdd(used, (PetscCount)c.blocks);
    at = first + c.blocks <= x.room ? (unsigned)(pool * x.room + first) : HASH_EMPTY;
    if (at == HASH_EMPTY && !*(volatile PetscCount *)x.unlisted) (void)HybAtomicMax(x.unlisted, (PetscCount)1);
    x.where[row]  = at;
    x.listed[row] = 2 * c.blocks + (c.masks == 0);
    if (c.ranked && at != HASH_EMPTY) {
      x.need[row] = c.ranked;
      x.base[row] = c.lo;
      x.size[row] = HASH_RANKED | c.span;
    }
  }
  at = G::reduce(at, scratch, HybMax());
  if (at == HASH_EMPTY) return;
  for (unsigned w = begin; w < end; w++) mine += c.met ? (unsigned)__popc(c.met[w]) : c.table[c.masks + w] != 0;
  at += G::exclusiveSum(mine, scratch);
  for (unsigned w = begin; w < end; w++) {
    if (c.met) {
      for (unsigned bits = c.met[w]; bits; bits &= bits - 1) {
        const unsigned b = 32 * w + (unsigned)__ffs((int)bits) - 1;

        x.list[at++] = {c.lo + b, c.table[b]};
      }
    } else {
      const unsigned mask = c.table[c.masks + w];

      if (mask) x.list[at++] = {c.masks ? c.table[w] : c.lo + w, mask};
    }
  }
}

/* entries of A whose rows of B a group of N stages */
#define HASH_SPANS(N) ((N) <= 256 ? (N) : 256)

/* every pair of a row */
template <int N, bool ALONG, typename Insert>
static __device__ __forceinline__ void HashCountPairs(const HashArgs &x, PetscInt abegin, unsigned alen, int rowlanes, const HashSpans &spans, Insert insert)
{
  if constexpr (ALONG && HybGroup<N>::SUBWARP)
    HashForEachPairAlong<N>(x, abegin, alen, spans, insert);
  else
    HashForEachPair<HybGroup<N>, N>(x, abegin, alen, rowlanes, spans, insert);
}

/* Count of a row. table: capacity words, in shared memory or (MODE 1) in global memory; ALONG: sub-warps go along the
   pairs of several rows of B */
template <int N, int MODE, bool ALONG>
static __device__ __forceinline__ void HashCountRow(const HashArgs &x, PetscInt row, unsigned *table, unsigned capacity, unsigned *scratch, HashSpans spans)
{
  using G                 = HybGroup<N>;
  constexpr int    STAGED = HASH_SPANS(N);
  const PetscCount u      = x.upper[row];
  const PetscInt   abegin = x.ai[row];
  const unsigned   alen   = (unsigned)(x.ai[row + 1] - abegin);
  unsigned         lo = HASH_EMPTY, hi = 0, nnz = 0, blocks = 0;
  HashCounted      c        = {};
  int              rowlanes = 0;

  spans.first += G::index() * STAGED;
  spans.end += G::index() * STAGED;
  spans.staged = STAGED;
  /* two rows of B at once, of which each lane meets one entry or two */
  while (rowlanes < 5 && ((PetscCount)2 << rowlanes) * alen < u) rowlanes++;
  /* the blocks that the row spans */
  for (unsigned k = (unsigned)G::rank(); k < alen; k += N) {
    const PetscInt col = x.aj[abegin + k], begin = x.bi[col], end = x.bi[col + 1];

    if (k < STAGED) {
      spans.first[k] = begin;
      spans.end[k]   = HashSpanEnd(x, col, begin, end);
    }
    if (begin < end) {
      lo = HybMin()(lo, (unsigned)(x.bj[begin] >> 5));
      hi = HybMax()(hi, (unsigned)(x.bj[end - 1] >> 5));
    }
  }
  lo      = G::reduce(lo, scratch, HybMin());
  hi      = G::reduce(hi, scratch, HybMax());
  c.table = table;
  c.lo    = lo;
  c.span = c.slots = hi - lo + 1;
  if (c.span <= capacity) {
    const unsigned words = (c.span + 3) & ~3u, bits = (c.span + 31) / 32;
    /* where there is room for them, the blocks that are met have a bit each, so that a list need not look at the
       span */
    unsigned *const met = MODE == 0 && x.where && words + ((bits + 3) & ~3u) <= capacity ? table + words : nullptr;

    HashFill<G>(table, met ? words + bits : c.span, 0);
    G::sync();
    HashCountPairs<N, ALONG>(x, abegin, alen, rowlanes, spans, [&](unsigned block, unsigned mask) {
      const unsigned at  = block - lo;
      const unsigned old = atomicOr(table + at, mask);

      nnz += __popc(mask & ~old);
      if (old == 0) {
        blocks++;
        if (met) atomicOr(met + at / 32, 1u << (at & 31));
      }
    });
    c.met = met;
  } else {
    const int most   = 31 - __clz((int)(capacity / 2));
    unsigned *maskof = table + (1u << most);
    int       logslots;
    unsigned  wrap;

    if (u > (PetscCount)3 << (most - 2)) {
      /* could fill more than three quarters of the slots: a bitmap in global memory */
      if (G::rank() == 0) x.over[1 + HybAtomicAdd(x.over, 1)] = row;
      return;
    }
    logslots        = HybMin()(HashLogSlots((unsigned)u), most);
    wrap            = (1u << logslots) - 1;
    const int shift = 32 - logslots;

    c.masks = 1u << most;
    c.slots = wrap + 1;
    HashFill<G>(table, wrap + 1, HASH_EMPTY);
    HashFill<G>(maskof, wrap + 1, 0);
    G::sync();
    HashCountPairs<N, ALONG>(x, abegin, alen, rowlanes, spans, [&](unsigned block, unsigned mask) {
      const unsigned old = atomicOr(maskof + HashInsert(table, block, shift, wrap), mask);

      nnz += __popc(mask & ~old);
      blocks += old == 0;
    });
  }
  c.nnz    = G::reduce(nnz, scratch, HybSum());
  c.blocks = G::reduce(blocks, scratch, HybSum());
  if (G::rank() == 0) HashChoose(x, row, alen, c);
  G::sync();
  if (x.where) {
    HashKeep<G, N>(x, row, c, scratch);
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
  HYB_SHARED(PetscInt, spanbegin, HybGroup<N>::GROUPS * HASH_SPANS(N));
  HYB_SHARED(unsigned, spanend, HybGroup<N>::GROUPS *HASH_SPANS(N));
  unsigned *const table    = MODE ? x.global + (PetscCount)blockIdx.x * x.globalwords : (unsigned *)(shared + (size_t)G::index() * x.bytes);
  const unsigned  capacity = MODE ? (unsigned)x.globalwords : (unsigned)x.bytes / 4; /* words */
  const PetscInt  first = MODE ? 0 : x.binptr[0], last = MODE ? x.over[0] : x.binptr[1];

  for (PetscCount q = first + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < last; q += (PetscCount)gridDim.x * G::GROUPS) HashCountRow<N, MODE, false>(x, MODE ? x.over[1 + q] : x.order[q], table, capacity, scratch, {spanbegin, spanend, 0});
}

/* task t of bin b for sub-warps of N lanes: whatever its bin, a warp keeps to its own part of shared memory */
template <int N, bool ALONG>
static __device__ __forceinline__ void HashCountTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared, unsigned *scratch, const HashSpans &spans)
{
  using G                = HybGroup<N>;
  const int        bytes = x.bytes / G::GROUPS;
  const PetscCount q     = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashCountRow<N, 0, ALONG>(x, x.order[q], (unsigned *)(shared + (size_t)G::index() * bytes), (unsigned)bytes / 4, scratch, spans);
}

/* bins 1 to 4 at once, the longest rows first */
template <bool ALONG>
__global__ void __launch_bounds__(128, 7) HashCountSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, spanbegin, 128);
  HYB_SHARED(unsigned, spanend, 128);
  const HashSpans  spans = {spanbegin, spanend, 0};
  const PetscCount n4 = x.binptr[5] - x.binptr[4], n3 = (x.binptr[4] - x.binptr[3] + 3) / 4, n2 = (x.binptr[3] - x.binptr[2] + 7) / 8, n1 = (x.binptr[2] - x.binptr[1] + 15) / 16;

  for (PetscCount t = (PetscCount)blockIdx.x; t < n4 + n3 + n2 + n1; t += (PetscCount)gridDim.x) {
    if (t < n4)
      HashCountTask<128, ALONG>(x, 4, t, shared, scratch, spans);
    else if (t < n4 + n3)
      HashCountTask<32, ALONG>(x, 3, t - n4, shared, scratch, spans);
    else if (t < n4 + n3 + n2)
      HashCountTask<16, ALONG>(x, 2, t - n4 - n3, shared, scratch, spans);
    else
      HashCountTask<8, ALONG>(x, 1, t - n4 - n3 - n2, shared, scratch, spans);
  }
}

#define HASH_COUNT(N, MODE, grid, dynamic) HYB_LAUNCH((HashCountKernel<N, MODE>), grid, HybGroup<N>::THREADS, dynamic, exec->stream, x)

/* Room for lists: as much as nonzeros that C is known to have, or more, if that is not much beside the operands. They
   are given back before C's values are taken. */
PetscErrorCode HybHashLists(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash)
{
  const HybExec *exec  = &mm->exec;
  const PetscInt lists = HybDeviceTuning()->hash_lists; /* entries for a nonzero that C is known to have */
  PetscCount     room;

  PetscFunctionBegin;
  room = PetscMin(mm->stats.products / 4, PetscMax(mm->stats.lower, PetscMin(lists * mm->stats.lower, 2 * (A->nnz + B->nnz))));
  room = PetscMin(room, (PetscCount)2147483647) / HASH_POOLS; /* places in it are numbers of four bytes */
  if (lists <= 0 || !room || (mm->stats.maxrow / HASH_REGULAR * A->m > mm->stats.products && mm->stats.products / HASH_SHORT > A->m)) PetscFunctionReturn(PETSC_SUCCESS);
  if (HASH_POOLS * room > 4 * HASH_ASK) {
    size_t spare;

    PetscCall(HybMemorySpare(exec, &spare));
    room = PetscMin(room, (PetscCount)(spare / 4 / sizeof(HashPair) / HASH_POOLS));
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

    PetscCall(HybHashGlobalTables(exec, &mm->work, hash->multiprocessors, (hash->words + 3) & ~(PetscCount)3, here, &x, &tables));
    HASH_COUNT(1024, 1, tables, 0);
    PetscCall(HybArenaFree(&mm->work, &x.global));
  }
  PetscCall(HybArenaFree(&mm->work, &x.over));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HashCountSmall(const HybExec *exec, bool along, PetscCount most, PetscCount m, PetscCount products, PetscCount rows, const PetscInt *binptr, HashArgs x)
{
  PetscFunctionBegin;
  if (most > HashCountLimit[1]) {
    x.binptr = binptr;
    x.bytes  = x.where ? HASH_COUNTMEM : HASH_SMALLMEM;
    if (along)
      HYB_LAUNCH((HashCountSmallKernel<true>), PetscMin(PetscMin(m, products), rows), 128, x.bytes, exec->stream, x);
    else
      HYB_LAUNCH((HashCountSmallKernel<false>), PetscMin(PetscMin(m, products), rows), 128, x.bytes, exec->stream, x);
  } else {
    x.binptr = binptr + 1;
    x.bytes  = 512;
    /* no row of B is so long that they would go along */
    HASH_COUNT(8, 0, PetscMin(HybBlocks(m, 16), rows), 16 * x.bytes);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashCountRows(HybSpGEMM *mm, const HybHashRows *hash, const PetscCount *upper, PetscInt m, PetscInt *binptr, PetscInt *counters, HashArgs x)
{
  const HybExec *exec = &mm->exec;
  /* blocks that loop over the rows of their bin */
  const PetscCount most = mm->stats.maxrow, rows = (PetscCount)hash->multiprocessors * 16 * 8;
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
  ierr = HashCountSmall(n ? &side[0] : exec, hash->mean >= HASH_ALONG && mm->stats.maxbrow / HASH_UNEVEN > hash->mean && mm->stats.maxbrow <= HASH_ALONGMOST, most, m, mm->stats.products, rows, binptr, x);
  if (!first) first = ierr;
  ierr = HybDeviceJoin(exec, n);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}
