/*
  The pattern of A^T on the device, with the position in A of each of its entries, so that values follow by one gather for as long as the
  pattern stands. Three ways.

  Shapes: where the rows of A have few shapes (rowshape.cuh), column c is entered by row r = c - d for each offset d that r's class has, and the class says at
  which place of the row. So with the distinct offsets in descending order, rows come out ascending, with neither atomics nor a sort: all that is read is the class
  and the offset of each candidate row, coalesced, and all that is written are the results.

    for each column c (a thread):  for d in distinct offsets, descending:  r = c - d;  if place[class(r)][d] >= 0: entry (r, i[r] + place[class(r)][d])
                                   once to count, and after the scan once to fill, through shared memory so that the stores are coalesced

  Sorting, else: the entries are sorted by column, stably (radix sort, so equal columns keep A's order and rows of T come out ascending). No long row and no long column
  costs anything, nothing is asked on the way, and there are no atomics.

    for each entry k of A:       rowof[k] = its row, position[k] = k           (entries divided among the blocks)
    sort (j, position) by j, as many bits as columns need
    for each entry k of T:       T.j[k] = rowof[perm[k]];  T.i where the column differs from the one before

  Counting (SpTRANS, Wang et al. 2016, and Ji et al. 2021 for its order), with -mat_aijhybridgpu_transpose_counting: count the entries of each column; scan; every entry takes
  the next free place of its column by an integer atomic; then each row of the transpose is sorted, because the places were taken in any order. Rows of A are worked on
  more or less in their order, so a row of the transpose comes out nearly sorted: an insertion sort by one thread in shared memory, where a block has
  loaded its rows as one coalesced stream, costs little more than looking at them. An entry's row and position ascend together, so one comparison
  sorts both. The sorted row is unique: the result does not depend on the order of the atomics. A column of more than 64 entries goes to the sort. Measured on an H200 it was
  faster than sorting for matrices of four or five entries a column by a tenth to a quarter, and slower on all others by half and more.

    for each entry k of A, in row r:  count[j[k]]++                                (integer atomics without return)
    T.i = scan(count)
    for each entry k of A, in row r:  q = T.i[j[k]+1] - count[j[k]]--; pair[q] = (r, k)       (one access: each is a sector of its own)
    for each tile of rows of T:       load pairs; a thread a row: insertion sort; store T.j and perm

  Memory: 12 bytes a nonzero and the sort's own (two more copies of keys and positions); counting: n counters and 8 bytes a nonzero.
*/
#include "csrops.cuh"
#include "rowshape.cuh"

#define TRANSPOSE_ROWS 128 /* rows of T in a block's tile */
#define TRANSPOSE_LONG 64  /* the longest row that a thread sorts */
#define TRANSPOSE_TILE 2048 /* entries of A that a block works on */
#define TRANSPOSE_GAP  16   /* rows of T that a thread says the beginning of */
/* shapes: the most classes, entries of all classes together, distinct offsets; and the fewest rows to a class that are worth the search */
#define TRANSPOSE_CLASSES   256
#define TRANSPOSE_ENTRIES   4096
#define TRANSPOSE_DISTINCT  64
#define TRANSPOSE_CLASSROWS 32

typedef struct alignas(2 * sizeof(PetscInt)) {
  PetscInt row, position;
} TransposePair;

static __global__ __launch_bounds__(CSR_THREADS) void TransposeCount(PetscCount nnz, const PetscInt *__restrict__ j, PetscInt *count)
{
  const PetscCount k0 = (PetscCount)blockIdx.x * CSR_THREADS * 4 + threadIdx.x;
#pragma unroll
  for (int u = 0; u < 4; u++)
    if (k0 + u * CSR_THREADS < nnz) (void)HybAtomicAdd(&count[j[k0 + u * CSR_THREADS]], 1);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS, 5) void TransposePlace(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ ti, PetscInt *left, TransposePair *__restrict__ pair)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP (r, m, W) {
    if (r < m) {
      const PetscInt end = i[r + 1];
#pragma unroll 4
      for (PetscInt k = i[r] + lane; k < end; k += W) {
        const PetscInt c = j[k];
        /* the counters go back down to zero, taking places from the front: no second array, nothing to set */
        const PetscInt q = ti[c + 1] - HybAtomicAdd(&left[c], -1);
        TransposePair  e;
        e.row      = (PetscInt)r;
        e.position = k;
        pair[q]    = e;
      }
    }
  }
}

static __global__ __launch_bounds__(TRANSPOSE_ROWS) void TransposeSort(PetscInt n, const PetscInt *__restrict__ ti, const TransposePair *__restrict__ pair, PetscInt *__restrict__ tj, PetscInt *__restrict__ perm)
{
  HYB_DYNAMIC_SHARED(TransposePair, tile);
  const PetscCount r0 = (PetscCount)blockIdx.x * TRANSPOSE_ROWS, r1 = r0 + TRANSPOSE_ROWS < n ? r0 + TRANSPOSE_ROWS : n;
  const PetscInt   from = ti[r0], len = ti[r1] - from;

#pragma unroll 4
  for (PetscInt k = (PetscInt)threadIdx.x; k < len; k += TRANSPOSE_ROWS) tile[k] = HybLoadStream(pair + from + k);
  __syncthreads();
  if (r0 + threadIdx.x < r1) {
    const PetscInt b = ti[r0 + threadIdx.x] - from, e = ti[r0 + threadIdx.x + 1] - from;
    TransposePair  last = {0, 0};
    if (b < e) last = tile[b];
    for (PetscInt k = b + 1; k < e; k++) {
      const TransposePair p = tile[k];
      if (last.position > p.position) {
        PetscInt q = k;
        do {
          tile[q] = tile[q - 1];
          q--;
        } while (q > b && tile[q - 1].position > p.position);
        tile[q] = p;
      } else last = p; /* otherwise the largest so far stays at k */
    }
  }
  __syncthreads();
  for (PetscInt k = (PetscInt)threadIdx.x; k < len; k += TRANSPOSE_ROWS) {
    const TransposePair e = tile[k];
    tj[from + k]          = e.row;
    perm[from + k]        = e.position;
  }
}

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

/* the row and the number of each entry. Entries are divided, not rows: a long row costs nothing */
static __global__ __launch_bounds__(CSR_THREADS) void TransposeEntries(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ i, PetscInt *__restrict__ rowof, PetscInt *__restrict__ position)
{
  HYB_SHARED(PetscInt, range, 2);
  const PetscCount b = (PetscCount)blockIdx.x * TRANSPOSE_TILE, e = b + TRANSPOSE_TILE < nnz ? b + TRANSPOSE_TILE : nnz;
  const int        t = (int)threadIdx.x, warp = t / HYB_WARP;

  if (warp < 2) {
    const PetscInt r = TransposeRowOf(m, i, warp ? e - 1 : b);
    if (HybLane() == 0) range[warp] = r;
  }
  __syncthreads();
  const PetscInt from = range[0], to = range[1] + 1;
#pragma unroll
  for (int u = 0; u < TRANSPOSE_TILE / CSR_THREADS; u++) {
    const PetscCount k = b + u * CSR_THREADS + t;
    if (k < e) {
      rowof[k]    = RowOfEntry(i, from, to, (PetscInt)k);
      position[k] = (PetscInt)k;
    }
  }
}

/* after the sort: the rows of A that the entries name, and where the rows of T begin: at k begin all those behind entry k-1's up to entry k's. Where many are empty, the
   block fills in together */
static __global__ __launch_bounds__(CSR_THREADS) void TransposeRowsOf(PetscInt n, PetscCount nnz, const PetscInt *__restrict__ column, const PetscInt *__restrict__ perm, const PetscInt *__restrict__ rowof, PetscInt *__restrict__ ti, PetscInt *__restrict__ tj)
{
  HYB_SHARED(PetscInt, gapfrom, CSR_THREADS);
  HYB_SHARED(PetscInt, gapto, CSR_THREADS);
  HYB_SHARED(PetscInt, gapat, CSR_THREADS);
  HYB_SHARED(int, gaps, 1);
  const PetscCount k = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x;

  if (threadIdx.x == 0) *gaps = 0;
  __syncthreads();
  if (k < nnz) tj[k] = rowof[perm[k]];
  if (k <= nnz) {
    const PetscInt before = k ? column[k - 1] : -1, mine = k < nnz ? column[k] : n;
    if (mine - before > TRANSPOSE_GAP) {
      const int g = HybAtomicAdd(gaps, 1);
      gapfrom[g]  = before + 1;
      gapto[g]    = mine;
      gapat[g]    = (PetscInt)k;
    } else {
      for (PetscInt c = before + 1; c <= mine; c++) ti[c] = (PetscInt)k;
    }
  }
  __syncthreads();
  for (int g = 0; g < *gaps; g++)
    for (PetscCount c = gapfrom[g] + (PetscInt)threadIdx.x; c <= gapto[g]; c += CSR_THREADS) ti[c] = gapat[g];
}

typedef struct {
  PetscCount unclassed; /* rows that have no class */
  PetscCount distinct;  /* offsets; more than TRANSPOSE_DISTINCT: give up */
} TransposeShapes;

/* one block: distinct[] = the offsets of all classes, descending; place[class*TRANSPOSE_DISTINCT + d] = place of offset d in a row of the class, or -1 */
#define TRANSPOSE_OFFSET_THREADS 1024
static __global__ __launch_bounds__(TRANSPOSE_OFFSET_THREADS) void TransposeOffsets(PetscInt nclasses, const PetscInt *__restrict__ offsetptr, const PetscInt *__restrict__ offset, const PetscCount *unclassed, PetscInt *distinct, short *place, TransposeShapes *result)
{
  HYB_SHARED(PetscInt, list, TRANSPOSE_DISTINCT);
  HYB_SHARED(int, total, 1);
  const int      t = (int)threadIdx.x;
  const PetscInt n = offsetptr[nclasses];

  if (t == 0) *total = 0;
  __syncthreads();
  for (PetscInt k = t; k < n; k += TRANSPOSE_OFFSET_THREADS) {
    const PetscInt o     = offset[k];
    bool           first = true;
    for (PetscInt q = 0; q < k && first; q++) first = offset[q] != o;
    if (first) {
      const int at = HybAtomicAdd(total, 1); /* in any order: they are ranked below */
      if (at < TRANSPOSE_DISTINCT) list[at] = o;
    }
  }
  __syncthreads();
  const int nd = *total;
  if (t == 0) {
    result->unclassed = *unclassed;
    result->distinct  = nd;
  }
  if (nd > TRANSPOSE_DISTINCT) return;
  for (PetscInt k = t; k < nclasses * TRANSPOSE_DISTINCT; k += TRANSPOSE_OFFSET_THREADS) place[k] = -1;
  __syncthreads();
  for (PetscInt c = 0, k = t; k < n; k += TRANSPOSE_OFFSET_THREADS) {
    const PetscInt o    = offset[k];
    int            rank = 0; /* distinct offsets above o */
    while (offsetptr[c + 1] <= k) c++;
    for (int q = 0; q < nd; q++) rank += list[q] > o;
    distinct[rank]                       = o; /* the same from all that have it */
    place[c * TRANSPOSE_DISTINCT + rank] = (short)(k - offsetptr[c]);
  }
}

/* the tables of the classes to shared memory, as words */
static __device__ __forceinline__ void TransposeTables(int ndistinct, int nclasses, const PetscInt *distinct, const short *place, PetscInt *d, short *p)
{
  for (int k = (int)threadIdx.x; k < ndistinct; k += (int)blockDim.x) d[k] = distinct[k];
  for (int k = (int)threadIdx.x; k < nclasses * (TRANSPOSE_DISTINCT / 2); k += (int)blockDim.x) reinterpret_cast<int *>(p)[k] = reinterpret_cast<const int *>(place)[k];
  __syncthreads();
}

static __global__ __launch_bounds__(CSR_THREADS) void TransposeShapeCount(PetscInt m, PetscInt n, int ndistinct, int nclasses, const HybRowClass *__restrict__ rowclass, const PetscInt *__restrict__ distinct, const short *__restrict__ place, PetscInt *__restrict__ count)
{
  HYB_DYNAMIC_SHARED(PetscInt, d);
  short *const     p = reinterpret_cast<short *>(d + TRANSPOSE_DISTINCT);
  const PetscCount c = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x;

  TransposeTables(ndistinct, nclasses, distinct, place, d, p);
  if (c < n) {
    PetscInt entries = 0;
#pragma unroll 4
    for (int k = 0; k < ndistinct; k++) {
      const PetscCount r = c - d[k];
      if (r >= 0 && r < m) entries += p[rowclass[r] * TRANSPOSE_DISTINCT + k] >= 0;
    }
    count[c] = entries;
  }
}

static __global__ __launch_bounds__(CSR_THREADS) void TransposeShapeFill(PetscInt m, PetscInt n, int ndistinct, int nclasses, const PetscInt *__restrict__ i, const HybRowClass *__restrict__ rowclass, const PetscInt *__restrict__ distinct, const short *__restrict__ place, const PetscInt *__restrict__ ti, PetscInt *__restrict__ tj, PetscInt *__restrict__ perm)
{
  HYB_DYNAMIC_SHARED(PetscInt, d);
  const PetscInt   tile      = (PetscInt)blockDim.x;
  PetscInt *const  rows      = d + TRANSPOSE_DISTINCT;
  PetscInt *const  positions = rows + tile * ndistinct;
  short *const     p         = reinterpret_cast<short *>(positions + tile * ndistinct);
  const PetscCount c0 = (PetscCount)blockIdx.x * tile, c1 = c0 + tile < n ? c0 + tile : n, c = c0 + threadIdx.x;
  const PetscInt   from = ti[c0], len = ti[c1] - from;

  TransposeTables(ndistinct, nclasses, distinct, place, d, p);
  if (c < c1) {
    PetscInt q = ti[c] - from;
#pragma unroll 4
    for (int k = 0; k < ndistinct; k++) {
      const PetscCount r = c - d[k];
      if (r >= 0 && r < m) {
        const int at = p[rowclass[r] * TRANSPOSE_DISTINCT + k];
        if (at >= 0) {
          rows[q]        = (PetscInt)r;
          positions[q++] = i[r] + at;
        }
      }
    }
  }
  __syncthreads();
  for (PetscInt k = (PetscInt)threadIdx.x; k < len; k += tile) {
    tj[from + k]   = rows[k];
    perm[from + k] = positions[k];
  }
}

/* *done false: A has no such shapes, and nothing has been written */
static PetscErrorCode TransposeByShapes(const HybExec *exec, HybArena *work, const HybCSR *A, PetscInt *ti, PetscInt *tj, PetscInt *perm, PetscBool *done)
{
  HybRowShapes     S;
  TransposeShapes *result, host;
  PetscInt        *distinct, *count;
  short           *place;
  size_t           limit;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HybRowShapesFind(exec, work, work, A, PetscMin(TRANSPOSE_CLASSES, A->m / TRANSPOSE_CLASSROWS), &S));
  if (!S.found) PetscFunctionReturn(PETSC_SUCCESS);
  if (S.noffsets <= TRANSPOSE_ENTRIES) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 1, sizeof(*result), &result));
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), TRANSPOSE_DISTINCT, sizeof(*distinct), &distinct));
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)S.nclasses * TRANSPOSE_DISTINCT, sizeof(*place), &place));
    HYB_LAUNCH(TransposeOffsets, 1, TRANSPOSE_OFFSET_THREADS, 0, exec->stream, S.nclasses, S.offsetptr, S.offset, S.unclassed, distinct, place, result);
    PetscCall(CSRFetch(exec, &host, result, sizeof(host)));
    PetscCall(HybDeviceLimits(&limit, NULL));
    const int    nd     = (int)PetscMin(host.distinct, (PetscCount)TRANSPOSE_DISTINCT), tile = nd <= 16 ? CSR_THREADS : CSR_THREADS / 2;
    const size_t common = TRANSPOSE_DISTINCT * sizeof(PetscInt) + (size_t)S.nclasses * TRANSPOSE_DISTINCT * sizeof(short), bytes = common + 2 * (size_t)tile * (size_t)nd * sizeof(PetscInt);
    if (host.unclassed == 0 && host.distinct <= TRANSPOSE_DISTINCT && bytes <= limit) {
      PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->n, sizeof(*count), &count));
      HYB_LAUNCH(TransposeShapeCount, HybBlocks(A->n, CSR_THREADS), CSR_THREADS, common, exec->stream, A->m, A->n, nd, (int)S.nclasses, S.rowclass, distinct, place, count);
      PetscCall(HybScanCounts(exec, work, A->n, count, ti, NULL, NULL));
      HYB_LAUNCH(TransposeShapeFill, HybBlocks(A->n, tile), tile, bytes, exec->stream, A->m, A->n, nd, (int)S.nclasses, A->i, S.rowclass, distinct, place, ti, tj, perm);
      PetscCall(HybArenaFree(work, &count));
      *done = PETSC_TRUE;
    }
    PetscCall(HybArenaFree(work, &result));
    PetscCall(HybArenaFree(work, &distinct));
    PetscCall(HybArenaFree(work, &place));
  }
  PetscCall(HybArenaFree(work, &S.rowclass));
  PetscCall(HybArenaFree(work, &S.representative));
  PetscCall(HybArenaFree(work, &S.offsetptr));
  PetscCall(HybArenaFree(work, &S.offset));
  PetscCall(HybArenaFree(work, &S.unclassed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *done false: a column is too long for one thread's sort, and nothing has been written but ti */
static PetscErrorCode TransposeByCounting(const HybExec *exec, HybArena *work, const HybCSR *A, PetscInt *ti, PetscInt *tj, PetscInt *perm, PetscBool *done)
{
  const int      w = RowWidth(A->nnz, A->m, 1);
  PetscInt      *count;
  TransposePair *pair;
  PetscCount     longest = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), A->n, sizeof(*count), &count));
  HYB_LAUNCH(TransposeCount, HybBlocks(A->nnz, 4 * CSR_THREADS), CSR_THREADS, 0, exec->stream, A->nnz, A->j, count);
  PetscCall(HybScanCounts(exec, work, A->n, count, ti, NULL, NULL));
  PetscCall(HybReduceMax(exec, work, A->n, count, NULL, &longest));
  *done = longest <= TRANSPOSE_LONG ? PETSC_TRUE : PETSC_FALSE;
  if (*done) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->nnz, sizeof(*pair), &pair));
#define CALL(W) HYB_LAUNCH((TransposePlace<W>), HybBlocks((PetscCount)A->m * W, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->m, A->i, A->j, ti, count, pair)
    ROW_BY_WIDTH(w, CALL);
#undef CALL
    HYB_LAUNCH(TransposeSort, HybBlocks(A->n, TRANSPOSE_ROWS), TRANSPOSE_ROWS, (size_t)TRANSPOSE_ROWS * (size_t)longest * sizeof(*pair), exec->stream, A->n, ti, pair, tj, perm);
    PetscCall(HybArenaFree(work, &pair));
  }
  PetscCall(HybArenaFree(work, &count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeBySorting(const HybExec *exec, HybArena *work, const HybCSR *A, PetscInt *ti, PetscInt *tj, PetscInt *perm)
{
  PetscInt *columns, *rowof, *position;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 3 * A->nnz, sizeof(*columns), &columns));
  rowof    = columns + A->nnz;
  position = rowof + A->nnz;
  if (A->nnz) {
    HYB_LAUNCH(TransposeEntries, HybBlocks(A->nnz, TRANSPOSE_TILE), CSR_THREADS, 0, exec->stream, A->m, A->nnz, A->i, rowof, position);
    PetscCall(HybSortPairsInt(exec, work, A->nnz, A->j, columns, position, perm, 0, HybBits(A->n)));
  }
  HYB_LAUNCH(TransposeRowsOf, HybBlocks(A->nnz + 1, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->n, A->nnz, columns, perm, rowof, ti, tj);
  PetscCall(HybArenaFree(work, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRTransposeSymbolic_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm)
{
  PetscInt *ti, *tj, *p;
  PetscBool done = PETSC_FALSE, counting = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_aijhybridgpu_transpose_counting", &counting, NULL));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->n + 1, sizeof(*ti), &ti));
  PetscCall(HybArenaAlloc(keep, exec->result, A->nnz, sizeof(*tj), &tj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->nnz, sizeof(*p), &p));
  if (A->m >= 8 * TRANSPOSE_CLASSROWS) PetscCall(TransposeByShapes(exec, work, A, ti, tj, p, &done));
  if (!done && counting) PetscCall(TransposeByCounting(exec, work, A, ti, tj, p, &done));
  if (!done) PetscCall(TransposeBySorting(exec, work, A, ti, tj, p));
  T->m   = A->n;
  T->n   = A->m;
  T->nnz = A->nnz;
  T->i   = ti;
  T->j   = tj;
  T->a   = NULL;
  *perm  = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}
