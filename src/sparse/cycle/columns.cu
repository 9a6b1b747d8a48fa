/*
  columns.cu: what a multigrid cycle of several vectors at once needs beside products. The vectors lie interleaved, and
  a lane has 16 bytes of one entry (columns.cuh).
*/
#include "../spmv/columns.cuh"
#include "../structure/rowops.cuh"
#include "aijhybridgpu/private/hybcycle.h"

template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsFirst(PetscCount n, const PetscReal *__restrict__ c, const HybScalar *__restrict__ dinv, const HybScalar *b, HybScalar *z)
{
  constexpr int V = ColumnsOfLane<K>(), L = K / V;

  HybChainWait();
  const PetscCount t = (PetscCount)blockIdx.x * COLUMNS_THREADS + threadIdx.x, i = t / L;
  if (i >= n) return;
  const HybScalar d = dinv[i];
  ColumnsPack<K>  v = ColumnsLoad<K>(b + t * V);
#pragma unroll
  for (int q = 0; q < V; q++) v.v[q] = (HybScalarReal)c[0] * HybMul(d, v.v[q]);
  ColumnsStore<K>(z + t * V, v);
}

/* a warp has a row */
template <int K>
static __global__ __launch_bounds__(COLUMNS_THREADS) void ColumnsDense(PetscInt m, const HybScalarWide *__restrict__ inverse, const HybScalar *b, HybScalar *x)
{
  constexpr int V = ColumnsOfLane<K>(), L = K / V;

  HybChainWait();
  ROW_LOOP(r, m, HYB_WARP)
  {
    const int      c = HybLane() % L * V;
    ColumnsPack<K> sum;

#pragma unroll
    for (int v = 0; v < V; v++) sum.v[v] = HybScalar(0);
    for (PetscInt k = HybLane() / L; r < m && k < m; k += HYB_WARP / L) {
      const HybScalar      a  = inverse[r * m + k];
      const ColumnsPack<K> bk = ColumnsLoad<K>(b + (PetscCount)k * K + c);
#pragma unroll
      for (int v = 0; v < V; v++) sum.v[v] = sum.v[v] + HybMul(a, bk.v[v]);
    }
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
      for (int d = HYB_WARP / 2; d >= L; d >>= 1) sum.v[v] = sum.v[v] + HybShflXor(HYB_FULL_MASK, sum.v[v], d);
    if (r < m && HybLane() < L) ColumnsStore<K>(x + r * K + c, sum);
  }
}

static PetscErrorCode HybCycleColumnsFirst_CUDA(const HybExec *exec, PetscInt K, PetscCount n, const PetscReal *c, const HybScalar *dinv, const HybScalar *b, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(HybDispatch((int)K, ColumnsWidths(), [&](auto k) {
    HYB_LAUNCH_CHAINED(n * k, (ColumnsFirst<k>), HybBlocks(n * (k / ColumnsOfLane<k>()), COLUMNS_THREADS),
                       COLUMNS_THREADS, 0, exec->stream, n, c, dinv, b, z);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCycleColumnsDense_CUDA(const HybExec *exec, PetscInt K, PetscInt m, const HybScalarWide *inverse, const HybScalar *b, HybScalar *x)
{
  PetscFunctionBegin;
  PetscCall(HybDispatch((int)K, ColumnsWidths(), [&](auto k) {
    HYB_LAUNCH_CHAINED((PetscCount)m * m, (ColumnsDense<k>), HybBlocks((PetscCount)m * HYB_WARP, COLUMNS_THREADS),
                       COLUMNS_THREADS, 0, exec->stream, m, inverse, b, x);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybCycleColumnsOps HybCycleColumnsCUDA;
const HybCycleColumnsOps        HybCycleColumnsCUDA = {
         .first = HybCycleColumnsFirst_CUDA,
         .dense = HybCycleColumnsDense_CUDA,
};
