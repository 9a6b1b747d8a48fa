/*
  cgimpl.h: what KSPCG does with the numbers of an iteration, of one solve (cg.c) or of one of several columns
  (matsolve.c). Number q, a HybCGNumber, stands at s[q * stride].
*/
#ifndef AIJHYBRIDGPU_CGIMPL_H
#define AIJHYBRIDGPU_CGIMPL_H
#include <petscksp.h>

/* the norm that the KSP goes by */
PETSC_INTERN PetscReal HybCGNorm(KSP, const PetscScalar *s, PetscInt stride);
/* iteration i, from 0, begins: beta is 0, or changed its sign, where that is real */
PETSC_INTERN PetscErrorCode HybCGBegin(KSP, const PetscScalar *s, PetscInt stride, PetscInt i, KSPConvergedReason *);
/* p A p, a finite number, stopped the iteration before x was changed */
PETSC_INTERN PetscErrorCode HybCGIndefinite(KSP, const PetscScalar *s, PetscInt stride, KSPConvergedReason *);
/* Before the first iteration of a solve with a first guess: are norms of b asked for? And PETSc's first test with that
   norm of b, and with that of the residual. PETSc's own function forms the former itself, and asks all processes. */
PETSC_INTERN PetscBool      HybCGAsksForB(KSP);
PETSC_INTERN PetscErrorCode HybCGFirstTest(KSP, PetscReal b, PetscReal r);

#endif
