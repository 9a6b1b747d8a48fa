/*
  Row shapes on the device.

  Idea. A signature of (column - row) over each row goes into a small global hash table, where each distinct signature keeps the smallest row that has it,
  its representative. Afterwards every row is compared, exactly, with the representative of its signature: a hash collision can cost a row its
  class, never its correctness. Most rows find their signature in the table already with a smaller representative, so they only read; these reads
  may be stale (first-level cache) without harm, since the atomics decide.

    for each row r (a sub-warp):            s = signature(r); slot = find or insert s; table[slot].row = min(table[slot].row, r); slotof[r] = slot
    one block:                              number the occupied slots by ascending representative; lengths -> offsetptr
    for each class (a block):               offset = columns - row of the representative
    for each row r (a sub-warp):            rowclass[r] = equal(r, representative) ? class(slotof[r]) : NONE

  A matrix with more distinct signatures than allowed is given up as soon as the table has too many: the remaining rows see the flag and leave.

  Memory: 2 bytes a row and the table. Work: two coalesced passes over i and j, 8 bytes a nonzero in all; measured 0.09 to 0.20 ms on an H200 for
  the stencil matrices of the benchmarks. Deterministic: the smallest row of a signature and the order of representatives do not depend on
  the order of insertion, and a table that overflows yields no classes at all.
*/
#include "rowshape.cuh"

typedef struct {
  PetscCount noffsets, maxlength;
  int        n;        /* distinct signatures inserted */
  int        overflow; /* more than allowed */
} ShapeStats;

static __device__ __forceinline__ unsigned long long ShapeMix(unsigned long long h)
{
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  return h;
}

template <int W>
static __global__ void ShapeSign(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybRowClass *__restrict__ colclass, int maxclasses, unsigned nslots, unsigned long long *keys, PetscInt *rows, HybRowClass *__restrict__ slotof, ShapeStats *stats)
{
  const int        lane   = HybLane() & (W - 1);
  const PetscCount stride = (PetscCount)gridDim.x * (blockDim.x / W);
  const PetscCount first  = ((PetscCount)blockIdx.x * blockDim.x + threadIdx.x) / W;
  const PetscCount bound  = (m + (PetscCount)(HYB_WARP / W) - 1) / (HYB_WARP / W) * (HYB_WARP / W); /* whole warps stay together */

  for (PetscCount r = first; r < bound; r += stride) {
    unsigned long long h     = 0;
    bool               none  = false;
    PetscInt           start = 0, end = 0;

    /* a stale look is harmless: it costs an iteration; and it comes from the first-level cache, not from one hot line of the second */
    if (__shfl_sync(HYB_FULL_MASK, stats->overflow, 0)) return;
    if (r < m) {
      start = i[r];
      end   = i[r + 1];
      for (PetscInt k = start + lane; k < end; k += W) {
        const PetscInt     col = j[k];
        unsigned long long z   = (unsigned long long)(col - (PetscInt)r) * 0x9e3779b97f4a7c15ull + (unsigned long long)(k - start + 1) * 0xbf58476d1ce4e5b9ull;
        if (colclass) {
          const HybRowClass c = colclass[col];
          none                = none || c == HYB_ROWSHAPE_NONE;
          z += (unsigned long long)(c + 1) * 0x94d049bb133111ebull;
        }
        h += ShapeMix(z);
      }
    }
    if (colclass) h += none ? 1ull << 63 : 0;
    h = HybSubwarpSum<W>(h);
    if (colclass) none = HybSubwarpMax<W>((int)none) != 0;
    if (lane == 0 && r < m) {
      unsigned slot = HYB_ROWSHAPE_NONE;
      if (!none) {
        h = ShapeMix(h + (unsigned long long)(end - start));
        if (h == 0) h = 1;
        slot = (unsigned)(h >> 20) & (nslots - 1);
        for (unsigned probe = 0; probe < nslots; probe++, slot = (slot + 1) & (nslots - 1)) {
          unsigned long long key = keys[slot];
          if (key == 0) {
            key = HybAtomicCAS(&keys[slot], 0ull, h);
            if (key == 0) {
              if (HybAtomicAdd(&stats->n, 1) >= maxclasses) HybAtomicOr(&stats->overflow, 1);
              key = h;
            }
          }
          if (key == h) {
            if (rows[slot] > (PetscInt)r) HybAtomicMin(&rows[slot], (PetscInt)r);
            break;
          }
        }
      }
      slotof[r] = (HybRowClass)slot;
    }
  }
}

/* one block: numbers the classes */
#define SHAPE_NUMBER_THREADS 1024
static __global__ void ShapeNumber(unsigned nslots, const unsigned long long *__restrict__ keys, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ i, int maxclasses, HybRowClass *slotclass, PetscInt *list, PetscInt *representative, PetscInt *offsetptr, ShapeStats *stats)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  HYB_SHARED(int, n, 1);
  const int t = (int)threadIdx.x;

  if (__syncthreads_or(stats->overflow || stats->n > maxclasses)) { /* all have read it before it is written */
    if (t == 0) stats->overflow = 1;
    return;
  }
  if (t == 0) *n = 0;
  __syncthreads();
  for (unsigned s = (unsigned)t; s < nslots; s += SHAPE_NUMBER_THREADS) {
    slotclass[s] = (HybRowClass)HYB_ROWSHAPE_NONE;
    if (keys[s]) list[HybAtomicAdd(n, 1)] = (PetscInt)s; /* in any order: only the rank below counts */
  }
  __syncthreads();
  for (int k = t; k < *n; k += SHAPE_NUMBER_THREADS) {
    const PetscInt mine = rows[list[k]];
    int            rank = 0;
    for (int q = 0; q < *n; q++) rank += rows[list[q]] < mine;
    slotclass[list[k]]   = (HybRowClass)rank;
    representative[rank] = mine;
  }
  __syncthreads();
  PetscCount before = 0, longest = 0;
  for (int k0 = 0; k0 < *n; k0 += SHAPE_NUMBER_THREADS) {
    const int  k = k0 + t;
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

template <int W>
static __global__ void ShapeAssign(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybRowClass *__restrict__ colclass, int nclasses, const HybRowClass *__restrict__ slotclass, const PetscInt *__restrict__ representative, const PetscInt *__restrict__ offsetptr, const PetscInt *__restrict__ offset, HybRowClass *rowclass, PetscInt *count)
{
  HYB_DYNAMIC_SHARED(int, histogram);
  const int        lane   = HybLane() & (W - 1);
  const PetscCount stride = (PetscCount)gridDim.x * (blockDim.x / W);
  const PetscCount first  = ((PetscCount)blockIdx.x * blockDim.x + threadIdx.x) / W;
  const PetscCount bound  = (m + (PetscCount)(HYB_WARP / W) - 1) / (HYB_WARP / W) * (HYB_WARP / W);
  int              last = -1, run = 0; /* rows of one class follow each other mostly */

  for (int k = (int)threadIdx.x; k < nclasses; k += (int)blockDim.x) histogram[k] = 0;
  __syncthreads();
  for (PetscCount r = first; r < bound; r += stride) {
    unsigned c    = HYB_ROWSHAPE_NONE;
    int      same = 1;
    if (r < m) {
      const unsigned slot = rowclass[r];
      if (slot != HYB_ROWSHAPE_NONE) c = slotclass[slot];
      if (c != HYB_ROWSHAPE_NONE) {
        const PetscInt start = i[r], len = i[r + 1] - start, at = offsetptr[c];
        if (len != offsetptr[c + 1] - at) same = 0;
        else {
          const PetscInt rep = colclass ? representative[c] : 0;
          for (PetscInt k = lane; k < len; k += W) {
            const PetscInt col = j[start + k], off = offset[at + k];
            same &= col - (PetscInt)r == off;
            if (colclass && same) same &= colclass[col] == colclass[rep + off];
          }
        }
      }
    }
    same = HybSubwarpMin<W>(same);
    if (!same) c = HYB_ROWSHAPE_NONE;
    if (lane == 0 && r < m) {
      rowclass[r] = (HybRowClass)c; /* it was the slot; this row is ours alone, and every lane has read it before the reduction */
      if ((int)c != last) {
        if (run) HybAtomicAdd(&histogram[last], run);
        last = c == HYB_ROWSHAPE_NONE ? -1 : (int)c;
        run  = 0;
      }
      run += last >= 0;
    }
  }
  if (run) HybAtomicAdd(&histogram[last], run);
  __syncthreads();
  for (int k = (int)threadIdx.x; k < nclasses; k += (int)blockDim.x)
    if (histogram[k]) HybAtomicAdd(&count[k], histogram[k]);
}

static __global__ void ShapeInitialize(unsigned nslots, unsigned long long *keys, PetscInt *rows, ShapeStats *stats)
{
  const unsigned s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s < nslots) {
    keys[s] = 0;
    rows[s] = PETSC_MAX_INT;
  }
  if (s == 0) {
    stats->n         = 0;
    stats->overflow  = 0;
    stats->maxlength = 0;
    stats->noffsets  = 0;
  }
}

#define SHAPE_THREADS 256
#define SHAPE_BY_WIDTH(w, CALL) \
  do { \
    switch (w) { \
    case 2: { CALL(2); } break; \
    case 4: { CALL(4); } break; \
    case 8: { CALL(8); } break; \
    case 16: { CALL(16); } break; \
    default: { CALL(32); } break; \
    } \
  } while (0)

PetscErrorCode HybRowShapesFind(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybRowClass *colclass, PetscInt maxclasses, HybRowShapes *S)
{
  const PetscInt      m    = A->m;
  const PetscCount    mean = m > 0 ? A->nnz / m : 0;
  unsigned            nslots = 64;
  unsigned long long *keys;
  PetscInt           *rows, *list, *representative, *offsetptr;
  HybRowClass        *slotclass, *rowclass;
  ShapeStats         *devstats, stats;
  size_t              limit;
  int                 sms, w;
  PetscCount          blocks;

  PetscFunctionBegin;
  memset(S, 0, sizeof(*S));
  PetscCheck(maxclasses >= 0 && maxclasses <= HYB_ROWSHAPE_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%" PetscInt_FMT " classes of rows asked for, at most %d are possible", maxclasses, HYB_ROWSHAPE_MAX);
  if (m == 0 || maxclasses == 0) PetscFunctionReturn(PETSC_SUCCESS);
  while ((PetscInt)nslots < 4 * maxclasses) nslots *= 2;
  for (w = 2; w < 32 && 2 * w <= mean; w *= 2) { }
  PetscCall(HybDeviceLimits(&limit, &sms));
  /* a grid that fills the device once or twice over: the table's reads then come from the first-level cache, and counts are flushed seldom */
  blocks = PetscMin(HybBlocks((PetscCount)m * w, SHAPE_THREADS), (PetscCount)sms * 16);

  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*keys), &keys));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*rows), &rows));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*list), &list));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nslots, sizeof(*slotclass), &slotclass));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 1, sizeof(*devstats), &devstats));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), m, sizeof(*rowclass), &rowclass));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), maxclasses, sizeof(*representative), &representative));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), maxclasses + 1, sizeof(*offsetptr), &offsetptr));

  HYB_LAUNCH(ShapeInitialize, HybBlocks(nslots, SHAPE_THREADS), SHAPE_THREADS, 0, exec->stream, nslots, keys, rows, devstats);
#define CALL(W) HYB_LAUNCH((ShapeSign<W>), blocks, SHAPE_THREADS, 0, exec->stream, m, A->i, A->j, colclass, (int)maxclasses, nslots, keys, rows, rowclass, devstats)
  SHAPE_BY_WIDTH(w, CALL);
#undef CALL
  HYB_LAUNCH(ShapeNumber, 1, SHAPE_NUMBER_THREADS, 0, exec->stream, nslots, keys, rows, A->i, (int)maxclasses, slotclass, list, representative, offsetptr, devstats);
  PetscCall(exec->backend->copy(exec, &stats, devstats, sizeof(stats), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->sync(exec));

  if (stats.overflow) {
    PetscCall(HybArenaFree(keep, &rowclass));
    PetscCall(HybArenaFree(keep, &representative));
    PetscCall(HybArenaFree(keep, &offsetptr));
  } else {
    S->found          = PETSC_TRUE;
    S->nclasses       = (PetscInt)stats.n;
    S->maxlength      = (PetscInt)stats.maxlength;
    S->noffsets       = stats.noffsets;
    S->rowclass       = rowclass;
    S->representative = representative;
    S->offsetptr      = offsetptr;
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), S->noffsets, sizeof(*S->offset), &S->offset));
    PetscCall(HybArenaCalloc(keep, HYB_WORK(exec), S->nclasses, sizeof(*S->count), &S->count));
    HYB_LAUNCH(ShapeOffsets, S->nclasses, 64, 0, exec->stream, A->i, A->j, representative, offsetptr, S->offset);
#define CALL(W) HYB_LAUNCH((ShapeAssign<W>), blocks, SHAPE_THREADS, S->nclasses * sizeof(int), exec->stream, m, A->i, A->j, colclass, (int)S->nclasses, slotclass, representative, offsetptr, S->offset, rowclass, S->count)
    SHAPE_BY_WIDTH(w, CALL);
#undef CALL
  }
  PetscCall(HybArenaFree(work, &keys));
  PetscCall(HybArenaFree(work, &rows));
  PetscCall(HybArenaFree(work, &list));
  PetscCall(HybArenaFree(work, &slotclass));
  PetscCall(HybArenaFree(work, &devstats));
  PetscFunctionReturn(PETSC_SUCCESS);
}
