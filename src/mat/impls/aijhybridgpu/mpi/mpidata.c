/*
  The private data of a parallel matrix, and the state of its pattern.
*/
#include "mpi.h"

PetscErrorCode MatMPIAIJHybridGPUGetData(Mat A, Mat_MPIAIJHybridGPU **data)
{
  PetscFunctionBegin;
  if (!A->spptr) {
    Mat_MPIAIJHybridGPU *hyb = NULL;

    PetscCall(PetscNew(&hyb));
    A->spptr = hyb;
    PetscCall(HybGlueReadChoices(&hyb->choices));
  }
  *data = (Mat_MPIAIJHybridGPU *)A->spptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The state of the pattern as the parent's MatAssemblyEnd() will set it: the sum of the blocks'. Else the first
   assembly would tell of another pattern. */
PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat C)
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscInt64      own, all;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &blocks[0], &blocks[1], &garray));
  own = (PetscInt64)(blocks[0]->nonzerostate + blocks[1]->nonzerostate);
  PetscCallMPI(MPI_Allreduce(&own, &all, 1, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)C)));
  C->nonzerostate = C->ass_nonzerostate = (PetscObjectState)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}
