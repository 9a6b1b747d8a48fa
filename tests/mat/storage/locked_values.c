/*
  Values that the host writes again and again move to page-locked memory of the plugin's, against MATAIJ: nobody sees
  that but by the array's address; the host goes on writing there; whatever may free or move the arrays brings them back
  first, with the options, the values and the pattern of then.

TEST np=1
TEST np=1 @emulated -mat_aijhybridgpu_lock_min 200000 -mat_aijhybridgpu_lock_after 2
TEST np=1 @emulated -mat_aijhybridgpu_lock_min 200000 -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -mat_aijhybridgpu_lock_min 200000 -mat_aijhybridgpu_lock_after 2 -mat_seqaij_type seqaijhybridgpu -some
TEST np=1 @emulated -mat_aijhybridgpu_lock_min 200000 -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_lock_limit 0 -never -some
TEST np=1 @emulated -mat_aijhybridgpu_lock_min 200000 -mat_aijhybridgpu_lock_after 0 -never -some
TEST np=2 @emulated -mat_aijhybridgpu_lock_min 200000 -mat_aijhybridgpu_lock_after 2 -never -some
*/
#include "mattest.h"
#include <petsc/private/petscimpl.h> /* PetscObjectState */

#define N   (24000 / (PetscInt)sizeof(PetscReal)) /* as many bytes of values in each precision */
#define ROW 9

static PetscBool device, never; /* may values move in this run? */
static int       round_;

static const PetscScalar *Values(Mat A)
{
  const PetscScalar *a = NULL, *array;
  PetscBool          mpi;

  PetscCallAbort(PETSC_COMM_SELF, PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCallAbort(PETSC_COMM_SELF, MatMPIAIJGetSeqAIJ(A, &A, NULL, NULL));
  PetscCallAbort(PETSC_COMM_SELF, MatSeqAIJGetArrayRead(A, &array));
  a = array;
  PetscCallAbort(PETSC_COMM_SELF, MatSeqAIJRestoreArrayRead(A, &array));
  return a;
}

/* New values of every entry: by rows, by blocks of two rows and two columns that are added, or by the array */
typedef enum {
  ROWS,
  BLOCKS,
  ARRAY
} Way;
static PetscErrorCode Write(Mat M, Way way)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(M, &start, &end));
  if (way == ARRAY) {
    PetscScalar *a;
    MatInfo      info;

    PetscCall(MatGetInfo(M, MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(M, &a));
    for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = 1.0 + (PetscReal)((k + 3 * round_) % 17);
    PetscCall(MatSeqAIJRestoreArray(M, &a));
  } else if (way == ROWS) {
    for (PetscInt r = start; r < end; r++) {
      PetscInt    col[ROW];
      PetscScalar v[ROW];

      for (PetscInt k = 0; k < ROW; k++) {
        col[k] = (r + k) % N;
        v[k]   = 1.0 + (PetscReal)((5 * r + k + round_) % 13);
      }
      PetscCall(MatSetValues(M, 1, &r, ROW, col, v, INSERT_VALUES));
    }
  } else {
    PetscCall(MatZeroEntries(M));
    for (PetscInt r = start; r + 1 < PetscMin(end, N - ROW); r += 7) {
      const PetscInt    row[2] = {r, r + 1}, col[2] = {r + 2, r + 5};
      const PetscScalar v[4] = {1.0 + round_, 2.0, 3.0, 4.0};

      PetscCall(MatSetValues(M, 2, row, 2, col, v, ADD_VALUES));
    }
  }
  PetscCall(MatTestAssemble(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both get new values, and a product with a vector; did the values of H move during that? */
static PetscErrorCode Step(Mat A, Mat H, Way way, PetscBool *moved)
{
  const PetscScalar *before, *after, *plain;
  PetscObjectState   state[2], nonzerostate[2];
  MatInfo            info[2];

  PetscFunctionBeginUser;
  round_++;
  MatTestBoth(Write, A, H, way);
  before = Values(H);
  plain  = Values(A);
  PetscCall(PetscObjectStateGet((PetscObject)H, &state[0]));
  PetscCall(MatGetNonzeroState(H, &nonzerostate[0]));
  PetscCall(MatGetInfo(H, MAT_LOCAL, &info[0]));
  MatTestCheckMult(H, A, "the product after new values");
  after = Values(H);
  PetscCall(PetscObjectStateGet((PetscObject)H, &state[1]));
  PetscCall(MatGetNonzeroState(H, &nonzerostate[1]));
  PetscCall(MatGetInfo(H, MAT_LOCAL, &info[1]));
  MatTestCheck(plain == Values(A), "those of aij stay, whatever its operations are");
  MatTestCheck(state[0] == state[1] && nonzerostate[0] == nonzerostate[1], "the states tell nothing");
  MatTestCheck(info[0].nz_used == info[1].nz_used && info[0].assemblies == info[1].assemblies && info[0].mallocs == info[1].mallocs, "the counts tell nothing");
  *moved = (PetscBool)(before != after);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(MatType type, PetscBool columns, Mat *M)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, N, N, ROW, M, NULL, NULL));
  if (columns) PetscCall(MatSetOption(*M, MAT_ROW_ORIENTED, PETSC_FALSE));
  PetscCall(Write(*M, ROWS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the first product to the one after the move. expected: is there one, at the second time that new values are
   sent? */
static PetscErrorCode Steps(Mat A, Mat H, Way way, PetscBool expected)
{
  PetscBool moved;

  PetscFunctionBeginUser;
  MatTestCheckMult(H, A, "the first product");
  for (int k = 1; k <= 3; k++) {
    PetscCall(Step(A, H, way, &moved));
    if (device)
      MatTestCheck(moved == (k == 2 && expected && !never), k == 2 && expected && !never ? "the values move" : "the values stay");
    else
      MatTestSkipped++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What brings the values back, and what does not: done to both, and a product and a step after it */
typedef enum {
  STAYS,
  RETURNS,
  GOES_ON /* to another array */
} Where;
static PetscErrorCode CheckWay(const char *name, Where where, PetscErrorCode (*way)(Mat))
{
  Mat                A, H;
  const PetscScalar *first, *locked;
  PetscBool          moved;

  PetscFunctionBeginUser;
  MatTestName = name;
  PetscCall(Make(MATAIJ, PETSC_FALSE, &A));
  PetscCall(Make("aijhybridgpu", PETSC_FALSE, &H));
  first = Values(H);
  PetscCall(Steps(A, H, ROWS, PETSC_TRUE));
  locked = Values(H);
  PetscCall((*way)(A));
  PetscCall((*way)(H));
  if (device && where != GOES_ON)
    MatTestCheck(Values(H) == (where == RETURNS ? first : locked), where == RETURNS ? "the values return" : "the values stay locked");
  else if (!device)
    MatTestSkipped++;
  MatTestCheckSame(H, A, "afterwards");
  MatTestCheckMult(H, A, "the product afterwards");
  for (int k = 0; k < 3; k++) {
    PetscCall(Step(A, H, ROWS, &moved));
    MatTestCheckSame(H, A, "a step afterwards");
    if (where == RETURNS) MatTestCheck(!moved, "no second time");
  }
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewEntry(Mat M)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetValue(M, 3, N / 2, 4.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a new entry where such are an error */
static PetscErrorCode Refused(Mat M)
{
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  QUIETLY(ierr, MatSetValue(M, 3, N / 2, 4.0, INSERT_VALUES));
  MatTestCheck(ierr != PETSC_SUCCESS, "a new entry is refused");
  PetscCall(MatSetValue(M, 3, 3, 4.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRows(Mat M, PetscBool keep, PetscBool columns)
{
  const PetscInt rows[3] = {1, 500, N - 1};

  PetscFunctionBeginUser;
  if (keep) PetscCall(MatSetOption(M, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  if (columns)
    PetscCall(MatZeroRowsColumns(M, 3, rows, 2.0, NULL, NULL));
  else
    PetscCall(MatZeroRows(M, 3, rows, 2.0, NULL, NULL));
  if (!keep && !columns) { /* they get their entries back, for the steps that follow */
    PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(M, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroRowsKeep(Mat M)
{
  return ZeroRows(M, PETSC_TRUE, PETSC_FALSE);
}
static PetscErrorCode ZeroRowsShorten(Mat M)
{
  return ZeroRows(M, PETSC_FALSE, PETSC_FALSE);
}
static PetscErrorCode ZeroRowsAndColumns(Mat M)
{
  return ZeroRows(M, PETSC_FALSE, PETSC_TRUE);
}

static PetscErrorCode StoreAndRetrieve(Mat M)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(M, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(M));
  PetscCall(MatScale(M, 3.0));
  PetscCall(MatRetrieveValues(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by the host's way, which does not know that all entries are there; and by the device's */
static PetscErrorCode Diagonal(Mat M)
{
  PetscScalar *a;
  Vec          d;

  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJGetArray(M, &a));
  PetscCall(MatSeqAIJRestoreArray(M, &a));
  PetscCall(MatShift(M, 2.5));
  PetscCall(MatCreateVecs(M, &d, NULL));
  PetscCall(VecSet(d, 0.5));
  PetscCall(MatSeqAIJGetArray(M, &a));
  PetscCall(MatSeqAIJRestoreArray(M, &a));
  PetscCall(MatDiagonalSet(M, d, ADD_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one entry of the diagonal is missing in what is left */
static PetscErrorCode DiagonalMissing(Mat M)
{
  PetscInt rows[1] = {7};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(M, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatZeroRows(M, 1, rows, 0.0, NULL, NULL));
  PetscCall(MatShift(M, 2.5));
  PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); /* the rows get their entries back */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copies(Mat M)
{
  Mat C, D, T;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(M, MAT_COPY_VALUES, &D));
  PetscCall(MatConvert(M, MATAIJ, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatTranspose(M, MAT_INITIAL_MATRIX, &T));
  MatTestCheckSame(D, C, "duplicate and conversion");
  PetscCall(MatTranspose(T, MAT_INPLACE_MATRIX, &T));
  MatTestCheckSame(T, C, "transposed twice");
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatCopy(D, M, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(M, -0.25, D, SAME_NONZERO_PATTERN));
  PetscCall(NewEntry(D)); /* its arrays are its own */
  PetscCall(MatTestDestroy(&T, &D, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AnotherPattern(Mat M)
{
  Mat D;

  PetscFunctionBeginUser;
  PetscCall(MatCreateConstantDiagonal(PETSC_COMM_SELF, N, N, N, N, 2.0, &D));
  PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
  PetscCall(MatSetValue(D, 0, N / 2, 7.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(D));
  PetscCall(MatAXPY(M, 3.0, D, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Twice(Mat M)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(M, 2.0));
  PetscCall(MatTestUse(M));
  PetscCall(MatScale(M, 3.0));
  PetscCall(MatScale(M, 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InPlace(Mat M)
{
  PetscFunctionBeginUser;
  PetscCall(MatConvert(M, MATAIJ, MAT_INPLACE_MATRIX, &M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat M)
{
  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(M, ROW + 1, NULL));
  PetscCall(Write(M, ROWS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 20, 0)
static PetscErrorCode Eliminate(Mat M)
{
  PetscFunctionBeginUser;
  PetscCall(MatZeroEntries(M));
  PetscCall(MatSetValue(M, 4, 5, 2.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(M));
  PetscCall(MatEliminateZeros(M, PETSC_TRUE));
  PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode Replace(Mat M)
{
  Mat D;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(M, MAT_COPY_VALUES, &D));
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatHeaderReplace(M, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f(x)_r = round_ * the sum of x_c over the columns c of row r, each by a factor of its own; ctx: the matrix of the
   factors */
static PetscErrorCode Function(void *nothing, Vec x, Vec f, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(MatMult((Mat)ctx, x, f));
  PetscCall(VecScale(f, 1.0 + round_));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Finite differences write where the values were when the coloring was made, between products and what writes on the
   device */
static PetscErrorCode CheckColoring(void)
{
  Mat           A, M[2];
  Vec           x;
  ISColoring    colors;
  MatFDColoring c[2];
  PetscInt      start, end;

  PetscFunctionBeginUser;
  MatTestName = "finite differences";
  PetscCall(Make(MATAIJ, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecSet(x, 1.0));
  for (int k = 0; k < 2; k++) {
    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, PETSC_FALSE, &M[k]));
    {
      ISColoringValue *value;

      PetscCall(MatGetOwnershipRangeColumn(M[k], &start, &end));
      PetscCall(PetscMalloc1(end - start, &value));
      for (PetscInt q = start; q < end; q++) value[q - start] = (ISColoringValue)(q % (ROW + 1));
      PetscCall(ISColoringCreate(PETSC_COMM_WORLD, ROW + 1, end - start, value, PETSC_OWN_POINTER, &colors));
    }
    PetscCall(MatFDColoringCreate(M[k], colors, &c[k]));
    PetscCall(MatFDColoringSetFunction(c[k], (void *)Function, A));
    PetscCall(MatFDColoringSetUp(M[k], colors, c[k]));
    PetscCall(ISColoringDestroy(&colors));
  }
  MatTestCheckMult(M[1], M[0], "the first product");
  for (round_ = 1; round_ < 6; round_++) {
    for (int k = 0; k < 2; k++) PetscCall(MatFDColoringApply(M[k], c[k], x, NULL));
    MatTestCheckMult(M[1], M[0], "the product after new differences");
    if (round_ < 4) continue;
    for (int k = 0; k < 2; k++) {
      PetscCall(MatScale(M[k], -1.0));
      PetscCall(MatScale(M[k], 0.5));
      PetscCall(MatScale(M[k], 4.0));
    }
    MatTestCheckMult(M[1], M[0], "the product after writing on the device");
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatFDColoringDestroy(&c[k]));
    PetscCall(MatDestroy(&M[k]));
  }
  PetscCall(MatTestDestroy(&x, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool   some = PETSC_FALSE, moved;
  PetscMPIInt size;
  Mat         A, H, X;
  char        library[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Values in page-locked memory\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", library, sizeof(library), &device));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-never", &never, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-some", &some, NULL));

  MatTestName = "by rows";
  PetscCall(Make(MATAIJ, PETSC_FALSE, &A));
  PetscCall(Make("aijhybridgpu", PETSC_FALSE, &H));
  PetscCall(Steps(A, H, ROWS, PETSC_TRUE));
  MatTestName = "adding blocks";
  PetscCall(Step(A, H, BLOCKS, &moved));
  MatTestCheckSame(H, A, "the entries");
  PetscCall(MatTestDestroy(&A, &H));
  PetscCall(CheckColoring());
  if (size > 1) goto end;

  MatTestName = "blocks by columns";
  PetscCall(Make(MATAIJ, PETSC_TRUE, &A));
  PetscCall(Make("aijhybridgpu", PETSC_TRUE, &H));
  PetscCall(Steps(A, H, BLOCKS, PETSC_TRUE));
  MatTestCheckSame(H, A, "the entries");
  PetscCall(MatDestroy(&H));

  MatTestName = "converted, by the array";
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(Steps(A, H, ARRAY, PETSC_TRUE));
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatDestroy(&X));
  MatTestName = "converted, a duplicate of it";
  {
    Mat B;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &X));
    PetscCall(Step(B, X, BLOCKS, &moved)); /* by columns, as A */
    MatTestCheckSame(X, B, "the entries");
    PetscCall(MatTestDestroy(&X, &B));
  }
  PetscCall(MatDestroy(&H));
  MatTestName = "converted, by the array and then by blocks";
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(Steps(A, H, ARRAY, PETSC_TRUE));
  for (int k = 0; k < 3; k++) PetscCall(Step(A, H, BLOCKS, &moved));
  MatTestCheckSame(H, A, "the entries");
  PetscCall(MatTestDestroy(&H, &A));
  if (some) goto end;

  MatTestName = "new entries may come";
  PetscCall(Make(MATAIJ, PETSC_FALSE, &A));
  PetscCall(Make("aijhybridgpu", PETSC_FALSE, &H));
  MatTestBoth(MatSetOption, A, H, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE);
  PetscCall(Steps(A, H, ROWS, PETSC_FALSE));
  PetscCall(MatDestroy(&H));

  MatTestName = "lent arrays";
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &H));
  PetscCall(MatConvert(H, "aijhybridgpu", MAT_INPLACE_MATRIX, &H));
  PetscCall(Steps(A, H, ARRAY, PETSC_FALSE));
  PetscCall(MatTestDestroy(&H, &A));

  PetscCall(CheckWay("a new entry", GOES_ON, NewEntry));
  PetscCall(CheckWay("a new entry refused", STAYS, Refused));
  PetscCall(CheckWay("MatZeroRows, the pattern is kept", STAYS, ZeroRowsKeep));
  PetscCall(CheckWay("MatZeroRows", RETURNS, ZeroRowsShorten));
  PetscCall(CheckWay("MatZeroRowsColumns", STAYS, ZeroRowsAndColumns));
  PetscCall(CheckWay("MatStoreValues", STAYS, StoreAndRetrieve));
  PetscCall(CheckWay("MatShift and MatDiagonalSet", STAYS, Diagonal));
  PetscCall(CheckWay("MatShift where entries are missing", GOES_ON, DiagonalMissing));
  PetscCall(CheckWay("copies", STAYS, Copies));
  PetscCall(CheckWay("MatConvert in place", RETURNS, InPlace));
#if PETSC_VERSION_GE(3, 20, 0)
  PetscCall(CheckWay("MatEliminateZeros", RETURNS, Eliminate));
#endif
  PetscCall(CheckWay("another preallocation", GOES_ON, Preallocate));
  PetscCall(CheckWay("MatAXPY of another pattern", GOES_ON, AnotherPattern));
  PetscCall(CheckWay("written twice on the device", GOES_ON, Twice));
  PetscCall(CheckWay("MatHeaderReplace", GOES_ON, Replace));
end:
  return MatTestEnd();
}
