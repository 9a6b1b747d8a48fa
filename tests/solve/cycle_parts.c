/*
  Multigrid's cycle on the type beside PETSc's own on MATAIJ, where programs lay hands on its parts: null spaces, tests,
  residuals, restrictions and interpolations of their own, smoothers with another diagonal, products that are not the
  type's, the coarsest level's solver, which may fail. And preconditioners applied in other ways: transposed, by
  Richardson's method, to several vectors at once, in hierarchies that a program or a grid has made; twenty runs that
  give the same bits.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=2 -mat_aijhybridgpu_backend host -few
TEST np=1 @emulated -few
TEST np=+1 @emulated
TEST np=+2 @emulated -few

  -few: one case of three; -case NAME: this one alone
*/
#include "solvetest.h"

static PetscErrorCode NullSpaces(Pair *p)
{
  MatNullSpace null;

  PetscFunctionBeginUser;
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l >= 0; l--) {
    Mat A[2];
    KSP k[2];

    Smoothers(p, l, PETSC_FALSE, k);
    BOTH(KSPGetOperators(k[side], &A[side], NULL));
    BOTH(MatSetNullSpace(A[side], null));
    p->tol = l == NumberOfLevels(p->ksp[0]->pc) - 1 ? 1e-8 : 1e-9;
    PetscCall(Twice(p, l ? LEFT : MADE, "a null space"));
    BOTH(MatSetNullSpace(A[side], NULL));
    PetscCall(Twice(p, MADE, "the null space taken away"));
    BOTH(MatSetTransposeNullSpace(A[side], null));
    PetscCall(Twice(p, l ? LEFT : MADE, "a null space of the transpose"));
    BOTH(MatSetTransposeNullSpace(A[side], NULL));
    PetscCall(Twice(p, MADE, "and that taken away"));
  }
  PetscCall(MatNullSpaceDestroy(&null));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* goes on for one iteration, and is content */
static PetscErrorCode Content(KSP ksp, PetscInt n, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  *reason = n < 1 ? KSP_CONVERGED_ITERATING : KSP_CONVERGED_ATOL;
  return PETSC_SUCCESS;
}

static PetscErrorCode OwnTest(Pair *p)
{
  KSP k[2];

  PetscFunctionBeginUser;
  Smoothers(p, 1, PETSC_FALSE, k);
  BOTH(KSPSetConvergenceTest(k[side], Content, NULL, NULL));
  PetscCall(Twice(p, LEFT, "a test of the program's"));
  BOTH(KSPSetConvergenceTest(k[side], KSPConvergedSkip, NULL, NULL));
  PetscCall(Twice(p, MADE, "none again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TwiceResidual(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBeginUser;
  PetscCall(MatResidual(A, b, x, r));
  PetscCall(VecScale(r, 1.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OwnResidual(Pair *p)
{
  Mat A[2], B[2];
  KSP k[2];

  PetscFunctionBeginUser;
  Smoothers(p, 1, PETSC_FALSE, k);
  BOTH(KSPGetOperators(k[side], &A[side], NULL));
  BOTH(PCMGSetResidual(p->ksp[side]->pc, 1, TwiceResidual, A[side]));
  PetscCall(Twice(p, LEFT, "a residual of the program's"));
  BOTH(PCMGSetResidual(p->ksp[side]->pc, 1, PCMGResidualDefault, A[side]));
  PetscCall(Twice(p, MADE, "the default residual"));
  SIDES(side) {
    PetscCall(MatDuplicate(A[side], MAT_COPY_VALUES, &B[side]));
    PetscCall(MatScale(B[side], 1.01));
    PetscCall(PCMGSetResidual(p->ksp[side]->pc, 1, PCMGResidualDefault, B[side]));
  }
  PetscCall(Twice(p, LEFT, "another matrix for residuals"));
  BOTH(PCMGSetResidual(p->ksp[side]->pc, 1, PCMGResidualDefault, A[side]));
  BOTH(MatDestroy(&B[side]));
  PetscCall(Twice(p, MADE, "the level's matrix again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* R's first row gets an entry in every column: products with it are planned otherwise */
static PetscErrorCode FillFirstRow(Mat R)
{
  Mat      L;
  PetscInt m, n, M, N, first;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(R, &M, &N));
  PetscCall(MatGetLocalSize(R, &m, &n));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)R), &L));
  PetscCall(MatSetSizes(L, m, n, M, N));
  PetscCall(MatSetType(L, ((PetscObject)R)->type_name));
  PetscCall(MatSetUp(L));
  PetscCall(MatSetOption(L, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(L, &first, NULL));
  for (PetscInt c = 0; !first && c < N; c++) PetscCall(MatSetValue(L, 0, c, 1e-4, INSERT_VALUES));
  PetscCall(MatTestAssemble(L));
  PetscCall(MatAXPY(R, 1.0, L, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatDestroy(&L));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Restrictions(Pair *p)
{
  PetscFunctionBeginUser;
  for (PetscInt l = NumberOfLevels(p->ksp[0]->pc) - 1; l > 0; l--) {
    Mat P[2], R[2];

    SIDES(side) {
      PetscCall(PCMGGetInterpolation(p->ksp[side]->pc, l, &P[side]));
      PetscCall(MatTranspose(P[side], MAT_INITIAL_MATRIX, &R[side]));
      PetscCall(MatScale(R[side], 0.75));
      PetscCall(PCMGSetRestriction(p->ksp[side]->pc, l, R[side]));
      PetscCall(MatDestroy(&R[side]));
    }
    PetscCall(Twice(p, MADE, "a restriction of the program's"));
    SIDES(side) {
      PetscCall(MatTranspose(P[side], MAT_INITIAL_MATRIX, &R[side]));
      PetscCall(FillFirstRow(R[side]));
      PetscCall(PCMGSetRestriction(p->ksp[side]->pc, l, R[side]));
      PetscCall(MatDestroy(&R[side]));
    }
    PetscCall(Twice(p, MADE, "a restriction with a long row"));
    BOTH(PCMGSetRestriction(p->ksp[side]->pc, l, P[side]));
    PetscCall(Twice(p, MADE, "the interpolation's transpose again"));
    SIDES(side) {
      PetscCall(MatDuplicate(P[side], MAT_COPY_VALUES, &R[side]));
      PetscCall(MatScale(R[side], 1.1));
      PetscCall(PCMGSetRestriction(p->ksp[side]->pc, l, R[side]));
      PetscCall(MatDestroy(&R[side]));
    }
    PetscCall(Twice(p, WHATEVER, "another matrix's transpose"));
    BOTH(PCMGSetRestriction(p->ksp[side]->pc, l, P[side]));
    BOTH(MatConvert(P[side], MATAIJ, MAT_INITIAL_MATRIX, &R[side]));
    BOTH(PetscObjectReference((PetscObject)P[side]));
    BOTH(PCMGSetInterpolation(p->ksp[side]->pc, l, R[side]));
    BOTH(MatDestroy(&R[side]));
    PetscCall(Twice(p, LEFT, "an interpolation of another type"));
    BOTH(PCMGSetInterpolation(p->ksp[side]->pc, l, P[side]));
    BOTH(MatDestroy(&P[side]));
    PetscCall(Twice(p, MADE, "the old one again"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the second smoother is made of another matrix */
static PetscErrorCode OtherDiagonal(Pair *p)
{
  Mat A[2], B[2];
  KSP k[2];

  PetscFunctionBeginUser;
  Smoothers(p, 2, PETSC_TRUE, k);
  SIDES(side) {
    PetscCall(KSPGetOperators(k[side], &A[side], NULL));
    PetscCall(MatDuplicate(A[side], MAT_COPY_VALUES, &B[side]));
    PetscCall(MatScale(B[side], 1.3));
    PetscCall(KSPSetOperators(k[side], A[side], B[side]));
    PetscCall(MatDestroy(&B[side]));
  }
  PetscCall(Twice(p, LEFT, "another diagonal after than before"));
  BOTH(KSPSetOperators(k[side], A[side], A[side]));
  PetscCall(Twice(p, MADE, "the same one again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode JacobiTypes(Pair *p)
{
#if !PETSC_VERSION_LT(3, 20, 0)
  KSP k[2];

  PetscFunctionBeginUser;
  Smoothers(p, 1, PETSC_FALSE, k);
  SIDES(side) {
    PetscCall(PCJacobiSetType(k[side]->pc, PC_JACOBI_ROWL1));
    PetscCall(PCReset(k[side]->pc));
    PetscCall(PCSetOperators(k[side]->pc, p->ksp[side]->pc ? ((PC_MG *)p->ksp[side]->pc->data)->levels[1]->A : NULL, ((PC_MG *)p->ksp[side]->pc->data)->levels[1]->A));
    PetscCall(PCSetUp(k[side]->pc));
  }
  PetscCall(Twice(p, MADE, "Jacobi of rows' sums, set up by the program"));
#else
  PetscFunctionBeginUser;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode (*PlainMult)(Mat, Vec, Vec, Vec);
static PetscErrorCode OwnMult(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBeginUser;
  PetscCall((*PlainMult)(A, x, y, z));
  PetscCall(VecScale(z, 1.01));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the product of an interpolation is the program's */
static PetscErrorCode OwnProduct(Pair *p)
{
  PetscErrorCode (*plain[2])(Mat, Vec, Vec, Vec);
  Mat      A[2];
  PetscInt before;

  PetscFunctionBeginUser;
  BOTH(PCMGGetInterpolation(p->ksp[side]->pc, 1, &A[side]));
  Applied = 0;
  PetscCall(Count(p->ksp[0]));
  SIDES(side) {
    PlainMult = plain[side] = A[side]->ops->multadd;
    PetscCall(MatSetOperation(A[side], MATOP_MULT_ADD, (void (*)(void))OwnMult));
    PetscCall(Residuals(&before));
    PetscCall(KSPSolve(p->ksp[side], p->b[side], p->x[side]));
    PetscCall(MatSetOperation(A[side], MATOP_MULT_ADD, (void (*)(void))plain[side]));
  }
  PetscCall(Went(p, LEFT, before, "a product of the program's"));
  PetscCall(SameHistory(p, "a product of the program's"));
  PetscCall(Twice(p, MADE, "the type's again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coarsest(Pair *p)
{
  static const char *const types[] = {PCSVD, PCJACOBI, PCNONE, PCSOR, PCCHOLESKY, PCLU};
  KSP                      k[2];
  PC                       pc;

  PetscFunctionBeginUser;
  Smoothers(p, 0, PETSC_FALSE, k);
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    if (NoFactors(types[t])) continue;
    SIDES(side) {
      PetscCall(KSPGetPC(k[side], &pc));
      PetscCall(PCSetType(pc, types[t]));
    }
    PetscCall(Twice(p, MADE, types[t]));
  }
  BOTH(KSPSetType(k[side], KSPGMRES));
  BOTH(KSPSetNormType(k[side], KSP_NORM_PRECONDITIONED));
  BOTH(KSPSetTolerances(k[side], 1e-5, 1e-200, PETSC_DEFAULT, 100));
  PetscCall(Twice(p, LEFT, "GMRES on the coarsest level"));
  BOTH(KSPSetNormType(k[side], KSP_NORM_NONE));
  BOTH(KSPSetType(k[side], KSPPREONLY));
  PetscCall(Twice(p, MADE, "none again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the coarsest level's solver fails while it is applied, from the second solve on; PETSc's and ours say the same */
static PetscErrorCode CoarsestFails(Pair *p)
{
  KSP      k[2], *sub;
  PetscInt n;

  PetscFunctionBeginUser;
  if (SolveSize > 1) PetscFunctionReturn(PETSC_SUCCESS);
  Smoothers(p, 0, PETSC_FALSE, k);
  SIDES(side) {
    Mat A;

    PetscCall(PCBJacobiGetSubKSP(k[side]->pc, &n, NULL, &sub));
    PetscCall(KSPGetOperators(k[side], &A, NULL));
    /* CG finds that it is indefinite */
    PetscCall(MatShift(A, -100.0));
    PetscCall(MatSetValue(A, 0, 0, 300.0, ADD_VALUES));
    PetscCall(MatTestAssemble(A));
    PetscCall(KSPSetType(sub[0], KSPCG));
    PetscCall(PCSetType(sub[0]->pc, PCNONE));
    PetscCall(KSPSetTolerances(sub[0], 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, 100));
  }
  PetscCall(PairSolve(p, WHATEVER, "the coarsest level's solver fails"));
  Check3((PetscBool)(p->ksp[0]->reason == KSP_DIVERGED_PC_FAILED), "it fails at all", "", "", __LINE__);
  PetscCall(PairSolve(p, WHATEVER, "and again"));
  SIDES(side) {
    Mat A;

    PetscCall(KSPGetOperators(k[side], &A, NULL));
    PetscCall(MatSetValue(A, 0, 0, -300.0, ADD_VALUES));
    PetscCall(MatTestAssemble(A));
    PetscCall(MatShift(A, 100.0));
    PetscCall(KSPSetType(k[side], KSPPREONLY));
    PetscCall(PCSetType(k[side]->pc, PCLU));
  }
  PetscCall(Twice(p, WHATEVER, "it serves again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposed(Pair *p)
{
  PetscFunctionBeginUser;
  BOTH(KSPSetType(p->ksp[side], KSPGMRES));
  for (int round = 0; round < 2; round++) {
    BOTH(KSPSolveTranspose(p->ksp[side], p->b[side], p->x[side]));
    PetscCall(SameHistory(p, "KSPSolveTranspose()"));
    PetscCall(SameVec(p->x[0], p->x[1], SOLVED, "KSPSolveTranspose()"));
    SameLevels(p, "KSPSolveTranspose()");
    PetscCall(Twice(p, WHATEVER, "after a transposed solve"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Outside(Pair *p)
{
  static const char *const types[] = {KSPRICHARDSON, KSPGMRES, KSPRICHARDSON, KSPFGMRES, KSPBCGS, KSPPREONLY, KSPCG};

  PetscFunctionBeginUser;
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    BOTH(KSPSetType(p->ksp[side], types[t]));
    SIDES(side)
      PetscCall(KSPSetNormType(p->ksp[side], t == 5 ? KSP_NORM_NONE : t == 3 ? KSP_NORM_UNPRECONDITIONED
                                                                             : KSP_NORM_PRECONDITIONED));
    p->tol = t == 4 ? 1e-7 : EXACT;
    PetscCall(Twice(p, strcmp(types[t], KSPRICHARDSON) ? MADE : ASIDE, types[t]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* several right-hand sides at once are PETSc's code's */
static PetscErrorCode Several(Pair *p)
{
  Mat       B[2], X[2];
  PetscReal norm, difference;

  PetscFunctionBeginUser;
  BOTH(KSPSetType(p->ksp[side], KSPPREONLY));
  SIDES(side) {
    PetscInt n, N;

    PetscCall(MatGetLocalSize(p->A[side], &n, NULL));
    PetscCall(MatGetSize(p->A[side], &N, NULL));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, N, 5, NULL, &B[side]));
    for (PetscInt c = 0; c < 5; c++) {
      Vec v;

      PetscCall(MatDenseGetColumnVecWrite(B[side], c, &v));
      PetscCall(RightHandSide(v, c));
      PetscCall(MatDenseRestoreColumnVecWrite(B[side], c, &v));
    }
    PetscCall(MatDuplicate(B[side], MAT_DO_NOT_COPY_VALUES, &X[side]));
    PetscCall(KSPMatSolve(p->ksp[side], B[side], X[side]));
  }
  PetscCall(MatNorm(X[0], NORM_FROBENIUS, &norm));
  PetscCall(MatAXPY(X[1], -1.0, X[0], SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(X[1], NORM_FROBENIUS, &difference));
  Check3((PetscBool)(difference <= (PetscDefined(USE_REAL_SINGLE) ? SOLVED : EXACT) * norm), "several right-hand sides", "", "", __LINE__);
  BOTH(MatDestroy(&B[side]));
  BOTH(MatDestroy(&X[side]));
  BOTH(KSPSetType(p->ksp[side], KSPCG));
  PetscCall(Twice(p, MADE, "one at a time again"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other vectors each time, some of the program's memory */
static PetscErrorCode Vectors(Pair *p)
{
  PetscInt     n;
  PetscScalar *memory[2];

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(p->b[0], &n));
  for (PetscInt k = 0; k < 4; k++) {
    Pair q = *p;

    SIDES(side) {
      PetscCall(PetscMalloc1(2 * n + 3, &memory[side]));
      PetscCall(VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, n, PETSC_DETERMINE, memory[side] + k, &q.b[side]));
      PetscCall(k % 2 ? VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, n, PETSC_DETERMINE, memory[side] + n + 1, &q.x[side]) : VecDuplicate(p->x[side], &q.x[side]));
      PetscCall(RightHandSide(q.b[side], k));
    }
    PetscCall(PairSolve(&q, MADE, "vectors of the program's memory"));
    BOTH(VecDestroy(&q.x[side]));
    BOTH(VecDestroy(&q.b[side]));
    BOTH(PetscFree(memory[side]));
    PetscCall(Twice(p, MADE, "the old vectors"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCMG with interpolations that PCGAMG has made, by the program */
static PetscErrorCode OwnHierarchy(Pair *p)
{
  Pair q = *p;

  PetscFunctionBeginUser;
  SIDES(side) {
    PetscInt n = NumberOfLevels(p->ksp[side]->pc);
    PC       pc;

    PetscCall(PairSolver(&q, side));
    PetscCall(KSPGetPC(q.ksp[side], &pc));
    PetscCall(KSPSetType(q.ksp[side], KSPCG));
    PetscCall(PCSetType(pc, PCMG));
    PetscCall(PCMGSetLevels(pc, n, NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
    for (PetscInt l = 1; l < n; l++) {
      Mat P;
      KSP k;
      PC  smoother;

      PetscCall(PCMGGetInterpolation(p->ksp[side]->pc, l, &P));
      PetscCall(PCMGSetInterpolation(pc, l, P));
      PetscCall(PCMGGetSmoother(pc, l, &k));
      PetscCall(KSPGetPC(k, &smoother));
      PetscCall(PCSetType(smoother, PCJACOBI));
    }
  }
  PetscCall(Twice(&q, MADE, "PCMG of the program"));
  BOTH(Change(p->A[side], 1));
  PetscCall(Twice(&q, MADE, "PCMG, new values"));
  BOTH(PCSetReusePreconditioner(q.ksp[side]->pc, PETSC_TRUE));
  BOTH(Change(p->A[side], 2));
  PetscCall(Twice(&q, MADE, "PCMG, kept"));
  PetscCall(SameView(q.ksp[0], q.ksp[1], "PCMG"));
  BOTH(KSPDestroy(&q.ksp[side]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCMG with the levels of a grid */
static PetscErrorCode Grids(Pair *p)
{
  Pair     q = *p;
  DM       da[2];
  PetscInt xs, ys, xm, ym;

  PetscFunctionBeginUser;
  SIDES(side) {
    PC pc;

    PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 17, 17, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da[side]));
    PetscCall(DMSetMatType(da[side], side ? "aijhybridgpu" : MATAIJ));
    PetscCall(DMSetUp(da[side]));
    PetscCall(DMCreateMatrix(da[side], &q.A[side]));
    PetscCall(DMDAGetCorners(da[side], &xs, &ys, NULL, &xm, &ym, NULL));
    for (PetscInt j = ys; j < ys + ym; j++)
      for (PetscInt i = xs; i < xs + xm; i++) {
        MatStencil row = {
                     .i = i, .j = j
        },
                   col[5] = {{.i = i, .j = j}, {.i = i - 1, .j = j}, {.i = i + 1, .j = j}, {.i = i, .j = j - 1}, {.i = i, .j = j + 1}};
        PetscScalar v[5]  = {4, -1, -1, -1, -1};

        for (int c = 1; c < 5; c++)
          if (col[c].i < 0 || col[c].i > 16 || col[c].j < 0 || col[c].j > 16) col[c].i = col[c].j = -1;
        PetscCall(MatSetValuesStencil(q.A[side], 1, &row, 5, col, v, INSERT_VALUES));
      }
    PetscCall(MatTestAssemble(q.A[side]));
    PetscCall(MatCreateVecs(q.A[side], &q.x[side], &q.b[side]));
    PetscCall(PairSolver(&q, side));
    PetscCall(KSPGetPC(q.ksp[side], &pc));
    PetscCall(KSPSetType(q.ksp[side], KSPCG));
    PetscCall(PCSetType(pc, PCMG));
    PetscCall(PCSetDM(pc, da[side]));
    PetscCall(KSPSetOptionsPrefix(q.ksp[side], "grid_"));
    PetscCall(KSPSetFromOptions(q.ksp[side]));
  }
  PetscCall(Twice(&q, MADE, "PCMG on a grid"));
  BOTH(MatScale(q.A[side], 1.5));
  PetscCall(Twice(&q, MADE, "PCMG on a grid, new values"));
  PetscCall(PairDestroy(&q));
  BOTH(DMDestroy(&da[side]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n points in a row, pairs of which are one on the next level; rows that nothing couples are empty levels' */
static PetscErrorCode Row(const char *type, PetscInt n, PetscBool pairs, Mat *A)
{
  PetscInt columns = pairs ? n / 2 : n;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, n, columns, n, columns));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  for (PetscInt r = 0; r < n; r++) {
    if (pairs && columns) PetscCall(MatSetValue(*A, r, PetscMin(r / 2, columns - 1), 1.0, INSERT_VALUES));
    for (PetscInt c = PetscMax(0, r - 1); !pairs && c <= PetscMin(r + 1, n - 1); c++) PetscCall(MatSetValue(*A, r, c, c == r ? 2.5 : -1.0, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowsOf(Pair *q, PetscInt n, PetscInt levels)
{
  char what[64];

  PetscFunctionBeginUser;
  snprintf(what, sizeof(what), "%d points, %d levels", (int)n, (int)levels);
  SIDES(side) {
    const char *type = side ? "aijhybridgpu" : MATAIJ;
    PC          pc;

    PetscCall(KSPReset(q->ksp[side]));
    PetscCall(Row(type, n, PETSC_FALSE, &q->A[side]));
    PetscCall(MatCreateVecs(q->A[side], &q->x[side], &q->b[side]));
    PetscCall(KSPSetOperators(q->ksp[side], q->A[side], q->A[side]));
    PetscCall(KSPSetType(q->ksp[side], KSPCG));
    PetscCall(KSPGetPC(q->ksp[side], &pc));
    PetscCall(PCSetType(pc, PCMG));
    PetscCall(PCMGSetLevels(pc, levels, NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
    for (PetscInt l = levels - 1, rows = n; l > 0; l--, rows /= 2) {
      KSP k;
      Mat P;
      PC  smoother;

      PetscCall(Row(type, rows, PETSC_TRUE, &P));
      PetscCall(PCMGSetInterpolation(pc, l, P));
      PetscCall(MatDestroy(&P));
      PetscCall(PCMGGetSmoother(pc, l, &k));
      PetscCall(KSPGetPC(k, &smoother));
      PetscCall(PCSetType(smoother, PCJACOBI));
      PetscCall(KSPChebyshevSetEigenvalues(k, 1.8, 0.2));
    }
  }
  PetscCall(Twice(q, n > 1 ? MADE : WHATEVER, what));
  SIDES(side) {
    PetscCall(MatTestDestroy(&q->A[side], &q->x[side], &q->b[side]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same solver for matrices of a few rows, with more and fewer levels */
static PetscErrorCode FewRows(Pair *p)
{
  static const PetscInt sizes[][2] = {
    {40,  3},
    {2,   2},
    {3,   2},
    {40,  5},
    {7,   3},
    {200, 4},
    {2,   2},
    {1,   2},
    {0,   2}
  };
  Pair q;

  PetscFunctionBeginUser;
  if (SolveSize > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&q, sizeof(q)));
  SIDES(side) {
    PetscCall(KSPCreate(PETSC_COMM_SELF, &q.ksp[side]));
    PetscCall(KSPSetResidualHistory(q.ksp[side], NULL, HISTORY, PETSC_TRUE));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) PetscCall(RowsOf(&q, sizes[k][0], sizes[k][1]));
  PetscCall(PairDestroy(&q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bits(Pair *p)
{
  const PetscScalar *a;
  PetscScalar       *first;
  PetscInt           n, odd = 0;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(p->x[1], &n));
  PetscCall(PetscMalloc1(n, &first));
  for (int run = 0; run < 20; run++) {
    Pair q = *p;

    PetscCall(PairSolver(&q, 1));
    PetscCall(KSPSetFromOptions(q.ksp[1]));
    PetscCall(KSPSolve(q.ksp[1], q.b[1], q.x[1]));
    if (run % 2) PetscCall(KSPSolve(q.ksp[1], q.b[1], q.x[1]));
    if (Cycles) Made += (1 + run % 2) * (q.ksp[1]->its + 1);
    PetscCall(VecGetArrayRead(q.x[1], &a));
    if (!run)
      PetscCall(PetscArraycpy(first, a, n));
    else
      odd += memcmp(first, a, sizeof(*a) * (size_t)n) ? 1 : 0;
    PetscCall(VecRestoreArrayRead(q.x[1], &a));
    PetscCall(KSPDestroy(&q.ksp[1]));
  }
  Check3((PetscBool)!odd, "twenty runs give the same bits", "", "", __LINE__);
  PetscCall(PetscFree(first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an option under a prefix, which is another preconditioner's */
static PetscErrorCode Prefix(Pair *p)
{
  Pair     q = *p;
  PetscInt before, after;

  PetscFunctionBeginUser;
  PetscCall(Options("-one_pc_type gamg -one_pc_gamg_coarse_eq_limit 10 -one_pc_mg_aijhybridgpu 0", PETSC_TRUE));
  PetscCall(PairSolver(&q, 1));
  PetscCall(KSPSetType(q.ksp[1], KSPCG));
  PetscCall(KSPSetOptionsPrefix(q.ksp[1], "one_"));
  PetscCall(KSPSetFromOptions(q.ksp[1]));
  PetscCall(Residuals(&before));
  PetscCall(KSPSolve(q.ksp[1], q.b[1], q.x[1]));
  PetscCall(Residuals(&after));
  Check3((PetscBool)(after > before), "the option under a prefix", "", "", __LINE__);
  PetscCall(KSPDestroy(&q.ksp[1]));
  PetscCall(Options("-one_pc_type gamg -one_pc_gamg_coarse_eq_limit 10 -one_pc_mg_aijhybridgpu 0", PETSC_FALSE));
  PetscCall(Twice(p, MADE, "the other preconditioner"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the option is read where there is an estimator, which there is not before new values come */
static PetscErrorCode Estimates(Pair *p)
{
  Pair q = *p;

  PetscFunctionBeginUser;
  PetscCall(Options("-mg_levels_ksp_chebyshev_esteig_noisy 0", PETSC_TRUE));
  BOTH(PairSolver(&q, side));
  BOTH(KSPSetFromOptions(q.ksp[side]));
  p = &q;
  PetscCall(Twice(p, MADE, "from right-hand sides, at first"));
  BOTH(Change(p->A[side], 1));
  p->tol = 1e-9;
  PetscCall(Twice(p, MADE, "new values"));
  BOTH(Change(p->A[side], 2));
  PetscCall(Twice(p, MADE, "new values again"));
  BOTH(KSPDestroy(&q.ksp[side]));
  PetscCall(Options("-mg_levels_ksp_chebyshev_esteig_noisy 0", PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Case Cases[] = {
  {"null spaces",  "",                                                                                                                NullSpaces   },
  {"test",         "-mg_levels_1_ksp_type richardson -mg_levels_1_ksp_richardson_scale 0.6",                                          OwnTest      },
  {"residual",     "",                                                                                                                OwnResidual  },
  {"restriction",  "",                                                                                                                Restrictions },
  {"diagonal",     "-pc_mg_distinct_smoothup",                                                                                        OtherDiagonal},
  {"jacobi",       "-mg_levels_ksp_chebyshev_eigenvalues 0.2,2.2",                                                                    JacobiTypes  },
  {"product",      "",                                                                                                                OwnProduct   },
  {"coarsest",     "",                                                                                                                Coarsest     },
  {"fails",        "",                                                                                                                CoarsestFails},
  {"transposed",   "",                                                                                                                Transposed   },
  {"outside",      "",                                                                                                                Outside      },
  {"outside, two", "-pc_mg_distinct_smoothup",                                                                                        Outside      },
  {"several",      "",                                                                                                                Several      },
  {"vectors",      "",                                                                                                                Vectors      },
  {"hierarchy",    "",                                                                                                                OwnHierarchy },
  {"grid",         "-grid_pc_mg_levels 3 -grid_pc_mg_galerkin both -grid_mg_levels_pc_type jacobi -grid_mg_coarse_pc_type redundant", Grids        },
  {"bits",         "",                                                                                                                Bits         },
  {"prefix",       "",                                                                                                                Prefix       },
  {"estimates",    "",                                                                                                                Estimates    },
  {"blocks",       "-mg_coarse_pc_type bjacobi",                                                                                      OwnHierarchy },
  {"few",          "",                                                                                                                FewRows      },
};

int main(int argc, char **argv)
{
  return SolveCases(argc, argv, PETSC_STATIC_ARRAY_LENGTH(Cases), Cases);
}
