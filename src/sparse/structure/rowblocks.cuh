/*
  rowblocks.cuh: matrices of several unknowns to a point, whose pattern consists of whole blocks: bs rows with the same
  columns, in groups of bs that begin at multiples of bs.
*/
#ifndef AIJHYBRIDGPU_ROWBLOCKS_CUH
#define AIJHYBRIDGPU_ROWBLOCKS_CUH
#include "hybdispatch.cuh"

using RowBlocksSizes = HybCases<2, 3, 4, 5, 6, 8>;
#define ROWBLOCKS_ASKED 16 /* one block row in so many is asked how its blocks lie */

typedef struct {
  PetscInt  bs;      /* 1: there are no blocks, and nothing else is set */
  PetscInt  longest; /* entries of the longest row */
  PetscInt  near;    /* blocks that stand right behind another of their row, in the block rows that were asked */
  PetscInt *column;  /* block columns, block row by block row; taken from keep */
} RowBlocks;

/* what going through all rows finds; all zero before */
typedef struct {
  int      wrong; /* some row is not part of whole blocks */
  PetscInt longest;
  /* blocks that stand right behind another of their row, in the block rows that were asked, one in ROWBLOCKS_ASKED */
  PetscInt near;
} RowBlocksLook;

/* The steps of HybRowBlocksFind(), for who waits for the device but once for several things; none of these waits.
   Sizes are bits: bit bs. Those that the numbers of rows, columns and entries leave; *wrong, zero before, gets those
   that a sample of the rows refuses; the blocks' columns and, where ptr is not NULL, where each block row's begin. */
extern int            HybRowBlocksCandidates(const HybCSR *A);
extern PetscErrorCode HybRowBlocksSampleAsync(const HybExec *, const HybCSR *A, int candidates, int *wrong);
extern PetscErrorCode HybRowBlocksColumnsAsync(const HybExec *, const HybCSR *A, PetscInt bs, PetscInt *ptr, PetscInt *column, RowBlocksLook *look);

/* The largest blocks that all rows consist of; bs: the only size to look for, or 1 for any */
extern PetscErrorCode HybRowBlocksFind(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, RowBlocks *);
#endif
