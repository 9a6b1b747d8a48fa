/*
  hybdevice.cuh: the one header that every .cu file includes. Launches, shared memory, error handling, warp and block
  helpers, and device-wide primitives.

  The same .cu files are compiled by nvcc and, with tests/emulator first on the include path, by an ordinary C++
  compiler: the emulator's own <cuda_runtime.h> supplies the builtins under their own names. So kernels keep to what
  this header offers:

    HYB_LAUNCH(kernel, grid, block, dynamic_bytes, stream, args...)  a template in parentheses: HYB_LAUNCH((K<8>), ...)
    HYB_SHARED(type, name, count); HYB_DYNAMIC_SHARED(type, name);   both declare `type *name`
    HybCallCUDA(expr)                                                a CUDA call whose failure is a PETSc error

  Blocks are one-dimensional (threadIdx.x alone is used by the helpers here). Lanes of a warp may run in any order
  between two synchronisations: whatever lanes exchange through memory needs __syncwarp(mask).

  Everything that sums does so in a fixed order: results do not depend on the run.
*/
#ifndef AIJHYBRIDGPU_HYBDEVICE_CUH
#define AIJHYBRIDGPU_HYBDEVICE_CUH

#include <cuda_runtime.h>
#include "aijhybridgpu/private/hyb.h"
#include <cstdint>
#include <cstring>
#include <type_traits>

static_assert(sizeof(HybScalarWide) == sizeof(PetscScalar), "HybScalarWide must have PetscScalar's layout");

#define HYB_WARP      32
#define HYB_FULL_MASK 0xffffffffu

/* Errors. HybServices' fault hook is asked first, so tests can make any call fail. */
extern "C" {
/* non-zero: this call shall fail (fault injection) */
extern int HybDeviceFault(const char *what);
/* the PETSc error of a CUDA error: PETSC_ERR_MEM when memory ran out, else PETSC_ERR_LIB; 0 for cudaSuccess */
extern PetscErrorCode HybDeviceError(cudaError_t, const char *what, const char *file, int line);
/* lifts a kernel's limit of shared memory, 48 KiB for static and dynamic together; asked for above 16 KiB of dynamic
   memory, no kernel having more than 32 static */
extern PetscErrorCode HybDeviceDynamicShared(const void *kernel, size_t bytes, const char *what);
/* a kernel's later launches prefer so many per cent of a multiprocessor's memory as shared memory, the rest being its
   first-level cache; -1: as the driver likes */
extern PetscErrorCode HybDeviceCarveout(const void *kernel, int percent);
}

#define HybCallCUDA(...)                                                                                               \
  do {                                                                                                                 \
    const cudaError_t hyb_err_ = HybDeviceFault(#__VA_ARGS__) ? cudaErrorUnknown : (__VA_ARGS__);                      \
    if (PetscUnlikely(hyb_err_ != cudaSuccess)) PetscCall(HybDeviceError(hyb_err_, #__VA_ARGS__, __FILE__, __LINE__)); \
  } while (0)

/* A grid's size may be given as dim3 or as a count; a count beyond the hardware's limit is an error, not a
   wrap-around. */
struct HybGrid {
  PetscCount x;
  unsigned   y, z;
  HybGrid(const dim3 &d)
      : x(d.x), y(d.y), z(d.z)
  {
  }
  template <typename I, typename = typename std::enable_if<std::is_integral<I>::value>::type>
  HybGrid(I n)
      : x((PetscCount)n), y(1), z(1)
  {
  }
};

static inline PetscCount HybBlocks(PetscCount n, PetscCount threads)
{
  return (n + threads - 1) / threads;
}

#if !defined(HYB_EMULATOR)
  #define HYB_LAUNCH_KERNEL_(kernel, kernelname, argnames, grid, block, bytes, stream, ...) kernel<<<(grid), (block), (bytes), (stream)>>>(__VA_ARGS__)
  /* the compiler makes four loads of neighbours one of 16 bytes, also where the last ones are not wanted: shared memory
     has room for that, and compute-sanitizer is to see that it has */
  #define HYB_LAUNCH_BYTES_(bytes) (((size_t)(bytes) + 15) / 16 * 16)
#else
  #define HYB_LAUNCH_BYTES_(bytes) ((size_t)(bytes))
#endif

/* Does nothing for an empty grid. For functions that return PetscErrorCode. */
#define HYB_LAUNCH(kernel, ...) HYB_LAUNCH_BY_(HYB_LAUNCH_KERNEL_, kernel, __VA_ARGS__)

/* one of the launchers: this one's or hybchain.cuh's */
#define HYB_LAUNCH_BY_(launcher, kernel, grid, block, dynamic_bytes, stream, ...)                                                                                                                \
  do {                                                                                                                                                                                           \
    const HybGrid hyb_grid_(grid);                                                                                                                                                               \
    const size_t  hyb_dyn_ = HYB_LAUNCH_BYTES_(dynamic_bytes);                                                                                                                                   \
    if (hyb_grid_.x > 0 && hyb_grid_.y > 0 && hyb_grid_.z > 0) {                                                                                                                                 \
      auto hyb_kernel_ = kernel;                                                                                                                                                                 \
      PetscCheck(hyb_grid_.x <= 2147483647, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Kernel %s: %" PetscInt64_FMT " blocks are more than a grid can have", #kernel, (PetscInt64)hyb_grid_.x); \
      PetscCheck(!HybDeviceFault("launch " #kernel), PETSC_COMM_SELF, PETSC_ERR_LIB, "Launch of kernel %s failed: made to fail by the fault hook", #kernel);                                     \
      if (hyb_dyn_ > 16 * 1024) PetscCall(HybDeviceDynamicShared((const void *)hyb_kernel_, hyb_dyn_, #kernel));                                                                                 \
      launcher(hyb_kernel_, #kernel, #__VA_ARGS__, dim3((unsigned)hyb_grid_.x, hyb_grid_.y, hyb_grid_.z), dim3(block), hyb_dyn_, (cudaStream_t)(stream), __VA_ARGS__);                           \
      const cudaError_t hyb_err_ = cudaGetLastError();                                                                                                                                           \
      if (PetscUnlikely(hyb_err_ != cudaSuccess)) PetscCall(HybDeviceError(hyb_err_, "launch of " #kernel, __FILE__, __LINE__));                                                                 \
    }                                                                                                                                                                                            \
  } while (0)

/* Shared memory as raw aligned bytes, so that types with constructors (complex) need none. Not initialized. */
#if !defined(HYB_EMULATOR)
  #define HYB_SHARED(type, name, count)                                           \
    __shared__ __align__(16) unsigned char name##_bytes_[sizeof(type) * (count)]; \
    type *const                            name = reinterpret_cast<type *>(name##_bytes_)
  #define HYB_DYNAMIC_SHARED(type, name)                                 \
    extern __shared__ __align__(16) unsigned char hyb_dynamic_shared_[]; \
    type *const                                   name = reinterpret_cast<type *>(hyb_dynamic_shared_)
#endif

/* The most dynamic shared memory that a block may ask for on this device, and its number of multiprocessors */
extern "C" PetscErrorCode HybDeviceLimits(size_t *sharedperblock, int *multiprocessors);
/* bytes of its second-level cache */
extern "C" PetscErrorCode HybDeviceLevel2(size_t *bytes);

/* what the plugin says of how kernels run */
extern "C" const HybTuning *HybDeviceTuning(void);

/* Memory that its holder can do without, offered between uses: where an allocation finds none, all that is offered is
   given back, and it is tried again. giveback() takes nothing itself, and may also keep the memory; it must offer it
   anew to be asked once more. */
struct HybSpare {
  PetscErrorCode (*giveback)(HybSpare *);
  HybSpare *next, **link; /* link: NULL where it is not offered */
};
extern "C" void HybSpareOffer(HybSpare *);
extern "C" void HybSpareWithdraw(HybSpare *);

/* HybCrewDo() by all cores of this process, where so many bytes are worth waking them */
extern "C" void HybDeviceCrew(void (*work)(void *job, size_t from, size_t to), void *job, size_t n, size_t unit, size_t bytes);

/* Work beside the operation's stream: side[0..n-1] begin after what exec's stream holds now; the join lets that stream
   wait for them. Nothing that the work between the two uses is freed before the join, which is called also after an
   error. */
#define HYB_SIDE_STREAMS 2
/* a stream for such work, made once; first: its blocks go before others'. HybDeviceZero() is not for it. */
extern "C" PetscErrorCode HybDeviceSideStream(bool first, cudaStream_t *stream);
extern "C" PetscErrorCode HybDeviceFork(const HybExec *exec, int n, HybExec side[]);
extern "C" PetscErrorCode HybDeviceJoin(const HybExec *exec, int n);

/*
  Lanes, sub-warps. A sub-warp is W = 1, 2, ..., 32 neighbouring lanes, W a power of two, aligned to W.
*/
static __device__ __forceinline__ int HybLane(void)
{
  return (int)(threadIdx.x & (HYB_WARP - 1));
}

template <int W>
static __device__ __forceinline__ unsigned HybSubwarpMask(void)
{
  return W == HYB_WARP ? HYB_FULL_MASK : (((1u << (W & 31)) - 1u) << (HybLane() & ~(W - 1)));
}

static __device__ __forceinline__ unsigned HybSubwarpMask(int w)
{
  return w == HYB_WARP ? HYB_FULL_MASK : (((1u << w) - 1u) << (HybLane() & ~(w - 1)));
}

/* the lanes below this one */
static __device__ __forceinline__ unsigned HybLanesBelow(void)
{
  return (1u << HybLane()) - 1u;
}

/* Shuffles of any trivially copyable type, in words of 8 or 4 bytes */
template <typename T, typename F>
static __device__ __forceinline__ T HybShflWords_(const T &v, F shfl)
{
  using W         = typename std::conditional<sizeof(T) % 8 == 0, unsigned long long, unsigned>::type;
  constexpr int n = (int)((sizeof(T) + sizeof(W) - 1) / sizeof(W));
  W             w[n];
  T             r;
  w[n - 1] = 0;
  memcpy(w, &v, sizeof(T));
#pragma unroll
  for (int k = 0; k < n; k++) w[k] = shfl(w[k]);
  memcpy((void *)&r, w, sizeof(T));
  return r;
}

template <typename T>
static __device__ __forceinline__ T HybShfl(unsigned mask, const T &v, int lane, int width = HYB_WARP)
{
  return HybShflWords_(v, [&](auto w) { return __shfl_sync(mask, w, lane, width); });
}

template <typename T>
static __device__ __forceinline__ T HybShflUp(unsigned mask, const T &v, unsigned delta, int width = HYB_WARP)
{
  return HybShflWords_(v, [&](auto w) { return __shfl_up_sync(mask, w, delta, width); });
}

template <typename T>
static __device__ __forceinline__ T HybShflXor(unsigned mask, const T &v, int lanemask, int width = HYB_WARP)
{
  return HybShflWords_(v, [&](auto w) { return __shfl_xor_sync(mask, w, lanemask, width); });
}

struct HybSum {
  template <typename T>
  __host__ __device__ __forceinline__ T operator()(const T &a, const T &b) const
  {
    return a + b;
  }
};
struct HybMax {
  template <typename T>
  __host__ __device__ __forceinline__ T operator()(const T &a, const T &b) const
  {
    return a < b ? b : a;
  }
};
struct HybMin {
  template <typename T>
  __host__ __device__ __forceinline__ T operator()(const T &a, const T &b) const
  {
    return b < a ? b : a;
  }
};

/* All lanes of the sub-warp take part and all receive the result. The order is the butterfly's: distances W/2, ..., 2,
   1. */
template <int W, typename T, typename Op>
static __device__ __forceinline__ T HybSubwarpReduce(T v, Op op)
{
  const unsigned mask = HybSubwarpMask<W>();
#pragma unroll
  for (int d = W / 2; d > 0; d >>= 1) v = op(v, HybShflXor(mask, v, d, W));
  return v;
}

template <int W, typename T>
static __device__ __forceinline__ T HybSubwarpSum(T v)
{
  return HybSubwarpReduce<W>(v, HybSum());
}

/* the same for all sub-warps of a warp together: who takes part need not be looked for, which costs as much as the
   sum */
template <int W, typename T>
static __device__ __forceinline__ T HybSubwarpsSum(T v)
{
#pragma unroll
  for (int d = W / 2; d > 0; d >>= 1) v = v + HybShflXor(HYB_FULL_MASK, v, d);
  return v;
}

template <int W, typename T>
static __device__ __forceinline__ T HybSubwarpMax(T v)
{
  return HybSubwarpReduce<W>(v, HybMax());
}

template <int W, typename T>
static __device__ __forceinline__ T HybSubwarpMin(T v)
{
  return HybSubwarpReduce<W>(v, HybMin());
}

/* Lane l receives v_0 op ... op v_l */
template <int W, typename T, typename Op>
static __device__ __forceinline__ T HybSubwarpInclusiveScan(T v, Op op)
{
  const unsigned mask = HybSubwarpMask<W>();
  const int      l    = HybLane() & (W - 1);
#pragma unroll
  for (int d = 1; d < W; d <<= 1) {
    const T u = HybShflUp(mask, v, (unsigned)d, W);
    if (l >= d) v = op(u, v);
  }
  return v;
}

template <int W, typename T>
static __device__ __forceinline__ T HybSubwarpInclusiveSum(T v)
{
  return HybSubwarpInclusiveScan<W>(v, HybSum());
}

/* Lane l receives v_0 + ... + v_{l-1}; *total (may be NULL), on all lanes, the sum of all. For integers: it subtracts
   nothing, lane 0 receives T(0). */
template <int W, typename T>
static __device__ __forceinline__ T HybSubwarpExclusiveSum(T v, T *total = nullptr)
{
  const T inc = HybSubwarpInclusiveSum<W>(v);
  const T up  = HybShflUp(HybSubwarpMask<W>(), inc, 1, W);
  if (total) *total = HybShfl(HybSubwarpMask<W>(), inc, W - 1, W);
  return (HybLane() & (W - 1)) ? up : T(0);
}

/*
  Block-wide. All THREADS = blockDim.x threads take part (a multiple of 32, at most 1024); scratch is shared memory of
  HYB_WARP entries of T that nothing else uses meanwhile. Each ends with a barrier: scratch may be used again at once.
*/
template <int THREADS, typename T, typename Op>
static __device__ __forceinline__ T HybBlockReduce(T v, T *scratch, Op op)
{
  constexpr int warps = THREADS / HYB_WARP;
  static_assert(THREADS % HYB_WARP == 0 && THREADS <= 1024, "whole warps only");
  v = HybSubwarpReduce<HYB_WARP>(v, op);
  if (warps == 1) return v;
  if (HybLane() == 0) scratch[threadIdx.x / HYB_WARP] = v;
  __syncthreads();
  v = scratch[0];
#pragma unroll
  for (int w = 1; w < warps; w++) v = op(v, scratch[w]);
  __syncthreads();
  return v;
}

template <int THREADS, typename T>
static __device__ __forceinline__ T HybBlockSum(T v, T *scratch)
{
  return HybBlockReduce<THREADS>(v, scratch, HybSum());
}

template <int THREADS, typename T>
static __device__ __forceinline__ T HybBlockMax(T v, T *scratch)
{
  return HybBlockReduce<THREADS>(v, scratch, HybMax());
}

template <int THREADS, typename T>
static __device__ __forceinline__ T HybBlockMin(T v, T *scratch)
{
  return HybBlockReduce<THREADS>(v, scratch, HybMin());
}

/* thread t receives v_0 + ... + v_{t-1}; *total (may be NULL) the sum of all, on all threads */
template <int THREADS, typename T>
static __device__ __forceinline__ T HybBlockExclusiveSum(T v, T *scratch, T *total = nullptr)
{
  constexpr int warps = THREADS / HYB_WARP;
  static_assert(THREADS % HYB_WARP == 0 && THREADS <= 1024, "whole warps only");
  if (warps == 1) return HybSubwarpExclusiveSum<HYB_WARP>(v, total);
  const int warp = (int)threadIdx.x / HYB_WARP;
  T         sum;
  T         e = HybSubwarpExclusiveSum<HYB_WARP>(v, &sum);
  if (HybLane() == 0) scratch[warp] = sum;
  __syncthreads();
  T before = T(0), all = T(0);
#pragma unroll
  for (int w = 0; w < warps; w++) {
    if (w == warp) before = all;
    all = all + scratch[w];
  }
  __syncthreads();
  if (total) *total = all;
  return before + e;
}

/*
  Atomics on integers of 4 and 8 bytes, signed or not (PetscInt, PetscCount); each returns the old value. Floating-point
  atomics do not exist here on purpose: their order changes from run to run.
*/
template <typename T>
static __device__ __forceinline__ T HybAtomicAdd(T *p, typename std::common_type<T>::type v)
{
  static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "integers only");
  using U = typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type;
  return (T)atomicAdd(reinterpret_cast<U *>(p), (U)v);
}

template <typename T>
static __device__ __forceinline__ T HybAtomicCAS(T *p, typename std::common_type<T>::type compare, typename std::common_type<T>::type v)
{
  static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "integers only");
  using U = typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type;
  return (T)atomicCAS(reinterpret_cast<U *>(p), (U)compare, (U)v);
}

template <typename T>
static __device__ __forceinline__ T HybAtomicOr(T *p, typename std::common_type<T>::type v)
{
  static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "integers only");
  using U = typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type;
  return (T)atomicOr(reinterpret_cast<U *>(p), (U)v);
}

template <typename T>
static __device__ __forceinline__ T HybAtomicMax(T *p, typename std::common_type<T>::type v)
{
  static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "integers only");
  using S = typename std::conditional<sizeof(T) == 4, int, long long>::type;
  using U = typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type;
  using V = typename std::conditional<std::is_signed<T>::value, S, U>::type;
  return (T)atomicMax(reinterpret_cast<V *>(p), (V)v);
}

template <typename T>
static __device__ __forceinline__ T HybAtomicMin(T *p, typename std::common_type<T>::type v)
{
  static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "integers only");
  using S = typename std::conditional<sizeof(T) == 4, int, long long>::type;
  using U = typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type;
  using V = typename std::conditional<std::is_signed<T>::value, S, U>::type;
  return (T)atomicMin(reinterpret_cast<V *>(p), (V)v);
}

template <typename S>
static __device__ __forceinline__ S HybConj(const S &v)
{
#if defined(PETSC_USE_COMPLEX)
  return S(v.real(), -v.imag());
#else
  return v;
#endif
}

static __device__ __forceinline__ PetscReal HybAbs(const HybScalar &v)
{
#if defined(PETSC_USE_COMPLEX)
  return (PetscReal)hypot(v.real(), v.imag());
#else
  return v < 0 ? -v : v;
#endif
}

/* the neutral element of addition: a first product added to it stands as it is */
static __device__ __forceinline__ HybScalar HybNegativeZero(void)
{
#if defined(PETSC_USE_COMPLEX)
  return HybScalar(-(PetscReal)0, -(PetscReal)0);
#else
  return -(PetscReal)0;
#endif
}

/* rounded down, of n >= 1; 0 of others */
static constexpr __host__ __device__ int HybLog2(int n)
{
  return n <= 1 ? 0 : 1 + HybLog2(n / 2);
}

/* a*b + c with one multiplication and one addition for each product, never contracted: the same bits as the host's
   loops */
static __device__ __forceinline__ HybScalar HybMulAdd(const HybScalar &a, const HybScalar &b, const HybScalar &c)
{
#if defined(PETSC_USE_COMPLEX)
  return HybScalar((a.real() * b.real() - a.imag() * b.imag()) + c.real(), (a.real() * b.imag() + a.imag() * b.real()) + c.imag());
#else
  return a * b + c;
#endif
}

template <typename S>
static __device__ __forceinline__ S HybMul(const S &a, const S &b)
{
#if defined(PETSC_USE_COMPLEX)
  return S(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
#else
  return a * b;
#endif
}

/* one rounding for a product and its addition, whatever the compiler's flags say */
static __device__ __forceinline__ double HybFma(double a, double b, double c)
{
  return __fma_rn(a, b, c);
}

/*
  c += A B on a warp's tensor cores: A is 8 x 4, B 4 x 8, c 8 x 8. Lane l holds a = A(l / 4, l % 4), b = B(l % 4, l / 4)
  and c[0..1] = c(l / 4, 2 (l % 4) + 0..1). Each entry of c is a chain of fused multiply-adds, k ascending. All lanes of
  the warp take part.
*/
static __device__ __forceinline__ void HybMultiplyTiles(double a, double b, double c[2])
{
#if defined(HYB_EMULATOR)
  emu::MultiplyTiles(a, b, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a), "d"(b));
#else
  for (int k = 0; k < 4; k++) {
    const double row = HybShfl(HYB_FULL_MASK, a, (HybLane() & ~3) + k);

    for (int n = 0; n < 2; n++) c[n] = HybFma(row, HybShfl(HYB_FULL_MASK, b, (2 * (HybLane() & 3) + n) * 4 + k), c[n]);
  }
#endif
}

/* half precision, rounded to nearest, as its bits; and back */
static __device__ __forceinline__ unsigned short HybToHalf(double v)
{
  unsigned short h;
#if defined(HYB_EMULATOR)
  h = emu::ToHalf(v);
#else
  asm("cvt.rn.f16.f64 %0, %1;"
      : "=h"(h)
      : "d"(v));
#endif
  return h;
}

static __device__ __forceinline__ double HybFromHalf(unsigned short h)
{
  double v;
#if defined(HYB_EMULATOR)
  v = emu::FromHalf(h);
#else
  asm("cvt.f64.f16 %0, %1;"
      : "=d"(v)
      : "h"(h));
#endif
  return v;
}

/* The same as HybMultiplyTiles() of 8 x 8 times 8 x 8 in half precision, sums in single: lane l holds a =
   A(l / 4, 2 (l % 4) + 0..1) and b = B(2 (l % 4) + 0..1, l / 4), the first in the low bits. Sums are rounded as the
   card does. */
static __device__ __forceinline__ void HybMultiplyHalfTiles(unsigned a, unsigned b, float c[2])
{
#if defined(HYB_EMULATOR)
  emu::MultiplyHalfTiles(a, b, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float none[2] = {0, 0};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(none[0]), "+f"(none[1])
               : "r"(a), "r"(0u), "r"(b));
#else
  for (int k = 0; k < 8; k++) {
    const double row = HybFromHalf((unsigned short)(HybShfl(HYB_FULL_MASK, a, (HybLane() & ~3) + k / 2) >> (k % 2 * 16)));

    for (int n = 0; n < 2; n++) c[n] = (float)(row * HybFromHalf((unsigned short)(HybShfl(HYB_FULL_MASK, b, (2 * (HybLane() & 3) + n) * 4 + k / 2) >> (k % 2 * 16))) + (double)c[n]);
  }
#endif
}

/*
  N neighbouring entries as one access, of N*sizeof(T) bytes, a power of two, at most 16, and at a multiple of them.
*/
template <typename T, int N>
struct alignas(sizeof(T) * N <= 16 ? sizeof(T) * N : 16) HybVec {
  T v[N];
};

/* a device stops at such an access where its address is no multiple of its size; so does the emulator */
#if defined(HYB_EMULATOR)
  #define HYB_CHECK_ALIGNED(p, bytes)                                                                                                                          \
    do {                                                                                                                                                       \
      if ((uintptr_t)(p) & ((bytes)-1)) emu::Fail("an access of %zu bytes at an address that is no multiple of them, %p", (size_t)(bytes), (const void *)(p)); \
    } while (0)
#else
  #define HYB_CHECK_ALIGNED(p, bytes) ((void)0)
#endif

template <int N, typename T>
static __device__ __forceinline__ HybVec<T, N> HybLoadVec(const T *p)
{
  HYB_CHECK_ALIGNED(p, alignof(HybVec<T, N>));
  return *reinterpret_cast<const HybVec<T, N> *>(p);
}

template <int N, typename T>
static __device__ __forceinline__ void HybStoreVec(T *p, const HybVec<T, N> &v)
{
  HYB_CHECK_ALIGNED(p, alignof(HybVec<T, N>));
  *reinterpret_cast<HybVec<T, N> *>(p) = v;
}

/* Loads through the read-only path, streaming loads of data that is used once, and of what another block of this launch
   has written, before an atomic operation told so. For any type of 1, 2, 4, 8 or 16 bytes. */
template <size_t S>
struct HybWord_;
template <>
struct HybWord_<1> {
  using type = unsigned char;
};
template <>
struct HybWord_<2> {
  using type = unsigned short;
};
template <>
struct HybWord_<4> {
  using type = unsigned int;
};
template <>
struct HybWord_<8> {
  using type = unsigned long long;
};
template <>
struct HybWord_<16> {
  using type = uint4;
};

#define HYB_LOAD_(name, load)                          \
  template <typename T>                                \
  static __device__ __forceinline__ T name(const T *p) \
  {                                                    \
    using W   = typename HybWord_<sizeof(T)>::type;    \
    const W w = load(reinterpret_cast<const W *>(p));  \
    T       v;                                         \
    memcpy((void *)&v, &w, sizeof(T));                 \
    return v;                                          \
  }
HYB_LOAD_(HybLoadReadOnly, __ldg)
HYB_LOAD_(HybLoadStream, __ldcs)
HYB_LOAD_(HybLoadShared, __ldcg)

/* p in the device's memory. The empty asm hides how p was computed, so that the address of p[k] is one instruction: of
   x + row the compiler makes x + (row + k), which is four. */
template <typename T>
static __device__ __forceinline__ const T *HybAddressFrom(const T *p)
{
#if defined(__CUDA_ARCH__)
  size_t global = __cvta_generic_to_global(p);

  asm(""
      : "+l"(global));
  return (const T *)__cvta_global_to_generic(global);
#else
  return p;
#endif
}

/*
  Bulk copies from global to shared memory that run beside the block's computation: on sm_90 the copy engine, which one
  thread sets going, completing on a barrier in shared memory; before it cp.async by all threads; in the emulator copies
  that happen when they are waited for. All threads of the block take part in every call.

    HYB_SHARED(uint64_t, bar, STAGES);  HybBulkInit(bar, STAGES);
    HybBulkExpect(&bar[s], bytes);      of all copies of this stage, once before each stage's copies, also of none
    HybBulkCopy(&bar[s], to, from, n);  to, from and n multiples of 16; HybBulkCopy<false>(): read again soon
    __syncthreads();                    at least once between the copy and its wait
    HybBulkWait(&bar[s], phase);        phase: 0 for the stage's first use, then 1, 0, ...; then all threads may read
    HybBulkFence();                     by all threads before that barrier, where threads wrote to the stage themselves
    __syncthreads();                    before the stage is copied to again
*/
#if !defined(HYB_EMULATOR) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  #define HYB_BULK_ENGINE 1
#else
  #define HYB_BULK_ENGINE 0
#endif

static __device__ __forceinline__ void HybBulkInit(uint64_t *bar, int n)
{
#if HYB_BULK_ENGINE
  if (threadIdx.x == 0) {
    for (int k = 0; k < n; k++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(bar + k))
                                             : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::
                   : "memory");
    asm volatile("fence.proxy.async;" ::
                   : "memory");
  }
#endif
  __syncthreads();
}

static __device__ __forceinline__ void HybBulkExpect(uint64_t *bar, size_t bytes)
{
#if HYB_BULK_ENGINE
  if (threadIdx.x == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(bar)), "r"((unsigned)bytes)
                                     : "memory");
#elif defined(HYB_EMULATOR)
  emu::BulkExpect(bar, bytes);
#endif
}

/* ONCE: the source is read once, and first to leave the second-level cache; else others read it soon */
template <bool ONCE = true>
static __device__ __forceinline__ void HybBulkCopy(uint64_t *bar, void *to, const void *from, size_t bytes)
{
#if HYB_BULK_ENGINE
  if (threadIdx.x == 0 && bytes && !ONCE) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"((uint64_t)__cvta_generic_to_global(from)), "r"((unsigned)bytes), "r"((unsigned)__cvta_generic_to_shared(bar))
                                                       : "memory");
  if (threadIdx.x == 0 && bytes && ONCE) {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
                 : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"((uint64_t)__cvta_generic_to_global(from)), "r"((unsigned)bytes), "r"((unsigned)__cvta_generic_to_shared(bar)), "l"(policy)
                 : "memory");
  }
#else
  HYB_CHECK_ALIGNED(to, 16);
  HYB_CHECK_ALIGNED(bytes ? from : to, 16); /* where nothing is copied, nothing is read */
  HYB_CHECK_ALIGNED(bytes, 16);
  #if defined(HYB_EMULATOR)
  emu::BulkCopy(bar, to, from, bytes);
  #elif defined(__CUDA_ARCH__)
  for (size_t k = (size_t)threadIdx.x * 16; k < bytes; k += (size_t)blockDim.x * 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared((char *)to + k)), "l"((uint64_t)__cvta_generic_to_global((const char *)from + k))
                 : "memory");
  #endif
#endif
}

static __device__ __forceinline__ void HybBulkFence(void)
{
#if HYB_BULK_ENGINE
  asm volatile("fence.proxy.async.shared::cta;" ::
                 : "memory");
#endif
}

static __device__ __forceinline__ void HybBulkWait(uint64_t *bar, unsigned phase)
{
#if HYB_BULK_ENGINE
  unsigned done;
  do {
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"((unsigned)__cvta_generic_to_shared(bar)), "r"(phase)
                 : "memory");
  } while (!done);
#else
  #if defined(HYB_EMULATOR)
  emu::BulkWait(bar, phase);
  #elif defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_all;" ::
                 : "memory");
  #endif
  __syncthreads();
#endif
}

/*
  Words that processes tell each other by, in memory that several cards reach: a store after which all that this thread
  has seen is there for whoever loads the word, and that load. And a clock of the card, ns.
*/
static __device__ __forceinline__ void HybStoreRelease(uint64_t *p, uint64_t v)
{
#if defined(HYB_EMULATOR)
  emu::StoreRelease(p, v);
#elif defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"((uint64_t)__cvta_generic_to_global(p)), "l"(v)
               : "memory");
#endif
}

static __device__ __forceinline__ uint64_t HybLoadAcquire(const uint64_t *p)
{
#if defined(HYB_EMULATOR)
  return emu::LoadAcquire(p);
#elif defined(__CUDA_ARCH__)
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
               : "=l"(v)
               : "l"((uint64_t)__cvta_generic_to_global(p))
               : "memory");
  return v;
#else
  return 0;
#endif
}

static __device__ __forceinline__ uint64_t HybNanoseconds(void)
{
#if defined(HYB_EMULATOR)
  return emu::Nanoseconds();
#elif defined(__CUDA_ARCH__)
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;"
               : "=l"(t));
  return t;
#else
  return 0;
#endif
}

/* A device begins what is queued by itself; the emulator does when it is waited for, which would be too late for
   another process that waits for this one's words. No fault is injected here: the launch has been made. */
#if defined(HYB_EMULATOR)
  #define HYB_BEGIN_NOW(stream) ((void)cudaStreamSynchronize((cudaStream_t)(stream)))
#else
  #define HYB_BEGIN_NOW(stream) ((void)0)
#endif

/*
  Device-wide primitives. Pointers to arrays live on the device; temporary storage comes from the work arena. devtotal
  (device memory) and total (host memory) receive the result, both may be NULL: with total the call synchronises,
  without it does not. n may be 0. Input and output do not overlap unless it is said.
*/

/* offsets[0] = 0, offsets[k] = counts[0] + ... + counts[k-1] for k = 1..n, so n+1 entries; counts may be offsets (in
   place, n+1 entries then). The sum is formed in 64 bits and delivered so: where the total does not fit PetscInt,
   offsets are useless and the caller must look at the total. */
extern PetscErrorCode HybScanCounts(const HybExec *, HybArena *work, PetscCount n, const PetscInt *counts, PetscInt *offsets, PetscCount *devtotal, PetscCount *total);
extern PetscErrorCode HybScanCounts64(const HybExec *, HybArena *work, PetscCount n, const PetscCount *counts, PetscCount *offsets, PetscCount *devtotal, PetscCount *total);

/* *largest, of the host: the maximum, 0 for n = 0; the call synchronises */
extern PetscErrorCode HybReduceMax(const HybExec *, HybArena *work, PetscCount n, const PetscInt *v, PetscCount *largest);

/* Stable sorts by the lowest bits of the keys, so many (all of a PetscInt key: 8*sizeof(PetscInt); non-negative keys
   below 2^b: b). values NULL: valuesout receives the permutation (position in the input). */
extern PetscErrorCode HybSortPairsInt(const HybExec *, HybArena *work, PetscCount n, const PetscInt *keys, PetscInt *keysout, const PetscInt *values, PetscInt *valuesout, int bits);
extern PetscErrorCode HybSortPairs64Count(const HybExec *, HybArena *work, PetscCount n, const uint64_t *keys, uint64_t *keysout, const PetscCount *values, PetscCount *valuesout, int bits);
/* bits that keys 0..n-1 need */
static inline int HybBits(PetscCount n)
{
  int b = 0;
  while (b < 63 && (((PetscCount)1) << b) < n) b++;
  return b > 0 ? b : 1;
}

#endif
