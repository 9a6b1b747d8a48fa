/*
  cycle.c: a multigrid cycle without an object, a wait or a pass over a vector that a product makes anyway.

  Idea. PETSc's cycle is some sixteen operations a level on vectors that live as long as an operation: a step of its
  smoother reads and writes 22 vectors beside the product. Here a step is the end of the product's rows (HybSpMVStep),
  so that each vector is read or written once for each product, and nothing is asked between two launches.

    visit level l (b, x; from zero or from x):
      smooth(pre)                             steps of  x = c2 x_before + c1 x + c0 dinv (b - A x)
      r = b - A x;  b of l+1 = R r
      the coarsest: x = inverse b, else visit level l+1 once (from zero), or twice (W: then from its x)
      x = x + P (x of l+1)
      smooth(post), from x

  Two vectors are enough for a three-term recurrence: the new iterate goes where the one before the last is. The first
  step from zero needs no product, and the second one no older iterate. The order of operations is PETSc's.

  Null space. Where constants are the null space of the finest level's matrix, PETSc takes the mean out of each
  smoother's D^-1 (b - A x). Since A 1 = 0, a constant too much in x changes nothing that follows but x itself. So
  nothing is taken out on the way: the mean that x should have is what P brings, and it gets that at the end. Sums stay
  where the vectors are, and nothing waits.

  Graph. On a small level a kernel takes less time than its launch. So from the second application on all that lies
  below the finest level is launched as one graph: these levels work on vectors of their own, so that their launches
  are the same each time, and the smoothers' numbers are read from memory. The finest level's launches name the
  caller's vectors and are made one by one.

  Several processes. Each has its part of every vector, and products are the caller's, who moves what they need of
  others. A process that fails goes on to the end, where each product tells those who wait for its entries.

  Memory: four vectors a level, two on the finest. Time: a product with A for each step but the first from zero, one for
  the residual, one with P and one with R.

  Reference: the cycle is that of PETSc's PCMG; M. Adams, M. Brezina, J. Hu, R. Tuminaro, Parallel multigrid smoothing:
  polynomial versus Gauss-Seidel, J. Comput. Phys. 188, 2003, for its smoother.
*/
#include <aijhybridgpu/private/hybcycle.h>

typedef struct {
  HybCycle          *cycle;
  const HybExec     *exec;
  const HybCycleOps *ops;
  PetscBool          recorded; /* somebody captures all of it */
  PetscErrorCode     failed;   /* the first error of this process: nothing is done any more, and the others are told */
} Visit;

/* what this process does alone, with n entries */
#define CYCLE_DO(v, n, call)                         \
  do {                                               \
    if (!(v)->failed && (n) > 0) (v)->failed = call; \
  } while (0)

/* the plan is another function's too: it is used on the visit's stream */
#define CYCLE_BY_PLAN(v, plan, call)          \
  do {                                        \
    void *const stream = (plan)->exec.stream; \
                                              \
    (plan)->exec.stream = (v)->exec->stream;  \
    CYCLE_DO(v, 1, call);                     \
    (plan)->exec.stream = stream;             \
  } while (0)

/* a product with the matrix that level k has for this */
static void CycleMult(Visit *v, PetscInt k, HybCyclePart part, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const HybCycle      *c    = v->cycle;
  const HybCycleLevel *l    = &c->level[k];
  HybSpMV *const       plan = part == HYB_CYCLE_A ? l->mult : part == HYB_CYCLE_P ? l->interpolate
                                                                                  : l->restriction;
  const HybCSR *const  csr  = part == HYB_CYCLE_A ? &l->A : part == HYB_CYCLE_P ? &l->P
                                                                                : &l->R;

  if (c->mult) { /* after an error too: others wait for this process's entries */
    const PetscErrorCode ierr = c->mult(c->ctx, v->failed, k, part, x, mode, y, z);

    if (!v->failed) v->failed = ierr;
  } else if (csr->i)
    CYCLE_BY_PLAN(v, plan, HybSpMVApply(plan, csr, x, mode, y, z));
  else
    CYCLE_DO(v, 1, v->ops->multtranspose(v->exec, &l->P, x, z));
}

static void CycleStep(Visit *v, PetscInt k, const HybScalar *x, const HybSpMVStep *step)
{
  const HybCycleLevel *l = &v->cycle->level[k];

  if (!v->cycle->mult && HybSpMVHasStep(l->mult)) {
    CYCLE_BY_PLAN(v, l->mult, HybSpMVApplyStep(l->mult, &l->A, x, step));
    return;
  }
  CycleMult(v, k, HYB_CYCLE_A, x, HYB_SPMV_RESIDUAL, step->y, l->r);
  CYCLE_DO(v, l->A.m, v->ops->combine(v->exec, l->A.m, x, l->r, step));
}

/* zero: x is not read */
static void CycleSmooth(Visit *v, PetscInt level, const HybCycleSmoother *s, const HybScalar *b, HybScalar *x, PetscBool zero)
{
  const HybCycleLevel *l = &v->cycle->level[level];
  /* from, to: where the last iterate is and the next one goes. From zero the last step ends in x. */
  HybScalar *to = zero && s->steps % 2 ? x : l->p, *from = to == x ? l->p : x;

  if (zero && !s->steps) CYCLE_DO(v, l->A.m, v->ops->clear(v->exec, l->A.m, x));
  for (PetscInt k = 0; k < s->steps; k++) {
    HybScalar *const last = from;

    if (k == 0 && zero)
      CYCLE_DO(v, l->A.m, v->ops->first(v->exec, l->A.m, s->c, l->dinv, b, to));
    else {
      const HybSpMVStep step = {b, l->dinv, s->threeterm && k > (zero ? 1 : 0) ? to : NULL, s->c + 3 * k, to};

      CycleStep(v, level, from, &step);
    }
    from = to;
    to   = last;
  }
  if (from != x && s->steps) CYCLE_DO(v, l->A.m, v->exec->backend->copy(v->exec, x, from, sizeof(HybScalar) * (size_t)l->A.m, HYB_COPY_DEVICE_TO_DEVICE));
}

static void CycleVisit(Visit *v, PetscInt k, const HybScalar *b, HybScalar *x, PetscBool zero);

/* what is below level k, for the right-hand side that is there */
static void CycleBelow(Visit *v, PetscInt k)
{
  HybCycle *const      c    = v->cycle;
  HybCycleLevel *const next = k + 1 < c->n ? &c->level[k + 1] : NULL;

  if (next) {
    for (PetscInt i = 0; i < PetscMax(1, c->level[k].cycles); i++) CycleVisit(v, k + 1, next->b, next->x, (PetscBool)!i);
  } else if (c->inverse)
    CYCLE_DO(v, c->m, v->ops->dense(v->exec, c->m, c->inverse, c->b, c->x));
  else if (!v->failed || c->mult) { /* of several processes all have to come */
    const PetscErrorCode ierr = c->solve(c->ctx, c->b, c->x);

    if (!v->failed) v->failed = ierr;
  }
}

static PetscErrorCode CycleCapture(Visit *v, HybCycle *c)
{
  PetscBool may = PETSC_FALSE;
  HybExec   captured;

  PetscFunctionBegin;
  PetscCall(v->ops->capture(v->exec, &captured, &may));
  if (may) {
    Visit inner = {c, &captured, v->ops, PETSC_FALSE, PETSC_SUCCESS};

    CycleBelow(&inner, 0);
    PetscCall(v->ops->captured(&captured, inner.failed, &c->graph));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the finest level's launches are made one by one, what is below it by a graph from the second time on */
static void CycleBelowFinest(Visit *v)
{
  HybCycle *const c = v->cycle;

  if (!v->recorded && c->applied && !c->graph && !c->plain && v->ops->capture) CYCLE_DO(v, 1, CycleCapture(v, c));
  if (!v->recorded && c->graph) {
    CYCLE_DO(v, 1, v->ops->launch(v->exec, c->graph));
    if (!v->failed) c->launched++;
  } else
    CycleBelow(v, 0);
}

/* the right-hand side of the finest level's smoothers, where constants are a null space */
static void CycleZeroSum(Visit *v, const HybScalar *b)
{
  static const int weight[HYB_CYCLE_TOTALS] = {0, 0, 0, 1};
  HybCycle *const  c                        = v->cycle;
  const PetscCount n                        = c->level[0].A.m;

  CYCLE_DO(v, n, v->ops->sum(v->exec, &c->sums, 3, n, b));
  CYCLE_DO(v, n, v->ops->shift(v->exec, &c->sums, weight, n, b, c->q));
}

/* sum k of the finest level's x: 0 and 1 before and after the correction, 2 at the end */
static void CycleMean(Visit *v, PetscInt level, PetscInt k, HybScalar *x)
{
  static const int weight[HYB_CYCLE_TOTALS] = {1, -1, 1, 0};
  HybCycle *const  c                        = v->cycle;
  const PetscCount n                        = c->level[0].A.m;

  if (level || !c->zeromean) return;
  CYCLE_DO(v, n, v->ops->sum(v->exec, &c->sums, k, n, x));
  if (k == 2) CYCLE_DO(v, n, v->ops->shift(v->exec, &c->sums, weight, n, x, x));
}

static void CycleVisit(Visit *v, PetscInt k, const HybScalar *b, HybScalar *x, PetscBool zero)
{
  HybCycle *const      c  = v->cycle;
  HybCycleLevel *const l  = &c->level[k];
  const HybScalar     *xc = k + 1 < c->n ? c->level[k + 1].x : c->x;
  HybScalar           *bc = k + 1 < c->n ? c->level[k + 1].b : c->b;
  const HybScalar     *bs = k == 0 && c->zerosum ? c->q : b;

  if (bs != b) CycleZeroSum(v, b);
  CycleSmooth(v, k, &l->pre, bs, x, zero);
  CycleMult(v, k, HYB_CYCLE_A, x, HYB_SPMV_RESIDUAL, b, l->r);
  CycleMult(v, k, HYB_CYCLE_R, l->r, HYB_SPMV_SET, NULL, bc);
  if (k == 0)
    CycleBelowFinest(v);
  else
    CycleBelow(v, k);
  CycleMean(v, k, 0, x);
  CycleMult(v, k, HYB_CYCLE_P, xc, HYB_SPMV_ADD, x, x);
  CycleMean(v, k, 1, x);
  CycleSmooth(v, k, &l->post, bs, x, PETSC_FALSE);
  CycleMean(v, k, 2, x);
}

/* levels from `first` on: a method without a step may allocate and wait */
static PetscBool CycleCanBeAGraph(const HybCycle *c, PetscInt first)
{
  PetscBool can = (PetscBool)(!c->mult && c->inverse != NULL && c->n > first);

  for (PetscInt k = first; k < c->n; k++) can = (PetscBool)(can && HybSpMVHasStep(c->level[k].mult) && HybSpMVHasStep(c->level[k].interpolate) && c->level[k].R.i && HybSpMVHasStep(c->level[k].restriction));
  return can;
}

PetscBool HybCycleIsRecordable(const HybCycle *c)
{
  return (PetscBool)(c->exec.backend->cycle->capture && CycleCanBeAGraph(c, 0));
}

PetscErrorCode HybCycleRecord(HybCycle *c, const HybExec *exec, const HybScalar *b, HybScalar *x)
{
  Visit v = {c, exec, exec->backend->cycle, PETSC_TRUE, PETSC_SUCCESS};

  PetscFunctionBegin;
  CycleVisit(&v, 0, b, x, PETSC_TRUE);
  PetscCall(v.failed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleApply(HybCycle *c, PetscErrorCode before, const HybScalar *b, HybScalar *x)
{
  Visit v = {c, &c->exec, c->exec.backend->cycle, PETSC_FALSE, before};

  PetscFunctionBegin;
  PetscCheck(c->n >= 1 && c->n <= HYB_CYCLE_LEVELS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A cycle has 1 to %d levels above the coarsest, not %" PetscInt_FMT, HYB_CYCLE_LEVELS, c->n);
  if (!c->applied) c->plain = (PetscBool)!CycleCanBeAGraph(c, 1);
  CycleVisit(&v, 0, b, x, PETSC_TRUE);
  PetscCall(v.failed);
  c->applied = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleMoved(HybCycle *c)
{
  PetscFunctionBegin;
  c->applied = PETSC_FALSE;
  if (c->graph) PetscCall(c->exec.backend->cycle->forget(&c->exec, &c->graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscLogDouble SmootherFlops(const HybCycleLevel *l, const HybCycleSmoother *s, PetscBool zero)
{
  const PetscLogDouble step = 2.0 * l->A.nnz + 7.0 * l->A.m; /* the product, b - Ax, D^-1, and what combines three */

  return s->steps ? step * (s->steps - (zero ? 1 : 0)) + (zero ? 2.0 * l->A.m : 0) : 0;
}

PetscLogDouble HybCycleFlops(const HybCycle *c)
{
  PetscLogDouble flops = 0, visits = 1, fresh = 1; /* of the visits those from zero */

  for (PetscInt k = 0; k < c->n; k++) {
    const HybCycleLevel *l = &c->level[k];

    flops += visits * (2.0 * l->A.nnz + 2.0 * l->P.nnz + 2.0 * (l->R.nnz ? l->R.nnz : l->P.nnz) + SmootherFlops(l, &l->post, PETSC_FALSE));
    flops += fresh * SmootherFlops(l, &l->pre, PETSC_TRUE) + (visits - fresh) * SmootherFlops(l, &l->pre, PETSC_FALSE);
    fresh = visits;
    if (k + 1 < c->n) visits *= PetscMax(1, l->cycles);
  }
  return flops + (c->inverse ? visits * 2.0 * c->m * c->m : 0);
}
