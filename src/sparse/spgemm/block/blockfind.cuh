/*
  blockfind.cuh: what method "block" (block.cu) finds of its operands, and what it makes of it.
*/
#ifndef AIJHYBRIDGPU_BLOCKFIND_CUH
#define AIJHYBRIDGPU_BLOCKFIND_CUH
#include "../../plan/bins.cuh"
#include "../../structure/rowblocks.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

#define BLOCK_MOST    65536 /* blocks of a block row of C: places are numbers of two bytes */
#define BLOCK_THREADS 256   /* of kernels that have lanes or threads a block row in order */

/* Bins of places, by words of bits; one more for what is wider, which is gone through in windows */
#define BLOCK_SPANS 13
static const PetscCount BlockSpanLimit[BLOCK_SPANS - 1] = {0, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};

#define BLOCK_SUMS 18 /* bins of sums, by bytes of shared memory; one more for rows that are added in C */

/* why there is no product by blocks */
enum {
  BLOCK_NONE    = 1, /* of this size */
  BLOCK_LONG    = 2,
  BLOCK_SCATTER = 4, /* "auto" alone */
  BLOCK_LARGE   = 8
};

/* What is found on the device, all zero before; what is brought to the host together lies together */
struct BlockLook {
  PetscCount    stats[6]; /* the plan's */
  PetscCount    words[2]; /* of bits: all, the most of a row */
  PetscCount    met;      /* pairs, as all rows have added them up */
  PetscCount    lower;    /* C's blocks at least */
  PetscCount    pairs[3]; /* the same from their scan, the most of a row, 0 */
  RowBlocksLook a, b;
  int           sample, toolong, declined, arrived;
  PetscInt      spanptr[BLOCK_SPANS + 1];
  /* later */
  PetscCount blocks[3]; /* of C: all, the most of a row */
  PetscInt   sumptr[BLOCK_SUMS + 1];
  /* stays */
  PetscInt spancount[2 * BLOCK_SPANS], sumcount[2 * BLOCK_SUMS];
};

/* Where the blocks are, during a symbolic phase; block columns, and where each block row's begin */
struct BlockPattern {
  PetscInt        mb;
  const PetscInt *aptr, *acol, *bptr, *bcol;
};

typedef struct {
  PetscInt        bs;
  PetscInt       *from; /* of each block of A: the first entry of the block row of B that it names */
  unsigned       *off;  /* and which of its row's pairs is its first */
  PetscCount     *pairptr;
  PetscInt       *order; /* block rows by bins of sums */
  unsigned short *place;
  PetscInt        sumptr[BLOCK_SUMS + 1];
  PetscCount      longest; /* blocks of C's longest row */
  char           *kept;    /* room of these but place */
  /* during a symbolic phase */
  BlockLook *look;
  /* the products of each row, mm->rowproducts: one allocation, for a small product is mostly these */
  PetscBool    behind;
  BlockLook    host;
  BlockPattern pattern;
  PetscInt    *low, *words, *npairs, *spanorder, *count;
  PetscCount  *sums;
  char        *room; /* of these */
} BlockProduct;

/* sizes of blocks that the operands' own sizes leave; -1: no sample yet */
extern int HybBlockCandidates(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B);
/* The largest size that both patterns consist of, and what is found of it; s->bs = 0: none, or "auto" does not want it.
   Where it does not, products are counted for who comes next. Two synchronisations, or one if somebody had the
   sample. */
extern PetscErrorCode HybBlockFind(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, bool named, int candidates, BlockProduct *s);
/* gives s->look back */
extern PetscErrorCode HybBlockForget(HybSpGEMM *mm, BlockProduct *s);

#endif
