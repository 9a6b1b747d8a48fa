/*
  global.cu: tables of rows that no block's shared memory holds, one for each block that runs at a time.
*/
#include "hashargs.cuh"

PetscErrorCode HybHashGlobalTables(const HybExec *exec, HybArena *work, int multiprocessors, PetscCount words, PetscCount rows, HashArgs *x, PetscCount *blocks)
{
  size_t spare;

  PetscFunctionBegin;
  PetscCall(HybMemorySpare(exec, &spare));
  *blocks        = (PetscCount)(spare / 4 / ((size_t)words * sizeof(unsigned)));
  *blocks        = PetscMax(1, PetscMin(*blocks, PetscMin(rows, (PetscCount)multiprocessors)));
  x->globalwords = words;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, *blocks * words, sizeof(unsigned), &x->global));
  PetscFunctionReturn(PETSC_SUCCESS);
}
