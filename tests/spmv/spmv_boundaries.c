/*
  SpMV where methods that divide the nonzeros go wrong: numbers of entries about multiples of 512, rows that begin, end
  and lie empty at such boundaries, one row over everything, runs of empty rows longer than a tile has entries,
  infinities and NaN, random shapes by seed. And what segsum counts: tiles, dirty tiles and empty rows as they can be
  told from the pattern.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybspmv.h>
#include <stdlib.h>
#include <string.h>

static const HybExec *exec;

static PetscErrorCode Apply(HybSpMV *mv, const HybCSR *A, const PetscScalar *x, HybSpMVMode mode, const PetscScalar *hy, PetscInt m, HybArena *arena, PetscScalar *result)
{
  PetscScalar *z;

  PetscFunctionBegin;
  PetscCall(HybTestUploadArray(arena, m, sizeof(PetscScalar), hy, &z));
  PetscCall(HybSpMVApply(mv, A, x, mode, z, z));
  PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, result));
  PetscCall(HybArenaFree(arena, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all methods on one matrix; special: x holds a NaN and an infinity */
static PetscErrorCode TestOne(const char *name, RefMat *A, PetscBool special)
{
  const PetscInt m = A->csr.m, n = A->csr.n;
  PetscScalar   *hx = HybTestRandomVector(n), *hy = HybTestRandomVector(m), *hz = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *found = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *again = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  PetscReal     *mag = (PetscReal *)RefAlloc(m, sizeof(PetscReal)), zero = 0;
  PetscCount    *terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));

  PetscFunctionBegin;
  if (special && n > 3) {
    hx[n / 3]     = zero / zero;
    hx[n / 2 + 1] = 1 / zero;
  }
  for (const HybSpMVMethod *const *table = exec->backend->spmv; *table; table++) {
    HybSpMV        mv;
    HybCSR         there;
    PetscScalar   *x;
    PetscErrorCode ierr;
    HybArena       arena = HybArenaOn(exec);

    HybTestBegin("%s: %s", (*table)->name, name);
    PetscCall(HybTestUpload(&arena, &A->csr, &there));
    PetscCall(HybTestUploadArray(&arena, n, sizeof(PetscScalar), hx, &x));
    PetscCall(HybSpMVInit(&mv, exec, (*table)->name, 1));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVSetUp(&mv, &there);
    PetscCall(PetscPopErrorHandler());
    if (HybTestCheck(!ierr || (exec->backend->device && ierr == PETSC_ERR_SUP), "error %d", (int)ierr) && !ierr) {
      for (int mode = 0; mode < 3; mode++) {
        RefSpMV(A, hx, mode == HYB_SPMV_RESIDUAL ? -1 : 1, mode == HYB_SPMV_SET ? NULL : hy, hz, mag, terms);
        if (!HybTestCall(Apply(&mv, &there, x, (HybSpMVMode)mode, hy, m, &arena, found))) break;
        for (PetscInt r = 0; r < m; r++) {
          if (!HybTestCheck(HybTestClose(found[r], hz[r], mag[r], terms[r], 2), "mode %d: row %" PetscInt_FMT " of %" PetscInt_FMT " is %g, expected %g", mode, r, m, (double)PetscRealPart(found[r]), (double)PetscRealPart(hz[r]))) break;
        }
        if (!HybTestCall(Apply(&mv, &there, x, (HybSpMVMode)mode, hy, m, &arena, again))) break;
        HybTestCheck(!memcmp(found, again, (size_t)m * sizeof(PetscScalar)), "mode %d: other bits the second time", mode);
      }
      if (!strcmp((*table)->name, "segsum") && exec->backend->device) {
        PetscCount      empty = 0;
        const PetscBool cpu   = (PetscBool)(HybTuningGet()->segsum_repair == 1);

        for (PetscInt r = 0; r < m; r++) empty += A->csr.i[r] == A->csr.i[r + 1];
        HybTestCheck(HybCountersGet(&mv.counters, "empty rows") == empty, "%td empty rows, expected %td", HybCountersGet(&mv.counters, "empty rows"), empty);
        HybTestCheck((HybCountersGet(&mv.counters, "dirty tiles") > 0) == (empty > 0 && A->csr.nnz > 0), "%td dirty tiles, %td empty rows", HybCountersGet(&mv.counters, "dirty tiles"), empty);
        if (cpu) HybTestCheck(HybCountersGet(&mv.counters, "tiles repaired by the CPU") == HybCountersGet(&mv.counters, "dirty tiles"), "%td tiles repaired by the CPU", HybCountersGet(&mv.counters, "tiles repaired by the CPU"));
      }
      if (!strcmp((*table)->name, "segsum") && !exec->backend->device) {
        const PetscInt *i     = A->csr.i;
        PetscCount      empty = 0, dirty = 0, tiles = (A->csr.nnz + 511) / 512;

        for (PetscInt r = 0; r < m; r++) empty += i[r] == i[r + 1];
        /* an empty row belongs to the tile in which the row before it ends: the tile of entry i[r]-1, the first one at
           the top */
        for (PetscCount t = 0; t < tiles; t++) {
          PetscBool has = PETSC_FALSE;

          for (PetscInt r = 0; r < m && !has; r++) has = (PetscBool)(i[r] == i[r + 1] && (i[r] ? (i[r] - 1) / 512 : 0) == t);
          dirty += has;
        }
        HybTestCheck(HybCountersGet(&mv.counters, "tiles") == tiles, "%td tiles, expected %td", HybCountersGet(&mv.counters, "tiles"), tiles);
        HybTestCheck(HybCountersGet(&mv.counters, "dirty tiles") == dirty, "%td dirty tiles, expected %td", HybCountersGet(&mv.counters, "dirty tiles"), dirty);
        HybTestCheck(HybCountersGet(&mv.counters, "empty rows") == empty, "%td empty rows, expected %td", HybCountersGet(&mv.counters, "empty rows"), empty);
      }
    }
    HybTestCall(HybSpMVDestroy(&mv));
    PetscCall(HybArenaReset(&arena));
  }
  RefFree(hx, hy, hz, found, again, mag, terms);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of the given lengths over n columns */
static PetscErrorCode TestLengths(const char *name, PetscInt m, PetscInt n, const PetscInt *lengths)
{
  RefMat A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestMatLengths(m, n, lengths, &A);
  PetscCall(TestOne(name, &A, PETSC_FALSE));
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the method shape take a matrix, and with how many classes of rows? At most one for 32 rows; of 2048 rows and
   more only where half of a sample of 256 are like one of the eight rows before them. Rows below `regular` have the
   diagonal alone; the others tell apart their place in a period by the number of their entries, `least` and more, or by
   the columns of three entries. */
static PetscErrorCode TestShapes(PetscInt m, PetscInt regular, PetscInt least, PetscInt period, PetscBool bycolumns, PetscInt classes)
{
  RefMat   A;
  PetscInt lengths[4000], *i;
  HybArena arena = HybArenaOn(exec);

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestBegin("shape: %" PetscInt_FMT " rows, from %" PetscInt_FMT " on of period %" PetscInt_FMT ", %s", m, regular, period, bycolumns ? "by columns" : "by lengths");
  for (PetscInt r = 0; r < m; r++) lengths[r] = r < regular ? 1 : bycolumns ? 3
                                                                            : least + r % period;
  HybTestMatLengths(m, m + 2 * period + 20, lengths, &A);
  i = A.csr.i;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = 0; k < i[r + 1] - i[r]; k++) A.csr.j[i[r] + k] = r + (!bycolumns || k != 1 ? k * (period + 3) : 1 + r % period);
  }
  {
    HybSpMV        mv;
    HybCSR         there;
    PetscErrorCode ierr;

    PetscCall(HybTestUpload(&arena, &A.csr, &there));
    PetscCall(HybSpMVInit(&mv, exec, "shape", 1));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = HybSpMVSetUp(&mv, &there);
    PetscCall(PetscPopErrorHandler());
    if (classes)
      HybTestCheck(!ierr && HybCountersGet(&mv.counters, "classes") == classes, "error %d, %td classes, expected %" PetscInt_FMT, (int)ierr, HybCountersGet(&mv.counters, "classes"), classes);
    else
      HybTestCheck(ierr == PETSC_ERR_SUP, "it was taken, with %td classes", HybCountersGet(&mv.counters, "classes"));
    HybTestCall(HybSpMVDestroy(&mv));
    PetscCall(HybArenaReset(&arena));
  }
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* long rows, and values that a sum must carry */
static PetscErrorCode TestNumbers(void)
{
  RefMat A;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestMatDenseRow(HybTestSize(3000, 200), HybTestSize(5000, 1100), 77, 3, &A);
  PetscCall(TestOne("one dense row", &A, PETSC_FALSE));
  PetscCall(TestOne("one dense row, NaN and infinity in x", &A, PETSC_TRUE));
  RefMatDestroy(&A);
  HybTestMatPowerLaw(HybTestSize(20000, 400), HybTestSize(20000, 400), 9, &A);
  PetscCall(TestOne("power law", &A, PETSC_FALSE));
  PetscCall(TestOne("power law, NaN and infinity in x", &A, PETSC_TRUE));
  RefMatDestroy(&A);
  HybTestMatBanded(300, 300, 2, 2, &A);
  {
    PetscReal zero = 0;

    A.csr.a[0]   = 1 / zero;
    A.csr.a[500] = zero / zero;
    A.csr.a[512] = -1 / zero;
    A.csr.a[700] = PETSC_MAX_REAL;
    A.csr.a[701] = PETSC_MAX_REAL;
    A.csr.a[900] = 1 / PETSC_MAX_REAL;
  }
  PetscCall(TestOne("a band with infinities, NaN and the largest numbers", &A, PETSC_FALSE));
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FewRows(void)
{
  static const PetscInt counts[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1535, 1536, 1537, 4096};
  char                  name[128];
  PetscInt              lengths[4000];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(counts); k++) {
    const PetscInt c = counts[k];

    if (HybTestSlow() && c > 600 && c != 1025) continue;
    lengths[0] = c;
    snprintf(name, sizeof(name), "one row of %" PetscInt_FMT, c);
    PetscCall(TestLengths(name, 1, c + 3, lengths));
    for (PetscInt r = 0; r < 9; r++) lengths[r] = 0;
    lengths[4] = c;
    snprintf(name, sizeof(name), "a row of %" PetscInt_FMT " between empty ones", c);
    PetscCall(TestLengths(name, 9, c + 3, lengths));
    if (c <= 1537) {
      for (PetscInt r = 0; r < c; r++) lengths[r] = 1;
      snprintf(name, sizeof(name), "%" PetscInt_FMT " rows of one entry", c);
      PetscCall(TestLengths(name, c, 40, lengths));
      for (PetscInt r = 0; r < 2 * c; r++) lengths[r] = r % 2;
      snprintf(name, sizeof(name), "%" PetscInt_FMT " rows of one entry, each behind an empty one", c);
      PetscCall(TestLengths(name, 2 * c, 40, lengths));
      for (PetscInt r = 0; r < 2 * c; r++) lengths[r] = !(r % 2);
      snprintf(name, sizeof(name), "%" PetscInt_FMT " rows of one entry, each before an empty one", c);
      PetscCall(TestLengths(name, 2 * c, 40, lengths));
    }
    /* a boundary on a row's end, and empty rows exactly there */
    for (PetscInt gap = 0; gap < 3; gap++) {
      PetscInt m = 0;

      lengths[m++] = c;
      for (PetscInt g = 0; g < gap; g++) lengths[m++] = 0;
      lengths[m++] = 5;
      lengths[m++] = c;
      lengths[m++] = 1;
      for (PetscInt g = 0; g < gap; g++) lengths[m++] = 0;
      snprintf(name, sizeof(name), "rows of %" PetscInt_FMT " and 5, %" PetscInt_FMT " empty ones between", c, gap);
      PetscCall(TestLengths(name, m, c + 9, lengths));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows over several of segsum's tiles (896 entries, or 64 times 3) that end where a tile ends, the last one too; a
   carry comes behind them, or none */
static PetscErrorCode Tiles(void)
{
  char name[128];

  PetscFunctionBegin;
  for (PetscInt few = 0; few < 2; few++) {
    static const PetscInt ends[][3] = {
      {896,  0,    0  },
      {1792, 0,    0  },
      {300,  1492, 0  },
      {300,  1492, 900},
      {895,  1,    900},
      {897,  895,  1  },
      {192,  384,  0  },
      {100,  476,  193}
    };

    if (few && exec->backend->device) {
      PetscCall(HybTuningSet("segsum_threads", "64"));
      PetscCall(HybTuningSet("segsum_items", "3"));
    }
    for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(ends); k++) {
      snprintf(name, sizeof(name), "rows of %" PetscInt_FMT ", %" PetscInt_FMT " and %" PetscInt_FMT ", %s tiles", ends[k][0], ends[k][1], ends[k][2], few ? "small" : "usual");
      PetscCall(TestLengths(name, ends[k][2] ? 3 : ends[k][1] ? 2
                                                              : 1,
                            1800, ends[k]));
    }
    if (few && exec->backend->device) {
      PetscCall(HybTuningSet("segsum_threads", NULL));
      PetscCall(HybTuningSet("segsum_items", NULL));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shapes(void)
{
  PetscFunctionBegin;
  /* rows told apart by the diagonals that they have, and by signatures of their columns */
  for (int words = 1; exec->backend->device && words >= 0; words--) {
    if (!words) PetscCall(HybTuningSet("rowshape_words", "no"));
    PetscCall(TestShapes(1500, 1500, 2, 1, PETSC_FALSE, 1));
    PetscCall(TestShapes(2056, 2056, 2, 1, PETSC_FALSE, 1));
    for (PetscInt period = 1; period <= 8; period += period < 6 ? 5 : 1) {
      PetscCall(TestShapes(2056, 0, 2, period, PETSC_FALSE, period));
      PetscCall(TestShapes(2056, 0, 2, period, PETSC_TRUE, period));
    }
    PetscCall(TestShapes(2047, 0, 2, 9, PETSC_TRUE, 9)); /* too small for a sample */
    PetscCall(TestShapes(2056, 0, 2, 9, PETSC_FALSE, 0));
    PetscCall(TestShapes(2056, 0, 2, 9, PETSC_TRUE, 0));
    /* rows 8, 16, ... are in the sample: half of them are regular, */
    PetscCall(TestShapes(2056, 1032, 2, 9, PETSC_FALSE, 10));
    PetscCall(TestShapes(2056, 1024, 2, 9, PETSC_FALSE, 0)); /* and one less */
    PetscCall(TestShapes(2056, 1032, 2, 9, PETSC_TRUE, 10));
    PetscCall(TestShapes(2056, 1024, 2, 9, PETSC_TRUE, 0));
    PetscCall(TestShapes(1500, 0, 2, 46, PETSC_FALSE, 46)); /* as many classes as are allowed, and one more */
    PetscCall(TestShapes(1500, 0, 2, 47, PETSC_FALSE, 0));
    PetscCall(TestShapes(1500, 0, 0, 2, PETSC_FALSE, 2)); /* every second row is empty */
    PetscCall(TestShapes(1500, 0, 0, 5, PETSC_FALSE, 5));
    if (!words) PetscCall(HybTuningSet("rowshape_words", NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows at the bounds of rowgroup's bins, long ones in several pieces; with many short ones beside, which are not
   listed then, and without */
static PetscErrorCode Bins(void)
{
  char     name[128];
  PetscInt lengths[4000];

  PetscFunctionBegin;
  for (PetscInt few = 0; few < 2; few++) {
    static const PetscInt bounds[] = {8193, 0, 8, 9, 4097, 16, 17, 32, 33, 1, 64, 65, 128, 129, 512, 513, 4096, 8192, 2};
    PetscInt              m        = 0;

    for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(bounds); k++) {
      lengths[m++] = bounds[k];
      for (PetscInt q = 0; q < (few ? 1 : 20); q++) lengths[m++] = few ? 20 + k : q % 9;
    }
    snprintf(name, sizeof(name), "rows about powers of two, %s short ones between", few ? "no" : "many");
    PetscCall(TestLengths(name, m, 8200, lengths));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* empty rows: more than a tile has entries, at the top, in the middle, at the end */
static PetscErrorCode EmptyRows(void)
{
  char     name[128];
  PetscInt lengths[4000];

  PetscFunctionBegin;
  for (PetscInt where = 0; where < 3; where++) {
    const PetscInt m = HybTestSize(4000, 700), run = HybTestSize(1500, 300), from = where * (m - run) / 2;

    for (PetscInt r = 0; r < m; r++) lengths[r] = r >= from && r < from + run ? 0 : 1 + r % 7;
    snprintf(name, sizeof(name), "%" PetscInt_FMT " empty rows from row %" PetscInt_FMT " of %" PetscInt_FMT, run, from, m);
    PetscCall(TestLengths(name, m, 50, lengths));
    if (exec->backend->device) {
      PetscCall(HybTuningSet("segsum_repair", "cpu"));
      PetscCall(TestLengths("the same, repaired by the CPU", m, 50, lengths));
      PetscCall(HybTuningSet("segsum_repair", NULL));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RandomRows(void)
{
  char     name[128];
  PetscInt lengths[4000];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < HybTestSize(40, 4); k++) {
    const PetscInt m = HybTestRandomInt(1, HybTestSize(3000, 300)), n = HybTestRandomInt(1, HybTestSize(3000, 300)), most = HybTestRandomInt(1, 40);

    for (PetscInt r = 0; r < m; r++) lengths[r] = HybTestRandomInt(0, 3) ? HybTestRandomInt(0, most) : 0;
    snprintf(name, sizeof(name), "random %" PetscInt_FMT " x %" PetscInt_FMT ", up to %" PetscInt_FMT " a row", m, n, most);
    PetscCall(TestLengths(name, m, n, lengths));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* real ones; boyd1 has a dense row */
static PetscErrorCode RealOnes(void)
{
  RefMat A;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < 2; k++) {
    const char *const real[] = {"boyd1", "wiki-Vote"};

    if (!HybTestMine()) continue;
    HybTestBegin("the folder's %s", real[k]);
    if (exec->backend->device && HybTestSlow()) {
      HybTestSkip("%s takes too long here", real[k]);
      continue;
    }
    if (HybTestMatRead(real[k], &A)) {
      HybTestCheck(A.csr.nnz > 0, "it is empty");
      PetscCall(TestOne(real[k], &A, PETSC_FALSE));
      RefMatDestroy(&A);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  exec = HybTestExec();
  PetscCall(FewRows());
  PetscCall(Tiles());
  PetscCall(Shapes());
  PetscCall(Bins());
  PetscCall(EmptyRows());
  PetscCall(TestNumbers());
  PetscCall(RandomRows());
  PetscCall(RealOnes());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
