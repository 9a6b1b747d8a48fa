/*
  Assembly from coordinates. The parents' functions read indices and values on the host; a program may hand in device arrays (a DM with
  -dm_vec_type cuda does), which are brought over first. Both types share this; without devices in PETSc there is nothing to do.
*/
#include "aijhybridgpuimpl.h"

#if defined(PETSC_HAVE_DEVICE)
  #include <petscdevice.h>

typedef PetscErrorCode (*HybSetPreallocationCOO)(Mat, PetscCount, PetscInt[], PetscInt[]);
typedef PetscErrorCode (*HybSetValuesCOO)(Mat, const PetscScalar[], InsertMode);

/* the parents', sequential and parallel */
static HybSetPreallocationCOO HybParentPreallocation[2];
static HybSetValuesCOO        HybParentValues[2];

/* *host = array where it is on the host, else a copy of its count entries, which is *copy too */
static PetscErrorCode HybCOOToHost(const void *array, PetscCount count, size_t size, void **host, void **copy)
{
  PetscMemType      mtype = PETSC_MEMTYPE_HOST;
  const HybBackend *device = NULL;
  HybExec           x;

  PetscFunctionBegin;
  *host = (void *)array;
  *copy = NULL;
  if (array) PetscCall(PetscGetMemType(array, &mtype));
  if (PetscMemTypeHost(mtype)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetDevice(PETSC_TRUE, &device));
  PetscCall(HybGlueDeviceExec(device, &x));
  PetscCall(PetscMalloc((size_t)count * size, copy));
  PetscCall(x.backend->copy(&x, *copy, array, (size_t)count * size, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)count * size));
  *host = *copy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_AIJHybridGPU(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  void          *hi, *hj, *ci, *cj;
  PetscCount    *count;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybCOOToHost(i, n, sizeof(PetscInt), &hi, &ci));
  PetscCall(HybCOOToHost(j, n, sizeof(PetscInt), &hj, &cj));
  ierr = (*HybParentPreallocation[MatIsSeqAIJHybridGPU(A) ? 0 : 1])(A, n, (PetscInt *)hi, (PetscInt *)hj);
  PetscCall(PetscFree(ci));
  PetscCall(PetscFree(cj));
  PetscCall(ierr);
  PetscCall(MatAIJHybridGPUGetCOOCount(A, &count));
  *count = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetValuesCOO_AIJHybridGPU(Mat A, const PetscScalar v[], InsertMode mode)
{
  void          *hv, *cv;
  PetscCount    *count;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatAIJHybridGPUGetCOOCount(A, &count));
  PetscCall(HybCOOToHost(v, *count, sizeof(PetscScalar), &hv, &cv));
  ierr = (*HybParentValues[MatIsSeqAIJHybridGPU(A) ? 0 : 1])(A, (const PetscScalar *)hv, mode);
  PetscCall(PetscFree(cv));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Puts these over the parent's, or the parent's back */
PetscErrorCode MatAIJHybridGPUComposeCOO(Mat A, PetscBool seq, PetscBool on)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_DEVICE)
  {
    const int k = seq ? 0 : 1;

    if (!HybParentValues[k]) {
      PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetPreallocationCOO_C", &HybParentPreallocation[k]));
      PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetValuesCOO_C", &HybParentValues[k]));
    }
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", on ? MatSetPreallocationCOO_AIJHybridGPU : HybParentPreallocation[k]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", on ? MatSetValuesCOO_AIJHybridGPU : HybParentValues[k]));
  }
#else
  (void)A;
  (void)seq;
  (void)on;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
