/*
  A level of smoothed aggregation on one process: what of level.c is another there. The rules are the room agg's.
*/
#include "gamgimpl.h"

#if HYB_GAMG
static PetscErrorCode HybGAMGOneBegin(PC pc, HybGAMG *h, Mat A, const char **why)
{
  PetscBool ascends;

  PetscFunctionBegin;
  h->block = (HybAggBlock){HybGAMGData(pc)->data_cell_rows, HybGAMGData(pc)->data_cell_cols};
  PetscCall(HybMatGetExec(A, &h->exec));
  if (!h->exec.backend->agg) h->exec = HybExecHost;
  PetscCall(HybMatAscends(A, &h->exec, &ascends));
  if (!ascends) *why = HYB_GAMG_DISORDER;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the graph without weak edges, of the whole one with its weights */
static PetscErrorCode HybGAMGFilter(PC pc, HybGAMG *h, PetscBool unites, HybArena *whole, HybArena *work, const HybCSR *all, HybAggLook *look)
{
  const HybAggOps *ops  = h->exec.backend->agg;
  HybCSR           both = *all;
  HybAggFiltered   found;

  PetscFunctionBegin;
  PetscCall((*ops->filter)(&h->exec, &h->graph.arena, work, all, &h->edges, &h->graph.csr, &found));
  if (!found.paired && unites) {
    PetscCall(HybAggUnionTransposed(&h->exec, whole, work, all, &both));
    PetscCall((*ops->filter)(&h->exec, &h->graph.arena, work, &both, &h->edges, &h->graph.csr, &found));
  }
  if (!found.paired) {
    look->symmetric = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall((*ops->look)(&h->exec, work, &h->graph.csr, look));
  look->nodiagonal = found.nodiagonal;
  PetscCall(HybGAMGInfoEdges(pc, h, h->graph.csr.nnz, both.nnz, found.close));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of the graph, but for its rows without a diagonal entry, which are A's: A's pattern, or that of vertices of several
   unknowns, or what a threshold leaves, which stay in h->graph.arena */
static PetscErrorCode HybGAMGLookIn(PC pc, HybGAMG *h, PetscBool unites, HybArena *whole, HybArena *work, const HybCSR *A, HybAggLook *look)
{
  const HybAggOps *ops    = h->exec.backend->agg;
  const PetscBool  filter = HybGAMGHasThreshold(pc);

  PetscFunctionBegin;
  h->graph.own = (PetscBool)(h->block.bs > 1 || filter);
  h->graph.csr = *A;
  if (h->block.bs > 1) PetscCall((*ops->collapse)(&h->exec, filter ? whole : &h->graph.arena, work, A, h->block.bs, &h->graph.csr, &h->graph.collapsed));
  if (filter) {
    HybCSR all = h->graph.csr;

    if (h->block.bs > 1) PetscCall((*ops->weights)(&h->exec, whole, work, A, h->block.bs, &all));
    PetscCall(HybGAMGFilter(pc, h, unites, whole, work, &all, look));
  } else
    PetscCall((*ops->look)(&h->exec, work, &h->graph.csr, look));
  if (h->block.bs > 1) look->nodiagonal = h->graph.collapsed.nodiagonal;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybGAMGOneStaggered(const HybGAMG *h, const char **wrong)
{
  if (h->block.bs > 1 && HybAggStaggered(&h->graph.collapsed)) *wrong = "PETSc takes entries of several vertices for one block";
}

static PetscErrorCode HybGAMGOneLook(PC pc, HybGAMG *h, Mat A, PetscBool unites, PetscBool *sided, const char **wrong)
{
  HybCSR         csr;
  HybArena       whole, work;
  HybAggLook     look = {0};
  PetscBool      unknown;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaReset(&h->graph.arena));
  h->graph.arena = HybArenaOn(&h->exec);
  whole          = HybArenaOn(&h->exec);
  work           = HybArenaOn(&h->exec);
  PetscCall(HybMatGetCSR(A, &h->exec, HybGAMGHasThreshold(pc), &csr));
  ierr = HybGAMGLookIn(pc, h, unites, &whole, &work, &csr, &look);
  (void)HybArenaReset(&work);
  (void)HybArenaReset(&whole);
  PetscCall(HybMatRestoreCSR(A, &h->exec, &csr));
  PetscCall(ierr);
  h->graph.longest = look.longest;
  unknown          = (PetscBool)(look.nodiagonal && !HYB_KNOWN_GAMG_DIAGONAL);
  *sided           = (PetscBool)(!HybGAMGHasThreshold(pc) && !look.symmetric && !unknown);
  if (unknown)
    *wrong = "rows without a diagonal entry, and nobody has compared what this PETSc does with them";
  else if (!look.symmetric)
    *wrong = "a pattern that is not symmetric";
  else
    HybGAMGOneStaggered(h, wrong);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the graph that was looked at becomes its union with its transpose, in h->graph.arena */
static PetscErrorCode HybGAMGOneAgain(PC pc, HybGAMG *h, Mat A, const char **wrong)
{
  HybCSR         csr = h->graph.csr, both;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  work = HybArenaOn(&h->exec);
  if (!h->graph.own) PetscCall(HybMatGetCSR(A, &h->exec, PETSC_FALSE, &csr));
  csr.a = NULL;
  ierr  = HybAggUnionTransposed(&h->exec, &h->graph.arena, &work, &csr, &both);
  (void)HybArenaReset(&work);
  if (!h->graph.own) PetscCall(HybMatRestoreCSR(A, &h->exec, &csr));
  PetscCall(ierr);
  if (h->graph.own) PetscCall(HybArenaFree(&h->graph.arena, &h->graph.csr.j, &h->graph.csr.i));
  h->graph.own     = PETSC_TRUE;
  h->graph.csr     = both;
  h->graph.longest = 0;
  HybGAMGOneStaggered(h, wrong);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rules of this level, by the witness, or those of the level before. Up to 3.26 one option alone goes by levels: so
   many of the first are coarsened more aggressively. Once the rules have changed they stay. */
static PetscErrorCode HybGAMGOneRules(PC pc, HybGAMG *h, Mat A, PetscBool ask, PetscBool *unites, const char **why)
{
  const HybAggRules before = h->rules;
  PetscBool         set, symmetric, edges = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  symmetric = (PetscBool)(set && symmetric); /* then PETSc adds no transpose to the witness */
  if (ask || !h->asked.settled || h->asked.block.bs != h->block.bs || h->asked.block.nvec != h->block.nvec || h->asked.symmetric != symmetric) {
    PetscCall(HybGAMGWitness(pc, h, A, ask, &edges));
    if (h->asked.block.bs && HYB_KNOWN_GAMG_ALIKE) h->asked.settled = (PetscBool)(h->asked.settled || before.hops != h->rules.hops || before.distance != h->rules.distance || before.order != h->rules.order);
    h->asked.block     = h->block;
    h->asked.symmetric = symmetric;
  }
  HybGAMGWhy(edges, h, why);
  PetscCall(HybGAMGEdges(pc, h, A));
  PetscCall(HybGAMGUnites(h, A, unites));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGOneAggregate(HybGAMG *h, Mat A)
{
  HybCSR         csr   = h->graph.csr;
  HybAggRules    rules = h->rules;
  HybArena       work;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  rules.longest = h->graph.longest;
  work          = HybArenaOn(&h->exec);
  if (!h->graph.own) PetscCall(HybMatGetCSR(A, &h->exec, PETSC_FALSE, &csr));
  ierr = HybAggFind(&h->exec, &h->kept.arena, &work, &csr, &rules, &h->agg, HybAggIsScalar(&h->block) ? NULL : &h->kept.lists);
  (void)HybArenaReset(&work);
  if (!h->graph.own) PetscCall(HybMatRestoreCSR(A, &h->exec, &csr));
  PetscCall(ierr);
  PetscCall(HybArenaReset(&h->graph.arena));
  h->total = h->agg.nc;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGOneTentative(HybGAMG *h, PetscErrorCode before, HybArena *work, HybScalar *coarse, PetscInt *doubtful)
{
  PetscFunctionBegin;
  PetscCall(before);
  PetscCall(HybArenaAlloc(&h->kept.arena, HYB_WORK(&h->exec), (PetscCount)h->agg.n * h->block.bs * h->block.nvec, sizeof(*h->kept.q), &h->kept.q));
  PetscCall((*h->exec.backend->agg->tentative)(&h->exec, work, &h->agg, &h->kept.lists, &h->block, h->near.b, HybGAMGGetFactor(), &h->block.bs, h->kept.q, coarse, doubtful));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGOneProlongator(HybGAMG *h, Mat A, PetscReal omega, Mat *P)
{
  const HybExec   *x   = &h->exec;
  const HybAggOps *ops = x->backend->agg;
  HybArena         arrays, work;
  HybCSR           a, p;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  arrays = HybArenaOn(x);
  work   = HybArenaOn(x);
  if (omega) PetscCall(HybMatGetCSR(A, x, PETSC_TRUE, &a));
  if (omega)
    ierr = (*ops->smoothed)(x, &arrays, &work, &a, h->graph.own ? 0 : h->graph.longest, &h->agg, &h->block, h->kept.q, omega, &p);
  else
    ierr = (*ops->unsmoothed)(x, &arrays, &work, &h->agg, &h->block, h->kept.q, &p);
  (void)HybArenaReset(&work);
  if (ierr) (void)HybArenaReset(&arrays);
  if (omega) PetscCall(HybMatRestoreCSR(A, x, &a));
  PetscCall(ierr);
  ierr = HybMatCreateFromCSR(A, x, &arrays, &p, h->block.bs, h->block.nvec, P);
  (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybGAMGWay HybGAMGOne = {.begin = HybGAMGOneBegin, .look = HybGAMGOneLook, .again = HybGAMGOneAgain, .rules = HybGAMGOneRules, .aggregate = HybGAMGOneAggregate, .tentative = HybGAMGOneTentative, .prolongator = HybGAMGOneProlongator};
#endif
