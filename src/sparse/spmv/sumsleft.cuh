/*
  sumsleft.cuh: inner products that a kernel leaves on its way, block by block of SUMS_ROWS rows. A kernel that forms
  them alone does it by these functions as well, so that the bits do not depend on who does.
*/
#ifndef AIJHYBRIDGPU_SUMSLEFT_CUH
#define AIJHYBRIDGPU_SUMSLEFT_CUH
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybspmv.h"

#define SUMS_ROWS HYB_SPMV_SUMS_ROWS /* rows, and threads, of a block */

/* K sums of a block, side by side at part; all SUMS_ROWS threads take part */
template <int K>
static __device__ __forceinline__ void SumsLeave(HybScalar (&sum)[K], HybScalar *part)
{
  constexpr int WARPS = SUMS_ROWS / HYB_WARP;
  HYB_SHARED(HybScalar, scratch, K * WARPS);

#pragma unroll
  for (int k = 0; k < K; k++) {
    sum[k] = HybSubwarpsSum<HYB_WARP>(sum[k]);
    if (HybLane() == 0) scratch[k * WARPS + threadIdx.x / HYB_WARP] = sum[k];
  }
  __syncthreads();
  if (threadIdx.x >= K) return;
  HybScalar all = scratch[threadIdx.x * WARPS];
  for (int w = 1; w < WARPS; w++) all = all + scratch[threadIdx.x * WARPS + w];
  part[(PetscCount)blockIdx.x * K + threadIdx.x] = all;
}

/* z r, |z|^2 and |r|^2 */
static __device__ __forceinline__ void SumsLeaveProducts(const HybScalar &z, const HybScalar &r, bool hermitian, HybScalar *part)
{
  HybScalar sum[3] = {HybMul(z, hermitian ? HybConj(r) : r), HybMul(z, HybConj(z)), HybMul(r, HybConj(r))};
  SumsLeave<3>(sum, part);
}

/* p w */
static __device__ __forceinline__ void SumsLeaveProduct(const HybScalar &p, const HybScalar &w, bool hermitian, HybScalar *part)
{
  HybScalar sum[1] = {HybMul(p, hermitian ? HybConj(w) : w)};
  SumsLeave<1>(sum, part);
}
#endif
