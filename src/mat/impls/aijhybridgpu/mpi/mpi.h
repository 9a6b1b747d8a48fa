/*
  The parallel type: what its files share.
*/
#ifndef AIJHYBRIDGPU_MPI_H
#define AIJHYBRIDGPU_MPI_H

#include "../storage/storage.h"

typedef struct {
  HybChoices choices; /* passed on to the blocks */
  PetscBool  lentarrays;
  PetscCount coocount;
  PetscBool  ignoreoffproc; /* MAT_IGNORE_OFF_PROC_ENTRIES */
  PetscBool  bycolumns;     /* MAT_ROW_ORIENTED was set to false */
  PetscBool  assembling;    /* values came from coordinates, and MatAssemblyBegin() and End() follow: nothing else was inserted */
  Vec        halo;          /* other processes' entries of a vector, on the device */
} Mat_MPIAIJHybridGPU;

/* mpidata.c */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetData(Mat, Mat_MPIAIJHybridGPU **);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat);

/* mpiparts.c: values of a parallel product's parts between them and the result */
#define HYB_PARTS_CALLS 8 /* two for each of a product's parts, of which PETSc makes four at most */
typedef struct {
  const PetscInt *idx; /* NULL: none yet */
  PetscInt        n, first, *place;
} HybPartsCall;
typedef struct _HybParts {
  int          ncalls; /* that have been looked at */
  HybPartsCall calls[HYB_PARTS_CALLS];
  HybArena     places;
  /* of the numeric phase in progress */
  Mat          C, last;
  HybExec      exec;
  HybArena     work;
  PetscScalar *values; /* of C's coordinates, on the device */
  PetscCount   ncoo, used;
  int          call, nown;
  struct {
    const PetscScalar *v;
    PetscCount         at, n;
    PetscBool          device; /* else the values are in v */
  } own[HYB_PARTS_CALLS];
} HybParts;
typedef struct _HybPartsPatterns {
  int n;
  Mat part[HYB_PARTS_CALLS];
} HybPartsPatterns;
PETSC_INTERN PetscErrorCode HybPartsSymbolicBegin(HybPartsPatterns *);
PETSC_INTERN PetscErrorCode HybPartsSymbolicEnd(HybPartsPatterns *, PetscBool failed);
PETSC_INTERN PetscErrorCode HybPartsReset(HybParts *);
/* x, ncoo: of MatMPIAIJHybridGPUCOOOnDevice() */
PETSC_INTERN PetscErrorCode HybPartsBegin(Mat C, const HybExec *x, PetscCount ncoo, HybParts *);
PETSC_INTERN PetscErrorCode HybPartsEnd(HybParts *);
PETSC_INTERN PetscErrorCode HybPartsGet(Mat C, const PetscScalar v[], const PetscScalar **all);
PETSC_INTERN PetscErrorCode MatSeqAIJCopySubArray_SeqAIJHybridGPU(Mat, PetscInt, const PetscInt[], PetscScalar[]);
PETSC_INTERN PetscErrorCode MatMPIAIJGetLocalMatMerge_MPIAIJHybridGPU(Mat, MatReuse, IS *, Mat *);

/* mpicoo.c; the second: whether the blocks' values are the device's to write, and no process has coordinates of
   another's rows, as after a product's symbolic phase */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUComposeCOO(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUCOOOnDevice(Mat, HybExec *x, PetscCount *ncoo, PetscBool *device);

/* mpiaijhybridgpu.c: the type */
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJHybridGPU_MPIAIJ(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJHybridGPU_Derived(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_Derived_MPIAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSetBlocks(Mat);
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_MPIAIJHybridGPU(Mat);

#endif
