/*
  device.h: what a kernel sees of the emulator: its indices, shared memory, barriers, the warp's operations, and how it
  is launched. Included by cuda_runtime.h.
*/
#ifndef EMULATOR_DEVICE_H
#define EMULATOR_DEVICE_H
#include "cuda_runtime.h"

/* What the emulator offers to the code below and to its stand-ins */
namespace emu {
#define EMU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct Use { /* memory that a queued operation touches */
  const void *ptr;
  size_t      bytes;        /* 0: the whole allocation */
  bool        write, maybe; /* maybe: perhaps it does; the host keeps off, other streams are not asked */
};

enum Kind { SYNCWARP,
            SHFL,
            SHFL_UP,
            SHFL_DOWN,
            SHFL_XOR,
            BALLOT,
            MATCH_ANY,
            MATCH_ALL,
            REDUCE_ADD,
            REDUCE_MIN,
            REDUCE_MAX,
            REDUCE_UMIN,
            REDUCE_UMAX,
            REDUCE_AND,
            REDUCE_OR,
            REDUCE_XOR };
enum Vote { BARRIER,
            COUNT,
            AND,
            OR };

struct SharedSite {
  const char *name, *file;
  int         line;
  unsigned    epoch;
  void       *ptr;
};

extern uint3      threadIdx_, blockIdx_;
extern dim3       blockDim_, gridDim_;
extern unsigned   epoch_;
uint64_t          Warp(Kind, unsigned mask, uint64_t value, int aux, int width, const char *file, int line);
int               Barrier(Vote, int predicate, const char *file, int line);
void              Yield(void);
void              MaybeYield(void);
unsigned          ActiveMask(void);
void             *SharedAllocate(SharedSite *, size_t bytes);
void             *SharedDynamic(void);
uint64_t          Random(void);
void              StoreRelease(uint64_t *, uint64_t); /* between processes; late at times */
uint64_t          LoadAcquire(const uint64_t *);
uint64_t          Nanoseconds(void);
[[noreturn]] void Fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void              Launch(const void *kernel, const char *name, const char *args, const char *file, int line, dim3 grid, dim3 block, size_t bytes, cudaStream_t, std::vector<Use> &&, std::vector<int> &&argument, std::function<void()> &&);
/* an operation of the runtime or of a stand-in; uses are checked and opened like a kernel's */
void Enqueue(cudaStream_t, const char *what, std::vector<Use> &&, std::function<void()> &&);
/* holds a word of poison? for device memory, inside an operation */
bool Unwritten(const void *p, size_t bytes, size_t *at);
/* in a kernel whose own stores copy this to the host: bytes are counted, and must have been written */
void GoesToHost(const void *p, size_t bytes);

/* pointers among a kernel's arguments: const ones are read, others may be written; in structs all words that look like
   pointers, which are read, or, MayWrite, perhaps written */
template <typename T>
constexpr bool MayWrite = false;
void           LooksLikePointers(const void *object, size_t bytes, bool maybe, int argument, std::vector<Use> &, std::vector<int> &);
template <typename T>
static inline void Collect(const T &v, int argument, std::vector<Use> &uses, std::vector<int> &which)
{
  if constexpr (std::is_pointer<T>::value) {
    if (!v) return;
    uses.push_back(Use{(const void *)v, 0, !std::is_const<typename std::remove_pointer<T>::type>::value, false});
    which.push_back(argument);
  } else if constexpr (sizeof(T) >= sizeof(void *) && std::is_class<T>::value)
    LooksLikePointers(&v, sizeof(T), MayWrite<T>, argument, uses, which);
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
#define HYB_SHARED(type, name, count)                                            \
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
#define EMU_REDUCE(name, kind, T)                                                   \
  static inline T name(unsigned mask, T v, EMU_HERE)                                \
  {                                                                                 \
    return (T)emu::Warp(emu::kind, mask, (uint64_t)(unsigned)v, 0, 32, file, line); \
  }
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
#endif
