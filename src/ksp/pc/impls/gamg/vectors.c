/*
  The near-null vectors of PCGAMG's levels. PETSc keeps them in pc_gamg->data, on the host, stored by columns. While a
  level is ours they are in an arena, where the level executes, and pc_gamg->data is one entry that stands for them;
  what needs no array has none: ones, or, of vertices of several unknowns, the translations that PETSc takes by default.

  Vectors that the program attached to a matrix on the device come from there; a field's of a DM, coordinates' and those
  that PETSc keeps for the next setup are made by PETSc's own function and sent.
*/
#include "gamgimpl.h"

#if HYB_GAMG
  #include <petscdm.h>

PetscErrorCode HybGAMGKnown(PC pc, const HybGAMG *h, Mat A, const char **why)
{
  const PC_GAMG *gamg = HybGAMGData(pc);
  PetscBool      par;
  PetscInt       bs, cbs;

  PetscFunctionBegin;
  *why = NULL;
  PetscCall(HybMatIsPar(A, &par));
  PetscCall(MatGetBlockSizes(A, &bs, &cbs));
  if (h->setup.way == &HybGAMGOne ? !HybMatIsSeq(A) : !par)
    *why = "the matrix is of another type";
  else if (bs != cbs)
    *why = "blocks that are not square";
  else if (gamg->data_cell_rows != bs)
    *why = "near-null vectors of blocks of another size";
  else if (gamg->data_cell_cols < 1 || gamg->data_cell_cols > HYB_AGG_VECTORS)
    *why = "too many near-null vectors";
  else if (!h->setup.dummy && gamg->data_sz < (PetscCount)A->rmap->n * gamg->data_cell_cols)
    *why = "near-null vectors of another length";
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

/* The same between PETSc's real numbers on the host and vectors' entries: from, or to, is NULL for the former. */
static PetscErrorCode HybGAMGCopyReal(const HybExec *from, const HybExec *to, void *dst, const void *src, size_t n)
{
  #if PetscDefined(USE_COMPLEX)
  PetscScalar   *all;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n + 1, &all));
  for (size_t k = 0; !from && k < n; k++) all[k] = ((const PetscReal *)src)[k];
  ierr = HybGAMGCopy(from ? from : &HybExecHost, to ? to : &HybExecHost, to ? dst : all, from ? src : all, n * sizeof(*all));
  if (!ierr && to) ierr = to->backend->sync(to); /* before the copy goes */
  for (size_t k = 0; !ierr && !to && k < n; k++) ((PetscReal *)dst)[k] = PetscRealPart(all[k]);
  PetscCall(PetscFree(all));
  PetscCall(ierr);
  #else
  PetscFunctionBegin;
  PetscCall(HybGAMGCopy(from ? from : &HybExecHost, to ? to : &HybExecHost, dst, src, n * sizeof(PetscReal)));
  #endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's functions will read pc_gamg->data */
PetscErrorCode HybGAMGDataToHost(PC pc, HybGAMG *h, PetscInt rows)
{
  PC_GAMG     *gamg = HybGAMGData(pc);
  const size_t n    = (size_t)rows * gamg->data_cell_cols;
  PetscReal   *data;

  PetscFunctionBegin;
  if (!h->setup.dummy || gamg->data != h->setup.dummy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(n + 1, &data));
  if (h->near.b) {
    PetscErrorCode ierr = HybGAMGCopyReal(&h->near.arena.exec, NULL, data, h->near.b, n);

    if (ierr) (void)PetscFree(data);
    PetscCall(ierr);
  } else {
    for (PetscInt c = 0; c < gamg->data_cell_cols; c++)
      for (PetscInt r = 0; r < rows; r++) data[(size_t)c * rows + r] = r % gamg->data_cell_rows == c;
  }
  PetscCall(PetscFree(gamg->data));
  gamg->data     = data;
  gamg->data_sz  = (PetscInt)n;
  h->setup.dummy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGDataDummy(PC pc, HybGAMG *h, PetscInt rows, PetscInt cellrows, PetscInt cellcols)
{
  PC_GAMG *gamg = HybGAMGData(pc);
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(HybIntCast((PetscCount)rows * cellcols, "entries of near-null vectors", &n));
  PetscCall(PetscFree(gamg->data));
  PetscCall(PetscCalloc1(1, &gamg->data));
  gamg->data_sz        = n;
  gamg->data_cell_rows = cellrows;
  gamg->data_cell_cols = cellcols;
  h->setup.dummy       = gamg->data;
  h->setup.replaced    = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do a field of the DM's say which vectors are near the null space, where the matrix does not? */
static PetscErrorCode HybGAMGHasFields(PC pc, Mat A, PetscBool *has)
{
  DM       dm;
  PetscInt nfields = 0;

  PetscFunctionBegin;
  PetscCall(PCGetDM(pc, &dm));
  if (!dm) PetscCall(MatGetDM(A, &dm));
  if (dm) PetscCall(DMGetNumFields(dm, &nfields));
  *has = (PetscBool)(nfields > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b = the vectors one behind the other, the constant first if there is one */
static PetscErrorCode HybGAMGGather(const HybExec *x, PetscInt n, PetscBool constant, PetscInt nvec, const Vec *vecs, HybScalar *b)
{
  const PetscScalar one = 1;

  PetscFunctionBegin;
  if (constant) {
    PetscCall((*x->backend->csr->set)(x, n, &one, b));
    b += n;
  }
  for (PetscInt k = 0; k < nvec; k++) {
    HybVecAccess   v;
    PetscErrorCode ierr;

    PetscCall(HybVecGet(x, vecs[k], PETSC_TRUE, PETSC_FALSE, &v));
    ierr = x->backend->copy(x, b + (size_t)k * n, v.there, (size_t)n * sizeof(*b), HYB_COPY_DEVICE_TO_DEVICE);
    PetscCall(HybVecRestore(ierr, &v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The vectors that were attached to A, on the device; *done is PETSC_FALSE, and nothing happened, where PETSc's
   function is to take them: on the host, or where they do not fit, which is its to say. Not collective: PETSc asks on
   the processes alone that have no vectors yet. */
static PetscErrorCode HybGAMGAttached(PC pc, HybGAMG *h, Mat A, MatNullSpace null, PetscBool *done)
{
  const PetscInt n = A->rmap->n;
  PetscInt       nvec, bs, m;
  PetscBool      constant;
  const Vec     *vecs;
  Mat            local;
  HybExec        x;
  HybArena       near;
  HybScalar     *b = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HybMatGetLocal(A, &local));
  PetscCall(HybMatGetExec(local, &x));
  PetscCall(MatNullSpaceGetVecs(null, &constant, &nvec, &vecs));
  PetscCall(MatGetBlockSize(A, &bs));
  if (!x.backend->device || nvec + constant < 1 || (PetscCount)n * (nvec + constant) > PETSC_MAX_INT) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < nvec; k++) {
    PetscCall(VecGetLocalSize(vecs[k], &m));
    if (m != n) PetscFunctionReturn(PETSC_SUCCESS);
  }
  near = HybArenaOn(&x);
  if (nvec || bs > 1) { /* else ones */
    ierr = HybArenaAlloc(&near, HYB_WORK(&x), (PetscCount)n * (nvec + constant), sizeof(*b), &b);
    if (!ierr) ierr = HybGAMGGather(&x, n, constant, nvec, vecs, b);
    if (ierr) (void)HybArenaReset(&near);
    PetscCall(ierr);
  }
  PetscCall(HybGAMGNear(h, near, b));
  PetscCall(HybGAMGDataDummy(pc, h, n, bs, nvec + constant));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGAMGDefaultData(PC pc, HybGAMG *h, Mat A, PetscBool *done)
{
  MatNullSpace near;
  PetscBool    fields = PETSC_FALSE;
  PetscInt     bs;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (HybGAMGFirst(pc) || h->injection.hidden) PetscFunctionReturn(PETSC_SUCCESS); /* injection replaces them */
  PetscCall(MatGetNearNullSpace(A, &near));
  PetscCall(MatGetBlockSize(A, &bs));
  if (!near) PetscCall(HybGAMGHasFields(pc, A, &fields));
  /* without reuse of the interpolation PETSc copies the data for the next setup */
  if (HybGAMGData(pc)->reuse_prol && near) PetscCall(HybGAMGAttached(pc, h, A, near, done));
  if (HybGAMGData(pc)->reuse_prol && !near && !fields && (PetscCount)A->rmap->n * bs <= PETSC_MAX_INT) {
    PetscCall(HybGAMGDataDummy(pc, h, A->rmap->n, bs, bs));
    *done = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGCreateDefaultData(PC pc, Mat A)
{
  HybGAMG    *h;
  PetscBool   done;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCall(HybGAMGGet(pc, &h));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  h->setup.failed = HybGAMGDefaultData(pc, h, A, &done);
  if (size == 1) PetscCall(h->setup.failed);
  if (h->setup.failed || !done) PetscCall((*h->petsc.ops.createdefaultdata)(pc, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is vector k 1 in unknown k of each vertex, and 0 elsewhere? */
static PetscBool HybGAMGAreTranslations(PetscInt rows, const HybAggBlock *block, const PetscReal *data)
{
  if (block->nvec != block->bs) return PETSC_FALSE;
  for (PetscInt c = 0; c < block->nvec; c++) {
    for (PetscInt r = 0, u = 0; r < rows; r++, u = u + 1 < block->bs ? u + 1 : 0) {
      if (data[(size_t)c * rows + r] != (PetscReal)(u == c)) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

PetscErrorCode HybGAMGSend(PC pc, HybGAMG *h, PetscInt rows)
{
  const PetscCount n    = (PetscCount)rows * h->block.nvec;
  const HybExec   *from = NULL; /* PETSc's are real */
  const void      *src  = NULL;
  HybArena         near;
  HybScalar       *b;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  if (!h->setup.dummy) { /* they are PETSc's */
    if (HybGAMGAreTranslations(rows, &h->block, HybGAMGData(pc)->data))
      h->near.b = NULL;
    else
      src = HybGAMGData(pc)->data;
  } else if (h->near.b && h->near.arena.exec.backend != h->exec.backend) {
    src  = h->near.b;
    from = &h->near.arena.exec;
  }
  if (!src) PetscFunctionReturn(PETSC_SUCCESS);
  near = HybArenaOn(&h->exec);
  ierr = HybArenaAlloc(&near, HYB_WORK(&h->exec), n, sizeof(*b), &b);
  if (!ierr) ierr = from ? HybGAMGCopy(from, &h->exec, b, src, (size_t)n * sizeof(*b)) : HybGAMGCopyReal(NULL, &h->exec, b, src, (size_t)n);
  if (ierr) (void)HybArenaReset(&near);
  PetscCall(ierr);
  PetscCall(HybGAMGNear(h, near, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
