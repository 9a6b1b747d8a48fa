/*
  segmerge.c: the segmented merge on the host, by balanced pairwise rounds.

  Idea. A segment of q sorted lists becomes one by ceil(log2 q) rounds; round t merges neighbours of round t-1 two by
  two. Each round moves every pair once, walks memory forwards, and keeps the order of the lists, so equal keys stay in
  the order of their lists: the left one goes first.

    for each segment s
      lists = its non-empty sub-segments
      while more than one list
        merge lists 2k and 2k+1 into list k of the other buffer, for all k; an odd one out is copied
      (buffers are chosen so that the last round writes the output)

  The two-way merge has no branch on the data: which side gives the next pair is added to the two positions. Where the
  left list ends before the right one begins (bands, blocks, already sorted data) the merge is two copies.

  Memory: one buffer of the longest segment, and the list ends of the segment with most sub-segments. Time: O(N log q),
  N pairs.
  Counters: "segments" (of more than one list), "merge rounds" (the most of any segment), "pairs moved".

  Reference: Ji, Lu, Hou, Wang, Liu, Segmented merge: a new primitive for parallel sparse matrix computations, IJPP 49
  (2021).
*/
#include "segmerge.h"

static inline void HybMergeCopy(PetscCount n, const PetscInt *key, const PetscCount *value, PetscInt *keyout, PetscCount *valueout)
{
  if (n) {
    memcpy(keyout, key, (size_t)n * sizeof(*key));
    memcpy(valueout, value, (size_t)n * sizeof(*value));
  }
}

/* both lists hold something; the left one goes first among equals */
static void HybMergeTwo(const PetscInt *ka, const PetscCount *va, PetscCount na, const PetscInt *kb, const PetscCount *vb, PetscCount nb, PetscInt *keyout, PetscCount *valueout)
{
  PetscCount a = 0, b = 0;

  if (ka[na - 1] > kb[0]) {
    while (a < na && b < nb) {
      const PetscInt right = kb[b] < ka[a];

      *keyout++   = right ? kb[b] : ka[a];
      *valueout++ = right ? vb[b] : va[a];
      a += !right;
      b += right;
    }
  }
  HybMergeCopy(na - a, ka + a, va + a, keyout, valueout);
  HybMergeCopy(nb - b, kb + b, vb + b, keyout + (na - a), valueout + (na - a));
}

PetscErrorCode HybSegMerge(HybArena *work, PetscInt nseg, const PetscInt *segptr, PetscInt nsub, const PetscCount *subptr, const PetscInt *key, const PetscCount *value, PetscInt *keyout, PetscCount *valueout, HybCounters *counters)
{
  PetscInt    mostsub = 0, mostrounds = 0, segments = 0;
  PetscCount  longest = 0, moved = 0, *valuetmp = NULL, *end;
  PetscInt   *keytmp = NULL;
  HybCounters unused;

  PetscFunctionBegin;
  for (PetscInt s = 0; s < nseg; s++) {
    const PetscCount length = subptr[segptr[s + 1]] - subptr[segptr[s]];
    PetscInt         lists  = 0;

    for (PetscInt q = segptr[s]; q < segptr[s + 1]; q++) lists += subptr[q + 1] > subptr[q];
    mostsub = PetscMax(mostsub, lists);
    /* two lists go straight to the output */
    if (lists > 2) longest = PetscMax(longest, length);
  }
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)mostsub + 1, sizeof(PetscCount), &end));
  if (longest) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, longest, sizeof(PetscInt), &keytmp));
    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, longest, sizeof(PetscCount), &valuetmp));
  }
  for (PetscInt s = 0; s < nseg; s++) {
    const PetscCount  start = subptr[segptr[s]];
    const PetscInt   *kin   = key + start;
    const PetscCount *vin   = value + start;
    PetscInt          lists = 0, rounds = 0;

    end[0] = 0;
    for (PetscInt q = segptr[s]; q < segptr[s + 1]; q++) {
      if (subptr[q + 1] > subptr[q]) end[++lists] = subptr[q + 1] - start;
    }
    if (lists < 2) {
      HybMergeCopy(end[lists], kin, vin, keyout + start, valueout + start);
      continue;
    }
    while (((PetscInt64)1 << rounds) < lists) rounds++;
    segments++;
    mostrounds = PetscMax(mostrounds, rounds);
    moved += rounds * end[lists];
    for (PetscInt left = rounds; left > 0; left--) {
      /* the last round, and every second one before it, writes the output */
      PetscInt   *kout   = left % 2 ? keyout + start : keytmp;
      PetscCount *vout   = left % 2 ? valueout + start : valuetmp;
      PetscInt    merged = 0;

      for (PetscCount q = 0; q < lists; q += 2) {
        const PetscCount lo = end[q], mid = end[q + 1];

        if (q + 1 < lists) {
          const PetscCount hi = end[q + 2];

          HybMergeTwo(kin + lo, vin + lo, mid - lo, kin + mid, vin + mid, hi - mid, kout + lo, vout + lo);
          end[++merged] = hi;
        } else {
          HybMergeCopy(mid - lo, kin + lo, vin + lo, kout + lo, vout + lo);
          end[++merged] = mid;
        }
      }
      lists = merged;
      kin   = kout;
      vin   = vout;
    }
  }
  PetscCall(HybArenaFree(work, &keytmp, &valuetmp, &end));
  if (!counters) {
    unused.n = 0;
    counters = &unused;
  }
  PetscCall(HybCountersAdd(counters, "segments", segments));
  PetscCall(HybCountersSet(counters, "merge rounds", PetscMax((PetscCount)mostrounds, HybCountersGet(counters, "merge rounds"))));
  PetscCall(HybCountersAdd(counters, "pairs moved", moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}
