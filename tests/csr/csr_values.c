/* set, scale, axpy, diagonalscale, getdiagonal, diagonalset, norm: against plain loops on the zoo, with special
   values */
#include "csrtest.h"

/* the three norms of the values now in A */
static PetscErrorCode TestNorms(const RefMat *A)
{
  static const HybNorm types[]     = {HYB_NORM_1, HYB_NORM_FROBENIUS, HYB_NORM_INFINITY};
  static const char   *typenames[] = {"1", "Frobenius", "infinity"};
  HybCSR               there;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  for (int t = 0; t < 3; t++) {
    PetscReal found = -1, again = -2, expected = RefNorm(A, types[t]);

    if (!HybTestCall(ops->norm(exec, &work, &there, types[t], &found))) continue;
    HybTestCheck(HybTestClose(found, expected, expected, A->csr.nnz + 2, 1), "%s norm is %.17g, expected %.17g", typenames[t], (double)found, (double)expected);
    HybTestCall(ops->norm(exec, &work, &there, types[t], &again));
    HybTestCheck(!memcmp(&found, &again, sizeof(found)), "%s norm is %.17g the second time, %.17g the first", typenames[t], (double)again, (double)found);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDiagonal(const char *name, const RefMat *A)
{
  const PetscInt n  = PetscMin(A->csr.m, A->csr.n);
  PetscScalar   *hd = HybTestRandomVector(n), *e = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar)), *d, *g, alpha = HybTestRandomScalar();
  HybCSR         there;
  RefMat         E;
  PetscCount     lacking = 0;

  PetscFunctionBegin;
  HybTestBegin("diagonal of %s", name);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), hd, &g));
  PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), hd, &d));
  for (PetscInt r = 0; r < n; r++) {
    PetscBool stored;

    e[r] = RefGet(A, r, r, &stored);
    lacking += !stored;
  }
  HybTestCall(ops->getdiagonal(exec, &there, g));
  HybTestSameBits(n, sizeof(PetscScalar), g, e);
  for (int variant = 0; variant < 4; variant++) { /* set and add, by vector and by constant */
    const PetscBool add = (PetscBool)(variant & 1), constant = (PetscBool)(variant >> 1);
    PetscCount      missing = -1;

    RefMatCopy(A, &E);
    if (!lacking) {
      for (PetscInt r = 0; r < n; r++)
        for (PetscInt k = E.csr.i[r]; k < E.csr.i[r + 1]; k++)
          if (E.csr.j[k] == r) E.csr.a[k] = (add ? E.csr.a[k] : (PetscScalar)0) + (constant ? alpha : hd[r]);
    }
    PetscCall(HybArenaFree(&mine, &there.a));
    PetscCall(HybTestUploadArray(&mine, A->csr.nnz, sizeof(PetscScalar), A->csr.a, &there.a));
    HybTestCall(ops->diagonalset(exec, &work, &there, constant ? NULL : d, &alpha, add, &missing));
    HybTestCheck(missing == lacking, "variant %d: %td missing, expected %td", variant, missing, lacking);
    HybTestCheck(HybTestSameScalars(E.csr.nnz, there.a, E.csr.a, NULL, NULL, 1), "variant %d", variant);
    RefMatDestroy(&E);
  }
  RefFree(hd, e);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestOne(const char *name, RefMat *A)
{
  const PetscCount nnz   = A->csr.nnz;
  PetscScalar      alpha = HybTestRandomScalar(), *x, *hx = HybTestRandomVector(nnz), *e = (PetscScalar *)RefAlloc(nnz, sizeof(PetscScalar)), *hl = HybTestRandomVector(A->csr.m), *hr = HybTestRandomVector(A->csr.n), *l, *r;
  PetscReal       *mag = (PetscReal *)RefAlloc(nnz, sizeof(PetscReal));
  HybCSR           there;
  static PetscInt  which = 0;

  PetscFunctionBegin;
  HybTestBegin("set, scale, axpy on %s", name);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  PetscCall(HybTestUploadArray(&mine, nnz, sizeof(PetscScalar), hx, &x));
  for (PetscCount k = 0; k < nnz; k++) {
    e[k]   = A->csr.a[k] * alpha + alpha * hx[k];
    mag[k] = PetscAbsScalar(alpha) * (PetscAbsScalar(A->csr.a[k]) + PetscAbsScalar(hx[k]));
  }
  HybTestCall(ops->scale(exec, nnz, &alpha, there.a));
  HybTestCall(ops->axpy(exec, nnz, &alpha, x, there.a));
  HybTestSameScalars(nnz, there.a, e, mag, NULL, 2);
  for (PetscCount k = 0; k < nnz; k++) e[k] = alpha;
  HybTestCall(ops->set(exec, nnz, &alpha, there.a));
  HybTestSameBits(nnz, sizeof(PetscScalar), there.a, e);
  HybTestBegin("diagonal scaling of %s", name);
  PetscCall(HybTestUploadArray(&mine, A->csr.m, sizeof(PetscScalar), hl, &l));
  PetscCall(HybTestUploadArray(&mine, A->csr.n, sizeof(PetscScalar), hr, &r));
  for (int variant = 0; variant < 4; variant++) {
    for (PetscInt row = 0; row < A->csr.m; row++)
      for (PetscInt k = A->csr.i[row]; k < A->csr.i[row + 1]; k++) e[k] = A->csr.a[k] * (variant & 1 ? hl[row] : (PetscScalar)1) * (variant & 2 ? hr[A->csr.j[k]] : (PetscScalar)1);
    PetscCall(HybArenaFree(&mine, &there.a));
    PetscCall(HybTestUploadArray(&mine, nnz, sizeof(PetscScalar), A->csr.a, &there.a));
    HybTestCall(ops->diagonalscale(exec, &there, variant & 1 ? l : NULL, variant & 2 ? r : NULL));
    HybTestCheck(HybTestSameScalars(nnz, there.a, e, NULL, NULL, 4), "left %d, right %d", variant & 1, variant >> 1);
  }
  if (!HybTestSlow() || which++ % 6 == 0) { /* a reduction keeps the emulator busy for a second */
    HybTestBegin("norms of %s", name);
    PetscCall(TestNorms(A));
  }
  PetscCall(TestDiagonal(name, A));
  RefFree(hx, e, hl, hr, mag);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  char   name[64];
  RefMat A, B;

  PetscFunctionBegin;
  PetscCall(Start());
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    PetscCall(TestOne(name, &A));
    RefMatDestroy(&A);
  }
  HybTestMatRandom(HybTestSize(3000, 300), HybTestSize(3000, 300), 0, 30, &A);
  PetscCall(TestOne("a larger random matrix", &A));
  RefMatDestroy(&A);
  HybTestMatStencil(7, 12, 11, HybTestSize(20, 2), &A);
  PetscCall(TestOne("a larger stencil", &A));
  RefMatDestroy(&A);
  /* a band with a hole, and one that starts beside the diagonal */
  HybTestMatBanded(70, 70, -1, 3, &A);
  PetscCall(TestDiagonal("a band above the diagonal", &A));
  RefMatDestroy(&A);
  HybTestMatBanded(70, 70, 2, 2, &A);
  HybTestMatEmptyRows(&A, 69, 70, 1);
  PetscCall(TestDiagonal("a band without its last row", &A));
  RefMatDestroy(&A);
  HybTestMatRandom(HybTestSize(200, 60), HybTestSize(200, 60), 1, 7, &A);
  {
    const PetscReal          huge = PETSC_MAX_REAL / 4, tiny = 16 / PETSC_MAX_REAL, values[] = {huge, tiny, 0, 1};
    static const char *const what[] = {"near overflow", "near underflow", "zero", "one"};

    for (int v = 0; v < 4; v++) {
      PetscReal found = -1, scaled;

      HybTestBegin("Frobenius norm of values %s", what[v]);
      RefMatCopy(&A, &B);
      for (PetscCount k = 0; k < B.csr.nnz; k++) B.csr.a[k] = (k % 7 ? values[v] : 0);
      {
        HybCSR     there;
        PetscCount count = 0;

        for (PetscCount k = 0; k < B.csr.nnz; k++) count += k % 7 != 0;
        PetscCall(HybTestUpload(&mine, &B.csr, &there));
        HybTestCall(ops->norm(exec, &work, &there, HYB_NORM_FROBENIUS, &found));
        scaled = PetscSqrtReal((PetscReal)count) * (values[v] / 256); /* may itself overflow with the factor */
        if (scaled > PETSC_MAX_REAL / 256)
          HybTestCheck(PetscIsInfReal(found), "%g, expected infinity", (double)found);
        else
          HybTestCheck(PetscAbsReal(found / 256 - scaled) <= 1e-3 * scaled, "%g, expected %g * 256", (double)found, (double)scaled);
      }
      RefMatDestroy(&B);
    }
  }
  for (int v = 0; v < 2; v++) {
    HybTestBegin("norms of a matrix with %s", v ? "an infinity" : "a NaN");
    for (int t = 0; t < 3; t++) {
      static const HybNorm types[] = {HYB_NORM_1, HYB_NORM_FROBENIUS, HYB_NORM_INFINITY};
      PetscReal            zero = 0, found = -1;
      HybCSR               there;

      RefMatCopy(&A, &B);
      B.csr.a[B.csr.nnz / 3] = v ? 1 / zero : zero / zero;
      PetscCall(HybTestUpload(&mine, &B.csr, &there));
      HybTestCall(ops->norm(exec, &work, &there, types[t], &found));
      if (types[t] == HYB_NORM_FROBENIUS || v)
        HybTestCheck(v ? PetscIsInfReal(found) : PetscIsNanReal(found), "norm %d is %g", t, (double)found);
      else { /* PETSc passes over sums that are NaN */
        const PetscReal expected = RefNorm(&B, types[t]);

        HybTestCheck(expected > 0 && PetscAbsReal(found - expected) <= 1e-5 * expected, "norm %d is %g, expected %g", t, (double)found, (double)expected);
      }
      RefMatDestroy(&B);
    }
  }
  RefMatDestroy(&A);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
