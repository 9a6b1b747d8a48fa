/* transposesymbolic and gather: against the reference on the zoo, there and back, plain and conjugated, values that change */
#include "hybtest.h"
#include <stdlib.h>
#include <string.h>

static PetscErrorCode TestOne(const char *name, RefMat *A)
{
  const HybExec   *exec = HybTestExec();
  const HybCSROps *ops  = exec->backend->csr;
  HybArena         keep, work, mine;
  HybCSR           there, T, back;
  PetscInt        *perm, *perm2, *hperm;
  PetscScalar     *ta;
  RefMat           R;
  char            *seen;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&keep, exec));
  PetscCall(HybArenaInit(&work, exec));
  PetscCall(HybArenaInit(&mine, exec));
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  HybTestBegin("transpose of %s", name);
  if (!HybTestCall(ops->transposesymbolic(exec, &keep, &work, &there, &T, &perm))) goto done;
  RefTranspose(A, PETSC_FALSE, &R);
  HybTestSamePattern(&T, &R);
  hperm = (PetscInt *)RefAlloc(A->csr.nnz, sizeof(PetscInt));
  seen  = (char *)RefAlloc(A->csr.nnz, 1);
  PetscCall(HybTestDownloadArray(A->csr.nnz, sizeof(PetscInt), perm, hperm));
  for (PetscCount k = 0; k < A->csr.nnz; k++) HybTestCheck(hperm[k] >= 0 && hperm[k] < A->csr.nnz && !seen[hperm[k]]++, "perm[%td] = %" PetscInt_FMT " is no permutation", k, hperm[k]);
  free(hperm);
  free(seen);
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), A->csr.nnz, sizeof(PetscScalar), &ta));
  T.a = ta;
  for (int round = 0; round < 3; round++) {
    const PetscBool conjugate = (PetscBool)(round == 1);

    RefMatDestroy(&R);
    RefTranspose(A, conjugate, &R);
    HybTestCall(ops->gather(exec, A->csr.nnz, perm, conjugate, there.a, T.a));
    HybTestCheck(HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), T.a, R.csr.a), "values of round %d", round);
    if (round == 1) { /* new values on the old pattern */
      HybTestRandomize(A);
      PetscCall(HybArenaFree(&mine, &there.a));
      PetscCall(HybTestUploadArray(&mine, A->csr.nnz, sizeof(PetscScalar), A->csr.a, &there.a));
    }
  }
  RefMatDestroy(&R);
  HybTestBegin("transpose of the transpose of %s", name);
  if (HybTestCall(ops->transposesymbolic(exec, &keep, &work, &T, &back, &perm2))) {
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), A->csr.nnz, sizeof(PetscScalar), &back.a));
    HybTestCall(ops->gather(exec, A->csr.nnz, perm2, PETSC_FALSE, T.a, back.a));
    HybTestSamePattern(&back, A);
    HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), back.a, A->csr.a);
  }
done:
  PetscCall(HybArenaReset(&keep));
  PetscCall(HybArenaReset(&work));
  PetscCall(HybArenaReset(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Matrices(void)
{
  char   name[64];
  RefMat A;

  PetscFunctionBegin;
  for (int counting = 0; counting < (HybTestExec()->backend->device ? 2 : 1); counting++) {
    if (counting) PetscCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_transpose_counting", "yes"));
    for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
      PetscCall(TestOne(name, &A));
      RefMatDestroy(&A);
    }
  }
  if (HybTestExec()->backend->device) PetscCall(PetscOptionsClearValue(NULL, "-mat_aijhybridgpu_transpose_counting"));
  /* so many rows that a sample of them decides whether they have shapes: like the row before, like the third before, like none */
  HybTestMatStencil(5, 48, 48, 1, &A);
  PetscCall(TestOne("a larger stencil", &A));
  RefMatDestroy(&A);
  {
    RefMat P;

    HybTestMatStencil(5, 27, 27, 1, &P);
    HybTestMatBlock(&P, 3, &A);
    RefMatDestroy(&P);
    PetscCall(TestOne("a larger stencil of three components", &A));
    RefMatDestroy(&A);
  }
  HybTestMatRandom(2300, 900, 0, 5, &A);
  PetscCall(TestOne("2300 random rows", &A));
  RefMatDestroy(&A);
  /* sizes about the widths of blocks and sub-warps */
  for (PetscInt k = 0; k < HybTestSize(12, 5); k++) {
    static const PetscInt sizes[] = {31, 256, 1, 33, 1025, 255, 257, 128, 1023, 1024, 511, 2049};
    const PetscInt        m = sizes[k], n = sizes[HybTestRandomInt(0, 12)];

    HybTestMatRandom(m, n, 0, PetscMin(n, 11), &A);
    snprintf(name, sizeof(name), "random %" PetscInt_FMT " x %" PetscInt_FMT, m, n);
    PetscCall(TestOne(name, &A));
    RefMatDestroy(&A);
  }
  /* rows of few shapes, enough of them for the method of their own: up to 16 and more distinct offsets, rectangular, empty rows, more offsets than it takes */
  for (int k = 0; k < 8; k++) {
    const char *const names[] = {"5-point", "7-point", "9-point", "27-point", "a wide band", "a tall band", "a band with empty rows", "a band of 81"};

    switch (k) {
    case 0: HybTestMatStencil(5, 21, 18, 1, &A); break;
    case 1: HybTestMatStencil(7, 11, 10, 9, &A); break;
    case 2: HybTestMatStencil(9, 19, 20, 1, &A); break;
    case 3: HybTestMatStencil(27, 10, 10, 11, &A); break;
    case 4: HybTestMatBanded(301, 340, 1, 3, &A); break;
    case 5: HybTestMatBanded(530, 470, 2, 1, &A); break;
    case 6:
      HybTestMatBanded(700, 700, 1, 1, &A);
      HybTestMatEmptyRows(&A, 100, 300, 1);
      break;
    default: HybTestMatBanded(2700, 2700, 40, 40, &A);
    }
    snprintf(name, sizeof(name), "%s, %" PetscInt_FMT " rows", names[k], A.csr.m);
    PetscCall(TestOne(name, &A));
    RefMatDestroy(&A);
  }
  HybTestMatRandom(HybTestSize(20000, 500), HybTestSize(30000, 700), 0, 20, &A);
  PetscCall(TestOne("a larger random matrix", &A));
  RefMatDestroy(&A);
  HybTestMatPowerLaw(HybTestSize(20000, 700), HybTestSize(10000, 600), 8, &A);
  PetscCall(TestOne("a larger power-law matrix", &A));
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  PetscCall(Matrices());
  if (HybTestExec()->backend->device) { /* the other way of irregular patterns, see csr/transpose.cu */
    PetscCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_transpose_counting", "yes"));
    PetscCall(Matrices());
    PetscCall(PetscOptionsClearValue(NULL, "-mat_aijhybridgpu_transpose_counting"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
