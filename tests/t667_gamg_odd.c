/*
  PCGAMG on the type beside PCGAMG on MATAIJ: what programs hand over that is odd. Near-null vectors that depend on each
  other, of which LAPACK's rounding makes columns.

TEST np=1,2 -mat_aijhybridgpu_backend host
TEST np=1,2 @emulated
*/
#include "gamgtest.h"

/* multiples of one vector */
static PetscErrorCode AttachMultiples(Mat A, PetscInt nvec)
{
  MatNullSpace near;
  Vec          v[4];
  PetscInt     start, end;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < nvec; k++) {
    PetscCall(MatCreateVecs(A, &v[k], NULL));
    PetscCall(VecGetOwnershipRange(v[k], &start, &end));
    for (PetscInt r = start; r < end; r++) PetscCall(VecSetValue(v[k], r, (k + 1.0) * (1 + r % 4), INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
  }
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, nvec, v, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  for (PetscInt k = 0; k < nvec; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMultiples(void)
{
  Mat S, A, H;

  PetscFunctionBeginUser;
  MatTestName = "vectors that depend on each other";
  /* a debugging PETSc wants orthonormal ones; the coarse operators are singular */
  if (PetscDefined(USE_DEBUG)) MatTestSkipped++;
  WithoutSolve = PETSC_TRUE;
  for (PetscInt nvec = 2; nvec < 5 && !PetscDefined(USE_DEBUG); nvec++) {
    for (unsigned long seed = 1; seed < 4; seed++) {
      PetscCall(Random(150, 4, seed, PETSC_TRUE, 3.0, &S));
      PetscCall(AttachMultiples(S, nvec));
      PetscCall(OfBothTypes(S, &A, &H));
      PetscCall(Beside(A, H, "-pc_gamg_agg_nsmooths 0 -mg_coarse_sub_pc_type svd", ALL, GIVEN));
      PetscCall(DestroyAll(&S, &A, &H));
    }
  }
  WithoutSolve = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  only = -1;
  PetscBool few  = PETSC_FALSE;
  int       code = 1;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv, &only, &few));
  if (Covers) {
    PetscCall(TestMultiples());
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
