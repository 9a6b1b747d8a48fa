/* table.c: the host's table of smoothed aggregation's operations */
#include "agghost.h"

#define HYB_AGG_ENTRY(member, Name) .member = HybAgg##Name##_Host,
const HybAggOps HybAggHost = {HYB_AGG_OPS(HYB_AGG_ENTRY)};
