/*
  Conjugate gradients for 2, 4 and 8 columns at once, kernel by kernel beside plain loops: columns of a dense matrix
  interleaved and back; the direction, first and later; p w and what stops a column; the update; the norms. Columns that
  have stopped, or that the host has ended, keep every bit, and so do columns that a matrix does not have. The same bits
  again.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybkrylov.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER(s, K, number, c) ((s)[(number) * (K) + (c)])

typedef struct {
  PetscInt       K;
  PetscCount     n;
  HybArena       arena;
  HybCG          cg;
  HybColumnsSums sums;
  PetscScalar   *numbers; /* the host's */
} Case;

static PetscErrorCode Send(Case *t)
{
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(exec->backend->copy(exec, t->cg.s, t->numbers, sizeof(PetscScalar) * (size_t)(HYB_CG_NUMBERS * t->K), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transfers(Case *t)
{
  const HybExec   *exec = HybTestExec();
  const PetscCount n = t->n, ld = n + 3, all = ld * HYB_COLUMNS;
  const size_t     size = sizeof(PetscScalar);
  PetscScalar     *hB = HybTestRandomVector(all), *hx = (PetscScalar *)RefAlloc(n * t->K, size), *back = (PetscScalar *)RefAlloc(all, size), *B, *x;

  PetscFunctionBegin;
  for (PetscInt used = 1; used <= t->K; used++) {
    PetscBool same = PETSC_TRUE;

    PetscCall(HybTestUploadArray(&t->arena, all, size, hB, &B));
    PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), n * t->K, size, &x));
    HybTestCall(exec->backend->krylov->columns->gather(exec, t->K, used, n, B, ld, x));
    PetscCall(HybTestDownloadArray(n * t->K, size, x, hx));
    for (PetscCount k = 0; k < n * t->K; k++) same = (PetscBool)(same && hx[k] == (k % t->K < used ? hB[k % t->K * ld + k / t->K] : (PetscScalar)0));
    HybTestCheck(same, "%d of %d columns interleaved", (int)used, (int)t->K);
    for (PetscCount k = 0; k < n * t->K; k++) hx[k] = 2.0 * hx[k] + 1.0;
    PetscCall(exec->backend->copy(exec, x, hx, size * (size_t)(n * t->K), HYB_COPY_HOST_TO_DEVICE));
    HybTestCall(exec->backend->krylov->columns->scatter(exec, t->K, used, n, x, B, ld));
    PetscCall(HybTestDownloadArray(all, size, B, back));
    for (PetscCount k = 0; k < all; k++) same = (PetscBool)(same && back[k] == (k / ld < used && k % ld < n ? (PetscScalar)2.0 * hB[k] + (PetscScalar)1.0 : hB[k]));
    HybTestCheck(same, "%d of %d columns taken apart", (int)used, (int)t->K);
    HybTestCall(exec->backend->krylov->columns->scatter(exec, t->K, used, n, x, B, 0));
    PetscCall(HybTestDownloadArray(n, size, B, back));
    for (PetscCount k = 0; k < n; k++) same = (PetscBool)(same && back[k] == hx[k * t->K + used - 1]);
    HybTestCheck(same, "the last of %d columns to one place", (int)used);
    PetscCall(HybArenaFree(&t->arena, &B, &x));
  }
  RefFree(hB, hx, back);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Near(PetscScalar a, PetscScalar b)
{
  return (PetscBool)(PetscAbsScalar(a - b) <= 1e3 * PETSC_MACHINE_EPSILON * (1 + PetscAbsScalar(b)));
}

/* column 1 has been ended by the host, the last one stops; of the first, betaold is 0 */
static PetscErrorCode Vectors(Case *t)
{
  const HybExec             *exec = HybTestExec();
  const HybKrylovColumnsOps *ops  = exec->backend->krylov->columns;
  const PetscInt             K    = t->K;
  const PetscCount           all  = t->n * K;
  const size_t               size = sizeof(PetscScalar);
  PetscScalar               *hz = HybTestRandomVector(all), *hp = HybTestRandomVector(all), *hx = HybTestRandomVector(all), *hr = HybTestRandomVector(all), *found = (PetscScalar *)RefAlloc(all, size), *z, *p, *x, *r;
  PetscBool                  good = PETSC_TRUE;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < HYB_CG_NUMBERS * K; k++) t->numbers[k] = HybTestRandomScalar();
  for (PetscInt c = 0; c < K; c++) NUMBER(t->numbers, K, HYB_CG_STOPPED, c) = c == 1 ? 2 : 0;
  NUMBER(t->numbers, K, HYB_CG_BETAOLD, 0) = 0;
  PetscCall(Send(t));
  for (PetscCount k = 0; k < all; k += K) hp[k] = (PetscReal)NAN; /* it is not read */
  PetscCall(HybTestUploadArray(&t->arena, all, size, hz, &z));
  PetscCall(HybTestUploadArray(&t->arena, all, size, hp, &p));
  PetscCall(HybTestUploadArray(&t->arena, all, size, hx, &x));
  PetscCall(HybTestUploadArray(&t->arena, all, size, hr, &r));
  HybTestCall(ops->direction(exec, K, &t->cg, t->n, z, p));
  PetscCall(HybTestDownloadArray(all, size, p, found));
  for (PetscCount k = 0; k < all; k++) {
    const PetscInt    c    = (PetscInt)(k % K);
    const PetscScalar want = c == 1 ? hp[k] : c == 0 ? hz[k]
                                                     : hz[k] + NUMBER(t->numbers, K, HYB_CG_BETA, c) / NUMBER(t->numbers, K, HYB_CG_BETAOLD, c) * hp[k];

    good = (PetscBool)(good && (c < 2 ? !memcmp(&found[k], &want, size) : Near(found[k], want)));
  }
  HybTestCheck(good, "the direction");
  memcpy(hp, found, size * (size_t)all);
  HybTestCall(ops->update(exec, K, &t->cg, t->n, p, z, x, r));
  for (int v = 0; v < 2; v++) {
    PetscScalar *const was = v ? hr : hx, *const by = v ? hz : hp;

    good = PETSC_TRUE;
    PetscCall(HybTestDownloadArray(all, size, v ? r : x, found));
    for (PetscCount k = 0; k < all; k++) {
      const PetscInt    c = (PetscInt)(k % K);
      const PetscScalar a = NUMBER(t->numbers, K, HYB_CG_BETA, c) / NUMBER(t->numbers, K, HYB_CG_DPI, c), want = c == 1 ? was[k] : was[k] + (v ? -a : a) * by[k];

      good = (PetscBool)(good && (c == 1 ? !memcmp(&found[k], &want, size) : PetscAbsScalar(found[k] - want) <= 100 * PETSC_MACHINE_EPSILON * (PetscAbsScalar(was[k]) + PetscAbsScalar(a) * PetscAbsScalar(by[k]))));
    }
    HybTestCheck(good, v ? "the residual" : "the solution");
  }
  PetscCall(HybArenaFree(&t->arena, &z, &p, &x, &r));
  RefFree(hz, hp, hx, hr, found);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numbers(Case *t)
{
  const HybExec             *exec = HybTestExec();
  const HybKrylovColumnsOps *ops  = exec->backend->krylov->columns;
  const PetscInt             K = t->K, number[] = {HYB_CG_BETA, HYB_CG_ZZ, HYB_CG_RR};
  const PetscCount           all  = t->n * K;
  const size_t               size = sizeof(PetscScalar);
  PetscScalar               *hz = HybTestRandomVector(all), *hr = HybTestRandomVector(all), *found = (PetscScalar *)RefAlloc(HYB_CG_NUMBERS * K, size), *z, *r;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < HYB_CG_NUMBERS * K; k++) t->numbers[k] = HybTestRandomScalar();
  for (PetscInt c = 0; c < K; c++) NUMBER(t->numbers, K, HYB_CG_STOPPED, c) = c == 1 ? 2 : 0;
  PetscCall(HybTestUploadArray(&t->arena, all, size, hz, &z));
  PetscCall(HybTestUploadArray(&t->arena, all, size, hr, &r));
  for (int twice = 0; twice < 2; twice++) {
    PetscCall(Send(t));
    HybTestCall(ops->products(exec, K, t->n, z, r, &t->sums));
    HybTestCheck(t->sums.blocks >= 1 && t->sums.blocks <= HYB_COLUMNS_SUMS, "%d blocks", (int)t->sums.blocks);
    HybTestCall(ops->norms(exec, K, &t->cg, &t->sums));
    if (twice) HybTestCheck(HybTestSameBits(HYB_CG_NUMBERS * K, size, t->cg.s, found), "other bits the second time");
    PetscCall(HybTestDownloadArray(HYB_CG_NUMBERS * K, size, t->cg.s, found));
  }
  for (PetscInt c = 0; c < K; c++) {
    PetscScalar want[3] = {0, 0, 0};
    PetscReal   mag[3]  = {0, 0, 0};

    for (PetscCount k = c; k < all; k += K) {
      const PetscScalar term[] = {hz[k] * (t->cg.hermitian ? PetscConj(hr[k]) : hr[k]), hz[k] * PetscConj(hz[k]), hr[k] * PetscConj(hr[k])};

      for (int s = 0; s < 3; s++) {
        want[s] += term[s];
        mag[s] += PetscAbsScalar(term[s]);
      }
    }
    for (int s = 0; s < 3; s++) {
      const PetscScalar was = NUMBER(t->numbers, K, number[s], c), is = NUMBER(found, K, number[s], c);

      HybTestCheck(c == 1 ? is == was : HybTestClose(is, want[s], mag[s], t->n, 4), "sum %d of column %d", s, (int)c);
    }
    HybTestCheck(NUMBER(found, K, HYB_CG_BETAOLD, c) == NUMBER(t->numbers, K, c == 1 ? HYB_CG_BETAOLD : HYB_CG_BETA, c), "beta before, of column %d", (int)c);
  }
  PetscCall(HybArenaFree(&t->arena, &z, &r));
  RefFree(hz, hr, found);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* p w of two blocks, which say what they like */
static PetscErrorCode Curvature(Case *t)
{
  static const struct {
    PetscReal before, now;
    int       stops;
  } cases[] = {
    {0,  2,                   0},
    {3,  2,                   0},
    {0,  0,                   1},
    {3,  -2,                  1},
    {-3, 2,                   1},
    {-3, -2,                  0},
    {3,  (PetscReal)INFINITY, 1},
    {0,  -1,                  0}
  };
  const HybExec             *exec = HybTestExec();
  const HybKrylovColumnsOps *ops  = exec->backend->krylov->columns;
  const PetscInt             K    = t->K;
  PetscScalar                part[2 * HYB_COLUMNS], found[HYB_CG_NUMBERS * HYB_COLUMNS];

  PetscFunctionBegin;
  for (size_t first = 0; first < PETSC_STATIC_ARRAY_LENGTH(cases); first += K) {
    for (int ended = 0; ended < 2; ended++) {
      memset(t->numbers, 0, sizeof(PetscScalar) * (size_t)(HYB_CG_NUMBERS * K));
      for (PetscInt c = 0; c < K; c++) {
        NUMBER(t->numbers, K, HYB_CG_DPI, c)     = cases[first + c].before;
        NUMBER(t->numbers, K, HYB_CG_STOPPED, c) = ended ? 2 : 0;
        part[c]                                  = cases[first + c].now / 4;
        part[K + c]                              = cases[first + c].now * 3 / 4;
      }
      PetscCall(Send(t));
      PetscCall(exec->backend->copy(exec, t->sums.part, part, sizeof(PetscScalar) * (size_t)(2 * K), HYB_COPY_HOST_TO_DEVICE));
      t->sums.blocks = 2;
      HybTestCall(ops->curvature(exec, K, &t->cg, &t->sums));
      PetscCall(HybTestDownloadArray(HYB_CG_NUMBERS * K, sizeof(PetscScalar), t->cg.s, found));
      for (PetscInt c = 0; c < K; c++) {
        if (ended)
          HybTestCheck(NUMBER(found, K, HYB_CG_DPI, c) == (PetscScalar)cases[first + c].before && NUMBER(found, K, HYB_CG_STOPPED, c) == (PetscScalar)2, "a column that has ended: case %d", (int)(first + c));
        else
          HybTestCheck((NUMBER(found, K, HYB_CG_DPI, c) == (PetscScalar)cases[first + c].now || PetscIsInfOrNanReal(cases[first + c].now)) && NUMBER(found, K, HYB_CG_DPIOLD, c) == (PetscScalar)cases[first + c].before && NUMBER(found, K, HYB_CG_STOPPED, c) == (PetscScalar)cases[first + c].stops, "case %d", (int)(first + c));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  static const PetscCount lengths[] = {1, 2, 31, 64, 1000, 100000};

  PetscFunctionBegin;
  if (!HybTestExec()->backend->krylov->columns) {
    HybTestBegin("columns");
    HybTestSkip("the host has no solves of several columns");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt K = 2; K <= HYB_COLUMNS; K *= 2) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lengths); k++) {
      Case t = {.K = K, .n = lengths[k]};

      if (!HybTestMine()) continue;
      HybTestBegin("%d columns of %d", (int)K, (int)lengths[k]);
      t.cg.hermitian = t.sums.hermitian = (PetscBool)(k % 2);
      t.numbers                         = (PetscScalar *)RefAlloc(HYB_CG_NUMBERS * K, sizeof(PetscScalar));
      t.arena                           = HybArenaOn(HybTestExec());
      PetscCall(HybArenaAlloc(&t.arena, HYB_WORK(HybTestExec()), HYB_CG_NUMBERS * K, sizeof(PetscScalar), &t.cg.s));
      PetscCall(HybArenaAlloc(&t.arena, HYB_WORK(HybTestExec()), 3 * HYB_COLUMNS_SUMS * K, sizeof(PetscScalar), &t.sums.part));
      PetscCall(Transfers(&t));
      PetscCall(Vectors(&t));
      PetscCall(Numbers(&t));
      PetscCall(Curvature(&t));
      PetscCall(HybArenaReset(&t.arena));
      free(t.numbers);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
