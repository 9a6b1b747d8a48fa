/*
  block.cu: SpGEMM method "block": products of matrices of several unknowns to a point, whose patterns consist of
  whole blocks.

  Idea. Where rows come in groups of bs with the same columns, and columns in groups of bs, for A and for B, then C's
  do too. So what has to be found, C's pattern and the place in it of each product, is found once for bs^3 products:
  blocks are counted, placed and listed, never entries. Values stay where CSR has them, and nothing is converted:
  block (r, k) of A is bs pieces of bs values, a row of blocks of B is bs rows of one length behind each other, and
  the same is true of C.

  A row of blocks of C lies within a span of block columns: those between the first and the last that the rows of B
  have which A names. A bit for each column of the span is set for each pair of blocks; the number of bits below a
  pair's is its place. So there is no table and no sort.

    The first three are blockfind.cu.

    look:      which sizes a sample of rows leaves                     (with the count of products, for who comes next)
    check:     every row against the first of its block row; the blocks' columns
    spans:     for each block row of C: pairs, first column, words of bits; which block row of B each block of A names
    places:    for each block row, groups of lanes of G threads on the rows of B, in windows of as many bits as fit:
                 clear; for each pair: set the bit of its column; count bits before each word
                 for each pair: place[pair] = bits before it
    offsets:   scan of the blocks of each block row, C's rows from it
    sums:      for each block row, its sums in shared memory, all -0:
                 for each block a of A, in order:                                   bs x bs values in registers
                   for each column p of B's block row, a lane each:                 bs values
                     for i, for k:  sum[i][bs place + p % bs] += a[i][k] b[k][p]
                 the sums to C; in a first product the columns too, which come by the same way as the places

  What binds the sums is the pipe to shared memory and the first-level cache. So the sums of two rows of a column stand
  beside each other there: one access has 8 lanes at a time instead of 16, and fewer of them meet in a bank. And blocks
  of A up to 4 x 4, which all lanes of a row read alike, come there some at a time, to be read by two values.

  A product and its sum are rounded apart and the products of an entry are added in A's order, so bits are the host's.

  Bins. Places: rows by words of bits, 16 lanes to 512 threads a row; a span wider than all shared memory is gone
  through in several windows. Sums: rows by bytes of shared memory, 16 lanes to 256 threads a row; rows beyond it are
  added in C itself. Neighbouring bins of few rows are one launch, and launches run side by side: each by itself hardly
  fills the card, and waits for its last rows. Where A's block is too large for registers (6 x 6
  of real values fit), some rows of it are taken at a time.

  Applicable: sizes 2, 3, 4, 5, 6 and 8, the same for A and B, the largest that all rows consist of (an interpolation
  from six unknowns to three is of blocks of three). "auto" asks before the products are counted, from BLOCK_FEWEST
  nonzeros of A on; operands whose numbers of rows, columns or entries no size divides are declined without a look,
  most others by the sample, which is read together with the products' counts and so waits no more than whoever comes
  next would (by itself where rows are long and blocks so likely); where diagonal has looked before, the sample came
  with that, and where it has left sizes diagonal
  declines: by blocks numeric phases take half of its time. Where the caller gives a size (PETSc's block sizes)
  this method is asked before all others and has no sample to wait for; a size that is wrong costs the proof, which
  ends early, and its wait. It declines too where words are more than BLOCK_SPARSE times the pairs (columns far apart
  and without order: they would have to be cleared and counted for nothing), and where places take more than
  BLOCK_OUTGROW times what the operands do, or a quarter of free memory. In no case it takes block rows of C of more
  than 65536 blocks, as far as spans and pairs tell. By name, what cannot be taken is an error.

  A small product is mostly waits and launches: so what stays and what does not is an allocation each, the last block of
  the spans decides whether "auto" goes on, and pairs are scanned, and C's rows, by the launches that sort rows into
  bins.

  Memory kept: 2 bytes a pair of blocks, 4 + 4 a block of A, 8 + 4 a block row. Synchronisations of a first product:
  sample (none of a given size), check, count of C. Complexity: a pass over both patterns; two passes over the pairs of
  blocks, 1/bs^3 of the products; the sums load and store shared memory once for each bs products, and read each value
  of B from cache once for bs of them.
*/
#include "blockfind.cuh"
#include "../../device/hybgroup.cuh"
#include <cstddef>

#define BLOCK_FEWEST 16384
/* bytes of shared memory that kernels have beside the dynamic ones, and some more */
#define BLOCK_STATIC 1024
/* rows that are launched with those of the next bin: about as many as the card holds warps */
#define BLOCK_FEW  8192
#define BLOCK_WORD (sizeof(unsigned) + sizeof(unsigned short)) /* bytes a word: bits, and how many are before them */

static const size_t BlockSumBytes[BLOCK_SUMS - 1] = {0, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 73728, 110592, 163840, 229376};
#define BLOCK_BYTES_HALF 6144  /* up to so many, 16 lanes may take a row */
#define BLOCK_BYTES_WARP 12288 /* a warp */
#define BLOCK_BYTES_128  49152

struct BlockPlacesArgs {
  BlockPattern      x;
  const PetscInt   *order, *low, *words;
  const PetscCount *pairptr;
  const unsigned   *off;
  unsigned short   *place;
  PetscInt         *count;
  PetscInt          room; /* words that a group has */
  int               log;  /* of the lanes across a row of B */
};

/* G threads a block row */
template <int G>
static __global__ void __launch_bounds__(HybGroup<G>::THREADS) BlockPlaces(BlockPlacesArgs y, PetscInt begin, PetscInt end)
{
  using Group = HybGroup<G>;
  HYB_DYNAMIC_SHARED(unsigned, shared);
  HYB_SHARED(int, scratch, HYB_WARP);
  unsigned *const       bits   = shared + (size_t)Group::index() * y.room;
  unsigned short *const before = (unsigned short *)(shared + (size_t)Group::GROUPS * y.room) + (size_t)Group::index() * y.room;
  const int             rank = Group::rank(), lanes = 1 << y.log, lane = rank & (lanes - 1);
  const PetscCount      at    = begin + (PetscCount)blockIdx.x * Group::GROUPS + Group::index();
  int                   found = 0;

  if (at >= end) return;
  const PetscInt        r = y.order[at], first = y.x.aptr[r], n = y.x.aptr[r + 1] - first, words = y.words[r];
  unsigned short *const place = y.place + y.pairptr[r];

  for (PetscInt w0 = 0; w0 < words; w0 += y.room) {
    const PetscInt nwords = HybMin()(words - w0, y.room), low = y.low[r] + 32 * w0;
    const unsigned width = 32 * (unsigned)nwords;

    for (PetscInt w = rank; w < nwords; w += G) bits[w] = 0;
    Group::sync();
    for (PetscInt k = rank >> y.log; k < n; k += G >> y.log) {
      const PetscInt c = y.x.acol[first + k], from = y.x.bptr[c], len = y.x.bptr[c + 1] - from;

      for (PetscInt l = lane; l < len; l += lanes) {
        const PetscInt q = y.x.bcol[from + l] - low;

        if (q >= 0 && q < (PetscInt)width) HybAtomicOr(&bits[q >> 5], 1u << (q & 31));
      }
    }
    Group::sync();
    for (PetscInt w = 0; w < nwords; w += G) {
      const int here = w + rank < nwords ? __popc(bits[w + rank]) : 0;
      int       all;
      const int sum = found + Group::exclusiveSum(here, scratch, &all);

      if (w + rank < nwords) before[w + rank] = (unsigned short)sum;
      found += all;
    }
    Group::sync();
    for (PetscInt k = rank >> y.log; k < n; k += G >> y.log) {
      const PetscInt        c = y.x.acol[first + k], from = y.x.bptr[c], len = y.x.bptr[c + 1] - from;
      unsigned short *const to = place + y.off[first + k];

      for (PetscInt l = lane; l < len; l += lanes) {
        const PetscInt q = y.x.bcol[from + l] - low;

        if (q >= 0 && q < (PetscInt)width) to[l] = (unsigned short)(before[q >> 5] + __popc(bits[q >> 5] & ((1u << (q & 31)) - 1)));
      }
    }
    Group::sync();
  }
  if (rank == 0) y.count[r] = found;
}

struct BlockSumsArgs {
  const PetscInt       *order, *ai, *ci, *from, *bcol;
  const PetscCount     *pairptr;
  const unsigned       *off;
  const unsigned short *place;
  const HybScalar      *aa, *ba;
  PetscInt             *cj;   /* NULL: the columns are there */
  HybScalar            *ca;   /* NULL: columns only */
  PetscInt              room; /* blocks that a group has */
};

/* What registers hold at a time: rows of A's block, and columns of B's block row for each lane. Of several warps a row
   each takes one: they wait for each other anyway, and with fewer registers more of them are there. Indices of 64 bits
   leave room for two. */
template <int BS, int G>
struct BlockSlab {
  static constexpr int rows    = (int)(36 * sizeof(double) / (BS * sizeof(HybScalar)));
  static constexpr int columns = (int)(10 * sizeof(double) / (BS * sizeof(HybScalar)));
  static constexpr int most    = G > HYB_WARP ? 1 : sizeof(PetscInt) > 4 ? 2
                                                                         : 3;
  static constexpr int ROWS    = rows < 1 ? 1 : rows < BS ? rows
                                                          : BS;
  static constexpr int BATCH   = columns < 1 ? 1 : columns < most ? columns
                                                                  : most;
};

/* How sums in shared memory lie: those of two rows of a column beside each other, to be loaded and stored at once, so
   that fewer lanes at a time meet in a bank; the last row of an odd number is alone. */
template <int ROWS, bool SHARED>
struct BlockPairs {
  static constexpr int  WIDTH = SHARED && sizeof(HybScalar) <= 8 ? 2 : 1;
  static constexpr bool paired(int i)
  {
    return WIDTH > 1 && (i | 1) < ROWS;
  }
};

/* Small blocks of A are brought to shared memory some at a time, where two values are one load and wait for nothing;
   SIZE: scalars that one takes there */
template <int BS, bool SHARED>
struct BlockStage {
  static constexpr int AT_ONCE = !SHARED || sizeof(HybScalar) > 8 || BS *BS > 18 ? 0 : BS == 2 ? 16
                                                                                     : BS == 3 ? 8
                                                                                               : 4;
  static constexpr int SIZE    = (BS * BS + 1) / 2 * 2;
  static constexpr int ALL     = AT_ONCE * SIZE; /* of a group */
};

/* sum[i] += the rows i of A's block (alen apart, or staged) times len columns of B's block row, blen apart; clen: the
   sums' rows */
template <int BS, int G, bool SHARED>
static __device__ __forceinline__ void BlockMultiply(const HybScalar *__restrict__ a, PetscInt alen, const HybScalar *__restrict__ b, int blen, const unsigned short *__restrict__ place, HybScalar *sum, PetscInt clen)
{
  constexpr int  ROWS = BlockSlab<BS, G>::ROWS, BATCH = BlockSlab<BS, G>::BATCH;
  constexpr bool STAGED = BlockStage<BS, SHARED>::AT_ONCE > 0;
  using Pairs           = BlockPairs<BS, SHARED>;
  constexpr int STEP    = Pairs::WIDTH;
  static_assert(ROWS == BS || ROWS % STEP == 0, "a pair of rows is within a slab");

  /* a warp behind the last column needs nothing of A */
  if (G > HYB_WARP && HybGroup<G>::rank() / HYB_WARP * HYB_WARP >= blen) return;

#pragma unroll
  for (int i0 = 0; i0 < BS; i0 += ROWS) {
    HybScalar av[ROWS][BS];

    if constexpr (STAGED) {
#pragma unroll
      for (int e = 0; e + 1 < BS * BS; e += 2) {
        const HybVec<HybScalar, 2> two = HybLoadVec<2>(a + e);

        av[e / BS][e % BS]             = two.v[0];
        av[(e + 1) / BS][(e + 1) % BS] = two.v[1];
      }
      if (BS * BS % 2) av[ROWS - 1][BS - 1] = a[BS * BS - 1];
    } else {
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int k = 0; k < BS; k++)
          if (i0 + i < BS) av[i][k] = a[(i0 + i) * alen + k];
      }
    }
    for (int p0 = HybGroup<G>::rank(); p0 < blen; p0 += BATCH * G) {
      HybScalar bv[BATCH][BS];
      int       at[BATCH];

      /* all loads are on their way before the first sum is added to */
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const int  p = p0 + u * G, q = p / BS;
        const bool in = p < blen;

        at[u] = in ? (int)place[q] * BS + (p - q * BS) : 0;
#pragma unroll
        for (int k = 0; k < BS; k++) bv[u][k] = in ? b[k * blen + p] : HybScalar();
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        if (p0 + u * G < blen) {
#pragma unroll
          for (int i = 0; i < ROWS; i += STEP) {
            if (i0 + i < BS) {
              if (Pairs::paired(i0 + i)) {
                HybScalar *const        to = sum + (i0 + i) * clen + STEP * at[u];
                HybVec<HybScalar, STEP> s  = HybLoadVec<STEP>(to);

#pragma unroll
                for (int k = 0; k < BS; k++) {
#pragma unroll
                  for (int q = 0; q < STEP; q++) s.v[q] = HybMulAdd(av[i + q < ROWS ? i + q : i][k], bv[u][k], s.v[q]);
                }
                HybStoreVec(to, s);
              } else {
                HybScalar *const to = sum + (i0 + i) * clen + at[u];
                HybScalar        s  = *to;

#pragma unroll
                for (int k = 0; k < BS; k++) s = HybMulAdd(av[i][k], bv[u][k], s);
                *to = s;
              }
            }
          }
        }
      }
    }
  }
}

/* so that each group's begin where pairs may */
static __host__ __device__ __forceinline__ size_t BlockSumsRoom(size_t sums)
{
  return (sums + 1) / 2 * 2;
}

/* Blocks of a multiprocessor. One at least: else the compiler spills some bytes to have one more of them. With blocks
   of 3 five of a warp a row fit there, 94 registers a thread and 40 KiB each, and six of four warps, with 80: without a
   word it takes 124 and 106. Indices of 64 bits need some registers more. */
template <int BS, int G>
static constexpr int BlockResident()
{
  return BS != 3 || sizeof(HybScalar) > 8 ? 1 : G > HYB_WARP         ? 768 / G
                                              : sizeof(PetscInt) > 4 ? 4
                                                                     : 5;
}

/* G threads a block row; SHARED: its sums fit there */
template <int BS, int G, bool SHARED>
static __global__ void __launch_bounds__(HybGroup<G>::THREADS, BlockResident<BS, G>()) BlockSums(BlockSumsArgs x, PetscInt begin, PetscInt end)
{
  using Group         = HybGroup<G>;
  using Stage         = BlockStage<BS, SHARED>;
  constexpr int CHUNK = G < HYB_WARP ? G : HYB_WARP;
  HYB_DYNAMIC_SHARED(HybScalar, shared);
  const int        rank = Group::rank(), lane = HybLane() & (CHUNK - 1);
  const unsigned   mask = HybSubwarpMask<CHUNK>();
  const PetscCount at   = begin + (PetscCount)blockIdx.x * Group::GROUPS + Group::index();

  if (at >= end) return;
  const PetscCount            r      = x.order[at];
  const PetscInt              afirst = x.ai[r * BS], alen = x.ai[r * BS + 1] - afirst, n = alen / BS;
  const PetscInt              cfirst = x.ci[r * BS], clen = x.ci[r * BS + 1] - cfirst, first = afirst / (BS * BS);
  const unsigned              pairs  = (unsigned)(x.pairptr[r + 1] - x.pairptr[r]);
  const unsigned short *const place  = x.place + x.pairptr[r];
  const size_t                room   = BlockSumsRoom((size_t)x.room * (BS * BS));
  HybScalar *const            sum    = SHARED ? shared + Group::index() * room : x.ca + cfirst;
  HybScalar *const            stage  = shared + (SHARED ? Group::GROUPS * room + Group::index() * Stage::ALL : 0);
  PetscInt *const             column = (PetscInt *)(shared + (SHARED ? Group::GROUPS * (room + Stage::ALL) : 0)) + (size_t)Group::index() * x.room;

  if (x.ca)
    for (PetscInt e = rank; e < clen * BS; e += G) sum[e] = HybNegativeZero();
  Group::sync();
  for (PetscInt k0 = 0; k0 < n; k0 += CHUNK) {
    const int chunk = (int)HybMin()(n - k0, (PetscInt)CHUNK);
    PetscInt  from  = 0;
    unsigned  off   = 0;
    int       len   = 0;

    if (lane < chunk) {
      const PetscInt e = first + k0 + lane;

      from = x.from[e];
      off  = x.off[e];
      len  = (int)((k0 + lane + 1 < n ? x.off[e + 1] : pairs) - off);
    }
    for (int q = 0; q < chunk; q++) {
      const PetscInt              f  = HybShfl(mask, from, q, CHUNK);
      const unsigned short *const to = place + HybShfl(mask, off, q, CHUNK);
      const int                   l  = HybShfl(mask, len, q, CHUNK);

      if constexpr (Stage::AT_ONCE > 0) {
        if (x.ca && q % Stage::AT_ONCE == 0) {
          constexpr int  WIDE = Stage::AT_ONCE * BS;
          const PetscInt here = HybMin()(n - k0 - q, (PetscInt)Stage::AT_ONCE) * BS;

#pragma unroll
          for (int e0 = 0; e0 < BS * WIDE; e0 += G) {
            const int e = e0 + rank, i = e / WIDE, c = e - i * WIDE;

            if (i < BS && c < here) stage[c / BS * Stage::SIZE + i * BS + c % BS] = x.aa[afirst + i * alen + (k0 + q) * BS + c];
          }
          Group::sync();
        }
        if (x.ca) BlockMultiply<BS, G, SHARED>(stage + q % Stage::AT_ONCE * Stage::SIZE, BS, x.ba + f, l * BS, to, sum, clen);
      } else {
        if (x.ca) BlockMultiply<BS, G, SHARED>(x.aa + afirst + (k0 + q) * BS, alen, x.ba + f, l * BS, to, sum, clen);
      }
      if (x.cj) {
        for (int p = rank; p < l; p += G) {
          const PetscInt c = x.bcol[f / (BS * BS) + p];

          if (SHARED)
            column[to[p]] = c;
          else
            for (int i = 0; i < BS * BS; i++) x.cj[cfirst + (i / BS) * clen + (PetscInt)to[p] * BS + i % BS] = c * BS + i % BS;
        }
      }
      Group::sync();
    }
  }
  if (SHARED && x.ca) {
    using Pairs = BlockPairs<BS, SHARED>;

#pragma unroll 1
    for (int i = 0; i < BS; i += Pairs::WIDTH) {
      HybScalar *const to = x.ca + cfirst + i * clen;

      for (PetscInt e = rank; e < clen; e += G) {
        if (Pairs::paired(i)) {
          const HybVec<HybScalar, Pairs::WIDTH> s = HybLoadVec<Pairs::WIDTH>(sum + i * clen + Pairs::WIDTH * e);

#pragma unroll
          for (int q = 0; q < Pairs::WIDTH; q++) to[q * clen + e] = s.v[q];
        } else
          to[e] = sum[i * clen + e];
      }
    }
  }
  if (SHARED && x.cj)
    for (int i = 0; i < BS; i++)
      for (PetscInt e = rank; e < clen; e += G) x.cj[cfirst + i * clen + e] = column[e / BS] * BS + e % BS;
}

static PetscErrorCode HybSpGEMMApplicable_BlockCUDA(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = (PetscBool)(HybBlockCandidates(mm, A, B) && A->nnz >= BLOCK_FEWEST && B->nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two synchronisations after this one's sample, or after somebody else's, or where the size is given. By name a given
   size that is wrong is no error, where another one is right. */
static PetscErrorCode HybSpGEMMFits_BlockCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const bool    named   = strcmp(mm->name, "auto") != 0;
  const int     given   = named && mm->blocksizes >= 0 ? (int)mm->blocksizes : 0;
  PetscCount    longest = 0; /* pairs of a row that is too long, of a size that is right */
  BlockProduct *s;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero((void *)s, sizeof(*s)));
  for (int turn = 0; turn < (given ? 2 : 1) && !s->bs; turn++) {
    if (turn) mm->blocksizes = -1;
    const int candidates = HybBlockCandidates(mm, A, B) & (turn ? ~given : ~0);

    if (!candidates) continue;
    PetscCall(HybBlockForget(mm, s));
    PetscCall(PetscMemzero((void *)s, sizeof(*s)));
    PetscCall(HybBlockFind(mm, A, B, named, candidates, s));
    if (s->host.declined & BLOCK_LONG) longest = s->host.pairs[1];
  }
  PetscCheck(!named || s->bs || !longest, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpGEMM method block cannot run: a block row of the product of a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix may have more than %d blocks, or %" PetscCount_FMT " pairs of them; choose another method", A->m, A->n, B->m, B->n, BLOCK_MOST, longest);
  PetscCheck(!named || s->bs, PETSC_COMM_SELF, PETSC_ERR_SUP, "The SpGEMM method block cannot run: the patterns of a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix of %" PetscCount_FMT " and %" PetscCount_FMT " nonzeros do not consist of whole blocks of one size, 2, 3, 4, 5, 6 or 8; choose another method", A->m, A->n, B->m, B->n, A->nnz, B->nnz);
  if (s->bs) {
    mm->stats.products = s->host.pairs[0] * s->bs * s->bs * s->bs;
    mm->stats.maxrow   = s->host.pairs[1] * s->bs * s->bs;
    mm->data           = s;
    *fits              = PETSC_TRUE;
  } else
    PetscCall(HybBlockForget(mm, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* threads of a row of so many words; mean: blocks of a block row of B */
static int BlockPlacesLanes(PetscCount words, PetscCount mean)
{
  return words <= 64 && mean <= 8 ? 16 : words <= 512  ? 32
                                       : words <= 8192 ? 128
                                                       : 512;
}

/* places of all pairs of blocks, and the blocks of each block row of C */
static PetscErrorCode BlockPlacesAll(HybSpGEMM *mm, PetscCount bblocks, PetscCount bkb, const BlockProduct *s)
{
  const PetscInt  *ptr  = s->host.spanptr;
  const PetscCount mean = bkb ? bblocks / bkb : 0;
  size_t           limit;
  BlockPlacesArgs  y;
  int              log = 0;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, NULL));
  while (log < 5 && (PetscCount)2 << log <= mean + mean / 2) log++;
  y.x       = s->pattern;
  y.order   = s->spanorder;
  y.low     = s->low;
  y.words   = s->words;
  y.pairptr = s->pairptr;
  y.off     = s->off;
  y.place   = s->place;
  y.count   = s->count;
  for (int b = 0, next; b < BLOCK_SPANS; b = next) {
    PetscCount most, rows;
    int        lanes;

    next = b + 1;
    if (ptr[next] == ptr[b]) continue;
    /* few rows go with those of the next bin, where as many threads take each; none with those that need windows */
    while (ptr[next] - ptr[b] < BLOCK_FEW && next < BLOCK_SPANS - 1 && BlockPlacesLanes(BlockSpanLimit[next], mean) == BlockPlacesLanes(BlockSpanLimit[next - 1], mean)) next++;
    rows   = ptr[next] - ptr[b];
    most   = PetscMin(next < BLOCK_SPANS ? BlockSpanLimit[next - 1] : s->host.words[1], s->host.words[1]);
    y.room = (PetscInt)PetscMax(1, PetscMin(most, (PetscCount)((limit - BLOCK_STATIC) / BLOCK_WORD / 2 * 2)));
    lanes  = BlockPlacesLanes(y.room, mean);
    PetscCall(HybDispatch(lanes, HybCases<16, 32, 128, 512>(), [&](auto G) {
      y.log = PetscMin(log, HybLog2(G));
      HYB_LAUNCH((BlockPlaces<G>), HybBlocks(rows, HybGroup<G>::GROUPS), HybGroup<G>::THREADS,
                 (size_t)HybGroup<G>::GROUPS * y.room * BLOCK_WORD, mm->exec.stream, y, ptr[b], ptr[next]);
      return PETSC_SUCCESS;
    }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* threads of a row of so many bytes of sums and columns; lanes: of the smallest */
static int BlockLanes(size_t bytes, int lanes)
{
  return bytes <= BLOCK_BYTES_HALF ? lanes : bytes <= BLOCK_BYTES_WARP ? 32
                                           : bytes <= BLOCK_BYTES_128  ? 128
                                                                       : 256;
}

/* the sums of rows of bins b to next - 1; limit: bytes of a row's sums and columns */
template <int BS>
static PetscErrorCode BlockSumsBins(const HybExec *exec, const BlockProduct *s, int b, int next, int lanes, size_t limit, BlockSumsArgs x)
{
  const size_t   block = BS * BS * sizeof(HybScalar) + sizeof(PetscInt), stage = BlockStage<BS, true>::ALL * sizeof(HybScalar);
  const PetscInt first = s->sumptr[b];
  size_t         bytes;

  PetscFunctionBegin;
  x.room = (PetscInt)PetscMin(next < BLOCK_SUMS ? (PetscCount)(BlockSumBytes[next - 1] / block) : s->longest, s->longest);
  bytes  = BlockSumsRoom((size_t)x.room * (BS * BS)) * sizeof(HybScalar) + (size_t)x.room * sizeof(PetscInt);
  if (bytes > limit) {
    HYB_LAUNCH((BlockSums<BS, 256, false>), s->sumptr[next] - first, 256, 0, exec->stream, x, first, s->sumptr[next]);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybDispatch(BlockLanes(bytes, lanes), HybCases<16, 32, 128, 256>(), [&](auto G) {
    HYB_LAUNCH((BlockSums<BS, G, true>), HybBlocks(s->sumptr[next] - first, HybGroup<G>::GROUPS), HybGroup<G>::THREADS,
               HybGroup<G>::GROUPS * (bytes + stage), exec->stream, x, first, s->sumptr[next]);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of different bins side by side, long ones first */
template <int BS>
static PetscErrorCode BlockSumsAll(HybSpGEMM *mm, const BlockProduct *s, const BlockSumsArgs *x, int lanes)
{
  int            from[BLOCK_SUMS], to[BLOCK_SUMS], n = 0, sides;
  size_t         limit;
  HybExec        side[HYB_SIDE_STREAMS];
  PetscErrorCode ierr, first = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, NULL));
  limit -= BLOCK_STATIC + (BlockStage<BS, true>::ALL + 1) * sizeof(HybScalar); /* one: sums are rounded up */
  for (int b = 1, next; b < BLOCK_SUMS; b = next) {                            /* the first is of empty rows */
    next = b + 1;
    if (s->sumptr[next] == s->sumptr[b]) continue;
    /* few rows go with those of the next bin, where as many threads take each */
    while (s->sumptr[next] - s->sumptr[b] < BLOCK_FEW) {
      int t = next;

      while (t < BLOCK_SUMS - 1 && s->sumptr[t + 1] == s->sumptr[t]) t++;
      if (t >= BLOCK_SUMS - 1 || BlockSumBytes[t] > limit || BlockLanes(BlockSumBytes[t], lanes) != BlockLanes(BlockSumBytes[next - 1], lanes)) break;
      next = t + 1;
    }
    from[n] = b;
    to[n++] = next;
  }
  sides = PetscMin(PetscMax(n - 1, 0), HYB_SIDE_STREAMS);
  PetscCall(HybDeviceFork(&mm->exec, sides, side));
  for (int k = n - 1; k >= 0; k--) {
    const int turn = (n - 1 - k) % (sides + 1);

    ierr = BlockSumsBins<BS>(turn < sides ? &side[turn] : &mm->exec, s, from[k], to[k], lanes, limit, *x);
    if (!first) first = ierr;
  }
  ierr = HybDeviceJoin(&mm->exec, sides);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockRun(HybSpGEMM *mm, const BlockProduct *s, const HybCSR *A, const HybCSR *B, bool columns, HybCSR *C)
{
  const int     lanes = B->m && B->nnz / B->m <= 48 ? 16 : 32; /* as few as leave half of them idle at most */
  BlockSumsArgs x;

  PetscFunctionBegin;
  x.order   = s->order;
  x.ai      = A->i;
  x.ci      = C->i;
  x.from    = s->from;
  x.bcol    = columns ? s->pattern.bcol : NULL;
  x.pairptr = s->pairptr;
  x.off     = s->off;
  x.place   = s->place;
  x.aa      = A->a;
  x.ba      = B->a;
  x.cj      = columns ? C->j : NULL;
  x.ca      = C->a;
  x.room    = 0;
  PetscCall(HybDispatch(s->bs, RowBlocksSizes(), [&](auto BS) { return BlockSumsAll<BS>(mm, s, &x, lanes); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_BlockCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  BlockProduct  *s    = (BlockProduct *)mm->data;
  const PetscInt mb = A->m / s->bs, bs2 = s->bs * s->bs;
  const size_t   block = (size_t)bs2 * sizeof(HybScalar) + sizeof(PetscInt);
  PetscCount     limits[BLOCK_SUMS - 1];
  HybPlanScan    scan = {s->count, s->sums, NULL, NULL, s->look->blocks, NULL, s->bs};

  PetscFunctionBegin;
  PetscCall(HybSpGEMMCheckCount(exec, A, B, s->host.lower * bs2, PETSC_TRUE));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, s->host.pairs[0], sizeof(*s->place), &s->place));
  PetscCall(BlockPlacesAll(mm, B->nnz / bs2, B->m / s->bs, s));
  for (int b = 0; b < BLOCK_SUMS - 1; b++) limits[b] = (PetscCount)(BlockSumBytes[b] / block);
  /* while the device counts */
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  scan.offsets = C->i;
  PetscCall(HybPlanBinsAnyOrderInt(exec, mb, s->count, BLOCK_SUMS, limits, s->look->sumcount, s->order, s->look->sumptr, &scan));
  if (!mb) PetscCall(exec->backend->zero(exec, C->i, ((size_t)C->m + 1) * sizeof(PetscInt)));
  PetscCall(exec->backend->copy(exec, s->host.blocks, s->look->blocks, offsetof(BlockLook, spancount) - offsetof(BlockLook, blocks), HYB_COPY_DEVICE_TO_HOST));
  s->longest = s->host.blocks[1];
  C->nnz     = s->host.blocks[0] * bs2;
  PetscCall(HybBlockForget(mm, s));
  PetscCall(PetscMemcpy(s->sumptr, s->host.sumptr, sizeof(s->sumptr)));
  PetscCall(HybCountersSet(&mm->counters, "block size", s->bs));
  PetscCall(HybCountersSet(&mm->counters, "pairs of blocks", s->host.pairs[0]));
  PetscCall(HybCountersSet(&mm->counters, "rows by blocks", A->m));
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  if (C->nnz) PetscCall(BlockRun(mm, s, A, B, true, C));
  mm->reads = 0;
  s->room   = NULL; /* workspace of this phase */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_BlockCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscFunctionBegin;
  if (C->nnz) PetscCall(BlockRun(mm, (const BlockProduct *)mm->data, A, B, false, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_BlockCUDA;
const HybSpGEMMMethod        HybSpGEMM_BlockCUDA = {
         .name       = "block",
         .applicable = HybSpGEMMApplicable_BlockCUDA,
         .symbolic   = HybSpGEMMSymbolic_BlockCUDA,
         .numeric    = HybSpGEMMNumeric_BlockCUDA,
         .early      = PETSC_TRUE,
         .blocks     = PETSC_TRUE,
         .fits       = HybSpGEMMFits_BlockCUDA,
};
