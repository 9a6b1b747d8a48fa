/*
  Multigrid's cycle in single precision, -pc_mg_aijhybridgpu_precision single, and with values of 16 bits, half: near to
  the one in double and not the same; of a right-hand side times a power of two it makes the same bits times that power,
  be it very large or small; zero stays zero and NaN stays NaN; values that a program writes through an array that it
  holds are seen; a matrix whose numbers single precision does not have keeps PETSc's results, and so does one with a
  singular coarsest level.

TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -half -mat_aijhybridgpu_tuning ordered_fewest=0,rowgroup_lanes=1
TEST np=2 @emulated
*/
#include "solvetest.h"

static PetscErrorCode SolverOf(Mat S, const char *precision, PC *pc, KSP *ksp)
{
  char options[128];
  Mat  A;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(S, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  {
    MatNullSpace null;

    PetscCall(MatGetNullSpace(S, &null));
    if (null) PetscCall(MatSetNullSpace(A, null));
  }
  snprintf(options, sizeof(options), BASE " -pc_type gamg -pc_mg_aijhybridgpu_precision %s", precision);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscCall(KSPGetPC(*ksp, pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |x - y| / |y| */
static PetscErrorCode Distance(Vec x, Vec y, PetscReal *d)
{
  PetscReal norm;
  Vec       z;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecWAXPY(z, -1, y, x));
  PetscCall(VecNorm(z, NORM_2, d));
  PetscCall(VecNorm(y, NORM_2, &norm));
  *d /= norm;
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what both make of one right-hand side, thrice: by launches, captured, and as captured */
static PetscErrorCode BesideDouble(Mat S, const char *precision, PetscReal least, PetscReal most, const char *what)
{
  PC        pc[2];
  KSP       ksp[2];
  Vec       b, x[2];
  PetscReal d;
  char      why[64];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(SolverOf(S, k ? precision : "double", &pc[k], &ksp[k]));
    if (!k) PetscCall(MatCreateVecs(S, &x[0], &b));
    if (!k) PetscCall(VecDuplicate(x[0], &x[1]));
    PetscCall(RightHandSide(b, 0));
    for (int n = 0; n < 3; n++) PetscCall(PCApply(pc[k], b, x[k]));
  }
  PetscCall(Distance(x[1], x[0], &d));
  snprintf(why, sizeof(why), "%.1e", (double)d);
  Check3((PetscBool)(d >= least && d <= most), what, "", why, __LINE__);
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&ksp[k], &x[k]));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Powers(Mat S)
{
  static const int powers[] = {1, -1, 40, -40, 400, -400, 900, -900};
  PC               pc;
  KSP              ksp;
  Vec              b, x, y;
  PetscBool        same;
  PetscInt         odd = 0, n;

  PetscFunctionBeginUser;
  PetscCall(SolverOf(S, "single", &pc, &ksp));
  PetscCall(MatCreateVecs(S, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(RightHandSide(b, 1));
  PetscCall(PCApply(pc, b, x));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(powers); k++) {
    const PetscReal power = (PetscReal)ldexp(1.0, powers[k]);

    PetscCall(RightHandSide(b, 1));
    PetscCall(VecScale(b, power));
    PetscCall(PCApply(pc, b, y));
    PetscCall(VecScale(y, 1 / power));
    PetscCall(VecEqual(x, y, &same));
    MatTestCheck(same, "a right-hand side times a power of two");
  }
  PetscCall(VecSet(b, 0));
  PetscCall(PCApply(pc, b, y));
  PetscCall(VecSet(x, 0));
  PetscCall(VecEqual(x, y, &same));
  MatTestCheck(same, "of zero comes zero");
  PetscCall(RightHandSide(b, 1));
  PetscCall(VecSetValue(b, 3, NAN, INSERT_VALUES));
  PetscCall(VecTestAssemble(b));
  PetscCall(PCApply(pc, b, y));
  {
    const PetscScalar *a;

    PetscCall(VecGetLocalSize(y, &n));
    PetscCall(VecGetArrayRead(y, &a));
    for (PetscInt r = 0; r < n; r++) odd += PetscIsInfOrNanScalar(a[r]) ? 1 : 0;
    PetscCall(VecRestoreArrayRead(y, &a));
  }
  MatTestCheck(odd > 0, "of NaN comes NaN");
  PetscCall(RightHandSide(b, 1));
  PetscCall(PCApply(pc, b, y));
  PetscCall(RightHandSide(b, 1));
  PetscCall(PCApply(pc, b, x));
  PetscCall(VecEqual(x, y, &same));
  MatTestCheck(same, "after a NaN all is as before");
  PetscCall(MatTestDestroy(&ksp, &b, &x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values written while their array is held, of which the matrix's state says nothing */
static PetscErrorCode Held(Mat S)
{
  PC           pc[2];
  KSP          ksp[2];
  Vec          b, x[3];
  Mat          A;
  PetscScalar *a;
  PetscReal    d, moved;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(S, &x[2], &b));
  PetscCall(RightHandSide(b, 2));
  for (int k = 0; k < 2; k++) {
    PetscCall(SolverOf(S, k ? "single" : "double", &pc[k], &ksp[k]));
    PetscCall(VecDuplicate(b, &x[k]));
    PetscCall(KSPGetOperators(ksp[k], &A, NULL));
    PetscCall(MatSeqAIJGetArray(A, &a));
    PetscCall(PCApply(pc[k], b, x[2]));
    a[0] *= 1.5;
    a[7] *= 1.25;
    PetscCall(PCApply(pc[k], b, x[k]));
    PetscCall(MatSeqAIJRestoreArray(A, &a));
  }
  PetscCall(Distance(x[1], x[0], &d));
  PetscCall(Distance(x[2], x[1], &moved));
  MatTestCheck(d < 1e-5, "values written through an array that is held");
  MatTestCheck(moved > 1e-4, "they change something");
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&ksp[k], &x[k]));
  PetscCall(MatTestDestroy(&b, &x[2]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows whose sum is zero, and their null space */
static PetscErrorCode Close(Mat S)
{
  Vec          ones, sums;
  MatNullSpace null;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(S, &ones, &sums));
  PetscCall(VecSet(ones, -1.0));
  PetscCall(MatMult(S, ones, sums));
  PetscCall(MatDiagonalSet(S, sums, ADD_VALUES));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  PetscCall(MatSetNullSpace(S, null));
  PetscCall(MatNullSpaceDestroy(&null));
  PetscCall(MatTestDestroy(&ones, &sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a name that is none is told with those that are */
static PetscErrorCode Unknown(Mat S)
{
  PC             pc;
  KSP            ksp;
  Vec            b, x;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(SolverOf(S, "quarter", &pc, &ksp));
  PetscCall(MatCreateVecs(S, &x, &b));
  PetscCall(RightHandSide(b, 0));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = PCApply(pc, b, x);
  PetscCall(PetscPopErrorHandler());
  MatTestCheck(ierr != 0, "an unknown precision is an error");
  PetscCall(MatTestDestroy(&ksp, &b, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  /* of several processes the cycle is double, and so it is in a PETSc of another precision */
  PetscBool single, half;
  Mat       S;
  int       code = 1;

  PetscCall(SolveBegin(argc, argv));
  PetscFunctionBeginUser;
  MatTestName = "single precision";
  single      = (PetscBool)(PetscDefined(USE_REAL_DOUBLE) && SolveSize == 1);
  PetscCall(MatTestStencil(2, 24, PETSC_FALSE, 0.0, MATAIJ, &S));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-half", &half));
  if (half) { /* with a level between the finest and the coarsest */
    Mat large;

    PetscCall(MatTestStencil(2, 60, PETSC_FALSE, 0.0, MATAIJ, &large));
    /* the levels of older releases do not fit into slices */
    PetscCall(BesideDouble(large, "half", PETSC_VERSION_GE(3, 21, 0) ? 1e-5 : 1e-9, 1e-2, "16 bits beside double"));
    PetscCall(MatDestroy(&large));
  }
  PetscCall(BesideDouble(S, "single", single ? 1e-9 : 0, single ? 1e-5 : 0, "beside double"));
  if (single) PetscCall(Powers(S));
  if (single) PetscCall(Held(S));
  if (SolveSize == 1) PetscCall(Unknown(S));
  PetscCall(MatScale(S, 1e23));
  PetscCall(BesideDouble(S, half ? "half" : "single", 0, 0, "numbers beyond what single precision bears"));
  PetscCall(MatScale(S, 1e-46));
  PetscCall(BesideDouble(S, half ? "half" : "single", 0, 0, "whose reciprocals are"));
  PetscCall(MatDestroy(&S));
  PetscCall(MatTestStencil(2, 24, PETSC_FALSE, 0.0, MATAIJ, &S));
  PetscCall(Close(S));
  PetscCall(BesideDouble(S, half ? "half" : "single", 0, 0, "a singular coarsest level"));
  PetscCall(PetscOptionsInsertString(NULL, "-mg_coarse_pc_type svd"));
  if (SolveSize == 1) PetscCall(BesideDouble(S, "single", single ? 1e-9 : 0, single ? 1e-4 : 0, "a singular matrix with a regular coarsest level"));
  PetscCall(MatDestroy(&S));
  PetscCall(SolveEnd(PETSC_FALSE, &code));
  return code;
}
