/*
  Operations along the rows of a matrix with as many nonzeros as kernels take, and with more, which a device refuses:
  lanes look beyond a row's end, where a cursor near the largest PetscInt becomes negative. Where indices have 64 bits,
  with offsets on both sides of 2^31 and of 2^32. The arrays behind are small: the pointers are moved back by as much as
  the offsets are moved on.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybparprod.h>
#include <stdlib.h>
#include <string.h>

static const HybExec     *exec;
static const HybCSROps   *ops;
static const HybLocalOps *local;
static HybArena           mine, keep, work;

static PetscErrorCode Forget(void)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* once it has fits and nnz: an error, or right */
#define OPERATION(what, call, check)                               \
  do {                                                             \
    HybTestBegin("%s of %" PetscCount_FMT " nonzeros", what, nnz); \
    if (!fits)                                                     \
      HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, call);            \
    else if (HybTestCall(call))                                    \
      check;                                                       \
    PetscCall(Forget());                                           \
  } while (0)

/* all operations, with so many nonzeros: refused, or right */
static PetscErrorCode Operations(const RefMat *A, const RefMat *B, PetscCount nnz)
{
  const PetscBool   fits = (PetscBool)(nnz <= (PetscCount)PETSC_MAX_INT - HYB_ENTRIES_BEYOND);
  const PetscInt    m = A->csr.m, n = A->csr.n;
  const PetscScalar alpha = 2, beta = 3;
  PetscScalar      *hl = HybTestRandomVector(m), *hx = HybTestRandomVector(n), *hz = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *l, *x, *z;
  PetscReal        *mag = (PetscReal *)RefAlloc(m, sizeof(PetscReal)), norm = 0, expected = 0;
  PetscCount       *terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount)), count;
  PetscInt          badrow;
  HybCSR            DA, DB, C;
  RefMat            S;

  PetscFunctionBegin;
  PetscCall(HybTestUploadMoved(&mine, A, nnz, &DA));
  PetscCall(HybTestUpload(&mine, &B->csr, &DB));
  PetscCall(HybTestUploadArray(&mine, m, sizeof(PetscScalar), hl, &l));
  PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), hx, &x));
  PetscCall(HybTestUploadArray(&mine, m, sizeof(PetscScalar), hl, &z));

  RefSpMV(A, hx, 1, NULL, hz, mag, terms);
  OPERATION("the product with one dense column", ops->multdense(exec, &DA, 1, x, n, z, m), HybTestSameScalars(m, z, hz, mag, terms, 4));

  for (PetscInt r = 0; r < m; r++) {
    PetscReal sum = 0;

    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) sum += PetscAbsScalar(A->csr.a[k]);
    expected = PetscMax(expected, sum);
  }
  OPERATION("the largest row sum", ops->norm(exec, &work, &DA, HYB_NORM_INFINITY, &norm), HybTestCheck(HybTestClose(norm, expected, expected, 200, 4), "%g, expected %g", (double)norm, (double)expected));

  if (fits) {
    PetscScalar *hd = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *d;
    PetscInt    *hp = (PetscInt *)RefAlloc(m, sizeof(PetscInt)), *p;

    for (PetscInt r = 0; r < m; r++) {
      hd[r] = RefGet(A, r, r, NULL);
      for (hp[r] = A->csr.i[r]; hp[r] < A->csr.i[r + 1] && A->csr.j[hp[r]] != r;) hp[r]++;
      hp[r] = (PetscInt)(hp[r] + nnz - A->csr.nnz);
    }
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), m, sizeof(*d), &d));
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), m, sizeof(*p), &p));
    OPERATION("the diagonal", ops->getdiagonal(exec, &DA, d), HybTestSameBits(m, sizeof(*d), d, hd));
    OPERATION("the diagonal's places", ops->diagonalplaces(exec, &DA, p), HybTestSameInts(m, p, hp));
    RefFree(hd, hp);
  }

  /* the first row begins at no 0, which alone is wrong */
  OPERATION("the check", ops->check(exec, &work, &DA, &count, &badrow), HybTestCheck(count == 1 && badrow == 0, "%td bad rows, the first is %" PetscInt_FMT, count, badrow));

  RefAdd(alpha, A, beta, B, &S);
  OPERATION("the pattern of a sum", ops->addsymbolic(exec, &keep, &work, &DA, &DB, &C), HybTestSamePattern(&C, &S));
  OPERATION("the pattern of a sum, the other way round,", ops->addsymbolic(exec, &keep, &work, &DB, &DA, &C), HybTestSamePattern(&C, &S));
  PetscCall(HybTestUpload(&mine, &S.csr, &C));
  OPERATION("a sum", ops->addnumeric(exec, &alpha, &DA, &beta, &DB, &C), HybTestSameMatrix(&C, &S, 4));
  RefMatDestroy(&S);

  /* of the second in the first one's pattern */
  OPERATION("a sum in place", ops->axpysubset(exec, &work, &alpha, &DB, &DA, &count), HybTestCheck(count > 0, "%td entries are missing", count));
  if (!fits) OPERATION("a sum in place, the other way round,", ops->axpysubset(exec, &work, &alpha, &DA, &DB, &count), (void)0);

  OPERATION("scaling by a vector", ops->diagonalscale(exec, &DA, l, NULL), {
    PetscScalar *a     = (PetscScalar *)RefAlloc(A->csr.nnz, sizeof(PetscScalar));
    PetscBool    right = PETSC_TRUE;

    HybTestCall(HybTestDownloadArray(A->csr.nnz, sizeof(PetscScalar), (char *)DA.a + (size_t)(nnz - A->csr.nnz) * sizeof(PetscScalar), a));
    for (PetscInt r = 0; r < m; r++)
      for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) right = (PetscBool)(right && HybTestClose(a[k], hl[r] * A->csr.a[k], PetscAbsScalar(a[k]), 1, 4));
    HybTestCheck(right, "a value is wrong");
    free(a);
  });
  PetscCall(HybArenaReset(&mine));
  RefFree(hl, hx, hz, mag, terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows and parts of a matrix, with so many nonzeros: refused, or right */
static PetscErrorCode Parts(const RefMat *A, PetscCount nnz)
{
  const PetscBool  fits = (PetscBool)(nnz <= (PetscCount)PETSC_MAX_INT - HYB_ENTRIES_BEYOND);
  const PetscInt   m = A->csr.m, n = A->csr.n, two[2] = {m - 1, 0};
  const PetscCount unknown[2] = {-1, -1};
  PetscInt        *rows, *every, *none, *perm[2], *list, begin[3];
  unsigned        *mask, words;
  HybCSR           D, O, each, S[2];
  const HybCSR    *both[2] = {&D, &D};
  RefMat           R;

  PetscFunctionBegin;
  PetscCall(HybTestUploadMoved(&mine, A, nnz, &D));
  PetscCall(HybTestUploadArray(&mine, 2, sizeof(PetscInt), two, &rows));
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), (PetscCount)n + 1, sizeof(PetscInt), &every));
  PetscCall(local->sequence(exec, (PetscCount)n + 1, 0, every));
  PetscCall(HybArenaCalloc(&mine, HYB_WORK(exec), (PetscCount)m + 1, sizeof(PetscInt), &none));
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), 1, sizeof(*mask), &mask));
  O    = (HybCSR){m, 0, 0, none, none, NULL};
  each = (HybCSR){m, m, m, every, every, NULL};
  RefSubmatrix(A, 2, two, 0, n, &R);
  OPERATION("rows of two blocks", local->pickrows(exec, &keep, &work, &D, &O, 0, 0, every, 2, rows, begin, S, perm), {
    S->n = n;
    HybTestSamePattern(S, &R);
  });
  OPERATION("rows of two blocks, the other way round,", local->pickrows(exec, &keep, &work, &O, &D, 0, 0, every, 2, rows, begin, S, perm), {
    S->n = n;
    HybTestSamePattern(S, &R);
  });
  OPERATION("rows of two matrices", local->pickboth(exec, &keep, &work, both, unknown, 2, rows, S, perm), HybTestSamePattern(S + 1, &R));
  RefMatDestroy(&R);
  OPERATION("rows that are met", local->pickmet(exec, &keep, &work, &each, &D, S, perm, &list), HybTestCheck(S->nnz == A->csr.nnz, "%td entries", S->nnz));
  OPERATION("columns that are mapped", local->pickmapped(exec, &keep, &work, &D, n, every, S, &list, perm), HybTestCheck(S->nnz == A->csr.nnz, "%td entries", S->nnz));
  /* more entries than there are would be room for a part */
  if (!fits) OPERATION("parts by columns", local->splitcolumns(exec, &keep, &work, &D, 1, n - 1, S, perm), (void)0);
  OPERATION("rows that meet others", local->meetrows(exec, &D, none, every, mask), {
    unsigned expected = 0;

    for (PetscInt r = 0; r < m; r++) expected |= (unsigned)(A->csr.i[r + 1] > A->csr.i[r]) << r;
    HybTestCall(HybTestDownloadArray(1, sizeof(words), mask, &words));
    HybTestCheck(words == expected, "%x, not %x", words, expected);
  });
  PetscCall(HybArenaReset(&mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  RefMat A, B;

  PetscFunctionBegin;
  exec  = HybTestExec();
  ops   = exec->backend->csr;
  local = exec->backend->local;
  if (!exec->backend->device) {
    HybTestBegin("offsets near the largest PetscInt");
    HybTestSkip("the host's loops stop at a row's end");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybTestArenas(exec, &mine, &keep, &work));
  HybTestMatRandom(20, 300, 0, 200, &A);
  HybTestMatRandom(20, 300, 1, 100, &B);
  for (int k = 0; k < 3; k++) {
    const PetscCount most = (PetscCount)PETSC_MAX_INT - (k ? 0 : HYB_ENTRIES_BEYOND) + (k == 1 ? 1 - HYB_ENTRIES_BEYOND : 0);
    const PetscCount nnz  = sizeof(PetscInt) == 8 ? ((PetscCount)1 << (31 + k)) + A.csr.nnz / 2 : most;

    PetscCall(Operations(&A, &B, nnz));
    PetscCall(Parts(&A, nnz));
  }
  RefMatDestroy(&A, &B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
