/*
  Operations on values alone, and along a given pattern, on the device: gather, set, scale, axpy, diagonal scaling, the
  diagonal, norms, and the values of an assembly from coordinates. All of them move each byte once and compute next to
  nothing, so they run at the memory's speed: 16-byte accesses, 32 bytes a thread and turn. Sums have a fixed order.
*/
#include "csrops.cuh"

/* N neighbouring scalars, as 16-byte accesses for N > 1 */
template <int N>
struct Pack {
  HybScalar v[N];
};
#define PACK        (sizeof(HybScalar) <= 8 ? 4 : 2)
#define PACK_VECTOR (sizeof(HybScalar) <= 16 ? (int)(16 / sizeof(HybScalar)) : 1)

template <int N>
static __device__ __forceinline__ Pack<N> PackLoad(const HybScalar *p)
{
  Pack<N> r;
  if (N == 1)
    r.v[0] = p[0];
  else {
#pragma unroll
    for (int k = 0; k < N; k += PACK_VECTOR) {
      const HybVec<HybScalar, PACK_VECTOR> v = HybLoadVec<PACK_VECTOR>(p + k);
#pragma unroll
      for (int q = 0; q < PACK_VECTOR; q++) r.v[(k + q) % N] = v.v[q];
    }
  }
  return r;
}

template <int N>
static __device__ __forceinline__ void PackStore(HybScalar *p, const Pack<N> &r)
{
  if (N == 1)
    p[0] = r.v[0];
  else {
#pragma unroll
    for (int k = 0; k < N; k += PACK_VECTOR) {
      HybVec<HybScalar, PACK_VECTOR> v;
#pragma unroll
      for (int q = 0; q < PACK_VECTOR; q++) v.v[q] = r.v[(k + q) % N];
      HybStoreVec<PACK_VECTOR>(p + k, v);
    }
  }
}

static bool Aligned16(const void *p)
{
  return ((uintptr_t)p & 15) == 0;
}

struct MapSet {
  HybScalar  alpha;
  HybScalar *a;
  template <int N>
  __device__ __forceinline__ void Run(PetscCount k) const
  {
    Pack<N> r;
#pragma unroll
    for (int q = 0; q < N; q++) r.v[q] = alpha;
    PackStore<N>(a + k, r);
  }
};

struct MapScale {
  HybScalar  alpha;
  HybScalar *a;
  template <int N>
  __device__ __forceinline__ void Run(PetscCount k) const
  {
    Pack<N> r = PackLoad<N>(a + k);
#pragma unroll
    for (int q = 0; q < N; q++) r.v[q] = HybMul(alpha, r.v[q]);
    PackStore<N>(a + k, r);
  }
};

struct MapAXPY {
  HybScalar        alpha;
  const HybScalar *x;
  HybScalar       *y;
  template <int N>
  __device__ __forceinline__ void Run(PetscCount k) const
  {
    const Pack<N> s = PackLoad<N>(x + k);
    Pack<N>       r = PackLoad<N>(y + k);
#pragma unroll
    for (int q = 0; q < N; q++) r.v[q] = HybMulAdd(alpha, s.v[q], r.v[q]);
    PackStore<N>(y + k, r);
  }
};

template <bool CONJUGATE>
struct MapGather {
  const PetscInt  *perm;
  const HybScalar *src;
  HybScalar       *dst;
  template <int N>
  __device__ __forceinline__ void Run(PetscCount k) const
  {
    PetscInt p[N];
    Pack<N>  r;
    if (N == 1)
      p[0] = perm[k];
    else {
      constexpr int V = 16 / sizeof(PetscInt) < N ? 16 / sizeof(PetscInt) : N;
#pragma unroll
      for (int q = 0; q < N; q += V) {
        const HybVec<PetscInt, V> v = HybLoadVec<V>(perm + k + q);
#pragma unroll
        for (int s = 0; s < V; s++) p[(q + s) % N] = v.v[s];
      }
    }
#pragma unroll
    for (int q = 0; q < N; q++) r.v[q] = CONJUGATE ? HybConj(HybLoadReadOnly(src + p[q])) : HybLoadReadOnly(src + p[q]);
    PackStore<N>(dst + k, r);
  }
};

template <class F>
static __global__ __launch_bounds__(CSR_THREADS) void CSRMap(PetscCount n, PetscCount packs, F f)
{
  const PetscCount first = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x, stride = (PetscCount)gridDim.x * CSR_THREADS;
  for (PetscCount k = first; k < packs; k += stride) f.template Run<PACK>(k * PACK);
  for (PetscCount k = packs * PACK + first; k < n; k += stride) f.template Run<1>(k);
}

template <class F>
static PetscErrorCode CSRMapLaunch(const HybExec *exec, PetscCount n, bool aligned, const F &f)
{
  const PetscCount packs = aligned ? n / PACK : 0, work = aligned ? packs + n % PACK : n;

  PetscFunctionBegin;
  HYB_LAUNCH((CSRMap<F>), PetscMin(HybBlocks(work, CSR_THREADS), (PetscCount)1 << 22), CSR_THREADS, 0, exec->stream, n, packs, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRGather_CUDA(const HybExec *exec, PetscCount n, const PetscInt *perm, PetscBool conjugate, const HybScalar *src, HybScalar *dst)
{
  const bool aligned = Aligned16(perm) && Aligned16(dst);

  PetscFunctionBegin;
  if (conjugate && PetscDefined(USE_COMPLEX)) {
    const MapGather<true> f = {perm, src, dst};
    PetscCall(CSRMapLaunch(exec, n, aligned, f));
  } else {
    const MapGather<false> f = {perm, src, dst};
    PetscCall(CSRMapLaunch(exec, n, aligned, f));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSet_CUDA(const HybExec *exec, PetscCount n, const HybScalar *alpha, HybScalar *a)
{
  const MapSet f = {*alpha, a};

  PetscFunctionBegin;
  PetscCall(CSRMapLaunch(exec, n, Aligned16(a), f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRScale_CUDA(const HybExec *exec, PetscCount n, const HybScalar *alpha, HybScalar *a)
{
  const MapScale f = {*alpha, a};

  PetscFunctionBegin;
  PetscCall(CSRMapLaunch(exec, n, Aligned16(a), f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRAXPY_CUDA(const HybExec *exec, PetscCount n, const HybScalar *alpha, const HybScalar *x, HybScalar *y)
{
  const MapAXPY f = {*alpha, x, y};

  PetscFunctionBegin;
  PetscCall(CSRMapLaunch(exec, n, Aligned16(x) && Aligned16(y), f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void CSRDiagonalScale(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, HybScalar *__restrict__ a, const HybScalar *__restrict__ l, const HybScalar *__restrict__ rt)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt end = i[r + 1];
      HybScalar      s(1);
      if (l) s = l[r];
      for (PetscInt k = i[r] + lane; k < end; k += W) {
        HybScalar v = a[k];
        if (l) v = HybMul(v, s);
        if (rt) v = HybMul(v, HybLoadReadOnly(rt + j[k]));
        a[k] = v;
      }
    }
  }
}

PetscErrorCode HybCSRDiagonalScale_CUDA(const HybExec *exec, HybCSR *A, const HybScalar *l, const HybScalar *r)
{
  PetscFunctionBegin;
  if (!l && !r) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCheckEntries(exec, A->nnz, "The matrix to scale"));
  HYB_LAUNCH_ROWS(exec, RowWidth(A->nnz, A->m, 2), (CSRDiagonalScale<WIDTH>), A->m, A->i, A->j, A->a, l, r);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRGetDiagonal_CUDA(const HybExec *exec, const HybCSR *A, HybScalar *d)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, PetscMin(A->m, A->n), [d, A = *A] __device__(PetscCount r) {
    const PetscInt end = A.i[r + 1], k = RowPlace(A.j, A.i[r], end, (PetscInt)r);

    d[r] = k < end ? A.a[k] : HybScalar(0);
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* position[r] of the diagonal entry or -1; counts the missing ones */
static __global__ __launch_bounds__(CSR_THREADS) void CSRFindDiagonal(PetscInt n, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *__restrict__ position, PetscCount *missing)
{
  HYB_SHARED(int, scratch, HYB_WARP);
  const PetscCount r   = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x;
  int              mis = 0;
  if (r < n) {
    const PetscInt end = i[r + 1], k = RowPlace(j, i[r], end, (PetscInt)r);
    mis         = k == end;
    position[r] = mis ? -1 : k;
  }
  mis = HybBlockSum<CSR_THREADS>(mis, scratch);
  if (threadIdx.x == 0 && mis) HybAtomicAdd(missing, (PetscCount)mis);
}

PetscErrorCode HybCSRDiagonalSet_CUDA(const HybExec *exec, HybArena *work, HybCSR *A, const HybScalar *d, const HybScalar *alpha, PetscBool add, PetscCount *missing)
{
  const PetscInt n = PetscMin(A->m, A->n);
  PetscInt      *position;
  PetscCount    *devmissing;

  PetscFunctionBegin;
  *missing = 0;
  if (n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(*position), &position));
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*devmissing), &devmissing));
  HYB_LAUNCH(CSRFindDiagonal, HybBlocks(n, CSR_THREADS), CSR_THREADS, 0, exec->stream, n, A->i, A->j, position, devmissing);
  PetscCall(CSRFetch(exec, missing, devmissing, sizeof(*missing)));
  if (!*missing) {
    HYB_FOR_EACH(exec, n, [position, d, add, alpha = alpha ? *alpha : HybScalar(0), a = A->a] __device__(PetscCount r) {
      const PetscInt  k = position[r];
      const HybScalar v = d ? d[r] : alpha;

      a[k] = add ? a[k] + v : v;
    });
  }
  PetscCall(HybArenaFree(work, &position, &devmissing));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Norms. Grids are fixed, so the order of summation depends on the matrix alone. Infinity comes through, and NaN in the
  Frobenius norm; in the others PETSc passes over a row or column whose sum is NaN, and so do these.

  The sum of squares is kept in three accumulators, for large, ordinary and small numbers (J. Blue, A portable Fortran
  program to find the Euclidean norm of a vector, ACM TOMS 4(1), 1978), so that nothing over- or underflows on the way
  and one pass is enough.
*/
#define NORM_BLOCKS 2048

typedef struct {
  PetscReal big, medium, small;
} Squares;

static constexpr bool      single_real = sizeof(PetscReal) == 4;
static constexpr PetscReal blue_small = (PetscReal)(single_real ? 1.08420217e-19 : 1.4916681462400413e-154), blue_big = (PetscReal)(single_real ? 4.50359963e15 : 1.9979190722022350e146);
static constexpr PetscReal blue_up = (PetscReal)(single_real ? 3.77789319e22 : 4.4989137945431964e161), blue_down = (PetscReal)(single_real ? 1.32348898e-23 : 1.1113793747425387e-162);

static __device__ __forceinline__ void SquaresAdd(Squares &s, PetscReal v)
{
  const PetscReal w = v < 0 ? -v : v;
  if (w > blue_big)
    s.big += (w * blue_down) * (w * blue_down);
  else if (w < blue_small)
    s.small += (w * blue_up) * (w * blue_up);
  else
    s.medium += w * w; /* NaN too */
}

static __global__ __launch_bounds__(CSR_THREADS) void CSRSumSquares(PetscCount n, const HybScalar *__restrict__ a, Squares *__restrict__ partial)
{
  HYB_SHARED(PetscReal, scratch, HYB_WARP);
  Squares s = {0, 0, 0};
#pragma unroll 4
  for (PetscCount k = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x; k < n; k += (PetscCount)gridDim.x * CSR_THREADS) {
#if defined(PETSC_USE_COMPLEX)
    SquaresAdd(s, a[k].real());
    SquaresAdd(s, a[k].imag());
#else
    SquaresAdd(s, a[k]);
#endif
  }
  s.big    = HybBlockSum<CSR_THREADS>(s.big, scratch);
  s.medium = HybBlockSum<CSR_THREADS>(s.medium, scratch);
  s.small  = HybBlockSum<CSR_THREADS>(s.small, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = s;
}

/* the larger one; a sum that is NaN is passed over, as PETSc does */
struct Larger {
  __host__ __device__ __forceinline__ PetscReal operator()(const PetscReal &a, const PetscReal &b) const
  {
    return b > a ? b : a;
  }
};

/* sums of |a| over rows, and the largest of a block's rows; perm: the entries of the rows are a[perm[k]] */
template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void CSRLargestRowSum(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ perm, const HybScalar *__restrict__ a, PetscReal *__restrict__ partial)
{
  HYB_SHARED(PetscReal, scratch, HYB_WARP);
  const int lane    = HybLane() & (W - 1);
  PetscReal largest = 0;
  ROW_LOOP(r, m, W)
  {
    PetscReal sum = 0;
    if (r < m) {
      const PetscInt end = i[r + 1];
      for (PetscInt k = i[r] + lane; k < end; k += W) sum += HybAbs(a[perm ? perm[k] : k]);
    }
    sum     = HybSubwarpSum<W>(sum);
    largest = Larger()(largest, sum);
  }
  largest = HybBlockReduce<CSR_THREADS>(largest, scratch, Larger());
  if (threadIdx.x == 0) partial[blockIdx.x] = largest;
}

PetscErrorCode HybCSRNorm_CUDA(const HybExec *exec, HybArena *work, const HybCSR *A, HybNorm type, PetscReal *norm)
{
  PetscFunctionBegin;
  *norm = 0;
  if (A->nnz == 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (type == HYB_NORM_FROBENIUS) {
    const PetscCount blocks = PetscMin(NORM_BLOCKS, HybBlocks(A->nnz, CSR_THREADS));
    Squares         *partial, *host, s = {0, 0, 0};

    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), blocks, sizeof(*partial), &partial));
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, blocks, sizeof(*host), &host));
    HYB_LAUNCH(CSRSumSquares, blocks, CSR_THREADS, 0, exec->stream, A->nnz, A->a, partial);
    PetscCall(CSRFetch(exec, host, partial, (size_t)blocks * sizeof(*partial)));
    for (PetscCount k = 0; k < blocks; k++) {
      s.big += host[k].big;
      s.medium += host[k].medium;
      s.small += host[k].small;
    }
    if (s.big > 0 || s.big != s.big)
      *norm = PetscSqrtReal(s.big + (s.medium * blue_down) * blue_down) / blue_down;
    else if (s.small > 0) {
      const PetscReal u = PetscSqrtReal(s.medium), v = PetscSqrtReal(s.small) / blue_up, high = u > v ? u : v, low = u > v ? v : u;
      *norm = u != u ? u : high * PetscSqrtReal(1 + (low / high) * (low / high));
    } else
      *norm = PetscSqrtReal(s.medium);
    PetscCall(HybArenaFree(work, &partial, &host));
  } else {
    PetscInt  *perm = NULL;
    HybCSR     T    = *A;
    PetscReal *partial, *host;
    PetscCount blocks;
    int        w;

    PetscCall(HybCheckEntries(exec, A->nnz, "The matrix to take the norm of"));
    if (type == HYB_NORM_1) PetscCall(HybCSRTransposeSymbolic_CUDA(exec, work, work, A, &T, &perm));
    w      = RowWidth(T.nnz, T.m, 1);
    blocks = PetscMin(HybBlocks((PetscCount)T.m * w, CSR_THREADS), (PetscCount)NORM_BLOCKS);
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), blocks, sizeof(*partial), &partial));
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, blocks, sizeof(*host), &host));
    PetscCall(HybDispatch(w, RowWidths(), [&](auto W) {
      HYB_LAUNCH((CSRLargestRowSum<W>), blocks, CSR_THREADS, 0, exec->stream, T.m, T.i, perm, A->a, partial);
      return PETSC_SUCCESS;
    }));
    PetscCall(CSRFetch(exec, host, partial, (size_t)blocks * sizeof(*partial)));
    for (PetscCount k = 0; k < blocks; k++) *norm = Larger()(*norm, host[k]);
    if (type == HYB_NORM_1) PetscCall(HybArenaFree(work, &T.i, &T.j, &perm));
    PetscCall(HybArenaFree(work, &partial, &host));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCOONumeric_CUDA(const HybExec *exec, PetscCount nnz, const PetscCount *mapptr, const PetscCount *map, const HybScalar *v, PetscBool add, HybScalar *a)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, nnz, [=] __device__(PetscCount e) {
    const PetscCount end = mapptr[e + 1];
    PetscCount       k   = mapptr[e];
    HybScalar        sum = HybLoadReadOnly(v + map[k]); /* no list is empty */

    for (k++; k < end; k++) sum += HybLoadReadOnly(v + map[k]);
    a[e] = add ? a[e] + sum : sum;
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}
