/*
  eigenvalues.c: what KSPComputeExtremeSingularValues() and KSPComputeEigenvalues() tell after a solve of solve.c.

  Conjugate gradients are Lanczos' process: with a = beta/dpi and b = beta/betaold of iteration i, the preconditioned
  matrix in the space so far is tridiagonal,

    e[i] = sqrt(|b|) / a of the iteration before,   d[i] = sqrt(|b|) e[i] + 1/a

  PETSc's solver notes both in data of its own, so a solve of the plugin's notes them in its. PETSc's functions are
  asked about PETSc's solves. An iteration that ended before it changed x adds no row.

  Memory: two numbers an iteration, up to the limit of iterations. Reference: G. H. Golub, C. F. Van Loan, Matrix
  Computations, 10.2.
*/
#include "cgimpl.h"

/* was the last solve the plugin's? After KSPCGUseSingleReduction() PETSc's function is called without a word here, but
   its iterations are counted. */
static PetscBool LanczosKnows(KSP ksp, const HybCGSolver *cg)
{
  return (PetscBool)(cg->ours && ksp->totalits == cg->lanczos.before + ksp->its);
}

/* of one row at least; ascending */
static PetscErrorCode LanczosEigenvalues(const HybLanczos *l, PetscReal d[], PetscReal *most, PetscReal *least)
{
  PetscReal *e;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(l->n, &e));
  for (PetscInt i = 0; i < l->n; i++) {
    d[i] = l->d[i];
    e[i] = i + 1 < l->n ? l->e[i + 1] : 0;
  }
  HybCallBoth(HybLapackTridiagonal(l->n, d, e), PetscFree(e));
  *least = d[0];
  *most  = d[l->n - 1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPComputeExtremeSingularValues_CG_Hyb(KSP ksp, PetscReal *most, PetscReal *least)
{
  HybCGSolver *cg;
  PetscReal   *d;

  PetscFunctionBegin;
  PetscCall(HybCGGet(ksp, &cg));
  if (!LanczosKnows(ksp, cg)) {
    *most = *least = -1; /* KSPSetUp() was not told: PETSc says so too */
    if (cg->lanczos.extremes) PetscCall((*cg->lanczos.extremes)(ksp, most, least));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *most = *least = 1;
  if (!cg->lanczos.n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(cg->lanczos.n, &d));
  HybCallBoth(LanczosEigenvalues(&cg->lanczos, d, most, least), PetscFree(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPComputeEigenvalues_CG_Hyb(KSP ksp, PetscInt room, PetscReal *r, PetscReal *c, PetscInt *n)
{
  HybCGSolver *cg;
  PetscReal    most, least;

  PetscFunctionBegin;
  PetscCall(HybCGGet(ksp, &cg));
  *n = 0;
  if (!LanczosKnows(ksp, cg)) {
    if (cg->lanczos.eigenvalues) PetscCall((*cg->lanczos.eigenvalues)(ksp, room, r, c, n));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(room >= cg->lanczos.n, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_SIZ, "There are %" PetscInt_FMT " eigenvalues and room for %" PetscInt_FMT, cg->lanczos.n, room);
  *n = cg->lanczos.n;
  PetscCall(PetscArrayzero(c, room));
  if (*n) PetscCall(LanczosEigenvalues(&cg->lanczos, r, &most, &least));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLanczosBegin(KSP ksp, HybLanczos *l)
{
  PetscFunctionBegin;
  l->n     = 0;
  l->noted = ksp->calc_sings;
  if (!l->noted) PetscFunctionReturn(PETSC_SUCCESS);
  if (l->room < ksp->max_it) {
    PetscCall(HybLanczosFree(l));
    PetscCall(PetscMalloc2(ksp->max_it, &l->d, ksp->max_it, &l->e));
    l->room = ksp->max_it;
  }
  l->before = ksp->totalits;
  /* KSPSetUp() puts PETSc's there, if it knew that they are wanted */
  if (ksp->ops->computeextremesingularvalues != KSPComputeExtremeSingularValues_CG_Hyb) {
    l->extremes                            = ksp->ops->computeextremesingularvalues;
    l->eigenvalues                         = ksp->ops->computeeigenvalues;
    ksp->ops->computeextremesingularvalues = KSPComputeExtremeSingularValues_CG_Hyb;
    ksp->ops->computeeigenvalues           = KSPComputeEigenvalues_CG_Hyb;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybLanczosNote(HybLanczos *l, PetscScalar beta, PetscScalar dpi)
{
  const PetscInt i = l->n;
  PetscScalar    a;
  PetscReal      b;

  if (!l->noted) return;
  a       = beta / dpi;
  b       = i ? PetscSqrtReal(PetscAbsScalar(beta / l->beta)) : 0;
  l->e[i] = i ? PetscRealPart(b / l->a) : 0;
  l->d[i] = PetscRealPart((i ? b * (b / l->a) : 0) + (PetscReal)1 / a);
  l->a    = a;
  l->beta = beta;
  l->n++;
}

PetscErrorCode HybLanczosFree(HybLanczos *l)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(l->d, l->e));
  l->room = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
