/*
  What joins the sequential and the parallel type.
*/
#ifndef AIJHYBRIDGPU_FAMILY_H
#define AIJHYBRIDGPU_FAMILY_H

#include "seq/seq.h"
#include "mpi/mpi.h"
#include "product/product.h"

/* anyproduct.c */
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_AnyHybridGPU(Mat);
/* convertfrom.c: ops->convertfrom */
PETSC_INTERN PetscErrorCode MatConvertFrom_AIJHybridGPU(Mat, MatType, MatReuse, Mat *);
/* compose.c: functions that PETSc finds by name */
PETSC_INTERN PetscErrorCode MatAIJHybridGPUCompose(Mat, PetscBool seq, PetscBool on);
/* describe.c: for the report of the run */
PETSC_INTERN PetscBool MatSeqAIJHybridGPUDescribe(Mat, HybRecordFacts *);

#endif
