/*
  csrops.cuh: the device's elementary operations on CSR arrays, one function for each entry of HybCSROps; table.cu
  joins them into the table.
*/
#ifndef AIJHYBRIDGPU_CSROPS_CUH
#define AIJHYBRIDGPU_CSROPS_CUH

#include "csrlist.h"
#include "../structure/each.cuh"

#define CSR_THREADS 256
#define CSR_CREW    4096 /* rows of one of the crew's threads, at least */

/* a few bytes from the device, complete on return, as copies to the host of the device's are */
static inline PetscErrorCode CSRFetch(const HybExec *exec, void *host, const void *device, size_t bytes)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->copy(exec, host, device, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
