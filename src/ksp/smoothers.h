/*
  smoothers.h: what src/ksp registers over PETSc's own types.
*/
#ifndef AIJHYBRIDGPU_SMOOTHERS_H
#define AIJHYBRIDGPU_SMOOTHERS_H
#include <petscksp.h>

PETSC_INTERN PetscErrorCode PCCreate_Jacobi_Hyb(PC);
/* petsc/ksp/noise.c; the first: do the host's and the device's functions make the noise of this PETSc? The second: a
   set-up that starts from this vector */
typedef PetscErrorCode (*HybUseNoisyFn)(KSP, PetscBool);
PETSC_INTERN PetscBool      HybNoiseKnown(void);
PETSC_INTERN PetscErrorCode HybNoiseLend(KSP, Mat A, Vec noise, PetscErrorCode (*setup)(KSP), HybUseNoisyFn);

#endif
