/*
  peers.c: what all processes of a communicator agree upon, and messages between a process and its peers.
*/
#include "commimpl.h"
#include <unistd.h>

/* PETSc takes the tags of messages from a counter on each process (PetscCommGetNewTag()), which counts down whenever an
   object is created. The counters are alike while all processes create the same objects. One that has failed may have
   created fewer objects: then its next message and the others' have different tags, and both sides wait for ever. So
   all counters go down to the smallest. (A counter begins anew after 2^31 tags; there this takes minutes.) */
static void HybAgreeTags(MPI_Comm mpi)
{
  PetscMPIInt tag, least;

  /* no process may stay away from the reduction; where the communicator is none of PETSc's, all have this number */
  if (HYB_QUIETLY(PetscCommGetNewTag(mpi, &tag))) tag = PETSC_MPI_INT_MAX;
  if (MPI_Allreduce(&tag, &least, 1, MPI_INT, MPI_MIN, mpi)) return;
  while (tag > least && !PetscCommGetNewTag(mpi, &tag)) continue;
}

/* One number has the error and who has it: of the worst ones the first process's is the largest */
PetscErrorCode HybAgreeMax(MPI_Comm mpi, PetscErrorCode ierr, const char *what, PetscInt n, PetscInt64 *v)
{
  PetscInt64  all[HYB_COMM_AGREED + 1];
  PetscMPIInt rank, size;

  PetscFunctionBegin;
  PetscCheck(n >= 0 && n <= HYB_COMM_AGREED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " numbers are agreed upon at once, of at most %d", n, HYB_COMM_AGREED);
  PetscCallMPI(MPI_Comm_rank(mpi, &rank));
  PetscCallMPI(MPI_Comm_size(mpi, &size));
  if (size == 1) { /* waits for nobody */
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  all[0] = ierr ? (PetscInt64)ierr * size + (size - 1 - rank) : 0;
  for (PetscInt k = 0; k < n; k++) all[k + 1] = v[k];
  HybCallMPIWaiting(MPI_Allreduce(MPI_IN_PLACE, all, (PetscMPIInt)(n + 1), MPIU_INT64, MPI_MAX, mpi));
  if (all[0]) HybAgreeTags(mpi);
  PetscCall(ierr);
  PetscCheck(!all[0], PETSC_COMM_SELF, (PetscErrorCode)(all[0] / size), "%s failed on process %d of %d, which says why", what, size - 1 - (PetscMPIInt)(all[0] % size), size);
  for (PetscInt k = 0; k < n; k++) v[k] = all[k + 1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAgreeSum(MPI_Comm mpi, PetscErrorCode ierr, const char *what, PetscInt n, PetscInt64 *v)
{
  v[n] = ierr != PETSC_SUCCESS;
  PetscFunctionBegin;
  HybCallMPIWaiting(MPI_Allreduce(MPI_IN_PLACE, v, (PetscMPIInt)(n + 1), MPIU_INT64, MPI_SUM, mpi));
  if (v[n]) PetscCall(HybAgree(mpi, ierr, what)); /* which error it is */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAgreeAll(MPI_Comm mpi, PetscErrorCode ierr, const char *what, PetscBool *yes)
{
  PetscInt64 no = !*yes;

  PetscFunctionBegin;
  PetscCall(HybAgreeMax(mpi, ierr, what, 1, &no));
  *yes = (PetscBool)!no;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeersAlloc(PetscMPIInt n, HybPeers *p)
{
  PetscFunctionBegin;
  p->n = n;
  PetscCall(PetscMalloc1(n, &p->rank));
  PetscCall(PetscCalloc1((size_t)n + 1, &p->offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeersFree(HybPeers *p)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(p->rank));
  PetscCall(PetscFree(p->offset));
  p->n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeersRefine(const HybPeers *p, const PetscInt *at, HybPeers *r)
{
  PetscFunctionBegin;
  PetscCall(HybPeersAlloc(p->n, r));
  for (PetscMPIInt k = 0; k < p->n; k++) r->rank[k] = p->rank[k];
  for (PetscMPIInt k = 0; k <= p->n; k++) r->offset[k] = (PetscCount)at[p->offset[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how many pieces all messages are, the longest unit that they may have being so many bytes */
PetscMPIInt HybPeersPieces(const HybPeers *p, size_t unit)
{
  PetscMPIInt n = 0;

  for (PetscMPIInt k = 0; k < p->n; k++) n += (PetscMPIInt)(((size_t)(p->offset[k + 1] - p->offset[k]) * unit + HYB_COMM_PIECE - 1) / HYB_COMM_PIECE);
  return n;
}

/* Starts a message for each piece; empty: without contents. *n counts the requests. */
PetscErrorCode HybPeersStart(HybComm comm, PetscMPIInt tag, const HybPeers *p, size_t unit, PetscBool receive, PetscBool empty, char *buffer, MPI_Request *request, PetscMPIInt *n)
{
  PetscFunctionBegin;
  for (PetscMPIInt k = 0; k < p->n; k++) {
    const size_t end = (size_t)p->offset[k + 1] * unit;

    for (size_t at = (size_t)p->offset[k] * unit; at < end; at += HYB_COMM_PIECE) {
      const PetscMPIInt bytes = (PetscMPIInt)PetscMin(end - at, HYB_COMM_PIECE);

      if (receive)
        PetscCallMPI(MPI_Irecv(buffer + at, bytes, MPI_BYTE, p->rank[k], tag, comm->mpi, &request[*n]));
      else
        PetscCallMPI(MPI_Isend(empty ? NULL : buffer + at, empty ? 0 : bytes, MPI_BYTE, p->rank[k], tag, comm->mpi, &request[*n]));
      (*n)++;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *missing = who sent other lengths than expected, -1: nobody. status NULL: of what is waited for here */
PetscErrorCode HybPeersCheck(const HybPeers *p, size_t unit, const MPI_Status *status, MPI_Request *request, PetscMPIInt *missing)
{
  PetscMPIInt n = 0;
  MPI_Status  one;

  PetscFunctionBegin;
  *missing = -1;
  for (PetscMPIInt k = 0; k < p->n; k++) {
    const size_t end = (size_t)p->offset[k + 1] * unit;

    for (size_t at = (size_t)p->offset[k] * unit; at < end; at += HYB_COMM_PIECE) {
      int bytes;

      if (!status) PetscCallMPI(MPI_Wait(&request[n], &one));
      PetscCallMPI(MPI_Get_count(status ? (MPI_Status *)&status[n] : &one, MPI_BYTE, &bytes));
      n++;
      if ((size_t)bytes != PetscMin(end - at, HYB_COMM_PIECE)) *missing = p->rank[k];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeersRequests(const HybPeers *to, const HybPeers *from, size_t unit, MPI_Request **request)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)HybPeersPieces(to, unit) + HybPeersPieces(from, unit), request));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeersExchange(HybComm comm, PetscErrorCode before, const HybPeers *to, const HybPeers *from, size_t unit, const void *out, void *in, MPI_Request *request)
{
  PetscMPIInt tag, nreceive = 0, n, missing = -1;
  double      began;

  PetscFunctionBegin;
  PetscCall(PetscCommGetNewTag(comm->mpi, &tag));
  PetscCall(HybPeersStart(comm, tag, from, unit, PETSC_TRUE, PETSC_FALSE, (char *)in, request, &nreceive));
  n = nreceive;
  PetscCall(HybPeersStart(comm, tag, to, unit, PETSC_FALSE, (PetscBool)(before != PETSC_SUCCESS), (char *)out, request, &n));
  if (!before) HybCommTallySent(PETSC_FALSE, (size_t)to->offset[to->n] * unit);
  began = HybCommWaitBegin();
  PetscCallMPI(MPI_Waitall(n - nreceive, request + nreceive, MPI_STATUSES_IGNORE));
  PetscCall(HybPeersCheck(from, unit, NULL, request, &missing));
  HybCommWaitEnd(began);
  PetscCall(before);
  PetscCheck(missing < 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "Process %d has an error and sends nothing to process %d", missing, comm->rank);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory of the host's for what cards send and receive, page-locked if there is any. Whether there is only taking it
   tells: the node's processes take theirs at the same time, and files that the system keeps in memory may leave little
   unused for days. */
PetscErrorCode HybExchangeBuffer(HybArena *arena, size_t bytes, void *buffer, PetscBool *locked)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *locked = arena->exec.backend->device;
  if (*locked) {
    ierr = HYB_QUIETLY(HybArenaAlloc(arena, HYB_MEM_LOCKED, (PetscCount)bytes, 1, buffer));
    PetscCheck(!ierr || ierr == PETSC_ERR_MEM, PETSC_COMM_SELF, ierr, "%zu bytes of the host's memory could not be page-locked", bytes);
    if (ierr) *locked = PETSC_FALSE;
  }
  if (!*locked) PetscCall(HybArenaAlloc(arena, HYB_MEM_HOST, (PetscCount)bytes, 1, buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
