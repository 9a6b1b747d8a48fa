/*
  KSPCG on several processes that have a card each: its iterations by the plugin, with one wait in each, beside PETSc's
  on MATAIJ. Norms, first guesses, ends of every kind, new values, a process without rows, vectors that others have
  changed; two solves give the same bits; how many solves were the plugin's is counted exactly. Where messages are asked
  for, cards are shared, or there are none, all are PETSc's.

TEST np=1 @emulated -few
TEST np=2 @emulated -few
TEST np=+2 @emulated
TEST np=+3 @emulated -few
TEST np=+4 @emulated
TEST np=+2 @emulated -mat_aijhybridgpu_comm mpi
TEST np=2 @emulated -few -cards 1
TEST np=+2 @emulated -mat_aijhybridgpu_tuning comm_together=0
TEST np=+2 @emulated -few -mat_aijhybridgpu_tuning whole=0
TEST np=+3 @emulated -few -mat_aijhybridgpu_tuning whole=200
TEST np=2 -mat_aijhybridgpu_backend host -few
*/
#include "solvetest.h"
#include "matfault.h"

static PetscBool Ours; /* may solves be the plugin's? */

/* one solve of both; ours: the plugin's iterations are expected */
static PetscErrorCode One(Pair *p, PetscBool ours, const char *what)
{
  /* one residual is the objective function's of a first guess; PCGAMG of older releases has residuals by matrices of
     before after KSPReset() */
  const Cycle cycle = !p->ksp[1]->guess_zero ? WHATEVER : !ours && strstr(what, "KSPReset()") ? LEFT
                                                                                              : MADE;

  PetscFunctionBeginUser;
  PetscCall(PairSolve(p, cycle, what));
  if (ours && Ours) Solves++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Norms(Pair *p)
{
  const KSPNormType norm[] = {KSP_NORM_UNPRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_PRECONDITIONED};

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    BOTH(KSPSetNormType(p->ksp[side], norm[k]));
    PetscCall(One(p, PETSC_TRUE, KSPNormTypes[norm[k]]));
  }
  /* without norms there is no test: PETSc's iterations */
  BOTH(KSPSetNormType(p->ksp[side], KSP_NORM_NONE));
  BOTH(KSPSetTolerances(p->ksp[side], GOAL, PETSC_DEFAULT, PETSC_DEFAULT, 4));
  PetscCall(One(p, PETSC_FALSE, "no norm"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Guesses(Pair *p)
{
  PetscFunctionBeginUser;
  BOTH(KSPSetInitialGuessNonzero(p->ksp[side], PETSC_TRUE));
  for (PetscInt round = 1; round < 3; round++) {
    BOTH(RightHandSide(p->b[side], round));
    PetscCall(One(p, PETSC_TRUE, "from the last solution"));
  }
  BOTH(VecSet(p->x[side], 1.0));
  PetscCall(One(p, PETSC_TRUE, "from ones"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ends(Pair *p)
{
  PetscFunctionBeginUser;
  BOTH(KSPSetTolerances(p->ksp[side], GOAL, PETSC_DEFAULT, PETSC_DEFAULT, 3));
  PetscCall(One(p, PETSC_TRUE, "three iterations"));
  BOTH(KSPSetTolerances(p->ksp[side], GOAL, 1e30, PETSC_DEFAULT, 40));
  PetscCall(One(p, PETSC_TRUE, "at once"));
  BOTH(KSPSetTolerances(p->ksp[side], GOAL, 1e-50, PETSC_DEFAULT, 40));
  BOTH(VecSet(p->b[side], 0.0));
  PetscCall(One(p, PETSC_TRUE, "nothing to solve"));
  BOTH(RightHandSide(p->b[side], 2));
  PetscCall(One(p, PETSC_TRUE, "after that"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the last process has an entry that is no number */
static PetscErrorCode NoNumber(Pair *p)
{
  PetscFunctionBeginUser;
  SIDES(side) {
    PetscInt n;

    PetscCall(VecGetSize(p->b[side], &n));
    PetscCall(VecSetValue(p->b[side], n - 1, NAN, INSERT_VALUES));
    PetscCall(VecTestAssemble(p->b[side]));
  }
  PetscCall(One(p, PETSC_TRUE, "NaN in b"));
  BOTH(RightHandSide(p->b[side], 1));
  BOTH(VecSet(p->x[side], 0.0));
  PetscCall(One(p, PETSC_TRUE, "after NaN"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix that is not definite, of which the preconditioner does not hear */
static PetscErrorCode Indefinite(Pair *p)
{
  PetscFunctionBeginUser;
  SIDES(side) {
    PetscCall(KSPSetReusePreconditioner(p->ksp[side], PETSC_TRUE));
    PetscCall(MatShift(p->A[side], -3.0));
  }
  PetscCall(One(p, PETSC_TRUE, "an indefinite matrix"));
  BOTH(MatScale(p->A[side], -1.0));
  BOTH(MatShift(p->A[side], -3.0));
  PetscCall(One(p, PETSC_TRUE, "a negative one"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Again(Pair *p)
{
  Vec       first;
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(p->x[1], &first));
  BOTH(RightHandSide(p->b[side], 3));
  for (int k = 0; k < 4; k++) {
    PetscCall(One(p, PETSC_TRUE, "the same again"));
    if (k) PetscCall(VecEqual(first, p->x[1], &same));
    if (k) MatTestCheck(same, "other bits in another solve");
    PetscCall(VecCopy(p->x[1], first));
  }
  for (PetscInt k = 0; k < 2; k++) {
    BOTH(Change(p->A[side], k));
    PetscCall(One(p, PETSC_TRUE, "new values"));
  }
  BOTH(KSPReset(p->ksp[side]));
  BOTH(KSPSetOperators(p->ksp[side], p->A[side], p->A[side]));
  PetscCall(One(p, (PetscBool)!PETSC_VERSION_LT(3, 21, 0), "after KSPReset()"));
  PetscCall(VecDestroy(&first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt it, PetscReal norm, void *ctx)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode Watched(Pair *p)
{
  PetscFunctionBeginUser;
  BOTH(KSPMonitorSet(p->ksp[side], Monitor, NULL, NULL));
  PetscCall(One(p, PETSC_FALSE, "with a monitor"));
  BOTH(KSPMonitorCancel(p->ksp[side]));
  PetscCall(One(p, PETSC_TRUE, "without"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PairSolve() compares the singular values. Run() has asked for them before the first solve. */
static PetscErrorCode SingularValues(Pair *p)
{
  PetscFunctionBeginUser;
  BOTH(KSPSetTolerances(p->ksp[side], GOAL, PETSC_DEFAULT, PETSC_DEFAULT, 3));
  PetscCall(One(p, PETSC_TRUE, "singular values of three iterations"));
  BOTH(KSPSetTolerances(p->ksp[side], GOAL, PETSC_DEFAULT, PETSC_DEFAULT, 40));
  BOTH(KSPMonitorSet(p->ksp[side], Monitor, NULL, NULL));
  PetscCall(One(p, PETSC_FALSE, "by PETSc's iterations"));
  BOTH(KSPMonitorCancel(p->ksp[side]));
  PetscCall(One(p, PETSC_TRUE, "by the plugin's again"));
  /* PETSc's PCGAMG of older releases has lost its levels after KSPReset() */
  if (!PETSC_VERSION_LT(3, 21, 0)) {
    BOTH(KSPSetTolerances(p->ksp[side], GOAL, PETSC_DEFAULT, PETSC_DEFAULT, 50)); /* room for more */
    BOTH(KSPReset(p->ksp[side]));
    BOTH(KSPSetOperators(p->ksp[side], p->A[side], p->A[side]));
    for (int k = 0; k < 2; k++) PetscCall(One(p, PETSC_TRUE, "singular values after KSPReset()"));
  }
  /* PETSc puts its own function there */
  BOTH(RightHandSide(p->b[side], 2));
  BOTH(KSPCGUseSingleReduction(p->ksp[side], PETSC_FALSE));
  PetscCall(SameEigenvalues(p, "still of the plugin's solve"));
  PetscCall(One(p, PETSC_FALSE, "by PETSc's function"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CG and PCGAMG: the first solve's exchanges make peer access ready, then all are the plugin's */
static PetscErrorCode Run(const char *name, PetscErrorCode (*run)(Pair *), PetscBool empty)
{
  const char options[] = BASE " -ksp_type cg -pc_type gamg";
  Pair       p;
  Mat        S;

  PetscFunctionBeginUser;
  MatTestName = name;
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(MatTestStencil(2, 24, PETSC_FALSE, 0.0, MATAIJ, &S));
  if (empty) { /* the last process has no rows */
    IS                is;
    Mat               all  = S;
    const PetscMPIInt rank = MatTestRank();
    PetscInt          N, n;

    PetscCall(MatGetSize(S, &N, NULL));
    n = rank == SolveSize - 1 ? 0 : N / (SolveSize - 1) + (rank < N % (SolveSize - 1) ? 1 : 0);
    PetscCall(ISCreateStride(PETSC_COMM_WORLD, n, rank * (N / (SolveSize - 1)) + PetscMin(rank, N % (SolveSize - 1)), 1, &is));
    PetscCall(MatCreateSubMatrix(all, is, is, MAT_INITIAL_MATRIX, &S));
    PetscCall(MatTestDestroy(&is, &all));
  }
  PetscCall(MatSetOption(S, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PairCreate(S, &p));
  SIDES(side) PetscCall(KSPSetComputeSingularValues(p.ksp[side], (PetscBool)(run == SingularValues)));
  PetscCall(One(&p, PETSC_TRUE, "first"));
  PetscCall(One(&p, PETSC_TRUE, "second"));
  PetscCall((*run)(&p));
  PetscCall(SameView(p.ksp[0], p.ksp[1], name));
  PetscCall(PairDestroy(&p));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int       code = 1;
  PetscBool own, mpi, few = PETSC_FALSE;

  PetscCall(SolveBegin(argc, argv));
  PetscFunctionBeginUser;
  PetscCall(MatTestOwnCards(&own));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "mpi", &mpi));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &few, NULL));
  Ours   = (PetscBool)(own && !mpi);
  Solves = 0;
  PetscCall(Run("the same again", Again, PETSC_FALSE));
  PetscCall(Run("norms", Norms, PETSC_FALSE));
  PetscCall(Run("ends", Ends, PETSC_FALSE));
  PetscCall(Run("singular values", SingularValues, PETSC_FALSE));
  if (!few) {
    PetscCall(Run("first guesses", Guesses, PETSC_FALSE));
    PetscCall(Run("a process without rows", Guesses, PETSC_TRUE));
    PetscCall(Run("no number", NoNumber, PETSC_FALSE));
    PetscCall(Run("indefinite", Indefinite, PETSC_FALSE));
    PetscCall(Run("watched", Watched, PETSC_FALSE));
  }
  PetscCall(SolveEnd(PETSC_TRUE, &code));
  return code;
}
