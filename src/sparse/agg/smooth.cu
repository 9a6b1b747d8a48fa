/*
  smooth.cu: the prolongator on the device, as it is or smoothed, without forming the tentative one or its product with
  A. smooth.c says what a row is.

  A group of threads takes a row of A into shared memory as pairs (parent, place in the row) in one word, and sorts it:
  the entries of one parent then stand together, in A's order, and the parents ascend. A thread for each of them adds
  its products one after the other: the host's sums, bit by bit. Rows are put into classes by their length, which say
  how many threads and how much shared memory a row gets; rows beyond the last class are sorted together by the device's
  own sort, see smoothlong.cu.

  A row whose own parent is none of them has it besides, among them: count has told fill.

    classes     rows by length; one where rows are known to be much alike
    count       entries of P: sort, count places where the parent changes      scan -> P->i
    fill        sort, list where parents begin, sum

  Of several unknowns a vertex the entries of one vertex stand together, so that only the first of each such run is
  sorted. A parent stands for nvec columns: a thread sums each (parent, vector), run by run, and neighbouring threads
  read neighbouring entries of q. One unknown and one vector (ONE) are an instance, which multiplies before it sorts,
  and whose short rows are counted without sorting, each entry being compared with those before it.

  Memory beside the result: 2 integers a row. Time: O(nnz (nvec + log^2 of the row's length)), two readings of A's
  columns and their parents, one of its values.
*/
#include "aggops.cuh"
#include "../plan/bins.cuh"

namespace {

#define SMOOTH_PLACE 10        /* bits of a place in the row */
#define SMOOTH_OWN   (1 << 12) /* more than the parents of a row of a class */
#define SMOOTH_PAIR  32        /* rows up to this length are counted by comparing pairs */
#define SMOOTH_FEW   (1 << 17) /* rows up to which all may be taken by more threads than they need */
const uint64_t SMOOTH_NONE = ~(uint64_t)0, PLACES = (1 << SMOOTH_PLACE) - 1;

/* the size of a block, which the compiler knows where it is ONE */
template <bool ONE>
static __device__ __forceinline__ PetscInt Size(PetscInt n)
{
  return ONE ? 1 : n;
}

template <bool ONE>
__global__ void Present(PetscInt m, HybAggBlock block, const PetscInt *__restrict__ parent, PetscInt *__restrict__ count)
{
  const PetscCount r = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (r < m) count[r] = parent[r / Size<ONE>(block.bs)] >= 0 ? Size<ONE>(block.nvec) : 0;
}

template <bool ONE>
__global__ void Unsmoothed(PetscCount entries, HybAggBlock block, const PetscInt *__restrict__ parent, const HybScalar *__restrict__ q, const PetscInt *__restrict__ pi, PetscInt *__restrict__ pj, HybScalar *__restrict__ pa)
{
  const PetscCount e    = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;
  const PetscInt   nvec = Size<ONE>(block.nvec);

  if (e >= entries) return;
  const PetscCount r = e / nvec;
  const PetscInt   t = (PetscInt)(e % nvec), c = parent[r / Size<ONE>(block.bs)];

  if (c < 0) return;
  pj[pi[r] + t] = c * nvec + t;
  pa[pi[r] + t] = q[e];
}

/* What a row's threads count: parents, and, above these, entries that lead to the own one; how many parents P has. Rows
   have no more than fit below. */
static __device__ __forceinline__ PetscInt Own(bool own)
{
  return own ? SMOOTH_OWN : 0;
}

static __device__ __forceinline__ PetscInt WithOwn(PetscInt found, PetscInt own)
{
  return found % SMOOTH_OWN + (own >= 0 && found < SMOOTH_OWN);
}

/* of ONE */
template <int G, int MOST>
__global__ void CountOne(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows, PetscInt *__restrict__ count)
{
  const int rank = HybGroup<G>::rank();

  HYB_SHARED(PetscInt, all, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  PetscInt *const list = all + HybGroup<G>::index() * MOST;

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[k] : (PetscInt)k, begin = s.ai[r], own = s.parent[r];
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
        found += (c >= 0 && f == e) + Own(c == own);
      }
    } else {
      HybGroupSort<G>(list, (unsigned)n);
      for (int e = rank; e < n; e += G) found += (list[e] != PETSC_MAX_INT && (e == 0 || list[e] != list[e - 1])) + Own(list[e] == own);
    }
    found = HybGroup<G>::reduce(found, scratch, HybSum());
    if (rank == 0) count[r] = WithOwn(found, own);
    HybGroup<G>::sync();
  }
}

/* The parents of a row's runs, each with its place, sorted; those of none come last. How many runs there are;
 *diagonal, if it is asked for: the row's entry of the diagonal, where there is one. */
template <int G>
static __device__ __forceinline__ int Runs(const AggSmooth &s, PetscInt r, int n, uint64_t *pair, int *scratch, HybScalar *diagonal)
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

static __device__ __forceinline__ bool Head(const uint64_t *pair, int e, int n)
{
  return e < n && pair[e] != SMOOTH_NONE && (e == 0 || pair[e] >> SMOOTH_PLACE != pair[e - 1] >> SMOOTH_PLACE);
}

template <int G, int MOST>
__global__ void Count(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows, PetscInt *__restrict__ count)
{
  HYB_SHARED(uint64_t, allpairs, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(int, scratch, HYB_WARP);
  uint64_t *const pair = allpairs + HybGroup<G>::index() * MOST;

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[k] : (PetscInt)k, own = s.parent[r / s.bs];
    const int      runs  = Runs<G>(s, r, (int)(s.ai[r + 1] - s.ai[r]), pair, scratch, nullptr);
    PetscInt       found = 0;

    for (int e = HybGroup<G>::rank(); e < runs; e += G) found += Head(pair, e, runs) + Own(pair[e] != SMOOTH_NONE && (PetscInt)(pair[e] >> SMOOTH_PLACE) == own);
    found = HybGroup<G>::reduce((int)found, scratch, HybSum());
    if (HybGroup<G>::rank() == 0) count[r] = WithOwn(found, own) * s.nvec;
    HybGroup<G>::sync();
  }
}

template <int G, int MOST, bool ONE>
__global__ void Fill(AggSmooth s, PetscInt nrows, const PetscInt *__restrict__ rows)
{
  const int      rank = HybGroup<G>::rank(), group = HybGroup<G>::index();
  const PetscInt bs = Size<ONE>(s.bs), nvec = Size<ONE>(s.nvec);

  HYB_SHARED(uint64_t, allpairs, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(HybScalar, allproducts, ONE ? MOST * HybGroup<G>::GROUPS : 1);
  HYB_SHARED(unsigned short, allbegins, (MOST + 1) * HybGroup<G>::GROUPS);
  HYB_SHARED(HybScalar, alldiagonals, HybGroup<G>::GROUPS);
  HYB_SHARED(int, scratch, HYB_WARP);
  uint64_t *const       pair    = allpairs + group * MOST;
  HybScalar *const      product = allproducts + (ONE ? group * MOST : 0);
  unsigned short *const begins  = allbegins + group * (MOST + 1);

  for (PetscCount k = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + group; k < nrows; k += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt r = rows ? rows[k] : (PetscInt)k, begin = s.ai[r], own = s.parent[r / bs], out = s.pi[r];
    const int      n       = (int)(s.ai[r + 1] - begin);
    int            parents = 0;

    if (rank == 0) alldiagonals[group] = HybScalar(0);
    HybGroup<G>::sync();
    if constexpr (ONE) {
      for (int e = rank; e < n; e += G) {
        const PetscInt  v = s.aj[begin + e], c = s.parent[v];
        const HybScalar a = s.aa[begin + e];

        if (v == r) alldiagonals[group] = a;
        pair[e]    = c < 0 ? SMOOTH_NONE : ((uint64_t)c << SMOOTH_PLACE) | (unsigned)e;
        product[e] = c < 0 ? HybScalar(0) : HybMul(a, s.q[v]);
      }
      HybGroup<G>::sync();
      HybGroupSort<G>(pair, (unsigned)n);
    }
    const int runs = ONE ? n : Runs<G>(s, r, n, pair, scratch, &alldiagonals[group]);
    for (int first = 0; first < runs; first += G) {
      const int e = first + rank, head = Head(pair, e, runs);
      int       here;
      const int before = HybGroup<G>::exclusiveSum(head, scratch, &here);

      if (head) begins[parents + before] = (unsigned short)e;
      parents += here;
    }
    HybGroup<G>::sync();
    const bool lacks = s.pi[r + 1] - out > parents * nvec; /* its own parent */
    for (int h = rank; h < parents * nvec; h += G) {
      const int      p = h / nvec, t = h % nvec, from = begins[p], to = p + 1 < parents ? begins[p + 1] : runs;
      const PetscInt c     = (PetscInt)(pair[from] >> SMOOTH_PLACE);
      HybScalar      sum   = HybScalar(0);
      bool           empty = true;

      if constexpr (ONE) {
        sum = product[pair[from] & PLACES];
        for (int e = from + 1; e < to && pair[e] != SMOOTH_NONE; e++) sum = sum + product[pair[e] & PLACES];
      }
      for (int e = from; !ONE && e < to && pair[e] != SMOOTH_NONE; e++) {
        PetscInt       at = begin + (PetscInt)(pair[e] & PLACES), v = s.aj[at];
        const PetscInt limit = v - v % bs + bs;

        while (1) {
          const HybScalar one = HybMul(s.aa[at], s.q[(PetscCount)v * nvec + t]);

          sum   = empty ? one : sum + one;
          empty = false;
          if (++at == begin + n) break;
          v = s.aj[at];
          if (v >= limit) break;
        }
      }
      const PetscInt place = out + h + (lacks && c > own ? nvec : 0);

      sum         = AggSmoothValue(s, sum, alldiagonals[group]);
      s.pj[place] = c * nvec + t;
      s.pa[place] = c == own ? sum + s.q[(PetscCount)r * nvec + t] : sum;
    }
    for (int t = rank; lacks && t < nvec; t += G) {
      int before = 0;

      while (before < parents && (PetscInt)(pair[begins[before]] >> SMOOTH_PLACE) < own) before++;
      s.pj[out + before * nvec + t] = own * nvec + t;
      s.pa[out + before * nvec + t] = s.q[(PetscCount)r * nvec + t];
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
  PetscCall(HybArenaFree(work, &devbinptr, &counters));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* for (bool ONE): launch(std::bool_constant<ONE>()) */
template <typename F>
static PetscErrorCode SmoothInstance(const HybAggBlock *block, F launch)
{
  return HybAggIsScalar(block) ? launch(std::true_type()) : launch(std::false_type());
}

/* from the rows' counts to arrays for P's entries */
static PetscErrorCode SmoothCounted(const HybExec *exec, HybArena *keep, HybArena *work, PetscInt **count, HybCSR *P)
{
  PetscInt nnz;

  PetscFunctionBegin;
  PetscCall(HybScanCounts(exec, work, P->m, *count, P->i, nullptr, &P->nnz));
  PetscCall(exec->backend->early(exec, P->i));
  PetscCall(HybArenaFree(work, count));
  PetscCall(HybIntCast(P->nnz, "nonzeros of a prolongator", &nnz));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(PetscInt), &P->j));
  PetscCall(HybArenaAlloc(keep, exec->result, P->nnz, sizeof(HybScalar), &P->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggUnsmoothed_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, HybCSR *P)
{
  const PetscInt   m       = agg->n * block->bs;
  const PetscCount entries = (PetscCount)m * block->nvec;
  PetscInt        *count;

  PetscFunctionBegin;
  *P = HybCSR{m, agg->nc * block->nvec, 0, nullptr, nullptr, nullptr};
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)m + 1, sizeof(PetscInt), &P->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &count));
  PetscCall(SmoothInstance(block, [&](auto ONE) {
    HYB_LAUNCH((Present<ONE>), HybBlocks(m, AGG_THREADS), AGG_THREADS, 0, exec->stream, m, *block, agg->parent, count);
    return PETSC_SUCCESS;
  }));
  PetscCall(SmoothCounted(exec, keep, work, &count, P));
  PetscCall(SmoothInstance(block, [&](auto ONE) {
    HYB_LAUNCH((Unsmoothed<ONE>), HybBlocks(entries, AGG_THREADS), AGG_THREADS, 0, exec->stream, entries, *block, agg->parent, q, P->i, P->j, P->a);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggSmoothed_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt longest, const HybAggregates *agg, const HybAggBlock *block, const HybScalar *q, PetscReal omega, HybCSR *P)
{
  PetscInt  binptr[AGG_CLASSES + 1], *count, *rows = nullptr, *longrows;
  AggSmooth s = {A->m, agg->nc, A->i, A->j, agg->parent, A->a, q, HybScalar(-omega), nullptr, nullptr, nullptr, block->bs, block->nvec};

  PetscFunctionBegin;
  PetscCheck(A->m <= A->n && A->n == agg->n * block->bs, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, agg->n, block->bs, A->m, A->n);
  PetscCall(HybCheckEntries(exec, A->nnz, "a matrix"));
  *P = HybCSR{A->m, agg->nc * block->nvec, 0, nullptr, nullptr, nullptr};
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &P->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &count));
  if (!HybAggIsScalar(block) || !SmoothAlike(A, longest, binptr)) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &rows));
    HYB_FOR_EACH(exec, A->m, [count, ai = A->i] __device__(PetscCount r) { count[r] = ai[r + 1] - ai[r]; });
    PetscCall(HybAggClasses(exec, work, A->m, count, rows, binptr));
  }
  longrows = rows ? rows + binptr[AGG_CLASSES - 1] : nullptr;
  PetscCall(AggEachClass(binptr, [&](auto G, auto MOST, PetscInt n, PetscInt first) {
    const PetscInt *some = rows ? rows + first : nullptr;

    if (HybAggIsScalar(block)) {
      HYB_LAUNCH((CountOne<G, MOST>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n, some, count);
    } else
      HYB_LAUNCH((Count<G, MOST>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n, some, count);
    return PETSC_SUCCESS;
  }));
  PetscCall(HybAggSmoothLong(exec, work, &s, A->nnz, A->m - binptr[AGG_CLASSES - 1], longrows, count));
  PetscCall(SmoothCounted(exec, keep, work, &count, P));
  s.pi = P->i;
  s.pj = P->j;
  s.pa = P->a;
  PetscCall(AggEachClass(binptr, [&](auto G, auto MOST, PetscInt n, PetscInt first) {
    return SmoothInstance(block, [&](auto ONE) {
      HYB_LAUNCH((Fill<G, MOST, ONE>), HybBlocks(n, HybGroup<G>::GROUPS), HybGroup<G>::THREADS, 0, exec->stream, s, n, rows ? rows + first : nullptr);
      return PETSC_SUCCESS;
    });
  }));
  PetscCall(HybAggSmoothLong(exec, work, &s, A->nnz, A->m - binptr[AGG_CLASSES - 1], longrows, nullptr));
  PetscCall(HybArenaFree(work, &rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}
