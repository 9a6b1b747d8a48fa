/*
  PCGAMG on the type beside PCGAMG on MATAIJ: matrices of which rows have no diagonal entry, or a zero there. Random
  graphs: two-coloured ones, stars, pairs, sparse ones and denser ones, with rows that are empty, without any diagonal
  entry, with some, with all but one; symmetric, or with entries of one direction; of one to three unknowns a vertex. On
  several processes the graphs are such that MATAIJ's set-up ends: where a vertex has one neighbour alone it goes on for
  ever as a rule, but by the square graph. -real: graphs of the folder -matrices.

TEST np=1 -mat_aijhybridgpu_backend host -runs 60
TEST np=1 @emulated -runs 30
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -runs 6 -seed 1000
TEST np=2,3+5 -mat_aijhybridgpu_backend host -runs 40
TEST np=2,3 @emulated -runs 10
TEST np=1+2 -mat_aijhybridgpu_backend host @matrices -real -name wiki-Vote
TEST np=+1 -mat_aijhybridgpu_backend host @matrices -real

-runs N problems from -seed S on; -only K: the K-th alone. -real, -matrices FOLDER: see above; -name N: that one alone.
*/
#include "gamgtest.h"

/* which rows have a diagonal entry, and what it is */
typedef enum {
  NOWHERE,
  SOMEWHERE,
  BUT_ONE,
  ZEROS, /* some are zero, some missing */
  KINDS
} Diagonal;

static struct {
  PetscInt  n, bs, shape; /* vertices, unknowns of each */
  Diagonal  diagonal;
  PetscBool sided, safe; /* safe: each vertex has neighbours enough for MISK's loop to end */
  PetscBool zeros;       /* some entries are zero */
} T;

static void Edge(PetscInt e, PetscInt *i, PetscInt *j)
{
  const PetscInt n = T.n;

  *i = e % n;
  switch (T.shape) {
  case 0: /* a chain */
    *j = *i + 1;
    break;
  case 1: /* stars */
    *j = *i - *i % 9;
    break;
  case 2: /* pairs */
    *j = *i ^ 1;
    break;
  case 3: /* two colours */
    *i = Pick(n);
    *j = *i + 1 + 2 * Pick(20);
    break;
  case 4: /* a row that is longer than a group of a device's threads takes */
    *j = 0;
    break;
  case 5: /* a grid */
    *j = *i + (e < n ? 1 : 13);
    break;
  default:
    *i = Pick(n);
    *j = Pick(3) ? *i + Pick(9) : Pick(n);
    break;
  }
  if (*j >= n || *i % 23 == 7 || *j % 23 == 7) *j = *i;
}

static PetscScalar Value(void)
{
  if (T.zeros && Pick(9) == 0) return 0;
  return (Pick(4) ? -1 : 1) * (1 + (PetscReal)Pick(1000) / 700);
}

/* of the block between two vertices */
static PetscErrorCode Join(Mat A, PetscInt i, PetscInt j)
{
  const PetscInt  bs   = T.bs;
  const PetscBool full = (PetscBool)(bs == 1 || Pick(2)), one = (PetscBool)(T.sided && Pick(3) == 0);

  PetscFunctionBeginUser;
  for (PetscInt e = 0; e < bs * bs; e++) {
    const PetscInt    r = i * bs + e / bs, c = j * bs + e % bs;
    const PetscScalar a = Value(), b = Value();
    const PetscBool   there = (PetscBool)(full || !e || Pick(3) == 0);

    if (there) PetscCall(MatSetValue(A, r, c, a, INSERT_VALUES));
    if (there && !one) PetscCall(MatSetValue(A, c, r, T.sided ? b : a, INSERT_VALUES));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graph(Mat *A)
{
  const PetscInt n = T.n, bs = T.bs, edges = T.shape < 3 || T.shape == 4 ? n : T.shape == 5 ? 2 * n
                                                                                            : n * (1 + Pick(3)),
                 but = Pick(n * bs);
  PetscInt local     = PETSC_DECIDE;

  PetscFunctionBeginUser;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &local, &T.n));
  PetscCall(SetByAll(local, n, bs, 30, A));
  for (PetscInt e = 0; e < edges; e++) {
    PetscInt i, j;

    Edge(e, &i, &j);
    if (i != j) PetscCall(Join(*A, i, j));
  }
  for (PetscInt i = 0; i + 2 < n && T.safe; i++) {
    PetscCall(Join(*A, i, i + 1));
    PetscCall(Join(*A, i, i + 2));
  }
  for (PetscInt r = 0; r < n * bs; r++) {
    const PetscInt draw = Pick(6);

    if (T.diagonal == NOWHERE || (T.diagonal == BUT_ONE && r == but) || (T.diagonal >= SOMEWHERE && T.diagonal != BUT_ONE && draw < 2)) continue;
    PetscCall(MatSetValue(*A, r, r, T.diagonal == ZEROS && draw == 2 ? 0 : 4 + (PetscReal)Pick(100) / 30, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* thresholds that no weight is likely to be; where some are 0 and more vertices lose all edges */
static void Rules(char *line, size_t size, PetscMPIInt processes)
{
  static const char *const limits[] = {"", "", "", " -pc_gamg_threshold 0", " -pc_gamg_threshold 0.0613", " -pc_gamg_threshold 0.213,-1", " -pc_gamg_threshold -1,0.0137", " -pc_gamg_threshold 0.971", " -pc_gamg_threshold 0.0613 -pc_gamg_low_memory_threshold_filter"};
  const PetscInt           limit    = Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(limits));

  snprintf(line, size, "-pc_gamg_eigenvalues 0.1,2.2 -mg_coarse_sub_pc_type svd%s", limits[limit]);
  Add(line, size, " -pc_gamg_agg_nsmooths %d", Pick(3));
  if (Pick(3) == 0) Add(line, size, " -pc_gamg_mis_k_minimum_degree_ordering", 0);
  if (processes > 1 && !T.safe) return;
  Add(line, size, " -pc_gamg_aggressive_coarsening %d", Pick(3));
  if (Pick(3) == 0) Add(line, size, " -pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k %d", processes > 1 ? 1 : 1 + Pick(3));
}

/* of the rows where MATAIJ's loop may not end the square graph is made on the finest level alone */
static PetscErrorCode TwoLevels(PC pc)
{
  PetscFunctionBeginUser;
  PetscCall(PCGAMGSetNlevels(pc, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is P0 outside of what A P0 has, where ours says so? A: MATAIJ */
static PetscErrorCode IsOutside(Mat A, Mat H, char *options, size_t size, PetscBool *outside)
{
  KSP       ksp;
  PC        pc;
  Mat      *P, AP, P0;
  PetscInt  n, start, end;
  PetscBool found = PETSC_FALSE;
  int       all;

  PetscFunctionBeginUser;
  Add(options, size, " -pc_gamg_agg_nsmooths 0", 0);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Solver(H, &ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCGetInterpolations(pc, &n, &P));
  PetscCall(MatConvert(P[n - 2], MATAIJ, MAT_INITIAL_MATRIX, &P0));
  PetscCall(MatMatMult(A, P0, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &AP));
  PetscCall(MatGetOwnershipRange(P0, &start, &end));
  for (PetscInt r = start; r < end && !found; r++) {
    const PetscInt *j, *k;
    PetscInt        nj, nk, e = 0;

    PetscCall(MatGetRow(P0, r, &nj, &j, NULL));
    PetscCall(MatGetRow(AP, r, &nk, &k, NULL));
    while (nj && e < nk && k[e] != j[0]) e++;
    found = (PetscBool)(nj && e == nk);
    PetscCall(MatRestoreRow(P0, r, &nj, &j, NULL));
    PetscCall(MatRestoreRow(AP, r, &nk, &k, NULL));
  }
  all = found;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *outside = (PetscBool)all;
  for (PetscInt k = 0; k < n - 1; k++) PetscCall(MatDestroy(&P[k]));
  PetscCall(PetscFree(P));
  PetscCall(MatTestDestroy(&AP, &P0, &ksp));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On several processes PETSc's smoothing ends with an error on some of them, which the others wait for, where P0 has
   entries that A P0 has not. So ours is asked first, which says so on all. */
static PetscErrorCode Refuses(Mat A, Mat H, char *options, size_t size, PetscBool *refuses)
{
  KSP            ksp;
  PetscBool      outside = PETSC_FALSE;
  PetscErrorCode ierr;
  int            codes[2];

  PetscFunctionBeginUser;
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Solver(H, &ksp));
  QUIETLY(ierr, KSPSetUp(ksp));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(Options(options, PETSC_FALSE));
  codes[0] = ierr == PETSC_ERR_ARG_OUTOFRANGE;
  codes[1] = ierr != PETSC_SUCCESS;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, codes, 2, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *refuses = (PetscBool) !!codes[1];
  if (!codes[1]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(IsOutside(A, H, options, size, &outside));
  Check3((PetscBool)(ierr && codes[0] && outside), "an error on all processes where PETSc has one", options, "", __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* set up, and again with new values */
static PetscErrorCode Again(Mat A, Mat H, const char *options)
{
  Mat      m[]   = {A, H};
  PetscInt reuse = Pick(2), levels;
  char     line[1100];
  KSP      ksp[2];
  PC       pc[2];

  PetscFunctionBeginUser;
  snprintf(line, sizeof(line), "%s -pc_gamg_reuse_interpolation %d", options, (int)reuse);
  PetscCall(Options(line, PETSC_TRUE));
  for (int k = 0; k < 2; k++) {
    PetscCall(Solver(m[k], &ksp[k]));
    PetscCall(KSPSetUp(ksp[k]));
    PetscCall(ChangeValues(m[k], 0));
    PetscCall(KSPSetOperators(ksp[k], m[k], m[k]));
    PetscCall(KSPSetUp(ksp[k]));
    PetscCall(KSPGetPC(ksp[k], &pc[k]));
  }
  PetscCall(SameHierarchy(pc[0], pc[1], GIVEN, line, &levels));
  for (int k = 0; k < 2; k++) PetscCall(KSPDestroy(&ksp[k]));
  PetscCall(Options(line, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void)
{
  char              options[1024];
  Mat               S, A, H;
  const PetscMPIInt size    = MatTestSize();
  PetscBool         refuses = PETSC_FALSE;

  PetscFunctionBeginUser;
  T.shape    = Pick(8);
  T.n        = T.shape == 4 ? 1100 + Pick(99) : 60 + Pick(Pick(3) ? 140 : 600);
  T.bs       = Pick(3) || T.shape == 4 ? 1 : 1 + Pick(3);
  T.diagonal = (Diagonal)Pick(KINDS);
  T.sided    = (PetscBool)(Pick(3) == 0);
  T.zeros    = (PetscBool)(Pick(4) == 0);
  T.safe     = (PetscBool)(size > 1 && Pick(2));
  TellPC     = size > 1 && !T.safe ? TwoLevels : NULL;
  PetscCall(Graph(&S));
  if (Pick(4) == 0) PetscCall(AttachVectors(S, 1 + Pick(2)));
  PetscCall(OfBothTypes(S, &A, &H));
  Rules(options, sizeof(options), size);
  if (size > 1 && Covers && !strstr(options, "nsmooths 0")) PetscCall(Refuses(A, H, options, sizeof(options), &refuses));
  if (!refuses) PetscCall(Beside(A, H, options, ALL, GIVEN));
  if (!refuses && Pick(3) == 0) PetscCall(Again(A, H, options));
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of the folder, or NULL; all processes read it */
static PetscErrorCode Read(const char *folder, const char *name, Mat *A)
{
  char     path[PETSC_MAX_PATH_LEN], command[PETSC_MAX_PATH_LEN + 32], line[256], field[32] = "", symmetry[32] = "";
  long     m = -1, n = -1, nz = -1, i, j;
  double   v;
  PetscInt start, end;
  FILE    *f;

  PetscFunctionBeginUser;
  *A = NULL;
  snprintf(path, sizeof(path), "%s/%s.mtx.xz", folder, name);
  f = fopen(path, "r");
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  fclose(f);
  snprintf(command, sizeof(command), "xz -dc '%s'", path);
  f = popen(command, "r");
  PetscCheck(f && fgets(line, sizeof(line), f) && sscanf(line, "%%%%MatrixMarket matrix coordinate %31s %31s", field, symmetry) == 2, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s cannot be read", path);
  while (fgets(line, sizeof(line), f) && line[0] == '%') {}
  PetscCheck(sscanf(line, "%ld %ld %ld", &m, &n, &nz) == 3, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s has no sizes", path);
  PetscCall(MatTestRoom(MATAIJ, PETSC_DECIDE, PETSC_DECIDE, m, m, 40, A, NULL, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  while (fgets(line, sizeof(line), f) && sscanf(line, "%ld %ld %lf", &i, &j, strcmp(field, "pattern") ? &v : &(double){0}) >= 2) {
    const double a = strcmp(field, "pattern") ? v : 1;

    if (i > start && i <= end) PetscCall(MatSetValue(*A, i - 1, j - 1, a, INSERT_VALUES));
    if (strcmp(symmetry, "general") && j > start && j <= end) PetscCall(MatSetValue(*A, j - 1, i - 1, a, INSERT_VALUES));
  }
  pclose(f);
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestReal(const char *folder)
{
  static const char *const names[] = {"wiki-Vote", "p2p-Gnutella31", "ca-CondMat"};
  /* coarse operators may be large, where most vertices are alone */
  static const char *const lines[] = {"", " -pc_gamg_eigenvalues 0.1,2.2", " -pc_gamg_threshold 0", " -pc_gamg_agg_nsmooths 0 -pc_gamg_mis_k_minimum_degree_ordering"};
  char                     options[256], given[64] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-name", given, sizeof(given), NULL));
  for (size_t k = 0; k < (given[0] ? 1 : PETSC_STATIC_ARRAY_LENGTH(names)); k++) {
    Mat S, A, H;

    MatTestName = given[0] ? given : names[k];
    PetscCall(Read(folder, MatTestName, &S));
    if (!S) MatTestSkipped++;
    if (!S) continue;
    PetscCall(OfBothTypes(S, &A, &H));
    for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(lines); l++) {
      PetscBool         refuses = PETSC_FALSE;
      const PetscMPIInt size    = MatTestSize();

      snprintf(options, sizeof(options), "-mg_coarse_pc_type jacobi%s", lines[l]);
      TellPC = size > 1 ? TwoLevels : NULL;
      if (size > 1 && Covers && !strstr(options, "nsmooths 0")) PetscCall(Refuses(A, H, options, sizeof(options), &refuses));
      if (!refuses) PetscCall(Beside(A, H, options, ALL, strstr(options, "eigen") || strstr(options, "smooths") ? GIVEN : LOOSE));
    }
    PetscCall(MatTestDestroy(&S, &A, &H));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  runs = 10, seed = 1;
  PetscBool real                       = PETSC_FALSE;
  char      folder[PETSC_MAX_PATH_LEN] = "../shared/matrices";

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &Only, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-real", &real, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-matrices", folder, sizeof(folder), NULL));
  MatTestName  = "rows without a diagonal entry";
  WithoutSolve = PETSC_TRUE;
  if (real && Covers) PetscCall(TestReal(folder));
  for (PetscInt k = 0; k < runs && !real && PETSC_VERSION_GE(3, 21, 0); k++) {
    SeedOfRun(seed + k);
    if (Only < 0 || k == Only) PetscCall(Run());
  }
  return MatTestEnd();
}
