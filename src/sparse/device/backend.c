/*
  backend.c: the host as a backend. All kinds of memory are the host's, from PetscMalloc(), so that PETSc's own
  accounting (-malloc_dump,
  -malloc_view) sees every byte. There is no stream: everything is done on return.

  The tables of the rooms above are reached by their names alone: this room includes none of their headers.
*/
#include <aijhybridgpu/private/hyb.h>

extern const struct _HybPlanOps             HybPlanHost;
extern const struct _HybSpMVMethod *const   HybSpMVMethodsHost[];
extern const struct _HybSpGEMMMethod *const HybSpGEMMMethodsHost[];
extern const struct _HybPtAPMethod *const   HybPtAPMethodsHost[];
extern const struct _HybAggOps              HybAggHost;
extern const struct _HybKrylovOps           HybKrylovHost;
extern const struct _HybCycleOps            HybCycleHost;
extern const struct _HybCommOps             HybCommHost;
extern const struct _HybParAggOps           HybParAggHost;
extern const struct _HybLocalOps            HybLocalHost;

static HybMemoryReport HybHostMemory;

static PetscErrorCode HybAlloc_Host(const HybExec *exec, HybMem mem, size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  *ptr = NULL;
  PetscCall(PetscMalloc(bytes, ptr));
  /* of reserved addresses it is not known what is used */
  if (mem != HYB_MEM_GROWING) HybHostMemory.device_bytes += bytes;
  HybHostMemory.device_peak = PetscMax(HybHostMemory.device_peak, HybHostMemory.device_bytes);
  HybHostMemory.since       = PetscMax(HybHostMemory.since, HybHostMemory.device_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFree_Host(const HybExec *exec, HybMem mem, size_t bytes, void *ptr)
{
  PetscFunctionBegin;
  if (ptr && mem != HYB_MEM_GROWING) HybHostMemory.device_bytes -= bytes;
  PetscCall(PetscFree(ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCopy_Host(const HybExec *exec, void *dst, const void *src, size_t bytes, HybCopyKind kind)
{
  PetscFunctionBegin;
  if (bytes) memmove(dst, src, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybZero_Host(const HybExec *exec, void *dst, size_t bytes)
{
  PetscFunctionBegin;
  if (bytes) memset(dst, 0, bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSync_Host(const HybExec *exec)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPrefetch_Host(const HybExec *exec, const void *ptr, size_t bytes, PetscBool todevice)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybTouch_Host(const HybExec *exec, void *ptr, size_t bytes)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybLock_Host(const HybExec *exec, void *ptr, size_t bytes, PetscBool on)
{
  PetscFunctionBegin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the system gives pages when they are touched */
static PetscErrorCode HybGrow_Host(const HybExec *exec, void *ptr, size_t bytes, size_t *mapped)
{
  PetscFunctionBegin;
  if (*mapped < bytes) *mapped = bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMemory_Host(HybMemoryReport *report)
{
  PetscFunctionBegin;
  *report = HybHostMemory;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybUsage_Host(HybMemoryReport *report, PetscBool restart)
{
  PetscFunctionBegin;
  *report = HybHostMemory;
  if (restart) HybHostMemory.since = HybHostMemory.device_bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybEnter_Host(void)
{
  return PETSC_SUCCESS;
}

const HybBackend HybBackendHost = {
  .size      = sizeof(HybBackend),
  .name      = "host",
  .workspace = HYB_MEM_HOST,
  .device    = PETSC_FALSE,
  .alloc     = HybAlloc_Host,
  .free      = HybFree_Host,
  .copy      = HybCopy_Host,
  .zero      = HybZero_Host,
  .sync      = HybSync_Host,
  .touch     = HybTouch_Host,
  .lock      = HybLock_Host,
  .prefetch  = HybPrefetch_Host,
  .memory    = HybMemory_Host,
  .usage     = HybUsage_Host,
  .grow      = HybGrow_Host,
  .enter     = HybEnter_Host,
  .csr       = &HybCSROpsHost,
  .plan      = &HybPlanHost,
  .spmv      = HybSpMVMethodsHost,
  .spgemm    = HybSpGEMMMethodsHost,
  .ptap      = HybPtAPMethodsHost,
  .agg       = &HybAggHost,
  .paragg    = &HybParAggHost,
  .krylov    = &HybKrylovHost,
  .cycle     = &HybCycleHost,
  .comm      = &HybCommHost,
  .local     = &HybLocalHost,
};
