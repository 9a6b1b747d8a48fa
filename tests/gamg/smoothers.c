/*
  PCJACOBI and KSPCHEBYSHEV as the plugin registers them, beside PETSc's own creators, with the type in both runs:
  residuals and solutions to the last bit, and the text of KSPView(). Several solves each: new values, a zero on the
  diagonal and away again, a reset, another type and back, noise told by option and by function, a null space, an
  estimate that fails. The vector of noise is kept from estimate to estimate. The first estimates behind PCGAMG's own
  eigenvalues make as much noise on the device as later ones. Events tell whether the device did what
  PETSc's loops do: where the matrix is there, and only then.

TEST np=1,2
TEST np=1 @emulated
TEST np=2 @emulated -few
TEST np=1 @emulated -few -mat_aijhybridgpu_smoothers 0
TEST np=1 @emulated -few -mat_type aij

  -few: zeros on the diagonal and Chebyshev with Jacobi alone; -case NAME: this one alone
*/
#include "mattest.h"
#include <petscdmda.h>
#include <stdlib.h>
#include <string.h>

PETSC_EXTERN PetscErrorCode    PCCreate_Jacobi(PC);
PETSC_EXTERN PetscErrorCode    KSPCreate_Chebyshev(KSP);
PETSC_EXTERN PetscFunctionList PCList, KSPList;

#define SOLVES  9
#define HISTORY 60
#define GRID    7

static PetscErrorCode (*OurJacobi)(PC), (*OurChebyshev)(KSP);
static PetscBool Device; /* are matrices of the type on a device, and the plugin's creators in their places? */

typedef enum {
  PLAIN,
  ZERO,      /* a zero on the diagonal for two of the solves */
  FUNCTION,  /* noise off by the function, and on again */
  NULLSPACE, /* attached to the operator */
  CLEARED    /* the options are taken back as soon as they were read */
} Kind;

typedef struct {
  const char *name, *options;
  Kind        kind;
  PetscBool   nonsymmetric, spd;
  int         zeros, noise; /* is the device asked for these? -1: it depends on the release */
} Case;

/* releases before 3.19 look for zeros on the diagonal of a matrix that is SPD too */
#define WITHOUT_ASKING PETSC_VERSION_LT(3, 19, 0)
static const Case cases[] = {
  {"cg and jacobi",                      "-ksp_type cg -pc_type jacobi",                                                                                                                                             PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              0 },
  {"gmres and jacobi",                   "-ksp_type gmres -pc_type jacobi",                                                                                                                                          PLAIN,     PETSC_TRUE,  PETSC_FALSE, 1,              0 },
  {"a transpose and jacobi",             "-ksp_type bicg -pc_type jacobi",                                                                                                                                           PLAIN,     PETSC_TRUE,  PETSC_FALSE, 1,              0 },
  {"zeros on the diagonal",              "-ksp_type gmres -pc_type jacobi",                                                                                                                                          ZERO,      PETSC_TRUE,  PETSC_FALSE, 1,              0 },
  {"zeros on the diagonal, not fixed",   "-ksp_type gmres -pc_type jacobi -pc_jacobi_fixdiagonal 0",                                                                                                                 ZERO,      PETSC_TRUE,  PETSC_FALSE, 0,              0 },
  {"symmetric jacobi",                   "-ksp_type gmres -pc_type jacobi -ksp_pc_side symmetric",                                                                                                                   PLAIN,     PETSC_FALSE, PETSC_FALSE, 0,              0 },
  {"jacobi of absolute values",          "-ksp_type cg -pc_type jacobi -pc_jacobi_abs",                                                                                                                              PLAIN,     PETSC_FALSE, PETSC_FALSE, 0,              0 },
  {"jacobi of the largest entries",      "-ksp_type cg -pc_type jacobi -pc_jacobi_type rowmax",                                                                                                                      PLAIN,     PETSC_FALSE, PETSC_FALSE, 0,              0 },
#if !PETSC_VERSION_LT(3, 20, 0)
  {"jacobi of sums of rows",             "-ksp_type cg -pc_type jacobi -pc_jacobi_type rowl1",                                                                                                                       PLAIN,     PETSC_FALSE, PETSC_FALSE, 0,              0 },
#endif
  {"chebyshev and jacobi",               "-ksp_type chebyshev -pc_type jacobi",                                                                                                                                      PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              1 },
  {"chebyshev and jacobi, spd",          "-ksp_type chebyshev -pc_type jacobi",                                                                                                                                      PLAIN,     PETSC_FALSE, PETSC_TRUE,  WITHOUT_ASKING, 1 },
  {"chebyshev and no preconditioner",    "-ksp_type chebyshev -pc_type none",                                                                                                                                        PLAIN,     PETSC_TRUE,  PETSC_FALSE, 0,              1 },
  {"chebyshev of given eigenvalues",     "-ksp_type chebyshev -pc_type jacobi -ksp_chebyshev_eigenvalues 0.1,2.2",                                                                                                   PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              0 },
  {"chebyshev with other estimates",     "-ksp_type chebyshev -pc_type jacobi -ksp_chebyshev_esteig 0,0.2,0,1.2 -ksp_chebyshev_esteig_steps 5 -esteig_ksp_type cg",                                                  PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              1 },
  {"chebyshev from the right-hand side", "-ksp_type chebyshev -pc_type jacobi -ksp_chebyshev_esteig_noisy 0",                                                                                                        PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              0 },
  {"the same, the option taken back",    "-ksp_type chebyshev -pc_type jacobi -ksp_chebyshev_esteig_noisy 0",                                                                                                        CLEARED,   PETSC_FALSE, PETSC_FALSE, 1,              0 },
  {"noise off and on by the function",   "-ksp_type chebyshev -pc_type jacobi",                                                                                                                                      FUNCTION,  PETSC_FALSE, PETSC_FALSE, 1,              1 },
  {"chebyshev with a null space",        "-ksp_type chebyshev -pc_type jacobi",                                                                                                                                      NULLSPACE, PETSC_FALSE, PETSC_FALSE, 1,              0 },
  {"multigrid with chebyshev",           "-ksp_type cg -pc_type mg -pc_mg_levels 3 -pc_mg_galerkin both -mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi -mg_coarse_pc_type redundant -pc_mg_aijhybridgpu 0", PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              1 },
  {"algebraic multigrid",                "-ksp_type cg -pc_type gamg -pc_gamg_coarse_eq_limit 20",                                                                                                                   PLAIN,     PETSC_FALSE, PETSC_FALSE, 1,              -1},
  {"algebraic multigrid without jacobi", "-ksp_type cg -pc_type gamg -pc_gamg_coarse_eq_limit 20 -mg_levels_pc_type sor",                                                                                            PLAIN,     PETSC_FALSE, PETSC_FALSE, -1,             -1},
};

/* seven points on the grid, the diagonal growing with `round`; zero: nothing on the diagonal of some rows */
static PetscErrorCode Values(DM da, Mat A, const Case *c, int round, PetscBool zero)
{
  PetscInt xs, ys, zs, xm, ym, zm, n;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetInfo(da, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  for (PetscInt k = zs; k < zs + zm; k++) {
    for (PetscInt j = ys; j < ys + ym; j++) {
      for (PetscInt i = xs; i < xs + xm; i++) {
        MatStencil  row = {.i = i, .j = j, .k = k, .c = 0}, col[7];
        PetscScalar v[7];
        PetscInt    m = 0;

        for (int q = 0; q < 7; q++) {
          const int d[3] = {(q == 1) - (q == 2), (q == 3) - (q == 4), (q == 5) - (q == 6)};

          if (i + d[0] < 0 || i + d[0] >= n || j + d[1] < 0 || j + d[1] >= n || k + d[2] < 0 || k + d[2] >= n) continue;
          col[m].i = i + d[0];
          col[m].j = j + d[1];
          col[m].k = k + d[2];
          col[m].c = 0;
          v[m]     = q ? -1.0 - (c->nonsymmetric && q % 2 ? 0.3 : 0.0) : 6.5 + 0.25 * round + 0.5 * ((i + 2 * j + 3 * k) % 5);
          if (!q && zero && (i + j + k) % 7 == 3) v[m] = 0;
          m++;
        }
        PetscCall(MatSetValuesStencil(A, 1, &row, m, col, v, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatTestAssemble(A));
  if (c->spd) PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt     its[SOLVES], length[SOLVES], n;
  PetscReal    history[SOLVES][HISTORY];
  PetscScalar *x[SOLVES];
  char        *view[SOLVES];                       /* of the first process */
  PetscInt     zeros, noise, before, made[SOLVES]; /* noise before the first solve, and up to the end of each */
  /* the vector that Chebyshev's estimator has from its last estimate */
  PetscObjectId estimated[SOLVES];
} Run;

static PetscErrorCode Text(KSP ksp, char **text)
{
  PetscViewer viewer;
  size_t      length;
  FILE       *f = open_memstream(text, &length);

  PetscFunctionBeginUser;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_SYS, "open_memstream()");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, f, &viewer));
  PetscCall(KSPView(ksp, viewer));
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, Vec b, Vec x, int s, Run *r)
{
  const PetscScalar *values;
  const PetscReal   *history;
  PetscBool          chebyshev;
  KSP                estimator = NULL;
  Vec                rhs       = NULL;

  PetscFunctionBeginUser;
  PetscCall(KSPSetResidualHistory(ksp, NULL, HISTORY, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatTestEventCount("HybNoise", &r->made[s]));
  PetscCall(KSPGetIterationNumber(ksp, &r->its[s]));
  PetscCall(KSPGetResidualHistory(ksp, &history, &r->length[s]));
  PetscCall(PetscArraycpy(r->history[s], history, r->length[s]));
  PetscCall(VecGetLocalSize(x, &r->n));
  r->x[s] = (PetscScalar *)malloc(sizeof(PetscScalar) * ((size_t)r->n + 1));
  PetscCall(VecGetArrayRead(x, &values));
  memcpy(r->x[s], values, sizeof(PetscScalar) * (size_t)r->n);
  PetscCall(VecRestoreArrayRead(x, &values));
  PetscCall(Text(ksp, &r->view[s]));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPCHEBYSHEV, &chebyshev));
  if (chebyshev) PetscCall(KSPChebyshevEstEigGetKSP(ksp, &estimator));
  if (estimator) PetscCall(KSPGetRhs(estimator, &rhs));
  if (rhs) PetscCall(PetscObjectGetId((PetscObject)rhs, &r->estimated[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Events(Run *r, PetscInt sign)
{
  PetscInt zeros, noise;

  PetscFunctionBeginUser;
  PetscCall(MatTestEventCount("HybZeros", &zeros));
  PetscCall(MatTestEventCount("HybNoise", &noise));
  r->zeros += sign * zeros;
  r->noise += sign * noise;
  if (sign < 0) r->before = noise;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is registered from here on */
static PetscErrorCode Register(PetscBool ours)
{
  PetscFunctionBeginUser;
  PetscCall(PCRegister(PCJACOBI, ours ? OurJacobi : PCCreate_Jacobi));
  PetscCall(KSPRegister(KSPCHEBYSHEV, ours ? OurChebyshev : KSPCreate_Chebyshev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solves(const Case *c, DM da, KSP ksp, Mat A, Vec b, Vec x, Run *r)
{
  PC     pc;
  PCType type;
  char   kept[64];

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(Solve(ksp, b, x, 0, r));
  PetscCall(Solve(ksp, b, x, 1, r));
  for (int s = 2; s < 5; s++) { /* new values; for ZERO, zeros come and go */
    if (c->kind == FUNCTION) PetscCall(KSPChebyshevEstEigSetUseNoisy(ksp, (PetscBool)(s % 2)));
    PetscCall(Values(da, A, c, s, (PetscBool)(c->kind == ZERO && s < 4)));
    PetscCall(Solve(ksp, b, x, s, r));
  }
  PetscCall(PCReset(pc));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Solve(ksp, b, x, 5, r));
  PetscCall(KSPReset(ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Solve(ksp, b, x, 6, r));
  PetscCall(PCGetType(pc, &type));
  PetscCall(PetscStrncpy(kept, type, sizeof(kept)));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(PCSetType(pc, kept));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Solve(ksp, b, x, 7, r));
  PetscCall(Values(da, A, c, 1, PETSC_FALSE));
  if (c->kind != CLEARED) { /* a new estimator makes noise again */
    PetscCall(KSPGetType(ksp, &type));
    PetscCall(PetscStrncpy(kept, type, sizeof(kept)));
    PetscCall(KSPSetType(ksp, KSPRICHARDSON));
    PetscCall(KSPSetType(ksp, kept));
    PetscCall(KSPSetFromOptions(ksp));
  }
  PetscCall(Solve(ksp, b, x, 8, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Problem(const Case *c, DM *da, Mat *A, Vec *x, Vec *b)
{
  char      type[64];
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, GRID, GRID, GRID, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, da));
  PetscCall(DMSetMatType(*da, "aijhybridgpu"));
  PetscCall(DMSetFromOptions(*da));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), &set));
  if (set) PetscCall(DMSetMatType(*da, type));
  PetscCall(DMSetUp(*da));
  PetscCall(DMCreateMatrix(*da, A));
  PetscCall(MatCreateVecs(*A, x, b));
  PetscCall(Values(*da, *A, c, 0, PETSC_FALSE));
  PetscCall(VecSet(*x, 1.0));
  PetscCall(MatMult(*A, *x, *b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunCase(const Case *c, PetscBool ours, Run *r)
{
  DM           da;
  Mat          A;
  Vec          x, b;
  KSP          ksp;
  MatNullSpace nullspace;
  char         options[512];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  PetscCall(Register(ours));
  PetscCall(PetscSNPrintf(options, sizeof(options), "%s -ksp_max_it 12 -ksp_norm_type %s", c->options, strstr(c->options, "bicg") ? "unpreconditioned" : "preconditioned"));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(Problem(c, &da, &A, &x, &b));
  if (c->kind == NULLSPACE) {
    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &nullspace));
    PetscCall(MatSetNullSpace(A, nullspace));
    PetscCall(MatNullSpaceDestroy(&nullspace));
  }
  PetscCall(VecSetValue(b, 0, 3.0, ADD_VALUES));
  PetscCall(VecTestAssemble(b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetDM(ksp, da));
#if PETSC_VERSION_LT(3, 25, 0)
  PetscCall(KSPSetDMActive(ksp, PETSC_FALSE));
#else
  PetscCall(KSPSetDMActive(ksp, KSP_DMACTIVE_ALL, PETSC_FALSE));
#endif
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  if (c->kind == CLEARED) PetscCall(PetscOptionsClearValue(NULL, "-ksp_chebyshev_esteig_noisy"));
  PetscCall(Events(r, -1));
  PetscCall(Solves(c, da, ksp, A, b, x, r));
  PetscCall(Events(r, 1));
  PetscCall(MatTestDestroy(&ksp, &A, &x, &b, &da));
  for (char *at = options, *end; at && (at = strchr(at, '-')); at = end) { /* each option begins with - and a letter */
    if ((end = strchr(at, ' '))) *end++ = 0;
    if (at == options || at[1] >= 'a') PetscCall(PetscOptionsClearValue(NULL, at));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To the last bit. On a device eigenvalues that are estimated again are so by other sums than PETSc's: then to 1e-8 of
   the largest. */
static PetscBool SameNumbers(PetscInt n, const PetscReal a[], const PetscReal b[])
{
  PetscReal largest = 0, worst = 0;

  for (PetscInt k = 0; k < n; k++) {
    largest = PetscMax(largest, PetscAbsReal(a[k]));
    worst   = PetscMax(worst, PetscAbsReal(a[k] - b[k]));
    if (a[k] != a[k] || b[k] != b[k]) return PETSC_FALSE;
  }
  return (PetscBool)(worst <= (!Device ? 0 : PetscDefined(USE_REAL_SINGLE) ? 1e-3
                                                                           : 1e-8) *
                                largest);
}

static PetscErrorCode TestCase(const Case *c)
{
  Run              *r;
  const PetscMPIInt rank = MatTestRank();

  PetscFunctionBeginUser;
  MatTestName = c->name;
  PetscCall(PetscMalloc1(2, &r));
  for (int k = 0; k < 2; k++) PetscCall(RunCase(c, (PetscBool)k, &r[k]));
  for (int s = 0; s < SOLVES; s++) {
    MatTestCheck(r[0].its[s] == r[1].its[s] && r[0].its[s] > 0, "other iterations");
    MatTestCheck(r[0].length[s] == r[1].length[s] && r[0].length[s] > 1 && SameNumbers(r[0].length[s], r[0].history[s], r[1].history[s]), "other residuals");
    MatTestCheck(r[0].n == r[1].n && SameNumbers(r[0].n * (PetscInt)(sizeof(PetscScalar) / sizeof(PetscReal)), (const PetscReal *)r[0].x[s], (const PetscReal *)r[1].x[s]), "another solution");
    /* estimates show more digits than single precision has */
    MatTestCheck((PetscDefined(USE_REAL_SINGLE) || !strcmp(r[0].view[s], r[1].view[s])) && (rank || strlen(r[0].view[s]) > 100), "another text of KSPView()");
    if (!PetscDefined(USE_REAL_SINGLE) && strcmp(r[0].view[s], r[1].view[s])) printf("%s\n--- and ours:\n%s\n", r[0].view[s], r[1].view[s]);
  }
  /* GAMG's estimates, which -mat_aijhybridgpu_smoothers does not switch off, may take noise from it too */
  MatTestCheck(!r[0].zeros && (c->noise < 0 || !r[0].noise), "PETSc's own creators ask the device");
  MatTestCheck(c->zeros < 0 || !r[1].zeros == !(Device && c->zeros), "the diagonal's zeros are looked for where they should not be, or not where they should");
  MatTestCheck(c->noise < 0 || !r[1].noise == !(Device && c->noise), "noise is made where it should not be, or not where it should");
  if (Device && c->noise > 0 && c->kind == PLAIN && strstr(c->options, "-ksp_type chebyshev")) MatTestCheck(r[1].estimated[1] && r[1].estimated[2] == r[1].estimated[1] && r[1].estimated[4] == r[1].estimated[1], "the vector of noise is not the one of the estimate before");
  /* of solves 2 and 3, of new values: in the first of them PCGAMG's smoothers get their estimators */
  MatTestCheck(c->kind != PLAIN || r[1].made[2] - r[1].made[1] == r[1].made[3] - r[1].made[2], "the first estimate with new values makes its noise in another way than the second");
  /* there are no such eigenvalues where the smoother is not Jacobi's */
  if (Device && strstr(c->options, "-mg_levels_pc_type sor")) MatTestCheck(r[1].made[0] - r[1].before >= r[1].made[3] - r[1].made[2] && r[1].made[3] > r[1].made[2], "the first estimate makes its noise in another way than later ones");
  for (int k = 0; k < 2; k++)
    for (int s = 0; s < SOLVES; s++) {
      free(r[k].x[s]);
      free(r[k].view[s]);
    }
  PetscCall(PetscFree(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int FailIn;

static PetscErrorCode ShellApply(PC pc, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  if (FailIn && !--FailIn) PetscFunctionReturn(PETSC_ERR_USER);
  PetscCall(VecCopy(x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an estimate that stops with an error leaves the noise on and the right-hand side where it was */
static PetscErrorCode TestFailure(void)
{
  const Case        c = {"an estimate that fails", "", PLAIN, PETSC_FALSE, PETSC_FALSE, 0, 0};
  DM                da;
  Mat               A;
  Vec               x, b, rhs;
  KSP               ksp;
  PC                pc;
  PetscErrorCode    ierr;
  char             *text;
  const PetscMPIInt rank = MatTestRank();

  PetscFunctionBeginUser;
  MatTestName = c.name;
  PetscCall(Register(PETSC_TRUE));
  PetscCall(Problem(&c, &da, &A, &x, &b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCHEBYSHEV));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCSHELL));
  PetscCall(PCShellSetApply(pc, ShellApply));
  PetscCall(KSPSetFromOptions(ksp));
  FailIn = 3;
  QUIETLY(ierr, KSPSolve(ksp, b, x));
  MatTestCheck(ierr, "the error was lost");
  PetscCall(KSPGetRhs(ksp, &rhs));
  MatTestCheck(rhs == b, "the right-hand side is another vector");
  PetscCall(Text(ksp, &text));
  MatTestCheck(rank || strstr(text, "noisy"), "the estimator has lost its noise");
  free(text);
  PetscCall(MatTestDestroy(&ksp, &A, &x, &b, &da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays that a program handed to PETSc may name a column twice in a row, out of order: the first of two diagonal
   entries, a zero, is the diagonal */
static PetscErrorCode TestTwice(void)
{
  PetscInt    i[] = {0, 2, 5, 7, 9}, j[] = {0, 1, 1, 0, 1, 2, 3, 2, 3};
  PetscScalar a[] = {4, 1, 0, 2, 5, 3, 1, 1, 2};
  Vec         x, y[2];

  PetscFunctionBeginUser;
  MatTestName = "a diagonal entry that stands twice";
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 4, &x));
  PetscCall(VecSet(x, 1.0));
  for (int ours = 0; ours < 2; ours++) {
    Mat A;
    PC  pc;

    PetscCall(Register((PetscBool)ours));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 4, 4, i, j, a, &A));
    PetscCall(MatConvert(A, "seqaijhybridgpu", MAT_INPLACE_MATRIX, &A));
    PetscCall(VecDuplicate(x, &y[ours]));
    PetscCall(MatMult(A, x, y[ours])); /* it is on the device */
    PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(PCApply(pc, x, y[ours]));
    PetscCall(MatTestDestroy(&pc, &A));
  }
  VecTestCheckSame(y[1], y[0], "another preconditioner");
  for (int ours = 0; ours < 2; ours++) PetscCall(VecDestroy(&y[ours]));
  PetscCall(VecDestroy(&x));
  PetscCall(Register(PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool on = PETSC_TRUE, aij, cuda, only, few = PETSC_FALSE;
  char      one[64];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(KSPInitializePackage());
  PetscCall(PCInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_aijhybridgpu_smoothers", &on, NULL));
  PetscCall(MatTestOptionIs("-mat_type", MATAIJ, &aij));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &cuda));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &few, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-case", one, sizeof(one), &only));
  PetscCall(PetscFunctionListFind(PCList, PCJACOBI, &OurJacobi));
  PetscCall(PetscFunctionListFind(KSPList, KSPCHEBYSHEV, &OurChebyshev));
  MatTestName = "what is registered";
  MatTestCheck(OurJacobi && (OurJacobi != PCCreate_Jacobi) == on, "jacobi");
  MatTestCheck(OurChebyshev && (OurChebyshev != KSPCreate_Chebyshev) == on, "chebyshev");
  Device = (PetscBool)(on && cuda && !aij);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++)
    if (only ? !strcmp(one, cases[k].name) : !few || cases[k].kind == ZERO || !strcmp(cases[k].name, "chebyshev and jacobi")) PetscCall(TestCase(&cases[k]));
  PetscCall(TestFailure());
  PetscCall(TestTwice());
  return MatTestEnd();
}
