/*
  KSPCG on a device with multigrid for a preconditioner: PETSc's method, with one wait in an iteration.

  PETSc asks for each inner product where it stands, three in an iteration, and each is a wait for the device. Here the
  numbers stay where the vectors are: the kernels that need them read them there, and the host gets all of an iteration
  at its end, where PETSc would test for convergence. The order of operations is PETSc's.

    r = b - A x;  z = M r;  beta = z r, |z|                             wait: PETSc's test
    repeat:  p = z + (beta/betaold) p
             w = A p;  dpi = p w
             x += (beta/dpi) p;  r -= (beta/dpi) w                      unless dpi says that PETSc would stop
             z = M r;  beta = z r, |z|                                  wait: what PETSc tests on the way, then its test

  Products are those of PETSc's kind: for complex numbers with conjugates, unless KSPCGSetType() says symmetric.

  What PETSc finds before it changes x (p A p is 0, changes its sign or is not finite) the kernels find as well, and
  change nothing. One application of M is in vain then, and one where the norm of r ends the iterations, which PETSc
  tests before it makes z.

  On smaller matrices all launches of an iteration, the cycle's too, are one graph from the second solve on: launching
  them takes longer than what they do. It is made again where anything that it names has moved. There x is a vector of
  the plugin's own, since programs solve for this and that one.

  Of several processes each has its part of the vectors, and their cards add the products among themselves
  (HybCommSumApply()), where peer access serves: still one wait. A process that fails goes on to that wait, so that the
  others hear of it in what they wait for. Of a solve with a first guess the norm of b, which PETSc's first test forms,
  is formed the same way before: one application of M and one wait more.

  It takes over where nothing of a program's is called in between: no monitors, PETSc's own test of convergence, no
  eigenvalues, no trust region, no null space but constants, on several processes none; and where PCApply() would be the
  room cycle's (HybMGArraysBegin()). Else PETSc's own function is called. Vectors that live on the host are sent once
  and come back at the end.
*/
#include <petsc/private/kspimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/pcimpl.h>
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybmat.h"
#include "../../../smoothers.h"
#include "cgimpl.h"

PETSC_EXTERN PetscErrorCode KSPCreate_CG(KSP);

#define HYB_CG_KEY   "HybCG"
#define HYB_CG_GRAPH 2000000 /* rows up to which an iteration is a graph */

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

typedef struct {
  PetscBool trust;     /* a radius or a target of the objective function was set */
  PetscBool ours;      /* the last solve was */
  PetscReal objective; /* x A x / 2 - b x, of it */
  /* what stays from one solve to the next, of matrices of so many rows, for a graph */
  HybArena     keep;
  PetscCount   n;
  HybCG        numbers;
  HybCycleSums sums; /* of z, where constants are a null space */
  HybScalar   *x;
  HybCommSum   sum;    /* of several processes */
  PetscInt     summed; /* sums in the graph */
  void        *graph;
  PetscBool    solved;   /* once at least with this */
  const void  *names[6]; /* what the graph names: the cycle, r, z, p, the backend, and whether it has sums */
  uint64_t     stamp;    /* the cycle's */
} HybKSPCG;

static PetscErrorCode HybKSPCGGet(KSP ksp, HybKSPCG **cg)
{
  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)ksp, HYB_CG_KEY, cg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKSPCGForget(HybKSPCG *cg)
{
  PetscFunctionBegin;
  if (cg->graph) PetscCall(cg->keep.exec.backend->cycle->forget(&cg->keep.exec, &cg->graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKSPCGRelease(HybKSPCG *cg)
{
  const PetscErrorCode ierr = HybKSPCGForget(cg), second = HybArenaReset(&cg->keep);

  PetscFunctionBegin;
  cg->numbers.s = NULL;
  cg->x         = NULL;
  cg->solved    = PETSC_FALSE;
  PetscCall(HybErrorFirst(ierr, second));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* collective: of what belongs to all processes too */
static PetscErrorCode HybKSPCGReset(HybKSPCG *cg)
{
  PetscFunctionBegin;
  HybCallBoth(HybKSPCGRelease(cg), HybCommSumDestroy(&cg->sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKSPCGFree(void *pointer)
{
  const PetscErrorCode ierr = HybKSPCGReset((HybKSPCG *)pointer);

  PetscFunctionBegin;
  PetscCall(PetscFree(pointer));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which inner products: PETSc has no function that tells, so whoever says it is heard */
static PetscErrorCode KSPCGSetType_Hyb(KSP ksp, KSPCGType type)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall((*petsc.settype)(ksp, type));
  PetscCall(HybKSPCGGet(ksp, &cg));
  PetscCall(HybKSPCGForget(cg)); /* its launches are of the other kind */
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
static PetscErrorCode HybKSPCGTrust(KSP ksp, HybSetRealFn petscs, PetscReal value)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall((*petscs)(ksp, value));
  PetscCall(HybKSPCGGet(ksp, &cg));
  cg->trust = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetRadius_Hyb(KSP ksp, PetscReal radius)
{
  return HybKSPCGTrust(ksp, petsc.setradius, radius);
}

static PetscErrorCode KSPCGSetObjectiveTarget_Hyb(KSP ksp, PetscReal target)
{
  return HybKSPCGTrust(ksp, petsc.settarget, target);
}

static PetscErrorCode KSPCGGetObjFcn_Hyb(KSP ksp, PetscReal *objective)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall(HybKSPCGGet(ksp, &cg));
  if (cg->ours)
    *objective = cg->objective;
  else
    PetscCall((*petsc.getobjective)(ksp, objective));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_CG_Hyb(KSP ksp)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall(HybKSPCGGet(ksp, &cg));
  PetscCall(HybKSPCGReset(cg));
  if (petsc.reset) PetscCall((*petsc.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPSetType() to another type comes here too */
static PetscErrorCode KSPDestroy_CG_Hyb(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall((*petsc.destroy)(ksp));
  PetscCall(PetscObjectCompose((PetscObject)ksp, HYB_CG_KEY, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one solve */
typedef struct {
  KSP           ksp;
  HybKSPCG     *cg;
  HybCycle     *cycle;
  const HybCSR *A; /* its matrix, where one process has it, and the plan of products with it */
  HybSpMV      *mult;
  PetscBool     several, lent; /* there are several processes; the cycle's arrays are lent */
  PetscCount    n, nnz;        /* rows of this process, and their nonzeros */
  /* this process's first error: it does nothing any more but what the others wait for */
  PetscErrorCode failed;
  PetscBool      told;       /* and a sum has told them */
  PetscInt64     iterations; /* that were begun */
  HybArena       work;
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

static void SolveMult(Solve *s, const PetscScalar *x, HybSpMVMode mode, const PetscScalar *y, PetscScalar *z)
{
  Mat A;

  SOLVE_ALWAYS(s, KSPGetOperators(s->ksp, &A, NULL));
  SOLVE_ALWAYS(s, PetscLogEventBegin(MAT_Mult, A, 0, 0, 0));
  if (s->several)
    SOLVE_ALWAYS(s, HybCycleMult(s->cycle, &s->cycle->exec, s->failed, (const HybScalar *)x, mode, (const HybScalar *)y, (HybScalar *)z));
  else
    SOLVE_DO(s, HybSpMVApply(s->mult, s->A, (const HybScalar *)x, mode, (const HybScalar *)y, (HybScalar *)z));
  SOLVE_DO(s, PetscLogGpuFlops(2.0 * s->nnz));
  SOLVE_ALWAYS(s, PetscLogEventEnd(MAT_Mult, A, 0, 0, 0));
}

/* n numbers from this one on become sums over the processes */
static void SolveSum(Solve *s, HybCGNumber first, PetscInt n)
{
  if (s->several && s->failed) s->told = PETSC_TRUE;
  if (s->several) SOLVE_ALWAYS(s, HybCommSumApply(s->cg->sum, &s->cycle->exec, s->failed, n, s->cg->numbers.s + first));
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

/* z = M r, and the products */
static void SolvePrecondition(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;

  if (!s->failed || s->several) SOLVE_ALWAYS(s, HybMGArraysApply(s->ksp->pc, s->failed, s->r.there, s->z.there));
  SOLVE_DO(s, SolveZeroMean(s, exec));
  SOLVE_DO(s, exec->backend->krylov->cgproducts(exec, &s->cg->numbers, s->n, (const HybScalar *)s->z.there, (const HybScalar *)s->r.there));
  SolveSum(s, HYB_CG_BETA, HYB_CG_SUMS);
  SOLVE_DO(s, PetscLogGpuFlops(6.0 * s->n));
}

/* from z to the next r */
static void SolveStep(Solve *s)
{
  const HybExec      *exec = &s->cycle->exec;
  const HybKrylovOps *ops  = exec->backend->krylov;
  const PetscCount    n    = s->n;
  HybScalar          *r = (HybScalar *)s->r.there, *z = (HybScalar *)s->z.there, *p = (HybScalar *)s->p.there;

  SOLVE_DO(s, ops->cgdirection(exec, &s->cg->numbers, n, z, p));
  SolveMult(s, s->p.there, HYB_SPMV_SET, NULL, s->z.there); /* w is where z was, as PETSc's is */
  SOLVE_DO(s, ops->cgcurvature(exec, &s->cg->numbers, n, p, z));
  SolveSum(s, HYB_CG_DPI, 1);
  SOLVE_DO(s, ops->cgupdate(exec, &s->cg->numbers, n, p, z, s->sum, r));
  SOLVE_DO(s, PetscLogGpuFlops(8.0 * n));
}

/* An iteration of several processes by one that has failed: the others hear of it in what they wait for */
static void SolveVain(Solve *s)
{
  if (!s->failed) s->failed = PETSC_ERR_LIB;
  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  SolveStep(s);
  SolvePrecondition(s);
  (void)HybCycleHeard(s->cycle);
  (void)HybCommSumHeard(s->cg->sum);
  (void)PetscPopErrorHandler();
  s->iterations++;
}

/* The wait, after which all processes know of a failure. One that cannot fetch the numbers, or make the last sum, does
   not know whether the others go on: it makes the next iteration, and SolveTogether() does the rest. */
static PetscErrorCode SolveFetch(Solve *s)
{
  const HybExec *exec = &s->cycle->exec;

  PetscFunctionBegin;
  SOLVE_DO(s, exec->backend->copy(exec, s->host, s->cg->numbers.s, sizeof(s->host), HYB_COPY_DEVICE_TO_HOST));
  if (s->several && s->failed && !s->told) SolveVain(s);
  if (s->several) SOLVE_ALWAYS(s, HybCycleHeard(s->cycle));
  if (s->several) SOLVE_ALWAYS(s, HybCommSumHeard(s->cg->sum));
  PetscCall(s->failed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The end of several processes' iterations: those that are behind make one in vain, so that their exchanges are the
   same in number. before: this process's error, which becomes one of all. */
static PetscErrorCode SolveTogether(Solve *s, PetscErrorCode before)
{
  MPI_Comm   mpi     = PetscObjectComm((PetscObject)s->ksp);
  PetscInt64 most[2] = {s->iterations, before != PETSC_SUCCESS};

  PetscFunctionBegin;
  PetscCall(HybAgreeMax(mpi, PETSC_SUCCESS, "", 2, most));
  if (s->iterations < most[0]) SolveVain(s);
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
  const HybKrylovOps *ops = captured->backend->krylov;
  const PetscCount    n   = s->n;
  HybScalar          *r = (HybScalar *)s->r.there, *z = (HybScalar *)s->z.there, *p = (HybScalar *)s->p.there;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(ops->cgdirection(captured, &s->cg->numbers, n, z, p));
  if (s->several)
    PetscCall(HybCycleMult(s->cycle, captured, PETSC_SUCCESS, p, HYB_SPMV_SET, NULL, z));
  else {
    void *const stream = s->mult->exec.stream;

    s->mult->exec.stream = captured->stream;
    ierr                 = HybSpMVApply(s->mult, s->A, p, HYB_SPMV_SET, NULL, z);
    s->mult->exec.stream = stream;
    PetscCall(ierr);
  }
  PetscCall(ops->cgcurvature(captured, &s->cg->numbers, n, p, z));
  if (s->several) PetscCall(HybCommSumApply(s->cg->sum, captured, PETSC_SUCCESS, 1, s->cg->numbers.s + HYB_CG_DPI));
  PetscCall(ops->cgupdate(captured, &s->cg->numbers, n, p, z, s->sum, r));
  PetscCall(HybCycleRecord(s->cycle, captured, r, z));
  PetscCall(SolveZeroMean(s, captured));
  PetscCall(ops->cgproducts(captured, &s->cg->numbers, n, z, r));
  if (s->several) PetscCall(HybCommSumApply(s->cg->sum, captured, PETSC_SUCCESS, HYB_CG_SUMS, s->cg->numbers.s + HYB_CG_BETA));
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
  HybKSPCG      *cg       = s->cg;
  const HybExec *exec     = &s->cycle->exec;
  const void    *names[6] = {s->cycle, s->r.there, s->z.there, s->p.there, exec->backend, NULL};

  PetscFunctionBegin;
  if (s->null) names[5] = &cg->sums;
  if (cg->graph && !memcmp(names, cg->names, sizeof(names)) && cg->stamp == s->cycle->stamp) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybKSPCGForget(cg));
  if (!cg->solved || s->sum != cg->x || !HybCycleIsRecordable(s->cycle)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SolveCapture(s));
  (void)memcpy(cg->names, names, sizeof(names));
  cg->stamp = s->cycle->stamp;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one iteration, and the wait */
static PetscErrorCode SolveIteration(Solve *s)
{
  PetscFunctionBegin;
  if (s->cg->graph) {
    SOLVE_ALWAYS(s, PetscLogEventBegin(PC_Apply, s->ksp->pc, 0, 0, 0)); /* the product is within it */
    SOLVE_DO(s, SolveLaunch(s));
    SOLVE_ALWAYS(s, PetscLogEventEnd(PC_Apply, s->ksp->pc, 0, 0, 0));
    SOLVE_DO(s, PetscLogGpuFlops(2.0 * s->nnz + 14.0 * s->n));
    SOLVE_DO(s, HybMGArraysApplied(s->ksp->pc));
  }
  if (!s->cg->graph || (s->several && s->failed)) {
    SolveStep(s);
    SolvePrecondition(s);
  }
  s->iterations++;
  PetscCall(SolveFetch(s));
  PetscFunctionReturn(PETSC_SUCCESS);
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
    SOLVE_ALWAYS(s, HybMGArraysApply(s->ksp->pc, s->failed, s->b.there, s->z.there));
    z = (const HybScalar *)s->z.there;
  }
  SOLVE_DO(s, exec->backend->krylov->cgproducts(exec, &numbers, s->n, z, b));
  SolveSum(s, HYB_CG_BETA, HYB_CG_SUMS);
  SOLVE_DO(s, PetscLogGpuFlops(6.0 * s->n));
  SOLVE_DO(s, exec->backend->copy(exec, s->host, s->cg->numbers.s, sizeof(s->host), HYB_COPY_DEVICE_TO_HOST));
  /* else the next products would take this beta for the one before */
  SOLVE_DO(s, exec->backend->zero(exec, s->cg->numbers.s, HYB_CG_SUMS * sizeof(HybScalar)));
  s->norm = HybCGNorm(s->ksp, s->host, 1);
}

static PetscErrorCode SolveIterate(Solve *s)
{
  KSP            ksp  = s->ksp;
  const HybExec *exec = &s->cycle->exec;
  PetscInt       i    = 0;

  PetscFunctionBegin;
  ksp->its = 0;
  if (ksp->guess_zero)
    SOLVE_DO(s, exec->backend->copy(exec, s->r.there, s->b.there, sizeof(HybScalar) * (size_t)s->n, HYB_COPY_DEVICE_TO_DEVICE));
  else
    SolveMult(s, s->x.there, HYB_SPMV_RESIDUAL, s->b.there, s->r.there);
  if (s->several) SOLVE_DO(s, SolveGraph(s)); /* before what tells others of a failure */
  if (s->several && HybCGAsksForB(ksp)) SolveNormOfB(s);
  SolvePrecondition(s);
  if (!s->several) SOLVE_DO(s, SolveGraph(s));
  PetscCall(SolveFetch(s));
  PetscCall(SolveTest(s, 0));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
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
    PetscCall(SolveTest(s, i + 1));
    if (ksp->reason) break;
    i++;
  } while (i < ksp->max_it);
  if (i >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what stays from solve to solve */
static PetscErrorCode SolveReserve(Solve *s)
{
  HybKSPCG        *cg   = s->cg;
  const HybExec   *exec = &s->cycle->exec;
  const PetscCount n    = s->n;

  PetscFunctionBegin;
  if (!cg->numbers.s || cg->n != n || cg->keep.exec.backend != exec->backend) {
    PetscCall(HybKSPCGRelease(cg));
    cg->keep = HybArenaOn(exec);
    if (n <= HYB_CG_GRAPH) PetscCall(HybArenaAlloc(&cg->keep, HYB_WORK(exec), n, sizeof(HybScalar), &cg->x));
    PetscCall(HybArenaCalloc(&cg->keep, HYB_WORK(exec), 2, sizeof(int), &cg->numbers.arrived));
    cg->sums.arrived = cg->numbers.arrived + 1;
    PetscCall(HybArenaAlloc(&cg->keep, HYB_WORK(exec), HYB_CYCLE_TOTALS + HYB_CYCLE_SUMS, sizeof(HybScalar), &cg->sums.s));
    PetscCall(HybArenaAlloc(&cg->keep, HYB_WORK(exec), HYB_CG_NUMBERS + 3 * HYB_KRYLOV_SUMS, sizeof(HybScalar), &cg->numbers.s));
    cg->n = n;
  }
  PetscCall(exec->backend->zero(exec, cg->numbers.s, HYB_CG_NUMBERS * sizeof(HybScalar)));
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

/* not collective */
static PetscErrorCode SolveGetArrays(Solve *s)
{
  HybVecAccess  *work[] = {&s->r, &s->z, &s->p};
  KSP            ksp    = s->ksp;
  const HybExec *exec   = &s->cycle->exec;

  PetscFunctionBegin;
  PetscCall(SolveReserve(s));
  PetscCall(HybVecGet(exec, &s->work, ksp->vec_rhs, PETSC_TRUE, PETSC_FALSE, &s->b));
  PetscCall(HybVecGet(exec, &s->work, ksp->vec_sol, PETSC_TRUE, PETSC_TRUE, &s->x));
  PetscCall(HybVecGet(exec, &s->work, ksp->work[0], PETSC_FALSE, PETSC_TRUE, &s->r));
  PetscCall(HybVecGet(exec, &s->work, ksp->work[1], PETSC_FALSE, PETSC_TRUE, &s->z));
  PetscCall(HybVecGet(exec, &s->work, ksp->work[2], PETSC_FALSE, PETSC_TRUE, &s->p));
  /* they come back to the host also where nothing wrote them */
  for (int k = 0; k < 3; k++)
    if (work[k]->there != work[k]->array) PetscCall(exec->backend->zero(exec, work[k]->there, sizeof(HybScalar) * (size_t)s->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveArrays(Solve *s)
{
  KSP            ksp   = s->ksp;
  const HybExec *exec  = &s->cycle->exec;
  const size_t   bytes = sizeof(HybScalar) * (size_t)s->n;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (s->several && !ksp->guess_zero) s->failed = HybAgree(PetscObjectComm((PetscObject)ksp), s->failed, "A solve's matrices");
  if (!ksp->guess_zero) PetscCall(s->failed);
  PetscCall(SolveObjective(s));
  SOLVE_DO(s, SolveGetArrays(s));
  if (s->several) s->failed = HybAgree(PetscObjectComm((PetscObject)ksp), s->failed, "A solve");
  PetscCall(s->failed);
  s->sum = s->cg->x && s->cg->solved ? s->cg->x : (HybScalar *)s->x.there;
  if (s->sum != (HybScalar *)s->x.there) SOLVE_DO(s, exec->backend->copy(exec, s->sum, s->x.there, bytes, HYB_COPY_DEVICE_TO_DEVICE));
  ierr = SolveIterate(s);
  if (s->several) ierr = SolveTogether(s, ierr);
  if (!ierr && s->vain) ierr = HybMGArraysInVain(ksp->pc);
  if (!ierr && s->sum != (HybScalar *)s->x.there) ierr = exec->backend->copy(exec, s->x.there, s->sum, bytes, HYB_COPY_DEVICE_TO_DEVICE);
  s->cg->solved = PETSC_TRUE;
  PetscCall(HybVecRestore(exec, &s->work, &s->p));
  PetscCall(HybVecRestore(exec, &s->work, &s->z));
  PetscCall(HybVecRestore(exec, &s->work, &s->r));
  PetscCall(HybVecRestore(exec, &s->work, &s->x));
  PetscCall(HybVecRestore(exec, &s->work, &s->b));
  PetscCall(ierr);
  /* PETSc's mark of a failed preconditioner, which was made in a vector that was lent */
#if HYB_HAS_VECFLAG
  if (ksp->reason == KSP_DIVERGED_PC_FAILED) PetscCall(VecFlag(ksp->vec_sol, 1));
#else
  if (ksp->reason == KSP_DIVERGED_PC_FAILED) PetscCall(VecSetInf(ksp->vec_sol));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* is it a solve in which nobody of a program's is called, and nothing asked for but the solution? */
static PetscErrorCode SolveIsPlain(KSP ksp, const HybKSPCG *cg, PetscBool *constants, PetscBool *plain)
{
  Mat          A;
  MatNullSpace null;
  PetscMPIInt  size;

  PetscFunctionBegin;
  *plain = (PetscBool)(!cg->trust && !ksp->numbermonitors && ksp->converged == KSPConvergedDefault && !ksp->calc_sings && !ksp->transpose_solve && ksp->chknorm < 2 && !ksp->err_hist && ksp->nwork >= 3 && ksp->max_it > 0 && ksp->pc_side == PC_LEFT);
  *plain = (PetscBool)(*plain && (ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_UNPRECONDITIONED || ksp->normtype == KSP_NORM_NATURAL));
#if HYB_HAS_DIAGONALSCALE
  *plain = (PetscBool)(*plain && !ksp->pc->diagonalscale); /* PETSc's says that it cannot */
#endif
  if (!*plain) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &null));
  *constants = (PetscBool)(null && null->has_cnst);
  *plain     = (PetscBool)(!null || (size == 1 && null->has_cnst && !null->n && !null->remove));
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
  PetscCall(HybMGArraysBegin(ksp->pc, A, ksp->vec_rhs, ksp->vec_sol, ksp->work[0], (PetscBool)(ksp->reason != KSP_DIVERGED_PC_FAILED), may));
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  ierr       = HybMGArraysLend(ksp->pc, &s->cycle, &s->A, &s->mult);
  s->lent    = (PetscBool)!ierr;
  s->several = s->cycle->several;
  *may       = (PetscBool)(s->cycle->exec.backend->device && s->cycle->exec.backend->krylov->cgproducts);
  if (s->several) ierr = SolveSums(s, ierr, may);
  if (*may && s->lent) {
    const HybCycleBlocks *m = &s->cycle->level[0].several[HYB_CYCLE_A];

    s->n   = s->several ? m->D.m : s->A->m;
    s->nnz = s->several ? m->D.nnz + m->O.nnz : s->A->nnz;
  }
  if (!*may && s->lent) ierr = HybErrorFirst(ierr, HybMGArraysEnd(ksp->pc));
  if (!*may || !s->several) PetscCall(ierr);
  s->failed = ierr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_CG_Hyb(KSP ksp)
{
  PetscBool      may = PETSC_FALSE;
  Solve          s   = {.ksp = ksp};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybKSPCGGet(ksp, &s.cg));
  s.cg->ours = PETSC_FALSE;
  PetscCall(SolveIsPlain(ksp, s.cg, &s.null, &may));
  if (may) PetscCall(SolveBegin(&s, &may));
  if (may) {
    s.cg->ours = PETSC_TRUE;
    PetscCall(HybCountGAMG(HYB_SOLVES));
    s.work = HybArenaOn(&s.cycle->exec);
    ierr   = SolveArrays(&s);
    ierr   = HybErrorFirst(ierr, HybArenaReset(&s.work));
    PetscCall(HybErrorFirst(ierr, s.lent ? HybMGArraysEnd(ksp->pc) : PETSC_SUCCESS));
  } else
    PetscCall((*petsc.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPCreate_CG_Hyb(KSP ksp)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall(KSPCreate_CG(ksp));
  petsc.solve   = ksp->ops->solve;
  petsc.reset   = ksp->ops->reset;
  petsc.destroy = ksp->ops->destroy;
  PetscCall(PetscNew(&cg));
  PetscCall(HybContainerCompose((PetscObject)ksp, HYB_CG_KEY, cg, HybKSPCGFree));
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
  ksp->ops->solve   = KSPSolve_CG_Hyb;
  ksp->ops->reset   = KSPReset_CG_Hyb;
  ksp->ops->destroy = KSPDestroy_CG_Hyb;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other: the method is not plain conjugate gradients: with a trust region, or by another function */
PetscErrorCode HybCGGetKind(KSP ksp, PetscBool *other, PetscBool *hermitian)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall(HybKSPCGGet(ksp, &cg));
  *other     = (PetscBool)(cg->trust || ksp->ops->solve != KSPSolve_CG_Hyb);
  *hermitian = cg->numbers.hermitian;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGSetObjective(KSP ksp, PetscReal objective)
{
  HybKSPCG *cg;

  PetscFunctionBegin;
  PetscCall(HybKSPCGGet(ksp, &cg));
  cg->ours      = PETSC_TRUE;
  cg->objective = objective;
  PetscFunctionReturn(PETSC_SUCCESS);
}
