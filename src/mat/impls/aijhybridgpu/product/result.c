/*
  The result of a product: the sequential one's pattern (parresult.c has the parallel one's), and what is known of
  either between the phases.
*/
#include "product.h"
#include "../seq/coo.h"

PetscErrorCode HybMatProductChoices(Mat C, int blocks, HybChoices **choices)
{
  PetscFunctionBegin;
  if (blocks == 2) {
    Mat_MPIAIJHybridGPU *hyb = NULL;

    PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
    *choices = &hyb->choices;
  } else {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
    *choices = &hyb->choices;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: C's blocks have the pattern that they have after the symbolic phase */
PetscErrorCode HybResultNote(Mat C, HybMatProduct *mp)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(HybMatProductBlocks(C, mp->blocks, block, NULL));
  for (int b = 0; b < mp->blocks; b++) {
    HybView v;

    PetscCall(HybViewOpen(block[b], &v));
    mp->block[b].result.id           = ((PetscObject)block[b])->id;
    mp->block[b].result.made         = v.hyb->made;
    mp->block[b].result.adoptions    = v.hyb->adoptions;
    mp->block[b].result.generation   = v.hyb->generation;
    mp->block[b].result.nnz          = v.host.nnz;
    mp->block[b].result.nonzerostate = block[b]->nonzerostate;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: have C's blocks still that pattern? Their arrays may lie elsewhere. And does the product still run
   where it ran? C may have been bound to the CPU since. work: the operands' nonzeros. */
PetscErrorCode HybResultSame(Mat C, HybMatProduct *mp, PetscCount work, PetscBool *same)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(HybMatProductBlocks(C, mp->blocks, block, NULL));
  *same = (PetscBool)(HybPatternIsWhole(C, mp->blocks) || (mp->pending && C->preallocated && C->insertmode == NOT_SET_VALUES));
  for (int b = 0; b < mp->blocks && *same; b++) {
    PetscBool   ondevice = PETSC_FALSE;
    HybChoices *choices;
    HybView     v;
    HybExec     x;

    *same = (PetscBool)(MatIsSeqAIJHybridGPU(block[b]) && ((PetscObject)block[b])->id == mp->block[b].result.id);
    if (!*same) break;
    PetscCall(HybViewOpen(block[b], &v));
    *same = (PetscBool)(v.host.nnz == mp->block[b].result.nnz && v.hyb->made == mp->block[b].result.made && v.hyb->adoptions == mp->block[b].result.adoptions && v.hyb->generation == mp->block[b].result.generation && block[b]->nonzerostate == mp->block[b].result.nonzerostate);
    if (!*same || !HybExecOnDevice(&mp->exec)) continue;
    PetscCall(MatSeqAIJHybridGPUWriteOnDevice(block[b], &x, &ondevice));
    if (ondevice) continue;
    PetscCall(HybMatProductChoices(C, mp->blocks, &choices));
    PetscCall(HybGlueGetExec(C, choices, work, &x));
    *same = HybExecOnDevice(&x);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybResultPattern(Mat C, HybMatProduct *mp, PetscBool again, HybArena *arrays, HybCSR *result)
{
  const HybExec       *x      = &mp->exec;
  PetscBool            within = PETSC_FALSE, equal = PETSC_FALSE;
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  /* a symbolic result may be used as it is: no stray values */
  PetscCall(x->backend->zero(x, result->a, sizeof(HybScalar) * (size_t)result->nnz));
  if (again) PetscCall(HybKeptWithin(C, x, result, &within, &equal));
  if (equal)
    PetscCall(HybArenaReset(arrays));
  else if (within)
    HybKeptSet(&mp->block[0].kept, arrays, result);
  else {
    const PetscCount adoptions = hyb->adoptions;
    PetscErrorCode   ierr      = C->force_diagonals ? HybKeptForceDiagonal(x, &mp->block[0].kept, arrays, result) : PETSC_SUCCESS;

    if (!ierr) ierr = MatSeqAIJHybridGPUAdopt(C, x, (PetscBool)(!C->force_diagonals && !again), arrays, result);
    if (again && hyb->adoptions != adoptions) mp->zeros = PETSC_TRUE; /* else C is what it was */
    PetscCall(ierr);
    PetscCall(HybCOOParentsGone((PetscObject)C, "HybCOO", &hyb->coocount));
  }
  PetscCall(HybResultNote(C, mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective. An error came while C's values were written, or before any were, here or on another process: nobody
   takes them for a result, be they read here or on the device. AIJ asks this of all that is not assembled; the next
   numeric phase that ends well, or an assembly, makes C whole. */
void HybResultHalfMade(Mat C, HybMatProduct *mp)
{
  Mat block[2];

  HybOperandsValuesForget(mp);
  mp->zeros = PETSC_FALSE;
  if (mp->blocks == 2)
    (void)MatMPIAIJHybridGPUUnmade(C);
  else
    C->assembled = C->was_assembled = PETSC_FALSE;
  (void)PetscObjectStateIncrease((PetscObject)C);
  if (HybMatProductBlocks(C, mp->blocks, block, NULL)) return;
  for (int b = 0; b < mp->blocks; b++) {
    Mat_SeqAIJHybridGPU *hyb = block[b] ? HybStorageAtHand(block[b]) : NULL;

    if (hyb) HybStorageMoved(hyb);
  }
}

/* The parent's numeric phases end with an assembly. What was said of values that were there before holds no more. */
void HybResultAssembled(Mat C, PetscBool before)
{
  if (before) C->was_assembled = PETSC_TRUE;
  C->assembled  = PETSC_TRUE;
  C->insertmode = NOT_SET_VALUES;
  if (C->num_ass) {
    if (!C->symmetry_eternal) C->symmetric = C->hermitian = PETSC_BOOL3_UNKNOWN;
    if (!C->structural_symmetry_eternal && C->ass_nonzerostate != C->nonzerostate) C->structurally_symmetric = PETSC_BOOL3_UNKNOWN;
    if (!C->spd_eternal) C->spd = PETSC_BOOL3_UNKNOWN;
  }
  C->num_ass++;
  C->ass_nonzerostate = C->nonzerostate;
}
