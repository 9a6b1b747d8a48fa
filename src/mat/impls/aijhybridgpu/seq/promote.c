/*
  Host-born matrices that the program writes by operations (MatScale(), MatShift(), MatDiagonalScale(), ...) instead of entry by entry.

  The first such operation is done twice, on the host's arrays and on the device's copy, where both round alike: then nothing is sent again.
  The second one in a row, no host write between them, promotes the matrix: its values and column indices move to managed memory as if a device
  operation had made it, and from then on the device alone does the work.

  What AIJ keeps beside the arrays (options, row lengths, inodes, stored values) was the parent's and stays in a matrix that is kept aside, "former": when
  the program returns to the host's way (MatSetValues(), MatZeroRows(), a new preallocation) the values go back there, the data are exchanged again, and it
  is as if the matrix had never moved. Arrays that the program lent to PETSc (MatCreateSeqAIJWithArrays()) are never left: the program may write them.

  Neither way is seen from outside: PetscObjectState and nonzerostate stand.
*/
#include "../aijhybridgpuimpl.h"

/* shall A move now? */
static PetscErrorCode MatSeqAIJHybridGPUPromotionDue(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, PetscBool *due)
{
  PetscObjectState state;
  HybMemoryReport  r;
  PetscBool        plain;
  size_t           bytes;

  PetscFunctionBegin;
  *due = PETSC_FALSE;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (!HybMarkCurrent(&hyb->written, state)) hyb->writes = 0;
  if (!hyb->writes || HybGlueState.promotenever || hyb->lentarrays || x->result != HYB_MEM_MANAGED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, MATSEQAIJ, &plain)); /* by -mat_seqaij_type: such a matrix may have lent arrays, unseen */
  if (plain) PetscFunctionReturn(PETSC_SUCCESS);
  bytes = (size_t)hyb->copy.csr.nnz * (sizeof(PetscInt) + sizeof(HybScalar));
  PetscCall(x->backend->usage(&r, PETSC_FALSE));
  *due = (PetscBool)(r.managed_bytes <= r.managed_share && bytes <= r.managed_share - r.managed_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPromotedArrays(const HybExec *x, const HybCSR *csr, HybArena *arrays, HybCSR *result)
{
  HybMem jmem, amem;

  PetscFunctionBegin;
  *result = *csr;
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_DEVICE, (PetscCount)csr->m + 1, sizeof(PetscInt), &result->i));
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_MANAGED, csr->nnz, sizeof(PetscInt), &result->j));
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_MANAGED, csr->nnz, sizeof(HybScalar), &result->a));
  PetscCall(HybArenaWhere(arrays, result->j, &jmem));
  PetscCall(HybArenaWhere(arrays, result->a, &amem));
  if (jmem != HYB_MEM_MANAGED || amem != HYB_MEM_MANAGED) PetscFunctionReturn(PETSC_ERR_MEM);
  PetscCall(x->backend->copy(x, result->i, csr->i, sizeof(PetscInt) * ((size_t)csr->m + 1), HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, result->j, csr->j, sizeof(PetscInt) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, result->a, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJHybridGPUPromote(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, PetscBool *done)
{
  HybCSR         csr, result;
  HybArena       arrays;
  HybSeenStates  seen;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUDemote(A)); /* from page-locked memory, if the values are there */
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  PetscCall(HybSeenStatesGet(A, &seen));
  PetscCall(HybArenaInit(&arrays, x));
  /* without the room the matrix stays where it is: that is no error */
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybPromotedArrays(x, &csr, &arrays, &result);
  PetscCall(PetscPopErrorHandler());
  if (!ierr) {
    ierr = MatSeqAIJHybridGPUAdoptDeviceKeep(A, x, &arrays, &result);
    if (ierr) (void)HybArenaReset(&arrays);
    PetscCall(ierr);
    PetscCall(HybSeenStatesSet(A, &seen));
    hyb->copy.key.nonzerostate = hyb->checkkey.nonzerostate = seen.nonzerostate;
    hyb->copy.mark.state                                    = seen.state;
    PetscCall(PetscInfo(A, "Written on the device twice without a host write: values and pattern, %" PetscInt64_FMT " nonzeros, move to managed memory (-mat_aijhybridgpu_promote never keeps them on the host)\n", (PetscInt64)csr.nnz));
    *done = PETSC_TRUE;
  } else PetscCall(HybArenaReset(&arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Back to the arrays and options of before, with the values of now */
PetscErrorCode MatSeqAIJHybridGPUDemote(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybArena             arrays;
  const PetscInt      *i, *j;
  PetscScalar         *from, *to;
  PetscMemType         mtype;
  PetscBool            locked;
  size_t               bytes;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !hyb->former) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &from, &mtype));
  if (i != hyb->adopted) PetscFunctionReturn(PETSC_SUCCESS); /* the base class has moved on by itself */
  PetscCall(MatSeqAIJGetCSRAndMemType(hyb->former, &i, &j, &to, &mtype));
  PetscCall(HybExecRefresh(&hyb->arrays.exec));
  bytes  = sizeof(PetscScalar) * (size_t)i[A->rmap->n];
  locked = hyb->locked;
  PetscCall(hyb->arrays.exec.backend->copy(&hyb->arrays.exec, to, from, bytes, locked ? HYB_COPY_HOST_TO_HOST : HYB_COPY_DEVICE_TO_HOST));
  if (!locked) PetscCall(HybLogToHost((PetscLogDouble)bytes));
  PetscCall(MatSeqAIJHybridGPUExchangeData(A, hyb->former)); /* not before the values are there */
  arrays       = hyb->arrays;
  hyb->arrays  = hyb->formerarrays;
  hyb->adopted = hyb->formeradopted;
  hyb->writes  = 0;
  if (locked) { /* the device's copy stands: pattern and states are what they were */
    hyb->locked    = PETSC_FALSE;
    hyb->locknever = PETSC_TRUE;
  } else {
    PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
    PetscCall(MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE));
  }
  PetscCall(MatDestroy(&hyb->former));
  PetscCall(HybArenaReset(&arrays));
  PetscCall(PetscInfo(A, locked ? "The values leave page-locked memory\n" : "Written on the host again: values and pattern return to the arrays of before\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUWriteBegin(Mat A, PetscBool exact, HybExec *x, PetscBool *device, HybWriteThrough *w)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;
  HybPatternKey        key;
  PetscObjectState     state;
  PetscBool            due;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(*w)));
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(A, x, device));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (*device || hyb->copy.born || !hyb->copy.pattern || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_TRUE, &l));
  PetscCall(HybPatternKeyGet(A, &l.csr, &key));
  PetscCall(HybLentRestore(A, &l));
  if (!HybPatternKeyEqual(&key, &hyb->copy.key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x)); /* it has been used there: no matter what its size is */
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUPromotionDue(A, hyb, x, &due));
  if (due) PetscCall(MatSeqAIJHybridGPUPromote(A, hyb, x, device));
  if (*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  w->counts = PETSC_TRUE;
  w->both   = (PetscBool)(exact && hyb->copy.values && HybMarkCurrent(&hyb->copy.mark, state));
  w->csr    = hyb->copy.csr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUWriteEnd(Mat A, HybWriteThrough *w, PetscBool interface)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;
  HybPatternKey        key;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->moves++;
  if (!w->counts) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_TRUE, &l));
  PetscCall(HybPatternKeyGet(A, &l.csr, &key));
  PetscCall(HybLentRestore(A, &l));
  if (!HybPatternKeyEqual(&key, &hyb->copy.key)) PetscFunctionReturn(PETSC_SUCCESS); /* the parent made room for new entries */
  PetscCall(HybMarkSet(A, interface, &hyb->written));
  hyb->writes++;
  if (w->both) {
    hyb->copy.mark = hyb->written;
    HybGlueState.deviceops++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
