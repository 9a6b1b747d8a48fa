/*
  Aggregation on several processes of several unknowns a vertex and several near-null vectors: blocks of which all
  entries are stored, or few, PETSc's lists of aggregates as its loops make and change them, their factorization in that
  order, bit by bit, and prolongators beside products of dense matrices. All processes draw the same.

TEST np=1,2+3,4
TEST np=+3 -mat_aijhybridgpu_comm mpi
*/
#include "paraggtest.h"

#define UNKNOWNS 4 /* at most */
#define VECTORS  7
#define ROWS     (VERTICES * UNKNOWNS)

static struct {
  HybAggBlock block;
  PetscBool   translations;
  PetscBool   there[ROWS][ROWS];
  PetscScalar a[ROWS][ROWS], b[VECTORS * ROWS], q[ROWS * VECTORS], coarse[ROWS * VECTORS * VECTORS];
  PetscInt    list[VERTICES][VERTICES], length[VERTICES]; /* of a root its members */
} B;

static PetscBool Nice; /* numbers that are thresholds */

static void Entry(PetscInt r, PetscInt c)
{
  B.there[r][c] = PETSC_TRUE;
  B.a[r][c]     = DrawValue(Nice, (PetscBool)(r == c));
}

/* sums of moduli, row by row; of blocks those of real parts */
static void Weights(PetscInt bs)
{
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) {
      W.weight[v][u] = 0;
      for (PetscInt e = 0; e < bs * bs; e++) W.weight[v][u] += bs > 1 ? PetscAbsReal(PetscRealPart(B.a[v * bs + e / bs][u * bs + e % bs])) : PetscAbsScalar(B.a[v][u]);
    }
}

/* Would PETSc take bs entries of a row of process r for one vertex that are not? It does where, in both of the
   process's blocks, entry k of each row is of unknown k modulo bs, by the numbers of the block's columns: of others
   these count only what occurs. */
static PetscBool Mistaken(int r)
{
  const PetscInt bs = B.block.bs, begin = T.ranges[r] * bs, end = T.ranges[r + 1] * bs, N = T.N * bs;
  PetscInt       number[ROWS], n = 0;
  PetscBool      missing = PETSC_FALSE, broken = PETSC_FALSE;

  for (PetscInt c = 0; c < N; c++) {
    PetscBool occurs = PETSC_FALSE;

    for (PetscInt k = begin; k < end; k++) occurs = (PetscBool)(occurs || B.there[k][c]);
    number[c] = occurs && !(c >= begin && c < end) ? n++ : -1;
  }
  for (PetscInt c = 0; c < N; c++)
    for (PetscInt u = c / bs * bs; u < c / bs * bs + bs; u++) missing = (PetscBool)(missing || (number[c] >= 0) != (number[u] >= 0));
  for (PetscInt k = begin; k < end; k++)
    for (int own = 0; own < 2; own++) {
      PetscInt entry = 0, before = -1;

      for (PetscInt c = 0; c < N; c++) {
        if (!B.there[k][c] || (c >= begin && c < end) != own) continue;
        if ((own || !missing ? c : number[c]) % bs != entry % bs) return PETSC_FALSE;
        if (entry++ % bs && c / bs != before) broken = PETSC_TRUE;
        before = c / bs;
      }
    }
  return broken;
}

/* full: all entries of each edge's blocks; else one or more of them, on both sides any */
static void DrawBlocks(PetscInt bs, PetscInt nvec, PetscBool full)
{
  B.block        = (HybAggBlock){bs, nvec};
  B.translations = (PetscBool)(nvec == bs && HybTestRandomInt(0, 2));
  memset(B.there, 0, sizeof(B.there));
  memset(B.a, 0, sizeof(B.a));
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) {
      if (!T.edge[v][u] || Lacks[v][u]) continue;
      for (PetscInt e = 0; e < bs * bs; e++)
        if (full || (!Bare && u == v && e / bs == e % bs) || HybTestRandomInt(0, 4) == 0) Entry(v * bs + e / bs, u * bs + e % bs);
      Entry(v * bs + HybTestRandomInt(0, bs), u * bs + HybTestRandomInt(0, bs));
    }
  for (PetscInt k = 0; k < nvec * T.N * bs; k++) B.b[k] = B.translations ? k / (T.N * bs) == k % (T.N * bs) % bs : HybTestRandomInt(0, 6) ? PetscRealPart(HybTestRandomScalar())
                                                                                                                                          : 0;
}

static void Append(PetscInt root, PetscInt v)
{
  B.list[root][B.length[root]++] = v;
}

static PetscBool Has(PetscInt root, PetscInt v)
{
  for (PetscInt k = 0; k < B.length[root]; k++)
    if (B.list[root][k] == v) return PETSC_TRUE;
  return PETSC_FALSE;
}

static void Remove(PetscInt root, PetscInt v)
{
  PetscInt n = 0;

  for (PetscInt k = 0; k < B.length[root]; k++)
    if (B.list[root][k] != v) B.list[root][n++] = B.list[root][k];
  B.length[root] = n;
}

/* PETSc's fixAggregatesWithSquare() of process r: its roots take their neighbours, as far as they are its own; before,
   after: the root that each vertex's process knows it by, -1 for others' */
static void TakeOwn(int r, const PetscInt *before, PetscInt *after)
{
  const PetscInt begin = T.ranges[r], end = T.ranges[r + 1];

  for (PetscInt v = begin; v < end; v++) after[v] = before[v];
  for (PetscInt v = begin; v < end; v++) {
    if (T.state[v] >= 0) {
      for (PetscInt u = begin; u < end; u++) {
        if (!T.edge[v][u] || T.state[u] >= 0 || after[u] == v) continue;
        if (after[u] >= begin && after[u] < end) Remove(after[u], u);
        after[u] = v;
        Append(v, u);
      }
    } else {
      const PetscInt was = after[v];

      for (PetscInt u = 0; u < T.N; u++) {
        if (!T.edge[v][u] || (u >= begin && u < end) || T.state[u] < 0 || was == u) continue;
        after[v] = u;
        if (was >= begin && was < end) Remove(was, v);
      }
    }
  }
}

/* the lists of a process's roots: own members, others' by the sweeps; by two hops, what moves */
static void MakeLists(int hops)
{
  PetscInt before[VERTICES], after[VERTICES];

  memset(B.length, 0, sizeof(B.length));
  for (PetscInt v = 0; v < T.N; v++)
    if (T.state[v] >= 0) Append(v, v);
  for (int others = 0; others < 2; others++)
    for (PetscInt v = 0; v < T.N; v++)
      if (T.state[v] < 0 && T.native[v] >= 0 && (Owner(v) != Owner(T.native[v])) == others) Append(T.native[v], v);
  if (hops == 1) { /* rows of a matrix */
    for (PetscInt c = 0; c < T.N; c++) {
      if (!B.length[c]) continue;
      B.length[c] = 0;
      for (PetscInt v = 0; v < T.N; v++)
        if (T.native[v] == c) Append(c, v);
    }
    return;
  }
  for (PetscInt v = 0; v < T.N; v++) before[v] = T.native[v] >= 0 && Owner(T.native[v]) == Owner(v) ? T.native[v] : -1;
  for (int r = 0; r < Size; r++) TakeOwn(r, before, after);
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt c = 0; c < T.N; c++)
      if (T.state[v] < 0 && Owner(c) != Owner(v) && before[v] == -1 && after[v] != -1) Remove(c, v);
  for (PetscInt v = 0; v < T.N; v++)
    if (after[v] >= 0 && Owner(after[v]) != Owner(v) && !Has(after[v], v) && IsGhost(Owner(after[v]), v)) Append(after[v], v);
}

/* the host's factorization of all lists, as if they were of one process; is each vertex in the list of its
   aggregate? */
static PetscErrorCode Factor(void)
{
  const HybExec  host = {&HybBackendHost, NULL, HYB_MEM_HOST};
  PetscInt       begin[VERTICES + 1], member[VERTICES], parent[VERTICES];
  HybAggregates  agg   = {T.N, 0, parent, NULL, 0};
  HybAggLists    lists = {begin, member};
  PetscErrorCode ierr;
  HybArena       work = HybArenaOn(&host);

  PetscFunctionBegin;
  begin[0] = 0;
  for (PetscInt v = 0; v < T.N; v++) parent[v] = -1;
  for (PetscInt c = 0; c < T.N; c++) {
    if (!B.length[c]) continue;
    for (PetscInt k = 0; k < B.length[c]; k++) {
      member[begin[agg.nc] + k] = B.list[c][k];
      HybTestCheck(parent[B.list[c][k]] < 0 && T.parent[B.list[c][k]] == c, "vertex %d is in the list of %d", (int)B.list[c][k], (int)c);
      parent[B.list[c][k]] = agg.nc;
    }
    begin[agg.nc + 1] = begin[agg.nc] + B.length[c];
    agg.nc++;
  }
  HybTestCheck(agg.nc == T.nc, "%d lists, not %d", (int)agg.nc, (int)T.nc);
  ierr = (*HybAggHost.tentative)(&host, &work, &agg, &lists, &B.block, B.b, NULL, NULL, B.q, B.coarse, NULL);
  (void)HybArenaReset(&work);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool OneSided; /* of edges between processes */

static PetscBool IsEntry(PetscInt r, PetscInt c, PetscScalar *a)
{
  *a = B.a[r][c];
  return (PetscBool)(B.there[r][c] && !(OneSided && r > c && Owner(r / B.block.bs) != Owner(c / B.block.bs)));
}

static PetscErrorCode Parts(HybArena *arena, PetscBool onesided, HybParCSR *A)
{
  PetscFunctionBegin;
  OneSided = onesided;
  PetscCall(PartsOf(arena, B.block.bs, IsEntry, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt RowOfP(PetscInt r, PetscBool smoothed, PetscReal omega, PetscScalar *row, PetscBool *there)
{
  const PetscInt bs = B.block.bs, nvec = B.block.nvec, own = T.parent[r / bs] < 0 ? -1 : T.coarse[T.parent[r / bs]];
  PetscInt       expected = 0;

  for (PetscInt k = 0; k < T.N * bs; k++) {
    const PetscInt v = k / bs, c = T.parent[v] < 0 ? -1 : T.coarse[T.parent[v]];

    if (c < 0 || (smoothed ? !B.there[r][k] : k != r)) continue;
    for (PetscInt t = 0; t < nvec; t++) {
      expected += !there[c * nvec + t];
      there[c * nvec + t] = PETSC_TRUE;
      if (smoothed) row[c * nvec + t] -= (B.a[r][r] == (PetscScalar)0 ? 0 : omega / B.a[r][r]) * B.a[r][k] * B.q[k * nvec + t];
    }
  }
  for (PetscInt t = 0; t < nvec; t++)
    if (own >= 0 && there[own * nvec + t]) row[own * nvec + t] += B.q[r * nvec + t];
  return expected;
}

static PetscErrorCode Run(void *ctx)
{
  PetscFunctionBegin;
  /* where they are translations, processes may know or not */
  PetscCall(RunWith(&B.block, B.translations && Rank % 2 == 0 ? NULL : F.b, 0, RowOfP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a problem, its reference, and where it is to be: near-null vectors of own rows, by columns */
static PetscErrorCode Prepare(PetscInt most, int kind, int empty, PetscInt bs, PetscInt nvec, PetscBool full, PetscBool sided, const HybAggFilter *edges)
{
  PetscInt    rows;
  PetscScalar b[ROWS * VECTORS];

  PetscFunctionBegin;
  PetscCall(ArenasInit());
  PetscCall(DrawGraph(most, kind, empty));
  DrawSides(sided);
  Nice = (PetscBool)(edges && HybTestRandomInt(0, 2));
  DrawBlocks(bs, nvec, full);
  Weights(bs);
  if (edges) F.filter = *edges;
  F.edges = edges ? &F.filter : NULL;
  F.unite = sided;
  WeakEdges(F.edges);
  for (int r = 0; r < Size && bs > 1; r++)
    if (Mistaken(r)) W.proper = PETSC_FALSE;
  if (W.proper) {
    Aggregates(F.hops, F.distance);
    MakeLists(F.hops);
    PetscCall(Factor());
  }
  PetscCall(Parts(&F.data, PETSC_FALSE, &F.A));
  rows = (T.ranges[Rank + 1] - T.ranges[Rank]) * bs;
  for (PetscInt t = 0; t < nvec; t++)
    for (PetscInt r = 0; r < rows; r++) b[t * rows + r] = B.b[t * T.N * bs + T.ranges[Rank] * bs + r];
  PetscCall(HybTestUploadArray(&F.data, rows * nvec, sizeof(PetscScalar), b, &F.b));
  PetscCall(HybArenaCalloc(&F.data, HYB_WORK(HybTestExec()), (PetscCount)T.N * nvec * nvec + 1, sizeof(HybScalar), &F.coarse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the next level's vectors, of own aggregates */
static PetscErrorCode SameCoarse(void)
{
  const PetscInt nvec = B.block.nvec, rows = (T.crange[Rank + 1] - T.crange[Rank]) * nvec;
  PetscScalar    R[ROWS * VECTORS];

  PetscFunctionBegin;
  PetscCall(HybTestDownloadArray(rows * nvec, sizeof(PetscScalar), F.coarse, R));
  for (PetscInt t = 0; t < nvec; t++)
    for (PetscInt r = 0; r < rows; r++) HybTestCheck(R[t * rows + r] == B.coarse[t * T.nc * nvec + T.crange[Rank] * nvec + r], "the next level's vector %d is %g at %d, not %g", (int)t, (double)PetscRealPart(R[t * rows + r]), (int)r, (double)PetscRealPart(B.coarse[t * T.nc * nvec + T.crange[Rank] * nvec + r]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graphs(void)
{
  static const HybAggBlock blocks[] = {
    {2, 3},
    {3, 6},
    {3, 3},
    {1, 2},
    {4, 1},
    {2, 7}
  };
  const int times = HybTestSize(Size > 2 ? 4 : 8, 2); /* many processes take turns */

  PetscFunctionBegin;
  for (int kind = 0; kind < 4; kind++)
    for (int k = 0; k < 2 * times; k++)
      for (int way = 0; way < WAYS; way++) {
        const HybAggBlock *block = &blocks[HybTestRandomInt(0, PETSC_STATIC_ARRAY_LENGTH(blocks))];
        const PetscBool    full = (PetscBool)HybTestRandomInt(0, 2), weak = (PetscBool)(k >= times);
        const PetscBool    sided  = (PetscBool)(k % 4 == 1);
        const HybAggFilter filter = DrawFilter(sided);

        DrawWay(way);
        Bare  = k % 5 < 3 ? DIAGONAL : k % 5 == 3 ? NODIAGONAL
                                                  : SOMEDIAGONAL;
        Order = HybTestRandomInt(0, 2) ? HYB_AGG_DEGREES : HYB_AGG_SHUFFLED;
        HybTestBegin("kind %d, %d x %d, %s, %d hops, distance %d%s, %s%s%s", kind, (int)block->bs, (int)block->nvec, full ? "full" : "in part", F.hops, F.distance, Order == HYB_AGG_DEGREES ? " by degrees" : "", weak ? "a threshold" : "all edges", sided ? ", with the transpose" : "", Bare ? ", without diagonal entries" : "");
        PetscCall(Prepare(HybTestRandomInt(Size, VERTICES + 1), kind, k % 3 == 2 ? HybTestRandomInt(0, Size) : -1, block->bs, block->nvec, full, sided, weak ? &filter : NULL));
        HybTestCall(Run(NULL));
        if (W.proper) HybTestCall(SameCoarse());
        if (W.proper && !HybTestFailed()) Refused();
        HybTestCall(CleanUp(NULL));
        PetscCall(HybArenaReset(&F.data));
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of full blocks between vertices of a process, each row of an edge to another process names the first unknown of one
   of its vertices and the second of the next one: PETSc may take these for one block */
static void Stagger(void)
{
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++)
      if (Owner(v) != Owner(u))
        for (PetscInt e = 0; e < 4; e++) B.there[2 * v + e / 2][2 * u + e % 2] = PETSC_FALSE;
  for (int r = 0; r + 1 < Size; r++) {
    const PetscInt v = T.ranges[r + 1] - 1, u = T.ranges[r + 1]; /* and the next one */

    if (T.ranges[r] > v || T.ranges[r + 2] < u + 2) continue;
    for (PetscInt k = 0; k < 2; k++) {
      Entry(2 * v + k, 2 * u);
      Entry(2 * v + k, 2 * u + 3);
      Entry(2 * u, 2 * v + k);
      Entry(2 * u + 1, 2 * v + k);
      Entry(2 * u + 2, 2 * v + k);
      Entry(2 * u + 3, 2 * v + k);
    }
  }
}

/* edges that one process alone has, entries that PETSc may take for a block: not taken, on all processes */
static PetscErrorCode Improper(void)
{
  static const char *const names[] = {"edges of one direction", "staggered entries between processes"};
  HybParAggFound           found;
  int                      across;

  PetscFunctionBegin;
  DrawWay(1);
  Bare = DIAGONAL;
  for (int k = 0; k < 2; k++) {
    HybTestBegin("%s", names[k]);
    PetscCall(Prepare(VERTICES, 1, -1, 2, 3, (PetscBool)(k == 1), PETSC_FALSE, NULL));
    if (k) Stagger();
    PetscCall(Parts(&F.data, (PetscBool)(k == 0), &F.A));
    across = EdgesAcross();
    if (k) {
      across = 0;
      for (int r = 0; r + 1 < Size; r++) across += T.ranges[r + 2] >= T.ranges[r + 1] + 2;
    }
    HybTestCall(HybParAggCreate(PETSC_COMM_WORLD, HybTestExec(), PETSC_SUCCESS, &F.A, NULL, &B.block, PETSC_FALSE, NULL, &found, &F.agg));
    HybTestCheck(!found.proper || !across, "it is taken");
    HybTestCall(CleanUp(NULL));
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(void)
{
  PetscFunctionBegin;
  for (int k = 0; k < 6; k++) {
    const HybAggFilter filter = {0, PETSC_TRUE, PETSC_TRUE}; /* leaves a proper graph of any numbers */

    F.hops     = k % 4 ? 2 : 1;
    F.distance = k == 4 ? 2 : 1;
    Bare       = k == 5 ? SOMEDIAGONAL : DIAGONAL;
    HybTestBegin("everything failing in turn, %d hops, distance %d%s", F.hops, F.distance, k == 2 ? ", a threshold" : k == 3 ? ", with the transpose"
                                                                                                                    : k == 5 ? ", without diagonal entries"
                                                                                                                             : "");
    PetscCall(Prepare(24, 1, -1, 2, k ? 3 : 2, (PetscBool)(k == 0), (PetscBool)(k == 3), k == 2 ? &filter : NULL));
    HybTestFaultsServed((PetscMPIInt)(Size - 1), Run, CleanUp, NULL);
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PARAGG_MAIN(Graphs, Improper, Faults)
