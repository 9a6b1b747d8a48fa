/* addsymbolic, addnumeric, axpysubset, check, rowlengths, diagonalplaces, submatrixsymbolic: against the reference;
   malformed arrays of every kind */
#include "csrtest.h"

static PetscErrorCode TestAdd(const char *name, const RefMat *A, const RefMat *B)
{
  PetscScalar alpha = HybTestRandomScalar(), beta = HybTestRandomScalar();
  HybCSR      a, b, c;
  RefMat      R;
  PetscCount  missing = -1, lacking = 0;

  PetscFunctionBegin;
  HybTestBegin("sum: %s", name);
  PetscCall(HybTestUpload(&mine, &A->csr, &a));
  PetscCall(HybTestUpload(&mine, &B->csr, &b));
  RefAdd(alpha, A, beta, B, &R);
  if (HybTestCall(ops->addsymbolic(exec, &keep, &work, &a, &b, &c)) && HybTestSamePattern(&c, &R)) {
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), c.nnz, sizeof(PetscScalar), &c.a));
    HybTestCall(ops->addnumeric(exec, &alpha, &a, &beta, &b, &c));
    HybTestSameMatrix(&c, &R, 2);
    /* both are subsets of the union */
    HybTestCall(ops->axpysubset(exec, &work, &alpha, &a, &c, &missing));
    HybTestCheck(!missing, "%td entries of A are not in A+B", missing);
    HybTestCall(ops->axpysubset(exec, NULL, &beta, &b, &c, NULL)); /* of B that is known */
    for (PetscCount k = 0; k < R.csr.nnz; k++) {
      R.csr.a[k] *= 2;
      R.mag[k] *= 2;
      R.terms[k] += 2;
    }
    HybTestSameMatrix(&c, &R, 2);
  }
  HybTestBegin("sum into a pattern that may lack entries: %s", name);
  for (PetscInt r = 0; r < A->csr.m; r++)
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      PetscBool stored;

      (void)RefGet(B, r, A->csr.j[k], &stored);
      lacking += !stored;
    }
  HybTestCall(ops->axpysubset(exec, &work, &alpha, &a, &b, &missing));
  HybTestCheck(missing == lacking, "%td missing, expected %td", missing, lacking);
  if (lacking) HybTestSameBits(B->csr.nnz, sizeof(PetscScalar), b.a, B->csr.a);
  RefMatDestroy(&R);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSubmatrix(const char *name, const RefMat *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend)
{
  HybCSR    a, s;
  PetscInt *there, *perm;
  RefMat    R;

  PetscFunctionBegin;
  HybTestBegin("%s, %" PetscInt_FMT " rows, columns %" PetscInt_FMT " to %" PetscInt_FMT, name, nrows, cstart, cend);
  PetscCall(HybTestUpload(&mine, &A->csr, &a));
  PetscCall(HybTestUploadArray(&mine, nrows, sizeof(PetscInt), rows, &there));
  RefSubmatrix(A, nrows, rows, cstart, cend, &R);
  if (HybTestCall(ops->submatrixsymbolic(exec, &keep, &work, &a, nrows, there, cstart, cend, &s, &perm)) && HybTestSamePattern(&s, &R)) {
    PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), s.nnz, sizeof(PetscScalar), &s.a));
    HybTestCall(ops->gather(exec, s.nnz, perm, PETSC_FALSE, a.a, s.a));
    HybTestSameBits(s.nnz, sizeof(PetscScalar), s.a, R.csr.a);
  }
  RefMatDestroy(&R);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* columns that are not the matrix's are refused before anything is read */
static PetscErrorCode TestSubmatrixRefused(void)
{
  const PetscInt range[][2] = {
    {-1, 3 },
    {3,  2 },
    {0,  11},
    {11, 12}
  },
                 row = 0;
  HybCSR    a, s;
  PetscInt *there, *perm;
  RefMat    A;

  PetscFunctionBegin;
  HybTestBegin("columns outside of the matrix for a submatrix");
  HybTestMatRandom(12, 10, 1, 5, &A);
  PetscCall(HybTestUpload(&mine, &A.csr, &a));
  PetscCall(HybTestUploadArray(&mine, 1, sizeof(PetscInt), &row, &there));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(range); k++) HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, ops->submatrixsymbolic(exec, &keep, &work, &a, 1, there, range[k][0], range[k][1], &s, &perm));
  RefMatDestroy(&A);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* expects the rows of bad[] (ascending, nbad of them) to be found */
static PetscErrorCode TestCheck(const char *what, const RefMat *A, PetscInt nbad, PetscInt first)
{
  HybCSR     a;
  PetscCount found = -1;
  PetscInt   row   = -2;

  PetscFunctionBegin;
  HybTestBegin("check: %s", what);
  PetscCall(HybTestUpload(&mine, &A->csr, &a));
  if (HybTestCall(ops->check(exec, &work, &a, &found, &row))) HybTestCheck(found == nbad && row == first, "%td bad rows, first %" PetscInt_FMT "; expected %" PetscInt_FMT ", first %" PetscInt_FMT, found, row, nbad, first);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all of it on the host, whatever the backend */
static PetscErrorCode TestRowLengths(const char *name, const HybCSR *A)
{
  PetscCount most = 0, some = 0, longest = -1, nonempty = -1;
  PetscInt  *expected = (PetscInt *)RefAlloc(A->m + 1, sizeof(PetscInt)), *length[2];

  PetscFunctionBegin;
  HybTestBegin("lengths of rows: %s", name);
  for (PetscInt r = 0; r < A->m; r++) {
    expected[r] = A->i[r + 1] - A->i[r];
    most        = PetscMax(most, expected[r]);
    some += expected[r] != 0;
  }
  for (int k = 0; k < 2; k++) length[k] = (PetscInt *)RefAlloc(A->m + 1, sizeof(PetscInt));
  if (HybTestCall(ops->rowlengths(exec, A->m, A->i, length, &longest, &nonempty))) {
    for (int k = 0; k < 2; k++) HybTestCheck(!memcmp(length[k], expected, sizeof(PetscInt) * (size_t)A->m), "array %d of lengths is wrong", k);
    HybTestCheck(longest == most && nonempty == some, "the longest of %td rows with entries has %td, expected %td and %td", nonempty, longest, some, most);
  }
  longest = nonempty = -1;
  if (HybTestCall(ops->rowlengths(exec, A->m, A->i, NULL, &longest, &nonempty))) HybTestCheck(longest == most && nonempty == some, "the longest of %td rows with entries has %td, expected %td and %td without the lengths", nonempty, longest, some, most);
  for (int k = 0; k < 2; k++) free(length[k]);
  free(expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDiagonalPlaces(const char *name, const HybCSR *A)
{
  HybCSR    a;
  PetscInt *expected = (PetscInt *)RefAlloc(A->m + 1, sizeof(PetscInt)), *place;

  PetscFunctionBegin;
  HybTestBegin("places of the diagonal: %s", name);
  for (PetscInt r = 0; r < A->m; r++) {
    expected[r] = A->i[r + 1];
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++)
      if (A->j[k] == r) expected[r] = k;
  }
  PetscCall(HybTestUpload(&mine, A, &a));
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), A->m, sizeof(PetscInt), &place));
  if (HybTestCall(ops->diagonalplaces(exec, &a, place))) HybTestSameInts(A->m, place, expected);
  free(expected);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSameRows(const char *name, const HybCSR *A)
{
  HybCSR         a;
  unsigned char *same, *found = (unsigned char *)RefAlloc(A->m + 1, 1);

  PetscFunctionBegin;
  HybTestBegin("rows that are like the one before: %s", name);
  PetscCall(HybTestUpload(&mine, A, &a));
  PetscCall(HybArenaAlloc(&mine, HYB_WORK(exec), A->m, 1, &same));
  if (HybTestCall(ops->samerows(exec, &a, same))) {
    PetscInt wrong = 0;

    PetscCall(exec->backend->copy(exec, found, same, (size_t)A->m, HYB_COPY_DEVICE_TO_HOST));
    for (PetscInt r = 0; r < A->m; r++) {
      PetscBool like = (PetscBool)(r > 0 && A->i[r + 1] - A->i[r] == A->i[r] - A->i[r - 1]);

      for (PetscInt k = A->i[r]; k < A->i[r + 1] && like; k++) like = (PetscBool)(A->j[k] == A->j[k - A->i[r] + A->i[r - 1]]);
      wrong += found[r] != (like ? 1 : 0);
    }
    HybTestCheck(!wrong, "%" PetscInt_FMT " of %" PetscInt_FMT " rows", wrong, A->m);
  }
  free(found);
  PetscCall(Forget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of blocks, whose rows are alike by threes but for some, and two long rows that differ in the last column */
static PetscErrorCode TestSameRowsOfBlocks(void)
{
  HybCSR         A      = {605, 1000, 0, NULL, NULL, NULL};
  const PetscInt length = 900;
  PetscInt      *i = (PetscInt *)RefAlloc(A.m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(6 * A.m + 3 * length, sizeof(PetscInt));

  PetscFunctionBegin;
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt n = r >= A.m - 3 ? length : r % 50 == 7 ? 0
                                                           : 6;

    i[r] = (PetscInt)A.nnz;
    for (PetscInt k = 0; k < n; k++) j[A.nnz++] = r >= A.m - 3 ? k + (k == n - 1 && r == A.m - 1) : r / 3 + k + (k == 5 && r % 20 == 4);
  }
  i[A.m] = (PetscInt)A.nnz;
  A.i    = i;
  A.j    = j;
  A.a    = (HybScalar *)RefAlloc(A.nnz, sizeof(HybScalar));
  PetscCall(TestSameRows("blocks", &A));
  RefFree(A.a, i, j);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* more rows than one thread of the crew takes, the longest one of them the last, and one of as many entries as may
   be */
static PetscErrorCode TestRowLengthsOfMany(void)
{
  const PetscInt m = 2000001, last[] = {9, PETSC_MAX_INT - 4 * m};
  HybCSR         A = {m, m, 0, NULL, NULL, NULL};

  PetscFunctionBegin;
  A.i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(last); k++) {
    A.i[0] = 0;
    for (PetscInt r = 0; r < m; r++) A.i[r + 1] = A.i[r] + (r == m - 1 ? last[k] : r % 4);
    A.nnz = A.i[m];
    PetscCall(TestRowLengths(k ? "one of two billion entries" : "many", &A));
  }
  free(A.i);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Malformed(void)
{
  const PetscInt m = HybTestSize(500, 70);
  RefMat         A, B;
  PetscInt       k;

  PetscFunctionBegin;
  HybTestMatRandom(m, m, 3, 9, &A);
  PetscCall(TestCheck("a good matrix", &A, 0, -1));
#define SPOIL(what, nbad, first, change)         \
  do {                                           \
    RefMatCopy(&A, &B);                          \
    k = B.csr.i[m / 2];                          \
    change;                                      \
    PetscCall(TestCheck(what, &B, nbad, first)); \
    RefMatDestroy(&B);                           \
  } while (0)
  SPOIL("a duplicate column", 1, m / 2, B.csr.j[k + 1] = B.csr.j[k]);
  SPOIL("two columns swapped", 1, m / 2, PetscInt t = B.csr.j[k]; B.csr.j[k] = B.csr.j[k + 1]; B.csr.j[k + 1] = t);
  SPOIL("a negative column", 1, m / 2, B.csr.j[k] = -1);
  SPOIL("the most negative column", 1, m / 2, B.csr.j[k] = PETSC_MIN_INT);
  SPOIL("a column n", 1, m / 2, B.csr.j[B.csr.i[m / 2 + 1] - 1] = m);
  SPOIL("the largest column", 1, m / 2, B.csr.j[B.csr.i[m / 2 + 1] - 1] = PETSC_MAX_INT);
  SPOIL("three bad rows", 3, 0, B.csr.j[0] = -5; B.csr.j[k] = -5; B.csr.j[B.csr.nnz - 1] = m);
  SPOIL("every row bad", m, 0, for (PetscInt q = 0; q < B.csr.nnz; q++) B.csr.j[q] = 0);
  SPOIL("a last offset below nnz", 1, m - 1, B.csr.nnz++; B.csr.j = (PetscInt *)realloc(B.csr.j, (size_t)B.csr.nnz * sizeof(PetscInt)); B.csr.a = (PetscScalar *)realloc(B.csr.a, (size_t)B.csr.nnz * sizeof(PetscScalar)); B.csr.j[B.csr.nnz - 1] = m - 1; B.csr.a[B.csr.nnz - 1] = 1);
#undef SPOIL
  RefMatDestroy(&A);
  /* offsets: the row before and the row after a wrong one may both be bad, so the first and the presence are what is
     checked */
  for (int variant = 0; variant < 6; variant++) {
    static const char *const what[] = {"an offset that descends", "a negative offset", "an offset beyond nnz", "the largest offset", "a first offset that is not 0", "all offsets wild"};
    HybCSR                   a;
    PetscCount               found = 0;
    PetscInt                 row   = -1;

    HybTestBegin("check: %s", what[variant]);
    HybTestMatRandom(m, m, 3, 9, &B);
    switch (variant) {
    case 0:
      B.csr.i[m / 2] = B.csr.i[m / 2 - 1] - 1;
      break;
    case 1:
      B.csr.i[m / 2] = -7;
      break;
    case 2:
      B.csr.i[m / 2] = (PetscInt)B.csr.nnz + 1;
      break;
    case 3:
      B.csr.i[m / 2] = PETSC_MAX_INT;
      break;
    case 4:
      B.csr.i[0] = 1;
      break;
    default:
      for (PetscInt r = 0; r <= m; r++) B.csr.i[r] = HybTestRandomInt(PETSC_MIN_INT / 2, PETSC_MAX_INT / 2);
      B.csr.i[0] = 3;
    }
    PetscCall(HybTestUpload(&mine, &B.csr, &a));
    if (HybTestCall(ops->check(exec, &work, &a, &found, &row))) {
      HybTestCheck(found > 0, "nothing was found");
      HybTestCheck(variant >= 4 ? row == 0 : row == m / 2 - 1, "the first bad row is %" PetscInt_FMT, row);
    }
    RefMatDestroy(&B);
    PetscCall(Forget());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  char   name[64];
  RefMat A, B, T;

  PetscFunctionBegin;
  PetscCall(Start());
  PetscCall(TestSubmatrixRefused());
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    const PetscInt m = A.csr.m, n = A.csr.n;
    PetscInt      *rows = (PetscInt *)RefAlloc(2 * (PetscCount)m + 1, sizeof(PetscInt)), half = 0;
    char           what[128];

    PetscCall(TestCheck(name, &A, 0, -1));
    PetscCall(TestRowLengths(name, &A.csr));
    PetscCall(TestDiagonalPlaces(name, &A.csr));
    PetscCall(TestSameRows(name, &A.csr));
    snprintf(what, sizeof(what), "%s with itself", name);
    PetscCall(TestAdd(what, &A, &A));
    HybTestMatEmpty(m, n, &B);
    snprintf(what, sizeof(what), "%s with nothing", name);
    PetscCall(TestAdd(what, &A, &B));
    PetscCall(TestAdd(what, &B, &A));
    RefMatDestroy(&B);
    HybTestMatRandom(m, n, 0, PetscMin(n, 6), &B);
    snprintf(what, sizeof(what), "%s with a random one", name);
    PetscCall(TestAdd(what, &A, &B));
    PetscCall(TestAdd(what, &B, &A));
    RefMatDestroy(&B);
    if (m == n) {
      RefTranspose(&A, PETSC_FALSE, &T);
      snprintf(what, sizeof(what), "%s with its transpose", name);
      PetscCall(TestAdd(what, &A, &T));
      RefMatDestroy(&T);
    }
    for (PetscInt r = 0; r < m; r++) rows[r] = r;
    snprintf(what, sizeof(what), "part of %s", name);
    PetscCall(TestSubmatrix(what, &A, m, rows, 0, n));
    PetscCall(TestSubmatrix(what, &A, m, rows, n / 3, n / 3));
    PetscCall(TestSubmatrix(what, &A, m, rows, n / 3, n));
    PetscCall(TestSubmatrix(what, &A, 0, rows, 0, n));
    for (PetscInt r = m - 1; r >= 0; r -= 2) rows[half++] = r;
    PetscCall(TestSubmatrix(what, &A, half, rows, n / 4, n - n / 4));
    if (m) {
      for (PetscInt r = 0; r < 2 * m; r++) rows[r] = HybTestRandomInt(0, m);
      PetscCall(TestSubmatrix(what, &A, 2 * m, rows, n / 5, n - n / 6));
    }
    free(rows);
    RefMatDestroy(&A);
  }
  HybTestMatPowerLaw(HybTestSize(5000, 300), HybTestSize(5000, 300), 7, &A);
  HybTestMatDenseRow(HybTestSize(5000, 300), HybTestSize(5000, 300), 100, 5, &B);
  PetscCall(TestAdd("larger ones", &A, &B));
  RefMatDestroy(&A, &B);
  PetscCall(Malformed());
  PetscCall(TestRowLengthsOfMany());
  PetscCall(TestSameRowsOfBlocks());
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
