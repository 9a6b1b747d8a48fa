/*
  probe.c: whether exchanges by peer access come through, which is tried once before they serve: some systems open
  others' memory and do not reach it.
*/
#include "commimpl.h"

/* All processes are in it together, so what has not come by then never will. Others may be late for good reasons. */
#define PROBE_SECONDS 60

typedef struct {
  HybPeers  everybody;
  HybArena  work;
  PetscInt *words, *there; /* a word for each process, of the host and of the card */
} Probe;

/* all memory is taken before anybody waits */
static PetscErrorCode HybPeerProbeMake(HybComm comm, const HybExec *exec, Probe *p)
{
  PetscFunctionBegin;
  p->work = HybArenaOn(exec);
  PetscCall(HybPeersAlloc(comm->size - 1, &p->everybody));
  PetscCall(HybArenaAlloc(&p->work, HYB_MEM_HOST, comm->size, sizeof(PetscInt), &p->words));
  PetscCall(HybArenaAlloc(&p->work, HYB_MEM_DEVICE, comm->size, sizeof(PetscInt), &p->there));
  for (PetscMPIInt k = 0; k < comm->size - 1; k++) {
    p->everybody.rank[k]   = k < comm->rank ? k : k + 1;
    p->everybody.offset[k] = k;
  }
  p->everybody.offset[comm->size - 1] = comm->size - 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one exchange of a word with everybody */
static PetscErrorCode HybPeerProbeOnce(HybExchange e, const HybExec *exec, Probe *p, PetscInt round)
{
  const PetscMPIInt size = e->comm->size, rank = e->comm->rank;
  void             *came = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  for (PetscMPIInt k = 0; k < size; k++) p->words[k] = 1000 * (round + 1) + rank;
  ierr = exec->backend->copy(exec, p->there, p->words, sizeof(PetscInt) * (size_t)size, HYB_COPY_HOST_TO_DEVICE);
  if (ierr) HybExchangeAbandon(e, exec, sizeof(PetscInt));
  PetscCall(ierr);
  PetscCall(HybExchangeBegin(e, exec, sizeof(PetscInt), NULL, p->there));
  PetscCall(HybExchangeEnd(e, exec, PETSC_SUCCESS, NULL, &came));
  PetscCall(exec->backend->copy(exec, p->words, came, sizeof(PetscInt) * (size_t)(size - 1), HYB_COPY_DEVICE_TO_HOST));
  for (PetscMPIInt k = 0; k < size - 1; k++) PetscCheck(p->words[k] == 1000 * (round + 1) + (k < rank ? k : k + 1), PETSC_COMM_SELF, PETSC_ERR_LIB, "Another word than was sent came");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do exchanges with everybody come through, on all processes? */
PetscErrorCode HybPeerProbe(HybComm comm, const HybExec *exec, PetscBool *all)
{
  HybExchange    e = NULL;
  Probe          p = {.words = NULL};
  PetscBool      closed;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybPeerAll(comm, HYB_QUIETLY(HybPeerProbeMake(comm, exec, &p)), all));
  if (*all) {
    ierr = HYB_QUIETLY(HybExchangeCreate(comm, exec, PETSC_SUCCESS, "A probe", &p.everybody, &p.everybody, PETSC_FALSE, &e));
    if (!ierr) ierr = HYB_QUIETLY(HybPeerExchangeMake(e, exec, PETSC_SUCCESS)); /* at once */
    if (!ierr && !e->peer) ierr = PETSC_ERR_LIB;
    if (!ierr) e->patience = PetscMin(HybTuningGet()->comm_timeout, PROBE_SECONDS);
    PetscCall(HybPeerAll(comm, ierr, all));
  }
  /* both slots */
  for (PetscInt round = 0; round < 3 && *all; round++) PetscCall(HybPeerAll(comm, HYB_QUIETLY(HybPeerProbeOnce(e, exec, &p, round)), all));
  PetscCall(HybPeerAll(comm, HYB_QUIETLY(HybExchangeDestroy(&e)), &closed));
  *all = (PetscBool)(*all && closed);
  (void)HybArenaReset(&p.work);
  PetscCall(HybPeersFree(&p.everybody));
  PetscFunctionReturn(PETSC_SUCCESS);
}
