/*
  A large matrix's values a second time on the device, in the order in which the kernel of its products with vectors
  reads them (HybSpMVOrderUp()). A product is a tenth to a third faster then, with the same bits.

  The copy costs about as much as twenty products gain. So it is made when as many have been done with the same values,
  and at once where the values before these had as many; it is made again for other values, and goes where these are not
  applied as often. Multigrid's cycle uses the matrix's copy where there is one.

  Memory: 8 to 12 bytes a nonzero, from what is to spare.
*/
#include "seq.h"
#include "../storage/where.h"

/* Are A's values those that were looked at last? */
static PetscErrorCode OrderedLook(Mat A, const Mat_SeqAIJHybridGPU *hyb, HybMultOrdered *o)
{
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (o->state == state && o->moves == hyb->moves) PetscFunctionReturn(PETSC_SUCCESS);
  o->worth    = (PetscBool)(o->products >= HybGlueState.options.multordered);
  o->products = 0;
  o->filled   = PETSC_FALSE;
  o->state    = state;
  o->moves    = hyb->moves;
  if (o->worth || !o->planned) PetscFunctionReturn(PETSC_SUCCESS);
  o->asked = o->planned = PETSC_FALSE; /* its memory is of no use now */
  PetscCall(HybSpMVDestroy(&o->plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who records launches in a graph may replay them with other values, and waits for nothing meanwhile */
static PetscErrorCode OrderedFill(Mat A, const HybMultPlan *p, const HybCSR *csr, HybMultOrdered *o)
{
  PetscFunctionBegin;
  if (!o->asked) {
    PetscCall(HybSpMVOrderUp(&p->plan, csr, &o->plan, &o->planned));
    o->asked = PETSC_TRUE;
    if (o->planned) PetscCall(PetscInfo(A, "Products with a vector have a copy of the values, %" PetscInt_FMT " x %" PetscInt_FMT ", in the order of the products %s: %g MB\n", csr->m, csr->n, o->plan.method->name, 1e-6 * (double)o->plan.keep.bytes));
  }
  if (!o->planned) PetscFunctionReturn(PETSC_SUCCESS);
  o->plan.exec.stream = p->plan.exec.stream;
  if (!o->filled) PetscCall(HybSpMVOrder(&p->plan, csr, &o->plan));
  o->filled = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *by: what does the next product with A's arrays on the device, csr, whose plan is p */
PetscErrorCode HybMultOrderedNext(const HybView *v, const HybCSR *csr, HybMultPlan *p, HybSpMV **by)
{
  const PetscInt after = HybGlueState.options.multordered;

  PetscFunctionBegin;
  *by = &p->plan;
  if (!after || p->onceonly || csr->nnz < HybTuningGet()->ordered_fewest || v->x.backend->recording(&v->x)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!p->ordered) PetscCall(PetscNew(&p->ordered));
  PetscCall(OrderedLook(v->A, v->hyb, p->ordered));
  if (p->ordered->worth || p->ordered->products >= after) PetscCall(OrderedFill(v->A, p, csr, p->ordered));
  p->ordered->products++;
  if (p->ordered->filled) *by = &p->ordered->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetOrdered(Mat A, const HybCSR *csr, const HybSpMV *plan, HybSpMV **ordered)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybMultPlan         *p;

  PetscFunctionBegin;
  *ordered = NULL;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  p = &hyb->device;
  if (plan != &p->plan || !p->ordered) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(OrderedLook(A, hyb, p->ordered));
  if (!p->ordered->planned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(OrderedFill(A, p, csr, p->ordered));
  *ordered = &p->ordered->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}
