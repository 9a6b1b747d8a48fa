/*
  converged.c: what KSPCG does with the numbers of an iteration: PETSc's tests, in PETSc's order, with its words.
*/
#include "cgimpl.h"

PetscReal HybCGNorm(KSP ksp, const PetscScalar *s, PetscInt stride)
{
  switch (ksp->normtype) {
  case KSP_NORM_PRECONDITIONED:
    return PetscSqrtReal(PetscRealPart(s[HYB_CG_ZZ * stride]));
  case KSP_NORM_UNPRECONDITIONED:
    return PetscSqrtReal(PetscRealPart(s[HYB_CG_RR * stride]));
  default:
    return PetscSqrtReal(PetscAbsScalar(s[HYB_CG_BETA * stride]));
  }
}

PetscErrorCode HybCGBegin(KSP ksp, const PetscScalar *s, PetscInt stride, PetscInt i, KSPConvergedReason *reason)
{
  const PetscReal beta = PetscRealPart(s[HYB_CG_BETA * stride]), old = PetscRealPart(s[HYB_CG_BETAOLD * stride]);

  PetscFunctionBegin;
  if (s[HYB_CG_BETA * stride] == (PetscScalar)0) {
    *reason = KSP_CONVERGED_ATOL;
    PetscCall(PetscInfo(ksp, "converged due to beta = 0\n"));
  } else if (!PetscDefined(USE_COMPLEX) && i > 0 && beta * old < 0) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite preconditioner, beta %g, betaold %g", (double)beta, (double)old);
    *reason = KSP_DIVERGED_INDEFINITE_PC;
    PetscCall(PetscInfo(ksp, "diverging due to indefinite preconditioner\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGIndefinite(KSP ksp, const PetscScalar *s, PetscInt stride, KSPConvergedReason *reason)
{
  const PetscReal dpi = PetscRealPart(s[HYB_CG_DPI * stride]), old = PetscRealPart(s[HYB_CG_DPIOLD * stride]);

  PetscFunctionBegin;
#if HYB_HAS_NEG_CURVE
  if (ksp->converged_neg_curve) {
    *reason = KSP_CONVERGED_NEG_CURVE;
    PetscCall(PetscInfo(ksp, "converged due to negative curvature: %g\n", (double)dpi));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite matrix, dpi %g, dpiold %g", (double)dpi, (double)old);
  *reason = KSP_DIVERGED_INDEFINITE_MAT;
  PetscCall(PetscInfo(ksp, "diverging due to indefinite matrix\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybCGAsksForB(KSP ksp)
{
  /* without a context PETSc's function is an error */
  return (PetscBool)(!ksp->guess_zero && ksp->cnvP && !((KSPConvergedDefaultCtx *)ksp->cnvP)->initialrtol);
}

PetscErrorCode HybCGFirstTest(KSP ksp, PetscReal b, PetscReal r)
{
  KSPConvergedDefaultCtx *ctx    = (KSPConvergedDefaultCtx *)ksp->cnvP;
  const PetscBool         maxits = ctx->convmaxits;
  PetscErrorCode          ierr;

  PetscFunctionBegin;
  PetscCall(PetscInfo(ksp, "user has provided nonzero initial guess, compared with the norm of the right-hand side, %g\n", (double)b));
  if (b == 0) b = r; /* any guess is as good then */
  ksp->rnorm0 = ctx->mininitialrtol ? PetscMin(b, r) : b;
  ksp->ttol   = PetscMax(ksp->rtol * ksp->rnorm0, ksp->abstol);
  if (ksp->chknorm >= 0) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc tests no residual before that iteration, */
#if HYB_HAS_MIN_IT
  if (ksp->min_it > 0) PetscFunctionReturn(PETSC_SUCCESS); /* nor before this one */
#endif
  /* PETSc's function is called as for iteration 1: for iteration 0 it would form the norm of b itself. With a limit of
     one iteration convmaxits would take that for the last one. */
  ctx->convmaxits = PETSC_FALSE;
  ierr            = (*ksp->converged)(ksp, 1, r, &ksp->reason, ksp->cnvP);
  ctx->convmaxits = maxits;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
