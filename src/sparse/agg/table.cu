/*
  The table of the device's operations of smoothed aggregation.
*/
#include "aggops.cuh"

HYB_EXTERN_C_BEGIN
extern const HybAggOps HybAggCUDA;
HYB_EXTERN_C_END

const HybAggOps HybAggCUDA = {
  .look        = HybAggLook_CUDA,
  .permutation = HybAggPermutation_CUDA,
  .aggregates  = HybAggAggregates_CUDA,
  .quotient    = HybAggQuotient_CUDA,
  .compose     = HybAggCompose_CUDA,
#if !defined(PETSC_USE_COMPLEX)
  .tentative = HybAggTentative_CUDA,
#endif
  .unsmoothed = HybAggUnsmoothed_CUDA,
  .smoothed   = HybAggSmoothed_CUDA,
  .collapse   = HybAggCollapse_CUDA,
  .lists      = HybAggLists_CUDA,
#if !defined(PETSC_USE_COMPLEX)
  .tentativeblocks = HybAggTentativeBlocks_CUDA,
#endif
  .unsmoothedblocks = HybAggUnsmoothedBlocks_CUDA,
  .smoothedblocks   = HybAggSmoothedBlocks_CUDA,
#if !defined(PETSC_USE_COMPLEX)
  .weights = HybAggWeights_CUDA,
  .filter  = HybAggFilter_CUDA,
#endif
};
