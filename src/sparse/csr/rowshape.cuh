/*
  rowshape.cuh: classes of rows that have the same shape, the columns relative to the row number. Device code only
  (rowshape.cu).

  Matrices from structured grids have millions of rows and a few dozen shapes. Whoever knows a row's class knows its
  columns without reading them, and what was worked out for one row of a class (a product's program, say) holds for all.
*/
#ifndef AIJHYBRIDGPU_ROWSHAPE_CUH
#define AIJHYBRIDGPU_ROWSHAPE_CUH

#include "../device/hybdevice.cuh"

/* class of a row that has none */
#define HYB_ROWSHAPE_NONE 0xffffu
/* the most classes that can be asked for */
#define HYB_ROWSHAPE_MAX 4096

/* mixes the bits of a row's signature */
static __device__ __forceinline__ unsigned long long HybRowShapeMix(unsigned long long h)
{
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  return h;
}

typedef unsigned short HybRowClass;

typedef struct {
  PetscBool    found;          /* false: more classes than allowed; nothing below is set then */
  PetscInt     nclasses;       /* numbered in the order of their representatives */
  PetscInt     maxlength;      /* entries of the longest representative */
  PetscCount   noffsets;       /* sum of the lengths of the representatives */
  HybRowClass *rowclass;       /* m entries: class of each row, or HYB_ROWSHAPE_NONE */
  PetscInt    *representative; /* nclasses: the smallest row of the class */
  PetscInt    *offsetptr;      /* nclasses+1: where the offsets of a class begin */
  PetscInt    *offset;         /* noffsets: column - row, ascending within a class */
  PetscCount  *unclassed;      /* one number: rows that have no class */
} HybRowShapes;

/*
  Finds the classes of A's rows: two rows are of one class exactly when they have the same columns relative to their row
  numbers. The arrays of S live on the device and come from keep. maxclasses <= HYB_ROWSHAPE_MAX. One host
  synchronisation. The result does not depend on the run.
*/
extern PetscErrorCode HybRowShapesFind(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt maxclasses, HybRowShapes *S);

#endif
