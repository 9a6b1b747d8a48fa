/*
  Which operands are too small for the device where nobody asks for it (-mat_aijhybridgpu_backend auto): fewer than
  10000 nonzeros where the matrix has its vectors on the device, fewer than 100000 where it has them on the host, and
  what -mat_aijhybridgpu_device_min says where that is given. Where an operation ran is told by its event.

TEST np=1 @emulated -mat_aijhybridgpu_backend auto
TEST np=1 @emulated -mat_aijhybridgpu_backend auto -mat_aijhybridgpu_device_min 40000
TEST np=2 @emulated -mat_aijhybridgpu_backend auto
*/
#include "mattest.h"

static PetscBool device;

/* does it run where `expected` says? On the device the event happens once. */
#define RUNS(event, expected, call)                          \
  do {                                                       \
    PetscInt before_, after_;                                \
    PetscCall(MatTestEventCount(event, &before_));           \
    PetscCall(call);                                         \
    PetscCall(MatTestEventCount(event, &after_));            \
    if (device)                                              \
      MatTestCheck((after_ > before_) == (expected), #call); \
    else                                                     \
      MatTestSkipped++;                                      \
  } while (0)

static PetscErrorCode OnDevice(Mat A, PetscInt work, PetscBool *on)
{
  PetscInt  least;
  VecType   type;
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(MatGetVecType(A, &type));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_device_min", &least, &set));
  if (!set) least = strstr(type, VECCUDA) ? 10000 : 100000;
  *on = (PetscBool)(work >= least);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of bandwidth 3 and about this many nonzeros; the vectors that it says it wants are never made */
static PetscErrorCode Check(PetscInt nonzeros, VecType vectors)
{
  const PetscInt N = nonzeros / 3;
  PetscInt       start, end, *i, *j;
  PetscBool      on;
  MatInfo        info;
  Mat            A, T, C, K;
  IS             rows;
  char           text[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " nonzeros, vectors of type %s", nonzeros, vectors));
  MatTestName = text;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, "aijhybridgpu", N, N, N, N, &A));
  PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  for (PetscInt r = 0; r < N; r++) {
    const PetscInt    col[3] = {r - 1, r, r + 1 < N ? r + 1 : -1};
    const PetscScalar v[3]   = {1, 2 + r % 5, 3};

    PetscCall(MatSetValues(A, 1, &r, 3, col, v, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscCall(MatSetVecType(A, vectors));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(OnDevice(A, (PetscInt)info.nz_used, &on));
  RUNS("HybMatTrans", on, MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatDestroy(&T));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N / 2, 0, 1, &rows));
  RUNS("HybSubMat", on, MatCreateSubMatrix(A, rows, rows, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatTestDestroy(&rows, &T));
  { /* the product goes by the result's vectors; this one copies A */
    PetscInt before, after;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &K));
    PetscCall(MatSetVecType(K, vectors));
    PetscCall(MatTestEventCount("HybCopyTo", &before));
    PetscCall(MatProductCreate(K, K, NULL, &C));
    PetscCall(MatSetVecType(C, vectors));
    PetscCall(MatTestSymbolic(MATPRODUCT_AB, NULL, C));
    PetscCall(MatTestEventCount("HybCopyTo", &after));
    PetscCall(OnDevice(C, 2 * (PetscInt)info.nz_used, &on));
    if (device) MatTestCheck((after > before) == on, "MatMatMult");
    PetscCall(MatTestDestroy(&C, &K));
  }
  PetscCall(MatDestroy(&A));
  /* from coordinates, by the entries given */
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, "aijhybridgpu", PETSC_DECIDE, PETSC_DECIDE, N, N, &A));
  PetscCall(MatSetVecType(A, vectors));
  end = PETSC_DECIDE;
  {
    PetscInt all = N;

    PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &end, &all));
  }
  PetscCallMPI(MPI_Scan(&end, &start, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  start -= end;
  end += start;
  PetscCall(PetscMalloc2(nonzeros, &i, nonzeros, &j));
  for (PetscInt k = 0; k < nonzeros; k++) {
    i[k] = start + k / 3 % (end - start);
    j[k] = (i[k] + k % 3) % N;
  }
  PetscCall(OnDevice(A, nonzeros, &on));
  RUNS("HybCOOPattern", on, MatSetPreallocationCOO(A, nonzeros, i, j));
  PetscCall(PetscFree2(i, j));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt nonzeros[] = {3000, 9000, 12000, 45000, 120000};
  char           library[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Operands that are too small for the device\n"));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", library, sizeof(library), &device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(nonzeros); k++) {
    PetscCall(Check(nonzeros[k], VECSTANDARD));
    PetscCall(Check(nonzeros[k], VECCUDA));
  }
  return MatTestEnd();
}
