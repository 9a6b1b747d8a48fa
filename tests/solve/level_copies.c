/*
  Copies of levels' values in a cycle, and inner products that are left on the way: solve after solve of one system has
  the same bits, before there are copies and after; new values and a new pattern come into them; several right-hand
  sides make none. On an emulated device it is counted which kernels ran. A grid whose rows have shapes, and one of
  columns in no order. Results are MATAIJ's. Of several processes their own blocks have copies.

TEST np=1 @emulated -mat_aijhybridgpu_tuning ordered=2,ordered_fewest=0,sums=0,rowgroup_lanes=1
TEST np=1 @emulated -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,sums=0,rowgroup_lanes=1 -pc_mg_aijhybridgpu_precision single
TEST np=1 @emulated -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,sums=0,rowgroup_lanes=1 -mg_levels_ksp_max_it 3
TEST np=1 @emulated -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,sums=0,rowgroup_lanes=1 -pc_mg_aijhybridgpu_precision single -mg_levels_ksp_max_it 4
TEST np=1 @emulated -mat_aijhybridgpu_tuning ordered=0,sums=0 -none
TEST np=2 @emulated -mat_aijhybridgpu_tuning ordered=2,ordered_fewest=0,comm_together=0,whole=0,rowgroup_lanes=1
TEST np=+3 @emulated -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,comm_together=0,rowgroup_lanes=1
*/
#include "stepcounts.h"

static PetscBool   None, Single;
static PetscMPIInt Size;

/* launches of kernels whose names begin so */
static unsigned long long Launches(const Step *s, const char *kernel)
{
  unsigned long long n = 0;

  for (int k = 0; k < s->n; k++)
    if (strstr(s->of[k].name, kernel)) n += s->of[k].n;
  return n;
}

/* one solve by each; of ours what was counted */
static PetscErrorCode Solve(KSP ksp[2], Vec b[2], Vec x[2], Step *step, const char *what)
{
  PetscReal d, norm;
  PetscInt  its[2];
  Vec       difference;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    if (k) StepBegin(step);
    PetscCall(KSPSolve(ksp[k], b[k], x[k]));
    if (k) StepEnd(step);
    PetscCall(KSPGetIterationNumber(ksp[k], &its[k]));
  }
  PetscCall(VecDuplicate(x[0], &difference));
  PetscCall(VecCopy(x[1], difference));
  PetscCall(VecAXPY(difference, -1.0, x[0]));
  PetscCall(VecNorm(difference, NORM_2, &d));
  PetscCall(VecNorm(x[0], NORM_2, &norm));
  MatTestCheck(d <= 1e-6 * norm, what);
  MatTestCheck(PetscAbsInt(its[0] - its[1]) <= (Single ? 1 : 0), "the number of iterations");
  PetscCall(VecDestroy(&difference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* several right-hand sides read no plans */
static PetscErrorCode Columns(KSP ksp, PetscInt N)
{
  Step step;
  Mat  B, X;

  PetscFunctionBeginUser;
  memset(&step, 0, sizeof(step));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, N, 2, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatTestAssemble(X));
  PetscCall(KSPSetUp(ksp));
  StepBegin(&step);
  PetscCall(KSPMatSolve(ksp, B, X));
  StepEnd(&step);
  if (StepEmulator && !Single) MatTestCheck(!Launches(&step, "DiaCopy") && !Launches(&step, "SellFill"), "copies that several columns do not read");
  PetscCall(MatTestDestroy(&B, &X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* shapes: the finest level's rows have them */
static PetscErrorCode Case(Mat given, PetscBool shapes, const char *name)
{
  const char *const kernel = shapes ? "DiaRows" : "SellRows";
  Mat               A[2];
  KSP               ksp[2];
  Vec               b[2], x[2], first;
  Step              step;
  PetscInt          N;

  PetscFunctionBeginUser;
  MatTestName = name;
  PetscCall(MatGetSize(given, &N, NULL));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatConvert(given, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &A[k]));
    PetscCall(MatSetOption(A[k], MAT_SPD, PETSC_TRUE));
    PetscCall(MatCreateVecs(A[k], &x[k], &b[k]));
    PetscCall(StepSolver(A[k], 1e-8, 60, &ksp[k]));
  }
  PetscCall(VecSetRandom(b[0], NULL));
  PetscCall(VecCopy(b[0], b[1]));
  PetscCall(VecDuplicate(x[1], &first));
  for (int s = 1; s <= 7; s++) {
    if (s == 5)
      for (int k = 0; k < 2; k++) PetscCall(MatScale(A[k], 1.7));
    memset(&step, 0, sizeof(step));
    for (int k = 0; k < 2; k++) PetscCall(KSPSetUp(ksp[k]));
    PetscCall(Solve(ksp, b, x, &step, s < 5 ? "a solve" : "a solve with other values"));
    if (s == 1 || s == 5) PetscCall(VecCopy(x[1], first));
    if (s != 1 && s != 5) {
      PetscBool same;

      PetscCall(VecEqual(x[1], first, &same));
      MatTestCheck(same, "another solve of the same system has other bits");
    }
    if (StepEmulator && s > 1) {
      /* a process's part of the grid may be too small for shapes */
      MatTestCheck((Launches(&step, kernel) + (Size > 1 ? Launches(&step, "SellRows") : 0) > 0) == !None, "products with a copy of the values");
      if (!None && Size == 1) MatTestCheck((Launches(&step, "CGLeave") > 0) == !shapes, "inner products that were left on the way");
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(MatScale(A[k], 0.9));
  if (Size == 1) PetscCall(Columns(ksp[1], N));
  for (int k = 0; k < 2; k++) PetscCall(KSPSetUp(ksp[k]));
  memset(&step, 0, sizeof(step));
  PetscCall(Solve(ksp, b, x, &step, "a solve after columns"));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestDestroy(&ksp[k], &A[k], &x[k], &b[k]));
  }
  PetscCall(VecDestroy(&first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same matrix with its rows in another order */
static PetscErrorCode Shuffled(Mat A, Mat *B)
{
  PetscRandom rand;
  IS          rows;
  PetscInt    n, *to;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(PetscMalloc1(n, &to));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &rand));
  for (PetscInt k = 0; k < n; k++) to[k] = k;
  for (PetscInt k = n - 1; k > 0; k--) {
    PetscReal r;
    PetscInt  q, t;

    PetscCall(PetscRandomGetValueReal(rand, &r));
    q     = PetscMin(k, (PetscInt)(r * (PetscReal)(k + 1)));
    t     = to[k];
    to[k] = to[q];
    to[q] = t;
  }
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, n, to, PETSC_OWN_POINTER, &rows));
  PetscCall(ISSetPermutation(rows));
  PetscCall(MatPermute(A, rows, rows, B));
  PetscCall(MatTestDestroy(&rows, &rand));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A, B;
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-none", &None, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-pc_mg_aijhybridgpu_precision", &Single));
  PetscCall(MatTestOpenDevice());
  PetscCall(StepOpen());
  Size = size;
  if (PETSC_VERSION_GE(3, 21, 0)) {
    PetscCall(MatTestStencil(3, 14, PETSC_FALSE, 0, MATAIJ, &A));
    PetscCall(Case(A, PETSC_TRUE, "7 points"));
    if (size == 1) {
      PetscCall(Shuffled(A, &B));
      PetscCall(Case(B, PETSC_FALSE, "7 points in no order"));
      PetscCall(MatDestroy(&B));
    }
    PetscCall(MatDestroy(&A));
    PetscCall(MatTestStencil(2, 40, PETSC_TRUE, 0, MATAIJ, &A));
    PetscCall(Case(A, PETSC_TRUE, "9 points"));
    PetscCall(MatDestroy(&A));
  } else
    MatTestSkipped++;
  return MatTestEnd();
}
