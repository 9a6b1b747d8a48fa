/*
  C = A*B by method "diagonal": stencils and other matrices of few diagonals, in all layouts, operands that it is not
  made for, failing allocations, and what "auto" makes of it.
*/
#include "spgemmtest.h"

static void CheckCounters(const HybSpGEMM *mm, const RefMat *A, const RefMat *B, const RefMat *C)
{
  HybTestCheck(HybCountersGet(&mm->counters, "rows by diagonals") == A->csr.m, "%td rows by diagonals", HybCountersGet(&mm->counters, "rows by diagonals"));
  CheckStats(mm, A, B);
}

/* C = A*B by diagonals, or the error */
static void ByDiagonals(const RefMat *A, const RefMat *B, PetscBool by)
{
  HybSpGEMM mm;
  HybCSR    DA, DB, DC;

  if (by) {
    CheckProduct("diagonal", A, B, RefProductInOrder, CheckCounters);
    return;
  }
  if (Begin(&mm, A, B, &DA, &DB)) HybTestCallFails(PETSC_ERR_SUP, HybSpGEMMSymbolic(&mm, &DA, &DB, &out, &DC));
  HybTestCheck(!mm.work.bytes && !mm.keep.bytes, "%zu bytes are kept", mm.work.bytes + mm.keep.bytes);
  Finish(&mm);
}

static const PetscInt mesh[] = {-31, -30, -1, 0, 1, 30, 31};

/* stencils, and other matrices of few diagonals; o: which layout, runs: of several diagonals side by side */
static void Stencils(size_t o, PetscBool runs)
{
  static const PetscInt skew[] = {-40, -7, -6, 3, 4, 5, 50}, none[] = {-9, 8}, three[] = {-50, -20, -19, -18, 0}, others[] = {-7, 3, 4, 5};
  static const struct {
    const char     *what;
    PetscInt        m, k, n, na, nb;
    const PetscInt *a, *b; /* NULL: A squared */
    PetscBool       empty;
  } pairs[] = {
    {"triangles",                      700, 700, 700, 7, 0, mesh,  NULL,   PETSC_FALSE},
    {"two operands, A rectangular",    500, 700, 700, 7, 7, skew,  mesh,   PETSC_FALSE},
    {"two operands, both rectangular", 500, 700, 333, 7, 2, skew,  none,   PETSC_FALSE},
    {"runs of three and of one",       400, 430, 390, 5, 4, three, others, PETSC_FALSE},
    {"many empty rows",                700, 700, 700, 7, 0, mesh,  NULL,   PETSC_TRUE }
  };
  RefMat A, B;

  for (PetscInt k = 0; k < 4; k++) {
    static const PetscInt points[] = {5, 7, 9, 27};

    HybTestBegin("%s: %" PetscInt_FMT " points squared, layout %zu", method->name, points[k], o);
    HybTestMatStencil(points[k], HybTestSize(61, 45), k == 0 || k == 2 ? HybTestSize(43, 13) : 5, k == 0 || k == 2 ? 1 : HybTestSize(9, 5), &A);
    /* 27 single diagonals take more shared memory than a block has */
    ByDiagonals(&A, &A, (PetscBool)(points[k] != 27 || runs || PetscDefined(USE_REAL_SINGLE)));
    RefMatDestroy(&A);
  }
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(pairs); k++) {
    for (PetscInt percent = 40; percent <= 100; percent += 30) {
      HybTestBegin("%s: %s, %" PetscInt_FMT " per cent of them, layout %zu", method->name, pairs[k].what, percent, o);
      Diagonals(pairs[k].m, pairs[k].k, pairs[k].na, pairs[k].a, percent, &A);
      if (pairs[k].empty) HybTestMatEmptyRows(&A, 200, 400, 1);
      if (pairs[k].b) Diagonals(pairs[k].k, pairs[k].n, pairs[k].nb, pairs[k].b, percent, &B);
      ByDiagonals(&A, pairs[k].b ? &B : &A, PETSC_TRUE);
      RefMatDestroy(&A);
      if (pairs[k].b) RefMatDestroy(&B);
    }
  }
}

/* bands, so many diagonals that they do not fit, diagonals that a sample misses, and random ones */
static void Bands(size_t o)
{
  PetscInt all[80];
  RefMat   A, B;

  for (PetscInt n = 1; n <= 12; n++) {
    HybTestBegin("%s: a band of %" PetscInt_FMT ", layout %zu", method->name, n, o);
    for (PetscInt k = 0; k < n; k++) all[k] = k - n / 2;
    Diagonals(301, 301, n, all, n % 3 ? 100 : 60, &A);
    ByDiagonals(&A, &A, PETSC_TRUE);
    RefMatDestroy(&A);
  }
  for (PetscInt n = 31; n <= 64; n += n == 33 ? 30 : 1) {
    HybTestBegin("%s: %" PetscInt_FMT " diagonals, layout %zu", method->name, n, o);
    for (PetscInt k = 0; k < n; k++) all[k] = k - n / 2;
    Diagonals(200, 200, n, all, 100, &A);
    /* with more of them, complex values take more shared memory than a block has */
    Diagonals(200, 170, 2, all + n / 2, 90, &B);
    ByDiagonals(&A, &B, (PetscBool)(n < 64));
    RefMatDestroy(&A, &B);
  }
  HybTestBegin("%s: so many diagonals of C that there is no program, layout %zu", method->name, o);
  for (PetscInt k = 0; k < 30; k++) all[k] = k * k;
  Diagonals(1000, 1000, 30, all, 100, &A);
  ByDiagonals(&A, &A, (PetscBool)PETSC_FALSE);
  RefMatDestroy(&A);
  HybTestBegin("%s: diagonals that a sample misses, and products that are empty, layout %zu", method->name, o);
  Diagonals(5000, 5000, 7, mesh, 100, &A);
  A.csr.j[A.csr.i[4321]]     = 17;
  A.csr.j[A.csr.i[1235] - 1] = 4999;
  ByDiagonals(&A, &A, PETSC_TRUE);
  RefMatDestroy(&A);
  for (PetscInt k = 0; k < 2; k++) all[k] = 2 * k - 1;
  Diagonals(90, 90, 2, all, 50, &A);
  for (PetscInt k = 0; k < HybTestSize(30, 6); k++) {
    PetscInt other[4];

    HybTestBegin("%s: random diagonals %" PetscInt_FMT ", layout %zu", method->name, k, o);
    other[0] = HybTestRandomInt(-40, -20);
    for (PetscInt q = 1; q < 4; q++) other[q] = other[q - 1] + HybTestRandomInt(1, 30);
    Diagonals(90, HybTestRandomInt(90, 200), 4, other, HybTestRandomInt(60, 110), &B);
    ByDiagonals(&A, &B, PETSC_TRUE);
    RefMatDestroy(&B);
  }
  RefMatDestroy(&A);
}

/* these take within a kibibyte and a half of what a block can have */
static void FullBlocks(void)
{
  static const PetscInt full[][2] = {
    {21, 37},
    {29, 27},
    {35, 21}
  };
  RefMat A, B;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(full); k++) {
    PetscInt all[64];

    HybTestBegin("%s: a block's shared memory is full, %" PetscInt_FMT " and %" PetscInt_FMT " diagonals", method->name, full[k][0], full[k][1]);
    for (PetscInt q = 0; q < 64; q++) all[q] = 2 * q - 30;
    Diagonals(200, 200, full[k][0], all, 100, &A);
    Diagonals(200, 200, full[k][1], all, 100, &B);
    ByDiagonals(&A, &B, (PetscBool)PetscDefined(USE_REAL_SINGLE)); /* of values of 8 bytes */
    RefMatDestroy(&A, &B);
  }
}

static void TakenByAuto(void)
{
  for (PetscInt k = 0; k < 2; k++) {
    Product p = {.A = HybTestMat(Stencil, 5, 30, 40, 1)};

    HybTestBegin("auto %s a stencil's diagonals", k ? "takes" : "is too small for");
    HybTestCall(HybTuningSet("diagonal_fewest", k ? "1000" : "1000000"));
    if (Open(&p, "auto") && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC))) {
      HybTestSameMatrix(&p.DC, &p.C, 4);
      HybTestCheck(!strcmp(p.mm.method->name, "diagonal") == (k > 0), "%s", p.mm.method->name);
    }
    Close(&p);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
}

static void FewDiagonals(void)
{
  static const char *const options[][3] = {
    {"0",   "0",   "true" },
    {"32",  "256", "true" },
    {"32",  "512", "false"},
    {"64",  "512", "true" },
    {"128", "256", "false"}
  };

  for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(options); o++) {
    if (!HybTestMine()) continue;
    HybTestCall(HybTuningSet("diagonal_rows", options[o][0]));
    HybTestCall(HybTuningSet("diagonal_threads", options[o][1]));
    HybTestCall(HybTuningSet("diagonal_runs", options[o][2]));
    Stencils(o, (PetscBool)!strcmp(options[o][2], "true"));
    Bands(o);
  }
  HybTestCall(HybTuningSet("diagonal_rows", NULL));
  HybTestCall(HybTuningSet("diagonal_threads", NULL));
  HybTestCall(HybTuningSet("diagonal_runs", NULL));
  if (!HybTestMine()) return;
  FullBlocks();
  TakenByAuto();
}

/* what "diagonal" has waited for, asked by auto, when it declines leaves enough for who takes the operands */
static void Declined(void)
{
  static const char *const kinds[] = {"few", "C has too many diagonals", "pairs of them are too many", "rows have few entries on them", "they take more shared memory than a block has", "a sample misses some", "a sample misses so many that there are too many", "a sample misses some, and then C has too many"};

  if (!HybTestExec()->backend->device) return;
  HybTestCall(HybTuningSet("diagonal_fewest", "1000"));
  for (PetscInt kind = 0; kind < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(kinds); kind++) {
    const PetscInt m = kind < 5 ? HybTestSize(3000, 1200) : 5000, n = kind == 0 || kind == 5 ? 7 : kind == 2 ? 34
                                                                                                 : kind == 4 ? 29
                                                                                                 : kind == 6 ? 55
                                                                                                             : 30;
    PetscInt       offset[64];
    Product        p = {.expected = NULL};

    HybTestBegin("auto declines diagonals, or not: %s", kinds[kind]);
    for (PetscInt k = 0; k < n; k++) offset[k] = kind == 1 || kind == 7 ? k * k : (kind == 2 ? 1 : 2) * (k - n / 2);
    Diagonals(m, m, n, offset, kind == 3 ? 35 : 100, &p.A);
    if (kind >= 5) { /* the last columns of some rows move on */
      for (PetscInt k = 0; k < (kind == 6 ? 30 : 3); k++) p.A.csr.j[p.A.csr.i[1000 + 50 * k + 1] - 1] += 1001 + (kind == 6 ? 3 * k : 0);
    }
    if (kind == 4) HybTestCall(HybTuningSet("diagonal_runs", "false"));
    /* long rows are sampled for blocks alone */
    if (Open(&p, "auto") && First(&p, n > 27 ? 4 : 3)) {
      HybTestCheck(!strcmp(p.mm.method->name, "diagonal") == (kind == 0 || kind == 5 || (kind == 4 && PetscDefined(USE_REAL_SINGLE))), "%s", p.mm.method->name);
      /* wide stencils must not lose the look for shapes */
      if (kind == 2) HybTestCheck(!strcmp(p.mm.method->name, "shape"), "%s", p.mm.method->name);
    }
    HybTestCall(HybTuningSet("diagonal_runs", NULL));
    Close(&p);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
}

static void Repeated(void)
{
  RefMat A;

  HybTestMatStencil(9, 40, 17, 1, &A);
  TwentyRuns(&A, RefProductInOrder);
}

/* operands without entries have a product without any; others that are not of few diagonals are refused */
static void Operands(void)
{
  for (int kind = 0; kind < 3; kind++) {
    Product p = {.A = HybTestMat(Random, 70, 300, kind ? 2 : 0, kind ? 5 : 0), .B = HybTestMat(Random, 300, 200, kind != 1 ? 2 : 0, kind != 1 ? 5 : 0)};

    HybTestBegin("%s: %s", method->name, kind == 0 ? "A has no entries" : kind == 1 ? "B has none"
                                                                                    : "random columns");
    if (Open(&p, method->name)) {
      if (kind == 2)
        HybTestCallFails(PETSC_ERR_SUP, HybSpGEMMSymbolic(&p.mm, &p.DA, &p.DB, &out, &p.DC));
      else
        First(&p, 3);
    }
    Close(&p);
  }
}

static void Faults(void)
{
  RefMat A;

  HybTestBegin("%s: every allocation failing in turn", method->name);
  HybTestMatStencil(5, 20, 20, 1, &A);
  EachFault(method->name, &A, &A, PETSC_FALSE);
  RefMatDestroy(&A);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  PetscCall(Methods("diagonal", "SpGEMM by diagonals"));
  if (!method) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestPieces(Operands, Repeated, Faults, Declined);
  FewDiagonals();
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
