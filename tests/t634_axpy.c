/*
  MatAXPY() and MatAYPX() beside MATAIJ: patterns that are the same, within each other or neither, by every
  MatStructure, with matrices of every birth (twins.h). Compared are not the entries alone: the class of an error,
  what twins.h sees, whether there is room for another entry, and whether MatSetValuesCOO() goes on. What PETSc does
  with them: TSBEULER, GAMG of a graph.

TEST np=1,2
TEST np=1,2 @emulated -every 6
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 12

-every N: one in N of the sums, others for each birth.
*/
#include "twins.h"
#include <petscts.h>

static PetscBool Device;
static PetscInt  Every = 1;

static PetscBool Within(Pattern p, Pattern q)
{
  for (PetscInt r = 0; r < N; r++) {
    PetscInt c[2][N], n[2] = {Columns(p, r, c[0]), Columns(q, r, c[1])};

    for (PetscInt k = 0; k < n[0]; k++) {
      PetscInt l = 0;

      while (l < n[1] && c[1][l] != c[0][k]) l++;
      if (l == n[1]) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

static PetscErrorCode CoordinateValues(Mat A, Pattern p, PetscInt seed)
{
  PetscScalar v[N * N];
  PetscInt    n;

  PetscFunctionBeginUser;
  PetscCall(Coordinates(A, p, seed, NULL, NULL, v, &n));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an entry that the pattern lacks */
static PetscErrorCode Insert(Mat A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatSetValue(A, start + 1, (start + 7) % N, 1.0, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += X or Y = a Y + X: again, after new values, and what is left behind */
static PetscErrorCode TestSum(Birth by, Birth bx, Pattern py, Pattern px, MatStructure str, PetscBool aypx, PetscScalar alpha, MatOption option, PetscBool decorated)
{
  Twins          y, x;
  PetscErrorCode error[2];
  PetscBool      goeson;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "%s, Y %s %s, X %s %s, %s, %g%s%s", aypx ? "MatAYPX" : "MatAXPY", PatternNames[py], BirthNames[by], PatternNames[px], BirthNames[bx], Structures[str], (double)PetscRealPart(alpha), decorated ? ", decorated" : "", option == MAT_OPTION_MIN ? "" : ", no new entries"));
  MatTestName = Case;
  PetscCall(TwinsMake(by, py, 1, decorated, &y));
  PetscCall(TwinsMake(bx, px, 2, PETSC_FALSE, &x));
  if (option != MAT_OPTION_MIN)
    for (int k = 0; k < 2; k++) PetscCall(MatSetOption(y.m[k], option, (PetscBool)(option != MAT_NEW_NONZERO_LOCATIONS)));
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 2; k++)
      if (aypx)
        QUIETLY(error[k], MatAYPX(y.m[k], alpha, x.m[k], str));
      else
        QUIETLY(error[k], MatAXPY(y.m[k], alpha, x.m[k], str));
    PetscCall(TwinsCompare(&y, error));
    if (error[0] || error[1]) break;
    if (round || by != COORDINATES) continue;
    /* MATAIJ reads past its coordinates where there are more entries now, and before 3.21 has none in the matrix
       that took the other's place */
    goeson = Within(px, py);
    if (PETSC_VERSION_LT(3, 21, 0) && (str == DIFFERENT_NONZERO_PATTERN || (str == UNKNOWN_NONZERO_PATTERN && (py != px || Size > 1)))) goeson = PETSC_FALSE;
    if (!goeson) continue;
    for (int k = 0; k < 2; k++) QUIETLY(error[k], CoordinateValues(y.m[k], py, 5));
    PetscCall(TwinsCompare(&y, error));
  }
  if (!error[0] && !error[1]) {
    for (int k = 0; k < 2; k++) QUIETLY(error[k], Insert(y.m[k]));
    PetscCall(Differs("error of a new entry", (PetscInt)error[0], (PetscInt)error[1]));
  }
  PetscCall(TwinsDestroy(&y));
  PetscCall(TwinsDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where new entries are forbidden or ignored */
static PetscErrorCode TestOptions(void)
{
  const MatOption options[] = {MAT_NEW_NONZERO_LOCATIONS, MAT_NEW_NONZERO_LOCATION_ERR, MAT_NEW_NONZERO_ALLOCATION_ERR, MAT_IGNORE_ZERO_ENTRIES};

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++)
    for (int str = 0; str < 4; str++) {
      if (str == SAME_NONZERO_PATTERN || Size > 1) continue;
      PetscCall(TestSum(COORDINATES, COORDINATES, NEIGHBOURS, TRIDIAGONAL, (MatStructure)str, PETSC_FALSE, 1.0, options[k], PETSC_TRUE));
      PetscCall(TestSum(PRODUCT, ASSEMBLED, NEIGHBOURS, WIDER, (MatStructure)str, PETSC_FALSE, 2.0, options[k], PETSC_FALSE));
      PetscCall(TestSum(COORDINATES, PRODUCT, WIDER, TRIDIAGONAL, (MatStructure)str, PETSC_TRUE, 0.0, options[k], PETSC_FALSE));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other numbers of entries, SAME said: MATAIJ adds past the end where it does not look (a PETSc without checks),
   so the device's alone. And a matrix with itself. */
static PetscErrorCode TestRefused(void)
{
  Mat            Y, X, B;
  PetscErrorCode error;
  PetscBool      same;
  Twins          t;
  PetscErrorCode errors[2];

  PetscFunctionBeginUser;
  MatTestName = "SAME of other patterns, aliases";
  if (Device && Size == 1) {
    PetscCall(Make("aijhybridgpu", COORDINATES, TRIDIAGONAL, 1, &Y));
    PetscCall(Make("aijhybridgpu", COORDINATES, WIDER, 2, &X));
    PetscCall(MatConvert(Y, MATAIJ, MAT_INITIAL_MATRIX, &B));
    QUIETLY(error, MatAXPY(Y, 2.0, X, SAME_NONZERO_PATTERN));
    MatTestCheck(error == PETSC_ERR_ARG_WRONG, "the class of the error");
    PetscCall(Same(B, Y, PETSC_TRUE, &same));
    MatTestCheck(same, "nothing was added");
    PetscCall(MatDestroy(&Y));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&B));
  } else
    MatTestSkipped++;
  for (int str = 0; str < 4; str++)
    for (int c = 0; c < 3; c++) {
      PetscCall(PetscSNPrintf(Case, sizeof(Case), "with itself, %s, %d", Structures[str], c));
      PetscCall(TwinsMake(c ? COORDINATES : PRODUCT, WIDER, 1, PETSC_TRUE, &t));
      for (int k = 0; k < 2; k++) QUIETLY(errors[k], MatAXPY(t.m[k], c ? -1.0 : 0.0, t.m[k], (MatStructure)str));
      PetscCall(TwinsCompare(&t, errors));
      /* before 3.26 PETSc's MatAYPX() of a matrix and itself scales both */
      for (int k = 0; k < 2; k++) QUIETLY(errors[k], MatAYPX(t.m[k], c == 2 ? 0.0 : 3.0, t.m[k], (MatStructure)str));
      PetscCall(TwinsCompare(&t, errors));
      PetscCall(TwinsDestroy(&t));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* u' + A u = B u, both Jacobians from coordinates: TS adds the second one's to the first one's by
   UNKNOWN_NONZERO_PATTERN, in each step */
static PetscErrorCode Left(TS ts, PetscReal time, Vec u, Vec v, Vec f, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(f, 4.0, u, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LeftJacobian(TS ts, PetscReal time, Vec u, Vec v, PetscReal shift, Mat A, Mat P, void *ctx)
{
  PetscScalar a[N * N];
  PetscInt    i[N * N], j[N * N], n;

  PetscFunctionBeginUser;
  PetscCall(Coordinates(P, TRIDIAGONAL, 0, i, j, a, &n));
  for (PetscInt k = 0; k < n; k++) a[k] = i[k] == j[k] ? shift + 4.0 : 0.0;
  PetscCall(MatSetValuesCOO(P, a, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RightJacobian(TS ts, PetscReal time, Vec u, Mat A, Mat P, void *ctx)
{
  PetscScalar a[N * N];
  PetscInt    i[N * N], j[N * N], n;

  PetscFunctionBeginUser;
  PetscCall(Coordinates(P, TRIDIAGONAL, 0, i, j, a, &n));
  for (PetscInt k = 0; k < n; k++) a[k] = i[k] == j[k] ? -2.0 - time : 1.0;
  PetscCall(MatSetValuesCOO(P, a, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Right(TS ts, PetscReal time, Vec u, Vec f, void *ctx)
{
  Mat *A = (Mat *)ctx;

  PetscFunctionBeginUser;
  PetscCall(RightJacobian(ts, time, u, *A, *A, ctx));
  PetscCall(MatMult(*A, u, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestEuler(void)
{
  Vec              u[2];
  PetscObjectState nonzero[2];

  PetscFunctionBeginUser;
  MatTestName = "TSBEULER";
  for (int k = 0; k < 2; k++) {
    TS             ts;
    Mat            A, B, C;
    PetscErrorCode error;

    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, TRIDIAGONAL, 1, &A));
    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, TRIDIAGONAL, 1, &B));
    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, TRIDIAGONAL, 1, &C));
    PetscCall(MatCreateVecs(A, &u[k], NULL));
    PetscCall(VecSet(u[k], 1.0));
    PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
    PetscCall(TSSetType(ts, TSBEULER));
    PetscCall(TSSetIFunction(ts, NULL, Left, NULL));
    PetscCall(TSSetIJacobian(ts, A, A, LeftJacobian, NULL));
    PetscCall(TSSetRHSFunction(ts, NULL, Right, &C));
    PetscCall(TSSetRHSJacobian(ts, B, B, RightJacobian, NULL));
    PetscCall(TSSetTimeStep(ts, 0.1));
    PetscCall(TSSetMaxSteps(ts, 4));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    PetscCall(MatGetNonzeroState(A, &nonzero[0]));
    QUIETLY(error, TSSolve(ts, u[k]));
    MatTestCheck(!error, k ? "ours, all steps" : "MATAIJ, all steps");
    PetscCall(MatGetNonzeroState(A, &nonzero[1]));
    if (Size == 1) MatTestCheck(nonzero[1] == nonzero[0], "the Jacobian's pattern is what it was");
    PetscCall(TSDestroy(&ts));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  VecTestCheckSame(u[1], u[0], "the solution");
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&u[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GAMG adds a graph without a diagonal to its square, and says SUBSET */
static PetscErrorCode TestGraph(void)
{
  PetscReal      norm[2] = {0, 0};
  PetscErrorCode error[2];

  PetscFunctionBeginUser;
  MatTestName = "GAMG of a graph";
  for (int k = 0; k < 2; k++) {
    Mat A;
    PC  pc;
    Vec x, y;

    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, NEIGHBOURS, 1, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_pc_gamg_aggressive_coarsening", "1"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_pc_gamg_coarse_eq_limit", "2"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_mg_levels_pc_type", "none"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_mg_levels_ksp_type", "richardson"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_mg_coarse_sub_pc_factor_shift_type", "nonzero"));
    PetscCall(PCSetOptionsPrefix(pc, "graph_"));
    PetscCall(PCSetFromOptions(pc));
    PetscCall(PCSetOperators(pc, A, A));
    QUIETLY(error[k], PCSetUp(pc));
    if (!error[k]) QUIETLY(error[k], PCApply(pc, x, y));
    if (!error[k]) PetscCall(VecNorm(y, NORM_2, &norm[k]));
    PetscCall(PCDestroy(&pc));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "GAMG"));
  PetscCall(Differs("error", (PetscInt)error[0], (PetscInt)error[1]));
  PetscCall(PetscInfo(NULL, "GAMG: %g and %g\n", (double)norm[0], (double)norm[1]));
  /* nearly singular, so the last digits differ */
  MatTestCheck(PetscAbsReal(norm[0] - norm[1]) <= 0.1 * (1 + PetscAbsReal(norm[0])) || (PetscIsInfOrNanReal(norm[0]) && PetscIsInfOrNanReal(norm[1])), "what it does");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is said of a matrix between its coordinates and their values */
static PetscErrorCode TestSaidBefore(void)
{
  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "said before the values"));
  MatTestName = Case;
  {
    Mat      A[2];
    Seen     now[2];
    PetscInt i[N * N], j[N * N], n = 0;

    for (int k = 0; k < 2; k++) {
      PetscLayout map;

      PetscCall(MatCreate(PETSC_COMM_WORLD, &A[k]));
      PetscCall(MatSetSizes(A[k], PETSC_DECIDE, PETSC_DECIDE, N, N));
      PetscCall(MatSetType(A[k], k ? "aijhybridgpu" : MATAIJ));
      PetscCall(MatGetLayouts(A[k], &map, NULL));
      PetscCall(PetscLayoutSetUp(map));
    }
    /* Coordinates come in the first and the third one. Of a parallel MATAIJ the second ones' pattern has by chance the
       number of the first ones'. */
    for (int round = 0; round < (Size > 1 ? 2 : 4); round++) {
      for (int k = 0; k < 2; k++) {
        PetscScalar v[N * N];

        PetscCall(Coordinates(A[k], round < 2 ? TRIDIAGONAL : WIDER, round, i, j, v, &n));
        if (round % 2 == 0) PetscCall(MatSetPreallocationCOO(A[k], n, i, j));
        PetscCall(MatSetOption(A[k], MAT_SYMMETRIC, PETSC_TRUE));
        PetscCall(MatSetOption(A[k], MAT_SPD, PETSC_TRUE));
        PetscCall(MatSetValuesCOO(A[k], v, INSERT_VALUES));
        PetscCall(Look(A[k], &now[k]));
      }
      for (int q = 0; q < SEEN; q++) PetscCall(Differs(SeenNames[q], now[0].is[q], now[1].is[q]));
    }
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = one sweep from 0 with a matrix of so many entries, no two rows alike, which was the sum of two whose rows were
   alike by fours, got a new entry, and went back to its preallocation */
static PetscErrorCode Refilled(const char *type, PetscInt entries, Vec b, Vec x)
{
  const PetscInt n = 24;
  Mat            part, sum[2];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(MatTestRoom(type, n, n, n, n, 4, &part, NULL, NULL));
    for (PetscInt e = 0; e < 4 * n; e++) PetscCall(MatSetValue(part, e / 4, (e / 16 * 4 + e % 4 + 8 * k) % n, 1.0, INSERT_VALUES));
    PetscCall(MatTestAssemble(part));
    PetscCall(MatTranspose(part, MAT_INITIAL_MATRIX, &sum[k])); /* made on the device */
    PetscCall(MatDestroy(&part));
  }
  PetscCall(MatAXPY(sum[0], 1.0, sum[1], DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatSetOption(sum[0], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetValue(sum[0], 0, n - 1, 1.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(sum[0]));
  PetscCall(MatResetPreallocation(sum[0]));
  for (PetscInt e = 0; e < 8 * n; e++) {
    const PetscInt row = e % n, k = e / n;

    if (e < entries) PetscCall(MatSetValue(sum[0], row, (row + k * (1 + row % 3)) % n, k ? 1.0 : 10.0, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(sum[0]));
  PetscCall(MatSOR(sum[0], b, 1.0, (MatSORType)(SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS), 0.0, 1, 1, x));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&sum[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATAIJ looks for rows of equal pattern again where the number of the pattern is another one: no number comes twice */
static PetscErrorCode TestRefilled(void)
{
  Vec       b, x[2];
  PetscReal difference;

  PetscFunctionBeginUser;
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 24, &b));
  for (int k = 0; k < 2; k++) PetscCall(VecDuplicate(b, &x[k]));
  PetscCall(VecSet(b, 1.0));
  MatTestName = "a sum filled again";
  for (PetscInt entries = 176; entries <= 192; entries++) {
    PetscCall(Refilled(MATAIJ, entries, b, x[0]));
    PetscCall(Refilled("aijhybridgpu", entries, b, x[1]));
    PetscCall(VecAXPY(x[1], -1.0, x[0]));
    PetscCall(VecNorm(x[1], NORM_INFINITY, &difference));
    MatTestCheck(difference < 1e-12, "MatSOR");
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&x[k]));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Sums of matrices\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &Device));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &Every, NULL));
  for (int by = 0; by < BIRTHS; by++)
    for (int bx = 0; bx < BIRTHS; bx++)
      for (int py = 0; py < PATTERNS; py++)
        for (int px = 0; px < PATTERNS; px++)
          for (int str = 0; str < 4; str++) {
            if (str == SAME_NONZERO_PATTERN && py != px) continue;
            /* some of all */
            if ((py * 7 + px * 3 + str + by + 2 * bx) % (by == COORDINATES && bx <= COORDINATES ? 2 : 13)) continue;
            if ((py + px + str + by + bx) % Every) continue;
            if (Size > 1 && (by > COORDINATES || bx > COORDINATES || (py * 7 + px * 3 + by + bx) % 5)) continue;
            PetscCall(TestSum((Birth)by, (Birth)bx, (Pattern)py, (Pattern)px, (MatStructure)str, (PetscBool)((py + px) % 2), -1.5, MAT_OPTION_MIN, (PetscBool)((py + by) % 2)));
          }
  PetscCall(TestOptions());
  PetscCall(TestRefused());
  PetscCall(TestSaidBefore());
  if (Size == 1) PetscCall(TestRefilled());
  /* MATAIJ reads coordinates that are gone, as above */
  if (Size == 1 || PETSC_VERSION_GE(3, 21, 0)) PetscCall(TestEuler());
  PetscCall(TestGraph());
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
