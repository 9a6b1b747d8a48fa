/* transposesymbolic and gather, transpose: against the reference on the zoo, there and back, plain and conjugated,
   values that change, with and without positions */
#include "hybtest.h"
#include <stdlib.h>
#include <string.h>

static PetscErrorCode TestOne(const char *name, RefMat *A)
{
  const HybExec   *exec = HybTestExec();
  const HybCSROps *ops  = exec->backend->csr;
  HybArena         keep, work, mine;
  HybCSR           there, T, back;
  PetscInt        *perm, *perm2, *hperm;
  PetscScalar     *ta;
  RefMat           R;
  char            *seen;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  HybTestBegin("transpose of %s", name);
  if (!HybTestCall(ops->transposesymbolic(exec, &keep, &work, &there, &T, &perm))) goto done;
  RefTranspose(A, PETSC_FALSE, &R);
  HybTestSamePattern(&T, &R);
  hperm = (PetscInt *)RefAlloc(A->csr.nnz, sizeof(PetscInt));
  seen  = (char *)RefAlloc(A->csr.nnz, 1);
  PetscCall(HybTestDownloadArray(A->csr.nnz, sizeof(PetscInt), perm, hperm));
  for (PetscCount k = 0; k < A->csr.nnz; k++) HybTestCheck(hperm[k] >= 0 && hperm[k] < A->csr.nnz && !seen[hperm[k]]++, "perm[%td] = %" PetscInt_FMT " is no permutation", k, hperm[k]);
  RefFree(hperm, seen);
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), A->csr.nnz, sizeof(PetscScalar), &ta));
  T.a = ta;
  for (int round = 0; round < 3; round++) {
    const PetscBool conjugate = (PetscBool)(round == 1);

    RefMatDestroy(&R);
    RefTranspose(A, conjugate, &R);
    HybTestCall(ops->gather(exec, A->csr.nnz, perm, conjugate, there.a, T.a));
    HybTestCheck(HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), T.a, R.csr.a), "values of round %d", round);
    if (round == 1) { /* new values on the old pattern */
      HybTestRandomize(A);
      PetscCall(HybArenaFree(&mine, &there.a));
      PetscCall(HybTestUploadArray(&mine, A->csr.nnz, sizeof(PetscScalar), A->csr.a, &there.a));
    }
  }
  RefMatDestroy(&R);
  HybTestBegin("transpose of the transpose of %s", name);
  if (HybTestCall(ops->transposesymbolic(exec, &keep, &work, &T, &back, &perm2))) {
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), A->csr.nnz, sizeof(PetscScalar), &back.a));
    HybTestCall(ops->gather(exec, A->csr.nnz, perm2, PETSC_FALSE, T.a, back.a));
    HybTestSamePattern(&back, A);
    HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), back.a, A->csr.a);
  }
  for (int round = 0; round < 3; round++) {
    const PetscBool conjugate = (PetscBool)(round == 1);

    HybTestBegin("transpose of %s with values, round %d", name, round);
    PetscCall(HybArenaReset(&keep));
    if (!HybTestCall(ops->transpose(exec, &keep, &work, &there, conjugate, &T, round == 2 ? NULL : &perm2))) continue;
    RefTranspose(A, conjugate, &R);
    HybTestSamePattern(&T, &R);
    HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), T.a, R.csr.a);
    if (round < 2) {
      HybTestCall(ops->gather(exec, A->csr.nnz, perm2, conjugate, there.a, ta));
      HybTestSameBits(A->csr.nnz, sizeof(PetscScalar), ta, R.csr.a);
    }
    RefMatDestroy(&R);
  }
done:
  PetscCall(HybTestReset(&keep, &work, &mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries on the diagonals first, first + step, ..., and in every other-th row besides on one more of rare diagonals
   that lie beyond them, another one each time */
static void MatDiagonals(PetscInt m, PetscInt n, PetscInt diagonals, PetscInt first, PetscInt step, PetscInt rare, PetscInt other, RefMat *A)
{
  PetscInt nnz = 0;

  for (int pass = 0; pass < 2; pass++) {
    if (pass) RefMatCreate(m, n, nnz, A);
    nnz = 0;
    for (PetscInt r = 0; r < m; r++) {
      for (PetscInt d = 0; d <= diagonals; d++) {
        const PetscInt c = r + first + d * step + (d == diagonals && other ? r / other % rare : 0);

        if (c < 0 || c >= n || (d == diagonals && (!other || r % other != other - 1))) continue;
        if (pass) A->csr.j[nnz] = c;
        nnz++;
      }
      if (pass) A->csr.i[r + 1] = nnz;
    }
  }
  HybTestRandomize(A);
}

/* rows as nothing forbids them to matrices that were never multiplied: equal columns keep A's order */
static PetscErrorCode TestLoose(PetscBool twice)
{
  const HybExec *exec = HybTestExec();
  const char    *name = twice ? "rows with a column twice" : "rows out of order";
  HybArena       keep, work, mine;
  HybCSR         there, T;
  RefMat         A, R;

  PetscFunctionBegin;
  if (!HybTestMine()) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestMatLoose(3000, twice, &A);
  PetscCall(HybTestArenas(exec, &keep, &work, &mine));
  PetscCall(HybTestUpload(&mine, &A.csr, &there));
  HybTestBegin("transpose with values, %s", name);
  if (HybTestCall(exec->backend->csr->transpose(exec, &keep, &work, &there, PETSC_FALSE, &T, NULL))) {
    RefTranspose(&A, PETSC_FALSE, &R);
    HybTestSamePattern(&T, &R);
    HybTestSameBits(A.csr.nnz, sizeof(PetscScalar), T.a, R.csr.a);
    RefMatDestroy(&R);
  }
  PetscCall(HybTestReset(&keep, &work, &mine));
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Matrices(void)
{
  char   name[64];
  RefMat A;

  PetscFunctionBegin;
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    PetscCall(TestOne(name, &A));
    RefMatDestroy(&A);
  }
  /* few diagonals, as many as a word of 32 bits has and more; some of them in so few rows that a sample of the rows
     does not meet all; more of these than are worth it */
  {
    static const struct {
      PetscInt m, n, diagonals, first, step, rare, other;
    } d[] = {
      {3000, 3000, 3,  -700,      701,  1,   0   },
      {1500, 2300, 4,  -31,       300,  1,   0   },
      {2300, 1500, 16, -640,      77,   1,   0   },
      {1300, 1300, 17, -8,        1,    1,   0   },
      {1200, 1200, 32, -90,       5,    1,   0   },
      {1300, 1200, 40, -60,       3,    1,   0   },
      {2100, 2100, 63, -63,       2,    1,   0   },
      {2100, 2100, 64, -63,       2,    1,   0   },
      {5000, 5000, 3,  -1,        1,    2,   1700},
 /* a Fibonacci number: neighbours in a table that is hashed by the golden ratio */
      {6000, 6000, 50, -25 * 233, 233,  1,   0   },
      {6000, 6000, 2,  -1500,     1500, 40,  130 },
      {6000, 6000, 30, -15,       1,    33,  170 },
      {6000, 6000, 30, -15,       1,    34,  170 },
      {5000, 5000, 3,  -1,        1,    100, 40  }
    };

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(d); k++) {
      MatDiagonals(d[k].m, d[k].n, d[k].diagonals, d[k].first, d[k].step, d[k].rare, d[k].other, &A);
      snprintf(name, sizeof(name), "%" PetscInt_FMT " diagonals and %" PetscInt_FMT " others", d[k].diagonals, d[k].other ? d[k].rare : 0);
      PetscCall(TestOne(name, &A));
      RefMatDestroy(&A);
    }
  }
  /* so many rows that a sample of them decides */
  HybTestMatStencil(5, 48, 48, 1, &A);
  PetscCall(TestOne("a larger stencil", &A));
  RefMatDestroy(&A);
  {
    RefMat P;

    HybTestMatStencil(5, 27, 27, 1, &P);
    HybTestMatBlock(&P, 3, &A);
    RefMatDestroy(&P);
    PetscCall(TestOne("a larger stencil of three components", &A));
    RefMatDestroy(&A);
  }
  HybTestMatRandom(2300, 900, 0, 5, &A);
  PetscCall(TestOne("2300 random rows", &A));
  RefMatDestroy(&A);
  /* sizes about the widths of blocks and sub-warps */
  for (PetscInt k = 0; k < HybTestSize(12, 5); k++) {
    static const PetscInt sizes[] = {31, 256, 1, 33, 1025, 255, 257, 128, 1023, 1024, 511, 2049};
    const PetscInt        m = sizes[k], n = sizes[HybTestRandomInt(0, 12)];

    HybTestMatRandom(m, n, 0, PetscMin(n, 11), &A);
    snprintf(name, sizeof(name), "random %" PetscInt_FMT " x %" PetscInt_FMT, m, n);
    PetscCall(TestOne(name, &A));
    RefMatDestroy(&A);
  }
  /* stencils: up to 16 and more distinct offsets; rectangular, empty rows, more offsets than are worth it */
  for (int k = 0; k < 8; k++) {
    const char *const names[] = {"5-point", "7-point", "9-point", "27-point", "a wide band", "a tall band", "a band with empty rows", "a band of 81"};

    switch (k) {
    case 0: HybTestMatStencil(5, 21, 18, 1, &A); break;
    case 1: HybTestMatStencil(7, 11, 10, 9, &A); break;
    case 2: HybTestMatStencil(9, 19, 20, 1, &A); break;
    case 3: HybTestMatStencil(27, 10, 10, 11, &A); break;
    case 4: HybTestMatBanded(301, 340, 1, 3, &A); break;
    case 5: HybTestMatBanded(530, 470, 2, 1, &A); break;
    case 6:
      HybTestMatBanded(700, 700, 1, 1, &A);
      HybTestMatEmptyRows(&A, 100, 300, 1);
      break;
    default: HybTestMatBanded(2700, 2700, 40, 40, &A);
    }
    snprintf(name, sizeof(name), "%s, %" PetscInt_FMT " rows", names[k], A.csr.m);
    PetscCall(TestOne(name, &A));
    RefMatDestroy(&A);
  }
  HybTestMatRandom(HybTestSize(20000, 500), HybTestSize(30000, 700), 0, 20, &A);
  PetscCall(TestOne("a larger random matrix", &A));
  RefMatDestroy(&A);
  HybTestMatPowerLaw(HybTestSize(20000, 700), HybTestSize(10000, 600), 8, &A);
  PetscCall(TestOne("a larger power-law matrix", &A));
  RefMatDestroy(&A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  /* the device's ways, see csr/transpose.cu: what it takes by itself, offsets for however few entries */
  const char *const ways[][2] = {
    {NULL,                NULL},
    {"transpose_offsets", "0" }
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < (HybTestExec()->backend->device ? PETSC_STATIC_ARRAY_LENGTH(ways) : 1); k++) {
    if (ways[k][0]) PetscCall(HybTuningSet(ways[k][0], ways[k][1]));
    PetscCall(Matrices());
    PetscCall(TestLoose(PETSC_FALSE));
    PetscCall(TestLoose(PETSC_TRUE));
    if (ways[k][0]) PetscCall(HybTuningSet(ways[k][0], NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
