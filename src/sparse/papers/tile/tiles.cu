/*
  tiles.cu: CSR to tiles of 8 x 8 (tile.cuh).

  A warp takes a row of tiles and goes along its entries twice, all lanes at once, with what it knows in shared memory:

    the bits of the columns of tiles that have entries; which tile a column is: the number of bits below its own
    the map of each tile, by "or"

  Entries that a row has in one tile are neighbours and have one bit of the first kind, which the first of them sets.

  Where a row of tiles spans more columns than there are bits, eight lanes take its rows, which are sorted. The next
  tile is the smallest one that any of their next entries is in; each lane takes what its row has in there, so that
  there are as many steps as tiles. Rows of more than TILES_LONG entries are left to blocks of threads, which go through
  windows of TILES_WINDOW columns of tiles with all maps of them in shared memory.

  Packing moves the tiles together: sixteen lanes a row of tiles copy them, in turn. Then a warp goes along a row of
  tiles, eight lanes for eight rows: where the entries of each begin in each tile, and which there are.

  Memory: 64 bytes a tile, and 18 during a first product; until tiles are packed 18 for each entry, as many tiles as
  there might be. Complexity: two passes over the pattern, two over the tiles.

  Paper: O. Zachariadis, N. Satpute, J. Gomez-Luna, J. Olivares, Accelerating sparse matrix-matrix multiplication with
  GPU Tensor Cores, Computers and Electrical Engineering 88 (2020). There conversion is not part of the method's time.
*/
#include "../../device/hybdevice.cuh"
#include "tile.cuh"

#define TILES_THREADS      256
#define TILES_LONG         1536 /* entries of a row of tiles */
#define TILES_WINDOW       2048 /* columns of tiles */
#define TILES_WORDS        256  /* of 32 columns of tiles each, and */
#define TILES_FOUND        256  /* tiles that a warp has room for */
#define TILES_EACH         (TILES_WINDOW / TILES_THREADS)
#define TILES_PACK         16 /* lanes a row of tiles that are packed */
#define TILES_PAIRS_A_WORD 64 /* so many pairs count as a word */
#define TILES_NONE         0xffffffffu

static_assert(HYB_TILE == 8, "a tile's map is one word of 64 bits");
static_assert(32 * TILES_WORDS <= 65536, "a warp's columns of tiles have 16 bits");

struct TilesArgs {
  PetscInt        m;
  const PetscInt *i, *j;
  HybTiles        t;
};

struct TilesOr {
  __device__ __forceinline__ unsigned operator()(unsigned a, unsigned b) const
  {
    return a | b;
  }
};

/* where the entries of a row of tiles begin, and how many they are */
static __device__ __forceinline__ PetscInt TilesRow(const TilesArgs &x, PetscCount R, PetscInt *n)
{
  const PetscInt first = x.i[R * HYB_TILE];

  *n = x.i[HybMin()((R + 1) * HYB_TILE, (PetscCount)x.m)] - first;
  return first;
}

/* a row of tiles by eight lanes, which take its rows, tile by tile */
static __device__ __forceinline__ void TilesMerge(const TilesArgs &x, PetscCount R)
{
  const int        lane = HybLane() & 7;
  const unsigned   mask = HybSubwarpMask<8>();
  const PetscCount r    = R * HYB_TILE + lane;
  PetscInt         all, tiles = 0, t;
  const PetscInt   begin = TilesRow(x, R, &all);
  PetscInt         e = r < x.m ? x.i[r] : 0, end = r < x.m ? x.i[r + 1] : 0, c = e < end ? x.j[e] : 0;

  while ((t = HybSubwarpMin<8>(e < end ? c / HYB_TILE : PETSC_MAX_INT)) != PETSC_MAX_INT) {
    unsigned bits = 0;

    while (e < end && c / HYB_TILE == t) {
      bits |= 1u << (c % HYB_TILE);
      e++;
      if (e < end) c = x.j[e];
    }
    const unsigned columns = HybSubwarpReduce<8>(bits, TilesOr()), rows = (__ballot_sync(mask, bits != 0) >> (HybLane() & ~7)) & 0xffu;
    HybTile       *to = x.t.tile + begin + tiles;

    ((unsigned char *)&to->map)[lane] = (unsigned char)bits; /* the lowest byte is the first in memory */
    if (lane == 0) {
      to->column              = t;
      x.t.mask[begin + tiles] = (unsigned short)(rows | columns << 8);
    }
    tiles++;
  }
  if (lane == 0) x.t.count[R] = tiles;
}

/* rows and columns of a map that have entries */
static __device__ __forceinline__ unsigned TilesMask(unsigned low, unsigned high)
{
  unsigned columns = low | high, rows = 0;

  columns |= columns >> 16;
  columns = (columns | columns >> 8) & 0xffu;
#pragma unroll
  for (int r = 0; r < HYB_TILE; r++) rows |= (((r < 4 ? low : high) >> (r % 4 * 8)) & 0xffu) ? 1u << r : 0u;
  return rows | columns << 8;
}

/* what a warp has of its row of tiles in shared memory */
struct TilesRoom {
  unsigned       bits[TILES_WORDS], map[2 * TILES_FOUND];
  unsigned short before[TILES_WORDS], column[TILES_FOUND];
};

/* the entries of a row of tiles, by a warp: see(there, row, column), by all lanes, also those that have none */
template <typename F>
static __device__ __forceinline__ void TilesEntries(const TilesArgs &x, PetscInt begin, PetscInt all, const PetscInt end[HYB_TILE - 1], F see)
{
  constexpr int UNDER = 4; /* loads on their way together */

  for (PetscInt e0 = 0; e0 < all; e0 += UNDER * HYB_WARP) {
    PetscInt c[UNDER];

#pragma unroll
    for (int u = 0; u < UNDER; u++) c[u] = e0 + u * HYB_WARP + HybLane() < all ? x.j[begin + e0 + u * HYB_WARP + HybLane()] : 0;
#pragma unroll
    for (int u = 0; u < UNDER; u++) {
      if (e0 + u * HYB_WARP >= all) break;

      const PetscInt e = e0 + u * HYB_WARP + HybLane();
      int            r = 0;

#pragma unroll
      for (int k = 0; k < HYB_TILE - 1; k++) r += begin + e >= end[k];
      see(e < all, r, c[u]);
    }
  }
}

/* A row of tiles by a warp, with the bits of its columns in shared memory. Those that span more columns than these, and
   may have company, are left to others: their count is -1. */
static __global__ __launch_bounds__(TILES_THREADS) void TilesShort(TilesArgs x)
{
  HYB_SHARED(TilesRoom, room, TILES_THREADS / HYB_WARP);
  const int        lane = HybLane();
  const PetscCount R = (PetscCount)blockIdx.x * (TILES_THREADS / HYB_WARP) + threadIdx.x / HYB_WARP, r = R * HYB_TILE + lane;
  TilesRoom       &my = room[threadIdx.x / HYB_WARP];
  PetscInt         all, end[HYB_TILE - 1], least = PETSC_MAX_INT, last = -1, n = 0;

  if (R >= x.t.rows) return;
  const PetscInt begin = TilesRow(x, R, &all);

  if (all > TILES_LONG) return;
  if (lane < HYB_TILE && r < x.m && x.i[r + 1] > x.i[r]) {
    least = x.j[x.i[r]] / HYB_TILE;
    last  = x.j[x.i[r + 1] - 1] / HYB_TILE;
  }
  least                = HybSubwarpMin<HYB_WARP>(least);
  last                 = HybSubwarpMax<HYB_WARP>(last);
  const PetscInt words = last < 0 ? 0 : (last - least) / 32 + 1;

  if (words > TILES_WORDS) {
    if (lane == 0) x.t.count[R] = -1;
    return;
  }
#pragma unroll
  for (int k = 0; k < HYB_TILE - 1; k++) end[k] = x.i[HybMin()(R * HYB_TILE + k + 1, (PetscCount)x.m)];
  for (int w = lane; w < words; w += HYB_WARP) my.bits[w] = 0;
  __syncwarp();
  TilesEntries(x, begin, all, end, [&](bool there, int, PetscInt c) {
    const unsigned t = there ? (unsigned)(c / HYB_TILE - least) : TILES_NONE, before = HybShflUp(HYB_FULL_MASK, t, 1);

    if (there && (lane == 0 || before != t)) HybAtomicOr(&my.bits[t / 32], 1u << (t % 32));
  });
  __syncwarp();
  for (int w = 0; w < words; w += HYB_WARP) {
    PetscInt       here = w + lane < words ? __popc(my.bits[w + lane]) : 0, sum;
    const PetscInt at   = n + HybSubwarpExclusiveSum<HYB_WARP>(here, &sum);

    if (w + lane < words) my.before[w + lane] = (unsigned short)at;
    n += sum;
  }
  if (n > TILES_FOUND) {
    if (lane < HYB_TILE) TilesMerge(x, R);
    return;
  }
  for (int k = lane; k < 2 * n; k += HYB_WARP) my.map[k] = 0;
  __syncwarp();
  TilesEntries(x, begin, all, end, [&](bool there, int row, PetscInt c) {
    if (!there) return;
    const unsigned t = (unsigned)(c / HYB_TILE - least);
    const int      k = my.before[t / 32] + __popc(my.bits[t / 32] & ((1u << (t % 32)) - 1));

    HybAtomicOr(&my.map[2 * k + row / 4], 1u << (row % 4 * 8 + c % HYB_TILE));
    my.column[k] = (unsigned short)t;
  });
  __syncwarp();
  for (int k = lane; k < n; k += HYB_WARP) {
    const unsigned low = my.map[2 * k], high = my.map[2 * k + 1];

    x.t.tile[begin + k] = {(uint64_t)high << 32 | low, least + my.column[k]};
    x.t.mask[begin + k] = (unsigned short)TilesMask(low, high);
  }
  if (lane == 0) x.t.count[R] = n;
}

/* those whose count is -1, by eight lanes each */
static __global__ __launch_bounds__(TILES_THREADS) void TilesWide(TilesArgs x)
{
  const PetscCount R = ((PetscCount)blockIdx.x * TILES_THREADS + threadIdx.x) / 8;
  PetscInt         all;

  if (R >= x.t.rows) return;
  (void)TilesRow(x, R, &all);
  if (all <= TILES_LONG && x.t.count[R] < 0) TilesMerge(x, R);
}

/* The entries of row r from cursor on that lie before column t of tiles, by all threads: see() gets each. Returns their
   number, when all have been seen: a barrier */
template <typename F>
static __device__ __forceinline__ PetscInt TilesBefore(const TilesArgs &x, PetscInt cursor, PetscInt end, PetscCount t, F see)
{
  for (PetscInt e = cursor;; e += TILES_THREADS) {
    const bool in = threadIdx.x < (unsigned)HybMax()(HybMin()(end - e, (PetscInt)TILES_THREADS), (PetscInt)0) && x.j[e + (PetscInt)threadIdx.x] / HYB_TILE < t;

    if (in) see(e + (PetscInt)threadIdx.x);
    const int n = __syncthreads_count(in);
    if (n < TILES_THREADS) return e - cursor + n;
  }
}

/* a window's tiles, from the maps in shared memory: each thread has TILES_EACH of them in a row */
static __device__ void TilesWindow(const TilesArgs &x, PetscCount t0, PetscInt begin, const unsigned *map, PetscInt *scratch, PetscInt *tiles)
{
  const int mine = (int)threadIdx.x * TILES_EACH;
  PetscInt  n    = 0, alltiles;

  for (int k = mine; k < mine + TILES_EACH; k++) n += (map[2 * k] | map[2 * k + 1]) != 0;
  PetscInt at = begin + *tiles + HybBlockExclusiveSum<TILES_THREADS>(n, scratch, &alltiles);
  for (int k = mine; k < mine + TILES_EACH; k++) {
    if (!(map[2 * k] | map[2 * k + 1])) continue;
    x.t.tile[at] = {(uint64_t)map[2 * k + 1] << 32 | map[2 * k], (PetscInt)(t0 + k)};
    x.t.mask[at] = (unsigned short)TilesMask(map[2 * k], map[2 * k + 1]);
    at++;
  }
  *tiles += alltiles;
  __syncthreads();
}

/* a long row of tiles, by a block */
static __device__ void TilesLongRow(const TilesArgs &x, PetscCount R, unsigned *map, PetscInt *scratch)
{
  const int      nrows = (int)HybMin()((PetscCount)x.m - R * HYB_TILE, (PetscCount)HYB_TILE);
  PetscInt       all, tiles = 0;
  const PetscInt begin = TilesRow(x, R, &all);
  PetscInt       seen  = 0, cursor[HYB_TILE];

#pragma unroll
  for (int r = 0; r < HYB_TILE; r++) cursor[r] = r < nrows ? x.i[R * HYB_TILE + r] : 0;
  while (seen < all) {
    PetscInt t0 = PETSC_MAX_INT;

#pragma unroll
    for (int r = 0; r < HYB_TILE; r++)
      if (r < nrows && cursor[r] < x.i[R * HYB_TILE + r + 1]) t0 = HybMin()(t0, x.j[cursor[r]] / HYB_TILE);
    for (int k = (int)threadIdx.x; k < 2 * TILES_WINDOW; k += TILES_THREADS) map[k] = 0;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < HYB_TILE; r++) {
      if (r < nrows) {
        const PetscInt n = TilesBefore(x, cursor[r], x.i[R * HYB_TILE + r + 1], (PetscCount)t0 + TILES_WINDOW, [&](PetscInt e) {
          const PetscInt c = x.j[e] - t0 * HYB_TILE;

          HybAtomicOr(&map[c / HYB_TILE * 2 + r / 4], 1u << (r % 4 * 8 + c % HYB_TILE));
        });

        cursor[r] += n;
        seen += n;
      }
    }
    TilesWindow(x, t0, begin, map, scratch, &tiles);
  }
  if (threadIdx.x == 0) x.t.count[R] = tiles;
}

/* each thread looks at a row of tiles, and all of a block go through those of them that are long */
static __global__ __launch_bounds__(TILES_THREADS) void TilesLong(TilesArgs x)
{
  HYB_SHARED(unsigned, map, 2 * TILES_WINDOW);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  HYB_SHARED(unsigned, marks, TILES_THREADS / HYB_WARP);

  for (PetscCount base = blockIdx.x; base < x.t.rows; base += (PetscCount)gridDim.x * TILES_THREADS) {
    const PetscCount R   = base + (PetscCount)gridDim.x * threadIdx.x;
    PetscInt         all = 0;
    unsigned         mark;

    if (R < x.t.rows) (void)TilesRow(x, R, &all);
    mark = __ballot_sync(HYB_FULL_MASK, all > TILES_LONG);
    if (HybLane() == 0) marks[threadIdx.x / HYB_WARP] = mark;
    __syncthreads();
    for (int w = 0; w < TILES_THREADS / HYB_WARP; w++)
      for (mark = marks[w]; mark; mark &= mark - 1) TilesLongRow(x, base + (PetscCount)gridDim.x * (w * HYB_WARP + __ffs((int)mark) - 1), map, scratch);
    __syncthreads();
  }
}

/* where a row of tiles that are not packed has its room */
static __device__ __forceinline__ PetscInt TilesRoomOf(const HybTiles &t, PetscCount R)
{
  return t.i[R * HYB_TILE];
}

/* W lanes a row of tiles, which are not packed yet */
template <int W>
static __global__ __launch_bounds__(TILES_THREADS) void TilesSpans(HybTiles a, HybTiles b, PetscInt *__restrict__ low, PetscInt *__restrict__ words, PetscInt *__restrict__ cost, PetscCount *allpairs)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  const int  lane  = HybLane() & (W - 1);
  PetscCount pairs = 0;

  for (PetscCount R = ((PetscCount)blockIdx.x * TILES_THREADS + threadIdx.x) / W; R < a.rows; R += (PetscCount)gridDim.x * (TILES_THREADS / W)) {
    const PetscInt first = TilesRoomOf(a, R), n = a.count[R];
    PetscInt       least = PETSC_MAX_INT, last = -1;
    PetscCount     here = 0;

    for (PetscInt k = lane; k < n; k += W) {
      const PetscInt K = (PetscInt)a.tile[first + k].column, len = b.count[K], begin = TilesRoomOf(b, K);

      if (len) {
        least = HybMin()(least, (PetscInt)b.tile[begin].column);
        last  = HybMax()(last, (PetscInt)b.tile[begin + len - 1].column);
      }
      here += len;
    }
    least = HybSubwarpMin<W>(least);
    last  = HybSubwarpMax<W>(last);
    here  = HybSubwarpSum<W>(here);
    if (lane == 0) {
      const PetscInt w = last < 0 ? 0 : (last - least) / 32 + 1;

      low[R]   = least;
      words[R] = w;
      cost[R]  = (PetscInt)HybMin()(HybMax()((PetscCount)w, here / TILES_PAIRS_A_WORD), (PetscCount)PETSC_MAX_INT);
      pairs += here;
    }
  }
  pairs = HybBlockSum<TILES_THREADS>(pairs, scratch);
  if (threadIdx.x == 0) HybAtomicAdd(allpairs, pairs);
}

static __global__ __launch_bounds__(TILES_THREADS) void TilesPack(PetscInt rows, const PetscInt *__restrict__ i, const PetscInt *__restrict__ ptr, const HybTile *__restrict__ tile, const unsigned short *__restrict__ mask, HybTile *__restrict__ totile, unsigned short *__restrict__ tomask)
{
  const PetscCount R = ((PetscCount)blockIdx.x * TILES_THREADS + threadIdx.x) / TILES_PACK;

  if (R >= rows) return;
  const PetscInt from = i[R * HYB_TILE], to = ptr[R], n = ptr[R + 1] - to;

#pragma unroll 4
  for (PetscInt k = HybLane() & (TILES_PACK - 1); k < n; k += TILES_PACK) {
    totile[to + k] = tile[from + k];
    tomask[to + k] = mask[from + k];
  }
}

/* A warp a row of tiles, which are packed: eight lanes have the rows of four tiles, the next eight those of four
   more */
static __global__ __launch_bounds__(TILES_THREADS) void TilesRows(PetscInt rows, PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ ptr, const HybTile *__restrict__ tile, HybTileRow *__restrict__ row)
{
  constexpr int    EACH = 4, STEP = EACH * HYB_WARP / HYB_TILE;
  const PetscCount R = ((PetscCount)blockIdx.x * TILES_THREADS + threadIdx.x) / HYB_WARP;
  const int        r = HybLane() & (HYB_TILE - 1);

  if (R >= rows) return;
  const PetscCount end   = ptr[R + 1];
  PetscInt         first = R * HYB_TILE + r < m ? i[R * HYB_TILE + r] : 0;

  for (PetscCount k0 = ptr[R]; k0 < end; k0 += STEP) {
    const PetscCount k = k0 + HybLane() / HYB_TILE * EACH;
    unsigned         bit[EACH], sum[EACH];
    PetscInt         here = 0;

#pragma unroll
    for (int u = 0; u < EACH; u++) {
      unsigned x = k + u < end ? (unsigned)(tile[k + u].map >> (8 * r)) & 0xffu : 0;

      x      = (x | x << 12) & 0x000f000fu;
      x      = (x | x << 6) & 0x03030303u;
      bit[u] = (x | x << 3) & 0x11111111u; /* a bit to each four */
      sum[u] = bit[u] * 0x11111111u;       /* up to each four, itself among them */
      here += (PetscInt)(sum[u] >> 28);
    }
    PetscInt upto = here;
#pragma unroll
    for (int d = HYB_TILE; d < HYB_WARP; d <<= 1) {
      const PetscInt up = HybShflUp(HYB_FULL_MASK, upto, (unsigned)d, HYB_WARP);

      if (HybLane() >= d) upto += up;
    }
    PetscInt at = first + upto - here;
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      if (k + u < end) row[(k + u) * HYB_TILE + r] = {at - 8, (sum[u] - bit[u]) | bit[u] << 3};
      at += (PetscInt)(sum[u] >> 28);
    }
    first += HybShfl(HYB_FULL_MASK, upto, HYB_WARP - HYB_TILE + r, HYB_WARP);
  }
}

PetscErrorCode HybTilesMake(const HybExec *exec, HybArena *work, const HybCSR *A, HybTiles *t)
{
  TilesArgs x;
  int       sms;

  PetscFunctionBegin;
  t->rows = A->m / HYB_TILE + (A->m % HYB_TILE != 0);
  t->i    = A->i;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->nnz, sizeof(*t->tile), &t->tile));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->nnz, sizeof(*t->mask), &t->mask));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, t->rows, sizeof(*t->count), &t->count));
  x.m = A->m;
  x.i = A->i;
  x.j = A->j;
  x.t = *t;
  PetscCall(HybDeviceLimits(NULL, &sms));
  HYB_LAUNCH(TilesShort, HybBlocks(t->rows, TILES_THREADS / HYB_WARP), TILES_THREADS, 0, exec->stream, x);
  if (A->n > TILES_WORDS * 32 * HYB_TILE) HYB_LAUNCH(TilesWide, HybBlocks((PetscCount)t->rows * 8, TILES_THREADS), TILES_THREADS, 0, exec->stream, x);
  if (A->nnz > TILES_LONG) HYB_LAUNCH(TilesLong, PetscMin((PetscCount)t->rows, (PetscCount)6 * sms), TILES_THREADS, 0, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTilesSpans(const HybExec *exec, const HybTiles *a, const HybTiles *b, PetscInt *low, PetscInt *words, PetscInt *cost, PetscCount *pairs)
{
  int sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(NULL, &sms));
  HYB_LAUNCH((TilesSpans<8>), PetscMin(HybBlocks((PetscCount)a->rows * 8, TILES_THREADS), (PetscCount)16 * sms), TILES_THREADS, 0, exec->stream, *a, *b, low, words, cost, pairs);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTilesPack(const HybExec *exec, HybArena *keep, HybArena *work, PetscInt m, PetscCount tiles, const PetscInt *ptr, HybTiles *t)
{
  HybTile        *tile;
  unsigned short *mask;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, tiles, sizeof(*tile), &tile));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, tiles, sizeof(*mask), &mask));
  HYB_LAUNCH(TilesPack, HybBlocks((PetscCount)t->rows * TILES_PACK, TILES_THREADS), TILES_THREADS, 0, exec->stream, t->rows, t->i, ptr, t->tile, t->mask, tile, mask);
  PetscCall(HybArenaFree(work, &t->tile, &t->mask, &t->count));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, tiles * HYB_TILE, sizeof(*t->row), &t->row));
  HYB_LAUNCH(TilesRows, HybBlocks(t->rows, TILES_THREADS / HYB_WARP), TILES_THREADS, 0, exec->stream, t->rows, m, t->i, ptr, tile, t->row);
  t->tile = tile;
  t->mask = mask;
  PetscFunctionReturn(PETSC_SUCCESS);
}
