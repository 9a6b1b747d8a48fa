/* C = A*B by every method of the backend, against the reference. */
#include "hybtest.h"
#include <aijhybridgpu/private/hybspgemm.h>
#include <petsctime.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static HybArena               keep, out;
static const HybSpGEMMMethod *method; /* under test */
static PetscInt               width;

static PetscBool Is(const char *name)
{
  return (PetscBool)!strcmp(method->name, name);
}

/* waits for the device in a first product at most; the caller's own wait for the result is none of them, and the only
   one of a numeric phase */
static PetscErrorCode Multiply(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybBackend  *backend = mm->exec.backend;
  unsigned long long before, waits;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(backend->sync(&mm->exec)); /* what was queued before is not the product's */
  HybTestCountWaits(&mm->exec);
  before = HybTestWaits();
  ierr   = HybSpGEMMSymbolic(mm, A, B, &out, C);
  waits  = HybTestWaits() - before;
  if (!ierr && !C->a) {
    ierr = HybArenaAlloc(&out, mm->exec.result, C->nnz, sizeof(HybScalar), &C->a);
    if (!ierr) ierr = HybSpGEMMNumeric(mm, A, B, C);
    HybTestCheck(HybTestWaits() - before == waits, "%s: a numeric phase waits for the device", mm->name);
  }
  mm->exec.backend = backend;
  PetscCall(ierr);
  HybTestCheck(waits <= 3, "%s waits %llu times for the device", mm->method->name, waits);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the method's object and both operands; Finish() frees them, also after a failure */
static PetscBool Begin(HybSpGEMM *mm, const RefMat *A, const RefMat *B, HybCSR *DA, HybCSR *DB)
{
  return (PetscBool)(HybTestCall(HybSpGEMMInit(mm, HybTestExec(), method->name, width)) && HybTestCall(HybTestUpload(&keep, &A->csr, DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, DB)));
}

static void Finish(HybSpGEMM *mm)
{
  HybTestCall(HybSpGEMMDestroy(mm));
  HybTestCall(HybArenaReset(&keep));
  HybTestCall(HybArenaReset(&out));
}

/* values of the pattern of C, summed in A's order from the first product on, in working precision */
static PetscScalar *InOrder(const RefMat *A, const RefMat *B, const RefMat *C)
{
  PetscScalar *sum = (PetscScalar *)RefAlloc(C->csr.n, sizeof(PetscScalar)), *a = (PetscScalar *)RefAlloc(C->csr.nnz, sizeof(PetscScalar));
  PetscInt    *row = (PetscInt *)RefAlloc(C->csr.n, sizeof(PetscInt));

  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      for (PetscInt l = B->csr.i[A->csr.j[k]]; l < B->csr.i[A->csr.j[k] + 1]; l++) {
        const PetscScalar product = A->csr.a[k] * B->csr.a[l];
        const PetscInt    c       = B->csr.j[l];

        sum[c] = row[c] == r + 1 ? sum[c] + product : product;
        row[c] = r + 1;
      }
    }
    for (PetscInt t = C->csr.i[r]; t < C->csr.i[r + 1]; t++) a[t] = sum[C->csr.j[t]];
  }
  free(sum);
  free(row);
  return a;
}

/* what the method counted of what makes it itself. C: the product */
static void CheckCounters(const HybSpGEMM *mm, const RefMat *C)
{
  const PetscBool  device = mm->exec.backend->device;
  const PetscCount m = C->csr.m, merged = HybCountersGet(&mm->counters, "factors");
  PetscCount       rows = 0, full = 0;

  for (PetscInt k = 0; k < mm->counters.n; k++) {
    if (!strncmp(mm->counters.name[k], "rows ", 5) && strcmp(mm->counters.name[k], "rows listed")) rows += mm->counters.value[k]; /* those listed are in tables too */
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
  if (Is("shape") && mm->stats.products) HybTestCheck(HybCountersGet(&mm->counters, "rows by shape") + HybCountersGet(&mm->counters, "rows by hash") == m, "%td rows by shape, %td by hash", HybCountersGet(&mm->counters, "rows by shape"), HybCountersGet(&mm->counters, "rows by hash"));
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
  if (Begin(&mm, A, B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
    HybTestCheck(mm.method == method, "%s ran in place of %s", mm.method->name, method->name);
    CheckCounters(&mm, &C);
    if (HybTestSameMatrix(&DC, &C, 4) && HybTestCall(HybTestDownload(&DC, &first))) {
      if (KeepsOrder(&mm)) {
        inorder = InOrder(A, B, &C);
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
      if (HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width)) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) HybTestSameBits(first.csr.nnz, sizeof(PetscScalar), DC.a, first.csr.a);
      RefMatDestroy(&first);
    }
  }
  Finish(&mm);
  RefMatDestroy(&C);
}

static void CheckAndDestroy(RefMat *A, RefMat *B)
{
  Check(A, B);
  RefMatDestroy(A);
  RefMatDestroy(B);
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

/* rows of exactly so many products, without any duplicate and with nothing but duplicates */
static void Boundaries(void)
{
  static const PetscInt limits[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  const PetscInt        nlimits = HybTestSlow() ? 11 : 14, most = limits[nlimits - 1] + 2;
  PetscInt              lengths[64], n                          = 0;
  RefMat                A, B;

  lengths[n++] = 0;
  for (PetscInt k = 0; k < nlimits; k++) {
    for (PetscInt d = -1; d <= 1; d++) lengths[n++] = limits[k] + d;
  }
  HybTestBegin("%s: bin boundaries, no duplicates", method->name);
  HybTestMatLengths(n, most, lengths, &A);
  HybTestMatBanded(most, most, 0, 0, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: bin boundaries, all duplicates", method->name);
  HybTestMatLengths(n, most, lengths, &A);
  HybTestMatDenseColumn(most, 3, 1, 0, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: bin boundaries by one row of B", method->name);
  HybTestMatBanded(n, n, 0, 0, &A);
  HybTestMatLengths(n, most + 70, lengths, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: bin boundaries, two to four duplicates", method->name);
  HybTestMatLengths(n, most, lengths, &A);
  HybTestMatRandom(most, most / 3 + 1, 1, 1, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: bin boundaries, columns far apart", method->name);
  HybTestMatLengths(n, most, lengths, &A);
  HybTestMatRandom(most, HybTestSize(1200000, 70000), 1, 1, &B);
  CheckAndDestroy(&A, &B);
}

static void Shapes(void)
{
  const PetscInt n = HybTestSize(600, 150);
  RefMat         A, B, C, D;

  HybTestBegin("%s: nothing by nothing", method->name);
  HybTestMatEmpty(0, 0, &A);
  HybTestMatEmpty(0, 0, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: 0 x 5 times 5 x 7, 7 x 0 times 0 x 5, 5 x 7 times 7 x 0", method->name);
  HybTestMatEmpty(0, 5, &A);
  HybTestMatRandom(5, 7, 1, 3, &B);
  CheckAndDestroy(&A, &B);
  HybTestMatEmpty(7, 0, &A);
  HybTestMatEmpty(0, 5, &B);
  CheckAndDestroy(&A, &B);
  HybTestMatRandom(5, 7, 1, 3, &A);
  HybTestMatEmpty(7, 0, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: 1 x 1", method->name);
  HybTestMatBanded(1, 1, 0, 0, &A);
  HybTestMatBanded(1, 1, 0, 0, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: a matrix without entries, and rows of A that meet empty rows of B alone", method->name);
  HybTestMatEmpty(n, n, &A);
  HybTestMatRandom(n, n, 0, 9, &B);
  Check(&A, &B);
  Check(&B, &A);
  HybTestMatEmptyRows(&B, 0, n, 2);
  RefMatDestroy(&A);
  HybTestMatRandom(n, n, 0, 3, &A);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: a dense row of A, of B, of both", method->name);
  HybTestMatDenseRow(n, n, n / 2, 3, &A);
  HybTestMatRandom(n, n, 0, 6, &B);
  Check(&A, &B);
  Check(&B, &A);
  Check(&A, &A);
  RefMatDestroy(&B);
  HybTestBegin("%s: a dense column, and a dense row times a dense column", method->name);
  HybTestMatDenseColumn(n, n, n / 3, 2, &B);
  Check(&A, &B);
  Check(&B, &A);
  CheckAndDestroy(&B, &A);
  HybTestBegin("%s: an outer product", method->name);
  HybTestMatBanded(n, 1, n, 1, &A);
  HybTestMatBanded(1, n, 1, n, &B);
  Check(&A, &B);
  HybTestBegin("%s: an inner product", method->name);
  CheckAndDestroy(&B, &A);
  for (PetscInt m = 1024; m <= 1025; m++) {
    HybTestBegin("%s: %" PetscInt_FMT " rows, about what a block puts into bins", method->name, m);
    HybTestMatRandom(m, 9, 0, 2, &A);
    HybTestMatRandom(9, 12, 1, 3, &B);
    CheckAndDestroy(&A, &B);
  }
  HybTestBegin("%s: B's rows are long but for some, and most rows of A meet these alone", method->name);
  {
    PetscInt la[90], lb[40];

    for (PetscInt r = 0; r < 90; r++) la[r] = 1 + r % 7;
    for (PetscInt r = 0; r < 40; r++) lb[r] = r % 2 ? 120 : 1 + r % 6;
    HybTestMatLengths(90, 40, la, &A);
    HybTestMatLengths(40, 500, lb, &B);
    for (PetscInt r = 0; r < 90; r++) {
      for (PetscInt k = 0; k < la[r]; k++) A.csr.j[A.csr.i[r] + k] = 2 * (k + r % 13) + (r % 5 == 4);
    }
    CheckAndDestroy(&A, &B);
  }
  HybTestBegin("%s: a chain of rectangular matrices", method->name);
  HybTestMatRandom(n, n / 4, 0, 8, &A);
  HybTestMatRandom(n / 4, 3 * n, 0, 20, &B);
  HybTestMatRandom(3 * n, n / 7, 1, 3, &C);
  Check(&A, &B);
  RefSpGEMM(&A, &B, &D);
  CheckAndDestroy(&D, &C);
  RefMatDestroy(&A);
  RefMatDestroy(&B);
  HybTestBegin("%s: blocks of 3, rows of A with equal patterns", method->name);
  HybTestMatStencil(27, HybTestSize(7, 4), HybTestSize(6, 3), 4, &B);
  HybTestMatBlock(&B, 3, &A);
  RefMatDestroy(&B);
  RefMatCopy(&A, &B);
  CheckAndDestroy(&A, &B);
  for (PetscInt bs = 2; bs <= 11; bs++) {
    HybTestBegin("%s: blocks of %" PetscInt_FMT ", rectangular", method->name, bs);
    HybTestMatRandom(23, 17, 0, 4, &C);
    HybTestMatRandom(17, 19, 0, 4, &D);
    HybTestMatBlock(&C, bs, &A);
    HybTestMatBlock(&D, bs, &B);
    CheckAndDestroy(&A, &B);
    RefMatDestroy(&C);
    RefMatDestroy(&D);
  }
  HybTestBegin("%s: stencils", method->name);
  HybTestMatStencil(27, HybTestSize(12, 5), HybTestSize(11, 5), HybTestSize(10, 4), &A);
  RefMatCopy(&A, &B);
  CheckAndDestroy(&A, &B);
  HybTestMatStencil(5, HybTestSize(70, 20), HybTestSize(60, 20), 1, &A);
  RefMatCopy(&A, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: power law", method->name);
  HybTestMatPowerLaw(HybTestSize(3000, 400), HybTestSize(3000, 400), 6, &A);
  RefMatCopy(&A, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: some hundred columns a row, far apart and without rule: hash tables that are rather full", method->name);
  HybTestMatRandom(60, 40, 0, 5, &A);
  HybTestMatRandom(40, 500000, 0, 60, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: very many columns", method->name);
  HybTestMatRandom(20, 40, 0, 40, &A);
  HybTestMatRandom(40, HybTestSize(2200000, 500000), 0, 400, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("%s: every bin has rows, and long rows grow", method->name);
  if (!HybTestExec()->backend->device && Is("binned")) {
    static const char *const bins[] = {"rows empty", "rows copied", "rows repeated", "rows sorted", "rows dense", "rows hashed", "rows merged", "growths"};
    PetscInt                 ai[9] = {0, 0, 1, 3, 5, 7, 9, 59, 209}, aj[209], bi[153], nb = 0, *bj;
    HybSpGEMM                mm;
    HybCSR                   DC;
    const PetscInt           n2 = 2200000;

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
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, 0)) && HybTestCall(Multiply(&mm, &A.csr, &B.csr, &DC))) {
      for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bins); k++) HybTestCheck(HybCountersGet(&mm.counters, bins[k]) > 0, "no %s", bins[k]);
    }
    HybTestCall(HybSpGEMMDestroy(&mm));
    HybTestCall(HybArenaReset(&out));
    free(bj);
    CheckAndDestroy(&A, &B);
  } else
    HybTestSkip("binned on the host is meant");
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
    {"hash",   {"rows up to 512 B", "rows up to 1 KiB", "rows up to 2 KiB", "rows up to 4 KiB", "rows up to 16 KiB", "rows up to 48 KiB", "rows up to a block", "rows spilled", "rows global", NULL}},
    {"binned", {"rows empty", "rows single", "rows heap 8", "rows heap 16", "rows heap 32", "rows bitonic 128", "rows bitonic 512", "rows merge", "growths", "entries grown", NULL}                 }
  };
  /* row r of C is row r of B: so many columns, all over or, in the last one, side by side */
  static const PetscInt lengths[] = {0, 1, 3, 6, 14, 30, 60, 120, 200, 300, 700, 2000, 6000, 9000, 24000, 60000};
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
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSameMatrix(&DC, &C, 4)) {
      for (size_t c = 0; all[k].counters[c]; c++) HybTestCheck(HybCountersGet(&mm.counters, all[k].counters[c]) > 0, "no %s", all[k].counters[c]);
    }
    Finish(&mm);
    free(bj);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

/* twenty first products and as many numeric phases, of rows of all lengths: the same bits in each */
static void Repeated(void)
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       A, B, C;
  PetscScalar *bits;

  HybTestBegin("%s: twenty runs have the same bits", method->name);
  if (Is("diagonal") || Is("shape"))
    HybTestMatStencil(9, 40, 17, 1, &A);
  else
    HybTestMatPowerLaw(HybTestSize(600, 150), HybTestSize(600, 150), 6, &A);
  RefMatCopy(&A, &B);
  RefSpGEMM(&A, &B, &C);
  bits = (PetscScalar *)RefAlloc(C.csr.nnz, sizeof(PetscScalar));
  for (int run = 0; run < 20; run++) {
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) {
      if (run)
        HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, bits);
      else
        HybTestCall(HybTestDownloadArray(C.csr.nnz, sizeof(PetscScalar), DC.a, bits));
      HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
      if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, bits);
    }
    Finish(&mm);
    if (HybTestFailed()) break;
  }
  free(bits);
  RefMatDestroy(&A);
  RefMatDestroy(&B);
  RefMatDestroy(&C);
}

/* Denormals are carried through, not taken for zeros. Their sums are exact, so the order of additions does not
   matter. */
static void Denormals(void)
{
  for (int kind = 0; kind < 3; kind++) {
    HybSpGEMM    mm;
    HybCSR       DA, DB, DC;
    RefMat       A, B, C;
    PetscScalar *expected;
    PetscCount   denormal = 0;

    HybTestBegin("%s: denormals (%s)", method->name, kind == 0 ? "short rows" : kind == 1 ? "middle rows"
                                                                                          : "few diagonals");
    if (kind < 2)
      HybTestMatRandom(60, 60, 0, kind ? 40 : 3, &A);
    else
      HybTestMatStencil(9, 12, 9, 1, &A);
    RefMatCopy(&A, &B);
    for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] *= 1 / PETSC_MAX_REAL;
    RefSpGEMM(&A, &B, &C);
    expected = InOrder(&A, &B, &C);
    for (PetscCount k = 0; k < C.csr.nnz; k++) denormal += PetscAbsReal(PetscRealPart(expected[k])) > 0 && PetscAbsReal(PetscRealPart(expected[k])) < 4 / PETSC_MAX_REAL;
    HybTestCheck(2 * denormal > C.csr.nnz, "%td of %td entries are denormal", denormal, C.csr.nnz);
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) {
      HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
    }
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

/* NaN, infinities and negative zeros take the way that the products take */
static void Special(void)
{
  const PetscInt n = HybTestSize(120, 60);
  RefMat         A, B, C;
  PetscScalar   *expected;
  HybSpGEMM      mm;
  HybCSR         DA, DB, DC;

  for (PetscInt kind = 0; kind < 3; kind++) {
    RefMat found;

    HybTestBegin("%s: NaN, infinities, negative zeros (%s rows)", method->name, kind == 0 ? "short" : kind == 1 ? "middle"
                                                                                                                : "block");
    if (kind < 2) {
      HybTestMatRandom(n, n, 0, kind ? 40 : 3, &A);
      HybTestMatRandom(n, n, 0, kind ? 40 : 3, &B);
    } else {
      HybTestMatRandom(n / 3, n / 3, 1, 4, &C);
      HybTestMatBlock(&C, 3, &A);
      RefMatCopy(&A, &B);
      RefMatDestroy(&C);
    }
    /* the reference's pattern with ordinary values, then the odd ones */
    RefSpGEMM(&A, &B, &C);
    for (PetscCount k = 0; k < A.csr.nnz; k++) {
      const PetscInt dice = HybTestRandomInt(0, 60);

      if (dice == 0) A.csr.a[k] = (PetscReal)NAN;
      if (dice == 1) A.csr.a[k] = (PetscReal)INFINITY;
      if (dice >= 2 && dice < 20) A.csr.a[k] = (PetscReal)-0.0;
    }
    for (PetscCount k = 0; k < B.csr.nnz; k++) {
      const PetscInt dice = HybTestRandomInt(0, 60);

      if (dice == 1) B.csr.a[k] = -(PetscReal)INFINITY;
      if (dice >= 2 && dice < 20) B.csr.a[k] = 0.0;
    }
    expected = InOrder(&A, &B, &C);
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C) && HybTestCall(HybTestDownload(&DC, &found))) {
      for (PetscCount k = 0; k < C.csr.nnz; k++) {
        const PetscReal f = PetscRealPart(found.csr.a[k]), e = PetscRealPart(expected[k]);

        if (PetscDefined(USE_COMPLEX)) {
          /* what inf * complex is, is the library's affair; that it is not finite is not */
          HybTestCheck(!PetscIsInfOrNanScalar(found.csr.a[k]) == !PetscIsInfOrNanScalar(expected[k]), "entry %td is %g, expected %g", k, (double)f, (double)e);
        } else {
          HybTestCheck(PetscIsNanReal(e) ? PetscIsNanReal(f) : PetscIsInfReal(e) ? f == e
                                                                                 : PetscAbsReal(f - e) <= 1e-12 * C.mag[k],
                       "entry %td is %g, expected %g", k, (double)f, (double)e);
          if (e == 0 && f == 0) HybTestCheck(!signbit(f) == !signbit(e), "entry %td is %g, expected %g", k, (double)f, (double)e);
        }
      }
      RefMatDestroy(&found);
    }
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

/* one plan after another in one object, and patterns without values */
static void Changing(void)
{
  HybSpGEMM mm;
  HybCSR    DA, DB, DC;
  RefMat    A, B, C;

  HybTestBegin("%s: patterns that change from call to call", method->name);
  if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width))) {
    for (PetscInt k = 0; k < 5; k++) {
      HybTestMatRandom(50 + 30 * k, 40, 0, 5 + 4 * (k % 3), &A);
      HybTestMatRandom(40, 300 - 50 * k, 0, 20, &B);
      RefSpGEMM(&A, &B, &C);
      if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) HybTestSameMatrix(&DC, &C, 4);
      HybTestCall(HybArenaReset(&out));
      /* the pattern alone */
      DA.a = DB.a = NULL;
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &out, &DC))) HybTestSamePattern(&DC, &C);
      HybTestCheck(mm.work.bytes == 0, "%zu bytes of workspace are kept", mm.work.bytes);
      HybTestCall(HybArenaReset(&out));
      HybTestCall(HybArenaReset(&keep));
      RefMatDestroy(&A);
      RefMatDestroy(&B);
      RefMatDestroy(&C);
    }
  }
  HybTestCall(HybSpGEMMDestroy(&mm));
}

/* numeric phases by a stored plan: the same bits with and without it, other values, and none where it would outgrow the
   operands */
static void Planned(void)
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       A, B, C;
  PetscScalar *expected;

  if (!Is("hash")) return;
  for (PetscInt kind = 0; kind < 7; kind++) {
    HybTestBegin("%s: numeric phases by a plan, kind %" PetscInt_FMT, method->name, kind);
    if (kind == 0)
      HybTestMatRandom(300, 400, 0, 4, &A);
    else if (kind == 1)
      HybTestMatPowerLaw(300, 600, 5, &A);
    else if (kind == 2)
      HybTestMatDenseRow(20, 300, 11, 1, &A);
    else if (kind == 3)
      HybTestMatBanded(60, 60, 30, 30, &A);
    else if (kind == 4)
      HybTestMatRandom(40, 40, 0, 3, &A);
    else if (kind == 5)
      HybTestMatRandom(3, 3, 0, 1, &A);
    else { /* more rows of each of three sizes than blocks run at once: a block goes from one size to the next, its warps not all at the same time */
      const PetscInt m       = HybTestSize(240000, 3000);
      PetscInt      *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

      for (PetscInt r = 0; r < m; r++) lengths[r] = r % 3 == 0 ? 15 : r % 3 == 1 ? 9
                                                                                 : 3;
      HybTestMatLengths(m, 3 * m, lengths, &A);
      free(lengths);
    }
    if (kind == 0)
      HybTestMatRandom(400, 500, 0, 9, &B);
    else if (kind == 1)
      HybTestMatRandom(600, 3000, 0, 30, &B);
    else if (kind == 2)
      HybTestMatRandom(300, 9000, 30, 40, &B); /* rows of C of one to 9000 entries */
    else if (kind == 6)
      HybTestMatRandom(A.csr.n, 20000, 20, 20, &B);
    else
      RefMatCopy(&A, &B);
    RefSpGEMM(&A, &B, &C);
    expected = InOrder(&A, &B, &C);
    if (Begin(&mm, &A, &B, &DA, &DB)) {
      mm.reuse = (PetscBool)(kind % 2 == 0);
      if (HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
        for (PetscInt k = 0; k < 3; k++) {
          HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
          if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
          if (mm.reuse && HybCountersGet(&mm.counters, "masks")) continue;
          HybTestCheck(HybCountersGet(&mm.counters, "places") == (kind != 3 && C.csr.nnz && (k > 0 || mm.reuse) ? mm.stats.products : 0), "%td places after %" PetscInt_FMT " numeric phases, %td products", HybCountersGet(&mm.counters, "places"), k + 1, mm.stats.products);
        }
        HybTestRandomize(&A);
        free(expected);
        expected = InOrder(&A, &B, &C);
        if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      }
    }
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

/* repeated numeric phases by masks: rows of C of all lengths round the pieces' and the words' ends, on all numbers of
   lanes */
static void Masked(void)
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       A, B, C;
  PetscScalar *expected;

  if (!HybTestExec()->backend->device || width || (!Is("hash") && !Is("rowmerge"))) return;
  for (PetscInt kind = 0; kind < 24; kind++) {
    static const char *const lanes[] = {"4", "8", "16"};
    const PetscInt           shape   = kind / 3;
    PetscBool                masks   = PETSC_TRUE;

    /* rowmerge has them where single threads merge; elsewhere it adds sums of pieces */
    if (Is("rowmerge") && (shape == 5 || shape == 6)) continue;
    HybTestBegin("%s: masks, kind %" PetscInt_FMT ", %s lanes", method->name, shape, lanes[kind % 3]);
    if (shape == 0)
      HybTestMatRandom(300, 400, 0, 4, &A);
    else if (shape == 1)
      HybTestMatRandom(200, 300, 3, 5, &A);
    else if (shape == 2)
      HybTestMatRandom(200, 300, 5, 8, &A);
    else if (shape == 3)
      HybTestMatRandom(120, 300, 0, 12, &A);
    else if (shape == 4 || shape == 7)
      HybTestMatRandom(400, 400, 1, 1, &A);
    else if (shape == 5)
      HybTestMatDenseRow(40, 300, 11, 1, &A);
    else
      HybTestMatRandom(70, 3000, 30, 90, &A);
    if (shape == 0)
      HybTestMatRandom(400, 500, 0, 4, &B);
    else if (shape == 1)
      HybTestMatRandom(300, 3000, 2, 6, &B);
    else if (shape == 2)
      HybTestMatRandom(300, 3000, 5, 8, &B);
    else if (shape == 3)
      HybTestMatRandom(300, 5000, 1, 10, &B);
    else if (shape == 4 || shape == 7) { /* all lengths */
      PetscInt *lengths = (PetscInt *)RefAlloc(400, sizeof(PetscInt));

      for (PetscInt r = 0; r < 400; r++) lengths[r] = (7 * r) % (shape == 4 ? 129 : 130);
      HybTestMatLengths(400, 3 * 400, lengths, &B);
      free(lengths);
    } else if (shape == 5)
      HybTestMatRandom(300, 60, 1, 3, &B);
    else
      HybTestMatRandom(3000, 128, 8, 20, &B);
    RefSpGEMM(&A, &B, &C);
    expected = InOrder(&A, &B, &C);
    for (PetscInt r = 0; r < C.csr.m && (shape == 4 || shape == 7); r++) masks = (PetscBool)(masks && C.csr.i[r + 1] - C.csr.i[r] <= 128); /* which rows of B A names is random */
    HybTestCall(HybTuningSet("masks_lanes", lanes[kind % 3]));
    if (Begin(&mm, &A, &B, &DA, &DB)) {
      mm.reuse = PETSC_TRUE;
      if (HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
        for (PetscInt k = 0; k < 2; k++) {
          HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
          if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
        }
        if (sizeof(PetscScalar) == 8 && sizeof(PetscInt) == 4)
          HybTestCheck(HybCountersGet(&mm.counters, "masks") == (masks ? A.csr.nnz : 0), "%td masks, %td entries", HybCountersGet(&mm.counters, "masks"), (PetscCount)A.csr.nnz);
        HybTestRandomize(&A);
        if (A.csr.nnz > 3 && !PetscDefined(USE_COMPLEX)) { /* they stay where they are, and nothing else is multiplied with them */
          A.csr.a[0] = (PetscReal)INFINITY;
          A.csr.a[1] = -0.0;
          A.csr.a[2] = (PetscReal)NAN;
        }
        free(expected);
        expected = InOrder(&A, &B, &C);
        if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) {
          RefMat D;

          if (HybTestCall(HybTestDownload(&DC, &D))) {
            for (PetscCount e = 0; e < C.csr.nnz; e++) {
              const PetscReal x = PetscRealPart(D.csr.a[e]), y = PetscRealPart(expected[e]);

              if (!HybTestCheck((x == y && signbit(x) == signbit(y)) || (x != x && y != y), "entry %td is %g, expected %g", e, (double)x, (double)y)) break;
            }
            RefMatDestroy(&D);
          }
        }
      }
    }
    HybTestCall(HybTuningSet("masks_lanes", NULL));
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

/* a matrix with entries on these diagonals (column - row), each there with so many per cent */
static void Diagonals(PetscInt m, PetscInt n, PetscInt ndiagonals, const PetscInt *offset, PetscInt percent, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc(m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)m * ndiagonals + 1, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m; r++) {
    i[r] = nnz;
    for (PetscInt k = 0; k < ndiagonals; k++) {
      if (r + offset[k] >= 0 && r + offset[k] < n && (percent >= 100 || HybTestRandomInt(0, 100) < percent)) j[nnz++] = r + offset[k];
    }
  }
  i[m] = nnz;
  HybTestMatArrays(m, n, i, j, NULL, A);
  free(i);
  free(j);
}

/* C = A*B to the bit with the first product, again, with other values at odd addresses, and for the pattern alone; so
   many rows by diagonals */
static void ByDiagonals(RefMat *A, RefMat *B, PetscBool by)
{
  const HybExec *exec = HybTestExec();
  HybSpGEMM      mm;
  HybCSR         DA, DB, DC;
  RefMat         C;
  PetscScalar   *expected, *odd;

  RefSpGEMM(A, B, &C);
  expected = InOrder(A, B, &C);
  if (HybTestCall(HybSpGEMMInit(&mm, exec, method->name, width)) && HybTestCall(HybTestUpload(&keep, &A->csr, &DA))) {
    DB = DA;
    if ((A == B || HybTestCall(HybTestUpload(&keep, &B->csr, &DB))) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) {
      HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      HybTestCheck(HybCountersGet(&mm.counters, "rows by diagonals") == (by ? A->csr.m : 0) && HybCountersGet(&mm.counters, "rows by hash") == (by || !mm.stats.products ? 0 : A->csr.m), "%td rows by diagonals, %td by hash", HybCountersGet(&mm.counters, "rows by diagonals"), HybCountersGet(&mm.counters, "rows by hash"));
      if (by) {
        PetscCount products = 0, most = 0;

        for (PetscInt r = 0; r < A->csr.m; r++) {
          PetscCount here = 0;

          for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) here += B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]];
          products += here;
          most = PetscMax(most, here);
        }
        HybTestCheck(mm.stats.products == products && mm.stats.maxrow == most, "%td products, %td in a row, expected %td and %td", mm.stats.products, mm.stats.maxrow, products, most);
      }
      HybTestCall(exec->backend->zero(exec, DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
      if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      HybTestRandomize(A);
      free(expected);
      expected = InOrder(A, B, &C);
      if (HybTestCall(HybArenaAlloc(&keep, HYB_WORK(exec), A->csr.nnz + 1, sizeof(PetscScalar), &odd)) && HybTestCall(exec->backend->copy(exec, odd + 1, A->csr.a, (size_t)A->csr.nnz * sizeof(PetscScalar), HYB_COPY_HOST_TO_DEVICE))) {
        DA.a = (HybScalar *)(odd + 1);
        if (A == B) DB.a = DA.a;
        if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      }
      DA.a = DB.a = NULL;
      HybTestCall(HybArenaReset(&out));
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &out, &DC))) HybTestSamePattern(&DC, &C);
      HybTestCheck(mm.work.bytes == 0, "%zu bytes of workspace are kept", mm.work.bytes);
    }
  }
  Finish(&mm);
  free(expected);
  RefMatDestroy(&C);
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
  static const PetscInt mesh[] = {
    -31, -30, -1, 0, 1, 30, 31
  },
                        skew[] = {-40, -7, -6, 3, 4, 5, 50}, none[] = {-9, 8}, runs[] = {-50, -20, -19, -18, 0}, others[] = {-7, 3, 4, 5}, full[][2] = {{21, 37}, {29, 27}, {35, 21}};
  static const struct {
    const char     *what;
    PetscInt        m, k, n, na, nb;
    const PetscInt *a, *b; /* NULL: A squared */
    PetscBool       empty;
  } pairs[] = {
    {"triangles",                      700, 700, 700, 7, 0, mesh, NULL,   PETSC_FALSE},
    {"two operands, A rectangular",    500, 700, 700, 7, 7, skew, mesh,   PETSC_FALSE},
    {"two operands, both rectangular", 500, 700, 333, 7, 2, skew, none,   PETSC_FALSE},
    {"runs of three and of one",       400, 430, 390, 5, 4, runs, others, PETSC_FALSE},
    {"many empty rows",                700, 700, 700, 7, 0, mesh, NULL,   PETSC_TRUE }
  };
  RefMat    A, B;
  PetscBool mine;

  if (!Is("diagonal")) return;
  for (size_t o = 0; o < PETSC_STATIC_ARRAY_LENGTH(options); o++) {
    PetscInt all[80];

    if (!HybTestMine()) continue;
    HybTestCall(HybTuningSet("diagonal_rows", options[o][0]));
    HybTestCall(HybTuningSet("diagonal_threads", options[o][1]));
    HybTestCall(HybTuningSet("diagonal_runs", options[o][2]));
    for (PetscInt k = 0; k < 4; k++) {
      static const PetscInt points[] = {5, 7, 9, 27};

      HybTestBegin("%s: %" PetscInt_FMT " points squared, layout %zu", method->name, points[k], o);
      HybTestMatStencil(points[k], HybTestSize(61, 45), k == 0 || k == 2 ? HybTestSize(43, 13) : 5, k == 0 || k == 2 ? 1 : HybTestSize(9, 5), &A);
      ByDiagonals(&A, &A, (PetscBool)(points[k] != 27 || !strcmp(options[o][2], "true"))); /* 27 single diagonals take more shared memory than a block has */
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
      Diagonals(200, 170, 2, all + n / 2, 90, &B); /* with more of them, complex values take more shared memory than a block has */
      ByDiagonals(&A, &B, (PetscBool)(n < 64));
      RefMatDestroy(&A);
      RefMatDestroy(&B);
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
  HybTestCall(HybTuningSet("diagonal_rows", NULL));
  HybTestCall(HybTuningSet("diagonal_threads", NULL));
  HybTestCall(HybTuningSet("diagonal_runs", NULL));
  /* these take within a kibibyte and a half of what a block can have */
  mine = HybTestMine();
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(full) && mine; k++) {
    PetscInt all[64];

    HybTestBegin("%s: a block's shared memory is full, %" PetscInt_FMT " and %" PetscInt_FMT " diagonals", method->name, full[k][0], full[k][1]);
    for (PetscInt q = 0; q < 64; q++) all[q] = 2 * q - 30;
    Diagonals(200, 200, full[k][0], all, 100, &A);
    Diagonals(200, 200, full[k][1], all, 100, &B);
    ByDiagonals(&A, &B, PETSC_FALSE);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
  }
  for (PetscInt k = 0; k < 2 && mine; k++) {
    HybSpGEMM mm;
    HybCSR    DA, DC;

    HybTestBegin("auto %s a stencil's diagonals", k ? "takes" : "is too small for");
    if (!HybTestCall(HybTuningSet("diagonal_fewest", k ? "1000" : "1000000"))) continue;
    HybTestMatStencil(5, 30, 40, 1, &A);
    RefSpGEMM(&A, &A, &B);
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), "auto", 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(Multiply(&mm, &DA, &DA, &DC))) {
      HybTestSameMatrix(&DC, &B, 4);
      HybTestCheck(!strcmp(mm.method->name, "diagonal") == (k > 0), "%s", mm.method->name);
    }
    Finish(&mm);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
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
    HybSpGEMM      mm;
    HybCSR         DA, DC;
    RefMat         A, C;
    PetscScalar   *expected;

    HybTestBegin("auto declines diagonals, or not: %s", kinds[kind]);
    for (PetscInt k = 0; k < n; k++) offset[k] = kind == 1 || kind == 7 ? k * k : (kind == 2 ? 1 : 2) * (k - n / 2);
    Diagonals(m, m, n, offset, kind == 3 ? 35 : 100, &A);
    if (kind >= 5) { /* the last columns of some rows move on */
      for (PetscInt k = 0; k < (kind == 6 ? 30 : 3); k++) A.csr.j[A.csr.i[1000 + 50 * k + 1] - 1] += 1001 + (kind == 6 ? 3 * k : 0);
    }
    if (kind == 4) HybTestCall(HybTuningSet("diagonal_runs", "false"));
    RefSpGEMM(&A, &A, &C);
    expected = InOrder(&A, &A, &C);
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), "auto", 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(Multiply(&mm, &DA, &DA, &DC))) {
      if (HybTestSamePattern(&DC, &C)) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      HybTestCheck(!strcmp(mm.method->name, "diagonal") == (kind == 0 || kind == 5), "%s", mm.method->name);
      /* wide stencils must not lose the look for shapes */
      if (kind == 2) HybTestCheck(!strcmp(mm.method->name, "shape"), "%s", mm.method->name);
    }
    HybTestCall(HybTuningSet("diagonal_runs", NULL));
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A);
    RefMatDestroy(&C);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
}

static RefMat    FaultA, FaultB, FaultC;
static HybSpGEMM faultmm;

static PetscErrorCode Fault(void *ctx)
{
  HybCSR DA, DB, DC;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &FaultA.csr, &DA));
  PetscCall(HybTestUpload(&keep, &FaultB.csr, &DB));
  PetscCall(HybSpGEMMInit(&faultmm, HybTestExec(), method->name, width));
  faultmm.reuse = PETSC_TRUE; /* with the plan of numeric phases, where a method has one */
  PetscCall(Multiply(&faultmm, &DA, &DB, &DC));
  PetscCall(HybSpGEMMNumeric(&faultmm, &DA, &DB, &DC));
  HybTestSameMatrix(&DC, &FaultC, 4);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FaultCleanup(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybSpGEMMDestroy(&faultmm));
  PetscCall(HybArenaReset(&keep));
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Faults(void)
{
  HybTestBegin("%s: every allocation failing in turn", method->name);
  /* short, middle and long rows */
  HybTestMatDenseRow(60, 90, 7, 3, &FaultA);
  HybTestMatPowerLaw(90, HybTestSize(20000, 2000), 30, &FaultB);
  RefSpGEMM(&FaultA, &FaultB, &FaultC);
  PetscCallAbort(PETSC_COMM_SELF, PetscMemzero(&faultmm, sizeof(faultmm)));
  HybTestFaults(Fault, FaultCleanup, NULL);
  RefMatDestroy(&FaultA);
  RefMatDestroy(&FaultB);
  RefMatDestroy(&FaultC);
}

static char message[1024];

static PetscErrorCode Catch(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && mess) snprintf(message, sizeof(message), "%s", mess);
  return n;
}

/* the product must be refused with this error, fast, and the message must hold the text */
static void Refused(const HybCSR *DA, const HybCSR *DB, PetscErrorCode error, const char *text)
{
  HybSpGEMM      mm;
  HybCSR         DC;
  PetscErrorCode ierr;
  PetscLogDouble t0, t1;

  if (!HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width))) return;
  PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(Catch, NULL));
  message[0] = 0;
  PetscCallAbort(PETSC_COMM_SELF, PetscTime(&t0));
  ierr = HybSpGEMMSymbolic(&mm, DA, DB, &out, &DC);
  PetscCallAbort(PETSC_COMM_SELF, PetscTime(&t1));
  PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
  HybTestCheck(ierr == error, "error %d, expected %d", (int)ierr, (int)error);
  HybTestCheck(strstr(message, text), "the message does not say \"%s\": %s", text, message);
  HybTestCheck(HybTestSlow() || t1 - t0 < 1.0, "refused after %g s", (double)(t1 - t0));
  HybTestCheck(!mm.work.bytes && !mm.keep.bytes, "%zu bytes are kept", mm.work.bytes + mm.keep.bytes);
  HybTestCall(HybSpGEMMDestroy(&mm));
  HybTestCall(HybArenaReset(&out));
}

static void Limits(void)
{
  RefMat A, B;
  HybCSR DA, DB;
  char   needed[64];

  HybTestBegin("%s: operands that do not conform", method->name);
  HybTestMatRandom(5, 6, 1, 2, &A);
  HybTestMatRandom(7, 5, 1, 2, &B);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) Refused(&DA, &DB, PETSC_ERR_ARG_SIZ, "5 x 6 times 7 x 5");
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A);
  RefMatDestroy(&B);

  if (HybTestExec()->backend->device) { /* kernels look beyond a row's end by some entries before they stop: nothing is read of such an operand */
    HybTestBegin("%s: an operand of as many nonzeros as PetscInt counts", method->name);
    memset(&DA, 0, sizeof(DA));
    DA.m = DA.n = 70000;
    DA.nnz      = PETSC_MAX_INT;
    Refused(&DA, &DA, PETSC_ERR_ARG_OUTOFRANGE, "kernels need the last");
  }
  HybTestBegin("%s: a product of more nonzeros than PetscInt counts is refused at once", method->name);
  if (sizeof(PetscInt) == 4) {
    /* a full column times a full row */
    HybTestMatBanded(50000, 1, 50000, 1, &A);
    HybTestMatBanded(1, 60000, 1, 60000, &B);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) {
      Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "3000000000");
      Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "--with-64-bit-indices");
      snprintf(needed, sizeof(needed), "it needs %.0f bytes, ", 3e9 * (sizeof(PetscInt) + sizeof(PetscScalar)));
      Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, needed);
      Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, " are free");
    }
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A);
    RefMatDestroy(&B);
  } else
    HybTestSkip("64-bit indices count them");

  HybTestBegin("%s: a product of more nonzeros than PetscInt counts is refused when they are counted", method->name);
  if (sizeof(PetscInt) == 8)
    HybTestSkip("64-bit indices count them");
  else if (HybTestSlow() || !HybTestExec()->backend->device)
    HybTestSkip("takes too long here: the host gathers the columns as it counts");
  else {
    /* each row names the two halves of a full row: no bound below sees more than one of them */
    HybTestMatBanded(50000, 2, 50000, 50000, &A);
    {
      PetscInt  bi[3] = {0, 30000, 60000};
      PetscInt *bj    = (PetscInt *)RefAlloc(60000, sizeof(PetscInt));

      for (PetscInt k = 0; k < 60000; k++) bj[k] = k;
      HybTestMatArrays(2, 60000, bi, bj, NULL, &B);
      free(bj);
    }
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "nonzeros, more than the 2147483647 that 32-bit indices can count");
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A);
    RefMatDestroy(&B);
  }

  HybTestBegin("%s: boyd1 squared is refused within a second", method->name);
  if (sizeof(PetscInt) == 4) {
    if (HybTestMatRead("boyd1", &A)) {
      if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) Refused(&DA, &DA, PETSC_ERR_ARG_OUTOFRANGE, "--with-64-bit-indices");
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
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), method->name, width)) && HybTestCall(Multiply(&mm, &A.csr, &A.csr, &DC)) && HybTestCall(HybTestDownload(&DC, &found))) {
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
  message[0] = 0;
  HybTestCheck(HybSpGEMMInit(&mm, exec, "no such", 0) == PETSC_ERR_ARG_UNKNOWN_TYPE, "accepted");
  HybTestCheck(strstr(message, "auto") && strstr(message, "no such"), "%s", message);
  PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpGEMMInit(&mm, exec, "auto", 1));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybSpGEMMInit(&mm, exec, "auto", 33));
  HybTestBegin("auto, numeric before symbolic, destroying twice");
  HybTestMatStencil(9, 20, 20, 1, &A);
  RefSpGEMM(&A, &A, &C);
  if (HybTestCall(HybSpGEMMInit(&mm, exec, NULL, 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) {
    DC = DA;
    HybTestCallFails(PETSC_ERR_ORDER, HybSpGEMMNumeric(&mm, &DA, &DA, &DC));
    if (HybTestCall(Multiply(&mm, &DA, &DA, &DC))) HybTestSameMatrix(&DC, &C, 4);
  }
  HybTestCall(HybSpGEMMDestroy(&mm));
  Finish(&mm);
  RefMatDestroy(&A);
  RefMatDestroy(&C);
}

/* auto chooses by its rules: short rows of far columns are merged, everything else is binned */
static void Choice(void)
{
  HybSpGEMM mm;
  HybCSR    DA, DB, DC;
  RefMat    A, B, C;

  for (PetscInt kind = 0; kind < 3; kind++) {
    const char *expected = kind == 0 ? "rowmerge" : "binned";

    HybTestBegin("auto takes %s for %s", expected, kind == 0 ? "short rows of far columns" : kind == 1 ? "near columns"
                                                                                                       : "long rows");
    if (HybTestExec()->backend->device) {
      HybTestSkip("the rule is the host's");
      continue;
    }
    HybTestMatRandom(1000, 1000, kind == 2 ? 20 : 2, kind == 2 ? 40 : 4, &A);
    HybTestMatRandom(1000, kind == 1 ? 5000 : 800000, 2, 4, &B);
    RefSpGEMM(&A, &B, &C);
    if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), "auto", 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
      HybTestCheck(!strcmp(mm.method->name, expected), "%s", mm.method->name);
      HybTestSameMatrix(&DC, &C, 4);
    }
    Finish(&mm);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

/* a backend that counts what all arenas of a product hold together */
static HybBackend        counting;
static const HybBackend *counted;
static size_t            heldnow, heldpeak, heldlimit = SIZE_MAX;

static PetscErrorCode CountingAlloc(const HybExec *x, HybMem mem, size_t bytes, void **ptr)
{
  PetscErrorCode ierr;

  *ptr = NULL;
  if (mem != HYB_MEM_GROWING && bytes > heldlimit - heldnow) return PETSC_ERR_MEM;
  ierr = counted->alloc(x, mem, bytes, ptr);
  if (!ierr) heldnow += bytes;
  if (heldnow > heldpeak) heldpeak = heldnow;
  return ierr;
}

static PetscErrorCode CountingFree(const HybExec *x, HybMem mem, size_t bytes, void *ptr)
{
  heldnow -= bytes;
  return counted->free(x, mem, bytes, ptr);
}

/* what a method holds of its own while it looks at operands that it then declines is given back before the next one
   starts */
static void Declining(void)
{
  HybExec exec = *HybTestExec();
  HybCSR  DA, DC;
  RefMat  A;
  size_t  peak[2];
  char    ran[32] = "";

  HybTestBegin("auto holds no more than the method that it takes");
  if (!exec.backend->device) {
    HybTestSkip("the host's methods decide without memory");
    return;
  }
  counted        = exec.backend;
  counting       = *counted;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  exec.backend   = &counting;
  HybTestMatRandom(1100, 1100, 10, 16, &A);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) {
    for (int k = 0; k < 2; k++) {
      HybSpGEMM mm;
      HybArena  result;

      heldnow = heldpeak = peak[k] = 0;
      if (HybTestCall(HybArenaInit(&result, &exec)) && HybTestCall(HybSpGEMMInit(&mm, &exec, k ? "auto" : "hash", 0))) {
        if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &result, &DC))) PetscCallAbort(PETSC_COMM_SELF, PetscStrncpy(ran, mm.method->name, sizeof(ran)));
        HybTestCall(HybSpGEMMDestroy(&mm));
        HybTestCall(HybArenaReset(&result));
        peak[k] = heldpeak;
        HybTestCheck(heldnow == 0, "%zu bytes are left", heldnow);
      }
    }
    HybTestCheck(!strcmp(ran, "hash") && peak[0] > 1100 * 100 * 12 && peak[1] < peak[0] + 4096, "%s holds %zu bytes, hash by name %zu", ran, peak[1], peak[0]);
  }
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A);
}

/* C takes most of the memory that there is, and all else that the product holds fits beside it: 0.3 of C, arrays over
   rows apart */
static void Bounded(void)
{
  HybExec exec = *HybTestExec();

  if (!exec.backend->device || (!Is("hash") && !Is("shape") && !Is("diagonal"))) return;
  counted        = exec.backend;
  counting       = *counted;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  exec.backend   = &counting;
  for (int kind = Is("hash") ? 0 : 1; kind < 2; kind++) {
    HybSpGEMM mm;
    HybArena  result;
    HybCSR    DA, DC;
    RefMat    A, C;

    HybTestBegin("%s: %s whose product takes three quarters of the memory", method->name, kind ? "a stencil" : "long rows");
    if (kind)
      HybTestMatStencil(9, 90, 90, 1, &A);
    else
      HybTestMatRandom(500, 500, 20, 24, &A);
    RefSpGEMM(&A, &A, &C);
    heldnow   = 0;
    heldlimit = (size_t)C.csr.nnz * (sizeof(PetscInt) + sizeof(PetscScalar)) / 10 * 13 + (size_t)A.csr.m * 8 * sizeof(PetscCount) + (kind ? 400000 : 20000);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybArenaInit(&result, &exec)) && HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, width))) {
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &result, &DC))) HybTestSameMatrix(&DC, &C, 4);
      HybTestCall(HybSpGEMMDestroy(&mm));
      HybTestCall(HybArenaReset(&result));
    }
    heldlimit = SIZE_MAX;
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A);
    RefMatDestroy(&C);
  }
}

/* lists of what a row's blocks are: they serve all rows, or as many as there is room for, or none, with the same
   result; and all workspace is given back before C's values are taken */
static void Listed(void)
{
  static const char *const lists[] = {"3", "1", "0"};
  HybExec                  exec    = *HybTestExec();

  if (!exec.backend->device || !Is("hash")) return;
  counted        = exec.backend;
  counting       = *counted;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  exec.backend   = &counting;
  for (int kind = 0; kind < 4; kind++) {
    RefMat       A, B, C;
    PetscScalar *expected;

    /* few entries of lists, many, rows that take more than there is room for, one much longer than the others */
    if (kind == 0)
      HybTestMatRandom(700, 700, 20, 24, &A);
    else if (kind == 1)
      HybTestMatRandom(400, 4000, 8, 12, &A);
    else if (kind == 2)
      HybTestMatRandom(300, 300, 2, 12, &A);
    else
      HybTestMatDenseRow(60, 90, 7, 3, &A);
    if (kind == 0)
      RefMatCopy(&A, &B);
    else if (kind == 1)
      HybTestMatRandom(4000, 4000, 8, 12, &B);
    else if (kind == 2)
      HybTestMatRandom(300, 100000, 20, 90, &B);
    else
      HybTestMatPowerLaw(90, HybTestSize(300000, 90000), 900, &B);
    RefSpGEMM(&A, &B, &C);
    expected = InOrder(&A, &B, &C);
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lists); k++) {
      HybSpGEMM mm;
      HybArena  result;
      HybCSR    DA, DB, DC;

      HybTestBegin("hash: %s, lists of %s entries for a nonzero", kind == 0 ? "near columns" : kind == 1 ? "columns far apart"
                                                                                             : kind == 2 ? "more blocks than room"
                                                                                                         : "a long row",
                   lists[k]);
      heldnow   = 0;
      heldlimit = kind || k == 2 ? SIZE_MAX : (size_t)C.csr.nnz * (sizeof(PetscInt) + sizeof(PetscScalar)) + (size_t)A.csr.m * 4 * sizeof(PetscCount) + 8000;
      if (HybTestCall(HybTuningSet("hash_lists", lists[k])) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybArenaInit(&result, &exec)) && HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, width))) {
        if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &result, &DC)) && HybTestSamePattern(&DC, &C)) {
          const PetscCount listed = HybCountersGet(&mm.counters, "lists");

          HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
          HybTestCheck(k == 2 || kind == 3 ? listed == 0 : kind == 0 ? listed == 2
                                                         : kind == 2 ? listed == 1
                                                                     : listed > 0,
                       "lists %td", listed);
        }
        HybTestCall(HybSpGEMMDestroy(&mm));
        HybTestCall(HybArenaReset(&result));
      }
      heldlimit = SIZE_MAX;
      HybTestCall(HybArenaReset(&keep));
    }
    free(expected);
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
  HybTestCall(HybTuningSet("hash_lists", NULL));
}

/* the backend's answer when it is asked what is free */
static PetscErrorCode CountingMemory(HybMemoryReport *report)
{
  const PetscErrorCode ierr = counted->memory(report);

  report->free_bytes = heldlimit - heldnow;
  return ierr;
}

/* rowmerge with several factors, whose intermediates would not fit beside C */
static void Chunked(void)
{
  HybExec exec = *HybTestExec();

  if (!exec.backend->device || !Is("rowmerge")) return;
  counted         = exec.backend;
  counting        = *counted;
  counting.alloc  = CountingAlloc;
  counting.free   = CountingFree;
  counting.memory = CountingMemory;
  exec.backend    = &counting;
  for (int kind = 0; kind < 3; kind++) {
    const size_t entry    = sizeof(PetscInt) + sizeof(PetscScalar);
    PetscCount   products = 0;
    HybSpGEMM    mm;
    HybArena     result;
    HybCSR       DA, DB, DC, DO;
    RefMat       A, B, C, other;

    HybTestBegin("rowmerge: rows in chunks, %s", kind == 0 ? "all of one length" : kind == 1 ? "one of them longer than a chunk"
                                                                                             : "of all lengths, C already as large as what is free");
    if (kind == 0)
      HybTestMatRandom(200, 500, 40, 40, &A);
    else if (kind == 1)
      HybTestMatDenseRow(500, 500, 77, 16, &A);
    else
      HybTestMatRandom(300, 500, 0, 60, &A);
    HybTestMatRandom(500, 500, kind == 1 ? 30 : 22, kind == 1 ? 60 : 24, &B);
    RefSpGEMM(&A, &B, &C);
    for (PetscInt k = 0; k < A.csr.nnz; k++) products += B.csr.i[A.csr.j[k] + 1] - B.csr.i[A.csr.j[k]];
    heldnow = 0;
    /* not what all products take, but C and a quarter of it, and offsets */
    heldlimit = (size_t)C.csr.nnz * entry / 2 * 3 + (size_t)A.csr.nnz * 32 + 100000 + (kind == 1 ? (size_t)B.csr.nnz * entry * 2 : 0);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybArenaInit(&result, &exec)) && HybTestCall(HybSpGEMMInit(&mm, &exec, "rowmerge", kind == 1 ? 8 : 0))) {
      HybTestCheck(heldlimit < (size_t)products * entry, "%zu bytes hold %td products", heldlimit, products);
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &result, &DC)) && HybTestSameMatrix(&DC, &C, 4)) {
        HybTestCheck(HybCountersGet(&mm.counters, "chunks") > 1 && HybCountersGet(&mm.counters, "factors") > 1, "%td chunks, %td factors", HybCountersGet(&mm.counters, "chunks"), HybCountersGet(&mm.counters, "factors"));
        HybTestMatArrays(A.csr.m, A.csr.n, A.csr.i, A.csr.j, NULL, &other);
        RefMatDestroy(&C);
        RefSpGEMM(&other, &B, &C);
        if (HybTestCall(HybTestUpload(&keep, &other.csr, &DO)) && HybTestCall(HybSpGEMMNumeric(&mm, &DO, &DB, &DC))) HybTestSameMatrix(&DC, &C, 4);
        RefMatDestroy(&other);
      }
      HybTestCall(HybSpGEMMDestroy(&mm));
      HybTestCall(HybArenaReset(&result));
      HybTestCheck(heldnow == 0, "%zu bytes are left", heldnow);
    }
    heldlimit = SIZE_MAX;
    HybTestCall(HybArenaReset(&keep));
    RefMatDestroy(&A);
    RefMatDestroy(&B);
    RefMatDestroy(&C);
  }
}

static PetscErrorCode Body(void)
{
  static void (*const pieces[])(void) = {Zoo, Boundaries, Shapes, Kernels, Random, Repeated, Special, Denormals, Changing, Planned, Masked, Faults, Limits, Bounded, Listed, Chunked};
  const HybExec *exec                 = HybTestExec();
  PetscInt       n                    = 0;
  char           only[128]            = "", word[64];

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&keep, exec));
  PetscCall(HybArenaInit(&out, exec));
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
    if (Is("block") || Is("tile")) continue; /* it takes whole blocks alone: t402_blocks; it adds by fma(): t404_tile */
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(pieces); k++) {
      if (HybTestMine()) pieces[k]();
    }
    FewDiagonals();
    if (Is("rowmerge")) {
      for (width = 2; width <= 32; width += width < 5 ? 1 : 9) {
        if (HybTestMine()) Random();
      }
      width = 0;
    }
  }
  if (n && HybTestMine()) {
    Driver();
    Choice();
    Declining();
    Declined();
  } else if (!n) {
    HybTestBegin("SpGEMM");
    HybTestSkip("the %s backend has no method", exec->backend->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
