/*
  hybchain.cuh: launches of which the next one does not wait for the last one's end.

  HYB_LAUNCH_CHAINED() is HYB_LAUNCH() of a kernel that calls HybChainWait(). While a chain is captured
  (HybDeviceChain()) its blocks come to the card while the kernel before it still ends, and wait there: a small kernel's
  launch takes no time of its own then. Every thread calls it, before it writes anything, and before it reads what a
  kernel of a chain may have written: all but matrices and plans. Vectors are no `const __restrict__` there, nor read by
  HybLoadReadOnly(): the compiler moves such loads before the wait. work: entries or nonzeros; large kernels gain
  nothing (tuning's chain). Where blocks come and go, and each has little in hand, rows; where a kernel's blocks just
  fill the card, or hold much of its memory, those of the next one are in their way: nonzeros.
*/
#ifndef AIJHYBRIDGPU_HYBCHAIN_CUH
#define AIJHYBRIDGPU_HYBCHAIN_CUH
#include "hybdevice.cuh"

#define HYB_LAUNCH_CHAINED(work, kernel, ...)                 \
  do {                                                        \
    HybDeviceChainWork(work);                                 \
    HYB_LAUNCH_BY_(HYB_LAUNCH_CHAINED_, kernel, __VA_ARGS__); \
  } while (0)
extern "C" void                        HybDeviceChain(bool);
extern "C" void                        HybDeviceChainWork(PetscCount work);
extern "C" bool                        HybDeviceChains(void);
static __device__ __forceinline__ void HybChainWait(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}
#if !defined(HYB_EMULATOR)
template <typename... P, typename... A>
static inline void HybLaunchChained(void (*kernel)(P...), dim3 grid, dim3 block, size_t bytes, cudaStream_t stream, A &&...args)
{
  cudaLaunchConfig_t  config = {};
  cudaLaunchAttribute attribute;

  attribute.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim                                       = grid;
  config.blockDim                                      = block;
  config.dynamicSmemBytes                              = bytes;
  config.stream                                        = stream;
  config.attrs                                         = &attribute;
  config.numAttrs                                      = HybDeviceChains() ? 1 : 0;
  (void)cudaLaunchKernelEx(&config, kernel, args...); /* the caller asks for the error */
}
  #define HYB_LAUNCH_CHAINED_(kernel, kernelname, argnames, grid, block, bytes, stream, ...) HybLaunchChained(kernel, grid, block, bytes, stream, __VA_ARGS__)
#else
  #define HYB_LAUNCH_CHAINED_ HYB_LAUNCH_KERNEL_
#endif

/* of a vector that a kernel of a chain may have written */
template <typename T>
static __device__ __forceinline__ T HybLoadVector(const T *p)
{
  return *p;
}
#endif
