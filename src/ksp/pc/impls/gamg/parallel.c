/*
  A level of smoothed aggregation on several processes: what of level.c is another there. The rules are the room
  paragg's. Coarse levels' near-null vectors are in pc_gamg->data too, since PETSc reads them where it gathers a level
  on fewer processes.

  All functions are collective, and decide alike.
*/
#include "gamgimpl.h"

#if HYB_GAMG
/* does every process say the same? ierr: an error of this one's */
static PetscErrorCode HybGAMGSeveralAlike(PC pc, PetscErrorCode ierr, PetscInt n, const PetscInt *says, PetscBool *alike)
{
  PetscInt64 most[18];

  PetscFunctionBegin;
  PetscCheck(2 * n <= (PetscInt)PETSC_STATIC_ARRAY_LENGTH(most), PETSC_COMM_SELF, PETSC_ERR_PLIB, "No room for %" PetscInt_FMT " numbers", n);
  for (PetscInt k = 0; k < n; k++) {
    most[k]     = says[k];
    most[n + k] = -(PetscInt64)says[k];
  }
  PetscCall(HybAgreeMax(PetscObjectComm((PetscObject)pc), ierr, "The setup of GAMG", 2 * n, most));
  *alike = PETSC_TRUE;
  for (PetscInt k = 0; k < n; k++)
    if (most[k] != -most[n + k]) *alike = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has every process as many unknowns a vertex, and near-null vectors, has each a threshold or none, which decides what
   comes next, and are its rows in order? */
static PetscErrorCode HybGAMGSeveralBegin(PC pc, HybGAMG *h, Mat A, const char **why)
{
  PetscInt       says[] = {HybGAMGData(pc)->data_cell_rows, HybGAMGData(pc)->data_cell_cols, HybGAMGHasThreshold(pc), 0};
  PetscBool      alike = PETSC_FALSE, ascends = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  h->block = (HybAggBlock){says[0], says[1]};
  PetscCall(HybMatGetParExec(A, &h->exec));
  ierr    = HybMatAscendsPar(A, &h->exec, &ascends);
  says[3] = ascends;
  PetscCall(HybGAMGSeveralAlike(pc, ierr, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(says), says, &alike));
  if (alike && ascends) PetscFunctionReturn(PETSC_SUCCESS);
  *why = HYB_GAMG_DISORDER;
  if (ascends) *why = "processes have different numbers of near-null vectors, a threshold on one alone, or rows of another one are out of order";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The witness is a small matrix of each process's own: by which rules does PETSc coarsen, as all of them see it? ask:
   also which edges it leaves, and whether it adds the transpose's. */
static PetscErrorCode HybGAMGSeveralRules(PC pc, HybGAMG *h, Mat A, PetscBool ask, PetscBool *unites, const char **why)
{
  PetscBool      edges = PETSC_FALSE, alike = PETSC_FALSE;
  Mat            local;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *unites = PETSC_FALSE;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &local, NULL, NULL));
  ierr = HybGAMGWitness(pc, h, local, ask, &edges);
  if (!ierr) ierr = HybGAMGEdges(pc, h, A);
  if (!ierr) ierr = HybGAMGUnites(h, A, unites);
  {
    const PetscInt says[] = {edges, h->rules.hops, h->rules.distance, h->rules.order, h->nsmooths, HybGAMGHasThreshold(pc), h->edges.symmetrize, h->edges.diagonal, *unites};

    PetscCall(HybGAMGSeveralAlike(pc, ierr, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(says), says, &alike));
  }
  if (!alike)
    *why = "processes have different options";
  else
    HybGAMGWhy(edges, h, why);
  if (!HYB_KNOWN_GAMG_MISK && !*why && h->rules.distance > 1) *why = "MIS-k on several processes, and nobody has compared what this PETSc does on them";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGSeveralGraph(PC pc, HybGAMG *h, Mat A, PetscBool unite, const char **wrong)
{
  const HybExec  *x      = &h->exec;
  const PetscBool filter = HybGAMGHasThreshold(pc);
  HybHalo         halo   = NULL;
  HybParAggFound  found;
  HybParCSR       csr;
  PetscErrorCode  ierr = PETSC_SUCCESS, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&csr, sizeof(csr)));
  /* that of A's products with vectors, which eigenvalues and smoothers need in any case */
  if (x->backend->device && h->block.bs == 1 && !unite) ierr = HybMatParHalo(A, &halo);
  if (!ierr) ierr = HybMatGetParCSR(A, x, filter, &csr);
  csr.rows = A->rmap->range;
  ierr     = HybParAggCreate(PetscObjectComm((PetscObject)A), x, ierr, &csr, halo, &h->block, unite, filter ? &h->edges : NULL, &found, &h->par);
  later    = HybMatRestoreParCSR(A, x, &csr);
  PetscCall(ierr);
  PetscCall(HybGAMGAgree(pc, later));
  if (filter && found.proper) PetscCall(HybGAMGInfoEdges(pc, h, found.left, found.whole, found.close));
  if (!found.proper) *wrong = h->block.bs > 1 ? "a pattern that is not symmetric, or entries of several vertices that PETSc may take for one block" : "a pattern that is not symmetric";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGSeveralLook(PC pc, HybGAMG *h, Mat A, PetscBool unites, PetscBool *sided, const char **wrong)
{
  PetscFunctionBegin;
  PetscCall(HybGAMGSeveralGraph(pc, h, A, PETSC_FALSE, wrong));
  *sided = (PetscBool) !!*wrong; /* perhaps: nobody has told them apart */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGSeveralAgain(PC pc, HybGAMG *h, Mat A, const char **wrong)
{
  PetscFunctionBegin;
  PetscCall(HybGAMGAgree(pc, HybParAggDestroy(&h->par)));
  PetscCall(HybGAMGSeveralGraph(pc, h, A, PETSC_TRUE, wrong));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGSeveralAggregate(HybGAMG *h, Mat A)
{
  PetscFunctionBegin;
  h->agg.n = A->rmap->n / h->block.bs;
  PetscCall(HybParAggFind(h->par, &h->rules, &h->agg.nc, &h->total, &h->agg.rounds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGSeveralTentative(HybGAMG *h, PetscErrorCode before, HybArena *work, HybScalar *coarse, PetscInt *doubtful)
{
  PetscFunctionBegin;
  PetscCall(HybParAggTentative(h->par, before, h->near.b, HybGAMGGetFactor(), &h->block.bs, coarse, doubtful));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGSeveralProlongator(HybGAMG *h, Mat A, PetscReal omega, Mat *P)
{
  const HybExec *x = &h->exec;
  HybArena       out[2];
  HybParCSR      a, p;
  PetscErrorCode ierr = PETSC_SUCCESS, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&a, sizeof(a)));
  for (int k = 0; k < 2; k++) out[k] = HybArenaOn(x);
  if (omega) ierr = HybMatGetParCSR(A, x, PETSC_TRUE, &a);
  ierr  = HybParAggProlongator(h->par, ierr, omega ? &a : NULL, omega, out, &p);
  later = omega ? HybMatRestoreParCSR(A, x, &a) : PETSC_SUCCESS;
  if (!ierr) ierr = HybMatCreateFromParCSR(A, x, later, out, &p, h->block.bs, h->block.nvec, P);
  for (int k = 0; k < 2; k++) (void)HybArenaReset(&out[k]);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybGAMGWay HybGAMGSeveral = {.begin = HybGAMGSeveralBegin, .look = HybGAMGSeveralLook, .again = HybGAMGSeveralAgain, .rules = HybGAMGSeveralRules, .aggregate = HybGAMGSeveralAggregate, .tentative = HybGAMGSeveralTentative, .prolongator = HybGAMGSeveralProlongator};
#endif
