/*
  merge.cu: the segmented merge on the device, at three levels.

  Idea. A segment of q sorted lists becomes one in ceil(log2 q) rounds that merge neighbours two by two. Merging leaves
  every list where its parts were, so the bounds of the lists in round t are every 2^t-th of the original bounds: no
  round writes any bookkeeping. Within a round each thread delivers the same number of neighbouring places of the
  output, whatever the lengths of the lists: it finds its list by bisection, its starting point between the two lists by
  the merge path's bisection on the diagonal, and goes on from there one pair at a time, into the next list or segment
  where one ends. So long and short lists cost alike.

    segments up to 256 pairs    a warp each, all rounds in shared memory
    up to 4096                  a block each, all rounds in shared memory
    longer                      the grid together: a kernel a round, SEGMERGE_EACH places a thread, over the long
                                segments laid end to end

  In shared memory a pair is its key and 16 bits of its position; values move once, at the end. The merge is stable:
  among equal keys the left list goes first.

  Memory: one more pair for each pair of long segments. Work O(N log q) for N pairs.

  Reference: Ji, Lu, Hou, Wang, Liu, Segmented merge: a new primitive for parallel sparse matrix computations, IJPP 49
  (2021); Green, McColl, Bader, GPU merge path, ICS 2012.
*/
#include "merge.cuh"
#include "../../device/hybgroup.cuh"
#include "../../structure/each.cuh"

#define SEGMERGE_WARP    256
#define SEGMERGE_BLOCK   4096
#define SEGMERGE_THREADS 256
#define SEGMERGE_EACH    8

/*
  Places [from, to) of one segment's output of round t. Positions count from the segment's start; sub has nlist+1
  bounds.
*/
template <typename V>
static __device__ __forceinline__ void SegMergePlaces(const PetscCount *__restrict__ sub, PetscInt nlist, int t, PetscCount from, PetscCount to, const PetscInt *kin, const V *vin, PetscInt *kout, V *vout)
{
  const PetscCount origin = sub[0];
  PetscCount       i, at = from;

  if (from >= to) return;
  {
    /* the last list that starts at or before from */
    PetscInt lo = 0, hi = nlist;

    while (hi - lo > 1) {
      const PetscInt mid = lo + (hi - lo) / 2;

      if (sub[mid] - origin <= from)
        lo = mid;
      else
        hi = mid;
    }
    i = lo >> (t + 1);
  }
  for (; at < to; i++) {
    const PetscCount l0 = i << (t + 1), l1 = l0 + ((PetscCount)1 << t), l2 = l1 + ((PetscCount)1 << t);
    const PetscCount begin = sub[l0 < nlist ? l0 : nlist] - origin, middle = sub[l1 < nlist ? l1 : nlist] - origin, end = sub[l2 < nlist ? l2 : nlist] - origin;
    const PetscCount stop = end < to ? end : to;

    if (at >= end) continue;
    {
      const PetscInt  *ka = kin + begin, *kb = kin + middle;
      const PetscCount na = middle - begin, nb = end - middle, diagonal = at - begin;
      PetscCount       a = diagonal > nb ? diagonal - nb : 0, high = diagonal < na ? diagonal : na, b;

      while (a < high) {
        const PetscCount mid = a + (high - a) / 2;

        if (ka[mid] <= kb[diagonal - 1 - mid])
          a = mid + 1;
        else
          high = mid;
      }
      b = diagonal - a;
      for (; at < stop; at++) {
        const bool       left = b >= nb || (a < na && ka[a] <= kb[b]);
        const PetscCount src  = left ? begin + a : middle + b;

        kout[at] = kin[src];
        vout[at] = vin[src];
        a += left;
        b += !left;
      }
    }
  }
}

static __device__ __forceinline__ int SegMergeRounds(PetscInt nlist)
{
  int t = 0;

  while (((PetscCount)1 << t) < nlist) t++;
  return t;
}

/* segments of at most CAPACITY pairs and more than least: group N each, all rounds in shared memory */
template <int N, int CAPACITY>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) SegMergeShared(PetscInt nseg, PetscCount least, const PetscInt *__restrict__ segptr, const PetscCount *__restrict__ subptr, const PetscInt *__restrict__ key, const PetscCount *__restrict__ value, PetscInt *__restrict__ keyout, PetscCount *__restrict__ valueout)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(PetscInt, shared);
  PetscInt       *k0 = shared + (size_t)G::index() * 2 * CAPACITY, *k1 = k0 + CAPACITY;
  unsigned short *v0 = (unsigned short *)(shared + (size_t)G::GROUPS * 2 * CAPACITY) + (size_t)G::index() * 2 * CAPACITY, *v1 = v0 + CAPACITY;

  for (PetscCount s = (PetscCount)blockIdx.x * G::GROUPS + G::index(); s < nseg; s += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt    nlist = segptr[s + 1] - segptr[s];
    const PetscCount *sub   = subptr + segptr[s];
    const PetscCount  begin = sub[0], n = sub[nlist] - begin;
    const int         each = (int)((n + N - 1) / N);

    if (n > CAPACITY || n <= least) continue;
    for (int p = G::rank(); p < n; p += N) {
      k0[p] = key[begin + p];
      v0[p] = (unsigned short)p;
    }
    G::sync();
    for (int t = 0, rounds = SegMergeRounds(nlist); t < rounds; t++) {
      const PetscCount from = HybMin()((PetscCount)G::rank() * each, n), to = HybMin()(from + each, n);

      if (t & 1)
        SegMergePlaces(sub, nlist, t, from, to, k1, v1, k0, v0);
      else
        SegMergePlaces(sub, nlist, t, from, to, k0, v0, k1, v1);
      G::sync();
    }
    {
      const bool            odd = SegMergeRounds(nlist) & 1;
      const PetscInt       *k   = odd ? k1 : k0;
      const unsigned short *v   = odd ? v1 : v0;

      for (int p = G::rank(); p < n; p += N) {
        keyout[begin + p]   = k[p];
        valueout[begin + p] = value[begin + v[p]];
      }
    }
    G::sync();
  }
}

/* one round over the long segments: place q of all of them laid end to end, start[s] = places before segment s */
__global__ void __launch_bounds__(SEGMERGE_THREADS) SegMergeRound(PetscInt nseg, const PetscCount *__restrict__ start, const PetscInt *__restrict__ segptr, const PetscCount *__restrict__ subptr, int t, const PetscInt *__restrict__ kin, const PetscCount *__restrict__ vin, PetscInt *__restrict__ kout, PetscCount *__restrict__ vout)
{
  const PetscCount all    = start[nseg];
  const PetscCount stride = (PetscCount)gridDim.x * SEGMERGE_THREADS * SEGMERGE_EACH;

  for (PetscCount q0 = ((PetscCount)blockIdx.x * SEGMERGE_THREADS + threadIdx.x) * SEGMERGE_EACH; q0 < all; q0 += stride) {
    const PetscCount q1 = HybMin()(q0 + SEGMERGE_EACH, all);
    PetscInt         lo = 0, hi = nseg;
    PetscCount       q = q0;

    /* the last segment with start <= q: empty ones in between are passed over */
    while (hi - lo > 1) {
      const PetscInt mid = lo + (hi - lo) / 2;

      if (start[mid] <= q)
        lo = mid;
      else
        hi = mid;
    }
    for (PetscInt s = lo; q < q1; s++) {
      const PetscCount  stop = HybMin()(start[s + 1], q1);
      const PetscCount *sub  = subptr + segptr[s];

      if (q < stop) SegMergePlaces(sub, segptr[s + 1] - segptr[s], t, q - start[s], stop - start[s], kin + sub[0], vin + sub[0], kout + sub[0], vout + sub[0]);
      q = HybMax()(q, stop);
    }
  }
}

PetscErrorCode HybSegMergeBounded(const HybExec *exec, HybArena *work, PetscInt nseg, const PetscInt *segptr, const PetscCount *subptr, PetscCount npairs, PetscInt maxlists, PetscCount longest, const PetscInt *key, const PetscCount *value, PetscInt *keyout, PetscCount *valueout)
{
  const size_t pair = 2 * (sizeof(PetscInt) + sizeof(unsigned short));

  PetscFunctionBegin;
  HYB_LAUNCH((SegMergeShared<32, SEGMERGE_WARP>), PetscMin(HybBlocks(nseg, 4), 65536), 128, 4 * SEGMERGE_WARP * pair, exec->stream, nseg, (PetscCount)0, segptr, subptr, key, value, keyout, valueout);
  if (longest > SEGMERGE_WARP) HYB_LAUNCH((SegMergeShared<256, SEGMERGE_BLOCK>), PetscMin((PetscCount)nseg, 65536), 256, SEGMERGE_BLOCK * pair, exec->stream, nseg, (PetscCount)SEGMERGE_WARP, segptr, subptr, key, value, keyout, valueout);
  if (longest > SEGMERGE_BLOCK) {
    const PetscCount  grid = PetscMin(HybBlocks(npairs, SEGMERGE_THREADS * SEGMERGE_EACH), 8192);
    PetscCount       *start, *vtmp;
    PetscInt         *ktmp;
    const PetscInt   *kin    = key;
    const PetscCount *vin    = value;
    int               rounds = 1; /* of a single list, one that copies it */

    while (((PetscCount)1 << rounds) < maxlists) rounds++;
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)nseg + 1, sizeof(PetscCount), &start));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, npairs, sizeof(PetscInt), &ktmp));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, npairs, sizeof(PetscCount), &vtmp));
    /* lengths of the segments that the grid merges, 0 for others */
    HYB_FOR_EACH(exec, nseg, [=] __device__(PetscCount s) {
      const PetscCount n = subptr[segptr[s + 1]] - subptr[segptr[s]];

      start[s] = n > SEGMERGE_BLOCK ? n : 0;
    });
    PetscCall(HybScanCounts64(exec, work, nseg, start, start, NULL, NULL));
    /* the last round writes the output; a segment with fewer lists is copied in the rounds that it does not need */
    for (int t = 0; t < rounds; t++) {
      PetscInt   *ko = (rounds - t) & 1 ? keyout : ktmp;
      PetscCount *vo = (rounds - t) & 1 ? valueout : vtmp;

      HYB_LAUNCH(SegMergeRound, grid, SEGMERGE_THREADS, 0, exec->stream, nseg, start, segptr, subptr, t, kin, vin, ko, vo);
      kin = ko;
      vin = vo;
    }
    PetscCall(HybArenaFree(work, &start, &ktmp, &vtmp));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
