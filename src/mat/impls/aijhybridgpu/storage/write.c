/*
  Writing a matrix's values on the device: alone where it lives there; on both sides where it has a copy there and both
  round alike, or on the device alone, whose values come back.
*/
#include "storage.h"
#include "where.h"

PetscErrorCode MatSeqAIJHybridGPUWriteOnDevice(Mat A, HybExec *x, PetscBool *flg)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybPatternKey        key;

  PetscFunctionBegin;
  *flg = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (!HybBorn(hyb) || !(A->assembled || (hyb->coopattern && A->insertmode == NOT_SET_VALUES))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybPatternKeyNow(A, &key));
  if (!HybPatternKeyEqual(&key, &hyb->copy.key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x));
  *flg = HybExecOnDevice(x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUDeviceWritten(Mat A, const HybExec *x)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(A, x, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUDeviceWrittenStep(Mat A, const HybExec *x, PetscBool interface)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscScalar         *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  /* tells the base class that the values moved (inverted diagonals, state) */
  HybInside(A, MatSeqAIJGetArray(A, &a));
  hyb->transpose.stale = PETSC_TRUE;
  if (!HybShared(hyb)) {
    hyb->copy.values = PETSC_FALSE; /* not the host's, until they are there */
    PetscCall(HybEventBegin(HYB_OP_COPYFROM, A));
    PetscCall(x->backend->copy(x, a, hyb->copy.csr.a, sizeof(HybScalar) * (size_t)hyb->copy.csr.nnz, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(HybLogToHost(sizeof(HybScalar) * (PetscLogDouble)hyb->copy.csr.nnz));
    PetscCall(HybEventEnd(HYB_OP_COPYFROM, A));
  }
  PetscCall(x->backend->sync(x)); /* the host may look at any time */
  HybInside(A, MatSeqAIJRestoreArray(A, &a));
  hyb->quiet       = PETSC_TRUE;
  hyb->copy.values = PETSC_TRUE;
  PetscCall(HybMarkSet(A, interface, &hyb->copy.mark));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUWriteBegin(Mat A, PetscBool exact, PetscCount alone, HybExec *x, PetscBool *device, HybWriteThrough *w)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybPatternKey        key;
  PetscObjectState     state;
  PetscBool            due, first;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(*w)));
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(A, x, device));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (!*device) PetscCall(HybStorageQuiet(hyb));
  if (*device || HybBorn(hyb) || !hyb->copy.pattern || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybPatternKeyNow(A, &key));
  if (!HybPatternKeyEqual(&key, &hyb->copy.key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x)); /* it has been used there: no matter what its size is */
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (!alone || hyb->copy.csr.nnz < alone || !exact || !hyb->copy.values || !HybMarkCurrent(&hyb->copy.mark, state)) alone = 0;
  first = (PetscBool)(alone && hyb->lives == HYB_LIVES_COPIED && !hyb->sendings && !hyb->returned);
  PetscCall(MatSeqAIJHybridGPUPromotionDue(A, hyb, x, first, &due));
  if (due) PetscCall(MatSeqAIJHybridGPUPromote(A, hyb, x, device));
  if (*device) PetscFunctionReturn(PETSC_SUCCESS);
  w->counts = PETSC_TRUE;
  w->both   = (PetscBool)(exact && hyb->copy.values && HybMarkCurrent(&hyb->copy.mark, state));
  w->csr    = hyb->copy.csr;
  /* else somebody may have written the host's values since the device got them */
  w->back = (PetscBool)(w->both && alone && !HybGlueState.options.promotenever && !hyb->writers && HybStorageIsOwn(A, hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUWriteBack(Mat A, const HybExec *x, const HybWriteThrough *w)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscScalar         *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->copy.values = PETSC_FALSE; /* not the host's, until they are there */
  HybInside(A, MatSeqAIJGetArray(A, &a));
  PetscCall(HybEventBegin(HYB_OP_COPYFROM, A));
  PetscCall(x->backend->copy(x, a, w->csr.a, sizeof(HybScalar) * (size_t)w->csr.nnz, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybLogToHost(sizeof(HybScalar) * (PetscLogDouble)w->csr.nnz));
  PetscCall(x->backend->sync(x));
  PetscCall(HybEventEnd(HYB_OP_COPYFROM, A));
  HybInside(A, MatSeqAIJRestoreArray(A, &a));
  hyb->copy.values = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUWriteEnd(Mat A, HybWriteThrough *w, PetscBool interface)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybPatternKey        key;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->moves++;
  hyb->transpose.stale = PETSC_TRUE;
  if (!w->both) hyb->copy.values = PETSC_FALSE;
  if (!w->counts) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybPatternKeyNow(A, &key));
  /* the parent made room for new entries */
  if (!HybPatternKeyEqual(&key, &hyb->copy.key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMarkSet(A, interface, &hyb->written));
  hyb->writes++;
  if (w->both) {
    hyb->copy.mark = hyb->written;
    HybGlueState.counts.deviceops++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y's values were written on the device, and AIJ ends such an operation with an assembly: it counts, and claims of
   symmetry go unless they are eternal */
PetscErrorCode MatSeqAIJHybridGPUAssembleWritten(Mat Y)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(Y, &hyb));
  hyb->assembling = hyb->copy.mark.state;
  PetscCall(MatAssemblyBegin(Y, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(Y, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}
