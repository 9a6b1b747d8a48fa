/*
  Results that PETSc writes again past the type's functions: the matrix of all processes on each of them, by
  MatCreateSubMatricesMPI(), which calls PETSc's own MatCreateSubMatrices(). Products with vectors and products that are
  made again are compared with MATAIJ's.

TEST np=2,3
TEST np=2+3 @emulated
TEST np=2 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"

static PetscMPIInt       Rank, Size;
static const char *const Types[2] = {MATAIJ, "aijhybridgpu"}; /* what is expected, and what is tried */
#define M 8                                                   /* rows of each process */

static PetscErrorCode Make(const char *type, PetscInt seed, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, M, M, PETSC_DECIDE, PETSC_DECIDE));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 3, NULL, 3, NULL));
  for (PetscInt r = M * Rank; r < M * (Rank + 1); r++)
    for (PetscInt k = 0; k < 3; k++) PetscCall(MatSetValue(*A, r, (r + k * (M - 3)) % (M * Size), 4.0 + 0.25 * (PetscReal)(r * (k + seed)), INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all of A on this process */
static PetscErrorCode Take(Mat A, MatReuse reuse, Mat *S[])
{
  IS all;

  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M * Size, 0, 1, &all));
  PetscCall(MatCreateSubMatricesMPI(A, 1, &all, &all, reuse, S));
  PetscCall(ISDestroy(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Whole(PetscBool born)
{
  Mat A[2], *S[2] = {NULL, NULL}, C, E;

  PetscFunctionBeginUser;
  MatTestName = born ? "all of a product" : "all of a matrix";
  for (int t = 0; t < 2; t++) {
    PetscCall(Make(Types[t], 1, &A[t]));
    if (born) {
      PetscCall(MatTestProduct(MATPRODUCT_AB, A[t], A[t], NULL, &E));
      PetscCall(MatDestroy(&A[t]));
      A[t] = E;
    }
    PetscCall(Take(A[t], MAT_INITIAL_MATRIX, &S[t]));
  }
  PetscCall(MatTestProduct(MATPRODUCT_AtB, S[1][0], S[1][0], NULL, &C));
  MatTestCheckMult(S[1][0], S[0][0], "MatMult, before");
  for (PetscInt round = 0; round < 2; round++) {
    for (int t = 0; t < 2; t++) {
      PetscCall(MatScale(A[t], 1.5));
      PetscCall(Take(A[t], MAT_REUSE_MATRIX, &S[t]));
    }
    MatTestCheckSame(S[1][0], S[0][0], "entries, again");
    MatTestCheckMult(S[1][0], S[0][0], "MatMult, again");
    MatTestCheckMultTranspose(S[1][0], S[0][0], "MatMultTranspose, again");
    PetscCall(MatProductNumeric(C));
    PetscCall(MatTestProduct(MATPRODUCT_AtB, S[0][0], S[0][0], NULL, &E));
    MatTestCheckSame(C, E, "A^T A, again");
    PetscCall(MatDestroy(&E));
  }
  PetscCall(MatDestroy(&C));
  for (int t = 0; t < 2; t++) {
    PetscCall(MatDestroySubMatrices(1, &S[t]));
    PetscCall(MatDestroy(&A[t]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int code = 1;

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  for (int born = 0; born < 2; born++) PetscCall(Whole((PetscBool)born));
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
