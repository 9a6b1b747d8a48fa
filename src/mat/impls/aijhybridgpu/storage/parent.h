/*
  What is known of the parent's own data: where MATSEQAIJ keeps its values and functions, and what its loops over rows
  would find. Found in the PETSc that runs, and proven.
*/
#ifndef AIJHYBRIDGPU_PARENT_H
#define AIJHYBRIDGPU_PARENT_H

#include "storage.h"

/* PETSc's Mat_SeqAIJOps (door.c) */
typedef struct {
  PetscErrorCode (*getarray)(Mat, PetscScalar **);
  PetscErrorCode (*restorearray)(Mat, PetscScalar **);
  PetscErrorCode (*getarrayread)(Mat, const PetscScalar **);
  PetscErrorCode (*restorearrayread)(Mat, const PetscScalar **);
  PetscErrorCode (*getarraywrite)(Mat, PetscScalar **);
  PetscErrorCode (*restorearraywrite)(Mat, PetscScalar **);
  PetscErrorCode (*getcsrandmemtype)(Mat, const PetscInt **, const PetscInt **, PetscScalar **, PetscMemType *);
} HybDoor;

/* frame.c */
PETSC_INTERN PetscErrorCode HybFrameFind(void);
PETSC_INTERN size_t         HybFrameBytes(void); /* of a MATSEQAIJ's data */
PETSC_INTERN void           HybFrameSetPattern(Mat, PetscInt *i, PetscInt *j);
PETSC_INTERN PetscBool      HybFrameOption(Mat, HybAskedGroup, MatOption *, PetscBool *);
PETSC_INTERN PetscErrorCode HybFrameParallelOptions(Mat, PetscBool *, PetscBool *);
/* of a MATMPIAIJ; afterwards HybFrameBlock() knows its blocks, if they are to be known. Not collective. */
PETSC_INTERN PetscErrorCode HybFrameParallelFind(void);
static inline PetscBool     HybFrameKnown(void)
{
  return HybGlueState.frame.known;
}
static inline PetscScalar **HybFrameValues(Mat A)
{
  return (PetscScalar **)((char *)A->data + HybGlueState.frame.a);
}
static inline void HybFramePattern(Mat A, PetscInt **i, PetscInt **j)
{
  memcpy(i, (char *)A->data + HybGlueState.frame.ij[0], sizeof(void *));
  memcpy(j, (char *)A->data + HybGlueState.frame.ij[1], sizeof(void *));
}
static inline HybDoor *HybFrameDoor(Mat A)
{
  return (HybDoor *)((char *)A->data + HybGlueState.frame.door);
}
static inline PetscBool HybFrameBlocksKnown(void)
{
  return HybGlueState.frame.blocksknown;
}
/* a parallel matrix's own columns, or those of others: NULL where there is no such block now */
static inline Mat HybFrameBlock(Mat A, int k)
{
  return *(Mat *)((char *)A->data + HybGlueState.frame.block[k]);
}

/* narrow.c */
typedef struct {
  PetscInt  *length;   /* of each row, on the device; NULL: not there */
  PetscInt  *diagonal; /* the diagonal's places, there, where HybNarrowTakesDiagonal() */
  PetscInt  *list;     /* the rows that have entries, and */
  PetscInt  *begin;    /* where they begin, nonempty + 1 offsets: there, where HybNarrowTakesList() */
  PetscCount longest, nonempty;
} HybRowLengths;
PETSC_INTERN PetscErrorCode HybNarrowFind(Mat);
PETSC_INTERN PetscBool      HybNarrowTakes(PetscInt m);
PETSC_INTERN PetscBool      HybNarrowTakesDiagonal(void);
PETSC_INTERN PetscBool      HybNarrowTakesList(PetscInt m, PetscCount nonempty);
/* *T = MatCreateSeqAIJWithArrays() round csr, on the host, no inodes looked for; NULL where its loops must run */
PETSC_INTERN PetscErrorCode HybNarrowCreate(const HybExec *, const HybCSR *csr, const HybRowLengths *, Mat *T);

/* what a hot function does rarely, so that its own frame stays small */
#if defined(__GNUC__)
  #define HYB_SELDOM __attribute__((noinline, cold))
#else
  #define HYB_SELDOM
#endif

/* door.c */
PETSC_INTERN PetscErrorCode HybDoorOpen(Mat);
PETSC_INTERN PetscErrorCode HybDoorClose(Mat);
/* The parent's MatSetValues() gets the values and gives them back at each call, of an entry as a rule. Where no array
   of ours can be in its way nobody need be told but that values are about to move: the door for writers is shut in
   between, and it is as fast as without us. *passed: it is; to be opened again whatever comes, but not where A is
   gone. */
PETSC_INTERN PetscErrorCode HybDoorGet(Mat, PetscScalar **);
PETSC_INTERN PetscErrorCode HybDoorRestore(Mat, PetscScalar **);
PETSC_INTERN PetscErrorCode HybDoorGetRead(Mat, const PetscScalar **);
PETSC_INTERN PetscErrorCode HybDoorRestoreRead(Mat, const PetscScalar **);
/* is the door ours, so that what it counts is the truth? */
static inline PetscBool HybDoorIsOurs(Mat A)
{
  return (PetscBool)(HybFrameKnown() && A->data && HybFrameDoor(A)->getarray == HybDoorGet);
}
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

#endif
