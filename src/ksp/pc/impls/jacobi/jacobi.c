/*
  PCJACOBI for matrices of the type: PETSc's own, without its one loop on the host.

  Where it makes the reciprocals of a diagonal it looks for zeros among them on the host, which fetches the vector from
  the device and sends it back. The device looks first: where there is no zero, PETSc is told for the length of that
  call not to look (PCJacobiSetFixDiagonal()). Where there is one, or options ask for something else, or the matrix is
  another's, all is PETSc's. So the preconditioner is the same to the last bit.

  PETSc makes them in two places: in the set-up, when they exist already, and in the first application. That one is
  wrapped until it has happened, and again after a reset.
*/
#include <petsc/private/pcimpl.h>
#include <petscksp.h>
#include "aijhybridgpu/private/hybmat.h"
#include "../../../smoothers.h"

PETSC_EXTERN PetscErrorCode PCCreate_Jacobi(PC);

/* PETSc's own operations, the same for all objects */
static struct {
  PetscErrorCode (*setup)(PC);
  PetscErrorCode (*reset)(PC);
  PetscErrorCode (*apply)(PC, Vec, Vec);
  PetscErrorCode (*applytranspose)(PC, Vec, Vec);
} petsc;

/* Is there a loop that the device can save? */
static PetscErrorCode HybJacobiLook(PC pc, PetscBool *skip)
{
  PCJacobiType type;
  PetscBool    useabs, fix, known, isset, isspd;
  PetscCount   zeros;

  PetscFunctionBegin;
  *skip = PETSC_FALSE;
  if (!pc->pmat) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCJacobiGetType(pc, &type));
  PetscCall(PCJacobiGetUseAbs(pc, &useabs));
  PetscCall(PCJacobiGetFixDiagonal(pc, &fix));
  if (type != PC_JACOBI_DIAGONAL || useabs || !fix) PetscFunctionReturn(PETSC_SUCCESS);
#if HYB_HAS_SPD_KNOWN
  PetscCall(MatIsSPDKnown(pc->pmat, &isset, &isspd)); /* PETSc does not look then */
  if (isset && isspd) PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)isset;
  (void)isspd;
#endif
  /* without an answer PETSc looks itself, as on the other processes: no reason to leave them */
  if (HYB_QUIETLY(HybMatDiagonalZeros(pc->pmat, &known, &zeros))) known = PETSC_FALSE;
  *skip = (PetscBool)(known && !zeros);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_Jacobi_Hyb(PC pc)
{
  PetscBool      skip = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (pc->ops->apply == petsc.apply) PetscCall(HybJacobiLook(pc, &skip));
  if (skip) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_FALSE));
  ierr = (*petsc.setup)(pc);
  if (skip) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_TRUE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the first application: from then on PETSc's own are called */
static PetscErrorCode HybJacobiApplyFirst(PC pc, Vec x, Vec y, PetscErrorCode (*apply)(PC, Vec, Vec))
{
  PetscBool      skip;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybJacobiLook(pc, &skip));
  if (skip) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_FALSE));
  ierr = (*apply)(pc, x, y);
  if (skip) PetscCall(PCJacobiSetFixDiagonal(pc, PETSC_TRUE));
  PetscCall(ierr);
  pc->ops->apply          = petsc.apply;
  pc->ops->applytranspose = petsc.applytranspose;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_Jacobi_Hyb(PC pc, Vec x, Vec y)
{
  return HybJacobiApplyFirst(pc, x, y, petsc.apply);
}

static PetscErrorCode PCApplyTranspose_Jacobi_Hyb(PC pc, Vec x, Vec y)
{
  return HybJacobiApplyFirst(pc, x, y, petsc.applytranspose);
}

static PetscErrorCode PCReset_Jacobi_Hyb(PC pc)
{
  PetscFunctionBegin;
  PetscCall((*petsc.reset)(pc));
  pc->ops->apply          = PCApply_Jacobi_Hyb;
  pc->ops->applytranspose = PCApplyTranspose_Jacobi_Hyb;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCCreate_Jacobi_Hyb(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PCCreate_Jacobi(pc));
  petsc.setup             = pc->ops->setup;
  petsc.reset             = pc->ops->reset;
  petsc.apply             = pc->ops->apply;
  petsc.applytranspose    = pc->ops->applytranspose;
  pc->ops->setup          = PCSetUp_Jacobi_Hyb;
  pc->ops->reset          = PCReset_Jacobi_Hyb;
  pc->ops->apply          = PCApply_Jacobi_Hyb;
  pc->ops->applytranspose = PCApplyTranspose_Jacobi_Hyb;
  PetscFunctionReturn(PETSC_SUCCESS);
}
