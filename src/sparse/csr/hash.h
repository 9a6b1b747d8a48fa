/*
  hash.h: the terms of a pattern's hash, one text for the host and for kernels, so that both give the same value.
  The hash is a sum of mixed (position, index) pairs modulo 2^64: it needs no order, so any backend adds it as it likes.
*/
#ifndef AIJHYBRIDGPU_CSR_HASH_H
#define AIJHYBRIDGPU_CSR_HASH_H
#include "aijhybridgpu/private/hyb.h"

#if defined(__cplusplus)
  #define HYB_HASH_FUNCTION static __host__ __device__ __forceinline__
#else
  #define HYB_HASH_FUNCTION static inline
#endif

/* the finalizer of SplitMix64 (Steele, Lea, Flood 2014) */
HYB_HASH_FUNCTION uint64_t HybHashMix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/* Mixed twice: else the first row's end and the first entry's column, where each stands alone in its number, could
   change places unseen */
HYB_HASH_FUNCTION uint64_t HybHashRow(PetscInt row, PetscInt end)
{
  return HybHashMix(HybHashMix(((uint64_t)row << 33) ^ (uint64_t)end));
}

HYB_HASH_FUNCTION uint64_t HybHashEntry(PetscCount k, PetscInt column)
{
  return HybHashMix(((uint64_t)k * 0x9e3779b97f4a7c15ull) ^ (uint64_t)column);
}

#endif
