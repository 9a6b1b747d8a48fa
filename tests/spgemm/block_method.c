/*
  C = A*B by SpGEMM method "block": patterns of whole blocks of every size, rows about every bin's end, and what it
  declines.
*/
#include "blockoperands.h"

static const PetscInt sizes[] = {2, 3, 4, 5, 6, 8};

/* does the pattern consist of whole blocks of bs? Asked of every entry */
static PetscBool Consists(const RefMat *A, PetscInt bs)
{
  const HybCSR *M = &A->csr;

  if (M->m % bs || M->n % bs) return PETSC_FALSE;
  for (PetscInt r = 0; r < M->m; r++) {
    const PetscInt first = M->i[r / bs * bs], len = M->i[r / bs * bs + 1] - first;

    if (len % bs || M->i[r + 1] - M->i[r] != len) return PETSC_FALSE;
    for (PetscInt k = 0; k < len; k++) {
      if (M->j[M->i[r] + k] != M->j[first + k] || M->j[first + k] != M->j[first + k / bs * bs] + k % bs || M->j[first + k / bs * bs] % bs) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

/* the largest size that both consist of, or 0 */
static PetscInt Largest(const RefMat *A, const RefMat *B)
{
  for (int k = (int)PETSC_STATIC_ARRAY_LENGTH(sizes) - 1; k >= 0; k--) {
    if (Consists(A, sizes[k]) && Consists(B, sizes[k])) return sizes[k];
  }
  return 0;
}

static void CheckCounters(const HybSpGEMM *mm, const RefMat *A, const RefMat *B, const RefMat *C)
{
  const PetscInt bs = Largest(A, B);

  CheckStats(mm, A, B);
  HybTestCheck(HybCountersGet(&mm->counters, "rows by blocks") == A->csr.m, "%td rows by blocks", HybCountersGet(&mm->counters, "rows by blocks"));
  HybTestCheck(HybCountersGet(&mm->counters, "block size") == bs && HybCountersGet(&mm->counters, "pairs of blocks") * bs * bs * bs == mm->stats.products, "%td pairs of size %td, expected %" PetscInt_FMT, HybCountersGet(&mm->counters, "pairs of blocks"), HybCountersGet(&mm->counters, "block size"), bs);
}

/* By this name; where the patterns do not consist of blocks the error */
static void Check(const RefMat *A, const RefMat *B)
{
  HybSpGEMM mm;
  HybCSR    DA, DB, DC;

  if (Largest(A, B))
    CheckProduct("block", A, B, RefProductInOrder, CheckCounters);
  else if (Begin(&mm, A, B, &DA, &DB)) {
    HybTestCallFails(PETSC_ERR_SUP, HybSpGEMMSymbolic(&mm, &DA, &DB, &out, &DC));
    HybTestCheck(!mm.work.bytes && !mm.keep.bytes, "%zu bytes are kept", mm.work.bytes + mm.keep.bytes);
    Finish(&mm);
  }
}

/* the same of patterns whose entries become blocks */
static void CheckBlocks(const RefMat *P, const RefMat *Q, PetscInt bs)
{
  RefMat A, B;

  HybTestMatBlock(P, bs, &A);
  if (P != Q) HybTestMatBlock(Q, bs, &B);
  Check(&A, P == Q ? &A : &B);
  RefMatDestroy(&A);
  if (P != Q) RefMatDestroy(&B);
}

/* a case of such, which are destroyed */
static void Case(const char *what, PetscInt bs, RefMat P, RefMat Q)
{
  HybTestBegin("blocks of %" PetscInt_FMT ": %s", bs, what);
  CheckBlocks(&P, &Q, bs);
  RefMatDestroy(&P, &Q);
}

static void Sizes(void)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
    const PetscInt bs = sizes[k];
    RefMat         P, Q, A, B;

    Case("rectangular, rows of all lengths", bs, HybTestMat(Random, 23, 17, 0, 5), HybTestMat(Random, 17, 29, 0, 17));
    Q = HybTestMat(PowerLaw, 40, 90, 9);
    HybTestMatEmptyRows(&Q, 3, 40, 5);
    Case("long and short rows", bs, HybTestMat(DenseRow, 30, 40, 7, 3), Q);
    Case("no entries in A", bs, HybTestMat(Empty, 5, 7), HybTestMat(Random, 7, 3, 1, 2));
    Case("no entries in B", bs, HybTestMat(Random, 5, 7, 1, 2), HybTestMat(Empty, 7, 3));
    Case("no rows", bs, HybTestMat(Empty, 0, 0), HybTestMat(Empty, 0, 0));
    HybTestBegin("blocks of %" PetscInt_FMT ": a stencil squared", bs);
    HybTestMatStencil(27, 5, 4, 3, &P);
    CheckBlocks(&P, &P, bs);
    RefMatDestroy(&P);
    HybTestBegin("blocks of %" PetscInt_FMT ": the other operand has none", bs);
    HybTestMatBanded(12, 12, 1, 1, &P);
    HybTestMatBlock(&P, bs, &A);
    HybTestMatBanded(12 * bs, 12 * bs, 2, 1, &B);
    HybTestCheck(!Largest(&A, &B), "blocks of %" PetscInt_FMT, Largest(&A, &B));
    Check(&A, &B);
    Check(&B, &A);
    RefMatDestroy(&P, &A, &B);
  }
}

/* each entry becomes rows x columns of them */
static void Coarser(const RefMat *P, PetscInt rows, PetscInt columns, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc((PetscCount)P->csr.m * rows + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(P->csr.nnz * rows * columns, sizeof(PetscInt)), nnz = 0;

  for (PetscInt r = 0; r < P->csr.m * rows; r++) {
    for (PetscInt k = P->csr.i[r / rows]; k < P->csr.i[r / rows + 1]; k++)
      for (PetscInt c = 0; c < columns; c++) j[nnz++] = P->csr.j[k] * columns + c;
    i[r + 1] = nnz;
  }
  HybTestMatArrays(P->csr.m * rows, P->csr.n * columns, i, j, NULL, A);
  RefFree(i, j);
}

/* interpolation from six unknowns to three is of blocks of three: A P, R A, R (A P) */
static void Mixed(void)
{
  static const PetscInt pairs[][2] = {
    {3, 6},
    {2, 4},
    {4, 6},
    {2, 3},
    {6, 8}
  };

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(pairs); k++) {
    const PetscInt fine = pairs[k][0], coarse = pairs[k][1];
    RefMat         S, T, A, P, R, AP;

    HybTestBegin("blocks of %" PetscInt_FMT " x %" PetscInt_FMT, fine, coarse);
    HybTestMatStencil(9, 13, 7, 1, &S);
    HybTestMatRandom(91, 11, 1, 3, &T);
    HybTestMatBlock(&S, fine, &A);
    Coarser(&T, fine, coarse, &P);
    RefTranspose(&P, PETSC_FALSE, &R);
    RefSpGEMM(&A, &P, &AP);
    HybTestCheck(Largest(&A, &P) == (coarse == 3 ? 0 : coarse == 6 && fine == 3 ? 3
                                                                                : 2),
                 "blocks of %" PetscInt_FMT, Largest(&A, &P));
    Check(&A, &P);
    Check(&R, &A);
    Check(&R, &AP);
    RefMatDestroy(&S, &T, &A, &P, &R, &AP);
  }
}

static void Zoo(void)
{
  char   name[64];
  RefMat A, B;

  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    HybTestBegin("%s times its transpose, as it is and in blocks of %" PetscInt_FMT, name, sizes[k % 3]);
    RefTranspose(&A, PETSC_FALSE, &B);
    Check(&A, &B);
    CheckBlocks(&A, &B, sizes[k % 3]);
    RefMatDestroy(&A, &B);
  }
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    HybTestBegin("%s squared, as it is and in blocks of %" PetscInt_FMT, name, sizes[(k + 1) % 3]);
    Check(&A, &A);
    CheckBlocks(&A, &A, sizes[(k + 1) % 3]);
    RefMatDestroy(&A);
  }
}

/* rows of B from column 0 to just about so many words of bits further, and rows of A that name one or two of them */
static void Spans(void)
{
  const PetscInt limits[] = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 131072}, nlimits = HybTestSlow() ? 9 : 12;

  for (PetscInt k = 0; k < nlimits; k++) {
    const PetscInt span = 32 * limits[k], n = span + 40;
    PetscInt       bi[5] = {0}, *bj = (PetscInt *)RefAlloc(4 * 40, sizeof(PetscInt));
    RefMat         P, Q;

    HybTestBegin("spans of %" PetscInt_FMT " words, a bit less, a bit more", limits[k]);
    for (PetscInt r = 0; r < 4; r++) {
      PetscInt c = r == 3 ? 33 : 0;

      for (bi[r + 1] = bi[r]; bi[r + 1] < bi[r] + 39; bi[r + 1]++) {
        bj[bi[r + 1]] = c;
        c += 1 + HybTestRandomInt(0, (span - 100) / 40);
      }
      /* the last column of the span less one, that, and one more */
      bj[bi[r + 1]++] = r == 3 ? span + 33 : span - 2 + r;
    }
    HybTestMatArrays(4, n, bi, bj, NULL, &Q);
    free(bj);
    for (PetscInt kind = 0; kind < 2; kind++) {
      P = kind ? HybTestMat(Random, 9, 4, 0, 4) : HybTestMat(Banded, 4, 4, 0, 0);
      CheckBlocks(&P, &Q, kind ? 3 : 2);
      RefMatDestroy(&P);
    }
    RefMatDestroy(&Q);
  }
  /* in the emulator with its own limit */
  if (HybTestSlow()) Case("a span of several windows", 2, HybTestMat(Random, 3, 4, 1, 3), HybTestMat(Random, 4, 3000000, 300, 400));
}

/* block rows of C whose sums take just about so many bytes of shared memory, up to those that do not fit there */
static void Sums(void)
{
  const size_t bytes[] = {1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 73728, 110592, 163840, 229376, 260000};

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sizes); k++) {
    const PetscInt bs = sizes[k], n = (PetscInt)(sizeof(bytes) / sizeof(bytes[0]));
    const size_t   block = (size_t)(bs * bs) * sizeof(PetscScalar) + sizeof(PetscInt);
    PetscInt       lengths[64], nlengths = 0, most;

    if (HybTestSlow() && bs > 3 && bs < 8) continue;
    for (PetscInt b = 0; b < n; b++) {
      const PetscInt limit = (PetscInt)(bytes[b] / block);

      for (PetscInt d = -1; d <= 1; d++) lengths[nlengths++] = PetscMax(0, limit + d);
    }
    most = lengths[nlengths - 1] + 1;
    Case("rows of C about the end of every bin", bs, HybTestMat(Banded, nlengths, nlengths, 0, 0), HybTestMat(Lengths, nlengths, most, lengths));
    Case("the same from two or three rows of B", bs, HybTestMat(Banded, nlengths, nlengths, 1, bs == 2 ? 1 : 0), HybTestMat(Lengths, nlengths, most, lengths));
  }
}

/* enough rows of each length that bins are launched one by one, and that groups end within blocks of threads */
static void Many(void)
{
  for (PetscInt bs = 2; bs <= 3; bs++) {
    PetscInt lengths[900];

    for (PetscInt r = 0; r < 900; r++) lengths[r] = r % 3 == 0 ? 1 : r % 3 == 1 ? 19
                                                                                : 45;
    Case("many rows of each of three lengths", bs, HybTestMat(Banded, 900, 900, 0, 0), HybTestMat(Lengths, 900, 300, lengths));
    Case("the same by two or three at a time", bs, HybTestMat(Random, 301, 900, 0, 3), HybTestMat(Lengths, 900, 300, lengths));
  }
}

static void Repeated(void)
{
  RefMat P, A;

  HybTestMatPowerLaw(120, 120, 6, &P);
  HybTestMatBlock(&P, 3, &A);
  TwentyRuns(&A, RefProductInOrder);
  RefMatDestroy(&P);
}

/* "auto" takes blocks where they are, and where it declines whoever runs has waits enough left; the host's bits */
static void Choice(void)
{
  static const char *const what[] = {"whole blocks", "an entry in another column", "an entry in another column, in a row that a sample does not ask", "columns far apart", "few entries", "no blocks", "a block of 2 that is not in one of 4, in rows that a sample does not ask"};
  static const PetscInt    size[] = {3, 0, 0, 2, 3, 0, 2};

  for (PetscInt k = 0; k < 2 * (PetscInt)PETSC_STATIC_ARRAY_LENGTH(what); k++) {
    const PetscInt kind = k / 2;
    Product        p    = {.expected = NULL};

    HybTestBegin("auto %s blocks: %s%s", kind == WHOLE ? "takes" : "declines", what[kind], k % 2 ? ", and diagonal looks before" : "");
    Operand(kind, &p.A);
    HybTestCheck(Largest(&p.A, &p.A) == size[kind], "blocks of %" PetscInt_FMT, Largest(&p.A, &p.A));
    HybTestCheck((p.A.csr.nnz < 16384) == (kind == FEW), "%td entries", p.A.csr.nnz);
    if (k % 2) HybTestCall(HybTuningSet("diagonal_fewest", "1000"));
    if (Open(&p, "auto") && HybTestCall(Multiply(&p.mm, &p.DA, &p.DA, &p.DC))) {
      HybTestCheck(!strcmp(p.mm.method->name, "block") == (kind == WHOLE), "%s", p.mm.method->name);
      if (HybTestSamePattern(&p.DC, &p.C) && (kind == WHOLE || !strcmp(p.mm.method->name, "hash"))) HybTestSameBits(p.C.csr.nnz, sizeof(PetscScalar), p.DC.a, p.expected);
    }
    HybTestCall(HybTuningSet("diagonal_fewest", NULL));
    /* by name a size that the sample left wrongly costs a wait more, and the next one is tried; columns may be as far
       apart as they like */
    if (size[kind] && HybTestCall(HybSpGEMMDestroy(&p.mm)) && HybTestCall(HybSpGEMMInit(&p.mm, HybTestExec(), "block", 0)) && First(&p, kind == SMALLER ? 4 : 3))
      HybTestCheck(HybCountersGet(&p.mm.counters, "block size") == size[kind], "size %td", HybCountersGet(&p.mm.counters, "block size"));
    Close(&p);
  }
}

/* Rows so long that a sample is asked for blocks alone, and that have none: shape still has its look. R A of a grid
   whose rows are all alike. */
static void LongRows(void)
{
  const PetscInt m = 1100, step = 54, len = 40;
  PetscInt      *i, *j;
  Product        p = {.B = HybTestMat(Banded, m * step, m * step, 1, 1)};

  HybTestBegin("auto, long rows without blocks");
  i = (PetscInt *)RefAlloc(m + 1, sizeof(*i));
  j = (PetscInt *)RefAlloc(m * len, sizeof(*j));
  for (PetscInt r = 0; r <= m; r++) i[r] = r * len;
  for (PetscInt e = 0; e < m * len; e++) j[e] = e / len * step + e % len + e % len / 3;
  HybTestMatArrays(m, m * step, i, j, NULL, &p.A);
  RefFree(i, j);
  if (Open(&p, "auto") && First(&p, 4)) HybTestCheck(!strcmp(p.mm.method->name, "shape"), "%s", p.mm.method->name);
  Close(&p);
}

/* A size that the caller gives: "auto" asks blocks before all others, and nothing is sampled; one that is wrong costs a
   wait, of which there are enough for who comes next; one that divides nothing costs none. By name a wrong one is no
   error where another one is right. Without one diagonal looks first, and declines where rows of a sample consist of
   blocks. */
static void Given(void)
{
  static const struct {
    PetscInt           kind, given;
    const char        *method;   /* by "auto"; NULL: not this one, nor diagonal */
    PetscInt           size;     /* of the blocks that there are, 0: none */
    unsigned long long waits[2]; /* at most, by auto and by name */
  } cases[] = {
    {WHOLE,   3, "block",    3, {2, 2}},
    {WHOLE,   9, "block",    3, {2, 2}},
    {WHOLE,   7, "block",    3, {3, 3}},
    {WHOLE,   8, "block",    3, {3, 3}},
    {SEEN,    3, NULL,       0, {3, 3}},
    {UNSEEN,  2, NULL,       0, {3, 3}},
    {SCALAR,  4, NULL,       0, {3, 3}},
    {SMALLER, 4, NULL,       2, {3, 4}},
    {SMALLER, 2, "block",    2, {2, 2}},
    {FAR,     2, NULL,       2, {3, 2}},
    {FEW,     3, NULL,       3, {3, 2}},
    {GRID,    2, "diagonal", 0, {3, 3}},
    {GRID,    3, "diagonal", 0, {2, 3}},
    {BLOCKS,  2, "block",    2, {2, 2}},
    {BLOCKS,  1, "block",    2, {3, 3}},
    {BLOCKS,  4, "block",    2, {3, 3}},
    {WIDE,    1, "block",    2, {3, 3}},
    {BOTH,    1, "block",    2, {3, 3}},
    {NEARLY,  1, NULL,       0, {3, 3}},
    {NEARLY,  2, "diagonal", 0, {3, 3}},
    {MISSED,  2, NULL,       0, {3, 3}},
    {MISSED,  1, "diagonal", 0, {3, 3}},
    {BAND,    1, "diagonal", 0, {3, 3}},
    {BAND,    2, "diagonal", 0, {3, 3}},
    {GAPS,    1, "diagonal", 0, {4, 3}},
    {GAPS,    2, NULL,       0, {3, 3}}
  };

  HybTestCall(HybTuningSet("diagonal_fewest", "1000"));
  for (size_t k = 0; k < 2 * PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const PetscInt kind = cases[k / 2].kind, given = cases[k / 2].given, size = cases[k / 2].size, named = k % 2;
    /* of complex values diagonal takes smaller products: it looks, and others come after it */
    const PetscBool   others         = (PetscBool)(PetscDefined(USE_COMPLEX) && (kind == NEARLY || kind == BAND || kind == GAPS));
    const char *const expectedmethod = named ? "block" : others ? NULL
                                                                : cases[k / 2].method;
    Product           p              = {.expected = NULL};

    HybTestBegin("%s, given %" PetscInt_FMT ", kind %" PetscInt_FMT, named ? "block" : "auto", given, kind);
    Operand(kind, &p.A);
    HybTestCheck(Largest(&p.A, &p.A) == size, "blocks of %" PetscInt_FMT, Largest(&p.A, &p.A));
    if (Open(&p, named ? "block" : "auto")) {
      p.mm.blocksize = given;
      if (named && !size) {
        HybTestCallFails(PETSC_ERR_SUP, HybSpGEMMSymbolic(&p.mm, &p.DA, &p.DA, &out, &p.DC));
        HybTestCheck(!p.mm.work.bytes && !p.mm.keep.bytes, "%zu bytes are kept", p.mm.work.bytes + p.mm.keep.bytes);
      } else if (HybTestCall(MultiplyWithin(&p.mm, &p.DA, &p.DA, cases[k / 2].waits[named] + (unsigned)others, &p.DC))) {
        HybTestCheck(expectedmethod ? !strcmp(p.mm.method->name, expectedmethod) : strcmp(p.mm.method->name, "block") && strcmp(p.mm.method->name, "diagonal"), "%s", p.mm.method->name);
        if (HybTestSamePattern(&p.DC, &p.C) && (expectedmethod || !strcmp(p.mm.method->name, "hash"))) HybTestSameBits(p.C.csr.nnz, sizeof(PetscScalar), p.DC.a, p.expected);
        if (!strcmp(p.mm.method->name, "block")) HybTestCheck(HybCountersGet(&p.mm.counters, "block size") == size, "size %td", HybCountersGet(&p.mm.counters, "block size"));
        CheckStats(&p.mm, &p.A, &p.A);
      }
    }
    Close(&p);
  }
  HybTestCall(HybTuningSet("diagonal_fewest", NULL));
}

/* Places that would outgrow the operands: auto leaves them to others, by name they are taken. A of eight blocks to a
   row, B of eight rows of so many. */
static void Large(void)
{
  for (PetscInt k = 0; k < 2; k++) {
    const PetscInt   blocks = k ? 150 : 110;
    const PetscCount pairs = (PetscCount)520 * 8 * blocks, outgrow = 4 * (4 * (520 * 8 + 8 * (PetscCount)blocks)) * (PetscCount)(sizeof(PetscInt) + sizeof(PetscScalar)) / 2;
    HybSpGEMM        mm;
    HybCSR           DA, DB, DC;
    RefMat           P, A, B, C;

    HybTestBegin("auto, places of %" PetscInt_FMT " blocks to a row of B", blocks);
    HybTestMatRandom(520, 8, 8, 8, &P);
    HybTestMatBlock(&P, 2, &A);
    RefMatDestroy(&P);
    HybTestMatRandom(8, 200, blocks, blocks, &P);
    HybTestMatBlock(&P, 2, &B);
    RefMatDestroy(&P);
    RefSpGEMM(&A, &B, &C);
    if (sizeof(PetscInt) + sizeof(PetscScalar) == 12) HybTestCheck((pairs > outgrow) == k, "%td pairs, %td are allowed", pairs, outgrow);
    for (int named = 0; named < 2; named++) {
      if (HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), named ? "block" : "auto", 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
        HybTestCheck(!strcmp(mm.method->name, "block") == (named || pairs <= outgrow), "%s", mm.method->name);
        HybTestSameMatrix(&DC, &C, 4);
      }
      Finish(&mm);
    }
    RefMatDestroy(&A, &B, &C);
  }
}

static void Faults(void)
{
  for (int k = 0; k < 3; k++) {
    RefMat P, A;

    HybTestBegin("every allocation failing in turn, %s", k == 2 ? "auto, few diagonals" : k ? "auto"
                                                                                            : "by name");
    if (k == 2)
      Operand(BLOCKS, &A);
    else {
      HybTestMatDenseRow(k ? 120 : 40, k ? 120 : 40, 7, k ? 15 : 3, &P);
      HybTestMatBlock(&P, 3, &A);
      RefMatDestroy(&P);
    }
    if (k == 2) HybTestCall(HybTuningSet("diagonal_fewest", "1000"));
    EachFault(k ? "auto" : "block", &A, &A, PETSC_FALSE);
    HybTestCall(HybTuningSet("diagonal_fewest", NULL));
    RefMatDestroy(&A);
  }
}

static void RefusedAre(const RefMat *A, const RefMat *B, PetscErrorCode error, const char *text)
{
  HybCSR DA, DB;

  if (HybTestCall(HybTestUpload(&keep, &A->csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B->csr, &DB))) Refused(&DA, &DB, error, text);
  HybTestCall(HybArenaReset(&keep));
}

static void Limits(void)
{
  RefMat P, Q, A, B;

  HybTestBegin("what cannot be taken is refused, and why");
  HybTestMatBanded(30, 30, 2, 2, &A);
  RefusedAre(&A, &A, PETSC_ERR_SUP, "do not consist of whole blocks");
  RefMatDestroy(&A);
  HybTestMatBanded(31, 31, 2, 2, &A);
  RefusedAre(&A, &A, PETSC_ERR_SUP, "31 x 31");
  RefMatDestroy(&A);
  HybTestBegin("a block row of C of more than 65536 blocks");
  HybTestMatBanded(1, 1, 0, 0, &P);
  HybTestMatBanded(1, 65537, 0, 65536, &Q);
  HybTestMatBlock(&P, 2, &A);
  HybTestMatBlock(&Q, 2, &B);
  RefusedAre(&A, &B, PETSC_ERR_SUP, "65537 pairs");
  RefMatDestroy(&Q, &B);
  /* the size that the caller gives is right, and no other one that divides the sizes is */
  HybTestBegin("the same of a size that is given");
  {
    static const PetscInt i[] = {0, 2, 4, 6, 7, 8, 9}, j[] = {0, 3, 1, 4, 2, 5, 0, 1, 2}, lengths[] = {65538, 0, 0, 0, 0, 0};
    RefMat                R, S, AA, BB;

    HybTestMatArrays(6, 6, i, j, NULL, &R);
    HybTestMatLengths(6, 65538, lengths, &S);
    HybTestMatBlock(&R, 2, &AA);
    HybTestMatBlock(&S, 2, &BB);
    HybTestCheck(Largest(&AA, &BB) == 2 && AA.csr.nnz % 36 == 0 && BB.csr.nnz % 36 == 0, "blocks of %" PetscInt_FMT, Largest(&AA, &BB));
    givensize = 2;
    RefusedAre(&AA, &BB, PETSC_ERR_SUP, "65538 pairs");
    givensize = 0;
    RefMatDestroy(&R, &S, &AA, &BB);
  }
  /* a row of A that names its one block row of B again and again, which no program has: no other one is small */
  HybTestBegin("more pairs of blocks in a row than 32 bits count");
  {
    const PetscInt i[] = {0, 65537};
    PetscInt      *j   = (PetscInt *)RefAlloc(65537, sizeof(*j));
    RefMat         R, AA;

    HybTestMatArrays(1, 1, i, j, NULL, &R);
    HybTestMatBanded(1, 65536, 0, 65535, &Q);
    HybTestMatBlock(&R, 2, &AA);
    HybTestMatBlock(&Q, 2, &B);
    RefusedAre(&AA, &B, PETSC_ERR_SUP, "or 1073741823 pairs");
    free(j);
    RefMatDestroy(&R, &Q, &AA, &B);
  }
  HybTestBegin("a block row of C of 65536 blocks");
  HybTestMatBanded(1, 65536, 0, 65535, &Q);
  HybTestMatBlock(&Q, 2, &B);
  Check(&A, &B);
  RefMatDestroy(&P, &Q, &A, &B);
  HybTestBegin("a product of more nonzeros than PetscInt counts");
  if (sizeof(PetscInt) == 8) {
    HybTestSkip("64-bit indices count them");
    return;
  }
  HybTestMatBanded(25000, 1, 25000, 0, &P);
  HybTestMatBanded(1, 30000, 0, 30000, &Q);
  HybTestMatBlock(&P, 2, &A);
  HybTestMatBlock(&Q, 2, &B);
  RefusedAre(&A, &B, PETSC_ERR_ARG_OUTOFRANGE, "at least 3000000000");
  RefMatDestroy(&P, &Q, &A, &B);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  PetscCall(Methods("block", "products by blocks"));
  if (!method) PetscFunctionReturn(PETSC_SUCCESS);
  HybTestPieces(Sizes, Mixed, Zoo, Spans, Sums, Many, Repeated, Choice, LongRows, Given, Faults, Limits, Large);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
