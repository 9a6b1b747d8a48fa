/*
  Halos and rows between processes: each result is known by a formula that every process can work out for all, so
  nothing is gathered to be compared. Layouts are drawn alike on all processes: uneven ones, empty processes, processes
  that need nothing or that nobody needs, neighbours that are not mutual.

Each way is taken in turn: peer access where each process has a card, MPI where they are told so, share a card, or have
cards whose memory others cannot map, which is no error; memory of the card for messages, where it is said that MPI
takes it, on several nodes or as asked.

Peer access is made ready for the third exchange of a kind (-mat_aijhybridgpu_comm_after 2), or for the first, or with
the halo (-lasting).

TEST np=1,3+2,4 -mat_aijhybridgpu_comm_after 0
TEST np=2+3
TEST np=3+2 -mat_aijhybridgpu_comm mpi
TEST np=3+2 -mat_aijhybridgpu_comm gpuaware -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=2 -mat_aijhybridgpu_comm gpuaware
TEST np=+2,4 -nodes 2 -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=2 -cards 1
TEST np=+4 -cards 2
TEST np=+4 -nodes 2
TEST np=+3 -ipc 0
TEST np=2 -ipc 0 -mat_aijhybridgpu_comm_aware yes -mat_aijhybridgpu_comm_aware_min 0
TEST np=2 -mat_aijhybridgpu_comm_segment 1 -full
TEST np=3+2,4 -lasting
TEST np=+2 -lasting -mat_aijhybridgpu_comm_segment 1 -full
TEST np=+2 -lasting -ipc 0
TEST np=+3 -lasting -mat_aijhybridgpu_comm_after 5
*/
#define _GNU_SOURCE /* RTLD_NEXT, dl_iterate_phdr */
#include "commtest.h"
#include "gpuaware.h"

/* global numbers of local columns: as they are, or own ones first and the others backwards */
static void ColumnsDraw(PetscInt N, PetscBool ascending, PetscInt *colmap, PetscInt *column)
{
  PetscInt       n   = 0;
  const PetscInt own = L.ranges[Rank + 1];

  for (PetscInt c = 0; c < N; c++) colmap[c] = c;
  if (!ascending) {
    for (PetscInt c = L.ranges[Rank]; c < own; c++) colmap[n++] = c;
    for (PetscInt c = N - 1; c >= 0; c--)
      if (c < L.ranges[Rank] || c >= own) colmap[n++] = c;
  }
  for (PetscInt c = 0; c < N; c++) column[colmap[c]] = c;
}

static PetscErrorCode Rows(HybHalo h, PetscBool ship, PetscBool ascending, PetscBool values)
{
  const HybExec *exec = HybTestExec();
  const PetscInt N = L.ranges[Size], n = ship ? h->nghost : h->n, nr = ship ? h->nsend : h->nghost;
  PetscInt      *row = (PetscInt *)RefAlloc(n, sizeof(PetscInt)), *colmap = (PetscInt *)RefAlloc(N, sizeof(PetscInt)), *column = (PetscInt *)RefAlloc(N, sizeof(PetscInt)), *there, *expect = (PetscInt *)RefAlloc(nr, sizeof(PetscInt));
  int           *q = (int *)RefAlloc(n, sizeof(int)), *from = (int *)RefAlloc(nr, sizeof(int));
  HybRows        rows = NULL;
  RefMat         A, B, E;
  HybCSR         a, b, R;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  ColumnsDraw(N, ascending, colmap, column);
  for (PetscInt k = 0; k < n; k++) {
    row[k] = ship ? L.ghost[Rank][k] : L.ranges[Rank] + k;
    q[k]   = ship ? Rank : 0;
  }
  if (!ship) memcpy(expect, L.ghost[Rank], sizeof(PetscInt) * (size_t)nr);
  for (PetscMPIInt p = 0; ship && p < h->to.n; p++)
    for (PetscCount k = h->to.offset[p]; k < h->to.offset[p + 1]; k++) {
      expect[k] = L.ranges[Rank] + h->index[k];
      from[k]   = h->to.rank[p];
    }
  RowsMake(n, row, N, q, column, 1, &A);
  RowsMake(n, row, N, q, column, 2, &B);
  PetscCall(HybTestUpload(&arena, &A.csr, &a));
  PetscCall(HybTestUpload(&arena, &B.csr, &b));
  PetscCall(HybTestUploadArray(&arena, N, sizeof(PetscInt), colmap, &there));
  if (!values) a.a = NULL;
  if (HybTestCall(HybRowsMove(h->comm, exec, PETSC_SUCCESS, 1, &(HybRowsWish){h, ship, &arena, &a, NULL, there, N, ascending, &R, &rows}))) {
    RowsMake(nr, expect, N, ship ? from : NULL, NULL, 1, &E);
    if (values)
      HybTestSameMatrix(&R, &E, 0);
    else
      HybTestSamePattern(&R, &E);
    RefMatDestroy(&E);
    RowsMake(nr, expect, N, ship ? from : NULL, NULL, 2, &E);
    if (!values) PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), R.nnz, sizeof(HybScalar), &R.a));
    for (int k = 0; k < 2; k++) {
      PetscCall(exec->backend->zero(exec, R.a, sizeof(HybScalar) * (size_t)R.nnz));
      if (!HybTestCall(HybRowsValuesBegin(rows, exec, b.a))) break;
      HybTestCall(HybRowsValuesEnd(rows, exec, PETSC_SUCCESS, R.a));
      HybTestSameMatrix(&R, &E, 0);
    }
    RefMatDestroy(&E);
    HybTestCall(HybRowsDestroy(&rows));
  }
  RefMatDestroy(&A, &B);
  PetscCall(HybArenaReset(&arena));
  RefFree(row, colmap, column, expect, q, from);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Layouts(HybComm comm)
{
  PetscFunctionBegin;
  for (int k = 0; k < 4 * 4; k++) {
    const int kind = k % 4, empty = k / 4 - 1;
    HybHalo   h;

    HybTestBegin("layout %d, process %d empty", kind, empty);
    LayoutDraw(k % 3 ? 40 : 300, kind, empty);
    if (!HybTestCall(HaloGet(comm, &h))) continue;
    for (int again = 0; again < 3; again++) {
      PetscCall(Forward(h, sizeof(PetscScalar), again));
      PetscCall(Forward(h, sizeof(PetscInt), 5 + again));
      PetscCall(Reverse(h, PETSC_TRUE, again));
      PetscCall(Reverse(h, PETSC_FALSE, again));
    }
    PetscCall(Forward(h, 1, 3));
    PetscCall(Forward(h, 24, 4));
    PetscCall(Forward(h, 36, 5));
    PetscCall(Forward(h, 36, 6));
    PetscCall(Forward(h, sizeof(PetscScalar), 7));
    if (L.ranges[Size] < 200) {
      for (int way = 0; way < 8; way++) PetscCall(Rows(h, (PetscBool)(way & 1), (PetscBool)((way & 2) != 0), (PetscBool)((way & 4) != 0)));
    }
    HybTestCall(HybHaloDestroy(&h));
    LayoutFree();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Small(HybComm comm)
{
  HybComm     again;
  PetscInt64  v[3];
  PetscMPIInt tag;

  PetscFunctionBegin;
  HybTestBegin("sums, maxima, agreement");
  HybTestCall(HybCommGet(PETSC_COMM_WORLD, &again));
  HybTestCheck(again == comm && comm->users == 2, "the same communicator is another one, or has %d users", (int)comm->users);
  HybTestCall(HybCommRestore(&again));
  v[0] = Rank + 1;
  v[1] = -(PetscInt64)Rank;
  HybTestCall(HybAgreeSum(comm->mpi, PETSC_SUCCESS, "Sums", 2, v));
  HybTestCheck(v[0] == Size * (Size + 1) / 2 && v[1] == -Size * (Size - 1) / 2, "sums %lld, %lld", (long long)v[0], (long long)v[1]);
  v[0] = Rank + 1;
  HybTestCall(HybAgreeMax(comm->mpi, PETSC_SUCCESS, "A maximum", 1, v));
  HybTestCheck(v[0] == Size, "maximum %lld", (long long)v[0]);
  HybTestCall(HybCommAgree(comm, PETSC_SUCCESS, "Nothing"));
#if !PetscDefined(USE_DEBUG) /* there PETSc itself waits for all where one counts on */
  for (int k = 0; k < Rank % 3; k++) HybTestCall(PetscCommGetNewTag(comm->mpi, &tag));
#endif
  HybTestCallFails(PETSC_ERR_MEM, HybCommAgree(comm, Rank == Size - 1 ? PETSC_ERR_MEM : PETSC_SUCCESS, "Something"));
  HybTestCall(PetscCommGetNewTag(comm->mpi, &tag));
  v[0] = tag;
  HybTestCall(HybAgreeMax(comm->mpi, PETSC_SUCCESS, "The next message's number", 1, v));
  HybTestCheck(v[0] == tag, "the next message has number %d, another process's %lld", (int)tag, (long long)v[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what one process gets wrong is an error of all */
static PetscErrorCode Wrong(HybComm comm)
{
  PetscInt       ranges[MOST + 1], ghost[2];
  const PetscInt last = Size - 1;
  HybHalo        h    = NULL;

  PetscFunctionBegin;
  for (int r = 0; r <= Size; r++) ranges[r] = 10 * r;
  HybTestBegin("ghosts that do not ascend");
  ghost[0] = last ? 3 : 10;
  ghost[1] = last ? 3 : 10;
  HybTestCallFails(last ? PETSC_ERR_ARG_WRONG : PETSC_ERR_ARG_OUTOFRANGE, HybHaloCreate(comm, HybTestExec(), PETSC_SUCCESS, ranges, Rank == last ? 2 : 0, ghost, PETSC_FALSE, &h));
  HybTestBegin("ghosts that are own entries");
  ghost[0] = 10 * last;
  HybTestCallFails(PETSC_ERR_ARG_WRONG, HybHaloCreate(comm, HybTestExec(), PETSC_SUCCESS, ranges, Rank == last ? 1 : 0, ghost, PETSC_FALSE, &h));
  HybTestBegin("ghosts beyond the last entry");
  ghost[0] = 10 * Size;
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybHaloCreate(comm, HybTestExec(), PETSC_SUCCESS, ranges, Rank == last ? 1 : 0, ghost, PETSC_FALSE, &h));
  HybTestCheck(!h, "a halo was made");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what exchanges go by in this run, by its options, once they are asked for often enough */
static PetscErrorCode Expected(PetscBool *full, const char **expected)
{
  char     ipc[16] = "1", cards[16] = "8", way[16] = "auto";
  PetscInt nodes = 1;

  PetscFunctionBegin;
  *full = PETSC_FALSE;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ipc", ipc, sizeof(ipc), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-cards", cards, sizeof(cards), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_comm", way, sizeof(way), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-nodes", &nodes, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-full", full, NULL));
  *expected = !HybTestExec()->backend->device ? "from the host" : Size == 1                ? "nothing"
                                                                : !strcmp(way, "mpi")      ? "page-locked buffers: as asked"
                                                                : !strcmp(way, "gpuaware") ? (Aware ? "GPU-aware MPI: as asked" : "nobody says that MPI is GPU-aware")
                                                                : nodes > 1 && Aware       ? "GPU-aware MPI: there are several nodes"
                                                                : nodes > 1                ? "there are several nodes"
                                                                : atoi(cards) < Size       ? "share a card"
                                                                : !strcmp(ipc, "0")        ? (Aware ? "GPU-aware MPI: a card has no memory that others can reach" : "buffers: a card has no memory that others can reach")
                                                                : *full                    ? "segment is full"
                                                                                           : "peer access";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool GPUAware(HybHalo h)
{
  return (PetscBool)(strstr(HybHaloWay(h, PETSC_FALSE), "GPU-aware MPI: ") != NULL);
}

/* the way is the one that this run is for, the reverse exchanges' apart */
static PetscErrorCode Way(HybComm comm)
{
  HybHalo     h;
  PetscBool   full;
  const char *expected;

  PetscFunctionBegin;
  HybTestBegin("the way of exchanges");
  PetscCall(Expected(&full, &expected));
  LayoutDraw(full ? 400000 : 20, full ? 1 : 0, -1);
  if (HybTestCall(HaloMake(comm, &h))) {
    const PetscBool may = (PetscBool)(HybTestExec()->backend->device && Size > 1 && !HaloLasts() && !strstr(expected, "as asked") && !strstr(expected, "nobody"));

    /* large exchanges do not wait for the third one */
    for (PetscInt k = 0; k <= (full ? 0 : HybTuningGet()->comm_after); k++) {
      if (may) HybTestCheck(strstr(HybHaloWay(h, PETSC_FALSE), "too few times"), "before exchange %d it is: %s", (int)k, HybHaloWay(h, PETSC_FALSE));
      PetscCall(Forward(h, sizeof(PetscScalar), k));
    }
    HybTestCheck(strstr(HybHaloWay(h, PETSC_FALSE), expected) && !strstr(HybHaloWay(h, PETSC_FALSE), "too few times"), "it is: %s, not: %s", HybHaloWay(h, PETSC_FALSE), expected);
    HybTestCheck(HybHaloFromCardToCard(h, PETSC_FALSE) == (ByPeer(h) || GPUAware(h)) && !HybHaloFromCardToCard(h, PETSC_TRUE), "what the last exchanges went by");
    HybTestCheck(!strcmp(HybHaloBy(h, PETSC_FALSE), ByPeer(h) ? "peer" : GPUAware(h) ? "gpuaware"
                                                                                     : "mpi"),
                 "they went by %s", HybHaloBy(h, PETSC_FALSE));
    if (h->nsend && GPUAware(h)) HybTestCheck(!GPUAwareMove || GPUAwareSent > 0, "no message was of a card's memory");
    PetscCall(Forward(h, sizeof(PetscScalar), 9));
    for (PetscInt k = 0; k <= (full ? 0 : HybTuningGet()->comm_after); k++) {
      if (may) HybTestCheck(strstr(HybHaloWay(h, PETSC_TRUE), "too few times"), "before reverse exchange %d it is: %s", (int)k, HybHaloWay(h, PETSC_TRUE));
      PetscCall(Reverse(h, PETSC_TRUE, k));
    }
    HybTestCheck(strstr(HybHaloWay(h, PETSC_TRUE), expected) && !strstr(HybHaloWay(h, PETSC_TRUE), "too few times"), "the reverse way is: %s, not: %s", HybHaloWay(h, PETSC_TRUE), expected);
    HybTestCall(HybHaloDestroy(&h));
  }
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one exchange more, whose error is counted; what is queued for it is waited for */
static PetscErrorCode Hear(HybHalo h, int *errors)
{
  const HybExec *exec = HybTestExec();
  PetscScalar   *x;
  void          *ghost;
  PetscErrorCode ierr;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&arena, HYB_WORK(exec), h->n, sizeof(PetscScalar), &x));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybHaloExchange(h, exec, sizeof(PetscScalar), x, &ghost);
  PetscCall(PetscPopErrorHandler());
  if (ierr) (*errors)++;
  PetscCall(exec->backend->sync(exec));
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Process 0 gives an exchange up: whoever waits for it hears of it once, now or at its next exchange. Or it does not
   come at all: by peer access whoever waits gives up as well. */
static PetscErrorCode GivenUp(HybComm comm)
{
  HybHalo h;

  PetscFunctionBegin;
  for (int late = 0; late < 2; late++) {
    int errors = 0;

    HybTestBegin(late ? "a process that comes too late" : "a process that gives an exchange up");
    LayoutDraw(30, 1, -1);
    HybTestCall(HaloGet(comm, &h));
    if (late && !ByPeer(h)) { /* messages are waited for as MPI does */
      HybTestCheck(PETSC_TRUE, "nothing");
      HybTestCall(HybHaloDestroy(&h));
      LayoutFree();
      continue;
    }
    if (late) PetscCall(HybTuningSet("comm_timeout", "1"));
    if (!Rank && !late) HybHaloAbandon(h, HybTestExec(), sizeof(HybScalar), PETSC_FALSE, PETSC_ERR_MEM);
    if (Rank) PetscCall(Hear(h, &errors));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    if (!Rank && late) PetscCall(Hear(h, &errors));
    PetscCall(HybTuningSet("comm_timeout", NULL));
    PetscCall(Hear(h, &errors));
    HybTestCheck(errors == (Rank && Hears(h, PETSC_FALSE)), "process %d had %d errors", Rank, errors);
    PetscCall(Forward(h, sizeof(PetscScalar), 2));
    PetscCall(Reverse(h, PETSC_TRUE, 3));
    PetscCall(Forward(h, sizeof(PetscScalar), 4));
    HybTestCall(HybHaloDestroy(&h));
    LayoutFree();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An exchange that process 0 gave up, or every one, of which all know: the next ones tell nobody of it */
static PetscErrorCode GivenUpKnown(HybComm comm)
{
  HybHalo h;

  PetscFunctionBegin;
  for (int all = 0; all < 2; all++) {
    int errors = 0, later = 0;

    HybTestBegin("an exchange given up%s, of which all know", all ? " by all" : "");
    LayoutDraw(30, 1, -1);
    HybTestCall(HaloGet(comm, &h));
    if (Rank && !all)
      PetscCall(Hear(h, &errors));
    else
      HybHaloAbandon(h, HybTestExec(), sizeof(HybScalar), PETSC_FALSE, PETSC_ERR_MEM);
    HybHaloForget(h);
    for (int k = 0; k < 2; k++) PetscCall(Hear(h, &later));
    HybTestCheck(!later, "process %d had %d errors, and then %d more", Rank, errors, later);
    PetscCall(Forward(h, sizeof(PetscScalar), 2));
    HybTestCall(HybHaloDestroy(&h));
    LayoutFree();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first of large ones is given up by process 0: the others, who are to have room for messages there, all hear of
   it */
static PetscErrorCode GivenUpLarge(HybComm comm)
{
  HybHalo     h;
  PetscBool   full;
  const char *expected;
  int         errors = 0;

  PetscFunctionBegin;
  PetscCall(Expected(&full, &expected));
  if (!full || Size == 1 || !HybTestExec()->backend->device) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("a large exchange given up");
  LayoutDraw(400000, 1, -1);
  if (HybTestCall(HaloMake(comm, &h))) {
    if (Rank)
      PetscCall(Hear(h, &errors));
    else
      HybHaloAbandon(h, HybTestExec(), sizeof(HybScalar), PETSC_FALSE, PETSC_ERR_MEM);
    HybTestCheck(errors == (Rank > 0), "process %d had %d errors", Rank, errors);
    PetscCall(Forward(h, sizeof(PetscScalar), 2));
    PetscCall(Reverse(h, PETSC_TRUE, 3));
    HybTestCall(HybHaloDestroy(&h));
  }
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of rows come too late for a device, which gives up: the check tells of it, once, and so does the next
   exchange where nobody has looked. What comes is taken where it came to, or goes to its place. */
static PetscErrorCode LateRows(HybComm comm)
{
  const HybExec   *exec = HybTestExec();
  const HybScalar *came = NULL;
  HybHalo          h;
  HybRows          rows = NULL;
  HybCSR           a, R;
  PetscInt        *there, *row, N;
  RefMat           A;
  HybArena         arena = HybArenaOn(exec);

  PetscFunctionBegin;
  HybTestBegin("values of rows that come too late");
  LayoutDraw(30, 1, -1);
  HybTestCall(HaloMake(comm, &h));
  N   = L.ranges[Size];
  row = (PetscInt *)RefAlloc(N, sizeof(PetscInt));
  for (PetscInt k = 0; k < N; k++) row[k] = k;
  PetscCall(HybTestUploadArray(&arena, N, sizeof(PetscInt), row, &there));
  RowsMake(h->n, row + L.ranges[Rank], N, NULL, NULL, 1, &A);
  PetscCall(HybTestUpload(&arena, &A.csr, &a));
  if (HybTestCall(HybRowsMove(h->comm, exec, PETSC_SUCCESS, 1, &(HybRowsWish){h, PETSC_FALSE, &arena, &a, NULL, there, N, PETSC_TRUE, &R, &rows}))) {
    /* by peer access */
    PetscBool   waits = (PetscBool)(Rank && ((h->to.n && !h->to.rank[0]) || (h->from.n && !h->from.rank[0])));
    PetscBool   peer, full;
    const char *expected;

    PetscCall(Expected(&full, &expected));
    came = R.a;
    for (PetscInt k = 0; k <= HybTuningGet()->comm_after + 1; k++) {
      rows->early = (PetscBool)(k % 2);
      if (!HybTestCall(HybRowsValuesBegin(rows, exec, a.a)) || !HybTestCall(HybRowsValuesEndThere(rows, exec, PETSC_SUCCESS, R.a, &came))) break;
      HybTestCall(HybRowsCheck(rows));
    }
    peer = (PetscBool)(came != R.a && (full || !strcmp(expected, "peer access"))); /* on all processes alike */
    if (came != R.a) PetscCall(exec->backend->copy(exec, R.a, came, sizeof(HybScalar) * (size_t)R.nnz, HYB_COPY_DEVICE_TO_DEVICE));
    for (int look = 0; look < 2 && peer; look++) {
      int errors = 0;

      PetscCall(HybTuningSet("comm_timeout", "1"));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      for (int turn = 0; turn < 2; turn++) { /* process 0 after the others */
        if (turn == !Rank) {
          errors += HybRowsValuesBegin(rows, exec, a.a) != PETSC_SUCCESS;
          /* if it knows it yet */
          errors += HybRowsValuesEndThere(rows, exec, PETSC_SUCCESS, R.a, &came) != PETSC_SUCCESS;
          errors += exec->backend->sync(exec) != PETSC_SUCCESS;
        }
        PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
      }
      PetscCall(HybTuningSet("comm_timeout", NULL));
      if (look) {
        errors += HybRowsCheck(rows) != PETSC_SUCCESS;
        HybTestCheck(errors == (int)waits, "process %d had %d errors until it looked", Rank, errors);
      }
      for (int k = 0; k < 2; k++) {
        errors += HybRowsValuesBegin(rows, exec, a.a) != PETSC_SUCCESS;
        errors += HybRowsValuesEndThere(rows, exec, PETSC_SUCCESS, R.a, &came) != PETSC_SUCCESS;
        errors += exec->backend->sync(exec) != PETSC_SUCCESS;
      }
      PetscCall(PetscPopErrorHandler());
      HybTestCheck(errors == (int)waits, "process %d had %d errors", Rank, errors);
    }
    HybTestCall(HybRowsDestroy(&rows));
  }
  RefMatDestroy(&A);
  free(row);
  HybTestCall(HybHaloDestroy(&h));
  PetscCall(HybArenaReset(&arena));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries of arrays one behind the other, empty ones among them, and places that stay */
static PetscErrorCode Collect(void)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  for (int run = 0; run < 8; run++) {
    HybCommSources sources = {.start = {0}};
    PetscScalar    value[5 * 40], to[300], *dst;
    PetscInt       from[300], *there, n = run ? HybTestRandomInt(1, 301) : 0, total;
    HybArena       arena = HybArenaOn(exec);

    HybTestBegin("%d entries of several arrays", (int)n);
    for (int s = 0; s < HYB_COMM_SOURCES; s++) {
      const PetscInt len = (run + s) % 3 ? HybTestRandomInt(0, 40) : 0;

      sources.start[s + 1] = sources.start[s] + len;
      for (PetscInt k = sources.start[s]; k < sources.start[s + 1]; k++) value[k] = HybTestRandomScalar();
      PetscCall(HybTestUploadArray(&arena, len, sizeof(PetscScalar), value + sources.start[s], (void *)&sources.a[s]));
    }
    total = sources.start[HYB_COMM_SOURCES];
    for (PetscInt k = 0; k < n; k++) {
      from[k] = !total || k % 7 == 3 ? -1 : HybTestRandomInt(0, total);
      to[k]   = k;
    }
    PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscInt), from, &there));
    PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), to, &dst));
    HybTestCall(exec->backend->comm->collect(exec, n, there, &sources, dst));
    for (PetscInt k = 0; k < n; k++)
      if (from[k] >= 0) to[k] = value[from[k]];
    HybTestSameBits(n, sizeof(PetscScalar), dst, to);
    PetscCall(HybArenaReset(&arena));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Process 0 gives up the exchange for which peer access would be made ready: whoever waits for it hears of it at once,
   by messages, and the next exchange makes it */
static PetscErrorCode GivenUpThen(HybComm comm)
{
  const PetscInt after = HybTuningGet()->comm_after;
  HybHalo        h;
  int            errors = 0;

  PetscFunctionBegin;
  if (HaloLasts()) PetscFunctionReturn(PETSC_SUCCESS); /* it is made with the halo */
  HybTestBegin("a process that gives up the exchange that peer access is made for");
  LayoutDraw(30, 1, -1);
  HybTestCall(HaloMake(comm, &h));
  for (PetscInt k = 0; k < after; k++) PetscCall(Forward(h, sizeof(PetscScalar), k));
  if (Rank)
    PetscCall(Hear(h, &errors));
  else
    HybHaloAbandon(h, HybTestExec(), sizeof(HybScalar), PETSC_FALSE, PETSC_ERR_MEM);
  HybTestCheck(errors == (Rank && h->from.n && !h->from.rank[0]), "process %d had %d errors", Rank, errors);
  HybTestCheck(!ByPeer(h), "it is: %s", HybHaloWay(h, PETSC_FALSE));
  for (PetscInt k = 0; k < 3; k++) PetscCall(Forward(h, sizeof(PetscScalar), k));
  PetscCall(Reverse(h, PETSC_TRUE, 3));
  HybTestCall(HybHaloDestroy(&h));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Process 0 computes for minutes before it comes, by the card's clock: nobody gives up. What serves a probe alone is
   not asked for here. */
static PetscErrorCode Late(HybComm comm)
{
  HybHalo h;
  int     errors = 0;

  PetscFunctionBegin;
  HybTestBegin("a process that comes minutes later");
  LayoutDraw(30, 1, -1);
  HybTestCall(HaloGet(comm, &h));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  setenv("HYB_EMULATOR_HASTE", "2000", 1); /* 0.5 s are 1000 */
  if (!Rank) usleep(500000);
  for (int k = 0; k < 2; k++) PetscCall(Hear(h, &errors)); /* an error of the first would be heard at the second */
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  unsetenv("HYB_EMULATOR_HASTE");
  HybTestCheck(!errors, "process %d had %d errors", Rank, errors);
  PetscCall(Forward(h, sizeof(PetscScalar), 2));
  HybTestCall(HybHaloDestroy(&h));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an error of one process between Begin and End reaches those who wait for it, and the next exchange is right */
static PetscErrorCode Between(HybComm comm)
{
  const HybExec *exec = HybTestExec();
  HybHalo        h;

  PetscFunctionBegin;
  if (Size < 2) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("an error between the beginning and the end of an exchange");
  LayoutDraw(30, 1, -1);
  HybTestCall(HaloGet(comm, &h));
  if (exec->backend->device) {
    /* by peer access it has what it needs */
    const PetscBool waits = (PetscBool)(Rank && !ByPeer(h) && h->from.n && !h->from.rank[0]);
    PetscScalar    *x;
    void           *ghost;
    HybArena        arena = HybArenaOn(exec);

    PetscCall(HybArenaCalloc(&arena, HYB_WORK(exec), h->n, sizeof(PetscScalar), &x));
    HybTestCall(HybHaloBegin(h, exec, sizeof(PetscScalar), x));
    if (!Rank || waits)
      HybTestCallFails(Rank ? PETSC_ERR_LIB : PETSC_ERR_MEM, HybHaloEnd(h, exec, Rank ? PETSC_SUCCESS : PETSC_ERR_MEM, &ghost));
    else
      HybTestCall(HybHaloEnd(h, exec, PETSC_SUCCESS, &ghost));
    PetscCall(HybArenaReset(&arena));
  }
  PetscCall(Forward(h, sizeof(PetscScalar), 11));
  PetscCall(Forward(h, sizeof(PetscScalar), 12));
  HybTestCall(HybHaloDestroy(&h));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static struct {
  HybComm      comm;
  HybHalo      halo;
  HybArena     data, keep;
  HybRows      rows[2];
  HybCSR       own, others;
  PetscInt    *colmap;
  PetscScalar *x, *g, *y, *ghost, *sum; /* the last two: the host's */
  RefMat       fetched;
} F;

/* Whatever fails: what brings no error brings what it should, by other memory */
static PetscErrorCode FaultsRun(void *ctx)
{
  PetscInt      *sent;
  RefMat         shipped;
  const HybExec *exec = HybTestExec();
  const PetscInt N    = L.ranges[Size];
  HybCSR         R[2];
  void          *ghost;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HaloGet(F.comm, &F.halo));
  for (int k = 0; k < 3; k++) { /* the last makes peer access ready */
    ierr = HybHaloExchange(F.halo, exec, sizeof(PetscScalar), F.x, &ghost);
    PetscCall(HybCommAgree(F.comm, ierr, "An exchange"));
    HybTestSameBits(F.halo->nghost, sizeof(PetscScalar), ghost, F.ghost);
  }
  PetscCall(HybTestDownloadArray(F.halo->n, sizeof(PetscScalar), F.y, F.sum));
  Sum(1, F.sum);
  ierr = HybHaloReverseBegin(F.halo, exec, PETSC_TRUE, F.g);
  if (!ierr) ierr = HybHaloReverseEnd(F.halo, exec, PETSC_SUCCESS, F.y);
  PetscCall(HybCommAgree(F.comm, ierr, "An exchange"));
  HybTestSameBits(F.halo->n, sizeof(PetscScalar), F.y, F.sum);
  ierr = HybRowsMove(F.comm, exec, PETSC_SUCCESS, 1, &(HybRowsWish){F.halo, PETSC_FALSE, &F.keep, &F.own, NULL, F.colmap, N, PETSC_TRUE, &R[0], &F.rows[0]});
  PetscCall(HybCommAgree(F.comm, ierr, "Rows that are fetched"));
  HybTestSameMatrix(&R[0], &F.fetched, 0);
  ierr = HybRowsMove(F.comm, exec, PETSC_SUCCESS, 1, &(HybRowsWish){F.halo, PETSC_TRUE, &F.keep, &F.others, NULL, F.colmap, N, PETSC_TRUE, &R[1], &F.rows[1]});
  PetscCall(HybCommAgree(F.comm, ierr, "Rows that are shipped"));
  sent = (PetscInt *)RefAlloc(F.halo->nsend, sizeof(PetscInt));
  for (PetscInt k = 0; k < F.halo->nsend; k++) sent[k] = L.ranges[Rank] + F.halo->index[k];
  RowsMake(F.halo->nsend, sent, N, NULL, NULL, 1, &shipped);
  HybTestSameMatrix(&R[1], &shipped, 0);
  RefMatDestroy(&shipped);
  free(sent);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultsCleanUp(void *ctx)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(HybRowsDestroy(&F.rows[k]));
  PetscCall(HybHaloDestroy(&F.halo));
  PetscCall(HybArenaReset(&F.keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(HybComm comm)
{
  const HybExec *exec = HybTestExec();
  PetscInt      *row  = NULL, N;
  RefMat         A;

  PetscFunctionBegin;
  F.comm = comm;
  PetscCall(HybTestArenas(exec, &F.data, &F.keep));
  LayoutDraw(12, 1, -1);
  N   = L.ranges[Size];
  row = (PetscInt *)RefAlloc(N, sizeof(PetscInt));
  for (PetscInt k = 0; k < N; k++) row[k] = k;
  PetscCall(HybTestUploadArray(&F.data, N, sizeof(PetscInt), row, &F.colmap));
  RowsMake(L.ranges[Rank + 1] - L.ranges[Rank], row + L.ranges[Rank], N, NULL, NULL, 1, &A);
  PetscCall(HybTestUpload(&F.data, &A.csr, &F.own));
  RefMatDestroy(&A);
  RowsMake(L.nghost[Rank], L.ghost[Rank], N, NULL, NULL, 1, &A);
  PetscCall(HybTestUpload(&F.data, &A.csr, &F.others));
  F.fetched = A;
  F.sum     = (PetscScalar *)RefAlloc(N, sizeof(PetscScalar));
  F.ghost   = (PetscScalar *)RefAlloc(N, sizeof(PetscScalar));
  PetscCall(HybTestUploadArray(&F.data, N, sizeof(PetscScalar), F.sum, &F.y));
  for (PetscInt k = 0; k < N; k++) F.sum[k] = Entry(L.ranges[Rank] + k, 1);
  PetscCall(HybTestUploadArray(&F.data, N, sizeof(PetscScalar), F.sum, &F.x));
  for (PetscInt k = 0; k < L.nghost[Rank]; k++) F.ghost[k] = Share(Rank, L.ghost[Rank][k], 1);
  PetscCall(HybTestUploadArray(&F.data, N, sizeof(PetscScalar), F.ghost, &F.g));
  for (PetscInt k = 0; k < L.nghost[Rank]; k++) F.ghost[k] = Entry(L.ghost[Rank][k], 1);
  for (int r = 0; r < Size; r += PetscMax(1, Size - 1)) {
    HybTestBegin("everything failing in turn on process %d", r);
    HybTestFaultsServed(r, FaultsRun, FaultsCleanUp, NULL);
  }
  PetscCall(HybArenaReset(&F.data));
  RefMatDestroy(&F.fetched);
  LayoutFree();
  RefFree(row, F.sum, F.ghost);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static struct {
  MPI_Comm mpi;
  HybComm  comm;
  HybHalo  halo;
  HybArena data;
  void    *x;
} O;

/* the first exchange of a communicator that asks for peer access, which opens it */
static PetscErrorCode OpenRun(void *ctx)
{
  void          *ghost;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HaloMake(O.comm, &O.halo));
  for (PetscInt k = 0; k <= HybTuningGet()->comm_after; k++) {
    ierr = HybHaloExchange(O.halo, HybTestExec(), sizeof(PetscScalar), O.x, &ghost);
    PetscCall(HybCommAgree(O.comm, ierr, "An exchange"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* and a communicator for the next time */
static PetscErrorCode OpenCleanUp(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  (void)HybHaloDestroy(&O.halo); /* tells of an exchange that another process gave up */
  PetscCall(PetscPopErrorHandler());
  PetscCall(HybCommRestore(&O.comm));
  PetscCallMPI(MPI_Comm_free(&O.mpi));
  PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &O.mpi));
  PetscCall(HybCommGet(O.mpi, &O.comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Peer access is opened while one process runs out of luck: all have it, or another way, or an error */
static PetscErrorCode Opening(void)
{
  PetscFunctionBegin;
  PetscCall(HybTuningSet("comm_segment", "1")); /* made anew each time */
  PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &O.mpi));
  PetscCall(HybCommGet(O.mpi, &O.comm));
  O.data = HybArenaOn(HybTestExec());
  LayoutDraw(12, 1, -1);
  PetscCall(HybArenaCalloc(&O.data, HYB_WORK(HybTestExec()), L.ranges[Size], sizeof(PetscScalar), &O.x));
  for (int r = 0; r < Size; r += PetscMax(1, Size - 1)) {
    HybTestBegin("everything failing in turn on process %d while peer access is opened", r);
    HybTestFaultsServed(r, OpenRun, OpenCleanUp, NULL);
  }
  PetscCall(HybArenaReset(&O.data));
  PetscCall(HybTuningSet("comm_segment", NULL));
  PetscCall(HybCommRestore(&O.comm));
  PetscCallMPI(MPI_Comm_free(&O.mpi));
  LayoutFree();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* instead of the system's, for a device library too: the program's own symbols come first */
static long Unused;

__attribute__((visibility("default"))) long sysconf(int name)
{
  static long (*systems)(int);

  if (!systems) *(void **)&systems = dlsym(RTLD_NEXT, "sysconf");
  return Unused && name == _SC_AVPHYS_PAGES ? Unused : (*systems)(name);
}

/* page-locked blocks that were kept when they were given back */
static PetscErrorCode TakeKept(HybArena *arena)
{
  PetscErrorCode ierr = PETSC_SUCCESS;
  void          *block;

  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (int k = 0; k < 100000 && !ierr; k++) ierr = HybArenaAlloc(arena, HYB_MEM_LOCKED, 256, 1, &block);
  PetscCall(PetscPopErrorHandler());
  HybTestCheck(ierr, "there is page-locked memory where the system has no pages");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host of process 0, or of all, has hardly a page unused: exchanges do without page-locked memory */
static PetscErrorCode Cramped(HybComm comm)
{
  const char *expected;
  PetscBool   full, peers;

  PetscFunctionBegin;
  PetscCall(Expected(&full, &expected));
  peers = (PetscBool)(HybTestExec()->backend->device && (full || !strcmp(expected, "peer access")));
  for (int all = 0; all < 2; all++) {
    HybHalo  h;
    HybArena kept = HybArenaOn(HybTestExec());

    HybTestBegin(all ? "no host has pages for locked memory" : "one host has no pages for locked memory");
    LayoutDraw(3000, 1, -1); /* larger blocks than any that were given back before */
    Unused = all || !Rank;
    if (Unused && HybTestExec()->backend->device) PetscCall(TakeKept(&kept));
    if (HybTestCall(HaloGet(comm, &h))) {
      for (PetscInt k = 0; k <= HybTuningGet()->comm_after; k++) PetscCall(Forward(h, sizeof(PetscScalar), k));
      if (peers) HybTestCheck(strstr(HybHaloWay(h, PETSC_FALSE), "no page-locked memory for peer access"), "it is: %s", HybHaloWay(h, PETSC_FALSE));
      PetscCall(Forward(h, sizeof(PetscScalar), 5));
      PetscCall(Forward(h, 3 * sizeof(PetscScalar), 6)); /* larger units: room is made anew */
      PetscCall(Reverse(h, PETSC_TRUE, 7));
      HybTestCall(HybHaloDestroy(&h));
    }
    PetscCall(HybArenaReset(&kept));
    Unused = 0;
    LayoutFree();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(HybComm comm)
{
  PetscFunctionBegin;
  PetscCall(Small(comm));
  PetscCall(Collect());
  PetscCall(Layouts(comm));
  PetscCall(Way(comm));
  PetscCall(GivenUp(comm));
  PetscCall(GivenUpKnown(comm));
  PetscCall(GivenUpLarge(comm));
  PetscCall(GivenUpThen(comm));
  PetscCall(LateRows(comm));
  PetscCall(Late(comm));
  PetscCall(Wrong(comm));
  PetscCall(Between(comm));
  PetscCall(Cramped(comm));
  PetscCall(Faults(comm));
  PetscCall(Opening());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return CommTestMain(argc, argv, Body);
}
