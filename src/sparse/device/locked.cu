/*
  locked.cu: page-locked memory of the host.

  Locking is dear: to register a block of 256 bytes, and to release it, takes longer than a message, and both may wait
  for the device. Every exchange between processes has such blocks, and a first product makes several exchanges. So
  blocks of up to HybLockedMost bytes are kept when they are given back, and go to the next who asks for one of their
  size; sizes are rounded up to four steps between powers of two. Larger ones, the values of host matrices, are released
  at once. Small ones, of which a first set-up asks for some dozens, are pieces of slabs of 2 MiB.

    alloc   a kept block of that size; else, of a small one, the first free pages of a slab that are enough, or of a new
            slab, if it may be kept and can be had; else fresh memory, in large pages if it is large, touched by all
            threads and registered
    free    kept, unless HybLockedSlots blocks are, HybLockedKeep bytes or a quarter of the process's share; else
            released. Pages of a slab are free
    trim    all kept ones and the slabs of which nothing is in use released: before the share of page-locked memory, or
            what the host has unused, makes an allocation fail

  Memory: what is in use stays within the process's share; what is kept counts as pinned. After a trim there may be
  slabs with a piece in use, whose other pages lie beyond the share: 16 MiB at most, all eight of them.
*/
#include "hybdevicestate.h"
#include "crew.h"
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static const size_t HybLargePage   = (size_t)2 << 20;
static const size_t HybLockedPage  = (size_t)4 << 10;
static const size_t HybLockedMost  = (size_t)16 << 20;
static const size_t HybLockedKeep  = (size_t)128 << 20;
static const int    HybLockedSlots = 128;

static const size_t HybSlabMost  = (size_t)256 << 10; /* of a piece */
static const int    HybSlabPages = (int)(HybLargePage / HybLockedPage);

static struct {
  void  *ptr[HybLockedSlots];
  size_t size[HybLockedSlots], bytes; /* all bytes that are locked and nobody's, of slabs too */
  int    n;
} kept_;

static struct {
  char *ptr;
  int   free; /* pages */
  bool  taken[HybSlabPages];
} slab_[8];

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
    const int k = --kept_.n;

    kept_.bytes -= kept_.size[k];
    ierr = HybErrorFirst(ierr, HybLockedRelease(kept_.ptr[k], kept_.size[k]));
  }
  for (auto &s : slab_) {
    if (!s.ptr || s.free < HybSlabPages) continue;
    ierr  = HybErrorFirst(ierr, HybLockedRelease(s.ptr, HybLargePage));
    s.ptr = nullptr;
    kept_.bytes -= HybLargePage;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* cudaMallocHost() makes the pages with one thread. Here the crew does, if it is at work, or
   somebody has ahead of time. */
cudaError_t HybLockedMake(size_t size, void **ptr)
{
  int         registered = 0;
  void       *p          = HybCrewAheadTake(size, &registered);
  cudaError_t err        = cudaSuccess;

  *ptr = nullptr;
  if (!p) {
    if (posix_memalign(&p, size < HybLargePage ? HybLockedPage : HybLargePage, size)) return cudaErrorMemoryAllocation;
    if (size >= HybLargePage) HybAskLargePages(p, size);
    HybCrewTouch(p, size); /* registering would do that with one thread */
  }
  if (!registered) err = cudaHostRegister(p, size, cudaHostRegisterDefault);
  if (err != cudaSuccess) {
    (void)cudaGetLastError(); /* the caller may do without */
    std::free(p);
    return err;
  }
  HybCountPinned(size, 0);
  *ptr = p;
  return cudaSuccess;
}

/* Memory that the system would have to take from somebody is not locked, whatever the share says */
static PetscErrorCode HybLockedFresh(size_t bytes, size_t size, void **ptr)
{
  HybDeviceState *d      = &hybdevice_;
  const long      page   = sysconf(_SC_PAGESIZE);
  long            unused = sysconf(_SC_AVPHYS_PAGES);
  cudaError_t     err    = cudaErrorUnknown;

  PetscFunctionBegin;
  if (kept_.bytes > 0 && (d->locked_bytes > d->locked_share || size + kept_.bytes > d->locked_share - d->locked_bytes || (unused > 0 && page > 0 && size / (size_t)page >= (size_t)unused))) {
    PetscCall(HybLockedTrim());
    unused = sysconf(_SC_AVPHYS_PAGES);
  }
  PetscCheck(bytes <= d->locked_share && d->locked_bytes <= d->locked_share - bytes, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of page-locked memory: %zu bytes needed, %zu of this process's share of %zu are free", bytes, d->locked_share > d->locked_bytes ? d->locked_share - d->locked_bytes : (size_t)0,
             d->locked_share);
  PetscCheck(unused > 0 && page > 0 && size / (size_t)page < (size_t)unused, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of page-locked memory: %zu bytes needed, the host has %ld pages free", bytes, unused);
  if (size >= HybCrewBytes) HybCrewBegin(d->services.processes);
  if (!HybDeviceFault("cudaHostRegister")) err = HybLockedMake(size, ptr);
  if (size >= HybCrewBytes) HybCrewEnd();
  PetscCheck(err != cudaErrorMemoryAllocation, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of page-locked memory: %zu bytes needed, which the host has not or cannot lock", size);
  PetscCall(HybDeviceError(err, "cudaHostRegister", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the first pages in a row, if there are any */
static void *HybSlabTake(int pages)
{
  for (auto &s : slab_)
    for (int k = 0, run = 0; s.ptr && pages <= s.free && k < HybSlabPages; k++) {
      run = s.taken[k] ? 0 : run + 1;
      if (run < pages) continue;
      for (int l = 0; l < pages; l++) s.taken[k - l] = true;
      s.free -= pages;
      kept_.bytes -= (size_t)pages * HybLockedPage;
      return s.ptr + (size_t)(k - pages + 1) * HybLockedPage;
    }
  return nullptr;
}

/* *given: it is a slab's */
static PetscErrorCode HybSlabGive(void *ptr, int pages, bool *given)
{
  PetscFunctionBegin;
  *given = false;
  for (auto &s : slab_) {
    const char *p = (const char *)ptr;
    if (!s.ptr || p < s.ptr || p >= s.ptr + HybLargePage) continue;
    const int first = (int)((size_t)(p - s.ptr) / HybLockedPage);
    for (int k = first; k < first + pages; k++) PetscCheck(k < HybSlabPages && s.taken[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Page %d of a slab is given back with a block of %d from page %d on, and is nobody's", k, pages, first);
    for (int k = first; k < first + pages; k++) s.taken[k] = false;
    s.free += pages;
    kept_.bytes += (size_t)pages * HybLockedPage;
    *given = true;
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nothing where there is no room for one that stays, or none can be had: then a block of its own does, if that can be
   had, and so the fault hook is asked there alone */
static void HybSlabMake(void)
{
  HybDeviceState *d      = &hybdevice_;
  const size_t    locked = PetscMin(d->locked_bytes, d->locked_share);
  const long      page = sysconf(_SC_PAGESIZE), unused = sysconf(_SC_AVPHYS_PAGES);
  void           *ptr = nullptr;

  if (kept_.bytes + HybLargePage > PetscMin(PetscMin(HybLockedKeep, d->locked_share / 4), d->locked_share - locked) || unused <= 0 || page <= 0 || HybLargePage / (size_t)page >= (size_t)unused) return;
  for (auto &s : slab_) {
    if (s.ptr) continue;
    if (HybLockedMake(HybLargePage, &ptr) != cudaSuccess) return;
    s.ptr  = (char *)ptr;
    s.free = HybSlabPages;
    memset(s.taken, 0, sizeof(s.taken));
    kept_.bytes += HybLargePage;
    return;
  }
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
  if (!*ptr && size <= HybSlabMost) {
    *ptr = HybSlabTake((int)(size / HybLockedPage));
    if (!*ptr) {
      HybSlabMake();
      *ptr = HybSlabTake((int)(size / HybLockedPage));
    }
  }
  if (!*ptr) PetscCall(HybLockedFresh(bytes, size, ptr));
  hybdevice_.locked_bytes += bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No copy is on its way: those between host and device have ended when they return */
PetscErrorCode HybLockedFree(size_t bytes, void *ptr)
{
  const size_t size = HybLockedSize(bytes);
  bool         given;

  PetscFunctionBegin;
  PetscCall(HybSlabGive(ptr, (int)(size / HybLockedPage), &given));
  hybdevice_.locked_bytes -= bytes;
  if (given) PetscFunctionReturn(PETSC_SUCCESS);
  if (size <= HybLockedMost && kept_.n < HybLockedSlots && kept_.bytes + size <= PetscMin(HybLockedKeep, hybdevice_.locked_share / 4)) {
    kept_.ptr[kept_.n]    = ptr;
    kept_.size[kept_.n++] = size;
    kept_.bytes += size;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybLockedRelease(ptr, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}
