/*
  P^T A P by the fused method, named by -matptap_via as a user would (here while it is the type's turn, as MATAIJ does
  not know the name): with MatPtAP() against MATAIJ, its reuse with new values and with other matrices, and inside
  GAMG's setup, first and again. Which method ran is asked of the library, by the functions of petscmataijhybridgpu.h.

TEST np=1,2
TEST np=1 @emulated
TEST np=1 -mat_aijhybridgpu_memory mirror @emulated
TEST np=1 -mat_aijhybridgpu_fused_plan 5000 -declined @emulated
*/
#include "mattest.h"

static PetscErrorCode (*GetMethod)(Mat, const char **);
static PetscErrorCode (*GetCounter)(Mat, const char[], PetscInt64 *);
static PetscMPIInt size;
static PetscBool   device, declined;

static PetscErrorCode Name(PetscBool name)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestOption(name, "-matptap_via", "fused"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ran(Mat C)
{
  const char *method = NULL;
  PetscBool   same;
  PetscInt64  bytes, stages;

  PetscFunctionBeginUser;
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS); /* the blocks' products are no objects of the program's */
  PetscCall((*GetMethod)(C, &method));
  PetscCall(PetscStrcmp(method ? method : "", "fused", &same));
  PetscCall((*GetCounter)(C, "plan bytes", &bytes));
  PetscCall((*GetCounter)(C, "row groups", &stages));
  MatTestCheck(same == (PetscBool)!declined, declined ? "the stages, as the plan may not be so large" : "the method that was named");
  if (!declined) MatTestCheck(device ? bytes > 0 : stages > 0, "it counted what makes it itself");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(void)
{
  Mat A, P, H, Q, C, D, H2, Q2;

  PetscFunctionBeginUser;
  MatTestName = "MatPtAP";
  PetscCall(MatTestStencil(2, 23, PETSC_FALSE, 0.25, MATAIJ, &A));
  PetscCall(MatTestRandom(529, 71, 2, MatTestSeed, &P));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatConvert(P, "aijhybridgpu", MAT_INITIAL_MATRIX, &Q));
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &H2));
  PetscCall(MatDuplicate(Q, MAT_COPY_VALUES, &Q2));
  PetscCall(MatPtAP(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(Name(PETSC_TRUE));
  PetscCall(MatPtAP(H, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
  PetscCall(Name(PETSC_FALSE));
  MatTestCheckSame(D, C, "first");
  PetscCall(Ran(D));
  PetscCall(MatScale(H, -2.0));
  PetscCall(MatScale(Q, 0.5));
  PetscCall(MatPtAP(H, Q, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
  PetscCall(MatScale(A, -2.0));
  PetscCall(MatScale(P, 0.5));
  PetscCall(MatPtAP(A, P, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  MatTestCheckSame(D, C, "again with new values");
  if (size == 1) {
    PetscCall(MatScale(H2, 7.0));
    PetscCall(MatPtAP(H2, Q2, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatScale(C, -14.0));
    MatTestCheckSame(D, C, "again with other matrices of the same pattern");
    PetscCall(Ran(D));
  }
  PetscCall(MatTestDestroy(&A, &P, &H, &Q, &H2, &Q2, &C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* iterations and the coarse operator of each level */
static PetscErrorCode Solve(KSP ksp, Mat A, PetscInt *its, PetscInt *levels, Mat coarse[])
{
  PC  pc;
  Vec x, b;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCMGGetLevels(pc, levels));
  for (PetscInt l = 0; l + 1 < *levels && l < 8; l++) {
    KSP smoother;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, NULL, &coarse[l]));
  }
  PetscCall(MatTestDestroy(&x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GAMG(void)
{
  Mat      A[2], coarse[2][8];
  KSP      ksp[2];
  PetscInt its[2], levels[2];

  PetscFunctionBeginUser;
  MatTestName = "GAMG";
  for (int k = 0; k < 2; k++) {
    PC pc;

    PetscCall(MatTestStencil(2, 40, PETSC_FALSE, 0, k ? "aijhybridgpu" : MATAIJ, &A[k]));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
    PetscCall(KSPGetPC(ksp[k], &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PCGAMGSetReuseInterpolation(pc, PETSC_TRUE));
    PetscCall(KSPSetTolerances(ksp[k], 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 100));
  }
  for (int pass = 0; pass < 3; pass++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(Name((PetscBool)k));
      PetscCall(Solve(ksp[k], A[k], &its[k], &levels[k], coarse[k]));
    }
    PetscCall(Name(PETSC_FALSE));
    MatTestCheck(levels[0] == levels[1] && levels[0] > 1, "as many levels as MATAIJ, two at least");
    MatTestCheck(PetscAbs(its[0] - its[1]) <= 1, "as many iterations as MATAIJ");
    for (PetscInt l = 0; l + 1 < levels[1] && levels[0] == levels[1]; l++) MatTestCheckSame(coarse[1][l], coarse[0][l], "the operator of a level");
    if (levels[1] > 1) PetscCall(Ran(coarse[1][levels[1] - 2]));
    for (int k = 0; k < 2; k++) PetscCall(MatScale(A[k], 1.5)); /* new values: the products again */
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &ksp[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  void *library = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "The fused P^T A P of MATAIJHYBRIDGPU\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-declined", &declined));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_cuda_library", &device));
  PetscCall(MatTestLibrary("-dll_append", &library));
  PetscCheck(library, PETSC_COMM_WORLD, PETSC_ERR_USER, "This test wants the plugin by -dll_append");
  *(void **)&GetMethod  = dlsym(library, "MatAIJHybridGPUGetProductMethod");
  *(void **)&GetCounter = dlsym(library, "MatAIJHybridGPUGetProductCounter");
  PetscCheck(GetMethod && GetCounter, PETSC_COMM_WORLD, PETSC_ERR_LIB, "The plugin lacks the public functions");
  PetscCall(Products());
  PetscCall(GAMG());
  return MatTestEnd();
}
