/*
  hashargs.cuh: what the phases of hashrows.cu hand each other: the bins, pairs of a block of 32 columns and its mask,
  and the arguments of their kernels.
*/
#ifndef AIJHYBRIDGPU_HASHARGS_CUH
#define AIJHYBRIDGPU_HASHARGS_CUH
#include "../hashrows.cuh"
#include "../operands.cuh"
#include "../../plan/bins.cuh"
#include "../../device/hybgroup.cuh"

#define HASH_EMPTY    0xffffffffu
#define HASH_SPILL    (1 << 29)       /* cost of a row whose table alone fits shared memory */
#define HASH_GLOBAL   ((1 << 29) + 1) /* cost of a row whose table does not */
#define HASH_LONGROW  128             /* rows of B longer than this are compressed by a block */
#define HASH_SUBWARP  4096            /* bytes of the largest table that a sub-warp takes */
#define HASH_RANKED   (1u << 31)      /* of a row's size: its table is ranked, and the other bits are its span */
#define HASH_STAGE    64              /* entries of A that a block stages in shared memory */
#define HASH_SMALL    5               /* bins of the numeric pass up to this one can be taken by one launch */
#define HASH_SMALLMEM 16384           /* whose blocks have 128 threads and so many bytes of shared memory */
#define HASH_MIDDLE   6               /* the bin of rows that take half of what the next one's do */
#define HASH_WHOLE    8               /* that of rows that take all that a block may have; then spilled, global */
/* entries of a mean row of B up to which rows are few lanes wide, and the middle bin is empty: its 128 threads take a
   row of long rows of B as fast as 256, and twice as many rows, but others wait for its longest rows */
#define HASH_NARROW 48
/* the same of the count's small rows where lists are wanted: bitmaps of spans fit where a hash table would have to
   do */
#define HASH_COUNTMEM 24576
/* entries of a mean row of B from which the count's sub-warps take the pairs of several of them together, if the
   longest has HASH_UNEVEN times as many; where rows are alike that loses */
#define HASH_ALONG     4
#define HASH_UNEVEN    16
#define HASH_ALONGMOST ((1 << 26) - 1) /* entries of the longest: a sub-warp's rows together are counted by 32 bits */
#define HASH_RANKMOST  3               /* a ranked table may have so many halves of a hashed one's bytes */
/* blocks up to which it is one launch: beyond, each bin fills the card by itself, with less shared memory a block */
#define HASH_MERGE 32768
/* entries of B from which the card is asked whether it has the memory for pairs: the question takes longer than a small
   product */
#define HASH_ASK   (1 << 20)
#define HASH_POOLS 16 /* parts of the room for lists, each with a counter of its own */
/* times the products of a mean row that the longest may have where rows are listed */
#define HASH_REGULAR 16
/* products of a mean row up to which rows are listed also where some are much longer */
#define HASH_SHORT     320
#define HASH_FEWBLOCKS 32 /* blocks of a row that are ordered by comparing each with each */
#define HASH_FARBLOCKS 8  /* words of bits to a block, beyond which blocks are compared or sorted */
/* rows of A with more entries get a block, as their entries are added one after the other */
#define HASH_LONGLIST 256
#if defined(PETSC_USE_COMPLEX)
  #define HASH_BATCH 2 /* entries of A whose rows of B are on their way together */
#else
  #define HASH_BATCH 4
#endif

/* bins of the count: upper bounds of inserted pairs, slots of the table, threads a row */
#define HASH_COUNT_BINS 7
static constexpr PetscCount HashCountLimit[HASH_COUNT_BINS - 1] = {0, 48, 192, 384, 1536, 6144};

/* bins of the numeric pass: bytes of shared memory a row */
static constexpr PetscCount HashLimit[HYB_HASH_BINS - 1] = {0, 512, 1024, 2048, 4096, 16384, 24576, 49152, HASH_SPILL - 1, HASH_SPILL};

/* the same, without the middle one where that is not wanted */
static inline void HashLimits(bool middle, PetscCount limit[HYB_HASH_BINS - 1])
{
  memcpy(limit, HashLimit, sizeof(HashLimit));
  if (!middle) limit[HASH_MIDDLE] = HashLimit[HASH_MIDDLE - 1];
}

/* a block of 32 columns of B's row and which of them are present */
struct alignas(8) HashPair {
  unsigned block, mask;
};

/* log2 of the lanes that take a row whose table needs bin b: those of a mean row of B, no fewer than keep a
   multiprocessor full with tables of this size, and no more than twice as many, as rows with small tables meet short
   rows of B */
static __host__ __device__ __forceinline__ int HashGroupLanes(int b, int mean)
{
  const int least = b + 1, most = b + 2 < 5 ? b + 2 : 5;

  return mean < least ? least : mean > most ? most
                                            : mean;
}

struct HashArgs {
  const PetscInt  *ai, *aj, *bi, *bj;
  const HybScalar *aa, *ba;
  const HashPair  *pairs; /* of row r of B: from pairs[bi[r]], npairs[r] of them; NULL: B is not compressed */
  const PetscInt  *npairs;
  /* rows of this launch: order[binptr[0]] .. order[binptr[1]-1]; of the launches of many bins: of bin 0 */
  const PetscInt *order, *binptr;
  int             bytes; /* shared memory of a group */
  /* log2 of the lanes that take a row of B in unordered insertions, at most all of a group */
  int lanes;
  int grouplanes; /* numeric, many bins: log2 of the lanes across a row of B, at least */
  /* numeric, many bins: bin HASH_SMALL begins at block 0, bin HASH_SMALL-1 at firstblock[1], ... */
  int firstblock[HASH_SMALL + 1];
  /* the row's numeric table: first block and number of words (direct), the same with the bit HASH_RANKED beside the
     blocks of the span (ranked), or HASH_EMPTY and number of slots */
  unsigned *base, *size;
  /* count */
  const PetscCount *upper;
  PetscInt         *count, *need, *over; /* over[0]: rows left to global tables, the list follows */
  PetscInt          maxbytes;            /* of a block's table, for the choice of need */
  /* lists of what the count found: where (HASH_EMPTY: there was no room), twice the number of blocks and one more if
     they ascend */
  unsigned   *where, *listed;
  HashPair   *list;
  PetscCount *used, room; /* of each of HASH_POOLS parts */
  PetscCount *unlisted;   /* 1: there are rows without */
  /* fill and numeric */
  const PetscInt *ci;
  PetscInt       *cj;
  HybScalar      *ca;
  int             products, columns, values; /* table from the products (else from cj); write cj; compute ca */
  /* the plan of a numeric phase; in HashNumericRow(): places are to be found */
  PetscInt         *from, *off, *widest;
  const PetscCount *placeptr;
  /* rows whose places are to be found, the first one's are the first: by placeptr */
  PetscCount      partbegin, partend;
  unsigned short *places;
  /* global tables: words a block */
  unsigned  *global;
  PetscCount globalwords;
};

/* the same and C, for places of all rows */
static inline void HybHashPlanOperands(const HybCSR *A, const HybCSR *B, const HybCSR *C, HashArgs *x)
{
  HybSpGEMMOperands(A, B, x);
  x->ci      = C->i;
  x->cj      = C->j;
  x->partend = (PetscCount)1 << 62; /* one part of all rows */
}

/* the row has its columns from its list */
static __device__ __forceinline__ bool HashListed(const HashArgs &x, PetscInt row)
{
  return x.where && x.where[row] != HASH_EMPTY;
}

/* The phases, each in the file of its name; HybHashRun() is the fill's and the numeric phase's, of some of the bins */
extern PetscErrorCode HybHashCompress(HybSpGEMM *mm, const HybCSR *B, HybHashRows *hash);
extern PetscErrorCode HybHashLists(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash);
/* counts every row and chooses its numeric table: x->count, need, base, size. binptr, and the zeroed counters of its
   making, are workspace of the caller's. */
extern PetscErrorCode HybHashCountRows(HybSpGEMM *mm, const HybHashRows *hash, const PetscCount *upper, PetscInt m, PetscInt *binptr, PetscInt *counters, HashArgs x);
/* the columns of rows that have lists */
extern PetscErrorCode HybHashListRows(HybSpGEMM *mm, const HybHashRows *hash, HashArgs x);
extern PetscErrorCode HybHashRun(HybSpGEMM *mm, const HybHashRows *hash, HashArgs x, int firstbin, int lastbin);
/* tables of so many words in global memory: one for each multiprocessor, fewer where they would take more than a
   quarter of what may be taken (HybMemorySpare()) */
extern PetscErrorCode HybHashGlobalTables(const HybExec *exec, HybArena *work, int multiprocessors, PetscCount words, PetscCount rows, HashArgs *x, PetscCount *blocks);
/* of each entry of A: where its row of B begins, and which of its row's products is the first: x.from, x.off; of each
   row of A, where that is wanted, the longest row of B: x.widest */
extern PetscErrorCode HybHashRowStarts(const HybExec *exec, PetscInt m, HashArgs x);
/* the bytes of what the plans of terms.cu, at least, and of places.cu keep; 0: there shall be none */
extern size_t HybHashTermsLeast(const HybSpGEMM *mm, const HybCSR *A, const HybHashRows *hash, const HybCSR *C);
extern size_t HybHashPlacesBytes(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, const HybCSR *C);
/* terms of all entries of C, if they take no more than spare: else hash->terms.term stays NULL */
extern PetscErrorCode HybHashTermsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C, size_t spare);
/* places of all products */
extern PetscErrorCode HybHashPlaces(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C);

#endif
