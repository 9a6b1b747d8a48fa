/*
  half.cuh: numbers of 16 bits, IEEE 754's binary16, for values of matrices in a cycle of single precision. They have 11
  bits, and are what they should be from 2^-14 to 2^16: below they lose bits, so a row is scaled by a power of two
  first, and a row's sum is scaled back.
*/
#ifndef AIJHYBRIDGPU_HALF_CUH
#define AIJHYBRIDGPU_HALF_CUH
#include "../device/hybdevice.cuh"
#if !defined(HYB_EMULATOR)
  #include <cuda_fp16.h>
#endif
#include <cstring>

#define HALF_TOP 14 /* the exponent that a row's largest number gets */

#if defined(PETSC_USE_COMPLEX)
typedef struct __attribute__((aligned(4))) {
  unsigned short re, im;
} Half;
#else
typedef unsigned short Half;
#endif

/* to the nearest, a tie to the even one */
static __device__ __forceinline__ unsigned short HalfOfReal(float v)
{
#if defined(HYB_EMULATOR)
  uint32_t bits, sign;

  memcpy(&bits, &v, sizeof(bits));
  sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits >= 0x47800000) return (unsigned short)(sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00));
  if (bits < 0x38800000) { /* what is added has the last bit that is left where a half has it */
    memcpy(&v, &bits, sizeof(v));
    v += 0.5f;
    memcpy(&bits, &v, sizeof(bits));
    return (unsigned short)(sign | (bits - 0x3f000000));
  }
  return (unsigned short)(sign | ((bits + 0xc8000fff + (bits >> 13 & 1)) >> 13));
#else
  return __half_as_ushort(__float2half_rn(v));
#endif
}

static __device__ __forceinline__ float HalfToReal(unsigned short h)
{
#if defined(HYB_EMULATOR)
  const uint32_t bits = (uint32_t)(h & 0x7fff) << 13 | ((h & 0x7c00) == 0x7c00 ? 0x7f800000 : 0);
  float          v;

  memcpy(&v, &bits, sizeof(v));
  v *= 0x1p112f;
  return h & 0x8000 ? -v : v;
#else
  return __half2float(__ushort_as_half(h));
#endif
}

/* a value as a matrix keeps it: V is HybScalar, or Half; by: the power of two of its row */
template <typename V>
static __device__ __forceinline__ V HalfKeep(const HybScalar &v, HybScalarReal by)
{
  if constexpr (!std::is_same<V, Half>::value)
    return v;
  else {
#if defined(PETSC_USE_COMPLEX)
    return {HalfOfReal((float)(by * v.real())), HalfOfReal((float)(by * v.imag()))};
#else
    return HalfOfReal((float)(by * v));
#endif
  }
}

/* and as a product reads it */
static __device__ __forceinline__ HybScalar HalfRead(const HybScalar &v)
{
  return v;
}

static __device__ __forceinline__ HybScalar HalfRead(const Half &h)
{
#if defined(PETSC_USE_COMPLEX)
  return HybScalar(HalfToReal(h.re), HalfToReal(h.im));
#else
  return HybScalar(HalfToReal(h));
#endif
}
#endif
