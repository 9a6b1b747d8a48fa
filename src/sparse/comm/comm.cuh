/*
  comm.cuh: what the room's device files share: the functions by peer access, peer.cu.
*/
#ifndef AIJHYBRIDGPU_COMM_CUH
#define AIJHYBRIDGPU_COMM_CUH
#include "../structure/each.cuh"
#include "aijhybridgpu/private/hybcomm.h"

#define COMM_THREADS 256

extern PetscErrorCode HybPeerSegment_CUDA(const HybExec *, size_t, void **, unsigned char[HYB_COMM_HANDLE]);
extern PetscErrorCode HybPeerSegmentFree_CUDA(const HybExec *, void *);
extern PetscErrorCode HybPeerAttach_CUDA(const HybExec *, const unsigned char[HYB_COMM_HANDLE], void **);
extern PetscErrorCode HybPeerDetach_CUDA(const HybExec *, void *);
extern PetscErrorCode HybPeerPut_CUDA(const HybExec *, const HybPeerTable *, uint64_t, const uint64_t *, PetscBool, size_t, PetscCount, const PetscInt *, const void *, PetscInt, void *, size_t);
extern PetscErrorCode HybPeerWait_CUDA(const HybExec *, const HybPeerTable *, uint64_t, PetscInt, void *, size_t);
extern PetscErrorCode HybPeerTake_CUDA(const HybExec *, const HybPeerTable *, uint64_t *, PetscInt, char *const[2], size_t, void *);
extern PetscErrorCode HybPeerSum_CUDA(const HybExec *, const HybPeerTable *, uint64_t, uint64_t *, PetscMPIInt, PetscInt, PetscInt, HybScalar *, PetscInt, char *const[2], size_t);
extern PetscErrorCode HybPeerSumTake_CUDA(const HybExec *, const HybPeerTable *, uint64_t, uint64_t *, PetscMPIInt, PetscInt, HybScalar *, PetscInt, char *const[2], size_t);
extern PetscErrorCode HybPeerSumCame_CUDA(const HybExec *, PetscMPIInt, PetscMPIInt, PetscInt, const HybScalar *, HybScalar *);
extern PetscErrorCode HybPeerMult_CUDA(const HybExec *, const HybPeerTable *, uint64_t, uint64_t *, const HybPeerProduct *, PetscInt, char *const[2], size_t);
#endif
