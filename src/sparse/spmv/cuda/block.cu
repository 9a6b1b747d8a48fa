/*
  SpMV by blocks, for matrices of several unknowns to a point: one column index is read for each bs x bs block.

  The pattern must consist of whole blocks: bs rows with the same columns, in groups of bs that begin at multiples of bs. The block size is the one that the matrix has; where it
  has none, some thousand rows tell which of 2, 3, 4, 5, 6 and 8 may be it, and the largest is taken. Every row is compared, exactly, with the first of its block row, in one
  pass over the pattern that extracts the blocks' columns, nnz/bs^2 of them. These stream through shared memory with the values (csr/rowstream.cuh), which stay where CSR has them.

    sum of row r = sum over blocks q of its block row, c < bs: value[start + q bs + c] * x[column[q] bs + c]

  One to sixteen threads sum the rows of a block row together, so each entry of x is fetched once for bs products.

  Where neighbouring points have neighbouring numbers (structured grids; meshes numbered by Cuthill-McKee), most blocks stand right behind another of their row, a thread takes whole
  blocks, and its neighbours the next. Where fewer than a quarter do, x is met in no order, and 24 bytes of it cost a sector or two of second-level cache each time: 1.2 GB beside the 2 GB
  that come from memory, in a mesh of 100^3 points numbered at random within windows of 2000. There a multiprocessor takes neighbouring tiles, four blocks at a time instead of six, so that its first-level cache
  has room for what they share (rowstream.cuh, "runs"), and the threads go along entries, bs of them side by side on a block.

  "auto" takes this method for every matrix of such blocks, one from a structured grid too: shape would read less, but fetch x for every product.

  Plan: 4/bs^2 bytes a nonzero. Bytes of an application: 8 + 4/bs^2 a nonzero, 4 a row, and x and y.
*/
#include "../../csr/rowstream.cuh"
#include "aijhybridgpu/private/hybspmv.h"

#define BLOCK_BATCH 6 /* loads of x in flight for a thread that goes along entries: 16 threads have 81 entries to take of 27 blocks of 3 */

/* ENTRIES: the lanes go along entries, not blocks, so that BS neighbouring lanes read one block of x */
template <int BS, bool ENTRIES>
struct RowStreamBlock {
  using Index                   = PetscInt;
  static constexpr int  BLOCKS  = 3;
  static constexpr int  ROWS    = BS;
  static constexpr bool INDEXED = true;
  static constexpr bool AHEAD   = false;
  const PetscInt       *index; /* block columns, block row by block row */
  struct Row { };
  __device__ __forceinline__ PetscCount IndexOf(PetscCount k) const
  {
    return k / (BS * BS);
  }
  __device__ __forceinline__ void Prepare(PetscInt *) const { }
  __device__ __forceinline__ Row Load(PetscCount, bool, PetscCount) const
  {
    return Row();
  }
  template <int G>
  __device__ __forceinline__ void Sum(int lane, PetscCount, PetscInt start, PetscInt end, const HybScalar *value, const PetscInt *col, const PetscInt *, const Row &, const HybScalar *__restrict__ x, const PetscInt *, HybScalar sum[]) const
  {
    if (ENTRIES) {
      const PetscInt   len = end - start;
      const PetscInt  *c   = col + start / (BS * BS);
      const HybScalar *v0  = value + start;
      for (PetscInt k = lane; k < len; k += BLOCK_BATCH * G) {
        HybScalar xv[BLOCK_BATCH];
        PetscInt  at[BLOCK_BATCH];
        /* no load is asked for whether it is wanted: what lies beyond the row's end reads the last x again */
#pragma unroll
        for (int u = 0; u < BLOCK_BATCH; u++) {
          const unsigned q = (unsigned)(k + u * G < len ? k + u * G : len - 1);
          at[u]            = c[q / BS] * BS + (PetscInt)(q % BS);
        }
#pragma unroll
        for (int u = 0; u < BLOCK_BATCH; u++) xv[u] = HybLoadReadOnly(x + at[u]);
#pragma unroll
        for (int u = 0; u < BLOCK_BATCH; u++)
          if (k + u * G < len) {
#pragma unroll
            for (int r = 0; r < BS; r++) sum[r] += v0[r * len + k + u * G] * xv[u];
          }
      }
      return;
    }
    constexpr int   BATCH = ROWSTREAM_BATCH / BS > 0 ? ROWSTREAM_BATCH / BS : 1;
    const PetscInt  len = end - start, nb = len / BS;
    const PetscInt *c = col + start / (BS * BS);
    for (PetscInt q = lane; q < nb; q += BATCH * G) {
      HybScalar xv[BATCH * BS];
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const bool       in = q + u * G < nb;
        const HybScalar *xq = x + (in ? (PetscCount)c[q + u * G] * BS : 0);
#pragma unroll
        for (int s = 0; s < BS; s++) xv[u * BS + s] = in ? HybLoadReadOnly(xq + s) : HybScalar(0);
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++)
        if (q + u * G < nb) {
#pragma unroll
          for (int r = 0; r < BS; r++) {
#pragma unroll
            for (int s = 0; s < BS; s++) sum[r] += value[start + r * len + (q + u * G) * BS + s] * xv[u * BS + s];
          }
        }
    }
  }
};

typedef struct {
  PetscInt        bs;
  PetscCount      nblocks;
  PetscInt       *column;
  PetscBool       entries;
  RowStreamLayout layout;
} Block;

#define BLOCK_SIZES(CALL) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6) CALL(8)
#define BLOCK_LARGEST     8
#define BLOCK_THREADS     256
#define BLOCK_SAMPLED     4096 /* rows, or a few more */
#define BLOCK_SCATTERED   4    /* blocks of a multiprocessor where x is met in no order */
#define BLOCK_ASKED       16   /* one block row in so many tells how x is met */

/* sets bit bs of *wrong where one of the rows 0, step, 2 step, ... is not part of whole blocks of bs */
template <int W>
static __global__ __launch_bounds__(BLOCK_THREADS) void BlockSample(PetscInt rows, PetscInt step, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int candidates, int *wrong)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP (s, rows, W) {
    const PetscCount r   = s * step;
    int              bad = 0;
    if (s < rows) {
      const PetscInt start = i[r], len = i[r + 1] - start;
#define CALL(BS) \
  if (candidates & (1 << BS)) { \
    const PetscInt lead = i[r / BS * BS], leadlen = i[r / BS * BS + 1] - lead; \
    if (len % BS || len != leadlen) bad |= 1 << BS; \
    else \
      for (PetscInt k = lane; k < len; k += W) { \
        const PetscInt c = j[start + k]; \
        if (c != j[lead + k] || c % BS != k % BS || (k % BS && j[start + k - 1] != c - 1)) bad |= 1 << BS; \
      } \
  }
      BLOCK_SIZES(CALL)
#undef CALL
    }
    if (bad & ~*wrong) HybAtomicOr(wrong, bad);
  }
}

/* what going through all rows finds */
typedef struct {
  PetscInt wrong; /* some row is not part of whole blocks */
  PetscInt longest;
  PetscInt near; /* blocks that stand right behind another of their row, in the block rows that were asked, one in BLOCK_ASKED */
} BlockLook;

/* a warp a block row: compares its rows, entry by entry, and takes the blocks' columns from the first of them. It leaves at the first wrong one that it meets */
template <int BS>
static __global__ __launch_bounds__(BLOCK_THREADS) void BlockColumns(PetscInt mb, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *__restrict__ column, BlockLook *look)
{
  const PetscCount stride  = (PetscCount)gridDim.x * (BLOCK_THREADS / HYB_WARP);
  PetscInt         longest = 0, near = 0;
  bool             bad     = false;

  for (PetscCount B = ((PetscCount)blockIdx.x * BLOCK_THREADS + threadIdx.x) / HYB_WARP; B < mb && !bad; B += stride) {
    const PetscInt start = i[B * BS], len = i[B * BS + 1] - start, to = start / (BS * BS);
    bad = len % BS != 0;
#pragma unroll
    for (int r = 1; r < BS; r++) bad = bad || i[B * BS + r + 1] - i[B * BS + r] != len;
    if (bad) break;
    longest = longest < len ? len : longest;
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
        if (B % BLOCK_ASKED == 0 && q) near += j[start + k - BS] == first - BS;
      }
    }
  }
  if (bad && !look->wrong) HybAtomicOr(&look->wrong, 1);
  near = HybSubwarpSum<HYB_WARP>(near);
  if (HybLane() == 0 && near) HybAtomicAdd(&look->near, near);
  if (HybLane() == 0 && longest > look->longest) HybAtomicMax(&look->longest, longest);
}

/* the blocks of size bs and their columns, *found = NULL where the pattern does not consist of such */
static PetscErrorCode BlockTry(HybSpMV *S, const HybCSR *A, PetscInt bs, BlockLook *host, PetscInt **found)
{
  const HybExec *exec = &S->exec;
  BlockLook     *look;
  PetscInt      *column;
  size_t         limit;
  int            sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, &sms));
  PetscCall(HybArenaCalloc(&S->work, HYB_WORK(exec), 1, sizeof(*look), &look));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), A->nnz / (bs * bs), sizeof(*column), &column));
  switch (bs) {
#define CALL(BS) \
  case BS: \
    HYB_LAUNCH((BlockColumns<BS>), PetscMin(HybBlocks((PetscCount)(A->m / BS) * HYB_WARP, BLOCK_THREADS), (PetscCount)32 * sms), BLOCK_THREADS, 0, exec->stream, A->m / BS, A->i, A->j, column, look); \
    break;
    BLOCK_SIZES(CALL)
#undef CALL
  default:
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "No kernel for blocks of %" PetscInt_FMT, bs);
  }
  PetscCall(exec->backend->copy(exec, host, look, sizeof(*host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  PetscCall(HybArenaFree(&S->work, &look));
  if (host->wrong) PetscCall(HybArenaFree(&S->keep, &column));
  *found = host->wrong ? NULL : column;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest blocks that all rows consist of. Where the matrix does not say its block size, a sample of the rows tells which are worth going through all of them. */
static PetscErrorCode BlockFind(HybSpMV *S, const HybCSR *A, PetscInt *bs, BlockLook *look, PetscInt **column)
{
  const HybExec *exec       = &S->exec;
  int            candidates = 0;

  PetscFunctionBegin;
  *bs     = 1;
  *column = NULL;
  if (A->nnz == 0) PetscFunctionReturn(PETSC_SUCCESS);
#define CALL(BS) \
  if ((S->bs == 1 || S->bs == BS) && A->m % BS == 0 && A->n % BS == 0 && A->nnz % (BS * BS) == 0) candidates |= 1 << BS;
  BLOCK_SIZES(CALL)
#undef CALL
  if (candidates && S->bs == 1) {
    const PetscInt step = A->m > BLOCK_SAMPLED ? (A->m / BLOCK_SAMPLED) | 1 : 1, rows = (A->m - 1) / step + 1;
    const int      w    = RowWidth(A->nnz, A->m, 1);
    int           *wrong, host = 0;

    PetscCall(HybArenaCalloc(&S->work, HYB_WORK(exec), 1, sizeof(*wrong), &wrong));
#define CALL(W) HYB_LAUNCH((BlockSample<W>), HybBlocks((PetscCount)rows * W, BLOCK_THREADS), BLOCK_THREADS, 0, exec->stream, rows, step, A->i, A->j, candidates, wrong)
    ROW_BY_WIDTH(w, CALL);
#undef CALL
    PetscCall(exec->backend->copy(exec, &host, wrong, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->sync(exec));
    PetscCall(HybArenaFree(&S->work, &wrong));
    candidates &= ~host;
  }
  for (PetscInt b = BLOCK_LARGEST; b > 1 && !*column; b--) {
    if (candidates & (1 << b)) PetscCall(BlockTry(S, A, b, look, column));
    if (*column) *bs = b;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockCreate(HybSpMV *S, const HybCSR *A)
{
  Block    *b;
  BlockLook look;
  PetscBool scattered;
  PetscInt  bs, *column;

  PetscFunctionBegin;
  S->data = NULL;
  PetscCall(BlockFind(S, A, &bs, &look, &column));
  if (bs == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*b), &b));
  memset(b, 0, sizeof(*b));
  b->bs      = bs;
  b->nblocks = A->nnz / (bs * bs);
  b->column  = column;
  scattered  = (PetscBool)((PetscCount)look.near * BLOCK_ASKED * 4 < b->nblocks && RowStreamRun(A) == 0);
  b->entries = scattered;
  PetscCall(RowStreamPlan(&S->exec, &S->work, A, look.longest, bs, bs * bs, sizeof(PetscInt), 0, scattered ? 0 : 1, scattered ? BLOCK_SCATTERED : 0, &b->layout));
  if (b->layout.rows == 0) {
    PetscCall(HybArenaFree(&S->keep, &column));
    PetscCall(HybArenaFree(&S->keep, &b));
  }
  S->data = b;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApplicable_BlockCUDA(HybSpMV *S, const HybCSR *A, PetscBool *applicable)
{
  PetscFunctionBegin;
  PetscCall(BlockCreate(S, A));
  *applicable = S->data ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_BlockCUDA(HybSpMV *S, const HybCSR *A)
{
  Block *b;

  PetscFunctionBegin;
  if (!S->data) PetscCall(BlockCreate(S, A));
  b = (Block *)S->data;
  PetscCheck(b, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method block cannot run: the pattern of this matrix, %" PetscInt_FMT " x %" PetscInt_FMT ", does not consist of whole blocks of size %s", A->m, A->n, S->bs > 1 ? "given" : "2, 3, 4, 5, 6 or 8");
  PetscCall(HybCountersSet(&S->counters, "block size", b->bs));
  PetscCall(HybCountersSet(&S->counters, "blocks", b->nblocks));
  PetscCall(HybCountersSet(&S->counters, "rows a tile", b->layout.rows));
  PetscCall(HybCountersSet(&S->counters, "threads along entries", b->entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_BlockCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const Block    *b      = (const Block *)S->data;
  RowStreamLayout layout = b->layout;

  PetscFunctionBegin;
  if (!RowStreamAligned(A->a)) layout.values = 0; /* no tile fits: the slow way */
  switch (b->bs) {
#define CALL(BS) \
  case BS: { \
    if (b->entries) { \
      const RowStreamBlock<BS, true> columns = {b->column}; \
      PetscCall(RowStreamApply(&S->exec, &layout, A, b->nblocks, columns, x, (int)mode, y, z)); \
    } else { \
      const RowStreamBlock<BS, false> columns = {b->column}; \
      PetscCall(RowStreamApply(&S->exec, &layout, A, b->nblocks, columns, x, (int)mode, y, z)); \
    } \
  } break;
    BLOCK_SIZES(CALL)
#undef CALL
  default:
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "No kernel for blocks of %" PetscInt_FMT, b->bs);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HybSpMV_BlockCUDA;
HYB_EXTERN_C_END
const HybSpMVMethod HybSpMV_BlockCUDA = {"block", HybSpMVApplicable_BlockCUDA, HybSpMVSetUp_BlockCUDA, HybSpMVApply_BlockCUDA, NULL, NULL};
