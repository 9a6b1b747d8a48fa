/*
  Which device this process uses, and its stream.
*/
#include "process.h"
#include <ctype.h>
#include <stdarg.h>
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice.h>
#endif

/* processes of this node that use the same card: local ranks are dealt to cards in turn */
static PetscErrorCode HybGlueLocalRanks(PetscMPIInt *rank, PetscMPIInt *size)
{
  /* not collective where it is called, so the launcher's environment is asked instead of MPI */
  const char *const ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};
  const char *const sizes[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE", NULL};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, rank));
  /* no launcher that we know: all on one node, the cautious answer */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, size));
  for (int k = 0; ranks[k]; k++) {
    const char *r = getenv(ranks[k]), *s = getenv(sizes[k]);

    if (r && s && atoi(s) > 0) {
      *rank = (PetscMPIInt)atoi(r);
      *size = (PetscMPIInt)atoi(s);
      break;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own switch for devices holds for ours too: where it is off PETSc has no stream, and its vectors are the
   host's */
static PetscErrorCode HybGlueDevicesOff(PetscBool *off, char why[], size_t length)
{
  const char *const options[] = {"-device_enable", "-device_enable_cuda"}; /* the second one overrules the first */

  PetscFunctionBegin;
  *off = PETSC_FALSE;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
    char      value[32] = "";
    PetscBool flg;

    PetscCall(PetscOptionsGetString(NULL, NULL, options[k], value, sizeof(value), &flg));
    if (!flg) continue;
    PetscCall(PetscStrcasecmp(value, "none", off));
    PetscCall(PetscSNPrintf(why, length, "devices are switched off by %s none", options[k]));
  }
  if (!*off) why[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGlueGetDevice(PetscBool required, const HybBackend **device)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (g->devicestatus == HYB_DEVICE_UNKNOWN) {
    PetscBool off;

    PetscCall(HybGlueDevicesOff(&off, g->whynodevice, sizeof(g->whynodevice)));
    if (off) {
      g->devicestatus = HYB_DEVICE_NONE;
      PetscCall(PetscInfo(NULL, "No device is used: %s\n", g->whynodevice));
    }
  }
  if (g->devicestatus == HYB_DEVICE_UNKNOWN) {
    const HybOptions *o = &g->options;
    HybServices       services;
    PetscBool         aware = PETSC_FALSE; /* MPI, as PETSc says */
    PetscInt          id;
    PetscMPIInt       rank, size;

    PetscCall(HybOptionsRead()); /* as they stand now */
    id = o->device;
    PetscCall(PetscMemzero(&services, sizeof(services)));
    PetscCall(HybGlueLocalRanks(&rank, &size));
    services.size             = sizeof(services);
    services.managed_fraction = (double)o->managedlimit;
    services.locked_fraction  = (double)o->locklimit;
    services.memory_limit     = (size_t)o->memorylimit;
    services.mirror           = o->mirror ? 1 : 0;
    services.device           = (int)id;
    services.processes        = size;
    HybGlueState.processes    = size;
    services.rank             = rank;
#if defined(PETSC_HAVE_CUDA)
    { /* PETSc's own device: its vectors are there, and its stream */
      PetscDeviceContext dctx;
      PetscDeviceType    type;

      PetscErrorCode ierr;

      /* a PETSc with CUDA on a machine without a card or a driver: that is no error, the host does the work */
      ierr = HYB_QUIETLY(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
      if (!ierr) {
        PetscCall(PetscDeviceContextGetCurrentContext(&dctx));
        PetscCall(PetscDeviceContextGetDeviceType(dctx, &type));
        if (type == PETSC_DEVICE_CUDA) {
          PetscDevice card;
          PetscInt    petscs;

          PetscCall(PetscDeviceContextGetDevice(dctx, &card));
          PetscCall(PetscDeviceGetDeviceId(card, &petscs));
          PetscCheck(id < 0 || id == petscs, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "-mat_aijhybridgpu_device names card %" PetscInt_FMT ", but PETSc's vectors are on card %" PetscInt_FMT ": use -device_select_cuda alone, which both follow", id, petscs);
          services.device = (int)petscs;
          aware           = use_gpu_aware_mpi; /* true by default, but PETSc has tried it when it started the card */
          /* in turn, by PETSc's ranks, unless the user names the one for all */
          PetscCall(PetscOptionsGetInt(NULL, NULL, "-device_select_cuda", &id, NULL));
        }
      } else
        /* its contexts do not come up either: asked for one, they leave a broken one behind */
        g->nopetscstream = PETSC_TRUE;
    }
#endif
    services.dealt = id < 0;
    /* without PETSc's choice of a card: this node's processes take them in turn */
    if (services.device < 0 && (!PetscDefined(HAVE_CUDA) || g->nopetscstream)) services.device = -2;
    PetscCall(HybBackendLoad(o->cudalibrary[0] ? o->cudalibrary : NULL, &services, &g->device, g->whynodevice, sizeof(g->whynodevice)));
    if (g->report.watch) g->device = (*g->report.watch)(g->device);
    g->devicestatus = g->device ? HYB_DEVICE_READY : HYB_DEVICE_NONE;
    HybCommSetAware((PetscBool)(o->commaware ? o->commaware == 2 : aware));
    if (g->device) {
      HybMemoryReport r;

      PetscCall(g->device->usage(&r, PETSC_FALSE));
      g->deviceresult = r.managed_share > 0 ? HYB_MEM_MANAGED : HYB_MEM_DEVICE;
      if (g->device->expect && o->ahead) PetscCall((*g->device->expect)(0));
      PetscCall(PetscInfo(NULL, "Device library %s in use, card %d of %d, at %s, %d processes on this node, managed memory up to %zu bytes\n", g->device->name, r.card, r.cards, r.bus, (int)size, r.managed_share));
    } else
      PetscCall(PetscInfo(NULL, "No device is used: %s\n", g->whynodevice));
  }
  *device = g->device;
  /* within a sentence; names in capitals stay */
  if (!*device && required && islower((unsigned char)g->whynodevice[1])) g->whynodevice[0] = (char)tolower((unsigned char)g->whynodevice[0]);
  PetscCheck(*device || !required, PETSC_COMM_SELF, PETSC_ERR_GPU, "-mat_aijhybridgpu_backend cuda was asked for, but %s; use -mat_aijhybridgpu_backend host or auto", g->whynodevice);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatRoom(const HybExec *x, size_t bytes, const char *what, ...)
{
  HybMemoryReport r;
  PetscBool       fits = PETSC_TRUE;
  char            text[256];
  va_list         numbers;

  PetscFunctionBegin;
  if (x->backend->room) PetscCall((*x->backend->room)(x, bytes, &r, &fits));
  if (fits) PetscFunctionReturn(PETSC_SUCCESS);
  va_start(numbers, what);
  (void)PetscVSNPrintf(text, sizeof(text), what, NULL, numbers);
  va_end(numbers);
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the device: %zu bytes needed, %zu free of %zu%s, for %s" HYB_MEMORY_HINT ". Nothing of that has been taken. A process needs less of its card where more have one each%s%s; -mat_aijhybridgpu_backend host needs none", bytes, r.free_bytes, r.total_bytes,
          HybGlueState.options.memorylimit > 0 ? " (-mat_aijhybridgpu_memory_limit)" : "", text, PetscDefined(USE_64BIT_INDICES) ? ", with a PETSc of 32-bit indices" : "", PetscDefined(USE_REAL_DOUBLE) ? ", with one of single precision" : "");
}

/* the stream that PETSc's vectors use, so that nothing needs to wait */
static PetscErrorCode HybGlueGetStream(void **stream)
{
  PetscFunctionBegin;
  *stream = NULL;
#if HYB_HAS_CUDA
  {
    PetscDeviceContext dctx = NULL;
    PetscDeviceType    type = PETSC_DEVICE_HOST;

    if (HybGlueState.nopetscstream) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscDeviceContextGetCurrentContext(&dctx));
    PetscCall(PetscDeviceContextGetDeviceType(dctx, &type));
    if (type == PETSC_DEVICE_CUDA) {
      void *handle;

      PetscCall(PetscDeviceContextGetStreamHandle(dctx, &handle));
      *stream = *(void **)handle;
    }
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGlueDeviceExec(const HybBackend *device, HybExec *x)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  PetscCall(device->enter());
  x->backend = device;
  x->result  = g->deviceresult;
  PetscCall(HybGlueGetStream(&x->stream));
  if (!g->streamknown || g->stream != x->stream) { /* PETSc's current device context is another one */
    PetscCall(device->use(x->stream));
    g->streamknown = PETSC_TRUE;
    g->stream      = x->stream;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybExecRefresh(HybExec *x)
{
  HybExec now = *x;

  PetscFunctionBegin;
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueDeviceExec(x->backend, &now));
  x->stream = now.stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A PETSc with CUDA knows when it makes the first matrix's vectors. Another one needs no device before the first
   operation that is large enough; that there will be none can be said before, unless the program names a library
   yet. */
PetscErrorCode HybGlueExpectDevice(PetscBool *none)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (!g->devicelooked && g->devicestatus == HYB_DEVICE_UNKNOWN) {
    g->devicelooked = PETSC_TRUE;
    PetscCall(HybOptionsRead());
    if (!g->options.cudalibrary[0]) PetscCall(HybBackendNone(&g->devicehopeless));
  }
  *none = (PetscBool)(g->devicestatus == HYB_DEVICE_NONE || (g->devicestatus == HYB_DEVICE_UNKNOWN && g->devicehopeless));
  PetscFunctionReturn(PETSC_SUCCESS);
}
