/*
  permute.c: the order in which PETSc's coarsening asks the vertices. The shuffle is a function of their number alone:
  slot k is exchanged with a random slot t, unless t was the target of an exchange before. By degrees: the lengths of
  rows, shuffled alike, are sorted; PETSc's sort is not stable, so its own is called, which leaves equal ones as it
  does.
*/
#include "agghost.h"
#include "rander48.h"

static PetscErrorCode HybAggShuffle(HybArena *work, PetscInt n, PetscInt *order)
{
  const HybRander48Step step = HybRander48Steps(1);
  uint64_t              x    = HYB_RANDER48_SEED;
  char                 *met;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, n, 1, &met));
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

PetscErrorCode HybAggOrder_Host(HybArena *work, PetscInt n, HybAggOrder kind, const PetscInt *gi, PetscInt *order)
{
  PetscInt *degree;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) order[k] = k;
  if (kind == HYB_AGG_NATURAL) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybAggShuffle(work, n, order));
  if (kind == HYB_AGG_SHUFFLED || !n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &degree));
  for (PetscInt k = 0; k < n; k++) degree[k] = gi[order[k] + 1] - gi[order[k]];
  PetscCall(PetscSortIntWithArray(n, degree, order));
  PetscCall(HybArenaFree(work, &degree));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggPermutation_Host(const HybExec *exec, HybArena *work, PetscInt n, HybAggOrder kind, const PetscInt *gi, PetscInt *place)
{
  PetscInt *order;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &order));
  PetscCall(HybAggOrder_Host(work, n, kind, gi, order));
  for (PetscInt k = 0; k < n; k++) place[order[k]] = k;
  PetscCall(HybArenaFree(work, &order));
  PetscFunctionReturn(PETSC_SUCCESS);
}
