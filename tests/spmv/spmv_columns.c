/*
  Products with 2, 4 and 8 interleaved vectors on all kinds of matrices, beside the plain loop for each column: the
  three endings, a smoother's step with and without an older iterate, and the sums that a launch leaves on its way,
  beside those of what it wrote. The same bits again, and the same bits for a column whatever others hold, NaN too. What
  is not square has no step and no sums.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybspmv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  RefMat      *A;
  PetscInt     K;
  HybArena     arena;
  HybCSR       there;
  PetscScalar *hx, *hy, *hw, *hd, *hz, *want, *x, *y, *w, *d, *z;
  PetscReal   *c, *mag;
  PetscCount  *terms;
} Case;

static const PetscReal numbers[3] = {0.7, 1.3, -0.4};

static PetscErrorCode CaseCreate(RefMat *A, PetscInt K, Case *t)
{
  const PetscCount m = (PetscCount)A->csr.m * K, n = (PetscCount)A->csr.n * K;
  const size_t     size = sizeof(PetscScalar);

  PetscFunctionBegin;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  t->A     = A;
  t->K     = K;
  t->arena = HybArenaOn(HybTestExec());
  t->hx    = HybTestRandomVector(n);
  t->hy    = HybTestRandomVector(m);
  t->hw    = HybTestRandomVector(m);
  t->hd    = HybTestRandomVector(A->csr.m);
  t->hz    = (PetscScalar *)RefAlloc(m, size);
  t->want  = (PetscScalar *)RefAlloc(m, size);
  t->mag   = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  t->terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  PetscCall(HybTestUpload(&t->arena, &A->csr, &t->there));
  PetscCall(HybTestUploadArray(&t->arena, n, size, t->hx, &t->x));
  PetscCall(HybTestUploadArray(&t->arena, m, size, t->hy, &t->y));
  PetscCall(HybTestUploadArray(&t->arena, m, size, t->hw, &t->w));
  PetscCall(HybTestUploadArray(&t->arena, A->csr.m, size, t->hd, &t->d));
  PetscCall(HybTestUploadArray(&t->arena, m, size, t->hw, &t->z));
  PetscCall(HybTestUploadArray(&t->arena, 3, sizeof(PetscReal), numbers, &t->c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseDestroy(Case *t)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&t->arena));
  RefFree(t->hx, t->hy, t->hw, t->hd, t->hz, t->want, t->mag, t->terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* want = A x, y + A x or y - A x, column by column */
static void Expect(Case *t, HybSpMVMode mode)
{
  const PetscInt m = t->A->csr.m, n = t->A->csr.n;
  PetscScalar   *x = (PetscScalar *)RefAlloc(n, sizeof(*x)), *y = (PetscScalar *)RefAlloc(m, sizeof(*y)), *z = (PetscScalar *)RefAlloc(m, sizeof(*z));
  PetscReal     *mag   = (PetscReal *)RefAlloc(m, sizeof(*mag));
  PetscCount    *terms = (PetscCount *)RefAlloc(m, sizeof(*terms));

  for (PetscInt c = 0; c < t->K; c++) {
    for (PetscInt k = 0; k < n; k++) x[k] = t->hx[k * t->K + c];
    for (PetscInt k = 0; k < m; k++) y[k] = t->hy[k * t->K + c];
    RefSpMV(t->A, x, mode == HYB_SPMV_RESIDUAL ? -1 : 1, mode == HYB_SPMV_SET ? NULL : y, z, mag, terms);
    for (PetscInt k = 0; k < m; k++) {
      t->want[k * t->K + c]  = z[k];
      t->mag[k * t->K + c]   = mag[k];
      t->terms[k * t->K + c] = terms[k];
    }
  }
  RefFree(x, y, z, mag, terms);
}

/* what a launch left is what its vectors give; `kind` of sum: 0: a conj b, hermitian, or a b */
static PetscErrorCode Sums(Case *t, const HybColumnsSums *left, PetscInt n, PetscInt s, const PetscScalar *a, const PetscScalar *b, PetscBool conjugate, const char *what)
{
  const PetscInt m    = t->A->csr.m;
  PetscScalar   *part = (PetscScalar *)RefAlloc((PetscCount)left->blocks * n * t->K, sizeof(*part));

  PetscFunctionBegin;
  PetscCall(HybTestDownloadArray((PetscCount)left->blocks * n * t->K, sizeof(*part), left->part, part));
  for (PetscInt c = 0; c < t->K; c++) {
    PetscScalar sum = 0, want = 0;
    PetscReal   mag = 0;

    for (PetscInt q = 0; q < left->blocks; q++) sum += part[(q * n + s) * t->K + c];
    for (PetscInt k = 0; k < m; k++) {
      const PetscScalar term = a[k * t->K + c] * (conjugate ? PetscConj(b[k * t->K + c]) : b[k * t->K + c]);

      want += term;
      mag += PetscAbsScalar(term);
    }
    HybTestCheck(HybTestClose(sum, want, mag, m, 4), "%s, column %d: sum %d is %g, not %g", what, (int)c, (int)s, (double)PetscRealPart(sum), (double)PetscRealPart(want));
  }
  free(part);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Case *t, HybColumnsSums *left)
{
  const HybExec   *exec = HybTestExec();
  const PetscCount all  = (PetscCount)t->A->csr.m * t->K;
  const size_t     size = sizeof(PetscScalar);

  PetscFunctionBegin;
  for (int mode = 0; mode < 4; mode++) { /* the last one: y + A x in y's place */
    const HybSpMVMode how = mode == 3 ? HYB_SPMV_ADD : (HybSpMVMode)mode;

    Expect(t, how);
    for (int twice = 0; twice < 2; twice++) {
      if (mode == 3) PetscCall(exec->backend->copy(exec, t->z, t->y, size * (size_t)all, HYB_COPY_DEVICE_TO_DEVICE));
      HybTestCall(exec->backend->columns->mult(exec, t->K, &t->there, t->x, how, mode == 3 ? t->z : t->y, t->z, NULL));
      if (twice) HybTestCheck(HybTestSameBits(all, size, t->z, t->hz), "mode %d: other bits the second time", mode);
      PetscCall(HybTestDownloadArray(all, size, t->z, t->hz));
    }
    HybTestCheck(HybTestSameScalars(all, t->z, t->want, t->mag, t->terms, 4), "%d columns, mode %d", (int)t->K, mode);
  }
  if (t->A->csr.m != t->A->csr.n) {
    if (t->A->csr.m) HybTestCallFails(PETSC_ERR_ARG_SIZ, exec->backend->columns->mult(exec, t->K, &t->there, t->x, HYB_SPMV_SET, NULL, t->z, left));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybTestCallFails(PETSC_ERR_SUP, exec->backend->columns->mult(exec, t->K, &t->there, t->x, HYB_SPMV_ADD, t->y, t->z, left));
  HybTestCall(exec->backend->columns->mult(exec, t->K, &t->there, t->x, HYB_SPMV_SET, NULL, t->z, left));
  PetscCall(HybTestDownloadArray(all, size, t->z, t->hz));
  PetscCall(Sums(t, left, 1, 0, t->hx, t->hz, left->hermitian, "a product"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Steps(Case *t, HybColumnsSums *left)
{
  const HybExec   *exec = HybTestExec();
  const PetscCount all  = (PetscCount)t->A->csr.m * t->K;
  const size_t     size = sizeof(PetscScalar);

  PetscFunctionBegin;
  Expect(t, HYB_SPMV_RESIDUAL);
  for (int way = 0; way < 3; way++) { /* without w, with w, w is z */
    const HybSpMVStep step = {.y = t->y, .dinv = t->d, .w = way == 0 ? NULL : way == 1 ? t->w
                                                                                       : t->z,
                              .c = t->c,
                              .z = t->z};

    for (int twice = 0; twice < 2; twice++) {
      if (way == 2) PetscCall(exec->backend->copy(exec, t->z, t->w, size * (size_t)all, HYB_COPY_DEVICE_TO_DEVICE));
      HybTestCall(exec->backend->columns->step(exec, t->K, &t->there, t->x, &step, twice ? left : NULL));
      if (twice) HybTestCheck(HybTestSameBits(all, size, t->z, t->hz), "step %d: other bits where sums are left", way);
      PetscCall(HybTestDownloadArray(all, size, t->z, t->hz));
    }
    for (PetscCount k = 0; k < all; k++) {
      const PetscScalar want = (way ? numbers[2] * t->hw[k] : 0) + numbers[1] * t->hx[k] + numbers[0] * (t->hd[k / t->K] * t->want[k]);
      const PetscReal   mag  = PetscAbsScalar(t->hd[k / t->K]) * t->mag[k] + PetscAbsScalar(t->hx[k]) + PetscAbsScalar(t->hw[k]);

      if (!HybTestClose(t->hz[k], want, mag, t->terms[k] + 4, 4)) HybTestCheck(PETSC_FALSE, "step %d, entry %d of column %d", way, (int)(k / t->K), (int)(k % t->K));
    }
    HybTestCheck(PETSC_TRUE, "-");
    PetscCall(Sums(t, left, 3, 0, t->hz, t->hy, left->hermitian, "a step"));
    PetscCall(Sums(t, left, 3, 1, t->hz, t->hz, PETSC_TRUE, "a step"));
    PetscCall(Sums(t, left, 3, 2, t->hy, t->hy, PETSC_TRUE, "a step"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* others' NaN changes no bit of a column */
static PetscErrorCode Apart(Case *t)
{
  const HybExec   *exec = HybTestExec();
  const PetscCount all  = (PetscCount)t->A->csr.m * t->K;
  const size_t     size = sizeof(PetscScalar);
  PetscBool        same = PETSC_TRUE;
  PetscScalar     *x;

  PetscFunctionBegin;
  HybTestCall(exec->backend->columns->mult(exec, t->K, &t->there, t->x, HYB_SPMV_SET, NULL, t->z, NULL));
  PetscCall(HybTestDownloadArray(all, size, t->z, t->want));
  for (PetscInt k = 0; k < t->A->csr.n; k++) t->hx[k * t->K + 1] = (PetscReal)NAN;
  PetscCall(HybTestUploadArray(&t->arena, (PetscCount)t->A->csr.n * t->K, size, t->hx, &x));
  HybTestCall(exec->backend->columns->mult(exec, t->K, &t->there, x, HYB_SPMV_SET, NULL, t->z, NULL));
  PetscCall(HybTestDownloadArray(all, size, t->z, t->hz));
  for (PetscCount k = 0; k < all; k++) same = (PetscBool)(same && (k % t->K == 1 || !memcmp(&t->hz[k], &t->want[k], size)));
  HybTestCheck(same, "%d columns: what one holds has changed another", (int)t->K);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  RefMat A;
  char   name[64];

  PetscFunctionBegin;
  if (!HybTestExec()->backend->columns) {
    HybTestBegin("columns");
    HybTestSkip("the host has no products with several vectors");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int square = 0; square < 2; square++) {
    for (PetscInt k = 0; HybTestZoo(k, (PetscBool)square, name, &A); k++) {
      for (PetscInt K = 2; K <= HYB_COLUMNS && HybTestMine(); K *= 2) {
        HybColumnsSums left = {.hermitian = (PetscBool)(K != 4)};
        Case           t;

        HybTestBegin("%d columns, %s", (int)K, name);
        PetscCall(CaseCreate(&A, K, &t));
        PetscCall(HybArenaAlloc(&t.arena, HYB_WORK(HybTestExec()), 3 * HYB_COLUMNS_SUMS * K, sizeof(PetscScalar), &left.part));
        PetscCall(Products(&t, &left));
        if (A.csr.m == A.csr.n) PetscCall(Steps(&t, &left));
        PetscCall(Apart(&t));
        if (A.csr.m) HybTestCallFails(PETSC_ERR_PLIB, HybTestExec()->backend->columns->mult(HybTestExec(), 3, &t.there, t.x, HYB_SPMV_SET, NULL, t.z, NULL));
        PetscCall(CaseDestroy(&t));
      }
      RefMatDestroy(&A);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
