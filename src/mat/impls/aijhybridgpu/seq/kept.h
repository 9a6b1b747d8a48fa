/*
  A product's result that keeps a pattern of its own: what the sequential and the parallel products share.
*/
#ifndef AIJHYBRIDGPU_KEPT_H
#define AIJHYBRIDGPU_KEPT_H

#include "../storage/where.h"

/* The product itself where the result's pattern is wider. The rest of the result are zeros. */
typedef struct {
  PetscBool padded;
  HybArena  arena;
  HybCSR    csr;
  PetscInt *j; /* its columns as the result numbers them, where that is otherwise than csr does */
} HybKept;

/* a numeric phase, from Begin to End */
typedef struct {
  HybCSR          csr; /* the result, where the product runs */
  PetscBool       ondevice, aside;
  HybArena        side;
  HybWriteThrough w;
} HybKeptWrite;

/* Has A a pattern that stands, assembled or not? */
PETSC_INTERN PetscBool HybPatternIsWhole(Mat A);
/* is the pattern of a product, with values, within C's, is it the same? */
PETSC_INTERN PetscErrorCode HybKeptWithin(Mat C, const HybExec *, const HybCSR *product, PetscBool *within, PetscBool *equal);
/* *kept takes over the arrays */
PETSC_INTERN PetscErrorCode HybKeptSet(HybKept *, HybArena *arrays, const HybCSR *csr);
PETSC_INTERN PetscErrorCode HybKeptReset(HybKept *);
/* MAT_FORCE_DIAGONAL_ENTRIES: *result becomes the product's sum with an empty diagonal where it lacks some of it */
PETSC_INTERN PetscErrorCode HybKeptForceDiagonal(const HybExec *, HybKept *, HybArena *arrays, HybCSR *result);
/* where the values go that the product computes: kept's, if it is padded, else w's */
PETSC_INTERN PetscErrorCode HybKeptBegin(Mat C, const HybExec *, HybKeptWrite *w);
/* they are there, and become C's; interface: as for MatSeqAIJHybridGPUDeviceWrittenStep() */
PETSC_INTERN PetscErrorCode HybKeptEnd(Mat C, const HybExec *, HybKept *, PetscBool interface, HybKeptWrite *w);
PETSC_INTERN PetscErrorCode HybKeptFree(HybKeptWrite *w);

#endif
