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
  several rows are on their way together, and the only memory traffic besides the operands' values and C's is a mask and
  an offset for each entry of A. These descriptors come N entries at once, a lane each, the next N while the present
  ones are worked on, and go round by shuffles. A tabled place (hash/places.cu) costs a load, and an addition in shared
  memory a load and a store, for each product.

    symbolic   longest row of C and words of all masks, with its size
    plan       for each entry of A: from = where its row of B begins, unless A's columns stay, which tell by one load
               more; mask = the columns of that row, looked up in C's row by bisection
    numeric    a group for each row of C, rows in their order; 4 N entries of the row at a time, as many of the four
               pieces as the rows of a warp need:
                 for each entry k of A's row: for each piece:
                   b = entry from + bits below; if the bit is there, sum = sum + a(k) * b

  The entry of B is loaded whether the bit is set or not (there it is a neighbour of one that is): loads under
  conditions cost predicates, of which there are seven, and moves, and the compiler let those of a batch wait for each
  other.

  Lanes: N = 4, 8 or 16, the least that takes a mean row of C in three pieces (twelve entries of four lanes);
  -mat_aijhybridgpu_masks_lanes sets another number. Longer rows go round again, 4 N entries further on.

  A may be a transpose whose values nobody has gathered: a permutation then tells where each stands in the matrix that
  was transposed. It is loaded like where, a round before the value.

  Parts. Of a product between two others only some rows' values need be there at once: W = A P by some of its rows, then
  what these give to P^T W, then the next. Rows of W are neighbours in memory, so which entries of a row of P^T name
  them is told by where they begin, by bisection; sums go on from what C has, in the order that they have anyway.

  Memory: 2 bytes an entry of A where no row of C has more than 16 entries, 4 up to 32, else 4 ceil(l/32) for each entry
  of A whose row of C has l, at most 128, and 4 a row for where its masks begin; 4 an entry more where A's columns will
  go (nothing else reads columns: the caller may free his own of A, B and C). No plan where that outgrows the operands,
  takes more than a quarter of free memory, where rows of A are so long that a single group would take too long for one,
  or where so few bits of a mask are set that testing them costs more than placing products.
  Complexity: as many tests as entries of A times entries of a row of C, over N lanes; an addition a product.

  On an H200, P^T A P with a prolongator of smoothed aggregation, 7-point 200^3, ms: A P 0.90 (merging in registers
  1.28, bound by latency and by 8.8 GB through the second-level cache; here 3.8 GB), P^T (A P) 1.31 (places 1.94);
  27-point 96^3 0.33 and 0.24 (hash tables 0.84, places 0.37). With conditional loads the four took 1.25, 1.61, 0.45 and
  0.32. What limits it is issuing instructions: 14 for a lane and a row of B, and most lanes have no bit there. Bytes
  alone, each array once, would take 0.4 for each of the first two.

  Products are added in A's order, starting from -0.0, which leaves the first one as it is: the bits of all other
  methods.

  Reference: Jacobson, Space-efficient static trees and graphs, FOCS 1989 (places by counting bits).
*/
#include "maskrows.cuh"
#include "../device/hybdispatch.cuh"

#define MASK_THREADS 128
#define MASK_PIECES  4    /* of N entries each, that are summed together */
#define MASK_WORDS   4    /* of a mask at most */
#define MASK_ENTRIES 2048 /* of a row of A at most: a group takes them one after the other */
/* entries of a row of C for each one of a row of B, in the mean, from which masks are too empty */
#define MASK_SPARSE 12
#define MASK_ASK    ((size_t)1 << 22) /* bytes of the plan from which the card is asked what is free */

#if defined(PETSC_USE_COMPLEX)
  #define MASK_BATCH 2 /* rows of B on their way together */
#else
  #define MASK_BATCH 4
#endif

struct MaskArgs {
  PetscInt        m;
  const PetscInt *ai, *ci;
  const PetscInt *where; /* of each entry of A: where its row of B begins, or its column */
  const PetscInt *bi;    /* for the columns; NULL: none are asked */
  const unsigned *masks;
  int             shorts; /* a mask is a short of its own */
  /* where the masks of each row begin: the first words of all its entries, then the next ones; NULL: each has one
     word */
  const PetscInt *first;
  const PetscInt *perm; /* of each entry of A: where its value stands in aa; NULL: in turn */
  /* entries of B that are there, all of whose rows begin with one of these; do sums go on from what C has */
  PetscInt         bbegin, bend;
  int              inner, more;
  PetscInt         cbegin; /* entry of C that ca begins with */
  PetscInt         last;   /* entry of B, of those that are there */
  const HybScalar *aa, *ba;
  HybScalar       *ca;
};

/* an entry of A: 64 bits of its mask, and where the entry of B lies that the first of these counts for */
struct MaskEntry {
  unsigned  lo, hi;
  PetscInt  from;
  HybScalar a;
};

/* a row of A, and how its masks lie */
struct MaskRow {
  PetscInt begin, end; /* entries that are taken */
  PetscInt first;      /* word of the first one */
  PetscInt stride;     /* from word to word of a mask */
  int      words;      /* of a mask */
};

/* the first of entries [begin, end) whose row of B begins at entry b or later */
static __device__ __forceinline__ PetscInt MaskCut(const PetscInt *__restrict__ from, PetscInt begin, PetscInt end, PetscInt b)
{
  while (begin < end) {
    const PetscInt mid = begin + (end - begin) / 2;

    if (from[mid] < b)
      begin = mid + 1;
    else
      end = mid;
  }
  return begin;
}

/* what is asked for one round before MaskLoad() needs it: no load then waits for another */
struct MaskAhead {
  PetscInt where, value;
};

/* FAR: masks of several words, or permuted values */
template <bool FAR>
static __device__ __forceinline__ MaskAhead MaskLookAhead(const MaskArgs &x, const MaskRow &row, PetscInt k)
{
  MaskAhead ahead;

  ahead.where = k < row.end ? x.where[k] : 0;
  ahead.value = FAR && x.perm && k < row.end ? x.perm[k] : k;
  return ahead;
}

/* of the pieces from entry first of C's row on; none of its bits is set where there is no such entry of A */
template <int N, int R, bool FAR>
static __device__ __forceinline__ MaskEntry MaskLoad(const MaskArgs &x, const MaskRow &row, PetscInt k, int first, const MaskAhead &ahead)
{
  MaskEntry e;

  e.lo = e.hi = 0;
  e.from      = 0;
  e.a         = HybScalar();
  if (k < row.end) {
    e.from = (x.bi ? x.bi[ahead.where] : ahead.where) - (FAR ? x.bbegin : 0);
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
template <int N, int R, int BATCH, bool FAR>
static __device__ __forceinline__ void MaskSums(const MaskArgs &x, const MaskRow &row, int entries, int first, int len, HybScalar *c)
{
  const int lane = HybLane() & (N - 1);
  HybScalar sum[R];
  MaskAhead ahead = MaskLookAhead<FAR>(x, row, row.begin + N + lane);
  MaskEntry next  = MaskLoad<N, R, FAR>(x, row, row.begin + lane, first, MaskLookAhead<FAR>(x, row, row.begin + lane));

#pragma unroll
  for (int r = 0; r < R; r++) sum[r] = FAR && x.more && first + r * N + lane < len ? c[first + r * N + lane] : HybNegativeZero();
  for (int k0 = 0; k0 < entries; k0 += N) {
    const MaskEntry now = next;

    if (k0 + N < entries) {
      next  = MaskLoad<N, R, FAR>(x, row, row.begin + k0 + N + lane, first, ahead);
      ahead = MaskLookAhead<FAR>(x, row, row.begin + k0 + 2 * N + lane);
    }
#pragma unroll 1
    for (int j = 0; j < N && k0 + j < entries; j += BATCH) {
      unsigned  word[BATCH][2];
      HybScalar a[BATCH], b[BATCH][R];

#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        PetscInt from[2];

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
          b[u][r] = x.ba[HybMin()(from[w] + (PetscInt)__popc(word[u][w] & below), x.last)];
        }
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
          if (word[u][r * N / 32] & (1u << (r * N % 32 + lane))) sum[r] = HybMulAdd(a[u], b[u][r], sum[r]);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    if (first + r * N + lane < len) c[first + r * N + lane] = sum[r];
  }
}

template <int N, bool FAR>
__global__ void __launch_bounds__(MASK_THREADS, sizeof(HybScalar) > 8 ? 3 : N > 8 || (FAR && N > 4) ? 5
                                                                                                    : 6) MaskKernel(MaskArgs x)
{
  const PetscCount r      = ((PetscCount)blockIdx.x * MASK_THREADS + threadIdx.x) / N;
  MaskRow          row    = {0, 0, 0, 0, 0};
  PetscInt         cbegin = 0;
  int              len    = 0;

  if (r < x.m) {
    cbegin = x.ci[r];
    len    = (int)(x.ci[r + 1] - cbegin);
    row    = {x.ai[r], x.ai[r + 1], FAR && x.first ? x.first[r] : x.ai[r], x.ai[r + 1] - x.ai[r], (len + 31) / 32};
    cbegin -= x.cbegin;
    if (FAR && x.inner) {
      const PetscInt begin = MaskCut(x.where, row.begin, row.end, x.bbegin);

      row.end = MaskCut(x.where, begin, row.end, x.bend);
      row.first += begin - row.begin;
      row.begin = begin;
    }
  }
  const int entries = HybSubwarpMax<HYB_WARP>((int)(row.end - row.begin)), longest = HybSubwarpMax<HYB_WARP>(len);

  for (int first = 0; first < longest; first += MASK_PIECES * N) {
    const int left = longest - first;

    if (left > 3 * N)
      MaskSums<N, 4, 2, FAR>(x, row, entries, first, len, x.ca + cbegin);
    else if (left > 2 * N)
      MaskSums<N, 3, MASK_BATCH, FAR>(x, row, entries, first, len, x.ca + cbegin);
    else if (left > N)
      MaskSums<N, 2, MASK_BATCH, FAR>(x, row, entries, first, len, x.ca + cbegin);
    else
      MaskSums<N, 1, MASK_BATCH, FAR>(x, row, entries, first, len, x.ca + cbegin);
  }
}

/* the longest row of C (NULL: it is known), how many words the masks of all entries of A take, and before which entry
   of C each quarter of its rows begins */
__global__ void __launch_bounds__(256) MaskMeasure(PetscInt m, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ ci, PetscCount *longest, PetscCount *words, PetscCount *cut)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  PetscCount most = 0, sum = 0;

  for (PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x; r < m; r += (PetscCount)gridDim.x * 256) {
    const PetscCount len = (PetscCount)(ci[r + 1] - ci[r]);

    most = HybMax()(most, len);
    sum += (PetscCount)(ai[r + 1] - ai[r]) * ((len + 31) / 32);
  }
  if (longest) {
    most = HybBlockMax<256>(most, scratch);
    if (threadIdx.x == 0) (void)HybAtomicMax(longest, most);
    __syncthreads();
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

/* eight lanes a row, an entry of A each */
__global__ void __launch_bounds__(MASK_THREADS) MaskPlan(MaskArgs x, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, const PetscInt *__restrict__ cj, PetscInt *__restrict__ from, unsigned *__restrict__ masks)
{
  const PetscCount row = ((PetscCount)blockIdx.x * MASK_THREADS + threadIdx.x) / 8;

  if (row >= x.m) return;
  const PetscInt cbegin = x.ci[row], cend = x.ci[row + 1], abegin = x.ai[row], stride = x.ai[row + 1] - abegin;
  const int      words = (int)(cend - cbegin + 31) / 32;

  for (PetscInt k = abegin + (HybLane() & 7); k < x.ai[row + 1]; k += 8) {
    const PetscInt r = aj[k], end = bi[r + 1];
    PetscInt       lo   = cbegin;
    unsigned       bits = 0, *to = masks + (x.first ? x.first[row] : abegin) + (k - abegin);
    int            w = 0;

    if (from) from[k] = bi[r];
    for (PetscInt p = bi[r]; p < end; p++, lo++) {
      const PetscInt column = bj[p];
      PetscInt       hi     = cend;

      while (lo < hi) {
        const PetscInt mid = lo + (hi - lo) / 2;

        if (cj[mid] < column)
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

static MaskArgs MaskArguments(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, const HybCSR *C)
{
  MaskArgs x;

  x.m      = A->m;
  x.ai     = A->i;
  x.ci     = C->i;
  x.where  = rows->from ? rows->from : A->j;
  x.bi     = rows->from ? NULL : B->i;
  x.masks  = rows->masks;
  x.shorts = rows->longest <= 16;
  x.first  = rows->first;
  x.perm   = mm->permutation;
  x.last   = B->nnz > 0 ? (PetscInt)(B->nnz - 1) : 0;
  x.aa     = A->a;
  x.ba     = B->a;
  x.ca     = C->a;
  x.bbegin = x.bend = x.cbegin = 0;
  x.inner = x.more = 0;
  if (mm->part && mm->part->inner) {
    x.inner  = 1;
    x.bbegin = (PetscInt)mm->part->entry[0];
    x.bend   = (PetscInt)mm->part->entry[1];
    x.last   = PetscMax(x.bend - x.bbegin - 1, 0);
    x.more   = mm->part->row[0] > 0;
  } else if (mm->part) {
    x.m = mm->part->row[1] - mm->part->row[0];
    x.ai += mm->part->row[0];
    x.ci += mm->part->row[0];
    if (x.first) x.first += mm->part->row[0];
    x.cbegin = (PetscInt)mm->part->entry[0];
  }
  return x;
}

PetscErrorCode HybMaskRowsCount(HybSpGEMM *mm, const HybCSR *A, const PetscInt *count, HybCSR *C, HybMaskRows *rows)
{
  const HybExec *exec = &mm->exec;
  PetscCount    *found, host[3 + HYB_SPGEMM_PARTS + 1];

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, PETSC_STATIC_ARRAY_LENGTH(host), sizeof(PetscCount), &found));
  PetscCall(HybScanCounts(exec, &mm->work, C->m, count, C->i, found, NULL));
  HYB_LAUNCH(MaskMeasure, PetscMin(HybBlocks(C->m, 256), 1024), 256, 0, exec->stream, C->m, A->i, C->i, found + 1, found + 2, found + 3);
  PetscCall(exec->backend->copy(exec, host, found, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(&mm->work, &found));
  C->nnz        = host[0];
  rows->longest = (PetscInt)host[1];
  rows->words   = host[2];
  mm->hascut    = PETSC_TRUE;
  PetscCall(PetscArraycpy(mm->cut, host + 3, HYB_SPGEMM_PARTS + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsMeasure(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, PetscCount *words)
{
  PetscFunctionBegin;
  PetscCall(mm->exec.backend->zero(&mm->exec, words, sizeof(*words)));
  HYB_LAUNCH(MaskMeasure, PetscMin(HybBlocks(C->m, 256), 1024), 256, 0, mm->exec.stream, C->m, A->i, C->i, (PetscCount *)NULL, words, words + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows)
{
  const HybExec *exec  = &mm->exec;
  const bool     far   = rows->longest > 32;
  PetscInt       lanes = HybDeviceTuning()->masks_lanes;
  size_t         masks, bytes;

  PetscFunctionBegin;
  /* lanes count beyond a row's end */
  if (!C->nnz || !rows->longest || rows->longest > 32 * MASK_WORDS || mm->stats.maxarow > MASK_ENTRIES || A->nnz > PETSC_MAX_INT - 2 * MASK_ENTRIES || rows->words > PETSC_MAX_INT) PetscFunctionReturn(PETSC_SUCCESS);
  if ((double)C->nnz * (double)A->nnz > MASK_SPARSE * (double)mm->stats.products * (double)C->m) PetscFunctionReturn(PETSC_SUCCESS);
  masks = far ? (size_t)rows->words * sizeof(unsigned) : (size_t)A->nnz * (rows->longest <= 16 ? sizeof(unsigned short) : sizeof(unsigned));
  bytes = masks + (far ? (size_t)C->m + 1 : 0) * sizeof(PetscInt) + (mm->columnsstay ? 0 : (size_t)A->nnz) * sizeof(PetscInt);
  if (bytes > (size_t)(A->nnz + B->nnz) * (sizeof(PetscInt) + sizeof(HybScalar))) PetscFunctionReturn(PETSC_SUCCESS);
  if (bytes > MASK_ASK) {
    HybMemoryReport report;

    PetscCall(exec->backend->memory(&report));
    if (bytes > report.free_bytes / 4) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!lanes) lanes = C->nnz <= 12 * (PetscCount)C->m ? 4 : C->nnz <= 24 * (PetscCount)C->m ? 8
                                                                                            : 16;
  rows->lanes = (int)lanes;
  if (!mm->columnsstay) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->nnz, sizeof(PetscInt), &rows->from));
  if (far) {
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)C->m + 1, sizeof(PetscInt), &rows->first));
    HYB_LAUNCH(MaskWords, HybBlocks(C->m, 256), 256, 0, exec->stream, C->m, A->i, C->i, rows->first);
    PetscCall(HybScanCounts(exec, &mm->work, C->m, rows->first, rows->first, NULL, NULL));
  }
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)masks, 1, &rows->masks));
  HYB_LAUNCH(MaskPlan, HybBlocks((PetscCount)A->m * 8, MASK_THREADS), MASK_THREADS, 0, exec->stream, MaskArguments(mm, A, B, rows, C), A->j, B->i, B->j, C->j, rows->from, rows->masks);
  PetscCall(HybCountersSet(&mm->counters, "masks", A->nnz));
  PetscCall(HybCountersSet(&mm->counters, "mask bytes", (PetscCount)masks));
  mm->reads    = rows->from ? 0 : HYB_SPGEMM_READS_A;
  mm->permutes = PETSC_TRUE;
  mm->parts    = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numeric phases go on without a plan whose making failed, and they need the memory */
PetscErrorCode HybMaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows)
{
  const PetscErrorCode ierr = MaskRowsPlan(mm, A, B, C, rows);

  PetscFunctionBegin;
  if (ierr) {
    (void)HybArenaFree(&mm->keep, &rows->from);
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
  PetscCall(HybDispatch(rows->lanes, HybCases<4, 8, 16>(), x.first || x.perm || x.inner, HybFlags(), [&](auto N, auto FAR) {
    HYB_LAUNCH((MaskKernel<N, FAR>), grid, MASK_THREADS, 0, exec->stream, x);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}
