/*
  The table of the device's elementary operations on CSR arrays.
*/
#include "csrops.cuh"

HYB_EXTERN_C_BEGIN
extern const HybCSROps HybCSROpsCUDA;
HYB_EXTERN_C_END

#define HYB_CSR_ENTRY(member, Name) .member = HybCSR##Name##_CUDA,
const HybCSROps HybCSROpsCUDA = {HYB_CSR_OPS(HYB_CSR_ENTRY)};
