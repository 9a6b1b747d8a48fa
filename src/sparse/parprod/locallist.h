/*
  locallist.h: what a process does alone with its part of parallel matrices, one list for the host's table and the
  device's: OP(member, Name) for each member of HybLocalOps, in its order; hybparprod.h says what each does. The
  functions are HybCSR<Name>_Host (local.c, pick.c) and HybCSR<Name>_CUDA (local.cu, pick.cu).
*/
#ifndef AIJHYBRIDGPU_LOCALLIST_H
#define AIJHYBRIDGPU_LOCALLIST_H
#include "aijhybridgpu/private/hybparprod.h"

#define HYB_LOCAL_OPS(OP)            \
  OP(mergeblocks, MergeBlocks)       \
  OP(mergevalues, MergeValues)       \
  OP(splitcolumns, SplitColumns)     \
  OP(stackrows, StackRows)           \
  OP(outsidecolumns, OutsideColumns) \
  OP(numbercolumns, NumberColumns)   \
  OP(mapcolumns, MapColumns)         \
  OP(usedcolumns, UsedColumns)       \
  OP(compressrows, CompressRows)     \
  OP(expandrows, ExpandRows)         \
  OP(meetrows, MeetRows)             \
  OP(sequence, Sequence)             \
  OP(rowsofentries, RowsOfEntries)   \
  OP(pickrows, PickRows)             \
  OP(pickvalues, PickValues)         \
  OP(pickboth, PickBoth)             \
  OP(pickmet, PickMet)               \
  OP(pickmapped, PickMapped)

#define HYB_LOCAL_DECLARE(member, Name) extern __typeof__(*((const HybLocalOps *)0)->member) HybCSR##Name##_Host, HybCSR##Name##_CUDA;
HYB_EXTERN_C_BEGIN
HYB_LOCAL_OPS(HYB_LOCAL_DECLARE)
HYB_EXTERN_C_END
#undef HYB_LOCAL_DECLARE

#endif
