/*
  sum.c: sums over all processes of numbers that stay on their cards.

  Every process puts its numbers into the others' slots, tells them, waits for theirs, and adds all of them in the order
  of ranks: the same bits on all processes, and from run to run. That is one launch of one block of threads, of many
  numbers two launches, and no host waits. Without peer access messages bring the numbers. It is an exchange with
  everybody, so a process that fails tells it to all.
*/
#include "commimpl.h"

PetscErrorCode HybCommSumCreate(HybComm comm, const HybExec *exec, PetscErrorCode before, PetscInt n, HybCommSum *sum)
{
  PetscInt      *ranges = NULL;
  HybCommSum     s      = NULL;
  HybHalo        halo   = NULL;
  PetscErrorCode ierr   = before;

  PetscFunctionBegin;
  *sum = NULL;
  if (!ierr) ierr = PetscNew(&s);
  if (!ierr) ierr = PetscMalloc1(comm->size + 1, &ranges);
  for (PetscMPIInt r = 0; r <= comm->size && ranges; r++) ranges[r] = r * n;
  ierr = HybHaloCreateAll(comm, exec, ierr, ranges, PETSC_TRUE, &halo);
  (void)PetscFree(ranges);
  if (ierr) (void)PetscFree(s);
  PetscCall(ierr);
  /* what a graph of sums needs is made with them; else it is made when one is */
  if (HybHaloRecordable(halo, PETSC_FALSE) && !HYB_QUIETLY(HybHaloRecord(halo, exec, PETSC_FALSE))) (void)HybHaloRecorded(halo, PETSC_FALSE);
  s->halo = halo;
  s->n    = n;
  *sum    = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCommSumDestroy(HybCommSum *sum)
{
  HybCommSum     s = *sum;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *sum = NULL;
  if (!s) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybHaloDestroy(&s->halo);
  PetscCall(PetscFree(s));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybCommSumServes(HybCommSum s)
{
  return HybHaloRecordable(s->halo, PETSC_FALSE);
}

PetscErrorCode HybCommSumApply(HybCommSum s, const HybExec *exec, PetscErrorCode before, PetscInt n, HybScalar *v)
{
  HybExchange e    = s->halo->forward;
  HybScalar  *came = NULL;

  PetscFunctionBegin;
  PetscCheck(before || n == s->n || (n < s->n && s->n <= HYB_COMM_FEW && e->peer), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " numbers are to be added, for which there is room for %" PetscInt_FMT, n, s->n);
  if (before) HybHaloAbandon(s->halo, exec, sizeof(HybScalar), PETSC_FALSE, before);
  PetscCall(before);
  e->lenient = s->halo->lenient = PETSC_TRUE; /* the caller asks HybHaloHeard() */
  if (e->peer && s->n <= HYB_COMM_FEW)
    PetscCall(HybPeerTogether(e, exec, NULL, s->n, n, v));
  else {
    PetscCall(HybHaloBegin(s->halo, exec, sizeof(HybScalar), v));
    if (e->recording || e->bypeer)
      PetscCall(HybPeerSumEnd(e, exec, n, v));
    else {
      PetscCall(HybHaloEnd(s->halo, exec, PETSC_SUCCESS, &came));
      PetscCall(exec->backend->comm->sumcame(exec, e->comm->rank, e->comm->size - 1, n, came, v));
      PetscFunctionReturn(PETSC_SUCCESS); /* the exchange has counted itself */
    }
  }
  if (!e->recording) HybCommTallySent(PETSC_TRUE, (size_t)e->to->n * (size_t)n * sizeof(HybScalar));
  PetscFunctionReturn(PETSC_SUCCESS);
}
