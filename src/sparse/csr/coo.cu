/*
  Assembly from coordinates on the device: the pattern and, for each entry, the list of the given values that it sums.

    for each k:      key[k] = (row, column) of coordinate k as one integer, rows above columns; ignored ones get row m
    stable sort of (key, k)                              equal coordinates keep their order: sums ascend in k
    head[p] = key[p] != key[p-1]                         the first of each distinct coordinate
    mapptr = positions of the heads; map = sorted k; C.j = columns at the heads; C.i = scan of the rows' numbers of
    heads

  Only as many bits are sorted as rows and columns need. Where row and column together need more than 64 (64-bit
  indices, gigantic sizes), two stable sorts follow each other, by column and by row.

  Memory: 32 bytes a coordinate and the sort's own, released at the end; 8 bytes a coordinate and 8 an entry are kept.
  Work: a few radix passes.
*/
#include "csrops.cuh"

typedef struct {
  PetscCount ignored, outside;
  PetscCount firstoutside;
} COOResult;

/* WHAT 0: row and column packed; 1: the column alone; 2: the row of the coordinate map[k] */
template <int WHAT>
static __global__ __launch_bounds__(CSR_THREADS) void COOKeys(PetscCount ncoo, const PetscInt *__restrict__ ci, const PetscInt *__restrict__ cj, PetscInt m, PetscInt n, int columnbits, const PetscCount *__restrict__ map, uint64_t *__restrict__ key, COOResult *result)
{
  HYB_SHARED(int, scratch, HYB_WARP);
  const PetscCount p       = (PetscCount)blockIdx.x * CSR_THREADS + threadIdx.x;
  int              ignored = 0, outside = 0;
  if (p < ncoo) {
    const PetscCount k = WHAT == 2 ? map[p] : p;
    const PetscInt   r = ci[k], c = cj[k];
    ignored = r < 0 || c < 0;
    outside = !ignored && (r >= m || c >= n);
    if (WHAT == 0)
      key[p] = ignored || outside ? (uint64_t)m << columnbits : ((uint64_t)r << columnbits) | (uint64_t)c;
    else if (WHAT == 1)
      key[p] = ignored || outside ? 0 : (uint64_t)c;
    else
      key[p] = ignored || outside ? (uint64_t)m : (uint64_t)r;
    if (outside) HybAtomicMin(&result->firstoutside, k);
  }
  if (WHAT != 2) {
    ignored = HybBlockSum<CSR_THREADS>(ignored, scratch);
    outside = HybBlockSum<CSR_THREADS>(outside, scratch);
    if (threadIdx.x == 0) {
      if (ignored) HybAtomicAdd(&result->ignored, (PetscCount)ignored);
      if (outside) HybAtomicAdd(&result->outside, (PetscCount)outside);
    }
  }
}

PetscErrorCode HybCSRCOOSymbolic_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, HybCSR *C, PetscCount **mapptr, PetscCount **map)
{
  const PetscInt m = C->m, n = C->n;
  const int      columnbits = HybBits(n), rowbits = HybBits((PetscCount)m + 1);
  const bool     packed = sizeof(PetscInt) == 4 || columnbits + rowbits <= 64; /* with 32-bit indices always */
  COOResult      host   = {0, 0, PTRDIFF_MAX}, *result;
  uint64_t      *key, *sorted;
  PetscCount    *sortedmap, *entry, *ptr, nvalid, nnz = 0;
  PetscInt      *ic, *jc, nz;

  PetscFunctionBegin;
  *mapptr = NULL;
  *map    = NULL;
  C->nnz  = 0;
  C->i = C->j = NULL;
  C->a        = NULL;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 1, sizeof(*result), &result));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), ncoo, sizeof(*key), &key));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), ncoo, sizeof(*sorted), &sorted));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), ncoo, sizeof(*sortedmap), &sortedmap));
  PetscCall(exec->backend->copy(exec, result, &host, sizeof(host), HYB_COPY_HOST_TO_DEVICE));
  if (packed) {
    HYB_LAUNCH((COOKeys<0>), HybBlocks(ncoo, CSR_THREADS), CSR_THREADS, 0, exec->stream, ncoo, ci, cj, m, n, columnbits, nullptr, key, result);
    PetscCall(HybSortPairs64Count(exec, work, ncoo, key, sorted, NULL, sortedmap, columnbits + rowbits));
  } else {
    PetscCount *bycolumn;

    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), ncoo, sizeof(*bycolumn), &bycolumn));
    HYB_LAUNCH((COOKeys<1>), HybBlocks(ncoo, CSR_THREADS), CSR_THREADS, 0, exec->stream, ncoo, ci, cj, m, n, columnbits, nullptr, key, result);
    PetscCall(HybSortPairs64Count(exec, work, ncoo, key, sorted, NULL, bycolumn, columnbits));
    HYB_LAUNCH((COOKeys<2>), HybBlocks(ncoo, CSR_THREADS), CSR_THREADS, 0, exec->stream, ncoo, ci, cj, m, n, columnbits, bycolumn, key, result);
    PetscCall(HybSortPairs64Count(exec, work, ncoo, key, sorted, bycolumn, sortedmap, rowbits));
    PetscCall(HybArenaFree(work, &bycolumn));
  }
  PetscCall(CSRFetch(exec, &host, result, sizeof(host)));
  PetscCheck(host.outside == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscCount_FMT " coordinates, the first of them number %" PetscCount_FMT ", are outside of the matrix, %" PetscInt_FMT " x %" PetscInt_FMT, host.outside, host.firstoutside, m, n);
  PetscCall(HybArenaFree(work, &result));
  nvalid = ncoo - host.ignored;
  PetscCall(HybArenaFree(work, &key));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nvalid + 1, sizeof(*entry), &entry));
  PetscCall(HybArenaCalloc(keep, exec->result, (PetscCount)m + 1, sizeof(*ic), &ic));
  /* entry[p] = 1 where a new entry of the matrix begins, and entries of rows */
  HYB_FOR_EACH(exec, nvalid, [=] __device__(PetscCount p) {
    bool head = p == 0 || sorted[p] != sorted[p - 1];

    if (!packed && !head) head = cj[sortedmap[p]] != cj[sortedmap[p - 1]];
    entry[p] = head;
    if (head) (void)HybAtomicAdd(&ic[packed ? sorted[p] >> columnbits : sorted[p]], 1);
  });
  PetscCall(HybScanCounts64(exec, work, nvalid, entry, entry, NULL, &nnz));
  PetscCall(HybScanCounts(exec, work, m, ic, ic, NULL, NULL));
  PetscCall(HybIntCast(nnz, "A matrix given by coordinates", &nz));
  PetscCall(HybArenaAlloc(keep, exec->result, nz, sizeof(*jc), &jc));
  PetscCall(HybArenaCalloc(keep, HYB_WORK(exec), nnz + 1, sizeof(*ptr), &ptr));
  HYB_FOR_EACH(exec, nvalid, [=] __device__(PetscCount p) {
    const PetscCount e = entry[p];

    if (entry[p + 1] != e) { /* a head */
      ptr[e] = p;
      jc[e]  = packed ? (PetscInt)(sorted[p] & (((uint64_t)1 << columnbits) - 1)) : cj[sortedmap[p]];
    }
    if (p == nvalid - 1) ptr[entry[nvalid]] = nvalid;
  });
  PetscCall(HybArenaFree(work, &sorted, &entry));
  C->nnz  = nnz;
  C->i    = ic;
  C->j    = jc;
  *mapptr = ptr;
  *map    = sortedmap;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __device__ __forceinline__ bool COOIsOther(PetscInt r, PetscInt c, PetscInt rstart, PetscInt rend, PetscInt cstart, PetscInt cend)
{
  return r >= rstart && r < rend && c >= 0 && (c < cstart || c >= cend);
}

PetscErrorCode HybCSRCOOSplit_CUDA(const HybExec *exec, HybArena *work, PetscCount ncoo, PetscInt *ci, PetscInt *cj, PetscInt rstart, PetscInt rend, PetscInt cstart, PetscInt cend, PetscCount *nother, PetscCount **place, PetscInt **oi, PetscInt **oj)
{
  PetscCount *offset;

  PetscFunctionBegin;
  *nother = 0;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), ncoo + 1, sizeof(*offset), &offset));
  HYB_FOR_EACH(exec, ncoo, [=] __device__(PetscCount k) { offset[k] = COOIsOther(ci[k], cj[k], rstart, rend, cstart, cend); });
  PetscCall(HybScanCounts64(exec, work, ncoo, offset, offset, NULL, nother));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), *nother, sizeof(PetscCount), place));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), *nother, sizeof(PetscInt), oi));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), *nother, sizeof(PetscInt), oj));
  HYB_FOR_EACH(exec, ncoo, [=, place = *place, oi = *oi, oj = *oj] __device__(PetscCount k) {
    const PetscInt r = ci[k], c = cj[k];
    const bool     mine = r >= rstart && r < rend && c >= cstart && c < cend;

    if (COOIsOther(r, c, rstart, rend, cstart, cend)) {
      const PetscCount p = offset[k];

      place[p] = k;
      oi[p]    = r - rstart;
      oj[p]    = c;
    }
    ci[k] = mine ? r - rstart : -1;
    cj[k] = mine ? c - cstart : -1;
  });
  PetscCall(HybArenaFree(work, &offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCOOCompose_CUDA(const HybExec *exec, PetscCount n, const PetscCount *place, PetscCount *map)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { map[k] = place[map[k]]; });
  PetscFunctionReturn(PETSC_SUCCESS);
}
