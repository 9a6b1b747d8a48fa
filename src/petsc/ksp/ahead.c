/*
  CUDA loads a library's kernels when the first of them is asked for, PETSc's vectors' among them: in the process's
  first solve, when nothing else is left to do. Here each kind that Jacobi and Chebyshev use is asked for once, for one
  entry, in the first set-up, while the device smooths the finest prolongator.

  No event is logged and flops are those that were; the table of objects counts three vectors. What fails here fails
  nobody's set-up.
*/
#include "../../ksp/pc/impls/gamg/gamgimpl.h"

#if HYB_GAMG
static PetscErrorCode HybGAMGTouch(Vec v[3])
{
  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) PetscCall(VecSet(v[k], 1.0));
  PetscCall(VecReciprocal(v[0]));
  PetscCall(VecPointwiseMult(v[1], v[0], v[2]));
  PetscCall(VecAXPBYPCZ(v[2], 0.5, 0.25, 0.125, v[0], v[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGAMGAhead(Mat A)
{
  static PetscBool     done = PETSC_FALSE;
  const PetscLogDouble all  = petsc_TotalFlops;
  PetscErrorCode       ierr = PETSC_SUCCESS;
  PetscBool            loud;
  VecType              type;
  Vec                  v[3] = {NULL, NULL, NULL};
  #if PetscDefined(HAVE_DEVICE)
  const PetscLogDouble devices = petsc_gflops;
  #endif

  PetscFunctionBegin;
  PetscCall(MatGetVecType(A, &type));
  if (done || !type || !strstr(type, VECCUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  done = PETSC_TRUE;
  loud = HybGAMGQuiet();
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (int k = 0; k < 3 && !ierr; k++) {
    ierr = VecCreate(PETSC_COMM_SELF, &v[k]);
    if (!ierr) ierr = VecSetSizes(v[k], 1, 1);
    if (!ierr) ierr = VecSetType(v[k], VECSEQCUDA);
  }
  if (!ierr) ierr = HybGAMGTouch(v);
  for (int k = 0; k < 3; k++) (void)VecDestroy(&v[k]);
  PetscCall(PetscPopErrorHandler());
  HybGAMGLoud(loud);
  petsc_TotalFlops = all;
  #if PetscDefined(HAVE_DEVICE)
  petsc_gflops = devices;
  #endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
