/*
  hybkrylov.h: what Krylov methods and their smoothers ask of vectors that live where a backend executes.
*/
#ifndef AIJHYBRIDGPU_HYBKRYLOV_H
#define AIJHYBRIDGPU_HYBKRYLOV_H
#include "hyb.h"
#include "hybspmv.h"

HYB_EXTERN_C_BEGIN

#define HYB_KRYLOV_STEPS 30 /* the most steps of HybKrylovArnoldi(), and one less than the most vectors of dots() */

#define HYB_KRYLOV_SUMS 1056 /* parts of a sum that a device forms at once */

/*
  The basis of a Krylov space, in the workspace's memory. Vector l is scale[l] u[l*ld+i]: it is normal without a pass
  of its own. h, scale and arrived are zero bytes at first.
*/
typedef struct {
  PetscCount       n, ld; /* entries of a vector, and from one vector to the next */
  PetscInt         steps;
  HybScalar       *u;       /* steps+1 vectors */
  HybScalar       *h;       /* (steps+1) x steps, by columns */
  PetscReal       *scale;   /* steps+1: 1/norm; behind them the norm of the very first vector, scale[steps+1] */
  HybScalar       *sums;    /* a device's: HYB_KRYLOV_SUMS (steps+1) */
  int             *arrived; /* and one counter */
  const HybScalar *dinv;    /* what the operator's result is multiplied by, entry by entry; NULL: nothing */
} HybKrylovBasis;

/* Sums are taken in an order that depends on n alone: the same from run to run. */
typedef struct _HybKrylovOps {
  /* x[i] = PETSc's noise of the global entry first+i, the hash by which KSPSetNoisy_Private() fills a vector */
  PetscErrorCode (*noise)(const HybExec *, PetscCount first, PetscCount n, HybScalar *x);
  /* *zeros = how many of d are 0; inv[i] = 1/d[i], or `ofzero` where d[i] is 0; inv may be d, or NULL: count only.
     zeros may be NULL: then nothing waits. */
  PetscErrorCode (*reciprocal)(const HybExec *, HybArena *work, PetscCount n, const HybScalar *d, PetscReal ofzero, HybScalar *inv, PetscCount *zeros);
  /* h[l] = sum_i conj(V[l*ld+i]) w[i] for l < k <= HYB_KRYLOV_STEPS+1; h is k entries of the host's */
  PetscErrorCode (*dots)(const HybExec *, HybArena *work, PetscCount n, PetscInt k, const HybScalar *V, PetscCount ld, const HybScalar *w, HybScalar *h);
  /* The first vector, from b: u_0 = dinv b and its norm. Nothing waits. */
  PetscErrorCode (*start)(const HybExec *, const HybKrylovBasis *, const HybScalar *b);
  /* Step k, 0 <= k < steps: u_{k+1} holds A u_k; column k of H, u_{k+1} and its norm come of it. Of the last step's
     vector nothing is kept but the norm. Nothing waits. */
  PetscErrorCode (*step)(const HybExec *, const HybKrylovBasis *, PetscInt k);
} HybKrylovOps;

/*
  The Hessenberg matrix of Arnoldi's process for D^-1 A, as PETSc's GMRES with left Jacobi builds it: v_0 = D^-1 b /
  |D^-1 b|; each step w = D^-1 A v_k is made orthogonal by one pass of classical Gram-Schmidt. steps <=
  HYB_KRYLOV_STEPS. mv is set up for A; dinv may be NULL: D = I. H has (steps+1) x steps entries of the host's by
  columns; *done of them are whole, those behind are 0. work is not mv's own. Fewer than steps: the process broke down.
  Where the last whole column ends in 0, the space is invariant; else the next column, or the first vector, was not
  finite, or the first vector was 0.
*/
extern PetscErrorCode HybKrylovArnoldi(HybSpMV *mv, HybArena *work, const HybCSR *A, const HybScalar *dinv, const HybScalar *b, PetscInt steps, HybScalar *H, PetscInt *done);

extern const HybKrylovOps HybKrylovHost;

HYB_EXTERN_C_END
#endif
