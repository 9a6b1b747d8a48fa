/*
  edges.c: the graph of a distributed matrix without its weak edges.

  Whether edge (r,c) is weak follows from the weights of (r,c) and (c,r) and from those on the diagonals of r and c;
  agg's filter.c has the rules. Of an edge between two processes each has its own row's two. They tell each other, and
  then each has its vertices and their neighbours as one square matrix,

    rows of own vertices     the diagonal block, the off-diagonal one
    rows of others' ones     what they have for own vertices; their diagonal

  which is filtered as that of one process. Both ends compute an edge's number from the same ones, so they agree about
  it. What PETSc leaves is symmetric, which is looked at. A vertex has lost all its entries where its diagonal is 0, or
  not there.

  The weights across came with the rows that graph.c looked at: each process shipped its off-diagonal block, transposed,
  to the owners of its columns.

  Others' vertices keep their places, also those that lost all edges to this process: the prolongator is smoothed by all
  of A.

  Memory: the matrix with its values once more, with two entries for each of the off-diagonal block, for a moment. Time:
  as agg's, and a message to each neighbour.
*/
#include "paraggimpl.h"

/* Collective, and its error is this process's alone: the weights on the diagonals of all vertices */
static PetscErrorCode HybParAggDiagonals(HybParAgg p, HybParAggMaking *m, HybScalar **d)
{
  const HybExec *x    = &p->exec;
  PetscErrorCode ierr = HybArenaAlloc(&m->work, HYB_WORK(x), (PetscCount)m->M.n, sizeof(HybScalar), d);

  PetscFunctionBegin;
  if (!ierr && m->A.D.m) ierr = (*x->backend->csr->getdiagonal)(x, &m->A.D, *d);
  PetscCall(HybParAggGhosts(p, ierr, sizeof(HybScalar), *d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the rows of others' vertices: T with the weights across, and their diagonal d; without values yet */
static PetscErrorCode HybParAggOthers(HybParAgg p, HybParAggMaking *m, const HybScalar *d, HybCSR *ends, HybCSR *R)
{
  const HybExec     *x     = &p->exec;
  const HybCSROps   *ops   = x->backend->csr;
  const HybLocalOps *local = x->backend->local;
  const PetscInt     n     = m->T.m;

  PetscFunctionBegin;
  *ends = (HybCSR){n, n, n, NULL, NULL, (HybScalar *)d};
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), (PetscCount)n + 1, sizeof(PetscInt), &ends->i));
  PetscCall((*local->sequence)(x, (PetscCount)n + 1, 0, ends->i));
  ends->j = ends->i;
  PetscCall((*ops->gather)(x, m->T.nnz, m->perm, PETSC_FALSE, m->across, m->T.a));
  PetscCall((*local->mergeblocks)(x, &m->work, &m->T, ends, 0, R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the square matrix */
static PetscErrorCode HybParAggSquare(HybParAgg p, HybParAggMaking *m, const HybScalar *d, HybCSR *W)
{
  const HybExec     *x        = &p->exec;
  const HybLocalOps *ops      = x->backend->local;
  const HybParCSR   *A        = &m->A;
  const PetscInt     begin[2] = {0, 0}, end[2] = {m->M.m, m->T.m};
  const HybCSR      *piece[2];
  PetscCount         first[2], place[3];
  HybCSR             ends, R;

  PetscFunctionBegin;
  PetscCall(HybParAggOthers(p, m, d + m->M.m, &ends, &R));
  piece[0] = &m->M;
  piece[1] = &R;
  PetscCall((*ops->stackrows)(x, &m->work, 2, piece, begin, end, W, first, place));
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), W->nnz, sizeof(HybScalar), &W->a));
  m->M.a = W->a + place[0];
  R.a    = W->a + place[1];
  PetscCall((*ops->mergevalues)(x, &A->D, &A->O, 0, &m->M));
  PetscCall((*ops->mergevalues)(x, &m->T, &ends, 0, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* G = W without weak edges, and whether the rules hold for it */
static PetscErrorCode HybParAggFilter(HybParAgg p, HybParAggMaking *m, const HybCSR *W, HybParAggFound *found)
{
  const HybExec *x    = &p->exec;
  HybAggLook     look = {0, 0, 0, 0, PETSC_TRUE};
  HybAggFiltered f;
  PetscInt       left;

  PetscFunctionBegin;
  PetscCall((*x->backend->agg->filter)(x, &p->keep, &m->work, W, m->edges, &p->G, &f));
  found->proper = f.paired;
  if (!f.paired) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*x->backend->agg->look)(x, &m->work, &p->G, &look));
  found->proper = look.symmetric;
  p->bare       = (PetscBool)(look.nodiagonal > look.empty);
  p->lacks      = (PetscBool)(p->lacks || f.nodiagonal); /* others' diagonals are all there */
  PetscCall(x->backend->copy(x, &left, p->G.i + m->M.m, sizeof(left), HYB_COPY_DEVICE_TO_HOST));
  found->whole = m->M.nnz;
  found->left  = left;
  found->close = f.close;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggStrong(HybParAgg p, HybParAggMaking *m, HybParAggFound *found)
{
  HybScalar     *d = NULL;
  HybCSR         W;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybParAggDiagonals(p, m, &d);
  if (!ierr) ierr = HybParAggSquare(p, m, d, &W);
  if (!ierr && W.m)
    ierr = HybParAggFilter(p, m, &W, found);
  else if (!ierr)
    p->G = (HybCSR){0, 0, 0, NULL, NULL, NULL};
  PetscCall(HybCommAgree(p->comm, ierr, "The edges of a graph that are not weak"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
