/*
  KSPCHEBYSHEV for matrices of the type: PETSc's own, without its one loop on the host.

  For its estimate of eigenvalues it fills a vector with noise, a hash of each entry's number, on the host. The device
  makes the same numbers (petsc/ksp/noise.c): for the length of the set-up PETSc is told to start from the right-hand
  side, and that is a vector of noise, which the estimator keeps as it would keep PETSc's. All else is as PETSc left it
  afterwards: so residuals, eigenvalues and what is viewed are the same to the last bit, but for what estimator.c does.

  Whether noise is wanted, and whether eigenvalues were given, can be told and not asked: the option and the functions
  that tell are watched.

  Where PCGAMG gave the eigenvalues of its prolongators for the first set-up, there is no estimator before the first one
  with new values, which creates it. It is created here before, as PETSc would a moment later: a page-locked vector and
  the loop over it took half of that set-up.
*/
#include <petsc/private/kspimpl.h>
#include "aijhybridgpu/private/hybmat.h"
#include "../../../smoothers.h"

PETSC_EXTERN PetscErrorCode KSPCreate_Chebyshev(KSP);

#define HYB_CHEBYSHEV_KEY "HybChebyshev"

typedef PetscErrorCode (*HybSetEigenvaluesFn)(KSP, PetscReal, PetscReal);
typedef PetscErrorCode (*HybEstEigSetFn)(KSP, PetscReal, PetscReal, PetscReal, PetscReal);

/* PETSc's own operations, the same for all objects */
static struct {
  PetscErrorCode (*setup)(KSP);
  PetscErrorCode (*setfromoptions)(KSP, HybOptionItems);
  PetscErrorCode (*destroy)(KSP);
  HybUseNoisyFn       usenoisy;
  HybSetEigenvaluesFn seteigenvalues;
  HybEstEigSetFn      esteigset;
} petsc;

typedef struct {
  PetscBool        noisy;
  PetscBool        given;   /* by the program: nothing is estimated unless it asks for that */
  PetscObjectState changed; /* of the last event after which the method's numbers may be others */
  PetscObjectId    noise;   /* the vector of the last one */
  PetscObjectId    id[2];   /* the operators that the last estimate was made for */
  PetscObjectState state[2];
} HybChebyshev;

/* what is composed with a KSP of the type as long as it has that */
static PetscErrorCode HybChebyshevGet(KSP ksp, HybChebyshev **c)
{
  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)ksp, HYB_CHEBYSHEV_KEY, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One count for all: a KSP that gets the type anew does not begin where it was */
static void HybChebyshevChanged(HybChebyshev *c)
{
  static PetscObjectState changes;

  c->changed = ++changes;
}

PetscErrorCode HybChebyshevGetState(KSP ksp, PetscObjectState *state, PetscBool *noisy)
{
  HybChebyshev *c;

  PetscFunctionBegin;
  PetscCall(HybChebyshevGet(ksp, &c));
  *state = c ? c->changed : 0;
  *noisy = (PetscBool)(c && c->noisy);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Without noise an estimate starts from the right-hand side of the last solve. Multigrid's cycle, which makes none, has
   it. */
static PetscErrorCode HybChebyshevSetNoisy(KSP ksp, HybChebyshev *c, PetscBool use)
{
  PetscFunctionBegin;
  if (c->noisy && !use) PetscCall(HybMGGiveRightHandSide(ksp));
  c->noisy = use;
  HybChebyshevChanged(c);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPChebyshevEstEigSetUseNoisy_Hyb(KSP ksp, PetscBool use)
{
  HybChebyshev *c;

  PetscFunctionBegin;
  PetscCall((*petsc.usenoisy)(ksp, use));
  PetscCall(HybChebyshevGet(ksp, &c));
  PetscCall(HybChebyshevSetNoisy(ksp, c, use));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPChebyshevSetEigenvalues_Hyb(KSP ksp, PetscReal emax, PetscReal emin)
{
  HybChebyshev *c;

  PetscFunctionBegin;
  PetscCall((*petsc.seteigenvalues)(ksp, emax, emin));
  PetscCall(HybChebyshevGet(ksp, &c));
  c->given = (PetscBool)(emax != 0 && emin != 0);
  HybChebyshevChanged(c);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPChebyshevEstEigSet_Hyb(KSP ksp, PetscReal a, PetscReal b, PetscReal c, PetscReal d)
{
  HybChebyshev *cheby;

  PetscFunctionBegin;
  PetscCall((*petsc.esteigset)(ksp, a, b, c, d));
  PetscCall(HybChebyshevGet(ksp, &cheby));
  HybChebyshevChanged(cheby);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc reads the option where there is an estimator, which this may have created */
static PetscErrorCode KSPSetFromOptions_Chebyshev_Hyb(KSP ksp, HybOptionItems items)
{
  HybChebyshev *c;
  KSP           estimator;
  PetscBool     noisy;

  PetscFunctionBegin;
  PetscCall((*petsc.setfromoptions)(ksp, items));
  PetscCall(HybChebyshevGet(ksp, &c));
  PetscCall(KSPChebyshevEstEigGetKSP(ksp, &estimator));
  noisy = c->noisy;
  if (estimator) PetscCall(PetscOptionsGetBool(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_chebyshev_esteig_noisy", &noisy, NULL));
  PetscCall(HybChebyshevSetNoisy(ksp, c, noisy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Will the set-up have an estimator? *estimator: it, or NULL: PETSc creates it. PCGAMG's eigenvalues stand in its place
   with Jacobi alone; whether there are some, PETSc knows. */
static PetscErrorCode HybChebyshevEstimates(KSP ksp, const HybChebyshev *c, KSP *estimator, PetscBool *estimates)
{
  PetscBool jacobi;
  PC        pc;

  PetscFunctionBegin;
  PetscCall(KSPChebyshevEstEigGetKSP(ksp, estimator));
  *estimates = (PetscBool)(*estimator != NULL);
  if (*estimator || c->given) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  if (jacobi) {
    PetscCall(KSPChebyshevEstEigSet(ksp, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE));
    PetscCall(KSPChebyshevEstEigGetKSP(ksp, estimator));
  }
  *estimates = (PetscBool)(!jacobi || *estimator);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is an estimate due that starts from noise, with an operator of ours that is on the device of at least one process?
   The same answer on all. */
static PetscErrorCode HybChebyshevLook(KSP ksp, HybChebyshev *c, KSP *estimator, PetscBool *lend)
{
  Mat            mat[2], local;
  MatNullSpace   nullspace;
  HybExec        x;
  PetscBool      same = PETSC_TRUE, parallel, estimates = PETSC_FALSE;
  PetscInt64     any = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *lend = PETSC_FALSE;
  if (!c->noisy || !HybNoiseKnown()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybChebyshevEstimates(ksp, c, estimator, &estimates));
  if (!estimates) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetOperators(ksp, &mat[0], &mat[1]));
  if (!mat[0] || !mat[1]) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc says so */
  for (int k = 0; k < 2; k++) {
    const PetscObjectId id = ((PetscObject)mat[k])->id;
    PetscObjectState    state;

    PetscCall(PetscObjectStateGet((PetscObject)mat[k], &state));
    same        = (PetscBool)(same && id == c->id[k] && state == c->state[k]);
    c->id[k]    = id;
    c->state[k] = state;
  }
  /* some releases take the null space out of the noise: those do it themselves */
  PetscCall(MatGetNullSpace(mat[0], &nullspace));
  PetscCall(PetscObjectTypeCompare((PetscObject)mat[0], "mpiaijhybridgpu", &parallel));
  if (nullspace || (same && !parallel)) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybMatGetLocal(mat[0], &local);
  if (!ierr && local && !same) {
    ierr = HybMatGetSmootherExec(local, &x);
    if (!ierr) any = x.backend->device ? 1 : 0;
  }
  if (parallel) ierr = HybAgreeMax(PetscObjectComm((PetscObject)ksp), ierr, "A smoother's estimate of eigenvalues", 1, &any);
  PetscCall(ierr);
  *lend = (PetscBool)(any != 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector for the noise: the one of the last time, which the estimator still has. Device memory takes long to
   allocate. */
static PetscErrorCode HybChebyshevGetNoise(KSP ksp, HybChebyshev *c, KSP estimator, Mat A, Vec *noise)
{
  PetscBool   same = PETSC_FALSE; /* on all processes or on none */
  PetscLayout old, rows;

  PetscFunctionBegin;
  *noise = estimator ? estimator->vec_rhs : NULL;
  if (*noise && ((PetscObject)*noise)->id == c->noise) {
    PetscCall(MatGetLayouts(A, &rows, NULL));
    PetscCall(VecGetLayout(*noise, &old));
    PetscCall(PetscLayoutCompare(old, rows, &same));
  }
  if (same) {
    PetscCall(PetscObjectReference((PetscObject)*noise));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (ksp->vec_sol)
    PetscCall(VecDuplicate(ksp->vec_sol, noise));
  else
    PetscCall(MatCreateVecs(A, noise, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetUp_Chebyshev_Hyb(KSP ksp)
{
  HybChebyshev  *c;
  PetscBool      lend, ours = PETSC_FALSE;
  KSP            estimator;
  Mat            A;
  Vec            noise = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybChebyshevGet(ksp, &c));
  HybChebyshevChanged(c);
  PetscCall(HybChebyshevLook(ksp, c, &estimator, &lend));
  if (!lend) {
    PetscCall((*petsc.setup)(ksp));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  ierr = HybChebyshevGetNoise(ksp, c, estimator, A, &noise);
  if (!ierr) ierr = HybMatNoise(A, noise);
  c->noise = 0; /* until all have theirs */
  ierr     = HybEstimatorBegin(ksp, estimator, ierr, &ours);
  if (!ierr) c->noise = ((PetscObject)noise)->id;
  if (!ierr) ierr = HybNoiseLend(ksp, noise, petsc.setup, petsc.usenoisy);
  if (ours) (void)HybEstimatorEnd();
  PetscCall(VecDestroy(&noise));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_Chebyshev_Hyb(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall((*petsc.destroy)(ksp));
  PetscCall(PetscObjectCompose((PetscObject)ksp, HYB_CHEBYSHEV_KEY, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPCreate_Chebyshev_Hyb(KSP ksp)
{
  HybChebyshev *c;

  PetscFunctionBegin;
  PetscCall(KSPCreate_Chebyshev(ksp));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPChebyshevEstEigSetUseNoisy_C", &petsc.usenoisy));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPChebyshevSetEigenvalues_C", &petsc.seteigenvalues));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPChebyshevEstEigSet_C", &petsc.esteigset));
  if (!petsc.usenoisy || !petsc.seteigenvalues || !petsc.esteigset) PetscFunctionReturn(PETSC_SUCCESS);
  petsc.setup          = ksp->ops->setup;
  petsc.setfromoptions = ksp->ops->setfromoptions;
  petsc.destroy        = ksp->ops->destroy;
  PetscCall(PetscNew(&c));
  c->noisy = PETSC_TRUE;
  HybChebyshevChanged(c);
  PetscCall(HybContainerCompose((PetscObject)ksp, HYB_CHEBYSHEV_KEY, c, HybContainerFree));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPChebyshevEstEigSetUseNoisy_C", KSPChebyshevEstEigSetUseNoisy_Hyb));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPChebyshevSetEigenvalues_C", KSPChebyshevSetEigenvalues_Hyb));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPChebyshevEstEigSet_C", KSPChebyshevEstEigSet_Hyb));
  ksp->ops->setup          = KSPSetUp_Chebyshev_Hyb;
  ksp->ops->setfromoptions = KSPSetFromOptions_Chebyshev_Hyb;
  ksp->ops->destroy        = KSPDestroy_Chebyshev_Hyb;
  PetscFunctionReturn(PETSC_SUCCESS);
}
