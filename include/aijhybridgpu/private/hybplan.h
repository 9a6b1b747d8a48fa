/*
  hybplan.h: row costs. A plan function reads patterns only, never values. Bins: plan/bins.cuh.
*/
#ifndef AIJHYBRIDGPU_HYBPLAN_H
#define AIJHYBRIDGPU_HYBPLAN_H
#include "hyb.h"

HYB_EXTERN_C_BEGIN

typedef struct {
  PetscCount products; /* number of intermediate products of A*B: may exceed 2^31 by far; never a reason to refuse */
  PetscCount lower;    /* sum over rows of A of the longest row of B that it touches: a lower bound on nnz(A*B) */
  PetscCount maxrow;   /* most products of any row */
  PetscInt   maxarow;  /* longest row of A */
  PetscInt   maxbrow;  /* longest row of B touched */
  /* rows of A that have the length of one of the three rows before them, and the same distance from the first to the
     last column; nearly all rows where shapes of rows repeat */
  PetscInt alike;
} HybPlanStats;

/* entries beyond m that rowproducts has for counting */
#define HYB_PLAN_SPARE 6

typedef struct _HybPlanOps {
  /* rowproducts[r] = number of intermediate products of row r of A*B (memory: the backend's workspace, m +
     HYB_PLAN_SPARE entries, may be NULL) */
  PetscErrorCode (*products)(const HybExec *, HybArena *work, const HybCSR *A, const HybCSR *B, PetscCount *rowproducts, HybPlanStats *);
} HybPlanOps;

extern const HybPlanOps HybPlanHost;

HYB_EXTERN_C_END
#endif
