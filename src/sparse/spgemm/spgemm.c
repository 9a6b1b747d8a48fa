/*
  spgemm.c: C = A*B. The driver checks the operands, asks the plan for the costs, chooses a method of the backend's
  table and keeps the books (arenas, counters); the method does the rest.

  Choice. A name runs that method or is an error. "auto" asks the methods in the order of methods.h and takes the first
  that says it is applicable; each method documents its own rule. Methods that need no costs are asked before these are
  counted.

  Too many nonzeros for PetscInt. The number of products says nothing: it exceeds the number of nonzeros by the
  compression ratio. What is known before any work is a lower bound, sum over the rows of A of the longest row of B that
  each touches, and a product beyond it is refused at once; otherwise the methods count exactly and refuse on the count,
  before they allocate C.
*/
#include <aijhybridgpu/private/hybspgemm.h>

#define HYB_METHOD_HOST(name, symbol) extern const HybSpGEMMMethod symbol;
#define HYB_METHOD_CUDA(name, symbol)
#include "methods.h"
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

#define HYB_METHOD_HOST(name, symbol) &symbol,
#define HYB_METHOD_CUDA(name, symbol)
const HybSpGEMMMethod *const HybSpGEMMMethodsHost[] = {
#include "methods.h"
  NULL};
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

#define HYB_METHOD_HOST(name, symbol) name,
#define HYB_METHOD_CUDA(name, symbol) name,
static const char *const HybSpGEMMAllNames[] = {
#include "methods.h"
  NULL};
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

PetscErrorCode HybSpGEMMGetNames(const char *const **names)
{
  static const char *once[PETSC_STATIC_ARRAY_LENGTH(HybSpGEMMAllNames)];

  PetscFunctionBegin;
  HybMethodNames(HybSpGEMMAllNames, once);
  *names = once;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMFind(const HybExec *exec, const char *name, const HybSpGEMMMethod **method)
{
  const void *found;

  PetscFunctionBegin;
  PetscCall(HybMethodFind(exec->backend->spgemm, "SpGEMM", exec->backend->name, name, &found));
  *method = (const HybSpGEMMMethod *)found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMInit(HybSpGEMM *mm, const HybExec *exec, const char *method, PetscInt width)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(mm, sizeof(*mm)));
  mm->exec  = *exec;
  mm->width = width;
  PetscCall(HybArenaInit(&mm->keep, exec));
  PetscCall(HybArenaInit(&mm->work, exec));
  if (!method || !method[0]) method = "auto";
  PetscCheck(!width || (width >= 2 && width <= 32), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The width of row merging must be within 2..32 or 0 (the method chooses), not %" PetscInt_FMT, width);
  if (strcmp(method, "auto")) {
    const HybSpGEMMMethod *found;

    PetscCall(HybSpGEMMFind(exec, method, &found));
  }
  PetscCall(PetscStrncpy(mm->name, method, sizeof(mm->name)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMForget(HybSpGEMM *mm)
{
  PetscErrorCode first = PETSC_SUCCESS, ierr;

  PetscFunctionBegin;
  if (mm->method && mm->method->destroy) first = mm->method->destroy(mm);
  mm->method      = NULL;
  mm->data        = NULL;
  mm->rowproducts = NULL;
  mm->numerics    = 0;
  mm->counters.n  = 0;
  ierr            = HybArenaReset(&mm->work);
  if (!first) first = ierr;
  ierr = HybArenaReset(&mm->keep);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_Inner(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec         *exec  = &mm->exec;
  const HybSpGEMMMethod *found = NULL; /* by name */
  PetscBool              fits;

  PetscFunctionBegin;
  PetscCall(HybSpGEMMCheckCount(exec, A, B, 0, PETSC_TRUE)); /* the operands' own */
  PetscCall(PetscMemzero(&mm->stats, sizeof(mm->stats)));
  mm->waits      = 0;
  mm->blocksizes = -1;
  if (strcmp(mm->name, "auto")) PetscCall(HybSpGEMMFind(exec, mm->name, &found));
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table && !mm->method; table++) {
    if (!(*table)->early || (found && found != *table)) continue;
    PetscCall((*table)->applicable(mm, A, B, &fits));
    if (fits) mm->method = *table;
  }
  if (!mm->method) {
    if (!mm->rowproducts) {
      PetscCall(HybArenaAlloc(&mm->work, HYB_WORK(exec), A->m, sizeof(PetscCount), &mm->rowproducts));
      PetscCall(exec->backend->plan->products(exec, &mm->work, A, B, mm->rowproducts, &mm->stats));
      mm->waits++;
    }
    PetscCall(HybSpGEMMCheckCount(exec, A, B, mm->stats.lower, PETSC_TRUE));
    mm->method = found;
  }
  if (!found) {
    for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table && !mm->method; table++) {
      if ((*table)->early) continue;
      fits = PETSC_TRUE;
      if ((*table)->applicable) PetscCall((*table)->applicable(mm, A, B, &fits));
      if (fits) mm->method = *table;
    }
    PetscCheck(mm->method, PETSC_COMM_SELF, PETSC_ERR_SUP, "No SpGEMM method of the %s backend takes these operands", exec->backend->name);
  }
  PetscCall(mm->method->symbolic(mm, A, B, out, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMSymbolic(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  PetscErrorCode ierr, second;

  PetscFunctionBegin;
  PetscCheck(A->n == B->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands do not conform: %" PetscInt_FMT " x %" PetscInt_FMT " times %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n, B->m, B->n);
  PetscCall(HybSpGEMMForget(mm));
  PetscCall(PetscMemzero(C, sizeof(*C)));
  C->m            = A->m;
  C->n            = B->n;
  ierr            = HybSpGEMMSymbolic_Inner(mm, A, B, out, C);
  mm->rowproducts = NULL;
  second          = HybArenaReset(&mm->work);
  if (ierr) (void)HybSpGEMMForget(mm);
  PetscCall(ierr);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscErrorCode ierr, second;

  PetscFunctionBegin;
  PetscCheck(mm->method, PETSC_COMM_SELF, PETSC_ERR_ORDER, "HybSpGEMMSymbolic() comes before HybSpGEMMNumeric()");
  PetscCheck(A->n == B->m && A->m == C->m && B->n == C->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands do not conform: %" PetscInt_FMT " x %" PetscInt_FMT " times %" PetscInt_FMT " x %" PetscInt_FMT " into %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n, B->m, B->n, C->m, C->n);
  PetscCheck((A->a || !A->nnz) && (B->a || !B->nnz) && (C->a || !C->nnz), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The numeric phase needs the values of both operands and room for those of the product");
  ierr = mm->method->numeric(mm, A, B, C);
  if (!ierr) mm->numerics++;
  second = HybArenaReset(&mm->work);
  PetscCall(ierr);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMDestroy(HybSpGEMM *mm)
{
  PetscFunctionBegin;
  /* all zero: never initialized */
  if (mm->exec.backend) PetscCall(HybSpGEMMForget(mm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
