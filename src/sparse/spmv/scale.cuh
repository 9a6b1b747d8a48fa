/*
  scale.cuh: powers of two by which a vector of double precision is scaled before it becomes one of single precision, so
  that its largest entry is about one: what is large or small there is neither infinite nor zero.
*/
#ifndef AIJHYBRIDGPU_SCALE_CUH
#define AIJHYBRIDGPU_SCALE_CUH
#include "../device/hybdevice.cuh"

#define SCALE_NONE (-2000) /* exponent of zero, of infinities and of NaN: nothing is scaled by it */

static __device__ __forceinline__ int ScaleExponent(PetscReal v)
{
  const int e = (int)((__double_as_longlong((double)v) >> 52) & 0x7ff) - 1023;
  return e == 1024 || v == 0 ? SCALE_NONE : e;
}

static __device__ __forceinline__ PetscReal ScalePower(int e)
{
  e = e == SCALE_NONE ? 0 : e < -1000 ? -1000
                          : e > 1000  ? 1000
                                      : e;
  return (PetscReal)__longlong_as_double((long long)(e + 1023) << 52);
}

static __device__ __forceinline__ HybScalarSingle ScaleNarrow(const HybScalarWide &v)
{
#if defined(PETSC_USE_COMPLEX)
  return HybScalarSingle((float)v.real(), (float)v.imag());
#else
  return (float)v;
#endif
}
#endif
