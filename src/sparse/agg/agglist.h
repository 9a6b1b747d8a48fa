/*
  agglist.h: the operations of smoothed aggregation, one list for the host's table and the device's: OP(member, Name)
  for each member of HybAggOps, in its order; hybagg.h says what each does. The functions are HybAgg<Name>_Host and
  HybAgg<Name>_CUDA.
*/
#ifndef AIJHYBRIDGPU_AGGLIST_H
#define AIJHYBRIDGPU_AGGLIST_H
#include "aijhybridgpu/private/hybagg.h"

#define HYB_AGG_OPS(OP)        \
  OP(look, Look)               \
  OP(permutation, Permutation) \
  OP(aggregates, Aggregates)   \
  OP(quotient, Quotient)       \
  OP(compose, Compose)         \
  OP(lists, Lists)             \
  OP(unsmoothed, Unsmoothed)   \
  OP(smoothed, Smoothed)       \
  OP(collapse, Collapse)       \
  OP(tentative, Tentative)     \
  OP(weights, Weights)         \
  OP(filter, Filter)           \
  OP(moduli, Moduli)

#define HYB_AGG_DECLARE(member, Name) extern __typeof__(*((const HybAggOps *)0)->member) HybAgg##Name##_Host, HybAgg##Name##_CUDA;
HYB_EXTERN_C_BEGIN
HYB_AGG_OPS(HYB_AGG_DECLARE)
HYB_EXTERN_C_END
#undef HYB_AGG_DECLARE

#endif
