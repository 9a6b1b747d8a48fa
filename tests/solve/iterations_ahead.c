/*
  Iterations of KSPCG that are launched before the numbers of the one before are read. Solve after solve of one system,
  which ends by each of the reasons that there are, at the first iteration, the second, and so on: iterations, reasons,
  residuals, solutions and what the smoothers' solvers have counted are those of the first solve, in which nothing is
  launched ahead, and of MATAIJ; PETSc's log has as many applications. On one process or several. On an emulated device
  the launches are counted: at most one iteration is in vain, none where nothing is launched ahead, and by the norms
  none but the first one of a solve that has no iteration.

TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_tuning iterations_ahead=2 -always
TEST np=2 @emulated -mat_aijhybridgpu_tuning iterations_ahead=2 -always
TEST np=+3 @emulated
TEST np=+1 @emulated -mat_aijhybridgpu_tuning iterations_ahead=0 -never
TEST np=+1 @emulated -mat_aijhybridgpu_tuning iterations_ahead=2,sums=0,ordered=1,ordered_fewest=0 -always
TEST np=1 @emulated -mat_aijhybridgpu_tuning iterations_ahead=2,sums=0,ordered=1,ordered_fewest=0 -pc_mg_aijhybridgpu_precision single -always
*/
#include "stepcounts.h"
#include "matfault.h"
#include <petsc/private/kspimpl.h>
#include <petsc/private/pcimpl.h>
#include <math.h>

#define SOLVES  5
#define HISTORY 64

static PetscBool Always, Never, Single;
static PetscBool Ours = PETSC_TRUE; /* processes that share a card have PETSc's iterations */

typedef struct {
  PetscInt           its, smoothed, applied;
  KSPConvergedReason reason;
  PetscReal          history[HISTORY];
  PetscInt           n;
} Result;

/* iterations of all levels' smoothers so far, and applications of preconditioners in PETSc's log */
static PetscErrorCode Counts(KSP ksp, PetscInt *smoothed, PetscInt *applied)
{
  PetscEventPerfInfo info;
  PetscInt           levels, more;
  KSP                smoother;
  PC                 pc;

  PetscFunctionBeginUser;
  *smoothed = 0;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = 1; l < levels; l++) {
    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetTotalIterations(smoother, &more));
    *smoothed += more;
  }
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, PC_Apply, &info));
  *applied = (PetscInt)info.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, Vec b, Vec x, Result *r)
{
  const PetscReal *history;
  PetscInt         smoothed, applied;

  PetscFunctionBeginUser;
  PetscCall(KSPSetResidualHistory(ksp, NULL, HISTORY, PETSC_TRUE));
  PetscCall(Counts(ksp, &smoothed, &applied));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(Counts(ksp, &r->smoothed, &r->applied));
  r->smoothed -= smoothed;
  r->applied -= applied;
  PetscCall(KSPGetIterationNumber(ksp, &r->its));
  PetscCall(KSPGetConvergedReason(ksp, &r->reason));
  PetscCall(KSPGetResidualHistory(ksp, &history, &r->n));
  for (PetscInt k = 0; k < r->n; k++) r->history[k] = history[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's r, which stays in a vector of the solver's */
static PetscErrorCode Residual(KSP ksp, Vec *r)
{
  Vec v, of;

  PetscFunctionBeginUser;
  PetscCall(KSPGetRhs(ksp, &v));
  PetscCall(VecDuplicate(v, r));
  PetscCall(KSPBuildResidual(ksp, NULL, *r, &of));
  if (of != *r) PetscCall(VecCopy(of, *r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool SameBits(const PetscReal *a, const PetscReal *b, PetscInt n)
{
  return (PetscBool)!memcmp(a, b, (size_t)n * sizeof(*a));
}

/* the numbers of a MATAIJ solve; those of an application that failed are its own */
static void Beside(const Result *aij, const Result *ours, const char *name)
{
  const PetscReal tol   = Single || PetscDefined(USE_REAL_SINGLE) ? 0.1 : 1e-8;
  PetscBool       close = PETSC_TRUE;

  MatTestName = name;
  MatTestCheck(aij->its == ours->its, "MATAIJ's iterations");
  MatTestCheck(aij->reason == ours->reason, "MATAIJ's reason");
  MatTestCheck(aij->n == ours->n, "MATAIJ's residuals in number");
  for (PetscInt k = 0; k < PetscMin(aij->n, ours->n); k++)
    if (isfinite(aij->history[k]) ? !(PetscAbsReal(aij->history[k] - ours->history[k]) <= tol * aij->history[k] + 1e-12 * aij->history[0]) : isfinite(ours->history[k])) close = PETSC_FALSE;
  MatTestCheck(close, "MATAIJ's residuals");
  if (aij->reason != KSP_DIVERGED_NANORINF) MatTestCheck(aij->smoothed == ours->smoothed, "iterations of smoothers, beside MATAIJ");
}

static PetscErrorCode Case(Mat given, PetscScalar scale, PetscReal rtol, PetscInt most, KSPNormType norm, const char *name)
{
  Mat    A[2];
  KSP    ksp[2];
  Vec    b[2], x[2], first, residual, r;
  Result aij, one, again;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatConvert(given, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &A[k]));
    PetscCall(MatSetOption(A[k], MAT_SPD, PETSC_TRUE));
    PetscCall(StepSolver(A[k], rtol, most, &ksp[k]));
    PetscCall(KSPSetNormType(ksp[k], norm));
    PetscCall(KSPSetUp(ksp[k]));
    PetscCall(MatCreateVecs(A[k], &x[k], &b[k]));
  }
  PetscCall(VecSetRandom(b[0], NULL));
  PetscCall(VecScale(b[0], scale));
  PetscCall(VecCopy(b[0], b[1]));
  PetscCall(Solve(ksp[0], b[0], x[0], &aij));
  for (int s = 0; s < SOLVES; s++) {
    Step      step;
    PetscBool same;

    memset(&step, 0, sizeof(step));
    StepBegin(&step);
    PetscCall(Solve(ksp[1], b[1], x[1], s ? &again : &one));
    StepEnd(&step);
    if (!s) {
      PetscCall(VecDuplicate(x[1], &first));
      PetscCall(VecCopy(x[1], first));
      PetscCall(Residual(ksp[1], &residual));
      Beside(&aij, &one, name);
      continue;
    }
    MatTestName = name;
    MatTestCheck(again.its == one.its && again.reason == one.reason, "iterations and reason of the first solve");
    MatTestCheck(again.n == one.n && SameBits(again.history, one.history, one.n), "residuals of the first solve");
    MatTestCheck(again.smoothed == one.smoothed, "iterations of smoothers");
    if (Ours) MatTestCheck(again.applied == one.its + 1, "applications in the log");
    PetscCall(VecEqual(x[1], first, &same));
    MatTestCheck(same || aij.reason == KSP_DIVERGED_NANORINF, "another solve of the same system has other bits");
    PetscCall(Residual(ksp[1], &r));
    PetscCall(VecEqual(r, residual, &same));
    MatTestCheck(same || aij.reason == KSP_DIVERGED_NANORINF, "another residual vector");
    PetscCall(VecDestroy(&r));
    if (StepEmulator && Ours && s > 1) {
      /* the first application is a graph as well, below the finest level */
      const unsigned long long made = StepFind(&step, "cudaGraphLaunch")->n, asked = (unsigned long long)one.its + 1;

      MatTestCheck(made == asked + (!Never && ((!one.its && one.reason != KSP_DIVERGED_PC_FAILED) || (Always && one.its && one.its < most)) ? 1 : 0), "iterations that were launched");
    }
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestDestroy(&ksp[k], &A[k], &x[k], &b[k]));
  }
  PetscCall(MatTestDestroy(&first, &residual));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A;
  PetscMPIInt rank, size;
  char        name[64];

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-always", &Always));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-never", &Never));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-pc_mg_aijhybridgpu_precision", &Single));
  PetscCall(MatTestOpenDevice());
  if (size > 1) PetscCall(MatTestOwnCards(&Ours));
  PetscCall(StepOpen());
  PetscCall(PetscLogDefaultBegin());
  if (PETSC_VERSION_GE(3, 21, 0)) {
    PetscCall(MatTestStencil(3, 12, PETSC_FALSE, 0, MATAIJ, &A));
    for (PetscInt most = 1; most <= 4; most++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "%d iterations", (int)most));
      PetscCall(Case(A, 1, 1e-12, most, KSP_NORM_PRECONDITIONED, name));
    }
    for (int digits = 1; digits <= 8; digits++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "%d digits", digits));
      PetscCall(Case(A, 1, PetscPowReal(10, -digits), 60, digits % 2 ? KSP_NORM_PRECONDITIONED : KSP_NORM_NATURAL, name));
    }
    PetscCall(Case(A, 1, 1e-5, 60, KSP_NORM_UNPRECONDITIONED, "the residual's norm"));
    PetscCall(Case(A, 0, 1e-5, 60, KSP_NORM_PRECONDITIONED, "b = 0"));
    PetscCall(Case(A, (PetscScalar)NAN, 1e-5, 60, KSP_NORM_PRECONDITIONED, "b of NaN"));
    PetscCall(MatShift(A, -2.5));
    PetscCall(Case(A, 1, 1e-8, 60, KSP_NORM_PRECONDITIONED, "an indefinite matrix"));
    PetscCall(MatDestroy(&A));
  } else
    MatTestSkipped++;
  return MatTestEnd();
}
