/*
  A^T on the device: its pattern, where asked for the position in A of each of its entries, so that values follow by one
  gather for as long as the pattern stands, and where asked its values at once. Two ways.

  Offsets: where all entries lie on few diagonals, offset = column - row, as those of structured grids do, a row is one
  word with a bit for each of the distinct offsets, ascending. Column c is entered by row r = c - d for each offset d
  that r's word has, at the place in the row that the bits below d's tell. So with the offsets in descending order rows
  come out ascending, with neither atomics nor a sort: what is read of A is its columns once, coalesced, and its values,
  once each. The offsets come from a sample of the rows; the pass that makes the words looks at every entry and collects
  offsets that the sample had missed, so that a second pass knows all.

    one block:                        offset[] = distinct offsets of 1024 rows; more than 63, or far more than a row
                                      has entries: give up
    for each row r (a thread):        word[r] = its offsets' bits
                                      count[(r + offset) / columns] += 1 for each (by warp and block first: ballots)
    base = scan(count)                for each tile of columns where its entries begin
    for each tile of columns c (256 columns up to 8 offsets, a thread each; 128 up to 16, two threads each, and so on):
      for k in 8 offsets, descending: r = c - offset[k]
                                      if word[r] has k: entry of column c = (r, i[r] + popcount(word[r] below k))
      T.i from the prefix sum of the counts; the entries to shared memory in order; T.j, positions and values =
      a[position] from there, coalesced

  The tile's rows are neighbours for each offset, so what is fetched of a in sectors of 32 bytes serves neighbouring
  columns while it is in the first-level cache. Work beside the copy of the values: 4 bytes an entry read and 4 (8 with
  positions) written, and some 40 bytes a row.

  Sorting, else: the entries are sorted by column, stably (radix sort, so equal columns keep A's order and rows of T
  come out ascending). No long row and no long column costs anything, nothing is asked on the way, and there are no
  atomics.

    for each entry k of A:   rowof[k] = its row, position[k] = k (entries divided among the blocks: rows mark where
                             they begin, a running maximum fills in)
    sort (j, position) by j, as many bits as columns need
    for each entry k of T:   T.j[k] = rowof[perm[k]];  T.a[k] = a[perm[k]];  T.i where the column differs from the one
                             before

  Offsets are looked for from HybTuning's transpose_offsets nonzeros on (2^20: below, the sort takes no longer than the
  search and its synchronisation).

  Counting the entries of each column, and an integer atomic for the place of each, was measured beside (SpTRANS, Wang
  et al. 2016): faster than sorting for four or five entries a column by a tenth to a quarter, slower for all other
  matrices by half and more.

  Memory: offsets: 8 bytes a row; sorting: 8 bytes a nonzero and the sort's own, one more copy of keys and positions.
*/
#include "csrops.cuh"
#include "../structure/diagonals.cuh"

#define TRANSPOSE_TILE 2048 /* entries of A that a block works on */
#define TRANSPOSE_GAP  16   /* rows of T that a thread says the beginning of */
/* offsets: for one thread; the logarithm of the fewest columns of a block */
#define TRANSPOSE_EACH  8
#define TRANSPOSE_LEAST 5

/* the last r in [0, m) with i[r] <= k, searched by a warp together: every step a thirty-second */
static __device__ __forceinline__ PetscInt TransposeRowOf(PetscInt m, const PetscInt *__restrict__ i, PetscCount k)
{
  PetscInt from = 0, to = m;
  while (to - from > 1) {
    const PetscInt   step  = (to - from - 1) / HYB_WARP + 1;
    const PetscCount probe = from + HybLane() * (PetscCount)step;
    const unsigned   below = __ballot_sync(HYB_FULL_MASK, probe < to && i[probe] <= k);
    from += (PetscInt)(__popc(below) - 1) * step;
    if (to - from > step) to = from + step;
  }
  return from;
}

/* The row and the number of each entry. Entries are divided, not rows: a long row costs nothing. Rows mark their first
   entry in the tile; from there to the next mark the row is the largest so far. rowof and position are aligned to 16
   bytes. */
static __global__ __launch_bounds__(CSR_THREADS) void TransposeEntries(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ i, PetscInt *__restrict__ rowof, PetscInt *__restrict__ position)
{
  constexpr int EACH = TRANSPOSE_TILE / CSR_THREADS, V = 16 / sizeof(PetscInt);
  HYB_SHARED(PetscInt, range, 2);
  HYB_SHARED(PetscInt, begun, TRANSPOSE_TILE); /* row - first row of the tile */
  HYB_SHARED(PetscInt, last, CSR_THREADS / HYB_WARP);
  const PetscCount b = (PetscCount)blockIdx.x * TRANSPOSE_TILE, e = b + TRANSPOSE_TILE < nnz ? b + TRANSPOSE_TILE : nnz;
  const int        t = (int)threadIdx.x, warp = t / HYB_WARP;
  PetscInt         mine[EACH], most           = 0;

#pragma unroll
  for (int u = 0; u < EACH; u++) begun[u * CSR_THREADS + t] = 0;
  if (warp < 2) {
    const PetscInt r = TransposeRowOf(m, i, warp ? e - 1 : b);
    if (HybLane() == 0) range[warp] = r;
  }
  __syncthreads();
  const PetscInt from = range[0], to = range[1];
  for (PetscCount r = (PetscCount)from + 1 + t; r <= to; r += CSR_THREADS) {
    const PetscInt start = i[r];
    if (start < i[r + 1]) begun[start - b] = (PetscInt)r - from;
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < EACH; u += V) {
    const HybVec<PetscInt, V> v = HybLoadVec<V>(begun + t * EACH + u);
#pragma unroll
    for (int q = 0; q < V; q++) {
      most        = most < v.v[q] ? v.v[q] : most;
      mine[u + q] = most;
    }
  }
  PetscInt upto = HybSubwarpInclusiveScan<HYB_WARP>(most, HybMax());
  if (HybLane() == HYB_WARP - 1) last[warp] = upto;
  upto = HybShflUp(HYB_FULL_MASK, upto, 1);
  if (HybLane() == 0) upto = 0;
  __syncthreads();
  for (int w = 0; w < warp; w++) upto = upto < last[w] ? last[w] : upto;
#pragma unroll
  for (int u = 0; u < EACH; u += V) {
    const PetscCount    k = b + t * EACH + u;
    HybVec<PetscInt, V> r, p;
#pragma unroll
    for (int q = 0; q < V; q++) {
      r.v[q] = from + (mine[u + q] < upto ? upto : mine[u + q]);
      p.v[q] = (PetscInt)(k + q);
    }
    if (k + V <= e) {
      HybStoreVec<V>(rowof + k, r);
      HybStoreVec<V>(position + k, p);
    } else {
#pragma unroll
      for (int q = 0; q < V; q++) {
        if (k + q < e) {
          rowof[k + q]    = r.v[q];
          position[k + q] = p.v[q];
        }
      }
    }
  }
}

/* after the sort: the rows of A that the entries name, their values where ta is not NULL, and where the rows of T
   begin: at k begin all those behind entry k-1's up to entry k's. Where many are empty, the block fills in together */
static __global__ __launch_bounds__(CSR_THREADS) void TransposeRowsOf(PetscInt n, PetscCount nnz, const PetscInt *__restrict__ column, const PetscInt *__restrict__ perm, const PetscInt *__restrict__ rowof, const HybScalar *__restrict__ a, int conjugate, PetscInt *__restrict__ ti, PetscInt *__restrict__ tj, HybScalar *__restrict__ ta)
{
  HYB_SHARED(PetscInt, gapfrom, CSR_THREADS);
  HYB_SHARED(PetscInt, gapto, CSR_THREADS);
  HYB_SHARED(PetscInt, gapat, CSR_THREADS);
  HYB_SHARED(int, gaps, 1);
  const PetscCount k = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x;

  if (threadIdx.x == 0) *gaps = 0;
  __syncthreads();
  if (k < nnz) {
    const PetscInt p = perm[k];
    tj[k]            = rowof[p];
    if (ta) ta[k] = conjugate ? HybConj(a[p]) : a[p];
  }
  if (k <= nnz) {
    /* with as many columns as PetscInt counts, their distance and what comes behind the last are more */
    const PetscCount before = k ? column[k - 1] : -1, mine = k < nnz ? column[k] : n;
    if (mine - before > TRANSPOSE_GAP) {
      const int g = HybAtomicAdd(gaps, 1);
      gapfrom[g]  = (PetscInt)(before + 1);
      gapto[g]    = (PetscInt)mine;
      gapat[g]    = (PetscInt)k;
    } else {
      for (PetscCount c = before + 1; c <= mine; c++) ti[c] = (PetscInt)k;
    }
  }
  __syncthreads();
  for (int g = 0; g < *gaps; g++)
    for (PetscCount c = gapfrom[g] + (PetscCount)threadIdx.x; c <= gapto[g]; c += CSR_THREADS) ti[c] = gapat[g];
}

/* The first block lists the diagonals of a sample of the rows, or (again) those it had listed and those that were
   missing; the others set the counts to zero */
static __global__ __launch_bounds__(DIAGONALS_SAMPLE) void TransposeSample(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int again, Diagonals *D, PetscCount ngroups, PetscInt *__restrict__ count)
{
  if (blockIdx.x > 0) {
    const PetscCount g = (PetscCount)(blockIdx.x - 1) * DIAGONALS_SAMPLE + threadIdx.x;
    if (g < ngroups) count[g] = 0;
    return;
  }
  DiagonalsSample(m, nnz, i, j, again, D);
}

/* A thread looks at TRANSPOSE_EACH offsets at most, so a block has 2^this columns of T. These are a group, whose
   entries are counted together. */
static __host__ __device__ __forceinline__ int TransposeLogColumns(int noffsets)
{
  return noffsets <= TRANSPOSE_EACH ? 8 : noffsets <= 2 * TRANSPOSE_EACH ? 7
                                        : noffsets <= 4 * TRANSPOSE_EACH ? 6
                                                                         : TRANSPOSE_LEAST;
}

/* The words of the rows, and how many entries each group of columns has */
static __global__ __launch_bounds__(CSR_THREADS) void TransposeWords(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt capacity, Diagonals *D, void *__restrict__ word, PetscInt *__restrict__ count)
{
  HYB_DYNAMIC_SHARED(PetscInt, staged);
  HYB_SHARED(PetscInt, d, DIAGONALS_MAX);
  /* the rows of a block have columns in so many groups */
  HYB_SHARED(int, sum, ((CSR_THREADS >> TRANSPOSE_LEAST) + 1) * DIAGONALS_MAX);
  const int        t = (int)threadIdx.x, n = D->n;
  const PetscCount r0 = (PetscCount)blockIdx.x * CSR_THREADS, r1 = r0 + CSR_THREADS < m ? r0 + CSR_THREADS : m, r = r0 + t;

  if (n > DIAGONALS_MAX) return;
  const int          log = TransposeLogColumns(n), nsums = ((CSR_THREADS >> log) + 1) * n;
  unsigned long long mine;
  for (int k = t; k < nsums; k += CSR_THREADS) sum[k] = 0;
  if (!DiagonalsWord<CSR_THREADS>(r0, r1, i, j, capacity, D, n, d, staged, &mine)) return;
  if (r < r1) {
    if (n <= 32)
      static_cast<unsigned *>(word)[r] = (unsigned)mine;
    else
      static_cast<unsigned long long *>(word)[r] = mine;
  }
  const bool all = __all_sync(HYB_FULL_MASK, mine == DiagonalsAll(n));
  for (int k0 = 0; k0 < n; k0 += HYB_WARP) {
    const int k    = k0 + HybLane();
    unsigned  rows = HYB_FULL_MASK; /* of the warp that have offset k */
    if (!all) {
      const unsigned half = (unsigned)(mine >> k0);
      for (int u = 0; u < HYB_WARP && k0 + u < n; u++) {
        const unsigned ballot = __ballot_sync(HYB_FULL_MASK, (half >> u) & 1u);
        if (HybLane() == u) rows = ballot;
      }
    }
    if (k < n && rows) {
      /* of the first row's column, of the block's: rounded down, also below zero */
      const PetscCount first = r - HybLane() + d[k], g = first >> log, g0 = (r0 + d[k]) >> log;
      const PetscCount below = ((g + 1) << log) - first;
      const int        low = below < HYB_WARP ? __popc(rows & ((1u << below) - 1u)) : __popc(rows), high = __popc(rows) - low;
      if (low) (void)HybAtomicAdd(&sum[(int)(g - g0) * n + k], low);
      if (high) (void)HybAtomicAdd(&sum[(int)(g - g0 + 1) * n + k], high);
    }
  }
  __syncthreads();
  for (int q = t; q < nsums; q += CSR_THREADS)
    if (sum[q]) (void)HybAtomicAdd(&count[((r0 + d[q % n]) >> log) + q / n], sum[q]);
}

/* P threads to a column, each with TRANSPOSE_EACH of the offsets, whose words and rows' beginnings are loaded
   together */
template <int P, typename WORD>
static __global__ __launch_bounds__(CSR_THREADS, 5) void TransposeByOffsetsKernel(PetscInt m, PetscInt n, int noffsets, const PetscInt *__restrict__ i, const WORD *__restrict__ word, const PetscInt *__restrict__ offset, const PetscInt *__restrict__ base, const HybScalar *__restrict__ a, int conjugate, PetscInt *__restrict__ ti, PetscInt *__restrict__ tj, PetscInt *__restrict__ perm, HybScalar *__restrict__ ta)
{
  constexpr int U = TRANSPOSE_EACH, V = 16 / sizeof(HybScalar) * 4, C = CSR_THREADS / P; /* V: values under way */
  /* a difference that wraps round is no row either */
  using Row = typename std::make_unsigned<PetscInt>::type;
  HYB_SHARED(PetscInt, d, DIAGONALS_MAX);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, part, P > 1 ? CSR_THREADS : 1);
  HYB_DYNAMIC_SHARED(PetscInt, rows);
  PetscInt *const  positions = rows + C * noffsets;
  const int        t = (int)threadIdx.x, column = t % C, p = t / C, top = noffsets - 1 - p * U;
  const PetscCount c     = (PetscCount)blockIdx.x * C + column;
  const PetscInt   first = base[blockIdx.x];
  WORD             w[U];
  PetscInt         s[U], len, q;
  unsigned         has = 0;

  if (t < noffsets) d[t] = offset[t];
  __syncthreads();
#pragma unroll
  for (int u = 0; u < U; u++) {
    const Row r = top - u >= 0 && c < n ? (Row)c - (Row)d[top - u] : (Row)m;
    w[u]        = r < (Row)m ? word[r] : 0;
    s[u]        = r < (Row)m ? i[r] : 0;
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (top - u >= 0 && ((w[u] >> (top - u)) & 1)) {
      has |= 1u << u;
      s[u] += DiagonalsBits(w[u] & (((WORD)1 << (top - u)) - 1));
    }
  }
  const PetscInt count = __popc(has);
  if (P == 1)
    q = HybBlockExclusiveSum<CSR_THREADS>(count, scratch, &len);
  else {
    /* the threads of a column stand C apart, so that neighbours load neighbours; their counts are added up one after
       the other */
    part[column * P + p] = count;
    __syncthreads();
    const PetscInt before = HybBlockExclusiveSum<CSR_THREADS>(part[t], scratch, &len);
    part[t]               = before;
    __syncthreads();
    q = part[column * P + p];
  }
  if (c < n && p == 0) ti[c] = first + q;
  if (c == n - 1 && p == P - 1) ti[n] = first + q + count;
#pragma unroll
  for (int u = 0; u < U; u++) {
    if ((has >> u) & 1) {
      rows[q]        = (PetscInt)((Row)c - (Row)d[top - u]);
      positions[q++] = s[u];
    }
  }
  __syncthreads();
  for (PetscInt k = t; k < len; k += V * CSR_THREADS) {
    HybScalar v[V];
    if (ta) {
#pragma unroll
      for (int u = 0; u < V; u++) v[u] = k + u * CSR_THREADS < len ? HybLoadReadOnly(a + positions[k + u * CSR_THREADS]) : HybScalar(0);
    }
#pragma unroll
    for (int u = 0; u < V; u++) {
      if (k + u * CSR_THREADS < len) {
        const PetscInt to = first + k + u * CSR_THREADS;
        tj[to]            = rows[k + u * CSR_THREADS];
        if (perm) perm[to] = positions[k + u * CSR_THREADS];
        if (ta) ta[to] = conjugate ? HybConj(v[u]) : v[u];
      }
    }
  }
}

/* What both ways make of A: ti, tj, where not NULL perm and ta */
typedef struct {
  PetscInt  *ti, *tj, *perm;
  HybScalar *ta;
  int        conjugate;
} TransposeResult;

/* *done false: A has too many offsets, and nothing has been written */
static PetscErrorCode TransposeByOffsets(const HybExec *exec, HybArena *work, const HybCSR *A, const TransposeResult *T, PetscBool *done)
{
  const PetscCount ngroups  = HybBlocks(A->n, 1 << TRANSPOSE_LEAST); /* at most */
  const PetscInt   capacity = DiagonalsCapacity(A, CSR_THREADS);
  Diagonals       *D;
  PetscInt        *count;
  void            *word;
  int              found[2] = {0, 1}; /* the beginning of *D */
  size_t           limit;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 1, sizeof(*D), &D));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), ngroups + 1, sizeof(*count), &count));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->m, sizeof(unsigned long long), &word));
  for (int pass = 0; pass < 3 && found[1] > 0 && found[0] <= DIAGONALS_MAX && found[1] <= DIAGONALS_MAX; pass++) {
    HYB_LAUNCH(TransposeSample, 1 + HybBlocks(ngroups, DIAGONALS_SAMPLE), DIAGONALS_SAMPLE, 0, exec->stream, A->m, A->nnz, A->i, A->j, pass, D, ngroups, count);
    HYB_LAUNCH(TransposeWords, HybBlocks(A->m, CSR_THREADS), CSR_THREADS, (size_t)capacity * sizeof(PetscInt), exec->stream, A->m, A->i, A->j, capacity, D, word, count);
    PetscCall(CSRFetch(exec, found, D, sizeof(found)));
  }
  if (found[0] <= DIAGONALS_MAX && found[1] == 0) {
    const int    n = found[0], log = TransposeLogColumns(n);
    const size_t bytes = 2 * ((size_t)n << log) * sizeof(PetscInt);

    PetscCall(HybDeviceLimits(&limit, NULL));
    if (bytes <= limit) {
      PetscCall(HybScanCounts(exec, work, ((PetscCount)A->n + ((PetscCount)1 << log) - 1) >> log, count, count, NULL, NULL));
      PetscCall(HybDispatch(log, HybCases<8, 7, 6, TRANSPOSE_LEAST>(), [&](auto LOG) {
        constexpr int P = 1 << (8 - LOG);
        using WORD      = std::conditional_t<LOG == TRANSPOSE_LEAST, unsigned long long, unsigned>;
        HYB_LAUNCH((TransposeByOffsetsKernel<P, WORD>), HybBlocks(A->n, CSR_THREADS / P), CSR_THREADS, bytes,
                   exec->stream, A->m, A->n, n, A->i, (const WORD *)word, D->offset, count, A->a, T->conjugate, T->ti,
                   T->tj, T->perm, T->ta);
        return PETSC_SUCCESS;
      }));
      *done = PETSC_TRUE;
    }
  }
  PetscCall(HybArenaFree(work, &D, &count, &word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeBySorting(const HybExec *exec, HybArena *work, const HybCSR *A, const TransposeResult *T)
{
  const PetscCount stride = (A->nnz + HYB_WARP - 1) / HYB_WARP * HYB_WARP;
  PetscInt        *columns, *rowof, *position = T->tj; /* written after the sort */

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 2 * stride, sizeof(*columns), &columns));
  rowof = columns + stride;
  if (A->nnz) {
    HYB_LAUNCH(TransposeEntries, HybBlocks(A->nnz, TRANSPOSE_TILE), CSR_THREADS, 0, exec->stream, A->m, A->nnz, A->i, rowof, position);
    PetscCall(HybSortPairsInt(exec, work, A->nnz, A->j, columns, position, T->perm, HybBits(A->n)));
  }
  HYB_LAUNCH(TransposeRowsOf, HybBlocks(A->nnz + 1, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->n, A->nnz, columns, T->perm, rowof, A->a, T->conjugate, T->ti, T->tj, T->ta);
  PetscCall(HybArenaFree(work, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCSRTranspose(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscBool values, PetscBool conjugate, HybCSR *T, PetscInt **perm)
{
  TransposeResult t    = {NULL, NULL, NULL, NULL, conjugate && PetscDefined(USE_COMPLEX)};
  PetscBool       done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->n + 1, sizeof(PetscInt), &t.ti));
  PetscCall(HybArenaAlloc(keep, exec->result, A->nnz, sizeof(PetscInt), &t.tj));
  if (perm) PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->nnz, sizeof(PetscInt), &t.perm));
  if (values) PetscCall(HybArenaAlloc(keep, exec->result, A->nnz, sizeof(HybScalar), &t.ta));
  if (A->nnz && A->nnz >= HybDeviceTuning()->transpose_offsets) PetscCall(TransposeByOffsets(exec, work, A, &t, &done));
  if (!done) {
    PetscInt *positions = NULL; /* sorting needs them */

    if (!perm) {
      PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->nnz, sizeof(PetscInt), &positions));
      t.perm = positions;
    }
    PetscCall(TransposeBySorting(exec, work, A, &t));
    PetscCall(HybArenaFree(work, &positions));
  }
  *T = HybCSROf(A->n, A->m, A->nnz, t.ti, t.tj, t.ta);
  if (perm) *perm = t.perm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRTransposeSymbolic_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm)
{
  PetscFunctionBegin;
  PetscCall(HybCSRTranspose(exec, keep, work, A, PETSC_FALSE, PETSC_FALSE, T, perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRTranspose_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscBool conjugate, HybCSR *T, PetscInt **perm)
{
  PetscFunctionBegin;
  PetscCall(HybCSRTranspose(exec, keep, work, A, PETSC_TRUE, conjugate, T, perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
