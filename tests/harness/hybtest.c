#include "hybtest.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
  HybExec    exec;
  PetscBool  slow;
  PetscInt   seed;
  PetscInt   part, parts, pieces; /* this run does every parts-th piece, from the part-th on */
  uint64_t   random;
  char       matrices[PETSC_MAX_PATH_LEN];
  char       name[256]; /* of the open case; empty if none */
  PetscCount checks, failures, passed, failed, skipped;
  PetscBool  skip, times;
  double     start; /* of the open case */
} T;

/* What the library holds: every live allocation of PETSc's malloc made from a file of src/ since HybTestInit(). The
   same functions make the k-th allocation fail. */
typedef struct {
  void       *ptr;
  size_t      bytes;
  int         line;
  const char *file;
} Live;

static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  PetscErrorCode (*free)(void *, int, const char[], const char[]);
  PetscErrorCode (*realloc)(size_t, int, const char[], const char[], void **);
  Live      *live;
  PetscCount nlive, capacity;
  PetscCount count, target; /* allocations since the fault was armed; 0: disarmed */
  PetscBool  fired, ours;   /* ours: of PETSc's malloc, those of the library's files alone */
} Memory;

static PetscBool Fault(void)
{
  if (!Memory.target || ++Memory.count != Memory.target) return PETSC_FALSE;
  Memory.fired = PETSC_TRUE;
  return PETSC_TRUE;
}

static int FaultHook(const char *what)
{
  return (int)Fault();
}

static PetscBool OurFile(const char file[])
{
  return (PetscBool)(file && (!strncmp(file, "src/", 4) || strstr(file, "/src/sparse/") || strstr(file, "/src/mat/impls/aijhybridgpu") || strstr(file, "/src/petsc/")));
}

static void LiveAdd(void *ptr, size_t bytes, int line, const char *file)
{
  if (!ptr || !OurFile(file)) return;
  if (Memory.nlive == Memory.capacity) {
    Memory.capacity = 2 * Memory.capacity + 64;
    Memory.live     = (Live *)realloc(Memory.live, (size_t)Memory.capacity * sizeof(Live));
    if (!Memory.live) abort();
  }
  Memory.live[Memory.nlive].ptr    = ptr;
  Memory.live[Memory.nlive].bytes  = bytes;
  Memory.live[Memory.nlive].line   = line;
  Memory.live[Memory.nlive++].file = file;
}

static void LiveRemove(const void *ptr)
{
  for (PetscCount k = Memory.nlive - 1; ptr && k >= 0; k--) {
    if (Memory.live[k].ptr != ptr) continue;
    Memory.live[k] = Memory.live[--Memory.nlive];
    return;
  }
}

static PetscErrorCode TestMalloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  PetscErrorCode ierr;

  if ((!Memory.ours || OurFile(file)) && Fault()) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected: allocation %td of %zu bytes", Memory.count, bytes);
  }
  ierr = (*Memory.malloc)(bytes, clear, line, func, file, ptr);
  if (!ierr) LiveAdd(*ptr, bytes, line, file);
  return ierr;
}

static PetscErrorCode TestFree(void *ptr, int line, const char func[], const char file[])
{
  LiveRemove(ptr);
  return (*Memory.free)(ptr, line, func, file);
}

static PetscErrorCode TestRealloc(size_t bytes, int line, const char func[], const char file[], void **ptr)
{
  PetscErrorCode ierr;
  void          *old = *ptr;

  if ((!Memory.ours || OurFile(file)) && Fault()) return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected: reallocation %td of %zu bytes", Memory.count, bytes);
  ierr = (*Memory.realloc)(bytes, line, func, file, ptr);
  if (!ierr) {
    LiveRemove(old);
    LiveAdd(*ptr, bytes, line, file);
  }
  return ierr;
}

static void MemoryWatch(PetscBool on)
{
  if (on) {
    Memory.malloc  = PetscTrMalloc;
    Memory.free    = PetscTrFree;
    Memory.realloc = PetscTrRealloc;
    PetscTrMalloc  = TestMalloc;
    PetscTrFree    = TestFree;
    PetscTrRealloc = TestRealloc;
  } else {
    PetscTrMalloc  = Memory.malloc;
    PetscTrFree    = Memory.free;
    PetscTrRealloc = Memory.realloc;
  }
}

/* bytes held by the library here and on the device, and the number of its blocks here */
static size_t MemoryHeld(PetscCount *blocks)
{
  size_t          bytes = 0;
  HybMemoryReport report;

  for (PetscCount k = 0; k < Memory.nlive; k++) bytes += Memory.live[k].bytes;
  *blocks = Memory.nlive;
  if (T.exec.backend && T.exec.backend->device) {
    memset(&report, 0, sizeof(report));
    PetscCallAbort(PETSC_COMM_SELF, T.exec.backend->sync(&T.exec));
    PetscCallAbort(PETSC_COMM_SELF, T.exec.backend->memory(&report));
    bytes += report.device_bytes + report.managed_bytes;
  }
  return bytes;
}

static struct {
  unsigned long long (*emulator)(void), count;
  HybBackend        backend;
  const HybBackend *counted;
} Waits;

static PetscErrorCode WaitingCopy(const HybExec *x, void *dst, const void *src, size_t bytes, HybCopyKind kind)
{
  if (bytes && kind == HYB_COPY_DEVICE_TO_HOST) Waits.count++;
  return Waits.counted->copy(x, dst, src, bytes, kind);
}

static PetscErrorCode WaitingSync(const HybExec *x)
{
  Waits.count++;
  return Waits.counted->sync(x);
}

unsigned long long HybTestWaits(void)
{
  return Waits.emulator ? Waits.emulator() : Waits.count;
}

void HybTestCountWaits(HybExec *x)
{
  if (!x->backend->device || x->backend == &Waits.backend) return;
  Waits.counted      = x->backend;
  Waits.backend      = *x->backend;
  Waits.backend.copy = WaitingCopy;
  Waits.backend.sync = WaitingSync;
  x->backend         = &Waits.backend;
}

const HybExec *HybTestExec(void)
{
  return &T.exec;
}

static HybServices Services; /* at first */
static char        Library[PETSC_MAX_PATH_LEN];

void HybTestServe(int processes, size_t more)
{
  HybServices       services = Services;
  HybMemoryReport   r;
  const HybBackend *backend;
  char              message[512];

  HybTestCall(T.exec.backend->usage(&r, PETSC_FALSE));
  if (processes) services.processes = processes;
  if (more) services.memory_limit = r.device_bytes + r.managed_bytes + more;
  HybTestCall(HybBackendLoad(Library, &services, &backend, message, sizeof(message)));
  HybTestCheck(backend == T.exec.backend, "%s", message);
}

static PetscErrorCode ScarceMemory(HybMemoryReport *report)
{
  const PetscErrorCode ierr = HybTestExec()->backend->memory(report);

  report->free_bytes = (size_t)4 << 20;
  return ierr;
}

const HybBackend *HybTestScarce(void)
{
  static HybBackend scarce;

  scarce        = *HybTestExec()->backend;
  scarce.memory = ScarceMemory;
  return &scarce;
}

PetscBool HybTestSlow(void)
{
  return T.slow;
}

PetscInt HybTestSize(PetscInt full, PetscInt slow)
{
  return T.slow ? slow : full;
}

const char *HybTestFolder(void)
{
  return T.matrices;
}

static void Seed(PetscInt piece)
{
  T.random = ((uint64_t)T.seed + (uint64_t)piece * 0xD1B54A32D192ED03u) * 0x9E3779B97F4A7C15u + 1;
}

PetscBool HybTestMine(void)
{
  const PetscInt k = T.pieces++;

  Seed(T.pieces);
  /* one further in every round: programs go through the same pieces for one method after the other */
  return (PetscBool)((k + k / T.parts) % T.parts == T.part - 1);
}

static double Now(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void Close(void)
{
  if (!T.name[0]) return;
  if (T.times) printf("%8.3f s  %s\n", Now() - T.start, T.name);
  if (!T.checks && !T.failures && !T.skip) {
    printf("FAILED: %s: nothing was checked\n", T.name);
    T.failures++;
  }
  if (T.failures)
    T.failed++;
  else if (T.skip)
    T.skipped++;
  else
    T.passed++;
  if (T.failures) {
    printf("  to repeat: -backend %s -seed %" PetscInt_FMT, T.exec.backend ? T.exec.backend->name : "?", T.seed);
    if (T.parts > 1) printf(" -part %" PetscInt_FMT "/%" PetscInt_FMT, T.part, T.parts);
    printf("\n");
  }
  fflush(stdout);
  T.name[0] = 0;
}

void HybTestBegin(const char *format, ...)
{
  va_list args;

  Close();
  va_start(args, format);
  vsnprintf(T.name, sizeof(T.name), format, args);
  va_end(args);
  if (!T.name[0]) T.name[0] = '?';
  T.checks = T.failures = 0;
  T.skip                = PETSC_FALSE;
  T.start               = Now();
}

PetscBool HybTestFailed(void)
{
  return (PetscBool)(T.failures > 0);
}

void HybTestSkip(const char *format, ...)
{
  va_list args;

  T.skip = PETSC_TRUE;
  printf("SKIPPED: %s: ", T.name);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  printf("\n");
}

static void Failed(const char *file, int line)
{
  if (T.failures++ == 0) printf("FAILED: %s\n", T.name[0] ? T.name : "outside of any case");
  if (T.failures <= 10) printf("  %s:%d: ", file, line);
}

PetscBool HybTestCheck_Private(PetscBool ok, const char *file, int line, const char *format, ...)
{
  va_list args;

  T.checks++;
  if (ok) return PETSC_TRUE;
  Failed(file, line);
  if (T.failures <= 10) {
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
  }
  fflush(stdout);
  return PETSC_FALSE;
}

PetscBool HybTestCall_Private(PetscErrorCode ierr, const char *what, const char *file, int line)
{
  if (!ierr) {
    T.checks++;
    return PETSC_TRUE;
  }
  Failed(file, line);
  if (T.failures <= 10) printf("error %d from %s\n", (int)ierr, what);
  fflush(stdout);
  return PETSC_FALSE;
}

void HybTestExpect_Private(PetscBool begin)
{
  PetscCallAbort(PETSC_COMM_SELF, begin ? PetscPushErrorHandler(PetscReturnErrorHandler, NULL) : PetscPopErrorHandler());
}

PetscBool HybTestExpected_Private(PetscErrorCode ierr, PetscErrorCode expected, const char *what, const char *file, int line)
{
  HybTestExpect_Private(PETSC_FALSE);
  return HybTestCheck_Private((PetscBool)(ierr == expected), file, line, "error %d, expected %d, from %s", (int)ierr, (int)expected, what);
}

PetscErrorCode HybTestOption(const char option[], char value[], size_t length, PetscBool *set)
{
  return PetscOptionsGetString(NULL, NULL, option, value, length, set);
}

void HybTestInit(int *argc, char ***argv)
{
  char      backend[PETSC_MAX_PATH_LEN] = "host", result[32] = "device", message[1024] = "", part[32] = "1/1", rest;
  PetscBool mirror = PETSC_FALSE;

  PetscCallAbort(PETSC_COMM_SELF, PetscInitialize(argc, argv, NULL, NULL));
  PetscCallAbort(PETSC_COMM_SELF, HybTuningRead(HybTestOption));
  memset(&T, 0, sizeof(T));
  T.seed = 1;
  T.part = T.parts = 1;
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetString(NULL, NULL, "-result", result, sizeof(result), NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetString(NULL, NULL, "-matrices", T.matrices, sizeof(T.matrices), NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetInt(NULL, NULL, "-seed", &T.seed, NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetBool(NULL, NULL, "-mirror", &mirror, NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetBool(NULL, NULL, "-times", &T.times, NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetBool(NULL, NULL, "-small", &T.slow, NULL));
  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetString(NULL, NULL, "-part", part, sizeof(part), NULL));
  if (sscanf(part, "%" PetscInt_FMT "/%" PetscInt_FMT "%c", &T.part, &T.parts, &rest) != 2 || T.part < 1 || T.part > T.parts) {
    printf("FAILED: -part wants K/N, K from 1 to N, not %s\n0 passed, 1 failed, 0 skipped\n", part);
    exit(1);
  }
  Seed(0);
  if (!strcmp(backend, "host"))
    T.exec.backend = &HybBackendHost;
  else {
    Services.size = sizeof(Services);
    MPI_Comm_rank(PETSC_COMM_WORLD, &Services.rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &Services.processes);
    Services.device           = Services.processes > 1 ? -2 : -1;
    Services.managed_fraction = 0.5;
    Services.locked_fraction  = 0.1;
    Services.mirror           = (int)mirror;
    Services.fault            = FaultHook;
    PetscCallAbort(PETSC_COMM_SELF, PetscStrncpy(Library, backend, sizeof(Library)));
    PetscCallAbort(PETSC_COMM_SELF, HybBackendLoad(backend, &Services, &T.exec.backend, message, sizeof(message)));
    if (!T.exec.backend) {
      printf("FAILED: no backend from %s: %s\n0 passed, 1 failed, 0 skipped\n", backend, message);
      exit(1);
    }
  }
  T.exec.result = !T.exec.backend->device ? HYB_MEM_HOST : strcmp(result, "managed") ? HYB_MEM_DEVICE
                                                                                     : HYB_MEM_MANAGED;
  if (!strcmp(T.exec.backend->name, "emulated")) {
    void *library = dlopen(backend, RTLD_NOW | RTLD_NOLOAD);

    T.slow = PETSC_TRUE;
    if (library) *(void **)&Waits.emulator = dlsym(library, "HybEmulatorWaits");
  }
  MemoryWatch(PETSC_TRUE);
}

int HybTestFinalize(void)
{
  PetscCount  blocks;
  size_t      bytes;
  PetscMPIInt rank;
  int         failed;

  Close();
  MemoryWatch(PETSC_FALSE);
  bytes = MemoryHeld(&blocks);
  if (bytes) {
    HybTestBegin("memory at the end");
    HybTestCheck(PETSC_FALSE, "%zu bytes of the library are still held, %td blocks of PetscMalloc() among them", bytes, blocks);
    for (PetscCount k = 0; k < blocks && k < 10; k++) printf("    %zu bytes from %s:%d\n", Memory.live[k].bytes, Memory.live[k].file, Memory.live[k].line);
    Close();
  }
  if (T.parts == 1 && !(T.passed + T.failed + T.skipped)) {
    HybTestBegin("the program");
    HybTestCheck(PETSC_FALSE, "it has checked nothing");
    Close();
  }
  free(Memory.live);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  failed = (int)T.failed;
  /* the cases are the same on all processes */
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD);
  T.failed = failed;
  PetscCallAbort(PETSC_COMM_SELF, PetscFinalize());
  if (!rank) printf("%td passed, %td failed, %td skipped\n", T.passed, T.failed, T.skipped);
  fflush(stdout);
  return T.failed ? 1 : 0;
}

PetscErrorCode HybTestArenasInit(const HybExec *exec, HybArena *const arenas[])
{
  PetscFunctionBegin;
  for (; *arenas; arenas++) **arenas = HybArenaOn(exec);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTestResetAll(HybArena *const arenas[])
{
  PetscErrorCode error = PETSC_SUCCESS;

  for (; *arenas; arenas++) {
    const PetscErrorCode ierr = HybArenaReset(*arenas);

    if (!error) error = ierr;
  }
  return error;
}

int HybTestMain(int argc, char **argv, PetscErrorCode (*body)(void))
{
  PetscErrorCode ierr;

  HybTestInit(&argc, &argv);
  ierr = (*body)();
  if (ierr) {
    if (!T.name[0]) HybTestBegin("the program");
    HybTestCheck(PETSC_FALSE, "the program ended with error %d", (int)ierr);
  }
  return HybTestFinalize();
}

/* which: the process where something fails, and what its library alone asks for; -1: here, whatever is asked for */
static void Faults(PetscMPIInt which, PetscErrorCode (*run)(void *), PetscErrorCode (*cleanup)(void *), void *ctx)
{
  PetscMPIInt rank;
  PetscCount  before, after;

  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  for (PetscCount k = 1;; k += T.slow ? 1 + k / 16 : 1) { /* under the emulator the later ones are sampled */
    const size_t   held = MemoryHeld(&before);
    size_t         now;
    PetscErrorCode ierr;
    int            fired;

    PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    Memory.ours   = (PetscBool)(which >= 0);
    Memory.count  = 0;
    Memory.fired  = PETSC_FALSE;
    Memory.target = which < 0 || rank == which ? k : 0;
    ierr          = (*run)(ctx);
    Memory.target = 0;
    Memory.ours   = PETSC_FALSE;
    fired         = Memory.fired;
    PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
    if (which >= 0) MPI_Bcast(&fired, 1, MPI_INT, which, PETSC_COMM_WORLD);
    if (cleanup) HybTestCall((*cleanup)(ctx));
    now = MemoryHeld(&after);
    HybTestCheck(now == held && before == after, "allocation %td of process %d failing: %zu bytes in %td blocks before the call, %zu in %td after it and its clean-up", k, which < 0 ? rank : which, held, before, now, after);
    if (!fired) {
      HybTestCheck(!ierr, "error %d without a failing allocation", (int)ierr);
      HybTestCheck(k > 1, "nothing was allocated");
      return;
    }
    if (which >= 0) {
      int bad[2] = {ierr != PETSC_SUCCESS, -(ierr != PETSC_SUCCESS)};

      MPI_Allreduce(MPI_IN_PLACE, bad, 2, MPI_INT, MPI_MAX, PETSC_COMM_WORLD);
      HybTestCheck(bad[0] == -bad[1], "allocation %td of process %d failed, process %d had error %d and not all have one", k, which, rank, (int)ierr);
    } else if (!HybTestCheck(ierr, "allocation %td failed and nobody noticed", k))
      return;
    if (!HybTestCheck(k < 100000, "still failing after %td allocations", k)) return;
  }
}

void HybTestFaults(PetscErrorCode (*run)(void *), PetscErrorCode (*cleanup)(void *), void *ctx)
{
  Faults(-1, run, cleanup, ctx);
}

void HybTestFaultsServed(PetscMPIInt which, PetscErrorCode (*run)(void *), PetscErrorCode (*cleanup)(void *), void *ctx)
{
  Faults(which, run, cleanup, ctx);
}

/* splitmix64 */
static uint64_t Random(void)
{
  uint64_t z = (T.random += 0x9E3779B97F4A7C15u);

  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

PetscInt HybTestRandomInt(PetscInt lo, PetscInt hi)
{
  return hi <= lo ? lo : lo + (PetscInt)(Random() % (uint64_t)(hi - lo));
}

PetscReal HybTestRandomReal(void)
{
  return (PetscReal)((double)(Random() >> 12) * (1.0 / 4503599627370496.0));
}

static PetscReal RandomPart(void)
{
  PetscReal v;

  do v = 2 * HybTestRandomReal() - 1;
  while (v == 0);
  return v;
}

PetscScalar HybTestRandomScalar(void)
{
#if defined(PETSC_USE_COMPLEX)
  const PetscReal re = RandomPart(), im = RandomPart();

  return PetscCMPLX(re, im);
#else
  return RandomPart();
#endif
}

void HybTestRandomize(RefMat *A)
{
  for (PetscCount k = 0; k < A->csr.nnz; k++) A->csr.a[k] = HybTestRandomScalar();
}

PetscScalar *HybTestRandomVector(PetscCount n)
{
  PetscScalar *x = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));

  for (PetscCount k = 0; k < n; k++) x[k] = HybTestRandomScalar();
  return x;
}

/* The harness's own traffic does not count as the library's: no fault is injected here */
PetscErrorCode HybTestUploadArray(HybArena *arena, PetscCount n, size_t size, const void *host, void *ptr)
{
  const PetscCount target = Memory.target;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  Memory.target = 0;
  ierr          = HybArenaAlloc(arena, HYB_WORK(&arena->exec), n, size, ptr);
  if (!ierr && n) ierr = arena->exec.backend->copy(&arena->exec, *(void **)ptr, host, (size_t)n * size, HYB_COPY_HOST_TO_DEVICE);
  Memory.target = target;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTestDownloadArray(PetscCount n, size_t size, const void *there, void *host)
{
  const PetscCount target = Memory.target;
  PetscErrorCode   ierr   = PETSC_SUCCESS, second;

  PetscFunctionBegin;
  Memory.target = 0;
  if (n) ierr = T.exec.backend->copy(&T.exec, host, there, (size_t)n * size, HYB_COPY_DEVICE_TO_HOST);
  second        = T.exec.backend->sync(&T.exec);
  Memory.target = target;
  PetscCall(HybErrorFirst(ierr, second));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTestUpload(HybArena *arena, const HybCSR *host, HybCSR *there)
{
  PetscFunctionBegin;
  there->m   = host->m;
  there->n   = host->n;
  there->nnz = host->nnz;
  there->a   = NULL;
  PetscCall(HybTestUploadArray(arena, (PetscCount)host->m + 1, sizeof(PetscInt), host->i, &there->i));
  PetscCall(HybTestUploadArray(arena, host->nnz, sizeof(PetscInt), host->j, &there->j));
  if (host->a) PetscCall(HybTestUploadArray(arena, host->nnz, sizeof(PetscScalar), host->a, &there->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTestUploadMoved(HybArena *arena, const RefMat *B, PetscCount nnz, HybCSR *M)
{
  const PetscCount by = nnz - B->csr.nnz;
  PetscInt        *i  = (PetscInt *)RefAlloc((PetscCount)B->csr.m + 1, sizeof(PetscInt));

  PetscFunctionBegin;
  PetscCall(HybTestUpload(arena, &B->csr, M));
  for (PetscInt r = 0; r <= B->csr.m; r++) i[r] = (PetscInt)(B->csr.i[r] + by);
  PetscCall(HybTestUploadArray(arena, (PetscCount)B->csr.m + 1, sizeof(PetscInt), i, &M->i));
  M->j   = (PetscInt *)((uintptr_t)M->j - (uintptr_t)by * sizeof(PetscInt));
  M->a   = (HybScalar *)((uintptr_t)M->a - (uintptr_t)by * sizeof(HybScalar));
  M->nnz = nnz;
  free(i);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTestDownload(const HybCSR *there, RefMat *host)
{
  PetscFunctionBegin;
  RefMatCreate(there->m, there->n, there->nnz, host);
  PetscCall(HybTestDownloadArray((PetscCount)there->m + 1, sizeof(PetscInt), there->i, host->csr.i));
  PetscCall(HybTestDownloadArray(there->nnz, sizeof(PetscInt), there->j, host->csr.j));
  if (there->a) PetscCall(HybTestDownloadArray(there->nnz, sizeof(PetscScalar), there->a, host->csr.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybTestSamePattern(const HybCSR *there, const RefMat *E)
{
  const HybCSR *e       = &E->csr;
  HybCSR        pattern = *there;
  RefMat        F;
  PetscBool     same;

  if (!HybTestCheck(there->m == e->m && there->n == e->n && there->nnz == e->nnz, "%" PetscInt_FMT " x %" PetscInt_FMT " with %td entries, expected %" PetscInt_FMT " x %" PetscInt_FMT " with %td", there->m, there->n, there->nnz, e->m, e->n, e->nnz)) return PETSC_FALSE;
  pattern.a = NULL;
  if (!HybTestCall(HybTestDownload(&pattern, &F))) return PETSC_FALSE;
  same = PETSC_TRUE;
  for (PetscInt r = 0; same && r <= e->m; r++) same = HybTestCheck(F.csr.i[r] == e->i[r], "offset %" PetscInt_FMT " is %" PetscInt_FMT ", expected %" PetscInt_FMT, r, F.csr.i[r], e->i[r]);
  for (PetscInt r = 0; same && r < e->m; r++)
    for (PetscInt k = e->i[r]; same && k < e->i[r + 1]; k++) same = HybTestCheck(F.csr.j[k] == e->j[k], "entry %" PetscInt_FMT " of row %" PetscInt_FMT " has column %" PetscInt_FMT ", expected %" PetscInt_FMT, k - e->i[r], r, F.csr.j[k], e->j[k]);
  RefMatDestroy(&F);
  return same;
}

PetscBool HybTestClose(PetscScalar found, PetscScalar expected, PetscReal mag, PetscCount terms, PetscReal c)
{
  if (PetscIsInfOrNanScalar(expected) || PetscIsInfOrNanScalar(found)) {
    if (PetscIsNanScalar(expected)) return (PetscBool)PetscIsNanScalar(found);
#if defined(PETSC_USE_COMPLEX)
    return (PetscBool)(PetscIsInfOrNanScalar(found) && PetscIsInfOrNanScalar(expected));
#else
    return (PetscBool)(found == expected);
#endif
  }
  return (PetscBool)(PetscAbsScalar(found - expected) <= c * PETSC_MACHINE_EPSILON * (PetscReal)(terms + 1) * mag);
}

PetscBool HybTestSameScalars(PetscCount n, const PetscScalar *there, const PetscScalar *expected, const PetscReal *mag, const PetscCount *terms, PetscReal c)
{
  PetscScalar *f    = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  PetscBool    same = HybTestCall(HybTestDownloadArray(n, sizeof(PetscScalar), there, f));

  for (PetscCount k = 0; same && k < n; k++) {
    const PetscReal  size = mag ? mag[k] : PetscAbsScalar(expected[k]);
    const PetscCount t    = terms ? terms[k] : 1;

    same = HybTestCheck(HybTestClose(f[k], expected[k], size, t, c), "value %td is %.17g%+.17gi, expected %.17g%+.17gi: off by %g, %td terms of together %g", k, (double)PetscRealPart(f[k]), (double)PetscImaginaryPart(f[k]), (double)PetscRealPart(expected[k]), (double)PetscImaginaryPart(expected[k]), (double)PetscAbsScalar(f[k] - expected[k]), t, (double)size);
  }
  free(f);
  return same;
}

PetscBool HybTestSameMatrix(const HybCSR *there, const RefMat *E, PetscReal c)
{
  if (!HybTestSamePattern(there, E)) return PETSC_FALSE;
  if (!HybTestCheck(there->a || !E->csr.nnz, "there are no values")) return PETSC_FALSE;
  return HybTestSameScalars(E->csr.nnz, there->a, E->csr.a, E->mag, E->terms, c);
}

PetscBool HybTestSameInts(PetscCount n, const PetscInt *there, const PetscInt *expected)
{
  PetscInt *f    = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  PetscBool same = HybTestCall(HybTestDownloadArray(n, sizeof(PetscInt), there, f));

  for (PetscCount k = 0; same && k < n; k++) same = HybTestCheck(f[k] == expected[k], "number %td is %" PetscInt_FMT ", expected %" PetscInt_FMT, k, f[k], expected[k]);
  free(f);
  return same;
}

PetscBool HybTestSameCounts(PetscCount n, const PetscCount *there, const PetscCount *expected)
{
  PetscCount *f    = (PetscCount *)RefAlloc(n, sizeof(PetscCount));
  PetscBool   same = HybTestCall(HybTestDownloadArray(n, sizeof(PetscCount), there, f));

  for (PetscCount k = 0; same && k < n; k++) same = HybTestCheck(f[k] == expected[k], "number %td is %td, expected %td", k, f[k], expected[k]);
  free(f);
  return same;
}

PetscBool HybTestSameBits(PetscCount n, size_t size, const void *there, const void *expected)
{
  char      *f    = (char *)RefAlloc(n, size);
  PetscBool  same = HybTestCall(HybTestDownloadArray(n, size, there, f));
  PetscCount k    = 0;

  if (same) {
    while (k < n && !memcmp(f + (size_t)k * size, (const char *)expected + (size_t)k * size, size)) k++;
    same = HybTestCheck(k == n, "item %td of %td (%zu bytes each) has other bits", k, n, size);
  }
  free(f);
  return same;
}
