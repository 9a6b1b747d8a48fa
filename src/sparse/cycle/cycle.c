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
} Visit;

/* the plan is another function's too: it is used on the visit's stream */
static PetscErrorCode CycleMult(const Visit *v, HybSpMV *mult, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  void *const    stream = mult->exec.stream;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  mult->exec.stream = v->exec->stream;
  ierr              = HybSpMVApply(mult, A, x, mode, y, z);
  mult->exec.stream = stream;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CycleStep(const Visit *v, const HybCycleLevel *l, const HybScalar *x, const HybSpMVStep *step)
{
  void *const    stream = l->mult->exec.stream;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (HybSpMVHasStep(l->mult)) {
    l->mult->exec.stream = v->exec->stream;
    ierr                 = HybSpMVApplyStep(l->mult, &l->A, x, step);
    l->mult->exec.stream = stream;
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(CycleMult(v, l->mult, &l->A, x, HYB_SPMV_RESIDUAL, step->y, l->r));
  PetscCall(v->ops->combine(v->exec, l->A.m, x, l->r, step));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zero: x is not read */
static PetscErrorCode CycleSmooth(const Visit *v, const HybCycleLevel *l, const HybCycleSmoother *s, const HybScalar *b, HybScalar *x, PetscBool zero)
{
  /* from, to: where the last iterate is and the next one goes. From zero the last step ends in x. */
  HybScalar *to = zero && s->steps % 2 ? x : l->p, *from = to == x ? l->p : x;

  PetscFunctionBegin;
  if (zero && !s->steps) PetscCall(v->ops->clear(v->exec, l->A.m, x));
  for (PetscInt k = 0; k < s->steps; k++) {
    HybScalar *const last = from;

    if (k == 0 && zero)
      PetscCall(v->ops->first(v->exec, l->A.m, s->c, l->dinv, b, to));
    else {
      const HybSpMVStep step = {b, l->dinv, s->threeterm && k > (zero ? 1 : 0) ? to : NULL, s->c + 3 * k, to};

      PetscCall(CycleStep(v, l, from, &step));
    }
    from = to;
    to   = last;
  }
  if (from != x && s->steps) PetscCall(v->exec->backend->copy(v->exec, x, from, sizeof(HybScalar) * (size_t)l->A.m, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CycleVisit(const Visit *v, PetscInt k, const HybScalar *b, HybScalar *x, PetscBool zero);

/* what is below level k, for the right-hand side that is there */
static PetscErrorCode CycleBelow(const Visit *v, PetscInt k)
{
  HybCycle *const      c    = v->cycle;
  HybCycleLevel *const next = k + 1 < c->n ? &c->level[k + 1] : NULL;

  PetscFunctionBegin;
  if (next) {
    for (PetscInt i = 0; i < PetscMax(1, c->level[k].cycles); i++) PetscCall(CycleVisit(v, k + 1, next->b, next->x, (PetscBool)!i));
  } else if (c->inverse)
    PetscCall(v->ops->dense(v->exec, c->m, c->inverse, c->b, c->x));
  else
    PetscCall(c->solve(c->ctx, c->b, c->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the finest level's launches are made one by one, what is below it by a graph from the second time on */
static PetscErrorCode CycleBelowFinest(const Visit *v)
{
  HybCycle *const c   = v->cycle;
  PetscBool       may = PETSC_FALSE;
  HybExec         captured;

  PetscFunctionBegin;
  if (v->recorded) {
    PetscCall(CycleBelow(v, 0));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (c->applied && !c->graph && !c->plain && v->ops->capture) {
    PetscCall(v->ops->capture(v->exec, &captured, &may));
    if (may) {
      const Visit    inner = {c, &captured, v->ops, PETSC_FALSE};
      PetscErrorCode ierr  = CycleBelow(&inner, 0);

      PetscCall(v->ops->captured(&captured, ierr, &c->graph));
    }
  }
  if (c->graph) {
    PetscCall(v->ops->launch(v->exec, c->graph));
    c->launched++;
  } else
    PetscCall(CycleBelow(v, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the right-hand side of the finest level's smoothers, where constants are a null space */
static PetscErrorCode CycleZeroSum(const Visit *v, const HybScalar *b)
{
  static const int weight[HYB_CYCLE_TOTALS] = {0, 0, 0, 1};
  HybCycle *const  c                        = v->cycle;
  const PetscCount n                        = c->level[0].A.m;

  PetscFunctionBegin;
  PetscCall(v->ops->sum(v->exec, &c->sums, 3, n, b));
  PetscCall(v->ops->shift(v->exec, &c->sums, weight, n, b, c->q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* sum k of the finest level's x: 0 and 1 before and after the correction, 2 at the end */
static PetscErrorCode CycleMean(const Visit *v, PetscInt level, PetscInt k, HybScalar *x)
{
  static const int weight[HYB_CYCLE_TOTALS] = {1, -1, 1, 0};
  HybCycle *const  c                        = v->cycle;

  PetscFunctionBegin;
  if (level || !c->zeromean) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(v->ops->sum(v->exec, &c->sums, k, c->level[0].A.m, x));
  if (k == 2) PetscCall(v->ops->shift(v->exec, &c->sums, weight, c->level[0].A.m, x, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CycleVisit(const Visit *v, PetscInt k, const HybScalar *b, HybScalar *x, PetscBool zero)
{
  HybCycle *const      c  = v->cycle;
  HybCycleLevel *const l  = &c->level[k];
  const HybScalar     *xc = k + 1 < c->n ? c->level[k + 1].x : c->x;
  HybScalar           *bc = k + 1 < c->n ? c->level[k + 1].b : c->b;

  const HybScalar *bs = k == 0 && c->zerosum ? c->q : b;

  PetscFunctionBegin;
  if (bs != b) PetscCall(CycleZeroSum(v, b));
  PetscCall(CycleSmooth(v, l, &l->pre, bs, x, zero));
  PetscCall(CycleMult(v, l->mult, &l->A, x, HYB_SPMV_RESIDUAL, b, l->r));
  if (l->R.i)
    PetscCall(CycleMult(v, l->restriction, &l->R, l->r, HYB_SPMV_SET, NULL, bc));
  else
    PetscCall(v->ops->multtranspose(v->exec, &l->P, l->r, bc));
  if (k == 0)
    PetscCall(CycleBelowFinest(v));
  else
    PetscCall(CycleBelow(v, k));
  PetscCall(CycleMean(v, k, 0, x));
  PetscCall(CycleMult(v, l->interpolate, &l->P, xc, HYB_SPMV_ADD, x, x));
  PetscCall(CycleMean(v, k, 1, x));
  PetscCall(CycleSmooth(v, l, &l->post, bs, x, PETSC_FALSE));
  PetscCall(CycleMean(v, k, 2, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* levels from `first` on: a method without a step may allocate and wait */
static PetscBool CycleCanBeAGraph(const HybCycle *c, PetscInt first)
{
  PetscBool can = (PetscBool)(c->inverse != NULL && c->n > first);

  for (PetscInt k = first; k < c->n; k++) can = (PetscBool)(can && HybSpMVHasStep(c->level[k].mult) && HybSpMVHasStep(c->level[k].interpolate) && c->level[k].R.i && HybSpMVHasStep(c->level[k].restriction));
  return can;
}

PetscBool HybCycleIsRecordable(const HybCycle *c)
{
  return (PetscBool)(c->exec.backend->cycle->capture && CycleCanBeAGraph(c, 0));
}

PetscErrorCode HybCycleRecord(HybCycle *c, const HybExec *exec, const HybScalar *b, HybScalar *x)
{
  const Visit v = {c, exec, exec->backend->cycle, PETSC_TRUE};

  PetscFunctionBegin;
  PetscCall(CycleVisit(&v, 0, b, x, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleApply(HybCycle *c, const HybScalar *b, HybScalar *x)
{
  const Visit v = {c, &c->exec, c->exec.backend->cycle, PETSC_FALSE};

  PetscFunctionBegin;
  PetscCheck(c->n >= 1 && c->n <= HYB_CYCLE_LEVELS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A cycle has 1 to %d levels above the coarsest, not %" PetscInt_FMT, HYB_CYCLE_LEVELS, c->n);
  if (!c->applied) c->plain = (PetscBool)!CycleCanBeAGraph(c, 1);
  PetscCall(CycleVisit(&v, 0, b, x, PETSC_TRUE));
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

    flops += visits * (2.0 * l->A.nnz + 2.0 * l->P.nnz + 2.0 * (l->R.i ? l->R.nnz : l->P.nnz) + SmootherFlops(l, &l->post, PETSC_FALSE));
    flops += fresh * SmootherFlops(l, &l->pre, PETSC_TRUE) + (visits - fresh) * SmootherFlops(l, &l->pre, PETSC_FALSE);
    fresh = visits;
    if (k + 1 < c->n) visits *= PetscMax(1, l->cycles);
  }
  return flops + (c->inverse ? visits * 2.0 * c->m * c->m : 0);
}
