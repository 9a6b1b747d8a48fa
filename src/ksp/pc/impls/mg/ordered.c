/*
  ordered.c: levels' values a second time, in the order in which their kernels read them.

  A matrix is multiplied a tenth to a fifth faster where its values lie by diagonals or slices. The copy is made again
  for new values, and takes the time of two or three products, and some waits. Of a large matrix that is less than an
  application of the cycle: it is made at once. Of others it is made when these values have been applied for a while,
  and at once where those before them were. Of several processes each has copies of its own columns' values.

  Where the matrix has a copy, for products outside of cycles, that one serves a cycle of the same precision
  (mat/impls/aijhybridgpu/seq/ordered.c).

  Memory: 8 to 12 bytes a nonzero, 4 to 8 in single precision, from what is to spare.
*/
#include "mgimpl.h"

#define ORDERED_AT_ONCE 4000000 /* nonzeros of a large matrix */

PetscErrorCode HybMGOrderedRelease(HybMG *h)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < HYB_MG_LEVELS; k++)
    for (int part = 0; part < HYB_CYCLE_PARTS; part++) ierr = HybErrorFirst(ierr, HybMatOrderedForget(&h->ordered[k][part].copy));
  ierr = HybErrorFirst(ierr, HybMatOrderedForget(&h->outer.copy));
  (void)memset(h->ordered, 0, sizeof(h->ordered));
  (void)memset(&h->outer, 0, sizeof(h->outer));
  h->applied = 0;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybMGOrderedReturn(const HybMGOrdered *o, HybSpMV **plan)
{
  if (o->lent) *plan = o->source;
}

PetscErrorCode HybMGOrderedLend(HybMG *h, HybMGOrdered *o, Mat A, PetscBool mine, const HybCSR *csr, HybSpMV **plan, PetscBool *moved)
{
  const PetscInt  after = HybTuningGet()->ordered;
  const PetscBool was = o->lent, large = (PetscBool)(csr->nnz >= ORDERED_AT_ONCE || (*plan)->half);
  HybMatOrdered  *copy = &o->copy;

  PetscFunctionBegin;
  o->lent = PETSC_FALSE;
  if (h->recorded) { /* a graph of the caller's may be run with other values, and meanwhile no copy is made */
    if (was) *moved = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (mine) {
    HybSpMV *own; /* the matrix's, which has been multiplied outside of cycles too */

    PetscCall(HybMatGetOrdered(A, csr, *plan, &own));
    if (own) {
      if (!was || o->own != own->number) *moved = PETSC_TRUE;
      PetscCall(HybMatOrderedForget(copy));
      o->source = *plan;
      o->own    = own->number;
      o->lent   = PETSC_TRUE;
      *plan     = own;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (o->own) *moved = PETSC_TRUE;
    o->own = 0;
  }
  if (o->source != *plan || o->number != (*plan)->number) PetscCall(HybMatOrderedForget(copy));
  o->source  = *plan;
  o->number  = (*plan)->number;
  copy->used = h->applied - o->since;
  PetscCall(HybMatOrderedLook(A, large, after, copy));
  o->since = h->applied - copy->used;
  if (after && (large || copy->worth || copy->used >= after)) PetscCall(HybMatOrderedFill(A, "Multigrid's cycle has", o->source, csr, copy));
  o->lent = copy->filled;
  if (o->lent) *plan = &copy->plan;
  if (o->lent != was) *moved = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
