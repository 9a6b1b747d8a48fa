/*
  hashadd.cuh: the products of a row of C added at their places, for the phases of hashrows.cu that compute values.

  Rows of B come in the order of A's entries, lanes across a row of B, which has each column once. What does not depend
  on the order is done for several rows together:

    stage: where the rows of B begin and end, and A's values, of as many entries of A as the group has lanes, in shared
    memory, so that no entry of B waits for more than one load
    round: a sub-warp has two rows, each warp of a block one or two rows of its own. Their entries are fetched while
    the round before is added; their places are looked up; then they are added, row after row, and the group
    synchronises behind each

  A warp of a block so waits for the others' additions, but not for their loads and look-ups, of which there is as much
  for a short row of B as for one of a warp's width. What a row of B has beyond two pieces of a warp's width, all threads
  add.
*/
#ifndef AIJHYBRIDGPU_HASHADD_CUH
#define AIJHYBRIDGPU_HASHADD_CUH
#include "hashtable.cuh"

/* entries of A that a group of N stages, and all groups of a block */
#define HASH_STAGED(N)       ((N) <= HYB_WARP ? (N) : HASH_STAGE)
#define HASH_STAGED_BLOCK(N) ((N) <= HYB_WARP ? HybGroup<N>::THREADS : HASH_STAGE)

/* of a block. shift, where places are known: from an entry of B to the product that it is of */
struct HashStage {
  PetscInt  *begin, *end, *shift;
  HybScalar *value;
};

/* PLANNED: places are read, not looked up */
template <int N, bool PLANNED>
struct HashBatch {
  static constexpr int LANES  = N < HYB_WARP ? N : HYB_WARP; /* across a row of B */
  static constexpr int WARPS  = N / LANES;
  static constexpr int PIECES = N > 4 ? 2 : 1;
  static constexpr int ROWS   = WARPS > 4 || HASH_BATCH < PIECES ? 1 : HASH_BATCH / PIECES; /* of a warp, or sub-warp */
  static constexpr int ROUND  = WARPS * ROWS;
  PetscInt             p[ROWS], end[ROWS], shift[ROWS], at[ROWS][PIECES]; /* at: a column, then its place */
  HybScalar            b[ROWS][PIECES];

  static __device__ __forceinline__ int warp()
  {
    return WARPS > 1 ? HybGroup<N>::rank() / LANES : 0;
  }
  /* of the round that begins with entry k of the n that are staged; entry 0 of B stands in where a row has none, so
     that no load has a condition */
  __device__ __forceinline__ void fetch(const HashArgs &x, const HashStage &s, int k, int n, const unsigned short *places)
  {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
      const int e = k + u * WARPS + warp();

      p[u]     = e < n ? s.begin[e] + (HybGroup<N>::rank() & (LANES - 1)) : 0;
      end[u]   = e < n ? s.end[e] : 0;
      shift[u] = PLANNED && e < n ? s.shift[e] : 0;
#pragma unroll
      for (int h = 0; h < PIECES; h++) {
        const bool     in = p[u] + h * LANES < end[u];
        const PetscInt q  = in ? p[u] + h * LANES : 0;

        at[u][h] = PLANNED ? (PetscInt)places[in ? q + shift[u] : 0] : x.bj[q];
        b[u][h]  = x.ba[q];
      }
    }
  }
  __device__ __forceinline__ void find(const HashTable &t)
  {
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
#pragma unroll
      for (int h = 0; h < PIECES; h++) {
        if (!PLANNED && p[u] + h * LANES < end[u]) at[u][h] = HashPlace(t, at[u][h]);
      }
    }
  }
  __device__ __forceinline__ void add(int u, const HybScalar &av, HybScalar *acc) const
  {
#pragma unroll
    for (int h = 0; h < PIECES; h++) {
      if (p[u] + h * LANES < end[u]) acc[at[u][h]] = HybMulAdd(av, b[u][h], acc[at[u][h]]);
    }
  }
};

/* whole: the stage of a block; places: of the row, total of them, where they are known */
template <int N, bool PLANNED>
static __device__ __forceinline__ void HashAccumulate(const HashArgs &x, const HashTable &t, PetscInt abegin, PetscInt aend, HybScalar *acc, const HashStage &whole, const unsigned short *places, PetscInt total)
{
  using G               = HybGroup<N>;
  using Batch           = HashBatch<N, PLANNED>;
  constexpr int   STAGE = HASH_STAGED(N);
  const int       own   = G::index() * STAGE;
  const HashStage s     = {whole.begin + own, whole.end + own, PLANNED ? whole.shift + own : nullptr, whole.value + own};

  for (PetscInt k0 = abegin; k0 < aend; k0 += STAGE) {
    const int n = (int)HybMin()((PetscInt)STAGE, aend - k0);
    Batch     now, next;

    for (int k = G::rank(); k < n; k += N) {
      if (PLANNED) {
        const PetscInt from = x.from[k0 + k], off = x.off[k0 + k];

        s.begin[k] = from;
        s.end[k]   = from + (k0 + k + 1 < aend ? x.off[k0 + k + 1] : total) - off;
        s.shift[k] = off - from;
      } else {
        const PetscInt c = x.aj[k0 + k];

        s.begin[k] = x.bi[c];
        s.end[k]   = x.bi[c + 1];
      }
      s.value[k] = x.aa[k0 + k];
    }
    G::sync();
    next.fetch(x, s, 0, n, places);
    for (int k = 0; k < n; k += Batch::ROUND) {
      now = next;
      next.fetch(x, s, k + Batch::ROUND, n, places);
      now.find(t);
#pragma unroll
      for (int u = 0; u < Batch::ROWS; u++) {
        for (int w = 0; w < Batch::WARPS; w++) {
          const int e = k + u * Batch::WARPS + w;

          if (e < n) {
            const PetscInt begin = s.begin[e], end = s.end[e];
            const HybScalar av = s.value[e];

            if (Batch::warp() == w) now.add(u, av, acc);
            for (PetscInt q = begin + Batch::PIECES * Batch::LANES + G::rank(); q < end; q += N) {
              const PetscInt place = PLANNED ? (PetscInt)places[q + s.shift[e]] : HashPlace(t, x.bj[q]);

              acc[place] = HybMulAdd(av, x.ba[q], acc[place]);
            }
            G::sync();
          }
        }
      }
    }
  }
}

#endif
