/*
  peer.cuh: what kernels do by peer access: put a unit, tell a number, wait for the others' numbers.
*/
#ifndef AIJHYBRIDGPU_PEER_CUH
#define AIJHYBRIDGPU_PEER_CUH
#include "comm.cuh"

#define PEER_ALONE 2048 /* words that one block puts as fast as several, which have to count themselves */

/* what a block that waits needs; patience 0: it does not */
typedef struct {
  uint64_t            patience;
  unsigned long long *slot;
  PetscCount          words;
} PeerPatience;

/* where what comes is, of even and of odd numbers */
typedef struct {
  unsigned long long *at[2];
} PeerSlots;

static inline PeerSlots HybPeerSlots(char *const slot[2])
{
  return {
    {(unsigned long long *)slot[0], (unsigned long long *)slot[1]}
  };
}

/* Of all threads of a launch that find a failure one tells of it */
static __device__ bool PeerSpeaks(const HybPeerTable &t, uint64_t number)
{
  const unsigned mine = (unsigned)number, last = HybLoadShared(t.arrived + 1);

  return last != mine && HybAtomicCAS(t.arrived + 1, last, mine) == last;
}

/* whose the unit is that is sent, and where in that neighbour's slot */
static __device__ PetscInt PeerPlace(const HybPeerTable &t, PetscCount unit, PetscCount *there)
{
  PetscInt lo = 0, hi = t.n - 1;

  while (lo < hi) {
    const PetscInt mid = (lo + hi) / 2;
    if (t.offset[mid + 1] <= unit)
      lo = mid + 1;
    else
      hi = mid;
  }
  *there = t.there[lo] + (unit - t.offset[lo]);
  return lo;
}

/* by one block, after a barrier: what it wrote before is there when a neighbour reads the number */
static __device__ void PeerTell(const HybPeerTable &t, uint64_t number, int failed)
{
  for (PetscInt p = (PetscInt)threadIdx.x; p < t.n; p += (PetscInt)blockDim.x) {
    if (failed) HybStoreRelease(t.flag[p] + 1 + (number & 1), number);
    HybStoreRelease(t.flag[p], number);
  }
}

/* by one block */
static __device__ void PeerWaitFor(const HybPeerTable &t, uint64_t number, const PeerPatience &w, int *bad)
{
  const uint64_t begin = HybNanoseconds();

  if (threadIdx.x == 0) *bad = 0;
  __syncthreads();
  for (PetscInt p = (PetscInt)threadIdx.x; p < t.n; p += (PetscInt)blockDim.x) {
    int64_t what = 0;

    while (HybLoadAcquire(t.mine + HYB_COMM_WORDS * p) < number && !what)
      if (HybNanoseconds() - begin > w.patience) what = 2;
    /* it may be ahead by one exchange: the other failed one is that one's */
    if (!what && HybLoadAcquire(t.mine + HYB_COMM_WORDS * p + 1 + (number & 1)) == number) what = 1;
    if (!what) continue;
    (void)HybAtomicCAS(bad, 0, 1);
    if (PeerSpeaks(t, number)) {
      volatile int64_t *status = t.status;

      status[1] = p;
      status[2] = (int64_t)number;
      __threadfence_system();
      status[0] = what;
    }
  }
  __syncthreads();
  if (!*bad) return;
  for (PetscCount k = threadIdx.x; k < w.words; k += blockDim.x) w.slot[k] = ~0ull;
  __syncthreads();
}

static PeerPatience HybPeerPatience(PetscInt seconds, void *slot, size_t bytes)
{
  return {(uint64_t)(seconds < 2000000000 ? seconds : 2000000000) * 1000000000u, (unsigned long long *)slot, (PetscCount)(bytes / 8)};
}
#endif
