/*
  comm.cuh: what the room's device files share: the functions by peer access, peer.cu.
*/
#ifndef AIJHYBRIDGPU_COMM_CUH
#define AIJHYBRIDGPU_COMM_CUH
#include "../structure/each.cuh"
#include "aijhybridgpu/private/hybcomm.h"

#define COMM_THREADS 256

/* OP(member, Name) for each member of HybCommOps that is HybPeer<Name>_CUDA, of peer.cu or peermult.cu */
#define PEER_OPS(OP)           \
  OP(segment, Segment)         \
  OP(segmentfree, SegmentFree) \
  OP(attach, Attach)           \
  OP(detach, Detach)           \
  OP(put, Put)                 \
  OP(wait, Wait)               \
  OP(take, Take)               \
  OP(mult, Mult)               \
  OP(sumtake, SumTake)         \
  OP(sumcame, SumCame)         \
  OP(sum, Sum)
#define PEER_DECLARE(member, Name) extern __typeof__(*((const HybCommOps *)0)->member) HybPeer##Name##_CUDA;
PEER_OPS(PEER_DECLARE)
#undef PEER_DECLARE
#endif
