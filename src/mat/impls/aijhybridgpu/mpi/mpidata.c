/*
  The private data of a parallel matrix: its blocks' type, the state of its pattern, its end.
*/
#include "mpi.h"
#include "../seq/seq.h"

PetscErrorCode MatMPIAIJHybridGPUGetData(Mat A, Mat_MPIAIJHybridGPU **data)
{
  PetscFunctionBegin;
  if (!A->spptr) {
    Mat_MPIAIJHybridGPU *hyb = NULL;

    PetscCall(PetscNew(&hyb));
    A->spptr = hyb;
    PetscCall(HybGlueReadChoices(&hyb->choices));
  }
  *data = (Mat_MPIAIJHybridGPU *)A->spptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUGetBlocks(Mat A, Mat block[2])
{
  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++)
    if (block[k] && !MatIsSeqAIJHybridGPU(block[k])) block[k] = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUEachBlock(Mat A, PetscErrorCode (*f)(Mat))
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetBlocks(A, block));
  for (int k = 0; k < 2; k++)
    if (block[k]) PetscCall((*f)(block[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective. C is not assembled until a numeric phase or the program makes it so, and its columns of others have
   the numbers of an assembled matrix: the parent's MatSetValues() looks for a column there, not by its number in C, of
   what was assembled. */
PetscErrorCode MatMPIAIJHybridGPUUnmade(Mat C)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  C->assembled     = PETSC_FALSE;
  C->was_assembled = C->preallocated;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  hyb->unmade = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The state of the pattern as the parent's MatAssemblyEnd() will set it: the sum of the blocks'. Else the first
   assembly would tell of another pattern. As HybAgree() besides. */
PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat C, PetscErrorCode before, const char *what)
{
  Mat        blocks[2];
  PetscInt64 sum[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &blocks[0], &blocks[1], NULL));
  sum[0] = (PetscInt64)(blocks[0]->nonzerostate + blocks[1]->nonzerostate);
  PetscCall(HybAgreeSum(PetscObjectComm((PetscObject)C), before, what, 1, sum));
  C->nonzerostate = C->ass_nonzerostate = (PetscObjectState)sum[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMPIHaloEmpty(HybMPIHalo *m)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  m->known[0] = m->known[1] = PETSC_FALSE;
  ierr                      = HybHaloDestroy(&m->halo);
  PetscCall(PetscFree(m->garray));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMPIHaloDestroy(HybMPIHalo *m)
{
  PetscFunctionBegin;
  HybCallBoth(HybMPIHaloEmpty(m), HybCommRestore(&m->comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent makes its blocks as MATSEQAIJ; off-diagonal columns are renumbered in place, and plans are keyed on their
   number too */
PetscErrorCode MatMPIAIJHybridGPUSetBlocks(Mat A)
{
  Mat                  blocks[2];
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  hyb->halo.setups++; /* also where one process fails below: all count alike */
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (PetscInt k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *block;

    if (!blocks[k]) continue;
    /* MatSetType() would make one more to ask for the way */
    if (!strcmp(((PetscObject)blocks[k])->type_name, MATSEQAIJ))
      PetscCall(MatConvert_SeqAIJ_SeqAIJHybridGPU(blocks[k], MATSEQAIJHYBRIDGPU, MAT_INPLACE_MATRIX, &blocks[k]));
    else
      PetscCall(MatSetType(blocks[k], MATSEQAIJHYBRIDGPU));
    PetscCall(MatSeqAIJHybridGPUGetData(blocks[k], &block));
    block->choices = hyb->choices;
    /* its blocks' arrays are the parent's own but after MatCreateMPIAIJWithSplitArrays() */
    block->lentarrays = hyb->lentarrays;
    block->block      = PETSC_TRUE;
#if defined(PETSC_HAVE_DEVICE)
    PetscCall(MatBindToCPU(blocks[k], A->boundtocpu));
#endif
  }
  HybRecordBlocks(A, blocks[0], blocks[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatDestroy_MPIAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  HybRecordGone(A);
  if (A->spptr) PetscCall(HybMPIHaloDestroy(&((Mat_MPIAIJHybridGPU *)A->spptr)->halo));
  PetscCall(PetscFree(A->spptr));
  /* as those of a sequential matrix */
  if (((PetscObject)A)->type_name && ((PetscObject)A)->refct > 0) PetscCall((*HybGlueState.compose)(A, PETSC_FALSE, PETSC_FALSE));
  PetscCall(HybComposeGone(A, HybGlueState.mpi.destroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}
