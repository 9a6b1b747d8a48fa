/*
  The table of the device's operations of smoothed aggregation.
*/
#include "aggops.cuh"

HYB_EXTERN_C_BEGIN
extern const HybAggOps HybAggCUDA;
HYB_EXTERN_C_END

#define HYB_AGG_ENTRY(member, Name) .member = HybAgg##Name##_CUDA,
const HybAggOps HybAggCUDA = {HYB_AGG_OPS(HYB_AGG_ENTRY)};
