/*
  hybgroup.cuh: a group of G threads that work on one row together: a sub-warp for G <= 32, a whole block for more. Row
  code is written once for both.
*/
#ifndef AIJHYBRIDGPU_HYBGROUP_CUH
#define AIJHYBRIDGPU_HYBGROUP_CUH
#include "hybdispatch.cuh"

template <int G>
struct HybGroup {
  static constexpr bool SUBWARP = G <= HYB_WARP;
  static constexpr int  THREADS = SUBWARP ? 128 : G; /* of a block */
  static constexpr int  GROUPS  = THREADS / G;       /* in a block */

  static __device__ __forceinline__ int rank()
  {
    return SUBWARP ? (HybLane() & (G - 1)) : (int)threadIdx.x;
  }
  static __device__ __forceinline__ int index()
  {
    return SUBWARP ? (int)threadIdx.x / G : 0;
  }
  static __device__ __forceinline__ void sync()
  {
    if (SUBWARP)
      __syncwarp(HybSubwarpMask < SUBWARP ? G : HYB_WARP > ());
    else
      __syncthreads();
  }
  /* scratch: HYB_WARP entries of shared memory for a block, unused by a sub-warp */
  template <typename T, typename Op>
  static __device__ __forceinline__ T reduce(T v, T *scratch, Op op)
  {
    if constexpr (SUBWARP)
      return HybSubwarpReduce<G>(v, op);
    else
      return HybBlockReduce<G>(v, scratch, op);
  }
  template <typename T>
  static __device__ __forceinline__ T exclusiveSum(T v, T *scratch, T *total = nullptr)
  {
    if constexpr (SUBWARP)
      return HybSubwarpExclusiveSum<G>(v, total);
    else
      return HybBlockExclusiveSum<G>(v, scratch, total);
  }
};

/*
  Sorts list[0..n-1] (shared memory, any n) ascending: a bitonic network whose comparisons all point the same way, so
  that places beyond n act as infinity and are left out. Ends with a synchronisation of the group; the caller
  synchronises before.
*/
template <int G, typename T>
static __device__ __forceinline__ void HybGroupSort(T *list, unsigned n)
{
  for (unsigned k = 2; k < 2 * n; k <<= 1) {
    for (unsigned j = k >> 1; j > 0; j >>= 1) {
      for (unsigned t = (unsigned)HybGroup<G>::rank(); t < (n + 1) / 2 + j; t += G) {
        /* t-th pair of the step */
        const unsigned low  = 2 * t - (t & (j - 1));
        const unsigned high = j == k >> 1 ? (low | (k - 1)) - (low & (j - 1)) : low + j;

        if (high < n) {
          const T a = list[low], b = list[high];

          if (b < a) {
            list[low]  = b;
            list[high] = a;
          }
        }
      }
      HybGroup<G>::sync();
    }
  }
}

#endif
