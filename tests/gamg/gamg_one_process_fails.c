/*
  PCGAMG on several processes where one process alone fails in the middle of a setup, at each of its allocations and
  calls of the device in turn: all processes get an error, none waits for another, and a setup afterwards is PETSc's.
  Options leave out what PETSc's own code does without agreeing: coarse problems on fewer processes, estimates. On one
  process a step of smoothing that fails leaves no matrix, wherever it fails.

TEST np=2 -mat_aijhybridgpu_backend host -every 5
TEST np=2 @emulated -every 131
TEST np=2 -mat_aijhybridgpu_backend host -blocks -every 17
TEST np=2 @emulated -blocks -every 401
TEST np=2 @emulated -blocks -problem 1 -from 1376 -every 401
TEST np=2 -mat_aijhybridgpu_backend host -thresholds -every 7
TEST np=2 @emulated -thresholds -every 173
TEST np=2 -mat_aijhybridgpu_backend host -blocks -thresholds -every 23
TEST np=2 -mat_aijhybridgpu_backend host -smooths -from 243 -every 13
TEST np=2 @emulated -smooths -every 251
TEST np=1 @emulated -smooths -from 480 -every 7
TEST np=1 @emulated -blocks -injection -every 29
TEST np=2 -mat_aijhybridgpu_backend host -sided -every 11
TEST np=2 @emulated -sided -every 211
TEST np=2 -mat_aijhybridgpu_backend host -nested -every 19
TEST np=2 @emulated -nested -every 331
TEST np=2 -mat_aijhybridgpu_backend host -blocks -thresholds -sided -every 37
TEST np=2 -mat_aijhybridgpu_backend host -layouts

-every N: the first eight, and of the others one in N; -from K: from the K-th on; -problem R: process R alone fails;
-blocks: two unknowns a vertex and three near-null vectors; -thresholds: weak edges are left out; -smooths: prolongators
are smoothed twice; -injection: the finest level injects; -sided: some rows are zeroed, so that edges have one
direction; -nested: MIS-2; -layouts: nothing but PETSc's layouts of given ranges fails; -verbose: says which
*/
#include "gamgtest.h"
#include "matfault.h"
#include <unistd.h>

#define MATS 1024
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  PetscErrorCode (*free)(void *, int, const char[], const char[]);
  int         count, target;
  const char *what;
  void       *mat[MATS]; /* that exist */
  int         nmat;
  PetscBool   step; /* a further step of smoothing failed */
} F;

static PetscBool Smooths; /* prolongators are smoothed twice */

static PetscBool Layouts; /* nothing but PETSc's layouts of given ranges fails */

static int DeviceFault(const char *what)
{
  if (Layouts && strcmp(what, "PetscLayoutCreateFromRanges")) return 0;
  if (!F.target || ++F.count != F.target) return 0;
  F.what = what;
  return 1;
}

static PetscErrorCode Malloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  if (Layouts ? func && DeviceFault(func) : file && (strstr(file, "src/ksp/pc/impls/gamg/") || strstr(file, "src/petsc/") || strstr(file, "src/sparse/") || strstr(file, "src/mat/impls/aijhybridgpu/")) && !strstr(file, "petsc-") && DeviceFault(func)) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected");
  }
  PetscCall((*F.malloc)(bytes, clear, line, func, file, ptr));
  if (func && !strcmp(func, "MatCreate") && F.nmat < MATS) F.mat[F.nmat++] = *ptr;
  return PETSC_SUCCESS;
}

static PetscErrorCode Free(void *ptr, int line, const char func[], const char file[])
{
  for (int k = F.nmat - 1; k >= 0; k--)
    if (F.mat[k] == ptr) F.mat[k] = F.mat[--F.nmat];
  return (*F.free)(ptr, line, func, file);
}

/* an error's way up */
static PetscErrorCode Handler(MPI_Comm comm, int line, const char *func, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *verbose)
{
  if (func && !strcmp(func, "HybGAMGSmoothMore")) F.step = PETSC_TRUE;
  return verbose ? PetscTraceBackErrorHandler(comm, line, func, file, n, p, mess, NULL) : n;
}

static PetscErrorCode Faults(Mat A, Mat H, PetscMPIInt faulty, int from, int every)
{
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  KSP               a;
  PC                pa, ph;
  PetscInt          nlevels;
  PetscBool         verbose = PETSC_FALSE;
  int               errors, own, fired = 1, failed = 0, n = 0, most = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-verbose", &verbose));
  PetscCall(Solver(A, &a));
  PetscCall(KSPSetUp(a));
  PetscCall(KSPGetPC(a, &pa));
  for (int k = from; fired && k < 100000; k += k < 8 ? 1 : every) {
    KSP            h;
    PetscMPIInt    tag[2];
    PetscErrorCode ierr;

    PetscCall(Solver(H, &h));
    (void)alarm(20);
    PetscCall(PetscPushErrorHandler(Handler, verbose && rank == faulty ? &verbose : NULL));
    F.malloc      = PetscTrMalloc;
    F.free        = PetscTrFree;
    F.nmat        = 0;
    F.step        = PETSC_FALSE;
    PetscTrMalloc = Malloc;
    PetscTrFree   = Free;
    F.count       = 0;
    F.target      = rank == faulty ? k : 0;
    if (verbose && rank == faulty) fprintf(stderr, "call %d\n", k);
    ierr          = KSPSetUp(h);
    fired         = F.target && F.count >= F.target;
    F.target      = 0;
    PetscTrMalloc = F.malloc;
    PetscCall(PetscPopErrorHandler());
    PetscCallMPI(MPI_Bcast(&fired, 1, MPI_INT, faulty, PETSC_COMM_WORLD));
    /* where PETSc destroys something, at the end, memory that is not given back is an error of this process alone */
    own = F.what && strstr(F.what, "Free");
    PetscCallMPI(MPI_Bcast(&own, 1, MPI_INT, faulty, PETSC_COMM_WORLD));
    errors = ierr ? 1 : 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    MatTestCheck(errors == 0 || errors == size || own, "all processes get the error, or none");
    if (errors != 0 && errors != size) fprintf(stderr, "[%d] call %d (%s): %d of %d processes\n", rank, k, F.what ? F.what : "", errors, (int)size);
    failed += errors != 0;
    /* so that messages meet afterwards */
    PetscCall(PetscObjectGetNewTag((PetscObject)h, &tag[0]));
    tag[1] = -tag[0];
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, tag, 2, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(tag[0] == -tag[1], "all processes have taken as many of PETSc's tags");
    if (errors == size) {
      PetscCall(KSPSetUp(h));
      PetscCall(KSPGetPC(h, &ph));
      PetscCall(SameHierarchy(pa, ph, TIGHT, "after an error", &nlevels));
    }
    PetscCall(KSPDestroy(&h));
    PetscTrFree = F.free;
    if (F.step && !own) most = PetscMax(most, F.nmat);
    (void)alarm(0);
    n++;
  }
  /* of the level's PETSc leaves the prolongator that the step was given, the example's is given back */
  if (size == 1 && Smooths) MatTestCheck(most == 1, "a step of smoothing that fails leaves no matrix");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "process %d: %d calls made to fail, %d errors\n", (int)faulty, n, failed));
  PetscCall(KSPDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    every = 1, from = 1;
  PetscBool   blocks = PETSC_FALSE, inject = PETSC_FALSE, sided = PETSC_FALSE, nested = PETSC_FALSE;
  Mat         S, A, H;
  KSP         h;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-from", &from, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-blocks", &blocks, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-smooths", &Smooths, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-injection", &inject, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sided", &sided, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-nested", &nested, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-layouts", &Layouts, NULL));
  if (Covers) {
    if (inject) PetscCall(Options("-pc_gamg_injection_index 1", PETSC_TRUE));
    PetscCall(Options("-pc_gamg_eigenvalues 0.1,2.2 -pc_gamg_process_eq_limit 1 -pc_gamg_parallel_coarse_grid_solver -mg_coarse_ksp_type richardson -mg_coarse_pc_type jacobi -mg_levels_ksp_type richardson", PETSC_TRUE));
    if (WithThresholds) PetscCall(Options("-pc_gamg_threshold 0.02,0", PETSC_TRUE));
    if (Smooths) PetscCall(Options("-pc_gamg_agg_nsmooths 2", PETSC_TRUE));
    if (size == 1 && Smooths) PetscCall(Options("-pc_gamg_coarse_eq_limit 100", PETSC_TRUE));
    if (blocks) {
      PetscCall(Blocks(8, 2, &S));
      PetscCall(AttachMany(S, PETSC_FALSE, 3));
    } else {
      PetscCall(Grid(2, 12, LAPLACE, &S));
      PetscCall(AttachVectors(S, 1));
    }
    if (nested) PetscCall(Options("-pc_gamg_aggressive_square_graph 0", PETSC_TRUE));
    if (sided) PetscCall(ZeroSome(S, blocks ? 2 : 1, 5, 2, -1, 1.0));
    PetscCall(OfBothTypes(S, &A, &H));
    PetscCall(Solver(H, &h)); /* the first use of all */
    PetscCall(KSPSetUp(h));
    PetscCall(KSPDestroy(&h));
    PetscCall(MatTestHook(DeviceFault, NULL));
    for (PetscMPIInt faulty = 0; faulty < size; faulty++) {
      MatTestName = faulty ? "the last process fails" : "the first process fails";
      if (Only < 0 || Only == faulty) PetscCall(Faults(A, H, faulty, (int)from, (int)every));
    }
    PetscCall(MatTestDestroy(&S, &A, &H));
  }
  return MatTestEnd();
}
