/* sequences_steps.h: the operations of t604: each is done to both of s->p, A is the one of them whose turn it is */
#ifndef SEQUENCES_STEPS_H
#define SEQUENCES_STEPS_H
#include "sequences.h"

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
  /* MATAIJ is another object then, and refuses its use; the device would do it again */
  PetscCall(MatDestroy(&s->p->transposed[s->k]));
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

/* The result's as its blocks have it, on all processes: of diagonals that were set the whole MATAIJ hears later */
static PetscErrorCode ProductStates(const Pair *p, PetscObjectState states[3])
{
  PetscFunctionBeginUser;
  PetscCall(MatGetNonzeroState(p->operand[0][0], &states[0]));
  PetscCall(MatGetNonzeroState(p->operand[1][0], &states[1]));
  PetscCall(MatGetNonzeroState(p->m[0], &states[2]));
  if (Size > 1) {
    PetscObjectState block[2];
    Mat              blocks[2];
    PetscInt64       sum;

    PetscCall(MatMPIAIJGetSeqAIJ(p->m[0], &blocks[0], &blocks[1], NULL));
    for (int b = 0; b < 2; b++) PetscCall(MatGetNonzeroState(blocks[b], &block[b]));
    sum = (PetscInt64)(block[0] + block[1]);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPIU_INT64, MPI_SUM, PETSC_COMM_WORLD));
    states[2] = (PetscObjectState)sum;
  }
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
  PetscCall(MatConvert(s->p->m[s->k], Ours, MAT_INPLACE_MATRIX, &s->p->m[s->k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a product with a dense matrix, twice; its result becomes sparse */
/* sums that cancel are zero in one order of the terms, and a rounding error in another */
static PetscErrorCode DropRounding(Mat F)
{
  PetscScalar *a;
  PetscReal    norm;
  PetscInt     m, n, lda;

  PetscFunctionBeginUser;
  PetscCall(MatNorm(F, NORM_FROBENIUS, &norm));
  PetscCall(MatGetLocalSize(F, &m, NULL));
  PetscCall(MatGetSize(F, NULL, &n));
  PetscCall(MatDenseGetLDA(F, &lda));
  PetscCall(MatDenseGetArray(F, &a));
  for (PetscInt c = 0; c < n; c++)
    for (PetscInt r = 0; r < m; r++)
      if (PetscAbsScalar(a[r + (PetscCount)c * lda]) < 1e-13 * norm) a[r + (PetscCount)c * lda] = 0;
  PetscCall(MatDenseRestoreArray(F, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  PetscCall(DropRounding(F));
  /* leaves zeros out, as no other type does */
  PetscCall(MatConvert(s->r[0] % 2 ? E : F, MATAIJ, MAT_INITIAL_MATRIX, &s->out.m[s->k]));
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
#endif
