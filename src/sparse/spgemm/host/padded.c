/*
  padded.c: rows of B of a few entries, their number different from row to row, are padded to one length.

  Idea. In A P with a prolongator P, each entry of A names a row of P of one to eight entries. A loop over so few ends
  elsewhere each time, which no branch predictor foretells: it costs as much as the products. Here all rows of B have W
  entries, or twice W and so on where they are longer: the loop over W is unrolled, and hardly any row is longer.

  Padding goes to columns of its own behind the last one, which nobody reads. Of these there are HYB_SPREAD for each of
  the W, taken in turn by the rows of B, so that no sum there waits for the one before.

    look:      W = the least length that all but a thirty-second of B's rows have at most
    symbolic:  for each group of up to HYB_LANES rows of A that follow each other, each one column further, as along
               the lines of a grid: the rows of B that they name, each once; for each of their columns which rows of C
               have it, a bit each, without a branch; put in order by ranks or a bitmap; each row's columns picked by
               its bit: for up to 64 columns the bits are turned, a word for each row
    plan:      B's columns in pieces of W
    numeric:   B's values in pieces of W, zeros as padding
               for each row of A: for each entry: acc[column] += a * value, W at a time; C's columns gathered
               without a plan the same entry by entry, as B has them

  The plan costs about what it saves in one numeric phase, so it waits for the second one, also where several are
  expected; unless B's entries are met HYB_EARLY times each: then it is made in the symbolic phase.

  Sums are in A's order and start at -0 (neutral), so they have the bits of the other methods.

  Cost rule. auto takes it where rows of B have 2 to HYB_MOST entries as A's entries meet them, each is met four times
  in the mean, so that it pays to copy it, a dense accumulator is no longer than HYB_COLUMNS, and three quarters of A's
  rows are as long as one of the three before, as on grids, where the accumulator is read in order (applicable); and
  where no more than a thirty-second of B's rows is longer than W (look: always, W being at most HYB_MOST).

  Memory beside C: W integers for each row of B, W values in numeric phases; there also an accumulator for each column,
  in the symbolic phase a byte and an integer. Time: W for each entry of A.

  Counters: "rows padded", "width" (W), "rows longer" (than W).
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include "../../plan/colset.h"

#define HYB_MOST    8
#define HYB_SPREAD  4
#define HYB_LANES   8 /* rows of A whose columns of C are found together: a bit each */
#define HYB_COLUMNS ((PetscInt)1 << 20)
#define HYB_EARLY   16

typedef struct {
  PetscInt  width;  /* W */
  PetscInt  longer; /* rows of B */
  PetscInt *piece;  /* row r of B: pieces piece[r] to piece[r+1]-1; NULL: there are none yet */
  PetscInt *column; /* of each entry of each piece */
} HybPadded;

static PetscErrorCode HybSpGEMMApplicable_Padded(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const PetscCount products = mm->stats.products;

  PetscFunctionBegin;
  *fits = (PetscBool)(B->n <= HYB_COLUMNS && products >= 2 * A->nnz && products <= HYB_MOST * A->nnz && A->nnz / 4 >= B->m && mm->stats.alike >= A->m / 4 * 3);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMLook_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  PetscInt   rows[HYB_MOST + 2] = {0};
  HybPadded *s;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero(s, sizeof(*s)));
  for (PetscInt r = 0; r < B->m; r++) rows[PetscMin(B->i[r + 1] - B->i[r], HYB_MOST + 1)]++;
  s->longer = B->m - rows[0];
  for (s->width = 1; s->width <= HYB_MOST; s->width++) {
    s->longer -= rows[s->width];
    if (s->longer <= B->m / 32) break;
  }
  s->width = PetscMin(s->width, HYB_MOST);
  *fits    = (PetscBool)(strcmp(mm->name, "auto") || s->longer <= B->m / 32);
  if (*fits) mm->data = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B's columns in pieces */
static PetscErrorCode HybPaddedColumns(HybSpGEMM *mm, HybPadded *s, const HybCSR *B)
{
  const PetscInt w      = s->width;
  PetscCount     pieces = 0;
  PetscInt       last, *piece;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < B->m; r++) pieces += (B->i[r + 1] - B->i[r] + w - 1) / w;
  PetscCall(HybIntCast(pieces, "The number of pieces of padded rows", &last));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, (PetscCount)B->m + 1, sizeof(PetscInt), &piece));
  ierr = HybArenaAlloc(&mm->keep, HYB_MEM_HOST, pieces * w, sizeof(PetscInt), &s->column);
  if (ierr) (void)HybArenaFree(&mm->keep, &piece);
  PetscCall(ierr);
  piece[0] = 0;
  for (PetscInt r = 0; r < B->m; r++) {
    const PetscInt len = B->i[r + 1] - B->i[r], n = (len + w - 1) / w, *j = B->j + B->i[r];
    PetscInt      *to = s->column + (PetscCount)piece[r] * w;

    for (PetscInt t = 0; t < n * w; t++) to[t] = t < len ? j[t] : B->n + (r % HYB_SPREAD) * w + t % w;
    piece[r + 1] = piece[r] + n;
  }
  s->piece = piece;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMPlan_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, const HybCSR *C)
{
  HybPadded *s = (HybPadded *)mm->data;

  PetscFunctionBegin;
  if (s->piece) PetscFunctionReturn(PETSC_SUCCESS);
  mm->planned = (PetscBool)(mm->numerics > 0);
  if (mm->planned) PetscCall(HybPaddedColumns(mm, s, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how many rows of A from r on follow each other, each one column further than the one before; HYB_LANES at most */
static PetscInt HybPaddedFollow(const HybCSR *A, PetscInt r)
{
  const PetscInt len = A->i[r + 1] - A->i[r];
  PetscInt       q   = 1;

  for (; q < HYB_LANES && r + q < A->m && A->i[r + q + 1] - A->i[r + q] == len; q++) {
    const PetscInt *j = A->j + A->i[r + q];
    PetscInt        k = 0;

    while (k < len && j[k] == j[k - len] + 1) k++;
    if (k < len) break;
  }
  return q;
}

/* The columns that rows r to r+g-1 of C have, in the order in which they are met, and in lanes which of these rows has
   each, a bit for each row. Writes one more than it returns. */
static PetscInt HybPaddedMeet(const HybCSR *A, const HybCSR *B, PetscInt r, PetscInt g, unsigned char *restrict lanes, PetscInt *restrict to)
{
  PetscInt n = 0;

  for (PetscInt k = A->i[r], len; k < A->i[r + 1]; k += len) {
    /* columns side by side: of the rows of B from the first one on, row q names len from q on */
    for (len = 1; k + len < A->i[r + 1] && A->j[k + len] == A->j[k] + len; len++)
      ;
    for (PetscInt s = 0; s < len + g - 1; s++) {
      const PetscInt      row  = A->j[k] + s;
      const unsigned char mask = (unsigned char)(((2 << PetscMin(s, g - 1)) - 1) & ~((1 << PetscMax(0, s - len + 1)) - 1));

      for (PetscInt l = B->i[row]; l < B->i[row + 1]; l++) {
        to[n] = B->j[l];
        n += !lanes[B->j[l]];
        lanes[B->j[l]] |= mask;
      }
    }
  }
  return n;
}

/* n columns in order; sorted: room for HYB_COL_FEW */
static HYB_MULTIVERSION void HybPaddedSort(const HybColSet *set, PetscInt n, PetscInt *restrict cols, PetscInt *restrict sorted)
{
  PetscInt last = 0;

  if (n <= HYB_COL_FEW) {
    HybColSortFew(n, cols, sorted);
    memcpy(cols, sorted, (size_t)n * sizeof(PetscInt));
    return;
  }
  for (PetscInt k = 0; k < n; k++) {
    HybColSetAdd(set, cols[k] >> 6, (uint64_t)1 << (cols[k] & 63));
    last = PetscMax(last, cols[k]);
  }
  (void)HybColSetTake(set, 0, last, cols);
}

/* bit k of byte l becomes bit l of byte k */
static inline uint64_t HybPaddedTurn(uint64_t x)
{
  uint64_t t;

  t = (x ^ (x >> 7)) & UINT64_C(0x00aa00aa00aa00aa);
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & UINT64_C(0x0000cccc0000cccc);
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & UINT64_C(0x00000000f0f0f0f0);
  return x ^ t ^ (t << 28);
}

/* which of up to 64 columns each row has */
static void HybPaddedWords(PetscInt n, const PetscInt *restrict cols, const unsigned char *restrict lanes, uint64_t word[HYB_LANES])
{
  for (int q = 0; q < HYB_LANES; q++) word[q] = 0;
  for (PetscInt t = 0; t < n; t += 8) {
    uint64_t x = 0;

    for (PetscInt k = t; k < PetscMin(t + 8, n); k++) x |= (uint64_t)lanes[cols[k]] << 8 * (k - t);
    x = HybPaddedTurn(x);
    for (int q = 0; q < HYB_LANES; q++) word[q] |= (x >> 8 * q & 255) << t;
  }
}

/* the columns whose bits are set, of cols, which has 64; writes up to three more than it returns */
static inline PetscInt HybPaddedPickWord(uint64_t word, const PetscInt *restrict cols, PetscInt *restrict to)
{
  const PetscInt m = __builtin_popcountll(word);

  /* four at a time: the loop's end is foretold more often */
  for (PetscInt k = 0; k < m; k += 4) {
    for (int u = 0; u < 4; u++) {
      to[k + u] = cols[__builtin_ctzll(word | (uint64_t)1 << 63)];
      word &= word - 1;
    }
  }
  return m;
}

/* those of n columns that row q has; writes one more than it returns, if there are fewer */
static PetscInt HybPaddedPick(PetscInt n, const PetscInt *restrict cols, const unsigned char *restrict lanes, PetscInt q, PetscInt *restrict to)
{
  PetscInt m = 0;

  for (PetscInt t = 0; t < n; t++) {
    to[m] = cols[t];
    m += lanes[cols[t]] >> q & 1;
  }
  return m;
}

static PetscErrorCode HybSpGEMMSymbolic_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybPadded     *s = (HybPadded *)mm->data;
  unsigned char *lanes;
  PetscInt      *cols, sorted[HYB_COL_FEW];
  HybColSet      set;
  HybColList     list;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&set, sizeof(set)));
  HybColListInit(&list, mm->stats.products);
  if (mm->stats.products / HYB_EARLY >= B->nnz) PetscCall(HybPaddedColumns(mm, s, B));
  PetscCall(HybColSetCreate(&mm->work, B->n, &set));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_HOST, B->n, 1, &lanes));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, (PetscCount)B->n + 64, sizeof(PetscInt), &cols));
  PetscCall(HybArenaAlloc(out, mm->exec.result, (PetscCount)A->m + 1, sizeof(PetscInt), &C->i));
  C->i[0] = 0;
  C->nnz  = 0;
  for (PetscInt r = 0, g; r < A->m; r += g) {
    uint64_t word[HYB_LANES];
    PetscInt n;

    g = HybPaddedFollow(A, r);
    n = HybPaddedMeet(A, B, r, g, lanes, cols);
    HybPaddedSort(&set, n, cols, sorted);
    if (n <= 64) HybPaddedWords(n, cols, lanes, word);
    for (PetscInt q = 0; q < g; q++) {
      PetscInt m;

      PetscCall(HybColListReserve(&mm->work, &list, (PetscCount)n + 3));
      m = n <= 64 ? HybPaddedPickWord(word[q], cols, HybColListEnd(&list)) : HybPaddedPick(n, cols, lanes, q, HybColListEnd(&list));
      list.tail->used += m;
      C->nnz += m;
      /* not one column more is gathered than could be kept */
      if (C->nnz > (PetscCount)PETSC_MAX_INT) PetscCall(HybSpGEMMCheckCount(&mm->exec, A, B, C->nnz, PETSC_TRUE));
      C->i[r + q + 1] = (PetscInt)C->nnz;
    }
    for (PetscInt t = 0; t < n; t++) lanes[cols[t]] = 0;
  }
  PetscCall(HybArenaAlloc(out, mm->exec.result, C->nnz, sizeof(PetscInt), &C->j));
  PetscCall(HybColListMove(&mm->work, &list, C->j));
  PetscCall(HybCountersSet(&mm->counters, "rows padded", A->m));
  PetscCall(HybCountersSet(&mm->counters, "width", s->width));
  PetscCall(HybCountersSet(&mm->counters, "rows longer", s->longer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all of A's rows; value: B's values in pieces */
static inline __attribute__((always_inline)) void HybPaddedRows_Inline(PetscInt w, const HybPadded *s, const HybScalar *restrict value, const HybCSR *A, HybCSR *C, HybScalar *restrict acc)
{
  const PetscInt *restrict const ai = A->i, *restrict const aj = A->j, *restrict const piece = s->piece, *restrict const column = s->column, *restrict const ci = C->i, *restrict const cj = C->j;
  const HybScalar *restrict const aa = A->a;
  HybScalar *restrict const ca       = C->a;

  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = ai[r]; k < ai[r + 1]; k++) {
      const HybScalar x = aa[k];

      for (PetscInt p = piece[aj[k]]; p < piece[aj[k] + 1]; p++) {
        const PetscInt  *c = column + (PetscCount)p * w;
        const HybScalar *v = value + (PetscCount)p * w;

        for (PetscInt t = 0; t < w; t++) acc[c[t]] += x * v[t];
      }
    }
    for (PetscInt t = ci[r]; t < ci[r + 1]; t++) {
      ca[t]      = acc[cj[t]];
      acc[cj[t]] = HYB_NEUTRAL;
    }
  }
}

/* a loop of constant length for each width */
static void HybPaddedRows(PetscInt w, const HybPadded *s, const HybScalar *value, const HybCSR *A, HybCSR *C, HybScalar *acc)
{
#define HYB_WIDTH(n)                              \
  case n:                                         \
    HybPaddedRows_Inline(n, s, value, A, C, acc); \
    break
  switch (w) {
    HYB_WIDTH(1);
    HYB_WIDTH(2);
    HYB_WIDTH(3);
    HYB_WIDTH(4);
    HYB_WIDTH(5);
    HYB_WIDTH(6);
    HYB_WIDTH(7);
    HYB_WIDTH(8);
  }
#undef HYB_WIDTH
}

/* all of A's rows by B as it is */
static void HybPaddedPlain(const HybCSR *A, const HybCSR *B, HybCSR *C, HybScalar *restrict acc)
{
  const PetscInt *restrict const ai = A->i, *restrict const aj = A->j, *restrict const bi = B->i, *restrict const bj = B->j, *restrict const ci = C->i, *restrict const cj = C->j;
  const HybScalar *restrict const aa = A->a, *restrict const ba = B->a;
  HybScalar *restrict const ca = C->a;

  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = ai[r]; k < ai[r + 1]; k++) {
      const HybScalar x   = aa[k];
      const PetscInt  end = bi[aj[k] + 1];

      for (PetscInt l = bi[aj[k]]; l < end; l++) acc[bj[l]] += x * ba[l];
    }
    for (PetscInt t = ci[r]; t < ci[r + 1]; t++) {
      ca[t]      = acc[cj[t]];
      acc[cj[t]] = HYB_NEUTRAL;
    }
  }
}

static PetscErrorCode HybSpGEMMNumeric_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybPadded *s    = (const HybPadded *)mm->data;
  const PetscInt   w    = s->width;
  const PetscCount room = (PetscCount)B->n + HYB_SPREAD * w;
  HybScalar       *acc, *value;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, room, sizeof(HybScalar), &acc));
  for (PetscCount c = 0; c < room; c++) acc[c] = HYB_NEUTRAL;
  if (!s->piece) {
    HybPaddedPlain(A, B, C, acc);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, (PetscCount)s->piece[B->m] * w, sizeof(HybScalar), &value));
  for (PetscInt r = 0; r < B->m; r++) {
    const PetscInt   len = B->i[r + 1] - B->i[r], n = (s->piece[r + 1] - s->piece[r]) * w;
    const HybScalar *from = B->a + B->i[r];
    HybScalar       *to   = value + (PetscCount)s->piece[r] * w;

    for (PetscInt t = 0; t < n; t++) to[t] = t < len ? from[t] : 0;
  }
  HybPaddedRows(w, s, value, A, C, acc);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpGEMMMethod HybSpGEMM_Padded = {
  .name       = "padded",
  .applicable = HybSpGEMMApplicable_Padded,
  .look       = HybSpGEMMLook_Padded,
  .symbolic   = HybSpGEMMSymbolic_Padded,
  .plan       = HybSpGEMMPlan_Padded,
  .numeric    = HybSpGEMMNumeric_Padded,
};
