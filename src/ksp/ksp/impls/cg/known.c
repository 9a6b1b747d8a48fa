/*
  known.c: the solvers whose preconditioner tells them that it is about to be applied. KSPMatSolve() calls a function of
  the preconditioner's before it looks whether the solver has an operation for several right-hand sides, and none of the
  solver's own: so that function asks here whose preconditioner it is.
*/
#include <petsc/private/kspimpl.h>
#include "../../../smoothers.h"

typedef struct _Known *Known;
struct _Known {
  KSP ksp;
  PetscErrorCode (*choose)(KSP);
  Known next;
};
static Known known_;

PetscErrorCode HybCGKnow(KSP ksp, PetscErrorCode (*choose)(KSP))
{
  Known k;

  PetscFunctionBegin;
  PetscCall(PetscNew(&k));
  k->ksp    = ksp;
  k->choose = choose;
  k->next   = known_;
  known_    = k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGForget(KSP ksp)
{
  PetscFunctionBegin;
  for (Known *at = &known_; *at; at = &(*at)->next) {
    Known k = *at;

    if (k->ksp != ksp) continue;
    *at = k->next;
    PetscCall(PetscFree(k));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGChoose(PC pc)
{
  PetscFunctionBegin;
  for (Known k = known_; k; k = k->next)
    if (k->ksp->pc == pc) PetscCall((*k->choose)(k->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}
