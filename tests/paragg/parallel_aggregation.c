/*
  Aggregates and prolongators of graphs on several processes beside a reference (paraggtest.h): one unknown a vertex and
  one near-null vector. All processes draw the same graph and layout, uneven ones and empty processes among them.

TEST np=1,3+2,4
TEST np=+3 -mat_aijhybridgpu_comm mpi
*/
#include "paraggtest.h"

static const HybAggBlock One = {1, 1};

/* the graph's matrix, its near-null vector, and what the rules make of it */
static struct {
  PetscScalar a[VERTICES][VERTICES], b[VERTICES], q[VERTICES], R[VERTICES];
  PetscBool   ones;
} V;

static PetscErrorCode Draw(PetscInt most, int kind, int empty, PetscBool nice, PetscBool sided)
{
  PetscFunctionBegin;
  PetscCall(DrawGraph(most, kind, empty));
  DrawSides(sided);
  V.ones = (PetscBool)(HybTestRandomInt(0, 3) == 0);
  for (PetscInt v = 0; v < T.N; v++) {
    const PetscInt kindof = HybTestRandomInt(0, 8);

    V.b[v] = V.ones ? 1 : kindof == 0 ? 0
                                      : PetscRealPart(HybTestRandomScalar());
    for (PetscInt u = 0; u < T.N; u++) {
      V.a[v][u]      = T.edge[v][u] && !Lacks[v][u] ? DrawValue(nice, (PetscBool)(u == v)) : 0;
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
      sum += PetscSqr(PetscRealPart(V.b[v]));
      if (v != T.first[c]) others += PetscSqr(PetscRealPart(V.b[v]));
    }
    V.R[c] = others == 0 ? V.b[T.first[c]] : -PetscCopysignReal(PetscSqrtReal(sum), PetscRealPart(V.b[T.first[c]]));
    for (PetscInt v = 0; v < T.N; v++)
      if (T.parent[v] >= 0 && T.coarse[T.parent[v]] == c) V.q[v] = others == 0 ? v == T.first[c] : V.b[v] / V.R[c];
  }
}

static void Reference(void)
{
  Aggregates(F.hops, F.distance);
  for (PetscInt v = 0; v < T.N; v++) V.q[v] = 0;
  Columns();
}

static PetscBool OneSided; /* of edges between processes */

static PetscBool Entry(PetscInt v, PetscInt u, PetscScalar *a)
{
  *a = V.a[v][u];
  return (PetscBool)(W.whole[v][u] && !Lacks[v][u] && !(OneSided && v > u && Owner(v) != Owner(u)));
}

static PetscInt RowOfP(PetscInt v, PetscBool smoothed, PetscReal omega, PetscScalar *row, PetscBool *there)
{
  const PetscInt own      = T.parent[v] < 0 ? -1 : T.coarse[T.parent[v]];
  PetscInt       expected = 0;

  for (PetscInt u = 0; u < T.N; u++) {
    const PetscInt c = T.parent[u] < 0 ? -1 : T.coarse[T.parent[u]];

    if (c < 0 || (smoothed ? !W.whole[v][u] || Lacks[v][u] : u != v)) continue;
    expected += !there[c];
    there[c] = PETSC_TRUE;
    if (smoothed) row[c] -= V.a[v][v] == (PetscScalar)0 ? 0 : omega / V.a[v][v] * V.a[v][u] * V.q[u];
  }
  if (own >= 0 && there[own]) row[own] += V.q[v];
  return expected;
}

static PetscErrorCode Run(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(RunWith(&One, V.ones ? NULL : F.b, ROUNDING, RowOfP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Prepare(PetscInt most, int kind, int empty, PetscBool onesided, PetscBool weak, PetscBool sided)
{
  PetscFunctionBegin;
  PetscCall(ArenasInit());
  PetscCall(Draw(most, kind, empty, (PetscBool)(weak && HybTestRandomInt(0, 2)), sided));
  F.filter = DrawFilter(sided);
  F.edges  = weak ? &F.filter : NULL;
  F.unite  = sided;
  WeakEdges(F.edges);
  OneSided = onesided;
  PetscCall(PartsOf(&F.data, 1, Entry, &F.A));
  PetscCall(HybTestUploadArray(&F.data, T.ranges[Rank + 1] - T.ranges[Rank], sizeof(PetscScalar), V.b + T.ranges[Rank], &F.b));
  PetscCall(HybArenaCalloc(&F.data, HYB_WORK(HybTestExec()), T.N + 1, sizeof(HybScalar), &F.coarse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* R of own aggregates */
static PetscErrorCode SameCoarse(void)
{
  PetscScalar R[VERTICES];

  PetscFunctionBegin;
  PetscCall(HybTestDownloadArray(T.crange[Rank + 1] - T.crange[Rank], sizeof(PetscScalar), F.coarse, R));
  for (PetscInt c = T.crange[Rank]; c < T.crange[Rank + 1]; c++) HybTestCheck(PetscAbsScalar(R[c - T.crange[Rank]] - V.R[c]) < ROUNDING, "the next level's vector is %g at %d, not %g", (double)PetscRealPart(R[c - T.crange[Rank]]), (int)c, (double)PetscRealPart(V.R[c]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graphs(void)
{
  const int times = HybTestSize(Size > 2 ? 6 : 12, 3); /* many processes take turns */

  PetscFunctionBegin;
  for (int kind = 0; kind < 4; kind++)
    for (int k = 0; k < 3 * times; k++)
      for (int way = 0; way < WAYS; way++) {
        const PetscBool weak = (PetscBool)(k >= times), sided = (PetscBool)(k % 4 == 1);

        DrawWay(way);
        Bare  = k % 5 < 3 ? DIAGONAL : k % 5 == 3 ? NODIAGONAL
                                                  : SOMEDIAGONAL;
        Order = HybTestRandomInt(0, 2) ? HYB_AGG_DEGREES : HYB_AGG_SHUFFLED;
        /* of few vertices, so that a root's process may have no neighbour of it */
        PetscCall(Prepare(HybTestRandomInt(Size, Bare == NODIAGONAL && way == 1 ? 4 * Size + 1 : VERTICES + 1), kind, k % 3 == 2 ? HybTestRandomInt(0, Size) : -1, PETSC_FALSE, weak, sided));
        if (W.proper) Reference();
        HybTestBegin("kind %d, %d vertices, %d hops, distance %d%s, %s%s%s", kind, (int)T.N, F.hops, F.distance, Order == HYB_AGG_DEGREES ? " by degrees" : "", weak ? "a threshold" : "all edges", sided ? ", with the transpose" : "", Bare ? ", without diagonal entries" : "");
        HybTestCall(Run(NULL));
        if (W.proper) HybTestCall(SameCoarse());
        if (W.proper && !HybTestFailed()) Refused();
        HybTestCall(CleanUp(NULL));
        PetscCall(HybArenaReset(&F.data));
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* edges that one process alone has: not taken, on all processes */
static PetscErrorCode Improper(void)
{
  HybParAggFound found;

  PetscFunctionBegin;
  Bare = DIAGONAL;
  for (int k = 0; k < 2; k++) {
    PetscCall(Prepare(VERTICES, 1, -1, PETSC_TRUE, (PetscBool)(k == 1), PETSC_FALSE));
    HybTestBegin("edges of one direction%s", k ? ", a threshold" : "");
    HybTestCall(HybParAggCreate(PETSC_COMM_WORLD, HybTestExec(), PETSC_SUCCESS, &F.A, NULL, &One, PETSC_FALSE, F.edges, &found, &F.agg));
    HybTestCheck(!found.proper || !EdgesAcross(), "it is taken");
    HybTestCall(CleanUp(NULL));
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  PetscFunctionBegin;
  for (int k = 0; k < 7; k++) {
    F.hops     = k % 4 ? 2 : 1;
    F.distance = k == 4 ? 3 : 1;
    Bare       = k < 5 ? DIAGONAL : NODIAGONAL;
    if (k == 6) F.hops = 1;
    PetscCall(Prepare(24, 1, -1, PETSC_FALSE, (PetscBool)(k == 2), (PetscBool)(k == 3)));
    if (k == 2) { /* one that leaves a proper graph, whatever the numbers are */
      memcpy(T.edge, W.whole, sizeof(T.edge));
      for (PetscInt v = 0; v < T.N; v++)
        for (PetscInt u = 0; u < T.N; u++) W.weight[v][u] = 0;
      F.filter = (HybAggFilter){0.0613, PETSC_TRUE, PETSC_FALSE};
      for (PetscInt v = 0; v < T.N; v++)
        for (PetscInt u = 0; u < T.N; u++)
          if (T.edge[v][u]) V.a[v][u] = W.weight[v][u] = u == v ? 2 : 1.0 / (1 + (u + v) % 17);
      WeakEdges(F.edges);
      PetscCall(PartsOf(&F.data, 1, Entry, &F.A));
    }
    V.ones = (PetscBool)(k == 0);
    for (PetscInt v = 0; v < T.N && V.ones; v++) V.b[v] = 1;
    Reference();
    HybTestBegin("everything failing in turn, %d hops, distance %d%s", F.hops, F.distance, k == 2 ? ", a threshold" : k == 3 ? ", with the transpose"
                                                                                                                    : k > 4  ? ", without diagonal entries"
                                                                                                                             : "");
    HybTestFaultsServed((PetscMPIInt)(Size - 1), Run, CleanUp, NULL);
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PARAGG_MAIN(Graphs, Improper, Faults)
