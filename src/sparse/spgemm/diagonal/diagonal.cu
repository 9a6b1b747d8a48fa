/*
  diagonal.cu: SpGEMM method "diagonal": no columns are looked at where both operands' entries lie on few diagonals.

  Idea. A matrix of few diagonals (offset = column - row) is its values and a word of bits a row, which say on which
  diagonals the row has an entry (../../structure/diagonals.cuh); entry k of those is at the place that the number of
  bits below k's tells. Row r of C = A B has an entry on diagonal d1 + d2 where row r of A has one on d1 and row r + d1
  of B has one on d2. So the rows of C are words as well, made from words by shifts; and for neighbouring rows r the
  rows r + d1 of B are neighbours, and so are their values in memory: a block of rows of C reads a few contiguous pieces
  of B, which are copied to shared memory as they are.

  Three neighbouring diagonals c - 1, c, c + 1 (stencils' points along a line) are taken together as a run around its
  center c. Runs around c1 and c2 contribute to the diagonals around c1 + c2, to which the sums for them are known at
  compile time: five sums stand in registers. A group of C is what belongs to one center c1 + c2. Where groups would
  overlap (bands of four and more), or lines are longer, each diagonal is a run of its own.

    words:    diagonals of a sample; words of A's and B's rows, which find what the sample had missed (twice in that
              case)
    program:  runs of A, of B; groups of C, for each the pairs of runs in the order of A; made on the host
              (../diagonalprogram.cu)
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
  The look is a sample and two launches that end at once where there are more diagonals; rows' products are counted in
  the same go where there are (or so many that pairs will be too many), so no more synchronisations come of it. Where
  the look must be repeated products are counted with the second one. What is left is few diagonals of which no program
  comes for another reason; then there is one synchronisation fewer left, and `shape` is not asked to look. The sample
  is one for whole blocks too (HybSpGEMM.blocksizes): where rows have left a size, nothing is looked for but the next
  method asked, `block`, which has its proof left to wait for; should that fail, it is others' turn. Where blocks are
  likely (RowBlocksLikely()) it is for these alone first, and waited for by itself: a sample for diagonals, and the
  launches and the room of what comes then, would be for nothing. Then there is no second look. By name, operands of
  other form are an error.

  Copies to shared memory are the copy engine's, which is faster than ordinary loads, in units
  of 16 bytes from the one on that a tile begins in, with what ends them found by a thread each; their source is to stay
  in the second-level cache, for other runs read it again. An operand's values may begin within a unit, as those of a
  part of a matrix do: what that has of them is found so too.

  Memory: 8 bytes a row of A, and of B where that has another pattern, 4 or a few more for C's; 8 a row of A during the
  look. Synchronisations of a first product: the diagonals, a second time where a sample had missed some; nnz(C).
  Complexity: one pass over the columns of A and B, one multiplication and addition a product, each value of B read as
  often as A has runs, from the second-level cache mostly.
*/
#include "diagonalprogram.cuh"
#include "../../structure/rowblocksample.cuh"
#include "../../device/carve.h"
#include "../../plan/bins.cuh"

#define DIAGONAL_THREADS 256 /* of the kernels that have a thread a row */

/* which of the run's entries a row has */
template <typename WORD>
static __device__ __forceinline__ unsigned DiagonalHas(WORD word, unsigned w)
{
  return ((unsigned)(word >> DIAGONAL_FIRST(w)) & DIAGONAL_MASK(w)) << DIAGONAL_LEAD(w);
}

template <typename WORD>
struct alignas(2 * sizeof(WORD)) DiagonalRow {
  WORD word;
  int  at; /* of its first entry, among the staged values */
};

/* Which of the sizes of blocks the sample of rows has left, some where blocks are likely: block is better at these */
static __host__ __device__ __forceinline__ int DiagonalBlocks(int sizes, int refused)
{
  return sizes & ~refused;
}

/* What comes before words, of A and, where it is another, of B: a block samples for diagonals, others for blocks, W
   lanes a row */
struct DiagonalSampled {
  HybCSR   A, B;
  PetscInt rows[2], step[2]; /* that are asked for blocks */
  int      operands, again, sizes;
};

template <int W>
static __global__ __launch_bounds__(DIAGONALS_SAMPLE) void DiagonalSample(DiagonalSampled x, DiagonalLook *look)
{
  const int        who    = (int)blockIdx.x;
  const PetscCount blocks = ((PetscCount)gridDim.x - x.operands) / x.operands, block = who - x.operands;

  if (who == 0)
    DiagonalsSample(x.A.m, x.A.nnz, x.A.i, x.A.j, x.again, &look->d[0]);
  else if (who < x.operands)
    DiagonalsSample(x.B.m, x.B.nnz, x.B.i, x.B.j, x.again, &look->d[1]);
  else if (block < blocks)
    RowBlocksSampleRows<W>(x.rows[0], x.step[0], x.A.i, x.A.j, x.sizes, block, blocks, &look->blocks);
  else
    RowBlocksSampleRows<W>(x.rows[1], x.step[1], x.B.i, x.B.j, x.sizes, block - blocks, blocks, &look->blocks);
}

/* words of 32 bits where both operands have no more diagonals; none where blocks are likely */
static __global__ __launch_bounds__(DIAGONAL_THREADS) void DiagonalWords(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt capacity, int sizes, const int *refused, Diagonals *D, const Diagonals *other, void *__restrict__ word)
{
  HYB_DYNAMIC_SHARED(PetscInt, staged);
  HYB_SHARED(PetscInt, d, DIAGONALS_MAX);
  const int          n = D->n, most = HybMax()(n, other->n);
  const PetscCount   r0 = (PetscCount)blockIdx.x * DIAGONAL_THREADS, r1 = r0 + DIAGONAL_THREADS < m ? r0 + DIAGONAL_THREADS : m, r = r0 + threadIdx.x;
  unsigned long long mine;

  if (most > DIAGONALS_MAX || DiagonalBlocks(sizes, *refused)) return;
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

/* One kernel of more than 100 lines: copies that are under way, words, counts and sums of a block's rows overlap in one
   piece of shared memory, which is cut up here and known to no other function */
template <typename WORD, int THREADS>
static __global__ __launch_bounds__(THREADS, 1024 / THREADS) void DiagonalKernel(DiagonalArgs x)
{
  HYB_DYNAMIC_SHARED(HybScalar, values);
  HYB_SHARED(uint64_t, bar, 1);
  HYB_SHARED(PetscInt, shift, DIAGONALS_MAX + 1); /* from an entry's number to where it goes */
  HYB_SHARED(PetscInt, first, DIAGONALS_MAX + 1);
  /* of whole units of 16 bytes from the one on that the tile begins in, at first */
  HYB_SHARED(int, bytes, DIAGONALS_MAX + 1);
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
    const PetscCount       lead = ofb ? x.lead[1] : x.lead[0]; /* before the first entry, in its unit */
    const PetscInt         e = (PetscInt)((e0 + lead) / unit * unit - lead), whole = (PetscInt)(HybMin()((n + lead) / unit, (e1 + lead + unit - 1) / unit) * unit - lead);
    const PetscInt         head = e < 0 ? e + unit : e; /* what lies before the operand is not read */

    first[last] = head;
    shift[last] = tile.base - e;
    bytes[last] = e0 < e1 && head < whole ? (int)((whole - head) * (PetscInt)sizeof(HybScalar)) : 0;
#pragma unroll 1
    for (PetscInt k = e0; k < HybMin()(head, e1); k++) values[tile.base + (k - e)] = source[k];
#pragma unroll 1
    for (PetscInt k = HybMax()(whole, HybMax()(head, e0)); k < e1; k++) values[tile.base + (k - e)] = source[k];
  }
  HybBulkInit(bar, 1);
  if (x.ca) {
#if HYB_BULK_ENGINE
    if (tid == 0)
#endif
    {
      int total = 0;

      for (int k = 0; k <= x.nruns; k++) total += bytes[k];
      HybBulkExpect(bar, (size_t)total);

#pragma unroll 1
      for (int k = 0; k <= x.nruns; k++) HybBulkCopy<false>(bar, values + (shift[k] + first[k]), (k < x.nruns ? x.ba : x.aa) + first[k], (size_t)bytes[k]);
    }
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

static PetscErrorCode HybSpGEMMApplicable_DiagonalCUDA(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  *fits = (PetscBool)(A->nnz >= HybDeviceTuning()->diagonal_fewest && A->nnz && B->nnz);
  return PETSC_SUCCESS;
}

static PetscErrorCode DiagonalSampleAll(const HybExec *exec, const HybCSR *A, const HybCSR *B, int again, int sizes, DiagonalLook *look)
{
  const bool      same = A->i == B->i && A->j == B->j;
  DiagonalSampled x;

  PetscFunctionBegin;
  x.A        = *A;
  x.B        = *B;
  x.rows[0]  = RowBlocksSampled(A->m, &x.step[0]);
  x.rows[1]  = RowBlocksSampled(B->m, &x.step[1]);
  x.operands = same ? 1 : 2;
  x.again    = again;
  x.sizes    = sizes;
  PetscCall(HybDispatch(RowWidth(A->nnz, A->m, 4) > 4 ? 16 : 4, HybCases<4, 16>(), [&](auto W) {
    const PetscCount blocks = sizes ? HybBlocks((PetscCount)PetscMax(x.rows[0], same ? 0 : x.rows[1]) * W, DIAGONALS_SAMPLE) : 0;

    HYB_LAUNCH((DiagonalSample<W>), x.operands * (1 + blocks), DIAGONALS_SAMPLE, 0, exec->stream, x, look);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which sizes of blocks a sample of rows leaves: mm->blocksizes. It needs no memory but what others need as well, the
   products of each row and what is behind them. Where it leaves none its wait is not counted: rows are long, so that a
   wait is little, and shape, which comes later, would have none left for its own look. */
static PetscErrorCode DiagonalBlocksFirst(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, int sizes)
{
  const HybExec *exec = &mm->exec;
  int           *look = (int *)(mm->rowproducts + A->m), refused;

  PetscFunctionBegin;
  PetscCall(exec->backend->zero(exec, look, sizeof(*look)));
  PetscCall(HybRowBlocksSampleAsync(exec, A, sizes, look));
  if (A->i != B->i || A->j != B->j) PetscCall(HybRowBlocksSampleAsync(exec, B, sizes, look));
  PetscCall(HybSpGEMMFetch(mm, &refused, look, sizeof(refused)));
  mm->blocksizes = DiagonalBlocks(sizes, refused);
  if (!mm->blocksizes) mm->waits--;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMFits_DiagonalCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const HybExec *exec  = &mm->exec;
  const bool     same  = A->i == B->i && A->j == B->j;
  const bool     named = strcmp(mm->name, "auto") != 0, count = !mm->counted;
  int            sizes     = !named && mm->blocksizes < 0 ? HybRowBlocksCandidates(A) & HybRowBlocksCandidates(B) : 0;
  const PetscInt acapacity = DiagonalsCapacity(A, DIAGONAL_THREADS), bcapacity = DiagonalsCapacity(B, DIAGONAL_THREADS);
  DiagonalLook  *look = NULL, host;
  Diagonals     *da, *db;
  Diagonal      *s;
  PetscBool      known = PETSC_FALSE;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
  if (!A->nnz || !B->nnz) PetscFunctionReturn(PETSC_SUCCESS); /* by name: a product without entries */
  if (count && !mm->rowproducts) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + HYB_PLAN_SPARE, sizeof(PetscCount), &mm->rowproducts));
  if (sizes && RowBlocksLikely(A)) {
    PetscCall(DiagonalBlocksFirst(mm, A, B, sizes));
    *fits = (PetscBool)!mm->blocksizes;
    sizes = 0;
    if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero((void *)s, sizeof(*s)));
  for (int pass = 0; pass < 2; pass++) {
    size_t used = 0;

    HybCarve((char *)s->kept, &used, sizeof(*look), &look);
    HybCarve((char *)s->kept, &used, (size_t)A->m * sizeof(unsigned long long), &s->worda);
    HybCarve((char *)s->kept, &used, same ? 0 : (size_t)B->m * sizeof(unsigned long long), &s->wordb);
    if (!pass) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &s->kept));
  }
  if (same) s->wordb = s->worda;
  PetscCall(exec->backend->zero(exec, look, sizeof(*look)));
  da = &look->d[0];
  db = &look->d[same ? 0 : 1];
  /* a second time where a wait is left for it: a block size that was given and refused has cost one, or the sample */
  for (int pass = 0; pass < 2 && !known && (named || mm->waits <= HYB_SPGEMM_WAITS - 2); pass++) {
    /* who looks for blocks then has nothing to wait for but his proof */
    PetscCall(DiagonalSampleAll(exec, A, B, pass, pass ? 0 : sizes, look));
    HYB_LAUNCH(DiagonalWords, HybBlocks(A->m, DIAGONAL_THREADS), DIAGONAL_THREADS, (size_t)acapacity * sizeof(PetscInt), exec->stream, A->m, A->i, A->j, acapacity, sizes, &look->blocks, da, db, s->worda);
    if (!same) HYB_LAUNCH(DiagonalWords, HybBlocks(B->m, DIAGONAL_THREADS), DIAGONAL_THREADS, (size_t)bcapacity * sizeof(PetscInt), exec->stream, B->m, B->i, B->j, bcapacity, sizes, &look->blocks, db, da, s->wordb);
    /* so that whoever comes after the last look has nothing to wait for but its count; and where pairs are likely to be
       too many, after the first, unless blocks are likely, which need no counts */
    if (count && !mm->waits)
      PetscCall(HybPlanRowCostsUnless(exec, A, B->i, NULL, {
                                                             {&da->n, &db->n},
                                                             DIAGONALS_MAX, DIAGONAL_PAIRS, &look->blocks, sizes
      },
                                      mm->rowproducts, look->stats));
    else if (count && (!pass || !host.stats[0]))
      PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, mm->rowproducts, look->stats));
    PetscCall(HybSpGEMMFetch(mm, &host, look, sizeof(host)));
    if (mm->blocksizes < 0) mm->blocksizes = DiagonalBlocks(sizes, host.blocks);
    if (DiagonalBlocks(sizes, host.blocks)) break;
    if (same) host.d[1] = host.d[0];
    if (host.d[0].n > DIAGONALS_MAX || host.d[1].n > DIAGONALS_MAX || host.d[0].nmissing > DIAGONALS_MAX || host.d[1].nmissing > DIAGONALS_MAX) break;
    known = (PetscBool)(!host.d[0].nmissing && !host.d[1].nmissing);
  }
  *fits = PETSC_FALSE;
  if (known) PetscCall(HybDiagonalProgram(mm, A, B, &host, s, fits));
  if (*fits) {
    PetscCall(HybArenaFree(&mm->work, &mm->rowproducts));
    mm->data = s;
    s->look  = look;
  } else {
    if (count) HybPlanStatsSet(host.stats, &mm->stats);
    if (count) mm->counted = (PetscBool)(host.stats[0] != 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalRunAll(HybSpGEMM *mm, Diagonal *s, const HybCSR *A, const HybCSR *B, bool columns, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  DiagonalArgs   x    = s->args;
  PetscCount     grid = HybBlocks(A->m, x.rows);

  PetscFunctionBegin;
  x.m       = A->m;
  x.mb      = B->m;
  x.annz    = A->nnz;
  x.bnnz    = B->nnz;
  x.ai      = A->i;
  x.bi      = B->i;
  x.ci      = C->i;
  x.aa      = A->a;
  x.ba      = B->a;
  x.cj      = columns ? C->j : NULL;
  x.ca      = C->a;
  x.worda   = s->worda;
  x.wordb   = s->wordb;
  x.lead[0] = (int)(((uintptr_t)A->a & 15) / sizeof(HybScalar));
  x.lead[1] = (int)(((uintptr_t)B->a & 15) / sizeof(HybScalar));
  PetscCall(HybDispatch(s->wide != 0, HybFlags(), (int)s->threads, HybCases<256, 512>(), [&](auto WIDE, auto THREADS) {
    using WORD = std::conditional_t<WIDE, unsigned long long, unsigned>;
    HYB_LAUNCH((DiagonalKernel<WORD, THREADS>), grid, THREADS, s->bytes, exec->stream, x);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the words of C's rows, the lengths of these, and how many products that takes */
static PetscErrorCode DiagonalCountAll(HybSpGEMM *mm, Diagonal *s, const HybCSR *A, HybCSR *C)
{
  const HybExec   *exec  = &mm->exec;
  DiagonalArgs    *x     = &s->args;
  PetscCount      *found = s->look->found, host[3];
  const PetscCount grid  = HybBlocks(A->m, DIAGONAL_THREADS);
  const size_t     bytes = x->nwords > 1 ? (size_t)x->nwords * DIAGONAL_THREADS * sizeof(unsigned) : 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)A->m * x->nwords, sizeof(unsigned), &x->wordc));
  x->m     = A->m;
  x->worda = s->worda;
  x->wordb = s->wordb;
  x->stats = found;
  PetscCall(HybDispatch(s->wide != 0, HybFlags(), x->nwords <= 1, HybFlags(), [&](auto WIDE, auto ONE) {
    using WORD = std::conditional_t<WIDE, unsigned long long, unsigned>;
    HYB_LAUNCH((DiagonalCounts<WORD, ONE>), grid, DIAGONAL_THREADS, bytes, exec->stream, *x, C->i);
    return PETSC_SUCCESS;
  }));
  PetscCall(HybScanCounts(exec, &mm->work, C->m, C->i, C->i, found + 2, NULL));
  PetscCall(HybSpGEMMFetch(mm, host, found, sizeof(host)));
  x->stats           = NULL;
  mm->stats.products = host[0];
  mm->stats.maxrow   = host[1];
  C->nnz             = host[2];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_DiagonalCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  Diagonal      *s    = (Diagonal *)mm->data; /* NULL: an operand has no entries */

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  if (s) {
    PetscCall(DiagonalCountAll(mm, s, A, C));
    PetscCall(HybCountersSet(&mm->counters, "diagonals", s->ndiagonals));
    PetscCall(HybCountersSet(&mm->counters, "pairs", s->npairs));
    PetscCall(HybCountersSet(&mm->counters, "rows by diagonals", A->m));
  } else
    PetscCall(exec->backend->zero(exec, C->i, ((size_t)C->m + 1) * sizeof(PetscInt)));
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  if (C->nnz) PetscCall(DiagonalRunAll(mm, s, A, B, true, C));
  mm->reads = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_DiagonalCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscFunctionBegin;
  if (C->nnz) PetscCall(DiagonalRunAll(mm, (Diagonal *)mm->data, A, B, false, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_DiagonalCUDA;
const HybSpGEMMMethod        HybSpGEMM_DiagonalCUDA = {
         .name       = "diagonal",
         .applicable = HybSpGEMMApplicable_DiagonalCUDA,
         .symbolic   = HybSpGEMMSymbolic_DiagonalCUDA,
         .numeric    = HybSpGEMMNumeric_DiagonalCUDA,
         .early      = PETSC_TRUE,
         .fits       = HybSpGEMMFits_DiagonalCUDA,
};
