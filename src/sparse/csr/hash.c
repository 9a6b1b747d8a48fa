/*
  hash.c: a pattern's hash on the host, one pass over i and j.
*/
#include "csrhost.h"
#include "hash.h"

static HYB_MULTIVERSION uint64_t HybHashAllEntries(PetscCount n, const PetscInt *j)
{
  uint64_t h = 0;

  for (PetscCount k = 0; k < n; k++) h += HybHashEntry(k, j[k]);
  return h;
}

PetscErrorCode HybCSRPatternHash_Host(const HybExec *x, HybArena *work, const HybCSR *A, uint64_t *hash)
{
  uint64_t h = HybHashMix((uint64_t)A->m) ^ HybHashMix((uint64_t)A->n << 1);

  PetscFunctionBegin;
  (void)x;
  (void)work;
  for (PetscInt r = 0; r < A->m; r++) h += HybHashRow(r, A->i[r + 1]);
  *hash = h + HybHashAllEntries(A->nnz, A->j);
  PetscFunctionReturn(PETSC_SUCCESS);
}
