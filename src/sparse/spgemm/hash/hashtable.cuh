/*
  hashtable.cuh: a row's table of (block of 32 columns, mask), direct or hashed with linear probing, as hashrows.cu
  describes it: inserting, looking up, and the order of its blocks.
*/
#ifndef AIJHYBRIDGPU_HASHTABLE_CUH
#define AIJHYBRIDGPU_HASHTABLE_CUH
#include "hashargs.cuh"

template <typename G>
static __device__ __forceinline__ void HashFill(unsigned *p, unsigned n, unsigned v)
{
  /* p is aligned to 16 bytes, and room up to the next multiple of 4 words is ours */
  const unsigned      n4 = (n + 3) / 4;
  HybVec<unsigned, 4> q;

  q.v[0] = q.v[1] = q.v[2] = q.v[3] = v;
  for (unsigned k = (unsigned)G::rank(); k < n4; k += G::THREADS / G::GROUPS) HybStoreVec(p + 4 * k, q);
}

static __device__ __forceinline__ unsigned HashSlot(unsigned block, int shift)
{
  return (block * 2654435761u) >> shift;
}

/* the slot of a block, made if there is none */
static __device__ __forceinline__ unsigned HashInsert(unsigned *keys, unsigned block, int shift, unsigned wrap)
{
  for (unsigned h = HashSlot(block, shift);; h = (h + 1) & wrap) {
    unsigned k = *(volatile unsigned *)(keys + h);

    if (k == block) return h;
    if (k == HASH_EMPTY) {
      k = atomicCAS(keys + h, HASH_EMPTY, block);
      if (k == HASH_EMPTY || k == block) return h;
    }
  }
}

/* the slot of a block that is there */
static __device__ __forceinline__ unsigned HashFind(const unsigned *keys, unsigned block, int shift, unsigned wrap)
{
  unsigned h = HashSlot(block, shift);

  while (keys[h] != block) h = (h + 1) & wrap;
  return h;
}

/* log2 of slots for so many blocks: at most two thirds full, 16 at least */
static __device__ __forceinline__ int HashLogSlots(unsigned blocks)
{
  const unsigned want = blocks + blocks / 2;

  return want <= 16 ? 4 : 32 - __clz((int)(want - 1));
}

/*
  The pairs, or the columns, of a row of B: places begin to end - 1 after origin. Offsets of 32 bits are counted from 0;
  those of 64 from the row's own begin, so that cursors have 32 bits in all builds.
*/
struct HashSpan {
  PetscInt origin;
  unsigned begin, end;
};

static __device__ __forceinline__ PetscInt HashOrigin(PetscInt begin)
{
  return sizeof(PetscInt) > sizeof(unsigned) ? begin : 0;
}

/* the spans of a row's first staged entries, in shared memory: where they begin in B, and what HashSpan has for end */
struct HashSpans {
  PetscInt *first;
  unsigned *end;
  unsigned  staged;
};

/* of row c of B, which begins at begin and whose columns end before end */
static __device__ __forceinline__ unsigned HashSpanEnd(const HashArgs &x, PetscInt c, PetscInt begin, PetscInt end)
{
  return (unsigned)((x.pairs ? begin + x.npairs[c] : end) - HashOrigin(begin));
}

/* of the row of B that entry k of A's row names, which begins with entry abegin */
static __device__ __forceinline__ HashSpan HashSpanOf(const HashArgs &x, const HashSpans &s, PetscInt abegin, unsigned k)
{
  PetscInt begin;
  unsigned end;

  if (k < s.staged) {
    begin = s.first[k];
    end   = s.end[k];
  } else {
    const PetscInt c = x.aj[abegin + k];

    begin = x.bi[c];
    end   = HashSpanEnd(x, c, begin, x.bi[c + 1]);
  }
  return {HashOrigin(begin), (unsigned)(begin - HashOrigin(begin)), end};
}

/*
  Calls insert(block, mask) for every pair that the products of a row consist of, in any order: groups of 2^rowlanes
  lanes take two rows of B each, which are on their way together. Both cursors go on until the longer row ends, so that
  of the shorter one passes its end by as much. Without a sign they do not wrap: an offset and the length of a row
  together stay below 2^32 (HybCheckEntries()), and so do two lengths (HASH_LONGEST).
*/
template <typename G, int N, typename Insert>
static __device__ __forceinline__ void HashForEachPair(const HashArgs &x, PetscInt abegin, unsigned alen, int rowlanes, const HashSpans &s, Insert insert)
{
  const int      lanes  = HybMin()(rowlanes, HybLog2(N));
  const unsigned step   = 1u << lanes;
  const unsigned stride = (unsigned)N >> lanes;

  for (unsigned k = (unsigned)G::rank() >> lanes; k < alen; k += 2 * stride) {
    const bool two = k + stride < alen;
    HashSpan   s0 = HashSpanOf(x, s, abegin, k), s1 = HashSpanOf(x, s, abegin, two ? k + stride : k);

    if (!two) s1.end = 0;
    s0.begin += (unsigned)G::rank() & (step - 1);
    s1.begin += (unsigned)G::rank() & (step - 1);
    if (x.pairs) {
      for (; s0.begin < s0.end || s1.begin < s1.end; s0.begin += step, s1.begin += step) {
        HybVec<unsigned, 2> q0, q1;

        if (s0.begin < s0.end) q0 = HybLoadVec<2>(&x.pairs[s0.origin + s0.begin].block);
        if (s1.begin < s1.end) q1 = HybLoadVec<2>(&x.pairs[s1.origin + s1.begin].block);
        if (s0.begin < s0.end) insert(q0.v[0], q0.v[1]);
        if (s1.begin < s1.end) insert(q1.v[0], q1.v[1]);
      }
    } else {
      for (; s0.begin < s0.end || s1.begin < s1.end; s0.begin += step, s1.begin += step) {
        PetscInt col0 = 0, col1 = 0;

        if (s0.begin < s0.end) col0 = x.bj[s0.origin + s0.begin];
        if (s1.begin < s1.end) col1 = x.bj[s1.origin + s1.begin];
        if (s0.begin < s0.end) insert((unsigned)(col0 >> 5), 1u << (col0 & 31));
        if (s1.begin < s1.end) insert((unsigned)(col1 >> 5), 1u << (col1 & 31));
      }
    }
  }
}

/*
  The same by a sub-warp, whose lanes go along the pairs of as many rows of B as they are, so that none waits for the
  longest of these rows. Each finds its row among the sums of lengths. These are few rows (HASH_ALONGMOST), so that
  they stay below 2^31, and lanes go less than HYB_ENTRIES_BEYOND beyond.
*/
template <int N, typename Insert>
static __device__ __forceinline__ void HashForEachPairAlong(const HashArgs &x, PetscInt abegin, unsigned alen, const HashSpans &s, Insert insert)
{
  constexpr int  AHEAD = 2; /* pairs of a lane on their way together */
  const unsigned mask  = HybSubwarpMask<N>();
  const int      lane  = HybLane() & (N - 1);

  for (unsigned k0 = 0; k0 < alen; k0 += N) {
    HashSpan span = {0, 0, 0};
    unsigned all;

    if ((unsigned)lane < alen - k0) span = HashSpanOf(x, s, abegin, k0 + (unsigned)lane);
    const unsigned before = HybSubwarpExclusiveSum<N>(span.end - span.begin, &all);

    /* from where on the sums of lengths count this row's pairs */
    const PetscInt from = span.origin + span.begin - (PetscInt)before;

    for (unsigned f0 = 0; f0 < all; f0 += AHEAD * N) {
      HybVec<unsigned, 2> pair[AHEAD];

#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const unsigned f = f0 + (unsigned)(u * N + lane);
        int            q = 0;

        /* the last row whose pairs begin at f or before */
#pragma unroll
        for (int d = N / 2; d; d >>= 1)
          if (HybShfl(mask, before, q + d, N) <= f) q += d;
        const PetscInt p = HybShfl(mask, from, q, N) + (PetscInt)f;

        pair[u].v[1] = 0;
        if (f < all) {
          if (x.pairs)
            pair[u] = HybLoadVec<2>(&x.pairs[p].block);
          else {
            const PetscInt col = x.bj[p];

            pair[u].v[0] = (unsigned)(col >> 5);
            pair[u].v[1] = 1u << (col & 31);
          }
        }
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        if (pair[u].v[1]) insert(pair[u].v[0], pair[u].v[1]);
    }
  }
}

/* prefix of a direct table: each thread scans neighbouring words, an odd number of them so that banks do not collide */
template <typename G, int N>
static __device__ __forceinline__ void HashScanWords(const unsigned *mask, unsigned *prefix, unsigned words, unsigned *scratch)
{
  const unsigned each  = ((words + N - 1) / N) | 1u;
  const unsigned begin = HybMin()((unsigned)G::rank() * each, words), end = HybMin()(begin + each, words);
  unsigned       sum = 0;

  for (unsigned w = begin; w < end; w++) sum += __popc(mask[w]);
  sum = G::exclusiveSum(sum, scratch);
  for (unsigned w = begin; w < end; w++) {
    prefix[w] = sum;
    sum += __popc(mask[w]);
  }
}

/* for how many threads of the group before this one the flag is set, and for how many in all */
template <typename G, int N>
static __device__ __forceinline__ unsigned HashFlagged(bool flag, unsigned *scratch, unsigned *total)
{
  if constexpr (G::SUBWARP) {
    const unsigned who = __ballot_sync(HybSubwarpMask<N>(), flag) & HybSubwarpMask<N>();

    *total = (unsigned)__popc(who);
    return (unsigned)__popc(who & HybLanesBelow());
  } else
    return G::exclusiveSum(flag ? 1u : 0u, scratch, total);
}

/*
  The order of n different blocks (list: block << 32 | what is wanted of it) by a bit for each block of their span: a
  block's place is the number of bits before its own. *order: what is wanted, in that order, behind list in its room.
  false where a pairwise comparison of few, or a sort of blocks far apart, costs less, or the room does not do.
*/
template <typename G, int N>
static __device__ __forceinline__ bool HashOrderByBits(unsigned long long *list, unsigned n, unsigned room, unsigned **order, unsigned *scratch)
{
  unsigned *const bits = (unsigned *)(list + n);
  unsigned        lo = HASH_EMPTY, hi = 0;

  if (n <= HASH_FEWBLOCKS || 12 * n + 8 > room) return false;
  for (unsigned e = (unsigned)G::rank(); e < n; e += N) {
    lo = HybMin()(lo, (unsigned)(list[e] >> 32));
    hi = HybMax()(hi, (unsigned)(list[e] >> 32));
  }
  lo = G::reduce(lo, scratch, HybMin());
  hi = G::reduce(hi, scratch, HybMax());

  const unsigned  words  = (hi - lo) / 32 + 1;
  unsigned *const before = bits + words, *const to = before + words;

  if (words > HASH_FARBLOCKS * n || 12 * n + 8 * words > room) return false;
  for (unsigned w = (unsigned)G::rank(); w < words; w += N) bits[w] = 0;
  G::sync();
  for (unsigned e = (unsigned)G::rank(); e < n; e += N) {
    const unsigned at = (unsigned)(list[e] >> 32) - lo;

    atomicOr(bits + at / 32, 1u << (at & 31));
  }
  G::sync();
  HashScanWords<G, N>(bits, before, words, scratch);
  G::sync();
  for (unsigned e = (unsigned)G::rank(); e < n; e += N) {
    const unsigned at = (unsigned)(list[e] >> 32) - lo;

    to[before[at / 32] + (unsigned)__popc(bits[at / 32] & ((1u << (at & 31)) - 1u))] = (unsigned)list[e];
  }
  G::sync();
  *order = to;
  return true;
}

/* prefix of a hashed table: bits in all blocks that come before; list is room for 8 bytes a block, and for so many in
   all */
template <typename G, int N>
static __device__ __forceinline__ void HashOrderSlots(const unsigned *keys, const unsigned *mask, unsigned *prefix, unsigned slots, unsigned long long *list, unsigned room, unsigned *scratch)
{
  unsigned blocks = 0, *order = nullptr;
  bool     ordered = false;

  /* list: block << 32 | slot << 6 | bits of the mask */
  for (unsigned s0 = 0; s0 < slots; s0 += N) {
    const unsigned s    = s0 + (unsigned)G::rank();
    const bool     used = s < slots && keys[s] != HASH_EMPTY;
    unsigned       total;
    const unsigned place = blocks + G::exclusiveSum(used ? 1u : 0u, scratch, &total);

    if (used) list[place] = (unsigned long long)keys[s] << 32 | s << 6 | (unsigned)__popc(mask[s]);
    blocks += total;
  }
  G::sync();
  /* wider blocks would need more registers for it than leave room for two of them */
  if constexpr (N <= 128) ordered = HashOrderByBits<G, N>(list, blocks, room, &order, scratch);
  if (ordered) {
    const unsigned each  = ((blocks + N - 1) / N) | 1u;
    const unsigned begin = HybMin()((unsigned)G::rank() * each, blocks), end = HybMin()(begin + each, blocks);
    unsigned       sum = 0;

    for (unsigned e = begin; e < end; e++) sum += order[e] & 63u;
    sum = G::exclusiveSum(sum, scratch);
    for (unsigned e = begin; e < end; e++) {
      prefix[order[e] >> 6] = sum;
      sum += order[e] & 63u;
    }
  } else if (blocks <= 2 * HYB_WARP) {
    for (unsigned e = (unsigned)G::rank(); e < blocks; e += N) {
      const unsigned long long mine = list[e];
      unsigned                 sum  = 0;

      for (unsigned q = 0; q < blocks; q++) {
        const unsigned long long other = list[q];

        sum += other < mine ? (unsigned)other & 63u : 0u;
      }
      prefix[(unsigned)mine >> 6] = sum;
    }
  } else {
    const unsigned each  = ((blocks + N - 1) / N) | 1u;
    const unsigned begin = HybMin()((unsigned)G::rank() * each, blocks), end = HybMin()(begin + each, blocks);
    unsigned       sum = 0;

    HybGroupSort<N>(list, blocks);
    for (unsigned e = begin; e < end; e++) sum += (unsigned)list[e] & 63u;
    sum = G::exclusiveSum(sum, scratch);
    for (unsigned e = begin; e < end; e++) {
      prefix[(unsigned)list[e] >> 6] = sum;
      sum += (unsigned)list[e] & 63u;
    }
  }
}

/* 32 bits, and how many are set in all words before */
struct alignas(8) HashWord {
  unsigned bits, before;
};

/* bits set before this one */
static __device__ __forceinline__ unsigned HashBefore(HashWord w, unsigned bit)
{
  return w.before + (unsigned)__popc(w.bits & ((1u << (bit & 31)) - 1u));
}

/* direct: masks and prefixes of neighbouring blocks; hashed: of slots, whose keys are blocks; ranked (shift is
   HASH_NOSHIFT): words of bits, one for each block of the span, which say which of the words of columns is the
   block's, and stand in the place of masks and prefixes */
#define HASH_NOSHIFT 33
struct HashTable {
  unsigned *mask, *prefix, *keys;
  unsigned  base, wrap;
  int       shift;
};

/* places of columns that the row has; in tables that are not hashed they are counted from 32 base on */
static __device__ __forceinline__ PetscInt HashRankedPlace(const HashTable &t, PetscInt col)
{
  const unsigned block = (unsigned)(col >> 5);

  return (PetscInt)HashBefore(((const HashWord *)t.prefix)[HashBefore(((const HashWord *)t.mask)[block / 32], block)], (unsigned)col);
}

static __device__ __forceinline__ PetscInt HashSlotPlace(const HashTable &t, unsigned s, PetscInt col)
{
  return (PetscInt)(t.prefix[s] + (unsigned)__popc(t.mask[s] & ((1u << (col & 31)) - 1u)));
}

static __device__ __forceinline__ PetscInt HashPlace(const HashTable &t, PetscInt col)
{
  if (t.shift == HASH_NOSHIFT) return HashRankedPlace(t, col - ((PetscInt)t.base << 5));
  return HashSlotPlace(t, t.keys ? HashFind(t.keys, (unsigned)(col >> 5), t.shift, t.wrap) : (unsigned)(col >> 5) - t.base, col);
}

/* The ranked table of a row whose columns are known, in ascending order; the words of blocks are zero. The group
   synchronises before and after. */
template <typename G, int N>
static __device__ __forceinline__ void HashRank(const HashTable &t, const PetscInt *cj, unsigned nnz, unsigned *scratch)
{
  HashWord *const blocks = (HashWord *)t.mask, *const columns = (HashWord *)t.prefix;
  unsigned before = 0, met; /* blocks */

  for (unsigned e0 = 0; e0 < nnz; e0 += N) {
    const unsigned e     = e0 + (unsigned)G::rank();
    unsigned       block = 0, last = 0, bit = 0;

    if (e < nnz) {
      const PetscInt col = cj[e];

      block = (unsigned)(col >> 5) - t.base;
      bit   = 1u << (col & 31);
      last  = e ? (unsigned)(cj[e - 1] >> 5) - t.base : HASH_EMPTY;
    }
    const bool     head = block != last;
    const unsigned rank = before + HashFlagged<G, N>(head, scratch, &met);

    if (head) {
      columns[rank] = {bit, e};
      atomicOr(&blocks[block / 32].bits, 1u << (block & 31));
      if (block / 32 != last / 32) blocks[block / 32].before = rank;
    }
    G::sync();
    if (e < nnz && !head) atomicOr(&columns[rank - 1].bits, bit);
    before += met;
  }
}

#endif
