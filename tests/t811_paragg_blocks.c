/*
  Aggregation on several processes of several unknowns a vertex and several near-null vectors: blocks of which all
  entries are stored, or few, PETSc's lists of aggregates as its loops make and change them, their factorization in that
  order, bit by bit, and prolongators beside products of dense matrices. All processes draw the same.

TEST np=1,2,3,4
TEST np=3 -mat_aijhybridgpu_comm mpi
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

/* sums of moduli, row by row */
static void Weights(PetscInt bs)
{
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) {
      W.weight[v][u] = 0;
      for (PetscInt e = 0; e < bs * bs; e++) W.weight[v][u] += PetscAbsScalar(B.a[v * bs + e / bs][u * bs + e % bs]);
    }
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
      if (!T.edge[v][u]) continue;
      for (PetscInt e = 0; e < bs * bs; e++)
        if (full || (u == v && e / bs == e % bs) || HybTestRandomInt(0, 4) == 0) Entry(v * bs + e / bs, u * bs + e % bs);
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
    if (after[v] >= 0 && Owner(after[v]) != Owner(v) && !Has(after[v], v)) Append(after[v], v);
}

/* the host's factorization of all lists, as if they were of one process; is each vertex in the list of its
   aggregate? */
static PetscErrorCode Factor(void)
{
  const HybExec  host = {&HybBackendHost, NULL, HYB_MEM_HOST};
  PetscInt       begin[VERTICES + 1], member[VERTICES], parent[VERTICES];
  HybAggregates  agg   = {T.N, 0, parent, NULL, 0};
  HybAggLists    lists = {begin, member};
  HybArena       work;
  PetscErrorCode ierr;

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
  PetscCall(HybArenaInit(&work, &host));
  ierr = (*HybAggHost.tentativeblocks)(&host, &work, &agg, &lists, &B.block, B.b, NULL, NULL, B.q, B.coarse, NULL);
  (void)HybArenaReset(&work);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* this process's rows, in blocks; onesided: of edges between processes those to later ones alone; but: no entry
   (r,r) */
static PetscErrorCode Parts(HybArena *arena, PetscBool onesided, PetscInt but, HybParCSR *A)
{
  const PetscInt bs = B.block.bs, N = T.N * bs, begin = T.ranges[Rank] * bs, end = T.ranges[Rank + 1] * bs;
  PetscInt      *garray, *map, *ranges;
  RefMat         D, O;
  PetscCount     nz[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(arena, HYB_MEM_HOST, N, sizeof(PetscInt), &garray));
  PetscCall(HybArenaCalloc(arena, HYB_MEM_HOST, N, sizeof(PetscInt), &map));
  PetscCall(HybArenaCalloc(arena, HYB_MEM_HOST, Size + 1, sizeof(PetscInt), &ranges));
  for (int r = 0; r <= Size; r++) ranges[r] = T.ranges[r] * bs;
  A->O.n = 0;
  for (PetscInt c = 0; c < N; c++) {
    PetscBool used = PETSC_FALSE;

    for (PetscInt r = begin; r < end; r++) used = (PetscBool)(used || (B.there[r][c] && !(onesided && r > c)));
    map[c] = -1;
    if (!used || (c >= begin && c < end)) continue;
    map[c]           = A->O.n;
    garray[A->O.n++] = c;
  }
  RefMatCreate(end - begin, end - begin, (PetscCount)(end - begin) * N + 1, &D);
  RefMatCreate(end - begin, A->O.n, (PetscCount)(end - begin) * N + 1, &O);
  D.csr.i[0] = O.csr.i[0] = 0;
  for (PetscInt r = begin; r < end; r++) {
    for (PetscInt c = 0; c < N; c++) {
      const int own = c >= begin && c < end;
      HybCSR   *csr = own ? &D.csr : &O.csr;

      if (!B.there[r][c] || (onesided && !own && r > c) || (r == c && r == but)) continue;
      csr->j[nz[own]]   = own ? c - begin : map[c];
      csr->a[nz[own]++] = B.a[r][c];
    }
    D.csr.i[r - begin + 1] = (PetscInt)nz[1];
    O.csr.i[r - begin + 1] = (PetscInt)nz[0];
  }
  D.csr.nnz = nz[1];
  O.csr.nnz = nz[0];
  PetscCall(HybTestUpload(arena, &D.csr, &A->D));
  PetscCall(HybTestUpload(arena, &O.csr, &A->O));
  A->rows = A->columns = ranges;
  A->garray            = garray;
  RefMatDestroy(&D);
  RefMatDestroy(&O);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* row r of P0 - omega D^-1 A P0, or of P0, and which entries it has */
static PetscInt RowOfP(PetscInt r, PetscBool smoothed, PetscReal omega, PetscScalar *row, PetscBool *there)
{
  const PetscInt bs = B.block.bs, nvec = B.block.nvec;
  PetscInt       expected = 0;

  for (PetscInt c = 0; c < T.nc * nvec; c++) {
    row[c]   = 0;
    there[c] = PETSC_FALSE;
  }
  for (PetscInt k = 0; k < T.N * bs; k++) {
    const PetscInt v = k / bs, c = T.parent[v] < 0 ? -1 : T.coarse[T.parent[v]];

    if (c < 0 || (smoothed ? !B.there[r][k] : k != r)) continue;
    for (PetscInt t = 0; t < nvec; t++) {
      expected += !there[c * nvec + t];
      there[c * nvec + t] = PETSC_TRUE;
      if (smoothed) row[c * nvec + t] -= (B.a[r][r] == 0. ? 0. : omega / B.a[r][r]) * B.a[r][k] * B.q[k * nvec + t];
      if (k == r) row[c * nvec + t] += B.q[k * nvec + t];
    }
  }
  return expected;
}

static PetscErrorCode SameP(const HybParCSR *P, PetscBool smoothed, PetscReal omega)
{
  const PetscInt bs = B.block.bs, nvec = B.block.nvec, begin = T.ranges[Rank] * bs, end = T.ranges[Rank + 1] * bs, cbegin = T.crange[Rank] * nvec, cend = T.crange[Rank + 1] * nvec;
  RefMat         part[2];

  PetscFunctionBegin;
  HybTestCheck(P->D.m == end - begin && P->O.m == end - begin && P->D.n == cend - cbegin && P->columns[Rank] == cbegin && P->columns[Rank + 1] == cend, "P's part is %d x %d", (int)P->D.m, (int)P->D.n);
  for (PetscInt k = 0; k < P->O.n; k++) HybTestCheck((k == 0 || P->garray[k] > P->garray[k - 1]) && (P->garray[k] < cbegin || P->garray[k] >= cend), "column %d of others is %d", (int)k, (int)P->garray[k]);
  PetscCall(HybTestDownload(&P->D, &part[0]));
  PetscCall(HybTestDownload(&P->O, &part[1]));
  for (PetscInt r = begin; r < end; r++) {
    PetscScalar row[VERTICES * VECTORS];
    PetscBool   there[VERTICES * VECTORS];
    PetscInt    expected = RowOfP(r, smoothed, omega, row, there), found = 0;

    for (int k = 0; k < 2; k++) {
      const HybCSR *csr = &part[k].csr;

      for (PetscInt e = csr->i[r - begin]; e < csr->i[r - begin + 1]; e++, found++) {
        const PetscInt c = k ? P->garray[csr->j[e]] : csr->j[e] + cbegin;

        HybTestCheck(there[c] && PetscAbsScalar(csr->a[e] - row[c]) <= (smoothed ? 1e-12 : 0), "P(%d,%d) is %g, not %g", (int)r, (int)c, (double)PetscRealPart(csr->a[e]), (double)PetscRealPart(row[c]));
      }
    }
    HybTestCheck(found == expected, "row %d of P has %d entries, not %d", (int)r, (int)found, (int)expected);
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
  HybComm             comm; /* as in a program, where there is one already */
  int                 hops;
  PetscBool           checks;
} F;

static PetscErrorCode Run(void *ctx)
{
  /* where they are translations, processes may know or not */
  const HybScalar *b = B.translations && Rank % 2 == 0 ? NULL : F.b;
  HybParAggFound   found;
  PetscInt         n, N, doubtful;
  int              sweeps;
  HybParCSR        P;
  PetscErrorCode   ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybParAggCreate(PETSC_COMM_WORLD, HybTestExec(), PETSC_SUCCESS, &F.A, &B.block, F.edges, &found, &F.agg));
  CheckFound(&found);
  if (HybTestFailed() || !found.proper) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggFind(F.agg, F.hops, &n, &N, &sweeps));
  HybTestCheck(n == T.crange[Rank + 1] - T.crange[Rank] && N == T.nc, "%d aggregates of %d, not %d of %d", (int)n, (int)N, (int)(T.crange[Rank + 1] - T.crange[Rank]), (int)T.nc);
  if (HybTestFailed()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggTentative(F.agg, PETSC_SUCCESS, b, NULL, NULL, F.coarse, &doubtful));
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

/* a problem, its reference, and where it is to be: near-null vectors of own rows, by columns */
static PetscErrorCode Prepare(PetscInt most, int kind, int empty, PetscInt bs, PetscInt nvec, PetscBool full, const HybAggFilter *edges)
{
  PetscInt    rows;
  PetscScalar b[ROWS * VECTORS];

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&F.data, HybTestExec()));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaInit(&F.out[k], HybTestExec()));
  PetscCall(DrawGraph(most, kind, empty));
  Nice = (PetscBool)(edges && HybTestRandomInt(0, 2));
  DrawBlocks(bs, nvec, full);
  Weights(bs);
  if (edges) F.filter = *edges;
  F.edges = edges ? &F.filter : NULL;
  WeakEdges(F.edges);
  if (W.proper) {
    Aggregates(F.hops);
    MakeLists(F.hops);
    PetscCall(Factor());
  }
  PetscCall(Parts(&F.data, PETSC_FALSE, -1, &F.A));
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
  const int times = HybTestSize(8, 2);

  PetscFunctionBegin;
  F.checks = PETSC_TRUE;
  for (int kind = 0; kind < 4; kind++)
    for (int k = 0; k < 2 * times; k++)
      for (F.hops = 1; F.hops <= 2; F.hops++) {
        const HybAggBlock *block = &blocks[HybTestRandomInt(0, PETSC_STATIC_ARRAY_LENGTH(blocks))];
        const PetscBool    full = (PetscBool)HybTestRandomInt(0, 2), weak = (PetscBool)(k >= times);
        const HybAggFilter filter = DrawFilter();

        HybTestBegin("kind %d, %d x %d, %s, %d hops, %s", kind, (int)block->bs, (int)block->nvec, full ? "full" : "in part", F.hops, weak ? "a threshold" : "all edges");
        PetscCall(Prepare(HybTestRandomInt(Size, VERTICES + 1), kind, k % 3 == 2 ? HybTestRandomInt(0, Size) : -1, block->bs, block->nvec, full, weak ? &filter : NULL));
        HybTestCall(Run(NULL));
        if (W.proper) HybTestCall(SameCoarse());
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

/* edges that one process alone has, an unknown without its diagonal entry, entries that PETSc may take for a block: not
   taken, on all processes */
static PetscErrorCode Improper(void)
{
  static const char *const names[] = {"edges of one direction", "an unknown without its diagonal entry", "staggered entries between processes"};
  HybParAggFound           found;
  int                      across;

  PetscFunctionBegin;
  F.hops = 2;
  for (int k = 0; k < 3; k++) {
    HybTestBegin("%s", names[k]);
    PetscCall(Prepare(VERTICES, 1, -1, 2, 3, (PetscBool)(k == 2), NULL));
    if (k == 2) Stagger();
    PetscCall(Parts(&F.data, (PetscBool)(k == 0), k == 1 ? 1 : -1, &F.A));
    across = 0;
    for (PetscInt v = 0; v < T.N; v++)
      for (PetscInt u = 0; u < v; u++) across += T.edge[v][u] && Owner(u) != Owner(v);
    if (k == 2) {
      across = 0;
      for (int r = 0; r + 1 < Size; r++) across += T.ranges[r + 2] >= T.ranges[r + 1] + 2;
    }
    HybTestCall(HybParAggCreate(PETSC_COMM_WORLD, HybTestExec(), PETSC_SUCCESS, &F.A, &B.block, NULL, &found, &F.agg));
    HybTestCheck(!found.proper || (k != 1 && !across), "it is taken");
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
    const HybAggFilter filter = {0, PETSC_TRUE, PETSC_TRUE}; /* leaves a proper graph of any numbers */

    F.hops = k ? 2 : 1;
    HybTestBegin("everything failing in turn, %d hops%s", F.hops, k == 2 ? ", a threshold" : "");
    PetscCall(Prepare(24, 1, -1, 2, k ? 3 : 2, (PetscBool)(k == 0), k == 2 ? &filter : NULL));
    HybTestFaultsOn((PetscMPIInt)(Size - 1), Run, CleanUp, NULL);
    PetscCall(HybArenaReset(&F.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  if (PetscDefined(USE_COMPLEX)) {
    HybTestBegin("aggregation of blocks");
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
