/*
  table.c: what one process does alone, on the host.
*/
#include "paraggimpl.h"
#include "../agg/agghost.h"

#define HYB_STEP_LOOP(Step)                                                                       \
  static PetscErrorCode HybParAgg##Step##_Host(const HybExec *exec, PetscInt n, const void *args) \
  {                                                                                               \
    const HybStep##Step s = *(const HybStep##Step *)args;                                         \
                                                                                                  \
    PetscFunctionBegin;                                                                           \
    for (PetscInt k = 0; k < n; k++) HybVertex##Step(&s, k);                                      \
    PetscFunctionReturn(PETSC_SUCCESS);                                                           \
  }
HYB_VERTEX_STEPS(HYB_STEP_LOOP)
#define HYB_STEP_NAME(Step) HybParAgg##Step##_Host,
static const HybParAggEach Loops[] = {HYB_VERTEX_STEPS(HYB_STEP_NAME)};

static PetscErrorCode HybParAggRoots_Host(const HybExec *exec, HybArena *work, const HybCSR *G, PetscInt longest, int hops, PetscInt *key)
{
  PetscFunctionBegin;
  PetscCall(HybAggFinish_Host(work, G->m, G->i, G->j, hops, key));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggNumber_Host(const HybExec *exec, HybArena *work, PetscInt n, const PetscInt *flag, PetscInt *number, PetscInt *sum)
{
  PetscFunctionBegin;
  *sum = 0;
  for (PetscInt k = 0; k < n; k++) {
    number[k] = *sum;
    *sum += flag[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybParAggOps HybParAggHost = {
  .each   = Loops,
  .roots  = HybParAggRoots_Host,
  .number = HybParAggNumber_Host,
  .lists  = HybAggListsByKind_Host,
};
