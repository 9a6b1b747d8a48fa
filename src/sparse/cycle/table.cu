/*
  table.cu: what a multigrid cycle needs beside products, on a device, and graphs of its launches.

  A graph is captured on a stream of its own, so that it does not matter whether the caller's is the default stream,
  which cannot be captured. Nothing is waited for. A caller who captures the stream that he gave gets plain launches.
*/
#include "../device/hybchain.cuh"
#include "../spmv/scale.cuh"
#include "../spmv/sumsleft.cuh"
#include "../structure/rowops.cuh"
#include "aijhybridgpu/private/hybcycle.h"

#define CYCLE_THREADS 256

static __global__ __launch_bounds__(CYCLE_THREADS) void CycleFirst(PetscCount n, const PetscReal *__restrict__ c, const HybScalar *__restrict__ dinv, const HybScalar *b, HybScalar *z)
{
  HybChainWait();
  const PetscCount k = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x;
  if (k < n) z[k] = (HybScalarReal)c[0] * HybMul(dinv[k], b[k]);
}

static __global__ __launch_bounds__(CYCLE_THREADS) void CycleCombine(PetscCount n, const HybScalar *r, RowStep step, HybScalar *z)
{
  HybChainWait();
  const PetscCount k = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x;
  if (k < n) z[k] = RowStepBase(step, k) + (HybScalarReal)step.c[0] * HybMul(step.dinv[k], r[k]);
}

/* a warp has a row. An inverse is of double precision where the cycle is not: its condition is any. */
static __global__ __launch_bounds__(CYCLE_THREADS) void CycleDense(PetscInt m, const HybScalarWide *__restrict__ inverse, const HybScalar *b, HybScalar *x)
{
  HybChainWait();
  ROW_LOOP(r, m, HYB_WARP)
  {
    HybScalarWide sum(0);

    if (r < m)
      for (PetscInt c = HybLane(); c < m; c += HYB_WARP) sum += HybMul(inverse[r * m + c], HybScalarWide(b[c]));
    sum = HybSubwarpSum<HYB_WARP>(sum);
    if (r < m && HybLane() == 0) x[r] = HybScalar(sum);
  }
}

/* Blocks' sums go to memory; the block that is the last to leave its own adds them, block by block within a lane: how
   many blocks there are follows from n alone. */
static __global__ __launch_bounds__(CYCLE_THREADS) void CycleSum(PetscCount n, HybCycleSums sums, int k, const HybScalar *x)
{
  HybChainWait();
  HYB_SHARED(HybScalar, scratch, HYB_WARP);
  HYB_SHARED(int, last, 1);
  HybScalar *const part = sums.s + HYB_CYCLE_TOTALS;
  HybScalar        sum(0);

  for (PetscCount i = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x; i < n; i += (PetscCount)gridDim.x * CYCLE_THREADS) sum = sum + x[i];
  sum = HybBlockSum<CYCLE_THREADS>(sum, scratch);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = sum;
    __threadfence();
    *last = HybAtomicAdd(sums.arrived, 1) == (int)gridDim.x - 1;
    __threadfence();
    if (*last) *sums.arrived = 0;
  }
  __syncthreads();
  if (!*last || threadIdx.x >= HYB_WARP) return;
  sum = HybScalar(0);
  for (int b = HybLane(); b < (int)gridDim.x; b += HYB_WARP) sum = sum + HybLoadShared(part + b);
  sum = HybSubwarpSum<HYB_WARP>(sum);
  if (threadIdx.x == 0) sums.s[k] = sum;
}

typedef struct {
  int weight[HYB_CYCLE_TOTALS];
} CycleWeights;

static __global__ __launch_bounds__(CYCLE_THREADS) void CycleShift(PetscCount n, const HybScalar *s, CycleWeights w, const HybScalar *y, HybScalar *z)
{
  HybChainWait();
  const PetscCount i = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x;
  HybScalar        by(0);

#pragma unroll
  for (int k = 0; k < HYB_CYCLE_TOTALS; k++)
    if (w.weight[k]) by = by + (HybScalarReal)w.weight[k] * s[k];
  by = by / (HybScalarReal)n;
  if (i < n) z[i] = y[i] - by;
}

static __global__ __launch_bounds__(CYCLE_THREADS) void CycleClear(PetscCount n, HybScalar *x)
{
  HybChainWait();
  const PetscCount i = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x;
  if (i < n) x[i] = HybScalar(0);
}

/* the backend's own zero() is for streams that memory is given back on, and not for captured ones */
static PetscErrorCode HybCycleClear_CUDA(const HybExec *exec, PetscCount n, HybScalar *x)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CycleClear, HybBlocks(n, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, n, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleSum_CUDA(const HybExec *exec, const HybCycleSums *sums, PetscInt k, PetscCount n, const HybScalar *x)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CycleSum, PetscMin(HybBlocks(n, CYCLE_THREADS), (PetscCount)HYB_CYCLE_SUMS), CYCLE_THREADS, 0, exec->stream, n, *sums, (int)k, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleShift_CUDA(const HybExec *exec, const HybCycleSums *sums, const int weight[HYB_CYCLE_TOTALS], PetscCount n, const HybScalar *y, HybScalar *z)
{
  CycleWeights w;

  PetscFunctionBegin;
  for (int k = 0; k < HYB_CYCLE_TOTALS; k++) w.weight[k] = weight[k];
  HYB_LAUNCH_CHAINED(n, CycleShift, HybBlocks(n, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, n, sums->s, w, y, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleFirst_CUDA(const HybExec *exec, PetscCount n, const PetscReal *c, const HybScalar *dinv, const HybScalar *b, HybScalar *z)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CycleFirst, HybBlocks(n, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, n, c, dinv, b, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleCombine_CUDA(const HybExec *exec, PetscCount n, const HybScalar *x, const HybScalar *r, const HybSpMVStep *s)
{
  const RowStep step = {x, s->dinv, s->w, s->c};

  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CycleCombine, HybBlocks(n, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, n, r, step, s->z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleDense_CUDA(const HybExec *exec, PetscInt m, const HybScalarWide *inverse, const HybScalar *b, HybScalar *x)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED((PetscCount)m * m, CycleDense, HybBlocks((PetscCount)m * HYB_WARP, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, m, inverse, b, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(HYB_SINGLE)
/*
  Between double and single precision. A vector is scaled by the power of two of its largest entry (spmv/scale.cuh). The
  exponent is found on the way, by a maximum, which has no order.
*/
static __device__ __forceinline__ PetscReal CycleLargest(const HybScalarWide &v)
{
  #if defined(PETSC_USE_COMPLEX)
  return HybMax()(fabs(v.real()), fabs(v.imag()));
  #else
  return fabs(v);
  #endif
}

/* scale[0] = the exponent of the largest entry; scale[1]: that of the blocks so far, scale[2]: how many there are */
static __global__ __launch_bounds__(CYCLE_THREADS) void CycleScale(PetscCount n, const HybScalarWide *b, int *scale)
{
  HybChainWait();
  HYB_SHARED(int, scratch, HYB_WARP);
  int most = SCALE_NONE;

  for (PetscCount k = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x; k < n; k += (PetscCount)gridDim.x * CYCLE_THREADS) {
    const int e = ScaleExponent(CycleLargest(b[k]));
    most        = most < e ? e : most;
  }
  most = HybBlockMax<CYCLE_THREADS>(most, scratch);
  if (threadIdx.x == 0) {
    HybAtomicMax(&scale[1], most - SCALE_NONE);
    __threadfence();
    if (HybAtomicAdd(&scale[2], 1) == (int)gridDim.x - 1) {
      __threadfence();
      scale[0] = HybLoadShared(scale + 1) + SCALE_NONE;
      scale[1] = scale[2] = 0;
    }
  }
}

/* scale NULL: not scaled. *beyond is set by an entry that is not finite, or out of what products may have. */
static __global__ __launch_bounds__(CYCLE_THREADS) void CycleNarrowed(PetscCount n, const HybScalarWide *from, const int *scale, HybScalar *to, int *beyond)
{
  HybChainWait();
  const PetscCount k = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x;

  if (k < n) {
    const HybScalarWide v = from[k];
    to[k]                 = ScaleNarrow(scale ? ScalePower(-*scale) * v : v);
    if (beyond && !(CycleLargest(v) <= HYB_CYCLE_SINGLE)) HybAtomicOr(beyond, 1);
  }
}

/* part: NULL, or where each block leaves the inner products of what it writes and y */
static __global__ __launch_bounds__(CYCLE_THREADS) void CycleWidened(PetscCount n, const HybScalar *from, const int *scale, HybScalarWide *to, const HybScalarWide *y, bool hermitian, HybScalarWide *part)
{
  HybChainWait();
  const PetscCount k = (PetscCount)blockIdx.x * CYCLE_THREADS + threadIdx.x;
  HybScalarWide    v(0);

  if (k < n) {
    v     = ScalePower(*scale) * HybScalarWide(from[k]);
    to[k] = v;
  }
  if (part) SumsLeaveProducts(v, k < n ? y[k] : HybScalarWide(0), hermitian, part);
}

static PetscErrorCode HybCycleNarrow_CUDA(const HybExec *exec, PetscCount n, const HybScalarWide *from, int *scale, PetscBool find, HybScalar *to, int *beyond)
{
  PetscFunctionBegin;
  if (scale && find) HYB_LAUNCH_CHAINED(n, CycleScale, PetscMin(HybBlocks(n, CYCLE_THREADS), (PetscCount)HYB_CYCLE_SUMS), CYCLE_THREADS, 0, exec->stream, n, from, scale);
  HYB_LAUNCH_CHAINED(n, CycleNarrowed, HybBlocks(n, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, n, from, scale, to, beyond);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleWiden_CUDA(const HybExec *exec, PetscCount n, const HybScalar *from, const int *scale, HybScalarWide *to, const HybScalarWide *y, const HybSpMVSums *left)
{
  static_assert(CYCLE_THREADS == SUMS_ROWS, "a block leaves the sums of its rows");

  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CycleWidened, HybBlocks(n, CYCLE_THREADS), CYCLE_THREADS, 0, exec->stream, n, from, scale, to, y, left && left->hermitian, left ? (HybScalarWide *)left->part : nullptr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static cudaStream_t capturing_;  /* made at first use, kept */
static char         heard_[256]; /* the first error of what is being captured */

/* An error while a graph is captured is told when the capture ends: it may be one of the capture's alone */
static PetscErrorCode CycleListen(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) (void)PetscStrncpy(heard_, mess, sizeof(heard_));
  return n;
}

/* Kernels wait for each other on the card where it can do that and they were compiled for it */
static bool CycleChains(void)
{
  static int can = -1;

#if !defined(HYB_EMULATOR)
  if (can < 0) {
    cudaFuncAttributes attributes;

    can = cudaFuncGetAttributes(&attributes, (const void *)CycleFirst) == cudaSuccess && attributes.binaryVersion >= 90 && attributes.ptxVersion >= 90;
    (void)cudaGetLastError();
  }
#endif
  return can > 0;
}

static PetscErrorCode HybCycleCapture_CUDA(const HybExec *exec, HybExec *captured, PetscBool *may)
{
  PetscFunctionBegin;
  *may = PETSC_FALSE;
  if (exec->backend->recording(exec)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybDeviceSideStream(false, &capturing_));
  HybCallCUDA(cudaStreamBeginCapture(capturing_, cudaStreamCaptureModeThreadLocal));
  *captured        = *exec;
  captured->stream = capturing_;
  heard_[0]        = 0;
  PetscCall(PetscPushErrorHandler(CycleListen, NULL));
  HybDeviceChain(CycleChains());
  *may = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The capture ends after an error too. One that another thread of the program has ended leaves no graph: the launches
   are made one by one, and captured another time. */
static PetscErrorCode HybCycleCaptured_CUDA(const HybExec *captured, PetscErrorCode before, void **graph)
{
  cudaGraph_t       made  = NULL;
  cudaGraphExec_t   exec  = NULL;
  const cudaError_t ended = cudaStreamEndCapture((cudaStream_t)captured->stream, &made);
  cudaError_t       err   = ended;

  PetscFunctionBegin;
  HybDeviceChain(false);
  PetscCall(PetscPopErrorHandler());
  if (!before && err == cudaSuccess && HybDeviceFault("cudaGraphInstantiate")) err = cudaErrorUnknown;
  if (!before && err == cudaSuccess) err = cudaGraphInstantiate(&exec, made, 0);
  if (made) (void)cudaGraphDestroy(made);
  if (ended == cudaErrorStreamCaptureInvalidated) {
    *graph = NULL;
    (void)cudaGetLastError();
    PetscCall(PetscInfo(NULL, "The capture of a graph of multigrid's levels was ended by another thread: it is tried again\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(!before, PETSC_COMM_SELF, before, "A graph of multigrid's levels cannot be captured: %s", heard_);
  if (err != cudaSuccess) PetscCall(HybDeviceError(err, "a graph of multigrid's levels", __FILE__, __LINE__));
  *graph = exec;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleLaunch_CUDA(const HybExec *exec, void *graph, PetscBool awaited)
{
  PetscFunctionBegin;
  HybCallCUDA(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)exec->stream));
  if (awaited) HYB_BEGIN_NOW(exec->stream);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a launch that is under way ends as it would */
static PetscErrorCode HybCycleForget_CUDA(const HybExec *, void **graph)
{
  cudaGraphExec_t const exec = (cudaGraphExec_t)*graph;

  PetscFunctionBegin;
  *graph = NULL;
  HybCallCUDA(cudaGraphExecDestroy(exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_EXTERN_C_BEGIN
extern const HybCycleOps        HYB_PRECISION(HybCycleCUDA);
extern const HybCycleColumnsOps HybCycleColumnsCUDA;
HYB_EXTERN_C_END
const HybCycleOps HYB_PRECISION(HybCycleCUDA) = {
  .first   = HybCycleFirst_CUDA,
  .combine = HybCycleCombine_CUDA,
  .dense   = HybCycleDense_CUDA,
  .clear   = HybCycleClear_CUDA,
  .sum     = HybCycleSum_CUDA,
  .shift   = HybCycleShift_CUDA,
#if defined(HYB_SINGLE)
  .narrow = HybCycleNarrow_CUDA,
  .widen  = HybCycleWiden_CUDA,
#else
  .columns = &HybCycleColumnsCUDA,
#endif
  .capture  = HybCycleCapture_CUDA,
  .captured = HybCycleCaptured_CUDA,
  .launch   = HybCycleLaunch_CUDA,
  .forget   = HybCycleForget_CUDA,
};
