/*
  Bytes in, matrices or wild arrays out of them, and the library's answer beside the reference's. The first byte chooses
  what is asked:

    0 C = A B by every method of the host, twice (the second time with other values on the plan of the first), the
    products AtB, ABt, PtAP, RARt
    1  transpose, sum, subset, submatrix, coordinates, norms, products with vectors by every method
    2  wild CSR arrays through check, which must find just the rows that a plain loop finds, and read nothing else
    3  wild coordinates through coosymbolic: refused if one is out of range, otherwise equal to the reference

  A difference ends the program by abort(), which libFuzzer and driver.c report with the input.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybproduct.h>
#include <aijhybridgpu/private/hybspmv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const uint8_t *data;
  size_t         size, pos;
} Bytes;

static unsigned Byte(Bytes *b)
{
  return b->pos < b->size ? b->data[b->pos++] : 0;
}

static PetscInt Int(Bytes *b)
{
  uint64_t v = 0;

  for (size_t k = 0; k < sizeof(PetscInt); k++) v = v << 8 | Byte(b);
  return (PetscInt)v;
}

/* exact small numbers, so that wrong terms cannot hide behind rounding */
static PetscScalar Value(Bytes *b)
{
  return ((PetscReal)Byte(b) - 128) / 16;
}

/* m x n: each row has a mask of up to 16 runs of columns; the last bytes are its values */
static void Matrix(Bytes *b, PetscInt m, PetscInt n, RefMat *A)
{
  const PetscInt width = (n + 15) / 16;
  PetscInt      *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc((PetscCount)m * n, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m; r++) {
    /* of each run only the columns c with c & thin == 0 */
    const unsigned mask = Byte(b) << 8 | Byte(b), thin = Byte(b);

    for (PetscInt c = 0; c < n; c++)
      if (mask >> (c / width) & 1 && !(c & (thin & 7))) j[nnz++] = c;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(m, n, i, j, NULL, A);
  for (PetscInt k = 0; k < nnz; k++) A->csr.a[k] = Value(b);
  RefFree(i, j);
}

static PetscInt Size(Bytes *b)
{
  const unsigned s = Byte(b);

  return s < 200 ? (PetscInt)s % 20 : (PetscInt)s;
}

static PetscErrorCode Products(Bytes *b)
{
  static const HybProductType types[] = {HYB_PRODUCT_AB, HYB_PRODUCT_ATB, HYB_PRODUCT_ABT, HYB_PRODUCT_PTAP, HYB_PRODUCT_RART};
  const HybExec              *exec    = HybTestExec();
  const PetscInt              m = Size(b), l = Size(b), n = Size(b);
  const HybProductType        type   = types[Byte(b) % 5];
  const PetscBool             square = (PetscBool)(type == HYB_PRODUCT_PTAP || type == HYB_PRODUCT_RART);
  RefMat                      A, B, T, C;
  HybArena                    out = HybArenaOn(exec);

  PetscFunctionBegin;
  Matrix(b, square ? l : m, l, &A);
  if (type == HYB_PRODUCT_ATB)
    Matrix(b, m, n, &B);
  else if (type == HYB_PRODUCT_ABT || type == HYB_PRODUCT_RART)
    Matrix(b, n, l, &B);
  else
    Matrix(b, l, n, &B);
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; type == HYB_PRODUCT_AB && *table; table++) {
    HybSpGEMM mm;
    HybCSR    c;

    if ((*table)->fits) continue; /* made for some patterns alone */
    HybTestCall(HybSpGEMMInit(&mm, exec, (*table)->name, 0));
    if (HybTestCall(HybSpGEMMSymbolic(&mm, &A.csr, &B.csr, &out, &c))) {
      for (int round = 0; round < 2; round++) {
        RefSpGEMM(&A, &B, &C);
        if (!c.a) PetscCall(HybArenaAlloc(&out, exec->result, c.nnz, sizeof(PetscScalar), &c.a));
        HybTestCall(HybSpGEMMNumeric(&mm, &A.csr, &B.csr, &c));
        HybTestSameMatrix(&c, &C, 2);
        RefMatDestroy(&C);
        for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] += 1;
      }
    }
    HybTestCall(HybSpGEMMDestroy(&mm));
  }
  {
    HybProduct p;
    HybCSR     c;

    HybTestCall(HybProductCreate(exec, type, "auto", 0, &p));
    if (HybTestCall(HybProductSymbolic(p, &A.csr, &B.csr, NULL, &out, &c))) {
      for (int round = 0; round < 2; round++) {
        switch (type) {
        case HYB_PRODUCT_ATB:
          RefTranspose(&A, PETSC_FALSE, &T);
          RefSpGEMM(&T, &B, &C);
          RefMatDestroy(&T);
          break;
        case HYB_PRODUCT_ABT:
          RefTranspose(&B, PETSC_FALSE, &T);
          RefSpGEMM(&A, &T, &C);
          RefMatDestroy(&T);
          break;
        case HYB_PRODUCT_PTAP:
          RefPtAP(&A, &B, &C);
          break;
        case HYB_PRODUCT_RART:
          RefRARt(&A, &B, &C);
          break;
        default:
          RefSpGEMM(&A, &B, &C);
        }
        HybTestCall(HybProductNumeric(p, &A.csr, &B.csr, NULL, &c));
        HybTestSameMatrix(&c, &C, 4);
        RefMatDestroy(&C);
        for (PetscCount k = 0; k < B.csr.nnz; k++) B.csr.a[k] += 1;
      }
    }
    HybTestCall(HybProductDestroy(&p));
  }
  RefMatDestroy(&A, &B);
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Elementary(Bytes *b)
{
  const HybExec   *exec = HybTestExec();
  const HybCSROps *ops  = exec->backend->csr;
  const PetscInt   m = Size(b), n = Size(b);
  PetscInt        *perm, *rows, nrows, cstart, cend;
  PetscScalar      alpha = Value(b), beta = Value(b), *x, *y, *z, *zr;
  PetscReal       *mag;
  PetscCount      *terms, missing = -1, lacking = 0;
  RefMat           A, B, C;
  HybCSR           t;
  HybArena         keep, work;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &work));
  Matrix(b, m, n, &A);
  Matrix(b, m, n, &B);
  if (HybTestCall(ops->transposesymbolic(exec, &keep, &work, &A.csr, &t, &perm))) {
    RefTranspose(&A, PETSC_TRUE, &C);
    PetscCall(HybArenaAlloc(&keep, exec->result, t.nnz, sizeof(PetscScalar), &t.a));
    HybTestCall(ops->gather(exec, t.nnz, perm, PETSC_TRUE, A.csr.a, t.a));
    HybTestSameMatrix(&t, &C, 0);
    RefMatDestroy(&C);
  }
  if (HybTestCall(ops->addsymbolic(exec, &keep, &work, &A.csr, &B.csr, &t))) {
    RefAdd(alpha, &A, beta, &B, &C);
    PetscCall(HybArenaAlloc(&keep, exec->result, t.nnz, sizeof(PetscScalar), &t.a));
    HybTestCall(ops->addnumeric(exec, &alpha, &A.csr, &beta, &B.csr, &t));
    HybTestSameMatrix(&t, &C, 2);
    RefMatDestroy(&C);
  }
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = A.csr.i[r]; k < A.csr.i[r + 1]; k++) {
      PetscBool stored;

      (void)RefGet(&B, r, A.csr.j[k], &stored);
      lacking += !stored;
    }
  RefMatCopy(&B, &C);
  HybTestCall(ops->axpysubset(exec, &work, &alpha, &A.csr, &C.csr, &missing));
  HybTestCheck(missing == lacking, "%td missing, expected %td", missing, lacking);
  if (lacking) HybTestSameBits(B.csr.nnz, sizeof(PetscScalar), C.csr.a, B.csr.a);
  RefMatDestroy(&C);
  for (int k = 0; k < 3; k++) {
    const HybNorm type = (HybNorm)k;
    PetscReal     norm = -1, expected = RefNorm(&A, type);

    HybTestCall(ops->norm(exec, &work, &A.csr, type, &norm));
    HybTestCheck(HybTestClose(norm, expected, expected, A.csr.nnz + 2, 1), "norm %d is %g, expected %g", k, (double)norm, (double)expected);
  }
  nrows  = m ? (PetscInt)Byte(b) : 0;
  cstart = (PetscInt)Byte(b) % (n + 1);
  cend   = cstart + (PetscInt)Byte(b) % (n - cstart + 1);
  rows   = (PetscInt *)RefAlloc(nrows, sizeof(PetscInt));
  for (PetscInt r = 0; r < nrows; r++) rows[r] = (PetscInt)Byte(b) % m;
  if (HybTestCall(ops->submatrixsymbolic(exec, &keep, &work, &A.csr, nrows, rows, cstart, cend, &t, &perm))) {
    RefSubmatrix(&A, nrows, rows, cstart, cend, &C);
    PetscCall(HybArenaAlloc(&keep, exec->result, t.nnz, sizeof(PetscScalar), &t.a));
    HybTestCall(ops->gather(exec, t.nnz, perm, PETSC_FALSE, A.csr.a, t.a));
    HybTestSameMatrix(&t, &C, 0);
    RefMatDestroy(&C);
  }
  free(rows);
  x     = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  y     = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  z     = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  zr    = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  mag   = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  terms = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  for (PetscInt c = 0; c < n; c++) x[c] = Value(b);
  for (PetscInt r = 0; r < m; r++) y[r] = Value(b);
  for (const HybSpMVMethod *const *table = exec->backend->spmv; *table; table++) {
    HybSpMV mv;

    HybTestCall(HybSpMVInit(&mv, exec, (*table)->name, 1));
    if (HybTestCall(HybSpMVSetUp(&mv, &A.csr))) {
      for (int mode = 0; mode < 3; mode++) {
        RefSpMV(&A, x, mode == HYB_SPMV_RESIDUAL ? -1 : 1, mode == HYB_SPMV_SET ? NULL : y, zr, mag, terms);
        HybTestCall(HybSpMVApply(&mv, &A.csr, x, (HybSpMVMode)mode, y, z));
        HybTestSameScalars(m, z, zr, mag, terms, 2);
      }
    }
    HybTestCall(HybSpMVDestroy(&mv));
  }
  RefFree(x, y, z, zr, mag, terms);
  RefMatDestroy(&A, &B);
  PetscCall(HybTestReset(&keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode WildCheck(Bytes *b)
{
  const HybExec *exec = HybTestExec();
  const PetscInt m = Size(b), n = Size(b), nnz = Size(b);
  const unsigned wild = Byte(b); /* how many of 256 numbers are anything; the others are plausible */
  PetscInt      *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt)), badrow = -2, first = -1;
  PetscCount     nbad = -1, bad = 0;
  HybCSR         A;
  HybArena       work = HybArenaOn(exec);

  PetscFunctionBegin;
  for (PetscInt r = 0; r <= m; r++) i[r] = Byte(b) < wild ? Int(b) : (r == m ? nnz : (r ? PetscMin(i[r - 1] + (PetscInt)Byte(b) % 4, nnz) : 0));
  for (PetscInt k = 0; k < nnz; k++) j[k] = Byte(b) < wild ? Int(b) : (k && j[k - 1] < n ? j[k - 1] + 1 : 0);
  A.m   = m;
  A.n   = n;
  A.nnz = nnz;
  A.i   = i;
  A.j   = j;
  A.a   = NULL;
  for (PetscInt r = 0; r < m; r++) {
    PetscBool wrong = (PetscBool)(i[r] < 0 || i[r + 1] < i[r] || i[r + 1] > nnz || (r == 0 && i[r]) || (r == m - 1 && i[m] != nnz));

    for (PetscInt k = i[r]; !wrong && k < i[r + 1]; k++) wrong = (PetscBool)(j[k] < 0 || j[k] >= n || (k > i[r] && j[k] <= j[k - 1]));
    if (wrong && !bad++) first = r;
  }
  HybTestCall(exec->backend->csr->check(exec, &work, &A, &nbad, &badrow));
  HybTestCheck(nbad == bad && badrow == first, "%td bad rows, first %" PetscInt_FMT "; expected %td, %" PetscInt_FMT, nbad, badrow, bad, first);
  PetscCall(HybArenaReset(&work));
  RefFree(i, j);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode WildCoordinates(Bytes *b)
{
  const HybExec   *exec = HybTestExec();
  const HybCSROps *ops  = exec->backend->csr;
  const PetscInt   m = Size(b), n = Size(b);
  const unsigned   wild = Byte(b), count = Byte(b) * 4;
  PetscInt        *ci = (PetscInt *)RefAlloc(count, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(count, sizeof(PetscInt));
  PetscScalar     *v    = (PetscScalar *)RefAlloc(count, sizeof(PetscScalar));
  PetscBool        good = PETSC_TRUE;
  PetscCount      *mapptr, *map;
  HybCSR           C;
  RefMat           R;
  HybArena         keep, work;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &work));
  for (unsigned k = 0; k < count; k++) {
    ci[k] = Byte(b) < wild / 64 ? Int(b) : (m ? (PetscInt)Byte(b) % m : -1);
    cj[k] = Byte(b) < wild / 64 ? Int(b) : (n ? (PetscInt)Byte(b) % n : -1);
    v[k]  = Value(b);
    good  = (PetscBool)(good && (ci[k] < 0 || cj[k] < 0 || (ci[k] < m && cj[k] < n)));
  }
  memset(&C, 0, sizeof(C));
  C.m = m;
  C.n = n;
  if (!good)
    HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, ops->coosymbolic(exec, &keep, &work, count, ci, cj, &C, &mapptr, &map));
  else if (HybTestCall(ops->coosymbolic(exec, &keep, &work, count, ci, cj, &C, &mapptr, &map))) {
    RefCOO(m, n, count, ci, cj, v, &R);
    PetscCall(HybArenaAlloc(&keep, exec->result, C.nnz, sizeof(PetscScalar), &C.a));
    HybTestCall(ops->coonumeric(exec, C.nnz, mapptr, map, v, PETSC_FALSE, C.a));
    HybTestSameMatrix(&C, &R, 2);
    RefMatDestroy(&R);
  }
  RefFree(ci, cj, v);
  PetscCall(HybTestReset(&keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  /* libFuzzer's options are not PETSc's */
  static char   name[] = "fuzz", *args[] = {name, NULL};
  static char **myargv = args;
  static int    myargc = 1;

  HybTestInit(&myargc, &myargv);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  Bytes          b = {data, size, 0};
  PetscErrorCode ierr;

  HybTestBegin("an input of %zu bytes", size);
  switch (Byte(&b) % 4) {
  case 0:
    ierr = Products(&b);
    break;
  case 1:
    ierr = Elementary(&b);
    break;
  case 2:
    ierr = WildCheck(&b);
    break;
  default:
    ierr = WildCoordinates(&b);
  }
  if (ierr || HybTestFailed()) abort();
  return 0;
}
