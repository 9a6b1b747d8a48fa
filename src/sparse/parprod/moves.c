/*
  What the numeric phase of C = A B (multiply.c) moves before it multiplies, array by array: rows of B that others need
  are picked, A's blocks are merged to L, B's and others' rows are copied to R and X, where A P of a Galerkin
  product has its values from the first (HybParMultiplyAdopt()). Of a small product all this is composed (collect.c).
*/
#include "parprodimpl.h"

PetscErrorCode HybParMultiplySendValues(HybParMultiply *s, const HybParCSR *B)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  PetscCall(x->backend->local->pickvalues(x, s->sent.row.nnz, s->sent.from, B->D.a, B->O.a, s->sent.row.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* it may be there already */
static PetscErrorCode HybParMultiplyPlaceBlock(HybParMultiply *s, HybScalar *to, const HybCSR *block)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  if (to != block->a) PetscCall(x->backend->copy(x, to, block->a, sizeof(HybScalar) * (size_t)block->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplyPlaceOwn(HybParMultiply *s, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  if (!sameA || !s->Lcurrent) {
    s->Lcurrent = PETSC_FALSE;
    if (s->apart) PetscCall(x->backend->local->mergevalues(x, &A->D, &A->O, s->nleft, &s->L));
    if (s->some) PetscCall(x->backend->csr->gather(x, s->Z.nnz, s->zperm, PETSC_FALSE, s->apart ? s->L.a : A->D.a, s->Z.a));
    s->Lcurrent = PETSC_TRUE;
  }
  if (allB) PetscFunctionReturn(PETSC_SUCCESS);
  if (s->apart) PetscCall(HybParMultiplyPlaceBlock(s, s->R.a + s->place[0][1], &B->D));
  if (s->some) PetscCall(HybParMultiplyPlaceBlock(s, s->X.a + s->place[1][1], &B->O));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the values of others' rows to the two ends of M */
static PetscErrorCode HybParMultiplyPlace(HybParMultiply *s, int which, HybCSR *M)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  for (int p = 0; p < 3; p += 2) PetscCall(x->backend->csr->gather(x, s->place[which][p + 1] - s->place[which][p], s->perm[which] + s->first[which][p], PETSC_FALSE, s->F.a, M->a + s->place[which][p]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplyPlaceCame(HybParMultiply *s)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  if (s->apart) PetscCall(HybParMultiplyPlace(s, 0, &s->R));
  if (!s->some) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParMultiplyPlace(s, 1, &s->X));
  if (s->xperm) PetscCall(x->backend->csr->gather(x, s->Y.nnz, s->xperm, PETSC_FALSE, s->X.a, s->Y.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
