/*
  SpMV by a list of the rows that have entries, for matrices most of whose rows have none: the off-diagonal block of a
  parallel matrix is the one that matters, where the rows next to other processes' are few among millions.

  Every other method passes over all rows: row offsets, and in y + A x the result twice. Here the rows with entries are
  listed once, with their offsets, and only these rows of the result are touched; the others are zero, or what y has
  there.

    flag of row r: it has entries; list and start from the flags' running sum
    sub-warp k: sum of row list[k], lanes along the row, butterfly; z[list[k]] = sum, y + sum or y - sum

  "auto" asks it of matrices with fewer nonzeros than half their rows, and takes it where no more than an eighth of the
  rows have entries and none is long. A row's order of addition depends on the plan alone. Plan: two integers for each
  row that has entries. Bytes: 12 a nonzero, 8 and the result's for each row that has entries; for A x, or where y is
  another vector than the result, what setting or copying the result costs.

  Reference: compressed row storage of off-diagonal blocks, as PETSc's MPIAIJ has it on the host (Mat_CompressedRow).
*/
#include "../structure/rowops.cuh"
#include "aijhybridgpu/private/hybspmv.h"

#define ROWLIST_THREADS 128
#define ROWLIST_SPARSE  8   /* "auto": one row in so many at most has entries */
#define ROWLIST_LONGEST 512 /* "auto": a warp's work */

typedef struct {
  PetscInt  rows;
  PetscInt *list, *start, *end;
  int       width;
} RowList;

static __global__ __launch_bounds__(ROWLIST_THREADS) void RowListFlags(PetscInt m, const PetscInt *__restrict__ i, PetscInt *__restrict__ flag, PetscInt *__restrict__ length)
{
  const PetscCount r = (PetscCount)blockIdx.x * ROWLIST_THREADS + threadIdx.x;
  if (r < m) {
    length[r] = i[r + 1] - i[r];
    flag[r]   = length[r] > 0;
  }
}

static __global__ __launch_bounds__(ROWLIST_THREADS) void RowListFill(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ place, PetscInt *__restrict__ list, PetscInt *__restrict__ start, PetscInt *__restrict__ end)
{
  const PetscCount r = (PetscCount)blockIdx.x * ROWLIST_THREADS + threadIdx.x;
  if (r < m && place[r + 1] > place[r]) {
    list[place[r]]  = (PetscInt)r;
    start[place[r]] = i[r];
    end[place[r]]   = i[r + 1];
  }
}

/* y may be z */
template <int W, bool AMEND>
static __global__ __launch_bounds__(ROWLIST_THREADS) void RowListApply(PetscInt rows, const PetscInt *__restrict__ list, const PetscInt *__restrict__ start, const PetscInt *__restrict__ end, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *__restrict__ x, int mode, RowStep step, const HybScalar *y, HybScalar *z)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(k, rows, W)
  {
    const PetscInt from = k < rows ? start[k] : 0, to = k < rows ? end[k] : 0;
    HybScalar      sum(0);

    for (PetscInt e = from + lane; e < to; e += W) sum += HybMul(HybLoadStream(a + e), HybLoadReadOnly(x + HybLoadStream(j + e)));
    sum = HybSubwarpSum<W>(sum);
    if (k < rows && lane == 0) {
      const PetscInt r = list[k];
      if (AMEND)
        RowAmend(step, sum, z, r);
      else
        RowEnd(mode, sum, y, z, r);
    }
  }
}

/* the rows that have entries; S->data stays NULL where "auto" shall take another method */
static PetscErrorCode RowListCreate(HybSpMV *S, const HybCSR *A, PetscBool choose)
{
  const HybExec *exec = &S->exec;
  RowList       *l;
  PetscInt      *place, *length;
  PetscCount     rows = 0, longest = 0;

  PetscFunctionBegin;
  S->data = NULL;
  if (choose && (A->m < ROWLIST_SPARSE || A->nnz >= A->m / 2)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), (PetscCount)A->m + 1, sizeof(PetscInt), &place));
  PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), A->m, sizeof(PetscInt), &length));
  if (A->m) {
    HYB_LAUNCH(RowListFlags, HybBlocks(A->m, ROWLIST_THREADS), ROWLIST_THREADS, 0, exec->stream, A->m, A->i, place, length);
    PetscCall(HybReduceMax(exec, &S->work, A->m, length, &longest));
    PetscCall(HybScanCounts(exec, &S->work, A->m, place, place, NULL, &rows));
  }
  if (!choose || (rows <= A->m / ROWLIST_SPARSE && longest <= ROWLIST_LONGEST)) {
    PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*l), &l));
    memset(l, 0, sizeof(*l));
    l->rows  = (PetscInt)rows;
    l->width = RowWidth(A->nnz, rows, 1);
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), rows, sizeof(PetscInt), &l->list));
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), rows, sizeof(PetscInt), &l->start));
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), rows, sizeof(PetscInt), &l->end));
    if (rows) HYB_LAUNCH(RowListFill, HybBlocks(A->m, ROWLIST_THREADS), ROWLIST_THREADS, 0, exec->stream, A->m, A->i, place, l->list, l->start, l->end);
    PetscCall(HybCountersSet(&S->counters, "rows with entries", rows));
    S->data = l;
  }
  PetscCall(HybArenaFree(&S->work, &length, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVFits_RowListCUDA(HybSpMV *S, const HybCSR *A, PetscBool *fits)
{
  PetscFunctionBegin;
  PetscCall(RowListCreate(S, A, PETSC_TRUE));
  *fits = S->data ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_RowListCUDA(HybSpMV *S, const HybCSR *A)
{
  PetscFunctionBegin;
  if (!S->data) PetscCall(RowListCreate(S, A, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_RowListCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const HybExec *exec = &S->exec;
  const RowList *l    = (const RowList *)S->data;

  PetscFunctionBegin;
  if (mode == HYB_SPMV_SET)
    PetscCall(exec->backend->zero(exec, z, sizeof(HybScalar) * (size_t)A->m));
  else if (y != z)
    PetscCall(exec->backend->copy(exec, z, y, sizeof(HybScalar) * (size_t)A->m, HYB_COPY_DEVICE_TO_DEVICE));
  if (l->rows) {
    PetscCall(HybDispatch(l->width, RowWidths(), [&](auto W) {
      HYB_LAUNCH((RowListApply<W, false>), HybBlocks((PetscCount)l->rows * W, ROWLIST_THREADS), ROWLIST_THREADS, 0,
                 exec->stream, l->rows, l->list, l->start, l->end, A->j, A->a, x, (int)mode, RowStep{}, y, z);
      return PETSC_SUCCESS;
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVAmend_RowListCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, const HybSpMVStep *s)
{
  const HybExec *exec = &S->exec;
  const RowList *l    = (const RowList *)S->data;
  const RowStep  step = {nullptr, s->dinv, nullptr, s->c};

  PetscFunctionBegin;
  if (!l->rows) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybDispatch(l->width, RowWidths(), [&](auto W) {
    HYB_LAUNCH((RowListApply<W, true>), HybBlocks((PetscCount)l->rows * W, ROWLIST_THREADS), ROWLIST_THREADS, 0,
               exec->stream, l->rows, l->list, l->start, l->end, A->j, A->a, x, 0, step, nullptr, s->z);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int HybSpMVLanes_RowListCUDA(const HybSpMV *S)
{
  return ((const RowList *)S->data)->width;
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HybSpMV_RowListCUDA;
HYB_EXTERN_C_END
const HybSpMVMethod HybSpMV_RowListCUDA = {
  .name  = "rowlist",
  .fits  = HybSpMVFits_RowListCUDA,
  .setup = HybSpMVSetUp_RowListCUDA,
  .apply = HybSpMVApply_RowListCUDA,
  .amend = HybSpMVAmend_RowListCUDA,
  .lanes = HybSpMVLanes_RowListCUDA,
};
