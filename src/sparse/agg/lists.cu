/*
  lists.cu: the members of aggregates in the order of PETSc's lists, which lists.c says.

  The kind of a vertex (root, reached, handed over) and its aggregate make a key; a stable sort leaves members of one
  key ascending. The root that reached a vertex first is found by a sweep along the rows, as aggregates.cu does for
  vertices without a root beside them, but for all.

  Memory: 5 n integers, and the sort's. Time: O(nnz) for two steps, O(n) for one.
*/
#include "aggops.cuh"

namespace {

/* G lanes an aggregate: the vertices of its root's row are near it */
template <int G>
__global__ void NearPlaces(PetscInt nc, const PetscInt *__restrict__ gi, const PetscInt *__restrict__ gj, const PetscInt *__restrict__ lead, const PetscInt *__restrict__ place, PetscInt *__restrict__ near)
{
  for (PetscCount c = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); c < nc; c += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt v = lead[c], end = gi[v + 1];

    for (PetscInt e = gi[v] + HybGroup<G>::rank(); e < end; e += G) near[gj[e]] = place[v];
  }
}

/* G lanes a vertex: all but those with long rows, or the listed ones */
template <int G>
__global__ void Kinds(PetscInt n, const PetscInt *__restrict__ gi, const PetscInt *__restrict__ gj, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ nrows, const PetscInt *__restrict__ parent, const PetscInt *__restrict__ lead, const PetscInt *__restrict__ place, const PetscInt *__restrict__ near, PetscInt *__restrict__ kind)
{
  const PetscInt last = rows ? *nrows : n;

  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < last; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt v = rows ? rows[k] : (PetscInt)k, begin = gi[v], end = gi[v + 1], c = parent[v];
    PetscInt       first = PETSC_MAX_INT;

    if (c < 0 || (!rows && end - begin > AGG_LONG)) continue;
    for (PetscInt e = begin + HybGroup<G>::rank(); e < end; e += G) first = HybMin()(first, near[gj[e]]);
    first = HybGroup<G>::reduce(first, scratch, HybMin());
    if (HybGroup<G>::rank() == 0) kind[v] = lead[c] == v ? 0 : first == place[lead[c]] ? 1
                                                                                       : 2;
  }
}

} // namespace

PetscErrorCode HybAggListsByKind(const HybExec *exec, HybArena *keep, HybArena *work, PetscInt n, PetscInt nc, const PetscInt *parent, int kinds, const PetscInt *kind, HybAggLists *lists)
{
  PetscInt *key, *sorted;

  PetscFunctionBegin;
  /* the entries that 2^31 / 3 aggregates have at least are more than a PetscInt counts */
  PetscCheck(nc < PETSC_MAX_INT / kinds, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " aggregates in %d kinds are too many for PetscInt: use a PETSc built --with-64-bit-indices", nc, kinds);
  PetscCall(HybArenaCalloc(keep, HYB_MEM_DEVICE, (PetscCount)nc + 1, sizeof(PetscInt), &lists->begin));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, n, sizeof(PetscInt), &lists->member));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &key));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &sorted));
  /* vertices of no aggregate come last */
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) { key[v] = parent[v] < 0 ? kinds * nc : kinds * parent[v] + (kind ? kind[v] : 0); });
  PetscCall(HybSortPairsInt(exec, work, n, key, sorted, nullptr, lists->member, HybBits((PetscCount)kinds * (nc + 1))));
  /* where each aggregate begins in the sorted list: none is empty */
  HYB_FOR_EACH(exec, n, [=, begin = lists->begin] __device__(PetscCount k) {
    const PetscInt c = sorted[k] / kinds;

    if (k == 0 || c != sorted[k - 1] / kinds) begin[c] = (PetscInt)k;
    if (k == n - 1 && c < nc) begin[nc] = n;
  });
  PetscCall(HybArenaFree(work, &sorted, &key));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggLists_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggOrder order, const HybAggregates *agg, HybAggLists *lists)
{
  const PetscInt n = agg->n, nc = agg->nc, *gi = G->i, *gj = G->j;
  PetscInt      *kind = nullptr, *place, *near;
  AggLong        l;

  PetscFunctionBegin;
  PetscCheck(G->m == n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices and a graph of %" PetscInt_FMT, n, G->m);
  if (hops == 2) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &kind));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &place));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &near));
    PetscCall(HybAggPermutation_CUDA(exec, work, n, order, gi, place));
    PetscCall(HybAggFill(exec, n, near));
    PetscCall(HybAggLongRows(exec, work, G, 0, &l));
    AGG_LAUNCH(exec, RowWidth(G->nnz, n, 2), nc, PETSC_MAX_INT, (NearPlaces<WIDTH>), nc, gi, gj, agg->lead, place, near);
    AGG_LAUNCH(exec, RowWidth(G->nnz, n, 2), n, PETSC_MAX_INT, (Kinds<WIDTH>), n, gi, gj, nullptr, nullptr, agg->parent, agg->lead, place, near, kind);
    if (l.room) HYB_LAUNCH((Kinds<AGG_THREADS>), HybMin()(l.room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, n, gi, gj, l.rows, l.count, agg->parent, agg->lead, place, near, kind);
    PetscCall(HybAggLongFree(work, &l));
    PetscCall(HybArenaFree(work, &near, &place));
  }
  PetscCall(HybAggListsByKind(exec, keep, work, n, nc, agg->parent, kind ? 3 : 1, kind, lists));
  PetscCall(HybArenaFree(work, &kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}
