/*
  rowblocksample.cuh: which sizes of whole blocks (rowblocks.cuh) do some thousand rows leave? Device code, for kernels
  that look at a matrix for more than this.
*/
#ifndef AIJHYBRIDGPU_ROWBLOCKSAMPLE_CUH
#define AIJHYBRIDGPU_ROWBLOCKSAMPLE_CUH
#include "rowblocks.cuh"
#include "rowops.cuh"

#define ROWBLOCKS_SAMPLED 4096 /* rows, or a few more */
#define ROWBLOCKS_NARROW  27   /* entries of a mean row of usual stencils of one unknown at most */

/* rows 0, step, 2 step, ...: how many of them */
static inline PetscInt RowBlocksSampled(PetscInt m, PetscInt *step)
{
  *step = m > ROWBLOCKS_SAMPLED ? (m / ROWBLOCKS_SAMPLED) | 1 : 1;
  return m ? (m - 1) / *step + 1 : 0;
}

/* More entries to a row than such stencils have: where numbers allow blocks these are likely, and who looks for more
   than blocks had better know first */
static inline bool RowBlocksLikely(const HybCSR *A)
{
  return A->nnz / ROWBLOCKS_NARROW > A->m;
}

/* Sets bit bs of *wrong where one of the rows is not part of whole blocks of bs. By block `block` of `blocks`, W lanes
   a row. */
template <int W>
static __device__ __forceinline__ void RowBlocksSampleRows(PetscInt rows, PetscInt step, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, int candidates, PetscCount block, PetscCount blocks, int *wrong)
{
  const int lane = HybLane() & (W - 1), each = (int)blockDim.x / W;
  /* warps stay together */
  const PetscCount bound = ((PetscCount)rows + HYB_WARP / W - 1) / (HYB_WARP / W) * (HYB_WARP / W);

  for (PetscCount s = block * each + threadIdx.x / W; s < bound; s += blocks * each) {
    const PetscCount r   = s * step;
    int              bad = 0;

    if (s < rows) {
      const PetscInt start = i[r], len = i[r + 1] - start;

      HybEachCase(RowBlocksSizes(), [&](auto BS) {
        if (candidates & (1 << BS)) {
          const PetscInt lead = i[r / BS * BS], leadlen = i[r / BS * BS + 1] - lead;
          if (len % BS || len != leadlen)
            bad |= 1 << BS;
          else
            for (PetscInt k = lane; k < len; k += W) {
              const PetscInt c = j[start + k];
              if (c != j[lead + k] || c % BS != k % BS || (k % BS && j[start + k - 1] != c - 1)) bad |= 1 << BS;
            }
        }
      });
    }
    if (bad & ~*wrong) HybAtomicOr(wrong, bad);
  }
}

#endif
