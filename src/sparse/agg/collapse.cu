/*
  collapse.cu: the graph of a matrix with several unknowns a vertex; collapse.c says which. And the graph of aggregates,
  nested.c: its vertices' rows are those of their members, its columns are aggregates.

  A head is an entry whose block the entry before it in its row does not belong to. A group of threads takes a vertex,
  its rows one after the other, whose heads it gathers in shared memory, and sorts: each vertex that is joined stands
  there as many times as rows name it, and counts once.

    heads       how many each vertex has, and what else is asked of a row
    classes     vertices by heads
    count       gather, sort, places where the vertex changes      scan -> G->i
    fill        the same, and write

  Vertices of more heads than the last class takes are sorted together by the device's own sort, by (vertex, head).

  Memory: 2 n integers, and 48 bytes for each head of those vertices. Time: O(nnz), and sorting.
*/
#include "aggops.cuh"

namespace {

/* sums of all rows: without an entry of the diagonal; entries that are not of unknown k modulo bs; heads where that is
   not 0 */
enum {
  HEADS_MISSING,
  HEADS_ODD,
  HEADS_BROKEN,
  HEADS_WORDS
};

/* vertices of bs unknowns each: slots first(v) to first(v + 1) - 1 are v's rows, vertex(c) has column c */
struct Unknowns {
  PetscInt bs;

  __device__ __forceinline__ PetscInt first(PetscInt v) const
  {
    return v * bs;
  }
  __device__ __forceinline__ PetscInt row(PetscInt slot) const
  {
    return slot;
  }
  __device__ __forceinline__ PetscInt vertex(PetscInt c) const
  {
    return c / bs;
  }
};

/* aggregates; vertices of none are joined with none that is of one */
struct Members {
  static const PetscInt bs = 1;
  const PetscInt       *begin, *member, *parent;

  __device__ __forceinline__ PetscInt first(PetscInt c) const
  {
    return begin[c];
  }
  __device__ __forceinline__ PetscInt row(PetscInt slot) const
  {
    return member[slot];
  }
  __device__ __forceinline__ PetscInt vertex(PetscInt v) const
  {
    return parent[v];
  }
};

template <class R>
struct Collapse {
  PetscInt        n, all; /* vertices with rows, with columns */
  R               of;
  const PetscInt *ai, *aj;
  PetscInt       *gi, *gj;
};

/* a neighbour may be in no aggregate */
template <class R>
static __device__ __forceinline__ bool IsHead(const Collapse<R> &a, PetscInt begin, PetscInt k, PetscInt u)
{
  return u >= 0 && (k == begin || a.of.vertex(a.aj[k - 1]) != u);
}

/* G lanes a vertex */
template <class R, int G>
__global__ void Heads(Collapse<R> a, PetscInt *__restrict__ heads, PetscCount *__restrict__ sums)
{
  constexpr int THREADS          = HybGroup<G>::THREADS;
  const int     rank             = HybGroup<G>::rank();
  PetscCount    sum[HEADS_WORDS] = {0, 0, 0};

  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  for (PetscCount v = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); v < a.n; v += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    PetscInt found = 0, diagonals = 0;

    for (PetscInt s = a.of.first((PetscInt)v); s < a.of.first((PetscInt)v + 1); s++) {
      const PetscInt r = a.of.row(s), begin = a.ai[r], end = a.ai[r + 1];

      for (PetscInt k = begin + rank; k < end; k += G) {
        const PetscInt c = a.aj[k], u = a.of.vertex(c), unknown = (k - begin) % a.of.bs;
        const bool     head = IsHead(a, begin, k, u);

        diagonals += c == r;
        found += head;
        sum[HEADS_ODD] += c - u * a.of.bs != unknown;
        sum[HEADS_BROKEN] += head && unknown;
      }
    }
    found     = HybSubwarpSum<G>(found);
    diagonals = HybSubwarpSum<G>(diagonals);
    if (rank == 0) {
      heads[v] = found;
      sum[HEADS_MISSING] += a.of.first((PetscInt)v + 1) - a.of.first((PetscInt)v) - diagonals;
    }
  }
  for (int s = 0; s < HEADS_WORDS; s++) {
    const PetscCount all = HybBlockSum<THREADS>(sum[s], scratch);

    if (threadIdx.x == 0 && all) HybAtomicAdd(&sums[s], all);
  }
}

/* count not NULL: how many vertices each is joined with; else the vertices */
template <class R, int G, int MOST>
__global__ void Gather(Collapse<R> a, PetscInt nvertices, const PetscInt *__restrict__ vertices, PetscInt *__restrict__ count)
{
  const int rank = HybGroup<G>::rank();

  HYB_SHARED(PetscInt, all, MOST * HybGroup<G>::GROUPS);
  HYB_SHARED(int, scratch, HYB_WARP);
  PetscInt *const list = all + HybGroup<G>::index() * MOST;

  for (PetscCount l = (PetscCount)blockIdx.x * HybGroup<G>::GROUPS + HybGroup<G>::index(); l < nvertices; l += (PetscCount)gridDim.x * HybGroup<G>::GROUPS) {
    const PetscInt v = vertices[l];
    int            n = 0, unique = 0;

    for (PetscInt s = a.of.first(v); s < a.of.first(v + 1); s++) {
      const PetscInt r = a.of.row(s), begin = a.ai[r], end = a.ai[r + 1];

      for (PetscInt first = begin; first < end; first += G) {
        const PetscInt k = first + rank, u = k < end ? a.of.vertex(a.aj[k]) : 0;
        const int      head = k < end && IsHead(a, begin, k, u);
        int            here;
        const int      before = HybGroup<G>::exclusiveSum(head, scratch, &here);

        if (head) list[n + before] = u;
        n += here;
      }
    }
    HybGroup<G>::sync();
    HybGroupSort<G>(list, (unsigned)n);
    for (int first = 0; first < n; first += G) {
      const int e = first + rank, one = e < n && (e == 0 || list[e] != list[e - 1]);
      int       here;
      const int before = HybGroup<G>::exclusiveSum(one, scratch, &here);

      if (one && !count) a.gj[a.gi[v] + unique + before] = list[e];
      unique += here;
    }
    if (rank == 0 && count) count[v] = unique;
    HybGroup<G>::sync();
  }
}

/* a block a vertex; offset: where the heads of the list's vertices begin */
template <class R>
__global__ void LongKeys(Collapse<R> a, int bits, const PetscInt *__restrict__ vertices, const PetscInt *__restrict__ offset, uint64_t *__restrict__ key)
{
  const PetscInt l = (PetscInt)blockIdx.x, v = vertices[l];
  PetscInt       to = offset[l];

  HYB_SHARED(int, scratch, HYB_WARP);
  for (PetscInt s = a.of.first(v); s < a.of.first(v + 1); s++) {
    const PetscInt r = a.of.row(s), begin = a.ai[r], end = a.ai[r + 1];

    for (PetscInt first = begin; first < end; first += AGG_THREADS) {
      const PetscInt k = first + (PetscInt)threadIdx.x, u = k < end ? a.of.vertex(a.aj[k]) : 0;
      const int      head = k < end && IsHead(a, begin, k, u);
      int            here;
      const int      before = HybBlockExclusiveSum<AGG_THREADS>(head, scratch, &here);

      if (head) key[to + before] = ((uint64_t)l << bits) | (uint64_t)u;
      to += here;
    }
  }
}

/* The vertices of many heads: sorted, what begins a run is numbered by a scan */
struct Long {
  PetscInt  nvertices, nheads;
  int       bits;
  PetscInt *vertices, *offset, *number;
  uint64_t *key;
};

/* counts them, heads[v] being replaced at last, and leaves what LongFill() needs */
template <class R>
PetscErrorCode LongCount(const HybExec *exec, HybArena *work, const Collapse<R> &a, const PetscInt *heads, PetscInt *count, Long *l)
{
  const PetscInt *vertices = l->vertices;
  PetscInt       *length, *flag;
  uint64_t       *unsorted;
  PetscCount     *position, n;
  int             all;

  PetscFunctionBegin;
  if (!l->nvertices) PetscFunctionReturn(PETSC_SUCCESS);
  l->bits = HybBits(a.all);
  all     = l->bits + HybBits(l->nvertices);
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, (PetscCount)l->nvertices + 1, sizeof(PetscInt), &l->offset));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, l->nvertices, sizeof(PetscInt), &length));
  HYB_FOR_EACH(exec, l->nvertices, [=] __device__(PetscCount k) {
    length[k]          = heads[vertices[k]];
    count[vertices[k]] = 0;
  });
  PetscCall(HybScanCounts(exec, work, l->nvertices, length, l->offset, nullptr, &n));
  PetscCall(HybArenaFree(work, &length));
  l->nheads = (PetscInt)n; /* no more than A has entries */
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(uint64_t), &unsorted));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(uint64_t), &l->key));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscCount), &position));
  HYB_LAUNCH((LongKeys<R>), l->nvertices, AGG_THREADS, 0, exec->stream, a, l->bits, vertices, l->offset, unsorted);
  PetscCall(HybSortPairs64Count(exec, work, n, unsorted, l->key, nullptr, position, all));
  PetscCall(HybArenaFree(work, &position, &unsorted));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &flag));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n + 1, sizeof(PetscInt), &l->number));
  HYB_FOR_EACH(exec, l->nheads, [flag, count, vertices, key = l->key, bits = l->bits] __device__(PetscCount k) {
    const bool one = k == 0 || key[k] != key[k - 1];

    flag[k] = one;
    if (one) HybAtomicAdd(&count[vertices[key[k] >> bits]], 1);
  });
  PetscCall(HybScanCounts(exec, work, n, flag, l->number, nullptr, nullptr));
  PetscCall(HybArenaFree(work, &flag));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class R>
PetscErrorCode LongFill(const HybExec *exec, HybArena *work, const Collapse<R> &a, Long *l)
{
  PetscFunctionBegin;
  if (!l->nvertices) PetscFunctionReturn(PETSC_SUCCESS);
  HYB_FOR_EACH(exec, l->nheads, [gi = a.gi, gj = a.gj, l = *l] __device__(PetscCount k) {
    if (l.number[k + 1] == l.number[k]) return;
    const PetscInt v = (PetscInt)(l.key[k] >> l.bits);

    gj[gi[l.vertices[v]] + (l.number[k] - l.number[l.offset[v]])] = (PetscInt)(l.key[k] & ((((uint64_t)1) << l.bits) - 1));
  });
  PetscCall(HybArenaFree(work, &l->number, &l->key, &l->offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the graph G of all vertices; rows: of A, with its entries; seen: sums of all rows */
template <class R>
PetscErrorCode Join(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt n, PetscInt all, const R &of, HybCSR *G, PetscCount *seen)
{
  Collapse<R> a = {n, all, of, A->i, A->j, nullptr, nullptr};
  PetscInt   *heads, *vertices, *count, binptr[AGG_CLASSES + 1];
  PetscCount *sums;
  Long        l = {};

  PetscFunctionBegin;
  for (int s = 0; s < HEADS_WORDS; s++) seen[s] = 0;
  G->m = n;
  G->n = all;
  G->a = nullptr;
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, (PetscCount)n + 1, sizeof(PetscInt), &G->i));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &heads));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &vertices));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &count));
  PetscCall(HybArenaCalloc(work, HYB_MEM_DEVICE, HEADS_WORDS, sizeof(PetscCount), &sums));
  const auto gather = [&](auto W, auto MOST, PetscInt rows, PetscInt first) {
    HYB_LAUNCH((Gather<R, W, MOST>), HybBlocks(rows, HybGroup<W>::GROUPS), HybGroup<W>::THREADS, 0, exec->stream, a,
               rows, vertices + first, G->j ? nullptr : count);
    return PETSC_SUCCESS;
  };
  AGG_LAUNCH(exec, RowWidth(A->nnz, A->m, 2), n, 16 * AGG_BLOCKS, (Heads<R, WIDTH>), a, heads, sums);
  PetscCall(exec->backend->copy(exec, seen, sums, HEADS_WORDS * sizeof(*seen), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybAggClasses(exec, work, n, heads, vertices, binptr));
  G->j        = nullptr;
  l.nvertices = n - binptr[AGG_CLASSES - 1];
  l.vertices  = vertices + binptr[AGG_CLASSES - 1];
  PetscCall(AggEachClass(binptr, gather));
  PetscCall(LongCount(exec, work, a, heads, count, &l));
  PetscCall(HybScanCounts(exec, work, n, count, G->i, nullptr, &G->nnz));
  PetscCall(HybArenaAlloc(keep, HYB_MEM_DEVICE, G->nnz, sizeof(PetscInt), &G->j));
  a.gi = G->i;
  a.gj = G->j;
  PetscCall(AggEachClass(binptr, gather));
  PetscCall(LongFill(exec, work, a, &l));
  PetscCall(HybArenaFree(work, &sums, &count, &vertices, &heads));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode HybAggCollapse_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt bs, HybCSR *G, HybAggCollapsed *found)
{
  const PetscInt n = bs > 0 ? A->m / bs : 0, all = bs > 0 ? A->n / bs : 0;
  const Unknowns of = {bs};
  PetscCount     seen[HEADS_WORDS];

  PetscFunctionBegin;
  PetscCheck(bs > 0 && n * bs == A->m && all * bs == A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Blocks of %" PetscInt_FMT " unknowns do not divide a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT, bs, A->m, A->n);
  PetscCall(HybCheckEntries(exec, A->nnz, "a matrix"));
  PetscCall(Join(exec, keep, work, A, n, all, of, G, seen));
  found->nodiagonal = seen[HEADS_MISSING];
  found->aligned    = (PetscBool)!seen[HEADS_ODD];
  found->broken     = (PetscBool)(seen[HEADS_BROKEN] != 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggQuotient_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *G, const HybAggregates *agg, const HybAggLists *lists, HybCSR *Q)
{
  const Members of = {lists->begin, lists->member, agg->parent};
  PetscCount    seen[HEADS_WORDS];

  PetscFunctionBegin;
  PetscCheck(G->m == agg->n && G->n == agg->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Aggregates of %" PetscInt_FMT " vertices and a graph of %" PetscInt_FMT, agg->n, G->m);
  PetscCall(HybCheckEntries(exec, G->nnz, "a graph"));
  PetscCall(Join(exec, keep, work, G, agg->nc, agg->nc, of, Q, seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}
