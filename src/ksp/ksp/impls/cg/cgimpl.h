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
/* A solve with a first guess, before its first iteration. AsksForB: does PETSc's test compare with the norm of b?
   FirstTest: that test, given the norms of b and of the residual. PETSc's own function would form the norm of b within
   the test, by an application of the preconditioner and a reduction. */
PETSC_INTERN PetscBool      HybCGAsksForB(KSP);
PETSC_INTERN PetscErrorCode HybCGFirstTest(KSP, PetscReal b, PetscReal r);

#endif
