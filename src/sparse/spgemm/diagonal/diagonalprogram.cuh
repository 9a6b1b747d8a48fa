/*
  diagonalprogram.cuh: what the kernels of method "diagonal" (diagonal.cu) go by: runs of A and of B, groups of C,
  for each the pairs of runs in the order of A. Made on the host, in one allocation, from the operands' diagonals.
*/
#ifndef AIJHYBRIDGPU_DIAGONALPROGRAM_CUH
#define AIJHYBRIDGPU_DIAGONALPROGRAM_CUH
#include "../../structure/diagonals.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

#define DIAGONAL_WORDS 8
#define DIAGONAL_PAIRS 1024
/* rows of a block; at least 32 */
#define DIAGONAL_MOST 128
/* bytes of shared memory that DiagonalKernel has beside the dynamic ones, and some more */
#define DIAGONAL_STATIC (256 + (DIAGONALS_MAX + 1) * (4 * sizeof(PetscInt) + sizeof(int)))

/* What is found about the operands, brought to the host in one copy; all zero before */
struct DiagonalLook {
  PetscCount stats[6]; /* the plan's */
  Diagonals  d[2];     /* of A, of B */
  int        blocks;   /* sizes of blocks that rows refuse */
  PetscCount found[3]; /* later, in a copy of its own: products, most of a row, nnz(C) */
};

/* The bits of a run in a word of A or B: first; in a second byte which of three there are (two: lead says that the
   first of the three is missing, else the last is), whether it has three places, and whether these are not all there */
static __host__ __device__ __forceinline__ unsigned DiagonalBits(int first, int count, int lead, int half)
{
  return (unsigned)first | (((1u << count) - 1) | (unsigned)lead << 3 | (unsigned)half << 4 | (unsigned)(half && count < 3) << 5) << 8;
}
#define DIAGONAL_FIRST(w) ((int)((w)&255u))
#define DIAGONAL_MASK(w)  (((w) >> 8) & 7u)
#define DIAGONAL_LEAD(w)  (((w) >> 11) & 1u)
#define DIAGONAL_HALF(w)  (((w) >> 12) & 1u)
#define DIAGONAL_ODD(w)   (((w) >> 13) & 1u)

/* entries that 16 bytes hold */
static __host__ __device__ __forceinline__ constexpr int DiagonalUnit(void)
{
  return sizeof(HybScalar) < 16 ? (int)(16 / sizeof(HybScalar)) : 1;
}

/* The program */
struct DiagonalRun { /* of A */
  PetscInt center;
  unsigned bits;
  int      first, end; /* its targets */
};
struct alignas(8) DiagonalPair { /* of a run of A and one of B */
  /* of the first row of B that the block's first row needs, among those staged; 16 bits further on which of
     DiagonalProducts() it is */
  unsigned place;
  unsigned bits; /* of A's run, and 16 bits further on of B's */
};
struct alignas(16) DiagonalGroup { /* of C */
  PetscInt center;
  unsigned where;      /* word, first of 2 half + 1 bits, half, which entry of a full row the first is: 8 bits each */
  int      first, end; /* its pairs */
};
#define DIAGONAL_WHERE(word, bit, half, rank) ((unsigned)(word) | (unsigned)(bit) << 8 | (unsigned)(half) << 16 | (unsigned)(rank) << 24)
#define DIAGONAL_WORD(where)                  ((int)((where)&255u))
#define DIAGONAL_BIT(where)                   ((int)(((where) >> 8) & 255u))
#define DIAGONAL_REACH(where)                 ((int)(((where) >> 16) & 255u))
#define DIAGONAL_RANK(where)                  ((int)((where) >> 24))
/* in the first word of a row of C: the row of A and all rows of B that it names have all diagonals */
#define DIAGONAL_FULL 0x80000000u
struct DiagonalTile {    /* rows of B that are staged for a run of A */
  PetscInt first, count; /* relative to the block's first row */
  int      base;         /* where their values go */
};
struct DiagonalPlace { /* a staged row */
  PetscInt row;
  int      tile;
};

struct DiagonalArgs {
  PetscInt             m, mb;
  PetscCount           annz, bnnz;
  const PetscInt      *ai, *bi, *ci;
  const HybScalar     *aa, *ba;
  PetscInt            *cj; /* NULL: not wanted */
  HybScalar           *ca; /* NULL: not wanted */
  const void          *worda, *wordb;
  unsigned            *wordc; /* the first of all rows, then the second */
  int                  nwords, nruns, nplaces;
  int                  rows, log;           /* of a block: a power of two, its logarithm */
  int                  bits, stride;        /* A's and B's diagonals */
  int                  full;                /* products of a full row, -1: these are not told from others */
  unsigned             all[DIAGONAL_WORDS]; /* the words of a full row */
  int                  abase, lead[2];      /* entries from a multiple of 16 bytes to the first of A's, of B's values */
  size_t               out, staged, cword;  /* where in shared memory */
  const DiagonalRun   *run;
  const unsigned      *target; /* bits of B's run, 16 bits further on shift and word of C's */
  const DiagonalPair  *pair;
  const DiagonalGroup *group;
  const int           *part; /* the groups of each part */
  const DiagonalTile  *tile;
  const DiagonalPlace *place;
  PetscCount          *stats; /* products, most of a row */
};

typedef struct {
  PetscBool     wide; /* words of 64 bits */
  int           threads;
  int           ndiagonals, npairs;
  size_t        bytes; /* of shared memory */
  DiagonalArgs  args;
  DiagonalLook *look; /* for the symbolic phase */
  void         *worda, *wordb;
  void         *kept; /* room of these */
} Diagonal;

/* The program of operands whose diagonals are known (s->args, and all but the words and look of s), by mm's memory;
 *found: there is one */
extern PetscErrorCode HybDiagonalProgram(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const DiagonalLook *look, Diagonal *s, PetscBool *found);

#endif
