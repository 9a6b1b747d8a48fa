/*
  pairs.cuh: which tiles of A meet which of B, in a row of tiles of C, and what is known of that row in shared memory.
*/
#ifndef AIJHYBRIDGPU_TILEPAIRS_CUH
#define AIJHYBRIDGPU_TILEPAIRS_CUH
#include "../../device/hybgroup.cuh"
#include "tile.cuh"

#define TILE_WORD  (sizeof(unsigned) + sizeof(unsigned short))
#define TILE_ENTRY (sizeof(uint64_t) + sizeof(unsigned)) /* bytes a tile of C: its map, and its next task */
#define TILE_AHEAD 4                                     /* steps along the pairs that are under way together */

/* whose tiles, packed, meet whose; ptr: where rows of tiles begin */
struct TilePairs {
  PetscInt              rows, m;
  const PetscInt       *aptr, *bptr;
  const HybTile        *a, *b;
  const unsigned short *amask, *bmask;
};

/* what a tile of A has to do with a row of tiles of B */
struct TileMeets {
  PetscInt from, len;
  unsigned columns; /* of A's tile, eight bits: rows of B's */
};

static __device__ __forceinline__ TileMeets TileMeetsOf(const TilePairs &x, PetscInt a)
{
  const PetscInt K = (PetscInt)x.a[a].column, from = x.bptr[K];

  return {from, x.bptr[K + 1] - from, (unsigned)x.amask[a] >> 8};
}

/* For each pair of a row of n tiles: see(meets, column, k, p), k: which tile of A, p: tile of B, meets: whether their
   boolean product is not empty, false beyond the last. By all threads of the group, those of a warp together. A warp
   takes as many tiles of A as it has lanes, or its share if these are few, and its lanes go along the pairs of all of
   them, A's tiles ascending. Pairs of a row of tiles are counted by a PetscInt: its tiles of A name different rows of
   B's, so that they are no more than B has tiles, and lanes go less than HYB_ENTRIES_BEYOND beyond. */
template <int G, typename F>
static __device__ __forceinline__ void TileEachPair(const TilePairs &x, PetscInt first, PetscInt n, F see)
{
  constexpr int  L = G < HYB_WARP ? G : HYB_WARP, WARPS = G / L;
  const unsigned mask = HybSubwarpMask<L>();
  const int      lane = HybLane() & (L - 1);
  const PetscInt most = WARPS == 1 ? L : HybMin()((n + WARPS - 1) / WARPS, (PetscInt)L);

  for (PetscInt k0 = HybGroup<G>::rank() / L * most; k0 < n; k0 += WARPS * most) {
    TileMeets my = {0, 0, 0};
    PetscInt  all;

    if (lane < most && lane < n - k0) my = TileMeetsOf(x, first + k0 + lane);
    const PetscInt before = HybSubwarpExclusiveSum<L>(my.len, &all);
    for (PetscInt f0 = 0; f0 < all; f0 += TILE_AHEAD * L) {
      PetscInt p[TILE_AHEAD], column[TILE_AHEAD];
      int      k[TILE_AHEAD];
      bool     meets[TILE_AHEAD];

#pragma unroll
      for (int u = 0; u < TILE_AHEAD; u++) {
        const PetscInt f = f0 + u * L + lane;
        int            q = 0;

        /* the last tile of A whose pairs begin at f or before */
#pragma unroll
        for (int d = L / 2; d; d >>= 1)
          if (HybShfl(mask, before, q + d, L) <= f) q += d;
        k[u]                   = q;
        p[u]                   = HybShfl(mask, my.from - before, q, L) + f;
        const unsigned columns = HybShfl(mask, my.columns, q, L);

        meets[u]  = f < all && (x.bmask[p[u]] & columns);
        column[u] = f < all ? (PetscInt)x.b[p[u]].column : 0;
      }
#pragma unroll
      for (int u = 0; u < TILE_AHEAD; u++)
        if (f0 + u * L < all) see(meets[u], column[u], k0 + k[u], p[u]);
    }
  }
}

/* entry (i, j) where, for some k, A has (i, k) and B (k, j) */
static __device__ __forceinline__ uint64_t TileBoolean(uint64_t a, uint64_t b)
{
  const unsigned alow = (unsigned)a, ahigh = (unsigned)(a >> 32);
  unsigned       low = 0, high = 0;

#pragma unroll
  for (int k = 0; k < HYB_TILE; k++) {
    const unsigned row = (unsigned)(b >> (8 * k)) & 0xffu;

    /* a column of A's, a bit in each byte, times a byte: that byte for each row which has the column */
    low |= ((alow >> k) & 0x01010101u) * row;
    high |= ((ahigh >> k) & 0x01010101u) * row;
  }
  return (uint64_t)high << 32 | low;
}

/* a window of a row of tiles, in shared memory */
struct TileWindow {
  unsigned       *map;  /* of each tile of C, two words */
  unsigned       *next; /* task of each, from the row's first on */
  unsigned       *bits;
  unsigned short *before;
  PetscInt        words; /* that fit */

  __device__ __forceinline__ unsigned at(PetscInt q) const
  {
    return before[q >> 5] + (unsigned)__popc(bits[q >> 5] & ((1u << (q & 31)) - 1));
  }
};

/* as many words as leave room for all tiles that may be in them */
static __device__ __forceinline__ TileWindow TileWindowOf(char *base, PetscInt room, PetscInt words, PetscInt tiles)
{
  TileWindow w;
  PetscInt   most = tiles;

  if ((PetscCount)TILE_WORD * words + (PetscCount)TILE_ENTRY * tiles <= room)
    w.words = words;
  else if ((PetscCount)TILE_ENTRY * tiles <= room / 2)
    w.words = (PetscInt)((room - (PetscInt)TILE_ENTRY * tiles) / (PetscInt)TILE_WORD);
  else {
    w.words = (PetscInt)(room / (PetscInt)(TILE_WORD + 32 * TILE_ENTRY));
    most    = 32 * w.words;
  }
  w.map    = (unsigned *)base;
  w.next   = w.map + 2 * most;
  w.bits   = w.next + most;
  w.before = (unsigned short *)(w.bits + w.words);
  return w;
}
/* how many bits are before each word: returns all, and clears as many maps and counts */
template <int G>
static __device__ __forceinline__ int TileRanks(const TileWindow &win, PetscInt nwords, int *scratch)
{
  using Group     = HybGroup<G>;
  const int rank  = Group::rank();
  int       found = 0;

  for (PetscInt w = 0; w < nwords; w += G) {
    const int here = w + rank < nwords ? __popc(win.bits[w + rank]) : 0;
    int       all;
    const int sum = found + Group::exclusiveSum(here, scratch, &all);

    if (w + rank < nwords) win.before[w + rank] = (unsigned short)sum;
    found += all;
  }
  for (int p = rank; p < found; p += G) {
    win.map[2 * p] = win.map[2 * p + 1] = 0;
    win.next[p]                         = 0;
  }
  Group::sync();
  return found;
}
#endif
