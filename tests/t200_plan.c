/* Row costs and bins: against counting by hand. */
#include "hybtest.h"
#include <aijhybridgpu/private/hybplan.h>
#include <stdlib.h>
#include <string.h>

static HybArena keep, work;

static PetscErrorCode Reset(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&keep));
  PetscCall(HybArenaReset(&work));
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

static void Bins(PetscInt m, const PetscCount *cost, PetscInt nbins, const PetscCount *limit)
{
  const HybExec *exec  = HybTestExec();
  PetscInt      *order = (PetscInt *)RefAlloc(m, sizeof(PetscInt)), *there, *ptr = (PetscInt *)RefAlloc(nbins + 1, sizeof(PetscInt)), *binptr = (PetscInt *)RefAlloc(nbins + 1, sizeof(PetscInt)), n = 0;
  PetscCount    *dcost;

  for (PetscInt b = 0; b < nbins; b++) {
    for (PetscInt r = 0; r < m; r++) {
      if ((b == 0 || cost[r] > limit[b - 1]) && (b == nbins - 1 || cost[r] <= limit[b])) order[n++] = r;
    }
    ptr[b + 1] = n;
  }
  for (PetscInt b = 0; b <= nbins; b++) binptr[b] = -1;
  if (HybTestCall(HybTestUploadArray(&keep, m, sizeof(PetscCount), cost, &dcost)) && HybTestCall(HybArenaAlloc(&keep, HYB_WORK(exec), m, sizeof(PetscInt), &there))) {
    HybTestCall(exec->backend->plan->bins(exec, &work, m, dcost, nbins, limit, there, binptr));
    HybTestCheck(!memcmp(binptr, ptr, ((size_t)nbins + 1) * sizeof(PetscInt)), "bins start elsewhere");
    HybTestSameInts(m, there, order);
  }
  HybTestCall(Reset(NULL));
  free(order);
  free(ptr);
  free(binptr);
}

static RefMat FaultA;

static PetscErrorCode Fault(void *ctx)
{
  const HybExec   *exec     = HybTestExec();
  const PetscCount limit[3] = {1, 8, 64};
  PetscInt         binptr[5], *order;
  PetscCount      *cost;
  HybCSR           DA;
  HybPlanStats     stats;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &FaultA.csr, &DA));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), (PetscCount)DA.m + HYB_PLAN_SPARE, sizeof(PetscCount), &cost));
  PetscCall(HybArenaAlloc(&keep, HYB_WORK(exec), DA.m, sizeof(PetscInt), &order));
  PetscCall(exec->backend->plan->products(exec, &work, &DA, &DA, cost, &stats));
  PetscCall(exec->backend->plan->bins(exec, &work, DA.m, cost, 4, limit, order, binptr));
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
    RefMatDestroy(&A);
    RefMatDestroy(&B);
  }
}

static void Limits(void)
{
  static const PetscInt sizes[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1023, 1025, 5000, 40000};

  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes); s++) {
    const PetscInt m    = sizes[s] > 5000 && HybTestSlow() ? 6001 : sizes[s];
    PetscCount    *cost = (PetscCount *)RefAlloc(m, sizeof(PetscCount));

    for (PetscInt nbins = 1; nbins <= 63; nbins = 2 * nbins + 1) {
      PetscCount limit[64];

      HybTestBegin("%" PetscInt_FMT " rows into %" PetscInt_FMT " bins", m, nbins);
      for (PetscInt b = 0; b + 1 < nbins; b++) limit[b] = b ? 2 * limit[b - 1] + 1 : 0;
      /* costs at the limits, one off, and far beyond 32 bits */
      for (PetscInt r = 0; r < m; r++) {
        const PetscInt kind = HybTestRandomInt(0, 8);

        cost[r] = nbins > 1 ? limit[HybTestRandomInt(0, nbins - 1)] + HybTestRandomInt(0, 3) - 1 : HybTestRandomInt(0, 100);
        if (cost[r] < 0) cost[r] = 0;
        if (kind == 0) cost[r] = (PetscCount)5000000000 + r;
        if (kind == 1) cost[r] = 0;
      }
      Bins(m, cost, nbins, limit);
      for (PetscInt r = 0; r < m; r++) cost[r] = 7;
      Bins(m, cost, nbins, limit);
    }
    free(cost);
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
  PetscCall(HybArenaInit(&keep, exec));
  PetscCall(HybArenaInit(&work, exec));
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    HybTestBegin("products of %s with its transpose", name);
    RefTranspose(&A, PETSC_FALSE, &B);
    Products(&A, &B);
    RefMatDestroy(&B);
    HybTestBegin("products of %s with a matrix of uneven rows", name);
    HybTestMatPowerLaw(A.csr.n, 50, 5, &B);
    Products(&A, &B);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
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
    RefMatDestroy(&A);
    RefMatDestroy(&B);
  }
  Limits();
  HybTestBegin("limits that do not ascend are refused");
  {
    const PetscCount limit[2] = {5, 5};
    PetscCount       cost     = 1;
    PetscInt         order, binptr[4];

    HybTestCallFails(PETSC_ERR_ARG_INCOMP, exec->backend->plan->bins(exec, &work, 1, &cost, 3, limit, &order, binptr));
    HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, exec->backend->plan->bins(exec, &work, 1, &cost, 0, limit, &order, binptr));
  }

  HybTestBegin("every allocation of a plan failing in turn");
  HybTestMatRandom(200, 200, 0, 12, &FaultA);
  HybTestFaults(Fault, Reset, NULL);
  RefMatDestroy(&FaultA);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
