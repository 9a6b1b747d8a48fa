/*
  spmv.c: z = A x, y + A x or y - A x. The driver chooses a method of the backend's table, keeps the plan of one
  pattern, and checks what every method relies on.

  Choice. A name runs that method or is an error. "auto" asks the methods in the order of methods.h and takes the first
  that looks at the matrix and says yes; each method documents its own rule. Where one application is all that there
  will be, a plan that costs one to three of them does not pay, and those are asked that do with next to none.
*/
#include <aijhybridgpu/private/hybspmv.h>

#define HYB_ROOM    SpMV
#define HYB_METHODS "../spmv/methods.h"
#include "../device/methodtable.h"

PetscErrorCode HybSpMVInit(HybSpMV *mv, const HybExec *exec, const char *method, PetscInt bs)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(mv, sizeof(*mv)));
  mv->exec = *exec;
  mv->bs   = bs;
  mv->keep = HybArenaOn(exec);
  mv->work = HybArenaOn(exec);
  PetscCheck(bs >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A block size is at least 1, not %" PetscInt_FMT, bs);
  PetscCall(HybMethodName(exec->backend->spmv, "SpMV", exec->backend->name, method, mv->name, sizeof(mv->name)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVForget(HybSpMV *mv)
{
  PetscErrorCode first = PETSC_SUCCESS, second;

  PetscFunctionBegin;
  if (mv->method && mv->method->destroy) first = mv->method->destroy(mv);
  mv->method     = NULL;
  mv->data       = NULL;
  mv->calls      = 0;
  mv->counters.n = 0;
  second         = HybArenaResetBoth(&mv->work, &mv->keep);
  PetscCall(first);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_Inner(HybSpMV *mv, const HybCSR *A)
{
  const HybExec  *exec = &mv->exec;
  const PetscBool once = (PetscBool)(mv->once && exec->backend->device); /* the host's plans cost nothing to speak of */

  PetscFunctionBegin;
  if (strcmp(mv->name, "auto"))
    PetscCall(HybSpMVFind(exec->backend->spmv, exec->backend->name, mv->name, &mv->method));
  else {
    for (const HybSpMVMethod *const *table = exec->backend->spmv; table && *table && !mv->method; table++) {
      PetscErrorCode (*ask)(HybSpMV *, const HybCSR *, PetscBool *) = once ? (*table)->fitsonce : (*table)->fits;
      PetscBool fits                                                = (PetscBool)!once;

      if (ask) PetscCall(ask(mv, A, &fits));
      if (fits) mv->method = *table;
    }
    PetscCheck(mv->method, PETSC_COMM_SELF, PETSC_ERR_SUP, "No SpMV method of the %s backend takes this matrix", exec->backend->name);
  }
  if (mv->method->setup) PetscCall(mv->method->setup(mv, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static uint64_t SpMVSetUps; /* of the process */

PetscErrorCode HybSpMVSetUp(HybSpMV *mv, const HybCSR *A)
{
  PetscErrorCode ierr, second;

  PetscFunctionBegin;
  PetscCheck(A->m % mv->bs == 0 && A->n % mv->bs == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The block size %" PetscInt_FMT " does not divide the matrix, %" PetscInt_FMT " x %" PetscInt_FMT, mv->bs, A->m, A->n);
  PetscCall(HybCheckEntries(&mv->exec, A->nnz, "The matrix"));
  PetscCall(HybSpMVForget(mv));
  mv->number = ++SpMVSetUps;
  ierr       = HybSpMVSetUp_Inner(mv, A);
  second     = HybArenaReset(&mv->work);
  if (ierr) (void)HybSpMVForget(mv);
  PetscCall(ierr);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpMVApply(HybSpMV *mv, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscErrorCode ierr, second = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCheck(mv->method, PETSC_COMM_SELF, PETSC_ERR_ORDER, "HybSpMVSetUp() comes before HybSpMVApply()");
  PetscCheck(A->a || !A->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "A product with a vector needs the values of the matrix");
  PetscCheck(mode == HYB_SPMV_SET || y || !A->m, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "y + A x and y - A x need a vector y");
  if (!A->m) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = mv->method->apply(mv, A, x, mode, y, z);
  if (mv->work.blocks) second = HybArenaReset(&mv->work);
  PetscCall(ierr);
  PetscCall(second);
  mv->calls++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybSpMVHasStep(const HybSpMV *mv)
{
  return (PetscBool)(mv->method && mv->method->step);
}

PetscErrorCode HybSpMVApplyStep(HybSpMV *mv, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscErrorCode ierr, second = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCheck(HybSpMVHasStep(mv), PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method %s has no smoother's step", mv->method ? mv->method->name : "of no set-up");
  PetscCheck(A->m == A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A smoother's step is for square matrices, not one of %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n);
  PetscCheck(!step->first || HybSpMVTakesFirst(mv), PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method %s makes no first step within another one", mv->method->name);
  PetscCheck(A->a || !A->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "A product with a vector needs the values of the matrix");
  if (!A->m) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = mv->method->step(mv, A, x, step);
  if (mv->work.blocks) second = HybArenaReset(&mv->work);
  PetscCall(ierr);
  PetscCall(second);
  mv->calls++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpMVOrderUp(const HybSpMV *plan, const HybCSR *A, HybSpMV *ordered, PetscBool *fits)
{
  PetscErrorCode ierr, second;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscCheck(plan->method, PETSC_COMM_SELF, PETSC_ERR_ORDER, "HybSpMVSetUp() comes before HybSpMVOrderUp()");
  if (!plan->method->orderup || !A->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybSpMVInit(ordered, &plan->exec, "auto", plan->bs));
  ordered->number = ++SpMVSetUps;
  ordered->half   = plan->half;
  ierr            = plan->method->orderup(plan, A, ordered, fits);
  second          = HybArenaReset(&ordered->work);
  if (ierr || second) *fits = PETSC_FALSE;
  if (!*fits) {
    const PetscErrorCode later = HybSpMVForget(ordered);

    if (!second) second = later;
  }
  PetscCall(ierr);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpMVOrder(const HybSpMV *plan, const HybCSR *A, HybSpMV *ordered)
{
  PetscFunctionBegin;
  PetscCheck(plan->method && plan->method->order && ordered->method, PETSC_COMM_SELF, PETSC_ERR_ORDER, "HybSpMVOrderUp() comes before HybSpMVOrder()");
  PetscCheck(A->a || !A->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "A copy of the values needs them");
  PetscCall(plan->method->order(plan, A, ordered));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybSpMVHasAmend(const HybSpMV *mv)
{
  return (PetscBool)(mv->method && mv->method->amend);
}

PetscErrorCode HybSpMVAmend(HybSpMV *mv, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCheck(HybSpMVHasAmend(mv), PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method %s amends no smoother's step", mv->method ? mv->method->name : "of no set-up");
  PetscCheck(A->a || !A->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "A product with a vector needs the values of the matrix");
  if (!A->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(mv->method->amend(mv, A, x, step));
  mv->calls++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybSpMVLeaves(const HybSpMV *mv)
{
  return (PetscBool)(mv->method && mv->method->leaves);
}

PetscBool HybSpMVTakesFirst(const HybSpMV *mv)
{
  return (PetscBool)(mv->method && mv->method->takesfirst);
}

PetscBool HybSpMVBegins(const HybSpMV *mv)
{
  return (PetscBool)(mv->method && mv->method->begins && mv->method->begins(mv));
}

int HybSpMVLanes(const HybSpMV *mv)
{
  return mv->method && mv->method->lanes ? mv->method->lanes(mv) : 0;
}

PetscErrorCode HybSpMVDestroy(HybSpMV *mv)
{
  PetscFunctionBegin;
  /* all zero: never initialized */
  if (mv->exec.backend) PetscCall(HybSpMVForget(mv));
  PetscFunctionReturn(PETSC_SUCCESS);
}
