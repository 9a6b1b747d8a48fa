/*
  again.h: the hunter's operations on what earlier steps have left: products whose operands may have changed
  since, transposes that are made again into the same matrix.
*/
#ifndef HUNT_AGAIN_H
#define HUNT_AGAIN_H
#include "hunt.h"

/* The result's as its blocks have it, on all processes: of diagonals that were set the whole MATAIJ hears later */
static inline PetscErrorCode ProductStates(Mat C, PetscObjectState states[3])
{
  PetscFunctionBeginUser;
  states[0] = C->product->A->nonzerostate;
  states[1] = C->product->B->nonzerostate;
  states[2] = C->nonzerostate;
  if (Size > 1) {
    Mat        blocks[2];
    PetscInt64 sum;

    PetscCall(MatMPIAIJGetSeqAIJ(C, &blocks[0], &blocks[1], NULL));
    sum = (PetscInt64)(blocks[0]->nonzerostate + blocks[1]->nonzerostate);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
    states[2] = (PetscObjectState)sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of this matrix can no longer be repeated, nor can the one that it is */
static inline void Forget(Member *p)
{
  p->product = 0;
  for (int q = 0; q < POOL; q++)
    for (int k = 0; k < 2 && Pool[q].product; k++) {
      const Mat_Product *product = Pool[q].m[k]->product;

      if (!product || product->A == p->m[k] || product->B == p->m[k]) Pool[q].product = 0;
    }
}

/* has the result an entry wherever a new product of MATAIJ's has one? */
static PetscErrorCode ProductIsWithin(Mat C, PetscBool *within)
{
  Mat      fresh, sum;
  MatInfo  info[2];
  PetscInt m[2], n[2];

  PetscFunctionBeginUser;
  *within = PETSC_FALSE;
  PetscCall(MatTestProduct(C->product->type, C->product->A, C->product->B, C->product->type == MATPRODUCT_ABC ? C->product->C : NULL, &fresh));
  PetscCall(MatGetSize(fresh, &m[0], &n[0]));
  PetscCall(MatGetSize(C, &m[1], &n[1]));
  if (m[0] == m[1] && n[0] == n[1]) {
    PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &sum));
    PetscCall(MatAXPY(sum, 1.0, fresh, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatGetInfo(C, MAT_GLOBAL_SUM, &info[0]));
    PetscCall(MatGetInfo(sum, MAT_GLOBAL_SUM, &info[1]));
    *within = (PetscBool)(info[0].nz_used == info[1].nz_used);
    PetscCall(MatDestroy(&sum));
  }
  PetscCall(MatDestroy(&fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A numeric phase is for the patterns of the symbolic one, and for others as far as MATAIJ's takes them: a wider one of
   the result, but for A B in parallel and A B^T, which write past it; and other operands where their product is within
   the result, on one process alone and if none is transposed aside */
static PetscBool ProductAgainFits(const Hunt *h)
{
  const PetscInt   product = h->p->product;
  PetscObjectState states[3];
  PetscBool        operands, within;

  if (!product) return PETSC_FALSE;
  /* MATAIJ's own result is wrong for some patterns */
  if (PETSC_VERSION_LT(3, 19, 0) && Size > 1 && product == 3) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, ProductStates(h->p->m[0], states));
  operands = (PetscBool)(states[0] == h->p->states[0] && states[1] == h->p->states[1]);
  PetscCallAbort(PETSC_COMM_SELF, ProductIsWithin(h->p->m[0], &within));
  if (!within) return PETSC_FALSE; /* numbers of MATAIJ's may be the same for another pattern */
  if (operands && states[2] == h->p->states[2]) return PETSC_TRUE;
  if (product == 5 || (Size > 1 && product != 2 && product != 3)) return PETSC_FALSE;
  if (!operands && (Size > 1 || (product != 1 && product != 3))) return PETSC_FALSE;
  return PETSC_TRUE;
}

static PetscErrorCode ProductAgain(Hunt *h, int k, Mat A)
{
  const Mat a = A->product->A, b = A->product->B;

  PetscFunctionBeginUser;
  if (h->r[0] % 2 && h->p->product == 1)
    PetscCall(MatMatMult(a, b, MAT_REUSE_MATRIX, PETSC_DEFAULT, &h->p->m[k]));
  else if (h->r[0] % 2 && h->p->product == 3)
    PetscCall(MatPtAP(a, b, MAT_REUSE_MATRIX, PETSC_DEFAULT, &h->p->m[k]));
  else
    PetscCall(MatProductNumeric(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeAgain(Hunt *h, int k, Mat A)
{
  Mat *T = &h->p->transposed[k];

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(A, *T ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, T));
  PetscCall(MatDuplicate(*T, MAT_COPY_VALUES, &h->made.m[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation Agains[] = {
  {"productagain",   ProductAgain,   ProductAgainFits, PATTERN},
  {"transposeagain", TransposeAgain, NULL,             KEEPS  },
};
#endif
