/*
  filter.cu: the graph without its weak edges; filter.c says which they are. An entry's partner across the diagonal is
  looked for by bisection in the other row.

    scales      s[r], a thread a row, and rows without a diagonal
    mark        which entries stay, how many in each row        scan -> G->i
    fill        their columns

  Memory: n integers, n reals, a byte for each entry. Time: O(nnz), and, with the transpose, a search for each entry.
*/
#include "aggops.cuh"
#include "edge.h"

namespace {

/* sums of the kernels */
enum {
  FILTER_NODIAGONAL,
  FILTER_ALONE, /* entries without a partner */
  FILTER_CLOSE,
  FILTER_WORDS
};

struct Filter {
  HybAggFilter     f;
  PetscInt         n;
  const PetscInt  *wi, *wj;
  const HybScalar *wa;
  const PetscReal *scale;
  unsigned char   *stays;
  PetscInt        *length;
  PetscCount      *sums;
};

__global__ void Scales(Filter a, PetscReal *__restrict__ scale)
{
  const PetscCount r       = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;
  PetscCount       missing = 0;

  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  if (r < a.n) {
    const PetscInt end = a.wi[r + 1], k = RowPlace(a.wj, a.wi[r], end, (PetscInt)r);

    missing  = k == end;
    scale[r] = missing ? 0 : HybEdgeScale(HybEdgeWeight(a.f.symmetrize, a.wa[k], a.wa[k]));
  }
  missing = HybBlockSum<AGG_THREADS>(missing, scratch);
  if (threadIdx.x == 0 && missing) HybAtomicAdd(&a.sums[FILTER_NODIAGONAL], missing);
}

/* G lanes a row: all rows but the long ones, or the listed ones */
template <int G>
__global__ void Mark(Filter a, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ nrows)
{
  constexpr int  THREADS = HybGroup<G>::THREADS;
  const int      rank    = HybGroup<G>::rank();
  const PetscInt last    = rows ? *nrows : a.n;
  PetscCount     alone = 0, close = 0;

  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, counts, HYB_WARP);
  for (PetscCount l = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); l < last; l += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[l] : (PetscInt)l, begin = a.wi[r], end = a.wi[r + 1];
    PetscInt       here = 0;

    if (!rows && end - begin > AGG_LONG) continue;
    for (PetscInt k = begin + rank; k < end; k += G) {
      const PetscInt  c      = a.wj[k];
      const HybScalar w      = a.wa[k];
      HybScalar       across = w;

      if (a.f.symmetrize && c != r) {
        const PetscInt to = a.wi[c + 1], at = AggMirror(a.wj, a.wi[c], to, k - begin, r);

        if (at == to)
          alone++;
        else
          across = a.wa[at];
      }
      const PetscReal strength = HybEdgeStrength(HybEdgeWeight(a.f.symmetrize, w, across), a.scale[r], a.scale[c]);
      const bool      stay     = HybEdgeStays(&a.f, (PetscBool)(c == r), strength);

      a.stays[k] = stay;
      here += stay;
      close += c != r && HybEdgeClose(&a.f, strength);
    }
    here = HybGroup<G>::reduce(here, counts, HybSum());
    if (rank == 0) a.length[r] = here;
  }
  alone = HybBlockSum<THREADS>(alone, scratch);
  if (threadIdx.x == 0 && alone) HybAtomicAdd(&a.sums[FILTER_ALONE], alone);
  close = HybBlockSum<THREADS>(close, scratch);
  if (threadIdx.x == 0 && close) HybAtomicAdd(&a.sums[FILTER_CLOSE], close);
}

template <int G>
__global__ void Fill(Filter a, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ nrows, const PetscInt *__restrict__ gi, PetscInt *__restrict__ gj)
{
  const int      rank = HybGroup<G>::rank();
  const PetscInt last = rows ? *nrows : a.n;

  HYB_SHARED(int, scratch, HYB_WARP);
  for (PetscCount l = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); l < last; l += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[l] : (PetscInt)l, begin = a.wi[r], end = a.wi[r + 1];
    PetscInt       to = gi[r];

    if (!rows && end - begin > AGG_LONG) continue;
    for (PetscInt first = begin; first < end; first += G) {
      const PetscInt k    = first + rank;
      const int      stay = k < end && a.stays[k];
      int            here;
      const int      before = HybGroup<G>::exclusiveSum(stay, scratch, &here);

      if (stay) gj[to + before] = a.wj[k];
      to += here;
    }
  }
}

} // namespace

PetscErrorCode HybAggModuli_CUDA(const HybExec *exec, PetscCount n, const HybScalar *v, PetscReal *modulus)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { modulus[k] = HybEdgeModulus(v[k]); });
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggWeights_CUDA(const HybExec *exec, HybArena *keep, HybArena *, const HybCSR *A, PetscInt bs, HybCSR *G)
{
  PetscFunctionBegin;
  PetscCheck(bs > 0 && G->m * bs == A->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of %" PetscInt_FMT " rows", G->m, bs, A->m);
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, G->nnz, sizeof(HybScalar), &G->a));
  /* a thread an edge: its block of A, row by row */
  HYB_FOR_EACH(exec, G->nnz, [bs, A = *A, G = *G] __device__(PetscCount e) {
    const PetscInt v = RowOfEntry(G.i, 0, G.m, (PetscInt)e), first = G.j[e] * bs;
    PetscReal      sum = 0;

    for (PetscInt r = v * bs; r < v * bs + bs; r++) {
      const PetscInt end = A.i[r + 1];

      for (PetscInt k = RowLowerBound(A.j, A.i[r], end, first); k < end && A.j[k] - first < bs; k++) sum += HybEdgePart(bs, A.a[k]);
    }
    G.a[e] = sum;
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggFilter_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *W, const HybAggFilter *f, HybCSR *G, HybAggFiltered *found)
{
  Filter     a = {*f, W->m, W->i, W->j, W->a, nullptr, nullptr, nullptr, nullptr};
  PetscCount host[FILTER_WORDS];
  PetscReal *scale;
  AggLong    l;

  PetscFunctionBegin;
  PetscCheck(W->m == W->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, W->m, W->n);
  PetscCall(HybCheckEntries(exec, W->nnz, "a graph"));
  *G = HybCSR{W->m, W->m, 0, nullptr, nullptr, nullptr};
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, W->m, sizeof(PetscReal), &scale));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, W->nnz, 1, &a.stays));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, W->m, sizeof(PetscInt), &a.length));
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, FILTER_WORDS, sizeof(PetscCount), &a.sums));
  PetscCall(HybAggLongRows(exec, work, W, 0, &l));
  HYB_LAUNCH(Scales, HybBlocks(W->m, AGG_THREADS), AGG_THREADS, 0, exec->stream, a, scale);
  a.scale = scale;
  AGG_LAUNCH(exec, RowWidth(W->nnz, W->m, 2), W->m, 16 * AGG_BLOCKS, (Mark<WIDTH>), a, nullptr, nullptr);
  if (l.room) HYB_LAUNCH((Mark<AGG_THREADS>), HybMin()(l.room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, a, l.rows, l.count);
  PetscCall(exec->backend->copy(exec, host, a.sums, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  found->nodiagonal = host[FILTER_NODIAGONAL];
  found->close      = host[FILTER_CLOSE];
  found->paired     = (PetscBool)!host[FILTER_ALONE];
  if (found->paired) {
    PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, (PetscCount)W->m + 1, sizeof(PetscInt), &G->i));
    PetscCall(HybScanCounts(exec, work, W->m, a.length, G->i, nullptr, &G->nnz));
    PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, G->nnz, sizeof(PetscInt), &G->j));
    AGG_LAUNCH(exec, RowWidth(W->nnz, W->m, 2), W->m, PETSC_MAX_INT, (Fill<WIDTH>), a, nullptr, nullptr, G->i, G->j);
    if (l.room) HYB_LAUNCH((Fill<AGG_THREADS>), HybMin()(l.room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, a, l.rows, l.count, G->i, G->j);
  }
  PetscCall(HybAggLongFree(work, &l));
  PetscCall(HybArenaFree(work, &a.sums, &a.length, &a.stays, &scale));
  PetscFunctionReturn(PETSC_SUCCESS);
}
