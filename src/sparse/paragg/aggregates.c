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
  HybArena  work;
  PetscInt  n, all;                                                                  /* own vertices; others' too */
  PetscInt *place, *now, *flag, *number, *told, *key, *near, *far, *coarse, *beside; /* see vertex.h */
  /* of all processes: vertices that PETSc counts in each sweep */
  PetscInt64 alone;
} HybParAggFinding;

/* far, by what was told */
static PetscErrorCode HybParAggReach(HybParAgg p, const HybParAggFinding *f)
{
  return HybEachReach(p, f->all, (HybStepReach){.n = f->n, .hops = p->hops, .gi = p->G.i, .gj = p->G.j, .gid = p->gid, .told = f->told, .far = f->far});
}

/* flag: the own vertices without neighbours, or roots; how many */
static PetscErrorCode HybParAggMark(HybParAgg p, HybParAggFinding *f, PetscBool alone, PetscInt *sum)
{
  PetscFunctionBegin;
  *sum = 0;
  if (!f->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEachMark(p, f->n, (HybStepMark){.alone = alone, .now = f->now, .flag = f->flag}));
  PetscCall((*p->exec.backend->paragg->number)(&p->exec, &f->work, f->n, f->flag, f->number, sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggTable(HybParAgg p, HybParAggFinding *f)
{
  const HybExec *x = &p->exec;
  const PetscInt n = p->halo->n, all = p->G.m;
  PetscInt     **own[]  = {&f->place, &f->now, &f->flag, &f->number};
  PetscInt     **each[] = {&f->told, &f->key, &f->near, &f->coarse, &f->beside};
  size_t         bytes;
  char          *table = NULL;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(x), all, sizeof(PetscInt), &p->parent));
  if (!HybAggIsScalar(&p->block)) PetscCall(HybArenaCalloc(&p->keep, HYB_WORK(x), n, sizeof(PetscInt), &p->kind));
  f->n   = n;
  f->all = all;
  for (int made = 0; made < 2; made++) {
    bytes = 0;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(own); k++) HybCarve(table, &bytes, sizeof(PetscInt) * (size_t)n, own[k]);
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(each); k++) HybCarve(table, &bytes, sizeof(PetscInt) * (size_t)all, each[k]);
    HybCarve(table, &bytes, 2 * sizeof(PetscInt) * (size_t)all, &f->far);
    if (!made) PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), (PetscCount)bytes, 1, &table));
  }
  if (n) PetscCall((*x->backend->agg->permutation)(x, &f->work, n, p->order, p->G.i, f->place));
  PetscCall(HybEachStart(p, all, (HybStepStart){.n = n, .gi = p->G.i, .now = f->now, .told = f->told, .parent = p->parent}));
  /* others' vertices as undecided as the own ones */
  if (n) PetscCall(HybParAggReach(p, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new roots, and who belongs to them; told then has the own states */
static PetscErrorCode HybParAggSweep(HybParAgg p, HybParAggFinding *f)
{
  const HybExec  *x  = &p->exec;
  const PetscInt *gi = p->G.i, *gj = p->G.j;

  PetscFunctionBegin;
  PetscCall(HybEachKey(p, f->all, (HybStepKey){.n = f->n, .end = p->end, .gi = gi, .gj = gj, .place = f->place, .now = f->now, .far = f->far, .key = f->key}));
  if (f->n) PetscCall((*x->backend->paragg->roots)(x, &f->work, &p->G, p->longest, p->hops, f->key));
  PetscCall(HybEachNear(p, f->all, (HybStepNear){.n = f->n, .hops = p->hops, .gi = gi, .gj = gj, .key = f->key, .near = f->near}));
  PetscCall(HybEachTake(p, f->n, (HybStepTake){.begin = p->begin, .gi = gi, .gj = gj, .place = f->place, .key = f->key, .near = f->near, .now = f->now, .told = f->told, .parent = p->parent}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the sweep's last step, by others' roots; *left: own vertices that are undecided after it */
static PetscErrorCode HybParAggLeave(HybParAgg p, HybParAggFinding *f, PetscInt *left)
{
  PetscFunctionBegin;
  *left = 0;
  if (!f->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEachLeave(p, f->n, (HybStepLeave){.gi = p->G.i, .gj = p->G.j, .far = f->far, .now = f->now, .parent = p->parent, .flag = f->flag}));
  PetscCall((*p->exec.backend->paragg->number)(&p->exec, &f->work, f->n, f->flag, f->number, left));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: what was told reaches as far as it has to; ierr: of what this process did since the last sum */
static PetscErrorCode HybParAggTell(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, PetscBool states)
{
  PetscFunctionBegin;
  if (states) {
    ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), f->told);
    if (!ierr) ierr = HybParAggReach(p, f);
  }
  if (p->hops == 2) ierr = HybParAggGhosts(p, ierr, 2 * sizeof(PetscInt), f->far);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: see nested.c */
static PetscErrorCode HybParAggAlone(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr)
{
  PetscInt64 sum[2];
  PetscInt   alone = 0;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParAggMark(p, f, PETSC_TRUE, &alone);
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
  PetscCall(PetscMalloc1(p->comm->size + 1, &p->cranges));
  PetscCall(PetscMalloc1(p->comm->size + 1, &p->ccolumns));
  PetscCall(HybParAggMark(p, f, PETSC_FALSE, &p->nc));
  if (!f->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(&p->exec), p->nc, sizeof(PetscInt), &p->lead));
  PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(&p->exec), p->nc, sizeof(PetscInt), &p->first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybParAggOwnColumns(HybParAgg p)
{
  for (PetscMPIInt r = 0; r <= p->comm->size; r++) p->ccolumns[r] = p->cranges[r] * p->block.nvec;
  p->cbegin = p->cranges[p->comm->rank];
  p->cend   = p->cranges[p->comm->rank + 1];
}

/* the numbers of the aggregates of each process; counts: room for one more than there are processes */
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
  HybParAggOwnColumns(p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from roots to aggregates */
static PetscErrorCode HybParAggParents(HybParAgg p, HybParAggFinding *f)
{
  const PetscInt *gi = p->G.i, *gj = p->G.j;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  ierr = HybEachCoarse(p, f->n, (HybStepCoarse){.cbegin = p->cbegin, .now = f->now, .number = f->number, .coarse = f->coarse});
  ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), f->coarse);
  if (!ierr) ierr = HybEachBeside(p, f->all, (HybStepBeside){.n = f->n, .hops = p->hops, .gi = gi, .gj = gj, .coarse = f->coarse, .beside = f->beside});
  if (p->hops == 2) ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), f->beside);
  if (!ierr) ierr = HybEachParent(p, f->n, (HybStepParent){.begin = p->begin, .end = p->end, .cbegin = p->cbegin, .cend = p->cend, .hops = p->hops, .gi = gi, .gj = gj, .now = f->now, .far = f->far, .coarse = f->coarse, .beside = f->beside, .parent = p->parent, .kind = p->kind});
  ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), p->parent);
  if (!ierr) ierr = HybEachLead(p, f->n, (HybStepLead){.n = f->n, .hops = p->hops, .gi = gi, .gj = gj, .gid = p->gid, .now = f->now, .number = f->number, .parent = p->parent, .coarse = f->coarse, .lead = p->lead, .first = p->first});
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
