/*
  Arrays that PETSc gives to another matrix.

  MatCreateMPIAIJWithSeqAIJ() before 3.22 makes the second block of a parallel matrix round the arrays of B, destroys B,
  and says in AIJ's data that the arrays are the block's own, allocated by one PetscMalloc3(). Where B's arrays are ours
  they would go with B, and the block would be assembled from freed memory:

    create the parallel matrix                                 of our type: noted
    MatSeqAIJGetArrayRead(B), a MATSEQAIJ round B's arrays     noted by the door
    MatDestroy(B)                                              what B's arrays lie in is kept here
    MatAssemblyBegin() and MatAssemblyEnd() of the matrix      the block gets PETSc's arrays, what was kept is freed

  With -mat_seqaij_type the parallel matrix is PETSc's, and the block one of ours, which does the last step as it is
  assembled. What is kept for nothing, since B was not given away, goes with the next matrix.
*/
#include "../../mat/impls/aijhybridgpu/storage/storage.h"

/* another matrix is made: who was to take them would have done so */
PetscErrorCode HybGivenDrop(void)
{
  PetscFunctionBegin;
  if (!HybGlueState.given.kept) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.given.kept = PETSC_FALSE;
  HybCallBoth(HybArenaReset(&HybGlueState.given.arrays), HybArenaReset(&HybGlueState.given.moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a parallel matrix of ours has been made, which has no blocks yet; or one is about to be assembled */
PetscErrorCode HybGivenParallel(PetscBool young)
{
  PetscFunctionBegin;
  HybGlueState.given.parallel = young;
  PetscCall(HybGivenDrop());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* are these, of T, the arrays that are kept? */
static PetscBool HybGivenHas(Mat T)
{
  PetscInt    *i, *j;
  PetscScalar *a;

  if (!HybGlueState.given.kept || !T->data) return PETSC_FALSE;
  HybFrameArrays(T, &i, &j, &a);
  return (PetscBool)(i == HybGlueState.given.i && a == HybGlueState.given.a);
}

/* T cannot get others, and can only be destroyed: AIJ would free what is not its own */
static PetscErrorCode HybGivenRefuse(Mat T)
{
  PetscFunctionBegin;
  HybFrameSetPattern(T, NULL, NULL);
  HybFrameSetValues(T, NULL);
  PetscCall(HybGivenDrop());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is about to be destroyed: have its arrays been given away? Then they are no longer A's. Or have they been given to
   A, which an error has kept from being assembled? */
PetscErrorCode HybGivenKeep(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  PetscBool given = (PetscBool)(HYB_GIVES_ARRAYS && HybFrameKnown() && A->data && HybGlueState.given.lent == hyb->made), ours;
  PetscInt *i, *j;

  PetscFunctionBegin;
  if (HybGivenHas(A)) {
    PetscCall(HybGivenRefuse(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* by -mat_seqaij_type, which keeps the parent's name, has another one been made? */
  if (given && !HybGlueState.given.parallel) {
    PetscCall(PetscStrcmp(((PetscObject)A)->type_name, MATSEQAIJ, &given));
    given = (PetscBool)(given && HybGlueState.made > HybGlueState.given.made);
  }
  HybGlueState.given.lent = 0;
  if (!given) PetscFunctionReturn(PETSC_SUCCESS);
  HybFramePattern(A, &i, &j);
  ours = (PetscBool)(hyb->arrays.blocks && i == hyb->adopted);
  if (!ours && !hyb->movedto) PetscFunctionReturn(PETSC_SUCCESS); /* all are AIJ's own */
  PetscCall(HybGivenDrop());
  HybGlueState.given.kept   = PETSC_TRUE;
  HybGlueState.given.i      = i;
  HybGlueState.given.a      = HybFrameValues(A);
  HybGlueState.given.former = hyb->movedto ? hyb->former : NULL;
  HybGlueState.given.ours   = ours;
  HybArenaGive(&hyb->arrays, &HybGlueState.given.arrays);
  HybArenaGive(&hyb->moved, &HybGlueState.given.moved);
  /* who destroys A frees its own array of values, unless it was given away */
  if (hyb->movedto) {
    HybFrameSetValues(A, hyb->former);
    hyb->lives   = hyb->copy.pattern ? HYB_LIVES_COPIED : HYB_LIVES_HOST;
    hyb->movedto = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* T, a MATSEQAIJ, is about to be assembled: are these the arrays that were kept? Then it gets others, which are its
   own. */
PetscErrorCode HybGivenTake(Mat T)
{
  PetscInt    *i, *j, *newi, *newj;
  PetscScalar *newa;
  PetscCount   nnz;

  PetscFunctionBegin;
  if (!HybGivenHas(T)) PetscFunctionReturn(PETSC_SUCCESS);
  HybFramePattern(T, &i, &j);
  nnz = i[T->rmap->n];
  if (HybGlueState.given.ours) {
    /* as AIJ gets them, of one call: PETSc says so of them afterwards */
    const PetscErrorCode ierr = PetscMalloc3(nnz, &newa, nnz, &newj, T->rmap->n + 1, &newi);

    if (ierr) PetscCall(HybGivenRefuse(T));
    PetscCall(ierr);
    PetscCall(PetscArraycpy(newi, i, T->rmap->n + 1));
    PetscCall(PetscArraycpy(newj, j, nnz));
    HybFrameSetPattern(T, newi, newj);
  } else
    newa = HybGlueState.given.former; /* AIJ's own, put aside */
  PetscCall(PetscArraycpy(newa, HybGlueState.given.a, nnz));
  HybFrameSetValues(T, newa);
  PetscCall(HybGivenDrop());
  PetscFunctionReturn(PETSC_SUCCESS);
}
