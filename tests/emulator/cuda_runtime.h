/*
  The tests' CUDA: a header of CUDA's name, first on the include path, so that the project's .cu files compile as plain
  C++ and run on the CPU.

  A kernel's threads are fibers of one operating system thread; a warp's lanes run in seeded random order between the
  points where they synchronise. Only what the project's kernels use is here. Floating-point atomics are left out on
  purpose: the project has none.
*/
#ifndef EMULATOR_CUDA_RUNTIME_H
#define EMULATOR_CUDA_RUNTIME_H
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

#define CUDART_VERSION 13000
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n)      __attribute__((aligned(n)))
#define __CUDA_ALIGN__(n) __align__(n)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1)
      : x(a), y(b), z(c)
  {
  }
};
#define EMU_VEC(T, name, a2, a4)                           \
  struct __attribute__((aligned(a2))) name##2              \
  {                                                        \
    T x, y;                                                \
  };                                                       \
  struct __attribute__((aligned(a4))) name##4              \
  {                                                        \
    T x, y, z, w;                                          \
  };                                                       \
  static inline name##2 make_##name##2(T x, T y)           \
  {                                                        \
    return name##2 {x, y};                                 \
  }                                                        \
  static inline name##4 make_##name##4(T x, T y, T z, T w) \
  {                                                        \
    return name##4 {x, y, z, w};                           \
  }
EMU_VEC(char, char, 2, 4)
EMU_VEC(unsigned char, uchar, 2, 4)
EMU_VEC(short, short, 4, 8)
EMU_VEC(unsigned short, ushort, 4, 8)
EMU_VEC(int, int, 8, 16)
EMU_VEC(unsigned, uint, 8, 16)
EMU_VEC(long long, longlong, 16, 16)
EMU_VEC(unsigned long long, ulonglong, 16, 16)
EMU_VEC(float, float, 8, 16)
EMU_VEC(double, double, 16, 16)
#undef EMU_VEC

/* The runtime's types and entry points */
typedef enum {
  cudaSuccess                       = 0,
  cudaErrorInvalidValue             = 1,
  cudaErrorMemoryAllocation         = 2,
  cudaErrorInvalidConfiguration     = 9,
  cudaErrorInsufficientDriver       = 35,
  cudaErrorNotReady                 = 600,
  cudaErrorInvalidDevice            = 101,
  cudaErrorInvalidResourceHandle    = 400,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnjoined    = 904,
  cudaErrorNotSupported             = 801,
  cudaErrorUnknown                  = 999
} cudaError_t;
typedef struct EmuStream *cudaStream_t;
typedef struct EmuEvent  *cudaEvent_t;
typedef struct EmuGraph  *cudaGraph_t;
typedef struct EmuGraph  *cudaGraphExec_t;
typedef struct EmuPool   *cudaMemPool_t;
#define cudaStreamLegacy    ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
enum { cudaStreamDefault     = 0,
       cudaStreamNonBlocking = 1 };
enum { cudaEventDefault       = 0,
       cudaEventBlockingSync  = 1,
       cudaEventDisableTiming = 2 };
enum { cudaMemAttachGlobal     = 1,
       cudaHostAllocDefault    = 0,
       cudaHostRegisterDefault = 0 };
typedef enum { cudaMemcpyHostToHost,
               cudaMemcpyHostToDevice,
               cudaMemcpyDeviceToHost,
               cudaMemcpyDeviceToDevice,
               cudaMemcpyDefault } cudaMemcpyKind;
typedef enum { cudaMemoryTypeUnregistered,
               cudaMemoryTypeHost,
               cudaMemoryTypeDevice,
               cudaMemoryTypeManaged } cudaMemoryType;
typedef enum { cudaMemAllocationTypePinned  = 1,
               cudaMemAllocationTypeManaged = 2 } cudaMemAllocationType;
typedef enum { cudaMemHandleTypeNone = 0 } cudaMemAllocationHandleType;
typedef enum { cudaMemLocationTypeInvalid = 0,
               cudaMemLocationTypeDevice  = 1,
               cudaMemLocationTypeHost    = 2 } cudaMemLocationType;
typedef enum { cudaMemPoolAttrReleaseThreshold = 4,
               cudaMemPoolAttrReservedMemCurrent,
               cudaMemPoolAttrReservedMemHigh,
               cudaMemPoolAttrUsedMemCurrent,
               cudaMemPoolAttrUsedMemHigh } cudaMemPoolAttr;
typedef enum { cudaDevAttrMaxSharedMemoryPerBlock,
               cudaDevAttrMultiProcessorCount,
               cudaDevAttrMaxSharedMemoryPerBlockOptin,
               cudaDevAttrConcurrentManagedAccess,
               cudaDevAttrManagedMemory,
               cudaDevAttrMemoryPoolsSupported,
               cudaDevAttrComputeCapabilityMajor,
               cudaDevAttrComputeCapabilityMinor,
               cudaDevAttrL2CacheSize,
               cudaDevAttrCanUseHostPointerForRegisteredMem,
               cudaDevAttrMaxThreadsPerMultiProcessor } cudaDeviceAttr;
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
               cudaFuncAttributePreferredSharedMemoryCarveout } cudaFuncAttribute;
enum { cudaEnableDefault = 0 };
typedef enum { cudaDriverEntryPointSuccess        = 0,
               cudaDriverEntryPointSymbolNotFound = 1 } cudaDriverEntryPointQueryResult;
struct cudaMemLocation {
  cudaMemLocationType type;
  int                 id;
};
struct cudaMemPoolProps {
  cudaMemAllocationType       allocType;
  cudaMemAllocationHandleType handleTypes;
  cudaMemLocation             location;
  void                       *win32SecurityAttributes;
  size_t                      maxSize;
  unsigned char               reserved[56];
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int            device;
  void          *devicePointer, *hostPointer;
};
const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *);
cudaError_t cudaGetDevice(int *);
cudaError_t cudaSetDevice(int);
cudaError_t cudaDeviceGetPCIBusId(char *, int, int);
cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaRuntimeGetVersion(int *);
cudaError_t cudaStreamCreate(cudaStream_t *);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *, unsigned, int);
cudaError_t cudaDeviceGetStreamPriorityRange(int *, int *);
cudaError_t cudaStreamSynchronize(cudaStream_t);
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone,
                               cudaStreamCaptureStatusActive };
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, unsigned long long);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*)(void *), void *);
cudaError_t cudaEventCreate(cudaEvent_t *);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaMallocManaged(void **, size_t, unsigned = cudaMemAttachGlobal);
cudaError_t cudaMallocHost(void **, size_t);
cudaError_t cudaHostRegister(void *, size_t, unsigned);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaFree(void *);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *, const cudaMemPoolProps *);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t);
cudaError_t cudaMemGetInfo(size_t *, size_t *);
struct cudaIpcMemHandle_t {
  char reserved[64];
};
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *, void *);
cudaError_t cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned);
cudaError_t cudaIpcCloseMemHandle(void *);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t = nullptr);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t = nullptr);
cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned, cudaStream_t = nullptr);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *, const void *);
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int);
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *);
template <typename T>
static inline cudaError_t cudaMalloc(T **p, size_t n)
{
  return cudaMalloc((void **)p, n);
}
template <typename T>
static inline cudaError_t cudaMallocAsync(T **p, size_t n, cudaStream_t s)
{
  return cudaMallocAsync((void **)p, n, s);
}
template <typename T>
static inline cudaError_t cudaMallocHost(T **p, size_t n)
{
  return cudaMallocHost((void **)p, n);
}
template <typename... P>
static inline cudaError_t cudaFuncSetAttribute(void (*k)(P...), cudaFuncAttribute a, int v)
{
  return cudaFuncSetAttribute((const void *)k, a, v);
}

#include "device.h"
#include "intrinsics.h"
#endif
