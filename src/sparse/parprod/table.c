/* table.c: the host's table of what a process does alone */
#include "locallist.h"

#define HYB_LOCAL_ENTRY(member, Name) .member = HybCSR##Name##_Host,
const HybLocalOps HybLocalHost = {HYB_LOCAL_OPS(HYB_LOCAL_ENTRY)};
