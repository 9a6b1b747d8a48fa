/*
  whole.c: coarse levels of several processes that each of them has whole.

  On a small level an exchange between cards takes longer than what it is for, and a level has six. So from the first
  level on whose matrix and all below have few nonzeros (tuning's whole), every process gets all rows of A and P, the
  reciprocals of the diagonal and the coarsest level's inverse, and makes these levels by itself: all the same bits. R
  is P's transpose, made here. The level above keeps its part of P with global columns. The matrices are PETSc's: whose
  values have changed is sent again before the next application; patterns are sent once.

  There are none where the coarsest level is left to its solver, or a restriction is not the interpolation's transpose;
  nor for many processes, or vectors of many numbers for all of them together: everybody adds everybody's.

  Memory: on each process all of these levels' matrices, twice as long as values go by messages.
*/
#include "mgimpl.h"

#define WHOLE_PROCESSES 16        /* at most; two were measured */
#define WHOLE_ADDED     (1 << 20) /* numbers that a process adds for a right-hand side, at most */

static PetscErrorCode WholeDrop(HybMGWhole *w)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!w->made) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybErrorFirst(HybSpMVDestroy(&w->plan), HybSpMVDestroy(&w->planT));
  ierr = HybErrorFirst(ierr, HybArenaReset(&w->keep));
  ierr = HybErrorFirst(ierr, HybParWholeDestroy(&w->all));
  (void)memset(w, 0, sizeof(*w));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGWholeRelease(HybMG *h)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < HYB_MG_LEVELS; k++) {
    for (int part = 0; part < HYB_CYCLE_R; part++) ierr = HybErrorFirst(ierr, WholeDrop(&h->whole[k][part]));
    ierr = HybErrorFirst(ierr, HybHaloDestroy(&h->rows[k]));
  }
  ierr          = HybErrorFirst(ierr, HybCommSumDestroy(&h->restricted));
  h->firstwhole = 0;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMGWholeHeard(HybMG *h)
{
  PetscFunctionBegin;
  for (PetscInt k = h->firstwhole; k && k < h->cycle.n; k++)
    for (int part = 0; part < HYB_CYCLE_R; part++) PetscCall(HybParWholeHeard(&h->whole[k][part].all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool WholeIsOld(const HybMGWhole *w, Mat A)
{
  return (PetscBool)(w->made && (w->id != ((PetscObject)A)->id || w->nonzerostate != A->nonzerostate));
}

/* nonzeros of this process */
static PetscErrorCode WholeNonzeros(Mat A, const HybExec *x, PetscInt64 *nnz)
{
  HybParCSR csr;

  PetscFunctionBegin;
  PetscCall(HybMatGetParCSR(A, x, PETSC_FALSE, &csr));
  *nnz = (PetscInt64)csr.D.nnz + (PetscInt64)csr.O.nnz;
  PetscCall(HybMatRestoreParCSR(A, x, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool WholeTransposed(const HybMG *h, PetscInt k)
{
  return (PetscBool)(h->transposed[k] && h->R[k] == h->P[k]);
}

PetscErrorCode HybMGWholeChoose(HybMG *h, const HybExec *x)
{
  const PetscInt most = HybTuningGet()->whole, n = HybMGData(h)->levels[0]->levels - 1;
  PetscInt64     v[HYB_MG_LEVELS + 2], nnz       = 0;
  PetscInt       first = n;
  PetscBool      may   = (PetscBool)(h->several && most && !h->nowhole);
  PetscErrorCode ierr  = PETSC_SUCCESS;
  PetscMPIInt    size;

  PetscFunctionBegin;
  if (!h->several) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)h->pc), &size));
  may = (PetscBool)(may && h->A[n]->rmap->N <= HYB_MG_INVERSE && size <= WHOLE_PROCESSES);
  (void)memset(v, 0, sizeof(v));
  for (PetscInt k = 0; k < n; k++) {
    if (!ierr && may && k) ierr = WholeNonzeros(h->A[k], x, &v[k]);
    if (WholeIsOld(&h->whole[k][HYB_CYCLE_A], h->A[k]) || WholeIsOld(&h->whole[k][HYB_CYCLE_P], h->P[k])) v[n] = 1;
  }
  PetscCall(HybAgreeSum(PetscObjectComm((PetscObject)h->pc), ierr, "Levels that each process has whole", n + 1, v));
  /* their interpolations and the one to them have to be what is restricted with */
  may = (PetscBool)(may && WholeTransposed(h, n - 1));
  while (may && first > 1 && WholeTransposed(h, first - 2) && (nnz += v[first - 1]) <= most && h->A[first - 1]->rmap->N <= WHOLE_ADDED / size) first--;
  if (!may) first = 0;
  if (v[n] || first != h->firstwhole) {
    if (h->cycle.exec.backend) PetscCall(HybCycleMoved(&h->cycle));
    h->cycle.stamp = 0;
    PetscCall(HybMGWholeRelease(h));
  }
  if (first && first != h->firstwhole) PetscCall(PetscInfo(h->pc, "Each process has the %" PetscInt_FMT " coarsest of %" PetscInt_FMT " levels whole\n", n + 1 - first, n + 1));
  h->firstwhole = first;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which rows go where, and how a right-hand side is added; collective */
static PetscErrorCode WholeHalos(HybMG *h, HybComm comm, PetscErrorCode before)
{
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!h->restricted) ierr = HybErrorFirst(ierr, HybCommSumCreate(comm, &h->cycle.exec, ierr, h->A[h->firstwhole]->rmap->N, &h->restricted));
  for (PetscInt k = h->firstwhole; k < h->cycle.n; k++)
    if (!h->rows[k]) ierr = HybErrorFirst(ierr, HybHaloCreateAll(comm, &h->cycle.exec, ierr, h->A[k]->rmap->range, PETSC_TRUE, &h->rows[k]));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P's transpose, after P has its values */
static PetscErrorCode WholeTranspose(HybMGWhole *w)
{
  const HybExec *x    = &w->all.exec;
  HybArena       work = HybArenaOn(x);
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!w->perm) {
    ierr = x->backend->csr->transposesymbolic(x, &w->keep, &work, &w->all.csr, &w->T, &w->perm);
    if (!ierr) ierr = HybArenaAlloc(&w->keep, HYB_WORK(x), w->T.nnz, sizeof(HybScalar), &w->T.a);
  }
  if (!ierr) ierr = x->backend->csr->gather(x, w->T.nnz, w->perm, PETSC_FALSE, w->all.csr.a, w->T.a);
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* once for a pattern */
static PetscErrorCode WholePlan(const HybExec *x, const HybCSR *csr, HybSpMV *plan)
{
  PetscFunctionBegin;
  if (plan->method) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybSpMVInit(plan, x, "auto", 1));
  PetscCall(HybSpMVSetUp(plan, csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective with rows, which NULL are this process's alone: the pattern of a matrix, once */
static PetscErrorCode WholePattern(HybMG *h, HybComm comm, PetscErrorCode before, Mat A, HybHalo rows, HybMGWhole *w)
{
  const HybExec *x    = &h->cycle.exec;
  PetscErrorCode ierr = before;
  HybParCSR      csr;

  PetscFunctionBegin;
  if (w->made) PetscFunctionReturn(before);
  w->made         = PETSC_TRUE;
  w->id           = ((PetscObject)A)->id;
  w->nonzerostate = A->nonzerostate;
  w->keep         = HybArenaOn(x);
  ierr            = HybErrorFirst(ierr, HybMatGetParCSR(A, x, PETSC_FALSE, &csr));
  ierr            = HybErrorFirst(ierr, HybParWholeCreate(&w->all, comm, x, ierr, &csr, rows));
  PetscCall(HybErrorFirst(ierr, HybMatRestoreParCSR(A, x, &csr)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective with rows: the values of a matrix, where it has others, and what is made of them */
static PetscErrorCode WholeValues(HybMG *h, PetscErrorCode before, Mat A, PetscBool transpose, HybMGWhole *w)
{
  const HybExec   *x    = &h->cycle.exec;
  PetscErrorCode   ierr = before;
  PetscObjectState state;
  HybParCSR        csr;

  PetscFunctionBegin;
  ierr = HybErrorFirst(ierr, PetscObjectStateGet((PetscObject)A, &state));
  if (w->valued && w->state == state) PetscFunctionReturn(ierr);
  w->valued = PETSC_TRUE;
  w->state  = state;
  ierr      = HybErrorFirst(ierr, HybMatGetParCSR(A, x, PETSC_TRUE, &csr));
  ierr      = HybErrorFirst(ierr, HybParWholeValues(&w->all, x, ierr, &csr));
  if (!ierr && transpose) ierr = WholeTranspose(w);
  if (!ierr) ierr = WholePlan(x, &w->all.csr, &w->plan);
  if (!ierr && transpose) ierr = WholePlan(x, &w->T, &w->planT);
  PetscCall(HybErrorFirst(ierr, HybMatRestoreParCSR(A, x, &csr)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the reciprocals of a level's diagonal, of which this process's part is there */
static PetscErrorCode WholeDiagonal(HybMG *h, PetscErrorCode before, PetscInt k)
{
  const HybExec *x     = &h->cycle.exec;
  const HybHalo  rows  = h->rows[k];
  const PetscInt begin = h->A[k]->rmap->rstart, right = rows->nghost - begin;
  HybScalar     *d = (HybScalar *)h->cycle.level[k].dinv, *came;

  PetscFunctionBegin;
  if (before) HybHaloAbandon(rows, x, sizeof(HybScalar), PETSC_FALSE, before);
  PetscCall(before);
  PetscCall(HybHaloBegin(rows, x, sizeof(HybScalar), d + begin));
  PetscCall(HybHaloEnd(rows, x, PETSC_SUCCESS, &came));
  if (begin) PetscCall(x->backend->copy(x, d, came, sizeof(HybScalar) * (size_t)begin, HYB_COPY_DEVICE_TO_DEVICE));
  if (right) PetscCall(x->backend->copy(x, d + begin + rows->n, came + begin, sizeof(HybScalar) * (size_t)right, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the cycle is to use */
static void WholeLend(HybMG *h)
{
  HybCycle      *c     = &h->cycle;
  const PetscInt first = h->firstwhole;

  for (PetscInt k = first - 1; k < c->n; k++) {
    HybCycleLevel *l = &c->level[k];
    HybMGWhole    *A = &h->whole[k][HYB_CYCLE_A], *P = &h->whole[k][HYB_CYCLE_P];

    l->P           = P->all.csr;
    l->interpolate = &P->plan;
    l->R           = P->T;
    l->restriction = &P->planT;
    if (k < first) continue;
    l->A    = A->all.csr;
    l->mult = &A->plan;
  }
  c->sum         = h->restricted;
  c->summed.halo = h->restricted->halo;
}

PetscErrorCode HybMGWholeBuild(HybMG *h, PetscErrorCode before)
{
  const PetscInt first = h->firstwhole, n = h->cycle.n;
  PetscErrorCode ierr = before;
  HybComm        comm;

  PetscFunctionBegin;
  PetscCall(HybCommGet(PetscObjectComm((PetscObject)h->pc), &comm));
  ierr = HybErrorFirst(ierr, WholeHalos(h, comm, ierr));
  for (PetscInt k = first; k < n; k++) {
    ierr = HybErrorFirst(ierr, WholePattern(h, comm, ierr, h->A[k], h->rows[k], &h->whole[k][HYB_CYCLE_A]));
    ierr = HybErrorFirst(ierr, WholePattern(h, comm, ierr, h->P[k], h->rows[k], &h->whole[k][HYB_CYCLE_P]));
  }
  ierr = HybErrorFirst(ierr, WholePattern(h, comm, ierr, h->P[first - 1], NULL, &h->whole[first - 1][HYB_CYCLE_P]));
  ierr = HybErrorFirst(ierr, HybCommAgree(comm, ierr, "Levels that each process has whole"));
  if (!ierr) { /* on all */
    for (PetscInt k = first; k < n; k++) {
      ierr = HybErrorFirst(ierr, WholeDiagonal(h, ierr, k));
      ierr = HybErrorFirst(ierr, WholeValues(h, ierr, h->A[k], PETSC_FALSE, &h->whole[k][HYB_CYCLE_A]));
      ierr = HybErrorFirst(ierr, WholeValues(h, ierr, h->P[k], PETSC_TRUE, &h->whole[k][HYB_CYCLE_P]));
    }
    ierr = HybErrorFirst(ierr, WholeValues(h, ierr, h->P[first - 1], PETSC_TRUE, &h->whole[first - 1][HYB_CYCLE_P]));
    ierr = HybErrorFirst(ierr, HybCommAgree(comm, ierr, "Values of levels that each process has whole"));
  }
  ierr = HybErrorFirst(ierr, HybCommRestore(&comm));
  if (ierr) (void)HybMGWholeRelease(h);
  PetscCall(ierr);
  WholeLend(h);
  PetscFunctionReturn(PETSC_SUCCESS);
}
