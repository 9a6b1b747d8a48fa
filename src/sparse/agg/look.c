/*
  look.c: whether a graph is one that the rules of aggregation were proven for.

  Symmetry in one pass. Rows are visited in ascending order, and each row has a pointer to its first entry that was not
  met yet. Row r meets entry (c,r) for each of its entries (r,c) with c > r: it must be the next one of row c. So when
  row r is reached, its pointer stands behind all entries left of the diagonal, or there is one without a partner.

    for r:  k = next[r];  (r, j[k]) must not lie left of the diagonal;  skip the diagonal;
            for the rest of the row, c = j[k]:  j[next[c]] must be r;  next[c]++

  Memory: n integers. Time: O(nnz), one access to another row for each two entries.
*/
#include "agghost.h"

/* has row r its diagonal, in the part from k on? */
static inline PetscBool HybAggHasDiagonal(const HybCSR *G, PetscInt r, PetscInt from)
{
  const PetscInt at = HybCSRPlace(G->j, from, G->i[r + 1], r);

  return (PetscBool)(at < G->i[r + 1] && G->j[at] == r);
}

PetscErrorCode HybAggLook_Host(const HybExec *exec, HybArena *work, const HybCSR *G, HybAggLook *look)
{
  const PetscInt  n  = G->m;
  const PetscInt *gi = G->i, *gj = G->j;
  PetscInt       *next;
  HybAggLook      l = {0, 0, 0, 0, PETSC_TRUE};

  PetscFunctionBegin;
  PetscCheck(G->m == G->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, G->m, G->n);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &next));
  for (PetscInt r = 0; r < n; r++) next[r] = gi[r];
  for (PetscInt r = 0; r < n; r++) {
    const PetscInt end = gi[r + 1], length = end - gi[r];
    PetscInt       k = next[r];

    l.alone += length < 2;
    l.empty += length == 0;
    l.longest = PetscMax(l.longest, length);
    if (l.symmetric && k < end && gj[k] < r) l.symmetric = PETSC_FALSE;
    if (!l.symmetric) {
      l.nodiagonal += !HybAggHasDiagonal(G, r, gi[r]);
      continue;
    }
    if (k < end && gj[k] == r)
      k++;
    else
      l.nodiagonal++;
    for (; k < end; k++) {
      const PetscInt c = gj[k], q = next[c];

      if (q == gi[c + 1] || gj[q] != r) {
        l.symmetric = PETSC_FALSE;
        break;
      }
      next[c] = q + 1;
    }
  }
  PetscCall(HybArenaFree(work, &next));
  *look = l;
  PetscFunctionReturn(PETSC_SUCCESS);
}
