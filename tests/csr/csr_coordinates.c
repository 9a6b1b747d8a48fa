/* coosymbolic and coonumeric: random coordinates with duplicates and ignored ones, set and add, the map's order,
   indices out of range; coosplit and coocompose */
#include "csrtest.h"

static PetscErrorCode TestOne(const char *what, PetscInt m, PetscInt n, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj)
{
  HybCSR       C;
  PetscInt    *ti, *tj;
  PetscCount  *mapptr, *map, *hptr, *hmap;
  PetscScalar *hv = HybTestRandomVector(ncoo), *v;
  RefMat       R;

  PetscFunctionBegin;
  HybTestBegin("coordinates: %s", what);
  PetscCall(HybTestUploadArray(&mine, ncoo, sizeof(PetscInt), ci, &ti));
  PetscCall(HybTestUploadArray(&mine, ncoo, sizeof(PetscInt), cj, &tj));
  RefCOO(m, n, ncoo, ci, cj, hv, &R);
  memset(&C, 0, sizeof(C));
  C.m = m;
  C.n = n;
  if (HybTestCall(ops->coosymbolic(exec, &keep, &work, ncoo, ti, tj, &C, &mapptr, &map)) && HybTestSamePattern(&C, &R)) {
    PetscCount used = 0;
    PetscBool  good = PETSC_TRUE;

    for (PetscCount k = 0; k < ncoo; k++) used += ci[k] >= 0 && cj[k] >= 0;
    hptr = (PetscCount *)RefAlloc(C.nnz + 1, sizeof(PetscCount));
    hmap = (PetscCount *)RefAlloc(used, sizeof(PetscCount));
    PetscCall(HybTestDownloadArray(C.nnz + 1, sizeof(PetscCount), mapptr, hptr));
    PetscCall(HybTestDownloadArray(used, sizeof(PetscCount), map, hmap));
    HybTestCheck(hptr[0] == 0 && hptr[C.nnz] == used, "the lists go from %td to %td, %td coordinates count", hptr[0], hptr[C.nnz], used);
    for (PetscInt r = 0; good && r < m; r++)
      for (PetscInt e = R.csr.i[r]; good && e < R.csr.i[r + 1]; e++) {
        good = HybTestCheck(hptr[e] < hptr[e + 1], "the list of entry %" PetscInt_FMT " is empty", e);
        for (PetscCount p = hptr[e]; good && p < hptr[e + 1]; p++) {
          good = HybTestCheck(hmap[p] >= 0 && hmap[p] < ncoo && ci[hmap[p]] == r && cj[hmap[p]] == R.csr.j[e], "coordinate %td does not belong to entry %" PetscInt_FMT, hmap[p], e);
          if (p > hptr[e]) good = (PetscBool)(good && HybTestCheck(hmap[p - 1] < hmap[p], "the list of entry %" PetscInt_FMT " does not ascend", e));
        }
      }
    RefFree(hptr, hmap);
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), C.nnz, sizeof(PetscScalar), &C.a));
    PetscCall(HybTestUploadArray(&mine, ncoo, sizeof(PetscScalar), hv, &v));
    HybTestCall(ops->coonumeric(exec, C.nnz, mapptr, map, v, PETSC_FALSE, C.a));
    HybTestSameMatrix(&C, &R, 2);
    /* once more with other values, then added to what is there */
    RefMatDestroy(&R);
    for (PetscCount k = 0; k < ncoo; k++) hv[k] = HybTestRandomScalar();
    PetscCall(HybArenaFree(&mine, &v));
    PetscCall(HybTestUploadArray(&mine, ncoo, sizeof(PetscScalar), hv, &v));
    RefCOO(m, n, ncoo, ci, cj, hv, &R);
    HybTestCall(ops->coonumeric(exec, C.nnz, mapptr, map, v, PETSC_FALSE, C.a));
    HybTestSameMatrix(&C, &R, 2);
    HybTestCall(ops->coonumeric(exec, C.nnz, mapptr, map, v, PETSC_TRUE, C.a));
    for (PetscCount k = 0; k < R.csr.nnz; k++) {
      R.csr.a[k] *= 2;
      R.mag[k] *= 2;
      R.terms[k] *= 2;
    }
    HybTestSameMatrix(&C, &R, 2);
  }
  RefMatDestroy(&R);
  free(hv);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ncoo random coordinates; ignored: one of so many is negative (0: none) */
static PetscErrorCode TestRandom(PetscInt m, PetscInt n, PetscCount ncoo, PetscInt ignored)
{
  PetscInt *ci = (PetscInt *)RefAlloc(ncoo, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(ncoo, sizeof(PetscInt));
  char      what[128];

  PetscFunctionBegin;
  for (PetscCount k = 0; k < ncoo; k++) {
    ci[k] = HybTestRandomInt(0, m);
    cj[k] = HybTestRandomInt(0, n);
    if (ignored && !HybTestRandomInt(0, ignored)) {
      if (HybTestRandomInt(0, 2))
        ci[k] = -1 - ci[k];
      else
        cj[k] = PETSC_MIN_INT;
    }
  }
  snprintf(what, sizeof(what), "%td random ones in %" PetscInt_FMT " x %" PetscInt_FMT "%s", ncoo, m, n, ignored ? ", some ignored" : "");
  PetscCall(TestOne(what, m, n, ncoo, ci, cj));
  RefFree(ci, cj);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OutOfRange(void)
{
  static const PetscInt bad[][2] = {
    {3,             0            },
    {0,             4            },
    {PETSC_MAX_INT, 0            },
    {0,             PETSC_MAX_INT}
  };

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    HybCSR      C;
    PetscInt    ci[] = {0, 1, bad[k][0], 2}, cj[] = {0, 1, bad[k][1], 3}, *ti, *tj;
    PetscCount *mapptr, *map;

    HybTestBegin("a coordinate (%" PetscInt_FMT ",%" PetscInt_FMT ") in a 3 x 4 matrix", bad[k][0], bad[k][1]);
    PetscCall(HybTestUploadArray(&mine, 4, sizeof(PetscInt), ci, &ti));
    PetscCall(HybTestUploadArray(&mine, 4, sizeof(PetscInt), cj, &tj));
    memset(&C, 0, sizeof(C));
    C.m = 3;
    C.n = 4;
    HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, ops->coosymbolic(exec, &keep, &work, 4, ti, tj, &C, &mapptr, &map));
    PetscCall(Forget());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates of a process that has rows r0 to r1-1 and columns c0 to c1-1 of a 50 x 70 matrix; some are of other rows,
   some negative */
static PetscErrorCode Split(PetscCount ncoo, PetscInt r0, PetscInt r1, PetscInt c0, PetscInt c1)
{
  PetscInt   *ci = (PetscInt *)RefAlloc(ncoo, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(ncoo, sizeof(PetscInt)), *gi = (PetscInt *)RefAlloc(ncoo, sizeof(PetscInt)), *gj = (PetscInt *)RefAlloc(ncoo, sizeof(PetscInt));
  PetscInt   *ti, *tj, *oi, *oj;
  PetscCount *place, *map, *hplace = (PetscCount *)RefAlloc(ncoo, sizeof(PetscCount)), *hmap = (PetscCount *)RefAlloc(ncoo, sizeof(PetscCount)), nother = -1, n = 0;
  PetscBool   good = PETSC_TRUE;

  PetscFunctionBegin;
  HybTestBegin("%td coordinates split at rows %" PetscInt_FMT " to %" PetscInt_FMT ", columns %" PetscInt_FMT " to %" PetscInt_FMT, ncoo, r0, r1, c0, c1);
  for (PetscCount k = 0; k < ncoo; k++) {
    ci[k] = HybTestRandomInt(0, 5) ? r0 + HybTestRandomInt(0, PetscMax(1, r1 - r0)) : HybTestRandomInt(-2, 50);
    cj[k] = HybTestRandomInt(-2, 70);
  }
  PetscCall(HybTestUploadArray(&mine, ncoo, sizeof(PetscInt), ci, &ti));
  PetscCall(HybTestUploadArray(&mine, ncoo, sizeof(PetscInt), cj, &tj));
  if (HybTestCall(ops->coosplit(exec, &work, ncoo, ti, tj, r0, r1, c0, c1, &nother, &place, &oi, &oj))) {
    PetscCall(HybTestDownloadArray(ncoo, sizeof(PetscInt), ti, gi));
    PetscCall(HybTestDownloadArray(ncoo, sizeof(PetscInt), tj, gj));
    for (PetscCount k = 0; k < ncoo && good; k++) {
      const PetscBool here = (PetscBool)(ci[k] >= r0 && ci[k] < r1), both = (PetscBool)(here && cj[k] >= c0 && cj[k] < c1);

      good = HybTestCheck(both ? gi[k] == ci[k] - r0 && gj[k] == cj[k] - c0 : gi[k] < 0 && gj[k] < 0, "coordinate %td is (%" PetscInt_FMT ",%" PetscInt_FMT ")", k, gi[k], gj[k]);
      if (here && !both && cj[k] >= 0) hmap[n++] = k;
    }
    if (HybTestCheck(nother == n, "%td in other columns, %td are", nother, n)) {
      PetscCall(HybTestDownloadArray(n, sizeof(PetscCount), place, hplace));
      PetscCall(HybTestDownloadArray(n, sizeof(PetscInt), oi, gi));
      PetscCall(HybTestDownloadArray(n, sizeof(PetscInt), oj, gj));
      for (PetscCount p = 0; p < n && good; p++) good = HybTestCheck(hplace[p] == hmap[p] && gi[p] == ci[hmap[p]] - r0 && gj[p] == cj[hmap[p]], "number %td in other columns", p);
      /* a map into those, backwards, becomes one into all */
      for (PetscCount p = 0; p < n; p++) hmap[p] = n - 1 - p;
      PetscCall(HybTestUploadArray(&mine, n, sizeof(PetscCount), hmap, &map));
      HybTestCall(ops->coocompose(exec, n, place, map));
      PetscCall(HybTestDownloadArray(n, sizeof(PetscCount), map, hmap));
      for (PetscCount p = 0; p < n && good; p++) good = HybTestCheck(hmap[p] == hplace[n - 1 - p], "entry %td of the map", p);
    }
  }
  RefFree(ci, cj, gi, gj, hplace, hmap);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscInt *ci, *cj;
  PetscInt  n;

  PetscFunctionBegin;
  PetscCall(Start());
  PetscCall(Split(0, 10, 20, 15, 40));
  PetscCall(Split(1, 0, 50, 0, 70));
  PetscCall(Split(1000, 0, 50, 0, 70));   /* one process */
  PetscCall(Split(1000, 20, 20, 30, 30)); /* one without rows */
  PetscCall(Split(5000, 10, 20, 15, 40));
  PetscCall(Split(257, 49, 50, 69, 70));
  PetscCall(TestOne("none", 5, 4, 0, NULL, NULL));
  PetscCall(TestOne("none, empty matrix", 0, 0, 0, NULL, NULL));
  PetscCall(TestRandom(1, 1, 1, 0));
  PetscCall(TestRandom(1, 1, 100, 0));
  PetscCall(TestRandom(7, 9, 30, 2));
  PetscCall(TestRandom(7, 9, 30, 1)); /* all of them ignored */
  PetscCall(TestRandom(1, 500, 700, 5));
  PetscCall(TestRandom(500, 1, 700, 5));
  PetscCall(TestRandom(60, 60, 255, 0));
  PetscCall(TestRandom(60, 60, 256, 0));
  PetscCall(TestRandom(60, 60, 257, 0));
  PetscCall(TestRandom(3, 3, HybTestSize(5000, 600), 9)); /* long lists */
  PetscCall(TestRandom(HybTestSize(3000, 200), HybTestSize(2000, 150), HybTestSize(60000, 2000), 10));
  PetscCall(TestRandom(100000, 100000, 50, 0)); /* most rows empty */
  if (sizeof(PetscInt) == 8) {                  /* row and column do not fit into one key */
    PetscCall(TestRandom(3000, PETSC_MAX_INT / 2, 300, 7));
    PetscCall(TestRandom(9, PETSC_MAX_INT / 2, 700, 0));
  }
  /* finite elements on a line: each one adds a 3 x 3 block; forwards and backwards */
  n  = HybTestSize(2000, 150);
  ci = (PetscInt *)RefAlloc(9 * (PetscCount)n, sizeof(PetscInt));
  cj = (PetscInt *)RefAlloc(9 * (PetscCount)n, sizeof(PetscInt));
  for (int backwards = 0; backwards < 2; backwards++) {
    for (PetscInt e = 0; e < n; e++)
      for (PetscInt k = 0; k < 9; k++) {
        const PetscInt p = backwards ? n - 1 - e : e;

        ci[9 * e + k] = 2 * p + k / 3;
        cj[9 * e + k] = 2 * p + (backwards ? 2 - k % 3 : k % 3);
      }
    PetscCall(TestOne(backwards ? "finite elements, backwards" : "finite elements", 2 * n + 1, 2 * n + 1, 9 * (PetscCount)n, ci, cj));
  }
  /* one row in descending order, longer than any run of a merge */
  for (PetscInt k = 0; k < n; k++) {
    ci[k] = 1;
    cj[k] = n - 1 - k;
  }
  PetscCall(TestOne("one row, descending", 3, n, n, ci, cj));
  RefFree(ci, cj);
  PetscCall(OutOfRange());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
