/*
  look.cu: whether a graph is one that the rules of aggregation were proven for.

  Symmetry: each entry (r,c) right of the diagonal looks for (c,r) in row c, where a stencil's mirror has it, else by
  bisection. If all are found and there are as many entries left of the diagonal, there are no others.

  Rows that are longer than a sub-warp takes are looked at by blocks, and only where the first pass has met one.

  Memory: a few words. Time: O(nnz log longest), one reading of the pattern and half as many searches, of one place in
  stencils.
*/
#include "aggops.cuh"

namespace {

/* sums of a kernel, and the longest row */
enum {
  LOOK_NODIAGONAL,
  LOOK_ALONE,
  LOOK_EMPTY,
  LOOK_MISSING,
  LOOK_RIGHT,
  LOOK_LEFT,
  LOOK_LONGEST,
  LOOK_WORDS
};

/* G lanes a row: all rows but the long ones, or the listed ones */
template <int G>
__global__ void Look(PetscInt n, const PetscInt *__restrict__ gi, const PetscInt *__restrict__ gj, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ nrows, PetscCount *__restrict__ sums)
{
  constexpr int  THREADS         = HybGroup<G>::THREADS;
  const int      rank            = HybGroup<G>::rank();
  const PetscInt last            = rows ? *nrows : n;
  PetscCount     sum[LOOK_WORDS] = {0, 0, 0, 0, 0, 0, 0};

  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, found, HYB_WARP);
  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < last; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[k] : (PetscInt)k, begin = gi[r], end = gi[r + 1];
    PetscInt       diagonal = 0;

    if (!rows && rank == 0) sum[LOOK_LONGEST] = HybMax()(sum[LOOK_LONGEST], (PetscCount)(end - begin));
    if (!rows && end - begin > AGG_LONG) continue;
    for (PetscInt e = begin + rank; e < end; e += G) {
      const PetscInt c = gj[e];

      if (c == r)
        diagonal = 1;
      else if (c < r)
        sum[LOOK_LEFT]++;
      else {
        const PetscInt to = gi[c + 1];

        sum[LOOK_RIGHT]++;
        sum[LOOK_MISSING] += AggMirror(gj, gi[c], to, e - begin, r) == to;
      }
    }
    diagonal = HybGroup<G>::reduce(diagonal, found, HybMax());
    if (rank == 0) {
      sum[LOOK_NODIAGONAL] += !diagonal;
      sum[LOOK_ALONE] += end - begin < 2;
      sum[LOOK_EMPTY] += end == begin;
    }
  }
  for (int s = 0; s < LOOK_LONGEST; s++) {
    const PetscCount all = HybBlockSum<THREADS>(sum[s], scratch);

    if (threadIdx.x == 0 && all) HybAtomicAdd(&sums[s], all);
  }
  const PetscCount longest = HybBlockMax<THREADS>(sum[LOOK_LONGEST], scratch);
  if (threadIdx.x == 0 && longest) HybAtomicMax(&sums[LOOK_LONGEST], longest);
}

} // namespace

PetscErrorCode HybAggLongRows(const HybExec *exec, HybArena *work, const HybCSR *G, PetscInt longest, AggLong *l)
{
  PetscFunctionBegin;
  l->rows = l->count = nullptr;
  l->room            = longest && longest <= AGG_LONG ? 0 : (PetscInt)(G->nnz / (AGG_LONG + 1));
  if (!l->room) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, l->room, sizeof(PetscInt), &l->rows));
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, 1, sizeof(PetscInt), &l->count));
  HYB_FOR_EACH(exec, G->m, [gi = G->i, rows = l->rows, count = l->count] __device__(PetscCount r) {
    if (gi[r + 1] - gi[r] > AGG_LONG) rows[HybAtomicAdd(count, 1)] = (PetscInt)r;
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggLongFree(HybArena *work, AggLong *l)
{
  PetscFunctionBegin;
  PetscCall(HybArenaFree(work, &l->count, &l->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggLook_CUDA(const HybExec *exec, HybArena *work, const HybCSR *G, HybAggLook *look)
{
  const PetscInt *gi = G->i, *gj = G->j;
  PetscCount     *sums, host[LOOK_WORDS];
  AggLong         l;

  PetscFunctionBegin;
  PetscCheck(G->m == G->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, G->m, G->n);
  PetscCall(HybCheckEntries(exec, G->nnz, "a graph"));
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, LOOK_WORDS, sizeof(*sums), &sums));
  AGG_LAUNCH(exec, RowWidth(G->nnz, G->m, 2), G->m, 16 * AGG_BLOCKS, (Look<WIDTH>), G->m, gi, gj, nullptr, nullptr, sums);
  PetscCall(exec->backend->copy(exec, host, sums, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  if (host[LOOK_LONGEST] > AGG_LONG) { /* hardly ever */
    PetscCall(HybAggLongRows(exec, work, G, 0, &l));
    HYB_LAUNCH((Look<AGG_THREADS>), HybMin()(l.room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, G->m, gi, gj, l.rows, l.count, sums);
    PetscCall(HybAggLongFree(work, &l));
    PetscCall(exec->backend->copy(exec, host, sums, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  }
  PetscCall(HybArenaFree(work, &sums));
  look->nodiagonal = host[LOOK_NODIAGONAL];
  look->alone      = host[LOOK_ALONE];
  look->empty      = host[LOOK_EMPTY];
  look->longest    = (PetscInt)host[LOOK_LONGEST];
  look->symmetric  = (PetscBool)(!host[LOOK_MISSING] && host[LOOK_RIGHT] == host[LOOK_LEFT]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
