/*
  watched.c: what a level's solver does beside solving: who watches it, and steps of programs and of PETSc's on its way.
  And which solver is inside it.
*/
#include "mgimpl.h"

/* what a solver may be told to do that the cycle does not: one bit each, less than 25; 0: nothing */
PetscInt HybMGFlags(KSP ksp)
{
  const PC        pc   = ksp->pc;
  const PetscBool on[] = {
    (PetscBool)(ksp->guess != NULL),
    ksp->guess_knoll,
    (PetscBool)(ksp->numbermonitors > 0),
    (PetscBool)(ksp->numberreasonviews > 0),
    ksp->transpose_solve,
    ksp->calc_sings,
    ksp->calc_ritz,
    (PetscBool)(ksp->presolve != NULL),
    (PetscBool)(ksp->postsolve != NULL),
    (PetscBool)(ksp->err_hist != NULL || ksp->res_hist != NULL),
    (PetscBool)(ksp->dmActive != 0),
    (PetscBool)(ksp->view || ksp->viewPre || ksp->viewRate || ksp->viewMat || ksp->viewPMat || ksp->viewRhs || ksp->viewSol || ksp->viewMatExp || ksp->viewEV || ksp->viewSV || ksp->viewEVExp || ksp->viewFinalRes || ksp->viewPOpExp),
    (PetscBool)(ksp->pc_side != PC_LEFT),
    (PetscBool)(pc && pc->modifysubmatrices != NULL),
    (PetscBool)(pc && pc->ops->presolve != NULL),
#if HYB_HAS_DIAGONALSCALE
    ksp->dscale,
    (PetscBool)(pc && pc->diagonalscale),
#endif
#if HYB_HAS_PC_PRESOLVE
    (PetscBool)(pc && pc->presolve != NULL),
#endif
#if HYB_HAS_REASON_VIEWER
    (PetscBool)(ksp->convergedreasonviewer != NULL),
#endif
  };
  PetscInt flags = 0;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(on); k++) flags |= on[k] ? (PetscInt)1 << k : 0;
  return flags;
}

/* older releases look for this option at each solve */
PetscErrorCode HybMGWatched(KSP ksp, PetscBool *watched)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_converged_reason", watched));
  if (HybMGFlags(ksp) || (ksp->pc && ksp->pc->failedreason != PC_NOERROR)) *watched = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGInnerSolver(KSP ksp, KSP *inner)
{
  PetscBool blocks, redundant;
  PetscInt  n;
  KSP      *sub;

  PetscFunctionBegin;
  *inner = NULL;
  if (!ksp->pc || !ksp->pc->setupcalled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCBJACOBI, &blocks));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCREDUNDANT, &redundant));
  if (blocks) {
    PetscCall(PCBJacobiGetSubKSP(ksp->pc, &n, NULL, &sub));
    if (n == 1) *inner = sub[0];
  } else if (redundant)
    PetscCall(PCRedundantGetKSP(ksp->pc, inner));
  PetscFunctionReturn(PETSC_SUCCESS);
}
