/*
  paraggtest.h: what the tests of aggregation on several processes share: graphs and layouts that all processes draw
  alike, and a reference that goes along all processes' vertices as PETSc's loops do, on a dense matrix of the square
  graph.
*/
#ifndef PARAGGTEST_H
#define PARAGGTEST_H
#include "hybtest.h"
#include <aijhybridgpu/private/hybparagg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST     8  /* processes */
#define VERTICES 72 /* at most */

static PetscMPIInt Rank, Size;

/* the graph, and what the rules make of it */
static struct {
  PetscInt  N, ranges[MOST + 1];
  PetscBool edge[VERTICES][VERTICES], reach[VERTICES][VERTICES];
  PetscInt  place[VERTICES]; /* in the order of its process's vertices */
  PetscInt  state[VERTICES], native[VERTICES], parent[VERTICES], coarse[VERTICES], first[VERTICES], nc, crange[MOST + 1];
} T;

static inline int Owner(PetscInt v)
{
  int r = 0;

  while (v >= T.ranges[r + 1]) r++;
  return r;
}

/* which rows have no entry of their own */
static enum {
  DIAGONAL,
  NODIAGONAL,
  SOMEDIAGONAL
} Bare;

/* kind 0: a chain, 1: with chords, 2: any edges, and vertices alone, 3: also processes without vertices; empty: one of
   these, or -1 */
static inline PetscErrorCode DrawGraph(PetscInt most, int kind, int empty)
{
  PetscFunctionBegin;
  T.ranges[0] = 0;
  for (int r = 0; r < Size; r++) T.ranges[r + 1] = T.ranges[r] + (r == empty ? 0 : HybTestRandomInt(kind == 3 ? 0 : 1, most / Size + 1));
  T.N = T.ranges[Size];
  memset(T.edge, 0, sizeof(T.edge));
  for (PetscInt v = 0; v < T.N; v++) {
    const PetscInt degree = kind == 0 ? 1 : kind == 1 ? 2
                                                      : HybTestRandomInt(0, 4);

    T.edge[v][v] = (PetscBool)(Bare == DIAGONAL || (Bare == SOMEDIAGONAL && HybTestRandomInt(0, 2)));
    for (PetscInt e = 0; e < degree; e++) {
      PetscInt u = kind == 0 ? v + 1 : kind == 1 ? v + 1 + 5 * e
                                                 : HybTestRandomInt(0, T.N);

      if (u >= T.N || (kind == 2 && (u % 7 == 3 || v % 7 == 3))) continue;
      T.edge[v][u] = T.edge[u][v] = PETSC_TRUE;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* edges that have one direction: the other one is not there */
static PetscBool Lacks[VERTICES][VERTICES];

static inline void DrawSides(PetscBool sided)
{
  memset(Lacks, 0, sizeof(Lacks));
  for (PetscInt v = 0; v < T.N && sided; v++)
    for (PetscInt u = 0; u < v; u++) {
      const PetscInt side = HybTestRandomInt(0, 4);

      if (T.edge[v][u] && side < 2) Lacks[side ? v : u][side ? u : v] = PETSC_TRUE;
    }
}

static HybAggOrder Order;

static inline PetscErrorCode Places(void)
{
  const HybExec host             = {&HybBackendHost, NULL, HYB_MEM_HOST};
  PetscInt      gi[VERTICES + 1] = {0};
  HybArena      work             = HybArenaOn(&host);

  PetscFunctionBegin;
  for (PetscInt v = 0; v < T.N; v++) {
    gi[v + 1] = gi[v];
    for (PetscInt u = 0; u < T.N; u++) gi[v + 1] += T.edge[v][u];
  }
  for (int r = 0; r < Size; r++) PetscCall((*HybAggHost.permutation)(&host, &work, T.ranges[r + 1] - T.ranges[r], Order, gi + T.ranges[r], T.place + T.ranges[r]));
  PetscCall(HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of values */
#define ROUNDING (5000 * PETSC_MACHINE_EPSILON)

/* Weak edges: weight[v][u] of an edge of the whole graph, and what must be seen of those that are left in T.edge */
static struct {
  PetscBool  weak; /* there are such edges */
  PetscReal  weight[VERTICES][VERTICES];
  PetscBool  whole[VERTICES][VERTICES];
  PetscBool  proper; /* the rules hold for what is left */
  PetscCount nwhole, nleft, nclose;
} W;

/* any numbers; often such that many edges are at a threshold, or a diagonal is 0 */
static inline PetscScalar DrawValue(PetscBool nice, PetscBool diagonal)
{
  static const PetscReal off[] = {1, -0.5, 0.25, 2, -0.01, 0.05, 0, 0.5}, on[] = {1, 2, -4, 0.5, 8, 2, 4, 0};

  if (nice) return (diagonal ? on : off)[HybTestRandomInt(0, 8)];
  return HybTestRandomScalar() + (diagonal ? 3 : 0);
}

/* sided: PETSc adds the transpose */
static inline HybAggFilter DrawFilter(PetscBool sided)
{
  static const PetscReal thresholds[] = {0, 0, 0.01, 0.05, 0.25, 0.5, 0.0613, 1, 1, 3};

  return (HybAggFilter){thresholds[HybTestRandomInt(0, PETSC_STATIC_ARRAY_LENGTH(thresholds))], (PetscBool)(HybTestRandomInt(0, 2) || sided), (PetscBool)(HybTestRandomInt(0, 3) == 0)};
}

/* T.edge, as PETSc copies, scales and filters the graph of these weights; NULL: all edges stay */
static inline void WeakEdges(const HybAggFilter *f)
{
  PetscReal scale[VERTICES], s[VERTICES][VERTICES];

  memcpy(W.whole, T.edge, sizeof(T.edge));
  W.weak   = (PetscBool) !!f;
  W.proper = PETSC_TRUE;
  W.nwhole = W.nleft = W.nclose = 0;
  if (!f) return;
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) s[v][u] = f->symmetrize ? W.weight[v][u] + W.weight[u][v] : W.weight[v][u];
  for (PetscInt v = 0; v < T.N; v++) scale[v] = s[v][v] == 0 ? 0 : PetscSqrtReal(PetscAbsReal(1 / s[v][v]));
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) {
      s[v][u] *= scale[v];
      s[v][u] *= scale[u];
      if (T.edge[v][u]) T.edge[v][u] = (PetscBool)(s[v][u] > f->threshold || (f->diagonal && u == v));
    }
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) {
      if (T.edge[v][u] && !T.edge[u][v]) W.proper = PETSC_FALSE;
      if (!W.whole[v][u] || (Owner(v) != Rank && Owner(u) != Rank)) continue;
      W.nclose += u != v && PetscAbsReal(s[v][u] - f->threshold) <= (PetscReal)HYB_AGG_CLOSE;
      W.nwhole += Owner(v) == Rank;
      W.nleft += Owner(v) == Rank && T.edge[v][u];
    }
}

/* was that seen? */
static inline void CheckFound(const HybParAggFound *found)
{
  HybTestCheck(found->proper == W.proper, W.proper ? "the graph is not taken" : "a graph is taken for which the rules do not hold");
  if (!W.weak || !W.proper) return;
  HybTestCheck(found->whole == W.nwhole && found->left == W.nleft, "%d of %d entries are left, not %d of %d", (int)found->left, (int)found->whole, (int)W.nleft, (int)W.nwhole);
  HybTestCheck(found->close == W.nclose, "%d entries are close to the threshold, not %d", (int)found->close, (int)W.nclose);
}

/* PETSc's sweeps on the graph of `reach`, and how many vertices it counts as decided: one alone when its turn comes,
   and once more when a root takes it afterwards. Again: on a graph of aggregates, where one alone is counted in each
   sweep. PETSc ends when it has counted as many as there are; where it never does: when all are decided. */
static inline void Sweeps(PetscBool again)
{
  PetscInt  told[VERTICES], order[VERTICES], done = 0, left = 1;
  PetscBool alone[VERTICES], removed[VERTICES];

  for (PetscInt v = 0; v < T.N; v++) {
    PetscInt own = 0, others = 0;

    for (PetscInt u = 0; u < T.N; u++)
      if (T.reach[v][u]) (*(Owner(u) == Owner(v) ? &own : &others))++;
    alone[v]    = (PetscBool)(own < 2 && !others);
    removed[v]  = PETSC_FALSE;
    told[v]     = -2;
    T.state[v]  = -2;
    T.parent[v] = -1;
  }
  for (int r = 0; r < Size; r++)
    for (PetscInt v = T.ranges[r]; v < T.ranges[r + 1]; v++) order[T.ranges[r] + T.place[v]] = v;
  while (left && done != T.N) {
    for (PetscInt k = 0; k < T.N; k++) {
      const PetscInt v = order[k], begin = T.ranges[Owner(v)], end = T.ranges[Owner(v) + 1];
      PetscBool      may = (PetscBool)(T.state[v] == -2 && (again || !removed[v]));

      for (PetscInt u = end; u < T.N && may; u++)
        if (T.reach[v][u] && told[u] == -2) may = PETSC_FALSE;
      if (!may) continue;
      done++;
      removed[v] = alone[v];
      if (alone[v]) continue;
      T.state[v] = T.parent[v] = v;
      for (PetscInt u = begin; u < end; u++) {
        if (!T.reach[v][u] || T.state[u] != -2) continue;
        done++;
        T.state[u]  = -1;
        T.parent[u] = v;
      }
    }
    memcpy(told, T.state, sizeof(told));
    left = 0;
    for (PetscInt v = 0; v < T.N; v++) {
      for (PetscInt u = 0; u < T.N && T.state[v] == -2; u++) {
        if (Owner(u) == Owner(v) || !T.reach[v][u] || told[u] < 0) continue;
        done++;
        T.state[v]  = -1;
        T.parent[v] = u;
      }
      left += T.state[v] == -2 && !alone[v];
    }
  }
}

/* Is v a ghost of this process's part of the graph of `reach`? Else PETSc's process does not give it to a root. */
static inline PetscBool IsGhost(int r, PetscInt v)
{
  for (PetscInt x = T.ranges[r]; x < T.ranges[r + 1]; x++)
    if (T.reach[x][v]) return PETSC_TRUE;
  return PETSC_FALSE;
}

/* the aggregates that these sweeps, and what is handed over after them, make */
static inline void AggregatesOf(int hops, PetscBool again)
{
  HybTestCall(Places());
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++) {
      T.reach[v][u] = (PetscBool)(hops == 1 && T.edge[v][u]);
      for (PetscInt w = 0; w < T.N && hops == 2 && !T.reach[v][u]; w++) T.reach[v][u] = (PetscBool)(T.edge[v][w] && T.edge[w][u]);
    }
  Sweeps(again);
  memcpy(T.native, T.parent, sizeof(T.native));
  for (PetscInt v = 0; v < T.N && hops == 2; v++)
    for (PetscInt u = 0; u < T.N && T.state[v] < 0; u++)
      if (T.state[u] >= 0 && T.edge[v][u]) T.parent[v] = Owner(u) == Owner(v) || IsGhost(Owner(u), v) ? u : -1;
  T.nc = 0;
  for (int r = 0; r <= Size; r++) T.crange[r] = 0;
  for (PetscInt v = 0; v < T.N; v++) {
    T.coarse[v] = -1;
    if (T.state[v] < 0) continue;
    T.crange[Owner(v) + 1]++;
    T.first[T.nc] = v;
    for (PetscInt u = 0; u < v && hops == 1; u++)
      if (T.parent[u] == v) {
        T.first[T.nc] = u;
        break;
      }
    T.coarse[v] = T.nc++;
  }
  for (int r = 0; r < Size; r++) T.crange[r + 1] += T.crange[r];
}

/* T becomes the graph of its aggregates */
static inline void Quotient(void)
{
  PetscBool edge[VERTICES][VERTICES];

  memset(edge, 0, sizeof(edge));
  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < T.N; u++)
      if (T.edge[v][u] && T.parent[v] >= 0 && T.parent[u] >= 0) edge[T.coarse[T.parent[v]]][T.coarse[T.parent[u]]] = PETSC_TRUE;
  T.N = T.nc;
  memcpy(T.edge, edge, sizeof(edge));
  memcpy(T.ranges, T.crange, sizeof(T.ranges));
}

/* of this distance: aggregates of aggregates; each is known by its root's root */
static inline void Aggregates(int hops, int distance)
{
  const HybAggOrder order = Order;
  PetscInt          parent[VERTICES], root[VERTICES];

  AggregatesOf(hops, PETSC_FALSE);
  if (distance > 1) {
    const __typeof__(T) base = T;

    for (PetscInt v = 0; v < base.N; v++) {
      parent[v] = T.parent[v] < 0 ? -1 : T.coarse[T.parent[v]];
      if (T.coarse[v] >= 0) root[T.coarse[v]] = v;
    }
    Order = HYB_AGG_NATURAL;
    for (int k = 1; k < distance; k++) {
      Quotient();
      AggregatesOf(1, PETSC_TRUE);
      for (PetscInt v = 0; v < base.N; v++) parent[v] = parent[v] < 0 || T.parent[parent[v]] < 0 ? -1 : T.coarse[T.parent[parent[v]]];
      for (PetscInt c = 0; c < T.N; c++)
        if (T.coarse[c] >= 0) root[T.coarse[c]] = root[c];
    }
    Order = order;
    memcpy(T.edge, base.edge, sizeof(T.edge));
    memcpy(T.ranges, base.ranges, sizeof(T.ranges));
    T.N = base.N;
    for (PetscInt v = T.N - 1; v >= 0; v--) {
      T.parent[v] = parent[v] < 0 ? -1 : root[parent[v]];
      T.state[v]  = T.parent[v] == v ? v : -1;
      T.coarse[v] = T.parent[v] == v ? parent[v] : -1;
      if (parent[v] >= 0) T.first[parent[v]] = v;
    }
    memcpy(T.native, T.parent, sizeof(T.native));
  }
}

/* this process's rows of a matrix of bs unknowns a vertex, in blocks; entry(): is (r,c) stored, and as what? */
static inline PetscErrorCode PartsOf(HybArena *arena, PetscInt bs, PetscBool (*entry)(PetscInt r, PetscInt c, PetscScalar *a), HybParCSR *A)
{
  const PetscInt begin = T.ranges[Rank] * bs, end = T.ranges[Rank + 1] * bs, N = T.N * bs;
  PetscInt      *garray, *map, *ranges;
  PetscScalar    a;
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

    for (PetscInt r = begin; r < end && !used; r++) used = (*entry)(r, c, &a);
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

      if (!(*entry)(r, c, &a)) continue;
      csr->j[nz[own]]   = own ? c - begin : map[c];
      csr->a[nz[own]++] = a;
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
  RefMatDestroy(&D, &O);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* edges between processes, of which one side is told alone to those who look for them */
static inline int EdgesAcross(void)
{
  int across = 0;

  for (PetscInt v = 0; v < T.N; v++)
    for (PetscInt u = 0; u < v; u++) across += W.whole[v][u] && Owner(u) != Owner(v);
  return across;
}

/* row r of P0 - omega D^-1 A P0, or of P0, all zero before, and which entries it has; how many */
typedef PetscInt (*RowOfPFn)(PetscInt r, PetscBool smoothed, PetscReal omega, PetscScalar *row, PetscBool *there);

/* P beside such rows; tol: of P0 */
static inline PetscErrorCode SameP(const HybParCSR *P, const HybAggBlock *block, PetscBool smoothed, PetscReal omega, PetscReal tol, RowOfPFn rowofp)
{
  const PetscInt begin = T.ranges[Rank] * block->bs, end = T.ranges[Rank + 1] * block->bs, cbegin = T.crange[Rank] * block->nvec, cend = T.crange[Rank + 1] * block->nvec;
  RefMat         part[2];
  PetscScalar   *row   = (PetscScalar *)RefAlloc(T.nc * block->nvec + 1, sizeof(PetscScalar));
  PetscBool     *there = (PetscBool *)RefAlloc(T.nc * block->nvec + 1, sizeof(PetscBool));
  PetscBool     *used  = (PetscBool *)RefAlloc(P->O.n + 1, sizeof(PetscBool));

  PetscFunctionBegin;
  for (PetscInt k = 0; k < P->O.n; k++) used[k] = PETSC_FALSE;
  HybTestCheck(P->D.m == end - begin && P->O.m == end - begin && P->D.n == cend - cbegin && P->columns[Rank] == cbegin && P->columns[Rank + 1] == cend, "P's part is %d x %d", (int)P->D.m, (int)P->D.n);
  for (PetscInt k = 0; k < P->O.n; k++) HybTestCheck((k == 0 || P->garray[k] > P->garray[k - 1]) && (P->garray[k] < cbegin || P->garray[k] >= cend), "column %d of others is %d", (int)k, (int)P->garray[k]);
  PetscCall(HybTestDownload(&P->D, &part[0]));
  PetscCall(HybTestDownload(&P->O, &part[1]));
  for (PetscInt r = begin; r < end; r++) {
    PetscInt expected, found = 0;

    memset(row, 0, sizeof(*row) * (size_t)(T.nc * block->nvec));
    memset(there, 0, sizeof(*there) * (size_t)(T.nc * block->nvec));
    expected = (*rowofp)(r, smoothed, omega, row, there);
    for (int k = 0; k < 2; k++) {
      const HybCSR *csr = &part[k].csr;

      for (PetscInt e = csr->i[r - begin]; e < csr->i[r - begin + 1]; e++, found++) {
        const PetscInt c = k ? P->garray[csr->j[e]] : csr->j[e] + cbegin;

        if (k) used[csr->j[e]] = PETSC_TRUE;
        HybTestCheck(there[c] && PetscAbsScalar(csr->a[e] - row[c]) <= (smoothed ? ROUNDING : tol), "P(%d,%d) is %g, not %g", (int)r, (int)c, (double)PetscRealPart(csr->a[e]), (double)PetscRealPart(row[c]));
      }
    }
    HybTestCheck(found == expected, "row %d of P has %d entries, not %d", (int)r, (int)found, (int)expected);
  }
  for (PetscInt k = 0; k < P->O.n; k++) HybTestCheck(used[k], "column %d of others has no entry", (int)P->garray[k]);
  RefMatDestroy(&part[0], &part[1]);
  RefFree(used, row, there);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has P0 a row with entries, and the smoothed one none in their places? It ends with an error then. */
static inline PetscBool IsOutside(const HybAggBlock *block, RowOfPFn rowofp)
{
  const PetscInt n       = T.nc * block->nvec;
  PetscScalar   *row     = (PetscScalar *)RefAlloc(n + 1, sizeof(PetscScalar));
  PetscBool     *there   = (PetscBool *)RefAlloc(2 * n + 1, sizeof(PetscBool));
  PetscBool      outside = PETSC_FALSE;

  for (PetscInt r = 0; r < T.N * block->bs; r++) {
    memset(there, 0, 2 * sizeof(*there) * (size_t)n);
    for (int smoothed = 0; smoothed < 2; smoothed++) (void)(*rowofp)(r, (PetscBool)smoothed, 0.6, row, there + smoothed * n);
    for (PetscInt c = 0; c < n; c++)
      if (there[c] && !there[n + c]) outside = PETSC_TRUE;
  }
  RefFree(row, there);
  return outside;
}

/* a problem where it is to be */
static struct {
  HybArena            data, out[2];
  HybParCSR           A;
  HybScalar          *b, *coarse;
  HybParAgg           agg;
  HybAggFilter        filter;
  const HybAggFilter *edges; /* &filter, or NULL: all edges stay */
  HybHalo             halo;  /* lent, or NULL */
  PetscBool           unite; /* edges have one direction */
  PetscBool           outside;
  /* there is one already when a program's hierarchy is made: its making is not what is tested */
  HybComm comm;
  int     hops, distance;
} F;

static inline PetscErrorCode ArenasInit(void)
{
  PetscFunctionBegin;
  F.data = HybArenaOn(HybTestExec());
  for (int k = 0; k < 2; k++) F.out[k] = HybArenaOn(HybTestExec());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by one step, by two, of a greater distance */
#define WAYS 3
static inline void DrawWay(int way)
{
  F.hops     = way == 1 ? 2 : 1;
  F.distance = way == 2 ? HybTestRandomInt(2, HYB_AGG_DISTANCES + 1) : 1;
}

/* all of it, with the vectors b */
static inline PetscErrorCode RunWith(const HybAggBlock *block, const HybScalar *b, PetscReal tol, RowOfPFn rowofp)
{
  const HybAggRules rules = {F.hops, F.distance, Order, 0};
  HybParAggFound    found;
  PetscInt          n, N, doubtful;
  int               sweeps;
  HybParCSR         P;
  PetscErrorCode    ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  /* a caller's halo, by half of the rules */
  if ((F.hops + F.distance) % 2) PetscCall(HybHaloCreate(F.comm, HybTestExec(), PETSC_SUCCESS, F.A.columns, F.A.O.n, F.A.garray, PETSC_FALSE, &F.halo));
  PetscCall(HybParAggCreate(PETSC_COMM_WORLD, HybTestExec(), PETSC_SUCCESS, &F.A, F.halo, block, F.unite, F.edges, &found, &F.agg));
  CheckFound(&found);
  if (HybTestFailed() || !found.proper) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggFind(F.agg, &rules, &n, &N, &sweeps));
  HybTestCheck(n == T.crange[Rank + 1] - T.crange[Rank] && N == T.nc, "%d aggregates of %d, not %d of %d", (int)n, (int)N, (int)(T.crange[Rank + 1] - T.crange[Rank]), (int)T.nc);
  if (HybTestFailed()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggTentative(F.agg, PETSC_SUCCESS, b, NULL, NULL, F.coarse, &doubtful));
  F.outside = IsOutside(block, rowofp);
  for (int smoothed = 0; smoothed < (F.outside ? 1 : 2); smoothed++) {
    PetscCall(HybParAggProlongator(F.agg, ierr, smoothed ? &F.A : NULL, 0.6, F.out, &P));
    ierr = SameP(&P, block, (PetscBool)smoothed, 0.6, tol, rowofp);
    for (int k = 0; k < 2; k++)
      ierr = HybErrorFirst(ierr, HybArenaReset(&F.out[k]));
  }
  PetscCall(HybCommAgree(F.comm, ierr, "What this process did by itself"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* after the others, since nothing can follow it */
static inline void Refused(void)
{
  HybParCSR      P;
  PetscErrorCode ierr;
  int            codes[2];

  if (!F.outside) return;
  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  ierr = HybParAggProlongator(F.agg, PETSC_SUCCESS, &F.A, 0.6, F.out, &P);
  (void)PetscPopErrorHandler();
  codes[0] = ierr == PETSC_ERR_ARG_OUTOFRANGE;
  codes[1] = ierr != PETSC_SUCCESS;
  (void)MPI_Allreduce(MPI_IN_PLACE, &codes[0], 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD);
  HybTestCheck(codes[0] && codes[1], "a prolongator with entries that PETSc has no place for is made");
}

/* A caller's halo, after whatever came before: its next exchanges tell nobody of that, and the graph does not need it
   any more */
static inline PetscErrorCode HaloServes(void)
{
  const HybExec *x = HybTestExec();
  HybScalar     *v;
  void          *ghost = NULL;
  PetscErrorCode ierr;
  HybArena       arena = HybArenaOn(x);

  PetscFunctionBegin;
  if (!F.halo) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybArenaCalloc(&arena, HYB_WORK(x), F.halo->n, sizeof(*v), &v);
  for (int k = 0; k < 2 && !ierr; k++) { /* the second one hears what the device found in the first one */
    ierr = HybHaloExchange(F.halo, x, sizeof(*v), v, &ghost);
    if (!ierr) ierr = x->backend->sync(x);
  }
  PetscCall(HybArenaReset(&arena));
  PetscCall(HybHaloDestroy(&F.halo));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode CleanUp(void *ctx)
{
  const PetscErrorCode ierr = HaloServes();

  PetscFunctionBegin;
  PetscCall(HybParAggDestroy(&F.agg));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaReset(&F.out[k]));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ParAggTests(size_t n, PetscErrorCode (*const test[])(void))
{
  PetscFunctionBegin;
  PetscCall(HybCommGet(PETSC_COMM_WORLD, &F.comm));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCheck(Size <= MOST, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "For up to %d processes, not %d", MOST, Size);
  for (size_t k = 0; k < n; k++) PetscCall((*test[k])());
  PetscCall(HybCommRestore(&F.comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* main(), with these tests one after the other */
#define PARAGG_MAIN(...)                                         \
  static PetscErrorCode Body(void)                               \
  {                                                              \
    PetscErrorCode (*const tests[])(void) = {__VA_ARGS__};       \
                                                                 \
    return ParAggTests(PETSC_STATIC_ARRAY_LENGTH(tests), tests); \
  }                                                              \
  int main(int argc, char **argv)                                \
  {                                                              \
    setenv("HYB_EMULATOR_CARDS", "8", 1);                        \
    return HybTestMain(argc, argv, Body);                        \
  }

#endif
