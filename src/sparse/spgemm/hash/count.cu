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

/* entries of A whose rows of B a group of N stages */
#define HASH_SPANS(N) ((N) <= 256 ? (N) : 256)

/* Count of a row. table: capacity words, in shared memory or (MODE 1) in global memory. One function of more than 100
   lines: what is staged of A and B, the table and the list that the row may get are all in registers and shared memory
   of one group. */
template <int N, int MODE>
static __device__ __forceinline__ void HashCountRow(const HashArgs &x, PetscInt row, unsigned *table, unsigned capacity, unsigned *scratch, HashSpans spans)
{
  using G                 = HybGroup<N>;
  constexpr int    STAGED = HASH_SPANS(N);
  const PetscCount u      = x.upper[row];
  const PetscInt   abegin = x.ai[row], aend = x.ai[row + 1];
  /* masks begin behind so many keys */
  unsigned lo = HASH_EMPTY, hi = 0, nnz = 0, blocks = 0, span, slots, masks = 0;
  bool     serves   = false;
  int      rowlanes = 0;

  spans.begin += G::index() * STAGED;
  spans.end += G::index() * STAGED;
  spans.staged = STAGED;
  /* two rows of B at once, of which each lane meets one entry or two */
  while (rowlanes < 5 && ((PetscCount)2 << rowlanes) * (aend - abegin) < u) rowlanes++;
  /* the blocks that the row spans */
  for (PetscInt k = abegin + G::rank(); k < aend; k += N) {
    const PetscInt c = x.aj[k], begin = x.bi[c], end = x.bi[c + 1];

    if (k - abegin < STAGED) {
      spans.begin[k - abegin] = (HashSpans::Cursor)begin;
      spans.end[k - abegin]   = x.pairs ? (HashSpans::Cursor)begin + (HashSpans::Cursor)x.npairs[c] : (HashSpans::Cursor)end;
    }
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
    HashForEachPair<G, N>(x, abegin, aend, rowlanes, spans, [&](unsigned block, unsigned mask) {
      const unsigned old = atomicOr(table + (block - lo), mask);

      nnz += __popc(mask & ~old);
      blocks += old == 0;
    });
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

    masks = 1u << most;
    slots = wrap + 1;
    HashFill<G>(table, wrap + 1, HASH_EMPTY);
    HashFill<G>(maskof, wrap + 1, 0);
    G::sync();
    HashForEachPair<G, N>(x, abegin, aend, rowlanes, spans, [&](unsigned block, unsigned mask) {
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
  HYB_SHARED(HashSpans::Cursor, spanbegin, HybGroup<N>::GROUPS * HASH_SPANS(N));
  HYB_SHARED(HashSpans::Cursor, spanend, HybGroup<N>::GROUPS * HASH_SPANS(N));
  unsigned *const table    = MODE ? x.global + (PetscCount)blockIdx.x * x.globalwords : (unsigned *)(shared + (size_t)G::index() * x.bytes);
  const unsigned  capacity = MODE ? (unsigned)x.globalwords : (unsigned)x.bytes / 4; /* words */
  const PetscInt  first = MODE ? 0 : x.binptr[0], last = MODE ? x.over[0] : x.binptr[1];

  for (PetscCount q = first + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < last; q += (PetscCount)gridDim.x * G::GROUPS) HashCountRow<N, MODE>(x, MODE ? x.over[1 + q] : x.order[q], table, capacity, scratch, {spanbegin, spanend, 0});
}

/* task t of bin b for sub-warps of N lanes: whatever its bin, a warp keeps to its own part of shared memory */
template <int N>
static __device__ __forceinline__ void HashCountTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared, unsigned *scratch, const HashSpans &spans)
{
  using G                = HybGroup<N>;
  const int        bytes = HASH_SMALLMEM / G::GROUPS;
  const PetscCount q     = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashCountRow<N, 0>(x, x.order[q], (unsigned *)(shared + (size_t)G::index() * bytes), (unsigned)bytes / 4, scratch, spans);
}

/* bins 1 to 4 at once, the longest rows first */
__global__ void __launch_bounds__(128, 7) HashCountSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  HYB_SHARED(HashSpans::Cursor, spanbegin, 128);
  HYB_SHARED(HashSpans::Cursor, spanend, 128);
  const HashSpans  spans = {spanbegin, spanend, 0};
  const PetscCount n4 = x.binptr[5] - x.binptr[4], n3 = (x.binptr[4] - x.binptr[3] + 3) / 4, n2 = (x.binptr[3] - x.binptr[2] + 7) / 8, n1 = (x.binptr[2] - x.binptr[1] + 15) / 16;

  for (PetscCount t = (PetscCount)blockIdx.x; t < n4 + n3 + n2 + n1; t += (PetscCount)gridDim.x) {
    if (t < n4)
      HashCountTask<128>(x, 4, t, shared, scratch, spans);
    else if (t < n4 + n3)
      HashCountTask<32>(x, 3, t - n4, shared, scratch, spans);
    else if (t < n4 + n3 + n2)
      HashCountTask<16>(x, 2, t - n4 - n3, shared, scratch, spans);
    else
      HashCountTask<8>(x, 1, t - n4 - n3 - n2, shared, scratch, spans);
  }
}

#define HASH_COUNT(N, MODE, grid, dynamic) HYB_LAUNCH((HashCountKernel<N, MODE>), grid, HybGroup<N>::THREADS, dynamic, exec->stream, x)

/* Room for lists: as much as nonzeros that C is known to have, or more, if that is not much beside the operands. They
   are given back before C's values are taken. */
PetscErrorCode HashLists(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash)
{
  const HybExec *exec  = &mm->exec;
  const PetscInt lists = HybDeviceTuning()->hash_lists; /* entries for a nonzero that C is known to have */
  PetscCount     room;

  PetscFunctionBegin;
  room = PetscMin(mm->stats.products / 4, PetscMax(mm->stats.lower, PetscMin(lists * mm->stats.lower, 2 * (A->nnz + B->nnz))));
  room = PetscMin(room, (PetscCount)2147483647) / HASH_POOLS; /* places in it are numbers of four bytes */
  if (lists <= 0 || !room || (mm->stats.maxrow / HASH_REGULAR * A->m > mm->stats.products && mm->stats.products / HASH_SHORT > A->m)) PetscFunctionReturn(PETSC_SUCCESS);
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

PetscErrorCode HashCountRows(HybSpGEMM *mm, const HybHashRows *hash, const PetscCount *upper, PetscInt m, PetscInt *binptr, PetscInt *counters, HashArgs x)
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
  ierr = HashCountSmall(n ? &side[0] : exec, most, m, mm->stats.products, rows, binptr, x);
  if (!first) first = ierr;
  ierr = HybDeviceJoin(exec, n);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}
