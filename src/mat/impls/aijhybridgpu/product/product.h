/*
  Products of matrices, sequential and parallel: what the files share. A sequential matrix is here a parallel one with
  one block.
*/
#ifndef AIJHYBRIDGPU_PRODUCT_H
#define AIJHYBRIDGPU_PRODUCT_H

#include "../mpi/mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"
#include "aijhybridgpu/private/hybproduct.h"

/* kept.c: the product itself where the result's pattern is wider. The rest of the result are zeros. */
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

/* What a product keeps of a block of each matrix. A sequential matrix is one itself; of a parallel one the first has
   its own columns, the second those of others. */
typedef struct {
  struct {
    PetscObjectId id; /* of the block: a parallel matrix's own state is a sum, which may come to the same number */
    HybPatternKey key;
    PetscInt      m, n;
    PetscCount    nnz;
    uint64_t      pattern; /* a hash of i and j, 0: not known */
  } operand[3];
  struct { /* whose values the last numeric phase saw; id 0: nobody's */
    PetscObjectId    id;
    PetscObjectState state;
    PetscCount       moves;
  } values[3];
  struct { /* C's block as the product made it: others may have changed its pattern since */
    PetscObjectId    id;
    PetscCount       made, adoptions, generation, nnz;
    PetscObjectState nonzerostate;
  } result;
  HybKept kept; /* where C has entries that the product lacks, be it by MAT_FORCE_DIAGONAL_ENTRIES */
} HybMatProductBlock;

/* What a product keeps */
typedef struct {
  int            blocks; /* 1: a sequential product, of which one computes; 2: a parallel one, of which several does */
  HybProduct     one;
  HybParProduct  several;
  HybProductType type; /* as it is computed */
  HybExec        exec;
  char           method[32]; /* that was asked for, by the product's algorithm or the options */
  PetscInt       noperands;
  struct {            /* of a parallel product */
    PetscInt *garray; /* of the first operand that is this matrix: as many as its second block has columns */
    PetscInt  as;     /* which operand that is */
  } columns[3];
  PetscBool  unsorted[3]; /* operands whose rows or columns of others a copy has in order */
  PetscBool  hashes;      /* patterns are known by their hashes too: other operands have taken the first ones' place */
  PetscBool  stays[3];    /* operands of which no process has seen other values, at the present numeric phase */
  PetscBool  again;       /* the numeric phase is not the first one */
  PetscCount work;        /* by which the device was chosen or not: HybOperandsWork() */
  PetscBool  zeros;       /* C has those of a symbolic phase, is assembled, and no numeric phase has ended since */
  PetscBool  pending;     /* the symbolic phase has left C not assembled, and no numeric phase was there yet */
  /* a parallel numeric phase ends with an assembly: when it began, on some process, entries had been set in C and not
     assembled, or C let new entries in (then MATAIJ's assembly sums the states of the blocks' patterns) */
  PetscBool          assemble;
  PetscBool          refuses; /* C gets MAT_NO_OFF_PROC_ENTRIES */
  HybMatProductBlock block[]; /* as many as it says: a small product keeps no more than it needs */
} HybMatProduct;

/* calls a function that both drivers of products have */
#define HybMatProductDo(mp, ofone, ofseveral, ...) ((mp)->blocks == 2 ? ofseveral((mp)->several, ##__VA_ARGS__) : ofone((mp)->one, ##__VA_ARGS__))

/* Operands as the host sees them, and as the executing backend does */
typedef struct {
  int        blocks;
  PetscInt   n;
  PetscCount work;      /* nonzeros of all operands, here; HybOperandsWork() may add to it */
  HybArena   sent;      /* device copies of operands that are not ours, and sorted ones */
  PetscBool  copied[3]; /* csr has copies in ascending order */
  Mat        mat[3], block[3][2];
  HybParCSR  csr[3]; /* of a sequential one D alone */
  HybLent    lent[3][2];
} HybOperands;

static inline HybCSR *HybParCSRBlock(HybParCSR *M, int b)
{
  return b ? &M->O : &M->D;
}

/* A's blocks of this process; garray of a parallel one */
static inline PetscErrorCode HybMatProductBlocks(Mat A, int blocks, Mat block[2], const PetscInt **garray)
{
  block[0] = A;
  block[1] = NULL;
  return blocks == 2 ? MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], garray) : PETSC_SUCCESS;
}

/* operands.c. Not collective, but for an error of the first. */
PETSC_INTERN PetscErrorCode HybOperandsMats(Mat C, int blocks, HybOperands *);
PETSC_INTERN PetscErrorCode HybOperandsGet(Mat C, PetscBool values, HybOperands *);
PETSC_INTERN PetscErrorCode HybOperandsWork(Mat C, const HybChoices *, HybProductType, HybOperands *);
PETSC_INTERN PetscErrorCode HybOperandsSend(HybOperands *, const HybExec *, PetscBool values);
PETSC_INTERN PetscErrorCode HybOperandsRestore(HybOperands *);
PETSC_INTERN PetscErrorCode HybOperandsNote(HybMatProduct *, HybOperands *);
PETSC_INTERN PetscErrorCode HybOperandsSame(HybMatProduct *, HybOperands *, PetscBool *same);
PETSC_INTERN PetscErrorCode HybOperandsValuesSeen(HybMatProduct *, HybOperands *, PetscBool note, PetscBool seen[3]);
PETSC_INTERN void           HybOperandsValuesForget(HybMatProduct *);
/* has A, not assembled, a pattern that stands? */
PETSC_INTERN PetscBool  HybPatternStands(Mat A, int blocks);
static inline PetscBool HybPatternIsWhole(Mat A, int blocks)
{
  return A->assembled ? PETSC_TRUE : HybPatternStands(A, blocks);
}

/* kept.c. Of a block C: is the pattern of a product, with values, within C's, is it the same? */
PETSC_INTERN PetscErrorCode HybKeptWithin(Mat C, const HybExec *, const HybCSR *product, PetscBool *within, PetscBool *equal);
/* *kept takes over the arrays */
PETSC_INTERN void           HybKeptSet(HybKept *, HybArena *arrays, const HybCSR *csr);
PETSC_INTERN PetscErrorCode HybKeptReset(HybKept *);
/* MAT_FORCE_DIAGONAL_ENTRIES: *result becomes the product's sum with an empty diagonal where it lacks some of it */
PETSC_INTERN PetscErrorCode HybKeptForceDiagonal(const HybExec *, HybKept *, HybArena *arrays, HybCSR *result);
/* where the values go that the product computes: kept's, if it is padded, else w's; w->side is an arena */
PETSC_INTERN PetscErrorCode HybKeptBegin(Mat C, const HybExec *, HybKeptWrite *w);
/* they are there, and become C's; interface: as for MatSeqAIJHybridGPUDeviceWrittenStep() */
PETSC_INTERN PetscErrorCode HybKeptEnd(Mat C, const HybExec *, HybKept *, PetscBool interface, HybKeptWrite *w);

/* result.c, the sequential C, and parresult.c, the parallel one. Pattern: C gets the product's pattern, whose arrays
   are taken over; again: it may keep a wider one that it has. Collective, with an error of one process, or before,
   being one of all. */
PETSC_INTERN PetscErrorCode HybResultPattern(Mat C, HybMatProduct *, PetscBool again, HybArena *arrays, HybCSR *result);
PETSC_INTERN PetscErrorCode HybParResultPattern(Mat C, HybMatProduct *, PetscErrorCode before, PetscBool again, HybArena out[2], const HybParCSR *result);
/* not collective: some of AIJ's parallel products say MAT_NO_OFF_PROC_ENTRIES of their result */
PETSC_INTERN PetscErrorCode HybParResultRefusesOthers(HybProductType, PetscBool *refuses);
/* collective: a numeric phase has ended; before: C was assembled when it began */
PETSC_INTERN PetscErrorCode HybParResultEnd(Mat C, HybMatProduct *, PetscBool before);
/* not collective: C lets new entries in */
PETSC_INTERN PetscBool HybParResultTakesNew(Mat C);
/* what was chosen for C */
PETSC_INTERN PetscErrorCode HybMatProductChoices(Mat C, int blocks, HybChoices **);
PETSC_INTERN PetscErrorCode HybResultNote(Mat C, HybMatProduct *);
PETSC_INTERN PetscErrorCode HybResultSame(Mat C, HybMatProduct *, PetscCount work, PetscBool *same);
PETSC_INTERN void           HybResultHalfMade(Mat C, HybMatProduct *);
PETSC_INTERN void           HybResultAssembled(Mat C, PetscBool before);

/* algorithm.c */
PETSC_INTERN PetscErrorCode HybGlueProductAlgorithm(Mat, PetscBool seq, char method[], size_t, PetscBool *ours, PetscBool *asked);
PETSC_INTERN PetscErrorCode HybMatProductIsDerived(Mat, PetscBool seq, PetscBool *derived);
PETSC_INTERN PetscErrorCode HybMatProductType(MatProductType, HybProductType *);
/* a method that only the other side has is not for this one, which chooses for itself: "auto" */
PETSC_INTERN const char *HybMatProductMethod(const HybExec *, const char *method);
/* what MatSetBlockSizes() has said of all operands' rows and columns: their greatest common divisor */
PETSC_INTERN PetscInt HybMatProductBlockSize(PetscInt n, const Mat operand[]);

/* product.c; the third: what computes C, if it is a product of ours, else NULL */
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_MPIAIJHybridGPU(Mat);
PETSC_INTERN HybMatProduct *HybMatProductOf(Mat C);

#endif
