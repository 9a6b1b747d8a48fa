/*
  Products with dense matrices on the device: C = A B, where B (n x p) and C (m x p) are stored by columns with leading
  dimensions.

  A sub-warp of W lanes has a row of A, W by the mean length of rows, and goes over the row's entries once for each tile
  of T columns: a lane reads an entry of A and T entries of B, one from each column, and keeps T sums in registers; then
  the lanes' sums are added, and lane t writes column t. The second tile finds the row of A in the cache, so A crosses
  the memory bus about once; entries of B are gathered as in a product with a vector, T at a time for one look at a
  column index. Rows next to each other are written by neighbouring sub-warps.

    for each row r (a sub-warp), each tile of columns c0 .. c0+T-1:
      sum[t] = 0;  for k = i[r] + lane; k < i[r+1]; k += W:  sum[t] += a[k] B(j[k], c0 + t)
      C(r, c0 + t) = sum of sum[t] over the lanes

  The order of addition depends on the row alone. Memory: none. Work: nnz(A) p. Why not cuSPARSE's SpMM: this runs
  wherever the kernels run (any scalar, both sizes of indices, the emulator), needs no workspace and no second library.
*/
#include "csrops.cuh"

template <int W, int T>
static __global__ __launch_bounds__(CSR_THREADS) void CSRMultDense(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybScalar *__restrict__ a, PetscInt p, const HybScalar *__restrict__ B, PetscCount ldb, HybScalar *__restrict__ C, PetscCount ldc)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    const PetscInt begin = r < m ? i[r] : 0, end = r < m ? i[r + 1] : 0;
    for (PetscCount c0 = 0; c0 < p; c0 += T) {
      const int width = p - c0 < T ? (int)(p - c0) : T;
      HybScalar sum[T];
#pragma unroll
      for (int t = 0; t < T; t++) sum[t] = HybScalar(0);
      for (PetscInt k = begin + lane; k < end; k += W) {
        const HybScalar  v = a[k];
        const HybScalar *b = B + j[k] + ldb * c0;
#pragma unroll
        for (int t = 0; t < T; t++)
          if (t < width) sum[t] = sum[t] + HybMul(v, HybLoadReadOnly(b + ldb * t));
      }
#pragma unroll
      for (int t = 0; t < T; t++) {
        const HybScalar s = HybSubwarpSum<W>(sum[t]);
        if (r < m && t < width && lane == (t & (W - 1))) C[r + ldc * (c0 + t)] = s;
      }
    }
  }
}

PetscErrorCode HybCSRMultDense_CUDA(const HybExec *exec, const HybCSR *A, PetscInt p, const HybScalar *B, PetscCount ldb, HybScalar *C, PetscCount ldc)
{
  const int w = RowWidth(A->nnz, A->m, 1);

  PetscFunctionBegin;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCheckEntries(exec, A->nnz, "The sparse operand"));
  PetscCall(HybDispatch(w, RowWidths(), p > 4 ? 8 : 4, HybCases<4, 8>(), [&](auto W, auto T) {
    HYB_LAUNCH((CSRMultDense<W, T>), HybBlocks((PetscCount)A->m * W, CSR_THREADS), CSR_THREADS, 0, exec->stream, A->m,
               A->i, A->j, A->a, p, B, ldb, C, ldc);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
