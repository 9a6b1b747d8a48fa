/*
  parallel.c: Arnoldi's process of krylov.c where each process has a part of every vector. What all have to know are
  sums, which the caller forms over all processes: one a step, since the square of the last vector's norm goes with
  the products that it is needed for.

    u_0 = D^-1 b
    for k = 0 .. steps-1:
      w       = A u_k                                            the caller's product
      g_l     = conj(u_l) D^-1 w, l <= k;  q = |u_k|^2           sums over all processes
      s_k     = 1/sqrt(q);  h_{k,k-1} = sqrt(q);  h_lk = s_l s_k g_l
      u_{k+1} = s_k D^-1 w - sum_l h_lk s_l u_l
    h_{steps,steps-1} = |u_steps|                                a sum more

  The host waits for its device once a step. It tells the next launch the coefficients, so nothing is copied back. What
  others need of u_k may still be packed when the product writes w, which therefore is memory of its own.

  All processes get the same sums, so they agree upon when it ends. An error of one process goes along with its part of
  the next sum, and is one of all: a product is told of it first, for which others wait.
*/
#include <aijhybridgpu/private/hybkrylov.h>

typedef struct {
  const HybExec      *exec;
  const HybKrylovPar *op;
  HybKrylovBasis      B;
  HybScalar          *w; /* A u_k */
  PetscReal           scale[HYB_KRYLOV_STEPS];
} HybKrylovParRun;

static PetscErrorCode HybKrylovParBegin(HybKrylovParRun *r, HybArena *work, PetscErrorCode before, const HybScalar *b)
{
  const HybExec   *exec = r->exec;
  HybKrylovBasis  *B    = &r->B;
  const PetscCount nh   = (PetscCount)(B->steps + 1) * B->steps;

  PetscFunctionBegin;
  PetscCall(before);
  PetscCheck(exec->backend->krylov, PETSC_COMM_SELF, PETSC_ERR_SUP, "The %s backend has no operations of Krylov methods", exec->backend->name);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)B->steps * B->ld, sizeof(HybScalar), &B->u));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), B->n, sizeof(HybScalar), &r->w));
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), nh + 1, sizeof(HybScalar), &B->h));
  if (exec->backend->device) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)(B->steps + 1) * HYB_KRYLOV_SUMS, sizeof(HybScalar), &B->sums));
    PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*B->arrived), &B->arrived));
  }
  if (B->n) PetscCall(exec->backend->krylov->update(exec, B, -1, 1, NULL, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the product, and this process's part of the step's sums */
static PetscErrorCode HybKrylovParSums(HybKrylovParRun *r, PetscErrorCode before, PetscInt k, HybScalar *g)
{
  PetscFunctionBegin;
  for (PetscInt l = 0; l <= k + 1; l++) g[l] = 0;
  PetscCall((*r->op->mult)(r->op->ctx, before, r->B.u + k * r->B.ld, r->w));
  if (r->B.n) PetscCall(r->exec->backend->krylov->project(r->exec, &r->B, k, r->w, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* this process's part of the last norm's square */
static PetscErrorCode HybKrylovParLast(HybKrylovParRun *r, PetscErrorCode before, HybScalar *q)
{
  const HybExec *exec = r->exec;

  PetscFunctionBegin;
  *q = 0;
  PetscCall(before);
  if (!r->B.n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(exec->backend->copy(exec, q, r->B.h + (PetscCount)(r->B.steps + 1) * r->B.steps, sizeof(*q), HYB_COPY_DEVICE_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovParSteps(HybKrylovParRun *r, HybScalar *H, PetscReal *first)
{
  const PetscInt steps = r->B.steps;
  HybScalar      g[HYB_KRYLOV_STEPS + 1], q, c[HYB_KRYLOV_STEPS];
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < steps; k++) {
    HybScalar *h = H + (size_t)k * (steps + 1);
    PetscReal  norm;

    ierr = HybKrylovParSums(r, ierr, k, g);
    PetscCall((*r->op->sum)(r->op->ctx, ierr, k + 2, g));
    norm        = PetscSqrtReal(PetscRealPart(g[k + 1]));
    r->scale[k] = 1 / norm;
    if (k)
      h[k - steps - 1] = norm;
    else
      *first = norm;
    if (!(norm > 0)) PetscFunctionReturn(PETSC_SUCCESS); /* on all processes */
    for (PetscInt l = 0; l <= k; l++) {
      h[l] = g[l] * (r->scale[l] * r->scale[k]);
      c[l] = h[l] * r->scale[l];
    }
    if (r->B.n) ierr = (*r->exec->backend->krylov->update)(r->exec, &r->B, k, r->scale[k], c, r->w);
  }
  ierr = HybKrylovParLast(r, ierr, &q);
  PetscCall((*r->op->sum)(r->op->ctx, ierr, 1, &q));
  H[(size_t)steps * (steps + 1) - 1] = PetscSqrtReal(PetscRealPart(q));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybKrylovArnoldiPar(const HybExec *exec, HybArena *work, const HybKrylovPar *op, PetscErrorCode before, PetscCount n, const HybScalar *dinv, const HybScalar *b, PetscInt steps, HybScalar *H, PetscInt *done)
{
  HybKrylovParRun r     = {.exec = exec, .op = op};
  PetscReal       first = 0;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  *done = 0;
  PetscCheck(steps >= 1 && steps <= HYB_KRYLOV_STEPS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " steps of Arnoldi's process: 1 to %d can be done", steps, HYB_KRYLOV_STEPS);
  r.B.n     = n;
  r.B.ld    = HYB_KRYLOV_LD(n);
  r.B.steps = steps;
  r.B.dinv  = dinv;
  ierr      = HybKrylovParBegin(&r, work, before, b);
  PetscCall((*op->sum)(op->ctx, ierr, 0, NULL));
  for (PetscCount e = 0; e < (PetscCount)steps * (steps + 1); e++) H[e] = 0;
  PetscCall(HybKrylovParSteps(&r, H, &first));
  *done = HybKrylovWhole(steps, first, H);
  PetscCall(HybArenaFree(work, &r.B.u, &r.w, &r.B.h, &r.B.sums, &r.B.arrived));
  PetscFunctionReturn(PETSC_SUCCESS);
}
