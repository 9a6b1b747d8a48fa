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

/* the type of a function that the table's member points to */
#define HYB_AGG_TYPE(member) __typeof__(*((const HybAggOps *)0)->member)

#endif
