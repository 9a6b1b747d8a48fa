/*
  C = A*B by each method of the backend by name, of operands whose halves come from different shapes: blocks with holes,
  diagonals with gaps, repeated rows of which some differ, rows that follow each other, far clusters, lengths about the
  ends of bins, dense and empty rows, and few rows of very many products. One object of a method goes from product to
  product, with plans of numeric phases or without, by tuning drawn at random, and meets NaN, infinities, zeros of
  both signs and denormals. Every entry is the reference's number, sums in A's order.

    spgemm_random -backend LIB [-seed N] [-runs N] [-first K]

  does the products K to K + N - 1 of a seed, K being named in a failure.
*/
#include "spgemmtest.h"

#define KINDS 11
static const char *const Names[KINDS] = {"random", "power law", "banded", "diagonals", "blocks", "blocks with holes", "repeated rows", "dense rows", "clusters", "bins", "following rows"};

static PetscInt Between(PetscInt lo, PetscInt hi)
{
  return HybTestRandomInt(lo, PetscMax(hi, lo) + 1);
}

/* sorted, each column once, as many of them as are left */
static void FromColumns(PetscInt m, PetscInt n, PetscCount count, PetscInt *ci, PetscInt *cj, RefMat *A)
{
  PetscScalar *v = HybTestRandomVector(count);
  RefMat       sorted;

  RefCOO(m, n, count, ci, cj, v, &sorted);
  HybTestMatArrays(m, n, sorted.csr.i, sorted.csr.j, NULL, A);
  RefMatDestroy(&sorted);
  RefFree(ci, cj, v);
}

static PetscInt BlockSize; /* of both operands of a product, where it divides them */

static void Blocks(PetscInt m, PetscInt n, PetscBool holes, RefMat *A)
{
  PetscInt  bs = BlockSize, nnz = 0;
  PetscInt *ci, *cj;
  RefMat    P;

  while (bs > 1 && (m % bs || n % bs)) bs--;
  HybTestMatRandom(m / bs, n / bs, 0, Between(1, 24 / bs), &P);
  HybTestMatBlock(&P, bs, A);
  RefMatDestroy(&P);
  if (!holes || !A->csr.nnz) return;
  ci = (PetscInt *)RefAlloc(A->csr.nnz + 4, sizeof(PetscInt));
  cj = (PetscInt *)RefAlloc(A->csr.nnz + 4, sizeof(PetscInt));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      if (HybTestRandomInt(0, 40) == 0) continue;
      ci[nnz]   = r;
      cj[nnz++] = A->csr.j[k];
    }
  }
  RefMatDestroy(A);
  FromColumns(m, n, nnz, ci, cj, A);
}

/* a few shapes of rows about the diagonal, in runs; some rows have an entry more */
static void Repeat(PetscInt m, PetscInt n, RefMat *A)
{
  PetscInt  shape[4][12], nshape[4], nnz = 0, kind = 0;
  PetscInt *ci = (PetscInt *)RefAlloc((PetscCount)m * 13 + 1, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc((PetscCount)m * 13 + 1, sizeof(PetscInt));

  for (int s = 0; s < 4; s++) {
    nshape[s] = Between(0, 12);
    for (PetscInt k = 0; k < nshape[s]; k++) shape[s][k] = Between(-n / 4 - 1, n / 4 + 1);
  }
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt c = (PetscInt)((PetscCount)r * n / m);

    if (HybTestRandomInt(0, 6) == 0) kind = HybTestRandomInt(0, 4);
    for (PetscInt k = 0; k < nshape[kind]; k++) {
      if (c + shape[kind][k] < 0 || c + shape[kind][k] >= n) continue;
      ci[nnz]   = r;
      cj[nnz++] = c + shape[kind][k];
    }
    if (n && HybTestRandomInt(0, 30) == 0) {
      ci[nnz]   = r;
      cj[nnz++] = HybTestRandomInt(0, n);
    }
  }
  FromColumns(m, n, nnz, ci, cj, A);
}

/* runs of neighbouring columns at random places */
static void Clusters(PetscInt m, PetscInt n, RefMat *A)
{
  PetscInt  nnz = 0;
  PetscInt *ci = (PetscInt *)RefAlloc((PetscCount)m * 150 + 1, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc((PetscCount)m * 150 + 1, sizeof(PetscInt));

  for (PetscInt r = 0; r < m && n; r++) {
    for (PetscInt runs = Between(0, 4); runs > 0; runs--) {
      const PetscInt from = HybTestRandomInt(0, n), len = Between(1, HybTestRandomInt(0, 8) ? 5 : 35);

      for (PetscInt c = from; c < PetscMin(n, from + len); c++) {
        ci[nnz]   = r;
        cj[nnz++] = c;
      }
    }
  }
  FromColumns(m, n, nnz, ci, cj, A);
}

/* rows that are the one before, one column further, for a few or for many rows; some columns stand side by side */
static void Following(PetscInt m, PetscInt n, RefMat *A)
{
  const PetscInt most = Between(0, HybTestRandomInt(0, 3) ? 6 : 40), breaks = Between(2, 60);
  PetscInt       nnz = 0, len = 0, col[40];
  PetscInt      *ci = (PetscInt *)RefAlloc((PetscCount)m * 40 + 1, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc((PetscCount)m * 40 + 1, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) {
    PetscBool anew = (PetscBool)(!r || HybTestRandomInt(0, breaks) == 0);

    for (PetscInt k = 0; k < len; k++) anew = (PetscBool)(++col[k] >= n || anew);
    if (anew) {
      len = Between(0, most);
      for (PetscInt k = 0; k < len; k++) {
        col[k] = k && HybTestRandomInt(0, 2) ? col[k - 1] + 1 : HybTestRandomInt(0, HybTestRandomInt(0, 2) ? n : n / 2 + 1);
        col[k] = PetscMin(col[k], n - 1);
      }
    }
    for (PetscInt k = 0; k < len; k++) {
      ci[nnz]   = r;
      cj[nnz++] = col[k];
    }
  }
  FromColumns(m, n, nnz, ci, cj, A);
}

static void Operand(PetscInt kind, PetscInt m, PetscInt n, RefMat *A)
{
  PetscInt list[64], nlist;

  if (!m || !n) {
    HybTestMatEmpty(m, n, A);
    return;
  }
  switch (kind) {
  case 1:
    HybTestMatPowerLaw(m, n, Between(1, 6), A);
    break;
  case 2:
    HybTestMatBanded(m, n, Between(0, 5), Between(0, 5), A);
    break;
  case 3:
    nlist   = Between(1, 9);
    list[0] = Between(-m, 2);
    for (PetscInt k = 1; k < nlist; k++) list[k] = list[k - 1] + 1 + HybTestRandomInt(0, HybTestRandomInt(0, 2) ? 2 : n / 3 + 1);
    Diagonals(m, n, nlist, list, HybTestRandomInt(0, 2) ? 100 : 80, A);
    break;
  case 4:
  case 5:
    Blocks(m, n, (PetscBool)(kind == 5), A);
    break;
  case 6:
    Repeat(m, n, A);
    break;
  case 7:
    HybTestMatDenseRow(m, PetscMin(n, 3000), HybTestRandomInt(0, m), Between(0, PetscMin(n, 3)), A);
    A->csr.n = n;
    break;
  case 8:
    Clusters(m, n, A);
    break;
  case 9: {
    static const PetscInt ends[]  = {0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512};
    PetscInt             *lengths = (PetscInt *)RefAlloc(m + 1, sizeof(PetscInt));

    for (PetscInt r = 0; r < m; r++) lengths[r] = ends[HybTestRandomInt(0, HybTestRandomInt(0, 10) ? 8 : 17)] + HybTestRandomInt(0, 3);
    HybTestMatLengths(m, n, lengths, A);
    free(lengths);
    break;
  }
  case 10:
    Following(m, n, A);
    break;
  default:
    HybTestMatRandom(m, n, 0, Between(0, HybTestRandomInt(0, 5) ? 12 : 60), A);
  }
  if (HybTestRandomInt(0, 4) == 0) HybTestMatEmptyRows(A, HybTestRandomInt(0, m), m, Between(1, 5));
}

/* Few rows, of up to thousands of products: lists that are long, overflow and grow, by batches of whole rows of B and
   of pieces of one */
static void LongRows(char what[128], RefMat *A, RefMat *B)
{
  static const PetscInt ends[] = {1, 2, 32, 64, 256, 512, 1024}, ofb[] = {0, 1, 2, 3, 16, 32, 64, 128, 2048, 8192};
  const PetscInt        m = Between(1, 4), l = Between(1, HybTestRandomInt(0, 2) ? 1100 : 70), n = Between(1, HybTestRandomInt(0, 3) ? 20000 : 200000);
  const PetscInt        how = HybTestRandomInt(0, 5), target = HybTestSize(2000000, 120000) >> 2 * HybTestRandomInt(0, 3);
  PetscInt             *lengths = (PetscInt *)RefAlloc(PetscMax(m, l) + 1, sizeof(PetscInt)), *ci, *cj;
  PetscCount            all = 0, nnz = 0;

  snprintf(what, 128, "long rows, %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT ", columns %" PetscInt_FMT, m, l, n, how);
  for (PetscInt r = 0; r < m; r++) lengths[r] = ends[HybTestRandomInt(0, 7)] + HybTestRandomInt(-1, 2);
  HybTestMatLengths(m, l, lengths, A);
  for (PetscInt r = 0; r < l; r++) {
    PetscInt length = ofb[HybTestRandomInt(0, 10)] + HybTestRandomInt(-1, 2);

    /* the longer, the fewer */
    if (HybTestRandomInt(0, 1 + (PetscInt)((PetscCount)length * l / target))) length = HybTestRandomInt(0, 4);
    lengths[r] = PetscMax(0, PetscMin(n, length));
    all += lengths[r];
  }
  ci = (PetscInt *)RefAlloc(all + 1, sizeof(PetscInt));
  cj = (PetscInt *)RefAlloc(all + 1, sizeof(PetscInt));
  for (PetscInt r = 0; r < l; r++) {
    for (PetscInt k = 0; k < lengths[r]; k++) {
      PetscCount c = HybTestRandomInt(0, n);

      if (how == 1) c = k;                                        /* those of all rows */
      if (how == 2) c = (PetscCount)(l - 1 - r) * n / l + k;      /* before those of the row before */
      if (how == 3) c = r + (PetscCount)k * (1 + n / lengths[r]); /* between these */
      if (how == 4) c = n - 1 - k;                                /* the last ones */
      ci[nnz]   = r;
      cj[nnz++] = (PetscInt)(c % n);
    }
  }
  free(lengths);
  FromColumns(l, n, nnz, ci, cj, B);
}

static PetscInt Size(void)
{
  switch (HybTestRandomInt(0, 8)) {
  case 0:
    return Between(0, 9);
  case 1:
    return 120 * Between(1, 3);
  case 2:
    return HybTestRandomInt(0, 4) ? 240 : Between(1000, 1100);
  default:
    return Between(1, 150);
  }
}

static void Odd(RefMat *A)
{
  static const PetscReal odd[] = {(PetscReal)NAN, (PetscReal)INFINITY, -(PetscReal)INFINITY, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0};

  for (PetscCount k = 0; k < A->csr.nnz; k++) {
    const PetscInt dice = HybTestRandomInt(0, 90);

    if (dice < 9) A->csr.a[k] = odd[dice];
  }
}

/* denormals, which are not taken for zeros, and whose sums are exact */
static void Denormal(RefMat *A)
{
  for (PetscCount k = 0; k < A->csr.nnz; k++) A->csr.a[k] *= 1 / PETSC_MAX_REAL;
}

/* what is finite, and which sign a zero has; what inf * complex is, is the library's affair, and so are zeros there */
static void SameOdd(const HybCSR *DC, PetscCount n, const PetscScalar *expected)
{
  PetscScalar *found = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));

  if (HybTestCall(HybTestDownloadArray(n, sizeof(PetscScalar), DC->a, found))) {
    for (PetscCount k = 0; k < n; k++) {
      const PetscReal f = PetscRealPart(found[k]), e = PetscRealPart(expected[k]);

      if (!HybTestCheck(!PetscIsInfOrNanScalar(found[k]) == !PetscIsInfOrNanScalar(expected[k]) && (PetscDefined(USE_COMPLEX) || e != 0 || f != 0 || !signbit(f) == !signbit(e)), "entry %td is %g, expected %g", k, (double)f, (double)e)) break;
    }
  }
  free(found);
}

/* By the method's own roundings. C: its pattern, and of values that were no smaller how large sums' terms are */
static void Values(HybSpGEMM *mm, const RefMat *A, const RefMat *B, const RefMat *C, const HybCSR *DC, PetscBool odd)
{
  PetscScalar *expected = (Is("tile") && HYBTEST_TILES ? RefProductFused : RefProductInOrder)(A, B, C);

  if (odd) SameOdd(DC, C->csr.nnz, expected);
  if (odd && PetscDefined(USE_COMPLEX)) {
    free(expected);
    return;
  }
  if (Is("rowmerge") && HybCountersGet(&mm->counters, "factors") > 1) /* sums of sums */
    HybTestSameScalars(C->csr.nnz, DC->a, expected, C->mag, C->terms, 4);
  else if (PetscDefined(USE_COMPLEX))
    HybTestSameBits(C->csr.nnz, sizeof(PetscScalar), DC->a, expected);
  else
    SameNumbers(DC, C->csr.nnz, expected);
  free(expected);
}

static HybSpGEMM  Objects[16];
static PetscBool  Made_[16];
static PetscCount Ran[16];

/* one method's product, numeric phases of other values, in other arrays */
static void RandomProduct(size_t which, RefMat *A, RefMat *B, const RefMat *C, PetscBool odd)
{
  HybSpGEMM *mm = &Objects[which];
  HybCSR     DA, DB, DC;
  PetscBool  made;

  if (Made_[which] && HybTestRandomInt(0, 3) == 0) {
    HybTestCall(HybSpGEMMDestroy(mm));
    Made_[which] = PETSC_FALSE;
  }
  if (!Made_[which] && !HybTestCall(HybSpGEMMInit(mm, HybTestExec(), method->name, Is("rowmerge") ? (PetscInt[]){0, 2, 3, 8, 32}[HybTestRandomInt(0, 5)] : 0))) return;
  Made_[which] = PETSC_TRUE;
  mm->reuse    = (PetscBool)HybTestRandomInt(0, 2);
  if (HybTestCall(HybTestUpload(&keep, &A->csr, &DA))) {
    DB = DA;
    if (A != B) HybTestCall(HybTestUpload(&keep, &B->csr, &DB));
    if (HybTestRandomInt(0, 6) == 0) { /* the pattern first */
      HybCSR         a = DA, b = DB;
      PetscErrorCode ierr;

      a.a = b.a = NULL;
      PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = HybSpGEMMSymbolic(mm, &a, &b, &out, &DC);
      PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
      if (Made(ierr)) HybTestSamePattern(&DC, C);
      HybTestCheck(!mm->work.bytes, "%zu bytes of workspace are kept", mm->work.bytes);
    }
    HybTestCall(HybArenaReset(&out));
    PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(method->fits ? PetscReturnErrorHandler : PetscTraceBackErrorHandler, NULL));
    made = Made(MultiplyWithin(mm, &DA, &DB, 5, &DC));
    PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
    if (made) {
      HybTestCheck(mm->method == method, "%s ran", mm->method->name);
      if (HybTestSamePattern(&DC, C)) {
        Ran[which]++;
        Values(mm, A, B, C, &DC, odd);
        for (int again = HybTestRandomInt(0, 4); again > 0 && !HybTestFailed(); again--) {
          RefMat A2, B2, bounds;

          HybTestMatArrays(A->csr.m, A->csr.n, A->csr.i, A->csr.j, NULL, &A2);
          HybTestMatArrays(B->csr.m, B->csr.n, B->csr.i, B->csr.j, NULL, &B2);
          HybTestRandomize(&A2);
          HybTestRandomize(&B2);
          if (again == 2) Denormal(&A2);
          RefSpGEMM(&A2, &B2, &bounds);
          if (again == 1) Odd(&A2);
          if (again == 1) Odd(&B2);
          if (HybTestCall(HybTestUpload(&keep, &A2.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B2.csr, &DB)) && HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar))) && HybTestCall(HybSpGEMMNumeric(mm, &DA, &DB, &DC))) Values(mm, &A2, &B2, &bounds, &DC, (PetscBool)(again == 1));
          RefMatDestroy(&A2, &B2, &bounds);
        }
      }
    }
  }
  HybTestCall(HybTestReset(&keep, &out));
}

static void Tune(void)
{
  static const struct {
    const char *name, *values[5];
  } tuning[] = {
    {"hash_lists",       {"0", "1", "3", "64", NULL}   },
    {"hash_places",      {"-1", "0", "1000", NULL}     },
    {"diagonal_rows",    {"0", "32", "64", "128", NULL}},
    {"diagonal_threads", {"0", "256", "512", NULL}     },
    {"diagonal_runs",    {"no", "yes", NULL}           },
    {"masks_lanes",      {"0", "4", "8", "16", NULL}   }
  };

  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(tuning); t++) {
    PetscInt n = 0;

    while (tuning[t].values[n]) n++;
    HybTestCall(HybTuningSet(tuning[t].name, HybTestRandomInt(0, 3) ? NULL : tuning[t].values[HybTestRandomInt(0, n)]));
  }
}

static PetscCount Products(const RefMat *A, const RefMat *B)
{
  PetscCount *rows = (PetscCount *)RefAlloc(A->csr.m, sizeof(PetscCount)), all = RefProducts(A, B, rows);

  free(rows);
  return all;
}

/* operands of run k, C's pattern; PETSC_FALSE: too much for here */
static PetscBool Make(char what[128], RefMat *A, RefMat *B, PetscBool *same)
{
  static const PetscInt sizes[] = {2, 3, 4, 5, 6, 8};
  const PetscInt        how     = HybTestRandomInt(0, 7);
  PetscInt              ka = HybTestRandomInt(0, KINDS), kb = HybTestRandomInt(0, KINDS), m = Size(), l = Size(), n = HybTestRandomInt(0, 6) ? Size() : Between(1000, 300000);

  *same     = PETSC_FALSE;
  BlockSize = sizes[HybTestRandomInt(0, 6)];
  if (how == 5) { /* blocks */
    ka = HybTestRandomInt(0, 5) ? 4 : 5;
    kb = HybTestRandomInt(0, 5) ? 4 : 5;
    m -= m % BlockSize;
    l += BlockSize - l % BlockSize;
    n += BlockSize - n % BlockSize;
  }
  if (how == 6) {
    LongRows(what, A, B);
  } else if (how == 0) {
    snprintf(what, 128, "%s, %" PetscInt_FMT ", squared", Names[ka], m);
    Operand(ka, m, m, A);
    if (HybTestRandomInt(0, 2))
      *same = PETSC_TRUE;
    else
      RefMatCopy(A, B);
  } else if (how == 1) {
    snprintf(what, 128, "%s, %" PetscInt_FMT " x %" PetscInt_FMT ", times its transpose", Names[ka], m, l);
    Operand(ka, m, l, A);
    RefTranspose(A, PETSC_FALSE, B);
  } else {
    snprintf(what, 128, "%s times %s, %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT, Names[ka], Names[kb], m, l, n);
    Operand(ka, m, l, A);
    Operand(kb, l, n, B);
  }
  if (Products(A, *same ? A : B) <= HybTestSize(2000000, 60000)) return PETSC_TRUE;
  RefMatDestroy(A);
  if (!*same) RefMatDestroy(B);
  return PETSC_FALSE;
}

static void Run(PetscInt k)
{
  char      what[128];
  PetscBool same;
  PetscInt  values;
  size_t    which = 0;
  RefMat    A, B, C;

  while (!Make(what, &A, &B, &same)) continue;
  HybTestBegin("product %" PetscInt_FMT ": %s", k, what);
  values = HybTestRandomInt(0, 4);
  if (values == 0 && !same) Denormal(&A);
  RefSpGEMM(&A, same ? &A : &B, &C);
  if (values == 1) Odd(&A);
  if (values == 1 && !same) Odd(&B);
  Tune();
  HybTestCheck(C.csr.m == A.csr.m, "rows");
  for (const HybSpGEMMMethod *const *table = HybTestExec()->backend->spgemm; table && *table && !HybTestFailed(); table++, which++) {
    method = *table;
    if (Is("tile") && !HYBTEST_TILES) continue;
    RandomProduct(which, &A, same ? &A : &B, &C, (PetscBool)(values == 1));
    if (HybTestFailed()) printf("  by %s\n", method->name);
  }
  RefMatDestroy(&A);
  if (!same) RefMatDestroy(&B);
  RefMatDestroy(&C);
}

static PetscErrorCode Body(void)
{
  PetscInt runs = HybTestSize(400, 40), first = 0;
  size_t   which = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(HybTestArenas(HybTestExec(), &keep, &out));
  for (PetscInt k = 0; k < first + runs; k++) {
    if (HybTestMine() && k >= first) Run(k);
  }
  for (const HybSpGEMMMethod *const *table = HybTestExec()->backend->spgemm; table && *table; table++, which++) {
    if (Made_[which]) PetscCall(HybSpGEMMDestroy(&Objects[which]));
    printf("%s: %td products\n", (*table)->name, Ran[which]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
