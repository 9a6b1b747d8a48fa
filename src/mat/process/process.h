/*
  What belongs to the process and not to one matrix: the options that are read once, the device and its stream, counters, events, what is reported at
  the end. All of it is one struct, HybGlueState, which PetscFinalize() resets.
*/
#ifndef AIJHYBRIDGPU_PROCESS_H
#define AIJHYBRIDGPU_PROCESS_H

#include <petscmat.h>
#include <petsc/private/matimpl.h>
#include "aijhybridgpu/private/hybmat.h"
#include "aijhybridgpu/private/hybspmv.h"

typedef enum {
  HYB_BACKEND_AUTO,
  HYB_BACKEND_HOST,
  HYB_BACKEND_CUDA
} HybBackendChoice;

/* Choices that a matrix inherits from the process-wide options and may override under its prefix */
typedef struct {
  HybBackendChoice backend;
  char             spgemm[32];
  char             spmv[32];
  PetscInt         width; /* rowmerge */
} HybChoices;

/* Options of the process; options.c has their names, defaults and texts */
typedef struct {
  char      cudalibrary[PETSC_MAX_PATH_LEN], viewcounts[PETSC_MAX_PATH_LEN];
  PetscInt  device;    /* which card; -1: PETSc's, else by turns */
  PetscInt  devicemin; /* nonzeros; -1: by where the vectors are, see HybGlueDeviceMin() */
  PetscInt  mirror, promotenever;
  PetscInt  lockafter; /* values sent so many times again move to page-locked memory; 0: never */
  PetscInt  lockmin;   /* fewer bytes of values stay where they are: they are soon through the buffers, which are page-locked as well */
  PetscInt  planmin;   /* patterns of so many nonzeros are planned for at their second product with a vector */
  PetscInt  viewmemory, frameunknown, smoothers;
  PetscReal managedlimit, memorylimit, locklimit;
} HybOptions;

typedef enum {
  HYB_DEVICE_UNKNOWN, /* not asked yet */
  HYB_DEVICE_NONE,    /* there is none that can be used: whynodevice says why */
  HYB_DEVICE_READY
} HybDeviceStatus;

typedef struct {
  PetscBool registered;
  /* the parents' operations, copied from pristine objects, and functions composed on these */
  PetscBool      captured_seq, captured_mpi;
  struct _MatOps seq, mpi;
  struct _MatOps own; /* those of the sequential type */
  void (*storevalues)(void), (*retrievevalues)(void), (*setpreallocation)(void), (*resetpreallocation)(void), (*setcolumnindices)(void), (*resethash)(void), (*kron)(void);
  /* options */
  PetscBool  optionsread;
  HybOptions options;
  HybChoices choices;
  /* counters */
  PetscLogDouble todevice, tohost; /* bytes over the bus */
  PetscLogDouble hostwork;         /* nonzeros that the host has multiplied with vectors while the device was not open */
  PetscCount     mults, assemblies, products, fallbacks, fallbacksasked, deviceops;
  PetscCount     gamg[HYB_GAMG_COUNTS];
  char           methods[512]; /* names of the methods that computed products, colon-separated */
  PetscBool      toldhostvectors;
  /* device */
  HybDeviceStatus   devicestatus;
  const HybBackend *device;
  HybMem            deviceresult; /* memory of results on it */
  char              whynodevice[512];
  PetscBool         streamknown;
  void             *stream;        /* of the last operation on the device */
  PetscBool         nopetscstream; /* PETSc's own device is unusable: ours has a stream that nobody shares */
  char              method[32];    /* asked for by a parallel product, for its sequential parts */
} HybGlue;

PETSC_INTERN HybGlue HybGlueState;

PETSC_INTERN PetscLogEvent HYB_ProductSymbolic, HYB_ProductNumeric, HYB_Adopt, HYB_Check, HYB_CopyTo, HYB_CopyFrom, HYB_HostDuplicate, HYB_Transpose;

/* What runs on the device as one operation of Mat: each has an event of its own under PETSc's, by which -log_view and the tests know that the
   device did it */
typedef enum {
  HYB_OP_MULT, /* with a vector, transposed or not, added or not */
  HYB_OP_SCALE,
  HYB_OP_ZERO,
  HYB_OP_DIAGONALSCALE,
  HYB_OP_GETDIAGONAL,
  HYB_OP_DIAGONALSET,
  HYB_OP_NORM,
  HYB_OP_DUPLICATE,
  HYB_OP_COPY,
  HYB_OP_AXPY,
  HYB_OP_TRANSPOSE,
  HYB_OP_SUBMATRIX,
  HYB_OP_COOPATTERN,
  HYB_OP_COOVALUES,
  HYB_OP_CONVERT,
  HYB_OP_DENSE,
  HYB_OP_ZEROS, /* of the diagonal, counted */
  HYB_OP_NOISE, /* in a vector */
  HYB_OPS
} HybOp;
PETSC_INTERN PetscLogEvent HYB_Op[HYB_OPS];

/* bytes that this process took over the bus; what page faults move is not among them */
static inline PetscErrorCode HybLogToDevice(PetscLogDouble bytes)
{
  HybGlueState.todevice += bytes;
  return PetscLogCpuToGpu(bytes);
}
static inline PetscErrorCode HybLogToHost(PetscLogDouble bytes)
{
  HybGlueState.tohost += bytes;
  return PetscLogGpuToCpu(bytes);
}

/* options.c */
PETSC_INTERN PetscErrorCode HybOptionsRead(void);
PETSC_INTERN PetscErrorCode HybOptionsReadReports(void);
PETSC_INTERN PetscErrorCode HybOptionsHelp(void);
PETSC_INTERN PetscErrorCode HybGlueReadChoices(HybChoices *);
PETSC_INTERN PetscErrorCode HybGlueCheckMethod(const char *option, const char *value, const char *const *names);

/* report.c */
PETSC_INTERN PetscErrorCode HybEventsRegister(void);
PETSC_INTERN PetscErrorCode HybGlueDescribeMemory(char text[], size_t length, PetscBool *any);
PETSC_INTERN PetscErrorCode HybGlueCountProduct(const char *method);
PETSC_INTERN PetscErrorCode HybGlueFinalize(void);

/* device.c: the device library, opened at first use; NULL if there is none (an error if it is required) */
PETSC_INTERN PetscErrorCode HybGlueGetDevice(PetscBool required, const HybBackend **);
PETSC_INTERN PetscErrorCode HybGlueDeviceExec(const HybBackend *, HybExec *);
/* what was kept from an earlier operation, with the stream of now */
PETSC_INTERN PetscErrorCode HybExecRefresh(HybExec *x);
static inline PetscBool     HybExecOnDevice(const HybExec *x)
{
  return x->backend->device;
}

#endif
