/*
  smoothers.h: what src/ksp registers over PETSc's own types.
*/
#ifndef AIJHYBRIDGPU_SMOOTHERS_H
#define AIJHYBRIDGPU_SMOOTHERS_H
#include <petscksp.h>

PETSC_INTERN PetscErrorCode PCCreate_Jacobi_Hyb(PC);
/* Do the host's and the device's functions make the noise of this PETSc? */
PETSC_INTERN PetscBool HybNoiseKnown(void);

#endif
