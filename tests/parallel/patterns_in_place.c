/*
  Patterns that PETSc writes where they are, and tells nobody: a submatrix, a nest's copy or a transpose that is used
  again after what it is made of has got other columns, as many in each row. Products with vectors and products that are
  made again are compared with MATAIJ's, which goes through the same.

TEST np=1,2
TEST np=3+4
TEST np=1,2 @emulated
TEST np=2 @emulated -mat_aijhybridgpu_memory mirror
TEST np=1 -mat_seqaij_type seqaijhybridgpu -plain
TEST np=1 @emulated -mat_seqaij_type seqaijhybridgpu -plain

-plain: a nest becomes a MATAIJ, which has the type's operations, and is compared with the nest
*/
#include "mattest.h"

static PetscMPIInt       Rank, Size;
static const char *const Types[2] = {MATAIJ, "aijhybridgpu"}; /* what is expected, and what is tried */
#define M 8                                                   /* rows of each process */

/* Entries of A: each row has its diagonal, one other column of its process and one of the next process, which move with
   shift. The columns that a process meets stay the same, all but one entry of each row moves. few: the last entry of a
   row is left out where it may be. */
static PetscErrorCode Fill(Mat A, PetscInt shift, PetscBool few, PetscInt seed)
{
  const PetscInt others = M * ((Rank + 1) % Size);

  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 3, NULL, 1, NULL));
  for (PetscInt l = 0; l < M; l++) {
    const PetscInt column[3] = {M * Rank + l, M * Rank + (l + 1 + shift) % M, others + (l + (Size > 1 ? 0 : 3) + shift) % M};

    for (int k = 0; k < (few && l ? 2 : 3); k++) PetscCall(MatSetValue(A, M * Rank + l, column[k], (PetscReal)(1 + seed) + 0.25 * (PetscReal)(l + 1) - (PetscReal)k, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(const char *type, PetscInt shift, PetscInt seed, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, M, M, PETSC_DECIDE, PETSC_DECIDE, A));
  PetscCall(Fill(*A, shift, PETSC_FALSE, seed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* S against MATAIJ's: its entries, products with vectors, and C = S X, if there is one, made again, against a new
   one */
static PetscErrorCode Compare(Mat S[2], Mat X[2], Mat C, const char *what)
{
  Mat E;

  PetscFunctionBeginUser;
  if (C && strstr(what, "again")) PetscCall(MatProductNumeric(C));
  MatTestName = what;
  MatTestCheckSame(S[1], S[0], "entries");
  MatTestCheckMult(S[1], S[0], "MatMult");
  MatTestCheckMultTranspose(S[1], S[0], "MatMultTranspose");
  if (!C) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTestProduct(MATPRODUCT_AB, S[0], X[0], NULL, &E));
  MatTestCheckSame(C, E, "the product");
  PetscCall(MatDestroy(&E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what a submatrix is: of all columns in order; in the opposite order of each process's; of nearly all rows and columns
   of all processes here, whose operations PETSc lays others over (then AIJ multiplies) */
typedef enum {
  OWN,
  TURNED,
  LOCAL,
  KINDS
} Kind;

static PetscErrorCode Take(Kind kind, Mat A, IS rows, IS columns, MatReuse reuse, Mat *S)
{
  Mat *list = S;

  PetscFunctionBeginUser;
  if (kind != LOCAL) {
    PetscCall(MatCreateSubMatrix(A, rows, columns, reuse, S));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &columns, reuse, &list));
  if (reuse == MAT_REUSE_MATRIX) PetscFunctionReturn(PETSC_SUCCESS);
  *S = list[0];
  PetscCall(PetscObjectReference((PetscObject)*S));
  PetscCall(MatDestroySubMatrices(1, &list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Submatrix(Kind kind, PetscBool few)
{
  static const char *const names[][2] = {
    {"own columns, before",        "own columns, again"       },
    {"columns turned, before",     "columns turned, again"    },
    {"rows of others too, before", "rows of others too, again"}
  };
  const PetscInt first = kind == LOCAL ? 0 : M * Rank, n = kind == LOCAL ? M * Size - 2 : M;
  Mat            A[2], S[2], X[2], C = NULL;
  IS             rows, columns;
  PetscErrorCode ierr[2] = {PETSC_SUCCESS, PETSC_SUCCESS};

  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(kind == LOCAL ? PETSC_COMM_SELF : PETSC_COMM_WORLD, n, first, 1, &rows));
  PetscCall(ISCreateStride(kind == LOCAL ? PETSC_COMM_SELF : PETSC_COMM_WORLD, n, kind == TURNED ? first + n - 1 : first, kind == TURNED ? -1 : 1, &columns));
  for (int t = 0; t < 2; t++) {
    PetscCall(Make(Types[t], 0, 1, &A[t]));
    PetscCall(Take(kind, A[t], rows, columns, MAT_INITIAL_MATRIX, &S[t]));
    PetscCall(Make(Types[t], 1, 5, &X[t]));
  }
  if (kind != LOCAL) PetscCall(MatTestProduct(MATPRODUCT_AB, S[1], X[1], NULL, &C));
  PetscCall(Compare(S, X, C, names[kind][0]));
  for (int t = 0; t < 2; t++) {
    PetscCall(Fill(A[t], few ? 0 : 1, few, 2));
    QUIETLY(ierr[t], Take(kind, A[t], rows, columns, MAT_REUSE_MATRIX, &S[t]));
  }
  if (few) { /* MATAIJ refuses or has the right entries, and so does the type */
    MatTestName = names[kind][1];
    if (ierr[0]) {
      PetscCall(MatDestroy(&S[0]));
      PetscCall(Take(kind, A[0], rows, columns, MAT_INITIAL_MATRIX, &S[0]));
    }
    if (ierr[1])
      MatTestCheck(PETSC_TRUE, "fewer entries are refused");
    else
      MatTestCheckSame(S[1], S[0], "fewer entries");
  } else {
    PetscCheck(!ierr[0] && !ierr[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "The submatrix is not used again: errors %d and %d", (int)ierr[0], (int)ierr[1]);
    PetscCall(Compare(S, X, C, names[kind][1]));
  }
  PetscCall(MatDestroy(&C));
  for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&A[t], &S[t], &X[t]));
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one process: the transpose of a submatrix, or of other matrices by turns (MatTransposeSetPrecursor()) */
static PetscErrorCode Transposed(PetscBool turns)
{
  Mat A[2], S[2], T[2], X[2], C;
  IS  is;

  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, M, 0, 1, &is));
  for (int t = 0; t < 2; t++) {
    PetscCall(Make(Types[t], 0, 1, &A[t]));
    PetscCall(MatCreateSubMatrix(A[t], is, is, MAT_INITIAL_MATRIX, &S[t]));
    PetscCall(MatTranspose(S[t], MAT_INITIAL_MATRIX, &T[t]));
    PetscCall(Make(Types[t], 1, 5, &X[t]));
  }
  PetscCall(MatTestProduct(MATPRODUCT_AB, T[1], X[1], NULL, &C));
  PetscCall(Compare(T, X, C, turns ? "other matrices' transposes, before" : "a submatrix's transpose, before"));
  for (int t = 0; t < 2; t++) {
    PetscCall(Fill(A[t], 1, PETSC_FALSE, 2));
    if (turns)
      PetscCall(MatTransposeSetPrecursor(A[t], T[t]));
    else
      PetscCall(MatCreateSubMatrix(A[t], is, is, MAT_REUSE_MATRIX, &S[t]));
    PetscCall(MatTranspose(turns ? A[t] : S[t], MAT_REUSE_MATRIX, &T[t]));
  }
  PetscCall(Compare(T, X, C, turns ? "other matrices' transposes, again" : "a submatrix's transpose, again"));
  PetscCall(MatDestroy(&C));
  for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&A[t], &S[t], &T[t], &X[t]));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one process: a nest of two blocks side by side, of which the first one gets other columns */
static PetscErrorCode Nest(void)
{
  Mat A[2], block[2][2], nest[2], X[2], C;

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    for (int k = 0; k < 2; k++) PetscCall(Make(MATAIJ, k, 1, &block[t][k]));
    PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 1, NULL, block[t], &nest[t]));
    PetscCall(MatConvert(nest[t], Types[t], MAT_INITIAL_MATRIX, &A[t]));
    PetscCall(Make(Types[t], 1, 5, &X[t]));
  }
  PetscCall(MatTestProduct(MATPRODUCT_AB, A[1], X[1], NULL, &C));
  PetscCall(Compare(A, X, C, "a nest, before"));
  for (int t = 0; t < 2; t++) {
    PetscCall(Fill(block[t][0], 1, PETSC_FALSE, 2));
    PetscCall(MatConvert(nest[t], Types[t], MAT_REUSE_MATRIX, &A[t]));
  }
  PetscCall(Compare(A, X, C, "a nest, again"));
  PetscCall(MatDestroy(&C));
  for (int t = 0; t < 2; t++) {
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&block[t][k]));
    PetscCall(MatTestDestroy(&nest[t], &A[t], &X[t]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same by PETSc's function alone */
static PetscErrorCode Plain(void)
{
  Mat A, E, block[2], nest, X, C, D;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(Make(MATAIJ, k, 1, &block[k]));
  PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 1, NULL, block, &nest));
  PetscCall(MatConvert(nest, MATAIJ, MAT_INITIAL_MATRIX, &A));
  PetscCall(Make(MATAIJ, 1, 5, &X));
  PetscCall(MatTestProduct(MATPRODUCT_AB, A, X, NULL, &C));
  MatTestName = "plain, before";
  MatTestCheckMult(A, nest, "MatMult");
  MatTestCheckMultTranspose(A, nest, "MatMultTranspose");
  PetscCall(Fill(block[0], 1, PETSC_FALSE, 2));
  PetscCall(MatConvert(nest, MATAIJ, MAT_REUSE_MATRIX, &A));
  MatTestName = "plain, again";
  MatTestCheckMult(A, nest, "MatMult");
  MatTestCheckMultTranspose(A, nest, "MatMultTranspose");
  PetscCall(MatProductNumeric(C));
  PetscCall(MatConvert(nest, MATAIJ, MAT_INITIAL_MATRIX, &E));
  PetscCall(MatTestProduct(MATPRODUCT_AB, E, X, NULL, &D));
  MatTestCheckSame(C, D, "the product");
  PetscCall(MatTestDestroy(&A, &E));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&block[k]));
  PetscCall(MatTestDestroy(&nest, &X, &C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool plain = PETSC_FALSE;

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &plain, NULL));
  if (plain) PetscCall(Plain());
  for (int kind = 0; kind < KINDS && !plain; kind++) {
    PetscCall(Submatrix((Kind)kind, PETSC_FALSE));
    if (kind != LOCAL) PetscCall(Submatrix((Kind)kind, PETSC_TRUE));
  }
  if (Size == 1 && !plain) {
    PetscCall(Nest());
    MatTestBoth(Transposed, PETSC_FALSE, PETSC_TRUE);
  }
  return MatTestEnd();
}
