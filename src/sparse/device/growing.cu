/*
  growing.cu: device memory that grows in place.

  A workspace whose size is known only when the work is half done is reserved for the most that it can be (addresses
  alone) and given memory as the need shows: creating and mapping it takes little, and nothing is copied or started
  again for lack of room. Pieces are mapped one behind the other; what is queued may use the older ones meanwhile.

  The functions are the driver's. They are asked of the runtime by name, so the library needs no libcuda of its own and
  still loads where there is none. None of them is stream-ordered: giving the memory back waits for the stream first.

  Every byte is counted like a pool's, and the memory limit of HybServices holds here too. When the card has no more,
  the pools give back what they keep unused, once.
*/
#include "hybdevicestate.h"
#include <cuda.h>
#include <new>

#define HYB_VIRTUAL_FUNCTIONS(F)   \
  F(cuMemGetAllocationGranularity) \
  F(cuMemAddressReserve)           \
  F(cuMemAddressFree)              \
  F(cuMemCreate)                   \
  F(cuMemRelease)                  \
  F(cuMemMap)                      \
  F(cuMemSetAccess)                \
  F(cuMemUnmap)                    \
  F(cuGetErrorString)

#define HYB_FUNCTION(name) static decltype(&name) name##_;
HYB_VIRTUAL_FUNCTIONS(HYB_FUNCTION)
#undef HYB_FUNCTION

struct HybPiece {
  CUmemGenericAllocationHandle handle;
  size_t                       bytes;
  HybPiece                    *next;
};
struct HybGrowing {
  CUdeviceptr ptr;
  size_t      reserved, mapped;
  HybPiece   *pieces; /* the last one first */
  HybGrowing *next;
};
static HybGrowing *growing_;
static size_t      granule_;

static CUmemAllocationProp HybProperties(void)
{
  CUmemAllocationProp p;
  memset(&p, 0, sizeof(p));
  p.type          = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id   = hybdevice_.device;
  return p;
}

static PetscErrorCode HybVirtualError(CUresult e, const char *what, const char *file, int line)
{
  const char *text = nullptr;

  PetscFunctionBegin;
  if (e == CUDA_SUCCESS) PetscFunctionReturn(PETSC_SUCCESS);
  (void)cuGetErrorString_(e, &text);
  return PetscError(PETSC_COMM_SELF, line, PETSC_FUNCTION_NAME, file, e == CUDA_ERROR_OUT_OF_MEMORY ? PETSC_ERR_MEM : PETSC_ERR_LIB, PETSC_ERROR_INITIAL, "CUDA error %d (%s) in %s", (int)e, text ? text : "unknown", what);
}
#define HybFault(expr)      (HybDeviceFault(#expr) ? CUDA_ERROR_INVALID_VALUE : (expr))
#define HybCallDriver(expr) PetscCall(HybVirtualError(HybFault(expr), #expr, __FILE__, __LINE__))

static PetscErrorCode HybVirtualSetUp(void)
{
  PetscFunctionBegin;
  if (granule_) PetscFunctionReturn(PETSC_SUCCESS);
#if CUDART_VERSION >= 12050
  #define HYB_FUNCTION(name)                                                                                                \
    {                                                                                                                       \
      void                           *f = nullptr;                                                                          \
      cudaDriverEntryPointQueryResult r;                                                                                    \
      HybCallCUDA(cudaGetDriverEntryPointByVersion(#name, &f, 12000, cudaEnableDefault, &r));                               \
      PetscCheck(f &&r == cudaDriverEntryPointSuccess, PETSC_COMM_SELF, PETSC_ERR_LIB, "The CUDA driver has no %s", #name); \
      name##_ = (decltype(name##_))f;                                                                                       \
    }
#else
  #define HYB_FUNCTION(name)                                                             \
    {                                                                                    \
      void *f = nullptr;                                                                 \
      HybCallCUDA(cudaGetDriverEntryPoint(#name, &f, cudaEnableDefault));                \
      PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_LIB, "The CUDA driver has no %s", #name); \
      name##_ = (decltype(name##_))f;                                                    \
    }
#endif
  HYB_VIRTUAL_FUNCTIONS(HYB_FUNCTION)
#undef HYB_FUNCTION
  const CUmemAllocationProp properties = HybProperties();
  size_t                    g          = 0;
  HybCallDriver(cuMemGetAllocationGranularity_(&g, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  granule_ = g;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceReserve(const HybExec *, size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  PetscCall(HybVirtualSetUp());
  bytes         = (bytes + granule_ - 1) / granule_ * granule_;
  HybGrowing *g = new (std::nothrow) HybGrowing{0, bytes, 0, nullptr, nullptr};
  PetscCheck(g, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the host");
  const CUresult e = HybFault(cuMemAddressReserve_(&g->ptr, bytes, 0, 0, 0));
  if (e != CUDA_SUCCESS) {
    delete g;
    PetscCall(HybVirtualError(e, "cuMemAddressReserve", __FILE__, __LINE__));
  }
  g->next  = growing_;
  growing_ = g;
  *ptr     = (void *)g->ptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceGrow(const HybExec *exec, void *ptr, size_t bytes, size_t *mapped)
{
  HybDeviceState           *d          = &hybdevice_;
  const CUmemAllocationProp properties = HybProperties();
  CUmemAccessDesc           access;
  HybGrowing               *g = growing_;

  PetscFunctionBegin;
  PetscCall(HybDeviceEnter());
  while (g && (void *)g->ptr != ptr) g = g->next;
  PetscCheck(g, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%p is no memory that grows", ptr);
  *mapped = g->mapped;
  if (bytes <= g->mapped) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!HybDeviceFault("alloc"), PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the device: %zu bytes needed (made to fail by the fault hook)", bytes);
  PetscCheck(bytes <= g->reserved, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes are more than the %zu that were reserved", bytes, g->reserved);
  const size_t more = (bytes - g->mapped + granule_ - 1) / granule_ * granule_;
  PetscCall(HybDeviceCheckLimit(more));
  HybPiece *piece = new (std::nothrow) HybPiece{0, more, g->pieces};
  PetscCheck(piece, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the host");
  const char *what = "cuMemCreate";
  CUresult    e    = HybFault(cuMemCreate_(&piece->handle, more, &properties, 0));
  /* as HybDeviceAlloc() does: the pools first, then those who can do without what they hold */
  for (int attempt = 0; e == CUDA_ERROR_OUT_OF_MEMORY && attempt < 2; attempt++) {
    bool           any  = true;
    PetscErrorCode ierr = attempt ? HybSpareGiveBack(more, &any) : PETSC_SUCCESS;

    if (!ierr && !any) break;
    if (!ierr) ierr = HybDeviceTrim(HybDeviceOrder(exec));
    if (ierr) {
      delete piece;
      PetscCall(ierr);
    }
    e = cuMemCreate_(&piece->handle, more, &properties, 0);
  }
  if (e == CUDA_SUCCESS) {
    what = "cuMemMap";
    e    = HybFault(cuMemMap_(g->ptr + g->mapped, more, 0, piece->handle, 0));
    if (e != CUDA_SUCCESS) (void)cuMemRelease_(piece->handle);
  }
  if (e != CUDA_SUCCESS) {
    delete piece;
    PetscCall(HybVirtualError(e, what, __FILE__, __LINE__));
  }
  /* from here on the piece is the array's, whatever happens */
  g->pieces = piece;
  g->mapped += more;
  HybCount(&d->device_bytes, &d->device_peak, more);
  *mapped = g->mapped;
  memset(&access, 0, sizeof(access));
  access.location = properties.location;
  access.flags    = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  HybCallDriver(cuMemSetAccess_(g->ptr + g->mapped - more, more, &access, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* goes on after an error and reports the first one: an error that was only injected loses nothing */
PetscErrorCode HybDeviceUnreserve(const HybExec *exec, void *ptr)
{
  HybGrowing **link  = &growing_;
  CUresult     first = CUDA_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybDeviceEnter());
  while (*link && (void *)(*link)->ptr != ptr) link = &(*link)->next;
  HybGrowing *g = *link;
  PetscCheck(g, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%p is no memory that grows", ptr);
  const cudaError_t waited = cudaStreamSynchronize(HybDeviceOrder(exec));
  *link                    = g->next;
  if (g->mapped) first = cuMemUnmap_(g->ptr, g->mapped);
  while (g->pieces) {
    HybPiece      *p = g->pieces;
    const CUresult e = cuMemRelease_(p->handle);
    if (first == CUDA_SUCCESS) first = e;
    g->pieces = p->next;
    delete p;
  }
  hybdevice_.device_bytes -= g->mapped;
  const CUresult e = cuMemAddressFree_(g->ptr, g->reserved);
  if (first == CUDA_SUCCESS) first = e;
  delete g;
  PetscCall(HybDeviceError(waited, "cudaStreamSynchronize", __FILE__, __LINE__));
  PetscCall(HybVirtualError(first, "giving back memory that grew", __FILE__, __LINE__));
  PetscCheck(!HybDeviceFault("cuMemUnmap"), PETSC_COMM_SELF, PETSC_ERR_LIB, "cuMemUnmap failed: made to fail by the fault hook");
  PetscFunctionReturn(PETSC_SUCCESS);
}
