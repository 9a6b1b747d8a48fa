/*
  What the report of the run (../../report/records.c) asks of a sequential matrix: its entries, where it lives, and
  what it takes there.
*/
#include "family.h"

/* Neither allocates nor fails. The parent's count of nonzeros is there in every state of the matrix, also where it has
   no rows yet. */
PetscBool MatSeqAIJHybridGPUDescribe(Mat A, HybRecordFacts *facts)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  size_t               pattern, values;
  MatInfo              info;

  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !A->data || !A->preallocated || (*HybGlueState.seq.getinfo)(A, MAT_LOCAL, &info)) return PETSC_FALSE;
  facts->nnz      = (PetscCount)info.nz_used;
  pattern         = sizeof(PetscInt) * ((size_t)facts->nnz + (size_t)A->rmap->n + 1);
  values          = sizeof(PetscScalar) * (size_t)facts->nnz;
  facts->where    = HybStorageName(hyb);
  facts->sendings = hyb->sendings;
  /* what is in the storage of both sides is counted once, with the device */
  facts->hostbytes   = hyb->lives == HYB_LIVES_SHARED ? 0 : hyb->lives == HYB_LIVES_PROMOTED ? pattern
                                                                                             : pattern + values;
  facts->devicebytes = hyb->copy.pattern ? pattern + (hyb->copy.csr.a ? values : 0) : 0;
  return PETSC_TRUE;
}
