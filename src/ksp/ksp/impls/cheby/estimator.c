/*
  KSPCHEBYSHEV's estimator of eigenvalues for new values of a matrix of the type: ten steps of GMRES with Jacobi, of
  which PETSc needs the Hessenberg matrix alone. The room krylov builds that by Arnoldi's process, with one wait at the
  end where PETSc waits three times a step, and without PETSc's vectors.

  PETSc's set-up stays the driver: for its length the estimator's solve, its set-up and the function that asks for
  eigenvalues are ours, which are in a table that anybody may write. On several processes with a device each the host
  waits once a step, for a sum over all of them (../../../arnoldi.c). Eigenvalues come from the LAPACK that PETSc uses,
  as PETSc's do. Where the process breaks down, or a step leaves hardly more than rounding, PETSc's own functions do
  it all, as they do for estimators that are not plain GMRES: other options, CG for matrices known to be SPD.
*/
#include <petsc/private/kspimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybmat.h"
#include "../../../smoothers.h"

/* the estimate that is under way: one at a time */
static struct {
  KSP            ksp;
  struct _KSPOps ops;     /* the estimator's own */
  HybExec        exec;    /* of a parallel matrix: where its arrays are; else empty */
  PetscBool      skipped; /* its own set-up was left out */
  PetscBool      found;   /* H is of this solve */
  PetscInt       steps;
  PetscScalar    H[(HYB_KRYLOV_STEPS + 1) * HYB_KRYLOV_STEPS];
} Estimate;

static PetscErrorCode EstimatorArnoldi(KSP e, Mat A, PetscInt *done)
{
  HybExec  x;
  HybSpMV *mult;
  HybCSR   csr;

  PetscFunctionBegin;
  if (Estimate.exec.backend) {
    PetscCall(HybEstimatorArnoldiPar(A, &Estimate.exec, e->vec_rhs, Estimate.steps, Estimate.H, done));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybMatGetSmootherExec(A, &x));
  PetscCall(HybMatGetMult(A, &x, PETSC_FALSE, &csr, &mult));
  HybCallBoth(HybEstimatorArnoldi(&x, &csr, mult, e->vec_rhs, Estimate.steps, Estimate.H, done), HybMatRestoreCSR(A, &x, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EstimatorSolve(KSP e)
{
  Mat      A;
  PetscInt done = 0;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(e->pc, &A, NULL));
  PetscCall(EstimatorArnoldi(e, A, &done));
  Estimate.found = (PetscBool)(done == Estimate.steps && !HybKrylovSpent(done, (const HybScalar *)Estimate.H));
  if (Estimate.found) {
    e->its    = Estimate.steps;
    e->reason = KSP_DIVERGED_ITS; /* all steps were done, as PETSc says of them */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (Estimate.skipped) PetscCall((*Estimate.ops.setup)(e));
  Estimate.skipped = PETSC_FALSE;
  PetscCall((*Estimate.ops.solve)(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EstimatorSetUp(KSP e)
{
  PetscFunctionBegin;
  Estimate.skipped = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EstimatorEigenvalues(KSP e, PetscInt nmax, PetscReal *r, PetscReal *c, PetscInt *neig)
{
  PetscFunctionBegin;
  if (!Estimate.found) {
    PetscCall((*Estimate.ops.computeeigenvalues)(e, nmax, r, c, neig));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(nmax >= Estimate.steps, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Room for %" PetscInt_FMT " eigenvalues, not for %" PetscInt_FMT, nmax, Estimate.steps);
  PetscCall(HybLapackHessenberg(Estimate.steps, Estimate.H, r, c));
  *neig = Estimate.steps;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* classical Gram-Schmidt in one pass? */
static PetscErrorCode EstimatorOrthogonalizes(KSP e, PetscBool *once)
{
  PetscFunctionBegin;
#if !HYB_HAS_ORTHOGONALIZE
  {
    KSPGMRESCGSRefinementType refinement;
    PetscErrorCode (*orthogonalization)(KSP, PetscInt);

    PetscCall(KSPGMRESGetCGSRefinementType(e, &refinement));
    PetscCall(KSPGMRESGetOrthogonalization(e, &orthogonalization));
    *once = (PetscBool)(refinement == KSP_GMRES_CGS_REFINE_NEVER && orthogonalization == KSPGMRESClassicalGramSchmidtOrthogonalization);
  }
#else
  {
    KSPOrthogonalizationCGSRefinementType refinement;
    KSPOrthogonalizationFn               *orthogonalization;

    PetscCall(KSPOrthogonalizationGetCGSRefinementType(e, &refinement));
    PetscCall(KSPOrthogonalizationGet(e, &orthogonalization));
    *once = (PetscBool)(refinement == KSP_ORTHOGONALIZATION_CGS_REFINE_NEVER && orthogonalization == KSPOrthogonalizationClassicalGramSchmidt);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: is the preconditioner Jacobi, and the matrix ours and on a device? */
static PetscErrorCode EstimatorSuits(KSP ksp, PetscBool *suits)
{
  Mat          A, P, local;
  HybExec      x;
  PCJacobiType type;
  PetscBool    jacobi, useabs, fix, set, spd, mult;

  PetscFunctionBegin;
  *suits = PETSC_FALSE;
  PetscCall(KSPGetOperators(ksp, &A, &P));
  if (A != P || !HybLapackHasHessenberg()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetLocal(A, &local));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  PetscCall(MatIsSPDKnown(P, &set, &spd));
  /* one that is kept has the diagonal of older values */
  if (!local || !jacobi || (set && spd) || ksp->pc->reusepreconditioner) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatHasMult(local, &mult));
  PetscCall(PCJacobiGetType(ksp->pc, &type));
  PetscCall(PCJacobiGetUseAbs(ksp->pc, &useabs));
  PetscCall(PCJacobiGetFixDiagonal(ksp->pc, &fix));
  if (!mult || type != PC_JACOBI_DIAGONAL || useabs || !fix) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetSmootherExec(local, &x));
  if (x.backend->device) PetscCall(local == A ? HybMatAscends(A, &x, suits) : HybMatAscendsPar(A, &x, suits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same of all processes; *x: of a parallel matrix, where its arrays are to be */
static PetscErrorCode EstimatorMay(KSP ksp, PetscErrorCode before, HybExec *x, PetscBool *may)
{
  const PetscErrorCode ierr = HybErrorFirst(before, EstimatorSuits(ksp, may));
  PetscMPIInt          size;
  Mat                  A;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(HybAgreeAll(PetscObjectComm((PetscObject)ksp), ierr, "An estimate of eigenvalues", may));
  if (size == 1 || !*may) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(HybMatParArraysBegin(A, NULL, x, may));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it GMRES as KSPCHEBYSHEV makes it? All of it is alike on all processes. */
static PetscErrorCode EstimatorIsPlain(KSP ksp, KSP e, PetscBool *plain)
{
  Mat       A;
  PetscBool gmres, once = PETSC_FALSE;
  PetscInt  restart;

  PetscFunctionBegin;
  *plain = PETSC_FALSE;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  /* as PETSc would a moment later */
  if (ksp->setfromoptionscalled && !e->setfromoptionscalled) PetscCall(KSPSetFromOptions(e));
  if (!((PetscObject)e)->type_name) PetscCall(KSPSetType(e, KSPGMRES));
  PetscCall(PetscObjectTypeCompare((PetscObject)e, KSPGMRES, &gmres));
  if (!gmres) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGMRESGetRestart(e, &restart));
  PetscCall(EstimatorOrthogonalizes(e, &once));
  *plain = (PetscBool)(e->max_it >= 1 && e->max_it <= PetscMin(restart, HYB_KRYLOV_STEPS) && e->max_it * 3 <= A->rmap->N && once && !e->numbermonitors && !e->guess && e->guess_zero && !e->calc_ritz && e->rtol <= 1e-12 && e->pc_side_set != PC_RIGHT && e->pc_side_set != PC_SYMMETRIC && (e->normtype_set == KSP_NORM_DEFAULT || e->normtype_set == KSP_NORM_PRECONDITIONED) && e->ops->computeeigenvalues && e->ops->solve);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybEstimatorBegin(KSP ksp, KSP e, PetscErrorCode before, PetscBool *ours)
{
  HybExec x = {NULL, NULL, HYB_MEM_HOST};

  PetscFunctionBegin;
  *ours = PETSC_FALSE;
  if (!e || Estimate.ksp) {
    PetscCall(HybAgree(PetscObjectComm((PetscObject)ksp), before, "An estimate of eigenvalues"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(EstimatorMay(ksp, before, &x, ours));
  if (*ours) PetscCall(EstimatorIsPlain(ksp, e, ours));
  if (!*ours) PetscFunctionReturn(PETSC_SUCCESS);
  Estimate.ksp               = e;
  Estimate.exec              = x;
  Estimate.ops               = *e->ops;
  Estimate.skipped           = PETSC_FALSE;
  Estimate.found             = PETSC_FALSE;
  Estimate.steps             = e->max_it;
  e->ops->solve              = EstimatorSolve;
  e->ops->computeeigenvalues = EstimatorEigenvalues;
  if (e->setupstage == KSP_SETUP_NEW) e->ops->setup = EstimatorSetUp;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybEstimatorEnd(void)
{
  KSP e = Estimate.ksp;

  PetscFunctionBegin;
  Estimate.ksp               = NULL;
  e->ops->solve              = Estimate.ops.solve;
  e->ops->setup              = Estimate.ops.setup;
  e->ops->computeeigenvalues = Estimate.ops.computeeigenvalues;
  /* its own set-up is still to be done, by whoever needs it */
  if (Estimate.skipped) e->setupstage = KSP_SETUP_NEW;
  PetscFunctionReturn(PETSC_SUCCESS);
}
