/*
  ordered.cuh: plans that have a copy of the values in the order in which their kernels read them: by diagonals
  (dia.cu), and by slices of rows (sell.cu).
*/
#ifndef AIJHYBRIDGPU_ORDERED_CUH
#define AIJHYBRIDGPU_ORDERED_CUH
#include "../structure/rowshape.cuh"
#include "aijhybridgpu/private/hybspmv.h"

/* *fits, and a plan; else nothing is left but what the plan's arenas have */
extern PetscErrorCode HYB_PRECISION(HybDiaSetUp)(HybSpMV *, const HybRowShapes *, const HybCSR *A, PetscBool *fits);
extern PetscErrorCode HYB_PRECISION(HybSellSetUp)(HybSpMV *, const HybCSR *A, PetscBool *fits);
/* A's values, of the same pattern */
extern PetscErrorCode HYB_PRECISION(HybDiaFill)(HybSpMV *, const HybRowShapes *, const HybCSR *A);
extern PetscErrorCode HYB_PRECISION(HybSellFill)(HybSpMV *, const HybCSR *A);
#endif
