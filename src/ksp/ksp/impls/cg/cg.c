/*
  KSPCG on a device with multigrid for a preconditioner: when it is the plugin's (solve.c) and when PETSc's.

  It takes over where nothing of a program's is called in between: no monitors, PETSc's own test of convergence, no
  trust region, no null space but constants, on several processes none; and where PCApply() would be the room cycle's
  (HybMGArraysBegin()). Else PETSc's own function is called. Vectors that live on the host are sent once and come back
  at the end.
*/
#include "cgimpl.h"

PETSC_EXTERN PetscErrorCode KSPCreate_CG(KSP);

typedef PetscErrorCode (*HybSetRealFn)(KSP, PetscReal);

/* PETSc's own operations, the same for all objects */
static struct {
  PetscErrorCode (*solve)(KSP);
  PetscErrorCode (*reset)(KSP);
  PetscErrorCode (*destroy)(KSP);
  PetscErrorCode (*setfromoptions)(KSP, HybOptionItems);
  PetscErrorCode (*settype)(KSP, KSPCGType);
  HybSetRealFn setradius, settarget;
  PetscErrorCode (*getobjective)(KSP, PetscReal *);
} petsc;

/* collective: of what belongs to all processes too */
static PetscErrorCode HybCGReset(HybCGSolver *cg)
{
  PetscFunctionBegin;
  HybCallBoth(HybCGRelease(cg), HybCommSumDestroy(&cg->sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCGFree(void *pointer)
{
  HybCGSolver         *cg   = (HybCGSolver *)pointer;
  const PetscErrorCode ierr = HybCGReset(cg);

  PetscFunctionBegin;
  PetscCall(HybLanczosFree(&cg->lanczos));
  PetscCall(PetscFree(cg));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which inner products: PETSc has no function that tells, so whoever says it is heard */
static PetscErrorCode KSPCGSetType_Hyb(KSP ksp, KSPCGType type)
{
  HybCGSolver *cg;

  PetscFunctionBegin;
  PetscCall((*petsc.settype)(ksp, type));
  PetscCall(HybCGGet(ksp, &cg));
  PetscCall(HybCGGraphForget(cg)); /* its launches are of the other kind */
  cg->numbers.hermitian = (PetscBool)(type == KSP_CG_HERMITIAN);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_CG_Hyb(KSP ksp, HybOptionItems items)
{
  KSPCGType type;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall((*petsc.setfromoptions)(ksp, items));
  PetscCall(PetscOptionsGetEnum(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_cg_type", KSPCGTypes, (PetscEnum *)&type, &set));
  if (set) PetscCall(KSPCGSetType_Hyb(ksp, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a radius, or a target of the objective function */
static PetscErrorCode HybCGTrust(KSP ksp, HybSetRealFn petscs, PetscReal value)
{
  HybCGSolver *cg;

  PetscFunctionBegin;
  PetscCall((*petscs)(ksp, value));
  PetscCall(HybCGGet(ksp, &cg));
  cg->trust = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetRadius_Hyb(KSP ksp, PetscReal radius)
{
  return HybCGTrust(ksp, petsc.setradius, radius);
}

static PetscErrorCode KSPCGSetObjectiveTarget_Hyb(KSP ksp, PetscReal target)
{
  return HybCGTrust(ksp, petsc.settarget, target);
}

static PetscErrorCode KSPCGGetObjFcn_Hyb(KSP ksp, PetscReal *objective)
{
  HybCGSolver *cg;

  PetscFunctionBegin;
  PetscCall(HybCGGet(ksp, &cg));
  if (cg->ours)
    *objective = cg->objective;
  else
    PetscCall((*petsc.getobjective)(ksp, objective));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_CG_Hyb(KSP ksp)
{
  HybCGSolver *cg;

  PetscFunctionBegin;
  PetscCall(HybCGGet(ksp, &cg));
  PetscCall(HybCGReset(cg));
  if (petsc.reset) PetscCall((*petsc.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPSetType() to another type comes here too */
static PetscErrorCode KSPDestroy_CG_Hyb(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(HybCGForget(ksp));
  PetscCall((*petsc.destroy)(ksp));
  PetscCall(PetscObjectCompose((PetscObject)ksp, HYB_CG_KEY, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* and nothing asked for but the solution and eigenvalues? *constants: they are the matrix' null space */
static PetscErrorCode SolveIsPlain(KSP ksp, const HybCGSolver *cg, PetscBool *constants, PetscBool *plain)
{
  Mat          A;
  MatNullSpace null;
  PetscMPIInt  size;

  PetscFunctionBegin;
  *plain = (PetscBool)(HybCGIsPlain(ksp, cg) && (!ksp->calc_sings || HybLapackHasTridiagonal()));
  if (!*plain) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &null));
  *constants = (PetscBool)(null && null->has_cnst);
  *plain     = (PetscBool)(!null || (size == 1 && null->has_cnst && !null->n && !null->remove));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_CG_Hyb(KSP ksp)
{
  HybCGSolver *cg;
  PetscBool    may, constants;

  PetscFunctionBegin;
  PetscCall(HybCGGet(ksp, &cg));
  cg->ours = PETSC_FALSE;
  PetscCall(SolveIsPlain(ksp, cg, &constants, &may));
  if (may) PetscCall(HybCGSolve(ksp, cg, constants, &may));
  if (!may) PetscCall((*petsc.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPCreate_CG_Hyb(KSP ksp)
{
  HybCGSolver *cg;

  PetscFunctionBegin;
  PetscCall(KSPCreate_CG(ksp));
  petsc.solve   = ksp->ops->solve;
  petsc.reset   = ksp->ops->reset;
  petsc.destroy = ksp->ops->destroy;
  PetscCall(PetscNew(&cg));
  PetscCall(HybContainerCompose((PetscObject)ksp, HYB_CG_KEY, cg, HybCGFree));
  cg->solve = KSPSolve_CG_Hyb;
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGSetRadius_C", &petsc.setradius));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGSetObjectiveTarget_C", &petsc.settarget));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", &petsc.getobjective));
  if (PetscDefined(USE_COMPLEX)) {
    PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGSetType_C", &petsc.settype));
    PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGSetType_C", KSPCGSetType_Hyb));
    petsc.setfromoptions     = ksp->ops->setfromoptions;
    ksp->ops->setfromoptions = KSPSetFromOptions_CG_Hyb;
    cg->numbers.hermitian    = PETSC_TRUE; /* PETSc's default */
  }
  if (petsc.setradius) PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGSetRadius_C", KSPCGSetRadius_Hyb));
  if (petsc.settarget) PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_Hyb));
  if (petsc.getobjective) PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", KSPCGGetObjFcn_Hyb));
  ksp->ops->solve   = cg->solve;
  ksp->ops->reset   = KSPReset_CG_Hyb;
  ksp->ops->destroy = KSPDestroy_CG_Hyb;
  PetscCall(HybCGKnow(ksp, HybCGChooseMatSolve));
  PetscFunctionReturn(PETSC_SUCCESS);
}
