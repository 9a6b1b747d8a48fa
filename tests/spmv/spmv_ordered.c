/*
  Products and smoother's steps with a copy of the values in another order, beside the plan that it was made of. By
  diagonals: stencils of every number that has a kernel of its own, and of others, rows at the grid's faces. By slices:
  near and far columns, square and other matrices, one to eight lanes to a row, empty rows. Other values. Two steps from
  zero at once. Values of 16 bits in single precision, of rows that are large and small. Which matrices have no such
  order.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybcycle.h>
#include <aijhybridgpu/private/hybspmv.h>
#include <stdlib.h>
#include <string.h>

/* a plan, and the ordered one beside it; *fits: there is one */
static PetscErrorCode Make(const char *method, const HybCSR *there, HybSpMV *mv, HybSpMV *ordered, PetscBool *fits)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscCall(HybSpMVInit(mv, HybTestExec(), HybTestExec()->backend->device ? method : "auto", 1));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybSpMVSetUp(mv, there);
  PetscCall(PetscPopErrorHandler());
  if (!HybTestCheck(!ierr || ierr == PETSC_ERR_SUP, "error %d", (int)ierr) || ierr) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestCall(HybSpMVOrderUp(mv, there, ordered, fits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* exact: the bits are those of the plan without a
   copy */
static PetscErrorCode TestBy(const char *method, const char *name, RefMat *A, PetscBool expected, PetscBool exact)
{
  const HybExec  *exec  = HybTestExec();
  const PetscInt  m     = A->csr.m;
  const PetscReal c[3]  = {0.7, 1.3, -0.4};
  HybArena        arena = HybArenaOn(exec);
  HybSpMV         mv, ordered;
  HybCSR          there;
  PetscBool       fits;
  PetscReal      *tc, *mag = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  PetscCount     *terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  PetscScalar    *x, *y, *d, *w, *z, *hx = HybTestRandomVector(A->csr.n), *hy = HybTestRandomVector(m), *hd = HybTestRandomVector(m), *hw = HybTestRandomVector(m), *hz = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *found = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));

  PetscFunctionBegin;
  HybTestBegin("%s: %s", method, name);
  PetscCall(HybTestUpload(&arena, &A->csr, &there));
  PetscCall(Make(method, &there, &mv, &ordered, &fits));
  HybTestCheck(fits == expected, "%s", fits ? "there is a plan" : "there is no plan");
  if (fits) {
    PetscCall(HybTestUploadArray(&arena, A->csr.n, sizeof(PetscScalar), hx, &x));
    PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hy, &y));
    PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hd, &d));
    PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hw, &w));
    PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hw, &z));
    PetscCall(HybTestUploadArray(&arena, 3, sizeof(PetscReal), c, &tc));
    for (int time = 0; time < 2; time++) {
      if (time) {
        HybTestRandomize(A);
        PetscCall(exec->backend->copy(exec, there.a, A->csr.a, sizeof(PetscScalar) * (size_t)A->csr.nnz, HYB_COPY_HOST_TO_DEVICE));
      }
      HybTestCall(HybSpMVOrder(&mv, &there, &ordered));
      for (int mode = 0; mode < 3; mode++) {
        RefSpMV(A, hx, mode == HYB_SPMV_RESIDUAL ? -1 : 1, mode == HYB_SPMV_SET ? NULL : hy, hz, mag, terms);
        HybTestCall(HybSpMVApply(&ordered, &there, x, (HybSpMVMode)mode, mode == HYB_SPMV_SET ? NULL : y, z));
        HybTestSameScalars(m, z, hz, mag, terms, 2);
        if (!exact) continue;
        PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, found));
        HybTestCall(HybSpMVApply(&mv, &there, x, (HybSpMVMode)mode, mode == HYB_SPMV_SET ? NULL : y, z));
        HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), z, found), "other bits than without the copy, mode %d", mode);
      }
      /* hz: the residual. In place of an older iterate, and without one */
      for (int way = 0; way < 2 && m == A->csr.n; way++) {
        const HybSpMVStep step  = {.y = y, .dinv = d, .w = way ? z : NULL, .c = tc, .z = z};
        PetscReal         worst = 0, norm = 0;

        PetscCall(exec->backend->copy(exec, z, hw, sizeof(PetscScalar) * (size_t)m, HYB_COPY_HOST_TO_DEVICE));
        HybTestCall(HybSpMVApplyStep(&ordered, &there, x, &step));
        PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, found));
        for (PetscInt k = 0; k < m; k++) {
          const PetscScalar t = c[0] * (hd[k] * hz[k]), u = c[1] * hx[k], want = (way ? c[2] * hw[k] + u : u) + t;

          norm  = PetscMax(norm, PetscAbsScalar(want));
          worst = PetscMax(worst, PetscAbsScalar(found[k] - want));
        }
        HybTestCheck(worst <= 100 * PETSC_MACHINE_EPSILON * norm, "a step is %g apart, of %g", (double)worst, (double)norm);
      }
      /* the first step from zero, made before and on the way */
      if (HybSpMVTakesFirst(&ordered)) {
        const HybSpMVStep after = {.y = y, .dinv = d, .c = tc, .z = z}, within = {.y = y, .dinv = d, .c = tc, .z = z, .first = tc + 1};
        PetscScalar      *one;

        PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hw, &one));
        PetscCall(exec->backend->cycle->first(exec, m, tc + 1, d, y, one));
        HybTestCall(HybSpMVApplyStep(&ordered, &there, one, &after));
        PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, found));
        PetscCall(exec->backend->copy(exec, z, hw, sizeof(PetscScalar) * (size_t)m, HYB_COPY_HOST_TO_DEVICE));
        HybTestCall(HybSpMVApplyStep(&ordered, &there, NULL, &within));
        HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), z, found), "two steps from zero at once have other bits");
      }
    }
    HybTestCheck(HybTestSameBits(A->csr.n, sizeof(PetscScalar), x, hx) && HybTestSameBits(m, sizeof(PetscScalar), y, hy), "an operand was changed");
    HybTestCall(HybSpMVDestroy(&ordered));
  }
  HybTestCall(HybSpMVDestroy(&mv));
  PetscCall(HybArenaReset(&arena));
  RefFree(hx, hy, hd, hw, hz, found, mag, terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by diagonals, and by slices where that is said */
static PetscErrorCode TestOne(const char *name, RefMat *A, PetscBool diagonals)
{
  PetscFunctionBegin;
  PetscCall(TestBy("shape", name, A, diagonals, PETSC_TRUE));
  RefMatDestroy(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* uniform: rows are of one length, for which lanes have whole turns */
static PetscErrorCode TestSlices(const char *name, RefMat *A, PetscBool slices, PetscBool uniform)
{
  static const char *const ways[] = {"stream", "direct"}, *const lanes[] = {"1", "2", "4", "8"};

  PetscFunctionBegin;
  for (int k = 0; k < 5; k++) {
    PetscCall(HybTuningSet("rowgroup_way", ways[k > 0]));
    PetscCall(HybTuningSet("rowgroup_lanes", k ? lanes[k - 1] : NULL));
    PetscCall(HybTuningSet("ordered_fewest", "0"));
    if (k < 2 || uniform) PetscCall(TestBy("rowgroup", name, A, slices, PETSC_TRUE));
    PetscCall(HybTuningSet("ordered_fewest", NULL));
    PetscCall(HybTuningSet("rowgroup_lanes", NULL));
    PetscCall(HybTuningSet("rowgroup_way", NULL));
  }
  RefMatDestroy(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n scalars in single precision, and back */
static float *Narrowed(PetscCount n, const PetscScalar *v)
{
  float *to = (float *)RefAlloc(n, sizeof(PetscScalar));

  for (PetscCount k = 0; k < n; k++) {
    to[PetscDefined(USE_COMPLEX) ? 2 * k : k] = (float)PetscRealPart(v[k]);
    if (PetscDefined(USE_COMPLEX)) to[2 * k + 1] = (float)PetscImaginaryPart(v[k]);
  }
  return to;
}

static PetscScalar Widened(const float *v, PetscInt k)
{
  return PetscDefined(USE_COMPLEX) ? PetscCMPLX((PetscReal)v[2 * k], (PetscReal)v[2 * k + 1]) : (PetscScalar)v[k];
}

/* Values of 16 bits, whose rows have magnitudes from 1e-24 to 1e24: each value is rounded to 11 bits, or to
   some 1e-11 of its row's largest one */
static PetscErrorCode TestHalf(const char *name, const char *lanes, RefMat *A)
{
  const size_t   bytes = sizeof(PetscScalar) / 2;
  const PetscInt m     = A->csr.m;
  HybExec        exec  = *HybTestExec();
  HybArena       arena = HybArenaOn(&exec);
  HybSpMV        mv, ordered;
  HybCSR         there;
  PetscBool      fits;
  PetscInt       other = 0;
  PetscScalar   *hx    = HybTestRandomVector(m);
  float         *fx, *fa, *fz[2];
  void          *x, *z;

  PetscFunctionBegin;
  if (!exec.backend->single) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("16 bits, %s lanes: %s", lanes, name);
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) A->csr.a[k] *= PetscPowReal(10, (PetscReal)(r * 7 % 49 - 24)) / (1 + 3 * (k % 4));
  fx = Narrowed(m, hx);
  fa = Narrowed(A->csr.nnz, A->csr.a);
  PetscCall(HybTestUpload(&arena, &A->csr, &there));
  PetscCall(exec.backend->copy(&exec, there.a, fa, bytes * (size_t)A->csr.nnz, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybTestUploadArray(&arena, m, bytes, fx, &x));
  PetscCall(HybTestUploadArray(&arena, m, bytes, fx, &z));
  exec.backend = exec.backend->single;
  PetscCall(HybTuningSet("rowgroup_way", "direct"));
  PetscCall(HybTuningSet("rowgroup_lanes", lanes));
  PetscCall(HybTuningSet("ordered_fewest", "0"));
  HybTestCall(HybSpMVInit(&mv, &exec, "rowgroup", 1));
  HybTestCall(HybSpMVSetUp(&mv, &there));
  mv.half = PETSC_TRUE;
  HybTestCall(HybSpMVOrderUp(&mv, &there, &ordered, &fits));
  HybTestCheck(fits, "there is no plan");
  for (int k = 0; fits && k < 2; k++) {
    if (k) HybTestCall(HybSpMVOrder(&mv, &there, &ordered));
    HybTestCall(HybSpMVApply(k ? &ordered : &mv, &there, (const HybScalar *)x, HYB_SPMV_SET, NULL, (HybScalar *)z));
    fz[k] = (float *)RefAlloc(m, sizeof(PetscScalar));
    PetscCall(HybTestDownloadArray(m, bytes, z, fz[k]));
  }
  for (PetscInt r = 0; fits && r < m; r++) {
    const PetscScalar was = Widened(fz[0], r), now = Widened(fz[1], r);
    PetscReal         most = 0, bound = 0;

    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) most = PetscMax(most, PetscAbsScalar(A->csr.a[k]));
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) bound += PetscAbsScalar(hx[A->csr.j[k]]) * (PetscAbsScalar(A->csr.a[k]) / 2048 + 1e-11 * most);
    other += was != now;
    if (!HybTestCheck(PetscAbsScalar(was - now) <= 1.01 * bound, "row %" PetscInt_FMT " is %g apart, of at most %g", r, (double)PetscAbsScalar(was - now), (double)bound)) break;
  }
  if (fits) HybTestCheck(other > m / 2, "values of 16 bits are others: %" PetscInt_FMT " rows of %" PetscInt_FMT, other, m);
  HybTestCall(HybSpMVDestroy(&ordered));
  HybTestCall(HybSpMVDestroy(&mv));
  PetscCall(HybTuningSet("ordered_fewest", NULL));
  PetscCall(HybTuningSet("rowgroup_lanes", NULL));
  PetscCall(HybTuningSet("rowgroup_way", NULL));
  PetscCall(HybArenaReset(&arena));
  if (fits) RefFree(fz[0], fz[1]);
  RefFree(hx, fx, fa);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of one length, with columns about the diagonal */
static void Uniform(PetscInt m, PetscInt length, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)m * length, sizeof(PetscInt));

  for (PetscInt r = 0; r <= m; r++) i[r] = r * length;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt first = PetscMin(PetscMax(0, r - length), m - 2 * length) + r % 3;

    for (PetscInt k = 0; k < length; k++) j[r * length + k] = first + k + k / 2;
  }
  HybTestMatArrays(m, m, i, j, NULL, A);
  RefFree(i, j);
}

/* a row's second entry once more: CSR adds both */
static void Twice(PetscInt m, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(3 * (PetscCount)m, sizeof(PetscInt)), nnz = 0;

  i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    j[nnz++] = r;
    if (r + 1 < m) j[nnz++] = r + 1;
    if (r + 1 < m) j[nnz++] = r + 1;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(m, m, i, j, NULL, A);
  RefFree(i, j);
}

static PetscErrorCode Body(void)
{
  const PetscBool device = HybTestExec()->backend->device;
  RefMat          A;

  PetscFunctionBegin;
  HybTestMatBanded(3000, 3000, 1, 1, &A);
  PetscCall(TestOne("3 diagonals", &A, device));
  HybTestMatBanded(2500, 2500, 2, 1, &A);
  PetscCall(TestOne("4 diagonals", &A, device));
  HybTestMatStencil(5, HybTestSize(90, 60), HybTestSize(80, 50), 1, &A);
  PetscCall(TestOne("5-point", &A, device));
  HybTestMatStencil(7, 31, 29, HybTestSize(40, 30), &A);
  PetscCall(TestOne("7-point", &A, device));
  HybTestMatStencil(9, HybTestSize(90, 60), HybTestSize(80, 50), 1, &A);
  PetscCall(TestOne("9-point", &A, device));
  HybTestMatBanded(2000, 2000, 6, 6, &A);
  PetscCall(TestOne("13 diagonals", &A, device));
  HybTestMatStencil(27, 40, 40, HybTestSize(40, 30), &A);
  PetscCall(TestOne("27-point", &A, device));
  HybTestMatBanded(2000, 2000, 20, 20, &A);
  PetscCall(TestOne("41 diagonals", &A, PETSC_FALSE));
  HybTestMatStencil(27, 12, 12, 12, &A);
  PetscCall(TestOne("27-point, too many faces", &A, PETSC_FALSE));
  HybTestMatBanded(3000, 2990, 1, 1, &A);
  PetscCall(TestOne("not square", &A, PETSC_FALSE));
  HybTestMatRandom(3000, 3000, 3, 9, &A);
  PetscCall(TestOne("columns anywhere", &A, PETSC_FALSE));
  Twice(3000, &A);
  PetscCall(TestOne("a column twice", &A, PETSC_FALSE));
  HybTestMatRandom(3000, 3000, 3, 9, &A);
  PetscCall(TestSlices("columns anywhere", &A, device, PETSC_FALSE));
  HybTestMatRandom(90000, 90000, 1, 5, &A);
  PetscCall(TestSlices("columns that 16 bits do not reach", &A, device, PETSC_FALSE));
  HybTestMatRandom(4000, 900, 1, 6, &A);
  PetscCall(TestSlices("a prolongator's shape", &A, PETSC_FALSE, PETSC_FALSE));
  HybTestMatBanded(5001, 5001, 9, 10, &A);
  PetscCall(TestSlices("a band", &A, device, PETSC_FALSE));
  Uniform(2100, 24, &A);
  PetscCall(TestSlices("rows of 24", &A, device, PETSC_TRUE));
  HybTestMatRandom(1000, 1000, 0, 3, &A);
  PetscCall(TestSlices("short rows, empty ones too", &A, device, PETSC_FALSE));
  HybTestMatRandom(3000, 3000, 3, 9, &A);
  PetscCall(TestHalf("columns anywhere", "1", &A));
  RefMatDestroy(&A);
  HybTestMatRandom(90000, 90000, 8, 20, &A);
  PetscCall(TestHalf("columns that 16 bits do not reach", "4", &A));
  RefMatDestroy(&A);
  Uniform(2100, 24, &A);
  PetscCall(TestHalf("rows of 24", "8", &A));
  RefMatDestroy(&A);
  HybTestMatDenseRow(2000, 2000, 700, 3, &A);
  PetscCall(TestSlices("a row that makes its slice too long", &A, PETSC_FALSE, PETSC_FALSE));
  HybTestMatRandom(3000, 3000, 3, 9, &A);
  PetscCall(TestBy("rowgroup", "columns anywhere, as few as these are", &A, PETSC_FALSE, PETSC_FALSE));
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
