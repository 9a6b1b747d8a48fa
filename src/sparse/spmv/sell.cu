/*
  Products by slices of rows, with a copy of the values and columns.

  A warp takes a slice: as many rows as it has threads, or with 2, 4 or 8 lanes to a row so many fewer. The k-th entries
  of its rows lie side by side, so all that is read of the matrix is coalesced, and comes straight from memory to
  registers; all of a multiprocessor's first-level cache is left for x. A slice is as long as its longest row. So that
  rows of a slice are about equally long, the 256 rows of a window are sorted by their lengths first. Columns are 16-bit
  distances from the window's first where these reach, else have 32 bits.

    set-up:  for each window: rank of each row by length; length of each slice; least and largest column
             where slices begin: a scan
    values:  for each slot and lane, entries lane, lane + S, ... of its row to their places
    product: sum = sum over k of value[slice][k][lane] * x[column[slice][k][lane]], as far as the row goes; lanes' sums
             by a butterfly

  A row's sum is that of the method rowgroup, with as many lanes, in the same order. As with values by diagonals
  (dia.cu), the copy has to be made again when values change, and no name asks for this (HybSpMVOrderUp()).

  In a cycle of single precision values may have 16 bits (half.cuh): then each row has a power of two, which its largest
  value is scaled by.

  Fits: at most an eighth more places than nonzeros, no tile that a stream of as many lanes has no room for, and memory
  to spare. Memory: 10 to 12 bytes a place (single precision 6 to 8, values of 16 bits
  4 to 6), 3 or 4 a row. Bytes of a product: the same, and x and the result.

  Reference: M. Kreutzer, G. Hager, G. Wellein, H. Fehske, A. R. Bishop, A unified sparse matrix data format for
  efficient general sparse matrix-vector multiplication on modern processors with wide SIMD units, SIAM J. Sci. Comput.
  36, 2014.
*/
#include "../device/hybchain.cuh"
#include "ending.cuh"
#include "half.cuh"
#include "ordered.cuh"
#include "scale.cuh"

#define SELL_WINDOW 256
/* entries of a lane under way together, and as many of x for those before: bytes count, of which small numbers have
   few */
#define SELL_BATCH  (sizeof(HybScalar) == 4 ? 8 : 4)
#define SELL_BLOCKS (RowWide ? 2 : 4)

typedef struct {
  int             lanes;
  PetscCount      windows;
  PetscInt       *slice;  /* where each begins, in steps of a warp */
  unsigned char  *row;    /* of each slot, in its window */
  unsigned short *length; /* of each slot's row */
  PetscInt       *base;   /* of each window */
  unsigned short *near;   /* columns less the base, or NULL */
  int            *column; /* or NULL */
  void           *a;      /* HybScalar, or Half where rows have powers */
  signed char    *power;  /* of each slot's row: its sum is times two to that; or NULL */
} Sell;

/* call(a value of the type that they have) */
template <class F>
static PetscErrorCode SellWithValues(const Sell *s, F call)
{
#if defined(HYB_SINGLE)
  if (s->power) return call(Half());
#endif
  return call(HybScalar());
}

using SellLanes = HybCases<1, 2, 4, 8>;

/* tiles of a row stream that has the same sums: its room for values and indices, and how many of these are a unit;
   rows 0: there is none */
typedef struct {
  PetscInt rows, values, indices, unit;
} SellTiles;

/* A block has a window; steps: of each slice. flags[0]: there can be no plan, flags[1]: columns need all their bits. */
static __global__ __launch_bounds__(SELL_WINDOW) void SellSort(PetscInt m, int lanes, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, unsigned char *__restrict__ row, unsigned short *__restrict__ length, PetscInt *__restrict__ steps, PetscInt *__restrict__ base, SellTiles tiles, int *flags)
{
  HYB_SHARED(int, lens, SELL_WINDOW);
  HYB_SHARED(int, sorted, SELL_WINDOW);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  const int        t = (int)threadIdx.x, rows = HYB_WARP / lanes;
  const PetscCount r0 = (PetscCount)blockIdx.x * SELL_WINDOW, r1 = r0 + SELL_WINDOW < m ? r0 + SELL_WINDOW : m;
  const PetscInt   len = r0 + t < m ? i[r0 + t + 1] - i[r0 + t] : 0, end = i[r1];
  PetscInt         least = PETSC_MAX_INT, most = -1;
  int              rank = 0;

  lens[t] = (int)len;
  if (len > 65535) HybAtomicOr(&flags[0], 1);
  /* the stream takes a tile that has no room by other lanes */
  if (tiles.rows && t % tiles.rows == 0 && r0 + t < m) {
    const PetscInt u = RowStreamUnit<HybScalar>(), k0 = i[r0 + t], k1 = i[r0 + t + tiles.rows < m ? r0 + t + tiles.rows : m];
    if (k1 - k0 / u * u > tiles.values || k1 - k0 / tiles.unit * tiles.unit > tiles.indices) HybAtomicOr(&flags[0], 1);
  }
#pragma unroll 4
  for (PetscInt k = i[r0] + t; k < end; k += SELL_WINDOW) {
    const PetscInt c = j[k];
    least            = least < c ? least : c;
    most             = most > c ? most : c;
  }
  __syncthreads();
  for (int q = 0; q < SELL_WINDOW; q++) rank += lens[q] > (int)len || (lens[q] == (int)len && q < t);
  sorted[rank]      = (int)len;
  row[r0 + rank]    = (unsigned char)t;
  length[r0 + rank] = (unsigned short)len;
  __syncthreads();
  if (t < SELL_WINDOW / rows) steps[(PetscCount)blockIdx.x * (SELL_WINDOW / rows) + t] = (sorted[t * rows] + lanes - 1) / lanes;
  least = HybBlockMin<SELL_WINDOW>(least, scratch);
  most  = HybBlockMax<SELL_WINDOW>(most, scratch);
  if (t == 0) {
    base[blockIdx.x] = most < 0 ? 0 : least;
    if (most - least > 65535) HybAtomicOr(&flags[1], 1);
  }
}

/* one thread for each slot and lane */
typedef struct {
  PetscCount slot, window, p; /* p: the place of its first entry, from where it has one in HYB_WARP */
  PetscInt   lane, start, len;
} SellLane;

static __device__ __forceinline__ SellLane SellLaneOf(PetscInt m, int lanes, const PetscInt *__restrict__ i, const Sell &s)
{
  const PetscCount id = (PetscCount)blockIdx.x * SELL_WINDOW + threadIdx.x;
  SellLane         l;

  l.slot             = id / lanes;
  l.window           = l.slot / SELL_WINDOW;
  l.p                = (PetscCount)s.slice[id / HYB_WARP] * HYB_WARP + HybLane();
  l.lane             = (PetscInt)(id % lanes);
  l.len              = s.length[l.slot];
  const PetscCount r = l.window * SELL_WINDOW + s.row[l.slot];
  l.start            = r < m ? i[r] : 0;
  return l;
}

/* columns go to their places */
static __global__ __launch_bounds__(SELL_WINDOW) void SellColumns(PetscInt m, int lanes, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, Sell s)
{
  const SellLane l = SellLaneOf(m, lanes, i, s);
  PetscCount     p = l.p;

  for (PetscInt k = l.lane; k < l.len; k += lanes, p += HYB_WARP) {
    if (s.near)
      s.near[p] = (unsigned short)(j[l.start + k] - s.base[l.window]);
    else
      s.column[p] = (int)j[l.start + k];
  }
}

static __device__ __forceinline__ HybScalarReal SellSize(const HybScalar &v)
{
#if defined(PETSC_USE_COMPLEX)
  return HybMax()((HybScalarReal)fabs(v.real()), (HybScalarReal)fabs(v.imag()));
#else
  return (HybScalarReal)fabs(v);
#endif
}

/* values do; their lanes find the largest one of a row together, where it has a power */
template <typename V>
static __global__ __launch_bounds__(SELL_WINDOW) void SellFill(PetscInt m, int lanes, const PetscInt *__restrict__ i, const HybScalar *__restrict__ a, Sell s)
{
  const SellLane l  = SellLaneOf(m, lanes, i, s);
  PetscCount     p  = l.p;
  HybScalarReal  by = 1;

  if constexpr (std::is_same<V, Half>::value) {
    HybScalarReal most = 0;

    for (PetscInt k = l.lane; k < l.len; k += lanes) most = HybMax()(most, SellSize(a[l.start + k]));
    for (int d = 1; d < lanes; d <<= 1) most = HybMax()(most, HybShflXor(HYB_FULL_MASK, most, d));
    const int e     = ScaleExponent(most);
    const int power = e < -100 ? 0 : e - HALF_TOP; /* of a row of zeros, or next to them, none */
    by              = (HybScalarReal)ScalePower(-power);
    if (l.lane == 0) s.power[l.slot] = (signed char)power;
  }
  for (PetscInt k = l.lane; k < l.len; k += lanes, p += HYB_WARP) ((V *)s.a)[p] = HalfKeep<V>(a[l.start + k], by);
}

template <int S, bool NEAR, bool STEP, typename V>
static __global__ __launch_bounds__(SELL_WINDOW, SELL_BLOCKS) void SellRows(PetscInt m, Sell s, const HybScalar *x, RowEnding end)
{
  HybChainWait();
  const PetscCount id = (PetscCount)blockIdx.x * SELL_WINDOW + threadIdx.x, slot = id / S, w = slot / SELL_WINDOW, r = w * SELL_WINDOW + s.row[slot];
  const int        lane = (int)(threadIdx.x % S), n = ((int)s.length[slot] - lane + S - 1) / S;
  const PetscCount p    = (PetscCount)s.slice[id / HYB_WARP] * HYB_WARP + HybLane();
  const bool       ours = r < m && lane == 0;
  HybScalar        sum(0), base(0), y(0), dinv(0);

  if (STEP && ours) {
    base = RowStepBase(end.step, r);
    y    = end.y[r];
    dinv = end.step.dinv[r];
  } else if (ours && end.mode != ROW_SET)
    y = end.y[r];
  const HybScalar *const      xb     = NEAR ? x + s.base[w] : x;
  const V *const              a      = (const V *)s.a + p;
  const unsigned short *const near   = NEAR ? s.near + p : nullptr;
  const int *const            column = NEAR ? nullptr : s.column + p;
  V                           v[SELL_BATCH];
  int                         c[SELL_BATCH];
  /* Values and columns of the next entries are under way while these wait for x. What is beyond a row's end is the
     slice's, or its last one's again, and is not added. */
  const int  last  = n > 0 ? n - 1 : 0;
  const auto fetch = [&](int k) {
#pragma unroll
    for (int u = 0; u < SELL_BATCH; u++) {
      const int at = (k + u < last ? k + u : last) * HYB_WARP;
      c[u]         = NEAR ? (int)HybLoadStream(near + at) : HybLoadStream(column + at);
      v[u]         = HybLoadStream(a + at);
    }
  };
  if (n > 0) fetch(0);
  for (int k = 0; k < n; k += SELL_BATCH) {
    HybScalar xv[SELL_BATCH], now[SELL_BATCH];
#pragma unroll
    for (int u = 0; u < SELL_BATCH; u++) {
      xv[u]  = HybLoadVector(xb + c[u]);
      now[u] = HalfRead(v[u]);
    }
    if (k + SELL_BATCH < n) fetch(k + SELL_BATCH);
#pragma unroll
    for (int u = 0; u < SELL_BATCH; u++)
      if (k + u < n) sum += now[u] * xv[u];
  }
  sum = HybSubwarpSum<S>(sum);
  if constexpr (std::is_same<V, Half>::value) sum = (HybScalarReal)ScalePower(s.power[slot]) * sum;
  if (!ours) return;
  if (STEP)
    end.z[r] = RowStepEnd(end.step, base, dinv, y, sum);
  else
    end.z[r] = end.mode == ROW_SET ? sum : end.mode == ROW_ADD ? y + sum
                                                               : y - sum;
}

static PetscErrorCode SellLaunch(HybSpMV *S, const HybCSR *A, const HybScalar *x, const RowEnding &end)
{
  const Sell *s = (const Sell *)S->data;

  PetscFunctionBegin;
  PetscCall(HybDispatch(s->lanes, SellLanes(), s->near != NULL, HybFlags(), [&](auto L, auto NEAR) {
    return HybDispatch(end.mode == ROW_STEP, HybFlags(), [&](auto STEP) {
      return SellWithValues(s, [&](auto v) {
        HYB_LAUNCH_CHAINED(A->m, (SellRows<L, NEAR, STEP, decltype(v)>), s->windows * L, SELL_WINDOW, 0, S->exec.stream, A->m, *s, x, end);
        return PETSC_SUCCESS;
      });
    });
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVApply_SellCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  PetscFunctionBegin;
  PetscCall(SellLaunch(S, A, x, RowEndingOf(mode, y, z)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpMVStep_SellCUDA(HybSpMV *S, const HybCSR *A, const HybScalar *x, const HybSpMVStep *step)
{
  PetscFunctionBegin;
  PetscCall(SellLaunch(S, A, x, RowEndingOfStep(x, step)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const HybSpMVMethod HybSpMV_SellCUDA = {
  .name  = "sell",
  .apply = HybSpMVApply_SellCUDA,
  .step  = HybSpMVStep_SellCUDA,
};

PetscErrorCode HybSellSetUp(HybSpMV *S, const HybCSR *A, int lanes, const RowStreamLayout *stream, size_t indexbytes, PetscBool *fits)
{
  const HybExec *exec    = &S->exec;
  int            host[2] = {0, 0}, *flags;
  PetscCount     slices, total;
  PetscInt      *steps;
  size_t         spare;
  const size_t   value = S->half ? sizeof(Half) : sizeof(HybScalar);
  Sell           s     = {}, *keep;
  SellTiles      tiles = {};

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (lanes > 8 || A->n > INT_MAX) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMemorySpare(exec, &spare));
  if ((size_t)A->nnz * (value + sizeof(*s.near)) + 4 * (size_t)A->m > spare) PetscFunctionReturn(PETSC_SUCCESS);
  s.lanes = lanes;
  if (stream) tiles = {stream->rows, stream->values, stream->indices, (PetscInt)(16 / indexbytes)};
  s.windows = HybBlocks(A->m, SELL_WINDOW);
  slices    = s.windows * (SELL_WINDOW / (HYB_WARP / s.lanes));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), s.windows * SELL_WINDOW, sizeof(*s.row), &s.row));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), s.windows * SELL_WINDOW, sizeof(*s.length), &s.length));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), s.windows, sizeof(*s.base), &s.base));
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), slices + 1, sizeof(*s.slice), &s.slice));
  PetscCall(HybArenaAlloc(&S->work, HYB_WORK(exec), slices, sizeof(*steps), &steps));
  PetscCall(HybArenaCalloc(&S->work, HYB_WORK(exec), 2, sizeof(*flags), &flags));
  HYB_LAUNCH(SellSort, s.windows, SELL_WINDOW, 0, exec->stream, A->m, s.lanes, A->i, A->j, s.row, s.length, steps, s.base, tiles, flags);
  PetscCall(HybScanCounts(exec, &S->work, slices, steps, s.slice, NULL, &total));
  PetscCall(exec->backend->copy(exec, host, flags, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));
  total *= HYB_WARP;
  if (host[0] || total > A->nnz + A->nnz / 8) PetscFunctionReturn(PETSC_SUCCESS);
  if ((size_t)total * (value + (host[1] ? sizeof(*s.column) : sizeof(*s.near))) > spare) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), total, value, &s.a));
  if (S->half) PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), s.windows * SELL_WINDOW, sizeof(*s.power), &s.power));
  if (host[1])
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), total, sizeof(*s.column), &s.column));
  else
    PetscCall(HybArenaAlloc(&S->keep, HYB_WORK(exec), total, sizeof(*s.near), &s.near));
  HYB_LAUNCH(SellColumns, s.windows * s.lanes, SELL_WINDOW, 0, exec->stream, A->m, s.lanes, A->i, A->j, s);
  PetscCall(HybArenaAlloc(&S->keep, HYB_MEM_HOST, 1, sizeof(*keep), &keep));
  *keep     = s;
  S->data   = keep;
  S->method = &HybSpMV_SellCUDA;
  *fits     = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSellFill(HybSpMV *S, const HybCSR *A)
{
  const Sell *s = (const Sell *)S->data;

  PetscFunctionBegin;
  PetscCall(SellWithValues(s, [&](auto v) {
    HYB_LAUNCH(SellFill<decltype(v)>, s->windows * s->lanes, SELL_WINDOW, 0, S->exec.stream, A->m, s->lanes, A->i, A->a, *s);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
