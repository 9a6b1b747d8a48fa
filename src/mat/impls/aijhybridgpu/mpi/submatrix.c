/*
  Submatrices of the parallel type.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

/*
  Submatrices. Before 3.26 the parent takes the arrays of the blocks' own ones for those of a matrix that it makes, and
  frees them with it: they have to be AIJ's own. A result that is used again, parallel or sequential, the parent writes
  past all functions, its pattern too.
*/
PetscErrorCode HybMPIInPlaceBlocks(Mat B, Mat blocks[2])
{
  PetscBool mpi;

  PetscFunctionBegin;
  blocks[0] = B;
  blocks[1] = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIAIJHYBRIDGPU, &mpi));
  if (mpi && B->preallocated) PetscCall(MatMPIAIJGetSeqAIJ(B, &blocks[0], &blocks[1], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective */
PetscErrorCode HybMPIInPlaceBegin(Mat B, HybMPIInPlace *w)
{
  Mat blocks[2];

  PetscFunctionBegin;
  PetscCall(HybMPIInPlaceBlocks(B, blocks));
  for (int k = 0; k < 2; k++) PetscCall(HybInPlaceBegin(blocks[k], &w->block[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMPIInPlaceEnd(Mat B, const HybMPIInPlace *w)
{
  Mat            blocks[2];
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybMPIInPlaceBlocks(B, blocks));
  for (int k = 0; k < 2; k++)
    ierr = HybErrorFirst(ierr, HybInPlaceEnd(blocks[k], &w->block[k]));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Submatrices with columns in another order. Older PETSc numbers the columns of the off-diagonal block anew and leaves
  its rows in the old order; newer PETSc leaves garray in the old order. Products are of rows and of garrays in order:
  the first is sorted in its place, the second is made anew, and once more when it is used again.
*/
#define HYB_MADE_ANEW "MatCreateSubMatrix_AIJHybridGPU_Anew"

/* Not collective: T's rows to B, which has their pattern or room for it, and is not assembled then */
static PetscErrorCode HybMPICopyRowsHere(Mat T, Mat B)
{
  PetscFunctionBegin;
  for (PetscInt r = T->rmap->rstart; r < T->rmap->rend; r++) {
    const PetscInt    *columns;
    const PetscScalar *values;
    PetscInt           n;

    PetscCall(MatGetRow(T, r, &n, &columns, &values));
    PetscCall(MatSetValues(B, 1, &r, n, columns, values, INSERT_VALUES));
    PetscCall(MatRestoreRow(T, r, &n, &columns, &values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* before: an error of this process's, of which the others are told, as of one of its rows */
static PetscErrorCode MatMPIAIJHybridGPUCopyRows(Mat T, PetscErrorCode before, Mat B)
{
  PetscFunctionBegin;
  PetscCall(HybAgree(PetscObjectComm((PetscObject)B), before ? before : HybMPICopyRowsHere(T, B), "The rows of a submatrix"));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* S is preallocated with the lengths of T's rows */
static PetscErrorCode MatMPIAIJHybridGPURoomLike(Mat T, Mat S)
{
  Mat            blocks[2];
  PetscInt      *length[2] = {NULL, NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = MatMPIAIJGetSeqAIJ(T, &blocks[0], &blocks[1], NULL);
  for (int k = 0; k < 2 && !ierr; k++) {
    HybLent l;

    ierr = PetscMalloc1(blocks[k]->rmap->n, &length[k]);
    if (!ierr) ierr = HybLentGet(blocks[k], PETSC_FALSE, &l);
    if (ierr) break;
    for (PetscInt r = 0; r < l.csr.m; r++) length[k][r] = l.csr.i[r + 1] - l.csr.i[r];
    ierr = HybLentRestore(blocks[k], &l);
  }
  if (!ierr) ierr = MatMPIAIJSetPreallocation(S, 0, length[0], 0, length[1]);
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(length[k]));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUMakeAnew(Mat *B)
{
  Mat            T = *B, S;
  PetscContainer mark;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)T), &S));
  PetscCall(MatSetSizes(S, T->rmap->n, T->cmap->n, T->rmap->N, T->cmap->N));
  PetscCall(MatSetBlockSizesFromMats(S, T, T));
  PetscCall(MatSetType(S, ((PetscObject)T)->type_name));
  /* collective, and the preallocation finds them then: a process may have an error before it */
  PetscCall(PetscLayoutSetUp(S->rmap));
  PetscCall(PetscLayoutSetUp(S->cmap));
  ierr = MatMPIAIJHybridGPURoomLike(T, S);
  ierr = MatMPIAIJHybridGPUCopyRows(T, ierr, S);
  if (ierr) (void)MatDestroy(&S);
  PetscCall(ierr);
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &mark));
  PetscCall(PetscObjectCompose((PetscObject)S, HYB_MADE_ANEW, (PetscObject)mark));
  PetscCall(PetscContainerDestroy(&mark));
  PetscCall(MatDestroy(B));
  *B = S;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: are T and B of one pattern here? */
static PetscErrorCode HybMPISamePattern(Mat T, Mat B, PetscBool *same)
{
  Mat             t[2], b[2];
  const PetscInt *tcols, *bcols;
  PetscBool       own;

  PetscFunctionBegin;
  *same = PETSC_FALSE;
  PetscCall(MatMPIAIJGetSeqAIJ(T, &t[0], &t[1], &tcols));
  PetscCall(MatMPIAIJGetSeqAIJ(B, &b[0], &b[1], &bcols));
  own = (PetscBool)(t[1]->cmap->n == b[1]->cmap->n);
  if (own) PetscCall(PetscArraycmp(tcols, bcols, t[1]->cmap->n, &own));
  for (int k = 0; k < 2 && own; k++) {
    HybLent   lt, lb;
    PetscBool equal;

    PetscCall(HybLentGet(t[k], PETSC_FALSE, &lt));
    PetscCall(HybLentGet(b[k], PETSC_FALSE, &lb));
    PetscCall(PetscArraycmp(lt.csr.i, lb.csr.i, lt.csr.m + 1, &equal));
    if (equal) PetscCall(PetscArraycmp(lt.csr.j, lb.csr.j, lt.csr.nnz, &equal));
    own = equal;
    PetscCall(HybLentRestore(t[k], &lt));
    PetscCall(HybLentRestore(b[k], &lb));
  }
  *same = own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUSortColumns(Mat *B)
{
  Mat             blocks[2];
  const PetscInt *garray, *i;
  PetscScalar    *a;
  HybLent         l;
  PetscBool       mpi, sorted = PETSC_TRUE;
  int             own, any;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)*B, MATMPIAIJ, &mpi));
  if (!mpi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(*B, &blocks[0], &blocks[1], &garray));
  if (garray) PetscCall(PetscSortedInt(blocks[1]->cmap->n, garray, &sorted));
  own = !sorted;
  PetscCallMPI(MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)*B)));
  if (any) {
    PetscCall(MatMPIAIJHybridGPUMakeAnew(B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybLentGet(blocks[1], PETSC_FALSE, &l));
  i = l.csr.i;
  for (PetscInt r = 0; r < l.csr.m && sorted; r++)
    if (i[r + 1] > i[r]) PetscCall(PetscSortedInt(i[r + 1] - i[r], l.csr.j + i[r], &sorted));
  PetscCall(HybLentRestore(blocks[1], &l));
  if (sorted) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetArray(blocks[1], &a));
  PetscCall(HybLentGet(blocks[1], PETSC_FALSE, &l));
  i = l.csr.i;
  for (PetscInt r = 0; r < l.csr.m; r++)
    if (i[r + 1] > i[r]) PetscCall(PetscSortIntWithScalarArray(i[r + 1] - i[r], l.csr.j + i[r], a + i[r]));
  PetscCall(HybLentRestore(blocks[1], &l));
  PetscCall(MatSeqAIJRestoreArray(blocks[1], &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, which was made anew, is used again: it gets other rows where the submatrix has others now */
static PetscErrorCode MatMPIAIJHybridGPUAnewAgain(Mat A, IS isrow, IS iscol, Mat B)
{
  Mat            T;
  PetscBool      same = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreateSubMatrix_MPIAIJHybridGPU(A, isrow, iscol, MAT_INITIAL_MATRIX, &T));
  /* else it would have room here and not there */
  ierr = HybMPISamePattern(T, B, &same);
  ierr = HybAgreeAll(PetscObjectComm((PetscObject)B), ierr, "The pattern of a submatrix", &same);
  if (!ierr && !same) ierr = MatMPIAIJHybridGPURoomLike(T, B);
  HybCallBoth(MatMPIAIJHybridGPUCopyRows(T, ierr, B), MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateSubMatrix_MPIAIJHybridGPU(Mat A, IS isrow, IS iscol, MatReuse reuse, Mat *B)
{
  Mat                  blocks[2];
  Mat_SeqAIJHybridGPU *hyb[2] = {NULL, NULL};
  HybMPIInPlace        w;
  PetscErrorCode       ierr, later = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscObject anew = NULL;

    PetscCall(PetscObjectQuery((PetscObject)*B, HYB_MADE_ANEW, &anew));
    if (anew) {
      PetscCall(MatMPIAIJHybridGPUAnewAgain(A, isrow, iscol, *B));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(HybAgree(PetscObjectComm((PetscObject)A), HybMPIInPlaceBegin(*B, &w), "A submatrix that is used again"));
  }
  if (HYB_SUBMATRIX_TAKES && A->preallocated) {
    PetscCall(MatMPIAIJHybridGPUGetBlocks(A, blocks));
    for (int k = 0; k < 2; k++)
      if (blocks[k]) PetscCall(MatSeqAIJHybridGPUGetData(blocks[k], &hyb[k]));
  }
  for (int k = 0; k < 2; k++)
    if (hyb[k]) hyb[k]->hostcopy = PETSC_TRUE;
  ierr = (*HybGlueState.mpi.createsubmatrix)(A, isrow, iscol, reuse, B);
  for (int k = 0; k < 2; k++)
    if (hyb[k]) hyb[k]->hostcopy = PETSC_FALSE;
  if (reuse == MAT_REUSE_MATRIX) later = HybMPIInPlaceEnd(*B, &w);
  PetscCall(HybErrorFirst(ierr, later));
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatMPIAIJHybridGPUSortColumns(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef PetscErrorCode (*HybSubMatricesFn)(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);

static PetscErrorCode HybMPISubMatrices(HybSubMatricesFn parents, Mat A, PetscInt n, const IS isrow[], const IS iscol[], MatReuse reuse, Mat *B[])
{
  HybMPIInPlace *w    = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;
  PetscBool      began;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    ierr = PetscMalloc1(n, &w);
    for (PetscInt k = 0; k < n && !ierr; k++) ierr = HybMPIInPlaceBegin((*B)[k], &w[k]);
    ierr = HybAgree(PetscObjectComm((PetscObject)A), ierr, "Submatrices that are used again");
  }
  began = (PetscBool)!ierr;
  if (began) ierr = (*parents)(A, n, isrow, iscol, reuse, B);
  for (PetscInt k = 0; k < n && reuse == MAT_REUSE_MATRIX && began; k++)
    ierr = HybErrorFirst(ierr, HybMPIInPlaceEnd((*B)[k], &w[k]));
  PetscCall(PetscFree(w));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateSubMatrices_MPIAIJHybridGPU(Mat A, PetscInt n, const IS isrow[], const IS iscol[], MatReuse reuse, Mat *B[])
{
  return HybMPISubMatrices(HybGlueState.mpi.createsubmatrices, A, n, isrow, iscol, reuse, B);
}

/* The parent's calls its own function of the former past the matrix's, where no index set is of several processes */
PetscErrorCode MatCreateSubMatricesMPI_MPIAIJHybridGPU(Mat A, PetscInt n, const IS isrow[], const IS iscol[], MatReuse reuse, Mat *B[])
{
  return HybMPISubMatrices(HybGlueState.mpi.createsubmatricesmpi, A, n, isrow, iscol, reuse, B);
}
