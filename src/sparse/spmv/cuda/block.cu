/*
  SpMV by blocks, for matrices of several unknowns to a point: one column index is read for each bs x bs block.

  The pattern must consist of whole blocks: bs rows with the same columns, in groups of bs that begin at multiples of bs. Every row is compared, exactly, with the
  first of its block row, for the block size that the matrix has, or else for 2, 3, 4, 5, 6 and 8 at once, of which the largest is taken. Values stay where CSR has
  them; the blocks' columns, nnz/bs^2 of them, are extracted once, and stream through shared memory with the values (csr/rowstream.cuh).

    sum of row r = sum over blocks q of its block row, c < bs: value[start + q bs + c] * x[column[q] bs + c]

  One to sixteen threads sum the rows of a block row together, so each entry of x is fetched once for bs products.

  "auto" takes this method for every matrix of such blocks, one from a structured grid too: shape would read less, but fetch x for every product.

  Plan: 4/bs^2 bytes a nonzero. Bytes of an application: 8 + 4/bs^2 a nonzero, 4 a row, and x and y.
*/
#include "../../csr/rowstream.cuh"
#include "aijhybridgpu/private/hybspmv.h"

template <int BS>
struct RowStreamBlock {
  using Index                   = PetscInt;
  static constexpr int  BLOCKS  = 3;
  static constexpr int  ROWS    = BS;
  static constexpr bool INDEXED = true;
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
  RowStreamLayout layout;
} Block;

#define BLOCK_SIZES(CALL) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6) CALL(8)
#define BLOCK_THREADS     256

/* sets bit bs of *wrong where row r is not part of whole blocks of bs */
template <int W>
static __global__ __launch_bounds__(BLOCK_THREADS) void BlockCheck(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int candidates, int *wrong)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP (r, m, W) {
    int bad = 0;
    if (r < m) {
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
    if ((*wrong & candidates) == candidates) break; /* a stale look costs a turn */
  }
}

static __global__ void BlockColumns(PetscInt bs, PetscCount nblocks, PetscInt mb, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *__restrict__ column)
{
  const PetscCount B = ((PetscCount)blockIdx.x * blockDim.x + threadIdx.x) / HYB_WARP;
  if (B < mb) {
    const PetscInt start = i[B * bs], nb = (i[B * bs + 1] - start) / bs, to = start / (bs * bs);
    for (PetscInt q = HybLane(); q < nb; q += HYB_WARP) column[to + q] = j[start + q * bs] / bs;
  }
}

static PetscErrorCode BlockFind(HybSpMV *S, const HybCSR *A, PetscInt *bs)
{
  const HybExec *exec = &S->exec;
  const int      w    = RowWidth(A->nnz, A->m, 1);
  int            candidates = 0, *wrong, host = 0;

  PetscFunctionBegin;
  *bs = 1;
  if (A->nnz == 0) PetscFunctionReturn(PETSC_SUCCESS);
#define CALL(BS) \
  if ((S->bs == 1 || S->bs == BS) && A->m % BS == 0 && A->n % BS == 0 && A->nnz % (BS * BS) == 0) candidates |= 1 << BS;
  BLOCK_SIZES(CALL)
#undef CALL
  if (!candidates) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaCalloc(&S->work, HYB_WORK(exec), 1, sizeof(*wrong), &wrong));
#define CALL(W) HYB_LAUNCH((BlockCheck<W>), PetscMin(HybBlocks((PetscCount)A->m * W, BLOCK_THREADS), (PetscCount)4096), BLOCK_THREADS, 0, exec->stream, A->m, A->i, A->j, candidates, wrong)
  ROW_BY_WIDTH(w, CALL);
#undef CALL
  PetscCall(exec->backend->copy(exec, &host, wrong, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  PetscCall(HybArenaFree(&S->work, &wrong));
#define CALL(BS) \
  if (candidates & ~host & (1 << BS)) *bs = BS;
  BLOCK_SIZES(CALL)
#undef CALL
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockCreate(HybSpMV *S, const HybCSR *A)
{
  Block   *b;
  PetscInt bs;

  PetscFunctionBegin;
  S->data = NULL;
  PetscCall(BlockFind(S, A, &bs));
  if (bs == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*b), &b));
  memset(b, 0, sizeof(*b));
  b->bs = bs;
  PetscCall(RowStreamPlan(&S->exec, &S->work, A, bs, bs * bs, sizeof(PetscInt), 0, &b->layout));
  if (b->layout.rows == 0) PetscCall(HybArenaFree(&S->keep, &b));
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
  const HybExec *exec = &S->exec;
  Block         *b;

  PetscFunctionBegin;
  if (!S->data) PetscCall(BlockCreate(S, A));
  b = (Block *)S->data;
  PetscCheck(b, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method block cannot run: the pattern of this matrix, %" PetscInt_FMT " x %" PetscInt_FMT ", does not consist of whole blocks of size %s", A->m, A->n, S->bs > 1 ? "given" : "2, 3, 4, 5, 6 or 8");
  b->nblocks = A->nnz / (b->bs * b->bs);
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), b->nblocks, sizeof(*b->column), &b->column));
  HYB_LAUNCH(BlockColumns, HybBlocks((PetscCount)(A->m / b->bs) * HYB_WARP, BLOCK_THREADS), BLOCK_THREADS, 0, exec->stream, b->bs, b->nblocks, A->m / b->bs, A->i, A->j, b->column);
  PetscCall(HybCountersSet(&S->counters, "block size", b->bs));
  PetscCall(HybCountersSet(&S->counters, "blocks", b->nblocks));
  PetscCall(HybCountersSet(&S->counters, "rows a tile", b->layout.rows));
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
    const RowStreamBlock<BS> columns = {b->column}; \
    PetscCall(RowStreamApply(&S->exec, &layout, A, b->nblocks, columns, x, (int)mode, y, z)); \
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
const HybSpMVMethod HybSpMV_BlockCUDA = {"block", HybSpMVApplicable_BlockCUDA, HybSpMVSetUp_BlockCUDA, HybSpMVApply_BlockCUDA, NULL};
