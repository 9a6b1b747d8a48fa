/*
  What the plugin keeps with a PC of type gamg, the events of its setup, errors that all processes share, and which
  edges of a level's graph are weak, where it has a threshold, what -info says of those that are left, and whether edges
  of one direction get their transpose.
*/
#include "gamgimpl.h"

#if HYB_GAMG
PetscLogEvent HybGAMGEvents[HYB_PHASES];

PetscErrorCode HybGAMGGet(PC pc, HybGAMG **h)
{
  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)pc, HYB_GAMG_NAME, h));
  PetscCheck(*h, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "A PC of type gamg lost what libaijhybridgpu keeps with it");
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGAgree(PC pc, PetscErrorCode ierr)
{
  PetscFunctionBegin;
  PetscCall(HybAgree(PetscObjectComm((PetscObject)pc), ierr, "The setup of GAMG"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGAgreeWhy(PC pc, PetscErrorCode ierr, const char **why)
{
  PetscBool ours = (PetscBool) !*why;

  PetscFunctionBegin;
  PetscCall(HybAgreeAll(PetscObjectComm((PetscObject)pc), ierr, "The setup of GAMG", &ours));
  if (!ours && !*why) *why = "another process's part of the matrix";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGNear(HybGAMG *h, HybArena near, HybScalar *b)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&h->near.arena));
  h->near.arena = near;
  h->near.b     = b;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGInfoEdges(PC pc, const HybGAMG *h, PetscCount left, PetscCount whole, PetscCount close)
{
  PetscFunctionBegin;
  PetscCall(PetscInfo(pc, "The threshold %g leaves %" PetscCount_FMT " of %" PetscCount_FMT " entries of the graph, the diagonal's included\n", (double)h->edges.threshold, left, whole));
  if (close && HybGAMGData(pc)->current_level) PetscCall(PetscInfo(pc, "%" PetscCount_FMT " edges are within %g of the threshold: there rounding can decide\n", close, HYB_AGG_CLOSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGModuli(const HybGAMG *h, const char **why)
{
  static PetscBool tried, alike;

  PetscFunctionBegin;
  if (!h->exec.backend->device) PetscFunctionReturn(PETSC_SUCCESS);
  if (!tried) PetscCall(HybAggModuliAlike(&h->exec, &alike));
  tried = PETSC_TRUE; /* all of a process's devices are alike in that */
  if (!alike) *why = "a threshold, and the device's moduli of complex numbers are not those of the host's C library to the last bit";
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
