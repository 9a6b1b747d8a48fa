/*
  Public interface of petsc-aijhybridgpu: a PETSc matrix type whose sparse products, Galerkin products and matrix-vector
  products run by methods of its own, on the host and on NVIDIA GPUs.

  A program needs none of this: -dll_append /path/to/libaijhybridgpu.so -mat_type aijhybridgpu is enough. Programs that
  link the library call MatAIJHybridGPUInitializePackage() once after PetscInitialize().
*/
#ifndef PETSCMATAIJHYBRIDGPU_H
#define PETSCMATAIJHYBRIDGPU_H

#include <petscmat.h>

/* The one place where the version stands: makefile, SONAME, packages and documentation take it from here */
#define PETSC_AIJHYBRIDGPU_VERSION "0.1.0"

#define MATAIJHYBRIDGPU    "aijhybridgpu"
#define MATSEQAIJHYBRIDGPU "seqaijhybridgpu"
#define MATMPIAIJHYBRIDGPU "mpiaijhybridgpu"

PETSC_EXTERN PetscErrorCode MatAIJHybridGPUInitializePackage(void);
PETSC_EXTERN PetscErrorCode MatCreateSeqAIJHybridGPU(MPI_Comm, PetscInt, PetscInt, PetscInt, const PetscInt[], Mat *);
PETSC_EXTERN PetscErrorCode MatCreateAIJHybridGPU(MPI_Comm, PetscInt, PetscInt, PetscInt, PetscInt, PetscInt, const PetscInt[], PetscInt, const PetscInt[], Mat *);
PETSC_EXTERN PetscErrorCode MatAIJHybridGPUGetProductMethod(Mat, const char **);
PETSC_EXTERN PetscErrorCode MatAIJHybridGPUGetProductCounter(Mat, const char[], PetscInt64 *);

#endif
