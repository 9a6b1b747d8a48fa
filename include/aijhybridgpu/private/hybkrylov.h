/*
  hybkrylov.h: what Krylov methods and their smoothers ask of vectors that live where a backend executes.
*/
#ifndef AIJHYBRIDGPU_HYBKRYLOV_H
#define AIJHYBRIDGPU_HYBKRYLOV_H
#include "hyb.h"
#include "hybspmv.h"

HYB_EXTERN_C_BEGIN

/* Sums are taken in an order that depends on n alone: the same from run to run. */
typedef struct _HybKrylovOps {
  /* x[i] = PETSc's noise of the global entry first+i, the hash by which KSPSetNoisy_Private() fills a vector */
  PetscErrorCode (*noise)(const HybExec *, PetscCount first, PetscCount n, HybScalar *x);
  /* *zeros = how many of d are 0; inv[i] = 1/d[i], or `ofzero` where d[i] is 0; inv may be d, or NULL: count only */
  PetscErrorCode (*reciprocal)(const HybExec *, HybArena *work, PetscCount n, const HybScalar *d, PetscReal ofzero, HybScalar *inv, PetscCount *zeros);
  /* h[l] = sum_i conj(V[l*ld+i]) w[i] for l < k; h is k entries of the host's */
  PetscErrorCode (*dots)(const HybExec *, HybArena *work, PetscCount n, PetscInt k, const HybScalar *V, PetscCount ld, const HybScalar *w, HybScalar *h);
} HybKrylovOps;

/*
  The Hessenberg matrix of Arnoldi's process for D^-1 A, as PETSc's GMRES with left Jacobi builds it: v_0 = D^-1 b / |D^-1 b|; each step w = D^-1 A v_k is made
  orthogonal by one pass of classical Gram-Schmidt. steps <= 30. H has (steps+1) x steps entries of the host's by columns, *done the steps before a
  breakdown (a new vector's norm that is 0 or not finite).
*/
extern PetscErrorCode HybKrylovArnoldi(HybSpMV *, HybArena *work, const HybCSR *A, const HybScalar *dinv, const HybScalar *b, PetscInt steps, HybScalar *H, PetscInt *done);

extern const HybKrylovOps HybKrylovHost;

HYB_EXTERN_C_END
#endif
