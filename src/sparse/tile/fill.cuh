/*
  fill.cuh: what filling a row of tiles of C leaves (hybtile.h): tasks, maps, columns, and where its entries are.
*/
#ifndef AIJHYBRIDGPU_TILEFILL_CUH
#define AIJHYBRIDGPU_TILEFILL_CUH
#include "pairs.cuh"

struct TileRows {
  const PetscInt *order, *low, *words;
  PetscInt        room; /* of shared memory that a group has: words in the count, bytes in the filling */
};

struct TileFillArgs {
  TilePairs         x;
  TileRows          y;
  PetscInt          chunks; /* of C */
  const PetscInt   *chunkptr, *tilecount;
  const PetscCount *taskptr;
  PetscInt         *taskb;
  void             *task;
  bool              wide;
  PetscCount       *chunktask;
  PetscInt         *chunkrow, *afirst, *before, *column, *count /* of each row of C */;
  uint64_t         *map;
};

/* a task: tile a of its row of A's, tile b of B, tile c of C */
static __device__ __forceinline__ void TileTask(const TileFillArgs &z, PetscCount at, unsigned a, PetscInt b, unsigned c)
{
  const unsigned word = a * HYB_TILE_CHUNK + c % HYB_TILE_CHUNK;

  z.taskb[at] = b;
  if (z.wide)
    ((unsigned *)z.task)[at] = word;
  else
    ((unsigned short *)z.task)[at] = (unsigned short)word;
}

/* counts of tasks become where they begin, after done others of the row, whose first is task; found tiles of C from
   place to on. Returns all that are done now. */
template <int G>
static __device__ __forceinline__ int TileStarts(const TileFillArgs &z, const TileWindow &win, int found, int done, PetscCount task, PetscCount to, int *scratch)
{
  using Group    = HybGroup<G>;
  const int rank = Group::rank();

  for (int p = 0; p < found; p += G) {
    const int here = p + rank < found ? (int)win.next[p + rank] : 0;
    int       all;
    const int sum = done + Group::exclusiveSum(here, scratch, &all);

    if (p + rank < found) {
      win.next[p + rank] = (unsigned)sum;
      if ((to + p + rank) % HYB_TILE_CHUNK == 0) z.chunktask[(to + p + rank) / HYB_TILE_CHUNK] = task + sum;
    }
    done += all;
  }
  Group::sync();
  return done;
}

/* maps and columns of a window's tiles of C to their places */
template <int G>
static __device__ __forceinline__ void TileOut(const TileFillArgs &z, const TileWindow &win, int found, PetscInt low, PetscInt nwords, PetscCount to)
{
  for (int p = HybGroup<G>::rank(); p < found; p += G) z.map[to + p] = (uint64_t)win.map[2 * p + 1] << 32 | win.map[2 * p];
  for (PetscInt w = HybGroup<G>::rank(); w < nwords; w += G) {
    unsigned bits = win.bits[w];

    for (PetscInt p = win.before[w]; bits; bits &= bits - 1) z.column[to + p++] = low + 32 * w + __ffs((int)bits) - 1;
  }
}

/* the bits of a window's columns, and how many are before each word: returns all */
template <int G>
static __device__ __forceinline__ int TileBits(const TilePairs &x, const TileWindow &win, PetscInt first, PetscInt n, PetscInt low, PetscInt nwords, int *scratch)
{
  using Group = HybGroup<G>;

  for (PetscInt w = Group::rank(); w < nwords; w += G) win.bits[w] = 0;
  Group::sync();
  TileEachPair<G>(x, first, n, [&](bool meets, PetscInt column, PetscInt, PetscInt) {
    const PetscInt q = column - low;

    if (meets && q >= 0 && q < 32 * nwords) HybAtomicOr(&win.bits[q >> 5], 1u << (q & 31));
  });
  Group::sync();
  return TileRanks<G>(win, nwords, scratch);
}

/* the pair of A's tile a, whose map is given, and of B's tile p */
static __device__ __forceinline__ void TileTaskOf(const TileFillArgs &z, const TileWindow &win, PetscInt a, uint64_t map, PetscInt p, const HybTile &b, PetscInt low, unsigned width, PetscCount task, PetscCount place)
{
  const PetscInt d = b.column - low;

  if (d >= 0 && d < (PetscInt)width) {
    const unsigned to = win.at(d), next = win.next[to];

    TileTask(z, task + next, (unsigned)a, p, (unsigned)place + to);
    win.next[to] = next + 1;

    const uint64_t meet = TileBoolean(map, b.map);

    win.map[2 * to] |= (unsigned)meet;
    win.map[2 * to + 1] |= (unsigned)(meet >> 32);
  }
}

/* tasks to their places, those of a tile of C in the order of A's tiles: these are taken one by one, and no two tiles
   of a row of B's have one column. While one is placed the next one's row of B is loaded. */
template <int G>
static __device__ __forceinline__ void TileTasks(const TileFillArgs &z, const TileWindow &win, PetscInt first, PetscInt n, PetscInt low, unsigned width, PetscCount task, PetscCount place)
{
  using Group            = HybGroup<G>;
  const TilePairs &x     = z.x;
  constexpr int    CHUNK = G < HYB_WARP ? G : HYB_WARP;
  const int        lane = HybLane() & (CHUNK - 1), rank = Group::rank();
  const unsigned   mask = HybSubwarpMask<CHUNK>();

  for (PetscInt k0 = 0; k0 < n; k0 += CHUNK) {
    const int chunk = (int)HybMin()(n - k0, (PetscInt)CHUNK);
    TileMeets my = {0, 0, 0}, to = {0, 0, 0};
    uint64_t  map   = 0;
    HybTile   now   = {0, 0};
    unsigned  meets = 0;

    if (lane < chunk) {
      my  = TileMeetsOf(x, first + k0 + lane);
      map = x.a[first + k0 + lane].map;
    }
    for (int q = -1; q < chunk; q++) {
      const TileMeets here = to;
      const HybTile   tile = now;
      const bool      mine = q >= 0 && meets;

      if (q + 1 < chunk) {
        to.from    = HybShfl(mask, my.from, q + 1, CHUNK);
        to.len     = HybShfl(mask, my.len, q + 1, CHUNK);
        to.columns = HybShfl(mask, my.columns, q + 1, CHUNK);
        meets      = 0;
        if (rank < to.len) {
          meets = x.bmask[to.from + rank] & to.columns;
          now   = x.b[to.from + rank];
        }
      }
      if (q < 0) continue;
      const uint64_t a = HybShfl(mask, map, q, CHUNK);

      if (mine) TileTaskOf(z, win, k0 + q, a, here.from + rank, tile, low, width, task, place);
      for (PetscInt p = rank + G; p < here.len; p += G)
        if (x.bmask[here.from + p] & here.columns) TileTaskOf(z, win, k0 + q, a, here.from + p, x.b[here.from + p], low, width, task, place);
      Group::sync();
    }
  }
}

/* entries of each row of C, and how many of them are before each chunk: by the group's first lanes, eight for each
   chunk, one for each row */
template <int G>
static __device__ __forceinline__ void TileRowsOfC(const TileFillArgs &z, PetscInt R, PetscInt chunk, PetscInt n)
{
  constexpr int  L    = G < HYB_WARP ? G : HYB_WARP;
  const int      lane = HybLane() & (L - 1), i = lane & 7;
  const unsigned mask = HybSubwarpMask<L>();
  PetscInt       run  = 0;

  if (HybGroup<G>::rank() >= L) return;
  for (PetscInt c0 = 0; c0 < n; c0 += L / 8) {
    const PetscInt c     = c0 + lane / 8;
    PetscInt       count = 0, sum;

    if (c < n)
      for (int t = 0; t < HYB_TILE_CHUNK; t++) count += __popc((unsigned)(z.map[((PetscCount)chunk + c) * HYB_TILE_CHUNK + t] >> (8 * i)) & 0xffu);
    sum = count;
#pragma unroll
    for (int d = 8; d < L; d <<= 1) {
      const PetscInt up = HybShflUp(mask, sum, (unsigned)d, L);

      if (lane >= d) sum += up;
    }
    if (c < n) {
      z.before[((PetscCount)chunk + c) * HYB_TILE_CHUNK + i] = run + sum - count;
      if (i == 0) {
        z.chunkrow[chunk + c] = R;
        z.afirst[chunk + c]   = z.x.aptr[R];
      }
    }
    run += HybShfl(mask, sum, L - 8 + i, L);
  }
  if (lane < HYB_TILE && (PetscCount)R * HYB_TILE + i < z.x.m) z.count[(PetscCount)R * HYB_TILE + i] = run;
}

/* what is behind the last tile of C of row R, and its last task */
template <int G>
static __device__ __forceinline__ void TileEnd(const TileFillArgs &z, PetscInt R, PetscCount to, PetscCount task)
{
  const PetscInt chunk = z.chunkptr[R], chunks = z.chunkptr[R + 1] - chunk;

  for (PetscCount p = to + HybGroup<G>::rank(); p < ((PetscCount)chunk + chunks) * HYB_TILE_CHUNK; p += G) z.map[p] = 0;
  if (HybGroup<G>::rank() == 0 && chunks && chunk + chunks == z.chunks) {
    z.chunktask[z.chunks] = task;
    for (int t = 0; t < HYB_TILE_AHEAD; t++) TileTask(z, task + t, 0, 0, 0);
  }
  HybGroup<G>::sync();
  TileRowsOfC<G>(z, R, chunk, chunks);
}
#endif
