/* C = P^T A P by every fused method of the backend, against the reference and, to the bit, against the order of the stages. */
#include "hybtest.h"
#include <aijhybridgpu/private/hybptap.h>
#include <stdlib.h>
#include <string.h>

static HybArena             out, keep;
static const HybPtAPMethod *method;

static PetscErrorCode Init(HybPtAP *pp)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(pp, sizeof(*pp)));
  pp->exec   = *HybTestExec();
  pp->method = method;
  PetscCall(HybArenaInit(&pp->keep, HybTestExec()));
  PetscCall(HybArenaInit(&pp->work, HybTestExec()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(HybPtAP *pp)
{
  PetscFunctionBegin;
  if (!pp->method) PetscFunctionReturn(PETSC_SUCCESS);
  if (pp->method->destroy) PetscCall(pp->method->destroy(pp));
  PetscCall(HybArenaReset(&pp->keep));
  PetscCall(HybArenaReset(&pp->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(method->numeric(pp, A, P, C));
  PetscCall(HybArenaReset(&pp->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode First(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(C, sizeof(*C)));
  PetscCall(method->symbolic(pp, A, P, &out, C));
  PetscCall(HybArenaReset(&pp->work));
  if (!C->a) {
    PetscCall(HybArenaAlloc(&out, pp->exec.result, C->nnz, sizeof(HybScalar), &C->a));
    PetscCall(Numeric(pp, A, P, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values of A*B on the pattern of C, summed from the first product on in the order of A's row */
static void InOrder(const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscScalar *sum = (PetscScalar *)RefAlloc(C->n, sizeof(PetscScalar));
  PetscInt    *row = (PetscInt *)RefAlloc(C->n, sizeof(PetscInt));

  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) {
        const PetscScalar product = A->a[k] * B->a[l];
        const PetscInt    c       = B->j[l];

        sum[c] = row[c] == r + 1 ? sum[c] + product : product;
        row[c] = r + 1;
      }
    }
    for (PetscInt t = C->i[r]; t < C->i[r + 1]; t++) C->a[t] = sum[C->j[t]];
  }
  free(sum);
  free(row);
}

static void Check(const RefMat *A, const RefMat *P, const char *counter, PetscCount least)
{
  HybPtAP pp;
  HybCSR  DA, DP, DC;
  RefMat  C, T, W, S, other, first;

  RefPtAP(A, P, &C);
  if (HybTestCall(Init(&pp)) && HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && HybTestCall(HybTestUpload(&keep, &P->csr, &DP)) && HybTestCall(First(&pp, &DA, &DP, &DC))) {
    if (counter) HybTestCheck(pp.exec.backend->device || HybCountersGet(&pp.counters, counter) >= least, "%s is %td, expected %td at least", counter, HybCountersGet(&pp.counters, counter), least);
    if (HybTestSameMatrix(&DC, &C, 4) && HybTestCall(HybTestDownload(&DC, &first))) {
      if (!pp.exec.backend->device) {
        RefTranspose(P, PETSC_FALSE, &T);
        RefSpGEMM(A, P, &W);
        InOrder(&A->csr, &P->csr, &W.csr);
        RefMatCopy(&C, &S);
        InOrder(&T.csr, &W.csr, &S.csr);
        HybTestSameBits(S.csr.nnz, sizeof(PetscScalar), DC.a, S.csr.a);
        RefMatDestroy(&T);
        RefMatDestroy(&W);
        RefMatDestroy(&S);
      }
      HybTestCall(Numeric(&pp, &DA, &DP, &DC));
      HybTestSameBits(first.csr.nnz, sizeof(PetscScalar), DC.a, first.csr.a);
      RefMatDestroy(&first);
      RefMatDestroy(&C);
      HybTestMatArrays(A->csr.m, A->csr.n, A->csr.i, A->csr.j, NULL, &other);
      RefPtAP(&other, P, &C);
      if (HybTestCall(HybTestUpload(&keep, &other.csr, &DA)) && HybTestCall(Numeric(&pp, &DA, &DP, &DC))) HybTestSameMatrix(&DC, &C, 4);
      RefMatDestroy(&other);
    }
  }
  HybTestCall(Destroy(&pp));
  HybTestCall(HybArenaReset(&keep));
  HybTestCall(HybArenaReset(&out));
  RefMatDestroy(&C);
}

static void CheckAndDestroy(RefMat *A, RefMat *P, const char *counter, PetscCount least)
{
  Check(A, P, counter, least);
  RefMatDestroy(A);
  RefMatDestroy(P);
}

static RefMat FaultA, FaultP, FaultC;
static HybPtAP faultpp;

static PetscErrorCode Fault(void *ctx)
{
  HybCSR DA, DP, DC;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &FaultA.csr, &DA));
  PetscCall(HybTestUpload(&keep, &FaultP.csr, &DP));
  PetscCall(Init(&faultpp));
  PetscCall(First(&faultpp, &DA, &DP, &DC));
  PetscCall(Numeric(&faultpp, &DA, &DP, &DC));
  HybTestSameMatrix(&DC, &FaultC, 4);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultCleanup(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(Destroy(&faultpp));
  PetscCall(PetscMemzero(&faultpp, sizeof(faultpp)));
  PetscCall(HybArenaReset(&keep));
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Method(void)
{
  char   name[64];
  RefMat A, P, B;

  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    HybTestBegin("%s: %s with a prolongator", method->name, name);
    HybTestMatProlongator(A.csr.m, A.csr.m / 5 + 1, 3, &P);
    Check(&A, &P, NULL, 0);
    RefMatDestroy(&P);
    HybTestBegin("%s: %s with uneven rows, empty ones among them", method->name, name);
    HybTestMatPowerLaw(A.csr.m, A.csr.m / 3 + 1, 3, &P);
    HybTestMatEmptyRows(&P, 0, P.csr.m, 3);
    Check(&A, &P, NULL, 0);
    RefMatDestroy(&P);
    HybTestBegin("%s: %s with itself", method->name, name);
    RefMatCopy(&A, &P);
    CheckAndDestroy(&A, &P, NULL, 0);
  }
  HybTestBegin("%s: nothing, no column, no entry", method->name);
  HybTestMatEmpty(0, 0, &A);
  HybTestMatEmpty(0, 0, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&P);
  HybTestMatEmpty(0, 4, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestMatRandom(30, 30, 0, 5, &A);
  HybTestMatEmpty(30, 0, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&P);
  HybTestMatEmpty(30, 7, &P);
  Check(&A, &P, NULL, 0);
  RefMatDestroy(&P);
  HybTestMatRandom(30, 7, 0, 2, &P);
  HybTestMatEmpty(30, 30, &B);
  Check(&B, &P, NULL, 0);
  RefMatDestroy(&B);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: one dense row of P", method->name);
  HybTestMatRandom(200, 200, 0, 6, &A);
  HybTestMatDenseRow(200, 60, 99, 1, &P);
  CheckAndDestroy(&A, &P, NULL, 0);
  HybTestBegin("%s: rows of P so long that places are not kept", method->name);
  HybTestMatRandom(60, 60, 1, 3, &A);
  HybTestMatRandom(60, 50, 30, 50, &P);
  CheckAndDestroy(&A, &P, "walked", 1);
  for (PetscInt bs = 1; bs <= 6; bs++) {
    for (PetscInt cb = 1; cb <= 8; cb++) {
      /* a node's prolongator block is bs x cb; rows of A come in blocks of bs */
      RefMat    N, Q;
      PetscInt *pi, *pj;
      PetscInt  nodes = HybTestSize(60, 20), coarse = 9, nnz = 0;

      HybTestBegin("%s: %" PetscInt_FMT " unknowns a node, %" PetscInt_FMT " a coarse node", method->name, bs, cb);
      HybTestMatRandom(nodes, nodes, 1, 6, &N);
      HybTestMatBlock(&N, bs, &A);
      HybTestMatProlongator(nodes, coarse, 3, &Q);
      pi = (PetscInt *)RefAlloc(nodes * bs + 1, sizeof(PetscInt));
      pj = (PetscInt *)RefAlloc(Q.csr.nnz * bs * cb, sizeof(PetscInt));
      for (PetscInt r = 0; r < nodes * bs; r++) {
        for (PetscInt k = Q.csr.i[r / bs]; k < Q.csr.i[r / bs + 1]; k++) {
          for (PetscInt d = 0; d < cb; d++) pj[nnz++] = Q.csr.j[k] * cb + d;
        }
        pi[r + 1] = nnz;
      }
      HybTestMatArrays(nodes * bs, coarse * cb, pi, pj, NULL, &P);
      free(pi);
      free(pj);
      RefMatDestroy(&N);
      RefMatDestroy(&Q);
      CheckAndDestroy(&A, &P, "column block", cb);
    }
  }
  for (PetscInt k = 0; k < HybTestSize(200, 30); k++) {
    const PetscInt m = HybTestRandomInt(1, 80), n = HybTestRandomInt(1, 40);

    HybTestBegin("%s: random product %" PetscInt_FMT ", %" PetscInt_FMT " rows to %" PetscInt_FMT, method->name, k, m, n);
    HybTestMatRandom(m, m, 0, HybTestRandomInt(0, PetscMin(m, 12)), &A);
    HybTestMatRandom(m, n, 0, HybTestRandomInt(0, PetscMin(n, 6)), &P);
    CheckAndDestroy(&A, &P, NULL, 0);
  }
  HybTestBegin("%s: every allocation failing in turn", method->name);
  HybTestMatStencil(9, 12, 11, 1, &FaultA);
  HybTestMatProlongator(132, 30, 3, &FaultP);
  RefPtAP(&FaultA, &FaultP, &FaultC);
  HybTestFaults(Fault, FaultCleanup, NULL);
  RefMatDestroy(&FaultA);
  RefMatDestroy(&FaultP);
  RefMatDestroy(&FaultC);
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();
  PetscInt       n    = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&keep, exec));
  PetscCall(HybArenaInit(&out, exec));
  for (const HybPtAPMethod *const *table = exec->backend->ptap; table && *table; table++, n++) {
    method = *table;
    Method();
  }
  if (!n) {
    HybTestBegin("fused Galerkin product");
    HybTestSkip("the %s backend has no method", exec->backend->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
