/*
  primitives.cc: plain stand-ins for the device-wide primitives of hybdevice.cuh, with their meaning: queued in stream order, temporary storage from the
  work arena, results to device and host memory. They refuse input that was never written.
*/
#include "hybdevice.cuh"
#include <algorithm>
#include <numeric>

namespace
{
void Written(const char *what, const void *p, size_t bytes)
{
  size_t at;
  if (bytes && emu::Unwritten(p, bytes, &at)) emu::Fail("%s reads %zu bytes of which byte %zu was never written", what, bytes, at);
}

/* like a device's, the primitive needs memory, can be made to fail, and runs in stream order */
PetscErrorCode Queue(const HybExec *exec, HybArena *work, const char *what, std::vector<emu::Use> &&uses, std::function<void()> &&f)
{
  void            *tmp = nullptr;
  std::vector<emu::Use> used;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 1024, 1, &tmp));
  PetscCheck(!HybDeviceFault(what), PETSC_COMM_SELF, PETSC_ERR_LIB, "%s failed: made to fail by the fault hook", what);
  for (const emu::Use &u : uses)
    if (u.ptr && u.bytes) used.push_back(u);
  emu::Enqueue((cudaStream_t)exec->stream, what, std::move(used), std::move(f));
  PetscCall(HybArenaFree(work, &tmp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename T>
PetscErrorCode Scan(const char *what, const HybExec *exec, HybArena *work, PetscCount n, const T *counts, T *offsets, PetscCount *devtotal, PetscCount *total)
{
  const size_t bytes = (size_t)n * sizeof(T);
  PetscCount  *place = devtotal;

  PetscFunctionBegin;
  if (total && !devtotal) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 1, sizeof(*place), &place));
  PetscCall(Queue(exec, work, what, {{counts, bytes, false}, {offsets, bytes + sizeof(T), true}, {place, sizeof(*place), true}}, [=]() {
    PetscCount sum = 0;
    Written(what, counts, bytes);
    for (PetscCount k = 0; k < n; k++) {
      const T c  = counts[k];
      offsets[k] = (T)sum;
      sum += c;
    }
    offsets[n] = (T)sum;
    if (place) *place = sum;
  }));
  if (total) PetscCall(exec->backend->copy(exec, total, place, sizeof(*place), HYB_COPY_DEVICE_TO_HOST));
  if (!devtotal) PetscCall(HybArenaFree(work, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename K, typename V>
PetscErrorCode Sort(const char *what, const HybExec *exec, HybArena *work, PetscCount n, const K *keys, K *keysout, const V *values, V *valuesout, int bits)
{
  const size_t kb = (size_t)n * sizeof(K), vb = (size_t)n * sizeof(V);

  PetscFunctionBegin;
  if (n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Queue(exec, work, what, {{keys, kb, false}, {keysout, kb, true}, {values, values ? vb : 0, false}, {valuesout, vb, true}}, [=]() {
    using U         = typename std::make_unsigned<K>::type;
    const U    mask = bits >= (int)sizeof(K) * 8 ? ~(U)0 : (U)((((U)1) << bits) - 1);
    const U    flip = std::is_signed<K>::value ? (U)(((U)1) << (sizeof(K) * 8 - 1)) : 0;
    const auto key  = [=](K k) { return (U)((((U)k ^ flip)) & mask); };
    std::vector<PetscCount> p((size_t)n);
    Written(what, keys, kb);
    std::iota(p.begin(), p.end(), 0);
    std::stable_sort(p.begin(), p.end(), [&](PetscCount a, PetscCount b) { return key(keys[a]) < key(keys[b]); });
    for (PetscCount k = 0; k < n; k++) {
      keysout[k]   = keys[p[(size_t)k]];
      valuesout[k] = values ? values[p[(size_t)k]] : (V)p[(size_t)k];
    }
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
} // namespace

PetscErrorCode HybScanCounts(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *counts, PetscInt *offsets, PetscCount *devtotal, PetscCount *total)
{
  return Scan("HybScanCounts", exec, work, n, counts, offsets, devtotal, total);
}

PetscErrorCode HybScanCounts64(const HybExec *exec, HybArena *work, PetscCount n, const PetscCount *counts, PetscCount *offsets, PetscCount *devtotal, PetscCount *total)
{
  return Scan("HybScanCounts64", exec, work, n, counts, offsets, devtotal, total);
}

PetscErrorCode HybReduceMax(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *v, PetscCount *largest)
{
  const size_t bytes = (size_t)n * sizeof(*v);
  PetscCount  *place = nullptr;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 1, sizeof(*place), &place));
  PetscCall(Queue(exec, work, "HybReduceMax", {{v, bytes, false}, {place, sizeof(*place), true}}, [=]() {
    PetscCount r = 0;
    Written("HybReduceMax", v, bytes);
    for (PetscCount k = 0; k < n; k++) r = HybMax()(r, (PetscCount)v[k]);
    *place = r;
  }));
  PetscCall(exec->backend->copy(exec, largest, place, sizeof(*place), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(work, &place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSortPairsInt(const HybExec *exec, HybArena *work, PetscCount n, const PetscInt *keys, PetscInt *keysout, const PetscInt *values, PetscInt *valuesout, int bits)
{
  return Sort("HybSortPairsInt", exec, work, n, keys, keysout, values, valuesout, bits);
}

PetscErrorCode HybSortPairs64Count(const HybExec *exec, HybArena *work, PetscCount n, const uint64_t *keys, uint64_t *keysout, const PetscCount *values, PetscCount *valuesout, int bits)
{
  return Sort("HybSortPairs64Count", exec, work, n, keys, keysout, values, valuesout, bits);
}
