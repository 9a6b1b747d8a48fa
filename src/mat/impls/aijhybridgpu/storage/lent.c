/*
  Lending a Mat's CSR arrays to the rooms below, and what is known of a pattern that was lent.
*/
#include "storage.h"

/* hyb: what is known of a matrix of ours, or NULL */
static void HybPatternKeyOf(const HybCSR *csr, PetscObjectState nonzerostate, const Mat_SeqAIJHybridGPU *hyb, HybPatternKey *key)
{
  memset(key, 0, sizeof(*key));
  key->nonzerostate = nonzerostate;
  key->i            = csr->i;
  key->j            = csr->j;
  key->nnz          = csr->nnz;
  key->m            = csr->m;
  key->n            = csr->n;
  key->generation   = hyb ? hyb->generation : 0;
  key->made         = hyb ? hyb->made : 0;
}

PetscErrorCode HybViewOpen(Mat A, HybView *v)
{
  PetscMemType mtype;

  PetscFunctionBegin;
  v->A = A;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &v->hyb));
  v->host.m = A->rmap->n;
  v->host.n = A->cmap->n;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, (const PetscInt **)&v->host.i, (const PetscInt **)&v->host.j, (PetscScalar **)&v->host.a, &mtype));
  v->host.nnz = v->host.m ? v->host.i[v->host.m] : 0;
  HybPatternKeyOf(&v->host, A->nonzerostate, v->hyb, &v->key);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLentGet(Mat A, PetscBool values, HybLent *l)
{
  PetscBool            own = MatIsSeqAIJHybridGPU(A);
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (own) PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  l->foreign = PETSC_FALSE;
  l->a       = NULL;
  l->csr.m   = A->rmap->n;
  l->csr.n   = A->cmap->n;
  if (!own) PetscCall(PetscStrcmp(((PetscObject)A)->type_name, MATSEQAIJ, &own));
  if (own) {
    const PetscInt *i, *j;
    PetscScalar    *a;
    PetscMemType    mtype;

    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &mtype));
    l->csr.i = (PetscInt *)i;
    l->csr.j = (PetscInt *)j;
    l->csr.a = values ? a : NULL;
  } else {
    PetscBool       done;
    PetscInt        n;
    const PetscInt *i, *j;

    PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "A matrix of type %s does not lend its rows; convert it to %s first", ((PetscObject)A)->type_name, MATSEQAIJ);
    l->foreign = PETSC_TRUE;
    l->csr.i   = (PetscInt *)i;
    l->csr.j   = (PetscInt *)j;
    if (values) PetscCall(MatSeqAIJGetArrayRead(A, &l->a));
    l->csr.a = (HybScalar *)l->a;
  }
  l->csr.nnz = l->csr.m ? l->csr.i[l->csr.m] : 0;
  HybPatternKeyOf(&l->csr, A->nonzerostate, hyb, &l->key);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLentReturn(Mat A, HybLent *l)
{
  PetscBool       done;
  PetscInt        n = l->csr.m;
  const PetscInt *i = l->csr.i, *j = l->csr.j;

  PetscFunctionBegin;
  if (l->a) PetscCall(MatSeqAIJRestoreArrayRead(A, &l->a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  PetscCall(PetscMemzero(l, sizeof(*l)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPatternKeyNow(Mat A, HybPatternKey *key)
{
  HybView v;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  *key = v.key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscCount HybCountNonemptyRows(const HybCSR *csr, PetscCount *longest)
{
  PetscCount n = 0, most = 0;

  (void)HybBackendHost.csr->rowlengths(NULL, csr->m, csr->i, NULL, &most, &n); /* cannot fail */
  if (longest) *longest = most;
  return n;
}

PetscErrorCode HybRowsLook(Mat A, const HybPatternKey *key, const HybExec *x, const HybCSR *csr, PetscCount *nbad, PetscInt *badrow)
{
  Mat_SeqAIJHybridGPU *hyb  = NULL;
  HybArena             work = HybArenaOn(x);

  PetscFunctionBegin;
  *nbad   = 0;
  *badrow = -1;
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    if (HybPatternKeyEqual(key, &hyb->checkkey)) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_CHECK, A));
  HybCallBoth(x->backend->csr->check(x, &work, csr, nbad, badrow), HybArenaReset(&work));
  PetscCall(HybEventEnd(HYB_OP_CHECK, A));
  if (hyb && !*nbad) hyb->checkkey = *key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPURowsAscend(Mat A, const HybExec *x, const HybCSR *csr, PetscBool *ascend)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscCount           nbad;
  PetscInt             badrow;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybRowsLook(A, &hyb->copy.key, x, csr, &nbad, &badrow));
  *ascend = (PetscBool)!nbad;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUDiagonalIsFull(Mat A, PetscBool *full)
{
  HybView       v;
  const HybCSR *csr   = &v.host;
  PetscInt      where = 0;

  PetscFunctionBegin;
  *full = PETSC_FALSE;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybViewOpen(A, &v));
  /* all is AIJ's own: whoever asks need not know */
  if (!v.hyb->arrays.blocks && !v.hyb->movedto) PetscFunctionReturn(PETSC_SUCCESS);
  *full = HybPatternKeyEqual(&v.key, &v.hyb->diagonalkey);
  if (*full) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt r = 0; r < PetscMin(csr->m, csr->n) && where >= 0; r++) PetscCall(PetscFindInt(r, csr->i[r + 1] - csr->i[r], csr->j + csr->i[r], &where));
  *full = (PetscBool)(where >= 0 && csr->m <= csr->n);
  if (*full) v.hyb->diagonalkey = v.key;
  PetscFunctionReturn(PETSC_SUCCESS);
}
