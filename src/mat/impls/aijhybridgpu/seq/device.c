/*
  The matrix on the device: which device, when a copy is sent, and results that are born there.

  A device-born matrix keeps j and a in managed memory that the AIJ base class uses as its own arrays: inherited host operations are right
  without being overridden and pay for the pages that they touch. Its row offsets are on both sides (PETSc rewrites its own). Above this
  process's share of managed memory, or where the card cannot, the same in mirror mode: arrays on both sides, and whoever writes on
  the device copies to the host at once. A host-born matrix keeps its host arrays, and the device a copy keyed on states and pattern.
*/
#include "../aijhybridgpuimpl.h"
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
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, size)); /* no launcher that we know: all on one node, the cautious answer */
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

/* PETSc's own switch for devices holds for ours too: where it is off PETSc has no stream, and its vectors are the host's */
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
    char              path[PETSC_MAX_PATH_LEN] = "", memory[32] = "managed";
    HybServices       services;
    PetscReal         fraction = 0.5;
    PetscReal         limit    = 0, lockshare = 0.25;
    PetscInt          id       = -1;
    PetscMPIInt       rank, size;
    PetscBool         flg, mirror, managed;

    PetscCall(PetscMemzero(&services, sizeof(services)));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_cuda_library", path, sizeof(path), NULL));
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_aijhybridgpu_managed_limit", &fraction, &flg));
    PetscCheck(fraction >= 0 && fraction <= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_managed_limit %g is not a share within 0 to 1 of the card's free memory", (double)fraction);
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_aijhybridgpu_memory_limit", &limit, &flg));
    PetscCheck(limit >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_memory_limit %g is not a number of bytes", (double)limit);
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_aijhybridgpu_lock_limit", &lockshare, &flg));
    PetscCheck(lockshare >= 0 && lockshare <= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_lock_limit %g is not a share within 0 to 1 of the host's memory", (double)lockshare);
    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_memory", memory, sizeof(memory), NULL));
    PetscCall(PetscStrcmp(memory, "mirror", &mirror));
    PetscCall(PetscStrcmp(memory, "managed", &managed));
    PetscCheck(mirror || managed, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown memory mode \"%s\" for -mat_aijhybridgpu_memory: managed or mirror", memory);
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_device", &id, NULL));
    PetscCall(HybGlueLocalRanks(&rank, &size));
    services.size             = sizeof(services);
    services.managed_fraction = (double)fraction;
    services.locked_fraction  = (double)lockshare;
    services.memory_limit     = (size_t)limit;
    services.mirror           = mirror ? 1 : 0;
    services.device           = (int)id;
    services.processes        = size;
    services.rank             = rank;
#if defined(PETSC_HAVE_CUDA)
    { /* PETSc's own device: its vectors are there, and its stream */
      PetscDeviceContext dctx;
      PetscDeviceType    type;

      PetscErrorCode     ierr;

      /* a PETSc with CUDA on a machine without a card or a driver: that is no error, the host does the work */
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = PetscDeviceInitialize(PETSC_DEVICE_CUDA);
      PetscCall(PetscPopErrorHandler());
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
          /* in turn, by PETSc's ranks, unless the user names the one for all */
          PetscCall(PetscOptionsGetInt(NULL, NULL, "-device_select_cuda", &id, NULL));
        }
      } else g->nopetscstream = PETSC_TRUE; /* its contexts do not come up either: asked for one, they leave a broken one behind */
    }
#endif
    services.dealt = id < 0;
    /* without PETSc's choice of a card: this node's processes take them in turn */
    if (services.device < 0 && (!PetscDefined(HAVE_CUDA) || g->nopetscstream)) services.device = -2;
    PetscCall(HybBackendLoad(path[0] ? path : NULL, &services, &g->device, g->whynodevice, sizeof(g->whynodevice)));
    g->devicestatus = g->device ? HYB_DEVICE_READY : HYB_DEVICE_NONE;
    if (g->device) {
      HybMemoryReport r;

      PetscCall(g->device->usage(&r, PETSC_FALSE));
      g->deviceresult = r.managed_share > 0 ? HYB_MEM_MANAGED : HYB_MEM_DEVICE;
      PetscCall(PetscInfo(NULL, "Device library %s in use, card %d of %d, at %s, %d processes on this node, managed memory up to %zu bytes\n", g->device->name, r.card, r.cards, r.bus, (int)size, r.managed_share));
    } else PetscCall(PetscInfo(NULL, "No device is used: %s\n", g->whynodevice));
  }
  *device = g->device;
  PetscCheck(*device || !required, PETSC_COMM_SELF, PETSC_ERR_GPU, "-mat_aijhybridgpu_backend cuda was asked for, but %s. Use -mat_aijhybridgpu_backend host, or auto", g->whynodevice);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the stream that PETSc's vectors use, so that nothing needs to wait */
static PetscErrorCode HybGlueGetStream(void **stream)
{
  PetscFunctionBegin;
  *stream = NULL;
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
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

/*
  Fewer nonzeros in all operands than this: the host is faster. Where vectors are on the device, the values that the host would compute have to go there for the next product with one. GAMG's
  setup again with the smaller number and the larger one on an H200, ms: 7-point 16^3 2.2 and 3.7, 24^3 3.7 and 4.8, 48^3 4.8 and 6.9 (aijcusparse 3.1, 5.5, 7.9).
*/
PetscErrorCode HybGlueDeviceMin(Mat A, PetscCount *least)
{
  PetscFunctionBegin;
  *least = HybGlueState.devicemin;
  if (!HybGlueState.deviceminset) *least = A && A->defaultvectype && strstr(A->defaultvectype, VECCUDA) ? 10000 : 100000; /* sequential and parallel ones contain the name */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGlueGetExec(Mat A, const HybChoices *choices, PetscCount work, HybExec *x)
{
  const HybBackend *device = NULL;
  PetscCount        least;

  PetscFunctionBegin;
  x->backend = &HybBackendHost;
  x->stream  = NULL;
  x->result  = HYB_MEM_HOST;
#if defined(PETSC_HAVE_DEVICE)
  if (A && A->boundtocpu) PetscFunctionReturn(PETSC_SUCCESS);
#endif
  if (choices->backend == HYB_BACKEND_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetDevice((PetscBool)(choices->backend == HYB_BACKEND_CUDA), &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueDeviceMin(A, &least));
  if (choices->backend == HYB_BACKEND_AUTO && work < least) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueDeviceExec(device, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Goes on after an error, and reports the first one: what a failing call of the device leaves is that call's memory alone */
PetscErrorCode MatSeqAIJHybridGPUDestroyDevice(Mat_SeqAIJHybridGPU *hyb)
{
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  ierr = HybMultPlanDestroy(&hyb->device);
  if (hyb->transpose.ready) {
    later = HybMultPlanDestroy(&hyb->transpose.mult);
    if (!ierr) ierr = later;
    later = HybArenaReset(&hyb->transpose.arena);
    if (!ierr) ierr = later;
    hyb->transpose.ready = PETSC_FALSE;
  }
  later = HybDerivedDestroy(&hyb->derived);
  if (!ierr) ierr = later;
  if (hyb->copy.pattern && !hyb->copy.born) {
    later = HybArenaReset(&hyb->copy.arena);
    if (!ierr) ierr = later;
  }
  PetscCall(PetscMemzero(&hyb->copy, sizeof(hyb->copy)));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUSendLent(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybLent *l, PetscBool values, HybCSR *csr)
{
  HybDeviceCopy   *d = &hyb->copy;
  HybPatternKey    key;
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(HybPatternKeyGet(A, &l->csr, &key));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCheck(!values || l->csr.a || !l->csr.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY)", (PetscInt64)l->csr.nnz);
  if (d->pattern && !HybPatternKeyEqual(&key, &d->key)) {
    if (d->shared && key.i == d->key.i && key.j == d->key.j && key.nnz == d->key.nnz && key.m == d->key.m) {
      /* the same arrays, renumbered in place or with a new state: they are the device's too */
      d->key   = key;
      d->csr.n = key.n;
    } else if (d->born) { /* the base class has moved to arrays of its own */
      PetscCall(PetscMemzero(d, sizeof(*d)));
    } else {
      PetscCall(HybArenaReset(&d->arena));
      PetscCall(PetscMemzero(d, sizeof(*d)));
    }
  }
  if (!d->pattern) {
    PetscCall(HybArenaInit(&d->arena, x));
    d->csr   = l->csr;
    d->csr.i = d->csr.j = NULL;
    d->csr.a            = NULL;
    d->pattern          = PETSC_TRUE; /* from here on there is something to free */
    PetscCall(PetscMemzero(&d->key, sizeof(d->key)));
    PetscCall(PetscLogEventBegin(HYB_CopyTo, A, 0, 0, 0));
    PetscCall(HybArenaAlloc(&d->arena, HYB_MEM_DEVICE, (PetscCount)l->csr.m + 1, sizeof(PetscInt), &d->csr.i));
    PetscCall(HybArenaAlloc(&d->arena, HYB_MEM_DEVICE, l->csr.nnz, sizeof(PetscInt), &d->csr.j));
    if (l->csr.i) PetscCall(x->backend->copy(x, d->csr.i, l->csr.i, sizeof(PetscInt) * ((size_t)l->csr.m + 1), HYB_COPY_HOST_TO_DEVICE));
    else PetscCall(x->backend->zero(x, d->csr.i, sizeof(PetscInt) * ((size_t)l->csr.m + 1)));
    PetscCall(x->backend->copy(x, d->csr.j, l->csr.j, sizeof(PetscInt) * (size_t)l->csr.nnz, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(HybLogToDevice(sizeof(PetscInt) * ((PetscLogDouble)l->csr.nnz + l->csr.m + 1)));
    PetscCall(PetscLogEventEnd(HYB_CopyTo, A, 0, 0, 0));
    d->key          = key;
    d->nonemptyrows = HybCountNonemptyRows(&l->csr, &d->longest);
  }
  if (values && (!HybMarkCurrent(&d->mark, state) || !d->values)) {
    if (d->shared) { /* the host may have touched the pages since: fetch them back in one go instead of by faults */
      PetscCall(x->backend->prefetch(x, d->csr.a, sizeof(HybScalar) * (size_t)d->csr.nnz, PETSC_TRUE));
    } else {
      const HybScalar *from = l->csr.a;

      if (d->csr.a && !d->born) PetscCall(MatSeqAIJHybridGPUSendFrom(A, hyb, x, &l->csr, &d->csr, &from));
      else hyb->inserted = PETSC_FALSE;
      if (!d->csr.a) PetscCall(HybArenaAlloc(&d->arena, HYB_MEM_DEVICE, d->csr.nnz, sizeof(HybScalar), &d->csr.a));
      PetscCall(PetscLogEventBegin(HYB_CopyTo, A, 0, 0, 0));
      PetscCall(x->backend->copy(x, d->csr.a, from, sizeof(HybScalar) * (size_t)d->csr.nnz, HYB_COPY_HOST_TO_DEVICE));
      PetscCall(HybLogToDevice(sizeof(HybScalar) * (PetscLogDouble)d->csr.nnz));
      PetscCall(PetscLogEventEnd(HYB_CopyTo, A, 0, 0, 0));
    }
    d->values     = PETSC_TRUE;
    d->mark.state = state;
  }
  *csr = d->csr;
  if (!values) csr->a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUGetDeviceCSR(Mat A, const HybExec *x, PetscBool values, HybCSR *csr)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybLentGet(A, PETSC_TRUE, &l));
  PetscCall(MatSeqAIJHybridGPUSendLent(A, hyb, x, &l, values, csr));
  PetscCall(HybLentRestore(A, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUMove(Mat A, PetscBool values, PetscBool todevice)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybExec             *x;

  PetscFunctionBegin;
  if (!hyb || !hyb->copy.pattern || !hyb->copy.shared) PetscFunctionReturn(PETSC_SUCCESS);
  x = &hyb->arrays.exec;
  PetscCall(HybExecRefresh(x));
  PetscCall(x->backend->prefetch(x, hyb->copy.csr.j, sizeof(PetscInt) * (size_t)hyb->copy.csr.nnz, todevice));
  if (values) PetscCall(x->backend->prefetch(x, hyb->copy.csr.a, sizeof(HybScalar) * (size_t)hyb->copy.csr.nnz, todevice));
  if (!todevice) PetscCall(x->backend->sync(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUHostWrites(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !hyb->arrays.blocks || hyb->locked || !HybExecOnDevice(&hyb->arrays.exec)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybExecRefresh(&hyb->arrays.exec));
  PetscCall(hyb->arrays.exec.backend->sync(&hyb->arrays.exec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's values are others than before, whatever the object's state says */
PetscErrorCode MatSeqAIJHybridGPUValuesMoved(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A) || !hyb) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->copy.values     = PETSC_FALSE;
  hyb->transpose.state = -1;
  hyb->moves++;
  hyb->writes          = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUWriteOnDevice(Mat A, HybExec *x, PetscBool *flg)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;
  HybPatternKey        key;

  PetscFunctionBegin;
  *flg = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (!hyb->copy.born || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_TRUE, &l));
  PetscCall(HybPatternKeyGet(A, &l.csr, &key));
  PetscCall(HybLentRestore(A, &l));
  if (!HybPatternKeyEqual(&key, &hyb->copy.key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x));
  *flg = HybExecOnDevice(x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUDeviceWritten(Mat A, const HybExec *x)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(A, x, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUDeviceWrittenStep(Mat A, const HybExec *x, PetscBool interface)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscScalar         *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  /* tells the base class that the values moved (inverted diagonals, state) */
  PetscCall(MatSeqAIJGetArray(A, &a));
  if (!hyb->copy.shared) {
    PetscCall(PetscLogEventBegin(HYB_CopyFrom, A, 0, 0, 0));
    PetscCall(x->backend->copy(x, a, hyb->copy.csr.a, sizeof(HybScalar) * (size_t)hyb->copy.csr.nnz, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(HybLogToHost(sizeof(HybScalar) * (PetscLogDouble)hyb->copy.csr.nnz));
    PetscCall(PetscLogEventEnd(HYB_CopyFrom, A, 0, 0, 0));
  }
  PetscCall(x->backend->sync(x)); /* the host may look at any time */
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  hyb->copy.values = PETSC_TRUE;
  PetscCall(HybMarkSet(A, interface, &hyb->copy.mark));
  HybGlueState.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJHybridGPUAdoptDevice_Private(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr, Mat *former)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybCSR               host = *csr;
  HybDeviceCopy        copy;
  HybMem               jmem, amem;
  PetscOptions         noinode = NULL;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  PetscCall(HybArenaWhere(arrays, csr->j, &jmem));
  PetscCall(HybArenaWhere(arrays, csr->a, &amem));
  PetscCall(PetscMemzero(&copy, sizeof(copy)));
  copy.pattern = copy.values = copy.born = PETSC_TRUE;
  copy.shared                            = (PetscBool)(jmem == HYB_MEM_MANAGED && amem == HYB_MEM_MANAGED);
  copy.csr                               = *csr;
  /* PETSc rewrites row offsets on the host: each side has its own */
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_HOST, (PetscCount)csr->m + 1, sizeof(PetscInt), &host.i));
  PetscCall(x->backend->copy(x, host.i, csr->i, sizeof(PetscInt) * ((size_t)csr->m + 1), HYB_COPY_DEVICE_TO_HOST));
  if (!copy.shared) {
    PetscCall(HybArenaAlloc(arrays, HYB_MEM_HOST, csr->nnz, sizeof(PetscInt), &host.j));
    PetscCall(HybArenaAlloc(arrays, HYB_MEM_HOST, csr->nnz, sizeof(HybScalar), &host.a));
    PetscCall(x->backend->copy(x, host.j, csr->j, sizeof(PetscInt) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(x->backend->copy(x, host.a, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_HOST));
  }
  PetscCall(HybLogToHost(sizeof(PetscInt) * ((PetscLogDouble)csr->m + 1) + (copy.shared ? 0.0 : (PetscLogDouble)(sizeof(PetscInt) + sizeof(HybScalar)) * csr->nnz)));
  PetscCall(x->backend->sync(x));
  copy.nonemptyrows = HybCountNonemptyRows(&host, &copy.longest); /* while the offsets are in the cache, and not in the first product with a vector */
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  PetscCall(HybNoInodeBegin(&noinode));
  ierr = MatSeqAIJHybridGPUAdopt(C, arrays, &host, former);
  HybNoInodeEnd(&noinode);
  PetscCall(ierr);
  {
    HybLent l;
    PetscCall(HybLentGet(C, PETSC_TRUE, &l));
    PetscCall(HybPatternKeyGet(C, &l.csr, &copy.key));
    PetscCall(HybLentRestore(C, &l));
  }
  /* MatDuplicate() and MatTranspose() count the state once more: pages that are shared need not be asked back for that, which took 0.7 ms of a first product. Should it have been the host that wrote,
     they come back by themselves */
  PetscCall(HybMarkSet(C, copy.shared, &copy.mark));
  hyb->copy = copy;
  PetscCall(MatSeqAIJHybridGPUSetBornOps(C, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUAdoptDevice(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr)
{
  PetscFunctionBegin;
  HybWithLargePages(csr->m, MatSeqAIJHybridGPUAdoptDevice_Private(C, x, arrays, csr, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUAdoptDeviceKeep(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr)
{
  Mat                  former;
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybWithLargePages(csr->m, MatSeqAIJHybridGPUAdoptDevice_Private(C, x, arrays, csr, &former));
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  hyb->former = former;
  PetscFunctionReturn(PETSC_SUCCESS);
}
