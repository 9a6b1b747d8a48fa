/*
  collapse.c: the graph of a matrix with several unknowns a vertex, as PETSc's MatCreateGraph() makes its pattern:
  vertices u and v are joined where any of the bs x bs entries between them is stored, whatever its value.

    for v, for its bs rows r, for k in row r:  u = j[k] / bs, once for each run of entries of the same u
      u joins the list unless it is marked with v
    the list is sorted, unless it came sorted, as it does where rows of a vertex have the same columns

  The pass that counts looks for entries of the diagonal as well, and for what PETSc takes for whole blocks without
  looking at the vertices: rows whose entry k is of unknown k modulo bs. Of rows that have the same columns, in whole
  blocks, the first one tells all.

  Memory: an integer for each vertex that has columns, a byte for each vertex. Time: O(nnz), and sorting.
*/
#include "agghost.h"

/* what the pass that counts looks for */
typedef struct {
  PetscCount missing; /* rows without their diagonal */
  PetscBool  odd;     /* an entry that is not of unknown k modulo bs */
  PetscBool  broken;  /* one of another vertex than that before it, though k modulo bs is not 0 */
} HybCollapseSeen;

/* the vertices of v's rows into list (NULL: only counted) */
static PetscInt HybCollapseVertex(const HybCSR *A, PetscInt bs, PetscInt v, PetscInt *mark, PetscInt *list, HybCollapseSeen *seen)
{
  PetscInt n = 0;

  for (PetscInt r = v * bs; r < v * bs + bs; r++) {
    PetscInt  last     = 0; /* the first column behind the run's block */
    PetscInt  unknown  = 0; /* k modulo bs */
    PetscBool diagonal = PETSC_FALSE;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt c = A->j[k];

      if (seen) {
        diagonal = (PetscBool)(diagonal || c == r);
        if (c % bs != unknown) seen->odd = PETSC_TRUE;
        if (c >= last && unknown) seen->broken = PETSC_TRUE;
        unknown = unknown + 1 < bs ? unknown + 1 : 0;
      }
      if (c < last) continue;
      const PetscInt u = c / bs;
      last             = u * bs + bs;
      if (mark[u] == v) continue;
      mark[u] = v;
      if (list) list[n] = u;
      n++;
    }
    if (seen) seen->missing += !diagonal;
  }
  return n;
}

/* the same of a vertex whose rows have the same columns in whole blocks */
static PetscInt HybCollapseWhole(const HybCSR *A, PetscInt bs, PetscInt v, PetscInt *list, HybCollapseSeen *seen)
{
  const PetscInt  n        = (A->i[v * bs + 1] - A->i[v * bs]) / bs;
  const PetscInt *j        = A->j + A->i[v * bs];
  PetscInt        diagonal = 0;

  if (list) {
    for (PetscInt e = 0; e < n; e++) list[e] = j[e * bs] / bs;
    return n;
  }
  for (PetscInt e = 0; e < n; e++) diagonal += j[e * bs] == v * bs;
  seen->missing += diagonal ? 0 : bs;
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

PetscErrorCode HybAggCollapse_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, HybCSR *G, HybAggCollapsed *found)
{
  const PetscInt  n = bs > 0 ? A->m / bs : 0, all = bs > 0 ? A->n / bs : 0;
  HybCollapseSeen seen = {0, PETSC_FALSE, PETSC_FALSE};
  PetscInt       *mark, nnz = 0; /* no more than A has */
  unsigned char  *whole;

  PetscFunctionBegin;
  PetscCheck(bs > 0 && n * bs == A->m && all * bs == A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Blocks of %" PetscInt_FMT " unknowns do not divide a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, bs, A->m, A->n);
  G->m = n;
  G->n = all;
  G->a = NULL;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)n + 1, sizeof(PetscInt), &G->i));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), all, sizeof(PetscInt), &mark));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, 1, &whole));
  for (PetscInt u = 0; u < all; u++) mark[u] = -1;
  for (PetscInt v = 0; v < n; v++) {
    G->i[v]  = nnz;
    whole[v] = (unsigned char)HybAggIsWhole(A, bs, v);
    nnz += whole[v] ? HybCollapseWhole(A, bs, v, NULL, &seen) : HybCollapseVertex(A, bs, v, mark, NULL, &seen);
  }
  found->nodiagonal = seen.missing;
  found->aligned    = (PetscBool)!seen.odd;
  found->broken     = seen.broken;
  G->i[n]           = nnz;
  G->nnz            = nnz;
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &G->j));
  for (PetscInt u = 0; u < all; u++) mark[u] = -1;
  for (PetscInt v = 0; v < n; v++) {
    PetscInt *list = G->j + G->i[v];

    PetscCall(HybCollapseSort(whole[v] ? HybCollapseWhole(A, bs, v, list, NULL) : HybCollapseVertex(A, bs, v, mark, list, NULL), list));
  }
  PetscCall(HybArenaFree(work, &whole, &mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}
