/*
  Where an operation runs, on the host or on the device: all rules.

    bound to the CPU, -mat_aijhybridgpu_backend host, or no device    the host
    between HybMatOnHost(PETSC_TRUE) and HybMatOnHost(PETSC_FALSE)    the host
    -mat_aijhybridgpu_backend cuda                                    the device
    auto: operations on a matrix that lives on the device             the device (work HYB_ANY_SIZE)
          products with a vector or dense matrix on the device        the device
          products with those of the host                             the device where the matrix lives there, or where
                                                                      its vectors are staged for it
          others                                                      the device from HybGlueDeviceMin() nonzeros on
    what several processes do together                                the device where all have it and one wants it
*/
#include "where.h"

/*
  How many nonzeros an operation on A and others needs to run on the device, if it was not asked for that. Fewer in all
  operands than this: the host is faster. Where vectors are on the device, the values that the
  host would compute have to go there for the next product with one, so the number is smaller then (docs/tried.md,
  Thresholds).
*/
static PetscCount HybGlueDeviceMin(Mat A)
{
  if (HybGlueState.options.devicemin >= 0) return HybGlueState.options.devicemin;
  /* sequential and parallel ones contain the name */
  return A && A->defaultvectype && strstr(A->defaultvectype, VECCUDA) ? 10000 : 100000;
}

PetscErrorCode HybGlueGetExec(Mat A, const HybChoices *choices, PetscCount work, HybExec *x)
{
  const HybBackend *device = NULL;

  PetscFunctionBegin;
  x->backend = &HybBackendHost;
  x->stream  = NULL;
  x->result  = HYB_MEM_HOST;
#if defined(PETSC_HAVE_DEVICE)
  if (A && A->boundtocpu) PetscFunctionReturn(PETSC_SUCCESS);
#endif
  if (choices->backend == HYB_BACKEND_HOST || HybGlueState.onhost) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetDevice((PetscBool)(choices->backend == HYB_BACKEND_CUDA), &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  if (choices->backend == HYB_BACKEND_AUTO && work < HybGlueDeviceMin(A)) {
    HybGlueState.counts.belowmin++;
    HybGlueState.counts.belowminmost = PetscMax(work, HybGlueState.counts.belowminmost);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybGlueDeviceExec(device, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybWhereMayBe(Mat A, const HybChoices *choices)
{
#if defined(PETSC_HAVE_DEVICE)
  if (A->boundtocpu) return PETSC_FALSE;
#endif
  return (PetscBool)(HybGlueState.devicestatus == HYB_DEVICE_READY && choices->backend != HYB_BACKEND_HOST);
}

/* Of a matrix and what it meets. With that on the device: there, whatever the size. With that on the host: there too if
   the matrix lives on the device, or stays is said of what is sent for it. */
static PetscErrorCode HybWhereMet(Mat A, Mat_SeqAIJHybridGPU *hyb, PetscBool met, PetscBool stays, PetscCount nnz, HybExec *x)
{
  PetscFunctionBegin;
  if (met)
    PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x));
  else if (hyb->choices.backend == HYB_BACKEND_CUDA || HybBorn(hyb) || stays)
    PetscCall(HybGlueGetExec(A, &hyb->choices, nnz, x));
  else
    *x = HybExecHost;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybWhereDense(Mat A, PetscBool ondevice, PetscCount nnz, HybExec *x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybWhereMet(A, hyb, ondevice, PETSC_FALSE, nnz, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybWhereHalo(Mat A, const HybChoices *choices, PetscBool vectors, Mat block, HybExec *x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  *x = HybExecHost;
  if (!vectors && choices->backend != HYB_BACKEND_CUDA) PetscCall(MatSeqAIJHybridGPUGetData(block, &hyb));
  if (!hyb || HybBorn(hyb)) PetscCall(HybGlueGetExec(A, choices, HYB_ANY_SIZE, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybWhereCOO(Mat A, const HybChoices *choices, PetscBool indices, PetscCount n)
{
  return (PetscBool)(choices->backend == HYB_BACKEND_CUDA || indices || n >= HybGlueDeviceMin(A));
}

void HybWhereAsk(const HybExec *can, PetscBool wanted, PetscInt64 any[2])
{
  any[0] = !HybExecOnDevice(can);
  any[1] = wanted;
}

void HybWhereAll(const PetscInt64 any[2], const HybExec *can, HybExec *x)
{
  *x = any[0] || !any[1] ? HybExecHost : *can;
}

/* Collective, whatever ierr is */
PetscErrorCode HybWhereTogether(MPI_Comm comm, PetscErrorCode ierr, const char *what, const HybExec *can, PetscBool wanted, HybExec *x)
{
  PetscInt64 any[2];

  PetscFunctionBegin;
  HybWhereAsk(can, wanted, any);
  PetscCall(HybAgreeMax(comm, ierr, what, 2, any));
  HybWhereAll(any, can, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if !defined(PETSC_HAVE_CUDA)
  #define HYB_STAGE_OPEN  1.5e8 /* nonzeros that the host has multiplied: opening the device costs as much */
  #define HYB_STAGE_AFTER 2     /* products of a matrix on the host: sending it costs as much */
  #define HYB_STAGE_RATIO 2     /* nonzeros for each entry of a vector that crosses the bus */
/*
  This PETSc has its vectors on the host. Does a product with a matrix that the host made go to the device all the same,
  its vectors staged? A nonzero on the host takes about as long as an entry of a vector over the bus (docs/tried.md,
  Thresholds). So it does where nonzeros are many enough, also for the vectors' lengths (an off-diagonal block's are
  not), once the device is in use or the host has worked as long as opening it takes, and from a matrix's third product
  on. All this is counted, not timed: a program's results are the same in each run.
*/
static PetscErrorCode MatSeqAIJHybridGPUStages(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybCSR *csr, HybSpMVMode mode, PetscBool *flg)
{
  HybGlue          *g      = &HybGlueState;
  const PetscCount  moved  = (PetscCount)csr->n + (PetscCount)csr->m * (mode == HYB_SPMV_SET ? 1 : 2);
  const HybBackend *device = NULL;

  PetscFunctionBegin;
  *flg = PETSC_FALSE;
  if (hyb->choices.backend != HYB_BACKEND_AUTO || g->devicestatus == HYB_DEVICE_NONE || hyb->staysonhost) PetscFunctionReturn(PETSC_SUCCESS);
  if (csr->nnz < HybGlueDeviceMin(A) || csr->nnz < HYB_STAGE_RATIO * moved) PetscFunctionReturn(PETSC_SUCCESS);
  if (!hyb->copy.pattern && (hyb->hostmults < HYB_STAGE_AFTER || (g->devicestatus == HYB_DEVICE_UNKNOWN && g->hostwork < HYB_STAGE_OPEN))) {
    hyb->hostmults++;
    g->hostwork += (PetscLogDouble)csr->nnz;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybGlueGetDevice(PETSC_FALSE, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  if (!hyb->copy.pattern) { /* what is done without being asked for does not fail for want of room */
    const size_t    need = (size_t)csr->nnz * (sizeof(PetscInt) + sizeof(HybScalar)) + ((size_t)moved + csr->m) * sizeof(HybScalar);
    HybMemoryReport r;

    PetscCall(device->memory(&r));
    if (r.free_bytes < 2 * need) hyb->staysonhost = PETSC_TRUE;
    PetscCall(PetscInfo(A, "Products with vectors run on the %s from here on: %" PetscInt_FMT " of this matrix were done on the host\n", hyb->staysonhost ? "host, the device being full," : "device, which the vectors are staged for,", hyb->hostmults));
    if (hyb->staysonhost) PetscFunctionReturn(PETSC_SUCCESS);
  }
  *flg = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* a product on the device, of these vectors */
PetscErrorCode HybWhereStaged(Mat A, PetscBool xdevice, PetscBool zdevice)
{
  PetscFunctionBegin;
  if (xdevice && zdevice) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.counts.stagedmults++;
#if defined(PETSC_HAVE_CUDA)
  if (!HybGlueState.toldhostvectors) {
    HybGlueState.toldhostvectors = PETSC_TRUE;
    PetscCall(PetscInfo(A, "A matrix on the device meets vectors on the host, which cross the bus at every product: use -vec_type cuda, or -dm_vec_type cuda\n"));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybWhereMult(HybView *v, PetscBool transpose, HybSpMVMode mode, Vec xx, Vec zz)
{
  PetscBool stages = PETSC_FALSE, xdevice, zdevice;

  PetscFunctionBegin;
  PetscCall(HybVecOnDevice(xx, &xdevice));
  PetscCall(HybVecOnDevice(zz, &zdevice));
#if !defined(PETSC_HAVE_CUDA)
  if (!HybBorn(v->hyb) && !transpose) PetscCall(MatSeqAIJHybridGPUStages(v->A, v->hyb, &v->host, mode, &stages));
#endif
  PetscCall(HybWhereMet(v->A, v->hyb, (PetscBool)(xdevice || zdevice), stages, v->host.nnz, &v->x));
  if (HybExecOnDevice(&v->x)) PetscCall(HybWhereStaged(v->A, xdevice, zdevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}
