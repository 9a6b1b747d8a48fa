/*
  PCMG, and what is built on it (PCGAMG, PCEXOTIC, PCML), on matrices of the type: set up by PETSc, applied by the room
  cycle, where all that decides is covered (look.c); else by PETSc's own code.

    PCCreate_MG_Hyb:  PCCreate_MG(pc), then pc->ops->apply is wrapped
    PCApply_MG_Hyb:   something is new?  the smoothers are set up as in PETSc's own cycle, and all is looked at again
                      covered:           the matrices' arrays and plans are lent, one cycle, and what a program may ask
                                         of the levels' solvers (iterations, reason) is as PETSc leaves it
                      else:              PETSc's PCApply_MG()

  What users see is the same: the method, its options, -ksp_view. The levels' own events are not logged where the cycle
  is ours: PCApply of the whole is. With -pc_mg_aijhybridgpu 0, under the PC's prefix, all is PETSc's.
*/
#include "mgimpl.h"

PETSC_EXTERN PetscErrorCode PCCreate_MG(PC); /* exported; no header has it */

/* PETSc's own operations, the same for all objects */
static struct {
  PetscErrorCode (*apply)(PC, Vec, Vec);
  PetscErrorCode (*reset)(PC);
  PetscErrorCode (*destroy)(PC);
} petsc;

static PetscErrorCode HybMGDestroy(void *pointer)
{
  HybMG *h = (HybMG *)pointer;

  PetscFunctionBegin;
  PetscCall(HybMGRelease(h));
  PetscCall(PetscFree(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* as KSPSolve() would have left it after so many visits */
static void Visited(KSP ksp, PetscInt visits, PetscBool smoother)
{
  /* without a step Chebyshev's method has diverged, Richardson's has not */
  const PetscBool none = (PetscBool)(smoother && !ksp->max_it && strcmp(((PetscObject)ksp)->type_name, KSPRICHARDSON));

  ksp->its    = smoother ? ksp->max_it : 1;
  ksp->reason = none ? KSP_DIVERGED_ITS : KSP_CONVERGED_ITS;
  ksp->totalits += visits * ksp->its;
}

/* times: 1, or -1 where an application is not to have been; the coarsest level's solver has counted for itself where it
   was asked */
static void AllVisited(const HybMG *h, PetscInt times)
{
  const PC_MG *mg     = HybMGData(h);
  PetscInt     visits = times;

  for (PetscInt l = mg->levels[0]->levels - 1; l >= 0; l--) {
    const PC_MG_Levels *m = mg->levels[l];

    if (l == 0) {
      if (h->cycle.inverse || times < 0) Visited(m->smoothd, visits, PETSC_FALSE);
    } else {
      Visited(m->smoothd, visits, PETSC_TRUE);
      Visited(m->smoothu, visits, PETSC_TRUE);
    }
    if (l > 1) visits *= m->cycles;
  }
}

static PetscErrorCode HybMGApplied(HybMG *h)
{
  const PetscLogDouble flops = HybCycleFlops(&h->cycle);

  PetscFunctionBegin;
  if (h->cycle.exec.backend->device && PetscDefined(HAVE_DEVICE))
    PetscCall(PetscLogGpuFlops(flops));
  else
    PetscCall(PetscLogFlops(flops));
  AllVisited(h, 1);
  PetscCall(HybCountGAMG(HYB_CYCLES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrices are lent; arrays where the cycle executes, of so many columns, 0: one vector. Of several processes all
   come here, and one that failed before tells the others in the cycle's products. What is known is no reason for its
   failure. */
static PetscErrorCode HybMGApply(HybMG *h, PetscInt columns, PetscErrorCode before, const HybScalar *b, HybScalar *x)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  /* a solver on the coarsest level may want to time its own */
  if (h->cycle.inverse) before = HybErrorFirst(before, PetscLogGpuTimeBegin());
  ierr = HybCycleApply(columns ? &h->columns.cycle : &h->cycle, before, b, x);
  if (h->cycle.inverse) PetscCall(PetscLogGpuTimeEnd());
  if (ierr && !h->several) h->known = PETSC_FALSE;
  PetscCall(ierr);
  if (!columns) h->applied++; /* that of columns reads no plans */
  for (PetscInt c = 0; c < PetscMax(columns, 1); c++) PetscCall(HybMGApplied(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMGApplyVectors(HybMG *h, Vec b, Vec x)
{
  const HybExec *exec = &h->cycle.exec;
  HybVecAccess   vb = {.v = NULL}, vx = {.v = NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybMGLend(h);
  if (!ierr) ierr = HybVecGet(exec, b, PETSC_TRUE, PETSC_FALSE, &vb);
  if (!ierr) ierr = HybVecGet(exec, x, PETSC_FALSE, PETSC_TRUE, &vx);
  if (!ierr || h->several) ierr = HybMGApply(h, 0, ierr, (const HybScalar *)vb.there, (HybScalar *)vx.there);
  ierr = HybVecRestore(ierr, &vx);
  PetscCall(HybVecRestore(ierr, &vb));
  PetscCall(HybMGReturn(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_MG_Hyb(PC pc, Vec b, Vec x)
{
  HybMG         *h;
  PetscBool      covered;
  PetscInt       lent;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)pc, HYB_MG_NAME, &h));
  PetscCall(HybMGLook(h, b, x, &covered));
  if (!covered) {
    if (h->ours) PetscCall(HybCountGAMG(HYB_CYCLES_LEFT));
    PetscCall((*petsc.apply)(pc, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybMGLeaveRightHandSide(pc, b));
  lent    = h->lent;
  ierr    = HybMGApplyVectors(h, b, x);
  h->lent = lent;
  if (ierr && !h->several) h->known = PETSC_FALSE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGArraysBegin(PC pc, Mat A, Vec b, Vec x, Vec r, PetscBool willing, HybMG **h)
{
  MPI_Comm    mpi = PetscObjectComm((PetscObject)pc);
  PetscMPIInt size;
  PetscBool   may;

  PetscFunctionBegin;
  *h = NULL;
  if (pc->ops->apply != PCApply_MG_Hyb) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(mpi, &size));
  if (size > 1) PetscCall(HybAgreeAll(mpi, PETSC_SUCCESS, "", &willing));
  if (!willing) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybContainerGet((PetscObject)pc, HYB_MG_NAME, h));
  PetscCall(HybMGLook(*h, b, x, &may));
  if (!may || (*h)->A[0] != A) *h = NULL;
  if (*h) PetscCall(HybMGLeaveRightHandSide(pc, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGArraysLend(HybMG *h, HybCycle **cycle, const HybCSR **csr, HybSpMV **mult)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *cycle      = &h->cycle;
  *csr        = h->cycle.single ? &h->narrow[0][HYB_CYCLE_A].lent : &h->cycle.level[0].A;
  h->borrower = mult ? HYB_MG_MULTIPLIES : HYB_MG_READS_NO_PLANS;
  ierr        = HybMGLend(h);
  h->borrower = HYB_MG_CYCLE;
  if (ierr) h->lent--;
  PetscCall(ierr);
  if (mult) *mult = h->mult;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGArraysApply(HybMG *h, PetscInt columns, PetscErrorCode before, const PetscScalar *b, PetscScalar *x)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  before = HybErrorFirst(before, PetscLogEventBegin(PC_Apply, h->pc, 0, 0, 0));
  ierr   = HybMGApply(h, columns, before, (const HybScalar *)b, (HybScalar *)x);
  PetscCall(PetscLogEventEnd(PC_Apply, h->pc, 0, 0, 0));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGArraysApplied(HybMG *h)
{
  PetscFunctionBegin;
  h->applied++;
  PetscCall(HybMGApplied(h));
  /* who has a graph of its own needs none of the cycle's for what is left */
  if (!h->cycle.graph) h->cycle.applied = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybMGArraysInVain(const HybMG *h)
{
  AllVisited(h, -1);
}

PetscErrorCode HybMGForget(PC pc)
{
  HybMG *h = NULL;

  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)pc, HYB_MG_NAME, &h));
  if (h) PetscCall(HybMGRelease(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_MG_Hyb(PC pc)
{
  PetscFunctionBegin;
  PetscCall(HybMGForget(pc));
  PetscCall((*petsc.reset)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCSetType() to another type comes here too */
static PetscErrorCode PCDestroy_MG_Hyb(PC pc)
{
  PetscFunctionBegin;
  PetscCall(HybMGForget(pc));
  PetscCall((*petsc.destroy)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_MG_Hyb(PC pc)
{
  HybMG *h;

  PetscFunctionBegin;
  PetscCall(PCCreate_MG(pc));
  PetscCall(PetscNew(&h));
  h->pc = pc;
  h->on = PETSC_TRUE;
  PetscCall(HybContainerCompose((PetscObject)pc, HYB_MG_NAME, h, HybMGDestroy));
  petsc.apply      = pc->ops->apply;
  petsc.reset      = pc->ops->reset;
  petsc.destroy    = pc->ops->destroy;
  pc->ops->apply   = PCApply_MG_Hyb;
  pc->ops->reset   = PCReset_MG_Hyb;
  pc->ops->destroy = PCDestroy_MG_Hyb;
  /* the one function of a preconditioner that KSPMatSolve() calls before it looks how to solve */
  pc->ops->setuponblocks = HybCGChoose;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGRegister(void)
{
  PetscFunctionBegin;
  PetscCall(KSPInitializePackage());
  PetscCall(PCRegister(PCMG, PCCreate_MG_Hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}
