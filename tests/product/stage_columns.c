/*
  Products of stages give back columns of their own that the methods' plans do without, and hold the values of the
  product between two stages in numeric phases alone; results of all later phases are right. When P^T A P goes by
  stages.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybproduct.h>
#include <stdlib.h>
#include <string.h>

static HybArena out, keep, moved;

/* W: the product between the stages, whose pattern counts */
static void Reference(HybProductType type, const RefMat *A, const RefMat *B, const RefMat *D, RefMat *W, RefMat *C)
{
  RefMat T;

  RefMatDestroy(W, C);
  if (type == HYB_PRODUCT_RART) {
    RefTranspose(B, PETSC_FALSE, &T);
    RefSpGEMM(A, &T, W);
    RefMatDestroy(&T);
    RefRARt(A, B, C);
  } else {
    RefSpGEMM(A, B, W);
    if (type == HYB_PRODUCT_PTAP)
      RefPtAP(A, B, C);
    else
      RefABC(A, B, D, C);
  }
}

/* a transpose knows the moduli of its entries */
static void Randomize(RefMat *A)
{
  HybTestRandomize(A);
  for (PetscCount k = 0; A->mag && k < A->csr.nnz; k++) A->mag[k] = PetscAbsScalar(A->csr.a[k]);
}

/* gone: are T's and W's columns given back? HYB_GONE_SOME: the method may say */
enum {
  HYB_GONE_NONE,
  HYB_GONE_W,
  HYB_GONE_ALL,
  HYB_GONE_SOME
};

static void ProductInParts(HybProductType type, const char *method, PetscInt parts, const RefMat *A0, const RefMat *B0, const RefMat *D0, int gone)
{
  static const char *const types[] = {"A B", "A^T B", "A B^T", "P^T A P", "R A R^T", "A B C"};
  const PetscBool          device  = HybTestExec()->backend->device;
  HybProduct               product = NULL;
  HybCSR                   DA, DB, DD, DC;
  RefMat                   A, B, D, W, C;
  size_t                   bytes[2] = {0, 0}, peak;
  char                     wanted[8];
  PetscLogDouble           flops;
  PetscCount               count = -1, masks = 0;
  /* plans of other sizes may outgrow the operands */
  const PetscBool masked = (PetscBool)(parts && device && sizeof(PetscScalar) == 8 && sizeof(PetscInt) == 4);

  HybTestBegin("%s by %s, %" PetscInt_FMT " rows, in %" PetscInt_FMT " parts", types[type], method, A0->csr.m, parts);
  HybTestCall(PetscSNPrintf(wanted, sizeof(wanted), "%" PetscInt_FMT, parts));
  HybTestCall(HybTuningSet("product_parts", wanted));
  memset(&W, 0, sizeof(W));
  memset(&C, 0, sizeof(C));
  RefMatCopy(A0, &A);
  RefMatCopy(B0, &B);
  RefMatCopy(D0, &D);
  Reference(type, &A, &B, &D, &W, &C);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybTestUpload(&keep, &D.csr, &DD)) && HybTestCall(HybProductCreate(HybTestExec(), type, method, 0, &product))) {
    HybProductSetReuse(product);
    if (HybTestCall(HybProductSymbolic(product, &DA, &DB, &DD, &out, &DC))) {
      for (int k = 0; k < 4; k++) {
        if (k) {
          Randomize(&A);
          Randomize(&B);
          Randomize(&D);
          Reference(type, &A, &B, &D, &W, &C);
        }
        if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybTestUpload(&keep, &D.csr, &DD)) && HybTestCall(HybProductNumeric(product, &DA, &DB, &DD, &DC))) HybTestSameMatrix(&DC, &C, 4);
        count = HybProductGetCounter(product, "columns given back");
        if (gone != HYB_GONE_SOME || !device) HybTestCheck(count == (!device || gone == HYB_GONE_NONE ? 0 : W.csr.nnz + (type == HYB_PRODUCT_ABC || gone == HYB_GONE_W ? 0 : B.csr.nnz)), "%td of %" PetscInt_FMT " and %" PetscInt_FMT " after numeric phase %d", count, (PetscInt)W.csr.nnz, (PetscInt)B.csr.nnz, k + 1);
        masks = HybProductGetCounter(product, "masks");
        count = HybProductGetCounter(product, "parts");
        if (device) HybTestCheck(count == (parts && masks == A.csr.nnz + B.csr.nnz ? parts : 1) && (!masked || masks == A.csr.nnz + B.csr.nnz), "%td parts, %td masks", count, masks);
        HybProductGetInfo(product, &flops, &bytes[1], &peak);
        /* on the host a plan may come with the second one (padded.c) */
        if (k > (device ? 0 : 1)) HybTestCheck(bytes[1] == bytes[0], "%zu bytes after numeric phase %d, %zu before it", bytes[1], k + 1, bytes[0]);
        bytes[0] = bytes[1];
        if (device) HybTestCheck(peak >= bytes[1] + sizeof(PetscScalar) * (size_t)(W.csr.nnz / PetscMax(1, parts)), "most %zu bytes, %zu held and %" PetscInt_FMT " values between two stages", peak, bytes[1], (PetscInt)W.csr.nnz);
      }
    }
  }
  HybTestCall(HybTuningSet("product_parts", NULL));
  HybTestCall(HybProductDestroy(&product));
  HybTestCall(HybTestReset(&keep, &out));
  RefMatDestroy(&A, &B, &D, &W, &C);
}

static void Product(HybProductType type, const char *method, const RefMat *A, const RefMat *B, const RefMat *D, int gone)
{
  ProductInParts(type, method, 0, A, B, D, gone);
}

/* A^T B and A B^T by a method that looks at its operands: a transpose is one of them. Operands are elsewhere in each
   phase, and where they were is gone. */
static void Transposed(const char *method, const RefMat *A, const RefMat *B)
{
  for (int k = 0; k < 2; k++) {
    HybProduct product = NULL;
    HybCSR     DA, DB, DC;
    RefMat     X, Y, T, C;

    HybTestBegin("%s by %s, %" PetscInt_FMT " rows", k ? "A B^T" : "A^T B", method, A->csr.m);
    RefMatCopy(A, &X);
    RefMatCopy(k ? A : B, &Y);
    if (HybTestCall(HybTestUpload(&keep, &X.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &Y.csr, &DB)) && HybTestCall(HybProductCreate(HybTestExec(), k ? HYB_PRODUCT_ABT : HYB_PRODUCT_ATB, method, 0, &product)) && HybTestCall(HybProductSymbolic(product, &DA, &DB, NULL, &out, &DC))) {
      for (int turn = 0; turn < 4; turn++) {
        HybArena   *now = turn & 1 ? &moved : &keep, *before = turn & 1 ? &keep : &moved;
        const char *name = "";

        if (turn) Randomize(turn == 1 ? &X : &Y);
        RefTranspose(k ? &Y : &X, PETSC_FALSE, &T);
        RefSpGEMM(k ? &X : &T, k ? &T : &Y, &C);
        if (HybTestCall(HybTestUpload(now, &X.csr, &DA)) && HybTestCall(HybTestUpload(now, &Y.csr, &DB)) && HybTestCall(HybArenaReset(before)) && HybTestCall(HybProductNumeric(product, &DA, &DB, NULL, &DC))) HybTestSameMatrix(&DC, &C, 4);
        name = HybProductGetMethod(product);
        HybTestCheck(!strcmp(name, method), "%s is taken", name);
        RefMatDestroy(&T, &C);
      }
    }
    HybTestCall(HybProductDestroy(&product));
    HybTestCall(HybTestReset(&keep, &moved, &out));
    RefMatDestroy(&X, &Y);
  }
}

/* all that takes two stages, by every method that takes the operands; whole: they consist of blocks, diagonals: of few
   of these */
static void Operands(const RefMat *A, const RefMat *P, PetscBool whole, PetscBool diagonals)
{
  RefMat R;

  RefTranspose(P, PETSC_FALSE, &R);
  if (HybTestMine()) Product(HYB_PRODUCT_PTAP, "auto", A, P, &R, HYB_GONE_SOME);
  for (const HybSpGEMMMethod *const *table = HybTestExec()->backend->spgemm; table && *table; table++) {
    const char *name = (*table)->name;
    /* plans of other sizes may outgrow the operands */
    const PetscBool hash = (PetscBool)(!strcmp(name, "hash") && sizeof(PetscScalar) == 8 && sizeof(PetscInt) == 4);
    const int       gone = hash || !strcmp(name, "block") || !strcmp(name, "diagonal") ? HYB_GONE_ALL : !strcmp(name, "binned") || !strcmp(name, "segmerge") || !strcmp(name, "tile") ? HYB_GONE_NONE
                                                                                                                                                                                      : HYB_GONE_SOME;

    if (!strcmp(name, "tile") && !HYBTEST_TILES) continue;
    if ((!strcmp(name, "block") && !whole) || (!strcmp(name, "diagonal") && !diagonals) || !strcmp(name, "shape")) continue;
    if (!HybTestMine()) continue;
    /* masks read the columns of the left factor */
    Product(HYB_PRODUCT_PTAP, name, A, P, &R, hash ? HYB_GONE_W : gone);
    Product(HYB_PRODUCT_RART, name, A, &R, P, gone);
    Product(HYB_PRODUCT_ABC, name, A, P, &R, hash ? HYB_GONE_SOME : gone); /* W R is larger than W and R */
    if (!strcmp(name, "block") || !strcmp(name, "tile")) Transposed(name, A, P);
  }
  RefMatDestroy(&R);
}

/* each row of the pattern three times, or each column: alone no blocks, but in the product of both */
static void Thrice(const RefMat *pattern, PetscBool rows, RefMat *A)
{
  const PetscInt m = pattern->csr.m, across = rows ? 1 : 3, down = rows ? 3 : 1;
  PetscInt      *i = (PetscInt *)RefAlloc((PetscCount)m * down + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(3 * (PetscCount)pattern->csr.nnz + 1, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m * down; r++) {
    i[r] = nnz;
    for (PetscInt k = pattern->csr.i[r / down]; k < pattern->csr.i[r / down + 1]; k++)
      for (PetscInt c = 0; c < across; c++) j[nnz++] = pattern->csr.j[k] * across + c;
  }
  i[m * down] = nnz;
  HybTestMatArrays(m * down, pattern->csr.n * across, i, j, NULL, A);
  RefFree(i, j);
}

/* the first stage by a method that plans by its result's columns, the second by one that reads none */
static void Mixed(void)
{
  const PetscInt n = 2000;
  RefMat         N, A, B, D;

  HybTestMatRandom(n, 3 * n, 2, 2, &N);
  Thrice(&N, PETSC_TRUE, &A);
  RefMatDestroy(&N);
  HybTestMatRandom(3 * n, n, 1, 2, &N);
  Thrice(&N, PETSC_FALSE, &B);
  RefMatDestroy(&N);
  HybTestMatRandom(n, n, 1, 2, &N);
  HybTestMatBlock(&N, 3, &D);
  RefMatDestroy(&N);
  Product(HYB_PRODUCT_ABC, "auto", &A, &B, &D, HYB_GONE_SOME);
  RefMatDestroy(&A, &B, &D);
}

/* A without column r, and P with a row r of so many entries: no row of P^T A P is longer for that, but a byte
   does not tell them apart */
static void LongRow(PetscInt r, PetscInt entries, RefMat *A, RefMat *P)
{
  for (int k = 0; k < 2; k++) {
    RefMat        *M   = k ? P : A;
    const PetscInt nnz = (PetscInt)M->csr.nnz;
    PetscInt      *i = (PetscInt *)RefAlloc((PetscCount)M->csr.m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)nnz + entries, sizeof(PetscInt)), n = 0;

    for (PetscInt row = 0; row < M->csr.m; row++) {
      i[row] = n;
      if (k && row == r)
        for (PetscInt c = 0; c < entries; c++) j[n++] = c;
      else
        for (PetscInt q = M->csr.i[row]; q < M->csr.i[row + 1]; q++)
          if (k || M->csr.j[q] != r) j[n++] = M->csr.j[q];
    }
    i[M->csr.m] = n;
    {
      const PetscInt m = M->csr.m, columns = M->csr.n;

      RefMatDestroy(M);
      HybTestMatArrays(m, columns, i, j, NULL, M);
    }
    RefFree(i, j);
  }
}

/* the product between the stages in parts, some of which have no entry, by methods with masks */
static void Parts(void)
{
  for (PetscInt kind = 0; kind < 6; kind++) {
    RefMat A, P;

    if (kind == 0 || kind > 3)
      HybTestMatStencil(7, 9, 8, 7, &A);
    else
      HybTestMatRandom(504, 504, 2, 7, &A);
    HybTestMatProlongator(504, kind > 3 ? 300 : 60, 3, &P);
    if (kind > 3) LongRow(77, kind == 4 ? 256 : 257, &A, &P);
    if (kind == 1) HybTestMatEmptyRows(&A, 0, 252, 1);
    if (kind == 2) HybTestMatEmptyRows(&A, 200, 504, 1);
    if (kind == 3) HybTestMatEmptyRows(&P, 0, 504, 3);
    for (PetscInt parts = 1; parts <= HYB_SPGEMM_PARTS; parts *= 2) {
      ProductInParts(HYB_PRODUCT_PTAP, "auto", parts, &A, &P, &P, HYB_GONE_SOME);
      ProductInParts(HYB_PRODUCT_PTAP, "hash", parts, &A, &P, &P, HYB_GONE_SOME);
    }
    RefMatDestroy(&A, &P);
  }
}

/* where the product between the stages would take much of what is free, it is made in parts */
static void Scarce(void)
{
  PetscInt most = 1;
  RefMat   A, P, W, C;
  HybCSR   DA, DP, DC;

  HybTestMatStencil(7, 30, 28, 26, &A);
  HybTestMatProlongator(A.csr.m, A.csr.m / 20, 3, &P);
  RefSpGEMM(&A, &P, &W);
  RefPtAP(&A, &P, &C);
  /* a quarter of what is said to be free */
  while ((size_t)W.csr.nnz * sizeof(PetscScalar) / most > ((size_t)1 << 20)) most *= 2;
  for (int scarce = 0; scarce < 2; scarce++) {
    HybExec    exec    = *HybTestExec();
    HybProduct product = NULL;
    PetscCount parts   = -1;

    HybTestBegin("P^T A P with %s memory", scarce ? "little" : "much");
    if (scarce) exec.backend = HybTestScarce();
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &P.csr, &DP)) && HybTestCall(HybProductCreate(&exec, HYB_PRODUCT_PTAP, "auto", 0, &product)) && HybTestCall(HybProductSymbolic(product, &DA, &DP, NULL, &out, &DC))) {
      for (int k = 0; k < 2; k++) {
        if (HybTestCall(HybProductNumeric(product, &DA, &DP, NULL, &DC))) HybTestSameMatrix(&DC, &C, 4);
      }
      parts = HybProductGetCounter(product, "parts");
      if (sizeof(PetscScalar) == 8 && sizeof(PetscInt) == 4) HybTestCheck(most > 1 && parts == (scarce ? most : 1), "in %td parts", parts);
    }
    HybTestCall(HybProductDestroy(&product));
    HybTestCall(HybTestReset(&keep, &out));
  }
  RefMatDestroy(&A, &P, &W, &C);
}

/* rows by their shapes read the columns of the left factor alone */
static void Shapes(void)
{
  RefMat A;

  HybTestMatStencil(9, 12, 11, 1, &A);
  Product(HYB_PRODUCT_PTAP, "shape", &A, &A, &A, HYB_GONE_W);
  Product(HYB_PRODUCT_RART, "shape", &A, &A, &A, HYB_GONE_ALL);
  Product(HYB_PRODUCT_ABC, "shape", &A, &A, &A, HYB_GONE_NONE);
  RefMatDestroy(&A);
}

/* each row of M so many times, each column as a block of so many */
static void Spread(PetscInt rows, PetscInt cols, RefMat *M)
{
  const HybCSR  *c = &M->csr;
  const PetscInt m = c->m * rows, n = c->n * cols;
  PetscInt      *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(c->nnz * rows * cols, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m; r++) {
    i[r] = nnz;
    for (PetscInt k = c->i[r / rows]; k < c->i[r / rows + 1]; k++) {
      for (PetscInt d = 0; d < cols; d++) j[nnz++] = c->j[k] * cols + d;
    }
  }
  i[m] = nnz;
  RefMatDestroy(M);
  HybTestMatArrays(m, n, i, j, NULL, M);
  RefFree(i, j);
}

/* Between `fused`, `thin` and the stages: on the host nodes of several unknowns, fine or coarse ones, are for `fused`,
   scalar problems of short rows for `thin`, others and wide P for the stages; on a device `fused` is taken by name
   alone. */
static void Chosen(void)
{
  static const struct {
    PetscInt    points, rows, cols, width; /* width: entries of P a row, at most */
    const char *host;                      /* NULL: the stages */
  } cases[] = {
    {9, 1, 1, 12, NULL   },
    {9, 1, 1, 3,  "thin" },
    {5, 1, 1, 3,  "thin" },
    {9, 3, 1, 3,  "fused"},
    {9, 1, 2, 3,  "fused"},
    {9, 3, 6, 3,  "fused"},
    {9, 1, 6, 3,  NULL   }
  };

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const char *expected = HybTestExec()->backend->device ? NULL : cases[k].host;
    HybProduct  product  = NULL;
    const char *name     = NULL;
    RefMat      A, P, C;
    HybCSR      DA, DP, DC;

    HybTestBegin("auto, %" PetscInt_FMT " points of %" PetscInt_FMT " rows, %" PetscInt_FMT " columns", cases[k].points, cases[k].rows, cases[k].cols);
    HybTestMatStencil(cases[k].points, 12, 11, 1, &A);
    HybTestMatProlongator(132, 30, cases[k].width, &P);
    Spread(cases[k].rows, cases[k].rows, &A);
    Spread(cases[k].rows, cases[k].cols, &P);
    RefPtAP(&A, &P, &C);
    if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &P.csr, &DP)) && HybTestCall(HybProductCreate(HybTestExec(), HYB_PRODUCT_PTAP, "auto", 0, &product)) && HybTestCall(HybProductSymbolic(product, &DA, &DP, NULL, &out, &DC)) && HybTestCall(HybProductNumeric(product, &DA, &DP, NULL, &DC))) {
      name = HybProductGetMethod(product);
      HybTestSameMatrix(&DC, &C, 4);
      HybTestCheck(expected ? !strcmp(name, expected) : strcmp(name, "fused") && strcmp(name, "thin"), "%s is taken", name);
    }
    HybTestCall(HybProductDestroy(&product));
    HybTestCall(HybTestReset(&keep, &out));
    RefMatDestroy(&A, &P, &C);
  }
}

static PetscErrorCode Body(void)
{
  RefMat A, P, N, Q;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(HybTestExec(), &keep, &moved, &out));
  if (HybTestMine()) Chosen();
  HybTestMatStencil(7, 9, 8, 7, &A);
  HybTestMatProlongator(504, 60, 3, &P);
  Operands(&A, &P, PETSC_FALSE, PETSC_FALSE);
  RefMatDestroy(&A, &P);
  HybTestMatStencil(9, 12, 9, 1, &N);
  HybTestMatBlock(&N, 3, &A);
  HybTestMatProlongator(108, 14, 2, &Q);
  HybTestMatBlock(&Q, 3, &P);
  Operands(&A, &P, PETSC_TRUE, PETSC_FALSE);
  RefMatDestroy(&N, &Q, &A, &P);
  HybTestMatBanded(300, 300, 1, 1, &A);
  HybTestMatBanded(300, 300, 0, 1, &P);
  Operands(&A, &P, PETSC_FALSE, PETSC_TRUE);
  RefMatDestroy(&A, &P);
  HybTestMatStencil(7, 12, 12, 12, &A); /* rows of A^T A that rowmerge plans for at their second numeric phase */
  if (HybTestMine()) Transposed("rowmerge", &A, &A);
  RefMatDestroy(&A);
  if (HybTestMine()) Mixed();
  if (HybTestExec()->backend->device) HybTestPieces(Shapes, Parts, Scarce);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
