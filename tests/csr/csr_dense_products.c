/* multdense against plain sums; submatrixmapped against a look at each entry: columns dropped, reordered, rows
   repeated */
#include "csrtest.h"

/* p columns, with more room between them than they need: what lies there stays as it is */
static PetscErrorCode TestDense(const char *name, const RefMat *A, PetscInt p)
{
  const PetscInt   m = A->csr.m, n = A->csr.n;
  const PetscCount ldb = n + 3, ldc = m + 2;
  PetscScalar     *hb = HybTestRandomVector(ldb * p), *hc = HybTestRandomVector(ldc * p), *b, *c, *again;
  PetscReal       *mag   = (PetscReal *)RefAlloc(ldc * p, sizeof(PetscReal));
  PetscCount      *terms = (PetscCount *)RefAlloc(ldc * p, sizeof(PetscCount));
  HybCSR           there;

  PetscFunctionBegin;
  HybTestBegin("%s times %d dense columns", name, (int)p);
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  PetscCall(HybTestUploadArray(&mine, ldb * p, sizeof(PetscScalar), hb, &b));
  PetscCall(HybTestUploadArray(&mine, ldc * p, sizeof(PetscScalar), hc, &c));
  PetscCall(HybTestUploadArray(&mine, ldc * p, sizeof(PetscScalar), hc, &again));
  for (PetscCount q = 0; q < ldc * p; q++) {
    const PetscCount r = q % ldc, col = q / ldc;

    mag[q]   = PetscAbsScalar(hc[q]);
    terms[q] = 1;
    if (r >= m) continue;
    hc[q]  = 0;
    mag[q] = 0;
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      hc[q] += A->csr.a[k] * hb[A->csr.j[k] + ldb * col];
      mag[q] += PetscAbsScalar(A->csr.a[k] * hb[A->csr.j[k] + ldb * col]);
      terms[q]++;
    }
  }
  if (HybTestCall(ops->multdense(exec, &there, p, b, ldb, c, ldc))) {
    PetscScalar *found = (PetscScalar *)RefAlloc(ldc * p, sizeof(PetscScalar));

    HybTestSameScalars(ldc * p, c, hc, mag, terms, 4);
    HybTestCall(ops->multdense(exec, &there, p, b, ldb, again, ldc));
    PetscCall(HybTestDownloadArray(ldc * p, sizeof(PetscScalar), c, found));
    HybTestSameBits(ldc * p, sizeof(PetscScalar), again, found);
    free(found);
  }
  RefFree(hb, hc, mag, terms);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMapped(const char *name, const RefMat *A, PetscInt nrows, const PetscInt *rows, PetscInt ncols, const PetscInt *colmap, PetscBool ascending)
{
  HybCSR     there, S;
  PetscInt  *drows, *dmap, *perm, *inverse, *hperm;
  RefMat     R;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  HybTestBegin("rows and columns of %s, %s", name, ascending ? "in order" : "reordered");
  inverse = (PetscInt *)RefAlloc(ncols + 1, sizeof(PetscInt));
  for (PetscInt c = 0; c < ncols; c++) inverse[c] = -1;
  for (PetscInt c = 0; c < A->csr.n; c++)
    if (colmap[c] >= 0) inverse[colmap[c]] = c;
  for (PetscInt r = 0; r < nrows; r++)
    for (PetscInt k = A->csr.i[rows[r]]; k < A->csr.i[rows[r] + 1]; k++) nnz += colmap[A->csr.j[k]] >= 0;
  hperm = (PetscInt *)RefAlloc(nnz + 1, sizeof(PetscInt));
  HybTestMatEmpty(nrows, ncols, &R);
  RefFree(R.csr.j, R.csr.a);
  R.csr.j   = (PetscInt *)RefAlloc(nnz + 1, sizeof(PetscInt));
  R.csr.a   = (PetscScalar *)RefAlloc(nnz + 1, sizeof(PetscScalar));
  R.csr.nnz = nnz;
  nnz       = 0;
  for (PetscInt r = 0; r < nrows; r++) {
    for (PetscInt c = 0; c < ncols; c++) {
      for (PetscInt k = A->csr.i[rows[r]]; inverse[c] >= 0 && k < A->csr.i[rows[r] + 1]; k++) {
        if (A->csr.j[k] != inverse[c]) continue;
        R.csr.j[nnz] = c;
        R.csr.a[nnz] = A->csr.a[k];
        hperm[nnz++] = k;
      }
    }
    R.csr.i[r + 1] = (PetscInt)nnz;
  }
  PetscCall(HybTestUpload(&mine, &A->csr, &there));
  PetscCall(HybTestUploadArray(&mine, nrows, sizeof(PetscInt), rows, &drows));
  PetscCall(HybTestUploadArray(&mine, A->csr.n, sizeof(PetscInt), colmap, &dmap));
  if (HybTestCall(ops->submatrixmapped(exec, &keep, &work, &there, nrows, drows, ncols, dmap, ascending, &S, &perm)) && HybTestSamePattern(&S, &R)) HybTestSameInts(nnz, perm, hperm);
  RefMatDestroy(&R);
  RefFree(inverse, hperm);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  char   name[64];
  RefMat A;

  PetscFunctionBegin;
  PetscCall(Start());
  for (PetscInt z = 0; HybTestZoo(z, PETSC_FALSE, name, &A); z++) {
    const PetscInt m = A.csr.m, n = A.csr.n, columns[] = {0, 1, 3, 4, 5, 8, 9, 19};
    PetscInt      *rows = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *map = (PetscInt *)RefAlloc((PetscCount)n + 1, sizeof(PetscInt)), kept = 0;

    for (int k = 0; k < 8; k++)
      if (!HybTestSlow() || (z + k) % 4 == 0) PetscCall(TestDense(name, &A, columns[k]));
    if ((PetscCount)m * n < 4000000) {
      for (PetscInt r = 0; r < m; r++) rows[r] = m > 1 ? HybTestRandomInt(0, m) : 0;
      for (PetscInt c = 0; c < n; c++) map[c] = c % 3 == 1 ? -1 : kept++;
      PetscCall(TestMapped(name, &A, m, rows, kept, map, PETSC_TRUE));
      PetscCall(TestMapped(name, &A, m / 2, rows, kept + 2, map, PETSC_TRUE));
      for (PetscInt c = 0; c < n; c++)
        if (map[c] >= 0) map[c] = kept - 1 - map[c];
      PetscCall(TestMapped(name, &A, m, rows, kept, map, PETSC_FALSE));
      for (PetscInt c = 0; c < n; c++) map[c] = c;
      for (PetscInt c = n - 1; c > 0; c--) {
        const PetscInt d = HybTestRandomInt(0, c + 1), t = map[c];

        map[c] = map[d];
        map[d] = t;
      }
      PetscCall(TestMapped(name, &A, m, rows, n, map, PETSC_FALSE));
      PetscCall(TestMapped(name, &A, 0, rows, n, map, PETSC_FALSE));
      for (PetscInt c = 0; c < n; c++) map[c] = -1;
      PetscCall(TestMapped(name, &A, m, rows, 0, map, PETSC_TRUE));
    }
    RefFree(rows, map);
    RefMatDestroy(&A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
