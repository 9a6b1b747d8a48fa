/* write.h: the hunter's operations that write a matrix: its values, pattern, options and claims. */
#ifndef HUNT_WRITE_H
#define HUNT_WRITE_H
#include "hunt.h"

static PetscErrorCode Values(Hunt *h, int k, Mat A)
{
  const PetscScalar factors[] = {h->v, 0.0, 1.0, -1.0, 2.0};

  PetscFunctionBeginUser;
  switch (h->r[0] % 7) {
  case 0: PetscCall(MatZeroEntries(A)); break;
  case 1: PetscCall(MatRealPart(A)); break;
  case 2: PetscCall(MatImaginaryPart(A)); break;
  case 3: PetscCall(MatConjugate(A)); break;
  default: PetscCall(MatScale(A, factors[h->r[1] % 5]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* also by vectors that do not fit */
static PetscErrorCode DiagonalScale(Hunt *h, int k, Mat A)
{
  Vec            l = NULL, r = NULL;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  if (h->r[0] % 4) PetscCall(Beside(A, (PetscBool)(Size > 1 || h->r[1] % 12 > 0), &l));
  if (h->r[0] % 4 != 2) PetscCall(Beside(A, (PetscBool)(Size == 1 && h->r[1] % 12 == 1), &r));
  if (l && h->r[2] % 5 == 0) PetscCall(VecSet(l, 0.0));
  if (r && h->r[2] % 5 == 1) PetscCall(VecSet(r, 0.0));
  ierr = MatDiagonalScale(A, l, r);
  PetscCall(MatTestDestroy(&l, &r));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Hunt *h, int k, Mat A)
{
  Vec            d;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, PETSC_TRUE, &d));
  if (h->r[0] % 3)
    ierr = MatShift(A, h->r[1] % 5 ? h->v : 0.0);
  else
    ierr = MatDiagonalSet(A, d, h->r[1] % 2 ? ADD_VALUES : INSERT_VALUES);
  PetscCall(VecDestroy(&d));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries of the pattern, others, none, ignored ones and (on one process) impossible ones; one by one, by rows and
   by blocks; sometimes in two assemblies */
static PetscErrorCode SetValues(Hunt *h, int k, Mat A)
{
  InsertMode    mode  = h->r[0] % 2 ? ADD_VALUES : INSERT_VALUES;
  unsigned long state = (unsigned long)h->r[1];
  PetscBool     assembled;

  PetscFunctionBeginUser;
  PetscCall(MatAssembled(A, &assembled));
  for (PetscInt n = 0; n < h->r[2] % 6 && h->M && h->N; n++) {
    PetscInt        row = h->start + Next(&state, PetscMax(h->end - h->start, 1)), c[6], count = 1, what = Next(&state, 24), nc = Next(&state, 4);
    const PetscInt *old;
    PetscScalar     w[6];

    for (PetscInt q = 0; q < 6; q++) {
      c[q] = Next(&state, h->N);
      w[q] = h->v + (PetscReal)q;
    }
    if (h->end == h->start) break;
    if (h->r[3] % 3 && assembled) { /* existing ones only */
      PetscCall(MatGetRow(A, row, &count, &old, NULL));
      nc = PetscMin(nc, count);
      for (PetscInt q = 0; q < nc; q++) c[q] = old[h->r[3] % 2 ? q : count - 1 - q];
      PetscCall(MatRestoreRow(A, row, &count, &old, NULL));
      PetscCall(MatSetValues(A, 1, &row, nc, c, w, mode));
      assembled = PETSC_FALSE;
      continue;
    }
    assembled = PETSC_FALSE;
    if (h->r[3] % 3) break;
    if (what == 0) c[0] = -1;
    if (what == 1 && Size == 1) c[0] = h->N;
    if (what == 2) row = -1;
    if (what == 3 && Size == 1) row = h->M;
    if (Wild && what == 4) w[0] = w[0] / (PetscReal)(h->r[0] - h->r[0]);
    if (what == 5) { /* repeated */
      c[1] = c[0];
      nc   = 2;
    }
    PetscCall(MatSetValues(A, 1, &row, nc, c, h->r[4] % 9 ? w : NULL, mode));
  }
  if (h->r[5] % 6 == 0) {
    PetscCall(MatAssemblyBegin(A, MAT_FLUSH_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FLUSH_ASSEMBLY));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetOther(Hunt *h, int k, Mat A)
{
  PetscInt    r[2] = {h->start, PetscMin(h->start + 1, h->end - 1)}, c[2] = {h->N ? h->r[1] % h->N : -1, h->N ? h->r[2] % h->N : -1}, bs;
  PetscScalar v[16];

  PetscFunctionBeginUser;
  for (int q = 0; q < 16; q++) v[q] = h->v + (PetscReal)q / 2;
  if (h->end == h->start) r[0] = r[1] = -1;
  switch (h->r[0] % 4) {
  case 0: PetscCall(MatSetValues(A, 2, r, 2, c, v, h->r[3] % 2 ? ADD_VALUES : INSERT_VALUES)); break;
  case 1:
    PetscCall(MatGetBlockSize(A, &bs));
    r[0] = r[1] = h->end > h->start ? h->start / bs : -1;
    c[0] = c[1] = h->N ? c[0] / bs : -1;
    PetscCall(MatSetValuesBlocked(A, 1, r, 1, c, v, h->r[3] % 2 ? ADD_VALUES : INSERT_VALUES));
    break;
  case 2: /* by the numbers of a mapping, if there is one */
    r[0] = r[1] = 0;
    c[0] = c[1] = 0;
    PetscCall(MatSetValuesLocal(A, h->end > h->start ? 1 : 0, r, 1, c, v, h->r[3] % 2 ? ADD_VALUES : INSERT_VALUES));
    break;
  default:
    if (Size == 1 && h->end > h->start) {
      PetscInt        n;
      const PetscInt *old;
      PetscScalar     w[64];

      PetscCall(MatGetRow(A, r[0], &n, &old, NULL));
      for (PetscInt q = 0; q < PetscMin(n, 64); q++) w[q] = (PetscReal)(q + 1);
      PetscCall(MatRestoreRow(A, r[0], &n, &old, NULL)); /* which sets n to 0 */
      PetscCall(MatSetValuesRow(A, r[0], w));
    }
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATAIJ writes into freed memory where a row has no room for its diagonal entry: with entries on the diagonal
   only if the row has some */
static PetscErrorCode ZeroRows(Hunt *h, int k, Mat A)
{
  PetscScalar    diagonal = h->r[3] % 3 ? 2.0 : 0.0;
  PetscInt       rows[3], n = 0, first, last;
  Vec            x = NULL, b = NULL;
  IS             is;
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
  for (PetscInt c = 0; c < h->r[1] % 4 && h->end > h->start; c++) {
    PetscInt        count, row = h->start + (h->r[0] + 3 * c) % (h->end - h->start);
    const PetscInt *columns;
    PetscBool       any = (PetscBool)(diagonal == 0.0);

    PetscCall(MatGetRow(A, row, &count, &columns, NULL));
    for (PetscInt q = 0; q < count; q++) any = (PetscBool)(any || (columns[q] >= first && columns[q] < last));
    PetscCall(MatRestoreRow(A, row, &count, &columns, NULL));
    if (any) rows[n++] = row;
  }
  PetscCall(PetscSortRemoveDupsInt(&n, rows));
  if (h->M == h->N && h->r[4] % 2) {
    PetscCall(Beside(A, PETSC_FALSE, &x));
    PetscCall(Beside(A, PETSC_TRUE, &b));
  }
  if (h->r[5] % 3 == 0) PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  if (h->r[5] % 3 == 1) PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  if (Size > 1) { /* a diagonal entry that is an error of one process alone leaves the others waiting, MATAIJ's too */
    PetscBool congruent;

    PetscCall(MatHasCongruentLayouts(A, &congruent));
    if (!congruent) diagonal = 0.0;
    if (diagonal != 0.0) {
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
      PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
    }
  }
  if (h->M == h->N && Size == 1 && h->r[2] % 3 == 1)
    ierr = MatZeroRowsColumns(A, n, rows, diagonal, x, b);
  else if (h->r[2] % 3 == 2) {
    PetscCall(ISCreateGeneral(PETSC_COMM_WORLD, n, rows, PETSC_COPY_VALUES, &is));
    ierr = MatZeroRowsIS(A, is, diagonal, x, b);
    PetscCall(ISDestroy(&is));
  } else
    ierr = MatZeroRows(A, n, rows, diagonal, x, b);
  PetscCall(VecDestroy(&x));
  h->x[k] = b;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* any claim, any pair, also the same matrix twice and other sizes */
static PetscErrorCode Combine(Hunt *h, int k, Mat A)
{
  const MatStructure claims[] = {UNKNOWN_NONZERO_PATTERN, DIFFERENT_NONZERO_PATTERN, SUBSET_NONZERO_PATTERN, SAME_NONZERO_PATTERN};
  /* what MATAIJ reads beyond its arrays for is left out */
  MatStructure claim = claims[h->r[1] % ((h->same = (PetscBool)(h->p->lineage == h->q->lineage)) ? 4 : 3)];
  PetscScalar  v     = h->r[2] % 6 == 0 ? 0.0 : h->r[2] % 6 == 1 ? 1.0
                                                                 : h->v;

  PetscFunctionBeginUser;
  if (Size > 1 && claim == SUBSET_NONZERO_PATTERN && h->p->lineage != h->q->lineage) claim = UNKNOWN_NONZERO_PATTERN;
  if (h->r[0] % 3 == 0)
    PetscCall(MatAXPY(A, v, h->q->m[k], claim));
  else if (h->r[0] % 3 == 1)
    PetscCall(MatAYPX(A, v, h->q->m[k], claim));
  else
    PetscCall(MatCopy(h->q->m[k], A, claim == SUBSET_NONZERO_PATTERN && Size > 1 ? DIFFERENT_NONZERO_PATTERN : claim));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Array(Hunt *h, int k, Mat A)
{
  Mat          block[2], B;
  MatInfo      info;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(Blocks(h, A, block));
  B = h->parallel ? block[h->r[0] % 2] : A;
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info));
  switch (h->r[1] % 3) {
  case 0:
    PetscCall(MatSeqAIJGetArray(B, &a));
    for (PetscInt c = 0; c < (PetscInt)info.nz_used; c++) a[c] *= 1.5;
    PetscCall(MatSeqAIJRestoreArray(B, &a));
    break;
  case 1:
    PetscCall(MatSeqAIJGetArrayWrite(B, &a));
    for (PetscInt c = 0; c < (PetscInt)info.nz_used; c++) a[c] = (PetscReal)(c % 13) / 3 - 1;
    PetscCall(MatSeqAIJRestoreArrayWrite(B, &a));
    break;
  default: /* and an assembly, as a program does that cannot increase the state */
    PetscCall(MatSeqAIJGetArray(B, &a));
    for (PetscInt c = h->r[2] % 3; c < (PetscInt)info.nz_used; c += 3) a[c] = (PetscReal)c / 5;
    PetscCall(MatSeqAIJRestoreArray(B, &a));
    PetscCall(MatTestAssemble(A));
  }
  if (h->parallel) PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Random(Hunt *h, int k, Mat A)
{
  PetscRandom random;

  PetscFunctionBeginUser;
  PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &random));
  PetscCall(PetscRandomSetType(random, PETSCRAND48));
  PetscCall(PetscRandomSetSeed(random, (unsigned long)h->r[0]));
  PetscCall(PetscRandomSeed(random));
  PetscCall(MatSetRandom(A, random));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Option(Hunt *h, int k, Mat A)
{
  const MatOption options[] = {MAT_ROW_ORIENTED, MAT_KEEP_NONZERO_PATTERN, MAT_IGNORE_ZERO_ENTRIES, MAT_FORM_EXPLICIT_TRANSPOSE, MAT_IGNORE_OFF_PROC_ENTRIES, MAT_NO_OFF_PROC_ENTRIES, MAT_NO_OFF_PROC_ZERO_ROWS,
                               MAT_SUBSET_OFF_PROC_ENTRIES, MAT_SUBMAT_SINGLEIS, MAT_NEW_NONZERO_ALLOCATION_ERR, MAT_NEW_NONZERO_LOCATIONS, MAT_NEW_NONZERO_LOCATION_ERR, MAT_UNUSED_NONZERO_LOCATION_ERR, MAT_USE_HASH_TABLE,
                               MAT_IGNORE_LOWER_TRIANGULAR, MAT_GETROW_UPPERTRIANGULAR, MAT_FORCE_DIAGONAL_ENTRIES, MAT_ERROR_LOWER_TRIANGULAR};
  /* errors of one process alone leave the others waiting */
  PetscInt  n    = Size > 1 ? 9 : (PetscInt)PETSC_STATIC_ARRAY_LENGTH(options);
  PetscBool flag = (PetscBool)(h->r[2] % 2), now[2] = {PETSC_FALSE, PETSC_FALSE};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, options[h->r[1] % n], flag));
  PetscCall(MatGetOption(A, MAT_NO_OFF_PROC_ENTRIES, &now[0]));
  Result(h, k, now[0] ? 1.0 : 0.0);
  if (Size > 1) {
    PetscCall(MatSetOption(A, MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
    PetscCall(MatSetOption(A, MAT_IGNORE_OFF_PROC_ENTRIES, PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Claim(Hunt *h, int k, Mat A)
{
  const MatOption options[] = {MAT_SYMMETRIC, MAT_STRUCTURALLY_SYMMETRIC, MAT_HERMITIAN, MAT_SYMMETRY_ETERNAL, MAT_SPD};

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, options[h->r[0] % 5], (PetscBool)(h->r[1] % 2 || h->r[0] % 5 == 3)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Store(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  if (h->r[0] % 2) PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatStoreValues(A));
  if (k) h->p->stored = h->p->lineage;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Retrieve(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  if (h->r[0] % 2) PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatRetrieveValues(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A)); /* which it does not do itself */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Another pattern altogether: repeated and ignored entries, some in other processes' rows, or none at all */
static PetscErrorCode COO(Hunt *h, int k, Mat A)
{
  PetscInt      n = h->M && h->N && h->r[0] % 9 ? 1 + h->r[0] % 60 : 0, i[80], j[80];
  PetscScalar   v[80];
  unsigned long state = (unsigned long)h->r[1] + 77ul * (unsigned long)Rank;

  PetscFunctionBeginUser;
  if (k) h->p->plain = PETSC_FALSE;
  for (PetscInt c = 0; c < n; c++) {
    i[c] = c % 11 == 4 ? -1 : Next(&state, h->M);
    j[c] = c % 13 == 6 ? -2 : Next(&state, h->N);
    v[c] = (PetscReal)Next(&state, 100) / 50 - 1;
    if (c % 7 == 3) {
      i[c] = i[c - 1];
      j[c] = j[c - 1];
    }
    if (Wild && c % 17 == 16 && h->r[3] % 3 == 0) v[c] = v[c] / (PetscReal)(h->r[0] - h->r[0]);
  }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(MatSetValuesCOO(A, v, h->r[4] % 3 ? INSERT_VALUES : ADD_VALUES));
  if (h->r[2] % 2) PetscCall(MatTestUse(A));
  for (PetscInt c = 0; c < n; c++) v[c] *= 1.5;
  if (h->r[2] % 3) PetscCall(MatSetValuesCOO(A, v, h->r[5] % 2 ? ADD_VALUES : INSERT_VALUES));
  /* whether claims end: a parallel MATAIJ's new pattern has by chance the number of the old one */
  if (Size > 1) PetscCall(NotSymmetric(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
  switch (h->r[0] % 4) {
  case 0:
    PetscCall(MatSeqAIJSetPreallocation(A, 4 + h->r[0] % 3, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 4 + h->r[0] % 3, NULL, 4, NULL));
    break;
  case 1: /* in parallel there is nothing to go back to for what the device made: docs/differs.md */
    if (Size == 1) PetscCall(MatResetPreallocation(A));
    break;
  case 2: {
    PetscInt    *i, *j, n = 0, c[5];
    PetscScalar *v;

    PetscCall(PetscMalloc3(h->end - h->start + 1, &i, 5 * (h->end - h->start), &j, 5 * (h->end - h->start), &v));
    i[0] = 0;
    for (PetscInt r = h->start; r < h->end; r++) {
      PetscInt count = PairsColumns((Pattern)(h->r[1] % PATTERNS), r, h->N, c);

      for (PetscInt q = 0; q < count; q++, n++) {
        j[n] = c[q];
        v[n] = PairsValue(r, c[q], h->r[2] % 9);
      }
      i[r - h->start + 1] = n;
    }
    PetscCall(MatSeqAIJSetPreallocationCSR(A, i, j, v));
    PetscCall(MatMPIAIJSetPreallocationCSR(A, i, j, v));
    PetscCall(PetscFree3(i, j, v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  default: {
    PetscInt *d;

    PetscCall(PetscCalloc1(h->end - h->start, &d));
    for (PetscInt r = 0; r < h->end - h->start; r++) d[r] = PetscMin(3, A->cmap->n);
    if (h->M == h->N) PetscCall(MatXAIJSetPreallocation(A, 1, d, d, NULL, NULL));
    PetscCall(PetscFree(d));
  }
  }
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt row = h->start; row < h->end && h->N; row++)
    for (PetscInt c = 0; c < 3; c++) PetscCall(MatSetValue(A, row, (row * 3 + c * 5 + h->r[1]) % h->N, (PetscReal)(1 + row + c), ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Small(Hunt *h, int k, Mat A)
{
  PetscFunctionBeginUser;
#if PETSC_VERSION_GE(3, 21, 0)
  if (h->r[0] % 2) {
    /* where sums cancel, one side has zero, the other rounding */
    PetscCall(MatFilter(A, 1e-12, PETSC_FALSE, PETSC_FALSE));
    PetscCall(MatEliminateZeros(A, (PetscBool)(h->r[1] % 2)));
  } else
    PetscCall(MatFilter(A, 0.3, (PetscBool)(h->r[1] % 2), (PetscBool)(h->r[2] % 2)));
#else
  PetscCall(MatChop(A, 0.3));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* names, prefixes, null spaces, mappings, block sizes */
static PetscErrorCode Hang(Hunt *h, int k, Mat A)
{
  ISLocalToGlobalMapping map[2];
  IS                     is;
  PetscInt               first, last;

  PetscFunctionBeginUser;
  for (int q = 0; q < 3; q++)
    if (!Spaces[q]) PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &Spaces[q]));
  switch (h->r[0] % 6) {
  case 0: PetscCall(MatSetNullSpace(A, h->r[1] % 3 ? Spaces[0] : NULL)); break;
  case 1: PetscCall(MatSetTransposeNullSpace(A, h->r[1] % 3 ? Spaces[1] : NULL)); break;
  case 2: PetscCall(MatSetNearNullSpace(A, h->r[1] % 3 ? Spaces[2] : NULL)); break;
  case 3:
    PetscCall(MatGetOwnershipRangeColumn(A, &first, &last));
    for (int q = 0; q < 2; q++) {
      PetscCall(ISCreateStride(PETSC_COMM_WORLD, q ? last - first : h->end - h->start, q ? first : h->start, 1, &is));
      PetscCall(ISLocalToGlobalMappingCreateIS(is, &map[q]));
      PetscCall(ISDestroy(&is));
    }
    PetscCall(MatSetLocalToGlobalMapping(A, map[0], map[1]));
    for (int q = 0; q < 2; q++) PetscCall(ISLocalToGlobalMappingDestroy(&map[q]));
    break;
  case 4: PetscCall(PetscObjectSetName((PetscObject)A, h->r[1] % 2 ? "one" : "another")); break;
  default: PetscCall(MatSetOptionsPrefix(A, h->r[1] % 2 ? "one_" : "another_"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* each column becomes the next one, where there is room for that. MATAIJ goes on taking the diagonal's entries from
   where they were, unless the pattern's state tells. */
static PetscErrorCode Columns(Hunt *h, int k, Mat A)
{
  const PetscInt *ia, *ja;
  PetscInt        n, *j;
  PetscBool       done;

  PetscFunctionBeginUser;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscCall(PetscMalloc1(ia[n] + 1, &j));
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt q = ia[r]; q < ia[r + 1]; q++) j[q] = ja[q] + (ja[ia[r + 1] - 1] < h->N - 1 ? 1 : 0);
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &ia, &ja, &done));
  PetscCall(MatSeqAIJSetColumnIndices(A, j));
  PetscCall(PetscFree(j));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  A->nonzerostate++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is lent is held over something else, and read or written afterwards */
static PetscErrorCode Held(Hunt *h, int k, Mat A)
{
  PetscInt           n = 0, row = h->start, rows = 0;
  const PetscInt    *c = NULL, *ia = NULL, *ja = NULL;
  const PetscScalar *v = NULL, *a = NULL;
  PetscScalar       *w = NULL;
  PetscBool          done;
  MatInfo            info;

  PetscFunctionBeginUser;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (h->end == h->start || info.nz_used < 1) PetscFunctionReturn(PETSC_SUCCESS);
  row += h->r[1] % (h->end - h->start);
  switch (h->r[0] % 4) {
  case 0: PetscCall(MatGetRow(A, row, &n, &c, &v)); break;
  case 1: PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &ia, &ja, &done)); break;
  case 2: PetscCall(MatSeqAIJGetArrayRead(A, &a)); break;
  default: PetscCall(MatSeqAIJGetArray(A, &w));
  }
  for (PetscInt t = 0; t < 1 + h->r[3] % 3; t++) switch ((h->r[2] + t * h->r[4]) % 5) {
    case 0: PetscCall(MatScale(A, 1.5)); break;
    case 1: PetscCall(MatTestUse(A)); break;
    case 2: {
      PetscInt        m;
      const PetscInt *cc;
      PetscInt        col = 0;

      if (n)
        col = c[0];
      else if (ia && ia[row - h->start + 1] > ia[row - h->start])
        col = ja[ia[row - h->start]];
      else if (!c && !ia) {
        PetscCall(MatGetRow(A, row, &m, &cc, NULL));
        if (m) col = cc[0];
        PetscCall(MatRestoreRow(A, row, &m, &cc, NULL));
        if (!m) break;
      } else
        break;
      PetscCall(MatSetValue(A, row, col, h->v, ADD_VALUES));
      PetscCall(MatTestAssemble(A));
    } break;
    case 3: {
      PetscReal norm;

      PetscCall(MatNorm(A, NORM_FROBENIUS, &norm));
    } break;
    default:
      if (w) w[0] = h->v;
      PetscCall(MatTestAssemble(A));
    }
  if (v)
    for (PetscInt q = 0; q < n; q++) Result(h, k, v[q] * (PetscReal)(c[q] + 1));
  if (ja)
    for (PetscInt q = 0; q < PetscMin(ia[rows], 8); q++) Result(h, k, (PetscReal)ja[q]);
  if (a) Result(h, k, a[0]);
  if (w) {
    Result(h, k, w[0]);
    w[0] += 1.0;
  }
  switch (h->r[0] % 4) {
  case 0: PetscCall(MatRestoreRow(A, row, &n, &c, &v)); break;
  case 1: PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &ia, &ja, &done)); break;
  case 2: PetscCall(MatSeqAIJRestoreArrayRead(A, &a)); break;
  default: PetscCall(MatSeqAIJRestoreArray(A, &w));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What must hold for an operation to be done: sizes that fit, and no fault of MATAIJ's own */

/* On several processes MATAIJ of 3.18 frees twice what a new entry makes of coordinates' arrays */
static PetscBool NewEntriesFit(const Hunt *h)
{
#if PETSC_VERSION_LT(3, 19, 0)
  return (PetscBool)(Size == 1 || h->p->plain);
#else
  return PETSC_TRUE;
#endif
}

/* MATAIJ of 3.18 writes into a block that it freed when the diagonal block is not square */
static PetscBool ZeroRowsFits(const Hunt *h)
{
  return (PetscBool)(h->M > 0 && h->N > 0 && (Size == 1 || h->M == h->N));
}

/* one in eight does not fit, on one process */
static PetscBool CombineFits(const Hunt *h)
{
  return (PetscBool)(OtherFits(h) || (Size == 1 && h->r[3] % 8 == 0));
}

static PetscBool PreallocateFits(const Hunt *h)
{
  /* MATAIJ writes beyond its arrays where the rows were shortened */
  if (h->r[0] % 4 == 1 && !h->p->first) return PETSC_FALSE;
  if (h->r[0] % 4 == 1 && h->M < Size) return PETSC_FALSE; /* an error of some processes alone */
  if (!NewEntriesFit(h)) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* with another pattern than the last time MATAIJ writes beyond the array of the stored values */
static PetscBool StoreFits(const Hunt *h)
{
  return (PetscBool)(!h->p->stored || h->p->stored == h->p->lineage);
}

static PetscBool RetrieveFits(const Hunt *h)
{
  return (PetscBool)((!h->p->stored && Size == 1) || h->p->stored == h->p->lineage);
}

/* MATAIJ of 3.18 looks for the diagonal entries of rows that have none */
static PetscBool DiagonalFits(const Hunt *h)
{
  return (PetscBool)(h->M == h->N ? NewEntriesFit(h) : Size == 1 && h->M < h->N);
}

/* MATAIJ takes its allocated length for the number of entries */
static PetscBool ColumnsFits(const Hunt *h)
{
  MatInfo info;

  PetscCallAbort(PETSC_COMM_SELF, MatGetInfo(h->p->m[0], MAT_LOCAL, &info));
  return (PetscBool)(Size == 1 && h->M && h->N && info.nz_used > 0 && info.nz_allocated == info.nz_used);
}

static PetscBool HeldFits(const Hunt *h)
{
  return (PetscBool)(Size == 1 && h->M && h->N);
}

static const Operation Writes[] = {
  {"values",        Values,        NULL,            KEEPS   },
  {"diagonalscale", DiagonalScale, NULL,            KEEPS   },
  {"diagonal",      Diagonal,      DiagonalFits,    PATTERN },
  {"setvalues",     SetValues,     NewEntriesFit,   PATTERN },
  {"setother",      SetOther,      NewEntriesFit,   PATTERN },
  {"zerorows",      ZeroRows,      ZeroRowsFits,    PATTERN },
  {"combine",       Combine,       CombineFits,     REPLACES},
  {"array",         Array,         NULL,            KEEPS   },
  {"random",        Random,        NULL,            KEEPS   },
  {"option",        Option,        NULL,            KEEPS   },
  {"claim",         Claim,         NULL,            KEEPS   },
  {"store",         Store,         StoreFits,       KEEPS   },
  {"retrieve",      Retrieve,      RetrieveFits,    KEEPS   },
  {"coo",           COO,           NULL,            REPLACES},
  {"preallocate",   Preallocate,   PreallocateFits, REPLACES},
  {"small",         Small,         NULL,            REPLACES},
  {"hang",          Hang,          NULL,            KEEPS   },
  {"columns",       Columns,       ColumnsFits,     PATTERN },
  {"held",          Held,          HeldFits,        KEEPS   },
};

#endif
