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

/* Tables of classes: slots with a key each, 0 where it is free, and the smallest row that has that key. */

/* The slot of key (not 0), which row r has; *n counts the keys. HYB_ROWSHAPE_NONE: none was free within so many probes.
   That, or more than maxclasses keys, is an overflow. A stale look at the table is harmless: the atomics decide. */
static __device__ __forceinline__ unsigned HybRowClassSlot(unsigned long long key, unsigned hash, PetscInt r, int maxclasses, unsigned nslots, unsigned probes, unsigned long long *keys, PetscInt *rows, int *n, int *overflow)
{
  unsigned slot = hash & (nslots - 1);

  for (unsigned probe = 0; probe < probes; probe++, slot = (slot + 1) & (nslots - 1)) {
    unsigned long long there = keys[slot];

    if (there == 0) {
      there = HybAtomicCAS(&keys[slot], 0ull, key);
      if (there == 0) {
        if (HybAtomicAdd(n, 1) >= maxclasses) HybAtomicOr(overflow, 1);
        there = key;
      }
    }
    if (there == key) {
      if (rows[slot] > r) HybAtomicMin(&rows[slot], r);
      return slot;
    }
  }
  HybAtomicOr(overflow, 1); /* so crowded a table holds more classes than are allowed, or will */
  return HYB_ROWSHAPE_NONE;
}

/* One block of THREADS: numbers the keys in the order of their rows, their representatives, so not in that of their
   insertion. list and first have room for all keys, first and n in shared memory. A free slot's class is NONE. */
template <int THREADS>
static __device__ __forceinline__ void HybRowClassNumber(unsigned nslots, const unsigned long long *__restrict__ keys, const PetscInt *__restrict__ rows, PetscInt *list, PetscInt *first, int *n, HybRowClass *slotclass, PetscInt *representative)
{
  const int t = (int)threadIdx.x;

  if (t == 0) *n = 0;
  __syncthreads();
  for (unsigned s = (unsigned)t; s < nslots; s += THREADS) {
    slotclass[s] = (HybRowClass)HYB_ROWSHAPE_NONE;
    if (keys[s]) {
      const int at = HybAtomicAdd(n, 1); /* in any order: only the rank below counts */

      list[at]  = (PetscInt)s;
      first[at] = rows[s];
    }
  }
  __syncthreads();
  for (int k = t; k < *n; k += THREADS) {
    const PetscInt mine = first[k];
    int            rank = 0;

    for (int q = 0; q < *n; q++) rank += first[q] < mine;
    slotclass[list[k]]   = (HybRowClass)rank;
    representative[rank] = mine;
  }
}

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
