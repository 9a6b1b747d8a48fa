/*
  solve.c: one solve by KSPCG on a device with multigrid for a preconditioner: PETSc's method, with one wait in an
  iteration.

  PETSc asks for each inner product where it stands, three in an iteration, and each is a wait for the device. Here the
  numbers stay where the vectors are: the kernels that need them read them there, and the host gets all of an iteration
  at its end, where PETSc would test for convergence. The order of operations is PETSc's.

    r = b - A x;  z = M r;  beta = z r, |z|                             wait: PETSc's test
    repeat:  x += (beta/dpi) p, of the iteration before;  p = z + (beta/betaold) p
             w = A p;  dpi = p w
             r -= (beta/dpi) w                                          unless dpi says that PETSc would stop
             z = M r;  beta = z r, |z|                                  wait: what PETSc tests on the way, then its test
    x += (beta/dpi) p

  PETSc moves x and r together. Here x waits for the pass that reads p anyway. The pass over r makes the cycle's first
  step too, which is one over r.

  Products are those of PETSc's kind: for complex numbers with conjugates, unless KSPCGSetType() says symmetric.

  What PETSc finds before it changes x (p A p is 0, changes its sign or is not finite) the kernels find as well, and
  change nothing. One application of M is in vain then, and one where the norm of r ends the iterations, which PETSc
  tests before it makes z.

  On smaller matrices all launches of an iteration, the cycle's too, are one graph from the second solve on: launching
  them takes longer than what they do. It is made again where anything that it names has moved. There x is a vector of
  the plugin's own, since programs solve for this and that one.

  Between two graphs the device would have nothing to do until the host has read the numbers. So the next graph is
  launched before, where the norms so far say that this iteration will hardly be the last; from a zero guess the first
  one is launched before any norm is read. If there is none to come, the next one is in vain. The device knows the goal,
  or sets it by the first norm as PETSc does: it does for x what is left to do, keeps r, and applies M to it once more.
  p and w are other vectors then.

  Of several processes each has its part of the vectors, and their cards add the products among themselves
  (HybCommSumApply()), where peer access serves: still one wait. All have the same norms, so they launch the same
  iterations before it, also one that could not make a graph. A process that fails goes on to that wait, so that the
  others hear of it in what they wait for. Of a solve with a first guess the norm of b, which PETSc's first test forms,
  is formed the same way before: one application of M and one wait more.
*/
#include "cgimpl.h"

#define HYB_CG_GRAPH 5000000 /* rows up to which an iteration is a graph */
/* The first iteration is expected to leave this part of the norm at least, a later one this part of what the best one
   so far has left */
#define HYB_CG_FIRST_LEAVES 0.02
#define HYB_CG_LATER_LEAVES 0.5

PetscErrorCode HybCGGraphForget(HybCGSolver *cg)
{
  PetscFunctionBegin;
  if (cg->graph) PetscCall(cg->keep.exec.backend->cycle->forget(&cg->keep.exec, &cg->graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGRelease(HybCGSolver *cg)
{
  const PetscErrorCode ierr = HybCGGraphForget(cg), second = HybArenaReset(&cg->keep);

  PetscFunctionBegin;
  cg->numbers.s = NULL;
  cg->x         = NULL;
  cg->left.part = NULL;
  cg->solved    = PETSC_FALSE;
  PetscCall(HybErrorFirst(ierr, second));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one solve */
typedef struct {
  KSP           ksp;
  HybCGSolver  *cg;
  HybMG        *mg;
  HybCycle     *cycle;
  const HybCSR *A; /* its matrix, where one process has it, and the plan of products with it */
  HybSpMV      *mult;
  PetscBool     sums, leaves;  /* inner products are sums of what is left; products with A leave it */
  PetscBool     several, lent; /* there are several processes; the cycle's arrays are lent */
  PetscCount    n, nnz;        /* rows of this process, and their nonzeros */
  /* this process's first error: it does nothing any more but what the others wait for */
  PetscErrorCode failed;
  PetscBool      told;         /* and a sum has told them */
  PetscErrorCode heard;        /* another one's, before the wait at which it is this one's too */
  PetscInt64     iterations;   /* that were begun */
  PetscInt       queued, read; /* iterations that were launched, and whose numbers are asked for */
  PetscBool      ahead;        /* the next one may be launched before the numbers are read */
  PetscInt       ended;        /* of this one x's last step is on its way, should the device take it for the last */
  PetscReal      steepest;     /* the least that a norm is expected to be, over the one before it */
  HybVecAccess   b, x, r, z, p;
  HybScalar     *sum;                  /* where x is while it iterates */
  PetscBool      null;                 /* constants are A's null space */
  PetscBool      vain;                 /* PETSc would not have made the last z */
  PetscReal      norm;                 /* of b, after SolveNormOfB() */
  PetscScalar    host[HYB_CG_NUMBERS]; /* the numbers at the last wait */
} Solve;

/* what a process does alone, and what it does after its failure as well */
#define SOLVE_DO(s, call)                   \
  do {                                      \
    if (!(s)->failed) (s)->failed = (call); \
  } while (0)
#define SOLVE_ALWAYS(s, call)              \
  do {                                     \
    const PetscErrorCode ierr_ = (call);   \
                                           \
    if (!(s)->failed) (s)->failed = ierr_; \
  } while (0)

/* exec: the cycle's own, or what captures an iteration. There nothing is logged, and a process that fails is told of by
   whoever captures. */
static PetscBool SolveRuns(const Solve *s, const HybExec *exec)
{
  return (PetscBool)(exec == &s->cycle->exec);
}

/* of one process; what conjugate gradients ask for is left on the way where that can be */
static PetscErrorCode SolveMultAlone(const Solve *s, const HybExec *exec, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  void *const    stream = s->mult->exec.stream;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  s->mult->exec.stream = exec->stream;
  s->mult->left        = s->leaves ? &s->cg->left : NULL;
  ierr                 = HybSpMVApply(s->mult, s->A, x, mode, y, z);
  s->mult->left        = NULL;
  s->mult->exec.stream = stream;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SolveMult(Solve *s, const HybExec *exec, const PetscScalar *x, HybSpMVMode mode, const PetscScalar *y, PetscScalar *z)
{
  const PetscBool runs = SolveRuns(s, exec);
  Mat             A;

  SOLVE_ALWAYS(s, KSPGetOperators(s->ksp, &A, NULL));
  if (runs) SOLVE_ALWAYS(s, PetscLogEventBegin(MAT_Mult, A, 0, 0, 0));
  if (!s->several)
    SOLVE_DO(s, SolveMultAlone(s, exec, (const HybScalar *)x, mode, (const HybScalar *)y, (HybScalar *)z));
  else if (runs || !s->failed)
    SOLVE_ALWAYS(s, HybCycleMult(s->cycle, exec, s->failed, (const HybScalar *)x, mode, (const HybScalar *)y, (HybScalar *)z));
  if (runs) SOLVE_DO(s, PetscLogGpuFlops(2.0 * s->nnz));
  if (runs) SOLVE_ALWAYS(s, PetscLogEventEnd(MAT_Mult, A, 0, 0, 0));
}

/* n numbers from this one on become sums over the processes */
static void SolveSum(Solve *s, const HybExec *exec, HybCGNumber first, PetscInt n)
{
  if (!s->several || (s->failed && !SolveRuns(s, exec))) return;
  if (s->failed) s->told = PETSC_TRUE;
  SOLVE_ALWAYS(s, HybCommSumApply(s->cg->sum, exec, s->failed, n, s->cg->numbers.s + first));
}

/* z loses its mean, where PETSc takes it out of what the preconditioner made */
static PetscErrorCode SolveZeroMean(const Solve *s, const HybExec *exec)
{
  static const int weight[HYB_CYCLE_TOTALS] = {1, 0, 0, 0};
  HybScalar       *z                        = (HybScalar *)s->z.there;

  PetscFunctionBegin;
  if (!s->null) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(exec->backend->cycle->sum(exec, &s->cg->sums, 0, s->n, z));
  PetscCall(exec->backend->cycle->shift(exec, &s->cg->sums, weight, s->n, z, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the products of z and r, and of p and w: of what was left on the way, or read again */
static PetscErrorCode SolveProducts(const Solve *s, const HybExec *exec, const HybScalar *z, const HybScalar *r)
{
  const HybKrylovOps *ops = exec->backend->krylov;

  PetscFunctionBegin;
  if (s->sums)
    PetscCall(ops->cgproductsleft(exec, &s->cg->numbers, s->n, s->cycle->sumsleft ? NULL : z, r, s->cg->left.part));
  else
    PetscCall(ops->cgproducts(exec, &s->cg->numbers, s->n, z, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveCurvature(const Solve *s, const HybExec *exec, const HybScalar *p, const HybScalar *w)
{
  const HybKrylovOps *ops = exec->backend->krylov;

  PetscFunctionBegin;
  if (s->sums)
    PetscCall(ops->cgcurvatureleft(exec, &s->cg->numbers, s->n, s->leaves ? NULL : p, w, s->cg->left.part));
  else
    PetscCall(ops->cgcurvature(exec, &s->cg->numbers, s->n, p, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what follows on z = M r: the products */
static void SolveFollow(Solve *s, const HybExec *exec)
{
  SOLVE_DO(s, SolveZeroMean(s, exec));
  SOLVE_DO(s, SolveProducts(s, exec, (const HybScalar *)s->z.there, (const HybScalar *)s->r.there));
  SolveSum(s, exec, HYB_CG_BETA, HYB_CG_SUMS);
  if (s->several && s->cg->numbers.letters) SOLVE_DO(s, exec->backend->krylov->cgconclude(exec, &s->cg->numbers));
}

/* z = M r, and the products */
static void SolvePrecondition(Solve *s)
{
  if (!s->failed || s->several) SOLVE_ALWAYS(s, HybMGArraysApply(s->mg, 0, s->failed, s->r.there, s->z.there));
  SolveFollow(s, &s->cycle->exec);
  SOLVE_DO(s, PetscLogGpuFlops(6.0 * s->n));
}

/* from z to the next r; x gets what is left of the step before */
static void SolveStep(Solve *s, const HybExec *exec)
{
  const HybKrylovOps *ops = exec->backend->krylov;
  HybScalar          *r = (HybScalar *)s->r.there, *z = (HybScalar *)s->z.there, *p = (HybScalar *)s->p.there;
  HybSpMVFirst        first;
  /* of several processes the finest level may be in the cycle's own graph, which has its first step */
  const PetscBool begins = (PetscBool)((!s->several || !SolveRuns(s, exec)) && HybCycleFirst(s->cycle, z, &first));

  SOLVE_DO(s, ops->cgdirection(exec, &s->cg->numbers, s->n, z, p, s->sum));
  SolveMult(s, exec, s->p.there, HYB_SPMV_SET, NULL, s->z.there); /* w is where z was, as PETSc's is */
  SOLVE_DO(s, SolveCurvature(s, exec, p, z));
  SolveSum(s, exec, HYB_CG_DPI, 1);
  SOLVE_DO(s, ops->cgupdate(exec, &s->cg->numbers, s->n, z, r, begins ? &first : NULL));
  s->cycle->begun = begins;
  if (SolveRuns(s, exec)) SOLVE_DO(s, PetscLogGpuFlops(8.0 * s->n));
}

/* another process's error, of which the cycle's exchanges or the sums have heard */
static PetscErrorCode SolveHeard(Solve *s)
{
  const PetscErrorCode ierr = HybCycleHeard(s->cycle);

  return HybErrorFirst(ierr, HybHaloHeard(s->cg->sum->halo));
}

/* An iteration of several processes by one that has failed: the others hear of it in what they wait for */
static void SolveVain(Solve *s)
{
  if (!s->failed) s->failed = PETSC_ERR_LIB;
  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  SolveStep(s, &s->cycle->exec);
  SolvePrecondition(s);
  (void)SolveHeard(s);
  (void)PetscPopErrorHandler();
  s->iterations++;
}

/* The wait, after which all processes know of a failure. One that cannot fetch the numbers, or make the last sum, does
   not know whether the others go on: it makes the next iteration, and SolveTogether() does the rest. */
static PetscErrorCode SolveFetch(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;

  PetscFunctionBegin;
  if (s->ahead)
    SOLVE_DO(s, exec->backend->read((int)(s->read % HYB_LETTERS), s->host, sizeof(s->host)));
  else
    SOLVE_DO(s, exec->backend->copy(exec, s->host, s->cg->numbers.s, sizeof(s->host), HYB_COPY_DEVICE_TO_HOST));
  if (s->several && s->failed && !s->told) SolveVain(s);
  SOLVE_ALWAYS(s, s->heard);
  if (s->several) SOLVE_ALWAYS(s, SolveHeard(s));
  PetscCall(s->failed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The end of several processes' iterations: those that are behind make more in vain, so that their exchanges are the
   same in number. before: this process's error, which becomes one of all. */
static PetscErrorCode SolveTogether(Solve *s, PetscErrorCode before)
{
  MPI_Comm   mpi     = PetscObjectComm((PetscObject)s->ksp);
  PetscInt64 most[2] = {s->iterations, before != PETSC_SUCCESS};

  PetscFunctionBegin;
  PetscCall(HybAgreeMax(mpi, PETSC_SUCCESS, "", 2, most));
  while (s->iterations < most[0]) SolveVain(s);
  if (most[1]) { /* all know of it: the next solve does not hear of it again */
    HybHaloForget(s->cg->sum->halo);
    HybCycleForget(s->cycle);
    PetscCall(HybAgree(mpi, before, "A solve"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all launches of an iteration, on a stream that is being captured */
static PetscErrorCode SolveRecordIteration(Solve *s, const HybExec *captured)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  SolveStep(s, captured);
  SOLVE_DO(s, HybCycleRecord(s->cycle, captured, (HybScalar *)s->r.there, (HybScalar *)s->z.there));
  SolveFollow(s, captured);
  ierr      = s->failed;
  s->failed = PETSC_SUCCESS; /* the caller has it */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* it captures them, with the exchanges of several processes */
static PetscErrorCode SolveCapture(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;
  HybExec        captured;
  PetscBool      may  = PETSC_FALSE;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (s->several) ierr = HybCycleRecordBegin(s->cycle, exec);
  if (s->several && !ierr) ierr = HybHaloRecord(s->cg->sum->halo, exec, PETSC_FALSE);
  if (!ierr) ierr = exec->backend->cycle->capture(exec, &captured, &may);
  if (may) ierr = exec->backend->cycle->captured(&captured, SolveRecordIteration(s, &captured), &s->cg->graph);
  if (s->several) HybCycleRecordEnd(s->cycle);
  if (s->several) s->cg->summed = HybHaloRecorded(s->cg->sum->halo, PETSC_FALSE);
  if (!s->cg->graph) s->cycle->stamp = 0; /* another solver's graph has lost its numbers of exchanges */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an iteration by the graph */
static PetscErrorCode SolveLaunch(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;

  PetscFunctionBegin;
  if (s->several) PetscCall(HybCycleReplay(s->cycle, exec));
  if (s->several) PetscCall(HybHaloReplay(s->cg->sum->halo, exec, PETSC_FALSE));
  PetscCall(exec->backend->cycle->launch(exec, s->cg->graph, s->several));
  if (s->several) HybCycleReplayed(s->cycle);
  if (s->several) HybHaloReplayed(s->cg->sum->halo, PETSC_FALSE, s->cg->summed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the graph of an iteration is there, and names what this solve has */
static PetscErrorCode SolveGraph(Solve *s)
{
  HybCGSolver   *cg       = s->cg;
  const HybExec *exec     = &s->cycle->exec;
  const void    *names[7] = {s->cycle, s->r.there, s->z.there, s->p.there, exec->backend, cg->numbers.letters, NULL};

  PetscFunctionBegin;
  if (s->null) names[6] = &cg->sums;
  if (cg->graph && !memcmp(names, cg->names, sizeof(names)) && cg->stamp == s->cycle->stamp) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCGGraphForget(cg));
  if (!cg->solved || s->sum != cg->x || !HybCycleIsRecordable(s->cycle)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SolveCapture(s));
  (void)memcpy(cg->names, names, sizeof(names));
  cg->stamp = s->cycle->stamp;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SolveQueue(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;

  s->queued++;
  if (s->cg->graph) SOLVE_DO(s, SolveLaunch(s));
  if (!s->cg->graph || (s->several && s->failed)) {
    SolveStep(s, exec);
    SolvePrecondition(s);
  }
  if (s->ahead) SOLVE_DO(s, exec->backend->post(exec, (int)(s->queued % HYB_LETTERS)));
  s->iterations++;
}

/* An iteration is on its way: will there be another one? All processes say the same, but for one that has heard of an
   error by now: none is to come. */
static PetscBool SolveGoesOn(Solve *s)
{
  const KSP ksp = s->ksp;

  if (!s->ahead || s->queued >= ksp->max_it) return PETSC_FALSE;
  if (s->several) s->heard = HybErrorFirst(s->heard, SolveHeard(s));
  if (s->heard) return PETSC_FALSE;
  return (PetscBool)(HybTuningGet()->iterations_ahead == 2 || ksp->rnorm * s->steepest > ksp->ttol);
}

/* the last iteration's part of x, where the program has x */
static void SolveLastStep(Solve *s, PetscBool iflast)
{
  const HybExec *exec = &s->cycle->exec;

  SOLVE_DO(s, exec->backend->krylov->cgend(exec, &s->cg->numbers, s->n, (const HybScalar *)s->p.there, s->sum, (HybScalar *)s->x.there, iflast));
}

/* one iteration, and the wait */
static PetscErrorCode SolveIteration(Solve *s)
{
  const PetscBool graph = (PetscBool)(s->cg->graph != NULL);

  PetscFunctionBegin;
  /* else what is on its way has kept r */
  PetscCheck(s->host[HYB_CG_LAST] == (PetscScalar)0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "KSPCG goes on, and the device took iteration %" PetscInt_FMT " for the last one: -mat_aijhybridgpu_tuning iterations_ahead=0", s->read);
  s->read++;
  if (graph) SOLVE_ALWAYS(s, PetscLogEventBegin(PC_Apply, s->ksp->pc, 0, 0, 0)); /* the product is within it */
  if (s->queued < s->read) SolveQueue(s);
  if (SolveGoesOn(s))
    SolveQueue(s);
  else if (s->ahead) {
    SolveLastStep(s, PETSC_TRUE);
    s->ended = s->read;
  }
  if (graph) {
    SOLVE_ALWAYS(s, PetscLogEventEnd(PC_Apply, s->ksp->pc, 0, 0, 0));
    SOLVE_DO(s, PetscLogGpuFlops(2.0 * s->nnz + 14.0 * s->n));
    SOLVE_DO(s, HybMGArraysApplied(s->mg));
  }
  PetscCall(SolveFetch(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x is where the program has it, with the last iteration's part, which the next one has added if it was launched */
static void SolveEnd(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;
  HybScalar     *x    = (HybScalar *)s->x.there;

  if (s->queued == s->read) {
    if (s->ended != s->read || s->host[HYB_CG_LAST] == (PetscScalar)0) SolveLastStep(s, PETSC_FALSE);
  } else if (s->sum != x)
    SOLVE_DO(s, exec->backend->copy(exec, x, s->sum, sizeof(HybScalar) * (size_t)s->n, HYB_COPY_DEVICE_TO_DEVICE));
}

/* what PETSc does with a norm */
static PetscErrorCode SolveTest(Solve *s, PetscInt its)
{
  KSP             ksp = s->ksp;
  const PetscReal dp  = HybCGNorm(ksp, s->host, 1);

  PetscFunctionBegin;
  s->vain = (PetscBool)(ksp->normtype == KSP_NORM_UNPRECONDITIONED);
  if (ksp->normtype == KSP_NORM_NATURAL) KSPCheckDot(ksp, s->host[HYB_CG_BETA]);
  KSPCheckNorm(ksp, dp);
  if (its) s->steepest = PetscMin(its == 1 ? 1 : s->steepest, HYB_CG_LATER_LEAVES * dp / ksp->rnorm);
  ksp->rnorm = dp;
  PetscCall(KSPLogResidualHistory(ksp, dp));
  if (!its && s->several && HybCGAsksForB(ksp))
    PetscCall(HybCGFirstTest(ksp, s->norm, dp));
  else
    PetscCall((*ksp->converged)(ksp, its, dp, &ksp->reason, ksp->cnvP));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  s->vain = PETSC_FALSE;
  KSPCheckDot(ksp, s->host[HYB_CG_BETA]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveStopped(Solve *s)
{
  KSP ksp = s->ksp;

  PetscFunctionBegin;
  KSPCheckDot(ksp, s->host[HYB_CG_DPI]);
  PetscCall(HybCGIndefinite(ksp, s->host, 1, &ksp->reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several processes: the norm of b, with which PETSc's first test of a solve with a guess compares. PETSc would form it
   within the test, where a process that fails leaves the others waiting. z is overwritten. */
static void SolveNormOfB(Solve *s)
{
  const HybExec   *exec = &s->cycle->exec;
  const HybScalar *b = (const HybScalar *)s->b.there, *z = b;
  HybCG            numbers = s->cg->numbers;

  numbers.hermitian = PETSC_TRUE; /* PETSc's norm is, whatever products its iterations form */
  if (s->ksp->normtype != KSP_NORM_UNPRECONDITIONED) {
    SOLVE_ALWAYS(s, HybMGArraysApply(s->mg, 0, s->failed, s->b.there, s->z.there));
    z = (const HybScalar *)s->z.there;
  }
  SOLVE_DO(s, exec->backend->krylov->cgproducts(exec, &numbers, s->n, z, b));
  SolveSum(s, &s->cycle->exec, HYB_CG_BETA, HYB_CG_SUMS);
  SOLVE_DO(s, PetscLogGpuFlops(6.0 * s->n));
  SOLVE_DO(s, exec->backend->copy(exec, s->host, s->cg->numbers.s, sizeof(s->host), HYB_COPY_DEVICE_TO_HOST));
  /* else the next products would take this beta for the one before */
  SOLVE_DO(s, exec->backend->zero(exec, s->cg->numbers.s, HYB_CG_SUMS * sizeof(HybScalar)));
  s->norm = HybCGNorm(s->ksp, s->host, 1);
}

/* May iterations be launched ahead? Then the device gets to know when PETSc's test ends them. first: before the first
   norm, by which the device sets the goal as PETSc will from a zero guess alone; all numbers are new then. */
static void SolveAim(Solve *s, PetscBool first)
{
  const KSP       ksp     = s->ksp;
  const HybExec  *exec    = &s->cycle->exec;
  const PetscBool natural = (PetscBool)(ksp->normtype != KSP_NORM_PRECONDITIONED && ksp->normtype != KSP_NORM_UNPRECONDITIONED);
  const int       from = first ? 0 : HYB_CG_GOAL, to = first ? HYB_CG_NUMBERS : HYB_CG_LAST;
  HybScalar       numbers[HYB_CG_NUMBERS];

  s->ahead = (PetscBool)((ksp->guess_zero || !first) && s->cg->numbers.letters && ksp->chknorm < 0 && !(natural && PetscDefined(USE_COMPLEX)));
#if HYB_HAS_MIN_IT
  if (ksp->min_it > 0) s->ahead = PETSC_FALSE;
#endif
  if (!first && !s->ahead) return;
  for (int q = 0; q < HYB_CG_NUMBERS; q++) numbers[q] = (HybScalar)0;
  if (s->ahead) {
    numbers[HYB_CG_GOAL]  = (HybScalar)(first ? ksp->abstol : ksp->ttol);
    numbers[HYB_CG_MOST]  = (HybScalar)(first ? ksp->divtol : ksp->divtol * ksp->rnorm0);
    numbers[HYB_CG_KIND]  = (HybScalar)(natural ? HYB_CG_NORM_BETA : ksp->normtype == KSP_NORM_PRECONDITIONED ? HYB_CG_NORM_Z
                                                                                                              : HYB_CG_NORM_R);
    numbers[HYB_CG_FIRST] = (HybScalar)(first ? 1 : 0);
    numbers[HYB_CG_RTOL]  = (HybScalar)ksp->rtol;
  }
  SOLVE_DO(s, exec->backend->copy(exec, s->cg->numbers.s + from, numbers + from, (size_t)(to - from) * sizeof(HybScalar), HYB_COPY_HOST_TO_DEVICE));
}

/* r, and x where it iterates; from a zero guess the cycle's first step is made on the way */
static void SolveResidual(Solve *s)
{
  const HybExec   *exec = &s->cycle->exec;
  const HybScalar *x    = (const HybScalar *)s->x.there;
  HybSpMVFirst     first;

  if (s->ksp->guess_zero) {
    /* in single precision the scale is not known yet */
    s->cycle->begun = (PetscBool)(!s->several && !s->cycle->single && HybCycleFirst(s->cycle, (HybScalar *)s->z.there, &first));
    SOLVE_DO(s, exec->backend->krylov->cgbegin(exec, s->n, (const HybScalar *)s->b.there, (HybScalar *)s->r.there, x, s->sum, s->cycle->begun ? &first : NULL));
    return;
  }
  if (s->sum != x) SOLVE_DO(s, exec->backend->copy(exec, s->sum, x, sizeof(HybScalar) * (size_t)s->n, HYB_COPY_DEVICE_TO_DEVICE));
  SolveMult(s, exec, s->x.there, HYB_SPMV_RESIDUAL, s->b.there, s->r.there);
}

/* r, z = M r and their products; from a zero guess the first iteration is on its way before the norm is read */
static void SolveFirst(Solve *s)
{
  const KSP      ksp  = s->ksp;
  const HybExec *exec = &s->cycle->exec;

  SolveAim(s, PETSC_TRUE);
  SolveResidual(s);
  if (s->several) SOLVE_DO(s, SolveGraph(s)); /* before what tells others of a failure */
  if (s->several && HybCGAsksForB(ksp)) SolveNormOfB(s);
  SolvePrecondition(s);
  if (!s->several) SOLVE_DO(s, SolveGraph(s));
  if (!s->several && !s->cg->graph) s->cg->numbers.letters = NULL; /* each launch takes the host its time */
  s->ahead = (PetscBool)(s->ahead && s->cg->numbers.letters);
  if (!s->ahead) return;
  SOLVE_DO(s, exec->backend->post(exec, 0));
  SolveQueue(s);
}

/* all of them; x may lack the last one's part */
static PetscErrorCode SolveIterations(Solve *s)
{
  KSP      ksp = s->ksp;
  PetscInt i   = 0;

  PetscFunctionBegin;
  ksp->its    = 0;
  s->steepest = HYB_CG_FIRST_LEAVES;
  SolveFirst(s);
  PetscCall(SolveFetch(s));
  PetscCall(SolveTest(s, 0));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (!ksp->guess_zero) SolveAim(s, PETSC_FALSE);
  if (!s->several) PetscCall(s->failed);
  do {
    const PetscScalar beta = s->host[HYB_CG_BETA];

    ksp->its = i + 1;
    PetscCall(HybCGBegin(ksp, s->host, 1, i, &ksp->reason));
    if (ksp->reason) break;
    PetscCall(SolveIteration(s));
    if (s->host[HYB_CG_STOPPED] != (PetscScalar)0) {
      s->vain = PETSC_TRUE;
      PetscCall(SolveStopped(s));
      break;
    }
    s->cg->objective -= PetscRealPart((PetscReal)0.5 * (beta / s->host[HYB_CG_DPI]) * beta);
    HybLanczosNote(&s->cg->lanczos, beta, s->host[HYB_CG_DPI]);
    PetscCall(SolveTest(s, i + 1));
    if (ksp->reason) break;
    i++;
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveIterate(Solve *s)
{
  const PetscErrorCode ierr = SolveIterations(s);

  PetscFunctionBegin;
  SolveEnd(s); /* after an error of PETSc's test, too */
  PetscCall(HybErrorFirst(ierr, s->failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what stays from solve to solve */
static PetscErrorCode SolveReserve(Solve *s)
{
  HybCGSolver     *cg   = s->cg;
  const HybExec   *exec = &s->cycle->exec;
  const PetscCount n    = s->n;

  PetscFunctionBegin;
  if (!cg->numbers.s || cg->n != n || cg->keep.exec.backend != exec->backend) {
    PetscCall(HybCGRelease(cg));
    cg->keep = HybArenaOn(exec);
    if (n <= HYB_CG_GRAPH) PetscCall(HybArenaAlloc(&cg->keep, HYB_WORK(exec), n, sizeof(HybScalar), &cg->x));
    PetscCall(HybArenaCalloc(&cg->keep, HYB_WORK(exec), 2, sizeof(int), &cg->numbers.arrived));
    cg->sums.arrived = cg->numbers.arrived + 1;
    PetscCall(HybArenaAlloc(&cg->keep, HYB_WORK(exec), HYB_CYCLE_TOTALS + HYB_CYCLE_SUMS, sizeof(HybScalar), &cg->sums.s));
    PetscCall(HybArenaAlloc(&cg->keep, HYB_WORK(exec), HYB_CG_NUMBERS + 3 * HYB_KRYLOV_SUMS, sizeof(HybScalar), &cg->numbers.s));
    cg->n = n;
  }
  cg->numbers.letters = NULL;
  cg->numbers.partly  = s->several;
  if (cg->x && HybTuningGet()->iterations_ahead) { /* the process's first solve makes them */
    void *letters;

    PetscCall(exec->backend->letters(exec, &letters));
    if (cg->solved) cg->numbers.letters = (HybScalar *)letters; /* there may be a graph */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the objective function of the first guess, as PETSc begins it: (r x - b x) / 2 */
static PetscErrorCode SolveObjective(Solve *s)
{
  KSP            ksp = s->ksp;
  Mat            A;
  PetscScalar    xr, xb;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  s->cg->objective = 0;
  if (ksp->guess_zero) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  ierr = MatResidual(A, ksp->vec_rhs, ksp->vec_sol, ksp->work[0]);
  if (s->several) ierr = HybAgree(PetscObjectComm((PetscObject)ksp), ierr, "The residual of a first guess");
  PetscCall(ierr);
  PetscCall(s->cg->numbers.hermitian ? VecDot(ksp->work[0], ksp->vec_sol, &xr) : VecTDot(ksp->work[0], ksp->vec_sol, &xr));
  PetscCall(s->cg->numbers.hermitian ? VecDot(ksp->vec_rhs, ksp->vec_sol, &xb) : VecTDot(ksp->vec_rhs, ksp->vec_sol, &xb));
  s->cg->objective = (PetscReal)0.5 * PetscRealPart(xr - xb);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where products and the cycle's last step leave sums. The plan that can comes in a later solve, and there the bits are
   to be the same: so the sums are formed that way before as well, where that takes no more time to speak of. */
static PetscErrorCode SolveLeft(Solve *s)
{
  HybSpMVSums *left = &s->cg->left;

  PetscFunctionBegin;
  s->sums   = (PetscBool)(!s->several && !s->null && s->n >= HybTuningGet()->sums);
  s->leaves = (PetscBool)(s->sums && HybSpMVLeaves(s->mult));
  if (s->sums && !left->part) PetscCall(HybArenaAlloc(&s->cg->keep, HYB_WORK(&s->cycle->exec), 3 * ((s->n + HYB_SPMV_SUMS_ROWS - 1) / HYB_SPMV_SUMS_ROWS), sizeof(HybScalar), &left->part));
  left->hermitian    = s->cg->numbers.hermitian;
  s->cycle->sumsleft = s->sums && HybCycleLeaves(s->cycle) ? left : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* not collective */
static PetscErrorCode SolveGetArrays(Solve *s)
{
  HybVecAccess  *work[] = {&s->r, &s->z, &s->p};
  KSP            ksp    = s->ksp;
  const HybExec *exec   = &s->cycle->exec;

  PetscFunctionBegin;
  PetscCall(SolveReserve(s));
  PetscCall(HybLanczosBegin(ksp, &s->cg->lanczos));
  PetscCall(HybVecGet(exec, ksp->vec_rhs, PETSC_TRUE, PETSC_FALSE, &s->b));
  PetscCall(HybVecGet(exec, ksp->vec_sol, PETSC_TRUE, PETSC_TRUE, &s->x));
  PetscCall(HybVecGet(exec, ksp->work[0], PETSC_FALSE, PETSC_TRUE, &s->r));
  PetscCall(HybVecGet(exec, ksp->work[1], PETSC_FALSE, PETSC_TRUE, &s->z));
  PetscCall(HybVecGet(exec, ksp->work[2], PETSC_FALSE, PETSC_TRUE, &s->p));
  /* they come back to the host also where nothing wrote them */
  for (int k = 0; k < 3; k++)
    if (work[k]->there != work[k]->array) PetscCall(exec->backend->zero(exec, work[k]->there, sizeof(HybScalar) * (size_t)s->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveArrays(Solve *s)
{
  KSP            ksp    = s->ksp;
  HybVecAccess  *lent[] = {&s->p, &s->z, &s->r, &s->x, &s->b};
  PetscBool      begun  = PETSC_FALSE;
  PetscErrorCode ierr, before;

  PetscFunctionBegin;
  if (s->several && !ksp->guess_zero) s->failed = HybAgree(PetscObjectComm((PetscObject)ksp), s->failed, "A solve's matrices");
  if (!ksp->guess_zero) PetscCall(s->failed);
  PetscCall(SolveObjective(s));
  SOLVE_DO(s, SolveGetArrays(s));
  SOLVE_DO(s, SolveLeft(s));
  if (s->several) {
    /* where the host waits within an iteration, on the coarsest level, none goes ahead */
    PetscBool letters = (PetscBool)(s->cg->numbers.letters && HybCycleIsRecordable(s->cycle));

    s->failed = HybAgreeAll(PetscObjectComm((PetscObject)ksp), s->failed, "A solve", &letters);
    if (!letters) s->cg->numbers.letters = NULL;
  }
  ierr = s->failed;
  if (!ierr) { /* of several processes: of all */
    begun  = PETSC_TRUE;
    s->sum = s->cg->x && s->cg->solved ? s->cg->x : (HybScalar *)s->x.there;
    ierr   = SolveIterate(s);
    if (s->several) ierr = SolveTogether(s, ierr);
    if (!ierr && s->vain) HybMGArraysInVain(s->mg);
    if (!ierr && s->queued > s->read && !s->cg->graph) HybMGArraysInVain(s->mg);
    s->cg->solved = PETSC_TRUE;
  }
  before = begun ? PETSC_SUCCESS : ierr; /* what was written is theirs also after an error */
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lent); k++) {
    lent[k]->untouched = (PetscBool)!begun;
    ierr               = HybErrorFirst(ierr, HybVecRestore(before, lent[k]));
  }
  PetscCall(ierr);
  /* PETSc's mark of a failed preconditioner, which was made in a vector that was lent */
#if HYB_HAS_VECFLAG
  if (ksp->reason == KSP_DIVERGED_PC_FAILED) PetscCall(VecFlag(ksp->vec_sol, 1));
#else
  if (ksp->reason == KSP_DIVERGED_PC_FAILED) PetscCall(VecSetInf(ksp->vec_sol));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, where peer access may serve: what adds over the processes */
static PetscErrorCode SolveSums(Solve *s, PetscErrorCode before, PetscBool *may)
{
  MPI_Comm       mpi = PetscObjectComm((PetscObject)s->ksp);
  HybComm        comm;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *may = (PetscBool)(s->cg->sum && HybCommSumServes(s->cg->sum));
  if (*may) PetscFunctionReturn(before); /* which is agreed upon later */
  PetscCall(HybAgree(mpi, before, "A solve's matrices"));
  if (s->cg->sum || !HybHaloRecordable(s->cycle->level[0].several[HYB_CYCLE_A].halo, PETSC_FALSE)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCommGet(mpi, &comm));
  ierr = HybCommSumCreate(comm, &s->cycle->exec, PETSC_SUCCESS, HYB_CG_SUMS, &s->cg->sum);
  PetscCall(HybErrorFirst(ierr, HybCommRestore(&comm)));
  *may = HybCommSumServes(s->cg->sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: *may is the same on all processes. Of several an error of this one may be left in s->failed. */
static PetscErrorCode SolveBegin(Solve *s, PetscBool *may)
{
  KSP            ksp = s->ksp;
  PetscErrorCode ierr;
  Mat            A;

  PetscFunctionBegin;
  PetscCall(PCSetUp(ksp->pc)); /* as PCApply() does: of new values older releases hear there alone */
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  /* of a preconditioner that failed one process alone may know */
  PetscCall(HybMGArraysBegin(ksp->pc, A, ksp->vec_rhs, ksp->vec_sol, ksp->work[0], (PetscBool)(ksp->reason != KSP_DIVERGED_PC_FAILED), &s->mg));
  *may = (PetscBool)(s->mg != NULL);
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  ierr       = HybMGArraysLend(s->mg, &s->cycle, &s->A, &s->mult);
  s->lent    = (PetscBool)!ierr;
  s->several = s->cycle->several;
  *may       = (PetscBool)(s->cycle->exec.backend->device && s->cycle->exec.backend->krylov->cgproducts);
  if (s->several) ierr = SolveSums(s, ierr, may);
  if (*may && s->lent) {
    const HybCycleBlocks *m = &s->cycle->level[0].several[HYB_CYCLE_A];

    s->n   = s->several ? m->D.m : s->A->m;
    s->nnz = s->several ? m->D.nnz + m->O.nnz : s->A->nnz;
  }
  if (!*may && s->lent) ierr = HybErrorFirst(ierr, HybMGReturn(s->mg));
  if (!*may || !s->several) PetscCall(ierr);
  s->failed = ierr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGSolve(KSP ksp, HybCGSolver *cg, PetscBool constants, PetscBool *ours)
{
  Solve          s = {.ksp = ksp, .cg = cg, .null = constants, .ended = -1};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SolveBegin(&s, ours));
  if (!*ours) PetscFunctionReturn(PETSC_SUCCESS);
  cg->ours = PETSC_TRUE;
  PetscCall(HybCountGAMG(HYB_SOLVES));
  ierr              = SolveArrays(&s);
  s.cycle->sumsleft = NULL;
  s.cycle->begun    = PETSC_FALSE;
  PetscCall(HybErrorFirst(ierr, s.lent ? HybMGReturn(s.mg) : PETSC_SUCCESS));
  PetscFunctionReturn(PETSC_SUCCESS);
}
