/* The reference and the harness themselves: small results worked out by dense arithmetic, and identities. */
#include "hybtest.h"
#include <stdlib.h>
#include <string.h>

static PetscScalar *Dense(const RefMat *A)
{
  PetscScalar *d = (PetscScalar *)RefAlloc((PetscCount)A->csr.m * A->csr.n, sizeof(PetscScalar));

  for (PetscInt r = 0; r < A->csr.m; r++)
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) d[(PetscCount)r * A->csr.n + A->csr.j[k]] += A->csr.a[k];
  return d;
}

static PetscScalar *DenseProduct(PetscInt m, PetscInt l, PetscInt n, const PetscScalar *a, const PetscScalar *b)
{
  PetscScalar *d = (PetscScalar *)RefAlloc((PetscCount)m * n, sizeof(PetscScalar));

  for (PetscInt r = 0; r < m; r++)
    for (PetscInt c = 0; c < n; c++)
      for (PetscInt k = 0; k < l; k++) d[(PetscCount)r * n + c] += a[(PetscCount)r * l + k] * b[(PetscCount)k * n + c];
  return d;
}

static void CheckDense(const RefMat *A, const PetscScalar *d)
{
  HybTestCheck(A->csr.i[0] == 0 && A->csr.i[A->csr.m] == A->csr.nnz, "offsets end at %" PetscInt_FMT " of %td", A->csr.i[A->csr.m], A->csr.nnz);
  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = A->csr.i[r]; k + 1 < A->csr.i[r + 1]; k++) HybTestCheck(A->csr.j[k] < A->csr.j[k + 1], "row %" PetscInt_FMT " is not sorted", r);
    for (PetscInt c = 0; c < A->csr.n; c++) {
      PetscBool   stored;
      PetscScalar v = RefGet(A, r, c, &stored), w = d[(PetscCount)r * A->csr.n + c];

      HybTestCheck(PetscAbsScalar(v - w) < ROUNDED(1e-12), "(%" PetscInt_FMT ",%" PetscInt_FMT ") is %g, expected %g", r, c, (double)PetscRealPart(v), (double)PetscRealPart(w));
      HybTestCheck(stored || w == (PetscScalar)0.0, "(%" PetscInt_FMT ",%" PetscInt_FMT ") is missing", r, c);
    }
  }
}

static PetscErrorCode Body(void)
{
  char   name[64];
  RefMat A, B, C, D, T;

  PetscFunctionBegin;
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    HybTestBegin("zoo: %s is well formed", name);
    HybTestCheck(A.csr.i[0] == 0 && A.csr.i[A.csr.m] == A.csr.nnz, "offsets end at %" PetscInt_FMT " of %td", A.csr.i[A.csr.m], A.csr.nnz);
    for (PetscInt r = 0; r < A.csr.m; r++) {
      HybTestCheck(A.csr.i[r] <= A.csr.i[r + 1], "offsets descend at row %" PetscInt_FMT, r);
      for (PetscInt q = A.csr.i[r]; q < A.csr.i[r + 1]; q++) HybTestCheck(A.csr.j[q] >= 0 && A.csr.j[q] < A.csr.n && (q == A.csr.i[r] || A.csr.j[q - 1] < A.csr.j[q]) && A.csr.a[q] != (PetscScalar)0.0, "row %" PetscInt_FMT " is not sorted, not within 0..n-1 or has a zero", r);
    }
    HybTestBegin("transposing %s twice", name);
    RefTranspose(&A, PETSC_FALSE, &T);
    RefTranspose(&T, PETSC_FALSE, &B);
    HybTestCheck(B.csr.nnz == A.csr.nnz && !memcmp(A.csr.i, B.csr.i, ((size_t)A.csr.m + 1) * sizeof(PetscInt)) && !memcmp(A.csr.j, B.csr.j, (size_t)A.csr.nnz * sizeof(PetscInt)) && !memcmp(A.csr.a, B.csr.a, (size_t)A.csr.nnz * sizeof(PetscScalar)), "differs from the original");
    RefMatDestroy(&B);
    if (A.csr.m <= 100 && A.csr.n <= 100) {
      PetscScalar *a = Dense(&A), *t = Dense(&T), *d = DenseProduct(A.csr.m, A.csr.n, A.csr.m, a, t), *x = HybTestRandomVector(A.csr.n), *y = HybTestRandomVector(A.csr.m), *z = HybTestRandomVector(A.csr.m), *ax = DenseProduct(A.csr.m, A.csr.n, 1, a, x);

      HybTestBegin("products of %s", name);
      RefSpGEMM(&A, &T, &C);
      CheckDense(&C, d);
      free(d);
      RefPtAP(&C, &A, &D);
      RefMatDestroy(&D);
      RefSpMV(&A, x, -1, y, z, NULL, NULL);
      for (PetscInt r = 0; r < A.csr.m; r++) HybTestCheck(PetscAbsScalar(z[r] - (y[r] - ax[r])) < ROUNDED(1e-12), "y - A x, row %" PetscInt_FMT, r);
      HybTestBegin("sum with %s", name);
      RefAdd(2.0, &A, -1.0, &A, &D);
      CheckDense(&D, a);
      RefMatDestroy(&D, &C);
      RefFree(a, t, x, y, z, ax);
    }
    RefMatDestroy(&T, &A);
  }
  HybTestBegin("coordinates");
  {
    const PetscInt    ci[] = {1, 0, -1, 1, 1, 2}, cj[] = {2, 0, 0, -3, 2, 1};
    const PetscScalar v[] = {1, 2, 3, 4, 5, 6};

    RefCOO(3, 3, 6, ci, cj, v, &A);
    HybTestCheck(A.csr.nnz == 3, "%td entries", A.csr.nnz);
    HybTestCheck(RefGet(&A, 1, 2, NULL) == (PetscScalar)6.0 && RefGet(&A, 0, 0, NULL) == (PetscScalar)2.0 && RefGet(&A, 2, 1, NULL) == (PetscScalar)6.0, "wrong values");
    RefMatDestroy(&A);
  }
  HybTestBegin("upload, download and comparison on %s", HybTestExec()->backend->name);
  {
    HybCSR   there;
    HybArena arena = HybArenaOn(HybTestExec());

    HybTestMatRandom(57, 33, 0, 12, &A);
    PetscCall(HybTestUpload(&arena, &A.csr, &there));
    HybTestSameMatrix(&there, &A, 0);
    HybTestSameBits(A.csr.nnz, sizeof(PetscScalar), there.a, A.csr.a);
    HybTestCheck(arena.bytes > 0 && arena.peak >= arena.bytes, "the arena holds %zu bytes, at most %zu", arena.bytes, arena.peak);
    PetscCall(HybArenaReset(&arena));
    HybTestCheck(!arena.bytes, "the arena still holds %zu bytes", arena.bytes);
    RefMatDestroy(&A);
  }
  HybTestBegin("a matrix of the folder");
  if (HybTestMatRead("bcsstk13", &A)) {
    HybTestCheck(A.csr.m == 2003 && A.csr.n == 2003 && A.csr.nnz == 83883, "%" PetscInt_FMT " rows, %td entries", A.csr.m, A.csr.nnz);
    RefTranspose(&A, PETSC_FALSE, &T);
    HybTestCheck(!memcmp(A.csr.j, T.csr.j, (size_t)A.csr.nnz * sizeof(PetscInt)) && !memcmp(A.csr.a, T.csr.a, (size_t)A.csr.nnz * sizeof(PetscScalar)), "it is not symmetric");
    RefMatDestroy(&A, &T);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
