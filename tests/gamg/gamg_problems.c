/*
  PCGAMG on the type beside PCGAMG on MATAIJ: classes of problems, and options.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -short
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -problem 4
TEST np=2 -mat_aijhybridgpu_backend host -short
TEST np=1 -mat_aijhybridgpu_backend host -thresholds
TEST np=1 @emulated -short -thresholds
TEST np=2 -mat_aijhybridgpu_backend host -short -thresholds
TEST np=2 @emulated -thresholds -short -problem 4
TEST np=+3 -mat_aijhybridgpu_backend host -problem 51
TEST np=+1 -mat_aijhybridgpu_backend host -malloc_debug -problem 4

-short: fewer problems and options. -thresholds: with thresholds for the graph's edges. -problem K: one problem only.
*/
#include "gamgtest.h"

/* D^-1 A has two eigenvalues: behind two steps of Arnoldi's process there is nothing but rounding, the same in PETSc's
   loops for rows of two entries */
static PetscErrorCode Pairs(PetscInt n, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 2, NULL, 1, NULL, A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscCall(MatSetValue(*A, r, r, 4.0, INSERT_VALUES));
    PetscCall(MatSetValue(*A, r, r ^ 1, -1.0, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
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
  if (both)
    PetscCall(MatZeroRowsColumns(*A, nrows, rows, 4.0, NULL, NULL));
  else
    PetscCall(MatZeroRows(*A, nrows, rows, 4.0, NULL, NULL));
  if (both) { /* without the zeros that stay where columns were */
    Mat       C;
    PetscInt  m = end - start, N = n * n;
    PetscBool zero;

    PetscCall(MatTestRoom(MATAIJ, m, m, N, N, 5, &C, NULL, NULL));
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
    PetscCall(MatTestAssemble(C));
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
  if (near)
    PetscCall(MatSetNearNullSpace(A, null));
  else
    PetscCall(MatSetNullSpace(A, null));
  PetscCall(MatNullSpaceDestroy(&null));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Edges of one direction: the union with the transpose is PETSc's graph, unless that is not asked for, or the matrix
   claims to need none. */
static PetscErrorCode OneSided(Mat A, Mat H, PetscMPIInt size)
{
  PetscFunctionBeginUser;
  PetscCall(Beside(A, H, "-pc_gamg_aggressive_coarsening 0", ALL, LOOSE));
  /* with these PETSc's code goes on for ever on several processes */
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Beside(A, H, "-pc_gamg_aggressive_square_graph 0 -pc_gamg_eigenvalues 0.1,2.2", ALL, TIGHT));
  PetscCall(Beside(A, H, "-pc_gamg_low_memory_threshold_filter -pc_gamg_eigenvalues 0.1,2.2", ALL, TIGHT));
  PetscCall(Beside(A, H, "-pc_gamg_graph_symmetrize 0 -pc_gamg_eigenvalues 0.1,2.2", NONE, TIGHT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  Way         way;
} Problems[] = {
  {"7 points",                          ALL },
  {"27 points",                         ALL },
  {"anisotropic",                       ALL },
  {"jumps",                             ALL },
  {"convection",                        ALL },
  {"rows zeroed",                       ALL },
  {"Dirichlet rows and columns",        ALL },
  {"Neumann, null space attached",      ALL },
  {"Neumann, near-null space attached", ALL },
  {"random graph, vertices alone",      ALL },
  {"denser random graph",               ALL },
  {"rows without a diagonal entry",     ALL },
  {"a zero on the diagonal",            ALL },
  {"n < 50",                            ALL },
  {"all vertices alone",                ALL },
  {"blocks of 3",                       ALL },
  {"a near-null vector",                ALL },
  {"two near-null vectors",             ALL },
  {"5 points, known to be SPD",         ALL },
  {"said to be symmetric, but is not",  NONE},
  {"pairs, two eigenvalues",            ALL },
  {"no rows",                           ALL },
};

#define CONVECTION 4
#define ONESIDED   5
#define NEUMANN1   7
#define NEUMANN2   8
#define NODIAGONAL 11
#define BLOCKS     15
#define VECTOR     16
#define VECTORS    17
#define CLAIMED    19
#define PAIRS      20
#define NOROWS     21 /* the last one */
#define EVENTS     50 /* not problems: the events of some, */
#define OPTIONS    51 /* and what options say */

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
  case 20:
    PetscCall(Pairs(1200, A));
    break;
  case 21:
    PetscCall(Random(0, 4, 1, PETSC_TRUE, 1.0, A));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What options say, on two problems: a grid, and a random graph with vertices alone */
typedef struct {
  const char *options;
  Way         way;
  PetscReal   tol;
  PetscBool   brief; /* with -short too */
} Line;
static const Line Lines[] = {
  {"-pc_gamg_aijhybridgpu 0",                                                                                                        NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_agg_nsmooths 2",                                                                                                        ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_agg_nsmooths 3 -pc_gamg_eigenvalues 0.1,2.2",                                                                           ALL,  TIGHT, PETSC_FALSE},
  {"-pc_gamg_agg_nsmooths 9 -pc_gamg_eigenvalues 0.1,2.2",                                                                           NONE, TIGHT, PETSC_FALSE},
  {"-pc_gamg_threshold 0.05",                                                                                                        ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_threshold 0",                                                                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_threshold -0.5",                                                                                                        ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_threshold -1,0.01",                                                                                                     ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 0",                                                                                               ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 2",                                                                                               ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 9 -pc_gamg_agg_nsmooths 0",                                                                       ALL,  TIGHT, PETSC_FALSE},
  {"-pc_gamg_square_graph 2",                                                                                                        ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0",                                                                                             ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_coarsening 2",                                                            ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 3",                                                                 ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 4 -pc_gamg_eigenvalues 0.1,2.2",                                    NONE, TIGHT, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_mis_k_minimum_degree_ordering -pc_gamg_threshold 0.02 -pc_gamg_eigenvalues 0.1,2.2", ALL,  TIGHT, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 1 -pc_gamg_eigenvalues 0.1,2.2",                                    ALL,  TIGHT, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_coarsening 0",                                                            ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_mis_k_minimum_degree_ordering",                                                                                         ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_mis_k_minimum_degree_ordering -pc_gamg_aggressive_coarsening 0 -pc_gamg_eigenvalues 0.1,2.2",                           ALL,  TIGHT, PETSC_TRUE },
  {"-pc_gamg_mat_coarsen_type hem",                                                                                                  NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_mat_coarsen_type mis -pc_gamg_aggressive_coarsening 0",                                                                 NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_mat_coarsen_type misk",                                                                                                 ALL,  LOOSE, PETSC_FALSE},
  {"-mat_coarsen_type mis",                                                                                                          SOME, LOOSE, PETSC_FALSE},
  {"-pc_gamg_asm_use_agg",                                                                                                           NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_asm_hem_aggs 2",                                                                                                        NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_graph_symmetrize 0",                                                                                                    ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_low_memory_threshold_filter",                                                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_use_sa_esteig 0",                                                                                                       ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_recompute_esteig 0",                                                                                                    ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_esteig_ksp_type cg",                                                                                                    ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_esteig_ksp_max_it 4 -pc_gamg_esteig_pc_type jacobi",                                                                    ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_reuse_interpolation 0",                                                                                                 ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_coarse_eq_limit 20",                                                                                                    ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_coarse_eq_limit 200 -pc_gamg_process_eq_limit 1000",                                                                    ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_parallel_coarse_grid_solver",                                                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_cpu_pin_coarse_grids",                                                                                                  NONE, LOOSE, PETSC_FALSE},
  {"-pc_mg_type full -pc_mg_cycle_type w",                                                                                           ALL,  LOOSE, PETSC_FALSE},
  {"-pc_mg_distinct_smoothup -mg_levels_ksp_type richardson -mg_levels_pc_type sor",                                                 ALL,  LOOSE, PETSC_FALSE},
  {"-mg_levels_ksp_chebyshev_esteig 0,0.2,0,1.1 -mg_levels_ksp_max_it 3",                                                            ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_square_0_mat_product_algorithm sorted",                                                                                 ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_prolongator_filter 0.02",                                                                                               NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_agg_view_prolongation ascii:/dev/null",                                                                                 NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_type classical",                                                                                                        NONE, LOOSE, PETSC_FALSE},
};

/* What MATAIJ cannot do in older releases. Before 3.26 (seen with 3.24.6) heavy edge matching for ASM reads values that
   the squared graph has not, that square is always A^T A, whose algorithms have other names, and prolongators are not
   filtered. Before 3.22 (seen with 3.21.6) the kind of coarsening is not taken from these options. */
static PetscBool Lacks(const char *options)
{
  /* PETSc registers its end at each PC, which a PETSc with debugging refuses the second time */
  if (PetscDefined(USE_DEBUG) && strstr(options, "-pc_gamg_type classical")) return PETSC_TRUE;
  if (PETSC_VERSION_LT(3, 22, 0) && (strstr(options, "coarsen_type hem") || strstr(options, "coarsen_type mis "))) return PETSC_TRUE;
  return (PetscBool)(PETSC_VERSION_LT(3, 26, 0) && (strstr(options, "asm_hem_aggs") || strstr(options, "pc_gamg_square_0_") || strstr(options, "prolongator_filter")));
}

/* On several processes algorithms of products have other names, PETSc's independent sets of distance 2 and more go on
   for ever where some vertices are alone, as in the random graph, and what is PETSc's own, as these sets are before
   3.26, is left out but for a few. */
static PetscBool LacksParallel(const Line *line, int problem)
{
  if ((problem || PETSC_VERSION_LT(3, 26, 0)) && strstr(line->options, "square_graph 0") && !strstr(line->options, "mis_k 1") && !strstr(line->options, "coarsening 0")) return PETSC_TRUE;
  return (PetscBool)(strstr(line->options, "mat_product_algorithm") || (line->way == NONE && !line->brief));
}

static PetscErrorCode TestOptions(PetscBool few)
{
  const PetscMPIInt size = MatTestSize();

  PetscFunctionBeginUser;
  /* Both matrices are positive definite: with 1 in the random one's middle row plain aij takes 11 to 22 iterations from
     run to run on three processes, and CG's estimates are rounding enlarged */
  for (int problem = 0; problem < 2; problem++) {
    Mat S, A, H;

    MatTestName = problem ? "options, random graph" : "options, grid";
    if (problem)
      PetscCall(Random(1500, 5, 7, PETSC_TRUE, 20.0, &S));
    else
      PetscCall(Grid(2, 45, LAPLACE, &S));
    PetscCall(OfBothTypes(S, &A, &H));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Lines); k++)
      if (Lacks(Lines[k].options) || (size > 1 && LacksParallel(&Lines[k], problem)))
        MatTestSkipped++;
      else if (Lines[k].brief || !few)
        PetscCall(Beside(A, H, Lines[k].options, Lines[k].way, Lines[k].tol));
    PetscCall(MatTestDestroy(&S, &A, &H));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Begins and ends of GAMG's events while ksp is set up, one a line, as -log_trace tells them; ours of this name are not
   PETSc's */
static PetscErrorCode Trace(KSP ksp, char **text)
{
#if PETSC_VERSION_GE(3, 21, 0)
  char           *all, *to, *next;
  size_t          size;
  FILE           *f = open_memstream(&all, &size);
  PetscLogHandler handler;

  PetscFunctionBeginUser;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a trace");
  PetscCall(PetscLogHandlerCreateTrace(PETSC_COMM_WORLD, f, &handler));
  PetscCall(PetscLogHandlerStart(handler));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PetscLogHandlerStop(handler));
  PetscCall(PetscLogHandlerDestroy(&handler));
  fclose(f);
  PetscCall(PetscCalloc1(size + 1, text));
  to = *text;
  for (char *line = all; line && *line; line = next) {
    const char *name = strstr(line, "Event ");

    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (name && strstr(name, "GAMG") && !strstr(name, "Hyb")) to += sprintf(to, "%s\n", name);
  }
  free(all);
#else
  PetscFunctionBeginUser;
  *text = NULL;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GAMG's events are PETSc's, in PETSc's order: the example by which PETSc is asked shows in none */
static PetscErrorCode TestEvents(void)
{
  static const char *const lines[] = {"", "-pc_gamg_threshold 0.02 -pc_gamg_aggressive_coarsening 0", "-pc_gamg_agg_nsmooths 2", "-pc_gamg_agg_nsmooths 0", "-pc_gamg_aggressive_square_graph 0"};
  Mat                      S, A, H;
  const PetscMPIInt        size = MatTestSize();

  PetscFunctionBeginUser;
  MatTestName = "events";
  PetscCall(Grid(2, 45, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  for (int k = 0; k < (size > 1 ? 4 : 5); k++) {
    KSP   ksp[2];
    char *text[2], why[256] = "";

    PetscCall(Options(lines[k], PETSC_TRUE));
    for (int ours = 0; ours < 2; ours++) {
      PetscCall(Solver(ours ? H : A, &ksp[ours]));
      PetscCall(Trace(ksp[ours], &text[ours]));
    }
    if (strcmp(text[0], text[1])) {
      size_t at = 0;

      while (text[0][at] && text[0][at] == text[1][at]) at++;
      while (at && text[0][at - 1] != '\n') at--;
      snprintf(why, sizeof(why), "\"%.90s\", not \"%.90s\"", text[1] + at, text[0] + at);
    }
    Check3((PetscBool)(!why[0] && strstr(text[0], "GAMG MIS")), "the same events", lines[k], why, __LINE__);
    for (int ours = 0; ours < 2; ours++) {
      PetscCall(PetscFree(text[ours]));
      PetscCall(KSPDestroy(&ksp[ours]));
    }
    PetscCall(Options(lines[k], PETSC_FALSE));
  }
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 21, 0) && PETSC_VERSION_LT(3, 27, 0)
/* PETSc's creator of coarsenings, which counts */
static PetscInt Coarsenings;

PETSC_EXTERN PetscErrorCode MatCoarsenCreate_MISK(MatCoarsen); /* exported; no header has it */

static PetscErrorCode CountingMISK(MatCoarsen c)
{
  PetscFunctionBeginUser;
  Coarsenings++;
  PetscCall(MatCoarsenCreate_MISK(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc is asked by an example until its answer has changed from one level to the next, and no more: levels of
   aggressive coarsening are the first ones */
static PetscErrorCode TestAsked(void)
{
  static const struct {
    const char *options;
    PetscInt    asked; /* -1: on each level */
  } lines[] = {
    {"",                                                          2 },
    {"-pc_gamg_aggressive_square_graph 0",                        2 },
    {"-pc_gamg_aggressive_coarsening 2",                          3 },
    {"-pc_gamg_aggressive_coarsening 0",                          -1},
    {"-pc_gamg_threshold 0.001,-1,-1 -pc_gamg_threshold_scale 1", 3 },
  };
  Mat      S, H;
  KSP      ksp;
  PC       pc;
  PetscInt levels;

  PetscFunctionBeginUser;
  MatTestName = "asked";
  PetscCall(Grid(2, 90, LAPLACE, &S));
  PetscCall(MatCoarsenRegister(MATCOARSENMISK, CountingMISK));
  for (size_t k = 0; k < 2 * PETSC_STATIC_ARRAY_LENGTH(lines); k++) {
    const size_t line = k / 2;
    char         why[64];

    /* of two vectors the block is another one from the second level on, whose rules change as well or not */
    PetscCall(MatSetNearNullSpace(S, NULL));
    if (k % 2) PetscCall(AttachVectors(S, 2));
    PetscCall(OfType(S, "aijhybridgpu", &H));
    PetscCall(Options(lines[line].options, PETSC_TRUE));
    PetscCall(Solver(H, &ksp));
    for (int again = 0; again < 2; again++) {
      Coarsenings = 0;
      PetscCall(KSPSetUp(ksp));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCMGGetLevels(pc, &levels));
      snprintf(why, sizeof(why), "%d times on %d levels, %d vectors", (int)Coarsenings, (int)levels, 1 + (int)(k % 2));
      Check3((PetscBool)(levels > 3 && Coarsenings == (lines[line].asked < 0 ? levels - 1 : lines[line].asked)), "asked as often as it may answer otherwise", lines[line].options, why, __LINE__);
      PetscCall(KSPReset(ksp));
      PetscCall(KSPSetOperators(ksp, H, H));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(Options(lines[line].options, PETSC_FALSE));
    PetscCall(MatDestroy(&H));
  }
  PetscCall(MatCoarsenRegister(MATCOARSENMISK, MatCoarsenCreate_MISK));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscInt k = 0; PETSC_VERSION_GE(3, 21, 0) && k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Problems); k++) {
    const PetscBool singular = (PetscBool)(k == NEUMANN1 || k == NEUMANN2);
    const PetscReal tight    = k == VECTOR || k == VECTORS ? GIVEN : TIGHT;
    const Way       way      = Problems[k].way;
    Mat             S, A, H;

    if (Only >= 0 ? k != Only : Few && k % 4) continue;
    if (size > 1 && (k == NODIAGONAL || k == CLAIMED)) { /* MATAIJ ends with an error, or goes on for ever */
      MatTestSkipped++;
      continue;
    }
    /* MATAIJ then takes the graph for its own transpose when it squares it */
    if (PETSC_VERSION_LT(3, 26, 0) && k == CLAIMED) {
      MatTestSkipped++;
      continue;
    }
    MatTestName = Problems[k].name;
    /* the coarsest operator is singular too: an LU factor's last pivot there is rounding alone, and so is the
       solution */
    PetscCall(Options("-mg_coarse_sub_pc_type svd", singular));
    PetscCall(Problem(k, &S));
    PetscCall(OfBothTypes(S, &A, &H));
    /* the estimate amplifies rounding there: both by the host's vectors, on a card too */
    if (k == PAIRS) PetscCall(MatSetVecType(H, VECSTANDARD));
    if (WithThresholds) {
      if (k == CLAIMED)
        PetscCall(Beside(A, H, "-pc_gamg_threshold 0.05", NONE, LOOSE)); /* 0.25 leaves no edges, which is symmetric */
      else
        PetscCall(Thresholds(A, H, way, singular ? SINGULAR : k == CONVECTION || k == ONESIDED ? UNSYMMETRIC
                                                                                               : PLAIN,
                             Few));
    } else {
      PetscCall(Beside(A, H, "", way, LOOSE));
      PetscCall(Beside(A, H, "-pc_gamg_eigenvalues 0.1,2.2", way, tight));
      PetscCall(Beside(A, H, "-pc_gamg_agg_nsmooths 0", way, tight));
      if (k == ONESIDED) PetscCall(OneSided(A, H, size));
    }
    PetscCall(MatTestDestroy(&S, &A, &H));
  }
  if (PETSC_VERSION_GE(3, 21, 0) && (Only < 0 || Only == OPTIONS) && !WithThresholds) PetscCall(TestOptions(Few));
  if (Covers && (Only < 0 || Only == EVENTS)) PetscCall(TestEvents());
#if PETSC_VERSION_GE(3, 21, 0) && PETSC_VERSION_LT(3, 27, 0)
  if (Covers && size == 1 && (Only < 0 || Only == EVENTS)) PetscCall(TestAsked());
#endif
  return MatTestEnd();
}
