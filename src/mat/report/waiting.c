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
  HybRecords    *r = HybGlueState.report.records;
  PetscLogDouble now;

  PetscFunctionBegin;
  if (!r) PetscFunctionReturn(PETSC_SUCCESS); /* memory that is freed after the report */
  PetscCall(PetscTime(&now));
  r->spent.calls[what]++;
  r->spent.seconds[what] += now - began;
  if (r->run.part == HYB_PART_SOLVE || r->run.part == HYB_PART_APPLY) {
    r->spent.solvecalls[what]++;
    r->spent.solveseconds[what] += now - began;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWatchedSync(const HybExec *x)
{
  PetscLogDouble began;

  PetscFunctionBegin;
  PetscCall(PetscTime(&began));
  PetscCall(HybGlueState.report.unwatched->sync(x));
  PetscCall(HybSpend(HYB_SPENT_DEVICE, began));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybWatchedCopy(const HybExec *x, void *dst, const void *src, size_t bytes, HybCopyKind kind)
{
  PetscLogDouble began;

  PetscFunctionBegin;
  PetscCall(PetscTime(&began));
  PetscCall(HybGlueState.report.unwatched->copy(x, dst, src, bytes, kind));
  if (bytes && kind == HYB_COPY_HOST_TO_DEVICE) PetscCall(HybSpend(HYB_SPENT_TODEVICE, began));
  if (bytes && kind == HYB_COPY_DEVICE_TO_HOST) PetscCall(HybSpend(bytes > HYB_FIGURES ? HYB_SPENT_TOHOST : HYB_SPENT_DEVICE, began));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the device's table, watched */
const HybBackend *HybBackendWatch(const HybBackend *device)
{
  HybGlue *g = &HybGlueState;

  if (!device) return device;
  g->report.unwatched    = device;
  g->report.watched      = *device;
  g->report.watched.sync = HybWatchedSync;
  g->report.watched.copy = HybWatchedCopy;
  return &g->report.watched;
}

/* What was moved and waited for, so far: an operation's own is the difference between its end and its beginning */
void HybMovedGet(HybMoved *m)
{
  const HybCommTally *t = HybCommTallyGet();

  m->todevice = HybGlueState.counts.todevice;
  m->tohost   = HybGlueState.counts.tohost;
  m->tocards  = t->cardbytes;
  m->waited   = HybGlueState.report.records->spent.seconds[HYB_SPENT_DEVICE] + t->seconds;
}

void HybMovedAdd(HybMoved *to, const HybMoved *from, PetscLogDouble sign)
{
  to->todevice += sign * from->todevice;
  to->tohost += sign * from->tohost;
  to->tocards += sign * from->tocards;
  to->waited += sign * from->waited;
}
