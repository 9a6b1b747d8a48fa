/*
  rows.c: rows of a distributed matrix, to those who need them (Fetch) or to those who own them (Ship).

    rows to be sent    copied in the order of sending, columns renumbered to global ones: S = A(rows, colmap), and where
                       each entry was: perm; or the caller has done that
    lengths            by the host, which counts what comes and where it begins
    columns            S's, as they lie; they come in order
    values             A's entries perm[k], gathered on the way, now and whenever they have changed

  A process that cannot pick its rows sends no lengths, so that all come to the one agreement, with which the exchange
  is made: each has room for what comes. What fails after it, those find who wait for it. Memory: S without values while
  columns travel, and perm; R.
*/
#include "commimpl.h"

typedef struct {
  const HybPeers *to, *from;   /* in rows */
  PetscInt       *length, *at; /* of the host: of each row sent; where each begins */
  HybArena        work;
  HybCSR          S;
} HybRowsMaking;

PetscErrorCode HybRowsDestroy(HybRows *rows)
{
  HybRows        r = *rows;
  PetscErrorCode ierr[3];

  PetscFunctionBegin;
  *rows = NULL;
  if (!r) PetscFunctionReturn(PETSC_SUCCESS);
  ierr[0] = HybExchangeDestroy(&r->values);
  ierr[1] = HybArenaReset(&r->arena);
  PetscCall(HybPeersFree(&r->to));
  PetscCall(HybPeersFree(&r->from));
  ierr[2] = HybCommRestore(&r->comm);
  PetscCall(PetscFree(r));
  for (int k = 0; k < 3; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is sent, and its lengths for the host */
static PetscErrorCode HybRowsPick(HybRows r, const HybExec *exec, HybRowsMaking *m, const HybRowsWish *w)
{
  const HybCSR  *A = w->A;
  const PetscInt n = (PetscInt)m->to->offset[m->to->n], rows = w->ship ? w->halo->nghost : w->colmap ? w->halo->n
                                                                                                     : w->halo->nsend;

  PetscFunctionBegin;
  PetscCheck(A->m == rows, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A matrix of %" PetscInt_FMT " rows is given, the halo has %" PetscInt_FMT, A->m, rows);
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, n, sizeof(PetscInt), &m->length));
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, (PetscCount)n + 1, sizeof(PetscInt), &m->at));
  if (w->colmap) {
    PetscCall(exec->backend->csr->submatrixmapped(exec, &r->arena, &m->work, A, n, w->ship ? NULL : w->halo->there, w->N, w->colmap, w->ascending, &m->S, &r->perm));
    PetscCall(exec->backend->copy(exec, m->at, m->S.i, sizeof(PetscInt) * ((size_t)n + 1), HYB_COPY_DEVICE_TO_HOST));
    PetscCall(exec->backend->sync(exec));
  } else {
    m->S = *A;
    PetscCall(PetscArraycpy(m->at, w->begin, (size_t)n + 1));
  }
  for (PetscInt k = 0; k < n; k++) m->length[k] = m->at[k + 1] - m->at[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the object, and this process's part of what comes first */
static PetscErrorCode HybRowsStart(HybComm comm, const HybExec *exec, HybRowsMaking *m, const HybRowsWish *w)
{
  HybRows r;

  PetscFunctionBegin;
  PetscCall(PetscNew(&r));
  *w->rows = r;
  r->comm  = comm;
  comm->users++;
  r->arena = HybArenaOn(exec);
  PetscCall(HybRowsPick(r, exec, m, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how many entries come, as has been told, and room for them */
static PetscErrorCode HybRowsRoom(HybRows r, const HybExec *exec, HybRowsMaking *m, const HybRowsWish *w)
{
  const PetscInt nr    = (PetscInt)m->from->offset[m->from->n];
  PetscCount     total = 0;
  HybCSR        *R     = w->R;
  PetscInt       nnz, *at;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < nr; k++) total += w->halo->lengths[k];
  PetscCall(HybIntCast(total, "The rows that come from other processes", &nnz));
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, (PetscCount)nr + 1, sizeof(PetscInt), &at));
  at[0] = 0;
  for (PetscInt k = 0; k < nr; k++) at[k + 1] = at[k] + w->halo->lengths[k];
  PetscCall(HybPeersRefine(m->to, m->at, &r->to));
  PetscCall(HybPeersRefine(m->from, at, &r->from));
  r->nsend = m->S.nnz;
  r->nrecv = total;
  R->m     = nr;
  R->n     = w->N;
  R->nnz   = total;
  PetscCall(HybArenaAlloc(w->keep, HYB_WORK(exec), (PetscCount)nr + 1, sizeof(PetscInt), &R->i));
  PetscCall(HybArenaAlloc(w->keep, HYB_WORK(exec), total, sizeof(PetscInt), &R->j));
  if (w->A->a || !w->A->nnz) PetscCall(HybArenaAlloc(w->keep, HYB_WORK(exec), total, sizeof(HybScalar), &R->a));
  PetscCall(exec->backend->copy(exec, R->i, at, sizeof(PetscInt) * ((size_t)nr + 1), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Once all have room. A device's copy of what a neighbour did not send is nobody's columns: the host looks before
   anything reads them. */
static PetscErrorCode HybRowsColumns(HybRows r, const HybExec *exec, const HybRowsMaking *m, HybCSR *R)
{
  PetscFunctionBegin;
  PetscCall(HybExchangeBegin(r->values, exec, sizeof(PetscInt), NULL, m->S.j));
  PetscCall(HybExchangeEnd(r->values, exec, PETSC_SUCCESS, R->j, NULL));
  if (r->values->peer) PetscCall(exec->backend->sync(exec));
  PetscCall(HybRowsCheck(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same, and the values where they are there */
static PetscErrorCode HybRowsContents(const HybExec *exec, HybRowsMaking *m, const HybRowsWish *w, PetscBool values)
{
  HybRows        r = *w->rows;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!values) w->R->a = NULL;
  ierr = HybRowsColumns(r, exec, m, w->R);
  if (values && ierr)
    HybRowsAbandon(r, exec);
  else if (values) {
    ierr = HybRowsValuesBegin(r, exec, w->A->a);
    if (!ierr) ierr = HybRowsValuesEnd(r, exec, PETSC_SUCCESS, w->R->a);
  }
  PetscCall(ierr);
  if (w->colmap) PetscCall(HybArenaFree(&r->arena, &m->S.i, &m->S.j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, once what is picked has its lengths: all tell these, and make the exchanges. most: a matrix lacks its
   values, which it does on all processes: an empty one cannot tell. */
static PetscErrorCode HybRowsMake(HybComm comm, const HybExec *exec, PetscErrorCode before, int n, HybRowsMaking m[], const HybRowsWish w[], HybExchangeWish e[])
{
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) ierr = HybErrorFirst(ierr, HybPeersExchange(comm, before, m[k].to, m[k].from, sizeof(PetscInt), m[k].length, w[k].halo->lengths, w[k].halo->request));
  for (int k = 0; k < n; k++) {
    HybRows r = *w[k].rows;

    if (!ierr) ierr = HybRowsRoom(r, exec, &m[k], &w[k]);
    e[k] = (HybExchangeWish){.to = r ? &r->to : NULL, .from = r ? &r->from : NULL, .lasting = w[k].halo->lasting, .most = !before && w[k].A->nnz && !w[k].A->a};
  }
  PetscCall(HybExchangesCreate(comm, exec, ierr, "Rows for other processes", n, e));
  for (int k = 0; k < n; k++) (*w[k].rows)->values = e[k].exchange;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsMove(HybComm comm, const HybExec *exec, PetscErrorCode before, int n, const HybRowsWish w[])
{
  HybRowsMaking   m[HYB_COMM_TOGETHER];
  HybExchangeWish e[HYB_COMM_TOGETHER];
  HybExec         x    = *exec;
  PetscErrorCode  ierr = before, later = PETSC_SUCCESS;

  PetscFunctionBegin;
  x.result = HYB_WORK(exec);
  for (int k = 0; k < n; k++) {
    m[k].to    = w[k].ship ? &w[k].halo->from : &w[k].halo->to;
    m[k].from  = w[k].ship ? &w[k].halo->to : &w[k].halo->from;
    *w[k].rows = NULL;
    PetscCall(PetscMemzero(w[k].R, sizeof(*w[k].R)));
    m[k].work = HybArenaOn(&x);
    if (!ierr) ierr = HybRowsStart(comm, &x, &m[k], &w[k]);
  }
  ierr = HybRowsMake(comm, &x, ierr, n, m, w, e);
  /* all of them, for which others wait */
  for (int k = 0; k < n && !ierr; k++) later = HybErrorFirst(later, HybRowsContents(&x, &m[k], &w[k], (PetscBool)!e[k].most));
  ierr = HybErrorFirst(ierr, later);
  for (int k = 0; k < n; k++) ierr = HybErrorFirst(ierr, HybArenaReset(&m[k].work));
  for (int k = 0; k < n && ierr; k++) (void)HybRowsDestroy(w[k].rows);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsValuesBegin(HybRows r, const HybExec *exec, const HybScalar *a)
{
  PetscFunctionBegin;
  r->values->early = r->early;
  PetscCall(HybExchangeBegin(r->values, exec, sizeof(HybScalar), r->perm, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsValuesEnd(HybRows r, const HybExec *exec, PetscErrorCode before, HybScalar *ra)
{
  PetscFunctionBegin;
  PetscCall(HybExchangeEnd(r->values, exec, before, ra, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsValuesEndThere(HybRows r, const HybExec *exec, PetscErrorCode before, HybScalar *ra, const HybScalar **came)
{
  PetscFunctionBegin;
  PetscCall(HybExchangeEnd(r->values, exec, before, r->values->bypeer || r->values->aware ? NULL : ra, came));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybRowsAbandon(HybRows r, const HybExec *exec)
{
  HybExchangeAbandon(r->values, exec, sizeof(HybScalar));
}

void HybRowsForget(HybRows r)
{
  if (r && r->values->peer) HybPeerForget(r->values);
}

PetscErrorCode HybRowsCheck(HybRows r)
{
  PetscFunctionBegin;
  if (r->values->peer) PetscCall(HybPeerStatus(r->values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybRowsSettled(HybRows r)
{
  const HybExchange e = r->values;

  return (PetscBool)(e->peer || (e->capacity >= HYB_COMM_UNIT && (e->asked || !HybExchangeMayPeer(HybTuningGet()))));
}
