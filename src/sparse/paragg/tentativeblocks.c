/*
  tentativeblocks.c: the tentative prolongator of several unknowns a vertex or several near-null vectors, of aggregates
  whose members may be other processes' vertices.

  An aggregate is its root's process's. Others tell it which of their vertices belong to it, and of which kind they are
  in PETSc's list (vertex.h); it asks for their rows of the vectors, factors the block as agg's tentativeblocks.c does,
  and gives the rows of Q back:

    U: row v has the entry (parent(v), kind(v)), v an own vertex;  its columns of others are a halo's ghosts
    U^T: rows of others' aggregates go to their owners
    others' members, ascending, stand behind the own vertices; their unknowns are the ghosts of a second halo
    B: own rows, and the second halo's, vector by vector
    lists by kinds, each kind ascending, since vertices stand so;  Q and R of each own aggregate
    the second halo's reverse way: rows of Q come to those whose vertices they are

  In PETSc's list of two hops the members of another process follow the own ones of the same sort: first those that the
  sweeps gave the root, then those that were handed over in the end, to which PETSc appends every vertex of others that
  is beside the root, for it takes these out and puts them in again.

  Memory: B, Q, and what is sent, once each. Time: O(n bs nvec^2), two messages to each neighbour for each vector.
*/
#include "paraggimpl.h"

typedef struct {
  HybArena   work;
  HybHalo    owners, members; /* of aggregates; of the unknowns of others' members */
  HybCSR     S, R;            /* what goes to others, and what comes */
  HybRows    rows;
  PetscInt   nother, *unknowns; /* others' members; their unknowns, of the host */
  PetscInt   nmember;           /* own vertices, and these */
  PetscInt  *parent, *kind;     /* of these: own aggregates from 0 on, -1 */
  HybScalar *b, *back;          /* their vectors by columns, or NULL; Q of others' members */
} HybParAggMembers;

/* t->S, with kinds for values */
static PetscErrorCode HybMembersKinds(HybParAgg p, HybParAggMembers *t)
{
  const HybExec *x = &p->exec;
  HybScalar     *kind;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), (PetscCount)p->G.m * p->block.bs, sizeof(HybScalar) * (size_t)p->block.nvec, &p->q));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), p->halo->n, sizeof(HybScalar), &kind));
  PetscCall(HybEachKind(p, p->halo->n, (HybStepKind){.parent = p->parent, .kind = p->kind, .to = kind}));
  PetscCall(HybParAggToOthers(p, &t->work, kind, &t->S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* others' members by the host, which sorts them; their aggregates and kinds go where the others' are */
static PetscErrorCode HybMembersSort(HybParAgg p, HybParAggMembers *t)
{
  const HybExec *x  = &p->exec;
  const PetscInt bs = p->block.bs, n = t->nother;
  const size_t   bytes = sizeof(PetscInt) * (size_t)n;
  PetscInt      *gid, *parent, *kind, *there;
  HybScalar     *value;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(PetscInt), &gid));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(PetscInt), &parent));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(PetscInt), &kind));
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, n, sizeof(HybScalar), &value));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), n, sizeof(PetscInt), &there));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*x->backend->local->rowsofentries)(x, &t->R, t->owners->there, there));
  PetscCall(x->backend->copy(x, gid, t->R.j, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, parent, there, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, value, t->R.a, sizeof(HybScalar) * (size_t)n, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  for (PetscInt k = 0; k < n; k++) kind[k] = (PetscInt)PetscRealPart(value[k]);
  PetscCall(PetscSortIntWithArrayPair(n, gid, parent, kind));
  for (PetscInt k = 0; k < n * bs; k++) t->unknowns[k] = gid[k / bs] * bs + k % bs;
  PetscCall(x->backend->copy(x, t->parent + p->halo->n, parent, bytes, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(x->backend->copy(x, t->kind + p->halo->n, kind, bytes, HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all members of own aggregates */
static PetscErrorCode HybMembersFind(HybParAgg p, HybParAggMembers *t)
{
  const HybExec *x = &p->exec;
  const PetscInt n = p->halo->n;
  PetscInt       rows;

  PetscFunctionBegin;
  PetscCall(HybIntCast((n + t->R.nnz) * p->block.bs, "unknowns of aggregates", &rows));
  t->nother  = (PetscInt)t->R.nnz;
  t->nmember = n + t->nother;
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, (PetscCount)t->nother * p->block.bs, sizeof(PetscInt), &t->unknowns));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), t->nmember, sizeof(PetscInt), &t->parent));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), t->nmember, sizeof(PetscInt), &t->kind));
  PetscCall(HybEachWithin(p, n, (HybStepWithin){.begin = p->cbegin, .end = p->cend, .from = p->parent, .to = t->parent}));
  if (n) PetscCall(x->backend->copy(x, t->kind, p->kind, sizeof(PetscInt) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(HybMembersSort(p, t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b, or the translations; room for those of all members */
static PetscErrorCode HybMembersRoom(HybParAgg p, HybParAggMembers *t, const HybScalar **b)
{
  const HybExec *x    = &p->exec;
  const PetscInt rows = p->halo->n * p->block.bs;
  HybScalar     *own;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), (PetscCount)t->nmember * p->block.bs, sizeof(HybScalar) * (size_t)p->block.nvec, &t->b));
  if (*b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), rows, sizeof(HybScalar) * (size_t)p->block.nvec, &own));
  PetscCall(HybEachTranslations(p, rows, (HybStepTranslations){.rows = rows, .block = p->block, .to = own}));
  *b = own;
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

    ierr = HybHaloExchange(t->members, x, sizeof(HybScalar), b + k * rows, PETSC_FALSE, &ghost);
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
  const HybAggregates agg  = {t->nmember, p->nc, t->parent, NULL, 0};
  const PetscInt      rows = p->halo->n * p->block.bs, others = t->nother * p->block.bs;
  HybAggLists         lists;
  HybScalar          *q;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), (PetscCount)rows + others, sizeof(HybScalar) * (size_t)p->block.nvec, &q));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), others, sizeof(HybScalar) * (size_t)p->block.nvec, &t->back));
  if (!t->nmember) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*x->backend->paragg->lists)(x, &t->work, &t->work, t->nmember, p->nc, t->parent, HYB_VERTEX_KINDS, t->kind, &lists));
  PetscCall((*x->backend->agg->tentativeblocks)(x, &t->work, &agg, &lists, &p->block, t->b, factor, ctx, q, coarse, doubtful));
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
  PetscInt64 some = b != NULL;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(p->comm, before, "Memory for a tentative prolongator"));
  PetscCall(HybCommMax(p->comm, 1, &some));
  PetscCall(HybCommAgree(p->comm, HybMembersKinds(p, t), "Aggregates of other processes"));
  PetscCall(HybHaloCreate(p->comm, &p->exec, p->cranges, p->nlist, p->names, &t->owners));
  PetscCall(HybRowsShip(t->owners, &p->exec, PETSC_SUCCESS, &t->work, &t->S, NULL, p->gid, p->N, PETSC_TRUE, &t->R, &t->rows));
  PetscCall(HybCommAgree(p->comm, HybMembersFind(p, t), "The members of aggregates"));
  PetscCall(HybHaloCreate(p->comm, &p->exec, p->rows, t->nother * p->block.bs, t->unknowns, &t->members));
  if (some) PetscCall(HybMembersVectors(p, t, b));
  PetscCall(HybCommAgree(p->comm, HybMembersFactor(p, t, factor, ctx, coarse, doubtful), "The factorization of aggregates"));
  PetscCall(HybMembersBack(p, t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggTentativeBlocks(HybParAgg p, PetscErrorCode before, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *coarse, PetscInt *doubtful)
{
  HybParAggMembers t;
  PetscErrorCode   ierr, later[4];

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&t, sizeof(t)));
  PetscCall(HybArenaInit(&t.work, &p->exec));
  ierr     = HybMembersDo(p, &t, before, b, factor, ctx, coarse, doubtful);
  later[0] = HybRowsDestroy(&t.rows);
  later[1] = HybHaloDestroy(&t.owners);
  later[2] = HybHaloDestroy(&t.members);
  later[3] = HybArenaReset(&t.work);
  for (int k = 0; k < 4; k++)
    if (!ierr) ierr = later[k];
  PetscCall(HybCommAgree(p->comm, ierr, "Memory for a tentative prolongator"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
