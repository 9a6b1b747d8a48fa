/*
  smoothlong.cu: rows of any length of the smoothed prolongator. Their entries are sorted together, stably, by (row,
  parent), so that the entries of one parent stand together in A's order; a thread for each parent then adds them one
  after the other, once for each near-null vector.

    for a batch of rows, of so many entries as memory is meant for, or one row:
      key = (row of the batch, parent), value = where the entry stands in A      sort
      count: a place where the key changes adds nvec to its row
      fill:  such places are numbered by a scan: the number, less that of the row's first, is the place in the row of P

  Entries whose vertex belongs to no aggregate come last in their row. The row's own parent is counted at once; where no
  entry leads to it, it is put in place between the others.

  Memory: 48 bytes for each entry of a batch, whose entries are a quarter of A's or those of the longest row. Time: that
  of the sort.
*/
#include "aggops.cuh"

namespace {

const PetscInt SMOOTHLONG_SHARE = 4; /* a batch has at most this part of A's entries */

/* a block a row; offset: where the entries of the batch's rows begin */
__global__ void LongKeys(AggSmooth s, int bits, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ offset, uint64_t *__restrict__ key, PetscCount *__restrict__ entry)
{
  const PetscInt b = (PetscInt)blockIdx.x, r = rows[b], begin = s.ai[r], end = s.ai[r + 1], to = offset[b];

  for (PetscInt e = begin + (PetscInt)threadIdx.x; e < end; e += AGG_THREADS) {
    const PetscInt c = s.parent[s.aj[e] / s.bs];

    key[to + (e - begin)]   = ((uint64_t)b << bits) | (uint64_t)(c < 0 ? s.nc : c);
    entry[to + (e - begin)] = e;
  }
}

/* a place where a parent begins */
static __device__ __forceinline__ bool Head(PetscInt k, const uint64_t *key, int bits, PetscInt nc)
{
  return (PetscInt)(key[k] & ((((uint64_t)1) << bits) - 1)) < nc && (k == 0 || key[k] != key[k - 1]);
}

/* has row r of P more parents than its entries lead to? */
static __device__ __forceinline__ bool LongLacks(const AggSmooth &s, PetscInt r, PetscInt parents)
{
  return s.pi[r + 1] - s.pi[r] > parents * s.nvec;
}

__global__ void LongFill(AggSmooth s, PetscInt n, int bits, const uint64_t *__restrict__ key, const PetscCount *__restrict__ entry, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ offset, const PetscInt *__restrict__ number)
{
  const PetscCount k = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (k >= n || !Head((PetscInt)k, key, bits, s.nc)) return;
  const PetscInt b = (PetscInt)(key[k] >> bits), r = rows[b], c = (PetscInt)(key[k] & ((((uint64_t)1) << bits) - 1));
  const PetscInt d = RowLowerBound(s.aj, s.ai[r], s.ai[r + 1], r), own = s.parent[r / s.bs];
  const PetscInt behind = c > own && LongLacks(s, r, number[offset[b + 1]] - number[offset[b]]);

  for (PetscInt t = 0; t < s.nvec; t++) {
    const PetscInt at  = s.pi[r] + (number[k] - number[offset[b]] + behind) * s.nvec + t;
    HybScalar      sum = HybMul(s.aa[entry[k]], s.q[(PetscCount)s.aj[entry[k]] * s.nvec + t]);

    for (PetscCount e = k + 1; e < n && key[e] == key[k]; e++) sum = sum + HybMul(s.aa[entry[e]], s.q[(PetscCount)s.aj[entry[e]] * s.nvec + t]);
    sum      = AggSmoothValue(s, sum, d < s.ai[r + 1] && s.aj[d] == r ? s.aa[d] : HybScalar(0));
    s.pj[at] = c * s.nvec + t;
    s.pa[at] = c == own ? sum + s.q[(PetscCount)r * s.nvec + t] : sum;
  }
}

/* own parents that no entry leads to */
__global__ void LongOwn(AggSmooth s, PetscInt nrows, int bits, const uint64_t *__restrict__ key, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ offset, const PetscInt *__restrict__ number)
{
  const PetscCount b = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (b >= nrows || !LongLacks(s, rows[b], number[offset[b + 1]] - number[offset[b]])) return;
  const PetscInt own = s.parent[rows[b] / s.bs], from = RowLowerBound(key, offset[b], offset[b + 1], ((uint64_t)b << bits) | (uint64_t)own);

  for (PetscInt t = 0; t < s.nvec; t++) {
    const PetscInt at = s.pi[rows[b]] + (number[from] - number[offset[b]]) * s.nvec + t;

    s.pj[at] = own * s.nvec + t;
    s.pa[at] = s.q[(PetscCount)rows[b] * s.nvec + t];
  }
}

/* rows of one batch, of n entries together */
PetscErrorCode Batch(const HybExec *exec, HybArena *work, const AggSmooth *s, PetscInt n, PetscInt nrows, const PetscInt *rows, const PetscInt *length, PetscInt *count)
{
  const int        bits = HybBits((PetscCount)s->nc + 1), all = bits + HybBits(nrows);
  const PetscCount blocks = HybBlocks(n, AGG_THREADS);
  PetscInt        *offset, *number;
  uint64_t        *key, *sorted;
  PetscCount      *entry, *sortedentry;

  PetscFunctionBegin;
  PetscCheck(all <= 64, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " rows and %" PetscInt_FMT " aggregates need more than 64 bits together", nrows, s->nc);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)nrows + 1, sizeof(PetscInt), &offset));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(*key), &key));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(*sorted), &sorted));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(*entry), &entry));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(*sortedentry), &sortedentry));
  PetscCall(HybScanCounts(exec, work, nrows, length, offset, nullptr, nullptr));
  HYB_LAUNCH(LongKeys, nrows, AGG_THREADS, 0, exec->stream, *s, bits, rows, offset, key, entry);
  PetscCall(HybSortPairs64Count(exec, work, n, key, sorted, entry, sortedentry, all));
  if (count) {
    HYB_FOR_EACH(exec, n, [s = *s, bits, sorted, rows, count] __device__(PetscCount k) {
      if (!Head((PetscInt)k, sorted, bits, s.nc)) return;
      const PetscInt r = rows[sorted[k] >> bits];

      if ((PetscInt)(sorted[k] & ((((uint64_t)1) << bits) - 1)) != s.parent[r / s.bs]) HybAtomicAdd(&count[r], s.nvec);
    });
  } else {
    PetscInt *head = (PetscInt *)key; /* which has served */

    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)n + 1, sizeof(PetscInt), &number));
    HYB_FOR_EACH(exec, n, [nc = s->nc, bits, sorted, head] __device__(PetscCount k) { head[k] = Head((PetscInt)k, sorted, bits, nc); });
    PetscCall(HybScanCounts(exec, work, n, head, number, nullptr, nullptr));
    HYB_LAUNCH(LongFill, blocks, AGG_THREADS, 0, exec->stream, *s, n, bits, sorted, sortedentry, rows, offset, number);
    HYB_LAUNCH(LongOwn, HybBlocks(nrows, AGG_THREADS), AGG_THREADS, 0, exec->stream, *s, nrows, bits, sorted, rows, offset, number);
    PetscCall(HybArenaFree(work, &number));
  }
  PetscCall(HybArenaFree(work, &sortedentry, &entry, &sorted, &key, &offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode HybAggSmoothLong(const HybExec *exec, HybArena *work, const AggSmooth *s, PetscCount nnz, PetscInt nrows, const PetscInt *rows, PetscInt *count)
{
  PetscInt *length, *host;

  PetscFunctionBegin;
  if (!nrows) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, nrows, sizeof(PetscInt), &length));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, nrows, sizeof(PetscInt), &host));
  /* count, where it is asked for, starts with the own parent */
  HYB_FOR_EACH(exec, nrows, [s = *s, rows, length, count] __device__(PetscCount k) {
    length[k] = s.ai[rows[k] + 1] - s.ai[rows[k]];
    if (count) count[rows[k]] = s.parent[rows[k] / s.bs] < 0 ? 0 : s.nvec;
  });
  PetscCall(exec->backend->copy(exec, host, length, (size_t)nrows * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
  for (PetscInt first = 0, last; first < nrows; first = last) {
    PetscCount n = host[first];

    for (last = first + 1; last < nrows && n + host[last] <= nnz / SMOOTHLONG_SHARE; last++) n += host[last];
    PetscCall(Batch(exec, work, s, (PetscInt)n, last - first, rows + first, length + first, count));
  }
  PetscCall(HybArenaFree(work, &host, &length));
  PetscFunctionReturn(PETSC_SUCCESS);
}
