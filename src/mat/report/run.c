/*
  The run as a whole: how much of it were set-ups and solves, by PETSc's own events, and what lies before, between and
  after. A logger beside PETSc's hears of these events as they begin and end. Of set-ups and solves within others the
  outermost counts: its part of the run is the one that goes on (HybRunPart), and so is that of each operation of the
  type. PCApply() of the solve's own preconditioner is a part of its own.

  GAMG's events tell what a matrix is that has no name.
*/
#include "report.h"
#include <petscksp.h>

/* what the matrix is that comes up now */
const char *HybRunMatrix(const HybRunLog *l)
{
  if (l->depth[HYB_RUN_GRAPH] + l->depth[HYB_RUN_COARSEN] > 0) return "GAMG's graph";
  if (l->depth[HYB_RUN_PROLONGATOR] + l->depth[HYB_RUN_SMOOTH] > 0) return "GAMG's prolongator";
  return l->depth[HYB_RUN_LEVEL] > 0 ? "GAMG's level" : "";
}

/* The part of the run that goes on gets its time, and another one begins */
static void HybRunTurn(HybRunLog *l, HybRunPart part, PetscLogDouble now)
{
  if (l->part == HYB_PART_OUTSIDE && !l->any)
    l->sum.before += now - l->last;
  else
    l->sum.seconds[l->part] += now - l->last;
  l->last = now;
  l->part = part;
  l->any  = PETSC_TRUE;
}

/* Set-ups and solves; an error may have left one that never ended, and it begins anew */
static void HybRunEnter(HybRunLog *l, HybRunEvent e, PetscObject o, PetscLogDouble now)
{
  PC pc = NULL;

  if (l->inside && e == l->outer && o && o->id == l->id) {
    memset(l->depth, 0, sizeof(l->depth));
    l->depth[e] = 1;
    l->inside   = 0;
  }
  if (l->depth[e] > 1 || l->inside++) return;
  l->outer = e;
  l->id    = o ? o->id : 0;
  if (e == HYB_RUN_SOLVE && o && !KSPGetPC((KSP)o, &pc)) l->pc = ((PetscObject)pc)->id;
  HybRunTurn(l, e == HYB_RUN_SOLVE ? HYB_PART_SOLVE : HYB_PART_SETUP, now);
  l->sum.calls[l->part]++;
}

static void HybRunLeave(HybRunLog *l, HybRunEvent e, PetscObject o, PetscLogDouble now)
{
  PetscInt its = 0;

  if (--l->inside) return;
  HybRunTurn(l, HYB_PART_OUTSIDE, now);
  if (e == HYB_RUN_SOLVE && o && !KSPGetIterationNumber((KSP)o, &its)) l->sum.iterations += its;
}

static PetscErrorCode HybRunHeard(PetscBool end, PetscLogEvent event, int t, PetscObject o1, PetscObject o2, PetscObject o3, PetscObject o4)
{
  HybRecords    *r = HybGlueState.report.records;
  HybRunLog     *l = r ? &r->run : NULL;
  PetscLogDouble now;
  int            e = 0;

  PetscFunctionBegin;
  if (!r) PetscFunctionReturn(PETSC_SUCCESS);
  if (l->below[end]) PetscCall((*l->below[end])(event, t, o1, o2, o3, o4));
  while (e < HYB_RUN_EVENTS && l->event[e] != event) e++;
  if (e == HYB_RUN_EVENTS || (end && !l->depth[e])) PetscFunctionReturn(PETSC_SUCCESS);
  l->depth[e] += end ? -1 : 1;
  if (end && l->depth[e]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscTime(&now));
  if (e <= HYB_RUN_SOLVE && end)
    HybRunLeave(l, (HybRunEvent)e, o1, now);
  else if (e <= HYB_RUN_SOLVE)
    HybRunEnter(l, (HybRunEvent)e, o1, now);
  else if (e == HYB_RUN_APPLY && end && l->part == HYB_PART_APPLY)
    HybRunTurn(l, HYB_PART_SOLVE, now);
  else if (e == HYB_RUN_APPLY && !end && l->part == HYB_PART_SOLVE && o1 && o1->id == l->pc) {
    HybRunTurn(l, HYB_PART_APPLY, now);
    l->sum.calls[HYB_PART_APPLY]++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybRunEventBegin(PetscLogEvent event, int t, PetscObject o1, PetscObject o2, PetscObject o3, PetscObject o4)
{
  return HybRunHeard(PETSC_FALSE, event, t, o1, o2, o3, o4);
}

static PetscErrorCode HybRunEventEnd(PetscLogEvent event, int t, PetscObject o1, PetscObject o2, PetscObject o3, PetscObject o4)
{
  return HybRunHeard(PETSC_TRUE, event, t, o1, o2, o3, o4);
}

/* PETSc's packages register their events as they are first used: at the latest when the plugin registered types
   there */
PetscErrorCode HybRunBegin(HybRecords *r)
{
#define NAME(event, name) name,
  static const char *const names[HYB_RUN_EVENTS] = {HYB_RUN_LIST(NAME)};
#undef NAME
  HybRunLog *l = &r->run;

  PetscFunctionBegin;
  for (int e = 0; e < HYB_RUN_EVENTS; e++) {
    l->event[e] = -1;
    PetscCall(PetscLogEventGetId(names[e], &l->event[e]));
  }
  l->last = r->began;
#if defined(PETSC_USE_LOG) && HYB_HAS_LOG_HANDLERS
  PetscCall(PetscLogHandlerCreateLegacy(PETSC_COMM_SELF, HybRunEventBegin, HybRunEventEnd, NULL, NULL, &l->handler));
  PetscCall(PetscLogHandlerStart(l->handler));
#elif defined(PETSC_USE_LOG)
  l->below[0] = PetscLogPLB;
  l->below[1] = PetscLogPLE;
  PetscCall(PetscLogSet(HybRunEventBegin, HybRunEventEnd));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the logger still hear? Before 3.20 there is one at a time, and a program's own comes in this one's place. */
static PetscBool HybRunHears(void)
{
#if defined(PETSC_USE_LOG) && HYB_HAS_LOG_HANDLERS
  return PETSC_TRUE;
#elif defined(PETSC_USE_LOG)
  return (PetscBool)(PetscLogPLB == HybRunEventBegin);
#else
  return PETSC_FALSE;
#endif
}

/* as it is now: an error may end the run within a part */
void HybRunGet(const HybRunLog *log, PetscLogDouble now, HybRun *run)
{
  HybRunLog l = *log;

  if (!HybRunHears()) return;
  if (l.part == HYB_PART_OUTSIDE && l.any)
    l.sum.after = now - l.last;
  else
    HybRunTurn(&l, HYB_PART_OUTSIDE, now);
  *run = l.sum;
}

PetscErrorCode HybRunEnd(HybRecords *r)
{
  PetscFunctionBegin;
#if defined(PETSC_USE_LOG) && HYB_HAS_LOG_HANDLERS
  PetscCall(PetscLogHandlerStop(r->run.handler));
  PetscCall(PetscLogHandlerDestroy(&r->run.handler));
#elif defined(PETSC_USE_LOG)
  if (HybRunHears()) PetscCall(PetscLogSet(r->run.below[0], r->run.below[1]));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
