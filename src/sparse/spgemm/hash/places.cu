/*
  places.cu: the plan of hashrows.cu, for numeric phases that come again on one pattern: where every product goes is
  stored (2 bytes each), and for each entry of A where its row of B begins and which product is its first (8 bytes).
  Nothing is looked up any more, B's columns are not read, and no load waits for more than one other.

    plan       rows that have no table in shared memory are left to their tables; others:
               places of all products, by the table of the row; rows into bins by the length of C's
    numeric    bins side by side, long rows first; a sub-warp or a block a row:
                 sums = -0
                 for each entry of A, in order: sums[places of its row of B] += a * row of B      one barrier
                 C's values = sums
               places and values of the next few entries are on their way meanwhile

  What a long row of A takes is a barrier for each of its entries and more, 300 cycles in all; so it gets a block
  of 256 threads, however short its row of C, and begins first. Where such rows are a large part of all, storing gains
  little; its making takes two to three numeric phases (docs/tried.md, Thresholds). Tried and left: chunks of 1024
  products of a row that a block fetches whatever entries of A they belong to, with a barrier for each entry.
*/
#include "hashargs.cuh"
#include <climits>

__global__ void __launch_bounds__(128) HashPlanEntries(PetscInt m, HashArgs x)
{
  const PetscCount row  = ((PetscCount)blockIdx.x * 128 + threadIdx.x) / 8;
  const int        lane = HybLane() & 7;

  if (row >= m) return;
  PetscInt before = 0, widest = 0;

  for (PetscInt k0 = x.ai[row]; k0 < x.ai[row + 1]; k0 += 8) {
    const PetscInt k     = k0 + lane;
    PetscInt       begin = 0, len = 0, total;

    if (k < x.ai[row + 1]) {
      begin = x.bi[x.aj[k]];
      len   = x.bi[x.aj[k] + 1] - begin;
    }
    const PetscInt at = before + HybSubwarpExclusiveSum<8>(len, &total);

    if (k < x.ai[row + 1]) {
      x.from[k] = begin;
      x.off[k]  = at;
    }
    before += total;
    widest = HybMax()(widest, len);
  }
  if (!x.widest) return;
  widest = HybSubwarpMax<8>(widest);
  if (lane == 0) x.widest[row] = widest;
}

PetscErrorCode HybHashRowStarts(const HybExec *exec, PetscInt m, HashArgs x)
{
  PetscFunctionBegin;
  HYB_LAUNCH(HashPlanEntries, HybBlocks((PetscCount)m * 8, 128), 128, 0, exec->stream, m, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bins of a plan, by bytes of sums: the table's small ones, then what each of 4, 3, 2 blocks of a multiprocessor can
   have, and the rest; the last one is of rows that are left to their tables. */
#define PLAN_BINS    11
#define PLAN_THREADS 256 /* of a large bin's block */
#define PLAN_LONG    128 /* rows of A with more entries get one */
#define PLAN_SHORT   24  /* entries of a mean row of B, and products, from which on places are worth memory like C's */
#define PLAN_MANY    ((PetscCount)1 << 26)
#define PLAN_SHARE   60  /* percent of C's */
#define PLAN_STAGE   128 /* entries of A in shared memory */
static constexpr PetscCount PlanLimit[PLAN_BINS - 1] = {0, 512, 1024, 2048, 4096, 16384, 55040, 74496, 113408, INT_MAX - 1};

/* bytes of the sums of each row, or what brings a long row of A into the first of the large bins */
__global__ void __launch_bounds__(256) HashPlanNeed(PetscInt m, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ ci, PetscInt *__restrict__ need)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r < m) {
    const PetscCount bytes = (PetscCount)(ci[r + 1] - ci[r]) * (PetscCount)sizeof(HybScalar), least = bytes && ai[r + 1] - ai[r] > PLAN_LONG ? HASH_SMALLMEM + 1 : 0;

    need[r] = (PetscInt)HybMin()(HybMax()(bytes, least), (PetscCount)(INT_MAX - 1));
  }
}

/* rows order[0] ... have no places */
__global__ void __launch_bounds__(256) HashPlanLeave(PetscInt rows, const PetscInt *__restrict__ order, PetscCount *__restrict__ cost, PetscInt *__restrict__ need)
{
  const PetscCount q = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (q < rows) {
    cost[order[q]] = 0;
    need[order[q]] = INT_MAX;
  }
}

/* Products of ROWS entries of A on their way: for each, the first PIECES that a lane of N has, and where they go */
template <int N, int ROWS, int PIECES>
struct PlannedProducts {
  PetscInt  len[ROWS];
  int       at[ROWS][PIECES];
  HybScalar b[ROWS][PIECES];

  __device__ __forceinline__ void fetch(int u, const HybScalar *ba, const unsigned short *to, PetscInt length)
  {
    len[u] = length;
#pragma unroll
    for (int h = 0; h < PIECES; h++) {
      const PetscInt p = HybGroup<N>::rank() + h * N;

      at[u][h] = 0;
      b[u][h]  = HybScalar();
      if (p < length) {
        at[u][h] = to[p];
        b[u][h]  = ba[p];
      }
    }
  }
  __device__ __forceinline__ void add(int u, const HybScalar &a, HybScalar *acc) const
  {
#pragma unroll
    for (int h = 0; h < PIECES; h++) {
      if (HybGroup<N>::rank() + h * N < len[u]) acc[at[u][h]] = HybMulAdd(a, b[u][h], acc[at[u][h]]);
    }
  }
  /* what lies behind the first pieces of a long row of B, four of a lane together */
  __device__ __forceinline__ void far(int u, const HybScalar *ba, const unsigned short *to, const HybScalar &a, HybScalar *acc) const
  {
#pragma unroll 1
    for (PetscInt p = HybGroup<N>::rank() + PIECES * N; p < len[u]; p += 4 * N) {
      int       there[4];
      HybScalar value[4];

#pragma unroll
      for (int h = 0; h < 4; h++) {
        const PetscInt q = p + h * N < len[u] ? p + h * N : p;

        there[h] = to[q];
        value[h] = ba[q];
      }
#pragma unroll
      for (int h = 0; h < 4; h++) {
        if (p + h * N < len[u]) acc[there[h]] = HybMulAdd(a, value[h], acc[there[h]]);
      }
    }
  }
};

/* the sums of a row by a sub-warp, whose lanes know each where the rows of B of the batch after next begin */
template <int N>
static __device__ __forceinline__ void PlannedNarrow(const HashArgs &x, const unsigned short *places, PetscInt abegin, PetscInt aend, PetscInt total, HybScalar *acc)
{
  constexpr int ROWS = HASH_BATCH / 2, PIECES = 2;
  using Products = PlannedProducts<N, ROWS, PIECES>;
  PetscInt  from[ROWS], first[ROWS + 1];
  Products  now, next;
  HybScalar anow[ROWS], anext[ROWS];

  const auto look = [&](PetscInt k) {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
      from[u]  = k + u < aend ? x.from[k + u] : 0;
      first[u] = k + u < aend ? x.off[k + u] : total;
    }
    first[ROWS] = k + ROWS < aend ? x.off[k + ROWS] : total;
  };
  const auto fetch = [&](Products &batch, HybScalar *a, PetscInt k) {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
      a[u] = k + u < aend ? x.aa[k + u] : HybScalar();
      batch.fetch(u, x.ba + from[u], places + first[u], first[u + 1] - first[u]);
    }
  };
  const auto add = [&](const Products &batch, const HybScalar *a, PetscInt k) {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
      if (!batch.len[u]) continue;
      batch.add(u, a[u], acc);
      if (batch.len[u] > PIECES * N) batch.far(u, x.ba + x.from[k + u], places + x.off[k + u], a[u], acc);
      HybGroup<N>::sync();
    }
  };

  look(abegin);
  fetch(now, anow, abegin);
  look(abegin + ROWS);
  /* two batches by turns, none is copied */
  for (PetscInt k = abegin; k < aend; k += 2 * ROWS) {
    fetch(next, anext, k + ROWS);
    look(k + 2 * ROWS);
    add(now, anow, k);
    if (k + ROWS >= aend) break;
    fetch(now, anow, k + 2 * ROWS);
    look(k + 3 * ROWS);
    add(next, anext, k + ROWS);
  }
}

/* of a row of A, in shared memory: where rows of B begin, which product is their first and the one behind, values */
struct PlannedStage {
  PetscInt  from[PLAN_STAGE], first[PLAN_STAGE + 1];
  HybScalar a[PLAN_STAGE];
};

/* the sums of a row by a block */
template <int N>
static __device__ __forceinline__ void PlannedWide(const HashArgs &x, const unsigned short *places, PetscInt abegin, PetscInt aend, PetscInt total, HybScalar *acc, PlannedStage *stage)
{
  using Products = PlannedProducts<N, HASH_BATCH, 1>;

  for (PetscInt k0 = abegin; k0 < aend; k0 += PLAN_STAGE) {
    const int n = (int)HybMin()((PetscInt)PLAN_STAGE, aend - k0);
    Products  now, next;

    const auto fetch = [&](Products &batch, int k) {
#pragma unroll
      for (int u = 0; u < HASH_BATCH; u++) {
        const bool     there = k + u < n;
        const PetscInt first = there ? stage->first[k + u] : 0;

        batch.fetch(u, x.ba + (there ? stage->from[k + u] : 0), places + first, there ? stage->first[k + u + 1] - first : 0);
      }
    };
    const auto add = [&](const Products &batch, int k) {
#pragma unroll
      for (int u = 0; u < HASH_BATCH; u++) {
        if (!batch.len[u]) continue;
        batch.add(u, stage->a[k + u], acc);
        if (batch.len[u] > N) batch.far(u, x.ba + stage->from[k + u], places + stage->first[k + u], stage->a[k + u], acc);
        __syncthreads();
      }
    };

    __syncthreads(); /* nobody reads the stage before */
    for (int k = (int)threadIdx.x; k < n; k += N) {
      stage->from[k]  = x.from[k0 + k];
      stage->first[k] = x.off[k0 + k];
      stage->a[k]     = x.aa[k0 + k];
    }
    if (threadIdx.x == 0) stage->first[n] = k0 + n < aend ? x.off[k0 + n] : total;
    __syncthreads();
    fetch(now, 0);
    for (int k = 0; k < n; k += 2 * HASH_BATCH) {
      fetch(next, k + HASH_BATCH);
      add(now, k);
      fetch(now, k + 2 * HASH_BATCH);
      add(next, k + HASH_BATCH);
    }
  }
}

template <int N>
static __device__ __forceinline__ void HashPlannedRow(const HashArgs &x, PetscInt row, HybScalar *acc, PlannedStage *stage)
{
  using G                            = HybGroup<N>;
  const PetscInt              abegin = x.ai[row], aend = x.ai[row + 1], cbegin = x.ci[row], nnz = x.ci[row + 1] - cbegin;
  const unsigned short *const places = x.places + x.placeptr[row];
  const PetscInt              total  = (PetscInt)(x.placeptr[row + 1] - x.placeptr[row]);

  for (PetscInt e = G::rank(); e < nnz; e += N) acc[e] = HybNegativeZero();
  G::sync();
  if constexpr (G::SUBWARP)
    PlannedNarrow<N>(x, places, abegin, aend, total, acc);
  else
    PlannedWide<N>(x, places, abegin, aend, total, acc, stage);
  for (PetscInt e = G::rank(); e < nnz; e += N) x.ca[cbegin + e] = acc[e];
  G::sync();
}

/* rows of so many bins, a block each, those of the last bin first */
__global__ void __launch_bounds__(PLAN_THREADS, 4) HashPlannedKernel(HashArgs x, int bins)
{
  HYB_DYNAMIC_SHARED(HybScalar, shared);
  HYB_SHARED(PlannedStage, stage, 1);

  for (PetscCount q = (PetscCount)x.binptr[bins] - 1 - blockIdx.x; q >= x.binptr[0]; q -= (PetscCount)gridDim.x) HashPlannedRow<PLAN_THREADS>(x, x.order[q], shared, stage);
}

template <int N>
static __device__ __forceinline__ void HashPlannedTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared, PlannedStage *stage)
{
  using G            = HybGroup<N>;
  const PetscCount q = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashPlannedRow<N>(x, x.order[q], (HybScalar *)shared, stage);
}

/* Rows of bins 1 to HASH_SMALL, large ones first. Whatever its bin, a warp keeps to its own part of shared memory,
   which its groups share evenly: warps of a block go from bin to bin at different times. */
__global__ void __launch_bounds__(128, 6) HashPlannedSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(PlannedStage, stage, 1);
  int        b     = HASH_SMALL;
  PetscCount begin = 0, end = x.binptr[b + 1] - x.binptr[b]; /* tasks of bin b */

  for (PetscCount t = (PetscCount)blockIdx.x;; t += (PetscCount)gridDim.x) {
    while (b > 1 && t >= end) {
      b--;
      begin            = end;
      const int groups = 128 >> HashGroupLanes(b, x.grouplanes);

      end += (x.binptr[b + 1] - x.binptr[b] + groups - 1) / groups;
    }
    if (t >= end) break;
    if (b == HASH_SMALL)
      HashPlannedTask<128>(x, b, t - begin, shared, stage);
    else {
      const int      lanes = HashGroupLanes(b, x.grouplanes);
      unsigned char *part  = shared + (threadIdx.x >> lanes << lanes) * (HASH_SMALLMEM / 128);

      if (lanes >= 5)
        HashPlannedTask<32>(x, b, t - begin, part, stage);
      else if (lanes == 4)
        HashPlannedTask<16>(x, b, t - begin, part, stage);
      else if (lanes == 3)
        HashPlannedTask<8>(x, b, t - begin, part, stage);
      else
        HashPlannedTask<4>(x, b, t - begin, part, stage);
    }
  }
}

size_t HybHashPlacesBytes(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, const HybCSR *C)
{
  const size_t   bytes = (size_t)mm->stats.products * sizeof(unsigned short) + (size_t)A->nnz * 2 * sizeof(PetscInt);
  const size_t   entry = sizeof(PetscInt) + sizeof(HybScalar);
  const PetscInt tuned = HybDeviceTuning()->hash_places;
  const size_t   share = tuned >= 0 ? (size_t)tuned : mm->stats.products >= PLAN_MANY && hash->mean >= PLAN_SHORT ? PLAN_SHARE
                                                                                                                  : 0;
  /* whoever expects numeric phases may have many such products, as a hierarchy has */
  const size_t most = PetscMax((size_t)(A->nnz + B->nnz), mm->reuse ? 0 : (size_t)C->nnz / 100 * share) * entry;

  return !tuned || bytes > most || mm->stats.maxrow > (PetscCount)PETSC_MAX_INT || hash->maxbytes / (PetscInt)sizeof(HybScalar) > 65536 || A->nnz > PETSC_MAX_INT - 64 ? 0 : bytes;
}

PetscErrorCode HybHashPlaces(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  const PetscInt left = hash->hostbinptr[HYB_HASH_BINS] - hash->hostbinptr[HASH_WHOLE + 1];
  PetscCount    *cost, stored = mm->stats.products;
  PetscInt      *need;
  HashArgs       x;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->nnz, 2 * sizeof(PetscInt), &hash->from));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m + 1, sizeof(PetscCount), &hash->placeptr));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m + PLAN_BINS + 1, sizeof(PetscInt), &hash->planorder));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscCount), &cost));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + 2 * PLAN_BINS, sizeof(PetscInt), &need));
  PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, cost, NULL));
  HYB_LAUNCH(HashPlanNeed, HybBlocks(A->m, 256), 256, 0, exec->stream, A->m, A->i, C->i, need + 2 * PLAN_BINS);
  if (left) HYB_LAUNCH(HashPlanLeave, HybBlocks(left, 256), 256, 0, exec->stream, left, hash->order + hash->hostbinptr[HASH_WHOLE + 1], cost, need + 2 * PLAN_BINS);
  PetscCall(HybScanCounts64(exec, &mm->work, A->m, cost, hash->placeptr, NULL, NULL));
  PetscCall(HybPlanBinsAnyOrderInt(exec, A->m, need + 2 * PLAN_BINS, PLAN_BINS, PlanLimit, need, hash->planorder, hash->planorder + A->m, NULL));
  PetscCall(HybArenaFree(&mm->work, &need, &cost));
  if (left) PetscCall(exec->backend->copy(exec, &stored, hash->placeptr + A->m, sizeof(stored), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, stored, sizeof(unsigned short), &hash->places));
  HybHashPlanOperands(A, B, C, &x);
  x.from     = hash->from;
  x.off      = hash->from + A->nnz;
  x.placeptr = hash->placeptr;
  x.places   = hash->places;
  PetscCall(HybHashRowStarts(exec, A->m, x));
  PetscCall(HybHashRun(mm, hash, x, 1, HASH_WHOLE));
  PetscCall(HybCountersSet(&mm->counters, "places", stored));
  if (!left) mm->reads = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that may be in the plan's large bin b: the host knows how many are in the bins of their tables, which are
   larger than their sums, and whether there are long rows of A */
static PetscCount PlannedMost(const HybSpGEMM *mm, const HybHashRows *hash, PetscInt m, int b)
{
  int t = 1;

  if (b == HASH_SMALL + 1 && mm->stats.maxarow > PLAN_LONG) return m;
  while (t < HASH_WHOLE && HashLimit[t] <= PlanLimit[b - 1]) t++;
  return hash->hostbinptr[HASH_WHOLE + 1] - hash->hostbinptr[t];
}

/* rows of bins b to last, all large; or HASH_SMALL and all below */
static PetscErrorCode PlannedBins(const HybSpGEMM *mm, const HybExec *exec, const HybHashRows *hash, PetscInt m, int b, int last, HashArgs x)
{
  const PetscCount sums  = PetscMin((PetscCount)hash->longest * (PetscCount)sizeof(HybScalar), (PetscCount)hash->maxbytes);
  const PetscCount bytes = PetscMin(PlanLimit[last], sums), waves = 4 * (PetscCount)hash->multiprocessors;

  PetscFunctionBegin;
  if (b > HASH_SMALL) {
    x.binptr = hash->planorder + m + b;
    HYB_LAUNCH(HashPlannedKernel, PetscMin(PlannedMost(mm, hash, m, b), waves * PetscMax(1, (PetscCount)hash->maxbytes / bytes)), PLAN_THREADS, bytes, exec->stream, x, last + 1 - b);
  } else {
    x.binptr = hash->planorder + m;
    HYB_LAUNCH(HashPlannedSmallKernel, PetscMin((PetscCount)m, 32 * waves), 128, HASH_SMALLMEM, exec->stream, x);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsPlanned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  int            from[PLAN_BINS], to[PLAN_BINS], n = 0, sides, top = PLAN_BINS - 2;
  HybExec        side[HYB_SIDE_STREAMS];
  HashArgs       x;
  PetscErrorCode ierr, first = PETSC_SUCCESS;

  PetscFunctionBegin;
  HybSpGEMMOperands(A, B, &x);
  x.ci = C->i;
  x.cj = C->j;
  x.ca = C->a;
  if (hash->hostbinptr[HYB_HASH_BINS] > hash->hostbinptr[HASH_WHOLE + 1]) {
    x.values = 1;
    PetscCall(HybHashRun(mm, hash, x, HASH_WHOLE + 1, HYB_HASH_BINS - 1));
  }
  x.from       = hash->from;
  x.off        = hash->from + A->nnz;
  x.placeptr   = hash->placeptr;
  x.places     = hash->places;
  x.order      = hash->planorder;
  x.grouplanes = hash->lanes;
  while (top > HASH_SMALL + (mm->stats.maxarow > PLAN_LONG) && PlanLimit[top - 1] >= (PetscCount)hash->longest * (PetscCount)sizeof(HybScalar)) top--;
  for (int b = top; b > HASH_SMALL; b--) {
    if (!PlannedMost(mm, hash, A->m, b)) continue;
    to[n] = b;
    /* few rows are one launch: all of them are on the card together whatever shared memory they have */
    while (b > HASH_SMALL + 1 && PlannedMost(mm, hash, A->m, b - 1) <= hash->multiprocessors) b--;
    from[n++] = b;
  }
  from[n] = 1;
  to[n++] = HASH_SMALL;
  sides   = PetscMin(n - 1, HYB_SIDE_STREAMS);
  PetscCall(HybDeviceFork(exec, sides, side));
  for (int k = 0; k < n; k++) {
    const int turn = k % (sides + 1);

    ierr = PlannedBins(mm, turn < sides ? &side[turn] : exec, hash, A->m, from[k], to[k], x);
    if (!first) first = ierr;
  }
  ierr = HybDeviceJoin(exec, sides);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}
