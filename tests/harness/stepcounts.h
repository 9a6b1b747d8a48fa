/*
  stepcounts.h: what a step of a program costs, counted: calls of CUDA's functions and launches, by the emulator
  (HybEmulatorCount()), and messages and collectives, by MPI's profiling interface. A program that includes this has
  MPI's functions go through it, those of the libraries that it loads as well. Numbers alone: the emulator knows no
  driver's times.

    StepBegin(&s), StepEnd(&s): all that was called between is added to s, by name; StepSums() sorts it by kind
*/
#ifndef AIJHYBRIDGPU_TESTS_STEPCOUNTS_H
#define AIJHYBRIDGPU_TESTS_STEPCOUNTS_H
#include "mattest.h"
#undef MPI_Allreduce
#undef MPI_Iallreduce
#undef MPI_Allgather
#undef MPI_Allgatherv
#undef MPI_Alltoall
#undef MPI_Barrier
#undef MPI_Ibarrier
#undef MPI_Bcast
#undef MPI_Exscan
#undef MPI_Scan
#undef MPI_Reduce
#undef MPI_Comm_dup
#undef MPI_Comm_split
#undef MPI_Comm_split_type
#undef MPI_Isend
#undef MPI_Issend
#undef MPI_Send
#undef MPI_Start
#undef MPI_Startall

#define STEP_NAMES 512

typedef struct {
  const char        *name;
  unsigned long long n, bytes;
} StepCount;
typedef struct {
  int       n;
  StepCount of[STEP_NAMES];
} Step;

static Step StepMPI; /* so far */
/* the emulator's, NULL: there is none */
static const char *(*StepEmulator)(int, unsigned long long *, unsigned long long *);
static unsigned long long (*StepWaits)(void);

static StepCount *StepFind(Step *s, const char *name)
{
  for (int k = 0; k < s->n; k++)
    if (s->of[k].name == name || !strcmp(s->of[k].name, name)) return &s->of[k];
  if (s->n == STEP_NAMES) {
    printf("More names than %d are counted\n", STEP_NAMES);
    abort();
  }
  s->of[s->n].name = name;
  s->of[s->n].n = s->of[s->n].bytes = 0;
  return &s->of[s->n++];
}

static void StepAdd(Step *s, const char *name, unsigned long long n, unsigned long long bytes)
{
  StepCount *c = StepFind(s, name);

  c->n += n;
  c->bytes += bytes;
}

static void StepMessage(const char *name, int count, MPI_Datatype type)
{
  int size = 1;

  PMPI_Type_size(type, &size);
  StepAdd(&StepMPI, name, 1, (unsigned long long)count * (unsigned long long)size);
}

/* one process alone waits for nobody */
static void StepCollective(const char *name, int count, MPI_Datatype type, MPI_Comm comm)
{
  int size;

  PMPI_Comm_size(comm, &size);
  if (size > 1) StepMessage(name, count, type);
}

#define STEP_COUNT(name, parameters, arguments, counted) \
  int name parameters                                    \
  {                                                      \
    counted;                                             \
    return P##name arguments;                            \
  }
#define STEP_COLLECTIVE(name, parameters, arguments, count, type) STEP_COUNT(name, parameters, arguments, StepCollective(#name, count, type, comm))
#define STEP_MESSAGE(name, parameters, arguments, count, type)    STEP_COUNT(name, parameters, arguments, StepMessage(#name, count, type))
STEP_COLLECTIVE(MPI_Allreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), (a, b, n, t, op, comm), n, t)
STEP_COLLECTIVE(MPI_Iallreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm, MPI_Request *r), (a, b, n, t, op, comm, r), n, t)
STEP_COLLECTIVE(MPI_Allgather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm), (a, n, t, b, m, u, comm), m, u)
STEP_COLLECTIVE(MPI_Allgatherv, (const void *a, int n, MPI_Datatype t, void *b, const int *m, const int *at, MPI_Datatype u, MPI_Comm comm), (a, n, t, b, m, at, u, comm), n, t)
STEP_COLLECTIVE(MPI_Alltoall, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm comm), (a, n, t, b, m, u, comm), m, u)
STEP_COLLECTIVE(MPI_Barrier, (MPI_Comm comm), (comm), 0, MPI_INT)
STEP_COLLECTIVE(MPI_Ibarrier, (MPI_Comm comm, MPI_Request *r), (comm, r), 0, MPI_INT)
STEP_COLLECTIVE(MPI_Bcast, (void *a, int n, MPI_Datatype t, int root, MPI_Comm comm), (a, n, t, root, comm), n, t)
STEP_COLLECTIVE(MPI_Exscan, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), (a, b, n, t, op, comm), n, t)
STEP_COLLECTIVE(MPI_Scan, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), (a, b, n, t, op, comm), n, t)
STEP_COLLECTIVE(MPI_Reduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm), (a, b, n, t, op, root, comm), n, t)
STEP_COLLECTIVE(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *to), (comm, to), 0, MPI_INT)
STEP_COLLECTIVE(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *to), (comm, color, key, to), 0, MPI_INT)
STEP_COLLECTIVE(MPI_Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *to), (comm, type, key, info, to), 0, MPI_INT)
STEP_MESSAGE(MPI_Isend, (const void *a, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm, MPI_Request *r), (a, n, t, to, tag, comm, r), n, t)
STEP_MESSAGE(MPI_Issend, (const void *a, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm, MPI_Request *r), (a, n, t, to, tag, comm, r), n, t)
STEP_MESSAGE(MPI_Send, (const void *a, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm), (a, n, t, to, tag, comm), n, t)
STEP_MESSAGE(MPI_Start, (MPI_Request * r), (r), 0, MPI_INT)
STEP_MESSAGE(MPI_Startall, (int n, MPI_Request *r), (n, r), 0, MPI_INT)

/* all that was counted so far, with sign */
static void StepSum(Step *s, int sign)
{
  unsigned long long n, bytes;
  const char        *name;

  for (int k = 0; k < StepMPI.n; k++) StepAdd(s, StepMPI.of[k].name, (unsigned long long)sign * StepMPI.of[k].n, (unsigned long long)sign * StepMPI.of[k].bytes);
  for (int k = 0; StepEmulator && (name = (*StepEmulator)(k, &n, &bytes)); k++) StepAdd(s, name, (unsigned long long)sign * n, (unsigned long long)sign * bytes);
  if (StepWaits) StepAdd(s, "waits", (unsigned long long)sign * (*StepWaits)(), 0);
}

static PetscErrorCode StepOpen(void)
{
  void *library = NULL;

  PetscFunctionBeginUser;
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  if (library) *(void **)&StepEmulator = dlsym(library, "HybEmulatorCount");
  if (library) *(void **)&StepWaits = dlsym(library, "HybEmulatorWaits");
  PetscFunctionReturn(PETSC_SUCCESS);
}
static void StepBegin(Step *s)
{
  StepSum(s, -1);
}
static void StepEnd(Step *s)
{
  StepSum(s, 1);
}

/* kinds of what is counted; SLOW: calls that take the driver long: memory that is not a pool's, other processes'
   memory, page-locked memory, streams, graphs */
typedef enum {
  STEP_LAUNCHES,
  STEP_CALLS,
  STEP_SLOW,
  STEP_WAITS,
  STEP_ALLOCATIONS,
  STEP_ALLOCATED,
  STEP_COPIES,
  STEP_COPIED,
  STEP_MESSAGES,
  STEP_SENT,
  STEP_COLLECTIVES,
  STEP_KINDS
} StepKind;
static const char *const StepKinds[STEP_KINDS] = {"launches", "calls of CUDA", "slow calls", "waits", "allocations", "bytes allocated", "copies over the bus", "bytes copied", "messages", "bytes sent", "collectives"};

static inline void StepSums(const Step *s, unsigned long long sum[STEP_KINDS])
{
  static const char *const slow[] = {"cudaMalloc", "cudaFree", "cudaMallocManaged", "cudaMallocHost", "cudaFreeHost", "cudaHostRegister", "cudaHostUnregister", "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority", "cudaGraphInstantiate", "cudaDeviceSynchronize", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cudaIpcGetMemHandle", "cudaIpcOpenMemHandle", "cudaIpcCloseMemHandle", "a pool grows"};

  for (int k = 0; k < STEP_KINDS; k++) sum[k] = 0;
  for (int k = 0; k < s->n; k++) {
    const StepCount *c    = &s->of[k];
    const char      *name = c->name;

    if (!strcmp(name, "waits"))
      sum[STEP_WAITS] += c->n;
    else if (!strncmp(name, "MPI_", 4)) {
      const PetscBool message = (PetscBool)(strstr(name, "send") || strstr(name, "Send") || strstr(name, "Start"));

      sum[message ? STEP_MESSAGES : STEP_COLLECTIVES] += c->n;
      if (message) sum[STEP_SENT] += c->bytes;
    } else if (!strncmp(name, "cu", 2) || !strcmp(name, "a pool grows")) {
      sum[STEP_CALLS] += c->n;
      for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(slow); l++)
        if (!strcmp(name, slow[l])) sum[STEP_SLOW] += c->n;
      if (!strcmp(name, "cudaMallocFromPoolAsync")) {
        sum[STEP_ALLOCATIONS] += c->n;
        sum[STEP_ALLOCATED] += c->bytes;
      }
      if (strstr(name, "to the device") || strstr(name, "to the host")) {
        sum[STEP_COPIES] += c->n;
        sum[STEP_COPIED] += c->bytes;
      }
    } else
      sum[STEP_LAUNCHES] += c->n;
  }
}

/* CG with GAMG */
static inline PetscErrorCode StepSolver(Mat A, PetscReal rtol, PetscInt most, KSP *ksp)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPSetTolerances(*ksp, rtol, PETSC_DEFAULT, PETSC_DEFAULT, most));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
