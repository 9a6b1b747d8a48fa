/*
  One process of several runs out of luck in a parallel product: the first, the second, the third, ... allocation and
  call of the device fails there and nowhere else. Each time all processes get an error and none waits for ever;
  afterwards the plugin holds what it held before, and the same operands make the same product.

  Allocations are those made by this plugin's files; on a device also all that passes the hook that it asks before each
  allocation, CUDA call, launch and primitive.

TEST np=2,3 -mat_aijhybridgpu_backend host -every 3
TEST np=2 @emulated -every 97

-every N: the first eight, and of the others one in N.
*/
#include "mattest.h"
#include <aijhybridgpu/private/hyb.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MAXLIVE 8192
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  PetscErrorCode (*free)(void *, int, const char[], const char[]);
  PetscErrorCode (*realloc)(size_t, int, const char[], const char[], void **);
  void             *live[MAXLIVE];
  size_t            size[MAXLIVE], bytes;
  int               n, count, target;
  const char       *last; /* that was made to fail */
  const HybBackend *device;
} F;
static PetscMPIInt Rank, Size;

static int Fault(const char *what)
{
  if (!F.target || ++F.count != F.target) return 0;
  F.last = what;
  return 1;
}

static PetscBool Ours(const char *file)
{
  return (PetscBool)(file && (strstr(file, "src/sparse/") || strstr(file, "src/mat/impls/aijhybridgpu/")));
}

static PetscErrorCode Malloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  PetscErrorCode ierr;

  if (Ours(file) && Fault(file)) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected");
  }
  ierr = (*F.malloc)(bytes, clear, line, func, file, ptr);
  if (!ierr && *ptr && Ours(file) && F.n < MAXLIVE) {
    F.live[F.n]   = *ptr;
    F.size[F.n++] = bytes;
    F.bytes += bytes;
  }
  return ierr;
}

static void Forget(void *ptr)
{
  for (int k = F.n - 1; ptr && k >= 0; k--) {
    if (F.live[k] != ptr) continue;
    F.bytes -= F.size[k];
    F.live[k] = F.live[--F.n];
    F.size[k] = F.size[F.n];
    return;
  }
}

static PetscErrorCode Free(void *ptr, int line, const char func[], const char file[])
{
  Forget(ptr);
  return (*F.free)(ptr, line, func, file);
}

static PetscErrorCode Realloc(size_t bytes, int line, const char func[], const char file[], void **ptr)
{
  Forget(*ptr);
  return (*F.realloc)(bytes, line, func, file, ptr);
}

/* what the plugin holds here and on the device */
static PetscErrorCode Held(size_t *bytes)
{
  PetscFunctionBeginUser;
  *bytes = F.bytes;
  if (F.device) {
    HybMemoryReport r;
    HybExec         x = {F.device, NULL, HYB_MEM_DEVICE};

    PetscCall(PetscMemzero(&r, sizeof(r)));
    PetscCall(F.device->sync(&x));
    PetscCall(F.device->memory(&r));
    *bytes += r.device_bytes + r.managed_bytes;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the device library of the plugin, once more, with a hook: the same library, the same card */
static PetscErrorCode Hook(void)
{
  char            path[PETSC_MAX_PATH_LEN] = "", message[256];
  const HybStamp  stamp                    = HYB_STAMP;
  HybServices     services;
  HybGetBackendFn get;
  PetscBool       cuda;
  void           *library;

  PetscFunctionBeginUser;
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &cuda));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
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
  services.processes        = (int)Size;
  services.rank             = (int)Rank;
  services.fault            = Fault;
  PetscCheck(!(*get)(&stamp, &services, &F.device, message, sizeof(message)), PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a PETSc with debugging keeps a stack of its functions' names, which an error that is caught leaves in disorder */
#if defined(PETSC_USE_DEBUG) && !defined(PETSC_HAVE_THREADSAFETY)
  #define STACK_SAVE    const PetscStack stack = petscstack
  #define STACK_RESTORE petscstack = stack
#else
  #define STACK_SAVE    (void)0
  #define STACK_RESTORE (void)0
#endif

/* C, not NULL, is the caller's to destroy also when this fails */
static PetscErrorCode Product(MatProductType type, Mat A, Mat B, Mat *C)
{
  PetscFunctionBeginUser;
  PetscCall(MatProductCreate(A, B, NULL, C));
  PetscCall(MatProductSetType(*C, type));
  PetscCall(MatProductSetFill(*C, PETSC_DEFAULT));
  PetscCall(MatProductSetFromOptions(*C));
  PetscCall(MatProductSymbolic(*C));
  PetscCall(MatProductNumeric(*C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* again: the numeric phase of a product that is there */
static PetscErrorCode Faults(MatProductType type, PetscBool again, Mat hostA, Mat hostP)
{
  int      fired = 1, k, n = 0;
  PetscInt every = 1;
  Mat      expected;
  char     name[64];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", MatProductTypes[type], again ? " again" : ""));
  MatTestName = name;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(Product(type, hostA, hostP, &expected));
  for (k = 1; fired && k < 100000; k += k < 8 ? 1 : (int)every, n++) {
    const PetscMPIInt victim = (PetscMPIInt)(k % Size);
    Mat               A, P, C = NULL;
    size_t            before, after;
    int               error, errors, held;
    PetscErrorCode    ierr;

    PetscCall(Held(&before));
    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    if (again) {
      PetscCall(Product(type, A, P, &C));
      PetscCall(MatScale(A, 1.0));
    }
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    STACK_SAVE;
    F.count  = 0;
    F.last   = "";
    F.target = Rank == victim ? k : 0;
    ierr     = again ? MatProductNumeric(C) : Product(type, A, P, &C);
    fired    = Rank == victim && F.count >= k;
    F.target = 0;
    STACK_RESTORE;
    PetscCall(PetscPopErrorHandler());
    error = errors = ierr != PETSC_SUCCESS;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(errors == (fired ? (int)Size : 0), fired ? "an error of one process is one of all" : "an error without a failing call");
    if (errors != (fired ? (int)Size : 0)) printf("  call %d of process %d failing, %s: error %d on process %d\n", k, (int)victim, F.last, error, (int)Rank);
    /* the operands serve */
    if (!again) PetscCall(MatDestroy(&C));
    if (again)
      PetscCall(MatProductNumeric(C));
    else
      PetscCall(Product(type, A, P, &C));
    MatTestCheckSame(C, expected, "the result after a failure");
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
    PetscCall(Held(&after));
    held = after != before;
    if (held) printf("  call %d of process %d failing, process %d: %zu bytes before, %zu after\n", k, (int)victim, (int)Rank, before, after);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &held, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(!held, "bytes of ours are held");
  }
  MatTestCheck(n > 2, "nothing could fail");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: up to call %d\n", name, k));
  PetscCall(MatDestroy(&expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of three points of a grid, and an interpolation from every second one, both with entries of others */
static PetscErrorCode Make(PetscInt n, PetscBool interpolation, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, interpolation ? n / 2 : n, 4, NULL, 4, NULL, A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    N = interpolation ? n / 2 : n, c[4] = {interpolation ? r / 2 : r, interpolation ? PetscMin(r / 2 + 1, N - 1) : (r + 1) % N, (r + N / 2) % N, (r + 2) % N};
    const PetscScalar v[4] = {2.0, -0.5, 0.25 + 0.001 * (PetscReal)r, 0.125};

    for (int k = 0; k < (interpolation ? 3 : 4); k++) PetscCall(MatSetValue(*A, r, c[k], v[k], ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, P;
  int code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Every allocation and every device call of one process failing in turn\n"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  F.malloc       = PetscTrMalloc;
  F.free         = PetscTrFree;
  F.realloc      = PetscTrRealloc;
  PetscTrMalloc  = Malloc;
  PetscTrFree    = Free;
  PetscTrRealloc = Realloc;
  PetscCall(Make(24, PETSC_FALSE, &A));
  PetscCall(Make(24, PETSC_TRUE, &P));
  { /* what is made once and kept: staging buffers, the device itself */
    Mat a, p, c;

    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &a));
    PetscCall(MatConvert(P, "aijhybridgpu", MAT_INITIAL_MATRIX, &p));
    PetscCall(Product(MATPRODUCT_PtAP, a, p, &c));
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&p));
    PetscCall(MatDestroy(&c));
  }
  PetscCall(Hook());
  PetscCall(Faults(MATPRODUCT_AB, PETSC_FALSE, A, P));
  PetscCall(Faults(MATPRODUCT_PtAP, PETSC_FALSE, A, P));
  PetscCall(Faults(MATPRODUCT_PtAP, PETSC_TRUE, A, P));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(MatTestFinalize(&code));
  PetscTrMalloc  = F.malloc;
  PetscTrFree    = F.free;
  PetscTrRealloc = F.realloc;
  PetscCall(PetscFinalize());
  return code;
}
