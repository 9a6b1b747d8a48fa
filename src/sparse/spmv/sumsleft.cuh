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
template <int K, typename S>
static __device__ __forceinline__ void SumsLeave(S (&sum)[K], S *part)
{
  constexpr int WARPS = SUMS_ROWS / HYB_WARP;
  HYB_SHARED(S, scratch, K * WARPS);

#pragma unroll
  for (int k = 0; k < K; k++) {
    sum[k] = HybSubwarpsSum<HYB_WARP>(sum[k]);
    if (HybLane() == 0) scratch[k * WARPS + threadIdx.x / HYB_WARP] = sum[k];
  }
  __syncthreads();
  if (threadIdx.x >= K) return;
  S all = scratch[threadIdx.x * WARPS];
  for (int w = 1; w < WARPS; w++) all = all + scratch[threadIdx.x * WARPS + w];
  part[(PetscCount)blockIdx.x * K + threadIdx.x] = all;
}

/* z r, |z|^2 and |r|^2 */
template <typename S>
static __device__ __forceinline__ void SumsLeaveProducts(const S &z, const S &r, bool hermitian, S *part)
{
  S sum[3] = {HybMul(z, hermitian ? HybConj(r) : r), HybMul(z, HybConj(z)), HybMul(r, HybConj(r))};
  SumsLeave<3>(sum, part);
}

/* p w */
template <typename S>
static __device__ __forceinline__ void SumsLeaveProduct(const S &p, const S &w, bool hermitian, S *part)
{
  S sum[1] = {HybMul(p, hermitian ? HybConj(w) : w)};
  SumsLeave<1>(sum, part);
}
#endif
