/* table.cu: the device's table of what a process does alone */
#include "locallist.h"

extern const HybLocalOps HybLocalCUDA;

#define HYB_LOCAL_ENTRY(member, Name) .member = HybCSR##Name##_CUDA,
const HybLocalOps HybLocalCUDA = {HYB_LOCAL_OPS(HYB_LOCAL_ENTRY)};
