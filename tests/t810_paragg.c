/*
  Aggregates and prolongators of graphs on several processes beside a reference (paraggtest.h): one unknown a vertex and
  one near-null vector. All processes draw the same graph and layout, uneven ones and empty processes among them.

TEST np=1,2,3,4
TEST np=3 -mat_aijhybridgpu_comm mpi
*/
#include "paraggtest.h"

static const HybAggBlock One = {1, 1};

/* the graph's matrix, its near-null vector, and what the rules make of it */
static struct {
  PetscScalar a[VERTICES][VERTICES], b[VERTICES], q[VERTICES], R[VERTICES];
  PetscBool   ones;
} V;

static PetscErrorCode Draw(PetscInt most, int kind, int empty, PetscBool nice)
{
  PetscFunctionBegin;
  PetscCall(DrawGraph(most, kind, empty));
  V.ones = (PetscBool)(HybTestRandomInt(0, 3) == 0);
  for (PetscInt v = 0; v < T.N; v++) {
    const PetscInt kindof = HybTestRandomInt(0, 8);

    V.b[v] = V.ones ? 1 : kindof == 0 ? 0
                                      : PetscRealPart(HybTestRandomScalar());
    for (PetscInt u = 0; u < T.N; u++) {
      V.a[v][u]      = T.edge[v][u] ? DrawValue(nice, (PetscBool)(u == v)) : 0;
      W.weight[v][u] = PetscAbsScalar(V.a[v][u]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of one near-null vector: LAPACK's factorization of each column */
static void Columns(void)
{
  for (PetscInt c = 0; c < T.nc; c++) {
    PetscReal sum = 0, others = 0;

    for (PetscInt v = 0; v < T.N; v++) {
      if (T.parent[v] < 0 || T.coarse[T.parent[v]] != c) continue;
      sum += PetscRealPart(V.b[v] * V.b[v]);
      if (v != T.first[c]) others += PetscRealPart(V.b[v] * V.b[v]);
    }
    V.R[c] = others == 0 ? V.b[T.first[c]] : -copysign(sqrt(sum), PetscRealPart(V.b[T.first[c]]));
    for (PetscInt v = 0; v < T.N; v++)
      if (T.parent[v] >= 0 && T.coarse[T.parent[v]] == c) V.q[v] = others == 0 ? v == T.first[c] : V.b[v] / V.R[c];
  }
}

static void Reference(int hops)
{
  Aggregates(hops);
  for (PetscInt v = 0; v < T.N; v++) V.q[v] = 0;
  Columns();
}

/* this process's rows of the matrix, in blocks */
static PetscErrorCode Blocks(HybArena *arena, PetscBool onesided, HybParCSR *A)
{
  const PetscInt begin = T.ranges[Rank], end = T.ranges[Rank + 1];
  PetscInt      *garray, *map;
  RefMat         D, O;
  PetscCount     nz[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(arena, HYB_MEM_HOST, T.N, sizeof(PetscInt), &garray));
  PetscCall(HybArenaCalloc(arena, HYB_MEM_HOST, T.N, sizeof(PetscInt), &map));
  A->O.n = 0;
  for (PetscInt u = 0; u < T.N; u++) {
    PetscBool used = PETSC_FALSE;

    for (PetscInt v = begin; v < end; v++) used = (PetscBool)(used || W.whole[v][u]);
    map[u] = -1;
    if (!used || (u >= begin && u < end)) continue;
    map[u]           = A->O.n;
    garray[A->O.n++] = u;
  }
  RefMatCreate(end - begin, end - begin, T.N * VERTICES, &D);
  RefMatCreate(end - begin, A->O.n, T.N * VERTICES, &O);
  D.csr.i[0] = O.csr.i[0] = 0;
  for (PetscInt v = begin; v < end; v++) {
    for (PetscInt u = 0; u < T.N; u++) {
      const int own = u >= begin && u < end;
      HybCSR   *csr = own ? &D.csr : &O.csr;

      if (!W.whole[v][u] || (onesided && !own && v > u)) continue;
      csr->j[nz[own]]   = own ? u - begin : map[u];
      csr->a[nz[own]++] = V.a[v][u];
    }
    D.csr.i[v - begin + 1] = (PetscInt)nz[1];
    O.csr.i[v - begin + 1] = (PetscInt)nz[0];
  }
  D.csr.nnz = nz[1];
  O.csr.nnz = nz[0];
  PetscCall(HybTestUpload(arena, &D.csr, &A->D));
  PetscCall(HybTestUpload(arena, &O.csr, &A->O));
  A->rows = A->columns = T.ranges;
  A->garray            = garray;
  RefMatDestroy(&D);
  RefMatDestroy(&O);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P beside P0 - omega D^-1 A P0, or P0 */
static PetscErrorCode SameP(const HybParCSR *P, PetscBool smoothed, PetscReal omega)
{
  const PetscInt begin = T.ranges[Rank], end = T.ranges[Rank + 1], cbegin = T.crange[Rank];
  RefMat         part[2];

  PetscFunctionBegin;
  HybTestCheck(P->D.m == end - begin && P->O.m == end - begin && P->D.n == T.crange[Rank + 1] - cbegin, "P's part is %d x %d", (int)P->D.m, (int)P->D.n);
  for (PetscInt k = 0; k < P->O.n; k++) HybTestCheck((k == 0 || P->garray[k] > P->garray[k - 1]) && (P->garray[k] < cbegin || P->garray[k] >= T.crange[Rank + 1]), "column %d of others is %d", (int)k, (int)P->garray[k]);
  PetscCall(HybTestDownload(&P->D, &part[0]));
  PetscCall(HybTestDownload(&P->O, &part[1]));
  for (PetscInt v = begin; v < end; v++) {
    PetscScalar row[VERTICES]   = {0};
    PetscBool   there[VERTICES] = {PETSC_FALSE};
    PetscInt    expected = 0, found = 0;

    for (PetscInt u = 0; u < T.N; u++) {
      const PetscInt c = T.parent[u] < 0 ? -1 : T.coarse[T.parent[u]];

      if (c < 0 || (smoothed ? !W.whole[v][u] : u != v)) continue;
      expected += !there[c];
      there[c] = PETSC_TRUE;
      if (smoothed) row[c] -= V.a[v][v] == 0. ? 0. : omega / V.a[v][v] * V.a[v][u] * V.q[u];
      if (u == v) row[c] += V.q[v];
    }
    for (int k = 0; k < 2; k++) {
      const HybCSR *csr = &part[k].csr;

      for (PetscInt e = csr->i[v - begin]; e < csr->i[v - begin + 1]; e++, found++) {
        const PetscInt c = k ? P->garray[csr->j[e]] : csr->j[e] + cbegin;

        HybTestCheck(there[c] && PetscAbsScalar(csr->a[e] - row[c]) < 1e-12, "P(%d,%d) is %g, not %g", (int)v, (int)c, (double)PetscRealPart(csr->a[e]), (double)PetscRealPart(row[c]));
      }
    }
    HybTestCheck(found == expected, "row %d of P has %d entries, not %d", (int)v, (int)found, (int)expected);
  }
  RefMatDestroy(&part[0]);
  RefMatDestroy(&part[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static struct {
  HybArena            data, out[2];
  HybParCSR           A;
  HybScalar          *b, *coarse;
  HybParAgg           agg;
  HybAggFilter        filter;
  const HybAggFilter *edges;
  /* there is one already when a program's hierarchy is made: its making is not what is tested */
  HybComm   comm;
  int       hops;
  PetscBool checks;
} F;

static PetscErrorCode Run(void *ctx)
{
  const HybExec *exec = HybTestExec();
  HybParAggFound found;
  PetscInt       n, N, doubtful;
  int            sweeps;
  HybParCSR      P;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybParAggCreate(PETSC_COMM_WORLD, exec, PETSC_SUCCESS, &F.A, &One, F.edges, &found, &F.agg));
  CheckFound(&found);
  if (HybTestFailed() || !found.proper) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggFind(F.agg, F.hops, &n, &N, &sweeps));
  HybTestCheck(n == T.crange[Rank + 1] - T.crange[Rank] && N == T.nc, "%d aggregates of %d, not %d of %d", (int)n, (int)N, (int)(T.crange[Rank + 1] - T.crange[Rank]), (int)T.nc);
  if (HybTestFailed()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggTentative(F.agg, PETSC_SUCCESS, V.ones ? NULL : F.b, NULL, NULL, F.coarse, &doubtful));
  for (int smoothed = 0; smoothed < 2; smoothed++) {
    PetscCall(HybParAggProlongator(F.agg, ierr, smoothed ? &F.A : NULL, 0.6, F.out, &P));
    if (F.checks) ierr = SameP(&P, (PetscBool)smoothed, 0.6);
    for (int k = 0; k < 2; k++) {
      const PetscErrorCode later = HybArenaReset(&F.out[k]);

      if (!ierr) ierr = later;
    }
  }
  PetscCall(HybCommAgree(F.comm, ierr, "What this process did by itself"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CleanUp(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybParAggDestroy(&F.agg));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaReset(&F.out[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Prepare(PetscInt most, int kind, int empty, PetscBool onesided, PetscBool weak)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&F.data, exec));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaInit(&F.out[k], exec));
  PetscCall(Draw(most, kind, empty, (PetscBool)(weak && HybTestRandomInt(0, 2))));
  F.filter = DrawFilter();
  F.edges  = weak ? &F.filter : NULL;
  WeakEdges(F.edges);
  PetscCall(Blocks(&F.data, onesided, &F.A));
  PetscCall(HybTestUploadArray(&F.data, T.ranges[Rank + 1] - T.ranges[Rank], sizeof(PetscScalar), V.b + T.ranges[Rank], &F.b));
  PetscCall(HybArenaCalloc(&F.data, HYB_WORK(exec), T.N + 1, sizeof(HybScalar), &F.coarse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* R of own aggregates */
static PetscErrorCode SameCoarse(void)
{
  PetscScalar R[VERTICES];

  PetscFunctionBegin;
  PetscCall(HybTestDownloadArray(T.crange[Rank + 1] - T.crange[Rank], sizeof(PetscScalar), F.coarse, R));
  for (PetscInt c = T.crange[Rank]; c < T.crange[Rank + 1]; c++) HybTestCheck(PetscAbsScalar(R[c - T.crange[Rank]] - V.R[c]) < 1e-12, "the next level's vector is %g at %d, not %g", (double)PetscRealPart(R[c - T.crange[Rank]]), (int)c, (double)PetscRealPart(V.R[c]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graphs(void)
{
  const int times = HybTestSize(12, 3);

  PetscFunctionBegin;
  F.checks = PETSC_TRUE;
  for (int kind = 0; kind < 4; kind++)
    for (int k = 0; k < 3 * times; k++)
      for (F.hops = 1; F.hops <= 2; F.hops++) {
        const PetscBool weak = (PetscBool)(k >= times);

        PetscCall(Prepare(HybTestRandomInt(Size, VERTICES + 1), kind, k % 3 == 2 ? HybTestRandomInt(0, Size) : -1, PETSC_FALSE, weak));
        if (W.proper) Reference(F.hops);
        HybTestBegin("kind %d, %d vertices, %d hops, %s", kind, (int)T.N, F.hops, weak ? "a threshold" : "all edges");
        HybTestCall(Run(NULL));
        if (W.proper) HybTestCall(SameCoarse());
        HybTestCall(CleanUp(NULL));
        PetscCall(HybArenaReset(&F.data));
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* edges that one process alone has, rows without a diagonal entry: not taken, on all processes */
static PetscErrorCode Improper(void)
{
  HybParAggFound found;
  int            across = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    across = 0;
    PetscCall(Prepare(VERTICES, 1, -1, (PetscBool)(k % 2 == 0), (PetscBool)(k >= 2)));
    if (k % 2 == 1) {
      W.whole[0][0] = PETSC_FALSE;
      PetscCall(Blocks(&F.data, PETSC_FALSE, &F.A));
    }
    for (PetscInt v = 0; v < T.N; v++)
      for (PetscInt u = 0; u < v; u++) across += W.whole[v][u] && Owner(u) != Owner(v);
    HybTestBegin("%s%s", k % 2 ? "a row without its diagonal entry" : "edges of one direction", k / 2 ? ", a threshold" : "");
    HybTestCall(HybParAggCreate(PETSC_COMM_WORLD, HybTestExec(), PETSC_SUCCESS, &F.A, &One, F.edges, &found, &F.agg));
    HybTestCheck(!found.proper || (k % 2 == 0 && !across), "it is taken");
    HybTestCall(CleanUp(NULL));
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  PetscFunctionBegin;
  F.checks = PETSC_FALSE;
  for (int k = 0; k < 3; k++) {
    F.hops = k ? 2 : 1;
    PetscCall(Prepare(24, 1, -1, PETSC_FALSE, (PetscBool)(k == 2)));
    if (k == 2) { /* one that leaves a proper graph, whatever the numbers are */
      memcpy(T.edge, W.whole, sizeof(T.edge));
      for (PetscInt v = 0; v < T.N; v++)
        for (PetscInt u = 0; u < T.N; u++) W.weight[v][u] = 0;
      F.filter = (HybAggFilter){0.0613, PETSC_TRUE, PETSC_FALSE};
      for (PetscInt v = 0; v < T.N; v++)
        for (PetscInt u = 0; u < T.N; u++)
          if (T.edge[v][u]) V.a[v][u] = W.weight[v][u] = u == v ? 2 : 1.0 / (1 + (u + v) % 17);
      WeakEdges(F.edges);
      PetscCall(Blocks(&F.data, PETSC_FALSE, &F.A));
    }
    V.ones = (PetscBool)(k == 0);
    Reference(F.hops);
    HybTestBegin("everything failing in turn, %d hops%s", F.hops, k == 2 ? ", a threshold" : "");
    HybTestFaultsOn((PetscMPIInt)(Size - 1), Run, CleanUp, NULL);
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  if (PetscDefined(USE_COMPLEX)) {
    HybTestBegin("aggregation");
    HybTestSkip("complex scalars");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybCommGet(PETSC_COMM_WORLD, &F.comm));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCheck(Size <= MOST, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "For up to %d processes, not %d", MOST, Size);
  PetscCall(Graphs());
  PetscCall(Improper());
  PetscCall(Faults());
  PetscCall(HybCommRestore(&F.comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  setenv("HYB_EMULATOR_CARDS", "8", 1);
  return HybTestMain(argc, argv, Body);
}
