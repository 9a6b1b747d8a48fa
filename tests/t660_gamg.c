/*
  PCGAMG on the type beside PCGAMG on MATAIJ: the same levels, sizes and patterns of every prolongator and operator, their values, iterations, -ksp_view. An event counts the levels
  that ran here, so that it is known which way was compared.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -short
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -short
TEST np=2 -mat_aijhybridgpu_backend host -short

-short: fewer problems and options. -problem K: one problem only.
*/
#define _GNU_SOURCE /* open_memstream() */
#include "mattest.h"
#include <petsc/private/matimpl.h>
#include <string.h>

#define TIGHT 1e-11 /* nothing estimated */
#define LOOSE 1e-5  /* ten steps of GMRES enlarge what sums in another order differ by */

/* How many levels are ours */
typedef enum {
  ALL,
  NONE,
  SOME /* the finest ones only */
} Way;

static PetscBool Covers; /* the plugin replaces anything at all: by PETSc's version, and with one process */

/* levels that were aggregated here since the program began */
static PetscErrorCode Levels(PetscInt *n)
{
  PetscFunctionBeginUser;
  *n = 0;
  if (Covers) PetscCall(MatTestEventCount("HybGAMGAgg", n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* sets (or takes back) the options of a line */
static PetscErrorCode Options(const char *line, PetscBool on)
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

/* the same sizes, block sizes and pattern, and values within tol of a row's largest */
static PetscErrorCode Same(Mat A, Mat B, PetscReal tol, PetscBool *same, char why[], size_t length)
{
  PetscInt  m, n, k, l, start, end, bs[4];
  PetscReal worst = 0;

  PetscFunctionBeginUser;
  why[0] = 0;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetSize(B, &k, &l));
  PetscCall(MatGetBlockSizes(A, &bs[0], &bs[1]));
  PetscCall(MatGetBlockSizes(B, &bs[2], &bs[3]));
  *same = (PetscBool)(m == k && n == l && bs[0] == bs[2] && bs[1] == bs[3]);
  if (!*same) PetscCall(PetscSNPrintf(why, length, "%d x %d, blocks %d x %d, not %d x %d, blocks %d x %d", (int)k, (int)l, (int)bs[2], (int)bs[3], (int)m, (int)n, (int)bs[0], (int)bs[1]));
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
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
      *same = (PetscBool)(d <= tol);
      if (!*same) PetscCall(PetscSNPrintf(why, length, "(%d,%d) is %.15g, not %.15g", (int)r, (int)ja[e], (double)PetscRealPart(vb[e]), (double)PetscRealPart(va[e])));
    }
    PetscCall(MatRestoreRow(A, r, &na, &ja, &va));
    PetscCall(MatRestoreRow(B, r, &nb, &jb, &vb));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, same, 1, MPI_INT, MPI_LAND, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Check3(PetscBool ok, const char *what, const char *options, const char *why, int line)
{
  char text[512];

  snprintf(text, sizeof(text), "%s [%s] %s", what, options, why);
  MatTestCount(ok, text, __FILE__, line);
}

/* prolongators and operators of two PCs that are set up; *levels: of the first */
static PetscErrorCode SameHierarchy(PC a, PC h, PetscReal tol, const char *options, PetscInt *levels)
{
  PetscInt  n[4];
  Mat      *m[4];
  PetscBool same;
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
    for (PetscInt k = PetscMin(n[what], n[what + 1]) - 2; k >= 0; k--) { /* one less than levels, both; the finest last */
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
static PetscErrorCode View(KSP ksp, char **text)
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
    if (strstr(line, "mallocs used during MatSetValues") || strstr(line, " MatPtAP() implementation")) continue; /* what MATAIJ's Galerkin products leave */
    if (strstr(line, "I-node")) continue;                                                                                      /* nobody looks for them in what the device made */
    while ((name = strstr(line, "aijhybridgpu"))) memmove(name + 3, name + 12, strlen(name + 12) + 1);
    to += sprintf(to, "%s\n", line);
  }
  free(all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameView(KSP a, KSP h, const char *options)
{
  char     *text[2], why[256] = "";
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(View(a, &text[0]));
  PetscCall(View(h, &text[1]));
  PetscCall(PetscStrcmp(text[0], text[1], &same));
  if (!same) {
    size_t at = 0, from;

    while (text[0][at] && text[0][at] == text[1][at]) at++;
    for (from = at; from && text[0][from - 1] != '\n'; from--) { }
    snprintf(why, sizeof(why), "\"%.80s\", not \"%.80s\"", text[1] + from, text[0] + from);
    for (char *c = why; *c; c++)
      if (*c == '\n') *c = '|';
  }
  Check3(same, "view", options, why, __LINE__);
  PetscCall(PetscFree(text[0]));
  PetscCall(PetscFree(text[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPFGMRES));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 25));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* solves with both, after a setup where one is due */
static PetscErrorCode Solve(KSP a, KSP h, const char *options)
{
  Vec      b, x[2];
  Mat      A;
  PetscInt its[2];
  KSP      ksp[] = {a, h};
  char     why[128];

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscInt start, end;

    PetscCall(KSPGetOperators(ksp[k], &A, NULL));
    PetscCall(MatCreateVecs(A, &x[k], &b));
    PetscCall(VecGetOwnershipRange(b, &start, &end));
    for (PetscInt r = start; r < end; r++) PetscCall(VecSetValue(b, r, (PetscScalar)(1.0 + (r * 37) % 11), INSERT_VALUES));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
    PetscCall(KSPSolve(ksp[k], b, x[k]));
    PetscCall(KSPGetIterationNumber(ksp[k], &its[k]));
    PetscCall(VecDestroy(&b));
  }
  snprintf(why, sizeof(why), "%d, not %d", (int)its[1], (int)its[0]);
  Check3((PetscBool)(PetscAbsInt(its[0] - its[1]) <= 1), "iterations", options, why, __LINE__);
  PetscCall(VecDestroy(&x[0]));
  PetscCall(VecDestroy(&x[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which levels ran here since there were `before` of them; nlevels: of the hierarchy */
static PetscErrorCode CheckWay(Way way, PetscInt before, PetscInt nlevels, const char *options)
{
  PetscInt after, ours;
  char     why[64];

  PetscFunctionBeginUser;
  PetscCall(Levels(&after));
  ours = after - before;
  snprintf(why, sizeof(why), "%d of %d were ours", (int)ours, (int)nlevels - 1);
  if (!Covers || way == NONE) Check3((PetscBool)(ours == 0), "levels that PETSc made", options, why, __LINE__);
  else if (way == ALL) Check3((PetscBool)(ours >= nlevels - 1 && ours > 0), "levels that were made here", options, why, __LINE__);
  else Check3((PetscBool)(ours > 0 && ours < nlevels - 1), "the finest levels were made here, no others", options, why, __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A (MATAIJ) and H, ours, with these options */
static PetscErrorCode Beside(Mat A, Mat H, const char *options, Way way, PetscReal tol)
{
  KSP      a, h;
  PC       pa, ph;
  PetscInt before, nlevels;

  PetscFunctionBeginUser;
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
  PetscCall(Solve(a, h, options));
  PetscCall(SameView(a, h, options));
  PetscCall(KSPDestroy(&a));
  PetscCall(KSPDestroy(&h));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices */

static unsigned long Rnd(unsigned long *s)
{
  *s = *s * 6364136223846793005ul + 1442695040888963407ul;
  return *s >> 33;
}

typedef enum {
  LAPLACE,
  ANISOTROPIC,
  JUMPS,
  NEUMANN
} Coefficients;

/* 5 or 7 points, coefficients between neighbours */
static PetscErrorCode Grid(PetscInt dim, PetscInt n, Coefficients kind, Mat *A)
{
  PetscInt start, end, size = 1, stride[3];

  PetscFunctionBeginUser;
  for (PetscInt d = 0; d < dim; d++) {
    stride[d] = size;
    size *= n;
  }
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, size, size));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 7, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
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
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A random graph's, symmetric, diagonally dominant; degree 0: a diagonal matrix. Some vertices alone. */
static PetscErrorCode Random(PetscInt n, PetscInt degree, unsigned long seed, PetscBool diagonal, PetscScalar zero, Mat *A)
{
  PetscScalar *d;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 6 * degree + 10, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 6 * degree + 10, NULL, 6 * degree + 10, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(*A, MAT_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE)); /* every process sets all */
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
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* blocks of bs unknowns */
static PetscErrorCode Blocks(PetscInt n, PetscInt bs, Mat *A)
{
  Mat S, M;

  PetscFunctionBeginUser;
  PetscCall(Grid(2, n, LAPLACE, &S));
  PetscCall(MatCreateMAIJ(S, bs, &M));
  PetscCall(MatConvert(M, MATAIJ, MAT_INITIAL_MATRIX, A));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatDestroy(&M));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the boundary's rows become those of the identity; both: their columns too */
static PetscErrorCode Dirichlet(PetscInt n, PetscBool both, Mat *A)
{
  PetscInt rows[512], nrows = 0, start, end;

  PetscFunctionBeginUser;
  PetscCall(Grid(2, n, LAPLACE, A));
  PetscCall(MatSetOption(*A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end && nrows < 512; r++)
    if (r % n == 0 || r % n == n - 1 || r / n == 0 || r / n == n - 1) rows[nrows++] = r;
  if (both) PetscCall(MatZeroRowsColumns(*A, nrows, rows, 4.0, NULL, NULL));
  else PetscCall(MatZeroRows(*A, nrows, rows, 4.0, NULL, NULL));
  if (both) { /* without the zeros that stay where columns were */
    Mat       C;
    PetscInt  m = end - start, N = n * n;
    PetscBool zero;

    PetscCall(MatCreate(PETSC_COMM_WORLD, &C));
    PetscCall(MatSetSizes(C, m, m, N, N));
    PetscCall(MatSetType(C, MATAIJ));
    PetscCall(MatSeqAIJSetPreallocation(C, 5, NULL));
    PetscCall(MatMPIAIJSetPreallocation(C, 5, NULL, 5, NULL));
    for (PetscInt r = start; r < end; r++) {
      const PetscInt    *j;
      const PetscScalar *v;
      PetscInt           nz;

      PetscCall(MatGetRow(*A, r, &nz, &j, &v));
      for (PetscInt e = 0; e < nz; e++) {
        zero = (PetscBool)(PetscAbsScalar(v[e]) == 0);
        if (!zero) PetscCall(MatSetValue(C, r, j[e], v[e], INSERT_VALUES));
      }
      PetscCall(MatRestoreRow(*A, r, &nz, &j, &v));
    }
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatDestroy(A));
    *A = C;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AttachConstant(Mat A, PetscBool near)
{
  MatNullSpace null;

  PetscFunctionBeginUser;
  PetscCall(MatNullSpaceCreate(PetscObjectComm((PetscObject)A), PETSC_TRUE, 0, NULL, &null));
  if (near) PetscCall(MatSetNearNullSpace(A, null));
  else PetscCall(MatSetNullSpace(A, null));
  PetscCall(MatNullSpaceDestroy(&null));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* nvec near-null vectors that vary, of both signs */
static PetscErrorCode AttachVectors(Mat A, PetscInt nvec)
{
  MatNullSpace null;
  Vec          v[2];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < nvec; k++) {
    PetscInt start, end;

    PetscCall(MatCreateVecs(A, &v[k], NULL));
    PetscCall(VecGetOwnershipRange(v[k], &start, &end));
    for (PetscInt r = start; r < end; r++) PetscCall(VecSetValue(v[k], r, (PetscScalar)(PetscSinReal((PetscReal)(r * (k + 1)) / 17) + (r % 3 ? 1.2 : -0.7)), INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
  }
  PetscCall(MatNullSpaceCreate(PetscObjectComm((PetscObject)A), PETSC_FALSE, nvec, v, &null));
  PetscCall(MatSetNearNullSpace(A, null));
  PetscCall(MatNullSpaceDestroy(&null));
  for (PetscInt k = 0; k < nvec; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  Way         way;
} Problems[] = {
  {"7 points",                            ALL },
  {"27 points",                           ALL },
  {"anisotropic",                         ALL },
  {"jumps",                               ALL },
  {"convection",                          ALL },
  {"rows zeroed",                         NONE},
  {"Dirichlet rows and columns",          ALL },
  {"Neumann, null space attached",        ALL },
  {"Neumann, near-null space attached",   ALL },
  {"random graph, vertices alone",        ALL },
  {"denser random graph",                 ALL },
  {"rows without a diagonal entry",       NONE},
  {"a zero on the diagonal",              ALL },
  {"n < 50",                              ALL },
  {"all vertices alone",                  ALL },
  {"blocks of 3",                         NONE},
  {"a near-null vector",                  ALL },
  {"two near-null vectors",               NONE},
  {"5 points, known to be SPD",           ALL },
  {"said to be symmetric, but is not",    NONE},
};

static PetscErrorCode Problem(PetscInt k, Mat *A)
{
  PetscFunctionBeginUser;
  switch (k) {
  case 0:
    PetscCall(Grid(3, 14, LAPLACE, A));
    break;
  case 1:
    PetscCall(MatTestStencil(3, 11, PETSC_TRUE, 0, MATAIJ, A));
    break;
  case 2:
    PetscCall(Grid(2, 40, ANISOTROPIC, A));
    break;
  case 3:
    PetscCall(Grid(2, 37, JUMPS, A));
    break;
  case 4:
    PetscCall(MatTestStencil(2, 35, PETSC_FALSE, 0.7, MATAIJ, A));
    break;
  case 5:
    PetscCall(Dirichlet(30, PETSC_FALSE, A));
    break;
  case 6:
    PetscCall(Dirichlet(30, PETSC_TRUE, A));
    break;
  case 7:
  case 8:
    PetscCall(Grid(2, 33, NEUMANN, A));
    PetscCall(AttachConstant(*A, (PetscBool)(k == 8)));
    break;
  case 9:
    PetscCall(Random(1500, 4, 1, PETSC_TRUE, 1.0, A));
    break;
  case 10:
    PetscCall(Random(2000, 15, 2, PETSC_TRUE, 2.0, A));
    break;
  case 11:
    PetscCall(Random(900, 4, 3, PETSC_FALSE, 1.0, A));
    break;
  case 12:
    PetscCall(Random(900, 4, 4, PETSC_TRUE, 0.0, A));
    break;
  case 13:
    PetscCall(Grid(2, 6, LAPLACE, A));
    break;
  case 14:
    PetscCall(Random(300, 0, 1, PETSC_TRUE, 1.0, A));
    break;
  case 15:
    PetscCall(Blocks(16, 3, A));
    break;
  case 16:
    PetscCall(Grid(2, 36, LAPLACE, A));
    PetscCall(AttachVectors(*A, 1));
    break;
  case 17:
    PetscCall(Grid(2, 36, LAPLACE, A));
    PetscCall(AttachVectors(*A, 2));
    break;
  case 18:
    PetscCall(Grid(2, 36, LAPLACE, A));
    PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
    break;
  case 19:
    PetscCall(Dirichlet(20, PETSC_FALSE, A));
    PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same matrix of this type, with nothing allocated besides */
static PetscErrorCode OfType(Mat A, MatType type, Mat *H)
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

/* What options say, on two problems: a grid, and a random graph with vertices alone */
static const struct {
  const char *options;
  Way         way;
  PetscReal   tol;
  PetscBool   brief; /* with -short too */
} Lines[] = {
  {"-pc_gamg_aijhybridgpu 0",                                                               NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_agg_nsmooths 2",                                                               NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_threshold 0.05",                                                               NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_threshold 0",                                                                  NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_threshold -0.5",                                                               ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_threshold -1,0.01",                                                            SOME, LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 0",                                                      ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 2",                                                      ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 9 -pc_gamg_agg_nsmooths 0",                              ALL,  TIGHT, PETSC_FALSE},
  {"-pc_gamg_square_graph 2",                                                               ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0",                                                    NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 3",                        NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 1 -pc_gamg_eigenvalues 0.1,2.2", ALL, TIGHT, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_coarsening 0",                   ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_mis_k_minimum_degree_ordering",                                                NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_mat_coarsen_type hem",                                                         NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_mat_coarsen_type mis -pc_gamg_aggressive_coarsening 0",                        NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_mat_coarsen_type misk",                                                        ALL,  LOOSE, PETSC_FALSE},
  {"-mat_coarsen_type mis",                                                                 SOME, LOOSE, PETSC_FALSE},
  {"-pc_gamg_asm_use_agg",                                                                  NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_asm_hem_aggs 2",                                                               NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_graph_symmetrize 0",                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_low_memory_threshold_filter",                                                  ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_use_sa_esteig 0",                                                              ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_recompute_esteig 0",                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_esteig_ksp_type cg",                                                           ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_esteig_ksp_max_it 4 -pc_gamg_esteig_pc_type jacobi",                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_reuse_interpolation 0",                                                        ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_coarse_eq_limit 20",                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_coarse_eq_limit 200 -pc_gamg_process_eq_limit 1000",                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_parallel_coarse_grid_solver",                                                  ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_cpu_pin_coarse_grids",                                                         NONE, LOOSE, PETSC_FALSE},
  {"-pc_mg_type full -pc_mg_cycle_type w",                                                  ALL,  LOOSE, PETSC_FALSE},
  {"-pc_mg_distinct_smoothup -mg_levels_ksp_type richardson -mg_levels_pc_type sor",        ALL,  LOOSE, PETSC_FALSE},
  {"-mg_levels_ksp_chebyshev_esteig 0,0.2,0,1.1 -mg_levels_ksp_max_it 3",                   ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_square_0_mat_product_algorithm sorted",                                        ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_prolongator_filter 0.02",                                                      NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_agg_view_prolongation ascii:/dev/null",                                        NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_type classical",                                                               NONE, LOOSE, PETSC_FALSE},
};

static PetscErrorCode TestOptions(PetscBool few)
{
  PetscFunctionBeginUser;
  for (int problem = 0; problem < 2; problem++) {
    Mat S, A, H;

    MatTestName = problem ? "options, random graph" : "options, grid";
    if (problem) PetscCall(Random(1500, 5, 7, PETSC_TRUE, 1.0, &S));
    else PetscCall(Grid(2, 45, LAPLACE, &S));
    PetscCall(OfType(S, MATAIJ, &A));
    PetscCall(OfType(S, "aijhybridgpu", &H));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Lines); k++)
      if (Lines[k].brief || !few) PetscCall(Beside(A, H, Lines[k].options, Lines[k].way, Lines[k].tol));
    PetscCall(MatDestroy(&S));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&H));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sequences */

/* two solvers, set up now, and how many levels ran here */
static PetscErrorCode SetUpBoth(KSP a, KSP h, Way way, PetscReal tol, const char *what)
{
  PC       pa, ph;
  PetscInt before, nlevels;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(KSPSetUp(a));
  PetscCall(Levels(&before));
  PetscCall(KSPSetUp(h));
  PetscCall(SameHierarchy(pa, ph, tol, what, &nlevels));
  PetscCall(CheckWay(way, before, nlevels, what));
  PetscCall(Solve(a, h, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values of both change in the same way, so that other eigenvalues come out */
static PetscErrorCode Change(Mat A, PetscInt step)
{
  Vec      d;
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(VecGetOwnershipRange(d, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(VecSetValue(d, r, 1.0 + (PetscReal)((r * (7 + step)) % 13) / 10, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(d));
  PetscCall(VecAssemblyEnd(d));
  PetscCall(MatDiagonalScale(A, d, d));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestAgain(const char *options, Way renewed)
{
  Mat S, A, H, A2, H2;
  KSP a, h;
  PC  pa, ph;

  PetscFunctionBeginUser;
  MatTestName = "setup again";
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfType(S, MATAIJ, &A));
  PetscCall(OfType(S, "aijhybridgpu", &H));
  PetscCall(MatDestroy(&S));
  PetscCall(Random(1600, 5, 3, PETSC_TRUE, 1.0, &S));
  PetscCall(OfType(S, MATAIJ, &A2));
  PetscCall(OfType(S, "aijhybridgpu", &H2));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "the first"));
  for (PetscInt step = 0; step < 2; step++) {
    PetscCall(Change(A, step));
    PetscCall(Change(H, step));
    PetscCall(KSPSetOperators(a, A, A));
    PetscCall(KSPSetOperators(h, H, H));
    PetscCall(SetUpBoth(a, h, renewed, LOOSE, "new values"));
  }
  PetscCall(SameView(a, h, "new values"));
  PetscCall(PCReset(pa)); /* another matrix of the same sizes: PETSc does not look at its pattern */
  PetscCall(PCReset(ph));
  PetscCall(KSPSetOperators(a, A2, A2));
  PetscCall(KSPSetOperators(h, H2, H2));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "another matrix"));
  PetscCall(KSPReset(a));
  PetscCall(KSPReset(h));
  PetscCall(KSPSetOperators(a, A, A));
  PetscCall(KSPSetOperators(h, H, H));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "after KSPReset()"));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(H, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(H, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt r = 0; r < 300; r += 3) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSetValue(k ? H : A, r, r + 700, -0.3, INSERT_VALUES));
      PetscCall(MatSetValue(k ? H : A, r + 700, r, -0.3, INSERT_VALUES));
    }
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatAssemblyBegin(k ? H : A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(k ? H : A, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(KSPSetOperators(a, A, A));
  PetscCall(KSPSetOperators(h, H, H));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "new entries"));
  PetscCall(PCGAMGSetType(pa, PCGAMGAGG));
  PetscCall(PCGAMGSetType(ph, PCGAMGAGG));
  PetscCall(PCGAMGSetType(ph, PCGAMGCLASSICAL));
  PetscCall(PCGAMGSetType(ph, PCGAMGAGG));
  PetscCall(PCReset(pa));
  PetscCall(PCReset(ph));
  PetscCall(KSPSetOperators(a, A, A));
  PetscCall(KSPSetOperators(h, H, H));
  PetscCall(KSPSetFromOptions(a));
  PetscCall(KSPSetFromOptions(h));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "PCGAMGSetType() again"));
  PetscCall(PCSetType(ph, PCJACOBI));
  PetscCall(PCSetType(ph, PCGAMG));
  PetscCall(PCSetType(pa, PCJACOBI));
  PetscCall(PCSetType(pa, PCGAMG));
  PetscCall(KSPSetFromOptions(a));
  PetscCall(KSPSetFromOptions(h));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "PCSetType() away and back"));
  PetscCall(KSPDestroy(&a));
  PetscCall(KSPDestroy(&h));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&H));
  PetscCall(MatDestroy(&A2));
  PetscCall(MatDestroy(&H2));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* coordinates, which PETSc makes near-null vectors of; a PC that never sees its options; one under a prefix */
static PetscErrorCode TestOthers(void)
{
  Mat       S, A, H;
  PetscReal coords[1600];

  PetscFunctionBeginUser;
  MatTestName = "other ways";
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfType(S, MATAIJ, &A));
  PetscCall(OfType(S, "aijhybridgpu", &H));
  for (PetscInt r = 0; r < 1600; r++) coords[r] = (PetscReal)(r % 40);
  for (int which = 0; which < 3; which++) {
    KSP         a, h, ksp[2];
    const char *what[] = {"coordinates", "without options", "under a prefix, switched off"};

    PetscCall(Options("-x_pc_gamg_aijhybridgpu 0", PETSC_TRUE));
    PetscCall(Solver(A, &a));
    PetscCall(Solver(H, &h));
    ksp[0] = a;
    ksp[1] = h;
    for (int k = 0; k < 2; k++) {
      PC pc;

      PetscCall(KSPGetPC(ksp[k], &pc));
      PetscCall(PCSetOperators(pc, k ? H : A, k ? H : A));
      if (which == 0) PetscCall(PCSetCoordinates(pc, 1, 1600, coords));
      if (which == 1) {
        PetscCall(PCSetType(pc, PCNONE));
        PetscCall(PCSetType(pc, PCGAMG));
      }
      if (which == 2) {
        PetscCall(KSPSetOptionsPrefix(ksp[k], "x_"));
        PetscCall(KSPSetFromOptions(ksp[k]));
      }
    }
    PetscCall(SetUpBoth(a, h, which == 2 ? NONE : ALL, LOOSE, what[which]));
    PetscCall(KSPDestroy(&a));
    PetscCall(KSPDestroy(&h));
    PetscCall(Options("-x_pc_gamg_aijhybridgpu 0", PETSC_FALSE));
  }
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error in the middle of a setup, then the same PC again */
static PetscErrorCode TestError(void)
{
  Mat            S, A, H;
  KSP            a, h;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  MatTestName = "error";
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfType(S, MATAIJ, &A));
  PetscCall(OfType(S, "aijhybridgpu", &H));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(Options("-pc_gamg_esteig_ksp_type nosuch", PETSC_TRUE));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSetUp(h);
  PetscCall(PetscPopErrorHandler());
  Check3((PetscBool)(ierr == PETSC_ERR_ARG_UNKNOWN_TYPE), "an unknown type of KSP is an error", "", "", __LINE__);
  PetscCall(Options("-pc_gamg_esteig_ksp_type nosuch", PETSC_FALSE));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "after an error"));
  PetscCall(KSPDestroy(&a));
  PetscCall(KSPDestroy(&h));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every allocation of ours that a setup makes fails once: an error each time, and after it the same PC does its setup */
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  int count, target;
} F;

static PetscErrorCode Malloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  if (file && (strstr(file, "impls/gamg/level.c") || strstr(file, "impls/gamg/witness.c") || strstr(file, "impls/gamg/estimate.c") || strstr(file, "src/sparse/")) && !strstr(file, "petsc-") && ++F.count == F.target) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected");
  }
  return (*F.malloc)(bytes, clear, line, func, file, ptr);
}

static PetscErrorCode TestFaults(PetscInt every)
{
  Mat S, A, H;
  KSP a;
  int failed = 0;

  PetscFunctionBeginUser;
  MatTestName = "faults";
  PetscCall(Grid(2, 25, LAPLACE, &S));
  PetscCall(AttachVectors(S, 1));
  PetscCall(OfType(S, MATAIJ, &A));
  PetscCall(OfType(S, "aijhybridgpu", &H));
  PetscCall(Solver(A, &a));
  for (int target = 1; target < 4000; target += failed < 16 ? 1 : (int)every) {
    KSP            h;
    PetscErrorCode ierr;

    PetscCall(Solver(H, &h));
    F.count  = 0;
    F.target = target;
    F.malloc = PetscTrMalloc;
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    PetscTrMalloc = Malloc;
    ierr          = KSPSetUp(h);
    PetscTrMalloc = F.malloc;
    PetscCall(PetscPopErrorHandler());
    if (!ierr) { /* the setup has no more allocations */
      PetscCall(KSPDestroy(&h));
      break;
    }
    failed++;
    Check3((PetscBool)(ierr == PETSC_ERR_MEM), "a failed allocation is an error", "", "", __LINE__);
    PetscCall(SetUpBoth(a, h, ALL, LOOSE, "after a failed allocation"));
    PetscCall(KSPDestroy(&h));
  }
  Check3((PetscBool)(failed > 10), "allocations failed", "", "", __LINE__);
  PetscCall(KSPDestroy(&a));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    only = -1;
  PetscBool   few  = PETSC_FALSE;
  PetscMPIInt size;
  int         code = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-problem", &only, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-short", &few, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  Covers = (PetscBool)(size == 1 && PETSC_VERSION_GE(3, 21, 0) && PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX) && sizeof(PetscInt) == 4);
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Problems); k++) {
    Mat S, A, H;

    if (only >= 0 ? k != only : few && k % 4) continue;
    MatTestName = Problems[k].name;
    PetscCall(Problem(k, &S));
    PetscCall(OfType(S, MATAIJ, &A));
    PetscCall(OfType(S, "aijhybridgpu", &H));
    PetscCall(Beside(A, H, "", Problems[k].way, LOOSE));
    PetscCall(Beside(A, H, "-pc_gamg_eigenvalues 0.1,2.2", Problems[k].way, TIGHT));
    PetscCall(Beside(A, H, "-pc_gamg_agg_nsmooths 0", Problems[k].way, TIGHT));
    PetscCall(MatDestroy(&S));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&H));
  }
  if (only < 0 && size == 1) {
    PetscCall(TestOptions(few));
    PetscCall(TestOthers());
  }
  if (only < 0 && Covers) { /* some of this an older PETSc cannot do by itself */
    PetscCall(TestError());
    PetscCall(TestAgain("", NONE));
    if (!few) PetscCall(TestAgain("-pc_gamg_recompute_esteig 0 -pc_gamg_use_sa_esteig 0", NONE));
    PetscCall(TestAgain("-pc_gamg_reuse_interpolation 0", ALL));
    if (!few) PetscCall(TestFaults(2));
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
