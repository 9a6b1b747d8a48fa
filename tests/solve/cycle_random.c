/*
  Random sequences of what programs do to a solver with multigrid, alike on MATAIJ and on the type, where the cycle is
  made here whenever it can be: solves for other right-hand sides, new values, patterns and sizes, smoothers' steps,
  types and numbers, restrictions, null spaces, cycles, resets, preconditioners that are kept, solvers inside the
  coarsest level's, estimates without noise. After each step both sides agree. All is drawn from the seed of a run;
  -seed N -runs 1 repeats the run whose seed a failure names, -trail prints each step before it is done.

TEST np=1 -mat_aijhybridgpu_backend host -runs 40
TEST np=2 -mat_aijhybridgpu_backend host -runs 3
TEST np=1 @emulated -runs 8
TEST np=1 @emulated -runs 4 -pc_mg_aijhybridgpu_precision single
TEST np=+1 @emulated -runs 6 -pc_mg_aijhybridgpu_precision half -mat_aijhybridgpu_tuning ordered_fewest=0
TEST np=1 @emulated -runs 4 -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,sums=0
TEST np=+3 @emulated -runs 2
TEST np=+3 @emulated -runs 2 -mat_aijhybridgpu_tuning whole=0
*/
#include "solvetest.h"

#define STEPS     14
#define TOLERANCE 1e-8 /* of estimates that follow estimates */

static unsigned long long State;
static PetscBool          Trail;
static char               Said[512]; /* the steps so far, the last ones of them */

static PetscInt Draw(PetscInt n)
{
  State = State * 6364136223846793005ull + 1442695040888963407ull;
  return (PetscInt)((State >> 33) % (unsigned long long)n);
}

static void Say(const char *what, PetscInt a, PetscInt b)
{
  const size_t length = strlen(Said);
  char         text[64];

  snprintf(text, sizeof(text), " %s(%d,%d)", what, (int)a, (int)b);
  if (length + strlen(text) + 1 > 200) memmove(Said, Said + strlen(text), length - strlen(text) + 1);
  strncat(Said, text, sizeof(Said) - strlen(Said) - 1);
  if (Trail) PetscCallAbort(PETSC_COMM_SELF, PetscPrintf(PETSC_COMM_WORLD, "%s\n", text));
}

static PetscErrorCode NewMatrix(Pair *p)
{
  const PetscInt n    = 12 + 3 * Draw(5);
  const PetscInt full = Draw(2);
  Mat            S;

  PetscFunctionBeginUser;
  Say("matrix", n, full);
  PetscCall(MatTestStencil(2, n, (PetscBool)full, 0.0, MATAIJ, &S));
  PetscCall(MatSetOption(S, MAT_SYMMETRIC, PETSC_TRUE));
  SIDES(side) {
    PetscCall(MatTestDestroy(&p->ksp[side], &p->A[side], &p->x[side], &p->b[side]));
    PetscCall(OfType(S, side ? "aijhybridgpu" : MATAIJ, &p->A[side]));
    PetscCall(MatCreateVecs(p->A[side], &p->x[side], &p->b[side]));
    PetscCall(PairSolver(p, side));
    PetscCall(KSPSetFromOptions(p->ksp[side]));
    PetscCall(RightHandSide(p->b[side], 0));
  }
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnSmoother(Pair *p, PetscInt what)
{
  const PetscInt l = 1 + Draw(NumberOfLevels(p->ksp[0]->pc) - 1), draw = Draw(5);
  PetscBool      chebyshev;
  KSP            k[2];

  PetscFunctionBeginUser;
  Say((const char *[]){"steps", "richardson", "numbers", "noise", "kept smoother", "anew"}[what], l, draw);
  if (what == 3) p->tol = 1e-2; /* estimates begin with the last solve's residuals, which are mostly rounding */
  Smoothers(p, l, (PetscBool)Draw(2), k);
  SIDES(side) {
    PetscCall(PetscObjectTypeCompare((PetscObject)k[side], KSPCHEBYSHEV, &chebyshev));
    if (what == 0) PetscCall(KSPSetTolerances(k[side], PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 1 + draw));
    if (what == 1) PetscCall(KSPSetType(k[side], draw % 2 ? KSPCHEBYSHEV : KSPRICHARDSON));
    if (what == 1 && draw % 2 == 0) PetscCall(KSPRichardsonSetScale(k[side], 0.55));
    if (what == 1 && draw % 2) PetscCall(KSPChebyshevSetEigenvalues(k[side], 2.1, 0.25));
    if (what == 2 && chebyshev) PetscCall(KSPChebyshevSetEigenvalues(k[side], 2.0 + 0.1 * draw, 0.2));
    if (what == 2 && !chebyshev) PetscCall(KSPRichardsonSetScale(k[side], 0.4 + 0.05 * draw));
    if (what == 3 && chebyshev) PetscCall(KSPChebyshevEstEigSetUseNoisy(k[side], (PetscBool)(draw > 1)));
    if (what == 4) PetscCall(KSPSetReusePreconditioner(k[side], (PetscBool)(draw > 1)));
    if (what == 5 && chebyshev) {
      PetscCall(KSPSetType(k[side], KSPRICHARDSON));
      PetscCall(KSPSetType(k[side], KSPCHEBYSHEV));
      if (draw > 2)
        PetscCall(KSPChebyshevEstEigSet(k[side], 0, 0.1, 0, 1.1));
      else
        PetscCall(KSPChebyshevSetEigenvalues(k[side], 2.0 + 0.1 * draw, 0.2));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnLevel(Pair *p, PetscInt what)
{
  const PetscInt l = 1 + Draw(NumberOfLevels(p->ksp[0]->pc) - 1);
  MatNullSpace   null;
  KSP            k[2];

  PetscFunctionBeginUser;
  Say((const char *[]){"operator", "restriction", "null space"}[what], l, 0);
  Smoothers(p, l, PETSC_FALSE, k);
  SIDES(side) {
    Mat A, P, R;

    PetscCall(KSPGetOperators(k[side], &A, NULL));
    PetscCall(PCMGGetInterpolation(p->ksp[side]->pc, l, &P));
    if (what == 0 && l < NumberOfLevels(p->ksp[0]->pc) - 1) PetscCall(MatScale(A, 1.1));
    if (what == 1) {
      PetscCall(PCMGGetRestriction(p->ksp[side]->pc, l, &R));
      if (R != P)
        PetscCall(PCMGSetRestriction(p->ksp[side]->pc, l, P));
      else {
        PetscCall(MatTranspose(P, MAT_INITIAL_MATRIX, &R));
        PetscCall(PCMGSetRestriction(p->ksp[side]->pc, l, R));
        PetscCall(MatDestroy(&R));
      }
    }
    if (what == 2) {
      PetscCall(MatGetNullSpace(A, &null));
      if (null) {
        PetscCall(MatSetNullSpace(A, NULL));
        PetscCall(MatSetTransposeNullSpace(A, NULL));
      } else if (l < NumberOfLevels(p->ksp[0]->pc) - 1) {
        PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
        PetscCall(MatSetNullSpace(A, null));
        PetscCall(MatNullSpaceDestroy(&null));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnCoarsest(Pair *p)
{
  static const char *const types[] = {PCLU, PCJACOBI, PCSVD, PCSOR};
  const PetscInt           draw    = Draw(4);
  KSP                      k[2], *sub;
  PetscBool                blocks;
  PetscInt                 n;

  PetscFunctionBeginUser;
  Say("coarsest", draw, 0);
  Smoothers(p, 0, PETSC_FALSE, k);
  SIDES(side) {
    PetscCall(PetscObjectTypeCompare((PetscObject)k[side]->pc, PCBJACOBI, &blocks));
    if (!blocks || !k[side]->pc->setupcalled || SolveSize > 1) continue;
    PetscCall(PCBJacobiGetSubKSP(k[side]->pc, &n, NULL, &sub));
    PetscCall(PCSetType(sub[0]->pc, types[draw]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a smoother that is reset has no right-hand side to begin with */
static PetscErrorCode NoiseAgain(KSP ksp)
{
  const PC_MG *mg = (const PC_MG *)ksp->pc->data;

  PetscFunctionBeginUser;
  for (PetscInt l = 1; l < mg->levels[0]->levels; l++) {
    PetscCall(KSPChebyshevEstEigSetUseNoisy(mg->levels[l]->smoothd, PETSC_TRUE));
    PetscCall(KSPChebyshevEstEigSetUseNoisy(mg->levels[l]->smoothu, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnSolver(Pair *p, PetscInt what)
{
  const PetscInt draw = Draw(3);

  PetscFunctionBeginUser;
  Say((const char *[]){"values", "scaled", "kept", "w", "reset", "cycles"}[what], draw, 0);
  SIDES(side) {
    PC pc = p->ksp[side]->pc;

    if (what == 0) PetscCall(Change(p->A[side], draw));
    if (what == 1) PetscCall(MatScale(p->A[side], 0.5 + draw));
    if (what == 2) PetscCall(KSPSetReusePreconditioner(p->ksp[side], (PetscBool)(draw == 0)));
    if (what == 3) PetscCall(PCMGSetCycleType(pc, draw ? PC_MG_CYCLE_V : PC_MG_CYCLE_W));
    if (what == 4) p->tol = TOLERANCE;
    if (what == 4) PetscCall(NoiseAgain(p->ksp[side]));
    if (what == 4) PetscCall(PCReset(pc));
    if (what == 4) PetscCall(KSPSetOperators(p->ksp[side], p->A[side], p->A[side]));
    if (what == 5) PetscCall(PCMGMultiplicativeSetCycles(pc, draw == 0 ? 2 : 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Step(Pair *p)
{
  const PetscInt what = Draw(21);

  PetscFunctionBeginUser;
  if (what == 0)
    PetscCall(NewMatrix(p));
  else if (what < 6)
    PetscCall(OnSmoother(p, Draw(6)));
  else if (what < 9)
    PetscCall(OnLevel(p, Draw(3)));
  else if (what < 14)
    PetscCall(OnSolver(p, Draw(6)));
  else if (what == 20)
    PetscCall(OnCoarsest(p));
  for (PetscInt solves = 1 + Draw(2); solves > 0; solves--) {
    const PetscInt round = Draw(6);

    Say("solve", round, 0);
    BOTH(RightHandSide(p->b[side], round));
    PetscCall(PairSolve(p, WHATEVER, Said));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void)
{
  static const char *const more[] = {"", "-pc_mg_distinct_smoothup", "-pc_mg_cycle_type w", "-mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6"};
  char                     options[256];
  Pair                     p;
  Mat                      S;

  PetscFunctionBeginUser;
  State   = (unsigned long long)MatTestSeed * 977 + 12345;
  Said[0] = 0;
  for (int k = 0; k < 5; k++) (void)Draw(2);
  snprintf(options, sizeof(options), "%s -ksp_type %s -pc_type gamg %s", BASE, Draw(3) ? "fgmres" : "cg", more[Draw(4)]);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(MatTestStencil(2, 18, PETSC_FALSE, 0.0, MATAIJ, &S));
  PetscCall(PairCreate(S, &p));
  p.tol = TOLERANCE;
  PetscCall(PairSolve(&p, WHATEVER, options));
  for (int k = 0; k < STEPS; k++) PetscCall(Step(&p));
  PetscCall(SameView(p.ksp[0], p.ksp[1], Said));
  PetscCall(PairDestroy(&p));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt runs = 5, first = 1;
  int      code = 1;

  PetscCall(SolveBegin(argc, argv));
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &first, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &Trail, NULL));
  MatTestName = "random sequences";
  for (MatTestSeed = first; MatTestSeed < first + runs; MatTestSeed++) PetscCall(Run());
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d applications made here, %d left\n", (int)Made, (int)Left));
  PetscCall(SolveEnd(PETSC_FALSE, &code));
  return code;
}
