/*
  rowmerge.cu: SpGEMM method "rowmerge", RMerge on the device.

  Idea. A row of C is the merge of the rows of B that a row of A names. A sub-warp of W lanes merges up to W of them at
  once: each lane stands at the head of one row; the smallest head is found by shuffles, the products of the lanes that
  stand there are added in the lanes' order, and these lanes step on. Nothing is hashed, nothing sorted, and no memory
  is used but the rows themselves. Rows of A with more entries are split:

    A = A_L ... A_2 G_1, G_1 = A with rows cut into pieces of at most W entries, A_2 joins up to W neighbouring pieces,
    and so on

  so that C = A_L (... (A_2 (G_1 B))), from right to left. All factors but G_1 have the value one and neighbouring
  columns: they are ranges of row numbers, and neither values nor columns of theirs are ever stored; G_1's columns and
  values are A's own.

    levels: pieces of each row, n_0 = entries, n_l = ceil(n_{l-1}/W); offsets by scans
    for l = 1 .. L-1: count pieces, scan, merge into an intermediate matrix (values of it are kept while the next level
                      needs them)
    last level: count rows, scan, merge into C

  Where no row of A has more than ROWMERGE_NARROW entries, nor more than ROWMERGE_PRODUCTS products, a single thread
  merges a row: the heads stand in its registers, with their values, an entry of C costs a comparison for each head in
  place of shuffles, and 32 rows proceed at once ("narrow"). Entries of C are gathered in shared memory, eight of each
  row of a warp, and written by as many lanes. This is what "auto" takes rowmerge for; wider rows are left to other
  methods. Numeric phases that are repeated go by masks where those serve (../maskrows.cu), those of a product of which
  nobody said so from the second one on.

  Otherwise W is the width asked for, or the smallest power of two that merges the longest row at once, at most 16, and
  32 where 16 would need three levels.

  Memory: the intermediate matrices, two at a time; the first has at most as many entries as there are products, each
  later one no more than the one before, which bounds its allocation without asking the device. Where two of them might
  take more than an eighth of free memory, the rows of A are taken in chunks whose intermediates do not (a row is never
  cut), which are merged twice: to count, and when C's size is known. Synchronisations of a first product: the
  statistics, the first intermediate's size (if there is one; with
  chunks: where they begin), C's size.
  Complexity: an entry of an intermediate or of C costs one step of a sub-warp, log2 W shuffles and as many additions as
  products meet. Within a piece products are added in A's order; pieces are added as wholes, in their order.

  Reference: Gremse, Hoefter, Schwen, Kiessling, Naumann, GPU-accelerated sparse matrix-matrix multiplication by
  iterative row merging, SISC 37 (2015).
*/
#include "maskrows.cuh"
#include "../device/hybdispatch.cuh"
#include "../device/hybgroup.cuh"
#include "../plan/bins.cuh"

#define ROWMERGE_THREADS  HYB_PLAN_SUMMED
#define ROWMERGE_LEVELS   31 /* of width 2, for any length */
#define ROWMERGE_NARROW   12
#define ROWMERGE_PRODUCTS 128
#define ROWMERGE_MASKED   20 /* entries of a mean row of C from which on masks are faster */
/* rows that fill the card: merging eight heads at most is faster there than masks, docs/tried.md, What is kept */
#define ROWMERGE_FILLS 65536
#define ROWMERGE_STAGE 8 /* entries of a row of C that are written together */
/* from one of them to the next in shared memory, 32 rows each: without conflicts of banks, written and read */
#define ROWMERGE_STRIDE 36
/* bytes of intermediates from which the card is asked what is free: the question takes longer than a small product */
#define ROWMERGE_ASK ((size_t)1 << 22)

/* pieces of each row of the next level */
__global__ void __launch_bounds__(256) RowMergePieces(PetscInt m, PetscInt w, const PetscInt *__restrict__ ptr, PetscInt *__restrict__ pieces)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r < m) pieces[r] = (PetscInt)(((PetscCount)ptr[r + 1] - ptr[r] + w - 1) / w);
}

/* where each piece begins; start[number of pieces] = the end of the last one */
__global__ void __launch_bounds__(256) RowMergeStarts(PetscInt m, PetscInt w, const PetscInt *__restrict__ ptr, const PetscInt *__restrict__ off, PetscInt *__restrict__ start)
{
  const PetscCount g = (PetscCount)blockIdx.x * 256 + threadIdx.x, r = g / 8;

  if (r < m) {
    for (PetscInt q = off[r] + (PetscInt)(g % 8); q < off[r + 1]; q += 8) start[q] = ptr[r] + (q - off[r]) * w;
    if (r == m - 1 && g % 8 == 0) start[off[m]] = ptr[m];
  }
}

struct RowMergeArgs {
  PetscInt        nrows;   /* pieces or rows, an upper bound of them if devrows is there */
  const PetscInt *devrows; /* their number, on the device */
  /* piece r merges the rows range[r] .. range[r+1]-1 of the level below, or the entries of A of these numbers */
  const PetscInt   *range;
  const PetscInt   *aj; /* first level: the rows of B named, and their weights */
  const HybScalar  *aa;
  const void       *bi; /* offsets of the level below: PetscInt for B, PetscCount for an intermediate */
  const PetscInt   *bj;
  const HybScalar  *ba;
  PetscInt         *count;   /* counting C, or */
  PetscCount       *sums;    /* and of each block of a thread a row; NULL: not wanted */
  PetscCount       *count64; /* counting an intermediate */
  const PetscInt   *ci;      /* merging into C, or */
  const PetscCount *ci64;    /* into an intermediate */
  PetscInt         *cj;
  HybScalar        *ca; /* NULL: the pattern alone */
};

/* FIRST: the rows merged are B's, with A's weights; NUMERIC: entries are written, not counted */
template <int W, bool FIRST, bool NUMERIC>
__global__ void __launch_bounds__(ROWMERGE_THREADS) RowMergeKernel(RowMergeArgs x)
{
  using Offset             = typename std::conditional<FIRST, PetscInt, PetscCount>::type;
  const Offset *const bi   = (const Offset *)x.bi;
  const unsigned      mask = HybSubwarpMask<W>();
  const int           lane = HybLane() & (W - 1);
  const PetscInt      n    = x.devrows ? *x.devrows : x.nrows;

  for (PetscCount row = ((PetscCount)blockIdx.x * ROWMERGE_THREADS + threadIdx.x) / W; row < n; row += (PetscCount)gridDim.x * (ROWMERGE_THREADS / W)) {
    const PetscInt begin = x.range[row], nlist = x.range[row + 1] - begin;
    Offset         p = 0, end = 0;
    HybScalar      weight = HybScalar(), value = HybScalar();
    PetscInt       head = PETSC_MAX_INT, column = 0;
    PetscCount     out  = NUMERIC ? (x.ci ? (PetscCount)x.ci[row] : x.ci64[row]) : 0;
    int            held = 0; /* entries that wait to be written together */

    if (lane < nlist) {
      const PetscInt src = FIRST ? x.aj[begin + lane] : begin + lane;

      p   = bi[src];
      end = bi[src + 1];
      if (FIRST && NUMERIC && x.ca) weight = x.aa[begin + lane];
      if (p < end) head = x.bj[p];
    }
    for (;;) {
      const PetscInt smallest = HybSubwarpMin<W>(head);
      const bool     hit      = head == smallest;

      if (smallest == PETSC_MAX_INT) break;
      if (NUMERIC) {
        if (x.ca) {
          unsigned  who     = __ballot_sync(mask, hit) & mask;
          HybScalar product = HybScalar(), sum;

          if (hit) product = FIRST ? HybMul(weight, x.ba[p]) : x.ba[p];
          sum = HybShfl(mask, product, __ffs((int)who) - 1);
          for (who &= who - 1; who; who &= who - 1) sum = sum + HybShfl(mask, product, __ffs((int)who) - 1);
          if (lane == held) value = sum;
        }
        if (lane == held) column = smallest;
        if (++held == W) {
          x.cj[out + lane] = column;
          if (x.ca) x.ca[out + lane] = value;
          out += W;
          held = 0;
        }
      } else
        out++;
      if (hit) {
        p++;
        head = p < end ? x.bj[p] : PETSC_MAX_INT;
      }
    }
    if (NUMERIC) {
      if (lane < held) {
        x.cj[out + lane] = column;
        if (x.ca) x.ca[out + lane] = value;
      }
    } else if (lane == 0) {
      if (x.count)
        x.count[row] = (PetscInt)out;
      else
        x.count64[row] = out;
    }
  }
}

/* The heads of K rows of B in a thread's registers, with the values that stand there. Loads of different rows do not
   wait for each other: sums take what was loaded before, none stands between two loads. */
template <int K, bool VALUES>
struct RowMergeHeads {
  PetscInt  head[K], pos[K], end[K];
  HybScalar weight[K], value[K];

  /* of the n entries of A from begin on */
  __device__ __forceinline__ void first(const RowMergeArgs &x, PetscInt begin, PetscInt n)
  {
    const PetscInt *bi = (const PetscInt *)x.bi;
    PetscInt        c[K];

#pragma unroll
    for (int q = 0; q < K; q++) {
      c[q]      = 0;
      weight[q] = HybScalar();
      if (q < n) c[q] = x.aj[begin + q];
      if (VALUES && q < n) weight[q] = x.aa[begin + q];
    }
#pragma unroll
    for (int q = 0; q < K; q++) {
      pos[q] = end[q] = 0;
      if (q < n) pos[q] = bi[c[q]];
      if (q < n) end[q] = bi[c[q] + 1];
    }
#pragma unroll
    for (int q = 0; q < K; q++) {
      head[q]  = PETSC_MAX_INT;
      value[q] = HybScalar();
      if (pos[q] < end[q]) head[q] = x.bj[pos[q]];
      if (VALUES && pos[q] < end[q]) value[q] = x.ba[pos[q]];
    }
  }
  __device__ __forceinline__ PetscInt smallest(void) const
  {
    PetscInt least = head[0];

#pragma unroll
    for (int q = 1; q < K; q++) least = HybMin()(least, head[q]);
    return least;
  }
  /* the sum of what stands at a column, in A's order */
  __device__ __forceinline__ HybScalar sum(PetscInt column) const
  {
    HybScalar s = HybNegativeZero();

#pragma unroll
    for (int q = 0; q < K; q++) {
      const HybScalar with = HybMulAdd(weight[q], value[q], s);

      if (head[q] == column) s = with;
    }
    return s;
  }
  /* beyond a column */
  __device__ __forceinline__ void next(const RowMergeArgs &x, PetscInt column)
  {
#pragma unroll
    for (int q = 0; q < K; q++) {
      const bool hit = head[q] == column;

      pos[q] += hit ? 1 : 0;
      head[q] = hit ? PETSC_MAX_INT : head[q];
      if (hit && pos[q] < end[q]) head[q] = x.bj[pos[q]];
      if (VALUES && hit && pos[q] < end[q]) value[q] = x.ba[pos[q]];
    }
  }
};

/* A thread a row. Entries of C are gathered in shared memory, a few of each row of a warp, and written from there: as
   little of it as that, for what it takes the first-level cache lacks, and there the rows of B stand. */
enum { ROWMERGE_COUNT,
       ROWMERGE_COLUMNS,
       ROWMERGE_VALUES };
template <int K, int WHAT>
__global__ void __launch_bounds__(ROWMERGE_THREADS, K > 8 ? 5 : K > 6 ? 6
                                                                      : 8) RowMergeNarrow(RowMergeArgs x)
{
  constexpr bool NUMERIC = WHAT != ROWMERGE_COUNT, VALUES = WHAT == ROWMERGE_VALUES;
  constexpr int  ROOM = ROWMERGE_THREADS / HYB_WARP * ROWMERGE_STAGE * ROWMERGE_STRIDE;
  HYB_SHARED(HybScalar, values, VALUES ? ROOM : 1);
  HYB_SHARED(PetscInt, columns, NUMERIC ? ROOM : 1);
  const PetscCount         row  = (PetscCount)blockIdx.x * ROWMERGE_THREADS + threadIdx.x;
  const int                lane = HybLane(), warp = (int)threadIdx.x / HYB_WARP;
  const PetscInt           begin = row < x.nrows ? x.range[row] : 0, n = row < x.nrows ? x.range[row + 1] - begin : 0;
  HybScalar *const         sa  = values + (size_t)warp * (VALUES ? ROWMERGE_STAGE * ROWMERGE_STRIDE : 0);
  PetscInt *const          sj  = columns + (size_t)warp * (NUMERIC ? ROWMERGE_STAGE * ROWMERGE_STRIDE : 0);
  PetscInt                 out = NUMERIC && row < x.nrows ? x.ci[row] : 0, column;
  RowMergeHeads<K, VALUES> heads;

  heads.first(x, begin, n);
  column = heads.smallest();
  if constexpr (!NUMERIC) {
    for (; column != PETSC_MAX_INT; column = heads.smallest()) {
      heads.next(x, column);
      out++;
    }
    if (row < x.nrows) x.count[row] = out;
    if (x.sums) {
      HYB_SHARED(PetscCount, scratch, HYB_WARP);
      const PetscCount sum = HybBlockSum<ROWMERGE_THREADS>((PetscCount)out, scratch);

      if (threadIdx.x == 0) x.sums[blockIdx.x] = sum;
    }
  } else {
    while (__any_sync(HYB_FULL_MASK, column != PETSC_MAX_INT)) {
      int filled = 0;

      for (; filled < ROWMERGE_STAGE && column != PETSC_MAX_INT; filled++) {
        sj[filled * ROWMERGE_STRIDE + lane] = column;
        if (VALUES) sa[filled * ROWMERGE_STRIDE + lane] = heads.sum(column);
        heads.next(x, column);
        column = heads.smallest();
      }
      __syncwarp(HYB_FULL_MASK);
      for (int r0 = 0; r0 < HYB_WARP; r0 += HYB_WARP / ROWMERGE_STAGE) {
        const int      r = r0 + lane / ROWMERGE_STAGE, e = lane % ROWMERGE_STAGE;
        const int      m  = HybShfl(HYB_FULL_MASK, filled, r);
        const PetscInt to = HybShfl(HYB_FULL_MASK, out, r) + e;

        if (e < m) {
          if (x.cj) x.cj[to] = sj[e * ROWMERGE_STRIDE + r];
          if (VALUES) x.ca[to] = sa[e * ROWMERGE_STRIDE + r];
        }
      }
      out += filled;
      /* a vote orders no accesses to memory: these are read before the next ones are written */
      __syncwarp(HYB_FULL_MASK);
    }
  }
}

/* the rows of A that are merged together: all of them, where memory allows it */
typedef struct {
  PetscInt    row, m;                   /* the first one, their number */
  PetscCount  entries, products;        /* of A in them, of theirs */
  PetscInt    npieces[ROWMERGE_LEVELS]; /* upper bounds */
  PetscInt   *off[ROWMERGE_LEVELS];     /* level l, m+1: pieces of each row */
  PetscInt   *start[ROWMERGE_LEVELS];   /* where each piece begins in the level below */
  PetscCount *ci[ROWMERGE_LEVELS];      /* offsets of the intermediate matrices */
  /* their entries, an upper bound from the second on, with chunks from the first on */
  PetscCount room[ROWMERGE_LEVELS];
} RowMergeChunk;

typedef struct {
  PetscInt       w, levels, nchunks;
  bool           narrow;
  RowMergeChunk *chunk;
  HybMaskRows    masks;
} RowMerge;

template <int W>
static PetscErrorCode RowMergeLaunch(const HybExec *exec, bool first, bool numeric, const RowMergeArgs &x)
{
  const PetscCount grid = PetscMin(HybBlocks((PetscCount)x.nrows * W, ROWMERGE_THREADS), (PetscCount)1 << 20);

  PetscFunctionBegin;
  if (first && numeric)
    HYB_LAUNCH((RowMergeKernel<W, true, true>), grid, ROWMERGE_THREADS, 0, exec->stream, x);
  else if (first)
    HYB_LAUNCH((RowMergeKernel<W, true, false>), grid, ROWMERGE_THREADS, 0, exec->stream, x);
  else if (numeric)
    HYB_LAUNCH((RowMergeKernel<W, false, true>), grid, ROWMERGE_THREADS, 0, exec->stream, x);
  else
    HYB_LAUNCH((RowMergeKernel<W, false, false>), grid, ROWMERGE_THREADS, 0, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowMergeDispatch(const HybExec *exec, PetscInt w, bool first, bool numeric, const RowMergeArgs &x)
{
  PetscFunctionBegin;
  if (w <= 2)
    PetscCall(RowMergeLaunch<2>(exec, first, numeric, x));
  else if (w <= 4)
    PetscCall(RowMergeLaunch<4>(exec, first, numeric, x));
  else if (w <= 8)
    PetscCall(RowMergeLaunch<8>(exec, first, numeric, x));
  else if (w <= 16)
    PetscCall(RowMergeLaunch<16>(exec, first, numeric, x));
  else
    PetscCall(RowMergeLaunch<32>(exec, first, numeric, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* counts (x.count) or writes (x.ci) every row */
static PetscErrorCode RowMergeRunNarrow(const HybExec *exec, PetscInt longest, const RowMergeArgs &x)
{
  const PetscCount grid = HybBlocks(x.nrows, ROWMERGE_THREADS);
  const int        what = x.count ? ROWMERGE_COUNT : x.ca ? ROWMERGE_VALUES
                                                          : ROWMERGE_COLUMNS;
  using Heads           = HybCases<4, 6, 8, ROWMERGE_NARROW>;

  PetscFunctionBegin;
  PetscCall(HybDispatch(HybLeastCase((int)longest, Heads()), Heads(), what, HybCases<0, 1, 2>(), [&](auto K, auto WHAT) {
    HYB_LAUNCH((RowMergeNarrow<K, WHAT>), grid, ROWMERGE_THREADS, 0, exec->stream, x);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the level below as the right operand, level l's pieces (or, at the last level, the rows) as the left one */
static void RowMergeOperands(const RowMerge *r, const RowMergeChunk *c, PetscInt l, const HybCSR *A, const HybCSR *B, const PetscInt *bj, const HybScalar *ba, RowMergeArgs *x)
{
  memset((void *)x, 0, sizeof(*x));
  if (l == r->levels) {
    x->nrows = c->m;
    x->range = l == 1 ? A->i + c->row : c->off[l - 1];
  } else {
    x->nrows   = c->npieces[l];
    x->devrows = c->off[l] + c->m;
    x->range   = c->start[l];
  }
  if (l == 1) {
    x->aj = A->j;
    x->aa = A->a;
    x->bi = B->i;
    x->bj = B->j;
    x->ba = B->a;
  } else {
    x->bi = c->ci[l - 1];
    x->bj = bj;
    x->ba = ba;
  }
}

/* levels 1 .. L-1; *bj and *ba are the last one's entries, in work. With count, the intermediate matrices are counted
   first. */
static PetscErrorCode RowMergeIntermediates(HybSpGEMM *mm, const RowMerge *r, RowMergeChunk *c, const HybCSR *A, const HybCSR *B, bool count, bool values, PetscInt **bj, HybScalar **ba)
{
  const HybExec *exec = &mm->exec;
  RowMergeArgs   x;

  PetscFunctionBegin;
  *bj = NULL;
  *ba = NULL;
  for (PetscInt l = 1; l < r->levels; l++) {
    PetscInt  *j;
    HybScalar *a = NULL;

    RowMergeOperands(r, c, l, A, B, *bj, *ba, &x);
    if (count) {
      PetscCall(HybArenaCalloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)c->npieces[l] + 1, sizeof(PetscCount), &c->ci[l]));
      x.count64 = c->ci[l];
      PetscCall(RowMergeDispatch(exec, r->w, l == 1, false, x));
      x.count64 = NULL;
      /* pieces beyond the actual number count nothing */
      c->room[l] = l > 1 ? c->room[l - 1] : c->products;
      PetscCall(HybScanCounts64(exec, &mm->work, c->npieces[l], c->ci[l], c->ci[l], NULL, l == 1 && r->nchunks == 1 ? &c->room[l] : NULL));
    }
    x.ci64 = c->ci[l];
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, c->room[l], sizeof(PetscInt), &j));
    if (values) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, c->room[l], sizeof(HybScalar), &a));
    x.cj = j;
    x.ca = a;
    PetscCall(RowMergeDispatch(exec, r->w, l == 1, true, x));
    PetscCall(HybArenaFree(&mm->work, bj, ba));
    *bj = j;
    *ba = a;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one chunk, or as many as keep the intermediates small beside what is free */
static PetscErrorCode RowMergeChunks(HybSpGEMM *mm, RowMerge *r, const HybCSR *A)
{
  const HybExec *exec  = &mm->exec;
  const size_t   entry = 2 * (sizeof(PetscInt) + sizeof(HybScalar)); /* two intermediates */
  PetscCount     chunk = mm->stats.products;
  HybPlanCut    *cut;

  PetscFunctionBegin;
  r->nchunks = 1;
  if (r->levels > 1 && (size_t)mm->stats.products > ROWMERGE_ASK / entry) {
    size_t spare;

    PetscCall(HybMemorySpare(exec, &spare));
    chunk      = PetscMax(1, (PetscCount)(spare / 2 / entry));
    r->nchunks = (PetscInt)PetscMin((PetscCount)A->m, (mm->stats.products + chunk - 1) / chunk);
    chunk      = (mm->stats.products + r->nchunks - 1) / r->nchunks;
  }
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, r->nchunks, sizeof(*r->chunk), &r->chunk));
  PetscCall(PetscMemzero((void *)r->chunk, (size_t)r->nchunks * sizeof(*r->chunk)));
  if (r->nchunks == 1) {
    r->chunk->m        = A->m;
    r->chunk->entries  = A->nnz;
    r->chunk->products = mm->stats.products;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, (PetscCount)r->nchunks + 1, sizeof(*cut), &cut));
  PetscCall(HybPlanCuts(exec, &mm->work, A, mm->rowproducts, chunk, r->nchunks, cut));
  for (PetscInt k = 0; k < r->nchunks; k++) {
    r->chunk[k].row      = (PetscInt)cut[k].row;
    r->chunk[k].m        = (PetscInt)(cut[k + 1].row - cut[k].row);
    r->chunk[k].entries  = cut[k + 1].entry - cut[k].entry;
    r->chunk[k].products = cut[k + 1].product - cut[k].product;
  }
  PetscCall(HybArenaFree(&mm->work, &cut));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the pieces of a chunk's rows, level by level */
static PetscErrorCode RowMergeFactors(HybSpGEMM *mm, const RowMerge *r, RowMergeChunk *c, const HybCSR *A)
{
  const HybExec  *exec    = &mm->exec;
  const PetscInt *below   = A->i + c->row;
  PetscCount      entries = c->entries;

  PetscFunctionBegin;
  for (PetscInt l = 1; l < r->levels; l++) {
    /* a piece more than entries/w for each row at most */
    c->npieces[l] = (PetscInt)PetscMin(entries, entries / r->w + c->m);
    entries       = c->npieces[l];
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)c->m + 1, sizeof(PetscInt), &c->off[l]));
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)c->npieces[l] + 1, sizeof(PetscInt), &c->start[l]));
    HYB_LAUNCH(RowMergePieces, HybBlocks(c->m, 256), 256, 0, exec->stream, c->m, r->w, below, c->off[l]);
    PetscCall(HybScanCounts(exec, &mm->work, c->m, c->off[l], c->off[l], NULL, NULL));
    HYB_LAUNCH(RowMergeStarts, HybBlocks((PetscCount)c->m * 8, 256), 256, 0, exec->stream, c->m, r->w, below, c->off[l], c->start[l]);
    below = c->off[l];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the chunk's rows of C, counted or written */
static PetscErrorCode RowMergeLast(HybSpGEMM *mm, const RowMerge *r, const RowMergeChunk *c, const HybCSR *A, const HybCSR *B, const PetscInt *bj, const HybScalar *ba, PetscInt *count, PetscCount *sums, const HybCSR *C, PetscInt *cj)
{
  RowMergeArgs x;

  PetscFunctionBegin;
  RowMergeOperands(r, c, r->levels, A, B, bj, ba, &x);
  if (count) {
    x.count = count + c->row;
    x.sums  = sums;
  } else {
    x.ci = C->i + c->row;
    x.cj = cj;
    x.ca = C->a;
  }
  if (r->narrow)
    PetscCall(RowMergeRunNarrow(&mm->exec, mm->stats.maxarow, x));
  else
    PetscCall(RowMergeDispatch(&mm->exec, r->w, r->levels == 1, !count, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_RowMergeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec         = &mm->exec;
  const bool     values       = (A->a || !A->nnz) && (B->a || !B->nnz);
  const PetscInt longest      = mm->stats.maxarow;
  PetscCount     intermediate = 0, *sums = NULL, *total = NULL;
  PetscInt      *bj, *count;
  HybScalar     *ba;
  RowMerge      *r;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*r), &r));
  PetscCall(PetscMemzero(r, sizeof(*r)));
  mm->data = r;
  r->w     = mm->width;
  if (!r->w) {
    for (r->w = 2; r->w < 16 && r->w < longest; r->w *= 2) {}
    if (longest > 16 * 16) r->w = 32;
  }
  r->narrow = !mm->width && longest <= ROWMERGE_NARROW && mm->stats.maxrow <= ROWMERGE_PRODUCTS;
  if (r->narrow) r->w = 1;
  if (r->narrow) r->levels = 1;
  for (PetscCount most = longest; !r->narrow && (most > 1 || !r->levels); r->levels++) most = (most + r->w - 1) / r->w;
  PetscCall(RowMergeChunks(mm, r, A));
  PetscCall(HybCountersSet(&mm->counters, "width", r->w));
  PetscCall(HybCountersSet(&mm->counters, "factors", r->levels));
  PetscCall(HybCountersSet(&mm->counters, "chunks", r->nchunks));
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  /* the fewest launches and allocations: a small product is mostly these */
  if (r->narrow && !mm->reuse && C->m > 0 && C->m <= HYB_PLAN_OFFSETS) {
    const PetscCount nsums = HybBlocks(C->m, HYB_PLAN_SUMMED);

    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (nsums + 1) * (PetscCount)sizeof(*sums) + C->m * (PetscCount)sizeof(*count), 1, &sums));
    total = sums + nsums;
    count = (PetscInt *)(total + 1);
  } else
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, C->m, sizeof(PetscInt), &count));
  for (PetscInt k = 0; k < r->nchunks; k++) {
    RowMergeChunk *c = r->chunk + k;

    PetscCall(RowMergeFactors(mm, r, c, A));
    /* the intermediate of a single chunk waits for the size of C */
    PetscCall(RowMergeIntermediates(mm, r, c, A, B, true, values && r->nchunks == 1, &bj, &ba));
    PetscCall(RowMergeLast(mm, r, c, A, B, bj, ba, count, sums, NULL, NULL));
    if (r->nchunks > 1) PetscCall(HybArenaFree(&mm->work, &bj));
    intermediate = PetscMax(intermediate, c->room[1]);
  }
  PetscCall(HybCountersSet(&mm->counters, "intermediate entries", intermediate));
  if (r->narrow && mm->reuse)
    PetscCall(HybMaskRowsCount(mm, A, count, C, &r->masks));
  else if (sums) {
    PetscCall(HybPlanOffsets(exec, C->m, count, sums, C->i, total));
    PetscCall(exec->backend->copy(exec, &C->nnz, total, sizeof(C->nnz), HYB_COPY_DEVICE_TO_HOST));
  } else
    PetscCall(HybScanCounts(exec, &mm->work, C->m, count, C->i, NULL, &C->nnz));
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  for (PetscInt k = 0; k < r->nchunks; k++) {
    if (r->nchunks > 1) PetscCall(RowMergeIntermediates(mm, r, r->chunk + k, A, B, false, values, &bj, &ba));
    PetscCall(RowMergeLast(mm, r, r->chunk + k, A, B, bj, ba, NULL, NULL, C, C->j));
    PetscCall(HybArenaFree(&mm->work, &bj, &ba));
  }
  if (r->narrow && !mm->reuse) mm->reads = HYB_SPGEMM_READS_A | HYB_SPGEMM_READS_B; /* a plan is made of C's columns */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a product of which nobody said that it is repeated: masks where a mean row of C has so many entries */
static PetscErrorCode HybSpGEMMPlan_RowMergeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C)
{
  RowMerge *r = (RowMerge *)mm->data;

  PetscFunctionBegin;
  if (!r->narrow || mm->columnsgone || (!mm->reuse && (C->nnz <= ROWMERGE_MASKED * (PetscCount)C->m || (mm->stats.maxarow <= 8 && C->m > ROWMERGE_FILLS)))) PetscFunctionReturn(PETSC_SUCCESS);
  mm->reads = HYB_SPGEMM_READS_A | HYB_SPGEMM_READS_B; /* without masks, also where there is no memory for them */
  if (!mm->reuse) PetscCall(HybMaskRowsLook(mm, A, C, &r->masks));
  PetscCall(HybMaskRowsPlan(mm, A, B, C, &r->masks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define ROWMERGE_PHASE  20  /* microseconds on an H200: launches */
#define ROWMERGE_MERGED 9e4 /* products a microsecond */
#define ROWMERGE_MASKS  60  /* of masks: launches and a wait; the rest takes half a phase */

static void HybSpGEMMPlanCost_RowMergeCUDA(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, PetscReal *plan, PetscReal *phase)
{
  *phase = ROWMERGE_PHASE + (PetscReal)mm->stats.products / ROWMERGE_MERGED;
  *plan  = ROWMERGE_MASKS + *phase / 2;
}

static PetscErrorCode HybSpGEMMNumeric_RowMergeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  RowMerge  *r = (RowMerge *)mm->data;
  PetscInt  *bj;
  HybScalar *ba;

  PetscFunctionBegin;
  if (r->masks.masks) {
    PetscCall(HybMaskRowsNumeric(mm, A, B, &r->masks, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt k = 0; k < r->nchunks; k++) {
    PetscCall(RowMergeIntermediates(mm, r, r->chunk + k, A, B, false, true, &bj, &ba));
    PetscCall(RowMergeLast(mm, r, r->chunk + k, A, B, bj, ba, NULL, NULL, C, r->narrow ? NULL : C->j));
    PetscCall(HybArenaFree(&mm->work, &bj, &ba));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rule of "auto", which asks this method first: rows that a thread can merge in registers. Up to ROWMERGE_NARROW
   entries where most rows have fewer than eight: a head costs a comparison in each step whether its row has entries or
   not. */
static PetscErrorCode HybSpGEMMApplicable_RowMergeCUDA(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = (PetscBool)(!mm->width && (mm->stats.maxarow <= 8 || (mm->stats.maxarow <= ROWMERGE_NARROW && A->nnz < 8 * (PetscCount)A->m)) && mm->stats.maxrow <= ROWMERGE_PRODUCTS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_RowMergeCUDA;
const HybSpGEMMMethod        HybSpGEMM_RowMergeCUDA = {
         .name       = "rowmerge",
         .applicable = HybSpGEMMApplicable_RowMergeCUDA,
         .symbolic   = HybSpGEMMSymbolic_RowMergeCUDA,
         .plan       = HybSpGEMMPlan_RowMergeCUDA,
         .plancost   = HybSpGEMMPlanCost_RowMergeCUDA,
         .numeric    = HybSpGEMMNumeric_RowMergeCUDA,
};
