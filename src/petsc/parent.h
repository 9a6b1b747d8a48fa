/*
  What is known of the parent's own data: where MATSEQAIJ keeps its values and functions, and what its loops over rows
  would find. Found in the PETSc that runs, and proven.
*/
#ifndef AIJHYBRIDGPU_PARENT_H
#define AIJHYBRIDGPU_PARENT_H

#include "../mat/report/record.h"

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

/* allocator.c: functions of ours that lie over PETSc's allocator between these, the last one on top */
PETSC_INTERN void           HybWatchBegin(HybWatcher *);
PETSC_INTERN void           HybWatchEnd(void);
PETSC_INTERN PetscErrorCode HybMallocBelow(HybWatcher *, size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array);
#define HybMayWatch() (!PetscDefined(HAVE_THREADSAFETY))

/* names.c */
typedef struct {
  const char *name;
  void (*function)(void);
} HybComposeName;
PETSC_INTERN PetscErrorCode HybComposeAdd(PetscObject, size_t n, const HybComposeName named[], HybComposeUsual *usual);
/* puts functions over the parent's of these names, which are kept in *parents, or the parent's back */
typedef struct {
  const char *name;
  void (*ours)(void);
  void (**parents)(void);
} HybComposedOver;
PETSC_INTERN PetscErrorCode HybComposeOver(PetscObject, size_t n, const HybComposedOver[], PetscBool on);
/* between these the parent's creator composes the names of object, which has none; the end cannot fail. And the
   parent's destroy function, which need not take them away where nobody has A any more. */
#if HYB_LISTS_ARE_NODES
PETSC_INTERN PetscErrorCode HybComposeOrderBegin(PetscObject object, PetscBool seq, HybComposeOrdered *outer);
PETSC_INTERN void           HybComposeOrderEnd(PetscObject object, const HybComposeOrdered *outer);
PETSC_INTERN PetscErrorCode HybComposeGone(Mat A, PetscErrorCode (*destroy)(Mat));
#else
  #define HybComposeOrderBegin(object, seq, outer) ((void)(outer), PETSC_SUCCESS)
  #define HybComposeOrderEnd(object, outer)        ((void)(outer))
  #define HybComposeGone(A, destroy)               ((*(destroy))(A))
#endif

/* frame.c */
PETSC_INTERN PetscErrorCode HybFrameFind(void);
PETSC_INTERN size_t         HybFrameBytes(void); /* of a MATSEQAIJ's data */
PETSC_INTERN void           HybFrameSetPattern(Mat, PetscInt *i, PetscInt *j);
PETSC_INTERN PetscBool      HybFrameOption(Mat, HybAskedGroup, MatOption *, PetscBool *);
PETSC_INTERN PetscErrorCode HybFrameParallelOptions(Mat, PetscBool *, PetscBool *);
/* of a MATMPIAIJ; afterwards HybFrameBlock() knows its blocks, if they are to be known. Not collective. */
PETSC_INTERN PetscErrorCode HybFrameParallelFind(void);
/* no duplicate has this option, which stays where AIJ's data stay */
PETSC_INTERN PetscBool  HybUnusedIsError(Mat);
static inline PetscBool HybFrameKnown(void)
{
  return HybGlueState.frame.known;
}
static inline PetscScalar *HybFrameValues(Mat A)
{
  PetscScalar *a;

  memcpy(&a, (char *)A->data + HybGlueState.frame.a, sizeof(a));
  return a;
}
static inline void HybFrameSetValues(Mat A, PetscScalar *a)
{
  memcpy((char *)A->data + HybGlueState.frame.a, &a, sizeof(a));
}
static inline void HybFramePattern(Mat A, PetscInt **i, PetscInt **j)
{
  memcpy(i, (char *)A->data + HybGlueState.frame.ij[0], sizeof(void *));
  memcpy(j, (char *)A->data + HybGlueState.frame.ij[1], sizeof(void *));
}
static inline void HybFrameArrays(Mat A, PetscInt **i, PetscInt **j, PetscScalar **a)
{
  HybFramePattern(A, i, j);
  *a = HybFrameValues(A);
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
/* between these, no matrix that is made looks for inodes: the search reads all of j on the host. The end cannot fail,
   so that it can follow an error. */
PETSC_INTERN PetscErrorCode HybNoInodeBegin(PetscOptions *);
PETSC_INTERN void           HybNoInodeEnd(PetscOptions *);
typedef struct {
  PetscInt  *diagonal; /* the diagonal's places, on the device, where HybNarrowTakesDiagonal() */
  PetscInt  *list;     /* the rows that have entries, there, and */
  PetscInt  *begin;    /* where they begin, nonempty + 1 offsets, where HybNarrowTakesList(); else NULL */
  PetscCount longest, nonempty;
} HybNarrowRows;
PETSC_INTERN PetscErrorCode HybNarrowFind(Mat);
PETSC_INTERN PetscBool      HybNarrowTakes(PetscInt m);
PETSC_INTERN PetscBool      HybNarrowTakesDiagonal(void);
/* the arrays that a MATSEQAIJ's data has with a number for each row, k of them, each allocated alone; 0: not known */
PETSC_INTERN int       HybNarrowArrays(void);
PETSC_INTERN PetscInt *HybNarrowArray(Mat, int k);
PETSC_INTERN PetscBool HybNarrowTakesList(PetscInt m, PetscCount nonempty);
/* *T = MatCreateSeqAIJWithArrays() round csr, on the host, no inodes looked for; NULL where its loops must run */
PETSC_INTERN PetscErrorCode HybNarrowCreate(const HybExec *, const HybCSR *csr, const HybNarrowRows *, Mat *T);

/* scatter.c */
#if HYB_HAS_CREATE_GARRAY
PETSC_INTERN PetscErrorCode HybScatterDefer(Mat C, Mat block);
PETSC_INTERN PetscErrorCode HybScatterSetGraph(Mat C, Mat T, Mat block, PetscInt n, const PetscInt *garray, PetscSFNode *remote);
PETSC_INTERN PetscErrorCode MatGetMultPetscSF_MPIAIJHybridGPU(Mat, PetscSF *);
#endif

#endif
