/*
  The largest and the smallest singular value of D^-1 A on a Krylov space, by which PETSc damps the smoothing of the prolongator and sets its Chebyshev smoothers: ten steps of GMRES,
  or of CG where A is known to be SPD, with Jacobi from the left, on PETSc's noise. This is PETSc's own KSP, with the same choices and under the same prefix as PETSc's code has it.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #include <petsc/private/kspimpl.h>

  #define ESTIMATE_STEPS 10
  #if PETSC_VERSION_LT(3, 23, 0)
    #define HYB_CURRENT PETSC_DEFAULT
  #else
    #define HYB_CURRENT PETSC_CURRENT
  #endif

static PetscErrorCode HybEstimateByKSP(PC pc, Mat A, KSP ksp, Vec b, Vec x, PetscReal *emin, PetscReal *emax)
{
  const char *prefix;
  PetscBool   set, spd;
  PC          jacobi;

  PetscFunctionBegin;
  PetscCall(KSPSetNoisy_Private(A, b));
  PetscCall(KSPSetNestLevel(ksp, pc->kspnestlevel));
  PetscCall(PCGetOptionsPrefix(pc, &prefix));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPAppendOptionsPrefix(ksp, "pc_gamg_esteig_"));
  PetscCall(MatIsSPDKnown(A, &set, &spd));
  if (set && spd) PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetErrorIfNotConverged(ksp, pc->erroriffailure));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &jacobi));
  PetscCall(PCSetType(jacobi, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, HYB_CURRENT, HYB_CURRENT, HYB_CURRENT, ESTIMATE_STEPS));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetComputeSingularValues(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPCheckSolve(ksp, pc, x));
  PetscCall(KSPComputeExtremeSingularValues(ksp, emax, emin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGEstimate(PC pc, Mat A, const HybExec *x, PetscReal *emin, PetscReal *emax)
{
  KSP            ksp;
  Vec            b, u;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &b, &u));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  ierr = HybEstimateByKSP(pc, A, ksp, b, u, emin, emax);
  (void)KSPDestroy(&ksp);
  (void)VecDestroy(&b);
  (void)VecDestroy(&u);
  PetscCall(ierr);
  PetscCall(PetscInfo(pc, "Smooth P0: max eigen=%e min=%e PC=%s\n", (double)*emax, (double)*emin, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
