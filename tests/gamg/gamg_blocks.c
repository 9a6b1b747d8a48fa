/*
  PCGAMG on the type beside PCGAMG on MATAIJ: several unknowns a vertex, several near-null vectors. Elasticity in two
  and three dimensions with translations, rigid-body modes and coordinates; blocks of which parts are stored; aggregates
  of fewer rows than vectors, and of vertices on one line.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -short
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -problem 0
TEST np=2,3 -mat_aijhybridgpu_backend host
TEST np=2 @emulated -short
TEST np=1 -mat_aijhybridgpu_backend host -thresholds
TEST np=1 @emulated -short -thresholds
TEST np=2,3 -mat_aijhybridgpu_backend host -short -thresholds
TEST np=2 @emulated -thresholds -short -problem 9

-short: fewer problems and options. -thresholds: with thresholds for the graph's edges. -problem K: one problem only.
*/
#include "gamgtest.h"
#include <petscdmshell.h>

/* of element e's corner c, in each direction */
static PetscInt Corner(const PetscInt *n, PetscInt dim, PetscInt e, PetscInt c)
{
  PetscInt node = 0, stride = 1;

  for (PetscInt d = 0; d < dim; d++) {
    node += (e % (n[d] - 1) + (c >> d & 1)) * stride;
    e /= n[d] - 1;
    stride *= n[d];
  }
  return node;
}

/* the stiffness of a bilinear (trilinear) element, a cube of side 1, by two points in each direction */
static void Stiffness(PetscInt dim, PetscReal mu, PetscReal lambda, PetscReal *K)
{
  const PetscInt  nc = 1 << dim, m = nc * dim;
  const PetscReal g = 0.5 / PetscSqrtReal(3.0);

  for (PetscInt k = 0; k < m * m; k++) K[k] = 0;
  for (PetscInt p = 0; p < nc; p++) {
    PetscReal grad[8][3];

    for (PetscInt c = 0; c < nc; c++) {
      for (PetscInt d = 0; d < dim; d++) {
        grad[c][d] = c >> d & 1 ? 1 : -1;
        for (PetscInt o = 0; o < dim; o++) {
          const PetscReal x = p >> o & 1 ? 0.5 + g : 0.5 - g;

          if (o != d) grad[c][d] *= c >> o & 1 ? x : 1 - x;
        }
      }
    }
    for (PetscInt a = 0; a < nc; a++) {
      for (PetscInt b = 0; b < nc; b++) {
        PetscReal dot = 0;

        for (PetscInt d = 0; d < dim; d++) dot += grad[a][d] * grad[b][d];
        for (PetscInt i = 0; i < dim; i++) {
          for (PetscInt j = 0; j < dim; j++) K[(a * dim + i) * m + b * dim + j] += (lambda * grad[a][i] * grad[b][j] + mu * grad[a][j] * grad[b][i] + (i == j ? mu * dot : 0)) / nc;
        }
      }
    }
  }
}

/* n[0] x n[1] x n[2] vertices, held at x = 0 */
static PetscErrorCode Elasticity(PetscInt dim, const PetscInt *n, Mat *A)
{
  const PetscInt nc = 1 << dim, m = nc * dim;
  PetscInt       nodes = 1, elements = 1, start, end;
  PetscReal      K[24 * 24];

  PetscFunctionBeginUser;
  for (PetscInt d = 0; d < dim; d++) {
    nodes *= n[d];
    elements *= n[d] - 1;
  }
  Stiffness(dim, 1.0, 0.6, K);
  PetscCall(SetByAll(PETSC_DECIDE, nodes, dim, 27, A));
  for (PetscInt e = 0; e < elements; e++) {
    PetscInt    rows[24];
    PetscScalar v[24 * 24];

    for (PetscInt c = 0; c < nc; c++)
      for (PetscInt d = 0; d < dim; d++) rows[c * dim + d] = Corner(n, dim, e, c) * dim + d;
    for (PetscInt k = 0; k < m * m; k++) v[k] = K[k] * (1 + (e / 5) % 3);
    PetscCall(MatSetValues(*A, m, rows, m, rows, v, ADD_VALUES));
  }
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    if (r / dim % n[0] == 0) PetscCall(MatSetValue(*A, r, r, 20.0, ADD_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where the vertices of such a grid are; those of this process */
static struct {
  PetscInt  dim, nloc;
  PetscReal xyz[3 * 4096];
} Places;

static PetscErrorCode Place(PetscInt dim, const PetscInt *n, PetscReal h, Mat A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  Places.dim  = dim;
  Places.nloc = (end - start) / dim;
  PetscCheck(Places.nloc <= 4096, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "%d vertices", (int)Places.nloc);
  for (PetscInt v = 0; v < Places.nloc; v++) {
    PetscInt k = start / dim + v;

    for (PetscInt d = 0; d < dim; d++) {
      Places.xyz[v * dim + d] = h * (PetscReal)(k % n[d]) - 0.3 * d;
      k /= n[d];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TellPlaces(PC pc)
{
  PetscFunctionBeginUser;
  PetscCall(PCSetCoordinates(pc, Places.dim, Places.nloc, Places.xyz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AttachRigidBody(Mat A)
{
  MatNullSpace near;
  Vec          x;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecSetBlockSize(x, Places.dim));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt k = 0; k < Places.nloc * Places.dim; k++) a[k] = Places.xyz[k];
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscCall(MatNullSpaceCreateRigidBody(x, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatTestDestroy(&near, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A random graph's vertices with bs unknowns each, of which a few are joined: full: all of them. Some vertices
   alone. */
static PetscErrorCode RandomBlocks(PetscInt n, PetscInt degree, PetscInt bs, PetscBool full, unsigned long seed, Mat *A)
{
  PetscReal *sum;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(n * bs, &sum));
  PetscCall(SetByAll(PETSC_DECIDE, n, bs, 6 * degree + 10, A));
  for (PetscInt e = 0; e < n * degree / 2; e++) {
    const PetscInt  i = (PetscInt)(Rnd(&seed) % (unsigned long)n), j = (PetscInt)(Rnd(&seed) % (unsigned long)n);
    const PetscReal v = 0.1 + (PetscReal)(Rnd(&seed) % 100) / 100.0;

    if (i == j || i % 13 == 5 || j % 13 == 5) continue;
    for (PetscInt a = 0; a < bs; a++) {
      for (PetscInt b = 0; b < bs; b++) {
        if (!full && (e + a + 2 * b) % 5) continue;
        PetscCall(MatSetValue(*A, i * bs + a, j * bs + b, -v / (1 + a + b), INSERT_VALUES));
        PetscCall(MatSetValue(*A, j * bs + b, i * bs + a, -v / (1 + a + b), INSERT_VALUES));
        sum[i * bs + a] += v / (1 + a + b);
        sum[j * bs + b] += v / (1 + a + b);
      }
    }
  }
  for (PetscInt r = 0; r < n * bs; r++) PetscCall(MatSetValue(*A, r, r, 0.01 + sum[r] * (1 + (r % 7) / 3.0), INSERT_VALUES));
  PetscCall(PetscFree(sum));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both rows of a vertex have the same columns, of the first and the second unknown in turn, but of different vertices:
   PETSc takes two such for a whole block, and its graph has the first vertex alone. Vertices come in couples, on a grid
   of n x n, and each is joined with all of the neighbouring couples. */
static PetscErrorCode Staggered(PetscInt n, Mat *A)
{
  static const PetscInt step[4][2] = {
    {-1, 0 },
    {0,  -1},
    {0,  1 },
    {1,  0 }
  };
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, 4 * n * n, 4 * n * n));
  PetscCall(MatSetBlockSize(*A, 2));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 10, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 10, NULL, 8, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt couple = r / 4, x = couple % n, y = couple / n;

    PetscCall(MatSetValue(*A, r, r, 9.0 + r % 3, INSERT_VALUES));
    PetscCall(MatSetValue(*A, r, r ^ 1, 0.25, INSERT_VALUES));
    for (int k = 0; k < 4; k++) {
      const PetscInt other = couple + step[k][0] + n * step[k][1];

      if (x + step[k][0] < 0 || x + step[k][0] >= n || y + step[k][1] < 0 || y + step[k][1] >= n) continue;
      PetscCall(MatSetValue(*A, r, 4 * other, -1.0, INSERT_VALUES));     /* the first unknown of one vertex */
      PetscCall(MatSetValue(*A, r, 4 * other + 3, -0.5, INSERT_VALUES)); /* the second one of the other */
    }
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the field of a DM that knows the near-null vectors, as PETSc's discretizations leave them */
static DM Field;

static PetscErrorCode TellField(PC pc)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatSetDM(A, Field));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* those of A go there */
static PetscErrorCode GiveToField(Mat A)
{
  PetscContainer object;
  MatNullSpace   near;

  PetscFunctionBeginUser;
  PetscCall(MatGetNearNullSpace(A, &near));
  PetscCall(PetscContainerCreate(PETSC_COMM_WORLD, &object));
  PetscCall(PetscObjectCompose((PetscObject)object, "nearnullspace", (PetscObject)near));
  PetscCall(MatSetNearNullSpace(A, NULL));
  PetscCall(DMDestroy(&Field));
  PetscCall(DMShellCreate(PETSC_COMM_WORLD, &Field));
  PetscCall(DMSetField(Field, 0, NULL, (PetscObject)object));
  PetscCall(PetscObjectDereference((PetscObject)object));
  TellPC = TellField;
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  TRANSLATIONS,
  ATTACHED,
  COORDINATES,
  OF_A_FIELD
} Modes;

static const struct {
  const char *name;
  Way         way;
  PetscInt    dim, n[3];
  Modes       modes;
  PetscReal   h;     /* between vertices */
  PetscBool   brief; /* with -short too */
} Problems[] = {
  {"2D elasticity, translations",                ALL,  2, {23, 19, 1}, TRANSLATIONS, 1,     PETSC_FALSE},
  {"2D elasticity, rigid-body modes",            ALL,  2, {23, 19, 1}, ATTACHED,     1,     PETSC_FALSE},
  {"2D elasticity, coordinates",                 ALL,  2, {23, 19, 1}, COORDINATES,  1,     PETSC_TRUE },
  {"3D elasticity, translations",                ALL,  3, {8, 9, 7},   TRANSLATIONS, 1,     PETSC_FALSE},
  {"3D elasticity, rigid-body modes",            ALL,  3, {8, 9, 7},   ATTACHED,     0.125, PETSC_TRUE },
  {"3D elasticity, coordinates",                 ALL,  3, {8, 9, 7},   COORDINATES,  1e-3,  PETSC_FALSE},
  {"3D elasticity, coordinates of a large body", ALL,  3, {12, 5, 5},  COORDINATES,  1e3,   PETSC_FALSE},
  {"a plate, rigid-body modes",                  ALL,  3, {17, 17, 2}, ATTACHED,     1,     PETSC_FALSE},
  {"a beam, coordinates",                        ALL,  3, {90, 2, 2},  COORDINATES,  1,     PETSC_FALSE},
  {"unknowns joined in part",                    ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_TRUE },
  {"unknowns joined in full, vertices alone",    ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_FALSE},
  {"five unknowns, seven vectors",               ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_FALSE},
  {"three unknowns, one vector",                 ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_TRUE },
  {"two unknowns, the constant",                 ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_FALSE},
  {"two unknowns, the constant and two vectors", ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_FALSE},
  {"one unknown, six vectors",                   ALL,  0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_FALSE},
  {"thirty-three vectors",                       NONE, 0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_FALSE},
  {"rows of all unknowns zeroed",                ALL,  2, {15, 15, 1}, TRANSLATIONS, 1,     PETSC_FALSE},
  {"rows of one unknown zeroed",                 ALL,  2, {15, 15, 1}, ATTACHED,     1,     PETSC_TRUE },
  {"known to be SPD, rigid-body modes",          ALL,  2, {21, 20, 1}, ATTACHED,     1,     PETSC_FALSE},
  {"staggered unknowns",                         NONE, 0, {0, 0, 0},   TRANSLATIONS, 0,     PETSC_TRUE },
  {"few unknowns",                               ALL,  2, {4, 4, 1},   COORDINATES,  1,     PETSC_FALSE},
  {"2D elasticity, a field's rigid-body modes",  ALL,  2, {21, 18, 1}, OF_A_FIELD,   1,     PETSC_FALSE},
};

static PetscErrorCode Problem(PetscInt k, Mat *A)
{
  const PetscInt dim = Problems[k].dim;

  PetscFunctionBeginUser;
  TellPC = NULL;
  if (dim) {
    PetscCall(Elasticity(dim, Problems[k].n, A));
    PetscCall(Place(dim, Problems[k].n, Problems[k].h, *A));
    if (Problems[k].modes == ATTACHED || Problems[k].modes == OF_A_FIELD) PetscCall(AttachRigidBody(*A));
    if (Problems[k].modes == OF_A_FIELD) PetscCall(GiveToField(*A));
    if (Problems[k].modes == COORDINATES) TellPC = TellPlaces;
  }
  switch (k) {
  case 9:
    PetscCall(RandomBlocks(500, 4, 3, PETSC_FALSE, 11, A));
    break;
  case 10:
    PetscCall(RandomBlocks(500, 4, 2, PETSC_TRUE, 12, A));
    break;
  case 11:
    PetscCall(RandomBlocks(300, 5, 5, PETSC_FALSE, 13, A));
    PetscCall(AttachMany(*A, PETSC_FALSE, 7));
    break;
  case 12:
    PetscCall(RandomBlocks(400, 5, 3, PETSC_TRUE, 14, A));
    PetscCall(AttachMany(*A, PETSC_FALSE, 1));
    break;
  case 13:
  case 14:
    PetscCall(RandomBlocks(700, 5, 2, PETSC_FALSE, 15, A));
    PetscCall(AttachMany(*A, PETSC_TRUE, k == 13 ? 0 : 2));
    break;
  case 15:
    PetscCall(Grid(2, 30, LAPLACE, A));
    PetscCall(AttachMany(*A, PETSC_FALSE, 6));
    break;
  case 16:
    PetscCall(RandomBlocks(400, 8, 5, PETSC_TRUE, 16, A));
    PetscCall(AttachMany(*A, PETSC_TRUE, 32));
    break;
  case 17:
    PetscCall(ZeroSome(*A, dim, 7, 3, -1, 2.0));
    break;
  case 18:
    PetscCall(ZeroSome(*A, dim, 7, 3, 1, 2.0));
    break;
  case 19:
    PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
    break;
  case 20:
    PetscCall(Staggered(14, A));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *options;
  Way         way;
  PetscReal   tol;
  PetscBool   brief;
} Lines[] = {
  {"-pc_gamg_aijhybridgpu 0",                                                                                                                                                                             NONE, LOOSE, PETSC_FALSE},
  {"-pc_gamg_agg_nsmooths 2",                                                                                                                                                                             ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_threshold 0.05",                                                                                                                                                                             ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_threshold -1,0.01",                                                                                                                                                                          ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 0",                                                                                                                                                                    ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_coarsening 2 -pc_gamg_eigenvalues 0.1,2.2",                                                                                                                                       ALL,  GIVEN, PETSC_FALSE},
  {"-pc_gamg_aggressive_square_graph 0",                                                                                                                                                                  ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 3 -pc_gamg_eigenvalues 0.1,2.2",                                                                                                         ALL,  GIVEN, PETSC_FALSE},
  {"-pc_gamg_mis_k_minimum_degree_ordering",                                                                                                                                                              ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_mat_coarsen_type hem",                                                                                                                                                                       NONE, LOOSE, PETSC_FALSE},
  {"-mat_coarsen_type mis -pc_gamg_eigenvalues 0.1,2.2",                                                                                                                                                  SOME, GIVEN, PETSC_TRUE },
  {"-pc_gamg_graph_symmetrize 0",                                                                                                                                                                         ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_low_memory_threshold_filter",                                                                                                                                                                ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_mat_coarsen_strength_index 0,1",                                                                                                                                                             ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_mat_coarsen_strength_index 0 -pc_gamg_threshold 0.02",                                                                                                                                       NONE, LOOSE, PETSC_TRUE },
  {"-pc_gamg_use_sa_esteig 0",                                                                                                                                                                            ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_esteig_ksp_type cg",                                                                                                                                                                         ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_reuse_interpolation 0",                                                                                                                                                                      ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_coarse_eq_limit 200 -pc_gamg_process_eq_limit 1000",                                                                                                                                         ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_injection_index 0",                                                                                                                                                                          ALL,  LOOSE, PETSC_TRUE },
  {"-pc_gamg_injection_index 1 -pc_gamg_mis_k_minimum_degree_ordering -pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_coarsening 2 -pc_gamg_low_memory_threshold_filter -pc_gamg_use_sa_esteig 0", ALL,  LOOSE, PETSC_FALSE},
  {"-pc_gamg_asm_use_agg",                                                                                                                                                                                NONE, LOOSE, PETSC_FALSE},
  {"-mg_levels_pc_type sor -mg_levels_ksp_type richardson",                                                                                                                                               ALL,  LOOSE, PETSC_FALSE},
};

static PetscErrorCode TestOptions(PetscBool few)
{
  const PetscInt k = 2;
  Mat            S, A, H;

  PetscFunctionBeginUser;
  MatTestName = "options";
  PetscCall(Problem(k, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(Lines); l++)
    /* it reads them without the prefix */
    if (PETSC_VERSION_LT(3, 22, 0) && strstr(Lines[l].options, "-pc_gamg_mat_coarsen"))
      MatTestSkipped++;
    else if (Lines[l].brief || !few)
      PetscCall(Beside(A, H, Lines[l].options, Lines[l].way, Lines[l].tol));
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The finest level injects: its prolongator is made here on one process with the release of PETSc whose driver is
   known, and is a plain matrix; the indices that the program gave are there afterwards, which the views beside each
   other tell. Options of the first level's prolongator, and vectors that are kept for the next setup, are PETSc's
   driver's. */
static PetscErrorCode TestInjection(void)
{
  static const struct {
    const char *options;
    Way         way;
    PetscBool   ours;
  } lines[] = {
    {"-pc_gamg_injection_index 1",                                                                ALL,  PETSC_TRUE },
    {"-pc_gamg_injection_index 2,0",                                                              ALL,  PETSC_TRUE },
    {"-pc_gamg_injection_index 0,1 -pc_gamg_agg_nsmooths 0",                                      ALL,  PETSC_TRUE },
    {"-pc_gamg_injection_index 0,1 -pc_gamg_reuse_interpolation 0",                               ALL,  PETSC_FALSE},
    {"-pc_gamg_injection_index 0 -pc_gamg_prolongator_0_mat_type seqaij",                         ALL,  PETSC_FALSE},
 /* one level, which injects */
    {"-pc_gamg_injection_index 0 -pc_gamg_coarse_eq_limit 300 -pc_gamg_prolongator_mat_type aij", NONE, PETSC_FALSE},
  };
  Mat S, A, H;

  PetscFunctionBeginUser;
  MatTestName = "injection";
  PetscCall(Blocks(12, 3, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(lines); l++) {
    const PetscBool ours = (PetscBool)(Covers && lines[l].ours && PETSC_VERSION_GE(3, 26, 0) && PETSC_VERSION_LT(3, 27, 0));
    PetscInt        made, levels, before[2] = {0, 0};
    KSP             h;
    PC              pc;
    Mat             P;
    const char     *prefix;
    PetscBool       transpose;
    char            why[64];

    PetscCall(Beside(A, H, lines[l].options, lines[l].way, LOOSE));
    PetscCall(Options(lines[l].options, PETSC_TRUE));
    if (Covers) PetscCall(MatTestEventCount("HybGAMGTent", &before[0]));
    PetscCall(Levels(&before[1]));
    PetscCall(Solver(H, &h));
    PetscCall(KSPSetUp(h));
    made = 0;
    if (Covers) PetscCall(MatTestEventCount("HybGAMGTent", &made));
    PetscCall(Levels(&levels));
    made -= before[0];
    levels -= before[1];
    snprintf(why, sizeof(why), "%d prolongators, %d levels of aggregates", (int)made, (int)levels);
    Check3((PetscBool)(made == levels + (PetscInt)ours), "prolongators made here", lines[l].options, why, __LINE__);
    PetscCall(KSPGetPC(h, &pc));
    PetscCall(PCMGGetLevels(pc, &levels));
    PetscCall(PCMGGetInterpolation(pc, levels - 1, &P));
    PetscCall(MatGetOptionsPrefix(P, &prefix));
    transpose = P->form_explicit_transpose;
    Check3((PetscBool)(!prefix && !transpose), "as the driver makes it", lines[l].options, prefix ? prefix : "", __LINE__);
    PetscCall(KSPDestroy(&h));
    PetscCall(Options(lines[l].options, PETSC_FALSE));
  }
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscInt k = 0; PETSC_VERSION_GE(3, 21, 0) && k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Problems); k++) {
    Way way = Problems[k].way;
    Mat S, A, H;

    /* PETSc does not take two of another process's for one where not all of them occur */
    if (size > 1 && k == 20) way = EITHER;
    if (Only >= 0 ? k != Only : Few && !Problems[k].brief) continue;
    if (WithThresholds && k == 16) continue; /* not ours, and slow */
    MatTestName = Problems[k].name;
    PetscCall(Problem(k, &S));
    PetscCall(OfBothTypes(S, &A, &H));
    if (WithThresholds) {
      /* In these elements some edges weigh 0.25 but for rounding, which differs between the two ends where coefficients
         change: MATAIJ's graph has them in one direction, and PETSc's code goes on with it. */
      PetscCall(Thresholds(A, H, way, k < 3 || k == 22 ? TIES : k == 17 || k == 18 ? UNSYMMETRIC
                                                                                   : PLAIN,
                           Few));
    } else {
      PetscCall(Beside(A, H, "", way, LOOSE));
      PetscCall(Beside(A, H, "-pc_gamg_eigenvalues 0.1,2.2", way, GIVEN));
      if (k != 16) PetscCall(Beside(A, H, "-pc_gamg_agg_nsmooths 0", way, GIVEN)); /* singular there, and not ours */
    }
    PetscCall(MatTestDestroy(&S, &A, &H));
  }
  if (PETSC_VERSION_GE(3, 21, 0) && Only < 0 && size == 1 && !WithThresholds) {
    PetscCall(TestOptions(Few));
    PetscCall(TestInjection());
  }
  PetscCall(DMDestroy(&Field));
  return MatTestEnd();
}
