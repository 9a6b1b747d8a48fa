/*
  hash.cu: a pattern's hash on the device. Every block sums its share of the terms into one word; the host adds the few
  words.
*/
#include "csrops.cuh"
#include "hash.h"

static const int HashThreads = 256, HashBlocks = 528; /* at most four blocks for each of 132 multiprocessors */

static __global__ void PatternHash(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ aj, uint64_t *__restrict__ sums)
{
  const PetscCount stride = (PetscCount)gridDim.x * HashThreads, first = (PetscCount)blockIdx.x * HashThreads + threadIdx.x;
  uint64_t         h = 0;

  HYB_SHARED(uint64_t, partial, HashThreads / 32);
  for (PetscCount r = first; r < m; r += stride) h += HybHashRow((PetscInt)r, ai[r + 1]);
  for (PetscCount k = first; k < nnz; k += stride) h += HybHashEntry(k, aj[k]);
  h = HybBlockSum<HashThreads>(h, partial);
  if (threadIdx.x == 0) sums[blockIdx.x] = h;
}

PetscErrorCode HybCSRPatternHash_CUDA(const HybExec *x, HybArena *work, const HybCSR *A, uint64_t *hash)
{
  const int blocks = (int)PetscMin((PetscCount)HashBlocks, HybBlocks(PetscMax((PetscCount)A->m, A->nnz), HashThreads));
  uint64_t *sums, host[HashBlocks], h = HybHashMix((uint64_t)A->m) ^ HybHashMix((uint64_t)A->n << 1);

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, blocks, sizeof(*sums), &sums));
  HYB_LAUNCH(PatternHash, blocks, HashThreads, 0, x->stream, A->m, A->nnz, (const PetscInt *)A->i, (const PetscInt *)A->j, sums);
  PetscCall(x->backend->copy(x, host, sums, (size_t)blocks * sizeof(*sums), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  for (int b = 0; b < blocks; b++) h += host[b];
  PetscCall(HybArenaFree(work, &sums));
  *hash = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}
