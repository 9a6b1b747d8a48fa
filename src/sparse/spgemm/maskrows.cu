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

    symbolic   longest row of C, with its size
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

  Memory: 4 ceil(L/32) bytes an entry of A where C's longest row has L entries, at most 128, and 4 where A's columns
  will go (nothing else reads columns: the caller may free his own of A, B and C); no plan where that
  outgrows the operands, takes more than a quarter of free memory, where rows of A are so long that a single group would
  take too long for one, or where so few bits of a mask are set that testing them costs more than placing products.
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
  PetscInt         m;
  const PetscInt  *ai, *ci;
  const PetscInt  *where; /* of each entry of A: where its row of B begins, or its column */
  const PetscInt  *bi;    /* for the columns; NULL: none are asked */
  const unsigned  *masks;
  PetscCount       stride; /* from word to word of a mask */
  int              words;
  PetscInt         last; /* entry of B */
  const HybScalar *aa, *ba;
  HybScalar       *ca;
};

/* an entry of A: 64 bits of its mask, and where the entry of B lies that the first of these counts for */
struct MaskEntry {
  unsigned  lo, hi;
  PetscInt  from;
  HybScalar a;
};

/* where[k], asked for one round before MaskLoad() needs it: no load then waits for another */
static __device__ __forceinline__ PetscInt MaskWhere(const MaskArgs &x, PetscInt k, PetscInt end)
{
  return k < end ? x.where[k] : 0;
}

/* of the pieces from entry first of C's row on; none of its bits is set where there is no such entry of A */
template <int N, int R>
static __device__ __forceinline__ MaskEntry MaskLoad(const MaskArgs &x, PetscInt k, PetscInt end, int first, PetscInt where)
{
  MaskEntry e;

  e.lo = e.hi = 0;
  e.from      = 0;
  e.a         = HybScalar();
  if (k < end) {
    const unsigned *q = x.masks + k;

    e.from = x.bi ? x.bi[where] : where;
    e.a    = x.aa[k];
    if (first) {
#pragma unroll 1
      for (int w = first / 32; w > 0; w--, q += x.stride) e.from += __popc(*q);
    }
    e.lo = *q;
    if (N * MASK_PIECES < 32 && first) {
      const int shift = first & 31;

      e.from += __popc(e.lo & ((1u << shift) - 1u));
      e.lo >>= shift;
    }
    if (N * R > 32 && first / 32 + 1 < x.words) e.hi = q[x.stride];
  }
  return e;
}

/* R pieces of the rows of a warp, from entry first of each; entries: of the longest row of A; BATCH rows of B are on
   their way together */
template <int N, int R, int BATCH>
static __device__ __forceinline__ void MaskSums(const MaskArgs &x, PetscInt begin, PetscInt end, int entries, int first, int len, HybScalar *c)
{
  const int lane = HybLane() & (N - 1);
  HybScalar sum[R];
  PetscInt  ahead = MaskWhere(x, begin + N + lane, end);
  MaskEntry next  = MaskLoad<N, R>(x, begin + lane, end, first, MaskWhere(x, begin + lane, end));

#pragma unroll
  for (int r = 0; r < R; r++) sum[r] = HybNegativeZero();
  for (int k0 = 0; k0 < entries; k0 += N) {
    const MaskEntry now = next;

    if (k0 + N < entries) {
      next  = MaskLoad<N, R>(x, begin + k0 + N + lane, end, first, ahead);
      ahead = MaskWhere(x, begin + k0 + 2 * N + lane, end);
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

template <int N>
__global__ void __launch_bounds__(MASK_THREADS, sizeof(HybScalar) > 8 ? 3 : N > 8 ? 5
                                                                                  : 6) MaskKernel(MaskArgs x)
{
  const PetscCount row   = ((PetscCount)blockIdx.x * MASK_THREADS + threadIdx.x) / N;
  PetscInt         begin = 0, end = 0, cbegin = 0;
  int              len = 0;

  if (row < x.m) {
    begin  = x.ai[row];
    end    = x.ai[row + 1];
    cbegin = x.ci[row];
    len    = (int)(x.ci[row + 1] - cbegin);
  }
  const int entries = HybSubwarpMax<HYB_WARP>((int)(end - begin)), longest = HybSubwarpMax<HYB_WARP>(len);

  for (int first = 0; first < longest; first += MASK_PIECES * N) {
    const int left = longest - first;

    if (left > 3 * N)
      MaskSums<N, 4, 2>(x, begin, end, entries, first, len, x.ca + cbegin);
    else if (left > 2 * N)
      MaskSums<N, 3, MASK_BATCH>(x, begin, end, entries, first, len, x.ca + cbegin);
    else if (left > N)
      MaskSums<N, 2, MASK_BATCH>(x, begin, end, entries, first, len, x.ca + cbegin);
    else
      MaskSums<N, 1, MASK_BATCH>(x, begin, end, entries, first, len, x.ca + cbegin);
  }
}

__global__ void __launch_bounds__(256) MaskLongest(PetscInt m, const PetscInt *__restrict__ ci, PetscCount *longest)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  PetscCount most = 0;

  for (PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x; r < m; r += (PetscCount)gridDim.x * 256) most = HybMax()(most, (PetscCount)(ci[r + 1] - ci[r]));
  most = HybBlockMax<256>(most, scratch);
  if (threadIdx.x == 0) (void)HybAtomicMax(longest, most);
}

/* eight lanes a row, an entry of A each */
__global__ void __launch_bounds__(MASK_THREADS) MaskPlan(MaskArgs x, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, const PetscInt *__restrict__ cj, PetscInt *__restrict__ from, unsigned *__restrict__ masks)
{
  const PetscCount row = ((PetscCount)blockIdx.x * MASK_THREADS + threadIdx.x) / 8;

  if (row >= x.m) return;
  const PetscInt cbegin = x.ci[row], cend = x.ci[row + 1];

  for (PetscInt k = x.ai[row] + (HybLane() & 7); k < x.ai[row + 1]; k += 8) {
    const PetscInt r = aj[k], end = bi[r + 1];
    PetscInt       lo   = cbegin;
    unsigned       bits = 0, *to = masks + k;
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
      for (; (int)(lo - cbegin) / 32 > w; w++, to += x.stride) {
        *to  = bits;
        bits = 0;
      }
      bits |= 1u << ((lo - cbegin) & 31);
    }
    for (; w < x.words; w++, to += x.stride) {
      *to  = bits;
      bits = 0;
    }
  }
}

static MaskArgs MaskArguments(const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, const HybCSR *C)
{
  MaskArgs x;

  x.m      = A->m;
  x.ai     = A->i;
  x.ci     = C->i;
  x.where  = rows->from ? rows->from : A->j;
  x.bi     = rows->from ? NULL : B->i;
  x.masks  = rows->masks;
  x.stride = A->nnz;
  x.words  = rows->words;
  x.last   = B->nnz > 0 ? (PetscInt)(B->nnz - 1) : 0;
  x.aa     = A->a;
  x.ba     = B->a;
  x.ca     = C->a;
  return x;
}

PetscErrorCode HybMaskRowsCount(HybSpGEMM *mm, const PetscInt *count, HybCSR *C, HybMaskRows *rows)
{
  const HybExec *exec = &mm->exec;
  PetscCount    *found, host[2];

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 2, sizeof(PetscCount), &found));
  PetscCall(HybScanCounts(exec, &mm->work, C->m, count, C->i, found, NULL));
  HYB_LAUNCH(MaskLongest, PetscMin(HybBlocks(C->m, 256), 1024), 256, 0, exec->stream, C->m, C->i, found + 1);
  PetscCall(exec->backend->copy(exec, host, found, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(&mm->work, &found));
  C->nnz        = host[0];
  rows->longest = (PetscInt)host[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybMaskRows *rows)
{
  const HybExec *exec  = &mm->exec;
  PetscInt       lanes = HybDeviceTuning()->masks_lanes;
  size_t         bytes;

  PetscFunctionBegin;
  rows->tried = PETSC_TRUE;
  /* lanes count beyond a row's end */
  if (!C->nnz || !rows->longest || rows->longest > 32 * MASK_WORDS || mm->stats.maxarow > MASK_ENTRIES || A->nnz > PETSC_MAX_INT - 2 * MASK_ENTRIES) PetscFunctionReturn(PETSC_SUCCESS);
  if ((double)C->nnz * (double)A->nnz > MASK_SPARSE * (double)mm->stats.products * (double)C->m) PetscFunctionReturn(PETSC_SUCCESS);
  rows->words = (int)((rows->longest + 31) / 32);
  bytes       = (size_t)A->nnz * ((mm->columnsstay ? 0 : sizeof(PetscInt)) + (size_t)rows->words * sizeof(unsigned));
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
  {
    unsigned *masks;

    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, A->nnz, (size_t)rows->words * sizeof(unsigned), &masks));
    HYB_LAUNCH(MaskPlan, HybBlocks((PetscCount)A->m * 8, MASK_THREADS), MASK_THREADS, 0, exec->stream, MaskArguments(A, B, rows, C), A->j, B->i, B->j, C->j, rows->from, masks);
    rows->masks = masks;
  }
  mm->reads = rows->from ? 0 : HYB_SPGEMM_READS_A;
  PetscCall(HybCountersSet(&mm->counters, "masks", A->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMaskRowsNumeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybMaskRows *rows, HybCSR *C)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount grid = HybBlocks((PetscCount)A->m * rows->lanes, MASK_THREADS);
  const MaskArgs   x    = MaskArguments(A, B, rows, C);

  PetscFunctionBegin;
  if (rows->lanes <= 4)
    HYB_LAUNCH((MaskKernel<4>), grid, MASK_THREADS, 0, exec->stream, x);
  else if (rows->lanes <= 8)
    HYB_LAUNCH((MaskKernel<8>), grid, MASK_THREADS, 0, exec->stream, x);
  else
    HYB_LAUNCH((MaskKernel<16>), grid, MASK_THREADS, 0, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}
