/*
  step.c: what neighbours tell each other between the steps of the rules (vertex.h).

  A process that has an error tells its neighbours nothing, in each exchange until all meet at a sum. What these have
  instead is an error of their own, or, by peer access, an array of -1: a vertex that belongs to nothing, and no root
  beside it. So they go on to the sum.
*/
#include "paraggimpl.h"

/* what every exchange has room for from the first */
#define HYB_PARAGG_UNIT (PetscMax(sizeof(HybScalar), 2 * sizeof(PetscInt)))

PetscErrorCode HybParAggExchange(HybParAgg p, HybHalo halo, PetscErrorCode before, size_t unit, const void *array, void *ghost)
{
  const HybExec *x = &p->exec;

  PetscFunctionBegin;
  halo->early = PETSC_TRUE;   /* nothing is queued meanwhile */
  if (unit > HYB_PARAGG_UNIT) /* all take more room together */
    PetscCall(HybCommAgree(p->comm, before, "What vertices tell each other"));
  else if (before)
    HybHaloAbandon(halo, x, unit, PETSC_FALSE, before);
  PetscCall(before);
  PetscCall(HybHaloExchange(halo, x, unit, array, ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggGhosts(HybParAgg p, PetscErrorCode before, size_t unit, void *array)
{
  const HybExec *x     = &p->exec;
  const size_t   own   = unit * (size_t)p->halo->n;
  void          *ghost = NULL;

  PetscFunctionBegin;
  PetscCall(HybParAggExchange(p, p->halo, before, unit, array, &ghost));
  if (p->halo->nghost) PetscCall(x->backend->copy(x, (char *)array + own, ghost, unit * (size_t)p->halo->nghost, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybParAggForget(HybParAgg p)
{
  if (p->lent) HybHaloForget(p->halo);
}
