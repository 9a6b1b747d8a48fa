/*
  Vectors of operations on the device: where they are, and staging of those that are on the host.
*/
#include "../aijhybridgpuimpl.h"

PetscErrorCode HybDeviceVectorGet(const HybExec *x, HybArena *work, Vec v, PetscBool read, PetscBool write, HybDeviceVector *d)
{
  PetscInt n;

  PetscFunctionBegin;
  d->v     = v;
  d->read  = read;
  d->write = write;
  d->array = d->device = NULL;
  d->mtype             = PETSC_MEMTYPE_HOST;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  if (read && write) PetscCall(VecGetArrayAndMemType(v, &d->array, &d->mtype));
  else if (write) PetscCall(VecGetArrayWriteAndMemType(v, &d->array, &d->mtype));
  else PetscCall(VecGetArrayReadAndMemType(v, (const PetscScalar **)&d->array, &d->mtype));
  d->device = d->array;
  if (PetscMemTypeHost(d->mtype)) {
    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscScalar), &d->device));
    if (read) {
      PetscCall(x->backend->copy(x, d->device, d->array, sizeof(PetscScalar) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
      PetscCall(HybLogToDevice(sizeof(PetscScalar) * (PetscLogDouble)n));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceVectorRestore(const HybExec *x, HybArena *work, HybDeviceVector *d)
{
  PetscInt n;

  PetscFunctionBegin;
  if (!d->v) PetscFunctionReturn(PETSC_SUCCESS);
  if (PetscMemTypeHost(d->mtype)) {
    if (d->write) {
      PetscCall(VecGetLocalSize(d->v, &n));
      PetscCall(x->backend->copy(x, d->array, d->device, sizeof(PetscScalar) * (size_t)n, HYB_COPY_DEVICE_TO_HOST));
      PetscCall(HybLogToHost(sizeof(PetscScalar) * (PetscLogDouble)n));
    }
    PetscCall(HybArenaFree(work, &d->device));
  }
  if (d->read && d->write) PetscCall(VecRestoreArrayAndMemType(d->v, &d->array));
  else if (d->write) PetscCall(VecRestoreArrayWriteAndMemType(d->v, &d->array));
  else PetscCall(VecRestoreArrayReadAndMemType(d->v, (const PetscScalar **)&d->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybVecOnDevice(Vec v, PetscBool *flg)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, flg, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
  if (*flg) {
    PetscBool bound;

    PetscCall(VecBoundToCPU(v, &bound));
    if (bound) *flg = PETSC_FALSE;
  }
#else
  (void)v;
  *flg = PETSC_FALSE;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
