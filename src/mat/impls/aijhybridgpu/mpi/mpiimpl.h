/*
  mpiimpl.h: what the files of the parallel type share: its operations.
*/
#ifndef AIJHYBRIDGPU_MPIIMPL_H
#define AIJHYBRIDGPU_MPIIMPL_H
#include "../aijhybridgpuimpl.h"

/* halo.c: the one that serves a product of A with vectors of this kind, NULL: PETSc's scatter does. Collective. */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetHalo(Mat A, PetscBool vectorsondevice, Mat blocks[2], HybExec *x, HybHalo *);
PETSC_INTERN PetscErrorCode HybMPIHaloDestroy(HybMPIHalo *);

/* matmult.c */
PETSC_INTERN PetscErrorCode MatMult_MPIAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_MPIAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_MPIAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_MPIAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_MPIAIJHybridGPU(Mat, Vec, Vec, Vec);

/* setvalues.c */
PETSC_INTERN PetscErrorCode MatSetValues_MPIAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscInt, const PetscInt[], const PetscScalar[], InsertMode);
PETSC_INTERN PetscErrorCode MatZeroRows_MPIAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);
PETSC_INTERN PetscErrorCode MatZeroRowsColumns_MPIAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);
#if PETSC_VERSION_GE(3, 20, 0)
PETSC_INTERN PetscErrorCode MatEliminateZeros_MPIAIJHybridGPU(Mat, PetscBool);
#endif
PETSC_INTERN PetscErrorCode MatAssemblyBegin_MPIAIJHybridGPU(Mat, MatAssemblyType);
PETSC_INTERN PetscErrorCode MatAssemblyEnd_MPIAIJHybridGPU(Mat, MatAssemblyType);

/* submatrix.c */
PETSC_INTERN PetscErrorCode MatCreateSubMatrix_MPIAIJHybridGPU(Mat, IS, IS, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatCreateSubMatrices_MPIAIJHybridGPU(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);

#endif
