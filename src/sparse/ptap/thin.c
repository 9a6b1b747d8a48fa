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

  No branch asks whether a column is new, or whether v has it: neither can be foretold.

  Memory kept: none. Working memory: the transposed pattern of P, and a mark and an accumulator for each coarse column,
  a mark for each fine one. Time: products of A*P and of the short rows of C with those of P^T.

  A row of C that is long, and named by many rows of P, would be walked for each of these: where that comes to more than
  HYB_THIN_WALKS entries of C for each of A and P the method declines, and the stages multiply.

  Cost rule (applicable). The stages write A*P down, of as many entries as C and A have together, and both read it; what
  a first product of short rows takes is half the pages of that. So scalar problems go here where A and P have no more
  entries a row in the mean than HYB_THIN_A and HYB_THIN_P (docs/performance.md, Galerkin products). So do those of
  HYB_THIN_FEW entries in all, which take as long as what the stages begin with. Those of nodes of several components
  are for `fused`, which is asked first.

  Counters: "products" (of both kinds, known after a numeric phase).
  Reference: the sparse accumulator of Gilbert, Moler, Schreiber, Sparse matrices in MATLAB, SIMAX 13 (1992); the
  algorithm is that of PETSc's MATAIJ, "scalable", but for the places.
*/
#include <aijhybridgpu/private/hybptap.h>
#include "../spgemm/colset.h"

#define HYB_THIN_A     12
#define HYB_THIN_P     3
#define HYB_THIN_WALKS 16
#define HYB_THIN_FEW   500

static PetscErrorCode HybPtAPApplicable_Thin(const HybPtAP *pp, const HybCSR *A, const HybCSR *P, PetscBool *fits)
{
  PetscFunctionBegin;
  *fits = (PetscBool)(P->n <= P->m && ((A->nnz <= (PetscCount)HYB_THIN_A * A->m && P->nnz <= (PetscCount)HYB_THIN_P * P->m) || A->nnz + P->nnz <= HYB_THIN_FEW));
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

typedef struct {
  PetscInt  *ptr, *row;            /* of P^T */
  PetscInt  *fine, *coarse, *rows; /* marks, and rows of P that one row of C needs */
  HybColSet  set;                  /* for rows of C that are long all the same */
  HybColList list;
} HybThin;

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
    PetscInt n = 0;

    PetscCall(HybThinRow(pp, A, P, &t, c, &n));
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

static PetscErrorCode HybPtAPNumeric_Thin(HybPtAP *pp, const HybCSR *A, const HybCSR *P, HybCSR *C)
{
  PetscInt  *mark;
  HybScalar *v;
  PetscCount products = 0;

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
      const HybScalar x   = P->a[e];
      const PetscInt  end = C->i[P->j[e] + 1];

      for (PetscInt t = C->i[P->j[e]]; t < end; t++) {
        const PetscInt  J = C->j[t];
        const HybScalar y = x * v[J];

        C->a[t] += mark[J] == i ? y : HYB_NEUTRAL;
      }
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
