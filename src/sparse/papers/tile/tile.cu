/*
  tile.cu: SpGEMM method "tile": products of tiles of 8 x 8 entries on tensor cores, tSparse in double precision.

  Idea. A matrix is cut into tiles of 8 x 8, and those that have entries are kept: a map of 64 bits, and where in CSR
  the values of each row begin (tiles.cu). C = A B is then a product of tiles, of which there are fewer than
  entries, and a tile of C is a sum of products of whole tiles, which is what tensor cores do. All that has to be found
  is found for tiles: which pairs of a tile of A and one of B meet, which tile of C each pair is added to, and, by the
  same product of maps, with "or" for "plus", which entries that has.

    tiles:     A and B, one pass each                                    (A squared: one pass)
    spans:     for each row of tiles of C: pairs, first column, words of bits from there to the last
    pack:      tiles, whose number is known now, behind each other
    count:     a group of threads a row of tiles, in windows of as many bits as fit:
                 for each pair whose boolean product is not empty: set the bit of its column
                 tiles of C, tasks
    offsets:   scan of chunks of eight tiles of C, and of tasks
    fill:      a group a row of tiles:
                 for each such pair, once: to a list in shared memory; set the bit of its column
                 for each of the list: its tile of C, whose tasks are counted; map of that |= boolean product
                 tasks of a tile of C come together, in the order of A's tiles
                 entries of each row of C, and where in them each chunk begins
    offsets:   scan of the rows' entries
    multiply:  a warp a chunk, tensor cores for its tasks, in order; entries go to their places in CSR

  The steps are the paper's. What is other: double precision; numbers of entries come from products of words of bits,
  exactly, and nothing has to be taken out behind; tasks are put in order by where they belong instead of by a sort; a
  tile of C has a warp's whole instruction to itself, which is 8 x 8 x 4 for numbers of eight bytes.

  How it is multiplied, in which order sums are formed and what becomes of NaN, infinities and zeros, says
  multiply.cu.

  Bins. Count: rows of tiles by words of bits (or by pairs, if these are very many), fill: by bytes of shared memory;
  16 to 512 threads a row. A row whose list is more than shared memory goes through windows of columns, its tiles of A
  one by one: with the bits, once more to count, and once more to place tasks in A's order.

  Applicable: by name alone, to real numbers in double precision. Rows of tiles of up to 2^31 tasks.

  Memory kept: 64 bytes for each tile of A and of B, 8 for a task, 12 for a tile of C and 48 for eight of them. Before
  C's arrays are taken tiles have room for as many as entries, 18 bytes each. Synchronisations of a first product:
  spans, counts, entries of C. Complexity: three passes over both patterns, two over the pairs of tiles, 1024 operations
  for each that is not dropped.

  Paper: O. Zachariadis, N. Satpute, J. Gomez-Luna, J. Olivares, Accelerating sparse matrix-matrix multiplication with
  GPU Tensor Cores, Computers and Electrical Engineering 88 (2020).
*/
#include "../../device/carve.h"
#include "../../plan/bins.cuh"
#include "aijhybridgpu/private/hybspgemm.h"
#include "pairs.cuh"
#include <cstddef>

#define TILE_STATIC 1024 /* bytes of shared memory that kernels have beside the dynamic ones, and some more */
/* Bins of the count, by words of bits; one more for what is wider */
#define TILE_SPANS 5
static const PetscCount TileSpanLimit[TILE_SPANS - 1] = {0, 64, 256, 2048};

/* Bins of the filling, by bytes of shared memory; one more for all that it has, and one for windows */
#define TILE_SIZES     8
#define TILE_SIZE_WARP 6144 /* the most of rows that a warp has, or a part of it */
static const PetscCount TileSizeLimit[TILE_SIZES - 2] = {0, 1024, 3072, TILE_SIZE_WARP, 16384, 49152};
/* bytes a task, and some more where several warps have a row */
#define TILE_LISTED  (sizeof(PetscInt) + 2 * sizeof(unsigned short))
#define TILE_ORDERED sizeof(unsigned short)
#define TILE_FEW     65535       /* tiles of a row of A's whose tasks are listed */
#define TILE_NONE    0xffffffffu /* no tile of C */

/* What is found on the device, all zero before; what is brought to the host together lies together */
struct TileLook {
  PetscCount pairs;
  PetscCount atiles[3], btiles; /* A's: all, the most of a row */
  PetscInt   spanptr[TILE_SPANS + 1];
  /* later */
  PetscCount chunks[3]; /* all, the most of a row */
  PetscCount tasks, tiles, longest;
  PetscCount stats[6]; /* the plan's */
  PetscInt   sizeptr[TILE_SIZES + 1];
  /* later still */
  PetscCount nnz;
  uint64_t   largest[2], error[2]; /* in half precision, of A's values and of B's */
  /* stays */
  PetscInt spancount[2 * TILE_SPANS], sizecount[2 * TILE_SIZES];
};

struct TileProduct {
  HybTilesProduct p;
  PetscBool       said; /* what half precision loses */
  /* during a symbolic phase */
  TileLook   *look;
  TileLook    host;
  PetscCount  size[TILE_SIZES - 1]; /* where bins of the filling end */
  PetscInt   *low, *words, *cost, *order, *chunkptr, *tilecount, *aptr, *bptr;
  PetscCount *taskptr, *sums;
  char       *room; /* of these */
};

struct TileRows {
  const PetscInt *order, *low, *words;
  PetscInt        room; /* of shared memory that a group has: words in the count, bytes in the filling */
};

/* of each row of tiles of C: its chunks, its tiles, what filling it takes, its tasks */
struct TileCounts {
  PetscInt   *chunks, *tilecount, *cost;
  PetscCount *tasks;
  TileLook   *look;
};

/* G threads a row of tiles. Where there are several windows, tasks are counted in each of them, those that are in it */
template <int G>
static __global__ void __launch_bounds__(HybGroup<G>::THREADS, 1) TileCount(TilePairs x, TileRows y, TileCounts z, PetscInt begin, PetscInt end)
{
  using Group = HybGroup<G>;
  HYB_DYNAMIC_SHARED(unsigned, shared);
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  unsigned *const  bits = shared + (size_t)Group::index() * y.room;
  const int        rank = Group::rank();
  const PetscCount at   = begin + (PetscCount)blockIdx.x * Group::GROUPS + Group::index();
  PetscCount       mine = 0, tiles = 0;

  if (at >= end) return;
  const PetscInt R = y.order[at], first = x.aptr[R], n = x.aptr[R + 1] - first, words = y.words[R];

  for (PetscInt w0 = 0; w0 < words; w0 += y.room) {
    const PetscInt nwords = HybMin()(words - w0, y.room);

    for (PetscInt w = rank; w < nwords; w += G) bits[w] = 0;
    Group::sync();
    const PetscInt low = y.low[R] + 32 * w0;

    TileEachPair<G>(x, first, n, [&](bool meets, PetscInt column, PetscInt, PetscInt) {
      const PetscInt q = column - low;

      if (meets && q >= 0 && q < 32 * nwords) {
        HybAtomicOr(&bits[q >> 5], 1u << (q & 31));
        mine++;
      }
    });
    Group::sync();
    for (PetscInt w = rank; w < nwords; w += G) tiles += __popc(bits[w]);
    Group::sync();
  }
  mine  = Group::reduce(mine, scratch, HybSum());
  tiles = Group::reduce(tiles, scratch, HybSum());
  if (rank == 0) {
    z.tilecount[R]  = (PetscInt)tiles;
    z.chunks[R]     = (PetscInt)((tiles + HYB_TILE_CHUNK - 1) / HYB_TILE_CHUNK);
    z.tasks[R]      = mine;
    PetscCount cost = (PetscCount)TILE_WORD * words + (PetscCount)TILE_ENTRY * tiles + (PetscCount)TILE_LISTED * mine;

    if (cost > TILE_SIZE_WARP) cost += (PetscCount)TILE_ORDERED * mine;
    z.cost[R] = n > TILE_FEW ? PETSC_MAX_INT : (PetscInt)HybMin()(cost, (PetscCount)PETSC_MAX_INT);
    if (tiles) {
      HybAtomicAdd(&z.look->tiles, tiles);
      HybAtomicMax(&z.look->longest, mine);
    }
  }
}

struct TileFillArgs {
  TilePairs         x;
  TileRows          y;
  PetscInt          chunks; /* of C */
  const PetscInt   *chunkptr, *tilecount;
  const PetscCount *taskptr;
  HybTileTask      *tasks;
  PetscCount       *chunktask;
  PetscInt         *chunkrow, *before, *column, *count /* of each row of C */;
  uint64_t         *map;
  unsigned         *end;
};

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

/* maps and columns of a window's tiles of C to their places, and where their tasks end */
template <int G>
static __device__ __forceinline__ void TileOut(const TileFillArgs &z, const TileWindow &win, int found, PetscInt low, PetscInt nwords, PetscCount task, PetscCount to)
{
  for (int p = HybGroup<G>::rank(); p < found; p += G) {
    z.map[to + p] = (uint64_t)win.map[2 * p + 1] << 32 | win.map[2 * p];
    z.end[to + p] = (unsigned)task + win.next[p];
  }
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
static __device__ __forceinline__ void TileTaskOf(const TileWindow &win, PetscInt a, uint64_t map, PetscInt p, const HybTile &b, PetscInt low, unsigned width, HybTileTask *tasks)
{
  const PetscInt d = (PetscInt)b.column - low;

  if (d >= 0 && d < (PetscInt)width) {
    const unsigned to = win.at(d), next = win.next[to];

    tasks[next]  = {a, p};
    win.next[to] = next + 1;

    const uint64_t meet = TileBoolean(map, b.map);

    win.map[2 * to] |= (unsigned)meet;
    win.map[2 * to + 1] |= (unsigned)(meet >> 32);
  }
}

/* tasks to their places, those of a tile of C in the order of A's tiles: these are taken one by one, and no two tiles
   of a row of B's have one column. While one is placed the next one's row of B is loaded. */
template <int G>
static __device__ __forceinline__ void TileTasks(const TilePairs &x, const TileWindow &win, PetscInt first, PetscInt n, PetscInt low, unsigned width, HybTileTask *tasks)
{
  using Group          = HybGroup<G>;
  constexpr int  CHUNK = G < HYB_WARP ? G : HYB_WARP;
  const int      lane = HybLane() & (CHUNK - 1), rank = Group::rank();
  const unsigned mask = HybSubwarpMask<CHUNK>();

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

      if (mine) TileTaskOf(win, first + k0 + q, a, here.from + rank, tile, low, width, tasks);
      for (PetscInt p = rank + G; p < here.len; p += G)
        if (x.bmask[here.from + p] & here.columns) TileTaskOf(win, first + k0 + q, a, here.from + p, x.b[here.from + p], low, width, tasks);
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
      if (i == 0) z.chunkrow[chunk + c] = R;
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
    for (int t = 0; t < HYB_TILE_AHEAD; t++) z.tasks[task + t] = {0, 0};
  }
  HybGroup<G>::sync();
  TileRowsOfC<G>(z, R, chunk, chunks);
}

/* G threads a row of tiles, in windows */
template <int G>
static __global__ void __launch_bounds__(HybGroup<G>::THREADS, 1) TileFill(TileFillArgs z, PetscInt begin, PetscInt end)
{
  using Group = HybGroup<G>;
  HYB_DYNAMIC_SHARED(char, shared);
  HYB_SHARED(int, scratch, HYB_WARP);
  const TilePairs &x    = z.x;
  const int        rank = Group::rank();
  const PetscCount at   = begin + (PetscCount)blockIdx.x * Group::GROUPS + Group::index();
  int              done = 0;

  if (at >= end) return;
  const PetscInt   R = z.y.order[at], first = x.aptr[R], n = x.aptr[R + 1] - first, words = z.y.words[R];
  const PetscCount task = z.taskptr[R];
  PetscCount       to   = (PetscCount)z.chunkptr[R] * HYB_TILE_CHUNK;
  const TileWindow win  = TileWindowOf(shared + (size_t)Group::index() * z.y.room, z.y.room, words, z.tilecount[R]);

  for (PetscInt w0 = 0; w0 < words; w0 += win.words) {
    const PetscInt nwords = HybMin()(words - w0, win.words), low = z.y.low[R] + 32 * w0;
    const int      found = TileBits<G>(x, win, first, n, low, nwords, scratch);

    TileEachPair<G>(x, first, n, [&](bool meets, PetscInt column, PetscInt, PetscInt) {
      const PetscInt q = column - low;

      if (meets && q >= 0 && q < 32 * nwords) HybAtomicAdd(&win.next[win.at(q)], 1u);
    });
    Group::sync();
    done = TileStarts<G>(z, win, found, done, task, to, scratch);
    TileTasks<G>(x, win, first, n, low, 32u * (unsigned)nwords, z.tasks + task);
    TileOut<G>(z, win, found, low, nwords, task, to);
    to += found;
    Group::sync();
  }
  TileEnd<G>(z, R, to, task + done);
}

/* A row of tiles whose tasks all have room in shared memory: each pair is looked at once, and listed. A warp lists
   them in the order of A's tiles; where there are several, tasks of a tile of C come together as they come, and how
   many of them are of tiles of A before its own tells the place of each. */
template <int G>
static __global__ void __launch_bounds__(HybGroup<G>::THREADS, 1024 / HybGroup<G>::THREADS) TileFillListed(TileFillArgs z, PetscInt begin, PetscInt end)
{
  using Group = HybGroup<G>;
  HYB_DYNAMIC_SHARED(char, shared);
  HYB_SHARED(int, scratch, HYB_WARP);
  HYB_SHARED(unsigned, listed, 1);
  const TilePairs &x    = z.x;
  const int        rank = Group::rank();
  const PetscCount at   = begin + (PetscCount)blockIdx.x * Group::GROUPS + Group::index();
  unsigned         run  = 0;

  if (at >= end) return;
  const PetscInt   R = z.y.order[at], first = x.aptr[R], n = x.aptr[R + 1] - first, words = z.y.words[R], low = z.y.low[R], tiles = z.tilecount[R];
  const PetscCount task = z.taskptr[R], to = (PetscCount)z.chunkptr[R] * HYB_TILE_CHUNK;
  const int        m = (int)(z.taskptr[R + 1] - task);
  TileWindow       win;

  /* of each task: tile of B; which of A's; tile of C. And which of A's again, by tiles of C */
  win.map                 = (unsigned *)(shared + (size_t)Group::index() * z.y.room);
  PetscInt *const b       = (PetscInt *)(win.map + 2 * tiles);
  win.next                = (unsigned *)(b + m);
  win.bits                = win.next + tiles;
  win.before              = (unsigned short *)(win.bits + words);
  unsigned short *const a = win.before + words, *const c = a + m, *const order = c + m;

  for (PetscInt w = rank; w < words; w += G) win.bits[w] = 0;
  if (rank == 0 && !Group::SUBWARP) *listed = 0;
  Group::sync();
  TileEachPair<G>(x, first, n, [&](bool meets, PetscInt column, PetscInt k, PetscInt p) {
    const unsigned met = __ballot_sync(HybSubwarpMask < Group::SUBWARP ? G : HYB_WARP > (), meets);
    unsigned       e   = run;

    if (!Group::SUBWARP) {
      if (HybLane() == 0) e = HybAtomicAdd(listed, (unsigned)__popc(met));
      e = HybShfl(HYB_FULL_MASK, e, 0);
    }
    run += (unsigned)__popc(met);
    if (!meets) return;
    e += (unsigned)__popc(met & ((1u << HybLane()) - 1));
    a[e] = (unsigned short)k;
    b[e] = p;
    HybAtomicOr(&win.bits[(column - low) >> 5], 1u << ((column - low) & 31));
  });
  Group::sync();
  const int found = TileRanks<G>(win, words, scratch);

  for (int e = rank; e < m; e += G) {
    const HybTile  tile = x.b[b[e]];
    const unsigned t    = win.at((PetscInt)tile.column - low);
    const uint64_t meet = TileBoolean(x.a[first + a[e]].map, tile.map);

    c[e] = (unsigned short)t;
    HybAtomicAdd(&win.next[t], 1u);
    HybAtomicOr(&win.map[2 * t], (unsigned)meet);
    HybAtomicOr(&win.map[2 * t + 1], (unsigned)(meet >> 32));
  }
  Group::sync();
  (void)TileStarts<G>(z, win, found, 0, task, to, scratch);
  if (Group::SUBWARP) { /* the list has the order of A's tiles */
    const unsigned mask = HybSubwarpMask < Group::SUBWARP ? G : HYB_WARP > ();

    for (int e0 = 0; e0 < m; e0 += G) {
      const int      e = e0 + rank;
      const unsigned t = e < m ? c[e] : TILE_NONE, same = __match_any_sync(mask, t) & mask;
      const unsigned place = (t == TILE_NONE ? 0 : win.next[t]) + (unsigned)__popc(same & ((1u << HybLane()) - 1));

      if (t != TILE_NONE) z.tasks[task + place] = {first + a[e], b[e]};
      Group::sync();
      if (t != TILE_NONE && same >> HybLane() == 1) win.next[t] = place + 1;
      Group::sync();
    }
  } else {
    for (int e = rank; e < m; e += G) order[HybAtomicAdd(&win.next[c[e]], 1u)] = a[e];
    Group::sync();
    for (int e = rank; e < m; e += G) {
      const unsigned t = c[e], from = t ? win.next[t - 1] : 0, behind = win.next[t];
      unsigned       place = from;

      for (unsigned i = from; i < behind; i++) place += order[i] < a[e];
      z.tasks[task + place] = {first + a[e], b[e]};
    }
  }
  TileOut<G>(z, win, found, low, words, task, to);
  Group::sync();
  TileEnd<G>(z, R, to + found, task + m);
}

/* by name alone: it is "auto" that asks */
static PetscErrorCode HybSpGEMMApplicable_TileCUDA(const HybSpGEMM *, const HybCSR *, const HybCSR *, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* launch(b, stream) for each of n bins that has rows, side by side, long rows first */
template <typename F>
static PetscErrorCode TileSideBySide(const HybExec *exec, int n, const PetscInt *ptr, F launch)
{
  HybExec        side[HYB_SIDE_STREAMS];
  int            full = 0, turn = 0;
  PetscErrorCode ierr, first    = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int b = 0; b < n; b++) full += ptr[b + 1] > ptr[b];
  const int sides = PetscMin(PetscMax(full - 1, 0), HYB_SIDE_STREAMS);

  PetscCall(HybDeviceFork(exec, sides, side));
  for (int b = n - 1; b >= 0; b--) {
    if (ptr[b + 1] == ptr[b]) continue;
    ierr = launch(b, turn < sides ? side[turn].stream : exec->stream);
    turn = (turn + 1) % (sides + 1);
    if (!first) first = ierr;
  }
  ierr = HybDeviceJoin(exec, sides);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TileCountAll(HybSpGEMM *mm, const TilePairs &x, TileRows y, TileProduct *s)
{
  const int        lanes[TILE_SPANS] = {16, 32, 32, 128, 512}; /* of a row of each bin */
  const TileCounts z                 = {s->chunkptr, s->tilecount, s->cost, s->taskptr, s->look};
  const PetscInt  *ptr               = s->host.spanptr;
  size_t           limit;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, NULL));
  const PetscCount most = (PetscCount)((limit - TILE_STATIC) / sizeof(unsigned));
  PetscCall(TileSideBySide(&mm->exec, TILE_SPANS, ptr, [&](int b, void *stream) -> PetscErrorCode {
    y.room = (PetscInt)PetscMax(1, b + 1 < TILE_SPANS ? PetscMin(TileSpanLimit[b], most) : most);
    return HybDispatch(lanes[b], HybCases<16, 32, 128, 512>(), [&](auto G) {
      HYB_LAUNCH((TileCount<G>), HybBlocks(ptr[b + 1] - ptr[b], HybGroup<G>::GROUPS), HybGroup<G>::THREADS,
                 (size_t)HybGroup<G>::GROUPS * y.room * sizeof(unsigned), stream, x, y, z, ptr[b], ptr[b + 1]);
      return PETSC_SUCCESS;
    });
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TileFillAll(HybSpGEMM *mm, TileFillArgs z, const TileProduct *s)
{
  const int       lanes[TILE_SIZES - 1] = {16, 16, 32, 32, 128, 256, 512}; /* of a row of each bin */
  const PetscInt *ptr                   = s->host.sizeptr;

  PetscFunctionBegin;
  PetscCall(TileSideBySide(&mm->exec, TILE_SIZES, ptr, [&](int b, void *stream) -> PetscErrorCode {
    z.y.room = (PetscInt)s->size[PetscMin(b, TILE_SIZES - 2)];
    if (b == TILE_SIZES - 1) {
      HYB_LAUNCH((TileFill<512>), HybBlocks(ptr[b + 1] - ptr[b], 1), 512, (size_t)z.y.room, stream, z, ptr[b], ptr[b + 1]);
      return PETSC_SUCCESS;
    }
    return HybDispatch(lanes[b], HybCases<16, 32, 128, 256, 512>(), [&](auto G) {
      HYB_LAUNCH((TileFillListed<G>), HybBlocks(ptr[b + 1] - ptr[b], HybGroup<G>::GROUPS), HybGroup<G>::THREADS,
                 (size_t)HybGroup<G>::GROUPS * z.y.room, stream, z, ptr[b], ptr[b + 1]);
      return PETSC_SUCCESS;
    });
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what a symbolic phase needs of each row of tiles */
static PetscErrorCode TileRoom(HybArena *work, PetscCount rows, PetscCount brows, TileProduct *s)
{
  PetscFunctionBegin;
  for (int pass = 0; pass < 2; pass++) {
    char  *base = s->room;
    size_t used = 0;

    HybCarve(base, &used, (size_t)rows * sizeof(*s->low), &s->low);
    HybCarve(base, &used, (size_t)rows * sizeof(*s->words), &s->words);
    HybCarve(base, &used, (size_t)rows * sizeof(*s->cost), &s->cost);
    HybCarve(base, &used, (size_t)rows * sizeof(*s->order), &s->order);
    HybCarve(base, &used, (size_t)rows * sizeof(*s->tilecount), &s->tilecount);
    HybCarve(base, &used, (size_t)(rows + 1) * sizeof(*s->chunkptr), &s->chunkptr);
    HybCarve(base, &used, (size_t)(rows + 1) * sizeof(*s->taskptr), &s->taskptr);
    HybCarve(base, &used, (size_t)HYB_PLAN_SUMS(rows) * sizeof(*s->sums), &s->sums);
    HybCarve(base, &used, (size_t)(rows + 1) * sizeof(*s->aptr), &s->aptr);
    HybCarve(base, &used, s->p.same ? 0 : (size_t)(brows + 1) * sizeof(*s->bptr), &s->bptr);
    if (!pass) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)used, 1, &s->room));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what numeric phases need of each chunk of tiles of C */
static PetscErrorCode TileRoomOfC(HybArena *keep, PetscCount chunks, HybTilesProduct *p)
{
  char *base = NULL;

  PetscFunctionBegin;
  for (int pass = 0; pass < 2; pass++) {
    size_t used = 0;

    HybCarve(base, &used, (size_t)(chunks + 1) * sizeof(*p->chunktask), &p->chunktask);
    HybCarve(base, &used, (size_t)chunks * sizeof(*p->chunkrow), &p->chunkrow);
    HybCarve(base, &used, (size_t)chunks * HYB_TILE_CHUNK * sizeof(*p->before), &p->before);
    HybCarve(base, &used, (size_t)chunks * HYB_TILE_CHUNK * sizeof(*p->map), &p->map);
    HybCarve(base, &used, (size_t)chunks * HYB_TILE_CHUNK * sizeof(*p->end), &p->end);
    if (!pass) PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &base));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* tiles of both, how many they are, and the spans of their product's rows */
static PetscErrorCode TileMakeBoth(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, TileProduct *s)
{
  const HybExec *exec = &mm->exec;

  PetscFunctionBegin;
  PetscCall(HybTilesMake(exec, &mm->work, A, &s->p.a));
  s->p.b = s->p.a;
  if (!s->p.same) PetscCall(HybTilesMake(exec, &mm->work, B, &s->p.b));
  const PetscInt rows = s->p.a.rows, brows = s->p.b.rows;
  PetscCall(TileRoom(&mm->work, rows, brows, s));
  PetscCall(HybTilesSpans(exec, &s->p.a, &s->p.b, s->low, s->words, s->cost, &s->look->pairs));
  const HybPlanScan scan = {s->p.a.count, s->sums, s->aptr, NULL, s->look->atiles, NULL, 1};
  PetscCall(HybPlanBinsAnyOrderInt(exec, rows, s->cost, TILE_SPANS, TileSpanLimit, s->look->spancount, s->order, s->look->spanptr, &scan));
  if (!s->p.same) PetscCall(HybScanCounts(exec, &mm->work, brows, s->p.b.count, s->bptr, &s->look->btiles, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* both packed */
static PetscErrorCode TilePackBoth(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, TileProduct *s, TilePairs *x)
{
  PetscFunctionBegin;
  PetscCall(HybTilesPack(&mm->exec, &mm->keep, &mm->work, A->m, s->host.atiles[0], s->aptr, &s->p.a));
  if (s->p.same) {
    s->p.b  = s->p.a;
    s->bptr = s->aptr;
  } else
    PetscCall(HybTilesPack(&mm->exec, &mm->keep, &mm->work, B->m, s->host.btiles, s->bptr, &s->p.b));
  *x = {s->p.a.rows, A->m, s->aptr, s->bptr, s->p.a.tile, s->p.b.tile, s->p.a.mask, s->p.b.mask};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is known before pairs are looked at: one synchronisation, s->host tells */
static PetscErrorCode TileFind(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, TileProduct *s, TilePairs *x)
{
  const HybExec *exec = &mm->exec;

  PetscFunctionBegin;
  PetscCall(TileMakeBoth(mm, A, B, s));
  PetscCall(exec->backend->copy(exec, &s->host, s->look, offsetof(TileLook, chunks), HYB_COPY_DEVICE_TO_HOST));
  mm->waits++;
  PetscCall(TilePackBoth(mm, A, B, s, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* tiles of C and tasks, counted */
static PetscErrorCode TileTasksCount(HybSpGEMM *mm, const TilePairs &x, const TileRows &y, TileProduct *s)
{
  const HybExec *exec = &mm->exec;
  size_t         limit;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, NULL));
  s->size[TILE_SIZES - 2] = (PetscCount)((limit - TILE_STATIC) / 16 * 16);
  for (int b = 0; b < TILE_SIZES - 2; b++) s->size[b] = PetscMin(TileSizeLimit[b], s->size[TILE_SIZES - 2]);
  PetscCall(TileCountAll(mm, x, y, s));
  {
    const HybPlanScan scan = {s->chunkptr, s->sums, s->chunkptr, NULL, s->look->chunks, NULL, 1};

    PetscCall(HybPlanBinsAnyOrderInt(exec, x.rows, s->cost, TILE_SIZES, s->size, s->look->sizecount, s->order, s->look->sizeptr, &scan));
  }
  PetscCall(HybScanCounts64(exec, &mm->work, x.rows, s->taskptr, s->taskptr, &s->look->tasks, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what has been counted, and room for it: one synchronisation */
static PetscErrorCode TileTasksRoom(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, TileProduct *s)
{
  const HybExec *exec = &mm->exec;

  PetscFunctionBegin;
  PetscCall(exec->backend->copy(exec, s->host.chunks, s->look->chunks, offsetof(TileLook, nnz) - offsetof(TileLook, chunks), HYB_COPY_DEVICE_TO_HOST));
  mm->waits++;
  HybPlanStatsSet(s->host.stats, &mm->stats);
  /* a tile has an entry at least */
  PetscCall(HybSpGEMMCheckCount(exec, A, B, PetscMax(mm->stats.lower, s->host.tiles), PETSC_TRUE));
  PetscCheck(s->host.longest <= 2147483647, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpGEMM method tile cannot run: eight rows of the product of a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix are sums of %" PetscCount_FMT " products of tiles, more than 2147483647; choose another method", A->m, A->n, B->m, B->n, s->host.longest);
  s->p.chunks = (PetscInt)s->host.chunks[0];
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, s->host.tasks + HYB_TILE_AHEAD, sizeof(*s->p.tasks), &s->p.tasks));
  PetscCall(TileRoomOfC(&mm->keep, s->p.chunks, &s->p));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)s->p.chunks * HYB_TILE_CHUNK, sizeof(*s->p.column), &s->p.column));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which tiles are multiplied, and C's offsets; look's number of entries comes. The driver's figures come beside what is
   done before tasks have room; where bins fork, these wait for them. */
static PetscErrorCode TilePattern(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, TileProduct *s, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  HybExec        side[1];
  TilePairs      x;
  TileRows       y;
  PetscCount    *stats;
  PetscErrorCode ierr, first;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 1, sizeof(*s->look), &s->look));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, PETSC_STATIC_ARRAY_LENGTH(s->look->stats), sizeof(*stats), &stats));
  PetscCall(HybDeviceFork(exec, 1, side));
  first = HybPlanRowCosts(side, A, B->i, NULL, NULL, stats);
  if (!first) first = TileFind(mm, A, B, s, &x);
  y = {s->order, s->low, s->words, 0};
  if (!first) first = TileTasksCount(mm, x, y, s);
  ierr = HybDeviceJoin(exec, 1);
  if (!first) first = ierr;
  PetscCall(first);
  PetscCall(exec->backend->copy(exec, s->look->stats, stats, sizeof(s->look->stats), HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(TileTasksRoom(mm, A, B, s));
  PetscCall(TileFillAll(mm, {x, y, s->p.chunks, s->chunkptr, s->tilecount, s->taskptr, s->p.tasks, s->p.chunktask, s->p.chunkrow, s->p.before, s->p.column, C->i, s->p.map, s->p.end}, s));
  PetscCall(HybScanCounts(exec, &mm->work, C->m, C->i, C->i, &s->look->nnz, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the multiplication does not need, before C's arrays are taken */
static PetscErrorCode TileForget(HybSpGEMM *mm, TileProduct *s)
{
  PetscFunctionBegin;
  if (!s->p.same) PetscCall(HybArenaFree(&mm->work, &s->p.b.tile, &s->p.b.mask));
  PetscCall(HybArenaFree(&mm->work, &s->p.a.tile, &s->p.a.mask, &s->room));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what half precision loses of the first values that come, with the pattern or after it */
static PetscErrorCode TileSay(HybSpGEMM *mm, const uint64_t bits[2], TileProduct *s)
{
  double error[2];

  PetscFunctionBegin;
  PetscCall(PetscMemcpy(error, bits, sizeof(error)));
  PetscCall(HybCountersSet(&mm->counters, "1e-9 of values of A lost in half precision", (PetscCount)(1e9 * error[0] + 0.5)));
  PetscCall(HybCountersSet(&mm->counters, "1e-9 of values of B lost in half precision", (PetscCount)(1e9 * error[1] + 0.5)));
  s->said = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TileErrors(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, TileProduct *s)
{
  uint64_t *found, bits[2];

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 4, sizeof(*found), &found));
  PetscCall(HybTilesError(&mm->exec, A, &found[0], &found[2]));
  PetscCall(HybTilesError(&mm->exec, B, &found[1], &found[3]));
  PetscCall(mm->exec.backend->copy(&mm->exec, bits, found + 2, sizeof(bits), HYB_COPY_DEVICE_TO_HOST));
  mm->waits++;
  PetscCall(TileSay(mm, bits, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_TileCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  const bool     half = HybDeviceTuning()->tile_precision == HYB_TILE_HALF && A->a && B->a;
  TileProduct   *s;

  PetscFunctionBegin;
  PetscCheck(PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX), PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpGEMM method tile cannot run: tensor cores multiply real numbers of double precision, and PetscScalar is %s of %zu bytes; choose another method", PetscDefined(USE_COMPLEX) ? "complex" : "real", sizeof(PetscScalar));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero((void *)s, sizeof(*s)));
  mm->data  = s;
  s->p.same = (PetscBool)(A->i == B->i && A->j == B->j && A->nnz == B->nnz);
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  if (A->nnz && B->nnz) {
    PetscCall(TilePattern(mm, A, B, s, C));
    if (half) PetscCall(HybTilesError(exec, A, &s->look->largest[0], &s->look->error[0]));
    if (half) PetscCall(HybTilesError(exec, B, &s->look->largest[1], &s->look->error[1]));
    PetscCall(exec->backend->copy(exec, &s->host.nnz, &s->look->nnz, offsetof(TileLook, spancount) - offsetof(TileLook, nnz), HYB_COPY_DEVICE_TO_HOST));
    mm->waits++;
    C->nnz = s->host.nnz;
    if (half) PetscCall(TileSay(mm, s->host.error, s));
    PetscCall(TileForget(mm, s));
  } else
    PetscCall(exec->backend->zero(exec, C->i, ((size_t)C->m + 1) * sizeof(PetscInt)));
  PetscCall(HybCountersSet(&mm->counters, "pairs of tiles", s->host.pairs));
  PetscCall(HybCountersSet(&mm->counters, "products of tiles", s->host.tasks));
  PetscCall(HybCountersSet(&mm->counters, "tiles", s->host.tiles));
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  if (C->nnz) PetscCall(HybTilesMultiply(exec, &mm->work, &s->p, A, B, C->j, C));
  /* workspace of this phase */
  s->look     = NULL;
  s->p.column = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_TileCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  TileProduct *s = (TileProduct *)mm->data;

  PetscFunctionBegin;
  if (C->nnz && !s->said && HybDeviceTuning()->tile_precision == HYB_TILE_HALF) PetscCall(TileErrors(mm, A, B, s));
  if (C->nnz) PetscCall(HybTilesMultiply(&mm->exec, &mm->work, &s->p, A, B, NULL, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_TileCUDA;
const HybSpGEMMMethod        HybSpGEMM_TileCUDA = {
         .name       = "tile",
         .applicable = HybSpGEMMApplicable_TileCUDA,
         .symbolic   = HybSpGEMMSymbolic_TileCUDA,
         .numeric    = HybSpGEMMNumeric_TileCUDA,
         .early      = PETSC_TRUE,
};
