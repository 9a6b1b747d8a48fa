/*
  Products of parallel matrices with vectors, bit for bit beside the same made of the blocks' products and a scatter of
  PETSc's, on layouts that are uneven, leave processes empty, or have neighbours that are not mutual; again after
  values, and after patterns, have changed; twenty times the same bits; and with everything failing in turn on one
  process: an error for it and for those who wait for it, nobody waits for ever, and the same product is right
  afterwards.

TEST np=2,3+4
TEST np=3+2,4 @emulated -ours
TEST np=+2,3 @emulated -ours -mat_aijhybridgpu_comm_after 0
TEST np=2+3 @emulated -ours -mat_aijhybridgpu_memory mirror
TEST np=3+2 @emulated -ours -mat_aijhybridgpu_comm mpi
TEST np=3+2 @emulated -ours -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=+2 @emulated -ours -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes
TEST np=2 @emulated -ours -mat_aijhybridgpu_comm gpuaware
TEST np=2 @emulated -mat_aijhybridgpu_comm petsc
TEST np=+4 @emulated -cards 2
TEST np=3+2 @emulated -ours -faults
TEST np=+2 @emulated -ours -faults -mat_aijhybridgpu_comm_after 0
TEST np=+2,3 @emulated -ours -faults -mat_aijhybridgpu_comm mpi
TEST np=+2 @emulated -ours -faults -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
*/
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "mattest.h"
#include "gpuaware.h"
#include "logfault.h"
#include <aijhybridgpu/private/hyb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static PetscMPIInt Rank, Size;

/* kind 0: a band; 1: everywhere; 2: process 0 needs of all, the others of nobody; 3: nobody of anybody. Of four layouts
   the first is even. */
static PetscErrorCode Make(PetscInt N, int kind, int layout, PetscInt seed, Mat *A)
{
  PetscInt n = PETSC_DECIDE, start, end, cstart, cend;

  PetscFunctionBeginUser;
  if (layout) n = Rank == layout % Size && Size > 1 ? 0 : (Rank + 1) * N / 10;
  if (layout) {
    PetscInt all = n;

    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
    N = all;
  }
  PetscCall(MatTestRoom(MATAIJ, n, n, N, N, 12, A, &start, &end));
  cstart = start;
  cend   = end;
  for (PetscInt r = start; r < end; r++) {
    for (PetscInt k = -5; k <= 5; k++) {
      const PetscInt    far = (r * 7 + k * k * 31 + k + seed) % N;
      const PetscInt    c   = kind == 0 || (kind == 2 && Rank) || kind == 3 ? r + k * 2 : far < 0 ? far + N
                                                                                                  : far;
      const PetscScalar v   = PetscSinReal((PetscReal)(r + 1) * (PetscReal)(0.3 + c) + (PetscReal)seed) + 2.0 * (r == c);

      if (c < 0 || c >= N || (r % 6 == 2 && k)) continue;
      if (((kind == 2 && Rank) || kind == 3) && (c < cstart || c >= cend)) continue;
      PetscCall(MatSetValue(*A, r, c, v, INSERT_VALUES));
    }
  }
  PetscCall(MatTestAssemble(*A));
  PetscCall(MatConvert(*A, "aijhybridgpu", MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameBits(Vec x, Vec y, const char *what)
{
  const PetscScalar *a, *b;
  PetscInt           n;
  int                same;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  same = !n || !memcmp(a, b, sizeof(PetscScalar) * (size_t)n);
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  MatTestCheck(same, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the operations should give, of the blocks' products: D x + O g in this order; D^T x, then others' shares */
typedef struct {
  Mat        block[2];
  Vec        ghost, shares;
  VecScatter scatter;
} Parts;

static PetscErrorCode PartsGet(Mat A, Vec x, Parts *p)
{
  const PetscInt *garray;
  PetscInt        n;
  IS              from;

  PetscFunctionBeginUser;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &p->block[0], &p->block[1], &garray));
  PetscCall(MatGetLocalSize(p->block[1], NULL, &n));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &p->ghost));
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, n, garray, PETSC_COPY_VALUES, &from));
  PetscCall(VecScatterCreate(x, from, p->ghost, NULL, &p->scatter));
  PetscCall(ISDestroy(&from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PartsFree(Parts *p)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestDestroy(&p->ghost, &p->scatter));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a vector's own entries as a sequential one: they share the array */
static PetscErrorCode Local(Vec v, PetscBool open, PetscScalar **a, Vec *l)
{
  PetscInt n;

  PetscFunctionBeginUser;
  if (open) {
    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecGetArray(v, a));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, *a, l));
  } else {
    PetscCall(VecDestroy(l));
    PetscCall(VecRestoreArray(v, a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(Parts *p, PetscBool transpose, Vec x, Vec y, Vec z)
{
  PetscScalar *xa, *ya, *za;
  Vec          lx, ly = NULL, lz;

  PetscFunctionBeginUser;
  if (!transpose) {
    PetscCall(VecScatterBegin(p->scatter, x, p->ghost, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(p->scatter, x, p->ghost, INSERT_VALUES, SCATTER_FORWARD));
  }
  PetscCall(Local(x, PETSC_TRUE, &xa, &lx));
  if (y) PetscCall(Local(y, PETSC_TRUE, &ya, &ly));
  PetscCall(Local(z, PETSC_TRUE, &za, &lz));
  if (transpose) {
    PetscCall(MatMultTranspose(p->block[1], lx, p->ghost));
    if (y)
      PetscCall(MatMultTransposeAdd(p->block[0], lx, ly, lz));
    else
      PetscCall(MatMultTranspose(p->block[0], lx, lz));
  } else {
    if (y)
      PetscCall(MatMultAdd(p->block[0], lx, ly, lz));
    else
      PetscCall(MatMult(p->block[0], lx, lz));
    PetscCall(MatMultAdd(p->block[1], p->ghost, lz, lz));
  }
  PetscCall(Local(x, PETSC_FALSE, &xa, &lx));
  if (y) PetscCall(Local(y, PETSC_FALSE, &ya, &ly));
  PetscCall(Local(z, PETSC_FALSE, &za, &lz));
  if (transpose) { /* PETSc's scatter adds what comes in the order of the ranks on the host; on a card in any */
#if defined(PETSC_HAVE_DEVICE)
    PetscCall(VecBindToCPU(z, PETSC_TRUE));
#endif
    PetscCall(VecScatterBegin(p->scatter, p->ghost, z, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(p->scatter, p->ghost, z, ADD_VALUES, SCATTER_REVERSE));
#if defined(PETSC_HAVE_DEVICE)
    PetscCall(VecBindToCPU(z, PETSC_FALSE));
#endif
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Mat A)
{
  Parts p;
  Vec   x, y, z, e, r;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(y, &e));
  PetscCall(VecDuplicate(y, &r));
  MatTestBoth(VecSetRandom, x, y, NULL);
  PetscCall(PartsGet(A, x, &p));
  for (int t = 0; t < 2; t++) {
    PetscCall(Expect(&p, (PetscBool)t, x, NULL, e));
    PetscCall((t ? MatMultTranspose : MatMult)(A, x, z));
    PetscCall(SameBits(z, e, t ? "A^T x" : "A x"));
    for (int k = 0; k < 20; k++) {
      PetscCall(VecSet(r, -1.0));
      PetscCall((t ? MatMultTranspose : MatMult)(A, x, r));
      if (k % 7 == 6) PetscCall(SameBits(r, z, "the same again"));
    }
    PetscCall(Expect(&p, (PetscBool)t, x, y, e));
    PetscCall((t ? MatMultTransposeAdd : MatMultAdd)(A, x, y, z));
    PetscCall(SameBits(z, e, t ? "y + A^T x" : "y + A x"));
    PetscCall(VecCopy(y, z));
    PetscCall((t ? MatMultTransposeAdd : MatMultAdd)(A, x, z, z));
    PetscCall(SameBits(z, e, "the sum in place"));
  }
  PetscCall(MatResidual(A, y, x, r));
  PetscCall(MatMult(A, x, z));
  PetscCall(VecAYPX(z, -1.0, y));
  VecTestCheckSame(r, z, "y - A x");
  PetscCall(PartsFree(&p));
  PetscCall(MatTestDestroy(&x, &y, &z, &e, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a new entry on one process, in a column that it has not had: the halos of all change */
static PetscErrorCode OtherPattern(Mat A)
{
  PetscInt start, end, N;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatGetSize(A, NULL, &N));
  if (Rank == Size - 1 && end > start) {
    for (PetscInt c = 1; c < N; c += 5) PetscCall(MatSetValue(A, start, c, 0.5, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int       Count, Target;
static PetscBool Logs; /* it is the log's events of our products that fail, not the device's calls */
/* what was made to fail may be memory instead of which other serves: page-locked, or the card's for messages */
static PetscBool May;
static int       Launches, Together;
static int       Fault(const char *what)
{
  if (Logs) return 0;
  if (!strncmp(what, "launch ", 7)) {
    Launches += !strstr(what, "HybFewToHost"); /* which gives the host its result */
    Together += strstr(what, "PeerMult") != NULL;
  }
  if (!Target || ++Count != Target) return 0;
  May = (PetscBool)(!strcmp(what, "alloc") || strstr(what, "HostRegister") || strstr(what, "cudaMalloc(segment") || strstr(what, "IpcGetMemHandle"));
  return 1;
}

/* the log's events are asked from now on, and the device's calls no longer */
static int LogAsk(const char *name)
{
  if (!Target || ++Count != Target) return 0;
  May = PETSC_FALSE;
  return 1;
}

/* the plugin's device library once more, with a hook */
static PetscErrorCode Hook(const HybBackend **device)
{
  char            path[PETSC_MAX_PATH_LEN] = "", message[256];
  const HybStamp  stamp                    = HYB_STAMP;
  HybServices     services;
  HybGetBackendFn get;
  void           *library;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
  library = dlopen(path, RTLD_NOW);
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
  get = (HybGetBackendFn)dlsym(library, HYB_GET_BACKEND_SYMBOL);
  PetscCall(PetscMemzero(&services, sizeof(services)));
  services.size             = sizeof(services);
  services.device           = -1;
  services.managed_fraction = 0.5;
  services.locked_fraction  = 0.1;
  services.processes        = Size;
  services.fault            = Fault;
  PetscCheck(!(*get)(&stamp, &services, device, message, sizeof(message)), PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The k-th call of the device failing on process which: it has an error, whoever has one has it at once, and all can go
   on. With fresh, matrices whose halo is yet to be made. */
static PetscErrorCode Failing(Mat A, PetscMPIInt which, PetscBool transpose, PetscBool fresh)
{
  Vec x, y, z;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall((transpose ? MatMultTranspose : MatMult)(A, x, z));
  for (int k = 1;; k++) {
    Mat            B = A;
    PetscErrorCode ierr;
    int            fired, served;

    if (fresh) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    Count  = 0;
    Target = Rank == which ? k : 0;
    (void)alarm(100);
    ierr   = (transpose ? MatMultTranspose : MatMult)(B, x, y);
    fired  = Target && Count >= Target;
    Target = 0;
    PetscCall(PetscPopErrorHandler());
    PetscCallMPI(MPI_Bcast(&fired, 1, MPI_INT, which, PETSC_COMM_WORLD));
    served = fired && Rank == which && May && !ierr;
    PetscCallMPI(MPI_Bcast(&served, 1, MPI_INT, which, PETSC_COMM_WORLD));
    if (Rank == which) MatTestCheck((fired && !served) == (ierr != PETSC_SUCCESS), "the process that fails has an error, but where other memory serves");
    if (served) {
      MatTestCheck(!ierr, "no error where other memory serves");
      PetscCall(SameBits(y, z, "the product where other memory serves"));
    }
    if (!fired) MatTestCheck(!ierr, "no error without a failure");
    if (fired) { /* by peer access the others hear of it at their next product at the latest */
      QUIETLY(ierr, (transpose ? MatMultTranspose : MatMult)(B, x, y));
      if (Rank == which) MatTestCheck(!ierr, "the process that failed has one error");
    }
    PetscCall((transpose ? MatMultTranspose : MatMult)(B, x, y));
    PetscCall(SameBits(y, z, "the product after an error"));
    (void)alarm(0);
    if (fresh) PetscCall(MatDestroy(&B));
    if (!fired) {
      MatTestCheck(k > (Logs ? 1 : 3), "something was made to fail");
      break;
    }
  }
  PetscCall(MatTestDestroy(&x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Residual(Mat A, Vec x, Vec b, Vec r)
{
  return MatResidual(A, b, x, r);
}

/* Two processes whose parts of x are too long and too short have an error, where PETSc compares no parts itself before
   any product; of the others none waits for ever, and the product is right afterwards */
static PetscErrorCode Misfit(Mat A)
{
  PetscInt m, n, wrong;
  Vec      b[3], x[3], y[3], z[3];

  PetscFunctionBeginUser;
  if (Size < 3) PetscFunctionReturn(PETSC_SUCCESS);
  (void)alarm(60);
  PetscCall(MatGetLocalSize(A, &m, &n));
  for (int t = 0; t < 3; t++) {
    PetscErrorCode (*const mult)(Mat, Vec, Vec, Vec) = t == 2 ? Residual : t ? MatMultTransposeAdd
                                                                             : MatMultAdd;
    const PetscScalar *ended;
    PetscErrorCode     ierr;
    Vec                bad;

    PetscCall(MatCreateVecs(A, t == 1 ? &y[t] : &x[t], t == 1 ? &x[t] : &y[t]));
    PetscCall(VecDuplicate(y[t], &z[t]));
    PetscCall(VecSetRandom(x[t], NULL));
    PetscCall(VecDuplicate(y[t], &b[t]));
    PetscCall(VecSet(b[t], 1.0));
    PetscCall((*mult)(A, x[t], b[t], z[t]));
    wrong = (t == 1 ? m : n) + (Rank == 1) - (Rank == 2);
    PetscCall(VecCreate(PETSC_COMM_WORLD, &bad));
    PetscCall(VecSetSizes(bad, wrong, PETSC_DETERMINE));
    PetscCall(VecSetType(bad, VECMPI));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = (*mult)(A, bad, b[t], y[t]);
    if (Rank == 1 || Rank == 2) MatTestCheck(ierr != PETSC_SUCCESS, "a part of a vector that does not fit is an error");
    /* by peer access the others hear of it at the next product that they begin when that one has ended on their card,
       and the two, which wait for each other's parts of what they gave up in the product after it, at the one behind
       that */
    for (int later = 0; later < 2; later++) {
      PetscCall(VecGetArrayRead(y[t], &ended));
      PetscCall(VecRestoreArrayRead(y[t], &ended));
      (void)(*mult)(A, x[t], b[t], y[t]);
    }
    PetscCall(PetscPopErrorHandler());
    PetscCall((*mult)(A, x[t], b[t], y[t]));
    PetscCall(SameBits(y[t], z[t], "the product after one that did not fit"));
    PetscCall(VecDestroy(&bad));
  }
  for (int t = 0; t < 3; t++) PetscCall(MatTestDestroy(&b[t], &x[t], &y[t], &z[t]));
  (void)alarm(0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product that is so short is one launch on each process that gets others' entries by peer access: exchange and both
   blocks. By messages it is several. */
static PetscErrorCode OneLaunch(Mat A, PetscInt ghosts, PetscBool mpi)
{
  Vec x, y;

  PetscFunctionBeginUser;
  for (int t = 0; t < 2; t++) {
    PetscCall(MatCreateVecs(A, t ? &y : &x, t ? &x : &y));
    PetscCall(VecSet(x, 1.0));
    Launches = Together = 0;
    PetscCall((t ? MatMultTranspose : MatMult)(A, x, y));
    if (mpi) MatTestCheck(!Together, "one launch by messages");
    if (!mpi && ghosts) MatTestCheck(Launches == 1 && Together == 1, "a short product is not one launch");
    PetscCall(MatTestDestroy(&x, &y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With vectors of the host and the comm room's halo, each process's x and y cross the bus once and so do the entries
   for others where they go by MPI that is not GPU-aware, by the emulator's count. PETSc's scatter would have y cross it
   three times. */
static PetscErrorCode Ours(Mat A)
{
  char path[PETSC_MAX_PATH_LEN] = "";
  unsigned long long (*count[2])(void), before[2];
  PetscInt   m, n, ghosts;
  PetscBool  mpi, gpuaware, told, all;
  PetscInt64 found[2], expected[2];
  Mat        block;
  Vec        x, y;
  void      *library;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
  library  = dlopen(path, RTLD_NOW);
  count[0] = library ? (unsigned long long (*)(void))dlsym(library, "HybEmulatorBytesToDevice") : NULL;
  count[1] = library ? (unsigned long long (*)(void))dlsym(library, "HybEmulatorBytesToHost") : NULL;
  if (!count[0] || !count[1]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &block, NULL));
  PetscCall(MatGetLocalSize(block, NULL, &ghosts));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  for (int k = 0; k < 2; k++) before[k] = (*count[k])();
  PetscCall(MatMult(A, x, y));
  for (int k = 0; k < 2; k++) found[k] = (PetscInt64)((*count[k])() - before[k]);
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "mpi", &mpi));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "gpuaware", &gpuaware));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm_aware", "yes", &told));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm_aware_min", "0", &all));
  told = (PetscBool)(told && all); /* messages are short here */
  PetscCall(OneLaunch(A, ghosts, (PetscBool)(mpi || gpuaware)));
  MatTestCheck(gpuaware && told ? GPUAwareSent > 0 : !GPUAwareSent, "messages of a card's memory");
  if (told || (!mpi && !gpuaware)) ghosts = 0; /* they go from card to card */
  expected[0] = (PetscInt64)(n + ghosts) * (PetscInt64)sizeof(PetscScalar);
  expected[1] = (PetscInt64)(m + ghosts) * (PetscInt64)sizeof(PetscScalar); /* all ghosts are somebody's to send */
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, found, 2, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, expected, 2, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
  MatTestCheck(found[0] == expected[0], "bytes to the devices");
  MatTestCheck(found[1] == expected[1], "bytes to the hosts");
  PetscCall(MatTestDestroy(&x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void)
{
  PetscBool         faults = PETSC_FALSE, ours = PETSC_FALSE;
  const HybBackend *device;
  Mat               A;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-faults", &faults, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-ours", &ours, NULL));
  if (faults) {
    PetscCall(Make(60, 1, 0, 1, &A));
    PetscCall(Products(A));
    PetscCall(Hook(&device));
    for (PetscMPIInt r = 0; r < Size; r += PetscMax(1, Size - 1)) {
      for (int way = 0; way < 4; way++) PetscCall(Failing(A, r, (PetscBool)(way & 1), (PetscBool)(way > 1)));
    }
    Logs = PETSC_TRUE;
    PetscCall(LogFaultWatch("HybMult", NULL, LogAsk));
    for (int way = 0; way < 4; way++) PetscCall(Failing(A, (PetscMPIInt)(Size - 1), (PetscBool)(way & 1), (PetscBool)(way > 1)));
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int kind = 0; kind < 4; kind++)
    for (int layout = 0; layout < 3; layout++) {
      Mat B;

      PetscCall(Make(200, kind, layout, 3 * kind + layout, &A));
      if (Size == 1) { /* the parallel type on one process */
        PetscCall(MatDestroy(&A));
        continue;
      }
      PetscCall(Products(A));
      if (ours && !kind && !layout) PetscCall(Hook(&device)); /* the first product has opened the device */
      if (ours) PetscCall(Ours(A));
      if (ours && !layout) PetscCall(Misfit(A));
      PetscCall(MatScale(A, 1.5));
      PetscCall(Products(A));
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
      PetscCall(OtherPattern(A));
      MatTestBoth(Products, A, B);
      PetscCall(MatTestDestroy(&B, &A));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  MatTestName = "halo";
  PetscCall(Run());
  return MatTestEnd();
}
