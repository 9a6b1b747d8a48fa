/*
  segsum.c: SpMV by a speculative segmented sum on the host.

  Idea (Liu and Vinter): divide the nonzeros, not the rows, into tiles of equal size, so that no row's length matters to
  the balance of work. Within a tile the products are formed first, all alike; then they are summed by segments. Where
  segments begin is marked by one bit an entry, made from the row offsets while the tile is worked on. Such bits cannot
  show an empty row: two offsets fall on one bit. So the tile speculates that it has none: its s-th segment belongs to
  row first+s. Counting the bits shows whether the rows that end in the tile outnumber the segments that do; then the
  tile is dirty, its sums are for the wrong rows, and they are scattered to the right ones, with zeros for the empty
  ones. Nothing is squeezed out of the matrix before, and nothing is filled in after.

    setup:  rows[t] = the last row that begins at or before entry t*T (binary search, the only plan)
    apply:  carry = 0
            for each tile t, entries b..e-1, rows first = rows[t] .. last = rows[t+1]:
              product[k] = a[k] x[j[k]]
              head = bit 0;  for r = first+1..last with i[r] < e:  head |= bit i[r]-b
              segments = popcount(head);  open = 1 if the last segment goes on in the next tile (i[last] < e), else 0
              the sums of the segments, the first one begun with carry;  carry = the open one, else 0
              segments - open == last - first:  z[first+s] = sum s
              else (dirty):                     the sums go to a buffer, and from there to the rows that are not empty

  The paper's GPU writes its speculative sums to z and lets the CPU's cores re-arrange the dirty tiles when all is done;
  one core does both here, so a dirty tile is repaired at once, while its sums are in cache. What the thread-bunches'
  synchronizer is there, carry is here.

  Determinism: the order of addition is fixed by the pattern. Memory: nnz/T integers, and one tile's products. Time: O(m
  + nnz), with each product stored and loaded once more than csr does, which on one core is mostly the price of a
  balance that one core does not need. It gains where rows are short and x is read at random over more than the caches
  hold: the products of many rows wait for memory together. No count of the pattern tells that, so "auto" does not take
  it (figures in docs/measured.md). It is also the model that a device's kernel is compared with.

  Reference: W. Liu, B. Vinter, Speculative segmented sum for sparse matrix-vector multiplication on heterogeneous
  processors, Parallel Computing 49, 2015.
*/
#include "../spmv/spmvvector.h"
#include <stdint.h>

#define HYB_TILE 512

typedef struct {
  PetscCount ntiles;
  PetscInt  *rows; /* ntiles+1 */
} SpMV_SegSum;

/* the sum of b[0..n-1], begun with carry */
static HYB_ALWAYS_INLINE HybScalar Segment(PetscInt n, const HybScalar *b, HybScalar carry)
{
  PetscInt k = 0;

  if (n >= 8) {
    HybFour four = HYB_FOUR_ZERO;

    for (; n - k >= 4; k += 4) HYB_FOUR_ADD(four, b + k);
    carry += HYB_FOUR_SUM(four);
  }
  for (; k < n; k++) carry += b[k];
  return carry;
}

static HYB_ALWAYS_INLINE void Tiles(const SpMV_SegSum *seg, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, PetscCount *ndirty, PetscCount *nempty)
{
  const PetscInt *i = A->i;
  HybScalar       product[HYB_TILE], sum[HYB_TILE], carry = 0;
  uint64_t        head[HYB_TILE / 64];

  for (PetscCount t = 0; t < seg->ntiles; t++) {
    const PetscCount b = t * HYB_TILE, e = PetscMin(b + HYB_TILE, A->nnz);
    const PetscInt   n = (PetscInt)(e - b), first = seg->rows[t], last = seg->rows[t + 1], *j = A->j + b;
    const HybScalar *a        = A->a + b;
    const PetscInt   open     = i[last] < e;
    PetscInt         segments = 0, begin = 0, done = 0;
    PetscBool        dirty;

    for (PetscInt k = 0; k < n; k += 8) {
      HYB_PREFETCH(a, k);
      HYB_PREFETCH(j, k);
      if (n - k >= 8) {
        HYB_FOUR_STOREPRODUCT(product + k, a + k, x, j + k);
        HYB_FOUR_STOREPRODUCT(product + k + 4, a + k + 4, x, j + k + 4);
      } else {
        for (PetscInt l = k; l < n; l++) product[l] = a[l] * x[j[l]];
      }
    }
    for (PetscInt w = 0; w < HYB_TILE / 64; w++) head[w] = 0;
    head[0] = 1;
    for (PetscInt r = first + 1; r <= last; r++) {
      const PetscCount p = i[r] - b;

      if (p >= n) break; /* this row and the ones up to last begin behind the tile */
      head[p / 64] |= (uint64_t)1 << (p % 64);
    }
    for (PetscInt w = 0; w < HYB_TILE / 64; w++) segments += __builtin_popcountll(head[w]);
    dirty = (PetscBool)(segments - open != last - first);
    /* each head but the first ends a segment, and so does the end of the tile */
    head[0] &= ~(uint64_t)1;
    for (PetscInt w = 0; w < HYB_TILE / 64; w++) {
      for (uint64_t bits = head[w]; bits; bits &= bits - 1) {
        const PetscInt p = 64 * w + __builtin_ctzll(bits);

        carry = Segment(p - begin, product + begin, carry);
        if (dirty)
          sum[done] = carry;
        else
          z[first + done] = HybSpMVCombine(mode, y, first + done, carry);
        done++;
        carry = 0;
        begin = p;
      }
    }
    carry = Segment(n - begin, product + begin, carry);
    if (!open) {
      if (dirty)
        sum[done] = carry;
      else
        z[first + done] = HybSpMVCombine(mode, y, first + done, carry);
      carry = 0;
    }
    if (dirty) {
      PetscInt s = 0;

      (*ndirty)++;
      for (PetscInt r = first; r < last; r++) {
        const PetscBool empty = (PetscBool)(i[r] == i[r + 1]);

        z[r] = HybSpMVCombine(mode, y, r, empty ? (HybScalar)0 : sum[s]);
        s += !empty;
        *nempty += empty;
      }
    }
  }
}

HYB_MULTIVERSION static void Apply(const SpMV_SegSum *seg, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z, PetscCount *ndirty, PetscCount *nempty)
{
  switch (mode) {
  case HYB_SPMV_SET:
    Tiles(seg, A, x, HYB_SPMV_SET, y, z, ndirty, nempty);
    break;
  case HYB_SPMV_ADD:
    Tiles(seg, A, x, HYB_SPMV_ADD, y, z, ndirty, nempty);
    break;
  case HYB_SPMV_RESIDUAL:
    Tiles(seg, A, x, HYB_SPMV_RESIDUAL, y, z, ndirty, nempty);
    break;
  case HYB_SPMV_STEP: /* this method has none */
    break;
  }
}

static PetscErrorCode HybSpMVFits_SegSum(HybSpMV *mv, const HybCSR *A, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = PETSC_FALSE; /* see above */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVSetUp_SegSum(HybSpMV *mv, const HybCSR *A)
{
  SpMV_SegSum *seg;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mv->keep, HYB_MEM_HOST, 1, sizeof(*seg), &seg));
  seg->ntiles = (A->nnz + HYB_TILE - 1) / HYB_TILE;
  PetscCall(HybArenaAlloc(&mv->keep, HYB_WORK(&mv->exec), seg->ntiles + 1, sizeof(PetscInt), &seg->rows));
  /* empty rows at the top are the first tile's, those at the bottom the last one's */
  seg->rows[0] = 0;
  for (PetscCount t = 1; t <= seg->ntiles; t++) {
    const PetscCount b  = PetscMin(t * HYB_TILE, A->nnz);
    PetscInt         lo = seg->rows[t - 1], hi = A->m; /* the last r in lo..hi with i[r] <= b */

    while (lo < hi) {
      const PetscInt mid = hi - (hi - lo) / 2;

      if (A->i[mid] <= b)
        lo = mid;
      else
        hi = mid - 1;
    }
    seg->rows[t] = lo;
  }
  mv->data = seg;
  PetscCall(HybCountersSet(&mv->counters, "tiles", seg->ntiles));
  PetscCall(HybCountersSet(&mv->counters, "dirty tiles", 0));
  PetscCall(HybCountersSet(&mv->counters, "empty rows", 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_SegSum(HybSpMV *mv, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const SpMV_SegSum *seg    = (const SpMV_SegSum *)mv->data;
  PetscCount         ndirty = 0, nempty = 0;

  PetscFunctionBegin;
  if (seg->ntiles)
    Apply(seg, A, x, mode, y, z, &ndirty, &nempty);
  else {
    for (PetscInt r = 0; r < A->m; r++) z[r] = HybSpMVCombine(mode, y, r, 0);
    nempty = A->m;
  }
  PetscCall(HybCountersSet(&mv->counters, "dirty tiles", ndirty));
  PetscCall(HybCountersSet(&mv->counters, "empty rows", nempty));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpMVMethod HybSpMV_SegSum = {
  .name  = "segsum",
  .fits  = HybSpMVFits_SegSum,
  .setup = HybSpMVSetUp_SegSum,
  .apply = HybSpMVApply_SegSum,
};
