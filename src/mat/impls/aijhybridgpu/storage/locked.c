/*
  Values in page-locked memory.

  A matrix that the host writes, and the device multiplies after each such step, is sent as often. From pageable memory
  the values pass through page-locked buffers; from page-locked memory the bus takes them as they are. To
  move them there costs as much as some twenty sendings save (docs/tried.md, Thresholds). So at the n-th sending of new
  values they move to page-locked memory of ours, and AIJ's pointer to the values names that from then on (frame.c). The
  time that the sendings before have lost then is about what the move costs, and a program is never behind by more than
  once that, whenever it ends.

  AIJ's own array is put aside and keeps what it held: PETSc allocated it, and frees it once it is back. Everything else
  that AIJ keeps, options among it, stays where it is. The values return (MatSeqAIJHybridGPUDemote()) before anything
  that may free or replace the array: new entries, another preallocation. They do not move a second time then.
  MatSetValues() makes room for new entries where they are allowed, and to look for each entry first would cost as much
  as to set it: so values that come by MatSetValues() move only where new entries are an error or are ignored, as a
  preallocation by the program has it.

  Not moved: arrays that the program lent, or that it may have lent (-mat_seqaij_type); values that somebody holds, or
  whose places a coloring for finite differences remembers; those of products; blocks of parallel matrices, whose parent
  writes past the sequential type.
*/
#include "storage.h"

/* are new entries an error, or ignored? */
static PetscBool HybNewEntriesRefused(const Mat_SeqAIJHybridGPU *hyb)
{
  const HybAsked *asked = &hyb->asked[HYB_ASKED_NEW_NONZEROS];

  return (PetscBool)(asked->said && (asked->op == MAT_NEW_NONZERO_LOCATIONS ? !asked->flg : asked->flg));
}

/* the values are locked, and the parent's MatSetValues() will make no room for others */
PetscBool MatSeqAIJHybridGPULockedTakesValues(const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(hyb->lives == HYB_LIVES_LOCKED && HybNewEntriesRefused(hyb));
}

static PetscErrorCode MatSeqAIJHybridGPULockDue(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybCSR *csr, PetscBool *due)
{
  const size_t    bytes = sizeof(HybScalar) * (size_t)csr->nnz;
  HybMemoryReport r;

  PetscFunctionBegin;
  *due = PETSC_FALSE;
  if (!HybGlueState.options.lockafter || hyb->sendings < HybGlueState.options.lockafter || bytes < (size_t)HybGlueState.options.lockmin) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->lives != HYB_LIVES_COPIED || hyb->locknever || hyb->arrays.blocks || HybStorageServed() || hyb->block || HybStorageHeld(hyb) || !HybStorageIsOwn(A, hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!A->assembled || A->structure_only || A->factortype != MAT_FACTOR_NONE) PetscFunctionReturn(PETSC_SUCCESS);
  if ((hyb->inserted || A->sortedfull) && !HybNewEntriesRefused(hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->usage(&r, PETSC_FALSE));
  *due = (PetscBool)(r.locked_bytes <= r.locked_share && bytes <= r.locked_share - r.locked_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybLockedValues(const HybExec *x, const HybCSR *csr, HybArena *arrays, HybScalar **to)
{
  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_LOCKED, csr->nnz, sizeof(HybScalar), to));
  PetscCall(x->backend->copy(x, *to, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_HOST_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUSendFrom(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybCSR *csr, const HybScalar **from)
{
  HybScalar     *to = NULL;
  PetscBool      due;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *from = csr->a;
  hyb->sendings++;
  PetscCall(MatSeqAIJHybridGPULockDue(A, hyb, x, csr, &due));
  hyb->inserted = PETSC_FALSE;
  if (!due) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->moved = HybArenaOn(x);
  /* without the memory the values stay where they are: that is no error */
  ierr = HYB_QUIETLY(HybLockedValues(x, csr, &hyb->moved, &to));
  if (ierr) {
    hyb->locknever = PETSC_TRUE;
    PetscCall(HybArenaReset(&hyb->moved));
    PetscCall(PetscInfo(A, "The values, sent %" PetscInt_FMT " times, stay in pageable memory: there is no page-locked memory for them\n", hyb->sendings));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybStorageMoveValues(A, hyb, HYB_LIVES_LOCKED, csr->nnz, to));
  *from = to;
  PetscCall(PetscInfo(A, "Sent %" PetscInt_FMT " times after the host had written: the values, %" PetscInt64_FMT " nonzeros, move to page-locked memory (-mat_aijhybridgpu_lock_after 0 leaves them where they are)\n", hyb->sendings, (PetscInt64)csr->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}
