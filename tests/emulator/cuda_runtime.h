/*
  The tests' CUDA: a header of CUDA's name, first on the include path, so that the project's .cu files compile as plain C++ and run on the CPU.

  A kernel's threads are fibers of one operating system thread; a warp's lanes run in seeded random order between the points where they synchronise.
  Only what the project's kernels use is here. Floating-point atomics are left out on purpose: the project has none.
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
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ALIGN__(n) __align__(n)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) { }
};
#define EMU_VEC(T, name, a2, a4) \
  struct __attribute__((aligned(a2))) name##2 { \
    T x, y; \
  }; \
  struct __attribute__((aligned(a4))) name##4 { \
    T x, y, z, w; \
  }; \
  static inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
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
  cudaSuccess                   = 0,
  cudaErrorInvalidValue         = 1,
  cudaErrorMemoryAllocation     = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNotReady             = 600,
  cudaErrorInvalidDevice        = 101,
  cudaErrorNotSupported         = 801,
  cudaErrorUnknown              = 999
} cudaError_t;
typedef struct EmuStream *cudaStream_t;
typedef struct EmuEvent  *cudaEvent_t;
typedef struct EmuPool   *cudaMemPool_t;
#define cudaStreamLegacy    ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum { cudaMemAttachGlobal = 1, cudaHostAllocDefault = 0, cudaHostRegisterDefault = 0 };
typedef enum { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault } cudaMemcpyKind;
typedef enum { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged } cudaMemoryType;
typedef enum { cudaMemAllocationTypePinned = 1, cudaMemAllocationTypeManaged = 2 } cudaMemAllocationType;
typedef enum { cudaMemHandleTypeNone = 0 } cudaMemAllocationHandleType;
typedef enum { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2 } cudaMemLocationType;
typedef enum { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrReservedMemHigh, cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh } cudaMemPoolAttr;
typedef enum { cudaDevAttrMaxSharedMemoryPerBlock, cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin, cudaDevAttrConcurrentManagedAccess, cudaDevAttrManagedMemory, cudaDevAttrMemoryPoolsSupported, cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor, cudaDevAttrL2CacheSize, cudaDevAttrMaxThreadsPerMultiProcessor } cudaDeviceAttr;
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout } cudaFuncAttribute;
enum { cudaEnableDefault = 0 };
typedef enum { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 } cudaDriverEntryPointQueryResult;
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
const char *cudaGetErrorName(cudaError_t);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetDeviceCount(int *);
cudaError_t cudaGetDevice(int *);
cudaError_t cudaSetDevice(int);
cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaRuntimeGetVersion(int *);
cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaStreamCreate(cudaStream_t *);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
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
cudaError_t cudaHostAlloc(void **, size_t, unsigned);
cudaError_t cudaHostRegister(void *, size_t, unsigned);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaFree(void *);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *, const cudaMemPoolProps *);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t);
cudaError_t cudaMemGetInfo(size_t *, size_t *);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t = nullptr);
cudaError_t cudaMemset(void *, int, size_t);
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

/* What the emulator offers to the code below and to its stand-ins */
namespace emu
{
#define EMU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct Use { /* memory that a queued operation touches */
  const void *ptr;
  size_t      bytes; /* 0: the whole allocation */
  bool        write;
};

enum Kind { SYNCWARP, SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR, BALLOT, MATCH_ANY, MATCH_ALL, REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_UMIN, REDUCE_UMAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };
enum Vote { BARRIER, COUNT, AND, OR };

struct SharedSite {
  const char *name, *file;
  int         line;
  unsigned    epoch;
  void       *ptr;
};

extern uint3        threadIdx_, blockIdx_;
extern dim3         blockDim_, gridDim_;
extern unsigned     epoch_;
uint64_t            Warp(Kind, unsigned mask, uint64_t value, int aux, int width, const char *file, int line);
int                 Barrier(Vote, int predicate, const char *file, int line);
void                Yield(void);
void                MaybeYield(void);
unsigned            ActiveMask(void);
void               *SharedAllocate(SharedSite *, size_t bytes);
void               *SharedDynamic(void);
uint64_t            Random(void);
[[noreturn]] void   Fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void                Launch(const void *kernel, const char *name, const char *args, const char *file, int line, dim3 grid, dim3 block, size_t bytes, cudaStream_t, std::vector<Use> &&, std::vector<int> &&argument, std::function<void()> &&);
/* an operation of the runtime or of a stand-in; uses are checked and opened like a kernel's */
void                Enqueue(cudaStream_t, const char *what, std::vector<Use> &&, std::function<void()> &&);
bool                Unwritten(const void *p, size_t bytes, size_t *at); /* holds a word of poison? for device memory, inside an operation */

/* pointers among a kernel's arguments: const ones are read, others may be written; in structs all words that look like pointers */
void LooksLikePointers(const void *object, size_t bytes, int argument, std::vector<Use> &, std::vector<int> &);
template <typename T>
static inline void Collect(const T &v, int argument, std::vector<Use> &uses, std::vector<int> &which)
{
  if constexpr (std::is_pointer<T>::value) {
    if (v) {
      uses.push_back(Use{(const void *)v, 0, !std::is_const<typename std::remove_pointer<T>::type>::value});
      which.push_back(argument);
    }
  } else if constexpr (sizeof(T) >= sizeof(void *) && std::is_class<T>::value) LooksLikePointers(&v, sizeof(T), argument, uses, which);
}

template <typename... P, typename... A>
static inline void LaunchKernel(void (*kernel)(P...), const char *name, const char *argnames, const char *file, int line, dim3 grid, dim3 block, size_t bytes, cudaStream_t stream, A &&...args)
{
  std::tuple<typename std::decay<P>::type...> values(static_cast<typename std::decay<P>::type>(args)...);
  std::vector<Use>                            uses;
  std::vector<int>                            which;
  std::apply([&](const auto &...v) { int k = 0; (Collect(v, k++, uses, which), ...); (void)k; }, values);
  Launch((const void *)kernel, name, argnames, file, line, grid, block, bytes, stream, std::move(uses), std::move(which), [kernel, values]() { std::apply(kernel, values); });
}
} // namespace emu

#define HYB_LAUNCH_KERNEL_(kernel, name, argnames, grid, block, bytes, stream, ...) emu::LaunchKernel(kernel, name, argnames, __FILE__, __LINE__, grid, block, bytes, stream, ##__VA_ARGS__)
#define HYB_SHARED(type, name, count) \
  static emu::SharedSite name##_site_ = {#name, __FILE__, __LINE__, 0, nullptr}; \
  type *const            name         = reinterpret_cast<type *>(name##_site_.epoch == emu::epoch_ ? name##_site_.ptr : emu::SharedAllocate(&name##_site_, sizeof(type) * (size_t)(count)))
#define HYB_DYNAMIC_SHARED(type, name) type *const name = reinterpret_cast<type *>(emu::SharedDynamic())

#define threadIdx (emu::threadIdx_)
#define blockIdx  (emu::blockIdx_)
#define blockDim  (emu::blockDim_)
#define gridDim   (emu::gridDim_)
static constexpr int warpSize = 32;

/* Block-wide */
static inline void __syncthreads(EMU_HERE)
{
  emu::Barrier(emu::BARRIER, 0, file, line);
}
static inline int __syncthreads_count(int p, EMU_HERE)
{
  return emu::Barrier(emu::COUNT, p, file, line);
}
static inline int __syncthreads_and(int p, EMU_HERE)
{
  return emu::Barrier(emu::AND, p, file, line);
}
static inline int __syncthreads_or(int p, EMU_HERE)
{
  return emu::Barrier(emu::OR, p, file, line);
}

/* Warp-wide */
static inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_HERE)
{
  emu::Warp(emu::SYNCWARP, mask, 0, 0, 32, file, line);
}
template <typename T>
static inline T EmuShfl(emu::Kind kind, unsigned mask, T v, int aux, int width, const char *file, int line)
{
  static_assert((sizeof(T) == 4 || sizeof(T) == 8) && std::is_trivially_copyable<T>::value, "CUDA shuffles 4 and 8 byte types");
  uint64_t w = 0;
  memcpy(&w, &v, sizeof(T));
  w = emu::Warp(kind, mask, w, aux, width, file, line);
  memcpy(&v, &w, sizeof(T));
  return v;
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32, EMU_HERE)
{
  return EmuShfl(emu::SHFL, mask, v, lane, width, file, line);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, EMU_HERE)
{
  return EmuShfl(emu::SHFL_UP, mask, v, (int)delta, width, file, line);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, EMU_HERE)
{
  return EmuShfl(emu::SHFL_DOWN, mask, v, (int)delta, width, file, line);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T v, int lanemask, int width = 32, EMU_HERE)
{
  return EmuShfl(emu::SHFL_XOR, mask, v, lanemask, width, file, line);
}
static inline unsigned __ballot_sync(unsigned mask, int p, EMU_HERE)
{
  return (unsigned)emu::Warp(emu::BALLOT, mask, p != 0, 0, 32, file, line);
}
static inline int __any_sync(unsigned mask, int p, EMU_HERE)
{
  return emu::Warp(emu::BALLOT, mask, p != 0, 0, 32, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int p, EMU_HERE)
{
  return emu::Warp(emu::BALLOT, mask, p == 0, 0, 32, file, line) == 0;
}
static inline unsigned __activemask(void)
{
  return emu::ActiveMask();
}
template <typename T>
static inline unsigned __match_any_sync(unsigned mask, T v, EMU_HERE)
{
  uint64_t w = 0;
  memcpy(&w, &v, sizeof(T));
  return (unsigned)emu::Warp(emu::MATCH_ANY, mask, w, 0, 32, file, line);
}
template <typename T>
static inline unsigned __match_all_sync(unsigned mask, T v, int *same, EMU_HERE)
{
  uint64_t w = 0;
  memcpy(&w, &v, sizeof(T));
  const unsigned r = (unsigned)emu::Warp(emu::MATCH_ALL, mask, w, 0, 32, file, line);
  *same            = r != 0;
  return r;
}
#define EMU_REDUCE(name, kind, T) \
  static inline T name(unsigned mask, T v, EMU_HERE) { return (T)emu::Warp(emu::kind, mask, (uint64_t)(unsigned)v, 0, 32, file, line); }
EMU_REDUCE(__reduce_add_sync, REDUCE_ADD, unsigned)
EMU_REDUCE(__reduce_add_sync, REDUCE_ADD, int)
EMU_REDUCE(__reduce_min_sync, REDUCE_UMIN, unsigned)
EMU_REDUCE(__reduce_min_sync, REDUCE_MIN, int)
EMU_REDUCE(__reduce_max_sync, REDUCE_UMAX, unsigned)
EMU_REDUCE(__reduce_max_sync, REDUCE_MAX, int)
EMU_REDUCE(__reduce_and_sync, REDUCE_AND, unsigned)
EMU_REDUCE(__reduce_or_sync, REDUCE_OR, unsigned)
EMU_REDUCE(__reduce_xor_sync, REDUCE_XOR, unsigned)
#undef EMU_REDUCE

/* The race detector's build (EMU_RACES, races.cc) sees plain accesses through the compiler, and these through calls of their own */
#if defined(EMU_RACES)
namespace emu
{
void RaceFence(void);
void RaceAtomic(const void *, size_t);
} // namespace emu
  #define EMU_UNSEEN      __attribute__((no_sanitize_thread, noinline))
  #define EMU_RACE(...)   __VA_ARGS__
#else
  #define EMU_UNSEEN
  #define EMU_RACE(...)
#endif

/* Atomics: fibers change hands only where they ask to, so a plain update is atomic; now and then another thread goes first */
#define EMU_ATOMIC(name, T, update) \
  EMU_UNSEEN static inline T name(T *p, T v) { emu::MaybeYield(); EMU_RACE(emu::RaceAtomic(p, sizeof(T));) const T old = *p; *p = (update); return old; }
#define EMU_ATOMICS(T) \
  EMU_ATOMIC(atomicAdd, T, (T)(old + v)) \
  EMU_ATOMIC(atomicExch, T, v) \
  EMU_ATOMIC(atomicMin, T, old < v ? old : v) \
  EMU_ATOMIC(atomicMax, T, old > v ? old : v) \
  EMU_ATOMIC(atomicAnd, T, (T)(old & v)) \
  EMU_ATOMIC(atomicOr, T, (T)(old | v)) \
  EMU_ATOMIC(atomicXor, T, (T)(old ^ v)) \
  EMU_UNSEEN static inline T atomicCAS(T *p, T compare, T v) { emu::MaybeYield(); EMU_RACE(emu::RaceAtomic(p, sizeof(T));) const T old = *p; if (old == compare) *p = v; return old; }
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
EMU_ATOMIC(atomicMin, long long, old < v ? old : v)
EMU_ATOMIC(atomicMax, long long, old > v ? old : v)
EMU_ATOMIC(atomicAnd, long long, old & v)
EMU_ATOMIC(atomicOr, long long, old | v)
EMU_ATOMIC(atomicXor, long long, old ^ v)
EMU_ATOMIC(atomicSub, int, old - v)
EMU_ATOMIC(atomicSub, unsigned, old - v)
EMU_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
EMU_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
#undef EMU_ATOMICS
#undef EMU_ATOMIC
static inline void __threadfence(void)
{
  EMU_RACE(emu::RaceFence();)
  emu::MaybeYield();
}
static inline void __threadfence_block(void)
{
  emu::MaybeYield();
}
static inline void __threadfence_system(void)
{
  EMU_RACE(emu::RaceFence();)
  emu::MaybeYield();
}
static inline void __nanosleep(unsigned)
{
  emu::Yield();
}
static inline void __trap(void)
{
  emu::Fail("__trap()");
}
long long clock64(void);

/* Loads and stores with cache hints */
#define EMU_LOAD(name) \
  template <typename T> \
  static inline T name(const T *p) \
  { \
    return *p; \
  }
#define EMU_STORE(name) \
  template <typename T> \
  static inline void name(T *p, T v) \
  { \
    *p = v; \
  }
EMU_LOAD(__ldg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldlu)
EMU_STORE(__stcs)
EMU_STORE(__stcg)
EMU_STORE(__stwb)
EMU_STORE(__stwt)
#undef EMU_LOAD
#undef EMU_STORE
template <typename T>
static inline T __ldcv(const T *p)
{
  emu::MaybeYield();
  return *(const volatile T *)p;
}

/* Integers */
static inline int __popc(unsigned v)
{
  return __builtin_popcount(v);
}
static inline int __popcll(unsigned long long v)
{
  return __builtin_popcountll(v);
}
static inline int __ffs(int v)
{
  return __builtin_ffs(v);
}
static inline int __ffsll(long long v)
{
  return __builtin_ffsll(v);
}
static inline int __clz(int v)
{
  return v ? __builtin_clz((unsigned)v) : 32;
}
static inline int __clzll(long long v)
{
  return v ? __builtin_clzll((unsigned long long)v) : 64;
}
static inline unsigned __brev(unsigned v)
{
  unsigned r = 0;
  for (int k = 0; k < 32; k++) r |= ((v >> k) & 1u) << (31 - k);
  return r;
}
static inline unsigned long long __brevll(unsigned long long v)
{
  return ((unsigned long long)__brev((unsigned)v) << 32) | __brev((unsigned)(v >> 32));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
  const uint64_t b = ((uint64_t)y << 32) | x;
  unsigned       r = 0;
  for (int k = 0; k < 4; k++) {
    unsigned byte = (unsigned)(b >> (8 * ((s >> (4 * k)) & 7))) & 0xffu;
    if ((s >> (4 * k)) & 8) byte = (byte & 0x80u) ? 0xffu : 0;
    r |= byte << (8 * k);
  }
  return r;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s)
{
  return (unsigned)(((((uint64_t)hi << 32) | lo) << (s & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s)
{
  return (unsigned)((((uint64_t)hi << 32) | lo) >> (s & 31));
}
static inline int __mulhi(int a, int b)
{
  return (int)(((int64_t)a * b) >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
  return (unsigned)(((uint64_t)a * b) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static inline long long __double_as_longlong(double v)
{
  long long r;
  memcpy(&r, &v, 8);
  return r;
}
static inline double __longlong_as_double(long long v)
{
  double r;
  memcpy(&r, &v, 8);
  return r;
}
static inline int __float_as_int(float v)
{
  int r;
  memcpy(&r, &v, 4);
  return r;
}
static inline float __int_as_float(int v)
{
  float r;
  memcpy(&r, &v, 4);
  return r;
}
static inline double __dadd_rn(double a, double b)
{
  return a + b;
}
static inline double __dmul_rn(double a, double b)
{
  return a * b;
}
static inline double __fma_rn(double a, double b, double c)
{
  return std::fma(a, b, c);
}

/* CUDA's min and max take mixed integer types */
template <typename A, typename B>
static inline constexpr typename std::common_type<A, B>::type min(const A &a, const B &b)
{
  using T = typename std::common_type<A, B>::type;
  return (T)b < (T)a ? (T)b : (T)a;
}
template <typename A, typename B>
static inline constexpr typename std::common_type<A, B>::type max(const A &a, const B &b)
{
  using T = typename std::common_type<A, B>::type;
  return (T)a < (T)b ? (T)b : (T)a;
}
#endif
