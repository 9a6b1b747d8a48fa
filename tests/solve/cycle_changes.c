/*
  Multigrid's cycle on the type beside PETSc's own on MATAIJ, when something changes between solves: values, patterns,
  operators of levels, smoothers and their numbers, steps and types, transfers, null spaces, the coarsest level's
  solver, preconditioners that are kept, reset, used in turn, or applied in other ways. After each change the next solve
  is PETSc's, made here or left, and so is the one after.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=2 -mat_aijhybridgpu_backend host -few
TEST np=1 -mat_aijhybridgpu_backend host -mat_aijhybridgpu_smoothers 0 -case eigenvalues
TEST np=1 @emulated -few
TEST np=+1 @emulated
TEST np=+1 @emulated -few -pc_mg_aijhybridgpu_precision single
TEST np=+1 @emulated -few -mat_aijhybridgpu_tuning ordered=1,ordered_fewest=0,sums=0,iterations_ahead=2
TEST np=+2 @emulated -few
TEST np=+2 @emulated -few -mat_aijhybridgpu_tuning whole=0
TEST np=+1 @emulated -mat_aijhybridgpu_memory mirror

  -few: one case of three; -case NAME: this one alone
*/
#include "solvetest.h"

static PetscErrorCode NewValues(Pair *p)
{
  PetscBool distinct;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-pc_mg_distinct_smoothup", &distinct));
  for (PetscInt k = 0; k < 3; k++) {
    BOTH(Change(p->A[side], k));
    /* several processes have a new coarser matrix each time, of which PETSc tells the smoothers before alone */
    PetscCall(Twice(p, SolveSize > 1 && distinct ? WHATEVER : MADE, "new values"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* matrices of n x n points instead, or with corners */
static PetscErrorCode Replace(Pair *p, PetscInt dim, PetscInt n, PetscBool full)
{
  Mat S;

  PetscFunctionBeginUser;
  PetscCall(MatTestStencil(dim, n, full, 0.0, MATAIJ, &S));
  PetscCall(MatSetOption(S, MAT_SYMMETRIC, PETSC_TRUE));
  SIDES(side) {
    PetscInt old, now;

    PetscCall(MatGetSize(p->A[side], &old, NULL));
    PetscCall(MatDestroy(&p->A[side]));
    PetscCall(OfType(S, side ? "aijhybridgpu" : MATAIJ, &p->A[side]));
    PetscCall(MatGetSize(p->A[side], &now, NULL));
    if (PETSC_VERSION_LT(3, 21, 0)) { /* whose PCGAMG cannot have another pattern */
      PetscCall(PCSetType(p->ksp[side]->pc, PCNONE));
      PetscCall(PCSetType(p->ksp[side]->pc, PCGAMG));
      PetscCall(KSPSetFromOptions(p->ksp[side]));
    }
    if (old != now) {
      PetscCall(KSPReset(p->ksp[side]));
      PetscCall(MatTestDestroy(&p->x[side], &p->b[side]));
      PetscCall(MatCreateVecs(p->A[side], &p->x[side], &p->b[side]));
    }
    PetscCall(KSPSetOperators(p->ksp[side], p->A[side], p->A[side]));
  }
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewPattern(Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(Replace(p, 2, 24, PETSC_TRUE));
  PetscCall(Twice(p, MADE, "new pattern"));
  PetscCall(Replace(p, 2, 30, PETSC_FALSE));
  PetscCall(Twice(p, MADE, "more rows"));
  PetscCall(Replace(p, 2, 10, PETSC_FALSE));
  PetscCall(Twice(p, MADE, "fewer rows and levels"));
  PetscCall(Replace(p, 3, 9, PETSC_TRUE));
  p->tol = 1e-9;
  PetscCall(Twice(p, MADE, "more rows and levels"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reset(Pair *p)
{
  PC pc[2];

  PetscFunctionBeginUser;
  PairPC(p, pc);
  SIDES(side) {
    PetscCall(PCReset(pc[side]));
    PetscCall(KSPSetOperators(p->ksp[side], p->A[side], p->A[side]));
  }
  /* PCGAMG of older releases then has residuals by matrices of before */
  PetscCall(Twice(p, PETSC_VERSION_LT(3, 21, 0) ? LEFT : MADE, "PCReset()"));
  SIDES(side) {
    PetscCall(KSPReset(p->ksp[side]));
    PetscCall(KSPSetOperators(p->ksp[side], p->A[side], p->A[side]));
  }
  PetscCall(Twice(p, PETSC_VERSION_LT(3, 21, 0) ? LEFT : MADE, "KSPReset()"));
  SIDES(side) {
    PetscCall(PCSetType(pc[side], PCJACOBI));
    PetscCall(PCSetType(pc[side], PCGAMG));
    PetscCall(PCSetFromOptions(pc[side]));
  }
  PetscCall(Twice(p, MADE, "PCSetType()"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Eigenvalues(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l > 0; l--) {
    Smoothers(p, l, PETSC_FALSE, k);
    BOTH(KSPChebyshevSetEigenvalues(k[side], 2.4, 0.3));
    PetscCall(Twice(p, MADE, "KSPChebyshevSetEigenvalues()"));
  }
  BOTH(Change(p->A[side], 1));
  PetscCall(Twice(p, MADE, "given eigenvalues, new values"));
  BOTH(KSPSetType(k[side], KSPRICHARDSON));
  BOTH(KSPSetType(k[side], KSPCHEBYSHEV));
  BOTH(KSPChebyshevEstEigSet(k[side], 0, 0.2, 0, 1.05));
  BOTH(Change(p->A[side], 2));
  PetscCall(Twice(p, MADE, "eigenvalues estimated again"));
  BOTH(KSPChebyshevEstEigSet(k[side], 0, 0.05, 0, 1.3));
  PetscCall(Twice(p, MADE, "KSPChebyshevEstEigSet()"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LevelOperator(Pair *p)
{
  PetscFunctionBeginUser;
  for (PetscInt l = 1; l >= 0; l--) {
    KSP k[2];

    Smoothers(p, l, PETSC_FALSE, k);
    SIDES(side) {
      Mat A;

      PetscCall(KSPGetOperators(k[side], &A, NULL));
      PetscCall(MatScale(A, 1.25));
    }
    PetscCall(Twice(p, MADE, l ? "MatScale() of a level" : "MatScale() of the coarsest level"));
  }
  SIDES(side) {
    Mat P;

    PetscCall(PCMGGetInterpolation(p->ksp[side]->pc, 1, &P));
    PetscCall(MatScale(P, 0.9));
  }
  PetscCall(Twice(p, MADE, "MatScale() of an interpolation"));
  BOTH(MatScale(p->A[side], 2.0));
  PetscCall(Twice(p, MADE, "MatScale() of the matrix"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Kept(Pair *p)
{
  PetscFunctionBeginUser;
  BOTH(KSPSetReusePreconditioner(p->ksp[side], PETSC_TRUE));
  for (PetscInt k = 0; k < 2; k++) {
    BOTH(Change(p->A[side], k));
    PetscCall(Twice(p, MADE, "new values, the preconditioner kept"));
  }
  BOTH(KSPSetReusePreconditioner(p->ksp[side], PETSC_FALSE));
  PetscCall(Twice(p, MADE, "no longer kept"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InTurn(Pair *p)
{
  Pair q = *p;

  PetscFunctionBeginUser;
  SIDES(side) {
    PetscCall(PairSolver(&q, side));
    PetscCall(KSPSetFromOptions(q.ksp[side]));
    PetscCall(VecDuplicate(p->x[side], &q.x[side]));
    PetscCall(VecDuplicate(p->b[side], &q.b[side]));
  }
  for (PetscInt k = 0; k < 3; k++) {
    BOTH(RightHandSide(p->b[side], k));
    BOTH(RightHandSide(q.b[side], k + 3));
    PetscCall(PairSolve(p, MADE, "in turn"));
    PetscCall(PairSolve(&q, MADE, "in turn, the other"));
    if (k) BOTH(Change(p->A[side], k));
  }
  BOTH(MatTestDestroy(&q.ksp[side], &q.x[side], &q.b[side]));
  PetscCall(Twice(p, MADE, "one is left"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Odd(Pair *p)
{
  const PetscReal odd[] = {NAN, INFINITY, -INFINITY, 0.0, 1e-300, 1e300};

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(odd); k++) {
    char what[32];

    snprintf(what, sizeof(what), "%g in b", (double)odd[k]);
    SIDES(side) {
      PetscCall(RightHandSide(p->b[side], 1));
      if (PetscIsNormalReal(odd[k]) || odd[k] == 0) PetscCall(VecSet(p->b[side], odd[k]));
      PetscCall(VecSetValue(p->b[side], 17, odd[k], INSERT_VALUES));
      PetscCall(VecTestAssemble(p->b[side]));
    }
    PetscCall(PairSolve(p, k < 4 ? WHATEVER : MADE, what));
    PetscCall(Twice(p, MADE, "after that"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* matrices that are none for CG */
static PetscErrorCode Indefinite(Pair *p)
{
  /* of complex numbers roundings decide when a solve ends that is shifted by -0.2 to -0.4, or by -1: p A p is nearly 0
     in some iteration */
  const PetscReal by[] = {PetscDefined(USE_COMPLEX) ? -0.5 : -0.3, PetscDefined(USE_COMPLEX) ? -0.1 : -1.0, -9.0, 0.0};

  PetscFunctionBeginUser;
  if (SolveSize > 1) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc's KSPCG on both sides */
  p->tol = PetscDefined(USE_COMPLEX) ? 1e-4 : 1e-6;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(by); k++) {
    char what[48];

    snprintf(what, sizeof(what), "shifted by %g", (double)by[k]);
    BOTH(KSPSetReusePreconditioner(p->ksp[side], PETSC_TRUE));
    BOTH(MatShift(p->A[side], by[k]));
    PetscCall(Twice(p, MADE, what));
    BOTH(KSPSetReusePreconditioner(p->ksp[side], PETSC_FALSE));
    PetscCall(Twice(p, WHATEVER, what));
    BOTH(MatShift(p->A[side], -by[k]));
    PetscCall(Twice(p, WHATEVER, "not shifted"));
    BOTH(MatScale(p->A[side], -1.0));
    PetscCall(Twice(p, WHATEVER, "negative"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OddMatrix(Pair *p)
{
  const PetscReal odd[] = {NAN, INFINITY, 0.0, 1e-300};

  PetscFunctionBeginUser;
  if (SolveSize > 1) PetscFunctionReturn(PETSC_SUCCESS);
  p->tol = 1e-7;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(odd); k++) {
    PetscScalar diagonal;
    char        what[48];

    snprintf(what, sizeof(what), "%g on the diagonal", (double)odd[k]);
    PetscCall(KSPSetReusePreconditioner(p->ksp[0], PETSC_TRUE));
    PetscCall(KSPSetReusePreconditioner(p->ksp[1], PETSC_TRUE));
    SIDES(side) {
      PetscCall(MatGetValue(p->A[side], 17, 17, &diagonal));
      PetscCall(MatSetValue(p->A[side], 17, 17, odd[k], INSERT_VALUES));
      PetscCall(MatTestAssemble(p->A[side]));
    }
    PetscCall(Twice(p, WHATEVER, what));
    SIDES(side) {
      PetscCall(MatSetValue(p->A[side], 17, 17, diagonal, INSERT_VALUES));
      PetscCall(MatTestAssemble(p->A[side]));
    }
    PetscCall(Twice(p, WHATEVER, "as it was"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Steps(Pair *p)
{
  const PetscInt steps[] = {3, 1, 0, 4, 2};

  PetscFunctionBeginUser;
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l > 0; l--) {
    for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(steps); s++) {
      char what[64];
      KSP  k[2];

      if (Single && !steps[s]) continue; /* there rounding decides what CG makes of it */
      Smoothers(p, l, PETSC_FALSE, k);
      snprintf(what, sizeof(what), "%d steps on level %d", (int)steps[s], (int)l);
      BOTH(KSPSetTolerances(k[side], PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, steps[s]));
      PetscCall(Twice(p, MADE, what));
    }
  }
  BOTH(PCMGSetCycleType(p->ksp[side]->pc, PC_MG_CYCLE_W));
  PetscCall(Twice(p, MADE, "PCMGSetCycleType(): W"));
  BOTH(PCMGSetCycleType(p->ksp[side]->pc, PC_MG_CYCLE_V));
  PetscCall(Twice(p, MADE, "PCMGSetCycleType(): V"));
  BOTH(PCMGMultiplicativeSetCycles(p->ksp[side]->pc, 2));
  p->tol = 1e-9;
  PetscCall(Twice(p, LEFT, "PCMGMultiplicativeSetCycles(): 2"));
  BOTH(PCMGMultiplicativeSetCycles(p->ksp[side]->pc, 1));
  PetscCall(Twice(p, MADE, "PCMGMultiplicativeSetCycles(): 1"));
  BOTH(PCMGSetType(p->ksp[side]->pc, PC_MG_FULL));
  BOTH(Change(p->A[side], 1));
  PetscCall(Twice(p, LEFT, "PCMGSetType(): full"));
  BOTH(PCMGSetType(p->ksp[side]->pc, PC_MG_MULTIPLICATIVE));
  PetscCall(Twice(p, MADE, "PCMGSetType(): multiplicative"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Types(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l > 0; l--) {
    Smoothers(p, l, PETSC_FALSE, k);
    BOTH(KSPSetType(k[side], KSPRICHARDSON));
    BOTH(KSPRichardsonSetScale(k[side], 0.7));
    PetscCall(Twice(p, MADE, "KSPSetType(): richardson"));
    BOTH(KSPRichardsonSetScale(k[side], 0.5));
    PetscCall(Twice(p, MADE, "KSPRichardsonSetScale()"));
    BOTH(KSPRichardsonSetSelfScale(k[side], PETSC_TRUE));
    if (PETSC_VERSION_LT(3, 26, 0)) BOTH(KSPSetType(k[side], KSPCHEBYSHEV));
    if (PETSC_VERSION_LT(3, 26, 0)) BOTH(KSPSetType(k[side], KSPRICHARDSON));
    if (PETSC_VERSION_LT(3, 26, 0)) BOTH(KSPRichardsonSetSelfScale(k[side], PETSC_TRUE));
    p->tol = 1e-7;
    PetscCall(Twice(p, LEFT, "KSPRichardsonSetSelfScale()"));
    BOTH(KSPSetType(k[side], KSPCHEBYSHEV));
    BOTH(KSPChebyshevSetEigenvalues(k[side], 2.3, 0.3));
    BOTH(KSPSetUp(k[side]));
    PetscCall(Twice(p, MADE, "KSPSetType(): chebyshev"));
    BOTH(KSPSetType(k[side], KSPGMRES));
    BOTH(KSPSetType(p->ksp[side], KSPFGMRES));
    PetscCall(Twice(p, LEFT, "KSPSetType(): gmres"));
    BOTH(KSPSetType(k[side], KSPCHEBYSHEV));
    BOTH(KSPChebyshevSetEigenvalues(k[side], 2.2, 0.2));
    PetscCall(Twice(p, MADE, "KSPSetType(): chebyshev again"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* away and back with other numbers, and set up by the program: nothing but the numbers tells */
static PetscErrorCode AwayAndBack(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  Smoothers(p, 1, PETSC_FALSE, k);
  for (int round = 0; round < 3; round++) {
    SIDES(side) {
      PetscCall(KSPSetType(k[side], KSPRICHARDSON));
      PetscCall(KSPSetType(k[side], KSPCHEBYSHEV));
      PetscCall(KSPChebyshevSetEigenvalues(k[side], 2.0 + 0.2 * round, 0.2));
      PetscCall(KSPSetUp(k[side]));
    }
    PetscCall(Twice(p, MADE, "chebyshev away and back"));
    SIDES(side) {
      PetscCall(KSPSetType(k[side], KSPRICHARDSON));
      PetscCall(KSPRichardsonSetScale(k[side], 0.7 - 0.1 * round));
      PetscCall(KSPSetUp(k[side]));
    }
    PetscCall(Twice(p, MADE, "richardson"));
    SIDES(side) {
      PetscCall(KSPSetType(k[side], KSPCHEBYSHEV));
      PetscCall(KSPSetType(k[side], KSPRICHARDSON));
      PetscCall(KSPSetUp(k[side]));
    }
    PetscCall(Twice(p, MADE, "richardson away and back"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same number of events on the way to other numbers, and no application between */
static PetscErrorCode AwayAndBackAtOnce(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  Smoothers(p, 1, PETSC_FALSE, k);
  for (int round = 0; round < 3; round++) {
    SIDES(side) {
      PetscCall(KSPSetType(k[side], KSPRICHARDSON));
      PetscCall(KSPSetType(k[side], KSPCHEBYSHEV));
      PetscCall(KSPChebyshevSetEigenvalues(k[side], 2.0 + 0.4 * round, 0.2 + 0.1 * round));
      PetscCall(KSPSetUp(k[side]));
    }
    PetscCall(Twice(p, MADE, "chebyshev away and back at once"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the solver inside the coarsest level's preconditioner */
static PetscErrorCode Inner(Pair *p)
{
  static const char *const types[] = {PCJACOBI, PCNONE, PCLU, PCSVD, PCSOR};
  KSP                      k[2], *sub;
  PetscInt                 n;

  PetscFunctionBeginUser;
  if (SolveSize > 1) PetscFunctionReturn(PETSC_SUCCESS);
  Smoothers(p, 0, PETSC_FALSE, k);
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    SIDES(side) {
      PetscCall(PCBJacobiGetSubKSP(k[side]->pc, &n, NULL, &sub));
      PetscCall(PCSetType(sub[0]->pc, types[t]));
    }
    PetscCall(Twice(p, MADE, types[t]));
  }
  SIDES(side) {
    PetscCall(PCBJacobiGetSubKSP(k[side]->pc, &n, NULL, &sub));
    PetscCall(KSPSetType(sub[0], KSPRICHARDSON));
    PetscCall(KSPSetTolerances(sub[0], PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 1));
    PetscCall(KSPRichardsonSetScale(sub[0], 0.8));
  }
  PetscCall(Twice(p, MADE, "richardson"));
  SIDES(side) {
    PetscCall(PCBJacobiGetSubKSP(k[side]->pc, &n, NULL, &sub));
    PetscCall(KSPSetType(sub[0], KSPPREONLY));
    PetscCall(PCSetType(sub[0]->pc, PCLU));
  }
  PetscCall(Twice(p, MADE, "LU again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a factorization that the program makes anew, of the same matrix */
static PetscErrorCode Refactored(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  if (SolveSize > 1) PetscFunctionReturn(PETSC_SUCCESS);
  Smoothers(p, 0, PETSC_FALSE, k);
  BOTH(PCSetType(k[side]->pc, PCICC));
  PetscCall(Twice(p, MADE, "ICC"));
  SIDES(side) {
    Mat A;

    PetscCall(KSPGetOperators(k[side], &A, NULL));
    PetscCall(PetscObjectReference((PetscObject)A));
    PetscCall(PCReset(k[side]->pc));
    PetscCall(PCSetOperators(k[side]->pc, A, A));
    PetscCall(PCFactorSetShiftType(k[side]->pc, MAT_SHIFT_INBLOCKS));
    PetscCall(PCFactorSetShiftAmount(k[side]->pc, 0.5));
    PetscCall(PCFactorSetZeroPivot(k[side]->pc, 2.0));
    PetscCall(PCSetUp(k[side]->pc));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(Twice(p, MADE, "ICC, other pivots"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UseNoisy(Pair *p, PetscBool use)
{
  KSP k[2];

  PetscFunctionBeginUser;
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l > 0; l--) {
    Smoothers(p, l, PETSC_FALSE, k);
    BOTH(KSPChebyshevEstEigSetUseNoisy(k[side], use));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* eigenvalues are estimated from the right-hand sides of the last solve's cycles, which were made here */
static PetscErrorCode NotNoisy(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l > 0; l--) {
    Smoothers(p, l, PETSC_FALSE, k);
    BOTH(KSPSetType(k[side], KSPRICHARDSON));
    SIDES(side)
      PetscCall(KSPSetType(k[side], KSPCHEBYSHEV)); /* PCGAMG's eigenvalues are gone */
    BOTH(KSPChebyshevEstEigSet(k[side], 0, 0.1, 0, 1.1));
  }
  PetscCall(Twice(p, MADE, "estimates"));
  PetscCall(UseNoisy(p, PETSC_FALSE));
  BOTH(Change(p->A[side], 1));
  p->tol = 1e-7;
  PetscCall(Twice(p, LEFT, "KSPChebyshevEstEigSetUseNoisy(): no"));
  BOTH(Change(p->A[side], 3));
  PetscCall(Twice(p, LEFT, "new values"));
  PetscCall(UseNoisy(p, PETSC_TRUE));
  BOTH(Change(p->A[side], 4));
  PetscCall(Twice(p, MADE, "KSPChebyshevEstEigSetUseNoisy(): yes"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* vectors of the program's on the levels */
static PetscErrorCode LevelVectors(Pair *p)
{
  PetscFunctionBeginUser;
  for (int round = 0; round < 2; round++) {
    SIDES(side) {
      KSP k;

      for (PetscInt l = 0; l < NumberOfLevels(p->ksp[side]->pc); l++) {
        Mat A;
        Vec v[2];

        PetscCall(PCMGGetSmoother(p->ksp[side]->pc, l, &k));
        PetscCall(KSPGetOperators(k, &A, NULL));
        PetscCall(MatCreateVecs(A, &v[0], &v[1]));
        if (l < NumberOfLevels(p->ksp[side]->pc) - 1) {
          PetscCall(PCMGSetRhs(p->ksp[side]->pc, l, v[0]));
          PetscCall(PCMGSetX(p->ksp[side]->pc, l, v[1]));
        } else
          PetscCall(PCMGSetR(p->ksp[side]->pc, l, v[0]));
        PetscCall(MatTestDestroy(&v[0], &v[1]));
      }
    }
    PetscCall(Twice(p, MADE, "PCMGSetRhs(), PCMGSetX()"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one smoother's preconditioner is kept for older values of its level, and no longer */
static PetscErrorCode KeptLevel(Pair *p)
{
  KSP k[2];
  Mat A;

  PetscFunctionBeginUser;
  Smoothers(p, 1, PETSC_FALSE, k);
  BOTH(KSPSetReusePreconditioner(k[side], PETSC_TRUE));
  SIDES(side) {
    PetscCall(KSPGetOperators(k[side], &A, NULL));
    PetscCall(MatScale(A, 1.25));
  }
  PetscCall(Twice(p, MADE, "a smoother's preconditioner is kept"));
  BOTH(KSPSetReusePreconditioner(k[side], PETSC_FALSE));
  PetscCall(Twice(p, MADE, "it is no longer kept"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RemoveNothing(MatNullSpace null, Vec v, void *ctx)
{
  return PETSC_SUCCESS;
}

/* a matrix that turns out to be symmetric has its transpose's null space; and one with a function of the program's */
static PetscErrorCode Symmetric(Pair *p)
{
  MatNullSpace null;

  PetscFunctionBeginUser;
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  SIDES(side) {
    PetscCall(MatSetOption(p->A[side], MAT_SYMMETRIC, PETSC_FALSE));
    PetscCall(MatSetTransposeNullSpace(p->A[side], null));
  }
  p->tol = 1e-8;
  PetscCall(Twice(p, SolveSize > 1 ? LEFT : MADE, "the transpose's null space"));
  PetscCall(MatNullSpaceSetFunction(null, RemoveNothing, NULL));
  PetscCall(Twice(p, LEFT, "MatNullSpaceSetFunction()"));
  PetscCall(MatNullSpaceSetFunction(null, NULL, NULL));
  PetscCall(MatNullSpaceDestroy(&null));
  PetscCall(Twice(p, SolveSize > 1 ? LEFT : MADE, "no function"));
  for (int round = 0; round < 2; round++) {
    BOTH(MatSetOption(p->A[side], MAT_SYMMETRIC, (PetscBool)!round));
    PetscCall(Twice(p, round && SolveSize == 1 ? MADE : LEFT, "MAT_SYMMETRIC"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Case Cases[] = {
  {"values",          "",                                                                   NewValues        },
  {"w",               "-pc_mg_cycle_type w",                                                NewValues        },
  {"distinct",        "-pc_mg_distinct_smoothup",                                           NewValues        },
  {"richardson",      "-mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6", NewValues        },
  {"pattern",         "",                                                                   NewPattern       },
  {"reset",           "",                                                                   Reset            },
  {"eigenvalues",     "",                                                                   Eigenvalues      },
  {"operators",       "",                                                                   LevelOperator    },
 /* a preconditioner for other values: after 20 iterations rounding is all */
  {"kept",            "-ksp_rtol 1e-5",                                                     Kept             },
  {"kept richardson", "-mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6", Kept             },
  {"turn",            "",                                                                   InTurn           },
  {"odd",             "",                                                                   Odd              },
  {"steps",           "",                                                                   Steps            },
  {"types",           "-mg_levels_ksp_chebyshev_eigenvalues 0.2,2.2",                       Types            },
  {"away",            "",                                                                   AwayAndBack      },
  {"indefinite",      "",                                                                   Indefinite       },
  {"negative curve",  "-ksp_norm_type natural -ksp_converged_neg_curve",                    Indefinite       },
  {"odd matrix",      "",                                                                   OddMatrix        },
  {"odd, residuals",  "-ksp_norm_type unpreconditioned",                                    OddMatrix        },
  {"away at once",    "",                                                                   AwayAndBackAtOnce},
  {"inner",           "",                                                                   Inner            },
  {"refactored",      "-pc_gamg_coarse_eq_limit 40",                                        Refactored       },
  {"not noisy",       "",                                                                   NotNoisy         },
  {"level vectors",   "",                                                                   LevelVectors     },
  {"kept level",      "",                                                                   KeptLevel        },
  {"symmetric",       "",                                                                   Symmetric        },
};

int main(int argc, char **argv)
{
  return SolveCases(argc, argv, PETSC_STATIC_ARRAY_LENGTH(Cases), Cases);
}
