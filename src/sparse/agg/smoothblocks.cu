/*
  smoothblocks.cu: the prolongator of several unknowns a vertex on the device, as it is or smoothed; smoothblocks.c says
  what a row is, smooth.cu how it is made. Entries of one vertex stand together, so that only the first of each such run
  is sorted, by (parent, place). A parent stands for nvec columns: a thread sums each (parent, vector), run by run, in
  A's order, the host's bits; neighbouring threads read neighbouring entries of q.

  Memory beside the result: 2 integers a row. Time: O(nnz (nvec + log^2 of the row's length)).
*/
#include "aggops.cuh"

namespace {

#define SMOOTH_PLACE 10 /* bits of a place in the row */
const uint64_t SMOOTH_NONE = ~(uint64_t)0;

__global__ void BlockPresent(PetscInt m, PetscInt bs, PetscInt nvec, const PetscInt *__restrict__ parent, PetscInt *__restrict__ count)
{
  const PetscCount r = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (r < m) count[r] = parent[r / bs] >= 0 ? nvec : 0;
}

__global__ void BlockUnsmoothed(PetscCount entries, PetscInt bs, PetscInt nvec, const PetscInt *__restrict__ parent, const HybScalar *__restrict__ q, const PetscInt *__restrict__ pi, PetscInt *__restrict__ pj, HybScalar *__restrict__ pa)
{
  const PetscCount e = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (e >= entries) return;
  const PetscCount r = e / nvec;
  const PetscInt   t = (PetscInt)(e % nvec), c = parent[r / bs];

  if (c < 0) return;
  pj[pi[r] + t] = c * nvec + t;
  pa[pi[r] + t] = q[e];
}

__global__ void BlockLengths(PetscInt m, const PetscInt *__restrict__ ai, PetscInt *__restrict__ length)
{
  const PetscCount r = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (r < m) length[r] = ai[r + 1] - ai[r];
}

__global__ void BlockTimes(PetscInt m, PetscInt nvec, PetscInt *__restrict__ count)
{
  const PetscCount r = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (r < m) count[r] *= nvec;
}

/* The parents of a row's runs, each with its place, sorted; those of none come last. How many runs there are;
 *diagonal, if it is asked for: the row's entry of the diagonal, where there is one. */
template <int G>
static __device__ __forceinline__ int BlockRuns(const AggSmooth &s, PetscInt r, int n, uint64_t *pair, int *scratch, HybScalar *diagonal)
{
  const PetscInt begin = s.ai[r];
  int            runs  = 0;

  for (int first = 0; first < n; first += G) {
    const int      e = first + HybGroup<G>::rank();
    const PetscInt v = e < n ? s.aj[begin + e] : 0, u = v / s.bs;
    const int      head = e < n && (e == 0 || s.aj[begin + e - 1] / s.bs != u);
    int            here;
    const int      before = HybGroup<G>::exclusiveSum(head, scratch, &here);

    if (head) {
      const PetscInt c = s.parent[u];

      pair[runs + before] = c < 0 ? SMOOTH_NONE : ((uint64_t)c << SMOOTH_PLACE) | (unsigned)e;
    }
    if (diagonal && e < n && v == r) *diagonal = s.aa[begin + e];
    runs += here;
  }
  HybGroup<G>::sync();
  HybGroupSort<G>(pair, (unsigned)runs);
  return runs;
}

static __device__ __forceinline__ bool BlockHead(const uint64_t *pair, int e, int n)
{
  return e < n && pair[e] != SMOOTH_NONE && (e == 0 || pair[e] >> SMOOTH_PLACE != pair[e - 1] >> SMOOTH_PLACE);
}

template <int G, int MOST>
__global__ void BlockCount(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows, PetscInt *__restrict__ count)
{
  HYB_SHARED(uint64_t, allpairs, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(int, scratch, HYB_WARP);
  uint64_t *const pair = allpairs + HybGroup<G>::index() * MOST;

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r     = rows[k];
    const int      runs  = BlockRuns<G>(s, r, (int)(s.ai[r + 1] - s.ai[r]), pair, scratch, nullptr);
    int            found = 0;

    for (int e = HybGroup<G>::rank(); e < runs; e += G) found += BlockHead(pair, e, runs);
    found = HybGroup<G>::reduce(found, scratch, HybSum());
    if (HybGroup<G>::rank() == 0) count[r] = found;
    HybGroup<G>::sync();
  }
}

template <int G, int MOST>
__global__ void BlockFill(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows)
{
  const int rank = HybGroup<G>::rank(), group = HybGroup<G>::index();

  HYB_SHARED(uint64_t, allpairs, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(unsigned short, allbegins, (MOST + 1) * HybGroup<G>::GROUPS);
  HYB_SHARED(HybScalar, alldiagonals, HybGroup<G>::GROUPS);
  HYB_SHARED(int, scratch, HYB_WARP);
  uint64_t *const       pair   = allpairs + group * MOST;
  unsigned short *const begins = allbegins + group * (MOST + 1);

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + group; k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows[k], begin = s.ai[r], own = s.parent[r / s.bs], out = s.pi[r];
    const int      n       = (int)(s.ai[r + 1] - begin);
    int            parents = 0;

    if (rank == 0) alldiagonals[group] = HybScalar(0);
    HybGroup<G>::sync();
    const int runs = BlockRuns<G>(s, r, n, pair, scratch, &alldiagonals[group]);
    for (int first = 0; first < runs; first += G) {
      const int e = first + rank, head = BlockHead(pair, e, runs);
      int       here;
      const int before = HybGroup<G>::exclusiveSum(head, scratch, &here);

      if (head) begins[parents + before] = (unsigned short)e;
      parents += here;
    }
    HybGroup<G>::sync();
    for (int h = rank; h < parents * s.nvec; h += G) {
      const int      p = h / s.nvec, t = h % s.nvec, from = begins[p], to = p + 1 < parents ? begins[p + 1] : runs;
      const PetscInt c     = (PetscInt)(pair[from] >> SMOOTH_PLACE);
      HybScalar      sum   = HybScalar(0);
      bool           empty = true;

      for (int e = from; e < to && pair[e] != SMOOTH_NONE; e++) {
        PetscInt       at = begin + (PetscInt)(pair[e] & ((1 << SMOOTH_PLACE) - 1)), v = s.aj[at];
        const PetscInt limit = v - v % s.bs + s.bs;

        while (1) {
          const HybScalar product = HybMul(s.aa[at], s.q[(PetscCount)v * s.nvec + t]);

          sum   = empty ? product : sum + product;
          empty = false;
          if (++at == begin + n) break;
          v = s.aj[at];
          if (v >= limit) break;
        }
      }
      sum           = AggSmoothValue(s, sum, alldiagonals[group]);
      s.pj[out + h] = c * s.nvec + t;
      s.pa[out + h] = c == own ? sum + s.q[(PetscCount)r * s.nvec + t] : sum;
    }
    HybGroup<G>::sync();
  }
}

} // namespace

PetscErrorCode HybAggUnsmoothedBlocks_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, HybCSR *P)
{
  const PetscInt   m       = agg->n * block->bs;
  const PetscCount entries = (PetscCount)m * block->nvec;
  PetscInt        *count, nnz;

  PetscFunctionBegin;
  P->m   = m;
  P->n   = agg->nc * block->nvec;
  P->nnz = 0;
  P->i = P->j = nullptr;
  P->a        = nullptr;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)m + 1, sizeof(PetscInt), &P->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &count));
  HYB_LAUNCH(BlockPresent, HybBlocks(m, AGG_THREADS), AGG_THREADS, 0, exec->stream, m, block->bs, block->nvec, (const PetscInt *)agg->parent, count);
  PetscCall(HybScanCounts(exec, work, m, count, P->i, nullptr, &P->nnz));
  PetscCall(HybArenaFree(work, &count));
  PetscCall(HybIntCast(P->nnz, "nonzeros of a prolongator", &nnz));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(HybScalar), &P->a));
  HYB_LAUNCH(BlockUnsmoothed, HybBlocks(entries, AGG_THREADS), AGG_THREADS, 0, exec->stream, entries, block->bs, block->nvec, (const PetscInt *)agg->parent, q, (const PetscInt *)P->i, P->j, P->a);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggSmoothedBlocks_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  PetscInt  binptr[AGG_CLASSES + 1], *count, *rows;
  AggSmooth s = {A->m, agg->nc, A->i, A->j, agg->parent, A->a, q, HybScalar(-omega), nullptr, nullptr, nullptr, block->bs, block->nvec};

  PetscFunctionBegin;
  PetscCheck(A->m <= A->n && A->n == agg->n * block->bs, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, block->bs, A->m, A->n);
  PetscCall(HybCheckEntries(exec, A->nnz, "a matrix"));
  P->m   = A->m;
  P->n   = agg->nc * block->nvec;
  P->nnz = 0;
  P->i = P->j = nullptr;
  P->a        = nullptr;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &P->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &count));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &rows));
  HYB_LAUNCH(BlockLengths, HybBlocks(A->m, AGG_THREADS), AGG_THREADS, 0, exec->stream, A->m, (const PetscInt *)A->i, count);
  PetscCall(HybAggClasses(exec, work, A->m, count, rows, binptr));
  PetscCall(AggEachClass(binptr, [&](auto G, auto MOST, PetscInt n, PetscInt first) {
    HYB_LAUNCH((BlockCount<G, MOST>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n,
               (const PetscInt *)rows + first, count);
    return PETSC_SUCCESS;
  }));
  PetscCall(HybAggSmoothLong(exec, work, &s, A->nnz, A->m - binptr[AGG_CLASSES - 1], rows + binptr[AGG_CLASSES - 1], count));
  HYB_LAUNCH(BlockTimes, HybBlocks(A->m, AGG_THREADS), AGG_THREADS, 0, exec->stream, A->m, block->nvec, count);
  PetscCall(HybAggSmoothCounted(exec, keep, work, &count, &s, P));
  PetscCall(AggEachClass(binptr, [&](auto G, auto MOST, PetscInt n, PetscInt first) {
    HYB_LAUNCH((BlockFill<G, MOST>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n,
               (const PetscInt *)rows + first);
    return PETSC_SUCCESS;
  }));
  PetscCall(HybAggSmoothLong(exec, work, &s, A->nnz, A->m - binptr[AGG_CLASSES - 1], rows + binptr[AGG_CLASSES - 1], nullptr));
  PetscCall(HybArenaFree(work, &rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}
