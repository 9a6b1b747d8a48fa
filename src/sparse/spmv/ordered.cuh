/*
  ordered.cuh: plans that have a copy of the values in the order in which their kernels read them: by diagonals
  (dia.cu), and by slices of rows (sell.cu).
*/
#ifndef AIJHYBRIDGPU_ORDERED_CUH
#define AIJHYBRIDGPU_ORDERED_CUH
#include "../structure/rowshape.cuh"
#include "rowstream.cuh"
#include "aijhybridgpu/private/hybspmv.h"

/* the files are compiled once for each precision */
#define HybDiaSetUp  HYB_PRECISION(HybDiaSetUp)
#define HybDiaFill   HYB_PRECISION(HybDiaFill)
#define HybSellSetUp HYB_PRECISION(HybSellSetUp)
#define HybSellFill  HYB_PRECISION(HybSellFill)
/* *fits, and a plan; else nothing is left but what the plan's arenas have */
extern PetscErrorCode HybDiaSetUp(HybSpMV *, const HybRowShapes *, const HybCSR *A, PetscBool *fits);
/* stream: the layout of a row stream with an index of so many bytes for each entry, of which no tile may be too large,
   or NULL */
extern PetscErrorCode HybSellSetUp(HybSpMV *, const HybCSR *A, int lanes, const RowStreamLayout *stream, size_t indexbytes, PetscBool *fits);
/* A's values, of the same pattern */
extern PetscErrorCode HybDiaFill(HybSpMV *, const HybRowShapes *, const HybCSR *A);
extern PetscErrorCode HybSellFill(HybSpMV *, const HybCSR *A);
#endif
