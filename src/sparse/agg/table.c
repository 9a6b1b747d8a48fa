/* table.c: the host's table of smoothed aggregation's operations */
#include "agghost.h"

const HybAggOps HybAggHost = {
  .look        = HybAggLook_Host,
  .permutation = HybAggPermutation_Host,
  .aggregates  = HybAggAggregates_Host,
  .quotient    = HybAggQuotient_Host,
  .compose     = HybAggCompose_Host,
#if !defined(PETSC_USE_COMPLEX)
  .tentative = HybAggTentative_Host,
#endif
  .unsmoothed = HybAggUnsmoothed_Host,
  .smoothed   = HybAggSmoothed_Host,
  .collapse   = HybAggCollapse_Host,
  .lists      = HybAggLists_Host,
#if !defined(PETSC_USE_COMPLEX)
  .tentativeblocks = HybAggTentativeBlocks_Host,
#endif
  .unsmoothedblocks = HybAggUnsmoothedBlocks_Host,
  .smoothedblocks   = HybAggSmoothedBlocks_Host,
#if !defined(PETSC_USE_COMPLEX)
  .weights = HybAggWeights_Host,
  .filter  = HybAggFilter_Host,
#endif
};
