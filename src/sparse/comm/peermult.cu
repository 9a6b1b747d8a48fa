/*
  peermult.cu: a product of a parallel matrix with a vector in one launch, where others' entries come by peer access.

  A short product takes as long as its kernels' starts: put, the diagonal block D, the off-diagonal block O. Here blocks
  of threads take tickets:

    first ticket    puts what others need: entries of x, or transposed the sums of O^T's rows; tells the neighbours;
                    waits for their numbers
    other tickets rows of D, z = D x, y + D x or y - D x, or a smoother's step; then, if any of these rows needs others'
                    entries, the wait; then z += O ghost of these rows, or what it is for the step, or transposed, what
                    came for them

  In a graph the exchange's number is in memory. Each block reads it before it takes its ticket, so the block with the
  last ticket may write the next one.

  Nobody waits for a block of this launch, and the one that neighbours wait for is the first to run: so blocks need not
  be resident together. What comes is read after the wait alone, and not by the read-only path: the neighbour wrote it
  while the kernel ran.

  Sums are formed as the methods of SpMV form them that say by how many lanes (HybSpMVLanes()), so the bits are those of
  the blocks' products one after the other. Memory: none. Bytes: those of the products, and each flag once a block.
*/
#include "peer.cuh"

#define PEER_BATCH 4 /* entries of a lane that are under way together */

typedef struct {
  PetscInt         m;
  const PetscInt  *i, *j;
  const HybScalar *a;
  int              lanes;
} PeerRows;

/* owned entries that are sent, or to which what came is added */
typedef struct {
  PetscInt          n;
  const PetscInt   *index, *place;
  const PetscCount *ptr;
} PeerEntries;

/* A row's sum, on all of its lanes; whole warps take part. FRESH: x was written by others since the kernel began. */
template <bool FRESH>
static __device__ __forceinline__ HybScalar PeerSum(const PeerRows &A, PetscCount r, bool there, const HybScalar *x)
{
  const int      lane = HybLane() & (A.lanes - 1);
  const PetscInt to   = there ? A.i[r + 1] : 0;
  HybScalar      sum(0);

  for (PetscInt k = there ? A.i[r] + lane : 0; k < to; k += PEER_BATCH * A.lanes) {
    PetscInt  c[PEER_BATCH];
    HybScalar v[PEER_BATCH], xv[PEER_BATCH];
#pragma unroll
    for (int u = 0; u < PEER_BATCH; u++) c[u] = k + u * A.lanes < to ? HybLoadReadOnly(A.j + k + u * A.lanes) : 0;
#pragma unroll
    for (int u = 0; u < PEER_BATCH; u++) v[u] = k + u * A.lanes < to ? HybLoadReadOnly(A.a + k + u * A.lanes) : HybScalar(0);
#pragma unroll
    for (int u = 0; u < PEER_BATCH; u++) xv[u] = k + u * A.lanes < to ? (FRESH ? x[c[u]] : HybLoadReadOnly(x + c[u])) : HybScalar(0);
#pragma unroll
    for (int u = 0; u < PEER_BATCH; u++)
      if (k + u * A.lanes < to) sum += v[u] * xv[u];
  }
  for (int d = A.lanes / 2; d > 0; d >>= 1) sum = sum + HybShflXor(HYB_FULL_MASK, sum, d);
  return sum;
}

static __device__ __forceinline__ void PeerPutOne(const HybPeerTable &t, int slot, PetscCount k, HybScalar v)
{
  PetscCount     there;
  const PetscInt p = PeerPlace(t, k, &there);

  ((HybScalar *)t.slot[slot][p])[there] = v;
}

template <bool TRANSPOSE, bool STEP>
static __global__ __launch_bounds__(COMM_THREADS) void PeerMult(HybPeerTable t, uint64_t given, uint64_t *counter, PeerSlots slots, PeerRows D, PeerRows O, PeerEntries e, const HybScalar *__restrict__ x, int mode, RowStep step, const HybScalar *y, HybScalar *z, PeerPatience wait)
{
  HYB_SHARED(int, bad, 1);
  HYB_SHARED(unsigned, ticket, 1);
  HYB_SHARED(uint64_t, its, 1);

  if (threadIdx.x == 0) {
    *its = counter ? HybLoadShared(counter) + 1 : given;
    __threadfence();
    *ticket = HybAtomicAdd(t.arrived, 1u);
    if (*ticket == gridDim.x - 1) {
      *t.arrived = 0;
      if (counter) *counter = *its;
    }
  }
  __syncthreads();
  const uint64_t         number = *its;
  const int              slot   = (int)(number & 1);
  const HybScalar *const came   = (const HybScalar *)slots.at[slot];
  wait.slot                     = slots.at[slot];
  if (*ticket == 0) {
    if (TRANSPOSE) {
      const PetscCount group = threadIdx.x / O.lanes;

      for (PetscCount first = 0; first < O.m; first += COMM_THREADS / O.lanes) {
        const bool      there = first + group < O.m;
        const HybScalar sum   = PeerSum<false>(O, first + group, there, x);
        if (there && (HybLane() & (O.lanes - 1)) == 0) PeerPutOne(t, slot, first + group, sum);
      }
    } else
      for (PetscCount k = threadIdx.x; k < e.n; k += COMM_THREADS) PeerPutOne(t, slot, k, x[e.index[k]]);
    __syncthreads();
    PeerTell(t, number, 0);
    PeerWaitFor(t, number, wait, bad);
    return;
  }

  const PetscCount rows = COMM_THREADS / D.lanes, first = (PetscCount)(*ticket - 1) * rows, r = first + threadIdx.x / D.lanes;
  const PetscInt   end = (PetscInt)(first + rows < D.m ? first + rows : D.m);
  const HybScalar  sum = PeerSum<false>(D, r, r < D.m, x);
  if (r < D.m && (HybLane() & (D.lanes - 1)) == 0) RowEndOr<STEP>(mode, step, sum, y, z, r);
  if (TRANSPOSE) {
    const PetscInt from = RowLowerBound(e.index, 0, e.n, (PetscInt)first), to = RowLowerBound(e.index, from, e.n, end);

    if (from == to) return;
    PeerWaitFor(t, number, wait, bad); /* its barriers are for z as well */
    for (PetscInt k = from + (PetscInt)threadIdx.x; k < to; k += COMM_THREADS) {
      HybScalar v = z[e.index[k]];
      for (PetscCount p = e.ptr[k]; p < e.ptr[k + 1]; p++) v = v + came[e.place[p]];
      z[e.index[k]] = v;
    }
  } else {
    const PetscCount group = threadIdx.x / O.lanes;

    if (O.i[first] == O.i[end]) return;
    PeerWaitFor(t, number, wait, bad);
    for (PetscCount q = first; q < end; q += COMM_THREADS / O.lanes) {
      const bool      there = q + group < end && O.i[q + group] < O.i[q + group + 1];
      const HybScalar v     = PeerSum<true>(O, q + group, there, came);
      if (there && (HybLane() & (O.lanes - 1)) == 0) {
        if (STEP)
          RowAmend(step, v, z, q + group);
        else
          RowEnd(mode == ROW_SET ? ROW_ADD : mode, v, z, z, q + group);
      }
    }
  }
}

static PeerRows PeerRowsOf(const HybSummed *A)
{
  return {A->csr.m, A->csr.i, A->csr.j, A->csr.a, A->lanes};
}

PetscErrorCode HybPeerMult_CUDA(const HybExec *exec, const HybPeerTable *t, uint64_t number, uint64_t *counter, const HybPeerProduct *p, PetscInt seconds, char *const slot[2], size_t bytes)
{
  const PeerRows     D = PeerRowsOf(&p->D), O = PeerRowsOf(&p->O);
  const PeerEntries  e      = {p->n, p->index, p->place, p->ptr};
  const PeerPatience wait   = HybPeerPatience(seconds, slot[0], bytes);
  const PeerSlots    slots  = HybPeerSlots(slot);
  const RowStep      step   = {p->x, p->dinv, p->w, p->c};
  const PetscCount   blocks = 1 + HybBlocks((PetscCount)D.m * D.lanes, COMM_THREADS);

  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  if (p->transpose)
    HYB_LAUNCH((PeerMult<true, false>), blocks, COMM_THREADS, 0, exec->stream, *t, number, counter, slots, D, O, e, p->x, p->mode, step, p->y, p->z, wait);
  else if (p->c)
    HYB_LAUNCH((PeerMult<false, true>), blocks, COMM_THREADS, 0, exec->stream, *t, number, counter, slots, D, O, e, p->x, p->mode, step, p->y, p->z, wait);
  else
    HYB_LAUNCH((PeerMult<false, false>), blocks, COMM_THREADS, 0, exec->stream, *t, number, counter, slots, D, O, e, p->x, p->mode, step, p->y, p->z, wait);
  if (!counter) HYB_BEGIN_NOW(exec->stream); /* else it is captured */
  PetscFunctionReturn(PETSC_SUCCESS);
}
