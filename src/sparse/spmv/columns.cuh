/*
  columns.cuh: several vectors at once, interleaved: entry i of column c is at i*K+c. A lane has V neighbouring columns
  of one entry, 16 bytes where a number is not longer: one access.
*/
#ifndef AIJHYBRIDGPU_COLUMNS_CUH
#define AIJHYBRIDGPU_COLUMNS_CUH
#include "../device/hybchain.cuh"
#include "../device/hybdispatch.cuh"
#include "aijhybridgpu/private/hybspmv.h"

#define COLUMNS_THREADS 256

using ColumnsWidths = HybCases<2, 4, HYB_COLUMNS>;

/* columns of a lane */
template <int K>
constexpr int ColumnsOfLane(void)
{
  return sizeof(HybScalar) >= 16 ? 1 : K < (int)(16 / sizeof(HybScalar)) ? K
                                                                         : (int)(16 / sizeof(HybScalar));
}

template <int K>
using ColumnsPack = HybVec<HybScalar, ColumnsOfLane<K>()>;

template <int K>
static __device__ __forceinline__ ColumnsPack<K> ColumnsLoad(const HybScalar *p)
{
  return HybLoadVec<ColumnsOfLane<K>()>(p);
}

template <int K>
static __device__ __forceinline__ void ColumnsStore(HybScalar *p, const ColumnsPack<K> &v)
{
  HybStoreVec<ColumnsOfLane<K>()>(p, v);
}

static __device__ __forceinline__ HybScalar ColumnsTerm(bool hermitian, const HybScalar &a, const HybScalar &b)
{
  return HybMul(a, hermitian ? HybConj(b) : b);
}

/* blocks for so many lanes where each block leaves sums */
static inline PetscCount ColumnsSumBlocks(PetscCount lanes)
{
  return PetscMax((PetscCount)1, PetscMin(HybBlocks(lanes, COLUMNS_THREADS), (PetscCount)HYB_COLUMNS_SUMS));
}

/* This block's N sums of each column go to memory. Thread t has columns V (t mod K/V), V (t mod K/V) + 1, ...; all
   threads take part. */
template <int K, int N>
static __device__ __forceinline__ void ColumnsLeave(const HybScalar (&mine)[N][ColumnsOfLane<K>()], HybScalar *part)
{
  constexpr int V = ColumnsOfLane<K>(), L = K / V, W = COLUMNS_THREADS / HYB_WARP;
  HYB_SHARED(HybScalar, scratch, W * N * K);

#pragma unroll
  for (int s = 0; s < N; s++) {
#pragma unroll
    for (int v = 0; v < V; v++) {
      HybScalar sum = mine[s][v];
#pragma unroll
      for (int d = HYB_WARP / 2; d >= L; d >>= 1) sum = sum + HybShflXor(HYB_FULL_MASK, sum, d);
      if (HybLane() < L) scratch[((int)threadIdx.x / HYB_WARP * N + s) * K + HybLane() * V + v] = sum;
    }
  }
  __syncthreads();
  for (int t = (int)threadIdx.x; t < N * K; t += COLUMNS_THREADS) {
    HybScalar sum = scratch[t];
    for (int w = 1; w < W; w++) sum = sum + scratch[w * N * K + t];
    part[(PetscCount)blockIdx.x * N * K + t] = sum;
  }
}
#endif
