/*
  columns.cu: the conjugate gradient method for several right-hand sides at once, on the device. Vectors lie interleaved
  (spmv/columns.cuh), each number of the method is there once for each column, and columns know nothing of each other. A
  column that has stopped, or whose end the host has told, is read but never written again: x, p, r and its numbers keep
  their bits while others go on.

    gather, scatter   from columns of a dense matrix to interleaved ones and back
    direction         p = z + (beta/betaold) p
    curvature         p w of all blocks, which the product left; does it stop the column?
    update            x += (beta/(p w)) p;  r -= (beta/(p w)) w
    products          blocks' sums z r, |z|^2, |r|^2, where the cycle's last step has not left them
    norms             these of all blocks; beta before becomes betaold

  Sums are taken by blocks in turns, as many as the length says, and then by one warp a column: the same bits from run
  to run. Bytes: each vector that a step names, once.
*/
#include "../spmv/columns.cuh"
#include "aijhybridgpu/private/hybkrylov.h"

/* a number of the method, of column c */
#define CG(cg, K, number, c) ((cg).s[(number) * (K) + (c)])

static __device__ __forceinline__ PetscReal ColumnsReal(const HybScalar &v)
{
#if defined(PETSC_USE_COMPLEX)
  return v.real();
#else
  return v;
#endif
}

template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsGather(int k, PetscCount n, const HybScalar *__restrict__ B, PetscCount ld, HybScalar *x)
{
  constexpr int    V = ColumnsOfLane<K>();
  const PetscCount i = (PetscCount)blockIdx.x * COLUMNS_THREADS + threadIdx.x;

  if (i >= n) return;
#pragma unroll
  for (int c = 0; c < K; c += V) {
    ColumnsPack<K> v;
#pragma unroll
    for (int q = 0; q < V; q++) v.v[q] = c + q < k ? HybLoadStream(B + (c + q) * ld + i) : HybScalar(0);
    ColumnsStore<K>(x + i * K + c, v);
  }
}

template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsScatter(int k, PetscCount n, const HybScalar *x, HybScalar *B, PetscCount ld)
{
  constexpr int    V = ColumnsOfLane<K>();
  const PetscCount i = (PetscCount)blockIdx.x * COLUMNS_THREADS + threadIdx.x;

  if (i >= n) return;
#pragma unroll
  for (int c = 0; c < K; c += V) {
    const ColumnsPack<K> v = ColumnsLoad<K>(x + i * K + c);
#pragma unroll
    for (int q = 0; q < V; q++)
      if (c + q < k) B[(c + q) * ld + i] = v.v[q];
  }
}

template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsDirection(PetscCount n, HybCG cg, const HybScalar *z, HybScalar *p)
{
  constexpr int    V = ColumnsOfLane<K>();
  const PetscCount t = ((PetscCount)blockIdx.x * COLUMNS_THREADS + threadIdx.x) * V;
  const int        c = (int)(t % K);

  if (t >= n * K) return;
  const ColumnsPack<K> zz = ColumnsLoad<K>(z + t);
  ColumnsPack<K>       pp = ColumnsLoad<K>(p + t);
#pragma unroll
  for (int q = 0; q < V; q++) {
    const HybScalar old = CG(cg, K, HYB_CG_BETAOLD, c + q);
    if (CG(cg, K, HYB_CG_STOPPED, c + q) != HybScalar(0)) continue;
    pp.v[q] = old != HybScalar(0) ? HybScalar(zz.v[q] + HybMul(HybScalar(CG(cg, K, HYB_CG_BETA, c + q) / old), pp.v[q])) : zz.v[q];
  }
  ColumnsStore<K>(p + t, pp);
}

template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsUpdate(PetscCount n, HybCG cg, const HybScalar *p, const HybScalar *w, HybScalar *x, HybScalar *r)
{
  constexpr int    V = ColumnsOfLane<K>();
  const PetscCount t = ((PetscCount)blockIdx.x * COLUMNS_THREADS + threadIdx.x) * V;
  const int        c = (int)(t % K);

  if (t >= n * K) return;
  const ColumnsPack<K> pp = ColumnsLoad<K>(p + t), ww = ColumnsLoad<K>(w + t);
  ColumnsPack<K>       xx = ColumnsLoad<K>(x + t), rr = ColumnsLoad<K>(r + t);
#pragma unroll
  for (int q = 0; q < V; q++) {
    const HybScalar a = CG(cg, K, HYB_CG_BETA, c + q) / CG(cg, K, HYB_CG_DPI, c + q);
    if (CG(cg, K, HYB_CG_STOPPED, c + q) != HybScalar(0)) continue;
    xx.v[q] = xx.v[q] + HybMul(a, pp.v[q]);
    rr.v[q] = rr.v[q] - HybMul(a, ww.v[q]);
  }
  ColumnsStore<K>(x + t, xx);
  ColumnsStore<K>(r + t, rr);
}

template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsProducts(PetscCount n, bool hermitian, const HybScalar *z, const HybScalar *r, HybScalar *part)
{
  constexpr int V = ColumnsOfLane<K>();
  HybScalar     mine[3][V];

#pragma unroll
  for (int s = 0; s < 3; s++)
#pragma unroll
    for (int q = 0; q < V; q++) mine[s][q] = HybScalar(0);
  for (PetscCount t = ((PetscCount)blockIdx.x * COLUMNS_THREADS + threadIdx.x) * V; t < n * K; t += (PetscCount)gridDim.x * COLUMNS_THREADS * V) {
    const ColumnsPack<K> zz = ColumnsLoad<K>(z + t), rr = ColumnsLoad<K>(r + t);
#pragma unroll
    for (int q = 0; q < V; q++) {
      mine[0][q] = mine[0][q] + ColumnsTerm(hermitian, zz.v[q], rr.v[q]);
      mine[1][q] = mine[1][q] + HybMul(zz.v[q], HybConj(zz.v[q]));
      mine[2][q] = mine[2][q] + HybMul(rr.v[q], HybConj(rr.v[q]));
    }
  }
  ColumnsLeave<K>(mine, part);
}

/* sum s of n of column c of all blocks, by one warp */
static __device__ __forceinline__ HybScalar ColumnsTotal(int K, int c, int s, int n, int blocks, const HybScalar *part)
{
  HybScalar sum(0);

  for (int b = HybLane(); b < blocks; b += HYB_WARP) sum = sum + part[((PetscCount)b * n + s) * K + c];
  return HybSubwarpSum<HYB_WARP>(sum);
}

/* one block, a warp a column */
static __global__ __launch_bounds__(HYB_COLUMNS *HYB_WARP) void ColumnsCurvature(int K, HybCG cg, int blocks, const HybScalar *part)
{
  const int       c   = (int)threadIdx.x / HYB_WARP;
  const HybScalar dpi = ColumnsTotal(K, c, 0, 1, blocks, part);

  if (HybLane() || CG(cg, K, HYB_CG_STOPPED, c) != HybScalar(0)) return;
  const PetscReal before = ColumnsReal(CG(cg, K, HYB_CG_DPI, c)), now = ColumnsReal(dpi);
  const bool      zero = dpi == HybScalar(0), finite = dpi - dpi == HybScalar(0);
  CG(cg, K, HYB_CG_DPIOLD, c)  = CG(cg, K, HYB_CG_DPI, c);
  CG(cg, K, HYB_CG_DPI, c)     = dpi;
  CG(cg, K, HYB_CG_STOPPED, c) = HybScalar(zero || !finite || (before < 0 && now > 0) || (before > 0 && now < 0) ? 1 : 0);
}

static __global__ __launch_bounds__(HYB_COLUMNS *HYB_WARP) void ColumnsNorms(int K, HybCG cg, int blocks, const HybScalar *part)
{
  const int       c  = (int)threadIdx.x / HYB_WARP;
  const HybScalar zr = ColumnsTotal(K, c, 0, 3, blocks, part), zz = ColumnsTotal(K, c, 1, 3, blocks, part), rr = ColumnsTotal(K, c, 2, 3, blocks, part);

  if (HybLane() || CG(cg, K, HYB_CG_STOPPED, c) != HybScalar(0)) return;
  CG(cg, K, HYB_CG_BETAOLD, c) = CG(cg, K, HYB_CG_BETA, c);
  CG(cg, K, HYB_CG_BETA, c)    = zr;
  CG(cg, K, HYB_CG_ZZ, c)      = zz;
  CG(cg, K, HYB_CG_RR, c)      = rr;
}

/* the kernel for K columns, n entries each, PER of them to a thread's V */
#define COLUMNS_LAUNCH(kernel, K, blocks, ...)                                        \
  PetscCall(HybDispatch((int)(K), ColumnsWidths(), [&](auto k) {                      \
    HYB_LAUNCH((kernel<k>), (blocks), COLUMNS_THREADS, 0, exec->stream, __VA_ARGS__); \
    return PETSC_SUCCESS;                                                             \
  }))
#define COLUMNS_BLOCKS(n) HybBlocks((n) * (k / ColumnsOfLane<k>()), COLUMNS_THREADS)

static PetscErrorCode HybKrylovColumnsGather_CUDA(const HybExec *exec, PetscInt K, PetscInt used, PetscCount n, const HybScalar *B, PetscCount ld, HybScalar *x)
{
  PetscFunctionBegin;
  COLUMNS_LAUNCH(ColumnsGather, K, HybBlocks(n, COLUMNS_THREADS), (int)used, n, B, ld, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovColumnsScatter_CUDA(const HybExec *exec, PetscInt K, PetscInt used, PetscCount n, const HybScalar *x, HybScalar *B, PetscCount ld)
{
  PetscFunctionBegin;
  COLUMNS_LAUNCH(ColumnsScatter, K, HybBlocks(n, COLUMNS_THREADS), (int)used, n, x, B, ld);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovColumnsDirection_CUDA(const HybExec *exec, PetscInt K, const HybCG *cg, PetscCount n, const HybScalar *z, HybScalar *p)
{
  PetscFunctionBegin;
  COLUMNS_LAUNCH(ColumnsDirection, K, COLUMNS_BLOCKS(n), n, *cg, z, p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovColumnsUpdate_CUDA(const HybExec *exec, PetscInt K, const HybCG *cg, PetscCount n, const HybScalar *p, const HybScalar *w, HybScalar *x, HybScalar *r)
{
  PetscFunctionBegin;
  COLUMNS_LAUNCH(ColumnsUpdate, K, COLUMNS_BLOCKS(n), n, *cg, p, w, x, r);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovColumnsProducts_CUDA(const HybExec *exec, PetscInt K, PetscCount n, const HybScalar *z, const HybScalar *r, HybColumnsSums *sums)
{
  PetscFunctionBegin;
  COLUMNS_LAUNCH(ColumnsProducts, K, sums->blocks = (PetscInt)ColumnsSumBlocks(n * (k / ColumnsOfLane<k>())), n, (bool)sums->hermitian, z, r, sums->part);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovColumnsCurvature_CUDA(const HybExec *exec, PetscInt K, const HybCG *cg, const HybColumnsSums *sums)
{
  PetscFunctionBegin;
  HYB_LAUNCH(ColumnsCurvature, 1, K * HYB_WARP, 0, exec->stream, (int)K, *cg, (int)sums->blocks, sums->part);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovColumnsNorms_CUDA(const HybExec *exec, PetscInt K, const HybCG *cg, const HybColumnsSums *sums)
{
  PetscFunctionBegin;
  HYB_LAUNCH(ColumnsNorms, 1, K * HYB_WARP, 0, exec->stream, (int)K, *cg, (int)sums->blocks, sums->part);
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybKrylovColumnsOps HybKrylovColumnsCUDA;
const HybKrylovColumnsOps        HybKrylovColumnsCUDA = {
         .gather    = HybKrylovColumnsGather_CUDA,
         .scatter   = HybKrylovColumnsScatter_CUDA,
         .direction = HybKrylovColumnsDirection_CUDA,
         .curvature = HybKrylovColumnsCurvature_CUDA,
         .update    = HybKrylovColumnsUpdate_CUDA,
         .products  = HybKrylovColumnsProducts_CUDA,
         .norms     = HybKrylovColumnsNorms_CUDA,
};
