/*
  binned.cu: SpGEMM method "binned", bhSPARSE on the device.

  Idea. No single way to gather a row's products is best for all lengths. An upper bound of each row (its number of
  products) puts it into a bin, and each group of bins has its own kernel:

    empty        nothing to do
    single       one product: copied                                                    a thread a row
    heap         2 to 8, 16, 32 products: a heap of (column, product) in shared memory;
                 equal columns meet at its root and are fused as they leave             a thread a row
    bitonic      33 to 512: products expanded into shared memory, sorted by a bitonic
                 network, runs of equal columns added up (expand, sort, compress)       a warp or a block a row
    merge        longer: the row's list of columns found so far is kept sorted; each row of B is
                 looked up in it by bisection, what matches is added in place, what does not is
                 squeezed together by a scan and merged in                              a block a row

  The lengths of rows of the merge group cannot be foreseen (compression), so their lists grow: they start with
  BINNED_LIST entries in shared memory; a row that overflows is put on a list and starts again in a workspace four times
  as large, and so on ("growths"), which grows in place: addresses are reserved once for the longest lists possible, and
  each round puts memory behind as many of them as it needs. Where the count is known, C's own place is the list.

    symbolic   bins by upper bound; count each bin; growth rounds, if any row overflowed; scan; fill columns and values
               (two synchronisations, three with growth)
    numeric    the fill again, columns left as they are

  All groups order products by (column, A's entry), and add them in that order, the first one as it is: results have the
  same bits in every run and in every group.

  Memory beside C: the orders of rows; a workspace of at most 4 bytes for each upper bound of the overflowing rows in
  flight, only while they are counted.
  Complexity: heap and bitonic O(p log p) and O(p log^2 p) for p products; merge O(entries of A * length of the list /
  threads) a row.

  Reference: Liu, Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
  processors, JPDC 85 (2015).
*/
#include "../../device/hybgroup.cuh"
#include "../../plan/bins.cuh"
#include "aijhybridgpu/private/hybspgemm.h"

#define BINNED_BINS 8
enum {
  BINNED_EMPTY,
  BINNED_SINGLE,
  BINNED_HEAP8,
  BINNED_HEAP16,
  BINNED_HEAP32,
  BINNED_BITONIC128,
  BINNED_BITONIC512,
  BINNED_MERGE
};
static const PetscCount  BinnedLimit[BINNED_BINS - 1] = {0, 1, 8, 16, 32, 128, 512};
static const char *const BinnedNames[BINNED_BINS]     = {"rows empty", "rows single", "rows heap 8", "rows heap 16", "rows heap 32", "rows bitonic 128", "rows bitonic 512", "rows merge"};

#define BINNED_THREADS 256  /* of the merge group */
#define BINNED_LIST    2048 /* entries that a list starts with */
#define BINNED_FLIGHT  512  /* rows whose lists have overflowed and that are in flight at once */

struct BinnedArgs {
  const PetscInt  *ai, *aj, *bi, *bj;
  const HybScalar *aa, *ba;
  const PetscInt  *order, *binptr; /* rows order[binptr[0]] .. order[binptr[1]-1] */
  PetscInt        *count;          /* counting, or */
  const PetscInt  *ci;             /* filling */
  PetscInt        *cj;
  HybScalar       *ca; /* NULL: columns only */
  int              columns;
  /* the merge group */
  const PetscInt *rows, *nrows; /* rows that overflowed before; NULL: the bin */
  PetscInt       *over, *nover; /* rows that overflow now */
  PetscInt       *list;         /* workspace: capacity entries a block */
  PetscInt        capacity;
};

__global__ void __launch_bounds__(256) BinnedSingle(BinnedArgs x)
{
  const PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (q >= x.binptr[1]) return;
  const PetscInt row = x.order[q];
  if (x.count) {
    x.count[row] = 1;
    return;
  }
  for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
    const PetscInt p = x.bi[x.aj[k]];

    if (p < x.bi[x.aj[k] + 1]) {
      if (x.columns) x.cj[x.ci[row]] = x.bj[p];
      if (x.ca) x.ca[x.ci[row]] = HybMul(x.aa[k], x.ba[p]);
    }
  }
}

/* entry e of a heap or of a list of products lies at [e*128]: threads do not meet in banks */
#define BINNED_AT(a, e) (a)[(e)*128]

template <int SIZE>
__global__ void __launch_bounds__(128) BinnedHeap(BinnedArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned long long, shared);
  unsigned long long *heap  = shared + threadIdx.x;
  HybScalar          *value = (HybScalar *)(shared + 128 * SIZE) + threadIdx.x;
  const PetscCount    q     = x.binptr[0] + (PetscCount)blockIdx.x * 128 + threadIdx.x;

  if (q >= x.binptr[1]) return;
  const PetscInt row = x.order[q];
  int            n = 0, out = 0;

  /* (column, product): products of one column leave in A's order */
  for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
    const PetscInt c = x.aj[k];

    for (PetscInt p = x.bi[c]; p < x.bi[c + 1]; p++) {
      const unsigned long long key = (unsigned long long)x.bj[p] << 8 | (unsigned)n;
      int                      e   = n++;

      if (x.ca) BINNED_AT(value, e) = HybMul(x.aa[k], x.ba[p]);
      for (; e > 0 && key < BINNED_AT(heap, (e - 1) / 2); e = (e - 1) / 2) BINNED_AT(heap, e) = BINNED_AT(heap, (e - 1) / 2);
      BINNED_AT(heap, e) = key;
    }
  }
  {
    const PetscInt at   = x.count ? 0 : x.ci[row];
    PetscInt       last = -1;
    HybScalar      sum  = HybScalar();

    while (n > 0) {
      const unsigned long long root = BINNED_AT(heap, 0), key = BINNED_AT(heap, n - 1);
      const PetscInt           col = (PetscInt)(root >> 8);
      int                      e   = 0;

      /* the last entry sinks from the root */
      n--;
      for (;;) {
        int child = 2 * e + 1;

        if (child >= n) break;
        if (child + 1 < n && BINNED_AT(heap, child + 1) < BINNED_AT(heap, child)) child++;
        if (key <= BINNED_AT(heap, child)) break;
        BINNED_AT(heap, e) = BINNED_AT(heap, child);
        e                  = child;
      }
      if (n > 0) BINNED_AT(heap, e) = key;
      if (col != last) {
        if (last >= 0 && x.ca) x.ca[at + out - 1] = sum;
        if (x.columns) x.cj[at + out] = col;
        if (x.ca) sum = BINNED_AT(value, (int)(root & 255));
        out++;
        last = col;
      } else if (x.ca)
        sum = sum + BINNED_AT(value, (int)(root & 255));
    }
    if (last >= 0 && x.ca) x.ca[at + out - 1] = sum;
  }
  if (x.count) x.count[row] = out;
}

/* expand, sort, compress */
template <int N, int SIZE>
__global__ void __launch_bounds__(HybGroup<N>::THREADS) BinnedBitonic(BinnedArgs x)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned long long, shared);
  HYB_SHARED(int, scratch, HYB_WARP);
  unsigned long long *key   = shared + (size_t)G::index() * SIZE;
  HybScalar          *value = (HybScalar *)(shared + (size_t)G::GROUPS * SIZE) + (size_t)G::index() * SIZE;

  for (PetscCount q = x.binptr[0] + (PetscCount)blockIdx.x * G::GROUPS + G::index(); q < x.binptr[1]; q += (PetscCount)gridDim.x * G::GROUPS) {
    const PetscInt row = x.order[q];
    int            n = 0, out = 0;

    for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
      const PetscInt c = x.aj[k], begin = x.bi[c], len = x.bi[c + 1] - begin;

      for (PetscInt p = G::rank(); p < len; p += N) {
        key[n + p] = (unsigned long long)x.bj[begin + p] << 16 | (unsigned)(n + p);
        if (x.ca) value[n + p] = HybMul(x.aa[k], x.ba[begin + p]);
      }
      n += (int)len;
    }
    G::sync();
    HybGroupSort<N>(key, (unsigned)n);
    for (int e0 = 0; e0 < n; e0 += N) {
      const int e    = e0 + G::rank();
      const int head = e < n && (e == 0 || key[e] >> 16 != key[e - 1] >> 16);
      int       total;
      const int at = out + G::exclusiveSum(head, scratch, &total);

      if (head && !x.count) {
        if (x.columns) x.cj[x.ci[row] + at] = (PetscInt)(key[e] >> 16);
        if (x.ca) {
          HybScalar sum = value[key[e] & 0xffff];

          for (int f = e + 1; f < n && key[f] >> 16 == key[e] >> 16; f++) sum = sum + value[key[f] & 0xffff];
          x.ca[x.ci[row] + at] = sum;
        }
      }
      out += total;
    }
    if (x.count && G::rank() == 0) x.count[row] = out;
    G::sync();
  }
}

/*
  The merge group. INPLACE: the list is the row's place in C, whose length is known; else a list of x.capacity entries,
  in shared memory where x.list is NULL, columns alone. Returns false where the list overflows.
*/
template <bool INPLACE>
static __device__ bool BinnedMergeRow(const BinnedArgs &x, PetscInt row, PetscInt *col, HybScalar *val, PetscInt *newcol, HybScalar *newval, int *scratch, PetscInt *length)
{
  const int t = (int)threadIdx.x;
  PetscInt  n = 0; /* entries of the list */

  for (PetscInt k = x.ai[row]; k < x.ai[row + 1]; k++) {
    const PetscInt c = x.aj[k], end = x.bi[c + 1];

    for (PetscInt p0 = x.bi[c]; p0 < end; p0 += BINNED_THREADS) {
      const PetscInt p    = p0 + t;
      PetscInt       mine = 0, lo = 0;
      HybScalar      product = HybScalar();
      int            fresh   = 0, total, place;

      if (p < end) {
        PetscInt hi = n;

        mine = x.bj[p];
        if (INPLACE && x.ca) product = HybMul(x.aa[k], x.ba[p]);
        while (lo < hi) {
          const PetscInt mid = lo + (hi - lo) / 2;

          if (col[mid] < mine)
            lo = mid + 1;
          else
            hi = mid;
        }
        fresh = lo == n || col[lo] != mine;
        /* a row of B has each column once: nobody else adds here */
        if (!fresh && INPLACE && x.ca) val[lo] = val[lo] + product;
      }
      place = HybBlockExclusiveSum<BINNED_THREADS>(fresh, scratch, &total);
      if (!total) continue;
      if (!INPLACE && n + total > x.capacity) return false;
      if (fresh) {
        newcol[place] = mine;
        newval[place] = product;
      }
      __syncthreads();
      /* the list moves apart, from its end; what lies below the first new column stays */
      for (PetscInt e1 = n; e1 > 0 && col[e1 - 1] > newcol[0]; e1 -= BINNED_THREADS) {
        const PetscInt e      = e1 - BINNED_THREADS + t;
        PetscInt       old    = 0;
        HybScalar      oldval = HybScalar();
        int            a = 0, b = total;

        if (e >= 0) {
          old = col[e];
          if (INPLACE && x.ca) oldval = val[e];
          while (a < b) {
            const int mid = (a + b) / 2;

            if (newcol[mid] < old)
              a = mid + 1;
            else
              b = mid;
          }
        }
        __syncthreads();
        if (e >= 0 && a > 0) {
          col[e + a] = old;
          if (INPLACE && x.ca) val[e + a] = oldval;
        }
        __syncthreads();
        if (e1 <= BINNED_THREADS) break;
      }
      /* lo counts the entries of the old list below mine, place the new ones */
      if (fresh) {
        col[lo + place] = mine;
        if (INPLACE && x.ca) val[lo + place] = product;
      }
      n += total;
      __syncthreads();
    }
  }
  *length = n;
  return true;
}

template <bool INPLACE>
__global__ void __launch_bounds__(BINNED_THREADS) BinnedMerge(BinnedArgs x)
{
  HYB_DYNAMIC_SHARED(PetscInt, shared);
  HYB_SHARED(PetscInt, newcol, BINNED_THREADS);
  HYB_SHARED(HybScalar, newval, BINNED_THREADS);
  HYB_SHARED(int, scratch, HYB_WARP);
  const PetscInt first = x.rows ? 0 : x.binptr[0], last = x.rows ? *x.nrows : x.binptr[1];
  PetscInt      *list = x.list ? x.list + (PetscCount)blockIdx.x * x.capacity : shared;

  for (PetscCount q = first + (PetscCount)blockIdx.x; q < last; q += gridDim.x) {
    const PetscInt row = x.rows ? x.rows[q] : x.order[q];
    PetscInt       n   = 0;

    if (INPLACE)
      (void)BinnedMergeRow<true>(x, row, x.cj + x.ci[row], x.ca ? x.ca + x.ci[row] : nullptr, newcol, newval, scratch, &n);
    else if (BinnedMergeRow<false>(x, row, list, nullptr, newcol, newval, scratch, &n)) {
      if (threadIdx.x == 0) x.count[row] = n;
    } else if (threadIdx.x == 0)
      x.over[HybAtomicAdd(x.nover, 1)] = row;
    __syncthreads();
  }
}

typedef struct {
  PetscInt *order, *binptr;
  PetscInt  hostbinptr[BINNED_BINS + 1];
} Binned;

/* every bin once: counts (x.count), or fills */
static PetscErrorCode BinnedRun(HybSpGEMM *mm, const Binned *b, BinnedArgs x, bool known)
{
  const HybExec *exec = &mm->exec;
  const size_t   pair = sizeof(unsigned long long) + sizeof(HybScalar);

  PetscFunctionBegin;
  x.order = b->order;
  for (int bin = BINNED_SINGLE; bin < BINNED_BINS; bin++) {
    /* before the host knows the bins: as many rows as can be in this one */
    const PetscCount least = BinnedLimit[bin - 1] + 1;
    const PetscCount rows  = known ? b->hostbinptr[bin + 1] - b->hostbinptr[bin] : mm->stats.maxrow < least ? 0
                                                                                                            : PetscMin(mm->stats.products / least, (PetscCount)b->hostbinptr[BINNED_BINS]);

    x.binptr = b->binptr + bin;
    switch (bin) {
    case BINNED_SINGLE:
      HYB_LAUNCH(BinnedSingle, HybBlocks(rows, 256), 256, 0, exec->stream, x);
      break;
    case BINNED_HEAP8:
      HYB_LAUNCH((BinnedHeap<8>), HybBlocks(rows, 128), 128, 128 * 8 * pair, exec->stream, x);
      break;
    case BINNED_HEAP16:
      HYB_LAUNCH((BinnedHeap<16>), HybBlocks(rows, 128), 128, 128 * 16 * pair, exec->stream, x);
      break;
    case BINNED_HEAP32:
      HYB_LAUNCH((BinnedHeap<32>), HybBlocks(rows, 128), 128, 128 * 32 * pair, exec->stream, x);
      break;
    case BINNED_BITONIC128:
      HYB_LAUNCH((BinnedBitonic<32, 128>), PetscMin(HybBlocks(rows, 4), 65536), 128, 4 * 128 * pair, exec->stream, x);
      break;
    case BINNED_BITONIC512:
      HYB_LAUNCH((BinnedBitonic<128, 512>), PetscMin(rows, 65536), 128, 512 * pair, exec->stream, x);
      break;
    default:
      if (x.count)
        HYB_LAUNCH((BinnedMerge<false>), PetscMin(rows, 65536), BINNED_THREADS, BINNED_LIST * sizeof(PetscInt), exec->stream, x);
      else
        HYB_LAUNCH((BinnedMerge<true>), PetscMin(rows, 65536), BINNED_THREADS, 0, exec->stream, x);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void BinnedOperands(const HybCSR *A, const HybCSR *B, BinnedArgs *x)
{
  memset((void *)x, 0, sizeof(*x));
  x->ai = A->i;
  x->aj = A->j;
  x->aa = A->a;
  x->bi = B->i;
  x->bj = B->j;
  x->ba = B->a;
}

/* Each round takes the rows that overflowed in the one before, in lists four times as long, fewer blocks at a time.
   head: the bins' offsets, then the number of rows that overflowed, nover, which are in x->over. */
static PetscErrorCode BinnedGrow(HybSpGEMM *mm, PetscInt nover, PetscCount longest, PetscInt *head, BinnedArgs *x, PetscCount *growths)
{
  const HybExec  *exec = &mm->exec;
  HybMemoryReport report;
  PetscInt       *next, *numbers, *list;
  PetscCount      capacity = BINNED_LIST, grown = 0, most;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, nover, sizeof(PetscInt), &next));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, 64, sizeof(PetscInt), &numbers));
  /* addresses for all that can be needed; memory is put behind them round by round, at no time more than the
     longest lists in flight take */
  PetscCall(exec->backend->memory(&report));
  most = PetscMax(longest, PetscMin(PetscMin((PetscCount)nover, BINNED_FLIGHT) * longest, (PetscCount)(report.free_bytes / 16 / sizeof(PetscInt))));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_GROWING, most, sizeof(PetscInt), &list));
  x->nrows = head + BINNED_BINS + 1;
  x->rows  = x->over;
  x->over  = next;
  while (capacity < longest) {
    PetscCount blocks;
    PetscInt  *swap = (PetscInt *)x->rows;

    capacity    = PetscMin(4 * capacity, longest);
    blocks      = PetscMin(PetscMin((PetscCount)nover, BINNED_FLIGHT), most / capacity);
    x->nover    = numbers + *growths;
    x->capacity = (PetscInt)capacity;
    x->list     = list;
    if (blocks * capacity > grown) {
      grown = blocks * capacity;
      PetscCall(HybArenaGrow(&mm->work, list, grown, sizeof(PetscInt)));
    }
    HYB_LAUNCH((BinnedMerge<false>), blocks, BINNED_THREADS, 0, exec->stream, *x);
    x->rows  = x->over;
    x->nrows = x->nover;
    x->over  = swap;
    (*growths)++;
  }
  PetscCall(HybCountersSet(&mm->counters, "entries grown", grown));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_BinnedCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec   *exec    = &mm->exec;
  const PetscInt   m       = A->m;
  const PetscCount longest = PetscMin(mm->stats.maxrow, (PetscCount)B->n);
  PetscInt        *count, *over = NULL, *head;
  PetscInt         bring[BINNED_BINS + 2];
  PetscCount       growths = 0;
  Binned          *b;
  BinnedArgs       x;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*b), &b));
  PetscCall(PetscMemzero(b, sizeof(*b)));
  mm->data                   = b;
  b->hostbinptr[BINNED_BINS] = m;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, m, sizeof(PetscInt), &b->order));
  /* the bins' offsets, then the number of rows that overflowed: one copy */
  PetscCall(HybArenaCalloc(&mm->keep, HYB_MEM_DEVICE, BINNED_BINS + 2, sizeof(PetscInt), &head));
  b->binptr = head;
  PetscCall(HybPlanBinsAsync(exec, &mm->work, m, mm->rowproducts, BINNED_BINS, BinnedLimit, b->order, b->binptr));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_DEVICE, m, sizeof(PetscInt), &count));
  if (longest > BINNED_LIST) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, PetscMin((PetscCount)m, mm->stats.products / BINNED_LIST) + 1, sizeof(PetscInt), &over));
  BinnedOperands(A, B, &x);
  x.count    = count;
  x.over     = over;
  x.nover    = head + BINNED_BINS + 1;
  x.capacity = BINNED_LIST;
  x.aa = x.ba = NULL;
  PetscCall(BinnedRun(mm, b, x, false));
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)m + 1, sizeof(PetscInt), &C->i));
  if (longest > BINNED_LIST) {
    PetscCall(exec->backend->copy(exec, bring, head, sizeof(bring), HYB_COPY_DEVICE_TO_HOST));
    if (bring[BINNED_BINS + 1]) PetscCall(BinnedGrow(mm, bring[BINNED_BINS + 1], longest, head, &x, &growths));
  }
  {
    PetscCount *total, n[2];
    PetscInt   *ints;

    /* C's size, and the bins if they are not known yet, in one copy */
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, 1 + (BINNED_BINS + 1), sizeof(PetscCount), &total));
    ints = (PetscInt *)(total + 1);
    PetscCall(HybScanCounts(exec, &mm->work, m, count, C->i, total, NULL));
    PetscCall(exec->backend->copy(exec, ints, head, (BINNED_BINS + 1) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
    {
      PetscCount both[1 + BINNED_BINS + 1];

      PetscCall(exec->backend->copy(exec, both, total, sizeof(PetscCount) + (BINNED_BINS + 1) * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
      n[0] = both[0];
      memcpy(b->hostbinptr, both + 1, (BINNED_BINS + 1) * sizeof(PetscInt));
    }
    /* memory that grew is given back now that nothing is on its way: later it would have to be waited for once more */
    if (x.list) PetscCall(HybArenaFree(&mm->work, &x.list));
    C->nnz = n[0];
  }
  for (int bin = 0; bin < BINNED_BINS; bin++) PetscCall(HybCountersSet(&mm->counters, BinnedNames[bin], b->hostbinptr[bin + 1] - b->hostbinptr[bin]));
  PetscCall(HybCountersSet(&mm->counters, "growths", growths));
  PetscCall(HybSpGEMMCheckCount(exec, A, B, C->nnz, PETSC_FALSE));
  PetscCall(HybArenaReset(&mm->work));
  mm->rowproducts = NULL;
  PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(PetscInt), &C->j));
  if ((A->a || !A->nnz) && (B->a || !B->nnz)) PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(HybScalar), &C->a));
  BinnedOperands(A, B, &x);
  x.ci      = C->i;
  x.cj      = C->j;
  x.ca      = C->a;
  x.columns = 1;
  PetscCall(BinnedRun(mm, b, x, true));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_BinnedCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  BinnedArgs x;

  PetscFunctionBegin;
  BinnedOperands(A, B, &x);
  x.ci = C->i;
  x.cj = C->j; /* the merge group writes it again on the way, with the same columns */
  x.ca = C->a;
  PetscCall(BinnedRun(mm, (const Binned *)mm->data, x, true));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_BinnedCUDA;
const HybSpGEMMMethod        HybSpGEMM_BinnedCUDA = {
         .name     = "binned",
         .symbolic = HybSpGEMMSymbolic_BinnedCUDA,
         .numeric  = HybSpGEMMNumeric_BinnedCUDA,
};
