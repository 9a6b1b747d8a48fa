/*
  probe.c: whether exchanges by peer access come through, which is tried once before they serve: some systems open
  others' memory and do not reach it.
*/
#include "commimpl.h"

/* All processes are in it together, so what has not come by then never will. Others may be late for good reasons. */
#define PROBE_SECONDS 60

/* one exchange of a word with everybody */
static PetscErrorCode HybPeerProbeOnce(HybExchange e, const HybExec *exec, HybArena *work, PetscInt round)
{
  const PetscMPIInt size = e->comm->size, rank = e->comm->rank;
  PetscInt         *words, *there;
  void             *came = NULL;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, size, sizeof(PetscInt), &words));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, size, sizeof(PetscInt), &there));
  for (PetscMPIInt k = 0; k < size; k++) words[k] = 1000 * (round + 1) + rank;
  PetscCall(exec->backend->copy(exec, there, words, sizeof(PetscInt) * (size_t)size, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybExchangeBegin(e, exec, sizeof(PetscInt), NULL, there, PETSC_FALSE));
  PetscCall(HybExchangeEnd(e, exec, PETSC_SUCCESS, NULL, &came));
  PetscCall(exec->backend->copy(exec, words, came, sizeof(PetscInt) * (size_t)(size - 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  for (PetscMPIInt k = 0; k < size - 1; k++) PetscCheck(words[k] == 1000 * (round + 1) + (k < rank ? k : k + 1), PETSC_COMM_SELF, PETSC_ERR_LIB, "Another word than was sent came");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do exchanges with everybody come through, on all processes? */
PetscErrorCode HybPeerProbe(HybComm comm, const HybExec *exec, PetscBool *all)
{
  HybExchange    e = NULL;
  HybPeers       everybody;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybPeersAlloc(comm->size - 1, &everybody));
  for (PetscMPIInt k = 0; k < comm->size - 1; k++) {
    everybody.rank[k]   = k < comm->rank ? k : k + 1;
    everybody.offset[k] = k;
  }
  everybody.offset[comm->size - 1] = comm->size - 1;
  PetscCall(HybArenaInit(&work, exec));
  ierr = HYB_QUIETLY(HybExchangeCreate(comm, exec, &everybody, &everybody, PETSC_TRUE, &e));
  if (!ierr) ierr = HYB_QUIETLY(HybPeerExchangeMake(e, exec, PETSC_SUCCESS)); /* at once */
  if (!ierr && !e->peer) ierr = PETSC_ERR_LIB;
  if (!ierr) e->patience = PetscMin(HybTuningGet()->comm_timeout, PROBE_SECONDS);
  PetscCall(HybPeerAll(comm, ierr, all));
  /* both slots */
  for (PetscInt round = 0; round < 3 && *all; round++) PetscCall(HybPeerAll(comm, HYB_QUIETLY(HybPeerProbeOnce(e, exec, &work, round)), all));
  ierr = HYB_QUIETLY(HybExchangeDestroy(&e));
  (void)HybArenaReset(&work);
  PetscCall(HybPeersFree(&everybody));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
