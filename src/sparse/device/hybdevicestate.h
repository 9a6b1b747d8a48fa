/*
  hybdevicestate.h: what the files of the device room share: the state of this process's use of one card.
*/
#ifndef AIJHYBRIDGPU_HYBDEVICESTATE_H
#define AIJHYBRIDGPU_HYBDEVICESTATE_H
#include "hybdevice.cuh"

struct HybDeviceState {
  HybServices   services;
  bool          ready;
  int           device, devices; /* ours, of how many */
  int           sharing;         /* processes that may be on it */
  bool          managed;         /* managed memory may be used: concurrent access, CUDA 13, not mirror mode */
  bool          inuse;
  cudaStream_t  stream; /* in whose order memory is taken and given back, if inuse; else that of each call */
  cudaMemPool_t pool, managedpool;
  size_t        device_bytes, device_peak, managed_bytes, managed_peak, managed_share, pinned_bytes, pinned_peak, locked_bytes, locked_share, since;
  size_t        sharedperblock;
  char          bus[24]; /* the card's place on the bus */
  int           multiprocessors;
  int           level2;       /* bytes of the second-level cache */
  int           hostpointers; /* kernels know page-locked memory by the address that the host has for it */
};
extern HybDeviceState hybdevice_;
/* state.cu: the thread's card becomes ours */
extern PetscErrorCode HybDeviceEnter(void);
/* from this size on the crew is faster than CUDA's way from pageable memory; pages to be touched as well */
static const size_t HybCrewBytes = (size_t)6 << 20;

/* bytes more of one kind of memory */
static inline void HybCount(size_t *now, size_t *peak, size_t bytes)
{
  HybDeviceState *d = &hybdevice_;

  *now += bytes;
  if (*peak < *now) *peak = *now;
  if (d->since < d->device_bytes + d->managed_bytes) d->since = d->device_bytes + d->managed_bytes;
}

static inline void HybCountPinned(size_t more, size_t less)
{
  HybDeviceState *d = &hybdevice_;

  d->pinned_bytes += more;
  d->pinned_bytes -= less;
  if (d->pinned_peak < d->pinned_bytes) d->pinned_peak = d->pinned_bytes;
}

/* finds the card and makes the pools; false: message says why not */
extern bool HybDeviceSetUp(const HybServices *, char *message, size_t length);

extern PetscErrorCode HybDeviceAlloc(const HybExec *, HybMem, size_t, void **);
extern PetscErrorCode HybDeviceFree(const HybExec *, HybMem, size_t, void *);
extern PetscErrorCode HybDeviceCopy(const HybExec *, void *, const void *, size_t, HybCopyKind);
/* streams.cu */
extern bool           HybDeviceIsSide(cudaStream_t);
extern PetscErrorCode HybDeviceEarly(const HybExec *, const void *);
extern void           HybDeviceEarlyGone(const void *ptr, size_t bytes); /* is freed */
/* *stream: where a copy of this array to the host may go instead, behind what writes it */
extern PetscErrorCode      HybDeviceEarlyStream(const void *array, cudaStream_t *stream);
extern PetscErrorCode      HybDeviceLetters(const HybExec *, void **);
extern PetscErrorCode      HybDevicePost(const HybExec *, int k);
extern PetscErrorCode      HybDeviceRead(int k, void *, size_t);
extern PetscErrorCode      HybDeviceZero(const HybExec *, void *, size_t);
extern PetscErrorCode      HybDeviceSync(const HybExec *);
extern PetscErrorCode      HybDeviceMark(const HybExec *, int k, PetscBool end);
extern PetscErrorCode      HybDeviceElapsed(int k, PetscBool wait, double *seconds);
extern PetscErrorCode      HybDeviceTouch(const HybExec *, void *, size_t);
extern PetscErrorCode      HybDeviceExpect(size_t);
extern PetscBool           HybDeviceRecording(const HybExec *);
extern PetscErrorCode      HybDeviceLock(const HybExec *, void *, size_t, PetscBool);
extern PetscErrorCode      HybDevicePrefetch(const HybExec *, const void *, size_t, PetscBool);
extern PetscErrorCode      HybDeviceMemory(HybMemoryReport *);
extern PetscErrorCode      HybDeviceRoom(const HybExec *, size_t, HybMemoryReport *, PetscBool *);
extern PetscErrorCode      HybDeviceUse(void *);
static inline cudaStream_t HybDeviceOrder(const HybExec *exec)
{
  return hybdevice_.inuse ? hybdevice_.stream : (cudaStream_t)exec->stream;
}
extern PetscErrorCode HybDeviceUsage(HybMemoryReport *, PetscBool);
/* ahead.cu */
extern PetscErrorCode HybDevicePrepare(void);
/* locked.cu */
extern PetscErrorCode HybLockedAlloc(size_t, void **);
extern PetscErrorCode HybLockedFree(size_t, void *);
/* whole pages, outside of any share; what registering them said. The fault hook is the caller's to ask. */
extern cudaError_t HybLockedMake(size_t, void **);
/* managed.cu; *err: cudaErrorMemoryAllocation, of which a trim may be the cure, or another error; HybManagedFree():
   false if the array is not one of these */
extern PetscErrorCode HybManagedAlloc(size_t, cudaStream_t, void **, cudaError_t *err);
extern bool           HybManagedFree(void *, cudaStream_t);
extern size_t         HybManagedKept(void);
/* what is offered (HybSpare) goes, unless so many bytes are more than the card has; whether any memory came of it.
   After an error too. */
extern PetscErrorCode HybSpareGiveBack(size_t bytes, bool *any);
/* PETSC_ERR_MEM where the memory limit does not allow so many bytes more, whatever is given back */
extern PetscErrorCode HybDeviceCheckLimit(size_t bytes);
/* of all pools */
extern PetscErrorCode HybDeviceTrim(cudaStream_t);
/* growing.cu */
extern PetscErrorCode HybDeviceReserve(const HybExec *, size_t, void **);
extern PetscErrorCode HybDeviceGrow(const HybExec *, void *, size_t, size_t *);
extern PetscErrorCode HybDeviceUnreserve(const HybExec *, void *);
#endif
