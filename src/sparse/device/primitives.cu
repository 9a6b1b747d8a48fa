/*
  primitives.cu: the device-wide primitives of hybdevice.cuh over CUB. The only file that includes CUB: it is slow to
  compile.

  Sums of integers are exact whatever their order.
  tests/emulator/primitives.cc holds plain stand-ins with the same meaning.
*/
#include "hybdevice.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace {

/* CUB's two-step protocol: ask for the size of the temporary storage, take it from the arena, run */
template <typename F>
PetscErrorCode Run(HybArena *work, F f)
{
  void  *tmp   = nullptr;
  size_t bytes = 0;

  PetscFunctionBegin;
  HybCallCUDA(f(nullptr, bytes));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)(bytes ? bytes : 1), 1, &tmp));
  HybCallCUDA(f(tmp, bytes));
  PetscCall(HybArenaFree(work, &tmp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* element k of the counts, and 0 behind the last: so n+1 offsets come of one exclusive scan */
template <typename T>
struct CountAt {
  const T              *counts;
  PetscCount            n;
  __device__ PetscCount operator()(PetscCount k) const
  {
    return k < n ? (PetscCount)counts[k] : 0;
  }
};

/* an output iterator that stores a 64-bit sum as T, and the sum behind the last count also as it is */
template <typename T>
struct OffsetOut {
  using value_type        = PetscCount;
  using difference_type   = PetscCount;
  using pointer           = void;
  using iterator_category = std::random_access_iterator_tag;
  struct Entry {
    T              *p;
    PetscCount     *total;
    __device__ void operator=(PetscCount v) const
    {
      *p = (T)v;
      if (total) *total = v;
    }
  };
  using reference = Entry;
  T                        *offsets;
  PetscCount                at, n;
  PetscCount               *total;
  __host__ __device__ Entry operator[](PetscCount k) const
  {
    return Entry{offsets + at + k, at + k == n ? total : nullptr};
  }
  __host__ __device__ Entry operator*() const
  {
    return (*this)[0];
  }
  __host__ __device__ OffsetOut operator+(PetscCount k) const
  {
    return OffsetOut{offsets, at + k, n, total};
  }
  __host__ __device__ OffsetOut &operator+=(PetscCount k)
  {
    at += k;
    return *this;
  }
};

template <typename T>
PetscErrorCode Scan(const HybExec *exec, HybArena *work, PetscCount n, const T *counts, T *offsets, PetscCount *devtotal, PetscCount *total)
{
  const cudaStream_t stream = (cudaStream_t)exec->stream;
  PetscCount        *place  = devtotal;

  PetscFunctionBegin;
  if (total && !devtotal) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 1, sizeof(*place), &place));
  auto         in  = thrust::make_transform_iterator(thrust::counting_iterator<PetscCount>(0), CountAt<T>{counts, n});
  OffsetOut<T> out = {offsets, 0, n, place};
  PetscCall(Run(work, [&](void *tmp, size_t &bytes) { return cub::DeviceScan::ExclusiveScan(tmp, bytes, in, out, HybSum(), (PetscCount)0, n + 1, stream); }));
  if (total) PetscCall(exec->backend->copy(exec, total, place, sizeof(*place), HYB_COPY_DEVICE_TO_HOST));
  if (!devtotal) PetscCall(HybArenaFree(work, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename V>
__global__ void Positions(PetscCount n, V *v)
{
  const PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) v[k] = (V)k;
}

template <typename K, typename V>
PetscErrorCode Sort(const HybExec *exec, HybArena *work, PetscCount n, const K *keys, K *keysout, const V *values, V *valuesout, int bits)
{
  const cudaStream_t stream    = (cudaStream_t)exec->stream;
  V                 *positions = nullptr;

  PetscFunctionBegin;
  if (n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (!values) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(V), &positions));
    HYB_LAUNCH(Positions<V>, HybBlocks(n, 256), 256, 0, stream, n, positions);
    values = positions;
  }
  PetscCall(Run(work, [&](void *tmp, size_t &bytes) { return cub::DeviceRadixSort::SortPairs(tmp, bytes, keys, keysout, values, valuesout, n, 0, bits, stream); }));
  PetscCall(HybArenaFree(work, &positions));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode HybScanCounts(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *counts, PetscInt *offsets, PetscCount *devtotal, PetscCount *total)
{
  return Scan(exec, work, n, counts, offsets, devtotal, total);
}

PetscErrorCode HybScanCounts64(const HybExec *exec, HybArena *work, PetscCount n, const PetscCount *counts, PetscCount *offsets, PetscCount *devtotal, PetscCount *total)
{
  return Scan(exec, work, n, counts, offsets, devtotal, total);
}

PetscErrorCode HybReduceMax(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *v, PetscCount *largest)
{
  const cudaStream_t stream = (cudaStream_t)exec->stream;
  const auto         in     = thrust::make_transform_iterator(thrust::counting_iterator<PetscCount>(0), CountAt<PetscInt>{v, n});
  PetscCount        *place  = nullptr;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 1, sizeof(*place), &place));
  PetscCall(Run(work, [&](void *tmp, size_t &bytes) { return cub::DeviceReduce::Reduce(tmp, bytes, in, place, n, HybMax(), (PetscCount)0, stream); }));
  PetscCall(exec->backend->copy(exec, largest, place, sizeof(*place), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(work, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSortPairsInt(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *keys, PetscInt *keysout, const PetscInt *values, PetscInt *valuesout, int bits)
{
  return Sort(exec, work, n, keys, keysout, values, valuesout, bits);
}

PetscErrorCode HybSortPairs64Count(const HybExec *exec, HybArena *work, PetscCount n, const uint64_t *keys, uint64_t *keysout, const PetscCount *values, PetscCount *valuesout, int bits)
{
  return Sort(exec, work, n, keys, keysout, values, valuesout, bits);
}
