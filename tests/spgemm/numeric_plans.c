/*
  Numeric phases by a plan that a method has stored: places of the products in C or the terms of C's entries (hash), or
  masks (hash, rowmerge).
*/
#include "spgemmtest.h"

#define PLACES_ALONE "1" /* percent of C's bytes: no room for terms */

/* Are places of all products stored after so many numeric phases? 3: they would outgrow operands and C; 10: the
   operands, and that is what counts where phases are expected; 12: none are wanted; 13: they would outgrow the
   operands, and the product is small; 8: but for a row without a table in shared memory */
static void PlacesAre(const HybSpGEMM *mm, PetscInt kind, PetscInt numerics)
{
  const PetscCount places = HybCountersGet(&mm->counters, "places"), left = HybCountersGet(&mm->counters, "rows spilled") + HybCountersGet(&mm->counters, "rows global");
  const PetscBool  planned = (PetscBool)(kind != 3 && kind != 10 && kind < 12 && (numerics > 1 || mm->reuse));

  HybTestCheck(left == (kind == 8), "%td rows without a table", left);
  if (kind == 8 && planned)
    HybTestCheck(places > 0 && places < mm->stats.products - 20000, "%td places, %td products", places, mm->stats.products);
  else
    HybTestCheck(places == (planned ? mm->stats.products : 0), "%td places after %" PetscInt_FMT " numeric phases, %td products", places, numerics, mm->stats.products);
}

static void Operands(PetscInt kind, RefMat *A, RefMat *B)
{
  if (kind == 0)
    HybTestMatRandom(300, 400, 0, 4, A);
  else if (kind == 1)
    HybTestMatPowerLaw(300, 600, 5, A);
  else if (kind == 2)
    HybTestMatDenseRow(20, 300, 11, 1, A);
  else if (kind == 3)
    HybTestMatBanded(60, 60, 30, 30, A);
  else if (kind == 4)
    HybTestMatRandom(40, 40, 0, 3, A);
  else if (kind == 5)
    HybTestMatRandom(3, 3, 0, 1, A);
  else if (kind == 7) /* long rows of A, short ones of C */
    HybTestMatRandom(40, 2000, 100, 500, A);
  else if (kind == 8)
    HybTestMatDenseRow(6, 3000, 2, 3, A);
  else if (kind == 9 || kind == 10 || kind > 11)
    HybTestMatRandom(300, 100, 10, 10, A);
  else if (kind == 11) {
    PetscInt lengths[30];

    /* one part or two of what a block stages */
    for (PetscInt r = 0; r < 30; r++) lengths[r] = r < 24 ? 126 + r % 6 : 255 + r % 3;
    HybTestMatLengths(30, 400, lengths, A);
  } else {
    /* more rows of each of three sizes than blocks run at once: a block goes from one size to the next, its warps not
       all at the same time */
    const PetscInt m       = HybTestSize(240000, 3000);
    PetscInt      *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

    for (PetscInt r = 0; r < m; r++) lengths[r] = r % 3 == 0 ? 15 : r % 3 == 1 ? 9
                                                                               : 3;
    HybTestMatLengths(m, 3 * m, lengths, A);
    free(lengths);
  }
  if (kind == 0)
    HybTestMatRandom(400, 500, 0, 9, B);
  else if (kind == 1)
    HybTestMatRandom(600, 3000, 0, 30, B);
  else if (kind == 2)
    HybTestMatRandom(300, 9000, 30, 40, B); /* rows of C of one to 9000 entries */
  else if (kind == 6)
    HybTestMatRandom(A->csr.n, 20000, 20, 20, B);
  else if (kind == 7)
    HybTestMatRandom(2000, 300, 0, 4, B);
  else if (kind == 8)
    HybTestMatRandom(3000, 100000, 10, 14, B); /* a row of C has some 30000 entries */
  else if (kind == 9 || kind == 10 || kind > 11)
    HybTestMatRandom(100, 5000, 50, 50, B);
  else if (kind == 11) {
    static const PetscInt each[] = {0, 1, 100, 257, 1300}; /* the last ones are more than is fetched ahead */
    PetscInt              lengths[400];

    /* of the longest rows of A the last entries of the first part find nothing */
    for (PetscInt r = 0; r < 400; r++) lengths[r] = r >= 175 && r < 215 ? 0 : each[r % 5];
    HybTestMatLengths(400, 12000, lengths, B);
  } else
    RefMatCopy(A, B);
}

static PetscCount PlaceBytes(const RefMat *A, const RefMat *B)
{
  PetscCount products = 0;

  for (PetscInt k = 0; k < A->csr.nnz; k++) products += B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]];
  return 2 * products + 2 * (PetscCount)sizeof(PetscInt) * A->csr.nnz;
}

/* numeric phases by places: the same bits with and without it, other values, and none where it would take too
   much memory */
static void Planned(void)
{
  char percent[32];

  if (!Is("hash")) return;
  for (PetscInt kind = 0; kind < 14; kind++) {
    Product   p = {.expected = NULL};
    PetscBool opened;

    if (!HybTestMine()) continue;
    HybTestBegin("%s: numeric phases by a plan, kind %" PetscInt_FMT, method->name, kind);
    Operands(kind, &p.A, &p.B);
    opened = Open(&p, method->name);
    /* as many percent of C as places take, or what the operands take: too little for terms */
    (void)snprintf(percent, sizeof(percent), "%s", kind == 12 ? "0" : PLACES_ALONE);
    if (kind == 9 || kind == 11) (void)snprintf(percent, sizeof(percent), "%td", 1 + 100 * PlaceBytes(&p.A, &p.B) / (p.C.csr.nnz * (PetscCount)(sizeof(PetscInt) + sizeof(PetscScalar))));
    HybTestCall(HybTuningSet("hash_places", percent));
    p.mm.reuse = (PetscBool)(kind % 2 == 0 && kind != 12);
    if (opened && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC))) {
      for (PetscInt k = 0; k < 3; k++) {
        Numeric(&p);
        if (p.mm.reuse && HybCountersGet(&p.mm.counters, "masks")) continue;
        if (p.C.csr.nnz && !(kind == 7 && PetscDefined(USE_REAL_SINGLE))) PlacesAre(&p.mm, kind, k + 1);
      }
      HybTestRandomize(&p.A);
      if (Renew(&p, PETSC_FALSE)) Numeric(&p);
    }
    HybTestCall(HybTuningSet("hash_places", NULL));
    Close(&p);
  }
}

#define TILE 64 /* entries of C whose terms count from the same entry of A */

static int Bits(PetscInt n)
{
  int bits = 0;

  while (n >> bits) bits++;
  return bits;
}

/* Bytes of all terms: 2 of a product where, in every tile that a row has entries in, the bits of a number among the
   entries of the tile's rows of A and those of one in the longest row of B are 16 at most; else 4, for the whole row.
   A row has an even number of words. wide: products of such rows. */
static PetscCount TermBytes(const RefMat *A, const RefMat *B, const RefMat *C, PetscCount *wide)
{
  const PetscInt m     = C->csr.m;
  PetscBool     *is    = (PetscBool *)RefAlloc(m, sizeof(PetscBool));
  PetscCount     bytes = 0;

  for (PetscInt r = 0; r < m; r++) is[r] = PETSC_FALSE;
  for (PetscInt begin = 0, row = 0; begin < C->csr.nnz; begin += TILE) {
    const PetscInt end     = PetscMin(begin + TILE, (PetscInt)C->csr.nnz);
    PetscInt       longest = 0, last;

    while (C->csr.i[row + 1] <= begin) row++;
    last = row;
    for (PetscInt r = row; r < m && C->csr.i[r] < end; r++) {
      if (C->csr.i[r] == C->csr.i[r + 1]) continue;
      for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) longest = PetscMax(longest, B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]]);
      last = r;
    }
    if (Bits(A->csr.i[last + 1] - A->csr.i[row] - 1) + Bits(longest - 1) > 16) {
      for (PetscInt r = row; r <= last; r++) is[r] = PETSC_TRUE;
    }
  }
  *wide = 0;
  for (PetscInt r = 0; r < m; r++) {
    PetscCount products = 0;

    if (C->csr.i[r] == C->csr.i[r + 1]) continue;
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) products += B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]];
    bytes += is[r] ? 4 * products : 2 * products + 2 * (products % 2);
    if (is[r]) *wide += products;
  }
  free(is);
  return bytes;
}

/* A tile whose last product is of the entry last of A, as it counts: 16 entries of the first row of C, which is of
   nearly all of these, and the first ones of others, which are of an entry each */
static void FarOperands(PetscInt last, RefMat *A, RefMat *B)
{
  const PetscInt m = 12000, n = last + 1 - (TILE - 16);
  PetscInt      *lengths = (PetscInt *)RefAlloc(m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = r ? 1 : n;
  HybTestMatLengths(m, n, lengths, A);
  free(lengths);
  HybTestMatBanded(n, n, 0, 0, B);
  for (PetscInt r = 0; r < n; r++) B->csr.j[r] = r % 16;
  B->csr.n = 16;
}

/* An entry of C that is a sum of n terms, the whole row of A, among such of one */
static void ManyTerms(PetscInt n, RefMat *A, RefMat *B)
{
  PetscInt lengths[100];

  for (PetscInt r = 0; r < 100; r++) lengths[r] = r == 50 ? n : 1;
  HybTestMatLengths(100, n, lengths, A);
  HybTestMatBanded(n, n, 0, 0, B);
  for (PetscInt r = 0; r < n; r++) B->csr.j[r] = 3;
  B->csr.n = 16;
}

/* Rows that need terms of 4 bytes among such that do not. far: rows of C of up to nine entries, so that a tile counts
   over many rows of A; else rows of up to 400, and entries and rows of B of 256, which have 8 bits, and one more. */
static void WideOperands(PetscBool far, RefMat *A, RefMat *B)
{
  static const PetscInt a[] = {1, 256, 0, 3, 257, 20}, b[] = {1, 256, 0, 9, 100};
  const PetscInt        m = far ? 40 : 50, n = far ? 3000 : 500;
  PetscInt             *lengths = (PetscInt *)RefAlloc(PetscMax(m, n), sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) lengths[r] = far ? (r % 4 == 1 ? 300 + 60 * r : r % 4) : a[(r / 4) % 6];
  HybTestMatLengths(m, n, lengths, A);
  for (PetscInt r = 0; r < n; r++) lengths[r] = far ? r % 10 : b[r % 5];
  HybTestMatLengths(n, far ? 9 : 400, lengths, B);
  free(lengths);
}

/* numeric phases by terms: the same bits with new values of both, from the second one on, where memory allows; made in
   one part, or in two where a limit is named, in C's values if these have room */
static void Terms(void)
{
  static const char *const percent[] = {NULL, "1000", "60"};

  if (!Is("hash")) return;
  for (PetscInt kind = 0; kind < 60; kind++) {
    const PetscInt shape = kind / 3, limit = kind % 3 == 0 ? 100 : kind % 3 == 1 ? 1000
                                                                                 : 60;
    PetscCount     bytes, kept, wide;
    PetscInt       longest = 0; /* row of A */
    PetscBool      terms, opened;
    Product        p = {.expected = NULL};
    size_t         held;

    /* large ones by few limits: the last one is for what is not made, a row of 65535 entries for what fits at all */
    if (shape >= 6 && shape < 16 && limit == 60) continue;
    if ((shape == 14 || shape == 15) && limit != 1000) continue;
    if (!HybTestMine()) continue;
    HybTestBegin("%s: numeric phases by terms, kind %" PetscInt_FMT ", %" PetscInt_FMT " per cent", method->name, shape, limit);
    if (shape < 14)
      Operands(shape, &p.A, &p.B);
    else if (shape < 16)
      FarOperands(shape == 14 ? 65534 : 65535, &p.A, &p.B);
    else if (shape < 18)
      WideOperands((PetscBool)(shape == 17), &p.A, &p.B);
    else /* of which one byte and two count as many */
      ManyTerms(shape == 18 ? 255 : 256, &p.A, &p.B);
    for (PetscInt r = 0; r < p.A.csr.m; r++) longest = PetscMax(longest, p.A.csr.i[r + 1] - p.A.csr.i[r]);
    opened = Open(&p, method->name);
    bytes  = TermBytes(&p.A, &p.B, &p.C, &wide);
    HybTestCall(HybTuningSet("hash_places", percent[kind % 3]));
    if (opened && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC))) {
      held  = p.mm.keep.bytes;
      kept  = bytes + (longest <= 255 ? 1 : 2) * p.C.csr.nnz + (PetscCount)sizeof(PetscInt) * p.A.csr.nnz;
      terms = (PetscBool)(p.C.csr.nnz && shape != 15 && kept <= p.C.csr.nnz * (PetscCount)(sizeof(PetscInt) + sizeof(PetscScalar)) / 100 * limit);
      for (PetscInt k = 0; k < 4; k++) {
        if (k >= 2) {
          HybTestRandomize(k == 2 ? &p.A : &p.B);
          if (!Renew(&p, (PetscBool)(k == 3))) break;
        }
        p.mm.work.peak = 0;
        Numeric(&p);
        /* numbers of rows alone: all else is in C's values */
        if (terms && k == 1 && (size_t)p.mm.stats.products * 2 + 16 + (size_t)p.A.csr.nnz * sizeof(PetscInt) <= (size_t)p.C.csr.nnz * sizeof(PetscScalar))
          HybTestCheck(p.mm.work.peak <= (size_t)p.A.csr.m * 40 + 8192, "the plan takes %zu bytes of workspace for %" PetscInt_FMT " rows", p.mm.work.peak, p.A.csr.m);
        HybTestCheck(HybCountersGet(&p.mm.counters, "terms") == (terms && k ? p.mm.stats.products : 0), "%td terms after %" PetscInt_FMT " numeric phases, %td products", HybCountersGet(&p.mm.counters, "terms"), k + 1, p.mm.stats.products);
        HybTestCheck(!terms || !HybCountersGet(&p.mm.counters, "places"), "there are places beside terms");
        /* and three numbers for each 64 entries of C */
        if (terms && k) HybTestCheck(p.mm.keep.bytes - held <= (size_t)(kept + (p.C.csr.nnz / 64 + 1) * (9 + (PetscCount)sizeof(PetscInt)) + 5 * 64), "terms are kept in %zu bytes, %td and little else expected", p.mm.keep.bytes - held, kept);
        if (terms && k) HybTestCheck(HybCountersGet(&p.mm.counters, "term bytes") == bytes, "terms take %td bytes, expected %td", HybCountersGet(&p.mm.counters, "term bytes"), bytes);
      }
      if (shape == 16 || shape == 17) HybTestCheck(wide > 0 && wide < p.mm.stats.products, "%td of %td products need 4 bytes: not a mixture", wide, p.mm.stats.products);
      if (shape == 15 && limit == 1000) HybTestCheck(HybCountersGet(&p.mm.counters, "places") == p.mm.stats.products, "no places where numbers of terms do not do");
    }
    HybTestCall(HybTuningSet("hash_places", NULL));
    Close(&p);
  }
}

/* what masks take: a bit for each entry of C's row, in a short or a word where all rows have room in one, else in as
   many words as each row needs */
static PetscCount MaskBytes(const RefMat *A, const RefMat *C)
{
  PetscCount longest = 0, words = 0;

  for (PetscInt r = 0; r < C->csr.m; r++) {
    const PetscCount len = C->csr.i[r + 1] - C->csr.i[r];

    longest = PetscMax(longest, len);
    words += (A->csr.i[r + 1] - A->csr.i[r]) * ((len + 31) / 32);
  }
  return longest <= 16 ? 2 * A->csr.nnz : longest <= 32 ? 4 * A->csr.nnz
                                                        : 4 * words;
}

/* A's values stand in another order, which a permutation tells: the same bits */
static void Permuted(HybSpGEMM *mm, const RefMat *A, const RefMat *C, HybCSR DA, const HybCSR *DB, HybCSR *DC, const PetscScalar *expected)
{
  const PetscCount n      = A->csr.nnz;
  PetscInt        *perm   = (PetscInt *)RefAlloc(n, sizeof(PetscInt)), *there;
  PetscScalar     *values = (PetscScalar *)RefAlloc(n, sizeof(PetscScalar));

  for (PetscCount k = 0; k < n; k++) perm[k] = (PetscInt)k;
  for (PetscCount k = n - 1; k > 0; k--) {
    const PetscInt q = HybTestRandomInt(0, (PetscInt)k), p = perm[k];

    perm[k] = perm[q];
    perm[q] = p;
  }
  for (PetscCount k = 0; k < n; k++) values[perm[k]] = A->csr.a[k];
  HybTestCheck(mm->permutes, "values cannot be permuted");
  if (HybTestCall(HybTestUploadArray(&keep, n, sizeof(PetscInt), perm, &there)) && HybTestCall(HybTestUploadArray(&keep, n, sizeof(PetscScalar), values, &DA.a))) {
    mm->permutation = there;
    if (HybTestCall(HybSpGEMMNumeric(mm, &DA, DB, DC))) HybTestSameBits(C->csr.nnz, sizeof(PetscScalar), DC->a, expected);
    mm->permutation = NULL;
  }
  RefFree(perm, values);
}

/* repeated numeric phases by masks: rows of C of all lengths round the pieces' and the words' ends, on all numbers of
   lanes */
static void Masked(void)
{

  if (!HybTestExec()->backend->device || width || (!Is("hash") && !Is("rowmerge"))) return;
  /* rowmerge has them too where nobody expected the second phase and rows of C are not too short */
  for (PetscInt kind = 0; kind < (Is("rowmerge") ? 48 : 24); kind++) {
    static const char *const lanes[] = {"4", "8", "16"};
    const PetscInt           shape   = kind % 24 / 3;
    const PetscBool          reuse   = (PetscBool)(kind < 24);
    PetscBool                masks   = PETSC_TRUE, opened;
    Product                  p       = {.expected = NULL};

    /* rowmerge has them where single threads merge; elsewhere it adds sums of pieces */
    if (Is("rowmerge") && (shape == 5 || shape == 6)) continue;
    if (!HybTestMine()) continue;
    HybTestBegin("%s: masks%s, kind %" PetscInt_FMT ", %s lanes", method->name, reuse ? "" : " that nobody expected", shape, lanes[kind % 3]);
    if (shape == 0)
      HybTestMatRandom(300, 400, 0, 4, &p.A);
    else if (shape == 1)
      HybTestMatRandom(200, 300, 3, 5, &p.A);
    else if (shape == 2)
      HybTestMatRandom(200, 300, 5, 8, &p.A);
    else if (shape == 3)
      HybTestMatRandom(120, 300, 0, 12, &p.A);
    else if (shape == 4 || shape == 7)
      HybTestMatRandom(400, 400, 1, 1, &p.A);
    else if (shape == 5)
      HybTestMatDenseRow(40, 300, 11, 1, &p.A);
    else
      HybTestMatRandom(70, 3000, 30, 90, &p.A);
    if (shape == 0)
      HybTestMatRandom(400, 500, 0, 4, &p.B);
    else if (shape == 1)
      HybTestMatRandom(300, 3000, 2, 6, &p.B);
    else if (shape == 2)
      HybTestMatRandom(300, 3000, 5, 8, &p.B);
    else if (shape == 3)
      HybTestMatRandom(300, 5000, 1, 10, &p.B);
    else if (shape == 4 || shape == 7) { /* all lengths */
      PetscInt *lengths = (PetscInt *)RefAlloc(400, sizeof(PetscInt));

      for (PetscInt r = 0; r < 400; r++) lengths[r] = (7 * r) % (shape == 4 ? 129 : 130);
      HybTestMatLengths(400, 3 * 400, lengths, &p.B);
      free(lengths);
    } else if (shape == 5)
      HybTestMatRandom(300, 60, 1, 3, &p.B);
    else
      HybTestMatRandom(3000, 128, 8, 20, &p.B);
    opened = Open(&p, method->name);
    /* which rows of B A names is random */
    for (PetscInt r = 0; r < p.C.csr.m && (shape == 4 || shape == 7); r++) masks = (PetscBool)(masks && p.C.csr.i[r + 1] - p.C.csr.i[r] <= 128);
    masks = (PetscBool)(masks && (reuse || p.C.csr.nnz > 20 * (PetscCount)p.C.csr.m));
    HybTestCall(HybTuningSet("masks_lanes", lanes[kind % 3]));
    p.mm.reuse = reuse;
    if (opened && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC))) {
      for (PetscInt k = 0; k < 2; k++) {
        HybTestCheck(reuse || k || !HybCountersGet(&p.mm.counters, "masks"), "there are masks before the second phase");
        Numeric(&p);
      }
      if (sizeof(PetscScalar) == 8 && sizeof(PetscInt) == 4)
        HybTestCheck(HybCountersGet(&p.mm.counters, "masks") == (masks ? p.A.csr.nnz : 0), "%td masks, %td entries", HybCountersGet(&p.mm.counters, "masks"), (PetscCount)p.A.csr.nnz);
      if (HybCountersGet(&p.mm.counters, "masks")) {
        HybTestCheck(HybCountersGet(&p.mm.counters, "mask bytes") == MaskBytes(&p.A, &p.C), "masks take %td bytes, expected %td", HybCountersGet(&p.mm.counters, "mask bytes"), MaskBytes(&p.A, &p.C));
        Permuted(&p.mm, &p.A, &p.C, p.DA, &p.DB, &p.DC, p.expected);
      }
      HybTestRandomize(&p.A);
      /* they stay where they are, and nothing else is multiplied with them */
      if (p.A.csr.nnz > 3 && !PetscDefined(USE_COMPLEX)) {
        p.A.csr.a[0] = (PetscReal)INFINITY;
        p.A.csr.a[1] = -0.0;
        p.A.csr.a[2] = (PetscReal)NAN;
      }
      if (Renew(&p, PETSC_FALSE) && HybTestCall(HybSpGEMMNumeric(&p.mm, &p.DA, &p.DB, &p.DC))) SameNumbers(&p.DC, p.C.csr.nnz, p.expected);
    }
    HybTestCall(HybTuningSet("masks_lanes", NULL));
    Close(&p);
  }
}

static PetscBool Planless(const HybSpGEMM *mm)
{
  return (PetscBool)(!HybCountersGet(&mm->counters, "masks") && !HybCountersGet(&mm->counters, "places") && !HybCountersGet(&mm->counters, "terms"));
}

/* each step fails in turn: what a plan took that was not made is given back, and numeric phases do without. For want of
   memory that is no error, and so no message, but counted. */
static PetscErrorCode Unmade(void *ctx)
{
  HybSpGEMM *mm = &Faulty.mm;
  HybCSR     DA, DB, DC;

  PetscFunctionBegin;
  PetscCall(HybTestUpload(&keep, &Faulty.A->csr, &DA));
  PetscCall(HybTestUpload(&keep, &Faulty.B->csr, &DB));
  PetscCall(HybSpGEMMInit(mm, HybTestExec(), Faulty.name, width));
  mm->reuse = Faulty.reuse;
  PetscCall(Multiply(mm, &DA, &DB, &DC));
  for (PetscInt k = 0; k < 3; k++) {
    const size_t         held = mm->keep.bytes;
    const PetscErrorCode ierr = HybSpGEMMNumeric(mm, &DA, &DB, &DC);

    if (Planless(mm)) HybTestCheck(mm->keep.bytes == held, "a plan that was not made keeps %td bytes", (PetscCount)mm->keep.bytes - (PetscCount)held);
    if (!ierr) continue;
    PetscCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
    PetscCall(HybSpGEMMNumeric(mm, &DA, &DB, &DC));
    HybTestSameMatrix(&DC, &Faulty.C, 4);
    PetscCall(ierr);
  }
  HybTestSameMatrix(&DC, &Faulty.C, 4);
  PetscFunctionReturn(WithoutPlan(mm));
}

/* a backend that has no memory for a while */
static const HybBackend *plenty;
static PetscBool         empty;

static PetscErrorCode EmptyAlloc(const HybExec *x, HybMem mem, size_t bytes, void **ptr)
{
  *ptr = NULL;
  if (empty && mem == HYB_MEM_DEVICE) SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory for a while");
  return plenty->alloc(x, mem, bytes, ptr);
}

/* no memory where a plan would be made: the same bits without, also later, when there is memory again */
static void Without(void)
{
  HybBackend little = *HybTestExec()->backend;

  if (width || (!Is("hash") && !Is("rowmerge"))) return;
  plenty       = HybTestExec()->backend;
  little.alloc = EmptyAlloc;
  for (int reuse = Is("rowmerge"); reuse < 2; reuse++) {
    HybExec      exec = *HybTestExec();
    HybSpGEMM    mm;
    HybCSR       DA, DB, DC;
    RefMat       A, B, C;
    PetscScalar *expected;

    HybTestBegin("%s: no memory for a plan, %s", method->name, reuse ? "before the first numeric phase" : "in the second one");
    HybTestMatRandom(60, 80, 2, 6, &A);
    HybTestMatRandom(80, 900, 2, 6, &B);
    RefSpGEMM(&A, &B, &C);
    expected     = RefProductInOrder(&A, &B, &C);
    exec.backend = &little;
    if (HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) {
      const HybCSR PA = {DA.m, DA.n, DA.nnz, DA.i, DA.j, NULL}, PB = {DB.m, DB.n, DB.nnz, DB.i, DB.j, NULL};

      mm.reuse = (PetscBool)reuse;
      if (HybTestCall(HybSpGEMMSymbolic(&mm, &PA, &PB, &out, &DC)) && HybTestCall(HybArenaAlloc(&out, mm.exec.result, DC.nnz, sizeof(HybScalar), &DC.a))) {
        for (int k = 0; k < 4; k++) {
          empty = (PetscBool)(k == !reuse);
          HybTestCall(HybTestExec()->backend->zero(HybTestExec(), DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
          if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
          empty = PETSC_FALSE;
          HybTestCheck(HybCountersGet(&mm.counters, "plans without room") == (reuse || k), "%td plans had no room after %d numeric phases", HybCountersGet(&mm.counters, "plans without room"), k + 1);
          HybTestCheck(Planless(&mm), "there is a plan");
        }
      }
    }
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A, &B, &C);
  }
}

/* one that says of an array that it cannot be given back */
static PetscInt unfreed;

static PetscErrorCode LateFree(const HybExec *x, HybMem mem, size_t bytes, void *ptr)
{
  const PetscErrorCode ierr = plenty->free(x, mem, bytes, ptr);

  if (!ierr && unfreed && !--unfreed) SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "cannot be given back");
  return ierr;
}

/* An error of each array in turn that the second numeric phase gives back, which makes a plan by places (0) or by terms
   (1): the next one is right without the columns that nobody is said to read. */
static void Unfreed(void)
{
  HybBackend late = *HybTestExec()->backend;

  if (width || !Is("hash")) return;
  plenty    = HybTestExec()->backend;
  late.free = LateFree;
  for (int kind = 0; kind < 2; kind++) {
    PetscBool      fired = PETSC_TRUE;
    RefMat         A, B, C;
    PetscScalar   *expected;
    PetscErrorCode ierr;

    HybTestBegin("%s: what a plan by %s took cannot be given back", method->name, kind ? "terms" : "places");
    if (!kind) HybTestCall(HybTuningSet("hash_places", PLACES_ALONE));
    HybTestMatRandom(30, 40, 2, 4, &A);
    HybTestMatRandom(40, 500, 4, 8, &B);
    RefSpGEMM(&A, &B, &C);
    expected = RefProductInOrder(&A, &B, &C);
    for (PetscInt k = 1; fired; k++) {
      HybExec   exec = *HybTestExec();
      HybSpGEMM mm;
      HybCSR    DA, DB, DC;

      exec.backend = &late;
      if (HybTestCall(HybSpGEMMInit(&mm, &exec, method->name, 0)) && HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB)) && HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DB, &out, &DC)) && HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) {
        PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
        unfreed = k;
        ierr    = HybSpGEMMNumeric(&mm, &DA, &DB, &DC);
        fired   = (PetscBool)!unfreed;
        unfreed = 0;
        PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
        HybTestCheck(!ierr == !fired, "error %d", (int)ierr);
        HybTestCall(plenty->zero(&exec, DC.a, (size_t)DC.nnz * sizeof(HybScalar)));
        if (!(mm.reads & HYB_SPGEMM_READS_A)) DA.j = NULL;
        if (!(mm.reads & HYB_SPGEMM_READS_B)) DB.j = NULL;
        if (!(mm.reads & HYB_SPGEMM_READS_C)) DC.j = NULL;
        if (HybTestCall(HybSpGEMMNumeric(&mm, &DA, &DB, &DC))) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
      } else
        fired = PETSC_FALSE;
      Finish(&mm);
    }
    HybTestCall(HybTuningSet("hash_places", NULL));
    free(expected);
    RefMatDestroy(&A, &B, &C);
  }
}

/* Somebody else finds no memory: a plan is given back, once, and numeric phases go on without, with the same bits; but
   not where columns are gone that it stands for (2), none that is gone itself (3), and not for more than the card has
   (5). Of device memory, and of memory that grows (1); terms, and places (4). */
static void GivenBack(void)
{
  if (width || !Is("hash")) return;
  for (int kind = 0; kind < 6; kind++) {
    const PetscBool given = (PetscBool)(kind < 2 || kind == 4);

    HybArena others;
    Product  p = {.expected = NULL};
    char    *room;
    size_t   with, page = 0; /* by which memory grows */

    HybTestBegin("%s: a plan is given back, kind %d", method->name, kind);
    if (kind == 4) HybTestCall(HybTuningSet("hash_places", PLACES_ALONE));
    Operands(0, &p.A, &p.B);
    others = HybArenaOn(HybTestExec());
    if (Open(&p, method->name) && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC)) && HybTestCall(HybSpGEMMNumeric(&p.mm, &p.DA, &p.DB, &p.DC)) && HybTestCall(HybSpGEMMNumeric(&p.mm, &p.DA, &p.DB, &p.DC))) {
      PetscErrorCode ierr;

      HybTestCheck(HybCountersGet(&p.mm.counters, kind == 4 ? "places" : "terms") == p.mm.stats.products, "the plan is another one");
      if (kind == 2) p.mm.columnsgone = PETSC_TRUE;
      if (kind == 3) HybTestCall(HybSpGEMMDestroy(&p.mm));
      with = p.mm.keep.bytes;
      if (kind == 1 && HybTestCall(HybArenaAlloc(&others, HYB_MEM_GROWING, (PetscCount)64 << 20, 1, &room)) && HybTestCall(HybArenaGrow(&others, room, 1, 1))) page = others.bytes;
      if (kind < 5) HybTestServe(0, kind == 1 ? page - 1 : 1000);
      PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = kind == 1 ? HybArenaGrow(&others, room, (PetscCount)page + 1, 1) : HybArenaAlloc(&others, HYB_MEM_DEVICE, kind == 5 ? (PetscCount)1 << 40 : 1001, 1, &room);
      PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
      HybTestServe(0, 0);
      HybTestCheck(ierr == (given ? PETSC_SUCCESS : PETSC_ERR_MEM), "error %d", (int)ierr);
      if (kind != 3) {
        HybTestCheck(HybCountersGet(&p.mm.counters, "plans given back") == given && Planless(&p.mm) == given && (p.mm.keep.bytes + (size_t)p.mm.stats.products * 2 <= with) == given, "%td plans are given back, the product holds %zu bytes of %zu", HybCountersGet(&p.mm.counters, "plans given back"), p.mm.keep.bytes, with);
        with = p.mm.keep.bytes;
        for (int k = 0; k < 2; k++) {
          Numeric(&p);
        }
        HybTestCheck(p.mm.keep.bytes == with, "the product holds %zu bytes, and held %zu", p.mm.keep.bytes, with);
      }
    }
    HybTestCall(HybTuningSet("hash_places", NULL));
    HybTestCall(HybArenaReset(&others));
    Close(&p);
  }
}

/* a card that has little free, and may have more once it is asked for it */
static int    Trials, Frees;
static size_t Card;

static PetscErrorCode LittleFree(HybMemoryReport *r)
{
  const PetscErrorCode ierr = plenty->memory(r);

  r->total_bytes = Card;
  r->free_bytes  = Trials ? 2000 : 1000; /* a trial gives back plans */
  return ierr;
}

static PetscErrorCode TrialAlloc(const HybExec *x, HybMem mem, size_t bytes, void **ptr)
{
  *ptr = NULL;
  Trials += bytes > (size_t)1 << 30;
  if (empty) SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory");
  return plenty->alloc(x, mem, 64, ptr);
}

static PetscErrorCode TrialFree(const HybExec *x, HybMem mem, size_t bytes, void *ptr)
{
  Frees += bytes > (size_t)1 << 30;
  return plenty->free(x, mem, 64, ptr);
}

/* Is a product refused for memory that plans would give back? Nothing is tried for more than the card has (2, 3), and
   what is free is said as it is then. */
static void Counted(void)
{
  HybBackend little = *HybTestExec()->backend;
  HybExec    exec   = *HybTestExec();
  RefMat     A;

  if (width || !Is("hash") || PetscDefined(USE_REAL_SINGLE)) return; /* its bytes are those of double */
  HybTestBegin("a large product's count, little memory free");
  HybTestMatRandom(3, 3, 1, 1, &A);
  plenty        = HybTestExec()->backend;
  little.memory = LittleFree;
  little.alloc  = TrialAlloc;
  little.free   = TrialFree;
  exec.backend  = &little;
  for (int k = 0; k < 4; k++) {
    PetscErrorCode ierr;

    if (k == 3 && sizeof(PetscInt) == 4) continue; /* bytes of as many nonzeros as kernels take are no size_t */
    Trials = Frees = 0;
    Card           = (size_t)1 << (k == 2 ? 30 : 36);
    empty          = (PetscBool)(k > 0);
    Message[0]     = 0;
    PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(Catch, NULL));
    ierr = HybSpGEMMCheckCount(&exec, &A.csr, &A.csr, k == 3 ? (PetscCount)(PETSC_MAX_INT / 4) : 100000000, PETSC_FALSE);
    PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
    empty = PETSC_FALSE;
    HybTestCheck(ierr == (k ? PETSC_ERR_MEM : PETSC_SUCCESS) && Trials == (k < 2) && Frees == !k, "error %d, %d trials, %d freed", (int)ierr, Trials, Frees);
    HybTestCheck(!k || strstr(Message, k == 1 ? ", 2000 are free" : ", 1000 are free"), "\"%s\"", Message);
  }
  RefMatDestroy(&A);
}

/* plans by places (0), by masks of one word (1) and of several (2), by terms (3) */
static void UnmadePlans(void)
{
  RefMat A, B;

  if (width || (!Is("hash") && !Is("rowmerge"))) return;
  for (PetscInt kind = Is("hash") ? 0 : 1; kind < (Is("hash") ? 4 : 3); kind++) {
    HybTestBegin("%s: plans that are not made, kind %" PetscInt_FMT, method->name, kind);
    HybTestMatRandom(30, 40, 2, 4, &A);
    HybTestMatRandom(40, 500, kind == 2 ? 12 : 4, kind == 2 ? 16 : 8, &B);
    PetscCallAbort(PETSC_COMM_SELF, PetscMemzero(&Faulty, sizeof(Faulty)));
    Faulty.name  = method->name;
    Faulty.A     = &A;
    Faulty.B     = &B;
    Faulty.reuse = (PetscBool)(kind == 1 || kind == 2);
    RefSpGEMM(&A, &B, &Faulty.C);
    HybTestCall(HybTuningSet("hash_places", kind == 0 ? PLACES_ALONE : NULL));
    HybTestFaults(Unmade, FaultyCleanup, NULL);
    HybTestCall(HybTuningSet("hash_places", NULL));
    RefMatDestroy(&Faulty.C, &A, &B);
  }
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();
  PetscInt       n    = 0;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table && exec->backend->device; table++) {
    method = *table;
    n++;
    HybTestCall(HybTuningSet("plan_after", "1")); /* the others are about plans */
    Planned();
    Terms();
    Masked();
    if (HybTestMine()) UnmadePlans();
    if (HybTestMine()) Without();
    if (HybTestMine()) Unfreed();
    if (HybTestMine()) GivenBack();
    if (HybTestMine()) Counted();
    HybTestCall(HybTuningSet("plan_after", NULL));
  }
  if (!n) {
    HybTestBegin("numeric phases by a plan");
    HybTestSkip("the %s backend's methods have none", exec->backend->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
