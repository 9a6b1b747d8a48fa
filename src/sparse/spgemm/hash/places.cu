/*
  places.cu: the plan of hashrows.cu, for numeric phases that come again on one pattern: where every product goes is
  stored (2 bytes each), and for each entry of A where its row of B begins and which product is its first (8 bytes).
  Nothing is looked up any more, B's columns are not read, and no load waits for more than one other.
*/
#include "hashargs.cuh"

__global__ void __launch_bounds__(128) HashPlanEntries(PetscInt m, HashArgs x)
{
  const PetscCount row  = ((PetscCount)blockIdx.x * 128 + threadIdx.x) / 8;
  const int        lane = HybLane() & 7;

  if (row >= m) return;
  PetscInt before = 0;

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
  }
}

/* bytes of the accumulators of each row */
__global__ void __launch_bounds__(256) HashPlanNeed(PetscInt m, const PetscInt *__restrict__ ci, PetscInt *__restrict__ need)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r < m) need[r] = (ci[r + 1] - ci[r]) * (PetscInt)sizeof(HybScalar);
}

template <int N>
static __device__ __forceinline__ void HashPlannedRow(const HashArgs &x, PetscInt row, HybScalar *acc)
{
  using G                            = HybGroup<N>;
  constexpr int               PIECES = G::SUBWARP ? 2 : 1; /* of a row of B that are fetched together */
  const PetscInt              abegin = x.ai[row], aend = x.ai[row + 1], cbegin = x.ci[row], nnz = x.ci[row + 1] - cbegin;
  const unsigned short *const places = x.places + x.placeptr[row];
  const PetscInt              total  = (PetscInt)(x.placeptr[row + 1] - x.placeptr[row]);

  for (PetscInt e = G::rank(); e < nnz; e += N) acc[e] = HybNegativeZero();
  G::sync();
  for (PetscInt k = abegin; k < aend; k += HASH_BATCH) {
    PetscInt  len[HASH_BATCH];
    int       at[HASH_BATCH][PIECES];
    HybScalar av[HASH_BATCH], b[HASH_BATCH][PIECES];

#pragma unroll
    for (int u = 0; u < HASH_BATCH; u++) {
      len[u] = 0;
      av[u]  = HybScalar();
#pragma unroll
      for (int h = 0; h < PIECES; h++) {
        at[u][h] = 0;
        b[u][h]  = HybScalar();
      }
      if (k + u < aend) {
        const PetscInt first = x.off[k + u];

        len[u] = (k + u + 1 < aend ? x.off[k + u + 1] : total) - first;
        av[u]  = x.aa[k + u];
#pragma unroll
        for (int h = 0; h < PIECES; h++) {
          if (G::rank() + h * N < len[u]) {
            at[u][h] = places[first + G::rank() + h * N];
            b[u][h]  = x.ba[x.from[k + u] + G::rank() + h * N];
          }
        }
      }
    }
#pragma unroll
    for (int u = 0; u < HASH_BATCH; u++) {
      if (k + u < aend) {
#pragma unroll
        for (int h = 0; h < PIECES; h++) {
          if (G::rank() + h * N < len[u]) acc[at[u][h]] = HybMulAdd(av[u], b[u][h], acc[at[u][h]]);
        }
        if (len[u] > PIECES * N) {
          const unsigned short *const to = places + x.off[k + u];
          const HybScalar *const      ba = x.ba + x.from[k + u];

          for (PetscInt p = G::rank() + PIECES * N; p < len[u]; p += N) {
            const int there = to[p];

            acc[there] = HybMulAdd(av[u], ba[p], acc[there]);
          }
        }
        G::sync();
      }
    }
  }
  for (PetscInt e = G::rank(); e < nnz; e += N) x.ca[cbegin + e] = acc[e];
  G::sync();
}

template <int N>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) HashPlannedKernel(HashArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(HybScalar, shared);

  for (PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < x.binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) HashPlannedRow<N>(x, x.order[q], shared);
}

template <int N>
static __device__ __forceinline__ void HashPlannedTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared)
{
  using G            = HybGroup<N>;
  const PetscCount q = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashPlannedRow<N>(x, x.order[q], (HybScalar *)shared);
}

/* Rows of bins 1 to HASH_SMALL, large ones first. Whatever its bin, a warp keeps to its own part of shared memory,
   which its groups share evenly: warps of a block go from bin to bin at different times. */
__global__ void __launch_bounds__(128, 6) HashPlannedSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
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
      HashPlannedTask<128>(x, b, t - begin, shared);
    else {
      const int      lanes = HashGroupLanes(b, x.grouplanes);
      unsigned char *part  = shared + (threadIdx.x >> lanes << lanes) * (HASH_SMALLMEM / 128);

      if (lanes >= 5)
        HashPlannedTask<32>(x, b, t - begin, part);
      else if (lanes == 4)
        HashPlannedTask<16>(x, b, t - begin, part);
      else if (lanes == 3)
        HashPlannedTask<8>(x, b, t - begin, part);
      else
        HashPlannedTask<4>(x, b, t - begin, part);
    }
  }
}

PetscErrorCode HybHashRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  const HybExec  *exec  = &mm->exec;
  const size_t    bytes = (size_t)mm->stats.products * sizeof(unsigned short) + (size_t)A->nnz * 2 * sizeof(PetscInt), most = (size_t)(A->nnz + B->nnz) * (sizeof(PetscInt) + sizeof(HybScalar));
  HybMemoryReport report;
  PetscCount     *cost, limit[HYB_HASH_BINS - 1];
  PetscInt       *need;
  unsigned short *places;
  HashArgs        x;

  PetscFunctionBegin;
  /* also after an error on the way */
  hash->unplanned = PETSC_TRUE;
  /* rows whose places 16 bits do not count are among those without a table in shared memory */
  if (bytes > most || hash->hostbinptr[HYB_HASH_BINS] > hash->hostbinptr[HASH_WHOLE + 1] || mm->stats.maxrow > (PetscCount)PETSC_MAX_INT || hash->maxbytes / (PetscInt)sizeof(HybScalar) > 65536) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(exec->backend->memory(&report));
  if (bytes > report.free_bytes / 4) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->nnz, 2 * sizeof(PetscInt), &hash->from));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m + 1, sizeof(PetscCount), &hash->placeptr));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m + HYB_HASH_BINS + 1, sizeof(PetscInt), &hash->planorder));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscCount), &cost));
  PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, cost, NULL));
  PetscCall(HybScanCounts64(exec, &mm->work, A->m, cost, hash->placeptr, NULL, NULL));
  PetscCall(HybArenaFree(&mm->work, &cost));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, mm->stats.products, sizeof(unsigned short), &places));
  HybHashOperands(A, B, &x);
  x.ci       = C->i;
  x.cj       = C->j;
  x.from     = hash->from;
  x.off      = hash->from + A->nnz;
  x.placeptr = hash->placeptr;
  x.places   = places;
  HYB_LAUNCH(HashPlanEntries, HybBlocks((PetscCount)A->m * 8, 128), 128, 0, exec->stream, A->m, x);
  PetscCall(HybHashRun(mm, hash, x));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + 2 * HYB_HASH_BINS, sizeof(PetscInt), &need));
  HYB_LAUNCH(HashPlanNeed, HybBlocks(A->m, 256), 256, 0, exec->stream, A->m, C->i, need + 2 * HYB_HASH_BINS);
  HashLimits(false, limit);
  PetscCall(HybPlanBinsAnyOrderInt(exec, A->m, need + 2 * HYB_HASH_BINS, HYB_HASH_BINS, limit, need, hash->planorder, hash->planorder + A->m, NULL));
  PetscCall(HybArenaFree(&mm->work, &need));
  PetscCall(HybCountersSet(&mm->counters, "places", mm->stats.products));
  hash->places    = places;
  hash->unplanned = PETSC_FALSE;
  mm->reads       = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsPlanned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount rows = (PetscCount)hash->multiprocessors * 16 * 8, most = PetscMin(mm->stats.maxrow, (PetscCount)C->n) * (PetscCount)sizeof(HybScalar);
  HashArgs         x;

  PetscFunctionBegin;
  HybHashOperands(A, B, &x);
  x.ci         = C->i;
  x.ca         = C->a;
  x.from       = hash->from;
  x.off        = hash->from + A->nnz;
  x.placeptr   = hash->placeptr;
  x.places     = hash->places;
  x.order      = hash->planorder;
  x.grouplanes = hash->lanes;
  if (most > HashLimit[HASH_WHOLE - 1]) {
    x.binptr = hash->planorder + A->m + HASH_WHOLE;
    HYB_LAUNCH((HashPlannedKernel<512>), PetscMin((PetscCount)A->m, rows), 512, hash->maxbytes, exec->stream, x);
  }
  if (most > HashLimit[HASH_SMALL]) {
    x.binptr = hash->planorder + A->m + HASH_WHOLE - 1;
    HYB_LAUNCH((HashPlannedKernel<256>), PetscMin((PetscCount)A->m, rows), 256, HashLimit[HASH_WHOLE - 1], exec->stream, x);
  }
  x.binptr = hash->planorder + A->m;
  HYB_LAUNCH(HashPlannedSmallKernel, PetscMin((PetscCount)A->m, rows), 128, HASH_SMALLMEM, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}
