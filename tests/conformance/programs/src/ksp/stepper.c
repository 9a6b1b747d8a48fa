static char help[] = "An implicit time stepper, u_t = Laplace(u) + u - u^3, that fills its Jacobian anew at each Newton step.\n\
  -assembly coo|local|stencil|offload : how\n\n";

/*
  Four ways in which programs fill matrices again and again:

  coo      MatSetValuesCOO() with a pattern that was told once; with -setup_again the pattern is told anew at each step
  local    MatZeroEntries(), MatSetValuesLocal()
  stencil  MatSetValuesStencil(), every entry
  offload a matrix of PETSc's own is filled; the first time MatConvert() makes another of the type -offload_mat_type of
  it,
           and every other time MatCopy() with SAME_NONZERO_PATTERN takes the new values there, as Firedrake's OffloadPC
           does
*/
#include <petscdmda.h>
#include <petscts.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

typedef enum {
  COO,
  LOCAL,
  STENCIL,
  OFFLOAD
} Assembly;
static const char *const assemblies[] = {"coo", "local", "stencil", "offload", "Assembly", "", NULL};

typedef struct {
  Assembly     assembly;
  PetscBool    setupagain, ready;
  char         offloadtype[64];
  Mat          moved;  /* the matrix of the other type */
  PetscScalar *values; /* of the coordinates */
  PetscInt     ncoo, jacobians;
} Stepper;

static PetscErrorCode IFunction(TS ts, PetscReal t, Vec U, Vec Udot, Vec F, void *ctx)
{
  DM                  da;
  DMDALocalInfo       info;
  Vec                 local;
  const PetscScalar **u, **udot;
  PetscScalar       **f;

  PetscFunctionBeginUser;
  PetscCall(TSGetDM(ts, &da));
  PetscCall(DMDAGetLocalInfo(da, &info));
  PetscCall(DMGetLocalVector(da, &local));
  PetscCall(DMGlobalToLocalBegin(da, U, INSERT_VALUES, local));
  PetscCall(DMGlobalToLocalEnd(da, U, INSERT_VALUES, local));
  PetscCall(DMDAVecGetArrayRead(da, local, &u));
  PetscCall(DMDAVecGetArrayRead(da, Udot, &udot));
  PetscCall(DMDAVecGetArray(da, F, &f));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      const PetscScalar c  = u[j][i];
      const PetscReal   h2 = 1.0 / ((info.mx - 1) * (info.mx - 1));

      f[j][i] = udot[j][i] - c + c * c * c;
      if (i > 0) f[j][i] += (c - u[j][i - 1]) / h2;
      if (i < info.mx - 1) f[j][i] += (c - u[j][i + 1]) / h2;
      if (j > 0) f[j][i] += (c - u[j - 1][i]) / h2;
      if (j < info.my - 1) f[j][i] += (c - u[j + 1][i]) / h2;
    }
  PetscCall(DMDAVecRestoreArrayRead(da, local, &u));
  PetscCall(DMDAVecRestoreArrayRead(da, Udot, &udot));
  PetscCall(DMDAVecRestoreArray(da, F, &f));
  PetscCall(DMRestoreLocalVector(da, &local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of one row: at most five, the diagonal first */
static PetscInt Row(const DMDALocalInfo *info, PetscInt i, PetscInt j, PetscScalar u, PetscReal shift, MatStencil columns[], PetscScalar values[])
{
  const PetscInt  di[] = {-1, 1, 0, 0}, dj[] = {0, 0, -1, 1};
  const PetscReal h2 = 1.0 / ((info->mx - 1) * (info->mx - 1));
  PetscInt        n  = 1;

  columns[0].i = i;
  columns[0].j = j;
  values[0]    = shift - 1.0 + 3.0 * u * u;
  for (int k = 0; k < 4; k++) {
    if (i + di[k] < 0 || i + di[k] >= info->mx || j + dj[k] < 0 || j + dj[k] >= info->my) continue;
    columns[n].i = i + di[k];
    columns[n].j = j + dj[k];
    values[n++]  = -1 / h2;
    values[0] += 1 / h2;
  }
  return n;
}

static PetscErrorCode Fill(DM da, Stepper *s, Vec U, PetscReal shift, Mat A)
{
  DMDALocalInfo          info;
  ISLocalToGlobalMapping ltog;
  const PetscScalar    **u;
  PetscInt              *rows = NULL, *cols = NULL, k = 0;
  PetscBool              pattern;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(da, &info));
  PetscCall(DMGetLocalToGlobalMapping(da, &ltog));
  pattern = (PetscBool)(s->assembly == COO && (!s->ready || s->setupagain));
  if (pattern) {
    PetscCall(PetscMalloc2(5 * info.xm * info.ym, &rows, 5 * info.xm * info.ym, &cols));
    if (!s->values) PetscCall(PetscMalloc1(5 * info.xm * info.ym, &s->values));
  }
  if (s->assembly == LOCAL) PetscCall(MatZeroEntries(A));
  PetscCall(DMDAVecGetArrayRead(da, U, &u));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      MatStencil  at, columns[5];
      PetscScalar values[5];
      PetscInt    local[5], row, n;

      at.i = i;
      at.j = j;
      n    = Row(&info, i, j, u[j][i], shift, columns, values);
      row  = (j - info.gys) * info.gxm + i - info.gxs;
      for (PetscInt c = 0; c < n; c++) local[c] = (columns[c].j - info.gys) * info.gxm + columns[c].i - info.gxs;
      if (s->assembly == LOCAL)
        PetscCall(MatSetValuesLocal(A, 1, &row, n, local, values, ADD_VALUES));
      else if (s->assembly != COO)
        PetscCall(MatSetValuesStencil(A, 1, &at, n, columns, values, INSERT_VALUES));
      else {
        for (PetscInt c = 0; c < n; c++) s->values[k + c] = values[c];
        if (pattern) {
          PetscCall(ISLocalToGlobalMappingApply(ltog, n, local, &cols[k]));
          for (PetscInt c = 0; c < n; c++) PetscCall(ISLocalToGlobalMappingApply(ltog, 1, &row, &rows[k + c]));
        }
        k += n;
      }
    }
  PetscCall(DMDAVecRestoreArrayRead(da, U, &u));
  if (pattern) PetscCall(MatSetPreallocationCOO(A, k, rows, cols));
  if (pattern) PetscCall(PetscFree2(rows, cols));
  if (s->assembly == COO)
    PetscCall(MatSetValuesCOO(A, s->values, INSERT_VALUES));
  else {
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  }
  s->ready = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IJacobian(TS ts, PetscReal t, Vec U, Vec Udot, PetscReal shift, Mat A, Mat P, void *ctx)
{
  Stepper *s = (Stepper *)ctx;
  SNES     snes;
  KSP      ksp;
  DM       da;

  PetscFunctionBeginUser;
  PetscCall(TSGetDM(ts, &da));
  PetscCall(Fill(da, s, U, shift, P));
  if (s->assembly == OFFLOAD) {
    if (!s->moved)
      PetscCall(MatConvert(P, s->offloadtype, MAT_INITIAL_MATRIX, &s->moved));
    else
      PetscCall(MatCopy(P, s->moved, SAME_NONZERO_PATTERN));
    PetscCall(TSGetSNES(ts, &snes));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetOperators(ksp, s->moved, s->moved));
  }
  s->jacobians++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A bump in the corner and a slope */
static PetscErrorCode Start(DM da, Vec U)
{
  DMDALocalInfo info;
  PetscScalar **u;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(da, &info));
  PetscCall(DMDAVecGetArray(da, U, &u));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      const PetscReal x = (PetscReal)i / (info.mx - 1), y = (PetscReal)j / (info.my - 1);

      u[j][i] = 0.1 * (x - y) + 2 * PetscExpReal(-20 * (x * x + y * y));
    }
  PetscCall(DMDAVecRestoreArray(da, U, &u));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Stepper   s;
  DM        da;
  TS        ts;
  SNES      snes;
  Mat       P;
  Vec       U;
  PetscReal norm;
  PetscInt  steps, newton;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscMemzero(&s, sizeof(s)));
  PetscCall(PetscStrncpy(s.offloadtype, MATAIJ, sizeof(s.offloadtype)));
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-assembly", assemblies, (PetscEnum *)&s.assembly, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-setup_again", &s.setupagain, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-offload_mat_type", s.offloadtype, sizeof(s.offloadtype), NULL));
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 17, 17, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da));
  if (s.assembly == OFFLOAD)
    PetscCall(DMSetMatType(da, MATAIJ)); /* what a program that knows nothing of devices fills */
  else
    PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  if (s.assembly == COO) PetscCall(DMSetMatrixPreallocateSkip(da, PETSC_TRUE));
  PetscCall(DMCreateMatrix(da, &P));
  PetscCall(DMCreateGlobalVector(da, &U));
  PetscCall(Start(da, U));

  PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
  PetscCall(TSSetDM(ts, da));
  PetscCall(TSSetType(ts, TSBEULER));
  PetscCall(TSSetIFunction(ts, NULL, IFunction, &s));
  PetscCall(TSSetIJacobian(ts, P, P, IJacobian, &s));
  PetscCall(TSSetTimeStep(ts, 0.01));
  PetscCall(TSSetMaxSteps(ts, 4));
  PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
  PetscCall(TSSetFromOptions(ts));
  PetscCall(TSSolve(ts, U));

  PetscCall(VecNorm(U, NORM_2, &norm));
  PetscCall(TSGetStepNumber(ts, &steps));
  PetscCall(TSGetSNES(ts, &snes));
  PetscCall(TSGetSNESIterations(ts, &newton));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " steps, %" PetscInt_FMT " Newton iterations, %" PetscInt_FMT " Jacobians, |u| = %.6f\n", steps, newton, s.jacobians, (double)norm));
  PetscCall(PetscFree(s.values));
  PetscCall(MatDestroy(&s.moved));
  PetscCall(MatDestroy(&P));
  PetscCall(VecDestroy(&U));
  PetscCall(TSDestroy(&ts));
  PetscCall(DMDestroy(&da));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

   testset:
      nsize: {{1 2}}
      args: -pc_type gamg -ksp_type cg -ksp_rtol 1e-9 -snes_rtol 1e-8
      output_file: output/stepper.out
      test:
         suffix: assembly
         args: -assembly {{coo local stencil offload}}
      test:
         suffix: again
         args: -assembly coo -setup_again

   testset:
      args: -ts_type bdf -ts_max_steps 6 -ts_adapt_type none -snes_rtol 1e-8
      output_file: output/stepper_bdf.out
      test:
         suffix: lu
         args: -pc_type lu -assembly {{coo local stencil offload}}
      test:
         suffix: asm
         nsize: 2
         args: -pc_type asm -sub_pc_type ilu -ksp_rtol 1e-9 -assembly {{coo local offload}}

TEST*/
