/*
  rows.c: rows of a distributed matrix, to those who need them (Fetch) or to those who own them (Ship).

    rows to be sent    copied in the order of sending, columns renumbered to global ones: S = A(rows, colmap), and where
                       each entry was: perm; or the caller has done that
    lengths            by the host, which counts what comes and where it begins
    columns            S's, as they lie; they come in order
    values             A's entries perm[k], gathered on the way, now and whenever they have changed

  Each process's own steps are agreed upon before the next messages. Memory: S without values while columns travel, and
  perm; R.
*/
#include "commimpl.h"

typedef struct {
  const HybPeers *to, *from;         /* in rows */
  PetscBool       lasting;           /* as the halo's */
  const PetscInt *rows;              /* to be sent, where the backend executes; NULL: all */
  PetscInt       *length[2], *at[2]; /* of the host: of each row sent, received; where it begins */
  MPI_Request    *request;           /* freed by PetscFree() */
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
static PetscErrorCode HybRowsPick(HybRows r, const HybExec *exec, HybRowsMaking *m, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending)
{
  const PetscInt n = (PetscInt)m->to->offset[m->to->n], nr = (PetscInt)m->from->offset[m->from->n];

  PetscFunctionBegin;
  PetscCall(HybPeersRequests(m->to, m->from, sizeof(PetscInt), &m->request));
  for (int k = 0; k < 2; k++) {
    PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, k ? nr : n, sizeof(PetscInt), &m->length[k]));
    PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, (PetscCount)(k ? nr : n) + 1, sizeof(PetscInt), &m->at[k]));
  }
  if (colmap) {
    PetscCall(exec->backend->csr->submatrixmapped(exec, &r->arena, &m->work, A, n, m->rows, N, colmap, ascending, &m->S, &r->perm));
    PetscCall(exec->backend->copy(exec, m->at[0], m->S.i, sizeof(PetscInt) * ((size_t)n + 1), HYB_COPY_DEVICE_TO_HOST));
  } else {
    m->S = *A;
    PetscCall(PetscArraycpy(m->at[0], begin, (size_t)n + 1));
  }
  for (PetscInt k = 0; k < n; k++) m->length[0][k] = m->at[0][k + 1] - m->at[0][k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybRowsSizes(const HybCSR *A, PetscInt m)
{
  PetscFunctionBegin;
  PetscCheck(A->m == m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A matrix of %" PetscInt_FMT " rows is given, the halo has %" PetscInt_FMT, A->m, m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how many entries come, and room for them */
static PetscErrorCode HybRowsRoom(HybRows r, const HybExec *exec, HybArena *keep, HybRowsMaking *m, PetscInt N, PetscBool values, HybCSR *R)
{
  const PetscInt nr    = (PetscInt)m->from->offset[m->from->n];
  PetscCount     total = 0;
  PetscInt       nnz;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < nr; k++) total += m->length[1][k];
  PetscCall(HybIntCast(total, "The rows that come from other processes", &nnz));
  m->at[1][0] = 0;
  for (PetscInt k = 0; k < nr; k++) m->at[1][k + 1] = m->at[1][k] + m->length[1][k];
  PetscCall(HybPeersRefine(m->to, m->at[0], &r->to));
  PetscCall(HybPeersRefine(m->from, m->at[1], &r->from));
  r->nsend = m->S.nnz;
  r->nrecv = total;
  R->m     = nr;
  R->n     = N;
  R->nnz   = total;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)nr + 1, sizeof(PetscInt), &R->i));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), total, sizeof(PetscInt), &R->j));
  if (values) PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), total, sizeof(HybScalar), &R->a));
  PetscCall(exec->backend->copy(exec, R->i, m->at[1], sizeof(PetscInt) * ((size_t)nr + 1), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where values follow, all know before that the columns have come */
static PetscErrorCode HybRowsMake(HybRows r, const HybExec *exec, HybArena *keep, HybRowsMaking *m, const HybCSR *A, PetscInt N, PetscBool values, HybCSR *R)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybPeersExchange(r->comm, m->to, m->from, sizeof(PetscInt), m->length[0], m->length[1], m->request));
  PetscCall(HybExchangeCreate(r->comm, exec, HybRowsRoom(r, exec, keep, m, N, values, R), "Room for rows of other processes", &r->to, &r->from, PETSC_FALSE, m->lasting, &r->values));
  ierr = HybExchangeBegin(r->values, exec, sizeof(PetscInt), NULL, m->S.j, PETSC_FALSE);
  if (!ierr) ierr = HybExchangeEnd(r->values, exec, PETSC_SUCCESS, R->j, NULL);
  if (values) {
    PetscCall(HybCommAgree(r->comm, ierr, "Moving rows"));
    ierr = HybRowsValuesBegin(r, exec, A->a);
    if (!ierr) ierr = HybRowsValuesEnd(r, exec, PETSC_SUCCESS, R->a);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the object, and this process's part of what comes first */
static PetscErrorCode HybRowsStart(HybComm comm, const HybExec *exec, HybRowsMaking *m, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybRows *rows)
{
  HybRows r;

  PetscFunctionBegin;
  PetscCall(PetscNew(&r));
  *rows   = r;
  r->comm = comm;
  comm->users++;
  PetscCall(HybArenaInit(&r->arena, exec));
  PetscCall(HybRowsPick(r, exec, m, A, begin, colmap, N, ascending));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's values may be missing, then on all processes: an empty one cannot tell */
static PetscErrorCode HybRowsMove(HybComm comm, const HybExec *exec, PetscErrorCode before, HybArena *keep, HybRowsMaking *m, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows)
{
  HybRows        r     = NULL;
  PetscInt64     empty = !before && A->nnz && !A->a;
  HybExec        w     = *exec;
  PetscErrorCode ierr  = before;

  PetscFunctionBegin;
  *rows = NULL;
  PetscCall(PetscMemzero(R, sizeof(*R)));
  w.result = HYB_WORK(exec);
  PetscCall(HybArenaInit(&m->work, &w));
  if (!ierr) ierr = HybRowsStart(comm, &w, m, A, begin, colmap, N, ascending, &r);
  ierr = HybCommAgreeMax(comm, ierr, "Picking rows for other processes", 1, &empty);
  if (!ierr) { /* from here on all meet once more */
    ierr = HybRowsMake(r, &w, keep, m, A, N, (PetscBool)!empty, R);
    if (!ierr && colmap) ierr = HybArenaFree(&r->arena, &m->S.i);
    if (!ierr && colmap) ierr = HybArenaFree(&r->arena, &m->S.j);
    ierr = HybErrorFirst(ierr, HybArenaReset(&m->work));
    ierr = HybCommAgree(comm, ierr, "Moving rows");
  }
  (void)HybArenaReset(&m->work);
  (void)PetscFree(m->request);
  if (ierr) (void)HybRowsDestroy(&r);
  PetscCall(ierr);
  *rows = r;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsFetch(HybHalo h, const HybExec *exec, PetscErrorCode before, HybArena *keep, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows)
{
  HybRowsMaking m = {.to = &h->to, .from = &h->from, .lasting = h->lasting, .rows = h->there};

  PetscFunctionBegin;
  PetscCall(HybRowsMove(h->comm, exec, before ? before : HybRowsSizes(A, colmap ? h->n : h->nsend), keep, &m, A, begin, colmap, N, ascending, R, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsShip(HybHalo h, const HybExec *exec, PetscErrorCode before, HybArena *keep, const HybCSR *A, const PetscInt *begin, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows)
{
  HybRowsMaking m = {.to = &h->from, .from = &h->to, .lasting = h->lasting};

  PetscFunctionBegin;
  PetscCall(HybRowsMove(h->comm, exec, before ? before : HybRowsSizes(A, h->nghost), keep, &m, A, begin, colmap, N, ascending, R, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsValuesBegin(HybRows r, const HybExec *exec, const HybScalar *a)
{
  PetscFunctionBegin;
  r->values->early = r->early;
  PetscCall(HybExchangeBegin(r->values, exec, sizeof(HybScalar), r->perm, a, PETSC_FALSE));
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
