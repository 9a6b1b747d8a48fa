/*
  rowops.cuh: what kernels that go over the rows of a matrix have in common: the width of sub-warps, the three ways in
  which a row's sum ends (y = A x, z = y + A x, z = y - A x), searches in sorted rows.
*/
#ifndef AIJHYBRIDGPU_ROWOPS_CUH
#define AIJHYBRIDGPU_ROWOPS_CUH

#include "../device/hybdispatch.cuh"

/* how a row's sum goes into the result; the values are those of HybSpMVMode */
enum {
  ROW_SET      = 0,
  ROW_ADD      = 1,
  ROW_RESIDUAL = 2,
  ROW_STEP     = 3
};

/* What a row's sum ends by where it is a smoother's step (HybSpMVStep); of other kernels zero bytes, or `first` */
typedef struct {
  const HybScalar *x, *dinv, *w;
  const PetscReal *c, *c0; /* c0: NULL, or HybSpMVStep.first */
  HybScalar       *first;  /* of a kernel without steps: NULL, or where c[0] (dinv sum) goes as well */
} RowStep;

/* how all rows of a launch end */
typedef struct {
  int              mode;
  RowStep          step;
  const HybScalar *y;
  HybScalar       *z;
} RowEnding;

/* c[2] w + c[1] x, of a row's w and x: what of the step does not need the sum */
static __device__ __forceinline__ HybScalar RowStepBaseOf(const RowStep &s, HybScalar x, HybScalar w)
{
  x = (HybScalarReal)s.c[1] * x;
  return s.w ? (HybScalarReal)s.c[2] * w + x : x;
}

static __device__ __forceinline__ HybScalar RowStepBase(const RowStep &s, PetscCount r)
{
  return RowStepBaseOf(s, s.x[r], s.w ? s.w[r] : HybScalar(0));
}

static __device__ __forceinline__ HybScalar RowStepEnd(const RowStep &s, HybScalar base, HybScalar dinv, HybScalar y, HybScalar sum)
{
  return base + (HybScalarReal)s.c[0] * HybMul(dinv, HybScalar(y - sum));
}

/* the end of row r; y is read only where the mode asks for it */
static __device__ __forceinline__ void RowEnd(int mode, HybScalar sum, const HybScalar *y, HybScalar *z, PetscCount r)
{
  z[r] = mode == ROW_SET ? sum : mode == ROW_ADD ? y[r] + sum
                                                 : y[r] - sum;
}

/* row r of a step that was made without some of its entries, whose sum this is */
static __device__ __forceinline__ void RowAmend(const RowStep &s, HybScalar sum, HybScalar *z, PetscCount r)
{
  z[r] = z[r] - (HybScalarReal)s.c[0] * HybMul(s.dinv[r], sum);
}

/* the same as RowEnd() where a kernel is made twice, with and without a smoother's step */
template <bool STEP>
static __device__ __forceinline__ void RowEndOr(int mode, const RowStep &step, HybScalar sum, const HybScalar *y, HybScalar *z, PetscCount r)
{
  if (STEP)
    z[r] = RowStepEnd(step, RowStepBase(step, r), step.dinv[r], y[r], sum);
  else {
    RowEnd(mode, sum, y, z, r);
    if (step.first) step.first[r] = (HybScalarReal)step.c[0] * HybMul(step.dinv[r], sum);
  }
}

/* lanes for rows of this mean length: each lane has two to four entries of a mean row, short rows one lane each */
static inline int RowWidth(PetscCount nnz, PetscCount m, int least)
{
  const PetscCount mean = m > 0 ? (nnz + m - 1) / m : 0;
  int              w    = least;

  while (w < HYB_WARP && 3 * w < mean) w *= 2;
  return w;
}

/* for (r of this sub-warp of W lanes): whole warps stay together, so r may be >= m at the end */
#define ROW_LOOP(r, m, W) \
  for (PetscCount r = ((PetscCount)blockIdx.x * blockDim.x + threadIdx.x) / (W), row_bound_ = ((PetscCount)(m) + HYB_WARP / (W)-1) / (HYB_WARP / (W)) * (HYB_WARP / (W)), row_stride_ = (PetscCount)gridDim.x * (blockDim.x / (W)); r < row_bound_; r += row_stride_)

/* what RowWidth() returns */
using RowWidths = HybCases<1, 2, 4, 8, 16, 32>;

/* the first k in [from, to) with j[k] >= col, else to; j ascends */
template <typename T>
static __device__ __forceinline__ PetscInt RowLowerBound(const T *j, PetscInt from, PetscInt to, std::common_type_t<T> col)
{
  while (from < to) {
    const PetscInt mid = from + (to - from) / 2;
    if (j[mid] < col)
      from = mid + 1;
    else
      to = mid;
  }
  return from;
}

/* the k in [from, to) with j[k] == col, else to; j ascends. The middle comes first: there diagonals of stencils are. */
static __device__ __forceinline__ PetscInt RowPlace(const PetscInt *j, PetscInt from, PetscInt to, PetscInt col)
{
  const PetscInt none = to;

  while (from < to) {
    const PetscInt mid = from + (to - from) / 2, c = j[mid];

    if (c == col) return mid;
    if (c < col)
      from = mid + 1;
    else
      to = mid;
  }
  return none;
}

/* the row that owns entry k: the last r in [from, to) with i[r] <= k; empty rows never own one */
static __device__ __forceinline__ PetscInt RowOfEntry(const PetscInt *i, PetscInt from, PetscInt to, PetscInt k)
{
  while (to - from > 1) {
    const PetscInt mid = from + (to - from) / 2;
    if (i[mid] <= k)
      from = mid;
    else
      to = mid;
  }
  return from;
}

#endif
