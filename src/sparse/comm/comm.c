/*
  comm.c: communicators, and what all processes of one agree upon.
*/
#include "commimpl.h"

static HybComm HybComms; /* in use; a handful */

PetscErrorCode HybCommGet(MPI_Comm mpi, HybComm *comm)
{
  MPI_Comm    inner;
  PetscMPIInt tag;
  HybComm     c;

  PetscFunctionBegin;
  *comm = NULL;
  PetscCall(PetscCommDuplicate(mpi, &inner, &tag));
  for (c = HybComms; c && c->mpi != inner; c = c->next) continue;
  if (c)
    PetscCall(PetscCommDestroy(&inner)); /* counted once is enough */
  else {
    PetscErrorCode ierr = PetscNew(&c);

    if (ierr) (void)PetscCommDestroy(&inner);
    PetscCall(ierr);
    c->mpi   = inner;
    c->next  = HybComms;
    HybComms = c;
    PetscCallMPI(MPI_Comm_rank(inner, &c->rank));
    PetscCallMPI(MPI_Comm_size(inner, &c->size));
  }
  c->users++;
  *comm = c;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCommRestore(HybComm *comm)
{
  HybComm        c = *comm, *link = &HybComms;
  MPI_Comm       inner;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *comm = NULL;
  if (!c || --c->users > 0) PetscFunctionReturn(PETSC_SUCCESS);
  while (*link != c) link = &(*link)->next;
  *link = c->next;
  inner = c->mpi;
  ierr  = HybPeerClose(c);
  PetscCall(PetscFree(c));
  PetscCall(PetscCommDestroy(&inner));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCommSum(HybComm comm, PetscInt n, PetscInt64 *v)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, v, (PetscMPIInt)n, MPIU_INT64, MPI_SUM, comm->mpi));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCommMax(HybComm comm, PetscInt n, PetscInt64 *v)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, v, (PetscMPIInt)n, MPIU_INT64, MPI_MAX, comm->mpi));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCommAgree(HybComm comm, PetscErrorCode ierr, const char *what)
{
  int mine[2], worst[2];

  PetscFunctionBegin;
  mine[0] = (int)ierr;
  mine[1] = comm->rank;
  PetscCallMPI(MPI_Allreduce(mine, worst, 1, MPI_2INT, MPI_MAXLOC, comm->mpi));
  PetscCall(ierr);
  PetscCheck(!worst[0], PETSC_COMM_SELF, (PetscErrorCode)worst[0], "%s failed on process %d of %d, which says why", what, worst[1], comm->size);
  PetscFunctionReturn(PETSC_SUCCESS);
}
