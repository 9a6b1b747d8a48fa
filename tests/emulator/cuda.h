/*
  The tests' CUDA driver: what maps memory behind reserved addresses (runtime.cc). Programs reach these by
  cudaGetDriverEntryPointByVersion(), as on a device.
*/
#ifndef EMULATOR_CUDA_H
#define EMULATOR_CUDA_H
#include <cstddef>

typedef enum { CUDA_SUCCESS             = 0,
               CUDA_ERROR_INVALID_VALUE = 1,
               CUDA_ERROR_OUT_OF_MEMORY = 2 } CUresult;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 } CUmemAllocationType;
typedef enum { CU_MEM_LOCATION_TYPE_DEVICE = 1 } CUmemLocationType;
typedef enum { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 } CUmemAccess_flags;
typedef enum { CU_MEM_ALLOC_GRANULARITY_MINIMUM     = 0,
               CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1 } CUmemAllocationGranularity_flags;
typedef struct {
  CUmemLocationType type;
  int               id;
} CUmemLocation;
typedef struct {
  CUmemAllocationType type;
  int                 requestedHandleTypes;
  CUmemLocation       location;
  void               *win32HandleMetaData;
  unsigned char       allocFlags[8];
} CUmemAllocationProp;
typedef struct {
  CUmemLocation     location;
  CUmemAccess_flags flags;
} CUmemAccessDesc;

CUresult cuMemGetAllocationGranularity(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuGetErrorString(CUresult, const char **);
#endif
