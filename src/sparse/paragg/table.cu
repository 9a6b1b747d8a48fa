/*
  table.cu: what one process does alone, on its device: a thread for each vertex (vertex.h), the rounds of roots.cu for
  new roots.
*/
#include "../agg/aggops.cuh"
#include "paraggimpl.h"

HYB_EXTERN_C_BEGIN
extern const HybParAggOps HybParAggCUDA;
HYB_EXTERN_C_END

namespace {

#define EACH(Step)                                                                                                 \
  __global__ void Each##Step(PetscInt n, HybStep##Step s)                                                          \
  {                                                                                                                \
    const PetscCount k = (PetscCount)blockIdx.x * AGG_THREADS + threadIdx.x;                                       \
                                                                                                                   \
    if (k < n) HybVertex##Step(&s, (PetscInt)k);                                                                   \
  }                                                                                                                \
  PetscErrorCode Launch##Step(const HybExec *exec, PetscInt n, const void *s)                                      \
  {                                                                                                                \
    PetscFunctionBegin;                                                                                            \
    HYB_LAUNCH(Each##Step, HybBlocks(n, AGG_THREADS), AGG_THREADS, 0, exec->stream, n, *(const HybStep##Step *)s); \
    PetscFunctionReturn(PETSC_SUCCESS);                                                                            \
  }
HYB_VERTEX_STEPS(EACH)
#define LAUNCH(Step) Launch##Step,
const HybParAggEach Launches[] = {HYB_VERTEX_STEPS(LAUNCH)};

} // namespace

static PetscErrorCode HybParAggRoots_CUDA(const HybExec *exec, HybArena *work, const HybCSR *G, PetscInt longest, int hops, PetscInt *key)
{
  AggLong   l;
  PetscInt *spare;
  int       rounds;

  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, G->nnz, "a graph"));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, G->m, sizeof(PetscInt), &spare));
  PetscCall(HybAggLongRows(exec, work, G, longest, &l));
  PetscCall(HybAggRoots_CUDA(exec, work, G, &l, hops, key, spare, &rounds));
  PetscCall(HybAggLongFree(work, &l));
  PetscCall(HybArenaFree(work, &spare));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParAggNumber_CUDA(const HybExec *exec, HybArena *work, PetscInt n, const PetscInt *flag, PetscInt *number, PetscInt *sum)
{
  PetscInt  *offset;
  PetscCount total = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)n + 1, sizeof(PetscInt), &offset));
  PetscCall(HybScanCounts(exec, work, n, flag, offset, nullptr, &total));
  PetscCall(exec->backend->copy(exec, number, offset, sizeof(PetscInt) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(HybArenaFree(work, &offset));
  PetscCall(HybIntCast(total, "marks", sum));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybParAggOps HybParAggCUDA = {.each = Launches, .roots = HybParAggRoots_CUDA, .number = HybParAggNumber_CUDA, .lists = HybAggListsByKind};
