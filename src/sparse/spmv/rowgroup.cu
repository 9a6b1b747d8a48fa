/*
  SpMV by groups of lanes, in three ways.

  Stream. Where rows are of about one length, not too long and many, values and column indices stream through shared
  memory (rowstream.cuh), and one thread, or two to eight where rows are long, sums a row from there: neighbouring
  rows have neighbouring columns mostly, so x is read coalesced, which it is not when the lanes go along a row. Where
  the columns of each tile of rows span less than 65536, their 16-bit distances from the tile's first are kept, and
  stream in place of the columns. Long rows of farther columns are taken directly.

  Direct. Where they are of about one length but few, as on the levels of a multigrid, latency is what counts: a
  sub-warp of 1, 2, ..., 32 lanes takes each row, in order, four entries a lane at a time (eight together were slower:
  fewer warps), with nothing between the loads and the sum. The width leaves a lane eight entries, four where rows have
  17 to 32 and, in interpolations and what else is taller than wide, up to 8, and is raised until every multiprocessor
  has work. Where rows have more than four entries for each lane of half a warp or a warp, and these do not fill the
  device more than twice or once, a lane takes eight.

  Bins. Where lengths differ, the rows are sorted by the width that suits them, once: up to 8 entries one lane, up to 16
  two, ..., up to 512 a warp, up to 4096 a block; longer rows are cut in pieces of 4096, a block each, and the block
  that comes last adds the pieces' sums in order. Within a bin rows stay in order, and all bins are parts of one launch,
  long rows first. A lane has four entries under way, eight where one or two fills of the device with threads take all
  there are. Where most rows are of up to eight entries, these are not listed but taken in order, the others being
  passed over.

    bin of row r by its length; stable sort of the rows by bin; start and length of each in that order
    block b of the launch: the bin from the blocks' ranges; its rows: sum = sum over k = lane, lane + W, ... of a[k]
    x[j[k]]; butterfly over the lanes

  For one application alone rows of about one length are streamed with their columns, or taken directly, and nothing is
  looked at where the longest row is known; rows of all lengths are declined.

  A row's order of addition depends on its length and on the plan alone, so results repeat bit by bit. Plan: 2 bytes a
  nonzero for stream where the columns are near, else nothing, nothing for direct, three integers a row for bins. Of
  matrices that are not very small, nor very large for the card, columns are kept in fewer bits: where there are up to
  65536 of them and rows are taken directly or by bins, in 16, 2 bytes a nonzero; where a PetscInt has 64, in 32. That
  depends on nothing that changes, since lanes depend on it. Bytes: 12 a nonzero (10 where columns are near or few), 4 a
  row (bins: 12), and what x and the result cost.

  Reference for binning by row length: Y. Lu, W. Liu, DASP: Specific dense matrix multiply-accumulate units accelerated
  general sparse matrix-vector multiplication, SC 2023.
*/
#include "rowstream.cuh"
#include "ending.cuh"
#include "ordered.cuh"

#define ROWGROUP_THREADS 256
/* blocks of a multiprocessor, for the registers of a lane that has U entries under way: complex numbers take twice
   those */
#define ROWGROUP_BLOCKS(U) (RowWide ? ((U) == 4 ? 4 : 2) : (U) == 4 ? 6 \
                                                                    : 4)
#define ROWGROUP_PIECE 4096 /* entries of a row that a block takes */
/* the bins, in the order of the launch: pieces of rows; a block a row; a warp, 16, 8, 4, 2 lanes, one lane */
#define ROWGROUP_BINS  8
#define ROWGROUP_SHORT 8 /* the longest row of the last bin */
/* streaming pays from so many nonzeros on, up to so long rows */
#define ROWGROUP_STREAM_FROM 4000000
#define ROWGROUP_STREAM_MEAN 64
/* rows of more entries in the mean are taken directly where 16 bits do not reach their tile's columns */
#define ROWGROUP_FAR 32
/* rows of more entries in the mean have their tiles in runs: 27 entries 0.350 instead of 0.366
   ms, with their columns 0.396 instead of 0.421; nine 0.134 instead of 0.129 */
#define ROWGROUP_STREAM_RUNS 14
/* entries from which on columns are kept in fewer bits, if these take no more than such a part of the card's memory */
#define ROWGROUP_NARROW_FROM  65536
#define ROWGROUP_NARROW_SHARE 16
#define ROWGROUP_NARROW_SURE  ((size_t)64 << 20) /* bytes for which no card is asked */
/* entries for each multiprocessor up to which bins take eight at a time: twice the 1024 threads of that kernel, of real
   numbers */
#define ROWGROUP_FILL (2 * 8 * 1024)

/* what the row lengths say */
typedef struct {
  PetscCount longest, rows[ROWGROUP_BINS];
} RowGroupLook;

/* as in HybTuning.rowgroup_way */
typedef enum {
  ROWGROUP_STREAM = 0,
  ROWGROUP_DIRECT = 1,
  ROWGROUP_BINNED = 2
} RowGroupWay;

/* a piece of a row */
typedef struct {
  PetscInt row, from, to;
  PetscInt first, n; /* the row's pieces */
} RowGroupPiece;

/* where each bin's blocks end in the launch, its first row in the list, its number of rows */
typedef struct {
  PetscCount end[ROWGROUP_BINS];
  PetscInt   first[ROWGROUP_BINS], rows[ROWGROUP_BINS];
  PetscBool  inorder; /* the last bin's rows are not listed: all rows are looked at, in order */
} RowGroupParts;

typedef struct {
  RowGroupLook    look;
  PetscBool       chosen;
  RowGroupWay     way;
  RowStreamLayout layout;
  unsigned short *distance; /* of each entry's column from its tile's base, or NULL */
  PetscInt       *base;
  size_t          bytes;  /* of a column that is kept in fewer bits, or 0 */
  void           *column; /* these */
  int             width, batch;
  RowGroupParts   parts;
  PetscInt       *list, *start, *length;
  RowGroupPiece  *piece;
  HybScalar      *sum;     /* of each piece */
  int            *arrived; /* at a row's first piece: how many of its pieces are there; zero between applications */
} RowGroup;

static __device__ __forceinline__ int RowGroupBin(PetscInt length)
{
  if (length > ROWGROUP_PIECE) return 0;
  if (length > 512) return 1;
  if (length > 128) return 2;
  if (length > 64) return 3;
  if (length > 32) return 4;
  if (length > 16) return 5;
  return length > ROWGROUP_SHORT ? 6 : 7;
}

static __global__ __launch_bounds__(ROWGROUP_THREADS) void RowGroupLengths(PetscInt m, const PetscInt *__restrict__ i, RowGroupLook *look)
{
  HYB_SHARED(PetscCount, rows, ROWGROUP_BINS);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  PetscInt longest = 0;

  if (threadIdx.x < ROWGROUP_BINS) rows[threadIdx.x] = 0;
  __syncthreads();
  for (PetscCount r0 = (PetscCount)blockIdx.x * ROWGROUP_THREADS; r0 < m; r0 += (PetscCount)gridDim.x * ROWGROUP_THREADS) {
    const PetscCount r      = r0 + threadIdx.x;
    const PetscInt   length = r < m ? i[r + 1] - i[r] : 0;
    const int        bin    = r < m ? RowGroupBin(length) : -1;

    longest = longest < length ? length : longest;
    for (int b = 0; b < ROWGROUP_BINS; b++) {
      const unsigned lanes = __ballot_sync(HYB_FULL_MASK, bin == b);
      if (HybLane() == 0 && lanes) HybAtomicAdd(&rows[b], (PetscCount)__popc(lanes));
    }
  }
  longest = HybBlockMax<ROWGROUP_THREADS>(longest, scratch);
  if (threadIdx.x == 0) HybAtomicMax(&look->longest, (PetscCount)longest);
  if (threadIdx.x < ROWGROUP_BINS && rows[threadIdx.x]) HybAtomicAdd(&look->rows[threadIdx.x], rows[threadIdx.x]);
}

static __global__ __launch_bounds__(ROWGROUP_THREADS) void RowGroupKeys(PetscInt m, const PetscInt *__restrict__ i, PetscInt *__restrict__ key)
{
  const PetscCount r = (PetscCount)blockIdx.x * ROWGROUP_THREADS + threadIdx.x;
  if (r < m) key[r] = RowGroupBin(i[r + 1] - i[r]);
}

static __global__ __launch_bounds__(ROWGROUP_THREADS) void RowGroupFill(PetscInt n, const PetscInt *__restrict__ i, const PetscInt *__restrict__ rows, PetscInt *__restrict__ list, PetscInt *__restrict__ start, PetscInt *__restrict__ length)
{
  const PetscCount k = (PetscCount)blockIdx.x * ROWGROUP_THREADS + threadIdx.x;
  if (k < n) {
    const PetscInt r = rows[k];
    list[k]          = r;
    start[k]         = i[r];
    length[k]        = i[r + 1] - i[r];
  }
}

/* what lane of W adds to the sum of the entries from..to-1, U of them under way together; CHAINED: the first ones of
   the matrix come before x is there */
template <int W, int U, bool CHAINED = false, class J>
static __device__ __forceinline__ HybScalar RowGroupSum(int lane, PetscInt from, PetscInt to, const J *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *x)
{
  HybScalar sum(0);
  for (PetscInt k = from + lane; k < to; k += U * W) {
    J         c[U];
    HybScalar v[U], xv[U];
#pragma unroll
    for (int u = 0; u < U; u++) c[u] = k + u * W < to ? HybLoadStream(j + k + u * W) : 0;
#pragma unroll
    for (int u = 0; u < U; u++) v[u] = k + u * W < to ? HybLoadStream(a + k + u * W) : HybScalar(0);
    if (CHAINED && k == from + lane) HybChainWait();
#pragma unroll
    for (int u = 0; u < U; u++) xv[u] = k + u * W < to ? HybLoadVector(x + c[u]) : HybScalar(0);
#pragma unroll
    for (int u = 0; u < U; u++)
      if (k + u * W < to) sum += v[u] * xv[u];
  }
  if (CHAINED && from + lane >= to) HybChainWait();
  return sum;
}

template <int W, int U, bool STEP, class J>
static __global__ __launch_bounds__(ROWGROUP_THREADS, ROWGROUP_BLOCKS(U)) void RowGroupRows(int mode, RowStep step, PetscInt m, const PetscInt *__restrict__ i, const J *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *x, const HybScalar *y, HybScalar *z)
{
  const PetscCount r     = ((PetscCount)blockIdx.x * ROWGROUP_THREADS + threadIdx.x) / W;
  const int        lane  = HybLane() & (W - 1);
  const PetscInt   start = r < m ? i[r] : 0, end = r < m ? i[r + 1] : 0;
  HybScalar        sum = RowGroupSum < W, W == 1 ? 4 : U, true > (lane, start, end, j, a, x);

  sum = HybSubwarpsSum<W>(sum);
  if (lane == 0 && r < m) RowEndOr<STEP>(mode, step, sum, y, z, r);
}

/* rows of the list, W lanes each */
template <int W, int U, bool STEP, class J>
static __device__ __forceinline__ void RowGroupListed(int mode, const RowStep &step, PetscCount block, PetscInt first, PetscInt rows, const PetscInt *__restrict__ list, const PetscInt *__restrict__ rowstart, const PetscInt *__restrict__ rowlength, const J *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *x, const HybScalar *y, HybScalar *z)
{
  const PetscCount q    = block * (ROWGROUP_THREADS / W) + threadIdx.x / W;
  const int        lane = HybLane() & (W - 1);
  PetscInt         r = 0, start = 0, length = 0;

  if (q < rows) {
    r      = list[first + q];
    start  = rowstart[first + q];
    length = rowlength[first + q];
  }
  HybScalar sum = RowGroupSum < W, W == 1 ? 4 : U > (lane, start, start + length, j, a, x);
  sum           = HybSubwarpsSum<W>(sum);
  if (lane == 0 && q < rows) RowEndOr<STEP>(mode, step, sum, y, z, r);
}

/* U: entries of a lane that are under way together */
template <int U, bool STEP, class J>
static __global__ __launch_bounds__(ROWGROUP_THREADS, ROWGROUP_BLOCKS(U)) void RowGroupBinned(RowGroupParts parts, int mode, RowStep step, PetscInt m, const PetscInt *__restrict__ i, const J *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *x, const PetscInt *__restrict__ list, const PetscInt *__restrict__ rowstart, const PetscInt *__restrict__ rowlength, const RowGroupPiece *__restrict__ piece, HybScalar *piecesum, int *arrived, const HybScalar *y, HybScalar *z)
{
  HybChainWait();
  HYB_SHARED(HybScalar, scratch, HYB_WARP);
  HYB_SHARED(int, complete, 1);
  const PetscCount b = blockIdx.x;

  if (b < parts.end[0]) {
    const RowGroupPiece p   = piece[b];
    HybScalar           sum = HybBlockSum<ROWGROUP_THREADS>(RowGroupSum<ROWGROUP_THREADS, U>((int)threadIdx.x, p.from, p.to, j, a, x), scratch);
    if (threadIdx.x == 0) {
      piecesum[b] = sum;
      __threadfence();
      *complete = HybAtomicAdd(&arrived[p.first], 1) == (int)p.n - 1;
      __threadfence();
    }
    __syncthreads();
    if (*complete) {
      sum = HybScalar(0);
      for (PetscInt k = (PetscInt)threadIdx.x; k < p.n; k += ROWGROUP_THREADS) sum += HybLoadShared(piecesum + p.first + k);
      sum = HybBlockSum<ROWGROUP_THREADS>(sum, scratch);
      if (threadIdx.x == 0) {
        RowEndOr<STEP>(mode, step, sum, y, z, p.row);
        arrived[p.first] = 0;
      }
    }
  } else if (b < parts.end[1]) {
    const PetscCount q   = parts.first[1] + (b - parts.end[0]);
    const PetscInt   k   = rowstart[q];
    const HybScalar  sum = HybBlockSum<ROWGROUP_THREADS>(RowGroupSum<ROWGROUP_THREADS, U>((int)threadIdx.x, k, k + rowlength[q], j, a, x), scratch);
    if (threadIdx.x == 0) RowEndOr<STEP>(mode, step, sum, y, z, list[q]);
  }
#define PART(B, W) else if (b < parts.end[B]) RowGroupListed<W, U, STEP>(mode, step, b - parts.end[B - 1], parts.first[B], parts.rows[B], list, rowstart, rowlength, j, a, x, y, z);
  PART(2, 32)
  PART(3, 16)
  PART(4, 8)
  PART(5, 4)
  PART(6, 2)
#undef PART
  else if (!parts.inorder) RowGroupListed<1, U, STEP>(mode, step, b - parts.end[6], parts.first[7], parts.rows[7], list, rowstart, rowlength, j, a, x, y, z);
  else
  {
    const PetscCount r = (b - parts.end[6]) * ROWGROUP_THREADS + threadIdx.x;
    if (r < m) {
      const PetscInt start = i[r], end = i[r + 1];
      if (end - start <= ROWGROUP_SHORT) RowEndOr<STEP>(mode, step, RowGroupSum<1, 4>(0, start, end, j, a, x), y, z, r);
    }
  }
}

/* entries of a row that a lane takes, at most */
static int RowGroupEach(const HybCSR *A, PetscCount mean)
{
  return (mean > 16 && mean <= 32) || (mean <= 8 && A->m > A->n) ? 4 : 8;
}

/* of long rows that half a warp or a warp takes a lane has all its entries under way together */
static bool RowGroupAtOnce(int width, PetscCount mean)
{
  return width >= HYB_WARP / 2 && mean > 4 * width;
}

/* the lengths, and the way that suits them: see the essay */
static PetscErrorCode RowGroupChoose(HybSpMV *S, const HybCSR *A, RowGroup **group)
{
  const HybExec   *exec = &S->exec;
  const PetscCount mean = A->m > 0 ? A->nnz / A->m : 0;
  RowGroupLook    *look;
  RowGroup        *rg;
  const HybTuning *tuning = HybDeviceTuning();
  size_t           limit;
  int              sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, &sms));
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*rg), &rg));
  memset(rg, 0, sizeof(*rg));
  *group           = rg;
  S->data          = rg;
  rg->look.longest = S->longest;
  if (!S->once || !S->longest) {
    PetscCall(HybArenaCalloc(&S->work, HYB_WORK(exec), 1, sizeof(*look), &look));
    HYB_LAUNCH(RowGroupLengths, PetscMin(HybBlocks(A->m, ROWGROUP_THREADS), (PetscCount)4 * sms), ROWGROUP_THREADS, 0, exec->stream, A->m, A->i, look);
    PetscCall(exec->backend->copy(exec, &rg->look, look, sizeof(*look), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->sync(exec));
    PetscCall(HybArenaFree(&S->work, &look));
  }
  if (rg->look.longest > 4 * mean + 32)
    rg->way = ROWGROUP_BINNED;
  else if (A->nnz >= ROWGROUP_STREAM_FROM && mean <= ROWGROUP_STREAM_MEAN)
    rg->way = ROWGROUP_STREAM;
  else
    rg->way = ROWGROUP_DIRECT;
  rg->width = 1;
  while (rg->width < HYB_WARP && (RowGroupEach(A, mean) * rg->width < mean || (2 * rg->width <= mean && (PetscCount)A->m * rg->width < (PetscCount)(RowGroupAtOnce(rg->width, mean) ? 512 : 1024) * sms))) rg->width *= 2;
  if (rg->way == ROWGROUP_BINNED)
    rg->batch = A->nnz <= (PetscCount)ROWGROUP_FILL * sms ? 8 : 4;
  else
    rg->batch = RowGroupAtOnce(rg->width, mean) && (PetscCount)A->m * rg->width <= (PetscCount)32768 / rg->width * sms ? 8 : 4;
  if (tuning->rowgroup_batch) rg->batch = (int)tuning->rowgroup_batch;
  if (tuning->rowgroup_lanes) {
    rg->way   = ROWGROUP_DIRECT;
    rg->width = (int)tuning->rowgroup_lanes;
  }
  if (tuning->rowgroup_way >= 0) rg->way = (RowGroupWay)tuning->rowgroup_way;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVFits_RowGroupCUDA(HybSpMV *S, const HybCSR *A, PetscBool *fits)
{
  RowGroup *rg;

  PetscFunctionBegin;
  PetscCall(RowGroupChoose(S, A, &rg));
  rg->chosen = PETSC_TRUE;
  *fits      = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of about one length need no plan beyond what that is; rows of all lengths would be sorted */
static PetscErrorCode HybSpMVFitsOnce_RowGroupCUDA(HybSpMV *S, const HybCSR *A, PetscBool *fits)
{
  RowGroup *rg;

  PetscFunctionBegin;
  PetscCall(RowGroupChoose(S, A, &rg));
  rg->chosen = PETSC_TRUE;
  *fits      = rg->way == ROWGROUP_BINNED ? PETSC_FALSE : PETSC_TRUE;
  if (!*fits) {
    S->data = NULL;
    PetscCall(HybArenaFree(&S->keep, &rg));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the table of the pieces of long rows, the first of the list */
static PetscErrorCode RowGroupCut(HybSpMV *S, RowGroup *rg)
{
  const HybExec *exec = &S->exec;
  const PetscInt n    = (PetscInt)rg->look.rows[0];
  PetscInt      *row, *start, *length;
  RowGroupPiece *piece;
  PetscCount     pieces = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, n, sizeof(*row), &row));
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, n, sizeof(*start), &start));
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, n, sizeof(*length), &length));
  PetscCall(exec->backend->copy(exec, row, rg->list, (size_t)n * sizeof(*row), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->copy(exec, start, rg->start, (size_t)n * sizeof(*start), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->copy(exec, length, rg->length, (size_t)n * sizeof(*length), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  for (PetscInt k = 0; k < n; k++) pieces += HybBlocks(length[k], ROWGROUP_PIECE);
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, pieces, sizeof(*piece), &piece));
  pieces = 0;
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt first = (PetscInt)pieces, many = (PetscInt)HybBlocks(length[k], ROWGROUP_PIECE), end = start[k] + length[k];

    for (PetscInt p = 0; p < many; p++) {
      piece[pieces].row   = row[k];
      piece[pieces].from  = start[k] + p * ROWGROUP_PIECE;
      piece[pieces].to    = p + 1 < many ? start[k] + (p + 1) * ROWGROUP_PIECE : end;
      piece[pieces].first = first;
      piece[pieces++].n   = many;
    }
  }
  rg->parts.end[0] = pieces;
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), pieces, sizeof(*rg->piece), &rg->piece));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), pieces, sizeof(*rg->sum), &rg->sum));
  PetscCall(HybArenaCalloc(&S->keep, HYB_WORK(exec), pieces, sizeof(*rg->arrived), &rg->arrived));
  PetscCall(exec->backend->copy(exec, rg->piece, piece, (size_t)pieces * sizeof(*piece), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowGroupSort(HybSpMV *S, const HybCSR *A, RowGroup *rg)
{
  const HybExec *exec   = &S->exec;
  RowGroupParts *parts  = &rg->parts;
  PetscInt       listed = A->m;
  PetscInt      *key, *sorted, *rows;

  PetscFunctionBegin;
  parts->inorder = (PetscBool)(2 * rg->look.rows[ROWGROUP_BINS - 1] > A->m);
  if (parts->inorder) listed -= (PetscInt)rg->look.rows[ROWGROUP_BINS - 1];
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), listed, sizeof(*rg->list), &rg->list));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), listed, sizeof(*rg->start), &rg->start));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), listed, sizeof(*rg->length), &rg->length));
  if (listed) {
    PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), 3 * (PetscCount)A->m, sizeof(*key), &key));
    sorted = key + A->m;
    rows   = sorted + A->m;
    HYB_LAUNCH(RowGroupKeys, HybBlocks(A->m, ROWGROUP_THREADS), ROWGROUP_THREADS, 0, exec->stream, A->m, A->i, key);
    PetscCall(HybSortPairsInt(exec, &S->work, A->m, key, sorted, NULL, rows, HybBits(ROWGROUP_BINS)));
    HYB_LAUNCH(RowGroupFill, HybBlocks(listed, ROWGROUP_THREADS), ROWGROUP_THREADS, 0, exec->stream, listed, A->i, rows, rg->list, rg->start, rg->length);
    PetscCall(HybArenaFree(&S->work, &key));
  }
  if (rg->look.rows[0]) PetscCall(RowGroupCut(S, rg));
  parts->rows[0] = (PetscInt)rg->look.rows[0];
  for (int b = 1, width = ROWGROUP_THREADS; b < ROWGROUP_BINS; b++) {
    const PetscCount rows_ = b == ROWGROUP_BINS - 1 && parts->inorder ? A->m : rg->look.rows[b];

    parts->rows[b]  = (PetscInt)rows_;
    parts->first[b] = parts->first[b - 1] + (PetscInt)rg->look.rows[b - 1];
    parts->end[b]   = parts->end[b - 1] + HybBlocks(rows_ * width, ROWGROUP_THREADS);
    width           = b == 1 ? HYB_WARP : width / 2;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class J>
static __global__ __launch_bounds__(ROWGROUP_THREADS) void RowGroupNarrow(PetscCount n, const PetscInt *__restrict__ j, J *__restrict__ column)
{
  const PetscCount k = (PetscCount)blockIdx.x * ROWGROUP_THREADS + threadIdx.x;
  if (k < n) column[k] = (J)HybLoadStream(j + k);
}

static size_t RowGroupColumnBytes(const RowGroup *rg)
{
  return rg->distance ? sizeof(*rg->distance) : rg->column ? rg->bytes
                                                           : sizeof(PetscInt);
}

/* are fewer bits for columns wanted? */
static bool RowGroupNear(const HybSpMV *S)
{
  const PetscInt asked = HybDeviceTuning()->rowgroup_near;

  return asked >= 0 ? asked == 1 : !S->once;
}

/* call(a column of the type that has so many bytes) */
template <class F>
static PetscErrorCode RowGroupColumnType(size_t bytes, F call)
{
  if (bytes == sizeof(unsigned short)) return call((unsigned short)0);
  if constexpr (sizeof(PetscInt) > sizeof(unsigned)) {
    if (bytes == sizeof(unsigned)) return call((unsigned)0);
  }
  return call((PetscInt)0);
}

/* the bytes that a column needs */
static size_t RowGroupNeeds(const HybCSR *A, const RowGroup *rg)
{
  if (rg->way != ROWGROUP_STREAM && A->n <= USHRT_MAX + 1) return sizeof(unsigned short);
  return (PetscCount)A->n <= (PetscCount)UINT_MAX ? sizeof(unsigned) : sizeof(PetscInt);
}

/* the columns in fewer bits, where that can be and saves anything */
static PetscErrorCode RowGroupColumns(HybSpMV *S, const HybCSR *A, RowGroup *rg)
{
  const HybExec  *exec  = &S->exec;
  const size_t    bytes = RowGroupNeeds(A, rg);
  HybMemoryReport report;

  PetscFunctionBegin;
  if (bytes >= sizeof(PetscInt) || !RowGroupNear(S) || A->nnz < ROWGROUP_NARROW_FROM) PetscFunctionReturn(PETSC_SUCCESS);
  if ((size_t)A->nnz * bytes > ROWGROUP_NARROW_SURE) {
    PetscCall(exec->backend->memory(&report));
    if ((size_t)A->nnz * bytes > report.total_bytes / ROWGROUP_NARROW_SHARE) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), A->nnz, bytes, &rg->column));
  rg->bytes = bytes;
  PetscCall(RowGroupColumnType(bytes, [&](auto c) {
    using J = decltype(c);

    HYB_LAUNCH((RowGroupNarrow<J>), HybBlocks(A->nnz, ROWGROUP_THREADS), ROWGROUP_THREADS, 0, exec->stream, A->nnz, A->j, (J *)rg->column);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* launch(j), of the columns in as many bits as they have there */
template <class F>
static PetscErrorCode RowGroupWithColumns(const RowGroup *rg, const HybCSR *A, F launch)
{
  return RowGroupColumnType(rg->column ? rg->bytes : sizeof(PetscInt), [&](auto c) { return launch((const decltype(c) *)(rg->column ? rg->column : A->j)); });
}

static PetscErrorCode RowGroupStream(HybSpMV *S, const HybCSR *A, RowGroup *rg)
{
  const HybExec *exec = &S->exec;
  const PetscInt run = A->nnz > (PetscCount)ROWGROUP_STREAM_RUNS * A->m ? RowStreamRun(A) : 1, asked = HybDeviceTuning()->rowgroup_near;

  PetscFunctionBegin;
  if (RowGroupNear(S)) {
    PetscCall(RowStreamPlan(exec, &S->work, A, rg->look.longest, 1, 1, sizeof(unsigned short), 0, run, RowStreamHeld<RowStreamColumns<unsigned short>>(), 0, &rg->layout));
    PetscCall(RowStreamNear(exec, &S->keep, &S->work, &rg->layout, A, 1, A->nnz, A->j, &rg->base, &rg->distance));
    /* long rows of far columns: with four bytes more an entry the stream only waits for x */
    if (!rg->distance && asked < 0 && HybDeviceTuning()->rowgroup_way < 0 && A->nnz / A->m > ROWGROUP_FAR) {
      rg->way = ROWGROUP_DIRECT;
      if (!HybDeviceTuning()->rowgroup_batch) rg->batch = 8;
      PetscCall(RowGroupColumns(S, A, rg));
      PetscCall(HybCountersSet(&S->counters, "lanes a row", rg->width));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  if (!rg->distance) {
    PetscCall(RowGroupColumns(S, A, rg));
    PetscCall(RowStreamPlan(exec, S->once ? NULL : &S->work, A, rg->look.longest, 1, 1, RowGroupColumnBytes(rg), 0, run, RowStreamHeld<RowStreamColumns<PetscInt>>(), 0, &rg->layout));
  }
  PetscCall(HybCountersSet(&S->counters, "lanes a row", rg->layout.lanes));
  PetscCall(HybCountersSet(&S->counters, "rows a tile", rg->layout.rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_RowGroupCUDA(HybSpMV *S, const HybCSR *A)
{
  RowGroup *rg = (RowGroup *)S->data;

  PetscFunctionBegin;
  if (!rg || !rg->chosen) PetscCall(RowGroupChoose(S, A, &rg));
  rg->chosen = PETSC_TRUE;
  switch (rg->way) {
  case ROWGROUP_STREAM:
    PetscCall(RowGroupStream(S, A, rg));
    break;
  case ROWGROUP_DIRECT:
    PetscCall(RowGroupColumns(S, A, rg));
    PetscCall(HybCountersSet(&S->counters, "lanes a row", rg->width));
    break;
  default:
    PetscCall(RowGroupColumns(S, A, rg));
    PetscCall(RowGroupSort(S, A, rg));
    PetscCall(HybCountersSet(&S->counters, "binned rows", A->m));
    PetscCall(HybCountersSet(&S->counters, "pieces of long rows", rg->parts.end[0]));
  }
  PetscCall(HybCountersSet(&S->counters, "bytes a column", (PetscCount)RowGroupColumnBytes(rg)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

using RowGroupBatches = HybCases<4, 8>;

/* do the copy engine's pieces begin where it can read? */
static bool RowGroupStreams(const RowGroup *rg, const HybCSR *A)
{
  return rg->way == ROWGROUP_STREAM && RowStreamAligned(A->a) && (rg->distance || rg->column || RowStreamAligned(A->j));
}

static PetscErrorCode RowGroupLaunch(HybSpMV *S, const HybCSR *A, const HybScalar *x, const RowEnding &end)
{
  const RowGroup *rg = (const RowGroup *)S->data;

  PetscFunctionBegin;
  if (rg->distance && RowGroupStreams(rg, A)) {
    const RowStreamColumns<unsigned short> columns = {rg->distance, rg->base};
    PetscCall(RowStreamApply(&S->exec, &rg->layout, A, A->nnz, columns, x, end));
  } else if (RowGroupStreams(rg, A)) {
    PetscCall(RowGroupWithColumns(rg, A, [&](auto j) {
      const RowStreamColumns<std::remove_const_t<std::remove_pointer_t<decltype(j)>>> columns = {j, NULL};

      return RowStreamApply(&S->exec, &rg->layout, A, A->nnz, columns, x, end);
    }));
  } else if (rg->way == ROWGROUP_BINNED) {
    PetscCall(HybDispatch(rg->batch, RowGroupBatches(), end.mode == ROW_STEP, HybFlags(), [&](auto U, auto STEP) {
      return RowGroupWithColumns(rg, A, [&](auto j) {
        using J = std::remove_const_t<std::remove_pointer_t<decltype(j)>>;

        HYB_LAUNCH_CHAINED(A->nnz, (RowGroupBinned<U, STEP, J>), rg->parts.end[ROWGROUP_BINS - 1], ROWGROUP_THREADS, 0, S->exec.stream, rg->parts,
                           end.mode, end.step, A->m, A->i, j, A->a, x, rg->list, rg->start, rg->length, rg->piece, rg->sum,
                           rg->arrived, end.y, end.z);
        return PETSC_SUCCESS;
      });
    }));
  } else {
    PetscCall(HybDispatch(rg->width, RowWidths(), rg->batch, RowGroupBatches(), [&](auto W, auto U) {
      return HybDispatch(end.mode == ROW_STEP, HybFlags(), [&](auto STEP) {
        return RowGroupWithColumns(rg, A, [&](auto j) {
          using J = std::remove_const_t<std::remove_pointer_t<decltype(j)>>;

          HYB_LAUNCH_CHAINED(A->m, (RowGroupRows<W, U, STEP, J>), HybBlocks((PetscCount)A->m * W, ROWGROUP_THREADS), ROWGROUP_THREADS, 0,
                             S->exec.stream, end.mode, end.step, A->m, A->i, j, A->a, x, end.y, end.z);
          return PETSC_SUCCESS;
        });
      });
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_RowGroupCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(RowGroupLaunch(S, A, x, RowEndingWithFirst(S, mode, y, z)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVStep_RowGroupCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCall(RowGroupLaunch(S, A, x, RowEndingOfStep(x, step)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVOrderUp_RowGroupCUDA(const HybSpMV *S, const HybCSR *A, HybSpMV *ordered, PetscBool *fits)
{
  const RowGroup *rg     = (const RowGroup *)S->data;
  const bool      stream = RowGroupStreams(rg, A);

  PetscFunctionBegin;
  /* of interpolations and restrictions slices are slower: short rows, and far columns */
  if (rg->way == ROWGROUP_BINNED || A->m != A->n || A->nnz < HybDeviceTuning()->ordered_fewest) PetscFunctionReturn(PETSC_SUCCESS);
  /* as many lanes, so that the bits are the same */
  PetscCall(HybSellSetUp(ordered, A, stream ? rg->layout.lanes : rg->width, stream ? &rg->layout : NULL, RowGroupColumnBytes(rg), fits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVOrder_RowGroupCUDA(const HybSpMV *, const HybCSR *A, HybSpMV *ordered)
{
  PetscFunctionBegin;
  PetscCall(HybSellFill(ordered, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool HybSpMVBegins_RowGroupCUDA(const HybSpMV *S)
{
  return (PetscBool)(((const RowGroup *)S->data)->way == ROWGROUP_DIRECT);
}

static int HybSpMVLanes_RowGroupCUDA(const HybSpMV *S)
{
  const RowGroup *rg = (const RowGroup *)S->data;

  return rg->way == ROWGROUP_DIRECT ? rg->width : 0;
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HYB_PRECISION(HybSpMV_RowGroupCUDA);
HYB_EXTERN_C_END
const HybSpMVMethod HYB_PRECISION(HybSpMV_RowGroupCUDA) = {
  .name     = "rowgroup",
  .fits     = HybSpMVFits_RowGroupCUDA,
  .setup    = HybSpMVSetUp_RowGroupCUDA,
  .apply    = HybSpMVApply_RowGroupCUDA,
  .step     = HybSpMVStep_RowGroupCUDA,
  .orderup  = HybSpMVOrderUp_RowGroupCUDA,
  .order    = HybSpMVOrder_RowGroupCUDA,
  .begins   = HybSpMVBegins_RowGroupCUDA,
  .lanes    = HybSpMVLanes_RowGroupCUDA,
  .fitsonce = HybSpMVFitsOnce_RowGroupCUDA,
};
