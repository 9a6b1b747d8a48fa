/*
  union.c: the graph of a distributed matrix some of whose edges have one direction, with those of its transpose, as
  PETSc's GAMG adds them.

  Of an edge (v,u) that leads to another process's vertex u that process may know nothing. So each sends its
  off-diagonal block, transposed, to the owners of its columns:

    diagonal block       its union with its transpose
    off-diagonal block   its union with the rows that came:  edges to own vertices, turned round

  Of these rows several may be one own vertex's, from different processes. Those that name the same vertex are its
  owner's, who sent them in ascending order; so two transposes sort all of them:

    R: row k, part of own row there[k], names others' vertices;  number these among all that are ghosts then
    R^T with there[k] for k is the matrix of all of them, transposed

  Ghosts that came by the transpose alone have a place in the graph, but A has no column of them: HybParAggWide() knows
  where its columns went, and prolongators leave out what these name (p->beyond).

  Memory: the graph, the off-diagonal block's part three times for a moment. Time: O(nnz), a message to each neighbour
  each way.
*/
#include "paraggimpl.h"

typedef struct {
  HybHalo   halo; /* of the ghosts before */
  HybRows   rows;
  HybCSR    R; /* what came */
  PetscInt *own;
  /* the ghosts, of the host and where the backend executes; so many are of earlier processes */
  PetscInt  n, nleft, *garray, *list;
  PetscInt *map; /* of those before, among them; where the backend executes */
} HybParAggUniting;

/* the ghosts before and those that came, which are ascending too */
static PetscErrorCode HybParAggGhostsOfBoth(HybParAgg p, HybParAggMaking *m, const HybParCSR *A, PetscInt ncame, const PetscInt *came, HybParAggUniting *u)
{
  const HybExec *x = &p->exec;
  const PetscInt n = m->A.O.n, bs = p->block.bs, *old = m->A.garray;
  PetscInt      *map, *wide, *beyond, k = 0, l = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, (PetscCount)n + ncame, sizeof(PetscInt), &u->garray));
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, n, sizeof(PetscInt), &map));
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, A->O.n, sizeof(PetscInt), &wide));
  PetscCall(HybArenaAlloc(&m->work, HYB_MEM_HOST, ncame, sizeof(PetscInt), &beyond));
  p->nbeyond = 0;
  for (u->n = 0; k < n || l < ncame; u->n++) {
    if (l == ncame || (k < n && old[k] <= came[l])) {
      l += l < ncame && old[k] == came[l];
      u->garray[u->n] = old[k];
      map[k++]        = u->n;
    } else {
      beyond[p->nbeyond++] = m->A.D.m + u->n;
      u->garray[u->n]      = came[l++];
    }
    u->nleft += u->garray[u->n] < p->begin;
  }
  for (PetscInt c = 0, v = -1; c < A->O.n; c++) {
    v += !c || A->garray[c] / bs != A->garray[c - 1] / bs;
    wide[c] = map[v] * bs + A->garray[c] % bs; /* less than the whole matrix has */
  }
  p->nwide = u->n * bs;
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), n, sizeof(PetscInt), &u->map));
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), u->n, sizeof(PetscInt), &u->list));
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), A->O.n, sizeof(PetscInt), &p->wide));
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), p->nbeyond, sizeof(PetscInt), &p->beyond));
  if (n) PetscCall(x->backend->copy(x, u->map, map, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  if (u->n) PetscCall(x->backend->copy(x, u->list, u->garray, sizeof(PetscInt) * (size_t)u->n, HYB_COPY_HOST_TO_DEVICE));
  if (A->O.n) PetscCall(x->backend->copy(x, p->wide, wide, sizeof(PetscInt) * (size_t)A->O.n, HYB_COPY_HOST_TO_DEVICE));
  if (p->nbeyond) PetscCall(x->backend->copy(x, p->beyond, beyond, sizeof(PetscInt) * (size_t)p->nbeyond, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* S: the rows that came, one for each own vertex */
static PetscErrorCode HybParAggSortRows(HybParAgg p, HybParAggMaking *m, HybParAggUniting *u, HybCSR *S)
{
  const HybExec     *x     = &p->exec;
  const HybCSROps   *ops   = x->backend->csr;
  const HybLocalOps *local = x->backend->local;
  HybCSR             R     = u->R, C;
  PetscInt          *perm;

  PetscFunctionBegin;
  PetscCall((*local->numbercolumns)(x, R.nnz, R.j, p->begin, p->begin, u->n, u->nleft, u->list));
  R.n = u->n;
  PetscCall((*ops->transposesymbolic)(x, &m->work, &m->work, &R, &C, &perm));
  PetscCall(HybArenaFree(&m->work, &perm));
  PetscCall((*local->mapcolumns)(x, C.nnz, u->halo->there, C.j));
  C.n = m->A.D.m;
  PetscCall((*ops->transposesymbolic)(x, &m->work, &m->work, &C, S, &perm));
  PetscCall(HybArenaFree(&m->work, &perm, &C.j, &C.i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* both blocks */
static PetscErrorCode HybParAggUniteBlocks(HybParAgg p, HybParAggMaking *m, const HybParCSR *A, HybParAggUniting *u)
{
  const HybExec     *x   = &p->exec;
  const HybLocalOps *ops = x->backend->local;
  HybCSR             D = m->A.D, O = m->A.O, S;
  PetscInt           ncame, *list, *came;

  PetscFunctionBegin;
  PetscCall(HybParAggOutside(p, &m->work, &m->work, u->R.nnz, u->R.j, 0, 0, &ncame, &list, &came));
  PetscCall(HybParAggGhostsOfBoth(p, m, A, ncame, came, u));
  PetscCall(HybParAggSortRows(p, m, u, &S));
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), O.nnz, sizeof(PetscInt), &O.j)); /* they may be the matrix's */
  if (O.nnz) PetscCall(x->backend->copy(x, O.j, m->A.O.j, sizeof(PetscInt) * (size_t)O.nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall((*ops->mapcolumns)(x, O.nnz, u->map, O.j));
  O.n = u->n;
  if (!m->edges)
    D.a = O.a = NULL;
  else if (!O.a) /* the transpose alone has entries, which need weights */
    PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), 1, sizeof(HybScalar), &O.a));
  PetscCall(HybAggUnion(x, &m->work, &m->work, &O, &S, &m->A.O));
  PetscCall(HybAggUnionTransposed(x, &m->work, &m->work, &D, &m->A.D));
  PetscCall(HybArenaFree(&m->work, &O.j));
  m->A.garray = u->garray;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the off-diagonal block, transposed, and the own vertices' numbers */
static PetscErrorCode HybParAggTurn(HybParAgg p, HybParAggMaking *m, HybParAggUniting *u, HybCSR *T)
{
  const HybExec     *x     = &p->exec;
  const HybCSROps   *ops   = x->backend->csr;
  const HybLocalOps *local = x->backend->local;
  PetscInt          *perm;

  PetscFunctionBegin;
  PetscCall((*ops->transposesymbolic)(x, &m->work, &m->work, &m->A.O, T, &perm));
  PetscCall(HybArenaFree(&m->work, &perm));
  T->a = NULL;
  PetscCall(HybArenaAlloc(&m->work, HYB_WORK(x), m->A.D.m, sizeof(PetscInt), &u->own));
  PetscCall((*local->sequence)(x, m->A.D.m, p->begin, u->own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggUniteIn(HybParAgg p, HybParAggMaking *m, const HybParCSR *A, HybParAggUniting *u)
{
  HybCSR         T;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybHaloCreate(p->comm, &p->exec, PETSC_SUCCESS, p->ranges, m->A.O.n, m->A.garray, PETSC_FALSE, &u->halo));
  ierr = HybParAggTurn(p, m, u, &T);
  ierr = HybRowsMove(p->comm, &p->exec, ierr, 1, &(HybRowsWish){u->halo, PETSC_TRUE, &m->work, &T, NULL, u->own, p->N, PETSC_TRUE, &u->R, &u->rows});
  if (!ierr) ierr = HybParAggUniteBlocks(p, m, A, u);
  PetscCall(HybCommAgree(p->comm, ierr, "A graph and its transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggUnite(HybParAgg p, HybParAggMaking *m, const HybParCSR *A)
{
  HybParAggUniting u;
  PetscErrorCode   ierr, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&u, sizeof(u)));
  ierr  = HybParAggUniteIn(p, m, A, &u);
  later = HybRowsDestroy(&u.rows);
  later = HybErrorFirst(later, HybHaloDestroy(&u.halo));
  PetscCall(ierr);
  PetscCall(HybCommAgree(p->comm, later, "Memory for a graph and its transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
