/*
  columns.cu: columns of C from the lists that the count of hashrows.cu left: blocks are ordered, by counting those
  before each (few) or by a sort (many), and their masks' bits written.
*/
#include "hashtable.cuh"

/* a list's columns, in ascending order; room: 8 bytes for each of its blocks, if they do not ascend */
template <int N>
static __device__ __forceinline__ void HashListRow(const HashArgs &x, PetscInt row, unsigned long long *room, unsigned *scratch)
{
  using G              = HybGroup<N>;
  const unsigned where = x.where[row], listed = x.listed[row], n = listed / 2;

  unsigned *order;

  if (where == HASH_EMPTY) return;
  const HashPair *const list  = x.list + where;
  const auto            write = [&](HashPair p, unsigned at) {
    PetscInt *to = x.cj + x.ci[row] + at;

    for (unsigned mask = p.mask; mask; mask &= mask - 1) *to++ = ((PetscInt)p.block << 5) + (__ffs((int)mask) - 1);
  };
  if (listed & 1u) {
    unsigned before = 0;

    for (unsigned e0 = 0; e0 < n; e0 += N) {
      const unsigned e = e0 + (unsigned)G::rank();
      HashPair       p = {0, 0};
      unsigned       total;

      if (e < n) p = list[e];
      const unsigned at = before + G::exclusiveSum((unsigned)__popc(p.mask), scratch, &total);
      write(p, at);
      before += total;
    }
    return;
  }
  /* room: block << 32 | number << 6 | bits of the mask */
  for (unsigned e = (unsigned)G::rank(); e < n; e += N) room[e] = (unsigned long long)list[e].block << 32 | e << 6 | (unsigned)__popc(list[e].mask);
  G::sync();
  if (HashOrderByBits<G, N>(room, n, N * (HASH_SMALLMEM / 128), &order, scratch)) {
    const unsigned each  = ((n + N - 1) / N) | 1u;
    const unsigned begin = HybMin()((unsigned)G::rank() * each, n), end = HybMin()(begin + each, n);
    unsigned       sum = 0;

    for (unsigned e = begin; e < end; e++) sum += order[e] & 63u;
    sum = G::exclusiveSum(sum, scratch);
    for (unsigned e = begin; e < end; e++) {
      write(list[order[e] >> 6], sum);
      sum += order[e] & 63u;
    }
  } else if (n <= 2 * HYB_WARP) {
    for (unsigned e = (unsigned)G::rank(); e < n; e += N) {
      const unsigned long long mine = room[e];
      unsigned                 sum  = 0;

      for (unsigned q = 0; q < n; q++) {
        const unsigned long long other = room[q];

        sum += other < mine ? (unsigned)other & 63u : 0u;
      }
      write(list[e], sum);
    }
  } else {
    const unsigned each  = ((n + N - 1) / N) | 1u;
    const unsigned begin = HybMin()((unsigned)G::rank() * each, n), end = HybMin()(begin + each, n);
    unsigned       sum = 0;

    HybGroupSort<N>(room, n);
    for (unsigned e = begin; e < end; e++) sum += (unsigned)room[e] & 63u;
    sum = G::exclusiveSum(sum, scratch);
    for (unsigned e = begin; e < end; e++) {
      write(list[(unsigned)room[e] >> 6], sum);
      sum += (unsigned)room[e] & 63u;
    }
  }
  G::sync();
}

template <int N>
static __device__ __forceinline__ void HashListTask(const HashArgs &x, int b, PetscCount t, unsigned char *shared, unsigned *scratch)
{
  using G            = HybGroup<N>;
  const PetscCount q = x.binptr[b] + t * G::GROUPS + G::index();

  if (q < x.binptr[b + 1]) HashListRow<N>(x, x.order[q], (unsigned long long *)(shared + (threadIdx.x & ~(unsigned)(N - 1)) * (HASH_SMALLMEM / 128)), scratch);
}

/* bins 1 to HASH_SMALL at once, as HashPlannedSmallKernel() */
__global__ void __launch_bounds__(128, 10) HashListSmallKernel(HashArgs x)
{
  HYB_DYNAMIC_SHARED(unsigned char, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  const PetscCount n5 = x.binptr[6] - x.binptr[5], n4 = (x.binptr[5] - x.binptr[3] + 3) / 4, n2 = (x.binptr[3] - x.binptr[2] + 7) / 8, n1 = (x.binptr[2] - x.binptr[1] + 15) / 16;

  for (PetscCount t = (PetscCount)blockIdx.x; t < n5 + n4 + n2 + n1; t += (PetscCount)gridDim.x) {
    if (t < n5)
      HashListTask<128>(x, 5, t, shared, scratch);
    else if (t < n5 + n4) {
      const PetscCount q = x.binptr[3] + (t - n5) * 4 + HybGroup<32>::index();

      if (q < x.binptr[5]) HashListRow<32>(x, x.order[q], (unsigned long long *)(shared + (threadIdx.x & ~31u) * (HASH_SMALLMEM / 128)), scratch);
    } else if (t < n5 + n4 + n2)
      HashListTask<16>(x, 2, t - n5 - n4, shared, scratch);
    else
      HashListTask<8>(x, 1, t - n5 - n4 - n2, shared, scratch);
  }
}

PetscErrorCode HybHashListRows(HybSpGEMM *mm, const HybHashRows *hash, HashArgs x)
{
  const HybExec   *exec = &mm->exec;
  const PetscCount rows = hash->hostbinptr[HASH_SMALL + 1] - hash->hostbinptr[1];

  PetscFunctionBegin;
  if (rows) HYB_LAUNCH(HashListSmallKernel, PetscMin(rows, (PetscCount)hash->multiprocessors * 16 * 8), 128, HASH_SMALLMEM, exec->stream, x);
  PetscFunctionReturn(PETSC_SUCCESS);
}
