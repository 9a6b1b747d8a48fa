/*
  What the report of the run (../../process/records.c) asks of a sequential matrix: its entries, where it lives, and what it takes there.
*/
#include "aijhybridgpuimpl.h"

PetscErrorCode MatSeqAIJHybridGPUDescribe(Mat A, HybRecordFacts *facts)
{
  static const char *const where[HYB_LIVES] = {"host", "copied", "locked", "promoted", "shared", "mirrored"}; /* as docs/architecture.md has them */
  Mat_SeqAIJHybridGPU     *hyb              = (Mat_SeqAIJHybridGPU *)A->spptr;
  size_t                   pattern, values;
  HybLent                  l;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(facts, sizeof(*facts)));
  facts->where = "";
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !A->data || !A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_FALSE, &l));
  facts->nnz = l.csr.nnz;
  pattern    = sizeof(PetscInt) * ((size_t)l.csr.nnz + (size_t)l.csr.m + 1);
  values     = sizeof(PetscScalar) * (size_t)l.csr.nnz;
  PetscCall(HybLentRestore(A, &l));
  facts->where    = where[hyb->lives];
  facts->sendings = hyb->sendings;
  /* what is in the storage of both sides is counted once, with the device */
  facts->hostbytes   = hyb->lives == HYB_LIVES_SHARED ? 0 : hyb->lives == HYB_LIVES_PROMOTED ? pattern : pattern + values;
  facts->devicebytes = hyb->copy.pattern ? pattern + (hyb->copy.csr.a ? values : 0) : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
