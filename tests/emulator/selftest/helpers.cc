/*
  helpers.cc: the warp, block and group helpers of hybdevice.cuh and hybgroup.cuh, each against a loop.

  Sub-warps of every width, some of a warp's alone while the others wait elsewhere; blocks of several sizes; scratch that is used again at once; types of
  4, 8, 12 and 16 bytes; an operation that does not commute, where the order is promised.
*/
#include "hybgroup.cuh"
#include <algorithm>
#include <cstdio>
#include <petscsys.h>
#include <vector>

static int passed, failed;

static void Check(bool good, const char *what, int a, int b)
{
  if (good) passed++;
  else {
    failed++;
    printf("FAILED: %s: %d, %d\n", what, a, b);
  }
}

/* x -> a x + b, one after the other: associative, but the order matters. Unsigned, so that it may wrap around. */
struct Affine {
  uint64_t a, b;
  bool     operator==(const Affine &o) const { return a == o.a && b == o.b; }
};
struct Then {
  __host__ __device__ Affine operator()(const Affine &f, const Affine &g) const { return Affine{f.a * g.a, g.a * f.b + g.b}; }
};
/* 12 bytes */
struct Triple {
  int  x, y, z;
  bool operator==(const Triple &o) const { return x == o.x && y == o.y && z == o.z; }
};

struct Results {
  int        sum, most, least, inclusive, exclusive, total, alone; /* no gaps: all of it is copied */
  Triple     up, across, at;
  PetscCount longsum, longexclusive;
  Affine     scan;
};

static __host__ __device__ inline int    Value(int t) { return (t * 37 + 11) % 101 - 50; }
static __host__ __device__ inline Affine Function(int t) { return Affine{(uint64_t)(2 * t + 3), (uint64_t)(t * t + 1)}; }
static __host__ __device__ inline Triple Three(int t) { return Triple{t, 1000 + 7 * t, -t * t}; }

#define SUBWARP_THREADS 96

/* the sub-warps with a bit in `which` call the helpers, the others wait at the barrier behind them */
template <int W>
static __global__ void Subwarps(uint64_t which, Results *out)
{
  const int t = (int)threadIdx.x;
  if (which >> (t / W % 64) & 1) {
    const unsigned mask = HybSubwarpMask<W>();
    Results        r = Results();
    r.sum           = HybSubwarpSum<W>(Value(t));
    r.most          = HybSubwarpMax<W>(Value(t));
    r.least         = HybSubwarpMin<W>(Value(t));
    r.inclusive     = HybSubwarpInclusiveSum<W>(Value(t));
    r.exclusive     = HybSubwarpExclusiveSum<W>(Value(t), &r.total);
    r.alone         = HybSubwarpExclusiveSum<W>(Value(t));
    r.longsum       = HybSubwarpSum<W>((PetscCount)Value(t) << 33);
    r.longexclusive = HybSubwarpExclusiveSum<W>((PetscCount)Value(t) << 33);
    r.scan          = HybSubwarpInclusiveScan<W>(Function(t), Then());
    r.up            = HybShflUp(mask, Three(t), 1, W);
    r.across        = HybShflXor(mask, Three(t), W / 2, W);
    r.at            = HybShfl(mask, Three(t), W / 2, W);
    out[t]          = r;
  }
  __syncthreads();
}

/* scratch is used by one call after the other, and by the kernel itself */
template <int THREADS>
static __global__ void Blocks(Results *out)
{
  HYB_SHARED(int, scratch, HYB_WARP);
  HYB_SHARED(PetscCount, longscratch, HYB_WARP);
  const int t = (int)threadIdx.x;
  Results   r = Results();
  r.sum       = HybBlockSum<THREADS>(Value(t), scratch);
  r.most      = HybBlockMax<THREADS>(Value(t), scratch);
  r.least     = HybBlockMin<THREADS>(Value(t), scratch);
  r.exclusive = HybBlockExclusiveSum<THREADS>(Value(t), scratch, &r.total);
  r.alone     = HybBlockExclusiveSum<THREADS>(Value(t), scratch);
  r.inclusive = r.exclusive + Value(t);
  if (t < HYB_WARP) scratch[t] = -1000;
  r.longsum = HybBlockSum<THREADS>((PetscCount)Value(t) << 33, longscratch);
  if (t < HYB_WARP) longscratch[t] = -1000;
  __syncthreads();
  r.longexclusive = HybBlockExclusiveSum<THREADS>((PetscCount)Value(t) << 33, longscratch);
  out[t]          = r;
}

/* groups with a bit in `which` work on their lists alone */
template <int G>
static __global__ void Groups(unsigned which, unsigned n, const int *in, int *sorted, Results *out)
{
  using Group = HybGroup<G>;
  HYB_DYNAMIC_SHARED(int, lists);
  HYB_SHARED(int, scratch, HYB_WARP);
  int *list = lists + Group::index() * n;
  if (which >> Group::index() % 32 & 1) {
    for (unsigned k = (unsigned)Group::rank(); k < n; k += G) list[k] = in[Group::index() * n + k];
    Group::sync();
    HybGroupSort<G>(list, n);
    for (unsigned k = (unsigned)Group::rank(); k < n; k += G) sorted[Group::index() * n + k] = list[(k + 1) % n];
    Results r   = Results();
    r.sum       = Group::reduce(Value((int)threadIdx.x), scratch, HybSum());
    r.exclusive = Group::exclusiveSum(Value((int)threadIdx.x), scratch, &r.total);
    out[threadIdx.x] = r;
  }
  __syncthreads();
}

/* bytes of `from` to shared memory, in two stages by turns, and from there to `to` */
static __global__ void Bulk(int pieces, int bytes, const unsigned char *from, unsigned char *to)
{
  HYB_SHARED(uint64_t, bar, 2);
  HYB_DYNAMIC_SHARED(unsigned char, stage);
  HybBulkInit(bar, 2);
  for (int p = 0; p < 2 && p < pieces; p++) {
    HybBulkExpect(&bar[p], (size_t)bytes);
    HybBulkCopy(&bar[p], stage + p * bytes, from + p * bytes, (size_t)bytes);
  }
  __syncthreads();
  for (int p = 0; p < pieces; p++) {
    unsigned char *mine = stage + p % 2 * bytes;
    HybBulkWait(&bar[p % 2], (unsigned)(p / 2) & 1u);
    for (int k = (int)threadIdx.x; k < bytes; k += (int)blockDim.x) to[p * bytes + k] = mine[bytes - 1 - k];
    __syncthreads();
    if (p + 2 < pieces) {
      HybBulkExpect(&bar[p % 2], (size_t)bytes);
      HybBulkCopy(&bar[p % 2], mine, from + (p + 2) * bytes, (size_t)bytes);
    }
  }
}

static __global__ void Vectors(const int *in, int *out)
{
  const int t = (int)threadIdx.x;
  if (t % 4 == 0) {
    HybVec<int, 4> v = HybLoadVec<4>(in + t);
    std::swap(v.v[0], v.v[3]);
    HybStoreVec<4>(out + t, v);
  }
  if (t == 0) out[32] = (int)HybLanesBelow();
  if (t == 31) out[33] = (int)HybLanesBelow();
}

static __global__ void Scalars(int n, const HybScalar *in, HybScalar *out, PetscReal *real)
{
  const int t = (int)threadIdx.x;
  if (t >= n) return;
  const HybScalar &v = in[t], &w = in[(t + 1) % n], &u = in[(t + 2) % n];
  out[3 * t]     = HybConj(v);
  out[3 * t + 1] = HybMul(v, w);
  out[3 * t + 2] = HybMulAdd(v, w, u);
  real[t]        = HybAbs(v);
}

template <typename T>
struct Array {
  T     *p;
  size_t n;
  Array(const std::vector<T> &v) : p(nullptr), n(v.size())
  {
    if (cudaMalloc((void **)&p, n * sizeof(T)) || cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice)) exit(3);
  }
  ~Array() { (void)cudaFree(p); }
  std::vector<T> host() const
  {
    std::vector<T> v(n);
    if (cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost)) exit(3);
    return v;
  }
};

static Results nothing() { return Results(); }

/* threads [first, first + w) are one group */
static bool Good(const std::vector<Results> &r, int first, int w, int t, bool shuffles)
{
  int        sum = 0, most = Value(first), least = most, before = 0;
  Affine     f = Function(first);
  const int  l = t - first, half = w / 2;
  for (int k = first; k < first + w; k++) {
    if (k < t) before += Value(k);
    if (k > first && k <= t) f = Then()(f, Function(k));
    sum += Value(k);
    most  = std::max(most, Value(k));
    least = std::min(least, Value(k));
  }
  const Results &q = r[t];
  bool good = q.sum == sum && q.most == most && q.least == least && q.exclusive == before && q.alone == before && q.inclusive == before + Value(t) && q.total == sum && q.longsum == (PetscCount)sum * (PetscCount(1) << 33) && q.longexclusive == (PetscCount)before * (PetscCount(1) << 33);
  if (shuffles) good = good && q.scan == f && q.up == Three(l > 0 ? t - 1 : t) && q.across == Three(first + (l ^ half)) && q.at == Three(first + half);
  return good;
}

template <int W>
static PetscErrorCode TestSubwarps(uint64_t which)
{
  Array<Results> out(std::vector<Results>(SUBWARP_THREADS, nothing()));

  PetscFunctionBegin;
  HYB_LAUNCH((Subwarps<W>), 1, SUBWARP_THREADS, 0, nullptr, which, out.p);
  const std::vector<Results> r = out.host();
  for (int t = 0; t < SUBWARP_THREADS; t++)
    if (which >> (t / W % 64) & 1) Check(Good(r, t / W * W, W, t, true), "sub-warp of width, at lane", W, t);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int THREADS>
static PetscErrorCode TestBlocks()
{
  Array<Results> out(std::vector<Results>(THREADS, nothing()));

  PetscFunctionBegin;
  HYB_LAUNCH((Blocks<THREADS>), 1, THREADS, 0, nullptr, out.p);
  const std::vector<Results> r = out.host();
  for (int t = 0; t < THREADS; t++) Check(Good(r, 0, THREADS, t, false), "block of threads, at thread", THREADS, t);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int G>
static PetscErrorCode TestGroups(unsigned which, int n)
{
  using Group         = HybGroup<G>;
  const int        ng = Group::GROUPS;
  std::vector<int> h((size_t)(ng * n));

  PetscFunctionBegin;
  for (int k = 0; k < ng * n; k++) h[k] = (k * 7919 + n) % (n > 8 ? n - 3 : 31) - 5; /* some are equal */
  Array<int>     in(h), sorted(std::vector<int>(h.size(), 0));
  Array<Results> out(std::vector<Results>(Group::THREADS, nothing()));
  HYB_LAUNCH((Groups<G>), 1, Group::THREADS, ng * n * sizeof(int), nullptr, which, (unsigned)n, in.p, sorted.p, out.p);
  const std::vector<int>     s = sorted.host();
  const std::vector<Results> r = out.host();
  for (int g = 0; g < ng; g++) {
    if (!(which >> g % 32 & 1)) continue;
    std::sort(h.begin() + g * n, h.begin() + (g + 1) * n);
    bool same = true;
    for (int k = 0; k < n; k++) same = same && s[g * n + k] == h[g * n + (k + 1) % n];
    Check(same, "sort by a group of threads, entries", G, n);
    for (int t = g * G; t < (g + 1) * G; t++) {
      int before = 0, sum = 0;
      for (int k = g * G; k < (g + 1) * G; k++) {
        if (k < t) before += Value(k);
        sum += Value(k);
      }
      Check(r[t].sum == sum && r[t].exclusive == before && r[t].total == sum, "group of threads, at thread", G, t);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestBulk(int pieces, int bytes)
{
  std::vector<unsigned char> h((size_t)(pieces * bytes));

  PetscFunctionBegin;
  for (size_t k = 0; k < h.size(); k++) h[k] = (unsigned char)(k * 2654435761u >> 13);
  Array<unsigned char> from(h), to(std::vector<unsigned char>(h.size(), 0));
  HYB_LAUNCH(Bulk, 1, 64, 2 * bytes, nullptr, pieces, bytes, from.p, to.p);
  const std::vector<unsigned char> r = to.host();
  bool                             same = true;
  for (int p = 0; p < pieces; p++)
    for (int k = 0; k < bytes; k++) same = same && r[p * bytes + k] == h[p * bytes + bytes - 1 - k];
  Check(same, "bulk copies, pieces of bytes", pieces, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestVectors()
{
  std::vector<int> h(64);

  PetscFunctionBegin;
  for (int k = 0; k < 64; k++) h[k] = 3 * k + 1;
  Array<int> in(h), out(std::vector<int>(34, 0));
  HYB_LAUNCH(Vectors, 1, 32, 0, nullptr, in.p, out.p);
  const std::vector<int> r = out.host();
  for (int t = 0; t < 32; t++) {
    Check(r[t] == h[t % 4 == 0 ? t + 3 : t % 4 == 3 ? t - 3 : t], "entries of vectors", t, r[t]);
  }
  Check(r[32] == 0 && r[33] == 0x7fffffff, "lanes below", r[32], r[33]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* small whole numbers: products and sums are exact */
static PetscErrorCode TestScalars()
{
  const int              n = 5;
  std::vector<HybScalar> h;

  PetscFunctionBegin;
#if defined(PETSC_USE_COMPLEX)
  for (int k = 0; k < n; k++) h.push_back(HybScalar((PetscReal)(3 * (k - 2)), (PetscReal)(4 * (k - 2)))); /* of modulus 5 |k - 2| */
#else
  for (int k = 0; k < n; k++) h.push_back((HybScalar)(5 * (k - 2)));
#endif
  Array<HybScalar> in(h), out(std::vector<HybScalar>(3 * n, HybScalar(0)));
  Array<PetscReal> real(std::vector<PetscReal>(n, 0));
  HYB_LAUNCH(Scalars, 1, 32, 0, nullptr, n, in.p, out.p, real.p);
  const std::vector<HybScalar> r = out.host();
  const std::vector<PetscReal> q = real.host();
  for (int t = 0; t < n; t++) {
    const PetscReal five = (PetscReal)(5 * std::abs(t - 2));
#if defined(PETSC_USE_COMPLEX)
    const HybScalar conj(h[t].real(), -h[t].imag()), product(h[t].real() * h[(t + 1) % n].real() - h[t].imag() * h[(t + 1) % n].imag(), h[t].real() * h[(t + 1) % n].imag() + h[t].imag() * h[(t + 1) % n].real());
#else
    const HybScalar conj = h[t], product = h[t] * h[(t + 1) % n];
#endif
    Check(r[3 * t] == conj && r[3 * t + 1] == product && r[3 * t + 2] == product + h[(t + 2) % n], "conjugate, product, sum", t, 0);
    Check(q[t] == five && !std::signbit(q[t]), "modulus, no negative zero", t, 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode All()
{
  PetscFunctionBegin;
  for (uint64_t which : {~(uint64_t)0, (uint64_t)0x1, (uint64_t)0xd2b4a5965a3c0f69, (uint64_t)0x4}) {
    PetscCall(TestSubwarps<1>(which));
    PetscCall(TestSubwarps<2>(which));
    PetscCall(TestSubwarps<4>(which));
    PetscCall(TestSubwarps<8>(which));
    PetscCall(TestSubwarps<16>(which));
    PetscCall(TestSubwarps<32>(which));
  }
  PetscCall(TestBlocks<32>());
  PetscCall(TestBlocks<64>());
  PetscCall(TestBlocks<256>());
  PetscCall(TestBlocks<1024>());
  for (int n : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100}) {
    PetscCall(TestGroups<4>(0xffffffffu, n));
    PetscCall(TestGroups<8>(0x5a96u, n));
    PetscCall(TestGroups<32>(0x2u, n));
    PetscCall(TestGroups<64>(0x1u, n));
  }
  PetscCall(TestBulk(1, 16));
  PetscCall(TestBulk(5, 48));
  PetscCall(TestBulk(4, 1024));
  PetscCall(TestBulk(3, 2064));
  PetscCall(TestVectors());
  PetscCall(TestScalars());
  HybCallCUDA(cudaDeviceSynchronize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main()
{
  const PetscErrorCode err = All();

  if (err) failed++;
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed ? 1 : 0;
}
