/*
  hash.cu: a pattern's hash on the device. Every block sums its share of the terms into one word; the host adds the few
  words.
*/
#include "csrops.cuh"
#include "hash.h"

/* at most about four blocks for each of 132 multiprocessors; of so many matrices together */
static const int HashThreads = 256, HashBlocks = 512, HashMost = 6;

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

PetscErrorCode HybCSRPatternHash_CUDA(const HybExec *x, HybArena *work, PetscInt n, const HybCSR *const A[], uint64_t hash[])
{
  uint64_t *sums, host[HashMost * HashBlocks];
  int       at[HashMost + 1] = {0};

  PetscFunctionBegin;
  PetscCheck(n <= HashMost, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Hashes of %" PetscInt_FMT " patterns; %d at most", n, HashMost);
  for (PetscInt k = 0; k < n; k++) at[k + 1] = at[k] + (int)PetscMin((PetscCount)HashBlocks, HybBlocks(PetscMax((PetscCount)A[k]->m, A[k]->nnz), HashThreads));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, at[n], sizeof(*sums), &sums));
  for (PetscInt k = 0; k < n; k++) HYB_LAUNCH(PatternHash, at[k + 1] - at[k], HashThreads, 0, x->stream, A[k]->m, A[k]->nnz, (const PetscInt *)A[k]->i, (const PetscInt *)A[k]->j, sums + at[k]);
  PetscCall(CSRFetch(x, host, sums, (size_t)at[n] * sizeof(*sums)));
  for (PetscInt k = 0; k < n; k++) {
    hash[k] = HybHashMix((uint64_t)A[k]->m) ^ HybHashMix((uint64_t)A[k]->n << 1);
    for (int b = at[k]; b < at[k + 1]; b++) hash[k] += host[b];
  }
  PetscCall(HybArenaFree(work, &sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}
