/* make.h: the hunter's operations that make another matrix, or another object's contents of this one. */
#ifndef HUNT_MAKE_H
#define HUNT_MAKE_H
#include "hunt.h"

static PetscErrorCode Duplicate(Hunt *h, int k, Mat A)
{
  const MatDuplicateOption options[] = {MAT_COPY_VALUES, MAT_DO_NOT_COPY_VALUES, MAT_SHARE_NONZERO_PATTERN};

  PetscFunctionBeginUser;
  h->same = PETSC_TRUE;
  PetscCall(MatDuplicate(A, options[h->r[0] % 3], &h->made.m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  switch (h->r[0] % 5) {
  case 0: PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &h->made.m[k])); break;
  case 1:
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &h->made.m[k]));
    if (h->r[1] % 2) PetscCall(MatTestUse(h->made.m[k]));
    PetscCall(MatScale(A, 2.0));
    if (h->r[1] % 3) PetscCall(MatScale(A, 2.0));
    PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &h->made.m[k]));
    break;
  case 2:
    h->replaced = PETSC_TRUE;
    PetscCall(MatTranspose(h->p->m[k], MAT_INPLACE_MATRIX, &h->p->m[k]));
    break;
  case 3: PetscCall(MatHermitianTranspose(A, MAT_INITIAL_MATRIX, &h->made.m[k])); break;
  default: PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &h->made.m[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* also of sizes that do not fit; and once more after the operands have other values */
static PetscErrorCode Product(Hunt *h, int k, Mat A)
{
  Mat  Q = h->q->m[k], *C = &h->made.m[k];
  char again = (char)(h->r[1] % 3 == 0);

  PetscFunctionBeginUser;
  for (MatReuse reuse = MAT_INITIAL_MATRIX;; reuse = MAT_REUSE_MATRIX) {
    switch (h->r[0] % 6) {
    case 0: PetscCall(MatMatMult(A, Q, reuse, PETSC_DEFAULT, C)); break;
    case 1: PetscCall(MatTransposeMatMult(A, Q, reuse, PETSC_DEFAULT, C)); break;
    case 2: /* MATAIJ does not look whether the inner matrix is square, and reads what is not there */
      if (A->rmap->N != A->cmap->N)
        PetscCall(MatMatMult(A, Q, reuse, PETSC_DEFAULT, C));
      else
        PetscCall(MatPtAP(A, Q, reuse, PETSC_DEFAULT, C));
      break;
    case 3: PetscCall(MatMatMatMult(A, Q, A, reuse, PETSC_DEFAULT, C)); break;
    case 4: PetscCall(MatMatTransposeMult(A, Q, reuse, PETSC_DEFAULT, C)); break;
    default: PetscCall(MatRARt(A, Q, reuse, PETSC_DEFAULT, C));
    }
    if (reuse == MAT_REUSE_MATRIX || !again) break;
    if (h->r[2] % 2) PetscCall(MatTestUse(*C));
    PetscCall(MatScale(h->r[2] % 3 ? A : Q, 0.5));
  }
  h->made.product = 1 + h->r[0] % 6;
  if (h->made.product == 3 && A->rmap->N != A->cmap->N) h->made.product = 1;
  if (h->r[3] % 3) PetscFunctionReturn(PETSC_SUCCESS);
  h->made.product = 0;
  PetscCall(MatProductClear(*C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Hunt *h, int k, Mat A)
{
  PetscInt      first, last, n = h->r[0] % 7, *idx;
  unsigned long state = (unsigned long)h->r[1];
  IS            is[2];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  for (int q = 0; q < 2; q++) {
    PetscInt f = q ? first : h->start, l = q ? last : h->end;

    if (h->r[2] % 3 == 0) {
      PetscCall(ISCreateStride(PETSC_COMM_WORLD, l - f, f, 1, &is[q]));
      continue;
    }
    if (l == f) n = 0;
    PetscCall(PetscMalloc1(n, &idx));
    for (PetscInt e = 0; e < n; e++) idx[e] = f + (q == 0 && h->r[2] % 3 == 1 ? Next(&state, l - f) : (e + (Size > 1 ? 0 : h->r[3])) % PetscMax(l - f, 1));
    /* columns are not repeated; in another order only on one process, see the case parts of undocumented_results */
    if (q && n > l - f) n = l - f;
    PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n, idx, PETSC_OWN_POINTER, &is[q]));
  }
  if (h->r[4] % 3 == 0 && Size == 1) {
    Mat *sub;

    PetscCall(MatCreateSubMatrices(A, 1, &is[0], &is[1], MAT_INITIAL_MATRIX, &sub));
    if (h->r[5] % 2) {
      PetscCall(MatTestUse(sub[0]));
      PetscCall(MatScale(A, 2.0));
      PetscCall(MatCreateSubMatrices(A, 1, &is[0], &is[1], MAT_REUSE_MATRIX, &sub));
    }
    PetscCall(MatDuplicate(sub[0], MAT_COPY_VALUES, &h->made.m[k]));
    PetscCall(MatDestroySubMatrices(1, &sub));
  } else {
    PetscCall(MatCreateSubMatrix(A, is[0], is[1], MAT_INITIAL_MATRIX, &h->made.m[k]));
    if (h->r[5] % 2) {
      PetscCall(MatTestUse(h->made.m[k]));
      PetscCall(MatScale(A, 2.0));
      if (h->r[5] % 3) PetscCall(MatScale(A, 2.0));
      PetscCall(MatCreateSubMatrix(A, is[0], is[1], MAT_REUSE_MATRIX, &h->made.m[k]));
    }
  }
  for (int q = 0; q < 2; q++) PetscCall(ISDestroy(&is[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permute(Hunt *h, int k, Mat A)
{
  PetscInt first, last, *p, *c;
  IS       rows, columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  PetscCall(PetscMalloc2(h->end - h->start, &p, last - first, &c));
  for (PetscInt q = 0; q < h->end - h->start; q++) p[q] = h->end - 1 - q;
  for (PetscInt q = 0; q < last - first; q++) c[q] = first + (q + 1) % (last - first);
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, h->end - h->start, p, PETSC_COPY_VALUES, &rows));
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, last - first, c, PETSC_COPY_VALUES, &columns));
  MatTestBoth(ISSetPermutation, rows, columns);
  PetscCall(MatPermute(A, rows, columns, &h->made.m[k]));
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscCall(PetscFree2(p, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* There and back. MATAIJ goes to the other type, too, or stays where the other is the one of which the other side
   is made. */
static PetscErrorCode Convert(Hunt *h, int k, Mat A)
{
  const char *const types[] = {MATAIJPERM, MATAIJSELL, MATAIJCRL, MATBAIJ, MATDENSE, MATSELL, MATMAIJ};
  const char       *type    = types[h->r[0] % 7];
  PetscInt          bs;
  Mat               B;

  PetscFunctionBeginUser;
  PetscCall(MatGetBlockSize(A, &bs));
#if PETSC_VERSION_LT(3, 20, 0)
  if (Size > 1 && !strcmp(type, MATSELL)) type = MATDENSE; /* crashes: a case of undocumented_results */
#endif
  /* a block size that nobody set is -1, by which MATAIJ multiplies; vectors of the layout may set it meanwhile */
  if (Size > 1) PetscCall(MatSetBlockSize(A, bs));
  /* MATAIJ waits for ever */
  if (Size > 1 && (!strcmp(type, MATMAIJ) || h->M < Size || h->N < Size || h->M != h->N)) type = MATAIJPERM;
  if (!strcmp(type, MATAIJCRL) && (h->M == 0 || h->N == 0)) type = MATAIJPERM;
  switch (h->r[1] % 5) {
  case 0: /* ours to MATAIJ and back */
    PetscCall(Side(0));
    if (k) PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &h->p->m[k]));
    PetscCall(MatScale(h->p->m[k], 2.0));
    if (k) PetscCall(MatConvert(h->p->m[k], Ours, MAT_INPLACE_MATRIX, &h->p->m[k]));
    PetscCall(NotSymmetric(h->p->m[k])); /* what is passed on by a conversion, and not by none */
    h->replaced = PETSC_TRUE;
    break;
  case 1:
    PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &h->p->m[k]));
    PetscCall(MatScale(h->p->m[k], 0.5));
    PetscCall(MatConvert(h->p->m[k], OurType(k), MAT_INPLACE_MATRIX, &h->p->m[k]));
    h->replaced = PETSC_TRUE;
    break;
  case 2:
    PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatConvert(B, OurType(k), MAT_INITIAL_MATRIX, &h->made.m[k]));
    PetscCall(MatDestroy(&B));
    break;
  case 3: /* and again */
    PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatConvert(B, OurType(k), MAT_INITIAL_MATRIX, &h->made.m[k]));
    if (h->r[2] % 2) PetscCall(MatTestUse(h->made.m[k]));
    PetscCall(MatScale(B, 2.0));
    PetscCall(MatConvert(B, OurType(k), MAT_REUSE_MATRIX, &h->made.m[k]));
    PetscCall(MatDestroy(&B));
    break;
  default: { /* as MATAIJ and again */
    Mat D;

    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &D));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatConvert(A, MATAIJ, MAT_REUSE_MATRIX, &D));
    if (k) PetscCall(MatConvert(D, OurType(k), MAT_INPLACE_MATRIX, &D));
    PetscCall(NotSymmetric(D));
    h->made.m[k] = D;
  }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* sums that cancel are zero in one order of the terms, and a rounding error in another */
static PetscErrorCode DropRounding(Mat F)
{
  PetscScalar *a;
  PetscReal    norm;
  PetscInt     lda;

  PetscFunctionBeginUser;
  PetscCall(MatNorm(F, NORM_FROBENIUS, &norm));
  PetscCall(MatDenseGetLDA(F, &lda));
  PetscCall(MatDenseGetArray(F, &a));
  for (PetscInt c = 0; c < F->cmap->N; c++)
    for (PetscInt r = 0; r < F->rmap->n; r++)
      if (PetscAbsScalar(a[r + (PetscCount)c * lda]) < 1e-13 * norm) a[r + (PetscCount)c * lda] = 0;
  PetscCall(MatDenseRestoreArray(F, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a product with a dense matrix, twice; its result becomes sparse */
static PetscErrorCode Dense(Hunt *h, int k, Mat A)
{
  PetscInt n;
  Mat      D, E, F;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, h->N, 5, NULL, &D));
  PetscCall(MatZeroEntries(D));
  PetscCall(MatShift(D, 1.5));
  PetscCall(MatMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
  PetscCall(MatTransposeMatMult(A, E, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &F));
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatMatMult(A, D, MAT_REUSE_MATRIX, PETSC_DEFAULT, &E));
  PetscCall(DropRounding(F));
  PetscCall(MatConvert(h->r[0] % 2 ? E : F, OurType(k), MAT_INITIAL_MATRIX, &h->made.m[k]));
  PetscCall(MatTestDestroy(&D, &E, &F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the contents of a duplicate, of another pair, or of a fresh one */
static PetscErrorCode Replace(Hunt *h, int k, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  if (h->r[0] % 3 == 0 && h->p->lineage == h->q->lineage)
    PetscCall(MatDuplicate(h->q->m[k], MAT_COPY_VALUES, &B));
  else if (h->r[0] % 3 == 1 && h->M && h->N)
    PetscCall(PairsMake((Kind)(h->r[1] % KINDS), (Pattern)(h->r[2] % PATTERNS), OurType(k), h->M, h->N, &B));
  else
    PetscCall(MatDuplicate(A, h->r[2] % 2 ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &B));
  if (h->r[3] % 2) PetscCall(MatScale(B, h->v));
  if (h->r[3] % 3) PetscCall(MatTestUse(B));
  if (h->r[4] % 2) {
    PetscCall(PairsWriteArrays(B, h->r[4] % 5));
    if (h->r[5] % 2) PetscCall(MatTestUse(B));
    PetscCall(PairsWriteArrays(B, h->r[5] % 5));
  }
  h->replaced = PETSC_TRUE;
  PetscCall(MatHeaderReplace(A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* written to a file, and loaded over another pair of this size, over this one, or as a new one */
static PetscErrorCode Load(Hunt *h, int k, Mat A)
{
  PetscViewer viewer;
  PetscInt    m, n, M, N;

  PetscFunctionBeginUser;
  if (!File[0]) {
    int id = (int)getpid();

    PetscCallMPI(MPI_Bcast(&id, 1, MPI_INT, 0, PETSC_COMM_WORLD));
    PetscCall(PetscSNPrintf(File, sizeof(File), "/tmp/hunt-%d.bin", id));
  }
  PetscCall(PetscViewerCreate(PETSC_COMM_WORLD, &viewer));
  PetscCall(PetscViewerSetType(viewer, PETSCVIEWERBINARY));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(PetscViewerFileSetMode(viewer, FILE_MODE_WRITE));
  PetscCall(PetscViewerFileSetName(viewer, File));
  PetscCall(MatView(h->r[0] % 3 ? A : h->q->m[k], viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(h->q->m[k], &M, &N));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, File, FILE_MODE_READ, &viewer));
  if (h->r[0] % 3 == 0 && (Size == 1 || (M == h->M && N == h->N)))
    PetscCall(MatLoad(A, viewer)); /* other sizes are an error */
  else if (h->r[0] % 3 == 1) {
    PetscCall(MatScale(A, 3.0));
    PetscCall(MatLoad(A, viewer));
  } else if (h->r[0] % 3 == 2) {
    PetscCall(MatTestCreate(PETSC_COMM_WORLD, OurType(k), m, n, h->M, h->N, &h->made.m[k]));
    PetscCall(MatLoad(h->made.m[k], viewer));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* differences of a linear function, with a color for each column */
static Mat            FunctionMatrix;
static PetscErrorCode Function(void *nothing, Vec x, Vec f, void *ctx)
{
  return MatMult(FunctionMatrix, x, f);
}

static PetscErrorCode Coloring(Hunt *h, int k, Mat A)
{
  ISColoringValue *value;
  ISColoring       colors;
  MatFDColoring    c;
  PetscInt         first, last;
  Vec              x;

  PetscFunctionBeginUser;
  PetscCall(Side(0)); /* the same sums for both: differences show their rounding */
  PetscCall(PairsMakeHost(MATAIJ, WIDE, h->M, h->N, &FunctionMatrix));
  PetscCall(Side(k));
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  PetscCall(PetscMalloc1(last - first, &value));
  for (PetscInt q = first; q < last; q++) value[q - first] = (ISColoringValue)q;
  PetscCall(ISColoringCreate(PETSC_COMM_WORLD, h->N, last - first, value, PETSC_OWN_POINTER, &colors));
  PetscCall(MatFDColoringCreate(A, colors, &c));
  PetscCall(MatFDColoringSetFunction(c, (void *)Function, NULL));
  PetscCall(MatFDColoringSetUp(A, colors, c));
  PetscCall(ISColoringDestroy(&colors));
  PetscCall(Beside(A, PETSC_FALSE, &x));
  PetscCall(MatFDColoringApply(A, c, x, NULL));
  if (h->r[0] % 2) PetscCall(MatTestUse(A));
  if (h->r[1] % 2) PetscCall(MatScale(A, 2.0));
  if (h->r[2] % 2) PetscCall(MatScale(A, 2.0));
  if (h->r[3] % 2) {
    PetscCall(MatScale(FunctionMatrix, 3.0));
    PetscCall(MatFDColoringApply(A, c, x, NULL));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(MatFDColoringDestroy(&c));
  PetscCall(MatDestroy(&FunctionMatrix));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* parts of a parallel matrix, and what is made of one process's. MatMPIAIJGetLocalMatCondensed() asks for the type by
   its name: docs/differs.md. */
static PetscErrorCode Local(Hunt *h, int k, Mat A)
{
  Mat B = NULL;

  PetscFunctionBeginUser;
  if (!h->parallel) {
    PetscCall(MatGetDiagonalBlock(A, &B));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &h->made.m[k]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatMPIAIJGetLocalMat(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatScale(A, 2.0));
  if (h->r[1] % 2) PetscCall(MatScale(A, 2.0));
  PetscCall(MatMPIAIJGetLocalMat(A, MAT_REUSE_MATRIX, &B));
  {
    PetscReal norm;

    PetscCall(MatNorm(B, NORM_FROBENIUS, &norm));
    Result(h, k, norm);
  }
  if (h->r[0] % 2) PetscCall(MatCreateMPIMatConcatenateSeqMat(PETSC_COMM_WORLD, B, A->cmap->n, MAT_INITIAL_MATRIX, &h->made.m[k]));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What must hold for an operation to be done: sizes that fit, and no fault of MATAIJ's own */

/* Do the operands' rows and columns that meet lie on the same processes? Else MATAIJ's error is one of some processes
   alone, for which the others wait. */
static PetscBool LayoutsFit(const Hunt *h)
{
  const Mat         A = h->p->m[0], B = h->q->m[0];
  const PetscLayout meet[4][2][2] = {
    {{A->cmap, B->rmap}, {A->cmap, B->rmap}},
    {{A->rmap, B->rmap}, {A->rmap, B->rmap}},
    {{A->cmap, B->rmap}, {A->rmap, B->rmap}},
    {{A->cmap, B->rmap}, {A->rmap, B->cmap}}
  };
  PetscBool fit = PETSC_TRUE;

  for (int k = 0; k < 2 && h->r[0] % 6 < 4; k++) {
    const PetscLayout *m = meet[h->r[0] % 6][k];

    fit = (PetscBool)(fit && m[0]->rstart == m[1]->rstart && m[0]->rend == m[1]->rend);
  }
  PetscCallAbort(PETSC_COMM_SELF, PairsAll(&fit));
  return fit;
}

/* MPIAIJ has no product with a transpose on the right, and that of SeqAIJ takes the block size of Q's columns for its
   rows'. SeqAIJ computes A^T A as A A where A was said to be symmetric: a claim that need not be true here, or any
   longer */
static PetscBool ProductFits(const Hunt *h)
{
  PetscInt  m, n, rbs, cbs, what = h->r[0] % 6;
  PetscBool square = (PetscBool)(h->M == h->N), known, symmetric;

  if (Size == 1 && h->r[4] % 12 == 0 && what < 3) return PETSC_TRUE;
  if (!h->M || !h->N) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, MatGetSize(h->q->m[0], &m, &n));
  if (!m || !n) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, MatGetBlockSizes(h->q->m[0], &rbs, &cbs));
  PetscCallAbort(PETSC_COMM_SELF, MatIsSymmetricKnown(h->p->m[0], &known, &symmetric));
  if (Size > 1 && !LayoutsFit(h)) return PETSC_FALSE;
  switch (what) {
  case 0: return (PetscBool)(h->N == m);
  case 1: return (PetscBool)(h->M == m && !(h->p == h->q && known && symmetric));
  case 2: return (PetscBool)(square && h->N == m);
  case 3: return (PetscBool)(h->N == m && n == h->M);
  case 4: return (PetscBool)(Size == 1 && h->N == n && rbs == cbs);
  default: return (PetscBool)(Size == 1 && square && h->N == n);
  }
}

/* MatFDColoringCreate() divides by what is zero for few entries; the function's matrix has PETSc's own layout */
static PetscBool ColoringFits(const Hunt *h)
{
  PetscInt  m = PETSC_DECIDE, n = PETSC_DECIDE, M = h->M, N = h->N;
  PetscBool some;
  MatInfo   info;

  PetscCallAbort(PETSC_COMM_SELF, MatGetInfo(h->p->m[0], MAT_LOCAL, &info));
  PetscCallAbort(PETSC_COMM_SELF, PetscSplitOwnership(PETSC_COMM_WORLD, &m, &M));
  PetscCallAbort(PETSC_COMM_SELF, PetscSplitOwnership(PETSC_COMM_WORLD, &n, &N));
  some = (PetscBool)(m == h->p->m[0]->rmap->n && n == h->p->m[0]->cmap->n && M > 1 && N > 1 && info.nz_used >= 2 * (PetscLogDouble)(h->end - h->start));
  PetscCallAbort(PETSC_COMM_SELF, PairsAll(&some));
  return some;
}

/* on several processes MATAIJ may wait for ever for parts of rectangular ones */
static PetscBool SubMatrixFits(const Hunt *h)
{
  return (PetscBool)(h->M && h->N && (Size == 1 || h->M == h->N));
}

static const Operation Makes[] = {
  {"duplicate", Duplicate, NULL,          KEEPS   },
  {"transpose", Transpose, NULL,          PATTERN },
  {"product",   Product,   ProductFits,   KEEPS   },
  {"submatrix", SubMatrix, SubMatrixFits, KEEPS   },
  {"permute",   Permute,   NotEmpty,      KEEPS   },
  {"convert",   Convert,   NotEmpty,      PATTERN },
  {"dense",     Dense,     NotEmpty,      KEEPS   },
  {"replace",   Replace,   NULL,          PATTERN },
  {"load",      Load,      NotEmpty,      REPLACES},
  {"coloring",  Coloring,  ColoringFits,  KEEPS   },
  {"local",     Local,     NotEmpty,      KEEPS   },
};

#endif
