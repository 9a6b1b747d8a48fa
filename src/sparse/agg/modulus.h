/*
  modulus.h: the modulus of a complex number to the last bit as the C library of the host rounds it, by additions,
  products, divisions and roots, which a device rounds as the host does. CUDA's hypot() is another function.

  sqrt(a^2 + b^2) is wrong by up to one unit of its last place. With a >= b and h that root, a step of Newton's method
  mends it,

    h - (h^2 - a^2 - b^2) / (2 h)

  where the difference must not cancel: it is written by d = h - b, or, if a is more than about twice b, by d = h - a.
  Very large and very small numbers are scaled by powers of two before; where b is below a's last place the modulus is
  a + b.

  C. F. Borges, An improved algorithm for hypot(a,b), 2019 (arXiv:1904.09481). Of that kind is the GNU C library's
  hypot() from 2.35 on where the processor's instructions that are compiled for have no fused product and addition, as
  those of plain x86-64. moduli.c looks whether it is the host's.

  In single precision the sum of squares is formed in double precision.
*/
#ifndef AIJHYBRIDGPU_AGG_MODULUS_H
#define AIJHYBRIDGPU_AGG_MODULUS_H

#if defined(__cplusplus)
  #define HYB_EDGE_FUNCTION static __host__ __device__ __forceinline__
#else
  #define HYB_EDGE_FUNCTION static inline
#endif

#if defined(__cplusplus) && defined(PETSC_USE_COMPLEX)
  #if !defined(PETSC_USE_REAL_SINGLE)
/* a >= b, whose squares are neither too large nor too small */
HYB_EDGE_FUNCTION PetscReal HybEdgeHypotMended(PetscReal a, PetscReal b)
{
  const PetscReal h = sqrt(a * a + b * b);
  PetscReal       s, t;

  if (h <= 2 * b) {
    const PetscReal d = h - b;

    s = a * (2 * d - a);
    t = (d - 2 * (a - b)) * d;
  } else {
    const PetscReal d = h - a;

    s = 2 * d * (a - 2 * b);
    t = (4 * d - b) * b + d * d;
  }
  return h - (s + t) / (2 * h);
}
  #endif

HYB_EDGE_FUNCTION PetscReal HybEdgeHypot(PetscReal re, PetscReal im)
{
  const PetscReal x = re < 0 ? -re : re, y = im < 0 ? -im : im, a = x < y ? y : x, b = x < y ? x : y;

  if (x > PETSC_MAX_REAL) return x; /* infinite, also beside what is no number */
  if (y > PETSC_MAX_REAL) return y;
  if (x != x || y != y) return x + y;
  #if defined(PETSC_USE_REAL_SINGLE)
  return (PetscReal)sqrt((double)a * (double)a + (double)b * (double)b);
  #else
  if (b * 0x1p54 <= a) return a + b;
  if (a > 0x1p511) return HybEdgeHypotMended(a * 0x1p-600, b * 0x1p-600) * 0x1p600;
  if (b < 0x1p-459) return HybEdgeHypotMended(a * 0x1p600, b * 0x1p600) * 0x1p-600;
  return HybEdgeHypotMended(a, b);
  #endif
}
#endif
#endif
