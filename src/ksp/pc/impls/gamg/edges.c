/*
  Which edges of a level's graph are weak, where it has a threshold, what -info says of those that are left, and whether
  edges of one direction get their transpose; on one process and on several.
*/
#include "gamgimpl.h"

#if HYB_GAMG
PetscErrorCode HybGAMGInfoEdges(PC pc, const HybGAMG *h, PetscCount left, PetscCount whole, PetscCount close)
{
  PetscFunctionBegin;
  PetscCall(PetscInfo(pc, "The threshold %g leaves %" PetscCount_FMT " of %" PetscCount_FMT " entries of the graph, the diagonal's included\n", (double)h->edges.threshold, left, whole));
  if (close && HybGAMGData(pc)->current_level) PetscCall(PetscInfo(pc, "%" PetscCount_FMT " edges are within %g of the threshold: there rounding can decide\n", close, HYB_AGG_CLOSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGEdges(PC pc, HybGAMG *h, Mat A)
{
  const PC_GAMG *gamg = HybGAMGData(pc);
  PetscBool      set, symmetric;

  PetscFunctionBegin;
  h->edges.threshold = gamg->threshold[gamg->current_level];
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  if (set && symmetric) h->edges.symmetrize = PETSC_FALSE; /* PETSc does not add the transpose then */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGUnites(const HybGAMG *h, Mat A, PetscBool *unites)
{
  PetscBool set, same;

  PetscFunctionBegin;
  PetscCall(MatIsStructurallySymmetricKnown(A, &set, &same));
  *unites = (PetscBool)(h->edges.symmetrize && (h->block.bs > 1 || !set || !same));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
