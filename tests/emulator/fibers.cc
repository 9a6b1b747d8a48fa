/*
  fibers.cc: the threads of a block as fibers of one thread of the operating system.

  A thread runs until it has to wait: for lanes of its warp (shuffle, vote, __syncwarp), for its block (__syncthreads), or until it ends. Then another
  runnable one is picked at random. Threads hand over to each other directly, and one that ends leaves its fiber to the next: a kernel whose threads never
  wait runs like a loop.
  Blocks run one after another, in random order: a block that waits for one that comes later never ends, as it may on a device.

  A warp-wide operation is done when all lanes of its mask that still run have come to the same operation with the same mask; a barrier, when all threads
  have come to it. What can never be done is reported: nobody is runnable and some have not ended.
*/
#include "races.h"
#include <numeric>
#include <sys/mman.h>
#if defined(EMU_RACES)
  #include <map>
#endif
#if defined(__SANITIZE_ADDRESS__)
  #include <sanitizer/common_interface_defs.h>
#endif

namespace emu
{
uint3    threadIdx_, blockIdx_;
dim3     blockDim_, gridDim_;
unsigned epoch_ = 1;
Running  running;

/* Switching, in place: the compiler keeps what it needs of the registers. It is no call, so that the processor's guesses
   of where functions return to hold: a lane returns to where the one before it did. */
struct Fiber {
  void *sp;
  char *stack, *top; /* the lowest usable byte, and behind the highest */
  void *fake;        /* ASan's */
};
#if defined(__x86_64__)
static inline __attribute__((always_inline)) void EmuSwitch(void **save, void *load)
{
  asm volatile("leaq -128(%%rsp),%%rsp\n pushq %%rbp\n leaq 1f(%%rip),%%rax\n pushq %%rax\n movq %%rsp,(%0)\n"
               "movq %1,%%rsp\n popq %%rax\n jmp *%%rax\n"
               "1: popq %%rbp\n leaq 128(%%rsp),%%rsp\n"
               : "+D"(save), "+S"(load)
               :
               : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
}
static void *Prepare(char *top, void (*entry)(void))
{
  void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15);
  *--sp     = nullptr; /* entry finds the stack as after a call */
  *--sp     = (void *)entry;
  return sp;
}
#else
  #include <ucontext.h>
static ucontext_t *context_;
static void        EmuSwitch(void **save, void *load)
{
  ucontext_t here;
  *save = &here;
  swapcontext(&here, (ucontext_t *)load);
}
static void *Prepare(char *top, void (*entry)(void))
{
  ucontext_t *c = new ucontext_t;
  getcontext(c);
  c->uc_stack.ss_sp   = top - 128 * 1024;
  c->uc_stack.ss_size = 128 * 1024;
  c->uc_link          = nullptr;
  makecontext(c, entry, 0);
  return c;
}
#endif

static const size_t StackBytes = 256 * 1024, GuardBytes = 16 * 1024;
static const char  *kind_name[] = {"__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "a vote", "__match_any_sync", "__match_all_sync", "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};

struct alignas(64) Lane {
  Kind        kind;
  unsigned    mask;
  uint64_t    value, result;
  int         aux, width, predicate;
  Vote        vote;
  const char *file;
  int         line;
};
struct WarpState {
  unsigned exists, runnable, waiting, barrier, exited; /* one bit for each lane */
  int      next;                                       /* drawn to be the next one, if it is runnable then */
  void    *sp[32];                                     /* where a lane goes on */
  Fiber   *fiber[32];                                  /* NULL: it has not begun */
  Lane     lane[32];
};

static WarpState                    warp_[32];
static uint32_t                     ready_; /* warps with a runnable lane */
static int                          warps_, w_, l_; /* of this block; the running lane's */
static unsigned                     threads_, remaining_, arrived_;
static bool                         votes_; /* somebody asks at this barrier */
static std::vector<Fiber *>         idle_;
static std::vector<Fiber *>         all_;
static Fiber                        scheduler_;
static Fiber                       *fiber_; /* the running one */
static const std::function<void()> *body_;

/* Shared memory: a stretch for static arrays with red zones between them, and one for the dynamic array that ends at a guard page */
static const size_t SharedBytes = 256 * 1024, RedZone = 64, SharedLimit = 227 * 1024;
struct SharedArray {
  char       *ptr;
  size_t      bytes;
  SharedSite *site;
  uint64_t    behind; /* the first word behind it */
};
static char                    *shared_, *dynamic_, *dynamicend_;
static size_t                   shared_used_, static_bytes_, dynamic_bytes_;
static std::vector<SharedArray> arrays_;

static uint64_t stay_; /* a warp is left once in so many times, less one */
static uint64_t random_;
static inline uint64_t Draw(void)
{
  if (__builtin_expect(!random_, 0)) random_ = 0x9e3779b97f4a7c15ull * (Seed() + 1);
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ >> 11;
}
uint64_t Random(void)
{
  return Draw();
}

/* one of the bits, by a number of five */
static inline int Pick(uint32_t bits, uint64_t draw)
{
  const int      s   = (int)(draw & 31);
  const uint32_t rot = (bits >> s) | (bits << ((32 - s) & 31));
  return (__builtin_ctz(rot) + s) & 31;
}

/* load: where `to` goes on */
static inline __attribute__((always_inline)) void Go(void **save, Fiber *from, Fiber *to, void *load)
{
#if defined(__SANITIZE_ADDRESS__)
  const void *bottom;
  size_t      size;
  __sanitizer_start_switch_fiber(&from->fake, to->stack, (size_t)(to->top - to->stack));
  EmuSwitch(save, load);
  __sanitizer_finish_switch_fiber(from->fake, &bottom, &size);
  if (from != &scheduler_ && !scheduler_.stack) {
    scheduler_.stack = (char *)bottom;
    scheduler_.top   = (char *)bottom + size;
  }
#else
  EmuSwitch(save, load);
#endif
}

static Fiber *Ended(void);
static inline __attribute__((always_inline)) Fiber *Next(void);
static inline void CheckArrays(void);

static void FiberMain(void)
{
#if defined(__SANITIZE_ADDRESS__)
  const void *bottom;
  size_t      size;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  scheduler_.stack = (char *)bottom;
  scheduler_.top   = (char *)bottom + size;
#endif
  for (;;) {
    (*body_)();
    Fiber *me = fiber_, *next = Ended();
    if (next != me) Go(&me->sp, me, next, next == &scheduler_ ? scheduler_.sp : warp_[w_].sp[l_]);
  }
}

static Fiber *NewFiber(void)
{
  char *p = (char *)mmap(nullptr, StackBytes + GuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) Fail("no memory for another thread's stack");
  mprotect(p, GuardBytes, PROT_NONE);
  Fiber *f = new Fiber;
  f->stack = p + GuardBytes;
  f->top   = p + StackBytes + GuardBytes - (all_.size() * 192) % 4096; /* not all stacks in the same sets of the cache */
  f->fake  = nullptr;
  f->sp    = Prepare(f->top, FiberMain);
  all_.push_back(f);
  return f;
}

bool OnStackGuard(const void *address)
{
  for (Fiber *f : all_)
    if ((const char *)address >= f->stack - GuardBytes && (const char *)address < f->stack) return true;
  return false;
}

/* another thread's turn, until somebody picks this one again; it may be this one at once */
static inline __attribute__((always_inline)) void Leave(void)
{
  CheckArrays();
  void **save = &warp_[w_].sp[l_];
  Fiber *me = fiber_, *next = Next();
  if (next != me) Go(save, me, next, warp_[w_].sp[l_]);
}

void Yield(void)
{
  if (!running.threads) return;
  warp_[w_].runnable |= 1u << l_;
  ready_ |= 1u << w_;
  Leave();
}

void MaybeYield(void)
{
  if ((Random() & 15) == 0) Yield();
}

/* only what CUDA promises: this lane is among them */
unsigned ActiveMask(void)
{
  return 1u << l_;
}

static uint64_t Shuffled(const WarpState &W, unsigned set, int l)
{
  const Lane &L   = W.lane[l];
  const int   seg = l & ~(L.width - 1);
  int         src = l;
  switch (L.kind) {
  case SHFL:
    src = seg + (L.aux & (L.width - 1));
    break;
  case SHFL_UP:
    if (l - seg >= L.aux) src = l - L.aux;
    break;
  case SHFL_DOWN:
    if ((l - seg) + L.aux < L.width) src = l + L.aux;
    break;
  default:
    if ((l ^ L.aux) < seg + L.width) src = l ^ L.aux;
    break;
  }
  src &= 31;
  return (set >> src) & 1u ? W.lane[src].value : Random() * 0x10001u; /* a lane that takes no part has nothing to give */
}

/* of the values of all lanes, one after the other */
template <typename F>
static inline uint64_t Fold(const WarpState &W, unsigned set, F f)
{
  uint64_t r = W.lane[__builtin_ctz(set)].value;
  for (unsigned s = set & (set - 1); s; s &= s - 1) r = f(r, W.lane[__builtin_ctz(s)].value);
  return r;
}

static void Compute(WarpState &W, unsigned set)
{
  const Kind     kind = W.lane[__builtin_ctz(set)].kind;
  const uint64_t all  = W.lane[__builtin_ctz(set)].value;
  uint64_t       r    = 0;
  switch (kind) {
  case SYNCWARP:
    return;
  case SHFL:
  case SHFL_UP:
  case SHFL_DOWN:
  case SHFL_XOR:
    for (unsigned s = set; s; s &= s - 1) W.lane[__builtin_ctz(s)].result = Shuffled(W, set, __builtin_ctz(s));
    return;
  case MATCH_ANY:
    for (unsigned s = set; s; s &= s - 1) {
      Lane &L  = W.lane[__builtin_ctz(s)];
      L.result = 0;
      for (unsigned t = set; t; t &= t - 1)
        if (W.lane[__builtin_ctz(t)].value == L.value) L.result |= t & -t;
    }
    return;
  case BALLOT:
    for (unsigned s = set; s; s &= s - 1) r |= W.lane[__builtin_ctz(s)].value << __builtin_ctz(s);
    break;
  case MATCH_ALL:
    r = set;
    for (unsigned s = set; s; s &= s - 1)
      if (W.lane[__builtin_ctz(s)].value != all) r = 0;
    break;
  case REDUCE_ADD:
    r = Fold(W, set, [](uint64_t a, uint64_t b) -> uint64_t { return (uint32_t)(a + b); });
    break;
  case REDUCE_UMIN:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return b < a ? b : a; });
    break;
  case REDUCE_UMAX:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return b > a ? b : a; });
    break;
  case REDUCE_MIN:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return (int)b < (int)a ? b : a; });
    break;
  case REDUCE_MAX:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return (int)b > (int)a ? b : a; });
    break;
  case REDUCE_AND:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return a & b; });
    break;
  case REDUCE_OR:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return a | b; });
    break;
  case REDUCE_XOR:
    r = Fold(W, set, [](uint64_t a, uint64_t b) { return a ^ b; });
    break;
  }
  for (unsigned s = set; s; s &= s - 1) W.lane[__builtin_ctz(s)].result = r;
}

/* does the operation that lane l waits for have all its lanes? */
static bool Finish(WarpState &W, int l, unsigned set)
{
  for (unsigned s = set; s; s &= s - 1) {
    const Lane &L = W.lane[__builtin_ctz(s)];
    if (L.kind != W.lane[l].kind || L.mask != W.lane[l].mask) return false;
  }
  Compute(W, set);
  EMU_RACE(RaceWarp((int)(&W - warp_), set, W.lane[l].kind == SYNCWARP);)
  W.waiting &= ~set;
  W.runnable |= set;
  return true;
}
static inline bool Complete(WarpState &W, int l)
{
  const unsigned set = W.lane[l].mask & W.exists & ~W.exited;
  return (W.waiting & set) == set && Finish(W, l, set);
}

uint64_t Warp(Kind kind, unsigned mask, uint64_t value, int aux, int width, const char *file, int line)
{
  WarpState     &W   = warp_[w_];
  Lane          &L   = W.lane[l_];
  const unsigned bit = 1u << l_;
  if (!(mask & bit)) Fail("%s at %s:%d with mask 0x%08x, which does not name its own lane %d", kind_name[kind], file, line, mask, l_);
  if (width < 1 || width > 32 || (width & (width - 1))) Fail("%s at %s:%d with width %d", kind_name[kind], file, line, width);
  L.kind  = kind;
  L.mask  = mask;
  L.value = value;
  L.aux   = aux;
  L.width = width;
  L.file  = file;
  L.line  = line;
  W.waiting |= bit;
  if (Complete(W, l_)) {
    ready_ |= 1u << w_;
    if (Draw() & 3) { /* mostly the last to come goes on, without a switch */
      W.runnable &= ~bit;
      if (!W.runnable) ready_ &= ~(1u << w_); /* else an ended lane of this warp would be started again */
      return L.result;
    }
  }
  Leave();
  return L.result;
}

static void FinishBarrier(void)
{
  EMU_RACE(RaceBarrier();)
  int n = 0, all = 1;
  for (int w = 0; w < warps_ && votes_; w++) {
    WarpState &W = warp_[w];
    for (unsigned s = W.barrier; s; s &= s - 1) {
      n += W.lane[__builtin_ctz(s)].predicate != 0;
      all &= W.lane[__builtin_ctz(s)].predicate != 0;
    }
  }
  for (int w = 0; w < warps_; w++) {
    WarpState &W = warp_[w];
    for (unsigned s = votes_ ? W.barrier : 0; s; s &= s - 1) {
      Lane &L  = W.lane[__builtin_ctz(s)];
      L.result = (uint64_t)(L.vote == COUNT ? n : L.vote == AND ? all : n > 0);
    }
    W.runnable |= W.barrier;
    W.barrier = 0;
    if (W.runnable) ready_ |= 1u << w;
  }
  arrived_ = 0;
  votes_   = false;
}

int Barrier(Vote vote, int predicate, const char *file, int line)
{
  static const char *first_file;
  static int         first_line, first_thread;
  WarpState         &W  = warp_[w_];
  Lane              &L  = W.lane[l_];
  const int          me = w_ * 32 + l_;
  if (!arrived_) {
    first_file   = file;
    first_line   = line;
    first_thread = me;
  } else if (line != first_line || (file != first_file && strcmp(file, first_file))) Fail("divergent barrier: this thread waits at %s:%d, thread %d at %s:%d", file, line, first_thread, first_file, first_line);
  if (remaining_ != threads_) Fail("divergent barrier at %s:%d: %u of the block's %u threads have ended without it", file, line, threads_ - remaining_, threads_);
  votes_      = votes_ || vote != BARRIER;
  L.vote      = vote;
  L.predicate = predicate;
  L.file      = file;
  L.line      = line;
  W.barrier |= 1u << l_;
  if (++arrived_ == remaining_) FinishBarrier();
  Leave();
  return (int)L.result;
}

static void Deadlock(void)
{
  char        text[2048];
  size_t      n     = 0;
  int         lines = 0;
  const Lane *seen[8];
  for (int w = 0; w < warps_ && lines < 8; w++)
    for (unsigned s = (warp_[w].waiting | warp_[w].barrier); s && lines < 8; s &= s - 1) {
      const int   l = __builtin_ctz(s);
      const Lane &L = warp_[w].lane[l];
      const bool  b = (warp_[w].barrier >> l) & 1u;
      bool        old = false;
      for (int k = 0; k < lines; k++) old = old || (seen[k]->line == L.line && seen[k]->file == L.file && (b || seen[k]->mask == L.mask));
      if (old) continue;
      seen[lines++] = &L;
      if (b) n += (size_t)snprintf(text + n, sizeof(text) - n, "\n    thread %d waits in __syncthreads at %s:%d", w * 32 + l, L.file, L.line);
      else {
        const unsigned missing = L.mask & warp_[w].exists & ~warp_[w].exited & ~warp_[w].waiting;
        n += (size_t)snprintf(text + n, sizeof(text) - n, "\n    thread %d (lane %d) waits in %s at %s:%d, mask 0x%08x, lanes that never came 0x%08x", w * 32 + l, l, kind_name[L.kind], L.file, L.line, L.mask, missing);
      }
      if (n > sizeof(text) - 200) break;
    }
  Fail("the block can never go on: %u threads wait for what will not come%s", remaining_, text);
}

/* after each step of a thread, so that its name is known; the whole red zones at the block's end */
static inline void CheckArray(const SharedArray &a, size_t zone)
{
  uint64_t before, behind;
  memcpy(&before, a.ptr - 8, 8);
  memcpy(&behind, a.ptr + a.bytes, 8);
  if (zone == 8 && behind == a.behind && before == (((uint64_t)Poison << 32) | Poison)) return;
  if (!Intact(a.ptr + a.bytes, zone)) Fail("a write behind the end of shared array '%s' (%zu bytes, %s:%d)", a.site->name, a.bytes, a.site->file, a.site->line);
  if (!Intact(a.ptr - zone, zone)) Fail("a write before the start of shared array '%s' (%zu bytes, %s:%d)", a.site->name, a.bytes, a.site->file, a.site->line);
}

void *SharedAllocate(SharedSite *site, size_t bytes)
{
  const size_t at = shared_used_ + RedZone, end = (at + bytes + 15) & ~(size_t)15;
  if (!running.threads) Fail("shared array '%s' outside a kernel", site->name);
  static_bytes_ += bytes;
  if (end + RedZone > SharedBytes || static_bytes_ + dynamic_bytes_ > SharedLimit) Fail("shared array '%s' of %zu bytes does not fit beside %zu of others and %zu of dynamic ones (%s:%d)", site->name, bytes, static_bytes_ - bytes, dynamic_bytes_, site->file, site->line);
  site->ptr    = shared_ + at;
  site->epoch  = epoch_;
  shared_used_ = end;
  arrays_.push_back(SharedArray{shared_ + at, bytes, site, 0});
  memcpy(&arrays_.back().behind, shared_ + at + bytes, 8);
  return site->ptr;
}

void *SharedDynamic(void)
{
  return dynamic_;
}

#if defined(EMU_RACES)
int RunningThread(void)
{
  return w_ * 32 + l_;
}

bool RegionIsShared(const Region &r)
{
  return r.start >= shared_ && r.start <= dynamicend_;
}

std::string RegionName(const Region &r)
{
  if (!r.owner) return r.start ? "the dynamic shared array" : "shared memory that no array has";
  const SharedSite *site = (const SharedSite *)r.owner;
  if (RegionIsShared(r)) return std::string("shared array '") + site->name + "'";
  return DeviceName(r.owner);
}

/* One shadow for each place that an array starts at: what other blocks left there is told apart by their number */
bool SharedRegion(const void *address, Region &r)
{
  static std::map<char *, void *> shadows;
  char                           *p = (char *)address;
  if (p < shared_ || p >= dynamicend_) return false;
  r = Region{nullptr, 0, nullptr, nullptr};
  if (p >= dynamic_ - RedZone) r = Region{dynamic_, dynamic_bytes_, nullptr, nullptr};
  for (const SharedArray &a : arrays_)
    if (p >= a.ptr - RedZone && p < a.ptr + a.bytes + RedZone) {
      r = Region{a.ptr, a.bytes, nullptr, a.site};
      if (p >= a.ptr && p < a.ptr + a.bytes) break;
    }
  if (r.start) {
    r.shadow = &shadows[r.start];
    if (!*r.shadow) *r.shadow = calloc(SharedBytes / 4, 96);
  }
  return true;
}
#endif

static void StartBlock(const dim3 &b)
{
  threads_ = remaining_ = b.x * b.y * b.z;
  arrived_              = 0;
  warps_                = (int)((threads_ + 31) / 32);
  ready_                = warps_ == 32 ? ~0u : (1u << warps_) - 1u;
  for (int w = 0; w < warps_; w++) {
    const unsigned n = threads_ - 32u * (unsigned)w;
    WarpState     &W = warp_[w];
    W.exists = W.runnable = n >= 32 ? ~0u : (1u << n) - 1u;
    W.waiting = W.barrier = W.exited = 0;
    memset(W.fiber, 0, sizeof(W.fiber));
  }
  stay_ = Random() & 1 ? 15 : 4095;
  epoch_++;
  EMU_RACE(RaceBlock(warps_);)
  Repair(shared_, shared_used_ + RedZone);
  shared_used_ = static_bytes_ = 0;
  arrays_.clear();
  Repair(dynamic_ - RedZone, (size_t)(dynamicend_ - dynamic_) + RedZone);
}

static inline void CheckArrays(void)
{
  for (const SharedArray &a : arrays_) CheckArray(a, 8);
}

/* a thread that has not begun takes an idle fiber */
static void Begin(WarpState &W, int l)
{
  Fiber *f = idle_.empty() ? NewFiber() : idle_.back();
  if (!idle_.empty()) idle_.pop_back();
  W.fiber[l] = f;
  W.sp[l]    = f->sp;
}

/* picks a thread and makes it the running one: mostly of the same warp. In every second block a warp is left so seldom that it gets
   whole rounds of a loop ahead of the others. */
static inline __attribute__((always_inline)) Fiber *Next(void)
{
  const uint64_t draw = Draw();
  if (!((ready_ >> w_) & 1u) || ((draw >> 5) & stay_) == 0) {
    if (!ready_) Deadlock();
    w_ = Pick(ready_, draw >> 20);
  }
  WarpState &W = warp_[w_];
  unsigned   r = W.runnable;
  const int  l = (r >> W.next) & 1u ? W.next : Pick(r, draw);
  l_           = l;
  W.runnable = r &= ~(1u << l);
  if (!r) ready_ &= ~(1u << w_);
  else { /* who comes next in this warp is drawn now, so that its stack is on its way meanwhile */
    const int n = Pick(r, draw >> 40);
    W.next      = n;
    if (W.fiber[n]) {
      __builtin_prefetch(W.sp[n]);
      __builtin_prefetch((char *)W.sp[n] + 64);
    }
  }
  if (__builtin_expect(!W.fiber[l], 0)) Begin(W, l);
  const unsigned t = (unsigned)(w_ * 32 + l);
  if (blockDim_.y == 1 && blockDim_.z == 1) threadIdx_.x = t;
  else threadIdx_ = uint3{t % blockDim_.x, t / blockDim_.x % blockDim_.y, t / blockDim_.x / blockDim_.y};
  return fiber_ = W.fiber[l];
}

/* the running thread has ended; who goes on: its fiber may take the next thread without a switch, so a plain kernel runs like a loop */
static Fiber *Ended(void)
{
  WarpState &W = warp_[w_];
  CheckArrays();
  idle_.push_back(fiber_);
  W.fiber[l_] = nullptr;
  W.exited |= 1u << l_;
  remaining_--;
  if (arrived_) Fail("divergent barrier: this thread ends while %u threads wait in __syncthreads", arrived_);
  for (unsigned s = W.waiting; s; s = W.waiting & s & (s - 1)) (void)Complete(W, __builtin_ctz(s));
  if (W.runnable) ready_ |= 1u << w_;
  return remaining_ ? Next() : &scheduler_;
}

static void RunBlock(const dim3 &b)
{
  StartBlock(b);
  w_ = Pick(ready_, Draw());
  Fiber *first = Next();
  Go(&scheduler_.sp, &scheduler_, first, warp_[w_].sp[l_]);
  for (const SharedArray &a : arrays_) CheckArray(a, RedZone);
  if (!Intact(dynamic_ - RedZone, RedZone)) Fail("a write before the start of the dynamic shared array (%zu bytes)", dynamic_bytes_);
  if (!Intact(dynamic_ + dynamic_bytes_, (size_t)(dynamicend_ - dynamic_) - dynamic_bytes_)) Fail("a write behind the end of the dynamic shared array (%zu bytes)", dynamic_bytes_);
}

void RunKernel(dim3 grid, dim3 block, size_t dynamic, const std::function<void()> &thread)
{
  const size_t page = 4096;
  if (!shared_) {
    const size_t total = SharedBytes + page + SharedBytes + page;
    shared_            = (char *)mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared_ == MAP_FAILED) Fail("no memory for shared memory");
    dynamicend_ = shared_ + total - page;
    mprotect(shared_ + SharedBytes, page, PROT_NONE);
    mprotect(dynamicend_, page, PROT_NONE);
    shared_used_ = SharedBytes - RedZone;
  }
  dynamic_bytes_ = dynamic;
  dynamic_       = dynamicend_ - ((dynamic + 15) & ~(size_t)15);
  gridDim_       = grid;
  blockDim_      = block;
  body_          = &thread;
  threadIdx_     = uint3{0, 0, 0};
  EMU_RACE(RaceKernel();)
  const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
  uint64_t       b = Random() % n, stride = Random() % n;
  while (std::gcd(stride, n) != 1) stride = (stride + 1) % n; /* a stride without a common divisor visits every block */
  for (uint64_t k = 0; k < n; k++, b = (b + stride) % n) {
    blockIdx_ = uint3{(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
    RunBlock(block);
  }
  EMU_RACE(RaceEnd();)
}
} // namespace emu
