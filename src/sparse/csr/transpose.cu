/*
  The pattern of A^T on the device, with the position in A of each of its entries, so that values follow by one gather for as long as the
  pattern stands.

  Counting (SpTRANS, Wang et al. 2016, and Ji et al. 2021 for its order): count the entries of each column; scan; every entry takes the next free place of its
  column by an integer atomic; then each row of the transpose is sorted, because the places were taken in any order. Rows of A are worked on
  more or less in their order, so a row of the transpose comes out nearly sorted: an insertion sort by one thread in shared memory, where a block has
  loaded its rows as one coalesced stream, costs little more than looking at them. An entry's row and position ascend together, so one comparison
  sorts both. The sorted row is unique: the result does not depend on the order of the atomics.

    for each entry k of A, in row r:  count[j[k]]++                                (integer atomics without return)
    T.i = scan(count)
    for each entry k of A, in row r:  q = T.i[j[k]+1] - count[j[k]]--; pair[q] = (r, k)       (one access: each is a sector of its own)
    for each tile of rows of T:       load pairs; a thread a row: insertion sort; store T.j and perm

  Where a column is long (a dense column, power-law graphs), one thread would sort for too long and atomics would queue: the entries are sorted by column
  instead, stably (radix sort, so equal columns keep A's order and rows come out ascending).

  Memory: n counters and 8 bytes a nonzero, or for the sort 16. Work: 5 passes over 4 to 8 bytes a nonzero against the sort's two to four passes over 16.
*/
#include "csrops.cuh"

#define TRANSPOSE_ROWS 128 /* rows of T in a block's tile */
#define TRANSPOSE_LONG 64  /* the longest row that a thread sorts */

typedef struct alignas(2 * sizeof(PetscInt)) {
  PetscInt row, position;
} TransposePair;

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void TransposeCount(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *count)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP (r, m, W) {
    if (r < m) {
      const PetscInt end = i[r + 1];
#pragma unroll 4
      for (PetscInt k = i[r] + lane; k < end; k += W) (void)HybAtomicAdd(&count[j[k]], 1);
    }
  }
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
    TransposePair  last;
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

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void TransposeExpandRows(PetscInt m, const PetscInt *__restrict__ i, PetscInt *__restrict__ rowof)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP (r, m, W) {
    if (r < m) {
      const PetscInt end = i[r + 1];
      for (PetscInt k = i[r] + lane; k < end; k += W) rowof[k] = (PetscInt)r;
    }
  }
}

static __global__ __launch_bounds__(CSR_THREADS) void TransposeRowsOf(PetscCount n, const PetscInt *__restrict__ perm, const PetscInt *__restrict__ rowof, PetscInt *__restrict__ tj)
{
  const PetscCount k = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x;
  if (k < n) tj[k] = rowof[perm[k]];
}

PetscErrorCode HybCSRTransposeSymbolic_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm)
{
  const int  w = RowWidth(A->nnz, A->m, 1);
  PetscInt  *count, *ti, *tj, *p;
  PetscCount longest = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->n + 1, sizeof(*ti), &ti));
  PetscCall(HybArenaAlloc(keep, exec->result, A->nnz, sizeof(*tj), &tj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->nnz, sizeof(*p), &p));
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), A->n, sizeof(*count), &count));
#define CALL(W) HYB_LAUNCH((TransposeCount<W>), HybBlocks((PetscCount)A->m * W, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->m, A->i, A->j, count)
  if (A->nnz) ROW_BY_WIDTH(w, CALL);
#undef CALL
  PetscCall(HybScanCounts(exec, work, A->n, count, ti, NULL, NULL));
  if (A->nnz) {
    PetscCall(HybReduceMax(exec, work, A->n, count, NULL, &longest));
    if (longest <= TRANSPOSE_LONG) {
      TransposePair *pair;

      PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->nnz, sizeof(*pair), &pair));
#define CALL(W) HYB_LAUNCH((TransposePlace<W>), HybBlocks((PetscCount)A->m * W, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->m, A->i, A->j, ti, count, pair)
      ROW_BY_WIDTH(w, CALL);
#undef CALL
      HYB_LAUNCH(TransposeSort, HybBlocks(A->n, TRANSPOSE_ROWS), TRANSPOSE_ROWS, (size_t)TRANSPOSE_ROWS * (size_t)longest * sizeof(*pair), exec->stream, A->n, ti, pair, tj, p);
      PetscCall(HybArenaFree(work, &pair));
    } else {
      PetscInt *columns, *rowof;

      PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->nnz, sizeof(*columns), &columns));
      PetscCall(HybSortPairsInt(exec, work, A->nnz, A->j, columns, NULL, p, 0, HybBits(A->n)));
      rowof = columns; /* the sorted columns are known from T.i */
#define CALL(W) HYB_LAUNCH((TransposeExpandRows<W>), HybBlocks((PetscCount)A->m * W, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->m, A->i, rowof)
      ROW_BY_WIDTH(w, CALL);
#undef CALL
      HYB_LAUNCH(TransposeRowsOf, HybBlocks(A->nnz, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->nnz, p, rowof, tj);
      PetscCall(HybArenaFree(work, &columns));
    }
  }
  PetscCall(HybArenaFree(work, &count));
  T->m   = A->n;
  T->n   = A->m;
  T->nnz = A->nnz;
  T->i   = ti;
  T->j   = tj;
  T->a   = NULL;
  *perm  = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}
