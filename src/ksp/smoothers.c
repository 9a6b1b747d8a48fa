/*
  smoothers.c: PETSc's types that the plugin registers over themselves where -mat_aijhybridgpu_smoothers is on.
*/
#include "aijhybridgpu/private/hybmat.h"
#include "smoothers.h"

PetscErrorCode HybSmoothersRegister(void)
{
  PetscFunctionBegin;
  PetscCall(KSPInitializePackage());
  PetscCall(PCRegister(PCJACOBI, PCCreate_Jacobi_Hyb));
  PetscCall(KSPRegister(KSPCHEBYSHEV, KSPCreate_Chebyshev_Hyb));
  PetscCall(KSPRegister(KSPCG, KSPCreate_CG_Hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}
