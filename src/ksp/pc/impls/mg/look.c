/*
  look.c: what of PETSc's multigrid the room cycle does, and what stays PETSc's.

  Before each application what decides is compared with what it was at the last look: objects' numbers and states, and
  the members of PETSc's structures (installed headers) that say what a smoother does. Nothing else is asked for, so
  that an application with nothing new costs a microsecond or two. Where something is another, the smoothers are set up
  as PETSc would in its own cycle, and it is looked anew.
*/
#include "mgimpl.h"

static HybMGObject ObjectSeen(void *object)
{
  const PetscObject o = (PetscObject)object;

  return (HybMGObject){o ? o->id : 0, o ? o->state : 0};
}

/* Not collective. Of parallel matrices HybMatParArraysBegin() tells the rest. */
static PetscErrorCode HasMult(const HybMG *h, Mat A, PetscBool *flg)
{
  PetscFunctionBegin;
  if (h->several)
    PetscCall(HybMatParHasMult(A, flg));
  else
    PetscCall(HybMatHasMult(A, flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A failure of a preconditioner may be known to one process alone: where there are several it says nothing here. */
static PetscErrorCode SolverSeen(const HybMG *h, KSP ksp, HybMGSolver *s)
{
  const PC     pc = ksp->pc;
  MatNullSpace null;
  PetscBool    noisy;

  PetscFunctionBegin;
  PetscCall(HybChebyshevGetState(ksp, &s->changed, &noisy));
  s->ksp   = ObjectSeen(ksp);
  s->pc    = ObjectSeen(pc);
  s->mat   = ObjectSeen(pc ? pc->mat : NULL);
  s->pmat  = ObjectSeen(pc ? pc->pmat : NULL);
  s->flags = HybMGFlags(ksp);
  if (pc && pc->mat) {
    PetscCall(MatGetNullSpace(pc->mat, &null)); /* of a symmetric matrix both are one */
    s->null = ObjectSeen(null);
    s->flags |= null && null->remove ? (PetscInt)1 << 25 : 0;
    PetscCall(MatGetTransposeNullSpace(pc->mat, &null));
    s->transposenull = ObjectSeen(null);
    s->flags |= null && null->remove ? (PetscInt)1 << 26 : 0;
  }
  s->made   = pc ? HybPCMatState(pc) : 0;
  s->max_it = ksp->max_it;
  s->nwork  = ksp->nwork;
  s->first  = HybMGFirstNumber(ksp);
  s->flags |= ksp->guess_zero ? (PetscInt)1 << 29 : 0;
  s->flags |= pc && pc->setupcalled ? (PetscInt)1 << 28 : 0;
  s->flags |= pc && pc->failedreason != PC_NOERROR && !h->several ? (PetscInt)1 << 24 : 0;
  s->flags |= pc && pc->reusepreconditioner ? (PetscInt)1 << 27 : 0;
  s->stage     = ksp->setupstage;
  s->norm      = ksp->normtype;
  s->solve     = ksp->ops->solve;
  s->apply     = pc ? pc->ops->apply : NULL;
  s->converged = (void (*)(void))ksp->converged;
  /* the objects' own states say nothing: an application may change them */
  s->ksp.state = s->pc.state = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is inside the coarsest level's solver, where nobody asks that for a solution */
static PetscErrorCode InnerSeen(const HybMG *h, KSP ksp, HybMGSeen *seen)
{
  Mat F;

  PetscFunctionBegin;
  for (int k = 0; ksp; k++) {
    if (ksp->pc && ksp->pc->setupcalled && ksp->pc->ops->getfactoredmatrix) {
      PetscCall(PCFactorGetMatrix(ksp->pc, &F));
      seen->factor[k] = ObjectSeen(F);
    }
    if (k == HYB_MG_INNER) break;
    PetscCall(HybMGInnerSolver(ksp, &ksp));
    if (ksp) PetscCall(SolverSeen(h, ksp, &seen->inner[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Seen(const HybMG *h, PetscBool device, HybMGSeen *seen)
{
  const PC_MG *mg = HybMGData(h);

  PetscFunctionBegin;
  (void)memset(seen, 0, sizeof(*seen));
  seen->levels = mg->levels ? mg->levels[0]->levels : 0;
  seen->cycles = mg->cyclesperpcapply;
  seen->am     = mg->am;
  seen->stage  = mg->stageApply;
  seen->device = device;
  for (PetscInt l = 0; l < PetscMin(seen->levels, HYB_MG_LEVELS); l++) {
    const PC_MG_Levels *m = mg->levels[l];
    HybMGLevelSeen     *s = &seen->level[l];

    PetscCall(SolverSeen(h, m->smoothd, &s->down));
    if (m->smoothu != m->smoothd) PetscCall(SolverSeen(h, m->smoothu, &s->up));
    s->A           = ObjectSeen(m->A);
    s->interpolate = ObjectSeen(m->interpolate);
    s->restriction = ObjectSeen(m->restrct);
    s->residual    = m->residual;
    s->cycles      = m->cycles;
    if (m->A) PetscCall(HasMult(h, m->A, &s->mult[0]));
    if (m->interpolate) PetscCall(HasMult(h, m->interpolate, &s->mult[1]));
    if (m->restrct) PetscCall(HasMult(h, m->restrct, &s->mult[2]));
  }
  if (h->cycle.inverse) PetscCall(InnerSeen(h, mg->levels[0]->smoothd, seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *why is set where the cycle cannot do this smoother. Its numbers are another question: smoother.c. */
static PetscErrorCode SmootherCovered(KSP ksp, Mat A, const char **why)
{
  Mat              Amat;
  PetscBool        type, jacobi, watched, chebyshev, noisy;
  PetscObjectState changed;

  PetscFunctionBegin;
  PetscCall(HybMGWatched(ksp, &watched));
  PetscCall(KSPGetOperators(ksp, &Amat, NULL));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &type, KSPCHEBYSHEV, KSPRICHARDSON, ""));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPCHEBYSHEV, &chebyshev));
  PetscCall(HybChebyshevGetState(ksp, &changed, &noisy));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  if (!type)
    *why = "a smoother is neither Chebyshev's nor Richardson's method";
  else if (chebyshev && !changed)
    *why = "who sets eigenvalues of Chebyshev's method is not heard: -mat_aijhybridgpu_smoothers 0";
  else if (chebyshev && !noisy)
    *why = "a smoother's eigenvalues are estimated from its right-hand sides";
  else if (!jacobi)
    *why = "a smoother's preconditioner is not Jacobi";
  else if (Amat != A)
    *why = "a smoother has another matrix than the residual";
  else if (ksp->normtype != KSP_NORM_NONE)
    *why = "a smoother has a norm";
  else if (ksp->max_it > HYB_MG_SMOOTHER)
    *why = "a smoother has very many steps";
  else if (watched)
    *why = "a smoother is watched, or has more than steps to do";
  else if (ksp->converged != KSPConvergedSkip && ksp->converged != KSPConvergedDefault)
    *why = "a smoother has a test of its own";
  else if (ksp->reason < 0)
    *why = "a smoother's preconditioner failed";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it one of constants alone, or is there none? *null: there is one */
static PetscBool NullSpaceIsConstant(MatNullSpace space, PetscBool *null)
{
  *null = (PetscBool)(space != NULL);
  return (PetscBool)(!space || (space->has_cnst && !space->n && !space->remove));
}

/* On the finest level constants may be the null space of A, of its transpose or of both: PETSc takes it out of what the
   smoothers' preconditioner makes, and out of their right-hand sides. */
static PetscErrorCode NullSpacesCovered(HybMG *h, Mat A, PetscBool finest, const char **why)
{
  MatNullSpace space[2];
  PetscBool    null[2], constant;

  PetscFunctionBegin;
  PetscCall(MatGetNullSpace(A, &space[0]));
  PetscCall(MatGetTransposeNullSpace(A, &space[1]));
  constant = NullSpaceIsConstant(space[0], &null[0]);
  constant = (PetscBool)(NullSpaceIsConstant(space[1], &null[1]) && constant);
  if (!constant)
    *why = "a null space of more than constants";
  else if (!finest && (null[0] || null[1]))
    *why = "a coarser level's matrix has a null space";
  else if (h->several && (null[0] || null[1]))
    *why = "a null space, and several processes";
  if (finest) {
    if (h->cycle.zeromean != null[0] || h->cycle.zerosum != null[1]) h->cycle.stamp = 0; /* other launches */
    h->cycle.zeromean = null[0];
    h->cycle.zerosum  = null[1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* is M of these layouts' sizes, all processes' and this one's? */
static PetscBool Fits(Mat M, PetscLayout rows, PetscLayout columns)
{
  return (PetscBool)(M->rmap->N == rows->N && M->rmap->n == rows->n && M->cmap->N == columns->N && M->cmap->n == columns->n);
}

/* P: fine x coarse; R: coarse x fine, or fine x coarse, whose transpose is meant */
static PetscErrorCode TransfersCovered(const HybMG *h, const PC_MG_Levels *m, PetscLayout fine, PetscLayout coarse, PetscBool *transposed, const char **why)
{
  PetscBool p, r;

  PetscFunctionBegin;
  PetscCall(HasMult(h, m->interpolate, &p));
  PetscCall(HasMult(h, m->restrct, &r));
  *transposed = (PetscBool)(m->restrct->rmap->N == fine->N && m->restrct->cmap->N == coarse->N);
  if (!p || !r)
    *why = "an interpolation is of another type";
  else if (fine->N == coarse->N || !Fits(m->interpolate, fine, coarse) || !(*transposed ? Fits(m->restrct, fine, coarse) : Fits(m->restrct, coarse, fine)))
    *why = "an interpolation has other sizes than its levels";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CoarsestCovered(KSP ksp, const char **why)
{
  PetscBool preonly, watched;

  PetscFunctionBegin;
  PetscCall(HybMGWatched(ksp, &watched));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, &preonly));
  if (!preonly)
    *why = "the coarsest level's solver iterates";
  else if (watched)
    *why = "the coarsest level's solver is watched";
  else if (ksp->reason < 0)
    *why = "the coarsest level's solver failed";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LevelCovered(HybMG *h, const PC_MG *mg, PetscInt l, const char **why)
{
  const PC_MG_Levels *m = mg->levels[l];
  const PetscInt      k = mg->levels[0]->levels - 1 - l; /* the cycle's number */
  Mat                 A, coarser;
  PetscBool           mult;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(m->smoothd, &A, NULL));
  PetscCall(KSPGetOperators(mg->levels[l - 1]->smoothd, &coarser, NULL));
  PetscCall(HasMult(h, A, &mult));
  if (!mult || !Fits(A, A->rmap, A->rmap))
    *why = "a level's matrix is of another type, or not square";
  else if (m->A != A || m->residual != PCMGResidualDefault)
    *why = "a level has a residual of its own";
  else if (m->cr)
    *why = "compatible relaxation";
  else if (m->eventsmoothsetup || m->eventsmoothsolve || m->eventresidual || m->eventinterprestrict)
    *why = "-pc_mg_log";
  else if (m->cycles > 2)
    *why = "a cycle that is neither V nor W";
  if (!*why) PetscCall(SmootherCovered(m->smoothd, A, why));
  if (!*why && m->smoothu != m->smoothd) PetscCall(SmootherCovered(m->smoothu, A, why));
  if (!*why) PetscCall(NullSpacesCovered(h, A, (PetscBool)!k, why));
  /* Where a level is entered, its vector is zero, of which PETSc hears by the norm. A smoother that is told to begin
     from zero would do so in each of its visits. */
  if (!*why && (m->smoothu->guess_zero || (m->smoothd->guess_zero && k > 0 && mg->levels[l + 1]->cycles > 1))) *why = "a smoother begins from zero where there is a guess";
  if (!*why) PetscCall(TransfersCovered(h, m, A->rmap, coarser->rmap, &h->transposed[k], why));
  h->A[k] = A;
  h->P[k] = m->interpolate;
  h->R[k] = m->restrct;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all matrices of several processes multiply arrays of their devices */
static PetscErrorCode ArraysCovered(const HybMG *h, PetscInt n, const char **why)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    const Mat M[] = {h->A[k], h->P[k], h->R[k]};

    for (int i = 0; i < 3; i++) {
      PetscBool may;
      HybExec   x;

      PetscCall(HybMatParArraysBegin(M[i], NULL, &x, &may));
      if (!may) *why = "a matrix that multiplies on the host";
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* smoothers are set up as PETSc does before its own cycle */
static PetscErrorCode LevelsCovered(HybMG *h, const char **why)
{
  const PC_MG   *mg     = HybMGData(h);
  const PetscInt levels = mg->levels[0]->levels;

  PetscFunctionBegin;
  for (PetscInt l = 0; l < levels; l++) {
    PC_MG_Levels *m = mg->levels[l];

    PetscCall(KSPSetUp(m->smoothd));
    PetscCall(KSPSetUpOnBlocks(m->smoothd));
    if (m->smoothu != m->smoothd) PetscCall(KSPSetUp(m->smoothu));
    if (!m->A) {
      PetscCall(KSPGetOperators(m->smoothu, &m->A, NULL));
      PetscCall(PetscObjectReference((PetscObject)m->A));
    }
  }
  for (PetscInt l = levels - 1; l > 0 && !*why; l--) PetscCall(LevelCovered(h, mg, l, why));
  PetscCall(KSPGetOperators(mg->levels[0]->smoothd, &h->A[levels - 1], NULL));
  if (!*why) PetscCall(CoarsestCovered(mg->levels[0]->smoothd, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMGCovered(HybMG *h, const char **why)
{
  const PC_MG   *mg     = HybMGData(h);
  const PetscInt levels = mg->levels ? mg->levels[0]->levels : 0;

  PetscFunctionBegin;
  if (mg->am != PC_MG_MULTIPLICATIVE)
    *why = "a cycle that is not multiplicative";
  else if (levels < 2 || levels > HYB_MG_LEVELS)
    *why = "a single level";
  else if (mg->cyclesperpcapply != 1)
    *why = "several cycles an application";
  else if (mg->stageApply)
    *why = "-pc_mg_log";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMGAgree(h, LevelsCovered(h, why), why));
  if (h->several && !*why) PetscCall(ArraysCovered(h, levels - 1, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* once for a PC */
static PetscErrorCode Ask(HybMG *h)
{
  static const char *const precisions[] = {"double", "single", "half", "HybMGPrecision", "", NULL};
  PetscEnum                precision    = (PetscEnum)0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetBool(((PetscObject)h->pc)->options, ((PetscObject)h->pc)->prefix, "-pc_mg_aijhybridgpu", &h->on, NULL));
  PetscCall(PetscOptionsGetEnum(((PetscObject)h->pc)->options, ((PetscObject)h->pc)->prefix, "-pc_mg_aijhybridgpu_precision", precisions, &precision, NULL));
  h->wanted = (PetscBool)(precision != 0);
  h->half   = (PetscBool)(precision == 2);
  h->asked  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGLook(HybMG *h, Vec b, Vec x, PetscBool *covered)
{
  const PC_MG *mg  = HybMGData(h);
  const char  *why = NULL;
  HybExec      exec;
  Mat          A;
  PetscMPIInt  size;
  PetscBool    ours = PETSC_FALSE, device = PETSC_TRUE;

  PetscFunctionBegin;
  *covered = PETSC_FALSE;
  if (!h->asked) PetscCall(Ask(h));
  if (!h->on || !mg->levels || !mg->levels[0]->smoothd) PetscFunctionReturn(PETSC_SUCCESS);
  A = h->pc->pmat;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)h->pc), &size));
  h->several = PETSC_FALSE;
  if (A && size > 1) PetscCall(HybMatParHasMult(A, &h->several));
  if (A) PetscCall(HasMult(h, A, &ours));
  if (!ours && h->ours) PetscCall(HybMGRelease(h));
  h->ours = ours;
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  if (h->lent) /* by a solver that applies this one to other vectors as well, in its test of convergence */
    exec = h->cycle.exec;
  else if (h->several)
    PetscCall(HybMatParArraysBegin(A, b, &exec, &device));
  else
    PetscCall(HybMatGetMultExec(A, b, x, &exec));
  if (!device) {
    if (!h->told) PetscCall(PetscInfo(h->pc, "The cycle is PETSc's own: several processes without a device each\n"));
    h->told = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Seen(h, exec.backend->device, &h->now));
  if (h->known && !memcmp(&h->now, &h->seen, sizeof(h->now))) {
    *covered             = h->covered;
    h->cycle.exec.stream = exec.stream;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  h->known = h->covered = PETSC_FALSE;
  PetscCall(HybMGCovered(h, &why));
  if (!why) PetscCall(HybMGBuild(h, &exec, &why));
  if (!why) PetscCall(HybMGKnownToSmoothers(h->pc));
  if (why && !h->told) PetscCall(PetscInfo(h->pc, "The cycle is PETSc's own: %s\n", why));
  h->told = (PetscBool)(why != NULL);
  if (why) PetscCall(HybMGAgree(h, HybMGRelease(h), &why)); /* on all processes */
  PetscCall(Seen(h, exec.backend->device, &h->seen));
  h->known   = PETSC_TRUE;
  h->covered = *covered = (PetscBool)!why;
  PetscFunctionReturn(PETSC_SUCCESS);
}
