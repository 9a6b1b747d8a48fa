/*
  Assembly from coordinates: what the sequential and the parallel type share.
*/
#ifndef AIJHYBRIDGPU_COO_H
#define AIJHYBRIDGPU_COO_H

#include "../storage/storage.h"

/* Where the values of entry e come from, on the device: map[mapptr[e]] to map[mapptr[e+1]-1] of the given ones */
typedef struct {
  PetscCount  ncoo, nnz;
  PetscInt    m, n;
  HybArena    arena, hostarena;
  PetscCount *mapptr, *map, *hostmapptr, *hostmap; /* the host's: NULL until it needs them */
} HybCOO;

PETSC_INTERN PetscErrorCode HybCOOIsOnDevice(const void *, PetscBool *);
PETSC_INTERN PetscErrorCode HybCOOToHost(const void *array, PetscCount count, size_t size, void **host, void **copy);
PETSC_INTERN PetscErrorCode HybCOOToDevice(const HybExec *, HybArena *work, const void *array, PetscCount count, size_t size, void **device);
PETSC_INTERN PetscErrorCode HybCOOSymbolicOnDevice(const HybExec *, HybArena *work, PetscCount ncoo, const PetscInt *di, const PetscInt *dj, HybArena *arrays, HybCOO *, HybCSR *C);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetValuesCOOHost(Mat, HybCOO *, const PetscScalar *, PetscBool add);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetValuesCOODevice(Mat, HybCOO *, const HybExec *, const PetscScalar *, PetscBool add);
/* by the parent's function, which is given arrays of the host's; n: coordinates */
PETSC_INTERN PetscErrorCode HybCOOPreallocateOnHost(Mat, void (*parent)(void), PetscCount n, const PetscInt[], const PetscInt[]);
PETSC_INTERN PetscErrorCode HybCOOSetValuesOnHost(Mat, void (*parent)(void), PetscCount n, const PetscScalar[], InsertMode);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUShare(Mat A, Mat duplicate);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUForgetCOO(Mat);
PETSC_INTERN PetscErrorCode HybCOOParentsGone(PetscObject, const char *name, PetscCount *coocount);
PETSC_INTERN PetscErrorCode MatSetPreallocationCOO_SeqAIJHybridGPU(Mat, PetscCount, PetscInt[], PetscInt[]);
PETSC_INTERN PetscErrorCode MatSetValuesCOO_SeqAIJHybridGPU(Mat, const PetscScalar[], InsertMode);

#endif
