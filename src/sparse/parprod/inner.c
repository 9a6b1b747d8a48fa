/*
  Rows of C = A B that meet nobody else's.

  Where processes have slabs of a grid, or bands, most of a process's rows of A name no column of others, and none of
  the rows of B that they name does. These rows of C are A's diagonal block times B's, nothing else. Where they are one
  run of rows, they are multiplied where they lie, straight into C; the other rows, the border, go their way
  (multiply.c) as a small matrix of their own. Of a process between two others these are two bands, one before the run
  and one after it, which name different rows of B: each is a product of its own, so that it has as few diagonals as
  one band has, and their values go straight into C as well. So nothing of A and B is merged and copied but for the
  border, and the run is multiplied while rows of others are on their way and the border waits for them.

    look:      rows with columns of others, and rows that name rows of B with such: the host gets a bit for each, and
               takes the run without them around the middle one, if it has three quarters of the rows
    symbolic:  border = those rows of A, one below the other, and the rows of B that they name: L and R (multiply.c)
               products on patterns: the border's first rows of L, its last ones, the run; C: these results, one below
               the other. Where the border may be `diagonal`, each band has the rows of R from the first to the last
               one that it names.
    numeric:   run's product, into C                        beside it, from the third phase on; before that after
                                                            what others need has gone out:
                                                            values of what others need go out, the border's are picked
                                                            and merged, others' come in, its products, into C

  Each entry is the sum that it would be else: same bits. Each process decides for itself: what travels is the same.

  Memory: row offsets of A and C; the border's operands, the columns of its last rows twice. In the symbolic phase C's
  columns twice. Cost: a look at A's columns, once.
*/
#include "parprodimpl.h"

#define INNER_BYTES 16 /* to which kernels like values to be aligned */
#define INNER_HOST  64 /* as many times smaller matrices are looked at on the host */
#define INNER_AHEAD 32 /* rows among which one is looked for that begins so */

/* The run of rows without a bit that has the middle row, or ends before it. Others are shorter than half of the rows,
   which is not worth it. Most words of a long one are zero. */
static void InnerRun(PetscInt m, const unsigned *mask, PetscInt *first, PetscInt *end)
{
#define INNER_BIT(row) (mask[(row) / 32] >> (row) % 32 & 1u)
  *first = *end = m / 2;
  while (*end < m && !INNER_BIT(*end)) *end = *end % 32 || mask[*end / 32] ? *end + 1 : PetscMin(*end + 32, m);
  while (*first > 0 && !INNER_BIT(*first - 1)) *first -= *first % 32 || mask[*first / 32 - 1] ? 1 : 32;
#undef INNER_BIT
}

/* Rows begin to end-1 of M, whose nnz entries begin at the one that is given. They have offsets of their own in any
   case: methods take operands of the same arrays for one matrix. */
static PetscErrorCode InnerRows(HybParMultiply *s, const HybCSR *M, PetscInt begin, PetscInt end, PetscCount first, PetscCount nnz, HybCSR *rows)
{
  const HybExec *x = &s->exec;

  PetscFunctionBegin;
  rows->m   = end - begin;
  rows->n   = M->n;
  rows->nnz = nnz;
  rows->j   = M->j + first;
  rows->a   = M->a ? M->a + first : NULL;
  PetscCall(HybArenaAlloc(&s->inner.keep, x->result, (PetscCount)rows->m + 1, sizeof(PetscInt), &rows->i));
  PetscCall(x->backend->copy(x, rows->i, M->i + begin, sizeof(PetscInt) * ((size_t)rows->m + 1), HYB_COPY_DEVICE_TO_DEVICE));
  if (first) PetscCall(x->backend->local->numbercolumns(x, (PetscCount)rows->m + 1, rows->i, (PetscInt)first, (PetscInt)(first + nnz + 1), 0, 0, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the run's entries of A begin, and how many there are, and O's entries before them. It has whole blocks, where
   there are some, and begins with the first one whose values are aligned. The offsets that tell come together. */
static PetscErrorCode InnerBegin(HybParMultiply *s, const HybCSR *D, const HybCSR *O)
{
  const HybExec *x  = &s->exec;
  const PetscInt bs = PetscMax(1, s->blocksize);
  PetscInt       begin[INNER_AHEAD + 2], *there, n, k = 0;

  PetscFunctionBegin;
  s->inner.first = (s->inner.first + bs - 1) / bs * bs;
  s->inner.end   = s->inner.end / bs * bs;
  n              = PetscMin(INNER_AHEAD, s->inner.end - s->inner.first);
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), n + 2, sizeof(*there), &there));
  PetscCall(x->backend->copy(x, there, D->i + s->inner.first, sizeof(PetscInt) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, there + n, D->i + s->inner.end, sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, there + n + 1, O->i + s->inner.first, sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, begin, there, sizeof(PetscInt) * ((size_t)n + 2), HYB_COPY_DEVICE_TO_HOST));
  while (k < n && begin[k] * sizeof(HybScalar) % INNER_BYTES) k += bs;
  if (k >= n) k = 0;
  s->inner.first += k;
  s->inner.a     = begin[k];
  s->inner.o     = begin[n + 1]; /* the run's rows have none */
  s->inner.A.m   = s->inner.end - s->inner.first;
  s->inner.A.n   = D->n;
  s->inner.A.nnz = begin[n] - begin[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not of a small A, for which launches count; as small as "auto" looks for no diagonals in. On the host nothing is
   launched, and what is merged and copied costs as much as a sixth of the sums. */
PetscErrorCode HybParInnerLook(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec *x     = &s->exec;
  const PetscInt m     = A->D.m;
  const size_t   words = ((size_t)m + 31) / 32;
  const PetscInt least = HybTuningGet()->diagonal_fewest / (x->backend->device ? 1 : INNER_HOST);
  unsigned      *there, *mask;

  PetscFunctionBegin;
  s->inner.made = PETSC_FALSE;
  if (!A->O.nnz || A->D.nnz < least || A->D.nnz + A->O.nnz >= PETSC_MAX_INT) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), (PetscCount)words, sizeof(unsigned), &there));
  PetscCall(HybArenaAlloc(&s->work, HYB_MEM_HOST, (PetscCount)words, sizeof(unsigned), &mask));
  PetscCall(x->backend->local->meetrows(x, &A->D, A->O.i, B->O.nnz ? B->O.i : NULL, there));
  PetscCall(x->backend->copy(x, mask, there, sizeof(unsigned) * words, HYB_COPY_DEVICE_TO_HOST));
  InnerRun(m, mask, &s->inner.first, &s->inner.end);
  if (s->inner.end - s->inner.first < PetscMax(m - m / 4, 2 * s->blocksize)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(InnerBegin(s, &A->D, &A->O));
  s->inner.made = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerOperands(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec     *x    = &s->exec;
  const HybLocalOps *ops  = x->backend->local;
  HybArena          *keep = &s->inner.keep;
  HybParCSR         *left = &s->inner.left, *right = &s->inner.right;
  const PetscInt     n    = A->D.m - s->inner.A.m;
  const HybCSR      *a[2] = {&A->D, &A->O}, *b[2] = {&B->D, &B->O};
  /* inner rows have nothing in O */
  const PetscCount rest[2] = {A->D.nnz - s->inner.A.nnz, A->O.nnz}, unknown[2] = {-1, -1};
  HybCSR           picked[2];
  PetscInt        *list, *map, nused;

  PetscFunctionBegin;
  *left  = *A;
  *right = *B;
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), n, sizeof(PetscInt), &s->inner.row));
  PetscCall(ops->sequence(x, s->inner.first, 0, s->inner.row));
  PetscCall(ops->sequence(x, A->D.m - s->inner.end, s->inner.end, s->inner.row + s->inner.first));
  PetscCall(ops->pickboth(x, keep, &s->work, a, rest, n, s->inner.row, picked, s->inner.perm));
  left->D = picked[0];
  left->O = picked[1];
  PetscCall(ops->usedcolumns(x, &s->work, &s->work, &left->D, &nused, &list, &map));
  PetscCall(ops->mapcolumns(x, left->D.nnz, map, left->D.j));
  left->D.n = nused;
  PetscCall(ops->pickboth(x, keep, &s->work, b, unknown, nused, list, picked, s->inner.perm + 2));
  right->D = picked[0];
  right->O = picked[1];
  PetscCall(HybArenaAlloc(keep, x->result, left->D.nnz, sizeof(HybScalar), &left->D.a));
  PetscCall(HybArenaAlloc(keep, x->result, left->O.nnz, sizeof(HybScalar), &left->O.a));
  right->D.a = right->O.a = NULL; /* they get their values where these are multiplied */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of L's rows before the run and after it: L and R from the first to the last row of R that each names. Where both name
   rows between, R's are as right, if not as few. */
static PetscErrorCode InnerNarrow(HybParMultiply *s)
{
  const HybExec     *x   = &s->exec;
  const HybLocalOps *ops = x->backend->local;
  PetscInt          *list, *map, *there, at[2][4] = {{0}}, named[2];

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), 8, sizeof(*there), &there));
  PetscCall(x->backend->zero(x, there, 8 * sizeof(*there)));
  for (int e = 0; e < 2; e++) {
    /* the first and the last row of R that these name, and where its entries begin and end */
    PetscInt *mine = there + 4 * e;

    PetscCall(ops->usedcolumns(x, &s->work, &s->work, &s->inner.band[e].L, &named[e], &list, &map));
    if (!named[e]) continue;
    PetscCall(x->backend->copy(x, mine, list, sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
    PetscCall(x->backend->copy(x, mine + 1, list + named[e] - 1, sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
    PetscCall(x->backend->copy(x, mine + 2, mine, 2 * sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
    for (int k = 0; k < 2; k++) PetscCall(ops->mapcolumns(x, 1, s->R.i + k, mine + 2 + k));
  }
  PetscCall(x->backend->copy(x, at, there, sizeof(at), HYB_COPY_DEVICE_TO_HOST));
  for (int e = 0; e < 2; e++) {
    HybCSR        *L     = &s->inner.band[e].L;
    PetscInt      *j     = L->j;
    const PetscInt first = at[e][0], end = named[e] ? at[e][1] + 1 : 0;

    PetscCall(InnerRows(s, &s->R, first, end, at[e][2], at[e][3] - at[e][2], &s->inner.band[e].R));
    L->n = end - first;
    if (!first) continue;
    PetscCall(HybArenaAlloc(&s->inner.keep, x->result, L->nnz, sizeof(PetscInt), &L->j));
    PetscCall(x->backend->copy(x, L->j, j, sizeof(PetscInt) * (size_t)L->nnz, HYB_COPY_DEVICE_TO_DEVICE));
    PetscCall(ops->numbercolumns(x, L->nnz, L->j, first, end, 0, 0, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* L's rows before the run and after it, with what they name of R where that matters: to `diagonal`, which is made for
   square blocks and looks at large operands unless it is asked for by name; others see rows that nobody names, and pass
   them by. */
static PetscErrorCode InnerSplit(HybParMultiply *s, const char *method)
{
  const PetscCount before = s->inner.a + s->inner.o, after = s->L.nnz - before;
  const PetscBool  large = (PetscBool)(PetscMin(before, after) >= HybTuningGet()->diagonal_fewest);
  PetscBool        automatic;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(method, "auto", &automatic));
  for (int e = 0; e < 2; e++) {
    s->inner.band[e].L = s->L;
    s->inner.band[e].R = s->R;
  }
  s->inner.band[0].L.m   = s->inner.first; /* its offsets are L's first ones */
  s->inner.band[0].L.nnz = before;
  PetscCall(InnerRows(s, &s->L, s->inner.first, s->L.m, before, after, &s->inner.band[1].L));
  if (s->exec.backend->device && s->R.n == s->inner.A.n && s->R.nnz < PETSC_MAX_INT && (large || !automatic)) PetscCall(InnerNarrow(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const int InnerBandProduct[] = {HYB_PAR_OWN, HYB_PAR_LAST};

PetscErrorCode HybParInnerBands(HybParMultiply *s, const char *method, PetscInt width)
{
  PetscFunctionBegin;
  if (s->inner.first > 0 && s->inner.first < s->L.m) {
    s->inner.nbands = 2;
    PetscCall(InnerSplit(s, method));
  } else {
    s->inner.nbands    = 1;
    s->inner.band[0].L = s->L;
    s->inner.band[0].R = s->R;
  }
  for (PetscInt e = 0; e < s->inner.nbands; e++) PetscCall(HybParMultiplyProduct(s, InnerBandProduct[e], &s->exec, PETSC_TRUE, method, width, &s->inner.band[e].L, &s->inner.band[e].R, &s->inner.keep, &s->inner.band[e].C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C's block of others' columns: that of the border, among empty rows */
static PetscErrorCode InnerOthers(HybParMultiply *s, const HybExec *result, PetscInt m, HybArena *out, HybParCSR *C)
{
  const HybExec *x      = &s->exec;
  HybParCSR     *border = &s->inner.result;

  PetscFunctionBegin;
  C->O      = border->O;
  C->garray = border->garray;
  C->O.m    = m;
  PetscCall(HybArenaAlloc(out, result->result, (PetscCount)m + 1, sizeof(PetscInt), &C->O.i));
  PetscCall(x->backend->local->expandrows(x, m, border->O.m, s->inner.row, border->O.i, C->O.i));
  PetscCall(HybArenaFree(out, &border->O.i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerSymbolic(HybParMultiply *s, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C)
{
  const HybExec *x       = &s->exec;
  HybCSR        *inner   = &s->inner.A, *piece[3];
  const PetscInt zero[3] = {0}, n = s->inner.nbands + 1, run = s->inner.first > 0; /* which piece that is */
  PetscInt       m[3];
  PetscCount     first[3], place[4];

  PetscFunctionBegin;
  PetscCall(InnerOthers(s, result, A->D.m, &out[1], C));
  PetscCall(InnerRows(s, &A->D, s->inner.first, s->inner.end, s->inner.a, inner->nnz, inner));
  PetscCall(HybParMultiplyProduct(s, HYB_PAR_INNER, x, PETSC_TRUE, method, width, inner, &B->D, &s->inner.keep, &s->inner.C));
  for (PetscInt p = 0, e = 0; p < n; p++) {
    piece[p] = p == run ? &s->inner.C : &s->inner.band[e++].C;
    m[p]     = piece[p]->m;
  }
  PetscCall(x->backend->local->stackrows(result, &out[0], n, (const HybCSR *const *)piece, zero, m, &C->D, first, place));
  for (PetscInt p = 0, e = 0; p < n; p++) {
    *(p == run ? &s->inner.c : &s->inner.band[e++].c) = place[p];
    PetscCall(HybArenaFree(&s->inner.keep, &piece[p]->j));
  }
  PetscCall(HybArenaAlloc(&out[0], result->result, C->D.nnz, sizeof(HybScalar), &C->D.a));
  /* the border's rows of B have their values where they are multiplied */
  s->inner.right.D.a = s->R.a + s->place[0][1];
  if (s->some) s->inner.right.O.a = s->X.a + s->place[1][1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerPick(HybParMultiply *s, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec  *x       = &s->exec;
  const HybCSR   *from[4] = {&A->D, &A->O, &B->D, &B->O}, *to[4] = {&s->inner.left.D, &s->inner.left.O, &s->inner.right.D, &s->inner.right.O};
  const PetscBool stay[4] = {(PetscBool)(sameA && s->Lcurrent), (PetscBool)(sameA && s->Lcurrent), allB, (PetscBool)(allB || !s->some)};

  PetscFunctionBegin;
  /* as of what is made from them (moves.c): an error may come between */
  if (!stay[0]) s->Lcurrent = PETSC_FALSE;
  for (int k = 0; k < 4; k++)
    if (!stay[k]) PetscCall(x->backend->csr->gather(x, to[k]->nnz, s->inner.perm[k], PETSC_FALSE, from[k]->a, to[k]->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerNumeric(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  HybCSR *inner = &s->inner.A, *product = &s->inner.C;

  PetscFunctionBegin;
  inner->j   = A->D.j + s->inner.a;
  inner->a   = A->D.a + s->inner.a;
  product->j = C->D.j + s->inner.c;
  product->a = C->D.a + s->inner.c;
  PetscCall(HybProductNumeric(s->product[HYB_PAR_INNER], inner, &B->D, NULL, product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerBandsNumeric(HybParMultiply *s, HybParCSR *C)
{
  PetscFunctionBegin;
  for (PetscInt e = 0; e < s->inner.nbands; e++) {
    HybCSR *product = &s->inner.band[e].C;

    product->j = C->D.j + s->inner.band[e].c;
    product->a = C->D.a + s->inner.band[e].c;
    PetscCall(HybProductNumeric(s->product[InnerBandProduct[e]], &s->inner.band[e].L, &s->inner.band[e].R, NULL, product));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
