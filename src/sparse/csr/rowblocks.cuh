/*
  rowblocks.cuh: matrices of several unknowns to a point, whose pattern consists of whole blocks: bs rows with the same columns, in groups of bs that begin at multiples of bs.
*/
#ifndef AIJHYBRIDGPU_ROWBLOCKS_CUH
#define AIJHYBRIDGPU_ROWBLOCKS_CUH
#include "hybdevice.cuh"

#define ROWBLOCKS_SIZES(CALL) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6) CALL(8)
#define ROWBLOCKS_ASKED       16 /* one block row in so many is asked how its blocks lie */

typedef struct {
  PetscInt  bs;      /* 1: there are no blocks, and nothing else is set */
  PetscInt  longest; /* entries of the longest row */
  PetscInt  near;    /* blocks that stand right behind another of their row, in the block rows that were asked */
  PetscInt *column;  /* block columns, block row by block row; taken from keep */
} RowBlocks;

/* The largest blocks that all rows consist of; bs: the only size to look for, or 1 for any */
extern PetscErrorCode RowBlocksFind(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, RowBlocks *);
#endif
