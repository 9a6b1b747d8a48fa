/*
  untried.h: what the operations of t637 are given: a pair of pairs.h, whose found[] takes in all that they read, and
  whose out[] is what they make. An operation may be done twice; then out[] is there and is used again.
*/
#ifndef UNTRIED_H
#define UNTRIED_H
#include "pairs.h"

#define ROWS  18
#define REUSE (p->out[k] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX)

typedef PetscErrorCode (*Operation)(Pair *, int, Mat);

static inline void Note(Pair *p, int k, PetscScalar v)
{
  p->found[k] = 0.75 * p->found[k] + PetscRealPart(v);
}

static inline PetscErrorCode NoteIS(Pair *p, int k, IS is)
{
  const PetscInt *idx;
  PetscInt        n;

  PetscFunctionBeginUser;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetIndices(is, &idx));
  Note(p, k, (PetscReal)n);
  for (PetscInt q = 0; q < n; q++) Note(p, k, (PetscReal)idx[q]);
  PetscCall(ISRestoreIndices(is, &idx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode NoteVec(Pair *p, int k, Vec v)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayRead(v, &a));
  for (PetscInt q = 0; q < n; q++) Note(p, k, a[q]);
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a vector of A's rows or columns, of its communicator */
static inline PetscErrorCode Beside(Mat A, PetscBool left, Vec *v)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, left ? NULL : v, left ? v : NULL));
  PetscCall(VecGetOwnershipRange(*v, &start, &end));
  for (PetscInt q = start; q < end; q++) PetscCall(VecSetValue(*v, q, 0.5 + (PetscReal)(q * 7 % 11) / 10, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of any communicator, by its sizes, entries and a product */
static inline PetscErrorCode NoteMat(Pair *p, int k, Mat B)
{
  MatInfo  info;
  PetscInt m, n;
  Vec      x, y;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(B, &m, &n));
  Note(p, k, (PetscReal)m);
  Note(p, k, (PetscReal)n);
  if (B->ops->getinfo) {
    PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
    Note(p, k, (PetscReal)info.nz_used);
  }
  PetscCall(Beside(B, PETSC_FALSE, &x));
  PetscCall(Beside(B, PETSC_TRUE, &y));
  PetscCall(MatMult(B, x, y));
  PetscCall(NoteVec(p, k, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of the own rows every step-th */
static inline PetscErrorCode OwnRows(Mat A, MPI_Comm comm, PetscInt step, IS *rows)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(ISCreateStride(comm, (end - start) / step, start, step, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other values, and some use of A between */
static inline PetscErrorCode OtherValues(Mat A, PetscReal then)
{
  PetscFunctionBeginUser;
  PetscCall(MatScale(A, 2.0));
  PetscCall(PairsUse(A));
  PetscCall(MatScale(A, then));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* own rows and columns, and the first of the next process's: who has others' is on several processes only */
static inline PetscErrorCode Mapping(Mat A)
{
  ISLocalToGlobalMapping map;
  PetscInt               start, end, *idx;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc1(end - start + 1, &idx));
  for (PetscInt r = start; r < end; r++) idx[r - start] = r;
  idx[end - start] = end % A->rmap->N;
  PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 1, end - start + (PairsSize() > 1), idx, PETSC_OWN_POINTER, &map));
  PetscCall(MatSetLocalToGlobalMapping(A, map, map));
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
