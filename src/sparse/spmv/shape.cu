/*
  SpMV by row shapes, for matrices from structured grids: column indices are not read.

  The rows of a structured matrix have a few dozen shapes, the columns relative to the row number
  (structure/rowshape.cuh finds them and proves each row's). With a row's class (2 bytes) the columns are known from a
  table in shared memory, so a nonzero costs its 8 bytes of value alone, where CSR takes 12. Values stay where CSR has
  them and stream through shared memory (rowstream.cuh); a thread sums its row with its class's offsets: neighbouring
  rows of one class read neighbouring entries of x.

    sum = sum over k of value[start + k] * x[r + offset[class(r)][k]]

  Tiles are taken in runs (rowstream.cuh) where that is good for x and rows are of about one length, so that the runs
  are alike. What a thread has under way of x, 5, 7, 9 or 14 loads, is chosen by the longest row, so that rows are one
  batch, or two of 27 entries; of a whole batch no entry is asked whether it is there. Of complex numbers it is 5 or 7,
  since each takes the registers of two.

  A row without a class (a signature that met another's) reads its columns as any CSR row. Declined are matrices with
  more than 1024 classes, with fewer than 32 rows to a class in the mean, or where the classes' offsets do not fit a
  table of 8192 entries, 32 KiB. So are matrices of 2^31 rows or columns: offsets have 32 bits. "auto" declines rows too
  long for tiles as well, of 450 entries and more in the mean.

  Plan: 2 bytes a row and the table; setting it up reads the pattern twice. Bytes of an application: 8 a nonzero
  (complex: 16), 6 a row, and x and y.
*/
#include "rowstream.cuh"
#include "../structure/rowshape.cuh"
#include "ordered.cuh"
#include "ending.cuh"

#define SHAPE_MAX_CLASSES 1024
#define SHAPE_MAX_TABLE   8192

/* BATCH: loads of x in flight for a thread */
template <int BATCH, int NBLOCKS>
struct RowStreamShape {
  using Index                   = PetscInt;
  static constexpr int  BLOCKS  = NBLOCKS;
  static constexpr int  ROWS    = 1;
  static constexpr bool INDEXED = false;
  static constexpr bool AHEAD   = true;
  const PetscInt       *index; /* unused: no stream of indices */
  const HybRowClass    *rowclass;
  const PetscInt       *offsetptr, *offset;
  int                   nclasses, noffsets;
  struct Row {
    unsigned c;
  };
  __device__ __forceinline__ PetscCount IndexOf(PetscCount) const
  {
    return 0;
  }
  /* table: nclasses+1 places, then the offsets */
  __device__ __forceinline__ void Prepare(int *table) const
  {
    for (int k = (int)threadIdx.x; k <= nclasses; k += (int)blockDim.x) table[k] = (int)offsetptr[k] + nclasses + 1;
    for (int k = (int)threadIdx.x; k < noffsets; k += (int)blockDim.x) table[nclasses + 1 + k] = (int)offset[k];
  }
  __device__ __forceinline__ Row Load(PetscCount r, bool valid, PetscCount) const
  {
    Row row;
    row.c = valid ? rowclass[r] : 0;
    return row;
  }
  template <int G>
  __device__ __forceinline__ void Sum(int lane, PetscCount r, PetscInt start, int len, const HybScalar *value, const PetscInt *, const int *table, const Row &row, const HybScalar *x, const PetscInt *__restrict__ j, HybScalar sum[]) const
  {
    if (row.c != HYB_ROWSHAPE_NONE) {
      const int       *off = table + table[row.c];
      const HybScalar *xr = HybAddressFrom(x + r), *v0 = value + start;
      int              k = lane;
      /* rows of few shapes have whole batches mostly: no entry of those is asked for */
      for (; k + (BATCH - 1) * G < len; k += BATCH * G) {
        HybScalar xv[BATCH], v[BATCH];
#pragma unroll
        for (int u = 0; u < BATCH; u++) {
          xv[u] = HybLoadVector(xr + off[k + u * G]);
          v[u]  = v0[k + u * G];
        }
#pragma unroll
        for (int u = 0; u < BATCH; u++) sum[0] += v[u] * xv[u];
      }
      if (k < len) {
        HybScalar xv[BATCH], v[BATCH];
#pragma unroll
        for (int u = 0; u < BATCH; u++) {
          const bool in = k + u * G < len;
          xv[u]         = in ? HybLoadVector(xr + off[k + u * G]) : HybScalar(0);
          v[u]          = in ? v0[k + u * G] : HybScalar(0);
        }
#pragma unroll
        for (int u = 0; u < BATCH; u++)
          if (k + u * G < len) sum[0] += v[u] * xv[u];
      }
    } else {
      for (int k = lane; k < len; k += G) sum[0] += value[start + k] * HybLoadVector(x + j[start + k]);
    }
  }
};

typedef struct {
  HybRowShapes    shapes;
  RowStreamLayout layout;
  PetscInt        batch;
} Shape;

/* the kernel's launch bound: blocks of 256 threads on a multiprocessor with so many loads of x under way */
static constexpr int ShapeBlocks(PetscInt batch)
{
  return RowWide ? (batch <= 5 ? 3 : 2) : batch <= 7  ? 5
                                        : batch == 14 ? 3
                                                      : 4;
}

/* the tables of a matrix that another method takes; all of them are there or none */
static PetscErrorCode ShapeFree(HybSpMV *S, Shape **sh)
{
  PetscFunctionBegin;
  if ((*sh)->shapes.found) {
    PetscCall(HybArenaFree(&S->keep, &(*sh)->shapes.rowclass, &(*sh)->shapes.representative));
    PetscCall(HybArenaFree(&S->keep, &(*sh)->shapes.offsetptr, &(*sh)->shapes.offset, &(*sh)->shapes.unclassed));
  }
  PetscCall(HybArenaFree(&S->keep, sh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShapeFind(HybSpMV *S, const HybCSR *A, Shape **found)
{
  const PetscInt maxclasses = PetscMin(SHAPE_MAX_CLASSES, A->m / 32);
  Shape         *sh;

  PetscFunctionBegin;
  *found = NULL;
  if (PetscMax(A->m, A->n) > INT_MAX) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*sh), &sh));
  PetscCall(HybRowShapesFind(&S->exec, &S->keep, &S->work, A, maxclasses, &sh->shapes));
  if (sh->shapes.found && sh->shapes.noffsets + sh->shapes.nclasses + 1 <= SHAPE_MAX_TABLE) {
    sh->batch = sh->shapes.maxlength <= 5 ? 5 : sh->shapes.maxlength <= 7 || RowWide ? 7
                                              : sh->shapes.maxlength <= 9            ? 9
                                              : A->nnz > 14 * (PetscCount)A->m       ? 14
                                                                                     : 8;
    PetscCall(RowStreamPlan(&S->exec, &S->work, A, sh->shapes.maxlength, 1, 0, sizeof(int), sh->shapes.nclasses + 1 + (PetscInt)sh->shapes.noffsets, 4 * A->nnz > 3 * (PetscCount)A->m * sh->shapes.maxlength ? RowStreamRun(A) : 1, 256 * ShapeBlocks(sh->batch), 0, &sh->layout));
    *found = sh;
  } else
    PetscCall(ShapeFree(S, &sh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what was found stays in S->data, for setup */
static PetscErrorCode HybSpMVFits_ShapeCUDA(HybSpMV *S, const HybCSR *A, PetscBool *fits)
{
  Shape *sh = NULL;

  PetscFunctionBegin;
  if (A->m >= 1024) PetscCall(ShapeFind(S, A, &sh));
  if (sh && !sh->layout.fits) PetscCall(ShapeFree(S, &sh));
  S->data = sh;
  *fits   = sh ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_ShapeCUDA(HybSpMV *S, const HybCSR *A)
{
  Shape *sh = (Shape *)S->data;

  PetscFunctionBegin;
  if (!sh) {
    PetscCall(ShapeFind(S, A, &sh));
    PetscCheck(sh, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpMV method shape cannot run: the rows of this matrix, %" PetscInt_FMT " x %" PetscInt_FMT ", have too many shapes, or it has 2^31 rows or columns", A->m, A->n);
    S->data = sh;
  }
  PetscCall(HybCountersSet(&S->counters, "classes", sh->shapes.nclasses));
  PetscCall(HybCountersSet(&S->counters, "rows a tile", sh->layout.rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShapeLaunch(HybSpMV *S, const HybCSR *A, const HybScalar *x, const RowEnding &end)
{
  const Shape    *sh     = (const Shape *)S->data;
  RowStreamLayout layout = sh->layout;

  PetscFunctionBegin;
  if (!RowStreamAligned(A->a)) layout.values = 0; /* no tile fits: the slow way */
  PetscCall(HybDispatch(sh->batch, HybCases<5, 7, 8, 9, 14>(), [&](auto BATCH) {
    const RowStreamShape<BATCH, ShapeBlocks(BATCH)> columns = {
      NULL, sh->shapes.rowclass, sh->shapes.offsetptr, sh->shapes.offset, (int)sh->shapes.nclasses, (int)sh->shapes.noffsets};

    return RowStreamApply(&S->exec, &layout, A, 0, columns, x, end);
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_ShapeCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(ShapeLaunch(S, A, x, RowEndingOf(mode, y, z)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVStep_ShapeCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCall(ShapeLaunch(S, A, x, RowEndingOfStep(x, step)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVOrderUp_ShapeCUDA(const HybSpMV *S, const HybCSR *A, HybSpMV *ordered, PetscBool *fits)
{
  const Shape *sh = (const Shape *)S->data;

  PetscFunctionBegin;
  /* more lanes, and tiles that are not copied, add in another order */
  if (sh->layout.lanes == 1 && RowStreamAligned(A->a) && sh->shapes.maxlength * (PetscCount)sh->layout.rows + RowStreamUnit<HybScalar>() <= sh->layout.values) PetscCall(HybDiaSetUp(ordered, &sh->shapes, A, fits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVOrder_ShapeCUDA(const HybSpMV *S, const HybCSR *A, HybSpMV *ordered)
{
  PetscFunctionBegin;
  PetscCall(HybDiaFill(ordered, &((const Shape *)S->data)->shapes, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_EXTERN_C_BEGIN
extern const HybSpMVMethod HYB_PRECISION(HybSpMV_ShapeCUDA);
HYB_EXTERN_C_END
const HybSpMVMethod HYB_PRECISION(HybSpMV_ShapeCUDA) = {
  .name    = "shape",
  .fits    = HybSpMVFits_ShapeCUDA,
  .setup   = HybSpMVSetUp_ShapeCUDA,
  .apply   = HybSpMVApply_ShapeCUDA,
  .step    = HybSpMVStep_ShapeCUDA,
  .orderup = HybSpMVOrderUp_ShapeCUDA,
  .order   = HybSpMVOrder_ShapeCUDA,
};
