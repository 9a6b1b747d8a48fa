/*
  comm.c: communicators.
*/
#include "commimpl.h"

static HybComm HybComms; /* in use; a handful */
PetscBool      HybCommAware = PETSC_FALSE;

void HybCommSetAware(PetscBool aware)
{
  HybCommAware = aware;
}

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
    c->probe = HybPeerProbe;
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
