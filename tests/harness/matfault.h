/*
  matfault.h: allocations of the plugin's files and calls of the device that fail, and what the plugin holds. For the
  latter the device library of the plugin is opened once more, with a hook that it asks before each allocation, CUDA
  call, launch and primitive: the same library, the same card. Its first use by the plugin sets it anew.
*/
#ifndef MATFAULT_H
#define MATFAULT_H
#include "mattest.h"
#include <aijhybridgpu/private/hyb.h>
#include <string.h>

/* of the next hook: bytes of the card that may be used; 0: no limit */
static size_t MatTestMemoryLimit;

/* *device, if not NULL: the library's backend, NULL where no library is named */
static inline PetscErrorCode MatTestHook(int (*fault)(const char *), const HybBackend **device)
{
  char              path[PETSC_MAX_PATH_LEN] = "", message[256];
  const HybStamp    stamp                    = HYB_STAMP;
  const HybBackend *backend                  = NULL;
  HybServices       services;
  HybGetBackendFn   get;
  PetscBool         cuda, mirror;
  void             *library;

  PetscFunctionBeginUser;
  if (device) *device = NULL;
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &cuda));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  if (!cuda || !path[0]) PetscFunctionReturn(PETSC_SUCCESS);
  library = dlopen(path, RTLD_NOW);
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
  *(void **)&get = dlsym(library, HYB_GET_BACKEND_SYMBOL);
  PetscCheck(get, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
  memset(&services, 0, sizeof(services));
  services.size             = sizeof(services);
  services.device           = -1;
  services.managed_fraction = 0.5;
  services.locked_fraction  = 0.25;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &services.processes));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &services.rank));
  services.memory_limit = MatTestMemoryLimit;
  services.mirror       = (int)mirror;
  services.fault        = fault;
  PetscCheck(!(*get)(&stamp, &services, &backend, message, sizeof(message)), PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", message);
  if (device) *device = backend;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* has each process a card of its own? */
static inline PetscErrorCode MatTestOwnCards(PetscBool *own)
{
  const HybBackend *device = NULL;
  HybMemoryReport   r;
  char             *bus;
  PetscBool         same;
  const PetscMPIInt size = MatTestSize();

  PetscFunctionBeginUser;
  *own = PETSC_FALSE;
  PetscCall(MatTestOpenDevice()); /* as the plugin does: which card it is, is decided there */
  PetscCall(MatTestHook(NULL, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(device->usage(&r, PETSC_FALSE));
  PetscCall(PetscMalloc1((size_t)size * sizeof(r.bus), &bus));
  PetscCallMPI(MPI_Allgather(r.bus, (PetscMPIInt)sizeof(r.bus), MPI_CHAR, bus, (PetscMPIInt)sizeof(r.bus), MPI_CHAR, PETSC_COMM_WORLD));
  *own = PETSC_TRUE;
  for (PetscMPIInt p = 0; p < size; p++) {
    for (PetscMPIInt q = 0; q < p; q++) {
      PetscCall(PetscStrcmp(bus + (size_t)p * sizeof(r.bus), bus + (size_t)q * sizeof(r.bus), &same));
      if (same) *own = PETSC_FALSE;
    }
  }
  PetscCall(PetscFree(bus));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MATFAULT_LIVE 8192
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  PetscErrorCode (*free)(void *, int, const char[], const char[]);
  PetscErrorCode (*realloc)(size_t, int, const char[], const char[], void **);
  void             *live[MATFAULT_LIVE];
  size_t            size[MATFAULT_LIVE], bytes;
  int               n, count, target; /* calls so far, and the one that fails; 0: none */
  const char       *last;             /* that was made to fail */
  PetscBool         logs;             /* events of the log are, instead of allocations and the device's calls */
  const char       *only;             /* not NULL: allocations of this file alone are */
  PetscBool         trace;            /* errors are printed */
  const HybBackend *device;
} MatFault;

static inline int MatFaultCount(const char *what)
{
  if (!MatFault.target || ++MatFault.count != MatFault.target) return 0;
  MatFault.last = what;
  return 1;
}

static inline int MatFaultAsk(const char *what)
{
  return MatFault.logs || (MatFault.only && !strstr(what, MatFault.only)) ? 0 : MatFaultCount(what);
}

static inline PetscBool MatFaultOurs(const char *file)
{
  /* PETSc has a folder of the last one's name, but its files' names begin otherwise */
  return (PetscBool)(file && (strstr(file, "src/sparse/") || strstr(file, "src/mat/impls/aijhybridgpu/") || strstr(file, "src/petsc/") || !strncmp(file, "src/ksp/pc/impls/mg/", 20)));
}

static inline PetscErrorCode MatFaultMalloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  PetscErrorCode ierr;

  if (MatFaultOurs(file) && MatFaultAsk(file)) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected");
  }
  ierr = (*MatFault.malloc)(bytes, clear, line, func, file, ptr);
  if (!ierr && *ptr && MatFaultOurs(file) && MatFault.n < MATFAULT_LIVE) {
    MatFault.live[MatFault.n]   = *ptr;
    MatFault.size[MatFault.n++] = bytes;
    MatFault.bytes += bytes;
  }
  return ierr;
}

static inline void MatFaultForget(void *ptr)
{
  for (int k = MatFault.n - 1; ptr && k >= 0; k--) {
    if (MatFault.live[k] != ptr) continue;
    MatFault.bytes -= MatFault.size[k];
    MatFault.live[k] = MatFault.live[--MatFault.n];
    MatFault.size[k] = MatFault.size[MatFault.n];
    return;
  }
}

static inline PetscErrorCode MatFaultFree(void *ptr, int line, const char func[], const char file[])
{
  MatFaultForget(ptr);
  return (*MatFault.free)(ptr, line, func, file);
}

static inline PetscErrorCode MatFaultRealloc(size_t bytes, int line, const char func[], const char file[], void **ptr)
{
  MatFaultForget(*ptr);
  return (*MatFault.realloc)(bytes, line, func, file, ptr);
}

/* PETSc's allocations pass by here, from now on or no longer */
static inline void MatFaultWatch(PetscBool on)
{
  if (on) {
    MatFault.malloc  = PetscTrMalloc;
    MatFault.free    = PetscTrFree;
    MatFault.realloc = PetscTrRealloc;
  }
  PetscTrMalloc  = on ? MatFaultMalloc : MatFault.malloc;
  PetscTrFree    = on ? MatFaultFree : MatFault.free;
  PetscTrRealloc = on ? MatFaultRealloc : MatFault.realloc;
}

static inline PetscErrorCode MatFaultReport(HybMemoryReport *r)
{
  HybExec x = {MatFault.device, NULL, HYB_MEM_DEVICE};

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  if (!x.backend) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x.backend->sync(&x));
  PetscCall(x.backend->memory(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the plugin holds here and on the device */
static inline PetscErrorCode MatFaultHeld(size_t *bytes)
{
  HybMemoryReport r;

  PetscFunctionBeginUser;
  PetscCall(MatFaultReport(&r));
  *bytes = MatFault.bytes + r.device_bytes + r.managed_bytes + r.locked_bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's Jacobi makes its diagonal at its first application, of which a half, when that fails, passes for the whole;
   and of several processes it is one of all. The smoothers' of multigrid are applied. */
static inline PetscErrorCode MatFaultDiagonals(PC pc)
{
  PetscInt levels;

  PetscFunctionBeginUser;
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = 1; l < levels; l++) {
    KSP smoother;
    Mat A;
    Vec b, x;
    PC  jacobi;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &A, NULL));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPGetPC(smoother, &jacobi));
    PetscCall(PCApply(jacobi, b, x));
    PetscCall(MatTestDestroy(&b, &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solver of S as the type, set up; constants: they are the null space */
static inline PetscErrorCode MatFaultSolver(Mat S, PetscBool constants, Mat *A, KSP *ksp)
{
  MatNullSpace null;
  PC           pc;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(S, "aijhybridgpu", MAT_INITIAL_MATRIX, A));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  if (constants) {
    PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_TRUE, 0, NULL, &null));
    PetscCall(MatSetNullSpace(*A, null));
    PetscCall(MatNullSpaceDestroy(&null));
  }
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, *A, *A));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(MatFaultDiagonals(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Faults of one process's solves, the first ones and those after new values (again): solve(again, k, ierr) has its k-th
   call failing, the first sixteen of them (-first) and of the others one in -every, from the -from-th on */
static inline PetscErrorCode MatFaultSolves(const char *what, PetscErrorCode (*solve)(PetscBool again, int k, PetscErrorCode *ierr, int *fired))
{
  char     name[64];
  PetscInt every = 1, from = 1, first = 16;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-from", &from, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-verbose", &MatFault.trace, NULL));
  PetscCall(MatTestHook(MatFaultAsk, &MatFault.device));
  MatTestName = name;
  for (int again = 0; again < 2; again++) {
    int fired = 1, n = -1;

    PetscCall(PetscSNPrintf(name, sizeof(name), again ? "%s after new values" : "first %s", what));
    /* the first one: what is made once and kept */
    for (int k = 0; fired && k < 100000; k = !k ? (int)from : k < first ? k + 1
                                                                        : k + (int)every,
             n++) {
      const PetscInt failures = MatTestFailed;
      size_t         before, after;
      PetscErrorCode ierr;

      PetscCall(MatFaultHeld(&before));
      PetscCall((*solve)((PetscBool)again, k, &ierr, &fired));
      PetscCall(MatFaultHeld(&after));
      /* what is given back after a question whose answer is there may fail unheard */
      MatTestCheck(!ierr == !fired || !strcmp(MatFault.last, "cudaFreeAsync"), fired ? "a failing call was not noticed" : "an error without a failing call");
      MatTestCheck(after == before, "bytes of ours are held");
      if (MatTestFailed > failures) printf("  call %d failing, %s, error %d: %zu bytes before, %zu after\n", k, MatFault.last, (int)ierr, before, after);
      if (!k) fired = 1;
    }
    MatTestCheck(n > 2 || (again && !MatFault.device), "nothing could fail"); /* on the host all of it is there */
    printf("%s: %d calls and allocations made to fail\n", name, n - 1);
  }
  MatTestName = "";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* error = call, of whose allocations and calls of the device the at-th fails (0: none); fired: there were so many */
#define MatFaultTry(at, error, fired, call)                                                                        \
  do {                                                                                                             \
    STACK_SAVE;                                                                                                    \
    PetscCall(PetscPushErrorHandler(MatFault.trace ? PetscTraceBackErrorHandler : PetscReturnErrorHandler, NULL)); \
    MatFault.count  = 0;                                                                                           \
    MatFault.last   = "";                                                                                          \
    MatFault.target = (at);                                                                                        \
    error           = call;                                                                                        \
    fired           = MatFault.target && MatFault.count >= MatFault.target;                                        \
    MatFault.target = 0;                                                                                           \
    PetscCall(PetscPopErrorHandler());                                                                             \
    STACK_RESTORE;                                                                                                 \
  } while (0)

#endif
