/*
  ipc.cc: memory of a card that another process maps, and the words by which the two tell each other.

  An array that is exported gets pages that can be shared, in place of its own; who opens it maps them as an array of its own. Their file has no name but
  that of the exporting process's descriptor, so nothing is left behind by a process that dies. A release is late at times, by the seed's random numbers.
  HYB_EMULATOR_IPC=0: a device whose memory cannot be shared.
*/
#include "memory.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
using namespace emu;

namespace {
struct Ticket { /* what a handle holds */
  int    pid, fd;
  size_t room, bytes, start;
};
static_assert(sizeof(Ticket) <= sizeof(cudaIpcMemHandle_t), "a handle has room for it");

std::map<Array *, int> exported_; /* and the descriptor */
std::map<Array *, int> opened_;

cudaError_t Refuse(cudaError_t e)
{
  error_ = e;
  return e;
}

bool Off(void)
{
  const char *s = getenv("HYB_EMULATOR_IPC");
  return s && !atoi(s);
}

void Back(Array *a)
{
  if (mmap(a->page + Page, a->room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) Fail("mmap failed");
  a->poisoned = 0;
}
} // namespace

namespace emu
{
void Unshare(Array *a)
{
  auto e = exported_.find(a);
  if (opened_.count(a)) Fail("%s is another process's: cudaIpcCloseMemHandle is for it", Name(a).c_str());
  if (e == exported_.end()) return;
  Back(a);
  close(e->second);
  exported_.erase(e);
}

void StoreRelease(uint64_t *p, uint64_t v)
{
  const uint64_t draw = Random() % 4;
  if (draw == 0) usleep((useconds_t)(Random() % 300));
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
  if (draw == 1) usleep((useconds_t)(Random() % 300)); /* whoever waits for it is quicker than this block's other threads */
}

uint64_t LoadAcquire(const uint64_t *p)
{
  const uint64_t v = __atomic_load_n(p, __ATOMIC_ACQUIRE);
  sched_yield();
  return v;
}

/* HYB_EMULATOR_HASTE: the card's clock runs so many times as fast, for tests of long waits; it may be set at any time */
uint64_t Nanoseconds(void)
{
  const char    *haste = getenv("HYB_EMULATOR_HASTE");
  const uint64_t times = haste && atoi(haste) > 0 ? (uint64_t)atoi(haste) : 1;
  timespec       t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return times * ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}
} // namespace emu

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p)
{
  Count("cudaIpcGetMemHandle");
  Array *a = Find(p);
  if (Off()) return Refuse(cudaErrorNotSupported);
  if (!a || a->ptr != p || a->freed || a->managed || a->reserved || a->pool != &plain_[0]) return Refuse(cudaErrorInvalidValue);
  DrainAll();
  auto e = exported_.find(a);
  if (e == exported_.end()) {
    const int fd   = memfd_create("card", 0);
    char     *mine = fd < 0 || ftruncate(fd, (off_t)a->room) ? (char *)MAP_FAILED : (char *)mmap(nullptr, a->room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mine == MAP_FAILED) return Refuse(cudaErrorMemoryAllocation);
    char *first = a->page + Page;
    Protect(a, PROT_READ | PROT_WRITE);
    if (a->poisoned < a->room) Repair(first + a->poisoned, a->room - a->poisoned);
    memcpy(mine, first, a->room);
    munmap(mine, a->room);
    if (mmap(first, a->room, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) Fail("mmap failed");
    a->poisoned = a->room;
    e           = exported_.emplace(a, fd).first;
  }
  const Ticket t = {(int)getpid(), e->second, a->room, a->bytes, (size_t)(a->ptr - (a->page + Page))};
  memset(handle, 0, sizeof(*handle));
  memcpy(handle, &t, sizeof(t));
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t handle, unsigned)
{
  Count("cudaIpcOpenMemHandle");
  Ticket t;
  char   path[64];
  *p = nullptr;
  memcpy(&t, &handle, sizeof(t));
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", t.pid, t.fd);
  const int fd = Off() || t.pid == (int)getpid() ? -1 : open(path, O_RDWR);
  Array    *a  = fd < 0 ? nullptr : NewRange(t.room);
  if (!a) {
    if (fd >= 0) close(fd);
    return Refuse(cudaErrorInvalidValue);
  }
  a->reserved = 0;
  a->room     = t.room;
  a->bytes    = t.bytes;
  a->ptr      = a->page + Page + t.start;
  a->poisoned = t.room;
  a->name     = "another process's segment";
  if (mmap(a->page + Page, t.room, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) Fail("mmap failed");
  close(fd);
  opened_[a] = 1;
  *p         = a->ptr;
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *p)
{
  Count("cudaIpcCloseMemHandle");
  Array *a = Find(p);
  if (!a || !opened_.count(a)) return Refuse(cudaErrorInvalidValue);
  DrainAll();
  Back(a);
  opened_.erase(a);
  Retire(a);
  return cudaSuccess;
}
