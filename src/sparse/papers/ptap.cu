/*
  ptap.cu: the Galerkin product C = P^T A P in one kernel, row by row, without A P or P^T A ever being stored.

  Idea. With R = P^T, row I of C is

    C(I,:) = sum over k of w(k) P(k,:),    w = row I of R A = sum over i of R(I,i) A(i,:),

  two merges of rows, of which the first is needed by row I alone: w lives on chip and nothing is computed twice. (The
  other way round, v = row i of A P is needed by every I that row i of P names: it would be stored, which is the staged
  product, or formed as often as P has entries in the row, or added to C in an order that changes from run to run.)

  A merge on chip is two steps without any dependence between threads:
    expand   T[t] = the t-th product of the merge, products counted entry by entry of the left row: loads along rows of
             A (or of P), a multiplication, a store to shared memory
    pull     result(e) = T[list(e,0)] + T[list(e,1)] + ..., a lane an entry: no search, no conflict, no order but that
             of the list
  The lists are the plan. Results are taken by slices of 32 (or of as many lanes as a row has), and the list of a slice
  lies step by step, the entries of a step side by side and none for a lane that has finished: what the lanes of a step
  read is one stream, and its place follows from votes. So the lists are as long as there are products.

  Plan, made once by the symbolic phase:

    R = P^T, pattern and positions in P              (csr room)
    W = pattern of R A, C = pattern of W P           (spgemm room, no values)
    for both merges, left entry k:   from[k] = where its row of A (of P) begins, off[k] = its first product in T (from
                                     takes the place of R's and W's columns)
    for both merges, row by row in shared memory:
      place of each product in the result's row by bisection; count; scan                -> start of each list
      products in their order, a slice at once, each behind those of its place met before (match)
                                                                                         -> lists, written step by step
    rows by the shared memory that they need, among those alike in the order of their first fine row

  Numeric, a group of lanes a row of C:

    expand (R(I,i) = P's value at the position kept, A);  pull -> w;  expand (w, P);  pull -> C's values

  The order by first fine row matters because aggregation may number coarse rows at random: rows that run at the same
  time then share rows of A and P in the second-level cache.

  Memory kept, 32-bit indices: 2 bytes a product, 10 an entry of P, 8 an entry of the pattern of R A, 2 an entry of C,
  28 a row of C; no intermediate has values. Complexity: a multiplication and an addition a product, products as in the
  stages R A, then (R A) P.

  What limits it, 7-point 200^3 (A: 8.0e6 rows, 5.6e7 entries) with P smoothed over boxes of 3^3 (2.4e7 entries; C:
  3.0e5 rows, 8.0e6 entries): A P and R A have 5.1e7 entries each and take 1.68e8 products, the second factor 1.54e8
  either way. Bytes of a numeric phase, each array once from memory:
    staged   A P: A 0.70 GB, P 0.32, values of A P written 0.41, offsets 0.03; values of P^T 0.48; P^T (A P): P^T with
             where and which 0.38, places 0.31, A P 0.41 (three times that where coarse rows are numbered at random),
             C 0.06: 3.1 GB
    fused    lists 0.64, from, off and positions of R 0.24, from, off and starts of W 0.41, starts of C 0.02, values of
             A 0.45 and of P 0.19, C 0.06: 2.0 GB
  Bytes are not what decides: the stages won everywhere (docs/tried.md, Thresholds). Every product passes through shared
  memory three times (stored, listed, fetched), rows of results of uneven length leave lanes idle in the pull, and where
  rows of C have thousands of products few of them fit a multiprocessor at once.

  Declined, so that the caller goes on with the stages: a plan larger than FUSED_BOUND times A and P
  (-mat_aijhybridgpu_tuning fused_plan=BYTES sets another bound) or than may be taken for it; a row of C with more
  products in one of its merges than a block's shared memory holds (28,000 of doubles). So it is for scalar problems:
  with 3 unknowns a node and 6 a coarse node a row has nine and more times the products, and blocks are not made use of
  here.

  Order of additions: w(k) over ascending i, C(I,J) over ascending k, each from its first product on, product and sum
  rounded separately: the bits of the stages P^T A, then (P^T A) P, in every run. P^T (A P), which the staged PtAP and
  the host's "fused" compute, associates the other way round and differs by roundings.

  References: Gremse, Hoefter, Schwen, Kiessling, Naumann, GPU-accelerated sparse matrix-matrix multiplication by
  iterative row merging, SISC 37 (2015) (merging rows on chip); Bell, Dalton, Olson, Exposing fine-grained parallelism
  in algebraic multigrid methods, SISC 34 (2012) (expand, sort, contract); Kreutzer, Hager, Wellein, Fehske, Bishop, A
  unified sparse matrix data format for efficient general sparse matrix-vector multiplication on modern processors with
  wide SIMD units, SISC 36 (2014) (slices).
*/
#include "../plan/bins.cuh"
#include "../device/hybgroup.cuh"
#include "../structure/each.cuh"
#include "aijhybridgpu/private/hybptap.h"

#define FUSED_BOUND 2                  /* bytes of the plan, in those of A and P */
#define FUSED_SMALL ((size_t)16 << 20) /* a plan up to this is kept in any case */
#define FUSED_ASK   ((size_t)1 << 20)  /* a plan above this makes the card be asked what is free */
/* of rows by shared memory: none, six sizes and more, a block's, more than that */
#define FUSED_BINS  10
#define FUSED_STEPS 4 /* of a list that are on their way together */
#if defined(PETSC_USE_COMPLEX)
  #define FUSED_BATCH 2 /* left entries of a lane whose rows are on their way together */
#else
  #define FUSED_BATCH 4
#endif

static const PetscCount  FusedLimit[FUSED_BINS - 2] = {0, 1024, 2048, 4096, 6144, 8192, 16384, 32768};
static const char *const FusedNames[FUSED_BINS - 1] = {"rows empty", "rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 6 KiB", "rows up to 8 KiB", "rows up to 16 KiB", "rows up to 32 KiB", "rows up to a block"};

/* one of the two merges: result = left times right, rows of right merged */
struct FusedMerge {
  const PetscInt   *li;      /* rows of the left operand */
  PetscInt         *from;    /* of each of its entries: the column, then where that row of right begins */
  unsigned short   *off;     /* which product of the row is its first */
  const PetscInt   *pi, *pj; /* right; for the plan alone, like rj */
  const PetscInt   *ri, *rj; /* result */
  const PetscCount *ptr;     /* products before each row */
  unsigned short   *start;   /* of each entry of the result: products of the row in the lists before its own */
  unsigned short   *list;    /* products, by rows, slices, steps, lanes */
  int               lanes;   /* log2 of the lanes that take a row of right, at most all of a group */
};

struct FusedArgs {
  FusedMerge       first, second;
  const PetscInt  *order, *binptr; /* rows of this launch: order[binptr[0]] .. order[binptr[1]-1] */
  int              bytes;          /* shared memory of a group */
  const PetscInt  *perm;           /* of each entry of P^T: its position in P */
  const HybScalar *aa, *pa;
  HybScalar       *ca;
};

typedef struct {
  FusedMerge first, second; /* arrays in keep */
  PetscInt  *perm, *order, *binptr;
  PetscInt   hostbinptr[FUSED_BINS + 1];
  PetscInt   maxbytes;
} Fused;

/* of a group that plans n results: columns, counts, then a place and an entry of a list for each product */
static __device__ __forceinline__ PetscCount FusedPlanBytes(PetscCount n, PetscCount products)
{
  return n * (PetscCount)(sizeof(PetscInt) + sizeof(unsigned)) + 2 * products * (PetscCount)sizeof(unsigned short);
}

/* from and off of each left entry, eight lanes a row; from holds columns before */
__global__ void __launch_bounds__(128) FusedEntries(PetscInt m, FusedMerge x)
{
  const PetscCount row    = ((PetscCount)blockIdx.x * 128 + threadIdx.x) / 8;
  const int        lane   = HybLane() & 7;
  PetscInt         before = 0;

  if (row >= m) return;
  for (PetscInt k0 = x.li[row]; k0 < x.li[row + 1]; k0 += 8) {
    const PetscInt k     = k0 + lane;
    const bool     in    = k < x.li[row + 1];
    PetscInt       begin = 0, len = 0, total;

    if (in) {
      const PetscInt c = x.from[k];

      begin = x.pi[c];
      len   = x.pi[c + 1] - begin;
    }
    const PetscInt at = before + HybSubwarpExclusiveSum<8>(len, &total);

    if (in) {
      x.from[k] = begin;
      x.off[k]  = (unsigned short)at;
    }
    before += total;
  }
}

/* the lanes that take a slice of results, and where the entries of a step of its list lie */
template <int N>
struct FusedSlice {
  static constexpr int LANES = N < HYB_WARP ? N : HYB_WARP;

  static __device__ __forceinline__ int first(void)
  {
    return HybGroup<N>::rank() / LANES * LANES;
  }
  static __device__ __forceinline__ int lane(void)
  {
    return HybGroup<N>::rank() & (LANES - 1);
  }
  /* at[u], for the steps s, s+1, ..., counted from where step s begins; returns the entries of all of them. The lane's
     list has len entries. All lanes come. */
  template <int STEPS>
  static __device__ __forceinline__ int where(int s, int len, int at[])
  {
    const unsigned mask = HybSubwarpMask<LANES>(), below = HybLanesBelow() & mask;
    int            n = 0;

#pragma unroll
    for (int u = 0; u < STEPS; u++) {
      const unsigned active = __ballot_sync(mask, s + u < len) & mask;

      at[u] = n + __popc(active & below);
      n += __popc(active);
    }
    return n;
  }
};

/* the plan of a row's merge, in so much shared memory as FusedPlanBytes() says */
template <int N>
static __device__ __forceinline__ void FusedPlanRow(const FusedMerge &x, PetscInt row, unsigned char *mine, unsigned *scratch)
{
  using G                  = HybGroup<N>;
  using S                  = FusedSlice<N>;
  const PetscInt        lb = x.li[row], le = x.li[row + 1], rb = x.ri[row];
  const int             n = (int)(x.ri[row + 1] - rb), total = (int)(x.ptr[row + 1] - x.ptr[row]);
  const int             lanes = HybMin()(x.lanes, HybLog2(N)), step = 1 << lanes;
  PetscInt *const       cols  = (PetscInt *)mine;
  unsigned *const       end   = (unsigned *)(cols + n);
  unsigned short *const place = (unsigned short *)(end + n), *const list = place + total;

  for (int e = G::rank(); e < n; e += N) {
    cols[e] = x.rj[rb + e];
    end[e]  = 0;
  }
  G::sync();
  for (PetscInt k = lb + (G::rank() >> lanes); k < le; k += N >> lanes) {
    const int      first = x.off[k], len = (k + 1 < le ? (int)x.off[k + 1] : total) - first;
    const PetscInt from = x.from[k];

    for (int p = G::rank() & (step - 1); p < len; p += step) {
      const PetscInt c  = x.pj[from + p];
      int            lo = 0, hi = n;

      while (lo < hi) {
        const int mid = (lo + hi) / 2;

        if (cols[mid] < c)
          lo = mid + 1;
        else
          hi = mid;
      }
      place[first + p] = (unsigned short)lo;
      (void)HybAtomicAdd(&end[lo], 1);
    }
  }
  G::sync();
  {
    /* neighbouring entries for each thread; end is, for now, where the list of each begins */
    const int each = (n + N - 1) / N, b = HybMin()(G::rank() * each, n), e = HybMin()(b + each, n);
    unsigned  sum = 0;

    for (int q = b; q < e; q++) sum += end[q];
    sum = G::exclusiveSum(sum, scratch);
    for (int q = b; q < e; q++) {
      const unsigned count = end[q];

      x.start[rb + q] = (unsigned short)sum;
      end[q]          = sum;
      sum += count;
    }
  }
  G::sync();
  /* products in their order, by the lanes of one slice: those of one place that are met together are ranked by their
     lanes */
  if (S::first() == 0) {
    const unsigned mask = HybSubwarpMask<S::LANES>(), below = HybLanesBelow() & mask;

    for (int p0 = 0; p0 < total; p0 += S::LANES) {
      const int      p    = p0 + S::lane();
      const unsigned e    = p < total ? place[p] : 0xffffffffu;
      const unsigned same = __match_any_sync(mask, e) & mask;
      unsigned       at   = 0;

      if (p < total) {
        at       = end[e] + (unsigned)__popc(same & below);
        list[at] = (unsigned short)p;
      }
      __syncwarp(mask);
      if (p < total && !(same & below)) end[e] = at + (unsigned)__popc(same);
      __syncwarp(mask);
    }
  }
  G::sync();
  for (int e0 = S::first(); e0 < n; e0 += N) {
    const int       e = e0 + S::lane(), begin = e0 ? (int)end[e0 - 1] : 0, b = e && e < n ? (int)end[e - 1] : 0, len = e < n ? (int)end[e] - b : 0;
    unsigned short *q = x.list + x.ptr[row] + begin;

    for (int s = 0;; s++) {
      int       at[1];
      const int entries = S::template where<1>(s, len, at);

      if (!entries) break;
      if (s < len) q[at[0]] = list[b + s];
      q += entries;
    }
  }
  G::sync();
}

template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) FusedPlanKernel(FusedMerge x, const PetscInt *__restrict__ order, const PetscInt *__restrict__ binptr, int bytes)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);

  for (PetscCount q = binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) FusedPlanRow<N>(x, order[q], shared + (size_t)G::index() * bytes, scratch);
}

/* T = all products of a row: weight(k) times the row of right that left entry k names */
template <int N, typename Weight>
static __device__ __forceinline__ void FusedExpand(const FusedMerge &x, PetscInt lb, PetscInt le, int total, Weight weight, const HybScalar *__restrict__ right, HybScalar *T)
{
  using G              = HybGroup<N>;
  const int      lanes = HybMin()(x.lanes, HybLog2(N)), step = 1 << lanes, lane = G::rank() & (step - 1);
  const PetscInt stride = N >> lanes;

  for (PetscInt k0 = lb + (G::rank() >> lanes); k0 < le; k0 += FUSED_BATCH * stride) {
    int       first[FUSED_BATCH], len[FUSED_BATCH];
    PetscInt  from[FUSED_BATCH];
    HybScalar w[FUSED_BATCH], v[FUSED_BATCH];

#pragma unroll
    for (int u = 0; u < FUSED_BATCH; u++) {
      const PetscInt k = k0 + u * stride;

      first[u] = len[u] = 0;
      from[u]           = 0;
      w[u] = v[u] = HybScalar();
      if (k < le) {
        first[u] = x.off[k];
        len[u]   = (k + 1 < le ? (int)x.off[k + 1] : total) - first[u];
        from[u]  = x.from[k];
        w[u]     = weight(k);
      }
    }
#pragma unroll
    for (int u = 0; u < FUSED_BATCH; u++) {
      if (lane < len[u]) v[u] = right[from[u] + lane];
    }
#pragma unroll
    for (int u = 0; u < FUSED_BATCH; u++) {
      if (lane < len[u]) T[first[u] + lane] = HybMul(w[u], v[u]);
      for (int p = lane + step; p < len[u]; p += step) T[first[u] + p] = HybMul(w[u], right[from[u] + p]);
    }
  }
}

/* store(e, result e), of n results */
template <int N, typename Store>
static __device__ __forceinline__ void FusedPull(const unsigned short *__restrict__ start, int n, int total, const unsigned short *__restrict__ list, const HybScalar *T, Store store)
{
  using S = FusedSlice<N>;

  for (int e0 = S::first(); e0 < n; e0 += N) {
    const int             e = e0 + S::lane(), begin = e < n ? (int)start[e] : 0, len = e < n ? (e + 1 < n ? (int)start[e + 1] : total) - begin : 0;
    const unsigned short *q   = list + start[e0];
    HybScalar             sum = HybNegativeZero(); /* the neutral element: the first product stands as it is */

    for (int s = 0;; s += FUSED_STEPS) {
      int       at[FUSED_STEPS];
      HybScalar v[FUSED_STEPS];
      const int entries = S::template where<FUSED_STEPS>(s, len, at);

      if (!entries) break;
#pragma unroll
      for (int u = 0; u < FUSED_STEPS; u++) at[u] = s + u < len ? (int)q[at[u]] : 0;
#pragma unroll
      for (int u = 0; u < FUSED_STEPS; u++) v[u] = s + u < len ? T[at[u]] : HybScalar();
#pragma unroll
      for (int u = 0; u < FUSED_STEPS; u++) {
        if (s + u < len) sum = sum + v[u];
      }
      q += entries;
    }
    if (e < n) store(e, sum);
  }
}

template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) FusedKernel(FusedArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned char, shared);

  for (PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < x.binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt   row = x.order[q], wb = x.second.li[row], we = x.second.li[row + 1], cb = x.second.ri[row];
    const PetscCount p1 = x.first.ptr[row], p2 = x.second.ptr[row];
    const int        total1 = (int)(x.first.ptr[row + 1] - p1), total2 = (int)(x.second.ptr[row + 1] - p2);
    HybScalar *const w = (HybScalar *)(shared + (size_t)G::index() * x.bytes), *const T = w + (we - wb);

    FusedExpand<N>(
      x.first, x.first.li[row], x.first.li[row + 1], total1, [&](PetscInt k) { return x.pa[x.perm[k]]; }, x.aa, T);
    G::sync();
    FusedPull<N>(x.first.start + wb, (int)(we - wb), total1, x.first.list + p1, T, [&](int e, const HybScalar &v) { w[e] = v; });
    G::sync();
    FusedExpand<N>(
      x.second, wb, we, total2, [&](PetscInt k) { return w[k - wb]; }, x.pa, T);
    G::sync();
    FusedPull<N>(x.second.start + cb, (int)(x.second.ri[row + 1] - cb), total2, x.second.list + p2, T, [&](int e, const HybScalar &v) { x.ca[cb + e] = v; });
    G::sync();
  }
}

/* shared memory of a group that takes rows of bin b */
static PetscInt FusedBytes(const Fused *f, int b)
{
  return b < FUSED_BINS - 2 ? (PetscInt)FusedLimit[b] : f->maxbytes;
}

/* the lanes of that group */
static int FusedLanes(int b)
{
  return b == 1 ? 8 : b <= 5 ? 32
                    : b <= 7 ? 128
                             : 512;
}
using FusedGroups = HybCases<8, 32, 128, 512>;

/* the pattern of L R, and its number of products */
static PetscErrorCode FusedPattern(const HybExec *exec, const HybCSR *L, const HybCSR *R, HybArena *out, HybCSR *C, PetscCount *products)
{
  HybCSR         left = *L, right = *R;
  HybSpGEMM      mm;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  left.a = right.a = NULL;
  PetscCall(HybSpGEMMInit(&mm, exec, "auto", 0));
  ierr      = HybSpGEMMSymbolic(&mm, &left, &right, out, C);
  *products = mm.stats.products;
  if (ierr) (void)HybSpGEMMDestroy(&mm);
  PetscCall(ierr);
  PetscCall(HybSpGEMMDestroy(&mm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FusedMergeCreate(HybPtAP *pp, const HybCSR *L, const HybCSR *R, const HybCSR *C, PetscCount products, FusedMerge *x)
{
  PetscCount *cost, *ptr;

  PetscFunctionBegin;
  x->li   = L->i;
  x->from = L->j;
  x->pi   = R->i;
  x->pj   = R->j;
  x->ri   = C->i;
  x->rj   = C->j;
  /* those of a mean row */
  for (x->lanes = 0; x->lanes < 5 && ((PetscCount)L->nnz << x->lanes) < products; x->lanes++) {}
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_DEVICE, (PetscCount)L->m + 1, sizeof(PetscCount), &ptr));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_DEVICE, L->m, sizeof(PetscCount), &cost));
  PetscCall(HybPlanRowCosts(&pp->exec, L, R->i, NULL, cost, NULL));
  PetscCall(HybScanCounts64(&pp->exec, &pp->work, L->m, cost, ptr, NULL, NULL));
  PetscCall(HybArenaFree(&pp->work, &cost));
  x->ptr = ptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FusedMergePlan(HybPtAP *pp, const Fused *f, const HybCSR *L, const HybCSR *C, PetscCount products, FusedMerge *x)
{
  const HybExec *exec = &pp->exec;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_DEVICE, L->nnz, sizeof(unsigned short), &x->off));
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_DEVICE, C->nnz, sizeof(unsigned short), &x->start));
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_DEVICE, products, sizeof(unsigned short), &x->list));
  HYB_LAUNCH(FusedEntries, HybBlocks((PetscCount)L->m * 8, 128), 128, 0, exec->stream, L->m, *x);
  for (int b = FUSED_BINS - 2; b > 0; b--) {
    const PetscCount rows  = f->hostbinptr[b + 1] - f->hostbinptr[b];
    const PetscInt   bytes = FusedBytes(f, b);

    PetscCall(HybDispatch(FusedLanes(b), FusedGroups(), [&](auto N) {
      HYB_LAUNCH((FusedPlanKernel<N>), HybBlocks(rows, HybGroup<N>::GROUPS), HybGroup<N>::THREADS,
                 (size_t)HybGroup<N>::GROUPS * bytes, exec->stream, *x, f->order, f->binptr + b, (int)bytes);
      return PETSC_SUCCESS;
    }));
  }
  x->pi = x->pj = x->rj = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows by the shared memory that they need, then by their first fine row */
static PetscErrorCode FusedOrder(HybPtAP *pp, Fused *f, const HybCSR *T, const HybCSR *W, const HybCSR *C)
{
  const HybExec *exec = &pp->exec;
  const PetscInt m    = C->m;
  PetscInt      *key, *sorted, *rows, *counters;
  PetscCount    *need, limit[FUSED_BINS - 1];
  size_t         most;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&most, NULL));
  f->maxbytes = (PetscInt)((most - 1024) & ~(size_t)127);
  PetscCall(PetscArraycpy(limit, FusedLimit, FUSED_BINS - 2));
  limit[FUSED_BINS - 2] = f->maxbytes;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_DEVICE, m, sizeof(PetscInt), &f->order));
  PetscCall(HybArenaCalloc(&pp->keep, HYB_MEM_DEVICE, FUSED_BINS + 1, sizeof(PetscInt), &f->binptr));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &key));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &sorted));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &rows));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_DEVICE, m, sizeof(PetscCount), &need));
  /* the first fine row of each coarse one, behind all others where there is none */
  HYB_FOR_EACH(exec, m, [key, none = T->n, ti = T->i, tj = T->j] __device__(PetscCount r) { key[r] = ti[r] < ti[r + 1] ? tj[ti[r]] : none; });
  PetscCall(HybSortPairsInt(exec, &pp->work, m, key, sorted, NULL, rows, HybBits((PetscCount)T->n + 1)));
  /* shared memory of each row, rows in turn: the larger set of products beside w, or what planning takes; none for a
     row without entries */
  HYB_FOR_EACH(exec, m, [rows, need, wi = W->i, ci = C->i, ptr1 = f->first.ptr, ptr2 = f->second.ptr] __device__(PetscCount q) {
    const PetscInt   r  = rows[q];
    const PetscCount t1 = ptr1[r + 1] - ptr1[r], t2 = ptr2[r + 1] - ptr2[r], nw = wi[r + 1] - wi[r], nc = ci[r + 1] - ci[r];
    const PetscCount numeric = (HybMax()(t1, t2) + nw) * (PetscCount)sizeof(HybScalar);

    need[q] = nc ? HybMax()(numeric, HybMax()(FusedPlanBytes(nw, t1), FusedPlanBytes(nc, t2))) : 0;
  });
  PetscCall(HybArenaCalloc(&pp->work, HYB_MEM_DEVICE, 2 * FUSED_BINS, sizeof(PetscInt), &counters));
  PetscCall(HybPlanBinsAnyOrder(exec, m, need, FUSED_BINS, limit, counters, f->order, f->binptr));
  HYB_FOR_EACH(exec, m, [rows, order = f->order] __device__(PetscCount q) { order[q] = rows[order[q]]; });
  PetscCall(exec->backend->copy(exec, f->hostbinptr, f->binptr, sizeof(f->hostbinptr), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(&pp->work, &key, &sorted, &rows, &need, &counters));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FusedDecline(HybPtAP *pp, const char *why, HybArena *out, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(PetscInfo(NULL, "The fused P^T A P declines: %s\n", why));
  PetscCall(HybArenaFree(out, &C->i, &C->j, &C->a));
  pp->declined = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPtAPSymbolic_FusedCUDA(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybArena *out, HybCSR *C)
{
  HybExec    exec = pp->exec;
  PetscCount products[2];
  size_t     bytes, most;
  HybCSR     T, W;
  Fused     *f;

  PetscFunctionBegin;
  PetscCheck(A->m == A->n && A->n == P->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands do not conform: P^T A P with a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix", A->m, A->n, P->m, P->n);
  pp->declined = PETSC_FALSE;
  PetscCall(HybArenaAlloc(&pp->keep, HYB_MEM_HOST, 1, sizeof(*f), &f));
  PetscCall(PetscMemzero((void *)f, sizeof(*f)));
  pp->data    = f;
  exec.result = HYB_WORK(&exec);
  PetscCall(PetscMemzero((void *)&T, sizeof(T)));
  PetscCall(PetscMemzero((void *)&W, sizeof(W)));
  PetscCall(exec.backend->csr->transposesymbolic(&exec, &pp->keep, &pp->work, P, &T, &f->perm));
  PetscCall(HybArenaReset(&pp->work));
  PetscCall(FusedPattern(&exec, &T, A, &pp->keep, &W, &products[0]));
  PetscCall(FusedPattern(&pp->exec, &W, P, out, C, &products[1]));
  PetscCall(HybCountersSet(&pp->counters, "products", products[0] + products[1]));
  PetscCall(HybCountersSet(&pp->counters, "entries of P^T A", W.nnz));
  if (!C->nnz) {
    PetscCall(HybCountersSet(&pp->counters, FusedNames[0], C->m));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  bytes = (size_t)(products[0] + products[1]) * sizeof(unsigned short) + (size_t)T.nnz * (2 * sizeof(PetscInt) + sizeof(unsigned short)) + (size_t)W.nnz * (sizeof(PetscInt) + 2 * sizeof(unsigned short)) + (size_t)C->nnz * sizeof(unsigned short) + (size_t)C->m * (3 * sizeof(PetscInt) + 2 * sizeof(PetscCount));
  most  = PetscMax(FUSED_SMALL, FUSED_BOUND * (size_t)(A->nnz + P->nnz) * (sizeof(PetscInt) + sizeof(HybScalar)));
  if (HybDeviceTuning()->fused_plan >= 0) most = (size_t)HybDeviceTuning()->fused_plan;
  if (bytes > most) {
    PetscCall(FusedDecline(pp, "its plan would be too large for the operands", out, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (bytes > FUSED_ASK) {
    size_t spare;

    PetscCall(HybMemorySpare(&exec, &spare));
    if (bytes > spare) {
      PetscCall(FusedDecline(pp, "its plan would need more than a quarter of this process's part of the device's free memory", out, C));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(FusedMergeCreate(pp, &T, A, &W, products[0], &f->first));
  PetscCall(FusedMergeCreate(pp, &W, P, C, products[1], &f->second));
  PetscCall(FusedOrder(pp, f, &T, &W, C));
  if (f->hostbinptr[FUSED_BINS] > f->hostbinptr[FUSED_BINS - 1]) {
    PetscCall(FusedDecline(pp, "a row has more products than a block's shared memory holds", out, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int b = 0; b < FUSED_BINS - 1; b++) PetscCall(HybCountersSet(&pp->counters, FusedNames[b], f->hostbinptr[b + 1] - f->hostbinptr[b]));
  PetscCall(HybCountersSet(&pp->counters, "plan bytes", (PetscCount)bytes));
  /* W's columns are the first merge's results; then they make room for where rows of P begin */
  PetscCall(FusedMergePlan(pp, f, &T, &W, products[0], &f->first));
  PetscCall(FusedMergePlan(pp, f, &W, C, products[1], &f->second));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPtAPNumeric_FusedCUDA(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  const HybExec *exec = &pp->exec;
  const Fused   *f    = (const Fused *)pp->data;
  FusedArgs      x;

  PetscFunctionBegin;
  if (!C->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  memset((void *)&x, 0, sizeof(x));
  x.first     = f->first;
  x.second    = f->second;
  x.second.ri = C->i;
  x.order     = f->order;
  x.perm      = f->perm;
  x.aa        = A->a;
  x.pa        = P->a;
  x.ca        = C->a;
  /* the longest rows first */
  for (int b = FUSED_BINS - 2; b > 0; b--) {
    const PetscCount rows = f->hostbinptr[b + 1] - f->hostbinptr[b];

    x.binptr = f->binptr + b;
    x.bytes  = (int)FusedBytes(f, b);
    PetscCall(HybDispatch(FusedLanes(b), FusedGroups(), [&](auto N) {
      HYB_LAUNCH((FusedKernel<N>), HybBlocks(rows, HybGroup<N>::GROUPS), HybGroup<N>::THREADS,
                 (size_t)HybGroup<N>::GROUPS * x.bytes, exec->stream, x);
      return PETSC_SUCCESS;
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* "auto" keeps the stages: they were faster in every case measured, and theirs are the host's bits. This method runs
   where it is named. */
static PetscErrorCode HybPtAPApplicable_FusedCUDA(const HybPtAP *pp, const HybCSR *A, const HybCSR *P, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybPtAPMethod HybPtAP_FusedCUDA;
const HybPtAPMethod        HybPtAP_FusedCUDA = {
         .name       = "fused",
         .applicable = HybPtAPApplicable_FusedCUDA,
         .symbolic   = HybPtAPSymbolic_FusedCUDA,
         .numeric    = HybPtAPNumeric_FusedCUDA,
};
