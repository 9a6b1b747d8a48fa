/* Row costs: against counting by hand. */
#include "hybtest.h"
#include <aijhybridgpu/private/hybplan.h>
#include <stdlib.h>
#include <string.h>

static HybArena keep, work;

static PetscErrorCode Reset(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from a row's first column to its last */
static PetscInt Width(const RefMat *A, PetscInt r)
{
  return A->csr.i[r] < A->csr.i[r + 1] ? A->csr.j[A->csr.i[r + 1] - 1] - A->csr.j[A->csr.i[r]] : 0;
}

static void Products(const RefMat *A, const RefMat *B)
{
  const HybExec *exec = HybTestExec();
  PetscCount    *expected, *there, total = 0, lower = 0, maxrow = 0;
  PetscInt       maxarow = 0, maxbrow = 0, alike = 0;
  HybCSR         DA, DB;
  HybPlanStats   stats, again;

  expected = (PetscCount *)RefAlloc(A->csr.m, sizeof(PetscCount));
  total    = RefProducts(A, B, expected);
  for (PetscInt r = 0; r < A->csr.m; r++) {
    PetscInt longest = 0, back = 1;

    while (back <= 3 && back <= r && !(A->csr.i[r - back + 1] - A->csr.i[r - back] == A->csr.i[r + 1] - A->csr.i[r] && Width(A, r - back) == Width(A, r))) back++;
    alike += back <= 3 && back <= r;
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) longest = PetscMax(longest, B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]]);
    lower += longest;
    maxbrow = PetscMax(maxbrow, longest);
    maxarow = PetscMax(maxarow, A->csr.i[r + 1] - A->csr.i[r]);
    maxrow  = PetscMax(maxrow, expected[r]);
  }
  if (HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, &DB)) && HybTestCall(HybArenaAlloc(&keep, HYB_WORK(exec), (PetscCount)A->csr.m + HYB_PLAN_SPARE, sizeof(PetscCount), &there))) {
    HybTestCall(exec->backend->plan->products(exec, &work, &DA, &DB, there, &stats));
    HybTestSameCounts(A->csr.m, there, expected);
    HybTestCheck(stats.products == total && stats.lower == lower && stats.maxrow == maxrow, "products %td, lower bound %td, most in a row %td; expected %td, %td, %td", stats.products, stats.lower, stats.maxrow, total, lower, maxrow);
    HybTestCheck(stats.alike == alike, "%" PetscInt_FMT " rows are like one before, expected %" PetscInt_FMT, stats.alike, alike);
    HybTestCheck(stats.maxarow == maxarow && stats.maxbrow == maxbrow, "longest rows %" PetscInt_FMT " and %" PetscInt_FMT ", expected %" PetscInt_FMT " and %" PetscInt_FMT, stats.maxarow, stats.maxbrow, maxarow, maxbrow);
    HybTestCall(exec->backend->plan->products(exec, &work, &DA, &DB, NULL, &again));
    HybTestCheck(again.products == total && again.lower == lower && again.maxrow == maxrow, "without room for the rows: %td, %td, %td", again.products, again.lower, again.maxrow);
  }
  HybTestCall(Reset(NULL));
  free(expected);
}

static RefMat FaultA;

static PetscErrorCode Fault(void *ctx)
{
  const HybExec *exec = HybTestExec();
  PetscCount    *cost;
  HybCSR         DA;
  HybPlanStats   stats;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &FaultA.csr, &DA));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), (PetscCount)DA.m + HYB_PLAN_SPARE, sizeof(PetscCount), &cost));
  PetscCall(exec->backend->plan->products(exec, &work, &DA, &DA, cost, &stats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void LongRows(void)
{
  /* of a row, by the rows' mean length; 64 entries to a lane are what they take */
  const PetscInt lanes[] = {2, 4, 8, 32};
  RefMat         A, B;

  HybTestBegin("rows of A about the length from which one gets a block");
  for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(lanes); w++) {
    const PetscInt most = 64 * lanes[w], mean[] = {3, 12, 30, 90};
    PetscInt       lengths[900];

    for (int r = 0; r < 900; r++) lengths[r] = r % 3 ? mean[w] : mean[w] - 1;
    lengths[5] = lengths[6] = most - 1;
    lengths[60]             = most;
    lengths[61]             = most + 1;
    lengths[127] = lengths[128] = most + 500;
    lengths[899]                = most + 1;
    HybTestMatLengths(900, 3000, lengths, &A);
    HybTestCheck(A.csr.nnz / 900 > (w == 3 ? 40 : w == 2 ? 16
                                                : w == 1 ? 8
                                                         : 0) &&
                   A.csr.nnz / 900 <= (w == 3 ? 1000 : w == 2 ? 40
                                                     : w == 1 ? 16
                                                              : 8),
                 "%" PetscInt_FMT " entries a row are another kernel's", (PetscInt)(A.csr.nnz / 900));
    HybTestMatRandom(3000, 60, 0, 4, &B);
    Products(&A, &B);
    RefMatDestroy(&B);
    RefTranspose(&A, PETSC_FALSE, &B);
    Products(&B, &A); /* short rows that meet long ones */
    RefMatDestroy(&A, &B);
  }
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();
  char           name[64];
  RefMat         A, B;

  PetscFunctionBegin;
  if (!exec->backend->plan) {
    HybTestBegin("plan");
    HybTestSkip("the %s backend has no plan", exec->backend->name);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybTestArenas(exec, &keep, &work));
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    HybTestBegin("products of %s with its transpose", name);
    RefTranspose(&A, PETSC_FALSE, &B);
    Products(&A, &B);
    RefMatDestroy(&B);
    HybTestBegin("products of %s with a matrix of uneven rows", name);
    HybTestMatPowerLaw(A.csr.n, 50, 5, &B);
    Products(&A, &B);
    RefMatDestroy(&A, &B);
  }
  LongRows();
  HybTestBegin("more products than 32 bits count");
  {
    /* a dense column times a dense row, many times over: A is m x k full, B is k x n full */
    const PetscInt m = HybTestSize(1500, 64), k = HybTestSize(1500, 64);

    HybTestMatBanded(m, k, m, k, &A);
    HybTestMatBanded(k, m, m, k, &B);
    Products(&A, &B);
    HybTestCheck(HybTestSlow() || RefProducts(&A, &B, NULL) > 2147483647, "too small a test");
    RefMatDestroy(&A, &B);
  }

  HybTestBegin("every allocation of a plan failing in turn");
  HybTestMatRandom(200, 200, 0, 12, &FaultA);
  HybTestFaults(Fault, Reset, NULL);
  RefMatDestroy(&FaultA);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
