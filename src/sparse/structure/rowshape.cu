/*
  Row shapes on the device.

  Idea. Most rows have the shape of the row before: same length, each column one further. Comparing neighbours, exactly,
  is all that is done for them. The others, and the first row of each tile, are heads: a signature of (column - row)
  over a head goes into a small global hash table, where each distinct signature keeps the smallest head that has it,
  its representative. Afterwards every head is compared, exactly, with the representative of its signature: a hash
  collision can cost a head and its followers their class, never their correctness. Most heads find their signature in
  the table with a smaller representative, so they only read; these reads may be stale (first-level cache) without harm,
  since the atomics decide.

    for each tile of 256 rows (a block), a thread a row:
      columns of the tile to shared memory;  head = first of the tile or not like the row before
      head: s = signature; slot = find or insert s; table[slot].row = min(table[slot].row, r)
      slotof[r] = slot of the nearest head at or before r in the tile, marked where r is the head
    one block:               number the occupied slots by ascending representative; lengths -> offsetptr
    for each class:          offset = columns - row of the representative
    for each tile:           head: class = equal(r, representative) ? class(slotof[r]) : NONE
                             rowclass[r] = class of the nearest head

  Where all entries lie on few diagonals (diagonals.cuh), a row's word takes the signature's place. Words are equal
  exactly where rows are alike, so nothing is compared afterwards and the slots are the classes but for their numbers;
  the columns are read once, and no row waits for another:

    one block:               the diagonals of a sample
    for each row:            its word; the first of a warp, and where the row before has another word: slot = find or
                             insert the word, as above
    one block:               number the slots as above
    for each row:            class = number of its slot

  A matrix with more distinct signatures than allowed is given up as soon as the table has too many: the remaining tiles
  see the flag and leave. So is, before that, a larger one of whose rows, 256 looked at, less than half are like the row
  so many before them, for every number up to eight.

  Memory: 2 bytes a row and the table. Work: one coalesced pass over i and j and two over 2 bytes a row. Deterministic:
  the smallest head of a signature is the smallest row of that shape (a row before it of the same shape would have a
  head of that shape), the order of representatives does not depend on the order of insertion, and a table that
  overflows yields no classes at all.
*/
#include "diagonals.cuh"
#include "rowshape.cuh"

typedef struct {
  PetscCount noffsets, maxlength;
  int        n;        /* distinct signatures inserted */
  int        overflow; /* more than allowed, or rows that are not like others at all */
} ShapeStats;

/* both, since they are looked at together */
typedef struct {
  ShapeStats stats;
  Diagonals  diagonals;
} ShapeFound;

#define SHAPE_THREADS 256
#define SHAPE_HEAD    0x8000u /* marks a head beside its slot: slots are below 2^14 */
#define SHAPE_WARPS   (SHAPE_THREADS / HYB_WARP)
#define SHAPE_BATCH   8    /* loads under way together */
#define SHAPE_TILES   4    /* tiles of a block that assigns classes */
#define SHAPE_SAMPLED 2048 /* rows from which on a sample is looked at first */

/* the nearest head at or before this thread in the block, as a thread number; last: SHAPE_WARPS ints of shared memory.
   Thread 0 is a head. */
static __device__ __forceinline__ int ShapeNearest(bool head, int *last)
{
  const int      t = (int)threadIdx.x, warp = t / HYB_WARP;
  const unsigned heads = __ballot_sync(HYB_FULL_MASK, head), mine = heads & (HybLanesBelow() | (1u << HybLane()));
  if (HybLane() == 0) last[warp] = heads ? warp * HYB_WARP + 31 - __clz((int)heads) : -1;
  __syncthreads();
  int nearest = mine ? warp * HYB_WARP + 31 - __clz((int)mine) : -1;
  for (int w = warp - 1; nearest < 0 && w >= 0; w--) nearest = last[w];
  return nearest;
}

/* few diagonals: slotof[r] = the slot of row r's word */
static __global__ __launch_bounds__(SHAPE_THREADS) void ShapeWords(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt capacity, int maxclasses, unsigned nslots, unsigned long long *keys, PetscInt *rows, HybRowClass *__restrict__ slotof, ShapeFound *found)
{
  HYB_DYNAMIC_SHARED(PetscInt, staged);
  HYB_SHARED(PetscInt, d, DIAGONALS_MAX);
  const int          n  = found->diagonals.n;
  const PetscCount   r0 = (PetscCount)blockIdx.x * SHAPE_THREADS, r1 = r0 + SHAPE_THREADS < m ? r0 + SHAPE_THREADS : m, r = r0 + threadIdx.x;
  unsigned long long word;

  if (n > DIAGONALS_MAX || __syncthreads_or(found->stats.overflow)) return;
  if (!DiagonalsWord<SHAPE_THREADS>(r0, r1, i, j, capacity, &found->diagonals, n, d, staged, &word)) return;
  const unsigned long long before = HybShflUp(HYB_FULL_MASK, word, 1);
  const bool               head   = r < r1 && (HybLane() == 0 || word != before);
  const unsigned           heads  = __ballot_sync(HYB_FULL_MASK, head) & (HybLanesBelow() | (1u << HybLane()));
  unsigned                 slot   = 0;
  if (head) slot = HybRowClassSlot(word + 1, (unsigned)(HybRowShapeMix(word) >> 20), (PetscInt)r, maxclasses, nslots, nslots, keys, rows, &found->stats.n, &found->stats.overflow);
  slot = HybShfl(HYB_FULL_MASK, slot, heads ? 31 - __clz((int)heads) : 0);
  if (r < r1) slotof[r] = (HybRowClass)slot;
}

/* slots become classes */
#define SHAPE_EACH 8
static __global__ __launch_bounds__(SHAPE_THREADS) void ShapeRename(PetscInt m, const HybRowClass *__restrict__ slotclass, HybRowClass *rowclass)
{
  const PetscCount r = ((PetscCount)blockIdx.x * SHAPE_THREADS + threadIdx.x) * SHAPE_EACH;
  if (r + SHAPE_EACH <= m) {
    HybVec<HybRowClass, SHAPE_EACH> v = HybLoadVec<SHAPE_EACH>(rowclass + r);
#pragma unroll
    for (int u = 0; u < SHAPE_EACH; u++) v.v[u] = slotclass[v.v[u]];
    HybStoreVec<SHAPE_EACH>(rowclass + r, v);
  } else {
    for (PetscCount q = r; q < m; q++) rowclass[q] = slotclass[rowclass[q]];
  }
}

static __global__ __launch_bounds__(SHAPE_THREADS) void ShapeSign(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt capacity, int maxclasses, unsigned nslots, unsigned long long *keys, PetscInt *rows, HybRowClass *__restrict__ slotof, ShapeStats *stats)
{
  HYB_DYNAMIC_SHARED(PetscInt, staged);
  HYB_SHARED(int, last, SHAPE_WARPS);
  HYB_SHARED(int, slots, SHAPE_THREADS);
  HYB_SHARED(int, stop, 1);
  const int        t  = (int)threadIdx.x;
  const PetscCount r0 = (PetscCount)blockIdx.x * SHAPE_THREADS, r1 = r0 + SHAPE_THREADS < m ? r0 + SHAPE_THREADS : m, r = r0 + t;
  const PetscInt   from = i[r0], len = i[r1] - from;
  const bool       fits  = len <= capacity;
  const PetscInt  *col   = j;
  PetscInt         start = 0, end = 0, before = 0;

  if (t == 0) *stop = stats->overflow;
  if (r < r1) {
    start  = i[r];
    end    = i[r + 1];
    before = t ? i[r - 1] : 0;
  }
  __syncthreads();
  if (*stop) return;
  if (fits) {
    for (PetscInt k = t; k < len; k += SHAPE_BATCH * SHAPE_THREADS) {
      PetscInt c[SHAPE_BATCH];
#pragma unroll
      for (int u = 0; u < SHAPE_BATCH; u++) c[u] = k + u * SHAPE_THREADS < len ? j[from + k + u * SHAPE_THREADS] : 0;
#pragma unroll
      for (int u = 0; u < SHAPE_BATCH; u++)
        if (k + u * SHAPE_THREADS < len) staged[k + u * SHAPE_THREADS] = c[u];
    }
    __syncthreads();
    col = staged;
    start -= from;
    end -= from;
    before -= from;
  }
  bool head = t == 0 || (r < r1 && end - start != start - before);
  if (t > 0 && r < r1 && !head) {
    const PetscInt last1 = end - start - 1; /* compared more than once rather than asked for */
    for (PetscInt k = 0; k <= last1 && !head; k += SHAPE_BATCH) {
      PetscInt differ = 0;
#pragma unroll
      for (int u = 0; u < SHAPE_BATCH; u++) {
        const PetscInt e = k + u < last1 ? k + u : last1;
        differ |= col[start + e] ^ (col[before + e] + 1);
      }
      head = differ != 0;
    }
  }
  if (head) {
    /* four chains of multiplications side by side */
    unsigned long long part[4] = {(unsigned long long)(end - start), 1, 2, 3};
    for (PetscInt k = start; k < end; k += 4) {
#pragma unroll
      for (int u = 0; u < 4; u++)
        if (k + u < end) part[u] = HybRowShapeMix(part[u] + (unsigned long long)(col[k + u] - (PetscInt)r) * 0x9e3779b97f4a7c15ull + 0xbf58476d1ce4e5b9ull);
    }
    unsigned long long h = HybRowShapeMix(part[0] + HybRowShapeMix(part[1] + HybRowShapeMix(part[2] + HybRowShapeMix(part[3]))));
    if (h == 0) h = 1;
    slots[t] = (int)HybRowClassSlot(h, (unsigned)(h >> 20), (PetscInt)r, maxclasses, nslots, nslots, keys, rows, &stats->n, &stats->overflow);
  }
  const int nearest = ShapeNearest(head, last); /* its barrier comes between the heads' slots and their readers */
  if (r < r1) slotof[r] = (HybRowClass)((unsigned)slots[nearest] | (head ? SHAPE_HEAD : 0u));
}

/* one block: numbers the classes */
#define SHAPE_NUMBER_THREADS 1024
static __global__ void ShapeNumber(unsigned nslots, const unsigned long long *__restrict__ keys, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ i, int maxclasses, HybRowClass *slotclass, PetscInt *list, PetscInt *representative, PetscInt *offsetptr, ShapeStats *stats)
{
  HYB_DYNAMIC_SHARED(PetscInt, first); /* of each listed slot, the smallest head */
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  HYB_SHARED(int, n, 1);
  const int t = (int)threadIdx.x;

  if (__syncthreads_or(stats->overflow || stats->n > maxclasses)) { /* all have read it before it is written */
    if (t == 0) stats->overflow = 1;
    return;
  }
  HybRowClassNumber<SHAPE_NUMBER_THREADS>(nslots, keys, rows, list, first, n, slotclass, representative);
  __syncthreads();
  PetscCount before = 0, longest = 0;
  for (int k0 = 0; k0 < *n; k0 += SHAPE_NUMBER_THREADS) {
    const int  k   = k0 + t;
    PetscCount len = 0, total;
    if (k < *n) len = i[representative[k] + 1] - i[representative[k]];
    const PetscCount at = HybBlockExclusiveSum<SHAPE_NUMBER_THREADS>(len, scratch, &total);
    if (k < *n) offsetptr[k] = (PetscInt)(before + at);
    before += total;
    longest = longest > len ? longest : len;
  }
  longest = HybBlockMax<SHAPE_NUMBER_THREADS>(longest, scratch);
  if (t == 0) {
    offsetptr[*n]    = (PetscInt)before;
    stats->noffsets  = before;
    stats->maxlength = longest;
  }
}

static __global__ void ShapeOffsets(const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ representative, const PetscInt *__restrict__ offsetptr, PetscInt *__restrict__ offset)
{
  const PetscInt r = representative[blockIdx.x], from = i[r], to = offsetptr[blockIdx.x], len = offsetptr[blockIdx.x + 1] - to;
  for (PetscInt k = (PetscInt)threadIdx.x; k < len; k += (PetscInt)blockDim.x) offset[to + k] = j[from + k] - r;
}

/* a block has several tiles, so that what it waits for is waited for once; a warp looks at a head at a time */
static __global__ __launch_bounds__(SHAPE_THREADS) void ShapeAssign(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybRowClass *__restrict__ slotclass, const PetscInt *__restrict__ offsetptr, const PetscInt *__restrict__ offset, HybRowClass *rowclass, PetscCount *unclassed)
{
  HYB_SHARED(int, last, SHAPE_TILES *SHAPE_WARPS);
  HYB_SHARED(int, classes, SHAPE_TILES *SHAPE_THREADS); /* of heads: the slot, then the class */
  HYB_SHARED(int, list, SHAPE_TILES *SHAPE_THREADS);
  HYB_SHARED(int, n, 1);
  const int        t  = (int)threadIdx.x;
  const PetscCount r0 = (PetscCount)blockIdx.x * (SHAPE_TILES * SHAPE_THREADS);
  unsigned         slot[SHAPE_TILES];

  if (t == 0) *n = 0;
#pragma unroll
  for (int q = 0; q < SHAPE_TILES; q++) slot[q] = r0 + q * SHAPE_THREADS + t < m ? rowclass[r0 + q * SHAPE_THREADS + t] : 0;
  __syncthreads();
#pragma unroll
  for (int q = 0; q < SHAPE_TILES; q++)
    if (slot[q] & SHAPE_HEAD) {
      list[HybAtomicAdd(n, 1)]       = q * SHAPE_THREADS + t;
      classes[q * SHAPE_THREADS + t] = (int)(slot[q] & ~SHAPE_HEAD);
    }
  __syncthreads();
  for (int h = t / HYB_WARP; h < *n; h += SHAPE_WARPS) {
    const int        p     = list[h];
    const PetscCount r     = r0 + p;
    const unsigned   c     = slotclass[classes[p]];
    const PetscInt   start = i[r], len = i[r + 1] - start, at = offsetptr[c];
    bool             same = len == offsetptr[c + 1] - at;
    for (PetscInt k = HybLane(); k < len && same; k += HYB_WARP) same = j[start + k] - (PetscInt)r == offset[at + k];
    same = __all_sync(HYB_FULL_MASK, same);
    if (HybLane() == 0) classes[p] = same ? (int)c : (int)HYB_ROWSHAPE_NONE;
  }
#pragma unroll
  for (int q = 0; q < SHAPE_TILES; q++) {
    /* its barrier comes between the heads' classes and their readers */
    const int        nearest = ShapeNearest((slot[q] & SHAPE_HEAD) != 0, last + q * SHAPE_WARPS);
    const PetscCount r       = r0 + q * SHAPE_THREADS + t;
    if (r < m) {
      const int c = classes[q * SHAPE_THREADS + nearest];
      rowclass[r] = (HybRowClass)c;
      if (c == (int)HYB_ROWSHAPE_NONE) (void)HybAtomicAdd(unclassed, 1);
    }
  }
}

/* Is a larger matrix regular? A block looks at SHAPE_THREADS rows spread over it: where less than half are like the row
   d before them, for every d up to 8, it is not. Rows of several unknowns to a point are like the row so many before.
   Four threads to a row, two of the eight each. */
static __device__ __forceinline__ bool ShapeRegular(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j)
{
  static_assert(DIAGONALS_SAMPLE == 4 * SHAPE_THREADS, "two of eight each");
  if (m < SHAPE_SAMPLED) return true;
  const int        d0    = 2 * ((int)threadIdx.x / SHAPE_THREADS);
  const PetscCount r     = 8 + (PetscCount)(m - 8) * (threadIdx.x % SHAPE_THREADS) / SHAPE_THREADS;
  const PetscInt   start = i[r], len = i[r + 1] - start, last = len ? j[start + len - 1] : 0;
  PetscInt         column[8], before[3];
  unsigned         like    = 0; /* which of the eight */
  bool             regular = false;
#pragma unroll
  for (int d = 0; d <= 2; d++) before[d] = i[r - d0 - d];
#pragma unroll
  for (int k = 0; k < 8; k++) column[k] = k < len ? j[start + k] : 0;
#pragma unroll
  for (int d = 1; d <= 2; d++) {
    const bool alike = before[d - 1] - before[d] == len;
    bool       same  = alike;
    PetscInt   c[8];
    /* all are asked for before the first is looked at */
    const PetscInt end = alike && len ? j[before[d] + len - 1] : last - d0 - d;
#pragma unroll
    for (int k = 0; k < 8; k++) c[k] = alike && k < len ? j[before[d] + k] : column[k] - d0 - d;
    same = same && (end + d0 + d == last || !len);
#pragma unroll
    for (int k = 0; k < 8; k++) same = same && c[k] + d0 + d == column[k];
    like |= (unsigned)same << (d0 + d);
  }
#pragma unroll
  for (int d = 1; d <= 8; d++)
    if (__syncthreads_count((like >> d) & 1) >= SHAPE_THREADS / 2) regular = true;
  return regular;
}

/* the first block looks for diagonals, the second whether the matrix is regular (both said already: again), the others
   empty the table */
static __global__ __launch_bounds__(DIAGONALS_SAMPLE) void ShapeSample(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int words, int again, unsigned nslots, unsigned long long *keys, PetscInt *rows, ShapeFound *found)
{
  if (blockIdx.x == 0) {
    if (words)
      DiagonalsSample(m, nnz, i, j, again, &found->diagonals);
    else if (threadIdx.x == 0) {
      found->diagonals.n        = DIAGONALS_MAX + 1;
      found->diagonals.nmissing = 0;
    }
  } else if (blockIdx.x == 1) {
    const bool regular = again || ShapeRegular(m, i, j);
    if (threadIdx.x == 0) {
      found->stats.overflow  = !regular;
      found->stats.n         = 0;
      found->stats.maxlength = 0;
      found->stats.noffsets  = 0;
    }
  } else {
    const unsigned s = (blockIdx.x - 2) * DIAGONALS_SAMPLE + threadIdx.x;
    if (s < nslots) {
      keys[s] = 0;
      rows[s] = PETSC_MAX_INT;
    }
  }
}

PetscErrorCode HybRowShapesFind(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt maxclasses, HybRowShapes *S)
{
  const PetscInt      m      = A->m;
  unsigned            nslots = 64;
  unsigned long long *keys;
  PetscInt           *rows, *list, *representative, *offsetptr;
  HybRowClass        *slotclass, *rowclass;
  ShapeFound         *found;
  struct { /* the beginning of *found */
    ShapeStats stats;
    int        n, nmissing;
  } host;
  const PetscCount blocks   = HybBlocks(m, SHAPE_THREADS);
  const PetscInt   capacity = DiagonalsCapacity(A, SHAPE_THREADS);
  PetscBool        words = (PetscBool)(HybDeviceTuning()->rowshape_words == 1), done = PETSC_FALSE;

  PetscFunctionBegin;
  memset(S, 0, sizeof(*S));
  PetscCheck(maxclasses >= 0 && maxclasses <= HYB_ROWSHAPE_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " classes of rows asked for, at most %d are possible", maxclasses, HYB_ROWSHAPE_MAX);
  if (m == 0 || maxclasses == 0) PetscFunctionReturn(PETSC_SUCCESS);
  while ((PetscInt)nslots < 4 * maxclasses) nslots *= 2;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*keys), &keys));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*rows), &rows));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*list), &list));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*slotclass), &slotclass));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 1, sizeof(*found), &found));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), m, sizeof(*rowclass), &rowclass));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), maxclasses, sizeof(*representative), &representative));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), maxclasses + 1, sizeof(*offsetptr), &offsetptr));

  for (int pass = 0; !done; pass++) {
    HYB_LAUNCH(ShapeSample, 2 + HybBlocks(nslots, DIAGONALS_SAMPLE), DIAGONALS_SAMPLE, 0, exec->stream, m, A->nnz, A->i, A->j, words, pass, nslots, keys, rows, found);
    if (words)
      HYB_LAUNCH(ShapeWords, blocks, SHAPE_THREADS, (size_t)capacity * sizeof(PetscInt), exec->stream, m, A->i, A->j, capacity, (int)maxclasses, nslots, keys, rows, rowclass, found);
    else
      HYB_LAUNCH(ShapeSign, blocks, SHAPE_THREADS, (size_t)capacity * sizeof(PetscInt), exec->stream, m, A->i, A->j, capacity, (int)maxclasses, nslots, keys, rows, rowclass, &found->stats);
    HYB_LAUNCH(ShapeNumber, 1, SHAPE_NUMBER_THREADS, (size_t)maxclasses * sizeof(PetscInt), exec->stream, nslots, keys, rows, A->i, (int)maxclasses, slotclass, list, representative, offsetptr, &found->stats);
    PetscCall(exec->backend->copy(exec, &host, found, sizeof(host), HYB_COPY_DEVICE_TO_HOST));
    done = !words || host.stats.overflow || (host.n <= DIAGONALS_MAX && host.nmissing == 0) ? PETSC_TRUE : PETSC_FALSE;
    /* diagonals that the sample had missed are known the next time; too many for a word: by signatures */
    if (!done && (pass == 2 || host.n > DIAGONALS_MAX || host.nmissing > DIAGONALS_MAX)) words = PETSC_FALSE;
  }

  if (host.stats.overflow) {
    PetscCall(HybArenaFree(keep, &rowclass, &representative, &offsetptr));
  } else {
    S->found          = PETSC_TRUE;
    S->nclasses       = (PetscInt)host.stats.n;
    S->maxlength      = (PetscInt)host.stats.maxlength;
    S->noffsets       = host.stats.noffsets;
    S->rowclass       = rowclass;
    S->representative = representative;
    S->offsetptr      = offsetptr;
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), S->noffsets, sizeof(*S->offset), &S->offset));
    PetscCall(HybArenaCalloc(keep, HYB_WORK(exec), 1, sizeof(*S->unclassed), &S->unclassed));
    HYB_LAUNCH(ShapeOffsets, S->nclasses, 64, 0, exec->stream, A->i, A->j, representative, offsetptr, S->offset);
    if (words)
      HYB_LAUNCH(ShapeRename, HybBlocks(m, SHAPE_THREADS * SHAPE_EACH), SHAPE_THREADS, 0, exec->stream, m, slotclass, rowclass);
    else
      HYB_LAUNCH(ShapeAssign, HybBlocks(m, SHAPE_TILES * SHAPE_THREADS), SHAPE_THREADS, 0, exec->stream, m, A->i, A->j, slotclass, offsetptr, S->offset, rowclass, S->unclassed);
  }
  PetscCall(HybArenaFree(work, &keys, &rows, &list, &slotclass, &found));
  PetscFunctionReturn(PETSC_SUCCESS);
}
