/*
  A smoother's step as the end of a product, by every method that has it, beside the same plan's residual to the last
  bit; and cycles of multigrid on random levels beside a plain recursion: V and W, any number of steps on both sides,
  whatever is in the vector before, with an inverse on the coarsest level and with a function, with numbers that change
  between applications, and arrays that move. On a device the levels below the finest are a graph from the second
  application on, and a cycle may be one of several columns at once.
*/
#include "hybtest.h"
#include <aijhybridgpu/private/hybcycle.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* one method, one matrix, with and without w, which may be z */
static PetscErrorCode TestStep(const char *method, RefMat *A)
{
  const HybExec  *exec = HybTestExec();
  const PetscInt  m    = A->csr.m;
  const PetscReal c[3] = {0.7, 1.3, -0.4};
  HybSpMV         mv;
  HybCSR          there;
  PetscReal      *tc;
  PetscScalar    *x, *y, *d, *w, *z, *r, *hx = HybTestRandomVector(m), *hy = HybTestRandomVector(m), *hd = HybTestRandomVector(m), *hw = HybTestRandomVector(m), *hr = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  PetscErrorCode  ierr;
  HybArena        arena = HybArenaOn(exec);

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&arena, &A->csr, &there));
  PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hx, &x));
  PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hy, &y));
  PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hd, &d));
  PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hw, &w));
  PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hw, &z));
  PetscCall(HybTestUploadArray(&arena, m, sizeof(PetscScalar), hw, &r));
  PetscCall(HybTestUploadArray(&arena, 3, sizeof(PetscReal), c, &tc));
  PetscCall(HybSpMVInit(&mv, exec, method, 1));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybSpMVSetUp(&mv, &there);
  PetscCall(PetscPopErrorHandler());
  HybTestCheck(!ierr || ierr == PETSC_ERR_SUP, "error %d from HybSpMVSetUp()", (int)ierr);
  for (int way = 0; !ierr && HybSpMVHasStep(&mv) && way < 3; way++) {
    /* without w, with w, w is z */
    const HybSpMVStep step = {.y = y, .dinv = d, .w = way == 0 ? NULL : way == 1 ? w
                                                                                 : z,
                              .c = tc,
                              .z = z};

    HybTestCall(HybSpMVApply(&mv, &there, x, HYB_SPMV_RESIDUAL, y, r));
    PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), r, hr));
    if (way == 2) PetscCall(exec->backend->copy(exec, z, w, sizeof(PetscScalar) * (size_t)m, HYB_COPY_DEVICE_TO_DEVICE));
    HybTestCall(HybSpMVApplyStep(&mv, &there, x, &step));
    for (PetscInt k = 0; k < m; k++) {
      const PetscScalar t = c[0] * (hd[k] * hr[k]), u = c[1] * hx[k];

      hr[k] = (way ? c[2] * hw[k] + u : u) + t;
    }
    if (PetscDefined(USE_COMPLEX)) { /* a compiler may order the parts of a product otherwise */
      PetscScalar *hz    = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
      PetscBool    close = PETSC_TRUE;

      PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), z, hz));
      for (PetscInt k = 0; k < m; k++) close = (PetscBool)(close && PetscAbsScalar(hz[k] - hr[k]) <= ROUNDED(1e-13) * (1 + PetscAbsScalar(hr[k])));
      HybTestCheck(close, "%s: the step differs from its residual's, way %d", mv.method->name, way);
      free(hz);
    } else
      HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), z, hr), "%s: the step differs from its residual's, way %d", mv.method->name, way);
    HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), x, hx) && HybTestSameBits(m, sizeof(PetscScalar), y, hy) && HybTestSameBits(m, sizeof(PetscScalar), d, hd) && HybTestSameBits(m, sizeof(PetscScalar), w, hw), "an operand was changed");
  }
  HybTestCall(HybSpMVDestroy(&mv));
  PetscCall(HybArenaReset(&arena));
  RefFree(hx, hy, hd, hw, hr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Steps(void)
{
  const char *const *names;
  RefMat             A;
  char               name[64];

  PetscFunctionBegin;
  PetscCall(HybSpMVGetNames(&names));
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    if (HybTestMine()) {
      HybTestBegin("steps with %s", name);
      PetscCall(TestStep("auto", &A));
      for (int n = 0; names[n]; n++) {
        for (const HybSpMVMethod *const *m = HybTestExec()->backend->spmv; *m; m++)
          if (!strcmp((*m)->name, names[n]) && (*m)->step) PetscCall(TestStep(names[n], &A));
      }
      HybTestCheck(PETSC_TRUE, "-");
    }
    RefMatDestroy(&A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define LEVELS 4

typedef struct {
  PetscInt     n, size[LEVELS + 1], pre, post, cycles;
  PetscBool    three;
  RefMat       A[LEVELS], P[LEVELS], R[LEVELS];
  PetscScalar *dinv[LEVELS], *inverse;
  PetscReal    c[LEVELS][2][3 * 4];
} Problem;

static void RandomValues(Problem *p)
{
  for (PetscInt l = 0; l < p->n; l++) {
    HybTestRandomize(&p->A[l]);
    HybTestRandomize(&p->P[l]);
    RefMatDestroy(&p->R[l]);
    RefTranspose(&p->P[l], PETSC_FALSE, &p->R[l]);
    for (PetscInt k = 0; k < p->size[l]; k++) p->dinv[l][k] = 0.2 + 0.1 * HybTestRandomReal();
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < 12; k++) p->c[l][s][k] = 0.3 + 0.4 * HybTestRandomReal();
  }
  for (PetscInt k = 0; k < p->size[p->n] * p->size[p->n]; k++) p->inverse[k] = HybTestRandomScalar();
}

static PetscErrorCode ProblemCreate(PetscInt n, PetscInt rows, PetscInt pre, PetscInt post, PetscInt cycles, PetscBool three, Problem *p)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  p->n      = n;
  p->pre    = pre;
  p->post   = post;
  p->cycles = cycles;
  p->three  = three;
  for (PetscInt l = 0; l <= n; l++, rows = rows / 3 + 1) p->size[l] = rows;
  for (PetscInt l = 0; l < n; l++) {
    HybTestMatBanded(p->size[l], p->size[l], 2 + l, 1 + l, &p->A[l]);
    HybTestMatProlongator(p->size[l], p->size[l + 1], 3, &p->P[l]);
    RefTranspose(&p->P[l], PETSC_FALSE, &p->R[l]);
    p->dinv[l] = (PetscScalar *)RefAlloc(p->size[l], sizeof(PetscScalar));
  }
  p->inverse = (PetscScalar *)RefAlloc(p->size[n] * p->size[n], sizeof(PetscScalar));
  RandomValues(p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void ProblemDestroy(Problem *p)
{
  for (PetscInt l = 0; l < p->n; l++) {
    RefMatDestroy(&p->A[l], &p->P[l], &p->R[l]);
    free(p->dinv[l]);
  }
  free(p->inverse);
}

/* the definitions, one after the other */
static void RefSmooth(const Problem *p, PetscInt l, int side, const PetscScalar *b, PetscScalar *x, PetscBool zero)
{
  const PetscInt m = p->size[l];
  PetscScalar   *r = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *last = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  PetscReal     *mag  = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  PetscCount    *term = (PetscCount *)RefAlloc(m, sizeof(PetscCount));

  memset(last, 0, sizeof(PetscScalar) * (size_t)m);
  if (zero) memset(x, 0, sizeof(PetscScalar) * (size_t)m);
  for (PetscInt k = 0; k < (side ? p->post : p->pre); k++) {
    const PetscReal *c = p->c[l][side] + 3 * k;

    RefSpMV(&p->A[l], x, -1, b, r, mag, term);
    for (PetscInt q = 0; q < m; q++) {
      const PetscScalar now = x[q];

      x[q]    = (p->three && k ? c[2] * last[q] : 0) + (zero && !k ? 0 : c[1] * x[q]) + c[0] * p->dinv[l][q] * r[q];
      last[q] = now;
    }
  }
  RefFree(r, last, mag, term);
}

static void RefVisit(const Problem *p, PetscInt l, const PetscScalar *b, PetscScalar *x, PetscBool zero)
{
  const PetscInt m = p->size[l], n = l < p->n ? p->size[l + 1] : 0;
  PetscScalar   *r, *bc, *xc;
  PetscReal     *mag;
  PetscCount    *term;

  if (l == p->n) {
    for (PetscInt q = 0; q < m; q++) {
      x[q] = 0;
      for (PetscInt k = 0; k < m; k++) x[q] += p->inverse[q * m + k] * b[k];
    }
    return;
  }
  r    = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));
  bc   = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  xc   = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));
  mag  = (PetscReal *)RefAlloc(m, sizeof(PetscReal));
  term = (PetscCount *)RefAlloc(m, sizeof(PetscCount));
  RefSmooth(p, l, 0, b, x, zero);
  RefSpMV(&p->A[l], x, -1, b, r, mag, term);
  RefSpMV(&p->R[l], r, 1, NULL, bc, mag, term);
  for (PetscInt k = 0; k < (l + 1 < p->n ? p->cycles : 1); k++) RefVisit(p, l + 1, bc, xc, (PetscBool)!k);
  RefSpMV(&p->P[l], xc, 1, x, x, mag, term);
  RefSmooth(p, l, 1, b, x, PETSC_FALSE);
  RefFree(r, bc, xc, mag, term);
}

typedef struct {
  HybCycle cycle;
  HybArena arena;
  HybSpMV  mv[LEVELS][3];
  PetscInt solved; /* calls of Solve() */
  Problem *p;
} There;

/* the coarsest level by a function */
static PetscErrorCode Solve(void *ctx, const HybScalar *b, HybScalar *x)
{
  There         *t  = (There *)ctx;
  const PetscInt m  = t->p->size[t->p->n];
  PetscScalar   *hb = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *hx = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar));

  PetscFunctionBegin;
  PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), b, hb));
  RefVisit(t->p, t->p->n, hb, hx, PETSC_TRUE);
  PetscCall(t->cycle.exec.backend->copy(&t->cycle.exec, x, hx, sizeof(PetscScalar) * (size_t)m, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(t->cycle.exec.backend->sync(&t->cycle.exec));
  t->solved++;
  RefFree(hb, hx);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ThereCreate(Problem *p, const char *method, PetscBool inverse, There *t)
{
  HybCycle      *c    = &t->cycle;
  const HybExec *exec = HybTestExec();

  PetscFunctionBegin;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  t->arena = HybArenaOn(exec);
  t->p     = p;
  c->exec  = *exec;
  c->n     = p->n;
  for (PetscInt l = 0; l < p->n; l++) {
    HybCycleLevel *v = &c->level[l];
    PetscReal     *c0, *c1;
    const size_t   size = sizeof(PetscScalar);

    PetscCall(HybTestUpload(&t->arena, &p->A[l].csr, &v->A));
    PetscCall(HybTestUpload(&t->arena, &p->P[l].csr, &v->P));
    if (exec->backend->device) PetscCall(HybTestUpload(&t->arena, &p->R[l].csr, &v->R));
    for (int k = 0; k < 3; k++) PetscCall(HybSpMVInit(&t->mv[l][k], exec, method, 1));
    PetscCall(HybSpMVSetUp(&t->mv[l][0], &v->A));
    PetscCall(HybSpMVSetUp(&t->mv[l][1], &v->P));
    if (v->R.i) PetscCall(HybSpMVSetUp(&t->mv[l][2], &v->R));
    v->mult        = &t->mv[l][0];
    v->interpolate = &t->mv[l][1];
    v->restriction = &t->mv[l][2];
    PetscCall(HybTestUploadArray(&t->arena, p->size[l], size, p->dinv[l], &v->dinv));
    PetscCall(HybTestUploadArray(&t->arena, 12, sizeof(PetscReal), p->c[l][0], &c0));
    PetscCall(HybTestUploadArray(&t->arena, 12, sizeof(PetscReal), p->c[l][1], &c1));
    v->pre    = (HybCycleSmoother){p->pre, p->three, c0};
    v->post   = (HybCycleSmoother){p->post, p->three, c1};
    v->cycles = p->cycles;
    for (int k = 0; k < 4; k++) PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), p->size[l], size, k == 0 ? &v->b : k == 1 ? &v->x
                                                                                                                    : k == 2 ? &v->r
                                                                                                                             : &v->p));
  }
  c->m = p->size[p->n];
  PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), c->m, sizeof(PetscScalar), &c->b));
  PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), c->m, sizeof(PetscScalar), &c->x));
  if (inverse)
    PetscCall(HybTestUploadArray(&t->arena, (PetscCount)c->m * c->m, sizeof(PetscScalar), p->inverse, &c->inverse));
  else {
    c->solve = Solve;
    c->ctx   = t;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other numbers in the arrays that are there */
static PetscErrorCode ThereRenew(There *t)
{
  const HybExec *exec = &t->cycle.exec;
  Problem       *p    = t->p;

  PetscFunctionBegin;
  for (PetscInt l = 0; l < p->n; l++) {
    HybCycleLevel *v = &t->cycle.level[l];

    PetscCall(exec->backend->copy(exec, v->A.a, p->A[l].csr.a, sizeof(PetscScalar) * (size_t)v->A.nnz, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(exec->backend->copy(exec, v->P.a, p->P[l].csr.a, sizeof(PetscScalar) * (size_t)v->P.nnz, HYB_COPY_HOST_TO_DEVICE));
    if (v->R.i) PetscCall(exec->backend->copy(exec, v->R.a, p->R[l].csr.a, sizeof(PetscScalar) * (size_t)v->R.nnz, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(exec->backend->copy(exec, (void *)v->dinv, p->dinv[l], sizeof(PetscScalar) * (size_t)v->A.m, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(exec->backend->copy(exec, (void *)v->pre.c, p->c[l][0], sizeof(PetscReal) * 12, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(exec->backend->copy(exec, (void *)v->post.c, p->c[l][1], sizeof(PetscReal) * 12, HYB_COPY_HOST_TO_DEVICE));
  }
  if (t->cycle.inverse) PetscCall(exec->backend->copy(exec, (void *)t->cycle.inverse, p->inverse, sizeof(PetscScalar) * (size_t)t->cycle.m * (size_t)t->cycle.m, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ThereDestroy(There *t)
{
  PetscFunctionBegin;
  PetscCall(HybCycleMoved(&t->cycle));
  for (PetscInt l = 0; l < t->p->n; l++)
    for (int k = 0; k < 3; k++) PetscCall(HybSpMVDestroy(&t->mv[l][k]));
  PetscCall(HybArenaReset(&t->arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(There *t, const char *what)
{
  Problem       *p  = t->p;
  const PetscInt m  = p->size[0];
  PetscScalar   *hb = HybTestRandomVector(m), *hx = HybTestRandomVector(m), *found = (PetscScalar *)RefAlloc(m, sizeof(PetscScalar)), *b, *x, *again;
  PetscReal      norm = 0, worst = 0;

  PetscFunctionBegin;
  PetscCall(HybTestUploadArray(&t->arena, m, sizeof(PetscScalar), hb, &b));
  PetscCall(HybTestUploadArray(&t->arena, m, sizeof(PetscScalar), hx, &x));
  PetscCall(HybTestUploadArray(&t->arena, m, sizeof(PetscScalar), hx, &again));
  HybTestCall(HybCycleApply(&t->cycle, PETSC_SUCCESS, b, x));
  HybTestCall(HybCycleApply(&t->cycle, PETSC_SUCCESS, b, again));
  RefVisit(p, 0, hb, hx, PETSC_TRUE);
  PetscCall(HybTestDownloadArray(m, sizeof(PetscScalar), x, found));
  for (PetscInt k = 0; k < m; k++) norm = PetscMax(norm, PetscAbsScalar(hx[k]));
  for (PetscInt k = 0; k < m; k++) worst = PetscMax(worst, PetscAbsScalar(found[k] - hx[k]));
  HybTestCheck(worst <= 1e4 * PETSC_MACHINE_EPSILON * norm, "%s: %g apart, of %g", what, (double)worst, (double)norm);
  HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), again, found), "%s: other bits the second time", what);
  HybTestCheck(HybTestSameBits(m, sizeof(PetscScalar), b, hb), "%s: the right-hand side was changed", what);
  PetscCall(HybArenaFree(&t->arena, &b, &x, &again));
  RefFree(hb, hx, found);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The same cycle of K columns at once, interleaved, beside the recursion for each of them: again, which is a graph, with
  other numbers, and the sums that its last step leaves.
*/
static PetscErrorCode Columns(There *t, PetscInt K)
{
  Problem       *p    = t->p;
  const HybExec *exec = &t->cycle.exec;
  const PetscInt m    = p->size[0];
  const size_t   size = sizeof(PetscScalar);
  HybColumnsSums left = {.hermitian = PETSC_TRUE};
  HybCycle       c    = t->cycle;
  PetscScalar   *hb = HybTestRandomVector((PetscCount)m * K), *found = (PetscScalar *)RefAlloc((PetscCount)m * K, size), *one = (PetscScalar *)RefAlloc(m, size), *want = (PetscScalar *)RefAlloc(m, size), *part, *b, *x;

  PetscFunctionBegin;
  c.columns  = K;
  c.left     = &left;
  c.graph    = NULL;
  c.applied  = PETSC_FALSE;
  c.launched = 0;
  for (PetscInt l = 0; l <= p->n; l++) {
    HybCycleLevel *const v    = &c.level[l];
    HybScalar **const    to[] = {l < p->n ? &v->b : &c.b, l < p->n ? &v->x : &c.x, &v->r, &v->p};

    for (int k = 0; k < (l < p->n ? 4 : 2); k++) PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), (PetscCount)p->size[l] * K, size, to[k]));
  }
  PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), 3 * HYB_COLUMNS_SUMS * K, size, &left.part));
  PetscCall(HybTestUploadArray(&t->arena, (PetscCount)m * K, size, hb, &b));
  PetscCall(HybArenaAlloc(&t->arena, HYB_WORK(exec), (PetscCount)m * K, size, &x));
  for (int time = 0; time < 4; time++) {
    PetscReal worst = 0, norm = 0;

    if (time == 3) {
      RandomValues(p);
      PetscCall(ThereRenew(t));
    }
    HybTestCall(HybCycleApply(&c, PETSC_SUCCESS, b, x));
    if (time == 1 || time == 2) HybTestCheck(HybTestSameBits((PetscCount)m * K, size, x, found), "%d columns: other bits, time %d", (int)K, time);
    PetscCall(HybTestDownloadArray((PetscCount)m * K, size, x, found));
    for (PetscInt q = 0; q < K && time % 3 == 0; q++) {
      for (PetscInt k = 0; k < m; k++) one[k] = hb[k * K + q];
      RefVisit(p, 0, one, want, PETSC_TRUE);
      for (PetscInt k = 0; k < m; k++) norm = PetscMax(norm, PetscAbsScalar(want[k]));
      for (PetscInt k = 0; k < m; k++) worst = PetscMax(worst, PetscAbsScalar(found[k * K + q] - want[k]));
    }
    HybTestCheck(worst <= 1e4 * PETSC_MACHINE_EPSILON * norm, "%d columns, time %d: %g apart, of %g", (int)K, time, (double)worst, (double)norm);
    HybTestCheck(HybTestSameBits((PetscCount)m * K, size, b, hb), "the right-hand sides were changed");
  }
  HybTestCheck(c.launched == (p->n > 1 ? 3 : 0), "%td of 4 applications of columns by a graph", c.launched);
  HybTestCheck(HybCycleLeaves(&c) == (PetscBool)(p->post > 0) && !HybCycleLeaves(&t->cycle), "who leaves sums");
  if (HybCycleLeaves(&c)) {
    PetscScalar sum = 0, expected = 0;

    part = (PetscScalar *)RefAlloc(3 * left.blocks * K, size);
    PetscCall(HybTestDownloadArray(3 * left.blocks * K, size, left.part, part));
    for (PetscInt q = 0; q < left.blocks; q++) sum += part[(q * 3 + 1) * K + 1];
    for (PetscInt k = 0; k < m; k++) expected += found[k * K + 1] * PetscConj(found[k * K + 1]);
    HybTestCheck(PetscAbsScalar(sum - expected) <= 1e3 * PETSC_MACHINE_EPSILON * PetscAbsScalar(expected), "the sum of squares that was left");
    free(part);
  }
  HybTestCall(HybCycleMoved(&c));
  RefFree(hb, found, one, want);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cycles(void)
{
  static const struct {
    PetscInt    n, rows, pre, post, cycles;
    PetscBool   three, inverse;
    const char *method;
  } cases[] = {
    {1, 40,  2, 2, 1, PETSC_TRUE,  PETSC_TRUE,  "auto"  },
    {3, 600, 2, 2, 1, PETSC_TRUE,  PETSC_TRUE,  "auto"  },
    {3, 500, 1, 1, 1, PETSC_TRUE,  PETSC_TRUE,  "auto"  },
    {3, 500, 3, 4, 1, PETSC_TRUE,  PETSC_TRUE,  "auto"  },
    {4, 700, 4, 3, 2, PETSC_TRUE,  PETSC_TRUE,  "auto"  },
    {3, 400, 0, 2, 1, PETSC_TRUE,  PETSC_TRUE,  "auto"  },
    {3, 400, 2, 0, 2, PETSC_FALSE, PETSC_TRUE,  "auto"  },
    {2, 300, 3, 1, 1, PETSC_FALSE, PETSC_FALSE, "auto"  },
    {3, 300, 2, 3, 2, PETSC_TRUE,  PETSC_FALSE, "segsum"},
    {3, 300, 2, 2, 1, PETSC_TRUE,  PETSC_TRUE,  "segsum"},
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Problem   p;
    There     t;
    PetscBool graph = (PetscBool)(HybTestExec()->backend->device && cases[k].n > 1 && cases[k].inverse && strcmp(cases[k].method, "segsum"));

    if (!HybTestMine()) continue;
    HybTestBegin("%d levels, %d rows, %d and %d steps, %d visits, %s", (int)cases[k].n + 1, (int)cases[k].rows, (int)cases[k].pre, (int)cases[k].post, (int)cases[k].cycles, cases[k].method);
    PetscCall(ProblemCreate(cases[k].n, cases[k].rows, cases[k].pre, cases[k].post, cases[k].cycles, cases[k].three, &p));
    PetscCall(ThereCreate(&p, cases[k].method, cases[k].inverse, &t));
    PetscCall(Apply(&t, "from zero"));
    PetscCall(Apply(&t, "once more"));
    HybTestCheck(t.cycle.launched == (graph ? 3 : 0), "%td of 4 applications by a graph", t.cycle.launched);
    RandomValues(&p);
    PetscCall(ThereRenew(&t));
    PetscCall(Apply(&t, "other numbers"));
    HybTestCheck(t.cycle.launched == (graph ? 5 : 0), "%td of 6 applications by a graph", t.cycle.launched);
    HybTestCall(HybCycleMoved(&t.cycle));
    HybTestCheck(!t.cycle.graph, "the graph is still there");
    PetscCall(HybArenaFree(&t.arena, &t.cycle.level[cases[k].n - 1].r));
    PetscCall(HybArenaAlloc(&t.arena, HYB_WORK(&t.cycle.exec), p.size[cases[k].n - 1], sizeof(PetscScalar), &t.cycle.level[cases[k].n - 1].r));
    PetscCall(Apply(&t, "an array moved"));
    HybTestCheck(t.cycle.launched == (graph ? 6 : 0), "%td of 8 applications by a graph", t.cycle.launched);
    HybTestCheck(cases[k].inverse || t.solved > 0, "the function was not asked");
    HybTestCheck(HybCycleFlops(&t.cycle) > 0, "no operations");
    for (PetscInt K = 2; K <= HYB_COLUMNS && HybTestExec()->backend->columns && cases[k].inverse; K *= 2) PetscCall(Columns(&t, K));
    PetscCall(ThereDestroy(&t));
    ProblemDestroy(&p);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a capture that another thread has ended: nothing is wrong, and a later one takes its place */
static PetscErrorCode CapturesEnded(void)
{
  char    name[PETSC_MAX_PATH_LEN] = "";
  void   *library;
  Problem p;
  There   t;
  void (*end)(int);

  PetscFunctionBegin;
  if (strcmp(HybTestExec()->backend->name, "emulated")) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", name, sizeof(name), NULL));
  library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  HybTestBegin("captures that are ended");
  if (!HybTestCheck(library, "%s", dlerror())) PetscFunctionReturn(PETSC_SUCCESS);
  *(void **)&end = dlsym(library, "HybEmulatorEndCaptures");
  if (HybTestCheck(end, "%s", dlerror())) {
    PetscCall(ProblemCreate(3, 600, 2, 2, 1, PETSC_TRUE, &p));
    PetscCall(ThereCreate(&p, "auto", PETSC_TRUE, &t));
    (*end)(2);
    PetscCall(Apply(&t, "with captures that are ended"));
    PetscCall(Apply(&t, "once more"));
    HybTestCheck(t.cycle.launched == 1, "%td of 4 applications by a graph", t.cycle.launched);
    PetscCall(ThereDestroy(&t));
    ProblemDestroy(&p);
  }
  dlclose(library);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  PetscCall(Cycles());
  PetscCall(CapturesEnded());
  PetscCall(Steps());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
