/*
  build.c: what the cycle has of its own, and the loan of what is the matrices'.

  Of its own are vectors, the reciprocals of diagonals, the smoothers' numbers and the coarsest level's inverse. They
  are made again after each change, in the same memory where sizes are the same, so that a graph of launches stays. The
  reciprocals are the preconditioners': what they make of a vector of ones. The inverse is what PETSc's own solver makes
  of the unit vectors, and is tried once beside it.
*/
#include "mgimpl.h"

PetscErrorCode HybMGAgree(const HybMG *h, PetscErrorCode before, const char **why)
{
  PetscBool all = (PetscBool) !*why;

  PetscFunctionBegin;
  if (!h->several) {
    PetscCall(before);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybAgreeAll(PetscObjectComm((PetscObject)h->pc), before, "A multigrid cycle", &all));
  if (!all && !*why) *why = "another process says why";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all but what whole.c has */
static PetscErrorCode ReleaseOwn(HybMG *h)
{
  PetscErrorCode ierr = h->cycle.exec.backend ? HybCycleMoved(&h->cycle) : PETSC_SUCCESS;

  PetscFunctionBegin;
  ierr           = HybErrorFirst(ierr, HybMGSingleRelease(h));
  ierr           = HybErrorFirst(ierr, HybMGOrderedRelease(h));
  ierr           = HybErrorFirst(ierr, HybMGColumnsRelease(h));
  ierr           = HybErrorFirst(ierr, HybArenaReset(&h->keep));
  h->cycle.stamp = 0;
  h->c           = NULL;
  h->inverse     = NULL;
  h->known       = PETSC_FALSE;
  (void)memset(h->size, 0, sizeof(h->size));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGRelease(HybMG *h)
{
  PetscFunctionBegin;
  HybCallBoth(ReleaseOwn(h), HybMGWholeRelease(h));
  h->nowhole = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* memory for levels of these sizes: the one that is there, or another */
static PetscErrorCode HybMGReserve(HybMG *h, const HybExec *x, PetscBool single, PetscInt levels, const PetscInt size[])
{
  HybCycle       *c        = &h->cycle;
  PetscBool       same     = (PetscBool)(h->c && c->exec.backend == x->backend && c->single == single && c->n == levels - 1 && c->several == h->several);
  const PetscBool zeromean = c->zeromean, zerosum = c->zerosum;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < levels; k++) same = (PetscBool)(same && size[k] == h->size[k]);
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ReleaseOwn(h));
  (void)memset(c, 0, sizeof(*c));
  c->zeromean = zeromean;
  c->zerosum  = zerosum;
  c->exec     = *x;
  c->single   = single;
  c->n        = levels - 1;
  c->m        = size[levels - 1];
  h->keep     = HybArenaOn(x);
  /* each in memory of its own: what others need of one may be on its way while another is written */
  for (PetscInt k = 0; k < c->n; k++) {
    HybCycleLevel *l      = &c->level[k];
    HybScalar    **all[5] = {(HybScalar **)&l->dinv, &l->r, &l->p, &l->b, &l->x};

    for (int v = 0; v < (k || single ? 5 : 3); v++) PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(x), size[k], HybCycleNumberSize(c), all[v]));
  }
  PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(x), c->m, HybCycleNumberSize(c), &c->b));
  PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(x), c->m, HybCycleNumberSize(c), &c->x));
  if (single) PetscCall(HybArenaCalloc(&h->keep, HYB_WORK(x), HYB_CYCLE_SCALE, sizeof(int), &c->scale));
  if (single) PetscCall(HybArenaCalloc(&h->keep, HYB_WORK(x), 1, sizeof(int), &h->beyond));
  PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(x), 2 * 3 * HYB_MG_SMOOTHER * (PetscCount)c->n, sizeof(PetscReal), &h->c));
  for (PetscInt k = 0; k < levels; k++) h->size[k] = size[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An application that fails leaves its right-hand side locked for reading. That is written again next time. */
static void Unlock(Vec v)
{
  PetscInt locked = 0;

#ifndef VecLockGet /* older releases without debugging lock nothing */
  (void)VecLockGet(v, &locked);
#endif
  for (; locked > 0; locked--) (void)VecLockReadPop(v);
}

/* For constants as a null space: vectors and sums of the cycle's. It relies on A 1 = 0, which PETSc does not need. */
static PetscErrorCode HybMGNullSpace(KSP ksp, HybMG *h, const char **why)
{
  HybCycle      *c = &h->cycle;
  PetscReal      norm;
  HybScalar     *s;
  Mat            A;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!c->zeromean && !c->zerosum) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->zeromean) {
    PetscCall(KSPGetOperators(ksp, &A, NULL));
    PetscCall(VecSet(ksp->work[0], 1));
    ierr = MatMult(A, ksp->work[0], ksp->work[1]);
    if (!ierr) ierr = PCApply(ksp->pc, ksp->work[1], ksp->work[0]);
    if (ierr) Unlock(ksp->work[0]);
    if (ierr) Unlock(ksp->work[1]);
    PetscCall(ierr);
    PetscCall(VecNorm(ksp->work[0], NORM_INFINITY, &norm));
    if (!(norm <= 1000 * PETSC_MACHINE_EPSILON)) *why = "the matrix times a constant is not zero";
  }
  if (*why || c->sums.s) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(&c->exec), h->size[0], sizeof(HybScalar), &c->q));
  PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(&c->exec), HYB_CYCLE_TOTALS + HYB_CYCLE_SUMS, sizeof(HybScalar), &s));
  PetscCall(HybArenaCalloc(&h->keep, HYB_WORK(&c->exec), 1, sizeof(int), &c->sums.arrived));
  c->sums.s = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the smoothers' numbers, all levels' */
static PetscErrorCode HybMGNumbers(HybMG *h, const char **why)
{
  const PC_MG *mg   = HybMGData(h);
  HybCycle    *c    = &h->cycle;
  PetscBool    same = PETSC_TRUE;
  PetscReal    all[2 * 3 * HYB_MG_SMOOTHER * HYB_MG_LEVELS];

  PetscFunctionBegin;
  (void)memset(all, 0, sizeof(all));
  for (PetscInt k = 0; k < c->n && !*why; k++) {
    const PC_MG_Levels *m = mg->levels[c->n - k];

    for (int side = 0; side < 2; side++) {
      const KSP         ksp   = side ? m->smoothu : m->smoothd;
      HybCycleSmoother *s     = side ? &c->level[k].post : &c->level[k].pre;
      HybCycleSmoother  was   = *s;
      const PetscInt    at    = (2 * k + side) * 3 * HYB_MG_SMOOTHER;
      PetscBool         known = PETSC_TRUE;

      if (side && m->smoothu == m->smoothd)
        *s = c->level[k].pre;
      else {
        PetscCall(HybMGSmootherNumbers(ksp, all + at, &s->threeterm, &known));
        if (!known) *why = "a smoother's steps are not a recurrence of two terms";
        s->steps = ksp->max_it;
        s->c     = h->c + at;
      }
      same = (PetscBool)(same && was.steps == s->steps && was.threeterm == s->threeterm && was.c == s->c);
    }
    same               = (PetscBool)(same && c->level[k].cycles == m->cycles);
    c->level[k].cycles = m->cycles;
  }
  /* other launches: graphs are made anew */
  if (!same) {
    c->stamp = 0;
    PetscCall(HybCycleMoved(c));
  }
  if (!*why) PetscCall(c->exec.backend->copy(&c->exec, h->c, all, sizeof(PetscReal) * (size_t)(2 * 3 * HYB_MG_SMOOTHER * c->n), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D^-1 as the preconditioner has it, in the smoother's second work vector */
static PetscErrorCode Reciprocals(KSP ksp, const char **why)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (ksp->nwork < 2 || !ksp->work[0] || !ksp->work[1]) {
    *why = "a smoother has no work vectors";
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecSet(ksp->work[0], 1));
  ierr = PCApply(ksp->pc, ksp->work[0], ksp->work[1]);
  if (ierr) Unlock(ksp->work[0]);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A level has one D^-1, for the smoothers before and after. */
static PetscErrorCode HybMGReciprocals(const PC_MG_Levels *m, HybMG *h, HybCycleLevel *l, PetscErrorCode before, const char **why)
{
  const PetscInt k = (PetscInt)(l - h->cycle.level);
  /* whole.c brings the others' */
  const PetscInt begin = h->firstwhole && k >= h->firstwhole ? h->A[k]->rmap->rstart : 0;
  PetscBool      same  = PETSC_TRUE;
  HybVecAccess   d;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  /* also after an error: the first application of a preconditioner is one of all processes */
  ierr = Reciprocals(m->smoothd, why);
  if (m->smoothu != m->smoothd) {
    if (!ierr) ierr = Reciprocals(m->smoothu, why);
    if (before) ierr = before;
    PetscCall(HybMGAgree(h, ierr, why)); /* VecEqual() asks all */
    if (!*why) PetscCall(VecEqual(m->smoothd->work[1], m->smoothu->work[1], &same));
    if (!same) *why = "the smoothers before and after have other diagonals";
  }
  PetscCall(before);
  PetscCall(ierr);
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybVecGet(&h->cycle.exec, m->smoothd->work[1], PETSC_TRUE, PETSC_FALSE, &d));
  PetscCall(HybVecRestore(HybMGIntoLevel(h, h->A[k]->rmap->n, (const HybScalar *)d.there, PETSC_FALSE, (HybScalar *)l->dinv + begin), &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the coarsest level by PETSc's own solver, arrays where the cycle executes; a failure is told as PETSc's cycle does */
static PetscErrorCode HybMGCoarseSolve(void *ctx, const HybScalar *b, HybScalar *x)
{
  HybMG              *h    = (HybMG *)ctx;
  const PC_MG_Levels *m    = HybMGData(h)->levels[0];
  const HybExec      *exec = &h->cycle.exec;
  const PetscInt      n    = h->cycle.m;
  HybVecAccess        v;
  PetscErrorCode      ierr, later;

  PetscFunctionBegin;
  ierr = HybVecGet(exec, m->b, PETSC_FALSE, PETSC_TRUE, &v);
  if (!ierr) ierr = HybMGOutOfLevel(h, n, b, (HybScalar *)v.there);
  ierr = HybVecRestore(ierr, &v);
  if (!ierr || h->several) { /* others are about to solve */
    later = KSPSolve(m->smoothd, m->b, m->x);
    if (later) Unlock(m->b);
    if (!ierr) ierr = later;
  }
  if (!ierr) ierr = KSPCheckSolve(m->smoothd, h->pc, m->x);
  if (!ierr) ierr = HybVecGet(exec, m->x, PETSC_TRUE, PETSC_FALSE, &v);
  if (!ierr) ierr = HybMGIntoLevel(h, n, (const HybScalar *)v.there, PETSC_TRUE, x);
  PetscCall(HybVecRestore(ierr, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the solver one product with a matrix, of which nobody wants to hear? One inside it as well. */
static PetscErrorCode CoarseIsLinear(KSP ksp, PetscBool *linear)
{
  PetscBool preonly = PETSC_TRUE, watched = PETSC_FALSE;

  PetscFunctionBegin;
  *linear = PETSC_FALSE;
  for (int k = 0; ksp && k <= HYB_MG_INNER && preonly && !watched; k++) {
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, &preonly));
    PetscCall(HybMGWatched(ksp, &watched));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, linear, PCLU, PCCHOLESKY, PCSVD, PCJACOBI, PCILU, PCICC, ""));
    *linear = (PetscBool)(*linear && preonly && !watched);
    PetscCall(HybMGInnerSolver(ksp, &ksp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Frobenius norm of a coarsest matrix. Its solver has just had the values on the host: on a card it would be a
   launch and a wait. */
static PetscErrorCode CoarseNorm(Mat A, PetscReal *norm)
{
  const PetscScalar *a;
  PetscBool          seqaij;
  MatInfo            info;
  PetscReal          sum = 0;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, &seqaij));
  if (!seqaij) {
    PetscCall(MatNorm(A, NORM_FROBENIUS, norm));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  for (PetscCount k = 0; k < (PetscCount)info.nz_used; k++) sum += PetscRealPart(PetscConj(a[k]) * a[k]);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  *norm = PetscSqrtReal(sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X = A^-1 by columns, of the host */
static PetscErrorCode CoarseColumns(KSP ksp, PetscInt m, Mat *X)
{
  MPI_Comm comm = PetscObjectComm((PetscObject)ksp);
  Mat      unit;

  PetscFunctionBegin;
  PetscCall(MatCreateDense(comm, m, m, m, m, NULL, &unit));
  PetscCall(MatCreateDense(comm, m, m, m, m, NULL, X));
  PetscCall(MatShift(unit, 1));
  PetscCall(KSPMatSolve(ksp, unit, *X));
  PetscCall(MatDestroy(&unit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *good: X times b is x, and X is the inverse of a matrix that has one. Of a singular matrix an inverse is noise, whose
   norm hides all else. */
static PetscErrorCode CoarseCompare(KSP solver, PetscInt m, Mat X, Vec b, Vec x, PetscBool *good)
{
  PetscReal          error = 0, norm = 0, size[2];
  const PetscScalar *ba, *xa, *a;
  Mat                A;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(b, &ba));
  PetscCall(VecGetArrayRead(x, &xa));
  PetscCall(MatDenseGetArrayRead(X, &a));
  for (PetscInt r = 0; r < m; r++) {
    PetscScalar y = 0;

    for (PetscInt k = 0; k < m; k++) y += a[(size_t)k * m + r] * ba[k];
    error += PetscSqr(PetscAbsScalar(xa[r] - y));
    norm += PetscSqr(PetscAbsScalar(xa[r]));
  }
  PetscCall(MatDenseRestoreArrayRead(X, &a));
  PetscCall(VecRestoreArrayRead(b, &ba));
  PetscCall(VecRestoreArrayRead(x, &xa));
  PetscCall(MatNorm(X, NORM_FROBENIUS, &size[0]));
  PetscCall(KSPGetOperators(solver, &A, NULL));
  PetscCall(CoarseNorm(A, &size[1]));
  /* of squares; NaN is not */
  *good = (PetscBool)(error <= HYB_MG_INVERSE_SQUARE * norm && norm < PETSC_MAX_REAL && size[0] * size[1] <= HYB_MG_CONDITION);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one right-hand side and its solution by the level's own solver, vectors of the host; collective */
static PetscErrorCode CoarseSample(KSP ksp, PetscInt m, Vec *b, Vec *x)
{
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecCreate(PetscObjectComm((PetscObject)ksp), b));
  PetscCall(VecSetSizes(*b, m, PETSC_DETERMINE));
  PetscCall(VecSetType(*b, VECSTANDARD));
  PetscCall(VecDuplicate(*b, x));
  PetscCall(VecGetArrayWrite(*b, &a));
  for (PetscInt k = 0; k < m; k++) a[k] = 1 + (PetscReal)((k * 37 + 11) % 101) / 101;
  PetscCall(VecRestoreArrayWrite(*b, &a));
  PetscCall(KSPSolve(ksp, *b, *x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by rows, of the host */
static PetscErrorCode CoarseRows(PetscInt m, Mat X, PetscScalar *rows)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatDenseGetArrayRead(X, &a));
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt q = 0; q < m; q++) rows[(size_t)r * m + q] = a[(size_t)q * m + r];
  PetscCall(MatDenseRestoreArrayRead(X, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to where the cycle executes */
static PetscErrorCode HybMGSendInverse(HybMG *h, const PetscScalar *rows)
{
  const HybExec *x = &h->cycle.exec;

  PetscFunctionBegin;
  PetscCall(x->backend->copy(x, h->inverse, rows, sizeof(HybScalar) * (size_t)h->cycle.m * (size_t)h->cycle.m, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: all processes get the rows of the one that has the level */
static PetscErrorCode CoarseTell(const HybMG *h, PetscScalar *rows)
{
  const PetscLayout map   = h->A[h->cycle.n]->rmap;
  PetscMPIInt       owner = 0;

  PetscFunctionBegin;
  while (map->range[owner + 1] == map->range[owner]) owner++;
  PetscCallMPI(MPI_Bcast(rows, (PetscMPIInt)(map->N * map->N), MPIU_SCALAR, owner, PetscObjectComm((PetscObject)h->pc)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solver that has all of the coarsest level on this process; NULL: there is none. *none: nothing of it is here. */
static PetscErrorCode CoarseOwned(const HybMG *h, KSP ksp, KSP *solver, PetscBool *none)
{
  PetscMPIInt size = 1;
  Mat         A;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  *none   = (PetscBool)(A->rmap->N > 0 && !A->rmap->n);
  *solver = ksp;
  if (!h->several) PetscFunctionReturn(PETSC_SUCCESS);
  *solver = NULL;
  if (A->rmap->n == A->rmap->N) PetscCall(HybMGInnerSolver(ksp, solver));
  if (*solver) PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)*solver), &size));
  if (size > 1) *solver = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the inverse of this process's rows, tried beside a sample of the level's solver's; rows, of the host: it by rows */
static PetscErrorCode CoarseInverse(HybMG *h, KSP solver, Vec b, Vec x, PetscScalar *rows, PetscBool *good)
{
  Mat            X = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = CoarseColumns(solver, h->cycle.m, &X);
  if (!ierr) ierr = CoarseCompare(solver, h->cycle.m, X, b, x, good);
  if (!ierr && *good) ierr = CoarseRows(h->cycle.m, X, rows);
  if (!ierr && *good && !h->firstwhole) ierr = HybMGSendInverse(h, rows);
  if (!ierr && !*good) ierr = PetscInfo(solver, "The coarsest level, %" PetscInt_FMT " rows, stays with its solver: an inverse gives another result\n", h->cycle.m);
  PetscCall(MatDestroy(&X));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own solver stays on the host, where it costs no copies and no wait, and where several processes have a part
   of the level. Of several processes those without rows of it have nothing to do, or get the inverse from the one that
   has them: an error in that last step is this process's alone. *cannot: why single precision does not do, or NULL. */
static PetscErrorCode HybMGCoarsest(HybMG *h, const char **cannot)
{
  HybCycle                *c   = &h->cycle;
  const KSP                ksp = HybMGData(h)->levels[0]->smoothd;
  const PetscInt           its = ksp->its, total = ksp->totalits;
  const KSPConvergedReason reason = ksp->reason;
  const PetscBool          had    = (PetscBool)(c->inverse != NULL);
  const char              *no     = NULL;
  PetscBool                good = PETSC_TRUE, linear = PETSC_FALSE, none = PETSC_FALSE;
  KSP                      solver = NULL;
  Vec                      b = NULL, x = NULL;
  PetscScalar             *rows = NULL;
  PetscErrorCode           ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (c->exec.backend->device && c->m <= HYB_MG_INVERSE) ierr = CoarseOwned(h, ksp, &solver, &none);
  if (!ierr && (solver || none)) ierr = CoarseIsLinear(ksp, &linear);
  if (!linear) no = "no inverse";
  PetscCall(HybMGAgree(h, ierr, &no));
  if (!no) {
    const size_t all = none && !h->firstwhole ? 1 : (size_t)c->m * (size_t)c->m;

    ierr = CoarseSample(ksp, h->A[c->n]->rmap->n, &b, &x);
    if (!ierr && !h->inverse) ierr = HybArenaAlloc(&h->keep, HYB_WORK(&c->exec), (PetscCount)all, sizeof(HybScalar), &h->inverse);
    if (!ierr) ierr = PetscMalloc1(all, &rows);
    if (!ierr && !none) ierr = CoarseInverse(h, solver, b, x, rows, &good);
    if (!good) no = "another result";
    ksp->its      = its;
    ksp->totalits = total;
    ksp->reason   = reason;
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    ierr = HybMGAgree(h, ierr, &no);
    if (!ierr && !no && h->firstwhole) {
      ierr = CoarseTell(h, rows);
      ierr = HybErrorFirst(ierr, HybMGSendInverse(h, rows));
    }
    (void)PetscFree(rows);
    PetscCall(ierr);
  }
  c->inverse = no ? NULL : h->inverse;
  if (c->single && no && (!good || c->zeromean || c->zerosum)) *cannot = "the coarsest level is singular, or nearly so";
  if (had != !no) {
    c->stamp = 0;
    (void)HYB_QUIETLY(HybCycleMoved(c)); /* a graph that cannot be given back is lost: no reason to leave the others */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* memory and numbers */
static PetscErrorCode HybMGPrepare(HybMG *h, const HybExec *x, PetscBool single, const char **why)
{
  const PetscInt levels = HybMGData(h)->levels[0]->levels, whole = h->firstwhole;
  PetscInt       size[HYB_MG_LEVELS];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < levels; k++) size[k] = whole && k >= whole ? h->A[k]->rmap->N : h->A[k]->rmap->n;
  for (PetscInt k = 0; k < levels && !*why && !h->several; k++)
    if (!size[k]) *why = "a level without rows";
  /* a host has no transpose but the interpolation's */
  for (PetscInt k = 0; k < levels - 1 && !*why && !x->backend->device; k++)
    if (h->transposed[k] && h->R[k] != h->P[k]) *why = "a restriction that is another matrix's transpose";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMGReserve(h, x, single, levels, size));
  if (single) PetscCall(x->backend->zero(x, h->beyond, sizeof(*h->beyond)));
  h->cycle.exec    = *x;
  h->cycle.solve   = HybMGCoarseSolve;
  h->cycle.several = h->several;
  h->cycle.ctx     = h;
  PetscCall(HybMGNumbers(h, why));
  for (PetscInt k = 0; k < levels - 1 && h->several; k++) h->cycle.level[k].A.m = size[k];
  h->cycle.whole = whole;
  if (whole) {
    PetscMPIInt all;

    PetscCallMPI(MPI_Comm_size(h->A[whole]->rmap->comm, &all));
    h->cycle.processes = all;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* makes the copies in single precision; *cannot: why it does not do, or NULL */
static PetscErrorCode HybMGSingleTry(HybMG *h, const char **cannot)
{
  const HybExec *x      = &h->cycle.exec;
  const PetscInt lent   = h->lent;
  int            beyond = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybMGLend(h);
  if (!ierr) ierr = HybMGReturn(h);
  if (!ierr) ierr = x->backend->copy(x, &beyond, h->beyond, sizeof(beyond), HYB_COPY_DEVICE_TO_HOST);
  if (ierr) (void)HybMGRelease(h); /* what has been converted is not looked at another time */
  h->lent = lent;
  PetscCall(ierr);
  if (beyond) *cannot = "a level has numbers that are too large for single precision";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A smoother's solve asks for its DM (KSPLogErrorHistory()), which PETSc makes then: an object of all processes. The
   solves below are each process's own, and one that fails has none. So all make the DMs before. */
static PetscErrorCode SmoothersDM(const PC_MG *mg)
{
  PetscErrorCode ierr = PETSC_SUCCESS;
  DM             dm;

  PetscFunctionBegin;
  for (PetscInt k = 1; k < mg->levels[0]->levels; k++) {
    ierr = HybErrorFirst(ierr, KSPGetDM(mg->levels[k]->smoothd, &dm));
    ierr = HybErrorFirst(ierr, KSPGetDM(mg->levels[k]->smoothu, &dm));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* after each step several processes agree, also where one of them fails; *cannot: why single precision does not do */
static PetscErrorCode HybMGBuildIn(HybMG *h, const HybExec *x, PetscErrorCode before, PetscBool single, const char **cannot, const char **why)
{
  const PC_MG   *mg     = HybMGData(h);
  const PetscInt levels = mg->levels[0]->levels;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybErrorFirst(before, h->several ? SmoothersDM(mg) : PETSC_SUCCESS);
  if (!ierr) ierr = HybMGPrepare(h, x, single, why);
  for (PetscInt k = 0; k < levels - 1; k++) ierr = HybMGReciprocals(mg->levels[levels - 1 - k], h, &h->cycle.level[k], ierr, why);
  PetscCall(HybMGAgree(h, ierr, why));
  if (!*why) PetscCall(HybMGNullSpace(mg->levels[levels - 1]->smoothd, h, why));
  if (!*why && single) PetscCall(HybMGSingleTry(h, cannot));
  if (*why || *cannot) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybMGCoarsest(h, cannot);
  if (h->firstwhole && (ierr || h->cycle.inverse)) ierr = HybErrorFirst(ierr, HybMGWholeBuild(h, ierr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGBuild(HybMG *h, const HybExec *x, const char **why)
{
  const PetscBool single = (PetscBool)(h->wanted && x->backend->single && !h->several);
  const char     *cannot = NULL;

  PetscFunctionBegin;
  PetscCall(HybMGBuildIn(h, x, HybMGWholeChoose(h, x), single, &cannot, why));
  if (!*why && h->firstwhole && !h->cycle.inverse) { /* the coarsest level's solver has to have its vectors */
    h->nowhole = PETSC_TRUE;
    PetscCall(HybMGBuildIn(h, x, HybMGWholeChoose(h, x), single, &cannot, why));
  }
  if (h->wanted && !single) PetscCall(PetscInfo(h->pc, "The cycle is in double precision: single and half are for one process with a device, and a PETSc of double precision\n"));
  if (!cannot) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscInfo(h->pc, "The cycle is in double precision: %s\n", cannot));
  cannot = NULL;
  PetscCall(HybMGBuildIn(h, x, PETSC_SUCCESS, PETSC_FALSE, &cannot, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* would a captured launch of this matrix be another? *number: of the plan that it was captured with */
static PetscBool LoanMoved(const HybCSR *was, const HybCSR *csr, const HybSpMV *before, const HybSpMV *plan, uint64_t *number)
{
  const PetscBool same = (PetscBool)(was->i == csr->i && was->j == csr->j && was->a == csr->a && was->m == csr->m && was->n == csr->n && was->nnz == csr->nnz && before == plan && *number == plan->number);

  *number = plan->number;
  return (PetscBool)!same;
}

/* one matrix; *moved is set where a captured launch of it would not be the same */
static PetscErrorCode LendOne(HybMG *h, PetscInt k, HybCyclePart part, Mat A, PetscBool transpose, HybCSR *csr, HybSpMV **plan, PetscBool *moved)
{
  HybMGSingle *const  s   = &h->narrow[k][part];
  HybMGOrdered *const o   = &h->ordered[k][part];
  const HybCSR        old = h->cycle.single ? s->lent : *csr;
  const HybSpMV      *before;
  PetscBool           other;

  PetscFunctionBegin;
  HybMGOrderedReturn(o, plan);
  before = h->cycle.single ? s->mult : *plan;
  PetscCall(HybMatGetMult(A, &h->cycle.exec, transpose, csr, plan));
  other = LoanMoved(&old, csr, before, *plan, &h->plan[k][part]);
  if (h->cycle.single) PetscCall(HybMGSingleLend(h, A, s, (PetscBool)(h->half && k), other, csr, plan));
  if (other) *moved = PETSC_TRUE;
  if (h->cycle.exec.backend->device && h->borrower != HYB_MG_READS_NO_PLANS) PetscCall(HybMGOrderedLend(h, o, A, (PetscBool)!h->cycle.single, csr, plan, moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a level's matrices of several processes; the halos first, which after an error tell the others */
static PetscErrorCode LendSeveral(HybMG *h, PetscInt k, PetscBool *moved)
{
  HybCycleBlocks *m   = h->cycle.level[k].several;
  const Mat       M[] = {h->A[k], h->P[k], h->R[k]};

  PetscFunctionBegin;
  for (int part = 0; part < HYB_CYCLE_PARTS; part++) {
    HybMGOrdered *const o = &h->ordered[k][part];
    HybCycleBlocks      old;
    HybCSR              csr[2];
    HybSpMV            *plan[2];
    Mat                 own;

    if (!HybCycleShares(&h->cycle, k, (HybCyclePart)part)) continue;
    HybMGOrderedReturn(o, &m[part].own);
    old = m[part];
    PetscCall(HybMatParGetMult(M[part], &h->cycle.exec, m[part].transpose, csr, plan));
    m[part].D      = csr[0];
    m[part].O      = csr[1];
    m[part].own    = plan[0];
    m[part].others = plan[1];
    for (int b = 0; b < 2; b++)
      if (LoanMoved(b ? &old.O : &old.D, &csr[b], b ? old.others : old.own, plan[b], &h->blockplan[k][part][b])) *moved = PETSC_TRUE;
    /* what is one launch with its exchange is short, and others wait for exchanges */
    if (csr[0].nnz < HybTuningGet()->ordered_fewest || HybCycleBlocksTogether(&m[part])) {
      if (o->lent) *moved = PETSC_TRUE;
      o->lent = PETSC_FALSE;
      continue;
    }
    PetscCall(MatMPIAIJGetSeqAIJ(M[part], &own, NULL, NULL));
    PetscCall(HybMGOrderedLend(h, o, own, PETSC_TRUE, &csr[0], &m[part].own, moved));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all of them, also after an error: the others are asked too */
static PetscErrorCode LendHalos(HybMG *h, PetscInt k, PetscBool *moved)
{
  HybCycleBlocks *m    = h->cycle.level[k].several;
  const Mat       M[]  = {h->A[k], h->P[k], h->R[k]};
  PetscErrorCode  ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int part = 0; part < HYB_CYCLE_PARTS; part++) {
    if (!HybCycleShares(&h->cycle, k, (HybCyclePart)part)) continue;
    m[part].transpose = (PetscBool)(part == HYB_CYCLE_R && h->transposed[k]);
    ierr              = HybErrorFirst(ierr, HybMatParHalo(M[part], &m[part].halo));
    if (!m[part].halo || m[part].halo->number != h->halo[k][part]) *moved = PETSC_TRUE;
    h->halo[k][part] = m[part].halo ? m[part].halo->number : 0;
  }
  PetscCall(ierr);
  for (int part = 0; part < HYB_CYCLE_PARTS; part++) PetscCheck(m[part].halo || !HybCycleShares(&h->cycle, k, (HybCyclePart)part), PetscObjectComm((PetscObject)M[part]), PETSC_ERR_PLIB, "A cycle whose exchange is gone");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LendParallel(HybMG *h, PetscBool *moved)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < h->cycle.n; k++) ierr = HybErrorFirst(ierr, LendHalos(h, k, moved));
  for (PetscInt k = 0; k < h->cycle.n && !ierr; k++) ierr = LendSeveral(h, k, moved);
  ierr = HybErrorFirst(ierr, HybMGWholeHeard(h));
  if (ierr) *moved = PETSC_TRUE; /* what has moved is not seen the next time */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGLend(HybMG *h)
{
  static uint64_t stamps; /* no two cycles of a process ever have the same */
  HybCycle       *c = &h->cycle;
  /* the cycle's own graph has nothing of the finest level's, and HybCycle.made says what that makes of the next one */
  PetscBool      moved = PETSC_FALSE, other = PETSC_FALSE, any;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  h->recorded = (PetscBool)(c->exec.backend->device && c->exec.backend->recording(&c->exec));
  if (h->several) ierr = LendParallel(h, &moved);
  other = moved;
  for (PetscInt k = 0; k < c->n && !h->several; k++) {
    HybCycleLevel *l = &c->level[k];

    any = PETSC_FALSE;
    if (!ierr) ierr = LendOne(h, k, HYB_CYCLE_A, h->A[k], PETSC_FALSE, &l->A, &l->mult, &any);
    if (!ierr) ierr = LendOne(h, k, HYB_CYCLE_P, h->P[k], PETSC_FALSE, &l->P, &l->interpolate, &any);
    if (!h->transposed[k] || c->exec.backend->device) {
      if (!ierr) ierr = LendOne(h, k, HYB_CYCLE_R, h->R[k], h->transposed[k], &l->R, &l->restriction, &any);
    } else
      (void)memset(&l->R, 0, sizeof(l->R));
    moved = (PetscBool)(moved || (any && k));
    other = (PetscBool)(other || any);
  }
  if (c->single && h->borrower == HYB_MG_MULTIPLIES) {
    h->mult = h->narrow[0][HYB_CYCLE_A].mult;
    if (!ierr) ierr = HybMGOrderedLend(h, &h->outer, h->A[0], PETSC_TRUE, &h->narrow[0][HYB_CYCLE_A].lent, &h->mult, &other);
  } else
    h->mult = c->level[0].mult;
  if (ierr) moved = other = PETSC_TRUE; /* what has moved is not seen the next time */
  h->lent++;
  if (moved) PetscCall(HybCycleMoved(c));
  if (other || !c->stamp) c->stamp = ++stamps;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGReturn(HybMG *h)
{
  const HybExec *x = &h->cycle.exec;
  HybCSR         csr;

  PetscFunctionBegin;
  h->lent--;
  /* the views stay to be compared with */
  for (PetscInt k = 0; k < h->cycle.n; k++) {
    const Mat M[] = {h->A[k], h->P[k], h->R[k]};

    for (int part = 0; part < (M[1] == M[2] ? 2 : 3); part++) {
      if (h->several && !HybCycleShares(&h->cycle, k, (HybCyclePart)part)) continue;
      if (h->several)
        PetscCall(HybMatParRestoreMult(M[part], x));
      else
        PetscCall(HybMatRestoreCSR(M[part], x, &csr));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
