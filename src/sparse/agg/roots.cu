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

  Memory: 4 n integers for two steps, 2 n for one. Time: about 2.6 nnz of two sweeps (one). Where a PetscInt has 64 bits
  keys and lists have 32, and so has a copy of the columns, which the first sweep makes.

  References: Luby, A simple parallel algorithm for the maximal independent set problem, SIAM J. Comput. 15 (1986);
  Blelloch, Fineman, Shun, Greedy sequential maximal independent set and matching are parallel on average, SPAA 2012;
  Fischer, Noever, Tight analysis of parallel randomized greedy MIS, SODA 2018; Kelley, Rajamanickam, Parallel, portable
  algorithms for distance-2 maximal independent set and graph coarsening, IPDPS 2022.
*/
#include "aggops.cuh"
#include "agghost.h"
#include <climits>
#include <limits>

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

/* K: integers of keys and vertices, 32 bits where these do */
template <class K>
struct Sweep {
  static constexpr K INF = std::numeric_limits<K>::max();

  PetscInt        n;
  const PetscInt *gi, *gj;
  K              *near; /* NULL, or gj in fewer bits, which the first sweep makes */
  bool            first;
  K              *key, *low;
  const K        *from;  /* the list of this round */
  const PetscInt *nfrom; /* its length; NULL: all */
  K              *to;    /* of the next one */
  PetscInt       *nto;
  PetscInt       *nopen; /* one step */
};

template <class K>
static __device__ __forceinline__ bool Open(K key)
{
  return key > 0 && key < Sweep<K>::INF;
}

/* the least of what a row's n columns have, of every W-th of them from lane on, two under way together; near: NULL, or
   where these columns go in fewer bits */
template <int W, class J, class K>
static __device__ __forceinline__ K LeastOf(K n, const J *j, int lane, const K *source, K *near)
{
  K least = Sweep<K>::INF;

  for (K e = lane; e < n; e += 2 * W) {
    const bool two = e + W < n;
    const J    one = j[e], other = two ? j[e + W] : one;

    if (sizeof(K) < sizeof(J) && near) {
      near[e] = (K)one;
      if (two) near[e + W] = (K)other;
    }
    least = HybMin()(least, HybMin()(source[one], source[other]));
  }
  return least;
}

template <int SWEEP, int W, class K>
static __device__ __forceinline__ K Least(const Sweep<K> &a, int lane, PetscInt begin, PetscInt end)
{
  const K *const source = SWEEP == SWEEP_DECIDE ? a.low : a.key;
  K *const       near   = a.near ? a.near + begin : nullptr;
  const K        n      = (K)(end - begin);

  if (sizeof(K) < sizeof(PetscInt) && near && !a.first) return LeastOf<W>(n, near, lane, source, (K *)nullptr);
  return LeastOf<W>(n, a.gj + begin, lane, source, near);
}

/* what the minimum over v's row means, by one of the threads that found it; does v stay in the list? */
template <int SWEEP, class K>
static __device__ __forceinline__ bool Decide(const Sweep<K> &a, PetscInt v, K least)
{
  if (SWEEP == SWEEP_LOW) {
    a.low[v] = least;
    return Open(least);
  }
  /* of one step: a row without its diagonal entry has not v's own key */
  const K own = a.key[v], now = least == 0 ? Sweep<K>::INF : least >= own ? 0
                                                                          : own;

  if (SWEEP == SWEEP_ONCE)
    a.low[v] = now;
  else if (now != own)
    a.key[v] = now;
  return now == own;
}

/* is v's row to be swept? */
template <int SWEEP, class K>
static __device__ __forceinline__ bool Wanted(const Sweep<K> &a, PetscInt v)
{
  return SWEEP == SWEEP_LOW || Open(a.key[v]);
}

/* W lanes a row, tiles of AGG_THREADS rows */
template <int W, int SWEEP, class K>
__global__ void SweepRows(Sweep<K> a)
{
  const int        lane = HybLane() & (W - 1);
  const PetscCount last = a.nfrom ? *a.nfrom : a.n;

  HYB_SHARED(K, row, AGG_THREADS);
  HYB_SHARED(int, fate, AGG_THREADS);
  HYB_SHARED(int, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, base, 1);
  for (PetscCount tile = (PetscCount)blockIdx.x * AGG_THREADS; tile < last; tile += (PetscCount)gridDim.x * AGG_THREADS) {
    const PetscCount mine = tile + threadIdx.x;

    row[threadIdx.x] = mine >= last ? -1 : a.nfrom ? a.from[mine]
                                                   : (K)mine;
    __syncthreads();
    for (int s = (int)threadIdx.x / W; s < AGG_THREADS; s += AGG_THREADS / W) {
      const PetscInt v    = row[s];
      bool           stay = false, once = false;

      if (v >= 0) {
        const PetscInt begin = a.gi[v], end = a.gi[v + 1];
        const bool     wanted = Wanted<SWEEP>(a, v);

        if (SWEEP == SWEEP_ONCE && !wanted && lane == 0 && end - begin <= AGG_LONG) a.low[v] = a.key[v];
        if (end - begin <= AGG_LONG && wanted) {
          const K least = HybSubwarpMin<W>(Least<SWEEP, W>(a, lane, begin, end));

          stay = lane == 0 && Decide<SWEEP>(a, v, least);
          once = SWEEP == SWEEP_ONCE;
        }
      }
      if (lane == 0) fate[s] = stay ? ROW_OPEN : once ? ROW_DECIDED
                                                      : ROW_LEAVES;
    }
    __syncthreads();
    int       all;
    const int one = fate[threadIdx.x] != ROW_LEAVES, before = HybBlockExclusiveSum<AGG_THREADS>(one, scratch, &all);

    if (threadIdx.x == 0 && all) base[0] = HybAtomicAdd(a.nto, (PetscInt)all);
    __syncthreads();
    if (one) a.to[base[0] + before] = row[threadIdx.x];
    if (SWEEP == SWEEP_ONCE) {
      const int open = __syncthreads_count(fate[threadIdx.x] == ROW_OPEN);

      if (threadIdx.x == 0 && open) HybAtomicAdd(a.nopen, (PetscInt)open);
    }
    __syncthreads();
  }
}

/* a block a row, of the rows that are long: in the first round low is not yet there */
template <int SWEEP, class K>
__global__ void SweepLong(Sweep<K> a, const PetscInt *rows, const PetscInt *count)
{
  const PetscCount last = *count;

  HYB_SHARED(K, scratch, HYB_WARP);
  HYB_SHARED(int, wanted, 1);
  for (PetscCount k = blockIdx.x; k < last; k += gridDim.x) {
    const PetscInt v = rows[k], begin = a.gi[v], end = a.gi[v + 1];

    if (threadIdx.x == 0) {
      wanted[0] = SWEEP == SWEEP_LOW ? a.first || Open(a.low[v]) : Wanted<SWEEP>(a, v);
      if (SWEEP == SWEEP_ONCE && !wanted[0]) a.low[v] = a.key[v];
    }
    __syncthreads();
    if (wanted[0]) {
      const K least = HybBlockMin<AGG_THREADS>(Least<SWEEP, AGG_THREADS>(a, (int)threadIdx.x, begin, end), scratch);

      if (threadIdx.x == 0 && Decide<SWEEP>(a, v, least) && SWEEP != SWEEP_LOW) HybAtomicAdd(a.nto, (PetscInt)1);
    }
    __syncthreads();
  }
}

/* of so many that are left in the list, at most */
template <int SWEEP, class K>
PetscErrorCode Rows(const HybExec *exec, const HybCSR *G, PetscInt most, const Sweep<K> &a)
{
  PetscFunctionBegin;
  PetscCall(HybDispatch(RowWidth(G->nnz, G->m, 1), RowWidths(), [&](auto W) {
    HYB_LAUNCH((SweepRows<W, SWEEP, K>), HybBlocks(most, AGG_THREADS), AGG_THREADS, 0, exec->stream, a);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int SWEEP, class K>
PetscErrorCode Long(const HybExec *exec, const AggLong *l, Sweep<K> a, PetscInt *nto)
{
  PetscFunctionBegin;
  if (!l->room) PetscFunctionReturn(PETSC_SUCCESS);
  a.nto = nto;
  HYB_LAUNCH((SweepLong<SWEEP, K>), HybMin()(l->room, (PetscInt)AGG_BLOCKS), AGG_THREADS, 0, exec->stream, a, l->rows, l->count);
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

/* *t: the rounds before the one that left nothing undecided; ROUNDS_MOST: something is */
template <class K>
PetscErrorCode Rounds(const HybExec *exec, HybArena *work, const HybCSR *G, const AggLong *l, int hops, K *key, K *spare, K *near, int *rounds)
{
  const PetscInt n       = G->m;
  const int      ask     = hops == 2 ? ROUNDS_ASK : ROUNDS_ONCE;
  K             *rows[2] = {nullptr, nullptr}, *vertices[2];
  PetscInt      *left, most[LEFT_WORDS] = {n, n, 0, 0};
  int            t = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    if (hops == 2) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(K), &rows[k]));
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(K), &vertices[k]));
  }
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, (ROUNDS_MOST + 1) * LEFT_WORDS, sizeof(PetscInt), &left));
  for (t = 0; t < ROUNDS_MOST; t++) {
    PetscInt *const now = left + t * LEFT_WORDS, *const next = now + LEFT_WORDS;
    const bool turned = hops == 1 && (t & 1);
    K *const keys = turned ? spare : key, *const others = turned ? key : spare;
    const Sweep<K> r = {n, G->i, G->j, near, t == 0, keys, others, rows[t & 1], t ? now + LEFT_ROWS : nullptr, rows[(t + 1) & 1], next + LEFT_ROWS, nullptr};
    const Sweep<K> v = {n, G->i, G->j, near, false, keys, others, vertices[t & 1], t ? now + LEFT_VERTICES : nullptr, vertices[(t + 1) & 1], next + LEFT_VERTICES, next + LEFT_OPEN};

    if (hops == 2) {
      PetscCall(Rows<SWEEP_LOW>(exec, G, most[LEFT_ROWS], r));
      PetscCall(Long<SWEEP_LOW>(exec, l, r, nullptr));
      PetscCall(Rows<SWEEP_DECIDE>(exec, G, most[LEFT_VERTICES], v));
      PetscCall(Long<SWEEP_DECIDE>(exec, l, v, next + LEFT_LONG));
    } else {
      PetscCall(Rows<SWEEP_ONCE>(exec, G, most[LEFT_VERTICES], v));
      PetscCall(Long<SWEEP_ONCE>(exec, l, v, next + LEFT_LONG));
    }
    if (t % ask == ask - 1 && (t >= ask || n > ROUNDS_FEW)) {
      PetscCall(exec->backend->copy(exec, most, next, sizeof(most), HYB_COPY_DEVICE_TO_HOST));
      if (!most[hops == 2 ? LEFT_VERTICES : LEFT_OPEN] && !most[LEFT_LONG]) break;
    }
  }
  *rounds = t;
  PetscCall(HybArenaFree(work, &left));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaFree(work, &vertices[k], &rows[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same with keys of 32 bits, and of two steps, which read the graph again and again, with such columns */
PetscErrorCode NarrowRounds(const HybExec *exec, HybArena *work, const HybCSR *G, const AggLong *l, int hops, PetscInt *key, int *rounds)
{
  const PetscCount n = G->m;
  int             *narrow, *near = nullptr;
  size_t           spare;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, 2 * n, sizeof(*narrow), &narrow));
  if (hops == 2) {
    PetscCall(HybMemorySpare(exec, &spare));
    if ((size_t)G->nnz * sizeof(*near) <= spare) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, G->nnz, sizeof(*near), &near));
  }
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { narrow[k] = key[k] == PETSC_MAX_INT ? INT_MAX : (int)key[k]; });
  PetscCall(Rounds<int>(exec, work, G, l, hops, narrow, narrow + n, near, rounds));
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { key[k] = narrow[k] == INT_MAX ? PETSC_MAX_INT : (PetscInt)narrow[k]; });
  PetscCall(HybArenaFree(work, &near, &narrow));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode HybAggRoots_CUDA(const HybExec *exec, HybArena *work, const HybCSR *G, const AggLong *l, int hops, PetscInt *key, PetscInt *spare, int *rounds)
{
  const bool narrow = sizeof(PetscInt) > sizeof(int) && G->m < INT_MAX;
  int        t      = 0;

  PetscFunctionBegin;
  *rounds = 0;
  if (!G->m) PetscFunctionReturn(PETSC_SUCCESS);
  if (narrow)
    PetscCall(NarrowRounds(exec, work, G, l, hops, key, &t));
  else
    PetscCall(Rounds<PetscInt>(exec, work, G, l, hops, key, spare, nullptr, &t));
  *rounds = PetscMin(t + 1, ROUNDS_MOST);
  if (t == ROUNDS_MOST) PetscCall(Finish(exec, work, G, hops, key));
  PetscFunctionReturn(PETSC_SUCCESS);
}
