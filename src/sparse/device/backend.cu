/*
  backend.cu: the one symbol of a device library. It joins the rooms' tables into a HybBackend and hands it out when the
  stamps agree.
*/
#include "hybdevicestate.h"
#include "aijhybridgpu/private/hybagg.h"
#include "aijhybridgpu/private/hybcomm.h"
#include "aijhybridgpu/private/hybcycle.h"
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybparagg.h"
#include "aijhybridgpu/private/hybparprod.h"
#include "aijhybridgpu/private/hybplan.h"
#include "aijhybridgpu/private/hybptap.h"
#include "aijhybridgpu/private/hybspgemm.h"
#include "aijhybridgpu/private/hybspmv.h"
#include <cstdio>

/* weak: a library built from some of the rooms alone has NULL here, and its callers look */
#define HYB_WEAK __attribute__((weak))
extern const HybCSROps HybCSROpsCUDA      HYB_WEAK;
extern const HybPlanOps HybPlanCUDA       HYB_WEAK;
extern const HybAggOps HybAggCUDA         HYB_WEAK;
extern const HybKrylovOps HybKrylovCUDA   HYB_WEAK;
extern const HybCycleOps HybCycleCUDA     HYB_WEAK;
extern const HybCommOps HybCommCUDA       HYB_WEAK;
extern const HybParAggOps HybParAggCUDA   HYB_WEAK;
extern const HybLocalOps HybLocalCUDA     HYB_WEAK;
extern const HybColumnsOps HybColumnsCUDA HYB_WEAK;
#if defined(PETSC_USE_REAL_DOUBLE)
/* compiled with HYB_SINGLE */
extern const HybCycleOps HybCycleCUDASingle HYB_WEAK;
extern const HybSpMVMethod                  HybSpMV_BlockCUDASingle, HybSpMV_ShapeCUDASingle, HybSpMV_RowGroupCUDASingle;
static const HybSpMVMethod *const           HybSpMVMethodsCUDASingle[] = {&HybSpMV_BlockCUDASingle, &HybSpMV_ShapeCUDASingle, &HybSpMV_RowGroupCUDASingle, nullptr};
static HybBackend                           HybBackendCUDASingle; /* filled when the library is opened */
#endif

#define HYB_METHOD_HOST(name, symbol)
#define HYB_METHOD_CUDA(name, symbol) extern const HybSpMVMethod symbol;
#include "../spmv/methods.h"
#undef HYB_METHOD_CUDA
#define HYB_METHOD_CUDA(name, symbol) extern const HybSpGEMMMethod symbol;
#include "../spgemm/methods.h"
#undef HYB_METHOD_CUDA
#define HYB_METHOD_CUDA(name, symbol) extern const HybPtAPMethod symbol;
#include "../ptap/methods.h"
#undef HYB_METHOD_CUDA

#define HYB_METHOD_CUDA(name, symbol) &symbol,
static const HybSpMVMethod *const HybSpMVMethodsCUDA[] = {
#include "../spmv/methods.h"
  nullptr};
static const HybSpGEMMMethod *const HybSpGEMMMethodsCUDA[] = {
#include "../spgemm/methods.h"
  nullptr};
static const HybPtAPMethod *const HybPtAPMethodsCUDA[] = {
#include "../ptap/methods.h"
  nullptr};

static const HybBackend HybBackendCUDA = {
  .size = sizeof(HybBackend),
#if defined(HYB_EMULATOR)
  .name = "emulated",
#else
  .name = "cuda",
#endif
  .workspace = HYB_MEM_DEVICE,
  .device    = PETSC_TRUE,
  .alloc     = HybDeviceAlloc,
  .free      = HybDeviceFree,
  .copy      = HybDeviceCopy,
  .early     = HybDeviceEarly,
  .letters   = HybDeviceLetters,
  .post      = HybDevicePost,
  .read      = HybDeviceRead,
  .zero      = HybDeviceZero,
  .sync      = HybDeviceSync,
  .mark      = HybDeviceMark,
  .elapsed   = HybDeviceElapsed,
  .touch     = HybDeviceTouch,
  .lock      = HybDeviceLock,
  .prefetch  = HybDevicePrefetch,
  .memory    = HybDeviceMemory,
  .room      = HybDeviceRoom,
  .usage     = HybDeviceUsage,
  .grow      = HybDeviceGrow,
  .enter     = HybDeviceEnter,
  .use       = HybDeviceUse,
  .csr       = &HybCSROpsCUDA,
  .plan      = &HybPlanCUDA,
  .spmv      = HybSpMVMethodsCUDA,
  .columns   = &HybColumnsCUDA,
  .spgemm    = HybSpGEMMMethodsCUDA,
  .ptap      = HybPtAPMethodsCUDA,
  .agg       = &HybAggCUDA,
  .paragg    = &HybParAggCUDA,
  .krylov    = &HybKrylovCUDA,
  .cycle     = &HybCycleCUDA,
  .comm      = &HybCommCUDA,
  .local     = &HybLocalCUDA,
#if defined(PETSC_USE_REAL_DOUBLE)
  .single = &HybBackendCUDASingle,
#endif
  .expect    = HybDeviceExpect,
  .recording = HybDeviceRecording,
};

/* the same memory and streams, and of the rooms two */
static void BackendSingle(void)
{
#if defined(PETSC_USE_REAL_DOUBLE)
  HybBackend *b = &HybBackendCUDASingle;

  *b         = HybBackendCUDA;
  b->csr     = nullptr;
  b->columns = nullptr;
  b->plan    = nullptr;
  b->spgemm  = nullptr;
  b->ptap    = nullptr;
  b->agg     = nullptr;
  b->paragg  = nullptr;
  b->krylov  = nullptr;
  b->comm    = nullptr;
  b->local   = nullptr;
  b->single  = nullptr;
  b->spmv    = HybSpMVMethodsCUDASingle;
  b->cycle   = &HybCycleCUDASingle;
#endif
}

extern "C" __attribute__((visibility("default"))) int HybCUDAGetBackend(const HybStamp *stamp, const HybServices *services, const HybBackend **backend, char *message, size_t length)
{
  const HybStamp mine = HYB_STAMP;

  *backend = nullptr;
  if (length) message[0] = 0;
  if (stamp->petsc_major != mine.petsc_major || stamp->petsc_minor != mine.petsc_minor) {
    snprintf(message, length, "it was built for PETSc %d.%d, this is PETSc %d.%d", mine.petsc_major, mine.petsc_minor, stamp->petsc_major, stamp->petsc_minor);
    return PETSC_ERR_LIB;
  }
  if (stamp->sizeof_int != mine.sizeof_int || stamp->sizeof_scalar != mine.sizeof_scalar || stamp->complex_scalar != mine.complex_scalar) {
    snprintf(message, length, "it was built for a PetscInt of %d bytes and a %s PetscScalar of %d, this PETSc has %d and a %s one of %d", mine.sizeof_int, mine.complex_scalar ? "complex" : "real", mine.sizeof_scalar, stamp->sizeof_int, stamp->complex_scalar ? "complex" : "real", stamp->sizeof_scalar);
    return PETSC_ERR_LIB;
  }
  if (stamp->interface != mine.interface) {
    snprintf(message, length, "it and the plugin were built from different sources of petsc-aijhybridgpu (%08x, %08x): build or install both from one", mine.interface, stamp->interface);
    return PETSC_ERR_LIB;
  }
  if (!HybDeviceSetUp(services, message, length)) return PETSC_ERR_GPU;
  BackendSingle();
  *backend = &HybBackendCUDA;
  return 0;
}
