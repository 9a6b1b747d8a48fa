/*
  hybcsrcopy.h: a whole CSR matrix copied.
*/
#ifndef AIJHYBRIDGPU_HYBCSRCOPY_H
#define AIJHYBRIDGPU_HYBCSRCOPY_H
#include "hyb.h"

HYB_EXTERN_C_BEGIN

/* C = A with arrays of its own from keep: row offsets in the backend's working memory, columns and values in mem. kind
   says where A's arrays are. Without values C->a is NULL. What was queued is not waited for. */
extern PetscErrorCode HybCSRCopy(const HybExec *, HybArena *keep, HybMem mem, const HybCSR *A, PetscBool values, HybCopyKind kind, HybCSR *C);

HYB_EXTERN_C_END
#endif
