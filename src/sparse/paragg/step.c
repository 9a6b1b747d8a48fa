/*
  step.c: what every step of the rules sees of the graph (vertex.h), and what neighbours tell each other between steps.
*/
#include "paraggimpl.h"

HybParAggStep HybParAggStepOf(HybParAgg p)
{
  HybParAggStep s;

  (void)PetscMemzero(&s, sizeof(s));
  s.n     = p->halo->n;
  s.all   = p->G.m;
  s.begin = p->ranges[p->comm->rank];
  s.end   = p->ranges[p->comm->rank + 1];
  s.hops  = p->hops;
  s.gi    = p->G.i;
  s.gj    = p->G.j;
  s.gid   = p->gid;
  if (p->cranges) {
    s.cbegin = p->cranges[p->comm->rank];
    s.cend   = p->cranges[p->comm->rank + 1];
  }
  s.parent = p->parent;
  s.lead   = p->lead;
  s.first  = p->first;
  s.kind   = p->kind;
  s.block  = p->block;
  return s;
}

PetscErrorCode HybParAggGhosts(HybParAgg p, size_t unit, void *array)
{
  const HybExec *x     = &p->exec;
  const size_t   own   = unit * (size_t)p->halo->n;
  void          *ghost = NULL;

  PetscFunctionBegin;
  p->halo->early = PETSC_TRUE; /* nothing is queued meanwhile */
  PetscCall(HybHaloExchange(p->halo, x, unit, array, PETSC_FALSE, &ghost));
  if (p->halo->nghost) PetscCall(x->backend->copy(x, (char *)array + own, ghost, unit * (size_t)p->halo->nghost, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
