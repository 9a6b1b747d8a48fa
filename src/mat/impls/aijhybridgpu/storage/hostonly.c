/*
  Matrices of a process that has no device, or shall use none: while such a one lies in AIJ's own arrays, its entries
  are written and read by AIJ's own functions, which stand in its table, and no door tells of that. Nobody would ask: it
  has no copy that could be old and no values that could have moved. All other operations stay ours.

  That ends where it gets arrays of ours (adopt.c), other choices, or another header.
*/
#include "where.h"

/* the operations of AIJ's that go by the arrays alone */
#define HYB_HOST_ONLY(X) X(setvalues) X(getvalues) X(zeroentries) X(zerorows) X(zerorowscolumns) X(scale) X(shift) X(diagonalscale) X(diagonalset) X(getdiagonal) X(norm) X(conjugate) X(getinfo)

PetscErrorCode HybHostOnlyBegin(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  const struct _MatOps *own = &HybGlueState.own, *parent = &HybGlueState.seq;
  PetscBool             none = (PetscBool)(hyb->choices.backend == HYB_BACKEND_HOST);
  HybDoor              *door = HybFrameKnown() && A->data ? HybFrameDoor(A) : NULL;

  PetscFunctionBegin;
  if (hyb->hostonly || HybHashActive(A) || A->ops->destroy != own->destroy) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->choices.backend == HYB_BACKEND_AUTO) PetscCall(HybGlueExpectDevice(&none));
  if (!none) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->lives != HYB_LIVES_HOST || hyb->arrays.blocks || hyb->movedto || hyb->copy.pattern || hyb->readers || hyb->writers || hyb->rows) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->pass = NULL;
  if (door && door->getarray) {
    memcpy(HybGlueState.frame.shut, door, sizeof(*door));
    PetscCall(PetscMemzero(door, sizeof(*door)));
  }
#define TAKE(op) \
  if (A->ops->op == own->op) A->ops->op = parent->op;
  HYB_HOST_ONLY(TAKE)
#undef TAKE
  hyb->hostonly = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybHostOnlyEnd(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  const struct _MatOps *own = &HybGlueState.own, *parent = &HybGlueState.seq;

  if (!hyb->hostonly) return;
  hyb->hostonly = PETSC_FALSE;
  if (HybHashActive(A) || A->ops->destroy != own->destroy) return;
#define GIVE(op) \
  if (A->ops->op == parent->op) A->ops->op = own->op;
  HYB_HOST_ONLY(GIVE)
#undef GIVE
  if (HybFrameKnown() && A->data && HybGlueState.frame.shut[0]) memcpy(HybFrameDoor(A), HybGlueState.frame.shut, sizeof(HybDoor));
}
