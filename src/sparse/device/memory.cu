/*
  memory.cu: the card's memory as this process uses it.

  Its kinds (figures: docs/tried.md, Thresholds):

    DEVICE   a stream-ordered pool that keeps what it once had, so that a warm allocation takes next to nothing, where
             cudaMalloc() and cudaFree() synchronize. All workspace, and the arrays of matrices in mirror mode.
    MANAGED  a pool of managed memory (CUDA 13); large arrays are managed.cu's. The arrays that the AIJ base class
             adopts as its own. Kernels read and write it as fast as plain device memory while it lives there; the host
             pays only for the pages that it touches. Never with read-mostly advice: a kernel's write to such pages
             after a host read is slower by orders of magnitude.
    HOST     PetscMalloc(). Copies between it and the card go through three pinned buffers, made once, in turn, so that
             the copy over the bus and the copy in memory overlap; several threads do the latter (crew.h), one core
             being slower than the bus. CUDA's own way takes three times as long, and thirty times with fresh pages.
    LOCKED   fresh memory in large pages, touched by all threads and then registered (cudaHostRegister): five times as
             fast as cudaMallocHost(). A copy to the card takes as long as the bus, less than one of pageable memory
             through the buffers. Values of host matrices that are sent again and again, and small blocks, which are
             kept (locked.cu).

  Every byte is counted. Managed memory stays below a share of the card's free memory, divided by the processes that use
  the card, and before the pool grows the card is asked whether it has the room: managed memory may be over-committed,
  and then every process on the card can hang, not this one alone. The memory limit of HybServices makes the card look
  smaller: so tests exhaust the plugin, never a card.

  When memory runs out the pools give back what they keep unused, once, and the allocation is tried again; then those
  who hold what they can do without (HybSpare), and it is tried for the last time.
*/
#include "hybdevicestate.h"
#include "crew.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

/* Large copies go through three pinned buffers in turn: with two the bus waits for threads that are late. Smaller
   pieces cost more meetings of the threads; stores past the caches are slower here, the bus reading other cores' caches
   well. */
struct HybStage {
  char       *buffer;
  cudaEvent_t event;
  bool        busy;
};
static const int    HybStages   = 3;
static const size_t HybFewBytes = (size_t)64 << 10;
/* up to so many bytes a kernel writes them, which is faster than the copy engine and an event: numbers that a
   first product waits for, two or three times */
static const size_t HybFewestBytes = (size_t)16 << 10;
static const size_t HybLargeChunk  = (size_t)16 << 20;
static const size_t HybLargeCopy   = 4 * HybLargeChunk; /* from so many bytes on a copy goes by large pieces */
static const size_t HybRoomAsked   = HybLargeCopy;      /* and before it the card is asked whether there is room */
static const size_t HybFirstChunk  = (size_t)1 << 20;
/* Pieces of other copies. Their buffers are others, where these come first: they stay when large ones come, to release
   one waits for the device. */
static const size_t HybSmallChunk   = (size_t)4 << 20;
static const size_t HybManagedLarge = (size_t)8 << 20; /* managed arrays from this size on are managed.cu's */
/* bytes from which on it pays to ask whether the host's array is pinned */
static const size_t HybPinnedAsked = (size_t)1 << 20;
/* from this size on CUDA's own way from pageable memory is faster than one thread and our buffers, up to
   HybCrewBytes */
static const size_t HybOwnBytes = (size_t)256 << 10;
/* Copies to the device of less have buffers of their own, taken in turn: a buffer can be written again when its copy is
   done, and that waits in the stream for all that was queued before it */
static const int HybSlots = 8;
enum {
  HYB_STAGE_SMALL,
  HYB_STAGE_LARGE = HYB_STAGE_SMALL + HybStages,
  HYB_STAGE_FEW   = HYB_STAGE_LARGE + HybStages, /* a few bytes to the host */
  HYB_STAGE_SLOT,
  HYB_STAGE_ALL = HYB_STAGE_SLOT + HybSlots
};
static HybStage stage_[HYB_STAGE_ALL];
static size_t   expected_; /* of the pool, soon */

/* what the card has free, as far as it may be believed, counting what our pools hold unused, and bytes that others
   would make room for */
static cudaError_t HybDeviceFreeBytes(size_t others, size_t *freebytes, size_t *total)
{
  HybDeviceState *d = &hybdevice_;
  size_t          f, t, ours = d->device_bytes + d->managed_bytes, limit = d->services.memory_limit;
  cudaError_t     err = cudaMemGetInfo(&f, &t);
  if (err != cudaSuccess) return err;
  const cudaMemPool_t pools[2] = {d->pool, d->managedpool};
  for (int p = 0; p < 2; p++) {
    uint64_t reserved = 0, used = 0;
    if (!pools[p]) continue;
    err = cudaMemPoolGetAttribute(pools[p], cudaMemPoolAttrReservedMemCurrent, &reserved);
    if (err == cudaSuccess) err = cudaMemPoolGetAttribute(pools[p], cudaMemPoolAttrUsedMemCurrent, &used);
    if (err != cudaSuccess) return err;
    if (reserved > used) f += (size_t)(reserved - used);
  }
  f += HybManagedKept() + others;
  if (f > t) f = t;
  if (limit && t > limit) t = limit;
  if (limit && f > (limit > ours ? limit - ours : 0)) f = limit > ours ? limit - ours : 0;
  *freebytes = f;
  *total     = t;
  return cudaSuccess;
}

bool HybDeviceSetUp(const HybServices *services, char *message, size_t length)
{
  HybDeviceState *d     = &hybdevice_;
  int             count = 0, value = 0;
  cudaError_t     err;
  size_t          f = 0, t = 0;

#define HybTry(expr)                                                                                        \
  do {                                                                                                      \
    err = HybDeviceFault(#expr) ? cudaErrorUnknown : (expr);                                                \
    if (err != cudaSuccess) {                                                                               \
      (void)cudaGetLastError();                                                                             \
      snprintf(message, length, "the CUDA device cannot be used: %s (%s)", cudaGetErrorString(err), #expr); \
      return false;                                                                                         \
    }                                                                                                       \
  } while (0)
  d->services = *services;
  if (!d->ready) {
    HybTry(cudaGetDeviceCount(&count));
    if (count < 1) {
      snprintf(message, length, "there is no CUDA device");
      return false;
    }
    if (services->device >= count) {
      snprintf(message, length, "device %d was asked for, there are %d", services->device, count);
      return false;
    }
    if (services->device >= 0)
      HybTry(cudaSetDevice(services->device));
    else if (services->device == -2)
      HybTry(cudaSetDevice(services->rank % count));
    HybTry(cudaGetDevice(&d->device));
    HybTry(cudaDeviceGetPCIBusId(d->bus, (int)sizeof(d->bus), d->device));
    HybTry(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->device));
    d->sharedperblock = (size_t)value;
    HybTry(cudaDeviceGetAttribute(&d->multiprocessors, cudaDevAttrMultiProcessorCount, d->device));
    HybTry(cudaDeviceGetAttribute(&d->level2, cudaDevAttrL2CacheSize, d->device));
    HybTry(cudaDeviceGetAttribute(&d->hostpointers, cudaDevAttrCanUseHostPointerForRegisteredMem, d->device));
    HybTry(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, d->device));
    if (!value) {
      snprintf(message, length, "device %d has no memory pools", d->device);
      return false;
    }
    cudaMemPoolProps props;
    memset(&props, 0, sizeof(props));
    props.allocType     = cudaMemAllocationTypePinned;
    props.handleTypes   = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id   = d->device;
    uint64_t keep       = UINT64_MAX;
    if (!d->pool) {
      HybTry(cudaMemPoolCreate(&d->pool, &props));
      HybTry(cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    }
#if CUDART_VERSION >= 13000
    HybTry(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, d->device));
    if (value && !d->managedpool) {
      props.allocType = cudaMemAllocationTypeManaged;
      /* an older driver under a newer toolkit has no such pools: mirror mode then, not an error */
      if (cudaMemPoolCreate(&d->managedpool, &props) == cudaSuccess)
        HybTry(cudaMemPoolSetAttribute(d->managedpool, cudaMemPoolAttrReleaseThreshold, &keep));
      else {
        (void)cudaGetLastError();
        d->managedpool = nullptr;
      }
    }
#endif
    d->ready   = true;
    d->devices = count;
  } else if (services->device >= 0 && services->device != d->device) {
    /* its pools, and what they hold, last as long as the process */
    snprintf(message, length, "device %d was asked for, this process uses device %d since an earlier PetscInitialize()", services->device, d->device);
    return false;
  } else
    HybTry(cudaSetDevice(d->device));
  d->managed = d->managedpool && !services->mirror;
  HybTry(HybDeviceFreeBytes(0, &f, &t));
  /* this node's processes: all on the card that is named, else dealt to the cards in turn. Where the turn would have
     given this one another card they were dealt in some other way, and any number of them may be on this one. */
  d->sharing = services->processes > 0 ? services->processes : 1;
  if (services->dealt && services->rank % d->devices == d->device) d->sharing = (d->sharing + d->devices - 1) / d->devices;
  /* the share is of what is free without us, so that a second set-up gives the same */
  d->managed_share = d->managed ? (size_t)(services->managed_fraction * (double)(f + d->managed_bytes) / d->sharing) : 0;
#undef HybTry
  {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    d->locked_share = pages > 0 && page > 0 ? (size_t)(services->locked_fraction * (double)pages * (double)page / (services->processes > 0 ? services->processes : 1)) : 0;
  }
  return true;
}

void HybDeviceCrew(void (*work)(void *job, size_t from, size_t to), void *job, size_t n, size_t unit, size_t bytes)
{
  const bool large = bytes >= HybCrewBytes;

  if (large) HybCrewBegin(hybdevice_.services.processes);
  HybCrewDo(work, job, n, unit);
  if (large) HybCrewEnd();
}

PetscErrorCode HybDeviceTouch(const HybExec *, void *ptr, size_t bytes)
{
  PetscFunctionBegin;
  if (bytes >= HybCrewBytes) HybCrewBegin(hybdevice_.services.processes);
  HybCrewTouch(ptr, bytes);
  if (bytes >= HybCrewBytes) HybCrewEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceAlloc(const HybExec *exec, HybMem mem, size_t bytes, void **ptr)
{
  HybDeviceState *d      = &hybdevice_;
  cudaStream_t    stream = HybDeviceOrder(exec);

  PetscFunctionBegin;
  *ptr = nullptr;
  PetscCall(HybDeviceEnter());
  PetscCheck(!HybDeviceFault("alloc"), PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the device: %zu bytes needed (made to fail by the fault hook)", bytes);
  if (mem == HYB_MEM_HOST) {
    PetscCall(PetscMalloc(bytes ? bytes : 1, ptr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (mem == HYB_MEM_LOCKED) {
    PetscCall(HybLockedAlloc(bytes ? bytes : 1, ptr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (mem == HYB_MEM_GROWING) {
    PetscCall(HybDeviceReserve(exec, bytes, ptr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (bytes == 0) bytes = 1;
  if (mem == HYB_MEM_MANAGED) {
    PetscCheck(d->managed, PETSC_COMM_SELF, PETSC_ERR_SUP, "Managed memory was asked for in mirror mode");
    PetscCheck(bytes <= d->managed_share && d->managed_bytes <= d->managed_share - bytes, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of managed memory: %zu bytes needed, %zu of this process's share of %zu are free", bytes,
               d->managed_share > d->managed_bytes ? d->managed_share - d->managed_bytes : (size_t)0, d->managed_share);
  }
  PetscCall(HybDeviceCheckLimit(bytes));
  const cudaMemPool_t pool  = mem == HYB_MEM_MANAGED ? d->managedpool : d->pool;
  const bool          large = mem == HYB_MEM_MANAGED && bytes >= HybManagedLarge;
  const char         *what  = large ? "cudaMallocManaged" : "cudaMallocFromPoolAsync";
  cudaError_t         err   = cudaSuccess;
  for (int attempt = 0;; attempt++) {
    err = cudaSuccess;
    if (large)
      PetscCall(HybManagedAlloc(bytes, stream, ptr, &err));
    else {
      if (mem == HYB_MEM_MANAGED) {
        uint64_t reserved = 0, used = 0;
        size_t   f = 0, t = 0;
        HybCallCUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
        HybCallCUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
        if (used + bytes > reserved) {
          HybCallCUDA(cudaMemGetInfo(&f, &t));
          if (used + bytes - reserved > f) err = cudaErrorMemoryAllocation;
        }
      }
      if (err == cudaSuccess) err = HybDeviceFault("cudaMallocFromPoolAsync") ? cudaErrorUnknown : cudaMallocFromPoolAsync(ptr, bytes, pool, stream);
    }
    if (err != cudaErrorMemoryAllocation) break;
    (void)cudaGetLastError();
    if (attempt) {
      bool any;

      PetscCall(HybSpareGiveBack(bytes, &any));
      if (!any) break;
    }
    PetscCall(HybDeviceTrim(stream));
  }
  if (err == cudaErrorMemoryAllocation) {
    size_t f = 0, t = 0;
    *ptr = nullptr;
    (void)cudaGetLastError();
    HybCallCUDA(HybDeviceFreeBytes(0, &f, &t));
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the device: %zu bytes needed, %zu of %zu free" HYB_MEMORY_HINT, bytes, f, t);
  }
  if (err != cudaSuccess) {
    *ptr = nullptr;
    PetscCall(HybDeviceError(err, what, __FILE__, __LINE__));
  }
  if (mem == HYB_MEM_MANAGED)
    HybCount(&d->managed_bytes, &d->managed_peak, bytes);
  else
    HybCount(&d->device_bytes, &d->device_peak, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceFree(const HybExec *exec, HybMem mem, size_t bytes, void *ptr)
{
  HybDeviceState *d = &hybdevice_;

  PetscFunctionBegin;
  if (!ptr) PetscFunctionReturn(PETSC_SUCCESS);
  if (mem == HYB_MEM_HOST) {
    PetscCall(PetscFree(ptr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (mem == HYB_MEM_GROWING) {
    PetscCall(HybDeviceUnreserve(exec, ptr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybDeviceEnter());
  if (bytes == 0) bytes = 1;
  if (mem == HYB_MEM_LOCKED) {
    PetscCall(HybLockedFree(bytes, ptr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybDeviceEarlyGone(ptr, bytes);
  /* given back before the fault hook is asked: a free that is made to fail is reported, but loses nothing */
  const cudaError_t err = mem == HYB_MEM_MANAGED && bytes >= HybManagedLarge && HybManagedFree(ptr, HybDeviceOrder(exec)) ? cudaSuccess : cudaFreeAsync(ptr, HybDeviceOrder(exec));
  if (err == cudaSuccess) {
    if (mem == HYB_MEM_MANAGED)
      d->managed_bytes -= bytes;
    else
      d->device_bytes -= bytes;
  } else
    PetscCall(HybDeviceError(err, "cudaFreeAsync", __FILE__, __LINE__));
  PetscCheck(!HybDeviceFault("cudaFreeAsync"), PETSC_COMM_SELF, PETSC_ERR_LIB, "cudaFreeAsync failed: made to fail by the fault hook");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybStageGet(int k)
{
  HybStage *stage = &stage_[k];

  PetscFunctionBegin;
  if (!stage->event) HybCallCUDA(cudaEventCreateWithFlags(&stage->event, cudaEventDisableTiming));
  if (stage->busy) {
    HybCallCUDA(cudaEventSynchronize(stage->event));
    stage->busy = false;
  }
  if (!stage->buffer) { /* large ones come together, and so do slots */
    const bool   large = k >= HYB_STAGE_LARGE && k < HYB_STAGE_FEW, slot = k >= HYB_STAGE_SLOT;
    const int    first = large ? HYB_STAGE_LARGE : slot ? HYB_STAGE_SLOT
                                                        : k;
    const int    n     = large ? HybStages : slot ? HybSlots
                                                  : 1;
    const size_t part  = large ? HybLargeChunk : slot               ? HybOwnBytes
                                               : k == HYB_STAGE_FEW ? HybFewBytes
                                                                    : HybSmallChunk;
    const size_t bytes = (size_t)n * part;
    char        *buffer;
    cudaError_t  err = cudaErrorUnknown;

    if (!HybDeviceFault("cudaHostRegister")) err = HybLockedMake(bytes, (void **)&buffer);
    if (err == cudaErrorNotSupported) { /* not every system registers memory */
      HybCallCUDA(cudaMallocHost((void **)&buffer, bytes));
      HybCountPinned(bytes, 0);
    } else
      PetscCall(HybDeviceError(err, "cudaHostRegister", __FILE__, __LINE__));
    for (int q = 0; q < n; q++) stage_[first + q].buffer = buffer + (size_t)q * part;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a copy to or from the buffer is in the stream */
static PetscErrorCode HybStageQueued(int k, cudaStream_t stream)
{
  PetscFunctionBegin;
  stage_[k].busy        = true;
  const cudaError_t err = HybDeviceFault("cudaEventRecord") ? cudaErrorUnknown : cudaEventRecord(stage_[k].event, stream);
  if (err != cudaSuccess) { /* nobody could wait for the copy, and the buffer will be used again */
    (void)cudaStreamSynchronize(stream);
    stage_[k].busy = false;
    PetscCall(HybDeviceError(err, "cudaEventRecord", __FILE__, __LINE__));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t HybStageChunk(size_t bytes)
{
  return bytes >= HybLargeCopy ? HybLargeChunk : HybSmallChunk;
}

/* the first of the buffers for such a copy: fresh pages are dear, and where there are large buffers, or soon will be,
   no others are made */
static int HybStageFirst(size_t bytes)
{
  const bool large = bytes >= HybLargeCopy || ((stage_[HYB_STAGE_LARGE].buffer || HybCrewAheadBytes()) && !stage_[HYB_STAGE_SMALL].buffer);

  return large ? HYB_STAGE_LARGE : HYB_STAGE_SMALL;
}

#if defined(HYB_EMULATOR) /* whose calls come from one thread */
  #define HybAheadThere nullptr
#else
/* by the thread that has made the buffers: they are registered, and the pool gets its first memory */
static int HybAheadThere(void *buffers, size_t bytes)
{
  HybDeviceState *d      = &hybdevice_;
  cudaStream_t    stream = nullptr;
  void           *memory = nullptr;

  if (cudaSetDevice(d->device) != cudaSuccess) return 0;
  const int registered = cudaHostRegister(buffers, bytes, cudaHostRegisterDefault) == cudaSuccess;
  if (expected_ && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) {
    if (cudaMallocFromPoolAsync(&memory, expected_, d->pool, stream) == cudaSuccess) (void)cudaFreeAsync(memory, stream);
    (void)cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
  }
  return registered;
}
#endif

/* what the pool will need, but no more than a part of what the card has free */
static size_t HybPoolExpects(size_t bytes)
{
  size_t f = 0, t = 0;

  if (hybdevice_.services.memory_limit) return 0;
  if (HybDeviceFreeBytes(0, &f, &t) != cudaSuccess) {
    (void)cudaGetLastError(); /* no launch's */
    return 0;
  }
  f /= 16 * (size_t)(hybdevice_.services.processes > 0 ? hybdevice_.services.processes : 1);
  return bytes < f ? bytes : f;
}

PetscErrorCode HybDeviceExpect(size_t bytes)
{
  PetscFunctionBegin;
  if (!bytes) PetscCall(HybDevicePrepare());
  if (bytes >= HybLargeCopy && !stage_[HYB_STAGE_LARGE].buffer && !HybCrewAheadBytes()) {
    static bool waits;

    PetscCall(HybDeviceEnter()); /* another card would be asked, and get a context */
    expected_ = HybPoolExpects(2 * bytes);
    HybCrewAhead(HybStages * HybLargeChunk, HybAheadThere);
    /* before CUDA's own handlers take the card away from that thread */
    if (!waits) waits = !std::atexit(HybCrewAheadWait);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first pieces are small: the bus has nothing to do until one of them is there, and the crew may still be waking */
static PetscErrorCode HybStagedToDevice(cudaStream_t stream, char *dst, const char *src, size_t bytes)
{
  static int   slot;
  const size_t chunk = HybStageChunk(bytes);
  size_t       most  = HybFirstChunk;

  PetscFunctionBegin;
  if (bytes < HybOwnBytes) {
    const int k = HYB_STAGE_SLOT + slot;

    PetscCall(HybStageGet(k));
    slot = (slot + 1) % HybSlots;
    memcpy(stage_[k].buffer, src, bytes);
    HybCallCUDA(cudaMemcpyAsync(dst, stage_[k].buffer, bytes, cudaMemcpyHostToDevice, stream));
    PetscCall(HybStageQueued(k, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t at = 0, turn = 0; at < bytes; turn = (turn + 1) % HybStages) {
    const size_t part = bytes - at < most ? bytes - at : most;
    const int    k    = HybStageFirst(bytes) + (int)turn;
    PetscCall(HybStageGet(k));
    HybCrewCopy(stage_[k].buffer, src + at, part);
    HybCallCUDA(cudaMemcpyAsync(dst + at, stage_[k].buffer, part, cudaMemcpyHostToDevice, stream));
    PetscCall(HybStageQueued(k, stream));
    at += part;
    most = 2 * most < chunk ? 2 * most : chunk;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to page-locked memory, without the copy engine, which would first have to hear that the kernels are done */
static __global__ __launch_bounds__(256) void HybFewToHost(int n, const unsigned *__restrict__ from, unsigned *__restrict__ to)
{
#if defined(HYB_EMULATOR)
  if (!threadIdx.x) emu::GoesToHost(from, n * sizeof(*from));
#endif
  for (int k = (int)threadIdx.x; k < n; k += 256) to[k] = from[k];
}

/* As many pieces as there are buffers are on their way, the oldest is copied on. through: of a chunk on the device,
   where src is managed memory whose pages shall not move */
static PetscErrorCode HybStagedToHost(cudaStream_t stream, char *dst, const char *src, size_t bytes, char *through)
{
  const size_t chunk = HybStageChunk(bytes);
  const int    first = HybStageFirst(bytes);
  size_t       asked = 0, done = 0;
  int          next = 0, oldest = 0; /* of the buffers from the first one on */

  PetscFunctionBegin;
  /* not behind a buffer whose copy to the device is still on its way */
  if (bytes <= HybFewBytes && !through) {
    PetscCall(HybStageGet(HYB_STAGE_FEW));
    if (hybdevice_.hostpointers && bytes <= HybFewestBytes && !((uintptr_t)src % sizeof(unsigned)) && bytes % sizeof(unsigned) == 0)
      HYB_LAUNCH(HybFewToHost, 1, 256, 0, stream, (int)(bytes / sizeof(unsigned)), (const unsigned *)src, (unsigned *)stage_[HYB_STAGE_FEW].buffer);
    else
      HybCallCUDA(cudaMemcpyAsync(stage_[HYB_STAGE_FEW].buffer, src, bytes, cudaMemcpyDeviceToHost, stream));
    HybCallCUDA(cudaStreamSynchronize(stream));
    memcpy(dst, stage_[HYB_STAGE_FEW].buffer, bytes);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  while (done < bytes) {
    for (; asked < bytes && asked < done + HybStages * chunk; asked += chunk, next = (next + 1) % HybStages) {
      const size_t part = bytes - asked < chunk ? bytes - asked : chunk;
      PetscCall(HybStageGet(first + next));
      if (through) HybCallCUDA(cudaMemcpyAsync(through, src + asked, part, cudaMemcpyDeviceToDevice, stream));
      HybCallCUDA(cudaMemcpyAsync(stage_[first + next].buffer, through ? through : src + asked, part, cudaMemcpyDeviceToHost, stream));
      PetscCall(HybStageQueued(first + next, stream));
    }
    const size_t part = bytes - done < chunk ? bytes - done : chunk;
    PetscCall(HybStageGet(first + oldest)); /* waits for it */
    HybCrewCopy(dst + done, stage_[first + oldest].buffer, part);
    done += part;
    oldest = (oldest + 1) % HybStages;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybStagedCopy(cudaStream_t stream, void *dst, const void *src, size_t bytes, HybCopyKind kind, bool managed)
{
  const size_t room = HybStageChunk(bytes), limit = hybdevice_.services.memory_limit, ours = hybdevice_.device_bytes + hybdevice_.managed_bytes;
  void        *through = nullptr;

  PetscFunctionBegin;
  if (kind == HYB_COPY_HOST_TO_DEVICE) {
    PetscCall(HybStagedToDevice(stream, (char *)dst, (const char *)src, bytes));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (managed && (!limit || (ours <= limit && room <= limit - ours)) && cudaMallocFromPoolAsync(&through, room, hybdevice_.pool, stream) != cudaSuccess) {
    (void)cudaGetLastError(); /* without the room its pages may move */
    through = nullptr;
  }
  if (through) HybCount(&hybdevice_.device_bytes, &hybdevice_.device_peak, room);
  const PetscErrorCode ierr = HybStagedToHost(stream, (char *)dst, (const char *)src, bytes, (char *)through);
  if (through) {
    hybdevice_.device_bytes -= room;
    HybCallCUDA(cudaFreeAsync(through, stream));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceCopy(const HybExec *exec, void *dst, const void *src, size_t bytes, HybCopyKind kind)
{
  cudaStream_t   stream  = (cudaStream_t)exec->stream;
  const bool     large   = bytes >= HybCrewBytes;
  bool           managed = false, pageable = false;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (bytes == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybDeviceEnter());
  if (kind == HYB_COPY_DEVICE_TO_DEVICE) {
    HybCallCUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (kind == HYB_COPY_HOST_TO_HOST) {
    if (large) HybCrewBegin(hybdevice_.services.processes);
    HybCrewCopy(dst, src, bytes);
    if (large) HybCrewEnd();
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (kind == HYB_COPY_DEVICE_TO_HOST) PetscCall(HybDeviceEarlyStream(src, &stream));
  /* a large block of pinned memory needs no staging */
  if (bytes > HybPinnedAsked || (kind == HYB_COPY_HOST_TO_DEVICE && bytes >= HybOwnBytes)) {
    cudaPointerAttributes at;
    HybCallCUDA(cudaPointerGetAttributes(&at, kind == HYB_COPY_HOST_TO_DEVICE ? src : dst));
    if (at.type == cudaMemoryTypeHost) {
      HybCallCUDA(cudaMemcpyAsync(dst, src, bytes, kind == HYB_COPY_HOST_TO_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream));
      HybCallCUDA(cudaStreamSynchronize(stream));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    pageable = at.type == cudaMemoryTypeUnregistered;
    if (kind == HYB_COPY_DEVICE_TO_HOST) {
      HybCallCUDA(cudaPointerGetAttributes(&at, src));
      managed = at.type == cudaMemoryTypeManaged;
    }
  }
  /* has read such memory when it returns, but not pinned or managed memory */
  if (kind == HYB_COPY_HOST_TO_DEVICE && pageable && !large) {
    HybCallCUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (large) HybCrewBegin(hybdevice_.services.processes);
  ierr = HybStagedCopy(stream, dst, src, bytes, kind, managed);
  if (large) HybCrewEnd();
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceZero(const HybExec *exec, void *dst, size_t bytes)
{
  PetscFunctionBegin;
  PetscCall(HybDeviceEnter());
  /* In the order of memory: an arena that was made with another stream clears what it has just taken. A phase that runs
     beside another has not this stream, and clears nothing so: what it starts would not wait for it. */
  PetscCheck(!hybdevice_.inuse || !HybDeviceIsSide((cudaStream_t)exec->stream), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Memory is cleared by work beside its own stream, which would not wait for that");
  if (bytes) HybCallCUDA(cudaMemsetAsync(dst, 0, bytes, HybDeviceOrder(exec)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceSync(const HybExec *exec)
{
  PetscFunctionBegin;
  PetscCall(HybDeviceEnter());
  HybCallCUDA(cudaStreamSynchronize((cudaStream_t)exec->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDevicePrefetch(const HybExec *exec, const void *ptr, size_t bytes, PetscBool todevice)
{
  PetscFunctionBegin;
#if CUDART_VERSION >= 13000
  PetscCall(HybDeviceEnter());
  if (hybdevice_.managed && bytes) {
    cudaMemLocation where;
    where.type = todevice ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
    where.id   = todevice ? hybdevice_.device : 0;
    HybCallCUDA(cudaMemPrefetchAsync(ptr, bytes, where, 0, (cudaStream_t)exec->stream));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceUse(void *stream)
{
  HybDeviceState *d = &hybdevice_;

  PetscFunctionBegin;
  /* all streams: the one before may be gone, its work need not be done */
  if (d->inuse && d->stream != (cudaStream_t)stream) HybCallCUDA(cudaDeviceSynchronize());
  d->inuse  = true;
  d->stream = (cudaStream_t)stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceUsage(HybMemoryReport *r, PetscBool restart)
{
  HybDeviceState *d = &hybdevice_;

  PetscFunctionBegin;
  memset(r, 0, sizeof(*r));
  r->device_bytes  = d->device_bytes;
  r->device_peak   = d->device_peak;
  r->managed_bytes = d->managed_bytes;
  r->managed_peak  = d->managed_peak;
  r->managed_share = d->managed_share;
  r->managed_kept  = HybManagedKept();
  r->pinned_bytes  = d->pinned_bytes;
  r->pinned_peak   = d->pinned_peak;
  r->locked_bytes  = d->locked_bytes;
  r->locked_share  = d->locked_share;
  r->since         = d->since;
  r->card          = d->device;
  r->cards         = d->devices;
  r->sharing       = d->sharing;
  memcpy(r->bus, d->bus, sizeof(r->bus));
  if (restart) d->since = d->device_bytes + d->managed_bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceMemory(HybMemoryReport *r)
{
  PetscFunctionBegin;
  PetscCall(HybDeviceUsage(r, PETSC_FALSE));
  PetscCall(HybDeviceEnter());
  HybCallCUDA(HybDeviceFreeBytes(0, &r->free_bytes, &r->total_bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other memory pushes managed memory of any process to the host: it is slow from there on, but so the card has room.
   What does not fit even then does not fit for certain. */
PetscErrorCode HybDeviceRoom(const HybExec *exec, size_t bytes, HybMemoryReport *r, PetscBool *fits)
{
  const HybDeviceState *d     = &hybdevice_;
  const size_t          limit = d->services.memory_limit, ours = d->device_bytes + d->managed_bytes;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  if (bytes < HybRoomAsked && (!limit || (ours <= limit && bytes <= limit - ours))) PetscFunctionReturn(PETSC_SUCCESS);
  for (int attempt = 0; attempt < 3; attempt++) {
    bool any;

    if (attempt == 1) {
      HybCrewAheadWait(); /* that thread may have the pool's memory in hand */
      PetscCall(HybDeviceTrim(HybDeviceOrder(exec)));
    }
    if (attempt == 2) PetscCall(HybSpareGiveBack(bytes, &any));
    PetscCall(HybDeviceUsage(r, PETSC_FALSE));
    PetscCall(HybDeviceEnter());
    HybCallCUDA(HybDeviceFreeBytes(d->managed_bytes + (size_t)(d->sharing - 1) * d->managed_share, &r->free_bytes, &r->total_bytes));
    *fits = (PetscBool)(bytes <= r->free_bytes);
    if (*fits || bytes > r->total_bytes) break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
