/*
  thin.c: the Galerkin product C = P^T A P of short rows, with nothing kept between its phases.

  Idea. As `fused`, without its lists: a row of A*P is formed in a dense accumulator, whose entries bear the number of
  the row, and goes to the rows of C that row i of P names. Where it goes is not looked up but asked of each entry of
  these rows: they are short.
    symbolic, for each row I of C:
      K = columns of the rows of A that name I through P (each once)
      columns of C(I,:) = columns of the rows K of P (each once), put in order
    numeric, for each row i of A:
      v = sum over k of A(i,k) * P(k,:)
      for each I in row i of P, each J in row I of C:  C(I,J) += P(i,I) * v(J) if v has a J
  Every entry of C is the sum over ascending i of P(i,I) * v(J), to the last bit as `fused` and the stages have it.

  No branch asks whether a column is new, or whether v has it: neither can be foretold, but in bands.
  Of matrices with narrow bands, rows K and columns of C(I,:) lie in a window of 64: there they are bits of a word,
  which also puts them in order.

  Memory kept: none. Working memory: the transposed pattern of P, and a mark and an accumulator for each coarse column,
  a mark for each fine one. Time: products of A*P and of the short rows of C with those of P^T.

  A row of C that is long, and named by many rows of P, would be walked for each of these: where that comes to more than
  HYB_THIN_WALKS entries of C for each of A and P the method declines, and the stages multiply.

  Cost rule (applicable). The stages write A*P down, of as many entries as C and A have together, and both read it; what
  a first product of short rows takes is half the pages of that. So scalar problems go here where A and P have no more
  entries a row in the mean than HYB_THIN_A and HYB_THIN_P (docs/performance.md, Galerkin products), or all rows of A
  lie in bands of HYB_THIN_BAND columns. So do those of HYB_THIN_FEW entries in all, which take as long as what the
  stages begin with. Those of nodes of several components are for `fused`, which is asked first.

  Counters: "products" (of both kinds, known after a numeric phase).
  Reference: the sparse accumulator of Gilbert, Moler, Schreiber, Sparse matrices in MATLAB, SIMAX 13 (1992); the
  algorithm is that of PETSc's MATAIJ, "scalable", but for the places.
*/
#include <aijhybridgpu/private/hybptap.h>
#include "../spgemm/colset.h"

#define HYB_THIN_A      12
#define HYB_THIN_P      3
#define HYB_THIN_WALKS  16
#define HYB_THIN_FEW    500
#define HYB_THIN_MISSES 8
#define HYB_THIN_BAND   44
#define HYB_THIN_ASKED  64

/* no row of A, of those that are asked, has entries further from each other than HYB_THIN_BAND columns */
static PetscBool HybThinBanded(const HybCSR *A, PetscInt step)
{
  for (PetscInt r = 0; r < A->m; r += PetscMin(step, A->m - r))
    if (A->i[r] < A->i[r + 1] && A->j[A->i[r + 1] - 1] - A->j[A->i[r]] > HYB_THIN_BAND) return PETSC_FALSE;
  return PETSC_TRUE;
}

static PetscErrorCode HybPtAPApplicable_Thin(const HybPtAP *pp, const HybCSR *A, const HybCSR *P, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = (PetscBool)(P->n <= P->m && A->nnz + P->nnz <= HYB_THIN_FEW);
  if (!*fits && P->n <= P->m && P->nnz <= (PetscCount)HYB_THIN_P * P->m) *fits = (PetscBool)(A->nnz <= (PetscCount)HYB_THIN_A * A->m || HybThinBanded(A, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which rows name each column of P */
static PetscErrorCode HybThinTranspose(HybPtAP *pp, const HybCSR *P, PetscInt **ptr, PetscInt **row)
{
  PetscInt *at, *to;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&pp->work, HYB_MEM_HOST, (PetscCount)P->n + 2, sizeof(PetscInt), &at));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, P->nnz, sizeof(PetscInt), &to));
  for (PetscCount e = 0; e < P->nnz; e++) at[P->j[e] + 2]++;
  for (PetscInt c = 0; c < P->n; c++) at[c + 2] += at[c + 1];
  for (PetscInt r = 0; r < P->m; r++)
    for (PetscInt e = P->i[r]; e < P->i[r + 1]; e++) to[at[P->j[e] + 1]++] = r;
  *ptr = at;
  *row = to;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of columns from[0..len-1], those whose mark is not this one go behind the n that cols has (which is written one
   further), and get it */
static inline PetscInt HybThinMeet(PetscInt len, const PetscInt *restrict from, PetscInt this, PetscInt *restrict mark, PetscInt n, PetscInt *restrict cols)
{
  for (PetscInt k = 0; k < len; k++) {
    cols[n] = from[k];
    n += mark[from[k]] != this;
    mark[from[k]] = this;
  }
  return n;
}

/* n columns, all different, in order */
static void HybThinSort(PetscInt n, PetscInt *restrict cols)
{
  for (PetscInt k = 1; k < n; k++) {
    const PetscInt c = cols[k];
    PetscInt       q = k;

    for (; q && cols[q - 1] > c; q--) cols[q] = cols[q - 1];
    cols[q] = c;
  }
}

#define HYB_THIN_WINDOW 64 /* columns: the bits of a word */
#define HYB_THIN_BEFORE 16 /* of these stand before the first column met */

/* A set of columns, all of them in one window: met in any order, taken in ascending order, with no marks. */
typedef struct {
  PetscInt from;    /* the window's first column */
  uint64_t columns; /* bit b: column from + b was met */
  PetscInt outside; /* nonzero: some column was not in the window, and the set is of no use */
} HybThinSet;

static inline HybThinSet HybThinSetAt(PetscInt column)
{
  const HybThinSet s = {column - HYB_THIN_BEFORE, 0, 0};

  return s;
}

static inline void HybThinSetAdd(HybThinSet *s, PetscInt len, const PetscInt *cols)
{
  for (PetscInt k = 0; k < len; k++) {
    const PetscInt at = cols[k] - s->from;

    s->outside |= at & ~(PetscInt)(HYB_THIN_WINDOW - 1); /* of a negative one as well */
    s->columns |= (uint64_t)1 << (at & (HYB_THIN_WINDOW - 1));
  }
}

/* Its first column, which leaves it. For a set that has one. */
static inline PetscInt HybThinSetTake(HybThinSet *s)
{
  const PetscInt column = s->from + (PetscInt)__builtin_ctzll(s->columns);

  s->columns &= s->columns - 1;
  return column;
}

typedef struct {
  PetscInt  *ptr, *row;            /* of P^T */
  PetscInt  *fine, *coarse, *rows; /* marks, and rows of P that one row of C needs */
  PetscInt   misses;               /* rows of C that no window held, less those that one did */
  HybColSet  set;                  /* for rows of C that are long all the same */
  HybColList list;
} HybThin;

/* Row c of C at the end of the list, if windows hold its columns and the rows of P that it needs: matrices of narrow
   bands. *count < 0: they do not. */
static PetscErrorCode HybThinRowInWindows(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybThin *t, PetscInt c, PetscInt *count)
{
  HybThinSet rows = {0, 0, 0}, cols = {0, 0, 0};
  PetscInt   n = 0, *to;

  PetscFunctionBegin;
  *count = -1;
  for (PetscInt e = t->ptr[c]; e < t->ptr[c + 1]; e++) {
    const PetscInt lo = A->i[t->row[e]], len = A->i[t->row[e] + 1] - lo;

    if (!len) continue;
    if (!rows.columns) rows = HybThinSetAt(A->j[lo]);
    HybThinSetAdd(&rows, len, A->j + lo);
  }
  if (rows.outside) PetscFunctionReturn(PETSC_SUCCESS);
  while (rows.columns) {
    const PetscInt k = HybThinSetTake(&rows), lo = P->i[k], len = P->i[k + 1] - lo;

    if (!len) continue;
    if (!cols.columns) cols = HybThinSetAt(P->j[lo]);
    HybThinSetAdd(&cols, len, P->j + lo);
  }
  if (cols.outside) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybColListReserve(&pp->work, &t->list, HYB_THIN_WINDOW));
  for (to = HybColListEnd(&t->list); cols.columns; n++) to[n] = HybThinSetTake(&cols);
  t->list.tail->used += n;
  *count = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* row c of C at the end of the list */
static PetscErrorCode HybThinRow(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybThin *t, PetscInt c, PetscInt *count)
{
  PetscInt   nrows = 0, n = 0, *cols;
  PetscCount met = 0;

  PetscFunctionBegin;
  for (PetscInt e = t->ptr[c]; e < t->ptr[c + 1]; e++) {
    const PetscInt r = t->row[e];

    nrows = HybThinMeet(A->i[r + 1] - A->i[r], A->j + A->i[r], c, t->fine, nrows, t->rows);
  }
  for (PetscInt k = 0; k < nrows; k++) met += P->i[t->rows[k] + 1] - P->i[t->rows[k]];
  PetscCall(HybColListReserve(&pp->work, &t->list, PetscMin(met, (PetscCount)P->n) + 1));
  cols = HybColListEnd(&t->list);
  for (PetscInt k = 0; k < nrows; k++) {
    const PetscInt lo = P->i[t->rows[k]];

    n = HybThinMeet(P->i[t->rows[k] + 1] - lo, P->j + lo, c, t->coarse, n, cols);
  }
  if (n <= HYB_COL_FEW)
    HybThinSort(n, cols);
  else {
    PetscInt last = 0;

    for (PetscInt k = 0; k < n; k++) {
      HybColSetAdd(&t->set, cols[k] >> 6, (uint64_t)1 << (cols[k] & 63));
      last = PetscMax(last, cols[k]);
    }
    (void)HybColSetTake(&t->set, 0, last, cols);
  }
  t->list.tail->used += n;
  *count = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPtAPSymbolic_Thin(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybArena *out, HybCSR *C)
{
  HybArena  *work = &pp->work;
  PetscCount nnz = 0, walks = 0;
  HybThin    t;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&t, sizeof(t)));
  C->m = C->n = P->n;
  PetscCall(HybThinTranspose(pp, P, &t.ptr, &t.row));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, P->m, sizeof(PetscInt), &t.fine));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)P->m + 1, sizeof(PetscInt), &t.rows));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, P->n, sizeof(PetscInt), &t.coarse));
  PetscCall(HybColSetCreate(work, P->n, &t.set));
  memset(t.fine, -1, (size_t)P->m * sizeof(PetscInt));
  memset(t.coarse, -1, (size_t)P->n * sizeof(PetscInt));
  HybColListInit(&t.list, A->nnz);
  PetscCall(HybArenaAlloc(out, pp->exec.result, (PetscCount)P->n + 1, sizeof(PetscInt), &C->i));
  C->i[0] = 0;
  for (PetscInt c = 0; c < P->n; c++) {
    PetscInt n = -1;

    if (t.misses < HYB_THIN_MISSES) {
      PetscCall(HybThinRowInWindows(pp, A, P, &t, c, &n));
      t.misses += n < 0 ? 1 : -1;
    }
    if (n < 0) PetscCall(HybThinRow(pp, A, P, &t, c, &n));
    nnz += n;
    walks += (PetscCount)n * (t.ptr[c + 1] - t.ptr[c]);
    if (walks > HYB_THIN_WALKS * (A->nnz + P->nnz)) {
      pp->declined = PETSC_TRUE;
      PetscCall(HybArenaFree(out, &C->i));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(HybIntCast(nnz, "The Galerkin product", &C->i[c + 1]));
  }
  C->nnz = nnz;
  PetscCall(HybArenaAlloc(out, pp->exec.result, nnz, sizeof(PetscInt), &C->j));
  PetscCall(HybColListMove(work, &t.list, C->j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* here ? y : HYB_NEUTRAL, by its bits: of numbers compilers make a branch */
static inline PetscReal HybThinPart(PetscBool here, PetscReal y)
{
#if defined(PETSC_USE_REAL_DOUBLE) || defined(PETSC_USE_REAL_SINGLE)
  #if defined(PETSC_USE_REAL_DOUBLE)
  typedef uint64_t Bits;
  #else
  typedef uint32_t Bits;
  #endif
  const PetscReal neutral = (PetscReal)-0.0;
  const Bits      mask    = (Bits)0 - (Bits)here;
  Bits            bits, none;

  memcpy(&bits, &y, sizeof(bits));
  memcpy(&none, &neutral, sizeof(none));
  bits = (bits & mask) | (none & ~mask);
  memcpy(&y, &bits, sizeof(bits));
  return y;
#else
  return here ? y : (PetscReal)-0.0;
#endif
}

static inline HybScalar HybThinIf(PetscBool here, HybScalar y)
{
#if PetscDefined(USE_COMPLEX)
  return PetscCMPLX(HybThinPart(here, PetscRealPart(y)), HybThinPart(here, PetscImaginaryPart(y)));
#else
  return HybThinPart(here, y);
#endif
}

/* C(I,:) += x * v, by a branch where its way can be foretold */
static inline void HybThinAdd(PetscBool branch, PetscInt i, HybScalar x, const PetscInt *restrict mark, const HybScalar *restrict v, PetscInt len, const PetscInt *restrict cj, HybScalar *restrict ca)
{
  for (PetscInt t = 0; t < len; t++) {
    const PetscBool here = (PetscBool)(mark[cj[t]] == i);
    const HybScalar y    = x * v[cj[t]];

    ca[t] += branch ? (here ? y : HYB_NEUTRAL) : HybThinIf(here, y);
  }
}

static PetscErrorCode HybPtAPNumeric_Thin(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  /* rows of a band follow each other alike */
  const PetscBool banded = HybThinBanded(A, A->m / HYB_THIN_ASKED + 1);
  PetscInt       *mark;
  HybScalar      *v;
  PetscCount      products = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, P->n, sizeof(HybScalar), &v));
  PetscCall(HybArenaAlloc(&pp->work, HYB_MEM_HOST, P->n, sizeof(PetscInt), &mark));
  memset(mark, -1, (size_t)P->n * sizeof(PetscInt));
  for (PetscCount e = 0; e < P->n; e++) v[e] = HYB_NEUTRAL;
  for (PetscCount e = 0; e < C->nnz; e++) C->a[e] = HYB_NEUTRAL;
  for (PetscInt i = 0; i < P->m; i++) {
    const PetscInt lo = P->i[i], hi = P->i[i + 1];
    PetscInt       n = 0;

    if (lo == hi) continue;
    for (PetscInt k = A->i[i]; k < A->i[i + 1]; k++) {
      const HybScalar x   = A->a[k];
      const PetscInt  end = P->i[A->j[k] + 1];

      for (PetscInt l = P->i[A->j[k]]; l < end; l++) {
        const PetscInt  J    = P->j[l];
        const PetscBool here = (PetscBool)(mark[J] == i);

        v[J]    = (here ? v[J] : HYB_NEUTRAL) + x * P->a[l];
        mark[J] = i;
        n += !here;
        products++;
      }
    }
    products += (PetscCount)n * (hi - lo);
    for (PetscInt e = lo; e < hi; e++) {
      const PetscInt begin = C->i[P->j[e]], len = C->i[P->j[e] + 1] - begin;

      if (banded)
        HybThinAdd(PETSC_TRUE, i, P->a[e], mark, v, len, C->j + begin, C->a + begin);
      else
        HybThinAdd(PETSC_FALSE, i, P->a[e], mark, v, len, C->j + begin, C->a + begin);
    }
  }
  PetscCall(HybCountersSet(&pp->counters, "products", products));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybPtAPMethod HybPtAP_Thin = {
  .name       = "thin",
  .applicable = HybPtAPApplicable_Thin,
  .symbolic   = HybPtAPSymbolic_Thin,
  .numeric    = HybPtAPNumeric_Thin,
};
