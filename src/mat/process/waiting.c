/*
  How long the host of this process was in copies over the bus, waited for its device, or for other processes: figures
  of the report of a run, by which nothing is decided.

  The device's table of entry points is copied, and the copy's sync() and copy() take the time. So rooms know nothing of
  it, and without a report there is nothing to cost. A copy of a few bytes to the host is a figure that the host waits
  for; a larger one is a copy, which begins when the device has done what was queued before.

  Waits of PETSc's own, as for a norm of a vector, are none of these.
*/
#include "report.h"

#define HYB_FIGURES ((size_t)4096) /* so many bytes at most are figures */

static PetscErrorCode HybSpend(HybSpent what, PetscLogDouble began)
{
  PetscLogDouble now;

  PetscFunctionBegin;
  PetscCall(PetscTime(&now));
  HybGlueState.spent.calls[what]++;
  HybGlueState.spent.seconds[what] += now - began;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWatchedSync(const HybExec *x)
{
  PetscLogDouble began;

  PetscFunctionBegin;
  PetscCall(PetscTime(&began));
  PetscCall(HybGlueState.unwatched->sync(x));
  PetscCall(HybSpend(HYB_SPENT_DEVICE, began));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWatchedCopy(const HybExec *x, void *dst, const void *src, size_t bytes, HybCopyKind kind)
{
  PetscLogDouble began;

  PetscFunctionBegin;
  PetscCall(PetscTime(&began));
  PetscCall(HybGlueState.unwatched->copy(x, dst, src, bytes, kind));
  if (bytes && kind == HYB_COPY_HOST_TO_DEVICE) PetscCall(HybSpend(HYB_SPENT_TODEVICE, began));
  if (bytes && kind == HYB_COPY_DEVICE_TO_HOST) PetscCall(HybSpend(bytes > HYB_FIGURES ? HYB_SPENT_TOHOST : HYB_SPENT_DEVICE, began));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the device's table, watched where a report is asked for */
const HybBackend *HybBackendWatch(const HybBackend *device)
{
  HybGlue *g = &HybGlueState;

  if (!device || !HybRecording()) return device;
  g->unwatched    = device;
  g->watched      = *device;
  g->watched.sync = HybWatchedSync;
  g->watched.copy = HybWatchedCopy;
  return &g->watched;
}

/* What was moved and waited for, so far: an operation's own is the difference between its end and its beginning */
void HybMovedGet(HybMoved *m)
{
  const HybCommTally *t = HybCommTallyGet();

  m->todevice = HybGlueState.counts.todevice;
  m->tohost   = HybGlueState.counts.tohost;
  m->tocards  = t->cardbytes;
  m->waited   = HybGlueState.spent.seconds[HYB_SPENT_DEVICE] + t->seconds;
}

void HybMovedAdd(HybMoved *to, const HybMoved *from, PetscLogDouble sign)
{
  to->todevice += sign * from->todevice;
  to->tohost += sign * from->tohost;
  to->tocards += sign * from->tocards;
  to->waited += sign * from->waited;
}
