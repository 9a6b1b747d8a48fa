/*
  bench_wait.h: when a clock may be read.
*/
#ifndef BENCH_WAIT_H
#define BENCH_WAIT_H
#include <petscdevice.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

/* the card has done what it was given, and all processes are here */
static PetscErrorCode Synchronize(void)
{
  PetscMPIInt processes;

  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (PetscDeviceInitialized(PETSC_DEVICE_CUDA)) { /* a PETSc with CUDA may run without a card */
    PetscDeviceContext dctx;

    PetscCall(PetscDeviceContextGetCurrentContext(&dctx));
    PetscCall(PetscDeviceContextSynchronize(dctx));
  }
#endif
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &processes));
  if (processes > 1) PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
