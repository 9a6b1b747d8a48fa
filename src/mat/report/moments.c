/*
  What a process holds over time, for the report of a run: the device's memory, managed memory, and the host's arenas,
  looked at where an operation ends whose time is taken. So nothing is asked of the card.

  The run is cut into HYB_MOMENTS equal parts at most. A part keeps the most that was seen in it; a part in which
  nothing ended has what was held before. When the run goes on beyond the last part, two parts become one.
*/
#include "report.h"

#define HYB_MOMENT_FIRST 1e-3 /* seconds of a part in the beginning */

static void HybMomentsHalve(HybMoments *m)
{
  for (int k = 0; k < HYB_MOMENTS / 2; k++)
    for (int i = 0; i < HYB_MOMENT_KINDS; i++) m->bytes[k][i] = PetscMax(m->bytes[2 * k][i], m->bytes[2 * k + 1][i]);
  m->n = (m->n + 1) / 2;
  m->interval *= 2;
}

void HybMomentTake(HybRecords *r, PetscLogDouble now)
{
  const HybGlue  *g = &HybGlueState;
  HybMoments     *m = &r->moments;
  HybMemoryReport host, device;
  size_t          most[HYB_MOMENT_KINDS];
  int             at;

  memset(&device, 0, sizeof(device));
  (void)HybBackendHost.usage(&host, PETSC_FALSE);
  if (g->device) (void)g->device->usage(&device, PETSC_FALSE);
  if (!m->interval) m->interval = HYB_MOMENT_FIRST;
  while ((now - r->began) / m->interval >= HYB_MOMENTS) {
    /* parts that nothing fell into, before two become one */
    for (; m->n < HYB_MOMENTS; m->n++) memcpy(m->bytes[m->n], m->last, sizeof(m->last));
    HybMomentsHalve(m);
  }
  at = PetscMax(0, (int)((now - r->began) / m->interval));
  for (; m->n <= at; m->n++) memcpy(m->bytes[m->n], m->last, sizeof(m->last));
  m->last[HYB_MOMENT_DEVICE]  = device.device_bytes;
  m->last[HYB_MOMENT_MANAGED] = device.managed_bytes;
  m->last[HYB_MOMENT_HOST]    = host.device_bytes;
  /* what an operation held in its midst is seen where it was more than ever before */
  memcpy(most, m->last, sizeof(most));
  if (device.device_peak > m->peak[0]) most[HYB_MOMENT_DEVICE] = device.device_peak;
  if (device.managed_peak > m->peak[1]) most[HYB_MOMENT_MANAGED] = device.managed_peak;
  m->peak[0] = device.device_peak;
  m->peak[1] = device.managed_peak;
  for (int i = 0; i < HYB_MOMENT_KINDS; i++) m->bytes[at][i] = PetscMax(m->bytes[at][i], most[i]);
}

/* How fast the device's memory is: copies of more than its cache holds, which read and write. PETSc's streams may be
   gone by now, so the default one is used. For want of memory it stays unknown: a report fails nobody's run. */
PetscErrorCode HybRateMeasure(HybAccount *a)
{
  const size_t   bytes = (size_t)256 << 20;
  const int      reps  = 5;
  HybExec        x;
  HybArena       work;
  char          *from = NULL, *to = NULL;
  PetscLogDouble began, ended;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (a->status != HYB_DEVICE_READY || !a->device.device_peak) PetscFunctionReturn(PETSC_SUCCESS);
  x.backend = HybGlueState.device;
  x.result  = x.backend->workspace;
  x.stream  = NULL;
  PetscCall(x.backend->enter());
  PetscCall(x.backend->use(NULL));
  HybGlueState.streamknown = PETSC_FALSE;
  work                     = HybArenaOn(&x);
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybArenaAlloc(&work, x.backend->workspace, (PetscCount)bytes, 1, &from);
  if (!ierr) ierr = HybArenaAlloc(&work, x.backend->workspace, (PetscCount)bytes, 1, &to);
  if (!ierr) ierr = x.backend->zero(&x, from, bytes);
  if (!ierr) ierr = x.backend->copy(&x, to, from, bytes, HYB_COPY_DEVICE_TO_DEVICE);
  if (!ierr) ierr = x.backend->sync(&x);
  PetscCall(PetscTime(&began));
  for (int k = 0; k < reps && !ierr; k++) ierr = x.backend->copy(&x, to, from, bytes, HYB_COPY_DEVICE_TO_DEVICE);
  if (!ierr) ierr = x.backend->sync(&x);
  PetscCall(PetscTime(&ended));
  if (!ierr && ended > began) a->rate = 2.0 * reps * (double)bytes / (ended - began);
  (void)HybArenaReset(&work);
  PetscCall(PetscPopErrorHandler());
  PetscFunctionReturn(PETSC_SUCCESS);
}
