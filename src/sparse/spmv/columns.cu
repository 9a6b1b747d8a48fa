/*
  Products with several vectors at once.

  Idea. A product with one vector reads mostly A. With K vectors A is read once for all of them, and where they lie
  interleaved, an index of a column leads to K neighbouring numbers: full sectors of memory even where the columns of a
  row are far apart. So no plan is needed, nor the shared memory through which one vector's product streams.

    lanes (row r, columns V l .. V l + V-1, part w of W):    V numbers are 16 bytes
      sum[v] = 0;  for k = i[r] + w; k < i[r+1]; k += W:  sum[v] += a[k] x[j[k]*K + V l + v]     4 entries under way
      butterfly over the parts;  part 0 ends the row as a product with one vector does (rowops.cuh)

  The lanes of a row read the same entry of A, which is one access for all of them. W is 1 where rows are short and
  many, and more where a level has few rows or long ones: else one lane would wait for the memory again and again.

  Sums. A launch may leave inner products of what it has in registers anyway: of x and A x, or of what a smoother's step
  makes. Then its blocks go over the rows in turns, as many as follows from the matrix's size, and each leaves its own.

  A row's order of addition depends on W, which depends on the matrix's size alone: the same bits from run to run, and
  the same for a column whatever is in the others. Memory: none. Bytes: 12 a nonzero and 4 a row once, and K times those
  of the vectors. Work: K nnz.
*/
#include "columns.cuh"
#include "ending.cuh"

#define COLUMNS_BATCH 4      /* entries of a lane that are under way */
#define COLUMNS_FILL  135168 /* lanes that keep a card busy: half of what 132 multiprocessors hold */

static __device__ __forceinline__ HybScalar ColumnsStepEnd(const PetscReal *c, HybScalar x, bool has, HybScalar w, HybScalar dinv, HybScalar y, HybScalar sum)
{
  const HybScalar u = (HybScalarReal)c[1] * x, base = has ? (HybScalarReal)c[2] * w + u : u;
  return base + (HybScalarReal)c[0] * HybMul(dinv, HybScalar(y - sum));
}

/* SUMS: 0: none are left; of a product x z; of a step z y, |z|^2, |y|^2 */
template <int K, int W, bool STEP, bool SUMS>
static __global__ __launch_bounds__(COLUMNS_THREADS, 4) void ColumnsRows(RowEnding end, PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, const HybScalar *x, HybScalar *part, bool hermitian)
{
  constexpr int V = ColumnsOfLane<K>(), L = K / V, G = L * W, N = STEP ? 3 : 1, U = COLUMNS_BATCH;
  const int     lane = HybLane() & (G - 1), w = lane / L, c = (lane & (L - 1)) * V;
  HybScalar     mine[N][V];

  HybChainWait();
#pragma unroll
  for (int s = 0; s < N; s++)
#pragma unroll
    for (int v = 0; v < V; v++) mine[s][v] = HybScalar(0);
  ROW_LOOP(r, m, G)
  {
    const PetscInt first = r < m ? i[r] : 0, last = r < m ? i[r + 1] : 0;
    HybScalar      sum[V];

#pragma unroll
    for (int v = 0; v < V; v++) sum[v] = HybScalar(0);
    for (PetscInt k = first + w; k < last; k += U * W) {
      PetscInt       col[U];
      HybScalar      ak[U];
      ColumnsPack<K> xk[U];
#pragma unroll
      for (int u = 0; u < U; u++) col[u] = k + u * W < last ? HybLoadReadOnly(j + k + u * W) : 0;
#pragma unroll
      for (int u = 0; u < U; u++) ak[u] = k + u * W < last ? HybLoadReadOnly(a + k + u * W) : HybScalar(0);
#pragma unroll
      for (int u = 0; u < U; u++)
        if (k + u * W < last) xk[u] = ColumnsLoad<K>(x + (PetscCount)col[u] * K + c);
#pragma unroll
      for (int u = 0; u < U; u++) {
        if (k + u * W < last) {
#pragma unroll
          for (int v = 0; v < V; v++) sum[v] = sum[v] + HybMul(ak[u], xk[u].v[v]);
        }
      }
    }
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
      for (int d = G / 2; d >= L; d >>= 1) sum[v] = sum[v] + HybShflXor(HYB_FULL_MASK, sum[v], d);
    if (w == 0 && r < m) {
      const PetscCount at      = r * K + c;
      const bool       ywanted = STEP || end.mode != ROW_SET, has = STEP && end.step.w;
      ColumnsPack<K>   z, y, own, before;
      HybScalar        dinv(0);

      if (ywanted) y = ColumnsLoad<K>(end.y + at);
      if (STEP || SUMS) own = ColumnsLoad<K>(x + at);
      if (has) before = ColumnsLoad<K>(end.step.w + at);
      if (STEP) dinv = end.step.dinv[r];
#pragma unroll
      for (int v = 0; v < V; v++) {
        if (STEP)
          z.v[v] = ColumnsStepEnd(end.step.c, own.v[v], has, has ? before.v[v] : HybScalar(0), dinv, y.v[v], sum[v]);
        else
          z.v[v] = end.mode == ROW_SET ? sum[v] : end.mode == ROW_ADD ? HybScalar(y.v[v] + sum[v])
                                                                      : HybScalar(y.v[v] - sum[v]);
        if (SUMS && STEP) {
          mine[0][v]     = mine[0][v] + ColumnsTerm(hermitian, z.v[v], y.v[v]);
          mine[N - 2][v] = mine[N - 2][v] + HybMul(z.v[v], HybConj(z.v[v]));
          mine[N - 1][v] = mine[N - 1][v] + HybMul(y.v[v], HybConj(y.v[v]));
        } else if (SUMS)
          mine[0][v] = mine[0][v] + ColumnsTerm(hermitian, own.v[v], z.v[v]);
      }
      ColumnsStore<K>(end.z + at, z);
    }
  }
  if (SUMS) ColumnsLeave<K>(mine, part);
}

/* parts of a row: until a lane has eight entries of a mean row, or three while the card is not busy */
static int ColumnsParts(int lanes, const HybCSR *A)
{
  const PetscCount mean = A->m > 0 ? (A->nnz + A->m - 1) / A->m : 0;
  int              W    = 1;

  while (W * lanes < HYB_WARP && W < 8 && (16 * W < mean || (3 * W < mean && (PetscCount)A->m * lanes * W < COLUMNS_FILL))) W *= 2;
  return W;
}

static PetscErrorCode ColumnsLaunch(const HybExec *exec, PetscInt K, const HybCSR *A, const HybScalar *x, bool step, const RowEnding &end, HybColumnsSums *sums)
{
  PetscFunctionBegin;
  PetscCheck(A->a || !A->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "A product with vectors needs the values of the matrix");
  PetscCheck(!(step || sums) || A->m == A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A smoother's step and inner products are for square matrices, not one of %" PetscInt_FMT " x %" PetscInt_FMT, A->m, A->n);
  if (sums) sums->blocks = 0;
  if (!A->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybDispatch((int)K, ColumnsWidths(), [&](auto k) {
    constexpr int L = k / ColumnsOfLane<k>();
    return HybDispatch(ColumnsParts(L, A), HybCases<1, 2, 4, 8>(), step, HybFlags(), [&](auto w, auto s) {
      return HybDispatch(sums != nullptr, HybFlags(), [&](auto left) {
        const PetscCount lanes  = (PetscCount)A->m * L * w;
        const PetscCount blocks = left ? ColumnsSumBlocks(lanes) : HybBlocks(lanes, COLUMNS_THREADS);

        if (left) sums->blocks = (PetscInt)blocks;
        HYB_LAUNCH_CHAINED(A->nnz, (ColumnsRows<k, w, s, left>), blocks, COLUMNS_THREADS, 0, exec->stream, end, A->m,
                           A->i, A->j, A->a, x, left ? sums->part : (HybScalar *)nullptr, left && sums->hermitian);
        return PETSC_SUCCESS;
      });
    });
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybColumnsMult_CUDA(const HybExec *exec, PetscInt K, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, HybColumnsSums *sums)
{
  PetscFunctionBegin;
  PetscCheck(!sums || mode == HYB_SPMV_SET, PETSC_COMM_SELF, PETSC_ERR_SUP, "Inner products are those of z = A x");
  PetscCall(ColumnsLaunch(exec, K, A, x, false, RowEndingOf(mode, y, z), sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybColumnsStep_CUDA(const HybExec *exec, PetscInt K, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step, HybColumnsSums *sums)
{
  PetscFunctionBegin;
  PetscCall(ColumnsLaunch(exec, K, A, x, true, RowEndingOfStep(x, step), sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybColumnsOps HybColumnsCUDA;
const HybColumnsOps        HybColumnsCUDA = {
         .mult = HybColumnsMult_CUDA,
         .step = HybColumnsStep_CUDA,
};
