/*
  permute.cu: PETSc's shuffle of n vertices, each vertex finding its place alone.

  Step k = 0, 1, ..., n-1 exchanges slot k with slot t_k, a random one, unless t_k = k or t_k was the target of an
  exchange before. Let F(t) be the first step k != t with t_k = t. A step exchanges if F(t_k) = k, so a slot s takes
  part in two exchanges at most: in step s, and in step F(s).

    kernel 1  t_k by the generator's steps of any length; F by an atomic minimum
    kernel 2 for each vertex: slot = v, time = -1; the earliest of the two exchanges of its slot that is later than time
    moves it to the other slot; and so on until there is none

  Paths are short: two exchanges on average, O(log n) at most, with high probability. All is integer but for one product
  that IEEE rounds: the same places as the sequential loop's.

  Where the order is that of degrees the host makes it: which of equal ones comes first follows from the exchanges of
  PETSc's sort, one after the other.

  Memory: 2 n integers beside the result. Time: O(n) expected; n atomic minima and about 4 n accesses at random places.
*/
#include "aggops.cuh"
#include "agghost.h"
#include "rander48.h"

namespace {

__global__ void Targets(PetscInt n, HybRander48Step stride, PetscInt *__restrict__ target, PetscInt *__restrict__ first)
{
  const PetscCount threads = (PetscCount)gridDim.x * AGG_THREADS, begin = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;

  if (begin >= n) return;
  uint64_t x = HybRander48Next(HybRander48Steps((uint64_t)begin + 1), HYB_RANDER48_SEED);
  for (PetscCount k = begin; k < n; k += threads) {
    const PetscInt t = HybRander48Slot(x, n);

    target[k] = t;
    if (t != k) HybAtomicMin(&first[t], (PetscInt)k);
    x = HybRander48Next(stride, x);
  }
}

} // namespace

PetscErrorCode HybAggFill(const HybExec *exec, PetscInt n, PetscInt *a)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { a[k] = PETSC_MAX_INT; });
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybAggShuffled(const HybExec *exec, HybArena *work, PetscInt n, PetscInt *place)
{
  const PetscCount blocks = HybMin()(HybBlocks(n, AGG_THREADS), (PetscCount)8 * AGG_BLOCKS);
  PetscInt        *target, *first;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &target));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &first));
  PetscCall(HybAggFill(exec, n, first));
  HYB_LAUNCH(Targets, blocks, AGG_THREADS, 0, exec->stream, n, HybRander48Steps((uint64_t)blocks * AGG_THREADS), target, first);
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) {
    PetscInt slot = (PetscInt)v, time = -1;

    while (1) {
      /* as a target, if of any; as the step of its own number, if that exchanges */
      const PetscInt taken = first[slot];
      PetscInt       step = PETSC_MAX_INT, other = 0;

      if (taken > time && taken != PETSC_MAX_INT) {
        step  = taken;
        other = taken;
      }
      if (slot > time && slot < step && first[target[slot]] == slot) {
        step  = slot;
        other = target[slot];
      }
      if (step == PETSC_MAX_INT) break;
      slot = other;
      time = step;
    }
    place[v] = slot;
  });
  PetscCall(HybArenaFree(work, &first, &target));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybAggByDegrees(const HybExec *exec, HybArena *work, PetscInt n, const PetscInt *gi, PetscInt *place)
{
  PetscInt *hosti, *hostplace;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)n + 1, sizeof(PetscInt), &hosti));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &hostplace));
  PetscCall(exec->backend->copy(exec, hosti, gi, ((size_t)n + 1) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybAggPermutation_Host(exec, work, n, HYB_AGG_DEGREES, hosti, hostplace));
  PetscCall(exec->backend->copy(exec, place, hostplace, (size_t)n * sizeof(PetscInt), HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybArenaFree(work, &hostplace, &hosti));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggPermutation_CUDA(const HybExec *exec, HybArena *work, PetscInt n, HybAggOrder order, const PetscInt *gi, PetscInt *place)
{
  PetscFunctionBegin;
  if (order == HYB_AGG_SHUFFLED)
    PetscCall(HybAggShuffled(exec, work, n, place));
  else if (order == HYB_AGG_DEGREES)
    PetscCall(HybAggByDegrees(exec, work, n, gi, place));
  else
    HYB_FOR_EACH(exec, n, [=] __device__(PetscCount v) { place[v] = (PetscInt)v; });
  PetscFunctionReturn(PETSC_SUCCESS);
}
