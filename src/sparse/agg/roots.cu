/*
  roots.cu: the maximal independent set that a sequential loop in the order of the keys finds, of a graph or of its
  square, by rounds. The square is not formed.

  key(v): 0 for a root, place + 1 while undecided, infinite otherwise. A vertex becomes a root when every earlier one
  within reach is out, and out when a root is within reach; a round does that for all vertices at once, by minima over
  rows, which need no atomics:

    two steps   low(w) = min of key over row w;  M = min of low over row v;  M = 0: v is out;  M = key(v): v is a root
    one step    M = min of key over row v and v itself; the keys to come are written beside those of the round, and both
                change places. A vertex stays in the list one round longer than it is undecided, until both have its
                state

  States only ever go from undecided to one of the others, and the set does not depend on when a vertex is decided: it
  is the sequential loop's. Lists keep the work small: of the vertices that are undecided, and of the rows w with 0 <
  low(w) < infinite, as the others' minima are final. A tile of rows leaves the ones that stay in one piece, so lists
  remain nearly in order.

    until nothing is undecided: sweep the listed rows for low; sweep the listed vertices; every few rounds, ask how many
    are left

  The order is random enough for O(log n) rounds with high probability (Fischer and Noever); 16 on grids of millions of
  vertices, each vertex being looked at 2.6 times. A graph made against the order can need n rounds: after ROUNDS_MOST
  of them the host finishes, by the loop itself.

  Memory: 4 n integers for two steps, 2 n for one. Time: about 2.6 nnz of two sweeps (one).

  References: Luby, A simple parallel algorithm for the maximal independent set problem, SIAM J. Comput. 15 (1986);
  Blelloch, Fineman, Shun, Greedy sequential maximal independent set and matching are parallel on average, SPAA 2012;
  Fischer, Noever, Tight analysis of parallel randomized greedy MIS, SODA 2018; Kelley, Rajamanickam, Parallel, portable
  algorithms for distance-2 maximal independent set and graph coarsening, IPDPS 2022.
*/
#include "aggops.cuh"
#include "agghost.h"

namespace {

const int ROUNDS_MOST = 192; /* after which the host finishes */
const int ROUNDS_ASK  = 3;   /* how many are left is asked after so many more, of two steps */
const int ROUNDS_ONCE = 4;   /* of one step: even, for the keys to be in their own place again */
/* of fewer vertices first after twice as many: their grids have nothing to gain by it, and hardly any graph needs
   less */
const PetscInt ROUNDS_FEW = 1 << 16;

/* what is counted of each round */
enum {
  LEFT_ROWS,
  LEFT_VERTICES,
  LEFT_LONG,
  LEFT_OPEN, /* one step: of the list, the undecided */
  LEFT_WORDS = 4
};

/* sweeps */
enum {
  SWEEP_LOW,    /* low = minima of key */
  SWEEP_DECIDE, /* key by minima of low */
  SWEEP_ONCE    /* low = the keys to come, by minima of key */
};

/* what becomes of a row of the list */
enum {
  ROW_LEAVES,
  ROW_DECIDED, /* of one step: goes on once more, until both of its numbers say so */
  ROW_OPEN
};

struct Sweep {
  PetscInt        n;
  const PetscInt *gi, *gj;
  PetscInt       *key, *low;
  const PetscInt *from, *nfrom; /* the list of this round; nfrom NULL: all */
  PetscInt       *to, *nto;     /* of the next one */
  PetscInt       *nopen;        /* one step */
};

static __device__ __forceinline__ bool Open(PetscInt key)
{
  return key > 0 && key < PETSC_MAX_INT;
}

/* what the minimum over v's row means, by one of the threads that found it; does v stay in the list? */
template <int SWEEP>
static __device__ __forceinline__ bool Decide(const Sweep &a, PetscInt v, PetscInt least)
{
  if (SWEEP == SWEEP_LOW) {
    a.low[v] = least;
    return Open(least);
  }
  /* of one step: a row without its diagonal entry has not v's own key */
  const PetscInt own = a.key[v], now = least == 0 ? PETSC_MAX_INT : least >= own ? 0
                                                                                 : own;

  if (SWEEP == SWEEP_ONCE)
    a.low[v] = now;
  else if (now != own)
    a.key[v] = now;
  return now == own;
}

/* is v's row to be swept? */
template <int SWEEP>
static __device__ __forceinline__ bool Wanted(const Sweep &a, PetscInt v)
{
  return SWEEP == SWEEP_LOW || Open(a.key[v]);
}

/* W lanes a row, tiles of AGG_THREADS rows */
template <int W, int SWEEP>
__global__ void SweepRows(Sweep a)
{
  const int        lane = HybLane() & (W - 1);
  const PetscCount last = a.nfrom ? *a.nfrom : a.n;

  HYB_SHARED(PetscInt, row, AGG_THREADS);
  HYB_SHARED(PetscInt, fate, AGG_THREADS);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, base, 1);
  for (PetscCount tile = (PetscCount)blockIdx.x * AGG_THREADS; tile < last; tile += (PetscCount)gridDim.x * AGG_THREADS) {
    const PetscCount mine = tile + threadIdx.x;

    row[threadIdx.x] = mine >= last ? -1 : a.nfrom ? a.from[mine]
                                                   : (PetscInt)mine;
    __syncthreads();
    for (int s = (int)threadIdx.x / W; s < AGG_THREADS; s += AGG_THREADS / W) {
      const PetscInt v    = row[s];
      bool           stay = false, once = false;

      if (v >= 0) {
        const PetscInt begin = a.gi[v], end = a.gi[v + 1];
        const bool     wanted = Wanted<SWEEP>(a, v);

        if (SWEEP == SWEEP_ONCE && !wanted && lane == 0 && end - begin <= AGG_LONG) a.low[v] = a.key[v];
        if (end - begin <= AGG_LONG && wanted) {
          const PetscInt *const source = SWEEP == SWEEP_DECIDE ? a.low : a.key;
          PetscInt              least  = PETSC_MAX_INT;

          for (PetscInt e = begin + lane; e < end; e += W) least = HybMin()(least, source[a.gj[e]]);
          least = HybSubwarpMin<W>(least);
          stay  = lane == 0 && Decide<SWEEP>(a, v, least);
          once  = SWEEP == SWEEP_ONCE;
        }
      }
      if (lane == 0) fate[s] = stay ? ROW_OPEN : once ? ROW_DECIDED
                                                      : ROW_LEAVES;
    }
    __syncthreads();
    PetscInt       all;
    const PetscInt one = fate[threadIdx.x] != ROW_LEAVES, before = HybBlockExclusiveSum<AGG_THREADS>(one, scratch, &all);

    if (threadIdx.x == 0 && all) base[0] = HybAtomicAdd(a.nto, all);
    __syncthreads();
    if (one) a.to[base[0] + before] = row[threadIdx.x];
    if (SWEEP == SWEEP_ONCE) {
      const int open = __syncthreads_count(fate[threadIdx.x] == ROW_OPEN);

      if (threadIdx.x == 0 && open) HybAtomicAdd(a.nopen, (PetscInt)open);
    }
    __syncthreads();
  }
}

/* a block a row, of the rows that are long; first: of the first round, where low is not yet there */
template <int SWEEP>
__global__ void SweepLong(Sweep a, bool first)
{
  const PetscCount last = *a.nfrom;

  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, wanted, 1);
  for (PetscCount k = blockIdx.x; k < last; k += gridDim.x) {
    const PetscInt        v = a.from[k], begin = a.gi[v], end = a.gi[v + 1];
    const PetscInt *const source = SWEEP == SWEEP_DECIDE ? a.low : a.key;
    PetscInt              least  = PETSC_MAX_INT;

    if (threadIdx.x == 0) {
      wanted[0] = SWEEP == SWEEP_LOW ? first || Open(a.low[v]) : Wanted<SWEEP>(a, v);
      if (SWEEP == SWEEP_ONCE && !wanted[0]) a.low[v] = a.key[v];
    }
    __syncthreads();
    if (wanted[0]) {
      for (PetscInt e = begin + (PetscInt)threadIdx.x; e < end; e += AGG_THREADS) least = HybMin()(least, source[a.gj[e]]);
      least = HybBlockMin<AGG_THREADS>(least, scratch);
      if (threadIdx.x == 0 && Decide<SWEEP>(a, v, least) && SWEEP != SWEEP_LOW) HybAtomicAdd(a.nto, 1);
    }
    __syncthreads();
  }
}

/* of so many that are left in the list, at most */
template <int SWEEP>
PetscErrorCode Rows(const HybExec *exec, const HybCSR *G, PetscInt most, Sweep a)
{
  PetscFunctionBegin;
  PetscCall(HybDispatch(RowWidth(G->nnz, G->m, 1), RowWidths(), [&](auto W) {
    HYB_LAUNCH((SweepRows<W, SWEEP>), HybBlocks(most, AGG_THREADS), AGG_THREADS, 0, exec->stream, a);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int SWEEP>
PetscErrorCode Long(const HybExec *exec, const AggLong *l, Sweep a, PetscInt *nto, bool first)
{
  PetscFunctionBegin;
  if (!l->room) PetscFunctionReturn(PETSC_SUCCESS);
  a.from  = l->rows;
  a.nfrom = l->count;
  a.to    = nullptr;
  a.nto   = nto;
  HYB_LAUNCH((SweepLong<SWEEP>), HybMin()(l->room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, a, first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is left is decided by the sequential loop */
PetscErrorCode Finish(const HybExec *exec, HybArena *work, const HybCSR *G, int hops, PetscInt *key)
{
  const size_t n = (size_t)G->m * sizeof(PetscInt);
  PetscInt    *gi, *gj, *hostkey;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)G->m + 1, sizeof(PetscInt), &gi));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, G->nnz, sizeof(PetscInt), &gj));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, G->m, sizeof(PetscInt), &hostkey));
  PetscCall(exec->backend->copy(exec, gi, G->i, n + sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->copy(exec, gj, G->j, (size_t)G->nnz * sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(exec->backend->copy(exec, hostkey, key, n, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybAggFinish_Host(work, G->m, gi, gj, hops, hostkey));
  PetscCall(exec->backend->copy(exec, key, hostkey, n, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybArenaFree(work, &hostkey, &gj, &gi));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode HybAggRoots_CUDA(const HybExec *exec, HybArena *work, const HybCSR *G, const AggLong *l, int hops, PetscInt *key, PetscInt *spare, int *rounds)
{
  const PetscInt n       = G->m;
  const int      ask     = hops == 2 ? ROUNDS_ASK : ROUNDS_ONCE;
  PetscInt      *rows[2] = {nullptr, nullptr}, *vertices[2], *left, most[LEFT_WORDS] = {n, n, 0, 0};
  int            t = 0;

  PetscFunctionBegin;
  *rounds = 0;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    if (hops == 2) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &rows[k]));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &vertices[k]));
  }
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, (ROUNDS_MOST + 1) * LEFT_WORDS, sizeof(PetscInt), &left));
  for (t = 0; t < ROUNDS_MOST; t++) {
    PetscInt *const now = left + t * LEFT_WORDS, *const next = now + LEFT_WORDS;
    const bool      turned = hops == 1 && (t & 1);
    PetscInt *const keys = turned ? spare : key, *const others = turned ? key : spare;
    const Sweep r = {n, G->i, G->j, keys, others, rows[t & 1], t ? now + LEFT_ROWS : nullptr, rows[(t + 1) & 1], next + LEFT_ROWS, nullptr};
    const Sweep v = {n, G->i, G->j, keys, others, vertices[t & 1], t ? now + LEFT_VERTICES : nullptr, vertices[(t + 1) & 1], next + LEFT_VERTICES, next + LEFT_OPEN};

    if (hops == 2) {
      PetscCall(Rows<SWEEP_LOW>(exec, G, most[LEFT_ROWS], r));
      PetscCall(Long<SWEEP_LOW>(exec, l, r, nullptr, t == 0));
      PetscCall(Rows<SWEEP_DECIDE>(exec, G, most[LEFT_VERTICES], v));
      PetscCall(Long<SWEEP_DECIDE>(exec, l, v, next + LEFT_LONG, false));
    } else {
      PetscCall(Rows<SWEEP_ONCE>(exec, G, most[LEFT_VERTICES], v));
      PetscCall(Long<SWEEP_ONCE>(exec, l, v, next + LEFT_LONG, false));
    }
    if (t % ask == ask - 1 && (t >= ask || n > ROUNDS_FEW)) {
      PetscCall(exec->backend->copy(exec, most, next, sizeof(most), HYB_COPY_DEVICE_TO_HOST));
      if (!most[hops == 2 ? LEFT_VERTICES : LEFT_OPEN] && !most[LEFT_LONG]) break;
    }
  }
  *rounds = PetscMin(t + 1, ROUNDS_MOST);
  if (t == ROUNDS_MOST) PetscCall(Finish(exec, work, G, hops, key));
  PetscCall(HybArenaFree(work, &left));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaFree(work, &vertices[k], &rows[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
