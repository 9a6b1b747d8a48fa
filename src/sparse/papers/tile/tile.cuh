/*
  tile.cuh: a sparse matrix as tiles of 8 x 8 entries (Zachariadis et al. 2020), made from CSR on a device.

  A row of tiles is eight rows of the matrix, the last one what is left. Tiles of a row of tiles lie behind each other,
  columns ascending. The tiles of row R have room from place i[8 R] of the matrix's own offsets on: it has no more tiles
  than entries. So nothing is counted before tiles are made, and they are made in one pass. When their number is known
  they are packed: most rooms are nearly empty. Values stay where they are, in CSR, where the entries that a row has in
  a tile are neighbours: a packed tile has eight beginnings.
*/
#ifndef AIJHYBRIDGPU_HYBTILE_H
#define AIJHYBRIDGPU_HYBTILE_H
#include "aijhybridgpu/private/hyb.h"

HYB_EXTERN_C_BEGIN

#define HYB_TILE 8

/* bit 8 r + c of map: entry (r, c) of the tile is there. Loaded as one access of 16 bytes. */
typedef struct {
  uint64_t   map;
  PetscInt64 column; /* of tiles; 64 bits, so that no byte is left out where it is copied */
} __attribute__((aligned(16))) HybTile;

/* A row of a tile, as products look entries up. For each column four bits, the first one's the lowest: 8 where there is
   an entry, and how many the row has before it. */
typedef struct {
  PetscInt first; /* entry of the matrix, less the 8 that four bits have */
  unsigned columns;
} __attribute__((aligned(2 * sizeof(PetscInt)))) HybTileRow;

typedef struct {
  PetscInt        rows;  /* of tiles */
  const PetscInt *i;     /* the matrix's offsets, valid while it is */
  PetscInt       *count; /* tiles of each row of them; NULL: they are packed */
  HybTile        *tile;
  unsigned short *mask; /* of each tile, which rows of it (bits 0 to 7) and which columns (8 to 15) have entries */
  HybTileRow     *row;  /* of packed tiles, HYB_TILE for each */
} HybTiles;

/* All from work. No synchronisation. */
extern PetscErrorCode HybTilesMake(const HybExec *, HybArena *work, const HybCSR *A, HybTiles *);
/* For each row of tiles of A*B, before they are packed: the first column of tiles that it may have, words of 32 bits
   from there to the last one, and what counting it costs, in words; *pairs, zero before: of a tile of A and one of B.
   No synchronisation. */
extern PetscErrorCode HybTilesSpans(const HybExec *, const HybTiles *a, const HybTiles *b, PetscInt *low, PetscInt *words, PetscInt *cost, PetscCount *pairs);
/* Tiles without room between them, their rows from keep, all else from work; what had room is given back to work.
   tiles: how many in all; ptr (rows + 1): which is each row's first. No synchronisation. */
extern PetscErrorCode HybTilesPack(const HybExec *, HybArena *keep, HybArena *work, PetscInt m, PetscCount tiles, const PetscInt *ptr, HybTiles *);
/* Tasks of a tile of C have the order of A's tiles. Behind the last one are HYB_TILE_AHEAD more, which are looked at,
   but not multiplied. */
#define HYB_TILE_AHEAD 3
typedef struct {
  PetscInt a, b;
} __attribute__((aligned(2 * sizeof(PetscInt)))) HybTileTask;

#define HYB_TILE_CHUNK 8 /* tiles of C that are computed together, of one row of them, columns ascending */

/* which tiles are multiplied, and where C has what comes of it */
typedef struct {
  HybTiles     a, b;
  PetscBool    same; /* b is a */
  HybTileTask *tasks;
  PetscInt     chunks;
  PetscCount  *chunktask; /* the first of each chunk, and where the last one ends */
  PetscInt    *chunkrow;  /* of tiles */
  PetscInt    *before;    /* HYB_TILE_CHUNK for each chunk: entries of C that are before it in each of its rows */
  uint64_t    *map;       /* of each tile of C, HYB_TILE_CHUNK for each chunk, 0: none */
  unsigned    *end;       /* the same: where its tasks end, the lowest 32 bits */
  PetscInt    *column;    /* the same; used where C's columns are wanted */
} HybTilesProduct;

/* C's values where C->a is given, from those of A and B, and columns where cj is; C->i is there. Real numbers in double
   precision; an entry is a chain of fma() in A's order, bit for bit. No synchronisation. */
extern PetscErrorCode HybTilesMultiply(const HybExec *, HybArena *work, const HybTilesProduct *, const HybCSR *A, const HybCSR *B, PetscInt *cj, HybCSR *C);
#define HYB_TILE_HALF 1 /* of HybTuning.tile_precision: values are rounded to half precision, sums are of single */
/* what values lose by that: *largest of |a|, and *error, the largest of |half(a) - a| / |a|, both as the bits of a
   double, on the device, zero before. No synchronisation. */
extern PetscErrorCode HybTilesError(const HybExec *, const HybCSR *A, uint64_t *largest, uint64_t *error);

HYB_EXTERN_C_END
#endif
