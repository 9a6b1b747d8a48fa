/* SpMV: what must be refused, and every allocation failing in turn for each method */
#include "hybtest.h"
#include <aijhybridgpu/private/hybspmv.h>
#include <stdlib.h>
#include <string.h>

static struct {
  const char  *method;
  RefMat       A;
  HybArena     arena;
  HybCSR       there;
  HybSpMV      mv;
  PetscScalar *x, *z, *hx, *hz;
  PetscReal   *mag;
  PetscCount  *terms;
} S;

static PetscErrorCode Run(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybSpMVInit(&S.mv, HybTestExec(), S.method, 1));
  PetscCall(HybSpMVSetUp(&S.mv, &S.there));
  PetscCall(HybSpMVApply(&S.mv, &S.there, S.x, HYB_SPMV_SET, NULL, S.z));
  PetscCall(HybSpMVApply(&S.mv, &S.there, S.x, HYB_SPMV_ADD, S.z, S.z));
  PetscCall(HybTestExec()->backend->sync(HybTestExec()));
  /* the matrix and the vector survived all failures before */
  HybTestSameScalars(S.A.csr.m, S.z, S.hz, S.mag, S.terms, 4);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CleanUp(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybSpMVDestroy(&S.mv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  const HybExec *exec = HybTestExec();
  PetscInt       m;
  RefMat         P;

  PetscFunctionBegin;
  /* one that every method takes: few shapes, whole blocks, rows of about one length */
  HybTestMatStencil(5, 30, 30, 1, &P);
  HybTestMatBlock(&P, 2, &S.A);
  RefMatDestroy(&P);
  m       = S.A.csr.m;
  S.hx    = HybTestRandomVector(m);
  S.hz    = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  S.mag   = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  S.terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  RefSpMV(&S.A, S.hx, 1, NULL, S.hz, S.mag, S.terms);
  for (PetscInt r = 0; r < m; r++) {
    S.hz[r] *= 2;
    S.mag[r] *= 2;
  }
  S.arena = HybArenaOn(exec);
  PetscCall(HybTestUpload(&S.arena, &S.A.csr, &S.there));
  PetscCall(HybTestUploadArray(&S.arena, m, sizeof(PetscScalar), S.hx, &S.x));
  PetscCall(HybArenaAlloc(&S.arena, HYB_WORK(exec), m, sizeof(PetscScalar), &S.z));
  for (const HybSpMVMethod *const *table = exec->backend->spmv;; table++) {
    S.method = *table ? (*table)->name : "auto";
    HybTestBegin("%s: every allocation failing in turn", S.method);
    HybTestFaults(Run, CleanUp, NULL);
    if (!*table) break;
  }
  PetscCall(HybArenaReset(&S.arena));
  RefMatDestroy(&S.A);
  RefFree(S.hx, S.hz, S.mag, S.terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* kernels look beyond a row's end by some entries before they stop: nothing is read of a matrix whose last entries
   leave no room for that */
static PetscErrorCode Boundary(void)
{
  HybCSR  A;
  HybSpMV mv;

  PetscFunctionBegin;
  if (!HybTestExec()->backend->device) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("a matrix of as many nonzeros as PetscInt counts");
  memset(&A, 0, sizeof(A));
  A.m = A.n = 70000;
  A.nnz     = PETSC_MAX_INT;
  HybTestCall(HybSpMVInit(&mv, HybTestExec(), "auto", 1));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpMVSetUp(&mv, &A));
  HybTestCall(HybSpMVDestroy(&mv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();
  HybSpMV        mv;
  HybCSR         there, other;
  PetscScalar   *x, *z, v[70];
  RefMat         A;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  PetscCall(Boundary());
  memset(v, 0, sizeof(v));
  HybTestMatBanded(64, 64, 1, 1, &A);
  PetscCall(HybTestUpload(&arena, &A.csr, &there));
  PetscCall(HybTestUploadArray(&arena, 64, sizeof(PetscScalar), v, &x));
  PetscCall(HybTestUploadArray(&arena, 64, sizeof(PetscScalar), v, &z));
  HybTestBegin("an unknown method");
  HybTestCallFails(PETSC_ERR_ARG_UNKNOWN_TYPE, HybSpMVInit(&mv, exec, "no such method", 1));
  HybTestCall(HybSpMVDestroy(&mv));
  HybTestBegin("a block size of 0");
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpMVInit(&mv, exec, "auto", 0));
  HybTestCall(HybSpMVDestroy(&mv));
  HybTestBegin("a block size that does not divide");
  HybTestCall(HybSpMVInit(&mv, exec, "auto", 3));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, HybSpMVSetUp(&mv, &there));
  HybTestCall(HybSpMVDestroy(&mv));
  HybTestBegin("application before setup, without values, without y; then a good one");
  HybTestCall(HybSpMVInit(&mv, exec, NULL, 1));
  HybTestCallFails(PETSC_ERR_ORDER, HybSpMVApply(&mv, &there, x, HYB_SPMV_SET, NULL, z));
  HybTestCall(HybSpMVSetUp(&mv, &there));
  other   = there;
  other.a = NULL;
  HybTestCallFails(PETSC_ERR_ARG_WRONGSTATE, HybSpMVApply(&mv, &other, x, HYB_SPMV_SET, NULL, z));
  HybTestCallFails(PETSC_ERR_ARG_NULL, HybSpMVApply(&mv, &there, x, HYB_SPMV_ADD, NULL, z));
  HybTestCall(HybSpMVApply(&mv, &there, x, HYB_SPMV_SET, NULL, z));
  HybTestSameBits(64, sizeof(PetscScalar), z, v);
  HybTestBegin("setup again, for another matrix");
  RefMatDestroy(&A);
  HybTestMatRandom(30, 64, 2, 20, &A);
  PetscCall(HybTestUpload(&arena, &A.csr, &other));
  HybTestCall(HybSpMVSetUp(&mv, &other));
  HybTestCheck(mv.calls == 0, "%td calls counted", mv.calls);
  HybTestCall(HybSpMVApply(&mv, &other, x, HYB_SPMV_SET, NULL, z));
  HybTestSameBits(30, sizeof(PetscScalar), z, v);
  HybTestCall(HybSpMVDestroy(&mv));
  HybTestBegin("destroying what was never initialized, twice");
  memset(&mv, 0, sizeof(mv));
  HybTestCall(HybSpMVDestroy(&mv));
  HybTestCall(HybSpMVDestroy(&mv));
  RefMatDestroy(&A);
  PetscCall(HybArenaReset(&arena));
  PetscCall(Faults());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
