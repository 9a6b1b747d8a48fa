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
  smoother's D^-1 (b - A x). Since A 1 = 0, a constant too much in x changes nothing that follows but x itself, unless
  it is so large that the digits go. So nothing is taken out on the way: the mean that x should have is what P brings,
  and it gets that at the end. Sums stay where the vectors are, and nothing waits.

  Graph. On a small level a kernel takes less time than its launch. So from the second application on all that lies
  below the finest level is launched as one graph: these levels work on vectors of their own, so that their launches
  are the same each time, and the smoothers' numbers are read from memory. The finest level's launches name the
  caller's vectors and are made one by one. Of several processes, where a product is up to four launches, they are
  captured too, where the vectors are those of the last time.

  Several processes. Each has its part of every vector, and products bring what they need of others (blocks.c). A
  process that fails goes on to the end, and each product tells those who wait for its entries. In the graph are the
  levels whose exchanges find their numbers in the device's memory. A small level takes less time than its exchanges: so
  each process has such levels whole. What each restricts is added on all of them, everybody computes the same bits, and
  takes from the solution what its part of P needs.

  Single precision. The levels' matrices, vectors and numbers may be those of single precision, which halves what is
  moved; the caller's method stays double. b is scaled by a power of two on its way in, and x on its way out.

  Columns. The vectors may be several at once, interleaved: then each product reads its matrix once for all of them, by
  the rows as they are (spmv/columns.cu), and the last step may leave the inner products that conjugate gradients ask
  for. All else is the same.

  Memory: four vectors a level, two on the finest (single precision: four of half the size). Time: a product with A for
  each step but the first from zero, one for the residual, one with P and one with R.

  Reference: the cycle is that of PETSc's PCMG; M. Adams, M. Brezina, J. Hu, R. Tuminaro, Parallel multigrid smoothing:
  polynomial versus Gauss-Seidel, J. Comput. Phys. 188, 2003, for its smoother.
*/
#include "cycleimpl.h"

typedef struct {
  HybCycle          *cycle;
  const HybExec     *exec; /* the levels' */
  const HybCycleOps *ops;
  const HybScalar   *b;
  HybScalar         *x;
  PetscBool          recorded; /* somebody captures all of it */
  PetscErrorCode     failed;   /* the first error of this process: nothing is done any more, and the others are told */
  PetscInt           begun;    /* the level whose first step the restriction to it has made; 0: none */
} Visit;

/* what this process does alone, with n entries */
#define CYCLE_DO(v, n, call)                         \
  do {                                               \
    if (!(v)->failed && (n) > 0) (v)->failed = call; \
  } while (0)

/* what it does after an error too, of which the call tells the others */
#define CYCLE_ALWAYS(v, call) ((v)->failed = HybErrorFirst((v)->failed, call))

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
  HybCycleLevel *const l    = &v->cycle->level[k];
  HybSpMV *const       plan = part == HYB_CYCLE_A ? l->mult : part == HYB_CYCLE_P ? l->interpolate
                                                                                  : l->restriction;
  const HybCSR *const  csr  = part == HYB_CYCLE_A ? &l->A : part == HYB_CYCLE_P ? &l->P
                                                                                : &l->R;

  if (HybCycleShares(v->cycle, k, part)) /* after an error too: others wait for this process's entries */
    CYCLE_ALWAYS(v, HybCycleBlocksMult(&l->several[part], v->exec, v->failed, x, mode, y, z));
  else if (v->cycle->columns)
    CYCLE_DO(v, 1, v->exec->backend->columns->mult(v->exec, v->cycle->columns, csr, x, mode, y, z, NULL));
  else if (csr->i)
    CYCLE_BY_PLAN(v, plan, HybSpMVApply(plan, csr, x, mode, y, z));
  else
    CYCLE_DO(v, 1, v->ops->multtranspose(v->exec, &l->P, x, z));
}

/* last: of the application, which leaves sums where these are wanted */
static void CycleStep(Visit *v, PetscInt k, const HybScalar *x, const HybSpMVStep *step, PetscBool last)
{
  const HybCycleLevel *l = &v->cycle->level[k];

  if (v->cycle->columns) {
    CYCLE_DO(v, 1, v->exec->backend->columns->step(v->exec, v->cycle->columns, &l->A, x, step, last ? v->cycle->left : NULL));
    return;
  }
  if (!HybCycleShares(v->cycle, k, HYB_CYCLE_A) && HybSpMVHasStep(l->mult)) {
    l->mult->left = last && !v->cycle->single && HybCycleLeaves(v->cycle) ? v->cycle->sumsleft : NULL;
    CYCLE_BY_PLAN(v, l->mult, HybSpMVApplyStep(l->mult, &l->A, x, step));
    l->mult->left = NULL;
    return;
  }
  /* after an error there may be no plans; a product tells the others of it as a step does */
  if (!v->failed && HybCycleShares(v->cycle, k, HYB_CYCLE_A) && HybCycleBlocksHasStep(&l->several[HYB_CYCLE_A])) {
    CYCLE_ALWAYS(v, HybCycleBlocksStep(&v->cycle->level[k].several[HYB_CYCLE_A], v->exec, v->failed, x, step));
    return;
  }
  CycleMult(v, k, HYB_CYCLE_A, x, HYB_SPMV_RESIDUAL, step->y, l->r);
  CYCLE_DO(v, l->A.m, v->ops->combine(v->exec, l->A.m, x, l->r, step));
}

/* Does the second step from zero make the first one on its way? Not where the third one reads what the first has
   made. */
static PetscBool CycleFirstWithin(const HybCycle *c, PetscInt k)
{
  const HybCycleLevel *l = &c->level[k];

  return (PetscBool)(l->pre.steps >= 2 && !(l->pre.threeterm && l->pre.steps > 2) && !c->columns && !HybCycleShares(c, k, HYB_CYCLE_A) && HybTuningGet()->first_within && HybSpMVTakesFirst(l->mult));
}

/* z = c[0] dinv b */
static void CycleFirst(Visit *v, const HybCycleLevel *l, const PetscReal *c, const HybScalar *b, HybScalar *z)
{
  const PetscInt K = v->cycle->columns;

  if (K)
    CYCLE_DO(v, l->A.m, v->ops->columns->first(v->exec, K, l->A.m, c, l->dinv, b, z));
  else
    CYCLE_DO(v, l->A.m, v->ops->first(v->exec, l->A.m, c, l->dinv, b, z));
}

/* where the first of so many steps from zero goes, so that the last one ends in x */
static HybScalar *CycleFirstTo(const HybCycleLevel *l, const HybCycleSmoother *s, HybScalar *x)
{
  return s->steps % 2 ? x : l->p;
}

/* b of level k + 1 = R r. Where that is all of it, the same launch makes the first step of the level's smoother. */
static void CycleRestrict(Visit *v, PetscInt k, const HybScalar *r, HybScalar *b)
{
  HybCycle *const      c    = v->cycle;
  HybCycleLevel *const l    = &c->level[k];
  const HybCycleLevel *next = &c->level[k + 1]; /* behind the last one it is not read */
  HybSpMVFirst         first;

  v->begun = HybTuningGet()->restrict_first && k + 1 < c->n && next->pre.steps && !CycleFirstWithin(c, k + 1) && !c->columns && !c->several && l->R.i && HybSpMVBegins(l->restriction) ? k + 1 : 0;
  if (v->begun) {
    first                 = (HybSpMVFirst){.dinv = next->dinv, .c = next->pre.c, .z = CycleFirstTo(next, &next->pre, next->x)};
    l->restriction->first = &first;
  }
  CycleMult(v, k, HYB_CYCLE_R, r, HYB_SPMV_SET, NULL, b);
  if (v->begun) l->restriction->first = NULL;
}

/* zero: x is not read */
static void CycleSmooth(Visit *v, PetscInt level, const HybCycleSmoother *s, const HybScalar *b, HybScalar *x, PetscBool zero)
{
  const HybCycleLevel *l = &v->cycle->level[level];
  const PetscCount     n = (PetscCount)l->A.m * PetscMax(1, v->cycle->columns); /* numbers of a vector */
  /* from, to: where the last iterate is and the next one goes */
  HybScalar      *to = zero ? CycleFirstTo(l, s, x) : l->p, *from = to == x ? l->p : x;
  const PetscBool within = (PetscBool)(zero && CycleFirstWithin(v->cycle, level));

  if (zero && !s->steps) CYCLE_DO(v, n, v->ops->clear(v->exec, n, x));
  for (PetscInt k = 0; k < s->steps; k++) {
    HybScalar *const last = from;

    if (k == 0 && zero) {
      if (!within && (level ? level != v->begun : !v->cycle->begun)) CycleFirst(v, l, s->c, b, to);
    } else {
      const HybSpMVStep step = {b, l->dinv, s->threeterm && k > (zero ? 1 : 0) ? to : NULL, s->c + 3 * k, to, within && k == 1 ? s->c : NULL};

      CycleStep(v, level, from, &step, (PetscBool)(level == 0 && s == &l->post && k == s->steps - 1));
    }
    from = to;
    to   = last;
  }
  if (from != x && s->steps) CYCLE_DO(v, n, v->exec->backend->copy(v->exec, x, from, HybCycleNumberSize(v->cycle) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
}

static void CycleVisit(Visit *v, PetscInt k, const HybScalar *b, HybScalar *x, PetscBool zero);
static void CycleAll(Visit *v);

/* what is below level k, for the right-hand side that is there */
static void CycleBelow(Visit *v, PetscInt k)
{
  HybCycle *const      c    = v->cycle;
  HybCycleLevel *const next = k + 1 < c->n ? &c->level[k + 1] : NULL;

  if (next) {
    for (PetscInt i = 0; i < PetscMax(1, c->level[k].cycles); i++) CycleVisit(v, k + 1, next->b, next->x, (PetscBool)!i);
  } else if (c->columns)
    CYCLE_DO(v, c->m, v->ops->columns->dense(v->exec, c->columns, c->m, c->inverse, c->b, c->x));
  else if (c->inverse)
    CYCLE_DO(v, c->m, v->ops->dense(v->exec, c->m, c->inverse, c->b, c->x));
  else if (!v->failed || c->several) /* of several processes all have to come */
    CYCLE_ALWAYS(v, c->solve(c->ctx, c->b, c->x));
}

/* all of the levels from k on, in one visit of the level above */
static void CycleFrom(Visit *v, PetscInt k)
{
  if (k)
    CycleBelow(v, k - 1);
  else
    CycleAll(v);
}

/* the k-th exchange of several processes from a level on; NULL: there is none */
static HybCycleBlocks *CycleExchange(HybCycle *c, PetscInt first, PetscInt k)
{
  for (PetscInt l = first; c->several && l < (c->whole ? c->whole : c->n); l++) {
    for (int part = 0; part < HYB_CYCLE_PARTS; part++)
      if (HybCycleShares(c, l, (HybCyclePart)part) && !k--) return &c->level[l].several[part];
  }
  return c->several && first < c->whole && !k ? &c->summed : NULL;
}
#define CYCLE_EACH(first, c, m)           \
  for (PetscInt k_ = 0; k_ >= 0; k_ = -1) \
    for (HybCycleBlocks * m; (m = CycleExchange(c, first, k_)); k_++)

/* exchanges from a level on are captured; which: by this room, or by its caller */
static PetscErrorCode CycleRecord(HybCycle *c, PetscInt first, const HybExec *exec)
{
  PetscFunctionBegin;
  CYCLE_EACH(first, c, m)
  PetscCall(HybHaloRecord(m->halo, exec, m->transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CycleRecorded(HybCycle *c, PetscInt first, int which)
{
  CYCLE_EACH(first, c, m)
  m->captured[which] = HybHaloRecorded(m->halo, m->transpose);
}

static PetscErrorCode CycleReplay(HybCycle *c, PetscInt first, const HybExec *exec)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  CYCLE_EACH(first, c, m)
  {
    m->halo->lenient = PETSC_TRUE;
    ierr             = HybHaloReplay(m->halo, exec, m->transpose);
    m->halo->lenient = PETSC_FALSE;
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CycleReplayed(HybCycle *c, PetscInt first, int which)
{
  CYCLE_EACH(first, c, m)
  HybHaloReplayed(m->halo, m->transpose, m->captured[which]);
}

/* Other processes' failures of which this one's device has heard. They are no reason to fail the others in turn, which
   would have no end: the cycle is applied, and the error is told when it is done. */
PetscErrorCode HybCycleHeard(HybCycle *c)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  CYCLE_EACH(0, c, m)
  ierr = HybErrorFirst(ierr, m->halo ? HybHaloHeard(m->halo) : PETSC_SUCCESS);
  return ierr;
}

void HybCycleForget(HybCycle *c)
{
  CYCLE_EACH(0, c, m)
  if (m->halo) HybHaloForget(m->halo);
}

static PetscErrorCode CycleCapture(Visit *v, HybCycle *c)
{
  PetscBool      may  = PETSC_FALSE;
  PetscErrorCode ierr = PETSC_SUCCESS;
  HybExec        captured;

  PetscFunctionBegin;
  ierr = CycleRecord(c, c->first, v->exec);
  if (!ierr) ierr = v->ops->capture(v->exec, &captured, &may);
  if (may) {
    Visit inner = {c, &captured, v->ops, v->b, v->x, PETSC_TRUE, PETSC_SUCCESS, v->begun};

    c->made = v->begun;
    CycleFrom(&inner, c->first);
    ierr = v->ops->captured(&captured, inner.failed, &c->graph);
  }
  CycleRecorded(c, c->first, 0);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CycleLaunch(Visit *v, HybCycle *c)
{
  PetscFunctionBegin;
  PetscCall(CycleReplay(c, c->first, v->exec));
  PetscCall(v->ops->launch(v->exec, c->graph, c->several));
  CycleReplayed(c, c->first, 0);
  c->launched++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A method without a step may allocate and wait. Of several processes each asks for itself: what is captured is the
   same to the others. */
static PetscBool CycleLevelCanBeCaptured(const HybCycle *c, PetscInt k)
{
  const HybCycleLevel *l      = &c->level[k];
  const HybSpMV *const plan[] = {l->mult, l->interpolate, l->restriction};

  if (c->columns) return PETSC_TRUE; /* there are no plans */
  if (k + 1 == c->whole && c->several && !HybCommSumServes(c->sum)) return PETSC_FALSE;
  for (int part = 0; part < HYB_CYCLE_PARTS; part++) {
    if (HybCycleShares(c, k, (HybCyclePart)part)) {
      if (!HybCycleBlocksRecordable(&l->several[part])) return PETSC_FALSE;
    } else if ((part == HYB_CYCLE_R && !l->R.i) || !HybSpMVHasStep(plan[part]))
      return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* the finest level, from the first one on, from which on all can be captured; c->n: there is none */
static PetscInt CycleFirstCaptured(const HybCycle *c, PetscInt first)
{
  PetscInt k = c->n;

  while (c->inverse && k > first && CycleLevelCanBeCaptured(c, k - 1)) k--;
  return c->several || k == first ? k : c->n;
}

/* from the first level on that is captured: by a graph from the second time on */
static void CycleByGraph(Visit *v)
{
  HybCycle *const c = v->cycle;

  if (c->graph && c->made != v->begun) CYCLE_DO(v, 1, c->exec.backend->cycle->forget(&c->exec, &c->graph));
  if (!c->graph) CYCLE_DO(v, 1, CycleCapture(v, c));
  if (c->graph && !v->failed) {
    CYCLE_DO(v, 1, CycleLaunch(v, c));
    if (!v->failed) return;
  }
  CycleFrom(v, c->first);
}

static PetscBool CycleHasGraph(const Visit *v)
{
  const HybCycle *c = v->cycle;

  return (PetscBool)(c->first < c->n && c->applied && !v->recorded && v->ops->capture);
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
  CycleRestrict(v, k, l->r, bc);
  /* the first level that each process has whole: each has restricted its part of the right-hand side */
  if (k + 1 == c->whole && c->several) CYCLE_ALWAYS(v, HybCommSumApply(c->sum, v->exec, v->failed, k + 1 < c->n ? c->level[k + 1].A.m : c->m, bc));
  if (k == c->first - 1 && CycleHasGraph(v))
    CycleByGraph(v);
  else
    CycleBelow(v, k);
  CycleMean(v, k, 0, x);
  CycleMult(v, k, HYB_CYCLE_P, xc, HYB_SPMV_ADD, x, x);
  CycleMean(v, k, 1, x);
  CycleSmooth(v, k, &l->post, bs, x, PETSC_FALSE);
  CycleMean(v, k, 2, x);
}

/* All of the cycle. In single precision the levels have vectors of their own. */
static void CycleAll(Visit *v)
{
  HybCycle *const      c = v->cycle;
  HybCycleLevel *const l = &c->level[0];

  if (!c->single) {
    CycleVisit(v, 0, v->b, v->x, PETSC_TRUE);
    return;
  }
  if (!c->begun) CYCLE_DO(v, l->A.m, v->ops->narrow(v->exec, l->A.m, v->b, c->scale, PETSC_TRUE, l->b, NULL));
  CycleVisit(v, 0, l->b, l->x, PETSC_TRUE);
  CYCLE_DO(v, l->A.m, v->ops->widen(v->exec, l->A.m, l->x, c->scale, v->x, v->b, HybCycleLeaves(c) ? c->sumsleft : NULL));
}

PetscBool HybCycleIsRecordable(const HybCycle *c)
{
  return (PetscBool)(c->exec.backend->cycle->capture && c->n > 0 && !CycleFirstCaptured(c, 0));
}

PetscErrorCode HybCycleRecord(HybCycle *c, const HybExec *exec, const HybScalar *b, HybScalar *x)
{
  const HybExec levels = HybCycleLevels(c, exec);
  Visit         v      = {c, &levels, levels.backend->cycle, b, x, PETSC_TRUE, PETSC_SUCCESS, 0};

  PetscFunctionBegin;
  CycleAll(&v);
  c->begun = PETSC_FALSE;
  PetscCall(v.failed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleApply(HybCycle *c, PetscErrorCode before, const HybScalar *b, HybScalar *x)
{
  const PetscBool same   = (PetscBool)(c->several && b == c->lastb && x == c->lastx);
  const HybExec   levels = HybCycleLevels(c, &c->exec);
  Visit           v      = {c, &levels, levels.backend->cycle, b, x, PETSC_FALSE, before, 0};
  PetscErrorCode  heard  = HybCycleHeard(c);

  PetscFunctionBegin;
  PetscCheck(c->n >= 1 && c->n <= HYB_CYCLE_LEVELS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "A cycle has 1 to %d levels above the coarsest, not %" PetscInt_FMT, HYB_CYCLE_LEVELS, c->n);
  c->same = same ? c->same + 1 : 0;
  if (c->graph && !before && (c->first ? c->same == 2 && !c->wander && !CycleFirstCaptured(c, 0) : !same)) {
    /* the finest level's launches name the vectors: they are not captured again */
    if (!c->first) c->wander = PETSC_TRUE;
    CYCLE_DO(&v, 1, c->exec.backend->cycle->forget(&c->exec, &c->graph));
  }
  if (!c->graph && !before) c->first = CycleFirstCaptured(c, same && !c->wander ? 0 : 1);
  if (!c->first && CycleHasGraph(&v))
    CycleByGraph(&v);
  else
    CycleAll(&v);
  c->begun = PETSC_FALSE;
  PetscCall(v.failed);
  c->applied = PETSC_TRUE;
  if (!heard) heard = HybCycleHeard(c);
  PetscCall(heard);
  c->lastb = b;
  c->lastx = x;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleMult(HybCycle *c, const HybExec *exec, PetscErrorCode before, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(HybCycleBlocksMult(&c->level[0].several[HYB_CYCLE_A], exec, before, x, mode, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleRecordBegin(HybCycle *c, const HybExec *exec)
{
  PetscFunctionBegin;
  PetscCall(CycleRecord(c, 0, exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybCycleRecordEnd(HybCycle *c)
{
  CycleRecorded(c, 0, 1);
}

PetscErrorCode HybCycleReplay(HybCycle *c, const HybExec *exec)
{
  PetscFunctionBegin;
  PetscCall(CycleReplay(c, 0, exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybCycleReplayed(HybCycle *c)
{
  CycleReplayed(c, 0, 1);
}

PetscBool HybCycleFirst(const HybCycle *c, HybScalar *x, HybSpMVFirst *first)
{
  const HybCycleLevel *l      = &c->level[0];
  const PetscBool      within = CycleFirstWithin(c, 0);

  if (c->zerosum || c->columns || !l->pre.steps || (within && !c->single)) return PETSC_FALSE;
  (void)memset(first, 0, sizeof(*first));
  if (!within) *first = (HybSpMVFirst){.dinv = l->dinv, .c = l->pre.c, .z = CycleFirstTo(l, &l->pre, c->single ? l->x : x)};
  if (c->single) first->single = l->b;
  if (c->single) first->scale = c->scale;
  return PETSC_TRUE;
}

PetscBool HybCycleLeaves(const HybCycle *c)
{
  const PetscBool one = (PetscBool)(!c->several && !c->zeromean && !c->zerosum);

  if (c->single) return one; /* the way back to double precision leaves them */
  return (PetscBool)(c->level[0].post.steps > 0 && (c->columns || (one && HybSpMVLeaves(c->level[0].mult))));
}

PetscErrorCode HybCycleMoved(HybCycle *c)
{
  PetscFunctionBegin;
  c->applied = c->wander = PETSC_FALSE;
  if (c->graph) PetscCall(c->exec.backend->cycle->forget(&c->exec, &c->graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscLogDouble CycleNonzeros(const HybCycle *c, PetscInt k, HybCyclePart part)
{
  const HybCycleLevel  *l = &c->level[k];
  const HybCycleBlocks *m = &l->several[part];

  if (HybCycleShares(c, k, part)) return (PetscLogDouble)m->D.nnz + (PetscLogDouble)m->O.nnz;
  return (PetscLogDouble)(part == HYB_CYCLE_A ? l->A.nnz : part == HYB_CYCLE_R && l->R.i ? l->R.nnz
                                                                                         : l->P.nnz);
}

static PetscLogDouble SmootherFlops(const HybCycle *c, PetscInt k, const HybCycleSmoother *s, PetscBool zero)
{
  const HybCycleLevel *l = &c->level[k];
  /* the product, b - Ax, D^-1, and what combines three */
  const PetscLogDouble step = 2.0 * CycleNonzeros(c, k, HYB_CYCLE_A) + 7.0 * l->A.m;

  return s->steps ? step * (s->steps - (zero ? 1 : 0)) + (zero ? 2.0 * l->A.m : 0) : 0;
}

PetscLogDouble HybCycleFlops(const HybCycle *c)
{
  PetscLogDouble flops = 0, visits = 1, fresh = 1; /* of the visits those from zero */

  for (PetscInt k = 0; k < c->n; k++) {
    const HybCycleLevel *l     = &c->level[k];
    PetscLogDouble       these = visits * 2.0 * (CycleNonzeros(c, k, HYB_CYCLE_A) + CycleNonzeros(c, k, HYB_CYCLE_R));

    these += visits * SmootherFlops(c, k, &l->post, PETSC_FALSE);
    these += fresh * SmootherFlops(c, k, &l->pre, PETSC_TRUE) + (visits - fresh) * SmootherFlops(c, k, &l->pre, PETSC_FALSE);
    these += visits * 2.0 * CycleNonzeros(c, k, HYB_CYCLE_P);
    flops += HybCycleShares(c, k, HYB_CYCLE_A) || !c->several ? these : these / c->processes;
    fresh = visits;
    if (k + 1 < c->n) visits *= PetscMax(1, l->cycles);
  }
  return flops + (c->inverse ? visits * 2.0 * c->m * c->m / (c->several && c->whole ? c->processes : 1) : 0);
}
