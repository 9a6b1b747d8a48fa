/*
  Products again, and products with vectors, where an operand has got another pattern and nothing that is counted tells:
  states begin anew where PETSc replaces what a matrix holds, and a parallel matrix's is a sum over processes. Each
  result is compared with a new product of MATAIJ's, and products with vectors between coordinates and values with
  MATAIJ's own.

TEST np=1,2
TEST np=3+4 -few
TEST np=1,2 @emulated -few
TEST np=2 @emulated -few -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_comm mpi

-few: of the products and of the ways in which a pattern changes a part
*/
#include "mattest.h"
#include <stdlib.h>

static PetscMPIInt Rank, Size;
static PetscBool   Few;
static const char *Ours = "aijhybridgpu";
#define N 24 /* each process has as many rows, and columns go round: so many patterns have the same counts everywhere */

/* three entries in a row: on the diagonal and in these columns from there. As the tests for halos want it, the first
   process alone may have others. */
typedef struct {
  PetscInt a, b, alone[2];
} Band;
static const Band Plus = {
                    1, 5, {1, 5}
},
                  Minus = {-1, -5, {-1, -5}}, One = {1, 5, {-1, -5}}, Far = {1, 12, {1, 12}}, Cross = {2, 7, {2, 7}};

static PetscInt Column(const Band *band, PetscInt r, int k)
{
  const PetscInt d = !k ? 0 : Rank ? (k == 1 ? band->a : band->b)
                                   : band->alone[k - 1];

  return (r + d + N) % N;
}

static PetscScalar Value(PetscInt r, PetscInt c, PetscInt seed)
{
  return PetscSinReal((PetscReal)(3 * r + 7 * c + 1) * (PetscReal)0.37 + (PetscReal)seed) + (r == c ? 3.0 : 0.0);
}

static PetscErrorCode Empty(MatType type, PetscInt n, Mat *A)
{
  PetscLayout rows, columns;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, PETSC_DECIDE, PETSC_DECIDE, N, n, A));
  PetscCall(MatGetLayouts(*A, &rows, &columns));
  MatTestBoth(PetscLayoutSetUp, rows, columns);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coordinates(Mat A, const Band *band)
{
  PetscInt start, end, *i, *j, n = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc2(3 * N, &i, 3 * N, &j));
  for (PetscInt r = start; r < end; r++)
    for (int k = 0; k < 3; k++) {
      i[n]   = r;
      j[n++] = Column(band, r, k);
    }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Values(Mat A, const Band *band, PetscInt seed)
{
  PetscInt    start, end, n = 0;
  PetscScalar v[3 * N];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (int k = 0; k < 3; k++) v[n++] = Value(r, Column(band, r, k), seed);
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from coordinates, or entry by entry */
static PetscErrorCode Make(MatType type, PetscBool coo, const Band *band, PetscInt seed, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(Empty(type, N, A));
  if (coo) {
    PetscCall(Coordinates(*A, band));
    PetscCall(Values(*A, band, seed));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 3, NULL, 3, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (int k = 0; k < 3; k++) PetscCall(MatSetValue(*A, r, Column(band, r, k), Value(r, Column(band, r, k), seed), INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C against a new product of MATAIJ's, of A of this band and P */
static PetscErrorCode Expect(MatProductType type, Mat C, const Band *a, PetscInt aseed, const Band *p, PetscInt pseed, const char *what)
{
  Mat A, P, E;

  PetscFunctionBeginUser;
  PetscCall(Make(MATAIJ, PETSC_FALSE, a, aseed, &A));
  PetscCall(Make(MATAIJ, PETSC_FALSE, p, pseed, &P));
  PetscCall(MatTestProduct(type, A, P, NULL, &E));
  MatTestCheckSame(C, E, what);
  PetscCall(MatTestDestroy(&A, &P, &E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatProductType Types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt};

/* What the first or the second operand, which is of this type, gets: coordinates anew, here, or as a plain MATAIJ in
   between; another matrix's contents */
typedef enum {
  ANEW,
  CONVERTED,
  REPLACED,
  WAYS
} Way;

static PetscErrorCode Other(Way way, MatType type, const Band *band, PetscInt seed, Mat *A)
{
  PetscFunctionBeginUser;
  if (way == REPLACED) {
    Mat B;

    PetscCall(Make(type, PETSC_FALSE, band, seed, &B));
    PetscCall(MatHeaderReplace(*A, &B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (way == CONVERTED) PetscCall(MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A));
  PetscCall(Coordinates(*A, band));
  PetscCall(Values(*A, band, seed));
  if (way == CONVERTED) PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Operands(MatProductType type, int which, Way way, MatType other)
{
  const Band *to[] = {&Minus, &One, &Plus, &Far, &Plus}, *now[2] = {&Plus, &Plus};
  Mat         A[2], C;
  static char name[128];
  const char *ways[] = {"coordinates anew", "coordinates of a plain one", "another one's contents"};

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s, operand %d of type %s: %s", MatProductTypes[type], which, other, ways[way]));
  MatTestName = name;
  for (int k = 0; k < 2; k++) PetscCall(Make(k == which ? other : Ours, PETSC_TRUE, &Plus, 1 + k, &A[k]));
  PetscCall(MatTestProduct(type, A[0], A[1], NULL, &C));
  PetscCall(Expect(type, C, now[0], 1, now[1], 2, "first"));
  for (int k = 0; k < (Few ? 2 : 5); k++) {
    now[which] = to[k];
    PetscCall(Other(way, other, now[which], 1 + which, &A[which]));
    PetscCall(MatProductNumeric(C));
    PetscCall(Expect(type, C, now[0], 1, now[1], 2, "another pattern"));
    if (Few) continue;
    PetscCall(MatProductNumeric(C));
    PetscCall(Expect(type, C, now[0], 1, now[1], 2, "once more"));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operands are refused, A of another pattern with a B of other sizes; then A comes with the right one */
static PetscErrorCode Refused(void)
{
  Mat            A, B, C, other, wrong;
  PetscInt       start, end;
  PetscBool      known, symmetric;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  MatTestName = "operands that were refused";
  PetscCall(Make(Ours, PETSC_FALSE, &Plus, 1, &A));
  PetscCall(Make(Ours, PETSC_FALSE, &Plus, 2, &B));
  PetscCall(Make(Ours, PETSC_FALSE, &Minus, 3, &other));
  PetscCall(Empty(Ours, N / 2, &wrong));
  PetscCall(MatSetUp(wrong));
  PetscCall(MatGetOwnershipRange(wrong, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(MatSetValue(wrong, r, r / 2, 1.0, INSERT_VALUES));
  PetscCall(MatTestAssemble(wrong));
  PetscCall(MatTestProduct(MATPRODUCT_AB, A, B, NULL, &C));
  PetscCall(MatProductReplaceMats(other, wrong, NULL, C));
  PetscCall(MatSetOption(C, MAT_SYMMETRIC, PETSC_TRUE));
  for (int turn = 0; turn < 2; turn++) {
    QUIETLY(ierr, MatProductNumeric(C));
    MatTestCheck(ierr == PETSC_ERR_ARG_SIZ, "a product of other sizes is refused");
  }
  PetscCall(Expect(MATPRODUCT_AB, C, &Plus, 1, &Plus, 2, "what it was"));
  PetscCall(MatProductReplaceMats(other, B, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(Expect(MATPRODUCT_AB, C, &Minus, 3, &Plus, 2, "the right ones"));
  PetscCall(MatIsSymmetricKnown(C, &known, &symmetric));
  MatTestCheck(!known, "what was said of the old values holds no more");
  PetscCall(MatTestDestroy(&A, &B, &C, &other, &wrong));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result itself has got other places for as many entries, on the first process alone or on all */
static PetscErrorCode Result(MatProductType type, PetscBool all)
{
  Mat         A, B, C;
  PetscInt    start, end, row, n;
  PetscScalar one = 1;

  PetscFunctionBeginUser;
  MatTestName = "a result of another pattern";
  PetscCall(Make(Ours, PETSC_FALSE, &Plus, 1, &A));
  PetscCall(Make(Ours, PETSC_FALSE, &Plus, 2, &B));
  PetscCall(MatTestProduct(type, A, B, NULL, &C));
  PetscCall(MatGetOwnershipRange(C, &start, &end));
  row = start + 1;
  PetscCall(MatGetRow(C, row, &n, NULL, NULL));
  PetscCall(MatRestoreRow(C, row, &n, NULL, NULL));
  PetscCall(MatTestLetIn(C));
  PetscCall(MatSetOption(C, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(MatZeroRows(C, all || !Rank, &row, 1.0, NULL, NULL)); /* the diagonal stays */
  if (all || !Rank) {
    for (PetscInt c = (row + 2) % N; n > 1; c = (c + 1) % N, n--) PetscCall(MatSetValues(C, 1, &row, 1, &c, &one, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(C));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatProductNumeric(C));
    PetscCall(Expect(type, C, &Plus, 1, &Plus, 2, "again"));
  }
  PetscCall(MatTestDestroy(&A, &B, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Column indices are changed where they are, which no state tells */
static PetscErrorCode Indices(MatProductType type)
{
  PetscInt j[3 * N];
  Mat      A, B, C, G, E;

  PetscFunctionBeginUser;
  if (Size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  MatTestName = "column indices set where they are";
  PetscCall(Make(Ours, PETSC_FALSE, &Plus, 1, &A));
  PetscCall(Make(Ours, PETSC_FALSE, &Plus, 2, &B));
  PetscCall(Make(MATAIJ, PETSC_FALSE, &Plus, 2, &G));
  PetscCall(MatTestProduct(type, A, B, NULL, &C));
  for (PetscInt r = 0; r < N; r++)
    for (int k = 0; k < 3; k++) j[3 * r + k] = 2 + 3 * k + (r + k) % 3;
  PetscCall(MatSeqAIJSetColumnIndices(A, j));
  PetscCall(MatProductNumeric(C));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatTestProduct(type, A, G, NULL, &E));
  MatTestCheckSame(C, E, "again");
  PetscCall(MatTestDestroy(&A, &B, &C, &G, &E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = A x and A^T x of both, or neither */
static PetscErrorCode Mults(Mat A, Mat H, const char *what)
{
  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    Vec            x, y, z;
    PetscErrorCode ierr, ours;

    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(VecSetRandom(x, NULL));
    PetscCall(VecSet(y, 7.0));
    PetscCall(VecSet(z, 9.0));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = (t ? MatMultTranspose : MatMult)(A, x, y);
    ours = (t ? MatMultTranspose : MatMult)(H, x, z);
    PetscCall(PetscPopErrorHandler());
    if (!ierr) MatTestCheck(!ours, what);
    if (!ierr && !ours) VecTestCheckSame(z, y, what);
    PetscCall(MatTestDestroy(&x, &y, &z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates come, then products with vectors and of matrices, and then the values */
static PetscErrorCode Between(PetscBool products)
{
  const Band *to[] = {&Plus, &Minus, &One, &Far, &Cross, &Plus};
  Mat         A, H, P, B, C, E;

  PetscFunctionBeginUser;
  MatTestName = products ? "products between coordinates and values" : "products with vectors between coordinates and values";
  PetscCall(Empty(MATAIJ, N, &A));
  PetscCall(Empty(Ours, N, &H));
  PetscCall(Make(MATAIJ, PETSC_TRUE, &Plus, 2, &P));
  PetscCall(Make(Ours, PETSC_TRUE, &Plus, 2, &B));
  for (int k = 0; k < (Few ? 4 : 6); k++) {
    MatTestBoth(Coordinates, A, H, to[k]);
    PetscCall(Mults(A, H, "before the values"));
    if (products && k && (!Few || k == 2)) {
      Mat            D;
      PetscErrorCode ierr;

      QUIETLY(ierr, MatTestProduct(MATPRODUCT_PtAP, A, P, NULL, &D));
      MatTestCheck(!ierr, "MATAIJ multiplies before the values");
      PetscCall(MatDestroy(&D));
      PetscCall(MatTestProduct(MATPRODUCT_PtAP, H, B, NULL, &C));
      PetscCall(Values(H, to[k], k));
      PetscCall(MatProductNumeric(C));
      PetscCall(Expect(MATPRODUCT_PtAP, C, to[k], k, &Plus, 2, "a product whose values come later"));
      PetscCall(MatDestroy(&C));
    } else
      PetscCall(Values(H, to[k], k));
    PetscCall(Values(A, to[k], k));
    PetscCall(Mults(A, H, "with values"));
    PetscCall(MatTestProduct(MATPRODUCT_AB, A, P, NULL, &E));
    PetscCall(MatTestProduct(MATPRODUCT_AB, H, B, NULL, &C));
    MatTestCheckSame(C, E, "a product");
    PetscCall(MatTestDestroy(&C, &E));
  }
  PetscCall(MatTestDestroy(&A, &H, &P, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* each process's first n rows have an entry in every second column of the next one, but row `moved` in the column
   after */
static PetscErrorCode Combs(MatType type, PetscInt n, PetscInt moved, Mat *A)
{
  const PetscInt m = 40;
  PetscInt       start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, m, m, PETSC_DETERMINE, PETSC_DETERMINE, 2, A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt c = (end + 2 * (r - start) + (r - start == moved)) % (m * Size);

    PetscCall(MatSetValue(*A, r, r, Value(r, r, 1), ADD_VALUES));
    if (r - start < n) PetscCall(MatSetValue(*A, r, c, Value(r, c, 1), ADD_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the first process's row r has an entry in column picked[which][r], the others' in column r and in one of their own */
static PetscErrorCode Pairs(MatType type, PetscInt n, PetscInt which, Mat *A)
{
  static const PetscInt picked[2][8] = {
    {106045, 106048, 106051, 106052, 106058, 106060, 106061, 106062},
    {106047, 106048, 106049, 106052, 106058, 106060, 106061, 106062}
  };
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, n, Rank ? 106080 : 20, PETSC_DETERMINE, PETSC_DETERMINE, 2, A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscCall(MatSetValue(*A, r, Rank ? 30 + r : r, 2, ADD_VALUES));
    PetscCall(MatSetValue(*A, r, Rank ? r % 20 : picked[which][r], 1 + r, ADD_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PairsRight(MatType type, PetscInt n, PetscInt unused, Mat *B)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, Rank ? 106080 : 20, n - 1, PETSC_DETERMINE, PETSC_DETERMINE, 1, B, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(MatSetValue(*B, r, r % ((n - 1) * Size), Value(r, r % (n - 1), 1), INSERT_VALUES));
  PetscCall(MatTestAssemble(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two patterns of the same counts: in each process {1, 3}, {4} and {2}, {3, 4}. Where the first row ends in one is the
   first column of the other: a hash that told neither from the other took them for the same. Else the unit matrix. */
static PetscErrorCode Ends(MatType type, PetscInt n, PetscInt which, Mat *A)
{
  static const PetscInt row[2][3] = {
    {0, 0, 1},
    {0, 1, 1}
  },
                        column[2][3] = {{1, 3, 4}, {2, 3, 4}};
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, n, n, PETSC_DETERMINE, PETSC_DETERMINE, 2, A, &start, &end));
  if (which < 0) {
    for (PetscInt r = start; r < end; r++) PetscCall(MatSetValue(*A, r, r, 1, INSERT_VALUES));
  } else {
    for (int k = 0; k < 3; k++) PetscCall(MatSetValue(*A, start + row[which][k], start + column[which][k], 1 + k, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of left(from) and right, whose left operand becomes left(to) */
typedef PetscErrorCode (*Maker)(MatType, PetscInt n, PetscInt which, Mat *);
static PetscErrorCode Becomes(Maker left, Maker right, PetscInt n, PetscInt from, PetscInt to)
{
  Mat A, B, C, E;

  PetscFunctionBeginUser;
  PetscCall(left(Ours, n, from, &A));
  PetscCall(right(Ours, n, -1, &B));
  PetscCall(MatTestProduct(MATPRODUCT_AB, A, B, NULL, &C));
  PetscCall(MatDestroy(&A));
  PetscCall(left(Ours, n, to, &A));
  PetscCall(MatProductReplaceMats(A, NULL, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(MatTestDestroy(&A, &B));
  PetscCall(left(MATAIJ, n, to, &A));
  PetscCall(right(MATAIJ, n, -1, &B));
  PetscCall(MatTestProduct(MATPRODUCT_AB, A, B, NULL, &E));
  MatTestCheckSame(C, E, "with other columns");
  PetscCall(MatTestDestroy(&A, &B, &C, &E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An operand's blocks have the patterns that they had, but one of its columns of others, any one, is another; or two
   are, of eight that a hash by words of 8 bytes, added up, took for the former */
static PetscErrorCode Columns(void)
{
  PetscFunctionBeginUser;
  MatTestName = "one other column of others";
  for (PetscInt n = Few ? 19 : 1; n < 20; n += 1 + n / 3)
    for (PetscInt moved = 0; moved < n; moved++) PetscCall(Becomes(Combs, Combs, n, -1, moved));
  MatTestName = "ends and columns";
  for (int which = 0; which < 2; which++) PetscCall(Becomes(Ends, Ends, 5, which, 1 - which));
  if (Size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  MatTestName = "two other columns of others";
  for (int which = 0; which < 2; which++) PetscCall(Becomes(Pairs, PairsRight, 8, which, 1 - which));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &Few, NULL));
  for (int t = 0; t < (Few ? 1 : (int)PETSC_STATIC_ARRAY_LENGTH(Types)); t++)
    for (int which = 0; which < 2; which++) {
      PetscCall(Operands(Types[t], which, (Way)((t + which) % WAYS), Ours));
      if (t) continue;
      for (int way = 1; way < (Few ? 1 : WAYS); way++) PetscCall(Operands(Types[t], which, (Way)((which + way) % WAYS), Ours));
      if (!Few || which) PetscCall(Operands(Types[t], which, ANEW, MATAIJ));
      if (!Few) PetscCall(Operands(Types[t], which, REPLACED, MATAIJ));
    }
  PetscCall(Columns());
  PetscCall(Refused());
  PetscCall(Result(MATPRODUCT_AB, PETSC_TRUE));
  if (!Few) PetscCall(Result(MATPRODUCT_PtAP, PETSC_FALSE));
  PetscCall(Indices(MATPRODUCT_AB));
  if (!Few) PetscCall(Indices(MATPRODUCT_PtAP));
  if (!Few) PetscCall(Between(PETSC_FALSE));
  PetscCall(Between(PETSC_TRUE));
  return MatTestEnd();
}
