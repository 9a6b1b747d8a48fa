/*
  The vector of noise from which PETSc estimates eigenvalues, made where the matrix is. KSPCHEBYSHEV takes one from
  nobody: so for the length of its set-up it is told that no noise is wanted, and its right-hand side is a vector of
  noise. Noise is a hash of each entry's number, which ours is proven to be.
*/
#include <petsc/private/kspimpl.h>
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybmat.h"
#include "../../ksp/smoothers.h"

/* PETSc's header is that of the release that runs, which was checked at load */
PetscBool HybNoiseKnown(void)
{
  static const PetscInt at[] = {0, 1, 65535, 65536, 1000003, 2147483646};

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(at); k++) {
    PetscScalar mine = 0;

    if (HybKrylovHost.noise(NULL, at[k], 1, &mine) || mine != KSPNoisyHash_Private(at[k])) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* setup and usenoisy: PETSc's own. All is as it was afterwards, also after an error. */
PetscErrorCode HybNoiseLend(KSP ksp, Vec noise, PetscErrorCode (*setup)(KSP), HybUseNoisyFn usenoisy)
{
  const Vec      rhs = ksp->vec_rhs;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall((*usenoisy)(ksp, PETSC_FALSE));
  ksp->vec_rhs = noise;
  ierr         = (*setup)(ksp);
  ksp->vec_rhs = rhs;
  PetscCall(HybErrorFirst(ierr, (*usenoisy)(ksp, PETSC_TRUE)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
