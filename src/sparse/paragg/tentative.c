/*
  tentative.c: the tentative prolongator of aggregates whose members may be other processes' vertices.

  An aggregate is its root's process's. Others tell it which of their vertices belong to it, as rows of a matrix that
  has a row for each aggregate; a halo of the aggregates' numbers says who tells whom:

    U: row v has the entry (parent(v), value(v)), v an own vertex; aggregates of others that vertices of others here
    belong to, which the smoothed prolongator names, get empty columns;  its columns of others are the halo's ghosts
    U^T: rows of others' aggregates go to their owners

  One unknown and one near-null vector. value is b(v). The owner factors the column as agg's tentative.c does, own
  members first, and tells R, by which the others divide:

    own members, and those that came:  Q and R of each own aggregate
    tell R;  q(v) = b(v) / R where the aggregate is another process's

  What is first in PETSc's list decides the sign of R, and which entry is 1 where R is 0: it is told as well.

  Several. value is kind(v), of which kind v is in PETSc's list (vertex.h). The owner asks for the rows of the vectors,
  factors the block as agg's tentativeblocks.c does, and gives the rows of Q back:

    others' members, ascending, stand behind the own vertices; their unknowns are the ghosts of a second halo
    B: own rows, and the second halo's, vector by vector
    lists by kinds, each kind ascending, since vertices stand so;  Q and R of each own aggregate
    the second halo's reverse way: rows of Q come to those whose vertices they are

  In PETSc's list of two hops the members of another process follow the own ones of the same sort: first those that the
  sweeps gave the root, then those that were handed over in the end, to which PETSc appends every vertex of others that
  is beside the root, for it takes these out and puts them in again.

  Memory: U, its transpose, B, Q, and what is sent, once each. Time: O(n bs nvec^2), a message each way for one vector,
  two to each neighbour for each of several.
*/
#include "paraggimpl.h"

typedef struct {
  HybArena   work;
  HybHalo    owners, members; /* of aggregates; of the unknowns of others' members */
  HybCSR     S, R;            /* what goes to others, and what comes */
  HybRows    rows;
  PetscInt   nother, nmember; /* others' members; own vertices, and these */
  PetscInt  *member, *kind;   /* see vertex.h */
  HybScalar *r;               /* of one vector: Q's entries of the members of own aggregates */
  PetscInt  *unknowns;        /* of others' members, of the host */
  HybScalar *b, *back;        /* the members' vectors by columns, or NULL; Q of others' members */
} HybParAggMembers;

/* b, or the translations */
static PetscErrorCode HybMembersOwn(HybParAgg p, HybParAggMembers *t, const HybScalar **b)
{
  const PetscInt rows = p->halo->n * p->block.bs;
  HybScalar     *own;

  PetscFunctionBegin;
  if (*b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(&p->exec), rows, sizeof(HybScalar) * (size_t)p->block.nvec, &own));
  PetscCall(HybEachTranslations(p, rows, (HybStepTranslations){.rows = rows, .block = p->block, .to = own}));
  *b = own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* U's rows of others' aggregates, transposed: t->S. some: a process has vectors; b: NULL, if none has */
static PetscErrorCode HybMembersSend(HybParAgg p, HybParAggMembers *t, PetscBool some, const HybScalar **b)
{
  const HybExec   *x     = &p->exec;
  const HybScalar *value = *b;
  HybScalar       *kind;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), (PetscCount)p->G.m * p->block.bs, sizeof(HybScalar) * (size_t)p->block.nvec, &p->q));
  if (HybAggIsScalar(&p->block)) {
    PetscCall(HybMembersOwn(p, t, &value));
    if (some) *b = value; /* not all processes' entries are 1 */
  } else {
    PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), p->halo->n, sizeof(HybScalar), &kind));
    PetscCall(HybEachKind(p, p->halo->n, (HybStepKind){.parent = p->parent, .kind = p->kind, .to = kind}));
    value = kind;
  }
  PetscCall(HybParAggToOthers(p, &t->work, value, &t->S));
  if (HybAggIsScalar(&p->block) && !some) t->S.a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all members of own aggregates, as they came */
static PetscErrorCode HybMembersFind(HybParAgg p, HybParAggMembers *t)
{
  const PetscInt n = p->halo->n;
  PetscInt       rows;

  PetscFunctionBegin;
  PetscCall(HybIntCast((n + t->R.nnz) * p->block.bs, "unknowns of aggregates", &rows));
  t->nother  = (PetscInt)t->R.nnz;
  t->nmember = n + t->nother;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(&p->exec), t->nmember, sizeof(PetscInt), &t->member));
  PetscCall(HybEachWithin(p, n, (HybStepWithin){.begin = p->cbegin, .end = p->cend, .from = p->parent, .to = t->member}));
  if (t->nother) PetscCall((*p->exec.backend->local->rowsofentries)(&p->exec, &t->R, t->owners->there, t->member + n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of one vector: what the own aggregates' columns' factorization is */
static PetscErrorCode HybMembersColumns(HybParAgg p, HybParAggMembers *t, const HybScalar *b, HybScalar *coarse)
{
  const HybExec   *x = &p->exec;
  const PetscInt   n = p->halo->n;
  HybAggregates    agg;
  const HybScalar *all = NULL;
  HybScalar       *copy;

  PetscFunctionBegin;
  PetscCall(HybMembersFind(p, t));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), t->nmember, sizeof(HybScalar), &t->r));
  PetscCall(HybEachFirst(p, t->nother, (HybStepFirst){.n = n, .member = t->member, .others = t->R.j, .first = p->first, .lead = p->lead}));
  if (b) {
    PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), t->nmember, sizeof(HybScalar), &copy));
    if (n) PetscCall(x->backend->copy(x, copy, b, sizeof(HybScalar) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
    if (t->nother) PetscCall(x->backend->copy(x, copy + n, t->R.a, sizeof(HybScalar) * (size_t)t->nother, HYB_COPY_DEVICE_TO_DEVICE));
    all = copy;
  }
  agg = (HybAggregates){t->nmember, p->nc, t->member, p->lead, 0};
  if (t->nmember) PetscCall((*x->backend->agg->tentative)(x, &t->work, &agg, NULL, &p->block, all, NULL, NULL, t->r, coarse, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: q, by R of others' aggregates, and their first members, which are asked for where R may be 0. before: an
   error of this process's; its error is this process's alone. */
static PetscErrorCode HybMembersTold(HybParAgg p, HybParAggMembers *t, PetscErrorCode before, PetscBool some, const HybScalar *b, const HybScalar *coarse)
{
  const HybExec *x    = &p->exec;
  PetscErrorCode ierr = before;
  void          *r = NULL, *first = NULL;
  PetscInt      *kept = NULL;

  PetscFunctionBegin;
  if (some) {
    ierr = HybParAggExchange(p, t->owners, ierr, sizeof(PetscInt), p->first, &first);
    if (!ierr) ierr = HybArenaAlloc(&t->work, HYB_WORK(x), p->nlist, sizeof(PetscInt), &kept);
    if (!ierr && p->nlist) ierr = x->backend->copy(x, kept, first, sizeof(PetscInt) * (size_t)p->nlist, HYB_COPY_DEVICE_TO_DEVICE);
  }
  PetscCall(HybParAggExchange(p, t->owners, ierr, sizeof(HybScalar), coarse, &r));
  PetscCall(HybEachEntry(p, p->halo->n, (HybStepEntry){.nlist = p->nlist, .gid = p->gid, .parent = p->parent, .member = t->member, .list = p->list, .listfirst = kept, .b = b, .r = t->r, .listr = (const HybScalar *)r, .q = p->q}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of several vectors: others' members by the host, which sorts them; their aggregates and kinds go where the others'
   are */
static PetscErrorCode HybMembersSort(HybParAgg p, HybParAggMembers *t)
{
  const HybExec *x  = &p->exec;
  const PetscInt bs = p->block.bs, n = (PetscInt)t->R.nnz;
  const size_t   bytes = sizeof(PetscInt) * (size_t)n;
  PetscInt      *gid, *parent, *kind;
  HybScalar     *value;

  PetscFunctionBegin;
  PetscCall(HybMembersFind(p, t));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), t->nmember, sizeof(PetscInt), &t->kind));
  if (p->halo->n) PetscCall(x->backend->copy(x, t->kind, p->kind, sizeof(PetscInt) * (size_t)p->halo->n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, (PetscCount)n * bs, sizeof(PetscInt), &t->unknowns));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(PetscInt), &gid));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(PetscInt), &parent));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(PetscInt), &kind));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(HybScalar), &value));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->copy(x, gid, t->R.j, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, parent, t->member + p->halo->n, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, value, t->R.a, sizeof(HybScalar) * (size_t)n, HYB_COPY_DEVICE_TO_HOST));
  for (PetscInt k = 0; k < n; k++) {
    const PetscReal v = PetscRealPart(value[k]);

    /* what another process did not send is NaN, of which all hear later */
    PetscCheck(v >= 0 && v < HYB_VERTEX_KINDS, PETSC_COMM_SELF, PETSC_ERR_LIB, "Another process has not sent what its vertices are");
    kind[k] = (PetscInt)v;
  }
  PetscCall(PetscSortIntWithArrayPair(n, gid, parent, kind));
  for (PetscInt k = 0; k < n * bs; k++) t->unknowns[k] = gid[k / bs] * bs + k % bs;
  PetscCall(x->backend->copy(x, t->member + p->halo->n, parent, bytes, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(x->backend->copy(x, t->kind + p->halo->n, kind, bytes, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* room for the vectors of all members, and the own ones */
static PetscErrorCode HybMembersRoom(HybParAgg p, HybParAggMembers *t, const HybScalar **b)
{
  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(&p->exec), (PetscCount)t->nmember * p->block.bs, sizeof(HybScalar) * (size_t)p->block.nvec, &t->b));
  PetscCall(HybMembersOwn(p, t, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: t->b */
static PetscErrorCode HybMembersVectors(HybParAgg p, HybParAggMembers *t, const HybScalar *b)
{
  const HybExec *x    = &p->exec;
  const size_t   rows = (size_t)p->halo->n * p->block.bs, others = (size_t)t->nother * p->block.bs;
  void          *ghost = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(p->comm, HybMembersRoom(p, t, &b), "The near-null vectors of aggregates"));
  for (PetscInt k = 0; k < p->block.nvec; k++) {
    HybScalar *to = t->b + k * (rows + others);

    ierr = HybHaloExchange(t->members, x, sizeof(HybScalar), b + k * rows, &ghost);
    if (!ierr && others) ierr = x->backend->copy(x, to + rows, ghost, sizeof(HybScalar) * others, HYB_COPY_DEVICE_TO_DEVICE);
    if (!ierr && rows) ierr = x->backend->copy(x, to, b + k * rows, sizeof(HybScalar) * rows, HYB_COPY_DEVICE_TO_DEVICE);
    PetscCall(HybCommAgree(p->comm, ierr, "The near-null vectors of aggregates"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Q and R of own aggregates: p->q of own vertices, 0 where others have the aggregate, and t->back */
static PetscErrorCode HybMembersFactor(HybParAgg p, HybParAggMembers *t, HybAggFactor factor, void *ctx, HybScalar *coarse, PetscInt *doubtful)
{
  const HybExec      *x    = &p->exec;
  const HybAggregates agg  = {t->nmember, p->nc, t->member, NULL, 0};
  const PetscInt      rows = p->halo->n * p->block.bs, others = t->nother * p->block.bs;
  HybAggLists         lists;
  HybScalar          *q;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), (PetscCount)rows + others, sizeof(HybScalar) * (size_t)p->block.nvec, &q));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), others, sizeof(HybScalar) * (size_t)p->block.nvec, &t->back));
  if (!t->nmember) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*x->backend->paragg->lists)(x, &t->work, &t->work, t->nmember, p->nc, t->member, HYB_VERTEX_KINDS, t->kind, &lists));
  PetscCall((*x->backend->agg->tentative)(x, &t->work, &agg, &lists, &p->block, t->b, factor, ctx, q, coarse, doubtful));
  PetscCall(HybEachToColumns(p, rows, (HybStepToColumns){.rows = p->G.m * p->block.bs, .nvec = p->block.nvec, .from = q, .to = p->q}));
  PetscCall(HybEachToColumns(p, others, (HybStepToColumns){.rows = others, .nvec = p->block.nvec, .from = q + (size_t)rows * p->block.nvec, .to = t->back}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: Q's rows to their owners */
static PetscErrorCode HybMembersBack(HybParAgg p, HybParAggMembers *t)
{
  const HybExec *x      = &p->exec;
  const size_t   others = (size_t)t->nother * p->block.bs, all = (size_t)p->G.m * p->block.bs;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < p->block.nvec; k++) {
    ierr = HybHaloReverseBegin(t->members, x, PETSC_TRUE, t->back + k * others);
    if (!ierr) ierr = HybHaloReverseEnd(t->members, x, PETSC_SUCCESS, p->q + k * all);
    PetscCall(HybCommAgree(p->comm, ierr, "The rows of a tentative prolongator"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMembersDo(HybParAgg p, HybParAggMembers *t, PetscErrorCode before, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *coarse, PetscInt *doubtful)
{
  const HybExec *x       = &p->exec;
  PetscInt64     some[2] = {b != NULL, 0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybAgreeSum(p->comm->mpi, before, "Memory for a tentative prolongator", 1, some));
  ierr = HybMembersSend(p, t, (PetscBool) !!some[0], &b);
  PetscCall(HybHaloCreate(p->comm, x, ierr, p->cranges, p->nlist, p->names, PETSC_FALSE, &t->owners));
  ierr = HybRowsMove(p->comm, x, PETSC_SUCCESS, 1, &(HybRowsWish){t->owners, PETSC_TRUE, &t->work, &t->S, NULL, p->gid, p->N, PETSC_TRUE, &t->R, &t->rows});
  if (HybAggIsScalar(&p->block)) {
    if (!ierr) ierr = HybMembersColumns(p, t, b, coarse);
    PetscCall(HybMembersTold(p, t, ierr, (PetscBool) !!some[0], b, coarse));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ierr) ierr = HybMembersSort(p, t);
  PetscCall(HybHaloCreate(p->comm, x, ierr, p->rows, t->nother * p->block.bs, t->unknowns, PETSC_FALSE, &t->members));
  if (some[0]) PetscCall(HybMembersVectors(p, t, b));
  PetscCall(HybCommAgree(p->comm, HybMembersFactor(p, t, factor, ctx, coarse, doubtful), "The factorization of aggregates"));
  PetscCall(HybMembersBack(p, t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggTentative(HybParAgg p, PetscErrorCode before, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *coarse, PetscInt *doubtful)
{
  HybParAggMembers t;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  *doubtful = 0;
  PetscCall(PetscMemzero(&t, sizeof(t)));
  t.work = HybArenaOn(&p->exec);
  ierr   = HybMembersDo(p, &t, before, b, factor, ctx, coarse, doubtful);
  ierr   = HybErrorFirst(ierr, HybRowsDestroy(&t.rows));
  ierr   = HybErrorFirst(ierr, HybHaloDestroy(&t.owners));
  ierr   = HybErrorFirst(ierr, HybHaloDestroy(&t.members));
  ierr   = HybErrorFirst(ierr, HybArenaReset(&t.work));
  PetscCall(HybCommAgree(p->comm, ierr, "The entries of a tentative prolongator"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
