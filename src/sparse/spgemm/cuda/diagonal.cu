/*
  diagonal.cu: SpGEMM method "diagonal": no columns are looked at where both operands' entries lie on few diagonals.

  Idea. A matrix of few diagonals (offset = column - row) is its values and a word of bits a row, which say on which
  diagonals the row has an entry (../../csr/diagonals.cuh); entry k of those is at the place that the number of bits
  below k's tells. Row r of C = A B has an entry on diagonal d1 + d2 where row r of A has one on d1 and row r + d1 of B
  has one on d2. So the rows of C are words as well, made from words by shifts; and for neighbouring rows r the rows r +
  d1 of B are neighbours, and so are their values in memory: a block of rows of C reads a few contiguous pieces of B,
  which are copied to shared memory as they are.

  Three neighbouring diagonals c - 1, c, c + 1 (stencils' points along a line) are taken together as a run around its
  center c. Runs around c1 and c2 contribute to the diagonals around c1 + c2, to which the sums for them are known at
  compile time: five sums stand in registers. A group of C is what belongs to one center c1 + c2. Where groups would
  overlap (bands of four and more), or lines are longer, each diagonal is a run of its own.

    words:    diagonals of a sample; words of A's and B's rows, which find what the sample had missed        (twice in that case)
    program:  runs of A, of B; groups of C, for each the pairs of runs in the order of A; made on the host
    count:    a thread a row: for each run of A, run of B: the word of C |= bits of B's row, shifted; popcount; scan
    values:   a block for 32 to 128 rows:
                copies of the rows r + d1 of B for each run of A, and of A's rows, to shared memory; columns from C's
                words meanwhile
                threads (row, part of the groups): for each group, pair of runs, entry of A, entry of B: sum[q1 + q2] +=
                a b; sums to shared memory the rows of C, one contiguous piece, to memory

  Where a row of A and all rows of B that it names have all diagonals, all places are known without words; the count
  marks these rows of C, and a warp that has no others adds without looking at words (a third of the instructions). On
  grids with long lines that is most warps.

  Numeric phases are the last step alone, C's words having been kept. The products of an entry are added in A's order,
  for runs of A ascend and so do the entries in them.

  Applicable: at most 63 diagonals of A and of B, no more than eight times as many as a row has entries (diagonals.cuh),
  C's in DIAGONAL_WORDS words of 32, no more than DIAGONAL_PAIRS pairs of runs, which are at most four times as many
  products (runs that are not full) as there are; "auto" looks from HybTuning's diagonal_fewest nonzeros of A on (2^20).
  The look is one block and two launches that end at once where there are more diagonals; rows' products are counted in
  the same go where there are (or so many that pairs will be too many), so no more synchronisations come of it. Where
  the look must be repeated products are counted with the second one. What is left is few diagonals of which no program
  comes for another reason; whoever takes the operands then finds one synchronisation fewer left, and `shape` does not
  look at them (HybSpGEMM.waits). The look samples for whole blocks too (HybSpGEMM.blocksizes), so that `block` has
  nothing to wait for but its proof. By name, operands of other form go by hash tables (../hash/hashrows.cu).

  Copies to shared memory are the copy engine's where arrays are aligned to 16 bytes (7-pt 128^3 again 0.48 ms instead
  of 0.58 by ordinary loads), with what begins and ends them found by a thread each; their source is to stay in the
  second-level cache, for other runs read it again.

  Memory: 8 bytes a row of A, and of B where that has another pattern, 4 or a few more for C's; 8 a row of A during the
  look. Synchronisations of a first product: the diagonals, a second time where a sample had missed some; nnz(C).
  Complexity: one pass over the columns of A and B, one multiplication and addition a product, each value of B read as
  often as A has runs, from the second-level cache mostly.
*/
#include "../hash/hashrows.cuh"
#include "../../csr/diagonals.cuh"
#include "../../csr/rowblocks.cuh"
#include "../../plan/bins.cuh"

#define DIAGONAL_WORDS   8
#define DIAGONAL_PAIRS   1024
#define DIAGONAL_MOST    128                                                                /* rows of a block; at least 32 */
#define DIAGONAL_THREADS 256                                                                /* of the kernels that have a thread a row */
#define DIAGONAL_STATIC  (256 + (DIAGONALS_MAX + 1) * (4 * sizeof(PetscInt) + sizeof(int))) /* bytes of shared memory that DiagonalKernel has beside the dynamic ones, and some more */

/* What is found about the operands, brought to the host in one copy; all zero before */
struct DiagonalLook {
  PetscCount stats[6]; /* the plan's */
  Diagonals  d[2];     /* of A, of B */
  int        blocks;   /* sizes of blocks that rows refuse */
  PetscCount found[3]; /* later, in a copy of its own: products, most of a row, nnz(C) */
};

/* The bits of a run in a word of A or B: first; in a second byte which of three there are (two: lead says that the
   first of the three is missing, else the last is), whether it has three places, and whether these are not all there */
static __host__ __device__ __forceinline__ unsigned DiagonalBits(int first, int count, int lead, int half)
{
  return (unsigned)first | (((1u << count) - 1) | (unsigned)lead << 3 | (unsigned)half << 4 | (unsigned)(half && count < 3) << 5) << 8;
}
#define DIAGONAL_FIRST(w) ((int)((w)&255u))
#define DIAGONAL_MASK(w)  (((w) >> 8) & 7u)
#define DIAGONAL_LEAD(w)  (((w) >> 11) & 1u)
#define DIAGONAL_HALF(w)  (((w) >> 12) & 1u)
#define DIAGONAL_ODD(w)   (((w) >> 13) & 1u)

/* which of the run's entries a row has */
template <typename WORD>
static __device__ __forceinline__ unsigned DiagonalHas(WORD word, unsigned w)
{
  return ((unsigned)(word >> DIAGONAL_FIRST(w)) & DIAGONAL_MASK(w)) << DIAGONAL_LEAD(w);
}

/* The program */
struct DiagonalRun { /* of A */
  PetscInt center;
  unsigned bits;
  int      first, end; /* its targets */
};
struct alignas(8) DiagonalPair { /* of a run of A and one of B */
  unsigned place;                /* of the first row of B that the block's first row needs, among those staged; 16 bits further on which of DiagonalProducts() it is */
  unsigned bits;                 /* of A's run, and 16 bits further on of B's */
};
struct alignas(16) DiagonalGroup { /* of C */
  PetscInt center;
  unsigned where;      /* word, first of 2 half + 1 bits, half, which entry of a full row the first is: 8 bits each */
  int      first, end; /* its pairs */
};
#define DIAGONAL_WHERE(word, bit, half, rank) ((unsigned)(word) | (unsigned)(bit) << 8 | (unsigned)(half) << 16 | (unsigned)(rank) << 24)
#define DIAGONAL_WORD(where)                  ((int)((where)&255u))
#define DIAGONAL_BIT(where)                   ((int)(((where) >> 8) & 255u))
#define DIAGONAL_REACH(where)                 ((int)(((where) >> 16) & 255u))
#define DIAGONAL_RANK(where)                  ((int)((where) >> 24))
/* in the first word of a row of C: the row of A and all rows of B that it names have all diagonals */
#define DIAGONAL_FULL 0x80000000u
struct DiagonalTile {    /* rows of B that are staged for a run of A */
  PetscInt first, count; /* relative to the block's first row */
  int      base;         /* where their values go */
};
struct DiagonalPlace { /* a staged row */
  PetscInt row;
  int      tile;
};

struct DiagonalArgs {
  PetscInt             m, mb;
  PetscCount           annz, bnnz;
  const PetscInt      *ai, *bi, *ci;
  const HybScalar     *aa, *ba;
  PetscInt            *cj; /* NULL: not wanted */
  HybScalar           *ca; /* NULL: not wanted */
  const void          *worda, *wordb;
  unsigned            *wordc; /* the first of all rows, then the second */
  int                  nwords, nruns, nplaces;
  int                  rows, log;           /* of a block: a power of two, its logarithm */
  int                  bits, stride;        /* A's and B's diagonals */
  int                  full;                /* products of a full row, -1: these are not told from others */
  unsigned             all[DIAGONAL_WORDS]; /* the words of a full row */
  int                  abase, bulk;         /* bulk: the copy engine can read the operands */
  size_t               out, staged, cword;  /* where in shared memory */
  const DiagonalRun   *run;
  const unsigned      *target; /* bits of B's run, 16 bits further on shift and word of C's */
  const DiagonalPair  *pair;
  const DiagonalGroup *group;
  const int           *part; /* the groups of each part */
  const DiagonalTile  *tile;
  const DiagonalPlace *place;
  PetscCount          *stats; /* products, most of a row */
};

template <typename WORD>
struct alignas(2 * sizeof(WORD)) DiagonalRow {
  WORD word;
  int  at; /* of its first entry, among the staged values */
};

static __global__ __launch_bounds__(DIAGONALS_SAMPLE) void DiagonalSample(HybCSR A, HybCSR B, int again, DiagonalLook *look)
{
  if (blockIdx.x == 0)
    DiagonalsSample(A.m, A.nnz, A.i, A.j, again, &look->d[0]);
  else
    DiagonalsSample(B.m, B.nnz, B.i, B.j, again, &look->d[1]);
}

/* words of 32 bits where both operands have no more diagonals */
static __global__ __launch_bounds__(DIAGONAL_THREADS) void DiagonalWords(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt capacity, Diagonals *D, const Diagonals *other, void *__restrict__ word)
{
  HYB_DYNAMIC_SHARED(PetscInt, staged);
  HYB_SHARED(PetscInt, d, DIAGONALS_MAX);
  const int          n = D->n, most = HybMax()(n, other->n);
  const PetscCount   r0 = (PetscCount)blockIdx.x * DIAGONAL_THREADS, r1 = r0 + DIAGONAL_THREADS < m ? r0 + DIAGONAL_THREADS : m, r = r0 + threadIdx.x;
  unsigned long long mine;

  if (most > DIAGONALS_MAX) return;
  if (!DiagonalsWord<DIAGONAL_THREADS>(r0, r1, i, j, capacity, D, n, d, staged, &mine)) return;
  if (r < r1) {
    if (most <= 32)
      static_cast<unsigned *>(word)[r] = (unsigned)mine;
    else
      static_cast<unsigned long long *>(word)[r] = mine;
  }
}

/* the words of C's rows, how many entries they have, and how many products that takes. ONE: they have one word */
template <typename WORD, bool ONE>
static __global__ __launch_bounds__(DIAGONAL_THREADS) void DiagonalCounts(DiagonalArgs x, PetscInt *__restrict__ count)
{
  using Row = typename std::make_unsigned<PetscInt>::type;
  HYB_DYNAMIC_SHARED(unsigned, shared); /* the words of a thread stand DIAGONAL_THREADS apart */
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  const WORD *const __restrict__ worda = static_cast<const WORD *>(x.worda), *const __restrict__ wordb = static_cast<const WORD *>(x.wordb);
  const PetscCount r        = (PetscCount)blockIdx.x * DIAGONAL_THREADS + threadIdx.x;
  const WORD       wa       = r < x.m ? worda[r] : 0;
  unsigned         one      = 0;
  PetscInt         products = 0;

  if (!ONE) {
    for (int q = 0; q < x.nwords; q++) shared[q * DIAGONAL_THREADS + threadIdx.x] = 0;
  }
  const auto add = [&](unsigned target, unsigned bits) {
    if (ONE)
      one |= bits << ((target >> 16) & 31u);
    else
      shared[(target >> 24) * DIAGONAL_THREADS + threadIdx.x] |= bits << ((target >> 16) & 31u);
  };
  /* most warps of larger grids have nothing but rows with all there is */
  bool full = __all_sync(HYB_FULL_MASK, x.full >= 0 && wa == (WORD)DiagonalsAll(x.bits));
  if (full) {
    const WORD all    = (WORD)DiagonalsAll(x.stride);
    WORD       differ = 0;

#pragma unroll 4
    for (int k = 0; k < x.nruns; k++) {
      const DiagonalRun run = x.run[k];
      const Row         row = (Row)r + (Row)run.center;

      differ |= wordb[row] ^ all;
      if (DIAGONAL_HALF(run.bits)) differ |= (wordb[row - 1] ^ all) | (wordb[row + 1] ^ all);
    }
    full = __all_sync(HYB_FULL_MASK, differ == 0);
  }
  if (full) {
    products = x.full;
    one      = x.all[0];
    if (!ONE) {
      for (int q = 0; q < x.nwords; q++) shared[q * DIAGONAL_THREADS + threadIdx.x] = x.all[q];
    }
  } else {
    for (int k = 0; k < x.nruns; k++) {
      const DiagonalRun run = x.run[k];
      const unsigned    has = DiagonalHas(wa, run.bits);
      const Row         row = (Row)r + (Row)run.center; /* where the row has the entry */

      if (!DIAGONAL_HALF(run.bits)) {
        const WORD w = has ? wordb[row] : 0;

        products += DiagonalsBits(w);
#pragma unroll 4
        for (int t = run.first; t < run.end; t++) {
          const unsigned target = x.target[t];

          add(target, DiagonalHas(w, target));
        }
      } else {
        const WORD w[3] = {has & 1u ? wordb[row - 1] : 0, has & 2u ? wordb[row] : 0, has & 4u ? wordb[row + 1] : 0};

        products += DiagonalsBits(w[0]) + DiagonalsBits(w[1]) + DiagonalsBits(w[2]);
#pragma unroll 2
        for (int t = run.first; t < run.end; t++) {
          const unsigned target = x.target[t];

          add(target, DiagonalHas(w[0], target) | DiagonalHas(w[1], target) << 1 | DiagonalHas(w[2], target) << 2);
        }
      }
    }
  }
  if (r < x.m) {
    PetscInt n = 0;

    for (int q = 0; q < (ONE ? 1 : x.nwords); q++) {
      const unsigned w = ONE ? one : shared[q * DIAGONAL_THREADS + threadIdx.x];

      n += __popc(w);
      x.wordc[q * (PetscCount)x.m + r] = q == 0 && products == x.full ? w | DIAGONAL_FULL : w;
    }
    count[r] = n;
  }
  const PetscInt most = HybBlockMax<DIAGONAL_THREADS>(products, scratch), sum = HybBlockSum<DIAGONAL_THREADS>(products, scratch);
  if (threadIdx.x == 0 && sum) {
    (void)HybAtomicAdd(&x.stats[0], sum);
    (void)HybAtomicMax(&x.stats[1], most);
  }
}

/* entries that 16 bytes hold */
static __host__ __device__ __forceinline__ constexpr int DiagonalUnit(void)
{
  return sizeof(HybScalar) < 16 ? (int)(16 / sizeof(HybScalar)) : 1;
}

/* the products of a run of A and one of B for one row of C. ODD: one of the runs has two of its three */
template <int H1, int H2, bool ODD, typename WORD>
static __device__ __forceinline__ void DiagonalProducts(unsigned bits, WORD wa, const HybScalar *a, const DiagonalRow<WORD> *row, const HybScalar *values, HybScalar sum[5])
{
  const int      firsta = DIAGONAL_FIRST(bits), firstb = DIAGONAL_FIRST(bits >> 16);
  const WORD     belowb = ((WORD)1 << firstb) - 1;
  const unsigned has    = ODD ? DiagonalHas(wa, bits) : (unsigned)(wa >> firsta);

  a += DiagonalsBits((WORD)(wa & (((WORD)1 << firsta) - 1)));
#pragma unroll
  for (int q1 = 0; q1 <= 2 * H1; q1++) {
    const DiagonalRow<WORD> there = row[q1];
    const HybScalar        *b     = values + there.at + DiagonalsBits((WORD)(there.word & belowb));
    const unsigned          hasb = ODD ? DiagonalHas(there.word, bits >> 16) : (unsigned)(there.word >> firstb), ina = (has >> q1) & 1u;
    const HybScalar         av = ina ? *a : HybScalar(0);

    a += ina;
#pragma unroll
    for (int q2 = 0; q2 <= 2 * H2; q2++) {
      const unsigned inb = (hasb >> q2) & 1u;

      if (ina & inb) sum[2 - H1 - H2 + q1 + q2] = HybMulAdd(av, *b, sum[2 - H1 - H2 + q1 + q2]);
      b += inb;
    }
  }
}

/* the same where all of them are there: nothing depends on words */
template <int H1, int H2>
static __device__ __forceinline__ void DiagonalAllProducts(unsigned bits, const HybScalar *a, const HybScalar *b, int stride, HybScalar sum[5])
{
  a += DIAGONAL_FIRST(bits);
  b += DIAGONAL_FIRST(bits >> 16);
#pragma unroll
  for (int q1 = 0; q1 <= 2 * H1; q1++, b += stride) {
#pragma unroll
    for (int q2 = 0; q2 <= 2 * H2; q2++) sum[2 - H1 - H2 + q1 + q2] = HybMulAdd(a[q1], b[q2], sum[2 - H1 - H2 + q1 + q2]);
  }
}

template <typename WORD, int THREADS>
static __global__ __launch_bounds__(THREADS, 1024 / THREADS) void DiagonalKernel(DiagonalArgs x)
{
  HYB_DYNAMIC_SHARED(HybScalar, values);
  HYB_SHARED(uint64_t, bar, 1);
  HYB_SHARED(PetscInt, from, DIAGONALS_MAX + 1);
  HYB_SHARED(PetscInt, upto, DIAGONALS_MAX + 1);
  HYB_SHARED(PetscInt, shift, DIAGONALS_MAX + 1); /* from an entry's number to where it goes */
  HYB_SHARED(PetscInt, first, DIAGONALS_MAX + 1);
  HYB_SHARED(int, bytes, DIAGONALS_MAX + 1); /* of whole units of 16 bytes from the one on that the tile begins in, at first */
  HybScalar *const         out         = (HybScalar *)((char *)values + x.out);
  DiagonalRow<WORD> *const staged      = (DiagonalRow<WORD> *)((char *)values + x.staged);
  unsigned *const          cword       = (unsigned *)((char *)values + x.cword);
  int *const               cbase       = (int *)cword + x.nwords * x.rows;
  const WORD *const __restrict__ worda = static_cast<const WORD *>(x.worda), *const __restrict__ wordb = static_cast<const WORD *>(x.wordb);
  using Row          = typename std::make_unsigned<PetscInt>::type; /* a sum that wraps round is no row either */
  const int      tid = (int)threadIdx.x, t = tid & (x.rows - 1), part = tid >> x.log, last = THREADS - 1 - tid;
  const Row      r0 = (Row)blockIdx.x << x.log, r1 = HybMin()(r0 + x.rows, (Row)x.m), r = r0 + t;
  const int      begin = x.part[part], end = x.part[part + 1];
  const PetscInt c0 = x.ci[r0], c1 = x.ci[r1];
  WORD           wa  = 0;
  int            aat = 0;

  /* by the last threads: the first one sets the barrier up meanwhile, and waits for memory there */
  if (last <= x.nruns && x.ca) {
    constexpr PetscInt     unit   = DiagonalUnit();
    const bool             ofb    = last < x.nruns;
    const DiagonalTile     tile   = ofb ? x.tile[last] : DiagonalTile{0, (PetscInt)(r1 - r0), x.abase};
    const PetscInt *const  offset = ofb ? x.bi : x.ai;
    const HybScalar *const source = ofb ? x.ba : x.aa;
    const PetscCount       n = ofb ? x.bnnz : x.annz, rows = ofb ? x.mb : x.m, lo = (PetscCount)r0 + tile.first, hi = lo + tile.count;
    const PetscInt         e0 = offset[HybMin()(HybMax()(lo, (PetscCount)0), rows)], e1 = offset[HybMin()(HybMax()(hi, (PetscCount)0), rows)];
    const PetscInt         e = e0 / unit * unit, whole = HybMin()((PetscInt)(n / unit), e1 / unit + (e1 % unit > 0)) * unit;

    from[last]  = e0;
    upto[last]  = e1;
    first[last] = e;
    shift[last] = tile.base - e;
    bytes[last] = e0 < e1 && e < whole ? (int)((whole - e) * (PetscInt)sizeof(HybScalar)) : 0;
    if (x.bulk && e0 < e1)
#pragma unroll 1
      for (PetscInt k = HybMax()(whole, e0); k < e1; k++) values[tile.base + (k - e)] = source[k];
  }
  HybBulkInit(bar, 1);
  if (x.ca) {
#if HYB_BULK_ENGINE
    if (tid == 0)
#endif
    {
      int total = 0;

      for (int k = 0; k <= x.nruns && x.bulk; k++) total += bytes[k];
      HybBulkExpect(bar, (size_t)total);

#pragma unroll 1
      for (int k = 0; k <= x.nruns && x.bulk; k++) HybBulkCopy<false>(bar, values + (shift[k] + first[k]), (k < x.nruns ? x.ba : x.aa) + first[k], (size_t)bytes[k]);
    }
#pragma unroll 1
    for (int k = 0; k <= x.nruns && !x.bulk; k++)
      for (PetscInt e = from[k] + tid; e < upto[k]; e += THREADS) values[shift[k] + e] = (k < x.nruns ? x.ba : x.aa)[e];
    for (int q = tid; q < x.nplaces; q += THREADS) {
      const DiagonalPlace place = x.place[q];
      const Row           row   = r0 + (Row)place.row;
      DiagonalRow<WORD>   there = {0, 0};

      if (row < (Row)x.mb) {
        there.word = wordb[row];
        there.at   = (int)(x.bi[row] + shift[place.tile]);
      }
      staged[q] = there;
    }
    if (r < (Row)x.m) {
      wa  = worda[r];
      aat = (int)(x.ai[r] + shift[x.nruns]);
    }
  }
  if (part == 0) {
    const unsigned *word   = x.wordc + r;
    int             before = r < (Row)x.m ? (int)(x.ci[r] - c0) : 0;

#pragma unroll 1
    for (int q = 0; q < x.nwords; q++, word += x.m) {
      const unsigned w = r < (Row)x.m ? *word : 0;

      cword[q * x.rows + t] = w;
      cbase[q * x.rows + t] = before;
      before += __popc(q == 0 ? w & ~DIAGONAL_FULL : w);
    }
  }
  __syncthreads();
  const bool full = __all_sync(HYB_FULL_MASK, (cword[t] & DIAGONAL_FULL) != 0);
  if (x.cj) {
    PetscInt *const columns = (PetscInt *)out;

#pragma unroll 1
    for (int g = begin; g < end; g++) {
      const DiagonalGroup group  = x.group[g];
      const int           half   = DIAGONAL_REACH(group.where);
      const PetscInt      column = (PetscInt)(r + (Row)group.center) - half;

      if (full) {
        PetscInt *const to = columns + cbase[t] + DIAGONAL_RANK(group.where);

#pragma unroll
        for (int s = 0; s < 5; s++) {
          if (s <= 2 * half) to[s] = column + s;
        }
      } else {
        const int      at = (DIAGONAL_WORD(group.where) << x.log) + t;
        const unsigned w = cword[at], has = (w >> DIAGONAL_BIT(group.where)) & ((2u << 2 * half) - 1u);
        PetscInt      *to = columns + cbase[at] + __popc(w & ((1u << DIAGONAL_BIT(group.where)) - 1u));

#pragma unroll
        for (int s = 0; s < 5; s++) {
          if ((has >> s) & 1u) *to++ = column + s;
        }
      }
    }
    __syncthreads();
    for (PetscInt k = tid; k < c1 - c0; k += THREADS) x.cj[c0 + k] = columns[k];
    __syncthreads();
  }
  if (x.ca) {
    HybBulkWait(bar, 0);
#pragma unroll 1
    for (int g = begin; g < end; g++) {
      const DiagonalGroup group  = x.group[g];
      HybScalar           sum[5] = {HybNegativeZero(), HybNegativeZero(), HybNegativeZero(), HybNegativeZero(), HybNegativeZero()};
      DiagonalPair        next   = x.pair[group.first];

#pragma unroll 1
      for (int k = group.first; k < group.end; k++) {
        const DiagonalPair pair = next;

        if (k + 1 < group.end) next = x.pair[k + 1];
        const HybScalar *const         a    = values + aat;
        const DiagonalRow<WORD> *const row  = staged + (pair.place & 0xffffu) + t;
        const unsigned                 kind = pair.place >> 16;
        if (full) {
          const HybScalar *const b = values + row->at;

          if (kind == 0)
            DiagonalAllProducts<0, 0>(pair.bits, a, b, x.stride, sum);
          else if (kind == 3)
            DiagonalAllProducts<1, 1>(pair.bits, a, b, x.stride, sum);
          else if (kind == 1)
            DiagonalAllProducts<0, 1>(pair.bits, a, b, x.stride, sum);
          else
            DiagonalAllProducts<1, 0>(pair.bits, a, b, x.stride, sum);
        } else {
          switch (kind) {
          case 0: DiagonalProducts<0, 0, false>(pair.bits, wa, a, row, values, sum); break;
          case 1: DiagonalProducts<0, 1, false>(pair.bits, wa, a, row, values, sum); break;
          case 2: DiagonalProducts<1, 0, false>(pair.bits, wa, a, row, values, sum); break;
          case 3: DiagonalProducts<1, 1, false>(pair.bits, wa, a, row, values, sum); break;
          case 5: DiagonalProducts<0, 1, true>(pair.bits, wa, a, row, values, sum); break;
          case 6: DiagonalProducts<1, 0, true>(pair.bits, wa, a, row, values, sum); break;
          default: DiagonalProducts<1, 1, true>(pair.bits, wa, a, row, values, sum);
          }
        }
      }
      const int half = DIAGONAL_REACH(group.where);

      if (full) {
        HybScalar *const to = out + cbase[t] + DIAGONAL_RANK(group.where);

        if (half == 0)
          to[0] = sum[2];
        else {
          to[half]     = sum[2];
          to[half - 1] = sum[1];
          to[half + 1] = sum[3];
          if (half == 2) {
            to[0] = sum[0];
            to[4] = sum[4];
          }
        }
      } else {
        const int      at = (DIAGONAL_WORD(group.where) << x.log) + t;
        const unsigned w = cword[at], has = ((w >> DIAGONAL_BIT(group.where)) & ((2u << 2 * half) - 1u)) << (2 - half);
        HybScalar     *to = out + cbase[at] + __popc(w & ((1u << DIAGONAL_BIT(group.where)) - 1u));

#pragma unroll
        for (int s = 0; s < 5; s++) {
          if ((has >> s) & 1u) *to++ = sum[s];
        }
      }
    }
    __syncthreads();
    for (PetscInt k = tid; k < c1 - c0; k += THREADS) x.ca[c0 + k] = out[k];
  }
}

typedef struct {
  PetscBool     found; /* the operands are of few diagonals, and the program is there; else all rows go by hash */
  PetscBool     wide;  /* words of 64 bits */
  int           threads;
  int           ndiagonals, npairs;
  size_t        bytes; /* of shared memory */
  DiagonalArgs  args;
  DiagonalLook *look; /* in work, for the symbolic phase */
  void         *worda, *wordb;
  HybHashRows   hash;
} Diagonal;

/* a run of an operand */
typedef struct {
  PetscInt center;
  int      half, first, count, lead;
} DiagonalLine;

/* the runs; 0: there is one of more than three */
static int DiagonalLines(const Diagonals *D, bool three, DiagonalLine *line)
{
  int n = 0;

  for (int k = 0; k < D->n; n++) {
    int count = 1;

    while (three && k + count < D->n && D->offset[k + count] == D->offset[k] + count) count++;
    if (count > 3) return 0;
    line[n].first  = k;
    line[n].count  = count;
    line[n].half   = count > 1;
    line[n].lead   = count == 2 && D->offset[k] >= 0; /* of two, the center is the one nearer to the diagonal, as on the other side of it */
    line[n].center = D->offset[k] + (count == 3 || (count == 2 && !line[n].lead));
    k += count;
  }
  return n;
}

typedef struct {
  PetscCount center;
  int        a, b;
} DiagonalMeeting;

static int DiagonalCompare(const void *p, const void *q)
{
  const DiagonalMeeting *x = (const DiagonalMeeting *)p, *y = (const DiagonalMeeting *)q;

  return x->center < y->center ? -1 : x->center > y->center ? 1
                                                            : x->a - y->a;
}

/* takes bytes of one allocation; with base NULL it only counts */
static void DiagonalTake(char *base, size_t *used, size_t bytes, void *ptr)
{
  *(void **)ptr = base ? base + *used : NULL;
  *used += (bytes + 15) & ~(size_t)15;
}

/* what belongs to C's centers: in groups, whose pairs are meeting[group.first] .. meeting[group.end - 1]; 0: they
   overlap, or are too many */
static int DiagonalGroups(const HybCSR *A, const HybCSR *B, int na, const DiagonalLine *a, int nb, const DiagonalLine *b, DiagonalMeeting *meeting, DiagonalGroup *group, int *npairs, int *nwords, unsigned *all, int *ndiagonals)
{
  int        n = 0, ngroups = 0, pairs = 0, bit = 0, word = 0;
  PetscCount before = 0;

  *ndiagonals = 0;
  for (int p = 0; p < na; p++) {
    for (int q = 0; q < nb; q++) {
      meeting[n].center = (PetscCount)a[p].center + b[q].center;
      meeting[n].a      = p;
      meeting[n++].b    = q;
    }
  }
  qsort(meeting, (size_t)n, sizeof(*meeting), DiagonalCompare);
  for (int k = 0, next; k < n; k = next) {
    DiagonalGroup g;
    unsigned      set  = 0;
    int           half = 0;

    for (next = k; next < n && meeting[next].center == meeting[k].center; next++) half = PetscMax(half, a[meeting[next].a].half + b[meeting[next].b].half);
    /* beyond the matrix: no row has these */
    if (meeting[k].center + half <= -(PetscCount)A->m || meeting[k].center - half >= B->n) continue;
    if (ngroups && before >= meeting[k].center - half) return 0;
    before = meeting[k].center + half;
    for (int e = k; e < next; e++) {
      const DiagonalLine *u = &a[meeting[e].a], *v = &b[meeting[e].b];

      for (int q = 0; q < u->count; q++) set |= ((1u << v->count) - 1) << (v->lead + u->lead + q + half - u->half - v->half);
    }
    if (bit + 2 * half + 1 > (word ? 32 : 31)) { /* the first word has one bit for other use */
      word++;
      bit = 0;
      if (word == DIAGONAL_WORDS) return 0;
    }
    g.center = (PetscInt)meeting[k].center;
    g.where  = DIAGONAL_WHERE(word, bit, half, *ndiagonals & 255);
    all[word] |= set << bit;
    for (; set; set >>= 1) *ndiagonals += (int)(set & 1u);
    g.first = pairs;
    for (int e = k; e < next; e++) meeting[pairs++] = meeting[e];
    g.end = pairs;
    bit += 2 * half + 1;
    if (pairs > DIAGONAL_PAIRS) return 0;
    group[ngroups++] = g;
  }
  *npairs = pairs;
  *nwords = word + 1;
  return ngroups;
}

/* shared memory of a block of so many rows; places of what is there */
static PetscCount DiagonalShared(int rows, int na, const DiagonalLine *a, int maxarow, int maxbrow, int ndiagonals, bool wide, DiagonalArgs *x, DiagonalTile *tile)
{
  const int  unit  = DiagonalUnit();
  PetscCount bytes = 0, base = 0;

  x->nplaces = 0;
  for (int k = 0; k < na; k++) {
    const int count = rows + 2 * a[k].half;

    if (tile) {
      tile[k].first = a[k].center - a[k].half;
      tile[k].count = count;
      tile[k].base  = (int)base;
    }
    base += ((PetscCount)count * maxbrow + 3 * unit) / unit * unit;
    x->nplaces += count;
  }
  x->abase = (int)base;
  base += (PetscCount)rows * maxarow + 3 * unit;
  bytes  = (base * (PetscCount)sizeof(HybScalar) + 15) / 16 * 16;
  x->out = (size_t)bytes;
  bytes += ((PetscCount)rows * ndiagonals * (PetscCount)PetscMax(sizeof(HybScalar), sizeof(PetscInt)) + 15) / 16 * 16;
  x->staged = (size_t)bytes;
  bytes += ((PetscCount)x->nplaces * (wide ? 16 : 8) + 15) / 16 * 16;
  x->cword = (size_t)bytes;
  bytes += (PetscCount)x->nwords * rows * 2 * (PetscCount)sizeof(unsigned);
  return bytes;
}

/* the program of operands whose diagonals are known; s->found stays false where there is none */
static PetscErrorCode DiagonalProgram(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const DiagonalLook *look, Diagonal *s)
{
  const HybExec   *exec = &mm->exec;
  const Diagonals *da = &look->d[0], *db = &look->d[1];
  DiagonalLine     a[DIAGONALS_MAX], b[DIAGONALS_MAX];
  DiagonalMeeting *meeting;
  DiagonalGroup   *group;
  DiagonalArgs    *x  = &s->args;
  int              na = 0, nb = 0, ngroups = 0, npairs = 0, rows, threads, nparts;
  const HybTuning *tuning = HybDeviceTuning();
  PetscCount       padded = 0;
  bool             odd    = false;
  size_t           limit, used = 0;
  char            *host = NULL, *device = NULL;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, NULL));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, DIAGONALS_MAX * DIAGONALS_MAX, sizeof(*meeting), &meeting));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, 32 * DIAGONAL_WORDS, sizeof(*group), &group));
  for (int pass = tuning->diagonal_runs ? 0 : 1; pass < 2 && !ngroups; pass++) {
    memset(x->all, 0, sizeof(x->all));
    na = DiagonalLines(da, !pass, a);
    nb = DiagonalLines(db, !pass, b);
    if (na && nb) ngroups = DiagonalGroups(A, B, na, a, nb, b, meeting, group, &npairs, &x->nwords, x->all, &s->ndiagonals);
  }
  for (int k = 0; k < na; k++) odd |= a[k].count == 2;
  for (int k = 0; k < nb; k++) odd |= b[k].count == 2;
  for (int k = 0; k < npairs; k++) padded += (PetscCount)(a[meeting[k].a].count * b[meeting[k].b].count);
  if (!ngroups || (!strcmp(mm->name, "auto") && (double)padded * A->m * B->m > 4. * (double)A->nnz * (double)B->nnz)) PetscFunctionReturn(PETSC_SUCCESS);
  s->wide   = (PetscBool)(PetscMax(da->n, db->n) > 32);
  s->npairs = npairs;
  /* as many rows as leave room for four blocks of 256 threads, at least 32: what they share with their neighbours costs
     less */
  rows = DIAGONAL_MOST;
  while (rows > 32 && 4 * (DiagonalShared(rows, na, a, da->n, db->n, s->ndiagonals, s->wide, x, NULL) + 2048) > (PetscCount)limit) rows /= 2;
  if (tuning->diagonal_rows) rows = (int)tuning->diagonal_rows;
  while (rows > 32 && DiagonalShared(rows, na, a, da->n, db->n, s->ndiagonals, s->wide, x, NULL) + (PetscCount)DIAGONAL_STATIC > (PetscCount)limit) rows /= 2;
  s->bytes = (size_t)DiagonalShared(rows, na, a, da->n, db->n, s->ndiagonals, s->wide, x, NULL);
  if (s->bytes + DIAGONAL_STATIC > limit) PetscFunctionReturn(PETSC_SUCCESS);
  threads = 4 * (s->bytes + 2048) > limit ? 512 : 256;
  if (tuning->diagonal_threads) threads = (int)tuning->diagonal_threads;
  s->threads = threads;
  x->rows    = rows;
  x->log     = HybLog2(rows);
  nparts     = threads / rows;
  x->nruns   = na;
  x->stride  = db->n;
  x->bits    = da->n;
  x->full    = odd ? -1 : da->n * db->n;
  {
    DiagonalRun   *run;
    unsigned      *target;
    DiagonalPair  *pair;
    DiagonalGroup *ordered;
    int           *part, partof[32 * DIAGONAL_WORDS], load[32] = {0}, ntargets = 0, places[DIAGONALS_MAX], n = 0;
    bool           taken[32 * DIAGONAL_WORDS] = {false};
    DiagonalTile  *tile;
    DiagonalPlace *place;

    for (int pass = 0; pass < 3; pass++) {
      char *base = pass == 0 ? NULL : pass == 1 ? host
                                                : device;

      used = 0;
      DiagonalTake(base, &used, (size_t)na * sizeof(*run), &x->run);
      DiagonalTake(base, &used, (size_t)npairs * sizeof(*target), &x->target);
      DiagonalTake(base, &used, (size_t)npairs * sizeof(*pair), &x->pair);
      DiagonalTake(base, &used, (size_t)ngroups * sizeof(*ordered), &x->group);
      DiagonalTake(base, &used, (size_t)(nparts + 1) * sizeof(*part), &x->part);
      DiagonalTake(base, &used, (size_t)na * sizeof(*tile), &x->tile);
      DiagonalTake(base, &used, (size_t)x->nplaces * sizeof(*place), &x->place);
      if (pass == 0) {
        PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, (PetscCount)used, 1, &host));
        PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &device));
        PetscCall(PetscMemzero(host, used));
      }
      if (pass != 1) continue;
      run     = (DiagonalRun *)x->run;
      target  = (unsigned *)x->target;
      pair    = (DiagonalPair *)x->pair;
      ordered = (DiagonalGroup *)x->group;
      part    = (int *)x->part;
      tile    = (DiagonalTile *)x->tile;
      place   = (DiagonalPlace *)x->place;
      (void)DiagonalShared(rows, na, a, da->n, db->n, s->ndiagonals, s->wide, x, tile);
      for (int k = 0; k < na; k++) {
        places[k] = n;
        for (int q = 0; q < tile[k].count; q++, n++) {
          place[n].row  = tile[k].first + q;
          place[n].tile = k;
        }
        run[k].center = a[k].center;
        run[k].bits   = DiagonalBits(a[k].first, a[k].count, a[k].lead, a[k].half);
        run[k].first  = ntargets;
        for (int g = 0; g < ngroups; g++) {
          for (int e = group[g].first; e < group[g].end; e++) {
            const DiagonalLine *u = &b[meeting[e].b];

            if (meeting[e].a == k) target[ntargets++] = DiagonalBits(u->first, u->count, u->lead, 0) | (unsigned)(DIAGONAL_BIT(group[g].where) + DIAGONAL_REACH(group[g].where) - a[k].half - u->half) << 16 | (unsigned)DIAGONAL_WORD(group[g].where) << 24;
          }
        }
        run[k].end = ntargets;
      }
      for (int e = 0; e < npairs; e++) {
        const DiagonalLine *u = &b[meeting[e].b];

        pair[e].bits  = run[meeting[e].a].bits | DiagonalBits(u->first, u->count, u->lead, u->half) << 16;
        pair[e].place = (unsigned)places[meeting[e].a] | (DIAGONAL_HALF(pair[e].bits) * 2 + DIAGONAL_HALF(pair[e].bits >> 16) + (DIAGONAL_ODD(pair[e].bits) | DIAGONAL_ODD(pair[e].bits >> 16)) * 4) << 16;
      }
      /* the groups with most products first, each to the part that has least */
      for (int round = 0; round < ngroups; round++) {
        int largest = -1, most = -1, least = 0;

        for (int g = 0; g < ngroups; g++) {
          int cost = 4;

          if (taken[g]) continue;
          for (int e = group[g].first; e < group[g].end; e++) cost += 2 + (1 + 2 * a[meeting[e].a].half) * (1 + 2 * b[meeting[e].b].half);
          if (cost > most) {
            most    = cost;
            largest = g;
          }
        }
        for (int p = 1; p < nparts; p++)
          if (load[p] < load[least]) least = p;
        taken[largest]  = true;
        partof[largest] = least;
        load[least] += most;
      }
      n = 0;
      for (int p = 0; p < nparts; p++) {
        part[p] = n;
        for (int g = 0; g < ngroups; g++)
          if (partof[g] == p) ordered[n++] = group[g];
      }
      part[nparts] = n;
      PetscCall(exec->backend->copy(exec, device, host, used, HYB_COPY_HOST_TO_DEVICE));
    }
  }
  PetscCall(HybArenaFree(&mm->work, &host));
  PetscCall(HybArenaFree(&mm->work, &meeting));
  PetscCall(HybArenaFree(&mm->work, &group));
  s->found = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMApplicable_DiagonalCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const HybExec *exec      = &mm->exec;
  const bool     same      = A->i == B->i && A->j == B->j;
  const int      sizes     = !strcmp(mm->name, "auto") ? RowBlocksCandidates(A) & RowBlocksCandidates(B) : 0;
  const PetscInt acapacity = DiagonalsCapacity(A, DIAGONAL_THREADS), bcapacity = DiagonalsCapacity(B, DIAGONAL_THREADS);
  DiagonalLook  *look, host;
  Diagonals     *da, *db;
  Diagonal      *s;
  PetscBool      known = PETSC_FALSE;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (!A->nnz || !B->nnz || (A->nnz < HybDeviceTuning()->diagonal_fewest && !strcmp(mm->name, "auto"))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero((void *)s, sizeof(*s)));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 1, sizeof(*look), &look));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscCount), &mm->rowproducts));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->m, sizeof(unsigned long long), &s->worda));
  s->wordb = s->worda;
  if (!same) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, B->m, sizeof(unsigned long long), &s->wordb));
  da = &look->d[0];
  db = &look->d[same ? 0 : 1];
  for (int pass = 0; pass < 2 && !known; pass++) {
    HYB_LAUNCH(DiagonalSample, same ? 1 : 2, DIAGONALS_SAMPLE, 0, exec->stream, *A, *B, pass, look);
    HYB_LAUNCH(DiagonalWords, HybBlocks(A->m, DIAGONAL_THREADS), DIAGONAL_THREADS, (size_t)acapacity * sizeof(PetscInt), exec->stream, A->m, A->i, A->j, acapacity, da, db, s->worda);
    if (!same) HYB_LAUNCH(DiagonalWords, HybBlocks(B->m, DIAGONAL_THREADS), DIAGONAL_THREADS, (size_t)bcapacity * sizeof(PetscInt), exec->stream, B->m, B->i, B->j, bcapacity, db, da, s->wordb);
    /* who looks for blocks then has nothing to wait for but his proof */
    if (pass == 0 && sizes) PetscCall(RowBlocksSampleAsync(exec, A, sizes, &look->blocks));
    if (pass == 0 && sizes && !same) PetscCall(RowBlocksSampleAsync(exec, B, sizes, &look->blocks));
    /* so that whoever comes after a second look has nothing to wait for but its count; and where pairs are likely to be
       too many, after the first */
    if (pass == 0)
      PetscCall(HybPlanRowCostsUnless(exec, A, B->i, NULL, {
                                                             {&da->n, &db->n},
                                                             DIAGONALS_MAX, DIAGONAL_PAIRS
      },
                                      mm->rowproducts, look->stats));
    else if (!host.stats[0])
      PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, mm->rowproducts, look->stats));
    PetscCall(exec->backend->copy(exec, &host, look, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
    mm->waits++;
    mm->blocksizes = sizes & ~host.blocks;
    if (same) host.d[1] = host.d[0];
    if (host.d[0].n > DIAGONALS_MAX || host.d[1].n > DIAGONALS_MAX || host.d[0].nmissing > DIAGONALS_MAX || host.d[1].nmissing > DIAGONALS_MAX) break;
    known = (PetscBool)(!host.d[0].nmissing && !host.d[1].nmissing);
  }
  if (known) PetscCall(DiagonalProgram(mm, A, B, &host, s));
  if (s->found) {
    PetscCall(HybArenaFree(&mm->work, &mm->rowproducts));
    mm->data = s;
    s->look  = look;
    *fits    = PETSC_TRUE;
  } else {
    /* it makes room before the next method starts */
    PetscCall(HybArenaFree(&mm->work, &look));
    PetscCall(HybArenaReset(&mm->keep));
    if (host.stats[0])
      HybPlanStatsSet(host.stats, &mm->stats);
    else
      PetscCall(HybArenaFree(&mm->work, &mm->rowproducts));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalRunAll(HybSpGEMM *mm, Diagonal *s, const HybCSR *A, const HybCSR *B, bool columns, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  DiagonalArgs   x    = s->args;
  PetscCount     grid = HybBlocks(A->m, x.rows);

  PetscFunctionBegin;
  x.m     = A->m;
  x.mb    = B->m;
  x.annz  = A->nnz;
  x.bnnz  = B->nnz;
  x.ai    = A->i;
  x.bi    = B->i;
  x.ci    = C->i;
  x.aa    = A->a;
  x.ba    = B->a;
  x.cj    = columns ? C->j : NULL;
  x.ca    = C->a;
  x.worda = s->worda;
  x.wordb = s->wordb;
  x.bulk  = (((uintptr_t)A->a | (uintptr_t)B->a) & 15) == 0;
#define DIAGONAL_CALL(WORD, THREADS) HYB_LAUNCH((DiagonalKernel<WORD, THREADS>), grid, THREADS, s->bytes, exec->stream, x)
  if (s->wide) {
    if (s->threads == 512)
      DIAGONAL_CALL(unsigned long long, 512);
    else
      DIAGONAL_CALL(unsigned long long, 256);
  } else {
    if (s->threads == 512)
      DIAGONAL_CALL(unsigned, 512);
    else
      DIAGONAL_CALL(unsigned, 256);
  }
#undef DIAGONAL_CALL
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_DiagonalCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec   = &mm->exec;
  const bool     values = (A->a || !A->nnz) && (B->a || !B->nnz);
  Diagonal      *s      = (Diagonal *)mm->data;

  PetscFunctionBegin;
  if (!s) {
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
    PetscCall(PetscMemzero((void *)s, sizeof(*s)));
    mm->data = s;
  }
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  if (s->found) {
    DiagonalArgs *x     = &s->args;
    PetscCount   *found = s->look->found, host[3];

    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m * x->nwords, sizeof(unsigned), &x->wordc));
    x->m     = A->m;
    x->worda = s->worda;
    x->wordb = s->wordb;
    x->stats = found;
    {
      const PetscCount grid  = HybBlocks(A->m, DIAGONAL_THREADS);
      const size_t     bytes = x->nwords > 1 ? (size_t)x->nwords * DIAGONAL_THREADS * sizeof(unsigned) : 0;

      if (s->wide) {
        if (x->nwords > 1)
          HYB_LAUNCH((DiagonalCounts<unsigned long long, false>), grid, DIAGONAL_THREADS, bytes, exec->stream, *x, C->i);
        else
          HYB_LAUNCH((DiagonalCounts<unsigned long long, true>), grid, DIAGONAL_THREADS, bytes, exec->stream, *x, C->i);
      } else {
        if (x->nwords > 1)
          HYB_LAUNCH((DiagonalCounts<unsigned, false>), grid, DIAGONAL_THREADS, bytes, exec->stream, *x, C->i);
        else
          HYB_LAUNCH((DiagonalCounts<unsigned, true>), grid, DIAGONAL_THREADS, bytes, exec->stream, *x, C->i);
      }
    }
    PetscCall(HybScanCounts(exec, &mm->work, C->m, C->i, C->i, found + 2, NULL));
    PetscCall(exec->backend->copy(exec, host, found, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
    x->stats = NULL;
    PetscCall(HybArenaFree(&mm->work, &s->look));
    mm->stats.products = host[0];
    mm->stats.maxrow   = host[1];
    C->nnz             = host[2];
    PetscCall(HybCountersSet(&mm->counters, "diagonals", s->ndiagonals));
    PetscCall(HybCountersSet(&mm->counters, "pairs", s->npairs));
    PetscCall(HybCountersSet(&mm->counters, "rows by diagonals", A->m));
  } else if (mm->stats.products) {
    PetscCall(HybHashRowsCount(mm, A, B, PETSC_TRUE, mm->rowproducts, NULL, &s->hash, C->i));
    PetscCall(HybHashRowsFetch(mm, &s->hash, &C->nnz));
    PetscCall(HybCountersSet(&mm->counters, "rows by hash", A->m));
  } else
    PetscCall(exec->backend->zero(exec, C->i, ((size_t)C->m + 1) * sizeof(PetscInt)));
  PetscCall(HybSpGEMMCheckCount(exec, A, B, C->nnz, PETSC_FALSE));
  PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(PetscInt), &C->j));
  if (values) PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(HybScalar), &C->a));
  if (C->nnz) {
    if (s->found)
      PetscCall(DiagonalRunAll(mm, s, A, B, true, C));
    else
      PetscCall(HybHashRowsFill(mm, A, B, &s->hash, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_DiagonalCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  Diagonal *s = (Diagonal *)mm->data;

  PetscFunctionBegin;
  if (C->nnz) {
    if (s->found)
      PetscCall(DiagonalRunAll(mm, s, A, B, false, C));
    else
      PetscCall(HybHashRowsNumeric(mm, A, B, &s->hash, C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_DiagonalCUDA;
const HybSpGEMMMethod        HybSpGEMM_DiagonalCUDA = {"diagonal", HybSpGEMMApplicable_DiagonalCUDA, HybSpGEMMSymbolic_DiagonalCUDA, HybSpGEMMNumeric_DiagonalCUDA, NULL, PETSC_TRUE};
