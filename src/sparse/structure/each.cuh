/*
  each.cuh: a thread for each of n numbers, and a sub-warp for each row.
*/
#ifndef AIJHYBRIDGPU_EACH_CUH
#define AIJHYBRIDGPU_EACH_CUH
#include "rowops.cuh"

#define EACH_THREADS 256

/* of what a thread does, whose arrays the kernel has within it */
template <typename F>
struct EachWork {
  F work;
};

#if defined(HYB_EMULATOR)
/* what it reads alone cannot be told from what it writes */
namespace emu {
template <typename F>
constexpr bool MayWrite<EachWork<F>> = true;
} // namespace emu
#endif

template <typename F>
static __global__ __launch_bounds__(EACH_THREADS) void ForEach(PetscCount n, EachWork<F> each)
{
  const PetscCount k = (PetscCount)blockIdx.x * EACH_THREADS + threadIdx.x;

  if (k < n) each.work(k);
}

template <typename F>
static inline auto EachKernel(const EachWork<F> &)
{
  return ForEach<F>;
}

template <typename F>
static inline EachWork<F> EachOf(F work)
{
  return {work};
}

/* Does work(k) for k = 0..n-1, which is [...] __device__(PetscCount k) {...}. For what reads little and then writes:
   its pointers are not __restrict__, so a loop does not load ahead of its own stores. For functions that return
   PetscErrorCode; an error names the caller's line. */
#define HYB_FOR_EACH(exec, n, ...)                                                                                    \
  do {                                                                                                                \
    const PetscCount each_n_ = (n);                                                                                   \
    const auto       each_   = EachOf(__VA_ARGS__);                                                                   \
    HYB_LAUNCH(EachKernel(each_), HybBlocks(each_n_, EACH_THREADS), EACH_THREADS, 0, (exec)->stream, each_n_, each_); \
  } while (0)

/* Launches a kernel of some lanes a row, such as (K<WIDTH>), which goes along m rows by ROW_LOOP; WIDTH is w, and m its
   first argument */
#define HYB_LAUNCH_ROWS(exec, w, kernel, m, ...)                                                                         \
  PetscCall(HybDispatch(w, RowWidths(), [&](auto WIDTH) {                                                                \
    HYB_LAUNCH(kernel, HybBlocks((PetscCount)(m)*WIDTH, EACH_THREADS), EACH_THREADS, 0, (exec)->stream, m, __VA_ARGS__); \
    return PETSC_SUCCESS;                                                                                                \
  }))

#endif
