/*
  A large matrix's values a second time on the device, in the order in which the kernel of its products with vectors
  reads them (HybSpMVOrderUp()). A product takes 13 to 20 % less time then, with the same bits.

  To make the copy takes what 15 to 35 products gain, and twice that where the device's memory pool has to grow. So it
  is made when 24 have been done by one plan with the same values, and at once where the values before these had as
  many; it is made again for other values, and goes where these are not applied as often. Multigrid's cycle uses the
  matrix's copy where there is one.

  Memory: 8 to 12 bytes a nonzero, from what is to spare.
*/
#include "seq.h"
#include "../storage/where.h"

/* Where A has other values than at the last look: whether those were applied often is noted, and their copy is old */
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

/* Has A a copy of these values? Memory that is short is no error: products go on without. */
static PetscErrorCode OrderedFill(Mat A, const HybMultPlan *p, const HybCSR *csr, HybMultOrdered *o)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!o->asked) {
    o->asked = PETSC_TRUE;
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVOrderUp(&p->plan, csr, &o->plan, &o->planned);
    PetscCall(PetscPopErrorHandler());
    if (ierr == PETSC_ERR_MEM)
      PetscCall(PetscInfo(A, "Memory is short: products with a vector go without a copy of the values\n"));
    else
      PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "A copy of the values, %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros, cannot be planned; -mat_aijhybridgpu_tuning mult_ordered=0 goes without", csr->m, csr->n, (PetscInt64)csr->nnz);
    if (o->planned) PetscCall(PetscInfo(A, "Products with a vector have a copy of the values, %" PetscInt_FMT " x %" PetscInt_FMT ", in the order of the products %s: %g MB\n", csr->m, csr->n, o->plan.method->name, 1e-6 * (double)o->plan.keep.bytes));
  }
  if (!o->planned) PetscFunctionReturn(PETSC_SUCCESS);
  o->plan.exec.stream = p->plan.exec.stream;
  if (!o->filled) PetscCall(HybSpMVOrder(&p->plan, csr, &o->plan));
  o->filled = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not where values may change unseen, in memory that the host writes and no door of ours tells of it; nor where
   launches are recorded in a graph, which may be run with other values, and meanwhile nothing is done */
static PetscBool OrderedMay(Mat A, const Mat_SeqAIJHybridGPU *hyb, const HybExec *x)
{
  return (PetscBool)((!HybShared(hyb) || HybDoorIsOurs(A)) && !x->backend->recording(x));
}

/* *by: what does the next product with A's arrays on the device, csr, whose plan is p */
PetscErrorCode HybMultOrderedNext(const HybView *v, const HybCSR *csr, HybMultPlan *p, HybSpMV **by)
{
  const PetscInt after = HybGlueState.options.multordered;

  PetscFunctionBegin;
  *by = &p->plan;
  if (!after || p->onceonly || csr->nnz < HybTuningGet()->ordered_fewest || !OrderedMay(v->A, v->hyb, &v->x)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!p->ordered) PetscCall(PetscNew(&p->ordered));
  PetscCall(OrderedLook(v->A, v->hyb, p->ordered));
  if (p->ordered->worth || p->ordered->products >= after) PetscCall(OrderedFill(v->A, p, csr, p->ordered));
  if (p->ordered->products < after) p->ordered->products++;
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
  if (plan != &p->plan || !p->ordered || !OrderedMay(A, hyb, &p->plan.exec)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(OrderedLook(A, hyb, p->ordered));
  if (!p->ordered->planned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(OrderedFill(A, p, csr, p->ordered));
  *ordered = &p->ordered->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}
