/*
  rowstream.cuh: the sum of each row, with the values as one stream through shared memory. What SpMV's methods shape,
  block and rowgroup share: they differ in how a row finds its columns.

  A tile is a fixed number of neighbouring rows. Their values are neighbours in CSR, so a block has a tile copied to
  shared memory as one piece, by the bulk copy engine, while it sums the rows of the tile before: two stages in turn, a
  grid that just fills the device. A row is summed by G = 1, 2, 4, 8 or 16 threads. Neighbouring rows have neighbouring
  columns mostly, and their threads stand side by side, so x is read coalesced as well.

    stages 0, 1: copy the first two tiles of this block
    for each tile of this block: offsets and class of my row in the next tile (AHEAD: and where the tile after next
    begins and ends) -> registers
                                   wait for the stage; sum my row: value from shared memory, column from the policy, x;
                                   store barrier; copy the tile after next to this stage

  Which tiles a block has matters for x. Dealt singly, all blocks are at about one place of the matrix, and what they
  read of x is in the second-level cache for all of them. In runs, one for each multiprocessor, whose blocks have its
  tiles in turn (the device puts blocks b, b + 132, ... of a grid that just fills it on one of its 132 multiprocessors),
  neighbouring tiles meet in its first-level cache what they share of x. But then 132 places are in use at once, and x
  is read from memory several times where the second-level cache does not hold all of it: there runs are as short as the
  blocks that a multiprocessor has at a time. That blocks share a multiprocessor is a matter of speed alone: each has
  its tiles, wherever it runs.

  The next copy begins at a row offset. AHEAD asks for it a turn before it is wanted, else all that follows the copy
  waits for memory. But all loads of a thread are waited for as one (ptxas gives them one of six barriers), so x is
  there only when that offset is, which comes from memory on every turn. Where rows are short and x comes from the
  caches, asking ahead gains; where what is known of x is only known from columns, and a sum takes a
  turn's time, the thread that copies had better wait alone. Asking ahead with the copies themselves, or after the sum,
  was as good for block and cost the others more.

  A tile whose entries do not fit into a stage is not copied: the block's warps then take its rows one by one from
  global memory. That is for the few large tiles of a matrix: where even mean rows do not fit (the plan's "fits"), few
  warps would do everything, and another method is better.

  The policy COLUMNS says where columns come from:
    BLOCKS                      of 256 threads that a multiprocessor shall hold
    AHEAD                       see above
    INDEXED, Index              whether a stream of indices, of what type, goes to shared memory beside the values
    IndexOf(k)                  place in that stream of what belongs to entry k, the first of a row that begins a tile
    Prepare(table)              all threads: copies what every tile needs to shared memory
    Row, Load(r, valid, tile)   what is fetched ahead for a row
    ROWS                        neighbouring rows that G threads sum together, all of one length
    Sum<G>(...)                 the sums of their products, for lane g of the G; len: entries of a row

  Numbers within a tile, and of tiles, are 32 bits also where a PetscInt has 64: registers are what a sum lacks.
*/
#ifndef AIJHYBRIDGPU_ROWSTREAM_CUH
#define AIJHYBRIDGPU_ROWSTREAM_CUH

#include "../device/hybchain.cuh"
#include "../structure/rowops.cuh"

/* complex numbers of double precision: a load is two numbers, and so are its registers */
static constexpr bool RowWide = sizeof(HybScalar) > 8;

#define ROWSTREAM_STAGES 2
#define ROWSTREAM_BATCH  8 /* loads of x in flight for a thread */

/* entries of T that 16 bytes hold, at least one */
template <typename T>
static constexpr PetscCount RowStreamUnit(void)
{
  return sizeof(T) < 16 ? 16 / (PetscCount)sizeof(T) : 1;
}

/* lanes of a row, or of neighbouring ones that are summed together */
template <int ROWS>
struct RowStreamLanes {
  using Cases = HybCases<1, 2, 4, 8, 16>;
};
template <>
struct RowStreamLanes<1> {
  using Cases = HybCases<1, 2, 4, 8>;
};

/* How a launch is laid out; the same for all applications of a plan */
typedef struct {
  int        threads, lanes; /* of a block; of a row */
  PetscInt   rows;           /* of a tile */
  PetscCount ntiles;
  PetscInt   values, indices; /* a stage's room, in entries */
  PetscInt   table;           /* ints that every tile needs */
  PetscBool  fits;            /* a tile of mean rows fits into a stage */
  size_t     bytes;           /* dynamic shared memory */
  PetscCount blocks;
  /* parts that the tiles are dealt to, run neighbouring ones at a time; block b has a tile in turn of part b mod
     chunks */
  PetscInt chunks;
  PetscInt run;
  /* what launches prefer of a multiprocessor's memory as shared memory, in per cent; ROWSTREAM_DRIVER: nothing is
     said */
  PetscCount carveout;
} RowStreamLayout;

#define ROWSTREAM_DRIVER -2

/* the source range [from, to) of a stage, its first unit rounded down; what is beyond whole units at the end of the
   array is copied by one thread */
template <typename T>
static __device__ __forceinline__ size_t RowStreamBytes(PetscCount from, PetscCount to, PetscCount n)
{
  const PetscCount u = RowStreamUnit<T>(), first = from / u * u;
  PetscCount       last = (to + u - 1) / u * u;
  if (last > n) last = n / u * u;
  return last > first ? (size_t)(last - first) * sizeof(T) : 0;
}

template <typename T>
static __device__ __forceinline__ void RowStreamCopy(uint64_t *bar, T *stage, const T *array, PetscCount from, PetscCount to, PetscCount n)
{
  const PetscCount u = RowStreamUnit<T>(), first = from / u * u;
  const size_t     bytes = RowStreamBytes<T>(from, to, n);
  HybBulkCopy(bar, stage, array + first, bytes);
  if (threadIdx.x == 0)
    for (PetscCount k = first + (PetscCount)(bytes / sizeof(T)); k < to; k++) stage[k - first] = array[k];
}

/* the row after the last of a tile */
static __device__ __forceinline__ PetscCount RowStreamEnd(int tile, PetscInt rows, PetscInt m)
{
  const PetscCount end = ((PetscCount)tile + 1) * rows;
  return end < m ? end : m;
}

/* One kernel of more than 100 lines: every step of a tile works on the stages, barriers and registers that the steps
   before have set up, and would need them all as arguments. The bounds leave 64 or 80 registers, of complex numbers
   128, which the batch of loads needs; without them ptxas aims at 32. */
template <class COLUMNS, int G, bool STEP>
static __global__ __launch_bounds__(256, COLUMNS::BLOCKS) void RowStreamKernel(RowStreamLayout l, int mode, PetscInt m, PetscCount nnz, PetscCount nindex, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *x, RowStep step, const HybScalar *y, HybScalar *z, COLUMNS columns)
{
  HYB_SHARED(uint64_t, bar, ROWSTREAM_STAGES);
  HYB_SHARED(PetscInt, begin, ROWSTREAM_STAGES); /* first entry of the tile in the stage, -1 where it does not fit */
  HYB_DYNAMIC_SHARED(HybScalar, value);
  using Index         = typename COLUMNS::Index;
  Index *const  index = reinterpret_cast<Index *>(value + (size_t)ROWSTREAM_STAGES * l.values);
  int *const    table = reinterpret_cast<int *>(index + (size_t)ROWSTREAM_STAGES * l.indices);
  const int     lane  = (int)(threadIdx.x & (G - 1));
  constexpr int R     = COLUMNS::ROWS;
  const int     mine  = (int)(threadIdx.x / G) * R; /* my first row in the tile */
  const int     rows = (int)l.rows, none = (int)l.ntiles, chunks = (int)l.chunks, length = (int)l.run;
  const int     stride = (int)gridDim.x / chunks, chunk = (int)blockIdx.x % chunks;
  /* my place among the tiles of the chunk: a run, and a tile in it. Divisions on each turn would take a fifth of its
     instructions. */
  int run = (int)blockIdx.x / chunks / length, in = (int)blockIdx.x / chunks % length;

  /* this tile, and the place goes on to the next one; l.ntiles and more: there is none */
  const auto tileof = [&]() {
    const int t = (run * chunks + chunk) * length + in;

    for (in += stride; in >= length; in -= length) run++;
    return t;
  };
  const auto copy = [&](PetscInt k0, PetscInt k1, int s) {
    PetscCount q0 = 0, q1 = 0;
    bool       fits = k1 - k0 / RowStreamUnit<HybScalar>() * RowStreamUnit<HybScalar>() <= l.values;
    if (COLUMNS::INDEXED) {
      q0   = columns.IndexOf(k0);
      q1   = columns.IndexOf(k1);
      fits = fits && q1 - q0 / RowStreamUnit<Index>() * RowStreamUnit<Index>() <= l.indices;
    }
    if (threadIdx.x == 0) begin[s] = fits ? (PetscInt)k0 : (PetscInt)-1;
    if (fits) {
      HybBulkExpect(&bar[s], RowStreamBytes<HybScalar>(k0, k1, nnz) + (COLUMNS::INDEXED ? RowStreamBytes<Index>(q0, q1, nindex) : 0));
      RowStreamCopy(&bar[s], value + (size_t)s * l.values, a, k0, k1, nnz);
      if (COLUMNS::INDEXED) RowStreamCopy(&bar[s], index + (size_t)s * l.indices, columns.index, q0, q1, nindex);
    } else
      HybBulkExpect(&bar[s], 0);
  };

  HybBulkInit(bar, ROWSTREAM_STAGES);
  int tile = tileof(), next = tileof(); /* this one and the one after */
#if HYB_BULK_ENGINE
  if (threadIdx.x == 0)
#endif
  {
    if (tile < none) copy(i[(PetscCount)tile * rows], i[RowStreamEnd(tile, rows, m)], 0);
    if (next < none) copy(i[(PetscCount)next * rows], i[RowStreamEnd(next, rows, m)], 1);
  }
  columns.Prepare(table);

  PetscCount            r     = (PetscCount)tile * rows + mine;
  bool                  valid = mine < rows && tile < none && r < m;
  PetscInt              start = valid ? i[r] : 0;
  int                   len   = valid ? (int)(i[r + 1] - start) : 0;
  typename COLUMNS::Row row   = columns.Load(r, valid, tile);
  HybChainWait(); /* the first tiles are under way */
  __syncthreads();
  for (int it = 0; tile < none; it++) {
    const int                   s      = it % ROWSTREAM_STAGES;
    const PetscCount            nr     = (PetscCount)next * rows + mine;
    const bool                  nvalid = mine < rows && next < none && nr < m;
    const PetscInt              nstart = nvalid ? i[nr] : 0, nend = nvalid ? i[nr + 1] : 0;
    const typename COLUMNS::Row nrow  = columns.Load(nr, nvalid, next);
    const int                   after = tileof();
    const PetscInt              k2 = COLUMNS::AHEAD && after < none ? i[(PetscCount)after * rows] : 0, k3 = COLUMNS::AHEAD && after < none ? i[RowStreamEnd(after, rows, m)] : 0;
    /* what the rows' ends need besides the sums comes while these wait for their tile. A step needs four numbers a row,
       each in the registers of its one lane. Computing with them before the tile is there would wait for them; it is
       done all the same where R rows would need too many registers. */
    constexpr int  S    = STEP ? (R + G - 1) / G : R;
    constexpr bool LATE = STEP && R <= 3;
    HybScalar      base[S], before[LATE ? S : 1], toward[STEP ? S : 1], dinv[STEP ? S : 1];
    if (STEP) {
#pragma unroll
      for (int k = 0; k < S; k++) {
        const bool       mine_ = valid && k * G + lane < R;
        const PetscCount at    = mine_ ? r + k * G + lane : 0;
        base[k]                = !mine_ ? HybScalar(0) : LATE ? step.x[at]
                                                              : RowStepBase(step, at);
        if (LATE) before[k] = mine_ && step.w ? step.w[at] : HybScalar(0);
        toward[k] = mine_ ? y[at] : HybScalar(0);
        dinv[k]   = mine_ ? step.dinv[at] : HybScalar(0);
      }
    } else {
#pragma unroll
      for (int c = 0; c < S; c++) base[c] = mode != ROW_SET && valid && lane == c % G ? y[r + c] : HybScalar(0);
    }

    HybBulkWait(&bar[s], (unsigned)(it / ROWSTREAM_STAGES) & 1u);
    const PetscInt k0 = begin[s];
    if (k0 >= 0) {
      const PetscInt first = (PetscInt)(k0 / RowStreamUnit<HybScalar>() * RowStreamUnit<HybScalar>());
      HybScalar      sum[R];
#pragma unroll
      for (int c = 0; c < R; c++) sum[c] = HybScalar(0);
      if (valid) {
        const PetscInt q0 = COLUMNS::INDEXED ? (PetscInt)(columns.IndexOf(k0) / RowStreamUnit<Index>() * RowStreamUnit<Index>()) : 0;
        columns.template Sum<G>(lane, r, start, len, value + (size_t)s * l.values - first, index + (size_t)s * l.indices - q0, table, row, x, j, sum);
      }
      /* all lanes of the warp are here; the sums side by side, so that they do not wait for each other */
#pragma unroll
      for (int d = G / 2; d > 0; d >>= 1) {
        HybScalar other[R];
#pragma unroll
        for (int c = 0; c < R; c++) other[c] = HybShflXor(HYB_FULL_MASK, sum[c], d);
#pragma unroll
        for (int c = 0; c < R; c++) sum[c] = sum[c] + other[c];
      }
#pragma unroll
      for (int c = 0; c < R; c++) {
        if (valid && lane == c % G) {
          if constexpr (STEP)
            z[r + c] = RowStepEnd(step, LATE ? RowStepBaseOf(step, base[c / G], before[LATE ? c / G : 0]) : base[c / G], dinv[c / G], toward[c / G], sum[c]);
          else
            z[r + c] = mode == ROW_SET ? sum[c] : mode == ROW_ADD ? base[c] + sum[c]
                                                                  : base[c] - sum[c];
        }
      }
    } else {
      const PetscCount r1 = RowStreamEnd(tile, rows, m);
      for (PetscCount w = (PetscCount)tile * rows + (PetscInt)(threadIdx.x / HYB_WARP); w < r1; w += (PetscInt)(blockDim.x / HYB_WARP)) {
        HybScalar sum(0);
#pragma unroll 4
        for (PetscInt k = i[w] + HybLane(); k < i[w + 1]; k += HYB_WARP) sum += a[k] * HybLoadVector(x + j[k]);
        sum = HybSubwarpSum<HYB_WARP>(sum);
        if (HybLane() == 0) RowEndOr<STEP>(mode, step, sum, y, z, w);
      }
    }
    r     = nr;
    valid = nvalid;
    start = nstart;
    len   = (int)(nend - nstart);
    row   = nrow;
    tile  = next;
    next  = after;
    __syncthreads();
#if HYB_BULK_ENGINE
    if (threadIdx.x == 0)
#endif
      if (after < none) {
        if (COLUMNS::AHEAD)
          copy(k2, k3, s);
        else
          copy(i[(PetscCount)after * rows], i[RowStreamEnd(after, rows, m)], s);
      }
  }
}

/* does x take at most so many sixths of the second-level cache? */
static inline bool RowStreamStays(const HybCSR *A, size_t sixths)
{
  size_t level2;

  (void)HybDeviceLevel2(&level2);
  return (size_t)A->n * sizeof(HybScalar) <= level2 / 6 * sixths;
}

/* All tiles of a multiprocessor in one run, which its first-level cache likes, where x stays in the second-level cache
   for as long as the matrix streams by; else as many as its blocks have at a time, so that all are at about one place
   of x */
static inline PetscInt RowStreamRun(const HybCSR *A)
{
  return RowStreamStays(A, 3) ? 0 : 4;
}

/* threads that a multiprocessor holds of the kernel with such columns, by its launch bounds */
template <class COLUMNS>
static constexpr int RowStreamHeld(void)
{
  return 256 * COLUMNS::BLOCKS;
}

static __global__ void RowStreamTileSizes(PetscInt m, PetscInt rows, PetscCount ntiles, const PetscInt *__restrict__ i, PetscInt *__restrict__ size)
{
  const PetscCount t = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (t < ntiles) {
    const PetscCount r0 = t * rows, r1 = r0 + rows < m ? r0 + rows : m;
    size[t] = i[r1] - i[r0];
  }
}

/* entries of a stage: never more than a block's memory takes, two stages, at least one unit of 16 bytes beyond each
   end */
static inline PetscCount RowStreamRoom(size_t limit, PetscInt table, size_t indexbytes)
{
  const size_t each = sizeof(HybScalar) + indexbytes, taken = (size_t)table * sizeof(int) + 1024;

  return limit / 2 > taken ? (PetscCount)((limit / 2 - taken) / (ROWSTREAM_STAGES * each)) : 0;
}

/*
  Chooses tile and stage. blockrows: rows that are summed together; perindex: values to each entry of the index stream,
  0 without one, of indexbytes each; table: ints that every tile needs. HybTuning's rowstream_threads, _lanes,
  _blocks and _run replace the choice: the tests go through all layouts. Tiles far larger than the mean are left to the
  slow way rather than making room for them everywhere. run: the tiles of a run, 0: all of a multiprocessor's; held:
  threads of the kernel's that a multiprocessor holds (RowStreamHeld()); resident: at most so many blocks of a
  multiprocessor, 0: as many as fit. longest: of the rows. Where tiles of such rows would be
  little larger than the mean, that says enough; else tiles are measured, with a host synchronisation, unless work is
  NULL.
*/
static inline PetscErrorCode RowStreamPlan(const HybExec *exec, HybArena *work, const HybCSR *A, PetscCount longest, PetscInt blockrows, PetscInt perindex, size_t indexbytes, PetscInt table, PetscInt run, int held, PetscInt resident, RowStreamLayout *l)
{
  const PetscCount mean    = PetscMax(1, (A->nnz + A->m - 1) / PetscMax(1, A->m));
  PetscCount       largest = 0, stage, meantile;
  PetscInt        *size;
  size_t           limit;
  int              sms;
  const HybTuning *tuning = HybDeviceTuning();
  const int        most   = blockrows > 1 ? 16 : 8; /* lanes: RowStreamLanes */
  /* threads of a multiprocessor that shall have work: of complex numbers each has twice as much on its way */
  const PetscCount busy = RowWide && blockrows == 1 ? 256 : 512 * (PetscCount)blockrows;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, &sms));
  memset(l, 0, sizeof(*l));
  /* short rows get tiles of 256. Long rows fill shared memory with few rows, so several lanes take each, until enough
     threads of a multiprocessor have work; so do rows whose strides of 4 and 8 entries would meet in the same banks:
     short rows only where all are of one length */
  l->threads = mean <= 14 ? 256 : 128;
  l->lanes   = mean <= 8 && A->nnz % PetscMax(1, A->m) ? 1 : mean % 8 == 0 ? 4
                                                           : mean % 4 == 0 ? 2
                                                                           : 1;
  while (l->lanes < most && (PetscCount)limit / (ROWSTREAM_STAGES * mean * (PetscCount)(sizeof(HybScalar) + (perindex ? indexbytes / (size_t)perindex : 0))) * l->lanes < busy) l->lanes *= 2;
  /* tiles of complex numbers are large: also one of rows somewhat longer than the mean shall fit into a stage */
  while (RowWide && l->lanes < most && (PetscCount)(l->threads / l->lanes) * blockrows * PetscMin(longest, mean + mean / 4 + 1) > RowStreamRoom(limit, table, perindex ? indexbytes : 0)) l->lanes *= 2;
  if (tuning->rowstream_threads) l->threads = (int)tuning->rowstream_threads;
  if (tuning->rowstream_lanes) l->lanes = PetscMin((int)tuning->rowstream_lanes, most);
  if (tuning->rowstream_run >= 0) run = tuning->rowstream_run;
  l->rows     = (PetscInt)(l->threads / l->lanes) * blockrows;
  l->table    = (table + 3) / 4 * 4;
  l->carveout = ROWSTREAM_DRIVER;
  if (l->rows == 0 || A->m == 0) PetscFunctionReturn(PETSC_SUCCESS);
  l->ntiles = HybBlocks(A->m, l->rows);
  meantile  = A->nnz / l->ntiles + 1;
  largest   = longest * PetscMin(l->rows, A->m);
  if (work && largest > meantile + meantile / 4) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), l->ntiles, sizeof(*size), &size));
    HYB_LAUNCH(RowStreamTileSizes, HybBlocks(l->ntiles, 256), 256, 0, exec->stream, A->m, l->rows, l->ntiles, A->i, size);
    PetscCall(HybReduceMax(exec, work, l->ntiles, size, &largest));
    PetscCall(HybArenaFree(work, &size));
  }
  stage   = PetscMin(largest, 2 * meantile + 64);
  stage   = PetscMin(stage, RowStreamRoom(limit, l->table, perindex ? indexbytes : 0));
  l->fits = stage >= meantile ? PETSC_TRUE : PETSC_FALSE;
  stage += 2 * RowStreamUnit<HybScalar>();
  l->values  = (PetscInt)(stage / 4 * 4 + 4);
  l->indices = perindex ? (PetscInt)((stage / perindex + 2 * (PetscCount)(16 / indexbytes)) / 8 * 8 + 8) : 0;
  l->bytes   = ROWSTREAM_STAGES * ((size_t)l->values * sizeof(HybScalar) + (size_t)l->indices * indexbytes) + (size_t)l->table * sizeof(int);
  /* just as many as are resident at once: a multiprocessor has a kibibyte more than a block may ask for, and takes one
     for each block. Blocks of a second wave, or room left for another block, cost a tenth (measured) */
  l->blocks = PetscMax(1, PetscMin((PetscCount)((limit + 1024) / (l->bytes + 1024 + 128)), held / l->threads));
  if (resident > 0) l->blocks = PetscMin(l->blocks, resident);
  if (tuning->rowstream_blocks) l->blocks = tuning->rowstream_blocks;
  if (run != 1 && l->ntiles >= sms * l->blocks) {
    l->chunks = sms;
    l->run    = (PetscInt)HybBlocks(l->ntiles, sms);
    if (run > 0) l->run = PetscMin(run, l->run);
    l->carveout = PetscMin(100, (100 * l->blocks * (PetscCount)(l->bytes + 1024 + 128) + (PetscCount)limit) / (PetscCount)(limit + 1024));
    l->blocks *= sms;
  } else {
    l->blocks = PetscMin(l->ntiles, (PetscCount)sms * l->blocks);
    l->chunks = (PetscInt)l->blocks;
    l->run    = 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* is the whole of a stream that the copy engine can read? */
static inline bool RowStreamAligned(const void *p)
{
  return ((uintptr_t)p & 15) == 0;
}

template <class COLUMNS>
static PetscErrorCode RowStreamApply(const HybExec *exec, const RowStreamLayout *l, const HybCSR *A, PetscCount nindex, const COLUMNS &columns, const HybScalar *x, const RowEnding &end)
{
  PetscFunctionBegin;
  /* A kernel keeps what was said last, for whatever matrix, and only what is said after its limit of shared memory was
     raised holds: said before every launch, then, as it was when it was measured */
  PetscCall(HybDispatch(l->lanes, typename RowStreamLanes<COLUMNS::ROWS>::Cases(), end.mode == ROW_STEP, HybFlags(), [&](auto G, auto STEP) {
    static PetscCount said = ROWSTREAM_DRIVER;
    if (l->carveout != ROWSTREAM_DRIVER || said != ROWSTREAM_DRIVER) {
      const void *kernel = (const void *)(RowStreamKernel<COLUMNS, G, STEP>);

      if (l->bytes > 16 * 1024) PetscCall(HybDeviceDynamicShared(kernel, l->bytes, "RowStreamKernel"));
      PetscCall(HybDeviceCarveout(kernel, l->carveout == ROWSTREAM_DRIVER ? -1 : (int)l->carveout));
      said = l->carveout;
    }
    HYB_LAUNCH_CHAINED(A->nnz, (RowStreamKernel<COLUMNS, G, STEP>), l->blocks, l->threads, l->bytes, exec->stream, *l, end.mode, A->m,
                       A->nnz, nindex, A->i, A->j, A->a, x, end.step, end.y, end.z, columns);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR's columns as a second stream, or (16 bits) the distances from the first column of the tile */
template <typename I>
struct RowStreamColumns {
  using Index                   = I;
  static constexpr int  BLOCKS  = 4;
  static constexpr int  ROWS    = 1;
  static constexpr bool INDEXED = true;
  static constexpr bool NARROW  = sizeof(I) == sizeof(unsigned short);
  static constexpr bool AHEAD   = true;
  const I              *index;
  const PetscInt       *base; /* of each tile, where they are narrow */
  struct Row {
    PetscInt base;
  };
  __device__ __forceinline__ PetscCount IndexOf(PetscCount k) const
  {
    return k;
  }
  __device__ __forceinline__ void Prepare(int *) const
  {
  }
  __device__ __forceinline__ Row Load(PetscCount, bool valid, PetscCount tile) const
  {
    Row row;
    row.base = NARROW && valid ? base[tile] : 0;
    return row;
  }
  template <int G>
  __device__ __forceinline__ void Sum(int lane, PetscCount, PetscInt start, int len, const HybScalar *value, const I *col, const int *, const Row &row, const HybScalar *x, const PetscInt *, HybScalar sum[]) const
  {
    const HybScalar *const xb = HybAddressFrom(x + row.base), *const v = value + start;
    const I *const c = col + start;
    for (int k = lane; k < len; k += ROWSTREAM_BATCH * G) {
      HybScalar xv[ROWSTREAM_BATCH];
#pragma unroll
      for (int u = 0; u < ROWSTREAM_BATCH; u++)
        if (k + u * G < len) xv[u] = HybLoadVector(xb + c[k + u * G]);
#pragma unroll
      for (int u = 0; u < ROWSTREAM_BATCH; u++)
        if (k + u * G < len) sum[0] += v[k + u * G] * xv[u];
    }
  }
};

/* base[t] = the smallest column of tile t; *wide is set where a tile's columns do not fit 16 bits. Where columns ascend
   in each row, its first and its last entry tell; RowStreamDistances() looks whether they do. Of blocks of bs, m and
   rows are numbers of block rows, j their columns, and i that of the entries. */
#define ROWSTREAM_LOOKERS 128
static __global__ __launch_bounds__(ROWSTREAM_LOOKERS) void RowStreamBases(PetscInt m, PetscInt rows, PetscInt bs, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *__restrict__ base, int *wide)
{
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  const PetscCount r0 = (PetscCount)blockIdx.x * rows, r1 = r0 + rows < m ? r0 + rows : m;
  PetscInt         least = PETSC_MAX_INT, most = -1;

  for (PetscCount r = r0 + threadIdx.x; r < r1; r += ROWSTREAM_LOOKERS) {
    const PetscInt start = i[r * bs] / (bs * bs), end = i[(r + 1) * bs] / (bs * bs);
    if (start < end) {
      const PetscInt first = j[start], last = j[end - 1];
      least = least < first ? least : first;
      most  = most > last ? most : last;
    }
  }
  least = HybBlockMin<ROWSTREAM_LOOKERS>(least, scratch);
  most  = HybBlockMax<ROWSTREAM_LOOKERS>(most, scratch);
  if (threadIdx.x == 0) {
    base[blockIdx.x] = most < 0 ? 0 : least;
    if (most - least > 65535) HybAtomicOr(wide, 1);
  }
}

static __global__ __launch_bounds__(ROWSTREAM_LOOKERS) void RowStreamDistances(PetscInt m, PetscInt rows, PetscInt bs, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ base, unsigned short *__restrict__ distance, int *wide)
{
  const PetscCount r0 = (PetscCount)blockIdx.x * rows, r1 = r0 + rows < m ? r0 + rows : m;
  const PetscInt   b = base[blockIdx.x], end = i[r1 * bs] / (bs * bs);
#pragma unroll 4
  for (PetscInt k = i[r0 * bs] / (bs * bs) + (PetscInt)threadIdx.x; k < end; k += ROWSTREAM_LOOKERS) {
    const PetscInt d = j[k] - b;
    distance[k]      = (unsigned short)d;
    if (d < 0 || d > 65535) HybAtomicOr(wide, 1);
  }
}

/* The distances of j, of n columns, from the first one of their tile, where 16 bits reach, else *distance is NULL. With
   a host synchronisation or two. */
static inline PetscErrorCode RowStreamNear(const HybExec *exec, HybArena *keep, HybArena *work, const RowStreamLayout *l, const HybCSR *A, PetscInt bs, PetscCount n, const PetscInt *j, PetscInt **base, unsigned short **distance)
{
  int *wide, host = 0;

  PetscFunctionBegin;
  *distance = NULL;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), l->ntiles, sizeof(**base), base));
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*wide), &wide));
  HYB_LAUNCH(RowStreamBases, l->ntiles, ROWSTREAM_LOOKERS, 0, exec->stream, A->m / bs, l->rows / bs, bs, A->i, j, *base, wide);
  PetscCall(exec->backend->copy(exec, &host, wide, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  if (!host) {
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), n, sizeof(**distance), distance));
    HYB_LAUNCH(RowStreamDistances, l->ntiles, ROWSTREAM_LOOKERS, 0, exec->stream, A->m / bs, l->rows / bs, bs, A->i, j, *base, *distance, wide);
    PetscCall(exec->backend->copy(exec, &host, wide, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->sync(exec));
    if (host) PetscCall(HybArenaFree(keep, distance)); /* rows out of order */
  }
  PetscCall(HybArenaFree(work, &wide));
  if (host) PetscCall(HybArenaFree(keep, base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
