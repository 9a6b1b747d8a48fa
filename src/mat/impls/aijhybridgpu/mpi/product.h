/*
  What the files of parallel products share.
*/
#ifndef AIJHYBRIDGPU_MPI_PRODUCT_H
#define AIJHYBRIDGPU_MPI_PRODUCT_H

#include "mpi.h"
#include "../seq/seq.h"
#include "../seq/kept.h"
#include "../storage/where.h"
#include "aijhybridgpu/private/hybparprod.h"

/* What a product keeps in C->product->data */
typedef struct {
  HybParProduct product;
  HybExec       exec;
  char          method[64]; /* that was asked for, if any */
  PetscInt      noperands;
  struct {
    PetscObjectId id[2]; /* of the blocks: a parallel matrix's own state is a sum, which may come to the same number */
    HybPatternKey key[2];
    PetscInt      m, n[2];
    PetscCount    nnz[2];
    uint64_t      pattern[2]; /* hashes of i and j of each block */
    PetscInt     *garray;     /* n[1] of them, of the first operand that is this matrix */
    PetscInt      as;         /* which operand that is */
    PetscBool     unsorted;   /* a copy of it was sorted */
  } operand[3];
  struct { /* whose values the last numeric phase saw; id 0: nobody's */
    PetscObjectId    id[2];
    PetscObjectState state[2];
    PetscCount       moves[2];
  } values[3];
  PetscBool stays[3]; /* operands of which no process has seen other values, at the present numeric phase */
  PetscBool again;    /* the numeric phase is not the first one */
  PetscBool zeros;    /* C has those of the symbolic phase, and no numeric phase has ended since */
  /* the numeric phase ends with an assembly: when it began, on some process, entries had been set in C and not
     assembled, or C let new entries in (then MATAIJ's assembly sums the states of the blocks' patterns) */
  PetscBool assemble;
  PetscBool pending; /* the symbolic phase has left C not assembled, and no numeric phase was there yet */
  struct {           /* C's blocks as the product made them: others may have changed their patterns since */
    PetscObjectId    id;
    PetscCount       made, adoptions, generation, nnz;
    PetscObjectState nonzerostate;
  } block[2];
  HybKept kept[2]; /* where they have entries that the product lacks */
} HybMPIProduct;

/* Operands as the host sees them, and as the executing backend does */
typedef struct {
  Mat        mat[3], block[3][2];
  HybLent    lent[3][2];
  HybParCSR  csr[3];
  PetscBool  copied[3]; /* csr has copies whose rows are sorted */
  HybArena   sent;      /* device copies of operands that are not ours, and sorted ones */
  PetscInt   n;
  PetscCount work; /* nonzeros of all operands, here */
} HybMPIOperands;

/* operands.c. Not collective, but for an error of the first. */
PETSC_INTERN PetscErrorCode HybMPIOperandsMats(Mat C, HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsGet(Mat C, PetscBool values, HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsSend(HybMPIOperands *, const HybExec *, PetscBool values);
/* csr is what the matrices lend again */
PETSC_INTERN PetscErrorCode HybMPIOperandsReset(HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsRestore(HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsNote(HybMPIProduct *, HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsSame(HybMPIProduct *, HybMPIOperands *, PetscBool *same);
PETSC_INTERN PetscBool      HybMPIPatternIsWhole(Mat A);

/* mpikept.c. Collective but for the third, which says whether C's blocks are those that the plan was made for. */
PETSC_INTERN PetscErrorCode HybMPIKeep(Mat C, HybMPIProduct *, PetscErrorCode before, HybArena out[2], const HybParCSR *result, PetscBool *kept);
PETSC_INTERN PetscErrorCode HybMPIProductCompute(Mat C, HybMPIProduct *, PetscErrorCode before, HybMPIOperands *);
PETSC_INTERN void           HybMPIProductHalfMade(Mat C, HybMPIProduct *);
PETSC_INTERN PetscErrorCode HybMPIProductSameResult(Mat C, HybMPIProduct *, PetscBool *same);
PETSC_INTERN PetscErrorCode HybMPIProductNoteBlocks(Mat C, HybMPIProduct *);
PETSC_INTERN void           HybMPIProductValuesForget(HybMPIProduct *);
PETSC_INTERN PetscErrorCode HybMPIProductValuesSeen(HybMPIProduct *, HybMPIOperands *, PetscBool note, PetscBool seen[3]);

#endif
