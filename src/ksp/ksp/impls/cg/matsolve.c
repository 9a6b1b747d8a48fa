/*
  KSPMatSolve() with KSPCG on a device and multigrid for a preconditioner: several right-hand sides at once.

  PETSc has no such solve for KSPCG: it solves column by column, and each solve reads all matrices of all levels again.
  Here up to HYB_COLUMNS columns iterate in step. Each has its own numbers and its own end; products, smoothers' steps
  and the cycle are those of all columns at once, so a matrix is read once for all of them, and the host waits once in
  an iteration. Vectors lie interleaved (spmv/columns.cu).

    for each batch of columns of B:
      r = B;  x = 0;  z = M r;  beta = z r, |z|, |r|                      wait: PETSc's test, for each column
      repeat, while a column goes on:
        p = z + (beta/betaold) p
        w = A p, and p w on the way
        x += (beta/(p w)) p;  r -= (beta/(p w)) w                         unless PETSc would stop the column
        z = M r, and z r, |z|, |r| in its last step                       wait: PETSc's test, for each column
      X = x

  A column that has ended keeps its bits while others go on. Each column has the iterations, the reason and, to
  rounding, the norms and the solution of KSPSolve(); what the KSP says afterwards is the last column's, as after
  PETSc's loop.

  When. PETSc asks for ops->matsolve after it has called KSPSetUpOnBlocks(), and calls a function of the preconditioner
  there. That is where this file looks whether the solver is one that it does (SolverIsPlain()), and sets ops->matsolve
  or clears it: what is not covered is PETSc's own loop, untouched. What only the cycle's own look finds (look.c) comes
  later; then the columns are solved one by one here, as PETSc would, and the next time PETSc does it.

  Memory: four vectors of all columns of a batch as long as a solve lasts, and the cycle's (mg/columns.c), which stay.
*/
#include "cgimpl.h"

/* a column's solve, of which PETSc keeps one at a time in a KSP */
typedef struct {
  PetscReal          rnorm, rnorm0, ttol, objective;
  PetscInt           its;
  KSPConvergedReason reason;
  PetscBool          vain; /* PETSc would not have made the last z */
} Column;

/* columns that iterate in step */
typedef struct {
  KSP            ksp;
  HybCGSolver   *cg;
  HybMG         *mg;
  HybExec        exec;
  const HybCSR  *A;
  HybCycle      *cycle;
  PetscInt       K, used; /* columns of the vectors, and how many are B's */
  PetscInt       active;  /* that go on */
  PetscBool      changed; /* a column has ended, of which the device does not know */
  PetscBool      logged;  /* the last column is the last one of all: its norms are the history */
  HybArena       work;
  HybCG          numbers;
  HybColumnsSums sums;
  HybScalar     *x, *r, *z, *p;
  Column         column[HYB_COLUMNS];
  PetscScalar    host[HYB_CG_NUMBERS * HYB_COLUMNS];
} Batch;

#define NUMBER(s, number, c) ((s)->host[(number) * (s)->K + (c)])

static PetscErrorCode KSPMatSolve_CG_Hyb(KSP, Mat, Mat);

static void ColumnEnd(Batch *s, PetscInt c, KSPConvergedReason reason)
{
  if (!reason || s->column[c].reason) return;
  s->column[c].reason = reason;
  s->active--;
  s->changed = PETSC_TRUE;
}

/* KSPCheckDot() and KSPCheckNorm(), of a preconditioner that has no way to fail */
static PetscErrorCode ColumnCheck(Batch *s, PetscInt c, PetscScalar number, const char *what)
{
  PetscFunctionBegin;
  if (!PetscIsInfOrNanScalar(number)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!s->ksp->errorifnotconverged, PetscObjectComm((PetscObject)s->ksp), PETSC_ERR_NOT_CONVERGED, "KSPSolve has not converged due to infinity or NaN %s", what);
  ColumnEnd(s, c, KSP_DIVERGED_NANORINF);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what PETSc does with a norm */
static PetscErrorCode ColumnTest(Batch *s, PetscInt c, PetscInt its)
{
  KSP                ksp    = s->ksp;
  Column            *column = &s->column[c];
  const PetscReal    dp     = HybCGNorm(ksp, s->host + c, s->K);
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;

  PetscFunctionBegin;
  column->vain = (PetscBool)(ksp->normtype == KSP_NORM_UNPRECONDITIONED);
  if (ksp->normtype == KSP_NORM_NATURAL) PetscCall(ColumnCheck(s, c, NUMBER(s, HYB_CG_BETA, c), "inner product"));
  if (column->reason) PetscFunctionReturn(PETSC_SUCCESS);
  column->rnorm = dp;
  PetscCall(ColumnCheck(s, c, dp, "norm"));
  if (column->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (s->logged && c == s->used - 1) PetscCall(KSPLogResidualHistory(ksp, dp));
  ksp->rnorm  = dp;
  ksp->rnorm0 = column->rnorm0;
  ksp->ttol   = column->ttol;
  PetscCall((*ksp->converged)(ksp, its, dp, &reason, ksp->cnvP));
  column->rnorm0 = ksp->rnorm0;
  column->ttol   = ksp->ttol;
  ColumnEnd(s, c, reason);
  if (reason) PetscFunctionReturn(PETSC_SUCCESS);
  column->vain = PETSC_FALSE;
  PetscCall(ColumnCheck(s, c, NUMBER(s, HYB_CG_BETA, c), "inner product"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ColumnBegin(Batch *s, PetscInt c, PetscInt i)
{
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;

  PetscFunctionBegin;
  s->column[c].its = i + 1;
  PetscCall(HybCGBegin(s->ksp, s->host + c, s->K, i, &reason));
  ColumnEnd(s, c, reason);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ColumnStopped(Batch *s, PetscInt c)
{
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;

  PetscFunctionBegin;
  s->column[c].vain = PETSC_TRUE;
  PetscCall(ColumnCheck(s, c, NUMBER(s, HYB_CG_DPI, c), "inner product"));
  if (s->column[c].reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCGIndefinite(s->ksp, s->host + c, s->K, &reason));
  ColumnEnd(s, c, reason);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the device hears which columns have ended, those that are none among them */
static PetscErrorCode BatchTellEnds(Batch *s)
{
  PetscScalar stopped[HYB_COLUMNS];

  PetscFunctionBegin;
  if (!s->changed) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt c = 0; c < s->K; c++) stopped[c] = c < s->used && !s->column[c].reason ? 0 : 2;
  PetscCall(s->exec.backend->copy(&s->exec, s->numbers.s + HYB_CG_STOPPED * s->K, stopped, sizeof(*stopped) * (size_t)s->K, HYB_COPY_HOST_TO_DEVICE));
  s->changed = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = M r, the numbers, and the wait */
static PetscErrorCode BatchPrecondition(Batch *s)
{
  const HybKrylovColumnsOps *ops = s->exec.backend->krylov->columns;
  const PetscCount           n   = s->A->m;

  PetscFunctionBegin;
  PetscCall(HybMGArraysApply(s->mg, s->active, PETSC_SUCCESS, (const PetscScalar *)s->r, (PetscScalar *)s->z));
  if (!HybCycleLeaves(s->cycle)) PetscCall(ops->products(&s->exec, s->K, n, s->z, s->r, &s->sums));
  PetscCall(ops->norms(&s->exec, s->K, &s->numbers, &s->sums));
  PetscCall(PetscLogGpuFlops(6.0 * n * s->active));
  PetscCall(s->exec.backend->copy(&s->exec, s->host, s->numbers.s, sizeof(*s->host) * (size_t)(HYB_CG_NUMBERS * s->K), HYB_COPY_DEVICE_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from z to the next r; w is where z was */
static PetscErrorCode BatchStep(Batch *s)
{
  const HybExec             *exec = &s->exec;
  const HybKrylovColumnsOps *ops  = exec->backend->krylov->columns;
  const PetscCount           n    = s->A->m;
  Mat                        A;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(s->ksp, &A, NULL));
  PetscCall(ops->direction(exec, s->K, &s->numbers, n, s->z, s->p));
  PetscCall(PetscLogEventBegin(MAT_Mult, A, 0, 0, 0));
  PetscCall(exec->backend->columns->mult(exec, s->K, s->A, s->p, HYB_SPMV_SET, NULL, s->z, &s->sums));
  PetscCall(PetscLogEventEnd(MAT_Mult, A, 0, 0, 0));
  PetscCall(ops->curvature(exec, s->K, &s->numbers, &s->sums));
  PetscCall(ops->update(exec, s->K, &s->numbers, n, s->p, s->z, s->x, s->r));
  PetscCall(PetscLogGpuFlops((2.0 * s->A->nnz + 8.0 * n) * s->active));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the numbers say after an iteration, given beta of its begin */
static PetscErrorCode ColumnIterated(Batch *s, PetscInt c, PetscInt i, PetscScalar beta)
{
  PetscFunctionBegin;
  if (NUMBER(s, HYB_CG_STOPPED, c) != (PetscScalar)0) {
    PetscCall(ColumnStopped(s, c));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  s->column[c].objective -= PetscRealPart((PetscReal)0.5 * (beta / NUMBER(s, HYB_CG_DPI, c)) * beta);
  PetscCall(ColumnTest(s, c, i + 1));
  if (i + 1 >= s->ksp->max_it) ColumnEnd(s, c, KSP_DIVERGED_ITS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define EACH_ACTIVE(s, c)                  \
  for (PetscInt c = 0; c < (s)->used; c++) \
    if (!(s)->column[c].reason)

static PetscErrorCode BatchIterate(Batch *s)
{
  PetscScalar beta[HYB_COLUMNS];

  PetscFunctionBegin;
  PetscCall(BatchTellEnds(s));
  PetscCall(BatchPrecondition(s));
  EACH_ACTIVE(s, c)
  PetscCall(ColumnTest(s, c, 0));
  for (PetscInt i = 0; s->active; i++) {
    EACH_ACTIVE(s, c)
    PetscCall(ColumnBegin(s, c, i));
    EACH_ACTIVE(s, c)
    beta[c] = NUMBER(s, HYB_CG_BETA, c);
    if (!s->active) break;
    PetscCall(BatchTellEnds(s));
    PetscCall(BatchStep(s));
    PetscCall(BatchPrecondition(s));
    EACH_ACTIVE(s, c)
    PetscCall(ColumnIterated(s, c, i, beta[c]));
  }
  for (PetscInt c = 0; c < s->used; c++)
    if (s->column[c].vain) HybMGArraysInVain(s->mg);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the batch's columns of the matrix, the first of which is number `first`, into v, or, write, out of it */
static PetscErrorCode BatchMove(Batch *s, Mat M, PetscBool write, PetscInt first, HybScalar *v)
{
  const HybKrylovColumnsOps *ops = s->exec.backend->krylov->columns;
  HybMatDenseAccess          d;
  HybScalar                 *there;

  PetscFunctionBegin;
  PetscCall(HybMatDenseGet(&s->exec, M, first, s->used, write, &d));
  there = (HybScalar *)d.there;
  PetscCall(HybMatDenseRestore(write ? ops->scatter(&s->exec, s->K, s->used, s->A->m, v, there, d.ld) : ops->gather(&s->exec, s->K, s->used, s->A->m, there, d.ld, v), &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchSolve(Batch *s, Mat B, Mat X, PetscInt first)
{
  const HybExec   *exec = &s->exec;
  const PetscCount n = s->A->m, all = n * s->K;
  HybScalar      **vectors[] = {&s->x, &s->r, &s->z, &s->p};

  PetscFunctionBegin;
  for (size_t v = 0; v < PETSC_STATIC_ARRAY_LENGTH(vectors); v++) PetscCall(HybArenaAlloc(&s->work, HYB_WORK(exec), all, sizeof(HybScalar), vectors[v]));
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(exec), (PetscCount)HYB_CG_NUMBERS * s->K, sizeof(HybScalar), &s->numbers.s));
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(exec), (PetscCount)3 * HYB_COLUMNS_SUMS * s->K, sizeof(HybScalar), &s->sums.part));
  PetscCall(exec->backend->zero(exec, s->numbers.s, sizeof(HybScalar) * (size_t)(HYB_CG_NUMBERS * s->K)));
  PetscCall(exec->backend->zero(exec, s->x, sizeof(HybScalar) * (size_t)all));
  PetscCall(BatchMove(s, B, PETSC_FALSE, first, s->r));
  s->active  = s->used;
  s->changed = PETSC_TRUE;
  PetscCall(BatchIterate(s));
  PetscCall(BatchMove(s, X, PETSC_TRUE, first, s->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc does after each column's solve. What it does after the last one it does itself. */
static PetscErrorCode BatchReport(Batch *s, PetscBool last)
{
  KSP ksp = s->ksp;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < s->used; c++) {
    const Column *column = &s->column[c];

    ksp->its    = column->its;
    ksp->reason = column->reason;
    ksp->rnorm  = column->rnorm;
    ksp->rnorm0 = column->rnorm0;
    ksp->ttol   = column->ttol;
    ksp->totalits += column->its;
    s->cg->ours      = PETSC_TRUE;
    s->cg->objective = column->objective;
    PetscCall(HybCountGAMG(HYB_SOLVES));
    PetscCall(HybCountGAMG(HYB_COLUMNS_SOLVED));
    if (last && c == s->used - 1) break;
    PetscCall(KSPConvergedReasonViewFromOptions(ksp));
    PetscCheck(!ksp->errorifnotconverged || column->reason > 0, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "KSPSolve has not converged, reason %s", KSPConvergedReasons[column->reason]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the batch from column `first` on, of N; the cycle is lent */
static PetscErrorCode BatchColumns(Batch *s, Mat B, Mat X, PetscInt first, PetscInt N, PetscBool *may)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  s->used = PetscMin(HYB_COLUMNS, N - first);
  s->K    = HybColumnsWidth(s->used);
  (void)memset(s->column, 0, sizeof(s->column));
  s->logged = (PetscBool)(first + s->used == N);
  PetscCall(HybMGColumnsBegin(s->mg, s->K, &s->sums, &s->cycle, may));
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  s->work = HybArenaOn(&s->exec);
  ierr    = BatchSolve(s, B, X, first);
  ierr    = HybErrorFirst(ierr, HybArenaReset(&s->work));
  PetscCall(HybErrorFirst(ierr, HybMGColumnsEnd(s->mg, s->used - 1)));
  PetscCall(BatchReport(s, s->logged));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Batches(Batch *s, Mat B, Mat X, PetscInt N, PetscBool *may)
{
  PetscFunctionBegin;
  for (PetscInt first = 0; first < N && *may; first += HYB_COLUMNS) PetscCall(BatchColumns(s, B, X, first, N, may));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* is it a solve in which nobody of a program's is called, and nothing asked for but the solution? */
static PetscErrorCode SolverIsPlain(KSP ksp, const HybCGSolver *cg, PetscBool *plain)
{
  PC           pc = ksp->pc;
  Mat          A;
  MatNullSpace null, transposed;
  PetscMPIInt  size;

  PetscFunctionBegin;
  *plain = PETSC_FALSE;
  if (!HybCGIsPlain(ksp, cg) || ksp->ops->solve != cg->solve || ksp->calc_sings || ksp->calc_ritz) PetscFunctionReturn(PETSC_SUCCESS);
  if ((ksp->res_hist && !ksp->res_hist_reset) || ksp->reason || !ksp->guess_zero || ksp->guess || ksp->guess_knoll) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->presolve || ksp->postsolve || ksp->dmActive || pc->ops->presolve || pc->ops->postsolve || pc->failedreason != PC_NOERROR) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->viewPre || ksp->viewRate || ksp->viewRhs || ksp->viewSol || ksp->viewMatExp || ksp->viewEV || ksp->viewSV || ksp->viewEVExp || ksp->viewPOpExp) PetscFunctionReturn(PETSC_SUCCESS);
#if HYB_HAS_PC_PRESOLVE
  if (pc->presolve) PetscFunctionReturn(PETSC_SUCCESS);
#endif
#if HYB_HAS_DIAGONALSCALE
  if (ksp->dscale) PetscFunctionReturn(PETSC_SUCCESS);
#endif
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)ksp), &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(MatGetTransposeNullSpace(A, &transposed));
  *plain = (PetscBool)(!null && !transposed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's loop, where only a look found that it is PETSc's to do. What PETSc shows after the last column it is about to
   show itself. */
static PetscErrorCode ColumnByColumn(KSP ksp, Mat B, Mat X, PetscInt N)
{
  const PetscBool view = ksp->view, mat = ksp->viewMat, pmat = ksp->viewPMat, final = ksp->viewFinalRes;
  const PetscInt  reasons = ksp->numberreasonviews;
#if HYB_HAS_REASON_VIEWER
  const PetscViewer viewer = ksp->convergedreasonviewer;
#endif
  PetscErrorCode ierr = PETSC_SUCCESS;
  Vec            b, x;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < N && !ierr; c++) {
    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(MatDenseGetColumnVecWrite(X, c, &x));
    if (c == N - 1) {
      ksp->view = ksp->viewMat = ksp->viewPMat = ksp->viewFinalRes = PETSC_FALSE;
      ksp->numberreasonviews                                       = 0;
#if HYB_HAS_REASON_VIEWER
      ksp->convergedreasonviewer = NULL;
#endif
    }
    ierr                   = KSPSolve(ksp, b, x);
    ksp->view              = view;
    ksp->viewMat           = mat;
    ksp->viewPMat          = pmat;
    ksp->viewFinalRes      = final;
    ksp->numberreasonviews = reasons;
#if HYB_HAS_REASON_VIEWER
    ksp->convergedreasonviewer = viewer;
#endif
    PetscCall(ierr);
    /* PETSc says this of a solve that is not within another one */
    PetscCheck(!ksp->errorifnotconverged || ksp->reason > 0, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "KSPSolve has not converged, reason %s", KSPConvergedReasons[ksp->reason]);
    PetscCall(MatDenseRestoreColumnVecWrite(X, c, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
  }
  ksp->ops->matsolve = KSPMatSolve_CG_Hyb; /* the solves may have cleared it, and PETSc may have more columns */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPMatSolve_CG_Hyb(KSP ksp, Mat B, Mat X)
{
  Batch          s = {.ksp = ksp};
  HybCycle      *cycle;
  PetscInt       N;
  PetscBool      may = PETSC_FALSE;
  Mat            A;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetSize(B, NULL, &N));
  if (ksp->reason > 0) ksp->reason = KSP_CONVERGED_ITERATING; /* the batch before has ended */
  PetscCall(HybCGGet(ksp, &s.cg));
  PetscCall(SolverIsPlain(ksp, s.cg, &may));
  if (may && N > 1) {
    s.sums.hermitian = s.numbers.hermitian = s.cg->numbers.hermitian;
    PetscCall(PCSetUp(ksp->pc)); /* of new values older releases hear there alone */
    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(HybMGArraysBegin(ksp->pc, A, ksp->work[1], ksp->work[2], ksp->work[0], PETSC_TRUE, &s.mg));
    may = (PetscBool)(s.mg != NULL);
    if (may) {
      PetscCall(HybMGArraysLend(s.mg, &cycle, &s.A, NULL));
      s.exec = cycle->exec;
      if (ksp->res_hist_reset) ksp->res_hist_len = 0;
      ierr = Batches(&s, B, X, N, &may);
      PetscCall(HybErrorFirst(ierr, HybMGReturn(s.mg)));
    }
    if (may) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ColumnByColumn(ksp, B, X, N));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCGChooseMatSolve(KSP ksp)
{
  HybCGSolver *cg;
  PetscBool    may;

  PetscFunctionBegin;
  PetscCall(HybCGGet(ksp, &cg));
  PetscCall(SolverIsPlain(ksp, cg, &may));
  if (may) PetscCall(HybMGColumnsMay(ksp->pc, &may));
  ksp->ops->matsolve = may ? KSPMatSolve_CG_Hyb : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
