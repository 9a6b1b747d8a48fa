/*
  What the files of parallel products share.
*/
#ifndef AIJHYBRIDGPU_MPI_PRODUCT_H
#define AIJHYBRIDGPU_MPI_PRODUCT_H

#include "mpi.h"
#include "../seq/seq.h"
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
    uint64_t      pattern[3]; /* hashes of i and j of each block, and of garray */
  } operand[3];
  struct { /* whose values the last numeric phase saw; id 0: nobody's */
    PetscObjectId    id[2];
    PetscObjectState state[2];
    PetscCount       moves[2];
  } values[3];
  PetscBool again; /* the numeric phase is not the first one */
  struct {         /* C's blocks with the product's pattern: another operation may have given them another one since */
    PetscObjectId    id;
    PetscCount       made, adoptions, generation, nnz;
    PetscObjectState nonzerostate;
  } block[2];
} HybMPIProduct;

/* Operands as the host sees them, and as the executing backend does */
typedef struct {
  Mat        mat[3], block[3][2];
  HybLent    lent[3][2];
  HybParCSR  csr[3];
  HybArena   sent; /* device copies of operands that are not ours */
  PetscInt   n;
  PetscCount work; /* nonzeros of all operands, here */
} HybMPIOperands;

/* operands.c. Not collective, but for an error of the first. */
PETSC_INTERN PetscErrorCode HybMPIOperandsMats(Mat C, HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsGet(Mat C, PetscBool values, HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsSend(HybMPIOperands *, const HybExec *, PetscBool values);
PETSC_INTERN PetscErrorCode HybMPIOperandsRestore(HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsNote(HybMPIProduct *, HybMPIOperands *);
PETSC_INTERN PetscErrorCode HybMPIOperandsSame(HybMPIProduct *, HybMPIOperands *, PetscBool *same);

#endif
