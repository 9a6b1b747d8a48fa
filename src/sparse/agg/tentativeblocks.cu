/*
  tentativeblocks.cu: the tentative prolongator of several near-null vectors on the device; tentativeblocks.c has the
  algorithm and the order of sums, which are the host's.

  A warp factors an aggregate, in place: its rows of B are copied to the rows of q, which lie wherever the vertices are,
  and become Q there. Lane l has the rows k = l modulo 32 and touches no others; what all need (the pivot's row) is
  summed or sent by shuffles. The factors tau stay in lane j's register.

  Doubtful blocks are listed. Where the caller has a factorization for them, they are packed, one behind
  the other, filled up with zeros, sent to the host, factored, and sent back.

  Memory: an integer for each aggregate; for the listed blocks twice their size. Time: O(n bs nvec^2).
*/
#include "aggops.cuh"
#include "column.h"

namespace {

struct Blocks {
  PetscInt         n, nc, bs, nvec;
  const PetscInt  *begin, *member;
  const HybScalar *b;
  HybScalar       *q, *coarse;
};

/* of row k of an aggregate whose members these are */
static __device__ __forceinline__ PetscCount BlockRow(const Blocks &a, const PetscInt *member, PetscInt k)
{
  return (PetscCount)member[k / a.bs] * a.bs + k % a.bs;
}

static __device__ __forceinline__ PetscReal BlockEntry(const Blocks &a, PetscCount row, PetscInt t)
{
  return a.b ? HYB_AGG_REAL(a.b[(PetscCount)t * ((PetscCount)a.n * a.bs) + row]) : PetscReal((PetscInt)(row % a.bs) == t ? 1 : 0);
}

/* q's row k of an aggregate, an entry each REALS numbers: of complex ones the real part, the other one is 0 */
constexpr PetscInt REALS = sizeof(HybScalar) / sizeof(PetscReal);

static __device__ __forceinline__ PetscReal *BlockQRow(const Blocks &a, const PetscInt *member, PetscInt k)
{
  return reinterpret_cast<PetscReal *>(a.q + BlockRow(a, member, k) * a.nvec);
}

static __device__ __forceinline__ PetscReal &BlockQ(const Blocks &a, const PetscInt *member, PetscInt k, PetscInt t)
{
  return BlockQRow(a, member, k)[REALS * t];
}

/* the first row behind row j that is this lane's */
static __device__ __forceinline__ PetscInt LaneRow(PetscInt j, int lane)
{
  const PetscInt k = j - j % HYB_WARP + lane;

  return k > j ? k : k + HYB_WARP;
}

/* the norm of what column j has below row j; 0 only for zeros */
static __device__ PetscReal WarpNorm(const Blocks &a, const PetscInt *member, PetscInt j, PetscInt m, int lane)
{
  PetscReal sum = 0, most = 0;

  for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) {
    const PetscReal x = BlockQ(a, member, k, j);

    sum = sum + x * x;
  }
  sum = HybSubwarpSum<HYB_WARP>(sum);
  if (!HybAggExtreme(sum)) return PetscSqrtReal(sum);
  for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) most = HybAggLarger(most, BlockQ(a, member, k, j));
  most = HybSubwarpReduce<HYB_WARP>(most, [](PetscReal x, PetscReal y) { return HybAggLarger(x, y); });
  if (most == 0) return 0;
  const PetscReal scale = HybAggScale(most, 0);
  sum                   = 0;
  for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) sum = HybAggAddSquare(sum, BlockQ(a, member, k, j), scale);
  return PetscSqrtReal(HybSubwarpSum<HYB_WARP>(sum)) / scale;
}

/* column c -= tau v (v^T column c), v being what column j has below row j, and 1; did that change it? */
static __device__ bool WarpReflect(const Blocks &a, const PetscInt *member, PetscInt j, PetscInt c, PetscInt m, PetscReal tau, int lane)
{
  const bool owner = lane == j % HYB_WARP;
  PetscReal  sum   = owner ? BlockQ(a, member, j, c) : 0;

  for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) {
    const PetscReal *const row = BlockQRow(a, member, k);

    sum = sum + row[REALS * j] * row[REALS * c];
  }
  const PetscReal w = tau * HybSubwarpSum<HYB_WARP>(sum);
  if (owner) BlockQ(a, member, j, c) -= w;
  for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) {
    PetscReal *const row = BlockQRow(a, member, k);

    row[REALS * c] -= row[REALS * j] * w;
  }
  return w != 0;
}

/* what a warp knows of the steps: lane j of step j */
struct Steps {
  PetscReal tau, alpha, norm;
  bool      changed; /* was column j, before it? */
};

/* R, whose row k is lane k's; is the block doubtful? */
static __device__ bool WarpTriangle(const Blocks &a, const PetscInt *member, PetscInt c, PetscInt m, const Steps &s, int lane)
{
  const PetscCount ld       = (PetscCount)a.nc * a.nvec;
  const PetscInt   steps    = m < a.nvec ? m : a.nvec;
  bool             doubtful = false;

  for (PetscInt t = 0; t < a.nvec; t++) {
    const PetscReal r = lane <= t && lane < steps ? BlockQ(a, member, lane, t) : 0;

    if (lane < a.nvec) a.coarse[(PetscCount)t * ld + (PetscCount)c * a.nvec + lane] = r;
    const PetscReal most = HybSubwarpReduce<HYB_WARP>(HybAggLarger(0, r), [](PetscReal x, PetscReal y) { return HybAggLarger(x, y); });
    if (lane == t && s.changed) doubtful = m < a.nvec || HybAggDoubtful(r, s.alpha, s.norm, (PetscBool)(t == m - 1), most);
  }
  return HybSubwarpReduce<HYB_WARP>((int)doubtful, HybMax()) != 0;
}

/* a warp an aggregate; list: of the doubtful ones */
__global__ void Factor(Blocks a, PetscInt *__restrict__ list, PetscInt *__restrict__ nlist)
{
  const int        lane = HybLane();
  const PetscCount c    = ((PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x) / HYB_WARP;

  if (c >= a.nc) return;
  const PetscInt *const member = a.member + a.begin[c];
  const PetscInt        m = (a.begin[c + 1] - a.begin[c]) * a.bs, steps = m < a.nvec ? m : a.nvec;
  Steps                 s = {0, 0, 0, false};

  for (PetscInt k = lane; k < m; k += HYB_WARP) {
    const PetscCount row = BlockRow(a, member, k);
    PetscReal *const q   = BlockQRow(a, member, k);

    for (PetscInt t = 0; t < a.nvec; t++) q[REALS * t] = BlockEntry(a, row, t);
  }
  for (PetscInt j = 0; j < steps; j++) {
    const PetscReal norm = WarpNorm(a, member, j, m, lane), alpha = HybShfl(HYB_FULL_MASK, lane == j ? BlockQ(a, member, j, j) : (PetscReal)0, (int)j);
    PetscReal       beta = alpha, tau = 0, divisor;

    if (norm != 0) {
      HybAggReflect(alpha, norm, &beta, &tau, &divisor);
      for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) BlockQ(a, member, k, j) /= divisor;
      for (PetscInt t = j + 1; t < a.nvec; t++) {
        const bool changed = WarpReflect(a, member, j, t, m, tau, lane);

        if (lane == t) s.changed = s.changed || changed;
      }
    }
    if (lane != j) continue;
    BlockQ(a, member, j, j) = beta;
    s.tau                   = tau;
    s.alpha                 = alpha;
    s.norm                  = norm;
  }
  const bool doubtful = WarpTriangle(a, member, (PetscInt)c, m, s, lane);
  if (lane == 0 && doubtful) list[HybAtomicAdd(nlist, 1)] = (PetscInt)c;
  for (PetscInt k = lane; k < m; k += HYB_WARP)
    for (PetscInt t = steps; t < a.nvec; t++) BlockQ(a, member, k, t) = 0;
  for (PetscInt j = steps - 1; j >= 0; j--) {
    const PetscReal tau = HybShfl(HYB_FULL_MASK, s.tau, (int)j);

    for (PetscInt t = j + 1; t < a.nvec && tau != 0; t++) WarpReflect(a, member, j, t, m, tau, lane);
    for (PetscInt k = LaneRow(j, lane); k < m; k += HYB_WARP) {
      PetscReal &x = BlockQ(a, member, k, j);

      x = tau == 0 ? 0 : -tau * x;
    }
    if (lane == j) BlockQ(a, member, j, j) = 1 - tau;
    if (lane < j) BlockQ(a, member, lane, j) = 0;
  }
}

/* a block a listed aggregate, whose columns lie one behind the other from offset nvec on: B, or Q and R that came
   back */
__global__ void Pack(Blocks a, const PetscInt *__restrict__ list, const PetscCount *__restrict__ offset, PetscReal *__restrict__ packed)
{
  const PetscInt        c = list[blockIdx.x], m = (a.begin[c + 1] - a.begin[c]) * a.bs;
  const PetscInt *const member = a.member + a.begin[c];
  const PetscCount      rows   = offset[blockIdx.x + 1] - offset[blockIdx.x];

  for (PetscCount e = threadIdx.x; e < rows * a.nvec; e += AGG_THREADS) {
    const PetscInt k = (PetscInt)(e % rows);

    packed[offset[blockIdx.x] * a.nvec + e] = k < m ? BlockEntry(a, BlockRow(a, member, k), (PetscInt)(e / rows)) : PetscReal(0);
  }
}

__global__ void Unpack(Blocks a, const PetscInt *__restrict__ list, const PetscCount *__restrict__ offset, const PetscReal *__restrict__ packed, const PetscReal *__restrict__ R)
{
  const PetscInt        c = list[blockIdx.x], m = (a.begin[c + 1] - a.begin[c]) * a.bs;
  const PetscInt *const member = a.member + a.begin[c];
  const PetscCount      rows   = offset[blockIdx.x + 1] - offset[blockIdx.x];

  for (PetscCount e = threadIdx.x; e < rows * a.nvec; e += AGG_THREADS) {
    const PetscInt k = (PetscInt)(e % rows);

    if (k < m) BlockQ(a, member, k, (PetscInt)(e / rows)) = packed[offset[blockIdx.x] * a.nvec + e];
  }
  for (PetscInt e = (PetscInt)threadIdx.x; e < a.nvec * a.nvec; e += AGG_THREADS) a.coarse[(PetscCount)(e / a.nvec) * ((PetscCount)a.nc * a.nvec) + (PetscCount)c * a.nvec + e % a.nvec] = R[(PetscCount)blockIdx.x * a.nvec * a.nvec + e];
}

/* the listed aggregates by the caller's factorization */
PetscErrorCode Again(const HybExec *exec, HybArena *work, const Blocks &a, PetscInt nlist, const PetscInt *list, HybAggFactor factor, void *ctx)
{
  const HybBackend *be = exec->backend;
  PetscCount       *size, *offset, *hostoffset, rows;
  PetscReal        *packed, *R, *hostpacked, *hostR;
  size_t            bytes, Rbytes;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, nlist, sizeof(PetscCount), &size));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)nlist + 1, sizeof(PetscCount), &offset));
  HYB_FOR_EACH(exec, nlist, [a, list, size] __device__(PetscCount l) {
    const PetscInt m = (a.begin[list[l] + 1] - a.begin[list[l]]) * a.bs;

    size[l] = (PetscCount)(m > a.nvec ? m : a.nvec); /* filled up */
  });
  PetscCall(HybScanCounts64(exec, work, nlist, size, offset, nullptr, &rows));
  PetscCall(HybArenaFree(work, &size));
  bytes  = (size_t)rows * a.nvec * sizeof(PetscReal);
  Rbytes = (size_t)nlist * a.nvec * a.nvec * sizeof(PetscReal);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, rows, a.nvec * sizeof(PetscReal), &packed));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, nlist, (size_t)a.nvec * a.nvec * sizeof(PetscReal), &R));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, rows, a.nvec * sizeof(PetscReal), &hostpacked));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, nlist, (size_t)a.nvec * a.nvec * sizeof(PetscReal), &hostR));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)nlist + 1, sizeof(PetscCount), &hostoffset));
  HYB_LAUNCH(Pack, nlist, AGG_THREADS, 0, exec->stream, a, list, offset, packed);
  PetscCall(be->copy(exec, hostoffset, offset, ((size_t)nlist + 1) * sizeof(PetscCount), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(be->copy(exec, hostpacked, packed, bytes, HYB_COPY_DEVICE_TO_HOST));
  for (PetscInt l = 0; l < nlist; l++) PetscCall((*factor)(ctx, (PetscInt)(hostoffset[l + 1] - hostoffset[l]), a.nvec, hostpacked + hostoffset[l] * a.nvec, hostR + (size_t)l * a.nvec * a.nvec));
  PetscCall(be->copy(exec, packed, hostpacked, bytes, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(be->copy(exec, R, hostR, Rbytes, HYB_COPY_HOST_TO_DEVICE));
  HYB_LAUNCH(Unpack, nlist, AGG_THREADS, 0, exec->stream, a, list, offset, packed, R);
  PetscCall(HybArenaFree(work, &hostoffset, &hostR, &hostpacked, &R, &packed, &offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode HybAggTentative_CUDA(const HybExec *exec, HybArena *work, const HybAggregates *agg, const HybAggLists *lists, const HybAggBlock *block, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *q, HybScalar *coarse, PetscInt *doubtful)
{
  const Blocks a = {agg->n, agg->nc, block->bs, block->nvec, lists ? lists->begin : nullptr, lists ? lists->member : nullptr, b, q, coarse};
  PetscInt    *list, *nlist, found = 0;

  PetscFunctionBegin;
  if (doubtful) *doubtful = 0;
  if (HybAggIsScalar(block)) {
    PetscCall(HybAggColumns_CUDA(exec, work, agg, b, q, coarse));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(a.nvec >= 1 && a.nvec <= HYB_AGG_VECTORS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "1 to %d near-null vectors are factored, not %" PetscInt_FMT, HYB_AGG_VECTORS, a.nvec);
  PetscCheck(b || a.nvec == a.bs, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "Of %" PetscInt_FMT " unknowns a vertex there are as many translations, not %" PetscInt_FMT, a.bs, a.nvec);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, a.nc, sizeof(PetscInt), &list));
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, 1, sizeof(PetscInt), &nlist));
  PetscCall(exec->backend->zero(exec, q, (size_t)a.n * a.bs * a.nvec * sizeof(HybScalar)));
  HYB_LAUNCH(Factor, HybBlocks((PetscCount)a.nc * HYB_WARP, AGG_THREADS), AGG_THREADS, 0, exec->stream, a, list, nlist);
  PetscCall(exec->backend->copy(exec, &found, nlist, sizeof(found), HYB_COPY_DEVICE_TO_HOST));
  if (found && factor) PetscCall(Again(exec, work, a, found, list, factor, ctx));
  PetscCall(HybArenaFree(work, &nlist, &list));
  if (doubtful) *doubtful = found;
  PetscFunctionReturn(PETSC_SUCCESS);
}
