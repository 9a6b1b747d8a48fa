/*
  timers.cu: how long it takes what a stream is given between two places, without a wait.

  A timer is two events. The card notes the time where it comes by each; the host reads the difference later, when both
  have passed. So a call can be timed among others that are queued, and none of them is held up.
*/
#include "hybdevicestate.h"

static struct {
  cudaEvent_t event[2];
} timer_[HYB_TIMERS];

PetscErrorCode HybDeviceMark(const HybExec *exec, int k, PetscBool end)
{
  cudaEvent_t *timer;

  PetscFunctionBegin;
  PetscCheck(k >= 0 && k < HYB_TIMERS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "There are %d timers, and none with number %d", HYB_TIMERS, k);
  timer = &timer_[k].event[end ? 1 : 0];
  PetscCall(HybDeviceEnter());
  if (!*timer) HybCallCUDA(cudaEventCreateWithFlags(timer, cudaEventDefault));
  HybCallCUDA(cudaEventRecord(*timer, (cudaStream_t)exec->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceElapsed(int k, PetscBool wait, double *seconds)
{
  float milliseconds;

  PetscFunctionBegin;
  *seconds = -1;
  PetscCheck(k >= 0 && k < HYB_TIMERS && timer_[k].event[0] && timer_[k].event[1], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Timer %d of %d has not been used", k, HYB_TIMERS);
  PetscCall(HybDeviceEnter());
  if (wait)
    HybCallCUDA(cudaEventSynchronize(timer_[k].event[1]));
  else {
    const cudaError_t err = cudaEventQuery(timer_[k].event[1]);

    if (err == cudaErrorNotReady) PetscFunctionReturn(PETSC_SUCCESS);
    HybCallCUDA(err);
  }
  HybCallCUDA(cudaEventElapsedTime(&milliseconds, timer_[k].event[0], timer_[k].event[1]));
  *seconds = 1e-3 * milliseconds;
  PetscFunctionReturn(PETSC_SUCCESS);
}
