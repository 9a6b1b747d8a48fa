/* C = A*B by every method of the backend, against the reference. */
#include "spgemmtest.h"
#include <petsctime.h>
#include <stdint.h>

/* what the method counted of what makes it itself. C: the product */
static void CheckCounters(const HybSpGEMM *mm, const RefMat *C)
{
  const PetscBool  device = mm->exec.backend->device;
  const PetscCount m = C->csr.m, merged = HybCountersGet(&mm->counters, "factors");
  PetscCount       rows = 0, full = 0;

  for (PetscInt k = 0; k < mm->counters.n; k++) {
    /* those listed are in tables too */
    if (!strncmp(mm->counters.name[k], "rows ", 5) && strcmp(mm->counters.name[k], "rows listed")) rows += mm->counters.value[k];
  }
  for (PetscInt r = 0; r < m; r++) full += C->csr.i[r + 1] > C->csr.i[r];
  if (Is("rowmerge") && mm->stats.products) {
    const PetscCount w       = HybCountersGet(&mm->counters, "width");
    PetscCount       factors = 1, reach = w;

    /* a row of the longest length may meet empty rows of B: at most that many; a device's threads that merge a row each
       have one factor, whose width is not counted */
    for (; w > 1 && reach < mm->stats.maxarow; reach *= w) factors++;
    HybTestCheck(merged >= 1 && merged <= factors && (!device || merged == factors), "%td factors, expected %td", merged, factors);
    HybTestCheck(!width || w == width, "width %td", w);
    if (!device)
      HybTestCheck(HybCountersGet(&mm->counters, "merge rounds") >= 1, "%td merge rounds", HybCountersGet(&mm->counters, "merge rounds"));
    else
      HybTestCheck((HybCountersGet(&mm->counters, "intermediate entries") > 0) == (merged > 1), "%td intermediate entries, %td factors", HybCountersGet(&mm->counters, "intermediate entries"), merged);
  }
  if (Is("binned")) HybTestCheck(rows == m, "the bins hold %td rows of %td", rows, m);
  if (Is("hash")) HybTestCheck(rows == full, "tables for %td rows, %td have entries", rows, full);
  if (Is("shape") && mm->stats.products) {
    const PetscCount others = HybCountersGet(&mm->counters, device ? "rows by hash" : "rows alone");

    HybTestCheck(HybCountersGet(&mm->counters, "rows by shape") + others == m, "%td rows by shape, %td otherwise", HybCountersGet(&mm->counters, "rows by shape"), others);
  }
  if (Is("segmerge")) HybTestCheck(HybCountersGet(&mm->counters, "pairs merged") == mm->stats.products && (HybCountersGet(&mm->counters, "chunks") > 0) == (mm->stats.products > 0), "%td pairs merged in %td chunks, %td products", HybCountersGet(&mm->counters, "pairs merged"), HybCountersGet(&mm->counters, "chunks"), mm->stats.products);
}

/* rowmerge adds the sums of pieces where it needs several factors; all else adds products one by one, in A's order */
static PetscBool KeepsOrder(const HybSpGEMM *mm)
{
  return (PetscBool)(!Is("rowmerge") || HybCountersGet(&mm->counters, "factors") <= 1);
}

/* the first product, one of other values, and the first once more, to the bit */
static void Check(RefMat *A, RefMat *B)
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       C, first, again;
  PetscScalar *inorder;

  RefSpGEMM(A, B, &C);
  if (Begin(&mm, A, B, &DA, &DB) && Made(Multiply(&mm, &DA, &DB, &DC))) {
    HybTestCheck(mm.method == method, "%s ran in place of %s", mm.method->name, method->name);
    CheckCounters(&mm, &C);
    if (HybTestSameMatrix(&DC, &C, 4) && HybTestCall(HybTestDownload(&DC, &first))) {
      if (KeepsOrder(&mm)) {
        inorder = RefProductInOrder(A, B, &C);
        HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, inorder);
        free(inorder);
      }
      HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC));
      HybTestSameBits(first.csr.nnz, sizeof(PetscScalar), DC.a, first.csr.a);
      RefMatDestroy(&C);
      /* other values, whose error bounds start anew */
      HybTestMatArrays(A->csr.m, A->csr.n, A->csr.i, A->csr.j, NULL, &again);
      HybTestRandomize(&again);
      RefSpGEMM(&again, B, &C);
      if (HybTestCall(HybTestUpload(&keep, &again.csr, &DA)) && HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameMatrix(&DC, &C, 4);
      RefMatDestroy(&again);
      /* a second plan: no state of the first one in the result */
      HybTestCall(HybSpGEMMDestroy(&mm));
      if (HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width)) && Made(Multiply(&mm, &DA, &DB, &DC))) HybTestSameBits(first.csr.nnz, sizeof(PetscScalar), DC.a, first.csr.a);
      RefMatDestroy(&first);
    }
  }
  Finish(&mm);
  RefMatDestroy(&C);
}

static void CheckAndDestroy(RefMat *A, RefMat *B)
{
  Check(A, B);
  RefMatDestroy(A, B);
}

static void Zoo(void)
{
  char   name[64];
  RefMat A, B;

  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    HybTestBegin("%s: %s times its transpose", method->name, name);
    RefTranspose(&A, PETSC_FALSE, &B);
    Check(&A, &B);
    HybTestBegin("%s: the transpose of %s times it", method->name, name);
    CheckAndDestroy(&B, &A);
  }
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    HybTestBegin("%s: %s squared", method->name, name);
    RefMatCopy(&A, &B);
    CheckAndDestroy(&A, &B);
  }
}

/* a case of one product, whose operands it destroys */
static void Case(const char *what, RefMat A, RefMat B)
{
  HybTestBegin("%s: %s", method->name, what);
  CheckAndDestroy(&A, &B);
}

static void Squared(const char *what, RefMat A)
{
  RefMat B;

  RefMatCopy(&A, &B);
  Case(what, A, B);
}

/* rows of exactly so many products, without any duplicate and with nothing but duplicates */
static void Boundaries(void)
{
  static const PetscInt limits[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  const PetscInt        nlimits = HybTestSlow() ? 11 : 14, most = limits[nlimits - 1] + 2;
  PetscInt              lengths[64], n                          = 0;

  lengths[n++] = 0;
  for (PetscInt k = 0; k < nlimits; k++) {
    for (PetscInt d = -1; d <= 1; d++) lengths[n++] = limits[k] + d;
  }
  Case("bin boundaries, no duplicates", HybTestMat(Lengths, n, most, lengths), HybTestMat(Banded, most, most, 0, 0));
  Case("bin boundaries, all duplicates", HybTestMat(Lengths, n, most, lengths), HybTestMat(DenseColumn, most, 3, 1, 0));
  Case("bin boundaries by one row of B", HybTestMat(Banded, n, n, 0, 0), HybTestMat(Lengths, n, most + 70, lengths));
  Case("bin boundaries, two to four duplicates", HybTestMat(Lengths, n, most, lengths), HybTestMat(Random, most, most / 3 + 1, 1, 1));
  Case("bin boundaries, columns far apart", HybTestMat(Lengths, n, most, lengths), HybTestMat(Random, most, HybTestSize(1200000, 70000), 1, 1));
}

static void Shapes(void)
{
  const PetscInt n = HybTestSize(600, 150);
  PetscInt       la[90], lb[40];
  RefMat         A, B;

  Case("nothing by nothing", HybTestMat(Empty, 0, 0), HybTestMat(Empty, 0, 0));
  Case("0 x 5 times 5 x 7", HybTestMat(Empty, 0, 5), HybTestMat(Random, 5, 7, 1, 3));
  Case("7 x 0 times 0 x 5", HybTestMat(Empty, 7, 0), HybTestMat(Empty, 0, 5));
  Case("5 x 7 times 7 x 0", HybTestMat(Random, 5, 7, 1, 3), HybTestMat(Empty, 7, 0));
  Case("1 x 1", HybTestMat(Banded, 1, 1, 0, 0), HybTestMat(Banded, 1, 1, 0, 0));
  Case("a matrix without entries times another", HybTestMat(Empty, n, n), HybTestMat(Random, n, n, 0, 9));
  Case("times a matrix without entries", HybTestMat(Random, n, n, 0, 9), HybTestMat(Empty, n, n));
  B = HybTestMat(Random, n, n, 0, 9);
  HybTestMatEmptyRows(&B, 0, n, 2);
  Case("rows of A that meet empty rows of B alone", HybTestMat(Random, n, n, 0, 3), B);
  Case("a dense row of A", HybTestMat(DenseRow, n, n, n / 2, 3), HybTestMat(Random, n, n, 0, 6));
  Case("a dense row of B", HybTestMat(Random, n, n, 0, 6), HybTestMat(DenseRow, n, n, n / 2, 3));
  Squared("a dense row of both", HybTestMat(DenseRow, n, n, n / 2, 3));
  Case("a dense row times a dense column", HybTestMat(DenseRow, n, n, n / 2, 3), HybTestMat(DenseColumn, n, n, n / 3, 2));
  Case("a dense column times a dense row", HybTestMat(DenseColumn, n, n, n / 3, 2), HybTestMat(DenseRow, n, n, n / 2, 3));
  Case("an outer product", HybTestMat(Banded, n, 1, n, 1), HybTestMat(Banded, 1, n, 1, n));
  Case("an inner product", HybTestMat(Banded, 1, n, 1, n), HybTestMat(Banded, n, 1, n, 1));
  for (PetscInt m = 1024; m <= 1025; m++) Case("as many rows as a block puts into bins, and one more", HybTestMat(Random, m, 9, 0, 2), HybTestMat(Random, 9, 12, 1, 3));
  for (PetscInt r = 0; r < 90; r++) la[r] = 1 + r % 7;
  for (PetscInt r = 0; r < 40; r++) lb[r] = r % 2 ? 120 : 1 + r % 6;
  A = HybTestMat(Lengths, 90, 40, la);
  for (PetscInt r = 0; r < 90; r++) {
    for (PetscInt k = 0; k < la[r]; k++) A.csr.j[A.csr.i[r] + k] = 2 * (k + r % 13) + (r % 5 == 4);
  }
  Case("B's rows are long but for some, and most rows of A meet these alone", A, HybTestMat(Lengths, 40, 500, lb));
}

static void Structures(void)
{
  const PetscInt n = HybTestSize(600, 150);
  RefMat         A, B, C;

  HybTestBegin("%s: a chain of rectangular matrices", method->name);
  HybTestMatRandom(n, n / 4, 0, 8, &A);
  HybTestMatRandom(n / 4, 3 * n, 0, 20, &B);
  Check(&A, &B);
  RefSpGEMM(&A, &B, &C);
  RefMatDestroy(&A, &B);
  Case("the end of the chain", C, HybTestMat(Random, 3 * n, n / 7, 1, 3));
  A = HybTestMat(Stencil, 27, HybTestSize(7, 4), HybTestSize(6, 3), HybTestSize(4, 2));
  Squared("blocks of 3, rows of A with equal patterns", HybTestMat(Block, &A, 3));
  RefMatDestroy(&A);
  HybTestMatRandom(HybTestSize(23, 9), 17, 0, 4, &A);
  HybTestMatRandom(17, 19, 0, 4, &B);
  for (PetscInt bs = 2; bs <= 11; bs++) Case("blocks, rectangular", HybTestMat(Block, &A, bs), HybTestMat(Block, &B, bs));
  RefMatDestroy(&A, &B);
  Squared("27 points", HybTestMat(Stencil, 27, HybTestSize(12, 5), HybTestSize(11, 5), HybTestSize(10, 4)));
  Squared("5 points", HybTestMat(Stencil, 5, HybTestSize(70, 20), HybTestSize(60, 20), 1));
  Squared("power law", HybTestMat(PowerLaw, HybTestSize(3000, 400), HybTestSize(3000, 400), 6));
  Case("some hundred columns a row, far apart and without rule: hash tables that are rather full", HybTestMat(Random, 60, 40, 0, 5), HybTestMat(Random, 40, 500000, 0, 60));
  Case("very many columns", HybTestMat(Random, HybTestSize(20, 8), 40, 0, 40), HybTestMat(Random, 40, HybTestSize(2200000, 500000), 0, 400));
}

/* every bin has rows, and long rows grow */
static void EveryBin(void)
{
  static const char *const bins[] = {"rows empty", "rows copied", "rows repeated", "rows sorted", "rows dense", "rows hashed", "rows merged", "growths"};
  PetscInt                 ai[9] = {0, 0, 1, 3, 5, 7, 9, 59, 209}, aj[209], bi[153], nb = 0, *bj;
  HybSpGEMM                mm;
  HybCSR                   DC;
  const PetscInt           n2 = 2200000;
  RefMat                   A, B;

  HybTestBegin("%s: every bin has rows, and long rows grow", method->name);
  if (HybTestExec()->backend->device || !Is("binned")) {
    HybTestSkip("binned on the host is meant");
    return;
  }
  /* rows of B: 0 and 1 short and far apart, 2 and 3 of 50 near columns, the others of 400 columns all over */
  bj = (PetscInt *)RefAlloc(152 * 400, sizeof(PetscInt));
  for (PetscInt r = 0; r < 152; r++) {
    const PetscInt len  = r < 2 ? 5 : r < 4 ? 50
                                            : 400,
                   step = r < 2 || r >= 4 ? n2 / len : 3;

    bi[r] = nb;
    for (PetscInt k = 0; k < len; k++) bj[nb++] = k * step + HybTestRandomInt(0, step);
  }
  bi[152] = nb;
  HybTestMatArrays(152, n2, bi, bj, NULL, &B);
  aj[0] = 1;                                             /* copied */
  aj[1] = aj[3] = 0, aj[2] = aj[4] = 1;                  /* sorted, repeated */
  aj[5] = 2, aj[6] = 3;                                  /* dense */
  aj[7] = 4, aj[8] = 5;                                  /* hashed */
  for (PetscInt k = 0; k < 50; k++) aj[9 + k] = 3 + k;   /* merged */
  for (PetscInt k = 0; k < 150; k++) aj[59 + k] = 2 + k; /* merged, growing */
  HybTestMatArrays(8, 152, ai, aj, NULL, &A);
  if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, 0)) && Made(Multiply(&mm, &A.csr, &B.csr, &DC))) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bins); k++) HybTestCheck(HybCountersGet(&mm.counters, bins[k]) > 0, "no %s", bins[k]);
  }
  HybTestCall(HybSpGEMMDestroy(&mm));
  HybTestCall(HybArenaReset(&out));
  free(bj);
  CheckAndDestroy(&A, &B);
}

static void AllShapes(void)
{
  Shapes();
  Structures();
  EveryBin();
}

static void Random(void)
{
  const PetscInt count = HybTestSize(300, 40);
  RefMat         A, B;

  for (PetscInt k = 0; k < count; k++) {
    const PetscInt m = HybTestRandomInt(0, 70), l = HybTestRandomInt(0, 70), n = HybTestRandomInt(0, 130), la = HybTestRandomInt(0, l + 1), lb = HybTestRandomInt(0, n + 1);

    HybTestBegin("%s: random product %" PetscInt_FMT ", %" PetscInt_FMT " x %" PetscInt_FMT " (rows to %" PetscInt_FMT ") times %" PetscInt_FMT " x %" PetscInt_FMT " (rows to %" PetscInt_FMT ")", method->name, k, m, l, la, l, n, lb);
    HybTestMatRandom(m, l, 0, HybTestRandomInt(0, 3) ? la / 8 : la, &A);
    HybTestMatRandom(l, n, 0, HybTestRandomInt(0, 3) ? lb / 8 : lb, &B);
    CheckAndDestroy(&A, &B);
  }
}

/* Every kernel of a device's method that has several has something to do: one product in which all of its counters are
   there */
static void Kernels(void)
{
  static const struct {
    const char *method, *counters[12];
  } all[] = {
    {"hash",   {"rows up to 512 B", "rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 16 KiB", "rows up to 24 KiB", "rows up to 48 KiB", "rows up to a block", "rows spilled", "rows global", NULL}},
    {"binned", {"rows empty", "rows single", "rows heap 8", "rows heap 16", "rows heap 32", "rows bitonic 128", "rows bitonic 512", "rows merge", "rows merge long", "growths", "entries grown", NULL}                   }
  };
  /* row r of C is row r of B: so many columns, all over or, in the last one, side by side */
  static const PetscInt lengths[] = {0, 1, 3, 6, 14, 30, 60, 120, 200, 300, 600, 700, 2000, 6000, 9000, 24000, 60000};
  const PetscInt        m = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(lengths), n = 2200000;

  if (!HybTestExec()->backend->device || width) return;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) {
    PetscInt  bi[PETSC_STATIC_ARRAY_LENGTH(lengths) + 1] = {0}, *bj, nb = 0;
    HybSpGEMM mm;
    HybCSR    DA, DB, DC;
    RefMat    A, B, C;

    if (!Is(all[k].method)) continue;
    HybTestBegin("%s: every kernel has something to do", method->name);
    for (PetscInt r = 0; r < m; r++) bi[r + 1] = bi[r] + lengths[r];
    bj = (PetscInt *)RefAlloc(bi[m], sizeof(PetscInt));
    for (PetscInt r = 0; r < m; r++) {
      const PetscInt step = r == m - 1 ? 1 : n / PetscMax(1, lengths[r]);

      for (PetscInt e = 0; e < lengths[r]; e++) bj[nb++] = step * e + HybTestRandomInt(0, step);
    }
    HybTestMatBanded(m, m, 0, 0, &A);
    HybTestMatArrays(m, n, bi, bj, NULL, &B);
    RefSpGEMM(&A, &B, &C);
    if (Begin(&mm, &A, &B, &DA, &DB) && Made(Multiply(&mm, &DA, &DB, &DC)) && HybTestSameMatrix(&DC, &C, 4)) {
      for (size_t c = 0; all[k].counters[c]; c++) HybTestCheck(HybCountersGet(&mm.counters, all[k].counters[c]) > 0, "no %s", all[k].counters[c]);
    }
    Finish(&mm);
    free(bj);
    RefMatDestroy(&A, &B, &C);
  }
}

static void Repeated(void)
{
  const PetscInt n = HybTestSize(600, 150);
  RefMat         A;

  if (Is("shape"))
    HybTestMatStencil(9, 40, 17, 1, &A);
  else
    HybTestMatPowerLaw(n, n, 6, &A); /* rows of all lengths */
  TwentyRuns(&A, NULL);
}

static void Faults(void)
{
  RefMat A, B;

  HybTestBegin("%s: every allocation failing in turn", method->name);
  /* short, middle and long rows */
  HybTestMatDenseRow(60, 90, 7, 3, &A);
  HybTestMatPowerLaw(90, HybTestSize(20000, 2000), 30, &B);
  EachFault(method->name, &A, &B, PETSC_TRUE);
  RefMatDestroy(&A, &B);
}

/* Refused(), fast, but that a method which looks at its operands may refuse those that it is not made for, whatever
   comes out then */
static void RefusedByAny(const HybCSR *DA, const HybCSR *DB, PetscErrorCode error, const char *text)
{
  PetscErrorCode ierr;
  PetscLogDouble t0, t1;

  PetscCallAbort(PETSC_COMM_SELF, PetscTime(&t0));
  ierr = Refusal(DA, DB);
  PetscCallAbort(PETSC_COMM_SELF, PetscTime(&t1));
  HybTestCheck(HybTestSlow() || t1 - t0 < 1.0, "refused after %g s", (double)(t1 - t0));
  if (ierr == PETSC_ERR_SUP && method->fits) return;
  HybTestCheck(ierr == error, "error %d, expected %d", (int)ierr, (int)error);
  HybTestCheck(strstr(Message, text), "the message does not say \"%s\": %s", text, Message);
}

static void Limits(void)
{
  RefMat A, B;
  HybCSR DA, DB;
  char   needed[64];

  HybTestBegin("%s: operands that do not conform", method->name);
  HybTestMatRandom(5, 6, 1, 2, &A);
  HybTestMatRandom(7, 5, 1, 2, &B);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) RefusedByAny(&DA, &DB, PETSC_ERR_ARG_SIZ, "5 x 6 times 7 x 5");
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A, &B);

  /* kernels look beyond a row's end by some entries before they stop: nothing is read of such an operand */
  if (HybTestExec()->backend->device) {
    HybTestBegin("%s: an operand of as many nonzeros as PetscInt counts", method->name);
    memset(&DA, 0, sizeof(DA));
    DA.m = DA.n = 70000;
    DA.nnz      = PETSC_MAX_INT;
    RefusedByAny(&DA, &DA, PETSC_ERR_ARG_OUTOFRANGE, "kernels need the last");
  }
  HybTestBegin("%s: a product of more nonzeros than PetscInt counts is refused at once", method->name);
  if (sizeof(PetscInt) == 4) {
    /* a full column times a full row */
    HybTestMatBanded(50000, 1, 50000, 1, &A);
    HybTestMatBanded(1, 60000, 1, 60000, &B);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) {
      RefusedByAny(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "3000000000");
      RefusedByAny(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "--with-64-bit-indices");
      snprintf(needed, sizeof(needed), "it needs %.0f bytes, ", 3e9 * (sizeof(PetscInt) + sizeof(PetscScalar)));
      RefusedByAny(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, needed);
      RefusedByAny(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, " are free");
    }
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A, &B);
  } else
    HybTestSkip("64-bit indices count them");

  HybTestBegin("%s: a product of more nonzeros than PetscInt counts is refused when they are counted", method->name);
  if (sizeof(PetscInt) == 8)
    HybTestSkip("64-bit indices count them");
  else if (HybTestSlow() || !HybTestExec()->backend->device)
    HybTestSkip("takes too long here: the host gathers the columns as it counts");
  else {
    TwoHalves(&A, &B);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) RefusedByAny(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "nonzeros, more than the 2147483647 that 32-bit indices can count");
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A, &B);
  }

  HybTestBegin("%s: boyd1 squared is refused within a second", method->name);
  if (sizeof(PetscInt) == 4) {
    if (HybTestMatRead("boyd1", &A)) {
      if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) RefusedByAny(&DA, &DA, PETSC_ERR_ARG_OUTOFRANGE, "--with-64-bit-indices");
      HybTestCall(HybArenaReset(&keep));
      RefMatDestroy(&A);
    }
  } else
    HybTestSkip("64-bit indices count them");

  HybTestBegin("%s: more products than 2^31, few nonzeros", method->name);
  if (HybTestSlow() || HybTestExec()->backend->device || !Is("binned"))
    HybTestSkip("takes too long here");
  else {
    const PetscInt m = 1300;
    HybSpGEMM      mm;
    HybCSR         DC;
    RefMat         found;

    HybTestMatBanded(m, m, m, m, &A);
    for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] = 1 + k % 3;
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width)) && Made(Multiply(&mm, &A.csr, &A.csr, &DC)) && HybTestCall(HybTestDownload(&DC, &found))) {
      HybTestCheck(mm.stats.products == (PetscCount)m * m * m && mm.stats.products > (PetscCount)2147483647, "%td products", mm.stats.products);
      HybTestCheck(found.csr.nnz == (PetscCount)m * m, "%td nonzeros", found.csr.nnz);
      for (PetscInt s = 0; s < 200; s++) {
        const PetscInt r = HybTestRandomInt(0, m), c = HybTestRandomInt(0, m);
        PetscScalar    sum = 0;

        for (PetscInt k = 0; k < m; k++) sum += A.csr.a[r * m + k] * A.csr.a[k * m + c];
        HybTestCheck(found.csr.a[r * m + c] == sum && found.csr.j[r * m + c] == c, "(%" PetscInt_FMT ",%" PetscInt_FMT ") is wrong", r, c);
      }
      RefMatDestroy(&found);
    }
    HybTestCall(HybSpGEMMDestroy(&mm));
    HybTestCall(HybArenaReset(&out));
    RefMatDestroy(&A);
  }
}

static void Driver(void)
{
  const HybExec     *exec = HybTestExec();
  const char *const *names;
  HybSpGEMM          mm;
  HybCSR             DA, DC;
  RefMat             A, C;

  HybTestBegin("names: all methods, each once");
  if (HybTestCall(HybSpGEMMGetNames(&names))) {
    PetscBool binned = PETSC_FALSE;

    for (PetscInt k = 0; names[k]; k++) {
      binned = (PetscBool)(binned || !strcmp(names[k], "binned"));
      for (PetscInt l = 0; l < k; l++) HybTestCheck(strcmp(names[k], names[l]), "%s comes twice", names[k]);
    }
    HybTestCheck(binned, "binned is missing");
    for (const HybSpGEMMMethod *const *m = exec->backend->spgemm; m && *m; m++) {
      PetscInt k = 0;

      while (names[k] && strcmp(names[k], (*m)->name)) k++;
      HybTestCheck(names[k], "%s is missing", (*m)->name);
    }
  }
  HybTestBegin("an unknown method and widths out of range are refused, the names listed");
  PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(Catch, NULL));
  Message[0] = 0;
  HybTestCheck(HybSpGEMMInit(&mm, exec, "no such", 0) == PETSC_ERR_ARG_UNKNOWN_TYPE, "accepted");
  HybTestCheck(strstr(Message, "auto") && strstr(Message, "no such"), "%s", Message);
  PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpGEMMInit(&mm, exec, "auto", 1));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpGEMMInit(&mm, exec, "auto", 33));
  HybTestBegin("auto, numeric before symbolic, destroying twice");
  HybTestMatStencil(9, 20, 20, 1, &A);
  RefSpGEMM(&A, &A, &C);
  if (HybTestCall(HybSpGEMMInit(&mm, exec, NULL, 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) {
    DC = DA;
    HybTestCallFails(PETSC_ERR_ORDER, HybSpGEMMNumeric(&mm, &DA, &DA, &DC));
    if (Made(Multiply(&mm, &DA, &DA, &DC))) HybTestSameMatrix(&DC, &C, 4);
  }
  HybTestCall(HybSpGEMMDestroy(&mm));
  Finish(&mm);
  RefMatDestroy(&A, &C);
}

/* auto chooses by its rules: short rows of far columns are merged, everything else is binned */
static void Choice(void)
{
  for (PetscInt kind = 0; kind < 3; kind++) {
    const char *expected = kind == 0 ? "rowmerge" : "binned";

    HybTestBegin("auto takes %s for %s", expected, kind == 0 ? "short rows of far columns" : kind == 1 ? "near columns"
                                                                                                       : "long rows");
    if (HybTestExec()->backend->device)
      HybTestSkip("the rule is the host's");
    else
      Takes(expected, HybTestMat(Random, 1000, 1000, kind == 2 ? 20 : 2, kind == 2 ? 40 : 4), HybTestMat(Random, 1000, kind == 1 ? 5000 : 800000, 2, 4));
  }
}

static PetscErrorCode Body(void)
{
  const HybExec *exec      = HybTestExec();
  PetscInt       n         = 0;
  char           only[128] = "", word[64];

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-methods", only, sizeof(only), NULL)); /* these alone: a,b */
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table; table++, n++) {
    method = *table;
    width  = 0;
    snprintf(word, sizeof(word), ",%s,", method->name);
    if (only[0]) {
      char list[sizeof(only) + 2];

      snprintf(list, sizeof(list), ",%s,", only);
      if (!strstr(list, word)) continue;
    }
    /* what these take has tests of its own: block_method, diagonal_method, tile_method */
    if (Is("block") || Is("diagonal") || Is("tile")) continue;
    HybTestPieces(Zoo, Boundaries, AllShapes, Kernels, Random, Repeated, Faults, Limits);
    if (Is("rowmerge")) {
      for (width = 2; width <= 32; width += width < 5 ? 1 : 9)
        if (HybTestMine()) Random();
      width = 0;
    }
  }
  if (n && HybTestMine()) {
    Driver();
    Choice();
  } else if (!n) {
    HybTestBegin("SpGEMM");
    HybTestSkip("the %s backend has no method", exec->backend->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
