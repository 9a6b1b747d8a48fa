/*
  Applications of multigrid's cycle with the first, the second, the third, ... allocation and call of the device
  failing: those in which the cycle is made and its launches are captured, and those after new values. Each time there
  is an error, the next application gives what it would have given, and at the end nothing of ours is held.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -every 7
TEST np=+1 @emulated -every 3
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 17
TEST np=1 @emulated -solver -first 4 -every 61
TEST np=+1 @emulated -solver -every 5
TEST np=1 @emulated -solves -first 4 -every 41 -mat_aijhybridgpu_tuning iterations_ahead=2
TEST np=+1 @emulated -solves -every 11 -mat_aijhybridgpu_tuning iterations_ahead=2
TEST np=+1 @emulated -solver -every 9 -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,sums=0
TEST np=1 @emulated -null -first 4 -every 41
TEST np=+1 @emulated -null -every 3
TEST np=1 @emulated -pc_mg_aijhybridgpu_precision single -first 4 -every 61
TEST np=+1 @emulated -pc_mg_aijhybridgpu_precision single -every 7

  And KSPCG's own memory: KSPReset() and KSPSetType() give it back.

  -solves: whole solves by KSPCG in their place
  -every N: the first sixteen (-first), and of the others one in N; -from K: from the K-th on; -solver: the coarsest
  level's stays; -null: constants are the null space; -verbose: says what failed
*/
#include "matfault.h"

/* points of a side: four levels, as of larger ones, at whose kernels the calls are the same */
#define SIDE 12

static Mat       S;
static PetscBool Null, Whole;
static Vec       expected[2]; /* before and after new values */

static PetscErrorCode NewValues(Mat A, KSP ksp)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(VecSet(d, 2.0));
  PetscCall(VecSetValue(d, 3, 4.0, INSERT_VALUES));
  PetscCall(VecTestAssemble(d));
  if (Null)
    PetscCall(MatScale(A, 3.0));
  else
    PetscCall(MatDiagonalScale(A, d, d));
  PetscCall(VecDestroy(&d));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetUp(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solver that is set up, and the finest level's matrix */
static PetscErrorCode Create(Mat *A, KSP *ksp, Vec *b, Vec *x)
{
  PetscFunctionBeginUser;
  PetscCall(MatFaultSolver(S, Null, A, ksp));
  PetscCall(MatCreateVecs(*A, x, b));
  VecTestFill(*b, r, 1.0 + (PetscReal)((r * 37) % 11));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Applications(KSP ksp, int n, Vec b, Vec x)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  for (int k = 0; k < n; k++) PetscCall(Whole ? KSPSolve(ksp, b, x) : PCApply(pc, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* again: after new values of a cycle that has been applied */
static PetscErrorCode Fault(PetscBool again, int k, PetscErrorCode *ierr, int *fired)
{
  Mat A;
  KSP ksp;
  Vec b, x;

  PetscFunctionBeginUser;
  PetscCall(Create(&A, &ksp, &b, &x));
  if (again) {
    PetscCall(Applications(ksp, 3, b, x));
    PetscCall(NewValues(A, ksp));
  }
  MatFaultTry(k, *ierr, *fired, Applications(ksp, 3, b, x));
  /* the first makes what is missing, the second captures, the third has it */
  for (int n = 0; n < 3; n++) {
    PetscCall(Applications(ksp, 1, b, x));
    VecTestCheckSame(x, expected[again], "an application after a failure");
  }
  if (!again) {
    PetscCall(NewValues(A, ksp));
    PetscCall(Applications(ksp, 3, b, x));
    VecTestCheckSame(x, expected[1], "new values after a failure");
  }
  PetscCall(MatTestDestroy(&ksp, &A, &b, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows whose sum is zero */
static PetscErrorCode Close(Mat A)
{
  Vec one, sum;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &one, &sum));
  PetscCall(VecSet(one, -1.0));
  PetscCall(MatMult(A, one, sum));
  PetscCall(MatDiagonalSet(A, sum, ADD_VALUES));
  PetscCall(MatTestDestroy(&one, &sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* held on the device after KSPReset() of a solver that has solved: by KSPCG, or by one that is of another type then */
static PetscErrorCode AfterReset(PetscBool type, size_t *held)
{
  Mat             A;
  KSP             ksp;
  Vec             b, x;
  HybMemoryReport with, without;

  PetscFunctionBeginUser;
  PetscCall(Create(&A, &ksp, &b, &x));
  for (int k = 0; k < 2; k++) PetscCall(KSPSolve(ksp, b, x));
  if (type) {
    PetscCall(MatFaultReport(&with));
    PetscCall(KSPSetType(ksp, KSPGMRES));
    PetscCall(MatFaultReport(&without));
    MatTestCheck(without.device_bytes < with.device_bytes, "KSPSetType() gives nothing back");
  }
  PetscCall(KSPReset(ksp));
  PetscCall(MatFaultReport(&without));
  *held = without.device_bytes;
  PetscCall(MatTestDestroy(&ksp, &A, &b, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GivesBack(void)
{
  size_t held[2];

  PetscFunctionBeginUser;
  MatTestName = "what KSPCG keeps";
  if (!MatFault.device) PetscFunctionReturn(PETSC_SUCCESS);
  for (int type = 0; type < 2; type++) PetscCall(AfterReset((PetscBool)type, &held[type]));
  MatTestCheck(held[0] == held[1], "KSPReset() gives nothing back");
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool solver = PETSC_FALSE, single;
  Mat       A;
  KSP       ksp;
  Vec       b, x;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-solver", &solver, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-solves", &Whole, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-null", &Null, NULL));
  PetscCall(PetscOptionsInsertString(NULL, "-ksp_type cg -pc_type gamg -pc_gamg_coarse_eq_limit 4"));
  if (solver) PetscCall(PetscOptionsInsertString(NULL, "-mg_coarse_pc_type sor"));
  if (Null) PetscCall(PetscOptionsInsertString(NULL, "-mg_coarse_pc_type svd"));
  MatFaultWatch(PETSC_TRUE);
  PetscCall(MatTestStencil(2, SIDE, PETSC_FALSE, 0.0, MATAIJ, &S));
  if (Null) PetscCall(Close(S));
  PetscCall(MatTestOpenDevice());
  /* in single precision beside itself */
  PetscCall(MatTestOptionIs("-pc_mg_aijhybridgpu_precision", "single", &single));
  if (!single) PetscCall(PetscOptionsInsertString(NULL, "-pc_mg_aijhybridgpu 0"));
  PetscCall(Create(&A, &ksp, &b, &x));
  for (int again = 0; again < 2; again++) {
    if (again) PetscCall(NewValues(A, ksp));
    PetscCall(VecDuplicate(x, &expected[again]));
    PetscCall(Applications(ksp, 1, b, expected[again]));
  }
  PetscCall(MatTestDestroy(&ksp, &A, &b, &x));
  PetscCall(PetscOptionsClearValue(NULL, "-pc_mg_aijhybridgpu"));
  PetscCall(MatFaultSolves("applications", Fault));
  PetscCall(GivesBack());
  PetscCall(MatTestHook(NULL, NULL));
  MatFaultWatch(PETSC_FALSE);
  for (int again = 0; again < 2; again++) PetscCall(VecDestroy(&expected[again]));
  PetscCall(MatDestroy(&S));
  return MatTestEnd();
}
