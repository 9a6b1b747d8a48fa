/*
  Operations of the type against those of MATAIJ: conversions, copies, products with vectors, operations on values and
  patterns, submatrices, transposes, factorizations, views and structure-only matrices. Each runs on a matrix that was
  assembled on the host and on one that is a product's result, which lives on the device where there is one.

TEST np=1
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=2
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_plan_min 0
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=3
*/
#include "mattest.h"

/* a program's own product, by MatSetOperation() */
static PetscErrorCode (*Product)(Mat, Vec, Vec);
static int Products;

static PetscErrorCode CountedMult(Mat A, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  Products++;
  PetscCall((*Product)(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* products by both matrices, and a residual by the program's */
static PetscErrorCode CheckMults(Mat A, Mat H)
{
  Vec x, y, b, w;

  PetscFunctionBeginUser;
  PetscCall(MatTestMults(A, H));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &w));
  PetscCall(VecDuplicate(y, &b));
  MatTestBoth(VecSetRandom, x, b, NULL);
  PetscCall(MatResidual(A, b, x, y));
  PetscCall(MatGetOperation(H, MATOP_MULT, (void (**)(void)) & Product));
  PetscCall(MatSetOperation(H, MATOP_MULT, (void (*)(void))CountedMult));
  Products = 0;
  PetscCall(MatResidual(H, b, x, w));
  VecTestCheckSame(w, y, "MatResidual with the program's product");
  MatTestCheck(Products == 1, "MatResidual takes the program's product");
  PetscCall(MatSetOperation(H, MATOP_MULT, (void (*)(void))Product));
  PetscCall(MatTestDestroy(&x, &y, &w, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is done to both, in turn; B: a duplicate of each, T: its transpose; the last five to square ones alone */
static const char *const Steps[] = {"MatScale", "MatDiagonalScale", "MatDiagonalScale right", "MatAXPY same pattern", "MatAYPX subset pattern", "MatCopy same pattern", "MatTranspose", "MatTranspose reuse", "MatShift", "MatDiagonalSet add", "MatDiagonalSet insert", "MatAXPY different pattern", "MatTranspose in place"};
static PetscErrorCode    Step(int step, Mat A, Mat B, Vec l, Vec r, Mat *T)
{
  PetscFunctionBeginUser;
  switch (step) {
  case 0: PetscCall(MatScale(A, -2.5)); break;
  case 1: PetscCall(MatDiagonalScale(A, l, r)); break;
  case 2: PetscCall(MatDiagonalScale(A, NULL, r)); break;
  case 3: PetscCall(MatAXPY(A, 0.5, B, SAME_NONZERO_PATTERN)); break;
  case 4: PetscCall(MatAYPX(A, 0.5, B, SUBSET_NONZERO_PATTERN)); break;
  case 5: PetscCall(MatCopy(B, A, SAME_NONZERO_PATTERN)); break;
  case 6: PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, T)); break;
  case 7:
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, T));
    break;
  case 8: PetscCall(MatShift(A, 3.0)); break;
  case 9: PetscCall(MatDiagonalSet(A, l, ADD_VALUES)); break;
  case 10: PetscCall(MatDiagonalSet(A, r, INSERT_VALUES)); break;
  case 11: PetscCall(MatAXPY(A, 1.0, *T, DIFFERENT_NONZERO_PATTERN)); break;
  default: PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckSteps(Mat A, Mat H, PetscBool square)
{
  const int n    = (int)PETSC_STATIC_ARRAY_LENGTH(Steps) - (square ? 0 : 5);
  Mat       m[2] = {A, H}, B[2], T[2] = {NULL, NULL};
  Vec       l, r, d, e;
  PetscReal nh;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &r, &l));
  PetscCall(VecDuplicate(l, &d));
  PetscCall(VecDuplicate(l, &e));
  MatTestBoth(VecSetRandom, l, r, NULL);
  for (int k = 0; k < 2; k++) PetscCall(MatDuplicate(m[k], MAT_COPY_VALUES, &B[k]));
  MatTestCheckSame(B[1], B[0], "MatDuplicate");
  for (int step = 0; step < n; step++) {
    if (step == 8) MatTestBoth(MatTestLetIn, A, H);
    for (int k = 0; k < 2; k++) PetscCall(Step(step, m[k], B[k], l, r, &T[k]));
    MatTestCheckSame(H, A, Steps[step]);
    if (T[0]) MatTestCheckSame(T[1], T[0], Steps[step]);
    PetscCall(CheckMults(A, H));
    if (square) VecTestBoth(MatGetDiagonal, A, H, d, e);
  }
  PetscCall(MatZeroEntries(B[1]));
  PetscCall(MatNorm(B[1], NORM_FROBENIUS, &nh));
  MatTestCheck(nh == 0, "MatZeroEntries");
  PetscCall(MatDestroy(&B[1]));
  PetscCall(MatDuplicate(H, MAT_DO_NOT_COPY_VALUES, &B[1]));
  PetscCall(MatNorm(B[1], NORM_FROBENIUS, &nh));
  MatTestCheck(nh == 0, "MatDuplicate without values");
  PetscCall(MatTestDestroy(&B[0], &B[1], &T[0], &T[1], &l, &r, &d, &e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* every third row, the first half of the columns */
static PetscErrorCode CheckPart(Mat A, Mat H)
{
  IS       rows, cols;
  PetscInt start, end, cstart, cend, n;
  Mat      sa, sh;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  n = (end - start) / 3;
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, n, start, 3, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (cend - cstart) / 2, cstart, 1, &cols));
  PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &sa));
  PetscCall(MatCreateSubMatrix(H, rows, cols, MAT_INITIAL_MATRIX, &sh));
  MatTestCheckSame(sh, sa, "MatCreateSubMatrix");
  PetscCall(MatCreateSubMatrix(H, rows, cols, MAT_REUSE_MATRIX, &sh));
  MatTestCheckSame(sh, sa, "MatCreateSubMatrix reuse");
  PetscCall(MatTestDestroy(&sa, &sh, &rows, &cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new entries in an assembled matrix: the pattern moves under every cached plan */
static PetscErrorCode CheckNewEntries(Mat A, Mat H)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  MatTestBoth(MatTestLetIn, A, H);
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row += 4)
    MatTestBoth(MatSetValue, A, H, row, 1, 4.0 + row, ADD_VALUES);
  MatTestBoth(MatTestAssemble, A, H);
  MatTestCheckSame(H, A, "new entries after assembly");
  PetscCall(CheckMults(A, H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operations on a pair of equal matrices, one of each type; both are changed alike */
static PetscErrorCode CheckOperations(Mat A, Mat H, PetscBool square)
{
  PetscReal na, nh;
  NormType  norms[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};

  PetscFunctionBeginUser;
  MatTestCheckSame(H, A, "before anything");
  PetscCall(CheckMults(A, H));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(A, norms[k], &na));
    PetscCall(MatNorm(H, norms[k], &nh));
    MatTestCheck(PetscAbsReal(na - nh) <= ROUNDED(1e-12) * na, "MatNorm");
  }
  PetscCall(CheckSteps(A, H, square));
  PetscCall(CheckPart(A, H));
  PetscCall(CheckNewEntries(A, H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_seqaij_type lays the parent's other derived types over ours: their data stand where ours would */
static PetscErrorCode CheckLaidOver(void)
{
  const char *const types[] = {"seqaijperm", "seqaijcrl", "seqaijsell"};

  PetscFunctionBeginUser;
  MatTestName = "types over ours";
  PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", "seqaijhybridgpu"));
  for (int k = 0; k < 3; k++) {
    Mat         A;
    Vec         x, y, z;
    PetscScalar sum;

    PetscCall(MatTestCreate(PETSC_COMM_SELF, types[k], 5, 5, 5, 5, &A));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSetUp(A));
    for (PetscInt r = 0; r < 5; r++) {
      PetscCall(MatSetValue(A, r, r, 2.0, INSERT_VALUES));
      PetscCall(MatSetValue(A, r, (r + 1) % 5, 1.0, INSERT_VALUES));
    }
    PetscCall(MatTestAssemble(A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(VecSet(x, 1.0));
    PetscCall(VecSet(y, 4.0));
    PetscCall(MatMultHermitianTransposeAdd(A, x, y, z));
    PetscCall(VecSum(z, &sum));
    MatTestCheck(PetscAbsScalar(sum - 35.0) < ROUNDED(1e-12), types[k]);
    PetscCall(MatMultHermitianTranspose(A, x, z));
    PetscCall(VecSum(z, &sum));
    MatTestCheck(PetscAbsScalar(sum - 15.0) < ROUNDED(1e-12), types[k]);
    PetscCall(MatTestDestroy(&x, &y, &z, &A));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckConversions(Mat A)
{
  Mat       H, B;
  PetscBool flg;

  PetscFunctionBeginUser;
  MatTestName = "conversions";
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)H, &flg, "seqaijhybridgpu", "mpiaijhybridgpu", ""));
  MatTestCheck(flg, "MatConvert to the type");
  MatTestCheckSame(H, A, "MatConvert to the type");
  PetscCall(MatScale(H, 3.0));
  PetscCall(MatConvert(H, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)B, MATSEQAIJ, &flg));
  MatTestCheckSame(B, H, "MatConvert to MATAIJ");
  PetscCall(MatScale(H, 0.5));
  PetscCall(MatConvert(H, MATAIJ, MAT_REUSE_MATRIX, &B));
  MatTestCheckSame(B, H, "MatConvert to MATAIJ, reuse");
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_REUSE_MATRIX, &H));
  MatTestCheckSame(H, A, "MatConvert to the type, reuse");
  PetscCall(MatConvert(H, MATAIJ, MAT_INPLACE_MATRIX, &H));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)H, &flg, MATSEQAIJ, MATMPIAIJ, ""));
  MatTestCheck(flg, "MatConvert to MATAIJ in place: type");
  MatTestCheckSame(H, A, "MatConvert to MATAIJ in place");
  PetscCall(MatConvert(H, "aijhybridgpu", MAT_INPLACE_MATRIX, &H));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)H, &flg, "seqaijhybridgpu", "mpiaijhybridgpu", ""));
  MatTestCheck(flg, "MatConvert to the type in place: type");
  MatTestCheckSame(H, A, "MatConvert to the type in place");
  PetscCall(CheckMults(A, H));
  PetscCall(MatDestroy(&B));
  PetscCall(MatConvert(H, MATDENSE, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatTestDestroy(&B, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product's result by both types, with empty rows */
static PetscErrorCode Results(Mat m[2])
{
  Mat X, Y, HX, HY;

  PetscFunctionBeginUser;
  PetscCall(MatTestRandom(30, 30, 3, MatTestSeed + 5, &X));
  PetscCall(MatTestRandom(30, 30, 2, MatTestSeed + 6, &Y));
  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &HX));
  PetscCall(MatConvert(Y, "aijhybridgpu", MAT_INITIAL_MATRIX, &HY));
  PetscCall(MatMatMult(X, Y, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &m[0]));
  PetscCall(MatMatMult(HX, HY, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &m[1]));
  PetscCall(MatTestDestroy(&X, &Y, &HX, &HY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillRow(Mat A, PetscInt row)
{
  PetscFunctionBeginUser;
  for (PetscInt c = 0; c < 30; c++) PetscCall(MatSetValue(A, row, c, c % 3 ? 1.0 : 0.0, ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What AIJ keeps beside the arrays stays in force on a result, whose arrays are not AIJ's own, and goes with its
   duplicate; nothing of AIJ's puts new entries into arrays that it cannot enlarge */
static PetscErrorCode CheckResults(void)
{
  const struct {
    MatOption op;
    PetscBool flg;
  } options[] = {
    {MAT_NEW_NONZERO_LOCATION_ERR,   PETSC_TRUE },
    {MAT_NEW_NONZERO_LOCATIONS,      PETSC_FALSE},
    {MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_TRUE },
    {MAT_IGNORE_ZERO_ENTRIES,        PETSC_TRUE },
    {MAT_SORTED_FULL,                PETSC_FALSE}
  };
  const PetscInt rows[] = {3, 10, 17}; /* without entries, two of them */
  Mat            m[2];
  PetscErrorCode ierr[2];

  PetscFunctionBeginUser;
  MatTestName = "a result's options";
  for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(options); o++)
    for (int duplicate = 0; duplicate < 2; duplicate++) {
      PetscCall(Results(m));
      for (int k = 0; k < 2; k++) {
        PetscCall(MatSetOption(m[k], options[o].op, options[o].flg));
        if (duplicate) {
          Mat D;

          PetscCall(MatDuplicate(m[k], MAT_COPY_VALUES, &D));
          PetscCall(MatDestroy(&m[k]));
          m[k] = D;
        }
        QUIETLY(ierr[k], FillRow(m[k], 4));
      }
      MatTestCheck(!ierr[0] == !ierr[1], MatOptions[options[o].op]);
      if (!ierr[0] && !ierr[1]) MatTestCheckSame(m[1], m[0], MatOptions[options[o].op]);
      PetscCall(MatTestDestroy(&m[0], &m[1]));
    }
  MatTestName = "rows without entries";
  for (int columns = 0; columns < 2; columns++)
    for (int keep = 0; keep < 2; keep++) {
      PetscCall(Results(m));
      for (int k = 0; k < 2; k++) {
        PetscCall(MatSetOption(m[k], MAT_KEEP_NONZERO_PATTERN, (PetscBool)keep));
        QUIETLY(ierr[k], columns ? MatZeroRowsColumns(m[k], 3, rows, 2.0, NULL, NULL) : MatZeroRows(m[k], 3, rows, 2.0, NULL, NULL));
      }
      MatTestCheck(!ierr[0] == !ierr[1], columns ? "MatZeroRowsColumns" : "MatZeroRows");
      if (!ierr[0] && !ierr[1]) {
        MatTestCheckSame(m[1], m[0], columns ? "MatZeroRowsColumns" : "MatZeroRows");
        PetscCall(CheckMults(m[0], m[1]));
      }
      PetscCall(MatTestDestroy(&m[0], &m[1]));
    }
  MatTestName = "MAT_SORTED_FULL";
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestCreate(PETSC_COMM_SELF, k ? "aijhybridgpu" : MATAIJ, 12, 12, 12, 12, &m[k]));
    PetscCall(MatSetOption(m[k], MAT_SORTED_FULL, PETSC_TRUE));
  }
  for (int turn = 0; turn < 4; turn++) { /* the same number of entries, in other places */
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSeqAIJSetPreallocation(m[k], 3, NULL));
      for (PetscInt r = 0; r < 12; r++) {
        const PetscInt    c[3] = {(r + turn) % 4, 4 + (r + 2 * turn) % 4, 8 + (r + 3 * turn) % 4};
        const PetscScalar v[3] = {1.0 + r, 2, 3};

        PetscCall(MatSetValues(m[k], 1, &r, 3, c, v, INSERT_VALUES));
      }
      PetscCall(MatTestAssemble(m[k]));
    }
    MatTestCheckSame(m[1], m[0], "entries");
    PetscCall(CheckMults(m[0], m[1]));
  }
  PetscCall(MatTestDestroy(&m[0], &m[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A conversion in place leaves the object what it is, with all that hangs on it; but for those from parallel types
   derived from AIJ, for which PETSc makes a new matrix */
static PetscErrorCode CheckAttachments(void)
{
  const PetscMPIInt size    = MatTestSize();
  const char *const types[] = {MATAIJ, "aijhybridgpu", MATAIJPERM, "aijhybridgpu", MATAIJSELL, "aijhybridgpu"};
  Mat               A, same, B;
  MatNullSpace      nullspace, got;
  const char       *text;

  PetscFunctionBeginUser;
  MatTestName = "conversion in place";
  PetscCall(MatTestStencil(2, 6, PETSC_FALSE, 0.2, "aijhybridgpu", &A));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &nullspace));
  PetscCall(MatSetNearNullSpace(A, nullspace));
  PetscCall(MatSetNullSpace(A, nullspace));
  PetscCall(PetscObjectSetName((PetscObject)A, "operator"));
  PetscCall(MatSetOptionsPrefix(A, "pre_"));
  PetscCall(PetscObjectReference((PetscObject)A));
  same = A;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(MatConvert(A, types[k], MAT_INPLACE_MATRIX, &A));
    MatTestCheck(A == same, "the object");
    if (size > 1 && k > 1 && k % 2) {
      PetscCall(MatGetNullSpace(A, &got));
      MatTestCheck(!got, "no null space, as AIJ");
      PetscCall(MatSetNearNullSpace(A, nullspace));
      PetscCall(MatSetNullSpace(A, nullspace));
      PetscCall(PetscObjectSetName((PetscObject)A, "operator"));
      PetscCall(MatSetOptionsPrefix(A, "pre_"));
    }
    PetscCall(MatGetNearNullSpace(A, &got));
    MatTestCheck(got == nullspace, "near null space");
    PetscCall(MatGetNullSpace(A, &got));
    MatTestCheck(got == nullspace, "null space");
    PetscCall(PetscObjectGetName((PetscObject)A, &text));
    MatTestCheck(!strcmp(text, "operator"), "name");
    PetscCall(MatGetOptionsPrefix(A, &text));
    MatTestCheck(text && !strcmp(text, "pre_"), "prefix");
    MatTestCheckSame(A, B, "the entries");
    MatTestCheckMult(A, B, "a product with a vector");
  }
  PetscCall(MatTestDestroy(&A, &same, &B, &nullspace));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries without preallocation, from PETSc 3.19 on collected in a hash table, whose operations lie over the type's
   until the assembly */
static PetscErrorCode CheckSetUp(void)
{
  PetscInt start, end;
  Mat      A, D, E;

  PetscFunctionBeginUser;
  MatTestName = "without preallocation";
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, "aijhybridgpu", PETSC_DECIDE, PETSC_DECIDE, 10, 10, &A));
  PetscCall(MatSetUp(A));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt row = start; row < end; row++) PetscCall(MatSetValue(A, row, row, 2.0, ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, 10, 10, NULL, &D));
  PetscCall(MatSetRandom(D, NULL));
  PetscCall(MatMatMult(D, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E)); /* found by a function composed on A */
  PetscCall(MatScale(D, 2.0));
  MatTestCheckSame(E, D, "dense times sparse");
  PetscCall(MatTestDestroy(&A, &D, &E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factorizations in place, and solutions with several right-hand sides: all of it the host's, whether or not there is a
   device */
static PetscErrorCode CheckFactorsInPlace(void)
{
  PetscFunctionBeginUser;
  MatTestName = "factors in place";
  for (int incomplete = 0; incomplete < 2; incomplete++) {
    Mat A[2], B, X[4];

    for (int k = 0; k < 2; k++) {
      MatFactorInfo info;
      IS            rows, columns;

      PetscCall(MatTestStencil(2, 6, PETSC_FALSE, 0.3, k ? "aijhybridgpu" : MATAIJ, &A[k]));
      PetscCall(MatGetOrdering(A[k], incomplete ? MATORDERINGNATURAL : MATORDERINGND, &rows, &columns));
      PetscCall(MatFactorInfoInitialize(&info));
      info.fill = 1;
      if (incomplete)
        PetscCall(MatILUFactor(A[k], rows, columns, &info));
      else {
        info.fill = 5;
        PetscCall(MatLUFactor(A[k], rows, columns, &info));
      }
      PetscCall(MatTestDestroy(&rows, &columns));
    }
    PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, 36, 3, NULL, &B));
    PetscCall(MatSetRandom(B, NULL));
    for (int k = 0; k < 4; k++) {
      PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X[k]));
      if (k < 2)
        PetscCall(MatMatSolve(A[k], B, X[k]));
      else
        PetscCall(MatMatSolveTranspose(A[k - 2], B, X[k]));
    }
    MatTestCheckSame(X[1], X[0], incomplete ? "MatILUFactor()" : "MatLUFactor()");
    MatTestCheckSame(X[3], X[2], incomplete ? "MatILUFactor(), transposed" : "MatLUFactor(), transposed");
    for (int k = 0; k < 4; k++) PetscCall(MatDestroy(&X[k]));
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt    size;
  const PetscInt shapes[][2] = {
    {40, 40},
    {37, 52},
    {60, 21},
    {1,  1 },
    {5,  3 }
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Operations of MATAIJHYBRIDGPU against MATAIJ\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(CheckLaidOver());
  for (int k = 0; k < 5; k++) {
    Mat       A, H, W, J, D;
    char      name[64];
    PetscBool square = (PetscBool)(shapes[k][0] == shapes[k][1]);

    PetscCall(MatTestRandom(shapes[k][0], shapes[k][1], 4, MatTestSeed + k, &A));
    PetscCall(CheckConversions(A));
    if (shapes[k][0] < 10) {
      PetscCall(MatDestroy(&A));
      continue;
    }
    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
    /* a product's result: A times a diagonal and more */
    PetscCall(MatTestRandom(shapes[k][1], shapes[k][1], 1, 77, &W));
    PetscCall(MatConvert(W, "aijhybridgpu", MAT_INITIAL_MATRIX, &J));
    PetscCall(MatMatMult(H, J, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatDestroy(&J));
    PetscCall(MatMatMult(A, W, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &J));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%d x %d assembled", (int)shapes[k][0], (int)shapes[k][1]));
    MatTestName = name;
    PetscCall(CheckOperations(A, H, square));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%d x %d product", (int)shapes[k][0], (int)shapes[k][1]));
    PetscCall(CheckOperations(J, D, square));
    { /* the product's result back to MATAIJ in place, its arrays outliving nothing */
      Mat K;
      PetscCall(MatDuplicate(D, MAT_COPY_VALUES, &K));
      PetscCall(MatConvert(K, MATAIJ, MAT_INPLACE_MATRIX, &K));
      PetscCall(MatDestroy(&D));
      MatTestCheckSame(K, J, "in-place conversion of a product");
      PetscCall(MatDestroy(&K));
    }
    PetscCall(MatTestDestroy(&A, &H, &W, &J));
  }
  if (size == 1) {
    PetscCall(CheckResults());
    PetscCall(CheckFactorsInPlace());
  }
  PetscCall(CheckAttachments());
  PetscCall(CheckSetUp());
  { /* empty matrices */
    Mat Z, ZZ;
    Vec x, y;

    MatTestName = "empty";
    PetscCall(MatTestCreate(PETSC_COMM_WORLD, "aijhybridgpu", PETSC_DECIDE, PETSC_DECIDE, 0, 0, &Z));
    PetscCall(MatSetUp(Z));
    PetscCall(MatTestAssemble(Z));
    PetscCall(MatCreateVecs(Z, &x, &y));
    PetscCall(MatMult(Z, x, y));
    PetscCall(MatMatMult(Z, Z, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &ZZ));
    MatTestCheck(PETSC_TRUE, "no rows, no columns");
    PetscCall(MatTestDestroy(&ZZ, &Z, &x, &y));
  }
  return MatTestEnd();
}
