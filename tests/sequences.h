/*
  sequences.h: the pool of t604: pairs of a MATAIJ and a matrix of the type, what a step is given, and how a new
  pair is made.
*/
#ifndef SEQUENCES_H
#define SEQUENCES_H
#include "mattest.h"
#include <petsc/private/petscimpl.h> /* PetscObjectStateIncrease */

#define POOL  4
#define DRAWS 4

typedef struct {
  Mat              m[2];          /* MATAIJ and ours */
  Mat              transposed[2]; /* kept for MAT_REUSE_MATRIX */
  Mat              operand[2][2]; /* of the product that m is, referenced */
  PetscInt         product;       /* which one; 0 for none */
  PetscObjectState states[3];     /* of the patterns of its operands and of itself when it was made */
  PetscInt         lineage;       /* pairs of one lineage have one pattern */
  PetscInt         stored;        /* the lineage when MatStoreValues was called; 0 if it was not */
  PetscBool        coordinates;   /* has been given any */
} Pair;

/* One operation's arguments, the same for both of a pair */
typedef struct {
  Pair       *p, *q; /* it is about p; q is a second operand */
  Pair        out;   /* a new pair, if it makes one */
  PetscInt    r[DRAWS];
  PetscScalar v;
  PetscInt    M, N, start, end; /* of p */
  int         k;                /* which of the two it is done to: A is p->m[k] */
} Step;

static Pair          Pool[POOL];
static PetscInt      Lineages;
static unsigned long State;
static PetscMPIInt   Size, Rank;
static PetscBool     Print;
static char          Trail[8000], SubType[64], Ours[64] = "aijhybridgpu";

static PetscInt Draw(PetscInt n)
{
  return (PetscInt)(MATTEST_NEXT(State) % (unsigned long)n);
}

/* What MATAIJ itself becomes: ours by the option, while work is done on ours */
static PetscErrorCode Side(int k)
{
  PetscFunctionBeginUser;
  if (SubType[0] && k)
    PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", SubType));
  else if (SubType[0])
    PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define OUR_TYPE (SubType[0] ? MATAIJ : Ours)

static PetscErrorCode NoProduct(Pair *p)
{
  PetscFunctionBeginUser;
  for (int q = 0; q < 2; q++)
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&p->operand[q][k]));
  p->product = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of this pair's matrices can no longer be repeated, nor can the one that they are */
static PetscErrorCode Forget(Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(NoProduct(p));
  for (int k = 0; k < POOL; k++)
    if (Pool[k].operand[0][0] == p->m[0] || Pool[k].operand[1][0] == p->m[0]) PetscCall(NoProduct(&Pool[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Drop(Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(NoProduct(p));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&p->m[k]));
    PetscCall(MatDestroy(&p->transposed[k]));
  }
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts a new pair into p: 20 or 22 rows and columns, so that many fit together; some with blocks of two */
static PetscErrorCode Fresh(Pair *p)
{
  PetscInt  M = 20 + 2 * Draw(2), N = 20 + 2 * Draw(2), bs = Draw(3) ? 1 : 2, add = Draw(3), row = 1 + Draw(4), start, end;
  PetscBool setup = (PetscBool)(PETSC_VERSION_GE(3, 19, 0) && add);
  Mat       R;

  PetscFunctionBeginUser;
  PetscCall(Drop(p));
  PetscCall(MatTestRandom(M, N, row, Draw(1000), &R));
  PetscCall(MatGetOwnershipRange(R, &start, &end));
  for (int k = 0; k < 2; k++) {
    PetscInt m = PETSC_DECIDE, n = PETSC_DECIDE;

    PetscCall(Side(k));
    PetscCall(PetscSplitOwnershipBlock(PETSC_COMM_WORLD, bs, &m, &M));
    PetscCall(PetscSplitOwnershipBlock(PETSC_COMM_WORLD, bs, &n, &N));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &p->m[k]));
    PetscCall(MatSetSizes(p->m[k], m, n, M, N));
    PetscCall(MatSetBlockSize(p->m[k], bs));
    PetscCall(MatSetType(p->m[k], k ? OUR_TYPE : MATAIJ));
    if (setup)
      PetscCall(MatSetUp(p->m[k]));
    else
      PetscCall(MatSeqAIJSetPreallocation(p->m[k], 14, NULL));
    if (!setup) PetscCall(MatMPIAIJSetPreallocation(p->m[k], 14, NULL, 14, NULL));
    for (PetscInt r = start; r < end; r++) {
      PetscInt           count;
      const PetscInt    *c;
      const PetscScalar *v;

      PetscCall(MatGetRow(R, r, &count, &c, &v));
      PetscCall(MatSetValues(p->m[k], 1, &r, count, c, v, add == 2 ? ADD_VALUES : INSERT_VALUES));
      PetscCall(MatRestoreRow(R, r, &count, &c, &v));
    }
    PetscCall(MatAssemblyBegin(p->m[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(p->m[k], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(Side(0));
  PetscCall(MatDestroy(&R));
  p->lineage = ++Lineages;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
