/*
  permute.c: the order in which PETSc's coarsening asks the vertices, a function of their number alone: slot k is
  exchanged with a random slot t, unless t was the target of an exchange before.
*/
#include "agghost.h"
#include "rander48.h"

PetscErrorCode HybAggOrder_Host(HybArena *work, PetscInt n, PetscInt *order)
{
  const HybRander48Step step = HybRander48Steps(1);
  uint64_t              x    = HYB_RANDER48_SEED;
  char                 *met;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, n, 1, &met));
  for (PetscInt k = 0; k < n; k++) order[k] = k;
  for (PetscInt k = 0; k < n; k++) {
    PetscInt t;

    x = HybRander48Next(step, x);
    t = HybRander48Slot(x, n);
    if (t != k && !met[t]) {
      const PetscInt v = order[t];

      order[t] = order[k];
      order[k] = v;
      met[t]   = 1;
    }
  }
  PetscCall(HybArenaFree(work, &met));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggPermutation_Host(const HybExec *exec, HybArena *work, PetscInt n, PetscInt *place)
{
  PetscInt *order;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &order));
  PetscCall(HybAggOrder_Host(work, n, order));
  for (PetscInt k = 0; k < n; k++) place[order[k]] = k;
  PetscCall(HybArenaFree(work, &order));
  PetscFunctionReturn(PETSC_SUCCESS);
}
