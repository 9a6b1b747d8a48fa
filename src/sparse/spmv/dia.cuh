/*
  dia.cuh: values by diagonals (dia.cu), made from the row shapes that the method shape has found.
*/
#ifndef AIJHYBRIDGPU_DIA_CUH
#define AIJHYBRIDGPU_DIA_CUH
#include "../structure/rowshape.cuh"
#include "aijhybridgpu/private/hybspmv.h"

/* *fits, and a plan; else nothing is left */
extern PetscErrorCode HYB_PRECISION(HybDiaSetUp)(HybSpMV *, const HybRowShapes *, const HybCSR *A, PetscBool *fits);
/* A's values, of the same pattern and shapes */
extern PetscErrorCode HYB_PRECISION(HybDiaFill)(HybSpMV *, const HybRowShapes *, const HybCSR *A);
#endif
