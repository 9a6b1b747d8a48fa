/*
  terms.cu: a plan of hashrows.cu for numeric phases that come again on one pattern: for each entry of C its terms,
  the products whose sum it is: which entry of A, and which of the row of B that it names.

  Idea. By tables, and by places (places.cu), a row of C takes a step for each entry of its row of A, one after the
  other, and the longest rows of A decide how long a small product takes. Listed by entries of C nothing waits for
  anything: products come in one pass over the lists, whatever rows they belong to, and each entry adds its own in the
  order of A's entries.

    plan       tiles of TERMS_TILE entries of C: the row of A that they count from, and how a term is written: 2 bytes
               where those of its number among A's entries and in the row of B fit, shared out by what they need, else 4
               room for each row: the terms that it has, as wide as the widest of its tiles; scan (one synchronisation)
               one part of the rows after the other:
                 places of the part's products (places.cu's step), in C's values, if these hold them and come next
                 a sub-warp or a block a row of C: count the products at each place; scan: where tiles begin
                 the same again, TERMS_STEP entries of A at a time: a bit for each at the places of its row of B   (met)
                     each product: its term comes after those of earlier steps and of lower bits there
                     begins of entries go on by their bits
    numeric    a block a tile, TERMS_CHUNK products at a time:
                 product[t] = a[base + term.a] b[from[base + term.a] + term.b]
                 a thread an entry of C: its products, in order, from shared memory

  A product and its sum are rounded apart, as everywhere; sums start from -0.

  Where there are many products places are faster and smaller. Tiles of other sizes, and figures: docs/tried.md,
  Thresholds.

  Most products have terms of 2 bytes where rows are short.

  Not taken where a row of C has more entries than a block has room for, where a tile's entries of A are more than
  65535, from TERMS_MANY products on, and where memory would be too much: TERMS_SHARE percent of C's, or as many as
  -mat_aijhybridgpu_tuning hash_places says, which then also takes more products. A product that expects its numeric
  phases (a Galerkin product's) has no terms.

  Memory kept: 2 or 4 bytes a product, 1 or 2 an entry of C, 4 an entry of A; while they are made, as far as C's values
  have no room, 2 a product of a part and 4 an entry of A more. Complexity: numeric, one pass over the products; the
  plan four, and one over C for each TERMS_STEP entries of a row of A.
*/
#include "hashargs.cuh"
#include "../../structure/rowops.cuh"
#include "../../device/carve.h"

#define TERMS_TILE        64  /* entries of C, a thread each */
#define TERMS_CHUNK       256 /* products in shared memory */
#define TERMS_STEP        16  /* entries of A, a bit each for an entry of C */
#define TERMS_WARP        512 /* entries of a row of C that a warp takes, and bytes of its counters */
#define TERMS_BYTES(room) ((size_t)(room) * (sizeof(unsigned) + sizeof(unsigned short)))
#define TERMS_SHARE       100
#define TERMS_MANY        ((PetscCount)1 << 27)
#define TERMS_WIDE        0x80 /* of a tile's form: 4 bytes a term */
#define TERMS_PARTS       2    /* in which they are made, at most, or of about so many bytes of places each */
#define TERMS_PART        4194304

static __device__ __forceinline__ int HashTermsBits(PetscInt n)
{
  int bits = 0;

  while (n >> bits) bits++;
  return bits;
}

/* of each tile the first entry of A that it counts from, the first of the row that it begins in, and the form of its
   terms: the bits of A's part, TERMS_WIDE. widest: the longest row of B that each row of A names. */
static __global__ void __launch_bounds__(256) HashTermsTiles(PetscInt m, PetscCount nnz, const PetscInt *__restrict__ ai, const PetscInt *__restrict__ ci, const PetscInt *__restrict__ widest, HybHashTerms to, int *far)
{
  const PetscCount tile = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (tile * TERMS_TILE >= nnz) return;
  const PetscInt last = (PetscInt)(HybMin()((tile + 1) * TERMS_TILE, nnz) - 1);
  PetscInt       row = RowOfEntry(ci, 0, m, (PetscInt)(tile * TERMS_TILE)), longest = widest[row];
  const PetscInt base = ai[row];

  while (ci[row + 1] <= last) {
    const PetscInt next = ci[++row];

    if (ci[row + 1] == next) row = RowOfEntry(ci, row, m, next); /* behind empty ones */
    longest = HybMax()(longest, widest[row]);
  }
  const PetscInt entries = ai[row + 1] - base;
  const int      a = HashTermsBits(entries - 1), b = HashTermsBits(longest - 1);

  to.base[tile] = base;
  to.form[tile] = (unsigned char)(a + b > 16 ? TERMS_WIDE | 16 : a);
  /* rows of B are no longer than rows of C */
  if (entries > 0xffff) (void)HybAtomicOr(far, 1);
}

static __device__ __forceinline__ unsigned HashTermsLength(const HybHashTerms &terms, PetscCount c)
{
  return terms.bytelength ? (unsigned)static_cast<const unsigned char *>(terms.length)[c] : (unsigned)static_cast<const unsigned short *>(terms.length)[c];
}

/* a row has a tile that is wide; those between its first and its last one are its own alone, and alike */
static __device__ __forceinline__ int HashTermsWide(const HybHashTerms &terms, PetscInt cbegin, PetscInt cend)
{
  const PetscInt first = cbegin / TERMS_TILE, last = (cend - 1) / TERMS_TILE;

  return ((terms.form[first] | terms.form[last] | (first + 1 < last ? terms.form[first + 1] : 0)) & TERMS_WIDE) != 0;
}

/* cost: products of each row, then the words of 16 bits that its terms have, an even number */
static __global__ void __launch_bounds__(256) HashTermsRoom(PetscInt m, const PetscInt *__restrict__ ci, HybHashTerms terms, PetscCount *__restrict__ cost)
{
  const PetscCount r = (PetscCount)blockIdx.x * 256 + threadIdx.x;

  if (r < m && ci[r] < ci[r + 1]) cost[r] = ((cost[r] << HashTermsWide(terms, ci[r], ci[r + 1])) + 1) & ~(PetscCount)1;
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

/* of a row of the part: its entries and products */
struct HashTermsRow {
  PetscInt              abegin, aend, cbegin, nnz, total;
  PetscCount            word; /* where its terms begin */
  const unsigned short *place;

  __device__ __forceinline__ bool set(const HashArgs &x, const PetscCount *words, PetscInt row)
  {
    const PetscCount product = x.placeptr[row];

    if (product < x.partbegin || product >= x.partend) return false;
    abegin = x.ai[row];
    aend   = x.ai[row + 1];
    cbegin = x.ci[row];
    nnz    = x.ci[row + 1] - cbegin;
    total  = (PetscInt)(x.placeptr[row + 1] - product);
    word   = words[row];
    place  = x.places + (product - x.partbegin);
    return true;
  }
};

/* Rows order[begin] to order[end - 1], which have at most room entries (even), N threads each: terms of each entry, and
   where each tile's begin */
template <int N>
static __global__ void __launch_bounds__(HybGroup<N>::THREADS) HashTermsCount(HashArgs x, HybHashTerms to, const PetscCount *words, PetscInt begin, PetscInt end, int room)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  unsigned *const  count = shared + (size_t)G::index() * room;
  const PetscCount q     = begin + (PetscCount)blockIdx.x * G::GROUPS + G::index();
  unsigned         found = 0;
  HashTermsRow     r;

  if (q >= end || !r.set(x, words, x.order[q])) return;
  for (PetscInt e = G::rank(); e < r.nnz; e += N) count[e] = 0;
  G::sync();
  for (PetscInt p = G::rank(); p < r.total; p += N) (void)HybAtomicAdd(&count[r.place[p]], 1u);
  G::sync();
  const int wide = HashTermsWide(to, r.cbegin, r.cbegin + r.nnz);

  for (PetscInt e0 = 0; e0 < r.nnz; e0 += N) {
    const PetscInt   e    = e0 + G::rank();
    const PetscCount c    = (PetscCount)r.cbegin + e;
    const unsigned   here = e < r.nnz ? count[e] : 0;
    unsigned         all;
    const unsigned   at = found + G::exclusiveSum(here, scratch, &all);

    if (e < r.nnz) {
      if (to.bytelength)
        static_cast<unsigned char *>(to.length)[c] = (unsigned char)here;
      else
        static_cast<unsigned short *>(to.length)[c] = (unsigned short)here;
      if (c % TERMS_TILE == 0) to.ptr[c / TERMS_TILE] = r.word + ((PetscCount)at << wide);
    }
    found += all;
  }
}

/* the terms of the same rows */
template <int N>
static __global__ void __launch_bounds__(HybGroup<N>::THREADS) HashTermsWrite(HashArgs x, HybHashTerms to, const PetscCount *words, PetscInt begin, PetscInt end, int room)
{
  using G = HybGroup<N>;
  HYB_DYNAMIC_SHARED(unsigned, shared);
  HYB_SHARED(unsigned, scratch, HYB_WARP);
  HYB_SHARED(PetscInt, firsts, G::GROUPS * (TERMS_STEP + 1));
  /* next: where the next term of each entry goes, from the row's first on; met: two to a word */
  unsigned *const next = shared + (size_t)G::index() * (room + room / 2), *const met = next + room;
  PetscInt *const  first = firsts + G::index() * (TERMS_STEP + 1);
  const PetscCount q     = begin + (PetscCount)blockIdx.x * G::GROUPS + G::index();
  unsigned         found = 0, before = 0;
  HashTermsRow     r;

  if (q >= end || !r.set(x, words, x.order[q])) return;
  const int      wide    = HashTermsWide(to, r.cbegin, r.cbegin + r.nnz);
  const PetscInt partial = r.cbegin % TERMS_TILE; /* entries of rows before in the first tile */

  for (PetscInt e = G::rank(); e < partial; e += N) before += HashTermsLength(to, (PetscCount)r.cbegin - partial + e);
  before = G::reduce(before, scratch, HybSum());
  for (PetscInt e0 = 0; e0 < r.nnz; e0 += N) {
    const PetscInt e = e0 + G::rank();
    unsigned       all;
    const unsigned at = found + G::exclusiveSum(e < r.nnz ? HashTermsLength(to, (PetscCount)r.cbegin + e) : 0u, scratch, &all);

    if (e < r.nnz) next[e] = at;
    found += all;
  }
  for (PetscInt e = G::rank(); 2 * e < r.nnz; e += N) met[e] = 0;
  for (PetscInt k0 = r.abegin; k0 < r.aend; k0 += TERMS_STEP) {
    const int n = (int)HybMin()((PetscInt)TERMS_STEP, r.aend - k0);

    G::sync();
    for (int u = G::rank(); u <= n; u += N) first[u] = k0 + u < r.aend ? x.off[k0 + u] : r.total;
    G::sync();
    for (PetscInt p = first[0] + G::rank(); p < first[n]; p += N) {
      const int at = r.place[p];

      (void)HybAtomicOr(&met[at >> 1], 1u << (HashTermsEntry(first, n, p) + TERMS_STEP * (at & 1)));
    }
    G::sync();
    for (PetscInt p = first[0] + G::rank(); p < first[n]; p += N) {
      const int        at = r.place[p], u = HashTermsEntry(first, n, p);
      const unsigned   lower = (met[at >> 1] >> (TERMS_STEP * (at & 1))) & ((1u << u) - 1);
      const PetscInt   c = r.cbegin + at, tile = c / TERMS_TILE;
      const PetscCount ptr  = to.ptr[tile];
      const int        form = to.form[tile];
      /* from the tile's first term on */
      const PetscCount t    = (PetscCount)next[at] + __popc(lower) + (tile * TERMS_TILE < r.cbegin ? (PetscCount)before : -((ptr - r.word) >> wide));
      const unsigned   term = (unsigned)(k0 + u - to.base[tile]) | (unsigned)(p - first[u]) << (form & 31);

      if (form & TERMS_WIDE)
        ((unsigned *)(to.term + ptr))[t] = term;
      else
        to.term[ptr + t] = (unsigned short)term;
    }
    G::sync();
    for (PetscInt e = G::rank(); 2 * e < r.nnz; e += N) {
      const unsigned both = met[e];

      if (!both) continue;
      next[2 * e] += __popc(both & 0xffffu);
      if (2 * e + 1 < r.nnz) next[2 * e + 1] += __popc(both >> TERMS_STEP);
      met[e] = 0;
    }
  }
}

static __global__ void __launch_bounds__(HybGroup<TERMS_TILE>::THREADS) HashTermsSums(HashArgs x, HybHashTerms terms, PetscCount nnz)
{
  using G = HybGroup<TERMS_TILE>;
  HYB_SHARED(HybScalar, products, G::GROUPS * TERMS_CHUNK);
  HYB_SHARED(int, scratch, HYB_WARP);
  HybScalar *const product = products + G::index() * TERMS_CHUNK;
  const PetscCount tile = (PetscCount)blockIdx.x * G::GROUPS + G::index(), c = tile * TERMS_TILE + G::rank();

  if (tile * TERMS_TILE >= nnz) return;
  const int                   len  = c < nnz ? (int)HashTermsLength(terms, c) : 0;
  const PetscInt              base = terms.base[tile];
  const int                   form = terms.form[tile], shift = form & 31;
  const unsigned              low         = (1u << shift) - 1;
  const unsigned short *const term        = terms.term + terms.ptr[tile];
  const HybScalar *const __restrict__ a   = x.aa + base;
  const PetscInt *const __restrict__ from = terms.from + base;
  HybScalar sum                           = HybNegativeZero();
  int       total;
  const int first = G::exclusiveSum(len, scratch, &total);

  for (int t0 = 0; t0 < total; t0 += TERMS_CHUNK) {
    constexpr int EACH = TERMS_CHUNK / TERMS_TILE;
    const int     end  = HybMin()(t0 + TERMS_CHUNK, total);
    unsigned      t[EACH];
    PetscInt      at[EACH];

    /* what each load waits for is on its way for all */
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      const int p = t0 + u * TERMS_TILE + G::rank();

      t[u] = form & TERMS_WIDE ? ((const unsigned *)term)[p < end ? p : t0] : term[p < end ? p : t0];
    }
#pragma unroll
    for (int u = 0; u < EACH; u++) at[u] = from[t[u] & low] + (PetscInt)(t[u] >> shift);
#pragma unroll
    for (int u = 0; u < EACH; u++) {
      const int p = u * TERMS_TILE + G::rank();

      if (t0 + p < end) product[p] = HybMul(a[t[u] & low], x.ba[at[u]]);
    }
    G::sync();
    const int last = HybMin()(first + len, end);
    for (int p = HybMax()(first, t0); p < last; p++) sum = sum + product[p - t0];
    G::sync();
  }
  if (c < nnz) x.ca[c] = sum;
}

/* of the number of an entry's terms, of which there are no more than its row of A has entries */
static size_t HashTermsLengthBytes(const HybSpGEMM *mm)
{
  return mm->stats.maxarow <= 255 ? sizeof(unsigned char) : sizeof(unsigned short);
}

/* what stays beside the terms, an allocation */
static PetscErrorCode HashTermsSmall(HybSpGEMM *mm, const HybCSR *A, const HybCSR *C, HybHashTerms *to)
{
  const PetscCount tiles = HybBlocks(C->nnz, TERMS_TILE);

  PetscFunctionBegin;
  to->bytelength = HashTermsLengthBytes(mm) == sizeof(unsigned char);
  for (int pass = 0; pass < 2; pass++) {
    size_t used = 0;

    HybCarve(to->room, &used, (size_t)tiles * sizeof(*to->ptr), &to->ptr);
    HybCarve(to->room, &used, (size_t)A->nnz * sizeof(*to->from), &to->from);
    HybCarve(to->room, &used, (size_t)tiles * sizeof(*to->base), &to->base);
    HybCarve(to->room, &used, (size_t)C->nnz * HashTermsLengthBytes(mm), &to->length);
    HybCarve(to->room, &used, (size_t)tiles * sizeof(*to->form), &to->form);
    if (!pass) PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)used, 1, &to->room));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bin b of a part's counts, or of its terms, by the places */
static PetscErrorCode HashTermsBin(const HybExec *exec, const HybHashRows *hash, HashArgs x, const PetscCount *words, bool write, int b)
{
  const PetscInt begin = hash->hostbinptr[b], end = hash->hostbinptr[b + 1];
  /* a table has as many bytes at least as its row's values */
  const PetscCount most = PetscMin((PetscCount)hash->longest, b < HASH_WHOLE ? HashLimit[b] / 8 : (PetscCount)PETSC_MAX_INT);
  const int        room = (int)((most + 1) & ~(PetscCount)1);

  PetscFunctionBegin;
  x.order = hash->order;
  PetscCall(HybDispatch(room <= TERMS_WARP ? 32 : b < HASH_WHOLE ? 256
                                                                 : 512,
                        HybCases<32, 256, 512>(), [&](auto N) {
                          if (write)
                            HYB_LAUNCH((HashTermsWrite<N>), HybBlocks(end - begin, HybGroup<N>::GROUPS), HybGroup<N>::THREADS,
                                       (size_t)HybGroup<N>::GROUPS * TERMS_BYTES(room), exec->stream, x, hash->terms, words, begin, end, room);
                          else
                            HYB_LAUNCH((HashTermsCount<N>), HybBlocks(end - begin, HybGroup<N>::GROUPS), HybGroup<N>::THREADS,
                                       (size_t)HybGroup<N>::GROUPS * room * sizeof(unsigned), exec->stream, x, hash->terms, words, begin, end, room);
                          return PETSC_SUCCESS;
                        }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all bins, those of long rows first, dealt to streams in turn: none waits for the last rows of another one */
static PetscErrorCode HashTermsBins(const HybExec *exec, const HybHashRows *hash, HashArgs x, const PetscCount *words, bool write)
{
  int            bin[HYB_HASH_BINS], n = 0;
  HybExec        side[HYB_SIDE_STREAMS];
  PetscErrorCode ierr, first = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int b = HYB_HASH_BINS - 1; b > 0; b--) {
    if (hash->hostbinptr[b] < hash->hostbinptr[b + 1]) bin[n++] = b;
  }
  const int sides = PetscMin(n - 1, HYB_SIDE_STREAMS);

  PetscCall(HybDeviceFork(exec, sides, side));
  for (int k = 0; k < n; k++) {
    const int turn = k % (sides + 1);

    ierr = HashTermsBin(turn < sides ? &side[turn] : exec, hash, x, words, write, bin[k]);
    if (!first) first = ierr;
  }
  ierr = HybDeviceJoin(exec, sides);
  if (!first) first = ierr;
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of a part: all of them where C's values have room for their places. Small parts are for who limits memory
   himself: their launches take longer than what they do. */
static PetscCount HashTermsEach(const HybSpGEMM *mm)
{
  const PetscInt   tuned    = HybDeviceTuning()->hash_places;
  const PetscCount products = mm->stats.products, bytes = products * (PetscCount)sizeof(unsigned short);
  const PetscCount parts = tuned >= 0 ? products : (size_t)bytes <= mm->unwrittenbytes ? 1
                                                                                       : (bytes + TERMS_PART - 1) / TERMS_PART;

  return HybBlocks(products, PetscMin(parts, (PetscCount)TERMS_PARTS));
}

/* places of a part: a row belongs to the one in which its first product is */
static PetscCount HashTermsPlaces(const HybSpGEMM *mm)
{
  return PetscMin(mm->stats.products, HashTermsEach(mm) + mm->stats.maxrow);
}

/* The terms, a part after the other */
static PetscErrorCode HashTermsMake(HybSpGEMM *mm, const HybHashRows *hash, HashArgs x, const PetscCount *words)
{
  const PetscCount each = HashTermsEach(mm);

  PetscFunctionBegin;
  if (!x.places) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, HashTermsPlaces(mm), sizeof(*x.places), &x.places));
  for (x.partbegin = 0; x.partbegin < mm->stats.products; x.partbegin += each) {
    x.partend = x.partbegin + each;
    PetscCall(HybHashRun(mm, hash, x, 1, HYB_HASH_BINS - 1));
    PetscCall(HashTermsBins(&mm->exec, hash, x, words, false));
    PetscCall(HashTermsBins(&mm->exec, hash, x, words, true));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* bytes that terms take beside their words */
static size_t HashTermsBeside(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *C)
{
  return (size_t)C->nnz * HashTermsLengthBytes(mm) + (size_t)A->nnz * sizeof(PetscInt);
}

static size_t HashTermsMost(const HybCSR *C)
{
  const PetscInt tuned = HybDeviceTuning()->hash_places;

  return (size_t)C->nnz * (sizeof(PetscInt) + sizeof(HybScalar)) / 100 * (size_t)(tuned < 0 ? TERMS_SHARE : tuned);
}

size_t HybHashTermsLeast(const HybSpGEMM *mm, const HybCSR *A, const HybHashRows *hash, const HybCSR *C)
{
  const size_t   least = (size_t)mm->stats.products * sizeof(unsigned short) + HashTermsBeside(mm, A, C);
  const PetscInt tuned = HybDeviceTuning()->hash_places;

  if (!tuned || mm->reuse || (tuned < 0 && mm->stats.products >= TERMS_MANY) || mm->stats.maxrow > (PetscCount)PETSC_MAX_INT || TERMS_BYTES(hash->longest + 1) > (size_t)hash->maxbytes) return 0;
  return least <= HashTermsMost(C) ? least : 0;
}

PetscErrorCode HybHashTermsPlan(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybHashRows *hash, const HybCSR *C, size_t spare)
{
  const HybExec *exec  = &mm->exec;
  HybHashTerms  *terms = &hash->terms;
  PetscCount    *cost, *placeptr, *words, found[2]; /* words in all; are there numbers that 16 bits cannot tell? */
  PetscInt      *widest;
  const size_t   held   = mm->keep.bytes;
  const size_t   places = ((size_t)HashTermsPlaces(mm) * sizeof(*terms->term) + 15) / 16 * 16;
  HashArgs       x;

  PetscFunctionBegin;
  HybHashPlanOperands(A, B, C, &x);
  PetscCall(HashTermsSmall(mm, A, C, terms));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + 1, sizeof(PetscCount), &placeptr));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)A->m + 2, sizeof(PetscCount), &words));
  /* C's values are not written yet */
  if (places <= mm->unwrittenbytes) x.places = (unsigned short *)mm->unwritten;
  if (places + (size_t)A->nnz * sizeof(PetscInt) <= mm->unwrittenbytes && (uintptr_t)mm->unwritten % sizeof(PetscInt) == 0)
    x.off = (PetscInt *)((char *)mm->unwritten + places);
  else
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->nnz, sizeof(PetscInt), &x.off));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscCount), &cost));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, A->m, sizeof(PetscInt), &widest));
  PetscCall(exec->backend->zero(exec, words + A->m + 1, sizeof(*words)));
  x.from     = terms->from;
  x.widest   = widest;
  x.placeptr = placeptr;
  PetscCall(HybHashRowStarts(exec, A->m, x));
  HYB_LAUNCH(HashTermsTiles, HybBlocks(HybBlocks(C->nnz, TERMS_TILE), 256), 256, 0, exec->stream, A->m, C->nnz, A->i, C->i, widest, *terms, (int *)(words + A->m + 1));
  PetscCall(HybPlanRowCosts(exec, A, B->i, NULL, cost, NULL));
  PetscCall(HybScanCounts64(exec, &mm->work, A->m, cost, placeptr, NULL, NULL));
  HYB_LAUNCH(HashTermsRoom, HybBlocks(A->m, 256), 256, 0, exec->stream, A->m, C->i, *terms, cost);
  PetscCall(HybScanCounts64(exec, &mm->work, A->m, cost, words, NULL, NULL));
  PetscCall(exec->backend->copy(exec, found, words + A->m, sizeof(found), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybArenaFree(&mm->work, &widest, &cost));
  const size_t kept = (size_t)found[0] * sizeof(unsigned short) + HashTermsBeside(mm, A, C);
  /* what is there by now (the arenas' are this product's alone), and what is still to be taken */
  const size_t taken = mm->keep.bytes - held + mm->work.bytes + (size_t)found[0] * sizeof(unsigned short) + (x.places ? 0 : places);

  if (!found[1] && kept <= HashTermsMost(C) && taken <= spare) {
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, found[0], sizeof(unsigned short), &terms->term));
    PetscCall(HashTermsMake(mm, hash, x, words));
  } else
    PetscCall(HybArenaFree(&mm->keep, &terms->room));
  PetscCall(HybArenaReset(&mm->work));
  /* last: who makes plans gives this one back after an error */
  if (terms->term) {
    PetscCall(HybCountersSet(&mm->counters, "terms", mm->stats.products));
    PetscCall(HybCountersSet(&mm->counters, "term bytes", found[0] * (PetscCount)sizeof(unsigned short)));
    mm->reads = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybHashTermsSums(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybHashRows *hash, HybCSR *C)
{
  HashArgs x;

  PetscFunctionBegin;
  HybSpGEMMOperands(A, B, &x);
  x.ca = C->a;
  HYB_LAUNCH(HashTermsSums, HybBlocks(C->nnz, HybGroup<TERMS_TILE>::GROUPS * TERMS_TILE), HybGroup<TERMS_TILE>::THREADS, 0, mm->exec.stream, x, hash->terms, C->nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}
