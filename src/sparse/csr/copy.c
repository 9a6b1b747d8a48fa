/*
  copy.c: a whole CSR matrix copied, on any backend.
*/
#include <aijhybridgpu/private/hybcsrcopy.h>

PetscErrorCode HybCSRCopy(const HybExec *exec, HybArena *keep, HybMem mem, const HybCSR *A, PetscBool values, HybCopyKind kind, HybCSR *C)
{
  const PetscCount rows = (PetscCount)A->m + 1, nnz = A->nnz;
  PetscInt        *i, *j;
  HybScalar       *a = NULL;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), rows, sizeof(*i), &i));
  PetscCall(HybArenaAlloc(keep, mem, nnz, sizeof(*j), &j));
  if (values) PetscCall(HybArenaAlloc(keep, mem, nnz, sizeof(*a), &a));
  PetscCall(exec->backend->copy(exec, i, A->i, sizeof(*i) * (size_t)rows, kind));
  PetscCall(exec->backend->copy(exec, j, A->j, sizeof(*j) * (size_t)nnz, kind));
  if (values) PetscCall(exec->backend->copy(exec, a, A->a, sizeof(*a) * (size_t)nnz, kind));
  *C   = *A;
  C->i = i;
  C->j = j;
  C->a = a;
  PetscFunctionReturn(PETSC_SUCCESS);
}
