/* column.h: the QR factorization of one column, entry by entry, and a step of that of several; one text for the host
   and for kernels, so that both give the same bits. tentative.c and tentativeblocks.c have the rules. */
#ifndef AIJHYBRIDGPU_AGG_COLUMN_H
#define AIJHYBRIDGPU_AGG_COLUMN_H
#include "aijhybridgpu/private/hyb.h"
#include <math.h>

#if defined(__cplusplus)
  #define HYB_COLUMN_FUNCTION static __host__ __device__ __forceinline__
#else
  #define HYB_COLUMN_FUNCTION static inline
#endif

/* EXPONENT: powers of two up to this, and their inverses, are numbers. LEAST, MOST: between them sums of squares have
   all digits. LEFT, ROUNDING: parts of a column from which on it is hardly more than rounding, or nothing else. */
#if defined(PETSC_USE_REAL_SINGLE)
  #define HYB_COLUMN_EXPONENT 120
  #define HYB_COLUMN_LEAST    1e-28
  #define HYB_COLUMN_MOST     1e30
  #define HYB_COLUMN_LEFT     0x1p-8
  #define HYB_COLUMN_ROUNDING 0x1p-16
#else
  #define HYB_COLUMN_EXPONENT 1000
  #define HYB_COLUMN_LEAST    1e-280
  #define HYB_COLUMN_MOST     1e300
  #define HYB_COLUMN_LEFT     0x1p-20
  #define HYB_COLUMN_ROUNDING 0x1p-36
#endif

/* R of a column of m ones */
HYB_COLUMN_FUNCTION PetscReal HybAggOnes(PetscInt m)
{
  return m > 1 ? -PetscSqrtReal((PetscReal)m) : (PetscReal)1;
}

/* the larger modulus; what is no number is larger than all, in whatever order */
HYB_COLUMN_FUNCTION PetscReal HybAggLarger(PetscReal most, PetscReal b)
{
  const PetscReal a = b < 0 ? -b : b;

  return a > most || a != a ? a : most;
}

/* a power of two that brings the column's largest entry near 1; most: of the others */
HYB_COLUMN_FUNCTION PetscReal HybAggScale(PetscReal most, PetscReal first)
{
  const PetscReal a = HybAggLarger(most, first);
  int             e;

  if (!(a > 0) || a - a != 0) return 1; /* zero, infinite, not a number */
  (void)frexp(a, &e);
  /* the scale and its inverse are numbers themselves */
  e = e > HYB_COLUMN_EXPONENT ? HYB_COLUMN_EXPONENT : e < -HYB_COLUMN_EXPONENT ? -HYB_COLUMN_EXPONENT
                                                                               : e;
  return (PetscReal)ldexp((PetscReal)1, -e);
}

HYB_COLUMN_FUNCTION PetscReal HybAggAddSquare(PetscReal sum, PetscReal b, PetscReal scale)
{
  const PetscReal s = b * scale;

  return sum + s * s;
}

/* R; most: the largest modulus of the others, sum: of all squares */
HYB_COLUMN_FUNCTION PetscReal HybAggNorm(PetscReal most, PetscReal first, PetscReal sum, PetscReal scale)
{
  if (most == 0) return first;
  return -PetscCopysignReal(PetscSqrtReal(sum) / scale, first);
}

HYB_COLUMN_FUNCTION PetscReal HybAggEntry(PetscReal most, PetscBool first, PetscReal b, PetscReal r)
{
  if (most == 0) return first ? 1 : 0;
  return b / r;
}

/* may a sum of squares have lost digits, or be beyond all numbers? */
HYB_COLUMN_FUNCTION PetscBool HybAggExtreme(PetscReal squares)
{
  return (PetscBool) !(squares > (PetscReal)HYB_COLUMN_LEAST && squares < (PetscReal)HYB_COLUMN_MOST);
}

/* LAPACK's larfg: the reflection I - tau v v^T, v = (1, x / *divisor), that takes (alpha, x) to (beta, 0), norm being
   that of x, which is not zero */
HYB_COLUMN_FUNCTION void HybAggReflect(PetscReal alpha, PetscReal norm, PetscReal *beta, PetscReal *tau, PetscReal *divisor)
{
  const PetscReal a = alpha < 0 ? -alpha : alpha, most = a > norm ? a : norm, least = a > norm ? norm : a, ratio = least / most;

  *beta    = -PetscCopysignReal(most * PetscSqrtReal(1 + ratio * ratio), alpha);
  *tau     = (*beta - alpha) / *beta;
  *divisor = alpha - *beta;
}

/* Is a step of the factorization rounding? r, alpha, norm: what is left of its column on the diagonal in the end, there
   and below it before, most: the largest modulus in R's column. A vector of which 1e-6 is left gives a column of Q to
   1e-10 (single precision: 0.004, to 3e-5); an alpha of nothing but rounding gives the sign by rounding, and so does
   what is below it, which is reflected if it is not zero. */
HYB_COLUMN_FUNCTION PetscBool HybAggDoubtful(PetscReal r, PetscReal alpha, PetscReal norm, PetscBool last, PetscReal most)
{
  const PetscReal rabs = r < 0 ? -r : r, aabs = alpha < 0 ? -alpha : alpha;

  return (PetscBool) !(rabs > (PetscReal)HYB_COLUMN_LEFT * most && aabs > (PetscReal)HYB_COLUMN_ROUNDING * most && (last || norm > (PetscReal)HYB_COLUMN_ROUNDING * most));
}
#endif
