/*
  filter.c: the graph without its weak edges, as PETSc's GAMG makes it of a matrix with a threshold of 0 or more.

  PETSc copies A, takes moduli, adds the transpose unless A is known to be symmetric, divides rows and then columns by
  roots of the diagonal, and copies what is above the threshold into another matrix. Here an entry's number is computed
  where it stands, in the same order of roundings, and the pattern alone is made:

    s[r] = sqrt(1 / w(r,r)), 0 where that is zero;   (r,c) stays if (w(r,c) s[r]) s[c] > threshold

  So a row whose diagonal is zero loses all entries, with a threshold of 0 all that are zero go, and what is not a
  number goes too. By -pc_gamg_low_memory_threshold_filter MatFilter() does it, which leaves the diagonal alone, and
  what is not a number.

  Of complex numbers moduli are taken (modulus.h), the transpose is the plain one; where vertices have several unknowns
  the weights are sums of the real parts' moduli (edge.h).

  With the transpose w(r,c) = |a(r,c)| + |a(c,r)|. The partner is found as look.c does: each row has a pointer to its
  first entry that was not met. An entry without a partner ends it: what PETSc makes of such patterns is not done here.

  Memory: n integers, n reals, a byte for each entry. Time: O(nnz).
*/
#include "agghost.h"
#include "edge.h"

PetscErrorCode HybAggWeights_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, HybCSR *G)
{
  PetscInt *place;

  PetscFunctionBegin;
  PetscCheck(bs > 0 && G->m * bs == A->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph of %" PetscInt_FMT " vertices of %" PetscInt_FMT " unknowns and a matrix of %" PetscInt_FMT " rows", G->m, bs, A->m);
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), G->nnz, sizeof(HybScalar), &G->a));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), G->n, sizeof(PetscInt), &place));
  for (PetscInt v = 0; v < G->m; v++) {
    for (PetscInt e = G->i[v]; e < G->i[v + 1]; e++) {
      place[G->j[e]] = e;
      G->a[e]        = 0;
    }
    for (PetscInt k = A->i[v * bs]; k < A->i[v * bs + bs]; k++) G->a[place[A->j[k] / bs]] += HybEdgePart(bs, A->a[k]);
  }
  PetscCall(HybArenaFree(work, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* scale[r], and how many rows have no diagonal */
static PetscCount HybFilterScales(const HybCSR *W, PetscBool symmetrize, PetscReal *scale)
{
  PetscCount missing = 0;

  for (PetscInt r = 0; r < W->m; r++) {
    PetscInt k = W->i[r];

    while (k < W->i[r + 1] && W->j[k] != r) k++;
    missing += k == W->i[r + 1];
    scale[r] = k == W->i[r + 1] ? 0 : HybEdgeScale(HybEdgeWeight(symmetrize, W->a[k], W->a[k]));
  }
  return missing;
}

/* which entries stay, how many are close; without the transpose */
static PetscCount HybFilterMark(const HybCSR *W, const HybAggFilter *f, const PetscReal *scale, unsigned char *stays)
{
  PetscCount close = 0;

  for (PetscInt r = 0; r < W->m; r++) {
    for (PetscInt k = W->i[r]; k < W->i[r + 1]; k++) {
      const PetscInt  c        = W->j[k];
      const PetscReal strength = HybEdgeStrength(HybEdgeModulus(W->a[k]), scale[r], scale[c]);

      stays[k] = HybEdgeStays(f, (PetscBool)(c == r), strength);
      close += c != r && HybEdgeClose(f, strength);
    }
  }
  return close;
}

/* with it; next: n entries */
static PetscBool HybFilterMarkPairs(const HybCSR *W, const HybAggFilter *f, const PetscReal *scale, PetscInt *next, unsigned char *stays, PetscCount *close)
{
  for (PetscInt r = 0; r < W->m; r++) next[r] = W->i[r];
  *close = 0;
  for (PetscInt r = 0; r < W->m; r++) {
    PetscInt k = next[r];

    if (k < W->i[r + 1] && W->j[k] < r) return PETSC_FALSE;
    for (; k < W->i[r + 1]; k++) {
      const PetscInt  c = W->j[k], q = c == r ? k : next[c];
      PetscReal       weight, strength[2];
      const PetscBool diagonal = (PetscBool)(c == r);

      if (!diagonal && (q == W->i[c + 1] || W->j[q] != r)) return PETSC_FALSE;
      weight      = HybEdgeWeight(PETSC_TRUE, W->a[k], W->a[q]);
      strength[0] = HybEdgeStrength(weight, scale[r], scale[c]);
      strength[1] = HybEdgeStrength(weight, scale[c], scale[r]);
      stays[k]    = HybEdgeStays(f, diagonal, strength[0]);
      if (diagonal) continue;
      stays[q] = HybEdgeStays(f, diagonal, strength[1]);
      next[c]  = q + 1;
      *close += HybEdgeClose(f, strength[0]) + HybEdgeClose(f, strength[1]);
    }
  }
  return PETSC_TRUE;
}

PetscErrorCode HybAggFilter_Host(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *W, const HybAggFilter *f, HybCSR *G, HybAggFiltered *found)
{
  const PetscInt n = W->m;
  PetscReal     *scale;
  PetscInt      *next, nnz = 0;
  unsigned char *stays;

  PetscFunctionBegin;
  PetscCheck(W->m == W->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A graph has as many rows as columns, not %" PetscInt_FMT " and %" PetscInt_FMT, W->m, W->n);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscReal), &scale));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), W->nnz, 1, &stays));
  found->nodiagonal = HybFilterScales(W, f->symmetrize, scale);
  found->close      = 0;
  found->paired     = PETSC_TRUE;
  *G                = (HybCSR){n, n, 0, NULL, NULL, NULL};
  if (f->symmetrize) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(PetscInt), &next));
    found->paired = HybFilterMarkPairs(W, f, scale, next, stays, &found->close);
    PetscCall(HybArenaFree(work, &next));
  } else
    found->close = HybFilterMark(W, f, scale, stays);
  if (found->paired) {
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), (PetscCount)n + 1, sizeof(PetscInt), &G->i));
    for (PetscInt r = 0; r < n; r++) {
      G->i[r] = nnz;
      for (PetscInt k = W->i[r]; k < W->i[r + 1]; k++) nnz += stays[k];
    }
    G->i[n] = nnz;
    G->nnz  = nnz;
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(PetscInt), &G->j));
    nnz = 0;
    for (PetscCount k = 0; k < W->nnz; k++) {
      if (stays[k]) G->j[nnz++] = W->j[k];
    }
  }
  PetscCall(HybArenaFree(work, &stays, &scale));
  PetscFunctionReturn(PETSC_SUCCESS);
}
