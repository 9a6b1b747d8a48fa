/*
  What glue outside of src/mat asks of matrices of the type: their arrays where an operation runs, and matrices made of
  results.
*/
#include "family.h"

PetscBool HybMatIsSeq(Mat A)
{
  return (PetscBool)(MatIsSeqAIJHybridGPU(A) && A->assembled && !A->factortype);
}

PetscErrorCode HybMatGetExec(Mat A, HybExec *x)
{
  PetscBool device;

  PetscFunctionBegin;
  *x = HybExecHost;
  PetscCall(MatSeqAIJHybridGPUDeriveExec(A, x, &device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetCSR(Mat A, const HybExec *x, PetscBool values, HybCSR *csr)
{
  HybLent l;

  PetscFunctionBegin;
  if (HybExecOnDevice(x)) {
    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, values, csr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* ours are lent by MatSeqAIJGetCSRAndMemType(), which nobody has to be told the end of */
  PetscCall(HybLentGet(A, values, &l));
  *csr = l.csr;
  PetscCall(HybLentRestore(A, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatRestoreCSR(Mat A, const HybExec *x, HybCSR *csr)
{
  PetscFunctionBegin;
  if (HybExecOnDevice(x)) PetscCall(MatSeqAIJHybridGPUReadEnd(A, x));
  PetscCall(PetscMemzero(csr, sizeof(*csr)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatAscends(Mat A, const HybExec *x, PetscBool *yes)
{
  const PetscBool device = HybExecOnDevice(x);
  HybView         v;
  PetscCount      nbad;
  PetscInt        badrow;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  v.x = *x;
  if (device) PetscCall(HybViewSend(&v, PETSC_FALSE));
  PetscCall(HybRowsLook(A, device ? &v.hyb->copy.key : &v.key, x, device ? &v.csr : &v.host, &nbad, &badrow));
  if (device) PetscCall(MatSeqAIJHybridGPUReadEnd(A, x));
  *yes = (PetscBool)!nbad;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatCreateFromCSR(Mat A, const HybExec *x, HybArena *arrays, const HybCSR *csr, PetscInt rbs, PetscInt cbs, Mat *C)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUCreateLike(A, csr->m, csr->n, rbs, cbs, C));
  ierr = MatSeqAIJHybridGPUAdopt(*C, x, PETSC_FALSE, arrays, csr);
  if (ierr) (void)MatDestroy(C);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
