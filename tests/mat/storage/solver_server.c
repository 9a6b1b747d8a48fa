/*
  PETSc's solver server (-mpi_linear_solver_server) lets other processes read a matrix of the first one where AIJ has
  allocated it, in memory that they share, and keeps the addresses. So what AIJ would have there the type has there too,
  and values do not move. Here the server is said to be active, and who allocates shared memory is this program.

TEST np=1
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"

#if PETSC_VERSION_GE(3, 22, 0)
  #define N      12
  #define SHARED 4096

static void    *Shared[SHARED];
static PetscInt Shares, Calls;

/* libpetsc's are not called: their keys are the machine's, of which each program takes the same ones */
PetscErrorCode PetscShmgetAllocateArray(size_t n, size_t size, void *array[])
{
  PetscFunctionBeginUser;
  Calls++;
  PetscCall(PetscMalloc(n * size, array));
  PetscCheck(Shares < SHARED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d shared arrays", SHARED);
  if (PCMPIServerActive) Shared[Shares++] = *array;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscShmgetDeallocateArray(void *array[])
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < Shares; k++)
    if (Shared[k] == *array) Shared[k--] = Shared[--Shares];
  PetscCall(PetscFree(*array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Served(const void *array)
{
  for (PetscInt k = 0; k < Shares; k++)
    if (Shared[k] == array) return PETSC_TRUE;
  return PETSC_FALSE;
}

typedef struct {
  const PetscInt    *i, *j;
  const PetscScalar *a;
} Place;

static PetscErrorCode Where(Mat A, Place *p)
{
  PetscInt  n;
  PetscBool done;

  PetscFunctionBeginUser;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &p->i, &p->j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &p->a));
  {
    const PetscInt    *i = p->i, *j = p->j;
    const PetscScalar *a = p->a;

    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckServed(Mat A, const char *what)
{
  Place p;

  PetscFunctionBeginUser;
  PetscCall(Where(A, &p));
  MatTestCheck(Served(p.i) && Served(p.j) && Served(p.a), what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  ENTRIES,
  COORDINATES,
  DUPLICATE,
  SUBMATRIX,
  SUM,
  ORIGINS
} Origin;
static const char *const Names[ORIGINS] = {"entries", "coordinates", "a duplicate", "a submatrix", "a sum"};

static PetscErrorCode Entries(const char *type, PetscInt step, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, N, N, N, N, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  for (PetscInt r = 0; r < N; r++)
    for (PetscInt k = -1; k < 2; k++) PetscCall(MatSetValue(*A, r, (r + k * step + N) % N, k ? -1.0 : 4.0 + r % 3, INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coordinates(const char *type, Mat *A)
{
  PetscInt    i[2 * N], j[2 * N];
  PetscScalar v[2 * N];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 2 * N; k++) {
    i[k] = k % N;
    j[k] = k < N ? k : (k + 3) % N;
    v[k] = 1.0 + k % 5;
  }
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, N, N, N, N, A));
  PetscCall(MatSetPreallocationCOO(*A, 2 * N, i, j));
  PetscCall(MatSetValuesCOO(*A, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of a product, which on a device is born there */
static PetscErrorCode Make(const char *type, Origin o, Mat *A)
{
  Mat B, C;
  IS  is;

  PetscFunctionBeginUser;
  if (o == COORDINATES) {
    PetscCall(Coordinates(type, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Entries(type, 1, &B));
  if (o == ENTRIES) {
    *A = B;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTestProduct(MATPRODUCT_AB, B, B, NULL, &C));
  PetscCall(MatDestroy(&B));
  if (o == DUPLICATE) PetscCall(MatDuplicate(C, MAT_COPY_VALUES, A));
  if (o == SUBMATRIX) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, N - 2, 1, 1, &is));
    PetscCall(MatCreateSubMatrix(C, is, is, MAT_INITIAL_MATRIX, A));
    PetscCall(ISDestroy(&is));
  }
  if (o == SUM) {
    PetscCall(Entries(type, 4, &B));
    PetscCall(MatAXPY(C, 0.5, B, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
    *A = C;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Write(Mat A, PetscInt k)
{
  Vec d;

  PetscFunctionBeginUser;
  if (k % 4 == 0) PetscCall(MatScale(A, 2.0));
  if (k % 4 == 1) PetscCall(MatShift(A, 0.5));
  if (k % 4 == 2) {
    PetscCall(MatCreateVecs(A, NULL, &d));
    PetscCall(VecSet(d, 1.25));
    PetscCall(MatDiagonalScale(A, d, NULL));
    PetscCall(VecDestroy(&d));
  }
  if (k % 4 == 3) PetscCall(MatScale(A, -1.0));
  if (k > 7) { /* by the host: what is sent again and again would be page-locked */
    PetscCall(MatSetValue(A, 1, 1, 7.0 + k, INSERT_VALUES));
    PetscCall(MatTestAssemble(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Origin o)
{
  Mat   A, H;
  Place first, now;

  PetscFunctionBeginUser;
  MatTestName = Names[o];
  PetscCall(Make(MATSEQAIJ, o, &A));
  PetscCall(Make("seqaijhybridgpu", o, &H));
  PetscCall(CheckServed(A, "MATAIJ's arrays are shared"));
  PetscCall(CheckServed(H, "the type's arrays are shared"));
  MatTestCheckMult(H, A, "MatMult");
  PetscCall(Where(H, &first));
  for (PetscInt k = 0; k < 14; k++) {
    MatTestBoth(Write, A, H, k);
    MatTestCheckMult(H, A, "MatMult after a write");
    PetscCall(Where(H, &now));
    MatTestCheck(now.i == first.i && now.j == first.j && now.a == first.a, "its arrays are where they were");
  }
  MatTestCheckSame(H, A, "entries");
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  PetscMPIInt rank, size;

  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
#if PETSC_VERSION_GE(3, 22, 0)
  {
    Mat A;

    PetscCall(Entries(MATSEQAIJ, 1, &A));
    PetscCall(MatDestroy(&A));
  }
  if (Calls) {
    PCMPIServerActive = PETSC_TRUE;
    for (int o = 0; o < ORIGINS; o++) PetscCall(Check((Origin)o));
    PCMPIServerActive = PETSC_FALSE;
  } else {
    MatTestSkipped++;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED: this libpetsc calls no functions but its own\n"));
  }
#else
  MatTestSkipped++;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED: the solver server of this PETSc shares no memory\n"));
#endif
  return MatTestEnd();
}
