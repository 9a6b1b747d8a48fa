/*
  Results that PETSc writes again past the type's functions, where their arrays are: the matrix of all processes on each
  of them, by MatCreateSubMatricesMPI(), which calls PETSc's own MatCreateSubMatrices(); and products by algorithms of
  PETSc's, of which A B^T clears one value more than there are. Products with vectors and products that are made again
  are compared with MATAIJ's. And what PETSc keeps of a matrix: the inverses of blocks that PCPBJACOBI goes by, and
  the data that MatZeroRows() goes back to.

TEST np=1,2,3
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
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
  PetscCall(MatTestRoom(type, M, M, PETSC_DECIDE, PETSC_DECIDE, 3, A, NULL, NULL));
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

/* made again after the device has read and written it, so that its values might have moved */
static PetscErrorCode Named(MatProductType type, const char *algorithm)
{
  Mat A[2], C[2];

  PetscFunctionBeginUser;
  MatTestName = algorithm;
  for (int t = 0; t < 2; t++) {
    PetscCall(Make(Types[t], 1, &A[t]));
    PetscCall(MatProductCreate(A[t], A[t], NULL, &C[t]));
    PetscCall(MatTestSymbolic(type, algorithm, C[t]));
    PetscCall(MatProductNumeric(C[t]));
  }
  for (PetscInt round = 0; round < 3; round++) {
    MatTestCheckMult(C[1], C[0], "MatMult");
    for (int t = 0; t < 2; t++) {
      for (int k = 0; k < 2 && round; k++) PetscCall(MatScale(C[t], 2.0));
      PetscCall(MatScale(A[t], 1.5));
      PetscCall(MatProductNumeric(C[t]));
    }
    MatTestCheckSame(C[1], C[0], "entries, again");
  }
  MatTestCheckMult(C[1], C[0], "MatMult, at the end");
  for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&C[t], &A[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = the preconditioner of a product before it got an entry, and may have got other data, times b */
static PetscErrorCode Inverses(const char *type, Vec *y)
{
  const PetscInt row = M * Rank;
  PetscScalar   *other[16];
  Mat            A, C;
  Vec            b;
  PC             pc;

  PetscFunctionBeginUser;
  PetscCall(Make(type, 1, &A));
  PetscCall(MatTestProduct(MATPRODUCT_AB, A, A, NULL, &C));
  PetscCall(MatSetBlockSize(C, 2));
  PetscCall(MatTestLetIn(C));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetType(pc, PCPBJACOBI));
  PetscCall(PCSetOperators(pc, C, C));
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(MatSetValue(C, row, row + 1, 1.0, ADD_VALUES));
  PetscCall(MatTestAssemble(C));
  /* who lies where something was freed? */
  for (int k = 0; k < 16; k++) {
    PetscCall(PetscMalloc1(2 * M, &other[k]));
    for (int e = 0; e < 2 * M; e++) other[k][e] = 1e30;
  }
  PetscCall(MatCreateVecs(C, &b, y));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PCApply(pc, b, *y));
  for (int k = 0; k < 16; k++) PetscCall(PetscFree(other[k]));
  PetscCall(MatTestDestroy(&b, &pc, &C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Kept(void)
{
  Vec       y[2];
  PetscReal difference;

  PetscFunctionBeginUser;
  MatTestName = "PCPBJACOBI that is used again";
  for (int t = 0; t < 2; t++) PetscCall(Inverses(Types[t], &y[t]));
  PetscCall(VecAXPY(y[1], -1.0, y[0]));
  PetscCall(VecNorm(y[1], NORM_INFINITY, &difference));
  MatTestCheck(difference < ROUNDED(1e-12), "PCApply");
  for (int t = 0; t < 2; t++) PetscCall(VecDestroy(&y[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a product with fewer columns than rows, zeroed rows of which get an entry; may it get others then? */
static PetscErrorCode Zeroed(const char *type, Mat *C, PetscErrorCode *refused)
{
  const PetscInt row = M * Rank + 1;
  PetscInt       start, end;
  Mat            A, R;

  PetscFunctionBeginUser;
  PetscCall(Make(type, 1, &A));
  PetscCall(MatTestRoom(type, M, M / 2, PETSC_DETERMINE, PETSC_DETERMINE, 1, &R, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(MatSetValue(R, r, r / 2, 1.0 + (PetscReal)r, INSERT_VALUES));
  PetscCall(MatTestAssemble(R));
  PetscCall(MatTestProduct(MATPRODUCT_AB, A, R, NULL, C));
  PetscCall(MatZeroRows(*C, 1, &row, 2.0, NULL, NULL));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  *refused = MatSetValue(*C, row, (row + 1) % (M / 2 * Size), 1.0, INSERT_VALUES);
  PetscCall(PetscPopErrorHandler());
  PetscCall(MatTestDestroy(&R, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Options(void)
{
  Mat            C[2];
  PetscErrorCode refused[2];

  PetscFunctionBeginUser;
  MatTestName = "MatZeroRows() of a product that is not square";
  for (int t = 0; t < 2; t++) PetscCall(Zeroed(Types[t], &C[t], &refused[t]));
  MatTestCheck(refused[0] == refused[1], "new entries are refused as before");
  for (int t = 0; t < 2; t++) PetscCall(MatTestAssemble(C[t]));
  MatTestCheckSame(C[1], C[0], "entries");
  MatTestCheckMult(C[1], C[0], "MatMult");
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&C[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  for (int born = 0; born < 2 && Size > 1; born++) PetscCall(Whole((PetscBool)born));
  PetscCall(Kept());
  if (Size > 1) PetscCall(Options());
  if (Size == 1) {
    PetscCall(Named(MATPRODUCT_ABt, "color"));
    PetscCall(Named(MATPRODUCT_AB, "sorted"));
    PetscCall(Named(MATPRODUCT_AtB, "outerproduct"));
  }
  return MatTestEnd();
}
