/*
  shape.cu: SpGEMM method "shape": no hashing and no sorting where rows repeat their shape.

  Idea. Matrices from structured grids have millions of rows and a few dozen shapes. Two rows of A are of one class if
  the rows of B that they name have, one by one, the same shapes and the same columns relative to each other: then their
  rows of C have one shape as well, and every intermediate product goes to the same place of it. So the products of one
  representative of each class are sorted once, into a table place[product]; the count of a row is its class's, and the
  numeric pass is loads, multiplications and additions.

    1. classes of B's rows: a signature of (column - base of the row) goes into a small global table that keeps the
       smallest row of each signature, its
                             representative
    2. classes of A's rows:  the same over (slot of the row of B, its base - base of the row of A) for each entry
    3. every row is compared with its representative entry by entry, so no collision of signatures can matter: a row of
       A that differs has no class, and a row of B that differs ends the attempt
    4. for each class, a block: sort (column, product) of the representative; place, the columns relative to the base,
       the count
    5. counts by class, scan, columns; rows without a class, if any, by hash tables (../hash/hashrows.cu)
    6. numeric: a sub-warp a row, lanes across a row of B, A's entries in order: c[place[p]] += a_k * b[p], c in shared
       memory

  The base of a row is its number where both operands are square, else the first column of B's row (of the first row of
  B that A's row names): so A*P and R*A with structured interpolation have few classes too, whose rows and columns are
  numbered by different grids.

  Not applicable: fewer than four fifths of A's rows as long as one of the three before them (the plan has counted
  these), more classes than SHAPE_MAX_CLASSES, fewer than SHAPE_ROWS_PER_CLASS rows a class on average, or more than a
  fifth of the rows without one. A row with more than SHAPE_MAX_PRODUCTS products or SHAPE_MAX_COUNT entries of C has no
  class. Asked for by name the method always runs; rows without a class go to hash tables.

  Memory: 2 bytes a row, 4 for the bases of a rectangular operand, and 2 bytes for each product of each representative.
  Complexity: three passes over the patterns of A and B, one multiplication and addition for each product. Products are
  added in the order of A's entries.
*/
#include "hashrows.cuh"
#include "../structure/rowshape.cuh"
#include "../device/carve.h"
#include "../device/hybgroup.cuh"

#define SHAPE_MAX_CLASSES    1024
#define SHAPE_SLOTS          4096
#define SHAPE_PROBES         64
#define SHAPE_MAX_PRODUCTS   8192
#define SHAPE_MAX_COUNT      2048                  /* entries of a row of C: they are added up in shared memory */
#define SHAPE_MAX_PROGRAM    (PetscCount)(4 << 20) /* products of all representatives */
#define SHAPE_ROWS_PER_CLASS 16
#define SHAPE_THREADS        256

/* found on the device, brought to the host in one copy */
struct ShapeStats {
  int        n, overflow; /* distinct signatures; more than allowed */
  int        maxproducts, maxcount;
  PetscCount program; /* products of all representatives */
  PetscCount rows;    /* that have a class */
};

/* the classes of the rows of one matrix */
struct ShapeTable {
  unsigned long long *keys; /* SHAPE_SLOTS signatures, 0: free */
  PetscInt           *rows; /* their smallest rows */
  PetscInt           *list;
  HybRowClass        *slotclass;
  PetscInt           *representative; /* SHAPE_MAX_CLASSES */
  ShapeStats         *stats;
  HybRowClass        *rowclass; /* a row: first its slot, then its class */
};

/* what an entry contributes to the shape of its row, and against what the row is measured */
enum {
  SHAPE_BYROW,   /* column - row */
  SHAPE_BYFIRST, /* column - first column of the row */
  SHAPE_BYBASE   /* first column of the row of B that the entry names, less that of the row's first entry */
};

template <int MODE>
static __device__ __forceinline__ PetscInt ShapeBase(PetscInt row, PetscInt begin, PetscInt end, const PetscInt *__restrict__ j, const PetscInt *__restrict__ first)
{
  if (MODE == SHAPE_BYROW) return row;
  if (begin == end) return 0;
  return MODE == SHAPE_BYFIRST ? j[begin] : first[j[begin]];
}

__global__ void __launch_bounds__(SHAPE_THREADS) ShapeInitialize(ShapeTable tb, ShapeTable ta)
{
  const ShapeTable &t = blockIdx.x < SHAPE_SLOTS / SHAPE_THREADS ? tb : ta;
  const unsigned    s = blockIdx.x % (SHAPE_SLOTS / SHAPE_THREADS) * SHAPE_THREADS + threadIdx.x;

  t.keys[s]      = 0;
  t.rows[s]      = PETSC_MAX_INT;
  t.slotclass[s] = HYB_ROWSHAPE_NONE;
  if (s == 0) {
    t.stats->n           = 0;
    t.stats->overflow    = 0;
    t.stats->maxproducts = 0;
    t.stats->maxcount    = 0;
    t.stats->program     = 0;
    t.stats->rows        = 0;
  }
}

template <int W, int MODE>
__global__ void __launch_bounds__(SHAPE_THREADS) ShapeSign(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybRowClass *__restrict__ colclass, const PetscInt *__restrict__ colfirst, PetscInt *__restrict__ rowfirst, int maxclasses, const ShapeStats *before, ShapeTable t)
{
  const int        lane   = HybLane() & (W - 1);
  const PetscCount stride = (PetscCount)gridDim.x * (SHAPE_THREADS / W);
  /* whole warps stay together */
  const PetscCount bound = (m + (PetscCount)(HYB_WARP / W) - 1) / (HYB_WARP / W) * (HYB_WARP / W);
  /* the signature met before, and its slot: a later row changes nothing in the table */
  unsigned long long lasth = 0;
  unsigned           lasts = HYB_ROWSHAPE_NONE;

  if (before && before->overflow) return;
  for (PetscCount r = ((PetscCount)blockIdx.x * SHAPE_THREADS + threadIdx.x) / W; r < bound; r += stride) {
    unsigned long long h     = 0;
    int                none  = 0;
    PetscInt           begin = 0, end = 0;

    /* a stale look is harmless: it costs a round */
    if (__shfl_sync(HYB_FULL_MASK, t.stats->overflow, 0) && MODE != SHAPE_BYFIRST) return;
    if (r < m) {
      begin               = i[r];
      end                 = i[r + 1];
      const PetscInt base = ShapeBase<MODE>((PetscInt)r, begin, end, j, colfirst);

      if (MODE == SHAPE_BYFIRST && lane == 0) rowfirst[r] = base;
      for (PetscInt k = begin + lane; k < end; k += W) {
        const PetscInt     col = j[k];
        unsigned long long z   = (unsigned long long)((MODE == SHAPE_BYBASE ? colfirst[col] : col) - base) * 0x9e3779b97f4a7c15ull + (unsigned long long)(k - begin + 1) * 0xbf58476d1ce4e5b9ull;

        if (colclass) {
          const HybRowClass c = colclass[col];

          none |= c == HYB_ROWSHAPE_NONE;
          z += (unsigned long long)(c + 1) * 0x94d049bb133111ebull;
        }
        h += HybRowShapeMix(z);
      }
    }
    h = HybSubwarpSum<W>(h);
    if (colclass) none = HybSubwarpMax<W>(none);
    h = HybRowShapeMix(h + (unsigned long long)(end - begin));
    if (h == 0) h = 1;
    if (none || r >= m) h = 0;
    {
      /* a row that looks like the one before it, in this warp, leaves the table to that one */
      const unsigned long long above  = HybShflUp(HYB_FULL_MASK, h, W);
      const bool               follow = W < HYB_WARP && HybLane() >= W && h == above;
      unsigned                 slot   = HYB_ROWSHAPE_NONE;

      if (lane == 0 && !follow && h) {
        if (h == lasth)
          slot = lasts;
        else {
          slot  = HybRowClassSlot(h, (unsigned)(h >> 20), (PetscInt)r, maxclasses, SHAPE_SLOTS, SHAPE_PROBES, t.keys, t.rows, &t.stats->n, &t.stats->overflow);
          lasth = h;
          lasts = slot;
        }
      }
      {
        /* slots go from each row that looked to those that follow it */
        const unsigned looked = __ballot_sync(HYB_FULL_MASK, lane == 0 && !follow);
        const unsigned upto   = looked & (HYB_FULL_MASK >> (HYB_WARP - 1 - (HybLane() & ~(W - 1))));

        slot = HybShfl(HYB_FULL_MASK, slot, 31 - __clz((int)upto));
      }
      if (lane == 0 && r < m) t.rowclass[r] = (HybRowClass)slot;
    }
  }
}

/* one block: numbers the classes by their representatives */
__global__ void __launch_bounds__(1024) ShapeNumber(ShapeTable tb, ShapeTable t, int maxclasses)
{
  HYB_DYNAMIC_SHARED(PetscInt, first);
  HYB_SHARED(int, n, 1);

  if (tb.stats->overflow || t.stats->overflow || t.stats->n > maxclasses) {
    __syncthreads();
    if (threadIdx.x == 0) {
      t.stats->overflow = 1;
      t.stats->n        = 0;
    }
    return;
  }
  HybRowClassNumber<1024>(SHAPE_SLOTS, t.keys, t.rows, t.list, first, n, t.slotclass, t.representative);
}

/* does row r have exactly the shape of the representative of its slot? All lanes of the sub-warp call it; each answers
   for its entries. */
template <int W, int MODE>
static __device__ __forceinline__ int ShapeEqual(PetscInt r, PetscInt rep, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const HybRowClass *__restrict__ colclass, const PetscInt *__restrict__ colfirst)
{
  const PetscInt begin = i[r], len = i[r + 1] - begin, repbegin = i[rep];
  int            same = len == i[rep + 1] - repbegin;

  if (same && r != rep) {
    const PetscInt shift = ShapeBase<MODE>(r, begin, begin + len, j, colfirst) - ShapeBase<MODE>(rep, repbegin, repbegin + len, j, colfirst);

    for (PetscInt k = HybLane() & (W - 1); k < len; k += W) {
      const PetscInt col = j[begin + k], repcol = j[repbegin + k];

      if (MODE == SHAPE_BYBASE)
        same &= colfirst[col] - colfirst[repcol] == shift;
      else
        same &= col - repcol == shift;
      if (colclass) same &= colclass[col] == colclass[repcol];
    }
  }
  return same;
}

/* rows of B against the representatives of their slots: one that differs ends the attempt */
template <int W, int MODE>
__global__ void __launch_bounds__(SHAPE_THREADS) ShapeCheck(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, ShapeTable t, ShapeStats *stats)
{
  for (PetscCount r = ((PetscCount)blockIdx.x * SHAPE_THREADS + threadIdx.x) / W; r < m; r += (PetscCount)gridDim.x * (SHAPE_THREADS / W)) {
    const unsigned slot = t.rowclass[r];

    if (stats->overflow) return;
    if (slot != HYB_ROWSHAPE_NONE && !ShapeEqual<W, MODE>((PetscInt)r, t.rows[slot], i, j, NULL, NULL)) HybAtomicOr(&stats->overflow, 1);
  }
}

/* rows of A against the representatives of their classes: one that differs has no class. both: A and B are one matrix,
   and its rows are checked for both rounds */
template <int W, int MODE>
__global__ void __launch_bounds__(SHAPE_THREADS) ShapeAssign(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ colfirst, const unsigned char *__restrict__ unfit, ShapeTable tb, ShapeTable t, bool both)
{
  HYB_SHARED(int, scratch, HYB_WARP);
  const int        lane    = HybLane() & (W - 1);
  const PetscCount stride  = (PetscCount)gridDim.x * (SHAPE_THREADS / W);
  const PetscCount bound   = (m + (PetscCount)(HYB_WARP / W) - 1) / (HYB_WARP / W) * (HYB_WARP / W);
  const int        failed  = t.stats->overflow;
  int              classed = 0;

  for (PetscCount r = ((PetscCount)blockIdx.x * SHAPE_THREADS + threadIdx.x) / W; r < bound; r += stride) {
    unsigned c    = HYB_ROWSHAPE_NONE;
    int      same = 1;

    if (r < m && !failed) {
      const unsigned slot = t.rowclass[r];

      if (both) {
        const unsigned bslot = tb.rowclass[r];

        if (bslot != HYB_ROWSHAPE_NONE && !ShapeEqual<W, MODE>((PetscInt)r, tb.rows[bslot], i, j, NULL, NULL)) HybAtomicOr(&t.stats->overflow, 1);
      }
      if (slot != HYB_ROWSHAPE_NONE) c = t.slotclass[slot];
      if (c != HYB_ROWSHAPE_NONE) same = !unfit[c] && ShapeEqual<W, MODE>((PetscInt)r, t.rows[slot], i, j, tb.rowclass, colfirst);
    }
    same = HybSubwarpMin<W>(same); /* every lane has read the row's slot by now */
    if (!same) c = HYB_ROWSHAPE_NONE;
    if (lane == 0 && r < m) {
      t.rowclass[r] = (HybRowClass)c;
      classed += c != HYB_ROWSHAPE_NONE;
    }
  }
  classed = HybBlockSum<SHAPE_THREADS>(classed, scratch);
  if (threadIdx.x == 0 && classed) HybAtomicAdd(&t.stats->rows, (PetscCount)classed);
}

/* The program of the classes of A: arrays on the device */
struct ShapeProgram {
  PetscInt *kptr; /* SHAPE_MAX_CLASSES+1: where a class begins in kbegin */
  PetscInt *pptr; /* SHAPE_MAX_CLASSES+1: where its products begin in place and offset */
  /* for each entry of the representative: its first product, counted from the class's first */
  PetscInt       *kbegin;
  unsigned short *place;    /* for each product: its entry of the row of C */
  PetscInt       *offset;   /* for each entry of the row of C: column - base; room as for place */
  PetscInt       *count;    /* entries of the row of C */
  PetscInt       *products; /* number of products */
  unsigned char  *unfit;    /* too many products */
  PetscInt        kroom, proom;
};

/* one block: how much each class needs, a warp a class, and where it goes */
__global__ void __launch_bounds__(1024) ShapeSizes(const PetscInt *__restrict__ ai, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ bi, ShapeTable t, ShapeProgram g)
{
  HYB_SHARED(PetscCount, scratch, HYB_WARP);
  HYB_SHARED(int, products, SHAPE_MAX_CLASSES);
  HYB_SHARED(int, entries, SHAPE_MAX_CLASSES);
  const int  n       = t.stats->n;
  PetscCount kbefore = 0, pbefore = 0, longest = 0;

  for (int q = (int)threadIdx.x / HYB_WARP; q < n; q += 1024 / HYB_WARP) {
    const PetscInt rep = t.representative[q], begin = ai[rep], len = ai[rep + 1] - begin;
    PetscCount     p = 0;

    if (len <= SHAPE_MAX_PRODUCTS) {
      for (PetscInt e = HybLane(); e < len; e += HYB_WARP) p += bi[aj[begin + e] + 1] - bi[aj[begin + e]];
    }
    p = HybSubwarpSum<HYB_WARP>(p);
    if (HybLane() == 0) {
      const bool unfit = p > SHAPE_MAX_PRODUCTS || len > SHAPE_MAX_PRODUCTS;

      g.unfit[q]  = unfit;
      products[q] = unfit ? 0 : (int)p;
      entries[q]  = unfit ? 0 : (int)len;
    }
  }
  __syncthreads();
  for (int q0 = 0; q0 < n; q0 += 1024) {
    const int        q = q0 + (int)threadIdx.x;
    const PetscCount k = q < n ? entries[q] : 0, p = q < n ? products[q] : 0;
    PetscCount       ktotal, ptotal;
    const PetscCount kat = kbefore + HybBlockExclusiveSum<1024>(k, scratch, &ktotal);
    const PetscCount pat = pbefore + HybBlockExclusiveSum<1024>(p, scratch, &ptotal);

    longest = HybMax()(longest, p);
    kbefore += ktotal;
    pbefore += ptotal;
    if (q < n) {
      /* no room: no class. The sizes of later classes are beyond it as well. */
      if (kat + k > g.kroom || pat + p > g.proom) {
        g.unfit[q] = 1;
        g.kptr[q] = g.pptr[q] = 0;
      } else {
        g.kptr[q] = (PetscInt)kat;
        g.pptr[q] = (PetscInt)pat;
      }
    }
  }
  longest = HybBlockMax<1024>(longest, scratch);
  if (threadIdx.x == 0) {
    t.stats->program     = pbefore;
    t.stats->maxproducts = (int)longest;
  }
}

/* a block a class */
template <int MODE>
__global__ void __launch_bounds__(256) ShapeCompile(const PetscInt *__restrict__ ai, const PetscInt *__restrict__ aj, const PetscInt *__restrict__ bi, const PetscInt *__restrict__ bj, const PetscInt *__restrict__ bfirst, ShapeTable t, ShapeProgram g)
{
  HYB_DYNAMIC_SHARED(unsigned long long, list);
  HYB_SHARED(PetscInt, scratch, HYB_WARP);

  for (int q = (int)blockIdx.x; q < t.stats->n; q += (int)gridDim.x) {
    if (g.unfit[q]) continue;
    const PetscInt rep = t.representative[q], abegin = ai[rep], k = ai[rep + 1] - abegin;
    const PetscInt base     = MODE == SHAPE_BYROW ? rep : ShapeBase<SHAPE_BYBASE>(rep, abegin, abegin + k, aj, bfirst);
    PetscInt       products = 0, count = 0;

    for (PetscInt e0 = 0; e0 < k; e0 += 256) {
      const PetscInt e   = e0 + (PetscInt)threadIdx.x;
      PetscInt       len = 0, total;

      if (e < k) len = bi[aj[abegin + e] + 1] - bi[aj[abegin + e]];
      const PetscInt at = products + HybBlockExclusiveSum<256>(len, scratch, &total);
      if (e < k) g.kbegin[g.kptr[q] + e] = at;
      products += total;
    }
    __syncthreads();
    for (PetscInt e = (PetscInt)threadIdx.x / HYB_WARP; e < k; e += 256 / HYB_WARP) {
      const PetscInt c = aj[abegin + e], begin = bi[c], len = bi[c + 1] - begin, at = g.kbegin[g.kptr[q] + e];

      for (PetscInt p = HybLane(); p < len; p += HYB_WARP) list[at + p] = (unsigned long long)bj[begin + p] << 16 | (unsigned long long)(at + p);
    }
    __syncthreads();
    HybGroupSort<256>(list, (unsigned)products);
    for (PetscInt s0 = 0; s0 < products; s0 += 256) {
      const PetscInt s    = s0 + (PetscInt)threadIdx.x;
      const PetscInt head = s < products && (s == 0 || list[s] >> 16 != list[s - 1] >> 16);
      PetscInt       total;
      const PetscInt e = count + HybBlockExclusiveSum<256>(head, scratch, &total) + head - 1;

      if (s < products) g.place[g.pptr[q] + (PetscInt)(list[s] & 0xffff)] = (unsigned short)e;
      if (head) g.offset[g.pptr[q] + e] = (PetscInt)(list[s] >> 16) - base;
      count += total;
    }
    if (threadIdx.x == 0) {
      g.count[q]    = count;
      g.products[q] = products;
      if (count > SHAPE_MAX_COUNT)
        g.unfit[q] = 1;
      else
        HybAtomicMax(&t.stats->maxcount, (int)count);
    }
    __syncthreads();
  }
}

/* counts of the rows that have a class; for the others what hash tables have to expect */
__global__ void __launch_bounds__(SHAPE_THREADS) ShapeCounts(PetscInt m, bool failed, HybRowClass *__restrict__ rowclass, const PetscInt *__restrict__ classcount, const PetscCount *__restrict__ rowproducts, PetscInt *__restrict__ count, PetscCount *__restrict__ upper)
{
  const PetscCount r = (PetscCount)blockIdx.x * SHAPE_THREADS + threadIdx.x;

  if (r < m) {
    const unsigned c = failed ? HYB_ROWSHAPE_NONE : rowclass[r];

    if (failed) rowclass[r] = HYB_ROWSHAPE_NONE;
    count[r] = c == HYB_ROWSHAPE_NONE ? 0 : classcount[c];
    if (upper) upper[r] = c == HYB_ROWSHAPE_NONE ? rowproducts[r] : 0;
  }
}

struct ShapeArgs {
  PetscInt           m;
  const PetscInt    *ai, *aj, *bi, *bfirst, *ci;
  const HybScalar   *aa, *ba;
  PetscInt          *cj; /* NULL: the columns are there */
  HybScalar         *ca; /* NULL: columns only */
  const HybRowClass *rowclass;
  ShapeProgram       program;
  int                room; /* accumulators a sub-warp */
};

/* AHEAD: the lanes look up A's entries together and fetch one row of B ahead, which pays where the row of A is long or
   the sub-warp is a whole warp; elsewhere the shuffles cost more than the waiting */
template <int W, bool AHEAD>
__global__ void __launch_bounds__(128) ShapeRows(ShapeArgs x)
{
  HYB_DYNAMIC_SHARED(HybScalar, shared);
  const unsigned   mask = HybSubwarpMask<W>();
  const int        lane = HybLane() & (W - 1);
  const PetscCount row  = ((PetscCount)blockIdx.x * 128 + threadIdx.x) / W;
  HybScalar *const acc  = shared + (size_t)(threadIdx.x / W) * x.room;
  unsigned         c;

  if (row >= x.m || (c = x.rowclass[row]) == HYB_ROWSHAPE_NONE) return;
  const PetscInt abegin = x.ai[row], k = x.ai[row + 1] - abegin, cbegin = x.ci[row];
  const int      count = (int)(x.ci[row + 1] - cbegin);

  if (x.cj) {
    const PetscInt  base   = x.bfirst ? (k ? x.bfirst[x.aj[abegin]] : 0) : (PetscInt)row;
    const PetscInt *offset = x.program.offset + x.program.pptr[c];

    for (int e = lane; e < count; e += W) x.cj[cbegin + e] = base + offset[e];
  }
  if (x.ca) {
    const unsigned short *place  = x.program.place + x.program.pptr[c];
    const PetscInt       *kbegin = x.program.kbegin + x.program.kptr[c];

    const int total = x.program.products[c];

    for (int e = lane; e < count; e += W) acc[e] = HybNegativeZero();
    __syncwarp(mask);
    for (PetscInt e = 0; !AHEAD && e < k; e++) {
      const PetscInt        col  = x.aj[abegin + e];
      const HybScalar       av   = x.aa[abegin + e];
      const PetscInt        from = x.bi[col];
      const int             len  = (int)(x.bi[col + 1] - from);
      const unsigned short *to   = place + kbegin[e];

      for (int p = lane; p < len; p += W) {
        const int there = to[p];

        acc[there] = HybMulAdd(av, x.ba[from + p], acc[there]);
      }
      __syncwarp(mask);
    }
    for (PetscInt e0 = 0; AHEAD && e0 < k; e0 += W) {
      /* each lane looks up one entry of A; then these are taken in turn, the next row of B on its way while one is
         added */
      const int n    = (int)HybMin()((PetscInt)W, k - e0);
      PetscInt  from = 0;
      unsigned  what = 0; /* first product and length of the row of B: both below 2^16 */
      HybScalar av = HybScalar(), b = HybScalar();
      int       at = 0;

      if (lane < n) {
        const int first = kbegin[e0 + lane], end = e0 + lane + 1 < k ? kbegin[e0 + lane + 1] : total;

        from = x.bi[x.aj[abegin + e0 + lane]];
        av   = x.aa[abegin + e0 + lane];
        what = (unsigned)first | (unsigned)(end - first) << 16;
      }
      PetscInt nextfrom = HybShfl(mask, from, 0, W);
      unsigned nextwhat = HybShfl(mask, what, 0, W);

      if (lane < (int)(nextwhat >> 16)) {
        at = place[(nextwhat & 0xffffu) + lane];
        b  = x.ba[nextfrom + lane];
      }
      for (int q = 0; q < n; q++) {
        const PetscInt  thisfrom = nextfrom;
        const int       first = (int)(nextwhat & 0xffffu), len = (int)(nextwhat >> 16);
        const HybScalar weight = HybShfl(mask, av, q, W), bnow = b;
        const int       atnow = at;

        if (q + 1 < n) {
          nextfrom = HybShfl(mask, from, q + 1, W);
          nextwhat = HybShfl(mask, what, q + 1, W);
          if (lane < (int)(nextwhat >> 16)) {
            at = place[(nextwhat & 0xffffu) + lane];
            b  = x.ba[nextfrom + lane];
          }
        }
        if (lane < len) acc[atnow] = HybMulAdd(weight, bnow, acc[atnow]);
        for (int p = lane + W; p < len; p += W) {
          const int there = place[first + p];

          acc[there] = HybMulAdd(weight, x.ba[thisfrom + p], acc[there]);
        }
        __syncwarp(mask);
      }
    }
    for (int e = lane; e < count; e += W) x.ca[cbegin + e] = acc[e];
  }
}

typedef struct {
  HybRowClass *rowclass;
  PetscInt    *bfirst; /* NULL: rows are their own bases */
  ShapeProgram program;
  ShapeStats   stats;
  char        *work; /* the tables and what else only the symbolic phase needs */
  HybHashRows  odd;  /* rows without a class */
  PetscBool    hasodd;
} Shape;

static void ShapeTakeTable(char *base, size_t *used, ShapeTable *t)
{
  HybCarve(base, used, SHAPE_SLOTS * sizeof(*t->keys), &t->keys);
  HybCarve(base, used, SHAPE_SLOTS * sizeof(*t->rows), &t->rows);
  HybCarve(base, used, SHAPE_SLOTS * sizeof(*t->list), &t->list);
  HybCarve(base, used, SHAPE_SLOTS * sizeof(*t->slotclass), &t->slotclass);
  HybCarve(base, used, SHAPE_MAX_CLASSES * sizeof(*t->representative), &t->representative);
  HybCarve(base, used, sizeof(*t->stats), &t->stats);
}

static int ShapeWidth(PetscCount mean)
{
  int w = 4;

  while (w < 32 && w < mean) w *= 2;
  return w;
}

using ShapeWidths = HybCases<4, 8, 16, 32>;

/* what a pass over M's rows is launched with */
static PetscCount ShapeGrid(const HybCSR *M, int multiprocessors, int *w)
{
  *w = ShapeWidth(M->m ? M->nnz / M->m / 2 : 0);
  return PetscMin(HybBlocks((PetscCount)M->m * *w, SHAPE_THREADS), (PetscCount)multiprocessors * 16);
}

/* MB: by what B's rows are measured, MA: A's */
template <int MB, int MA>
static PetscErrorCode ShapeRounds(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, Shape *s, int maxclasses, PetscCount longest, int multiprocessors, const ShapeTable &tb, const ShapeTable &ta)
{
  const HybExec     *exec    = &mm->exec;
  const bool         both    = MA == SHAPE_BYROW && A->i == B->i && A->j == B->j;
  const ShapeProgram g       = s->program;
  const PetscInt    *none    = NULL;
  const HybRowClass *noclass = NULL;
  const ShapeStats  *nostats = NULL;
  PetscInt          *nofirst = NULL;
  int                w;
  PetscCount         blocks;

  PetscFunctionBegin;
  HYB_LAUNCH(ShapeInitialize, 2 * (SHAPE_SLOTS / SHAPE_THREADS), SHAPE_THREADS, 0, exec->stream, tb, ta);
  blocks = ShapeGrid(B, multiprocessors, &w);
  PetscCall(HybDispatch(w, ShapeWidths(), [&](auto W) {
    HYB_LAUNCH((ShapeSign<W, MB>), blocks, SHAPE_THREADS, 0, exec->stream, B->m, B->i, B->j, noclass, none, s->bfirst,
               maxclasses, nostats, tb);
    return PETSC_SUCCESS;
  }));
  blocks = ShapeGrid(A, multiprocessors, &w);
  PetscCall(HybDispatch(w, ShapeWidths(), [&](auto W) {
    HYB_LAUNCH((ShapeSign<W, MA>), blocks, SHAPE_THREADS, 0, exec->stream, A->m, A->i, A->j, tb.rowclass, s->bfirst,
               nofirst, maxclasses, tb.stats, ta);
    return PETSC_SUCCESS;
  }));
  HYB_LAUNCH(ShapeNumber, 1, 1024, SHAPE_MAX_CLASSES * sizeof(PetscInt), exec->stream, tb, ta, maxclasses);
  HYB_LAUNCH(ShapeSizes, 1, 1024, 0, exec->stream, A->i, A->j, B->i, ta, g);
  HYB_LAUNCH((ShapeCompile<MA>), PetscMin(maxclasses, 4 * multiprocessors), 256, longest * sizeof(unsigned long long), exec->stream, A->i, A->j, B->i, B->j, s->bfirst, ta, g);
  if (!both) {
    blocks = ShapeGrid(B, multiprocessors, &w);
    PetscCall(HybDispatch(w, ShapeWidths(), [&](auto W) {
      HYB_LAUNCH((ShapeCheck<W, MB>), blocks, SHAPE_THREADS, 0, exec->stream, B->m, B->i, B->j, tb, ta.stats);
      return PETSC_SUCCESS;
    }));
  }
  blocks = ShapeGrid(A, multiprocessors, &w);
  PetscCall(HybDispatch(w, ShapeWidths(), [&](auto W) {
    HYB_LAUNCH((ShapeAssign<W, MA>), blocks, SHAPE_THREADS, 0, exec->stream, A->m, A->i, A->j, s->bfirst, g.unfit, tb,
               ta, both);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* both rounds and the programs: one synchronisation. What stays is in keep and in mm->data. */
static PetscErrorCode ShapeFind(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, int maxclasses)
{
  const bool       byrow   = A->m == A->n && B->m == B->n;
  const PetscCount longest = PetscMin(mm->stats.maxrow, (PetscCount)SHAPE_MAX_PRODUCTS);
  size_t           limit;
  int              multiprocessors;
  ShapeTable       tb, ta;
  Shape           *s;
  ShapeProgram    *g;
  char            *kept = NULL, *work = NULL;

  PetscFunctionBegin;
  PetscCall(HybDeviceLimits(&limit, &multiprocessors));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero((void *)s, sizeof(*s)));
  mm->data = s;
  g        = &s->program;
  g->proom = (PetscInt)PetscMin(SHAPE_MAX_PROGRAM, maxclasses * longest);
  g->kroom = (PetscInt)PetscMin(SHAPE_MAX_PROGRAM, maxclasses * (PetscCount)PetscMin(mm->stats.maxarow, SHAPE_MAX_PRODUCTS));
  for (int pass = 0; pass < 2; pass++) {
    size_t nkept = 0, nwork = 0;

    HybCarve(kept, &nkept, (size_t)A->m * sizeof(HybRowClass), &ta.rowclass);
    HybCarve(kept, &nkept, byrow ? 0 : (size_t)B->m * sizeof(PetscInt), &s->bfirst);
    HybCarve(kept, &nkept, (SHAPE_MAX_CLASSES + 1) * sizeof(PetscInt), &g->kptr);
    HybCarve(kept, &nkept, (SHAPE_MAX_CLASSES + 1) * sizeof(PetscInt), &g->pptr);
    HybCarve(kept, &nkept, SHAPE_MAX_CLASSES * sizeof(PetscInt), &g->count);
    HybCarve(kept, &nkept, SHAPE_MAX_CLASSES * sizeof(PetscInt), &g->products);
    HybCarve(kept, &nkept, (size_t)g->kroom * sizeof(PetscInt), &g->kbegin);
    HybCarve(kept, &nkept, (size_t)g->proom * sizeof(unsigned short), &g->place);
    ShapeTakeTable(work, &nwork, &tb);
    ShapeTakeTable(work, &nwork, &ta);
    HybCarve(work, &nwork, (size_t)B->m * sizeof(HybRowClass), &tb.rowclass);
    HybCarve(work, &nwork, (size_t)g->proom * sizeof(PetscInt), &g->offset);
    HybCarve(work, &nwork, SHAPE_MAX_CLASSES, &g->unfit);
    if (!pass) {
      PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_DEVICE, (PetscCount)nkept, 1, &kept));
      PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, (PetscCount)nwork, 1, &work));
      s->work = work;
    }
  }
  if (byrow) {
    s->bfirst = NULL;
    PetscCall(ShapeRounds<SHAPE_BYROW, SHAPE_BYROW>(mm, A, B, s, maxclasses, longest, multiprocessors, tb, ta));
  } else
    PetscCall(ShapeRounds<SHAPE_BYFIRST, SHAPE_BYBASE>(mm, A, B, s, maxclasses, longest, multiprocessors, tb, ta));
  s->rowclass = ta.rowclass;
  PetscCall(HybSpGEMMFetch(mm, &s->stats, ta.stats, sizeof(s->stats)));
  if (s->stats.overflow) s->stats.n = s->stats.maxcount = 0, s->stats.rows = s->stats.program = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMApplicable_ShapeCUDA(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  PetscFunctionBegin;
  /* small operands, rows without neighbours, rows so long or so different in length or width that few can be alike are
     not worth the look */
  *fits = (PetscBool)(A->m >= 1024 && mm->stats.alike >= A->m / 5 * 4 && mm->stats.maxarow <= 4 * (A->nnz / A->m) + 8 && mm->stats.products >= 4 * (PetscCount)A->m && mm->stats.maxrow <= SHAPE_MAX_PRODUCTS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By name, one row that has a class is enough; without products there is nothing to find */
static PetscErrorCode HybSpGEMMFits_ShapeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const bool named = strcmp(mm->name, "auto") != 0;
  Shape     *s;

  PetscFunctionBegin;
  PetscCall(ShapeFind(mm, A, B, named ? SHAPE_MAX_CLASSES : (int)PetscMin(SHAPE_MAX_CLASSES, A->m / SHAPE_ROWS_PER_CLASS)));
  s     = (Shape *)mm->data;
  *fits = (PetscBool)(named ? s->stats.rows || !mm->stats.products : !s->stats.overflow && s->stats.rows >= (PetscCount)A->m / 5 * 4);
  if (!*fits) PetscCall(HybArenaFree(&mm->work, &s->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShapeRun(HybSpGEMM *mm, const Shape *s, const HybCSR *A, const HybCSR *B, bool columns, HybCSR *C)
{
  const HybExec *exec = &mm->exec;
  int            w    = ShapeWidth(mm->stats.products / PetscMax(1, A->nnz));
  PetscCount     blocks;
  size_t         bytes;
  ShapeArgs      x;

  PetscFunctionBegin;
  if (!s->stats.rows) PetscFunctionReturn(PETSC_SUCCESS);
  /* few wide sub-warps where accumulators are many */
  while (w < 32 && (size_t)(128 / w) * s->stats.maxcount * sizeof(HybScalar) > 32768) w *= 2;
  blocks     = HybBlocks((PetscCount)A->m * w, 128);
  x.m        = A->m;
  x.ai       = A->i;
  x.aj       = A->j;
  x.aa       = A->a;
  x.bi       = B->i;
  x.ba       = B->a;
  x.bfirst   = s->bfirst;
  x.ci       = C->i;
  x.cj       = columns ? C->j : NULL;
  x.ca       = C->a;
  x.rowclass = s->rowclass;
  x.program  = s->program;
  x.room     = s->stats.maxcount;
  bytes      = (size_t)(128 / w) * x.room * sizeof(HybScalar);
  PetscCall(HybDispatch(w, ShapeWidths(), w == 32 || A->nnz / A->m >= 64, HybFlags(), [&](auto W, auto LONG) {
    HYB_LAUNCH((ShapeRows<W, LONG>), blocks, 128, bytes, exec->stream, x);
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_ShapeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  const HybExec *exec  = &mm->exec;
  PetscCount    *upper = NULL, *head;
  PetscInt      *count;
  Shape         *s;

  PetscFunctionBegin;
  s         = (Shape *)mm->data;
  s->hasodd = (PetscBool)(s->stats.rows < A->m);
  PetscCall(HybCountersSet(&mm->counters, "classes", s->stats.n));
  PetscCall(HybCountersSet(&mm->counters, "rows by shape", s->stats.rows));
  PetscCall(HybCountersSet(&mm->counters, "rows by hash", A->m - s->stats.rows));
  PetscCall(HybCountersSet(&mm->counters, "program", s->stats.program));
  PetscCall(HybArenaAlloc(out, exec->result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, C->m, sizeof(PetscInt), &count));
  if (s->hasodd) PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, C->m, sizeof(PetscCount), &upper));
  HYB_LAUNCH(ShapeCounts, HybBlocks(C->m, SHAPE_THREADS), SHAPE_THREADS, 0, exec->stream, C->m, s->stats.overflow != 0, s->rowclass, s->program.count, mm->rowproducts, count, upper);
  if (s->hasodd) {
    PetscCall(HybHashRowsCount(mm, A, B, PETSC_FALSE, upper, count, &s->odd, C->i));
    PetscCall(HybHashRowsFetch(mm, &s->odd, &C->nnz));
  } else {
    PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_DEVICE, 1, sizeof(PetscCount), &head));
    PetscCall(HybScanCounts(exec, &mm->work, C->m, count, C->i, head, NULL));
    PetscCall(exec->backend->copy(exec, &C->nnz, head, sizeof(PetscCount), HYB_COPY_DEVICE_TO_HOST));
  }
  PetscCall(HybArenaFree(&mm->work, &count, &upper));
  PetscCall(HybSpGEMMEntries(exec, A, B, out, C));
  PetscCall(ShapeRun(mm, s, A, B, true, C));
  if (s->hasodd) PetscCall(HybHashRowsFill(mm, A, B, &s->odd, C));
  if (!s->hasodd) mm->reads = HYB_SPGEMM_READS_A;
  /* workspace of this phase */
  s->program.offset = NULL;
  s->program.unfit  = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_ShapeCUDA(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const Shape *s = (const Shape *)mm->data;

  PetscFunctionBegin;
  PetscCall(ShapeRun(mm, s, A, B, false, C));
  if (s->hasodd) PetscCall(HybHashRowsNumeric(mm, A, B, &s->odd, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_ShapeCUDA;
const HybSpGEMMMethod        HybSpGEMM_ShapeCUDA = {
         .name       = "shape",
         .applicable = HybSpGEMMApplicable_ShapeCUDA,
         .symbolic   = HybSpGEMMSymbolic_ShapeCUDA,
         .numeric    = HybSpGEMMNumeric_ShapeCUDA,
         .fits       = HybSpGEMMFits_ShapeCUDA,
};
