/*
  aggregates.c: the aggregates that PETSc's GAMG finds on several processes.

  PETSc's maximal independent set is not that of one loop over all vertices: in each of a number of sweeps every process
  goes along its undecided vertices in the order of its own shuffle, or of that sorted by degrees. One that has an
  undecided neighbour of a later process, as these were known before the sweep, may not become a root yet; roots delete
  their undecided own neighbours. Then the processes tell each other their states, and an undecided vertex beside
  another process's root is deleted by the first of these. So the processes' vertices depend on each other only by what
  was told between sweeps, and within a sweep the rounds of agg's roots.cu find what the loop finds.

  On the square of the graph "neighbour" means two steps, and PETSc forms the square. Here a vertex w tells what a
  vertex one step further has to know of w's row: far(w) = the last undecided vertex and the root in it, both by what
  was told. There is one root at most, since roots are more than two steps apart.

    all vertices are undecided, but those alone
    repeat:
      far(w) for own w, by the states told; tell far                                            two steps
      v may become a root if it is undecided, and far's undecided vertices over v's row are none of a later process's
      roots of the graph of these vertices, by rounds
      near(w) = the new root beside w; an undecided v belongs to the near(w), w in row v, that is first in the shuffle
      tell states; far again
      an undecided v belongs to the first of far's roots over v's row
    until nothing is undecided on any process

    aggregates are numbered by their roots, ascending, one process after the other; tell numbers
    two steps: a neighbour of a root belongs to that root; tell the number of the root beside each vertex
    a vertex whose root is another process's finds its number at the w whose far has that root
    the first vertex of PETSc's list is the root, or (one step) the aggregate's smallest vertex

  One step needs no far of others: it is their states.

  Memory: about 12 integers a vertex while it runs. Time: as many sweeps as processes stand in a chain of descending
  neighbours, and some more, each of a few passes over the graph, two messages to each neighbour and one sum.

  The rules are those of PETSc's mis.c, misk.c and agg.c (3.21 to 3.26); roots.cu names the papers of its rounds.
*/
#include "paraggimpl.h"
#include "../device/carve.h"

typedef struct {
  HybArena      work;
  HybParAggStep s;
  PetscInt     *number;
  PetscInt64    alone; /* of all processes: vertices that PETSc counts in each sweep */
} HybParAggFinding;

static PetscErrorCode HybParAggTable(HybParAgg p, HybParAggFinding *f)
{
  const HybExec *x = &p->exec;
  HybParAggStep *s = &f->s;
  const PetscInt n = p->halo->n, all = p->G.m;
  PetscInt     **own[]  = {(PetscInt **)&s->place, &s->now, &s->flag, &f->number};
  PetscInt     **each[] = {&s->told, &s->key, &s->near, &s->coarse, &s->beside};
  size_t         bytes;
  char          *table = NULL;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), all, sizeof(PetscInt), &p->parent));
  if (!HybParAggIsScalar(p)) PetscCall(HybArenaCalloc(&p->keep, HYB_WORK(x), n, sizeof(PetscInt), &p->kind));
  *s = HybParAggStepOf(p);
  for (int made = 0; made < 2; made++) {
    bytes = 0;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(own); k++) HybCarve(table, &bytes, sizeof(PetscInt) * (size_t)n, own[k]);
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(each); k++) HybCarve(table, &bytes, sizeof(PetscInt) * (size_t)all, each[k]);
    HybCarve(table, &bytes, 2 * sizeof(PetscInt) * (size_t)all, &s->far);
    if (!made) PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), (PetscCount)bytes, 1, &table));
  }
  s->number = f->number;
  if (n) PetscCall((*x->backend->agg->permutation)(x, &f->work, n, p->order, p->G.i, (PetscInt *)s->place));
  PetscCall(HybParAggEach(p, HYB_STEP_START, all, s));
  /* others' vertices as undecided as the own ones */
  if (n) PetscCall(HybParAggEach(p, HYB_STEP_REACH, all, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new roots, and who belongs to them; told then has the own states */
static PetscErrorCode HybParAggSweep(HybParAgg p, HybParAggFinding *f)
{
  const HybExec *x = &p->exec;
  HybParAggStep *s = &f->s;

  PetscFunctionBegin;
  PetscCall(HybParAggEach(p, HYB_STEP_KEY, s->all, s));
  if (s->n) PetscCall((*x->backend->paragg->roots)(x, &f->work, &p->G, p->longest, p->hops, s->key));
  PetscCall(HybParAggEach(p, HYB_STEP_NEAR, s->all, s));
  PetscCall(HybParAggEach(p, HYB_STEP_TAKE, s->n, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the sweep's last step, by others' roots; *left: own vertices that are undecided after it */
static PetscErrorCode HybParAggLeave(HybParAgg p, HybParAggFinding *f, PetscInt *left)
{
  PetscFunctionBegin;
  *left = 0;
  if (!f->s.n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggEach(p, HYB_STEP_LEAVE, f->s.n, &f->s));
  PetscCall((*p->exec.backend->paragg->number)(&p->exec, &f->work, f->s.n, f->s.flag, f->number, left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: what was told reaches as far as it has to; ierr: of what this process did since the last sum */
static PetscErrorCode HybParAggTell(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, PetscBool states)
{
  HybParAggStep *s = &f->s;

  PetscFunctionBegin;
  if (states) {
    ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), s->told);
    if (!ierr) ierr = HybParAggEach(p, HYB_STEP_REACH, s->all, s);
  }
  if (p->hops == 2) ierr = HybParAggGhosts(p, ierr, 2 * sizeof(PetscInt), s->far);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: see nested.c */
static PetscErrorCode HybParAggAlone(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr)
{
  PetscInt64 sum[2];
  PetscInt   alone = 0;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_ALONE, f->s.n, &f->s);
  if (!ierr && f->s.n) ierr = (*p->exec.backend->paragg->number)(&p->exec, &f->work, f->s.n, f->s.flag, f->number, &alone);
  sum[0] = alone;
  PetscCall(HybParAggSum(p, ierr, "Aggregates that are joined with none", 1, sum));
  f->alone = sum[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggRoots(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, int *sweeps)
{
  PetscInt64 left[2] = {1, 0};

  PetscFunctionBegin;
  ierr     = HybParAggTell(p, f, ierr, PETSC_FALSE);
  f->alone = 0;
  if (p->again) {
    PetscCall(HybParAggAlone(p, f, ierr));
    ierr = PETSC_SUCCESS;
  }
  for (*sweeps = 0; left[0] && left[0] != f->alone * (*sweeps - 1); ++*sweeps) {
    PetscInt mine = 0;

    if (!ierr) ierr = HybParAggSweep(p, f);
    ierr = HybParAggTell(p, f, ierr, PETSC_TRUE);
    if (!ierr) ierr = HybParAggLeave(p, f, &mine);
    left[0] = mine;
    PetscCall(HybParAggSum(p, ierr, "A sweep for roots of aggregates", 1, left));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggCount(HybParAgg p, HybParAggFinding *f)
{
  PetscFunctionBegin;
  p->nc = 0;
  PetscCall(PetscMalloc1(p->comm->size + 1, &p->cranges));
  PetscCall(PetscMalloc1(p->comm->size + 1, &p->ccolumns));
  if (!f->s.n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParAggEach(p, HYB_STEP_ROOT, f->s.n, &f->s));
  PetscCall((*p->exec.backend->paragg->number)(&p->exec, &f->work, f->s.n, f->s.flag, f->number, &p->nc));
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(&p->exec), p->nc, sizeof(PetscInt), &p->lead));
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(&p->exec), p->nc, sizeof(PetscInt), &p->first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the numbers of the aggregates of each process, and of a prolongator's columns for them; counts: room for one more
   than there are processes */
static PetscErrorCode HybParAggRanges(HybParAgg p, PetscErrorCode ierr, PetscInt64 *counts)
{
  PetscInt columns;

  PetscFunctionBegin;
  if (!ierr) counts[p->comm->rank] = p->nc;
  PetscCall(HybParAggSum(p, ierr, "The number of aggregates", p->comm->size, counts));
  p->cranges[0] = 0; /* there are no more than vertices */
  for (PetscMPIInt r = 0; r < p->comm->size; r++) p->cranges[r + 1] = p->cranges[r] + (PetscInt)counts[r];
  /* the same for all */
  PetscCall(HybIntCast((PetscCount)p->cranges[p->comm->size] * p->block.nvec, "columns of a prolongator", &columns));
  for (PetscMPIInt r = 0; r <= p->comm->size; r++) p->ccolumns[r] = p->cranges[r] * p->block.nvec;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from roots to aggregates */
static PetscErrorCode HybParAggParents(HybParAgg p, HybParAggFinding *f)
{
  HybParAggStep *s = &f->s;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  s->cbegin = p->cranges[p->comm->rank];
  s->cend   = p->cranges[p->comm->rank + 1];
  s->lead   = p->lead;
  s->first  = p->first;
  ierr      = HybParAggEach(p, HYB_STEP_COARSE, s->n, s);
  ierr      = HybParAggGhosts(p, ierr, sizeof(PetscInt), s->coarse);
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_BESIDE, s->all, s);
  if (p->hops == 2) ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), s->beside);
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_PARENT, s->n, s);
  ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), s->parent);
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_LEAD, s->n, s);
  PetscCall(HybCommAgree(p->comm, ierr, "The members of aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggFindIn(HybParAgg p, HybParAggFinding *f, int *sweeps)
{
  PetscInt64    *counts = NULL;
  PetscErrorCode ierr   = HybParAggTable(p, f);

  PetscFunctionBegin;
  if (!ierr) ierr = HybArenaCalloc(&f->work, HYB_MEM_HOST, p->comm->size + 1, sizeof(PetscInt64), &counts);
  PetscCall(HybParAggRoots(p, f, ierr, sweeps)); /* there is a sweep at least, and a sum */
  PetscCall(HybParAggRanges(p, HybParAggCount(p, f), counts));
  PetscCall(HybParAggParents(p, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParAggOfOne(HybParAgg p, int hops, HybAggOrder order, int *sweeps)
{
  HybParAggFinding f;
  PetscErrorCode   ierr, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&f, sizeof(f)));
  PetscCall(HybArenaInit(&f.work, &p->exec));
  p->hops  = hops;
  p->order = order;
  ierr     = HybParAggFindIn(p, &f, sweeps);
  later    = HybArenaReset(&f.work);
  PetscCall(ierr);
  PetscCall(HybCommAgree(p->comm, later, "Memory for aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
