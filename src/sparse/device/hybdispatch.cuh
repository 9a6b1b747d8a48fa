/*
  hybdispatch.cuh: from a number that is known at run time to an argument of a template.

    PetscCall(HybDispatch(width, HybCases<2, 4, 8>(), [&](auto W) {
      HYB_LAUNCH((Kernel<W>), HybBlocks(n * W, 128), 128, 0, stream, ...);
      return PETSC_SUCCESS;
    }));

  calls the function for the case that width equals, W being a constant, and is an error where none does.
*/
#ifndef AIJHYBRIDGPU_HYBDISPATCH_CUH
#define AIJHYBRIDGPU_HYBDISPATCH_CUH
#include "hybdevice.cuh"

template <auto... V>
struct HybCases {
};
using HybFlags = HybCases<false, true>;

template <typename T, auto... V, typename F>
static inline PetscErrorCode HybDispatch(T value, HybCases<V...>, F call)
{
  PetscErrorCode ierr  = PETSC_SUCCESS;
  bool           found = false;

  PetscFunctionBegin;
  (void)((value == V && (found = true, ierr = call(std::integral_constant<decltype(V), V>()), true)) || ...);
  PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No kernel was compiled for %" PetscInt64_FMT, (PetscInt64)value);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* two numbers */
template <typename T, auto... V, typename U, auto... W, typename F>
static inline PetscErrorCode HybDispatch(T value, HybCases<V...> cases, U other, HybCases<W...> others, F call)
{
  return HybDispatch(value, cases, [&](auto v) { return HybDispatch(other, others, [&](auto w) { return call(v, w); }); });
}

/* the function for every case, in their order; on the host and in kernels */
template <auto... V, typename F>
static constexpr void HybEachCase(HybCases<V...>, F call)
{
  (call(std::integral_constant<decltype(V), V>()), ...);
}

/* the first of ascending cases that is not below value, the last one where all are */
template <typename T, auto... V>
static inline T HybLeastCase(T value, HybCases<V...>)
{
  T least = 0;
  (void)((least = (T)V, value <= least) || ...);
  return least;
}

#endif
