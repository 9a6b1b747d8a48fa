/*
  agree.c: several processes go the same way.
*/
#include "mgimpl.h"

PetscErrorCode HybMGAgree(const HybMG *h, PetscErrorCode before, const char **why)
{
  PetscBool all = (PetscBool) !*why;

  PetscFunctionBegin;
  if (!h->several) {
    PetscCall(before);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybAgreeAll(PetscObjectComm((PetscObject)h->pc), before, "A multigrid cycle", &all));
  if (!all && !*why) *why = "another process says why";
  PetscFunctionReturn(PETSC_SUCCESS);
}
