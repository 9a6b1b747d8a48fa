/*
  PCGAMG on the type beside PCGAMG on MATAIJ on several processes, where one process is not like the others: all must
  go the same way.

TEST np=2,3 -mat_aijhybridgpu_backend host
TEST np=2 @emulated
*/
#include "gamgtest.h"

/* a grid's matrix with one near-null vector; all rows are the first process's */
static PetscErrorCode OnFirst(MatType type, Mat *A)
{
  const PetscInt    n = 24, all = n * n;
  const PetscMPIInt rank = MatTestRank();
  PetscInt          local;
  Mat               S;

  PetscFunctionBeginUser;
  local = rank ? 0 : all;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, MATAIJ, local, local, all, all, &S));
  PetscCall(MatMPIAIJSetPreallocation(S, 5, NULL, 0, NULL));
  for (PetscInt r = 0; r < local; r++) {
    const PetscInt c[] = {r - n, r - 1, r + 1, r + n};

    for (int k = 0; k < 4; k++)
      if (c[k] >= 0 && c[k] < all) PetscCall(MatSetValue(S, r, c[k], -1.0, INSERT_VALUES));
    PetscCall(MatSetValue(S, r, r, 6.5, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(S));
  PetscCall(AttachVectors(S, 1));
  PetscCall(OfType(S, type, A));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MoreEntries(Mat A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatTestLetIn(A));
  for (PetscInt r = start; r + 50 < end; r += 5) {
    PetscCall(MatSetValue(A, r, r + 50, -0.25, INSERT_VALUES));
    PetscCall(MatSetValue(A, r + 50, r, -0.25, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc remembers the vectors of a setup whose interpolation is not to be used again, but not where there are none:
   the next setup makes them anew on the processes without rows alone */
static PetscErrorCode TestRemembered(void)
{
  Mat      A[2];
  KSP      ksp[2];
  PC       pc[2];
  PetscInt before = 0, nlevels;

  PetscFunctionBeginUser;
  MatTestName = "vectors that some processes remember";
  for (int k = 0; k < 2; k++) {
    PetscCall(OnFirst(k ? "aijhybridgpu" : MATAIJ, &A[k]));
    PetscCall(Solver(A[k], &ksp[k]));
    PetscCall(KSPGetPC(ksp[k], &pc[k]));
    PetscCall(PCGAMGSetReuseInterpolation(pc[k], PETSC_FALSE));
    PetscCall(KSPSetUp(ksp[k]));
    PetscCall(PCGAMGSetReuseInterpolation(pc[k], PETSC_TRUE));
    PetscCall(MoreEntries(A[k]));
    PetscCall(KSPSetOperators(ksp[k], A[k], A[k]));
    PetscCall(Levels(&before));
    PetscCall(KSPSetUp(ksp[k]));
  }
  PetscCall(SameHierarchy(pc[0], pc[1], GIVEN, "again", &nlevels));
  PetscCall(CheckWay(ALL, before, nlevels, "again"));
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&ksp[k], &A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the last process's block is one of AIJ: PETSc does it all, on all processes */
static PetscErrorCode TestBlock(int which)
{
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  Mat               S, A, H, block[2];

  PetscFunctionBeginUser;
  MatTestName = which ? "another block of others' columns on one process" : "another diagonal block on one process";
  PetscCall(Grid(2, 20, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(MatMPIAIJGetSeqAIJ(H, &block[0], &block[1], NULL));
  if (rank == size - 1) PetscCall(MatConvert(block[which], MATSEQAIJ, MAT_INPLACE_MATRIX, &block[which]));
  PetscCall(Beside(A, H, "-pc_gamg_eigenvalues 0.1,2.2", NONE, GIVEN));
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On devices the process that estimates eigenvalues is the type's own; an option for PETSc's KSP that one process alone
   has leaves it to that KSP, on all */
static PetscErrorCode TestEstimate(void)
{
  const char *const option = "-of_none_pc_gamg_esteig_ksp_max_it";
  const PetscMPIInt rank   = MatTestRank();
  PetscInt          count[3];
  PetscBool         device;
  Mat               S, A, H;

  PetscFunctionBeginUser;
  MatTestName = "an option of the estimate on one process";
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_cuda_library", &device));
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  for (int k = 0; k < 3; k++) {
    if (k == 1 && !rank) PetscCall(PetscOptionsSetValue(NULL, option, "10"));
    if (k) PetscCall(Beside(A, H, "", ALL, LOOSE));
    if (k == 1 && !rank) PetscCall(PetscOptionsClearValue(NULL, option));
    PetscCall(MatTestEventCount("HybGAMGEstim", &count[k]));
  }
  MatTestCheck(count[1] == count[0], "PETSc's KSP estimates on all processes");
  MatTestCheck((PetscBool)(count[2] > count[1]) == device, "on devices the type estimates");
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
/* A level so small that it is estimated on the host where its vectors are a device's: on the last process they are
   not */
static PetscErrorCode TestBound(void)
{
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  Mat               S, A, H;

  PetscFunctionBeginUser;
  MatTestName = "a small matrix that is bound to the CPU on one process";
  PetscCall(Grid(2, 12, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(MatBindToCPU(H, (PetscBool)(rank == size - 1)));
  PetscCall(Beside(A, H, "", NONE, LOOSE));
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  if (PETSC_VERSION_GE(3, 21, 0)) {
    PetscCall(Options("-pc_gamg_eigenvalues 0.1,2.2", PETSC_TRUE));
    if (Only < 0 || Only == 0) PetscCall(TestRemembered());
    PetscCall(Options("-pc_gamg_eigenvalues 0.1,2.2", PETSC_FALSE));
    for (int which = 0; which < 2; which++)
      if (Only < 0 || Only == 1 + which) PetscCall(TestBlock(which));
    if (Only < 0 || Only == 3) PetscCall(TestEstimate());
#if defined(PETSC_HAVE_DEVICE)
    if (Only < 0 || Only == 4) PetscCall(TestBound());
#endif
  }
  return MatTestEnd();
}
