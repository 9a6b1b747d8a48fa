/*
  each.cuh: a thread for each of n numbers, and a sub-warp for each row.
*/
#ifndef AIJHYBRIDGPU_EACH_CUH
#define AIJHYBRIDGPU_EACH_CUH
#include "rowops.cuh"

#define EACH_THREADS 256

template <typename F>
static __global__ __launch_bounds__(EACH_THREADS) void ForEach(PetscCount n, F work)
{
  const PetscCount k = (PetscCount)blockIdx.x * EACH_THREADS + threadIdx.x;

  if (k < n) work(k);
}

/* Does work(k) for k = 0..n-1, which is [...] __device__(PetscCount k) {...}. For what reads little and then writes:
   its pointers are not __restrict__, so a loop does not load ahead of its own stores. */
template <typename F>
static inline PetscErrorCode HybForEach(const HybExec *exec, PetscCount n, F work)
{
  PetscFunctionBegin;
  HYB_LAUNCH(ForEach<F>, HybBlocks(n, EACH_THREADS), EACH_THREADS, 0, exec->stream, n, work);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Launches a kernel of some lanes a row, such as (K<WIDTH>), which goes along m rows by ROW_LOOP; WIDTH is w, and m its
   first argument */
#define HYB_LAUNCH_ROWS(exec, w, kernel, m, ...)                                                                         \
  PetscCall(HybDispatch(w, RowWidths(), [&](auto WIDTH) {                                                                \
    HYB_LAUNCH(kernel, HybBlocks((PetscCount)(m)*WIDTH, EACH_THREADS), EACH_THREADS, 0, (exec)->stream, m, __VA_ARGS__); \
    return PETSC_SUCCESS;                                                                                                \
  }))

#endif
