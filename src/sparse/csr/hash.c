/*
  hash.c: a pattern's hash on the host, one pass over i and j.
*/
#include "csrlist.h"
#include "hash.h"

static HYB_MULTIVERSION uint64_t HybHashAllEntries(PetscCount n, const PetscInt *j)
{
  uint64_t h = 0;

  for (PetscCount k = 0; k < n; k++) h += HybHashEntry(k, j[k]);
  return h;
}

static HYB_MULTIVERSION uint64_t HybHashAllRows(PetscInt m, const PetscInt *end)
{
  uint64_t h = 0;

  for (PetscInt r = 0; r < m; r++) h += HybHashRow(r, end[r]);
  return h;
}

PetscErrorCode HybCSRPatternHash_Host(const HybExec *x, HybArena *work, PetscInt n, const HybCSR *const A[], uint64_t hash[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    hash[k] = HybHashMix((uint64_t)A[k]->m) ^ HybHashMix((uint64_t)A[k]->n << 1);
    if (A[k]->m) hash[k] += HybHashAllRows(A[k]->m, A[k]->i + 1);
    hash[k] += HybHashAllEntries(A[k]->nnz, A[k]->j);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
