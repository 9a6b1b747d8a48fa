/*
  Sums over all processes of numbers that stay on their cards (HybCommSum): any number of them up to the room there is,
  again and again, one process after the other giving up in between. The bits are those of adding in the order of ranks
  on every process, by peer access and by messages.

TEST np=2,3+4
TEST np=2 -mat_aijhybridgpu_comm mpi
TEST np=2 -ipc 0
*/
#include "commtest.h"

#define ROOM 7    /* numbers that one launch adds */
#define MANY 5003 /* and that take two */

/* number k of a process */
static PetscScalar Number(PetscMPIInt r, PetscInt k, PetscInt round)
{
  return Entry(100 * r + k, round) * (PetscReal)(r % 2 ? 1e-3 : 1e4);
}

static PetscErrorCode Sums(HybCommSum sum, PetscInt n, PetscInt round)
{
  const HybExec *exec = HybTestExec();
  PetscScalar    v[MANY], expected[MANY];
  HybScalar     *there;
  HybArena       arena;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    v[k]        = Number(Rank, k, round);
    expected[k] = Number(0, k, round);
    for (PetscMPIInt r = 1; r < Size; r++) expected[k] += Number(r, k, round);
  }
  arena = HybArenaOn(exec);
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), n, sizeof(HybScalar), &there));
  PetscCall(exec->backend->copy(exec, there, v, sizeof(*v) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  HybTestCall(HybCommSumApply(sum, exec, PETSC_SUCCESS, n, there));
  HybTestSameBits(n, sizeof(PetscScalar), there, expected);
  HybTestCall(HybHaloHeard(sum->halo));
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* process r has an error: the others' sums are no numbers, and they hear why */
static PetscErrorCode GivenUp(HybCommSum sum, PetscMPIInt r, PetscInt n)
{
  const HybExec *exec = HybTestExec();
  PetscScalar    v[MANY];
  HybScalar     *there;
  HybArena       arena;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) v[k] = 1;
  arena = HybArenaOn(exec);
  PetscCall(HybArenaAlloc(&arena, HYB_WORK(exec), n, sizeof(HybScalar), &there));
  PetscCall(exec->backend->copy(exec, there, v, sizeof(*v) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  if (Rank == r)
    HybTestCallFails(PETSC_ERR_ARG_WRONG, HybCommSumApply(sum, exec, PETSC_ERR_ARG_WRONG, n, there));
  else {
    HybTestCall(HybCommSumApply(sum, exec, PETSC_SUCCESS, n, there));
    PetscCall(exec->backend->copy(exec, v, there, sizeof(*v) * (size_t)n, HYB_COPY_DEVICE_TO_HOST));
    HybTestCheck(PetscIsInfOrNanScalar(v[0]) && PetscIsInfOrNanScalar(v[n - 1]), "a sum without one process's numbers is %g", (double)PetscRealPart(v[0]));
    HybTestCallFails(PETSC_ERR_LIB, HybHaloHeard(sum->halo));
  }
  HybTestCall(HybHaloHeard(sum->halo)); /* it is told once */
  PetscCall(HybArenaReset(&arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* sums of up to room numbers */
static PetscErrorCode Kind(HybComm comm, PetscInt room, PetscBool no)
{
  HybCommSum sum = NULL;
  int        serves[2];

  PetscFunctionBegin;
  HybTestBegin("one process cannot make them");
  HybTestCallFails(PETSC_ERR_MEM, HybCommSumCreate(comm, HybTestExec(), Rank ? PETSC_SUCCESS : PETSC_ERR_MEM, room, &sum));
  HybTestCheck(!sum, "there is one after an error");
  HybTestBegin("sums of %d numbers", (int)room);
  if (!HybTestCall(HybCommSumCreate(comm, HybTestExec(), PETSC_SUCCESS, room, &sum))) PetscFunctionReturn(PETSC_SUCCESS);
  serves[0] = HybCommSumServes(sum);
  serves[1] = !serves[0];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, serves, 2, MPI_INT, MPI_LOR, comm->mpi));
  HybTestCheck(serves[0] != serves[1], "processes differ in what serves");
  HybTestCheck(serves[0] == !no, "sums%s serve", serves[0] ? "" : " do not");
  for (PetscInt round = 0; round < 12 && HybTestExec()->backend->device && Size > 1; round++) {
    HybTestBegin("sums of %d numbers, round %d", (int)room, (int)round);
    PetscCall(Sums(sum, room == ROOM && serves[0] ? 1 + (round * 3) % ROOM : room, round));
    if (round % 3 == 2 && serves[0]) PetscCall(GivenUp(sum, (PetscMPIInt)(round / 3 % Size), room));
  }
  if (serves[0]) {
    HybTestBegin("another number of numbers than there can be");
    HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybCommSumApply(sum, HybTestExec(), PETSC_SUCCESS, room + 1, NULL));
    if (room == MANY) HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybCommSumApply(sum, HybTestExec(), PETSC_SUCCESS, room - 1, NULL));
  }
  HybTestCall(HybCommSumDestroy(&sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(HybComm comm)
{
  PetscBool no, ipc;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_comm", &no));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-ipc", &ipc));
  no = (PetscBool)(no || ipc || !HybTestExec()->backend->device || Size == 1);
  PetscCall(Kind(comm, ROOM, no));
  PetscCall(Kind(comm, MANY, no));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return CommTestMain(argc, argv, Body);
}
