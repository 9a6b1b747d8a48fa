/*
  A parallel matrix made of blocks that are there: what the base class keeps beside them, and the blocks' contents.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

/* Not collective: C's blocks become empty ones of the type, with C's rows and as many columns as they have */
static PetscErrorCode HybFrameEmptyBlocks(Mat C, const PetscObjectState was[2])
{
  Mat             block[2], empty;
  const PetscInt *garray;
  PetscErrorCode  ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  for (int k = 0; k < 2 && !ierr; k++) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &empty));
    ierr = MatSetSizes(empty, C->rmap->n, block[k]->cmap->n, C->rmap->n, block[k]->cmap->n);
    if (!ierr) ierr = MatSetType(empty, MATSEQAIJHYBRIDGPU);
    /* adoption counts on from there: to what the parent's have that are new, else the sum never comes to a former
       pattern's number */
    empty->nonzerostate = empty->ass_nonzerostate = was[k] ? was[k] : block[k]->nonzerostate - 1;
    if (!ierr) ierr = MatHeaderReplace(block[k], &empty);
    if (ierr) (void)MatDestroy(&empty);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  C's data become those of a parallel matrix with these columns of others. What the base class keeps beside the blocks
  (garray, the scatter) is of its own making: a throw-away MATMPIAIJ is made whose processes have one row each, with all
  these columns, and C takes over its data. The blocks get their rows with their contents.
*/
PetscErrorCode MatMPIAIJHybridGPUSetFrame(Mat C, PetscInt ncols, const PetscInt *garray)
{
  const PetscInt       m    = ncols > 0;
  PetscInt             i[2] = {0, 0}, oi[2], none = 0, *oj;
  PetscScalar          nothing = 0, *oa;
  Mat_MPIAIJHybridGPU *hyb     = NULL;
  HybComm              comm;
  Mat                  T;
  void                *data;
  Mat                  block[2];
  const PetscInt      *old;
  PetscObjectState     was[2] = {0, 0};
  PetscErrorCode       ierr, later;

  PetscFunctionBegin;
  PetscCall(HybCommGet(PetscObjectComm((PetscObject)C), &comm)); /* there is one: it is looked up */
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &old));
  for (int k = 0; k < 2; k++)
    if (block[k]) was[k] = block[k]->nonzerostate;
  ierr  = PetscMalloc2(ncols + 1, &oj, ncols + 1, &oa);
  later = HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix");
  if (later && !ierr) (void)PetscFree2(oj, oa);
  if (later) (void)HybCommRestore(&comm);
  PetscCall(later);
  PetscCall(PetscArraycpy(oj, garray, ncols));
  PetscCall(PetscArrayzero(oa, ncols + 1));
  oi[0] = 0;
  oi[1] = ncols;
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)C), m, C->cmap->n, PETSC_DETERMINE, C->cmap->N, i, &none, &nothing, oi, oj, oa, &T));
  PetscCall(MatSetOption(T, MAT_IGNORE_OFF_PROC_ENTRIES, hyb->ignoreoffproc));
  PetscCall(MatSetOption(T, MAT_ROW_ORIENTED, (PetscBool)!hyb->bycolumns));
  data    = C->data;
  C->data = T->data;
  T->data = data;
  PetscCall(MatDestroy(&T));
  ierr = HybFrameEmptyBlocks(C, was); /* which stop using these arrays before they go */
  PetscCall(PetscFree2(oj, oa));
  ierr = HybCommAgree(comm, ierr, "The blocks of a parallel matrix");
  PetscCall(HybCommRestore(&comm));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUAdoptBlocks(Mat C, const HybExec *x, HybArena out[2], const HybParCSR *csr)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  Mat                  block[2];
  const PetscInt      *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  for (int k = 0; k < 2; k++) {
    const HybCSR        *part = k ? &csr->O : &csr->D;
    Mat_SeqAIJHybridGPU *b    = NULL;

    PetscCall(MatSetBlockSizes(block[k], PetscAbs(C->rmap->bs), k ? 1 : PetscAbs(C->cmap->bs)));
    PetscCall(MatSeqAIJHybridGPUGetData(block[k], &b));
    b->choices = hyb->choices;
    b->block   = PETSC_TRUE;
    if (HybExecOnDevice(x))
      PetscCall(MatSeqAIJHybridGPUAdoptDevice(block[k], x, &out[k], part));
    else
      PetscCall(MatSeqAIJHybridGPUAdopt(block[k], &out[k], part));
    block[k]->num_ass = 1; /* as the parent's, which preallocates them */
    b->aspreallocated = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
