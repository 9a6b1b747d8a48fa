/*
  plan.cu: row costs and bins on the device.

  Row costs. The products of row r of A*B are the lengths of the rows of B that the row names, added up. A sub-warp of W
  lanes takes a row, W from the mean length of A's rows, or a warp where rows are few; rows of more than 64 entries to a
  lane wait until their block is through with the others and then get the whole block, so that one dense row costs no
  more than the rest. As many blocks as the card holds go through all rows. The statistics are sums and maxima of
  integers, gathered by one atomic a block: they do not depend on the run.

  Bins. Rows sort into few bins in two launches without workspace, in any order within a bin: blocks count their rows of
  each bin in shared memory and add the counts up; then each block takes room in each bin by one atomic.

  Reference: Liu, Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
  processors, JPDC 85 (2015), stages 1 and 2.
*/
#include "bins.cuh"
#include "../structure/each.cuh"

#define COSTS_THREADS 256
#define COSTS_BLOCKS  6  /* of a multiprocessor: 40 registers */
#define COSTS_LONG    64 /* entries of A to a lane from which a row gets a block */
#define ANYORDER_ROWS 4  /* rows of a thread */
/* up to so many rows a thread has one, so that they are spread over the card; HYB_PLAN_SUMS() knows */
#define ANYORDER_FEW 131072

struct RowCostsStats {
  PetscCount products, lower, maxrow;
  PetscInt   maxarow, maxbrow, alike;
};

static __device__ __forceinline__ void RowCostsAdd(RowCostsStats &s, PetscCount sum, PetscInt most, PetscInt len)
{
  s.products += sum;
  s.lower += most;
  s.maxrow  = HybMax()(s.maxrow, sum);
  s.maxarow = HybMax()(s.maxarow, len);
  s.maxbrow = HybMax()(s.maxbrow, most);
}

/* one atomic a block for each figure */
static __device__ void RowCostsPublish(const RowCostsStats &s, PetscCount *stats)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  const PetscCount products = HybBlockSum<COSTS_THREADS>(s.products, scratch);
  const PetscCount lower    = HybBlockSum<COSTS_THREADS>(s.lower, scratch);
  const PetscCount maxrow   = HybBlockMax<COSTS_THREADS>(s.maxrow, scratch);
  const PetscCount maxarow  = HybBlockMax<COSTS_THREADS>((PetscCount)s.maxarow, scratch);
  const PetscCount maxbrow  = HybBlockMax<COSTS_THREADS>((PetscCount)s.maxbrow, scratch);
  const PetscCount alike    = HybBlockSum<COSTS_THREADS>((PetscCount)s.alike, scratch);

  if (threadIdx.x == 0) {
    if (products) HybAtomicAdd(&stats[0], products);
    if (lower) HybAtomicAdd(&stats[1], lower);
    if (maxrow) HybAtomicMax(&stats[2], maxrow);
    if (maxarow) HybAtomicMax(&stats[3], maxarow);
    if (maxbrow) HybAtomicMax(&stats[4], maxbrow);
    if (alike) HybAtomicAdd(&stats[5], alike);
  }
}

static __device__ __forceinline__ PetscInt RowCostsLength(const PetscInt *__restrict__ bi, const PetscInt *__restrict__ blen, PetscInt c)
{
  return blen ? blen[c] : bi[c + 1] - bi[c];
}

/* lengths of the rows of B named by entries k, k+step, ... of a row of len: their sum and the longest. Four are under
   way together; past the end the last one is read again, which costs less than loads under conditions. Int: int where
   the row is known to be short */
template <typename Int>
static __device__ __forceinline__ void RowCostsWalk(Int k, Int len, Int step, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ blen, PetscCount &sum, PetscInt &most)
{
  sum = most = 0;
  for (; k < len; k += 4 * step) {
    PetscInt c[4], n[4];

#pragma unroll
    for (int u = 0; u < 4; u++) c[u] = aj[u * step < len - k ? k + u * step : len - 1];
#pragma unroll
    for (int u = 0; u < 4; u++) n[u] = RowCostsLength(bi, blen, c[u]);
#pragma unroll
    for (int u = 0; u < 4; u++) {
      sum += u * step < len - k ? n[u] : 0;
      most = HybMax()(most, n[u]);
    }
    if (len - k <= 4 * step) break; /* k does not pass 2^31 */
  }
}

/* entries begin .. end - 1 are so many, and from the first column to the last it is as far */
static __device__ __forceinline__ bool RowCostsLike(const PetscInt *__restrict__ aj, PetscInt begin, PetscInt end, PetscInt len, PetscInt width)
{
  return end - begin == len && (len == 0 || aj[end - 1] - aj[begin] == width);
}

template <int W>
__global__ void __launch_bounds__(COSTS_THREADS, COSTS_BLOCKS) RowCostsKernel(PetscInt m, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ blen, HybPlanUnless unless, PetscCount *__restrict__ rowcost, PetscCount *stats)
{
  HYB_SHARED(PetscInt, longrows, COSTS_THREADS / W);
  HYB_SHARED(int, nlong, 1);
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  const int        l    = HybLane() & (W - 1);
  const PetscCount step = (PetscCount)gridDim.x * (COSTS_THREADS / W), first = (PetscCount)blockIdx.x * (COSTS_THREADS / W);
  RowCostsStats    s = {0, 0, 0, 0, 0, 0};
  PetscCount       sum;
  PetscInt         most;
  bool             later = false;

  if (unless.found[0] && *unless.found[0] <= unless.most && *unless.found[1] <= unless.most && *unless.found[0] * *unless.found[1] <= unless.product) return;
  if (unless.refused && (unless.sizes & ~*unless.refused)) return;
  if (threadIdx.x == 0) *nlong = 0;
  for (PetscCount r0 = first; r0 < m; r0 += step) {
    const PetscCount row   = r0 + threadIdx.x / W;
    const bool       mine  = row < m;
    const PetscInt   begin = mine ? ai[row] : 0, len = mine ? ai[row + 1] - begin : 0;

    if (len > COSTS_LONG * W) later = true;
    RowCostsWalk<int>(l, len > COSTS_LONG * W ? 0 : (int)len, W, aj + begin, bi, blen, sum, most);
    sum  = HybSubwarpSum<W>(sum);
    most = HybSubwarpMax<W>(most);
    if (mine && l == 0) {
      const PetscInt o1 = ai[row > 1 ? row - 1 : 0], o2 = ai[row > 2 ? row - 2 : 0], o3 = ai[row > 3 ? row - 3 : 0];

      if (len <= COSTS_LONG * W) {
        if (rowcost) rowcost[row] = sum;
        RowCostsAdd(s, sum, most, len);
      }
      const PetscInt width = stats && len ? aj[begin + len - 1] - aj[begin] : 0;

      if (stats) s.alike += (row > 0 && RowCostsLike(aj, o1, begin, len, width)) || (row > 1 && RowCostsLike(aj, o2, o1, len, width)) || (row > 2 && RowCostsLike(aj, o3, o2, len, width));
    }
  }
  __syncthreads();
  if (later) HybAtomicAdd(nlong, 1);
  __syncthreads();
  if (*nlong) { /* the block's rows again, for the long ones among them */
    for (PetscCount r0 = first; r0 < m; r0 += step) {
      const PetscCount row = r0 + threadIdx.x;

      __syncthreads();
      if (threadIdx.x == 0) *nlong = 0;
      __syncthreads();
      if (threadIdx.x < COSTS_THREADS / W && row < m && ai[row + 1] - ai[row] > COSTS_LONG * W) longrows[HybAtomicAdd(nlong, 1)] = (PetscInt)row;
      __syncthreads();
      for (int q = 0; q < *nlong; q++) {
        const PetscInt begin = ai[longrows[q]], len = ai[longrows[q] + 1] - begin;

        RowCostsWalk<PetscInt>((PetscInt)threadIdx.x, len, COSTS_THREADS, aj + begin, bi, blen, sum, most);
        sum  = HybBlockSum<COSTS_THREADS>(sum, scratch);
        most = (PetscInt)HybBlockMax<COSTS_THREADS>((PetscCount)most, scratch);
        if (threadIdx.x == 0) {
          if (rowcost) rowcost[longrows[q]] = sum;
          RowCostsAdd(s, sum, most, len);
        }
      }
    }
  }
  if (stats) RowCostsPublish(s, stats);
}

PetscErrorCode HybPlanRowCostsUnless(const HybExec *exec, const HybCSR *A, const PetscInt *bi, const PetscInt *blen, HybPlanUnless unless, PetscCount *rowcost, PetscCount *devstats)
{
  const PetscCount mean = A->m ? A->nnz / A->m : 0;
  int              multiprocessors, w = mean <= 8 ? 2 : mean <= 16 ? 4
                                                      : mean <= 40 ? 8
                                                                   : 32;
  PetscCount       grid;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(NULL, &multiprocessors));
  /* few rows: the card has a warp for each, and long ones that are neighbours are not one block's */
  if ((PetscCount)A->m * HYB_WARP <= (PetscCount)2 * multiprocessors * COSTS_BLOCKS * COSTS_THREADS) w = HYB_WARP;
  grid = PetscMin(HybBlocks((PetscCount)A->m * w, COSTS_THREADS), (PetscCount)multiprocessors * COSTS_BLOCKS);
  PetscCall(HybDispatch(w, HybCases<2, 4, 8, 32>(), [&](auto W) {
    HYB_LAUNCH((RowCostsKernel<W>), grid, COSTS_THREADS, 0, exec->stream, A->m, A->i, A->j, bi, blen, unless, rowcost,
               devstats);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPlanRowCosts(const HybExec *exec, const HybCSR *A, const PetscInt *bi, const PetscInt *blen, PetscCount *rowcost, PetscCount *devstats)
{
  const HybPlanUnless always = {
    {NULL, NULL},
    0,
    0,
    NULL,
    0
  };

  PetscFunctionBegin;
  PetscCall(HybPlanRowCostsUnless(exec, A, bi, blen, always, rowcost, devstats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybPlanStatsSet(const PetscCount *s, HybPlanStats *stats)
{
  stats->products = s[0];
  stats->lower    = s[1];
  stats->maxrow   = s[2];
  stats->maxarow  = (PetscInt)s[3];
  stats->maxbrow  = (PetscInt)s[4];
  stats->alike    = (PetscInt)s[5];
}

static PetscErrorCode HybPlanProducts_CUDA(const HybExec *exec, HybArena *work, const HybCSR *A, const HybCSR *B, PetscCount *rowproducts, HybPlanStats *stats)
{
  PetscCount s[HYB_PLAN_SPARE], *devstats = rowproducts ? rowproducts + A->m : NULL, *mine = NULL;

  PetscFunctionBegin;
  if (stats) {
    if (!devstats) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, HYB_PLAN_SPARE, sizeof(PetscCount), &mine));
    if (!devstats) devstats = mine;
    PetscCall(exec->backend->zero(exec, devstats, sizeof(s)));
  }
  PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, rowproducts, stats ? devstats : NULL));
  if (stats) {
    PetscCall(exec->backend->copy(exec, s, devstats, sizeof(s), HYB_COPY_DEVICE_TO_HOST));
    HybPlanStatsSet(s, stats);
  }
  PetscCall(HybArenaFree(work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct BinLimits {
  PetscInt   nbins;
  PetscCount limit[HYB_PLAN_MAX_BINS]; /* limit[nbins-1] is not looked at */
};

template <typename Cost>
static __device__ __forceinline__ int BinOf(const BinLimits &bins, Cost cost)
{
  int b = 0;

  for (PetscInt q = 0; q + 1 < bins.nbins; q++) b += (PetscCount)cost > bins.limit[q];
  return b;
}

/* rows of each bin of a block's, gathered in shared memory; PLACE: each block takes room for its rows at once */
template <bool PLACE, int EACH, typename Cost>
__global__ void __launch_bounds__(256) AnyOrderKernel(PetscInt m, const Cost *__restrict__ cost, BinLimits bins, PetscInt *__restrict__ counters, PetscInt *__restrict__ order, PetscInt *__restrict__ binptr, HybPlanScan scan)
{
  HYB_SHARED(unsigned, met, HYB_PLAN_MAX_BINS); /* of 32 bits: those of 64 are added one after the other */
  HYB_SHARED(PetscInt, begin, HYB_PLAN_MAX_BINS);
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  PetscInt *const total = counters, *const taken = counters + bins.nbins;
  const PetscCount first = (PetscCount)blockIdx.x * (EACH * 256) + threadIdx.x;
  int              bin[EACH];
  unsigned         rank[EACH];

  if (threadIdx.x < (unsigned)bins.nbins) met[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const PetscCount r = first + k * 256;

    bin[k] = r < m ? BinOf(bins, cost[r]) : -1;
    if (bin[k] >= 0) rank[k] = HybAtomicAdd(met + bin[k], 1u);
  }
  __syncthreads();
  if (threadIdx.x < (unsigned)bins.nbins) {
    const PetscInt b = (PetscInt)threadIdx.x, n = (PetscInt)met[b];

    if (!PLACE && n) HybAtomicAdd(total + b, n);
    if (PLACE) {
      PetscInt before = 0;

      for (PetscInt q = 0; q < b; q++) before += total[q];
      if (n) begin[b] = before + HybAtomicAdd(taken + b, n);
      if (blockIdx.x == 0) {
        binptr[b] = before;
        if (b == bins.nbins - 1) binptr[bins.nbins] = m;
      }
    }
  }
  if (PLACE) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      if (bin[k] >= 0) order[begin[bin[k]] + rank[k]] = (PetscInt)(first + k * 256);
    }
  }
  if (scan.count) {
    const PetscCount bs  = HybMax()(scan.block, (PetscInt)1);
    PetscCount       sum = 0, most = 0, all;

    if (PLACE) {
      for (PetscCount q = threadIdx.x; q < (PetscCount)blockIdx.x; q += 256) sum += scan.sums[q];
      sum = HybBlockSum<256>(sum, scratch);
      if (blockIdx.x == gridDim.x - 1) {
        for (PetscCount q = threadIdx.x; q < (PetscCount)gridDim.x; q += 256) most = HybMax()(most, scan.sums[gridDim.x + q]);
        most = HybBlockMax<256>(most, scratch);
      }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const PetscCount r = first + k * 256, c = r < m ? scan.count[r] : 0;

      if (PLACE) {
        const PetscCount at = sum + HybBlockExclusiveSum<256>(c, scratch, &all);

        if (r < m && scan.offsets)
          for (PetscInt t = 0; t < bs; t++) scan.offsets[r * bs + t] = (PetscInt)(bs * (bs * at + t * c));
        if (r < m && scan.offsets64) scan.offsets64[r] = at;
        if (r == m - 1) {
          if (scan.offsets) scan.offsets[(PetscCount)m * bs] = (PetscInt)(bs * bs * (at + c));
          if (scan.offsets64) scan.offsets64[m] = at + c;
          scan.total[0] = at + c;
          scan.total[1] = most;
          scan.total[2] = scan.also ? *scan.also : 0;
        }
        sum += all;
      } else {
        sum += c;
        most = HybMax()(most, c);
      }
    }
    if (!PLACE) {
      sum  = HybBlockSum<256>(sum, scratch);
      most = HybBlockMax<256>(most, scratch);
      if (threadIdx.x == 0) {
        scan.sums[blockIdx.x]             = sum;
        scan.sums[gridDim.x + blockIdx.x] = most;
      }
    }
  }
}

template <typename Cost>
static PetscErrorCode AnyOrder(const HybExec *exec, PetscInt m, const Cost *cost, PetscInt nbins, const PetscCount *limit, PetscInt *counters, PetscInt *order, PetscInt *devbinptr, HybPlanScan scan)
{
  BinLimits bins;

  PetscFunctionBegin;
  PetscCheck(nbins > 0 && nbins <= HYB_PLAN_MAX_BINS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The number of bins must be within 1..%d, not %" PetscInt_FMT, HYB_PLAN_MAX_BINS, nbins);
  bins.nbins = nbins;
  for (PetscInt b = 0; b < HYB_PLAN_MAX_BINS; b++) bins.limit[b] = b + 1 < nbins ? limit[b] : 0;
  PetscCall(HybDispatch(m > ANYORDER_FEW ? ANYORDER_ROWS : 1, HybCases<1, ANYORDER_ROWS>(), [&](auto each) {
    const PetscCount grid = HybBlocks(m, each * 256);

    HYB_LAUNCH((AnyOrderKernel<false, each, Cost>), grid, 256, 0, exec->stream, m, cost, bins, counters, order, devbinptr, scan);
    HYB_LAUNCH((AnyOrderKernel<true, each, Cost>), grid, 256, 0, exec->stream, m, cost, bins, counters, order, devbinptr, scan);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const HybPlanScan noscan_ = {NULL, NULL, NULL, NULL, NULL, NULL, 0};

PetscErrorCode HybPlanBinsAnyOrder(const HybExec *exec, PetscInt m, const PetscCount *cost, PetscInt nbins, const PetscCount *limit, PetscInt *counters, PetscInt *order, PetscInt *devbinptr)
{
  PetscFunctionBegin;
  PetscCall(AnyOrder(exec, m, cost, nbins, limit, counters, order, devbinptr, noscan_));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPlanBinsAnyOrderInt(const HybExec *exec, PetscInt m, const PetscInt *cost, PetscInt nbins, const PetscCount *limit, PetscInt *counters, PetscInt *order, PetscInt *devbinptr, const HybPlanScan *scan)
{
  PetscFunctionBegin;
  PetscCall(AnyOrder(exec, m, cost, nbins, limit, counters, order, devbinptr, scan ? *scan : noscan_));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int EACH>
__global__ void __launch_bounds__(256) OffsetsKernel(PetscInt m, const PetscInt *__restrict__ count, const PetscCount *__restrict__ sums, PetscInt *__restrict__ offsets, PetscCount *total)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  const PetscCount first = (PetscCount)blockIdx.x * (EACH * 256) + threadIdx.x;
  PetscInt         c[EACH];
  PetscCount       sum = 0, all;

#pragma unroll
  for (int k = 0; k < EACH; k++) c[k] = first + k * 256 < m ? count[first + k * 256] : 0;
  for (PetscCount q = threadIdx.x; q < (PetscCount)blockIdx.x * (EACH * 256 / HYB_PLAN_SUMMED); q += 256) sum += sums[q];
  sum = HybBlockSum<256>(sum, scratch);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const PetscCount r = first + k * 256, at = sum + HybBlockExclusiveSum<256>((PetscCount)c[k], scratch, &all);

    if (r < m) offsets[r] = (PetscInt)at;
    if (r == m - 1) {
      offsets[m] = (PetscInt)(at + c[k]);
      *total     = at + c[k];
    }
    sum += all;
  }
}

PetscErrorCode HybPlanOffsets(const HybExec *exec, PetscInt m, const PetscInt *count, const PetscCount *sums, PetscInt *offsets, PetscCount *total)
{
  PetscFunctionBegin;
  PetscCheck(m > 0 && m <= HYB_PLAN_OFFSETS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Offsets come of sums for 1 to %d rows, not %" PetscInt_FMT, HYB_PLAN_OFFSETS, m);
  PetscCall(HybDispatch(m > ANYORDER_FEW ? ANYORDER_ROWS : 1, HybCases<1, ANYORDER_ROWS>(), [&](auto each) {
    HYB_LAUNCH((OffsetsKernel<each>), HybBlocks(m, each * 256), 256, 0, exec->stream, m, count, sums, offsets, total);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPlanCuts(const HybExec *exec, HybArena *work, const HybCSR *A, const PetscCount *rowproducts, PetscCount chunk, PetscInt nchunks, HybPlanCut *cut)
{
  HybPlanCut *devcut;
  PetscCount *before;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)nchunks + 1, sizeof(*devcut), &devcut));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)A->m + 1, sizeof(PetscCount), &before));
  PetscCall(HybScanCounts64(exec, work, A->m, rowproducts, before, NULL, NULL));
  HYB_FOR_EACH(exec, (PetscCount)nchunks + 1, [m = A->m, ai = A->i, before, chunk, nchunks, devcut] __device__(PetscCount c) {
    const PetscInt lo = c == nchunks ? m : RowLowerBound(before, 0, m, c * chunk);

    devcut[c].row     = lo;
    devcut[c].entry   = ai[lo];
    devcut[c].product = before[lo];
  });
  PetscCall(exec->backend->copy(exec, cut, devcut, ((size_t)nchunks + 1) * sizeof(*cut), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(work, &devcut, &before));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybPlanOps HybPlanCUDA;
const HybPlanOps        HybPlanCUDA = {
         .products = HybPlanProducts_CUDA,
};
