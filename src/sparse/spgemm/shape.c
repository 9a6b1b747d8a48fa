/*
  shape.c: rows of C side by side where rows repeat their shape, as on structured grids.

  Idea. A row follows the row before if it has as many entries, each one column further. Let rows r .. r+w-1 of A follow
  each other, and so the rows of B from each column on that row r names. Then the rows of C follow each other too, and a
  product goes to the same place of each. So the columns of C and the place of each product are found once for such a
  group, and its rows are computed HYB_LANES at a time, a row a lane, their accumulators side by side: no product looks
  at a column, and the accumulators are as many as a row of C has entries, however far its columns are apart.

    look:      for each row of B, where the rows end that follow each other (one pass through its columns)
               for each row r of A: w = the least of (that end - column) of its entries; cut where the next row of A
               does not follow. w >= HYB_LANES: a group; else row r goes alone
    symbolic:  for each group: columns of the first row by a bitmap, places of its products by looking them up; a
               program that equals the one before is not stored again
               for each row alone: columns by a bitmap
               C->j: columns of a group's row q are the first one's plus q
    numeric:   for each HYB_LANES rows of a group
                 for each entry k of A's row, for each entry l of B's: acc[place] += a[k] * b[l], of all lanes
                 the accumulators become the rows of C
               a group's last rows are computed together with some of those before, once more
               rows alone: a dense accumulator over the columns between the first and the last

  Sums are in A's order and start at -0 (neutral), so they have the bits of the other methods.

  Cost rule. auto takes this method where the plan's counts say that four fifths of A's rows are as long as one of the
  three before (applicable), and the look finds three quarters of them in groups; it does not look where of a sample of
  B's rows hardly any follows the one before, as in prolongators. By name it always runs.

  Memory beside C: two integers for a group of rows or of rows alone, two bytes for each product of a program; during
  the symbolic phase an integer for each row and column of B; in numeric ones HYB_LANES values for each entry of C's
  longest row, and for rows alone a value for each column that one of them spans. Time: a pass through both patterns,
  and the products, eight at a time.

  Counters: "rows by shape", "rows alone", "programs" (lists of places that are stored), "program" (products in them).
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include "colset.h"

#define HYB_LANES  8
#define HYB_SAMPLE 32 /* places where rows of B tell whether looking pays */
#define HYB_ALONE  -1 /* the program of rows that are computed one by one */

#if PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX)
/* half of the lanes: what a register of AVX2 holds */
typedef PetscScalar HybHalf __attribute__((vector_size(HYB_LANES / 2 * sizeof(PetscScalar)), aligned(sizeof(PetscScalar)), may_alias));

/* four of the values of x and y, which are numbered one behind the other */
  #if defined(__clang__)
    #define HYB_PICK(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
  #else /* GCC has that one from 12 on */
typedef PetscInt64 HybPick __attribute__((vector_size(4 * sizeof(PetscInt64))));
    #define HYB_PICK(x, y, a, b, c, d) __builtin_shuffle(x, y, (HybPick){a, b, c, d})
  #endif
#endif

typedef struct {
  PetscInt    ngroups;
  PetscInt   *first;   /* group g: rows first[g] .. first[g+1]-1 */
  PetscCount *program; /* where its places begin, or HYB_ALONE */
  uint16_t   *place;   /* in a row of C, of each product of a row of A */
  PetscCount  grouped; /* rows */
  PetscInt    longest; /* entries of C's rows in groups, at most */
  PetscInt    span;    /* columns that a row alone spans, at most */
} HybShape;

/* row r is row r-1, one column further */
static inline PetscBool HybShapeFollows(const HybCSR *M, PetscInt r)
{
  const PetscInt len = M->i[r + 1] - M->i[r], *j = M->j + M->i[r];

  if (M->i[r] - M->i[r - 1] != len) return PETSC_FALSE;
  for (PetscInt k = 0; k < len; k++) {
    if (j[k] != j[k - len] + 1) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* how many rows of C from r on follow each other; end: where those of B end that follow each row */
static PetscInt HybShapeRun(const HybCSR *A, const PetscInt *end, PetscInt r)
{
  PetscInt w = A->m - r, q = 1;

  for (PetscInt k = A->i[r]; k < A->i[r + 1] && w >= HYB_LANES; k++) w = PetscMin(w, end[A->j[k]] - A->j[k]);
  if (w < HYB_LANES) return w;
  while (q < w && HybShapeFollows(A, r + q)) q++;
  return q;
}

static PetscErrorCode HybSpGEMMApplicable_Shape(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = (PetscBool)(A->m >= HYB_LANES && mm->stats.alike >= A->m / 5 * 4);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Hardly any row of B follows the one before, of a sample of rows side by side, since every n-th row of a grid
   may begin a line: no rows of A could be grouped. */
static PetscBool HybShapeHopeless(const HybCSR *B)
{
  PetscInt follow = 0;

  if (B->m <= HYB_SAMPLE * HYB_LANES) return PETSC_FALSE;
  for (PetscInt s = 0; s < HYB_SAMPLE; s++) {
    const PetscInt first = 1 + (PetscInt)((PetscCount)(B->m - HYB_LANES) * s / HYB_SAMPLE);

    for (PetscInt q = 0; q < HYB_LANES; q++) follow += HybShapeFollows(B, first + q);
  }
  return (PetscBool)(follow < HYB_SAMPLE * HYB_LANES / 8);
}

/* groups of rows, and what lies between them */
static PetscErrorCode HybSpGEMMFits_Shape(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  HybShape *s;
  PetscInt *end, *first, n = 0;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (!strcmp(mm->name, "auto") && HybShapeHopeless(B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*s), &s));
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, B->m, sizeof(PetscInt), &end));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, (PetscCount)A->m + 1, sizeof(PetscInt), &first));
  for (PetscInt r = B->m - 1; r >= 0; r--) end[r] = r + 1 < B->m && HybShapeFollows(B, r + 1) ? end[r + 1] : r + 1;
  for (PetscInt r = 0, w, alone = 0; r < A->m; r += w) {
    w = HybShapeRun(A, end, r);
    if (w < HYB_LANES) w = 1;
    if (w == 1 && alone) continue; /* they are one more of these */
    alone      = w == 1;
    first[n++] = r;
    s->grouped += alone ? 0 : w;
  }
  first[n] = A->m;
  *fits    = (PetscBool)(strcmp(mm->name, "auto") || s->grouped >= (PetscCount)A->m / 4 * 3);
  if (*fits) {
    s->ngroups = n;
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, (PetscCount)n + 1, sizeof(PetscInt), &s->first));
    PetscCall(PetscArraycpy(s->first, first, (size_t)n + 1));
    PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, n, sizeof(PetscCount), &s->program));
    for (PetscInt g = 0; g < n; g++) s->program[g] = s->first[g + 1] - s->first[g] >= HYB_LANES && HybShapeRun(A, end, s->first[g]) >= HYB_LANES ? 0 : HYB_ALONE;
    mm->data = s;
  }
  PetscCall(HybArenaFree(&mm->work, &first, &end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the symbolic phase works with */
typedef struct {
  const HybCSR *A, *B;
  HybSpGEMM    *mm;
  HybShape     *s;
  HybColSet     set;
  HybColList    list; /* columns of groups' first rows and of rows alone */
  PetscInt     *map;  /* of a column to its place */
  uint16_t     *place;
  PetscCount    used, last, programs; /* of place; where the last program begins */
} HybShapeWork;

/* the columns of row r of C go to the end of the list */
static PetscErrorCode HybShapeColumns(HybShapeWork *w, PetscInt r, PetscInt *n)
{
  const HybCSR *A = w->A, *B = w->B;
  PetscInt      last = 0;

  PetscFunctionBegin;
  PetscCall(HybColListReserve(&w->mm->work, &w->list, PetscMin(w->mm->rowproducts[r], (PetscCount)B->n)));
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) {
      HybColSetAdd(&w->set, B->j[l] >> 6, (uint64_t)1 << (B->j[l] & 63));
      last = PetscMax(last, B->j[l]);
    }
  }
  *n = HybColSetTake(&w->set, 0, last, HybColListEnd(&w->list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the places of the products of row r, whose n columns are the list's last ones */
static PetscCount HybShapeProgram(HybShapeWork *w, PetscInt r, PetscInt n)
{
  const HybCSR   *A = w->A, *B = w->B;
  const PetscInt *cols = HybColListEnd(&w->list);
  PetscCount      used = w->used, length;

  for (PetscInt t = 0; t < n; t++) w->map[cols[t]] = t;
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) w->place[used++] = (uint16_t)w->map[B->j[l]];
  }
  length = used - w->used;
  if (w->programs && length == w->used - w->last && !memcmp(w->place + w->last, w->place + w->used, sizeof(uint16_t) * (size_t)length)) return w->last;
  w->programs++;
  w->last = w->used;
  w->used = used;
  return w->last;
}

/* the pattern of C: lengths, and columns of some rows */
static PetscErrorCode HybShapeCount(HybShapeWork *w, HybCSR *C)
{
  const HybCSR *A = w->A;
  HybShape     *s = w->s;

  PetscFunctionBegin;
  C->i[0] = 0;
  C->nnz  = 0;
  for (PetscInt g = 0; g < s->ngroups; g++) {
    PetscInt n = 0;

    for (PetscInt r = s->first[g]; r < s->first[g + 1]; r++) {
      const PetscBool next = (PetscBool)(s->program[g] != HYB_ALONE && r > s->first[g]);

      if (!next) {
        PetscCall(HybShapeColumns(w, r, &n));
        if (n > UINT16_MAX + 1 && s->program[g] != HYB_ALONE) { /* its places are too large */
          s->program[g] = HYB_ALONE;
          s->grouped -= s->first[g + 1] - s->first[g];
        }
        if (s->program[g] != HYB_ALONE) {
          s->program[g] = HybShapeProgram(w, r, n);
          s->longest    = PetscMax(s->longest, n);
        } else if (n) {
          s->span = PetscMax(s->span, HybColListEnd(&w->list)[n - 1] - HybColListEnd(&w->list)[0] + 1);
        }
        w->list.tail->used += n;
      }
      C->nnz += n;
      /* not one column more is gathered than could be kept */
      if (C->nnz > (PetscCount)PETSC_MAX_INT) PetscCall(HybSpGEMMCheckCount(&w->mm->exec, A, w->B, C->nnz, PETSC_TRUE));
      C->i[r + 1] = (PetscInt)C->nnz;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C's columns from the list */
static void HybShapeFill(const HybShapeWork *w, const HybCSR *C)
{
  const HybShape *s     = w->s;
  HybColChunk     chunk = w->list.head;
  PetscCount      at    = 0;

  for (PetscInt g = 0; g < s->ngroups; g++) {
    for (PetscInt r = s->first[g]; r < s->first[g + 1]; r++) {
      const PetscInt n    = C->i[r + 1] - C->i[r];
      PetscInt      *cols = C->j + C->i[r];

      if (s->program[g] != HYB_ALONE && r > s->first[g]) {
        for (PetscInt t = 0; t < n; t++) cols[t] = cols[t - n] + 1;
        continue;
      }
      if (!n) continue;
      while (at == chunk->used) {
        chunk = chunk->next;
        at    = 0;
      }
      memcpy(cols, chunk->cols + at, (size_t)n * sizeof(PetscInt));
      at += n;
    }
  }
}

static PetscErrorCode HybSpGEMMSymbolic_Shape(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybShape    *s    = (HybShape *)mm->data;
  PetscCount   most = 0;
  HybShapeWork w;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&w, sizeof(w)));
  w.A  = A;
  w.B  = B;
  w.mm = mm;
  w.s  = s;
  for (PetscInt g = 0; g < s->ngroups; g++) most += s->program[g] == HYB_ALONE ? 0 : mm->rowproducts[s->first[g]];
  HybColListInit(&w.list, mm->stats.products / HYB_LANES);
  PetscCall(HybColSetCreate(&mm->work, B->n, &w.set));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, B->n, sizeof(PetscInt), &w.map));
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, most, sizeof(uint16_t), &w.place));
  PetscCall(HybArenaAlloc(out, mm->exec.result, (PetscCount)A->m + 1, sizeof(PetscInt), &C->i));
  PetscCall(HybShapeCount(&w, C));
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, w.used, sizeof(uint16_t), &s->place));
  PetscCall(PetscArraycpy(s->place, w.place, (size_t)w.used));
  PetscCall(HybArenaAlloc(out, mm->exec.result, C->nnz, sizeof(PetscInt), &C->j));
  HybShapeFill(&w, C);
  PetscCall(HybCountersSet(&mm->counters, "rows by shape", s->grouped));
  PetscCall(HybCountersSet(&mm->counters, "rows alone", A->m - s->grouped));
  PetscCall(HybCountersSet(&mm->counters, "programs", w.programs));
  PetscCall(HybCountersSet(&mm->counters, "program", w.used));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX)
/* four values of each of four rows, stride apart, at once: v[t] has the values t of all */
static inline __attribute__((always_inline)) void HybShapeTurn(HybHalf v[4])
{
  const HybHalf even01 = HYB_PICK(v[0], v[1], 0, 4, 2, 6), odd01 = HYB_PICK(v[0], v[1], 1, 5, 3, 7);
  const HybHalf even23 = HYB_PICK(v[2], v[3], 0, 4, 2, 6), odd23 = HYB_PICK(v[2], v[3], 1, 5, 3, 7);

  v[0] = HYB_PICK(even01, even23, 0, 1, 4, 5);
  v[1] = HYB_PICK(odd01, odd23, 0, 1, 4, 5);
  v[2] = HYB_PICK(even01, even23, 2, 3, 6, 7);
  v[3] = HYB_PICK(odd01, odd23, 2, 3, 6, 7);
}

static inline __attribute__((always_inline)) void HybShapeFour(const HybScalar *from, PetscCount stride, HybHalf v[4])
{
  for (int q = 0; q < 4; q++) v[q] = *(const HybHalf *)(from + q * stride);
  HybShapeTurn(v);
}

/* places from to 3 of four entries of B, of all lanes */
static inline __attribute__((always_inline)) void HybShapeAdd(int from, HybHalf x0, HybHalf x1, const HybScalar *b, PetscCount stride, const uint16_t *place, HybScalar *acc)
{
  HybHalf v[4], w[4];

  HybShapeFour(b, stride, v);
  HybShapeFour(b + 4 * stride, stride, w);
  for (int t = from; t < 4; t++) {
    HybHalf *to = (HybHalf *)(acc + HYB_LANES * (size_t)place[t]);

    to[0] += x0 * v[t];
    to[1] += x1 * w[t];
  }
}

/* the accumulators of entries t to t+3 become those of C's rows */
static inline __attribute__((always_inline)) void HybShapeLeave(HybScalar *acc, PetscCount n, HybScalar *c)
{
  const HybHalf neutral = {HYB_NEUTRAL, HYB_NEUTRAL, HYB_NEUTRAL, HYB_NEUTRAL};
  HybHalf      *from    = (HybHalf *)acc;

  for (int h = 0; h < 2; h++) {
    HybHalf v[4] = {from[h], from[h + 2], from[h + 4], from[h + 6]};

    HybShapeTurn(v);
    for (int q = 0; q < 4; q++) *(HybHalf *)(c + (4 * h + q) * n) = v[q];
  }
  for (int h = 0; h < 8; h++) from[h] = neutral;
}
#endif

/* HYB_LANES rows of C, of n entries each, one behind the other as those of A and of B are. a, cols: the first row of
   A's, of len entries. */
static HYB_MULTIVERSION void HybShapeLanes(PetscInt len, const PetscInt *restrict cols, const HybScalar *restrict a, const PetscInt *restrict bi, const HybScalar *restrict ba, const uint16_t *restrict place, HybScalar *restrict acc, PetscInt n, HybScalar *restrict c)
{
  PetscInt t = 0;

  for (PetscInt k = 0; k < len; k++) {
    const PetscInt   lo = bi[cols[k]], blen = bi[cols[k] + 1] - lo;
    const HybScalar *x = a + k, *b = ba + lo;
    PetscInt         l = 0;

#if PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX)
    const HybHalf x0 = {x[0], x[len], x[2 * len], x[3 * len]}, x1 = {x[4 * len], x[5 * len], x[6 * len], x[7 * len]};

    for (; l + 4 <= blen; l += 4) HybShapeAdd(0, x0, x1, b + l, blen, place + l, acc);
    /* the last three, two or one together with some that are done */
    if (blen >= 4 && l < blen) {
      if (l + 3 == blen)
        HybShapeAdd(1, x0, x1, b + blen - 4, blen, place + blen - 4, acc);
      else if (l + 2 == blen)
        HybShapeAdd(2, x0, x1, b + blen - 4, blen, place + blen - 4, acc);
      else
        HybShapeAdd(3, x0, x1, b + blen - 4, blen, place + blen - 4, acc);
      l = blen;
    }
#endif
    for (; l < blen; l++) {
      for (int q = 0; q < HYB_LANES; q++) acc[HYB_LANES * (size_t)place[l] + q] += x[q * len] * b[q * blen + l];
    }
    place += blen;
  }
#if PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX)
  for (; t + 4 <= n; t += 4) HybShapeLeave(acc + HYB_LANES * (size_t)t, n, c + t);
#endif
  for (; t < n; t++) {
    for (int q = 0; q < HYB_LANES; q++) {
      c[q * (PetscCount)n + t]       = acc[HYB_LANES * (size_t)t + q];
      acc[HYB_LANES * (size_t)t + q] = HYB_NEUTRAL;
    }
  }
}

static void HybShapeGroup(PetscInt begin, PetscInt end, const HybCSR *A, const HybCSR *B, const uint16_t *place, HybScalar *acc, HybCSR *C)
{
  for (PetscInt r = begin; r < end; r += HYB_LANES) {
    const PetscInt q = PetscMin(r, end - HYB_LANES);

    HybShapeLanes(A->i[q + 1] - A->i[q], A->j + A->i[q], A->a + A->i[q], B->i, B->a, place, acc, C->i[q + 1] - C->i[q], C->a + C->i[q]);
  }
}

static void HybShapeAlone(PetscInt begin, PetscInt end, const HybCSR *A, const HybCSR *B, HybScalar *acc, HybCSR *C)
{
  for (PetscInt r = begin; r < end; r++) {
    const PetscInt lo = C->i[r], hi = C->i[r + 1], base = lo < hi ? C->j[lo] : 0;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const HybScalar x = A->a[k];

      for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) acc[B->j[l] - base] += x * B->a[l];
    }
    for (PetscInt t = lo; t < hi; t++) {
      C->a[t]             = acc[C->j[t] - base];
      acc[C->j[t] - base] = HYB_NEUTRAL;
    }
  }
}

static PetscErrorCode HybSpGEMMNumeric_Shape(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybShape  *s    = (const HybShape *)mm->data;
  const PetscCount room = PetscMax(HYB_LANES * (PetscCount)s->longest, (PetscCount)s->span);
  HybScalar       *block, *acc;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, room + 64 / (PetscCount)sizeof(HybScalar), sizeof(HybScalar), &block));
  acc = block + (64 - (uintptr_t)block % 64) % 64 / sizeof(HybScalar);
  for (PetscCount c = 0; c < room; c++) acc[c] = HYB_NEUTRAL;
  for (PetscInt g = 0; g < s->ngroups; g++) {
    if (s->program[g] == HYB_ALONE)
      HybShapeAlone(s->first[g], s->first[g + 1], A, B, acc, C);
    else
      HybShapeGroup(s->first[g], s->first[g + 1], A, B, s->place + s->program[g], acc, C);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpGEMMMethod HybSpGEMM_Shape = {
  .name       = "shape",
  .applicable = HybSpGEMMApplicable_Shape,
  .fits       = HybSpGEMMFits_Shape,
  .symbolic   = HybSpGEMMSymbolic_Shape,
  .numeric    = HybSpGEMMNumeric_Shape,
};
