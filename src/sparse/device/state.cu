/*
  state.cu: the state of this process's use of one card, and what every file of the device room asks of it: errors, the
  fault hook, limits of kernels and of memory, which card the thread has. All other files of the room stand on this one.
*/
#include "hybdevicestate.h"

HybDeviceState hybdevice_;

extern "C" int HybDeviceFault(const char *what)
{
  return hybdevice_.services.fault ? hybdevice_.services.fault(what) : 0;
}

extern "C" PetscErrorCode HybDeviceError(cudaError_t err, const char *what, const char *file, int line)
{
  PetscFunctionBegin;
  if (err == cudaSuccess) PetscFunctionReturn(PETSC_SUCCESS);
  (void)cudaGetLastError(); /* an error that can be recovered from shall not be found again by a later call */
  return PetscError(PETSC_COMM_SELF, line, PETSC_FUNCTION_NAME, file, err == cudaErrorMemoryAllocation ? PETSC_ERR_MEM : PETSC_ERR_LIB, PETSC_ERROR_INITIAL, "CUDA error %d (%s) in %s", (int)err, cudaGetErrorString(err), what);
}

extern "C" PetscErrorCode HybDeviceDynamicShared(const void *kernel, size_t bytes, const char *what)
{
  PetscFunctionBegin;
  /* raised limits stay, and a launch that is repeated shall cost no driver call: this many kernels are remembered, by
     their addresses */
  static struct {
    const void *kernel;
    size_t      bytes;
  } raised[512];
  const size_t slot = ((uintptr_t)kernel >> 4) * 0x9e3779b97f4a7c15u >> 55;

  if (raised[slot].kernel == kernel && raised[slot].bytes >= bytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(bytes <= hybdevice_.sharedperblock, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Kernel %s asks for %zu bytes of shared memory, a block can have %zu", what, bytes, hybdevice_.sharedperblock);
  HybCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  raised[slot].kernel = kernel;
  raised[slot].bytes  = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern "C" PetscErrorCode HybDeviceCarveout(const void *kernel, int percent)
{
  PetscFunctionBegin;
  HybCallCUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern "C" PetscErrorCode HybDeviceLevel2(size_t *bytes)
{
  PetscFunctionBegin;
  *bytes = (size_t)hybdevice_.level2;
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern "C" PetscErrorCode HybDeviceLimits(size_t *sharedperblock, int *multiprocessors)
{
  PetscFunctionBegin;
  if (sharedperblock) *sharedperblock = hybdevice_.sharedperblock;
  if (multiprocessors) *multiprocessors = hybdevice_.multiprocessors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybTuning *HybDeviceTuning(void)
{
  return hybdevice_.services.tuning ? hybdevice_.services.tuning : HybTuningGet();
}

/* A thread's current card is its own affair: another thread of the program starts with card 0, and a program may
   switch. Asking costs less than a tenth of a microsecond. */
PetscErrorCode HybDeviceEnter(void)
{
  int current = -1;

  PetscFunctionBegin;
  if (hybdevice_.devices > 1) { /* no call that the fault hook may refuse: memory is given back behind this one */
    cudaError_t err = cudaGetDevice(&current);
    if (err == cudaSuccess && current != hybdevice_.device) err = cudaSetDevice(hybdevice_.device);
    if (err != cudaSuccess) PetscCall(HybDeviceError(err, "cudaSetDevice", __FILE__, __LINE__));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static HybSpare *spares_;

extern "C" void HybSpareOffer(HybSpare *spare)
{
  if (spare->link) return;
  spare->next = spares_;
  spare->link = &spares_;
  if (spares_) spares_->link = &spare->next;
  spares_ = spare;
}

extern "C" void HybSpareWithdraw(HybSpare *spare)
{
  if (!spare->link) return;
  *spare->link = spare->next;
  if (spare->next) spare->next->link = spare->link;
  spare->link = nullptr;
}

/* Invariant: what is offered is read by nothing but what the stream of memory's order (HybDeviceOrder()) already waits
   for, but for products that run beside others (parprod/multiply.c): these offer before they are joined. They go beside
   only where none of them took memory in the last phase or lost a plan since, so that nobody asks for some before. */
PetscErrorCode HybSpareGiveBack(size_t bytes, bool *any)
{
  const size_t   held  = hybdevice_.device_bytes;
  PetscErrorCode first = PETSC_SUCCESS;
  size_t         f = 0, total = 0;

  PetscFunctionBegin;
  *any = false;
  if (!spares_) PetscFunctionReturn(PETSC_SUCCESS);
  HybCallCUDA(cudaMemGetInfo(&f, &total));
  if (bytes > total) PetscFunctionReturn(PETSC_SUCCESS); /* it would serve nothing */
  while (spares_) {
    HybSpare *const spare = spares_;

    HybSpareWithdraw(spare);
    const PetscErrorCode ierr = spare->giveback(spare);
    if (!first) first = ierr;
  }
  *any = hybdevice_.device_bytes < held; /* one that its product cannot do without by now is kept */
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceCheckLimit(size_t bytes)
{
  const HybDeviceState *d     = &hybdevice_;
  const size_t          limit = d->services.memory_limit;
  bool                  any   = true;

  PetscFunctionBegin;
  while (limit) {
    const size_t ours = d->device_bytes + d->managed_bytes;

    if (ours <= limit && bytes <= limit - ours) break;
    if (bytes > limit)
      any = false; /* nothing that is given back would serve */
    else if (any)
      PetscCall(HybSpareGiveBack(bytes, &any));
    PetscCheck(any, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the device: %zu bytes needed, %zu free of the %zu that the memory limit allows" HYB_MEMORY_HINT, bytes, limit > ours ? limit - ours : (size_t)0, limit);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
