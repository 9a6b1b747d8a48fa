/* edge.h: whether an edge of a graph is weak; one text for the host and for kernels, so that both round alike. filter.c
   has the rules. */
#ifndef AIJHYBRIDGPU_AGG_EDGE_H
#define AIJHYBRIDGPU_AGG_EDGE_H
#include "aijhybridgpu/private/hybagg.h"
#include "modulus.h"
#include <math.h>

/* of a matrix of one unknown a vertex; of a real number, complex or not, without rounding. Elsewhere than on the host
   its C library's function is not to be had. */
HYB_EDGE_FUNCTION PetscReal HybEdgeModulus(HybScalar a)
{
#if defined(PETSC_USE_COMPLEX)
  const PetscReal re = HYB_AGG_REAL(a) < 0 ? -HYB_AGG_REAL(a) : HYB_AGG_REAL(a), im = HYB_AGG_IMAGINARY(a);

  #if defined(__cplusplus)
  return im == 0 ? re : HybEdgeHypot(re, im);
  #else
  return im == 0 ? re : PetscHypotReal(re, im);
  #endif
#else
  return a < 0 ? -a : a;
#endif
}

/* of an entry of a block of so many unknowns; of several PETSc takes the real part alone */
HYB_EDGE_FUNCTION PetscReal HybEdgePart(PetscInt bs, HybScalar a)
{
  if (bs == 1) return HybEdgeModulus(a);
  return HYB_AGG_REAL(a) < 0 ? -HYB_AGG_REAL(a) : HYB_AGG_REAL(a);
}

/* a is A's entry, b the one across the diagonal */
HYB_EDGE_FUNCTION PetscReal HybEdgeWeight(PetscBool symmetrize, HybScalar a, HybScalar b)
{
  return symmetrize ? HybEdgeModulus(a) + HybEdgeModulus(b) : HybEdgeModulus(a);
}

/* of a vertex, by the weight on its diagonal: VecReciprocal(), then VecSqrtAbs() */
HYB_EDGE_FUNCTION PetscReal HybEdgeScale(PetscReal weight)
{
  return weight == 0 ? (PetscReal)0 : PetscSqrtReal((PetscReal)1 / weight);
}

/* rows are scaled first, then columns */
HYB_EDGE_FUNCTION PetscReal HybEdgeStrength(PetscReal weight, PetscReal row, PetscReal column)
{
  return (weight * row) * column;
}

HYB_EDGE_FUNCTION PetscBool HybEdgeStays(const HybAggFilter *f, PetscBool diagonal, PetscReal strength)
{
  if (f->diagonal) return (PetscBool)(diagonal || !(strength <= f->threshold));
  return (PetscBool)(strength > f->threshold);
}

HYB_EDGE_FUNCTION PetscBool HybEdgeClose(const HybAggFilter *f, PetscReal strength)
{
  return (PetscBool)(PetscAbsReal(strength - f->threshold) <= (PetscReal)HYB_AGG_CLOSE);
}
#endif
