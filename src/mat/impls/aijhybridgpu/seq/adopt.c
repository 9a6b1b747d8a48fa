/*
  Lending a Mat's CSR arrays to the rooms below, and handing results back to the AIJ base class without a copy.
*/
#include "../aijhybridgpuimpl.h"

PetscErrorCode HybLentGet(Mat A, PetscBool values, HybLent *l)
{
  PetscBool own = MatIsSeqAIJHybridGPU(A);

  PetscFunctionBegin;
  PetscCall(PetscMemzero(l, sizeof(*l)));
  l->csr.m = A->rmap->n;
  l->csr.n = A->cmap->n;
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
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLentRestore(Mat A, HybLent *l)
{
  PetscFunctionBegin;
  if (l->foreign) {
    PetscBool       done;
    PetscInt        n = l->csr.m;
    const PetscInt *i = l->csr.i, *j = l->csr.j;

    if (l->a) PetscCall(MatSeqAIJRestoreArrayRead(A, &l->a));
    PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  }
  PetscCall(PetscMemzero(l, sizeof(*l)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscCount HybCountNonemptyRows(const HybCSR *csr, PetscCount *longest)
{
  PetscCount n    = 0;
  PetscInt   most = 0;

  for (PetscInt r = 0; r < csr->m; r++) {
    const PetscInt length = csr->i[r + 1] - csr->i[r];

    n += length > 0;
    most = PetscMax(most, length);
  }
  if (longest) *longest = most;
  return n;
}

PetscErrorCode HybPatternKeyGet(Mat A, const HybCSR *csr, HybPatternKey *key)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(key, sizeof(*key)));
  key->nonzerostate = A->nonzerostate;
  key->i            = csr->i;
  key->j            = csr->j;
  key->nnz          = csr->nnz;
  key->m            = csr->m;
  key->n            = csr->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLentCheck(Mat A, const HybLent *l, const HybExec *x, const HybCSR *csr, const char *role)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybPatternKey        key;
  HybArena             work;
  PetscCount           nbad;
  PetscInt             badrow;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(HybPatternKeyGet(A, &l->csr, &key));
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    if (HybPatternKeyEqual(&key, &hyb->checkkey)) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaInit(&work, x));
  PetscCall(PetscLogEventBegin(HYB_Check, A, 0, 0, 0));
  ierr = x->backend->csr->check(x, &work, csr, &nbad, &badrow);
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  PetscCall(PetscLogEventEnd(HYB_Check, A, 0, 0, 0));
  PetscCheck(!nbad, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %s of the product (%" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros) has %" PetscInt64_FMT " rows whose columns are not sorted, repeated or out of range; the first is row %" PetscInt_FMT ". Sort the arrays that were handed to PETSc, or assemble the matrix with MatSetValues()", role,
             l->csr.m, l->csr.n, (PetscInt64)l->csr.nnz, (PetscInt64)nbad, badrow);
  if (hyb) hyb->checkkey = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUExchangeData(Mat A, Mat B)
{
  struct _MatOps *a = A->ops, *b = B->ops, c = *A->ops;
  void           *data = A->data;

  PetscFunctionBegin;
  A->data = B->data;
  B->data = data;
  /* the search for inodes has chosen these together with the data: orderings number nodes in one and expand them by the other */
  a->getrowij          = b->getrowij;
  a->restorerowij      = b->restorerowij;
  a->getcolumnij       = b->getcolumnij;
  a->restorecolumnij   = b->restorecolumnij;
  a->coloringpatch     = b->coloringpatch;
  a->multdiagonalblock = b->multdiagonalblock;
  b->getrowij          = c.getrowij;
  b->restorerowij      = c.restorerowij;
  b->getcolumnij       = c.getcolumnij;
  b->restorecolumnij   = c.restorecolumnij;
  b->coloringpatch     = c.coloringpatch;
  b->multdiagonalblock = c.multdiagonalblock;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSeenStatesGet(Mat A, HybSeenStates *s)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &s->state));
  s->nonzerostate     = A->nonzerostate;
  s->ass_nonzerostate = A->ass_nonzerostate;
  s->num_ass          = A->num_ass;
  s->was_assembled    = A->was_assembled;
  s->info             = A->info;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSeenStatesSet(Mat A, const HybSeenStates *s)
{
  PetscFunctionBegin;
  A->nonzerostate     = s->nonzerostate;
  A->ass_nonzerostate = s->ass_nonzerostate;
  A->num_ass          = s->num_ass;
  A->was_assembled    = s->was_assembled;
  A->info             = s->info;
  PetscCall(PetscObjectStateSet((PetscObject)A, s->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybNoInodeBegin(PetscOptions *noinode)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(noinode));
  PetscCall(PetscOptionsSetValue(*noinode, "-mat_no_inode", NULL));
  PetscCall(PetscOptionsPush(*noinode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybNoInodeEnd(PetscOptions *noinode)
{
  (void)PetscOptionsPop();
  (void)PetscOptionsDestroy(noinode);
}

/*
  The base class adopts the arrays: a throw-away MATSEQAIJ is made round them by MatCreateSeqAIJWithArrays(), and its data is
  exchanged with C's. The arrays stay ours (C's private data frees them after the parent's destroy); everything else that AIJ
  keeps beside them is of the parent's own making, so every inherited operation is right.
*/
PetscErrorCode MatSeqAIJHybridGPUAdopt(Mat C, HybArena *arrays, const HybCSR *csr, Mat *former)
{
  Mat                  T;
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybArena             old;
  const PetscInt      *oldadopted;

  PetscFunctionBegin;
#if PETSC_VERSION_GE(3, 19, 0)
  if (C->hash_active) PetscCall(MatSeqAIJSetPreallocation(C, 0, NULL)); /* the table goes, and the operations that lie over C's */
#endif
  PetscCall(PetscLogEventBegin(HYB_Adopt, C, 0, 0, 0));
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  PetscCall(PetscLayoutSetUp(C->rmap));
  PetscCall(PetscLayoutSetUp(C->cmap));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, csr->m, csr->n, csr->i, csr->j, (PetscScalar *)csr->a, &T));
  PetscCall(MatSetOption(T, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE)); /* as after a product of the parent's */
  PetscCall(MatSeqAIJHybridGPUExchangeData(C, T));
  /* from here on C owns them, whatever fails */
  old            = hyb->arrays;
  oldadopted     = hyb->adopted;
  hyb->arrays    = *arrays;
  hyb->adopted   = csr->i;
  hyb->stored    = hyb->hostwriting = PETSC_FALSE;
  hyb->adoptions++;
  arrays->blocks = NULL;
  arrays->bytes  = 0;
  if (former) {
    *former            = T;
    hyb->formerarrays  = old;
    hyb->formeradopted = oldadopted;
  } else { /* whatever C held before goes with T, before the arrays under it */
    PetscCall(MatDestroy(&T));
    PetscCall(HybArenaReset(&old));
    PetscCall(MatSeqAIJHybridGPUDestroyFormer(hyb));
  }
  C->preallocated  = PETSC_TRUE;
  C->assembled     = PETSC_TRUE;
  C->was_assembled = PETSC_FALSE;
  C->num_ass++;
  C->nonzerostate++;
  C->ass_nonzerostate = C->nonzerostate;
  PetscCall(PetscMemzero(&C->info, sizeof(C->info)));
  PetscCall(PetscObjectStateIncrease((PetscObject)C));
  {
    HybPatternKey key;
    PetscCall(HybPatternKeyGet(C, csr, &key));
    hyb->checkkey = key; /* our own results are sorted */
  }
#if defined(PETSC_HAVE_DEVICE)
  C->offloadmask = PETSC_OFFLOAD_CPU;
#endif
  PetscCall(PetscLogEventEnd(HYB_Adopt, C, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what a promoted matrix was: its base class's data, then the arrays under them */
PetscErrorCode MatSeqAIJHybridGPUDestroyFormer(Mat_SeqAIJHybridGPU *hyb)
{
  PetscFunctionBegin;
  if (!hyb->former) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->locked = PETSC_FALSE;
  PetscCall(MatDestroy(&hyb->former));
  PetscCall(HybArenaReset(&hyb->formerarrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatStoreValues() keeps beside the arrays of `from` goes to A, of the same pattern; the values of `from` are lost */
static PetscErrorCode HybMoveStoredValues(Mat from, Mat A, const Mat_SeqAIJHybridGPU *hyb)
{
  typedef PetscErrorCode (*Function)(Mat);
  const PetscInt *i, *j;
  PetscScalar    *old, *a, *now;
  PetscMemType    mtype;
  const HybAsked *asked = &hyb->asked[HYB_ASKED_NEW_NONZEROS];

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(from, &i, &j, &old, &mtype));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &mtype));
  PetscCall(PetscMalloc1(i[A->rmap->n], &now));
  PetscCall(PetscArraycpy(now, a, i[A->rmap->n]));
  /* the parent stores and retrieves only where no new nonzeros are allowed */
  PetscCall((*HybGlueState.seq.setoption)(from, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall((*(Function)HybGlueState.retrievevalues)(from));
  PetscCall(PetscArraycpy(a, old, i[A->rmap->n]));
  PetscCall((*HybGlueState.seq.setoption)(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall((*(Function)HybGlueState.storevalues)(A));
  PetscCall((*HybGlueState.seq.setoption)(A, asked->said ? asked->op : MAT_NEW_NONZERO_LOCATIONS, asked->said ? asked->flg : PETSC_TRUE));
  PetscCall(PetscArraycpy(a, now, i[A->rmap->n]));
  PetscCall(PetscFree(now));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The base class gets arrays of its own, after which nothing of a result is ours any more. Needed before new entries may come: from 3.22 on the
  parent then frees the old arrays as if it had allocated them, whoever owns them. State and pattern stand.
*/
PetscErrorCode MatSeqAIJHybridGPUDisown(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybArena             arrays;
  Mat                  D;
  PetscBool            assembled;
  PetscErrorCode       ierr;
  const PetscInt      *i, *j;
  PetscScalar         *a;
  PetscMemType         mtype;
  void                *data;

  PetscFunctionBegin;
  if (!hyb || !hyb->arrays.blocks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  if (!hyb->arrays.blocks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &mtype));
  if (i != hyb->adopted) PetscFunctionReturn(PETSC_SUCCESS); /* the base class has moved on by itself; somebody may still read ours */
  assembled    = A->assembled;
  A->assembled = PETSC_TRUE; /* MatSetValues() has said otherwise already, the arrays are still whole */
  ierr         = MatSeqAIJHybridGPUHostDuplicate(A, PETSC_TRUE, &D);
  A->assembled = assembled;
  PetscCall(ierr);
  data               = A->data;
  A->data            = D->data;
  D->data            = data;
  if (hyb->stored) PetscCall(HybMoveStoredValues(D, A, hyb));
  arrays             = hyb->arrays;
  hyb->arrays.blocks = NULL;
  hyb->arrays.bytes  = 0;
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  PetscCall(MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE));
  PetscCall(MatDestroy(&D));
  PetscCall(HybArenaReset(&arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}
