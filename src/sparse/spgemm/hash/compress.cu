/*
  compress.cu: B by rows into pairs of (block of 32 columns, mask), for hashrows.cu. Sub-warps take a row each, blocks
  the few long ones. The pairs of row r stand from where its entries do in B, so there is no scan.
*/
#include "hashargs.cuh"

/*
  B by rows into pairs. The lane of a block's first column gathers the mask.
*/
template <typename G, int N>
static __device__ __forceinline__ void HashCompressRow(PetscInt row, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, HashPair *__restrict__ pairs, PetscInt *__restrict__ npairs, unsigned *scratch)
{
  const PetscInt begin = bi[row], end = bi[row + 1];
  unsigned       n = 0;

  for (PetscInt p0 = begin; p0 < end; p0 += N) {
    const PetscInt p     = p0 + G::rank();
    bool           head  = false;
    unsigned       block = 0, total, place;

    if (p < end) {
      block = (unsigned)(bj[p] >> 5);
      head  = p == begin || (unsigned)(bj[p - 1] >> 5) != block;
    }
    place = G::exclusiveSum(head ? 1u : 0u, scratch, &total);
    if (head) {
      unsigned mask = 0;

      for (PetscInt q = p; q < end && (unsigned)(bj[q] >> 5) == block; q++) mask |= 1u << (bj[q] & 31);
      pairs[begin + n + place] = {block, mask};
    }
    n += total;
  }
  if (G::rank() == 0) npairs[row] = (PetscInt)n;
}

template <int N>
__global__ void __launch_bounds__(128) HashCompressKernel(PetscInt m, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, HashPair *__restrict__ pairs, PetscInt *__restrict__ npairs, PetscInt *over)
{
  using G              = HybGroup<N>;
  const PetscCount row = (PetscCount)blockIdx.x * G::GROUPS + G::index();

  if (row >= m) return;
  if (bi[row + 1] - bi[row] > HASH_LONGROW) {
    /* no list: the products name no such row */
    if (G::rank() == 0 && over) over[1 + HybAtomicAdd(over, 1)] = (PetscInt)row;
    return;
  }
  HashCompressRow<G, N>((PetscInt)row, bi, bj, pairs, npairs, nullptr);
}

__global__ void __launch_bounds__(512) HashCompressLongKernel(const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, HashPair *__restrict__ pairs, PetscInt *__restrict__ npairs, const PetscInt *over)
{
  HYB_SHARED(unsigned, scratch, HYB_WARP);

  for (PetscInt q = (PetscInt)blockIdx.x; q < over[0]; q += (PetscInt)gridDim.x) HashCompressRow<HybGroup<512>, 512>(over[1 + q], bi, bj, pairs, npairs, scratch);
}

/* B as pairs, where its rows are read often enough to pay for it and the memory is there */
PetscErrorCode HybHashCompress(HybSpGEMM *mm, const HybCSR *B, HybHashRows *hash)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount mean = B->m ? B->nnz / B->m : 0;
  PetscInt        *over = NULL, *npairs;
  HashPair        *pairs;

  PetscFunctionBegin;
  if (mm->stats.products / 4 < B->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (B->nnz > HASH_ASK) {
    size_t spare;

    PetscCall(HybMemorySpare(exec, &spare));
    if ((size_t)B->nnz > spare / 16) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, B->nnz * (PetscCount)sizeof(HashPair) + B->m * (PetscCount)sizeof(PetscInt), 1, &pairs));
  npairs = (PetscInt *)(pairs + B->nnz);
  if (mm->stats.maxbrow > HASH_LONGROW) {
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, B->nnz / HASH_LONGROW + 2, sizeof(PetscInt), &over));
    PetscCall(exec->backend->zero(exec, over, sizeof(PetscInt)));
  }
  if (mean <= 8)
    HYB_LAUNCH((HashCompressKernel<8>), HybBlocks(B->m, 16), 128, 0, exec->stream, B->m, B->i, B->j, pairs, npairs, over);
  else if (mean <= 24)
    HYB_LAUNCH((HashCompressKernel<16>), HybBlocks(B->m, 8), 128, 0, exec->stream, B->m, B->i, B->j, pairs, npairs, over);
  else
    HYB_LAUNCH((HashCompressKernel<32>), HybBlocks(B->m, 4), 128, 0, exec->stream, B->m, B->i, B->j, pairs, npairs, over);
  if (mm->stats.maxbrow > HASH_LONGROW) HYB_LAUNCH(HashCompressLongKernel, PetscMin(B->nnz / HASH_LONGROW, 256), 512, 0, exec->stream, B->i, B->j, pairs, npairs, over);
  PetscCall(HybArenaFree(&mm->work, &over));
  hash->pairs  = pairs;
  hash->npairs = npairs;
  PetscFunctionReturn(PETSC_SUCCESS);
}
