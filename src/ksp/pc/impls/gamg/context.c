/*
  What the plugin keeps with a PC of type gamg, the events of its setup, and errors that all processes share.
*/
#include "gamgimpl.h"

#if HYB_GAMG
PetscLogEvent HYB_GAMGLook, HYB_GAMGAggregates, HYB_GAMGTentative, HYB_GAMGEstimate, HYB_GAMGSmooth;

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
#endif
