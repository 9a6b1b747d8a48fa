/*
  Many exchanges, which are late at times, and several halos at a time: each result is known by a formula. By peer
  access the host waits for nothing.

-exchanges N: how many of one halo (1000), in either direction.

TEST np=2,3
TEST np=+4 -mat_aijhybridgpu_comm_after 0
TEST np=+3 -mat_aijhybridgpu_comm mpi
TEST np=2+3 -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=+3 -exchanges 5000
*/
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "commtest.h"
#include "gpuaware.h"

/* several halos at a time, ended in another order than begun */
static PetscErrorCode Several(HybComm comm)
{
  HybExec            counted = *HybTestExec();
  const HybExec     *exec    = &counted;
  HybHalo            h[3];
  PetscScalar       *x[3], *expected[3];
  unsigned long long waits[2] = {0, 0}, before;
  void              *ghost;
  HybArena           arena = HybArenaOn(exec);

  PetscFunctionBegin;
  HybTestCountWaits(&counted);
  HybTestBegin("three exchanges at a time");
  LayoutDraw(100, 1, -1);
  for (int k = 0; k < 3; k++) HybTestCall(HaloGet(comm, &h[k]));
  for (int round = 0; round < 20; round++) {
    for (int k = 0; k < 3; k++) {
      PetscScalar *own = (PetscScalar *)RefAlloc(h[k]->n, sizeof(PetscScalar));

      expected[k] = (PetscScalar *)RefAlloc(h[k]->nghost, sizeof(PetscScalar));
      for (PetscInt e = 0; e < h[k]->n; e++) own[e] = Entry(L.ranges[Rank] + e, k + 3 * round);
      for (PetscInt e = 0; e < h[k]->nghost; e++) expected[k][e] = Entry(L.ghost[Rank][e], k + 3 * round);
      PetscCall(HybTestUploadArray(&arena, h[k]->n, sizeof(PetscScalar), own, &x[k]));
      free(own);
      before = HybTestWaits();
      HybTestCall(HybHaloBegin(h[k], exec, sizeof(PetscScalar), x[k]));
      if (round > 4) waits[0] += HybTestWaits() - before;
    }
    for (int k = 2; k >= 0; k--) {
      before = HybTestWaits();
      HybTestCall(HybHaloEnd(h[k], exec, PETSC_SUCCESS, &ghost));
      if (round > 4) waits[1] += HybTestWaits() - before;
      HybTestSameBits(h[k]->nghost, sizeof(PetscScalar), ghost, expected[k]);
      free(expected[k]);
    }
    PetscCall(HybArenaReset(&arena));
  }
  before = HybTestWaits();
  PetscCall(exec->backend->sync(exec));
  HybTestCheck(HybTestWaits() > before || !exec->backend->device, "a wait is not counted");
  /* The emulator alone waits once for each kernel that others wait for, which has to run by itself (HYB_BEGIN_NOW) */
  if (ByPeer(h[0])) HybTestCheck(!waits[1] && (!waits[0] || waits[0] == 3 * 15), "the host waited %d times in exchanges by peer access and %d times at their ends", (int)waits[0], (int)waits[1]);
  for (int k = 0; k < 3; k++) HybTestCall(HybHaloDestroy(&h[k]));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Nobody but the exchanges waits: what comes is copied on the stream and looked at in the end. What reads it may be
   queued still when the next exchange but one begins, which takes the same memory; also where a process leaves one out
   in between, since it has an error of its own. */
static PetscErrorCode Queued(HybComm comm, PetscBool leaving)
{
  const HybExec *exec = HybTestExec();
  enum {
    TIMES = 12,
    LEFT  = 5
  };
  HybHalo      h;
  PetscScalar *x[TIMES], *came[TIMES];
  void        *ghost;
  HybArena     arena = HybArenaOn(exec);

  PetscFunctionBegin;
  HybTestBegin("%d exchanges whose results are looked at in the end%s", TIMES, leaving ? ", of which a process leaves one out" : "");
  LayoutDraw(100, 1, -1);
  HybTestCall(HaloGet(comm, &h));
  for (int k = 0; k < TIMES; k++) {
    PetscScalar *own = (PetscScalar *)RefAlloc(h->n, sizeof(PetscScalar));

    for (PetscInt e = 0; e < h->n; e++) own[e] = Entry(L.ranges[Rank] + e, k);
    PetscCall(HybTestUploadArray(&arena, h->n, sizeof(PetscScalar), own, &x[k]));
    PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), h->nghost, sizeof(PetscScalar), &came[k]));
    free(own);
  }
  for (int k = 0; k < TIMES; k++) {
    if (leaving && k == LEFT) {
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      if (Rank)
        (void)HybHaloExchange(h, exec, sizeof(PetscScalar), x[k], &ghost); /* an error of its neighbours */
      else
        HybHaloAbandon(h, exec, sizeof(HybScalar), PETSC_FALSE, PETSC_ERR_MEM);
      PetscCall(PetscPopErrorHandler());
      continue;
    }
    if (!HybTestCall(HybHaloExchange(h, exec, sizeof(PetscScalar), x[k], &ghost))) break;
    PetscCall(exec->backend->copy(exec, came[k], ghost, sizeof(PetscScalar) * (size_t)h->nghost, HYB_COPY_DEVICE_TO_DEVICE));
  }
  for (int k = 0; k < TIMES; k++) {
    PetscScalar *expected = (PetscScalar *)RefAlloc(h->nghost, sizeof(PetscScalar));

    for (PetscInt e = 0; e < h->nghost; e++) expected[e] = Entry(L.ghost[Rank][e], k);
    if (!leaving || k != LEFT) HybTestSameBits(h->nghost, sizeof(PetscScalar), came[k], expected);
    free(expected);
  }
  HybTestCall(HybHaloDestroy(&h));
  PetscCall(HybArenaReset(&arena));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* each process is late at times, and both directions are taken */
static PetscErrorCode Many(HybComm comm)
{
  PetscInt exchanges = 1000;
  HybHalo  h;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-exchanges", &exchanges, NULL));
  HybTestBegin("%d exchanges", (int)exchanges);
  LayoutDraw(30, 1, -1);
  if (HybTestCall(HaloGet(comm, &h))) {
    for (PetscInt k = 0; k < exchanges; k++) {
      if (k % 4)
        PetscCall(Forward(h, sizeof(PetscScalar), k % 101));
      else
        PetscCall(Reverse(h, (PetscBool)(k % 8), k % 101));
    }
    HybTestCall(HybHaloDestroy(&h));
  }
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* So much is sent that several blocks of threads put it, of which the last one tells, and waits where that is done at
   once; the bound is 2048 words of any size */
static PetscErrorCode Large(HybComm comm)
{
  HybHalo h;

  PetscFunctionBegin;
  for (int layout = 0; layout < 2; layout++) {
    HybTestBegin("exchanges that several blocks of threads put, layout %d", layout);
    LayoutDraw(8000, 1, -1);
    if (HybTestCall(HaloGet(comm, &h))) {
      for (PetscInt k = 0; k < 4; k++) {
        PetscCall(Forward(h, 40, k));
        PetscCall(Forward(h, 20, 10 + k));
        PetscCall(Reverse(h, (PetscBool)(k % 2), 20 + k));
      }
      PetscCall(Forward(h, 9, 5));
      HybTestCall(HybHaloDestroy(&h));
    }
    LayoutFree();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Process 0 gives up the first reverse exchange, before which all agree upon its lists: all hear of it there, and the
   next one is the first */
static PetscErrorCode GivenUpFirst(HybComm comm)
{
  const HybExec *exec = HybTestExec();
  HybArena       arena;
  HybHalo        h;
  PetscScalar   *ghost;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  HybTestBegin("the first reverse exchange given up");
  LayoutDraw(30, 1, -1);
  if (HybTestCall(HaloMake(comm, &h))) {
    arena = HybArenaOn(exec);
    PetscCall(HybArenaCalloc(&arena, HYB_WORK(exec), h->nghost, sizeof(*ghost), &ghost));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    if (Rank)
      ierr = HybHaloReverseBegin(h, exec, PETSC_TRUE, ghost);
    else
      HybHaloAbandon(h, exec, sizeof(HybScalar), PETSC_TRUE, PETSC_ERR_MEM);
    PetscCall(PetscPopErrorHandler());
    HybTestCheck(ierr == (Rank ? PETSC_ERR_MEM : PETSC_SUCCESS), "process %d has error %d", Rank, (int)ierr);
    for (PetscInt k = 0; k < 4; k++) PetscCall(Reverse(h, PETSC_TRUE, k));
    HybTestCall(HybHaloDestroy(&h));
    PetscCall(HybArenaReset(&arena));
  }
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The longest message of all processes decides for each of them, also for those that send and get nothing: page-locked
   buffers below the bound, the card's memory from there on. Longer units may bring an exchange beyond it. */
static PetscErrorCode Bound(HybComm comm)
{
  const PetscInt before  = HybTuningGet()->comm_aware_min;
  PetscInt       longest = 0;
  char           bytes[32];
  HybHalo        h;

  PetscFunctionBegin;
  LayoutDraw(100, 1, -1);
  for (int to = 0; to < Size; to++)
    for (PetscInt k = 0, first = 0, from = 0; k < L.nghost[to]; k++) {
      while (L.ghost[to][k] >= L.ranges[from + 1]) first = k, from++;
      longest = PetscMax(longest, k + 1 - first);
    }
  for (int above = 0; above < 2; above++) {
    const char      *by   = above ? "gpuaware" : "mpi";
    const PetscCount sent = GPUAwareSent;

    HybTestBegin("a longest message %s the bound of GPU-aware MPI", above ? "of" : "below");
    PetscCall(PetscSNPrintf(bytes, sizeof(bytes), "%d", (int)longest * (int)sizeof(PetscScalar) + !above));
    PetscCall(HybTuningSet("comm_aware_min", bytes));
    if (!HybTestCall(HaloMake(comm, &h))) continue;
    for (int k = 0; k < 3; k++) {
      PetscCall(Forward(h, sizeof(PetscScalar), k));
      HybTestCheck(!strcmp(HybHaloBy(h, PETSC_FALSE), by), "it went by %s, not by %s: %s", HybHaloBy(h, PETSC_FALSE), by, HybHaloWay(h, PETSC_FALSE));
      HybTestCheck(strstr(HybHaloWay(h, PETSC_FALSE), above ? "GPU-aware MPI: as asked" : "no message is long enough"), "it is said: %s", HybHaloWay(h, PETSC_FALSE));
      PetscCall(Reverse(h, (PetscBool)(k == 1), k));
      HybTestCheck(!strcmp(HybHaloBy(h, PETSC_TRUE), by), "the reverse one went by %s, not by %s", HybHaloBy(h, PETSC_TRUE), by);
    }
    if (above && h->nsend) HybTestCheck(!GPUAwareMove || GPUAwareSent > sent, "no message was of a card's memory");
    if (!above) HybTestCheck(GPUAwareSent == sent, "%d short messages were of a card's memory", (int)(GPUAwareSent - sent));
    for (int k = 0; k < 2 && !above; k++) {
      PetscCall(Forward(h, (k ? 1 : 3) * sizeof(PetscScalar), 5 + k));
      HybTestCheck(!strcmp(HybHaloBy(h, PETSC_FALSE), "gpuaware"), "with longer units it went by %s", HybHaloBy(h, PETSC_FALSE));
      PetscCall(Reverse(h, PETSC_TRUE, 7 + k));
      HybTestCheck(!strcmp(HybHaloBy(h, PETSC_TRUE), "mpi"), "the reverse one, of units as before, went by %s", HybHaloBy(h, PETSC_TRUE));
    }
    HybTestCall(HybHaloDestroy(&h));
  }
  PetscCall(PetscSNPrintf(bytes, sizeof(bytes), "%d", (int)before));
  PetscCall(HybTuningSet("comm_aware_min", bytes));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(HybComm comm)
{
  PetscFunctionBegin;
  PetscCall(Several(comm));
  PetscCall(GivenUpFirst(comm));
  PetscCall(Queued(comm, PETSC_FALSE));
  /* by peer access the others would hear of it at the next one */
  if (HybTuningGet()->comm == HYB_COMM_GPUAWARE || HybTuningGet()->comm == HYB_COMM_MPI) PetscCall(Queued(comm, PETSC_TRUE));
  if (HybTuningGet()->comm == HYB_COMM_GPUAWARE && HybTestExec()->backend->device) PetscCall(Bound(comm));
  PetscCall(Large(comm));
  PetscCall(Many(comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return CommTestMain(argc, argv, Body);
}
