/*
  One level of smoothed aggregation: what stands in the places of PETSc's creategraph, coarsen, prolongator and
  optprolongator while PCSetUp_GAMG() runs. What they hand to PETSc between them is what the driver looks at and no
  more:

    creategraph    -> A itself, referenced: the graph of a scalar problem is A's pattern. Here it is decided whether the level is ours.
    coarsen        -> an empty list; the aggregates stay in the arena h->keep, where the level executes
    prolongator    -> P0, or, where it will be smoothed, a matrix of its sizes without contents
                      pc_gamg->data becomes one entry; the next level's near-null vector stays in h->near
    optprolongator -> P, and the eigenvalues that PETSc's smoothers take

  From the first level on that is not ours the saved functions of PETSc's do the work, and pc_gamg->data gets its
  contents back before.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #include <petscdm.h>

  #define EVENT(name) petsc_gamg_setup_events[GAMG_##name]

static PetscErrorCode HybGAMGCopy(const HybExec *from, const HybExec *to, void *dst, const void *src, size_t bytes)
{
  PetscFunctionBegin;
  if (from->backend->device) {
    PetscCall(from->backend->copy(from, dst, src, bytes, to->backend->device ? HYB_COPY_DEVICE_TO_DEVICE : HYB_COPY_DEVICE_TO_HOST));
    PetscCall(from->backend->sync(from));
  } else if (to->backend->device)
    PetscCall(to->backend->copy(to, dst, src, bytes, HYB_COPY_HOST_TO_DEVICE));
  else
    PetscCall(PetscMemcpy(dst, src, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's functions will read pc_gamg->data, whose contents are n entries here */
static PetscErrorCode HybGAMGDataToHost(PC pc, HybGAMG *h, PetscInt n)
{
  const HybExec host = {&HybBackendHost, NULL, HYB_MEM_HOST};
  PC_GAMG      *gamg = HybGAMGData(pc);
  PetscReal    *data;

  PetscFunctionBegin;
  if (!h->dummy || gamg->data != h->dummy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)n + 1, &data));
  if (h->b) {
    PetscErrorCode ierr = HybGAMGCopy(&h->near.exec, &host, data, h->b, (size_t)n * sizeof(*data));

    if (ierr) (void)PetscFree(data);
    PetscCall(ierr);
  } else
    for (PetscInt v = 0; v < n; v++) data[v] = 1.0;
  PetscCall(PetscFree(gamg->data));
  gamg->data    = data;
  gamg->data_sz = n;
  h->dummy      = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* pc_gamg->data stands for a vector of n entries that is kept here */
static PetscErrorCode HybGAMGDataDummy(PC pc, HybGAMG *h, PetscInt n)
{
  PC_GAMG *gamg = HybGAMGData(pc);

  PetscFunctionBegin;
  PetscCall(PetscFree(gamg->data));
  PetscCall(PetscCalloc1(1, &gamg->data));
  gamg->data_sz        = n;
  gamg->data_cell_rows = 1;
  gamg->data_cell_cols = 1;
  h->dummy             = gamg->data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the program, or a field of its DM, say which vectors are near the null space? */
static PetscErrorCode HybGAMGHasNearNull(PC pc, Mat A, PetscBool *has)
{
  MatNullSpace near;
  DM           dm;
  PetscInt     nfields = 0;

  PetscFunctionBegin;
  PetscCall(MatGetNearNullSpace(A, &near));
  PetscCall(PCGetDM(pc, &dm));
  if (!dm) PetscCall(MatGetDM(A, &dm));
  if (dm && !near) PetscCall(DMGetNumFields(dm, &nfields));
  *has = (PetscBool)(near || nfields);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCreateDefaultData(PC pc, Mat A)
{
  HybGAMG  *h;
  PetscBool has = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  PetscCall(HybGAMGHasNearNull(pc, A, &has));
  /* without reuse of the interpolation PETSc copies the data for the next setup */
  if (has || !HybGAMGData(pc)->reuse_prol)
    PetscCall((*h->ops.createdefaultdata)(pc, A));
  else
    PetscCall(HybGAMGDataDummy(pc, h, A->rmap->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the near-null vector to where the level executes: from PETSc's array, or from where the finer level left it */
static PetscErrorCode HybGAMGNear(PC pc, HybGAMG *h, PetscInt n)
{
  const HybExec host = {&HybBackendHost, NULL, HYB_MEM_HOST}, *from = &host;
  const void   *src = NULL;
  HybArena      near;
  HybScalar    *b;

  PetscFunctionBegin;
  if (!h->dummy) { /* it is PETSc's; most often all ones, which need no array */
    const PetscReal *data = HybGAMGData(pc)->data;
    PetscInt         v    = 0;

    while (v < n && data[v] == 1.0) v++;
    if (v < n)
      src = data;
    else
      h->b = NULL;
  } else if (h->b && h->near.exec.backend != h->exec.backend) {
    src  = h->b;
    from = &h->near.exec;
  }
  if (!src) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaInit(&near, &h->exec));
  {
    PetscErrorCode ierr = HybArenaAlloc(&near, HYB_WORK(&h->exec), n, sizeof(*b), &b);

    if (!ierr) ierr = HybGAMGCopy(from, &h->exec, b, src, (size_t)n * sizeof(*b));
    if (ierr) (void)HybArenaReset(&near);
    PetscCall(ierr);
  }
  PetscCall(HybArenaReset(&h->near));
  h->near = near;
  h->b    = b;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGLook(HybGAMG *h, Mat A, HybAggLook *look)
{
  HybCSR         csr;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&work, &h->exec));
  PetscCall(HybMatGetCSR(A, &h->exec, PETSC_FALSE, &csr));
  ierr = (*h->exec.backend->agg->look)(&h->exec, &work, &csr, look);
  (void)HybArenaReset(&work);
  PetscCall(HybMatRestoreCSR(A, &h->exec, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the level ours? *why is NULL if it is. */
static PetscErrorCode HybGAMGDecide(PC pc, HybGAMG *h, Mat A, const char **why)
{
  const PC_GAMG *gamg = HybGAMGData(pc);
  HybAggLook     look;
  PetscBool      seq;
  PetscInt       bs;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *why = NULL;
  PetscCall(HybMatIsSeq(A, &seq));
  PetscCall(MatGetBlockSize(A, &bs));
  if (!seq)
    *why = "the matrix is of another type";
  else if (bs != 1)
    *why = "blocks of unknowns";
  else if (gamg->data_cell_rows != 1 || gamg->data_cell_cols != 1)
    *why = "several near-null vectors";
  else if (gamg->threshold[gamg->current_level] >= 0)
    *why = "a threshold for the graph";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetExec(A, &h->exec));
  if (!h->exec.backend->agg) h->exec = (HybExec){&HybBackendHost, NULL, HYB_MEM_HOST};
  PetscCall(HybGAMGWitness(pc, h, A, &h->hops, &h->nsmooths));
  if (!h->hops)
    *why = "the options ask for other aggregates";
  else if (h->nsmooths < 0)
    *why = "the options ask for another prolongator";
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(HYB_GAMGLook, A, 0, 0, 0));
  ierr = HybGAMGLook(h, A, &look);
  PetscCall(PetscLogEventEnd(HYB_GAMGLook, A, 0, 0, 0));
  PetscCall(ierr);
  if (look.nodiagonal)
    *why = "rows without an entry of the diagonal";
  else if (!look.symmetric)
    *why = "a pattern that is not symmetric";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCreateGraph(PC pc, Mat A, Mat *G)
{
  HybGAMG    *h;
  const char *why = NULL;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (h->ours) PetscCall(HybGAMGDecide(pc, h, A, &why));
  if (why) {
    h->ours = PETSC_FALSE;
    PetscCall(PetscInfo(pc, "Level %" PetscInt_FMT " and those below are PETSc's own: %s\n", HybGAMGData(pc)->current_level, why));
    PetscCall(HybGAMGDataToHost(pc, h, A->rmap->n));
    PetscCall(HybArenaReset(&h->near));
    h->b = NULL;
    if (!HybGAMGData(pc)->current_level) PetscCall(HybCountGAMG(HYB_GAMG_SETUPS_LEFT));
  }
  if (!h->ours) {
    PetscCall(HybCountGAMG(HYB_GAMG_LEVELS_LEFT));
    PetscCall((*h->ops.creategraph)(pc, A, G));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!HybGAMGData(pc)->current_level) PetscCall(HybCountGAMG(HYB_GAMG_SETUPS));
  PetscCall(HybCountGAMG(HYB_GAMG_LEVELS));
  PetscCall(HybGAMGNear(pc, h, A->rmap->n));
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
  HybCSR         csr;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaReset(&h->keep));
  PetscCall(HybArenaInit(&h->keep, &h->exec));
  PetscCall(HybArenaInit(&work, &h->exec));
  PetscCall(HybMatGetCSR(G, &h->exec, PETSC_FALSE, &csr));
  ierr = (*h->exec.backend->agg->aggregates)(&h->exec, &h->keep, &work, &csr, h->hops, &h->agg);
  (void)HybArenaReset(&work);
  PetscCall(HybMatRestoreCSR(G, &h->exec, &csr));
  PetscCall(ierr);
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
  PetscCall(PetscLogEventBegin(EVENT(COARSEN), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(MIS), 0, 0, 0, 0));
  if (h->hops == 2) { /* nothing is squared, two steps along the graph do the same */
    PetscCall(PetscLogEventBegin(square, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(square, 0, 0, 0, 0));
  }
  PetscCall(PetscLogEventBegin(HYB_GAMGAggregates, *G, 0, 0, 0));
  ierr = HybGAMGAggregate(h, *G);
  PetscCall(PetscLogEventEnd(HYB_GAMGAggregates, *G, 0, 0, 0));
  PetscCall(ierr);
  PetscCall(PetscInfo(pc, "%" PetscInt_FMT " aggregates of %" PetscInt_FMT " vertices, by %d hops in %d rounds\n", h->agg.nc, h->agg.n, h->hops, h->agg.rounds));
  PetscCall(PetscCDCreate(0, lists));
  PetscCall(PetscLogEventEnd(EVENT(MIS), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(COARSEN), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* q, the next level's near-null vector in place of this one's */
static PetscErrorCode HybGAMGTentative(HybGAMG *h, HybArena *work)
{
  const HybExec *x = &h->exec;
  HybArena       near;
  HybScalar     *coarse = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&near, x));
  PetscCall(HybArenaAlloc(&h->keep, HYB_WORK(x), h->agg.n, sizeof(*h->q), &h->q));
  ierr = HybArenaAlloc(&near, HYB_WORK(x), h->agg.nc, sizeof(*coarse), &coarse);
  if (!ierr) ierr = (*x->backend->agg->tentative)(x, work, &h->agg, h->b, h->q, coarse);
  if (ierr) (void)HybArenaReset(&near);
  PetscCall(ierr);
  PetscCall(HybArenaReset(&h->near));
  h->near = near;
  h->b    = coarse;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGUnsmoothed(HybGAMG *h, HybArena *work, Mat A, Mat *P)
{
  const HybExec *x = &h->exec;
  HybArena       arrays;
  HybCSR         csr;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&arrays, x));
  ierr = (*x->backend->agg->unsmoothed)(x, &arrays, work, &h->agg, h->q, &csr);
  if (!ierr) ierr = HybMatCreateFromCSR(A, x, &arrays, &csr, 1, 1, P);
  (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGProlongator(PC pc, Mat A, PetscCoarsenData *lists, Mat *P)
{
  HybGAMG       *h;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  if (!h->ours) {
    PetscCall((*h->ops.prolongator)(pc, A, lists, P));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogEventBegin(EVENT(PROL), 0, 0, 0, 0));
  *P = NULL;
  if (!h->agg.nc) {
    PetscCall(PetscInfo(pc, "No selected points on coarse grid\n"));
    PetscCall(PetscLogEventEnd(EVENT(PROL), 0, 0, 0, 0));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscInfo(pc, "New grid %" PetscInt_FMT " nodes\n", h->agg.nc));
  PetscCall(PetscLogEventBegin(EVENT(PROLA), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(PROLA), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(EVENT(PROLB), 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(HYB_GAMGTentative, A, 0, 0, 0));
  PetscCall(HybArenaInit(&work, &h->exec));
  ierr = HybGAMGTentative(h, &work);
  if (!ierr && !h->nsmooths) ierr = HybGAMGUnsmoothed(h, &work, A, P);
  (void)HybArenaReset(&work);
  PetscCall(PetscLogEventEnd(HYB_GAMGTentative, A, 0, 0, 0));
  PetscCall(ierr);
  if (!*P) { /* for the driver, which asks for the block size */
    PetscCall(MatCreate(PetscObjectComm((PetscObject)A), P));
    PetscCall(MatSetSizes(*P, h->agg.n, h->agg.nc, h->agg.n, h->agg.nc));
    PetscCall(MatSetBlockSizes(*P, 1, 1));
  }
  PetscCall(HybGAMGDataDummy(pc, h, h->agg.nc));
  if (h->hostdata) PetscCall(HybGAMGDataToHost(pc, h, h->agg.nc));
  PetscCall(PetscLogEventEnd(EVENT(PROLB), 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(EVENT(PROL), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P = P0 - 1.4/emax D^-1 A P0 */
static PetscErrorCode HybGAMGSmoothed(HybGAMG *h, Mat A, PetscReal emax, Mat *P)
{
  const HybExec *x = &h->exec;
  HybArena       arrays, work;
  HybCSR         a, p;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&arrays, x));
  PetscCall(HybArenaInit(&work, x));
  PetscCall(HybMatGetCSR(A, x, PETSC_TRUE, &a));
  ierr = (*x->backend->agg->smoothed)(x, &arrays, &work, &a, &h->agg, h->q, 1.4 / emax, &p);
  (void)HybArenaReset(&work);
  if (ierr) (void)HybArenaReset(&arrays);
  PetscCall(HybMatRestoreCSR(A, x, &a));
  PetscCall(ierr);
  ierr = HybMatCreateFromCSR(A, x, &arrays, &p, 1, 1, P);
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
  PetscCall(PetscLogEventBegin(EVENT(OPT), 0, 0, 0, 0));
  if (h->nsmooths && !(emax > 0)) PetscCall(HybGAMGEstimate(pc, A, &h->exec, &emin, &emax));
  mg->min_eigen_DinvA[l] = h->nsmooths && gamg->use_sa_esteig ? emin : 0;
  mg->max_eigen_DinvA[l] = h->nsmooths && gamg->use_sa_esteig ? emax : 0;
  if (h->nsmooths) {
    Mat            smoothed = NULL;
    PetscErrorCode ierr;

    PetscCheck(emax != 0.0, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "The largest singular value of the operator with Jacobi, by which the prolongator is smoothed, was computed as zero (level %" PetscInt_FMT ", %" PetscInt_FMT " rows)", l, A->rmap->n);
    PetscCall(PetscLogEventBegin(EVENT(OPTSM), 0, 0, 0, 0));
    PetscCall(PetscLogEventBegin(matmat, 0, 0, 0, 0));
    PetscCall(PetscLogEventBegin(HYB_GAMGSmooth, A, 0, 0, 0));
    ierr = HybGAMGSmoothed(h, A, emax, &smoothed);
    PetscCall(PetscLogEventEnd(HYB_GAMGSmooth, A, 0, 0, 0));
    PetscCall(ierr);
    PetscCall(MatDestroy(P));
    *P = smoothed;
    PetscCall(PetscLogEventEnd(matmat, 0, 0, 0, 0));
    PetscCall(PetscLogEventEnd(EVENT(OPTSM), 0, 0, 0, 0));
  }
  h->q = NULL;
  PetscCall(HybArenaReset(&h->keep));
  PetscCall(PetscLogEventEnd(EVENT(OPT), 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
