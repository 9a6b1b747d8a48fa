/*
  bench_steps.c: what the first, the second and the hundredth time cost, each timed alone, the device synchronized.

    [mpiexec -n RANKS] bench_steps -points 7|9|27|81 -n 46 | -file MATRIX
      -mat_type TYPE [-ops mult,aa,ptap,gamg] [-times 400] [-steps 8] [-tag WORDS]

  mult   A x
  aa     A*A, then with MAT_REUSE_MATRIX and new values each time
  ptap   the same of P^T A P with the finest prolongator of GAMG
  gamg   GAMG's set-up and CG's solve, then both again with new values, -steps times

  Each operation runs twice: with the process's first matrix, and with another one of the same entries. The last result
  is compared with MATAIJ's through a random vector. MATRIX is one of PETSc's binary files.

  Output, one line an operation and matrix, tab-separated: points, n, type (and -tag's words), operation, matrix (1 or
  2), first, again 1, again 2, the median of what comes after (ms), how many of these took more than three medians, the
  longest, and the sums after 1, 2, 4, ... 64 repetitions, the first not counted. Curves of several settings (a tuning
  that makes nothing for later, or all at once) lie beside each other: -tag tells them apart.
*/
#include <petscksp.h>
#include "bench_time.h"
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice.h>
#endif

static PetscInt    points = 7, n = 46, times = 400, steps = 8;
static PetscMPIInt size = 1;
static const char *type;
static char        tag[64];

#include "bench_problems.h"

#define TIMED_TO(ms, statement)                     \
  do {                                              \
    PetscLogDouble seconds_;                        \
                                                    \
    BENCH_TIME(Synchronize(), seconds_, statement); \
    ms = 1e3 * (PetscReal)seconds_;                 \
  } while (0)

/* ms[0] is the first, count repetitions follow */
static PetscErrorCode Report(const char *operation, int matrix, PetscInt count, const PetscReal ms[])
{
  PetscReal *sorted, median, sum = 0;
  PetscInt   slow = 0;

  PetscFunctionBeginUser;
  PetscCheck(count > 2, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-times and -steps must be at least 3, not %d", (int)count);
  PetscCall(PetscMalloc1(count - 2, &sorted));
  PetscCall(PetscArraycpy(sorted, ms + 3, count - 2));
  PetscCall(PetscSortReal(count - 2, sorted));
  median = sorted[(count - 2) / 2];
  for (PetscInt k = 0; k < count - 2; k++) slow += sorted[k] > 3 * median;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d\t%d\t%s%s%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.4f\t%d\t%.3f", (int)points, (int)n, type, tag[0] ? " " : "", tag, operation, matrix, (double)ms[0], (double)ms[1], (double)ms[2], (double)median, (int)slow, (double)sorted[count - 3]));
  for (PetscInt k = 1, next = 1; k <= count && k <= 64; k++) {
    sum += ms[k];
    if (k == next) {
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\t%.3f", (double)sum));
      next *= 2;
    }
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  fflush(PETSC_STDOUT);
  PetscCall(PetscFree(sorted));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is C x what C0 x is, of MATAIJ? */
static PetscErrorCode Check(Mat C0, Mat C, const char *what)
{
  Vec       x0, y0, x, y;
  PetscReal norm, error;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(C0, &x0, &y0));
  PetscCall(MatCreateVecs(C, &x, &y));
  PetscCall(VecSetRandom(x0, NULL));
  PetscCall(VecCopy(x0, x));
  PetscCall(MatMult(C0, x0, y0));
  PetscCall(MatMult(C, x, y));
  PetscCall(VecNorm(y0, NORM_2, &norm));
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDuplicate(y0, &x0));
  PetscCall(VecCopy(y, x0));
  PetscCall(VecAXPY(x0, -1.0, y0));
  PetscCall(VecNorm(x0, NORM_2, &error));
  PetscCheck(error <= BENCH_TOLERANCE * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s is wrong by %g", what, (double)(error / norm));
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDestroy(&y0));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Mults(Mat A0, Mat A, int matrix, PetscReal ms[])
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSet(y, 0.0));
  for (PetscInt k = 0; k <= times; k++) TIMED_TO(ms[k], MatMult(A, x, y));
  PetscCall(Check(A0, A, "MatMult"));
  PetscCall(Report("mult", matrix, times, ms));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductCall(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  PetscFunctionBeginUser;
  if (P)
    PetscCall(MatPtAP(A, P, reuse, PETSC_DEFAULT, C));
  else
    PetscCall(MatMatMult(A, A, reuse, PETSC_DEFAULT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new values each time, at the end those of A0 */
static PetscErrorCode Products(Mat A0, Mat A, Mat P, int matrix, PetscReal ms[])
{
  Mat C, C0, P0 = NULL;

  PetscFunctionBeginUser;
  TIMED_TO(ms[0], ProductCall(A, P, MAT_INITIAL_MATRIX, &C));
  for (PetscInt k = 1; k <= times; k++) {
    PetscCall(MatScale(A, k % 2 ? 2.0 : 0.5));
    TIMED_TO(ms[k], ProductCall(A, P, MAT_REUSE_MATRIX, &C));
  }
  if (times % 2) {
    PetscCall(MatScale(A, 0.5));
    PetscCall(ProductCall(A, P, MAT_REUSE_MATRIX, &C));
  }
  if (P) PetscCall(MatConvert(P, MATAIJ, MAT_INITIAL_MATRIX, &P0));
  PetscCall(ProductCall(A0, P0, MAT_INITIAL_MATRIX, &C0));
  PetscCall(Check(C0, C, P ? "P^T A P" : "A*A"));
  PetscCall(Report(P ? "ptap" : "aa", matrix, times, ms));
  PetscCall(MatDestroy(&C0));
  PetscCall(MatDestroy(&P0));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the finest prolongator of a GAMG that is then gone */
static PetscErrorCode Prolongator(Mat A, Mat *P)
{
  KSP      ksp;
  PC       pc;
  PetscInt levels;
  Mat      finest;

  PetscFunctionBeginUser;
  PetscCall(Solver(A, &ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCall(PCMGGetInterpolation(pc, levels - 1, &finest));
  PetscCall(MatDuplicate(finest, MAT_COPY_VALUES, P));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Steps(Mat A0, Mat A, int matrix, PetscReal ms[])
{
  PetscReal *const   solves = ms + times + 1;
  Vec                x, b, x0, b0;
  KSP                ksp;
  PetscReal          norm, error;
  KSPConvergedReason reason;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecSet(x, 0.0));
  PetscCall(Solver(A, &ksp));
  for (PetscInt k = 0; k <= steps; k++) {
    if (k) {
      PetscCall(MatScale(A, k % 2 ? 2.0 : 0.5));
      PetscCall(KSPSetOperators(ksp, A, A));
    }
    TIMED_TO(ms[k], KSPSetUp(ksp));
    TIMED_TO(solves[k], KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The solve of step %d has not converged: %d", (int)k, (int)reason);
  }
  PetscCall(MatCreateVecs(A0, &x0, &b0));
  PetscCall(VecCopy(x, x0));
  if (steps % 2) PetscCall(VecScale(x0, 2.0));
  PetscCall(MatMult(A0, x0, b0));
  PetscCall(VecShift(b0, -1.0));
  PetscCall(VecNorm(b0, NORM_2, &error));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCheck(error < 1e-2 * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The solution is wrong by %g", (double)(error / norm));
  PetscCall(Report("set-up", matrix, steps, ms));
  PetscCall(Report("solve", matrix, steps, solves));
  if (steps % 2) PetscCall(MatScale(A, 0.5));
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDestroy(&b0));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of the type with A0's entries */
static PetscErrorCode Another(Mat A0, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(A0, type, MAT_INITIAL_MATRIX, A));
  if (points == 81) PetscCall(AttachRigidBodyModes(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char       name[64] = MATAIJ, file[PETSC_MAX_PATH_LEN], ops[64] = "aa";
  PetscBool  given;
  PetscReal *ms;
  Mat        A0, A, P;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &points, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-times", &times, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ops", ops, sizeof(ops), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-tag", tag, sizeof(tag), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-file", file, sizeof(file), &given));
  type = name;
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
  PetscCall(PetscMalloc1(2 * (size_t)(PetscMax(times, steps) + 1), &ms));
  times = PetscMax(times, steps);
  for (int matrix = 1; matrix <= 2; matrix++) {
    PetscCall(Another(A0, &A));
    if (strstr(ops, "mult")) PetscCall(Mults(A0, A, matrix, ms));
    if (strstr(ops, "aa")) PetscCall(Products(A0, A, NULL, matrix, ms));
    if (strstr(ops, "ptap")) {
      PetscCall(Prolongator(A, &P));
      PetscCall(Products(A0, A, P, matrix, ms));
      PetscCall(MatDestroy(&P));
    }
    if (strstr(ops, "gamg")) PetscCall(Steps(A0, A, matrix, ms));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFree(ms));
  PetscCall(MatDestroy(&A0));
  PetscCall(PetscFinalize());
  return 0;
}
