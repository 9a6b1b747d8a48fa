/*
  SpMV by a speculative segmented sum (Liu and Vinter): the nonzeros are divided, not the rows, into tiles of equal
  size, so no row's length matters to the balance of work.

  A block takes tiles of THREADS * V entries, V neighbouring ones a thread. Values and columns stream to shared memory
  by the bulk copy engine, the next tile's while this one is summed; V is odd, so that lanes which read their own V
  entries from there meet no bank twice. The rows that begin in a tile are marked by one bit an entry; each thread sums
  its products by segments, and a segmented scan over the lanes and warps joins what goes beyond a thread. Segments'
  sums are put in order in shared memory, and the rows take them from there.

  Bits cannot show an empty row: two offsets fall on one bit. The tile speculates that it has none, so that its s-th
  segment belongs to its s-th row. It has exactly when as many bits are set as rows begin in it; otherwise the tile is
  dirty, and is repaired at once, on the chip: a row that is not empty finds its segment by counting the bits up to its
  own, an empty one has the sum zero.

  The paper writes the speculated sums out and has the CPU, which shares the memory there, re-arrange those of dirty
  tiles afterwards. -mat_aijhybridgpu_tuning segsum_repair=cpu does so: speculated sums of dirty tiles go to a vector of
  their own, across the bus to the host, re-arranged, and back, in each application. On a card behind a bus that costs
  far more than the product; it is there to be compared with.

    first[t] = the first row that begins at or after the first entry of tile t     | found by the first application,
    heads[t, thread] = V bits                                                      | kept for the later ones
    tile t:  entries b..e-1, rows first[t] .. first[t+1]-1
      product[k] = a[b+k] x[j[b+k]]
      sum[s] for s = 0 (what belongs to a row begun in an earlier tile), 1, 2, ... = segments in order
      clean: z[first+s-1] = sum[s];  dirty: z[r] = sum[bits up to i[r]-b] or zero
      a row that began earlier: carry[t] = sum[0]
    joining: for each row that goes on beyond the tile where it began: z[r] += the carries of the tiles it covers, in
    order

  Joining is a launch of its own. Parts handed on within the one launch (a fence, a counter, whoever comes last adds)
  were tried and cost more: a fence empties the first-level cache of its multiprocessor, and all x with it.

  Every order of addition is fixed by the pattern and the tile's size. The rows that begin in a tile are written by it
  alone, y may be z.

  Plan: a bit an entry; an integer and a scalar a tile. Bytes: 12 a nonzero, and what x and the result cost. The first
  application reads the row offsets as well; it counts the dirty tiles.

  Reference: W. Liu, B. Vinter, Speculative segmented sum for sparse matrix-vector multiplication on heterogeneous
  processors, Parallel Computing 49, 2015.
*/
#include "rowstream.cuh"
#include "aijhybridgpu/private/hybspmv.h"

#define SEGSUM_MAX_THREADS 256
#define SEGSUM_MAX_WARPS   (SEGSUM_MAX_THREADS / HYB_WARP)
#define SEGSUM_STAGES      2
#define SEGSUM_SEARCHERS   256

typedef struct {
  int            threads, items, blocks; /* of a block; entries of a thread; blocks of the grid */
  size_t         bytes;                  /* dynamic shared memory */
  PetscCount     ntiles;
  PetscInt      *first; /* ntiles+1 */
  unsigned char *heads; /* threads a tile */
  HybScalar     *carry; /* a tile: what it adds to a row begun earlier */
  PetscCount    *found; /* dirty tiles, empty rows */
  /* repair by the CPU alone */
  PetscBool      cpu;
  HybScalar     *speculated, *hostsums; /* by rows, as if none were empty */
  unsigned char *dirty, *hostdirty;     /* a tile */
  PetscInt      *hostfirst, *hosti;
} SegSum;

/* first[t] = the first r in [0, m] with i[r] >= t*size; the end: m */
static __global__ void SegSumSearch(PetscInt m, PetscCount size, PetscCount ntiles, const PetscInt *__restrict__ i, PetscInt *__restrict__ first)
{
  const PetscCount t = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (t <= ntiles) {
    PetscInt from = 0, to = m;
    while (from < to && t < ntiles) {
      const PetscInt mid = from + (to - from) / 2;
      if (i[mid] < t * size)
        from = mid + 1;
      else
        to = mid;
    }
    first[t] = t == 0 ? 0 : t == ntiles ? m
                                        : from;
  }
}

/* One kernel of more than 100 lines: a tile's heads, products and sums stay in registers and shared memory from the
   first step to the last. FIRST: the first application, which finds the heads and counts what is dirty. STREAM: j and a
   are aligned to 16 bytes. */
template <int V, bool FIRST, bool STREAM>
static __global__ __launch_bounds__(SEGSUM_MAX_THREADS, 3) void SegSumTiles(int mode, PetscInt m, PetscCount nnz, PetscCount ntiles, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *__restrict__ x, const PetscInt *__restrict__ first, unsigned char *heads, HybScalar *__restrict__ carry, PetscCount *found, unsigned char *dirty, HybScalar *speculated, const HybScalar *y, HybScalar *z)
{
  HYB_SHARED(uint64_t, bar, SEGSUM_STAGES);
  /* heads of each thread, and above 8 bits the number of heads before it */
  HYB_SHARED(unsigned, word, SEGSUM_MAX_THREADS);
  HYB_SHARED(HybScalar, warptail, SEGSUM_MAX_WARPS);
  HYB_SHARED(int, warpheads, SEGSUM_MAX_WARPS);
  HYB_DYNAMIC_SHARED(HybScalar, values);
  const int        t = (int)threadIdx.x, T = (int)blockDim.x, warp = t / HYB_WARP, nwarps = T / HYB_WARP, size = T * V;
  const int        room    = size + 4; /* one more sum than entries; a multiple of 4 */
  PetscInt *const  indices = reinterpret_cast<PetscInt *>(values + SEGSUM_STAGES * room);
  const PetscCount stride  = gridDim.x;

  const auto copy = [&](PetscCount tile, int s) {
    if (tile >= ntiles) return;
    const PetscCount b = tile * size, e = b + size < nnz ? b + size : nnz;
    if (STREAM) {
      HybBulkExpect(&bar[s], RowStreamBytes<HybScalar>(b, e, nnz) + RowStreamBytes<PetscInt>(b, e, nnz));
      RowStreamCopy(&bar[s], values + s * room, a, b, e, nnz);
      RowStreamCopy(&bar[s], indices + s * size, j, b, e, nnz);
    } else {
      for (int k = t; k < e - b; k += T) {
        values[s * room + k]  = a[b + k];
        indices[s * size + k] = j[b + k];
      }
    }
  };

  if (STREAM) HybBulkInit(bar, SEGSUM_STAGES);
#if HYB_BULK_ENGINE
  if (!STREAM || t == 0)
#endif
  {
    for (int s = 0; s < SEGSUM_STAGES; s++) copy(blockIdx.x + s * stride, s);
  }
  PetscInt r0 = 0, r1 = 0;
  unsigned mine = 0;
  if (blockIdx.x < ntiles) {
    r0 = first[blockIdx.x];
    r1 = first[blockIdx.x + 1];
    if (!FIRST) mine = heads[(PetscCount)blockIdx.x * T + t];
  }
  __syncthreads();
  for (PetscCount tile = blockIdx.x, it = 0; tile < ntiles; tile += stride, it++) {
    const int        s     = (int)(it % SEGSUM_STAGES);
    const PetscCount b     = tile * size;
    const int        n     = nnz - b < size ? (int)(nnz - b) : size;
    HybScalar *const value = values + s * room;
    const PetscInt  *col   = indices + s * size;
    PetscInt         nr0 = 0, nr1 = 0;
    unsigned         nmine = 0;
    if (tile + stride < ntiles) {
      nr0 = first[tile + stride];
      nr1 = first[tile + stride + 1];
      if (!FIRST) nmine = heads[(tile + stride) * T + t];
    }
    HybScalar base(0);
    if (mode != ROW_SET && t < r1 - r0) base = y[(PetscCount)r0 + t];

    if (FIRST) {
      word[t] = 0;
      __syncthreads();
      for (PetscCount r = (PetscCount)r0 + t; r < r1; r += T) {
        const PetscInt start = i[r], p = (PetscInt)(start - b);
        if (p < n && i[r + 1] > start) HybAtomicOr(&word[p / V], 1u << (p % V));
      }
      __syncthreads();
      mine                            = word[t];
      heads[tile * (PetscCount)T + t] = (unsigned char)mine;
    }
    if (STREAM) HybBulkWait(&bar[s], (unsigned)(it / SEGSUM_STAGES) & 1u);

    /* products of mine: what comes before my first head, whole segments, what comes after my last head */
    HybScalar p[V], tail(0);
    if (n == size) {
#pragma unroll
      for (int q = 0; q < V; q++) p[q] = HybLoadReadOnly(x + col[t * V + q]);
#pragma unroll
      for (int q = 0; q < V; q++) p[q] = HybMul(value[t * V + q], p[q]);
    } else {
#pragma unroll
      for (int q = 0; q < V; q++) p[q] = t * V + q < n ? HybMul(value[t * V + q], HybLoadReadOnly(x + col[t * V + q])) : HybScalar(0);
    }
#pragma unroll
    for (int q = 0; q < V; q++) {
      if (mine & (1u << q)) {
        const HybScalar begun = p[q];
        p[q]                  = tail; /* the segment that ends before q */
        tail                  = begun;
      } else
        tail = q ? tail + p[q] : p[q];
    }
    /* segmented scan of the tails over the lanes, then over the warps */
    const unsigned lanes = __ballot_sync(HYB_FULL_MASK, mine != 0), upper = lanes & (HybLanesBelow() | (1u << HybLane()));
    /* lanes back to the nearest with a head */
    const int back = upper ? HybLane() - (31 - __clz((int)upper)) : HYB_WARP;
    HybScalar sum  = tail;
#pragma unroll
    for (int d = 1; d < HYB_WARP; d <<= 1) {
      const HybScalar u = HybShflUp(HYB_FULL_MASK, sum, d);
      if (HybLane() >= d && back >= d) sum = u + sum;
    }
    /* heads before me in the warp, by the bits of their numbers */
    int before = 0, count = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
      const unsigned bit = __ballot_sync(HYB_FULL_MASK, (__popc(mine) >> d) & 1);
      before += __popc(bit & HybLanesBelow()) << d;
      count += __popc(bit) << d;
    }
    if (HybLane() == HYB_WARP - 1) {
      warptail[warp]  = sum;
      warpheads[warp] = count;
    }
    HybScalar carried = HybShflUp(HYB_FULL_MASK, sum, 1); /* of the lanes before me */
    if (HybLane() == 0) carried = HybScalar(0);
    __syncthreads(); /* and all values are read: their place is free for the sums */
    int       nheads = 0;
    HybScalar c(0);
    for (int w = 0; w < nwarps; w++) {
      const int k = warpheads[w];
      if (w < warp) {
        before += k;
        c = k ? warptail[w] : c + warptail[w];
      }
      nheads += k;
    }
    if (!(lanes & HybLanesBelow())) carried = c + carried;
    int segment = before;
#pragma unroll
    for (int q = 0; q < V; q++)
      if (mine & (1u << q)) {
        value[segment++] = carried + p[q];
        carried          = HybScalar(0);
      }
    if (t == T - 1) value[segment] = carried + tail; /* the last segment ends with the tile */
    word[t] = (unsigned)before << 8 | mine;
    __syncthreads();

    /* the rows take their sums */
    if (r1 - r0 == nheads) {
      for (PetscCount r = (PetscCount)r0 + t; r < r1; r += T) {
        const HybScalar v = value[r - r0 + 1];
        if (r != (PetscCount)r0 + t) base = mode == ROW_SET ? base : y[r];
        z[r] = mode == ROW_SET ? v : mode == ROW_ADD ? base + v
                                                     : base - v;
      }
    } else if (speculated) {
      for (int k = t; k < nheads; k += T) speculated[r0 + k] = value[k + 1];
    } else {
      for (PetscCount r = (PetscCount)r0 + t; r < r1; r += T) {
        HybScalar      v(0);
        const PetscInt start = i[r], k = (PetscInt)(start - b);
        if (i[r + 1] > start) {
          const unsigned w = word[k / V];
          v                = value[(w >> 8) + __popc(w & 0xffu & (0xffu >> (7 - k % V)))];
        }
        RowEnd(mode, v, y, z, r);
      }
    }
    if (FIRST && t == 0) {
      if (r1 - r0 != nheads) {
        HybAtomicAdd(&found[0], (PetscCount)1);
        HybAtomicAdd(&found[1], (PetscCount)(r1 - r0 - nheads));
      }
      if (speculated) dirty[tile] = r1 - r0 != nheads;
    }
    if (t == 0) carry[tile] = value[0];
    r0   = nr0;
    r1   = nr1;
    mine = nmine;
    if (STREAM) HybBulkFence();
    __syncthreads();
#if HYB_BULK_ENGINE
    if (!STREAM || t == 0)
#endif
      copy(tile + SEGSUM_STAGES * stride, s);
  }
}

/* rows that go on beyond the tile where they began: the first tile after that one adds the carries */
static __global__ void SegSumJoin(int mode, PetscCount size, PetscCount ntiles, const PetscInt *__restrict__ i, const PetscInt *__restrict__ first, const HybScalar *__restrict__ carry, HybScalar *z)
{
  const PetscCount tile = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x + 1, b = tile * size;
  if (tile < ntiles) {
    const PetscInt r = first[tile] - 1; /* the last row that begins before this tile */
    if (r >= 0 && i[r + 1] > b && i[r] >= b - size) {
      const PetscCount last = (i[r + 1] - 1) / size;
      HybScalar        sum  = carry[tile];
#pragma unroll 8
      /* the longest row decides how long this takes: loads ahead */
      for (PetscCount q = tile + 1; q <= last; q++) sum += carry[q];
      z[r] = mode == ROW_RESIDUAL ? z[r] - sum : z[r] + sum;
    }
  }
}

/* the rows of dirty tiles take the sums that the CPU has put in order */
static __global__ void SegSumRepaired(int mode, const unsigned char *__restrict__ dirty, const PetscInt *__restrict__ first, const HybScalar *__restrict__ sums, const HybScalar *y, HybScalar *z)
{
  if (dirty[blockIdx.x])
    for (PetscCount r = first[blockIdx.x] + (PetscCount)threadIdx.x; r < first[blockIdx.x + 1]; r += blockDim.x) RowEnd(mode, sums[r], y, z, r);
}

static __global__ void SegSumEmpty(int mode, PetscInt m, const HybScalar *y, HybScalar *z)
{
  const PetscCount r = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (r < m) RowEnd(mode, HybScalar(0), y, z, r);
}

static PetscErrorCode HybSpMVSetUp_SegSumCUDA(HybSpMV *S, const HybCSR *A)
{
  const HybExec   *exec   = &S->exec;
  const HybTuning *tuning = HybDeviceTuning();
  PetscInt         blocks = tuning->segsum_blocks;
  SegSum          *seg;
  size_t           limit;
  int              sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, &sms));
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*seg), &seg));
  memset(seg, 0, sizeof(*seg));
  seg->threads = (int)tuning->segsum_threads;
  seg->items   = (int)tuning->segsum_items;
  {
    const PetscCount size = (PetscCount)seg->threads * seg->items;

    seg->bytes  = SEGSUM_STAGES * ((size_t)(size + 4) * sizeof(HybScalar) + (size_t)size * sizeof(PetscInt));
    seg->ntiles = HybBlocks(A->nnz, size);
    if (!blocks) blocks = (PetscInt)PetscMax(1, PetscMin((PetscCount)(limit / (seg->bytes + 4096)), 1024 / seg->threads));
    seg->blocks = (int)PetscMin(seg->ntiles, (PetscCount)sms * blocks);
  }
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), seg->ntiles + 1, sizeof(*seg->first), &seg->first));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), seg->ntiles * seg->threads, sizeof(*seg->heads), &seg->heads));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), seg->ntiles, sizeof(*seg->carry), &seg->carry));
  PetscCall(HybArenaCalloc(&S->keep, HYB_WORK(exec), 2, sizeof(*seg->found), &seg->found));
  PetscCall(HybCountersSet(&S->counters, "tiles", seg->ntiles));
  PetscCall(HybCountersSet(&S->counters, "dirty tiles", 0));
  PetscCall(HybCountersSet(&S->counters, "empty rows", 0));
  seg->cpu = (PetscBool)(tuning->segsum_repair == 1);
  if (seg->cpu) {
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), A->m, sizeof(*seg->speculated), &seg->speculated));
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), seg->ntiles, sizeof(*seg->dirty), &seg->dirty));
    PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, A->m, sizeof(*seg->hostsums), &seg->hostsums));
    PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, seg->ntiles, sizeof(*seg->hostdirty), &seg->hostdirty));
    PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, seg->ntiles + 1, sizeof(*seg->hostfirst), &seg->hostfirst));
    PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, (PetscCount)A->m + 1, sizeof(*seg->hosti), &seg->hosti));
    /* rows of clean tiles cross the bus too */
    PetscCall(exec->backend->zero(exec, seg->speculated, (size_t)A->m * sizeof(*seg->speculated)));
  }
  S->data = seg;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* between the tiles' sums and the joining */
static PetscErrorCode SegSumRepairByCPU(HybSpMV *S, const HybCSR *A, const SegSum *seg, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const HybExec *exec     = &S->exec;
  PetscCount     repaired = 0;

  PetscFunctionBegin;
  if (S->calls == 0) {
    PetscCall(exec->backend->copy(exec, seg->hostdirty, seg->dirty, (size_t)seg->ntiles, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->copy(exec, seg->hostfirst, seg->first, ((size_t)seg->ntiles + 1) * sizeof(*seg->first), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->copy(exec, seg->hosti, A->i, ((size_t)A->m + 1) * sizeof(*A->i), HYB_COPY_DEVICE_TO_HOST));
  }
  PetscCall(exec->backend->copy(exec, seg->hostsums, seg->speculated, (size_t)A->m * sizeof(*seg->speculated), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  for (PetscCount t = 0; t < seg->ntiles; t++) {
    const PetscInt r0 = seg->hostfirst[t], *i = seg->hosti;
    PetscInt       sums = 0;

    if (!seg->hostdirty[t]) continue;
    for (PetscInt r = r0; r < seg->hostfirst[t + 1]; r++) sums += i[r + 1] > i[r];
    /* from behind: a row's sum stands at or before its own place */
    for (PetscInt r = seg->hostfirst[t + 1]; r-- > r0;) seg->hostsums[r] = i[r + 1] > i[r] ? seg->hostsums[r0 + --sums] : HybScalar(0);
    repaired++;
  }
  PetscCall(HybCountersSet(&S->counters, "tiles repaired by the CPU", repaired));
  if (!repaired) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(exec->backend->copy(exec, seg->speculated, seg->hostsums, (size_t)A->m * sizeof(*seg->speculated), HYB_COPY_HOST_TO_DEVICE));
  HYB_LAUNCH(SegSumRepaired, seg->ntiles, SEGSUM_SEARCHERS, 0, exec->stream, (int)mode, seg->dirty, seg->first, seg->speculated, y, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int V>
static PetscErrorCode SegSumLaunch(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const HybExec *exec    = &S->exec;
  const SegSum  *seg     = (const SegSum *)S->data;
  const bool     aligned = RowStreamAligned(A->a) && RowStreamAligned(A->j);

  PetscFunctionBegin;
  if (S->calls == 0)
    HYB_LAUNCH(SegSumSearch, HybBlocks(seg->ntiles + 1, SEGSUM_SEARCHERS), SEGSUM_SEARCHERS, 0, exec->stream, A->m,
               (PetscCount)seg->threads * V, seg->ntiles, A->i, seg->first);
  PetscCall(HybDispatch(S->calls == 0, HybFlags(), aligned, HybFlags(), [&](auto FIRST, auto STREAM) {
    HYB_LAUNCH((SegSumTiles<V, FIRST, STREAM>), seg->blocks, seg->threads, seg->bytes, exec->stream, (int)mode, A->m,
               A->nnz, seg->ntiles, A->i, A->j, A->a, x, seg->first, seg->heads, seg->carry, seg->found, seg->dirty,
               seg->speculated, y, z);
    return PETSC_SUCCESS;
  }));
  if (seg->cpu) PetscCall(SegSumRepairByCPU(S, A, seg, mode, y, z));
  HYB_LAUNCH(SegSumJoin, HybBlocks(seg->ntiles - 1, SEGSUM_SEARCHERS), SEGSUM_SEARCHERS, 0, exec->stream, (int)mode, (PetscCount)seg->threads * V, seg->ntiles, A->i, seg->first, seg->carry, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_SegSumCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const HybExec *exec = &S->exec;
  const SegSum  *seg  = (const SegSum *)S->data;

  PetscFunctionBegin;
  if (seg->ntiles == 0) {
    HYB_LAUNCH(SegSumEmpty, HybBlocks(A->m, SEGSUM_SEARCHERS), SEGSUM_SEARCHERS, 0, exec->stream, (int)mode, A->m, y, z);
    PetscCall(HybCountersSet(&S->counters, "empty rows", A->m));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybDispatch(seg->items, HybCases<3, 5, 7>(), [&](auto V) { return SegSumLaunch<V>(S, A, x, mode, y, z); }));
  if (S->calls == 0) {
    PetscCount found[2];

    PetscCall(exec->backend->copy(exec, found, seg->found, sizeof(found), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->sync(exec));
    PetscCall(HybCountersSet(&S->counters, "dirty tiles", found[0]));
    PetscCall(HybCountersSet(&S->counters, "empty rows", found[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a plan is not needed, whatever the rows are */
static PetscErrorCode HybSpMVFitsOnce_SegSumCUDA(HybSpMV *, const HybCSR *, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HybSpMV_SegSumCUDA;
HYB_EXTERN_C_END
const HybSpMVMethod HybSpMV_SegSumCUDA = {
  .name     = "segsum",
  .setup    = HybSpMVSetUp_SegSumCUDA,
  .apply    = HybSpMVApply_SegSumCUDA,
  .fitsonce = HybSpMVFitsOnce_SegSumCUDA,
};
