/*
  Injection on the finest level, -pc_gamg_injection_index: PETSc's driver makes that level's prolongator with
  MatSetValues(), entry by entry, and vectors for the level below, on the host. They are a list of rows and a pattern,
  which are made here where the matrix lives.

  The driver asks once whether there is injection, when it comes to the finest level. While it does, it is told that
  there is none: then it goes the way of aggregation, whose first function gives the program its numbers back
  (HybGAMGInjectionEnd()) and whose others make what the driver would have. What the driver gives prolongators of
  aggregates besides, a prefix of options and the wish for an explicit transpose, is taken back after the setup.

    rows  r = v bs + index[k]  of vertex v:  P(r, v size + k) = 1, no entries in others
    vectors: PETSc writes size identity matrices of size x size, one behind the other, into an array that is read by
    columns; the same numbers are here at the same places, whatever vectors they are

  Left to the driver: releases of PETSc whose driver nobody has read for this, several processes, indices that it would
  refuse or that name a row twice, options that print or change what it makes.

  Memory: an integer for each row, besides what stays. Time: O(n).
*/
#include "../../ksp/pc/impls/gamg/gamgimpl.h"

#if HYB_GAMG
/* Do options change the prolongator of the first level, or print it? */
static PetscErrorCode HybInjectionPlain(PetscBool *plain)
{
  PetscBool help;
  char     *all;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasHelp(NULL, &help));
  PetscCall(PetscOptionsGetAll(NULL, &all)); /* under whatever prefix */
  *plain = (PetscBool)(!help && !strstr(all, "pc_gamg_prolongator_") && !strstr(all, "mat_view_injection"));
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGInjectionBegin(PC pc, HybGAMG *h)
{
  PC_GAMG       *gamg = HybGAMGData(pc);
  const PetscInt size = gamg->injection_index_size, *index = gamg->injection_index;
  PetscBool      plain = PETSC_FALSE;
  PetscInt       bs, cbs;

  PetscFunctionBegin;
  if (size < 1 || !HybMatIsSeq(pc->pmat) || !gamg->reuse_prol || gamg->orig_data || !HYB_KNOWN_INJECTION) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetBlockSizes(pc->pmat, &bs, &cbs));
  if (bs != cbs || size >= bs) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < size; k++) {
    if (index[k] < 0 || index[k] >= bs) PetscFunctionReturn(PETSC_SUCCESS);
    for (PetscInt l = 0; l < k; l++)
      if (index[l] == index[k]) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybInjectionPlain(&plain));
  if (!plain) PetscFunctionReturn(PETSC_SUCCESS);
  h->injection.hidden        = size;
  gamg->injection_index_size = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybGAMGInjectionEnd(PC pc, HybGAMG *h)
{
  if (!h->injection.hidden) return PETSC_FALSE;
  HybGAMGData(pc)->injection_index_size = h->injection.hidden;
  h->injection.hidden                   = 0;
  return PETSC_TRUE;
}

/* the column of each row, -1 for none, where the level executes */
static PetscErrorCode HybInjectionColumns(const HybExec *x, HybArena *work, PetscInt n, PetscInt bs, PetscInt size, const PetscInt *index, PetscInt **columns)
{
  PetscInt *host;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, n, sizeof(*host), &host));
  for (PetscInt r = 0; r < n; r++) host[r] = -1;
  for (PetscInt k = 0; k < size; k++)
    for (PetscInt r = index[k], c = k; r < n; r += bs, c += size) host[r] = c;
  *columns = host;
  if (!x->backend->device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), n, sizeof(*host), columns));
  PetscCall(x->backend->copy(x, *columns, host, (size_t)n * sizeof(*host), HYB_COPY_HOST_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* so many identity matrices of size x size, one behind the other: what is there already is copied behind itself */
static PetscErrorCode HybInjectionVectors(const HybExec *x, PetscInt vertices, PetscInt size, HybScalar *b)
{
  const size_t each = (size_t)size * size, all = each * vertices;
  HybScalar    first[MAT_COARSEN_STRENGTH_INDEX_SIZE * MAT_COARSEN_STRENGTH_INDEX_SIZE];

  PetscFunctionBegin;
  for (size_t k = 0; k < each; k++) first[k] = k % ((size_t)size + 1) == 0;
  PetscCall(x->backend->copy(x, b, first, PetscMin(each, all) * sizeof(*b), HYB_COPY_HOST_TO_DEVICE));
  for (size_t done = each; done < all; done *= 2) PetscCall(x->backend->copy(x, b + done, b, PetscMin(done, all - done) * sizeof(*b), HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybInjectionArrays(PC pc, HybGAMG *h, HybArena *arrays, HybArena *work, PetscInt rows, HybCSR *csr)
{
  const HybExec    *x    = &h->exec;
  const PC_GAMG    *gamg = HybGAMGData(pc);
  const PetscInt    size = gamg->injection_index_size, bs = h->block.bs;
  const PetscScalar one = 1;
  HybAggregates     agg = {.n = rows, .nc = rows / bs * size};
  HybScalar        *q;

  PetscFunctionBegin;
  PetscCall(HybInjectionColumns(x, work, rows, bs, size, gamg->injection_index, &agg.parent));
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), rows, sizeof(*q), &q));
  PetscCall((*x->backend->csr->set)(x, rows, &one, q));
  PetscCall((*x->backend->agg->unsmoothed)(x, arrays, work, &agg, &(HybAggBlock){1, 1}, q, csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the vectors of the level below, in place of this one's; ones are no array */
static PetscErrorCode HybInjectionNear(PC pc, HybGAMG *h, PetscInt vertices)
{
  PC_GAMG       *gamg = HybGAMGData(pc);
  const PetscInt size = gamg->injection_index_size, columns = vertices * size;
  HybScalar     *b = NULL;
  PetscErrorCode ierr;
  HybArena       near = HybArenaOn(&h->exec);

  PetscFunctionBegin;
  ierr = size > 1 ? HybArenaAlloc(&near, HYB_WORK(&h->exec), (PetscCount)columns * size, sizeof(*b), &b) : PETSC_SUCCESS;
  if (!ierr && b) ierr = HybInjectionVectors(&h->exec, vertices, size, b);
  if (ierr) (void)HybArenaReset(&near);
  PetscCall(ierr);
  PetscCall(HybGAMGNear(h, near, b));
  gamg->orig_data_cell_cols = 0;
  gamg->orig_data_cell_rows = 0;
  PetscCall(HybGAMGDataDummy(pc, h, columns, size, size));
  if (h->setup.hostdata) PetscCall(HybGAMGDataToHost(pc, h, columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGInjection(PC pc, HybGAMG *h, Mat A, Mat *P)
{
  const PetscInt size = HybGAMGData(pc)->injection_index_size, rows = A->rmap->n;
  HybArena       arrays, work;
  HybCSR         csr;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSize(A, &h->block.bs));
  PetscCall(HybMatGetExec(A, &h->exec));
  if (!h->exec.backend->agg) h->exec = HybExecHost;
  PetscCall(PetscInfo(pc, "Create fine grid injection space prolongation %" PetscInt_FMT " x %" PetscInt_FMT ". %s\n", rows, rows / h->block.bs * size, "delete null space data"));
  arrays = HybArenaOn(&h->exec);
  work   = HybArenaOn(&h->exec);
  ierr   = HybInjectionArrays(pc, h, &arrays, &work, rows, &csr);
  (void)HybArenaReset(&work);
  if (!ierr) ierr = HybMatCreateFromCSR(A, &h->exec, &arrays, &csr, h->block.bs, size, P);
  (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscCall(PetscObjectReference((PetscObject)*P));
  PetscCall(MatDestroy(&h->injection.P));
  h->injection.P = *P;
  ierr           = HybInjectionNear(pc, h, rows / h->block.bs);
  if (ierr) (void)MatDestroy(P); /* the driver lets go of it where there is an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGInjectionFinish(HybGAMG *h)
{
  PetscFunctionBegin;
  if (!h->injection.P) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOptionsPrefix(h->injection.P, NULL));
  PetscCall(MatSetOption(h->injection.P, MAT_FORM_EXPLICIT_TRANSPOSE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
