/*
  vertices.c: the graph of a distributed matrix whose vertices have several unknowns, in blocks as the matrix has.

  Joining the unknowns of vertices is what agg's collapse does, to each block by itself. The off-diagonal block has the
  columns of others that occur here, which need not be all unknowns of a vertex; they get the numbers that they had if
  they were, k bs + u of the vertices' k-th one: so a column's vertex is found by a division.

  PETSc looks at each process's two blocks for whole blocks of unknowns: where entry k of each row is of column k modulo
  bs, in the numbers of the block's own columns, it takes bs entries of a row for one vertex without looking. Where all
  unknowns of others occur these numbers are the ones above; else collapse is asked once more, with the other ones.

  Memory: the graph; where unknowns of others are missing, the off-diagonal block's columns once more. Time: O(nnz).
*/
#include "paraggimpl.h"

/* V's columns of others, and p->wide */
static PetscErrorCode HybParAggGhostVertices(HybParAgg p, HybArena *work, const HybParCSR *A, HybParCSR *V)
{
  const PetscInt bs = p->block.bs, n = A->O.n;
  PetscInt      *garray, *wide, k = -1;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &garray));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(PetscInt), &wide));
  for (PetscInt c = 0; c < n; c++) {
    const PetscInt v = A->garray[c] / bs;

    if (k < 0 || garray[k] != v) garray[++k] = v;
    wide[c] = k * bs + A->garray[c] % bs; /* less than the whole matrix has */
  }
  p->nwide  = (k + 1) * bs;
  V->garray = garray;
  V->O.n    = k + 1;
  if (n < p->nwide) {
    PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(&p->exec), n, sizeof(PetscInt), &p->wide));
    PetscCall(p->exec.backend->copy(&p->exec, p->wide, wide, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggWide(HybParAgg p, HybArena *work, const HybCSR *O, HybCSR *W)
{
  const HybExec *x = &p->exec;

  PetscFunctionBegin;
  *W = *O;
  if (!p->wide) PetscFunctionReturn(PETSC_SUCCESS);
  W->n = p->nwide;
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), O->nnz, sizeof(PetscInt), &W->j));
  PetscCall(x->backend->copy(x, W->j, O->j, sizeof(PetscInt) * (size_t)O->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall((*x->backend->local->mapcolumns)(x, O->nnz, p->wide, W->j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggVertices(HybParAgg p, HybArena *work, const HybParCSR *A, PetscBool weights, HybParCSR *V, PetscBool *proper)
{
  const HybExec  *x  = &p->exec;
  const PetscInt  bs = p->block.bs;
  HybAggCollapsed d, o;
  HybCSR          W;

  PetscFunctionBegin;
  V->rows = V->columns = p->ranges;
  PetscCall(HybParAggGhostVertices(p, work, A, V));
  PetscCall(HybParAggWide(p, work, &A->O, &W));
  PetscCall((*x->backend->agg->collapse)(x, work, work, &A->D, bs, &V->D, &d));
  PetscCall((*x->backend->agg->collapse)(x, work, work, &W, bs, &V->O, &o));
  if (weights) {
    PetscCall((*x->backend->agg->weights)(x, work, work, &A->D, bs, &V->D));
    PetscCall((*x->backend->agg->weights)(x, work, work, &W, bs, &V->O));
  }
  if (p->wide && d.aligned) {
    HybAggCollapsed narrow;
    HybCSR          N = A->O, none;

    N.n = (N.n + bs - 1) / bs * bs;
    PetscCall((*x->backend->agg->collapse)(x, work, work, &N, bs, &none, &narrow));
    o.aligned = narrow.aligned;
  }
  *proper  = (PetscBool) !(d.aligned && o.aligned && (d.broken || o.broken));
  p->lacks = (PetscBool)(d.nodiagonal > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}
