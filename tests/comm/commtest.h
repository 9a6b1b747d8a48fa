/*
  commtest.h: what tests of the comm room share: layouts that are drawn alike on all processes, halos of them, exchanges
  whose results are known by a formula.
*/
#ifndef AIJHYBRIDGPU_TESTS_COMMTEST_H
#define AIJHYBRIDGPU_TESTS_COMMTEST_H
#include "hybtest.h"
#include <aijhybridgpu/private/hybcomm.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 8 /* processes */

static PetscMPIInt Rank, Size;
static PetscBool   Aware; /* MPI, by -mat_aijhybridgpu_comm_aware yes */

static struct {
  PetscInt  ranges[MOST + 1];
  PetscInt  nghost[MOST];
  PetscInt *ghost[MOST]; /* of each process */
} L;

/* values by number and version */
static PetscScalar Entry(PetscInt i, PetscInt version)
{
  return (PetscScalar)(sin((double)(i + 1) * 0.7 + version) + 0.25);
}
static PetscScalar Value(PetscInt r, PetscInt c, PetscInt version)
{
  return (PetscScalar)(cos((double)r * 1.3 + (double)c * 0.11 + version) + (r + c) % 3);
}

static inline void LayoutFree(void)
{
  for (int r = 0; r < Size; r++) {
    free(L.ghost[r]);
    L.ghost[r] = NULL;
  }
}

/* kind 0: bands; 1: any entries; 2: process 0 needs of all, nobody else of any; 3: nobody needs anything; empty: which
   process owns nothing */
static inline void LayoutDraw(PetscInt most, int kind, int empty)
{
  L.ranges[0] = 0;
  for (int r = 0; r < Size; r++) L.ranges[r + 1] = L.ranges[r] + (r == empty ? 0 : HybTestRandomInt(1, most + 1));
  for (int r = 0; r < Size; r++) {
    const PetscInt N = L.ranges[Size];

    L.ghost[r]  = (PetscInt *)RefAlloc(N + 1, sizeof(PetscInt));
    L.nghost[r] = 0;
    for (PetscInt g = 0; g < N; g++) {
      const PetscBool own  = (PetscBool)(g >= L.ranges[r] && g < L.ranges[r + 1]);
      const PetscBool near = (PetscBool)(g >= L.ranges[r] - 5 && g < L.ranges[r + 1] + 3), drawn = (PetscBool)(HybTestRandomInt(0, 3) == 0);

      if (own || kind == 3 || (kind == 0 && !near) || (kind == 1 && !drawn) || (kind == 2 && r)) continue;
      L.ghost[r][L.nghost[r]++] = g;
    }
  }
}

/* -lasting: halos that are used again and again, for which peer access is made ready with them */
static PetscBool HaloLasts(void)
{
  PetscBool lasting = PETSC_FALSE;

  (void)PetscOptionsGetBool(NULL, NULL, "-lasting", &lasting, NULL);
  return lasting;
}

static PetscErrorCode HaloMake(HybComm comm, HybHalo *halo)
{
  PetscFunctionBegin;
  PetscCall(HybHaloCreate(comm, HybTestExec(), PETSC_SUCCESS, L.ranges, L.nghost[Rank], L.ghost[Rank], HaloLasts(), halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* after an exchange, where the first one settles the way */
static inline PetscErrorCode HaloGet(HybComm comm, HybHalo *halo)
{
  const HybExec *exec  = HybTestExec();
  PetscInt      *x     = NULL;
  void          *ghost = NULL;
  PetscErrorCode ierr;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  PetscCall(HaloMake(comm, halo));
  if (HybTuningGet()->comm_after) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybCommAgree(comm, HybArenaCalloc(&arena, HYB_WORK(exec), (*halo)->n, sizeof(PetscInt), &x), "Entries");
  if (!ierr) ierr = HybCommAgree(comm, HybHaloExchange(*halo, exec, sizeof(PetscInt), x, &ghost), "An exchange");
  (void)HybArenaReset(&arena);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* units of any size */
static inline PetscErrorCode Forward(HybHalo h, size_t unit, PetscInt version)
{
  const HybExec *exec = HybTestExec();
  const PetscInt n = h->n, start = L.ranges[Rank];
  char          *x = (char *)RefAlloc(n * (PetscCount)unit + 1, 1), *expected = (char *)RefAlloc(h->nghost * (PetscCount)unit + 1, 1), *dx;
  void          *ghost;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++)
    for (size_t b = 0; b < unit; b++) x[(size_t)k * unit + b] = (char)((start + k) * 31 + (PetscInt)b * 7 + version);
  for (PetscInt k = 0; k < h->nghost; k++)
    for (size_t b = 0; b < unit; b++) expected[(size_t)k * unit + b] = (char)(L.ghost[Rank][k] * 31 + (PetscInt)b * 7 + version);
  PetscCall(HybTestUploadArray(&arena, n * (PetscCount)unit, 1, x, &dx));
  h->early = (PetscBool)HybTestRandomInt(0, 2); /* where it waits is each process's own affair */
  if (HybTestCall(HybHaloBegin(h, exec, unit, dx))) {
    if (HybTestRandomInt(0, 2) == Rank % 2) usleep(200);
    HybTestCall(HybHaloEnd(h, exec, PETSC_SUCCESS, &ghost));
    HybTestSameBits(h->nghost * (PetscCount)unit, 1, ghost, expected);
  }
  PetscCall(HybArenaReset(&arena));
  RefFree(x, expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what process r has as ghost g */
static PetscScalar Share(int r, PetscInt g, PetscInt version)
{
  return Entry(g, version) * (PetscScalar)(1.0 + 0.1 * r);
}

/* y of own entries after a reversed exchange: sums in the order of the ranks */
static void Sum(PetscInt version, PetscScalar *y)
{
  for (int r = 0; r < Size; r++)
    for (PetscInt k = 0; k < L.nghost[r]; k++) {
      const PetscInt g = L.ghost[r][k];

      if (g >= L.ranges[Rank] && g < L.ranges[Rank + 1]) y[g - L.ranges[Rank]] += Share(r, g, version);
    }
}

/* bit for bit */
static inline PetscErrorCode Reverse(HybHalo h, PetscBool scalars, PetscInt version)
{
  const HybExec *exec = HybTestExec();
  const PetscInt n = h->n, start = L.ranges[Rank];
  PetscScalar   *y = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar)), *g = (PetscScalar *)RefAlloc(h->nghost, sizeof(PetscScalar)), *dy, *dg;
  PetscInt      *yi = (PetscInt *)RefAlloc(n, sizeof(PetscInt)), *gi = (PetscInt *)RefAlloc(h->nghost, sizeof(PetscInt)), *dyi, *dgi;
  HybArena       arena = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < h->nghost; k++) {
    g[k]  = Share(Rank, L.ghost[Rank][k], version);
    gi[k] = (PetscInt)Rank * 100 + L.ghost[Rank][k] + version;
  }
  for (PetscInt k = 0; k < n; k++) {
    y[k]  = Entry(start + k, 17);
    yi[k] = k;
  }
  PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), y, &dy));
  PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscInt), yi, &dyi));
  PetscCall(HybTestUploadArray(&arena, h->nghost, sizeof(PetscScalar), g, &dg));
  PetscCall(HybTestUploadArray(&arena, h->nghost, sizeof(PetscInt), gi, &dgi));
  Sum(version, y);
  for (int r = 0; r < Size; r++)
    for (PetscInt k = 0; k < L.nghost[r]; k++) {
      const PetscInt row = L.ghost[r][k] - start;

      if (row < 0 || row >= n) continue;
      yi[row] += (PetscInt)r * 100 + L.ghost[r][k] + version;
    }
  if (HybTestCall(HybHaloReverseBegin(h, exec, scalars, scalars ? (void *)dg : (void *)dgi))) {
    HybTestCall(HybHaloReverseEnd(h, exec, PETSC_SUCCESS, scalars ? (void *)dy : (void *)dyi));
    if (scalars)
      HybTestSameBits(n, sizeof(PetscScalar), dy, y);
    else
      HybTestSameInts(n, dyi, yi);
  }
  PetscCall(HybArenaReset(&arena));
  RefFree(y, g, yi, gi);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row r of a matrix of N columns, as process q has it: entry c is there where a hash says so. Row lengths go from none
   to all. */
static PetscBool There(PetscInt r, PetscInt c, int q)
{
  const unsigned s = (unsigned)(r * 2654435761u) ^ (unsigned)(c * 40503u + 97u * (unsigned)q);

  return (PetscBool)(r % 7 == 3 ? 0 : r % 11 == 5 ? 1
                                                  : (s >> 5) % 4 == 0);
}

/* The rows row[0..n-1] as process q has them, with columns numbered by `column` (global number c is local column
   column[c]; NULL: as they are), as RefMat sorts them */
static inline void RowsMake(PetscInt n, const PetscInt *row, PetscInt N, const int *q, const PetscInt *column, PetscInt version, RefMat *A)
{
  PetscInt    *ci = (PetscInt *)RefAlloc((PetscCount)n * N + 1, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc((PetscCount)n * N + 1, sizeof(PetscInt));
  PetscScalar *v = (PetscScalar *)RefAlloc((PetscCount)n * N + 1, sizeof(PetscScalar));
  PetscCount   k = 0;

  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c = 0; c < N; c++) {
      if (!There(row[r], c, q ? q[r] : 0)) continue;
      ci[k]  = r;
      cj[k]  = column ? column[c] : c;
      v[k++] = Value(row[r], c, version + (q ? q[r] : 0));
    }
  RefCOO(n, N, k, ci, cj, v, A);
  RefFree(ci, cj, v);
}

static inline PetscBool ByPeer(HybHalo h)
{
  return (PetscBool)!strcmp(HybHaloWay(h, PETSC_FALSE), "peer access");
}

/* does this process hear of an error of process 0, in an exchange the other way or not? */
static inline PetscBool Hears(HybHalo h, PetscBool reverse)
{
  const HybPeers *from = reverse ? &h->to : &h->from, *to = reverse ? &h->from : &h->to;

  return (PetscBool)((from->n && !from->rank[0]) || (to->n && !to->rank[0] && !strcmp(HybHaloWay(h, reverse), "peer access")));
}

static PetscErrorCode (*CommTestBody)(HybComm);

static PetscErrorCode CommTestRun(void)
{
  PetscInt nodes = 1;
  HybComm  comm;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCheck(Size <= MOST, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "For up to %d processes, not %d", MOST, Size);
  PetscCall(HybCommGet(PETSC_COMM_WORLD, &comm));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-nodes", &nodes, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_comm_aware", &Aware));
  HybCommSetAware(Aware);
  if (nodes > 1) comm->nodesize = (PetscMPIInt)((Size + nodes - 1) / nodes);
  PetscCall((*CommTestBody)(comm));
  PetscCall(HybCommRestore(&comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a card for each process, and what the options say of cards, before anybody looks */
static int CommTestMain(int argc, char **argv, PetscErrorCode (*body)(HybComm))
{
  CommTestBody = body;
  setenv("HYB_EMULATOR_CARDS", "8", 1);
  for (int k = 1; k + 1 < argc; k++) {
    if (!strcmp(argv[k], "-cards")) setenv("HYB_EMULATOR_CARDS", argv[k + 1], 1);
    if (!strcmp(argv[k], "-ipc")) setenv("HYB_EMULATOR_IPC", argv[k + 1], 1);
  }
  return HybTestMain(argc, argv, CommTestRun);
}
#endif
