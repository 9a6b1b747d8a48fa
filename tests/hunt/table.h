/*
  table.h: what the operations of hunt_table share. What they read goes into found[], what they make into made. An
  operation may be done twice; then made is there and is used again.
*/
#ifndef UNTRIED_H
#define UNTRIED_H
#include "hunt.h"

/* an operation that is another function with these arguments */
#define WAY(name, function, ...)                    \
  static PetscErrorCode name(Hunt *h, int k, Mat A) \
  {                                                 \
    return function(h, k, A, __VA_ARGS__);          \
  }

#define REUSE (h->made.m[k] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX)

static inline PetscErrorCode NoteIS(Hunt *h, int k, IS is)
{
  const PetscInt *idx;
  PetscInt        n;

  PetscFunctionBeginUser;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetIndices(is, &idx));
  Note(h, k, (PetscReal)n);
  for (PetscInt q = 0; q < n; q++) Note(h, k, (PetscReal)idx[q]);
  PetscCall(ISRestoreIndices(is, &idx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode NoteVec(Hunt *h, int k, Vec v)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayRead(v, &a));
  for (PetscInt q = 0; q < n; q++) Note(h, k, a[q]);
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of any communicator, by its sizes, entries and a product */
static inline PetscErrorCode NoteMat(Hunt *h, int k, Mat B)
{
  MatInfo  info;
  PetscInt m, n;
  Vec      x, y;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(B, &m, &n));
  Note(h, k, (PetscReal)m);
  Note(h, k, (PetscReal)n);
  if (B->ops->getinfo) {
    PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
    Note(h, k, (PetscReal)info.nz_used);
  }
  PetscCall(Beside(B, PETSC_FALSE, &x));
  PetscCall(Beside(B, PETSC_TRUE, &y));
  PetscCall(MatMult(B, x, y));
  PetscCall(NoteVec(h, k, y));
  PetscCall(MatTestDestroy(&x, &y));
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
  PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 1, end - start + (MatTestSize() > 1), idx, PETSC_OWN_POINTER, &map));
  PetscCall(MatSetLocalToGlobalMapping(A, map, map));
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
