/*
  A card that is believed to be small. A product whose intermediates would not fit beside its result on a card that is believed to be small: by row merging with several factors it goes in chunks of rows, first and
  again, and equals MATAIJ's. A matrix that fills more than half of the card becomes one of MATAIJ without a second one on the device.

TEST np=1 -mat_aijhybridgpu_spgemm rowmerge -mat_aijhybridgpu_memory_limit 2000000 @emulated
TEST np=1 -mat_aijhybridgpu_spgemm rowmerge -mat_aijhybridgpu_memory_limit 2000000 -mat_aijhybridgpu_memory mirror @emulated
*/
#include "mattest.h"
#include <dlfcn.h>

/* A column times a row: operands of nothing, and a result of 12 bytes an entry that fills more than half of what the card is believed to have */
static PetscErrorCode CheckConvert(PetscReal limit)
{
  const PetscInt n = (PetscInt)PetscSqrtReal((PetscReal)0.6 * limit / (sizeof(PetscInt) + sizeof(PetscScalar)));
  Mat            A[2], C[2], B;
  PetscErrorCode ierr;
  PetscBool      aij;

  PetscFunctionBeginUser;
  MatTestName = "conversion of a matrix that fills the card";
  for (int k = 0; k < 2; k++) {
    for (int o = 0; o < 2; o++) {
      PetscCall(MatCreate(PETSC_COMM_SELF, &A[o]));
      PetscCall(MatSetSizes(A[o], o ? 1 : n, o ? n : 1, o ? 1 : n, o ? n : 1));
      PetscCall(MatSetType(A[o], k ? "aijhybridgpu" : MATAIJ));
      PetscCall(MatSeqAIJSetPreallocation(A[o], o ? n : 1, NULL));
      for (PetscInt e = 0; e < n; e++) PetscCall(MatSetValue(A[o], o ? 0 : e, o ? e : 0, 1.0 + (PetscReal)(e % 17) / 16, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A[o], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A[o], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatMatMult(A[0], A[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[k]));
    for (int o = 0; o < 2; o++) PetscCall(MatDestroy(&A[o]));
  }
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatDuplicate(C[1], MAT_COPY_VALUES, &B);
  PetscCall(PetscPopErrorHandler());
  MatTestCheck(ierr == PETSC_ERR_MEM, "the device has no room for a second one");
  PetscCall(MatConvert(C[1], MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJ, &aij));
  MatTestCheck(aij, "the type");
  MatTestCheckSame(B, C[0], "MatConvert to aij");
  MatTestCheckMult(C[1], C[0], "the matrix is in use afterwards");
  PetscCall(MatDestroy(&B));
  PetscCall(MatConvert(C[1], MATAIJ, MAT_INPLACE_MATRIX, &C[1]));
  MatTestCheckSame(C[1], C[0], "MatConvert to aij in place");
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&C[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscErrorCode (*counter)(Mat, const char[], PetscInt64 *);
  char       path[PETSC_MAX_PATH_LEN] = "";
  PetscInt64 chunks, factors;
  PetscReal  limit = 0;
  PetscBool  flg;
  Mat        A, B, H, Q, C, D;
  void      *library;
  int        code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Products of MATAIJHYBRIDGPU in chunks of rows\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dll_append", path, sizeof(path), &flg));
  library = flg ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  PetscCheck(library, PETSC_COMM_WORLD, PETSC_ERR_USER, "This test wants the plugin by -dll_append");
  *(void **)&counter = dlsym(library, "MatAIJHybridGPUGetProductCounter");
  PetscCheck(counter, PETSC_COMM_WORLD, PETSC_ERR_LIB, "%s lacks the public functions", path);
  MatTestName = "chunks of rows";
  PetscCall(MatTestRandom(260, 500, 45, MatTestSeed, &A));
  PetscCall(MatTestRandom(500, 450, 25, MatTestSeed + 1, &B));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatConvert(B, "aijhybridgpu", MAT_INITIAL_MATRIX, &Q));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(H, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  MatTestCheckSame(D, C, "first");
  PetscCall((*counter)(D, "chunks", &chunks));
  PetscCall((*counter)(D, "factors", &factors));
  MatTestCheck(chunks > 2 && factors > 1, "several chunks, several factors");
  PetscCall(MatScale(H, -3.0));
  PetscCall(MatMatMult(H, Q, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
  PetscCall(MatScale(C, -3.0));
  MatTestCheckSame(D, C, "again with new values");
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&H));
  PetscCall(MatDestroy(&Q));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_aijhybridgpu_memory_limit", &limit, NULL));
  PetscCall(CheckConvert(limit));
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
