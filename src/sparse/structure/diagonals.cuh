/*
  diagonals.cuh: the rows of a matrix of few diagonals (offset = column - row) as words, with a bit for each of the
  diagonals that a row has an entry on. What transposes and classes of rows share; device code only.

  The diagonals come from a sample of the rows. The pass that makes the words looks at every entry, and where it meets a
  diagonal that the sample had missed, that goes into a table; then sample and pass are repeated, and know all. Two rows
  are alike exactly when their words are. A word's diagonals ascend with its bits, so the entry of a row on diagonal k
  is at the place that the number of bits below k says.
*/
#ifndef AIJHYBRIDGPU_DIAGONALS_CUH
#define AIJHYBRIDGPU_DIAGONALS_CUH

#include "../device/hybdevice.cuh"

#define DIAGONALS_MAX      63 /* a word is never all ones */
#define DIAGONALS_MISSING  256
#define DIAGONALS_SAMPLE   1024 /* threads of the block that samples, one to a row */
#define DIAGONALS_FIRST    16   /* entries of a row of the first warp's that are looked at before all others */
#define DIAGONALS_PERENTRY 8    /* as many diagonals to an entry of a mean row are worth it */
#define DIAGONALS_NONE     PETSC_MIN_INT

typedef struct {
  int      n;                          /* distinct diagonals; more than DIAGONALS_MAX: too many, and none is listed */
  int      nmissing;                   /* in the table below */
  PetscInt offset[DIAGONALS_MAX];      /* ascending */
  PetscInt missing[DIAGONALS_MISSING]; /* a hash table of the diagonals that rows have beside these */
} Diagonals;

/* true if it was not there, or if the table is so full there that no place is found soon */
static __device__ __forceinline__ bool DiagonalsInsert(PetscInt *table, PetscInt o)
{
  unsigned slot = ((unsigned)o * 0x9e3779b9u) >> 24;
  static_assert(DIAGONALS_MISSING == 256, "the hash has 8 bits");
  for (int probe = 0; probe < 16; probe++, slot = (slot + 1) & (DIAGONALS_MISSING - 1)) {
    const PetscInt there = HybAtomicCAS(&table[slot], DIAGONALS_NONE, o);
    if (there == DIAGONALS_NONE) return true;
    if (there == o) return false;
  }
  return true;
}

/* One block of DIAGONALS_SAMPLE threads lists the diagonals of a sample of the rows, or (again) those listed and those
   that were missing */
static __device__ __forceinline__ void DiagonalsSample(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int again, Diagonals *D)
{
  HYB_SHARED(PetscInt, table, DIAGONALS_MISSING);
  HYB_SHARED(PetscInt, list, DIAGONALS_MAX);
  HYB_SHARED(int, total, 2);
  const int t = (int)threadIdx.x;

  for (int k = t; k < DIAGONALS_MISSING; k += DIAGONALS_SAMPLE) table[k] = DIAGONALS_NONE;
  if (t < 2) total[t] = 0;
  __syncthreads();
  if (again) {
    if (t < DIAGONALS_MAX && t < D->n && DiagonalsInsert(table, D->offset[t])) (void)HybAtomicAdd(&total[0], 1);
    if (t < DIAGONALS_MISSING && D->missing[t] != DIAGONALS_NONE && DiagonalsInsert(table, D->missing[t])) (void)HybAtomicAdd(&total[0], 1);
  } else {
    /* anywhere, for a step of constant length might meet one face of a grid only */
    const unsigned   scattered = (unsigned)(t + 1) * 0x9e3779b9u;
    const PetscCount random    = (PetscCount)((double)scattered * (1. / 4294967296.) * (double)m);
    const PetscInt   r         = m <= DIAGONALS_SAMPLE ? t : (PetscInt)(random < m ? random : m - 1);
    const PetscInt   start = r < m ? i[r] : 0, len = r < m ? i[r + 1] - start : 0, longest = HybSubwarpMax<HYB_WARP>(len);

    if (len > DIAGONALS_MAX) (void)HybAtomicAdd(&total[0], (int)(DIAGONALS_MAX + 1));
    /* Where there are too many diagonals the first entries of one warp's rows tell, and all warps together would fight
       for places that there are not */
    for (int turn = 0; turn < 2; turn++) {
      const PetscInt first = turn && t < HYB_WARP ? DIAGONALS_FIRST : 0, last = turn ? longest : t < HYB_WARP ? HybMin()(longest, (PetscInt)DIAGONALS_FIRST)
                                                                                                              : 0;

      for (PetscInt k0 = first; k0 < last; k0 += 8) {
        PetscInt o[8];
        int      found = HybLane() == 0 ? HybAtomicAdd(&total[0], 0) : 0;
        if (HybShfl(HYB_FULL_MASK, found, 0) > DIAGONALS_MAX) break;
#pragma unroll
        for (int u = 0; u < 8; u++) o[u] = k0 + u < len ? j[start + k0 + u] - r : DIAGONALS_NONE;
#pragma unroll
        for (int u = 0; u < 8; u++) {
          /* most rows have what their neighbour in the warp has */
          const PetscInt before = HybShflUp(HYB_FULL_MASK, o[u], 1);
          if (o[u] != DIAGONALS_NONE && (HybLane() == 0 || before != o[u]) && *(volatile int *)total <= DIAGONALS_MAX && DiagonalsInsert(table, o[u])) (void)HybAtomicAdd(&total[0], 1);
        }
      }
      __syncthreads();
    }
  }
  __syncthreads();
  const int  n    = total[0];
  const bool many = n > DIAGONALS_MAX || (PetscCount)n * m > DIAGONALS_PERENTRY * nnz;
  if (t == 0) {
    D->n        = many ? DIAGONALS_MAX + 1 : n;
    D->nmissing = 0;
  }
  if (many) return;
  for (int k = t; k < DIAGONALS_MISSING; k += DIAGONALS_SAMPLE)
    /* in any order: they are ranked below */
    if (table[k] != DIAGONALS_NONE) list[HybAtomicAdd(&total[1], 1)] = table[k];
  __syncthreads();
  if (total[1] != n) { /* some found no place in the table */
    if (t == 0) D->n = DIAGONALS_MAX + 1;
    return;
  }
  for (int k = t; k < DIAGONALS_MISSING; k += DIAGONALS_SAMPLE) D->missing[k] = DIAGONALS_NONE;
  if (t < n) {
    const PetscInt o    = list[t];
    int            rank = 0;
    for (int q = 0; q < n; q++) rank += list[q] < o;
    D->offset[rank] = o;
  }
}

static __device__ __forceinline__ int DiagonalsBits(unsigned word)
{
  return __popc(word);
}

static __device__ __forceinline__ int DiagonalsBits(unsigned long long word)
{
  return __popcll(word);
}

/* the word of a row with an entry on each of n diagonals */
static __device__ __forceinline__ unsigned long long DiagonalsAll(int n)
{
  return (1ull << n) - 1;
}

/*
  The word of this thread's row r0 + threadIdx.x, where that is below r1 (else 0); a block has the THREADS rows from r0
  on. n = D->n; d: DIAGONALS_MAX integers of shared memory, which receive the diagonals; staged: capacity integers. All
  threads take part; false, for all of them: so many diagonals are missing that it is no use.
*/
template <int THREADS>
static __device__ __forceinline__ bool DiagonalsWord(PetscCount r0, PetscCount r1, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt capacity, Diagonals *D, int n, PetscInt *d, PetscInt *staged, unsigned long long *word)
{
  HYB_SHARED(int, stop, 1);
  const int          t    = (int)threadIdx.x;
  const PetscCount   r    = r0 + t;
  const PetscInt     from = i[r0], len = i[r1] - from;
  const bool         fits  = len <= capacity;
  PetscInt           start = 0, end = 0;
  unsigned long long mine = 0;

  if (t == 0) *stop = D->nmissing > DIAGONALS_MAX;
  if (r < r1) {
    start = i[r] - from;
    end   = i[r + 1] - from;
  }
  if (t < n) d[t] = D->offset[t];
  if (fits) {
    constexpr int BATCH = 8; /* loads under way together, also where a row has fewer entries */
    for (PetscInt k = t; k < len; k += BATCH * THREADS) {
      PetscInt c[BATCH];
#pragma unroll
      for (int u = 0; u < BATCH; u++) c[u] = k + u * THREADS < len ? HybLoadStream(j + from + k + u * THREADS) : 0;
#pragma unroll
      for (int u = 0; u < BATCH; u++)
        if (k + u * THREADS < len) staged[k + u * THREADS] = c[u];
    }
  }
  __syncthreads();
  if (*stop) return false;
  const auto walk = [&](const PetscInt *col) {
    /* most warps have nothing but rows with an entry on each diagonal */
    if (__all_sync(HYB_FULL_MASK, r < r1 && end - start == n)) {
      PetscInt other = 0;
#pragma unroll 4
      for (int k = 0; k < n; k++) other |= (col[start + k] - (PetscInt)r) ^ d[k];
      if (__all_sync(HYB_FULL_MASK, other == 0)) {
        mine = DiagonalsAll(n);
        return;
      }
    }
    PetscInt q = start;
    for (int k = 0; k < n; k++) {
      if (q < end && col[q] - (PetscInt)r == d[k]) {
        mine |= 1ull << k;
        q++;
      }
    }
    /* what is left begins with a diagonal that is missing, or with a column once more or out of order: words do not
       serve such rows, however often diagonals are listed */
    if (end - start > DIAGONALS_MAX)
      (void)HybAtomicAdd(&D->nmissing, (int)(DIAGONALS_MAX + 1));
    else {
      const PetscInt rest = q;
      for (; q < end && HybLoadShared(&D->nmissing) <= DIAGONALS_MAX; q++) {
        const PetscInt o = col[q] - (PetscInt)r;
        int            k = 0;
        while (k < n && d[k] != o) k++;
        if (k < n ? q == rest : DiagonalsInsert(D->missing, o)) (void)HybAtomicAdd(&D->nmissing, 1);
      }
    }
  };
  if (fits)
    walk(staged);
  else
    walk(j + from);
  *word = mine;
  return true;
}

/* room to stage THREADS mean rows and some more, never above 96 KiB; larger tiles are read where they are */
static inline PetscInt DiagonalsCapacity(const HybCSR *A, int threads)
{
  const PetscCount mean = A->m > 0 ? A->nnz / A->m : 0;

  return (PetscInt)PetscMin((PetscCount)(98304 / sizeof(PetscInt)), threads * (mean + mean / 4 + 2));
}

#endif
