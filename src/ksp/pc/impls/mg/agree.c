/*
  agree.c: several processes go the same way.
*/
#include "mgimpl.h"

PetscErrorCode HybMGAgree(PC pc, const HybMG *h, PetscErrorCode before, const char **why)
{
  int no = *why != NULL;

  PetscFunctionBegin;
  if (!h->several) {
    PetscCall(before);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybAgree(PetscObjectComm((PetscObject)pc), before, "A multigrid cycle"));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &no, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)pc)));
  if (no && !*why) *why = "another process says why";
  PetscFunctionReturn(PETSC_SUCCESS);
}
