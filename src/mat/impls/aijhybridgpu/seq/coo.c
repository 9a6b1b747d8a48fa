/*
  Assembly from coordinates.

  Where a sequential matrix is large enough for the device, or the coordinates are there, the pattern is worked out on
  the device and the matrix is born there: MatSetValuesCOO() is one kernel over the values, which may be on either side,
  and no array of the matrix crosses the bus. The lists that say which values an entry sums go with the matrix and its
  duplicates; the host gets a copy of them if it must take over (MatBindToCPU()).

  Otherwise the parent's functions do it. They read indices and values on the host; a program may hand in device arrays
  (a DM with -dm_vec_type cuda does), which are brought over first.
*/
#include "coo.h"
#include "../storage/where.h"
#include "aijhybridgpu/private/hybcomm.h"

#if defined(PETSC_HAVE_DEVICE)
  #include <petscdevice.h>
#endif

static PetscErrorCode HybCOODestroy(void *ctx)
{
  HybCOO *coo = (HybCOO *)ctx;

  PetscFunctionBegin;
  PetscCall(HybArenaReset(&coo->arena));
  PetscCall(HybArenaReset(&coo->hostarena));
  PetscCall(PetscFree(coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A duplicate runs where A runs, and takes values from the same coordinates */
PetscErrorCode MatSeqAIJHybridGPUShare(Mat A, Mat B)
{
  Mat_SeqAIJHybridGPU *a = NULL, *b = NULL;
  PetscObject          container = NULL;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &a));
  MatSeqAIJHybridGPULookAtOptions(A);
  PetscCall(MatSeqAIJHybridGPUGetData(B, &b));
  b->choices  = a->choices;
  b->coocount = a->coocount;
  PetscCall(PetscArraycpy(b->asked, a->asked, HYB_ASKED_GROUPS));
  B->assembled    = A->assembled;
  b->coopattern   = a->coopattern;
  b->optionsknown = a->optionsknown;
  PetscCall(PetscObjectQuery((PetscObject)A, "HybCOO", &container));
  if (container) PetscCall(PetscObjectCompose((PetscObject)B, "HybCOO", container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A got another pattern than its coordinates gave it */
PetscErrorCode MatSeqAIJHybridGPUForgetCOO(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->coocount = -1;
  PetscCall(PetscObjectCompose((PetscObject)A, "HybCOO", NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C took over a product's result: of coordinates before, only those that a container holds are known still; the
   parent's lists went with its data, or are another pattern's */
PetscErrorCode HybCOOParentsGone(PetscObject C, const char *name, PetscCount *coocount)
{
  PetscObject container = NULL;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery(C, name, &container));
  if (!container) *coocount = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCOOIsOnDevice(const void *array, PetscBool *flg)
{
  PetscFunctionBegin;
  *flg = PETSC_FALSE;
#if defined(PETSC_HAVE_DEVICE)
  if (array) {
    PetscMemType mtype;

    PetscCall(PetscGetMemType(array, &mtype));
    *flg = (PetscBool)!PetscMemTypeHost(mtype);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *host = array where it is on the host, else a copy of its count entries, which is *copy too */
PetscErrorCode HybCOOToHost(const void *array, PetscCount count, size_t size, void **host, void **copy)
{
  PetscBool         ondevice;
  const HybBackend *device = NULL;
  HybExec           x;

  PetscFunctionBegin;
  *host = (void *)array;
  *copy = NULL;
  PetscCall(HybCOOIsOnDevice(array, &ondevice));
  if (!ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetDevice(PETSC_TRUE, &device));
  PetscCall(HybGlueDeviceExec(device, &x));
  PetscCall(PetscMalloc((size_t)count * size, copy));
  PetscCall(x.backend->copy(&x, *copy, array, (size_t)count * size, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybLogToHost((PetscLogDouble)count * size));
  *host = *copy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *device = array where it is on the device, else a copy of its count entries in workspace, zeros for no array */
PetscErrorCode HybCOOToDevice(const HybExec *x, HybArena *work, const void *array, PetscCount count, size_t size, void **device)
{
  PetscBool ondevice;

  PetscFunctionBegin;
  *device = (void *)array;
  PetscCall(HybCOOIsOnDevice(array, &ondevice));
  if (ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  if (!array) {
    PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, count, size, device));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, count, size, device));
  PetscCall(x->backend->copy(x, *device, array, (size_t)count * size, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybLogToDevice((PetscLogDouble)count * size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C of the coordinates, which are on the device, values zero; its arrays go to arrays, the lists to coo */
PetscErrorCode HybCOOSymbolicOnDevice(const HybExec *x, HybArena *work, PetscCount ncoo, const PetscInt *di, const PetscInt *dj, HybArena *arrays, HybCOO *coo, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(x->backend->csr->coosymbolic(x, arrays, work, ncoo, di, dj, C, &coo->mapptr, &coo->map));
  PetscCall(HybArenaMove(arrays, &coo->arena, coo->mapptr));
  PetscCall(HybArenaMove(arrays, &coo->arena, coo->map));
  PetscCall(HybArenaAlloc(arrays, x->result, C->nnz, sizeof(HybScalar), &C->a));
  PetscCall(x->backend->zero(x, C->a, sizeof(HybScalar) * (size_t)C->nnz));
  coo->ncoo = ncoo;
  coo->nnz  = C->nnz;
  coo->m    = C->m;
  coo->n    = C->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_Device(Mat A, const HybExec *x, PetscCount ncoo, const PetscInt *i, const PetscInt *j)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybCOO              *coo;
  HybArena             arrays, work;
  HybCSR               csr;
  void                *di = NULL, *dj = NULL;
  PetscInt             assemblies;
  PetscObjectState     state;
  PetscBool            ended, unused;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(HybEventBegin(HYB_OP_COOPATTERN, A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  MatSeqAIJHybridGPULookAtOptions(A);
  unused = HybUnusedIsError(A);
  PetscCall(HybInodesEnded(A, &ended));
  PetscCall(PetscNew(&coo));
  coo->arena     = HybArenaOn(x);
  coo->hostarena = HybArenaOn(x);
  arrays         = HybArenaOn(x);
  csr.m          = A->rmap->n;
  csr.n          = A->cmap->n;
  work           = HybArenaOn(x);
  ierr           = HybCOOToDevice(x, &work, i, ncoo, sizeof(PetscInt), &di);
  if (!ierr) ierr = HybCOOToDevice(x, &work, j, ncoo, sizeof(PetscInt), &dj);
  if (!ierr) ierr = HybCOOSymbolicOnDevice(x, &work, ncoo, (const PetscInt *)di, (const PetscInt *)dj, &arrays, coo, &csr);
  ierr       = HybErrorFirst(ierr, HybArenaReset(&work));
  assemblies = A->num_ass;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(A, x, &arrays, &csr);
  /* as the parent's: the first values' assembly makes it a matrix, and leaves what was said of symmetries */
  A->num_ass   = assemblies;
  A->assembled = PETSC_FALSE;
  if (ierr) {
    (void)HybArenaReset(&arrays);
    (void)HybCOODestroy(coo);
    PetscCall(ierr);
  }
  PetscCall(HybContainerCompose((PetscObject)A, "HybCOO", coo, HybCOODestroy));
  for (int k = 0; k < HYB_ASKED_GROUPS; k++) /* the parent's data stay, and what was asked of them */
    if (k != HYB_ASKED_NEW_NONZEROS && hyb->asked[k].said) PetscCall((*HybGlueState.seq.setoption)(A, hyb->asked[k].op, hyb->asked[k].flg));
  if (unused) PetscCall((*HybGlueState.seq.setoption)(A, MAT_UNUSED_NONZERO_LOCATION_ERR, PETSC_TRUE));
  if (ended) hyb->inodesleft = PETSC_FALSE;
  hyb->coopattern = PETSC_TRUE;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE)); /* as the parent's */
  /* nor does the parent's count the state */
  PetscCall(PetscObjectStateSet((PetscObject)A, state));
  PetscCall(HybMarkSet(A, PETSC_FALSE, &hyb->copy.mark));
  /* MatSetPreallocationCOO() counts the new pattern once more after this */
  hyb->copy.key.nonzerostate = A->nonzerostate + 1;
  hyb->checkkey              = hyb->copy.key;
  PetscCall(HybEventEnd(HYB_OP_COOPATTERN, A));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's function gets arrays of the host's; it is collective, so an error of one process here is one of all */
PetscErrorCode HybCOOPreallocateOnHost(Mat A, void (*parent)(void), PetscCount n, const PetscInt i[], const PetscInt j[])
{
  void          *hi, *hj, *ci = NULL, *cj = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybCOOToHost(i, n, sizeof(PetscInt), &hi, &ci);
  if (!ierr) ierr = HybCOOToHost(j, n, sizeof(PetscInt), &hj, &cj);
  ierr = HybAgree(PetscObjectComm((PetscObject)A), ierr, "Bringing coordinates to the host");
  if (!ierr) ierr = (*(PetscErrorCode(*)(Mat, PetscCount, PetscInt[], PetscInt[]))parent)(A, n, (PetscInt *)hi, (PetscInt *)hj);
  PetscCall(PetscFree(ci));
  PetscCall(PetscFree(cj));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n: of MatSetPreallocationCOO(), -1 where the pattern is another one since */
PetscErrorCode HybCOOSetValuesOnHost(Mat A, void (*parent)(void), PetscCount n, const PetscScalar v[], InsertMode mode)
{
  void *hv, *cv;

  PetscFunctionBegin;
  PetscCheck(n >= 0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The matrix got another pattern since MatSetPreallocationCOO(), which must be called again");
  PetscCall(HybCOOToHost(v, n, sizeof(PetscScalar), &hv, &cv));
  HybCallBoth((*(PetscErrorCode(*)(Mat, const PetscScalar[], InsertMode))parent)(A, (const PetscScalar *)hv, mode), PetscFree(cv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetPreallocationCOO_SeqAIJHybridGPU(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  PetscBool            idevice, jdevice;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->coocount = n;
  if (!A->structure_only) {
    PetscCall(HybCOOIsOnDevice(i, &idevice));
    PetscCall(HybCOOIsOnDevice(j, &jdevice));
    PetscCall(HybGlueGetExec(A, &hyb->choices, idevice && jdevice ? HYB_ANY_SIZE : n, &x));
    if (HybExecOnDevice(&x) && !HybStorageServed()) {
      PetscCall(MatSetPreallocationCOO_Device(A, &x, n, i, j));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(PetscObjectCompose((PetscObject)A, "HybCOO", NULL));
    PetscCall(HybInodesFind(A));
    PetscCall(MatSeqAIJHybridGPUDemote(A)); /* the parent frees the arrays */
    PetscCall(PetscFree(hyb->preallocated));
  }
  PetscCall(HybCOOPreallocateOnHost(A, HybGlueState.coopreallocation[0], n, i, j));
  PetscCall(HybStorageSettle(A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->coopattern = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCOOCheck(const HybCOO *coo, const HybCSR *csr)
{
  PetscFunctionBegin;
  PetscCheck(csr->m == coo->m && csr->n == coo->n && csr->nnz == coo->nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix (%" PetscInt_FMT " x %" PetscInt_FMT ") has %" PetscInt64_FMT " nonzeros, its coordinates gave %" PetscInt64_FMT ": its pattern has changed since MatSetPreallocationCOO(), which must be called again", csr->m, csr->n, (PetscInt64)csr->nnz, (PetscInt64)coo->nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The lists on the host as well */
static PetscErrorCode HybCOOGetHostLists(HybCOO *coo)
{
  HybExec    *x = &coo->arena.exec;
  PetscCount *ptr, *map, used;

  PetscFunctionBegin;
  if (coo->hostmap) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybExecRefresh(x));
  PetscCall(HybArenaAlloc(&coo->hostarena, HYB_MEM_HOST, coo->nnz + 1, sizeof(PetscCount), &ptr));
  PetscCall(x->backend->copy(x, ptr, coo->mapptr, sizeof(PetscCount) * ((size_t)coo->nnz + 1), HYB_COPY_DEVICE_TO_HOST));
  used = ptr[coo->nnz];
  PetscCall(HybArenaAlloc(&coo->hostarena, HYB_MEM_HOST, used, sizeof(PetscCount), &map));
  PetscCall(x->backend->copy(x, map, coo->map, sizeof(PetscCount) * (size_t)used, HYB_COPY_DEVICE_TO_HOST));
  coo->hostmapptr = ptr;
  coo->hostmap    = map;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host takes over a matrix whose coordinates the device has sorted */
PetscErrorCode MatSeqAIJHybridGPUSetValuesCOOHost(Mat A, HybCOO *coo, const PetscScalar *v, PetscBool add)
{
  HybView      view;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &view));
  PetscCall(HybCOOCheck(coo, &view.host));
  PetscCall(HybCOOGetHostLists(coo));
  PetscCall(MatSeqAIJGetArray(A, &a));
  if (v)
    PetscCall(HybCSROpsHost.coonumeric(&HybExecHost, coo->nnz, coo->hostmapptr, coo->hostmap, v, add, a));
  else if (!add)
    PetscCall(PetscArrayzero(a, coo->nnz));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v: on the device */
PetscErrorCode MatSeqAIJHybridGPUSetValuesCOODevice(Mat A, HybCOO *coo, const HybExec *x, const PetscScalar *v, PetscBool add)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybCSR               csr;

  PetscFunctionBegin;
  PetscCall(HybEventBegin(HYB_OP_COOVALUES, A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  PetscCall(HybCOOCheck(coo, &csr));
  PetscCall(x->backend->csr->coonumeric(x, coo->nnz, coo->mapptr, coo->map, (const HybScalar *)v, add, csr.a));
  PetscCall(MatSeqAIJHybridGPUDeviceWritten(A, x));
  hyb->assembling = hyb->copy.mark.state;
  PetscCall(PetscLogGpuFlops((PetscLogDouble)coo->ncoo));
  PetscCall(HybEventEnd(HYB_OP_COOVALUES, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetValuesCOO_SeqAIJHybridGPU(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybCOO              *coo = NULL;
  HybExec              x;
  PetscBool            device;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybContainerGet((PetscObject)A, "HybCOO", &coo));
  if (!coo) {
    PetscCall(HybCOOSetValuesOnHost(A, HybGlueState.coovalues[0], hyb->coocount, v, mode));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(A, &x, &device));
  if (device) {
    void    *dv   = NULL;
    HybArena work = HybArenaOn(&x);

    ierr = HybCOOToDevice(&x, &work, v, coo->ncoo, sizeof(PetscScalar), &dv);
    if (!ierr) ierr = MatSeqAIJHybridGPUSetValuesCOODevice(A, coo, &x, (PetscScalar *)dv, (PetscBool)(mode == ADD_VALUES));
    PetscCall(HybArenaReset(&work));
  } else {
    void *hv, *cv;

    PetscCall(HybCOOToHost(v, coo->ncoo, sizeof(PetscScalar), &hv, &cv));
    ierr = MatSeqAIJHybridGPUSetValuesCOOHost(A, coo, (const PetscScalar *)hv, (PetscBool)(mode == ADD_VALUES));
    PetscCall(PetscFree(cv));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
