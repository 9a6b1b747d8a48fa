/*
  Krylov's vectors: PETSc's noise bit by bit, reciprocals and their zeros, products of many vectors with one, and
  Arnoldi's process against the plain loops of its definition, with one wait and with sums over processes; breakdowns,
  NaN, no entries at all; the same bits again, one wait whatever the steps, and every allocation failing in turn.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybkrylov.h>
#include <petsc/private/kspimpl.h>
#include <stdlib.h>
#include <string.h>

static const HybExec      *exec;
static const HybKrylovOps *ops;
static HybArena            mine, work;

static PetscErrorCode Forget(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&mine, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNoise(PetscCount first, PetscCount n)
{
  PetscScalar *x, *expected = (PetscScalar *)RefAlloc(n + 1, sizeof(PetscScalar));

  PetscFunctionBegin;
  HybTestBegin("noise of %td entries from %td on", n, first);
  for (PetscCount i = 0; i < n; i++) expected[i] = KSPNoisyHash_Private((PetscInt)(first + i));
  for (int offset = 0; offset < 2; offset++) {
    PetscCall(HybTestUploadArray(&mine, n + 1, sizeof(PetscScalar), expected, &x));
    PetscCall(exec->backend->zero(exec, x, (size_t)(n + 1) * sizeof(PetscScalar)));
    if (HybTestCall(ops->noise(exec, first, n, x + offset))) HybTestSameBits(n, sizeof(PetscScalar), x + offset, expected);
  }
  free(expected);
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* every gap-th entry is 0; gap 0: none */
static PetscErrorCode TestReciprocal(PetscCount n, PetscCount gap, PetscReal ofzero)
{
  PetscScalar *d = HybTestRandomVector(n + 1), *expected = (PetscScalar *)RefAlloc(n + 1, sizeof(PetscScalar)), *there, *inv;
  PetscReal   *mag   = (PetscReal *)RefAlloc(n + 1, sizeof(PetscReal));
  PetscCount  *terms = (PetscCount *)RefAlloc(n + 1, sizeof(PetscCount)), zeros, count = 0;

  PetscFunctionBegin;
  HybTestBegin("reciprocals of %td entries, every %tdth of them zero", n, gap);
  for (PetscCount i = 0; i < n; i++) {
    if (gap && i % gap == gap - 1) d[i] = i % 2 ? 0.0 : -0.0;
    count += d[i] == 0.0;
    expected[i] = d[i] == 0.0 ? ofzero : 1 / d[i];
    mag[i]      = PetscAbsScalar(expected[i]);
    terms[i]    = 1;
  }
  for (int offset = 0; offset < 2; offset++) {
    PetscCall(HybTestUploadArray(&mine, n + 1, sizeof(PetscScalar), d, &inv));
    PetscCall(HybTestUploadArray(&mine, n + 1, sizeof(PetscScalar), d, &there));
    /* one entry further on: no access of 16 bytes is possible */
    if (offset && n) PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), d, &there));
    zeros = -1;
    if (HybTestCall(ops->reciprocal(exec, &work, n, there, ofzero, NULL, &zeros))) HybTestCheck(zeros == count, "%td zeros were counted, there are %td", zeros, count);
    HybTestSameBits(n, sizeof(PetscScalar), there, d);
    zeros = -1;
    if (HybTestCall(ops->reciprocal(exec, &work, n, there, ofzero, inv + offset, &zeros))) HybTestSameScalars(n, inv + offset, expected, mag, terms, 4);
    HybTestCheck(zeros == count, "%td zeros were counted, there are %td", zeros, count);
    PetscCall(HybTestUploadArray(&mine, n + 1, sizeof(PetscScalar), d, &inv));
    if (HybTestCall(ops->reciprocal(exec, &work, n, there, ofzero, inv + offset, NULL))) HybTestSameScalars(n, inv + offset, expected, mag, terms, 4);
    zeros = -1;
    if (HybTestCall(ops->reciprocal(exec, &work, n, there, ofzero, there, &zeros))) HybTestSameScalars(n, there, expected, mag, terms, 4);
    HybTestCheck(zeros == count, "in place, %td zeros were counted, there are %td", zeros, count);
  }
  RefFree(d, expected, mag, terms);
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDots(PetscCount n, PetscInt k, PetscCount ld, PetscCount offset)
{
  const PetscCount size = offset + ld * PetscMax(k, 1);
  PetscScalar     *hv = HybTestRandomVector(size), *hw = HybTestRandomVector(n + offset), *V, *w, h[HYB_KRYLOV_STEPS + 2], again[HYB_KRYLOV_STEPS + 2];
  HybKrylovBasis   B;

  PetscFunctionBegin;
  HybTestBegin("%d products of %td entries, %td apart, from %td on", (int)k, n, ld, offset);
  PetscCall(HybTestUploadArray(&mine, size, sizeof(PetscScalar), hv, &V));
  PetscCall(HybTestUploadArray(&mine, n + offset, sizeof(PetscScalar), hw, &w));
  B = (HybKrylovBasis){.n = n, .ld = ld, .steps = HYB_KRYLOV_STEPS, .u = V + offset};
  PetscCall(HybArenaCalloc(&mine, HYB_WORK(exec), (HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS + 1, sizeof(*B.h), &B.h));
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), (HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_SUMS, sizeof(*B.sums), &B.sums));
  PetscCall(HybArenaCalloc(&mine, HYB_WORK(exec), 1, sizeof(*B.arrived), &B.arrived));
  h[k + 1] = again[k + 1] = 77; /* behind the products, project() gives one square */
  if (HybTestCall(ops->project(exec, &B, k - 1, w + offset, h)) && HybTestCall(ops->project(exec, &B, k - 1, w + offset, again))) {
    for (PetscInt l = 0; l < k; l++) {
      PetscScalar sum = 0;
      PetscReal   mag = 0;

      for (PetscCount i = 0; i < n; i++) {
        sum += PetscConj(hv[offset + l * ld + i]) * hw[offset + i];
        mag += PetscAbsScalar(hv[offset + l * ld + i]) * PetscAbsScalar(hw[offset + i]);
      }
      HybTestCheck(HybTestClose(h[l], sum, mag, n, 2), "product %d", (int)l);
    }
    HybTestCheck(!memcmp(h, again, (size_t)k * sizeof(*h)), "other bits than before");
    HybTestCheck(h[k + 1] == 77.0 && again[k + 1] == 77.0, "more than %d products were written", (int)k);
  }
  if (n > 2 && k > 1) { /* what is not a number is not lost, and stays in its own product */
    PetscScalar *bad;

    hv[offset + ld + n - 1] = NAN;
    PetscCall(HybTestUploadArray(&mine, size, sizeof(PetscScalar), hv, &bad));
    B.u = bad + offset;
    if (HybTestCall(ops->project(exec, &B, k - 1, w + offset, again)))
      for (PetscInt l = 0; l < k; l++) HybTestCheck(l == 1 ? PetscIsNanScalar(again[l]) : !memcmp(&h[l], &again[l], sizeof(*h)), "product %d with NaN in vector 1", (int)l);
  }
  RefFree(hv, hw);
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the definition */
static PetscInt Arnoldi(const RefMat *A, const PetscScalar *dinv, const PetscScalar *b, PetscInt steps, PetscScalar *H)
{
  const PetscInt n   = A->csr.m;
  PetscScalar   *V   = (PetscScalar *)RefAlloc((PetscCount)(steps + 1) * n + 1, sizeof(PetscScalar));
  PetscReal     *mag = (PetscReal *)RefAlloc((PetscCount)n + 1, sizeof(PetscReal)), norm = 0;
  PetscCount    *terms = (PetscCount *)RefAlloc((PetscCount)n + 1, sizeof(PetscCount));
  PetscInt       done  = 0;

  for (PetscInt e = 0; e < steps * (steps + 1); e++) H[e] = 0;
  for (PetscInt r = 0; r < n; r++) V[r] = (dinv ? dinv[r] : 1) * b[r];
  for (PetscInt k = 0; k <= steps; k++) {
    PetscScalar *w = V + (PetscCount)k * n, *h = k ? H + (k - 1) * (steps + 1) : NULL;

    if (k) {
      RefSpMV(A, w - n, 1, NULL, w, mag, terms);
      for (PetscInt r = 0; r < n; r++) w[r] *= dinv ? dinv[r] : 1;
      for (PetscInt l = 0; l < k; l++)
        for (PetscInt r = 0; r < n; r++) h[l] += PetscConj(V[(PetscCount)l * n + r]) * w[r];
      for (PetscInt l = 0; l < k; l++)
        for (PetscInt r = 0; r < n; r++) w[r] -= h[l] * V[(PetscCount)l * n + r];
    }
    norm = 0;
    for (PetscInt r = 0; r < n; r++) norm += PetscRealPart(PetscConj(w[r]) * w[r]);
    norm = PetscSqrtReal(norm);
    if (k) h[k] = norm;
    done = k;
    if (norm == 0 || k == steps) break;
    for (PetscInt r = 0; r < n; r++) w[r] /= norm;
  }
  RefFree(V, mag, terms);
  return done;
}

static PetscErrorCode RunArnoldi(const RefMat *A, const PetscScalar *dinv, const PetscScalar *b, PetscInt steps, PetscScalar *H, PetscInt *done, unsigned long long *waits)
{
  const PetscInt n = A->csr.m;
  HybSpMV        mv;
  HybCSR         there;
  PetscScalar   *td = NULL, *tb;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  if (dinv) PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), dinv, &td));
  PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), b, &tb));
  for (PetscInt e = 0; e < steps * (steps + 1); e++) H[e] = 7e77;
  *done = -1;
  PetscCall(HybSpMVInit(&mv, exec, "auto", 1));
  HybTestCall(HybSpMVSetUp(&mv, &there));
  *waits = HybTestWaits();
  HybTestCall(HybKrylovArnoldi(&mv, &work, &there, td, tb, steps, H, done));
  *waits = HybTestWaits() - *waits;
  HybTestCheck(!work.bytes, "%zu bytes are left", work.bytes);
  HybTestSameBits(n, sizeof(PetscScalar), tb, b);
  HybTestCall(HybSpMVDestroy(&mv));
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the process of a distributed matrix asks for, of one process */
typedef struct {
  HybSpMV *mv;
  HybCSR   A;
  PetscInt sums;
} Alone;

static PetscErrorCode AloneMult(void *ctx, PetscErrorCode before, const PetscScalar *x, PetscScalar *y)
{
  Alone *a = (Alone *)ctx;

  PetscFunctionBegin;
  PetscCall(before);
  PetscCall(HybSpMVApply(a->mv, &a->A, x, HYB_SPMV_SET, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AloneSum(void *ctx, PetscErrorCode before, PetscInt n, PetscScalar *v)
{
  PetscFunctionBegin;
  ((Alone *)ctx)->sums++;
  PetscCall(before);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* as RunArnoldi() */
static PetscErrorCode RunPar(const RefMat *A, const PetscScalar *dinv, const PetscScalar *b, PetscInt steps, PetscScalar *H, PetscInt *done)
{
  const PetscInt n  = A->csr.m;
  PetscScalar   *td = NULL, *tb;
  HybSpMV        mv;
  Alone          a  = {&mv, {0}, 0};
  HybKrylovPar   op = {AloneMult, AloneSum, &a};

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&mine, &A->csr, &a.A));
  if (dinv) PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), dinv, &td));
  PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscScalar), b, &tb));
  for (PetscInt e = 0; e < steps * (steps + 1); e++) H[e] = 7e77;
  *done = -1;
  PetscCall(HybSpMVInit(&mv, exec, "auto", 1));
  HybTestCall(HybSpMVSetUp(&mv, &a.A));
  HybTestCall(HybKrylovArnoldiPar(exec, &work, &op, PETSC_SUCCESS, n, td, tb, steps, H, done));
  HybTestCheck(!work.bytes, "%zu bytes are left", work.bytes);
  HybTestCheck(a.sums <= steps + 2, "%d sums for %d steps", (int)a.sums, (int)steps);
  HybTestSameBits(n, sizeof(PetscScalar), tb, b);
  HybTestCall(HybSpMVDestroy(&mv));
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one of many processes has an error, and the sums tell the others of it */
static PetscErrorCode TestParErrors(void)
{
  const PetscScalar b[5] = {1, 2, 3, 4, 5};
  PetscScalar       H[2], *tb;
  HybSpMV           mv;
  RefMat            A;
  Alone             a  = {&mv, {0}, 0};
  HybKrylovPar      op = {AloneMult, AloneSum, &a};
  PetscInt          done;

  PetscFunctionBegin;
  HybTestBegin("errors meet at the sums");
  HybTestMatBanded(5, 5, 1, 1, &A);
  PetscCall(HybTestUpload(&mine, &A.csr, &a.A));
  PetscCall(HybTestUploadArray(&mine, 5, sizeof(PetscScalar), b, &tb));
  PetscCall(HybSpMVInit(&mv, exec, "auto", 1));
  PetscCall(HybSpMVSetUp(&mv, &a.A));
  HybTestCallFails(PETSC_ERR_USER, HybKrylovArnoldiPar(exec, &work, &op, PETSC_ERR_USER, 5, NULL, tb, 1, H, &done));
  HybTestCheck(a.sums == 1, "an error from before met %d sums, not one", (int)a.sums);
  PetscCall(HybArenaReset(&work));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybKrylovArnoldiPar(exec, &work, &op, PETSC_SUCCESS, 5, NULL, tb, HYB_KRYLOV_STEPS + 1, H, &done));
  HybTestCall(HybSpMVDestroy(&mv));
  RefMatDestroy(&A);
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* H beside R, as far as R is more than rounding; expected: steps of R, -1: its last ones are none */
static PetscInt CompareSteps(PetscInt steps, PetscInt expected, const PetscScalar *H, const PetscScalar *R)
{
  PetscReal largest = 0;

  for (PetscInt e = 0; e < steps * (steps + 1); e++) largest = PetscMax(largest, PetscAbsScalar(R[e]));
  for (PetscInt k = 0; k < steps; k++) {
    /* from a vector that was nothing but rounding on, nothing can be compared */
    if (k && PetscAbsScalar(R[k + (k - 1) * (steps + 1)]) < 1e-3 * largest) return -1;
    for (PetscInt l = 0; l <= steps; l++) HybTestCheck(PetscAbsScalar(H[l + k * (steps + 1)] - R[l + k * (steps + 1)]) <= 1e6 * PETSC_MACHINE_EPSILON * largest, "H(%d,%d) is %g, not %g", (int)l, (int)k, (double)PetscRealPart(H[l + k * (steps + 1)]), (double)PetscRealPart(R[l + k * (steps + 1)]));
  }
  return expected == steps && PetscAbsScalar(R[steps * (steps + 1) - 1]) >= 1e-3 * largest ? steps : -1;
}

static PetscErrorCode TestArnoldi(const char *name, const RefMat *A, PetscBool scaled, PetscInt steps)
{
  const PetscInt     n    = A->csr.m;
  PetscScalar       *dinv = scaled ? HybTestRandomVector(n) : NULL, *b = HybTestRandomVector(n), H[(HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS], again[(HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS], R[(HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS];
  PetscInt           done, redone, expected;
  unsigned long long waits, first;

  PetscFunctionBegin;
  HybTestBegin("Arnoldi of %s, %d x %d, %d steps%s", name, (int)n, (int)n, (int)steps, scaled ? ", D^-1" : "");
  if (scaled)
    for (PetscInt r = 0; r < n; r++) dinv[r] += dinv[r] == 0.0 ? 1 : 0;
  expected = Arnoldi(A, dinv, b, steps, R);
  PetscCall(RunArnoldi(A, dinv, b, steps, H, &done, &waits));
  PetscCall(RunArnoldi(A, dinv, b, steps, again, &redone, &waits));
  HybTestCheck(done == redone && !memcmp(H, again, (size_t)(steps * (steps + 1)) * sizeof(*H)), "other bits than before");
  PetscCall(RunArnoldi(A, dinv, b, 1, again, &redone, &first));
  HybTestCheck(waits == first, "%llu waits for %d steps, %llu for one", waits, (int)steps, first);
  expected = CompareSteps(steps, expected, H, R);
  if (expected >= 0) HybTestCheck(done == expected, "%d steps were done, not %d", (int)done, (int)expected);
  PetscCall(RunPar(A, dinv, b, steps, H, &done));
  PetscCall(RunPar(A, dinv, b, steps, again, &redone));
  HybTestCheck(done == redone && !memcmp(H, again, (size_t)(steps * (steps + 1)) * sizeof(*H)), "by sums, other bits than before");
  (void)CompareSteps(steps, done, H, R);
  if (expected >= 0) HybTestCheck(done == expected, "by sums, %d steps were done, not %d", (int)done, (int)expected);
  RefFree(dinv, b);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* matrices whose H is known to the last bit; A is n x n with these entries, b is its first unit vector times 4 */
static PetscErrorCode TestBreakdown(const char *name, PetscInt n, PetscInt nnz, const PetscInt *row, const PetscInt *col, const PetscScalar *value, PetscScalar b0, PetscInt steps, PetscInt expected, const PetscScalar *columns)
{
  PetscScalar       *b = (PetscScalar *)RefAlloc((PetscCount)n + 1, sizeof(PetscScalar)), H[(HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS];
  PetscInt           done;
  unsigned long long waits;
  RefMat             A;

  PetscFunctionBegin;
  HybTestBegin("%s", name);
  if (nnz)
    RefCOO(n, n, nnz, row, col, value, &A);
  else
    HybTestMatEmpty(n, n, &A);
  b[0] = b0;
  for (int par = 0; par < 2; par++) {
    PetscCall(par ? RunPar(&A, NULL, b, steps, H, &done) : RunArnoldi(&A, NULL, b, steps, H, &done, &waits));
    HybTestCheck(done == expected, "%d columns are whole, not %d", (int)done, (int)expected);
    for (PetscInt e = 0; e < steps * (steps + 1); e++) {
      const PetscScalar v = e < expected * (steps + 1) ? columns[e] : 0;

      HybTestCheck(H[e] == v, "H(%d,%d) is %g, not %g", (int)(e % (steps + 1)), (int)(e / (steps + 1)), (double)PetscRealPart(H[e]), (double)PetscRealPart(v));
    }
  }
  RefMatDestroy(&A);
  free(b);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestBreakdowns(void)
{
  const PetscInt    zero = 0, row2[] = {0, 1}, col2[] = {1, 0}, shift[] = {1, 2, 3, 4, 5}, from[] = {0, 1, 2, 3, 4};
  const PetscScalar two = 2, ones[] = {1, 1}, nan = NAN, one[] = {2, 0, 0, 0}, swap[] = {0, 1, 0, 0, 1, 0, 0, 0};
  const PetscScalar overflow[] = {1, 1, 1, PETSC_MAX_REAL / 4, 1}, steps5[] = {0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0};

  PetscFunctionBegin;
  PetscCall(TestBreakdown("no rows", 0, 0, NULL, NULL, NULL, 0, 3, 0, NULL));
  PetscCall(TestBreakdown("one row", 1, 1, &zero, &zero, &two, 4, 3, 1, one));
  PetscCall(TestBreakdown("one row, one step", 1, 1, &zero, &zero, &two, 4, 1, 1, one));
  PetscCall(TestBreakdown("two rows", 2, 2, row2, col2, ones, 4, 3, 2, swap));
  PetscCall(TestBreakdown("a matrix without entries", 5, 0, NULL, NULL, NULL, 4, 3, 1, (const PetscScalar[]){0, 0, 0, 0}));
  PetscCall(TestBreakdown("a right-hand side of zeros", 2, 2, row2, col2, ones, 0, 3, 0, NULL));
  PetscCall(TestBreakdown("a right-hand side that is not a number", 2, 2, row2, col2, ones, NAN, 3, 0, NULL));
  PetscCall(TestBreakdown("a right-hand side that is infinite", 2, 2, row2, col2, ones, INFINITY, 3, 0, NULL));
  PetscCall(TestBreakdown("a matrix that is not a number", 1, 1, &zero, &zero, &nan, 4, 3, 0, NULL));
  PetscCall(TestBreakdown("a norm that overflows", 6, 5, shift, from, overflow, 4, 5, 3, steps5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestErrors(void)
{
  HybSpMV     mv;
  RefMat      A, B;
  HybCSR      there, other;
  PetscScalar H[2], *b;
  PetscInt    done;

  PetscFunctionBegin;
  HybTestBegin("what cannot be done is an error");
  HybTestMatBanded(5, 5, 1, 1, &A);
  HybTestMatBanded(5, 4, 1, 1, &B);
  PetscCall(HybTestUpload(&mine, &A.csr, &there));
  PetscCall(HybTestUpload(&mine, &B.csr, &other));
  PetscCall(HybTestUploadArray(&mine, 5, sizeof(PetscScalar), A.csr.a, &b));
  PetscCall(HybSpMVInit(&mv, exec, "auto", 1));
  PetscCall(HybSpMVSetUp(&mv, &there));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybKrylovArnoldi(&mv, &work, &there, NULL, b, 0, H, &done));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybKrylovArnoldi(&mv, &work, &there, NULL, b, HYB_KRYLOV_STEPS + 1, H, &done));
  HybTestCallFails(PETSC_ERR_ARG_SIZ, HybKrylovArnoldi(&mv, &work, &other, NULL, b, 1, H, &done));
  HybTestCallFails(PETSC_ERR_ARG_IDN, HybKrylovArnoldi(&mv, &mv.work, &there, NULL, b, 1, H, &done));
  HybTestCall(HybSpMVDestroy(&mv));
  RefMatDestroy(&A, &B);
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  HybSpMV     *mv;
  HybCSR       A;
  PetscScalar *d, *b;
} Faults;

static PetscErrorCode FaultsRun(void *ctx)
{
  Faults      *f  = (Faults *)ctx;
  Alone        a  = {f->mv, f->A, 0};
  HybKrylovPar op = {AloneMult, AloneSum, &a};
  PetscScalar  H[4 * 3];
  PetscInt     done;
  PetscCount   zeros;

  PetscFunctionBegin;
  PetscCall(ops->reciprocal(exec, &work, f->A.m, f->d, 1, NULL, &zeros));
  PetscCall(ops->noise(exec, 5, f->A.m, f->b));
  PetscCall(HybKrylovArnoldi(f->mv, &work, &f->A, f->d, f->b, 3, H, &done));
  HybTestCheck(done == 3 && zeros == 0, "%d steps", (int)done);
  PetscCall(HybKrylovArnoldiPar(exec, &work, &op, PETSC_SUCCESS, f->A.m, f->d, f->b, 3, H, &done));
  HybTestCheck(done == 3, "%d steps by sums", (int)done);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultsCleanUp(void *ctx)
{
  Faults *f = (Faults *)ctx;

  PetscFunctionBegin;
  PetscCall(HybTestReset(&work, &f->mv->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestFaults(void)
{
  HybSpMV      mv;
  RefMat       A;
  Faults       f = {&mv, {0}, NULL, NULL};
  PetscScalar *random;

  PetscFunctionBegin;
  HybTestBegin("every allocation failing in turn");
  HybTestMatStencil(5, 9, 9, 1, &A);
  random = HybTestRandomVector(A.csr.m);
  PetscCall(HybTestUpload(&mine, &A.csr, &f.A));
  PetscCall(HybTestUploadArray(&mine, A.csr.m, sizeof(PetscScalar), random, &f.d));
  PetscCall(HybTestUploadArray(&mine, A.csr.m, sizeof(PetscScalar), random, &f.b));
  PetscCall(HybSpMVInit(&mv, exec, "auto", 1));
  PetscCall(HybSpMVSetUp(&mv, &f.A));
  HybTestFaults(FaultsRun, FaultsCleanUp, &f);
  HybTestCall(HybSpMVDestroy(&mv));
  free(random);
  RefMatDestroy(&A);
  PetscCall(Forget(NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  const PetscCount sizes[]  = {0, 1, 2, 3, 31, 64, 257, 1023, 2049};
  const PetscInt   counts[] = {1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 29, 30};
  char             name[64];
  RefMat           A;

  PetscFunctionBegin;
  exec = HybTestExec();
  ops  = exec->backend->krylov;
  PetscCall(HybTestArenas(exec, &mine, &work));
  if (!ops) {
    HybTestBegin("Krylov's vectors");
    HybTestSkip("the backend has none");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes); s++) {
    PetscCall(TestNoise(0, sizes[s]));
    PetscCall(TestNoise((PetscCount)PETSC_MAX_INT - sizes[s] - 1, sizes[s]));
    for (PetscCount gap = 0; gap < 4; gap++) PetscCall(TestReciprocal(sizes[s], gap, gap & 1));
    for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(counts); c++)
      if (sizes[s] && (!HybTestSlow() || (s + c) % 3 == 0)) PetscCall(TestDots(sizes[s], counts[c], sizes[s] + c % 3, (PetscCount)(c / 3) % 2));
  }
  PetscCall(TestNoise(INT64_C(70000), 70000));
#if defined(PETSC_USE_64BIT_INDICES)
  PetscCall(TestNoise(INT64_C(5000000000), 1000));
#endif
  /* more than the blocks do in one turn */
  PetscCall(TestDots(HYB_KRYLOV_SUMS * 512 + 3001, HybTestSlow() ? 2 : 11, HYB_KRYLOV_SUMS * 512 + 3002, 0));
  for (PetscInt z = 0; HybTestZoo(z, PETSC_TRUE, name, &A); z++) {
    if (A.csr.m < 3000) {
      PetscCall(TestArnoldi(name, &A, (PetscBool)(z % 2), 1 + z % 5));
      if (!HybTestSlow()) PetscCall(TestArnoldi(name, &A, (PetscBool) !(z % 2), 10));
    }
    RefMatDestroy(&A);
  }
  HybTestMatStencil(7, 12, 11, 10, &A);
  PetscCall(TestArnoldi("a 7-point stencil", &A, PETSC_FALSE, 10));
  PetscCall(TestArnoldi("a 7-point stencil", &A, PETSC_TRUE, HybTestSlow() ? 10 : HYB_KRYLOV_STEPS));
  RefMatDestroy(&A);
  PetscCall(TestBreakdowns());
  PetscCall(TestErrors());
  PetscCall(TestParErrors());
  PetscCall(TestFaults());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
