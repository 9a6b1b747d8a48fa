/*
  nested.c: aggregates of any distance, as PETSc's MISK finds them: aggregates of one step, whose graph has aggregates
  of one step again, and so on.

  PETSc makes the graph of aggregates as a Galerkin product P^T G P, P having an entry for each vertex that belongs to
  one, and multiplies the P of all rounds. Here the graph's pattern alone is made, and numbers are looked up. From the
  second round on PETSc asks vertices in their natural order. One that has no neighbour is left out in every round, and
  with it all its members.

    find the aggregates of G by one step, in the order that is asked for
    distance - 1 times:
      Q = the graph of the aggregates:  c and d are joined where members of theirs are
      find the aggregates of Q by one step, in the natural order
      parent(v) = the aggregate of v's aggregate, which may be none
      Q is the next graph

  A row of Q is what the members' rows name, each aggregate once: marked with c, then sorted.

  Memory: the graphs Q of two rounds at most, of which the first is the largest, and 3 integers for each aggregate.
  Time: O(nnz), and sorting. On a grid the first Q has about as many entries for each aggregate as G for each vertex;
  the natural order makes more rounds of the device's search for roots (roots.cu) than a shuffle, on a smaller graph.
*/
#include "agghost.h"

/* the aggregates that c's members name into list (NULL: only counted) */
static PetscInt HybQuotientRow(const HybCSR *G, const PetscInt *parent, const HybAggLists *lists, PetscInt c, PetscInt *mark, PetscInt *list)
{
  PetscInt n = 0;

  for (PetscInt s = lists->begin[c]; s < lists->begin[c + 1]; s++) {
    const PetscInt v = lists->member[s];

    for (PetscInt e = G->i[v]; e < G->i[v + 1]; e++) {
      const PetscInt d = parent[G->j[e]];

      if (d < 0 || mark[d] == c) continue;
      mark[d] = c;
      if (list) list[n] = d;
      n++;
    }
  }
  return n;
}

PetscErrorCode HybAggQuotient_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, const HybAggregates *agg, const HybAggLists *lists, HybCSR *Q)
{
  const PetscInt nc = agg->nc;
  PetscInt      *mark, nnz = 0; /* no more than G has */

  PetscFunctionBegin;
  PetscCheck(G->m == agg->n && G->n == agg->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices and a graph of %" PetscInt_FMT, agg->n, G->m);
  Q->m = nc;
  Q->n = nc;
  Q->a = NULL;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)nc + 1, sizeof(PetscInt), &Q->i));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nc, sizeof(PetscInt), &mark));
  for (PetscInt c = 0; c < nc; c++) mark[c] = -1;
  for (PetscInt c = 0; c < nc; c++) {
    Q->i[c] = nnz;
    nnz += HybQuotientRow(G, agg->parent, lists, c, mark, NULL);
  }
  Q->i[nc] = nnz;
  Q->nnz   = nnz;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &Q->j));
  for (PetscInt c = 0; c < nc; c++) mark[c] = -1;
  for (PetscInt c = 0; c < nc; c++) PetscCall(PetscSortInt(HybQuotientRow(G, agg->parent, lists, c, mark, Q->j + Q->i[c]), Q->j + Q->i[c]));
  PetscCall(HybArenaFree(work, &mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggCompose_Host(const HybExec *exec, HybAggregates *fine, const HybAggregates *coarse)
{
  PetscFunctionBegin;
  PetscCheck(coarse->n == fine->nc, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices, of which there are %" PetscInt_FMT, coarse->n, fine->nc);
  for (PetscInt c = 0; c < coarse->nc; c++) fine->lead[c] = -1;
  for (PetscInt v = 0; v < fine->n; v++) {
    const PetscInt c = fine->parent[v] < 0 ? -1 : coarse->parent[fine->parent[v]];

    fine->parent[v] = c;
    if (c >= 0 && fine->lead[c] < 0) fine->lead[c] = v;
  }
  fine->nc = coarse->nc;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the graph Q of G's aggregates, and its own ones, all from work */
static PetscErrorCode HybAggNext(const HybExec *exec, HybArena *work, const HybCSR *G, const HybAggregates *agg, HybCSR *Q, HybAggregates *next)
{
  const HybAggOps *ops = exec->backend->agg;
  HybAggLists      lists;

  PetscFunctionBegin;
  PetscCall((*ops->lists)(exec, work, work, G, 1, HYB_AGG_NATURAL, agg, &lists));
  PetscCall((*ops->quotient)(exec, work, work, G, agg, &lists, Q));
  PetscCall(HybArenaFree(work, &lists.member, &lists.begin));
  PetscCall((*ops->aggregates)(exec, work, work, Q, 1, HYB_AGG_NATURAL, 0, next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybAggFree(HybArena *work, HybCSR *Q, HybAggregates *agg)
{
  PetscFunctionBegin;
  PetscCall(HybArenaFree(work, &agg->lead, &agg->parent, &Q->j, &Q->i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggFind(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, const HybAggRules *rules, HybAggregates *agg, HybAggLists *lists)
{
  const HybAggOps *ops  = exec->backend->agg;
  HybCSR           last = *G, Q;
  HybAggregates    of, next;

  PetscFunctionBegin;
  PetscCheck(rules->distance == 1 || (rules->hops == 1 && rules->distance > 1 && rules->distance <= HYB_AGG_DISTANCES), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Aggregates of distance %d by %d steps", rules->distance, rules->hops);
  PetscCall((*ops->aggregates)(exec, keep, work, G, rules->hops, rules->order, rules->longest, agg));
  of = *agg;
  for (int k = 1; k < rules->distance; k++) {
    PetscCall(HybAggNext(exec, work, &last, &of, &Q, &next));
    PetscCall((*ops->compose)(exec, agg, &next));
    if (k > 1) PetscCall(HybAggFree(work, &last, &of));
    last = Q;
    of   = next;
  }
  if (rules->distance > 1) PetscCall(HybAggFree(work, &last, &of));
  if (lists) PetscCall((*ops->lists)(exec, keep, work, G, rules->hops, rules->order, agg, lists));
  PetscFunctionReturn(PETSC_SUCCESS);
}
