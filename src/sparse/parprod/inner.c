/*
  Rows of C = A B that meet nobody else's.

  Where processes have slabs of a grid, or bands, most of a process's rows of A name no column of others, and none of
  the rows of B that they name does. These rows of C are A's diagonal block times B's, nothing else. Where they are one
  run of rows, they are multiplied where they lie, straight into C; the other rows, the border, go their way
  (multiply.c) as a small matrix of their own. So nothing of A and B is merged and copied but for the border, and the
  run is multiplied while rows of others are on their way and the border waits for them.

    look:      rows with columns of others, and rows that name rows of B with such: the host gets a bit for each, and
               takes the run without them around the middle one, if it has three quarters of the rows
    symbolic:  border = those rows of A, one below the other, and the rows of B that they name; its product (multiply.c)
               run's product on patterns; C: the border's first rows, the run, the border's last rows
    numeric:   run's product, into C                        beside it, from the third phase on; before that after
                                                            what others need has gone out:
                                                            values of what others need go out, the border's are picked
                                                            and merged, others' come in, its product
               the border's values to both ends of C

  Each entry is the sum that it would be else: same bits. Each process decides for itself: what travels is the same.

  Memory: row offsets of the run's rows of A and C; the border's operands and result. In the symbolic phase the run's
  columns of C twice. Cost: a look at A's columns, once.
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

/* Where the run's entries of A begin, and how many there are. It has whole blocks, where there are some, and begins
   with the first one whose values are aligned. The offsets that tell come together. */
static PetscErrorCode InnerBegin(HybParMultiply *s, const HybCSR *D)
{
  const HybExec *x  = &s->exec;
  const PetscInt bs = PetscMax(1, s->blocksize);
  PetscInt       begin[INNER_AHEAD + 1], *there, n, k = 0;

  PetscFunctionBegin;
  s->inner.first = (s->inner.first + bs - 1) / bs * bs;
  s->inner.end   = s->inner.end / bs * bs;
  n              = PetscMin(INNER_AHEAD, s->inner.end - s->inner.first);
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), n + 1, sizeof(*there), &there));
  PetscCall(x->backend->copy(x, there, D->i + s->inner.first, sizeof(PetscInt) * (size_t)n, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, there + n, D->i + s->inner.end, sizeof(PetscInt), HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->copy(x, begin, there, sizeof(PetscInt) * ((size_t)n + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  while (k < n && begin[k] * sizeof(HybScalar) % INNER_BYTES) k += bs;
  if (k >= n) k = 0;
  s->inner.first += k;
  s->inner.a     = begin[k];
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
  if (!A->O.nnz || A->D.nnz < least || A->D.nnz >= PETSC_MAX_INT) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), (PetscCount)words, sizeof(unsigned), &there));
  PetscCall(HybArenaAlloc(&s->work, HYB_MEM_HOST, (PetscCount)words, sizeof(unsigned), &mask));
  PetscCall(x->backend->csr->meetrows(x, &A->D, A->O.i, B->O.nnz ? B->O.i : NULL, there));
  PetscCall(x->backend->copy(x, mask, there, sizeof(unsigned) * words, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  InnerRun(m, mask, &s->inner.first, &s->inner.end);
  if (s->inner.end - s->inner.first < PetscMax(m - m / 4, 2 * s->blocksize)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(InnerBegin(s, &A->D));
  s->inner.made = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerOperands(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec   *x    = &s->exec;
  const HybCSROps *ops  = x->backend->csr;
  HybArena        *keep = &s->inner.keep;
  HybParCSR       *left = &s->inner.left, *right = &s->inner.right;
  const PetscInt   n    = A->D.m - s->inner.A.m;
  const HybCSR    *a[2] = {&A->D, &A->O}, *b[2] = {&B->D, &B->O};
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
  PetscCall(x->backend->csr->expandrows(x, m, border->O.m, s->inner.row, border->O.i, C->O.i));
  PetscCall(HybArenaFree(out, &border->O.i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerSymbolic(HybParMultiply *s, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C)
{
  const HybExec *x        = &s->exec;
  HybCSR        *inner    = &s->inner.A;
  HybParCSR     *border   = &s->inner.result;
  const HybCSR  *piece[3] = {&border->D, &s->inner.C, &border->D};
  const PetscInt begin[3] = {0, 0, s->inner.first}, end[3] = {s->inner.first, inner->m, border->D.m};
  PetscCount     first[3], place[4];

  PetscFunctionBegin;
  PetscCall(InnerOthers(s, result, A->D.m, &out[1], C));
  /* an array of its own in any case: methods take operands of the same arrays for one matrix */
  PetscCall(HybArenaAlloc(&s->inner.keep, x->result, (PetscCount)inner->m + 1, sizeof(PetscInt), &inner->i));
  PetscCall(x->backend->copy(x, inner->i, A->D.i + s->inner.first, sizeof(PetscInt) * ((size_t)inner->m + 1), HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->csr->numbercolumns(x, (PetscCount)inner->m + 1, inner->i, (PetscInt)s->inner.a, (PetscInt)(s->inner.a + inner->nnz + 1), 0, 0, NULL));
  inner->j = A->D.j + s->inner.a;
  PetscCall(HybProductCreate(x, HYB_PRODUCT_AB, method, width, &s->product[2]));
  if (s->reuse) PetscCall(HybProductSetReuse(s->product[2]));
  PetscCall(HybProductSetBlockSize(s->product[2], s->blocksize));
  PetscCall(HybProductSetPattern(s->product[2]));
  PetscCall(HybProductSymbolic(s->product[2], inner, &B->D, NULL, &s->inner.keep, &s->inner.C));
  PetscCall(x->backend->csr->stackrows(result, &out[0], 3, piece, begin, end, &C->D, first, place));
  s->inner.c[0] = place[1];
  s->inner.c[1] = place[2];
  PetscCall(HybArenaFree(&s->inner.keep, &s->inner.C.j));
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
  product->j = C->D.j + s->inner.c[0];
  product->a = C->D.a + s->inner.c[0];
  PetscCall(HybProductNumeric(s->product[2], inner, &B->D, NULL, product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParInnerPut(HybParMultiply *s, HybParCSR *C)
{
  const HybExec    *x = &s->exec;
  const HybCSR     *D = &s->inner.result.D;
  const PetscCount *c = s->inner.c, after = D->nnz - c[0];

  PetscFunctionBegin;
  if (c[0]) PetscCall(x->backend->copy(x, C->D.a, D->a, sizeof(HybScalar) * (size_t)c[0], HYB_COPY_DEVICE_TO_DEVICE));
  if (after) PetscCall(x->backend->copy(x, C->D.a + c[1], D->a + c[0], sizeof(HybScalar) * (size_t)after, HYB_COPY_DEVICE_TO_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
