/*
  multiply.cu: products of tiles on tensor cores (hybtile.h).

  Idea. A warp has a chunk of eight tiles of C, whose tasks, pairs of a tile of A and one of B, lie behind each other.
  A pair is two instructions mma.m8n8k4.f64: each lane gives two entries of either tile and has two entries of C's in
  registers. Where an entry is, its map tells: the number of bits below its own; where it has none a zero is given.

    for each task of the chunk, 32 of them staged in shared memory together:
      the next one's entries are loaded, this one's multiplied and added
      behind the last one of a tile of C: entries to their places in CSR, columns ascending

  Order of sums. A tensor core adds the products of an entry one by one, k ascending, each by a fused multiply-add:
  measured, not documented. So an entry of C is a chain of fma() in A's order. A host gets the same bits in the same
  way, but other methods, which round a product and its sum apart, differ in the last places.

  What is not there is multiplied as zero. That changes nothing of a sum that is finite and not zero: 0 x = +-0 for
  finite x, and adding it leaves such a sum as it is. Three kinds of sums do change, and all can be told by what came
  out, since a sum that has left the finite numbers does not return: NaN and infinities (0 Inf = NaN), and zeros
  (-0 + +0 = +0). Where an entry of a tile of C came out as one of these, the tile's tasks are gone through once more
  by plain fma() of what is there, from -0 on, which leaves a first product as it is. So nothing must be known of the
  operands' values beforehand, and stored zeros, NaN and infinities reach the entries that have a product with them,
  and no other.

  Memory: the values of both operands once more, in the order of tiles. Complexity: 1024 operations a pair; what binds is
  the finding of entries, about fifty instructions.

  Paper: O. Zachariadis, N. Satpute, J. Gomez-Luna, J. Olivares, Accelerating sparse matrix-matrix multiplication with
  GPU Tensor Cores, Computers and Electrical Engineering 88 (2020).
*/
#include "../device/hybdevice.cuh"
#include "aijhybridgpu/private/hybtile.h"

#if !defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_DOUBLE)
  #define TILE_WARPS 4 /* of a block */

struct TileMultiplyArgs {
  PetscInt          m, chunks;
  const HybTile    *a, *b;
  const HybTileTask   *tasks;
  const PetscCount *chunktask;
  const PetscInt   *chunkrow, *before, *column, *ci;
  const uint64_t   *map;
  const double     *va, *vb;
  PetscInt         *cj; /* NULL: the columns are there */
  double           *ca; /* NULL: columns only */
};

/* what a lane gives to a product of tiles: two entries of each */
struct TileOperands {
  double a[2], b[2];
};

/* A(l / 4, l % 4 and that + 4), B(l % 4 and that + 4, l / 4) for lane l, zero where there is none */
static __device__ __forceinline__ TileOperands TileLoad(const HybTile &ta, const HybTile &tb, const double *__restrict__ va, const double *__restrict__ vb)
{
  const int           lane = HybLane(), sa = (lane >> 2 & 3) * 8 + (lane & 3), sb = (lane & 3) * 8 + (lane >> 2);
  const bool          upper = lane >= 16;
  const unsigned      alow = (unsigned)ta.map, blow = (unsigned)tb.map, bhigh = (unsigned)(tb.map >> 32), word = upper ? (unsigned)(ta.map >> 32) : alow, mine = word >> sa, below = (1u << sb) - 1;
  const double *const a = va + ta.first + (upper ? __popc(alow) : 0) + __popc(word & ((1u << sa) - 1)), *const b = vb + tb.first;
  TileOperands        x;

  x.a[0] = mine & 1 ? a[0] : 0;
  x.a[1] = mine & 16 ? a[__popc(mine & 15)] : 0;
  x.b[0] = blow >> sb & 1 ? b[__popc(blow & below)] : 0;
  x.b[1] = bhigh >> sb & 1 ? b[__popc(blow) + __popc(bhigh & below)] : 0;
  return x;
}

/* the sums of a tile of C of what is there alone */
static __device__ __forceinline__ void TileExact(const TileMultiplyArgs &x, PetscCount begin, PetscCount end, double c[2])
{
  const int i = HybLane() >> 2, j = 2 * (HybLane() & 3);

  c[0] = c[1] = -0.0;
#pragma unroll 1
  for (PetscCount t = begin; t < end; t++) {
    const HybTileTask task = x.tasks[t];
    const HybTile  ta = x.a[task.a], tb = x.b[task.b < 0 ? ~task.b : task.b];

#pragma unroll 1
    for (int k = 0; k < HYB_TILE; k++) {
      const int abit = 8 * i + k;

      if (!(ta.map >> abit & 1)) continue;
      const double a = x.va[ta.first + __popcll(ta.map & (((uint64_t)1 << abit) - 1))];
      for (int n = 0; n < 2; n++) {
        const int bbit = 8 * k + j + n;

        if (tb.map >> bbit & 1) c[n] = HybFma(a, x.vb[tb.first + __popcll(tb.map & (((uint64_t)1 << bbit) - 1))], c[n]);
      }
    }
  }
}

/* may zeros that are not there have changed this sum? */
static __device__ __forceinline__ bool TileDoubtful(double c)
{
  return !(fabs(c) > 0 && fabs(c) <= PETSC_MAX_REAL);
}

/* where in C the lane's two entries of a tile are, by the row's entries before the tile; which of them exist, two bits */
static __device__ __forceinline__ PetscInt TilePlace(uint64_t map, PetscInt *before, unsigned *two)
{
  const unsigned row = (unsigned)(map >> (8 * (HybLane() >> 2))) & 0xffu, j = 2 * (HybLane() & 3);
  const PetscInt at = *before + __popc(row & ((1u << j) - 1));

  *two = row >> j & 3u;
  *before += __popc(row);
  return at;
}

static __device__ __forceinline__ void TileWrite(const TileMultiplyArgs &x, PetscInt at, unsigned two, PetscInt column, const double c[2])
{
  const PetscInt next = at + (PetscInt)(two & 1), j = column * HYB_TILE + 2 * (HybLane() & 3);

  if (two & 1) {
    if (x.ca) x.ca[at] = c[0];
    if (x.cj) x.cj[at] = j;
  }
  if (two & 2) {
    if (x.ca) x.ca[next] = c[1];
    if (x.cj) x.cj[next] = j + 1;
  }
}

/* a warp a chunk of tiles of C */
static __global__ void __launch_bounds__(TILE_WARPS *HYB_WARP, 9) TilesMultiply(TileMultiplyArgs x)
{
  HYB_SHARED(HybTile, staged, TILE_WARPS * 2 * HYB_WARP);
  const int        lane = HybLane(), warp = (int)threadIdx.x / HYB_WARP;
  HybTile *const   ta = staged + warp * 2 * HYB_WARP, *const tb = ta + HYB_WARP;
  const PetscCount chunk = (PetscCount)blockIdx.x * TILE_WARPS + warp;

  if (chunk >= x.chunks) return;
  const PetscCount begin = x.chunktask[chunk], end = x.chunktask[chunk + 1], r = (PetscCount)x.chunkrow[chunk] * HYB_TILE + (lane >> 2);
  const uint64_t   map    = lane < HYB_TILE_CHUNK ? x.map[chunk * HYB_TILE_CHUNK + lane] : 0;
  const PetscInt   column = x.cj && map ? x.column[chunk * HYB_TILE_CHUNK + lane] : 0;
  PetscInt         before = r < x.m ? x.ci[r] + x.before[chunk * HYB_TILE_CHUNK + (lane >> 2)] : 0;
  PetscCount       tile   = begin; /* the first task of the tile of C */
  int              number = 0;     /* of it in the chunk */
  double           c[2]   = {-0.0, -0.0};

  for (PetscCount t0 = begin; t0 < end; t0 += HYB_WARP) {
    const int n = (int)HybMin()(end - t0, (PetscCount)HYB_WARP);
    HybTileTask  task;

    task.a = task.b = 0;
    if (lane < n) {
      task     = x.tasks[t0 + lane];
      ta[lane] = x.a[task.a];
      tb[lane] = x.b[task.b < 0 ? ~task.b : task.b];
    }
    const unsigned last = __ballot_sync(HYB_FULL_MASK, task.b < 0);
    __syncwarp();
    TileOperands now = TileLoad(ta[0], tb[0], x.va, x.vb);

    for (int q = 0; q < n; q++) {
      TileOperands next = now;

      /* these are on their way while the others are multiplied */
      if (q + 1 < n) next = TileLoad(ta[q + 1], tb[q + 1], x.va, x.vb);
      HybMultiplyTiles(now.a[0], now.b[0], c);
      HybMultiplyTiles(now.a[1], now.b[1], c);
      if (last >> q & 1) {
        unsigned       two;
        const PetscInt at = TilePlace(HybShfl(HYB_FULL_MASK, map, number), &before, &two);

        if (__any_sync(HYB_FULL_MASK, ((two & 1) && TileDoubtful(c[0])) || ((two & 2) && TileDoubtful(c[1])))) TileExact(x, tile, t0 + q + 1, c);
        TileWrite(x, at, two, HybShfl(HYB_FULL_MASK, column, number), c);
        c[0] = c[1] = -0.0;
        tile        = t0 + q + 1;
        number++;
      }
      now = next;
    }
    __syncwarp();
  }
}

/* the columns alone, for a pattern without values */
static __global__ void __launch_bounds__(TILE_WARPS *HYB_WARP) TilesColumns(TileMultiplyArgs x)
{
  const PetscCount chunk = (PetscCount)blockIdx.x * TILE_WARPS + threadIdx.x / HYB_WARP;
  const double     none[2] = {0, 0};

  if (chunk >= x.chunks) return;
  const PetscCount r      = (PetscCount)x.chunkrow[chunk] * HYB_TILE + (HybLane() >> 2);
  PetscInt         before = r < x.m ? x.ci[r] + x.before[chunk * HYB_TILE_CHUNK + (HybLane() >> 2)] : 0;

  for (PetscCount t = chunk * HYB_TILE_CHUNK; t < (chunk + 1) * HYB_TILE_CHUNK; t++) {
    const uint64_t map = x.map[t];
    unsigned       two;
    const PetscInt at = TilePlace(map, &before, &two);

    if (map) TileWrite(x, at, two, x.column[t], none);
  }
}

PetscErrorCode HybTilesMultiply(const HybExec *exec, HybArena *work, const HybTilesProduct *p, const HybCSR *A, const HybCSR *B, PetscInt *cj, HybCSR *C)
{
  TileMultiplyArgs x  = {C->m, p->chunks, p->a.tile, p->b.tile, p->tasks, p->chunktask, p->chunkrow, p->before, p->column, C->i, p->map, NULL, NULL, cj, C->a};
  double          *va = NULL, *vb = NULL;

  PetscFunctionBegin;
  if (C->a) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->nnz, sizeof(*va), &va));
    PetscCall(HybTilesValues(exec, A->nnz, &p->a, A->a, va));
    vb = va;
    if (!p->same || A->a != B->a) {
      PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, B->nnz, sizeof(*vb), &vb));
      PetscCall(HybTilesValues(exec, B->nnz, &p->b, B->a, vb));
    }
    x.va = va;
    x.vb = vb;
    HYB_LAUNCH(TilesMultiply, HybBlocks(p->chunks, TILE_WARPS), TILE_WARPS * HYB_WARP, 0, exec->stream, x);
  } else
    HYB_LAUNCH(TilesColumns, HybBlocks(p->chunks, TILE_WARPS), TILE_WARPS * HYB_WARP, 0, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode HybTilesMultiply(const HybExec *, HybArena *, const HybTilesProduct *, const HybCSR *, const HybCSR *, PetscInt *, HybCSR *)
{
  PetscFunctionBegin;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "Tensor cores multiply real numbers of double precision");
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
