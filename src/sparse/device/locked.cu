/*
  locked.cu: page-locked memory of the host.

  Locking is dear: a block of 256 bytes takes some 0.1 ms to be registered and as long to be released, and both may wait
  for the device. Every exchange between processes has such blocks, and a first product makes several exchanges. So
  blocks of up to HybLockedMost bytes are kept when they are given back, and go to the next who asks for one of their
  size; sizes are rounded up to four steps between powers of two. Larger ones, the values of host matrices, are released
  at once.

    alloc   a kept block of that size; else fresh memory, in large pages if it is large, touched by all threads and
            registered
    free    kept, unless HybLockedSlots blocks are, HybLockedKeep bytes or a quarter of the process's share; else
            released
    trim    all kept ones released: before the share of page-locked memory, or what the host has unused, makes an
            allocation fail

  Memory: what is in use stays within the process's share; what is kept counts as pinned.
*/
#include "hybdevicestate.h"
#include "crew.h"
#include <cstdlib>
#include <unistd.h>

static const size_t HybLargePage   = (size_t)2 << 20;
static const size_t HybLockedPage  = (size_t)4 << 10;
static const size_t HybLockedMost  = (size_t)16 << 20;
static const size_t HybLockedKeep  = (size_t)128 << 20;
static const int    HybLockedSlots = 128;

static struct {
  void  *ptr[HybLockedSlots];
  size_t size[HybLockedSlots], bytes;
  int    n;
} kept_;

PetscErrorCode HybDeviceLock(const HybExec *, void *ptr, size_t bytes, PetscBool on)
{
  PetscFunctionBegin;
  PetscCall(HybDeviceEnter());
  if (on) {
    HybCallCUDA(cudaHostRegister(ptr, bytes, cudaHostRegisterDefault));
    HybCountPinned(bytes, 0);
  } else { /* unlocked before the fault hook is asked, as memory is given back */
    const cudaError_t err = cudaHostUnregister(ptr);
    HybCountPinned(0, bytes);
    PetscCall(HybDeviceError(err, "cudaHostUnregister", __FILE__, __LINE__));
    PetscCheck(!HybDeviceFault("cudaHostUnregister"), PETSC_COMM_SELF, PETSC_ERR_LIB, "cudaHostUnregister failed: made to fail by the fault hook");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what a block for so many bytes has */
static size_t HybLockedSize(size_t bytes)
{
  size_t step = HybLockedPage;

  if (bytes > HybLockedMost) return bytes;
  while (8 * step < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

static PetscErrorCode HybLockedRelease(void *ptr, size_t size)
{
  PetscFunctionBegin;
  const cudaError_t err = cudaHostUnregister(ptr);
  std::free(ptr);
  HybCountPinned(0, size);
  PetscCall(HybDeviceError(err, "cudaHostUnregister", __FILE__, __LINE__));
  PetscCheck(!HybDeviceFault("cudaHostUnregister"), PETSC_COMM_SELF, PETSC_ERR_LIB, "cudaHostUnregister failed: made to fail by the fault hook");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybLockedTrim(void)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  while (kept_.n > 0) {
    const int            k     = --kept_.n;
    const PetscErrorCode later = HybLockedRelease(kept_.ptr[k], kept_.size[k]);

    kept_.bytes -= kept_.size[k];
    if (!ierr) ierr = later;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* cudaMallocHost() makes the pages with one thread: 16 MiB take it 6 ms. Here the crew does, if it is at work, or
   somebody has ahead of time. */
PetscErrorCode HybLockedMake(size_t size, void **ptr, cudaError_t *err)
{
  int   registered = 0;
  void *p          = HybCrewAheadTake(size, &registered);

  PetscFunctionBegin;
  *ptr = nullptr;
  if (!p) {
    PetscCheck(!posix_memalign(&p, size < HybLargePage ? HybLockedPage : HybLargePage, size), PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory: %zu bytes needed", size);
    if (size >= HybLargePage) HybAskLargePages(p, size);
    HybCrewTouch(p, size); /* registering would do that with one thread */
  }
  *err = HybDeviceFault("cudaHostRegister") ? cudaErrorUnknown : registered ? cudaSuccess
                                                                            : cudaHostRegister(p, size, cudaHostRegisterDefault);
  if (*err != cudaSuccess) {
    if (registered) (void)cudaHostUnregister(p);
    std::free(p);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybCountPinned(size, 0);
  *ptr = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory that the system would have to take from somebody is not locked, whatever the share says */
static PetscErrorCode HybLockedFresh(size_t bytes, size_t size, void **ptr)
{
  HybDeviceState *d      = &hybdevice_;
  const long      page   = sysconf(_SC_PAGESIZE);
  long            unused = sysconf(_SC_AVPHYS_PAGES);
  cudaError_t     err    = cudaSuccess;

  PetscFunctionBegin;
  if (kept_.n > 0 && (d->locked_bytes > d->locked_share || size + kept_.bytes > d->locked_share - d->locked_bytes || (unused > 0 && page > 0 && size / (size_t)page >= (size_t)unused))) {
    PetscCall(HybLockedTrim());
    unused = sysconf(_SC_AVPHYS_PAGES);
  }
  PetscCheck(bytes <= d->locked_share && d->locked_bytes <= d->locked_share - bytes, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of page-locked memory: %zu bytes needed, %zu of this process's share of %zu are free", bytes, d->locked_share > d->locked_bytes ? d->locked_share - d->locked_bytes : (size_t)0,
             d->locked_share);
  PetscCheck(unused > 0 && page > 0 && size / (size_t)page < (size_t)unused, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of page-locked memory: %zu bytes needed, the host has %ld pages free", bytes, unused);
  if (size >= HybCrewBytes) HybCrewBegin(d->services.processes);
  const PetscErrorCode ierr = HybLockedMake(size, ptr, &err);
  if (size >= HybCrewBytes) HybCrewEnd();
  PetscCall(ierr);
  PetscCall(HybDeviceError(err, "cudaHostRegister", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLockedAlloc(size_t bytes, void **ptr)
{
  const size_t size = HybLockedSize(bytes);

  PetscFunctionBegin;
  *ptr = nullptr;
  for (int k = kept_.n - 1; k >= 0 && !*ptr && size <= HybLockedMost; k--) {
    if (kept_.size[k] != size) continue;
    *ptr = kept_.ptr[k];
    kept_.bytes -= size;
    kept_.n--;
    kept_.ptr[k]  = kept_.ptr[kept_.n];
    kept_.size[k] = kept_.size[kept_.n];
  }
  if (!*ptr) PetscCall(HybLockedFresh(bytes, size, ptr));
  hybdevice_.locked_bytes += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No copy is on its way: those between host and device have ended when they return */
PetscErrorCode HybLockedFree(size_t bytes, void *ptr)
{
  const size_t size = HybLockedSize(bytes);

  PetscFunctionBegin;
  hybdevice_.locked_bytes -= bytes;
  if (size <= HybLockedMost && kept_.n < HybLockedSlots && kept_.bytes + size <= PetscMin(HybLockedKeep, hybdevice_.locked_share / 4)) {
    kept_.ptr[kept_.n]    = ptr;
    kept_.size[kept_.n++] = size;
    kept_.bytes += size;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybLockedRelease(ptr, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}
