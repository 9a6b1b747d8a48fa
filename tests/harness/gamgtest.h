/*
  gamgtest.h: what the tests of PCGAMG share. A hierarchy on the type beside one on MATAIJ: the same levels, sizes and
  patterns of every prolongator and operator, their values, iterations, -ksp_view. An event counts the levels that ran
  here, so that it is known which way was compared.
*/
#ifndef GAMGTEST_H
#define GAMGTEST_H
#define _GNU_SOURCE /* open_memstream() */
#include "mattest.h"
#include <petsc/private/matimpl.h>
#include <string.h>

/* TIGHT: nothing estimated; GIVEN: with near-null vectors that vary, small entries of Q have the rounding of 1; LOOSE:
   ten steps of GMRES enlarge what sums in another order differ by, in single precision to anything: then sizes and
   patterns are compared alone; RTOL: of solves; VIEWED: of estimates in views */
#if defined(PETSC_USE_REAL_SINGLE)
  #define TIGHT  1e-4
  #define GIVEN  1e-3
  #define LOOSE  PETSC_INFINITY
  #define RTOL   1e-4
  #define VIEWED 1e30
#else
  #define TIGHT  1e-12
  #define GIVEN  1e-11
  #define LOOSE  3e-5
  #define RTOL   1e-8
  #define VIEWED 1e-4
#endif

/* How many levels are ours */
typedef enum {
  ALL,
  NONE,
  SOME,  /* the finest ones only */
  EITHER /* as rounding has it */
} Way;

static PetscBool Covers; /* the plugin replaces anything at all: by PETSc's version and its numbers */

/* levels that were aggregated here since the program began */
static inline PetscErrorCode Levels(PetscInt *n)
{
  PetscFunctionBeginUser;
  *n = 0;
  if (Covers) PetscCall(MatTestEventCount("HybGAMGAgg", n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* sets (or takes back) the options of a line */
static inline PetscErrorCode Options(const char *line, PetscBool on)
{
  char **word;
  int    n;

  PetscFunctionBeginUser;
  if (on) PetscCall(PetscOptionsInsertString(NULL, line));
  PetscCall(PetscStrToArray(line, ' ', &n, &word));
  for (int k = 0; k < n && !on; k++)
    if (word[k][0] == '-' && (word[k][1] < '0' || word[k][1] > '9')) PetscCall(PetscOptionsClearValue(NULL, word[k]));
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the largest modulus of this process's entries */
static inline PetscErrorCode LargestEntry(Mat A, PetscReal *largest)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  *largest = 0;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscScalar *v;
    PetscInt           n;

    PetscCall(MatGetRow(A, r, &n, NULL, &v));
    for (PetscInt e = 0; e < n; e++) *largest = PetscMax(*largest, PetscAbsScalar(v[e]));
    PetscCall(MatRestoreRow(A, r, &n, NULL, &v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same sizes, block sizes and pattern, and values within tol of a row's largest; a row of nothing but rounding,
   which stands for zeros, within the rounding of the matrix's largest */
static inline PetscErrorCode Same(Mat A, Mat B, PetscReal tol, PetscBool *same, char why[], size_t length)
{
  PetscInt  m, n, k, l, start, end, bs[4];
  PetscReal worst = 0, most;
  int       all;

  PetscFunctionBeginUser;
  why[0] = 0;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetSize(B, &k, &l));
  PetscCall(MatGetBlockSizes(A, &bs[0], &bs[1]));
  PetscCall(MatGetBlockSizes(B, &bs[2], &bs[3]));
  *same = (PetscBool)(m == k && n == l && bs[0] == bs[2] && bs[1] == bs[3]);
  if (!*same) PetscCall(PetscSNPrintf(why, length, "%d x %d, blocks %d x %d, not %d x %d, blocks %d x %d", (int)k, (int)l, (int)bs[2], (int)bs[3], (int)m, (int)n, (int)bs[0], (int)bs[1]));
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(LargestEntry(A, &most));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end && *same; r++) {
    const PetscInt    *ja, *jb;
    const PetscScalar *va, *vb;
    PetscInt           na, nb;
    PetscReal          largest = 0;

    PetscCall(MatGetRow(A, r, &na, &ja, &va));
    PetscCall(MatGetRow(B, r, &nb, &jb, &vb));
    *same = (PetscBool)(na == nb);
    for (PetscInt e = 0; e < na && *same; e++) *same = (PetscBool)(ja[e] == jb[e]);
    if (!*same) PetscCall(PetscSNPrintf(why, length, "row %d has another pattern: %d entries, not %d", (int)r, (int)nb, (int)na));
    for (PetscInt e = 0; e < na; e++) largest = PetscMax(largest, PetscAbsScalar(va[e]));
    for (PetscInt e = 0; e < na && *same; e++) {
      PetscReal d = PetscAbsScalar(va[e] - vb[e]) / (largest > 0 ? largest : 1);

      if (!(d <= worst)) worst = d;
      *same = (PetscBool)(d <= tol || (largest <= 64 * PETSC_MACHINE_EPSILON * most && d * largest <= 64 * PETSC_MACHINE_EPSILON * most));
      if (!*same) PetscCall(PetscSNPrintf(why, length, "(%d,%d) is %.15g, not %.15g, in a row up to %.2g", (int)r, (int)ja[e], (double)PetscRealPart(vb[e]), (double)PetscRealPart(va[e]), (double)largest));
    }
    PetscCall(MatRestoreRow(A, r, &na, &ja, &va));
    PetscCall(MatRestoreRow(B, r, &nb, &jb, &vb));
  }
  all = *same;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, PetscObjectComm((PetscObject)A)));
  if (*same && !all) PetscCall(PetscSNPrintf(why, length, "rows of another process differ"));
  *same = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void Check3(PetscBool ok, const char *what, const char *options, const char *why, int line)
{
  char text[512];

  snprintf(text, sizeof(text), "%s [%s] %s", what, options, why);
  MatTestCount(ok, text, __FILE__, line);
}

/* prolongators and operators of two PCs that are set up; *levels: of the first */
static inline PetscErrorCode SameHierarchy(PC a, PC h, PetscReal tol, const char *options, PetscInt *levels)
{
  PetscInt  n[4];
  Mat      *m[4];
  PetscBool same     = PETSC_FALSE;
  char      why[256] = "";

  PetscFunctionBeginUser;
  PetscCall(PCMGGetLevels(a, levels));
  PetscCall(PCMGGetLevels(h, &n[0]));
  snprintf(why, sizeof(why), "%d, not %d", (int)n[0], (int)*levels);
  Check3((PetscBool)(n[0] == *levels), "number of levels", options, why, __LINE__);
  if (n[0] != *levels || n[0] < 2) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetInterpolations(a, &n[0], &m[0]));
  PetscCall(PCGetInterpolations(h, &n[1], &m[1]));
  PetscCall(PCGetCoarseOperators(a, &n[2], &m[2]));
  PetscCall(PCGetCoarseOperators(h, &n[3], &m[3]));
  for (int what = 0; what < 4; what += 2) {
    /* one less than levels, both; the finest last */
    for (PetscInt k = PetscMin(n[what], n[what + 1]) - 2; k >= 0; k--) {
      char where[64];

      PetscCall(Same(m[what][k], m[what + 1][k], tol, &same, why, sizeof(why)));
      snprintf(where, sizeof(where), "%s of level %d", what ? "operator" : "prolongator", (int)(what ? k : k + 1));
      Check3(same, where, options, why, __LINE__);
    }
  }
  for (int what = 0; what < 4; what++) {
    for (PetscInt k = 0; k < n[what] - 1; k++) PetscCall(MatDestroy(&m[what][k]));
    PetscCall(PetscFree(m[what]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what KSPView() prints, without the names of types and what the type says of itself */
static inline PetscErrorCode View(KSP ksp, char **text)
{
  char       *all, *to, *line, *next;
  size_t      size;
  FILE       *f = open_memstream(&all, &size);
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a view");
  PetscCall(PetscViewerASCIIOpenWithFILE(PetscObjectComm((PetscObject)ksp), f, &viewer));
  PetscCall(KSPView(ksp, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(f);
  PetscCall(PetscCalloc1(size + 1, text));
  to = *text;
  for (line = all; line && *line; line = next) {
    char *name;

    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (strstr(line, "AIJHybridGPU ")) continue;
    /* what MATAIJ's Galerkin products leave */
    if (strstr(line, "mallocs used during MatSetValues") || strstr(line, " MatPtAP() implementation")) continue;
    /* nobody looks for them in what the device made */
    if (strstr(line, "I-node")) continue;
    while ((name = strstr(line, "aijhybridgpu"))) memmove(name + 3, name + 12, strlen(name + 12) + 1);
    to += sprintf(to, "%s\n", line);
  }
  free(all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do two views say the same? Where they tell of eigenvalues, numbers that a smoother's own process estimated may differ
   as sums in another order make them. */
static inline PetscBool SameText(const char *a, const char *b)
{
  while (*a || *b) {
    const size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
    PetscBool    same = (PetscBool)(la == lb && !strncmp(a, b, la));

    if (!same && strstr(a, "eigenvalue") && strstr(a, "eigenvalue") < a + la) {
      const char *x = a, *y = b;

      same = PETSC_TRUE;
      while (same && (x < a + la || y < b + lb)) {
        char        *xend, *yend;
        const double p = strtod(x, &xend), q = strtod(y, &yend);

        if (xend > x && yend > y) {
          same = (PetscBool)(PetscAbsReal(p - q) <= VIEWED * PetscAbsReal(p) + 1e-10);
          x    = xend;
          y    = yend;
        } else
          same = (PetscBool)(*x++ == *y++);
      }
    }
    if (!same) return PETSC_FALSE;
    a += la + (a[la] == '\n');
    b += lb + (b[lb] == '\n');
  }
  return PETSC_TRUE;
}

static inline PetscErrorCode SameView(KSP a, KSP h, const char *options)
{
  char     *text[2], why[256] = "";
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(View(a, &text[0]));
  PetscCall(View(h, &text[1]));
  same = SameText(text[0], text[1]);
  if (!same) {
    size_t at = 0, from;

    while (text[0][at] && text[0][at] == text[1][at]) at++;
    for (from = at; from && text[0][from - 1] != '\n'; from--) {}
    snprintf(why, sizeof(why), "\"%.80s\", not \"%.80s\"", text[1] + from, text[0] + from);
    for (char *c = why; *c; c++)
      if (*c == '\n') *c = '|';
  }
  Check3(same, "view", options, why, __LINE__);
  MatTestBoth(PetscFree, text[0], text[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what a test has to say to each PC before it is set up; NULL: nothing */
static PetscErrorCode (*TellPC)(PC);

static inline PetscErrorCode Solver(Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPFGMRES));
  PetscCall(KSPSetTolerances(*ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 25));
  PetscCall(KSPSetResidualHistory(*ksp, NULL, 32, PETSC_TRUE));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  if (TellPC) PetscCall((*TellPC)(pc));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Did the solver go on at this iteration only because its residual was above the tolerance by rounding? */
static inline PetscErrorCode Narrow(KSP ksp, PetscInt iteration, PetscBool *narrow)
{
  const PetscReal *norm;
  PetscReal        tol;
  PetscInt         n;

  PetscFunctionBeginUser;
  PetscCall(KSPGetResidualHistory(ksp, &norm, &n));
  PetscCall(KSPGetTolerances(ksp, &tol, NULL, NULL, NULL));
  *narrow = (PetscBool)(iteration < n && norm[iteration] <= 1.01 * tol * norm[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In single precision the number of iterations is rounding's where a residual stagnates: the first norms of residuals
   are compared, unless eigenvalues were estimated or the matrix is singular */
static PetscBool Estimated = PETSC_TRUE;

/* by the constants */
static inline PetscErrorCode IsSingular(KSP ksp, PetscBool *singular)
{
  Mat       A;
  Vec       x, y;
  PetscReal norm[2];

  PetscFunctionBeginUser;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(y, NORM_INFINITY, &norm[0]));
  PetscCall(MatNorm(A, NORM_INFINITY, &norm[1]));
  PetscCall(MatTestDestroy(&x, &y));
  *singular = (PetscBool)(norm[0] <= 64 * PETSC_MACHINE_EPSILON * norm[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SameNorms(KSP a, KSP h, const char *options)
{
  const PetscReal *x, *y;
  PetscInt         n, m;
  PetscBool        same = PETSC_TRUE, singular;

  PetscFunctionBeginUser;
  PetscCall(IsSingular(a, &singular));
  PetscCall(KSPGetResidualHistory(a, &x, &n));
  PetscCall(KSPGetResidualHistory(h, &y, &m));
  for (PetscInt k = 0; k < PetscMin(PetscMin(n, m), 4) && x[k] > 1e-2 * x[0]; k++) same = (PetscBool)(same && PetscAbsReal(x[k] - y[k]) <= 0.05 * x[k]);
  Check3((PetscBool)(same || Estimated || singular), "the first residuals", options, "", __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* solves with both, after a setup where one is due */
static inline PetscErrorCode Solve(KSP a, KSP h, const char *options)
{
  Vec       b, x[2];
  Mat       A;
  PetscInt  its[2];
  KSP       ksp[] = {a, h};
  char      why[128];
  PetscBool narrow = PETSC_FALSE;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPGetOperators(ksp[k], &A, NULL));
    PetscCall(MatCreateVecs(A, &x[k], &b));
    VecTestFill(b, r, (PetscScalar)(1.0 + (r * 37) % 11));
    PetscCall(KSPSolve(ksp[k], b, x[k]));
    PetscCall(KSPGetIterationNumber(ksp[k], &its[k]));
    PetscCall(VecDestroy(&b));
  }
  snprintf(why, sizeof(why), "%d, not %d", (int)its[1], (int)its[0]);
  if (PetscAbsInt(its[0] - its[1]) == 1) PetscCall(Narrow(its[0] > its[1] ? a : h, PetscMin(its[0], its[1]), &narrow));
  if (PetscDefined(USE_REAL_SINGLE))
    PetscCall(SameNorms(a, h, options));
  else
    Check3((PetscBool)(its[0] == its[1] || narrow), "iterations", options, why, __LINE__);
  PetscCall(MatTestDestroy(&x[0], &x[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which levels ran here since there were `before` of them; nlevels: of the hierarchy */
static inline PetscErrorCode CheckWay(Way way, PetscInt before, PetscInt nlevels, const char *options)
{
  PetscInt after, ours;
  char     why[64];

  PetscFunctionBeginUser;
  PetscCall(Levels(&after));
  ours = after - before;
  snprintf(why, sizeof(why), "%d of %d were ours", (int)ours, (int)nlevels - 1);
  if (Covers && way == EITHER) PetscFunctionReturn(PETSC_SUCCESS);
  if (!Covers || way == NONE)
    Check3((PetscBool)(ours == 0), "levels that PETSc made", options, why, __LINE__);
  else if (way == ALL) /* injection is PETSc's driver's */
    Check3((PetscBool)(ours >= nlevels - (strstr(options, "injection") ? 2 : 1) && ours > 0), "levels that were made here", options, why, __LINE__);
  else
    Check3((PetscBool)(ours > 0 && ours < nlevels - 1), "the finest levels were made here, no others", options, why, __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* only set up: smoothers refuse zeros on the diagonal, or estimate by them what rounding enlarges */
static PetscBool WithoutSolve;

/* A (MATAIJ) and H, ours, with these options */
static inline PetscErrorCode Beside(Mat A, Mat H, const char *options, Way way, PetscReal tol)
{
  KSP      a, h;
  PC       pa, ph;
  PetscInt before, nlevels;
  char     given[256];

  PetscFunctionBeginUser;
  /* coarse levels' edges follow the estimates */
  if (PetscDefined(USE_REAL_SINGLE) && tol >= LOOSE && (strstr(options, "threshold") || strstr(options, "filter"))) {
    snprintf(given, sizeof(given), "%s -pc_gamg_eigenvalues 0.1,2.2", options);
    PetscCall(Beside(A, H, given, way, GIVEN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  Estimated = (PetscBool)(tol >= LOOSE);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(KSPSetUp(a));
  PetscCall(Levels(&before));
  PetscCall(KSPSetUp(h));
  PetscCall(SameHierarchy(pa, ph, tol, options, &nlevels));
  PetscCall(CheckWay(way, before, nlevels, options));
  if (!WithoutSolve) {
    PetscCall(Solve(a, h, options));
    if (A->rmap->N) PetscCall(SameView(a, h, options)); /* PCView() divides by the finest level's entries */
  }
  PetscCall(MatTestDestroy(&a, &h));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is particular about a problem with thresholds */
typedef enum {
  PLAIN,
  UNSYMMETRIC, /* without the transpose edges may be left in one direction: PETSc's code */
  TIES,        /* as they may where numbers are the threshold but for rounding */
  SINGULAR     /* iterations follow rounding where the coarse problem is small: left out */
} Kind;

/* The same with thresholds for the edges of the graph, each level's or scaled from level to level: nothing estimated,
   and where that is said, estimated too. On no coarse level may a number be the threshold but for rounding. */
static inline PetscErrorCode Thresholds(Mat A, Mat H, Way way, Kind kind, PetscBool few)
{
  static const struct {
    const char *options;
    PetscBool   brief, estimated;
    Kind        unless;
  } lines[] = {
    {"-pc_gamg_threshold 0",                                                     PETSC_TRUE,  PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0.01",                                                  PETSC_FALSE, PETSC_TRUE,  PLAIN      },
    {"-pc_gamg_threshold 0.05",                                                  PETSC_TRUE,  PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0.25",                                                  PETSC_TRUE,  PETSC_FALSE, TIES       },
    {"-pc_gamg_threshold 0.1,0.02,0",                                            PETSC_FALSE, PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0.05,-1",                                               PETSC_FALSE, PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold -1,0.05",                                               PETSC_TRUE,  PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0.2 -pc_gamg_threshold_scale 0.3",                      PETSC_TRUE,  PETSC_TRUE,  PLAIN      },
    {"-pc_gamg_threshold 0.05 -pc_gamg_graph_symmetrize 0",                      PETSC_FALSE, PETSC_FALSE, UNSYMMETRIC},
    {"-pc_gamg_threshold 0.05 -pc_gamg_low_memory_threshold_filter",             PETSC_TRUE,  PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0 -pc_gamg_low_memory_threshold_filter",                PETSC_FALSE, PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0.03 -pc_gamg_aggressive_coarsening 0",                 PETSC_FALSE, PETSC_FALSE, SINGULAR   },
    {"-pc_gamg_threshold 0.03 -pc_gamg_aggressive_coarsening 9",                 PETSC_FALSE, PETSC_FALSE, PLAIN      },
    {"-pc_gamg_threshold 0.07 -pc_gamg_agg_nsmooths 0 -pc_gamg_use_sa_esteig 0", PETSC_FALSE, PETSC_FALSE, PLAIN      }
  };
  char        line[256];
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lines); k++) {
    const PetscBool particular = (PetscBool)(kind != PLAIN && lines[k].unless == kind);

    if ((few && !lines[k].brief) || (particular && kind == SINGULAR)) continue;
    /* MATAIJ assembles the graph anew for each row, all processes together: smaller graphs are gamg_parallel's */
    if (size > 1 && strstr(lines[k].options, "low_memory")) continue;
    /* MATAIJ goes on for ever where edges lead from one process to another and not back */
    if (size > 1 && way != ALL && strstr(lines[k].options, "graph_symmetrize 0")) continue;
    snprintf(line, sizeof(line), "%s -pc_gamg_eigenvalues 0.1,2.2", lines[k].options);
    PetscCall(Beside(A, H, line, particular ? EITHER : way, GIVEN));
    if (!few && lines[k].estimated) PetscCall(Beside(A, H, lines[k].options, particular ? EITHER : way, LOOSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices */

static unsigned long Rnd(unsigned long *s)
{
  *s = *s * 6364136223846793005ul + 1442695040888963407ul;
  return *s >> 33;
}

/* of a program of random problems: 0..n-1, the same on all processes */
static unsigned long   Seed;
static inline PetscInt Pick(PetscInt n)
{
  return (PetscInt)(Rnd(&Seed) % (unsigned long)n);
}
static inline void SeedOfRun(PetscInt run)
{
  MatTestSeed = run;
  Seed        = 1000003ul * (unsigned long)run + 12345;
}

/* more options, drawn */
static inline void Add(char *line, size_t size, const char *format, PetscInt k)
{
  const size_t used = strlen(line);

  snprintf(line + used, size - used, format, (int)k);
}

typedef enum {
  LAPLACE,
  ANISOTROPIC,
  JUMPS,
  NEUMANN
} Coefficients;

/* 5 or 7 points, coefficients between neighbours */
static inline PetscErrorCode Grid(PetscInt dim, PetscInt n, Coefficients kind, Mat *A)
{
  PetscInt start, end, size = 1, stride[3];

  PetscFunctionBeginUser;
  for (PetscInt d = 0; d < dim; d++) {
    stride[d] = size;
    size *= n;
  }
  PetscCall(MatTestRoom(MATAIJ, PETSC_DECIDE, PETSC_DECIDE, size, size, 7, A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscReal sum = 0;

    for (PetscInt d = 0; d < dim; d++) {
      for (PetscInt side = -1; side <= 1; side += 2) {
        const PetscInt x = r / stride[d] % n + side, c = r + side * stride[d];
        PetscReal      k = 1;

        if (kind == ANISOTROPIC && d) k = 0.01;
        if (kind == JUMPS) k = (PetscMin(r, c) / 7) % 3 ? 1 : 1e6;
        if (kind != NEUMANN || (x >= 0 && x < n)) sum += k;
        if (x >= 0 && x < n) PetscCall(MatSetValue(*A, r, c, -k, INSERT_VALUES));
      }
    }
    PetscCall(MatSetValue(*A, r, r, sum, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of n vertices of bs unknowns, with room for so many blocks a row; every process sets all entries */
static inline PetscErrorCode SetByAll(PetscInt local, PetscInt n, PetscInt bs, PetscInt room, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, local < 0 ? local : local * bs, local < 0 ? local : local * bs, n * bs, n * bs));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, room * bs, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, room * bs, NULL, room * bs, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(*A, MAT_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A random graph's, symmetric, diagonally dominant but for row n/2, whose diagonal entry is zero; degree 0: a diagonal
   matrix. Some vertices alone. */
static inline PetscErrorCode Random(PetscInt n, PetscInt degree, unsigned long seed, PetscBool diagonal, PetscScalar zero, Mat *A)
{
  PetscScalar *d;

  PetscFunctionBeginUser;
  PetscCall(SetByAll(PETSC_DECIDE, n, 1, 6 * degree + 10, A));
  PetscCall(PetscCalloc1(n, &d));
  for (PetscInt e = 0; e < n * degree / 2; e++) {
    const PetscInt    i = (PetscInt)(Rnd(&seed) % (unsigned long)n), j = (PetscInt)(Rnd(&seed) % (unsigned long)n);
    const PetscScalar v = 1.0 + (PetscReal)(Rnd(&seed) % 100) / 50.0;

    if (i == j || i % 13 == 5 || j % 13 == 5) continue;
    PetscCall(MatSetValue(*A, i, j, -v, INSERT_VALUES));
    PetscCall(MatSetValue(*A, j, i, -v, INSERT_VALUES));
    d[i] += v;
    d[j] += v;
  }
  for (PetscInt i = 0; i < n; i++)
    if (diagonal || i % 5) PetscCall(MatSetValue(*A, i, i, i == n / 2 ? zero : d[i] + 0.1, INSERT_VALUES));
  PetscCall(PetscFree(d));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* blocks of bs unknowns */
static inline PetscErrorCode Blocks(PetscInt n, PetscInt bs, Mat *A)
{
  Mat S, M;

  PetscFunctionBeginUser;
  PetscCall(Grid(2, n, LAPLACE, &S));
  PetscCall(MatCreateMAIJ(S, bs, &M));
  PetscCall(MatConvert(M, MATAIJ, MAT_INITIAL_MATRIX, A));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatTestDestroy(&M, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Near-null vectors, whose references are taken, after the constant if that is wanted. Times: how often each becomes
   orthogonal to those before, and of norm one: a null space's are orthonormal in a debugging PETSc. */
static inline PetscErrorCode AttachNear(Mat A, PetscBool constant, PetscInt nvec, Vec v[], int times)
{
  MatNullSpace near;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < nvec && times; k++) {
    for (int again = 0; again < times; again++) {
      if (constant) {
        PetscScalar sum;
        PetscInt    n;

        PetscCall(VecSum(v[k], &sum));
        PetscCall(VecGetSize(v[k], &n));
        PetscCall(VecShift(v[k], -sum / (PetscReal)n));
      }
      for (PetscInt l = 0; l < k; l++) {
        PetscScalar dot;

        PetscCall(VecDot(v[k], v[l], &dot));
        PetscCall(VecAXPY(v[k], -dot, v[l]));
      }
    }
    PetscCall(VecNormalize(v[k], NULL));
  }
  PetscCall(MatNullSpaceCreate(PetscObjectComm((PetscObject)A), constant, nvec, v, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  for (PetscInt k = 0; k < nvec; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same of vectors whose entries are value, an expression in k, the vector's number, and r, the row's */
#define MANY 33
#define ATTACH(A, constant, nvec, times, value)          \
  do {                                                   \
    Vec v_[MANY];                                        \
                                                         \
    for (PetscInt k = 0; k < (nvec); k++) {              \
      PetscCall(MatCreateVecs(A, &v_[k], NULL));         \
      VecTestFill(v_[k], r, value);                      \
    }                                                    \
    PetscCall(AttachNear(A, constant, nvec, v_, times)); \
  } while (0)

/* nvec near-null vectors that vary, of both signs */
static inline PetscErrorCode AttachVectors(Mat A, PetscInt nvec)
{
  PetscFunctionBeginUser;
  ATTACH(A, PETSC_FALSE, nvec, 1, (PetscScalar)(PetscSinReal((PetscReal)(r * (k + 1)) / 17) + (r % 3 ? 1.2 : -0.7)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* vectors that vary, after the constant if that is wanted */
static inline PetscErrorCode AttachMany(Mat A, PetscBool constant, PetscInt nvec)
{
  PetscFunctionBeginUser;
  ATTACH(A, constant, nvec, 2, (PetscScalar)(PetscSinReal((PetscReal)(r * (3 * k + 1)) * 0.7 + (PetscReal)k)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of the vertices v with v % every == rest: all unknowns, or this one of them (-1: all). Without
   MAT_KEEP_NONZERO_PATTERN their entries go. */
static inline PetscErrorCode ZeroSome(Mat A, PetscInt bs, PetscInt every, PetscInt rest, PetscInt which, PetscScalar diagonal)
{
  PetscInt rows[1024], n = 0, start, end;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end && n < 1024; r++)
    if (r / bs % every == rest && (which < 0 || r % bs == which)) rows[n++] = r;
  PetscCall(MatZeroRows(A, n, rows, diagonal, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values change, so that other eigenvalues come out; zeros remain */
static inline PetscErrorCode ChangeValues(Mat A, PetscInt step)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &d, NULL));
  VecTestFill(d, r, 1.0 + (PetscReal)((r * (7 + step)) % 13) / 10);
  PetscCall(MatDiagonalScale(A, d, d));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* complex ones made of real ones */
#if defined(PETSC_USE_COMPLEX)
typedef enum {
  DAMPED,      /* complex symmetric: a loss on the diagonal */
  HERMITIAN,   /* similar to the real matrix, by phases */
  IMAGINARY,   /* complex symmetric: the off-diagonal entries times i */
  UNSYMMETRIC_ /* other phases on both sides */
} Numbers;

static inline PetscScalar Number(Numbers numbers, PetscInt r, PetscInt c, PetscScalar a)
{
  const PetscReal turn = PetscSinReal((PetscReal)r) - PetscSinReal((PetscReal)c), u = (PetscReal)((3 * r + c) % 7) / 7;

  switch (numbers) {
  case DAMPED:
    return r == c ? a + PetscCMPLX(-0.3, 1) : a;
  case HERMITIAN:
    return a * PetscCMPLX(PetscCosReal(turn), PetscSinReal(turn));
  case IMAGINARY:
    return r == c ? a : a * PETSC_i;
  default:
    return r == c ? a * PetscCMPLX(1, 0.2) : a * PetscCMPLX(PetscCosReal(u), PetscSinReal(u));
  }
}

/* of the same pattern, R's reference is taken */
static inline PetscErrorCode OfNumbers(Mat *R, Numbers numbers, Mat *A)
{
  PetscInt start, end, bs;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(*R, MAT_DO_NOT_COPY_VALUES, A));
  PetscCall(MatGetBlockSize(*R, &bs));
  PetscCall(MatGetOwnershipRange(*R, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    *j;
    const PetscScalar *v;
    PetscInt           n;

    PetscCall(MatGetRow(*R, r, &n, &j, &v));
    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, r, j[k], Number(numbers, r, j[k], v[k]), INSERT_VALUES));
    PetscCall(MatRestoreRow(*R, r, &n, &j, &v));
  }
  PetscCall(MatTestAssemble(*A));
  PetscCall(MatDestroy(R));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* the same matrix of this type, with nothing allocated besides */
static inline PetscErrorCode OfType(Mat A, MatType type, Mat *H)
{
  MatNullSpace null, near;
  PetscBool    set, flg;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, H));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(MatGetNearNullSpace(A, &near));
  if (null) PetscCall(MatSetNullSpace(*H, null));
  if (near) PetscCall(MatSetNearNullSpace(*H, near));
  PetscCall(MatIsSPDKnown(A, &set, &flg));
  if (set) PetscCall(MatSetOption(*H, MAT_SPD, flg));
  PetscCall(MatIsSymmetricKnown(A, &set, &flg));
  if (set) PetscCall(MatSetOption(*H, MAT_SYMMETRIC, flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* S for MATAIJ and for ours */
static inline PetscErrorCode OfBothTypes(Mat S, Mat *A, Mat *H)
{
  PetscFunctionBeginUser;
  PetscCall(OfType(S, MATAIJ, A));
  PetscCall(OfType(S, "aijhybridgpu", H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool WithThresholds; /* problems with thresholds, not without */

/* main()'s beginning: which of the tests, and whether the plugin replaces anything here. Before 3.21 it replaces
   nothing: GAMG's rules were others. */
static PetscInt              Only = -1;
static PetscBool             Few;
static inline PetscErrorCode Begin(int *argc, char ***argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(argc, argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-problem", &Only, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-short", &Few, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-thresholds", &WithThresholds, NULL));
  Covers = (PetscBool)(PETSC_VERSION_GE(3, 21, 0) && (PetscDefined(USE_REAL_DOUBLE) || PetscDefined(USE_REAL_SINGLE)));
  if (!Covers) MatTestSkipped++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
