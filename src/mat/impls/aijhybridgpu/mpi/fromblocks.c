/*
  A parallel matrix made of blocks that are there: what the base class keeps beside them, and the blocks' contents.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

/* Not collective: C's blocks become empty ones of the type, with C's rows and as many columns as they have */
static PetscErrorCode HybFromBlocksEmpty(Mat C, const PetscObjectState was[2])
{
  Mat            block[2], empty;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], NULL));
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
  A throw-away MATMPIAIJ with C's columns and these of others, whose processes have a row each, which no process has to
  be asked: for what the base class keeps beside the blocks. A process that has an error of its own meets the others
  before anything is sent.
*/
#if HYB_HAS_CREATE_GARRAY
static PetscErrorCode HybFromBlocksMakeOne(PetscInt n, Mat *block)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 1, n, 0, NULL, block));
  PetscCall(MatAssemblyBegin(*block, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*block, MAT_FINAL_ASSEMBLY));
  /* whatever -mat_seqaij_type says: T is a MATMPIAIJ */
  PetscCall(MatConvert(*block, MATSEQAIJ, MAT_INPLACE_MATRIX, block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks without entries, and the ghost columns' numbers given to PETSc: it does not look for them. With an error there
   is T on all processes or on none, unless PETSc's own creation of T fails on one alone. */
static PetscErrorCode HybFromBlocksMake(HybComm comm, PetscErrorCode before, Mat C, PetscInt ncols, const PetscInt *garray, void *lent[2], Mat *T)
{
  Mat            block[2] = {NULL, NULL}, made;
  PetscInt      *own      = NULL; /* T's */
  PetscSFNode   *remote   = NULL; /* its scatter's */
  PetscErrorCode ierr     = before;

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(ncols + 1, &own);
  if (!ierr) ierr = PetscMalloc1(ncols, &remote);
  if (!ierr) ierr = HybFromBlocksMakeOne(C->cmap->n, &block[0]);
  if (!ierr) ierr = HybFromBlocksMakeOne(ncols, &block[1]);
  if (!ierr) ierr = HybScatterDefer(C, block[1]);
  ierr = HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix");
  if (ierr) {
    (void)PetscFree(own);
    (void)PetscFree(remote);
    for (int k = 0; k < 2; k++) (void)MatDestroy(&block[k]);
  }
  PetscCall(ierr);
  PetscCall(PetscArraycpy(own, garray, ncols));
  PetscCall(MatCreateMPIAIJWithSeqAIJ(PetscObjectComm((PetscObject)C), comm->size, C->cmap->N, block[0], block[1], own, &made));
  *T = made;
  PetscCall(HybScatterSetGraph(C, *T, block[1], ncols, garray, remote));
  if (ncols) block[1]->nonzerostate++; /* as where PETSc numbers the columns anew */
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
/* PETSc looks for the columns, of a row that has them all. lent: that row's arrays, which T uses. */
static PetscErrorCode HybFromBlocksMake(HybComm comm, PetscErrorCode before, Mat C, PetscInt ncols, const PetscInt *garray, void *lent[2], Mat *T)
{
  PetscInt       i[2] = {0, 0}, oi[2] = {0, ncols}, none = 0, *oj = NULL;
  PetscScalar    nothing = 0, *oa = NULL;
  Mat            made;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(ncols + 1, &oj);
  if (!ierr) ierr = PetscCalloc1(ncols + 1, &oa);
  lent[0] = oj;
  lent[1] = oa;
  PetscCall(HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix"));
  PetscCall(PetscArraycpy(oj, garray, ncols));
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)C), 1, C->cmap->n, comm->size, C->cmap->N, i, &none, &nothing, oi, oj, oa, &made));
  *T = made;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode MatMPIAIJHybridGPUTakeData(Mat C, Mat *T)
{
  const Mat_MPIAIJHybridGPU *hyb  = (Mat_MPIAIJHybridGPU *)C->spptr;
  void                      *data = C->data;
  PetscErrorCode             ierr, later;

  PetscFunctionBegin;
  ierr = MatSetOption(*T, MAT_IGNORE_OFF_PROC_ENTRIES, hyb->ignoreoffproc);
  if (!ierr) ierr = MatSetOption(*T, MAT_ROW_ORIENTED, (PetscBool)!hyb->bycolumns);
  C->data    = (*T)->data;
  (*T)->data = data;
  later      = MatDestroy(T);
  if (later) (void)MatDestroy(T); /* the rest of it */
  PetscCall(HybErrorFirst(ierr, later));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUSetFrame(Mat C, PetscErrorCode before, PetscInt ncols, const PetscInt *garray, PetscBool *made)
{
  void            *lent[2] = {NULL, NULL};
  HybComm          comm;
  Mat              T      = NULL, block[2];
  PetscObjectState was[2] = {0, 0};
  PetscErrorCode   ierr   = before;

  PetscFunctionBegin;
  PetscCall(HybCommGet(PetscObjectComm((PetscObject)C), &comm)); /* there is one: it is looked up */
  if (!ierr) ierr = MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], NULL);
  for (int k = 0; k < 2 && !ierr; k++)
    if (block[k]) was[k] = block[k]->nonzerostate;
  /* so that what its products open stays */
  ierr  = HybErrorFirst(ierr, HybMPIHoldWorld(PetscObjectComm((PetscObject)C)));
  ierr  = HybFromBlocksMake(comm, ierr, C, ncols, garray, lent, &T);
  *made = (PetscBool)(T != NULL);
  if (T) {
    ierr = HybErrorFirst(ierr, MatMPIAIJHybridGPUTakeData(C, &T));
    ierr = HybErrorFirst(ierr, HybFromBlocksEmpty(C, was)); /* which stop using what is lent before it goes */
  }
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(lent[k]));
  PetscCall(HybCommRestore(&comm));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUAdoptBlocks(Mat C, const HybExec *x, HybArena out[2], const HybParCSR *csr)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  Mat                  block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *b = NULL;

    PetscCall(MatSetBlockSizes(block[k], PetscAbs(C->rmap->bs), k ? 1 : PetscAbs(C->cmap->bs)));
    PetscCall(MatSeqAIJHybridGPUGetData(block[k], &b));
    b->choices = hyb->choices;
    b->block   = PETSC_TRUE;
    PetscCall(MatSeqAIJHybridGPUAdopt(block[k], x, PETSC_TRUE, &out[k], k ? &csr->O : &csr->D));
    block[k]->num_ass    = 1; /* as the parent's, which preallocates them */
    b->aspreallocated    = PETSC_TRUE;
    b->neverpreallocated = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
