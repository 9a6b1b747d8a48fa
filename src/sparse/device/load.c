/*
  load.c: opens a device library. The plugin itself needs no CUDA: its device part is a library of its own, found beside
  it in the folder cuda/ (its own folder, since PETSc's -dll_append FOLDER opens every library of a folder) or named by
  the user.
*/
#define _GNU_SOURCE
#include "aijhybridgpu/private/hyb.h"
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define HYB_DEVICE_LIBRARY "cuda/libaijhybridgpu_cuda.so"

/* the device library beside the object of this function */
static PetscErrorCode HybLibraryBeside(char where[], size_t length)
{
  Dl_info info;
  char   *slash;

  PetscFunctionBegin;
  where[0] = 0;
  if (dladdr((void *)&HybBackendLoad, &info) && info.dli_fname) {
    char real[PATH_MAX];

    PetscCall(PetscStrncpy(where, realpath(info.dli_fname, real) ? real : info.dli_fname, length));
  }
  slash = strrchr(where, '/');
  if (slash)
    slash[1] = 0;
  else
    where[0] = 0;
  PetscCall(PetscStrlcat(where, HYB_DEVICE_LIBRARY, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The driver's control file is there once the driver is in use. Where it is not, the driver's own library is tried. */
static PetscBool HybDriverIsMissing(void)
{
  void *handle;

  if (!access("/dev/nvidiactl", F_OK)) return PETSC_FALSE;
  handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle) dlclose(handle);
  return (PetscBool)!handle;
}

PetscErrorCode HybBackendNone(PetscBool *none)
{
  char where[PETSC_MAX_PATH_LEN];

  PetscFunctionBegin;
  PetscCall(HybLibraryBeside(where, sizeof(where)));
  *none = (PetscBool)(access(where, R_OK) || HybDriverIsMissing());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybBackendLoad(const char *path, const HybServices *services, const HybBackend **backend, char *message, size_t length)
{
  const HybStamp  stamp = HYB_STAMP;
  HybServices     with  = *services;
  char            where[PETSC_MAX_PATH_LEN], reason[512];
  void           *handle;
  HybGetBackendFn get;

  PetscFunctionBegin;
  *backend = NULL;
  if (length) message[0] = 0;
  if (path && path[0])
    PetscCall(PetscStrncpy(where, path, sizeof(where)));
  else
    PetscCall(HybLibraryBeside(where, sizeof(where)));
  if (access(where, R_OK)) {
    PetscCall(PetscSNPrintf(message, length, "There is no device library %s (make builds it where CUDA's nvcc is found)", where));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!(path && path[0]) && HybDriverIsMissing()) {
    PetscCall(PetscSNPrintf(message, length, "The device library %s cannot be used: this machine has no CUDA driver (libcuda.so.1)", where));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* NODELETE: the library holds the card's pools and their contents, and CUDA's own clean-up at exit must find its code
     in place */
  handle = dlopen(where, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char *why = dlerror();

    PetscCall(PetscSNPrintf(message, length, "The device library %s cannot be opened: %s", where, why ? why : "unknown reason"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *(void **)&get = dlsym(handle, HYB_GET_BACKEND_SYMBOL);
  if (!get) {
    PetscCall(PetscSNPrintf(message, length, "%s is no device library of petsc-aijhybridgpu: it has no %s()", where, HYB_GET_BACKEND_SYMBOL));
    dlclose(handle);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  reason[0] = 0;
  if (!with.tuning) with.tuning = HybTuningGet();
  if (get(&stamp, &with, backend, reason, sizeof(reason))) {
    *backend = NULL;
    PetscCall(PetscSNPrintf(message, length, "The device library %s cannot be used: %s", where, reason));
    dlclose(handle);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
