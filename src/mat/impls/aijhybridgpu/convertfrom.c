/*
  Conversions from types that are not of the AIJ family (dense, BAIJ, SBAIJ, MAIJ, nest, IS, shells, ...).

  PETSc composes those to AIJ under the names of its own types, and where MatConvert() finds none it goes entry by
  entry. Before that it asks ops->convertfrom of an empty matrix of the wanted type. Ours converts to the parent's type
  of the same place in the family, by whatever way PETSc has for that, and then gives the result our operations, in
  place.
*/
#include "family.h"

/* PETSc's converters write a matrix that is used again as one of the parent's, some past the operations, and its
   pattern too: its arrays have to be the parent's own */
static PetscErrorCode HybConvertInto(Mat A, MatType type, Mat *B)
{
  Mat            blocks[2] = {NULL, NULL};
  HybMPIInPlace  w;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybMPIInPlaceBegin(*B, &w);
  if (!ierr) ierr = HybMPIInPlaceBlocks(*B, blocks);
  for (int k = 0; k < 2 && !ierr; k++)
    if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) ierr = MatSeqAIJHybridGPUDisown(blocks[k]);
  PetscCall(HybAgree(PetscObjectComm((PetscObject)*B), ierr, "The conversion of a matrix"));
  HybCallBoth(HybConvertByPETSc(A, type, MAT_REUSE_MATRIX, B), HybMPIInPlaceEnd(*B, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, of whatever type of the AIJ family PETSc has made, becomes one of ours; fresh: nobody else has seen its arrays */
static PetscErrorCode HybConvertResult(Mat *B, PetscBool fresh)
{
  PetscBool seq, mpi, flg;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*B, &flg, MATSEQAIJHYBRIDGPU, MATMPIAIJHYBRIDGPU, ""));
  if (flg) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)*B, MATSEQAIJ, &seq));
  PetscCall(PetscObjectTypeCompare((PetscObject)*B, MATMPIAIJ, &mpi));
  if (seq)
    PetscCall(MatConvert_SeqAIJ_SeqAIJHybridGPU(*B, MATSEQAIJHYBRIDGPU, MAT_INPLACE_MATRIX, B));
  else if (mpi)
    PetscCall(MatConvert_MPIAIJ_MPIAIJHybridGPU(*B, MATMPIAIJHYBRIDGPU, MAT_INPLACE_MATRIX, B));
  else { /* what -mat_seqaij_type names */
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)*B, &flg, MATSEQAIJ, MATMPIAIJ, ""));
    if (flg) PetscCall(HybConvertByPETSc(*B, MATAIJHYBRIDGPU, MAT_INPLACE_MATRIX, B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (fresh && seq) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatSeqAIJHybridGPUGetData(*B, &hyb));
    hyb->lentarrays = PETSC_FALSE;
  } else if (fresh) {
    Mat_MPIAIJHybridGPU *hyb = NULL;

    PetscCall(MatMPIAIJHybridGPUGetData(*B, &hyb));
    hyb->lentarrays = PETSC_FALSE;
    if ((*B)->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(*B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of A in the matrix that is used again, as PETSc does it. From sequential SBAIJ of blocks it does not:
   it writes row offsets of blocks where those of entries are. */
static PetscErrorCode HybConvertAgain(Mat A, MatType type, Mat *B)
{
  PetscBool sbaij;
  Mat       T;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQSBAIJ, &sbaij));
  if (sbaij && A->rmap->bs > 1) {
    PetscCall(HybConvertByPETSc(A, type, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatCopy(T, *B, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&T));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybConvertInto(A, type, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the way from the parent's, and to the sequential type from those derived from it */
static HybConverter HybConverterFromFamily(Mat A, MatType type)
{
  const char *from = ((PetscObject)A)->type_name;

  if (!strcmp(from, MATMPIAIJ) && strcmp(type, MATSEQAIJHYBRIDGPU)) return MatConvert_MPIAIJ_MPIAIJHybridGPU;
  if (strcmp(type, MATSEQAIJHYBRIDGPU) && strcmp(type, MATAIJHYBRIDGPU)) return NULL;
  return strcmp(from, MATSEQAIJ) ? HybConverterBack(from) : MatConvert_SeqAIJ_SeqAIJHybridGPU;
}

PetscErrorCode MatConvertFrom_AIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  HybConverter   family = HybConverterFromFamily(A, type);
  char           parent[64], *end;
  PetscErrorCode ierr;
  PetscBool      same = PETSC_TRUE;

  PetscFunctionBegin;
  /* on one process the values may go into a sequential matrix */
  if (reuse == MAT_REUSE_MATRIX && family == MatConvert_MPIAIJ_MPIAIJHybridGPU) PetscCall(PetscObjectTypeCompare((PetscObject)*newmat, MATMPIAIJHYBRIDGPU, &same));
  if (!same) family = NULL;
  if (family) {
    PetscCall((*family)(A, type, reuse, newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* PETSc has no way to these types but a new matrix, entry by entry */
  if (reuse == MAT_REUSE_MATRIX && HybMPITypeIsDerived(((PetscObject)A)->type_name)) {
    PetscCall(HybConvertCopy(A, *newmat, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* the caller's name may be that of an object which is replaced */
  PetscCall(PetscStrncpy(parent, type, sizeof(parent)));
  PetscCall(PetscStrrstr(parent, "hybridgpu", &end));
  PetscCheck(end, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "%s is not a type of this library", type);
  *end = 0;
  if (reuse == MAT_REUSE_MATRIX)
    PetscCall(HybConvertAgain(A, parent, newmat));
  else
    PetscCall(HybConvertByPETSc(A, parent, reuse, newmat));
  ierr = HybConvertResult(newmat, (PetscBool)(reuse == MAT_INITIAL_MATRIX));
  if (ierr && reuse == MAT_INITIAL_MATRIX) (void)MatDestroy(newmat);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
