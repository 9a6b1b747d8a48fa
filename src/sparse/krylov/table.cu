/*
  table.cu: operations of Krylov methods on the device. They run at the memory's speed: each pass reads what it needs
  once, 16 bytes at a time, and sums on the way.

  A sum has two levels. Blocks go over neighbouring packs of entries in turns, each thread with a sum for each vector;
  a block's sums are added in the order of its lanes and warps and left in memory. The block that is the last to do so
  adds those of all blocks, block by block within a lane. How many blocks there are follows from n alone, and which one
  is the last makes no difference: the same bits from run to run.

    dots      for each pack i:  w = what is asked about;  for each l:  sum_l += conj(u_l[i]) w[i]
    update    for each pack i:  w = s D^-1 u_k[i] - sum_l (h_l s_l) u_l[i];  u_k[i] = w;  squares += |w|^2

  The vector that is asked about is formed where it is read, both times: D^-1 is read once more, and a vector is not
  written and read again.
*/
#include "../device/hybchain.cuh"
#include "../spmv/scale.cuh"
#include "../spmv/sumsleft.cuh"
#include "hybdispatch.cuh"
#include "aijhybridgpu/private/hybkrylov.h"

#define KRYLOV_THREADS 256
#define KRYLOV_WARPS   (KRYLOV_THREADS / HYB_WARP)
#define KRYLOV_VECTORS (HYB_KRYLOV_STEPS + 1) /* at once */
static_assert(KRYLOV_VECTORS <= HYB_WARP, "KrylovDots<32> takes them all");
#define KRYLOV_PACK (sizeof(HybScalar) <= 16 ? (int)(16 / sizeof(HybScalar)) : 1)

/* neighbouring entries */
template <typename S>
struct KrylovPackOf {
  S v[KRYLOV_PACK];
};
using KrylovPack = KrylovPackOf<HybScalar>;

static bool KrylovAligned(const void *p)
{
  return ((uintptr_t)p & (KRYLOV_PACK * sizeof(HybScalar) - 1)) == 0;
}

static PetscCount KrylovPacks(PetscCount n)
{
  return (n + KRYLOV_PACK - 1) / KRYLOV_PACK;
}

static PetscCount KrylovBlocks(PetscCount n)
{
  const PetscCount blocks = HybBlocks(KrylovPacks(n), KRYLOV_THREADS);
  return blocks < HYB_KRYLOV_SUMS ? blocks : (PetscCount)HYB_KRYLOV_SUMS;
}

/* entries i, i+1, ... of p; 0 from n on */
template <typename S>
static __device__ __forceinline__ KrylovPackOf<S> KrylovLoad(const S *p, PetscCount i, PetscCount n, bool aligned)
{
  KrylovPackOf<S> r;
  if (aligned && i + KRYLOV_PACK <= n) {
    const HybVec<S, KRYLOV_PACK> v = HybLoadVec<KRYLOV_PACK>(p + i);
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) r.v[q] = v.v[q];
  } else {
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) r.v[q] = i + q < n ? p[i + q] : S(0);
  }
  return r;
}

template <typename S>
static __device__ __forceinline__ void KrylovStore(S *p, PetscCount i, PetscCount n, bool aligned, const KrylovPackOf<S> &r)
{
  if (aligned && i + KRYLOV_PACK <= n) {
    HybVec<S, KRYLOV_PACK> v;
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) v.v[q] = r.v[q];
    HybStoreVec<KRYLOV_PACK>(p + i, v);
  } else {
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++)
      if (i + q < n) p[i + q] = r.v[q];
  }
}

/* s dinv w; dinv may be NULL */
static __device__ __forceinline__ KrylovPack KrylovForm(const HybScalar *w, const HybScalar *dinv, PetscReal s, PetscCount i, PetscCount n, bool aligned)
{
  KrylovPack r = KrylovLoad(w, i, n, aligned);
  if (dinv) {
    const KrylovPack d = KrylovLoad(dinv, i, n, aligned);
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) r.v[q] = HybMul(d.v[q], r.v[q]);
  }
#pragma unroll
  for (int q = 0; q < KRYLOV_PACK; q++) r.v[q] = s * r.v[q];
  return r;
}

/* After the block's sums went to memory: is it the last one that did so? All threads take part. */
static __device__ __forceinline__ bool KrylovLast(int *arrived, int *last)
{
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    *last = HybAtomicAdd(arrived, 1) == (int)gridDim.x - 1;
    __threadfence();
    if (*last) *arrived = 0;
  }
  __syncthreads();
  return *last;
}

/* the sum of all blocks' sums, by one warp */
template <typename T>
static __device__ __forceinline__ T KrylovTotal(const T *sums)
{
  T sum = T(0);
#pragma unroll 8 /* loads under way together */
  for (int b = HybLane(); b < (int)gridDim.x; b += HYB_WARP) sum = sum + HybLoadShared(sums + b);
  return HybSubwarpSum<HYB_WARP>(sum);
}

/*
  scale NULL: w is asked about as it is, else scale[k-1] dinv w, and h[l] is multiplied by scale[l]. Loads of up to
  four vectors are under way together; where k is no multiple of that, the last one is read again, from the first-level
  cache, and the sum dropped.
*/
template <int K>
static __global__ __launch_bounds__(KRYLOV_THREADS, K * sizeof(HybScalar) <= 96 ? 4 : (K * sizeof(HybScalar) <= 256 ? 2 : 1)) void KrylovDots(PetscCount n, int k, const HybScalar *__restrict__ u, PetscCount ld, const HybScalar *__restrict__ w, const HybScalar *__restrict__ dinv, const PetscReal *__restrict__ scale, bool aligned, HybScalar *sums, int *arrived, HybScalar *h)
{
  constexpr int C = K < 4 ? K : 4;
  HYB_SHARED(HybScalar, part, K * KRYLOV_WARPS);
  HYB_SHARED(int, last, 1);
  const PetscReal s = scale ? scale[k - 1] : (PetscReal)1;
  HybScalar       sum[K];

#pragma unroll
  for (int l = 0; l < K; l++) sum[l] = HybScalar(0);
  for (PetscCount i = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK; i < n; i += (PetscCount)gridDim.x * KRYLOV_THREADS * KRYLOV_PACK) {
    const KrylovPack x = KrylovForm(w, dinv, s, i, n, aligned);
#pragma unroll
    for (int g = 0; g < K; g += C) {
      if (g < k) {
        KrylovPack v[C];
#pragma unroll
        for (int l = 0; l < C; l++) v[l] = KrylovLoad(u + (g + l < k ? g + l : k - 1) * ld, i, n, aligned);
#pragma unroll
        for (int l = 0; l < C; l++) {
#pragma unroll
          for (int q = 0; q < KRYLOV_PACK; q++) sum[g + l] = HybMulAdd(HybConj(v[l].v[q]), x.v[q], sum[g + l]);
        }
      }
    }
  }
#pragma unroll
  for (int l = 0; l < K; l++) {
    if (l < k) {
      sum[l] = HybSubwarpSum<HYB_WARP>(sum[l]);
      if (HybLane() == 0) part[l * KRYLOV_WARPS + threadIdx.x / HYB_WARP] = sum[l];
    }
  }
  __syncthreads();
  if ((int)threadIdx.x < k) {
    HybScalar t = part[threadIdx.x * KRYLOV_WARPS];
    for (int q = 1; q < KRYLOV_WARPS; q++) t = t + part[threadIdx.x * KRYLOV_WARPS + q];
    sums[(PetscCount)threadIdx.x * gridDim.x + blockIdx.x] = t;
  }
  if (!KrylovLast(arrived, last)) return;
  for (int l = (int)threadIdx.x / HYB_WARP; l < k; l += KRYLOV_WARPS) {
    const HybScalar t = KrylovTotal(sums + (PetscCount)l * gridDim.x);
    if (HybLane() == 0) h[l] = scale ? scale[l] * t : t;
  }
}

/* what an update subtracts, and where it leaves its norm: the step before left h and scale on the device, or the host
   tells */
struct KrylovKept {
  PetscReal       *scale;
  const HybScalar *h;
  HybScalar       *norm;
  PetscReal       *first;
};
struct KrylovTold {
  PetscReal  s;
  HybScalar *squares;
  HybScalar  c[HYB_KRYLOV_STEPS];
};

static __device__ __forceinline__ PetscReal KrylovFactor(const KrylovKept &o, int k)
{
  return k ? o.scale[k - 1] : (PetscReal)1;
}
static __device__ __forceinline__ PetscReal KrylovFactor(const KrylovTold &o, int)
{
  return o.s;
}
static __device__ __forceinline__ HybScalar KrylovCoefficient(const KrylovKept &o, int l)
{
  return -o.scale[l] * o.h[l];
}
static __device__ __forceinline__ HybScalar KrylovCoefficient(const KrylovTold &o, int l)
{
  return -o.c[l];
}
static __device__ __forceinline__ void KrylovLeave(const KrylovKept &o, int k, PetscReal squares)
{
  const PetscReal norm = (PetscReal)sqrt(squares);
  o.scale[k]           = 1 / norm;
  if (o.norm)
    *o.norm = HybScalar(norm);
  else
    *o.first = norm;
}
static __device__ __forceinline__ void KrylovLeave(const KrylovTold &o, int, PetscReal squares)
{
  *o.squares = HybScalar(squares);
}

/* out = s dinv in - sum over l < k of c[l] u_l, and its sum of squares. Kept: c[l] = h[l] scale[l], s = scale[k-1], or
   1 for k = 0; scale[k] and *norm from its norm. out may be in, or NULL: the norm alone. */
template <typename Operands>
static __global__ __launch_bounds__(KRYLOV_THREADS, 4) void KrylovUpdate(PetscCount n, int k, const HybScalar *u, PetscCount ld, const HybScalar *in, HybScalar *out, const HybScalar *__restrict__ dinv, Operands operands, bool aligned, PetscReal *sums, int *arrived)
{
  HYB_SHARED(HybScalar, coefficient, KRYLOV_VECTORS);
  HYB_SHARED(PetscReal, scratch, HYB_WARP);
  HYB_SHARED(int, last, 1);
  const PetscReal s       = KrylovFactor(operands, k);
  PetscReal       squares = 0;

  if ((int)threadIdx.x < k) coefficient[threadIdx.x] = KrylovCoefficient(operands, threadIdx.x);
  __syncthreads();
  for (PetscCount i = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK; i < n; i += (PetscCount)gridDim.x * KRYLOV_THREADS * KRYLOV_PACK) {
    KrylovPack x = KrylovForm(in, dinv, s, i, n, aligned);
#pragma unroll 4
    for (int l = 0; l < k; l++) {
      const KrylovPack v = KrylovLoad(u + l * ld, i, n, aligned);
#pragma unroll
      for (int q = 0; q < KRYLOV_PACK; q++) x.v[q] = HybMulAdd(coefficient[l], v.v[q], x.v[q]);
    }
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) {
#if defined(PETSC_USE_COMPLEX)
      squares += x.v[q].real() * x.v[q].real() + x.v[q].imag() * x.v[q].imag();
#else
      squares += x.v[q] * x.v[q];
#endif
    }
    if (out) KrylovStore(out, i, n, aligned, x);
  }
  squares = HybBlockSum<KRYLOV_THREADS>(squares, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = squares;
  if (!KrylovLast(arrived, last) || threadIdx.x >= HYB_WARP) return;
  squares = KrylovTotal(sums);
  if (threadIdx.x == 0) KrylovLeave(operands, k, squares);
}

using KrylovCounts = HybCases<1, 2, 4, 8, 12, 16, 32>;

static PetscErrorCode KrylovDotsLaunch(const HybExec *exec, PetscCount n, PetscInt k, const HybScalar *u, PetscCount ld, const HybScalar *w, const HybScalar *dinv, const PetscReal *scale, HybScalar *sums, int *arrived, HybScalar *h)
{
  const bool aligned = KrylovAligned(u) && KrylovAligned(w) && KrylovAligned(dinv) && (k < 2 || ld % KRYLOV_PACK == 0);

  PetscFunctionBegin;
  PetscCall(HybDispatch(HybLeastCase(k, KrylovCounts()), KrylovCounts(), [&](auto K) {
    HYB_LAUNCH((KrylovDots<K>), KrylovBlocks(n), KRYLOV_THREADS, 0, exec->stream, n, (int)k, u, ld, w, dinv, scale,
               aligned, sums, arrived, h);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovStart_CUDA(const HybExec *exec, const HybKrylovBasis *B, const HybScalar *b)
{
  const bool       aligned = KrylovAligned(b) && KrylovAligned(B->u) && KrylovAligned(B->dinv);
  const KrylovKept kept    = {B->scale, B->h, nullptr, B->scale + B->steps + 1};

  PetscFunctionBegin;
  HYB_LAUNCH(KrylovUpdate<KrylovKept>, KrylovBlocks(B->n), KRYLOV_THREADS, 0, exec->stream, B->n, 0, B->u, B->ld, b, B->u, B->dinv, kept, aligned, (PetscReal *)B->sums, B->arrived);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovStep_CUDA(const HybExec *exec, const HybKrylovBasis *B, PetscInt k)
{
  const bool       aligned = KrylovAligned(B->u) && KrylovAligned(B->dinv) && B->ld % KRYLOV_PACK == 0;
  HybScalar       *h = B->h + (size_t)k * (B->steps + 1), *w = B->u + (k + 1) * B->ld;
  const KrylovKept kept = {B->scale, h, h + k + 1, nullptr};

  PetscFunctionBegin;
  PetscCall(KrylovDotsLaunch(exec, B->n, k + 1, B->u, B->ld, w, B->dinv, B->scale, B->sums, B->arrived, h));
  HYB_LAUNCH(KrylovUpdate<KrylovKept>, KrylovBlocks(B->n), KRYLOV_THREADS, 0, exec->stream, B->n, (int)k + 1, B->u, B->ld, w, k + 1 < B->steps ? w : (HybScalar *)nullptr, B->dinv, kept, aligned, (PetscReal *)B->sums, B->arrived);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* column k of h has the products, and behind them the sum of squares of u_k, so that one copy takes both */
static PetscErrorCode HybKrylovProject_CUDA(const HybExec *exec, const HybKrylovBasis *B, PetscInt k, const HybScalar *w, HybScalar *g)
{
  HybScalar *h = B->h + (size_t)k * (B->steps + 1);

  PetscFunctionBegin;
  PetscCall(KrylovDotsLaunch(exec, B->n, k + 1, B->u, B->ld, w, B->dinv, nullptr, B->sums, B->arrived, h));
  PetscCall(exec->backend->copy(exec, g, h, (size_t)(k + 2) * sizeof(*g), HYB_COPY_DEVICE_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovUpdate_CUDA(const HybExec *exec, const HybKrylovBasis *B, PetscInt k, PetscReal s, const HybScalar *c, const HybScalar *w)
{
  const bool aligned = KrylovAligned(w) && KrylovAligned(B->u) && KrylovAligned(B->dinv) && B->ld % KRYLOV_PACK == 0;
  const bool last    = k + 1 == B->steps;
  KrylovTold told;

  PetscFunctionBegin;
  told.s       = s;
  told.squares = B->h + (last ? (size_t)B->steps * (B->steps + 1) : (size_t)(k + 1) * (B->steps + 1) + k + 2);
  for (PetscInt l = 0; l < HYB_KRYLOV_STEPS; l++) told.c[l] = l <= k ? c[l] : HybScalar(0);
  HYB_LAUNCH(KrylovUpdate<KrylovTold>, KrylovBlocks(B->n), KRYLOV_THREADS, 0, exec->stream, B->n, (int)k + 1, B->u, B->ld, w, last ? (HybScalar *)nullptr : B->u + (k + 1) * B->ld, B->dinv, told, aligned, (PetscReal *)B->sums, B->arrived);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __global__ __launch_bounds__(KRYLOV_THREADS) void KrylovNoise(PetscCount first, PetscCount n, bool aligned, HybScalar *__restrict__ x)
{
  const PetscCount i = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK;
  KrylovPack       r;

  if (i >= n) return;
#pragma unroll
  for (int q = 0; q < KRYLOV_PACK; q++) {
    uint32_t v = (uint32_t)(uint64_t)(first + i + q);
    v          = (v ^ (v >> 16)) * 0x45d9f3bu;
    v          = (v ^ (v >> 16)) * 0x45d9f3bu;
    v          = v ^ (v >> 16);
    r.v[q]     = HybScalar((PetscReal)((double)((int64_t)v - (int64_t)2147483648) * 5.e-10));
  }
  KrylovStore(x, i, n, aligned, r);
}

static PetscErrorCode HybKrylovNoise_CUDA(const HybExec *exec, PetscCount first, PetscCount n, HybScalar *x)
{
  PetscFunctionBegin;
  HYB_LAUNCH(KrylovNoise, HybBlocks(KrylovPacks(n), KRYLOV_THREADS), KRYLOV_THREADS, 0, exec->stream, first, n, KrylovAligned(x), x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __global__ __launch_bounds__(KRYLOV_THREADS) void KrylovReciprocal(PetscCount n, bool aligned, const HybScalar *d, HybScalar ofzero, HybScalar *inv, PetscCount *zeros)
{
  HYB_SHARED(int, scratch, HYB_WARP);
  const PetscCount i     = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK;
  int              count = 0;

  if (i < n) {
    KrylovPack r = KrylovLoad(d, i, n, aligned);
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) {
      const bool zero = r.v[q] == HybScalar(0);
      count += zero && i + q < n;
      if (inv) r.v[q] = zero ? ofzero : HybScalar(1) / r.v[q];
    }
    if (inv) KrylovStore(inv, i, n, aligned, r);
  }
  if (!zeros) return;
  count = HybBlockSum<KRYLOV_THREADS>(count, scratch);
  if (threadIdx.x == 0 && count) HybAtomicAdd(zeros, (PetscCount)count);
}

static PetscErrorCode HybKrylovReciprocal_CUDA(const HybExec *exec, HybArena *work, PetscCount n, const HybScalar *d, PetscReal ofzero, HybScalar *inv, PetscCount *zeros)
{
  PetscCount *there = nullptr;

  PetscFunctionBegin;
  if (zeros) *zeros = 0;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  if (zeros) PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*there), &there));
  HYB_LAUNCH(KrylovReciprocal, HybBlocks(KrylovPacks(n), KRYLOV_THREADS), KRYLOV_THREADS, 0, exec->stream, n, KrylovAligned(d) && KrylovAligned(inv), d, HybScalar(ofzero), inv, there);
  if (!zeros) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(exec->backend->copy(exec, zeros, there, sizeof(*zeros), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(work, &there));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __device__ __forceinline__ PetscReal CGReal(const HybScalar &v)
{
#if defined(PETSC_USE_COMPLEX)
  return v.real();
#else
  return v;
#endif
}

/* a term of an inner product of the method's kind */
static __device__ __forceinline__ HybScalar CGTerm(const HybCG &cg, const HybScalar &a, const HybScalar &b)
{
  return HybMul(a, cg.hermitian ? HybConj(b) : b);
}

/* sums of up to three products at once, in the blocks' order */
template <int K>
static __device__ __forceinline__ bool CGSums(const HybScalar (&mine)[K], HybScalar *sums, int *arrived, HybScalar (&total)[K])
{
  HYB_SHARED(HybScalar, scratch, HYB_WARP);
  HYB_SHARED(int, last, 1);
#pragma unroll
  for (int k = 0; k < K; k++) {
    const HybScalar sum = HybBlockSum<KRYLOV_THREADS>(mine[k], scratch);
    if (threadIdx.x == 0) sums[k * HYB_KRYLOV_SUMS + blockIdx.x] = sum;
    __syncthreads();
  }
  if (!KrylovLast(arrived, last)) return false;
  const int warp = (int)threadIdx.x / HYB_WARP; /* one for each sum: they wait for memory */
  if (warp < K) {
    const HybScalar sum = KrylovTotal(sums + warp * HYB_KRYLOV_SUMS);
    if (HybLane() == 0) scratch[warp] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < K; k++) total[k] = scratch[k];
  return threadIdx.x == 0;
}

/* the norm that ends the iterations, HybCGNorm() */
static __device__ __forceinline__ PetscReal CGNorm(const HybCG &cg)
{
  const int       kind   = (int)CGReal(cg.s[HYB_CG_KIND]);
  const PetscReal beta   = CGReal(cg.s[HYB_CG_BETA]);
  const PetscReal square = kind == HYB_CG_NORM_Z ? CGReal(cg.s[HYB_CG_ZZ]) : kind == HYB_CG_NORM_R ? CGReal(cg.s[HYB_CG_RR])
                                                                                                   : (beta < 0 ? -beta : beta);

  return (PetscReal)sqrt(square);
}

/* the goal, as KSPConvergedDefault() sets it by the first norm */
static __device__ __forceinline__ void CGAim(const HybCG &cg)
{
  const PetscReal norm = CGNorm(cg), goal = CGReal(cg.s[HYB_CG_RTOL]) * norm, least = CGReal(cg.s[HYB_CG_GOAL]);

  cg.s[HYB_CG_GOAL]  = HybScalar(goal < least ? least : goal);
  cg.s[HYB_CG_MOST]  = HybScalar(CGReal(cg.s[HYB_CG_MOST]) * norm);
  cg.s[HYB_CG_FIRST] = HybScalar(0);
}

/* will the host end the iterations? PETSc's test and HybCGBegin() */
static __device__ __forceinline__ bool CGEnds(const HybCG &cg)
{
  if ((int)CGReal(cg.s[HYB_CG_KIND]) == HYB_CG_NONE) return false;
  const HybScalar beta = cg.s[HYB_CG_BETA];
  if (cg.s[HYB_CG_STOPPED] != HybScalar(0) || beta == HybScalar(0) || beta - beta != HybScalar(0)) return true;
  if (sizeof(HybScalar) == sizeof(PetscReal) && CGReal(cg.s[HYB_CG_BETA]) * CGReal(cg.s[HYB_CG_BETAOLD]) < 0) return true;
  const PetscReal norm = CGNorm(cg);
  return norm <= CGReal(cg.s[HYB_CG_GOAL]) || norm >= CGReal(cg.s[HYB_CG_MOST]);
}

/* all numbers are there: by one thread */
static __device__ __forceinline__ void CGConcludes(const HybCG &cg)
{
  if (cg.s[HYB_CG_FIRST] != HybScalar(0)) CGAim(cg);
  cg.s[HYB_CG_LAST] = HybScalar(CGEnds(cg) ? 1 : 0);
  if (cg.letters) {
    static_assert(HYB_CG_NUMBERS * sizeof(HybScalar) <= HYB_LETTER_BYTES, "a letter has all numbers");
    const int        turn   = (int)CGReal(cg.s[HYB_CG_TURN]);
    HybScalar *const letter = cg.letters + (PetscCount)turn * (HYB_LETTER_BYTES / sizeof(HybScalar));
#pragma unroll
    for (int q = 0; q < HYB_CG_NUMBERS; q++) letter[q] = cg.s[q];
    cg.s[HYB_CG_TURN] = HybScalar((turn + 1) % HYB_LETTERS); /* the host reads it after an event: no fence */
  }
}

static __global__ void CGConclude(HybCG cg)
{
  HybChainWait();
  if (threadIdx.x == 0) CGConcludes(cg);
}

/* z r, |z|^2 and |r|^2, by one thread */
static __device__ __forceinline__ void CGKeep(const HybCG &cg, const HybScalar (&total)[3])
{
  cg.s[HYB_CG_BETAOLD] = cg.s[HYB_CG_BETA];
  cg.s[HYB_CG_BETA]    = total[0];
  cg.s[HYB_CG_ZZ]      = total[1];
  cg.s[HYB_CG_RR]      = total[2];
  if (!cg.partly) CGConcludes(cg);
}

/* p w */
static __device__ __forceinline__ void CGKeep(const HybCG &cg, const HybScalar (&total)[1])
{
  cg.s[HYB_CG_DPIOLD] = cg.s[HYB_CG_DPI];
  cg.s[HYB_CG_DPI]    = total[0];
}

static __global__ __launch_bounds__(KRYLOV_THREADS) void CGProducts(PetscCount n, HybCG cg, bool aligned, const HybScalar *z, const HybScalar *r)
{
  HybChainWait();
  HybScalar sum[3] = {HybScalar(0), HybScalar(0), HybScalar(0)}, total[3];

  for (PetscCount i = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK; i < n; i += (PetscCount)gridDim.x * KRYLOV_THREADS * KRYLOV_PACK) {
    const KrylovPack a = KrylovLoad(z, i, n, aligned), b = KrylovLoad(r, i, n, aligned);
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) {
      sum[0] = sum[0] + CGTerm(cg, a.v[q], b.v[q]);
      sum[1] = sum[1] + HybMul(a.v[q], HybConj(a.v[q]));
      sum[2] = sum[2] + HybMul(b.v[q], HybConj(b.v[q]));
    }
  }
  if (CGSums(sum, cg.s + HYB_CG_NUMBERS, cg.arrived, total)) CGKeep(cg, total);
}

/* what a product of a = p, or a cycle's last step, of a = z, would have left: K sums for each block */
template <int K>
static __global__ __launch_bounds__(SUMS_ROWS) void CGLeave(PetscCount n, bool hermitian, const HybScalar *a, const HybScalar *b, HybScalar *part)
{
  HybChainWait();
  const PetscCount r  = (PetscCount)blockIdx.x * SUMS_ROWS + threadIdx.x;
  const HybScalar  av = r < n ? a[r] : HybScalar(0), bv = r < n ? b[r] : HybScalar(0);

  if constexpr (K == 3)
    SumsLeaveProducts(av, bv, hermitian, part);
  else
    SumsLeaveProduct(av, bv, hermitian, part);
}

/* of sums that each block of another launch has left, K of them side by side */
#define CG_LEFT_BLOCKS 32
template <int K>
static __global__ __launch_bounds__(KRYLOV_THREADS) void CGLeft(PetscCount blocks, HybCG cg, const HybScalar *part)
{
  HybChainWait();
  HybScalar sum[K], total[K];

#pragma unroll
  for (int k = 0; k < K; k++) sum[k] = HybScalar(0);
  for (PetscCount b = (PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x; b < blocks; b += (PetscCount)gridDim.x * KRYLOV_THREADS) {
#pragma unroll
    for (int k = 0; k < K; k++) sum[k] = sum[k] + part[b * K + k];
  }
  if (CGSums(sum, cg.s + HYB_CG_NUMBERS, cg.arrived, total)) CGKeep(cg, total);
}

/* the first step of a cycle, where it is made in a pass over its right-hand side */
static __device__ __forceinline__ void CGFirst(const HybSpMVFirst &first, PetscCount i, PetscCount n, bool aligned, const KrylovPack &dinv, KrylovPack r)
{
  const PetscReal c = first.c[0];

#pragma unroll
  for (int q = 0; q < KRYLOV_PACK; q++) r.v[q] = c * HybMul(dinv.v[q], r.v[q]);
  KrylovStore(first.z, i, n, aligned, r);
}

/* The same of a cycle in single precision, whose right-hand side goes to it as well, in arrays of the cycle's, which
   are aligned. Nobody knows the largest entry of r yet: the scale is that of its norm before the step, or the last one
   where that has no exponent. */
static __device__ __forceinline__ int CGScale(const HybCG &cg, const HybSpMVFirst &first)
{
  const int e = ScaleExponent(CGReal(cg.s[HYB_CG_RR]));

  return e == SCALE_NONE ? *first.scale : e >> 1;
}

static __device__ __forceinline__ void CGFirstSingle(const HybSpMVFirst &first, int scale, PetscCount i, PetscCount n, const KrylovPack &r)
{
  const PetscReal               by = ScalePower(-scale);
  KrylovPackOf<HybScalarSingle> b;

#pragma unroll
  for (int q = 0; q < KRYLOV_PACK; q++) b.v[q] = ScaleNarrow(by * r.v[q]);
  KrylovStore((HybScalarSingle *)first.single, i, n, true, b);
  if (!first.z) return;
  const KrylovPackOf<HybScalarSingle> d = KrylovLoad((const HybScalarSingle *)first.dinv, i, n, true);
  const float                         c = (float)first.c[0];
#pragma unroll
  for (int q = 0; q < KRYLOV_PACK; q++) b.v[q] = c * HybMul(d.v[q], b.v[q]);
  KrylovStore((HybScalarSingle *)first.z, i, n, true, b);
}

template <bool FIRST>
static __global__ __launch_bounds__(KRYLOV_THREADS) void CGBegin(PetscCount n, bool aligned, const HybScalar *b, HybScalar *r, const HybScalar *x, HybScalar *to, HybSpMVFirst first)
{
  HybChainWait();
  const PetscCount i = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK;
  KrylovPack       dd;

  if (i >= n) return;
  if constexpr (FIRST) dd = KrylovLoad(first.dinv, i, n, aligned);
  const KrylovPack bb = KrylovLoad(b, i, n, aligned);
  KrylovStore(r, i, n, aligned, bb);
  if (to != x) KrylovStore(to, i, n, aligned, KrylovLoad(x, i, n, aligned));
  if constexpr (FIRST) CGFirst(first, i, n, aligned, dd, bb);
}

/* x + a p, of the step before */
static __device__ __forceinline__ KrylovPack CGMoved(const HybCG &cg, KrylovPack x, const KrylovPack &p)
{
  const HybScalar a = cg.s[HYB_CG_BETAOLD] / cg.s[HYB_CG_DPI];

#pragma unroll
  for (int q = 0; q < KRYLOV_PACK; q++) x.v[q] = x.v[q] + HybMul(a, p.v[q]);
  return x;
}

static __global__ __launch_bounds__(KRYLOV_THREADS) void CGDirection(PetscCount n, HybCG cg, bool aligned, const HybScalar *z, HybScalar *p, HybScalar *x)
{
  HybChainWait();
  const PetscCount i      = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK;
  const HybScalar  before = cg.s[HYB_CG_BETAOLD];
  /* any: there was a step before */
  const bool any = before != HybScalar(0), moves = any && cg.s[HYB_CG_STOPPED] == HybScalar(0);
  KrylovPack pp;

  if (i >= n) return;
  if (any) pp = KrylovLoad(p, i, n, aligned);
  KrylovPack zz = KrylovLoad(z, i, n, aligned);
  if (moves) KrylovStore(x, i, n, aligned, CGMoved(cg, KrylovLoad(x, i, n, aligned), pp));
  if (any) {
    const HybScalar b = cg.s[HYB_CG_BETA] / before;
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) zz.v[q] = zz.v[q] + HybMul(b, pp.v[q]);
  }
  KrylovStore(p, i, n, aligned, zz);
}

static __global__ __launch_bounds__(KRYLOV_THREADS) void CGEnd(PetscCount n, HybCG cg, bool aligned, const HybScalar *p, const HybScalar *x, HybScalar *to, bool iflast)
{
  HybChainWait();
  const PetscCount i     = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK;
  const bool       moves = cg.s[HYB_CG_BETAOLD] != HybScalar(0) && cg.s[HYB_CG_STOPPED] == HybScalar(0);

  if (i >= n || (iflast && cg.s[HYB_CG_LAST] == HybScalar(0))) return;
  if (moves)
    KrylovStore(to, i, n, aligned, CGMoved(cg, KrylovLoad(x, i, n, aligned), KrylovLoad(p, i, n, aligned)));
  else if (to != x)
    KrylovStore(to, i, n, aligned, KrylovLoad(x, i, n, aligned));
}

static __global__ __launch_bounds__(KRYLOV_THREADS) void CGCurvature(PetscCount n, HybCG cg, bool aligned, const HybScalar *p, const HybScalar *w)
{
  HybChainWait();
  HybScalar sum[1] = {HybScalar(0)}, total[1];

  for (PetscCount i = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK; i < n; i += (PetscCount)gridDim.x * KRYLOV_THREADS * KRYLOV_PACK) {
    const KrylovPack a = KrylovLoad(p, i, n, aligned), b = KrylovLoad(w, i, n, aligned);
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) sum[0] = sum[0] + CGTerm(cg, a.v[q], b.v[q]);
  }
  if (CGSums(sum, cg.s + HYB_CG_NUMBERS, cg.arrived, total)) CGKeep(cg, total);
}

static __device__ __forceinline__ bool CGStops(const HybCG &cg)
{
  const HybScalar dpi    = cg.s[HYB_CG_DPI];
  const PetscReal before = CGReal(cg.s[HYB_CG_DPIOLD]), now = CGReal(dpi);
  const bool      zero = dpi == HybScalar(0), finite = dpi - dpi == HybScalar(0);

  return zero || !finite || (before < 0 && now > 0) || (before > 0 && now < 0);
}

/* FIRST: of a cycle, in no, double or single precision */
enum {
  CG_NO_FIRST,
  CG_FIRST,
  CG_FIRST_SINGLE
};
template <int FIRST>
static __global__ __launch_bounds__(KRYLOV_THREADS) void CGUpdate(PetscCount n, HybCG cg, bool aligned, const HybScalar *w, HybScalar *r, HybSpMVFirst first)
{
  HybChainWait();
  const PetscCount i    = ((PetscCount)blockIdx.x * KRYLOV_THREADS + threadIdx.x) * KRYLOV_PACK;
  const bool       stop = CGStops(cg), keep = stop || cg.s[HYB_CG_LAST] != HybScalar(0);
  const HybScalar  a     = keep ? HybScalar(0) : HybScalar(cg.s[HYB_CG_BETA] / cg.s[HYB_CG_DPI]); /* no 0 / 0 */
  const int        scale = FIRST == CG_FIRST_SINGLE ? CGScale(cg, first) : 0;
  KrylovPack       dd;

  if (i == 0) cg.s[HYB_CG_STOPPED] = HybScalar(stop ? 1 : 0);
  if (FIRST == CG_FIRST_SINGLE && i == 0 && *first.scale != scale) *first.scale = scale;
  if (i >= n) return;
  if constexpr (FIRST == CG_FIRST) dd = KrylovLoad(first.dinv, i, n, aligned);
  KrylovPack rr = KrylovLoad(r, i, n, aligned);
  if (!keep) {
    const KrylovPack ww = KrylovLoad(w, i, n, aligned);
#pragma unroll
    for (int q = 0; q < KRYLOV_PACK; q++) rr.v[q] = rr.v[q] - HybMul(a, ww.v[q]);
    KrylovStore(r, i, n, aligned, rr);
  }
  if constexpr (FIRST == CG_FIRST) CGFirst(first, i, n, aligned, dd, rr);
  if constexpr (FIRST == CG_FIRST_SINGLE) CGFirstSingle(first, scale, i, n, rr);
}

static PetscErrorCode HybKrylovCGBegin_CUDA(const HybExec *exec, PetscCount n, const HybScalar *b, HybScalar *r, const HybScalar *x, HybScalar *to, const HybSpMVFirst *first)
{
  const HybSpMVFirst f       = first ? *first : HybSpMVFirst();
  const bool         aligned = KrylovAligned(b) && KrylovAligned(r) && KrylovAligned(x) && KrylovAligned(to) && KrylovAligned(f.dinv) && KrylovAligned(f.z);

  PetscFunctionBegin;
  PetscCheck(!f.single, PETSC_COMM_SELF, PETSC_ERR_SUP, "A first step in single precision needs a scale, which is not known yet");
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybDispatch(first != nullptr, HybFlags(), [&](auto FIRST) {
    HYB_LAUNCH_CHAINED(n, (CGBegin<FIRST>), HybBlocks(KrylovPacks(n), KRYLOV_THREADS), KRYLOV_THREADS, 0, exec->stream, n, aligned, b, r, x, to, f);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovCGProducts_CUDA(const HybExec *exec, const HybCG *cg, PetscCount n, const HybScalar *z, const HybScalar *r)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CGProducts, PetscMax((PetscCount)1, KrylovBlocks(n)), KRYLOV_THREADS, 0, exec->stream, n, *cg, KrylovAligned(z) && KrylovAligned(r), z, r);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovCGDirection_CUDA(const HybExec *exec, const HybCG *cg, PetscCount n, const HybScalar *z, HybScalar *p, HybScalar *x)
{
  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  HYB_LAUNCH_CHAINED(n, CGDirection, HybBlocks(KrylovPacks(n), KRYLOV_THREADS), KRYLOV_THREADS, 0, exec->stream, n, *cg, KrylovAligned(z) && KrylovAligned(p) && KrylovAligned(x), z, p, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovCGEnd_CUDA(const HybExec *exec, const HybCG *cg, PetscCount n, const HybScalar *p, const HybScalar *x, HybScalar *to, PetscBool iflast)
{
  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  HYB_LAUNCH_CHAINED(n, CGEnd, HybBlocks(KrylovPacks(n), KRYLOV_THREADS), KRYLOV_THREADS, 0, exec->stream, n, *cg, KrylovAligned(p) && KrylovAligned(x) && KrylovAligned(to), p, x, to, (bool)iflast);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovCGCurvature_CUDA(const HybExec *exec, const HybCG *cg, PetscCount n, const HybScalar *p, const HybScalar *w)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(n, CGCurvature, PetscMax((PetscCount)1, KrylovBlocks(n)), KRYLOV_THREADS, 0, exec->stream, n, *cg, KrylovAligned(p) && KrylovAligned(w), p, w);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int K>
static PetscErrorCode HybKrylovCGLeft_CUDA(const HybExec *exec, const HybCG *cg, PetscCount n, const HybScalar *a, const HybScalar *b, HybScalar *part)
{
  const PetscCount blocks = HybBlocks(n, SUMS_ROWS);

  PetscFunctionBegin;
  if (a) HYB_LAUNCH_CHAINED(n, (CGLeave<K>), blocks, SUMS_ROWS, 0, exec->stream, n, (bool)cg->hermitian, a, b, part);
  HYB_LAUNCH_CHAINED(blocks, (CGLeft<K>), PetscMax((PetscCount)1, PetscMin((PetscCount)CG_LEFT_BLOCKS, HybBlocks(blocks, KRYLOV_THREADS))), KRYLOV_THREADS, 0, exec->stream, blocks, *cg, part);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovCGUpdate_CUDA(const HybExec *exec, const HybCG *cg, PetscCount n, const HybScalar *w, HybScalar *r, const HybSpMVFirst *first)
{
  const HybSpMVFirst f       = first ? *first : HybSpMVFirst();
  const bool         aligned = KrylovAligned(w) && KrylovAligned(r) && (f.single || (KrylovAligned(f.dinv) && KrylovAligned(f.z)));

  PetscFunctionBegin;
  PetscCall(HybDispatch(!first ? (int)CG_NO_FIRST : f.single ? (int)CG_FIRST_SINGLE
                                                             : (int)CG_FIRST,
                        HybCases<CG_NO_FIRST, CG_FIRST, CG_FIRST_SINGLE>(), [&](auto FIRST) {
                          HYB_LAUNCH_CHAINED(n, (CGUpdate<FIRST>), PetscMax((PetscCount)1, HybBlocks(KrylovPacks(n), KRYLOV_THREADS)), KRYLOV_THREADS, 0, exec->stream, n, *cg, aligned, w, r, f);
                          return PETSC_SUCCESS;
                        }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovCGConclude_CUDA(const HybExec *exec, const HybCG *cg)
{
  PetscFunctionBegin;
  HYB_LAUNCH_CHAINED(1, CGConclude, 1, HYB_WARP, 0, exec->stream, *cg);
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybKrylovColumnsOps HybKrylovColumnsCUDA;
extern const HybKrylovOps        HybKrylovCUDA;
const HybKrylovOps               HybKrylovCUDA = {
                .noise           = HybKrylovNoise_CUDA,
                .reciprocal      = HybKrylovReciprocal_CUDA,
                .start           = HybKrylovStart_CUDA,
                .step            = HybKrylovStep_CUDA,
                .project         = HybKrylovProject_CUDA,
                .update          = HybKrylovUpdate_CUDA,
                .cgbegin         = HybKrylovCGBegin_CUDA,
                .cgproducts      = HybKrylovCGProducts_CUDA,
                .cgdirection     = HybKrylovCGDirection_CUDA,
                .cgend           = HybKrylovCGEnd_CUDA,
                .cgcurvature     = HybKrylovCGCurvature_CUDA,
                .cgproductsleft  = HybKrylovCGLeft_CUDA<3>,
                .cgcurvatureleft = HybKrylovCGLeft_CUDA<1>,
                .cgupdate        = HybKrylovCGUpdate_CUDA,
                .cgconclude      = HybKrylovCGConclude_CUDA,
                .columns         = &HybKrylovColumnsCUDA,
};
