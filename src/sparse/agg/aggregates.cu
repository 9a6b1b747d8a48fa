/*
  aggregates.cu: the aggregates of the roots that roots.cu finds, and their numbers.

  Two steps. Roots are more than two steps apart, so a vertex has one root beside it at most: near(w), written by the
  roots along their own rows. Where there is none, the vertex belongs to the first root, in the order of the search,
  that is near one of its neighbours.

    number the roots, ascending           a scan
    near(w) = c for w in the row of root c
    parent(v) = near(v), else the near(w), w in row v, whose root comes first

  One step. near(v) is set for the roots alone, and the same last sweep finds the first root beside each other vertex.

  Memory: 2 n integers and 2 for each aggregate, beside the result and what roots.cu takes. Time: O(nnz), two sweeps at
  most.
*/
#include "aggops.cuh"

namespace {

/* G threads a root: its neighbours are near it */
template <int G>
__global__ void Near(PetscInt nc, const PetscInt *__restrict__ gi, const PetscInt *__restrict__ gj, const PetscInt *__restrict__ lead, PetscInt *__restrict__ near)
{
  for (PetscCount c = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); c < nc; c += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt v = lead[c], begin = gi[v], end = gi[v + 1];

    if (G <= HYB_WARP && end - begin > AGG_LONG) continue;
    if (G > HYB_WARP && end - begin <= AGG_LONG) continue;
    for (PetscInt e = begin + HybGroup<G>::rank(); e < end; e += G) near[gj[e]] = (PetscInt)c;
  }
}

/* G threads a vertex: all but those with long rows, or the listed ones. A root may have one beside it, whose it is
   not. */
template <int G>
__global__ void Parents(PetscInt n, const PetscInt *__restrict__ gi, const PetscInt *__restrict__ gj, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ nrows, const PetscInt *__restrict__ number, const PetscInt *__restrict__ near, const PetscInt *__restrict__ leadplace, PetscInt *__restrict__ parent)
{
  const int      rank = HybGroup<G>::rank();
  const PetscInt last = rows ? *nrows : n;

  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < last; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt v = rows ? rows[k] : (PetscInt)k, begin = gi[v], end = gi[v + 1];
    PetscInt       own = number[v + 1] > number[v] ? number[v] : near[v];

    if (!rows && end - begin > AGG_LONG) continue;
    if (own < 0) {
      PetscInt first = PETSC_MAX_INT;

      for (PetscInt e = begin + rank; e < end; e += G) {
        const PetscInt c = near[gj[e]];

        if (c >= 0 && leadplace[c] < first) {
          first = leadplace[c];
          own   = c;
        }
      }
      if (first != HybGroup<G>::reduce(first, scratch, HybMin())) own = -1;
      own = HybGroup<G>::reduce(own, scratch, HybMax());
    }
    if (rank == 0) parent[v] = own;
  }
}

/* one step: the smallest member comes first in the list */
__global__ void Smallest(PetscInt n, const PetscInt *__restrict__ parent, PetscInt *__restrict__ lead)
{
  const PetscCount v = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (v < n && parent[v] >= 0) HybAtomicMin(&lead[parent[v]], (PetscInt)v);
}

} // namespace

PetscErrorCode HybAggAggregates_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, int hops, HybAggOrder order, PetscInt longest, HybAggregates *agg)
{
  const PetscInt   n = G->m, *gi = G->i, *gj = G->j;
  const PetscCount blocks = HybBlocks(n, AGG_THREADS);
  PetscInt        *parent, *place, *key, *number, *lead, *leadplace;
  PetscCount       nc = 0;
  AggLong          l;

  PetscFunctionBegin;
  PetscCheck(G->m == G->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, G->m, G->n);
  PetscCheck(hops == 1 || hops == 2, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Aggregates reach 1 or 2 steps, not %d", hops);
  PetscCall(HybCheckEntries(exec, G->nnz, "a graph"));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, n, sizeof(PetscInt), &parent));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &place));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &key));
  PetscCall(HybAggPermutation_CUDA(exec, work, n, order, gi, place));
  PetscCall(HybAggLongRows(exec, work, G, longest, &l));
  /* vertices that are alone take no part; aggregates.c says which are */
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) {
    bool alone = hops == 2 || gi[v + 1] - gi[v] < 2;

    for (PetscInt e = gi[v]; hops == 2 && alone && e < gi[v + 1]; e++) alone = gi[gj[e] + 1] - gi[gj[e]] < 2;
    key[v] = alone ? PETSC_MAX_INT : place[v] + 1;
  });
  PetscCall(HybAggRoots_CUDA(exec, work, G, &l, hops, key, parent, &agg->rounds));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)n + 1, sizeof(PetscInt), &number));
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) { parent[v] = key[v] == 0; });
  PetscCall(HybScanCounts(exec, work, n, parent, number, nullptr, &nc));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, nc, sizeof(PetscInt), &lead));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, nc, sizeof(PetscInt), &leadplace));
  /* number: where a root's number stands; near replaces the keys */
  HYB_FOR_EACH(exec, n, [=, near = key] __device__(PetscCount v) {
    const PetscInt c    = number[v];
    const bool     root = number[v + 1] > c;

    near[v] = root ? c : -1;
    if (root) {
      lead[c]      = (PetscInt)v;
      leadplace[c] = place[v];
    }
  });
  if (hops == 2) {
    AGG_LAUNCH(exec, RowWidth(G->nnz, n, 2), nc, PETSC_MAX_INT, (Near<WIDTH>), (PetscInt)nc, gi, gj, lead, key);
    if (l.room) HYB_LAUNCH((Near<AGG_THREADS>), HybMin()(nc, (PetscCount)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, (PetscInt)nc, gi, gj, lead, key);
  }
  AGG_LAUNCH(exec, RowWidth(G->nnz, n, 2), n, PETSC_MAX_INT, (Parents<WIDTH>), n, gi, gj, nullptr, nullptr, number, key, leadplace, parent);
  if (l.room) HYB_LAUNCH((Parents<AGG_THREADS>), HybMin()(l.room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, n, gi, gj, l.rows, l.count, number, key, leadplace, parent);
  if (hops == 1) HYB_LAUNCH(Smallest, blocks, AGG_THREADS, 0, exec->stream, n, parent, lead);
  PetscCall(HybArenaFree(work, &leadplace, &number));
  PetscCall(HybAggLongFree(work, &l));
  PetscCall(HybArenaFree(work, &key, &place));
  agg->n      = n;
  agg->nc     = (PetscInt)nc;
  agg->parent = parent;
  agg->lead   = lead;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggCompose_CUDA(const HybExec *exec, HybAggregates *fine, const HybAggregates *coarse)
{
  const PetscCount blocks = HybBlocks(fine->n, AGG_THREADS);

  PetscFunctionBegin;
  PetscCheck(coarse->n == fine->nc, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices, of which there are %" PetscInt_FMT, coarse->n, fine->nc);
  HYB_FOR_EACH(exec, fine->n, [of = coarse->parent, parent = fine->parent] __device__(PetscCount v) {
    if (parent[v] >= 0) parent[v] = of[parent[v]];
  });
  PetscCall(HybAggFill(exec, coarse->nc, fine->lead));
  HYB_LAUNCH(Smallest, blocks, AGG_THREADS, 0, exec->stream, fine->n, fine->parent, fine->lead);
  fine->nc = coarse->nc;
  PetscFunctionReturn(PETSC_SUCCESS);
}
