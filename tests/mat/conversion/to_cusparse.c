/*
  What needs a PETSc with CUDA and a card: conversions from and to aijcusparse without the host, dense matrices and
  coordinates' values on the device, factorizations by cuSPARSE, device contexts that change. Elsewhere it is skipped.

TEST np=1
*/
#include "mattest.h"
#include <petscdevice.h>

#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
  #define EVENT(name, statement)                                           \
    do {                                                                   \
      PetscInt before_, after_;                                            \
      PetscCall(MatTestEventCount(name, &before_));                        \
      PetscCall(statement);                                                \
      PetscCall(MatTestEventCount(name, &after_));                         \
      MatTestCheck(after_ > before_, "the event " name " of " #statement); \
    } while (0)

/* a product's result, born on the device */
static PetscErrorCode Born(PetscInt n, Mat *A, Mat *H)
{
  Mat X, HX;

  PetscFunctionBeginUser;
  PetscCall(MatTestStencil(2, n, PETSC_FALSE, 0.1, MATAIJ, &X));
  PetscCall(MatShift(X, 1.0));
  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &HX));
  PetscCall(MatMatMult(X, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, A));
  PetscCall(MatMatMult(HX, HX, MAT_INITIAL_MATRIX, PETSC_DEFAULT, H));
  PetscCall(MatTestDestroy(&X, &HX));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestConversions(void)
{
  Mat       A, H, C, G;
  PetscBool flg;
  Vec       x, y, z;

  PetscFunctionBeginUser;
  MatTestName = "aijcusparse";
  PetscCall(Born(20, &A, &H));
  EVENT("HybConvert", MatConvert(H, MATAIJCUSPARSE, MAT_INITIAL_MATRIX, &C));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQAIJCUSPARSE, &flg));
  MatTestCheck(flg, "MatConvert to aijcusparse: type");
  MatTestCheckSame(C, A, "MatConvert to aijcusparse");
  PetscCall(MatCreateVecs(C, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(C, x, z));
  VecTestCheckSame(z, y, "MatMult of the aijcusparse");
  MatTestBoth(MatScale, H, A, 2.0);
  EVENT("HybConvert", MatConvert(H, MATAIJCUSPARSE, MAT_REUSE_MATRIX, &C));
  MatTestCheckSame(C, A, "MatConvert to aijcusparse again");
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(C, x, z));
  VecTestCheckSame(z, y, "MatMult of the aijcusparse again");
  EVENT("HybConvert", MatConvert(C, "aijhybridgpu", MAT_INITIAL_MATRIX, &G));
  MatTestCheckSame(G, A, "MatConvert from aijcusparse");
  PetscCall(MatMult(G, x, z));
  VecTestCheckSame(z, y, "MatMult of what came from aijcusparse");
  MatTestBoth(MatScale, C, A, 0.5);
  EVENT("HybConvert", MatConvert(C, "aijhybridgpu", MAT_REUSE_MATRIX, &G));
  MatTestCheckSame(G, A, "MatConvert from aijcusparse again");
  EVENT("HybConvert", MatConvert(G, MATAIJCUSPARSE, MAT_INPLACE_MATRIX, &G));
  MatTestCheckSame(G, A, "MatConvert to aijcusparse in place");
  EVENT("HybConvert", MatConvert(G, "aijhybridgpu", MAT_INPLACE_MATRIX, &G));
  MatTestCheckSame(G, A, "MatConvert from aijcusparse in place");
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMult(G, x, z));
  VecTestCheckSame(z, y, "MatMult after two conversions in place");
  /* operands of both types, the aijcusparse as it is and again with other values */
  for (int type = 0; type < 2; type++) {
    PetscCall(MatConvert(G, MATAIJCUSPARSE, MAT_REUSE_MATRIX, &C));
    for (int first = 0; first < 2; first++) {
      Mat L = first ? G : C, R = first ? C : G, D, E;

      if (type)
        PetscCall(MatPtAP(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      else
        PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
      if (type)
        PetscCall(MatPtAP(L, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
      else
        PetscCall(MatMatMult(L, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
      MatTestCheckSame(E, D, first ? "a product with aijcusparse second" : "a product with aijcusparse first");
      PetscCall(MatScale(C, 0.5));
      PetscCall(MatScale(D, type && first ? 0.25 : 0.5));
      if (type)
        PetscCall(MatPtAP(L, R, MAT_REUSE_MATRIX, PETSC_DEFAULT, &E));
      else
        PetscCall(MatMatMult(L, R, MAT_REUSE_MATRIX, PETSC_DEFAULT, &E));
      MatTestCheckSame(E, D, "the same with other values of the aijcusparse");
      PetscCall(MatScale(C, 2.0));
      PetscCall(MatTestDestroy(&D, &E));
    }
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatMatMult(G, G, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatDestroy(&H));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &H));
  MatTestCheckSame(C, H, "a product of what came from aijcusparse");
  PetscCall(MatTestDestroy(&A, &H, &C, &G, &x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDense(void)
{
  Mat          A, H, B, BH, C, D;
  PetscInt     n;
  PetscMemType mtype;
  PetscBool    flg;

  PetscFunctionBeginUser;
  MatTestName = "seqdensecuda";
  PetscCall(Born(20, &A, &H));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateSeqDenseCUDA(PETSC_COMM_SELF, n, 7, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatConvert(B, MATSEQDENSE, MAT_INITIAL_MATRIX, &BH));
  for (int t = 0; t < 2; t++) {
    const PetscScalar *a;

    if (t) {
      PetscCall(MatTransposeMatMult(A, BH, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
      EVENT("HybDense", MatTransposeMatMult(H, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    } else {
      PetscCall(MatMatMult(A, BH, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
      EVENT("HybDense", MatMatMult(H, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    }
    PetscCall(PetscObjectTypeCompare((PetscObject)D, MATSEQDENSECUDA, &flg));
    MatTestCheck(flg, "type of the result");
    PetscCall(MatDenseGetArrayReadAndMemType(D, &a, &mtype));
    MatTestCheck(PetscMemTypeDevice(mtype), "the result is on the device");
    PetscCall(MatDenseRestoreArrayReadAndMemType(D, &a));
    MatTestCheckSame(D, C, t ? "transposed times dense" : "times dense");
    MatTestBoth(MatScale, A, H, 3.0);
    if (t) {
      PetscCall(MatTransposeMatMult(A, BH, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
      EVENT("HybDense", MatTransposeMatMult(H, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
    } else {
      PetscCall(MatMatMult(A, BH, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
      EVENT("HybDense", MatMatMult(H, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
    }
    MatTestCheckSame(D, C, t ? "transposed times dense again" : "times dense again");
    PetscCall(MatTestDestroy(&C, &D));
  }
  PetscCall(MatTestDestroy(&A, &H, &B, &BH));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values on the device: a vector's array */
static PetscErrorCode TestCOO(void)
{
  enum {
    N = 1000,
    M = 60
  };
  PetscInt           i[2][N], j[2][N];
  Mat                A, H;
  Vec                v;
  const PetscScalar *a;
  PetscMemType       mtype;
  PetscLogDouble     before, after;
  unsigned long      s = 99;

  PetscFunctionBeginUser;
  MatTestName = "coordinates";
  for (int k = 0; k < N; k++) {
    i[0][k] = i[1][k] = (PetscInt)(MATTEST_NEXT(s) % M);
    j[0][k] = j[1][k] = (PetscInt)(MATTEST_NEXT(s) % M);
  }
  PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, N, &v));
  PetscCall(VecSetRandom(v, NULL));
  PetscCall(MatTestCreate(PETSC_COMM_SELF, MATAIJ, M, M, M, M, &A));
  PetscCall(MatSetPreallocationCOO(A, N, i[0], j[0]));
  PetscCall(MatTestCreate(PETSC_COMM_SELF, "aijhybridgpu", M, M, M, M, &H));
  EVENT("HybCOOPattern", MatSetPreallocationCOO(H, N, i[1], j[1]));
  for (int pass = 0; pass < 3; pass++) {
    PetscCall(VecScale(v, -1.25));
    PetscCall(VecGetArrayReadAndMemType(v, &a, &mtype));
    MatTestCheck(PetscMemTypeDevice(mtype), "values on the device");
    before = petsc_gtoc_sz + petsc_ctog_sz;
    EVENT("HybCOOValues", MatSetValuesCOO(H, a, pass == 1 ? ADD_VALUES : INSERT_VALUES));
    after = petsc_gtoc_sz + petsc_ctog_sz;
    MatTestCheck(before == after, "nothing crosses the bus");
    PetscCall(VecRestoreArrayReadAndMemType(v, &a));
    PetscCall(VecGetArrayRead(v, &a));
    PetscCall(MatSetValuesCOO(A, a, pass == 1 ? ADD_VALUES : INSERT_VALUES));
    PetscCall(VecRestoreArrayRead(v, &a));
    MatTestCheckSame(H, A, "MatSetValuesCOO of device values");
  }
  PetscCall(MatTestDestroy(&v, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the preconditioner's factor by cuSPARSE, where the program asks for it */
static PetscErrorCode TestFactor(void)
{
  Mat         A, H;
  Vec         x, b;
  KSP         ksp;
  PC          pc;
  PetscInt    its[2];
  const char *solvers[] = {MATSOLVERPETSC, MATSOLVERCUSPARSE};

  PetscFunctionBeginUser;
  MatTestName = "factorization";
  PetscCall(Born(20, &A, &H));
  PetscCall(MatCreateVecs(H, &x, &b));
  PetscCall(VecSet(b, 1.0));
  for (int k = 0; k < 2; k++) {
    KSPConvergedReason reason;

    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetType(ksp, KSPGMRES));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCILU));
    PetscCall(PCFactorSetMatSolverType(pc, solvers[k]));
    PetscCall(KSPSetOperators(ksp, H, H));
    for (int pass = 0; pass < 2; pass++) {
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      MatTestCheck(reason > 0, "convergence");
      PetscCall(KSPGetIterationNumber(ksp, &its[k]));
      if (k) MatTestCheck(PetscAbsInt(its[0] - its[1]) <= 1, "the same factor by cuSPARSE and by PETSc");
      PetscCall(MatScale(H, 2.0));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatTestDestroy(&x, &b, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own factors with right-hand sides that live on the device, beside plain AIJ's with host ones: as the default,
   since by its name PETSc finds the parent's way first */
static PetscErrorCode TestFactorDense(void)
{
  Mat           A[2], F[2], B[2], X[2];
  MatFactorInfo info;
  IS            rows, columns;
  PetscInt      n;

  PetscFunctionBeginUser;
  MatTestName = "factorization, dense right-hand sides";
  PetscCall(Born(20, &A[0], &A[1]));
  PetscCall(MatGetSize(A[0], &n, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, 5, NULL, &B[0]));
  PetscCall(MatSetRandom(B[0], NULL));
  PetscCall(MatConvert(B[0], MATSEQDENSECUDA, MAT_INITIAL_MATRIX, &B[1]));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 5;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGetOrdering(A[k], MATORDERINGND, &rows, &columns));
    PetscCall(MatGetFactor(A[k], NULL, MAT_FACTOR_LU, &F[k]));
    PetscCall(MatLUFactorSymbolic(F[k], A[k], rows, columns, &info));
    PetscCall(MatTestDestroy(&rows, &columns));
    PetscCall(MatDuplicate(B[k], MAT_DO_NOT_COPY_VALUES, &X[k]));
  }
  for (int pass = 0; pass < 2; pass++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatLUFactorNumeric(F[k], A[k], &info));
      PetscCall(MatMatSolve(F[k], B[k], X[k]));
    }
    MatTestCheckSame(X[1], X[0], "MatMatSolve()");
    for (int k = 0; k < 2; k++) PetscCall(MatMatSolveTranspose(F[k], B[k], X[k]));
    MatTestCheckSame(X[1], X[0], "MatMatSolveTranspose()");
    for (int k = 0; k < 2; k++) PetscCall(MatMatSolve(F[k], X[k], X[k]));
    MatTestCheckSame(X[1], X[0], "MatMatSolve() in place");
    for (int k = 0; k < 2; k++) PetscCall(MatScale(A[k], -2.0));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &F[k], &B[k], &X[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #if PETSC_VERSION_GE(3, 26, 0)
/* The program's current device context, and with it the stream, is another one every time: the same results, and
   nothing is used before it is there */
static PetscErrorCode TestContexts(void)
{
  PetscDeviceContext ctx[2];
  Mat                A, H, C, D;
  Vec                x, y, z;

  PetscFunctionBeginUser;
  MatTestName = "device contexts";
  PetscCall(PetscDeviceContextGetCurrentContext(&ctx[0]));
  PetscCall(PetscDeviceContextDuplicate(ctx[0], &ctx[1]));
  PetscCall(PetscDeviceContextSetStreamType(ctx[1], PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(ctx[1]));
  PetscCall(MatTestStencil(2, 60, PETSC_TRUE, 0.1, MATAIJ, &A));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  for (int k = 1; k < 6; k++) {
    PetscCall(PetscDeviceContextSetCurrentContext(ctx[k % 2]));
    for (int both = 0; both < 2; both++) {
      PetscCall(MatScale(both ? H : A, 1.5));
      PetscCall(MatShift(both ? H : A, 0.25));
    }
    PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatMatMult(H, H, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(VecSetRandom(x, NULL));
    PetscCall(MatMult(C, x, y));
    PetscCall(MatMult(D, x, z)); /* host vectors: staged in the stream's order */
    VecTestCheckSame(z, y, "MatMult of a product");
    PetscCall(MatMultTranspose(C, x, y));
    PetscCall(MatMultTranspose(D, x, z));
    VecTestCheckSame(z, y, "MatMultTranspose of a product");
    MatTestCheckSame(D, C, "the product");
    if (k == 3) { /* a matrix of one context, destroyed in the other */
      PetscCall(MatDestroy(&D));
      PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    }
  }
  PetscCall(PetscDeviceContextSetCurrentContext(ctx[0]));
  PetscCall(PetscDeviceContextDestroy(&ctx[1]));
  MatTestBoth(MatScale, D, C, 2.0);
  MatTestCheckSame(D, C, "after the context is gone");
  PetscCall(MatTestDestroy(&x, &y, &z, &A, &H, &C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}
  #endif
#endif

int main(int argc, char **argv)
{

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "MATAIJHYBRIDGPU beside PETSc's own types on the device\n"));
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
  {
    PetscErrorCode ierr;

    QUIETLY(ierr, PetscDeviceInitialize(PETSC_DEVICE_CUDA));
    if (ierr)
      MatTestSkipped++;
    else {
      PetscCall(PetscLogDefaultBegin());
      PetscCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_device_min", "0"));
      PetscCall(TestConversions());
      PetscCall(TestDense());
      PetscCall(TestCOO());
      PetscCall(TestFactor());
      PetscCall(TestFactorDense());
  #if PETSC_VERSION_GE(3, 26, 0)
      PetscCall(TestContexts());
  #endif
    }
  }
#else
  MatTestSkipped++;
#endif
  return MatTestEnd();
}
