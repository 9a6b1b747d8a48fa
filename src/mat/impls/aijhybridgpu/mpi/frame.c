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
  A throw-away MATMPIAIJ with C's columns and these of others, whose processes have a row each: for what the base class
  keeps beside the blocks. A process that has an error of its own meets the others before anything is sent.
*/
#if PETSC_VERSION_GE(3, 26, 0)
/*
  Blocks without entries, and the ghost columns' numbers given to PETSc: it does not look for them. Its scatter it makes
  all the same, some 50 ns for each ghost column, with one core: more than the product takes where a process has large
  neighbours. So frames are kept, of the communicator whose HybComm stays to the end (PETSC_COMM_WORLD, or the first one
  of the same processes): the last ones that came or were of use, whose ghost columns are worth it and are no more than
  so many in all. A matrix that has the ghost columns of one on all processes, as of a second product of the same
  operands, gets a duplicate of that, with its scatter. Other communicators may be freed by the program and are not kept
  alive for this.
*/
static PetscErrorCode HybFrameBlock(PetscInt m, PetscInt n, Mat *block)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, m, n, 0, NULL, block));
  PetscCall(MatAssemblyBegin(*block, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*block, MAT_FINAL_ASSEMBLY));
  /* whatever -mat_seqaij_type says: T is a MATMPIAIJ */
  PetscCall(MatConvert(*block, MATSEQAIJ, MAT_INPLACE_MATRIX, block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A duplicate shares the scatter, as PETSc's own do; states and all else are as of one that was made */
static PetscErrorCode HybFrameDuplicate(Mat from, Mat *T)
{
  Mat             was[2], is[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(from, MAT_DO_NOT_COPY_VALUES, T));
  PetscCall(MatMPIAIJGetSeqAIJ(from, &was[0], &was[1], &garray));
  PetscCall(MatMPIAIJGetSeqAIJ(*T, &is[0], &is[1], &garray));
  for (int k = 0; k < 2; k++) is[k]->nonzerostate = was[k]->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has F the columns that C is to have here? */
static PetscErrorCode HybFrameSame(Mat F, Mat C, PetscInt ncols, const PetscInt *garray, PetscBool *same)
{
  Mat             block[2];
  const PetscInt *columns;

  PetscFunctionBegin;
  *same = PETSC_FALSE;
  if (!F || F->cmap->N != C->cmap->N || F->cmap->rstart != C->cmap->rstart || F->cmap->rend != C->cmap->rend) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(F, &block[0], &block[1], &columns));
  if (block[1]->cmap->n == ncols) PetscCall(PetscArraycmp(columns, garray, ncols, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. *F: the kept frame with these ghost columns on all processes, which moves to the first place, or NULL.
   *most: ghost columns of the process that has most, -1 where no frames of this communicator are kept. Place k holds
   the same frame on every process. */
static PetscErrorCode HybFrameFind(HybComm comm, Mat C, PetscInt ncols, const PetscInt *garray, PetscInt *most, Mat *F)
{
  HybKeptFrame *const kept = HybGlueState.frames.kept;
  PetscInt64          differs[HYB_FRAMES_KEPT + 1];

  PetscFunctionBegin;
  *F    = NULL;
  *most = -1;
  if (!HybGlueState.options.scatters) PetscFunctionReturn(PETSC_SUCCESS);
  if (!HybGlueState.world) {
    const PetscErrorCode ierr = HybCommAgree(comm, HybMPIHoldWorld(PetscObjectComm((PetscObject)C)), "The frame of a parallel matrix");

    if (ierr) (void)HybCommRestore(&HybGlueState.world);
    PetscCall(ierr);
  }
  if (HybGlueState.world != comm) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < HYB_FRAMES_KEPT; k++) {
    PetscBool same = PETSC_FALSE;

    (void)HybFrameSame(kept[k].frame, C, ncols, garray, &same);
    differs[k] = !same;
  }
  differs[HYB_FRAMES_KEPT] = ncols;
  PetscCall(HybCommMax(comm, HYB_FRAMES_KEPT + 1, differs));
  *most = (PetscInt)differs[HYB_FRAMES_KEPT];
  for (int k = 0; k < HYB_FRAMES_KEPT && !*F; k++) {
    if (!differs[k]) {
      const HybKeptFrame found = kept[k];

      *F = found.frame;
      for (int l = k; l > 0; l--) kept[l] = kept[l - 1];
      kept[0] = found;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. A duplicate of T for others that come, in the first place; those that are too many go, the last ones
   first. PETSc counts tags as it makes one, so an error is everybody's. */
static PetscErrorCode HybFrameKeep(HybComm comm, Mat T, PetscInt most)
{
  HybKeptFrame *const kept  = HybGlueState.frames.kept;
  PetscCount          sum   = most;
  Mat                 frame = NULL;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  if (most < HYB_FRAME_FEWEST || most > HYB_FRAMES_MOST) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybCommAgree(comm, HybFrameDuplicate(T, &frame), "A frame that is kept for parallel matrices");
  if (ierr) (void)MatDestroy(&frame);
  PetscCall(ierr);
  for (int k = 0; k < HYB_FRAMES_KEPT; k++) {
    if (!kept[k].frame) continue;
    sum += kept[k].most;
    if (sum > HYB_FRAMES_MOST || k == HYB_FRAMES_KEPT - 1) PetscCall(MatDestroy(&kept[k].frame));
  }
  for (int k = HYB_FRAMES_KEPT - 1; k > 0; k--) kept[k] = kept[k - 1];
  kept[0] = (HybKeptFrame){frame, most};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameMake(HybComm comm, Mat C, PetscInt ncols, const PetscInt *garray, void *lent[2], Mat *T)
{
  Mat            block[2] = {NULL, NULL}, F;
  PetscInt      *own      = NULL, most;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *T = NULL;
  PetscCall(HybFrameFind(comm, C, ncols, garray, &most, &F));
  if (F) {
    ierr = HybCommAgree(comm, HybFrameDuplicate(F, T), "A frame of a parallel matrix once more");
    if (ierr) (void)MatDestroy(T);
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ierr = PetscMalloc1(ncols + 1, &own); /* T's */
  if (!ierr) ierr = HybFrameBlock(ncols > 0, C->cmap->n, &block[0]);
  if (!ierr) ierr = HybFrameBlock(ncols > 0, ncols, &block[1]);
  ierr = HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix");
  if (ierr) {
    (void)PetscFree(own);
    for (int k = 0; k < 2; k++) (void)MatDestroy(&block[k]);
  }
  PetscCall(ierr);
  PetscCall(PetscArraycpy(own, garray, ncols));
  PetscCall(MatCreateMPIAIJWithSeqAIJ(PetscObjectComm((PetscObject)C), PETSC_DETERMINE, C->cmap->N, block[0], block[1], own, T));
  if (ncols) block[1]->nonzerostate++; /* as where PETSc numbers the columns anew */
  ierr = HybFrameKeep(comm, *T, most);
  if (ierr) (void)MatDestroy(T);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
/* PETSc looks for the columns, of a row that has them all. lent: that row's arrays, which T uses. */
static PetscErrorCode HybFrameMake(HybComm comm, Mat C, PetscInt ncols, const PetscInt *garray, void *lent[2], Mat *T)
{
  PetscInt       i[2] = {0, 0}, oi[2] = {0, ncols}, none = 0, *oj = NULL;
  PetscScalar    nothing = 0, *oa = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PetscMalloc1(ncols + 1, &oj);
  if (!ierr) ierr = PetscCalloc1(ncols + 1, &oa);
  lent[0] = oj;
  lent[1] = oa;
  PetscCall(HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix"));
  PetscCall(PetscArraycpy(oj, garray, ncols));
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)C), ncols > 0, C->cmap->n, PETSC_DETERMINE, C->cmap->N, i, &none, &nothing, oi, oj, oa, T));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* C's data become those of a parallel matrix with these columns of others, and take its options; the blocks get their
   rows with their contents. */
PetscErrorCode MatMPIAIJHybridGPUSetFrame(Mat C, PetscInt ncols, const PetscInt *garray)
{
  Mat_MPIAIJHybridGPU *hyb     = NULL;
  void                *lent[2] = {NULL, NULL}, *data;
  HybComm              comm;
  Mat                  T, block[2];
  const PetscInt      *old;
  PetscObjectState     was[2] = {0, 0};
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(HybCommGet(PetscObjectComm((PetscObject)C), &comm)); /* there is one: it is looked up */
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &old));
  for (int k = 0; k < 2; k++)
    if (block[k]) was[k] = block[k]->nonzerostate;
  ierr = HybFrameMake(comm, C, ncols, garray, lent, &T);
  if (!ierr) {
    PetscCall(MatSetOption(T, MAT_IGNORE_OFF_PROC_ENTRIES, hyb->ignoreoffproc));
    PetscCall(MatSetOption(T, MAT_ROW_ORIENTED, (PetscBool)!hyb->bycolumns));
    data    = C->data;
    C->data = T->data;
    T->data = data;
    PetscCall(MatDestroy(&T));
    ierr = HybFrameEmptyBlocks(C, was); /* which stop using what is lent before it goes */
    ierr = HybCommAgree(comm, ierr, "The blocks of a parallel matrix");
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
