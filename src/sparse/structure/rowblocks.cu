/*
  Finds the blocks of a pattern (rowblocks.cuh).

  Some thousand rows tell which of 2, 3, 4, 5, 6 and 8 may be the block size, unless the matrix says it; the largest is
  tried first. Then every row is compared, exactly, with the first of its block row, in one pass over the pattern that
  takes the blocks' columns, nnz/bs^2 of them.

  This is apart from the product by blocks since every matrix is sampled, and CUDA loads a file's kernels together:
  those of products by blocks took long in a process's first plan.
*/
#include "rowblocksample.cuh"

#define ROWBLOCKS_LARGEST 8
#define ROWBLOCKS_THREADS 256

template <int W>
static __global__ __launch_bounds__(ROWBLOCKS_THREADS) void RowBlocksSample(PetscInt rows, PetscInt step, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int candidates, int *wrong)
{
  RowBlocksSampleRows<W>(rows, step, i, j, candidates, blockIdx.x, gridDim.x, wrong);
}

/* a warp a block row: compares its rows, entry by entry, and takes the blocks' columns from the first of them. It
   leaves at the first wrong one that it meets */
template <int BS>
static __global__ __launch_bounds__(ROWBLOCKS_THREADS) void RowBlocksColumns(PetscInt mb, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *__restrict__ ptr, PetscInt *__restrict__ column, RowBlocksLook *look)
{
  const PetscCount stride  = (PetscCount)gridDim.x * (ROWBLOCKS_THREADS / HYB_WARP);
  PetscInt         longest = 0, near = 0;
  bool             bad = false;

  for (PetscCount B = ((PetscCount)blockIdx.x * ROWBLOCKS_THREADS + threadIdx.x) / HYB_WARP; B < mb && !bad; B += stride) {
    const PetscInt start = i[B * BS], len = i[B * BS + 1] - start, to = start / (BS * BS);
    bad = len % BS != 0;
#pragma unroll
    for (int r = 1; r < BS; r++) bad = bad || i[B * BS + r + 1] - i[B * BS + r] != len;
    if (bad) break;
    longest = longest < len ? len : longest;
    if (ptr && HybLane() == 0) {
      ptr[B] = to;
      if (B == mb - 1) ptr[mb] = (start + len * BS) / (BS * BS);
    }
    for (PetscInt k = HybLane(); k < len; k += HYB_WARP) {
      const PetscInt q = k / BS, first = j[start + q * BS];
      PetscInt       c[BS];
#pragma unroll
      for (int r = 0; r < BS; r++) c[r] = HybLoadStream(j + start + r * len + k);
#pragma unroll
      for (int r = 0; r < BS; r++) bad = bad || c[r] != first + (k - q * BS);
      bad = bad || first % BS != 0;
      if (k == q * BS) {
        column[to + q] = first / BS;
        if (B % ROWBLOCKS_ASKED == 0 && q) near += j[start + k - BS] == first - BS;
      }
    }
  }
  if (bad && !look->wrong) HybAtomicOr(&look->wrong, 1);
  near = HybSubwarpSum<HYB_WARP>(near);
  if (HybLane() == 0 && near) HybAtomicAdd(&look->near, near);
  if (HybLane() == 0 && longest > look->longest) HybAtomicMax(&look->longest, longest);
}

PetscErrorCode HybRowBlocksColumnsAsync(const HybExec *exec, const HybCSR *A, PetscInt bs, PetscInt *ptr, PetscInt *column, RowBlocksLook *look)
{
  size_t limit;
  int    sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, &sms));
  PetscCall(HybDispatch(bs, RowBlocksSizes(), [&](auto BS) {
    HYB_LAUNCH((RowBlocksColumns<BS>),
               PetscMin(HybBlocks((PetscCount)(A->m / BS) * HYB_WARP, ROWBLOCKS_THREADS), (PetscCount)32 * sms),
               ROWBLOCKS_THREADS, 0, exec->stream, A->m / BS, A->i, A->j, ptr, column, look);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the blocks of size bs and their columns, *found = NULL where the pattern does not consist of such */
static PetscErrorCode RowBlocksTry(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, RowBlocksLook *host, PetscInt **found)
{
  RowBlocksLook *look;
  PetscInt      *column;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*look), &look));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->nnz / (bs * bs), sizeof(*column), &column));
  PetscCall(HybRowBlocksColumnsAsync(exec, A, bs, NULL, column, look));
  PetscCall(exec->backend->copy(exec, host, look, sizeof(*host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(work, &look));
  if (host->wrong) PetscCall(HybArenaFree(keep, &column));
  *found = host->wrong ? NULL : column;
  PetscFunctionReturn(PETSC_SUCCESS);
}

int HybRowBlocksCandidates(const HybCSR *A)
{
  int candidates = 0;

  HybEachCase(RowBlocksSizes(), [&](auto BS) {
    if (A->m % BS == 0 && A->n % BS == 0 && A->nnz % (BS * BS) == 0) candidates |= 1 << BS;
  });
  return candidates;
}

PetscErrorCode HybRowBlocksSampleAsync(const HybExec *exec, const HybCSR *A, int candidates, int *wrong)
{
  PetscInt       step;
  const PetscInt rows = RowBlocksSampled(A->m, &step);

  PetscFunctionBegin;
  PetscCall(HybDispatch(RowWidth(A->nnz, A->m, 1), RowWidths(), [&](auto W) {
    HYB_LAUNCH((RowBlocksSample<W>), HybBlocks((PetscCount)rows * W, ROWBLOCKS_THREADS), ROWBLOCKS_THREADS, 0,
               exec->stream, rows, step, A->i, A->j, candidates, wrong);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the matrix does not say its block size, a sample of the rows tells which are worth going through all of them */
PetscErrorCode HybRowBlocksFind(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, RowBlocks *found)
{
  RowBlocksLook look;
  int           candidates = 0;

  PetscFunctionBegin;
  memset(found, 0, sizeof(*found));
  found->bs = 1;
  if (A->nnz == 0) PetscFunctionReturn(PETSC_SUCCESS);
  candidates = HybRowBlocksCandidates(A);
  if (bs != 1) candidates &= bs > 0 && bs <= ROWBLOCKS_LARGEST ? 1 << bs : 0;
  if (candidates && bs == 1) {
    int *wrong, host = 0;

    PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*wrong), &wrong));
    PetscCall(HybRowBlocksSampleAsync(exec, A, candidates, wrong));
    PetscCall(exec->backend->copy(exec, &host, wrong, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(HybArenaFree(work, &wrong));
    candidates &= ~host;
  }
  for (PetscInt b = ROWBLOCKS_LARGEST; b > 1 && !found->column; b--) {
    if (candidates & (1 << b)) PetscCall(RowBlocksTry(exec, keep, work, A, b, &look, &found->column));
    if (!found->column) continue;
    found->bs      = b;
    found->longest = look.longest;
    found->near    = look.near;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
