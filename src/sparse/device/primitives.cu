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

/* a device word for a result that the caller did not give a place on the device */
template <typename R>
PetscErrorCode Place(HybArena *work, R *dev, R **place)
{
  PetscFunctionBegin;
  *place = dev;
  if (!dev) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 1, sizeof(R), place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename R>
PetscErrorCode Deliver(const HybExec *exec, HybArena *work, R *place, R *dev, R *host)
{
  PetscFunctionBegin;
  if (host) PetscCall(exec->backend->copy(exec, host, place, sizeof(R), HYB_COPY_DEVICE_TO_HOST));
  if (!dev) PetscCall(HybArenaFree(work, &place));
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
  PetscCount        *place  = nullptr;

  PetscFunctionBegin;
  if (total || devtotal) PetscCall(Place(work, devtotal, &place));
  auto         in  = thrust::make_transform_iterator(thrust::counting_iterator<PetscCount>(0), CountAt<T>{counts, n});
  OffsetOut<T> out = {offsets, 0, n, place};
  PetscCall(Run(work, [&](void *tmp, size_t &bytes) { return cub::DeviceScan::ExclusiveScan(tmp, bytes, in, out, HybSum(), (PetscCount)0, n + 1, stream); }));
  if (place) PetscCall(Deliver(exec, work, place, devtotal, total));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename In, typename R, typename Op>
PetscErrorCode Reduce(const HybExec *exec, HybArena *work, PetscCount n, In v, R *dev, R *host, Op op)
{
  const cudaStream_t stream = (cudaStream_t)exec->stream;
  R                 *place  = nullptr;

  PetscFunctionBegin;
  PetscCall(Place(work, dev, &place));
  PetscCall(Run(work, [&](void *tmp, size_t &bytes) { return cub::DeviceReduce::Reduce(tmp, bytes, v, place, n, op, (R)0, stream); }));
  PetscCall(Deliver(exec, work, place, dev, host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename V>
__global__ void Positions(PetscCount n, V *v)
{
  const PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) v[k] = (V)k;
}

template <typename K, typename V>
PetscErrorCode Sort(const HybExec *exec, HybArena *work, PetscCount n, const K *keys, K *keysout, const V *values, V *valuesout, int beginbit, int endbit)
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
  PetscCall(Run(work, [&](void *tmp, size_t &bytes) { return cub::DeviceRadixSort::SortPairs(tmp, bytes, keys, keysout, values, valuesout, n, beginbit, endbit, stream); }));
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

PetscErrorCode HybReduceMax(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *v, PetscCount *devtotal, PetscCount *total)
{
  return Reduce(exec, work, n, thrust::make_transform_iterator(thrust::counting_iterator<PetscCount>(0), CountAt<PetscInt>{v, n}), devtotal, total, HybMax());
}

PetscErrorCode HybSortPairsInt(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *keys, PetscInt *keysout, const PetscInt *values, PetscInt *valuesout, int beginbit, int endbit)
{
  return Sort(exec, work, n, keys, keysout, values, valuesout, beginbit, endbit);
}

PetscErrorCode HybSortPairs64Count(const HybExec *exec, HybArena *work, PetscCount n, const uint64_t *keys, uint64_t *keysout, const PetscCount *values, PetscCount *valuesout, int beginbit, int endbit)
{
  return Sort(exec, work, n, keys, keysout, values, valuesout, beginbit, endbit);
}
