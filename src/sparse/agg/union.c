/*
  union.c: a graph whose edges have one direction, with those of its transpose, as PETSc's GAMG adds them.

  Weights are the graph's own, and 0 where the transpose alone has an entry: filter.c adds those of both sides.

  Memory: the transpose besides, and its zeros where there are weights. Time: O(nnz).
*/
#include "agghost.h"

PetscErrorCode HybAggUnion(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, HybCSR *T, HybCSR *both)
{
  const HybScalar  zero = 0, one = 1;
  const HybCSROps *ops = exec->backend->csr;
  HybExec          x   = *exec;

  PetscFunctionBegin;
  x.result = HYB_WORK(exec);
  PetscCall((*ops->addsymbolic)(&x, keep, work, G, T, both));
  both->a = NULL;
  if (G->a) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), T->nnz, sizeof(*T->a), &T->a));
    PetscCall((*ops->set)(&x, T->nnz, &zero, T->a));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), both->nnz, sizeof(*both->a), &both->a));
    PetscCall((*ops->addnumeric)(&x, &one, G, &one, T, both));
    PetscCall(HybArenaFree(work, &T->a));
  }
  PetscCall(HybArenaFree(work, &T->j, &T->i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggUnionTransposed(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, HybCSR *both)
{
  HybExec   x = *exec;
  HybCSR    T;
  PetscInt *perm;

  PetscFunctionBegin;
  x.result = HYB_WORK(exec);
  PetscCall((*x.backend->csr->transposesymbolic)(&x, work, work, G, &T, &perm));
  PetscCall(HybArenaFree(work, &perm));
  PetscCall(HybAggUnion(exec, keep, work, G, &T, both));
  PetscFunctionReturn(PETSC_SUCCESS);
}
