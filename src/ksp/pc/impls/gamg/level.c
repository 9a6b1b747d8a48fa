/*
  One level of smoothed aggregation: what stands in the places of PETSc's creategraph, coarsen, prolongator and
  optprolongator while PCSetUp_GAMG() runs. What they hand to PETSc between them is what the driver looks at and no
  more:

    creategraph    -> A itself, referenced: the graph of a scalar problem is A's pattern; that of vertices of several
                      unknowns, without edges below a threshold, or with the transpose of edges of one direction,
                      stays in h->graph. Here it is decided whether the level is ours.
    coarsen        -> an empty list; the aggregates stay in the arena h->keep, where the level executes
    prolongator    -> P0, or, where it will be smoothed, a matrix of its sizes without contents
                      pc_gamg->data becomes one entry; the next level's near-null vectors stay in h->near
    optprolongator -> P, and the eigenvalues that PETSc's smoothers take

  The method: Vanek, Mandel, Brezina, Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
  problems, Computing 56 (1996). How aggregates are found, and by whom: src/sparse/agg/roots.cu.

  From the first level on that is not ours the saved functions of PETSc's do the work, and pc_gamg->data gets its
  contents back before.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #define EVENT(name) petsc_gamg_setup_events[GAMG_##name]

/* the graph without weak edges, of the whole one with its weights; added to what is looked for: rows of A without
   their diagonal, and edges on one side */
static PetscErrorCode HybGAMGFilter(PC pc, HybGAMG *h, PetscBool unites, HybArena *whole, HybArena *work, const HybCSR *all, HybAggLook *look)
{
  const HybAggOps *ops  = h->exec.backend->agg;
  HybCSR           both = *all;
  HybAggFiltered   found;

  PetscFunctionBegin;
  PetscCall((*ops->filter)(&h->exec, &h->graph, work, all, &h->edges, &h->vertices, &found));
  if (!found.paired && unites) {
    PetscCall(HybAggUnionTransposed(&h->exec, whole, work, all, &both));
    PetscCall((*ops->filter)(&h->exec, &h->graph, work, &both, &h->edges, &h->vertices, &found));
  }
  if (!found.paired) {
    look->symmetric = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall((*ops->look)(&h->exec, work, &h->vertices, look));
  look->nodiagonal -= look->empty; /* a vertex that lost all is alone */
  look->nodiagonal += found.nodiagonal;
  PetscCall(HybGAMGInfoEdges(pc, h, h->vertices.nnz, both.nnz, found.close));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of the graph: A's pattern, or that of vertices of several unknowns, or what a threshold leaves, which stay in
   h->graph */
static PetscErrorCode HybGAMGLookIn(PC pc, HybGAMG *h, PetscBool unites, HybArena *whole, HybArena *work, const HybCSR *A, HybAggLook *look)
{
  const HybAggOps *ops    = h->exec.backend->agg;
  const PetscBool  filter = HybGAMGHasThreshold(pc);

  PetscFunctionBegin;
  h->own      = (PetscBool)(h->block.bs > 1 || filter);
  h->vertices = *A;
  if (h->block.bs > 1) PetscCall((*ops->collapse)(&h->exec, filter ? whole : &h->graph, work, A, h->block.bs, &h->vertices, &h->collapsed));
  if (filter) {
    HybCSR all = h->vertices;

    if (h->block.bs > 1) PetscCall((*ops->weights)(&h->exec, whole, work, A, h->block.bs, &all));
    PetscCall(HybGAMGFilter(pc, h, unites, whole, work, &all, look));
  } else
    PetscCall((*ops->look)(&h->exec, work, &h->vertices, look));
  if (h->block.bs > 1 && filter)
    look->nodiagonal += h->collapsed.nodiagonal;
  else if (h->block.bs > 1)
    look->nodiagonal = h->collapsed.nodiagonal;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGLook(PC pc, HybGAMG *h, Mat A, HybAggLook *look)
{
  HybCSR         csr;
  HybArena       whole, work;
  PetscBool      unites = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(look, sizeof(*look)));
  if (HybGAMGHasThreshold(pc)) PetscCall(HybGAMGUnites(h, A, &unites));
  PetscCall(HybArenaReset(&h->graph));
  PetscCall(HybArenaInit(&h->graph, &h->exec));
  PetscCall(HybArenaInit(&whole, &h->exec));
  PetscCall(HybArenaInit(&work, &h->exec));
  PetscCall(HybMatGetCSR(A, &h->exec, HybGAMGHasThreshold(pc), &csr));
  ierr = HybGAMGLookIn(pc, h, unites, &whole, &work, &csr, look);
  (void)HybArenaReset(&work);
  (void)HybArenaReset(&whole);
  PetscCall(HybMatRestoreCSR(A, &h->exec, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the graph that was looked at becomes its union with its transpose, in h->graph */
static PetscErrorCode HybGAMGUnite(HybGAMG *h, Mat A)
{
  HybCSR         csr = h->vertices, both;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&work, &h->exec));
  if (!h->own) PetscCall(HybMatGetCSR(A, &h->exec, PETSC_FALSE, &csr));
  csr.a = NULL;
  ierr  = HybAggUnionTransposed(&h->exec, &h->graph, &work, &csr, &both);
  (void)HybArenaReset(&work);
  if (!h->own) PetscCall(HybMatRestoreCSR(A, &h->exec, &csr));
  PetscCall(ierr);
  if (h->own) {
    PetscCall(HybArenaFree(&h->graph, &h->vertices.j));
    PetscCall(HybArenaFree(&h->graph, &h->vertices.i));
  }
  h->own      = PETSC_TRUE;
  h->vertices = both;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* look, or unite where look is NULL, as an event */
static PetscErrorCode HybGAMGLookAt(PC pc, HybGAMG *h, Mat A, HybAggLook *look)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(HYB_GAMGLook, A, 0, 0, 0));
  PetscCall(HybRecordPhase(HYB_PHASE_LOOK, A, PETSC_FALSE));
  ierr = look ? HybGAMGLook(pc, h, A, look) : HybGAMGUnite(h, A);
  PetscCall(HybRecordPhase(HYB_PHASE_LOOK, A, PETSC_TRUE));
  PetscCall(PetscLogEventEnd(HYB_GAMGLook, A, 0, 0, 0));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rules of this level, by the witness, or those of the level before. Up to 3.26 one option alone goes by levels: so
   many of the first are coarsened more aggressively. Once the rules have changed they stay. */
static PetscErrorCode HybGAMGRules(PC pc, HybGAMG *h, Mat A, PetscBool ask, PetscBool *edges)
{
  const HybAggRules before = h->rules;
  PetscBool         set, symmetric;

  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  symmetric = (PetscBool)(set && symmetric); /* then PETSc adds no transpose to the witness */
  *edges    = PETSC_TRUE;
  if (!ask && h->settled && h->asked.bs == h->block.bs && h->asked.nvec == h->block.nvec && h->askedsymmetric == symmetric) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGAMGWitness(pc, h, A, ask, edges));
  if (h->asked.bs && HYB_KNOWN_GAMG_ALIKE) h->settled = (PetscBool)(h->settled || before.hops != h->rules.hops || before.distance != h->rules.distance || before.order != h->rules.order);
  h->asked          = h->block;
  h->askedsymmetric = symmetric;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the level ours? *why is NULL if it is. */
static PetscErrorCode HybGAMGDecide(PC pc, HybGAMG *h, Mat A, const char **why)
{
  const PC_GAMG  *gamg   = HybGAMGData(pc);
  const PetscBool filter = HybGAMGHasThreshold(pc);
  HybAggLook      look;
  PetscBool       edges, ascends, unites = PETSC_FALSE;
  PetscMPIInt     size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  if (size > 1) {
    PetscCall(HybGAMGParDecide(pc, h, A, why));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybGAMGKnown(pc, h, A, PETSC_FALSE, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  h->block.bs   = gamg->data_cell_rows;
  h->block.nvec = gamg->data_cell_cols;
  PetscCall(HybMatGetExec(A, &h->exec));
  if (!h->exec.backend->agg) h->exec = (HybExec){&HybBackendHost, NULL, HYB_MEM_HOST};
  PetscCall(HybMatAscends(A, &h->exec, &ascends));
  if (!ascends) *why = HYB_GAMG_DISORDER;
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  /* whether PETSc adds the transpose is asked where that matters: with a threshold, or for edges of one direction */
  if (!filter) PetscCall(HybGAMGLookAt(pc, h, A, &look));
  PetscCall(HybGAMGRules(pc, h, A, (PetscBool)(filter || !look.symmetric), &edges));
  HybGAMGWhy(edges, h, why);
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGAMGEdges(pc, h, A));
  if (filter) PetscCall(HybGAMGLookAt(pc, h, A, &look));
  if (!filter && !look.symmetric && !look.nodiagonal) {
    PetscCall(HybGAMGUnites(h, A, &unites));
    if (unites) PetscCall(HybGAMGLookAt(pc, h, A, NULL));
    look.symmetric = unites;
  }
  h->longest = unites ? 0 : look.longest;
  if (look.nodiagonal)
    *why = "rows without an entry of the diagonal";
  else if (!look.symmetric)
    *why = "a pattern that is not symmetric";
  else if (h->block.bs > 1 && HybAggStaggered(&h->collapsed))
    *why = "PETSc takes entries of several vertices for one block";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCreateGraph(PC pc, Mat A, Mat *G)
{
  HybGAMG    *h;
  const char *why = NULL;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  h->injecting = HybGAMGInjectionEnd(pc, h);
  if (h->injecting) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *G = A;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->ours) PetscCall(HybGAMGDecide(pc, h, A, &why));
  if (why) {
    h->ours = PETSC_FALSE;
    PetscCall(PetscInfo(pc, "Level %" PetscInt_FMT " and those below are PETSc's own: %s\n", HybGAMGData(pc)->current_level, why));
    PetscCall(HybGAMGDataToHost(pc, h, A->rmap->n));
    PetscCall(HybArenaReset(&h->near));
    PetscCall(HybArenaReset(&h->graph));
    h->b = NULL;
    if (HybGAMGData(pc)->current_level == HybGAMGFirst(pc)) PetscCall(HybCountGAMG(HYB_GAMG_SETUPS_LEFT));
  }
  if (!h->ours) {
    PetscCall(HybCountGAMG(HYB_GAMG_LEVELS_LEFT));
    PetscCall((*h->ops.creategraph)(pc, A, G));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (HybGAMGData(pc)->current_level == HybGAMGFirst(pc)) PetscCall(HybCountGAMG(HYB_GAMG_SETUPS));
  PetscCall(HybCountGAMG(HYB_GAMG_LEVELS));
  if (!h->par) PetscCall(HybGAMGNear(pc, h, A->rmap->n));
  PetscCall(PetscLogEventBegin(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(GRAPH), 0, 0, 0, 0));
  PetscCall(PetscObjectReference((PetscObject)A));
  *G = A;
  PetscCall(PetscLogEventEnd(EVENT(GRAPH), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGAggregate(HybGAMG *h, Mat G)
{
  HybCSR         csr   = h->vertices;
  HybAggRules    rules = h->rules;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  rules.longest = h->longest;
  PetscCall(HybArenaReset(&h->keep));
  PetscCall(HybArenaInit(&h->keep, &h->exec));
  if (h->par) {
    h->agg.n = G->rmap->n / h->block.bs;
    PetscCall(HybParAggFind(h->par, &h->rules, &h->agg.nc, &h->total, &h->agg.rounds));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaInit(&work, &h->exec));
  if (!h->own) PetscCall(HybMatGetCSR(G, &h->exec, PETSC_FALSE, &csr));
  ierr = HybAggFind(&h->exec, &h->keep, &work, &csr, &rules, &h->agg, HybAggIsScalar(&h->block) ? NULL : &h->lists);
  (void)HybArenaReset(&work);
  if (!h->own) PetscCall(HybMatRestoreCSR(G, &h->exec, &csr));
  PetscCall(ierr);
  PetscCall(HybArenaReset(&h->graph));
  h->total = h->agg.nc;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCoarsen(PC pc, Mat *G, PetscCoarsenData **lists)
{
  const PetscLogEvent square = petsc_gamg_setup_matmat_events[HybGAMGData(pc)->current_level][0];
  HybGAMG            *h;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->ours) {
    PetscCall((*h->ops.coarsen)(pc, G, lists));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->injecting) {
    PetscCall(PetscCDCreate(0, lists));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(MIS), 0, 0, 0, 0));
  if (h->rules.hops == 2) { /* nothing is squared, two steps along the graph do the same */
    PetscCall(PetscLogEventBegin(square, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(square, 0, 0, 0, 0));
  }
  PetscCall(PetscLogEventBegin(HYB_GAMGAggregates, *G, 0, 0, 0));
  PetscCall(HybRecordPhase(HYB_PHASE_AGGREGATES, *G, PETSC_FALSE));
  ierr = HybGAMGAggregate(h, *G);
  PetscCall(HybRecordPhase(HYB_PHASE_AGGREGATES, *G, PETSC_TRUE));
  PetscCall(PetscLogEventEnd(HYB_GAMGAggregates, *G, 0, 0, 0));
  PetscCall(ierr);
  PetscCall(PetscInfo(pc, "%" PetscInt_FMT " aggregates of %" PetscInt_FMT " vertices, by %d hops in %d rounds, distance %d, %s\n", h->agg.nc, h->agg.n, h->rules.hops, h->agg.rounds, h->rules.distance, h->rules.order == HYB_AGG_DEGREES ? "by degrees" : "shuffled"));
  PetscCall(PetscCDCreate(0, lists));
  PetscCall(PetscLogEventEnd(EVENT(MIS), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(COARSEN), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* q, the next level's near-null vectors in place of this one's */
static PetscErrorCode HybGAMGTentative(PC pc, HybGAMG *h, HybArena *work)
{
  const HybExec   *x    = &h->exec;
  const HybAggOps *ops  = x->backend->agg;
  const PetscInt   nvec = h->block.nvec;
  PetscInt         columns, doubtful = 0;
  HybArena         near;
  HybScalar       *coarse = NULL;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCall(HybIntCast((PetscCount)h->agg.nc * nvec, "columns of a prolongator", &columns));
  PetscCall(HybArenaInit(&near, x));
  if (!h->par) PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(x), (PetscCount)h->agg.n * h->block.bs * nvec, sizeof(*h->q), &h->q));
  ierr = HybArenaAlloc(&near, HYB_WORK(x), (PetscCount)columns * nvec, sizeof(*coarse), &coarse);
  if (h->par)
    ierr = HybParAggTentative(h->par, ierr, h->b, HybGAMGGetFactor(), &h->block.bs, coarse, &doubtful);
  else if (!ierr)
    ierr = (*ops->tentative)(x, work, &h->agg, &h->lists, &h->block, h->b, HybGAMGGetFactor(), &h->block.bs, h->q, coarse, &doubtful);
  if (ierr) (void)HybArenaReset(&near);
  PetscCall(ierr);
  PetscCall(HybArenaReset(&h->near));
  h->near = near;
  h->b    = coarse;
  if (doubtful) PetscCall(PetscInfo(pc, "Rounding decides in the factorization of %" PetscInt_FMT " of %" PetscInt_FMT " aggregates: done by LAPACK\n", doubtful, h->agg.nc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGUnsmoothed(PC pc, HybGAMG *h, HybArena *work, Mat A, Mat *P)
{
  const HybExec *x = &h->exec;
  HybArena       arrays;
  HybCSR         csr;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (h->par) {
    PetscCall(HybGAMGParProlongator(pc, h, A, 0, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaInit(&arrays, x));
  ierr = (*x->backend->agg->unsmoothed)(x, &arrays, work, &h->agg, &h->block, h->q, &csr);
  if (!ierr) ierr = HybMatCreateFromCSR(A, x, &arrays, &csr, h->block.bs, h->block.nvec, P);
  (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGProlongator(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  HybGAMG       *h;
  HybArena       work;
  PetscInt       columns;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->ours) {
    PetscCall((*h->ops.prolongator)(pc, A, lists, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->injecting) {
    PetscCall(PetscLogEventBegin(HYB_GAMGTentative, A, 0, 0, 0));
    PetscCall(HybRecordPhase(HYB_PHASE_TENTATIVE, A, PETSC_FALSE));
    ierr = HybGAMGInjection(pc, h, A, P);
    PetscCall(HybRecordPhase(HYB_PHASE_TENTATIVE, A, PETSC_TRUE));
    PetscCall(PetscLogEventEnd(HYB_GAMGTentative, A, 0, 0, 0));
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(EVENT(PROL), 0, 0, 0, 0));
  *P = NULL;
  if (!h->total) {
    PetscCall(PetscInfo(pc, "No selected points on coarse grid\n"));
    PetscCall(PetscLogEventEnd(EVENT(PROL), 0, 0, 0, 0));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscInfo(pc, "New grid %" PetscInt_FMT " nodes\n", h->total));
  PetscCall(PetscLogEventBegin(EVENT(PROLA), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(PROLA), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(PROLB), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(HYB_GAMGTentative, A, 0, 0, 0));
  PetscCall(HybRecordPhase(HYB_PHASE_TENTATIVE, A, PETSC_FALSE));
  PetscCall(HybArenaInit(&work, &h->exec));
  ierr = HybGAMGTentative(pc, h, &work);
  if (!h->nsmooths) {
    if (h->par) ierr = HybGAMGAgree(pc, ierr);
    if (!ierr) ierr = HybGAMGUnsmoothed(pc, h, &work, A, P);
  }
  (void)HybArenaReset(&work);
  PetscCall(HybRecordPhase(HYB_PHASE_TENTATIVE, A, PETSC_TRUE));
  PetscCall(PetscLogEventEnd(HYB_GAMGTentative, A, 0, 0, 0));
  columns = h->agg.nc * h->block.nvec;
  if (!*P && (!ierr || h->par)) { /* for the driver, which asks for the block size */
    /* on several processes after an error too: it takes one of PETSc's tags, of which all must have taken as many */
    const PetscErrorCode later = MatCreate(PetscObjectComm((PetscObject)A), P);

    if (!ierr) ierr = later;
    if (!ierr) ierr = MatSetSizes(*P, A->rmap->n, columns, A->rmap->N, PETSC_DETERMINE);
    if (!ierr) ierr = MatSetBlockSizes(*P, h->block.bs, h->block.nvec);
  }
  if (!ierr) ierr = HybGAMGDataDummy(pc, h, columns, h->block.nvec, h->block.nvec);
  if (!ierr && h->hostdata) ierr = HybGAMGDataToHost(pc, h, columns);
  if (h->par) ierr = HybGAMGAgree(pc, ierr);
  if (ierr) (void)MatDestroy(P);
  PetscCall(ierr);
  PetscCall(PetscLogEventEnd(EVENT(PROLB), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(PROL), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P = P0 - 1.4/emax D^-1 A P0 */
static PetscErrorCode HybGAMGSmoothed(PC pc, HybGAMG *h, Mat A, PetscReal emax, Mat *P)
{
  const HybExec *x = &h->exec;
  HybArena       arrays, work;
  HybCSR         a, p;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (h->par) {
    PetscCall(HybGAMGParProlongator(pc, h, A, 1.4 / emax, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaInit(&arrays, x));
  PetscCall(HybArenaInit(&work, x));
  PetscCall(HybMatGetCSR(A, x, PETSC_TRUE, &a));
  ierr = (*x->backend->agg->smoothed)(x, &arrays, &work, &a, h->own ? 0 : h->longest, &h->agg, &h->block, h->q, 1.4 / emax, &p);
  (void)HybArenaReset(&work);
  if (ierr) (void)HybArenaReset(&arrays);
  PetscCall(HybMatRestoreCSR(A, x, &a));
  PetscCall(ierr);
  ierr = x->backend->device ? HybGAMGAhead(A) : PETSC_SUCCESS; /* the device is busy, and nobody waits yet */
  if (!ierr) ierr = HybMatCreateFromCSR(A, x, &arrays, &p, h->block.bs, h->block.nvec, P);
  (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGOptProlongator(PC pc, Mat A, Mat *P)
{
  PC_MG              *mg     = (PC_MG *)pc->data;
  const PC_GAMG      *gamg   = HybGAMGData(pc);
  const PetscInt      l      = gamg->current_level;
  const PetscLogEvent matmat = petsc_gamg_setup_matmat_events[l][2];
  PetscReal           emin = gamg->emin, emax = gamg->emax;
  HybGAMG            *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->ours) {
    PetscCall((*h->ops.optprolongator)(pc, A, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->injecting) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(EVENT(OPT), 0, 0, 0, 0));
  if (h->nsmooths && !(emax > 0)) PetscCall(HybGAMGEstimate(pc, A, &h->exec, h->own ? 0 : h->longest, &emin, &emax));
  mg->min_eigen_DinvA[l] = h->nsmooths && gamg->use_sa_esteig ? emin : 0;
  mg->max_eigen_DinvA[l] = h->nsmooths && gamg->use_sa_esteig ? emax : 0;
  if (h->nsmooths) {
    Mat            smoothed = NULL;
    PetscErrorCode ierr;

    PetscCheck(emax != 0.0, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "The largest singular value of the operator with Jacobi, by which the prolongator is smoothed, was computed as zero (level %" PetscInt_FMT ", %" PetscInt_FMT " rows)", l, A->rmap->n);
    PetscCall(PetscLogEventBegin(EVENT(OPTSM), 0, 0, 0, 0));
    PetscCall(PetscLogEventBegin(matmat, 0, 0, 0, 0));
    PetscCall(PetscLogEventBegin(HYB_GAMGSmooth, A, 0, 0, 0));
    PetscCall(HybRecordPhase(HYB_PHASE_SMOOTH, A, PETSC_FALSE));
    ierr = HybGAMGSmoothed(pc, h, A, emax, &smoothed);
    PetscCall(HybRecordPhase(HYB_PHASE_SMOOTH, A, PETSC_TRUE));
    PetscCall(PetscLogEventEnd(HYB_GAMGSmooth, A, 0, 0, 0));
    PetscCall(ierr);
    PetscCall(MatDestroy(P));
    *P = smoothed;
    PetscCall(PetscLogEventEnd(matmat, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(EVENT(OPTSM), 0, 0, 0, 0));
  }
  for (PetscInt k = 1; k < h->nsmooths; k++) {
    PetscCall(PetscLogEventBegin(EVENT(OPTSM), 0, 0, 0, 0));
    PetscCall(PetscLogEventBegin(matmat, 0, 0, 0, 0));
    PetscCall(HybGAMGSmoothMore(A, 1.4 / emax, P));
    PetscCall(PetscLogEventEnd(matmat, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(EVENT(OPTSM), 0, 0, 0, 0));
  }
  h->q = NULL;
  PetscCall(HybArenaReset(&h->keep));
  if (h->par) PetscCall(HybGAMGAgree(pc, HybParAggDestroy(&h->par)));
  PetscCall(PetscLogEventEnd(EVENT(OPT), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
