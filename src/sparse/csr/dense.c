/*
  dense.c: products with dense matrices on the host, C = A B with B and C by columns. A tile of columns at a time, so
  that a row of A is read once for all of them; each sum is formed in the order of storage.

    for each tile of 4 columns, each row r:  sum[t] = sum over k of a[k] B(j[k], t)
*/
#include "csrlist.h"

#define HYB_DENSE_TILE 4

PetscErrorCode HybCSRMultDense_Host(const HybExec *exec, const HybCSR *A, PetscInt p, const HybScalar *B, PetscCount ldb, HybScalar *C, PetscCount ldc)
{
  PetscFunctionBegin;
  for (PetscCount c = 0; c < p; c += HYB_DENSE_TILE) {
    const PetscInt   width = (PetscInt)PetscMin(HYB_DENSE_TILE, p - c);
    const HybScalar *b     = B + (size_t)ldb * c;
    HybScalar       *z     = C + (size_t)ldc * c;

    if (width == HYB_DENSE_TILE) {
      for (PetscInt r = 0; r < A->m; r++) {
        HybScalar s0 = 0, s1 = 0, s2 = 0, s3 = 0;

        for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
          const HybScalar v = A->a[k], *x = b + A->j[k];

          s0 += v * x[0];
          s1 += v * x[ldb];
          s2 += v * x[2 * ldb];
          s3 += v * x[3 * ldb];
        }
        z[r]           = s0;
        z[r + ldc]     = s1;
        z[r + 2 * ldc] = s2;
        z[r + 3 * ldc] = s3;
      }
    } else {
      for (PetscInt t = 0; t < width; t++) {
        for (PetscInt r = 0; r < A->m; r++) {
          HybScalar s = 0;

          for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) s += A->a[k] * b[A->j[k] + ldb * t];
          z[r + ldc * t] = s;
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
