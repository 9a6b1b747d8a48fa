/*
  collapse.c: the graph of a matrix with several unknowns a vertex, as PETSc's MatCreateGraph() makes its pattern:
  vertices u and v are joined where any of the bs x bs entries between them is stored, whatever its value.

    for v, for its bs rows r, for k in row r:  u = j[k] / bs, once for each run of entries of the same u
      u joins the list unless it is marked with v
    the list is sorted, unless it came sorted, as it does where rows of a vertex have the same columns

  The pass that counts looks for entries of the diagonal as well.

  Memory: n integers. Time: O(nnz), and sorting.
*/
#include "agghost.h"

/* the vertices of v's rows into list (NULL: only counted); missing: rows without their diagonal are added */
static PetscInt HybCollapseVertex(const HybCSR *A, PetscInt bs, PetscInt v, PetscInt *mark, PetscInt *list, PetscCount *missing)
{
  PetscInt n = 0;

  for (PetscInt r = v * bs; r < v * bs + bs; r++) {
    PetscInt  last     = 0; /* the first column behind the run's block */
    PetscBool diagonal = PETSC_FALSE;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt c = A->j[k];

      if (missing && c == r) diagonal = PETSC_TRUE;
      if (c < last) continue;
      const PetscInt u = c / bs;
      last             = u * bs + bs;
      if (mark[u] == v) continue;
      mark[u] = v;
      if (list) list[n] = u;
      n++;
    }
    if (missing) *missing += !diagonal;
  }
  return n;
}

static PetscErrorCode HybCollapseSort(PetscInt n, PetscInt *list)
{
  PetscInt k = 1;

  PetscFunctionBegin;
  while (k < n && list[k - 1] < list[k]) k++;
  if (k < n) PetscCall(PetscSortInt(n, list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggCollapse_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, HybCSR *G, PetscCount *nodiagonal)
{
  const PetscInt n = bs > 0 ? A->m / bs : 0;
  PetscInt      *mark, nnz = 0; /* no more than A has */

  PetscFunctionBegin;
  PetscCheck(A->m == A->n && bs > 0 && n * bs == A->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Blocks of %" PetscInt_FMT " unknowns do not divide a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, bs, A->m, A->n);
  G->m = G->n = n;
  G->a        = NULL;
  *nodiagonal = 0;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)n + 1, sizeof(PetscInt), &G->i));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &mark));
  for (PetscInt v = 0; v < n; v++) mark[v] = -1;
  for (PetscInt v = 0; v < n; v++) {
    G->i[v] = nnz;
    nnz += HybCollapseVertex(A, bs, v, mark, NULL, nodiagonal);
  }
  G->i[n] = nnz;
  G->nnz  = nnz;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &G->j));
  for (PetscInt v = 0; v < n; v++) mark[v] = -1;
  for (PetscInt v = 0; v < n; v++) PetscCall(HybCollapseSort(HybCollapseVertex(A, bs, v, mark, G->j + G->i[v], NULL), G->j + G->i[v]));
  PetscCall(HybArenaFree(work, &mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}
