/*
  The whole run of which the type's operations are a part: how long PCSetUp() and KSPSolve() took, by PETSc's own
  events. They count only while somebody logs, so a report begins that, as -log_view does.
*/
#include "report.h"

PetscErrorCode HybPhasesBegin(void)
{
  PetscFunctionBegin;
#if defined(PETSC_USE_LOG) && !HYB_HAS_LOG_HANDLERS
  if (PetscLogPLB) PetscFunctionReturn(PETSC_SUCCESS); /* there is one logger at a time, and the user's goes first */
#endif
  PetscCall(PetscLogDefaultBegin());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPhaseStages(PetscInt *n)
{
  PetscFunctionBegin;
  *n = 0;
#if defined(PETSC_USE_LOG) && !HYB_HAS_LOG_HANDLERS
  {
    PetscStageLog log;

    PetscCall(PetscLogGetStageLog(&log));
    *n = log->numStages;
  }
#elif defined(PETSC_USE_LOG)
  {
    PetscLogState state;

    PetscCall(PetscLogGetState(&state));
    if (state) PetscCall(PetscLogStateGetNumStages(state, n));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPhasesGet(HybRunPhase phases[HYB_RUN_PHASES])
{
  static const char *const names[HYB_RUN_PHASES] = {"PCSetUp", "KSPSolve"};
  PetscInt                 stages;

  PetscFunctionBegin;
  PetscCall(HybPhaseStages(&stages));
  for (int k = 0; k < HYB_RUN_PHASES; k++) {
    PetscLogEvent event = -1;

    phases[k].calls   = 0;
    phases[k].seconds = 0;
    PetscCall(PetscLogEventGetId(names[k], &event));
    for (PetscInt stage = 0; stage < stages && event >= 0; stage++) {
      PetscEventPerfInfo info;

      PetscCall(PetscLogEventGetPerfInfo((PetscLogStage)stage, event, &info));
      phases[k].calls += info.count;
      phases[k].seconds += info.time;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
