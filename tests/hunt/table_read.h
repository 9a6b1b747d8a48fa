/* table_read.h: the operations of hunt_table that read a matrix */
#ifndef UNTRIED_READ_H
#define UNTRIED_READ_H
#include "table.h"

/* entries, and places where there are none */
static PetscErrorCode GetValues(Hunt *h, int k, Mat A)
{
  PetscInt    start, end, c[4], r[2];
  PetscScalar v[8];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt q = start; q + 1 < end; q += 2) {
    r[0] = q, r[1] = q + 1;
    for (int e = 0; e < 4; e++) c[e] = (q + 5 * e) % A->cmap->N;
    PetscCall(MatGetValues(A, 2, r, 4, c, v));
    for (int e = 0; e < 8; e++) Note(h, k, v[e]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetValuesLocal(Hunt *h, int k, Mat A)
{
  PetscInt    r[2] = {0, 1}, c[3] = {0, 1, 3};
  PetscScalar v[6];

  PetscFunctionBeginUser;
  PetscCall(Mapping(A));
  PetscCall(MatGetValuesLocal(A, 2, r, 3, c, v));
  for (int e = 0; e < 6; e++) Note(h, k, v[e]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Overlap(Hunt *h, int k, Mat A)
{
  PetscInt start, end;
  IS       is[2];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, end - start, start, 1, &is[0]));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, end > start, start, 1, &is[1]));
  PetscCall(MatIncreaseOverlap(A, 2, is, 2));
  for (int q = 0; q < 2; q++) {
    PetscCall(ISSort(is[q]));
    PetscCall(NoteIS(h, k, is[q]));
    PetscCall(ISDestroy(&is[q]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OverlapSplit(Hunt *h, int k, Mat A)
{
  IS is;

  PetscFunctionBeginUser;
  PetscCall(OwnRows(A, PETSC_COMM_SELF, 1, &is));
  PetscCall(MatIncreaseOverlapSplit(A, 1, &is, 1));
  PetscCall(ISSort(is));
  PetscCall(NoteIS(h, k, is));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ColumnVector(Hunt *h, int k, Mat A)
{
  Vec v;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, PETSC_TRUE, &v));
  for (PetscInt c = 0; c < A->cmap->N; c += 4) {
    PetscCall(MatGetColumnVector(A, v, c));
    PetscCall(NoteVec(h, k, v));
  }
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ghosts(Hunt *h, int k, Mat A)
{
  const PetscInt *g;
  PetscInt        n;

  PetscFunctionBeginUser;
  PetscCall(MatGetGhosts(A, &n, &g));
  Note(h, k, (PetscReal)n);
  for (PetscInt q = 0; q < n; q++) Note(h, k, (PetscReal)g[q]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ColumnReductions(Hunt *h, int k, Mat A)
{
  PetscScalar *s;
  PetscReal   *r;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(A->cmap->N, &s, A->cmap->N, &r));
  for (int q = 0; q < 6; q++) {
    switch (q) {
    case 0: PetscCall(MatGetColumnSums(A, s)); break;
    case 1: PetscCall(MatGetColumnMeans(A, s)); break;
    case 2: PetscCall(MatGetColumnSumsRealPart(A, r)); break;
    case 3: PetscCall(MatGetColumnSumsImaginaryPart(A, r)); break;
    case 4: PetscCall(MatGetColumnMeansRealPart(A, r)); break;
    default: PetscCall(MatGetColumnNorms(A, NORM_INFINITY, r)); break;
    }
    for (PetscInt c = 0; c < A->cmap->N; c++) Note(h, k, q < 2 ? s[c] : (PetscScalar)r[c]);
  }
  PetscCall(PetscFree2(s, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InvertBlocks(Hunt *h, int k, Mat A)
{
  const PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatSetBlockSize(A, 3));
  PetscCall(MatInvertBlockDiagonal(A, &v));
  for (PetscInt q = 0; q < 3 * A->rmap->n; q++) Note(h, k, v[q]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InvertBlocksMat(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetBlockSize(A, 3));
  if (!h->made.m[k]) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &h->made.m[k]));
    PetscCall(MatSetSizes(h->made.m[k], A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
    PetscCall(MatSetBlockSize(h->made.m[k], 3));
    PetscCall(MatSetType(h->made.m[k], k ? "aijhybridgpu" : MATAIJ));
    PetscCall(MatSetUp(h->made.m[k]));
  }
  PetscCall(MatInvertBlockDiagonalMat(A, h->made.m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InvertVariable(Hunt *h, int k, Mat A)
{
  PetscInt    sizes[ROWS] = {0}, n = 0, total = 0;
  PetscScalar v[9 * ROWS];

  PetscFunctionBeginUser;
  for (PetscInt r = 0; r < A->rmap->n; r += 3, n++, total += 9) sizes[n] = 3;
  PetscCall(MatInvertVariableBlockDiagonal(A, n, sizes, v));
  for (PetscInt q = 0; q < total; q++) Note(h, k, v[q]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Envelope(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatInvertVariableBlockEnvelope(A, REUSE, &h->made.m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OffBlock(Hunt *h, int k, Mat A)
{
  IS is;

  PetscFunctionBeginUser;
  PetscCall(MatFindOffBlockDiagonalEntries(A, &is));
  PetscCall(NoteIS(h, k, is));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ColumnIJ(Hunt *h, int k, Mat A)
{
  const PetscInt *ia, *ja;
  PetscInt        n;
  PetscBool       done;

  PetscFunctionBeginUser;
  for (int q = 0; q < 2; q++) {
    PetscCall(MatGetColumnIJ(A, q, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
    Note(h, k, (PetscReal)done);
    for (PetscInt c = 0; done && c < n; c++)
      for (PetscInt e = ia[c] - q; e < ia[c + 1] - q; e++) Note(h, k, (PetscReal)ja[e]);
    PetscCall(MatRestoreColumnIJ(A, q, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* as it is, symmetrised, and by nodes */
static PetscErrorCode RowIJ(Hunt *h, int k, Mat A)
{
  const PetscInt *ia, *ja;
  PetscInt        n;
  PetscBool       done;

  PetscFunctionBeginUser;
  for (int q = 0; q < 8; q++) {
    const PetscBool symmetric = (PetscBool)(q / 2 % 2), nodes = (PetscBool)(q / 4);

    PetscCall(MatGetRowIJ(A, q % 2, symmetric, nodes, &n, &ia, &ja, &done));
    Note(h, k, (PetscReal)done);
    for (PetscInt r = 0; done && r < n; r++)
      for (PetscInt e = ia[r] - q % 2; e < ia[r + 1] - q % 2; e++) Note(h, k, (PetscReal)ja[e]);
    PetscCall(MatRestoreRowIJ(A, q % 2, symmetric, nodes, &n, &ia, &ja, &done));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* whatever MATAIJ has */
static PetscErrorCode Has(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  for (int op = 0; op < (int)(sizeof(A->ops[0]) / sizeof(void (*)(void))); op++) {
    PetscBool has[2];

    PetscCall(MatHasOperation(h->p->m[0], (MatOperation)op, &has[0]));
    PetscCall(MatHasOperation(A, (MatOperation)op, &has[1]));
    if (has[0] && !has[1] && k) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "operation %d is MATAIJ's alone\n", op));
    Note(h, k, has[0] && !has[1] ? 1.0 : 0.0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AsksMore(Hunt *h, int k, Mat A)
{
  PetscBool flag = PETSC_FALSE;
  Mat       B;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatIsLinear(A, 3, &flag));
  Note(h, k, flag);
  PetscCall(MatMultEqual(A, B, 3, &flag));
  Note(h, k, flag);
  PetscCall(MatMultTransposeEqual(A, B, 3, &flag));
  Note(h, k, flag);
  PetscCall(MatEqual(A, B, &flag));
  Note(h, k, flag);
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatMultAddEqual(A, B, 3, &flag));
  Note(h, k, flag);
  PetscCall(MatEqual(A, B, &flag));
  Note(h, k, flag);
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX == REUSE ? MAT_INITIAL_MATRIX : MAT_INITIAL_MATRIX, &h->made.m[k]));
  PetscCall(MatIsTranspose(A, h->made.m[k], 1e-12, &flag));
  Note(h, k, flag);
  PetscCall(MatIsHermitianTranspose(A, h->made.m[k], 1e-12, &flag));
  Note(h, k, flag);
  PetscCall(MatTestDestroy(&h->made.m[k], &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalBlockMult(Hunt *h, int k, Mat A)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCheck(A->ops->multdiagonalblock, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(Beside(A, PETSC_FALSE, &x));
  PetscCall(Beside(A, PETSC_TRUE, &y));
  PetscUseTypeMethod(A, multdiagonalblock, x, y);
  PetscCall(NoteVec(h, k, y));
  PetscCall(MatTestDestroy(&x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Interpolate(Hunt *h, int k, Mat A)
{
  Vec l, r, y;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, PETSC_TRUE, &l));
  PetscCall(Beside(A, PETSC_FALSE, &r));
  PetscCall(MatInterpolate(A, r, l));
  PetscCall(NoteVec(h, k, l));
  PetscCall(VecDuplicate(l, &y));
  PetscCall(MatInterpolateAdd(A, r, l, y));
  PetscCall(NoteVec(h, k, y));
  PetscCall(MatInterpolateAdd(A, r, l, l));
  PetscCall(MatRestrict(A, l, r));
  PetscCall(NoteVec(h, k, r));
  PetscCall(MatTestDestroy(&y, &l, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* as text; what names the type is left aside */
static PetscErrorCode Views(Hunt *h, int k, Mat A)
{
  const PetscViewerFormat formats[] = {PETSC_VIEWER_DEFAULT, PETSC_VIEWER_ASCII_MATLAB, PETSC_VIEWER_ASCII_DENSE, PETSC_VIEWER_ASCII_COMMON, PETSC_VIEWER_ASCII_INDEX,
                                       PETSC_VIEWER_ASCII_IMPL, PETSC_VIEWER_ASCII_INFO, PETSC_VIEWER_ASCII_MATRIXMARKET};

  PetscFunctionBeginUser;
  PetscCall(PetscObjectSetName((PetscObject)A, "A"));
  for (size_t f = 0; f < PETSC_STATIC_ARRAY_LENGTH(formats); f++) {
    FILE       *file = tmpfile();
    PetscViewer viewer;
    char        line[512];

    PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "No file");
    if (formats[f] == PETSC_VIEWER_ASCII_MATRIXMARKET && MatTestSize() > 1) continue;
    PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, file, &viewer));
    PetscCall(PetscViewerPushFormat(viewer, formats[f]));
    PetscCall(MatView(A, viewer));
    PetscCall(PetscViewerPopFormat(viewer));
    PetscCall(PetscViewerFlush(viewer));
    rewind(file);
    while (fgets(line, sizeof(line), file)) {
      if (strstr(line, "type") || strstr(line, "I-node") || strstr(line, "allocated") || strstr(line, "AIJHybridGPU")) continue;
      if (PairsTrail) printf("%s", line);
      for (const char *c = line; *c; c++) Note(h, k, (PetscReal)*c);
    }
    PetscCall(PetscViewerDestroy(&viewer));
    fclose(file);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* counts that are asked for by name */
static PetscErrorCode Counts(Hunt *h, int k, Mat A)
{
  PetscInt        n, reallocs, bn, breallocs;
  PetscBool       flag;
  Mat             D;
  IS              rows, columns;
  PetscReal       norm;
  VecType         vec;
  const PetscInt *ranges;

  PetscFunctionBeginUser;
  PetscCall(MatStashGetInfo(A, &n, &reallocs, &bn, &breallocs));
  Note(h, k, (PetscReal)(n + reallocs + bn + breallocs));
  PetscCall(MatGetOwnershipIS(A, &rows, &columns));
  PetscCall(NoteIS(h, k, rows));
  PetscCall(NoteIS(h, k, columns));
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscCall(MatGetOwnershipRangesColumn(A, &ranges));
  Note(h, k, (PetscReal)ranges[1]);
  PetscCall(MatGetVecType(A, &vec));
  PetscCall(MatHasCongruentLayouts(A, &flag));
  Note(h, k, flag);
  PetscCall(MatGetDiagonalBlock(A, &D));
  PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
  Note(h, k, norm);
  PetscCall(NoteMat(h, k, D));
  if (MatTestSize() == 1) {
    PetscCall(MatSeqAIJGetMaxRowNonzeros(A, &n));
    Note(h, k, (PetscReal)n);
  }
#if PETSC_VERSION_GE(3, 22, 0)
  {
    Vec v;

    PetscCall(Beside(A, PETSC_TRUE, &v));
    PetscCall(MatGetRowSumAbs(A, v));
    PetscCall(NoteVec(h, k, v));
    PetscCall(VecDestroy(&v));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* orderings, as preconditioners ask for them */
static PetscErrorCode Orderings(Hunt *h, int k, Mat A)
{
  const char *const types[] = {MATORDERINGNATURAL, MATORDERINGRCM, MATORDERINGND, MATORDERING1WD, MATORDERINGQMD, MATORDERINGROWLENGTH, MATORDERINGWBM, MATORDERINGSPECTRAL};

  PetscFunctionBeginUser;
  for (size_t q = 0; q < 6; q++) {
    IS rows, columns;

    PetscCall(MatGetOrdering(A, types[q], &rows, &columns));
    PetscCall(NoteIS(h, k, rows));
    PetscCall(NoteIS(h, k, columns));
    PetscCall(MatTestDestroy(&rows, &columns));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Colorings(Hunt *h, int k, Mat A)
{
  const char *const types[] = {MATCOLORINGSL, MATCOLORINGLF, MATCOLORINGID, MATCOLORINGNATURAL};

  PetscFunctionBeginUser;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(types); q++) {
    MatColoring c;
    ISColoring  colors;
    PetscInt    n, at;
    IS         *is;

    PetscCall(MatColoringCreate(A, &c));
    PetscCall(MatColoringSetType(c, types[q]));
    PetscCall(MatColoringApply(c, &colors));
    PetscCall(ISColoringGetIS(colors, PETSC_USE_POINTER, &n, &is));
    Note(h, k, (PetscReal)n);
    for (at = 0; at < n; at++) PetscCall(NoteIS(h, k, is[at]));
    PetscCall(ISColoringRestoreIS(colors, PETSC_USE_POINTER, &is));
    PetscCall(ISColoringDestroy(&colors));
    PetscCall(MatColoringDestroy(&c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coarsen(Hunt *h, int k, Mat A)
{
  const char *const types[] = {MATCOARSENMIS, MATCOARSENMISK, MATCOARSENHEM};
  /* before 3.22 the last takes any parallel type but the very mpiaij for a sequential one, and reads what is not
     there */
  const size_t n = PETSC_STATIC_ARRAY_LENGTH(types) - (PETSC_VERSION_LT(3, 22, 0) && MatTestSize() > 1);

  PetscFunctionBeginUser;
  for (size_t q = 0; q < n; q++) {
    MatCoarsen        c;
    PetscCoarsenData *agg;

    PetscCall(MatCoarsenCreate(PETSC_COMM_WORLD, &c));
    PetscCall(MatCoarsenSetType(c, types[q]));
    PetscCall(MatCoarsenSetAdjacency(c, A));
    PetscCall(MatCoarsenSetStrictAggs(c, PETSC_TRUE));
    PetscCall(MatCoarsenApply(c));
    PetscCall(MatCoarsenGetData(c, &agg));
    for (PetscInt r = 0; r < A->rmap->n; r++) {
      PetscInt count = 0;

#if PETSC_VERSION_GE(3, 20, 0)
      PetscCall(PetscCDCountAt(agg, r, &count));
#else
      PetscCall(PetscCDSizeAt(agg, r, &count));
#endif
      Note(h, k, (PetscReal)count);
    }
    PetscCall(PetscCDDestroy(agg));
    PetscCall(MatCoarsenDestroy(&c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
