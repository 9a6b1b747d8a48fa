/*
  smooth.cu: the prolongator on the device, as it is or smoothed, without forming the tentative one or its product with
  A. smooth.c says what a row is.

  A group of threads takes a row of A into shared memory as pairs (parent, place in the row) in one word, and sorts it:
  the entries of one parent then stand together, in A's order, and the parents ascend. A thread for each of them adds
  its products one after the other: the host's sums, bit by bit. Rows are put into classes by their length, which say
  how many threads and how much shared memory a row gets; rows beyond the last class are sorted together by the device's
  own sort, see smoothlong.cu.

    classes     rows by length; one where rows are known to be much alike
    count       how many parents a row has: sort, count places where they change      scan -> P->i
    fill        sort, list where parents begin, sum

  Short rows are counted without sorting, each entry being compared with those before it.

  Memory beside the result: 2 n integers. Time: O(nnz log^2 of the row's length), two readings of A's columns and their
  parents, one of its values.
*/
#include "aggops.cuh"
#include "../plan/bins.cuh"

namespace {

#define SMOOTH_PLACE 10        /* bits of a place in the row */
#define SMOOTH_PAIR  32        /* rows up to this length are counted by comparing pairs */
#define SMOOTH_FEW   (1 << 17) /* rows up to which all may be taken by more threads than they need */
const uint64_t SMOOTH_NONE = ~(uint64_t)0;

__global__ void Present(PetscInt n, const PetscInt *__restrict__ parent, PetscInt *__restrict__ count)
{
  const PetscCount v = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (v < n) count[v] = parent[v] >= 0;
}

__global__ void Unsmoothed(PetscInt n, const PetscInt *__restrict__ parent, const HybScalar *__restrict__ q, const PetscInt *__restrict__ pi, PetscInt *__restrict__ pj, HybScalar *__restrict__ pa)
{
  const PetscCount v = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (v >= n || parent[v] < 0) return;
  pj[pi[v]] = parent[v];
  pa[pi[v]] = q[v];
}

__global__ void Lengths(PetscInt n, const PetscInt *__restrict__ ai, PetscInt *__restrict__ length)
{
  const PetscCount r = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (r < n) length[r] = ai[r + 1] - ai[r];
}

template <int G, int MOST>
__global__ void Count(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows, PetscInt *__restrict__ count)
{
  const int rank = HybGroup<G>::rank();

  HYB_SHARED(PetscInt, all, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  PetscInt *const list = all + HybGroup<G>::index() * MOST;

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[k] : (PetscInt)k, begin = s.ai[r];
    const int      n     = (int)(s.ai[r + 1] - begin);
    PetscInt       found = 0;

    for (int e = rank; e < n; e += G) {
      const PetscInt c = s.parent[s.aj[begin + e]];

      list[e] = MOST > SMOOTH_PAIR && c < 0 ? PETSC_MAX_INT : c;
    }
    HybGroup<G>::sync();
    if (MOST <= SMOOTH_PAIR) {
      for (int e = rank; e < n; e += G) {
        const PetscInt c = list[e];
        int            f = 0;

        while (f < e && list[f] != c) f++;
        found += c >= 0 && f == e;
      }
    } else {
      HybGroupSort<G>(list, (unsigned)n);
      for (int e = rank; e < n; e += G) found += list[e] != PETSC_MAX_INT && (e == 0 || list[e] != list[e - 1]);
    }
    found = HybGroup<G>::reduce(found, scratch, HybSum());
    if (rank == 0) count[r] = found;
    HybGroup<G>::sync();
  }
}

template <int G, int MOST>
__global__ void Fill(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows)
{
  const int rank = HybGroup<G>::rank(), group = HybGroup<G>::index();

  HYB_SHARED(uint64_t, allpairs, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(HybScalar, allproducts, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(unsigned short, allbegins, (MOST + 1) * HybGroup<G>::GROUPS);
  HYB_SHARED(HybScalar, alldiagonals, HybGroup<G>::GROUPS);
  HYB_SHARED(int, scratch, HYB_WARP);
  uint64_t *const       pair    = allpairs + group * MOST;
  HybScalar *const      product = allproducts + group * MOST;
  unsigned short *const begins  = allbegins + group * (MOST + 1);

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + group; k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[k] : (PetscInt)k, begin = s.ai[r], own = s.parent[r], out = s.pi[r];
    const int      n       = (int)(s.ai[r + 1] - begin);
    int            parents = 0;

    if (rank == 0) alldiagonals[group] = HybScalar(0);
    HybGroup<G>::sync();
    for (int e = rank; e < n; e += G) {
      const PetscInt  v = s.aj[begin + e], c = s.parent[v];
      const HybScalar a = s.aa[begin + e];

      if (v == r) alldiagonals[group] = a;
      pair[e]    = c < 0 ? SMOOTH_NONE : ((uint64_t)c << SMOOTH_PLACE) | (unsigned)e;
      product[e] = c < 0 ? HybScalar(0) : HybMul(a, s.q[v]);
    }
    HybGroup<G>::sync();
    HybGroupSort<G>(pair, (unsigned)n);
    for (int first = 0; first < n; first += G) {
      const int e = first + rank;
      int       here, head = e < n && pair[e] != SMOOTH_NONE && (e == 0 || pair[e] >> SMOOTH_PLACE != pair[e - 1] >> SMOOTH_PLACE);
      const int before = HybGroup<G>::exclusiveSum(head, scratch, &here);

      if (head) begins[parents + before] = (unsigned short)e;
      parents += here;
    }
    HybGroup<G>::sync();
    for (int h = rank; h < parents; h += G) {
      const int      from = begins[h], to = h + 1 < parents ? begins[h + 1] : n;
      const PetscInt c   = (PetscInt)(pair[from] >> SMOOTH_PLACE);
      HybScalar      sum = product[pair[from] & ((1 << SMOOTH_PLACE) - 1)];

      for (int e = from + 1; e < to && pair[e] != SMOOTH_NONE; e++) sum = sum + product[pair[e] & ((1 << SMOOTH_PLACE) - 1)];
      sum           = AggSmoothValue(s, sum, alldiagonals[group]);
      s.pj[out + h] = c;
      s.pa[out + h] = c == own ? sum + s.q[r] : sum;
    }
    HybGroup<G>::sync();
  }
}

/* the longest row of each class but the last */
const PetscCount limit[AGG_CLASSES - 1] = {AggClass<0>::MOST, AggClass<1>::MOST, AggClass<2>::MOST, AggClass<3>::MOST};

/* May all rows be of the longest one's class? They are then not sorted, which takes five launches and a wait: where
   most are nearly as long, and where there are few. */
bool SmoothAlike(const HybCSR *A, PetscInt longest, PetscInt *binptr)
{
  int c = 0;

  if (!longest || longest > limit[2]) return false;
  while (limit[c] < longest) c++;
  if (c && A->m > SMOOTH_FEW && A->nnz < A->m * limit[c] / 4) return false;
  for (int k = 0; k <= AGG_CLASSES; k++) binptr[k] = k > c ? A->m : 0;
  return true;
}

} // namespace

PetscErrorCode HybAggClasses(const HybExec *exec, HybArena *work, PetscInt m, const PetscInt *length, PetscInt *rows, PetscInt *binptr)
{
  PetscInt *counters, *devbinptr;

  PetscFunctionBegin;
  for (int c = 0; c <= AGG_CLASSES; c++) binptr[c] = 0;
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, 2 * AGG_CLASSES, sizeof(PetscInt), &counters));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, AGG_CLASSES + 1, sizeof(PetscInt), &devbinptr));
  PetscCall(HybPlanBinsAnyOrderInt(exec, m, length, AGG_CLASSES, limit, counters, rows, devbinptr, nullptr));
  PetscCall(exec->backend->copy(exec, binptr, devbinptr, (AGG_CLASSES + 1) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  PetscCall(HybArenaFree(work, &devbinptr));
  PetscCall(HybArenaFree(work, &counters));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggUnsmoothed_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybAggregates *agg, const HybScalar *q, HybCSR *P)
{
  const PetscInt   n      = agg->n;
  const PetscCount blocks = HybBlocks(n, AGG_THREADS);
  PetscInt        *count;

  PetscFunctionBegin;
  P->m   = n;
  P->n   = agg->nc;
  P->nnz = 0;
  P->i = P->j = nullptr;
  P->a        = nullptr;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(PetscInt), &P->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &count));
  HYB_LAUNCH(Present, blocks, AGG_THREADS, 0, exec->stream, n, (const PetscInt *)agg->parent, count);
  PetscCall(HybScanCounts(exec, work, n, count, P->i, nullptr, &P->nnz));
  PetscCall(HybArenaFree(work, &count));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(HybScalar), &P->a));
  HYB_LAUNCH(Unsmoothed, blocks, AGG_THREADS, 0, exec->stream, n, (const PetscInt *)agg->parent, q, (const PetscInt *)P->i, P->j, P->a);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from the rows' counts to arrays for P's entries */
PetscErrorCode HybAggSmoothCounted(const HybExec *exec, HybArena *keep, HybArena *work, PetscInt **count, AggSmooth *s, HybCSR *P)
{
  PetscInt nnz;

  PetscFunctionBegin;
  PetscCall(HybScanCounts(exec, work, P->m, *count, P->i, nullptr, &P->nnz));
  PetscCall(HybArenaFree(work, count));
  PetscCall(HybIntCast(P->nnz, "nonzeros of a prolongator", &nnz));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(HybScalar), &P->a));
  s->pi = P->i;
  s->pj = P->j;
  s->pa = P->a;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggSmoothed_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt longest, const HybAggregates *agg, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  PetscInt  binptr[AGG_CLASSES + 1], *count, *rows = nullptr;
  AggSmooth s = {A->m, agg->nc, A->i, A->j, agg->parent, A->a, q, HybScalar(-omega), nullptr, nullptr, nullptr, 1, 1};

  PetscFunctionBegin;
  PetscCheck(A->m <= agg->n && A->n == agg->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, A->m, A->n);
  PetscCall(HybCheckEntries(exec, A->nnz, "a matrix"));
  P->m   = A->m;
  P->n   = agg->nc;
  P->nnz = 0;
  P->i = P->j = nullptr;
  P->a        = nullptr;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &P->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &count));
  if (!SmoothAlike(A, longest, binptr)) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &rows));
    HYB_LAUNCH(Lengths, HybBlocks(A->m, AGG_THREADS), AGG_THREADS, 0, exec->stream, A->m, (const PetscInt *)A->i, count);
    PetscCall(HybAggClasses(exec, work, A->m, count, rows, binptr));
  }
  PetscCall(AggEachClass(binptr, [&](auto G, auto MOST, PetscInt n, PetscInt first) {
    HYB_LAUNCH((Count<G, MOST>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n,
               (const PetscInt *)(rows ? rows + first : nullptr), count);
    return PETSC_SUCCESS;
  }));
  PetscCall(HybAggSmoothLong(exec, work, &s, A->nnz, A->m - binptr[AGG_CLASSES - 1], rows ? rows + binptr[AGG_CLASSES - 1] : nullptr, count));
  PetscCall(HybAggSmoothCounted(exec, keep, work, &count, &s, P));
  PetscCall(AggEachClass(binptr, [&](auto G, auto MOST, PetscInt n, PetscInt first) {
    HYB_LAUNCH((Fill<G, MOST>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n,
               (const PetscInt *)(rows ? rows + first : nullptr));
    return PETSC_SUCCESS;
  }));
  PetscCall(HybAggSmoothLong(exec, work, &s, A->nnz, A->m - binptr[AGG_CLASSES - 1], rows ? rows + binptr[AGG_CLASSES - 1] : nullptr, nullptr));
  PetscCall(HybArenaFree(work, &rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}
