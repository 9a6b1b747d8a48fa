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
  neighbours, and some more, each of a few passes over the graph, two messages to each neighbour and three sums.

  The rules are those of PETSc's mis.c, misk.c and agg.c (3.21 to 3.26); roots.cu names the papers of its rounds.
*/
#include "paraggimpl.h"

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

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), all, sizeof(PetscInt), &p->parent));
  if (!HybParAggIsScalar(p)) PetscCall(HybArenaCalloc(&p->keep, HYB_WORK(x), n, sizeof(PetscInt), &p->kind));
  *s = HybParAggStepOf(p);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(own); k++) PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), n, sizeof(PetscInt), own[k]));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(each); k++) PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), all, sizeof(PetscInt), each[k]));
  PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), 2 * (PetscCount)all, sizeof(PetscInt), &s->far));
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
  if (s->n) PetscCall((*x->backend->paragg->roots)(x, &f->work, &p->G, p->hops, s->key));
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

/* Collective: what was told reaches as far as it has to; ierr: of what this process did before */
static PetscErrorCode HybParAggTell(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, PetscBool states)
{
  HybParAggStep *s = &f->s;

  PetscFunctionBegin;
  PetscCall(HybCommAgree(p->comm, ierr, "A sweep for roots of aggregates"));
  if (states) {
    ierr = HybParAggGhosts(p, sizeof(PetscInt), s->told);
    if (!ierr) ierr = HybParAggEach(p, HYB_STEP_REACH, s->all, s);
    PetscCall(HybCommAgree(p->comm, ierr, "A sweep for roots of aggregates"));
  }
  ierr = PETSC_SUCCESS;
  if (p->hops == 2) ierr = HybParAggGhosts(p, 2 * sizeof(PetscInt), s->far);
  PetscCall(HybCommAgree(p->comm, ierr, "A sweep for roots of aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: see nested.c */
static PetscErrorCode HybParAggAlone(HybParAgg p, HybParAggFinding *f)
{
  PetscInt       alone = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  f->alone = 0;
  if (!p->again) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybParAggEach(p, HYB_STEP_ALONE, f->s.n, &f->s);
  if (!ierr && f->s.n) ierr = (*p->exec.backend->paragg->number)(&p->exec, &f->work, f->s.n, f->s.flag, f->number, &alone);
  PetscCall(HybCommAgree(p->comm, ierr, "Aggregates that are joined with none"));
  f->alone = alone;
  PetscCall(HybCommSum(p->comm, 1, &f->alone));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggRoots(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, int *sweeps)
{
  PetscInt64 left = 1;

  PetscFunctionBegin;
  PetscCall(HybParAggTell(p, f, ierr, PETSC_FALSE));
  PetscCall(HybParAggAlone(p, f));
  for (*sweeps = 0; left && left != f->alone * (*sweeps - 1); ++*sweeps) {
    PetscInt mine = 0;

    PetscCall(HybParAggTell(p, f, HybParAggSweep(p, f), PETSC_TRUE));
    PetscCall(HybCommAgree(p->comm, HybParAggLeave(p, f, &mine), "A sweep for roots of aggregates"));
    left = mine;
    PetscCall(HybCommSum(p->comm, 1, &left));
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

/* the numbers of the aggregates of each process, and of a prolongator's columns for them */
static PetscErrorCode HybParAggRanges(HybParAgg p, PetscInt64 *counts)
{
  PetscInt columns;

  PetscFunctionBegin;
  counts[p->comm->rank] = p->nc;
  PetscCall(HybCommSum(p->comm, p->comm->size, counts));
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
  PetscCall(HybCommAgree(p->comm, HybParAggEach(p, HYB_STEP_COARSE, s->n, s), "The numbers of aggregates"));
  ierr = HybParAggGhosts(p, sizeof(PetscInt), s->coarse);
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_BESIDE, s->all, s);
  PetscCall(HybCommAgree(p->comm, ierr, "The numbers of aggregates"));
  if (p->hops == 2) ierr = HybParAggGhosts(p, sizeof(PetscInt), s->beside);
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_PARENT, s->n, s);
  PetscCall(HybCommAgree(p->comm, ierr, "The numbers of aggregates"));
  ierr = HybParAggGhosts(p, sizeof(PetscInt), s->parent);
  if (!ierr) ierr = HybParAggEach(p, HYB_STEP_LEAD, s->n, s);
  PetscCall(HybCommAgree(p->comm, ierr, "The members of aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggFindIn(HybParAgg p, HybParAggFinding *f, int *sweeps)
{
  PetscInt64    *counts = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybParAggRoots(p, f, HybParAggTable(p, f), sweeps));
  ierr = HybParAggCount(p, f);
  if (!ierr) ierr = HybArenaCalloc(&f->work, HYB_MEM_HOST, p->comm->size, sizeof(PetscInt64), &counts);
  PetscCall(HybCommAgree(p->comm, ierr, "The number of aggregates"));
  PetscCall(HybParAggRanges(p, counts));
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
