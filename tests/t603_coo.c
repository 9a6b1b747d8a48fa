/*
  Assembly from coordinates by the type against MATAIJ: repeated entries, negative indices, values set again,
  INSERT and ADD.

TEST np=1
TEST np=2
TEST np=1 @emulated
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=1,2 @emulated
TEST np=1 @emulated -mat_seqaij_type seqaijhybridgpu
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"

int main(int argc, char **argv)
{
  const PetscInt M = 30, N = 25, n = 200;
  PetscInt       i[200], j[200];
  PetscScalar    v[200];
  Mat            A, H;
  unsigned long  s = 4711;
  PetscMPIInt    rank;
  int            code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Assembly of MATAIJHYBRIDGPU from coordinates against MATAIJ\n"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  MatTestName = "coo";
  s += (unsigned long)rank;
  for (int k = 0; k < n; k++) {
    i[k] = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)M);
    j[k] = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)N);
    v[k] = (PetscScalar)((PetscReal)(MATTEST_NEXT(s) % 1000) / 250.0 - 2.0);
    if (k % 17 == 5) i[k] = -1;
    if (k % 5 == 4) i[k] = i[k - 1], j[k] = j[k - 1];
  }
  for (int pass = 0; pass < 3; pass++) {
    for (int type = 0; type < 2; type++) {
      PetscInt ii[200], jj[200];
      Mat     *B = type ? &H : &A;

      PetscCall(PetscArraycpy(ii, i, n)); /* the parent sorts them in place */
      PetscCall(PetscArraycpy(jj, j, n));
      if (pass == 0) {
        PetscCall(MatCreate(PETSC_COMM_WORLD, B));
        PetscCall(MatSetSizes(*B, PETSC_DECIDE, PETSC_DECIDE, M, N));
        PetscCall(MatSetType(*B, type ? "aijhybridgpu" : MATAIJ));
        PetscCall(MatSetPreallocationCOO(*B, n, ii, jj));
      }
      PetscCall(MatSetValuesCOO(*B, v, pass == 1 ? ADD_VALUES : INSERT_VALUES));
    }
    MatTestCheckSame(H, A, pass == 0 ? "first values" : (pass == 1 ? "ADD_VALUES" : "INSERT_VALUES again"));
    for (int k = 0; k < n; k++) v[k] *= 1.5;
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&H));
  MatTestName = "coo after MatSetUp()"; /* from PETSc 3.19 on that makes a hash table */
  for (int type = 0; type < 2; type++) {
    PetscInt    ii[] = {0, 1, 2, 3, 1}, jj[] = {1, 2, 3, 0, 2};
    PetscScalar w[] = {1, 2, 3, 4, 5};
    Mat        *B   = type ? &H : &A;

    PetscCall(MatCreate(PETSC_COMM_WORLD, B));
    PetscCall(MatSetSizes(*B, PETSC_DECIDE, PETSC_DECIDE, 4, 4));
    PetscCall(MatSetType(*B, type ? "aijhybridgpu" : MATAIJ));
    PetscCall(MatSetUp(*B));
    PetscCall(MatSetPreallocationCOO(*B, rank ? 0 : 5, ii, jj));
    PetscCall(MatSetValuesCOO(*B, w, INSERT_VALUES));
    PetscCall(MatSetValuesCOO(*B, w, ADD_VALUES));
  }
  MatTestCheckSame(H, A, "values");
  MatTestCheckMult(H, A, "in use");
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&H));
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
