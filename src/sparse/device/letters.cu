/*
  letters.cu: a few numbers for the host while the stream goes on.

  Kernels write them to page-locked memory, and an event follows. The host waits for the event, not for what was queued
  after it. A copy instead would stand between two launches for some microseconds.
*/
#include "hybdevicestate.h"

static cudaEvent_t posted_[HYB_LETTERS];
static char       *letters_; /* kept */

PetscErrorCode HybDeviceLetters(const HybExec *, void **memory)
{
  const size_t bytes = HYB_LETTERS * HYB_LETTER_BYTES;

  PetscFunctionBegin;
  PetscCall(HybDeviceEnter());
  for (cudaEvent_t &event : posted_)
    if (!event) HybCallCUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  if (!letters_) {
    void *made = nullptr;

    HybCallCUDA(cudaMallocHost(&made, bytes));
    HybCountPinned(bytes, 0);
    letters_ = (char *)made;
  }
  *memory = letters_;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDevicePost(const HybExec *exec, int k)
{
  PetscFunctionBegin;
  PetscCheck(letters_ && k >= 0 && k < HYB_LETTERS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Letter %d: there are %d", k, letters_ ? HYB_LETTERS : 0);
  PetscCall(HybDeviceEnter());
  HybCallCUDA(cudaEventRecord(posted_[k], (cudaStream_t)exec->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceRead(int k, void *dst, size_t bytes)
{
  PetscFunctionBegin;
  PetscCheck(letters_ && k >= 0 && k < HYB_LETTERS && bytes <= HYB_LETTER_BYTES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Letter %d, %zu bytes: there are %d of %d", k, bytes, letters_ ? HYB_LETTERS : 0, HYB_LETTER_BYTES);
  PetscCall(HybDeviceEnter());
  HybCallCUDA(cudaEventSynchronize(posted_[k]));
  (void)memcpy(dst, letters_ + (size_t)k * HYB_LETTER_BYTES, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}
