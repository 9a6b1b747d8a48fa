/*
  SpMV by groups of lanes, in two ways.

  Where rows are of about one length, values and column indices stream through shared memory (csr/rowstream.cuh), and one thread, or two to eight where rows are
  long, sums a row from there: neighbouring rows have neighbouring columns mostly, so x is read coalesced, which it is not when the lanes go along
  a row.

  Else a sub-warp of 1, 2, ..., 32 lanes takes each row, its width chosen by the mean row length; rows far longer than the others are taken out into a bin
  of their own, where a whole block sums one row.

    for each row r (W lanes):  if length(r) > long: skip
                               sum = sum over k = lane, lane + W, ... of a[k] x[j[k]]; butterfly over the lanes; lane 0 writes
    for each long row (a block): the same with 256 lanes, warps' sums added in order

  "auto" takes this method in the first case: no row longer than four mean rows and 32. In the second one segsum balances better.

  The plan: the long rows' list, empty for most matrices. No memory otherwise. Each row is summed in an order that depends on its length and on the
  plan alone, so results repeat bit by bit. Bytes: 12 a nonzero, and what x costs.
*/
#include "../../csr/rowstream.cuh"
#include "aijhybridgpu/private/hybspmv.h"

typedef struct {
  PetscBool       stream;
  RowStreamLayout layout;
  int             width;
  PetscInt        limit; /* longer rows go to the list */
  PetscInt        nlong;
  PetscInt       *longrows;
} RowGroup;

#define ROWGROUP_THREADS 256

static __global__ void RowGroupLengths(PetscInt m, const PetscInt *__restrict__ i, PetscInt *__restrict__ length)
{
  const PetscCount r = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (r < m) length[r] = i[r + 1] - i[r];
}

static __global__ void RowGroupFlagLong(PetscInt m, const PetscInt *__restrict__ i, PetscInt limit, unsigned char *__restrict__ flags)
{
  const PetscCount r = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (r < m) flags[r] = i[r + 1] - i[r] > limit;
}

template <int W, int MODE>
static __global__ __launch_bounds__(ROWGROUP_THREADS, 5) void RowGroupRows(PetscInt m, PetscInt limit, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *__restrict__ x, const HybScalar *y, HybScalar *z)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP (r, m, W) {
    HybScalar  sum(0);
    PetscInt   start = 0, end = 0;
    const bool mine = r < m;
    if (mine) {
      start = i[r];
      end   = i[r + 1];
    }
    const bool skip = end - start > limit;
    if (!skip) {
#pragma unroll 4
      for (PetscInt k = start + lane; k < end; k += W) sum += HybLoadStream(a + k) * HybLoadReadOnly(x + HybLoadStream(j + k));
    }
    sum = HybSubwarpSum<W>(sum);
    if (lane == 0 && mine && !skip) RowStore<MODE>(sum, y, z, r);
  }
}

template <int MODE>
static __global__ __launch_bounds__(ROWGROUP_THREADS) void RowGroupLongRows(const PetscInt *__restrict__ rows, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *__restrict__ x, const HybScalar *y, HybScalar *z)
{
  HYB_SHARED(HybScalar, scratch, HYB_WARP);
  const PetscInt r = rows[blockIdx.x], end = i[r + 1];
  HybScalar      sum(0);

#pragma unroll 4
  for (PetscInt k = i[r] + (PetscInt)threadIdx.x; k < end; k += ROWGROUP_THREADS) sum += HybLoadStream(a + k) * HybLoadReadOnly(x + HybLoadStream(j + k));
  sum = HybBlockSum<ROWGROUP_THREADS>(sum, scratch);
  if (threadIdx.x == 0) RowStore<MODE>(sum, y, z, r);
}

/* are the rows of about one length? */
static PetscErrorCode RowGroupRegular(HybSpMV *S, const HybCSR *A, PetscBool *regular)
{
  const HybExec   *exec    = &S->exec;
  const PetscCount mean    = A->m > 0 ? A->nnz / A->m : 0;
  PetscCount       longest = 0;
  PetscInt        *length;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), A->m, sizeof(*length), &length));
  HYB_LAUNCH(RowGroupLengths, HybBlocks(A->m, ROWGROUP_THREADS), ROWGROUP_THREADS, 0, exec->stream, A->m, A->i, length);
  PetscCall(HybReduceMax(exec, &S->work, A->m, length, NULL, &longest));
  PetscCall(HybArenaFree(&S->work, &length));
  *regular = longest <= 4 * mean + 32 ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApplicable_RowGroupCUDA(HybSpMV *S, const HybCSR *A, PetscBool *applicable)
{
  PetscFunctionBegin;
  PetscCall(RowGroupRegular(S, A, applicable));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_RowGroupCUDA(HybSpMV *S, const HybCSR *A)
{
  const HybExec *exec = &S->exec;
  RowGroup      *rg;
  unsigned char *flags;
  PetscInt       width = 0;
  PetscCount     nlong = 0, mean = A->m > 0 ? A->nnz / A->m : 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*rg), &rg));
  memset(rg, 0, sizeof(*rg));
  S->data = rg;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_rowgroup_lanes", &width, NULL));
  if (A->m > 0 && A->nnz > 0 && !width) PetscCall(RowGroupRegular(S, A, &rg->stream));
  if (rg->stream) {
    PetscCall(RowStreamPlan(exec, &S->work, A, 1, 1, 0, &rg->layout));
    PetscCall(HybCountersSet(&S->counters, "lanes a row", rg->layout.lanes));
    PetscCall(HybCountersSet(&S->counters, "rows a tile", rg->layout.rows));
  }
  rg->width    = width ? (int)width : RowWidth(A->nnz, A->m, 1);
  rg->limit    = (PetscInt)PetscMin(PetscMax(1024, 32 * mean), (PetscCount)PETSC_MAX_INT);
  rg->nlong    = 0;
  rg->longrows = NULL;
  if (A->nnz > rg->limit) {
    PetscInt *list;
    PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), A->m, sizeof(*flags), &flags));
    PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), A->m, sizeof(*list), &list));
    HYB_LAUNCH(RowGroupFlagLong, HybBlocks(A->m, ROWGROUP_THREADS), ROWGROUP_THREADS, 0, exec->stream, A->m, A->i, rg->limit, flags);
    PetscCall(HybSelectIndices(exec, &S->work, A->m, flags, list, NULL, &nlong));
    if (nlong) {
      PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), nlong, sizeof(*list), &rg->longrows));
      PetscCall(exec->backend->copy(exec, rg->longrows, list, (size_t)nlong * sizeof(*list), HYB_COPY_DEVICE_TO_DEVICE));
    }
    PetscCall(HybArenaFree(&S->work, &flags));
    PetscCall(HybArenaFree(&S->work, &list));
  }
  rg->nlong = (PetscInt)nlong;
  if (!rg->stream) PetscCall(HybCountersSet(&S->counters, "lanes a row", rg->width));
  PetscCall(HybCountersSet(&S->counters, "long rows", nlong));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_RowGroupCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const RowGroup  *rg     = (const RowGroup *)S->data;
  const PetscCount blocks = HybBlocks((PetscCount)A->m * rg->width, ROWGROUP_THREADS);

  PetscFunctionBegin;
  if (rg->stream && RowStreamAligned(A->a) && RowStreamAligned(A->j)) {
    const RowStreamCSR columns = {A->j};
    PetscCall(RowStreamApply(&S->exec, &rg->layout, A, A->nnz, columns, x, (int)mode, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#define CALL2(W, MODE) HYB_LAUNCH((RowGroupRows<W, MODE>), blocks, ROWGROUP_THREADS, 0, S->exec.stream, A->m, rg->limit, A->i, A->j, A->a, x, y, z)
#define CALL(MODE) \
  do { \
    switch (rg->width) { \
    case 1: CALL2(1, MODE); break; \
    case 2: CALL2(2, MODE); break; \
    case 4: CALL2(4, MODE); break; \
    case 8: CALL2(8, MODE); break; \
    case 16: CALL2(16, MODE); break; \
    default: CALL2(32, MODE); break; \
    } \
    HYB_LAUNCH((RowGroupLongRows<MODE>), rg->nlong, ROWGROUP_THREADS, 0, S->exec.stream, rg->longrows, A->i, A->j, A->a, x, y, z); \
  } while (0)
  ROW_BY_MODE(mode, CALL);
#undef CALL
#undef CALL2
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HybSpMV_RowGroupCUDA;
HYB_EXTERN_C_END
const HybSpMVMethod HybSpMV_RowGroupCUDA = {"rowgroup", HybSpMVApplicable_RowGroupCUDA, HybSpMVSetUp_RowGroupCUDA, HybSpMVApply_RowGroupCUDA, NULL};
