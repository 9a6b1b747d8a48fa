/*
  solvetest.h: what the tests of multigrid's cycle share. A solver on the type beside one on MATAIJ: residual histories,
  iterations and reasons, solutions, KSPView(), and what a program may ask of the levels' solvers. PETSc's own cycle
  logs a residual on each level, ours none: by that it is known which way each application went, and all of them
  together are compared with what -mat_aijhybridgpu_view_counts says at the end.
*/
#ifndef SOLVETEST_H
#define SOLVETEST_H
#include "gamgtest.h"
#include <petscdmda.h>
#include <petsc/private/kspimpl.h>
#include <petsc/private/pcmgimpl.h>
#include <stdlib.h>
#include <unistd.h>

/* of residuals, relative; ANY: what may be asked for; FLOOR: of the first one, below which nothing is demanded; SOLVED:
   of solutions; GOAL: of solves. In single precision a solve may end an iteration earlier or later by rounding, and
   where one fails nothing is compared. */
#if defined(PETSC_USE_REAL_SINGLE)
  #define EXACT  0.05
  #define ANY    0.2
  #define FLOOR  1e-4
  #define SOLVED 2e-2
  #define GOAL   1e-4
#else
  #define EXACT  1e-10
  #define ANY    0
  #define FLOOR  1e-14
  #define SOLVED 1e-7
  #define GOAL   1e-8
#endif
#define HISTORY 100
#define BASE    "-ksp_max_it 40 -pc_gamg_coarse_eq_limit 10"

typedef enum {
  MADE,    /* all applications by the cycle */
  LEFT,    /* all by PETSc's own code */
  ASIDE,   /* no application: another function of the preconditioner's */
  OFF,     /* all by PETSc's code, by option: that is not counted */
  WHATEVER /* as it comes */
} Cycle;

/* A solver on MATAIJ, [0], and one on the type, [1] */
typedef struct {
  Mat       A[2];
  KSP       ksp[2];
  Vec       b[2], x[2];
  PetscReal tol; /* of the first residuals; 0: EXACT */
} Pair;

/* a cycle in single precision or with values of 16 bits, by option: what is asked for is as of a PETSc of single
   precision, but solves end as always; Rounds: what its first residuals are good to */
static PetscBool Single;
static PetscReal Rounds;
#define CLOSE_ENOUGH (PetscDefined(USE_REAL_SINGLE) || Single)

static PetscInt Made, Left; /* applications, by what was seen here */
/* at most so many more were made by KSPCG on a device, which finds an end behind one */
static PetscInt    Vain;
static PetscInt    Solves = -1;    /* so many solves by KSPCG's iterations of the plugin's; -1: nobody counts */
static PetscInt    Applied;        /* applications on MATAIJ, which are as many as on the type */
static PetscBool   Cycles;         /* are there cycles of ours at all? */
static PetscMPIInt SolveSize;      /* processes */
static char        CountsFile[64]; /* -mat_aijhybridgpu_view_counts */
static PetscErrorCode (*CountedApply)(PC, Vec, Vec);

static PetscErrorCode CountingApply(PC pc, Vec b, Vec x)
{
  PetscFunctionBeginUser;
  Applied++;
  PetscCall((*CountedApply)(pc, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* applications of a solver's preconditioner, on MATAIJ, are counted from now on: there nobody minds */
static inline PetscErrorCode Count(KSP ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(ksp, &pc));
  if (!pc->ops->apply || pc->ops->apply == CountingApply) PetscFunctionReturn(PETSC_SUCCESS);
  CountedApply   = pc->ops->apply;
  pc->ops->apply = CountingApply;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how many applications were PETSc's: levels' residuals */
static inline PetscErrorCode Residuals(PetscInt *n)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestEventCount("MatResidual", n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries of b depend on round and on their global numbers alone */
static inline PetscErrorCode RightHandSide(Vec b, PetscInt round)
{
  PetscInt     start, end;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(b, &start, &end));
  PetscCall(VecGetArrayWrite(b, &a));
  for (PetscInt r = start; r < end; r++) a[r - start] = 1.0 + (PetscReal)((r * (37 + 6 * round) + 5 * round) % 101) / 50;
  PetscCall(VecRestoreArrayWrite(b, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairSolver(Pair *p, int side)
{
  KSP *ksp = &p->ksp[side];

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, p->A[side], p->A[side]));
  PetscCall(KSPSetResidualHistory(*ksp, NULL, HISTORY, PETSC_TRUE));
  PetscCall(KSPSetTolerances(*ksp, GOAL, PETSC_DEFAULT, PETSC_DEFAULT, 40));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* matrices as S on both sides, whose reference is taken over, vectors, and solvers with the options of the database,
   which the caller sets */
static inline PetscErrorCode PairCreate(Mat S, Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscCall(OfBothTypes(S, &p->A[0], &p->A[1]));
  PetscCall(MatDestroy(&S));
  for (int side = 0; side < 2; side++) {
    PetscCall(MatCreateVecs(p->A[side], &p->x[side], &p->b[side]));
    PetscCall(RightHandSide(p->b[side], 0));
    PetscCall(PairSolver(p, side));
    PetscCall(KSPSetFromOptions(p->ksp[side]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairDestroy(Pair *p)
{
  PetscFunctionBeginUser;
  for (int side = 0; side < 2; side++) PetscCall(MatTestDestroy(&p->ksp[side], &p->x[side], &p->b[side], &p->A[side]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void PairPC(const Pair *p, PC pc[2])
{
  for (int side = 0; side < 2; side++) (void)KSPGetPC(p->ksp[side], &pc[side]);
}

/* factorizations of parallel matrices need other packages */
static inline PetscBool NoFactors(const char *type)
{
  return (PetscBool)(SolveSize > 1 && (!strcmp(type, PCLU) || !strcmp(type, PCCHOLESKY) || !strcmp(type, PCSVD) || !strcmp(type, PCILU)));
}

static inline PetscInt NumberOfLevels(PC pc)
{
  const PC_MG *mg = (const PC_MG *)pc->data;

  return mg->levels ? mg->levels[0]->levels : 0;
}

/* a smoother of both sides: of level l, counted from the coarsest, 0; up: the second one */
static inline void Smoothers(const Pair *p, PetscInt l, PetscBool up, KSP ksp[2])
{
  PC pc[2];

  PairPC(p, pc);
  for (int side = 0; side < 2; side++) {
    const PC_MG *mg = (const PC_MG *)pc[side]->data;

    ksp[side] = up ? mg->levels[l]->smoothu : mg->levels[l]->smoothd;
  }
}

/* by which of two tolerances a norm ends that is a rounding error or zero, the processor decides */
static inline PetscBool SameReason(KSPConvergedReason a, KSPConvergedReason b)
{
  return (PetscBool)(a == b || ((a == KSP_CONVERGED_RTOL || a == KSP_CONVERGED_ATOL) && (b == KSP_CONVERGED_RTOL || b == KSP_CONVERGED_ATOL)));
}

static inline void SameLevels(const Pair *p, const char *options)
{
  PC       pc[2];
  PetscInt n[2];
  char     why[160] = "";

  PairPC(p, pc);
  for (int side = 0; side < 2; side++) n[side] = NumberOfLevels(pc[side]);
  if (n[0] != n[1]) snprintf(why, sizeof(why), "%d levels, not %d", (int)n[1], (int)n[0]);
  for (PetscInt l = 0; l < n[0] && n[0] == n[1]; l++) {
    for (int up = 0; up < 2; up++) {
      KSP k[2];

      Smoothers(p, l, (PetscBool)up, k);
      if (why[0] || (k[0]->its == k[1]->its && k[0]->totalits == k[1]->totalits && SameReason(k[0]->reason, k[1]->reason))) continue;
      snprintf(why, sizeof(why), "level %d, %s: its %d %d, total %d %d, reason %d %d", (int)l, up ? "up" : "down", (int)k[1]->its, (int)k[0]->its, (int)k[1]->totalits, (int)k[0]->totalits, (int)k[1]->reason, (int)k[0]->reason);
    }
  }
  if (!CLOSE_ENOUGH) Check3((PetscBool)!why[0], "what the levels' solvers say", options, why, __LINE__);
}

static inline PetscErrorCode SameHistory(const Pair *p, const char *options)
{
  const PetscReal *h[2];
  PetscInt         n[2], its[2];
  PetscReal        tol = p->tol > 0 ? p->tol : EXACT, worst = 0;
  char             why[128];

  PetscFunctionBeginUser;
  if (CLOSE_ENOUGH && (p->ksp[0]->reason < 0 || (!Single && p->ksp[1]->reason < 0))) PetscFunctionReturn(PETSC_SUCCESS);
  tol = PetscMax(tol, PetscMax(Rounds, (PetscReal)ANY));
  if (SolveSize > 1) tol = PetscMax(tol, (PetscReal)1e-5);
  for (int side = 0; side < 2; side++) {
    PetscCall(KSPGetResidualHistory(p->ksp[side], &h[side], &n[side]));
    PetscCall(KSPGetIterationNumber(p->ksp[side], &its[side]));
  }
  for (PetscInt k = 0; k < PetscMin(PetscMin(n[0], n[1]), 6); k++) {
    const PetscReal d = PetscAbsReal(h[0][k] - h[1][k]);

    if (PetscIsInfOrNanReal(h[0][k]) && PetscIsInfOrNanReal(h[1][k])) continue;
    if (!(d <= (Single ? 1e-6 : FLOOR) * h[0][0])) worst = d == d ? PetscMax(worst, d / h[0][k]) : 1;
  }
  snprintf(why, sizeof(why), "its %d, not %d; reason %d, not %d; residuals to %.1e", (int)its[1], (int)its[0], (int)p->ksp[1]->reason, (int)p->ksp[0]->reason, (double)worst);
  if (CLOSE_ENOUGH)
    Check3((PetscBool)(PetscAbsInt(its[0] - its[1]) <= 1 + Single), "iterations", options, why, __LINE__);
  else
    Check3((PetscBool)(its[0] == its[1] && n[0] == n[1] && p->ksp[0]->reason == p->ksp[1]->reason), "iterations and reason", options, why, __LINE__);
  Check3((PetscBool)(worst <= tol), "the first residuals", options, why, __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SameVec(Vec a, Vec h, PetscReal tol, const char *options)
{
  PetscReal          sum[2] = {0, 0};
  const PetscScalar *xa, *xh;
  PetscInt           n, odd = 0;
  char               why[64];

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(a, &n));
  PetscCall(VecGetArrayRead(a, &xa));
  PetscCall(VecGetArrayRead(h, &xh));
  for (PetscInt k = 0; k < n; k++) {
    if (PetscIsInfOrNanScalar(xa[k]) || PetscIsInfOrNanScalar(xh[k]))
      odd += PetscIsInfOrNanScalar(xa[k]) != PetscIsInfOrNanScalar(xh[k]);
    else {
      sum[0] += PetscSqr(PetscAbsScalar(xa[k] - xh[k]));
      sum[1] += PetscSqr(PetscAbsScalar(xa[k]));
    }
  }
  PetscCall(VecRestoreArrayRead(a, &xa));
  PetscCall(VecRestoreArrayRead(h, &xh));
  snprintf(why, sizeof(why), "%.1e of %.1e, %d odd", (double)PetscSqrtReal(sum[0]), (double)PetscSqrtReal(sum[1]), (int)odd);
  Check3((PetscBool)(!odd && PetscSqrtReal(sum[0]) <= tol * PetscSqrtReal(sum[1]) + PETSC_MACHINE_EPSILON), "the same vector", options, why, __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What p's second solver has done since there were `before` residuals is accounted for */
static inline PetscErrorCode Went(const Pair *p, Cycle cycle, PetscInt before, const char *options)
{
  PetscInt after;
  char     why[96];

  PetscFunctionBeginUser;
  PetscCall(Residuals(&after));
  after -= before;
  snprintf(why, sizeof(why), "%d applications, %d residuals of PETSc's", (int)Applied, (int)after);
  if (!Cycles && cycle == MADE) cycle = LEFT;
  if (cycle == MADE) Check3((PetscBool)(Applied > 0 && after == 0), "cycles that were made here", options, why, __LINE__);
  /* PETSc's other cycles may have no residuals, or log them elsewhere */
  if (cycle == LEFT) Check3((PetscBool)(Applied > 0 && (after || strstr(options, "-pc_mg_type") || strstr(options, "-pc_mg_log"))), "cycles that were left", options, why, __LINE__);
  if (cycle == ASIDE) Check3((PetscBool)(Applied == 0), "no applications", options, why, __LINE__);
  if (cycle == OFF) Check3((PetscBool)(Applied > 0 && after), "cycles that were not asked for", options, why, __LINE__);
  if (cycle == OFF) Applied = 0;
  if (cycle == MADE || (cycle == WHATEVER && !after))
    Made += Applied;
  else {
    PetscInt left = Applied, levels = NumberOfLevels(p->ksp[1]->pc);

    /* a V-cycle has a residual on each level but the coarsest */
    if (cycle == WHATEVER && !strstr(options, "-pc_mg_cycle_type w")) left = after / (levels - 1);
    Left += left;
    Made += Applied - left;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of solvers that compute singular values: the extreme ones, and all eigenvalues */
static inline PetscErrorCode SameEigenvalues(const Pair *p, const char *options)
{
  PetscReal most[2], least[2], tol, r[2][HISTORY] = {{0}}, c[2][HISTORY] = {{0}}, worst = 0;
  PetscInt  n[2];
  char      why[160];

  PetscFunctionBeginUser;
  for (int side = 0; side < 2; side++) {
    PetscCall(KSPComputeExtremeSingularValues(p->ksp[side], &most[side], &least[side]));
    PetscCall(KSPComputeEigenvalues(p->ksp[side], HISTORY, r[side], c[side], &n[side]));
  }
  tol = PetscMax((PetscReal)1e-6, PetscMax(Rounds, (PetscReal)ANY));
  for (PetscInt k = 0; k < n[0] && n[0] == n[1]; k++) worst = PetscMax(worst, PetscMax(PetscAbsReal(r[0][k] - r[1][k]), PetscAbsReal(c[1][k])));
  snprintf(why, sizeof(why), "%g to %g, not %g to %g; %d, not %d eigenvalues, to %.1e", (double)least[1], (double)most[1], (double)least[0], (double)most[0], (int)n[1], (int)n[0], (double)worst);
  if (!CLOSE_ENOUGH) Check3((PetscBool)(n[0] == n[1]), "as many eigenvalues", options, why, __LINE__);
  Check3((PetscBool)(worst <= tol * most[0]), "the same eigenvalues", options, why, __LINE__);
  Check3((PetscBool)(PetscAbsReal(most[0] - most[1]) <= tol * most[0] && PetscAbsReal(least[0] - least[1]) <= tol * most[0]), "the same extreme singular values", options, why, __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a solve by both, for what their vectors hold, and all that is compared */
static inline PetscErrorCode PairSolve(Pair *p, Cycle cycle, const char *options)
{
  PetscInt  before;
  PetscBool cg, device;

  PetscFunctionBeginUser;
  Applied = 0;
  PetscCall(Count(p->ksp[0]));
  PetscCall(KSPSolve(p->ksp[0], p->b[0], p->x[0]));
  PetscCall(Residuals(&before));
  PetscCall(KSPSolve(p->ksp[1], p->b[1], p->x[1]));
  PetscCall(Went(p, cycle, before, options));
  PetscCall(PetscObjectTypeCompare((PetscObject)p->ksp[1], KSPCG, &cg));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &device));
  if (cg && device && (p->ksp[1]->normtype == KSP_NORM_UNPRECONDITIONED || p->ksp[1]->reason < 0)) Vain++;
  PetscCall(SameHistory(p, options));
  /* what does not converge is rounding after so many iterations, and so is what CG finds to be none of its matrices */
  if (CLOSE_ENOUGH && (p->ksp[0]->reason < 0 || (!Single && p->ksp[1]->reason < 0))) PetscFunctionReturn(PETSC_SUCCESS);
  if ((p->ksp[0]->reason != KSP_DIVERGED_ITS && p->ksp[0]->reason != KSP_DIVERGED_INDEFINITE_MAT && p->ksp[0]->reason != KSP_DIVERGED_INDEFINITE_PC) || strstr(options, "preonly")) PetscCall(SameVec(p->x[0], p->x[1], Single ? 1e-5 : SOLVED, options));
  SameLevels(p, options);
  if (p->ksp[0]->calc_sings && (p->ksp[0]->reason > 0 || p->ksp[0]->reason == KSP_DIVERGED_ITS)) PetscCall(SameEigenvalues(p, options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SIDES(side) for (int side = 0; side < 2; side++)
/* the same call on both sides */
#define BOTH(call) \
  SIDES(side) PetscCall(call)

/* solves for two right-hand sides: on a device the second one may take what the first one has captured */
static inline PetscErrorCode Twice(Pair *p, Cycle cycle, const char *what)
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 2; k++) {
    BOTH(RightHandSide(p->b[side], k));
    PetscCall(PairSolve(p, cycle, what));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values change alike, and stay those of a symmetric matrix that is positive definite */
static inline PetscErrorCode Change(Mat A, PetscInt step)
{
  Vec          d;
  PetscInt     start, end;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(VecGetOwnershipRange(d, &start, &end));
  PetscCall(VecGetArrayWrite(d, &a));
  for (PetscInt r = start; r < end; r++) a[r - start] = 1.0 + (PetscReal)((r * (7 + step)) % 13) / 20;
  PetscCall(VecRestoreArrayWrite(d, &a));
  PetscCall(MatDiagonalScale(A, d, d));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char *name, *options;
  PetscErrorCode (*run)(Pair *);
} Case;

/* CG and PCGAMG with the options, solved once, and what the case does then */
static inline PetscErrorCode RunCase(const Case *c)
{
  char options[512];
  Pair p;
  Mat  S;

  PetscFunctionBeginUser;
  MatTestName = c->name;
  snprintf(options, sizeof(options), "%s -ksp_type cg -pc_type gamg %s", BASE, c->options);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(MatTestStencil(2, 24, PETSC_FALSE, 0.0, MATAIJ, &S));
  PetscCall(MatSetOption(S, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PairCreate(S, &p));
  PetscCall(Twice(&p, MADE, "at first"));
  PetscCall((*c->run)(&p));
  PetscCall(SameView(p.ksp[0], p.ksp[1], c->options));
  PetscCall(PairDestroy(&p));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all, some (-few), or the one that -case names */
static inline PetscErrorCode RunCases(size_t n, const Case *c)
{
  char      only[32] = "";
  PetscBool one = PETSC_FALSE, few = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &few, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-case", only, sizeof(only), &one));
  for (size_t k = 0; k < n; k++)
    if (one ? !strcmp(only, c[k].name) : !few || k % 3 == 0) PetscCall(RunCase(&c[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* main()'s beginning; what the database must have before PETSc's is added to argv */
static inline PetscErrorCode SolveBegin(int argc, char **argv)
{
  static char  arguments[3][PETSC_MAX_PATH_LEN];
  static char *all[64];
  char       **a = all;
  int          n = 0;
  PetscBool    device, half;

  MatTestCards(argc, argv);
  for (; n < argc && n < 60; n++) all[n] = argv[n];
  snprintf(CountsFile, sizeof(CountsFile), "/tmp/solvetest.%d", (int)getpid());
  all[n++] = strcpy(arguments[0], "-mat_aijhybridgpu_view_counts");
  all[n++] = strcpy(arguments[1], CountsFile);
  PetscCall(PetscInitialize(&n, &a, NULL, NULL));
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &SolveSize));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(MatTestOptionIs("-pc_mg_aijhybridgpu_precision", "single", &Single));
  PetscCall(MatTestOptionIs("-pc_mg_aijhybridgpu_precision", "half", &half));
  Rounds = half ? 0.1 : Single ? 1e-3
                               : 0;
  Single = (PetscBool)(Single || half);
  Cycles = PETSC_TRUE;
  /* without these nobody hears who changes a smoother */
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_aijhybridgpu_smoothers", &Cycles, NULL));
  /* cycles of several processes are on devices */
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &device));
  Cycles = (PetscBool)(Cycles && (SolveSize == 1 || device));
  Covers = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* and its end, after which -mat_aijhybridgpu_view_counts has told; on several processes nothing is counted */
static inline PetscErrorCode SolveEnd(PetscBool counted, int *code)
{
  long  made = -1, left = -1, solves = -1;
  char  line[512] = "", *at;
  FILE *f;

  PetscCall(MatTestFinalize(code));
  PetscCall(PetscFinalize());
  f = fopen(CountsFile, "r");
  if (f && fgets(line, sizeof(line), f)) {
    if ((at = strstr(line, " cycles="))) made = atol(at + 8);
    if ((at = strstr(line, " cyclesleft="))) left = atol(at + 12);
    if ((at = strstr(line, " solves="))) solves = atol(at + 8);
  }
  if (f) fclose(f);
  (void)unlink(CountsFile);
  /* of single precision as many are MATAIJ's but for an iteration here and there */
  if (PetscDefined(USE_REAL_SINGLE) && 20 * labs(made - Made) < made) made = Made;
  if (counted && SolveSize == 1 && (made < Made || made > Made + Vain || left != Left)) {
    printf("FAILED at the end: %ld cycles and %ld left by -mat_aijhybridgpu_view_counts, not %d and %d\n", made, left, (int)Made, (int)Left);
    *code = 1;
  }
  if (Solves >= 0 && solves != Solves) {
    printf("FAILED at the end: %ld solves by -mat_aijhybridgpu_view_counts, not %d\n", solves, (int)Solves);
    *code = 1;
  }
  return PETSC_SUCCESS;
}

/* the whole of a program that consists of cases */
static inline int SolveCases(int argc, char **argv, size_t n, const Case c[])
{
  int code = 1;

  PetscCall(SolveBegin(argc, argv));
  PetscFunctionBeginUser;
  PetscCall(RunCases(n, c));
  PetscCall(SolveEnd(PETSC_TRUE, &code));
  return code;
}

#endif
