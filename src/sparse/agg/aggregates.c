/*
  aggregates.c: roots and aggregates on the host, without the square of the graph.

  PETSc forms the square, takes its maximal independent set in some order (each root takes the undecided
  vertices of its row), and then gives each neighbour of a root in the graph itself to that root. Roots are more than
  two steps apart, so a vertex has one root beside it at most, and its row is walked for that root alone: the two steps
  are walked in the graph, each row at most once.

    for v in that order, undecided and not alone:
      v is a root
      for w in row v:  w belongs to v, whoever took it before               hops = 2
        for u in row w:  u belongs to v if it is undecided
      for w in row v:  w belongs to v if it is undecided                    hops = 1

  Where rows have no diagonal entry, two steps need not lead to a neighbour. It is then left undecided, may become a
  root itself, which it stays, or be reached by another one: neighbours of roots are gone through once more at the end.
  One is alone if two steps lead from it nowhere but back; of one step, if its row has fewer than two entries: a root
  beside it takes it all the same.

  Aggregates are numbered by their roots, ascending: a pass counts roots, another one translates.

  The order is a shuffled one as a rule, so that vertices and their neighbours' rows are in no cache: they are asked for
  ahead.

  Memory: n + n integers beside the result. Time: O(nnz).
*/
#include "agghost.h"

#define HYB_AGG_AHEAD 16 /* vertices */

static inline PetscBool HybAggAlone(const HybCSR *G, int hops, PetscInt v)
{
  const PetscInt *gi = G->i;

  if (hops == 1) return (PetscBool)(gi[v + 1] - gi[v] < 2);
  for (PetscInt e = gi[v]; e < gi[v + 1]; e++)
    if (gi[G->j[e] + 1] - gi[G->j[e]] > 1) return PETSC_FALSE;
  return PETSC_TRUE;
}

static void HybAggTake(const HybCSR *G, int hops, const PetscInt *order, PetscInt *parent)
{
  const PetscInt *gi = G->i, *gj = G->j;
  PetscBool       passed = PETSC_FALSE; /* a neighbour of a root was left undecided */

  for (PetscInt k = 0; k < G->m; k++) {
    const PetscInt v = order[k];

    if (k + HYB_AGG_AHEAD < G->m) {
      __builtin_prefetch(&parent[order[k + HYB_AGG_AHEAD]]);
      __builtin_prefetch(&gi[order[k + HYB_AGG_AHEAD]]);
    }
    if (parent[v] >= 0 || HybAggAlone(G, hops, v)) continue;
    if (hops == 1) {
      for (PetscInt e = gi[v]; e < gi[v + 1]; e++) {
        if (parent[gj[e]] < 0) parent[gj[e]] = v;
      }
    } else {
      for (PetscInt e = gi[v]; e < gi[v + 1]; e++) __builtin_prefetch(&gj[gi[gj[e]]]);
      for (PetscInt e = gi[v]; e < gi[v + 1]; e++) {
        const PetscInt w = gj[e];

        for (PetscInt f = gi[w]; f < gi[w + 1]; f++) {
          if (parent[gj[f]] < 0) parent[gj[f]] = v;
        }
        if (parent[w] < 0)
          passed = PETSC_TRUE;
        else if (parent[w] != w)
          parent[w] = v;
      }
    }
    parent[v] = v;
  }
  for (PetscInt v = 0; v < G->m && passed; v++) {
    for (PetscInt e = gi[v]; parent[v] == v && e < gi[v + 1]; e++)
      if (parent[gj[e]] != gj[e]) parent[gj[e]] = v;
  }
}

PetscErrorCode HybAggAggregates_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggOrder kind, PetscInt longest, HybAggregates *agg)
{
  const PetscInt n = G->m;
  PetscInt      *order, *parent, *lead, nc = 0;

  PetscFunctionBegin;
  PetscCheck(G->m == G->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, G->m, G->n);
  PetscCheck(hops == 1 || hops == 2, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Aggregates reach 1 or 2 steps, not %d", hops);
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), n, sizeof(PetscInt), &parent));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &order));
  PetscCall(HybAggOrder_Host(work, n, kind, G->i, order));
  for (PetscInt v = 0; v < n; v++) parent[v] = -1;
  HybAggTake(G, hops, order, parent);
  /* the order has served: its memory holds the roots' numbers */
  for (PetscInt v = 0; v < n; v++) {
    if (parent[v] == v) order[v] = nc++;
  }
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nc, sizeof(PetscInt), &lead));
  for (PetscInt c = 0; c < nc; c++) lead[c] = -1;
  for (PetscInt v = 0; v < n; v++) {
    const PetscInt root = parent[v], c = root < 0 ? -1 : order[root];

    parent[v] = c;
    if (c >= 0 && lead[c] < 0) lead[c] = hops == 1 ? v : root;
  }
  PetscCall(HybArenaFree(work, &order));
  agg->n      = n;
  agg->nc     = nc;
  agg->parent = parent;
  agg->lead   = lead;
  agg->rounds = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggFinish_Host(HybArena *work, PetscInt n, const PetscInt *gi, const PetscInt *gj, int hops, PetscInt *key)
{
  PetscInt *order;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &order));
  for (PetscInt k = 0; k < n; k++) order[k] = -1;
  for (PetscInt v = 0; v < n; v++) {
    if (key[v] > 0 && key[v] < PETSC_MAX_INT) order[key[v] - 1] = v;
  }
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt v = order[k];

    if (v < 0 || key[v] == PETSC_MAX_INT) continue;
    for (PetscInt e = gi[v]; e < gi[v + 1]; e++) {
      const PetscInt w = gj[e];

      if (hops == 1)
        key[w] = PETSC_MAX_INT;
      else {
        for (PetscInt f = gi[w]; f < gi[w + 1]; f++) key[gj[f]] = PETSC_MAX_INT;
      }
    }
    key[v] = 0;
  }
  PetscCall(HybArenaFree(work, &order));
  PetscFunctionReturn(PETSC_SUCCESS);
}
