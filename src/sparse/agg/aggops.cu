/*
  The table of the device's operations of smoothed aggregation.
*/
#include "aggops.cuh"

HYB_EXTERN_C_BEGIN
extern const HybAggOps HybAggCUDA;
HYB_EXTERN_C_END

const HybAggOps HybAggCUDA = {
  HybAggLook_CUDA,
  HybAggPermutation_CUDA,
  HybAggAggregates_CUDA,
#if !defined(PETSC_USE_COMPLEX)
  HybAggTentative_CUDA,
#else
  nullptr,
#endif
  HybAggUnsmoothed_CUDA,
  HybAggSmoothed_CUDA,
  HybAggCollapse_CUDA,
  HybAggLists_CUDA,
#if !defined(PETSC_USE_COMPLEX)
  HybAggTentativeBlocks_CUDA,
#else
  nullptr,
#endif
  HybAggUnsmoothedBlocks_CUDA,
  HybAggSmoothedBlocks_CUDA,
#if !defined(PETSC_USE_COMPLEX)
  HybAggWeights_CUDA,
  HybAggFilter_CUDA,
#else
  nullptr,
  nullptr,
#endif
};
