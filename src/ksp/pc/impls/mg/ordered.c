/*
  ordered.c: levels' values a second time, in the order in which their kernels read them.

  A matrix is multiplied a tenth to a fifth faster where its values lie by diagonals or slices. The copy is made again
  for new values, and takes the time of two or three products, and some waits. Of a large matrix that is less than an
  application of the cycle: it is made at once. Of others it is made when these values have been applied for a while,
  and at once where those before them were. Of several processes each has copies of its own columns' values.

  Where the matrix has a copy, for products outside of cycles, that one serves a cycle of the same precision
  (mat/impls/aijhybridgpu/seq/ordered.c).

  Memory: 8 to 12 bytes a nonzero, from what is to spare.
*/
#include "mgimpl.h"

#define ORDERED_AT_ONCE 4000000 /* nonzeros of a large matrix */

/* nothing is known of the matrix and its plan any more */
static PetscErrorCode OrderedForget(HybMGOrdered *o)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (o->planned) ierr = HybSpMVDestroy(&o->plan);
  o->asked = o->planned = o->filled = PETSC_FALSE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGOrderedRelease(HybMG *h)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < HYB_MG_LEVELS; k++)
    for (int part = 0; part < HYB_CYCLE_PARTS; part++) ierr = HybErrorFirst(ierr, OrderedForget(&h->ordered[k][part]));
  (void)memset(h->ordered, 0, sizeof(h->ordered));
  h->applied = 0;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybMGOrderedReturn(const HybMGOrdered *o, HybSpMV **plan)
{
  if (o->lent) *plan = o->source;
}

/* Is the plan, with these values, there? It is made where that is worth it. */
static PetscErrorCode OrderedMake(const HybMG *h, HybMGOrdered *o, Mat A, const HybCSR *csr)
{
  const PetscInt after = HybTuningGet()->ordered;

  PetscFunctionBegin;
  if (!after || !(o->worth || csr->nnz >= ORDERED_AT_ONCE || h->applied - o->since >= after)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!o->asked) {
    PetscCall(HybSpMVOrderUp(o->source, csr, &o->plan, &o->planned));
    o->asked = PETSC_TRUE;
    if (o->planned) PetscCall(PetscInfo(A, "Multigrid's cycle has a copy of the values, %" PetscInt_FMT " x %" PetscInt_FMT ", in the order of the products %s: %g MB\n", csr->m, csr->n, o->plan.method->name, 1e-6 * (double)o->plan.keep.bytes));
  }
  if (!o->planned) PetscFunctionReturn(PETSC_SUCCESS);
  o->plan.exec.stream = o->source->exec.stream;
  if (!o->filled) PetscCall(HybSpMVOrder(o->source, csr, &o->plan));
  o->filled = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGOrderedLend(HybMG *h, HybMGOrdered *o, Mat A, const HybCSR *csr, HybSpMV **plan, PetscBool *moved)
{
  const PetscObjectState id  = (PetscObjectState)((PetscObject)A)->id;
  const PetscBool        was = o->lent;
  PetscObjectState       state;
  PetscCount             moves;

  PetscFunctionBegin;
  o->lent = PETSC_FALSE;
  if (h->recorded) { /* a graph of the caller's may be run with other values, and meanwhile no copy is made */
    if (was) *moved = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!h->cycle.single) {
    HybSpMV *own; /* the matrix's, which has been multiplied outside of cycles too */

    PetscCall(HybMatGetOrdered(A, csr, *plan, &own));
    if (own) {
      if (!was || o->own != own->number) *moved = PETSC_TRUE;
      PetscCall(OrderedForget(o));
      o->source = *plan;
      o->own    = own->number;
      o->lent   = PETSC_TRUE;
      *plan     = own;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (o->own) *moved = PETSC_TRUE;
    o->own = 0;
  }
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(HybMatGetMoves(A, &moves));
  if (o->source != *plan || o->number != (*plan)->number) PetscCall(OrderedForget(o));
  o->source = *plan;
  o->number = (*plan)->number;
  if (o->id != id || o->state != state || o->moves != moves) {
    o->worth  = (PetscBool)(h->applied - o->since >= HybTuningGet()->ordered);
    o->since  = h->applied;
    o->filled = PETSC_FALSE;
    o->id     = id;
    o->state  = state;
    o->moves  = moves;
  }
  PetscCall(OrderedMake(h, o, A, csr));
  if (!o->filled && o->planned) PetscCall(OrderedForget(o)); /* its memory is of no use now */
  o->lent = o->filled;
  if (o->lent) *plan = &o->plan;
  if (o->lent != was) *moved = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
