/*
  rowmerge.c: RMerge. A row of C is the merge of the rows of B that the row of A names, W of them at a time.

  Idea. Merging W sorted lists needs their W heads only: no accumulator, no hash, no sort, and no memory that depends on
  the number of columns. A matrix whose rows have at most W entries multiplies B by one merge a row. Any other is split
  into factors of limited rows,
    A = A_k G_(k-1) ... G_1,
  where a row of G_1 holds W consecutive entries of a row of A, and the rows of the other factors add W consecutive rows
  of the factor to their right: their entries are ones, which are neither stored nor multiplied by.

  Here the factors are never formed. A row of A is walked once; level l keeps up to W merged lists, and when W are there
  and more follow, they become one list of level l+1, as digits carry in a counter to the base W. What is held is W
  lists a level, and a row of e entries has ceil(log_W e) levels ("factors").

    for each row of A
      for each of its entries: put the row of B on level 0; while a level is full and more comes: merge it into the
      level above merge what is left, upwards; the last merge writes the row of C

  The W-way merge holds the heads in an array that a vector register or two can hold: the least head (a vector minimum),
  the lists that have it (a comparison), and these lists move on.

  Order of summation: within a merge in A's order; so rows of at most W entries are summed as every other method does,
  longer ones by partial sums of W (of W^2, ...) terms. The result does not depend on the run, but differs from the
  other methods' in the last bits.

  Symbolic: the same merges without values, columns into chunks, then C->j exactly. Numeric: the merges again, with
  values; the pattern is known, so that it writes values alone.
  Time: O(products * log_W(longest row) * (cost of a head)); memory beside C: the lists of one row.
  Width: HybSpGEMM.width; if 0, the smallest power of two within 2..32 that holds the longest row of A, 32 at most.
  Counters: "width", "factors" (levels of the longest row), "merge rounds" (W-way merges of the symbolic phase).

  Cost rule (applicable). A merge pays two to three times the instructions of a dense accumulator, but touches nothing
  except the rows of B, which are fetched ahead, and its output. So it is chosen where an accumulator would miss the
  caches at nearly every product: rows of A are short (HYB_SHORT entries on average, one factor), and of HYB_SAMPLE rows
  of C three quarters span more than HYB_COLUMNS columns. Measured on random matrices with 4 entries a row, the two
  methods cross between 2^18 and 2^19 columns (docs/measured.md).

  Reference: Gremse, Hofter, Schwen, Kiessling, Naumann, GPU-accelerated sparse matrix-matrix multiplication by
  iterative row merging, SIAM J. Sci. Comput. 37 (2015).
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include "colset.h"

#define HYB_MAX_WIDTH 32
#define HYB_COLUMNS   ((PetscInt)1 << 19)
#define HYB_SHORT     8
#define HYB_SAMPLE    256

/* A sorted list: columns, values (NULL in the symbolic phase), and the factor of the values */
typedef struct {
  const PetscInt  *col, *end;
  const HybScalar *val;
  HybScalar        scale;
} HybRun;

/* Up to W runs of one level. Those of level 0 are rows of B, the others lie in cols and vals. */
typedef struct {
  HybRun     run[HYB_MAX_WIDTH];
  PetscInt   n;
  PetscInt  *cols;
  HybScalar *vals;
  PetscCount used, size;
} HybLevel;

typedef struct {
  PetscInt width, levels; /* levels: that the longest row of A may need */
} HybRowMerge;

/* Merges n runs (values of level 0 times their scale). Returns the number of columns. lanes: n rounded up to what the
   arrays are padded to. */
static inline __attribute__((always_inline)) PetscCount HybMergeRuns_Inline(int lanes, int n, HybRun *run, int values, int scaled, PetscInt *cols, HybScalar *vals)
{
  PetscInt   head[HYB_MAX_WIDTH];
  PetscCount out = 0;

  for (int q = 0; q < lanes; q++) head[q] = q < n ? *run[q].col : PETSC_MAX_INT;
  for (;;) {
    PetscInt least = PETSC_MAX_INT;
    uint32_t have  = 0;

    for (int q = 0; q < lanes; q++) least = head[q] < least ? head[q] : least;
    if (least == PETSC_MAX_INT) break;
    for (int q = 0; q < lanes; q++) have |= (uint32_t)(head[q] == least) << q;
    if (cols) cols[out] = least;
    if (values) {
      int       q   = __builtin_ctz(have);
      HybScalar sum = scaled ? run[q].scale * *run[q].val++ : *run[q].val++;

      head[q] = ++run[q].col < run[q].end ? *run[q].col : PETSC_MAX_INT;
      for (have &= have - 1; have; have &= have - 1) {
        q = __builtin_ctz(have);
        sum += scaled ? run[q].scale * *run[q].val++ : *run[q].val++;
        head[q] = ++run[q].col < run[q].end ? *run[q].col : PETSC_MAX_INT;
      }
      vals[out] = sum;
    } else {
      for (; have; have &= have - 1) {
        const int q = __builtin_ctz(have);

        head[q] = ++run[q].col < run[q].end ? *run[q].col : PETSC_MAX_INT;
      }
    }
    out++;
  }
  return out;
}

/* no run is empty; cols may be NULL where only the values are wanted, vals where only the columns are */
static HYB_MULTIVERSION PetscCount HybMergeRuns(int n, HybRun *run, int scaled, PetscInt *cols, HybScalar *vals)
{
  if (n == 1 && (!vals || !scaled)) {
    const PetscCount len = run[0].end - run[0].col;

    if (cols) memcpy(cols, run[0].col, (size_t)len * sizeof(PetscInt));
    if (vals) memcpy(vals, run[0].val, (size_t)len * sizeof(HybScalar));
    return len;
  }
  if (n == 1) {
    const PetscCount len = run[0].end - run[0].col;

    if (cols) memcpy(cols, run[0].col, (size_t)len * sizeof(PetscInt));
    for (PetscCount k = 0; k < len; k++) vals[k] = run[0].scale * run[0].val[k];
    return len;
  }
  if (!vals) return n <= 8 ? HybMergeRuns_Inline(8, n, run, 0, 0, cols, NULL) : n <= 16 ? HybMergeRuns_Inline(16, n, run, 0, 0, cols, NULL)
                                                                                        : HybMergeRuns_Inline(32, n, run, 0, 0, cols, NULL);
  if (scaled) return n <= 8 ? HybMergeRuns_Inline(8, n, run, 1, 1, cols, vals) : n <= 16 ? HybMergeRuns_Inline(16, n, run, 1, 1, cols, vals)
                                                                                         : HybMergeRuns_Inline(32, n, run, 1, 1, cols, vals);
  return n <= 8 ? HybMergeRuns_Inline(8, n, run, 1, 0, cols, vals) : n <= 16 ? HybMergeRuns_Inline(16, n, run, 1, 0, cols, vals)
                                                                             : HybMergeRuns_Inline(32, n, run, 1, 0, cols, vals);
}

static PetscCount HybLevelTotal(const HybLevel *level)
{
  PetscCount total = 0;

  for (PetscInt q = 0; q < level->n; q++) total += level->run[q].end - level->run[q].col;
  return total;
}

/* all runs of a level become one of the level above */
static PetscErrorCode HybCarry(HybArena *work, HybLevel *from, HybLevel *to, PetscBool values, PetscInt columns, PetscBool scaled, PetscCount *merges)
{
  const PetscCount most = PetscMin(HybLevelTotal(from), (PetscCount)columns);
  PetscCount       n;
  HybRun          *run = &to->run[to->n];

  PetscFunctionBegin;
  if (to->used + most > to->size) {
    PetscCount size = PetscMax(2 * to->size, to->used + most);
    PetscInt  *cols = NULL;
    HybScalar *vals = NULL;

    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, size, sizeof(PetscInt), &cols));
    if (to->used) memcpy(cols, to->cols, (size_t)to->used * sizeof(PetscInt));
    if (values) {
      PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, size, sizeof(HybScalar), &vals));
      if (to->used) memcpy(vals, to->vals, (size_t)to->used * sizeof(HybScalar));
    }
    for (PetscInt q = 0; q < to->n; q++) {
      to->run[q].end = cols + (to->run[q].end - to->cols);
      to->run[q].col = cols + (to->run[q].col - to->cols);
      if (values) to->run[q].val = vals + (to->run[q].val - to->vals);
    }
    PetscCall(HybArenaFree(work, &to->cols, &to->vals));
    to->cols = cols;
    to->vals = vals;
    to->size = size;
  }
  n          = HybMergeRuns((int)from->n, from->run, scaled, to->cols + to->used, values ? to->vals + to->used : NULL);
  run->col   = to->cols + to->used;
  run->end   = run->col + n;
  run->val   = values ? to->vals + to->used : NULL;
  run->scale = 1;
  to->n++;
  to->used += n;
  from->n    = 0;
  from->used = 0;
  (*merges)++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* makes room on a full level: it and the full ones above it carry, the highest first */
static PetscErrorCode HybMakeRoom(HybSpGEMM *mm, PetscInt width, HybLevel *level, PetscInt l, PetscBool values, PetscInt columns, PetscCount *merges)
{
  PetscInt above = l + 1;

  PetscFunctionBegin;
  if (level[l].n < width) PetscFunctionReturn(PETSC_SUCCESS);
  while (level[above].n == width) above++;
  for (above--; above >= l; above--) PetscCall(HybCarry(&mm->work, &level[above], &level[above + 1], values, columns, (PetscBool)!above, merges));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The runs of row r, ready for the merge that writes the row: those of the level *top */
static PetscErrorCode HybRowUp(HybSpGEMM *mm, const HybRowMerge *rm, HybLevel *level, const HybCSR *A, const HybCSR *B, PetscInt r, PetscBool values, PetscInt *top, PetscCount *merges)
{
  const PetscInt width = rm->width;

  PetscFunctionBegin;
  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    const PetscInt lo = B->i[A->j[k]], hi = B->i[A->j[k] + 1];

    if (k + 16 < A->nnz) {
      const PetscInt l = B->i[A->j[k + 8]];

      __builtin_prefetch(&B->i[A->j[k + 16]]);
      __builtin_prefetch(&B->j[l]);
      if (values) __builtin_prefetch(&B->a[l]);
    }
    if (lo == hi) continue;
    PetscCall(HybMakeRoom(mm, width, level, 0, values, B->n, merges));
    level[0].run[level[0].n++] = (HybRun){B->j + lo, B->j + hi, values ? B->a + lo : NULL, values ? A->a[k] : 0};
  }
  for (PetscInt l = 0; l <= rm->levels; l++) {
    PetscBool higher = PETSC_FALSE;

    for (PetscInt h = l + 1; h <= rm->levels && !higher; h++) higher = (PetscBool)(level[h].n > 0);
    *top = l;
    if (!higher) break;
    if (level[l].n) {
      PetscCall(HybMakeRoom(mm, width, level, l + 1, values, B->n, merges));
      PetscCall(HybCarry(&mm->work, &level[l], &level[l + 1], values, B->n, (PetscBool)!l, merges));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMApplicable_RowMerge(const HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscBool *fits)
{
  const PetscInt step = PetscMax(A->m / HYB_SAMPLE, 1);
  PetscInt       rows = 0, wide = 0;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (B->n <= HYB_COLUMNS || mm->stats.maxarow > HYB_MAX_WIDTH || A->nnz > (PetscCount)HYB_SHORT * A->m) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscCount r = 0; r < A->m && rows < 2 * HYB_SAMPLE; r += step) {
    PetscInt first = PETSC_MAX_INT, last = -1;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt lo = B->i[A->j[k]], hi = B->i[A->j[k] + 1];

      if (lo < hi) {
        first = PetscMin(first, B->j[lo]);
        last  = PetscMax(last, B->j[hi - 1]);
      }
    }
    rows += last >= 0;
    wide += last - first >= HYB_COLUMNS;
  }
  *fits = (PetscBool)(rows && 4 * (PetscInt64)wide >= 3 * (PetscInt64)rows);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMSymbolic_RowMerge(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybArena    *work = &mm->work;
  HybRowMerge *rm;
  HybLevel    *level;
  HybColList   list;
  PetscInt     levels = 0;
  PetscCount   nnz = 0, merges = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->keep, HYB_MEM_HOST, 1, sizeof(*rm), &rm));
  mm->data  = rm;
  rm->width = mm->width;
  if (!rm->width) {
    for (rm->width = 2; rm->width < HYB_MAX_WIDTH && rm->width < mm->stats.maxarow;) rm->width *= 2;
  }
  rm->levels = 1;
  for (PetscInt64 reach = rm->width; reach < mm->stats.maxarow; reach *= rm->width) rm->levels++;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, rm->levels + 2, sizeof(*level), &level));
  HybColListInit(&list, mm->stats.products);
  PetscCall(HybArenaAlloc(out, mm->exec.result, (PetscCount)A->m + 1, sizeof(PetscInt), &C->i));
  C->i[0] = 0;
  for (PetscInt r = 0; r < A->m; r++) {
    PetscInt top = 0;

    if (mm->rowproducts[r]) {
      PetscCount n;

      PetscCall(HybRowUp(mm, rm, level, A, B, r, PETSC_FALSE, &top, &merges));
      PetscCall(HybColListReserve(work, &list, PetscMin(HybLevelTotal(&level[top]), (PetscCount)B->n)));
      n = HybMergeRuns((int)level[top].n, level[top].run, 0, HybColListEnd(&list), NULL);
      merges++;
      level[top].n    = 0;
      level[top].used = 0;
      levels          = PetscMax(levels, top + 1);
      list.tail->used += n;
      nnz += n;
      if (nnz > (PetscCount)PETSC_MAX_INT) PetscCall(HybSpGEMMCheckCount(&mm->exec, A, B, nnz, PETSC_TRUE));
    }
    C->i[r + 1] = (PetscInt)nnz;
  }
  C->nnz = nnz;
  PetscCall(HybArenaAlloc(out, mm->exec.result, nnz, sizeof(PetscInt), &C->j));
  PetscCall(HybColListMove(work, &list, C->j));
  PetscCall(HybCountersSet(&mm->counters, "width", rm->width));
  PetscCall(HybCountersSet(&mm->counters, "factors", levels));
  PetscCall(HybCountersSet(&mm->counters, "merge rounds", merges));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_RowMerge(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const HybRowMerge *rm = (const HybRowMerge *)mm->data;
  HybLevel          *level;
  PetscCount         merges = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_HOST, rm->levels + 2, sizeof(*level), &level));
  for (PetscInt r = 0; r < A->m; r++) {
    PetscInt top = 0;

    if (C->i[r] == C->i[r + 1]) continue;
    PetscCall(HybRowUp(mm, rm, level, A, B, r, PETSC_TRUE, &top, &merges));
    (void)HybMergeRuns((int)level[top].n, level[top].run, !top, NULL, C->a + C->i[r]);
    level[top].n    = 0;
    level[top].used = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpGEMMMethod HybSpGEMM_RowMerge = {
  .name       = "rowmerge",
  .applicable = HybSpGEMMApplicable_RowMerge,
  .symbolic   = HybSpGEMMSymbolic_RowMerge,
  .numeric    = HybSpGEMMNumeric_RowMerge,
};
