/* ptap.c: the table of the host's fused Galerkin methods. Who chooses among them, and between them and the stages, is
   product.c. */
#include <aijhybridgpu/private/hybptap.h>

#define HYB_METHOD_HOST(name, symbol) extern const HybPtAPMethod symbol;
#define HYB_METHOD_CUDA(name, symbol)
#include "methods.h"
#undef HYB_METHOD_HOST
#undef HYB_METHOD_CUDA

#define HYB_METHOD_HOST(name, symbol) &symbol,
#define HYB_METHOD_CUDA(name, symbol)
const HybPtAPMethod *const HybPtAPMethodsHost[] = {
#include "methods.h"
  NULL};
