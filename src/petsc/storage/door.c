/*
  PETSc's own door to a matrix's values: MatSeqAIJGetArray() and its relatives, and through them nearly all of AIJ's
  host code, call these functions where the frame is known (frame.c). So the type is told before the host reads or
  writes values, and knows while somebody holds them:

    getarray, getarraywrite      what is queued on the device ends first; the device's copy is old from here on; one
                                 more writer
    restore                      the device's copy is old, whatever was sent between; one writer less
    getarrayread, restore        one reader more, one less

  While anybody holds the values they are neither moved nor freed; while a writer does, each reader on the device takes
  them for new.

  MatGetRow() lends pointers too, which the door does not see, since PETSc restores the array before it returns: rows
  are counted by the type's own MatGetRow() and MatRestoreRow(). What is not seen: pointers kept after they were
  restored, and arrays that the program lent to PETSc. The object's state tells of those, as before. And the parent's
  MatSetValues(), which ours calls: ours says the same once for all of it (HybDoorPass()).
*/
#include "door.h"

/* The storage that A's header has, NULL where A is no matrix of ours: MatHeaderMerge() and -mat_seqaij_type carry data,
   and the door with it, to others */
static HYB_SELDOM PetscErrorCode HybDoorStorage(Mat A, Mat_SeqAIJHybridGPU **hyb)
{
  PetscFunctionBegin;
  *hyb = NULL;
  if (MatIsSeqAIJHybridGPU(A)) PetscCall(MatSeqAIJHybridGPUGetData(A, hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDoorGet(Mat A, PetscScalar **array)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  PetscFunctionBegin;
  if (PetscUnlikely(!hyb)) PetscCall(HybDoorStorage(A, &hyb));
  if (hyb && !hyb->inside) { /* inside: an operation of ours, which does all this itself */
    HybStorageMoved(hyb);
    if (PetscUnlikely(HybShared(hyb) && !hyb->quiet)) PetscCall(HybStorageQuiet(hyb));
    hyb->writers++;
  }
  *array = HybFrameValues(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDoorRestore(Mat A, PetscScalar **array)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  PetscFunctionBegin;
  if (PetscUnlikely(!hyb)) PetscCall(HybDoorStorage(A, &hyb));
  if (hyb && !hyb->inside) {
    HybStorageMoved(hyb);
    if (PetscUnlikely(HybShared(hyb) && !hyb->quiet)) PetscCall(HybStorageQuiet(hyb));
    if (hyb->writers) hyb->writers--;
    if (hyb->retired) PetscCall(HybStorageGivenBack(hyb));
  }
  *array = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDoorGetRead(Mat A, const PetscScalar **array)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  PetscFunctionBegin;
  if (PetscUnlikely(!hyb)) PetscCall(HybDoorStorage(A, &hyb));
  if (hyb && !hyb->inside) {
    hyb->readers++;
    HybGivenLent(hyb);
  }
  *array = HybFrameValues(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDoorRestoreRead(Mat A, const PetscScalar **array)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  PetscFunctionBegin;
  if (PetscUnlikely(!hyb)) PetscCall(HybDoorStorage(A, &hyb));
  if (hyb && !hyb->inside) {
    if (hyb->readers) hyb->readers--;
    if (hyb->retired) PetscCall(HybStorageGivenBack(hyb));
  }
  *array = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const HybDoor ours = {
  .getarray          = HybDoorGet,
  .restorearray      = HybDoorRestore,
  .getarrayread      = HybDoorGetRead,
  .restorearrayread  = HybDoorRestoreRead,
  .getarraywrite     = HybDoorGet,
  .restorearraywrite = HybDoorRestore,
};

void HybDoorOpen(Mat A)
{
  if (HybFrameKnown()) *HybFrameDoor(A) = ours;
}

/* Only what is ours is taken away: a type laid over this one may have put its own there */
PetscErrorCode HybDoorClose(Mat A)
{
  HybDoor *door = HybFrameKnown() && A->data ? HybFrameDoor(A) : NULL;

  PetscFunctionBegin;
  if (A->spptr && MatIsSeqAIJHybridGPU(A)) ((Mat_SeqAIJHybridGPU *)A->spptr)->pass = NULL;
  if (door && door->getarray == HybDoorGet) PetscCall(PetscMemzero(door, sizeof(*door)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May writers pass? Where A's arrays are AIJ's own, and nobody but the door has to be asked */
PetscBool HybDoorPassLook(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  if (!hyb || hyb->arrays.blocks || hyb->movedto || !HybDoorIsOurs(A)) return PETSC_FALSE;
  hyb->pass = A->data;
  return PETSC_TRUE;
}

PetscErrorCode MatSeqAIJHybridGPULeave(Mat A)
{
  /* a structure of function pointers alone */
  void       **ops = (void **)A->ops;
  void *const *own = (void *const *)&HybGlueState.own, *const *parent = (void *const *)&HybGlueState.seq;

  PetscFunctionBegin;
  for (size_t k = 0; k < sizeof(struct _MatOps) / sizeof(void *); k++)
    if (ops[k] == own[k]) ops[k] = parent[k];
  if (A->ops->copy == HybGlueState.born.copy) A->ops->copy = HybGlueState.seq.copy;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", NULL));
  PetscCall(HybDoorClose(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
