/*
  Products by diagonals, with a copy of the values.

  Where all entries lie on few diagonals, and most rows have one on each, the values of one diagonal are stored side by
  side, with zeros where a row has none. Neighbouring threads then have neighbouring rows, and all that they read is
  coalesced: the values, which come straight from memory to registers, and x, for which all of a multiprocessor's first-
  level cache is left. Neither offsets of rows nor columns are read.

    sum of row r = sum over diagonals d, ascending: value[d][r] * x[r + offset[d]]

  The inner products that conjugate gradients ask for are left on the way: a block's sums, which are added later. A
  smoother's second step from zero makes the first one where it needs it, of the right-hand side and the diagonal: both
  come from the caches but once, and the first step need not be written and read.

  The terms are CSR's in CSR's order, and zeros, which change nothing where x is finite: so the bits are the method
  shape's where one lane takes a row, and where more do, there is no such plan. The copy has to be made again
  when values change. So this is no method that a name asks for: who applies one matrix many times between two changes
  of its values makes such a plan beside CSR's (HybSpMVOrderUp()).

  Fits: square, of less than 2^30 rows, all of them of a class (structure/rowshape.cuh), up to 32 diagonals, at most an
  eighth more places than nonzeros, and memory to spare. Memory: 8 bytes a nonzero and zero. Bytes of a product: the
  same, and x and y. Making the copy: values read and written once.

  Reference: Y. Saad, Iterative methods for sparse linear systems, 2nd ed., SIAM 2003, section 3.4.
*/
#include "../device/hybchain.cuh"
#include "ordered.cuh"
#include "sumsleft.cuh"
#include "ending.cuh"

#define DIA_MAX     32
#define DIA_THREADS SUMS_ROWS

typedef struct {
  int o[DIA_MAX];
} DiaOffsets;

typedef struct {
  int        n;      /* diagonals */
  PetscCount ld;     /* entries from one to the next */
  DiaOffsets offset; /* ascending */
  int       *place;  /* of each entry of a class: its diagonal */
  HybScalar *a;
} Dia;

/* numbers of diagonals that have a kernel of their own; 0: any */
using DiaCases = HybCases<0, 3, 5, 7, 9, 27>;
static constexpr int DiaCase(int n)
{
  return n == 3 || n == 5 || n == 7 || n == 9 || n == 27 ? n : 0;
}

/* loads under way together */
static constexpr int DiaBatch(int n)
{
  return n == 0 ? 8 : n > 9 ? 9
                            : n;
}

/* x as it is, or as a first step from zero makes it of y */
struct DiaVector {
  const HybScalar                     *x;
  __device__ __forceinline__ HybScalar operator[](int c) const
  {
    return HybLoadVector(x + c);
  }
};
struct DiaFirst {
  const HybScalar                     *y, *dinv;
  HybScalarReal                        by;
  __device__ __forceinline__ HybScalar operator[](int c) const
  {
    return by * HybMul(HybLoadVector(dinv + c), HybLoadVector(y + c));
  }
};

/* Rows of a thread, a block's threads apart, whose loads are under way together: of small numbers one row's are too few
   bytes. Sums are left by rows of a block, and there a thread has one. */
static constexpr int DiaEach(bool sums)
{
  return sums || sizeof(HybScalar) > 4 ? 1 : 2;
}

/* rows of a block, which may reach beyond the matrix, or (INSIDE) do not */
template <int N, bool INSIDE, int V, class X>
static __device__ __forceinline__ void DiaSum(int n, const DiaOffsets &d, int m, PetscCount ld, const HybScalar *__restrict__ a, const X &x, const int (&r)[V], HybScalar (&sum)[V])
{
  constexpr int B = DiaBatch(N);

#pragma unroll
  for (int w = 0; w < V; w++) sum[w] = HybScalar(0);
#pragma unroll
  for (int k0 = 0; k0 < (N ? N : n); k0 += B) {
    HybScalar v[V][B], xv[V][B];
#pragma unroll
    for (int w = 0; w < V; w++) {
#pragma unroll
      for (int u = 0; u < B; u++) {
        const bool in = N ? k0 + u < N : k0 + u < n;
        const int  c  = in ? r[w] + d.o[N || in ? k0 + u : 0] : 0;
        v[w][u]       = in ? HybLoadStream(a + (PetscCount)(k0 + u) * ld + r[w]) : HybScalar(0);
        xv[w][u]      = in && (INSIDE || (c >= 0 && c < m)) ? x[c] : HybScalar(0);
      }
    }
#pragma unroll
    for (int w = 0; w < V; w++) {
#pragma unroll
      for (int u = 0; u < B; u++)
        if (N || k0 + u < n) sum[w] += v[w][u] * xv[w][u];
    }
  }
}

/* part: not NULL where SUMS are left; FIRST: a step whose x is the first step's */
template <int N, bool STEP, bool SUMS, bool FIRST>
static __global__ __launch_bounds__(DIA_THREADS) void DiaRows(int n, DiaOffsets d, int m, PetscCount ld, const HybScalar *__restrict__ a, const HybScalar *x, RowEnding end, HybScalar *part, bool hermitian)
{
  HybChainWait();
  constexpr int    V = DiaEach(SUMS), ROWS = V * DIA_THREADS;
  const PetscCount r0     = (PetscCount)blockIdx.x * ROWS;
  const bool       inside = r0 + d.o[0] >= 0 && r0 + ROWS + d.o[n - 1] <= m && r0 + ROWS <= m;
  HybScalar        base[V], y[V], dinv[V], sum[V], z[V];
  bool             valid[V];
  int              r[V];

  /* a thread without a row forms the last one's, for nothing, but reads nothing of it that is written (w may be z) */
#pragma unroll
  for (int w = 0; w < V; w++) {
    const PetscCount at = r0 + w * DIA_THREADS + threadIdx.x;
    valid[w]            = at < m;
    r[w]                = valid[w] ? (int)at : m - 1;
    base[w] = y[w] = dinv[w] = HybScalar(0);
    if (STEP && valid[w]) {
      y[w]    = end.y[r[w]];
      dinv[w] = end.step.dinv[r[w]];
      base[w] = FIRST ? RowStepBaseOf(end.step, (HybScalarReal)end.step.c0[0] * HybMul(dinv[w], y[w]), HybScalar(0)) : RowStepBase(end.step, r[w]);
    } else if (!STEP && valid[w] && end.mode != ROW_SET)
      y[w] = end.y[r[w]];
  }
  const auto of = [&](const auto &v) {
    if (inside)
      DiaSum<N, true, V>(n, d, m, ld, a, v, r, sum);
    else
      DiaSum<N, false, V>(n, d, m, ld, a, v, r, sum);
  };
  if constexpr (FIRST)
    of(DiaFirst{end.y, end.step.dinv, (HybScalarReal)end.step.c0[0]});
  else
    of(DiaVector{x});
#pragma unroll
  for (int w = 0; w < V; w++) {
    if (STEP)
      z[w] = RowStepEnd(end.step, base[w], dinv[w], y[w], sum[w]);
    else
      z[w] = end.mode == ROW_SET ? sum[w] : end.mode == ROW_ADD ? y[w] + sum[w]
                                                                : y[w] - sum[w];
    if (valid[w]) end.z[r[w]] = z[w];
  }
  if constexpr (SUMS) {
    HybScalar own = STEP ? HybScalar(0) : HybLoadVector(x + r[0]);
    if (!valid[0]) own = y[0] = z[0] = HybScalar(0);
    if constexpr (STEP)
      SumsLeaveProducts(z[0], y[0], hermitian, part);
    else
      SumsLeaveProduct(own, z[0], hermitian, part);
  }
}

static __global__ __launch_bounds__(DIA_THREADS) void DiaCopy(int n, PetscInt m, PetscCount ld, const PetscInt *__restrict__ i, const HybScalar *__restrict__ a, const HybRowClass *__restrict__ rowclass, const PetscInt *__restrict__ offsetptr, const int *__restrict__ place, HybScalar *__restrict__ to)
{
  const PetscCount r = (PetscCount)blockIdx.x * DIA_THREADS + threadIdx.x;

  if (r >= m) return;
  const PetscInt start = i[r], len = i[r + 1] - start;
  const int     *p = place + offsetptr[rowclass[r]];
  for (int d = 0, k = 0; d < n; d++) {
    const bool there           = k < len && p[k] == d;
    to[(PetscCount)d * ld + r] = there ? a[start + k] : HybScalar(0);
    k += there;
  }
}

static PetscErrorCode DiaLaunch(HybSpMV *S, const HybCSR *A, const HybScalar *x, const RowEnding &end)
{
  const Dia *const dia  = (const Dia *)S->data;
  const bool       sums = S->left && (end.mode == ROW_STEP || end.mode == ROW_SET), first = end.mode == ROW_STEP && end.step.c0;

  PetscFunctionBegin;
  PetscCall(HybDispatch(DiaCase(dia->n), DiaCases(), end.mode == ROW_STEP, HybFlags(), [&](auto N, auto STEP) {
    return HybDispatch(sums, HybFlags(), first, HybFlags(), [&](auto SUMS, auto FIRST) {
      if constexpr (FIRST && (SUMS || !STEP))
        SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP, "A step that makes the first one leaves no sums");
      else
        HYB_LAUNCH_CHAINED(A->m, (DiaRows<N, STEP, SUMS, FIRST>), HybBlocks(A->m, DiaEach(SUMS) * DIA_THREADS), DIA_THREADS, 0, S->exec.stream, dia->n, dia->offset, (int)A->m,
                           dia->ld, dia->a, x, end, sums ? S->left->part : (HybScalar *)nullptr, sums && S->left->hermitian);
      return PETSC_SUCCESS;
    });
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_DiaCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(DiaLaunch(S, A, x, RowEndingOf(mode, y, z)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVStep_DiaCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCall(DiaLaunch(S, A, x, RowEndingOfStep(x, step)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const HybSpMVMethod HybSpMV_DiaCUDA = {
  .name       = "dia",
  .apply      = HybSpMVApply_DiaCUDA,
  .step       = HybSpMVStep_DiaCUDA,
  .leaves     = PETSC_TRUE,
  .takesfirst = PETSC_TRUE,
};

/* The diagonals that classes' entries are on, ascending, and where each entry is among them. d->n = 0: there are too
   many, or a class has a column twice or out of order. */
static void DiaFind(const HybRowShapes *shapes, const PetscInt *ptr, const PetscInt *offset, Dia *d, int *place)
{
  const PetscCount n = shapes->noffsets;
  int *const       o = d->offset.o;

  d->n = 0;
  for (PetscCount k = 0; k < n; k++) {
    int at = 0;

    while (at < d->n && o[at] < offset[k]) at++;
    if (at < d->n && o[at] == offset[k]) continue;
    if (d->n == DIA_MAX) {
      d->n = 0;
      return;
    }
    for (int q = d->n++; q > at; q--) o[q] = o[q - 1];
    o[at] = (int)offset[k];
  }
  for (PetscCount k = 0; k < n; k++)
    for (place[k] = 0; o[place[k]] != offset[k]; place[k]++) {}
  for (PetscInt c = 0; c < shapes->nclasses; c++)
    for (PetscInt k = ptr[c] + 1; k < ptr[c + 1]; k++)
      if (place[k] <= place[k - 1]) d->n = 0;
}

PetscErrorCode HybDiaSetUp(HybSpMV *S, const HybRowShapes *shapes, const HybCSR *A, PetscBool *fits)
{
  const HybExec *exec      = &S->exec;
  PetscCount     unclassed = 0;
  PetscInt      *offset, *ptr;
  int           *place;
  size_t         spare;
  Dia            d = {}, *dia;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (A->m != A->n || !A->nnz || !shapes->found || A->m > INT_MAX / 2) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, shapes->noffsets, sizeof(*offset), &offset));
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, shapes->noffsets, sizeof(*place), &place));
  PetscCall(HybArenaAlloc(&S->work, HYB_MEM_HOST, (PetscCount)shapes->nclasses + 1, sizeof(*ptr), &ptr));
  PetscCall(exec->backend->copy(exec, ptr, shapes->offsetptr, ((size_t)shapes->nclasses + 1) * sizeof(*ptr), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->copy(exec, offset, shapes->offset, (size_t)shapes->noffsets * sizeof(*offset), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->copy(exec, &unclassed, shapes->unclassed, sizeof(unclassed), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  if (unclassed) PetscFunctionReturn(PETSC_SUCCESS);
  DiaFind(shapes, ptr, offset, &d, place);
  d.ld = (PetscCount)HybBlocks(A->m, HYB_WARP) * HYB_WARP;
  if (!d.n || (PetscCount)d.n * A->m > A->nnz + A->nnz / 8) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMemorySpare(exec, &spare));
  if ((size_t)d.n * (size_t)d.ld * sizeof(HybScalar) > spare) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), d.ld * d.n, sizeof(*d.a), &d.a));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), shapes->noffsets, sizeof(*d.place), &d.place));
  PetscCall(exec->backend->copy(exec, d.place, place, (size_t)shapes->noffsets * sizeof(*place), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(exec->backend->sync(exec)); /* the work arena's */
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*dia), &dia));
  *dia      = d;
  S->data   = dia;
  S->method = &HybSpMV_DiaCUDA;
  *fits     = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDiaFill(HybSpMV *S, const HybRowShapes *shapes, const HybCSR *A)
{
  const Dia *d = (const Dia *)S->data;

  PetscFunctionBegin;
  HYB_LAUNCH(DiaCopy, HybBlocks(A->m, DIA_THREADS), DIA_THREADS, 0, S->exec.stream, d->n, A->m, d->ld, A->i, A->a, shapes->rowclass, shapes->offsetptr, d->place, d->a);
  PetscFunctionReturn(PETSC_SUCCESS);
}
