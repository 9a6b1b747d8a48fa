/*
  Random sequences of operations, done alike to a MATAIJ and to a matrix of the type. The pool holds a few such pairs;
  each step draws an operation of the table below, its arguments and the pairs it is about, may put a new pair into the
  pool, and then asks whether both still agree: in entries, products with a vector, sizes, known symmetries, in the
  blocks on several processes, and in whether there was an error. What single operations do, the other tests look at;
  here caches, options and states are met in the orders that nobody thought of. All is drawn from the seed of a run;
  -seed N -runs 1 repeats the run whose seed a failure names, -trail prints each operation before it is done.

  With -mat_seqaij_type the second of a pair is a MATAIJ too, made and worked on while the option is set, the first
  while it is not.

TEST np=1 -runs 200
TEST np=1 -runs 100 -mat_seqaij_type seqaijhybridgpu
TEST np=2 -runs 40
TEST np=1 -runs 10 @emulated
TEST np=1 -runs 10 @emulated -mat_aijhybridgpu_memory mirror
TEST np=2 -runs 10 @emulated
TEST np=1 -runs 40 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1 -mat_aijhybridgpu_promote never
TEST np=1 -runs 20 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1
*/
#include "mattest.h"
#include <petsc/private/petscimpl.h> /* PetscObjectStateIncrease */

#define POOL  4
#define DRAWS 4

typedef struct {
  Mat              m[2];          /* MATAIJ and ours */
  Mat              transposed[2]; /* kept for MAT_REUSE_MATRIX */
  Mat              operand[2][2]; /* of the product that m is, referenced */
  PetscInt         product;       /* which one; 0 for none */
  PetscObjectState states[3];     /* of the patterns of its operands and of itself when it was made */
  PetscInt         lineage;       /* pairs of one lineage have one pattern */
  PetscInt         stored;        /* the lineage when MatStoreValues was called; 0 if it was not */
} Pair;

/* One operation's arguments, the same for both of a pair */
typedef struct {
  Pair       *p, *q; /* it is about p; q is a second operand */
  Pair        out;   /* a new pair, if it makes one */
  PetscInt    r[DRAWS];
  PetscScalar v;
  PetscInt    M, N, start, end; /* of p */
  int         k;                /* which of the two it is done to: A is p->m[k] */
} Step;

static Pair          Pool[POOL];
static PetscInt      Lineages;
static unsigned long State;
static PetscMPIInt   Size, Rank;
static PetscBool     Print;
static char          Trail[8000], SubType[64];

static PetscInt Draw(PetscInt n)
{
  return (PetscInt)(MATTEST_NEXT(State) % (unsigned long)n);
}

/* What MATAIJ itself becomes: ours by the option, while work is done on ours */
static PetscErrorCode Side(int k)
{
  PetscFunctionBeginUser;
  if (SubType[0] && k)
    PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", SubType));
  else if (SubType[0])
    PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define OUR_TYPE (SubType[0] ? MATAIJ : "aijhybridgpu")

static PetscErrorCode NoProduct(Pair *p)
{
  PetscFunctionBeginUser;
  for (int q = 0; q < 2; q++)
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&p->operand[q][k]));
  p->product = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of this pair's matrices can no longer be repeated, nor can the one that they are */
static PetscErrorCode Forget(Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(NoProduct(p));
  for (int k = 0; k < POOL; k++)
    if (Pool[k].operand[0][0] == p->m[0] || Pool[k].operand[1][0] == p->m[0]) PetscCall(NoProduct(&Pool[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Drop(Pair *p)
{
  PetscFunctionBeginUser;
  PetscCall(NoProduct(p));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&p->m[k]));
    PetscCall(MatDestroy(&p->transposed[k]));
  }
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts a new pair into p: 20 or 22 rows and columns, so that many fit together; some with blocks of two */
static PetscErrorCode Fresh(Pair *p)
{
  PetscInt  M = 20 + 2 * Draw(2), N = 20 + 2 * Draw(2), bs = Draw(3) ? 1 : 2, add = Draw(3), row = 1 + Draw(4), start, end;
  PetscBool setup = (PetscBool)(PETSC_VERSION_GE(3, 19, 0) && add);
  Mat       R;

  PetscFunctionBeginUser;
  PetscCall(Drop(p));
  PetscCall(MatTestRandom(M, N, row, Draw(1000), &R));
  PetscCall(MatGetOwnershipRange(R, &start, &end));
  for (int k = 0; k < 2; k++) {
    PetscInt m = PETSC_DECIDE, n = PETSC_DECIDE;

    PetscCall(Side(k));
    PetscCall(PetscSplitOwnershipBlock(PETSC_COMM_WORLD, bs, &m, &M));
    PetscCall(PetscSplitOwnershipBlock(PETSC_COMM_WORLD, bs, &n, &N));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &p->m[k]));
    PetscCall(MatSetSizes(p->m[k], m, n, M, N));
    PetscCall(MatSetBlockSize(p->m[k], bs));
    PetscCall(MatSetType(p->m[k], k ? OUR_TYPE : MATAIJ));
    if (setup)
      PetscCall(MatSetUp(p->m[k]));
    else
      PetscCall(MatSeqAIJSetPreallocation(p->m[k], 14, NULL));
    if (!setup) PetscCall(MatMPIAIJSetPreallocation(p->m[k], 14, NULL, 14, NULL));
    for (PetscInt r = start; r < end; r++) {
      PetscInt           count;
      const PetscInt    *c;
      const PetscScalar *v;

      PetscCall(MatGetRow(R, r, &count, &c, &v));
      PetscCall(MatSetValues(p->m[k], 1, &r, count, c, v, add == 2 ? ADD_VALUES : INSERT_VALUES));
      PetscCall(MatRestoreRow(R, r, &count, &c, &v));
    }
    PetscCall(MatAssemblyBegin(p->m[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(p->m[k], MAT_FINAL_ASSEMBLY));
  }
  PetscCall(Side(0));
  PetscCall(MatDestroy(&R));
  p->lineage = ++Lineages;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operations: each is done to both of s->p, A is the one of them whose turn it is */

static PetscErrorCode Values(Step *s, Mat A)
{
  PetscFunctionBeginUser;
  switch (s->r[0] % 6) {
  case 0: PetscCall(MatZeroEntries(A)); break;
  case 1: PetscCall(MatRealPart(A)); break;
  case 2: PetscCall(MatImaginaryPart(A)); break;
  case 3: PetscCall(MatConjugate(A)); break;
  default: PetscCall(MatScale(A, s->v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a vector beside A without zeros */
static PetscErrorCode Beside(Mat A, PetscBool left, Vec *v)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, left ? NULL : v, left ? v : NULL));
  PetscCall(VecGetOwnershipRange(*v, &start, &end));
  for (PetscInt k = start; k < end; k++) PetscCall(VecSetValue(*v, k, 0.5 + (PetscReal)(k * 7 % 11) / 10, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalScale(Step *s, Mat A)
{
  Vec l = NULL, r = NULL;

  PetscFunctionBeginUser;
  if (s->r[0] % 3) PetscCall(Beside(A, PETSC_TRUE, &l));
  if (s->r[0] % 3 != 2) PetscCall(Beside(A, PETSC_FALSE, &r));
  PetscCall(MatDiagonalScale(A, l, r));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Step *s, Mat A)
{
  Vec d;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, PETSC_TRUE, &d));
  /* MATAIJ of old releases remembers a full diagonal over a new pattern, and then loses the entries that are missing */
  if (PETSC_VERSION_LT(3, 23, 0)) PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  if (s->r[0] % 2)
    PetscCall(MatShift(A, s->v));
  else
    PetscCall(MatDiagonalSet(A, d, s->r[1] % 2 ? ADD_VALUES : INSERT_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* none, some within the pattern, or some anywhere, also in other processes' rows */
static PetscErrorCode SetValues(Step *s, Mat A)
{
  InsertMode    mode  = s->r[0] % 2 ? ADD_VALUES : INSERT_VALUES;
  unsigned long state = (unsigned long)s->r[1];

  PetscFunctionBeginUser;
  for (PetscInt n = 0; n < s->r[2] % 6; n++) {
    PetscInt        row = (PetscInt)(MATTEST_NEXT(state) % (unsigned long)s->M), col = (PetscInt)(MATTEST_NEXT(state) % (unsigned long)s->N), count = 1;
    const PetscInt *c;
    PetscBool       own = (PetscBool)(row >= s->start && row < s->end), assembled;

    PetscCall(MatAssembled(A, &assembled));
    if (s->r[3] % 2 && own && assembled) {
      PetscCall(MatGetRow(A, row, &count, &c, NULL));
      if (count) col = c[0];
      PetscCall(MatRestoreRow(A, row, &count, &c, NULL));
    }
    /* several processes that insert at one place: who wins is not said */
    if (s->r[3] % 2 ? own && assembled : own || mode == ADD_VALUES) PetscCall(MatSetValue(A, row, col, s->v / (PetscReal)Size, mode));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a row has no room for its diagonal entry, MatZeroRows_SeqAIJ puts the next rows' into the array that had to
   grow, and that is freed: only rows with entries in the diagonal block get one */
static PetscErrorCode ZeroRows(Step *s, Mat A)
{
  const PetscScalar diagonal = s->r[3] % 3 ? 2.0 : 0.0;
  PetscInt          rows[3], n = 0, first, last;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  for (PetscInt c = 0; c < 1 + s->r[1] % 3 && s->end > s->start; c++) {
    PetscInt        count, row = s->start + (s->r[0] + 3 * c) % (s->end - s->start);
    const PetscInt *columns;
    PetscBool       any = (PetscBool)(diagonal == 0.0);

    PetscCall(MatGetRow(A, row, &count, &columns, NULL));
    for (PetscInt q = 0; q < count; q++) any = (PetscBool)(any || (columns[q] >= first && columns[q] < last));
    PetscCall(MatRestoreRow(A, row, &count, &columns, NULL));
    if (any) rows[n++] = row;
  }
  PetscCall(PetscSortRemoveDupsInt(&n, rows));
  if (s->M == s->N && Size == 1 && s->r[2] % 2)
    PetscCall(MatZeroRowsColumns(A, n, rows, diagonal, NULL, NULL));
  else
    PetscCall(MatZeroRows(A, n, rows, diagonal, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Duplicate(Step *s, Mat A)
{
  const MatDuplicateOption options[] = {MAT_COPY_VALUES, MAT_DO_NOT_COPY_VALUES, MAT_SHARE_NONZERO_PATTERN};

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, options[s->r[0] % 3], &s->out.m[s->k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Combine(Step *s, Mat A)
{
  const MatStructure claims[] = {UNKNOWN_NONZERO_PATTERN, DIFFERENT_NONZERO_PATTERN, SUBSET_NONZERO_PATTERN, SAME_NONZERO_PATTERN};
  MatStructure       claim    = claims[s->r[1] % (s->p->lineage == s->q->lineage ? 4 : 2)]; /* only true ones */

  PetscFunctionBeginUser;
  if (s->r[0] % 3 == 0)
    PetscCall(MatAXPY(A, s->v, s->q->m[s->k], claim));
  else if (s->r[0] % 3 == 1)
    PetscCall(MatAYPX(A, s->v, s->q->m[s->k], claim));
  else
    PetscCall(MatCopy(s->q->m[s->k], A, claim == SAME_NONZERO_PATTERN ? claim : DIFFERENT_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Step *s, Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTranspose(A, s->p->transposed[s->k] ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &s->p->transposed[s->k]));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &s->out.m[s->k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeInPlace(Step *s, Mat A)
{
  (void)A;
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&s->p->transposed[s->k])); /* MATAIJ is another object then, and refuses its use; the device would do it again */
  PetscCall(MatTranspose(s->p->m[s->k], MAT_INPLACE_MATRIX, &s->p->m[s->k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Step *s, Mat A)
{
  Mat Q = s->q->m[s->k], *C = &s->out.m[s->k];

  PetscFunctionBeginUser;
  s->out.product = 1 + s->r[0] % 6;
  switch (s->out.product) {
  case 1: PetscCall(MatMatMult(A, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C)); break;
  case 2: PetscCall(MatTransposeMatMult(A, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C)); break;
  case 3: PetscCall(MatPtAP(A, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C)); break;
  case 4: PetscCall(MatMatMatMult(A, Q, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C)); break;
  case 5: PetscCall(MatMatTransposeMult(A, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C)); break;
  default: PetscCall(MatRARt(A, Q, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  }
  for (int q = 0; q < 2; q++) {
    s->out.operand[q][s->k] = q ? Q : A;
    PetscCall(PetscObjectReference((PetscObject)s->out.operand[q][s->k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductStates(const Pair *p, PetscObjectState states[3])
{
  PetscFunctionBeginUser;
  PetscCall(MatGetNonzeroState(p->operand[0][0], &states[0]));
  PetscCall(MatGetNonzeroState(p->operand[1][0], &states[1]));
  PetscCall(MatGetNonzeroState(p->m[0], &states[2]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductAgain(Step *s, Mat A)
{
  Mat *o[2] = {&s->p->operand[0][s->k], &s->p->operand[1][s->k]};

  PetscFunctionBeginUser;
  if (s->r[0] % 2 && s->p->product == 1)
    PetscCall(MatMatMult(*o[0], *o[1], MAT_REUSE_MATRIX, PETSC_DEFAULT, &s->p->m[s->k]));
  else if (s->r[0] % 2 && s->p->product == 3)
    PetscCall(MatPtAP(*o[0], *o[1], MAT_REUSE_MATRIX, PETSC_DEFAULT, &s->p->m[s->k]));
  else
    PetscCall(MatProductNumeric(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* every second row, and every second column or all */
static PetscErrorCode SubMatrix(Step *s, Mat A)
{
  PetscInt first, last;
  IS       rows, columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (s->end - s->start) / 2, s->start + s->r[0] % 2, 2, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, s->r[1] % 2 ? last - first : (last - first) / 2, first, s->r[1] % 2 ? 1 : 2, &columns));
  PetscCall(MatCreateSubMatrix(A, rows, columns, MAT_INITIAL_MATRIX, &s->out.m[s->k]));
  if (s->r[2] % 2) {
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatCreateSubMatrix(A, rows, columns, MAT_REUSE_MATRIX, &s->out.m[s->k]));
  }
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permute(Step *s, Mat A)
{
  PetscInt first, last, *p, *c;
  IS       rows, columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  PetscCall(PetscMalloc2(s->end - s->start, &p, last - first, &c));
  for (PetscInt q = 0; q < s->end - s->start; q++) p[q] = s->end - 1 - q;
  for (PetscInt q = 0; q < last - first; q++) c[q] = first + (q + 1) % (last - first);
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, s->end - s->start, p, PETSC_COPY_VALUES, &rows));
  PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, last - first, c, PETSC_COPY_VALUES, &columns));
  PetscCall(ISSetPermutation(rows));
  PetscCall(ISSetPermutation(columns));
  PetscCall(MatPermute(A, rows, columns, &s->out.m[s->k]));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&columns));
  PetscCall(PetscFree2(p, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ours to MATAIJ and back; nothing to MATAIJ itself. */
static PetscErrorCode Convert(Step *s, Mat A)
{
  PetscFunctionBeginUser;
  if (!s->k) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Side(0));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &s->p->m[s->k]));
  if (s->r[0] % 2) PetscCall(MatScale(s->p->m[s->k], 2.0));
  if (s->r[0] % 2) PetscCall(MatScale(s->p->m[s->k], 0.5));
  PetscCall(MatConvert(s->p->m[s->k], "aijhybridgpu", MAT_INPLACE_MATRIX, &s->p->m[s->k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a product with a dense matrix, twice; its result becomes sparse */
static PetscErrorCode Dense(Step *s, Mat A)
{
  PetscInt n;
  Mat      D, E, F;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, s->N, 5, NULL, &D));
  PetscCall(MatZeroEntries(D));
  PetscCall(MatShift(D, 1.5));
  PetscCall(MatMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
  PetscCall(MatTransposeMatMult(A, E, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &F));
  PetscCall(MatScale(D, 2.0));
  PetscCall(MatMatMult(A, D, MAT_REUSE_MATRIX, PETSC_DEFAULT, &E));
  PetscCall(MatConvert(s->r[0] % 2 ? E : F, MATAIJ, MAT_INITIAL_MATRIX, &s->out.m[s->k])); /* leaves zeros out, as no other type does */
  if (s->k) PetscCall(MatConvert(s->out.m[s->k], OUR_TYPE, MAT_INPLACE_MATRIX, &s->out.m[s->k]));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the values through the arrays of a block */
static PetscErrorCode Array(Step *s, Mat A)
{
  Mat          B = A, block[2];
  MatInfo      info;
  PetscScalar *a;
  PetscBool    parallel;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &parallel));
  if (parallel) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    B = block[s->r[0] % 2];
  }
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  if (s->r[1] % 2) {
    PetscCall(MatSeqAIJGetArray(B, &a));
    for (PetscInt c = 0; c < (PetscInt)info.nz_used; c++) a[c] *= 1.5;
    PetscCall(MatSeqAIJRestoreArray(B, &a));
  } else {
    PetscCall(MatSeqAIJGetArrayWrite(B, &a));
    for (PetscInt c = 0; c < (PetscInt)info.nz_used; c++) a[c] = (PetscReal)(c % 13) / 3 - 1;
    PetscCall(MatSeqAIJRestoreArrayWrite(B, &a));
  }
  if (parallel) PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Random(Step *s, Mat A)
{
  PetscRandom random;

  PetscFunctionBeginUser;
  PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &random));
  PetscCall(PetscRandomSetType(random, PETSCRAND48));
  PetscCall(PetscRandomSetSeed(random, (unsigned long)s->r[0]));
  PetscCall(PetscRandomSeed(random));
  PetscCall(MatSetRandom(A, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not MAT_USE_INODES, which leaves an assembled MATAIJ without its nodes. New entries are mostly let in again: other
   options only make the steps after them fail */
static PetscErrorCode Option(Step *s, Mat A)
{
  const MatOption options[] = {MAT_ROW_ORIENTED, MAT_KEEP_NONZERO_PATTERN, MAT_NEW_NONZERO_LOCATIONS, MAT_NEW_NONZERO_LOCATION_ERR, MAT_IGNORE_ZERO_ENTRIES, MAT_FORM_EXPLICIT_TRANSPOSE};

  PetscFunctionBeginUser;
  if (s->r[0] % 2)
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  else
    PetscCall(MatSetOption(A, options[s->r[1] % 6], (PetscBool)(s->r[2] % 2)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Symmetry(Step *s, Mat A)
{
  const MatOption options[] = {MAT_SYMMETRIC, MAT_STRUCTURALLY_SYMMETRIC, MAT_HERMITIAN, MAT_SYMMETRY_ETERNAL};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, options[s->r[0] % 4], (PetscBool)(s->r[1] % 2 || s->r[0] % 4 == 3)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Store(Step *s, Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(A));
  if (s->k) s->p->stored = s->p->lineage;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Retrieve(Step *s, Mat A)
{
  (void)s;
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatRetrieveValues(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A)); /* which it does not do itself */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another pattern altogether, some of it in other processes' rows. Not values of NULL, at which MATAIJ of 3.18
   crashes */
static PetscErrorCode COO(Step *s, Mat A)
{
  PetscInt      n = 20 + s->r[0] % 60, i[80], j[80];
  PetscScalar   v[80];
  unsigned long state = (unsigned long)s->r[1] + 77ul * (unsigned long)Rank;

  PetscFunctionBeginUser;
  for (PetscInt c = 0; c < n; c++) {
    i[c] = c % 11 == 4 ? -1 : (PetscInt)(MATTEST_NEXT(state) % (unsigned long)s->M);
    j[c] = (PetscInt)(MATTEST_NEXT(state) % (unsigned long)s->N);
    v[c] = (PetscReal)(MATTEST_NEXT(state) % 100) / 50 - 1;
  }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  if (s->r[2] % 2) PetscCall(MatSetValuesCOO(A, v, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Step *s, Mat A)
{
  PetscFunctionBeginUser;
  /* a parallel MATAIJ with another pattern has its old nonzero state then, and writes it into the old transpose's
     arrays */
  PetscCall(MatDestroy(&s->p->transposed[s->k]));
  PetscCall(MatSeqAIJSetPreallocation(A, 4 + s->r[0] % 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 4 + s->r[0] % 3, NULL, 4, NULL));
  for (PetscInt row = s->start; row < s->end; row++)
    for (PetscInt c = 0; c < 3; c++) PetscCall(MatSetValue(A, row, (row * 3 + c * 5 + s->r[1]) % s->N, (PetscReal)(1 + row + c), ADD_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Replace(Step *s, Mat A)
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatScale(B, s->v));
  PetscCall(MatHeaderReplace(A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Small(Step *s, Mat A)
{
  PetscFunctionBeginUser;
#if PETSC_VERSION_GE(3, 21, 0)
  if (s->r[0] % 2)
    PetscCall(MatEliminateZeros(A, (PetscBool)(s->r[1] % 2)));
  else
    PetscCall(MatFilter(A, 0.3, (PetscBool)(s->r[1] % 2), (PetscBool)(s->r[2] % 2)));
#else
  (void)s;
  PetscCall(MatChop(A, 0.3));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what changes no entry, but leaves caches and states behind */
static PetscErrorCode Read(Step *s, Mat A)
{
  Vec       d;
  PetscReal norm;

  PetscFunctionBeginUser;
  switch (s->r[0] % 5) {
  case 0: PetscCall(MatBindToCPU(A, (PetscBool)(s->r[1] % 2))); break;
  case 1:
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    break;
  case 2: PetscCall(MatSetFromOptions(A)); break;
  case 3: PetscCall(MatSetUp(A)); break;
  default:
    PetscCall(Beside(A, PETSC_TRUE, &d));
    if (s->M == s->N) PetscCall(MatGetDiagonal(A, d));
    PetscCall(VecDestroy(&d));
    PetscCall(MatNorm(A, NORM_1, &norm));
    PetscCall(MatNorm(A, NORM_INFINITY, &norm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What must hold for an operation to be done: sizes that fit, and no fault of MATAIJ's own */

static PetscBool IsSquare(const Step *s)
{
  return (PetscBool)(s->M == s->N);
}

/* MatZeroRows_MPIAIJ of 3.18 writes into a block that it freed when the diagonal block is not square */
static PetscBool ZeroRowsFits(const Step *s)
{
  return (PetscBool)(Size == 1 || s->M == s->N);
}

static PetscBool CombineFits(const Step *s)
{
  PetscInt m, n;

  PetscCallAbort(PETSC_COMM_SELF, MatGetSize(s->q->m[0], &m, &n));
  return (PetscBool)(s->p != s->q && m == s->M && n == s->N);
}

/* MPIAIJ has no product with a transpose on the right, and that of SeqAIJ takes the block size of Q's columns for its
   rows'. SeqAIJ computes A^T A as A A where A was said to be symmetric: a claim that need not be true here, or any
   longer */
static PetscBool ProductFits(const Step *s)
{
  PetscInt  m, n, rbs, cbs;
  PetscBool square = (PetscBool)(s->M == s->N), known, symmetric;

  PetscCallAbort(PETSC_COMM_SELF, MatGetSize(s->q->m[0], &m, &n));
  PetscCallAbort(PETSC_COMM_SELF, MatGetBlockSizes(s->q->m[0], &rbs, &cbs));
  PetscCallAbort(PETSC_COMM_SELF, MatIsSymmetricKnown(s->p->m[0], &known, &symmetric));
  switch (s->r[0] % 6) {
  case 0: return (PetscBool)(s->N == m);
  case 1: return (PetscBool)(s->M == m && !(s->p == s->q && known && symmetric));
  case 2: return (PetscBool)(square && s->N == m);
  case 3: return (PetscBool)(s->N == m && n == s->M);
  case 4: return (PetscBool)(Size == 1 && s->N == n && rbs == cbs);
  default: return (PetscBool)(Size == 1 && square && s->N == n);
  }
}

/* a numeric phase is for the patterns of the symbolic one */
static PetscBool ProductAgainFits(const Step *s)
{
  PetscObjectState states[3];

  if (!s->p->product) return PETSC_FALSE;
  PetscCallAbort(PETSC_COMM_SELF, ProductStates(s->p, states));
  return (PetscBool)(states[0] == s->p->states[0] && states[1] == s->p->states[1] && states[2] == s->p->states[2]);
}

/* with another pattern than the last time, MATAIJ writes beyond the array of the stored values */
static PetscBool StoreFits(const Step *s)
{
  return (PetscBool)(!s->p->stored || s->p->stored == s->p->lineage);
}

/* those of another pattern, or none, are an error's matter */
static PetscBool RetrieveFits(const Step *s)
{
  return (PetscBool)(s->p->stored == s->p->lineage);
}

static const struct {
  const char *name;
  PetscErrorCode (*apply)(Step *, Mat);
  PetscBool (*fits)(const Step *); /* NULL: always */
  PetscBool parallel;              /* also on several processes */
  enum {
    VALUES,  /* changes values at most, or tells a new pattern by the matrix's state */
    PATTERN, /* may change the pattern, or what AIJ keeps beside it */
    REPLACES /* makes another matrix of it, of which products know nothing */
  } effect;
} Operations[] = {
  {"values",           Values,           NULL,             PETSC_TRUE,  VALUES  },
  {"diagonalscale",    DiagonalScale,    NULL,             PETSC_TRUE,  VALUES  },
  {"diagonal",         Diagonal,         IsSquare,         PETSC_TRUE,  PATTERN },
  {"setvalues",        SetValues,        NULL,             PETSC_TRUE,  VALUES  },
  {"zerorows",         ZeroRows,         ZeroRowsFits,     PETSC_TRUE,  PATTERN },
  {"duplicate",        Duplicate,        NULL,             PETSC_TRUE,  VALUES  },
  {"combine",          Combine,          CombineFits,      PETSC_TRUE,  REPLACES}, /* unless they are of one lineage */
  {"transpose",        Transpose,        NULL,             PETSC_TRUE,  VALUES  },
  {"transposeinplace", TransposeInPlace, NULL,             PETSC_TRUE,  REPLACES},
  {"product",          Product,          ProductFits,      PETSC_TRUE,  VALUES  },
  {"productagain",     ProductAgain,     ProductAgainFits, PETSC_TRUE,  PATTERN },
  {"submatrix",        SubMatrix,        NULL,             PETSC_TRUE,  VALUES  },
  {"permute",          Permute,          NULL,             PETSC_TRUE,  VALUES  },
  {"convert",          Convert,          NULL,             PETSC_TRUE,  REPLACES},
  {"dense",            Dense,            NULL,             PETSC_TRUE,  VALUES  },
  {"array",            Array,            NULL,             PETSC_TRUE,  VALUES  },
  {"random",           Random,           NULL,             PETSC_TRUE,  VALUES  },
  {"option",           Option,           NULL,             PETSC_FALSE, VALUES  }, /* errors that follow from one on one process alone leave the others waiting */
  {"symmetry",         Symmetry,         NULL,             PETSC_TRUE,  VALUES  },
  {"store",            Store,            StoreFits,        PETSC_TRUE,  VALUES  },
  {"retrieve",         Retrieve,         RetrieveFits,     PETSC_TRUE,  VALUES  },
  {"coo",              COO,              NULL,             PETSC_TRUE,  REPLACES},
  {"preallocate",      Preallocate,      NULL,             PETSC_TRUE,  REPLACES},
  {"replace",          Replace,          NULL,             PETSC_TRUE,  REPLACES},
  {"small",            Small,            NULL,             PETSC_TRUE,  REPLACES},
  {"read",             Read,             NULL,             PETSC_TRUE,  VALUES  },
};

/* Do the blocks of this process agree? What the whole matrix does not show is where an entry lies, and the columns of
   the second block */
static PetscErrorCode CheckBlocks(Mat A, Mat H)
{
  Mat         a[2], h[2];
  PetscMPIInt same = 1;

  PetscFunctionBeginUser;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &a[0], &a[1], NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(H, &h[0], &h[1], NULL));
  for (int b = 0; b < 2; b++) {
    PetscInt  m[2], n[2];
    PetscReal difference = 1;

    PetscCall(MatGetSize(a[b], &m[0], &n[0]));
    PetscCall(MatGetSize(h[b], &m[1], &n[1]));
    if (m[0] == m[1] && n[0] == n[1]) PetscCall(MatTestDifference(h[b], a[b], &difference));
    if (!(difference < 1e-12)) same = 0;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  MatTestCheck(same, "blocks");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(Mat A, Mat H, const char *what)
{
  Mat       m[2] = {A, H};
  PetscInt  sizes[2][4];
  PetscBool known[2][5], set;
  MatInfo   info[2];
  Vec       x, y, z;

  PetscFunctionBeginUser;
  MatTestCheckSame(H, A, what);
  MatTestCheckMult(H, A, "MatMult");
  PetscCall(MatCreateVecs(A, &y, &x));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMultTranspose(A, x, y));
  PetscCall(MatMultTranspose(H, x, z));
  VecTestCheckSame(z, y, "MatMultTranspose");
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGetBlockSizes(m[k], &sizes[k][0], &sizes[k][1]));
    PetscCall(MatGetLocalSize(m[k], &sizes[k][2], &sizes[k][3]));
    PetscCall(MatGetInfo(m[k], MAT_GLOBAL_SUM, &info[k]));
    PetscCall(MatAssembled(m[k], &known[k][0]));
/* that a matrix is not symmetric, it may also not know */
#define KNOWN(q, function)                         \
  do {                                             \
    PetscCall(function(m[k], &set, &known[k][q])); \
    known[k][q] = (PetscBool)(set && known[k][q]); \
  } while (0)
    KNOWN(1, MatIsSymmetricKnown);
    KNOWN(2, MatIsHermitianKnown);
    KNOWN(3, MatIsStructurallySymmetricKnown);
    KNOWN(4, MatIsSPDKnown);
  }
  MatTestCheck(info[0].nz_used == info[1].nz_used, "number of nonzeros");
  MatTestCheck(!memcmp(sizes[0], sizes[1], sizeof(sizes[0])), "sizes and block sizes");
  MatTestCheck(!memcmp(known[0], known[1], sizeof(known[0])), "assembled and symmetry known");
  if (Size > 1) PetscCall(CheckBlocks(A, H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatConvert() passes on only some of what is known of symmetry, and some operations of MATAIJ's that make another
   pattern still say of it what was said of the old one: all is said anew */
static PetscErrorCode NotSymmetric(Mat m[2])
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetOption(m[k], MAT_SYMMETRIC, PETSC_FALSE));
    PetscCall(MatSetOption(m[k], MAT_HERMITIAN, PETSC_FALSE));
    PetscCall(MatSetOption(m[k], MAT_STRUCTURALLY_SYMMETRIC, PETSC_FALSE));
    PetscCall(MatSetOption(m[k], MAT_SPD, PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some of MATAIJ's operations leave a matrix that refuses new entries, and not the same ones as ours */
static PetscErrorCode LetIn(Mat m[2])
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatSetOption(m[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DoStep(void)
{
  const PetscInt   op = Draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(Operations));
  Step             s;
  Pair            *slot;
  PetscErrorCode   e[2] = {PETSC_SUCCESS, PETSC_SUCCESS};
  PetscObjectState before, after;
  PetscReal        norm;
  char             text[128];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&s, sizeof(s)));
  s.p  = &Pool[Draw(POOL)];
  s.q  = &Pool[Draw(POOL)];
  slot = &Pool[Draw(POOL)];
  for (int k = 0; k < DRAWS; k++) s.r[k] = Draw(100000);
  s.v = (PetscReal)Draw(40) / 10 - 2;
#if defined(PETSC_USE_COMPLEX)
  s.v += PETSC_i * ((PetscReal)Draw(5) / 10 - 0.2);
#endif
  PetscCall(MatGetNonzeroState(s.p->m[0], &before));
  PetscCall(MatGetSize(s.p->m[0], &s.M, &s.N));
  PetscCall(MatGetOwnershipRange(s.p->m[0], &s.start, &s.end));
  if ((Size > 1 && !Operations[op].parallel) || (Operations[op].fits && !Operations[op].fits(&s))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), " %s(%d,%d,%d;%d,%d,%d,%d)", Operations[op].name, (int)(s.p - Pool), (int)(s.q - Pool), (int)(slot - Pool), (int)s.r[0], (int)s.r[1], (int)s.r[2], (int)s.r[3]));
  PetscCall(PetscStrlcat(Trail, text, sizeof(Trail)));
  if (Print) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", text));
  for (s.k = 0; s.k < 2 && !(Size > 1 && e[0]); s.k++) {
    PetscCall(Side(s.k));
    if (Size > 1) { /* a new entry must not be the error of one process alone, for which the others would wait; submatrices refuse other processes' */
      PetscCall(MatSetOption(s.p->m[s.k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatSetOption(s.p->m[s.k], MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
    }
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    e[s.k] = Operations[op].apply(&s, s.p->m[s.k]);
    PetscCall(PetscPopErrorHandler());
  }
  PetscCall(Side(0));
  if (Size == 1 || !e[0]) {
    MatTestCheck(!e[0] == !e[1], "error or not");
    if (!e[0] != !e[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "error of MATAIJ %d, of ours %d\n", (int)e[0], (int)e[1]));
  }
  if (e[0] || e[1]) { /* what an error leaves behind, nobody promises */
    PetscCall(Drop(&s.out));
    PetscCall(Forget(s.p));
    PetscCall(Fresh(s.p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetNonzeroState(s.p->m[0], &after));
  if (before != after) s.p->lineage = ++Lineages;
  if (Operations[op].effect != VALUES && !(Operations[op].apply == Combine && s.p->lineage == s.q->lineage)) {
    s.p->lineage = ++Lineages;
    if (Operations[op].effect == REPLACES) {
      PetscCall(Forget(s.p));
      PetscCall(NotSymmetric(s.p->m));
    }
    PetscCall(LetIn(s.p->m));
  }
  PetscCall(Compare(s.p->m[0], s.p->m[1], Operations[op].name));
  if (Operations[op].apply == Transpose) MatTestCheckSame(s.p->transposed[1], s.p->transposed[0], "transpose again");
  if (s.out.m[0]) {
    PetscInt m, n;

    PetscCall(Compare(s.out.m[0], s.out.m[1], "what was made"));
    if (s.out.product) PetscCall(ProductStates(&s.out, s.out.states));
    PetscCall(LetIn(s.out.m));
    s.out.lineage = Operations[op].apply == Duplicate ? s.p->lineage : ++Lineages;
    PetscCall(MatGetSize(s.out.m[0], &m, &n));
    if (m < 4 || n < 4) slot = &s.out; /* submatrices of submatrices */
    PetscCall(Drop(slot));
    if (slot != &s.out) *slot = s.out;
  }
  /* new matrices now and then, and before values grow without end */
  PetscCall(MatNorm(s.p->m[0], NORM_INFINITY, &norm));
  if (!(norm < 1e6) || Draw(30) == 0) PetscCall(Fresh(s.p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int      code = 0;
  PetscInt runs = 1, steps = 30;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &MatTestSeed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trail", &Print, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", SubType, sizeof(SubType), NULL));
  MatTestName = Trail;
  for (PetscInt run = 0; run < runs; run++, MatTestSeed++) {
    PetscInt failed = MatTestFailed;

    State    = (unsigned long)MatTestSeed * 1000003ul + 17ul;
    Trail[0] = 0;
    if (Print) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "seed %d\n", (int)MatTestSeed));
    for (int k = 0; k < POOL; k++) PetscCall(Fresh(&Pool[k]));
    for (PetscInt step = 0; step < steps && MatTestFailed == failed; step++) PetscCall(DoStep());
    for (int k = 0; k < POOL; k++) PetscCall(Drop(&Pool[k]));
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
