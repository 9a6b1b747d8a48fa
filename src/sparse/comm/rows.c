/*
  rows.c: rows of a distributed matrix, to those who need them (Fetch) or to those who own them (Ship).

    rows to be sent    copied in the order of sending, columns renumbered to global ones: S = A(rows, colmap), and where
                       each entry was: perm
    lengths            by the host, which counts what comes and where it begins
    columns            S's, as they lie; they come in order
    values             A's entries perm[k], gathered on the way, now and whenever they have changed

  Each process's own steps are agreed upon before the next messages. Memory: S without values while columns travel, and
  perm; R.
*/
#include "commimpl.h"

typedef struct {
  const HybPeers *to, *from;         /* in rows */
  const PetscInt *rows;              /* to be sent, where the backend executes */
  PetscInt       *length[2], *at[2]; /* of the host: of each row sent, received; where it begins */
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
static PetscErrorCode HybRowsPick(HybRows r, const HybExec *exec, HybRowsMaking *m, const HybCSR *A, const PetscInt *colmap, PetscInt N, PetscBool ascending)
{
  const PetscInt n = (PetscInt)m->to->offset[m->to->n], nr = (PetscInt)m->from->offset[m->from->n];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, k ? nr : n, sizeof(PetscInt), &m->length[k]));
    PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, (PetscCount)(k ? nr : n) + 1, sizeof(PetscInt), &m->at[k]));
  }
  PetscCall(exec->backend->csr->submatrixmapped(exec, &r->arena, &m->work, A, n, m->rows, N, colmap, ascending, &m->S, &r->perm));
  PetscCall(exec->backend->copy(exec, m->at[0], m->S.i, sizeof(PetscInt) * ((size_t)n + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
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

static PetscErrorCode HybRowsMake(HybRows r, const HybExec *exec, HybArena *keep, HybRowsMaking *m, const HybCSR *A, const PetscInt *colmap, PetscInt N, PetscBool ascending, PetscBool values, HybCSR *R)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(r->comm, HybRowsPick(r, exec, m, A, colmap, N, ascending), "Picking rows for other processes"));
  PetscCall(HybPeersExchange(r->comm, m->to, m->from, sizeof(PetscInt), m->length[0], m->length[1]));
  PetscCall(HybCommAgree(r->comm, HybRowsRoom(r, exec, keep, m, N, values, R), "Room for rows of other processes"));
  PetscCall(HybExchangeCreate(r->comm, exec, &r->to, &r->from, PETSC_FALSE, &r->values));
  ierr = HybExchangeBegin(r->values, exec, sizeof(PetscInt), NULL, m->S.j, PETSC_FALSE);
  if (!ierr) ierr = HybExchangeEnd(r->values, exec, PETSC_SUCCESS, R->j, NULL);
  PetscCall(HybCommAgree(r->comm, ierr, "Moving rows"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's values may be missing, then on all processes: an empty one cannot tell */
static PetscErrorCode HybRowsMove(HybComm comm, const HybExec *exec, HybArena *keep, HybRowsMaking *m, const HybCSR *A, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows)
{
  HybRows        r     = NULL;
  PetscInt64     empty = A->nnz && !A->a;
  HybExec        w     = *exec;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  *rows = NULL;
  PetscCall(PetscMemzero(R, sizeof(*R)));
  ierr = HybCommAgree(comm, PetscNew(&r), "Memory for rows");
  if (ierr) (void)PetscFree(r);
  PetscCall(ierr);
  PetscCall(HybCommMax(comm, 1, &empty));
  w.result = HYB_WORK(exec);
  r->comm  = comm;
  comm->users++;
  PetscCall(HybArenaInit(&r->arena, &w));
  PetscCall(HybArenaInit(&m->work, &w));
  ierr = HybRowsMake(r, &w, keep, m, A, colmap, N, ascending, (PetscBool)!empty, R);
  if (!ierr && !empty) ierr = HybRowsValuesBegin(r, &w, A->a);
  if (!ierr && !empty) ierr = HybRowsValuesEnd(r, &w, PETSC_SUCCESS, R->a);
  if (!ierr) ierr = HybArenaFree(&r->arena, &m->S.i);
  if (!ierr) ierr = HybArenaFree(&r->arena, &m->S.j);
  later = HybArenaReset(&m->work);
  if (!ierr) ierr = later;
  ierr = HybCommAgree(comm, ierr, "Moving rows");
  if (ierr) (void)HybRowsDestroy(&r);
  PetscCall(ierr);
  *rows = r;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsFetch(HybHalo h, const HybExec *exec, HybArena *keep, const HybCSR *A, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows)
{
  HybRowsMaking m = {.to = &h->to, .from = &h->from, .rows = h->there};

  PetscFunctionBegin;
  PetscCall(HybCommAgree(h->comm, HybRowsSizes(A, h->n), "A matrix of other sizes than the halo's"));
  PetscCall(HybRowsMove(h->comm, exec, keep, &m, A, colmap, N, ascending, R, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybRowsShip(HybHalo h, const HybExec *exec, HybArena *keep, const HybCSR *A, const PetscInt *colmap, PetscInt N, PetscBool ascending, HybCSR *R, HybRows *rows)
{
  HybRowsMaking  m = {.to = &h->from, .from = &h->to};
  HybArena       work;
  PetscInt      *all = NULL, *there = NULL;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(h->comm, HybRowsSizes(A, h->nghost), "A matrix of other sizes than the halo's"));
  PetscCall(HybArenaInit(&work, exec));
  ierr = HybArenaAlloc(&work, HYB_MEM_HOST, h->nghost, sizeof(PetscInt), &all);
  if (!ierr) ierr = HybArenaAlloc(&work, HYB_WORK(exec), h->nghost, sizeof(PetscInt), &there);
  for (PetscInt k = 0; !ierr && k < h->nghost; k++) all[k] = k;
  if (!ierr) ierr = exec->backend->copy(exec, there, all, sizeof(PetscInt) * (size_t)h->nghost, HYB_COPY_HOST_TO_DEVICE);
  m.rows = there;
  ierr   = HybCommAgree(h->comm, ierr, "Memory for rows");
  if (!ierr) ierr = HybRowsMove(h->comm, exec, keep, &m, A, colmap, N, ascending, R, rows);
  later = HybArenaReset(&work);
  PetscCall(ierr); /* all have one, or none */
  ierr = HybCommAgree(h->comm, later, "Memory for rows");
  if (ierr) (void)HybRowsDestroy(rows);
  PetscCall(ierr);
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
