/*
  tiles.cu: CSR to tiles of 8 x 8 (hybtile.h), and values to the order of tiles.

  Eight lanes take the eight rows of a row of tiles, which are sorted. The next tile is the smallest one that any of
  their next entries is in; each lane takes what its row has in there, and the numbers of these entries, summed over
  the lanes before, are the places of its values:

    while the least column / 8 of the lanes' next entries, t, exists:
      bits = what my row has in columns 8 t to 8 t + 7                    my byte of the map
      place[first + lanes before + 0, 1, ...] = those entries
      first += all lanes'

  So a row of tiles takes as many steps as it has tiles. Rows of more than TILES_LONG entries are left to blocks of
  threads, which go through windows of TILES_WINDOW columns of tiles with all maps of them in shared memory.

  Memory: 18 bytes for each entry of the matrix, as many tiles as there might be, and 4 for its place. Complexity: one
  pass over the pattern.

  Paper: O. Zachariadis, N. Satpute, J. Gomez-Luna, J. Olivares, Accelerating sparse matrix-matrix multiplication with
  GPU Tensor Cores, Computers and Electrical Engineering 88 (2020). There conversion is not part of the method's time.
*/
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybtile.h"

#define TILES_THREADS 256
#define TILES_LONG    1536 /* entries of a row of tiles */
#define TILES_WINDOW  2048 /* columns of tiles */
#define TILES_EACH    (TILES_WINDOW / TILES_THREADS)

static_assert(HYB_TILE == 8, "a tile's map is one word of 64 bits");

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

static __global__ __launch_bounds__(TILES_THREADS) void TilesShort(TilesArgs x)
{
  const int        lane = HybLane() & 7;
  const unsigned   mask = HybSubwarpMask<8>();
  const PetscCount R = ((PetscCount)blockIdx.x * TILES_THREADS + threadIdx.x) / 8, r = R * HYB_TILE + lane;
  PetscInt         all, tiles                                                        = 0, t;

  if (R >= x.t.rows) return;
  const PetscInt begin = TilesRow(x, R, &all);
  PetscInt       e = r < x.m ? x.i[r] : 0, end = r < x.m ? x.i[r + 1] : 0, first = begin, c = e < end ? x.j[e] : 0;

  if (all > TILES_LONG) return;
  while ((t = HybSubwarpMin<8>(e < end ? c / HYB_TILE : PETSC_MAX_INT)) != PETSC_MAX_INT) {
    const PetscInt entry = e;
    unsigned       bits  = 0;

    while (e < end && c / HYB_TILE == t) {
      bits |= 1u << (c % HYB_TILE);
      e++;
      if (e < end) c = x.j[e];
    }
    const PetscInt here    = first + HybSubwarpExclusiveSum<8>(e - entry, &all);
    const unsigned columns = HybSubwarpReduce<8>(bits, TilesOr()), rows = (__ballot_sync(mask, bits != 0) >> (HybLane() & ~7)) & 0xffu;
    HybTile       *to = x.t.tile + begin + tiles;

    for (PetscInt k = 0; k < e - entry; k++) x.t.place[here + k] = entry + k;
    ((unsigned char *)&to->map)[lane] = (unsigned char)bits; /* the lowest byte is the first in memory */
    if (lane == 0) {
      to->first               = first;
      to->column              = t;
      x.t.mask[begin + tiles] = (unsigned short)(rows | columns << 8);
    }
    first += all;
    tiles++;
  }
  if (lane == 0) x.t.count[R] = tiles;
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

/* rows and columns of a map that have entries */
static __device__ __forceinline__ unsigned TilesMask(const unsigned *map)
{
  unsigned columns = map[0] | map[1], rows = 0;

  columns |= columns >> 16;
  columns = (columns | columns >> 8) & 0xffu;
#pragma unroll
  for (int r = 0; r < HYB_TILE; r++) rows |= ((map[r / 4] >> (r % 4 * 8)) & 0xffu) ? 1u << r : 0u;
  return rows | columns << 8;
}

/* a window's tiles, from the maps in shared memory: each thread has TILES_EACH of them in a row. offset: of their
   values */
static __device__ void TilesWindow(const TilesArgs &x, PetscCount t0, PetscInt begin, const unsigned *map, PetscInt *offset, PetscInt *scratch, PetscInt *tiles, PetscInt *first)
{
  const int mine = (int)threadIdx.x * TILES_EACH;
  PetscInt  n = 0, values = 0, alltiles, allvalues;

  for (int k = mine; k < mine + TILES_EACH; k++) {
    const int here = __popc(map[2 * k]) + __popc(map[2 * k + 1]);

    n += here > 0;
    values += here;
  }
  PetscInt at = begin + *tiles + HybBlockExclusiveSum<TILES_THREADS>(n, scratch, &alltiles), v = *first + HybBlockExclusiveSum<TILES_THREADS>(values, scratch, &allvalues);
  for (int k = mine; k < mine + TILES_EACH; k++) {
    const int here = __popc(map[2 * k]) + __popc(map[2 * k + 1]);

    offset[k] = v;
    if (here) {
      x.t.tile[at].map    = (uint64_t)map[2 * k + 1] << 32 | map[2 * k];
      x.t.tile[at].first  = v;
      x.t.tile[at].column = (PetscInt)(t0 + k);
      x.t.mask[at]        = (unsigned short)TilesMask(map + 2 * k);
      at++;
    }
    v += here;
  }
  *tiles += alltiles;
  *first += allvalues;
  __syncthreads();
}

/* a long row of tiles, by a block */
static __device__ void TilesLongRow(const TilesArgs &x, PetscCount R, unsigned *map, PetscInt *offset, PetscInt *scratch)
{
  const int      nrows = (int)HybMin()((PetscCount)x.m - R * HYB_TILE, (PetscCount)HYB_TILE);
  PetscInt       all, tiles = 0;
  const PetscInt begin = TilesRow(x, R, &all);
  PetscInt       first = begin, cursor[HYB_TILE];

#pragma unroll
  for (int r = 0; r < HYB_TILE; r++) cursor[r] = r < nrows ? x.i[R * HYB_TILE + r] : 0;
  while (first < begin + all) {
    PetscInt t0 = PETSC_MAX_INT;

#pragma unroll
    for (int r = 0; r < HYB_TILE; r++)
      if (r < nrows && cursor[r] < x.i[R * HYB_TILE + r + 1]) t0 = HybMin()(t0, x.j[cursor[r]] / HYB_TILE);
    for (int k = (int)threadIdx.x; k < 2 * TILES_WINDOW; k += TILES_THREADS) map[k] = 0;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < HYB_TILE; r++) {
      if (r < nrows)
        (void)TilesBefore(x, cursor[r], x.i[R * HYB_TILE + r + 1], (PetscCount)t0 + TILES_WINDOW, [&](PetscInt e) {
          const PetscInt c = x.j[e] - t0 * HYB_TILE;

          HybAtomicOr(&map[c / HYB_TILE * 2 + r / 4], 1u << (r % 4 * 8 + c % HYB_TILE));
        });
    }
    TilesWindow(x, t0, begin, map, offset, scratch, &tiles, &first);
#pragma unroll
    for (int r = 0; r < HYB_TILE; r++) {
      if (r < nrows)
        cursor[r] += TilesBefore(x, cursor[r], x.i[R * HYB_TILE + r + 1], (PetscCount)t0 + TILES_WINDOW, [&](PetscInt e) {
          const PetscInt  c = x.j[e] - t0 * HYB_TILE;
          const unsigned *w = map + c / HYB_TILE * 2, below = (1u << (r % 4 * 8 + c % HYB_TILE)) - 1;

          x.t.place[offset[c / HYB_TILE] + (r < 4 ? 0 : __popc(w[0])) + __popc(w[r / 4] & below)] = e;
        });
    }
  }
  if (threadIdx.x == 0) x.t.count[R] = tiles;
}

/* each thread looks at a row of tiles, and all of a block go through those of them that are long */
static __global__ __launch_bounds__(TILES_THREADS) void TilesLong(TilesArgs x)
{
  HYB_SHARED(unsigned, map, 2 * TILES_WINDOW);
  HYB_SHARED(PetscInt, offset, TILES_WINDOW);
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
      for (mark = marks[w]; mark; mark &= mark - 1) TilesLongRow(x, base + (PetscCount)gridDim.x * (w * HYB_WARP + __ffs((int)mark) - 1), map, offset, scratch);
    __syncthreads();
  }
}

static __global__ __launch_bounds__(TILES_THREADS) void TilesValues(PetscCount nnz, const PetscInt *__restrict__ place, const HybScalar *__restrict__ a, HybScalar *__restrict__ value)
{
  const PetscCount k = (PetscCount)blockIdx.x * TILES_THREADS + threadIdx.x;

  if (k < nnz) value[k] = a[place[k]];
}

PetscErrorCode HybTilesMake(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybTiles *t)
{
  TilesArgs x;
  int       sms;

  PetscFunctionBegin;
  t->rows = A->m / HYB_TILE + (A->m % HYB_TILE != 0);
  t->i    = A->i;
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, A->nnz, sizeof(*t->tile), &t->tile));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, A->nnz, sizeof(*t->place), &t->place));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->nnz, sizeof(*t->mask), &t->mask));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, t->rows, sizeof(*t->count), &t->count));
  x.m = A->m;
  x.i = A->i;
  x.j = A->j;
  x.t = *t;
  PetscCall(HybDeviceLimits(NULL, &sms));
  HYB_LAUNCH(TilesShort, HybBlocks((PetscCount)t->rows * 8, TILES_THREADS), TILES_THREADS, 0, exec->stream, x);
  if (A->nnz > TILES_LONG) HYB_LAUNCH(TilesLong, PetscMin((PetscCount)t->rows, (PetscCount)6 * sms), TILES_THREADS, 0, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTilesValues(const HybExec *exec, PetscCount nnz, const HybTiles *t, const HybScalar *a, HybScalar *value)
{
  PetscFunctionBegin;
  HYB_LAUNCH(TilesValues, HybBlocks(nnz, TILES_THREADS), TILES_THREADS, 0, exec->stream, nnz, t->place, a, value);
  PetscFunctionReturn(PETSC_SUCCESS);
}
