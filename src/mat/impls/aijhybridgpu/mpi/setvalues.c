/*
  Entries that the program sets or takes away: the parent does both, past the blocks' own functions, which are told.

  What the parent does with all processes comes after what one does alone with its blocks, so an error of that is one of
  all (HybAgree()): else the others wait for it in the parent's. An error within the parent's is PETSc's.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../../../../petsc/storage/door.h"
#include "../storage/where.h"

/* New entries may come, also from other processes: see MatSeqAIJHybridGPUDisown() */
static PetscErrorCode MatMPIAIJHybridGPUDisownBlocks(Mat A)
{
  PetscFunctionBegin;
  if (A->preallocated) PetscCall(MatMPIAIJHybridGPUEachBlock(A, MatSeqAIJHybridGPUDisown));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent writes into the blocks past their own MatSetValues(). Where somebody holds a block's values they stay, as
  long as the entries exist.
*/
static PetscErrorCode MatMPIAIJHybridGPUSetValuesBegin(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[])
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscInt       *local[2], count[2], rstart, rend, cstart, cend;
  PetscBool       held = PETSC_FALSE, missing = PETSC_FALSE;

  PetscFunctionBegin;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++)
    if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k]) && blocks[k]->spptr && HybStorageHeld((Mat_SeqAIJHybridGPU *)blocks[k]->spptr)) held = PETSC_TRUE;
  if (!held || !blocks[0] || !blocks[1] || !garray) {
    PetscCall(MatMPIAIJHybridGPUDisownBlocks(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(PetscMalloc2(n, &local[0], n, &local[1]));
  count[0] = count[1] = 0;
  for (PetscInt c = 0; c < n; c++) {
    PetscInt where = -1;

    if (cols[c] < 0) continue;
    if (cols[c] >= cstart && cols[c] < cend)
      local[0][count[0]++] = cols[c] - cstart;
    else {
      PetscCall(PetscFindInt(cols[c], blocks[1]->cmap->n, garray, &where));
      if (where >= 0)
        local[1][count[1]++] = where;
      else
        missing = PETSC_TRUE;
    }
  }
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt r = rows[k] - rstart;

    if (rows[k] < rstart || rows[k] >= rend) continue;
    for (int b = 0; b < 2; b++)
      if (MatIsSeqAIJHybridGPU(blocks[b])) PetscCall(b && missing ? MatSeqAIJHybridGPUDisown(blocks[b]) : MatSeqAIJHybridGPUSetValuesBegin(blocks[b], 1, &r, count[b], local[b]));
  }
  PetscCall(PetscFree2(local[0], local[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error ended a function of the parent's between getting a block's values and restoring them. Who else writes them
   restores them in vain. */
static PetscErrorCode HybBlockNotGivenBack(Mat block)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)block->spptr;

  PetscFunctionBegin;
  if (hyb && hyb->writers) hyb->writers--;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static HYB_SELDOM PetscErrorCode HybSetValuesTold(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUSetValuesBegin(A, m, rows, n, cols));
  ierr = (*HybGlueState.mpi.setvalues)(A, m, rows, n, cols, v, mode);
  if (ierr) PetscCall(MatMPIAIJHybridGPUEachBlock(A, HybBlockNotGivenBack)); /* by the parent */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Need nobody be told that the parent writes this block? *shut: its door was shut for that. */
static inline PetscBool HybBlockPasses(Mat block, PetscBool *shut)
{
  if (!block || HybHostOnly(block)) return PETSC_TRUE;
  *shut = HybDoorPass(block);
  return (PetscBool)(*shut || !block->spptr || !MatIsSeqAIJHybridGPU(block));
}

/* one block or both may be held by somebody, or live on a device */
static HYB_SELDOM PetscErrorCode HybSetValuesByDoors(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  PetscErrorCode ierr;
  PetscBool      passed = PETSC_FALSE, shut[2] = {PETSC_FALSE, PETSC_FALSE};
  Mat            block[2];

  PetscFunctionBegin;
  if (PetscLikely(A->preallocated && HybFrameBlocksKnown())) {
    for (int k = 0; k < 2; k++) block[k] = HybFrameBlock(A, k);
    passed = (PetscBool)(HybBlockPasses(block[0], &shut[0]) && HybBlockPasses(block[1], &shut[1]));
    if (PetscLikely(passed)) ierr = (*HybGlueState.mpi.setvalues)(A, m, rows, n, cols, v, mode);
    /* the parent makes another block of others' columns where it meets a new one */
    for (int k = 0; k < 2; k++)
      if (shut[k] && HybFrameBlock(A, k) == block[k]) HybDoorPassed(block[k]);
  }
  if (PetscUnlikely(!passed)) ierr = HybSetValuesTold(A, m, rows, n, cols, v, mode);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called once for each entry: no frame of PETSc's, so that the parent's function is jumped to where nobody need be told
   of anything. */
PetscErrorCode MatSetValues_MPIAIJHybridGPU(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  if (PetscLikely(A->preallocated && HybFrameBlocksKnown())) {
    const Mat own = HybFrameBlock(A, 0), others = HybFrameBlock(A, 1);

    if (own && others && HybHostOnly(own) && HybHostOnly(others)) return (*HybGlueState.mpi.setvalues)(A, m, rows, n, cols, v, mode);
  }
  return HybSetValuesByDoors(A, m, rows, n, cols, v, mode);
}

#if HYB_HAS_ELIMINATEZEROS
/* the parent calls its own function for the blocks, which shortens their rows where they are */
PetscErrorCode MatEliminateZeros_MPIAIJHybridGPU(Mat A, PetscBool keep)
{
  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUDisownBlocks(A));
  PetscCall((*HybGlueState.mpi.eliminatezeros)(A, keep));
  PetscCall(MatMPIAIJHybridGPUEachBlock(A, MatSeqAIJHybridGPUPatternMoved)); /* past their own functions */
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent writes the blocks, partly past their own functions. Values that somebody holds stay where they are: should
   a row get shorter, the block's own function sees to that. */
static PetscErrorCode HybBlockDemote(Mat block)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(block, &hyb));
  if (!HybStorageHeld(hyb)) PetscCall(MatSeqAIJHybridGPUDemote(block));
  PetscCall(MatSeqAIJHybridGPUHostWrites(block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybBlockZeroRowsLook(Mat block)
{
  PetscBool whole;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUZeroRowsLook(block, &whole));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: what MatZeroRows() does with the blocks before it comes to their rows */
static PetscErrorCode MatMPIAIJHybridGPUZeroRowsBegin(Mat A, PetscScalar diag)
{
  PetscBool square;

  PetscFunctionBegin;
  /* the parent lets new entries in and sets them by MatSetValues(), and goes back to the blocks' data of before */
  PetscCall(MatHasCongruentLayouts(A, &square));
  if (!square && diag != (PetscScalar)0) PetscCall(MatMPIAIJHybridGPUDisownBlocks(A));
  PetscCall(MatMPIAIJHybridGPUEachBlock(A, HybBlockZeroRowsLook));
  PetscCall(MatMPIAIJHybridGPUEachBlock(A, HybBlockDemote));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatZeroRows_MPIAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  PetscCall(HybAgree(PetscObjectComm((PetscObject)A), MatMPIAIJHybridGPUZeroRowsBegin(A, diag), "MatZeroRows()"));
  PetscCall((*HybGlueState.mpi.zerorows)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatZeroRowsColumns_MPIAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  PetscCall(HybAgree(PetscObjectComm((PetscObject)A), MatMPIAIJHybridGPUEachBlock(A, HybBlockDemote), "MatZeroRowsColumns()"));
  PetscCall((*HybGlueState.mpi.zerorowscolumns)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: arrays of ours that the program has made a block of become its own */
static PetscErrorCode MatMPIAIJHybridGPUTakeGiven(Mat A)
{
  Mat blocks[2];

  PetscFunctionBegin;
  if (HybGlueState.given.kept) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    if (blocks[1]) PetscCall(HybGivenTake(blocks[1]));
  }
  PetscCall(HybGivenParallel(PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyBegin_MPIAIJHybridGPU(Mat A, MatAssemblyType mode)
{
  const MPI_Comm       comm  = PetscObjectComm((PetscObject)A);
  const PetscBool      young = (PetscBool)(HYB_GIVES_ARRAYS && !A->num_ass); /* its blocks may have been given to it */
  Mat_MPIAIJHybridGPU *hyb   = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  if (!hyb->assembling) {
    PetscErrorCode ierr = young ? MatMPIAIJHybridGPUTakeGiven(A) : PETSC_SUCCESS;

    if (!A->nooffprocentries) { /* entries of other processes may be new ones, and are set past MatSetValues() */
      PetscInt  n = 0, blocked = 0;
      PetscBool none;

      PetscCall(MatStashGetInfo(A, &n, NULL, &blocked, NULL));
      none = (PetscBool)(!n && !blocked);
      PetscCall(HybAgreeAll(comm, ierr, "An assembly", &none));
      if (!none) PetscCall(HybAgree(comm, MatMPIAIJHybridGPUDisownBlocks(A), "An assembly"));
    } else if (young)
      PetscCall(HybAgree(comm, ierr, "An assembly"));
  }
  PetscCall((*HybGlueState.mpi.assemblybegin)(A, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's first final assembly numbers the columns of the block of others' anew, where they are: a block that the
   program has made on a device and handed over may still be read there. */
static PetscErrorCode MatMPIAIJHybridGPUQuietOthers(Mat A)
{
  Mat             blocks[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  if (!garray && blocks[1] && MatIsSeqAIJHybridGPU(blocks[1]) && blocks[1]->spptr) PetscCall(HybStorageQuiet((Mat_SeqAIJHybridGPU *)blocks[1]->spptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyEnd_MPIAIJHybridGPU(Mat A, MatAssemblyType mode)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  /* the parent sums here where its own coordinates have made the blocks */
  if (hyb->assembling && !HYB_COO_COUNTS_STATES) {
    const PetscObjectState assembled = A->ass_nonzerostate;

    PetscCall(MatMPIAIJHybridGPUSumStates(A, PETSC_SUCCESS, ""));
    A->ass_nonzerostate = assembled;
  }
  hyb->assembling = PETSC_FALSE;
  ierr            = mode == MAT_FINAL_ASSEMBLY ? MatMPIAIJHybridGPUQuietOthers(A) : PETSC_SUCCESS;
  PetscCall((*HybGlueState.mpi.assemblyend)(A, mode)); /* after an error too: the others are there */
  hyb->coopattern = PETSC_FALSE;
  if (mode == MAT_FINAL_ASSEMBLY) {
    hyb->unmade = PETSC_FALSE;
    PetscCall(MatMPIAIJHybridGPUSetBlocks(A));
    HybGlueState.counts.assemblies++;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the parent goes by what AIJ's blocks were preallocated with */
PetscErrorCode MatResetPreallocation_MPIAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  if (A->preallocated) {
    PetscCall(MatMPIAIJHybridGPUEachBlock(A, MatSeqAIJHybridGPUAsPreallocated));
    PetscCall(MatMPIAIJHybridGPUEachBlock(A, HybBlockDemote));
  }
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.resetpreallocation[1])(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
