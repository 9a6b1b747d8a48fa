/*
  Functions of PETSc's that write a matrix which is used again, a submatrix or a conversion's result, write its pattern
  too, where its arrays are, and tell nobody if that is another one: no state counts it, and the arrays stay. So the
  pattern's hash is taken before and after.
*/
#include "storage.h"

PetscErrorCode HybPatternHash(const HybExec *x, PetscInt n, const HybCSR *const M[], uint64_t hash[])
{
  const HybCSR *list[HYB_HASHES];
  uint64_t      of[HYB_HASHES];
  PetscInt      place[HYB_HASHES], each = 0;
  HybArena      work = HybArenaOn(x);

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < n; k++) {
    for (place[k] = 0; place[k] < each; place[k]++)
      if (list[place[k]]->i == M[k]->i && list[place[k]]->j == M[k]->j && list[place[k]]->m == M[k]->m) break;
    if (place[k] == each) list[each++] = M[k];
  }
  HybCallBoth(x->backend->csr->patternhash(x, &work, each, list, of), HybArenaReset(&work));
  for (PetscInt k = 0; k < n; k++) hash[k] = of[place[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybInPlaceHash(Mat A, uint64_t *hash)
{
  HybView       v;
  const HybCSR *M = &v.host;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  PetscCall(HybPatternHash(&HybExecHost, 1, &M, hash));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybInPlaceBegin(Mat A, HybInPlace *w)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(*w)));
  if (!A || !MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  if (!A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybInPlaceHash(A, &w->hash));
  w->A = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybInPlaceEnd(Mat A, const HybInPlace *w)
{
  uint64_t hash;

  PetscFunctionBegin;
  if (!A || A != w->A || !MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  if (A->assembled) {
    PetscCall(HybInPlaceHash(A, &hash));
    if (hash == w->hash) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatSeqAIJHybridGPUDisown(A)); /* the device has row offsets of its own */
  }
  PetscCall(MatSeqAIJHybridGPUPatternMoved(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
