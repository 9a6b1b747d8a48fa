/*
  Assembly from coordinates by the type against MATAIJ: a pattern whose values are yet to come, and one after
  MatSetUp(). All else of coordinates is in parallel_coordinates.

TEST np=1
TEST np=2
TEST np=1 @emulated
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=1,2 @emulated
TEST np=1 @emulated -mat_seqaij_type seqaijhybridgpu
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"

/* Of coordinates alone a matrix has a pattern and is not assembled: what may be done with it, with a duplicate of it,
   and once more with other coordinates */
static PetscErrorCode Unassembled(void)
{
  Mat         A[2], B[2], C[2];
  Vec         x, y;
  PetscInt    start, end, M;
  PetscScalar v[40];
  PetscBool   is[2];

  PetscFunctionBeginUser;
  MatTestName = "coo without values";
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestCreate(PETSC_COMM_WORLD, k ? "aijhybridgpu" : MATAIJ, 10, 10, PETSC_DETERMINE, PETSC_DETERMINE, &A[k]));
  }
  for (int again = 0; again < 2; again++) {
    PetscErrorCode ierr[2][6];

    for (int k = 0; k < 2; k++) {
      PetscInt i[40], j[40];

      PetscCall(MatGetSize(A[k], &M, NULL));
      PetscCallMPI(MPI_Scan((PetscInt[]){10}, &end, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
      start = end - 10;
      for (PetscInt q = 0; q < 40; q++) {
        i[q] = q % 7 == 3 ? end % M : start + q % 10;
        j[q] = (start + (5 + 2 * again) * q) % M;
        v[q] = 1.0 + (PetscReal)(q % 5);
      }
      PetscCall(MatSetPreallocationCOO(A[k], 40, i, j));
      PetscCall(MatAssembled(A[k], &is[k]));
      PetscCall(MatDuplicate(A[k], MAT_DO_NOT_COPY_VALUES, &B[k]));
      PetscCall(MatMatMult(A[k], A[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[k])); /* of zeros */
      PetscCall(MatCreateVecs(A[k], &x, &y));
      PetscCall(VecSet(x, 1.0));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr[k][0] = MatMult(A[k], x, y);
      ierr[k][1] = MatScale(A[k], 2.0);
      ierr[k][2] = MatGetDiagonal(A[k], y);
      ierr[k][3] = MatShift(A[k], 1.0);
      ierr[k][4] = MatDiagonalScale(A[k], x, NULL);
      ierr[k][5] = MatMult(B[k], x, y);
      PetscCall(PetscPopErrorHandler());
      PetscCall(MatTestDestroy(&x, &y));
    }
    MatTestCheck(is[0] == is[1], "assembled or not");
    for (int q = 0; q < 6; q++) MatTestCheck(ierr[0][q] == ierr[1][q], "its errors");
    MatTestCheckSame(C[1], C[0], "its square");
    for (int k = 0; k < 2; k++) {
      PetscCall(MatAssembled(B[k], &is[k]));
      PetscCall(MatSetValuesCOO(A[k], v, INSERT_VALUES));
      PetscCall(MatTestDestroy(&C[k], &B[k]));
    }
    MatTestCheck(is[0] == is[1], "a duplicate is assembled or not");
    MatTestCheckSame(A[1], A[0], "with values");
    MatTestCheckMult(A[1], A[0], "in use");
  }
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A, H;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Assembly of MATAIJHYBRIDGPU from coordinates against MATAIJ\n"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Unassembled());
  MatTestName = "coo after MatSetUp()"; /* from PETSc 3.19 on that makes a hash table */
  for (int type = 0; type < 2; type++) {
    PetscInt    ii[] = {0, 1, 2, 3, 1}, jj[] = {1, 2, 3, 0, 2};
    PetscScalar w[] = {1, 2, 3, 4, 5};
    Mat        *B   = type ? &H : &A;

    PetscCall(MatTestCreate(PETSC_COMM_WORLD, type ? "aijhybridgpu" : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, 4, 4, B));
    PetscCall(MatSetUp(*B));
    PetscCall(MatSetPreallocationCOO(*B, rank ? 0 : 5, ii, jj));
    PetscCall(MatSetValuesCOO(*B, w, INSERT_VALUES));
    PetscCall(MatSetValuesCOO(*B, w, ADD_VALUES));
  }
  MatTestCheckSame(H, A, "values");
  MatTestCheckMult(H, A, "in use");
  PetscCall(MatTestDestroy(&A, &H));
  return MatTestEnd();
}
