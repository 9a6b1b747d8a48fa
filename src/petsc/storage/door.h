/*
  The door to a matrix's values (door.c), for what is called once for each entry or row.
*/
#ifndef AIJHYBRIDGPU_DOOR_H
#define AIJHYBRIDGPU_DOOR_H

#include "../../mat/impls/aijhybridgpu/storage/storage.h"

/* what a hot function does rarely, so that its own frame stays small */
#if defined(__GNUC__)
  #define HYB_SELDOM __attribute__((noinline, cold))
#else
  #define HYB_SELDOM
#endif

/* what stands in the door, besides HybDoorGet() */
PETSC_INTERN PetscErrorCode HybDoorRestore(Mat, PetscScalar **);
PETSC_INTERN PetscErrorCode HybDoorGetRead(Mat, const PetscScalar **);
PETSC_INTERN PetscErrorCode HybDoorRestoreRead(Mat, const PetscScalar **);

/* The parent's MatSetValues() gets the values and gives them back at each call, of an entry as a rule. Where no array
   of ours can be in its way nobody need be told but that values are about to move: the door for writers is shut in
   between, and it is as fast as without us. Opened again whatever comes, but not where A is gone. */
static inline void HybDoorShut(Mat A)
{
  HybDoor *door = HybFrameDoor(A);

  door->getarray = door->restorearray = NULL;
}
static inline void HybDoorPassed(Mat A)
{
  HybDoor *door = HybFrameDoor(A);

  door->getarray     = HybDoorGet;
  door->restorearray = HybDoorRestore;
}
/* sets pass in A's private data if it may be so, which says it from then on */
PETSC_INTERN PetscBool  HybDoorPassLook(Mat) HYB_SELDOM;
static inline PetscBool HybDoorPass(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;

  if (PetscUnlikely(A->ops->destroy != HybGlueState.own.destroy || !hyb || (hyb->pass != A->data && (hyb->arrays.blocks || !HybDoorPassLook(A))))) return PETSC_FALSE;
  HybDoorShut(A);
  hyb->inserted = PETSC_TRUE;
  HybStorageMoved(hyb);
  return PETSC_TRUE;
}
/* nobody need be told of anything */
static inline PetscBool HybHostOnly(Mat A)
{
  const Mat_SeqAIJHybridGPU *hyb = (const Mat_SeqAIJHybridGPU *)A->spptr;

  return (PetscBool)(A->ops->destroy == HybGlueState.own.destroy && hyb && hyb->hostonly);
}
/* the same for readers */
static inline void HybDoorShutRead(Mat A)
{
  HybDoor *door = HybFrameDoor(A);

  door->getarrayread = door->restorearrayread = NULL;
}
static inline void HybDoorPassedRead(Mat A)
{
  HybDoor *door = HybFrameDoor(A);

  door->getarrayread     = HybDoorGetRead;
  door->restorearrayread = HybDoorRestoreRead;
}

#endif
