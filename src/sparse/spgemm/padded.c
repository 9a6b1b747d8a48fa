/*
  padded.c: rows of B of a few entries, their number different from row to row, are met by several rows of A at once, or
  padded to one length.

  Idea, where rows of A follow each other, each one column further, as along the lines of a grid. A group of up to
  HYB_LANES of them is computed side by side: accumulators have a lane for each. Where the first one has l columns side
  by side, the group's g rows name l + g - 1 rows of B that follow each other: their entries are one array, walked by
  one loop, each entry multiplied by the values of A of all rows that name it. So a row of B is met once, not l times,
  and no short loop has to end. Lanes of rows that do not name it add -0, whatever the product is. Of columns that stand
  alone one lane is added to.

  Idea, else. In A P with a prolongator P, each entry of A names a row of P of one to eight entries. A loop over so few
  ends elsewhere each time, which no branch predictor foretells: it costs as much as the products. Here all rows of B
  have W entries, or twice W and so on where they are longer: the loop over W is unrolled, and hardly any row is longer.

  Padding goes to columns of its own behind the last one, which nobody reads. Of these there are HYB_SPREAD for each of
  the W, taken in turn by the rows of B, so that no sum there waits for the one before.

    look:      W = the least length that all but a thirty-second of B's rows have at most
    symbolic:  for each group of up to HYB_LANES rows of A that follow each other, each one column further, as along
               the lines of a grid: the rows of B that they name, each once; for each of their columns which rows of C
               have it, a bit each, without a branch; put in order by ranks or a bitmap; each row's columns picked by
               its bit: for up to 64 columns the bits are turned, a word for each row
    plan:      B's columns in pieces of W
    numeric:   groups of rows that follow each other (beside): as above; C's columns gathered from each lane
               else B's values in pieces of W, zeros as padding
               for each row of A: for each entry: acc[column] += a * value, W at a time; C's columns gathered
               without a plan the same entry by entry, as B has them

  The plan costs about what it saves in one numeric phase, so it waits for the second one, also where several are
  expected; unless B's entries are met HYB_EARLY times each: then it is made in the symbolic phase. Where half of B's
  rows are as long as the one before, as on a grid of a few hundred points, loops end where they are foretold to: no
  plan.

  Sums are in A's order and start at -0 (neutral), so they have the bits of the other methods.

  Cost rule. auto takes it where rows of B have 2 to HYB_MOST entries as A's entries meet them, each is met four times
  in the mean, so that it pays to copy it, a dense accumulator is no longer than HYB_COLUMNS, and three quarters of A's
  rows are as long as one of the three before, as on grids, where the accumulator is read in order (applicable); and
  where no more than a thirty-second of B's rows is longer than W (look: always, W being at most HYB_MOST), or groups of
  rows meet no more than four fifths as many rows of B as their entries name, of a sample (look); these pay from the
  first numeric phase on, without a plan.

  Memory beside C: W integers for each row of B, W values in numeric phases; there also an accumulator for each column,
  in the symbolic phase a byte and an integer. Side by side: a byte for each row of A and each entry of B, HYB_LANES
  accumulators for each column. Time: W for each entry of A; side by side, l + g - 1 rows of B for g times l entries.

  Counters: "rows padded", "width" (W), "rows longer" (than W), "rows beside" (each other, in groups).
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include "colset.h"

#define HYB_MOST     8
#define HYB_SPREAD   4
#define HYB_LANES    8 /* rows of A whose columns of C are found together: a bit each */
#define HYB_COLUMNS  ((PetscInt)1 << 20)
#define HYB_EARLY    16
#define HYB_FORETOLD 4096 /* rows of B whose loops a processor foretells; of 100000 a plan takes 0.92 of the time */
#define HYB_SAMPLE   32   /* places where groups of rows tell of all */
#define HYB_MET      1024 /* rows of B that a group meets, at most */
#define HYB_BESIDE   (HYB_MET / HYB_LANES)

typedef struct {
  PetscInt       width;  /* W */
  PetscInt       longer; /* rows of B */
  PetscInt      *piece;  /* row r of B: pieces piece[r] to piece[r+1]-1; NULL: there are none yet */
  PetscInt      *column; /* of each entry of each piece */
  PetscBool      even;   /* rows of B are mostly as long as the one before */
  PetscBool      beside; /* groups of rows are computed side by side */
  unsigned char *group;  /* then, of each group, its rows */
  unsigned char *row;    /* and of each entry of B the last byte of its row's number */
} HybPadded;

static PetscErrorCode HybSpGEMMApplicable_Padded(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const PetscCount products = mm->stats.products;

  PetscFunctionBegin;
  *fits = (PetscBool)(B->n <= HYB_COLUMNS && products >= 2 * A->nnz && products <= HYB_MOST * A->nnz && A->nnz / 4 >= B->m && mm->stats.alike >= A->m / 4 * 3);
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

/* entry k begins columns side by side: their number */
static inline PetscInt HybPaddedSpan(const HybCSR *A, PetscInt k, PetscInt end)
{
  PetscInt len = 1;

  while (k + len < end && A->j[k + len] == A->j[k] + len) len++;
  return len;
}

/* Are rows of B met so much less often by groups of rows than by their entries that these pay? Of a sample of groups
   side by side, since every n-th row of a grid may begin a line. */
static PetscBool HybPaddedBeside(const HybCSR *A, const HybCSR *B)
{
  PetscCount entries = 0, met = 0;

  if (PetscDefined(USE_COMPLEX) || !A->nnz || B->n > A->nnz / HYB_LANES) return PETSC_FALSE;
  for (PetscInt s = 0; s < HYB_SAMPLE; s++) {
    const PetscInt first = (PetscInt)((PetscCount)A->m * s / HYB_SAMPLE);

    for (PetscInt r = first, g; r < PetscMin(A->m, first + 4 * HYB_LANES); r += g) {
      const PetscInt end = A->i[r + 1];

      if (end - A->i[r] > HYB_BESIDE) return PETSC_FALSE;
      g = HybPaddedFollow(A, r);
      entries += g * (PetscCount)(end - A->i[r]);
      for (PetscInt k = A->i[r], len; k < end; k += len) {
        len = HybPaddedSpan(A, k, end);
        met += len + g - 1;
      }
    }
  }
  return (PetscBool)(5 * met <= 4 * entries);
}

static PetscErrorCode HybSpGEMMFits_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  PetscInt   rows[HYB_MOST + 2] = {0}, before = 0, changes = 0;
  HybPadded *s;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero(s, sizeof(*s)));
  for (PetscInt r = 0; r < B->m; r++) {
    const PetscInt len = B->i[r + 1] - B->i[r];

    rows[PetscMin(len, HYB_MOST + 1)]++;
    changes += len != before;
    before = len;
  }
  s->even   = (PetscBool)(B->m <= HYB_FORETOLD && changes <= B->m / 2);
  s->longer = B->m - rows[0];
  for (s->width = 1; s->width <= HYB_MOST; s->width++) {
    s->longer -= rows[s->width];
    if (s->longer <= B->m / 32) break;
  }
  s->width  = PetscMin(s->width, HYB_MOST);
  s->beside = HybPaddedBeside(A, B);
  *fits     = (PetscBool)(strcmp(mm->name, "auto") || s->beside || s->longer <= B->m / 32);
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
  if (s->piece || s->beside || s->even) PetscFunctionReturn(PETSC_SUCCESS);
  mm->planned = (PetscBool)(mm->numerics > 0);
  if (mm->planned) PetscCall(HybPaddedColumns(mm, s, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a column of C's rows with these bits: it is written if it is new, and counted then */
static inline PetscInt HybPaddedAdd(PetscInt c, unsigned char bits, PetscInt n, unsigned char *restrict lanes, PetscInt *restrict to)
{
  const unsigned char old = lanes[c];

  to[n]    = c;
  lanes[c] = old | bits;
  return n + !old;
}

/* The columns that rows r to r+g-1 of C have, in the order in which they are met, and in lanes which of these rows has
   each, a bit for each row. Writes one more than it returns. byte: of each entry of B the last byte of its row's
   number, or NULL. */
static PetscInt HybPaddedMeet(const HybCSR *A, const HybCSR *B, const unsigned char *restrict byte, PetscInt r, PetscInt g, unsigned char *restrict lanes, PetscInt *restrict to)
{
  const PetscInt *restrict const bi = B->i, *restrict const bj = B->j;
  unsigned char bits[256];
  PetscInt      n = 0;

  for (PetscInt k = A->i[r], len; k < A->i[r + 1]; k += len) {
    const PetscInt first = A->j[k];

    /* of the rows of B from the first one on, row q names len from q on */
    len = PetscMin(HybPaddedSpan(A, k, A->i[r + 1]), 256 - HYB_LANES);
    for (PetscInt s = 0; s < len + g - 1; s++) bits[s] = (unsigned char)(((2 << PetscMin(s, g - 1)) - 1) & ~((1 << PetscMax(0, s - len + 1)) - 1));
    if (byte) { /* one loop, that ends but once */
      for (PetscInt l = bi[first], end = bi[first + len + g - 1]; l < end; l++) n = HybPaddedAdd(bj[l], bits[(unsigned char)(byte[l] - (unsigned char)first)], n, lanes, to);
      continue;
    }
    for (PetscInt s = 0; s < len + g - 1; s++)
      for (PetscInt l = bi[first + s]; l < bi[first + s + 1]; l++) n = HybPaddedAdd(bj[l], bits[s], n, lanes, to);
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

static PetscErrorCode HybPaddedRoom(HybSpGEMM *mm, HybPadded *s, const HybCSR *A, const HybCSR *B)
{
  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, A->m, 1, &s->group));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, B->nnz + 8, 1, &s->row));
  for (PetscInt r = 0; r < B->m; r++) {
    const uint64_t bytes = UINT64_C(0x0101010101010101) * (unsigned char)r;

    /* eight at a time: what follows is written next */
    for (PetscInt l = B->i[r]; l < B->i[r + 1]; l += 8) memcpy(s->row + l, &bytes, 8);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybPadded     *s = (HybPadded *)mm->data;
  unsigned char *lanes;
  PetscInt      *cols, sorted[HYB_COL_FEW];
  HybColSet      set;
  HybColList     list;
  PetscInt       groups = 0;
  PetscCount     beside = 0;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&set, sizeof(set)));
  HybColListInit(&list, mm->stats.products);
  if (s->beside)
    PetscCall(HybPaddedRoom(mm, s, A, B));
  else if (mm->stats.products / HYB_EARLY >= B->nnz)
    PetscCall(HybPaddedColumns(mm, s, B));
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
    if (s->beside) {
      s->group[groups++] = (unsigned char)g;
      beside += g > 1 ? g : 0;
    }
    n = HybPaddedMeet(A, B, s->row, r, g, lanes, cols);
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
  PetscCall(HybCountersSet(&mm->counters, "rows beside", beside));
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

#if !PetscDefined(USE_COMPLEX)
/* a value, or bits, of each row of a group */
  #if PetscDefined(USE_REAL_SINGLE)
typedef uint32_t HybPaddedBits;
  #else
typedef uint64_t HybPaddedBits;
  #endif
typedef PetscScalar   HybPaddedVector __attribute__((vector_size(HYB_LANES * sizeof(PetscScalar)), aligned(sizeof(PetscScalar)), may_alias));
typedef HybPaddedBits HybPaddedMask __attribute__((vector_size(HYB_LANES * sizeof(PetscScalar)), aligned(sizeof(PetscScalar)), may_alias));

/* What a group meets. Columns of its first row that are side by side are a run; the rows of B that the group's rows
   name there follow each other, and each has a place in x: by what each row of the group multiplies it; of one that
   does not name it anything. lanes: which rows do, the first one times 8 plus the last one. Groups of the same runs
   share the last three. */
typedef struct {
  HybPaddedVector x[HYB_MET];
  HybPaddedMask   mask[HYB_LANES * HYB_LANES];
  PetscInt        rows, nruns, length[HYB_BESIDE], place[HYB_BESIDE];
  unsigned char   lanes[HYB_MET];
} HybPaddedMet;

/* the runs of a group of g rows, if they are not those of the group before */
static void HybPaddedRuns(const HybCSR *A, PetscInt r, PetscInt g, HybPaddedMet *met)
{
  const PetscInt *j    = A->j;
  const PetscInt  end  = A->i[r + 1];
  PetscBool       same = (PetscBool)(g == met->rows);
  PetscInt        k = A->i[r], s = 0, n = 0;

  for (; same && s < met->nruns && k < end; k += met->length[s++]) {
    const PetscInt len = met->length[s];

    same = (PetscBool)(k + len <= end && j[k + len - 1] - j[k] == len - 1 && (k + len == end || j[k + len] != j[k] + len));
  }
  if (same && s == met->nruns && k == end) return;
  met->rows = g;
  s         = 0;
  for (PetscInt e = A->i[r], len; e < end; e += len) {
    len            = HybPaddedSpan(A, e, end);
    met->length[s] = len;
    met->place[s]  = n;
    for (PetscInt t = 0; t < len + g - 1; t++) met->lanes[n + t] = (unsigned char)(HYB_LANES * PetscMax(0, t - len + 1) + PetscMin(t, g - 1));
    n += len + g - 1;
    s++;
  }
  met->nruns = s;
}

/* A's values of a group to their places */
static inline __attribute__((always_inline)) void HybPaddedSpread(PetscInt g, PetscInt len, PetscInt stride, const HybScalar *restrict a, HybScalar *restrict x)
{
  for (PetscInt q = 0; q < g; q++)
    for (PetscInt t = 0; t < len; t++) x[(q + t) * HYB_LANES + q] = a[q * stride + t];
}

/* The sums of a group whose first row of A has these columns and values, the next one stride further: each run's
   entries of B in one loop; row: of which row of B each is, its last byte. Lanes that do not name it add -0, which
   changes nothing. */
static HYB_MULTIVERSION void HybPaddedSums(const HybPaddedMet *met, const PetscInt *j, const HybScalar *restrict a, PetscInt stride, const PetscInt *restrict bi, const PetscInt *restrict bj, const HybScalar *restrict ba, const unsigned char *restrict row, HybScalar *restrict acc)
{
  const HybPaddedVector neutral = HYB_NEUTRAL - (HybPaddedVector){0};

  for (PetscInt s = 0; s < met->nruns; s++) {
    const unsigned char    first = (unsigned char)*j, *restrict lanes = met->lanes + met->place[s];
    const PetscInt         begin = bi[*j], end = bi[*j + met->length[s] + met->rows - 1];
    const HybPaddedVector *x = met->x + met->place[s];

    if (met->length[s] == 1) {
      for (PetscInt l = begin; l < end; l++) {
        const unsigned char q = (unsigned char)(row[l] - first);

        acc[(PetscCount)HYB_LANES * bj[l] + q] += a[q * stride] * ba[l];
      }
    } else {
      for (PetscInt l = begin; l < end; l++) {
        const unsigned char q    = (unsigned char)(row[l] - first);
        const HybPaddedMask mask = met->mask[lanes[q]];

        *(HybPaddedVector *)(acc + (PetscCount)HYB_LANES * bj[l]) += (HybPaddedVector)(((HybPaddedMask)(x[q] * ba[l]) & mask) | ((HybPaddedMask)neutral & ~mask));
      }
    }
    j += met->length[s];
    a += met->length[s];
  }
}

/* A group of g rows from r on, whose sums go to their lanes of acc */
static void HybPaddedGroup(const HybPadded *s, PetscInt r, PetscInt g, const HybCSR *A, const HybCSR *B, HybPaddedMet *met, HybScalar *restrict acc)
{
  const PetscInt   len = A->i[r + 1] - A->i[r];
  const HybScalar *a   = A->a + A->i[r];

  if (g == 1 || len > HYB_BESIDE) {
    for (PetscInt q = 0; q < g; q++)
      for (PetscInt k = A->i[r + q]; k < A->i[r + q + 1]; k++)
        for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) acc[(PetscCount)HYB_LANES * B->j[l] + q] += A->a[k] * B->a[l];
    return;
  }
  HybPaddedRuns(A, r, g, met);
  for (PetscInt k = 0; k < met->nruns; a += met->length[k++]) {
    HybScalar *x = (HybScalar *)&met->x[met->place[k]];

    /* loops of constant length, for most */
    if (g == HYB_LANES && met->length[k] == 3)
      HybPaddedSpread(HYB_LANES, 3, len, a, x);
    else if (met->length[k] > 1)
      HybPaddedSpread(g, met->length[k], len, a, x);
  }
  HybPaddedSums(met, A->j + A->i[r], A->a + A->i[r], len, B->i, B->j, B->a, s->row, acc);
}

static void HybPaddedRowsBeside(const HybPadded *s, const HybCSR *A, const HybCSR *B, HybCSR *C, HybPaddedMet *met, HybScalar *restrict acc)
{
  const PetscInt *restrict const ci = C->i, *restrict const cj = C->j;
  HybScalar *restrict const ca = C->a;

  memset(met, 0, sizeof(*met)); /* to multiply what was there may be slow */
  for (PetscInt first = 0; first < HYB_LANES; first++)
    for (PetscInt last = first; last < HYB_LANES; last++)
      for (PetscInt q = first; q <= last; q++) met->mask[HYB_LANES * first + last][q] = ~(HybPaddedBits)0;
  for (PetscInt r = 0, k = 0, g; r < A->m; r += g, k++) {
    g = s->group[k];
    HybPaddedGroup(s, r, g, A, B, met, acc);
    for (PetscInt q = 0; q < g; q++) {
      for (PetscInt t = ci[r + q]; t < ci[r + q + 1]; t++) {
        HybScalar *const from = acc + (PetscCount)HYB_LANES * cj[t] + q;

        ca[t] = *from;
        *from = HYB_NEUTRAL;
      }
    }
  }
}

static PetscErrorCode HybPaddedNumericBeside(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const PetscCount room = HYB_LANES * (PetscCount)B->n, line = 64 / (PetscCount)sizeof(HybScalar);
  char            *met;
  HybScalar       *acc;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, sizeof(HybPaddedMet) + 64, 1, &met));
  met += (64 - (uintptr_t)met % 64) % 64; /* a vector within one cache line */
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, room + line, sizeof(HybScalar), &acc));
  acc += (64 - (uintptr_t)acc % 64) % 64 / sizeof(HybScalar);
  for (PetscCount c = 0; c < room; c++) acc[c] = HYB_NEUTRAL;
  HybPaddedRowsBeside((const HybPadded *)mm->data, A, B, C, (HybPaddedMet *)met, acc);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode HybSpGEMMNumeric_Padded(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybPadded *s    = (const HybPadded *)mm->data;
  const PetscInt   w    = s->width;
  const PetscCount room = (PetscCount)B->n + HYB_SPREAD * w;
  HybScalar       *acc, *value;

  PetscFunctionBegin;
#if !PetscDefined(USE_COMPLEX)
  if (s->beside) {
    PetscCall(HybPaddedNumericBeside(mm, A, B, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
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
  .fits       = HybSpGEMMFits_Padded,
  .symbolic   = HybSpGEMMSymbolic_Padded,
  .plan       = HybSpGEMMPlan_Padded,
  .numeric    = HybSpGEMMNumeric_Padded,
};
