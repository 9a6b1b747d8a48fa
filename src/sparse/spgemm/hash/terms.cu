/*
  terms.cu: a plan of hashrows.cu for numeric phases that come again on one pattern: for each entry of C its terms,
  the products whose sum it is, 4 bytes each: which entry of A, and which of the row of B that it names.

  Idea. By tables, and by places (places.cu), a row of C takes a step for each entry of its row of A, one after the
  other, and the longest rows of A decide how long a small product takes. Listed by entries of C nothing waits for
  anything: products come in one pass over the lists, whatever rows they belong to, and each entry adds its own in the
  order of A's entries.

    plan       places of all products (places.cu's step, workspace)
               a sub-warp or a block a row of C:
                 count the products at each place; scan: where each entry's terms begin
                 TERMS_STEP entries of A at a time: a bit for each at the places of its row of B       (met)
                   each product: its term comes after those of earlier steps and of lower bits there
                   begins of entries go on by their bits
               tiles of TERMS_TILE entries of C: where their terms begin, and the row of A that they count from
    numeric    a block a tile, TERMS_CHUNK products at a time:
                 product[t] = a[base + term.a] b[from[base + term.a] + term.b]
                 a thread an entry of C: its products, in order, from shared memory

  A product and its sum are rounded apart, as everywhere; sums start from -0.

  H200, again, ms, by tiles of 256 entries and 40 registers, the same with 32, then 128, 64 and 32 entries, four
  products of a thread under way: cnr-2000 0.61, 0.54, 0.51, 0.51, 0.65, email-Enron 0.48, 0.42, 0.39, 0.38, 0.39,
  cage11 0.076, 0.070, 0.065, 0.061, 0.064, wiki-Vote 0.041, 0.041, 0.039, 0.039, 0.040; two under way, 32 entries:
  0.85, 0.40, 0.071, 0.045; by tables 0.94, 0.69, 0.087, 0.177. Where rows of B are long and C has few entries for its
  products, places are faster and smaller: uk-2007 2.35 and 1.53, Cornell5 1.82 and 1.68.

  Not taken where a row of C has more entries than a block has room for, where a tile's entries of A, or a row of B,
  are more than 65536, and where memory would be too much: by default TERMS_SHARE percent of C's, and a small part of
  what is free; as many percent as -mat_aijhybridgpu_hash_places says, else. A product that expects its numeric phases
  (a Galerkin product's) has no terms.

  Memory kept: 4 bytes a product, 2 an entry of C, 4 an entry of A; 2 a product more while they are made. Complexity:
  numeric, one pass over the products; the plan three, and one over C for each TERMS_STEP entries of a row of A.
*/
#include "hashargs.cuh"
#include "../../device/carve.h"

#define TERMS_TILE        64  /* entries of C, a thread each */
#define TERMS_CHUNK       256 /* products in shared memory */
#define TERMS_STEP        16  /* entries of A, a bit each for an entry of C */
#define TERMS_WARP        512 /* entries of a row of C that a warp takes, and bytes of its counters */
#define TERMS_BYTES(room) ((size_t)(room) * (sizeof(unsigned) + sizeof(unsigned short)))
#define TERMS_SHARE       125
#define TERMS_SPARE       32 /* the part of what may be taken for it, by default */

/* which entry of A each tile counts from: the first of the row that the tile begins in */
static __global__ void __launch_bounds__(256) HashTermsTiles(PetscInt m, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ ci, PetscInt *__restrict__ base)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r >= m) return;
  for (PetscCount t = ((PetscCount)ci[r] + TERMS_TILE - 1) / TERMS_TILE; t * TERMS_TILE < ci[r + 1]; t++) base[t] = ai[r];
}

/* which of the step's n entries of A has the product p */
static __device__ __forceinline__ int HashTermsEntry(const PetscInt *first, int n, PetscInt p)
{
  int lo = 0, hi = n - 1;

  while (lo < hi) {
    const int mid = (lo + hi + 1) / 2;

    if (first[mid] <= p)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

/* rows order[begin] to order[end - 1], which have at most room entries (even), N threads each */
template <int N>
static __global__ void __launch_bounds__(HybGroup<N>::THREADS) HashTermsRows(HashArgs x, HybHashTerms to, PetscInt begin, PetscInt end, int room)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, firsts, G::GROUPS * (TERMS_STEP + 1));
  /* met: two to a word */
  unsigned *const next = shared + (size_t)G::index() * (room + room / 2), *const met = next + room;
  PetscInt *const  first = firsts + G::index() * (TERMS_STEP + 1);
  const PetscCount q     = begin + (PetscCount)blockIdx.x * G::GROUPS + G::index();

  if (q >= end) return;
  const PetscInt              row = x.order[q], abegin = x.ai[row], aend = x.ai[row + 1], cbegin = x.ci[row], nnz = x.ci[row + 1] - cbegin;
  const PetscCount            product = x.placeptr[row];
  const PetscInt              total   = (PetscInt)(x.placeptr[row + 1] - product);
  const unsigned short *const place   = x.places + product;
  unsigned                    found   = 0;
  bool                        far     = false;

  for (PetscInt e = G::rank(); e < nnz; e += N) next[e] = 0;
  for (PetscInt e = G::rank(); 2 * e < nnz; e += N) met[e] = 0;
  G::sync();
  for (PetscInt p = G::rank(); p < total; p += N) (void)HybAtomicAdd(&next[place[p]], 1u);
  G::sync();
  for (PetscInt e0 = 0; e0 < nnz; e0 += N) {
    const PetscInt e    = e0 + G::rank();
    const unsigned here = e < nnz ? next[e] : 0;
    unsigned       all;
    const unsigned at = found + G::exclusiveSum(here, scratch, &all);

    if (e < nnz) {
      const PetscCount c = (PetscCount)cbegin + e;

      to.length[c] = (unsigned short)here;
      far          = far || here > 0xffffu;
      next[e]      = at;
      if (c % TERMS_TILE == 0) to.ptr[c / TERMS_TILE] = product + at;
    }
    found += all;
  }
  for (PetscInt k0 = abegin; k0 < aend; k0 += TERMS_STEP) {
    const int n = (int)HybMin()((PetscInt)TERMS_STEP, aend - k0);

    G::sync();
    for (int u = G::rank(); u <= n; u += N) first[u] = k0 + u < aend ? x.off[k0 + u] : total;
    G::sync();
    for (PetscInt p = first[0] + G::rank(); p < first[n]; p += N) {
      const int at = place[p];

      (void)HybAtomicOr(&met[at >> 1], 1u << (HashTermsEntry(first, n, p) + TERMS_STEP * (at & 1)));
    }
    G::sync();
    for (PetscInt p = first[0] + G::rank(); p < first[n]; p += N) {
      const int        at = place[p], u = HashTermsEntry(first, n, p);
      const unsigned   lower = (met[at >> 1] >> (TERMS_STEP * (at & 1))) & ((1u << u) - 1);
      const PetscCount a     = k0 + u - (PetscCount)to.base[((PetscCount)cbegin + at) / TERMS_TILE];
      const PetscInt   b     = p - first[u];

      far                                         = far || a > 0xffff || b > 0xffff;
      to.term[product + next[at] + __popc(lower)] = {(unsigned short)a, (unsigned short)b};
    }
    G::sync();
    for (PetscInt e = G::rank(); 2 * e < nnz; e += N) {
      const unsigned both = met[e];

      if (!both) continue;
      next[2 * e] += __popc(both & 0xffffu);
      if (2 * e + 1 < nnz) next[2 * e + 1] += __popc(both >> TERMS_STEP);
      met[e] = 0;
    }
  }
  if (far) (void)HybAtomicOr(to.far, 1);
}

static __global__ void __launch_bounds__(HybGroup<TERMS_TILE>::THREADS) HashTermsSums(HashArgs x, HybHashTerms terms, PetscCount nnz)
{
  using G = HybGroup<TERMS_TILE>;
  HYB_SHARED(HybScalar, products, G::GROUPS * TERMS_CHUNK);
  HYB_SHARED(int, scratch, HYB_WARP);
  HybScalar *const product = products + G::index() * TERMS_CHUNK;
  const PetscCount tile = (PetscCount)blockIdx.x * G::GROUPS + G::index(), c = tile * TERMS_TILE + G::rank();

  if (tile * TERMS_TILE >= nnz) return;
  const int             len               = c < nnz ? (int)terms.length[c] : 0;
  const PetscInt        base              = terms.base[tile];
  const HashTerm *const term              = terms.term + terms.ptr[tile];
  const HybScalar *const __restrict__ a   = x.aa + base;
  const PetscInt *const __restrict__ from = terms.from + base;
  HybScalar sum                           = HybNegativeZero();
  int       total;
  const int first = G::exclusiveSum(len, scratch, &total);

  for (int t0 = 0; t0 < total; t0 += TERMS_CHUNK) {
    constexpr int EACH = TERMS_CHUNK / TERMS_TILE;
    const int     end  = HybMin()(t0 + TERMS_CHUNK, total);
    HashTerm      t[EACH];
    PetscInt      at[EACH];

    /* what each load waits for is on its way for all */
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      const int p = t0 + u * TERMS_TILE + G::rank();

      t[u] = term[p < end ? p : t0];
    }
#pragma unroll
    for (int u = 0; u < EACH; u++) at[u] = from[t[u].a] + t[u].b;
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      const int p = u * TERMS_TILE + G::rank();

      if (t0 + p < end) product[p] = HybMul(a[t[u].a], x.ba[at[u]]);
    }
    G::sync();
    const int last = HybMin()(first + len, end);
    for (int p = HybMax()(first, t0); p < last; p++) sum = sum + product[p - t0];
    G::sync();
  }
  if (c < nnz) x.ca[c] = sum;
}

/* what stays, an allocation */
static PetscErrorCode HashTermsRoom(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, HybHashTerms *to)
{
  const PetscCount tiles = HybBlocks(C->nnz, TERMS_TILE);

  PetscFunctionBegin;
  for (int pass = 0; pass < 2; pass++) {
    size_t used = 0;

    HybCarve(to->room, &used, (size_t)tiles * sizeof(*to->ptr), &to->ptr);
    HybCarve(to->room, &used, (size_t)mm->stats.products * sizeof(*to->term), &to->term);
    HybCarve(to->room, &used, (size_t)A->nnz * sizeof(*to->from), &to->from);
    HybCarve(to->room, &used, (size_t)tiles * sizeof(*to->base), &to->base);
    HybCarve(to->room, &used, (size_t)C->nnz * sizeof(*to->length), &to->length);
    HybCarve(to->room, &used, sizeof(*to->far), &to->far);
    if (!pass) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &to->room));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* terms by the places: bins of the rows' tables, long rows first */
static PetscErrorCode HashTermsMake(const HybExec *exec, PetscInt m, const HybHashRows *hash, HashArgs x, HybHashTerms to)
{
  PetscFunctionBegin;
  HYB_LAUNCH(HashTermsTiles, HybBlocks(m, 256), 256, 0, exec->stream, m, x.ai, x.ci, to.base);
  x.order = hash->order;
  for (int b = HYB_HASH_BINS - 1; b > 0; b--) {
    const PetscInt begin = hash->hostbinptr[b], end = hash->hostbinptr[b + 1];
    /* a table has as many bytes at least as its row's values */
    const PetscCount most = PetscMin((PetscCount)hash->longest, b < HASH_WHOLE ? HashLimit[b] / 8 : (PetscCount)PETSC_MAX_INT);
    const int        room = (int)((most + 1) & ~(PetscCount)1);

    if (begin == end) continue;
    PetscCall(HybDispatch(room <= TERMS_WARP ? 32 : b < HASH_WHOLE ? 256
                                                                   : 512,
                          HybCases<32, 256, 512>(), [&](auto N) {
                            HYB_LAUNCH((HashTermsRows<N>), HybBlocks(end - begin, HybGroup<N>::GROUPS), HybGroup<N>::THREADS,
                                       (size_t)HybGroup<N>::GROUPS * TERMS_BYTES(room), exec->stream, x, to, begin, end, room);
                            return PETSC_SUCCESS;
                          }));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HashTermsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  const HybExec *exec     = &mm->exec;
  const PetscInt tuned    = HybDeviceTuning()->hash_places;
  const size_t   products = (size_t)mm->stats.products, kept = products * sizeof(HashTerm) + (size_t)C->nnz * sizeof(unsigned short) + (size_t)A->nnz * sizeof(PetscInt);
  const size_t   most   = (size_t)C->nnz * (sizeof(PetscInt) + sizeof(HybScalar)) / 100 * (size_t)(tuned < 0 ? TERMS_SHARE : tuned);
  const size_t   making = products * sizeof(unsigned short) + (size_t)A->nnz * sizeof(PetscInt) + (size_t)A->m * 2 * sizeof(PetscCount);
  PetscCount    *cost, *placeptr;
  size_t         spare;
  HashArgs       x;
  int            far = 0;

  PetscFunctionBegin;
  if (!tuned || mm->reuse || kept > most || mm->stats.maxrow > (PetscCount)PETSC_MAX_INT || TERMS_BYTES(hash->longest + 1) > (size_t)hash->maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMemorySpare(exec, &spare));
  if (kept + making > spare / (tuned < 0 ? TERMS_SPARE : 1)) PetscFunctionReturn(PETSC_SUCCESS);
  HybHashOperands(A, B, &x);
  PetscCall(HashTermsRoom(mm, A, C, &hash->terms));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + 1, sizeof(PetscCount), &placeptr));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscCount), &cost));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->nnz, sizeof(PetscInt), &x.off));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, mm->stats.products, sizeof(unsigned short), &x.places));
  PetscCall(exec->backend->zero(exec, hash->terms.far, sizeof(*hash->terms.far)));
  PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, cost, NULL));
  PetscCall(HybScanCounts64(exec, &mm->work, A->m, cost, placeptr, NULL, NULL));
  x.ci       = C->i;
  x.cj       = C->j;
  x.placeptr = placeptr;
  x.from     = hash->terms.from;
  PetscCall(HybHashRowStarts(exec, A->m, x));
  PetscCall(HybHashRun(mm, hash, x, 1, HYB_HASH_BINS - 1));
  PetscCall(HashTermsMake(exec, A->m, hash, x, hash->terms));
  PetscCall(exec->backend->copy(exec, &far, hash->terms.far, sizeof(far), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(&mm->work, &x.places));
  PetscCall(HybArenaFree(&mm->work, &x.off));
  PetscCall(HybArenaFree(&mm->work, &cost));
  PetscCall(HybArenaFree(&mm->work, &placeptr));
  if (far) {
    PetscCall(HybArenaFree(&mm->keep, &hash->terms.room));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybCountersSet(&mm->counters, "terms", mm->stats.products));
  mm->reads = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashRowsUnplan(HybSpGEMM *mm, HybHashRows *hash)
{
  PetscErrorCode ierr[5];

  PetscFunctionBegin;
  ierr[0] = HybArenaFree(&mm->keep, &hash->terms.room);
  ierr[1] = HybArenaFree(&mm->keep, &hash->from);
  ierr[2] = HybArenaFree(&mm->keep, &hash->placeptr);
  ierr[3] = HybArenaFree(&mm->keep, &hash->planorder);
  ierr[4] = HybArenaFree(&mm->keep, &hash->places);
  for (int k = 0; k < 5; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numeric phases go on without a plan whose making failed, and they need the memory */
PetscErrorCode HybHashRowsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C)
{
  PetscErrorCode ierr = HashTermsPlan(mm, A, B, hash, C);

  PetscFunctionBegin;
  if (!ierr && !hash->terms.room) ierr = HybHashPlaces(mm, A, B, hash, C);
  if (ierr) (void)HybHashRowsUnplan(mm, hash);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashTermsSums(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  HybHashOperands(A, B, &x);
  x.ca = C->a;
  HYB_LAUNCH(HashTermsSums, HybBlocks(C->nnz, HybGroup<TERMS_TILE>::GROUPS * TERMS_TILE), HybGroup<TERMS_TILE>::THREADS, 0, mm->exec.stream, x, hash->terms, C->nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}
