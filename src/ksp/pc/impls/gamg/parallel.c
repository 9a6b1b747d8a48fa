/*
  A level of smoothed aggregation on several processes: what of level.c is another there. The rules are the room
  paragg's. Coarse levels' near-null vectors are in pc_gamg->data too, since PETSc reads them where it gathers a level
  on fewer processes.

  All functions are collective, and decide alike.
*/
#include "gamgimpl.h"

#if HYB_GAMG
PetscErrorCode HybGAMGAgreeWhy(PC pc, PetscErrorCode ierr, const char **why)
{
  int fails[2] = {ierr != PETSC_SUCCESS, *why != NULL};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, fails, 2, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)pc)));
  if (fails[0]) PetscCall(HybGAMGAgree(pc, ierr)); /* which error it is */
  if (fails[1] && !*why) *why = "another process's part of the matrix";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* does every process say the same? ierr: an error of this one's */
static PetscErrorCode HybGAMGParAlike(PC pc, PetscErrorCode ierr, PetscInt n, const PetscInt *says, PetscBool *alike)
{
  PetscInt found[19];

  PetscFunctionBegin;
  PetscCheck(2 * n < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(found), PETSC_COMM_SELF, PETSC_ERR_PLIB, "No room for %" PetscInt_FMT " numbers", n);
  for (PetscInt k = 0; k < n; k++) {
    found[k]     = says[k];
    found[n + k] = -says[k];
  }
  found[2 * n] = ierr ? -1 : 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, found, (PetscMPIInt)(2 * n + 1), MPIU_INT, MPI_MIN, PetscObjectComm((PetscObject)pc)));
  if (found[2 * n]) PetscCall(HybGAMGAgree(pc, ierr)); /* which error it is */
  *alike = PETSC_TRUE;
  for (PetscInt k = 0; k < n; k++)
    if (found[k] != -found[n + k]) *alike = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has every process as many unknowns a vertex, and near-null vectors, and are its rows in order? */
static PetscErrorCode HybGAMGParBlock(PC pc, HybGAMG *h, Mat A, const char **why)
{
  const PC_GAMG *gamg = HybGAMGData(pc);
  PetscBool      alike, ascends = PETSC_FALSE;
  PetscErrorCode ierr   = HybMatAscendsPar(A, &h->exec, &ascends);
  const PetscInt says[] = {gamg->data_cell_rows, gamg->data_cell_cols, ascends};

  PetscFunctionBegin;
  h->block = (HybAggBlock){gamg->data_cell_rows, gamg->data_cell_cols};
  PetscCall(HybGAMGParAlike(pc, ierr, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(says), says, &alike));
  if (alike && ascends) PetscFunctionReturn(PETSC_SUCCESS);
  *why = HYB_GAMG_DISORDER;
  if (ascends) *why = "processes have different numbers of near-null vectors, or rows of another one are out of order";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The witness is a small matrix of each process's own: by which rules does PETSc coarsen, as all of them see it? ask:
   also which edges it leaves, and whether it adds the transpose's. */
static PetscErrorCode HybGAMGParWitness(PC pc, HybGAMG *h, Mat A, PetscBool ask, PetscBool *unites, const char **why)
{
  PetscBool      edges = PETSC_FALSE, alike;
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

    PetscCall(HybGAMGParAlike(pc, ierr, (PetscInt)PETSC_STATIC_ARRAY_LENGTH(says), says, &alike));
  }
  if (!alike)
    *why = "processes have different options";
  else
    HybGAMGWhy(edges, h, why);
  if (!HYB_KNOWN_GAMG_MISK && !*why && h->rules.distance > 1) *why = "MIS-k on several processes, and nobody has compared what this PETSc does on them";
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGParLookIn(PC pc, HybGAMG *h, Mat A, PetscBool unite, HybParAggFound *found)
{
  const HybExec  *x      = &h->exec;
  const PetscBool filter = HybGAMGHasThreshold(pc);
  HybHalo         halo   = NULL;
  HybParCSR       csr;
  PetscErrorCode  ierr = PETSC_SUCCESS, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&csr, sizeof(csr)));
  /* that of A's products with vectors, which eigenvalues and smoothers need in any case */
  if (x->backend->device && h->block.bs == 1 && !unite) ierr = HybMatParHalo(A, &halo);
  if (!ierr) ierr = HybGAMGNear(pc, h, A->rmap->n);
  if (!ierr) ierr = HybMatGetParCSR(A, x, filter, &csr);
  csr.rows = A->rmap->range;
  ierr     = HybParAggCreate(PetscObjectComm((PetscObject)A), x, ierr, &csr, halo, &h->block, unite, filter ? &h->edges : NULL, found, &h->par);
  later    = HybMatRestoreParCSR(A, x, &csr);
  PetscCall(ierr);
  PetscCall(HybGAMGAgree(pc, later));
  if (filter && found->proper) PetscCall(HybGAMGInfoEdges(pc, h, found->left, found->whole, found->close));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* as an event; unite: with the transpose */
static PetscErrorCode HybGAMGParLook(PC pc, HybGAMG *h, Mat A, PetscBool unite, HybParAggFound *found)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(HYB_GAMGLook, A, 0, 0, 0));
  PetscCall(HybRecordPhase(HYB_PHASE_LOOK, A, PETSC_FALSE));
  ierr = HybGAMGParLookIn(pc, h, A, unite, found);
  PetscCall(HybRecordPhase(HYB_PHASE_LOOK, A, PETSC_TRUE));
  PetscCall(PetscLogEventEnd(HYB_GAMGLook, A, 0, 0, 0));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By which rules, and which graph: whether PETSc adds the transpose is asked where that matters, as on one process */
static PetscErrorCode HybGAMGParRules(PC pc, HybGAMG *h, Mat A, const char **why)
{
  const PetscBool filter = HybGAMGHasThreshold(pc);
  HybParAggFound  found;
  PetscBool       unites;

  PetscFunctionBegin;
  if (!filter) PetscCall(HybGAMGParLook(pc, h, A, PETSC_FALSE, &found));
  PetscCall(HybGAMGParWitness(pc, h, A, (PetscBool)(filter || !found.proper), &unites, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  if (filter) PetscCall(HybGAMGParLook(pc, h, A, PETSC_FALSE, &found));
  if (!found.proper) {
    PetscCall(HybGAMGAgree(pc, HybParAggDestroy(&h->par)));
    if (unites) PetscCall(HybGAMGParLook(pc, h, A, PETSC_TRUE, &found));
  }
  if (!found.proper) *why = h->block.bs > 1 ? "rows without an entry of the diagonal, a pattern that is not symmetric, or entries of several vertices that PETSc may take for one block" : "rows without an entry of the diagonal, or a pattern that is not symmetric";
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGParDecide(PC pc, HybGAMG *h, Mat A, const char **why)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = h->failed;
  if (!ierr) ierr = HybGAMGKnown(pc, h, A, PETSC_TRUE, why);
  PetscCall(HybGAMGAgreeWhy(pc, ierr, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetParExec(A, &h->exec));
  PetscCall(HybGAMGParBlock(pc, h, A, why));
  if (*why) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGAMGParRules(pc, h, A, why));
  if (*why && h->par) PetscCall(HybGAMGAgree(pc, HybParAggDestroy(&h->par)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGParProlongator(PC pc, HybGAMG *h, Mat A, PetscReal omega, Mat *P)
{
  const HybExec *x = &h->exec;
  HybArena       out[2];
  HybParCSR      a, p;
  PetscErrorCode ierr = PETSC_SUCCESS, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&a, sizeof(a)));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaInit(&out[k], x));
  if (omega) ierr = HybMatGetParCSR(A, x, PETSC_TRUE, &a);
  ierr  = HybParAggProlongator(h->par, ierr, omega ? &a : NULL, omega, out, &p);
  later = omega ? HybMatRestoreParCSR(A, x, &a) : PETSC_SUCCESS;
  if (!ierr && !later && x->backend->device) later = HybGAMGAhead(A);
  if (!ierr) ierr = HybMatCreateFromParCSR(A, x, later, out, &p, h->block.bs, h->block.nvec, P);
  for (int k = 0; k < 2; k++) (void)HybArenaReset(&out[k]);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
