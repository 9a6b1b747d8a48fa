/*
  peer.cu: entries that go straight into other cards' memory, and the words by which their processes know of it.

    put     blocks of threads write units into the neighbours' slots and count themselves; the last one, or the only
            one, tells every neighbour the number
    wait    one block: a thread for each neighbour looks for the number; where one failed or is late, the slot is filled
            with ones, and the host's words say who it was; put's last block does so where nothing comes between
    sum     one block does both, and adds what everybody has; of many numbers each block waits, and adds its part

  The words are stored and loaded by release and acquire of the whole system's scope; a release tells of all that its
  block wrote before the barrier. What follows in the stream begins after the waiting block has ended, and so sees what
  the neighbours wrote before they told.
*/
#include "peer.cuh"

static_assert(sizeof(cudaIpcMemHandle_t) <= HYB_COMM_HANDLE, "a handle fits");

#define PEER_BLOCKS 128

PetscErrorCode HybPeerSegment_CUDA(const HybExec *exec, size_t bytes, void **segment, unsigned char handle[HYB_COMM_HANDLE])
{
  cudaIpcMemHandle_t h;

  PetscFunctionBegin;
  *segment = nullptr;
  PetscCall(exec->backend->enter());
  /* not from a pool, whose memory has no such handle */
  HybCallCUDA(cudaMalloc(segment, bytes));
  if (!handle) PetscFunctionReturn(PETSC_SUCCESS);
  const cudaError_t err = HybDeviceFault("cudaIpcGetMemHandle") ? cudaErrorUnknown : cudaIpcGetMemHandle(&h, *segment);
  if (err != cudaSuccess) {
    (void)cudaFree(*segment);
    *segment = nullptr;
    PetscCall(HybDeviceError(err, "cudaIpcGetMemHandle", __FILE__, __LINE__));
  }
  memcpy(handle, &h, sizeof(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerSegmentFree_CUDA(const HybExec *exec, void *segment)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  PetscCall(HybDeviceError(cudaFree(segment), "cudaFree", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerAttach_CUDA(const HybExec *exec, const unsigned char handle[HYB_COMM_HANDLE], void **there)
{
  cudaIpcMemHandle_t h;

  PetscFunctionBegin;
  *there = nullptr;
  PetscCall(exec->backend->enter());
  memcpy(&h, handle, sizeof(h));
  HybCallCUDA(cudaIpcOpenMemHandle(there, h, cudaIpcMemLazyEnablePeerAccess));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerDetach_CUDA(const HybExec *exec, void *there)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  PetscCall(HybDeviceError(cudaIpcCloseMemHandle(there), "cudaIpcCloseMemHandle", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* words: of a unit, of which there are n */
template <typename W>
static __global__ void PeerPut(HybPeerTable t, uint64_t given, const uint64_t *counter, int failed, PetscCount n, int words, const PetscInt *index, const W *src, PeerPatience wait)
{
  HYB_SHARED(int, last, 1);
  const PetscCount stride = (PetscCount)gridDim.x * blockDim.x;
  const uint64_t   number = counter ? HybLoadShared(counter) + 1 : given;
  const int        slot   = (int)(number & 1);

  for (PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x; k < n * words; k += stride) {
    const PetscCount unit = words == 1 ? k : k / words, from = index ? (PetscCount)index[unit] : unit;
    PetscCount       there;
    const PetscInt   p = PeerPlace(t, unit, &there);

    ((W *)t.slot[slot][p])[there * words + (k - unit * words)] = src[from * words + (k - unit * words)];
  }
  __syncthreads();
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) {
      __threadfence_system();
      *last = HybAtomicAdd(t.arrived, 1u) == gridDim.x - 1;
      if (*last) *t.arrived = 0;
      __threadfence();
    }
    __syncthreads();
    if (!*last) return;
  }
  PeerTell(t, number, failed);
  if (!wait.patience) return;
  __syncthreads(); /* last has been read, and serves again */
  PeerWaitFor(t, number, wait, last);
}

template <typename W>
static PetscErrorCode HybPeerPutWords(const HybExec *exec, const HybPeerTable *t, uint64_t number, const uint64_t *counter, PetscBool failed, size_t unit, PetscCount n, const PetscInt *index, const void *src, PeerPatience wait)
{
  const int        words  = (int)(unit / sizeof(W));
  const PetscCount wanted = n * words <= PEER_ALONE ? 1 : HybBlocks(n * words, COMM_THREADS), blocks = wanted < PEER_BLOCKS ? wanted : (PetscCount)PEER_BLOCKS;

  PetscFunctionBegin;
  HYB_LAUNCH(PeerPut<W>, blocks, COMM_THREADS, 0, exec->stream, *t, number, counter, (int)failed, n, words, index, (const W *)src, wait);
  if (!counter) HYB_BEGIN_NOW(exec->stream); /* else it is captured */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerPut_CUDA(const HybExec *exec, const HybPeerTable *t, uint64_t number, const uint64_t *counter, PetscBool failed, size_t unit, PetscCount n, const PetscInt *index, const void *src, PetscInt seconds, void *slot, size_t bytes)
{
  const PeerPatience wait = HybPeerPatience(seconds, slot, bytes);

  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  if (unit % 8 == 0)
    PetscCall(HybPeerPutWords<unsigned long long>(exec, t, number, counter, failed, unit, n, index, src, wait));
  else if (unit % 4 == 0)
    PetscCall(HybPeerPutWords<unsigned>(exec, t, number, counter, failed, unit, n, index, src, wait));
  else
    PetscCall(HybPeerPutWords<unsigned char>(exec, t, number, counter, failed, unit, n, index, src, wait));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __global__ void PeerWait(HybPeerTable t, uint64_t number, PeerPatience wait)
{
  HYB_SHARED(int, bad, 1);

  PeerWaitFor(t, number, wait, bad);
}

PetscErrorCode HybPeerWait_CUDA(const HybExec *exec, const HybPeerTable *t, uint64_t number, PetscInt seconds, void *slot, size_t bytes)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_LAUNCH(PeerWait, 1, COMM_THREADS, 0, exec->stream, *t, number, HybPeerPatience(seconds, slot, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks read the number before they take their tickets: the one with the last ticket writes it. */
static __global__ void PeerTake(HybPeerTable t, uint64_t *counter, PeerSlots slots, unsigned long long *to, PeerPatience wait)
{
  HYB_SHARED(int, bad, 1);
  HYB_SHARED(uint64_t, its, 1);

  if (threadIdx.x == 0) {
    *its = HybLoadShared(counter) + 1;
    __threadfence();
    if (HybAtomicAdd(t.arrived, 1u) == gridDim.x - 1) {
      *t.arrived = 0;
      *counter   = *its;
    }
  }
  __syncthreads();
  wait.slot = slots.at[*its & 1];
  PeerWaitFor(t, *its, wait, bad);
  for (PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x; k < wait.words; k += (PetscCount)gridDim.x * blockDim.x) to[k] = wait.slot[k];
}

PetscErrorCode HybPeerTake_CUDA(const HybExec *exec, const HybPeerTable *t, uint64_t *counter, PetscInt seconds, char *const slot[2], size_t bytes, void *to)
{
  const PeerPatience wait   = HybPeerPatience(seconds, slot[0], bytes);
  const PetscCount   blocks = PetscMax((PetscCount)1, PetscMin(HybBlocks(wait.words, 4 * COMM_THREADS), (PetscCount)PEER_BLOCKS));

  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_LAUNCH(PeerTake, blocks, COMM_THREADS, 0, exec->stream, *t, counter, HybPeerSlots(slot), (unsigned long long *)to, wait);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* number k of all processes, in the order of ranks; room: numbers of each */
static __device__ __forceinline__ HybScalar PeerAdd(const HybScalar *came, int rank, int others, PetscCount room, PetscCount k, const HybScalar &mine)
{
  HybScalar sum = rank ? came[k] : mine;

  for (int r = 1; r <= others; r++) sum = sum + (r == rank ? mine : came[(r < rank ? r : r - 1) * room + k]);
  return sum;
}

/* counter: as PeerMult's; one block has to itself what it writes there */
static __global__ void PeerSum(HybPeerTable t, uint64_t given, uint64_t *counter, PeerSlots slots, int rank, int room, int n, HybScalar *v, PeerPatience wait)
{
  HYB_SHARED(int, bad, 1);
  HYB_SHARED(uint64_t, its, 1);

  if (threadIdx.x == 0) *its = counter ? HybLoadShared(counter) + 1 : given;
  __syncthreads();
  const uint64_t         number = *its;
  const int              others = (int)t.n, slot = (int)(number & 1);
  const HybScalar *const came = (const HybScalar *)slots.at[slot];
  wait.slot                   = slots.at[slot];
  if (counter && threadIdx.x == 0) *counter = number;
  for (int k = (int)threadIdx.x; k < others * n; k += (int)blockDim.x) {
    const int p = k / n;

    ((HybScalar *)t.slot[slot][p])[t.there[p] + (k - p * n)] = v[k - p * n];
  }
  __syncthreads();
  PeerTell(t, number, 0);
  PeerWaitFor(t, number, wait, bad);
  for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x) v[k] = PeerAdd(came, rank, others, room, k, v[k]);
}

/* blocks read the number before they take their tickets, as PeerTake's */
static __global__ void PeerSumTake(HybPeerTable t, uint64_t given, uint64_t *counter, PeerSlots slots, int rank, PetscInt n, HybScalar *v, PeerPatience wait)
{
  HYB_SHARED(int, bad, 1);
  HYB_SHARED(uint64_t, its, 1);

  if (threadIdx.x == 0) {
    *its = counter ? HybLoadShared(counter) + 1 : given;
    __threadfence();
    if (counter && HybAtomicAdd(t.arrived, 1u) == gridDim.x - 1) {
      *t.arrived = 0;
      *counter   = *its;
    }
  }
  __syncthreads();
  wait.slot = slots.at[*its & 1];
  PeerWaitFor(t, *its, wait, bad);
  const HybScalar *const came = (const HybScalar *)wait.slot;
  for (PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (PetscCount)gridDim.x * blockDim.x) v[k] = PeerAdd(came, rank, (int)t.n, n, k, v[k]);
}

PetscErrorCode HybPeerSumTake_CUDA(const HybExec *exec, const HybPeerTable *t, uint64_t number, uint64_t *counter, PetscMPIInt rank, PetscInt n, HybScalar *v, PetscInt seconds, char *const slot[2], size_t bytes)
{
  const PetscCount blocks = PetscMax((PetscCount)1, PetscMin(HybBlocks(n, COMM_THREADS), (PetscCount)PEER_BLOCKS));

  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_LAUNCH(PeerSumTake, blocks, COMM_THREADS, 0, exec->stream, *t, number, counter, HybPeerSlots(slot), (int)rank, n, v, HybPeerPatience(seconds, slot[0], bytes));
  if (!counter) HYB_BEGIN_NOW(exec->stream); /* else it is captured */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerSum_CUDA(const HybExec *exec, const HybPeerTable *t, uint64_t number, uint64_t *counter, PetscMPIInt rank, PetscInt room, PetscInt n, HybScalar *v, PetscInt seconds, char *const slot[2], size_t bytes)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_LAUNCH(PeerSum, 1, COMM_THREADS, 0, exec->stream, *t, number, counter, HybPeerSlots(slot), (int)rank, (int)room, (int)n, v, HybPeerPatience(seconds, slot[0], bytes));
  if (!counter) HYB_BEGIN_NOW(exec->stream); /* else it is captured */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPeerSumCame_CUDA(const HybExec *exec, PetscMPIInt rank, PetscMPIInt others, PetscInt n, const HybScalar *came, HybScalar *v)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { v[k] = PeerAdd(came, rank, others, n, k, v[k]); });
  PetscFunctionReturn(PETSC_SUCCESS);
}
