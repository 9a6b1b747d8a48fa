/*
  Where an operation runs, and vectors there (hybmat.h has the verbs).
*/
#ifndef AIJHYBRIDGPU_WHERE_H
#define AIJHYBRIDGPU_WHERE_H

#include "storage.h"

/* vectors.c */
PETSC_INTERN PetscErrorCode HybVecOnDevice(Vec, PetscBool *);
/* the same by its type alone, which all processes have: they may have bound it to the CPU or not (-vec_bind_below) */
PETSC_INTERN PetscErrorCode HybVecOfDevice(Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatAIJHybridGPUSetVecType(Mat);

/* where.c: how to execute an operation on a matrix of these choices with work nonzeros in all operands: on the device
   or on the host */
#define HYB_ANY_SIZE PTRDIFF_MAX /* as work: never too small for the device */
PETSC_INTERN PetscErrorCode HybGlueGetExec(Mat, const HybChoices *, PetscCount work, HybExec *);
/* a product with vectors */
PETSC_INTERN PetscErrorCode HybWhereMult(HybView *, PetscBool transpose, HybSpMVMode, Vec xx, Vec zz);
/* a product with a dense matrix, which is on the device or not */
PETSC_INTERN PetscErrorCode HybWhereDense(Mat, PetscBool ondevice, PetscCount nnz, HybExec *);
/* this process's part of a parallel matrix's product, of this diagonal block, with vectors on the device or not */
PETSC_INTERN PetscErrorCode HybWhereHalo(Mat, const HybChoices *, PetscBool vectors, Mat block, HybExec *);
/* Is it worth while to make a pattern of n places on the device, or are the indices there? */
PETSC_INTERN PetscBool HybWhereCOO(Mat, const HybChoices *, PetscBool indices, PetscCount n);
/* What all processes do together: can says what this one has. The largest of any[] over all tell where. */
PETSC_INTERN void HybWhereAsk(const HybExec *can, PetscBool wanted, PetscInt64 any[2]);
PETSC_INTERN void HybWhereAll(const PetscInt64 any[2], const HybExec *can, HybExec *x);
/* the same at once; ierr and what: as for HybAgree() */
PETSC_INTERN PetscErrorCode HybWhereTogether(MPI_Comm, PetscErrorCode ierr, const char *what, const HybExec *can, PetscBool wanted, HybExec *x);
/* Is a device in use that operations on A may run on? */
PETSC_INTERN PetscBool HybWhereMayBe(Mat, const HybChoices *);
/* one that runs on the device was done, with vectors there or not */
PETSC_INTERN PetscErrorCode HybWhereStaged(Mat, PetscBool xdevice, PetscBool zdevice);

#endif
