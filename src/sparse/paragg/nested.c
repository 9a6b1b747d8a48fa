/*
  nested.c: aggregates of any distance on several processes, as PETSc's MISK finds them: aggregates of one step, whose
  graph has aggregates of one step again, and so on (agg's nested.c).

  An aggregate is its root's process's, and its members may be anybody's. Each process joins the aggregates that the
  edges it knows join, and sends what it found of others' aggregates home:

    L: row c names the aggregates joined with c, as far as this process sees; c one that its graph's vertices name
    rows of others' aggregates go to their owners, where they and the own ones become the rows of Q
    find the aggregates of Q, of a distance that is less by one, in the natural order
    parent(v) = the aggregate of v's aggregate, which its owner tells
    the first of PETSc's list is the smallest member: rows of members go home as those of L did

  From the second round on PETSc counts a vertex that has no neighbour as decided once more in every sweep; aggregates.c
  says what comes of that.

  Memory: L and what comes, as pairs of numbers, three times; Q and what aggregates.c needs for it. Time: O(nnz),
  sorting, and for each round a dozen exchanges with the neighbours and as many agreements, besides the sweeps.
*/
#include "paraggimpl.h"

/* The aggregates that vertices name, own ones first, and who else has to do with them */
typedef struct {
  HybArena  work;
  PetscInt *local; /* of each vertex, by this process's number; -1: none */
  HybCSR    T;     /* row c: the vertices that name it */
  PetscInt  nlist, *list, *garray;
  HybHalo   halo;
  HybCSR    C; /* rows of own aggregates that came home */
} HybParAggNamed;

/* of the first n vertices */
static PetscErrorCode HybNamedTable(HybParAgg p, HybParAggNamed *t, PetscInt n)
{
  const HybExec *x = &p->exec;
  HybAggregates  agg;
  HybScalar     *nothing;
  HybCSR         U;
  PetscInt      *perm;

  PetscFunctionBegin;
  PetscCall(HybParAggNumber(p, &t->work, &t->work, n, &t->nlist, &t->list, &t->garray, &t->local));
  agg = (HybAggregates){n, p->nc + t->nlist, t->local, NULL, 0};
  PetscCall(HybArenaCalloc(&t->work, HYB_WORK(x), n, sizeof(HybScalar), &nothing));
  PetscCall((*x->backend->agg->unsmoothed)(x, &t->work, &t->work, &agg, &(HybAggBlock){1, 1}, nothing, &U));
  PetscCall(HybArenaFree(&t->work, &nothing));
  PetscCall((*x->backend->csr->transposesymbolic)(x, &t->work, &t->work, &U, &t->T, &perm));
  PetscCall(HybArenaFree(&t->work, &perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
static PetscErrorCode HybNamedBegin(HybParAgg p, HybParAggNamed *t, PetscInt n)
{
  const PetscErrorCode ierr = HybNamedTable(p, t, n);

  PetscFunctionBegin;
  PetscCall(HybHaloCreate(p->comm, &p->exec, ierr, p->cranges, t->nlist, t->garray, PETSC_FALSE, &t->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybNamedEnd(HybParAggNamed *t)
{
  PetscFunctionBegin;
  HybCallBoth(HybHaloDestroy(&t->halo), HybArenaReset(&t->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows begin..end-1 of L */
static PetscErrorCode HybNamedRows(HybParAgg p, HybParAggNamed *t, const HybCSR *L, PetscInt begin, PetscInt end, HybCSR *S)
{
  PetscCount first, place[2];

  PetscFunctionBegin;
  PetscCall((*p->exec.backend->local->stackrows)(&p->exec, &t->work, 1, &L, &begin, &end, S, &first, place));
  S->a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* own rows and those that came, R: t->C, columns by global numbers, of which there are N, ascending */
static PetscErrorCode HybNamedMerge(HybParAgg p, HybParAggNamed *t, const HybCSR *own, const PetscInt *colmap, PetscInt N, const HybCSR *R)
{
  const HybExec     *x     = &p->exec;
  const HybCSROps   *ops   = x->backend->csr;
  const HybLocalOps *local = x->backend->local;
  const PetscCount   ncoo  = own->nnz + R->nnz;
  PetscInt          *ci, *cj;
  PetscCount        *mapptr, *map;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), ncoo, sizeof(PetscInt), &ci));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), ncoo, sizeof(PetscInt), &cj));
  if (own->nnz) {
    PetscCall((*local->rowsofentries)(x, own, NULL, ci));
    PetscCall(x->backend->copy(x, cj, own->j, sizeof(PetscInt) * (size_t)own->nnz, HYB_COPY_DEVICE_TO_DEVICE));
    PetscCall((*local->mapcolumns)(x, own->nnz, colmap, cj));
  }
  if (R->nnz) {
    PetscCall((*local->rowsofentries)(x, R, t->halo->there, ci + own->nnz));
    PetscCall(x->backend->copy(x, cj + own->nnz, R->j, sizeof(PetscInt) * (size_t)R->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  }
  t->C.m = own->m;
  t->C.n = N;
  PetscCall((*ops->coosymbolic)(x, &t->work, &t->work, ncoo, ci, cj, &t->C, &mapptr, &map));
  PetscCall(HybArenaFree(&t->work, &map, &mapptr, &cj, &ci));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the rows of L go home, column c being colmap[c] of N; before: an error of this process's */
static PetscErrorCode HybNamedHome(HybParAgg p, HybParAggNamed *t, PetscErrorCode before, const HybCSR *L, const PetscInt *colmap, PetscInt N)
{
  HybCSR         own, S, R;
  HybRows        rows = NULL;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = HybNamedRows(p, t, L, 0, p->nc, &own);
  if (!ierr) ierr = HybNamedRows(p, t, L, p->nc, p->nc + t->nlist, &S);
  ierr = HybRowsMove(p->comm, &p->exec, ierr, 1, &(HybRowsWish){t->halo, PETSC_TRUE, &t->work, &S, NULL, colmap, N, PETSC_FALSE, &R, &rows});
  if (!ierr) ierr = HybNamedMerge(p, t, &own, colmap, N, &R);
  PetscCall(HybCommAgree(p->comm, HybErrorFirst(ierr, HybRowsDestroy(&rows)), "What aggregates are joined with"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* L, and the global number of each aggregate in it */
static PetscErrorCode HybNestedSeen(HybParAgg p, HybParAggNamed *t, HybCSR *L, PetscInt **number)
{
  const HybExec      *x     = &p->exec;
  const PetscInt      n     = p->nc + t->nlist;
  const HybAggregates agg   = {p->G.m, n, t->local, NULL, 0};
  const HybAggLists   lists = {t->T.i, t->T.j};

  PetscFunctionBegin;
  PetscCall((*x->backend->agg->quotient)(x, &t->work, &t->work, &p->G, &agg, &lists, L));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), n, sizeof(PetscInt), number));
  PetscCall((*x->backend->local->sequence)(x, p->nc, p->cbegin, *number));
  if (t->nlist) PetscCall(x->backend->copy(x, *number + p->nc, t->list, sizeof(PetscInt) * (size_t)t->nlist, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t->C, in blocks */
static PetscErrorCode HybNestedBlocks(HybParAgg p, HybParAggNamed *t, HybParCSR *Q)
{
  const HybExec     *x   = &p->exec;
  const HybLocalOps *ops = x->backend->local;
  HybCSR             part[2];
  PetscInt          *perm[2], n, *list, *garray;

  PetscFunctionBegin;
  PetscCall((*ops->splitcolumns)(x, &t->work, &t->work, &t->C, p->cbegin, p->cend, part, perm));
  PetscCall(HybParAggOutside(p, &t->work, &t->work, part[1].nnz, part[1].j, 0, 0, &n, &list, &garray));
  PetscCall((*ops->numbercolumns)(x, part[1].nnz, part[1].j, 0, 0, n, 0, list));
  part[0].n = p->nc;
  part[1].n = n;
  for (int k = 0; k < 2; k++) part[k].a = NULL;
  *Q = (HybParCSR){p->cranges, p->cranges, part[0], part[1], garray};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the graph of the aggregates */
static PetscErrorCode HybNestedNext(HybParAgg p, HybParAggNamed *t, HybParAgg *next)
{
  const HybAggBlock one = {1, 1};
  HybParAggFound    found;
  HybParCSR         Q;
  HybCSR            L;
  PetscInt         *number = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&L, sizeof(L)));
  PetscCall(PetscMemzero(&Q, sizeof(Q)));
  PetscCall(HybNamedBegin(p, t, p->G.m));
  ierr = HybNestedSeen(p, t, &L, &number);
  PetscCall(HybNamedHome(p, t, ierr, &L, number, p->cranges[p->comm->size]));
  ierr = HybNestedBlocks(p, t, &Q);
  PetscCall(HybParAggCreate(p->mpi, &p->exec, ierr, &Q, NULL, &one, PETSC_FALSE, NULL, &found, next));
  PetscCheck(found.proper, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The graph of aggregates is not symmetric");
  (*next)->again = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the aggregates of all vertices by those of their aggregates, told: what others own of these */
static PetscErrorCode HybNestedCompose(HybParAgg p, HybParAggNamed *t, HybParAgg next, const void *told)
{
  const HybExec *x = &p->exec;
  PetscInt      *table;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), (PetscCount)p->nc + t->nlist, sizeof(PetscInt), &table));
  if (p->nc) PetscCall(x->backend->copy(x, table, next->parent, sizeof(PetscInt) * (size_t)p->nc, HYB_COPY_DEVICE_TO_DEVICE));
  if (t->nlist) PetscCall(x->backend->copy(x, table + p->nc, told, sizeof(PetscInt) * (size_t)t->nlist, HYB_COPY_DEVICE_TO_DEVICE));
  p->nc = next->nc;
  PetscCall(PetscArraycpy(p->cranges, next->cranges, p->comm->size + 1));
  HybParAggOwnColumns(p);
  PetscCall(HybEachCompose(p, p->G.m, (HybStepCompose){.n = p->halo->n, .cbegin = p->cbegin, .cend = p->cend, .local = t->local, .table = table, .parent = p->parent, .kind = p->kind}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
static PetscErrorCode HybNestedParents(HybParAgg p, HybParAggNamed *t, HybParAgg *next, const HybAggRules *rules)
{
  const HybAggRules then = {1, rules->distance - 1, HYB_AGG_NATURAL, 0};
  PetscInt          n, N;
  int               sweeps;
  void             *told = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(HybNestedNext(p, t, next));
  PetscCall(HybParAggFind(*next, &then, &n, &N, &sweeps));
  ierr = HybHaloExchange(t->halo, &p->exec, sizeof(PetscInt), (*next)->parent, &told);
  if (!ierr) ierr = HybNestedCompose(p, t, *next, told);
  PetscCall(HybCommAgree(p->comm, ierr, "Aggregates of aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the smallest members */
static PetscErrorCode HybNestedFirst(HybParAgg p, HybParAggNamed *t)
{
  HybStepSmallest s;

  PetscFunctionBegin;
  PetscCall(HybNamedBegin(p, t, p->halo->n));
  PetscCall(HybNamedHome(p, t, PETSC_SUCCESS, &t->T, p->gid, p->N));
  s = (HybStepSmallest){.begin = p->begin, .end = p->end, .pi = t->C.i, .pj = t->C.j, .lead = p->lead, .first = p->first};
  PetscCall(HybCommAgree(p->comm, HybEachSmallest(p, p->nc, s), "The members of aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: from aggregates of distance 1 to those of rules->distance */
static PetscErrorCode HybParAggNest(HybParAgg p, const HybAggRules *rules)
{
  HybParAgg      next = NULL;
  HybParAggNamed t;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  /* of a graph of aggregates nobody asks for the smallest members */
  for (int k = 0; k < (p->again ? 1 : 2); k++) {
    PetscCall(PetscMemzero(&t, sizeof(t)));
    t.work = HybArenaOn(&p->exec);
    ierr   = k ? HybNestedFirst(p, &t) : HybNestedParents(p, &t, &next, rules);
    later  = HybNamedEnd(&t);
    later  = HybErrorFirst(later, HybParAggDestroy(&next));
    PetscCall(ierr);
    PetscCall(HybCommAgree(p->comm, later, "Memory for aggregates of aggregates"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggFind(HybParAgg p, const HybAggRules *rules, PetscInt *n, PetscInt *N, int *sweeps)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(rules->distance == 1 ? rules->hops == 1 || rules->hops == 2 : rules->hops == 1 && rules->distance > 1 && rules->distance <= HYB_AGG_DISTANCES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Aggregates of several processes by %d steps, of distance %d", rules->hops, rules->distance);
  ierr = HybParAggOfOne(p, rules->hops, rules->order, sweeps);
  if (!ierr && rules->distance > 1) ierr = HybParAggNest(p, rules);
  if (ierr) HybParAggForget(p);
  PetscCall(ierr);
  *n = p->nc;
  *N = p->cranges[p->comm->size];
  PetscFunctionReturn(PETSC_SUCCESS);
}
