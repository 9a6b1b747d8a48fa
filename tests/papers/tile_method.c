/*
  C = A*B by SpGEMM method "tile": tiles of every fill, cut ones, rows of tiles about every bin's end and beyond shared
  memory, what has no product must not be reached, and the bits of a chain of fma().
*/
#include "spgemmtest.h"

#define TILE 8

/* the pattern of the tiles that have entries */
static void TilesOf(const RefMat *A, RefMat *T)
{
  PetscInt  *ci = (PetscInt *)RefAlloc(A->csr.nnz, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(A->csr.nnz, sizeof(PetscInt));
  PetscCount n = 0;

  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++, n++) {
      ci[n] = r / TILE;
      cj[n] = A->csr.j[k] / TILE;
    }
  }
  RefCOO((A->csr.m + TILE - 1) / TILE, (A->csr.n + TILE - 1) / TILE, n, ci, cj, NULL, T);
  RefFree(ci, cj);
}

/* which of its rows and columns the tile (R, K) has entries in: bits 0 to 7 and 8 to 15 */
static unsigned Mask(const RefMat *A, PetscInt R, PetscInt K)
{
  unsigned mask = 0;

  for (PetscInt r = R * TILE; r < PetscMin((R + 1) * TILE, A->csr.m); r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++)
      if (A->csr.j[k] / TILE == K) mask |= 1u << (r % TILE) | 256u << (A->csr.j[k] % TILE);
  }
  return mask;
}

static void CheckCounters(const HybSpGEMM *mm, const RefMat *A, const RefMat *B, const RefMat *C)
{
  PetscCount pairs = 0, products = 0;
  RefMat     TA, TB, TC;

  CheckStats(mm, A, B);
  TilesOf(A, &TA);
  TilesOf(B, &TB);
  TilesOf(C, &TC);
  if (TB.csr.nnz < 2000) {
    unsigned *mask = (unsigned *)RefAlloc(TB.csr.nnz, sizeof(unsigned));

    for (PetscInt R = 0; R < TB.csr.m; R++)
      for (PetscInt k = TB.csr.i[R]; k < TB.csr.i[R + 1]; k++) mask[k] = Mask(B, R, TB.csr.j[k]);
    for (PetscInt R = 0; R < TA.csr.m; R++) {
      for (PetscInt k = TA.csr.i[R]; k < TA.csr.i[R + 1]; k++) {
        const PetscInt K    = TA.csr.j[k];
        const unsigned mine = Mask(A, R, K);

        for (PetscInt l = TB.csr.i[K]; l < TB.csr.i[K + 1]; l++, pairs++) products += (mask[l] & mine >> 8) != 0;
      }
    }
    free(mask);
    HybTestCheck(HybCountersGet(&mm->counters, "pairs of tiles") == (B->csr.nnz && A->csr.nnz ? pairs : 0) && HybCountersGet(&mm->counters, "products of tiles") == products, "%td pairs, %td products, expected %td and %td", HybCountersGet(&mm->counters, "pairs of tiles"), HybCountersGet(&mm->counters, "products of tiles"), pairs, products);
  }
  HybTestCheck(HybCountersGet(&mm->counters, "tiles") == TC.csr.nnz, "%td tiles, expected %td", HybCountersGet(&mm->counters, "tiles"), TC.csr.nnz);
  RefMatDestroy(&TA, &TB, &TC);
}

static void Check(const RefMat *A, const RefMat *B)
{
  CheckProduct("tile", A, B, RefProductFused, CheckCounters);
}

static void CheckAndDestroy(RefMat *A, RefMat *B)
{
  Check(A, B);
  RefMatDestroy(A);
  if (A != B) RefMatDestroy(B);
}

static void Zoo(void)
{
  char   name[64];
  RefMat A, B;

  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    HybTestBegin("%s times its transpose", name);
    RefTranspose(&A, PETSC_FALSE, &B);
    Check(&A, &B);
    HybTestBegin("the transpose of %s times it", name);
    CheckAndDestroy(&B, &A);
  }
  for (PetscInt k = 0; HybTestZoo(k, PETSC_TRUE, name, &A); k++) {
    HybTestBegin("%s squared", name);
    CheckAndDestroy(&A, &A);
  }
}

/* tiles of rows x columns, tile (R, K) with fill(R, K) entries, at random; the last ones cut to m rows and n columns */
static void Filled(PetscInt m, PetscInt n, PetscInt (*fill)(PetscInt R, PetscInt K), RefMat *A)
{
  const PetscInt rows = (m + TILE - 1) / TILE, columns = (n + TILE - 1) / TILE;
  PetscInt      *ci = (PetscInt *)RefAlloc((PetscCount)rows * columns * TILE * TILE, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc((PetscCount)rows * columns * TILE * TILE, sizeof(PetscInt)), nnz = 0;
  PetscScalar   *v;
  RefMat         sorted;

  for (PetscInt R = 0; R < rows; R++) {
    for (PetscInt K = 0; K < columns; K++) {
      const PetscInt f    = fill(R, K);
      PetscInt       left = TILE * TILE, want = f;

      for (PetscInt e = 0; e < TILE * TILE; e++, left--) {
        const PetscInt r = R * TILE + e / TILE, c = K * TILE + e % TILE;

        if (HybTestRandomInt(0, left) >= want) continue;
        want--;
        if (r >= m || c >= n) continue;
        ci[nnz]   = r;
        cj[nnz++] = c;
      }
    }
  }
  v = HybTestRandomVector(nnz);
  RefCOO(m, n, nnz, ci, cj, v, &sorted);
  /* which is not computed, for a reference: its values may be changed */
  HybTestMatArrays(m, n, sorted.csr.i, sorted.csr.j, sorted.csr.a, A);
  RefMatDestroy(&sorted);
  RefFree(ci, cj, v);
}

static PetscInt FillDiagonal(PetscInt R, PetscInt K)
{
  return R == K ? R + 1 : 0;
}
static PetscInt FillFull(PetscInt R, PetscInt K)
{
  return TILE * TILE;
}
static PetscInt FillAny(PetscInt R, PetscInt K)
{
  return HybTestRandomInt(0, 3) ? 0 : HybTestRandomInt(0, TILE * TILE + 1);
}
static PetscInt FillHalf(PetscInt R, PetscInt K)
{
  return (R + K) % 3 ? 9 + 7 * R : 0;
}
static PetscInt FillOne(PetscInt R, PetscInt K)
{
  return 1;
}
static PetscInt FillRow(PetscInt R, PetscInt K)
{
  return (37 * K + R) % 65;
}

static void Fills(void)
{
  RefMat A, B;

  HybTestBegin("a tile of each fill from 1 to 64 times full ones");
  Filled(512, 512, FillDiagonal, &A);
  Filled(512, 10, FillFull, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("full tiles times a tile of each fill from 1 to 64");
  Filled(10, 512, FillFull, &A);
  Filled(512, 512, FillDiagonal, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("tiles of each fill in one sum");
  Filled(19, 512, FillRow, &A);
  Filled(512, 21, FillRow, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("tiles of one entry, most of whose products are empty");
  Filled(80, 160, FillOne, &A);
  Filled(160, 72, FillOne, &B);
  CheckAndDestroy(&A, &B);
  HybTestBegin("full tiles, squared");
  Filled(64, 64, FillFull, &A);
  CheckAndDestroy(&A, &A);
}

static void Cuts(void)
{
  static const PetscInt sizes[] = {1, 2, 7, 8, 9, 15, 16, 17};
  const PetscInt        n       = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(sizes);
  RefMat                A, B;

  for (PetscInt k = 0; k < n * n * n; k++) {
    const PetscInt m = sizes[k % n], l = sizes[k / n % n], q = sizes[k / n / n];

    HybTestBegin("cut tiles: %" PetscInt_FMT " x %" PetscInt_FMT " times %" PetscInt_FMT " x %" PetscInt_FMT, m, l, l, q);
    Filled(m, l, k % 2 ? FillAny : FillFull, &A);
    Filled(l, q, k % 3 ? FillAny : FillFull, &B);
    CheckAndDestroy(&A, &B);
  }
}

/* rows of tiles of just about so many entries as a block of threads takes, and many more; columns all over */
static void Long(void)
{
  RefMat A, B;

  for (PetscInt kind = 0; kind < 5; kind++) {
    const PetscInt m           = kind == 3 ? 43 : 40; /* the last row of tiles is cut */
    PetscInt       lengths[43] = {0};

    HybTestBegin("long rows of tiles %" PetscInt_FMT, kind);
    if (kind != 3) { /* 1535 to 1537 entries of eight rows, of one row; those of 1536 close together and far apart */
      const PetscInt n = kind == 0 ? 1535 : kind == 2 ? 1537
                                                      : 1536;

      for (PetscInt r = 0; r < 8; r++) lengths[r] = r == 5 ? n - 7 * 192 : 192;
      lengths[12] = n;
      lengths[39] = n;
    } else
      for (PetscInt r = 0; r < m; r++) lengths[r] = r % 3 ? 700 + 13 * r : r;
    HybTestMatLengths(m, kind == 1 ? 2000 : 120000, lengths, &A);
    if (kind == 3)
      for (PetscInt k = A.csr.i[5] - 20; k < A.csr.i[5]; k++) A.csr.j[k] = 119980 + k - (A.csr.i[5] - 20);
    RefTranspose(&A, PETSC_FALSE, &B);
    Check(&A, &B);
    RefMatDestroy(&B);
    HybTestMatRandom(9, m, 3, 30, &B);
    CheckAndDestroy(&B, &A);
  }
}

/* A few long rows of tiles among so many that each block of threads looks for them three times: six blocks to a
   multiprocessor, of which the emulated device has two, look at a row of tiles a thread in each turn */
static void LongAndMany(void)
{
  const PetscInt blocks = 12, turn = blocks * 256, m = TILE * (2 * turn + 100);
  PetscInt      *lengths = (PetscInt *)RefAlloc(m, sizeof(*lengths));
  RefMat         A, B;

  HybTestBegin("long rows of tiles among very many");
  /* of two blocks, found by other warps from turn to turn; where these look in the other turn the row is short */
  for (PetscInt t = 0; t < 2; t++) {
    for (PetscInt k = 0; k < 6; k++) lengths[TILE * (t * turn + blocks * 32 * k + k / 2 % 2) + k] = k % 2 == t ? 1600 + 50 * k : 5;
  }
  lengths[m - 1] = 1700;
  HybTestMatLengths(m, 2000, lengths, &A);
  HybTestMatRandom(2000, 40, 0, 1, &B);
  CheckAndDestroy(&A, &B);
  free(lengths);
}

/* Row R of tiles has tiles[R] of them, step[R] apart, of one entry each, all in one row or dealt to eight */
static void SparseTiles(PetscInt n, const PetscInt *tiles, const PetscInt *step, PetscInt columns, RefMat *A)
{
  PetscInt     nnz = 0, *ci, *cj;
  PetscScalar *a;

  for (PetscInt R = 0; R < n; R++) nnz += tiles[R];
  ci  = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt));
  cj  = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt));
  a   = (PetscScalar *)RefAlloc(nnz, sizeof(PetscScalar));
  nnz = 0;
  for (PetscInt R = 0; R < n; R++) {
    for (PetscInt k = 0; k < tiles[R]; k++, nnz++) {
      ci[nnz] = R * TILE + (R % 2 ? 3 : HybTestRandomInt(0, TILE));
      cj[nnz] = (R % 3 + k * step[R]) * TILE + HybTestRandomInt(0, TILE);
      a[nnz]  = HybTestRandomScalar();
    }
  }
  RefCOO(n * TILE, columns, nnz, ci, cj, a, A);
  RefFree(a, ci, cj);
}

/* rows of tiles of just about so many tiles, and so far apart, as a warp has room for on the way from CSR */
static void Rooms(void)
{
  static const PetscInt found[] = {255, 256, 257, 255, 256, 257, 2, 2, 2, 2, 1, 300, 40}, apart[] = {1, 1, 1, 31, 32, 33, 8191, 8192, 8160, 8193, 1, 30, 200};
  RefMat                A, B;

  HybTestBegin("rows of tiles about what a warp has room for on the way from CSR");
  SparseTiles((PetscInt)PETSC_STATIC_ARRAY_LENGTH(found), found, apart, 72000, &A);
  RefTranspose(&A, PETSC_FALSE, &B);
  Check(&A, &B);
  RefMatDestroy(&B);
  HybTestMatRandom(20, A.csr.m, 3, 30, &B);
  CheckAndDestroy(&B, &A);
}

/* row 8 R of A names row 8 R of B, and that has one entry in each of p[R] tiles, step[R] columns apart */
static void OneRowEach(PetscInt n, const PetscInt *p, const PetscInt *step)
{
  PetscInt *ai = (PetscInt *)RefAlloc(n * TILE + 1, sizeof(PetscInt)), *aj = (PetscInt *)RefAlloc(n, sizeof(PetscInt)), *bi = (PetscInt *)RefAlloc(n * TILE + 1, sizeof(PetscInt)), *bj, nb = 0, columns = 0;
  RefMat    A, B;

  for (PetscInt R = 0; R < n; R++) {
    nb += p[R];
    columns = PetscMax(columns, p[R] * step[R] + TILE);
  }
  bj = (PetscInt *)RefAlloc(nb, sizeof(PetscInt));
  nb = 0;
  for (PetscInt R = 0; R < n; R++) {
    aj[R] = R * TILE;
    for (PetscInt k = 0; k < p[R]; k++) bj[nb++] = k * step[R] / TILE * TILE + HybTestRandomInt(0, TILE);
    for (PetscInt r = 1; r <= TILE; r++) {
      ai[R * TILE + r] = R + 1;
      bi[R * TILE + r] = nb;
    }
  }
  HybTestMatArrays(n * TILE, n * TILE, ai, aj, NULL, &A);
  HybTestMatArrays(n * TILE, columns, bi, bj, NULL, &B);
  CheckAndDestroy(&A, &B);
  RefFree(ai, aj, bi, bj);
}

static void Bins(void)
{
  static const PetscInt spans[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}, bytes[] = {256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 12288, 16384, 32768, 49152, 65536, 131072, 196608, 231424, 232000};
  PetscInt              p[80], step[80], n = 0;

  HybTestBegin("rows of tiles about the end of every bin by words of bits");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(spans) - (HybTestSlow() ? 2 : 0); k++) {
    for (PetscInt d = -1; d <= 1; d++) {
      p[n]      = 2;
      step[n++] = (spans[k] * 32 - 1 + d) * TILE;
    }
  }
  OneRowEach(n, p, step);
  HybTestBegin("rows of tiles about the end of every bin by bytes, and beyond all shared memory");
  n = 0;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bytes); k++) {
    /* 12 bytes a tile, what its one task takes, and 6 for 32 of them */
    for (PetscInt d = -1; d <= 1; d++) {
      p[n]      = bytes[k] * 32 / ((18 + (PetscInt)sizeof(PetscInt)) * 32 + 6) + d;
      step[n++] = TILE;
    }
  }
  p[n]      = 40000; /* two windows */
  step[n++] = TILE;
  OneRowEach(n, p, step);
  HybTestBegin("enough rows of each size that bins are launched one by one");
  {
    PetscInt lengths[2400];
    RefMat   A, B;

    for (PetscInt r = 0; r < 2400; r++) lengths[r] = r / 8 % 3 == 0 ? 1 : r / 8 % 3 == 1 ? 7
                                                                                         : 30;
    HybTestMatLengths(2400, 700, lengths, &A);
    HybTestMatRandom(700, HybTestSize(3000, 900), 1, 2, &B);
    CheckAndDestroy(&A, &B);
  }
  HybTestBegin("few columns, very many pairs");
  {
    RefMat A, B;

    HybTestMatRandom(9, 40000, 5000, 6000, &A);
    HybTestMatRandom(40000, 20, 0, 1, &B);
    CheckAndDestroy(&A, &B);
  }
}

/* columns so far apart that the words of bits alone are more than shared memory */
static void Far(void)
{
  PetscInt       ai[] = {0, 3, 5, 5, 7}, aj[] = {0, 9, 20, 1, 9, 20, 21}, *bi = (PetscInt *)RefAlloc(31, sizeof(PetscInt)), bj[200], nb = 0;
  const PetscInt n = 16000000;
  RefMat         A, B;

  HybTestBegin("columns very far apart");
  for (PetscInt r = 0; r < 30; r++) {
    if (r == 0 || r == 9 || r == 20) {
      for (PetscInt k = 0; k < 50; k++) bj[nb++] = k * (n / 50) + (k == 49 ? n / 50 - 1 - (r == 9) : HybTestRandomInt(0, n / 50));
    }
    bi[r + 1] = nb;
  }
  HybTestMatArrays(4, 30, ai, aj, NULL, &A);
  HybTestMatArrays(30, n, bi, bj, NULL, &B);
  CheckAndDestroy(&A, &B);
  free(bi);
}

static void Random(void)
{
  RefMat A, B;

  for (PetscInt k = 0; k < HybTestSize(300, 40); k++) {
    const PetscInt m = HybTestRandomInt(0, 200), l = HybTestRandomInt(0, 200), n = HybTestRandomInt(0, 300), la = HybTestRandomInt(0, l + 1), lb = HybTestRandomInt(0, n + 1);

    HybTestBegin("random product %" PetscInt_FMT ", %" PetscInt_FMT " x %" PetscInt_FMT " (rows to %" PetscInt_FMT ") times %" PetscInt_FMT " x %" PetscInt_FMT " (rows to %" PetscInt_FMT ")", k, m, l, la, l, n, lb);
    HybTestMatRandom(m, l, 0, HybTestRandomInt(0, 3) ? la / 16 : la / 2, &A);
    HybTestMatRandom(l, n, 0, HybTestRandomInt(0, 3) ? lb / 16 : lb / 2, &B);
    CheckAndDestroy(&A, &B);
  }
  HybTestBegin("power law");
  HybTestMatPowerLaw(HybTestSize(3000, 400), HybTestSize(3000, 400), 6, &A);
  CheckAndDestroy(&A, &A);
  HybTestBegin("a stencil of 27 points");
  HybTestMatStencil(27, HybTestSize(15, 6), HybTestSize(14, 5), HybTestSize(13, 4), &A);
  CheckAndDestroy(&A, &A);
  for (PetscInt bs = 2; bs <= 5; bs++) {
    HybTestBegin("blocks of %" PetscInt_FMT, bs);
    HybTestMatStencil(7, 5, 4, 3, &B);
    HybTestMatBlock(&B, bs, &A);
    RefMatDestroy(&B);
    CheckAndDestroy(&A, &A);
  }
}

/* NaN and infinities in every place of either operand reach what has a product with them, and nothing else; stored
   zeros of either sign, and sums that cancel or underflow */
static void Special(void)
{
  static const PetscReal odd[] = {(PetscReal)NAN, (PetscReal)INFINITY, -(PetscReal)INFINITY};
  static const PetscReal few[] = {0.0, -0.0, 1.0, -1.0, 0.0, -0.0, 1e-200, -1e-200, 1e-160, 1e200, -1e200, 2.0};
  HybSpGEMM              mm;
  HybCSR                 DA, DB, DC;
  RefMat                 A, B, C;
  PetscScalar           *expected;

  HybTestBegin("NaN and infinities in every place");
  Filled(13, 20, FillHalf, &A);
  Filled(20, 11, FillHalf, &B);
  RefSpGEMM(&A, &B, &C);
  if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) {
    for (PetscCount k = 0; k < (A.csr.nnz + B.csr.nnz) * 3 && !HybTestFailed(); k++) {
      RefMat           *M   = k / 3 < A.csr.nnz ? &A : &B;
      const PetscCount  e   = k / 3 < A.csr.nnz ? k / 3 : k / 3 - A.csr.nnz;
      const PetscScalar was = M->csr.a[e];

      M->csr.a[e] = odd[k % 3];
      expected    = RefProductFused(&A, &B, &C);
      if (HybTestCall(HybTestExec()->backend->copy(HybTestExec(), DA.a, A.csr.a, (size_t)A.csr.nnz * sizeof(PetscScalar), HYB_COPY_HOST_TO_DEVICE)) && HybTestCall(HybTestExec()->backend->copy(HybTestExec(), DB.a, B.csr.a, (size_t)B.csr.nnz * sizeof(PetscScalar), HYB_COPY_HOST_TO_DEVICE)) && HybTestCall(Again(&mm, &DA, &DB, &DC)))
        SameNumbers(&DC, C.csr.nnz, expected);
      free(expected);
      M->csr.a[e] = was;
    }
  }
  Finish(&mm);
  RefMatDestroy(&A, &B, &C);
  for (PetscInt kind = 0; kind < HybTestSize(200, 30); kind++) {
    PetscCount zeros = 0;

    HybTestBegin("zeros of both signs, what cancels, underflows and overflows, %" PetscInt_FMT, kind);
    Filled(HybTestRandomInt(1, 30), 40, kind % 2 ? FillAny : FillRow, &A);
    Filled(40, HybTestRandomInt(1, 30), FillAny, &B);
    RefSpGEMM(&A, &B, &C);
    for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] = few[HybTestRandomInt(0, kind % 3 == 0 ? 6 : 12)];
    for (PetscCount k = 0; k < B.csr.nnz; k++) B.csr.a[k] = kind % 3 == 1 ? (PetscScalar)HybTestRandomScalar() : (PetscScalar)few[HybTestRandomInt(0, kind % 3 == 0 ? 6 : 12)];
    if (kind % 3 == 2 && A.csr.nnz) A.csr.a[HybTestRandomInt(0, (PetscInt)A.csr.nnz)] = (PetscReal)INFINITY;
    expected = RefProductFused(&A, &B, &C);
    for (PetscCount k = 0; k < C.csr.nnz; k++) zeros += PetscRealPart(expected[k]) == 0 && signbit(PetscRealPart(expected[k]));
    HybTestCheck(zeros || kind % 3 || C.csr.nnz < 100, "no negative zeros");
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) SameNumbers(&DC, C.csr.nnz, expected);
    Finish(&mm);
    free(expected);
    RefMatDestroy(&A, &B, &C);
  }
}

/* values of 16 bits, sums of 32: within what that loses, whatever the values' unit is; small integers exactly;
   infinities where they belong */
static void Half(void)
{
  static const double units[][2] = {
    {1e307,  1e-300}, /* only the product of both scales is a number */
    {1e-305, 1e307 },
    {1,      1     },
    {1e30,   1     },
    {1e-30,  1     },
    {1e-300, 1     },
    {1e5,    1     }
  };
  const PetscInt nunits = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(units);

  for (PetscInt kind = 0; kind < nunits + 2; kind++) {
    const double unit = kind < nunits ? units[kind][0] * units[kind][1] : 1;
    HybSpGEMM    mm;
    HybCSR       DA, DB, DC;
    RefMat       A, B, C;
    PetscScalar *found;
    PetscReal    worst = 0;

    if (kind < nunits)
      HybTestBegin("half precision, values about %g and %g", units[kind][0], units[kind][1]);
    else
      HybTestBegin("half precision, %s", kind == nunits ? "small integers" : "an infinity");
    Filled(70, 90, kind % 2 ? FillAny : FillRow, &A);
    Filled(90, 45, FillAny, &B);
    for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] = kind >= nunits ? (double)HybTestRandomInt(-9, 10) : A.csr.a[k] * units[kind][0];
    for (PetscCount k = 0; k < B.csr.nnz; k++) B.csr.a[k] = kind >= nunits ? (double)HybTestRandomInt(-9, 10) : B.csr.a[k] * units[kind][1];
    RefSpGEMM(&A, &B, &C);
    if (kind == nunits + 1) {
      A.csr.a[A.csr.nnz / 2] = (PetscReal)INFINITY;
      HybTestCheck(A.csr.nnz > 0, "no entries");
    }
    found = RefProductFused(&A, &B, &C); /* for room, and for what is finite */
    HybTestCall(HybTuningSet("tile_precision", "half"));
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) {
      const PetscCount lost = HybCountersGet(&mm.counters, "1e-9 of values of A lost in half precision");

      if (kind >= nunits)
        SameNumbers(&DC, C.csr.nnz, found);
      else if (HybTestCall(HybTestDownloadArray(C.csr.nnz, sizeof(PetscScalar), DC.a, found))) {
        for (PetscCount k = 0; k < C.csr.nnz; k++) {
          const double error = fabs(PetscRealPart(found[k] - C.csr.a[k])), may = C.mag[k] * (1.1 / 1024 + 1e-6 * (double)C.terms[k]) + 1e-9 * unit * (double)C.terms[k];

          worst = PetscMax(worst, error / may);
          if (!HybTestCheck(error <= may, "entry %td is %g, expected %g within %g", k, (double)PetscRealPart(found[k]), (double)PetscRealPart(C.csr.a[k]), may)) break;
        }
        HybTestCheck(worst > 0.01, "%g of the error that half precision may have", (double)worst);
      }
      HybTestCheck(kind >= nunits ? lost == 0 : lost > 100000, "1e-9 times %td", lost);
      if (kind < nunits) HybTestCall(Again(&mm, &DA, &DB, &DC));
      if (kind < nunits) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, found);
    }
    HybTestCall(HybTuningSet("tile_precision", NULL));
    Finish(&mm);
    free(found);
    RefMatDestroy(&A, &B, &C);
  }
}

/* a value that is zero in half precision, or so small that the scale makes it one, is lost whole */
static void Lost(void)
{
  static const double small[] = {1e-9, 1e-300, 0}, others[] = {1e300, 1e300, 1};

  /* a stored zero is none of the values that are lost */
  for (int kind = 0; kind < 3; kind++) {
    HybSpGEMM mm;
    HybCSR    DA, DB, DC;
    RefMat    A, B;

    HybTestBegin("half precision, a value of %g beside others of %g", small[kind], others[kind]);
    HybTestMatBanded(40, 40, 1, 1, &A);
    HybTestMatBanded(40, 40, 0, 1, &B);
    for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] = k == 17 ? small[kind] : others[kind];
    HybTestCall(HybTuningSet("tile_precision", "half"));
    if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC))) {
      const PetscCount lost = HybCountersGet(&mm.counters, "1e-9 of values of A lost in half precision");

      HybTestCheck(lost == (kind < 2 ? 1000000000 : 0), "1e-9 times %td", lost);
    }
    HybTestCall(HybTuningSet("tile_precision", NULL));
    Finish(&mm);
    RefMatDestroy(&A, &B);
  }
}

/* results that are denormal are not taken for zeros */
static void Denormals(void)
{
  HybSpGEMM    mm;
  HybCSR       DA, DB, DC;
  RefMat       A, B, C;
  PetscScalar *expected;

  HybTestBegin("denormals");
  HybTestMatRandom(60, 60, 0, 30, &A);
  RefMatCopy(&A, &B);
  for (PetscCount k = 0; k < A.csr.nnz; k++) A.csr.a[k] *= 1 / PETSC_MAX_REAL;
  RefSpGEMM(&A, &B, &C);
  expected = RefProductFused(&A, &B, &C);
  if (Begin(&mm, &A, &B, &DA, &DB) && HybTestCall(Multiply(&mm, &DA, &DB, &DC)) && HybTestSamePattern(&DC, &C)) HybTestSameBits(C.csr.nnz, sizeof(PetscScalar), DC.a, expected);
  Finish(&mm);
  free(expected);
  RefMatDestroy(&A, &B, &C);
}

static void Repeated(void)
{
  RefMat A;

  HybTestMatPowerLaw(HybTestSize(2000, 200), HybTestSize(2000, 200), 6, &A);
  TwentyRuns(&A, RefProductFused);
}

/* one object, patterns of other sizes and of none in turn; and "auto" leaves all of them to others */
static void Changing(void)
{
  HybSpGEMM mm;

  for (int by = 0; by < 2; by++) {
    HybTestBegin("patterns that change from call to call, %s", by ? "auto" : "by name");
    if (!HybTestCall(HybSpGEMMInit(&mm, HybTestExec(), by ? "auto" : "tile", 0))) return;
    for (PetscInt k = 0; k < 6; k++) {
      HybCSR DA, DC;
      RefMat A, C;

      HybTestMatRandom(20 + 37 * k, 20 + 37 * k, 0, k == 3 ? 0 : 2 + 5 * k, &A);
      RefSpGEMM(&A, &A, &C);
      if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybSpGEMMSymbolic(&mm, &DA, &DA, &out, &DC))) {
        HybTestSamePattern(&DC, &C);
        HybTestCheck(!strcmp(mm.method->name, "tile") == !by, "%s ran", mm.method->name);
      }
      HybTestCall(HybTestReset(&out, &keep));
      RefMatDestroy(&A, &C);
    }
    Finish(&mm);
  }
}

static void Faults(void)
{
  RefMat A, B;

  HybTestBegin("every allocation failing in turn");
  HybTestMatDenseRow(40, 90, 7, 3, &A);
  HybTestMatPowerLaw(90, 700, 20, &B);
  EachFault("tile", &A, &B, PETSC_FALSE);
  RefMatDestroy(&A, &B);
}

static void Limits(void)
{
  RefMat A, B;
  HybCSR DA, DB;

  HybTestBegin("an operand of as many nonzeros as PetscInt counts");
  memset(&DA, 0, sizeof(DA));
  DA.m = DA.n = 70000;
  DA.nnz      = PETSC_MAX_INT;
  Refused(&DA, &DA, PETSC_ERR_ARG_OUTOFRANGE, "kernels need the last");
  HybTestBegin("a product of more nonzeros than PetscInt counts is refused");
  if (sizeof(PetscInt) == 8) {
    HybTestSkip("64-bit indices count them");
    return;
  }
  HybTestMatBanded(50000, 1, 50000, 1, &A);
  HybTestMatBanded(1, 60000, 1, 60000, &B);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "at least 3000000000");
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A, &B);
  HybTestBegin("and when they are counted");
  if (HybTestSlow()) {
    HybTestSkip("takes too long here");
    return;
  }
  TwoHalves(&A, &B);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA)) && HybTestCall(HybTestUpload(&keep, &B.csr, &DB))) Refused(&DA, &DB, PETSC_ERR_ARG_OUTOFRANGE, "nonzeros, more than the 2147483647 that 32-bit indices can count");
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A, &B);
}

static void OtherScalars(void)
{
  RefMat A;
  HybCSR DA;

  HybTestBegin("other numbers are refused, and why");
  HybTestMatBanded(30, 30, 2, 2, &A);
  if (HybTestCall(HybTestUpload(&keep, &A.csr, &DA))) Refused(&DA, &DA, PETSC_ERR_SUP, PetscDefined(USE_COMPLEX) ? "PetscScalar is complex" : "PetscScalar is real of 4 bytes");
  HybTestCall(HybArenaReset(&keep));
  RefMatDestroy(&A);
}

static PetscErrorCode Body(void)
{
  PetscFunctionBegin;
  PetscCall(Methods("tile", "products by tiles"));
  if (!method) PetscFunctionReturn(PETSC_SUCCESS);
  if (!HYBTEST_TILES) {
    if (HybTestMine()) OtherScalars();
  } else
    HybTestPieces(Zoo, Fills, Cuts, Long, LongAndMany, Rooms, Bins, Far, Random, Special, Half, Lost, Denormals, Repeated, Changing, Faults, Limits);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
