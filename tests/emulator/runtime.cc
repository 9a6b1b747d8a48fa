/*
  runtime.cc: stand-ins for the entry points of CUDA's runtime, and of the few of its driver that map memory behind reserved addresses, over memory.cc.
*/
#include "memory.h"
#include <cuda.h>
#include <algorithm>
#include <chrono>
#include <sys/mman.h>
using namespace emu;

static std::map<char *, size_t> pinned_;
static size_t                   lockmost_ = SIZE_MAX;
static int                      endcaptures_;

static cudaError_t Set(cudaError_t e)
{
  if (e != cudaSuccess && e != cudaErrorNotReady) error_ = e;
  return e;
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
  Count("cudaMallocFromPoolAsync", bytes);
  EmuStream *s = Get(stream);
  Array     *a = New(bytes, pool, s);
  *p           = a ? a->ptr : nullptr;
  if (!a) return Set(cudaErrorMemoryAllocation);
  if (pool != &plain_[0] && pool != &plain_[1]) PoolTakes(pool, a->ptr, bytes);
  Operation *o = Queue(s, "cudaMallocFromPoolAsync", {}, {});
  a->born      = o->clock.at[s->number];
  if (a->managed) o->run = [a]() { Open(a); };
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t s)
{
  return cudaMallocFromPoolAsync(p, bytes, &plain_[0], s);
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
  Count("cudaFreeAsync");
  EmuStream *s = Get(stream);
  Array     *a = Find(p);
  if (!a || a->ptr != p) Fail("cudaFreeAsync of %p, which is no array's start", p);
  if (a->reserved) Fail("cudaFreeAsync of %s: cuMemAddressFree is for it", Name(a).c_str());
  if (a->freed || a->freeing) Fail("%s is freed twice", Name(a).c_str());
  Operation *o = Queue(s, "cudaFreeAsync", {}, {});
  if (!Before(a->stream, a->born, o->clock)) Fail("%s is freed on stream %d, which does not wait for its allocation on stream %d", Name(a).c_str(), s->number, a->stream);
  for (int t = 0; t < Streams; t++)
    if (!Before(t, a->last[t], o->clock)) Fail("%s is freed on stream %d while %s, queued on stream %d, uses it", Name(a).c_str(), s->number, a->user.c_str(), t);
  a->freeing = true;
  PoolGets(a->pool, a->ptr);
  a->pool->used -= a->bytes;
  if (a->managed) Share(a);
  o->run = [a]() { Retire(a); };
  return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
  Count("cudaFree");
  if (!p) return cudaSuccess;
  Start();
  DrainAll();
  if (Array *a = Find(p)) Unshare(a);
  cudaError_t e = cudaFreeAsync(p, nullptr);
  DrainAll();
  for (EmuPool &pool : plain_) pool.reserved = pool.used; /* no pool for the program: the card has it again */
  return e;
}

static cudaError_t MallocNow(void **p, size_t bytes, EmuPool *pool)
{
  cudaError_t e = cudaMallocFromPoolAsync(p, bytes, pool, nullptr);
  if (e == cudaSuccess) {
    Drain(stream_[0].clock);
    host_.Join(stream_[0].clock);
  }
  return e;
}
cudaError_t cudaMalloc(void **p, size_t bytes)
{
  Count("cudaMalloc", bytes);
  return MallocNow(p, bytes, &plain_[0]);
}
cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned)
{
  Count("cudaMallocManaged", bytes);
  plain_[1].managed = true;
  return MallocNow(p, bytes, &plain_[1]);
}
cudaError_t cudaMallocHost(void **p, size_t bytes)
{
  Count("cudaMallocHost", bytes);
  *p = calloc(bytes ? bytes : 1, 1);
  if (!*p) return Set(cudaErrorMemoryAllocation);
  emu::Repair(*p, bytes);
  pinned_[(char *)*p] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p)
{
  Count("cudaFreeHost");
  DrainAll();
  if (p && !pinned_.erase((char *)p)) return Set(cudaErrorInvalidValue);
  free(p);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned)
{
  Count("cudaHostRegister", bytes);
  if (bytes > lockmost_) return Set(cudaErrorMemoryAllocation);
  pinned_[(char *)p] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *p)
{
  Count("cudaHostUnregister");
  DrainAll();
  return Set(pinned_.erase((char *)p) ? cudaSuccess : cudaErrorInvalidValue);
}
static bool Pinned(const void *p)
{
  auto it = pinned_.upper_bound((char *)p);
  return it != pinned_.begin() && (--it, (const char *)p < it->first + it->second);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props)
{
  *pool = new EmuPool{props->allocType == cudaMemAllocationTypeManaged, 0, 0, 0, props->location.id};
  pools_.push_back(*pool);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr a, void *v)
{
  if (a == cudaMemPoolAttrReleaseThreshold) pool->threshold = (size_t) * (uint64_t *)v;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr a, void *v)
{
  Count("cudaMemPoolGetAttribute");
  *(uint64_t *)v = a == cudaMemPoolAttrReservedMemCurrent ? pool->reserved : a == cudaMemPoolAttrUsedMemCurrent ? pool->used : pool->threshold;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
  Count("cudaMemPoolTrimTo");
  pool->reserved = std::max(pool->used, std::min(pool->reserved, keep));
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *f, size_t *t)
{
  Count("cudaMemGetInfo");
  Start();
  size_t held = 0;
  for (const EmuPool *p : pools_)
    if (p->card == card_) held += std::max(p->reserved, p->used);
  *t = total_;
  *f = total_ > held ? total_ - held : 0;
  return cudaSuccess;
}

/* Copies. Pageable host memory is read at once, and a copy to it is waited for, as CUDA does; pinned memory is touched when the operation runs. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
  EmuStream            *s = Get(stream);
  std::vector<emu::Use> uses;
  const bool            fromdevice = Find(src) != nullptr, todevice = Find(dst) != nullptr;
  if (!bytes) return cudaSuccess;
  if ((kind == cudaMemcpyHostToDevice && !todevice) || (kind == cudaMemcpyDeviceToHost && !fromdevice) || (kind == cudaMemcpyDeviceToDevice && !(fromdevice && todevice))) Fail("cudaMemcpy: kind %d, but source and destination are %s and %s memory", (int)kind, fromdevice ? "device" : "host", todevice ? "device" : "host");
  if (fromdevice) uses.push_back(emu::Use{src, bytes, false});
  if (todevice) uses.push_back(emu::Use{dst, bytes, true});
  std::vector<char> early;
  if (s->graph && !(fromdevice && todevice)) Fail("a copy between host and device on a stream that is being captured");
  if (!fromdevice && !Pinned(src)) early.assign((const char *)src, (const char *)src + bytes);
  const bool  copied = !early.empty();
  if (fromdevice && !todevice) bytes_to_host_ += bytes;
  if (todevice && !fromdevice) bytes_to_device_ += bytes;
  const char *what   = kind == cudaMemcpyHostToDevice ? "cudaMemcpyAsync to the device" : todevice ? "cudaMemcpyAsync on the device" : "cudaMemcpyAsync to the host";
  Count(what, bytes);
  (void)Queue(s, what, std::move(uses), [=, early = std::move(early)]() {
    size_t at;
    if (fromdevice && !todevice && emu::Unwritten(src, bytes, &at)) Fail("%zu bytes are copied to the host from byte %td of %s, but byte %zu of them was never written", bytes, (const char *)src - Find(src)->ptr, Name(Find(src)).c_str(), at);
    memmove(dst, copied ? early.data() : src, bytes);
  });
  if (!todevice && !Pinned(dst)) {
    Drain(s->clock);
    host_.Join(s->clock);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
  cudaError_t e = cudaMemcpyAsync(dst, src, bytes, kind, nullptr);
  return e ? e : cudaStreamSynchronize(nullptr);
}
cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t s)
{
  Count("cudaMemsetAsync", bytes);
  if (bytes) (void)Queue(Get(s), "cudaMemsetAsync", {emu::Use{dst, bytes, true}}, [=]() { memset(dst, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void *p, size_t bytes, cudaMemLocation, unsigned, cudaStream_t s)
{
  Count("cudaMemPrefetchAsync", bytes);
  Array *a = Find(p);
  if (!a || !a->managed) return Set(cudaErrorInvalidValue);
  Operation *o = Queue(Get(s), "cudaMemPrefetchAsync", {emu::Use{p, bytes, false}}, {});
  a->reads--; /* moves pages, forbids the host nothing */
  o->uses.clear();
  o->arrays.clear();
  Share(a);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *at, const void *p)
{
  Count("cudaPointerGetAttributes");
  const Array *a = Find(p);
  memset(at, 0, sizeof(*at));
  at->type          = a ? (a->managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice) : Pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  at->devicePointer = (void *)p;
  return cudaSuccess;
}

/* Streams and events */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
  Count("cudaStreamCreateWithFlags");
  Start();
  for (int k = 1; k < Streams; k++)
    if (!taken_[k]) {
      taken_[k]           = true;
      stream_[k].card     = card_;
      stream_[k].blocking = !(flags & cudaStreamNonBlocking);
      *s                  = &stream_[k];
      return cudaSuccess;
    }
  return Set(cudaErrorMemoryAllocation);
}
cudaError_t cudaStreamCreate(cudaStream_t *s)
{
  return cudaStreamCreateWithFlags(s, 0);
}
/* whose turn it is is left to the seed */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int)
{
  Count("cudaStreamCreateWithPriority");
  return cudaStreamCreateWithFlags(s, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
  *least    = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  Count("cudaStreamSynchronize");
  EmuStream *s = Get(stream);
  if (s->graph) Fail("cudaStreamSynchronize of a stream that is being captured");
  Legacy(s, true);
  const Clock c = s->clock;
  Drain(c);
  host_.Join(c);
  return cudaSuccess;
}
/* Graphs: what a stream is given while it is captured is looked at and done when the graph is launched, each time anew.
   A stream that waits for an event of the capture is captured as well, and has to be waited for before the end. */
enum { Runs, Records, Waits };
static void Turn(EmuStream *s, int turn, int slot)
{
  const bool open = s->graph->open[s->branch];
  Operation *o    = Queue(s, "an event", {}, [] {});

  o->turn                   = turn ? Waits : Records;
  o->slot                   = slot;
  s->graph->open[s->branch] = open;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
  EmuStream *s = Get(stream);
  if (!s->number || s->graph) return Set(cudaErrorStreamCaptureUnsupported);
  s->graph  = new EmuGraph();
  s->branch = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
  Count("cudaStreamEndCapture");
  EmuStream *s = Get(stream);
  bool open    = false;
  *graph       = s->graph;
  for (int k = 1; *graph && k <= (*graph)->branches; k++) open = open || (*graph)->open[k];
  for (EmuStream &other : stream_)
    if (*graph && other.graph == *graph) other.graph = nullptr;
  if (open) {
    delete *graph;
    *graph = nullptr;
    return Set(cudaErrorStreamCaptureUnjoined);
  }
  if (*graph && endcaptures_ > 0) {
    endcaptures_--;
    delete *graph;
    *graph = nullptr;
    return Set(cudaErrorStreamCaptureInvalidated);
  }
  return *graph ? cudaSuccess : Set(cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
  *status = Get(stream)->graph ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
  Count("cudaGraphInstantiate");
  *exec = new EmuGraph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
  Count("cudaGraphExecDestroy");
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
  Count("cudaGraphLaunch");
  static cudaStream_t branch[EMU_BRANCHES]; /* the first is not used */
  std::vector<Clock>  at((size_t)exec->slots);
  for (const Operation &g : exec->operations) {
    EmuStream *s = Get(stream);
    if (g.branch && !branch[g.branch]) (void)cudaStreamCreateWithFlags(&branch[g.branch], cudaStreamNonBlocking);
    if (g.branch) {
      s       = Get(branch[g.branch]);
      s->card = Get(stream)->number ? Get(stream)->card : card_;
    }
    if (g.turn == Records) at[(size_t)g.slot] = s->clock;
    if (g.turn == Waits) s->clock.Join(at[(size_t)g.slot]);
    if (g.turn != Runs) continue;
    std::vector<emu::Use> uses = g.uses;
    std::function<void()> run  = g.run;
    Operation            *o    = Queue(s, g.what.c_str(), std::move(uses), std::move(run));
    o->kernel  = g.kernel;
    o->file    = g.file;
    o->line    = g.line;
    o->grid    = g.grid;
    o->block   = g.block;
    o->dynamic = g.dynamic;
  }
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned)
{
  Count("cudaStreamWaitEvent");
  EmuStream *s = Get(stream);
  if (e->graph) {
    bool captured = false;
    for (const EmuStream &other : stream_) captured = captured || other.graph == e->graph;
    if (!captured) Fail("a stream waits for an event of a capture that has ended");
    if (!s->graph) {
      if (e->graph->branches + 1 == EMU_BRANCHES) Fail("a graph with more than %d streams", EMU_BRANCHES);
      s->graph  = e->graph;
      s->branch = ++e->graph->branches;
    }
    if (s->graph != e->graph) Fail("a stream waits for an event of another capture");
    if (s->branch != e->branch) e->graph->open[e->branch] = false;
    Turn(s, 1, e->slot);
    return cudaSuccess;
  }
  if (s->graph) Fail("a stream that is being captured waits for an event that is not");
  s->clock.Join(e->clock);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, void (*f)(void *), void *data)
{
  Count("cudaLaunchHostFunc");
  (void)Queue(Get(s), "cudaLaunchHostFunc", {}, [=]() { f(data); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
  Count("cudaEventCreateWithFlags");
  *e           = new EmuEvent();
  (*e)->timing = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e)
{
  return cudaEventCreateWithFlags(e, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
  Count("cudaEventDestroy");
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
  Count("cudaEventRecord");
  EmuStream *s = Get(stream);
  e->graph     = s->graph;
  if (s->graph) {
    e->branch = s->branch;
    e->slot   = s->graph->slots++;
    Turn(s, 0, e->slot);
    return cudaSuccess;
  }
  Legacy(s, true);
  if (e->timing) {
    const std::shared_ptr<double> passed = std::make_shared<double>(0.0);

    e->passed = passed;
    (void)Queue(s, "cudaEventRecord", {}, [=]() { *passed = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); });
  }
  e->clock = s->clock;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
  Count("cudaEventSynchronize");
  const Clock c = e->clock;
  Start();
  Drain(c);
  host_.Join(c);
  return cudaSuccess;
}
/* of those with timing */
cudaError_t cudaEventQuery(cudaEvent_t e)
{
  Count("cudaEventQuery");
  if (!e->timing) return Set(cudaErrorInvalidValue);
  return e->passed && *e->passed == 0 ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
  if (!from->passed || !to->passed) return Set(cudaErrorInvalidValue);
  if (*from->passed == 0 || *to->passed == 0) return cudaErrorNotReady;
  *milliseconds = (float)(1e3 * (*to->passed - *from->passed));
  return cudaSuccess;
}
/* The device */
const char *cudaGetErrorString(cudaError_t e)
{
  return e == cudaSuccess ? "no error" : e == cudaErrorMemoryAllocation ? "out of memory" : e == cudaErrorInvalidValue ? "invalid argument" : e == cudaErrorInvalidConfiguration ? "invalid configuration argument" : e == cudaErrorInsufficientDriver ? "CUDA driver version is insufficient for CUDA runtime version" : "unknown error";
}
cudaError_t cudaGetLastError(void)
{
  const cudaError_t e = error_;
  error_              = cudaSuccess;
  return e;
}
cudaError_t cudaGetDeviceCount(int *n)
{
  const char *driver = getenv("HYB_EMULATOR_DRIVER"); /* its version, like CUDART_VERSION; 0: there is none, which CUDA tells in the same way */
  if (driver && atoi(driver) < CUDART_VERSION) return Set(cudaErrorInsufficientDriver);
  *n = Cards();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *d)
{
  *d = card_;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d)
{
  if (d < 0 || d >= Cards()) return Set(cudaErrorInvalidDevice);
  Watch();
  card_ = d;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int d)
{
  if (d < 0 || d >= Cards()) return Set(cudaErrorInvalidDevice);
  snprintf(id, (size_t)length, "0000:%02x:00.0", d + 1);
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *v)
{
  *v = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int)
{
  switch (a) {
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *v = 48 * 1024;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *v = 227 * 1024;
    break;
  case cudaDevAttrMultiProcessorCount:
    *v = 2;
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *v = 9;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *v = 0;
    break;
  case cudaDevAttrL2CacheSize:
    *v = 1 << 20;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *v = 2048;
    break;
  default:
    *v = 1;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void)
{
  Count("cudaDeviceSynchronize");
  Start();
  DrainAll();
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute a, int v)
{
  Count("cudaFuncSetAttribute");
  if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (v < 0 || v > 227 * 1024) return Set(cudaErrorInvalidValue);
    dynamic_limit_[kernel] = v;
  }
  return cudaSuccess;
}
/*
  Virtual memory management. A range is an array that has as many bytes as are mapped and may be accessed: memory is mapped behind what is mapped, and
  taken away as a whole. None of this is done in stream order, so the host must have waited for all work that uses the range before it takes memory away.
*/
static const size_t Granule = 16 * Page;
struct Handle {
  size_t bytes;
  bool   mapped, released;
};
static CUresult Range(CUdeviceptr p, size_t bytes, const char *what, Array **a)
{
  *a = Find((const void *)p);
  if (!*a || !(*a)->reserved || (*a)->freed) Fail("%s of %p, which is in no reserved range", what, (void *)p);
  return p % Granule == (uintptr_t)(*a)->ptr % Granule && bytes % Granule == 0 && bytes && (const char *)p + bytes <= (*a)->ptr + (*a)->reserved ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
/* nothing queued uses it */
static void Idle(Array *a, const char *what)
{
  for (int t = 0; t < Streams; t++)
    if (!Before(t, a->last[t], host_)) Fail("%s of %s while %s, queued on stream %d, uses it", what, Name(a).c_str(), a->user.c_str(), t);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *, CUmemAllocationGranularity_flags)
{
  *bytes = Granule;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t, CUdeviceptr, unsigned long long)
{
  Count("cuMemAddressReserve");
  Array *a = bytes && bytes % Granule == 0 ? NewRange(bytes) : nullptr;
  *p       = (CUdeviceptr)(a ? a->ptr : nullptr);
  return a ? CUDA_SUCCESS : bytes % Granule ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes)
{
  Count("cuMemAddressFree");
  Array         *a;
  const CUresult e = Range(p, bytes, "cuMemAddressFree", &a);
  if (e) return e;
  if ((char *)p != a->ptr || bytes != a->reserved) return CUDA_ERROR_INVALID_VALUE;
  if (a->mapped) Fail("cuMemAddressFree of %s: it has memory still", Name(a).c_str());
  Retire(a);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t bytes, const CUmemAllocationProp *, unsigned long long)
{
  Count("cuMemCreate", bytes);
  size_t f, t;
  if (!bytes || bytes % Granule) return CUDA_ERROR_INVALID_VALUE;
  (void)cudaMemGetInfo(&f, &t);
  if (bytes > f) return CUDA_ERROR_OUT_OF_MEMORY;
  plain_[0].used += bytes;
  *h = (CUmemGenericAllocationHandle) new Handle{bytes, false, false};
  return CUDA_SUCCESS;
}
static void Drop(Handle *h)
{
  if (h->mapped || !h->released) return;
  plain_[0].used -= h->bytes;
  delete h;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
  Count("cuMemRelease");
  Handle *h = (Handle *)handle;
  if (h->released) Fail("cuMemRelease of one handle twice");
  h->released = true;
  Drop(h);
  return CUDA_SUCCESS;
}
static std::map<Array *, std::vector<Handle *>> behind_;
CUresult                                        cuMemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long)
{
  Count("cuMemMap", bytes);
  Array         *a;
  Handle        *h = (Handle *)handle;
  const CUresult e = Range(p, bytes, "cuMemMap", &a);
  if (e) return e;
  if (offset || bytes != h->bytes || h->mapped) return CUDA_ERROR_INVALID_VALUE;
  if ((char *)p != a->ptr + a->mapped) Fail("cuMemMap at byte %td of %s, where %zu bytes are mapped: the emulator maps behind them alone", (char *)p - a->ptr, Name(a).c_str(), a->mapped);
  h->mapped = true;
  a->mapped += bytes;
  behind_[a].push_back(h);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t n)
{
  Count("cuMemSetAccess");
  Array         *a;
  const CUresult e = Range(p, bytes, "cuMemSetAccess", &a);
  if (e) return e;
  if (n != 1 || desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE || (char *)p > a->ptr + a->bytes || (char *)p + bytes > a->ptr + a->mapped) return CUDA_ERROR_INVALID_VALUE;
  a->bytes = a->room = std::max(a->bytes, (size_t)((char *)p + bytes - a->ptr));
  free(a->shadow); /* the race detector's, sized for fewer bytes; what it knows ends with each kernel */
  a->shadow = nullptr;
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr p, size_t bytes)
{
  Count("cuMemUnmap");
  Array         *a;
  const CUresult e = Range(p, bytes, "cuMemUnmap", &a);
  if (e) return e;
  if ((char *)p != a->ptr || bytes != a->mapped) return CUDA_ERROR_INVALID_VALUE;
  Idle(a, "cuMemUnmap");
  Protect(a, PROT_NONE);
  if (a->room) (void)madvise(a->ptr, a->room, MADV_DONTNEED);
  for (Handle *h : behind_[a]) {
    h->mapped = false;
    Drop(h);
  }
  behind_.erase(a);
  a->bytes = a->room = a->mapped = a->poisoned = 0;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult e, const char **text)
{
  *text = e == CUDA_SUCCESS ? "no error" : e == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "invalid argument";
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *result)
{
  static const struct {
    const char *name;
    void       *function;
  } all[] = {
    {"cuMemGetAllocationGranularity", (void *)cuMemGetAllocationGranularity},
    {"cuMemAddressReserve",           (void *)cuMemAddressReserve          },
    {"cuMemAddressFree",              (void *)cuMemAddressFree             },
    {"cuMemCreate",                   (void *)cuMemCreate                  },
    {"cuMemRelease",                  (void *)cuMemRelease                 },
    {"cuMemMap",                      (void *)cuMemMap                     },
    {"cuMemSetAccess",                (void *)cuMemSetAccess               },
    {"cuMemUnmap",                    (void *)cuMemUnmap                   },
    {"cuGetErrorString",              (void *)cuGetErrorString             }
  };
  *function = nullptr;
  for (const auto &f : all)
    if (!strcmp(f.name, symbol)) *function = f.function;
  *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

/* For tests of work on several streams, which the rooms get from their caller */
extern "C" __attribute__((visibility("default"))) void *HybEmulatorStream(void)
{
  cudaStream_t s = nullptr;
  return cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess ? (void *)s : nullptr;
}

/* No more bytes than these can be locked at once: on a host whose limit is low (ulimit -l), or whose memory is short */
extern "C" __attribute__((visibility("default"))) void HybEmulatorLockMost(size_t bytes)
{
  lockmost_ = bytes;
}

/* The next captures are ended by something that another thread does */
extern "C" __attribute__((visibility("default"))) void HybEmulatorEndCaptures(int n)
{
  endcaptures_ = n;
}

/* For an MPI that is GPU-aware (tests/harness/gpuaware.h): does this memory belong to a card? Then it may be handed on if other processes can map it and
   nothing that is queued uses it. tocard: 1: host's bytes go there, 0: they come from there, -1: neither. */
extern "C" __attribute__((visibility("default"))) int HybEmulatorMessage(void *card, void *host, size_t bytes, int tocard)
{
  Array *a = Find(card);
  if (!a || a->managed) return 0;
  if (a->freed || a->freeing) Fail("MPI is given %s after it was freed", Name(a).c_str());
  if (a->pool != &plain_[0]) Fail("MPI is given %s, which is memory of a pool: other processes cannot map it", Name(a).c_str());
  if ((char *)card + bytes > a->ptr + a->bytes) Fail("MPI is given %zu bytes of %s, which are too many", bytes, Name(a).c_str());
  Idle(a, "a message");
  if (tocard < 0) return 1;
  Open(a);
  memcpy(tocard ? card : host, tocard ? host : card, bytes);
  CloseAll();
  return 1;
}
