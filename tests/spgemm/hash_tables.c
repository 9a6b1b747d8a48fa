/*
  Rows of SpGEMM method "hash" whose blocks of 32 columns are so many, and so far apart, that each way of ordering them
  is taken: by pairs, by bits of their span, by a sort; in rows whose blocks are listed, and in those that insert again.
  Listed rows have tables of all three kinds: direct, hashed, ranked.
*/
#include "spgemmtest.h"

/* Rows r, r + rows, ... of A, of which there are times, name rows 2r and 2r+1 of B, whose blocks alternate: n[r]
   blocks, far[r] blocks between neighbours, each with so many columns. */
static void Operands(PetscInt rows, PetscInt times, const PetscInt *n, const PetscInt *far, PetscInt each, RefMat *A, RefMat *B)
{
  const PetscInt m   = rows * times;
  PetscInt       nnz = 0, columns = 0, k = 0;
  PetscInt      *ai = (PetscInt *)RefAlloc(m + 1, sizeof(PetscInt)), *aj = (PetscInt *)RefAlloc(2 * m, sizeof(PetscInt)), *bi = (PetscInt *)RefAlloc(2 * rows + 1, sizeof(PetscInt)), *bj;

  for (PetscInt r = 0; r < rows; r++) {
    nnz += n[r] * each;
    columns = PetscMax(columns, 32 * (n[r] * far[r] + 40));
  }
  bj = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt));
  for (PetscInt r = 0; r < 2 * rows; r++) {
    for (PetscInt b = r % 2; b < n[r / 2]; b += 2) {
      for (PetscInt c = 0; c < each; c++) bj[k++] = 32 * (r / 2 % 37 + b * far[r / 2]) + c * (32 / each);
    }
    bi[r + 1] = k;
  }
  for (PetscInt r = 0; r < m; r++) {
    aj[2 * r]     = 2 * (r % rows);
    aj[2 * r + 1] = 2 * (r % rows) + 1;
    ai[r + 1]     = 2 * (r + 1);
  }
  HybTestMatArrays(m, 2 * rows, ai, aj, NULL, A);
  HybTestMatArrays(2 * rows, columns, bi, bj, NULL, B);
  HybTestRandomize(A);
  HybTestRandomize(B);
  RefFree(ai, aj, bi, bj);
}

static PetscBool Listed; /* must rows have lists? */

static void CheckLists(const HybSpGEMM *mm, const RefMat *A, const RefMat *B, const RefMat *C)
{
  HybTestCheck((HybCountersGet(&mm->counters, "lists") > 0) == Listed, "lists %td", HybCountersGet(&mm->counters, "lists"));
}

static void Check(const RefMat *A, const RefMat *B, const char *lists, PetscBool listed)
{
  Listed = listed;
  HybTestCall(HybTuningSet("hash_lists", lists));
  CheckProduct("hash", A, B, RefProductInOrder, CheckLists);
  HybTestCall(HybTuningSet("hash_lists", NULL));
}

/* so many rows that a thread sorts several of them into bins, of which some are empty */
static void ManyRows(void)
{
  const PetscInt m       = 131072 + 1029;
  PetscInt      *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));
  RefMat         A, B;

  HybTestBegin("%" PetscInt_FMT " rows", m);
  for (PetscInt r = 0; r < m; r++) lengths[r] = r / 700 % 3;
  HybTestMatLengths(m, 40, lengths, &A);
  HybTestMatRandom(40, 3000, 0, 5, &B);
  Check(&A, &B, NULL, PETSC_TRUE);
  RefMatDestroy(&A, &B);
  free(lengths);
}

/* Rows of B that are empty, short, or many times a mean one's length, by rows of A of 0 to 40 entries, which are in all
   of the count's bins; few rows leave B as it is, many compress it */
static void Uneven(PetscInt m, PetscInt columns)
{
  PetscInt *a = (PetscInt *)RefAlloc(m, sizeof(PetscInt)), b[300];
  RefMat    A, B;

  HybTestBegin("%" PetscInt_FMT " rows by uneven ones of %" PetscInt_FMT " columns", m, columns);
  for (PetscInt r = 0; r < m; r++) a[r] = r % 41;
  for (PetscInt k = 0; k < 300; k++) b[k] = k == 17 || k == 150 ? 900 : 5 * k % 12;
  HybTestMatLengths(m, 300, a, &A);
  HybTestMatLengths(300, columns, b, &B);
  Check(&A, &B, NULL, PETSC_TRUE);
  Check(&A, &B, "0", PETSC_FALSE);
  RefMatDestroy(&A, &B);
  free(a);
}

/* A row of as many products as might be more nonzeros than 32 bits count. It names one row of B again and again, which
   no program has: no other one is small. */
static void Longest(void)
{
#if defined(PETSC_USE_64BIT_INDICES)
  const PetscInt ai[] = {0, 65537}, bi[] = {0, 65536}, n = (PetscInt)1 << 33;
  PetscInt      *aj = (PetscInt *)RefAlloc(65537, sizeof(*aj)), *bj = (PetscInt *)RefAlloc(65536, sizeof(*bj));
  HybCSR         DA, DB;
  RefMat         A, B;

  HybTestBegin("a row of more products than 32 bits count");
  for (PetscInt k = 0; k < 65536; k++) bj[k] = n - 65536 + k;
  HybTestMatArrays(1, 1, ai, aj, NULL, &A);
  HybTestMatArrays(1, n, bi, bj, NULL, &B);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "of 4295032832 products, may have more");
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A, &B);
  RefFree(aj, bj);
#else
  HybTestBegin("a row of more products than 32 bits count");
  HybTestSkip("32-bit indices do not count them");
#endif
}

static PetscErrorCode Body(void)
{
  /* words of bits to a block: 8 of 32 blocks each are the most */
  static const PetscInt blocks[] = {1, 2, 31, 32, 33, 34, 63, 64, 65, 66, 127, 200, 333, 700}, far[] = {1, 2, 7, 33, 40, 100, 255, 256, 257, 300, 1500}, each[] = {1, 2, 4, 32};

  PetscFunctionBegin;
  PetscCall(Methods("hash", "rows by tables"));
  if (!method) PetscFunctionReturn(PETSC_SUCCESS);
  if (HybTestMine()) ManyRows();
  for (PetscInt m = 41; m <= 410; m *= 10)
    for (PetscInt columns = 4000; columns <= 400000; columns *= 100)
      if (HybTestMine()) Uneven(m, columns);
  if (HybTestMine()) Longest();
  for (size_t e = 0; e < PETSC_STATIC_ARRAY_LENGTH(each); e++) {
    for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(far); f++) {
      PetscInt n[3 * PETSC_STATIC_ARRAY_LENGTH(blocks)], apart[PETSC_STATIC_ARRAY_LENGTH(n)];
      RefMat   A, B;

      /* several rows of a kind: sub-warps of a warp go different ways */
      for (size_t r = 0; r < PETSC_STATIC_ARRAY_LENGTH(n); r++) {
        n[r]     = blocks[r / 3];
        apart[r] = r % 3 == 2 ? far[(f + 1) % PETSC_STATIC_ARRAY_LENGTH(far)] : far[f];
      }
      if (!HybTestMine()) continue;
      HybTestBegin("blocks of %" PetscInt_FMT " columns, %" PetscInt_FMT " blocks apart, without lists", each[e], far[f]);
      Operands((PetscInt)PETSC_STATIC_ARRAY_LENGTH(n), 1, n, apart, each[e], &A, &B);
      Check(&A, &B, "0", PETSC_FALSE);
      RefMatDestroy(&A, &B);
      HybTestBegin("blocks of %" PetscInt_FMT " columns, %" PetscInt_FMT " blocks apart, listed", each[e], far[f]);
      /* rows of B are read often enough */
      Operands((PetscInt)PETSC_STATIC_ARRAY_LENGTH(n), 5, n, apart, each[e], &A, &B);
      Check(&A, &B, NULL, PETSC_TRUE);
      RefMatDestroy(&A, &B);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
