/* hybmatrices.c: the matrices of the unit tests: made at random, by their shapes, of the zoo, or read from a file */
#include "hybtest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int IntCompare(const void *a, const void *b)
{
  const PetscInt p = *(const PetscInt *)a, q = *(const PetscInt *)b;

  return p < q ? -1 : p > q;
}

void HybTestMatArrays(PetscInt m, PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a, RefMat *A)
{
  RefMatCreate(m, n, i[m], A);
  for (PetscInt r = 0; r <= m; r++) A->csr.i[r] = i[r];
  for (PetscCount k = 0; k < A->csr.nnz; k++) A->csr.j[k] = j[k];
  if (a)
    for (PetscCount k = 0; k < A->csr.nnz; k++) A->csr.a[k] = a[k];
  else
    HybTestRandomize(A);
}

/* cols[0..len-1] = len different columns below n, ascending: Floyd's sampling with a mark per column */
static void Sample(PetscInt n, PetscInt len, PetscInt stamp, PetscInt *mark, PetscInt *cols)
{
  PetscInt k = 0;

  if (len == n) {
    for (PetscInt c = 0; c < n; c++) cols[c] = c;
    return;
  }
  for (PetscInt c = n - len; c < n; c++) {
    PetscInt r = HybTestRandomInt(0, c + 1);

    if (mark[r] == stamp) r = c;
    mark[r]   = stamp;
    cols[k++] = r;
  }
  qsort(cols, (size_t)len, sizeof(PetscInt), IntCompare);
}

void HybTestMatLengths(PetscInt m, PetscInt n, const PetscInt *lengths, RefMat *A)
{
  PetscInt  *mark = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  PetscCount nnz  = 0;

  for (PetscInt r = 0; r < m; r++) nnz += PetscMin(lengths[r], n);
  RefMatCreate(m, n, nnz, A);
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt len = PetscMin(lengths[r], n);

    Sample(n, len, r + 1, mark, A->csr.j + A->csr.i[r]);
    A->csr.i[r + 1] = A->csr.i[r] + len;
  }
  HybTestRandomize(A);
  free(mark);
}

void HybTestMatRandom(PetscInt m, PetscInt n, PetscInt lo, PetscInt hi, RefMat *A)
{
  PetscInt *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = HybTestRandomInt(lo, hi + 1);
  HybTestMatLengths(m, n, lengths, A);
  free(lengths);
}

void HybTestMatPowerLaw(PetscInt m, PetscInt n, PetscInt average, RefMat *A)
{
  const PetscCount nnz = (PetscCount)m * average;
  PetscInt        *ci = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt));

  /* products of uniform numbers: a density that falls like a power; rows and columns are scattered by a stride that is
     coprime to most sizes */
  for (PetscCount k = 0; k < nnz; k++) {
    PetscReal u = HybTestRandomReal() * HybTestRandomReal() * HybTestRandomReal(), v = HybTestRandomReal() * HybTestRandomReal();

    ci[k] = (PetscInt)(((int64_t)(u * m) * 7919) % m);
    cj[k] = (PetscInt)(((int64_t)(v * n) * 104729) % n);
  }
  RefCOO(m, n, nnz, ci, cj, NULL, A);
  RefFree(A->mag, A->terms);
  A->mag   = NULL;
  A->terms = NULL;
  HybTestRandomize(A);
  RefFree(ci, cj);
}

void HybTestMatStencil(PetscInt points, PetscInt nx, PetscInt ny, PetscInt nz, RefMat *A)
{
  const PetscInt m = nx * ny * nz, dz = points == 7 || points == 27;
  PetscInt      *j = (PetscInt *)RefAlloc((PetscCount)m * points, sizeof(PetscInt)), *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), nnz = 0;

  if (!(points == 5 || points == 7 || points == 9 || points == 27)) abort();
  for (PetscInt z = 0; z < nz; z++)
    for (PetscInt y = 0; y < ny; y++)
      for (PetscInt x = 0; x < nx; x++) {
        for (PetscInt c = -dz; c <= dz; c++)
          for (PetscInt b = -1; b <= 1; b++)
            for (PetscInt a = -1; a <= 1; a++) {
              if ((points == 5 || points == 7) && (a != 0) + (b != 0) + (c != 0) > 1) continue;
              if (x + a < 0 || x + a >= nx || y + b < 0 || y + b >= ny || z + c < 0 || z + c >= nz) continue;
              j[nnz++] = ((z + c) * ny + y + b) * nx + x + a;
            }
        i[(z * ny + y) * nx + x + 1] = nnz;
      }
  HybTestMatArrays(m, m, i, j, NULL, A);
  RefFree(i, j);
}

void HybTestMatBlock(const RefMat *P, PetscInt bs, RefMat *A)
{
  PetscInt nnz = 0;

  RefMatCreate(P->csr.m * bs, P->csr.n * bs, P->csr.nnz * bs * bs, A);
  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = P->csr.i[r / bs]; k < P->csr.i[r / bs + 1]; k++)
      for (PetscInt c = 0; c < bs; c++) A->csr.j[nnz++] = P->csr.j[k] * bs + c;
    A->csr.i[r + 1] = nnz;
  }
  HybTestRandomize(A);
}

void HybTestMatBanded(PetscInt m, PetscInt n, PetscInt lower, PetscInt upper, RefMat *A)
{
  PetscInt nnz = 0;

  for (int pass = 0; pass < 2; pass++) {
    if (pass) RefMatCreate(m, n, nnz, A);
    nnz = 0;
    for (PetscInt r = 0; r < m; r++) {
      for (PetscInt c = PetscMax(0, r - lower); c <= PetscMin(n - 1, r + upper); c++) {
        if (pass) A->csr.j[nnz] = c;
        nnz++;
      }
      if (pass) A->csr.i[r + 1] = nnz;
    }
  }
  HybTestRandomize(A);
}

void HybTestMatDenseRow(PetscInt m, PetscInt n, PetscInt row, PetscInt others, RefMat *A)
{
  PetscInt *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = r == row ? n : others;
  HybTestMatLengths(m, n, lengths, A);
  free(lengths);
}

void HybTestMatDenseColumn(PetscInt m, PetscInt n, PetscInt col, PetscInt others, RefMat *A)
{
  RefMat     B;
  PetscInt  *ci, *cj;
  PetscCount k = 0;

  HybTestMatRandom(m, n, others, others, &B);
  ci = (PetscInt *)RefAlloc(B.csr.nnz + m, sizeof(PetscInt));
  cj = (PetscInt *)RefAlloc(B.csr.nnz + m, sizeof(PetscInt));
  for (PetscInt r = 0; r < m; r++) {
    ci[k]   = r;
    cj[k++] = col;
    for (PetscInt l = B.csr.i[r]; l < B.csr.i[r + 1]; l++) {
      ci[k]   = r;
      cj[k++] = B.csr.j[l];
    }
  }
  RefMatDestroy(&B);
  RefCOO(m, n, k, ci, cj, NULL, &B);
  HybTestMatArrays(m, n, B.csr.i, B.csr.j, NULL, A);
  RefMatDestroy(&B);
  RefFree(ci, cj);
}

void HybTestMatEmpty(PetscInt m, PetscInt n, RefMat *A)
{
  RefMatCreate(m, n, 0, A);
}

void HybTestMatLoose(PetscInt m, PetscBool twice, RefMat *A)
{
  RefMatCreate(m, m, 3 * (PetscCount)m, A);
  for (PetscInt r = 0; r < m; r++) {
    PetscInt *c = A->csr.j + 3 * r;

    for (PetscInt k = 0; k < 3; k++) c[k] = PetscMin(PetscMax(r - 1, 0), m - 3) + k;
    if (r % 5 == 3) {
      if (twice)
        c[1] = c[0];
      else {
        const PetscInt t = c[0];

        c[0] = c[2];
        c[2] = t;
      }
    }
    A->csr.i[r + 1] = 3 * (r + 1);
  }
  HybTestRandomize(A);
}

void HybTestMatEmptyRows(RefMat *A, PetscInt from, PetscInt to, PetscInt step)
{
  PetscInt nnz = 0, begin = 0;

  for (PetscInt r = 0; r < A->csr.m; r++) {
    const PetscInt end = A->csr.i[r + 1];

    if (r < from || r >= to || (r - from) % step) {
      for (PetscInt k = begin; k < end; k++) {
        A->csr.j[nnz]   = A->csr.j[k];
        A->csr.a[nnz++] = A->csr.a[k];
      }
    }
    begin           = end;
    A->csr.i[r + 1] = nnz;
  }
  A->csr.nnz = nnz;
}

void HybTestMatProlongator(PetscInt m, PetscInt n, PetscInt width, RefMat *A)
{
  PetscInt *j = (PetscInt *)RefAlloc((PetscCount)m * width, sizeof(PetscInt)), *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < m; r++) {
    const PetscInt centre = (PetscInt)((int64_t)r * n / m), len = HybTestRandomInt(1, width + 1);

    for (PetscInt c = PetscMax(0, centre - len / 2); c < PetscMin(n, centre - len / 2 + len); c++) j[nnz++] = c;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(m, n, i, j, NULL, A);
  RefFree(i, j);
}

PetscBool HybTestZoo(PetscInt k, PetscBool square, char name[64], RefMat *A)
{
  RefMat    B;
  PetscInt  lengths[80], f;
  PetscBool issquare = PETSC_TRUE;
  /* the square ones come first */
  const PetscInt nsquare = 22, nall = nsquare + 14;

  if (k < 0 || k >= (square ? nsquare : nall)) return PETSC_FALSE;
  f = HybTestSize(4, 1);
#define ZOO(number, text, make)     \
  case number:                      \
    snprintf(name, 64, "%s", text); \
    make;                           \
    break
  switch (k) {
    ZOO(0, "0 x 0", HybTestMatEmpty(0, 0, A));
    ZOO(1, "1 x 1 empty", HybTestMatEmpty(1, 1, A));
    ZOO(2, "1 x 1", HybTestMatBanded(1, 1, 0, 0, A));
    ZOO(3, "empty 37 x 37", HybTestMatEmpty(37, 37, A));
    ZOO(4, "diagonal", HybTestMatBanded(65 * f, 65 * f, 0, 0, A));
    ZOO(5, "tridiagonal", HybTestMatBanded(64 * f + 1, 64 * f + 1, 1, 1, A));
    ZOO(6, "dense 33 x 33", HybTestMatBanded(33, 33, 33, 33, A));
    ZOO(7, "lower triangle", HybTestMatBanded(40, 40, 40, 0, A));
    ZOO(8, "5-point", HybTestMatStencil(5, 9 * f, 7 * f, 1, A));
    ZOO(9, "9-point", HybTestMatStencil(9, 8 * f, 7 * f, 1, A));
    ZOO(10, "7-point", HybTestMatStencil(7, 3 * f, 4, 5, A));
    ZOO(11, "27-point", HybTestMatStencil(27, 2 * f, 5, 4, A));
    ZOO(12, "dense row", HybTestMatDenseRow(60 * f, 60 * f, 17, 2, A));
    ZOO(13, "dense column", HybTestMatDenseColumn(60 * f, 60 * f, 11, 2, A));
    ZOO(14, "power law", HybTestMatPowerLaw(75 * f, 75 * f, 5, A));
    ZOO(15, "random, 0 to 9 a row", HybTestMatRandom(70 * f, 70 * f, 0, 9, A));
    ZOO(16, "random, 20 to 45 a row", HybTestMatRandom(50 * f, 50 * f, 20, 45, A));
    ZOO(17, "empty rows first, last and every third", HybTestMatRandom(90 * f, 90 * f, 1, 6, A); HybTestMatEmptyRows(A, 0, 12, 1); HybTestMatEmptyRows(A, 80 * f, 90 * f, 1); HybTestMatEmptyRows(A, 12, 80 * f, 3));
    ZOO(18, "blocks of 3", HybTestMatStencil(7, 3, 3, f, &B); HybTestMatBlock(&B, 3, A); RefMatDestroy(&B));
    ZOO(19, "blocks of 2, random", HybTestMatRandom(30 * f, 30 * f, 0, 5, &B); HybTestMatBlock(&B, 2, A); RefMatDestroy(&B));
    ZOO(20, "one entry in the last corner", HybTestMatBanded(50, 50, 0, 0, A); HybTestMatEmptyRows(A, 0, 49, 1));
    ZOO(21, "row lengths 0 to 79", for (PetscInt r = 0; r < 80; r++) lengths[r] = r; HybTestMatLengths(80, 80, lengths, A));
  default:
    issquare = PETSC_FALSE;
    break;
  }
  if (issquare) return PETSC_TRUE;
  switch (k - nsquare) {
    ZOO(0, "0 x 7", HybTestMatEmpty(0, 7, A));
    ZOO(1, "7 x 0", HybTestMatEmpty(7, 0, A));
    ZOO(2, "1 x 300, dense", HybTestMatBanded(1, 300, 0, 300, A));
    ZOO(3, "300 x 1, dense", HybTestMatBanded(300, 1, 300, 0, A));
    ZOO(4, "1 x 50, one entry", HybTestMatRandom(1, 50, 1, 1, A));
    ZOO(5, "wide", HybTestMatRandom(20, 900 * f, 0, 40, A));
    ZOO(6, "tall", HybTestMatRandom(200 * f, 15, 0, 6, A));
    ZOO(7, "tall, power law", HybTestMatPowerLaw(120 * f, 40, 3, A));
    ZOO(8, "wide, power law", HybTestMatPowerLaw(40, 120 * f, 8, A));
    ZOO(9, "prolongator", HybTestMatProlongator(120 * f, 17 * f, 4, A));
    ZOO(10, "piecewise constant prolongator", HybTestMatProlongator(100 * f, 9 * f, 1, A));
    ZOO(11, "dense row, wide", HybTestMatDenseRow(5, 700, 4, 1, A));
    ZOO(12, "dense column, tall", HybTestMatDenseColumn(300 * f, 12, 0, 1, A));
    ZOO(13, "row lengths about powers of two", for (PetscInt r = 0; r < 80; r++) lengths[r] = (1 << (r % HybTestSize(10, 9))) - 1 + (r / 10) % 3; HybTestMatLengths(HybTestSize(80, 40), 700, lengths, A));
  default:
    return PETSC_FALSE;
  }
#undef ZOO
  return PETSC_TRUE;
}

PetscBool HybTestMatRead(const char *name, RefMat *A)
{
  const char  *folder = HybTestFolder();
  char         command[PETSC_MAX_PATH_LEN + 128], path[PETSC_MAX_PATH_LEN + 64], *line = NULL, field[32] = "", symmetry[32] = "";
  size_t       length = 0;
  FILE        *f;
  long         m = -1, n = -1, nz = -1;
  PetscInt    *ci = NULL, *cj = NULL;
  PetscScalar *v    = NULL;
  PetscCount   k    = 0;
  PetscBool    good = PETSC_FALSE;

  if (!folder[0]) {
    HybTestSkip("matrix %s: no folder of matrices was given (-matrices DIR)", name);
    return PETSC_FALSE;
  }
  snprintf(path, sizeof(path), "%s/%.40s.mtx.xz", folder, name);
  f = fopen(path, "r");
  if (!f) {
    HybTestSkip("matrix %s is not in %s", name, folder);
    return PETSC_FALSE;
  }
  fclose(f);
  snprintf(command, sizeof(command), "xz -dc '%s'", path);
  f = popen(command, "r");
  if (f && getline(&line, &length, f) > 0 && sscanf(line, "%%%%MatrixMarket matrix coordinate %31s %31s", field, symmetry) == 2) {
    while (getline(&line, &length, f) > 0) {
      if (line[0] == '%' || line[0] == '\n') continue;
      if (m < 0) {
        if (sscanf(line, "%ld %ld %ld", &m, &n, &nz) != 3) break;
        ci = (PetscInt *)RefAlloc(2 * nz, sizeof(PetscInt));
        cj = (PetscInt *)RefAlloc(2 * nz, sizeof(PetscInt));
        v  = (PetscScalar *)RefAlloc(2 * nz, sizeof(PetscScalar));
      } else {
        char  *p  = line;
        double re = 1;

        if (nz-- <= 0) break;
        ci[k] = (PetscInt)strtol(p, &p, 10) - 1;
        cj[k] = (PetscInt)strtol(p, &p, 10) - 1;
        if (strcmp(field, "pattern")) re = strtod(p, &p);
        v[k++] = re;
        if (strcmp(symmetry, "general") && ci[k - 1] != cj[k - 1]) {
          ci[k]  = cj[k - 1];
          cj[k]  = ci[k - 1];
          v[k++] = !strcmp(symmetry, "skew-symmetric") ? -re : re;
        }
      }
    }
    good = (PetscBool)(m >= 0 && nz == 0 && strcmp(field, "complex"));
  }
  if (f) pclose(f);
  if (good) {
    RefCOO((PetscInt)m, (PetscInt)n, k, ci, cj, v, A);
    RefFree(A->mag, A->terms);
    A->mag   = NULL;
    A->terms = NULL;
  } else
    HybTestSkip("matrix %s: %s cannot be read", name, path);
  RefFree(line, ci, cj, v);
  return good;
}
