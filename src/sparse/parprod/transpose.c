/*
  T = A^T, both distributed by rows.

  The diagonal block's transpose is T's. The other block's is in rows of T that other processes own: it is sent to them,
  row by row, with the global numbers of its columns, which are this process's rows. What comes from others is T's other
  block: each row's parts come in the order of ranks, so its columns ascend.

    symbolic: the second block's transpose, whose rows are shipped; what is received sorted into rows; the first one's
    numeric: the second one's values gathered and sent; meanwhile the first one's; those that are received to their
    places. Where A has the values of the last numeric phase on all processes nothing is done.

  Memory: T and the permutations. Cost: O(nnz), and as a message what A has in columns of others.
*/
#include "parprodimpl.h"

PetscErrorCode HybParTransposeStart(HybParTranspose *t, HybComm comm, const HybExec *exec)
{
  const PetscErrorCode ierr = HybParTransposeDestroy(t);

  PetscFunctionBegin;
  t->comm        = comm;
  t->exec        = *exec;
  t->exec.result = HYB_WORK(exec);
  t->keep        = HybArenaOn(&t->exec);
  t->work        = HybArenaOn(&t->exec);
  t->made        = PETSC_TRUE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the other block's transpose, whose columns get their global numbers */
PetscErrorCode HybParTransposeSent(HybParTranspose *t, const HybParCSR *A, PetscInt **begin)
{
  const HybExec     *x     = &t->exec;
  const HybCSROps   *ops   = x->backend->csr;
  const HybLocalOps *local = x->backend->local;

  PetscFunctionBegin;
  PetscCall(ops->transposesymbolic(x, &t->keep, &t->work, &A->O, &t->S, &t->perm[1]));
  t->S.a = NULL;
  PetscCall(HybArenaAlloc(&t->work, HYB_MEM_HOST, (PetscCount)A->O.n + 1, sizeof(PetscInt), begin));
  PetscCall(x->backend->copy(x, *begin, t->S.i, sizeof(PetscInt) * ((size_t)A->O.n + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(local->numbercolumns(x, t->S.nnz, t->S.j, 0, A->D.m, 0, A->rows[t->comm->rank], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Last of all: it takes the device longest, and nothing here waits for it */
static PetscErrorCode HybParTransposeHere(HybParTranspose *t, const HybParCSR *A)
{
  const HybExec *x = &t->exec;

  PetscFunctionBegin;
  PetscCall(x->backend->csr->transposesymbolic(x, &t->keep, &t->work, &A->D, &t->T.D, &t->perm[0]));
  PetscCall(HybArenaAlloc(&t->keep, x->result, t->T.D.nnz, sizeof(HybScalar), &t->T.D.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Parts of one row come in the order of ranks, and so do its columns. Where no two parts are of one row, and rows
   ascend, as with slabs, R is T's block but for its empty rows; else entries are sorted into rows. */
static PetscErrorCode HybParTransposeRows(HybParTranspose *t)
{
  const HybExec     *x     = &t->exec;
  const HybCSROps   *ops   = x->backend->csr;
  const HybLocalOps *local = x->backend->local;
  HybCSR            *O     = &t->T.O;
  PetscInt          *row;

  PetscFunctionBegin;
  PetscCall(HybHaloThere(t->halo));
  if (HybHaloSendsInOrder(t->halo)) {
    O->nnz = t->R.nnz;
    O->j   = t->R.j;
    O->a   = t->R.a;
    PetscCall(HybArenaAlloc(&t->keep, x->result, (PetscCount)O->m + 1, sizeof(PetscInt), &O->i));
    PetscCall(local->expandrows(x, O->m, t->R.m, t->halo->there, t->R.i, O->i));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&t->work, x->result, t->R.nnz, sizeof(PetscInt), &row));
  PetscCall(local->rowsofentries(x, &t->R, t->halo->there, row));
  PetscCall(ops->coosymbolic(x, &t->keep, &t->work, t->R.nnz, row, t->R.j, O, &t->mapptr, &t->map));
  PetscCall(HybArenaAlloc(&t->keep, x->result, O->nnz, sizeof(HybScalar), &O->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what others have sent becomes T's block of others' columns */
static PetscErrorCode HybParTransposeReceived(HybParTranspose *t, const HybParCSR *A)
{
  const HybExec     *x   = &t->exec;
  const HybLocalOps *ops = x->backend->local;
  PetscInt          *list, n;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&t->keep, x->result, t->S.nnz, sizeof(HybScalar), &t->S.a));
  PetscCall(HybArenaAlloc(&t->keep, x->result, t->R.nnz, sizeof(HybScalar), &t->R.a));
  PetscCall(ops->outsidecolumns(x, &t->work, &t->work, t->R.nnz, t->R.j, 0, 0, &n, &list));
  PetscCall(PetscMalloc1(n + 1, &t->garray));
  PetscCall(x->backend->copy(x, t->garray, list, sizeof(PetscInt) * (size_t)n, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(ops->numbercolumns(x, t->R.nnz, t->R.j, 0, 0, n, 0, list));
  t->T.O.m = A->D.n;
  t->T.O.n = n;
  PetscCall(HybParTransposeRows(t));
  t->T.garray  = t->garray;
  t->T.rows    = A->columns;
  t->T.columns = A->rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParTransposeSymbolic(HybParTranspose *t, const HybParCSR *A)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybParTransposeReceived(t, A);
  if (!ierr) ierr = HybParTransposeHere(t, A);
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&t->work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParTransposeNumeric(HybParTranspose *t, PetscErrorCode before, PetscBool same, PetscBool all, const HybParCSR *A)
{
  const HybExec   *x    = &t->exec;
  const HybCSROps *ops  = x->backend->csr;
  PetscErrorCode   ierr = before;

  PetscFunctionBegin;
  if (all && t->whole) PetscFunctionReturn(before ? before : HybRowsCheck(t->rows));
  t->whole = PETSC_FALSE;
  if (!ierr) ierr = ops->gather(x, t->S.nnz, t->perm[1], PETSC_FALSE, A->O.a, t->S.a);
  if (ierr) HybRowsAbandon(t->rows, x);
  PetscCall(ierr);
  PetscCall(HybRowsValuesBegin(t->rows, x, t->S.a));
  if (!same || !t->current) {
    t->current = PETSC_FALSE;
    ierr       = ops->gather(x, t->T.D.nnz, t->perm[0], PETSC_FALSE, A->D.a, t->T.D.a);
    if (!ierr) t->current = PETSC_TRUE;
  }
  PetscCall(HybRowsValuesEnd(t->rows, x, ierr, t->R.a));
  if (t->map) PetscCall(ops->coonumeric(x, t->T.O.nnz, t->mapptr, t->map, t->R.a, PETSC_FALSE, t->T.O.a));
  t->whole = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParTransposeDestroy(HybParTranspose *t)
{
  PetscErrorCode ierr[4];

  PetscFunctionBegin;
  if (!t->made) PetscFunctionReturn(PETSC_SUCCESS);
  ierr[0] = HybRowsDestroy(&t->rows);
  ierr[1] = HybHaloDestroy(&t->halo);
  PetscCall(PetscFree(t->garray));
  ierr[2] = HybArenaReset(&t->work);
  ierr[3] = HybArenaReset(&t->keep);
  PetscCall(PetscMemzero(t, sizeof(*t)));
  for (int k = 0; k < 4; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
