/*
  tentative.c: the tentative prolongator of one near-null vector. The QR factorization of a column is known without
  LAPACK, but its signs are LAPACK's: Householder's reflection of a column whose other entries are not all zero gives R
  = -sign(first) |column|, and leaves a column alone whose others are.

    all other entries of the aggregate are zero:  R = b[lead], q[lead] = 1, q = 0 elsewhere
    else:                                         R = -sign(b[lead]) |b|, q = b / R

  The vector of ones is told apart (b = NULL): its norms are square roots of sizes. Else squares are summed in ascending
  order of the vertices, each column scaled by a power of two first, which changes no digit and keeps squares within
  range.

  Memory: two or three words for each aggregate. Time: O(n).
*/
#include "agghost.h"
#include "column.h"

PetscErrorCode HybAggColumns_Host(const HybExec *exec, HybArena *work, const HybAggregates *agg, const HybScalar *b, HybScalar *q, HybScalar *coarse)
{
  const PetscInt  n = agg->n, nc = agg->nc;
  const PetscInt *parent = agg->parent, *lead = agg->lead;
  PetscReal      *most, *scale;
  PetscInt       *size;

  PetscFunctionBegin;
  if (!b) {
    PetscCall(HybArenaCalloc(work, HYB_WORK(exec), nc, sizeof(PetscInt), &size));
    for (PetscInt v = 0; v < n; v++) {
      if (parent[v] >= 0) size[parent[v]]++;
    }
    for (PetscInt c = 0; c < nc; c++) coarse[c] = HybAggOnes(size[c]);
    for (PetscInt v = 0; v < n; v++) q[v] = parent[v] >= 0 ? 1 / HYB_AGG_REAL(coarse[parent[v]]) : 0;
    PetscCall(HybArenaFree(work, &size));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), nc, sizeof(PetscReal), &most));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nc, sizeof(PetscReal), &scale));
  /* the largest of the others; what is no number counts as larger */
  for (PetscInt v = 0; v < n; v++) {
    const PetscInt c = parent[v];

    if (c >= 0 && v != lead[c]) most[c] = HybAggLarger(most[c], HYB_AGG_REAL(b[v]));
  }
  for (PetscInt c = 0; c < nc; c++) {
    scale[c]  = HybAggScale(most[c], HYB_AGG_REAL(b[lead[c]]));
    coarse[c] = 0; /* the sum of squares */
  }
  for (PetscInt v = 0; v < n; v++) {
    const PetscInt c = parent[v];

    if (c >= 0) coarse[c] = HybAggAddSquare(HYB_AGG_REAL(coarse[c]), HYB_AGG_REAL(b[v]), scale[c]);
  }
  for (PetscInt c = 0; c < nc; c++) coarse[c] = HybAggNorm(most[c], HYB_AGG_REAL(b[lead[c]]), HYB_AGG_REAL(coarse[c]), scale[c]);
  for (PetscInt v = 0; v < n; v++) {
    const PetscInt c = parent[v];

    q[v] = c < 0 ? 0 : HybAggEntry(most[c], (PetscBool)(v == lead[c]), HYB_AGG_REAL(b[v]), HYB_AGG_REAL(coarse[c]));
  }
  PetscCall(HybArenaFree(work, &scale, &most));
  PetscFunctionReturn(PETSC_SUCCESS);
}
