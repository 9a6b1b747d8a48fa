/*
  One level of smoothed aggregation: what stands in the places of PETSc's creategraph, coarsen, prolongator and
  optprolongator while PCSetUp_GAMG() runs. What they hand to PETSc between them is what the driver looks at and no
  more:

    creategraph    -> A itself, referenced: the graph of a scalar problem is A's pattern; that of vertices of several
                      unknowns, without edges below a threshold, or with the transpose of edges of one direction,
                      stays in h->graph. Here it is decided whether the level is ours.
    coarsen        -> an empty list; the aggregates stay in the arena h->kept.arena, where the level executes
    prolongator    -> P0, or, where it will be smoothed, a matrix of its sizes without contents
                      pc_gamg->data becomes one entry; the next level's near-null vectors stay in h->near.arena
    optprolongator -> P, and the eigenvalues that PETSc's smoothers take

  What one process does otherwise than several is h->setup.way: one.c, parallel.c. The latter's functions are
  collective, and so what one process does alone ends with an agreement.

  The method: Vanek, Mandel, Brezina, Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
  problems, Computing 56 (1996). How aggregates are found, and by whom: src/sparse/agg/roots.cu.

  From the first level on that is not ours the saved functions of PETSc's do the work, and pc_gamg->data gets its
  contents back before.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #define EVENT(name) petsc_gamg_setup_events[GAMG_##name]

/* Is the level ours? *why is NULL if it is. */
static PetscErrorCode HybGAMGDecide(PC pc, HybGAMG *h, Mat A, const char **why)
{
  const HybGAMGWay *way    = h->setup.way;
  const PetscBool   filter = HybGAMGHasThreshold(pc);
  const char       *wrong  = NULL;
  PetscBool         unites, sided = PETSC_FALSE;
  PetscErrorCode    ierr = h->setup.failed;

  PetscFunctionBegin;
  if (!ierr) ierr = HybGAMGKnown(pc, h, A, why);
  PetscCall(HybGAMGAgreeWhy(pc, ierr, why));
  if (!*why) PetscCall((*way->begin)(pc, h, A, why));
  if (!*why && filter && h->block.bs == 1 && PetscDefined(USE_COMPLEX)) {
    ierr = HybGAMGModuli(h, why);
    PetscCall(HybGAMGAgreeWhy(pc, ierr, why));
  }
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  /* whether PETSc adds the transpose is asked where that matters: with a threshold, or for edges of one direction */
  if (!filter)
    HYB_GAMG_PHASE(HYB_PHASE_LOOK, A, (*way->look)(pc, h, A, PETSC_FALSE, &sided, &wrong));
  PetscCall((*way->rules)(pc, h, A, (PetscBool)(filter || sided), &unites, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (filter)
    HYB_GAMG_PHASE(HYB_PHASE_LOOK, A, (*way->look)(pc, h, A, unites, &sided, &wrong));
  if (sided && unites) {
    wrong = NULL;
    HYB_GAMG_PHASE(HYB_PHASE_LOOK, A, (*way->again)(pc, h, A, &wrong));
  }
  *why = wrong;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCreateGraph(PC pc, Mat A, Mat *G)
{
  HybGAMG       *h;
  const char    *why = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  h->estimate.asked = PETSC_FALSE;
  h->injection.now  = HybGAMGInjectionEnd(pc, h);
  if (h->injection.now) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *G = A;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->setup.ours) PetscCall(HybGAMGDecide(pc, h, A, &why));
  if (why) {
    h->setup.ours = PETSC_FALSE;
    PetscCall(PetscInfo(pc, "Level %" PetscInt_FMT " and those below are PETSc's own: %s\n", HybGAMGData(pc)->current_level, why));
    PetscCall(HybGAMGAgree(pc, HybParAggDestroy(&h->par)));
    ierr      = HybGAMGDataToHost(pc, h, A->rmap->n);
    ierr      = HybErrorFirst(ierr, HybArenaReset(&h->near.arena));
    ierr      = HybErrorFirst(ierr, HybArenaReset(&h->graph.arena));
    h->near.b = NULL;
    PetscCall(HybGAMGAgree(pc, ierr)); /* all go on together */
    if (HybGAMGData(pc)->current_level == HybGAMGFirst(pc)) PetscCall(HybCountGAMG(HYB_GAMG_SETUPS_LEFT));
  }
  if (!h->setup.ours) {
    PetscCall(HybCountGAMG(HYB_GAMG_LEVELS_LEFT));
    PetscCall((*h->petsc.ops.creategraph)(pc, A, G));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (HybGAMGData(pc)->current_level == HybGAMGFirst(pc)) {
    PetscCall(HybGAMGPlan(pc, h, A));
    PetscCall(HybCountGAMG(HYB_GAMG_SETUPS));
  }
  PetscCall(HybCountGAMG(HYB_GAMG_LEVELS));
  PetscCall(PetscLogEventBegin(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(GRAPH), 0, 0, 0, 0));
  PetscCall(PetscObjectReference((PetscObject)A));
  *G = A;
  PetscCall(PetscLogEventEnd(EVENT(GRAPH), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCoarsen(PC pc, Mat *G, PetscCoarsenData **lists)
{
  const PetscLogEvent square = petsc_gamg_setup_matmat_events[HybGAMGData(pc)->current_level][0];
  HybGAMG            *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->setup.ours) {
    PetscCall((*h->petsc.ops.coarsen)(pc, G, lists));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->injection.now) {
    PetscCall(PetscCDCreate(0, lists));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(MIS), 0, 0, 0, 0));
  if (h->rules.hops == 2) { /* nothing is squared, two steps along the graph do the same */
    PetscCall(PetscLogEventBegin(square, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(square, 0, 0, 0, 0));
  }
  PetscCall(HybArenaReset(&h->kept.arena));
  h->kept.arena = HybArenaOn(&h->exec);
  HYB_GAMG_PHASE(HYB_PHASE_AGGREGATES, *G, (*h->setup.way->aggregate)(h, *G));
  PetscCall(PetscInfo(pc, "%" PetscInt_FMT " aggregates of %" PetscInt_FMT " vertices, by %d hops in %d rounds, distance %d, %s\n", h->agg.nc, h->agg.n, h->rules.hops, h->agg.rounds, h->rules.distance, h->rules.order == HYB_AGG_DEGREES ? "by degrees" : "shuffled"));
  PetscCall(PetscCDCreate(0, lists));
  PetscCall(PetscLogEventEnd(EVENT(MIS), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(COARSEN), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the tentative prolongator, the next level's near-null vectors in place of this one's, and P0, or, where it will be
   smoothed, a matrix of its sizes for the driver, which asks for the block size. After an error too that is made: it
   takes one of PETSc's tags, of which all processes must have taken as many. */
static PetscErrorCode HybGAMGTentative(PC pc, HybGAMG *h, Mat A, Mat *P)
{
  const HybGAMGWay *way  = h->setup.way;
  const HybExec    *x    = &h->exec;
  const PetscInt    nvec = h->block.nvec;
  PetscInt          columns, doubtful = 0;
  HybArena          near, work;
  HybScalar        *coarse = NULL;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  near = HybArenaOn(x);
  work = HybArenaOn(x);
  ierr = HybIntCast((PetscCount)h->agg.nc * nvec, "columns of a prolongator", &columns);
  if (!ierr) ierr = HybGAMGSend(pc, h, A->rmap->n);
  if (!ierr) ierr = HybArenaAlloc(&near, HYB_WORK(x), (PetscCount)columns * nvec, sizeof(*coarse), &coarse);
  ierr = (*way->tentative)(h, ierr, &work, coarse, &doubtful);
  if (ierr)
    (void)HybArenaReset(&near);
  else
    ierr = HybGAMGNear(h, near, coarse);
  if (!ierr && doubtful) ierr = PetscInfo(pc, "Rounding decides in the factorization of %" PetscInt_FMT " of %" PetscInt_FMT " aggregates: done by LAPACK\n", doubtful, h->agg.nc);
  if (!h->nsmooths) {
    ierr = HybGAMGAgree(pc, ierr);
    if (!ierr) ierr = (*way->prolongator)(h, A, 0, P);
  }
  (void)HybArenaReset(&work);
  if (!*P) {
    ierr = HybErrorFirst(ierr, MatCreate(PetscObjectComm((PetscObject)A), P));
    if (!ierr) ierr = MatSetSizes(*P, A->rmap->n, columns, A->rmap->N, PETSC_DETERMINE);
    if (!ierr) ierr = MatSetBlockSizes(*P, h->block.bs, nvec);
  }
  if (!ierr) ierr = HybGAMGDataDummy(pc, h, columns, nvec, nvec);
  if (!ierr && h->setup.hostdata) ierr = HybGAMGDataToHost(pc, h, columns);
  ierr = HybGAMGAgree(pc, ierr);
  if (ierr) (void)MatDestroy(P);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGProlongator(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  HybGAMG *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->setup.ours) {
    PetscCall((*h->petsc.ops.prolongator)(pc, A, lists, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->injection.now) {
    HYB_GAMG_PHASE(HYB_PHASE_TENTATIVE, A, HybGAMGInjection(pc, h, A, P));
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
  HYB_GAMG_PHASE(HYB_PHASE_TENTATIVE, A, HybGAMGTentative(pc, h, A, P));
  PetscCall(PetscLogEventEnd(EVENT(PROLB), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(PROL), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGOptProlongator(PC pc, Mat A, Mat *P)
{
  PC_MG              *mg     = (PC_MG *)pc->data;
  const PC_GAMG      *gamg   = HybGAMGData(pc);
  const PetscInt      l      = gamg->current_level;
  const PetscLogEvent matmat = petsc_gamg_setup_matmat_events[l][2];
  PetscReal           emin = gamg->emin, emax = gamg->emax;
  PetscErrorCode      gone = PETSC_SUCCESS; /* of memory that this process could not give back */
  HybGAMG            *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->setup.ours) {
    PetscCall((*h->petsc.ops.optprolongator)(pc, A, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->injection.now) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(EVENT(OPT), 0, 0, 0, 0));
  if (h->nsmooths && !(emax > 0)) PetscCall(HybGAMGEstimate(pc, h, A, &emin, &emax));
  mg->min_eigen_DinvA[l] = h->nsmooths && gamg->use_sa_esteig ? emin : 0;
  mg->max_eigen_DinvA[l] = h->nsmooths && gamg->use_sa_esteig ? emax : 0;
  for (PetscInt k = 0; k < h->nsmooths; k++) {
    PetscCheck(emax != 0.0, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "The largest singular value of the operator with Jacobi, by which the prolongator is smoothed, was computed as zero (level %" PetscInt_FMT ", %" PetscInt_FMT " rows)", l, A->rmap->n);
    PetscCall(PetscLogEventBegin(EVENT(OPTSM), 0, 0, 0, 0));
    PetscCall(PetscLogEventBegin(matmat, 0, 0, 0, 0));
    if (!k) {
      Mat smoothed = NULL;

      HYB_GAMG_PHASE(HYB_PHASE_SMOOTH, A, (*h->setup.way->prolongator)(h, A, 1.4 / emax, &smoothed));
      gone = MatDestroy(P);
      *P   = smoothed;
    } else
      PetscCall(HybGAMGSmoothMore(A, 1.4 / emax, P));
    PetscCall(PetscLogEventEnd(matmat, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(EVENT(OPTSM), 0, 0, 0, 0));
  }
  h->kept.q = NULL;
  gone      = HybErrorFirst(gone, HybArenaReset(&h->kept.arena));
  PetscCall(HybGAMGAgree(pc, HybErrorFirst(gone, HybParAggDestroy(&h->par))));
  PetscCall(PetscLogEventEnd(EVENT(OPT), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
