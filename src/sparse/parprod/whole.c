/*
  whole.c: a small distributed matrix whole, on every process.

    own rows   copied with global columns (pickrows)                                       once for a pattern
    others'    sent to everybody, and stacked: lower ranks' rows, own, higher ranks'       once for a pattern
    values     own ones picked into their place; sent from there; others' copied           whenever they have changed

  Every process then has the same arrays, to the last bit: what it computes from them is the same without a message.
  Multigrid's coarse levels are such matrices: there an exchange takes longer than all of a level's rows.

  Memory: the matrix, the values of others a second time, where messages bring them, and for each entry of its own
  an index; on more than two processes one more for each entry sent.
*/
#include "parprodimpl.h"

/* own rows, columns by their global numbers; begin, of the host: where they begin */
static PetscErrorCode WholeOwn(HybParWhole *w, HybComm comm, const HybParCSR *A, HybArena *work, PetscInt **begin, HybCSR *S)
{
  const HybExec *x     = &w->exec;
  const PetscInt first = A->columns[comm->rank], m = A->D.m;
  PetscInt      *garray, *rows;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), A->O.n, sizeof(PetscInt), &garray));
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), m, sizeof(PetscInt), &rows));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)m + 1, sizeof(PetscInt), begin));
  PetscCall(x->backend->copy(x, garray, A->garray, sizeof(PetscInt) * (size_t)A->O.n, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(x->backend->local->sequence(x, m, 0, rows));
  PetscCall(x->backend->local->pickrows(x, &w->keep, work, &A->D, &A->O, HybCountBelow(A->O.n, A->garray, first), first, garray, m, rows, *begin, S, &w->from));
  S->n    = A->columns[comm->size];
  w->nown = S->nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of all, one below the other. S's arrays are given back. */
static PetscErrorCode WholeStack(HybParWhole *w, const HybParCSR *A, PetscMPIInt rank, HybCSR *S, const HybCSR *R)
{
  const HybExec      *x        = &w->exec;
  const HybCSR *const piece[3] = {R, S, R};
  const PetscInt      begin[3] = {0, 0, A->rows[rank]}, end[3] = {A->rows[rank], S->m, R->m};
  PetscCount          first[3], place[4];

  PetscFunctionBegin;
  PetscCall(x->backend->local->stackrows(x, &w->keep, 3, piece, begin, end, &w->csr, first, place));
  w->own   = place[1];
  w->right = place[2];
  PetscCall(HybArenaFree(&w->keep, &S->i, &S->j));
  PetscCall(HybArenaAlloc(&w->keep, HYB_WORK(x), R->nnz, sizeof(HybScalar), &w->came));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: everybody's rows. S, those of this process, are sent as they are to the only other one, else copied for
   each. */
static PetscErrorCode WholeOthers(HybParWhole *w, PetscErrorCode before, const HybParCSR *A, HybHalo halo, HybArena *work, const PetscInt *begin, HybCSR *S)
{
  const HybExec *x      = &w->exec;
  const HybComm  comm   = halo->comm;
  PetscInt      *colmap = NULL;
  HybCSR         R;
  HybRowsWish    wish = {.halo = halo, .keep = work, .A = S, .begin = begin, .N = A->columns[comm->size], .ascending = PETSC_TRUE, .R = &R, .rows = &w->rows};
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (comm->size != 2) {
    if (!ierr) ierr = HybArenaAlloc(work, HYB_WORK(x), wish.N, sizeof(PetscInt), &colmap);
    if (!ierr) ierr = x->backend->local->sequence(x, wish.N, 0, colmap);
    wish.colmap = colmap;
  }
  ierr = HybRowsMove(comm, x, ierr, 1, &wish);
  if (!ierr) ierr = WholeStack(w, A, comm->rank, S, &R);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParWholeCreate(HybParWhole *w, HybComm comm, const HybExec *exec, PetscErrorCode before, const HybParCSR *A, HybHalo halo)
{
  HybArena       work;
  HybCSR         S     = {.m = 0};
  PetscInt      *begin = NULL;
  PetscErrorCode ierr  = before;

  PetscFunctionBegin;
  (void)memset(w, 0, sizeof(*w));
  w->exec        = *exec;
  w->exec.result = HYB_WORK(exec);
  w->keep        = HybArenaOn(&w->exec);
  work           = HybArenaOn(&w->exec);
  if (!ierr) ierr = WholeOwn(w, comm, A, &work, &begin, &S);
  if (halo)
    ierr = WholeOthers(w, ierr, A, halo, &work, begin, &S);
  else
    w->csr = S;
  if (!ierr) ierr = HybArenaAlloc(&w->keep, HYB_WORK(exec), w->csr.nnz, sizeof(HybScalar), &w->csr.a);
  ierr = HybErrorFirst(ierr, HybArenaReset(&work));
  if (ierr) (void)HybParWholeDestroy(w);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* others' values, which came beside each other, to their places */
static PetscErrorCode WholeCame(HybParWhole *w)
{
  const HybExec   *x    = &w->exec;
  const HybScalar *came = NULL;
  const PetscCount left = w->own, right = w->csr.nnz - w->right;

  PetscFunctionBegin;
  PetscCall(HybRowsValuesEndThere(w->rows, x, PETSC_SUCCESS, w->came, &came));
  if (left) PetscCall(x->backend->copy(x, w->csr.a, came, sizeof(HybScalar) * (size_t)left, HYB_COPY_DEVICE_TO_DEVICE));
  if (right) PetscCall(x->backend->copy(x, w->csr.a + w->right, came + left, sizeof(HybScalar) * (size_t)right, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParWholeValues(HybParWhole *w, const HybExec *exec, PetscErrorCode before, const HybParCSR *A)
{
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  w->exec.stream = exec->stream;
  if (!ierr) ierr = exec->backend->local->pickvalues(exec, w->nown, w->from, A->D.a, A->O.a, w->csr.a + w->own);
  if (w->rows && ierr)
    HybRowsAbandon(w->rows, exec);
  else if (w->rows) {
    ierr = HybRowsValuesBegin(w->rows, exec, w->csr.a + w->own);
    if (!ierr) ierr = WholeCame(w);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParWholeHeard(HybParWhole *w)
{
  PetscFunctionBegin;
  if (w->rows) PetscCall(HybRowsCheck(w->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParWholeDestroy(HybParWhole *w)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!w->exec.backend) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybRowsDestroy(&w->rows);
  ierr = HybErrorFirst(ierr, HybArenaReset(&w->keep));
  (void)memset(w, 0, sizeof(*w));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
