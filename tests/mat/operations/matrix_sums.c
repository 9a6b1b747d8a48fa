/*
  MatAXPY() and MatAYPX() beside MATAIJ: patterns that are the same, within each other or neither, by every
  MatStructure, with matrices of every origin (pairs.h). Compared are not the entries alone: the class of an error,
  what pairs.h sees, whether there is room for another entry, and whether MatSetValuesCOO() goes on. What PETSc does
  with them: TSBEULER, GAMG of a graph.

TEST np=1,2
TEST np=1,2 @emulated -every 6
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 12

-every N: one in N of the sums, others for each origin.
*/
#include "pairs.h"
#include <petscts.h>

#define ROWS 12
static const char *const PatternNames[] = {"tridiagonal", "no diagonal", "wide", "diagonal", "first and last", "empty", "nodes", "shifted"};
static const char *const Structures[]   = {"DIFFERENT", "SUBSET", "SAME", "UNKNOWN"};
static PetscBool         Device;
static PetscInt          Every = 1;
static char              Name[256];
static MatNullSpace      Constant;

static PetscBool Within(Pattern p, Pattern q)
{
  for (PetscInt r = 0; r < ROWS; r++) {
    PetscInt c[2][5], n[2] = {PairsColumns(p, r, ROWS, c[0]), PairsColumns(q, r, ROWS, c[1])};

    for (PetscInt k = 0; k < n[0]; k++) {
      PetscInt l = 0;

      while (l < n[1] && c[1][l] != c[0][k]) l++;
      if (l == n[1]) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

/* a number of the pattern of this process's rows */
static PetscErrorCode PatternOf(Mat A, PetscInt64 *pattern)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  *pattern = 0;
  if (!A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt        n;
    const PetscInt *c;

    PetscCall(MatGetRow(A, r, &n, &c, NULL));
    for (PetscInt k = 0; k < n; k++) *pattern = (*pattern * 31 + 100 * r + c[k]) % 1000000007;
    PetscCall(MatRestoreRow(A, r, &n, &c, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(Pair *p, Kind kind, Pattern pattern, PetscBool decorated, PetscInt64 *was)
{
  PetscFunctionBeginUser;
  PetscCall(PairMake(p, kind, pattern, ROWS, ROWS));
  PetscCall(PatternOf(p->m[0], was));
  for (int k = 0; k < 2; k++) {
    if (decorated) PetscCall(PairsDecorate(p->m[k], Constant));
    PetscCall(SeenGet(p->m[k], &p->before[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same happened to both */
static PetscErrorCode Compare(Pair *p, PetscInt64 *was)
{
  PetscBool  moved[2], same, all;
  PetscInt64 pattern;

  PetscFunctionBeginUser;
  if (p->error[0] != p->error[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "error of MATAIJ %d, of ours %d\n", (int)p->error[0], (int)p->error[1]));
  PetscCall(PairsCount((PetscBool)(p->error[0] == p->error[1]), Name, "errors"));
  PetscCall(PairsCompare(p->m[0], p->m[1], p->before, Name));
  /* MATAIJ's number may stay by chance where another matrix takes the place: then ours is free to move, but not with
     the pattern as it was */
  PetscCall(PatternOf(p->m[0], &pattern));
  for (int k = 0; k < 2; k++) moved[k] = (PetscBool)(p->m[k]->nonzerostate != p->before[k].nonzerostate);
  same = all = (PetscBool)(pattern == *was);
  PetscCall(PairsAll(&all));
  if (!all && moved[0]) PetscCall(PairsCount(moved[1], Name, "pattern's state moved with the pattern"));
  if (MatTestSize() == 1 && same && !moved[0]) PetscCall(PairsCount((PetscBool)!moved[1], Name, "pattern's state stays with the pattern"));
  *was = pattern;
  for (int k = 0; k < 2; k++) PetscCall(SeenGet(p->m[k], &p->before[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an entry that the pattern lacks */
static PetscErrorCode Insert(Mat A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatSetValue(A, start + 1, (start + 7) % ROWS, 1.0, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += X or Y = a Y + X: again, after new values, and what is left behind */
static PetscErrorCode TestSum(Kind by, Kind bx, Pattern py, Pattern px, MatStructure str, PetscBool aypx, PetscScalar alpha, MatOption option, PetscBool decorated)
{
  Pair       y, x;
  PetscInt64 was, unused;
  PetscBool  goeson;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Name, sizeof(Name), "%s, Y %s %s, X %s %s, %s, %g%s%s", aypx ? "MatAYPX" : "MatAXPY", PatternNames[py], KindNames[by], PatternNames[px], KindNames[bx], Structures[str], (double)PetscRealPart(alpha), decorated ? ", decorated" : "", option == MAT_OPTION_MIN ? "" : ", no new entries"));
  MatTestName = Name;
  PetscCall(Make(&y, by, py, decorated, &was));
  PetscCall(Make(&x, bx, px, PETSC_FALSE, &unused));
  if (option != MAT_OPTION_MIN)
    for (int k = 0; k < 2; k++) PetscCall(MatSetOption(y.m[k], option, (PetscBool)(option != MAT_NEW_NONZERO_LOCATIONS)));
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 2; k++)
      if (aypx)
        QUIETLY(y.error[k], MatAYPX(y.m[k], alpha, x.m[k], str));
      else
        QUIETLY(y.error[k], MatAXPY(y.m[k], alpha, x.m[k], str));
    PetscCall(Compare(&y, &was));
    if (y.error[0] || y.error[1]) break;
    if (round || by != BORN) continue;
    /* MATAIJ reads past its coordinates where there are more entries now, and before 3.21 has none in the matrix
       that took the other's place */
    goeson = Within(px, py);
    if (PETSC_VERSION_LT(3, 21, 0) && (str == DIFFERENT_NONZERO_PATTERN || (str == UNKNOWN_NONZERO_PATTERN && (py != px || MatTestSize() > 1)))) goeson = PETSC_FALSE;
    if (!goeson) continue;
    for (int k = 0; k < 2; k++) QUIETLY(y.error[k], PairsWriteCOO(y.m[k], py, 5, INSERT_VALUES));
    PetscCall(Compare(&y, &was));
  }
  if (!y.error[0] && !y.error[1]) {
    for (int k = 0; k < 2; k++) QUIETLY(y.error[k], Insert(y.m[k]));
    PetscCall(PairsCount((PetscBool)(y.error[0] == y.error[1]), Name, "error of a new entry"));
  }
  PetscCall(PairDestroy(&y));
  PetscCall(PairDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where new entries are forbidden or ignored */
static PetscErrorCode TestOptions(void)
{
  const MatOption options[] = {MAT_NEW_NONZERO_LOCATIONS, MAT_NEW_NONZERO_LOCATION_ERR, MAT_NEW_NONZERO_ALLOCATION_ERR, MAT_IGNORE_ZERO_ENTRIES};

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++)
    for (int str = 0; str < 4; str++) {
      if (str == SAME_NONZERO_PATTERN || MatTestSize() > 1) continue;
      PetscCall(TestSum(BORN, BORN, NODIAGONAL, TRIDIAGONAL, (MatStructure)str, PETSC_FALSE, 1.0, options[k], PETSC_TRUE));
      PetscCall(TestSum(PRODUCT, HOSTMADE, NODIAGONAL, WIDE, (MatStructure)str, PETSC_FALSE, 2.0, options[k], PETSC_FALSE));
      PetscCall(TestSum(BORN, PRODUCT, WIDE, TRIDIAGONAL, (MatStructure)str, PETSC_TRUE, 0.0, options[k], PETSC_FALSE));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other numbers of entries, SAME said: MATAIJ adds past the end where it does not look (a PETSc without checks),
   so the device's alone. And a matrix with itself. */
static PetscErrorCode TestRefused(void)
{
  Mat            Y, X, B;
  PetscErrorCode error;
  PetscInt64     was;
  Pair           p;

  PetscFunctionBeginUser;
  MatTestName = "SAME of other patterns, aliases";
  if (Device && MatTestSize() == 1) {
    PetscCall(PairsMakeCOO("aijhybridgpu", TRIDIAGONAL, ROWS, ROWS, &Y));
    PetscCall(PairsMakeCOO("aijhybridgpu", WIDE, ROWS, ROWS, &X));
    PetscCall(MatConvert(Y, MATAIJ, MAT_INITIAL_MATRIX, &B));
    QUIETLY(error, MatAXPY(Y, 2.0, X, SAME_NONZERO_PATTERN));
    MatTestCheck(error == PETSC_ERR_ARG_WRONG, "the class of the error");
    PetscCall(PairsEntries(B, Y, "nothing was added"));
    PetscCall(MatTestDestroy(&Y, &X, &B));
  } else
    MatTestSkipped++;
  for (int str = 0; str < 4; str++)
    for (int c = 0; c < 3; c++) {
      PetscCall(PetscSNPrintf(Name, sizeof(Name), "with itself, %s, %d", Structures[str], c));
      PetscCall(Make(&p, c ? BORN : PRODUCT, WIDE, PETSC_TRUE, &was));
      for (int k = 0; k < 2; k++) QUIETLY(p.error[k], MatAXPY(p.m[k], c ? -1.0 : 0.0, p.m[k], (MatStructure)str));
      PetscCall(Compare(&p, &was));
      /* before 3.26 PETSc's MatAYPX() of a matrix and itself scales both */
      for (int k = 0; k < 2; k++) QUIETLY(p.error[k], MatAYPX(p.m[k], c == 2 ? 0.0 : 3.0, p.m[k], (MatStructure)str));
      PetscCall(Compare(&p, &was));
      PetscCall(PairDestroy(&p));
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

/* a tridiagonal matrix from coordinates: of these values on the diagonal and beside it */
static PetscErrorCode Diagonals(Mat A, PetscReal diagonal, PetscReal beside)
{
  PetscScalar v[3 * ROWS];
  PetscInt    start, end, c[5], n = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt k = 0, m = PairsColumns(TRIDIAGONAL, r, ROWS, c); k < m; k++) v[n++] = c[k] == r ? diagonal : beside;
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LeftJacobian(TS ts, PetscReal time, Vec u, Vec v, PetscReal shift, Mat A, Mat P, void *ctx)
{
  return Diagonals(P, shift + 4.0, 0.0);
}

static PetscErrorCode RightJacobian(TS ts, PetscReal time, Vec u, Mat A, Mat P, void *ctx)
{
  return Diagonals(P, -2.0 - time, 1.0);
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

    PetscCall(PairsMakeCOO(k ? "aijhybridgpu" : MATAIJ, TRIDIAGONAL, ROWS, ROWS, &A));
    PetscCall(PairsMakeCOO(k ? "aijhybridgpu" : MATAIJ, TRIDIAGONAL, ROWS, ROWS, &B));
    PetscCall(PairsMakeCOO(k ? "aijhybridgpu" : MATAIJ, TRIDIAGONAL, ROWS, ROWS, &C));
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
    if (MatTestSize() == 1) MatTestCheck(nonzero[1] == nonzero[0], "the Jacobian's pattern is what it was");
    PetscCall(MatTestDestroy(&ts, &A, &B, &C));
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

    PetscCall(PairsMakeCOO(k ? "aijhybridgpu" : MATAIJ, NODIAGONAL, ROWS, ROWS, &A));
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
    PetscCall(MatTestDestroy(&pc, &x, &y, &A));
  }
  MatTestCheck(error[0] == error[1], "error");
  PetscCall(PetscInfo(NULL, "GAMG: %g and %g\n", (double)norm[0], (double)norm[1]));
  /* nearly singular, so the last digits differ */
  MatTestCheck(PetscAbsReal(norm[0] - norm[1]) <= 0.1 * (1 + PetscAbsReal(norm[0])) || (PetscIsInfOrNanReal(norm[0]) && PetscIsInfOrNanReal(norm[1])), "what it does");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is said of a matrix between its coordinates and their values */
static PetscErrorCode TestSaidBefore(void)
{
  Mat  A[2];
  Seen now[2];

  PetscFunctionBeginUser;
  MatTestName = "said before the values";
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestCreate(PETSC_COMM_WORLD, k ? "aijhybridgpu" : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, ROWS, ROWS, &A[k]));
  }
  /* Coordinates come in the first and the third one. Of a parallel MATAIJ the second ones' pattern has by chance the
     number of the first ones'. */
  for (int round = 0; round < (MatTestSize() > 1 ? 2 : 4); round++) {
    for (int k = 0; k < 2; k++) {
      if (round % 2 == 0) PetscCall(PairsPatternCOO(A[k], round < 2 ? TRIDIAGONAL : WIDE));
      PetscCall(MatSetOption(A[k], MAT_SYMMETRIC, PETSC_TRUE));
      PetscCall(MatSetOption(A[k], MAT_SPD, PETSC_TRUE));
      PetscCall(PairsWriteCOO(A[k], round < 2 ? TRIDIAGONAL : WIDE, round, INSERT_VALUES));
      PetscCall(SeenGet(A[k], &now[k]));
    }
    PetscCall(PairsCompareSeen(now, NULL, MatTestName));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
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
    MatTestCheck(difference < ROUNDED(1e-12), "MatSOR");
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&x[k]));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 19, 0)
/* A graph that MatCreateGraph() makes symmetric, of a matrix and of a duplicate, is MATAIJ's. A transpose alone
   claims nothing. */
static PetscErrorCode TestGraphOf(PetscBool symmetric, PetscBool duplicate)
{
  const PetscInt n = 40;
  Mat            A[2], G[2], T;
  PetscBool      known[2], is[2], same;

  PetscFunctionBeginUser;
  MatTestName = symmetric ? "the graph of a symmetric pattern" : "the graph of another pattern";
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestCreate(PETSC_COMM_SELF, k ? "seqaijhybridgpu" : MATSEQAIJ, n, n, n, n, &A[k]));
    PetscCall(MatSeqAIJSetPreallocation(A[k], 6, NULL));
    for (PetscInt r = 0; r < n; r++)
      for (PetscInt c = PetscMax(0, r - 2); c < PetscMin(n, r + 3); c++)
        if (symmetric || c != r + 2) PetscCall(MatSetValue(A[k], r, c, 1 + r + 0.5 * c, INSERT_VALUES));
    PetscCall(MatTestAssemble(A[k]));
    PetscCall(MatTranspose(A[k], MAT_INITIAL_MATRIX, &T));
    PetscCall(MatDestroy(&T));
    if (duplicate) {
      PetscCall(MatDuplicate(A[k], MAT_COPY_VALUES, &T));
      PetscCall(MatDestroy(&A[k]));
      A[k] = T;
    }
    PetscCall(MatCreateGraph(A[k], PETSC_TRUE, PETSC_TRUE, 0.01, &G[k]));
    PetscCall(MatIsStructurallySymmetricKnown(A[k], &known[0], &is[0]));
    MatTestCheck(!known[0], "the matrix claims nothing");
    PetscCall(MatIsStructurallySymmetricKnown(G[k], &known[k], &is[k]));
  }
  /* it is symmetric, whether that is known or not */
  for (int k = 0; k < 2; k++) MatTestCheck(!known[k] || is[k], "what the graphs claim");
  MatTestCheckSame(G[1], G[0], "the graph");
  PetscCall(MatEqual(A[0], A[1], &same));
  MatTestCheck(same, "the matrix stays");
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &G[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Sums of matrices\n"));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &Constant));
  PairsCounts    = PETSC_TRUE;
  PairsBlockSize = 2;
  PairsRoom      = 7; /* for another entry; a process has six columns of two processes' */
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &Device));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &Every, NULL));
  for (int by = 0; by < KINDS; by++)
    for (int bx = 0; bx < KINDS; bx++)
      for (int py = 0; py < PATTERNS; py++)
        for (int px = 0; px < PATTERNS; px++)
          for (int str = 0; str < 4; str++) {
            if (str == SAME_NONZERO_PATTERN && py != px) continue;
            /* some of all */
            if ((py * 7 + px * 3 + str + by + 2 * bx) % (by == BORN && bx <= BORN ? 2 : 23)) continue;
            if ((py + px + str + by + bx) % Every) continue;
            if (MatTestSize() > 1 && (by > BORN || bx > BORN || (py * 7 + px * 3 + by + bx) % 5)) continue;
            PetscCall(TestSum((Kind)by, (Kind)bx, (Pattern)py, (Pattern)px, (MatStructure)str, (PetscBool)((py + px) % 2), -1.5, MAT_OPTION_MIN, (PetscBool)((py + by) % 2)));
          }
  PetscCall(TestOptions());
  PetscCall(TestRefused());
  PetscCall(TestSaidBefore());
  if (MatTestSize() == 1) PetscCall(TestRefilled());
#if PETSC_VERSION_LT(3, 19, 0)
  for (int k = 0; k < 4; k++) PetscCall(TestGraphOf((PetscBool)(k & 1), (PetscBool)(k / 2)));
#endif
  /* MATAIJ reads coordinates that are gone, as above */
  if (MatTestSize() == 1 || PETSC_VERSION_GE(3, 21, 0)) PetscCall(TestEuler());
  PetscCall(TestGraph());
  PetscCall(MatNullSpaceDestroy(&Constant));
  return MatTestEnd();
}
