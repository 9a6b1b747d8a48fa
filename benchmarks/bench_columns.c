/*
  bench_columns.c: several right-hand sides: KSPSolve() for each beside one KSPMatSolve() for all, KSPCG with GAMG.

    bench_columns -points 7|9|27|81 -n 128 -columns 8 [-mat_type aijhybridgpu] [-dense_type densecuda] [-times 5]
      [-file MATRIX] [PETSc's options]

  Each is done -times times after one that is not timed, the device synchronized, and the fastest counts. Every solution
  is checked by its true residual, with MATAIJ's matrix, and the columns of both ways are compared. -dense_type: of the
  matrices of right-hand sides and solutions; the default is densecuda where PETSc has CUDA, else dense. MATRIX is one
  of PETSc's binary files. One process.

  Output, one line, tab-separated: points, n, type, type of B and X, columns, ms of all KSPSolve()s, ms of
  KSPMatSolve(), how many times faster, iterations of the last column by each way, the largest relative residual by each
  way, and the largest relative difference of a column.
*/
#include <petscksp.h>
#include "bench_time.h"
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice.h>
#endif

static PetscInt    points = 7, n = 128, columns = 8, times = 5;
static PetscMPIInt size = 1;

#include "bench_problems.h"

/* entries depend on the row and the column alone */
static PetscErrorCode RightHandSides(Mat B)
{
  PetscInt     rows, ld;
  PetscScalar *b;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, &rows, NULL));
  PetscCall(MatDenseGetLDA(B, &ld));
  PetscCall(MatDenseGetArrayWrite(B, &b));
  for (PetscInt c = 0; c < columns; c++)
    for (PetscInt r = 0; r < rows; r++) b[(size_t)c * ld + r] = 1 + (PetscReal)(((PetscInt64)r * (37 + 2 * c) + 11 * c) % 101) / 101;
  PetscCall(MatDenseRestoreArrayWrite(B, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's loop of KSPMatSolve(), where a type has no solve of its own */
static PetscErrorCode OneByOne(KSP ksp, Mat B, Mat X)
{
  PetscFunctionBeginUser;
  for (PetscInt c = 0; c < columns; c++) {
    Vec b, x;

    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(MatDenseGetColumnVecWrite(X, c, &x));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(MatDenseRestoreColumnVecWrite(X, c, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the largest |b - A x| / |b| of a column; with Y also the largest |x - y| / |y| */
static PetscErrorCode Check(Mat A0, Mat B, Mat X, Mat Y, PetscReal *residual, PetscReal *apart)
{
  Vec r, x;

  PetscFunctionBeginUser;
  *residual = *apart = 0;
  PetscCall(MatCreateVecs(A0, &x, &r));
  for (PetscInt c = 0; c < columns; c++) {
    Vec       b, one, other;
    PetscReal norm, error;

    PetscCall(MatDenseGetColumnVecRead(X, c, &one));
    PetscCall(VecCopy(one, x));
    PetscCall(MatDenseRestoreColumnVecRead(X, c, &one));
    PetscCall(MatMult(A0, x, r));
    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(VecNorm(b, NORM_2, &norm));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
    PetscCall(VecNorm(r, NORM_2, &error));
    PetscCheck(error <= 0.1 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Column %d is wrong: a residual of %g", (int)c, (double)(error / norm));
    *residual = PetscMax(*residual, error / norm);
    if (!Y) continue;
    PetscCall(MatDenseGetColumnVecRead(Y, c, &other));
    PetscCall(VecNorm(other, NORM_2, &norm));
    PetscCall(VecAXPY(x, -1.0, other));
    PetscCall(MatDenseRestoreColumnVecRead(Y, c, &other));
    PetscCall(VecNorm(x, NORM_2, &error));
    *apart = PetscMax(*apart, error / norm);
  }
  PetscCheck(*apart < 1e-6, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The columns of both ways are %g apart", (double)*apart);
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Dense(PetscInt rows, const char *type, Mat *D)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, D));
  PetscCall(MatSetSizes(*D, rows, columns, rows, columns));
  PetscCall(MatSetType(*D, type));
  PetscCall(MatSetUp(*D));
  PetscCall(MatZeroEntries(*D));
  PetscCall(MatAssemblyBegin(*D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*D, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
#if defined(PETSC_HAVE_CUDA)
  char dense[64] = "densecuda";
#else
  char dense[64] = MATDENSE;
#endif
  char           type[64] = MATAIJ, file[PETSC_MAX_PATH_LEN];
  PetscBool      given;
  PetscLogDouble seconds, best[2] = {PETSC_MAX_REAL, PETSC_MAX_REAL};
  PetscReal      residual[2], apart;
  PetscInt       rows, its[2];
  Mat            A0, A, B, X[2];
  KSP            ksp;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "This is for one process, not %d", size);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &points, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-times", &times, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dense_type", dense, sizeof(dense), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-file", file, sizeof(file), &given));
  PetscCheck(columns > 0 && times > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-columns and -times must be at least 1, not %d and %d", (int)columns, (int)times);
  if (given) {
    PetscViewer viewer;

    points = 0;
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A0));
    PetscCall(MatSetType(A0, MATAIJ));
    PetscCall(MatLoad(A0, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(MatGetSize(A0, &n, NULL));
  } else if (points == 81)
    PetscCall(Elasticity(&A0));
  else
    PetscCall(Stencil(&A0));
  PetscCall(MatConvert(A0, type, MAT_INITIAL_MATRIX, &A));
  if (points == 81) PetscCall(AttachRigidBodyModes(A));
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(Dense(rows, dense, &B));
  PetscCall(RightHandSides(B));
  PetscCall(Solver(A, &ksp));
  for (int way = 0; way < 2; way++) {
    KSPConvergedReason reason;

    PetscCall(Dense(rows, dense, &X[way]));
    for (PetscInt k = 0; k <= times; k++) {
      if (way)
        BENCH_TIME(Synchronize(), seconds, KSPMatSolve(ksp, B, X[way]));
      else
        BENCH_TIME(Synchronize(), seconds, OneByOne(ksp, B, X[way]));
      if (k) best[way] = PetscMin(best[way], seconds);
    }
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The last column has not converged: %d", (int)reason);
    PetscCall(KSPGetIterationNumber(ksp, &its[way]));
    PetscCall(Check(A0, B, X[way], way ? X[0] : NULL, &residual[way], &apart));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d\t%d\t%s\t%s\t%d\t%.3f\t%.3f\t%.2f\t%d\t%d\t%.1e\t%.1e\t%.1e\n", (int)points, (int)n, type, dense, (int)columns, 1e3 * best[0], 1e3 * best[1], best[0] / best[1], (int)its[0], (int)its[1], (double)residual[0], (double)residual[1], (double)apart));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&X[0]));
  PetscCall(MatDestroy(&X[1]));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&A0));
  PetscCall(PetscFinalize());
  return 0;
}
