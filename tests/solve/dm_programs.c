/*
  Whole programs on a DM beside MATAIJ: Newton's method, implicit, Rosenbrock and IMEX time steps, an adjoint, and
  minimisation within bounds, of

    u_t = f(u),  -f(u) = A u + u^3 - 1,  A the five-point Laplacian on a grid, with unknowns that couple

  Jacobians come by finite differences and a coloring, by stencils into the DM's matrix, and by coordinates at each
  step. What is compared: the numbers of iterations and of steps, and the result.

TEST np=1
TEST np=2 -some
TEST np=1 @emulated
TEST np=2 @emulated -some
TEST np=1 @emulated -some -mat_aijhybridgpu_memory mirror -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
TEST np=1 -some -mat_seqaij_type seqaijhybridgpu

-some: fewer of them
*/
#include "mattest.h"
#include <petscdmda.h>
#include <petscts.h>
#include <petsctao.h>

typedef enum {
  COLORING,
  STENCILS,
  COORDINATES,
  WAYS
} Way;
static const char *const WayNames[] = {"by a coloring", "by stencils", "by coordinates"};

typedef struct {
  DM        dm;
  PetscInt  dof;
  Way       way;
  PetscBool patterned;
  Vec       work;
} App;

/* g = A u + u^3 - 1 */
static PetscErrorCode Minus(App *app, Vec u, Vec g)
{
  Vec            l;
  PetscScalar ***x, ***y;
  PetscInt       xs, ys, xm, ym, mx, my;

  PetscFunctionBeginUser;
  PetscCall(DMGetLocalVector(app->dm, &l));
  PetscCall(VecZeroEntries(l));
  PetscCall(DMGlobalToLocalBegin(app->dm, u, INSERT_VALUES, l));
  PetscCall(DMGlobalToLocalEnd(app->dm, u, INSERT_VALUES, l));
  PetscCall(DMDAGetInfo(app->dm, NULL, &mx, &my, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(app->dm, &xs, &ys, NULL, &xm, &ym, NULL));
  PetscCall(DMDAVecGetArrayDOFRead(app->dm, l, &x));
  PetscCall(DMDAVecGetArrayDOFWrite(app->dm, g, &y));
  for (PetscInt j = ys; j < ys + ym; j++)
    for (PetscInt i = xs; i < xs + xm; i++)
      for (PetscInt c = 0; c < app->dof; c++) {
        PetscScalar s = 4.0 * x[j][i][c];

        if (i > 0) s -= x[j][i - 1][c];
        if (i < mx - 1) s -= x[j][i + 1][c];
        if (j > 0) s -= x[j - 1][i][c];
        if (j < my - 1) s -= x[j + 1][i][c];
        if (app->dof > 1) s += 0.5 * x[j][i][1 - c];
        y[j][i][c] = s + x[j][i][c] * x[j][i][c] * x[j][i][c] - 1.0;
      }
  PetscCall(DMDAVecRestoreArrayDOFWrite(app->dm, g, &y));
  PetscCall(DMDAVecRestoreArrayDOFRead(app->dm, l, &x));
  PetscCall(DMRestoreLocalVector(app->dm, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One row of sign dF/du + shift I: columns as stencils, and their values; how many */
static PetscInt Row(const App *app, PetscInt i, PetscInt j, PetscInt c, PetscInt mx, PetscInt my, PetscScalar u, PetscReal shift, MatStencil col[6], PetscScalar v[6])
{
  const PetscInt di[] = {0, -1, 1, 0, 0}, dj[] = {0, 0, 0, -1, 1};
  PetscInt       n = 0;

  for (int q = 0; q < 5; q++) {
    if (i + di[q] < 0 || i + di[q] >= mx || j + dj[q] < 0 || j + dj[q] >= my) continue;
    memset(&col[n], 0, sizeof(col[n]));
    col[n].i = i + di[q];
    col[n].j = j + dj[q];
    col[n].c = c;
    v[n++]   = q ? -1.0 : 4.0 + 3.0 * u * u + shift;
  }
  if (app->dof > 1) {
    memset(&col[n], 0, sizeof(col[n]));
    col[n].i = i;
    col[n].j = j;
    col[n].c = 1 - c;
    v[n++]   = 0.5;
  }
  return n;
}

static PetscErrorCode Derivative(App *app, Vec u, PetscReal shift, PetscReal sign, Mat J)
{
  PetscScalar ***x, *values;
  PetscInt       xs, ys, xm, ym, mx, my, n = 0, *ci, *cj;
  AO             ao;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetInfo(app->dm, NULL, &mx, &my, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(app->dm, &xs, &ys, NULL, &xm, &ym, NULL));
  PetscCall(DMDAGetAO(app->dm, &ao));
  PetscCall(PetscMalloc3(6 * xm * ym * app->dof, &ci, 6 * xm * ym * app->dof, &cj, 6 * xm * ym * app->dof, &values));
  PetscCall(DMDAVecGetArrayDOFRead(app->dm, u, &x));
  if (app->way == STENCILS) PetscCall(MatZeroEntries(J));
  for (PetscInt j = ys; j < ys + ym; j++)
    for (PetscInt i = xs; i < xs + xm; i++)
      for (PetscInt c = 0; c < app->dof; c++) {
        MatStencil  row, col[6];
        PetscScalar v[6];
        PetscInt    count;

        memset(&row, 0, sizeof(row));
        row.i = i;
        row.j = j;
        row.c = c;
        count = Row(app, i, j, c, mx, my, x[j][i][c], sign * shift, col, v);
        for (PetscInt q = 0; q < count; q++) v[q] *= sign;
        if (app->way == STENCILS) PetscCall(MatSetValuesStencil(J, 1, &row, count, col, v, INSERT_VALUES));
        for (PetscInt q = 0; q < count; q++) {
          ci[n]       = app->dof * (j * mx + i) + c;
          cj[n]       = app->dof * (col[q].j * mx + col[q].i) + col[q].c;
          values[n++] = v[q];
        }
      }
  PetscCall(DMDAVecRestoreArrayDOFRead(app->dm, u, &x));
  if (app->way == STENCILS) {
    PetscCall(MatTestAssemble(J));
  } else {
    if (!app->patterned) {
      PetscCall(AOApplicationToPetsc(ao, n, ci));
      PetscCall(AOApplicationToPetsc(ao, n, cj));
      PetscCall(MatSetPreallocationCOO(J, n, ci, cj));
      app->patterned = PETSC_TRUE;
    }
    PetscCall(MatSetValuesCOO(J, values, INSERT_VALUES));
  }
  PetscCall(PetscFree3(ci, cj, values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewtonFunction(SNES snes, Vec u, Vec g, void *ctx)
{
  return Minus((App *)ctx, u, g);
}
static PetscErrorCode NewtonJacobian(SNES snes, Vec u, Mat J, Mat P, void *ctx)
{
  return Derivative((App *)ctx, u, 0.0, 1.0, P);
}
static PetscErrorCode StepIFunction(TS ts, PetscReal t, Vec u, Vec udot, Vec g, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(Minus((App *)ctx, u, g));
  PetscCall(VecAXPY(g, 1.0, udot));
  PetscFunctionReturn(PETSC_SUCCESS);
}
static PetscErrorCode StepIJacobian(TS ts, PetscReal t, Vec u, Vec udot, PetscReal shift, Mat J, Mat P, void *ctx)
{
  return Derivative((App *)ctx, u, shift, 1.0, P);
}
static PetscErrorCode StepRHSFunction(TS ts, PetscReal t, Vec u, Vec g, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(Minus((App *)ctx, u, g));
  PetscCall(VecScale(g, -1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
static PetscErrorCode StepRHSJacobian(TS ts, PetscReal t, Vec u, Mat J, Mat P, void *ctx)
{
  return Derivative((App *)ctx, u, 0.0, -1.0, P);
}
/* the energy of which -f is the gradient */
static PetscErrorCode Energy(Tao tao, Vec u, PetscReal *f, Vec g, void *ctx)
{
  App        *app = (App *)ctx;
  PetscScalar linear, sum;
  PetscReal   square;

  PetscFunctionBeginUser;
  PetscCall(Minus(app, u, g));
  PetscCall(VecPointwiseMult(app->work, u, u));
  PetscCall(VecNorm(app->work, NORM_2, &square)); /* its square is the sum of u^4 */
  PetscCall(VecDot(g, u, &linear));               /* u A u + u^4 - u */
  PetscCall(VecSum(u, &sum));
  *f = 0.5 * PetscRealPart(linear - square * square + sum) + 0.25 * square * square - PetscRealPart(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}
static PetscErrorCode Hessian(Tao tao, Vec u, Mat J, Mat P, void *ctx)
{
  return Derivative((App *)ctx, u, 0.0, 1.0, P);
}

static const char *const Programs[] = {"Newton", "Newton, GAMG", "backward Euler", "Crank-Nicolson", "Rosenbrock", "IMEX", "of right-hand sides", "an adjoint", "Newton within bounds", "a trust region within bounds", "Newton for inequalities"};
#define PROGRAMS ((int)PETSC_STATIC_ARRAY_LENGTH(Programs))

static PetscErrorCode SolveByTao(App *app, Mat J, int program, PetscInt its[3], Vec u)
{
  Tao tao;
  Vec l, h;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(u, &l));
  PetscCall(VecDuplicate(u, &h));
  PetscCall(VecDuplicate(u, &app->work));
  PetscCall(VecSet(l, 0.1));
  PetscCall(VecSet(h, 0.6));
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
  PetscCall(TaoSetType(tao, program == 8 ? TAOBNLS : TAOTRON));
  PetscCall(TaoSetSolution(tao, u));
  PetscCall(TaoSetVariableBounds(tao, l, h));
  PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Energy, app));
  PetscCall(TaoSetHessian(tao, J, J, Hessian, app));
  PetscCall(TaoSolve(tao));
  PetscCall(TaoGetIterationNumber(tao, &its[0]));
  PetscCall(TaoGetLinearSolveIterations(tao, &its[1]));
  PetscCall(TaoDestroy(&tao));
  PetscCall(MatTestDestroy(&l, &h, &app->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(App *app, Mat J, int program, PetscInt its[3], Vec u)
{
  const PetscBool color = (PetscBool)(app->way == COLORING);

  PetscFunctionBeginUser;
  if (program < 2 || program == 10) {
    SNES snes;
    KSP  ksp;
    PC   pc;

    PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
    PetscCall(SNESSetDM(snes, app->dm));
    PetscCall(SNESSetFunction(snes, NULL, NewtonFunction, app));
    PetscCall(SNESSetJacobian(snes, J, J, color ? SNESComputeJacobianDefaultColor : NewtonJacobian, color ? NULL : (void *)app));
    if (program == 10) {
      Vec l, h;

      PetscCall(SNESSetType(snes, SNESVINEWTONRSLS));
      PetscCall(VecDuplicate(u, &l));
      PetscCall(VecDuplicate(u, &h));
      PetscCall(VecSet(l, 0.1));
      PetscCall(VecSet(h, 0.6));
      PetscCall(SNESVISetVariableBounds(snes, l, h));
      PetscCall(MatTestDestroy(&l, &h));
    }
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPGetPC(ksp, &pc));
    if (program == 1) PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(SNESSolve(snes, NULL, u));
    PetscCall(SNESGetIterationNumber(snes, &its[0]));
    PetscCall(SNESGetLinearSolveIterations(snes, &its[1]));
    PetscCall(SNESDestroy(&snes));
  } else if (program < 8) {
    const TSType    types[] = {TSBEULER, TSCN, TSROSW, TSARKIMEX, TSBEULER, TSCN};
    TS              ts;
    SNES            snes;
    const PetscBool rhs = (PetscBool)(program >= 6);

    PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
    PetscCall(TSSetDM(ts, app->dm));
    PetscCall(TSSetType(ts, types[program - 2]));
    if (rhs) {
      PetscCall(TSSetRHSFunction(ts, NULL, StepRHSFunction, app));
      PetscCall(TSSetRHSJacobian(ts, J, J, StepRHSJacobian, app));
    } else {
      PetscCall(TSSetIFunction(ts, NULL, StepIFunction, app));
      if (!color) PetscCall(TSSetIJacobian(ts, J, J, StepIJacobian, app));
    }
    PetscCall(TSGetSNES(ts, &snes));
    if (color) PetscCall(SNESSetJacobian(snes, J, J, SNESComputeJacobianDefaultColor, NULL));
    PetscCall(TSSetTimeStep(ts, 0.05));
    PetscCall(TSSetMaxSteps(ts, 4));
    PetscCall(TSSetMaxTime(ts, 1.0));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    if (program == 7) {
      TSTrajectory trajectory;

      PetscCall(TSSetSaveTrajectory(ts));
      PetscCall(TSGetTrajectory(ts, &trajectory));
      PetscCall(TSTrajectorySetType(trajectory, ts, TSTRAJECTORYMEMORY));
    }
    PetscCall(TSSolve(ts, u));
    PetscCall(TSGetStepNumber(ts, &its[0]));
    PetscCall(TSGetSNESIterations(ts, &its[1]));
    PetscCall(TSGetKSPIterations(ts, &its[2]));
    if (program == 7) {
      Vec lambda;

      PetscCall(VecDuplicate(u, &lambda));
      PetscCall(VecSet(lambda, 1.0));
      PetscCall(TSSetCostGradients(ts, 1, &lambda, NULL));
      PetscCall(TSAdjointSolve(ts));
      PetscCall(VecCopy(lambda, u));
      PetscCall(VecDestroy(&lambda));
    }
    PetscCall(TSDestroy(&ts));
  } else
    PetscCall(SolveByTao(app, J, program, its, u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the program twice in a row, the second time from its result and with the same matrix */
static PetscErrorCode Program(MatType type, int program, Way way, PetscInt dof, PetscInt its[6], Vec *u)
{
  App app = {NULL, dof, way, PETSC_FALSE, NULL};
  Mat J;

  PetscFunctionBeginUser;
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 9, 8, PETSC_DECIDE, PETSC_DECIDE, dof, 1, NULL, NULL, &app.dm));
  PetscCall(DMSetMatType(app.dm, type));
  PetscCall(DMSetUp(app.dm));
  PetscCall(DMCreateMatrix(app.dm, &J));
  PetscCall(DMCreateGlobalVector(app.dm, u));
  PetscCall(VecSet(*u, 0.2));
  PetscCall(PetscArrayzero(its, 6));
  for (int turn = 0; turn < 2; turn++) {
    PetscCall(Solve(&app, J, program, its + 3 * turn, *u));
    PetscCall(VecScale(*u, 0.75));
  }
  PetscCall(MatTestDestroy(&J, &app.dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool some    = PETSC_FALSE;
  char      sub[64] = "";
  PetscInt  only    = -1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-some", &some, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &only, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", sub, sizeof(sub), NULL));
  for (int program = 0; program < PROGRAMS; program++)
    for (int way = 0; way < WAYS; way++)
      for (PetscInt dof = 1; dof < 3; dof++) {
        char      name[160];
        Vec       u[2];
        PetscInt  its[2][6];
        PetscReal difference, norm;

        if (PetscDefined(USE_COMPLEX) && (program == 8 || program == 9)) continue; /* there is no TAO */
        if (way == COLORING && program > 5 && program != 10) continue;
        if (only >= 0 && program != only) continue;
        if (some && (program + way + dof) % 3) continue;
        PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s, %d unknowns", Programs[program], WayNames[way], (int)dof));
        MatTestName = name;
        for (int k = 0; k < 2; k++) {
          PetscErrorCode ierr;

          if (sub[0] && k) PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", sub));
          if (sub[0] && !k) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
          ierr = Program(k && !sub[0] ? "aijhybridgpu" : MATAIJ, program, (Way)way, dof, its[k], &u[k]);
          if (ierr) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: error %d of %s\n", name, (int)ierr, k ? "ours" : "MATAIJ"));
          PetscCall(ierr);
        }
        MatTestCheck(!memcmp(its[0], its[1], sizeof(its[0])), "numbers of iterations");
        if (memcmp(its[0], its[1], sizeof(its[0]))) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "MATAIJ %d %d %d, %d %d %d; ours %d %d %d, %d %d %d\n", (int)its[0][0], (int)its[0][1], (int)its[0][2], (int)its[0][3], (int)its[0][4], (int)its[0][5], (int)its[1][0], (int)its[1][1], (int)its[1][2], (int)its[1][3], (int)its[1][4], (int)its[1][5]));
        PetscCall(VecNorm(u[0], NORM_2, &norm));
        PetscCall(VecAXPY(u[1], -1.0, u[0]));
        PetscCall(VecNorm(u[1], NORM_2, &difference));
        MatTestCheck(its[0][0] + its[0][1] > 0 && norm > 0, "something was done");
        MatTestCheck(difference < 1e-7 * norm, "the result");
        for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&u[k]));
      }
  return MatTestEnd();
}
