/*
  PCGAMG on the type beside PCGAMG on MATAIJ on several processes: random graphs, rows dealt to the processes at random,
  some of which have none or one. With -blocks vertices have one to four unknowns, whose blocks are stored in full or in
  part, and translations, the rigid-body modes of coordinates, or other vectors. With -thresholds weak edges are left
  out; entries and those across the diagonal differ or not, a vertex may have zeros alone on its diagonal, and weights
  may be the threshold itself. With -rules the rules are drawn too, for one process as well: steps of smoothing, MIS-k,
  degrees, injection. With -sided some vertices are joined in one direction alone. With -joined all vertices are joined,
  by a chain besides, and -rules draws MIS-k of two and more on several processes: MATAIJ's own set-up does not always
  end where some of them are alone.

TEST np=2,3 -mat_aijhybridgpu_backend host -runs 12
TEST np=+5,7 -mat_aijhybridgpu_backend host -runs 3
TEST np=2 @emulated -runs 4
TEST np=3 @emulated -mat_aijhybridgpu_memory mirror -runs 2 -seed 77

TEST np=2+3 -mat_aijhybridgpu_backend host -blocks -runs 12
TEST np=2 @emulated -blocks -runs 4
TEST np=3 @emulated -mat_aijhybridgpu_memory mirror -blocks -runs 2 -seed 77

TEST np=2+3 -mat_aijhybridgpu_backend host -thresholds -runs 12
TEST np=2 @emulated -thresholds -runs 4
TEST np=2,3 -mat_aijhybridgpu_backend host -blocks -thresholds -runs 12
TEST np=3 @emulated -mat_aijhybridgpu_memory mirror -blocks -thresholds -runs 2 -seed 77

TEST np=1,2 -mat_aijhybridgpu_backend host -rules -blocks -runs 8
TEST np=1+2 -mat_aijhybridgpu_backend host -rules -thresholds -runs 8
TEST np=1 @emulated -rules -blocks -runs 1 -seed 91522

TEST np=2,3+5 -mat_aijhybridgpu_backend host -rules -joined -runs 10
TEST np=2 -mat_aijhybridgpu_backend host -rules -joined -blocks -runs 10
TEST np=2 @emulated -rules -joined -runs 4
TEST np=3 @emulated -mat_aijhybridgpu_memory mirror -rules -joined -blocks -runs 3

TEST np=1 -mat_aijhybridgpu_backend host -rules -blocks -sided -runs 8
TEST np=1 @emulated -rules -thresholds -sided -runs 8
TEST np=1 @emulated -blocks -thresholds -sided -runs 4

TEST np=2,3 -mat_aijhybridgpu_backend host -sided -runs 8
TEST np=2 @emulated -sided -runs 4
TEST np=2 -mat_aijhybridgpu_backend host -blocks -thresholds -sided -runs 8
TEST np=3 @emulated -mat_aijhybridgpu_memory mirror -blocks -thresholds -sided -runs 3

-runs N problems from -seed S on; -only K: the K-th alone; -thresholds, -blocks, -rules, -sided, -joined: see above.
*/
#include "gamgtest.h"

/* rows of each process: any number of all, or about as many as of others */
static PetscErrorCode Deal(PetscInt n, PetscInt *local)
{
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  PetscInt          left = n;
  const int         even = Pick(3) == 0;

  PetscFunctionBeginUser;
  for (PetscMPIInt r = 0; r < size; r++) {
    PetscInt mine = even ? n / size : Pick(left + 1);

    if (!even && Pick(4) == 0) mine = Pick(2);
    mine = r == size - 1 ? left : PetscMin(mine, left);
    left -= mine;
    if (r == rank) *local = mine;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an edge of a grid of width w, a chain, a star, or between any two */
static void Edge(int kind, PetscInt n, PetscInt w, PetscInt e, PetscInt *i, PetscInt *j)
{
  *i = e % n;
  switch (kind) {
  case 0:
    *j = e < n ? *i + 1 : *i + w;
    if (e < n && *j % w == 0) *j = *i;
    break;
  case 1:
    *j = *i + 1;
    break;
  case 2:
    *j = Pick(8) ? w % n : Pick(n);
    break;
  default:
    *i = Pick(n);
    *j = Pick(4) ? PetscMin(n - 1, *i + Pick(w + 1)) : Pick(n);
    break;
  }
  if (*j >= n) *j = *i;
}

/* numbers[]: new ones of the vertices, mixed or not */
static PetscErrorCode Mix(PetscInt n, PetscInt *numbers)
{
  const int mixed = Pick(3) == 0;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) numbers[k] = k;
  for (PetscInt k = n - 1; k > 0 && mixed; k--) {
    const PetscInt l = Pick(k + 1), was = numbers[k];

    numbers[k] = numbers[l];
    numbers[l] = was;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool OneWay; /* entries and those across the diagonal differ */
static PetscBool Sided;  /* some entries have none across the diagonal */
static PetscBool Joined; /* all vertices */
static PetscBool Ties;   /* numbers of which many are the threshold, without rounding */

/* of the block between two vertices, all entries or some of them, on both sides; what is added to the diagonals */
static PetscErrorCode Couple(Mat A, PetscInt bs, PetscBool full, PetscInt i, PetscInt j, PetscReal v, PetscScalar *d)
{
  const PetscBool one = (PetscBool)(Sided && Pick(4) == 0), back = (PetscBool)(!one || Pick(2));

  PetscFunctionBeginUser;
  for (PetscInt e = 0; e < bs * bs; e++) {
    const PetscInt    r = i * bs + e / bs, c = j * bs + e % bs;
    const PetscScalar a = v / (Ties ? 1 << Pick(3) : 1 + e / bs + e % bs), b = !OneWay ? a : Ties ? a * (PetscReal)Pick(3) / 2
                                                                                                  : a * (PetscReal)Pick(5) / 3;

    if (!full && e && Pick(3)) continue;
    if (!one || !back) PetscCall(MatSetValue(A, r, c, -a, INSERT_VALUES));
    if (back) PetscCall(MatSetValue(A, c, r, -b, INSERT_VALUES));
    d[r] += a;
    d[c] += b;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the diagonals of all vertices; zero: of this one there are zeros, -1: of none */
static PetscErrorCode Diagonals(Mat A, PetscInt n, PetscInt bs, PetscBool full, PetscInt zero, const PetscScalar *d)
{
  PetscFunctionBeginUser;
  for (PetscInt r = 0; r < n * bs; r++) {
    const PetscScalar factor = r / bs == zero ? 0 : 1;

    if (Ties)
      PetscCall(MatSetValue(A, r, r, factor * (PetscReal)(Pick(6) ? 64 : 16), INSERT_VALUES));
    else if (full)
      for (PetscInt c = r - r % bs; c < r - r % bs + bs; c++) PetscCall(MatSetValue(A, r, c, factor * (c == r ? d[r] + 0.1 : 0.01), INSERT_VALUES));
    else
      PetscCall(MatSetValue(A, r, r, factor * (d[r] + 0.1), INSERT_VALUES));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n vertices of bs unknowns; zero: see above */
static PetscErrorCode Graph(PetscInt n, PetscInt bs, PetscBool full, PetscInt zero, Mat *A)
{
  const int      kind = (int)Pick(5);
  const PetscInt w = 1 + Pick(30), edges = kind == 0 ? 2 * n : kind < 3 ? n
                                                                        : n * (1 + Pick(6));
  PetscInt       local = 0, *numbers;
  PetscScalar   *d;

  PetscFunctionBeginUser;
  PetscCall(Deal(n, &local));
  PetscCall(SetByAll(local, n, bs, 40, A));
  PetscCall(PetscCalloc1(n * bs, &d));
  PetscCall(PetscMalloc1(n, &numbers));
  PetscCall(Mix(n, numbers));
  for (PetscInt e = 0; e < edges; e++) {
    const PetscReal v = Ties ? (PetscReal)(1 << Pick(4)) : 1.0 + (PetscReal)Pick(100) / 50.0;
    PetscInt        i, j;

    Edge(kind, n, w, e, &i, &j);
    if (i == j || i % 17 == 5 || j % 17 == 5) continue;
    PetscCall(Couple(*A, bs, full, numbers[i], numbers[j], v, d));
  }
  for (PetscInt i = 0; i + 1 < n && Joined; i++) PetscCall(Couple(*A, bs, full, numbers[i], numbers[i + 1], 1.5, d));
  PetscCall(Diagonals(*A, n, bs, full, zero, d));
  MatTestBoth(PetscFree, numbers, d);
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where this process's vertices are */
static struct {
  PetscInt   dim, nloc;
  PetscReal *xyz;
} Places;

static PetscErrorCode TellPlaces(PC pc)
{
  PetscFunctionBeginUser;
  PetscCall(PCSetCoordinates(pc, Places.dim, Places.nloc, Places.xyz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the near-null vectors of blocks: translations, coordinates, or any number that is attached */
static PetscErrorCode Vectors(Mat A, PetscInt bs)
{
  const PetscInt which = Pick(3);
  PetscInt       start, end;

  PetscFunctionBeginUser;
  TellPC = NULL;
  if (which == 2) PetscCall(AttachMany(A, PETSC_FALSE, 1 + Pick(7)));
  if (which != 1 || bs < 2 || bs > 3) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  Places.dim  = bs;
  Places.nloc = (end - start) / bs;
  PetscCall(PetscFree(Places.xyz));
  PetscCall(PetscMalloc1(end - start + 1, &Places.xyz));
  for (PetscInt k = start; k < end; k++) Places.xyz[k - start] = PetscSinReal((PetscReal)(k * k % 101) + 0.1 * k);
  TellPC = TellPlaces;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* numbers that none of the matrices' is likely to be; with ties those of the finest level, whose numbers are exact */
static const char *Threshold(void)
{
  static const char *const limits[] = {" -pc_gamg_threshold 0", " -pc_gamg_threshold 0.0137", " -pc_gamg_threshold 0.0613", " -pc_gamg_threshold 0.11,0.0237,0", " -pc_gamg_threshold -1,0.0371", " -pc_gamg_threshold 0.213 -pc_gamg_threshold_scale 0.37", " -pc_gamg_threshold 0.0613 -pc_gamg_low_memory_threshold_filter", " -pc_gamg_threshold 0.213 -pc_gamg_low_memory_threshold_filter", " -pc_gamg_threshold 0.71", " -pc_gamg_threshold 0.97"};

  static const char *const exact[] = {"0.25,-1", "0.125,-1", "0.0625,-1", "0.5,-1", "0.96875,-1", "0.125,-1 -pc_gamg_low_memory_threshold_filter", "0,-1 -pc_gamg_low_memory_threshold_filter"};

  if (Ties) {
    static char line[128];

    snprintf(line, sizeof(line), " -pc_gamg_threshold %s", exact[Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(exact))]);
    return line;
  }
  return limits[Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(limits))];
}

static PetscBool WithRules;

/* By which rules aggregates and prolongators are made; *way: which levels are ours then */
static const char *Rules(PetscInt bs, PetscMPIInt size, Way *way)
{
  static char    line[512];
  const PetscInt levels = Pick(4), most = size > 1 && !Joined ? 1 : 4, distance = 1 + Pick(most);

  line[0] = 0;
  Add(line, sizeof(line), " -pc_gamg_agg_nsmooths %d", Pick(4));
  Add(line, sizeof(line), " -pc_gamg_aggressive_coarsening %d", levels);
  if (Pick(2)) Add(line, sizeof(line), " -pc_gamg_mis_k_minimum_degree_ordering", 0);
  if (Pick(3)) {
    Add(line, sizeof(line), " -pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k %d", distance);
    if (distance == 4 && levels) *way = NONE;
    if (PETSC_VERSION_LT(3, 26, 0) && size > 1 && distance > 1) *way = EITHER;
  }
  if (size == 1 && Pick(5) == 0) {
    Add(line, sizeof(line), " -pc_gamg_mat_coarsen_misk_distance %d", 1 + Pick(4));
    *way = EITHER;
  }
  if (size == 1 && Pick(4) == 0) Add(line, sizeof(line), " -pc_gamg_low_memory_threshold_filter", 0);
  if (bs > 1 && Pick(4) == 0) {
    if (bs > 2 && Pick(2))
      Add(line, sizeof(line), " -pc_gamg_injection_index 0,%d", 1 + Pick(bs - 1));
    else
      Add(line, sizeof(line), " -pc_gamg_injection_index %d", Pick(bs));
    *way = EITHER; /* there may be no level below */
  }
  return line;
}

static PetscErrorCode Run(PetscBool blocks)
{
  static const char *const smooth[] = {"-pc_gamg_eigenvalues 0.1,2.2", "-pc_gamg_agg_nsmooths 0"};
  static const char *const more[]   = {"", "", " -pc_gamg_aggressive_coarsening 0", " -pc_gamg_aggressive_coarsening 3", " -pc_gamg_process_eq_limit 7", " -pc_gamg_coarse_eq_limit 5", " -pc_gamg_reuse_interpolation 0", " -pc_gamg_parallel_coarse_grid_solver"};
  const char *const        weak     = WithThresholds ? Threshold() : "";
  /* PETSc filters row by row, collectively */
  const PetscInt    most = strstr(weak, "low_memory") ? 120 : Pick(3) ? 300
                                                            : blocks  ? 600
                                                                      : 1500;
  const PetscInt    n = 1 + Pick(most), bs = blocks ? 1 + Pick(4) : 1;
  const PetscBool   full = (PetscBool)(!blocks || Pick(2));
  PetscInt          zero;
  char              options[1024];
  Way               way  = ALL;
  const PetscMPIInt size = MatTestSize();
  Mat               S, A, H;

  PetscFunctionBeginUser;
  OneWay = (PetscBool)(WithThresholds && Pick(2));
  zero   = WithThresholds && Pick(3) == 0 ? Pick(n) : -1;
  /* where rows and columns differ so much a system can be nearly singular: iterations follow rounding then */
  WithoutSolve = (PetscBool)(OneWay || Sided || zero >= 0 || Ties);
  PetscCall(Graph(n, bs, full, zero, &S));
  if (WithThresholds && !OneWay && !Sided && Pick(3) == 0) PetscCall(MatSetOption(S, Pick(2) ? MAT_SYMMETRIC : MAT_SPD, (PetscBool)(Pick(4) != 0)));
  if (blocks)
    PetscCall(Vectors(S, bs));
  else if (Pick(3) == 0)
    PetscCall(AttachVectors(S, 1));
  PetscCall(OfBothTypes(S, &A, &H));
  if (WithRules)
    snprintf(options, sizeof(options), "%s%s%s%s -mg_coarse_sub_pc_type svd", smooth[0], Rules(bs, size, &way), more[Pick(2) ? 5 : 0], weak);
  else
    snprintf(options, sizeof(options), "%s%s%s%s -mg_coarse_sub_pc_type svd", smooth[Pick(2)], more[Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(more))], more[Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(more))], weak);
  PetscCall(Beside(A, H, options, way, GIVEN));
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  runs = 10, seed = 1;
  PetscBool blocks = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &Only, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-blocks", &blocks, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-rules", &WithRules, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sided", &Sided, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-joined", &Joined, NULL));
  MatTestName = blocks ? "random graphs of blocks" : "random graphs";
  for (PetscInt k = 0; k < runs && PETSC_VERSION_GE(3, 21, 0); k++) {
    SeedOfRun(seed + k);
    Ties = (PetscBool)(WithThresholds && Pick(3) == 0);
    if (Only < 0 || k == Only) PetscCall(Run(blocks));
  }
  PetscCall(PetscFree(Places.xyz));
  return MatTestEnd();
}
