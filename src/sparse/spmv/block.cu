/*
  SpMV by blocks, for matrices of several unknowns to a point: one column index is read for each bs x bs block.

  The pattern must consist of whole blocks: bs rows with the same columns, in groups of bs that begin at multiples of
  bs. structure/rowblocks.cu finds them, and the blocks' columns, nnz/bs^2 of them. These stream through shared memory
  with the values (rowstream.cuh), which stay where CSR has them. Where 16 bits reach, they are distances from the
  tile's first one.

    sum of row r = sum over blocks q of its block row, c < bs: value[start + q bs + c] * x[column[q] bs + c]

  One to sixteen threads sum the rows of a block row together, so each entry of x is fetched once for bs products.

  Where neighbouring points have neighbouring numbers (structured grids; meshes numbered by Cuthill-McKee), most blocks
  stand right behind another of their row, a thread takes whole blocks, and its neighbours the next. Where fewer than a
  quarter do, x is met in no order, and 24 bytes of it cost a sector or two of second-level cache each time: 1.2 GB
  beside the 2 GB that come from memory, in a mesh of 100^3 points numbered at random within windows of 2000. There a
  multiprocessor takes neighbouring tiles, four blocks at a time instead of six, so that its first-level cache has room
  for what they share (rowstream.cuh, "runs"), and the threads go along entries, bs of them side by side on a block.

  Rows of hundreds of entries (coarse operators of multigrid, restrictions) make tiles that shared memory cannot hold.
  There a warp takes a block row, or four warps where block rows are few, or sixteen where they are also very long,
  straight from global memory: each lane has an entry of all bs rows at a time, neighbouring lanes neighbouring ones,
  and one x for them. Of small blocks columns of the next entries are under way while these wait for x; for large ones
  that is one load more among many.

    for k = lane, lane + lanes, ... < length of a row: x = x[column[k / bs] bs + k mod bs]
      for c < bs: sum[c] += value[start + c length + k] * x
    sums over the lanes by a butterfly, over the warps in order

  "auto" takes this method for every matrix of such blocks, one from a structured grid too: shape would read less, but
  fetch x for every product. It does not where one row is very much longer than the others (a constraint that couples
  all unknowns).

  Plan: 2/bs^2 or 4/bs^2 bytes a nonzero. Bytes of an application: 8 and these a nonzero, 4 a row, and x and y.
*/
#include "../structure/rowblocks.cuh"
#include "rowstream.cuh"
#include "ending.cuh"

/* loads of x in flight for a thread that goes along entries: 16 threads have 81 entries to take of 27 blocks of 3 */
#define BLOCK_BATCH 6

/* ENTRIES: the lanes go along entries, not blocks, so that BS neighbouring lanes read one block of x; I: block columns,
   or 16 bits: their distances from the first one of the tile */
template <int BS, bool ENTRIES, class I>
struct RowStreamBlock {
  using Index                   = I;
  static constexpr int  BLOCKS  = RowWide ? 2 : 3; /* complex numbers take twice the registers */
  static constexpr int  ROWS    = BS;
  static constexpr bool INDEXED = true;
  static constexpr bool AHEAD   = false;
  static constexpr bool NARROW  = sizeof(I) == sizeof(unsigned short);
  const I              *index; /* block row by block row */
  const PetscInt       *base;  /* of each tile, where they are narrow */
  struct Row {
    PetscInt base;
  };
  __device__ __forceinline__ PetscCount IndexOf(PetscCount k) const
  {
    return k / (BS * BS);
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
  __device__ __forceinline__ void Sum(int lane, PetscCount, PetscInt start, int len, const HybScalar *value, const I *col, const int *, const Row &row, const HybScalar *x0, const PetscInt *, HybScalar sum[]) const
  {
    const HybScalar *const x = x0 + (PetscCount)row.base * BS;
    if (ENTRIES) {
      const I         *c  = col + start / (BS * BS);
      const HybScalar *v0 = value + start;
      for (int k = lane; k < len; k += BLOCK_BATCH * G) {
        HybScalar xv[BLOCK_BATCH];
        PetscInt  at[BLOCK_BATCH];
        /* no load is asked for whether it is wanted: what lies beyond the row's end reads the last x again */
#pragma unroll
        for (int u = 0; u < BLOCK_BATCH; u++) {
          const unsigned q = (unsigned)(k + u * G < len ? k + u * G : len - 1);
          at[u]            = (PetscInt)c[q / BS] * BS + (PetscInt)(q % BS);
        }
#pragma unroll
        for (int u = 0; u < BLOCK_BATCH; u++) xv[u] = HybLoadVector(x + at[u]);
#pragma unroll
        for (int u = 0; u < BLOCK_BATCH; u++)
          if (k + u * G < len) {
#pragma unroll
            for (int r = 0; r < BS; r++) sum[r] += v0[r * len + k + u * G] * xv[u];
          }
      }
      return;
    }
    constexpr int BATCH = ROWSTREAM_BATCH / BS > 0 ? ROWSTREAM_BATCH / BS : 1;
    const int     nb    = len / BS;
    const I      *c     = col + start / (BS * BS);
    for (int q = lane; q < nb; q += BATCH * G) {
      HybScalar xv[BATCH * BS];
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const bool       in = q + u * G < nb;
        const HybScalar *xq = x + (in ? (PetscCount)c[q + u * G] * BS : 0);
#pragma unroll
        for (int s = 0; s < BS; s++) xv[u * BS + s] = in ? HybLoadVector(xq + s) : HybScalar(0);
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++)
        if (q + u * G < nb) {
#pragma unroll
          for (int r = 0; r < BS; r++) {
#pragma unroll
            for (int s = 0; s < BS; s++) sum[r] += value[start + r * len + (q + u * G) * BS + s] * xv[u * BS + s];
          }
        }
    }
  }
};

#define BLOCK_THREADS 128
/* entries of a lane that are under way together, each BS values and an x; of large blocks four warps take a row of up
   to BLOCK_MANY_ENTRIES at once */
#define BLOCK_BATCHES(BS, W) ((BS) <= 4 || (W) == HYB_WARP ? 4 : (W) == BLOCK_THREADS ? BLOCK_MANY_ENTRIES / BLOCK_THREADS \
                                                                                      : 2)
/* entries of a warp's lane up to which a row is the warp's alone */
#define BLOCK_ALONE(BS) ((BS) > 4 ? 2 : 4)
/* block rows of fewer threads than these together have four warps each, if that leaves a lane more than one batch */
#define BLOCK_FEW ((PetscCount)1 << 16)
/* threads of a block row, where four warps would have more than five entries a lane */
#define BLOCK_MANY         512
#define BLOCK_MANY_ENTRIES 640
#define BLOCK_SIZE(W)      ((W) > BLOCK_THREADS ? (W) : BLOCK_THREADS)

/* W threads to a block row */
template <int BS, int W, bool STEP>
static __global__ __launch_bounds__(BLOCK_SIZE(W)) void BlockRowsDirect(int mode, RowStep step, PetscInt n, const PetscInt *__restrict__ i, const PetscInt *__restrict__ column, const HybScalar *__restrict__ a, const HybScalar *x, const HybScalar *y, HybScalar *z)
{
  HybChainWait();
  constexpr int    U = BLOCK_BATCHES(BS, W), WARPS = W / HYB_WARP;
  const PetscCount q     = (PetscCount)blockIdx.x * (BLOCK_SIZE(W) / W) + threadIdx.x / W;
  const int        lane  = (int)(threadIdx.x % W);
  const bool       valid = q < n;
  const PetscInt   r = (PetscInt)(valid ? q : 0) * BS, start = i[r], len = valid ? i[r + 1] - start : 0;
  const PetscInt  *c = column + start / (BS * BS);
  const HybScalar *v = a + start;
  HybScalar        sum[BS];
  constexpr bool   AHEAD = BS <= 4;
  PetscInt         at[U];
  const auto       entry = [&](PetscInt k, int u) { return (unsigned)(k + u * W < len ? k + u * W : k); };
  const auto       fetch = [&](PetscInt k) {
#pragma unroll
    for (int u = 0; u < U; u++) at[u] = c[entry(k, u) / BS];
  };

#pragma unroll
  for (int b = 0; b < BS; b++) sum[b] = HybScalar(0);
  if (AHEAD && lane < len) fetch(lane);
  for (PetscInt k = lane; k < len; k += U * W) {
    HybScalar xv[U], av[U][BS];
    if (!AHEAD) fetch(k);
#pragma unroll
    for (int u = 0; u < U; u++) {
      const unsigned e = entry(k, u);
      xv[u]            = HybLoadVector(x + ((PetscCount)at[u] * BS + e % BS));
#pragma unroll
      for (int b = 0; b < BS; b++) av[u][b] = v[(PetscCount)b * len + e];
    }
    if (AHEAD && k + U * W < len) fetch(k + U * W);
#pragma unroll
    for (int u = 0; u < U; u++)
      if (k + u * W < len) {
#pragma unroll
        for (int b = 0; b < BS; b++) sum[b] += av[u][b] * xv[u];
      }
  }
#pragma unroll
  for (int b = 0; b < BS; b++) sum[b] = HybSubwarpSum<HYB_WARP>(sum[b]);
  if constexpr (W == HYB_WARP) {
#pragma unroll
    for (int b = 0; b < BS; b++)
      if (valid && lane == b) RowEndOr<STEP>(mode, step, sum[b], y, z, r + b);
  } else {
    HYB_SHARED(HybScalar, part, WARPS * BS);

#pragma unroll
    for (int b = 0; b < BS; b++)
      if (HybLane() == b) part[threadIdx.x / HYB_WARP * BS + b] = sum[b];
    __syncthreads();
    if (threadIdx.x < BS && valid) {
      HybScalar all = part[threadIdx.x];
      for (int w = 1; w < WARPS; w++) all = all + part[w * BS + threadIdx.x];
      RowEndOr<STEP>(mode, step, all, y, z, r + threadIdx.x);
    }
  }
}

typedef struct {
  PetscInt        bs;
  PetscInt        direct;  /* threads of a block row that is not streamed, 0: all are */
  PetscInt        longest; /* entries of a row */
  PetscCount      nblocks;
  PetscInt       *column;   /* or, of a stream, NULL: then */
  unsigned short *distance; /* from the base of each tile */
  PetscInt       *base;
  PetscBool       entries;
  RowStreamLayout layout;
} Block;

#define BLOCK_NEAR_SURE ((size_t)64 << 20) /* bytes for which no card is asked */
#define BLOCK_SCATTERED 4                  /* blocks of a multiprocessor where x is met in no order */

/* a row of so many entries, and of so many mean rows, is cut into pieces by rowgroup: the one warp that it has here
   would be the last by far */
#define BLOCK_LONGEST 4096
#define BLOCK_MEANS   16

/* threads of a block row, of which there are so many, of so many entries; alone: BLOCK_ALONE() */
static PetscInt BlockThreads(PetscCount rows, PetscCount entries, int alone)
{
  if (rows * HYB_WARP >= BLOCK_FEW || entries <= HYB_WARP * alone) return HYB_WARP;
  return rows * BLOCK_THREADS < BLOCK_FEW && entries > BLOCK_MANY_ENTRIES ? BLOCK_MANY : BLOCK_THREADS;
}

/* of a matrix that another method takes */
static PetscErrorCode BlockFree(HybSpMV *S, Block **b)
{
  PetscFunctionBegin;
  PetscCall(HybArenaFree(&S->keep, &(*b)->column, &(*b)->distance, &(*b)->base, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockCreate(HybSpMV *S, const HybCSR *A)
{
  Block    *b;
  RowBlocks found;
  PetscBool scattered;

  PetscFunctionBegin;
  S->data = NULL;
  PetscCall(HybRowBlocksFind(&S->exec, &S->keep, &S->work, A, S->bs, &found));
  if (found.bs == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*b), &b));
  memset(b, 0, sizeof(*b));
  b->bs      = found.bs;
  b->nblocks = A->nnz / (found.bs * found.bs);
  b->longest = found.longest;
  b->column  = found.column;
  scattered  = (PetscBool)((PetscCount)found.near * ROWBLOCKS_ASKED * 4 < b->nblocks && RowStreamStays(A, 4));
  b->entries = scattered;
  PetscCall(RowStreamPlan(&S->exec, &S->work, A, found.longest, found.bs, found.bs * found.bs, sizeof(PetscInt), 0, scattered ? 0 : 1, RowStreamHeld<RowStreamBlock<1, false, PetscInt>>(), scattered ? BLOCK_SCATTERED : 0, &b->layout));
  if (b->layout.rows == 0) {
    PetscCall(BlockFree(S, &b));
  } else {
    const PetscInt   lanes = HybDeviceTuning()->block_lanes;
    const PetscCount rows  = A->m / b->bs;

    if (lanes > 1)
      b->direct = lanes;
    else if (lanes == 0 && !b->layout.fits)
      b->direct = BlockThreads(rows, A->nnz / A->m, BLOCK_ALONE(b->bs));
  }
  S->data = b;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A stream of distances needs no columns; the layout stays, and so do the bits. Only for a moment there are both. */
static PetscErrorCode BlockNear(HybSpMV *S, const HybCSR *A, Block *b)
{
  size_t spare = BLOCK_NEAR_SURE;

  PetscFunctionBegin;
  if (b->direct || S->once || HybDeviceTuning()->rowgroup_near == 0) PetscFunctionReturn(PETSC_SUCCESS);
  if ((size_t)b->nblocks * sizeof(*b->distance) > spare) PetscCall(HybMemorySpare(&S->exec, &spare));
  if ((size_t)b->nblocks * sizeof(*b->distance) > spare) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(RowStreamNear(&S->exec, &S->keep, &S->work, &b->layout, A, b->bs, b->nblocks, b->column, &b->base, &b->distance));
  if (b->distance) PetscCall(HybArenaFree(&S->keep, &b->column));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVFits_BlockCUDA(HybSpMV *S, const HybCSR *A, PetscBool *fits)
{
  Block *b;

  PetscFunctionBegin;
  PetscCall(BlockCreate(S, A));
  b = (Block *)S->data;
  if (b && b->longest > BLOCK_LONGEST && b->longest > BLOCK_MEANS * (A->nnz / A->m)) PetscCall(BlockFree(S, &b));
  S->data = b;
  *fits   = b ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_BlockCUDA(HybSpMV *S, const HybCSR *A)
{
  Block *b;

  PetscFunctionBegin;
  if (!S->data) PetscCall(BlockCreate(S, A));
  b = (Block *)S->data;
  PetscCheck(b, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method block cannot run: the pattern of this matrix, %" PetscInt_FMT " x %" PetscInt_FMT ", does not consist of whole blocks of size %s", A->m, A->n, S->bs > 1 ? "given" : "2, 3, 4, 5, 6 or 8");
  PetscCall(BlockNear(S, A, b));
  PetscCall(HybCountersSet(&S->counters, "block size", b->bs));
  PetscCall(HybCountersSet(&S->counters, "blocks", b->nblocks));
  if (b->direct)
    PetscCall(HybCountersSet(&S->counters, "threads a block row", b->direct));
  else {
    PetscCall(HybCountersSet(&S->counters, "rows a tile", b->layout.rows));
    PetscCall(HybCountersSet(&S->counters, "threads along entries", b->entries));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int BS>
static PetscErrorCode BlockLaunch(HybSpMV *S, const HybCSR *A, const HybScalar *x, const RowEnding &end)
{
  const Block    *b      = (const Block *)S->data;
  const PetscInt  n      = A->m / BS; /* block rows */
  RowStreamLayout layout = b->layout;

  PetscFunctionBegin;
  if (!RowStreamAligned(A->a)) layout.values = 0; /* no tile fits: the slow way */
  if (b->direct) {
    PetscCall(HybDispatch((int)b->direct, HybCases<HYB_WARP, BLOCK_THREADS, BLOCK_MANY>(), end.mode == ROW_STEP, HybFlags(), [&](auto W, auto STEP) {
      HYB_LAUNCH_CHAINED(A->nnz, (BlockRowsDirect<BS, W, STEP>), HybBlocks(n, BLOCK_SIZE(W) / W), BLOCK_SIZE(W), 0, S->exec.stream, end.mode,
                         end.step, n, A->i, b->column, A->a, x, end.y, end.z);
      return PETSC_SUCCESS;
    }));
  } else {
    PetscCall(HybDispatch((bool)b->entries, HybFlags(), b->distance != NULL, HybFlags(), [&](auto ENTRIES, auto NEAR) {
      using I = std::conditional_t<NEAR, unsigned short, PetscInt>;

      const RowStreamBlock<BS, ENTRIES, I> columns = {NEAR ? (const I *)b->distance : (const I *)b->column, b->base};
      return RowStreamApply(&S->exec, &layout, A, b->nblocks, columns, x, end);
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_BlockCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(HybDispatch(((const Block *)S->data)->bs, RowBlocksSizes(), [&](auto BS) { return BlockLaunch<BS>(S, A, x, RowEndingWithFirst(S, mode, y, z)); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVStep_BlockCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCall(HybDispatch(((const Block *)S->data)->bs, RowBlocksSizes(), [&](auto BS) { return BlockLaunch<BS>(S, A, x, RowEndingOfStep(x, step)); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool HybSpMVBegins_BlockCUDA(const HybSpMV *S)
{
  return (PetscBool)(((const Block *)S->data)->direct > 0);
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HYB_PRECISION(HybSpMV_BlockCUDA);
HYB_EXTERN_C_END
const HybSpMVMethod HYB_PRECISION(HybSpMV_BlockCUDA) = {
  .name   = "block",
  .fits   = HybSpMVFits_BlockCUDA,
  .setup  = HybSpMVSetUp_BlockCUDA,
  .apply  = HybSpMVApply_BlockCUDA,
  .step   = HybSpMVStep_BlockCUDA,
  .begins = HybSpMVBegins_BlockCUDA,
};
