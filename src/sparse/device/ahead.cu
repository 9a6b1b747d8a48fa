/*
  ahead.cu: what the first operations of a process would wait for, done by one more thread meanwhile.

  CUDA loads a kernel when it is first asked for (lazy loading), and with the first one of a file what the file has in
  common, which takes twenty times as long. All that is the process's and not a matrix's, so it is done as soon as the
  process is known to use the card, which is often while the host still assembles.

    Prepare:   a thread: for one kernel of each file of this library, in the order of conf/cuda.mk: ask for its
                         attributes, which loads it
                         a small page-locked block, which stays: the driver cuts such blocks from a larger one, which
                         takes long to allocate and goes with the last of them; PETSc has one for each small vector
    at exit:   stop after the kernel at hand, join

  A call of the thread's may end a capture of a graph that is under way, so that neither begins while the other goes on.

  Loading holds what launches need, so that one that meets it takes up to some milliseconds: nothing is loaded that the
  process may do without. While the process launches
  kernels for the first time it would load them itself: the thread goes on beside it. Once it repeats what it has done
  before, the thread waits until the card has had nothing to do for a while, or until another new kernel comes.

  The thread calls CUDA alone, whose calls may come from any thread, and shares with others nothing but the word that
  stops it. It asks no fault hook and reports no error: who needs what failed here tries again, and says so. It ends
  before the process's handlers at exit are done: CUDA's own would take the card away from it.

  The kernels are those that the compiler's code tells CUDA of when the library is opened, and launches are its calls
  too: the linker leads both through here (--wrap in conf/cuda.mk). Files that few processes need, each of which holds
  the others up, are not loaded ahead: they tell CUDA by __wrap_lazy_cudaRegisterFunction() (CUDA_LAZY there). The
  emulator has none: there the thread waits for its end. Figures: docs/tried.md, Thresholds.
*/
#include "hybdevicestate.h"
#include <atomic>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static struct {
  pid_t     process; /* whose thread it is, or was; 0: none was asked for */
  pthread_t thread;
  sem_t     stop; /* raised when it is to end */
} ahead_;

static bool AheadStops(void)
{
  int raised = 0;

  return sem_getvalue(&ahead_.stop, &raised) || raised > 0;
}

#if !defined(HYB_EMULATOR)
/* the first kernel of each file */
static struct {
  int         n;
  const void *kernel[256];
  void      **file;
} first_;

extern "C" void __real___cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *);
extern "C" void __wrap_lazy_cudaRegisterFunction(void **file, const char *kernel, char *device, const char *name, int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
  __real___cudaRegisterFunction(file, kernel, device, name, limit, tid, bid, block, grid, warp);
}

extern "C" void __wrap___cudaRegisterFunction(void **file, const char *kernel, char *device, const char *name, int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
  if (file != first_.file && first_.n < (int)(sizeof(first_.kernel) / sizeof(first_.kernel[0]))) first_.kernel[first_.n++] = kernel;
  first_.file = file;
  __real___cudaRegisterFunction(file, kernel, device, name, limit, tid, bid, block, grid, warp);
}

/* Launches so far, and how many there had been when a kernel was last launched for the first time. The host's thread
   writes, ahead's reads: a number that is a little old does no harm. */
static std::atomic<unsigned> launches_, newest_;

static void AheadLaunch(const void *kernel)
{
  static const void *seen[8192];
  const unsigned     n = launches_.load(std::memory_order_relaxed) + 1;
  size_t             k = (size_t)(((uintptr_t)kernel >> 4) * 0x9e3779b97f4a7c15ull >> 51) % 8192;

  launches_.store(n, std::memory_order_relaxed);
  for (int tries = 0; tries < 16 && seen[k] != kernel; tries++, k = (k + 1) % 8192) {
    if (seen[k]) continue;
    seen[k] = kernel;
    newest_.store(n, std::memory_order_relaxed);
    return;
  }
}

extern "C" cudaError_t __real_cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
extern "C" cudaError_t __wrap_cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
  AheadLaunch(kernel);
  return __real_cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

extern "C" cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **);
extern "C" cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **args)
{
  AheadLaunch(kernel);
  return __real_cudaLaunchKernelExC(config, kernel, args);
}

  #if CUDART_VERSION >= 13000
extern "C" cudaError_t __real___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
extern "C" cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
  AheadLaunch((const void *)kernel);
  return __real___cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
  #endif

/* held by the thread during a call, and by a capture */
static pthread_mutex_t calls_ = PTHREAD_MUTEX_INITIALIZER;

extern "C" cudaError_t __real_cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
extern "C" cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
  (void)pthread_mutex_lock(&calls_);
  const cudaError_t err = __real_cudaStreamBeginCapture(stream, mode);

  if (err != cudaSuccess) (void)pthread_mutex_unlock(&calls_);
  return err;
}

extern "C" cudaError_t __real_cudaStreamEndCapture(cudaStream_t, cudaGraph_t *);
extern "C" cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
  const cudaError_t err = __real_cudaStreamEndCapture(stream, graph);

  (void)pthread_mutex_unlock(&calls_);
  return err;
}

/* a graph of launches: none of them is new */
extern "C" cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
extern "C" cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
  launches_.store(launches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return __real_cudaGraphLaunch(graph, stream);
}

/* Waits until there is nobody whom a call would hold up, and takes the mutex; false: the thread is to end */
static bool AheadMay(void)
{
  const unsigned  again = 8; /* launches without a new kernel: the process repeats what it has done */
  const int       idle  = 5; /* looks, 100 us apart, without a launch */
  static unsigned last;
  static int      quiet;

  while (!AheadStops()) {
    const unsigned n = launches_.load(std::memory_order_relaxed);

    if (n != last) quiet = 0;
    last = n;
    /* not a lock that waits: a process may end within a capture, and waits for this thread */
    if ((quiet >= idle || n - newest_.load(std::memory_order_relaxed) < again) && !pthread_mutex_trylock(&calls_)) return true;
    quiet++;
    usleep(100);
  }
  return false;
}

static void AheadDone(void)
{
  (void)pthread_mutex_unlock(&calls_);
}

static void AheadWork(void)
{
  void *locked = nullptr;

  if (cudaSetDevice(hybdevice_.device) != cudaSuccess) return;
  for (int k = 0; k < first_.n; k++) {
    cudaFuncAttributes attributes;

    if (!AheadMay()) return;
    (void)cudaFuncGetAttributes(&attributes, first_.kernel[k]);
    AheadDone();
  }
  if (!AheadMay()) return;
  (void)cudaMallocHost(&locked, 64);
  AheadDone();
}
#else
static void AheadWork(void)
{
  while (!AheadStops()) usleep(1000); /* for the tests of its end */
}
#endif

static void *AheadRun(void *)
{
  AheadWork();
  return nullptr;
}

static void AheadEnd(void)
{
  if (ahead_.process != getpid()) return; /* a child that was forked has no such thread */
  (void)sem_post(&ahead_.stop);
  (void)pthread_join(ahead_.thread, nullptr);
}

PetscErrorCode HybDevicePrepare(void)
{
  cpu_set_t cores;
  sigset_t  all, before;

  PetscFunctionBegin;
  if (ahead_.process || sched_getaffinity(0, sizeof(cores), &cores) || CPU_COUNT(&cores) < 2 || sem_init(&ahead_.stop, 0, 0)) PetscFunctionReturn(PETSC_SUCCESS);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  if (!pthread_create(&ahead_.thread, nullptr, AheadRun, nullptr)) {
    ahead_.process = getpid();
    (void)std::atexit(AheadEnd);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
