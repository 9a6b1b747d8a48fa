/*
  maskrows.cu: values of C = A*B for a pattern that stands, where rows of C are short, by bit masks and sums in
  registers.

  Idea. A group of N lanes owns a row of C, a lane the entries lane, lane+N, ... of it, whose sums it keeps in
  registers. The rows of B that the row of A names are taken one after the other. What a lane must know of such a row is
  whether it has an entry for the lane's column, and which one; both follow from a mask with a bit for each entry of C's
  row:

      there      bit e of the mask
      which      where the row of B begins + the number of bits below e

  so no place is read for any product, nothing is added in memory, and no barrier stands between two rows of B: loads of
  several rows are on their way together, and the only memory traffic besides the operands' values and C's is a mask, a
  column and where its row of B begins for each entry of A. These descriptors come N entries at once, a lane each, the
  next N while the present ones are worked on, and go round by shuffles. A tabled place (hash/places.cu) costs a load,
  and an addition in shared memory a load and a store, for each product.

    symbolic   longest row of C and words of all masks, with its size
    plan       for each entry of A: mask = the columns of its row of B, looked up in C's row by bisection
    numeric    a group for each row of C, rows in their order; 4 N entries of the row at a time, as many of the four
               pieces as the rows of a warp need:
                 for each entry k of A's row: for each piece:
                   b = entry from + bits below; if the bit is there, sum = sum + a(k) * b

  The entry of B is loaded whether the bit is set or not (there it is a neighbour of one that is): loads under
  conditions cost predicates, of which there are seven, and moves, and the compiler let those of a batch wait for each
  other.

  Lanes: N = 4, 8 or 16, the least that takes a mean row of C in three pieces (twelve entries of four lanes);
  -mat_aijhybridgpu_tuning masks_lanes sets another number. Longer rows go round again, 4 N entries further on.

  A may be a transpose whose values nobody has gathered. An entry's column is then its row of the matrix that was
  transposed, and a byte tells which entry of that row it is; of rows of more than 256 entries, a permutation. Columns
  and bytes are loaded a round before the value, and what they point to half a round before: a round more spills
  registers. The numbers that columns and bytes stand for would be loaded at once, but take 3 bytes more an entry.

  Parts. Of a product between two others only some rows' values need be there at once: W = A P by some of its rows, then
  what these give to P^T W, then the next. Which entries of a row of P^T name these rows is told by its first and last
  one, as a rule, else by bisection; sums go on from what C has, in the order that they have anyway. Tried and left: the
  rows of each part in a list, ordered by their first entry, and parts as small as the second-level cache.

  Memory: 2 bytes an entry of A where no row of C has more than 16 entries, 4 up to 32, else 4 ceil(l/32) for each entry
  of A whose row of C has l, at most 128, and 4 a row for where its masks begin; of a transpose a byte an entry
  more. A's columns are read (those of B and C are not: the caller may free his own). No plan where that
  outgrows the operands (a third of them, if it is large: that of the second level of 7-point 200^3 would be half of
  them and a quarter of A, and saves little), takes more than may be taken for it (HybMemorySpare()),
  where rows of A are so long that a single group would take too long for one, or where so few bits of a mask are set
  that testing them costs more than placing products.
  Complexity: as many tests as entries of A times entries of a row of C, over N lanes; an addition a product.

  What limits it is issuing instructions: 14 for a lane and a row of B, and most lanes have no bit there. Figures:
  docs/tried.md, Thresholds.

  Products are added in A's order, starting from -0.0, which leaves the first one as it is: the bits of all other
  methods.

  Reference: Jacobson, Space-efficient static trees and graphs, FOCS 1989 (places by counting bits).
*/
#include "maskrows.cuh"
#include "../device/hybdispatch.cuh"
#include "../structure/rowops.cuh"

#define MASK_THREADS 128
#define MASK_PIECES  4    /* of N entries each, that are summed together */
#define MASK_WORDS   4    /* of a mask at most */
#define MASK_ENTRIES 2048 /* of a row of A at most: a group takes them one after the other */
/* entries of a row of C for each one of a row of B, in the mean, from which masks are too empty */
#define MASK_SPARSE 12
#define MASK_ASK    ((size_t)1 << 22)  /* bytes of the plan from which the card is asked what is free */
#define MASK_LARGE  ((size_t)64 << 20) /* bytes of a plan from which it is to be small beside the operands */

#if defined(PETSC_USE_COMPLEX)
  #define MASK_BATCH 2 /* rows of B on their way together */
#else
  #define MASK_BATCH 4
#endif

struct MaskArgs {
  PetscInt        m;
  const PetscInt *ai, *aj, *bi, *ci;
  const unsigned *masks;
  int             shorts; /* a mask is a short of its own */
  /* where the masks of each row begin: the first words of all its entries, then the next ones; NULL: each has one
     word */
  const PetscInt *first;
  /* of each entry of A: which one it is of the row of aa that begins at ti[column], or where in aa; both NULL: in
     turn */
  const unsigned char *place;
  const PetscInt      *ti, *perm;
  PetscInt             low, high;      /* rows of B that are there */
  int                  inner;          /* not all are */
  PetscInt             bbegin, cbegin; /* entries of B and C that ba and ca begin with */
  PetscInt             last;           /* entry of B, of those that are there */
  const HybScalar     *aa, *ba;
  HybScalar           *ca;
};

/* I: int where that counts all entries of A, B and C, their columns and all words of masks, else PetscInt */

/* an entry of A: 64 bits of its mask, and where the entry of B lies that the first of these counts for */
template <class I>
struct MaskEntry {
  unsigned  lo, hi;
  I         from;
  HybScalar a;
};

/* a row of A, and how its masks lie */
template <class I>
struct MaskRow {
  I    begin, end; /* entries that are taken */
  I    first;      /* word of the first one */
  I    stride;     /* from word to word of a mask */
  int  words;      /* of a mask */
  bool more;       /* sums go on from what C has */
};

/* what is asked for rounds before MaskLoad() needs it: no load then waits for another. First the entry's column, and
   its place or where its value is; then, FAR, where its row of B begins, and where its value is. */
template <class I>
struct MaskAhead {
  I where, value;
};

/* FAR: masks of several words, values that do not come in turn, or parts of B */
template <bool FAR, class I>
static __device__ __forceinline__ MaskAhead<I> MaskLook(const MaskArgs &x, const MaskRow<I> &row, I k)
{
  MaskAhead<I> ahead;

  ahead.where = k < row.end ? (I)x.aj[k] : 0;
  ahead.value = !FAR || k >= row.end ? k : x.place ? (I)x.place[k]
                                         : x.perm  ? (I)x.perm[k]
                                                   : k;
  return ahead;
}

template <class I>
static __device__ __forceinline__ MaskAhead<I> MaskReach(const MaskArgs &x, const MaskRow<I> &row, I k, MaskAhead<I> ahead)
{
  if (k < row.end) {
    if (x.place) ahead.value += (I)x.ti[ahead.where];
    ahead.where = (I)(x.bi[ahead.where] - x.bbegin);
  }
  return ahead;
}

/* of the pieces from entry first of C's row on; none of its bits is set where there is no such entry of A */
template <int N, int R, bool FAR, class I>
static __device__ __forceinline__ MaskEntry<I> MaskLoad(const MaskArgs &x, const MaskRow<I> &row, I k, int first, const MaskAhead<I> &ahead)
{
  MaskEntry<I> e;

  e.lo = e.hi = 0;
  e.from      = 0;
  e.a         = HybScalar();
  if (k < row.end) {
    e.from = FAR ? ahead.where : (I)x.bi[ahead.where];
    e.a    = x.aa[ahead.value];
    if (x.shorts)
      e.lo = ((const unsigned short *)x.masks)[k];
    else if (FAR) {
      const unsigned *q    = x.masks + row.first + (k - row.begin);
      int             left = row.words;

      if (first) {
#pragma unroll 1
        for (int w = first / 32; w > 0 && left > 0; w--, left--, q += row.stride) e.from += __popc(*q);
      }
      if (left > 0) e.lo = *q;
      if (N * R > 32 && left > 1) e.hi = q[row.stride];
    } else
      e.lo = x.masks[k];
    if (N * MASK_PIECES < 32 && first) {
      const int shift = first & 31;

      e.from += __popc(e.lo & ((1u << shift) - 1u));
      e.lo >>= shift;
    }
  }
  return e;
}

/* R pieces of the rows of a warp, from entry first of each; entries: of the longest row of A; BATCH rows of B are on
   their way together */
template <int N, int R, int BATCH, bool FAR, class I>
static __device__ __forceinline__ void MaskSums(const MaskArgs &x, const MaskRow<I> &row, int entries, int first, int len, HybScalar *c)
{
  const int    lane = HybLane() & (N - 1);
  const I      mine = row.begin + lane, last = (I)x.last;
  HybScalar    sum[R];
  MaskAhead<I> now0 = MaskLook<FAR>(x, row, mine), ahead = MaskLook<FAR, I>(x, row, mine + N);

  if (FAR) {
    now0  = MaskReach(x, row, mine, now0);
    ahead = MaskReach<I>(x, row, mine + N, ahead);
  }
  MaskEntry<I> next = MaskLoad<N, R, FAR>(x, row, mine, first, now0);

#pragma unroll
  for (int r = 0; r < R; r++) sum[r] = FAR && row.more && first + r * N + lane < len ? c[first + r * N + lane] : HybNegativeZero();
  for (int k0 = 0; k0 < entries; k0 += N) {
    const MaskEntry<I> now = next;

    if (k0 + N < entries) {
      next  = MaskLoad<N, R, FAR, I>(x, row, mine + k0 + N, first, ahead);
      ahead = MaskLook<FAR, I>(x, row, mine + k0 + 2 * N);
    }
#pragma unroll 1
    for (int j = 0; j < N && k0 + j < entries; j += BATCH) {
      unsigned  word[BATCH][2];
      HybScalar a[BATCH], b[BATCH][R];

#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        I from[2];

        from[0]    = HybShfl(HYB_FULL_MASK, now.from, j + u, N);
        word[u][0] = HybShfl(HYB_FULL_MASK, now.lo, j + u, N);
        word[u][1] = N * R > 32 ? HybShfl(HYB_FULL_MASK, now.hi, j + u, N) : 0;
        from[1]    = N * R > 32 ? from[0] + __popc(word[u][0]) : 0;
        a[u]       = HybShfl(HYB_FULL_MASK, now.a, j + u, N);
#pragma unroll
        for (int r = 0; r < R; r++) {
          const int      w     = r * N / 32;
          const unsigned below = (1u << (r * N % 32 + lane)) - 1u;

          /* whether the bit is set or not: loads without conditions are on their way together */
          b[u][r] = x.ba[HybMin()(from[w] + (I)__popc(word[u][w] & below), last)];
        }
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
          if (word[u][r * N / 32] & (1u << (r * N % 32 + lane))) sum[r] = HybMulAdd(a[u], b[u][r], sum[r]);
        }
      }
      /* a row ends before the middle only where no round follows */
      if (FAR && j == (N / BATCH - 1) / 2 * BATCH && k0 + N < entries) ahead = MaskReach<I>(x, row, mine + k0 + 2 * N, ahead);
    }
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    if (first + r * N + lane < len) c[first + r * N + lane] = sum[r];
  }
}

template <int N, bool FAR, class I>
__global__ void __launch_bounds__(MASK_THREADS, sizeof(HybScalar) > 8 ? 3 : N > 8 || (FAR && N > 4) ? 5
                                                                                                    : 6) MaskKernel(MaskArgs x)
{
  const PetscCount r      = ((PetscCount)blockIdx.x * MASK_THREADS + threadIdx.x) / N;
  MaskRow<I>       row    = {0, 0, 0, 0, 0, false};
  PetscInt         cbegin = 0;
  int              len    = 0;

  if (r < x.m) {
    cbegin = x.ci[r];
    len    = (int)(x.ci[r + 1] - cbegin);
    row    = {(I)x.ai[r], (I)x.ai[r + 1], (I)(FAR && x.first ? x.first[r] : x.ai[r]), (I)(x.ai[r + 1] - x.ai[r]), (len + 31) / 32, false};
    cbegin -= x.cbegin;
    if (FAR && x.inner && row.begin < row.end) {
      const I begin = x.aj[row.begin] >= x.low ? row.begin : (I)RowLowerBound(x.aj, row.begin, row.end, x.low);

      if (x.aj[row.end - 1] >= x.high) row.end = (I)RowLowerBound(x.aj, begin, row.end, x.high);
      row.more = begin > row.begin;
      row.first += begin - row.begin;
      row.begin = begin;
      if (begin == row.end) len = 0;
    }
  }
  const int entries = HybSubwarpMax<HYB_WARP>((int)(row.end - row.begin)), longest = HybSubwarpMax<HYB_WARP>(len);

  for (int first = 0; first < longest; first += MASK_PIECES * N) {
    const int left = longest - first;

    if (left > 3 * N)
      MaskSums<N, 4, 2, FAR, I>(x, row, entries, first, len, x.ca + cbegin);
    else if (left > 2 * N)
      MaskSums<N, 3, MASK_BATCH, FAR, I>(x, row, entries, first, len, x.ca + cbegin);
    else if (left > N)
      MaskSums<N, 2, MASK_BATCH, FAR, I>(x, row, entries, first, len, x.ca + cbegin);
    else
      MaskSums<N, 1, MASK_BATCH, FAR, I>(x, row, entries, first, len, x.ca + cbegin);
  }
}

/* the longest row of C (NULL: it is known), how many words the masks of all entries of A take, the longest row of a
   matrix of n rows (ti NULL: of none), and before which entry of C each share of its rows begins */
__global__ void __launch_bounds__(256) MaskMeasure(PetscInt m, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ ci, PetscInt n, const PetscInt *__restrict__ ti, PetscCount *longest, PetscCount *words, PetscCount *farthest, PetscCount *cut)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  PetscCount most = 0, sum = 0, far = 0;

  for (PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x; r < m; r += (PetscCount)gridDim.x * 256) {
    const PetscCount len = (PetscCount)(ci[r + 1] - ci[r]);

    most = HybMax()(most, len);
    sum += (PetscCount)(ai[r + 1] - ai[r]) * ((len + 31) / 32);
  }
  if (longest) {
    most = HybBlockMax<256>(most, scratch);
    if (threadIdx.x == 0) (void)HybAtomicMax(longest, most);
  }
  for (PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x; ti && r < n; r += (PetscCount)gridDim.x * 256) far = HybMax()(far, (PetscCount)(ti[r + 1] - ti[r]));
  if (ti) {
    far = HybBlockMax<256>(far, scratch);
    if (threadIdx.x == 0) (void)HybAtomicMax(farthest, far);
  }
  sum = HybBlockSum<256>(sum, scratch);
  if (threadIdx.x == 0) (void)HybAtomicAdd(words, sum);
  if (blockIdx.x == 0 && threadIdx.x <= HYB_SPGEMM_PARTS) cut[threadIdx.x] = ci[(PetscCount)m * threadIdx.x / HYB_SPGEMM_PARTS];
}

/* the words of each row's masks */
__global__ void __launch_bounds__(256) MaskWords(PetscInt m, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ ci, PetscInt *__restrict__ words)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r < m) words[r] = (ai[r + 1] - ai[r]) * ((ci[r + 1] - ci[r] + 31) / 32);
}

/* which entry of its row each is of the matrix whose transpose A is */
__global__ void __launch_bounds__(256) MaskPlaces(PetscCount nnz, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ ti, const PetscInt *__restrict__ perm, unsigned char *__restrict__ place)
{
  const PetscCount k = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (k < nnz) place[k] = (unsigned char)(perm[k] - ti[aj[k]]);
}

/* eight lanes a row, an entry of A each; I counts C's entries and columns as well */
template <class I>
__global__ void __launch_bounds__(MASK_THREADS) MaskPlan(MaskArgs x, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, const PetscInt *__restrict__ cj, unsigned *__restrict__ masks)
{
  const PetscCount row = ((PetscCount)blockIdx.x * MASK_THREADS + threadIdx.x) / 8;

  if (row >= x.m) return;
  const I   cbegin = (I)x.ci[row], cend = (I)x.ci[row + 1], abegin = (I)x.ai[row], aend = (I)x.ai[row + 1], stride = aend - abegin;
  const int words = (int)(cend - cbegin + 31) / 32;

  for (I k = abegin + (HybLane() & 7); k < aend; k += 8) {
    const I  r = (I)x.aj[k], end = (I)bi[r + 1];
    I        lo   = cbegin;
    unsigned bits = 0, *to = masks + (x.first ? (I)x.first[row] : abegin) + (k - abegin);
    int      w = 0;

    for (I p = (I)bi[r]; p < end; p++, lo++) {
      const I column = (I)bj[p];
      I       hi     = cend;

      while (lo < hi) {
        const I mid = lo + (hi - lo) / 2;

        if ((I)cj[mid] < column)
          lo = mid + 1;
        else
          hi = mid;
      }
      for (; (int)(lo - cbegin) / 32 > w; w++, to += stride) {
        *to  = bits;
        bits = 0;
      }
      bits |= 1u << ((lo - cbegin) & 31);
    }
    if (x.shorts)
      ((unsigned short *)masks)[k] = (unsigned short)bits;
    else if (!x.first)
      *to = bits;
    else {
      for (; w < words; w++, to += stride) {
        *to  = bits;
        bits = 0;
      }
    }
  }
}

/* Do 32 bits count all entries, and so many more? Lanes count beyond a row's end. */
static bool MaskSmall(const HybCSR *A, const HybCSR *B, const HybCSR *C, PetscCount words)
{
  const PetscCount most = PetscMax(PetscMax(A->nnz, B->nnz), PetscMax(C->nnz, words)), n = PetscMax(PetscMax(A->n, B->n), B->m);

  return PetscMax(most, n) < INT_MAX - 2 * MASK_ENTRIES;
}

static MaskArgs MaskArguments(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, const HybCSR *C)
{
  MaskArgs x;

  x.m      = A->m;
  x.ai     = A->i;
  x.aj     = A->j;
  x.bi     = B->i;
  x.ci     = C->i;
  x.masks  = rows->masks;
  x.shorts = rows->longest <= 16;
  x.first  = rows->first;
  x.place  = rows->place;
  x.ti     = mm->transposed;
  x.perm   = mm->permutation;
  x.last   = B->nnz > 0 ? (PetscInt)(B->nnz - 1) : 0;
  x.aa     = A->a;
  x.ba     = B->a;
  x.ca     = C->a;
  x.low = x.high = x.bbegin = x.cbegin = x.inner = 0;
  if (mm->part && mm->part->inner) {
    x.low    = mm->part->row[0];
    x.high   = mm->part->row[1];
    x.inner  = 1;
    x.bbegin = (PetscInt)mm->part->entry[0];
    x.last   = PetscMax((PetscInt)mm->part->entry[1] - x.bbegin - 1, 0);
  } else if (mm->part) {
    x.m = mm->part->row[1] - mm->part->row[0];
    x.ai += mm->part->row[0];
    x.ci += mm->part->row[0];
    if (x.first) x.first += mm->part->row[0];
    x.cbegin = (PetscInt)mm->part->entry[0];
  }
  return x;
}

/* count: of C's rows, to be scanned to C->i; NULL: that is there */
static PetscErrorCode MaskRowsFetch(HybSpGEMM *mm, const HybCSR *A, const PetscInt *count, const HybCSR *C, HybMaskRows *rows, PetscCount *nnz)
{
  const HybExec *exec = &mm->exec;
  PetscCount    *found, host[4 + HYB_SPGEMM_PARTS + 1];

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, PETSC_STATIC_ARRAY_LENGTH(host), sizeof(PetscCount), &found));
  if (count) PetscCall(HybScanCounts(exec, &mm->work, C->m, count, C->i, found, NULL));
  HYB_LAUNCH(MaskMeasure, PetscMin(HybBlocks(C->m, 256), 1024), 256, 0, exec->stream, C->m, A->i, C->i, A->n, mm->transposed, found + 1, found + 2, found + 3, found + 4);
  PetscCall(exec->backend->copy(exec, host, found, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(&mm->work, &found));
  *nnz           = host[0];
  rows->longest  = (PetscInt)host[1];
  rows->words    = host[2];
  rows->farthest = (PetscInt)host[3];
  mm->hascut     = PETSC_TRUE;
  PetscCall(PetscArraycpy(mm->cut, host + 4, HYB_SPGEMM_PARTS + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsCount(HybSpGEMM *mm, const HybCSR *A, const PetscInt *count, HybCSR *C, HybMaskRows *rows)
{
  PetscFunctionBegin;
  PetscCall(MaskRowsFetch(mm, A, count, C, rows, &C->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsLook(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, HybMaskRows *rows)
{
  PetscCount nnz;

  PetscFunctionBegin;
  PetscCall(MaskRowsFetch(mm, A, NULL, C, rows, &nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsMeasure(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, PetscCount *words)
{
  PetscFunctionBegin;
  PetscCall(mm->exec.backend->zero(&mm->exec, words, 2 * sizeof(*words)));
  HYB_LAUNCH(MaskMeasure, PetscMin(HybBlocks(C->m, 256), 1024), 256, 0, mm->exec.stream, C->m, A->i, C->i, A->n, mm->transposed, (PetscCount *)NULL, words, words + 1, words + 2);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows)
{
  const HybExec *exec = &mm->exec;
  const bool     far = rows->longest > 32, place = mm->transposed && mm->permutation && rows->farthest > 0 && rows->farthest <= 256;
  PetscInt       lanes = HybDeviceTuning()->masks_lanes;
  size_t         masks, bytes, operands;

  PetscFunctionBegin;
  /* lanes count beyond a row's end */
  if (!C->nnz || !rows->longest || rows->longest > 32 * MASK_WORDS || mm->stats.maxarow > MASK_ENTRIES || A->nnz > PETSC_MAX_INT - 2 * MASK_ENTRIES || rows->words > PETSC_MAX_INT) PetscFunctionReturn(PETSC_SUCCESS);
  if ((double)C->nnz * (double)A->nnz > MASK_SPARSE * (double)mm->stats.products * (double)C->m) PetscFunctionReturn(PETSC_SUCCESS);
  masks    = far ? (size_t)rows->words * sizeof(unsigned) : (size_t)A->nnz * (rows->longest <= 16 ? sizeof(unsigned short) : sizeof(unsigned));
  bytes    = masks + (far ? (size_t)C->m + 1 : 0) * sizeof(PetscInt) + (place ? (size_t)A->nnz : 0);
  operands = (size_t)(A->nnz + B->nnz) * (sizeof(PetscInt) + sizeof(HybScalar));
  if (bytes > (bytes > MASK_LARGE ? operands / 3 : operands)) PetscFunctionReturn(PETSC_SUCCESS);
  if (bytes > MASK_ASK) {
    size_t spare;

    PetscCall(HybMemorySpare(exec, &spare));
    if (bytes > spare) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!lanes) lanes = C->nnz <= 12 * (PetscCount)C->m ? 4 : C->nnz <= 24 * (PetscCount)C->m ? 8
                                                                                            : 16;
  rows->lanes = (int)lanes;
  if (place) {
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->nnz, 1, &rows->place));
    HYB_LAUNCH(MaskPlaces, HybBlocks(A->nnz, 256), 256, 0, exec->stream, A->nnz, A->j, mm->transposed, mm->permutation, rows->place);
  }
  if (far) {
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)C->m + 1, sizeof(PetscInt), &rows->first));
    HYB_LAUNCH(MaskWords, HybBlocks(C->m, 256), 256, 0, exec->stream, C->m, A->i, C->i, rows->first);
    PetscCall(HybScanCounts(exec, &mm->work, C->m, rows->first, rows->first, NULL, NULL));
  }
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)masks, 1, &rows->masks));
  PetscCall(HybDispatch(MaskSmall(A, B, C, rows->words), HybFlags(), [&](auto SMALL) {
    HYB_LAUNCH((MaskPlan<std::conditional_t<SMALL, int, PetscInt>>), HybBlocks((PetscCount)A->m * 8, MASK_THREADS), MASK_THREADS, 0, exec->stream, MaskArguments(mm, A, B, rows, C), B->i, B->j, C->j, rows->masks);
    return PETSC_SUCCESS;
  }));
  PetscCall(HybCountersSet(&mm->counters, "masks", A->nnz));
  PetscCall(HybCountersSet(&mm->counters, "mask bytes", (PetscCount)masks));
  mm->reads    = HYB_SPGEMM_READS_A;
  mm->permutes = PETSC_TRUE;
  mm->placed   = (PetscBool)place;
  mm->parts    = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numeric phases go on without a plan whose making failed, and they need the memory */
PetscErrorCode HybMaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows)
{
  const PetscErrorCode ierr = MaskRowsPlan(mm, A, B, C, rows);

  PetscFunctionBegin;
  if (ierr) {
    (void)HybArenaFree(&mm->keep, &rows->place);
    (void)HybArenaFree(&mm->keep, &rows->first);
    (void)HybArenaFree(&mm->keep, &rows->masks);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, HybCSR *C)
{
  const HybExec   *exec = &mm->exec;
  const MaskArgs   x    = MaskArguments(mm, A, B, rows, C);
  const PetscCount grid = HybBlocks((PetscCount)x.m * rows->lanes, MASK_THREADS);

  PetscFunctionBegin;
  PetscCall(HybDispatch(rows->lanes, HybCases<4, 8, 16>(), x.first || x.perm || x.place || x.inner, HybFlags(), [&](auto N, auto FAR) {
    return HybDispatch(MaskSmall(A, B, C, rows->words), HybFlags(), [&](auto SMALL) {
      HYB_LAUNCH((MaskKernel<N, FAR, std::conditional_t<SMALL, int, PetscInt>>), grid, MASK_THREADS, 0, exec->stream, x);
      return PETSC_SUCCESS;
    });
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
