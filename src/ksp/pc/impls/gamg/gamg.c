/*
  PCGAMG on matrices of the type. PETSc's setup stays the driver: it makes the levels, the Galerkin products, the
  smoothers, and reads all options. While it runs, the functions that build the graph, find the aggregates and make
  the prolongator are replaced by ours (level.c), which do the same by the rooms of src/sparse, on the device where
  the matrix is there.

    PCCreate_GAMG_Hyb:  PCCreate_GAMG(pc), then setup, reset, destroy and setfromoptions of pc->ops are wrapped
    PCSetUp_GAMG_Hyb:   if all that is known of this PC is covered:
                          replace creategraph, coarsen, prolongator, optprolongator, createdefaultdata in *pc_gamg->ops
                          PETSc's PCSetUp_GAMG(pc)
                          put them back, whatever it returned
                        else PCSetUp_GAMG(pc)

  What is covered is a list of what was proven; all else runs PETSc's own code. Level by level the same is asked of
  what only shows there: the options hidden in PETSc's private data (witness.c) and the pattern (level.c). From the
  first level that is not covered on PETSc's functions do the rest.

  With -pc_gamg_aijhybridgpu 0, under the PC's prefix, everything is PETSc's.
*/
#include "gamgimpl.h"
#include "../../../smoothers.h"

#if HYB_GAMG
PETSC_EXTERN PetscErrorCode PCCreate_GAMG(PC); /* exported; no header has it */

/* PETSc's functions of its aggregation, as the first PC had them: others in their places are not ours to replace */
static struct {
  PetscBool         known;
  struct _PCGAMGOps ops;
} Fingerprint;

/* Memory of the setup in progress. Goes on after an error and reports the first one. */
static PetscErrorCode HybGAMGRelease(HybGAMG *h)
{
  const PetscErrorCode ierr[] = {HybArenaReset(&h->near.arena), HybArenaReset(&h->kept.arena), HybArenaReset(&h->graph.arena), HybParAggDestroy(&h->par), MatDestroy(&h->injection.P)};

  PetscFunctionBegin;
  h->near.b      = NULL;
  h->kept.q      = NULL;
  h->setup.dummy = NULL;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ierr); k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGDestroy(void *pointer)
{
  HybGAMG *h = (HybGAMG *)pointer;

  PetscFunctionBegin;
  PetscCall(HybGAMGRelease(h));
  PetscCall(PetscFree(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What prints matrices that our way never makes, or that the witness makes besides */
static PetscErrorCode HybGAMGViews(const char **why)
{
  static const char *const names[] = {"-mat_view", "-is_view", "-mat_graph_view", "-mat_filter_graph_view", "-misk_aggregation_view", "-pc_gamg_agg_view_initial_prolongation", "-pc_gamg_agg_view_prolongation"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(names) && !*why; k++) {
    PetscBool set;

    PetscCall(PetscOptionsHasName(NULL, NULL, names[k], &set));
    if (set) *why = names[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *why is NULL where all that can be known before the first level is covered; ours: the matrix is of the type */
static PetscErrorCode HybGAMGCovered(PC pc, HybGAMG *h, PetscBool *ours, const char **why)
{
  const PC_GAMG           *gamg = HybGAMGData(pc);
  const struct _PCGAMGOps *o = gamg->ops, *f = &Fingerprint.ops;
  PetscMPIInt              size;
  const PetscBool          seq   = HybMatIsSeq(pc->pmat);
  PetscBool                bound = PETSC_FALSE;
  Mat                      local = NULL;

  PetscFunctionBegin;
  *why = NULL;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  PetscCall(HybMatGetLocal(pc->pmat, &local));
  *ours = (PetscBool)(seq || local);
  /* a PETSc without devices says so of every matrix */
  if (PetscDefined(HAVE_DEVICE)) PetscCall(MatBoundToCPU(pc->pmat, &bound));
  if (!h->on)
    *why = "-pc_gamg_aijhybridgpu is off";
  else if (size > 1 ? seq || !local : !seq)
    *why = "the matrix is of another type";
  else if (bound)
    *why = "the matrix is bound to the CPU";
  else if (size > 1 && !HYB_KNOWN_GAMG_PARALLEL) /* the witness is each process's own: it does not tell */
    *why = "several processes, and nobody has compared what this PETSc does on them";
  else if (!Fingerprint.known || o->creategraph != f->creategraph || o->coarsen != f->coarsen || o->prolongator != f->prolongator || o->optprolongator != f->optprolongator || o->createlevel != f->createlevel || o->createdefaultdata != f->createdefaultdata)
    *why = "the functions of the PC are not those of aggregation";
  else if (gamg->use_aggs_in_asm || gamg->asm_hem_aggs)
    *why = "aggregates for ASM";
  else if (gamg->repart || gamg->cpu_pin_coarse_grids)
    *why = "levels that move";
  #if HYB_HAS_PROLONG_FILTER
  else if (gamg->prolongator_filter != 0)
    *why = "a filter of the prolongator";
  #endif
  if (!*why) PetscCall(HybGAMGViews(why));
  /* a program may have replaced the block of one process */
  PetscCall(HybGAMGAgreeWhy(pc, PETSC_SUCCESS, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc will only renew the Galerkin products */
static PetscBool HybGAMGRenews(PC pc)
{
  return (PetscBool)(pc->setupcalled && HybGAMGData(pc)->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN);
}

static PetscErrorCode PCSetUp_GAMG_Hyb(PC pc)
{
  HybGAMG       *h;
  const char    *why  = NULL;
  PetscBool      ours = PETSC_FALSE;
  PC_GAMG       *gamg;
  PetscMPIInt    size;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  gamg = HybGAMGData(pc);
  if (!HybGAMGRenews(pc)) {
    PetscCall(HybGAMGCovered(pc, h, &ours, &why));
    if (why) PetscCall(PetscInfo(pc, "The setup is PETSc's own: %s\n", why));
    if (why && ours) PetscCall(HybCountGAMG(HYB_GAMG_SETUPS_LEFT));
  }
  if (HybGAMGRenews(pc) || why) {
    PetscCall((*h->petsc.setup)(pc));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  PetscCall(PetscMemzero(&h->setup, sizeof(h->setup)));
  PetscCall(PetscMemzero(&h->asked, sizeof(h->asked)));
  h->setup.way  = size > 1 ? &HybGAMGSeveral : &HybGAMGOne;
  h->setup.ours = PETSC_TRUE;
  /* Without PCSetFromOptions() the factors are 0. Where PETSc has CUDA, createlevel then moves the second level between
     processes and reads its vectors. */
  h->setup.hostdata            = (PetscBool)(size > 1 || (PetscDefined(HAVE_CUDA) && !gamg->level_reduction_factors[0]));
  h->petsc.ops                 = *gamg->ops;
  gamg->ops->createdefaultdata = HybGAMGCreateDefaultData;
  gamg->ops->creategraph       = HybGAMGCreateGraph;
  gamg->ops->coarsen           = HybGAMGCoarsen;
  gamg->ops->prolongator       = HybGAMGProlongator;
  gamg->ops->optprolongator    = HybGAMGOptProlongator;
  h->injection.now             = PETSC_FALSE;
  ierr                         = HybGAMGInjectionBegin(pc, h);
  if (!ierr) ierr = (*h->petsc.setup)(pc);
  (void)HybGAMGInjectionEnd(pc, h);
  if (!ierr) ierr = HybGAMGInjectionFinish(h);
  *gamg->ops = h->petsc.ops;
  /* PETSc would take them for the vectors of the next setup */
  if ((h->setup.dummy && gamg->data == h->setup.dummy) || (ierr && h->setup.replaced)) {
    (void)PetscFree(gamg->data);
    gamg->data_sz = 0;
  }
  PetscCall(HybErrorFirst(ierr, HybGAMGRelease(h)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_GAMG_Hyb(PC pc)
{
  HybGAMG *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  PetscCall(HybMGForget(pc));
  PetscCall((*h->petsc.reset)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_GAMG_Hyb(PC pc)
{
  HybGAMG *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  PetscCall(HybMGForget(pc));
  PetscCall((*h->petsc.destroy)(pc));
  PetscCall(PetscObjectCompose((PetscObject)pc, HYB_GAMG_NAME, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetFromOptions_GAMG_Hyb(PC pc, HybOptionItems PetscOptionsObject)
{
  HybGAMG *h;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  PetscCall((*h->petsc.setfromoptions)(pc, PetscOptionsObject));
  PetscOptionsHeadBegin(PetscOptionsObject, "GAMG of libaijhybridgpu");
  PetscCall(PetscOptionsBool("-pc_gamg_aijhybridgpu", "Aggregates and prolongators of matrices of the type by libaijhybridgpu", "MATAIJHYBRIDGPU", h->on, &h->on, NULL));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_GAMG_Hyb(PC pc)
{
  HybGAMG *h;

  PetscFunctionBegin;
  PetscCall(PCCreate_GAMG(pc));
  if (!Fingerprint.known) {
    Fingerprint.ops   = *HybGAMGData(pc)->ops;
    Fingerprint.known = PETSC_TRUE;
  }
  PetscCall(PetscNew(&h));
  h->on                   = PETSC_TRUE;
  h->petsc.setup          = pc->ops->setup;
  h->petsc.reset          = pc->ops->reset;
  h->petsc.destroy        = pc->ops->destroy;
  h->petsc.setfromoptions = pc->ops->setfromoptions;
  h->near.arena           = HybArenaOn(&HybExecHost);
  h->kept.arena           = HybArenaOn(&HybExecHost);
  h->graph.arena          = HybArenaOn(&HybExecHost);
  PetscCall(HybContainerCompose((PetscObject)pc, HYB_GAMG_NAME, h, HybGAMGDestroy));
  pc->ops->setup          = PCSetUp_GAMG_Hyb;
  pc->ops->reset          = PCReset_GAMG_Hyb;
  pc->ops->destroy        = PCDestroy_GAMG_Hyb;
  pc->ops->setfromoptions = PCSetFromOptions_GAMG_Hyb;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc may be another one after the next PetscInitialize(), or be loaded elsewhere */
static PetscErrorCode HybGAMGFinalize(void)
{
  PetscFunctionBegin;
  Fingerprint.known = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode HybGAMGRegister(void)
{
#if HYB_GAMG
  #define EVENT(phase, event, text) event,
  static const char *const events[HYB_PHASES] = {HYB_PHASE_LIST(EVENT)};
  #undef EVENT
#endif

  PetscFunctionBegin;
#if HYB_GAMG
  PetscCall(KSPInitializePackage());
  PetscCall(PCRegister(PCGAMG, PCCreate_GAMG_Hyb));
  for (int k = 0; k < HYB_PHASES; k++) PetscCall(PetscLogEventRegister(events[k], PC_CLASSID, &HybGAMGEvents[k]));
  PetscCall(PetscRegisterFinalize(HybGAMGFinalize));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
