/*
  lists.c: the members of aggregates in the order of PETSc's lists, which is the order of rows in their QR
  factorization and so decides its signs.

  One step: PETSc's lists are rows of a matrix, so members ascend. Two steps: the root comes first, then the vertices
  that it was the first to reach in the order of the search, ascending, then its neighbours that another root had
  reached before and that were handed over in the end, ascending.

    near(w) = the root's place for w in the row of a root            (each vertex has one root beside it at most)
    v was handed over where the least near(w), w in row v, is not its root's
    a counting sort by (aggregate; root, reached, handed over)

  Memory: 2 n integers and 2 for each aggregate. Time: O(nnz) for two steps, O(n) for one.
*/
#include "agghost.h"

/* kind[v] = 0 for roots, 1 for those reached, 2 for those handed over; n entries */
static PetscErrorCode HybListsKinds(const HybExec *exec, HybArena *work, const HybCSR *G, HybAggOrder order, const HybAggregates *agg, PetscInt *kind)
{
  const PetscInt n = agg->n, *gi = G->i, *gj = G->j;
  PetscInt      *near, *place;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &near));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &place));
  PetscCall(HybAggPermutation_Host(exec, work, n, order, gi, place));
  for (PetscInt v = 0; v < n; v++) near[v] = PETSC_MAX_INT;
  for (PetscInt c = 0; c < agg->nc; c++) {
    const PetscInt root = agg->lead[c];

    for (PetscInt e = gi[root]; e < gi[root + 1]; e++) near[gj[e]] = place[root];
  }
  for (PetscInt v = 0; v < n; v++) {
    const PetscInt c     = agg->parent[v];
    PetscInt       first = PETSC_MAX_INT;

    kind[v] = 0;
    if (c < 0 || agg->lead[c] == v) continue;
    for (PetscInt e = gi[v]; e < gi[v + 1]; e++) first = PetscMin(first, near[gj[e]]);
    kind[v] = first == place[agg->lead[c]] ? 1 : 2;
  }
  PetscCall(HybArenaFree(work, &place, &near));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggListsByKind_Host(const HybExec *exec, HybArena *keep, HybArena *work, PetscInt n, PetscInt nc, const PetscInt *parent, int kinds, const PetscInt *kind, HybAggLists *lists)
{
  PetscInt *begin, *next, sum = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(keep, HYB_WORK(exec), (PetscCount)nc + 1, sizeof(PetscInt), &begin));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nc, sizeof(PetscInt), &next));
  for (PetscInt v = 0; v < n; v++) {
    if (parent[v] >= 0) begin[parent[v]]++;
  }
  for (PetscInt c = 0; c <= nc; c++) {
    const PetscInt size = begin[c];

    begin[c] = sum;
    if (c < nc) next[c] = sum;
    sum += size;
  }
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), sum, sizeof(PetscInt), &lists->member));
  for (PetscInt pass = 0; pass < kinds; pass++) {
    for (PetscInt v = 0; v < n; v++) {
      const PetscInt c = parent[v];

      if (c >= 0 && (!kind || kind[v] == pass)) lists->member[next[c]++] = v;
    }
  }
  PetscCall(HybArenaFree(work, &next));
  lists->begin = begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggLists_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggOrder order, const HybAggregates *agg, HybAggLists *lists)
{
  const PetscInt n    = agg->n;
  PetscInt      *kind = NULL;

  PetscFunctionBegin;
  PetscCheck(G->m == n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices and a graph of %" PetscInt_FMT, n, G->m);
  if (hops == 2) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &kind));
    PetscCall(HybListsKinds(exec, work, G, order, agg, kind));
  }
  PetscCall(HybAggListsByKind_Host(exec, keep, work, n, agg->nc, agg->parent, kind ? 3 : 1, kind, lists));
  PetscCall(HybArenaFree(work, &kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}
