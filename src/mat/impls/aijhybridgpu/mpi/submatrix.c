/*
  Submatrices of the parallel type.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

/*
  Submatrices. Before 3.26 the parent takes the arrays of the blocks' own ones for those of a matrix that it makes, and
  frees them with it: they have to be AIJ's own. A result that is used again the parent writes past all functions.
*/
PetscErrorCode MatMPIAIJHybridGPUHostWrites(Mat B)
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscBool       mpi;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUHostWrites(B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIAIJHYBRIDGPU, &mpi));
  if (!mpi || !B->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(B, &blocks[0], &blocks[1], &garray));
  for (int k = 0; k < 2; k++)
    if (blocks[k]) PetscCall(MatSeqAIJHybridGPUHostWrites(blocks[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Submatrices with columns in another order. Older PETSc numbers the columns of the off-diagonal block anew and leaves
  its rows in the old order; newer PETSc leaves garray in the old order. Products are of rows and of garrays in order:
  the first is sorted in its place, the second is made anew, and once more when it is used again.
*/
#define HYB_MADE_ANEW "MatCreateSubMatrix_AIJHybridGPU_Anew"

/* T's rows to B, which has their pattern or room for it */
static PetscErrorCode MatMPIAIJHybridGPUCopyRows(Mat T, Mat B)
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
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUMakeAnew(Mat *B)
{
  Mat             T = *B, S, blocks[2];
  const PetscInt *garray, *i[2], *j[2];
  PetscInt        m, *length[2];
  PetscBool       done;
  PetscContainer  mark;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(T, &blocks[0], &blocks[1], &garray));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGetRowIJ(blocks[k], 0, PETSC_FALSE, PETSC_FALSE, &m, &i[k], &j[k], &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A block of %" PetscInt_FMT " rows lends no pattern", blocks[k]->rmap->n);
    PetscCall(PetscMalloc1(m, &length[k]));
    for (PetscInt r = 0; r < m; r++) length[k][r] = i[k][r + 1] - i[k][r];
    PetscCall(MatRestoreRowIJ(blocks[k], 0, PETSC_FALSE, PETSC_FALSE, &m, &i[k], &j[k], &done));
  }
  PetscCall(MatCreate(PetscObjectComm((PetscObject)T), &S));
  PetscCall(MatSetSizes(S, T->rmap->n, T->cmap->n, T->rmap->N, T->cmap->N));
  PetscCall(MatSetBlockSizesFromMats(S, T, T));
  PetscCall(MatSetType(S, ((PetscObject)T)->type_name));
  PetscCall(MatMPIAIJSetPreallocation(S, 0, length[0], 0, length[1]));
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(length[k]));
  PetscCall(MatMPIAIJHybridGPUCopyRows(T, S));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &mark));
  PetscCall(PetscObjectCompose((PetscObject)S, HYB_MADE_ANEW, (PetscObject)mark));
  PetscCall(PetscContainerDestroy(&mark));
  PetscCall(MatDestroy(B));
  *B = S;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUSortColumns(Mat *B)
{
  Mat             blocks[2];
  const PetscInt *garray, *ai, *aj;
  PetscBool       mpi, sorted = PETSC_TRUE, done;
  PetscInt        m;
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
  PetscCall(MatGetRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The off-diagonal block of %" PetscInt_FMT " rows lends no pattern", blocks[1]->rmap->n);
  for (PetscInt r = 0; r < m && sorted; r++)
    if (ai[r + 1] > ai[r]) PetscCall(PetscSortedInt(ai[r + 1] - ai[r], aj + ai[r], &sorted));
  PetscCall(MatRestoreRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
  if (!sorted) {
    PetscScalar *a;

    PetscCall(MatSeqAIJGetArray(blocks[1], &a));
    PetscCall(MatGetRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
    for (PetscInt r = 0; r < m; r++)
      if (ai[r + 1] > ai[r]) PetscCall(PetscSortIntWithScalarArray(ai[r + 1] - ai[r], (PetscInt *)aj + ai[r], a + ai[r]));
    PetscCall(MatRestoreRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
    PetscCall(MatSeqAIJRestoreArray(blocks[1], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateSubMatrix_MPIAIJHybridGPU(Mat A, IS isrow, IS iscol, MatReuse reuse, Mat *B)
{
  Mat                  blocks[2];
  const PetscInt      *garray;
  Mat_SeqAIJHybridGPU *hyb[2] = {NULL, NULL};
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscObject anew = NULL;

    PetscCall(PetscObjectQuery((PetscObject)*B, HYB_MADE_ANEW, &anew));
    if (anew) {
      Mat T;

      PetscCall(MatCreateSubMatrix_MPIAIJHybridGPU(A, isrow, iscol, MAT_INITIAL_MATRIX, &T));
      PetscCall(MatMPIAIJHybridGPUCopyRows(T, *B));
      PetscCall(MatDestroy(&T));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(MatMPIAIJHybridGPUHostWrites(*B));
  }
  if (PETSC_VERSION_LT(3, 26, 0) && A->preallocated) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
    for (int k = 0; k < 2; k++)
      if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) PetscCall(MatSeqAIJHybridGPUGetData(blocks[k], &hyb[k]));
  }
  for (int k = 0; k < 2; k++)
    if (hyb[k]) hyb[k]->hostcopy = PETSC_TRUE;
  ierr = (*HybGlueState.mpi.createsubmatrix)(A, isrow, iscol, reuse, B);
  for (int k = 0; k < 2; k++)
    if (hyb[k]) hyb[k]->hostcopy = PETSC_FALSE;
  PetscCall(ierr);
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatMPIAIJHybridGPUSortColumns(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreateSubMatrices_MPIAIJHybridGPU(Mat A, PetscInt n, const IS isrow[], const IS iscol[], MatReuse reuse, Mat *B[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n && reuse == MAT_REUSE_MATRIX; k++) PetscCall(MatMPIAIJHybridGPUHostWrites((*B)[k]));
  PetscCall((*HybGlueState.mpi.createsubmatrices)(A, n, isrow, iscol, reuse, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
