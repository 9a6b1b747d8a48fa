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
  (void)what;
  return (int)Fault();
}

static PetscBool OurFile(const char file[])
{
  return (PetscBool)(file && (!strncmp(file, "src/", 4) || strstr(file, "/src/sparse/") || strstr(file, "/src/mat/impls/aijhybridgpu")));
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

PetscBool HybTestSlow(void)
{
  return T.slow;
}

PetscInt HybTestSize(PetscInt full, PetscInt slow)
{
  return T.slow ? slow : full;
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

void HybTestInit(int *argc, char ***argv)
{
  char        backend[PETSC_MAX_PATH_LEN] = "host", result[32] = "device", message[1024] = "", part[32] = "1/1", rest;
  HybServices services;
  PetscBool   mirror = PETSC_FALSE;

  PetscCallAbort(PETSC_COMM_SELF, PetscInitialize(argc, argv, NULL, NULL));
  PetscCallAbort(PETSC_COMM_SELF, HybTuningRead());
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
    memset(&services, 0, sizeof(services));
    services.size = sizeof(services);
    MPI_Comm_rank(PETSC_COMM_WORLD, &services.rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &services.processes);
    services.device           = services.processes > 1 ? -2 : -1;
    services.managed_fraction = 0.5;
    services.locked_fraction  = 0.1;
    services.mirror           = (int)mirror;
    services.fault            = FaultHook;
    PetscCallAbort(PETSC_COMM_SELF, HybBackendLoad(backend, &services, &T.exec.backend, message, sizeof(message)));
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
  free(Memory.live);
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  failed = (int)T.failed;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD); /* the cases are the same on all processes */
  T.failed = failed;
  PetscCallAbort(PETSC_COMM_SELF, PetscFinalize());
  if (!rank) printf("%td passed, %td failed, %td skipped\n", T.passed, T.failed, T.skipped);
  fflush(stdout);
  return T.failed ? 1 : 0;
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

void HybTestFaults(PetscErrorCode (*run)(void *), PetscErrorCode (*cleanup)(void *), void *ctx)
{
  PetscCount before, after;
  size_t     held;

  for (PetscCount k = 1;; k += T.slow ? 1 + k / 16 : 1) { /* under the emulator the later ones are sampled */
    PetscErrorCode ierr;
    PetscBool      fired;
    size_t         now;

    held = MemoryHeld(&before);
    PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    Memory.count  = 0;
    Memory.fired  = PETSC_FALSE;
    Memory.target = k;
    ierr          = (*run)(ctx);
    Memory.target = 0;
    fired         = Memory.fired;
    PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
    if (cleanup) HybTestCall((*cleanup)(ctx));
    now = MemoryHeld(&after);
    HybTestCheck(now == held && before == after, "allocation %td failing: %zu bytes in %td blocks before the call, %zu in %td after it and its clean-up", k, held, before, now, after);
    if (!fired) {
      HybTestCheck(!ierr, "error %d without a failing allocation", (int)ierr);
      HybTestCheck(k > 1, "nothing was allocated");
      return;
    }
    if (!HybTestCheck(ierr, "allocation %td failed and nobody noticed", k)) return;
    if (!HybTestCheck(k < 100000, "still failing after %td allocations", k)) return;
  }
}

void HybTestFaultsOn(PetscMPIInt which, PetscErrorCode (*run)(void *), PetscErrorCode (*cleanup)(void *), void *ctx)
{
  PetscMPIInt rank;
  PetscCount  before, after;

  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  for (PetscCount k = 1;; k += T.slow ? 1 + k / 16 : 1) {
    const size_t   held = MemoryHeld(&before);
    size_t         now;
    PetscErrorCode ierr;
    int            fired;

    PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    Memory.ours   = PETSC_TRUE;
    Memory.count  = 0;
    Memory.fired  = PETSC_FALSE;
    Memory.target = rank == which ? k : 0;
    ierr          = (*run)(ctx);
    Memory.target = 0;
    Memory.ours   = PETSC_FALSE;
    fired         = Memory.fired;
    PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
    MPI_Bcast(&fired, 1, MPI_INT, which, PETSC_COMM_WORLD);
    if (cleanup) HybTestCall((*cleanup)(ctx));
    now = MemoryHeld(&after);
    HybTestCheck(now == held && before == after, "allocation %td of process %d failing: %zu bytes in %td blocks before the call, %zu in %td after it and its clean-up", k, which, held, before, now, after);
    if (!fired) {
      HybTestCheck(!ierr, "error %d without a failing allocation", (int)ierr);
      HybTestCheck(k > 1, "nothing was allocated");
      return;
    }
    HybTestCheck(ierr, "allocation %td of process %d failed, process %d did not notice", k, which, rank);
    if (k > 100000) return;
  }
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

static int IntCompare(const void *a, const void *b)
{
  const PetscInt p = *(const PetscInt *)a, q = *(const PetscInt *)b;

  return p < q ? -1 : p > q;
}

void HybTestMatArrays(PetscInt m, PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a, RefMat *A)
{
  RefMatCreate(m, n, i[m], A);
  for (PetscInt r = 0; r <= m; r++) A->csr.i[r] = i[r];
  for (PetscCount k = 0; k < A->csr.nnz; k++) A->csr.j[k] = j[k];
  if (a)
    for (PetscCount k = 0; k < A->csr.nnz; k++) A->csr.a[k] = a[k];
  else
    HybTestRandomize(A);
}

/* cols[0..len-1] = len different columns below n, ascending: Floyd's sampling with a mark per column */
static void Sample(PetscInt n, PetscInt len, PetscInt stamp, PetscInt *mark, PetscInt *cols)
{
  PetscInt k = 0;

  if (len == n) {
    for (PetscInt c = 0; c < n; c++) cols[c] = c;
    return;
  }
  for (PetscInt c = n - len; c < n; c++) {
    PetscInt r = HybTestRandomInt(0, c + 1);

    if (mark[r] == stamp) r = c;
    mark[r]   = stamp;
    cols[k++] = r;
  }
  qsort(cols, (size_t)len, sizeof(PetscInt), IntCompare);
}

void HybTestMatLengths(PetscInt m, PetscInt n, const PetscInt *lengths, RefMat *A)
{
  PetscInt  *mark = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  PetscCount nnz  = 0;

  for (PetscInt r = 0; r < m; r++) nnz += PetscMin(lengths[r], n);
  RefMatCreate(m, n, nnz, A);
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = PetscMin(lengths[r], n);

    Sample(n, len, r + 1, mark, A->csr.j + A->csr.i[r]);
    A->csr.i[r + 1] = A->csr.i[r] + len;
  }
  HybTestRandomize(A);
  free(mark);
}

void HybTestMatRandom(PetscInt m, PetscInt n, PetscInt lo, PetscInt hi, RefMat *A)
{
  PetscInt *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = HybTestRandomInt(lo, hi + 1);
  HybTestMatLengths(m, n, lengths, A);
  free(lengths);
}

void HybTestMatPowerLaw(PetscInt m, PetscInt n, PetscInt average, RefMat *A)
{
  const PetscCount nnz = (PetscCount)m * average;
  PetscInt        *ci = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt));

  /* products of uniform numbers: a density that falls like a power; rows and columns are scattered by a stride that is
     coprime to most sizes */
  for (PetscCount k = 0; k < nnz; k++) {
    PetscReal u = HybTestRandomReal() * HybTestRandomReal() * HybTestRandomReal(), v = HybTestRandomReal() * HybTestRandomReal();

    ci[k] = (PetscInt)(((int64_t)(u * m) * 7919) % m);
    cj[k] = (PetscInt)(((int64_t)(v * n) * 104729) % n);
  }
  RefCOO(m, n, nnz, ci, cj, NULL, A);
  free(A->mag);
  free(A->terms);
  A->mag   = NULL;
  A->terms = NULL;
  HybTestRandomize(A);
  free(ci);
  free(cj);
}

void HybTestMatStencil(PetscInt points, PetscInt nx, PetscInt ny, PetscInt nz, RefMat *A)
{
  const PetscInt m = nx * ny * nz, dz = points == 7 || points == 27;
  PetscInt      *j = (PetscInt *)RefAlloc((PetscCount)m * points, sizeof(PetscInt)), *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), nnz = 0;

  if (!(points == 5 || points == 7 || points == 9 || points == 27)) abort();
  for (PetscInt z = 0; z < nz; z++)
    for (PetscInt y = 0; y < ny; y++)
      for (PetscInt x = 0; x < nx; x++) {
        for (PetscInt c = -dz; c <= dz; c++)
          for (PetscInt b = -1; b <= 1; b++)
            for (PetscInt a = -1; a <= 1; a++) {
              if ((points == 5 || points == 7) && (a != 0) + (b != 0) + (c != 0) > 1) continue;
              if (x + a < 0 || x + a >= nx || y + b < 0 || y + b >= ny || z + c < 0 || z + c >= nz) continue;
              j[nnz++] = ((z + c) * ny + y + b) * nx + x + a;
            }
        i[(z * ny + y) * nx + x + 1] = nnz;
      }
  HybTestMatArrays(m, m, i, j, NULL, A);
  free(i);
  free(j);
}

void HybTestMatBlock(const RefMat *P, PetscInt bs, RefMat *A)
{
  PetscInt nnz = 0;

  RefMatCreate(P->csr.m * bs, P->csr.n * bs, P->csr.nnz * bs * bs, A);
  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = P->csr.i[r / bs]; k < P->csr.i[r / bs + 1]; k++)
      for (PetscInt c = 0; c < bs; c++) A->csr.j[nnz++] = P->csr.j[k] * bs + c;
    A->csr.i[r + 1] = nnz;
  }
  HybTestRandomize(A);
}

void HybTestMatBanded(PetscInt m, PetscInt n, PetscInt lower, PetscInt upper, RefMat *A)
{
  PetscInt nnz = 0;

  for (int pass = 0; pass < 2; pass++) {
    if (pass) RefMatCreate(m, n, nnz, A);
    nnz = 0;
    for (PetscInt r = 0; r < m; r++) {
      for (PetscInt c = PetscMax(0, r - lower); c <= PetscMin(n - 1, r + upper); c++) {
        if (pass) A->csr.j[nnz] = c;
        nnz++;
      }
      if (pass) A->csr.i[r + 1] = nnz;
    }
  }
  HybTestRandomize(A);
}

void HybTestMatDenseRow(PetscInt m, PetscInt n, PetscInt row, PetscInt others, RefMat *A)
{
  PetscInt *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = r == row ? n : others;
  HybTestMatLengths(m, n, lengths, A);
  free(lengths);
}

void HybTestMatDenseColumn(PetscInt m, PetscInt n, PetscInt col, PetscInt others, RefMat *A)
{
  RefMat     B;
  PetscInt  *ci, *cj;
  PetscCount k = 0;

  HybTestMatRandom(m, n, others, others, &B);
  ci = (PetscInt *)RefAlloc(B.csr.nnz + m, sizeof(PetscInt));
  cj = (PetscInt *)RefAlloc(B.csr.nnz + m, sizeof(PetscInt));
  for (PetscInt r = 0; r < m; r++) {
    ci[k]   = r;
    cj[k++] = col;
    for (PetscInt l = B.csr.i[r]; l < B.csr.i[r + 1]; l++) {
      ci[k]   = r;
      cj[k++] = B.csr.j[l];
    }
  }
  RefMatDestroy(&B);
  RefCOO(m, n, k, ci, cj, NULL, &B);
  HybTestMatArrays(m, n, B.csr.i, B.csr.j, NULL, A);
  RefMatDestroy(&B);
  free(ci);
  free(cj);
}

void HybTestMatEmpty(PetscInt m, PetscInt n, RefMat *A)
{
  RefMatCreate(m, n, 0, A);
}

void HybTestMatLoose(PetscInt m, PetscBool twice, RefMat *A)
{
  RefMatCreate(m, m, 3 * (PetscCount)m, A);
  for (PetscInt r = 0; r < m; r++) {
    PetscInt *c = A->csr.j + 3 * r;

    for (PetscInt k = 0; k < 3; k++) c[k] = PetscMin(PetscMax(r - 1, 0), m - 3) + k;
    if (r % 5 == 3) {
      if (twice)
        c[1] = c[0];
      else {
        const PetscInt t = c[0];

        c[0] = c[2];
        c[2] = t;
      }
    }
    A->csr.i[r + 1] = 3 * (r + 1);
  }
  HybTestRandomize(A);
}

void HybTestMatEmptyRows(RefMat *A, PetscInt from, PetscInt to, PetscInt step)
{
  PetscInt nnz = 0, begin = 0;

  for (PetscInt r = 0; r < A->csr.m; r++) {
    const PetscInt end = A->csr.i[r + 1];

    if (r < from || r >= to || (r - from) % step) {
      for (PetscInt k = begin; k < end; k++) {
        A->csr.j[nnz]   = A->csr.j[k];
        A->csr.a[nnz++] = A->csr.a[k];
      }
    }
    begin           = end;
    A->csr.i[r + 1] = nnz;
  }
  A->csr.nnz = nnz;
}

void HybTestMatProlongator(PetscInt m, PetscInt n, PetscInt width, RefMat *A)
{
  PetscInt *j = (PetscInt *)RefAlloc((PetscCount)m * width, sizeof(PetscInt)), *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m; r++) {
    const PetscInt centre = (PetscInt)((int64_t)r * n / m), len = HybTestRandomInt(1, width + 1);

    for (PetscInt c = PetscMax(0, centre - len / 2); c < PetscMin(n, centre - len / 2 + len); c++) j[nnz++] = c;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(m, n, i, j, NULL, A);
  free(i);
  free(j);
}

PetscBool HybTestZoo(PetscInt k, PetscBool square, char name[64], RefMat *A)
{
  RefMat    B;
  PetscInt  lengths[80], f;
  PetscBool issquare = PETSC_TRUE;
  /* the square ones come first */
  const PetscInt nsquare = 22, nall = nsquare + 14;

  if (k < 0 || k >= (square ? nsquare : nall)) return PETSC_FALSE;
  f = T.slow ? 1 : 4;
#define ZOO(number, text, make)     \
  case number:                      \
    snprintf(name, 64, "%s", text); \
    make;                           \
    break
  switch (k) {
    ZOO(0, "0 x 0", HybTestMatEmpty(0, 0, A));
    ZOO(1, "1 x 1 empty", HybTestMatEmpty(1, 1, A));
    ZOO(2, "1 x 1", HybTestMatBanded(1, 1, 0, 0, A));
    ZOO(3, "empty 37 x 37", HybTestMatEmpty(37, 37, A));
    ZOO(4, "diagonal", HybTestMatBanded(65 * f, 65 * f, 0, 0, A));
    ZOO(5, "tridiagonal", HybTestMatBanded(64 * f + 1, 64 * f + 1, 1, 1, A));
    ZOO(6, "dense 33 x 33", HybTestMatBanded(33, 33, 33, 33, A));
    ZOO(7, "lower triangle", HybTestMatBanded(40, 40, 40, 0, A));
    ZOO(8, "5-point", HybTestMatStencil(5, 9 * f, 7 * f, 1, A));
    ZOO(9, "9-point", HybTestMatStencil(9, 8 * f, 7 * f, 1, A));
    ZOO(10, "7-point", HybTestMatStencil(7, 3 * f, 4, 5, A));
    ZOO(11, "27-point", HybTestMatStencil(27, 2 * f, 5, 4, A));
    ZOO(12, "dense row", HybTestMatDenseRow(60 * f, 60 * f, 17, 2, A));
    ZOO(13, "dense column", HybTestMatDenseColumn(60 * f, 60 * f, 11, 2, A));
    ZOO(14, "power law", HybTestMatPowerLaw(75 * f, 75 * f, 5, A));
    ZOO(15, "random, 0 to 9 a row", HybTestMatRandom(70 * f, 70 * f, 0, 9, A));
    ZOO(16, "random, 20 to 45 a row", HybTestMatRandom(50 * f, 50 * f, 20, 45, A));
    ZOO(17, "empty rows first, last and every third", HybTestMatRandom(90 * f, 90 * f, 1, 6, A); HybTestMatEmptyRows(A, 0, 12, 1); HybTestMatEmptyRows(A, 80 * f, 90 * f, 1); HybTestMatEmptyRows(A, 12, 80 * f, 3));
    ZOO(18, "blocks of 3", HybTestMatStencil(7, 3, 3, f, &B); HybTestMatBlock(&B, 3, A); RefMatDestroy(&B));
    ZOO(19, "blocks of 2, random", HybTestMatRandom(30 * f, 30 * f, 0, 5, &B); HybTestMatBlock(&B, 2, A); RefMatDestroy(&B));
    ZOO(20, "one entry in the last corner", HybTestMatBanded(50, 50, 0, 0, A); HybTestMatEmptyRows(A, 0, 49, 1));
    ZOO(21, "row lengths 0 to 79", for (PetscInt r = 0; r < 80; r++) lengths[r] = r; HybTestMatLengths(80, 80, lengths, A));
  default:
    issquare = PETSC_FALSE;
    break;
  }
  if (issquare) return PETSC_TRUE;
  switch (k - nsquare) {
    ZOO(0, "0 x 7", HybTestMatEmpty(0, 7, A));
    ZOO(1, "7 x 0", HybTestMatEmpty(7, 0, A));
    ZOO(2, "1 x 300, dense", HybTestMatBanded(1, 300, 0, 300, A));
    ZOO(3, "300 x 1, dense", HybTestMatBanded(300, 1, 300, 0, A));
    ZOO(4, "1 x 50, one entry", HybTestMatRandom(1, 50, 1, 1, A));
    ZOO(5, "wide", HybTestMatRandom(20, 900 * f, 0, 40, A));
    ZOO(6, "tall", HybTestMatRandom(200 * f, 15, 0, 6, A));
    ZOO(7, "tall, power law", HybTestMatPowerLaw(120 * f, 40, 3, A));
    ZOO(8, "wide, power law", HybTestMatPowerLaw(40, 120 * f, 8, A));
    ZOO(9, "prolongator", HybTestMatProlongator(120 * f, 17 * f, 4, A));
    ZOO(10, "piecewise constant prolongator", HybTestMatProlongator(100 * f, 9 * f, 1, A));
    ZOO(11, "dense row, wide", HybTestMatDenseRow(5, 700, 4, 1, A));
    ZOO(12, "dense column, tall", HybTestMatDenseColumn(300 * f, 12, 0, 1, A));
    ZOO(13, "row lengths about powers of two", for (PetscInt r = 0; r < 80; r++) lengths[r] = (1 << (r % 10)) - 1 + (r / 10) % 3; HybTestMatLengths(T.slow ? 40 : 80, 700, lengths, A));
  default:
    return PETSC_FALSE;
  }
#undef ZOO
  return PETSC_TRUE;
}

PetscBool HybTestMatRead(const char *name, RefMat *A)
{
  char         command[PETSC_MAX_PATH_LEN + 128], path[PETSC_MAX_PATH_LEN + 64], *line = NULL, field[32] = "", symmetry[32] = "";
  size_t       length = 0;
  FILE        *f;
  long         m = -1, n = -1, nz = -1;
  PetscInt    *ci = NULL, *cj = NULL;
  PetscScalar *v    = NULL;
  PetscCount   k    = 0;
  PetscBool    good = PETSC_FALSE;

  if (!T.matrices[0]) {
    HybTestSkip("matrix %s: no folder of matrices was given (-matrices DIR)", name);
    return PETSC_FALSE;
  }
  snprintf(path, sizeof(path), "%s/%.40s.mtx.xz", T.matrices, name);
  f = fopen(path, "r");
  if (!f) {
    HybTestSkip("matrix %s is not in %s", name, T.matrices);
    return PETSC_FALSE;
  }
  fclose(f);
  snprintf(command, sizeof(command), "xz -dc '%s'", path);
  f = popen(command, "r");
  if (f && getline(&line, &length, f) > 0 && sscanf(line, "%%%%MatrixMarket matrix coordinate %31s %31s", field, symmetry) == 2) {
    while (getline(&line, &length, f) > 0) {
      if (line[0] == '%' || line[0] == '\n') continue;
      if (m < 0) {
        if (sscanf(line, "%ld %ld %ld", &m, &n, &nz) != 3) break;
        ci = (PetscInt *)RefAlloc(2 * nz, sizeof(PetscInt));
        cj = (PetscInt *)RefAlloc(2 * nz, sizeof(PetscInt));
        v  = (PetscScalar *)RefAlloc(2 * nz, sizeof(PetscScalar));
      } else {
        char  *p  = line;
        double re = 1;

        if (nz-- <= 0) break;
        ci[k] = (PetscInt)strtol(p, &p, 10) - 1;
        cj[k] = (PetscInt)strtol(p, &p, 10) - 1;
        if (strcmp(field, "pattern")) re = strtod(p, &p);
        v[k++] = re;
        if (strcmp(symmetry, "general") && ci[k - 1] != cj[k - 1]) {
          ci[k]  = cj[k - 1];
          cj[k]  = ci[k - 1];
          v[k++] = !strcmp(symmetry, "skew-symmetric") ? -re : re;
        }
      }
    }
    good = (PetscBool)(m >= 0 && nz == 0 && strcmp(field, "complex"));
  }
  if (f) pclose(f);
  if (good) {
    RefCOO((PetscInt)m, (PetscInt)n, k, ci, cj, v, A);
    free(A->mag);
    free(A->terms);
    A->mag   = NULL;
    A->terms = NULL;
  } else
    HybTestSkip("matrix %s: %s cannot be read", name, path);
  free(line);
  free(ci);
  free(cj);
  free(v);
  return good;
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
  PetscCall(ierr);
  PetscCall(second);
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
