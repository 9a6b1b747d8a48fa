/*
  A matrix's copy of its values in the kernel's order (seq/ordered.c) that multigrid's cycle borrows, beside MATAIJ:
  methods that multiply outside of the cycle, products of the program's in between, new values with the preconditioner
  kept and made again, another pattern, a matrix that is replaced; the solution and the number of iterations each time.

TEST np=1 @emulated -mat_aijhybridgpu_tuning mult_ordered=1,ordered=1,ordered_fewest=0
TEST np=1 @emulated -mat_aijhybridgpu_tuning mult_ordered=5,ordered=1,ordered_fewest=0 -ksp_type bcgs
TEST np=1 @emulated -mat_aijhybridgpu_tuning mult_ordered=2,ordered=3,ordered_fewest=0 -ksp_type cg
TEST np=1 @emulated -mat_aijhybridgpu_tuning mult_ordered=2,ordered=1,ordered_fewest=0 -pc_mg_aijhybridgpu_precision single
TEST np=2 @emulated -mat_aijhybridgpu_tuning mult_ordered=1,ordered=1,ordered_fewest=0,comm_together=0,whole=0,rowgroup_lanes=1
*/
#include "mattest.h"
#include <petscksp.h>

#define SIDE 36

/* entries of a 5-point matrix whose coefficient changes with t; wide: two more neighbours */
static PetscErrorCode Fill(Mat A, PetscInt t, PetscBool wide)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt  i = r / SIDE, j = r % SIDE, steps[] = {-2, -SIDE, -1, 1, SIDE, 2};
    const PetscBool there[] = {(PetscBool)(wide && j > 1), (PetscBool)(i > 0), (PetscBool)(j > 0), (PetscBool)(j < SIDE - 1), (PetscBool)(i < SIDE - 1), (PetscBool)(wide && j < SIDE - 2)};
    PetscScalar     sum     = 0.05;

    for (int k = 0; k < 6; k++) {
      const PetscScalar v = 1.0 + 0.25 * (PetscReal)((t + (k < 3 ? k : 5 - k)) % 3);

      if (!there[k]) continue;
      sum += v;
      PetscCall(MatSetValue(A, r, r + steps[k], -v, INSERT_VALUES));
    }
    PetscCall(MatSetValue(A, r, r, sum, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Change(Mat A, KSP ksp, PetscInt t, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetReusePreconditioner(ksp, (PetscBool)(t % 4 == 2)));
  switch (t % 8) {
  case 1: break;
  case 2: PetscCall(MatScale(A, 0.75)); break; /* the preconditioner is kept */
  case 3:
    for (int k = 0; k < 7; k++) PetscCall(MatMult(A, x, y));
    break;
  case 4: PetscCall(MatShift(A, 0.125)); break;
  case 5: PetscCall(Fill(A, t, (PetscBool)(t > 8))); break;
  case 6: {
    Mat B;

    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatScale(B, 2.0));
    PetscCall(MatHeaderReplace(A, &B));
    break;
  }
  case 7: PetscCall(Fill(A, t, PETSC_TRUE)); break; /* another pattern */
  default: PetscCall(MatMult(A, x, y)); break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat       A[2];
  KSP       ksp[2];
  PC        pc;
  Vec       b[2], x[2], y[2], z;
  PetscBool single = PETSC_FALSE;
  PetscReal tol;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "A copy of values that a cycle borrows\n"));
  PetscCall(MatTestOptionIs("-pc_mg_aijhybridgpu_precision", "single", &single));
  tol = PetscDefined(USE_REAL_SINGLE) || single ? 1e-2 : 1e-6;
  for (int k = 0; k < 2; k++) {
    PetscInt start, end;

    PetscCall(MatTestRoom(k ? MATAIJ : "aijhybridgpu", PETSC_DECIDE, PETSC_DECIDE, SIDE * SIDE, SIDE * SIDE, 9, &A[k], &start, &end));
    PetscCall(MatTestLetIn(A[k]));
    PetscCall(Fill(A[k], 0, PETSC_FALSE));
    PetscCall(MatCreateVecs(A[k], &x[k], &b[k]));
    PetscCall(VecDuplicate(x[k], &y[k]));
    VecTestFill(b[k], r, (PetscScalar)(1 + (r % 7)));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
    PetscCall(KSPSetOperators(ksp[k], A[k], A[k]));
    PetscCall(KSPSetType(ksp[k], KSPGMRES));
    PetscCall(KSPSetTolerances(ksp[k], PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(KSPSetNormType(ksp[k], KSP_NORM_UNPRECONDITIONED)); /* so that residuals are what is compared */
    PetscCall(KSPGetPC(ksp[k], &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(KSPSetFromOptions(ksp[k]));
  }
  PetscCall(VecDuplicate(x[1], &z));
  for (PetscInt t = 0; t < 18; t++) {
    char               name[32];
    PetscInt           its[2];
    PetscReal          norm, r[2];
    KSPConvergedReason reason[2];

    PetscCall(PetscSNPrintf(name, sizeof(name), "step %" PetscInt_FMT, t));
    MatTestName = name;
    for (int k = 0; k < 2; k++) {
      PetscCall(Change(A[k], ksp[k], t, b[k], y[k]));
      PetscCall(KSPSolve(ksp[k], b[k], x[k]));
      PetscCall(KSPGetIterationNumber(ksp[k], &its[k]));
      PetscCall(KSPGetConvergedReason(ksp[k], &reason[k]));
    }
    MatTestCheck(PetscAbsInt(its[0] - its[1]) <= (single || PetscDefined(USE_REAL_SINGLE) ? 2 : 1), "as many iterations");
    PetscCall(VecNorm(b[1], NORM_2, &norm));
    PetscCall(VecCopy(x[1], z));
    for (int k = 1; k >= 0; k--) { /* by the matrix of AIJ: no product of ours is trusted here */
      PetscCall(VecCopy(k ? z : x[0], x[1]));
      PetscCall(MatMult(A[1], x[1], y[1]));
      PetscCall(VecAYPX(y[1], -1.0, b[1]));
      PetscCall(VecNorm(y[1], NORM_2, &r[k]));
    }
    MatTestCheck((reason[0] > 0) == (reason[1] > 0), "converged where MATAIJ is");
    if (reason[1] > 0) MatTestCheck(r[0] <= PetscMax(tol * norm, 1.1 * r[1]), "a solution as good as MATAIJ's");
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&ksp[k], &A[k], &b[k], &x[k], &y[k]));
  PetscCall(VecDestroy(&z));
  return MatTestEnd();
}
