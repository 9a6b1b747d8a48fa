/*
  The second step of Newton's method costs what the third one does: set-ups by PCGAMG with new values in the same
  matrix, with and without solves between them, those solves, and repetitions of products of matrices. Of each step all
  is counted that takes time on a card or between processes: launches and other calls, those among them that take the
  driver long, waits, memory, copies over the bus, messages and collectives. The second step of each may have at most a
  quarter more of any than the third, and so may the fourth and the fifth. A solver in the process before has loaded and
  opened what is the process's. Results are MATAIJ's.

TEST np=1,2,4 @emulated

  -show N: prints the counts of process N; -names: by what was called; -n N: a cube of so many points a side
*/
#include "stepcounts.h"

#define STEPS 5

static PetscMPIInt Rank, Size;
static PetscInt    Shown = -1;
static PetscBool   Names;
static Step        Steps[2][STEPS + 1]; /* set-ups or products; solves */

static void Clear(void)
{
  memset(Steps, 0, sizeof(Steps));
}

static void Print(const char *what, Step step[STEPS + 1])
{
  unsigned long long sum[STEPS + 1][STEP_KINDS];

  for (int s = 1; s <= STEPS; s++) StepSums(&step[s], sum[s]);
  for (int k = 0; k < STEP_KINDS && !Names; k++) {
    printf("%s, %s:", what, StepKinds[k]);
    for (int s = 1; s <= STEPS; s++) printf(" %llu", sum[s][k]);
    printf("\n");
  }
  for (int k = 0; k < step[STEPS].n && Names; k++) {
    printf("%s, %s:", what, step[STEPS].of[k].name);
    for (int s = 1; s <= STEPS; s++) {
      const StepCount *c = StepFind(&step[s], step[STEPS].of[k].name);

      printf("  %llu (%llu)", c->n, c->bytes);
    }
    printf("\n");
  }
}

/* of steps up to the last one; a side stream, which later repetitions take, is four calls that wait for nothing. The
   second solve may make copies of levels' values (ordered.c): they are there for the third, and pay in the second. */
static void Check(const char *what, Step step[STEPS + 1], int last)
{
  const PetscBool    solves = (PetscBool)(step == Steps[1]);
  unsigned long long sum[STEPS + 1][STEP_KINDS];
  char               text[160];

  if (Rank == Shown) Print(what, step);
  for (int s = 2; s <= STEPS; s++) StepSums(&step[s], sum[s]);
  for (int k = 0; k < STEP_KINDS; k++) {
    for (int s = 2; s <= last; s++) {
      /* the first solve's graph, and one of an iteration, may both be made in the second */
      const unsigned long long made = k == STEP_CALLS && s > 3 ? 32 : k == STEP_SLOW && s == 2 ? 4
                                                                    : !solves || s > 2         ? 0
                                                                    : k == STEP_ALLOCATED      ? 8 * sum[3][k]
                                                                    : k == STEP_COPIED         ? 16384
                                                                                               : 24;
      int                      more = 4 * sum[s][k] > 5 * sum[3][k] + made;

      snprintf(text, sizeof(text), "%s %d, %s: %llu here, and %llu in step 3", what, s, StepKinds[k], sum[s][k], sum[3][k]);
      if (more) printf("process %d: %s\n", (int)Rank, text);
      MPI_Allreduce(MPI_IN_PLACE, &more, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD);
      MatTestCheck(!more, text);
    }
  }
}

static PetscErrorCode Values(Mat A, int step)
{
  PetscFunctionBeginUser;
  if (step > 1) PetscCall(MatScale(A, step % 2 ? 1.5 : 1 / 1.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* so many steps on A; solve: with a solve each, else one at the end; counted: on both sides */
static PetscErrorCode Newton(Mat A, int steps, PetscBool solve, PetscBool counted, Vec *x, PetscInt *its)
{
  KSP ksp;
  Vec b;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(StepSolver(A, 1e-10, 40, &ksp));
  for (int s = 1; s <= steps; s++) {
    PetscCall(Values(A, s));
    if (counted) StepBegin(&Steps[0][s]);
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetUp(ksp));
    if (counted) StepEnd(&Steps[0][s]);
    if (counted) StepBegin(&Steps[1][s]);
    if (solve || s == steps) PetscCall(KSPSolve(ksp, b, *x));
    if (counted) StepEnd(&Steps[1][s]);
  }
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(MatTestDestroy(&ksp, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Setups(PetscInt n, PetscBool full, PetscBool solve)
{
  char      name[64];
  Mat       A[2];
  Vec       x[3];
  PetscInt  its[3];
  PetscReal d, norm;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%d points, %s solves between", full ? 27 : 7, solve ? "with" : "without"));
  MatTestName = name;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestStencil(3, n, full, 0, k ? "aijhybridgpu" : MATAIJ, &A[k]));
    PetscCall(MatSetOption(A[k], MAT_SYMMETRIC, PETSC_TRUE));
  }
  PetscCall(Newton(A[0], STEPS, solve, PETSC_FALSE, &x[0], &its[0]));
  PetscCall(Newton(A[1], 1, PETSC_TRUE, PETSC_FALSE, &x[2], &its[2]));
  Clear();
  PetscCall(Newton(A[1], STEPS, solve, PETSC_TRUE, &x[1], &its[1]));
  Check("set-up", Steps[0], STEPS);
  if (solve) Check("solve", Steps[1], STEPS);
  PetscCall(VecNorm(x[0], NORM_2, &norm));
  PetscCall(VecAXPY(x[1], -1.0, x[0]));
  PetscCall(VecNorm(x[1], NORM_2, &d));
  MatTestCheck(d <= 1e-7 * norm, "the solution");
  MatTestCheck(its[0] == its[1], "the number of iterations");
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&x[k]));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(MatProductType type, PetscInt n)
{
  char name[64];
  Mat  A[2], P[2], C[2], square;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "product %s", MatProductTypes[type]));
  MatTestName = name;
  Clear();
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestStencil(3, n, PETSC_FALSE, 0, k ? "aijhybridgpu" : MATAIJ, &A[k]));
    PetscCall(MatTestRandom(n * n * n, n * n * n / 8, 2, 1, &square));
    PetscCall(MatConvert(square, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &P[k]));
    PetscCall(MatDestroy(&square));
    for (int s = 1; s <= STEPS; s++) {
      MatTestBoth(Values, A[k], P[k], s);
      if (k) StepBegin(&Steps[0][s]);
      if (s == 1)
        PetscCall(MatTestProduct(type, A[k], type == MATPRODUCT_AtB ? A[k] : P[k], NULL, &C[k]));
      else
        PetscCall(MatProductNumeric(C[k]));
      if (k) StepEnd(&Steps[0][s]);
    }
  }
  /* A^T B gets a plan when its repetitions have cost as much: by the fifth step */
  Check("product", Steps[0], type == MATPRODUCT_AtB ? 3 : STEPS);
  MatTestCheckSame(C[1], C[0], "the product");
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestDestroy(&A[k], &P[k], &C[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt n = 14;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-show", &Shown, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-names", &Names, NULL));
  PetscCall(MatTestOpenDevice());
  PetscCall(StepOpen());
  /* before 3.21 set-ups of several processes are PETSc's, whose second one makes a Galerkin product anew */
  if (Size == 1 || PETSC_VERSION_GE(3, 21, 0)) {
    PetscCall(Setups(n, PETSC_FALSE, PETSC_TRUE));
    PetscCall(Setups(n, PETSC_TRUE, PETSC_FALSE));
  } else
    MatTestSkipped++;
  MatTestBoth(Products, MATPRODUCT_AB, MATPRODUCT_AtB, n);
  PetscCall(Products(MATPRODUCT_PtAP, n));
  return MatTestEnd();
}
