/*
  PCGAMG on the type beside PCGAMG on MATAIJ on several processes: random graphs, rows dealt to the processes at random,
  some of which have none or one.

TEST np=2,3 -mat_aijhybridgpu_backend host -runs 12
TEST np=2 @emulated -runs 4
TEST np=3 @emulated -mat_aijhybridgpu_memory mirror -runs 2 -seed 77

-runs N problems from -seed S on; -only K: the K-th alone.
*/
#include "gamgtest.h"

static unsigned long Seed;

/* 0..n-1, the same on all processes */
static PetscInt Pick(PetscInt n)
{
  return (PetscInt)(Rnd(&Seed) % (unsigned long)n);
}

/* rows of each process: any number of all, or about as many as of others */
static PetscErrorCode Deal(PetscInt n, PetscInt *local)
{
  PetscMPIInt rank, size;
  PetscInt    left = n;
  const int   even = Pick(3) == 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
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

static PetscErrorCode Graph(PetscInt n, Mat *A)
{
  const int      kind = (int)Pick(5);
  const PetscInt w = 1 + Pick(30), edges = kind == 0 ? 2 * n : kind < 3 ? n
                                                                        : n * (1 + Pick(6));
  PetscInt       local = 0, *numbers;
  PetscScalar   *d;

  PetscFunctionBeginUser;
  PetscCall(Deal(n, &local));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, local, local, n, n));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 40, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 40, NULL, 40, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(*A, MAT_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE)); /* every process sets all */
  PetscCall(PetscCalloc1(n, &d));
  PetscCall(PetscMalloc1(n, &numbers));
  PetscCall(Mix(n, numbers));
  for (PetscInt e = 0; e < edges; e++) {
    const PetscScalar v = 1.0 + (PetscReal)Pick(100) / 50.0;
    PetscInt          i, j;

    Edge(kind, n, w, e, &i, &j);
    if (i == j || i % 17 == 5 || j % 17 == 5) continue;
    i = numbers[i];
    j = numbers[j];
    PetscCall(MatSetValue(*A, i, j, -v, INSERT_VALUES));
    PetscCall(MatSetValue(*A, j, i, -v, INSERT_VALUES));
    d[i] += v;
    d[j] += v;
  }
  for (PetscInt i = 0; i < n; i++) PetscCall(MatSetValue(*A, i, i, d[i] + 0.1, INSERT_VALUES));
  PetscCall(PetscFree(numbers));
  PetscCall(PetscFree(d));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void)
{
  static const char *const smooth[] = {"-pc_gamg_eigenvalues 0.1,2.2", "-pc_gamg_agg_nsmooths 0"};
  static const char *const more[]   = {"", "", " -pc_gamg_aggressive_coarsening 0", " -pc_gamg_aggressive_coarsening 3", " -pc_gamg_process_eq_limit 7", " -pc_gamg_coarse_eq_limit 5", " -pc_gamg_reuse_interpolation 0", " -pc_gamg_parallel_coarse_grid_solver"};
  const PetscInt           n        = 1 + Pick(Pick(3) ? 300 : 1500);
  char                     options[256];
  Mat                      S, A, H;

  PetscFunctionBeginUser;
  PetscCall(Graph(n, &S));
  if (Pick(3) == 0) PetscCall(AttachVectors(S, 1));
  PetscCall(OfBothTypes(S, &A, &H));
  snprintf(options, sizeof(options), "%s%s%s -mg_coarse_sub_pc_type svd", smooth[Pick(2)], more[Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(more))], more[Pick((PetscInt)PETSC_STATIC_ARRAY_LENGTH(more))]);
  PetscCall(Beside(A, H, options, ALL, TIGHT));
  PetscCall(DestroyAll(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  runs = 10, seed = 1, only = -1;
  PetscBool few  = PETSC_FALSE;
  int       code = 1;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv, &only, &few));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &only, NULL));
  MatTestName = "random graphs";
  for (PetscInt k = 0; k < runs && PETSC_VERSION_GE(3, 21, 0); k++) {
    MatTestSeed = seed + k;
    Seed        = 1000003ul * (unsigned long)(seed + k) + 12345;
    if (only < 0 || k == only) PetscCall(Run());
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
