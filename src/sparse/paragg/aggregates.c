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

  Where rows lack their own entry (p->bare) PETSc's rules take other turns, which vertex.h follows: who is alone, and
  who stays another process's. Of one step PETSc counts a vertex alone as decided when its turn comes, and again when a
  root takes it afterwards. It ends when it has counted as many as there are: some may be undecided then, which belong
  to no aggregate. Or it has counted past that, and never ends; here the sweeps go on until all are decided.

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
  /* own vertices alone; how often PETSc has counted such */
  PetscInt alone, counted;
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
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, and its error is this process's alone: all are undecided, or alone */
static PetscErrorCode HybParAggUndecided(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr)
{
  const PetscInt *length = NULL;

  PetscFunctionBegin;
  if (p->bare && p->hops == 2) {
    if (!ierr) ierr = HybEachLength(p, f->n, (HybStepLength){.gi = p->G.i, .length = f->coarse});
    ierr   = HybParAggGhosts(p, ierr, sizeof(PetscInt), f->coarse);
    length = f->coarse;
  }
  PetscCall(ierr);
  PetscCall(HybEachStart(p, f->all, (HybStepStart){.n = f->n, .gi = p->G.i, .gj = p->G.j, .length = length, .now = f->now, .told = f->told, .parent = p->parent}));
  /* others' vertices as undecided as the own ones */
  if (f->n) PetscCall(HybParAggReach(p, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new roots, and who belongs to them; told then has the own states. counts: so many own vertices were alone when their
   turn came; NULL: nobody asks */
static PetscErrorCode HybParAggSweep(HybParAgg p, HybParAggFinding *f, PetscInt *counts)
{
  const HybExec  *x  = &p->exec;
  const PetscInt *gi = p->G.i, *gj = p->G.j;

  PetscFunctionBegin;
  PetscCall(HybEachKey(p, f->all, (HybStepKey){.n = f->n, .end = p->end, .gi = gi, .gj = gj, .place = f->place, .now = f->now, .far = f->far, .key = f->key}));
  if (f->n) PetscCall((*x->backend->paragg->roots)(x, &f->work, &p->G, p->longest, p->hops, f->key));
  PetscCall(HybEachNear(p, f->all, (HybStepNear){.n = f->n, .hops = p->hops, .gi = gi, .gj = gj, .key = f->key, .near = f->near}));
  PetscCall(HybEachTake(p, f->n, (HybStepTake){.begin = p->begin, .gi = gi, .gj = gj, .place = f->place, .key = f->key, .near = f->near, .now = f->now, .told = f->told, .parent = p->parent, .flag = counts ? f->flag : NULL}));
  if (counts && f->n) PetscCall((*x->backend->paragg->number)(x, &f->work, f->n, f->flag, f->number, counts));
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

/* A sweep, and what was told after it. *left: own vertices that are undecided then; *uncounted: for PETSc. Where rows
   have their own entries nobody takes those alone: on a graph of aggregates they are counted in each sweep. */
static PetscErrorCode HybParAggStep(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, PetscBool first, PetscInt64 *left, PetscInt64 *uncounted)
{
  const PetscBool some   = (PetscBool)(p->bare && p->hops == 1);
  PetscInt        counts = p->again ? f->alone : 0, mine = 0;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParAggSweep(p, f, some ? &counts : NULL);
  ierr = HybParAggTell(p, f, ierr, PETSC_TRUE);
  if (!ierr && some) ierr = HybParAggMark(p, f, PETSC_TRUE, &f->alone);
  if (!ierr) ierr = HybParAggLeave(p, f, &mine);
  if (first || p->again) f->counted += counts;
  *left      = mine;
  *uncounted = mine + f->alone - f->counted;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggRoots(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, int *sweeps)
{
  PetscInt64 left[3] = {1, 1, 0};

  PetscFunctionBegin;
  ierr     = HybParAggTell(p, f, ierr, PETSC_FALSE);
  f->alone = f->counted = 0;
  if (!ierr && p->again && !p->bare) ierr = HybParAggMark(p, f, PETSC_TRUE, &f->alone);
  for (*sweeps = 0; left[0] && left[1]; ++*sweeps) {
    ierr = HybParAggStep(p, f, ierr, (PetscBool) !*sweeps, &left[0], &left[1]);
    PetscCall(HybAgreeSum(p->comm->mpi, ierr, "A sweep for roots of aggregates", 2, left));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggCount(HybParAgg p, HybParAggFinding *f)
{
  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, (PetscCount)p->comm->size + 1, sizeof(PetscInt), &p->cranges));
  PetscCall(HybArenaAlloc(&p->keep, HYB_MEM_HOST, (PetscCount)p->comm->size + 1, sizeof(PetscInt), &p->ccolumns));
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
  PetscCall(HybAgreeSum(p->comm->mpi, ierr, "The number of aggregates", p->comm->size, counts));
  p->cranges[0] = 0; /* there are no more than vertices */
  for (PetscMPIInt r = 0; r < p->comm->size; r++) p->cranges[r + 1] = p->cranges[r] + (PetscInt)counts[r];
  /* the same for all */
  PetscCall(HybIntCast((PetscCount)p->cranges[p->comm->size] * p->block.nvec, "columns of a prolongator", &columns));
  HybParAggOwnColumns(p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what HybStepAsk asks, which others answer for their ghosts; arrays from f->work */
static PetscErrorCode HybParAggAsk(HybParAgg p, HybParAggFinding *f, PetscInt **asks, PetscInt **kept)
{
  const HybExec    *x    = &p->exec;
  const PetscMPIInt size = p->comm->size;
  const size_t      room = (size_t)size + 1;
  PetscInt         *ranges;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), 2 * (PetscCount)f->all, sizeof(PetscInt), asks));
  PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), f->all, sizeof(PetscInt), kept));
  PetscCall(HybArenaAlloc(&f->work, HYB_WORK(x), 2 * (PetscCount)room, sizeof(PetscInt), &ranges));
  PetscCall(x->backend->copy(x, ranges, p->ranges, sizeof(PetscInt) * room, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(x->backend->copy(x, ranges + room, p->cranges, sizeof(PetscInt) * room, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybEachAsk(p, f->n, (HybStepAsk){.size = size, .cbegin = p->cbegin, .cend = p->cend, .ranges = ranges, .cranges = ranges + room, .now = f->now, .beside = f->beside, .asks = *asks}));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
static PetscErrorCode HybParAggKept(HybParAgg p, HybParAggFinding *f, PetscErrorCode ierr, const PetscInt **kept)
{
  const char *const what = "Members of other processes' aggregates";
  PetscInt         *asks = NULL, *found = NULL;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParAggAsk(p, f, &asks, &found);
  ierr = HybParAggGhosts(p, ierr, 2 * sizeof(PetscInt), asks);
  if (!ierr) ierr = HybEachAnswer(p, f->all, (HybStepAnswer){.n = f->n, .gi = p->G.i, .gj = p->G.j, .gid = p->gid, .asks = asks, .kept = found});
  PetscCall(HybCommAgree(p->comm, ierr, what));
  ierr = HybHaloReverseBegin(p->halo, &p->exec, PETSC_FALSE, found + f->n);
  if (!ierr) ierr = HybHaloReverseEnd(p->halo, &p->exec, PETSC_SUCCESS, found);
  PetscCall(HybCommAgree(p->comm, ierr, what));
  *kept = found;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from roots to aggregates */
static PetscErrorCode HybParAggParents(HybParAgg p, HybParAggFinding *f)
{
  const PetscInt *gi = p->G.i, *gj = p->G.j, *kept = NULL;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  ierr = HybEachCoarse(p, f->n, (HybStepCoarse){.cbegin = p->cbegin, .now = f->now, .number = f->number, .coarse = f->coarse});
  ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), f->coarse);
  if (!ierr) ierr = HybEachBeside(p, f->all, (HybStepBeside){.n = f->n, .hops = p->hops, .gi = gi, .gj = gj, .coarse = f->coarse, .beside = f->beside});
  if (p->hops == 2) ierr = HybParAggGhosts(p, ierr, sizeof(PetscInt), f->beside);
  if (p->hops == 2 && p->bare) {
    PetscCall(HybParAggKept(p, f, ierr, &kept));
    ierr = PETSC_SUCCESS;
  }
  if (!ierr) ierr = HybEachParent(p, f->n, (HybStepParent){.begin = p->begin, .end = p->end, .cbegin = p->cbegin, .cend = p->cend, .hops = p->hops, .gi = gi, .gj = gj, .now = f->now, .far = f->far, .coarse = f->coarse, .beside = f->beside, .kept = kept, .parent = p->parent, .kind = p->kind});
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
  ierr = HybParAggUndecided(p, f, ierr);
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
  f.work   = HybArenaOn(&p->exec);
  p->hops  = hops;
  p->order = order;
  ierr     = HybParAggFindIn(p, &f, sweeps);
  later    = HybArenaReset(&f.work);
  PetscCall(ierr);
  PetscCall(HybCommAgree(p->comm, later, "Memory for aggregates"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
