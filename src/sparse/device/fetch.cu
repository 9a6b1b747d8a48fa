/*
  fetch.cu: a few numbers on their way to the host while the stream goes on.

  They are copied to page-locked memory, and an event follows the copy. The host waits for the event, not for what was
  queued after it.
*/
#include "hybdevicestate.h"

static struct {
  cudaEvent_t event;
  size_t      bytes;
} fetch_[HYB_FETCHES];
static char *fetched_; /* HYB_FETCH_BYTES for each, kept */

static PetscErrorCode FetchReady(int k)
{
  const size_t bytes = HYB_FETCHES * HYB_FETCH_BYTES;

  PetscFunctionBegin;
  if (!fetched_) {
    void *memory = nullptr;

    HybCallCUDA(cudaMallocHost(&memory, bytes));
    HybCountPinned(bytes, 0);
    fetched_ = (char *)memory;
  }
  if (!fetch_[k].event) HybCallCUDA(cudaEventCreateWithFlags(&fetch_[k].event, cudaEventDisableTiming));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceFetchBegin(const HybExec *exec, int k, const void *src, size_t bytes)
{
  PetscFunctionBegin;
  PetscCheck(k >= 0 && k < HYB_FETCHES && bytes <= HYB_FETCH_BYTES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Fetch %d of %zu bytes: there are %d, of up to %d bytes", k, bytes, HYB_FETCHES, HYB_FETCH_BYTES);
  PetscCall(HybDeviceEnter());
  fetch_[k].bytes = 0;
  PetscCall(FetchReady(k));
  HybCallCUDA(cudaMemcpyAsync(fetched_ + (size_t)k * HYB_FETCH_BYTES, src, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)exec->stream));
  HybCallCUDA(cudaEventRecord(fetch_[k].event, (cudaStream_t)exec->stream));
  fetch_[k].bytes = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceFetchEnd(int k, void *dst, size_t bytes)
{
  PetscFunctionBegin;
  PetscCheck(k >= 0 && k < HYB_FETCHES && bytes && bytes == fetch_[k].bytes, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Fetch %d of %zu bytes was not begun", k, bytes);
  PetscCall(HybDeviceEnter());
  HybCallCUDA(cudaEventSynchronize(fetch_[k].event));
  fetch_[k].bytes = 0;
  (void)memcpy(dst, fetched_ + (size_t)k * HYB_FETCH_BYTES, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}
