/*
  tentative.c: the tentative prolongator of aggregates whose members may be other processes' vertices, of one near-null
  vector. tentativeblocks.c has that of several.

  An aggregate is its root's process's: others send it their members' entries of the near-null vector, as rows of a
  matrix that has a row for each aggregate; it factors the column as agg's tentative.c does, own members first, and
  tells R, by which the others divide. A halo of the aggregates' numbers says who tells whom:

    U: row v has the entry (parent(v), b(v)), v an own vertex; aggregates of others that vertices of others here belong
    to, which the smoothed prolongator names, get empty columns;  its columns of others are the halo's ghosts
    U^T: rows of others' aggregates go to their owners
    own members, and those that came:  Q and R of each own aggregate
    tell R;  q(v) = b(v) / R where the aggregate is another process's

  What is first in PETSc's list decides the sign of R, and which entry is 1 where R is 0: it is told as well.

  Memory: U, its transpose, a few words for each vertex of an aggregate. Time: O(n), a message each way.
*/
#include "paraggimpl.h"

typedef struct {
  HybArena   work;
  HybHalo    halo; /* of aggregates */
  HybCSR     S, R; /* what goes to others, and what comes */
  HybRows    rows;
  HybScalar *ones;
  PetscInt  *member; /* see vertex.h */
  HybScalar *r;      /* Q's entries of the members of own aggregates */
} HybParAggTent;

/* U's rows of others' aggregates, transposed: t->S */
static PetscErrorCode HybParAggEntries(HybParAgg p, HybParAggTent *t, const HybScalar *b)
{
  const HybExec  *x   = &p->exec;
  const HybScalar one = 1;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), p->G.m, sizeof(HybScalar), &p->q));
  if (!b) {
    PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), p->halo->n, sizeof(HybScalar), &t->ones));
    PetscCall((*x->backend->csr->set)(x, p->halo->n, &one, t->ones));
    b = t->ones;
  }
  PetscCall(HybParAggToOthers(p, &t->work, b, &t->S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all members of own aggregates, and what their columns' factorization is */
static PetscErrorCode HybParAggColumns(HybParAgg p, HybParAggTent *t, const HybScalar *b, HybScalar *coarse)
{
  const HybExec   *x = &p->exec;
  const PetscInt   n = p->halo->n;
  HybAggregates    agg;
  const HybScalar *all = NULL;
  HybScalar       *copy;
  PetscInt         members;

  PetscFunctionBegin;
  PetscCall(HybIntCast(n + t->R.nnz, "members of aggregates", &members));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), members, sizeof(PetscInt), &t->member));
  PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), members, sizeof(HybScalar), &t->r));
  PetscCall(HybEachWithin(p, n, (HybStepWithin){.begin = p->cbegin, .end = p->cend, .from = p->parent, .to = t->member}));
  if (t->R.nnz) PetscCall((*x->backend->local->rowsofentries)(x, &t->R, t->halo->there, t->member + n));
  PetscCall(HybEachFirst(p, (PetscInt)t->R.nnz, (HybStepFirst){.n = n, .member = t->member, .others = t->R.j, .first = p->first, .lead = p->lead}));
  if (b) {
    PetscCall(HybArenaAlloc(&t->work, HYB_WORK(x), members, sizeof(HybScalar), &copy));
    if (n) PetscCall(x->backend->copy(x, copy, b, sizeof(HybScalar) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
    if (t->R.nnz) PetscCall(x->backend->copy(x, copy + n, t->R.a, sizeof(HybScalar) * (size_t)t->R.nnz, HYB_COPY_DEVICE_TO_DEVICE));
    all = copy;
  }
  agg = (HybAggregates){members, p->nc, t->member, p->lead, 0};
  if (members) PetscCall((*x->backend->agg->tentative)(x, &t->work, &agg, all, t->r, coarse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: R of others' aggregates, and their first members, which are asked for where R may be 0. before: an error
   of this process's; its error is this process's alone. */
static PetscErrorCode HybParAggTold(HybParAgg p, HybParAggTent *t, PetscErrorCode before, PetscBool some, const HybScalar *b, const HybScalar *coarse)
{
  const HybExec *x    = &p->exec;
  PetscErrorCode ierr = before;
  void          *r = NULL, *first = NULL;
  PetscInt      *kept = NULL;

  PetscFunctionBegin;
  if (some) {
    ierr = HybParAggExchange(p, t->halo, ierr, sizeof(PetscInt), p->first, &first);
    if (!ierr) ierr = HybArenaAlloc(&t->work, HYB_WORK(x), p->nlist, sizeof(PetscInt), &kept);
    if (!ierr && p->nlist) ierr = x->backend->copy(x, kept, first, sizeof(PetscInt) * (size_t)p->nlist, HYB_COPY_DEVICE_TO_DEVICE);
  }
  PetscCall(HybParAggExchange(p, t->halo, ierr, sizeof(HybScalar), coarse, &r));
  PetscCall(HybEachEntry(p, p->halo->n, (HybStepEntry){.nlist = p->nlist, .gid = p->gid, .parent = p->parent, .member = t->member, .list = p->list, .listfirst = kept, .b = b, .r = t->r, .listr = (const HybScalar *)r, .q = p->q}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggTentativeIn(HybParAgg p, HybParAggTent *t, PetscErrorCode before, const HybScalar *b, HybScalar *coarse)
{
  PetscInt64 some[2] = {b != NULL, 0};

  PetscFunctionBegin;
  PetscCall(HybParAggSum(p, before, "Memory for a tentative prolongator", 1, some));
  PetscCall(HybCommAgree(p->comm, HybParAggEntries(p, t, b), "Aggregates of other processes"));
  if (some[0] && !b) b = t->ones; /* not all processes' entries are 1 */
  if (!some[0]) t->S.a = NULL;
  PetscCall(HybHaloCreate(p->comm, &p->exec, p->cranges, p->nlist, p->names, &t->halo));
  PetscCall(HybRowsShip(t->halo, &p->exec, PETSC_SUCCESS, &t->work, &t->S, NULL, p->gid, p->N, PETSC_TRUE, &t->R, &t->rows));
  PetscCall(HybParAggTold(p, t, HybParAggColumns(p, t, b, coarse), (PetscBool) !!some[0], b, coarse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggTentative(HybParAgg p, PetscErrorCode before, const HybScalar *b, HybAggFactor factor, void *ctx, HybScalar *coarse, PetscInt *doubtful)
{
  HybParAggTent  t;
  PetscErrorCode ierr, later[3];

  PetscFunctionBegin;
  *doubtful = 0;
  if (!HybParAggIsScalar(p)) {
    PetscCall(HybParAggTentativeBlocks(p, before, b, factor, ctx, coarse, doubtful));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMemzero(&t, sizeof(t)));
  PetscCall(HybArenaInit(&t.work, &p->exec));
  ierr     = HybParAggTentativeIn(p, &t, before, b, coarse);
  later[0] = HybRowsDestroy(&t.rows);
  later[1] = HybHaloDestroy(&t.halo);
  later[2] = HybArenaReset(&t.work);
  for (int k = 0; k < 3; k++)
    if (!ierr) ierr = later[k];
  PetscCall(HybCommAgree(p->comm, ierr, "The entries of a tentative prolongator"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
