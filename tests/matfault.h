/*
  matfault.h: the device library of the plugin, opened once more with a hook that it asks before each allocation, CUDA
  call, launch and primitive: the same library, the same card. Its first use by the plugin sets it anew.
*/
#ifndef MATFAULT_H
#define MATFAULT_H
#include "mattest.h"
#include <aijhybridgpu/private/hyb.h>
#include <dlfcn.h>
#include <string.h>

/* *device, if not NULL: the library's backend, NULL where no library is named */
static inline PetscErrorCode MatTestHook(int (*fault)(const char *), const HybBackend **device)
{
  char              path[PETSC_MAX_PATH_LEN] = "", message[256];
  const HybStamp    stamp                    = HYB_STAMP;
  const HybBackend *backend                  = NULL;
  HybServices       services;
  HybGetBackendFn   get;
  PetscBool         cuda, mirror;
  void             *library;

  PetscFunctionBeginUser;
  if (device) *device = NULL;
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &cuda));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  if (!cuda || !path[0]) PetscFunctionReturn(PETSC_SUCCESS);
  library = dlopen(path, RTLD_NOW);
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
  *(void **)&get = dlsym(library, HYB_GET_BACKEND_SYMBOL);
  PetscCheck(get, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
  memset(&services, 0, sizeof(services));
  services.size             = sizeof(services);
  services.device           = -1;
  services.managed_fraction = 0.5;
  services.locked_fraction  = 0.25;
  services.processes        = 1;
  services.mirror           = (int)mirror;
  services.fault            = fault;
  PetscCheck(!(*get)(&stamp, &services, &backend, message, sizeof(message)), PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", message);
  if (device) *device = backend;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
