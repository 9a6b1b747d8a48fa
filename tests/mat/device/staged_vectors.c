/*
  A PETSc without CUDA and a device: products with a matrix that the host made, and with vectors of the host, stay on
  the host at first and go to the device, vectors staged, once that pays; matrices with few nonzeros for their vectors'
  lengths stay. Which one did it is told by the operation's event, and the results are MATAIJ's.

TEST np=1 @emulated -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 1000
TEST np=1 @emulated -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 1000 -mat_aijhybridgpu_memory mirror
TEST np=2 @emulated -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 1000
TEST np=1 @emulated -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 1000 -mat_aijhybridgpu_memory_limit 500000 -full
*/
#include "mattest.h"

/* rows of `row entries, every `every-th row of them */
static PetscErrorCode Entries(PetscInt N, PetscInt row, PetscInt every, MatType type, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, N, N, row, A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt k = 0; k < row && r % every == 0; k++) PetscCall(MatSetValue(*A, r, (r + k * k * 3) % N, (PetscScalar)(0.5 + (r * 7 + k) % 11), ADD_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one product of each kind; how many of three the device did */
static PetscErrorCode Products(Mat A, Mat H, PetscInt kinds, PetscInt *device)
{
  Vec      x, b, y, z;
  PetscInt before;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &b));
  PetscCall(VecDuplicate(y, &z));
  MatTestBoth(VecSetRandom, x, b, NULL);
  PetscCall(MatTestEventCount("HybMult", &before));
  VecTestBoth(MatMult, A, H, y, z, x);
  if (kinds > 1) {
    VecTestBoth(MatMultAdd, A, H, y, z, x, b);
    VecTestBoth(MatMultTranspose, A, H, y, z, x);
  }
  PetscCall(MatTestEventCount("HybMult", device));
  *device -= before;
  PetscCall(MatTestDestroy(&x, &b, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat       A, H, S, T, C;
  PetscInt  device;
  PetscBool full = PETSC_FALSE, staged = PETSC_TRUE;
  char      path[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-full", &full, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), &staged));
  if (PetscDefined(HAVE_CUDA) || !staged) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED: %s\n", staged ? "this PETSc has vectors on the device" : "no device"));
    MatTestSkipped++;
    if (PetscDefined(HAVE_CUDA)) goto end;
  }
  PetscCall(Entries(3000, 12, 1, "aijhybridgpu", &A));
  PetscCall(Entries(3000, 12, 1, MATAIJ, &H));
  PetscCall(Entries(9000, 12, 8, "aijhybridgpu", &S));
  PetscCall(Entries(9000, 12, 8, MATAIJ, &T));
  MatTestName = "before the device is open";
  for (int k = 0; k < 4; k++) {
    PetscCall(Products(A, H, 3, &device));
    MatTestCheck(!device, "the device is not opened for so little");
  }
  { /* a product of matrices opens it */
    Mat small, smaller;

    PetscCall(Entries(100, 12, 1, "aijhybridgpu", &small));
    PetscCall(MatMatMult(small, small, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &smaller));
    PetscCall(MatTestDestroy(&small, &smaller));
  }
  MatTestName = "the device is open";
  for (int k = 0; k < 5; k++) {
    PetscCall(Products(A, H, 1, &device));
    if (staged) MatTestCheck(full ? !device : device > 0, full ? "without room it stays on the host" : "those before the device was open count");
  }
  MatTestName = "a new matrix";
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  for (int k = 0; k < 4; k++) {
    PetscCall(Products(C, H, 1, &device));
    if (staged) MatTestCheck(k < 2 || full ? !device : device > 0, "from the third product on");
  }
  MatTestName = "values that the host writes";
  for (int k = 0; k < 3; k++) {
    MatTestBoth(MatScale, C, H, 1.5);
    MatTestBoth(MatShift, C, H, 0.25);
    PetscCall(Products(C, H, 3, &device));
  }
  MatTestName = "few nonzeros";
  for (int k = 0; k < 4; k++) {
    PetscCall(Products(S, T, 3, &device));
    MatTestCheck(!device, "the vectors would cost more than the product");
  }
  PetscCall(MatTestDestroy(&A, &H, &S, &T, &C));
end:
  return MatTestEnd();
}
