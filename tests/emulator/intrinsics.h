/*
  intrinsics.h: stand-ins for the functions of one thread: atomics, fences, loads and stores with cache hints, bits of
  integers. Included by cuda_runtime.h.
*/
#ifndef EMULATOR_INTRINSICS_H
#define EMULATOR_INTRINSICS_H
#include "device.h"

/* The race detector's build (EMU_RACES, races.cc) sees plain accesses through the compiler, and these through calls of
   their own */
#if defined(EMU_RACES)
namespace emu {
void RaceFence(void);
void RaceAtomic(const void *, size_t);
} // namespace emu
  #define EMU_UNSEEN    __attribute__((no_sanitize_thread, noinline))
  #define EMU_RACE(...) __VA_ARGS__
#else
  #define EMU_UNSEEN
  #define EMU_RACE(...)
#endif

/* Atomics: fibers change hands only where they ask to, so a plain update is atomic; now and then another thread goes
   first */
#define EMU_ATOMIC(name, T, update)          \
  EMU_UNSEEN static inline T name(T *p, T v) \
  {                                          \
    emu::MaybeYield();                       \
    EMU_RACE(emu::RaceAtomic(p, sizeof(T));) \
    const T old = *p;                        \
    *p          = (update);                  \
    return old;                              \
  }
#define EMU_ATOMICS(T)                                       \
  EMU_ATOMIC(atomicAdd, T, (T)(old + v))                     \
  EMU_ATOMIC(atomicExch, T, v)                               \
  EMU_ATOMIC(atomicMin, T, old < v ? old : v)                \
  EMU_ATOMIC(atomicMax, T, old > v ? old : v)                \
  EMU_ATOMIC(atomicAnd, T, (T)(old & v))                     \
  EMU_ATOMIC(atomicOr, T, (T)(old | v))                      \
  EMU_ATOMIC(atomicXor, T, (T)(old ^ v))                     \
  EMU_UNSEEN static inline T atomicCAS(T *p, T compare, T v) \
  {                                                          \
    emu::MaybeYield();                                       \
    EMU_RACE(emu::RaceAtomic(p, sizeof(T));)                 \
    const T old = *p;                                        \
    if (old == compare) *p = v;                              \
    return old;                                              \
  }
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
EMU_ATOMIC(atomicMin, long long, old < v ? old : v)
EMU_ATOMIC(atomicMax, long long, old > v ? old : v)
EMU_ATOMIC(atomicAnd, long long, old &v)
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
static inline void __threadfence_system(void)
{
  EMU_RACE(emu::RaceFence();)
  emu::MaybeYield();
}
static inline void __trap(void)
{
  emu::Fail("__trap()");
}

/* Loads and stores with cache hints */
#define EMU_LOAD(name)             \
  template <typename T>            \
  static inline T name(const T *p) \
  {                                \
    return *p;                     \
  }
#define EMU_STORE(name)              \
  template <typename T>              \
  static inline void name(T *p, T v) \
  {                                  \
    *p = v;                          \
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
static inline int __clz(int v)
{
  return v ? __builtin_clz((unsigned)v) : 32;
}
static inline unsigned __brev(unsigned v)
{
  unsigned r = 0;
  for (int k = 0; k < 32; k++) r |= ((v >> k) & 1u) << (31 - k);
  return r;
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
static inline double __fma_rn(double a, double b, double c)
{
  return std::fma(a, b, c);
}

/* What tensor cores do (hybdevice.cuh): lanes lay their operands down, and each takes what its entries need of them, a
   chain of fused multiply-adds */
namespace emu {
inline double operand_[32][2][32]; /* of each warp */

EMU_UNSEEN static inline void LayOperands(double a, double b)
{
  operand_[threadIdx_.x / 32][0][threadIdx_.x % 32] = a;
  operand_[threadIdx_.x / 32][1][threadIdx_.x % 32] = b;
}
EMU_UNSEEN static inline void TakeOperands(double c[2])
{
  const unsigned lane = threadIdx_.x % 32;
  const double  *a = operand_[threadIdx_.x / 32][0], *b = operand_[threadIdx_.x / 32][1];

  for (unsigned k = 0; k < 4; k++) {
    for (unsigned n = 0; n < 2; n++) c[n] = std::fma(a[lane / 4 * 4 + k], b[(2 * (lane % 4) + n) * 4 + k], c[n]);
  }
}
static inline void MultiplyTiles(double a, double b, double c[2])
{
  LayOperands(a, b);
  __syncwarp();
  TakeOperands(c);
  __syncwarp();
}

/* half precision, rounded to nearest and to even */
static inline unsigned short ToHalf(double v)
{
  const unsigned short sign = std::signbit(v) ? 0x8000 : 0;
  const double         a    = std::fabs(v);
  int                  e;

  if (a != a) return 0x7fff;
  if (a >= 65520) return (unsigned short)(sign | 0x7c00);
  if (a < 0x1p-14) return (unsigned short)(sign | (unsigned short)std::nearbyint(a * 0x1p24));
  e = std::ilogb(a);
  return (unsigned short)(sign | (unsigned short)((e + 14) * 1024 + (int)std::nearbyint(std::scalbn(a, 10 - e))));
}
static inline double FromHalf(unsigned short h)
{
  const int    e = h >> 10 & 31, digits = h & 1023;
  const double a = e == 31 ? (digits ? NAN : INFINITY) : e ? std::scalbn(1024.0 + digits, e - 25)
                                                           : digits * 0x1p-24;

  return h & 0x8000 ? -a : a;
}
EMU_UNSEEN static inline void TakeHalfOperands(float c[2])
{
  const unsigned lane = threadIdx_.x % 32;
  const double  *a = operand_[threadIdx_.x / 32][0], *b = operand_[threadIdx_.x / 32][1];

  for (unsigned k = 0; k < 8; k++) {
    for (unsigned n = 0; n < 2; n++) {
      const unsigned x = (unsigned)a[lane / 4 * 4 + k / 2] >> (k % 2 * 16), y = (unsigned)b[(2 * (lane % 4) + n) * 4 + k / 2] >> (k % 2 * 16);

      c[n] = (float)(FromHalf((unsigned short)x) * FromHalf((unsigned short)y) + c[n]);
    }
  }
}
static inline void MultiplyHalfTiles(unsigned a, unsigned b, float c[2])
{
  LayOperands(a, b);
  __syncwarp();
  TakeHalfOperands(c);
  __syncwarp();
}
} // namespace emu

/* Bulk copies (hybdevice.cuh): they have happened when the thread has waited for their barrier, not before. Each thread
   keeps account of those that it takes part in. */
namespace emu {
struct BulkPiece {
  uint4       *to;
  const uint4 *from;
};
struct BulkBarrier {
  const uint64_t        *bar;
  bool                   expected;
  size_t                 bytes; /* expected, not yet copied */
  unsigned               waits;
  std::vector<BulkPiece> pieces;
};
struct BulkAccount {
  unsigned                 epoch; /* of the block */
  std::vector<BulkBarrier> bars;
};
inline BulkAccount bulk_[1024];

EMU_UNSEEN static inline BulkBarrier &BulkOf(const uint64_t *bar)
{
  BulkAccount &mine = bulk_[threadIdx_.x];

  if (mine.epoch != epoch_) mine.bars.clear();
  mine.epoch = epoch_;
  for (BulkBarrier &b : mine.bars)
    if (b.bar == bar) return b;
  mine.bars.push_back(BulkBarrier{bar, false, 0, 0, {}});
  return mine.bars.back();
}
EMU_UNSEEN static inline void BulkExpect(const uint64_t *bar, size_t bytes)
{
  BulkBarrier &b = BulkOf(bar);

  if (b.expected) Fail("bulk copies of a stage begin before those before them were waited for");
  b.expected = true;
  b.bytes    = bytes;
}
EMU_UNSEEN static inline void BulkCopy(const uint64_t *bar, void *to, const void *from, size_t bytes)
{
  BulkBarrier &b = BulkOf(bar);

  if (!b.expected || bytes > b.bytes) Fail("a bulk copy of %zu bytes where %zu more are expected", bytes, b.expected ? b.bytes : (size_t)0);
  b.bytes -= bytes;
  for (size_t k = threadIdx_.x; k < bytes / sizeof(uint4); k += blockDim_.x) b.pieces.push_back(BulkPiece{(uint4 *)to + k, (const uint4 *)from + k});
}
static inline void BulkWait(const uint64_t *bar, unsigned phase)
{
  BulkBarrier &b = BulkOf(bar);

  if (!b.expected || b.bytes) Fail("waiting for bulk copies of a stage, of which %zu bytes never come", b.expected ? b.bytes : (size_t)0);
  if (phase != (b.waits & 1)) Fail("the wait number %u for bulk copies of a stage names the phase %u", b.waits, phase);
  for (const BulkPiece &p : b.pieces) *p.to = *p.from;
  b.pieces.clear();
  b.expected = false;
  b.waits++;
}
} // namespace emu

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
