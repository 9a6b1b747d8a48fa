/*
  A product whose intermediates would not fit beside its result on a card that is believed to be small: by row merging with several factors it goes in chunks of rows, first and
  again, and equals MATAIJ's.

TEST np=1 -mat_aijhybridgpu_spgemm rowmerge -mat_aijhybridgpu_memory_limit 2000000 @emulated
TEST np=1 -mat_aijhybridgpu_spgemm rowmerge -mat_aijhybridgpu_memory_limit 2000000 -mat_aijhybridgpu_memory mirror @emulated
*/
#include "mattest.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
  PetscErrorCode (*counter)(Mat, const char[], PetscInt64 *);
  char       path[PETSC_MAX_PATH_LEN] = "";
  PetscInt64 chunks, factors;
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
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
