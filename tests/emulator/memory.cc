/*
  memory.cc: memory and streams.

  Device memory is a stretch of reserved addresses that the host cannot touch. Each array has pages of its own with guard pages round them, ends (mostly) at
  its last page's end, holds poison until it is written, and its addresses are not used again soon. An operation opens the arrays that it names among its
  arguments, or that it is caught touching; all are closed again before the host goes on. Managed arrays are the host's except while work that uses them is
  queued: then they can be read, if the work only reads them, or not touched at all.

  Work is queued and done when somebody waits for it, no earlier, and of several streams in random order. Vector clocks say what comes before what: an
  operation's clock holds for each stream the number of its last operation that is known to be done before. A use that does not come after the allocation,
  a free that does not come after all uses, two uses of which one writes and neither comes first: each is an error, whatever the order this time.
*/
#include "memory.h"
#include <cstdarg>
#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
namespace emu
{
EmuStream                         stream_[Streams];
bool                              taken_[Streams] = {true};
Clock                             host_;
static char                             *space_;
static size_t                            space_used_;
static bool                              handsoff_; /* no managed array is the host's, see HybEmulatorHandsOff() */
static std::map<char *, Array *>         arrays_; /* by first guard page */
static std::vector<Array *>              open_;
static std::multimap<size_t, char *>     recycled_;
std::map<const void *, int>       dynamic_limit_;
EmuPool                           plain_[2]; /* cudaMalloc and cudaMallocAsync; cudaMallocManaged */
std::vector<EmuPool *>            pools_ = {&plain_[0], &plain_[1]};
size_t                            total_;
static bool                              inside_;
static size_t                            queued_;
cudaError_t                       error_;
unsigned long long                bytes_to_host_, bytes_to_device_, launches_;
static unsigned long long         waits_;
thread_local int                  card_;
static struct sigaction                  before_;
unsigned Seed(void)
{
  static const char *s = getenv("HYB_EMULATOR_SEED");
  return s ? (unsigned)strtoul(s, nullptr, 10) : 1;
}

int Cards(void)
{
  static const char *s = getenv("HYB_EMULATOR_CARDS");
  return s ? std::max(1, atoi(s)) : 1;
}

std::string Where(const void *pc)
{
  Dl_info     info;
  std::string text;
  if (!dladdr(pc, &info) || !info.dli_fname) return "an unknown place";
  char   command[8192], buffer[1024], self[PATH_MAX];
  size_t offset = (size_t)((const char *)pc - (const char *)info.dli_fbase);
  snprintf(command, sizeof(command), "addr2line -Cfpi -e '%s' 0x%zx 2>/dev/null", realpath(info.dli_fname, self) ? self : info.dli_fname, offset);
  FILE *f = popen(command, "r");
  for (int k = 0; f && k < 6 && fgets(buffer, sizeof(buffer), f); k++) {
    buffer[strcspn(buffer, "\n")] = 0;
    text += (k ? "\n      " : "") + std::string(buffer);
  }
  if (f) pclose(f);
  if (text.empty()) text = std::string(info.dli_sname ? info.dli_sname : "?") + " in " + info.dli_fname;
  return text;
}

extern "C" void __gcov_dump(void) __attribute__((weak));
static void     Report(const void *pc, const char *format, va_list args)
{
  fflush(stdout);
  fprintf(stderr, "\nemulator: ");
  vfprintf(stderr, format, args);
  if (pc) fprintf(stderr, "\n  at  %s", Where(pc).c_str());
  if (running.kernel) {
    fprintf(stderr, "\n  in %s %s, queued at %s:%d", running.threads ? "kernel" : "operation", running.kernel, running.file, running.line);
    if (running.threads) fprintf(stderr, "; block (%u,%u,%u) of (%u,%u,%u), thread (%u,%u,%u) of (%u,%u,%u)", blockIdx_.x, blockIdx_.y, blockIdx_.z, gridDim_.x, gridDim_.y, gridDim_.z, threadIdx_.x, threadIdx_.y, threadIdx_.z, blockDim_.x, blockDim_.y, blockDim_.z);
  } else {
    void     *frames[24];
    const int n = backtrace(frames, 24);
    fprintf(stderr, "\n  on the host, called from\n");
    fflush(stderr);
    for (int k = pc ? 4 : 2; k < n && k < 12; k++) fprintf(stderr, "      %s\n", Where((const char *)frames[k] - 1).c_str());
  }
  fprintf(stderr, "%s  HYB_EMULATOR_SEED=%u\n", running.kernel ? "\n" : "", Seed());
  fflush(stderr);
  if (__gcov_dump) __gcov_dump();
  _exit(97);
}

void Fail(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  Report(nullptr, format, args);
  abort();
}

void FailAt(const void *pc, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  Report(pc, format, args);
  abort();
}

void Repair(void *p, size_t bytes)
{
  if ((uintptr_t)p & 3) { /* the pattern is tied to addresses, whatever the array's start */
    for (size_t k = 0; k < bytes; k++) ((unsigned char *)p)[k] = (unsigned char)(Poison >> (8 * (((uintptr_t)p + k) & 3)));
    return;
  }
  uint32_t *w = (uint32_t *)p;
  for (size_t k = 0; k < bytes / 4; k++) w[k] = Poison;
  for (size_t k = bytes & ~(size_t)3; k < bytes; k++) ((unsigned char *)p)[k] = (unsigned char)(Poison >> (8 * (k & 3)));
}

bool Intact(const void *p, size_t bytes)
{
  static uint32_t poison[1025]; /* 4096 bytes from each of a word's four on */
  std::fill_n(poison, poison[0] ? 0 : 1025, Poison);
  for (const char *c = (const char *)p, *end = c + bytes; c < end; c += 4096)
    if (memcmp(c, (const char *)poison + ((uintptr_t)c & 3), std::min((size_t)(end - c), (size_t)4096))) return false;
  return true;
}

bool Unwritten(const void *p, size_t bytes, size_t *at)
{
  const uintptr_t a = (uintptr_t)p;
  for (size_t k = (4 - (a & 3)) & 3; k + 4 <= bytes; k += 4)
    if (*(const uint32_t *)(a + k) == Poison) {
      *at = k;
      return true;
    }
  return false;
}
void GoesToHost(const void *p, size_t bytes)
{
  size_t at;
  bytes_to_host_ += bytes;
  if (Unwritten(p, bytes, &at)) Fail("%zu bytes go to the host, but byte %zu of them was never written", bytes, at);
}
std::string Name(const Array *a)
{
  char text[256];
  snprintf(text, sizeof(text), "%s array '%s' of %zu bytes%s", a->managed ? "managed" : "device", a->name.empty() ? "(no kernel has named it)" : a->name.c_str(), a->bytes, a->reserved ? " (in a range that is reserved, and has no more memory)" : "");
  return text;
}

Array *Find(const void *p)
{
  if (!space_ || (const char *)p < space_ || (const char *)p >= space_ + SpaceBytes) return nullptr;
  auto it = arrays_.upper_bound((char *)p);
  return it == arrays_.begin() ? nullptr : (--it)->second;
}

#if defined(EMU_RACES)
bool DeviceRegion(const void *p, Region &r)
{
  Array *a = Find(p);
  if (!a || a->freed || !a->open) return false; /* the page's protection speaks */
  r = Region{a->ptr, a->bytes, &a->shadow, a};
  return true;
}

std::string DeviceName(const void *owner)
{
  return Name((const Array *)owner);
}
#endif

void Protect(Array *a, int protection)
{
  if (a->room && mprotect(a->page + Page, a->room, protection)) Fail("mprotect failed: too many arrays?");
}

void Open(Array *a)
{
  if (a->open) return;
  if (!a->managed || a->protection != (PROT_READ | PROT_WRITE)) Protect(a, PROT_READ | PROT_WRITE);
  if (a->managed) a->protection = PROT_READ | PROT_WRITE;
  if (a->poisoned < a->room) {
    char *first = a->page + Page + a->poisoned;
#if defined(MADV_POPULATE_WRITE)
    (void)madvise(first, a->room - a->poisoned, MADV_POPULATE_WRITE);
#endif
    Repair(first, a->room - a->poisoned);
    a->poisoned = a->room;
  }
  a->fresh = false;
  a->open = true;
  open_.push_back(a);
}

static void Guard(Array *a)
{
  char *first = a->page + Page, *end = first + a->room;
  if (!Intact(first, (size_t)(a->ptr - first))) Fail("a write before the start of %s", Name(a).c_str());
  if (!Intact(a->ptr + a->bytes, (size_t)(end - a->ptr) - a->bytes)) Fail("a write behind the end of %s", Name(a).c_str());
}

/* the host's rights on a managed array follow what is queued */
void Share(Array *a)
{
  const int p = a->freed || a->freeing || a->writes || a->fresh || handsoff_ ? PROT_NONE : a->reads ? PROT_READ : PROT_READ | PROT_WRITE;
  if (inside_ || a->protection == p) return;
  Protect(a, p);
  a->protection = p;
}

void CloseAll(void)
{
  std::vector<Array *> all;
  all.swap(open_);
  for (Array *a : all) {
    a->open = false;
    if (a->managed) Share(a);
    else if (!a->freed) Protect(a, PROT_NONE);
  }
}

bool Before(int stream, uint32_t number, const Clock &c)
{
  return c.at[stream] >= number;
}

static void CheckUse(Array *a, const Operation *o, bool write)
{
  const char *who = o->what.c_str();
  if (!a->managed && a->card != o->card) Fail("%s on card %d uses %s, which is memory of card %d", who, o->card, Name(a).c_str(), a->card);
  if (a->freed || a->freeing) Fail("%s uses %s after it was freed", who, Name(a).c_str());
  if (!Before(a->stream, a->born, o->clock)) Fail("%s on stream %d uses %s, allocated on stream %d, and does not wait for that", who, o->stream, Name(a).c_str(), a->stream);
  if (!Before(a->writer, a->written, o->clock)) Fail("%s on stream %d uses %s, written on stream %d by %s, and does not wait for that", who, o->stream, Name(a).c_str(), a->writer, a->user.c_str());
  for (int s = 0; write && s < Streams; s++)
    if (!Before(s, a->last[s], o->clock)) Fail("%s on stream %d writes %s, used on stream %d by %s, and does not wait for that", who, o->stream, Name(a).c_str(), s, a->user.c_str());
}

static void MarkUse(Array *a, const Operation *o, bool write)
{
  a->last[o->stream] = o->clock.at[o->stream];
  a->user            = o->what;
  if (write) {
    a->writer  = o->stream;
    a->written = o->clock.at[o->stream];
  }
}

static Operation *current_;

static void Handler(int sig, siginfo_t *info, void *context)
{
  char       *p     = (char *)info->si_addr;
  Array      *a     = Find(p);
  const bool  write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
  const void *pc    = (const void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  if (sig == SIGVTALRM) FailAt(pc, "this operation does not end");
  if (a && inside_) {
    char *first = a->page + Page;
    if (a->freed) FailAt(pc, "%s of %s after it was freed, byte %td", write ? "write" : "read", Name(a).c_str(), p - a->ptr);
    if (p >= first && p < first + a->room && !a->open) { /* reached by a pointer that is no argument of its own */
      CheckUse(a, current_, false);
      MarkUse(a, current_, false);
      Open(a);
      return;
    }
    FailAt(pc, "%s out of bounds of %s, at byte %td", write ? "write" : "read", Name(a).c_str(), p - a->ptr);
  }
  if (a) {
    if (a->freed || a->freeing) FailAt(pc, "the host %s %s after it was freed", write ? "writes" : "reads", Name(a).c_str());
    if (a->managed && (a->reads || a->writes || a->fresh)) FailAt(pc, "the host %s %s while %s, which uses it, is queued", write ? "writes" : "reads", Name(a).c_str(), a->fresh ? "its allocation" : a->user.c_str());
    if (a->managed && handsoff_) FailAt(pc, "the host %s %s, at byte %td, where a test says that it touches none", write ? "writes" : "reads", Name(a).c_str(), p - a->ptr);
    FailAt(pc, "the host %s %s, at byte %td", write ? "writes" : "reads", Name(a).c_str(), p - a->ptr);
  }
  if (inside_) FailAt(pc, OnStackGuard(p) ? "the thread's stack is full" : "access to address %p, which belongs to no array", (void *)p);
  sigaction(sig, &before_, nullptr); /* not ours: once more, for whoever was there before */
}

/* a program may have put its own handler there since, as PetscInitialize() does */
void Watch(void)
{
  struct sigaction sa, now;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = Handler;
  sa.sa_flags     = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == Handler) return;
  sigaction(SIGSEGV, &sa, &before_);
  sigaction(SIGVTALRM, &sa, nullptr);
}

void Start(void)
{
  if (space_) return;
  space_ = (char *)mmap(nullptr, SpaceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space_ == MAP_FAILED) {
    space_ = nullptr;
    Fail("no address space for the device's memory");
  }
  const char *m = getenv("HYB_EMULATOR_MEMORY");
  total_        = m ? (size_t)strtoull(m, nullptr, 10) : (size_t)4 << 30;
  for (int s = 0; s < Streams; s++) stream_[s].number = s;
  stream_[0].blocking = true;
  static char alternate[128 * 1024];
  stack_t     ss;
  memset(&ss, 0, sizeof(ss));
  ss.ss_sp   = alternate;
  ss.ss_size = sizeof(alternate);
  sigaltstack(&ss, nullptr);
  Watch();
}

EmuStream *Get(cudaStream_t s)
{
  Start();
  return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread ? &stream_[0] : s;
}

/* streams that the default stream waits for, and which wait for it */
void Legacy(EmuStream *s, bool before)
{
  if (s->number == 0) {
    for (int t = 1; t < Streams; t++)
      if (taken_[t] && stream_[t].blocking) {
        if (before) s->clock.Join(stream_[t].clock);
        else stream_[t].clock.Join(s->clock);
      }
  }
}

/* processor time: a busy machine makes no operation endless */
static void Watch(double seconds)
{
  itimerval t;
  memset(&t, 0, sizeof(t));
  t.it_value.tv_sec  = (time_t)seconds;
  t.it_value.tv_usec = (suseconds_t)((seconds - (double)t.it_value.tv_sec) * 1e6);
  setitimer(ITIMER_VIRTUAL, &t, nullptr);
}

static void Run(Operation *o)
{
  static const char *limit = getenv("HYB_EMULATOR_SECONDS");
  current_                 = o;
  inside_                  = true;
  running             = Running{o->what.c_str(), o->file.c_str(), o->line, o->kernel};
  for (Array *a : o->arrays) Open(a);
  Watch(limit ? atof(limit) : 200);
  if (o->kernel) launches_++;
  if (o->kernel) RunKernel(o->grid, o->block, o->dynamic, o->run);
  else if (o->run) o->run();
  for (Array *a : open_)
    if (!a->freed) Guard(a);
  for (size_t k = 0; k < o->arrays.size(); k++) o->uses[k].write || o->uses[k].maybe ? o->arrays[k]->writes-- : o->arrays[k]->reads--;
  running = Running{nullptr, nullptr, 0, false};
  inside_      = false;
  current_     = nullptr;
  delete o;
  queued_--;
}

/* does all that comes before this clock */
void Drain(const Clock &c)
{
  bool any = false;
  for (;;) {
    EmuStream *can[Streams];
    int        n = 0;
    for (int s = 0; s < Streams; s++) {
      if (stream_[s].queue.empty()) continue;
      const Operation *o  = stream_[s].queue.front();
      bool             ok = Before(s, o->clock.at[s], c);
      for (int t = 0; ok && t < Streams; t++)
        if (t != s && !stream_[t].queue.empty() && Before(t, stream_[t].queue.front()->clock.at[t], o->clock)) ok = false;
      if (ok) can[n++] = &stream_[s];
    }
    if (!n) break;
    EmuStream *s = can[n > 1 ? Random() % (uint64_t)n : 0];
    Operation *o = s->queue.front();
    s->queue.pop_front();
    any = true;
    Run(o);
  }
  if (any) {
    waits_++;
    Watch(0);
    CloseAll();
  }
}

void DrainAll(void)
{
  Clock all;
  memset(&all, 0xff, sizeof(all));
  Drain(all);
  for (int s = 0; s < Streams; s++) host_.Join(stream_[s].clock);
}

Operation *Queue(EmuStream *s, const char *what, std::vector<Use> &&uses, std::function<void()> &&run)
{
  if (inside_) Fail("%s inside an operation", what);
  if (s->graph) s->graph->operations.emplace_back();
  Operation *o = s->graph ? &s->graph->operations.back() : new Operation;
  o->what      = what;
  o->file      = "(runtime)";
  o->line      = 0;
  o->stream    = s->number;
  o->card      = s->number ? s->card : card_;
  o->kernel    = false;
  o->uses      = std::move(uses);
  o->run       = std::move(run);
  o->turn      = 0;
  o->branch    = s->branch;
  if (s->graph) s->graph->open[s->branch] = true;
  if (s->graph) return o;
  Legacy(s, true);
  s->clock.Join(host_);
  s->clock.at[s->number]++;
  o->clock = s->clock;
  Legacy(s, false);
  for (const Use &u : o->uses) {
    Array *a = Find(u.ptr);
    if (!a) Fail("%s is given %p, which belongs to no array of the device", what, u.ptr);
    if (a->freed || a->freeing || (const char *)u.ptr < a->ptr || (const char *)u.ptr > a->ptr + a->bytes) {
      CheckUse(a, o, u.write);
      Fail("%s is given byte %td of %s", what, (const char *)u.ptr - a->ptr, Name(a).c_str());
    }
    if (u.bytes > (size_t)(a->ptr + a->bytes - (const char *)u.ptr)) Fail("%s %s %zu bytes from byte %td of %s", what, u.write ? "writes" : "reads", u.bytes, (const char *)u.ptr - a->ptr, Name(a).c_str());
    CheckUse(a, o, u.write);
    o->arrays.push_back(a);
  }
  for (size_t k = 0; k < o->uses.size(); k++) {
    Array *a = o->arrays[k];
    MarkUse(a, o, o->uses[k].write);
    o->uses[k].write || o->uses[k].maybe ? a->writes++ : a->reads++;
    if (a->managed) Share(a);
  }
  s->queue.push_back(o);
  if (++queued_ > 4096) DrainAll(); /* a device's queue is not endless either */
  return o;
}
void Enqueue(cudaStream_t s, const char *what, std::vector<Use> &&uses, std::function<void()> &&run)
{
  (void)Queue(Get(s), what, std::move(uses), std::move(run));
}

void LooksLikePointers(const void *object, size_t bytes, bool maybe, int argument, std::vector<Use> &uses, std::vector<int> &which)
{
  for (size_t k = 0; k + sizeof(void *) <= bytes; k += sizeof(void *)) {
    const void *p;
    memcpy(&p, (const char *)object + k, sizeof(p));
    const Array *a = Find(p);
    if (!a || (const char *)p < a->ptr || (const char *)p >= a->ptr + a->bytes || a->freed) continue;
    uses.push_back(Use{p, 0, false, maybe}); /* whether it is written nobody knows */
    which.push_back(argument);
  }
}

/* argument k of the text "a, f(b, c), d" */
static std::string Argument(const char *text, int k)
{
  int         depth = 0;
  std::string r;
  for (; *text; text++) {
    if (*text == '(' || *text == '[' || *text == '{') depth++;
    if (*text == ')' || *text == ']' || *text == '}') depth--;
    if (*text == ',' && depth == 0) k--;
    else if (k == 0 && (*text != ' ' || !r.empty())) r += *text;
  }
  return r;
}

void Launch(const void *kernel, const char *name, const char *args, const char *file, int line, dim3 grid, dim3 block, size_t bytes, cudaStream_t stream, std::vector<Use> &&uses, std::vector<int> &&argument, std::function<void()> &&thread)
{
  const size_t threads = (size_t)block.x * block.y * block.z;
  const auto   limit   = dynamic_limit_.find(kernel);
  EmuStream   *s       = Get(stream);
  if (threads < 1 || threads > 1024 || block.z > 64 || grid.y > 65535 || grid.z > 65535 || grid.x > 2147483647u || bytes > (limit == dynamic_limit_.end() ? (size_t)48 * 1024 : (size_t)limit->second)) {
    error_ = cudaErrorInvalidConfiguration;
    return;
  }
  if (s->number && s->card != card_) {
    error_ = cudaErrorInvalidResourceHandle;
    return;
  }
  /* a pointer to host memory, to freed memory or past an array is a value like any other until it is followed: then the fault handler speaks */
  std::vector<Use> known;
  for (size_t k = 0; k < uses.size(); k++) {
    Array *a = Find(uses[k].ptr);
    if (!a || a->freed || a->freeing || (const char *)uses[k].ptr < a->ptr || (const char *)uses[k].ptr > a->ptr + a->bytes) continue;
    a->name = Argument(args, argument[k]);
    known.push_back(uses[k]);
  }
  Operation *o = Queue(s, name, std::move(known), std::move(thread));
  Count(name);
  o->kernel    = true;
  o->file      = file;
  o->line      = line;
  o->grid      = grid;
  o->block     = block;
  o->dynamic   = bytes;
}

/* a guard page and this many bytes behind it, which an array that is gone had or nobody yet; NULL: there is no more */
static char *TakePages(size_t bytes)
{
  auto  old  = recycled_.find(bytes);
  char *page = nullptr;
  if (old != recycled_.end()) {
    page = old->second;
    recycled_.erase(old);
    free(arrays_[page]->shadow);
    delete arrays_[page];
  } else if (space_used_ + bytes + 2 * Page <= SpaceBytes) {
    page = space_ + space_used_;
    space_used_ += bytes + Page; /* the guard page behind is the next one's before */
  }
  return page;
}

Array *New(size_t bytes, EmuPool *pool, EmuStream *s)
{
  Start();
  const size_t room = (std::max<size_t>(bytes, 1) + Page - 1) / Page * Page;
  size_t       held = 0;
  const int    card = pool == &plain_[0] || pool == &plain_[1] ? card_ : pool->card;
  for (const EmuPool *p : pools_)
    if (p->card == card) held += std::max(p->reserved, p->used);
  const size_t growth = pool->used + bytes > pool->reserved ? pool->used + bytes - pool->reserved : 0;
  if (growth > total_ || held > total_ - growth) return nullptr;
  char *const page = TakePages(room);
  if (!page) return nullptr;
  Array *a     = new Array();
  a->page      = page;
  a->room      = room;
  a->bytes     = bytes;
  const bool left = (Random() & 3) == 0;
  a->ptr       = left ? page + Page : page + Page + room - (bytes + Align - 1) / Align * Align;
  a->managed   = pool->managed;
  a->card      = card;
  a->pool      = pool;
  a->fresh     = true;
  a->stream    = s->number;
  arrays_[page] = a;
  pool->used += bytes;
  pool->reserved = std::max(pool->reserved, pool->used);
  return a;
}

Array *NewRange(size_t bytes)
{
  Start();
  char *const page = TakePages(bytes);
  if (!page) return nullptr;
  Array *a      = new Array();
  a->page       = page;
  a->ptr        = page + Page;
  a->reserved   = bytes;
  a->pool       = &plain_[0];
  a->card       = card_;
  arrays_[page] = a;
  return a;
}

void Retire(Array *a)
{
  static std::deque<Array *> quarantine;
  a->freed = true;
  Protect(a, PROT_NONE);
  quarantine.push_back(a);
  if (quarantine.size() > 256) {
    Array *old = quarantine.front();
    quarantine.pop_front();
    if (old->room > 16 * Page) (void)madvise(old->page + Page, old->room, MADV_DONTNEED);
    recycled_.emplace(old->reserved ? old->reserved : old->room, old->page);
  }
}
} // namespace emu

/* For tests that show an operation to leave the host out: from HybEmulatorHandsOff(1) on each access of the host to a managed array is an error,
   until HybEmulatorHandsOff(0). Copies are the device's; HybEmulatorBytesToHost() and HybEmulatorBytesToDevice() count their bytes. */
extern "C" __attribute__((visibility("default"))) void HybEmulatorHandsOff(int on)
{
  emu::handsoff_ = on != 0;
  for (auto &a : emu::arrays_)
    if (a.second->managed && !a.second->freed) emu::Share(a.second);
}
extern "C" __attribute__((visibility("default"))) unsigned long long HybEmulatorBytesToHost(void)
{
  return emu::bytes_to_host_;
}
extern "C" __attribute__((visibility("default"))) unsigned long long HybEmulatorBytesToDevice(void)
{
  return emu::bytes_to_device_;
}
/* how often the host has waited for work that was not done yet */
extern "C" __attribute__((visibility("default"))) unsigned long long HybEmulatorWaits(void)
{
  return emu::waits_;
}
/* For tests of a program that uses several cards: the calling thread's current one is another. Returns what it was. */
extern "C" __attribute__((visibility("default"))) int HybEmulatorSetCard(int card)
{
  const int was = emu::card_;
  if (card >= 0 && card < emu::Cards()) emu::card_ = card;
  return was;
}
