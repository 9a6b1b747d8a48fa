/*
  multiply.cu: products of tiles on tensor cores (tile.cuh).

  Idea. A warp has a chunk of eight tiles of C, whose tasks, pairs of a tile of A and one of B, lie behind each other.
  A pair is two instructions mma.m8n8k4.f64: each lane gives two entries of either tile and has two entries of C's in
  registers. Where an entry is, its row of the tile tells (tile.cuh): four bits for each column say whether it is there
  and how many are before it, and the row's first one is a place in CSR. Where there is none a zero is given.

    for each task of the chunk:
      the task three behind it is loaded, rows of the tiles two behind it, entries one behind it
      this one's are multiplied and added
      behind the last one of a tile of C: values to their places in CSR

  Columns, where they are wanted, are written before, row by row of the chunk.

  Order of sums. A tensor core adds the products of an entry one by one, k ascending, each by a fused multiply-add:
  measured, not documented. So an entry of C is a chain of fma() in A's order. A host gets the same bits in the same
  way, but other methods, which round a product and its sum apart, differ in the last places.

  What is not there is multiplied as zero. That changes nothing of a sum that is finite and not zero: 0 x = +-0 for
  finite x, and adding it leaves such a sum as it is. Three kinds of sums do change, and all can be told by what came
  out, since a sum that has left the finite numbers does not return: NaN and infinities (0 Inf = NaN), and zeros
  (-0 + +0 = +0). Where an entry of a tile of C came out as one of these, the tile's tasks are gone through once more,
  when the chunk is done, by plain fma() of what is there, from -0 on, which leaves a first product as it is. So nothing
  must be known of the operands' values beforehand, and stored zeros, NaN and infinities reach the entries that have a
  product with them, and no other.

  Half precision (-mat_aijhybridgpu_tuning tile_precision=half) is the paper's own: values of 16 bits, products and sums
  of 32, one mma.m16n8k8 a pair, half of whose rows are left empty (the paper lays two tiles into the corners of 16 x 16
  x 16). What is other: values are multiplied with a power of two that brings the largest just below the end of the
  range, and the result with its inverse, so that a matrix in any unit can be taken. Bits are the card's own: how its
  tensor cores round such sums is not known. The largest relative error of a value is counted in a first product and
  shown by -info.

  Memory: none; in half precision, the values of both operands in 16 bits. Complexity: 1024 operations a pair, for 41
  instructions; what binds is the first-level cache, which is asked for entries of eight rows at a time.

  Paper: O. Zachariadis, N. Satpute, J. Gomez-Luna, J. Olivares, Accelerating sparse matrix-matrix multiplication with
  GPU Tensor Cores, Computers and Electrical Engineering 88 (2020).
*/
#include "../../device/hybdevice.cuh"
#include "tile.cuh"

#if !defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_DOUBLE)
  #define TILE_WARPS   4   /* of a block; none waits for another */
  #define TILE_THREADS 256 /* of kernels that have a thread a value */

static_assert(4 * HYB_TILE_CHUNK == HYB_WARP, "four lanes have a row of a tile of C");

struct TileMultiplyArgs {
  PetscInt           m, chunks;
  const HybTileRow  *a, *b;
  const HybTileTask *tasks;
  const PetscCount  *chunktask;
  const PetscInt    *chunkrow, *before, *column, *ci;
  const uint64_t    *map;
  const unsigned    *end;
  const void        *va, *vb;
  const uint64_t    *largest; /* of the values of A and of B, in half precision */
  PetscInt          *cj;      /* NULL: the columns are there */
  double            *ca;      /* NULL: columns only */
};

/* the value of a row of a tile in the column whose four bits have been shifted to the highest ones, zero where there is
   none */
template <typename T>
static __device__ __forceinline__ T TileTake(const T *__restrict__ value, PetscInt first, unsigned columns)
{
  return (int)columns < 0 ? HybLoadReadOnly(value + (first + (PetscInt)(columns >> 28))) : T(0);
}

/* a value that is to stay in a register: a compiler would compute it again for each pair, unless it cannot know it */
template <typename T>
static __device__ __forceinline__ T TileKeep(const T &v)
{
  return HybShfl(HYB_FULL_MASK, v, HybLane());
}

/* by how much a lane shifts columns of its two entries of A and of those of B */
struct TileShift {
  int a[2], b;
};

/* The way of double precision: what a lane gives to a product of tiles, two entries of each */
struct TileDouble {
  using Value = double;
  using Sum   = double;
  double a[2], b[2];

  /* A(l / 4, l % 4 and that + 4), B(l % 4 and that + 4, l / 4) for lane l: the second row of B is so far behind the
     first */
  static constexpr int                  HIGH = 4;
  static __device__ __forceinline__ int row()
  {
    return HybLane() & 3;
  }
  static __device__ __forceinline__ TileShift shift()
  {
    const int i = HybLane() >> 2, k = HybLane() & 3;

    return {
      {TileKeep(28 - 4 * k), TileKeep(12 - 4 * k)},
      TileKeep(28 - 4 * i)
    };
  }
  __device__ __forceinline__ void load(const HybTileRow &ra, const HybTileRow &low, const HybTileRow &high, const TileShift &by, const double *__restrict__ va, const double *__restrict__ vb)
  {
    a[0] = TileTake(va, ra.first, ra.columns << by.a[0]);
    a[1] = TileTake(va, ra.first, ra.columns << by.a[1]);
    b[0] = TileTake(vb, low.first, low.columns << by.b);
    b[1] = TileTake(vb, high.first, high.columns << by.b);
  }
  __device__ __forceinline__ void multiply(double c[2]) const
  {
    HybMultiplyTiles(a[0], b[0], c);
    HybMultiplyTiles(a[1], b[1], c);
  }
  static __device__ __forceinline__ double add(double x, double y, double c)
  {
    return HybFma(x, y, c);
  }
  static __device__ __forceinline__ double result(const TileMultiplyArgs &, double c)
  {
    return c;
  }
};

/* The largest value, as its bits, lies in 2^e to 2^(e+1): so that it comes below 2^15 all are multiplied with this
   power of two. Half precision ends at 65504, and below 2^-14 it has fewer digits. */
static __device__ __forceinline__ int TileExponent(uint64_t largest)
{
  return largest ? HybMin()(14 - ((int)(largest >> 52) - 1023), 1022) : 0;
}

static __device__ __forceinline__ double TilePower(int e)
{
  return __longlong_as_double((long long)(e + 1023) << 52);
}

/* The way of half precision: values of 16 bits, sums of 32 */
struct TileHalf {
  using Value = unsigned short;
  using Sum   = float;
  unsigned a, b; /* two neighbours each */

  /* A(l / 4, 2 (l % 4) and that + 1), B(2 (l % 4) and that + 1, l / 4) */
  static constexpr int                  HIGH = 1;
  static __device__ __forceinline__ int row()
  {
    return 2 * (HybLane() & 3);
  }
  static __device__ __forceinline__ TileShift shift()
  {
    const int i = HybLane() >> 2, k = 2 * (HybLane() & 3);

    return {
      {TileKeep(28 - 4 * k), TileKeep(24 - 4 * k)},
      TileKeep(28 - 4 * i)
    };
  }
  __device__ __forceinline__ void load(const HybTileRow &ra, const HybTileRow &low, const HybTileRow &high, const TileShift &by, const unsigned short *__restrict__ va, const unsigned short *__restrict__ vb)
  {
    a = TileTake(va, ra.first, ra.columns << by.a[0]) | (unsigned)TileTake(va, ra.first, ra.columns << by.a[1]) << 16;
    b = TileTake(vb, low.first, low.columns << by.b) | (unsigned)TileTake(vb, high.first, high.columns << by.b) << 16;
  }
  __device__ __forceinline__ void multiply(float c[2]) const
  {
    HybMultiplyHalfTiles(a, b, c);
  }
  static __device__ __forceinline__ float add(unsigned short x, unsigned short y, float c)
  {
    return (float)(HybFromHalf(x) * HybFromHalf(y) + (double)c);
  }
  /* in two steps of about one length: each operand's own might leave the range where both together do not */
  static __device__ __forceinline__ double result(const TileMultiplyArgs &x, float c)
  {
    const int e = TileExponent(x.largest[0]) + TileExponent(x.largest[1]);

    return (double)c * TilePower(-(e / 2)) * TilePower(-(e - e / 2));
  }
};

/* the sums of a tile of C of what is there alone */
template <typename P>
static __device__ __forceinline__ void TileExact(const TileMultiplyArgs &x, PetscCount begin, PetscCount end, typename P::Sum c[2])
{
  const typename P::Value *const va = (const typename P::Value *)x.va, *const vb = (const typename P::Value *)x.vb;
  const int i = HybLane() >> 2, j = 2 * (HybLane() & 3);

  c[0] = c[1] = -(typename P::Sum)0;
  #pragma unroll 1
  for (PetscCount t = begin; t < end; t++) {
    const HybTileRow row = x.a[(PetscCount)x.tasks[t].a * HYB_TILE + i];

  #pragma unroll 1
    for (int k = 0; k < HYB_TILE; k++) {
      const unsigned acolumns = row.columns << (28 - 4 * k);

      if ((int)acolumns >= 0) continue;
      const HybTileRow with = x.b[(PetscCount)x.tasks[t].b * HYB_TILE + k];

      for (int n = 0; n < 2; n++) {
        const unsigned columns = with.columns << (28 - 4 * (j + n));

        if ((int)columns < 0) c[n] = P::add(TileTake(va, row.first, acolumns), TileTake(vb, with.first, columns), c[n]);
      }
    }
  }
}

/* may zeros that are not there have changed this sum? */
static __device__ __forceinline__ bool TileDoubtful(double c)
{
  return !(fabs(c) > 0 && fabs(c) <= PETSC_MAX_REAL);
}

/* where in C the lane's two entries of a tile are, by the row's entries before the tile; which of them exist, two
   bits */
static __device__ __forceinline__ PetscInt TilePlace(uint64_t map, PetscInt *before, unsigned *two)
{
  const unsigned row = (unsigned)(map >> (8 * (HybLane() >> 2))) & 0xffu, j = 2 * (HybLane() & 3);
  const PetscInt at = *before + __popc(row & ((1u << j) - 1));

  *two = row >> j & 3u;
  *before += __popc(row);
  return at;
}

static __device__ __forceinline__ void TileWrite(const TileMultiplyArgs &x, PetscInt at, unsigned two, const double c[2])
{
  if (two & 1) x.ca[at] = c[0];
  if (two & 2) x.ca[at + (PetscInt)(two & 1)] = c[1];
}

/* The columns of a chunk's entries, row by row, in which they are neighbours: four lanes a tile, two columns each. Lane
   t < HYB_TILE_CHUNK has tile t's map; before: where in C the chunk's entries of row lane / 4 begin */
static __device__ __forceinline__ void TileColumns(const TileMultiplyArgs &x, PetscCount chunk, uint64_t map, PetscInt before)
{
  const int      lane = HybLane(), tile = lane >> 2, j = 2 * (lane & 3);
  const uint64_t mine   = HybShfl(HYB_FULL_MASK, map, tile);
  const PetscInt column = mine ? x.column[chunk * HYB_TILE_CHUNK + tile] * HYB_TILE + j : 0;

  #pragma unroll
  for (int r = 0; r < HYB_TILE; r++) {
    const unsigned two = (unsigned)(mine >> (8 * r + j)) & 3u;
    const unsigned one = __ballot_sync(HYB_FULL_MASK, two & 1), other = __ballot_sync(HYB_FULL_MASK, two & 2);
    const PetscInt at = HybShfl(HYB_FULL_MASK, before, 4 * r) + __popc(one & HybLanesBelow()) + __popc(other & HybLanesBelow());

    if (two & 1) x.cj[at] = column;
    if (two & 2) x.cj[at + (PetscInt)(two & 1)] = column + 1;
  }
}

/* what a lane needs to find its entries of a pair */
struct TilePair {
  HybTileRow a, low, high;
};

template <typename P>
static __device__ __forceinline__ TilePair TilePairOf(const HybTileRow *a, const HybTileRow *b, const HybTileTask &t)
{
  const HybTileRow *const tb = b + (PetscCount)t.b * HYB_TILE;

  return {HybLoadReadOnly(a + (PetscCount)t.a * HYB_TILE), HybLoadReadOnly(tb), HybLoadReadOnly(tb + P::HIGH)};
}

/* a warp a chunk of tiles of C; P: the precision's way */
template <typename P>
static __global__ void __launch_bounds__(TILE_WARPS *HYB_WARP, 32 / TILE_WARPS) TilesMultiply(TileMultiplyArgs x)
{
  const int        lane  = HybLane();
  const PetscCount chunk = (PetscCount)blockIdx.x * TILE_WARPS + threadIdx.x / HYB_WARP;

  if (chunk >= x.chunks) return;
  const typename P::Value *const va = TileKeep((const typename P::Value *)x.va), *const vb = TileKeep((const typename P::Value *)x.vb);
  const HybTileRow *const ra = TileKeep(x.a + (lane >> 2)), *const rb = TileKeep(x.b + P::row());
  const TileShift  by    = P::shift();
  const PetscCount begin = x.chunktask[chunk], r = (PetscCount)x.chunkrow[chunk] * HYB_TILE + (lane >> 2);
  const uint64_t   map = lane < HYB_TILE_CHUNK ? x.map[chunk * HYB_TILE_CHUNK + lane] : 0;
  /* of each tile's tasks */
  const unsigned  end     = map ? x.end[chunk * HYB_TILE_CHUNK + lane] - (unsigned)begin : 0;
  PetscInt        before  = r < x.m ? x.ci[r] + x.before[chunk * HYB_TILE_CHUNK + (lane >> 2)] : 0;
  unsigned        doubted = 0;                                      /* tiles of C */
  int             number  = 0;                                      /* of the tile of C in the chunk */
  unsigned        done = 0, until = HybShfl(HYB_FULL_MASK, end, 0); /* tasks */
  typename P::Sum c[2] = {-(typename P::Sum)0, -(typename P::Sum)0};

  if (x.cj) TileColumns(x, chunk, map, before);
  /* a pair is three steps ahead when its task is loaded, two when rows of its tiles are, one when their entries are */
  const HybTileTask *task = x.tasks + begin;
  HybTileTask        t[2] = {
           HybLoadReadOnly(task + 2), {0, 0}
  };
  TilePair pair[2] = {TilePairOf<P>(ra, rb, HybLoadReadOnly(task)), TilePairOf<P>(ra, rb, HybLoadReadOnly(task + 1))};
  P        now[2];

  now[0].load(pair[0].a, pair[0].low, pair[0].high, by, va, vb);
  while (until) {
  #pragma unroll
    for (int u = 0; u < 4; u++) {
      const int o = u & 1;

      t[!o] = HybLoadReadOnly(task + u + 3);
      now[!o].load(pair[!o].a, pair[!o].low, pair[!o].high, by, va, vb);
      pair[o] = TilePairOf<P>(ra, rb, t[o]);
      now[o].multiply(c);
      if (done + u + 1 == until) {
        unsigned       two;
        const PetscInt at = TilePlace(HybShfl(HYB_FULL_MASK, map, number), &before, &two);

        if (((two & 1) && TileDoubtful(c[0])) || ((two & 2) && TileDoubtful(c[1]))) doubted |= 1u << number;
        const double value[2] = {P::result(x, c[0]), P::result(x, c[1])};
        TileWrite(x, at, two, value);
        c[0] = c[1] = -(typename P::Sum)0;
        until       = HybShfl(HYB_FULL_MASK, end, ++number); /* 0 behind the last */
        if (!until) break;
      }
    }
    task += 4;
    done += 4;
  }
  if (!__any_sync(HYB_FULL_MASK, doubted != 0)) return;

  const int tiles = number;
  done            = 0;
  before          = x.ci[HybMin()(r, (PetscCount)x.m)] + x.before[chunk * HYB_TILE_CHUNK + (lane >> 2)];
  #pragma unroll 1
  for (number = 0; number < tiles; number++) {
    unsigned       two;
    const PetscInt at = TilePlace(HybShfl(HYB_FULL_MASK, map, number), &before, &two);

    until = HybShfl(HYB_FULL_MASK, end, number);
    if (__any_sync(HYB_FULL_MASK, doubted >> number & 1)) {
      TileExact<P>(x, begin + done, begin + until, c);
      const double value[2] = {P::result(x, c[0]), P::result(x, c[1])};

      TileWrite(x, at, two, value);
    }
    done = until;
  }
}

/* the columns alone, for a pattern without values */
static __global__ void __launch_bounds__(TILE_WARPS *HYB_WARP) TilesColumns(TileMultiplyArgs x)
{
  const int        lane  = HybLane();
  const PetscCount chunk = (PetscCount)blockIdx.x * TILE_WARPS + threadIdx.x / HYB_WARP;

  if (chunk >= x.chunks) return;
  const PetscCount r = (PetscCount)x.chunkrow[chunk] * HYB_TILE + (lane >> 2);

  TileColumns(x, chunk, lane < HYB_TILE_CHUNK ? x.map[chunk * HYB_TILE_CHUNK + lane] : 0, r < x.m ? x.ci[r] + x.before[chunk * HYB_TILE_CHUNK + (lane >> 2)] : 0);
}

/* of |a|, where it is finite: bits of numbers that are not negative have their order */
static __global__ __launch_bounds__(TILE_THREADS) void TilesLargest(PetscCount nnz, const double *__restrict__ a, uint64_t *largest)
{
  HYB_SHARED(uint64_t, scratch, HYB_WARP);
  uint64_t most = 0;

  for (PetscCount k = (PetscCount)blockIdx.x * TILE_THREADS + threadIdx.x; k < nnz; k += (PetscCount)gridDim.x * TILE_THREADS) {
    const double v = fabs(a[k]);

    if (v <= PETSC_MAX_REAL) most = HybMax()(most, (uint64_t)__double_as_longlong(v));
  }
  most = HybBlockMax<TILE_THREADS>(most, scratch);
  if (threadIdx.x == 0) HybAtomicMax((unsigned long long *)largest, (unsigned long long)most);
}

static __global__ __launch_bounds__(TILE_THREADS) void TilesHalf(PetscCount nnz, const double *__restrict__ a, const uint64_t *largest, unsigned short *__restrict__ value)
{
  const PetscCount k     = (PetscCount)blockIdx.x * TILE_THREADS + threadIdx.x;
  const double     power = TilePower(TileExponent(*largest));

  if (k < nnz) value[k] = HybToHalf(a[k] * power);
}

/* the largest of |half(a) - a| / |a|, as its bits */
static __global__ __launch_bounds__(TILE_THREADS) void TilesError(PetscCount nnz, const double *__restrict__ a, const uint64_t *largest, uint64_t *error)
{
  HYB_SHARED(uint64_t, scratch, HYB_WARP);
  const double power = TilePower(TileExponent(*largest));
  uint64_t     most  = 0;

  for (PetscCount k = (PetscCount)blockIdx.x * TILE_THREADS + threadIdx.x; k < nnz; k += (PetscCount)gridDim.x * TILE_THREADS) {
    const double v = a[k] * power, lost = fabs(v) > 0 ? fabs(HybFromHalf(HybToHalf(v)) - v) / fabs(v) : 1;

    if (fabs(a[k]) > 0 && fabs(a[k]) <= PETSC_MAX_REAL) most = HybMax()(most, (uint64_t)__double_as_longlong(lost));
  }
  most = HybBlockMax<TILE_THREADS>(most, scratch);
  if (threadIdx.x == 0) HybAtomicMax((unsigned long long *)error, (unsigned long long)most);
}

static PetscErrorCode TilesLargestOf(const HybExec *exec, const HybCSR *A, uint64_t *largest)
{
  int sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(NULL, &sms));
  HYB_LAUNCH(TilesLargest, PetscMin(HybBlocks(A->nnz, TILE_THREADS), (PetscCount)8 * sms), TILE_THREADS, 0, exec->stream, A->nnz, A->a, largest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTilesError(const HybExec *exec, const HybCSR *A, uint64_t *largest, uint64_t *error)
{
  int sms;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(NULL, &sms));
  PetscCall(TilesLargestOf(exec, A, largest));
  HYB_LAUNCH(TilesError, PetscMin(HybBlocks(A->nnz, TILE_THREADS), (PetscCount)8 * sms), TILE_THREADS, 0, exec->stream, A->nnz, A->a, largest, error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values in half precision */
static PetscErrorCode TilesOperand(const HybExec *exec, HybArena *work, const HybCSR *A, uint64_t *largest, const void **value)
{
  unsigned short *v;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, A->nnz, sizeof(*v), &v));
  PetscCall(TilesLargestOf(exec, A, largest));
  HYB_LAUNCH(TilesHalf, HybBlocks(A->nnz, TILE_THREADS), TILE_THREADS, 0, exec->stream, A->nnz, A->a, largest, v);
  *value = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTilesMultiply(const HybExec *exec, HybArena *work, const HybTilesProduct *p, const HybCSR *A, const HybCSR *B, PetscInt *cj, HybCSR *C)
{
  const bool       half    = HybDeviceTuning()->tile_precision == HYB_TILE_HALF;
  TileMultiplyArgs x       = {C->m, p->chunks, p->a.row, p->b.row, p->tasks, p->chunktask, p->chunkrow, p->before, p->column, C->i, p->map, p->end, A->a, B->a, NULL, cj, C->a};
  uint64_t        *largest = NULL;

  PetscFunctionBegin;
  if (C->a && half) {
    PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, 2, sizeof(*largest), &largest));
    PetscCall(TilesOperand(exec, work, A, largest, &x.va));
    if (p->same && A->a == B->a) {
      x.vb = x.va;
      PetscCall(exec->backend->copy(exec, largest + 1, largest, sizeof(*largest), HYB_COPY_DEVICE_TO_DEVICE));
    } else
      PetscCall(TilesOperand(exec, work, B, largest + 1, &x.vb));
    x.largest = largest;
    HYB_LAUNCH((TilesMultiply<TileHalf>), HybBlocks(p->chunks, TILE_WARPS), TILE_WARPS * HYB_WARP, 0, exec->stream, x);
  } else if (C->a)
    HYB_LAUNCH((TilesMultiply<TileDouble>), HybBlocks(p->chunks, TILE_WARPS), TILE_WARPS * HYB_WARP, 0, exec->stream, x);
  else
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

PetscErrorCode HybTilesError(const HybExec *, const HybCSR *, uint64_t *, uint64_t *)
{
  PetscFunctionBegin;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "Tensor cores multiply real numbers of double precision");
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
