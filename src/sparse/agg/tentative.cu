/*
  tentative.cu: the tentative prolongator of one near-null vector on the device; tentative.c has the rules, column.h the
  arithmetic, which is the host's.

  The vector of ones needs the sizes of the aggregates alone. For another one the members of each aggregate are listed,
  ascending, and a sub-warp goes along each: the largest modulus, then squares, which the lanes fetch
  together and each adds in the members' order, the host's.

  Memory: an integer for each aggregate; for a vector 3 n integers, and the sort's. Time: O(n).
*/
#include "aggops.cuh"
#include "column.h"

namespace {

/* G lanes an aggregate */
template <int G>
__global__ void Columns(PetscInt nc, const PetscInt *__restrict__ begin, const PetscInt *__restrict__ member, const PetscInt *__restrict__ lead, const HybScalar *__restrict__ b, HybScalar *__restrict__ q, HybScalar *__restrict__ coarse)
{
  const int        rank = HybGroup<G>::rank();
  const PetscCount c    = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index();

  if (c >= nc) return;
  const PetscInt  from = begin[c], to = begin[c + 1], first = lead[c];
  const PetscReal head = HYB_AGG_REAL(b[first]);
  PetscReal       most = 0, sum = 0;

  for (PetscInt k = from + rank; k < to; k += G) {
    const PetscInt v = member[k];

    if (v != first) most = HybAggLarger(most, HYB_AGG_REAL(b[v]));
  }
  most                  = HybSubwarpReduce<G>(most, [](PetscReal x, PetscReal y) { return HybAggLarger(x, y); });
  const PetscReal scale = HybAggScale(most, head);
  for (PetscInt k = from; k < to; k += G) {
    const PetscReal mine = k + rank < to ? HYB_AGG_REAL(b[member[k + rank]]) : 0;

    for (int g = 0; g < G; g++) {
      const PetscReal x = HybShfl(HybSubwarpMask<G>(), mine, g, G);

      if (k + g < to) sum = HybAggAddSquare(sum, x, scale);
    }
  }
  const PetscReal r = HybAggNorm(most, head, sum, scale);
  if (rank == 0) coarse[c] = r;
  for (PetscInt k = from + rank; k < to; k += G) {
    const PetscInt v = member[k];

    q[v] = HybAggEntry(most, (PetscBool)(v == first), HYB_AGG_REAL(b[v]), r);
  }
}

} // namespace

PetscErrorCode HybAggColumns_CUDA(const HybExec *exec, HybArena *work, const HybAggregates *agg, const HybScalar *b, HybScalar *q, HybScalar *coarse)
{
  const PetscInt n = agg->n, nc = agg->nc, *parent = agg->parent, *lead = agg->lead;
  PetscInt      *size;
  HybAggLists    lists;

  PetscFunctionBegin;
  if (!b) {
    PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, nc, sizeof(PetscInt), &size));
    HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) {
      if (parent[v] >= 0) HybAtomicAdd(&size[parent[v]], 1);
    });
    HYB_FOR_EACH(exec, nc, [=] __device__(PetscCount c) { coarse[c] = HybAggOnes(size[c]); });
    HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) { q[v] = parent[v] >= 0 ? 1 / HYB_AGG_REAL(coarse[parent[v]]) : 0; });
    PetscCall(HybArenaFree(work, &size));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybAggListsByKind(exec, work, work, n, nc, parent, 1, nullptr, &lists));
  PetscCall(exec->backend->zero(exec, q, (size_t)n * sizeof(HybScalar)));
  /* about two rounds of a mean aggregate's members */
  AGG_LAUNCH(exec, RowWidth(n, nc, 2), nc, PETSC_MAX_INT, (Columns<WIDTH>), nc, lists.begin, lists.member, lead, b, q, coarse);
  PetscCall(HybArenaFree(work, &lists.member, &lists.begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}
