/* table_parts.h: the operations of hunt_table that make parts of a matrix, or others of it */
#ifndef UNTRIED_PARTS_H
#define UNTRIED_PARTS_H
#include "table.h"

/* rows that other processes have, columns of all; the columns in another order where that is done */
static PetscErrorCode Moved(Mat A, PetscBool columns, IS *is)
{
  PetscInt start, end, *idx, n = columns ? A->cmap->N : A->rmap->N;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc1(end - start, &idx));
  for (PetscInt r = start; r < end; r++) idx[r - start] = columns ? r : (n - 1 - r);
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, end - start, idx, PETSC_OWN_POINTER, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrixMoved(Hunt *h, int k, Mat A)
{
  IS rows, columns;

  PetscFunctionBeginUser;
  PetscCall(Moved(A, PETSC_FALSE, &rows));
  PetscCall(Moved(A, PETSC_TRUE, &columns));
  PetscCall(MatCreateSubMatrix(A, rows, columns, REUSE, &h->made.m[k]));
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* every second row of all processes on the first one alone, and as many columns */
static PetscErrorCode SubMatrixGathered(Hunt *h, int k, Mat A)
{
  const PetscMPIInt rank = MatTestRank();
  IS                rows;

  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, rank ? 0 : A->rmap->N / 2, 0, 2, &rows));
  PetscCall(MatCreateSubMatrix(A, rows, rows, REUSE, &h->made.m[k]));
  PetscCall(ISDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* own rows, all columns */
static PetscErrorCode SubMatrixAll(Hunt *h, int k, Mat A)
{
  IS rows;

  PetscFunctionBeginUser;
  PetscCall(OwnRows(A, PETSC_COMM_WORLD, 1, &rows));
  PetscCall(MatCreateSubMatrix(A, rows, NULL, REUSE, &h->made.m[k]));
  PetscCall(ISDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* two sequential parts of each process, with others' rows; again into the same */
static PetscErrorCode SubMatrices(Hunt *h, int k, Mat A)
{
  const PetscMPIInt rank = MatTestRank();
  IS                is[2], columns[2];
  Mat              *sub;

  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, A->rmap->N / 2, rank % 2, 2, &is[0]));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, A->rmap->N, 0, 1, &is[1]));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, A->cmap->N / 3, rank, 3, &columns[0]));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, A->cmap->N, 0, 1, &columns[1]));
  PetscCall(MatCreateSubMatrices(A, 2, is, columns, MAT_INITIAL_MATRIX, &sub));
  for (int again = 0; again < 2; again++) {
    for (int q = 0; q < 2; q++) PetscCall(NoteMat(h, k, sub[q]));
    if (again) break;
    PetscCall(OtherValues(A, 0.75));
    PetscCall(MatCreateSubMatrices(A, 2, is, columns, MAT_REUSE_MATRIX, &sub));
  }
  PetscCall(MatScale(sub[1], 3.0));
  PetscCall(NoteMat(h, k, sub[1]));
  PetscCall(MatDestroySubMatrices(2, &sub));
  for (int q = 0; q < 2; q++) PetscCall(MatTestDestroy(&is[q], &columns[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one part of all processes, and one of each alone */
static PetscErrorCode SubMatricesMPI(Hunt *h, int k, Mat A)
{
  IS   rows;
  Mat *sub;

  PetscFunctionBeginUser;
  for (int self = 0; self < 2; self++) {
    PetscCall(OwnRows(A, self ? PETSC_COMM_SELF : PETSC_COMM_WORLD, 2, &rows));
    PetscCall(MatCreateSubMatricesMPI(A, 1, &rows, &rows, MAT_INITIAL_MATRIX, &sub));
    PetscCall(NoteMat(h, k, sub[0]));
    PetscCall(OtherValues(A, 0.25));
    PetscCall(MatCreateSubMatricesMPI(A, 1, &rows, &rows, MAT_REUSE_MATRIX, &sub));
    PetscCall(NoteMat(h, k, sub[0]));
    PetscCall(MatDestroySubMatrices(1, &sub));
    PetscCall(ISDestroy(&rows));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MultiProcBlock(Hunt *h, int k, Mat A)
{
  const PetscMPIInt rank = MatTestRank();
  MPI_Comm          sub;
  Mat               B;

  PetscFunctionBeginUser;
  for (int way = 0; way < 2; way++) { /* each alone, and the first beside the others */
    PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, way ? rank > 0 : rank, rank, &sub));
    PetscCall(MatGetMultiProcBlock(A, sub, MAT_INITIAL_MATRIX, &B));
    PetscCall(NoteMat(h, k, B));
    PetscCall(OtherValues(A, 0.75));
    PetscCall(MatGetMultiProcBlock(A, sub, MAT_REUSE_MATRIX, &B));
    PetscCall(NoteMat(h, k, B));
    PetscCall(MatDestroy(&B));
    PetscCallMPI(MPI_Comm_free(&sub));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Redundant(Hunt *h, int k, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatCreateRedundantMatrix(A, MatTestSize(), MPI_COMM_NULL, MAT_INITIAL_MATRIX, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(OtherValues(A, 0.75));
  PetscCall(MatCreateRedundantMatrix(A, MatTestSize(), MPI_COMM_NULL, MAT_REUSE_MATRIX, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SequentialStructure(Hunt *h, int k, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCheck(MatTestSize() > 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(MatGetSeqNonzeroStructure(A, &B));
  Note(h, k, (PetscReal)B->rmap->n);
  PetscCall(MatDestroySeqNonzeroStructure(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LocalSubMatrix(Hunt *h, int k, Mat A)
{
  IS          is;
  Mat         B;
  PetscInt    r = 0, c = 1;
  PetscScalar v = 3.5;

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Mapping(A));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 3, 1, 1, &is));
  PetscCall(MatGetLocalSubMatrix(A, is, is, &B));
  PetscCall(MatSetValuesLocal(B, 1, &r, 1, &c, &v, ADD_VALUES));
  PetscCall(MatRestoreLocalSubMatrix(A, is, is, &B));
  PetscCall(MatTestAssemble(A));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubVirtual(Hunt *h, int k, Mat A)
{
  IS  rows;
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(OwnRows(A, PETSC_COMM_WORLD, 2, &rows));
  PetscCall(MatCreateSubMatrixVirtual(A, rows, rows, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatScale(A, 2.0));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatTestDestroy(&B, &rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Schur(Hunt *h, int k, Mat A)
{
  PetscInt start, end, half;
  IS       is[2];
  Mat      S = NULL;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  half = (end - start) / 2;
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, half, start, 1, &is[0]));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, end - start - half, start + half, 1, &is[1]));
  for (int way = 0; way < 2; way++) { /* MATAIJ does not survive the use of the first one's parts again */
    PetscCall(MatDestroy(&h->made.m[k]));
    PetscCall(MatGetSchurComplement(A, is[0], is[0], is[1], is[1], MAT_INITIAL_MATRIX, &S, way ? MAT_SCHUR_COMPLEMENT_AINV_LUMP : MAT_SCHUR_COMPLEMENT_AINV_DIAG, MAT_INITIAL_MATRIX, &h->made.m[k]));
    PetscCall(NoteMat(h, k, h->made.m[k]));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatDestroy(&S));
  }
  for (int q = 0; q < 2; q++) PetscCall(ISDestroy(&is[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComputeOperator(Hunt *h, int k, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatComputeOperator(A, MATDENSE, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatComputeOperatorTranspose(A, MATAIJ, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatComputeOperator(A, k ? "aijhybridgpu" : MATAIJ, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a pattern without values */
static PetscErrorCode TransposePattern(Hunt *h, int k, Mat A)
{
  const PetscInt *ia, *ja;
  PetscInt        n;
  PetscBool       done;
  Mat             B;

  PetscFunctionBeginUser;
  PetscCall(MatTransposeSymbolic(A, &B));
  Note(h, k, (PetscReal)B->rmap->N);
  Note(h, k, (PetscReal)B->cmap->n);
  if (MatTestSize() == 1) {
    PetscCall(MatGetRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
    for (PetscInt q = 0; q < ia[n]; q++) Note(h, k, (PetscReal)ja[q]);
    PetscCall(MatRestoreRowIJ(B, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  }
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* parts of a parallel matrix by their functions for MPIAIJ */
static PetscErrorCode Locals(Hunt *h, int k, Mat A)
{
  Mat        B = NULL, C = NULL;
  IS         glob, rows = NULL, columns = NULL;
  PetscCount n;

  PetscFunctionBeginUser;
  PetscCheck(MatTestSize() > 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(MatMPIAIJGetNumberNonzeros(A, &n));
  Note(h, k, (PetscReal)n);
  PetscCall(MatMPIAIJGetLocalMatMerge(A, MAT_INITIAL_MATRIX, &glob, &B));
  PetscCall(NoteIS(h, k, glob));
  PetscCall(NoteMat(h, k, B));
  PetscCall(OtherValues(A, 0.75));
  PetscCall(MatMPIAIJGetLocalMatMerge(A, MAT_REUSE_MATRIX, NULL, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatTestDestroy(&B, &glob));
  PetscCall(MatGetBrowsOfAcols(A, A, MAT_INITIAL_MATRIX, &rows, &columns, &C));
  PetscCall(NoteIS(h, k, rows));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatGetBrowsOfAcols(A, A, MAT_REUSE_MATRIX, &rows, &columns, &C));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatTestDestroy(&C, &rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a sequential matrix of each process: their sum, and their rows below each other */
static PetscErrorCode SumOfSequential(Hunt *h, int k, Mat A)
{
  Mat B, C;

  PetscFunctionBeginUser;
  PetscCheck(MatTestSize() > 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(MatCreateRedundantMatrix(A, MatTestSize(), MPI_COMM_NULL, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatCreateMPIAIJSumSeqAIJ(PETSC_COMM_WORLD, B, PETSC_DECIDE, PETSC_DECIDE, MAT_INITIAL_MATRIX, &C));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatScale(B, 0.75));
  PetscCall(MatCreateMPIAIJSumSeqAIJ(PETSC_COMM_WORLD, B, PETSC_DECIDE, PETSC_DECIDE, MAT_REUSE_MATRIX, &C));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatDestroy(&C));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(PETSC_COMM_WORLD, B, PETSC_DECIDE, MAT_INITIAL_MATRIX, &C));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(PETSC_COMM_WORLD, B, PETSC_DECIDE, MAT_REUSE_MATRIX, &C));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatTestDestroy(&C, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a block, or its product with the identity, written once more */
static PetscErrorCode BlockAlone(Mat block, PetscBool product, PetscBool values, Mat *own)
{
  Mat one;

  PetscFunctionBeginUser;
  if (product) {
    PetscCall(MatTestCreate(PETSC_COMM_SELF, ((PetscObject)block)->type_name, block->cmap->n, block->cmap->n, block->cmap->n, block->cmap->n, &one));
    PetscCall(MatSeqAIJSetPreallocation(one, 1, NULL));
    for (PetscInt r = 0; r < block->cmap->n; r++) PetscCall(MatSetValue(one, r, r, 1.0, INSERT_VALUES));
    PetscCall(MatTestAssemble(one));
    PetscCall(MatMatMult(block, one, MAT_INITIAL_MATRIX, PETSC_DEFAULT, own));
    PetscCall(MatDestroy(&one));
  } else
    PetscCall(MatDuplicate(block, MAT_COPY_VALUES, own));
  if (values) {
    PetscCall(PairsWriteArrays(*own, 3));
    PetscCall(MatScale(*own, 2.0));
    PetscCall(MatTestUse(*own));
    PetscCall(MatScale(*own, 2.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OfBlocksMade(Hunt *h, int k, Mat A, PetscBool product, PetscBool values)
{
  Mat             a, b, own[2], C;
  const PetscInt *map;
  PetscInt       *copy;

  PetscFunctionBeginUser;
  PetscCheck(MatTestSize() > 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "none");
  PetscCall(MatMPIAIJGetSeqAIJ(A, &a, &b, &map));
  PetscCall(BlockAlone(a, product, values, &own[0]));
  PetscCall(BlockAlone(b, product, values, &own[1]));
  PetscCall(PetscMalloc1(b->cmap->n, &copy));
  PetscCall(PetscArraycpy(copy, map, b->cmap->n));
#if PETSC_VERSION_GE(3, 22, 0)
  PetscCall(MatCreateMPIAIJWithSeqAIJ(PETSC_COMM_WORLD, A->rmap->N, A->cmap->N, own[0], own[1], copy, &C));
#else
  PetscCall(MatCreateMPIAIJWithSeqAIJ(PETSC_COMM_WORLD, own[0], own[1], copy, &C));
  PetscCall(PetscFree(copy));
#endif
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatScale(C, 2.0));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatConvert(C, k ? "aijhybridgpu" : MATAIJ, MAT_INPLACE_MATRIX, &C));
  PetscCall(NoteMat(h, k, C));
  PetscCall(MatDestroy(&h->made.m[k]));
  h->made.m[k] = C;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a parallel matrix of sequential blocks that are ours: before 3.22 PETSc gives the second one's arrays to another */
WAY(OfBlocks, OfBlocksMade, PETSC_FALSE, PETSC_FALSE)
WAY(OfWritten, OfBlocksMade, PETSC_FALSE, PETSC_TRUE)
WAY(OfResults, OfBlocksMade, PETSC_TRUE, PETSC_FALSE)

static PetscErrorCode PermuteAcross(Hunt *h, int k, Mat A)
{
  PetscInt start, end, *idx, n = A->rmap->N;
  IS       is[2];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (int q = 0; q < 2; q++) {
    PetscCall(PetscMalloc1(end - start, &idx));
    /* 5 and 18 have no common factor */
    for (PetscInt r = start; r < end; r++) idx[r - start] = q ? (5 * r + 1) % n : n - 1 - r;
    PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, end - start, idx, PETSC_OWN_POINTER, &is[q]));
    PetscCall(ISSetPermutation(is[q]));
  }
  PetscCall(MatDestroy(&h->made.m[k]));
  PetscCall(MatPermute(A, is[0], is[1], &h->made.m[k]));
  for (int q = 0; q < 2; q++) PetscCall(ISDestroy(&is[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of matrices, their sum, a transpose and normal equations that are not formed */
static PetscErrorCode Composed(Hunt *h, int k, Mat A)
{
  Mat       parts[4] = {A, NULL, NULL, A}, B;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, parts, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&h->made.m[k]));
  PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &h->made.m[k]));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_REUSE_MATRIX, &h->made.m[k]));
  PetscCall(MatDestroy(&B));
  PetscCall(MatCreateComposite(PETSC_COMM_WORLD, 2, (Mat[]){A, A}, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatCompositeMerge(B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatNorm(B, NORM_FROBENIUS, &norm));
  Note(h, k, norm);
  PetscCall(MatDestroy(&B));
  PetscCall(MatCreateTranspose(A, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatCreateNormal(A, &B));
  PetscCall(NoteMat(h, k, B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
