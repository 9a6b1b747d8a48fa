/*
  C = A*B by the host's method "shape": rows side by side. Stencils with their borders, bands and diagonals of all
  lengths, operands of different shapes, rows of C too long for places of 16 bits, odd values, what "auto" makes of
  them, failing allocations.
*/
#include "spgemmtest.h"

#define LANES 8

/* row r is row r-1, one column further */
static PetscBool Follows(const RefMat *M, PetscInt r)
{
  const PetscInt len = M->csr.i[r + 1] - M->csr.i[r];

  if (r == 0 || M->csr.i[r] - M->csr.i[r - 1] != len) return PETSC_FALSE;
  for (PetscInt k = M->csr.i[r]; k < M->csr.i[r + 1]; k++) {
    if (M->csr.j[k] != M->csr.j[k - len] + 1) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* rows that are computed side by side, by the words of the method's essay */
static PetscCount Grouped(const RefMat *A, const RefMat *B)
{
  PetscCount grouped = 0;

  for (PetscInt r = 0, end; r < A->csr.m; r = end) {
    for (end = r + 1; end < A->csr.m && Follows(A, end); end++) {
      PetscBool all = PETSC_TRUE;

      for (PetscInt k = A->csr.i[end]; k < A->csr.i[end + 1]; k++) all = (PetscBool)(all && Follows(B, A->csr.j[k]));
      if (!all) break;
    }
    if (end - r < LANES)
      end = r + 1;
    else
      grouped += end - r;
  }
  return grouped;
}

/* rows of padded that are to be side by side, negative: any */
static PetscCount beside = -1;

/* to the bit, at once and with other values of A, among them zeros of both signs and a NaN; all of these rows are
   grouped */
static void BySide(const char *name, RefMat *A, RefMat *right, PetscBool fits)
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       C, copy, *B = right;
  PetscScalar *expected;

  if (A == right) RefMatCopy(A, B = &copy);
  RefSpGEMM(A, B, &C);
  expected = RefProductInOrder(A, B, &C);
  if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), name, 0)) && HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, &DB)) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
    HybTestCheck((mm.method == method) == fits, "%s", mm.method->name);
    if (HybTestSamePattern(&DC, &C)) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
    if (fits && Is("padded")) {
      HybTestCheck(HybCountersGet(&mm.counters, "rows padded") == A->csr.m, "%td rows padded", HybCountersGet(&mm.counters, "rows padded"));
      HybTestCheck(beside < 0 || HybCountersGet(&mm.counters, "rows beside") == beside, "%td rows beside each other, expected %td", HybCountersGet(&mm.counters, "rows beside"), beside);
    }
    if (fits && Is("shape")) {
      HybTestCheck(HybCountersGet(&mm.counters, "rows by shape") == Grouped(A, B), "%td rows by shape, expected %td", HybCountersGet(&mm.counters, "rows by shape"), Grouped(A, B));
      HybTestCheck(HybCountersGet(&mm.counters, "rows by shape") + HybCountersGet(&mm.counters, "rows alone") == A->csr.m, "%td rows alone", HybCountersGet(&mm.counters, "rows alone"));
    }
    HybTestRandomize(A);
    for (PetscCount k = 0; k < A->csr.nnz; k += 1 + k % 7) A->csr.a[k] = k % 3 ? (PetscReal)0.0 : (PetscReal)-0.0;
    if (A->csr.nnz) A->csr.a[A->csr.nnz / 2] = (PetscReal)NAN;
    free(expected);
    expected = RefProductInOrder(A, B, &C);
    for (PetscCount k = 0; k < C.csr.nnz; k++) DC.a[k] = 7;
    PetscCallAbort(PETSC_COMM_SELF, PetscArraycpy(DA.a, (HybScalar *)A->csr.a, (size_t)A->csr.nnz));
    if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) SameNumbers(&DC, C.csr.nnz, expected);
    PatternAlone(&mm, DA, DB, &C);
  }
  Finish(&mm);
  free(expected);
  RefMatDestroy(&C);
  if (A == right) RefMatDestroy(B);
}

static void Stencils(void)
{
  static const PetscInt points[] = {5, 7, 9, 27}, lengths[] = {7, 11, 12, 13, 20, 61};
  RefMat                A;

  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(points); p++) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lengths); k++) {
      HybTestBegin("%" PetscInt_FMT " points squared, lines of %" PetscInt_FMT, points[p], lengths[k]);
      HybTestMatStencil(points[p], lengths[k], 6, p % 2 ? 5 : 1, &A);
      BySide("shape", &A, &A, PETSC_TRUE);
      RefMatDestroy(&A);
    }
  }
}

/* rows of A, B and C of 1, 2, 3 ... entries, and diagonals that come and go */
static void Lengths(void)
{
  PetscInt offset[16];
  RefMat   A, B;

  for (PetscInt na = 1; na <= 5; na++) {
    for (PetscInt nb = 1; nb <= 9; nb++) {
      HybTestBegin("%" PetscInt_FMT " and %" PetscInt_FMT " diagonals", na, nb);
      for (PetscInt k = 0; k < na; k++) offset[k] = k * (k + 1) - 2;
      Diagonals(83, 100, na, offset, 100, &A);
      for (PetscInt k = 0; k < nb; k++) offset[k] = (nb % 2 ? 3 : 1) * k - 4;
      Diagonals(100, 90, nb, offset, 100, &B);
      BySide("shape", &A, &B, PETSC_TRUE);
      RefMatDestroy(&B);
      Diagonals(100, 90, nb, offset, 96, &B);
      BySide("shape", &A, &B, PETSC_TRUE);
      RefMatDestroy(&A, &B);
    }
  }
  for (int empty = 0; empty < 3; empty++) {
    HybTestBegin("rows without entries, kind %d", empty);
    for (PetscInt k = 0; k < 3; k++) offset[k] = 20 * k - 20;
    Diagonals(120, 120, 3, offset, 100, &A);
    RefMatCopy(&A, &B);
    if (empty != 1) HybTestMatEmptyRows(&A, 30, 70, 1);
    if (empty) HybTestMatEmptyRows(&B, 40, 60, 1);
    BySide("shape", &A, &B, PETSC_TRUE);
    RefMatDestroy(&A, &B);
  }
}

/* rows of C of more entries than 16 bits count are computed one by one, shorter ones beside them are not */
static void Long(void)
{
  const PetscInt n = 70000;
  PetscInt       i[61], *j = (PetscInt *)RefAlloc(40 * 40000 + 20, sizeof(PetscInt)), nnz = 0;
  Product        p = {.expected = NULL};

  HybTestBegin("rows of C with more than 65536 entries");
  for (PetscInt r = 0; r < 60; r++) {
    i[r] = nnz;
    /* the first twenty in even columns, the next in odd ones; then short ones */
    for (PetscInt k = 0; k < (r < 40 ? 34000 : 1); k++) j[nnz++] = 2 * k + r + (r < 40 && r >= 20 ? 1 - 20 : 0);
  }
  i[60] = nnz;
  HybTestMatArrays(60, n, i, j, NULL, &p.B);
  /* ten rows with both kinds, then twenty of short ones */
  for (PetscInt r = 0; r < 30; r++) {
    i[r]         = 2 * r;
    j[2 * r]     = r < 10 ? r : r + 30 - 1;
    j[2 * r + 1] = r < 10 ? r + 20 : r + 30;
  }
  i[30] = 60;
  HybTestMatArrays(30, 60, i, j, NULL, &p.A);
  if (Open(&p, "shape") && First(&p, 3)) HybTestCheck(HybCountersGet(&p.mm.counters, "rows by shape") == 19, "%td rows by shape", HybCountersGet(&p.mm.counters, "rows by shape"));
  HybTestCheck(p.C.csr.i[1] > 65536, "%d", (int)p.C.csr.i[1]);
  free(j);
  Close(&p);
}

static void Choice(void)
{
  RefMat A, B;

  HybTestBegin("auto: lines as long as the places are apart that it samples");
  HybTestMatStencil(9, 32, 64, 1, &A);
  BySide("auto", &A, &A, PETSC_TRUE);
  RefMatDestroy(&A);
  for (int kind = 0; kind < 4; kind++) {
    HybTestBegin("auto, kind %d", kind);
    if (kind == 3)
      HybTestMatRandom(300, 300, 5, 9, &A);
    else
      HybTestMatStencil(7, kind == 0 ? 24 : 10, 9, 7, &A);
    if (kind == 2) {
      HybTestMatBlock(&A, 3, &B); /* rows of a block have one pattern */
      RefMatDestroy(&A);
      A = B;
    }
    BySide("auto", &A, &A, (PetscBool)(kind == 0)); /* lines of ten leave six rows side by side */
    RefMatDestroy(&A);
  }
}

/* n rows of so many entries, in columns that are drawn */
static void Short(PetscInt m, PetscInt n, PetscInt least, PetscInt most, PetscInt longer, RefMat *B)
{
  PetscInt *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = longer && r % 97 == 5 ? longer : HybTestRandomInt(least, most + 1);
  HybTestMatLengths(m, n, lengths, B);
  free(lengths);
}

/* rows of A in groups of two to LANES that follow each other */
static PetscCount Beside(const RefMat *A)
{
  PetscCount rows = 0;

  for (PetscInt r = 0, end; r < A->csr.m; r = end) {
    for (end = r + 1; end < A->csr.m && end - r < LANES && Follows(A, end); end++)
      ;
    if (end - r > 1) rows += end - r;
  }
  return rows;
}

/* padded, of whose rows so many are to be side by side, none of complex ones; A and B are given back */
static void PaddedBeside(RefMat *A, RefMat *B, PetscCount rows)
{
  beside = PetscDefined(USE_COMPLEX) ? 0 : rows;
  BySide("padded", A, B, PETSC_TRUE);
  beside = -1;
  RefMatDestroy(A, B);
}

/* Padded's rows side by side. Half of B's rows are zeros of both signs, so that sums have the sign of no product but
   their own, and one is infinite, which lanes that do not name it must not see. */
static void SideBySide(void)
{
  static const PetscInt points[] = {5, 7, 9, 27};
  RefMat                A, B;

  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(points); p++) {
    for (PetscInt most = 2; most <= 12; most += 5) {
      HybTestBegin("padded, rows beside each other: %" PetscInt_FMT " points, rows of up to %" PetscInt_FMT, points[p], most);
      HybTestMatStencil(points[p], 39 + most, 21, p % 2 ? 5 : 1, &A);
      Short(A.csr.m, 300, 0, most, 0, &B);
      for (PetscInt r = 0; r < B.csr.m; r++)
        for (PetscInt k = B.csr.i[r]; k < B.csr.i[r + 1] && r % 2; k++) B.csr.a[k] = k % 3 ? (PetscReal)0.0 : (PetscReal)-0.0;
      for (PetscInt k = B.csr.i[400]; k < B.csr.i[401]; k++) B.csr.a[k] = (PetscReal)INFINITY;
      PaddedBeside(&A, &B, Beside(&A));
    }
  }
  HybTestBegin("padded, rows beside each other: lines as long as the places are apart that it samples");
  HybTestMatStencil(9, 32, 32, 1, &A);
  Short(A.csr.m, 20, 1, 4, 0, &B);
  PaddedBeside(&A, &B, Beside(&A));
  HybTestBegin("padded: no rows");
  Short(0, 0, 0, 1, 0, &A);
  Short(0, 0, 0, 1, 0, &B);
  PaddedBeside(&A, &B, 0);
  HybTestBegin("padded: lines of three points follow each other too seldom");
  HybTestMatStencil(5, 3, 300, 1, &A);
  Short(A.csr.m, 60, 1, 4, 0, &B);
  PaddedBeside(&A, &B, 0);
  HybTestBegin("padded, rows beside each other: every allocation fails in turn");
  HybTestMatStencil(9, 41, 11, 1, &A);
  Short(A.csr.m, 20, 1, 4, 0, &B);
  EachFault("padded", &A, &B, PETSC_FALSE);
  RefMatDestroy(&A, &B);
}

static void Padded(void)
{
  static const PetscInt points[] = {5, 7, 9, 27};
  RefMat                A, B;
  PetscInt              offset[3] = {-9, 0, 1};

  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(points); p++) {
    for (PetscInt most = 1; most <= 9; most++) {
      HybTestBegin("padded: %" PetscInt_FMT " points, rows of up to %" PetscInt_FMT, points[p], most);
      /* lines of six to fourteen points: groups of all sizes */
      HybTestMatStencil(points[p], 5 + most, 7, p % 2 ? 4 : 1, &A);
      Short(A.csr.m, 60, most % 2, most, most == 4 ? 30 : 0, &B);
      BySide("padded", &A, &B, PETSC_TRUE);
      RefMatDestroy(&A, &B);
    }
  }
  HybTestBegin("padded: rows without entries, the last columns");
  Diagonals(90, 100, 3, offset, 100, &A);
  HybTestMatEmptyRows(&A, 20, 40, 3);
  Short(100, 3, 0, 3, 0, &B);
  HybTestMatEmptyRows(&B, 30, 60, 1);
  BySide("padded", &A, &B, PETSC_TRUE);
  RefMatDestroy(&A, &B);
  for (int kind = 0; kind < 4; kind++) {
    HybTestBegin("padded: auto, kind %d", kind);
    HybTestMatStencil(7, 12, 9, 7, &A);
    /* few entries; all too long; some too long; in the mean one */
    Short(A.csr.m, 50, kind == 1 ? 9 : kind == 3 ? 0
                                                 : 2,
          kind == 1 ? 12 : kind == 3 ? 2
                                     : 5,
          kind == 2 ? 30 : 0, &B);
    BySide("auto", &A, &B, (PetscBool)(kind == 0 || kind == 2)); /* one in 97 is too long: one in 32 may be */
    RefMatDestroy(&A, &B);
  }
  HybTestBegin("padded: every allocation fails in turn");
  HybTestMatStencil(5, 11, 6, 1, &A);
  Short(A.csr.m, 20, 1, 4, 0, &B);
  EachFault("padded", &A, &B, PETSC_FALSE);
  RefMatDestroy(&A, &B);
}

static void Faults(void)
{
  RefMat A;

  HybTestBegin("every allocation fails in turn");
  HybTestMatStencil(9, 17, 9, 1, &A);
  EachFault("shape", &A, &A, PETSC_FALSE);
  RefMatDestroy(&A);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  if (HybTestExec()->backend->device) {
    HybTestBegin("rows side by side");
    HybTestSkip("the host's method is meant");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Methods("shape", "rows side by side"));
  if (!method) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestPieces(Stencils, Lengths, Long, Choice, Faults);
  PetscCall(Methods("padded", "padded rows"));
  if (method && HybTestMine()) Padded();
  if (method && HybTestMine()) SideBySide();
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
