/*
  SpMV by a speculative segmented sum (Liu and Vinter): the nonzeros are divided, not the rows, into tiles of equal size, so no row's length matters to the
  balance of work.

  A block takes a tile of TILE = 2048 entries. Values, columns and x are read all alike, products go to shared memory. The rows that begin in the
  tile are marked by one bit an entry, made on the chip from the row offsets; then each thread sums eight neighbouring products by segments, and a segmented scan
  over the threads joins what goes beyond a thread. Segments' sums are put in order in shared memory, and the rows take them from there.

  Bits cannot show an empty row: two offsets fall on one bit. The tile speculates that it has none, so that its s-th segment belongs to its s-th
  row. It has exactly when as many bits are set as rows begin in it; otherwise the tile is dirty, and is repaired at once, on the chip: a row that is not empty finds
  its segment by counting the bits up to its own, an empty one has the sum zero. (The paper writes the speculated sums to y and has the CPU re-arrange
  them afterwards: on a card across a bus that would cost more than the product, and y + A x in place could not be repaired at all. The host's
  segsum is the CPU's version.)

    first[t] = the first row that begins at or after entry t*TILE        searched by the first application, kept for the later ones
    tile t:  entries b..e-1, rows first[t] .. first[t+1]-1
      product[k] = a[b+k] x[j[b+k]];  bit i[r]-b set for each of the rows that is not empty
      sum[s] for s = 0 (what belongs to a row begun in an earlier tile), 1, 2, ... = segments in order
      clean: z[first+s-1] = sum[s];  dirty: z[r] = sum[bits up to i[r]-b] or zero
      a row that began earlier: carry[t] = sum[0]
    joining: for each row that goes on beyond the tile where it began: z[r] += the carries of the tiles it covers, in order

  Every order of addition is fixed by the pattern and the tile's size. The rows that begin in a tile are written by it alone, y may be z.

  Plan: an integer and a scalar a tile. Bytes: 12 a nonzero, 4 a row, and what x costs. The number of dirty tiles is counted by the first application.

  Reference: W. Liu, B. Vinter, Speculative segmented sum for sparse matrix-vector multiplication on heterogeneous processors, Parallel Computing 49, 2015.
*/
#include "../../csr/rowops.cuh"
#include "aijhybridgpu/private/hybspmv.h"

#define SEGSUM_THREADS 256
#define SEGSUM_ITEMS   8
#define SEGSUM_TILE    (SEGSUM_THREADS * SEGSUM_ITEMS)
#define SEGSUM_WORDS   (SEGSUM_TILE / 32)
/* a gap after each thread's eight products: without it all lanes would read from the same banks */
#define SEGSUM_AT(k) ((k) + (k) / SEGSUM_ITEMS)

typedef struct {
  PetscCount  ntiles;
  PetscInt   *first; /* ntiles+1 */
  HybScalar  *carry; /* ntiles */
  PetscCount *found; /* dirty tiles, empty rows */
} SegSum;

/* first r in [0, m] with i[r] >= k */
static __device__ __forceinline__ PetscInt SegSumFirstRow(const PetscInt *i, PetscInt m, PetscCount k)
{
  PetscInt from = 0, to = m;
  while (from < to) {
    const PetscInt mid = from + (to - from) / 2;
    if (i[mid] < k) from = mid + 1;
    else to = mid;
  }
  return from;
}

static __device__ __forceinline__ HybScalar SegSumEnd(int mode, HybScalar sum, const HybScalar *y, PetscInt r)
{
  return mode == ROW_SET ? sum : mode == ROW_ADD ? y[r] + sum : y[r] - sum;
}

/* FIRST: the first application, which searches the rows and counts what is dirty. VECTOR: j and a are aligned to 16 bytes */
template <bool FIRST, bool VECTOR>
static __global__ __launch_bounds__(SEGSUM_THREADS, 4) void SegSumTiles(int mode, PetscInt m, PetscCount nnz, PetscCount ntiles, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *__restrict__ x, PetscInt *first, HybScalar *__restrict__ carry, PetscCount *found, const HybScalar *y, HybScalar *z)
{
  HYB_SHARED(HybScalar, product, SEGSUM_AT(SEGSUM_TILE) + 2);
  HYB_SHARED(unsigned, bits, SEGSUM_WORDS);
  HYB_SHARED(int, before, SEGSUM_WORDS); /* bits set before each word */
  HYB_SHARED(HybScalar, warptail, SEGSUM_THREADS / HYB_WARP);
  HYB_SHARED(int, warphead, SEGSUM_THREADS / HYB_WARP);
  HYB_SHARED(int, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, range, 2);
  const int        t    = (int)threadIdx.x, warp = t / HYB_WARP;
  const PetscCount tile = blockIdx.x, b = tile * SEGSUM_TILE;
  const int        n    = nnz - b < SEGSUM_TILE ? (int)(nnz - b) : SEGSUM_TILE;

  if (t < SEGSUM_WORDS) bits[t] = 0;
  if (FIRST) {
    if (t == 0) range[0] = tile == 0 ? 0 : SegSumFirstRow(i, m, b);
    if (t == HYB_WARP) range[1] = tile + 1 == ntiles ? m : SegSumFirstRow(i, m, b + SEGSUM_TILE);
  }
  __syncthreads();
  const PetscInt r0 = FIRST ? range[0] : first[tile], r1 = FIRST ? range[1] : first[tile + 1];

  /* entries on their way to registers, while the rows are marked */
  constexpr int G  = 4;                                                            /* neighbouring entries of a thread */
  constexpr int VJ = 16 / sizeof(PetscInt) < G ? (int)(16 / sizeof(PetscInt)) : G; /* of them in one access */
  constexpr int VA = sizeof(HybScalar) < 16 ? (int)(16 / sizeof(HybScalar)) : 1;
  const bool    whole = VECTOR && n == SEGSUM_TILE;
  PetscInt      col[SEGSUM_ITEMS];
  HybScalar     v[SEGSUM_ITEMS];
  if (whole) {
#pragma unroll
    for (int u = 0; u < SEGSUM_ITEMS / G; u++) {
      const PetscCount k = b + (PetscCount)(u * SEGSUM_THREADS + t) * G;
#pragma unroll
      for (int s = 0; s < G; s += VJ) {
        const HybVec<PetscInt, VJ> c = HybLoadStream((const HybVec<PetscInt, VJ> *)(j + k + s));
#pragma unroll
        for (int q = 0; q < VJ; q++) col[u * G + s + q] = c.v[q];
      }
#pragma unroll
      for (int s = 0; s < G; s += VA) {
        const HybVec<HybScalar, VA> c = HybLoadStream((const HybVec<HybScalar, VA> *)(a + k + s));
#pragma unroll
        for (int q = 0; q < VA; q++) v[u * G + s + q] = c.v[q];
      }
    }
  }

  /* one bit where a row begins */
  for (PetscInt r = r0 + t; r < r1; r += SEGSUM_THREADS) {
    const PetscInt start = i[r], p = (PetscInt)(start - b);
    if (p < n && i[r + 1] > start) HybAtomicOr(&bits[p >> 5], 1u << (p & 31));
  }
  if (FIRST && t == 0) {
    first[tile] = r0;
    if (tile + 1 == ntiles) first[ntiles] = r1;
  }

  /* products */
  if (whole) {
#pragma unroll
    for (int q = 0; q < SEGSUM_ITEMS; q++) v[q] = HybMul(v[q], HybLoadReadOnly(x + col[q]));
#pragma unroll
    for (int q = 0; q < SEGSUM_ITEMS; q++) product[SEGSUM_AT((q / G * SEGSUM_THREADS + t) * G + q % G)] = v[q];
  } else {
    for (int k = t; k < SEGSUM_TILE; k += SEGSUM_THREADS) product[SEGSUM_AT(k)] = k < n ? HybMul(a[b + k], HybLoadReadOnly(x + j[b + k])) : HybScalar(0);
  }
  __syncthreads();
  int       nheads;
  const int mywords = t < SEGSUM_WORDS ? __popc(bits[t]) : 0;
  const int sofar   = HybBlockExclusiveSum<SEGSUM_THREADS>(mywords, scratch, &nheads);
  if (t < SEGSUM_WORDS) before[t] = sofar;

  /* eight products of mine: what comes before my first head, whole segments, what comes after my last head */
  const unsigned heads = (bits[t >> 2] >> (8 * (t & 3))) & 0xffu;
  HybScalar      sums[SEGSUM_ITEMS], tail(0);
#pragma unroll
  for (int q = 0; q < SEGSUM_ITEMS; q++) {
    const HybScalar p = product[t * (SEGSUM_ITEMS + 1) + q];
    if (heads & (1u << q)) {
      sums[q] = tail; /* the segment that ends before q */
      tail    = p;
    } else {
      sums[q] = HybScalar(0);
      tail    = q ? tail + p : p;
    }
  }
  /* segmented scan of the tails over the lanes, then over the warps */
  HybScalar sum  = tail;
  int       head = heads != 0;
#pragma unroll
  for (int d = 1; d < HYB_WARP; d <<= 1) {
    const HybScalar s = HybShflUp(HYB_FULL_MASK, sum, d);
    const int       h = __shfl_up_sync(HYB_FULL_MASK, head, d);
    if (HybLane() >= d) {
      if (!head) sum = s + sum;
      head |= h;
    }
  }
  if (HybLane() == HYB_WARP - 1) {
    warptail[warp] = sum;
    warphead[warp] = head;
  }
  HybScalar carried = HybShflUp(HYB_FULL_MASK, sum, 1); /* of the lanes before me */
  int       cut     = __shfl_up_sync(HYB_FULL_MASK, head, 1);
  if (HybLane() == 0) {
    carried = HybScalar(0);
    cut     = 0;
  }
  __syncthreads(); /* and all products are read: their place is free for the sums */
  if (!cut) {
    HybScalar c(0);
    for (int w = 0; w < warp; w++) c = warphead[w] ? warptail[w] : c + warptail[w];
    carried = c + carried;
  }
  int segment = before[t >> 2] + __popc(bits[t >> 2] & ((1u << (8 * (t & 3))) - 1u)); /* heads before my products = number of the segment open there */
  {
    bool started = false;
#pragma unroll
    for (int q = 0; q < SEGSUM_ITEMS; q++)
      if (heads & (1u << q)) {
        product[segment] = started ? sums[q] : carried + sums[q];
        started          = true;
        segment++;
      }
    if (t == SEGSUM_THREADS - 1) product[segment] = started ? tail : carried + tail; /* the last segment ends with the tile */
  }
  __syncthreads();

  /* the rows take their sums */
  if (r1 - r0 == nheads) {
    for (PetscInt r = r0 + t; r < r1; r += SEGSUM_THREADS) z[r] = SegSumEnd(mode, product[r - r0 + 1], y, r);
  } else {
    for (PetscInt r = r0 + t; r < r1; r += SEGSUM_THREADS) {
      HybScalar      of(0);
      const PetscInt p = (PetscInt)(i[r] - b);
      if (i[r + 1] > i[r]) of = product[before[p >> 5] + __popc(bits[p >> 5] & (0xffffffffu >> (31 - (p & 31))))];
      z[r] = SegSumEnd(mode, of, y, r);
    }
    if (FIRST && t == 0) {
      HybAtomicAdd(&found[0], (PetscCount)1);
      HybAtomicAdd(&found[1], (PetscCount)(r1 - r0 - nheads));
    }
  }
  if (t == 0) carry[tile] = product[0];
}

/* rows that go on beyond the tile where they began: the first tile after that one adds the carries */
static __global__ void SegSumJoin(int mode, PetscCount ntiles, const PetscInt *__restrict__ i, const PetscInt *__restrict__ first, const HybScalar *__restrict__ carry, HybScalar *z)
{
  const PetscCount tile = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x + 1, b = tile * SEGSUM_TILE;
  if (tile < ntiles) {
    const PetscInt r = first[tile] - 1; /* the last row that begins before this tile */
    if (r >= 0 && i[r + 1] > b && i[r] >= b - SEGSUM_TILE) {
      const PetscCount last = (i[r + 1] - 1) / SEGSUM_TILE;
      HybScalar        sum  = carry[tile];
#pragma unroll 8
      for (PetscCount q = tile + 1; q <= last; q++) sum += carry[q]; /* the longest row decides how long this takes: loads ahead */
      z[r] = mode == ROW_RESIDUAL ? z[r] - sum : z[r] + sum;
    }
  }
}

static __global__ void SegSumEmpty(int mode, PetscInt m, const HybScalar *y, HybScalar *z)
{
  const PetscCount r = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (r < m) z[r] = SegSumEnd(mode, HybScalar(0), y, (PetscInt)r);
}

static PetscErrorCode HybSpMVSetUp_SegSumCUDA(HybSpMV *S, const HybCSR *A)
{
  const HybExec *exec = &S->exec;
  SegSum        *seg;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*seg), &seg));
  seg->ntiles = HybBlocks(A->nnz, SEGSUM_TILE);
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), seg->ntiles + 1, sizeof(*seg->first), &seg->first));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), seg->ntiles, sizeof(*seg->carry), &seg->carry));
  PetscCall(HybArenaCalloc(&S->keep, HYB_WORK(exec), 2, sizeof(*seg->found), &seg->found));
  PetscCall(HybCountersSet(&S->counters, "tiles", seg->ntiles));
  PetscCall(HybCountersSet(&S->counters, "dirty tiles", 0));
  PetscCall(HybCountersSet(&S->counters, "empty rows", 0));
  S->data = seg;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_SegSumCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const HybExec *exec    = &S->exec;
  const SegSum  *seg     = (const SegSum *)S->data;
  const bool     aligned = (((uintptr_t)A->a | (uintptr_t)A->j) & 15) == 0;

  PetscFunctionBegin;
  if (seg->ntiles == 0) {
    HYB_LAUNCH(SegSumEmpty, HybBlocks(A->m, SEGSUM_THREADS), SEGSUM_THREADS, 0, exec->stream, (int)mode, A->m, y, z);
    PetscCall(HybCountersSet(&S->counters, "empty rows", A->m));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#define CALL(FIRST, VECTOR) HYB_LAUNCH((SegSumTiles<FIRST, VECTOR>), seg->ntiles, SEGSUM_THREADS, 0, exec->stream, (int)mode, A->m, A->nnz, seg->ntiles, A->i, A->j, A->a, x, seg->first, seg->carry, seg->found, y, z)
  if (S->calls == 0) {
    if (aligned) CALL(true, true);
    else CALL(true, false);
  } else {
    if (aligned) CALL(false, true);
    else CALL(false, false);
  }
#undef CALL
  HYB_LAUNCH(SegSumJoin, HybBlocks(seg->ntiles - 1, SEGSUM_THREADS), SEGSUM_THREADS, 0, exec->stream, (int)mode, seg->ntiles, A->i, seg->first, seg->carry, z);
  if (S->calls == 0) {
    PetscCount found[2];

    PetscCall(exec->backend->copy(exec, found, seg->found, sizeof(found), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->sync(exec));
    PetscCall(HybCountersSet(&S->counters, "dirty tiles", found[0]));
    PetscCall(HybCountersSet(&S->counters, "empty rows", found[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HybSpMV_SegSumCUDA;
HYB_EXTERN_C_END
const HybSpMVMethod HybSpMV_SegSumCUDA = {"segsum", NULL, HybSpMVSetUp_SegSumCUDA, HybSpMVApply_SegSumCUDA, NULL};
