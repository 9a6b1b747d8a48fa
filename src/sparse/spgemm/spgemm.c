/*
  spgemm.c: C = A*B. The driver checks the operands, asks the plan for the costs, chooses a method of the backend's
  table and keeps the books (arenas, counters); the method does the rest.

  Choice. A name runs that method or is an error. "auto" asks the methods in the order of methods.h, those that need no
  costs before these are counted, and takes the first that is applicable and, where only a look at the entries tells,
  finds there what it is made for; each method documents its own rule. A first product may wait for the device
  HYB_SPGEMM_WAITS times: costs are counted once, at the first question to them, by whoever has a copy to wait for
  anyway; a question that would leave no wait for the count of C is not taken. One wait more is had by products of long
  rows in which a sample found no blocks (diagonal/diagonal.cu). Where the caller gives a block size, a method of blocks
  is asked first of all: it has nothing to sample, only to prove.

  Too many nonzeros for PetscInt. The number of products says nothing: it exceeds the number of nonzeros by the
  compression ratio. What is known before any work is a lower bound, sum over the rows of A of the longest row of B that
  each touches, and a product beyond it is refused at once; otherwise the methods count exactly and refuse on the count,
  before they allocate C.
*/
#include <aijhybridgpu/private/hybspgemm.h>

#define HYB_ROOM    SpGEMM
#define HYB_METHODS "../spgemm/methods.h"
#include "../device/methodtable.h"

PetscErrorCode HybSpGEMMInit(HybSpGEMM *mm, const HybExec *exec, const char *method, PetscInt width)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(mm, sizeof(*mm)));
  mm->exec  = *exec;
  mm->width = width;
  mm->keep  = HybArenaOn(exec);
  mm->work  = HybArenaOn(exec);
  PetscCheck(!width || (width >= 2 && width <= 32), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The width of row merging must be within 2..32 or 0 (the method chooses), not %" PetscInt_FMT, width);
  PetscCall(HybMethodName(exec->backend->spgemm, "SpGEMM", exec->backend->name, method, mm->name, sizeof(mm->name)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMForget(HybSpGEMM *mm)
{
  PetscErrorCode first = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (mm->method && mm->method->destroy) first = mm->method->destroy(mm);
  mm->method      = NULL;
  mm->data        = NULL;
  mm->rowproducts = NULL;
  mm->permutation = NULL;
  mm->part        = NULL;
  mm->parts = mm->hascut = mm->columnsgone = PETSC_FALSE;
  mm->counted = mm->planned = mm->permutes = mm->placed = PETSC_FALSE;
  mm->numerics                                          = 0;
  mm->spent                                             = 0;
  mm->due                                               = PETSC_FALSE;
  mm->counters.n                                        = 0;
  PetscCall(HybErrorFirst(first, HybArenaResetBoth(&mm->work, &mm->keep)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it this method? found: asked for by name, which `fits` alone can refuse. */
static PetscErrorCode HybSpGEMMAsk(HybSpGEMM *mm, const HybSpGEMMMethod *method, const HybSpGEMMMethod *found, const HybCSR *A, const HybCSR *B)
{
  PetscBool fits = PETSC_TRUE;

  PetscFunctionBegin;
  if (!found && method->applicable) PetscCall(method->applicable(mm, A, B, &fits));
  if (fits && method->fits) {
    fits = PETSC_FALSE;
    if (found || mm->waits <= HYB_SPGEMM_WAITS - 2) PetscCall(method->fits(mm, A, B, &fits));
    if (!fits) { /* it makes room before the next method starts */
      mm->data = NULL;
      PetscCall(HybArenaReset(&mm->keep));
    }
  }
  PetscCheck(fits || !found, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpGEMM method %s cannot run: a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix of %" PetscInt64_FMT " and %" PetscInt64_FMT " nonzeros have not the patterns that it is made for; choose another method, or auto", method->name, A->m, A->n, B->m, B->n, (PetscInt64)A->nnz, (PetscInt64)B->nnz);
  if (fits) mm->method = method;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest size of whole blocks that a method may know of which the given one is a multiple; 0: none */
static PetscInt HybSpGEMMGivenSize(PetscInt bs)
{
  static const PetscInt sizes[] = {8, 6, 5, 4, 3, 2};

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++)
    if (bs > 1 && bs % sizes[k] == 0) return sizes[k];
  return 0;
}

/* Methods of blocks, where the caller gives their size. One that finds nothing to prove is asked again in its turn. */
static PetscErrorCode HybSpGEMMAskGiven(HybSpGEMM *mm, const HybSpGEMMMethod *found, const HybCSR *A, const HybCSR *B)
{
  const PetscInt bs = HybSpGEMMGivenSize(mm->blocksize);

  PetscFunctionBegin;
  if (!bs) PetscFunctionReturn(PETSC_SUCCESS);
  mm->blocksizes = (PetscInt)1 << bs;
  for (const HybSpGEMMMethod *const *table = mm->exec.backend->spgemm; table && *table && !mm->method; table++) {
    if ((*table)->blocks && (!found || found == *table)) PetscCall(HybSpGEMMAsk(mm, *table, found, A, B));
  }
  /* refused: no wait is left for smaller ones */
  if (!mm->method) mm->blocksizes = mm->waits ? 0 : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The products of each row, unless a `fits` has counted them */
static PetscErrorCode HybSpGEMMCosts(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B)
{
  PetscFunctionBegin;
  if (!mm->counted) {
    if (!mm->rowproducts) PetscCall(HybArenaAlloc(&mm->work, HYB_WORK(&mm->exec), (PetscCount)A->m + HYB_PLAN_SPARE, sizeof(PetscCount), &mm->rowproducts));
    PetscCall(mm->exec.backend->plan->products(&mm->exec, &mm->work, A, B, mm->rowproducts, &mm->stats));
    mm->counted = PETSC_TRUE;
    mm->waits++;
  }
  PetscCall(HybSpGEMMCheckCount(&mm->exec, A, B, mm->stats.lower, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_Inner(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec         *exec  = &mm->exec;
  const HybSpGEMMMethod *found = NULL; /* by name */

  PetscFunctionBegin;
  PetscCall(HybSpGEMMCheckCount(exec, A, B, 0, PETSC_TRUE)); /* the operands' own */
  PetscCall(PetscMemzero(&mm->stats, sizeof(mm->stats)));
  mm->waits      = 0;
  mm->blocksizes = -1;
  mm->reads      = HYB_SPGEMM_READS_ALL;
  if (strcmp(mm->name, "auto")) PetscCall(HybSpGEMMFind(exec->backend->spgemm, exec->backend->name, mm->name, &found));
  PetscCall(HybSpGEMMAskGiven(mm, found, A, B));
  for (int early = 1; early >= 0 && !mm->method; early--) {
    if (!early) PetscCall(HybSpGEMMCosts(mm, A, B));
    for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table && !mm->method; table++) {
      if ((*table)->early == (PetscBool)early && (!found || found == *table)) PetscCall(HybSpGEMMAsk(mm, *table, found, A, B));
    }
  }
  PetscCheck(mm->method, PETSC_COMM_SELF, PETSC_ERR_SUP, "No SpGEMM method of the %s backend takes these operands", exec->backend->name);
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
  PetscCall(HybErrorFirst(ierr, second));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* says nothing of an error of which it is not known yet whether it is one; the first words are kept */
static PetscErrorCode HybSpGEMMListen(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) (void)PetscStrncpy((char *)ctx, mess, 256);
  return n;
}

PetscErrorCode HybSpGEMMPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C)
{
  PetscErrorCode ierr, second;
  char           words[256] = "";

  PetscFunctionBegin;
  PetscCheck(mm->method, PETSC_COMM_SELF, PETSC_ERR_ORDER, "HybSpGEMMSymbolic() comes before HybSpGEMMPlan()");
  if (mm->planned || !(mm->reuse || mm->due)) PetscFunctionReturn(PETSC_SUCCESS);
  mm->planned = PETSC_TRUE; /* also after an error: there is a way without */
  if (!mm->method->plan) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPushErrorHandler(HybSpGEMMListen, words));
  ierr   = mm->method->plan(mm, A, B, C);
  second = HybArenaReset(&mm->work);
  PetscCall(PetscPopErrorHandler());
  if (ierr == PETSC_ERR_MEM) {
    PetscCall(HybCountersAdd(&mm->counters, "plans without room", 1));
    PetscCall(PetscInfo(NULL, "Memory is short: numeric phases of the SpGEMM method %s go without their plan (%s)\n", mm->method->name, words));
    ierr = PETSC_SUCCESS;
  }
  PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "The plan of numeric phases of the SpGEMM method %s cannot be made: %s", mm->method->name, words);
  PetscCall(second);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A numeric phase has ended well. Does the next one make the plan? Where nobody has said that phases follow, those
   without it have cost as much as it will: whatever their number is in the end, the sum is at most twice the better of
   "at once" and "never". */
static void HybSpGEMMPhaseEnded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C)
{
  const PetscInt after = HybTuningGet()->plan_after;
  PetscReal      plan = 0, phase = 0;

  mm->numerics++;
  mm->due = PETSC_FALSE;
  if (mm->planned || !mm->method->plan) return;
  if (mm->method->plancost) (*mm->method->plancost)(mm, A, B, C, &plan, &phase);
  mm->spent += phase;
  mm->due = (PetscBool)(after >= 0 ? mm->numerics >= after : mm->spent >= plan);
}

PetscErrorCode HybSpGEMMNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(mm->method, PETSC_COMM_SELF, PETSC_ERR_ORDER, "HybSpGEMMSymbolic() comes before HybSpGEMMNumeric()");
  PetscCheck(A->n == B->m && A->m == C->m && B->n == C->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands do not conform: %" PetscInt_FMT " x %" PetscInt_FMT " times %" PetscInt_FMT " x %" PetscInt_FMT " into %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n, B->m, B->n, C->m, C->n);
  PetscCheck((A->a || !A->nnz) && (B->a || !B->nnz) && (C->a || !C->nnz), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The numeric phase needs the values of both operands and room for those of the product");
  PetscCheck(!mm->permutation || mm->permutes, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The SpGEMM method %s does not take values by a permutation", mm->method->name);
  if (!mm->part) {
    mm->unwritten      = C->a;
    mm->unwrittenbytes = (size_t)C->nnz * sizeof(HybScalar);
  }
  ierr               = HybSpGEMMPlan(mm, A, B, C);
  mm->unwritten      = NULL;
  mm->unwrittenbytes = 0;
  PetscCall(ierr);
  ierr = mm->method->numeric(mm, A, B, C);
  if (!ierr) HybSpGEMMPhaseEnded(mm, A, B, C);
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&mm->work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMDestroy(HybSpGEMM *mm)
{
  PetscFunctionBegin;
  /* all zero: never initialized */
  if (mm->exec.backend) PetscCall(HybSpGEMMForget(mm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
