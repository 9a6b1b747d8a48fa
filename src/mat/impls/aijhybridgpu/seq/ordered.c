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

PetscErrorCode HybMatOrderedLook(Mat A, PetscBool always, PetscCount after, HybMatOrdered *o)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscObjectState     state;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (o->state == state && o->moves == hyb->moves) PetscFunctionReturn(PETSC_SUCCESS);
  o->worth  = (PetscBool)(always || (after && o->used >= after));
  o->used   = 0;
  o->filled = PETSC_FALSE;
  o->state  = state;
  o->moves  = hyb->moves;
  if (o->planned && !o->worth) PetscCall(HybMatOrderedForget(o)); /* its memory is of no use now */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatOrderedFill(Mat A, const char *who, const HybSpMV *plan, const HybCSR *csr, HybMatOrdered *o)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!o->asked) {
    o->asked = PETSC_TRUE;
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVOrderUp(plan, csr, &o->plan, &o->planned);
    PetscCall(PetscPopErrorHandler());
    if (ierr == PETSC_ERR_MEM)
      PetscCall(PetscInfo(A, "Memory is short. %s no copy of the values\n", who));
    else
      PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "A copy of the values, %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros, cannot be planned; -mat_aijhybridgpu_tuning mult_ordered=0,ordered=0 goes without", csr->m, csr->n, (PetscInt64)csr->nnz);
    if (o->planned) PetscCall(PetscInfo(A, "%s a copy of the values, %" PetscInt_FMT " x %" PetscInt_FMT ", in the order of the products %s: %g MB\n", who, csr->m, csr->n, o->plan.method->name, 1e-6 * (double)o->plan.keep.bytes));
  }
  if (!o->planned) PetscFunctionReturn(PETSC_SUCCESS);
  o->plan.exec.stream = plan->exec.stream;
  if (!o->filled) PetscCall(HybSpMVOrder(plan, csr, &o->plan));
  o->filled = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define ORDERED_WHO "Products with a vector have"

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
  PetscCall(HybMatOrderedLook(v->A, PETSC_FALSE, after, p->ordered));
  if (p->ordered->worth || p->ordered->used >= after) PetscCall(HybMatOrderedFill(v->A, ORDERED_WHO, &p->plan, csr, p->ordered));
  p->ordered->used++;
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
  PetscCall(HybMatOrderedLook(A, PETSC_FALSE, HybGlueState.options.multordered, p->ordered));
  if (!p->ordered->planned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatOrderedFill(A, ORDERED_WHO, &p->plan, csr, p->ordered));
  *ordered = &p->ordered->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}
