/*
  Vectors and dense matrices of operations: where they are, and staging of the host's for operations on the device.
*/
#include "where.h"

/* room on the device for a vector of the host's, and its entries */
static PetscErrorCode HybVecStage(HybVecAccess *d)
{
  const HybExec *x = &d->copy.exec;
  PetscInt       n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(d->v, &n));
  PetscCall(HybArenaAlloc(&d->copy, HYB_MEM_DEVICE, n, sizeof(PetscScalar), &d->there));
  if (!d->read) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->copy(x, d->there, d->array, sizeof(PetscScalar) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybLogToDevice(sizeof(PetscScalar) * (PetscLogDouble)n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybVecGiveBack(HybVecAccess *d)
{
  Vec              v = d->v;
  PetscObjectState state;

  PetscFunctionBegin;
  d->v = NULL; /* also if that fails */
  PetscCall(PetscObjectStateGet((PetscObject)v, &state));
  if (!HybExecOnDevice(&d->copy.exec)) {
    if (d->read && d->write)
      PetscCall(VecRestoreArray(v, &d->array));
    else if (d->write)
      PetscCall(VecRestoreArrayWrite(v, &d->array));
    else
      PetscCall(VecRestoreArrayRead(v, (const PetscScalar **)&d->array));
  } else if (d->read && d->write)
    PetscCall(VecRestoreArrayAndMemType(v, &d->array));
  else if (d->write)
    PetscCall(VecRestoreArrayWriteAndMemType(v, &d->array));
  else
    PetscCall(VecRestoreArrayReadAndMemType(v, (const PetscScalar **)&d->array));
  if (d->untouched) PetscCall(PetscObjectStateSet((PetscObject)v, state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybVecGet(const HybExec *x, Vec v, PetscBool read, PetscBool write, HybVecAccess *d)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  d->v         = NULL; /* it is nobody's until it was got */
  d->read      = read;
  d->write     = write;
  d->untouched = PETSC_FALSE;
  d->copy      = HybArenaOn(x);
  d->array = d->there = NULL;
  d->mtype            = PETSC_MEMTYPE_HOST;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  if (!HybExecOnDevice(x)) {
    if (read && write)
      PetscCall(VecGetArray(v, &d->array));
    else if (write)
      PetscCall(VecGetArrayWrite(v, &d->array));
    else
      PetscCall(VecGetArrayRead(v, (const PetscScalar **)&d->array));
    d->there = d->array;
    d->v     = v;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (read && write)
    PetscCall(VecGetArrayAndMemType(v, &d->array, &d->mtype));
  else if (write)
    PetscCall(VecGetArrayWriteAndMemType(v, &d->array, &d->mtype));
  else
    PetscCall(VecGetArrayReadAndMemType(v, (const PetscScalar **)&d->array, &d->mtype));
  d->there = d->array;
  d->v     = v;
  if (!PetscMemTypeHost(d->mtype)) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybVecStage(d);
  if (ierr) {
    d->untouched = PETSC_TRUE;
    (void)HybArenaReset(&d->copy);
    PetscCall(HybErrorFirst(ierr, HybVecGiveBack(d)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybVecRestore(PetscErrorCode before, HybVecAccess *d)
{
  const HybExec *x    = &d->copy.exec;
  PetscErrorCode ierr = before; /* the vector is given back all the same */
  PetscInt       n;

  PetscFunctionBegin;
  if (d->v && HybExecOnDevice(x) && PetscMemTypeHost(d->mtype)) {
    if (d->write && !ierr) ierr = VecGetLocalSize(d->v, &n);
    if (d->write && !ierr) ierr = x->backend->copy(x, d->array, d->there, sizeof(PetscScalar) * (size_t)n, HYB_COPY_DEVICE_TO_HOST);
    if (d->write && !ierr) ierr = HybLogToHost(sizeof(PetscScalar) * (PetscLogDouble)n);
    ierr = HybErrorFirst(ierr, HybArenaReset(&d->copy));
  }
  if (d->v) ierr = HybErrorFirst(ierr, HybVecGiveBack(d));
  if (!before) PetscCall(ierr);
  PetscFunctionReturn(ierr);
}

/* Lends M's array, or takes it back: for reading, for writing all columns, or for writing some, beside which the others
   stay */
#define DENSE_ACCESS(d, M, whole, Read, Write, Both, ...) PetscCall(!(d)->write ? Read(M, (const PetscScalar **)&(d)->array __VA_ARGS__) : (whole) ? Write(M, &(d)->array __VA_ARGS__) \
                                                                                                                                                   : Both(M, &(d)->array __VA_ARGS__))

/* the array where it is, of M on a device there if PETSc can lend it so; and its return */
static PetscErrorCode HybMatDenseLend(HybMatDenseAccess *d, Mat M)
{
  const PetscBool whole = (PetscBool)(d->n == M->cmap->N);

  PetscFunctionBegin;
#if HYB_HAS_DENSE_MEMTYPE
  if (HybExecOnDevice(&d->copy.exec)) {
    DENSE_ACCESS(d, M, whole, MatDenseGetArrayReadAndMemType, MatDenseGetArrayWriteAndMemType, MatDenseGetArrayAndMemType, , &d->mtype);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  DENSE_ACCESS(d, M, whole, MatDenseGetArrayRead, MatDenseGetArrayWrite, MatDenseGetArray, );
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatDenseGiveBack(HybMatDenseAccess *d)
{
  Mat             M     = d->M;
  const PetscBool whole = (PetscBool)(d->n == M->cmap->N);

  PetscFunctionBegin;
  d->M = NULL; /* also if that fails */
#if HYB_HAS_DENSE_MEMTYPE
  if (HybExecOnDevice(&d->copy.exec)) {
    DENSE_ACCESS(d, M, whole, MatDenseRestoreArrayReadAndMemType, MatDenseRestoreArrayWriteAndMemType, MatDenseRestoreArrayAndMemType, );
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  DENSE_ACCESS(d, M, whole, MatDenseRestoreArrayRead, MatDenseRestoreArrayWrite, MatDenseRestoreArray, );
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* between the array and its copy */
static PetscErrorCode HybMatDenseMove(HybMatDenseAccess *d)
{
  const HybExec *x = &d->copy.exec;
  const PetscInt m = d->M->rmap->n, columns = d->lda == m ? d->n : 1; /* that go in one */

  PetscFunctionBegin;
  for (PetscInt c = 0; c < d->n; c += columns) {
    PetscScalar *const host = d->array + (size_t)d->lda * (d->first + c), *const device = d->there + (size_t)m * c;

    PetscCall(x->backend->copy(x, d->write ? host : device, d->write ? device : host, sizeof(PetscScalar) * (size_t)m * (size_t)columns, d->write ? HYB_COPY_DEVICE_TO_HOST : HYB_COPY_HOST_TO_DEVICE));
  }
  if (d->write) PetscCall(x->backend->sync(x));
  PetscCall(d->write ? HybLogToHost(sizeof(PetscScalar) * (PetscLogDouble)m * d->n) : HybLogToDevice(sizeof(PetscScalar) * (PetscLogDouble)m * d->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatDenseGet(const HybExec *x, Mat M, PetscInt first, PetscInt n, PetscBool write, HybMatDenseAccess *d)
{
  const PetscInt m = M->rmap->n;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *d = (HybMatDenseAccess){.first = first, .n = n, .write = write, .mtype = PETSC_MEMTYPE_HOST, .copy = HybArenaOn(x)};
  PetscCall(MatDenseGetLDA(M, &d->lda));
  PetscCall(HybMatDenseLend(d, M));
  d->M     = M; /* it is nobody's until it was got */
  d->there = d->array + (size_t)d->lda * first;
  d->ld    = d->lda;
  if (!HybExecOnDevice(x) || !PetscMemTypeHost(d->mtype)) PetscFunctionReturn(PETSC_SUCCESS);
  d->ld = m;
  ierr  = HybArenaAlloc(&d->copy, HYB_MEM_DEVICE, (PetscCount)m * n, sizeof(PetscScalar), &d->there);
  if (!ierr && !write) ierr = HybMatDenseMove(d);
  if (ierr) PetscCall(HybMatDenseRestore(ierr, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatDenseRestore(PetscErrorCode before, HybMatDenseAccess *d)
{
  PetscErrorCode ierr = before; /* the matrix is given back all the same */

  PetscFunctionBegin;
  if (!d->M) PetscFunctionReturn(before);
  if (!ierr && d->write && d->copy.blocks) ierr = HybMatDenseMove(d);
  ierr = HybErrorFirst(ierr, HybArenaReset(&d->copy));
  ierr = HybErrorFirst(ierr, HybMatDenseGiveBack(d));
  if (!before) PetscCall(ierr);
  PetscFunctionReturn(ierr);
}

PetscErrorCode HybVecOfDevice(Vec v, PetscBool *flg)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, flg, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
#else
  *flg = PETSC_FALSE;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybVecOnDevice(Vec v, PetscBool *flg)
{
  PetscBool bound = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(HybVecOfDevice(v, flg));
#if defined(PETSC_HAVE_CUDA)
  if (*flg) PetscCall(VecBoundToCPU(v, &bound));
#endif
  if (bound) *flg = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybMatOnHost(PetscBool on)
{
  HybGlueState.onhost = on;
}

/* Vectors of a matrix whose type was asked for by name are made on the device where PETSc can, unless the matrix is
   bound to the CPU */
PetscErrorCode MatAIJHybridGPUSetVecType(Mat A)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  {
    HybChoices        choices;
    const HybBackend *device = NULL;

    PetscCall(HybGlueReadChoices(&choices));
    if (choices.backend != HYB_BACKEND_HOST && !A->boundtocpu && !HybGlueState.onhost) PetscCall(HybGlueGetDevice(PETSC_FALSE, &device));
    PetscCall(PetscFree(A->defaultvectype));
    PetscCall(PetscStrallocpy(device && !HybGlueState.nopetscstream ? VECCUDA : VECSTANDARD, &A->defaultvectype));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
