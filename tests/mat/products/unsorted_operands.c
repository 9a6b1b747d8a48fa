/*
  Operands whose rows are not sorted: arrays of a program's own in random order, some columns more than once, and
  parallel matrices of columns in descending order. Products are those of the same entries in order, again with other
  values, and with operands that take each other's place; a column that there is not is an error.

TEST np=1
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=2+3
TEST np=1+2,3 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"

static PetscMPIInt size;

static unsigned long Next(unsigned long *s)
{
  return MATTEST_NEXT(*s);
}

/* the same entries by MatSetValues() */
static PetscErrorCode InOrder(Mat A, Mat *B)
{
  PetscInt m, n, M, N, start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatTestRoom(MATAIJ, m, n, M, N, 60, B, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    *cols;
    const PetscScalar *v;
    PetscInt           k;

    PetscCall(MatGetRow(A, r, &k, &cols, &v));
    PetscCall(MatSetValues(*B, 1, &r, k, cols, v, ADD_VALUES));
    PetscCall(MatRestoreRow(A, r, &k, &cols, &v));
  }
  PetscCall(MatTestAssemble(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt    *i, *j;
  PetscScalar *a;
} Arrays;

/* those of a block in random order, each third row with a column twice */
static PetscErrorCode Shuffle(Mat A, const PetscInt *garray, unsigned long s, Arrays *b)
{
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscInt        m, n, to = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, NULL));
  PetscCall(PetscMalloc3(m + 1, &b->i, 2 * i[m] + 1, &b->j, 2 * i[m] + 1, &b->a));
  b->i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      const PetscBool twice = (PetscBool)(r % 3 == 1 && k == i[r]);

      for (int q = 0; q <= (int)twice; q++) {
        b->j[to]   = garray ? garray[j[k]] : j[k];
        b->a[to++] = twice ? (q ? 0.25 : 0.75) * a[k] : a[k];
      }
    }
    b->i[r + 1] = to;
    for (PetscInt k = to - 1; k > b->i[r]; k--) {
      const PetscInt    other = b->i[r] + (PetscInt)(Next(&s) % (unsigned long)(k - b->i[r] + 1)), c = b->j[k];
      const PetscScalar v = b->a[k];

      b->j[k]     = b->j[other];
      b->a[k]     = b->a[other];
      b->j[other] = c;
      b->a[other] = v;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's entries in the program's own arrays */
static PetscErrorCode Unsorted(Mat A, unsigned long s, Arrays b[2], Mat *U)
{
  PetscInt m, n, M, N;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(b, 2 * sizeof(*b)));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  if (size == 1) {
    PetscCall(Shuffle(A, NULL, s, &b[0]));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, M, N, b[0].i, b[0].j, b[0].a, U));
  } else {
    Mat             D, O;
    const PetscInt *garray;

    PetscCall(MatMPIAIJGetSeqAIJ(A, &D, &O, &garray));
    PetscCall(Shuffle(D, NULL, s, &b[0]));
    PetscCall(Shuffle(O, garray, s, &b[1]));
    PetscCall(MatCreateMPIAIJWithSplitArrays(PETSC_COMM_WORLD, m, n, M, N, b[0].i, b[0].j, b[0].a, b[1].i, b[1].j, b[1].a, U));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ours(Mat *A)
{
  PetscBool byname;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_seqaij_type", &byname));
  if (!byname) PetscCall(MatConvert(*A, "aijhybridgpu", MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D, a product of these, is that of the same entries in order */
static PetscErrorCode Check(MatProductType type, Mat A, Mat B, Mat C, Mat D, const char *what)
{
  Mat a, b, c = NULL, d;

  PetscFunctionBeginUser;
  PetscCall(InOrder(A, &a));
  PetscCall(InOrder(B, &b));
  if (C) PetscCall(InOrder(C, &c));
  PetscCall(MatTestProduct(type, a, b, c, &d));
  MatTestCheckSame(D, d, what);
  PetscCall(MatTestDestroy(&a, &b, &c, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Mat A, Mat B, Mat C, const char *what)
{
  const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP, MATPRODUCT_ABt, MATPRODUCT_RARt, MATPRODUCT_ABC};

  PetscFunctionBeginUser;
  for (int k = 0; k < (size == 1 ? 6 : 3); k++) {
    Mat D, third = types[k] == MATPRODUCT_ABC ? C : NULL;

    MatTestName = what;
    PetscCall(MatTestProduct(types[k], A, B, third, &D));
    PetscCall(Check(types[k], A, B, third, D, MatProductTypes[types[k]]));
    PetscCall(MatScale(A, -1.25));
    PetscCall(MatProductNumeric(D));
    PetscCall(Check(types[k], A, B, third, D, "other values"));
    if (k < 3) { /* the sorted one, and the first again */
      Mat b;

      PetscCall(InOrder(B, &b));
      PetscCall(MatProductReplaceMats(NULL, b, NULL, D));
      PetscCall(MatProductNumeric(D));
      PetscCall(Check(types[k], A, b, NULL, D, "in order in its place"));
      PetscCall(MatProductReplaceMats(NULL, B, NULL, D));
      PetscCall(MatProductNumeric(D));
      PetscCall(Check(types[k], A, B, NULL, D, "in its place again"));
      PetscCall(MatDestroy(&b));
    }
    PetscCall(MatDestroy(&D));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Random(unsigned long *s)
{
  const PetscInt n = 5 + (PetscInt)(Next(s) % 60);
  Arrays         arrays[4][2];
  Mat            A[4], U[4], D;

  PetscFunctionBeginUser;
  for (int k = 0; k < 4; k++) {
    PetscCall(MatTestRandom(n, n, 1 + (PetscInt)(Next(s) % 6), (PetscInt)(Next(s) % 10000), &A[k]));
    PetscCall(Unsorted(A[k], Next(s), arrays[k], &U[k]));
    if (k < 3) PetscCall(Ours(&U[k]));
    PetscCall(Ours(&A[k]));
  }
  PetscCall(Products(U[0], U[1], U[2], "all unsorted"));
  PetscCall(Products(A[0], U[1], A[2], "the second one unsorted"));
  PetscCall(Products(U[0], A[1], U[2], "the first one unsorted"));
  PetscCall(Products(U[0], U[3], A[2], "one of another type"));
  /* the program writes its arrays */
  PetscCall(MatMatMult(U[0], U[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  PetscCall(Check(MATPRODUCT_AB, U[0], U[0], NULL, D, "its square"));
  {
    PetscScalar *a;
    Mat          block = U[0];

    if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(U[0], &block, NULL, NULL));
    PetscCall(MatSeqAIJGetArray(block, &a));
    for (PetscInt k = 0; k < arrays[0][0].i[1]; k++) a[k] += 0.5;
    PetscCall(MatSeqAIJRestoreArray(block, &a));
  }
  PetscCall(MatMatMult(U[0], U[0], MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
  PetscCall(Check(MATPRODUCT_AB, U[0], U[0], NULL, D, "its square, other values"));
  PetscCall(MatDestroy(&D));
  for (int k = 0; k < 4; k++) {
    PetscCall(MatTestDestroy(&A[k], &U[k]));
    for (int b = 0; b < 2; b++) PetscCall(PetscFree3(arrays[k][b].i, arrays[k][b].j, arrays[k][b].a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatCreateSubMatrix() of PETSc's type leaves columns of others as they come */
static PetscErrorCode Descending(unsigned long *s)
{
  const PetscInt n = 20 + (PetscInt)(Next(s) % 20);
  PetscInt       start, end;
  IS             rows, columns;
  Mat            A, S, B;

  PetscFunctionBeginUser;
  PetscCall(MatTestRandom(n, n, 4, (PetscInt)(Next(s) % 10000), &A));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, start, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start, n - 1 - start, -1, &columns));
  PetscCall(MatCreateSubMatrix(A, rows, columns, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatTestRandom(n, n, 3, (PetscInt)(Next(s) % 10000), &B));
  PetscCall(Ours(&B));
  PetscCall(Products(B, S, B, "descending columns, the second one"));
  PetscCall(Products(S, B, B, "descending columns, the first one"));
  PetscCall(Ours(&S));
  PetscCall(Products(S, S, S, "descending columns, all of the type"));
  PetscCall(MatTestDestroy(&rows, &columns, &A, &B, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Outside(void)
{
  PetscInt       i[] = {0, 2, 3, 4}, j[] = {1, 0, 3, 2};
  PetscScalar    a[] = {1, 2, 3, 4};
  Mat            A, C = NULL;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  MatTestName = "a column that there is not";
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 3, 3, i, j, a, &A));
  PetscCall(Ours(&A));
  QUIETLY(ierr, MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  MatTestCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, "is an error");
  PetscCall(MatTestDestroy(&C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt   rank;
  PetscInt      times = 6;
  unsigned long s;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-times", &times, NULL));
  s = (unsigned long)MatTestSeed;
  for (PetscInt k = 0; k < times; k++) {
    PetscCall(Random(&s));
    PetscCall(Descending(&s));
  }
  if (size == 1) PetscCall(Outside());
  return MatTestEnd();
}
