/*
  rander48.h: PETSc's default generator, a linear congruential one modulo 2^48, with steps of any length. One text for
  the host and for kernels.

    x_0 = seed,  x_{k+1} = a x_k + c mod 2^48,  the value of draw k is x_{k+1} / 2^48, which a double holds exactly

  s steps at once are again such a step, x -> A x + C, and two such steps in sequence are one: A' A, A' C + C'. So any
  position of the sequence is reached in log2 of it (F. Brown, Random number generation with arbitrary strides, Trans.
  Am. Nucl. Soc. 71, 1994).
*/
#ifndef AIJHYBRIDGPU_AGG_RANDER48_H
#define AIJHYBRIDGPU_AGG_RANDER48_H
#include "aijhybridgpu/private/hyb.h"

#if defined(__cplusplus)
  #define HYB_RANDER48_FUNCTION static __host__ __device__ __forceinline__
#else
  #define HYB_RANDER48_FUNCTION static inline
#endif

#define HYB_RANDER48_MASK 0xffffffffffffull
/* the seed that PETSc gives a generator of one process, 0x12345678, in the upper 32 bits */
#define HYB_RANDER48_SEED 0x12345678330eull

/* x -> a x + c */
typedef struct {
  uint64_t a, c;
} HybRander48Step;

/* so many draws at once */
HYB_RANDER48_FUNCTION HybRander48Step HybRander48Steps(uint64_t draws)
{
  HybRander48Step all = {1, 0}, one = {0x5deece66dull, 11};

  for (; draws; draws >>= 1) {
    if (draws & 1) {
      all.a = (all.a * one.a) & HYB_RANDER48_MASK;
      all.c = (all.c * one.a + one.c) & HYB_RANDER48_MASK;
    }
    one.c = (one.a * one.c + one.c) & HYB_RANDER48_MASK;
    one.a = (one.a * one.a) & HYB_RANDER48_MASK;
  }
  return all;
}

HYB_RANDER48_FUNCTION uint64_t HybRander48Next(HybRander48Step s, uint64_t x)
{
  return (s.a * x + s.c) & HYB_RANDER48_MASK;
}

/* the slot of 0..n-1 that the shuffle exchanges, of the generator's state after the draw; the draw and the product are
   rounded to PetscReal, as PETSc's are */
HYB_RANDER48_FUNCTION PetscInt HybRander48Slot(uint64_t x, PetscInt n)
{
  const PetscReal draw = (PetscReal)((double)x * 0x1p-48);
  const PetscInt  t    = (PetscInt)(draw * (PetscReal)n);

  return t < n ? t : t - n;
}

#endif
