/*
  A card that is believed to be small. A product whose intermediates would not fit beside its result on a card that is
  believed to be small: by row merging with several factors it goes in chunks of rows, first and again, and equals
  MATAIJ's. A matrix that fills more than half of the card becomes one of MATAIJ without a second one on the device, and
  a product that does not fit is refused.

TEST np=1 -mat_aijhybridgpu_spgemm rowmerge -mat_aijhybridgpu_memory_limit 2000000 @emulated
TEST np=1 -mat_aijhybridgpu_spgemm rowmerge -mat_aijhybridgpu_memory_limit 2000000 -mat_aijhybridgpu_memory mirror @emulated
*/
#include "mattest.h"
#include <petsctime.h>
#include <string.h>

/* a column of n entries (o: 0) or a row */
static PetscErrorCode Factor(PetscInt n, int o, MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, o ? 1 : n, o ? n : 1, o ? 1 : n, o ? n : 1, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, o ? n : 1, NULL));
  for (PetscInt e = 0; e < n; e++) PetscCall(MatSetValue(*A, o ? 0 : e, o ? e : 0, 1.0 + (PetscReal)(e % 17) / 16, INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static char Message[512];

static PetscErrorCode Catch(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *message, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && message) PetscCallAbort(PETSC_COMM_SELF, PetscStrncpy(Message, message, sizeof(Message)));
  return n;
}

/* A product of twice what the card is believed to have is refused soon, with the bytes that are needed and those that
   are free, and the operands serve afterwards */
static PetscErrorCode CheckTooLarge(PetscReal limit)
{
  const size_t   entry = sizeof(PetscInt) + sizeof(PetscScalar);
  const PetscInt n     = (PetscInt)PetscSqrtReal(2 * limit / (PetscReal)entry);
  Mat            A[2], C, D[2];
  PetscErrorCode ierr;
  PetscLogDouble t0, t1;
  size_t         needed = 0, left = 0;
  const char    *at;
  char           library[PETSC_MAX_PATH_LEN] = "";

  PetscFunctionBeginUser;
  MatTestName = "a product that the card cannot hold";
  for (int o = 0; o < 2; o++) PetscCall(Factor(n, o, "aijhybridgpu", &A[o]));
  PetscCall(MatProductCreate(A[0], A[1], NULL, &C));
  PetscCall(MatProductSetType(C, MATPRODUCT_AB));
  PetscCall(MatProductSetFill(C, PETSC_DEFAULT));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(PetscTime(&t0));
  PetscCall(PetscPushErrorHandler(Catch, NULL));
  ierr = MatProductSymbolic(C);
  PetscCall(PetscPopErrorHandler());
  PetscCall(PetscTime(&t1));
  MatTestCheck(ierr == PETSC_ERR_MEM, "it is refused");
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", library, sizeof(library), NULL));
  /* the emulator takes its time, more so on a busy machine */
  MatTestCheck(t1 - t0 < 1 || strstr(library, "emulated"), "within a second");
  at = strstr(Message, "device: ");
  if (!at || sscanf(at, "device: %zu bytes needed, %zu free", &needed, &left) != 2) printf("%s\n", Message);
  MatTestCheck(needed > 0 && needed > left && left <= (size_t)limit, "needed and free bytes are named");
  PetscCall(MatDestroy(&C));
  PetscCall(MatMatMult(A[1], A[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D[0]));
  for (int o = 0; o < 2; o++) PetscCall(MatConvert(A[o], MATAIJ, MAT_INPLACE_MATRIX, &A[o]));
  PetscCall(MatMatMult(A[1], A[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D[1]));
  MatTestCheckSame(D[0], D[1], "the operands serve afterwards");
  for (int o = 0; o < 2; o++) PetscCall(MatTestDestroy(&A[o], &D[o]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A column times a row: operands of nothing, and a result of 12 bytes an entry that fills more than half of what the
   card is believed to have */
static PetscErrorCode CheckConvert(PetscReal limit)
{
  const PetscInt n = (PetscInt)PetscSqrtReal((PetscReal)0.6 * limit / (sizeof(PetscInt) + sizeof(PetscScalar)));
  Mat            A[2], C[2], B;
  PetscErrorCode ierr;
  PetscBool      aij;

  PetscFunctionBeginUser;
  MatTestName = "conversion of a matrix that fills the card";
  for (int k = 0; k < 2; k++) {
    for (int o = 0; o < 2; o++) PetscCall(Factor(n, o, k ? "aijhybridgpu" : MATAIJ, &A[o]));
    PetscCall(MatMatMult(A[0], A[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[k]));
    for (int o = 0; o < 2; o++) PetscCall(MatDestroy(&A[o]));
  }
  QUIETLY(ierr, MatDuplicate(C[1], MAT_COPY_VALUES, &B));
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
  PetscInt64 chunks, factors;
  PetscReal  limit = 0;
  Mat        A, B, H, Q, C, D;
  void      *library;

  PetscFunctionBeginUser;
  MatTestLimit(argc, argv);
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Products of MATAIJHYBRIDGPU in chunks of rows\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(MatTestLibrary("-dll_append", &library));
  PetscCheck(library, PETSC_COMM_WORLD, PETSC_ERR_USER, "This test wants the plugin by -dll_append");
  *(void **)&counter = dlsym(library, "MatAIJHybridGPUGetProductCounter");
  PetscCheck(counter, PETSC_COMM_WORLD, PETSC_ERR_LIB, "The plugin lacks the public functions");
  if (PetscDefined(USE_REAL_SINGLE)) { /* what fits is counted in values of 8 bytes */
    MatTestSkipped++;
    return MatTestEnd();
  }
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
  PetscCall(MatTestDestroy(&A, &B, &H, &Q, &C, &D));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_aijhybridgpu_memory_limit", &limit, NULL));
  PetscCall(CheckConvert(limit));
  PetscCall(CheckTooLarge(limit));
  return MatTestEnd();
}
