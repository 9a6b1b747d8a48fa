/*
  Matrices that are bound to the CPU where a process has few rows, as -mat_bind_below does, and on all processes:
  products with vectors beside MATAIJ's. All processes have to go by the same scatter, whichever of them are bound. So
  have they where vectors of a card are bound on some (-vec_bind_below); here these are the host's, which say that they
  are of a card's type, so that none is needed.

TEST np=2+3
TEST np=2+3 @emulated
*/
#include "mattest.h"
#include <petsc/private/vecimpl.h>

static PetscMPIInt Rank, Size;

#if defined(PETSC_HAVE_DEVICE)
static PetscErrorCode Check(Mat H, Mat A, const char *what)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    MatTestCheckMult(H, A, what);
    MatTestCheckMultTranspose(H, A, what);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a band; the first process has two rows. early: bound before there are entries, else when it is assembled */
static PetscErrorCode Make(MatType type, PetscBool bind, PetscBool early, Mat *A)
{
  const PetscInt m = Rank ? 9 : 2, M = 2 + 9 * (Size - 1);
  PetscInt       start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, m, m, M, M, A));
  if (bind) PetscCall(MatSetOptionsPrefix(*A, "few_"));
  if (early) PetscCall(MatSetFromOptions(*A));
  PetscCall(MatMPIAIJSetPreallocation(*A, 3, NULL, 3, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt c = PetscMax(0, r - 1); c < PetscMin(M, r + 2); c++) PetscCall(MatSetValue(*A, r, c, 1.0 + (PetscReal)(3 * r + c) / 7, INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckBound(PetscBool early)
{
  Mat       A, H;
  PetscBool bound;

  PetscFunctionBeginUser;
  PetscCall(Make(MATAIJ, PETSC_FALSE, PETSC_FALSE, &A));
  PetscCall(Make("aijhybridgpu", PETSC_TRUE, early, &H));
  if (!early) {
    PetscCall(Check(H, A, "bound nowhere"));
    PetscCall(MatSetFromOptions(H));
  }
  PetscCall(MatBoundToCPU(H, &bound));
  MatTestCheck(bound == (Rank ? PETSC_FALSE : PETSC_TRUE), "where a process has few rows, and nowhere else");
  PetscCall(Check(H, A, "bound on one process"));
  /* PETSc calls no function of the type where nothing changes */
  PetscCall(MatBindToCPU(H, PETSC_TRUE));
  PetscCall(Check(H, A, "bound on all"));
  PetscCall(MatBindToCPU(H, PETSC_FALSE));
  PetscCall(Check(H, A, "bound on none"));
  MatTestBoth(MatScale, H, A, 2.0);
  PetscCall(Check(H, A, "other values"));
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Vector(Mat A, PetscBool bound, Vec *v)
{
  PetscInt     start, end;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(VecSetSizes(*v, end - start, PETSC_DETERMINE));
  PetscCall(VecSetType(*v, VECMPI));
  PetscCall(VecGetArray(*v, &a));
  for (PetscInt k = start; k < end; k++) a[k - start] = 1.0 + k % 5;
  PetscCall(VecRestoreArray(*v, &a));
  PetscCall(PetscObjectChangeTypeName((PetscObject)*v, VECMPICUDA));
  (*v)->boundtocpu = bound;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckVectors(void)
{
  Mat A, H;
  Vec x, y, z;

  PetscFunctionBeginUser;
  PetscCall(Make(MATAIJ, PETSC_FALSE, PETSC_FALSE, &A));
  PetscCall(Make("aijhybridgpu", PETSC_FALSE, PETSC_FALSE, &H));
  for (int k = 0; k < 6; k++) {
    const PetscBool some = (PetscBool)(k % 3 == 0);

    PetscCall(Vector(A, (PetscBool)(some && !Rank), &x));
    PetscCall(Vector(A, (PetscBool)(some && !Rank), &y));
    PetscCall(Vector(A, (PetscBool)(some && !Rank), &z));
    PetscCall(k < 3 ? MatMult(A, x, y) : MatMultTranspose(A, x, y));
    PetscCall(k < 3 ? MatMult(H, x, z) : MatMultTranspose(H, x, z));
    VecTestCheckSame(z, y, some ? "vectors bound on one process" : "vectors bound on none");
    PetscCall(MatTestDestroy(&x, &y, &z));
  }
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
#if defined(PETSC_HAVE_DEVICE)
  PetscCall(PetscOptionsSetValue(NULL, "-few_mat_bind_below", "5"));
  MatTestBoth(CheckBound, PETSC_TRUE, PETSC_FALSE);
  PetscCall(CheckVectors());
#else
  MatTestSkipped++;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED: this PETSc has no devices, and binds nothing to the CPU\n"));
#endif
  return MatTestEnd();
}
