/*
  Matrices that the device made and AIJ got without its loops over their rows (petsc/narrow.c): all that reads what
  these loops find, beside MATAIJ. Rows' lengths by new entries and rows that go, the longest row by its function, the
  rows with entries by counts of operations, the diagonal's places (in releases that look for them at assembly) by what
  is missing and by an incomplete factorization; in the matrix itself, its duplicates and conversions, and in products.

TEST np=1
TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_narrow_min 0
TEST np=+1 @emulated -mat_aijhybridgpu_narrow_min 0 -malloc_debug
TEST np=+1 @emulated -mat_aijhybridgpu_narrow_min 0 -mat_no_inode
TEST np=1 @emulated -mat_aijhybridgpu_narrow_min 0 -mat_aijhybridgpu_memory mirror
TEST np=+1 @emulated -mat_aijhybridgpu_narrow_min 0 -mat_seqaij_type seqaijhybridgpu
TEST np=1 @emulated -mat_aijhybridgpu_narrow_min 0 -mat_aijhybridgpu_row_blocks_min 1
TEST np=+1 @emulated -mat_aijhybridgpu_narrow_min 0 -mat_aijhybridgpu_row_blocks_min 1 -malloc_debug
TEST np=1 @emulated -hyb_test_frame_unknown
*/
#define _GNU_SOURCE
#include "mattest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PetscBool device, unknown;
static PetscInt  least = 4096;

typedef PetscInt (*LengthFn)(PetscInt r, PetscInt m, PetscInt n);

static PetscInt None(PetscInt r, PetscInt m, PetscInt n)
{
  return 0;
}
static PetscInt Three(PetscInt r, PetscInt m, PetscInt n)
{
  return PetscMin(3, n);
}
static PetscInt Half(PetscInt r, PetscInt m, PetscInt n)
{
  return r % 2 ? PetscMin(1 + r % 5, n) : 0;
}
static PetscInt LessThanHalf(PetscInt r, PetscInt m, PetscInt n)
{
  return r % 2 && r != 1 ? PetscMin(1 + r % 5, n) : 0;
}
static PetscInt TwoOfFive(PetscInt r, PetscInt m, PetscInt n)
{
  return r % 5 > 2 ? PetscMin(1 + r % 7, n) : 0;
}
static PetscInt LessThanTwoOfFive(PetscInt r, PetscInt m, PetscInt n)
{
  return r > 4 ? TwoOfFive(r, m, n) : 0;
}
static PetscInt Last(PetscInt r, PetscInt m, PetscInt n)
{
  return r == m - 1 ? PetscMin(3, n) : 0;
}
static PetscInt Few(PetscInt r, PetscInt m, PetscInt n)
{
  return r % 4 == 3 ? PetscMin(2, n) : 0;
}
static PetscInt OneDense(PetscInt r, PetscInt m, PetscInt n)
{
  return r == m / 2 ? n : PetscMin(2, n);
}
static PetscInt LastDense(PetscInt r, PetscInt m, PetscInt n)
{
  return r == m - 1 ? n : r % 3;
}
static PetscInt Dense(PetscInt r, PetscInt m, PetscInt n)
{
  return n;
}
static PetscInt Mixed(PetscInt r, PetscInt m, PetscInt n)
{
  return PetscMin((r * 7919 + 13) % 11, n);
}

static const struct {
  const char *name;
  PetscInt    m, n;
  LengthFn    length;
  PetscBool   diagonal; /* the rows' columns go from the diagonal on, else from anywhere */
} shapes[] = {
  {"0 x 0",                             0,     0,    None,              PETSC_FALSE},
  {"0 x 7",                             0,     7,    None,              PETSC_FALSE},
  {"7 x 0",                             7,     0,    None,              PETSC_FALSE},
  {"all empty",                         40,    30,   None,              PETSC_FALSE},
  {"1 x 1",                             1,     1,    Dense,             PETSC_TRUE },
  {"one row",                           1,     9,    Dense,             PETSC_FALSE},
  {"two rows",                          2,     9,    Three,             PETSC_FALSE},
  {"one column",                        50,    1,    Dense,             PETSC_FALSE},
  {"three in a row",                    64,    64,   Three,             PETSC_TRUE },
  {"half of the rows empty",            60,    60,   Half,              PETSC_FALSE},
  {"one more",                          60,    60,   LessThanHalf,      PETSC_FALSE},
  {"60 % of the rows empty",            60,    60,   TwoOfFive,         PETSC_FALSE},
  {"two more",                          60,    60,   LessThanTwoOfFive, PETSC_FALSE},
  {"three quarters empty",              60,    50,   Few,               PETSC_FALSE},
  {"all but the last row empty",        60,    60,   Last,              PETSC_FALSE},
  {"many rows, three quarters empty",   20000, 900,  Few,               PETSC_FALSE},
  {"a dense row",                       50,    50,   OneDense,          PETSC_TRUE },
  {"a dense last row, some empty ones", 51,    40,   LastDense,         PETSC_FALSE},
  {"all dense",                         24,    24,   Dense,             PETSC_TRUE },
  {"more rows than columns",            90,    20,   Mixed,             PETSC_FALSE},
  {"more columns than rows",            20,    90,   Mixed,             PETSC_FALSE},
  {"many rows",                         6000,  6000, Mixed,             PETSC_FALSE},
  {"many rows, three in each",          5000,  5000, Three,             PETSC_TRUE }
};

/* what the loops would find */
typedef struct {
  PetscInt m, n, nnz, longest, nonempty;
} Facts;

/* A of MATAIJ by MatSetValues(), H of ours from coordinates: the same */
static PetscErrorCode Make(size_t s, Mat *A, Mat *H, Facts *f)
{
  const PetscInt m = shapes[s].m, n = shapes[s].n;
  PetscInt      *ci, *cj, *lengths, nnz = 0, narrow, adopted, before, adoptions;
  PetscScalar   *v;

  PetscFunctionBeginUser;
  *f = (Facts){m, n, 0, 0, 0};
  PetscCall(PetscMalloc1(m, &lengths));
  for (PetscInt r = 0; r < m; r++) {
    lengths[r] = shapes[s].length(r, m, n);
    f->nnz += lengths[r];
    f->nonempty += lengths[r] > 0;
    f->longest = PetscMax(f->longest, lengths[r]);
  }
  PetscCall(PetscMalloc3(f->nnz, &ci, f->nnz, &cj, f->nnz, &v));
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = 0; k < lengths[r]; k++, nnz++) {
      ci[nnz] = r;
      cj[nnz] = (k + (shapes[s].diagonal ? r : (r * 31) % n)) % n;
      v[nnz]  = cj[nnz] == r ? 20.0 + r % 7 : 1.0 / (1.0 + k + r % 5);
    }
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, m, n, 0, lengths, A));
  for (PetscInt k = 0; k < nnz; k++) PetscCall(MatSetValues(*A, 1, &ci[k], 1, &cj[k], &v[k], INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscCall(MatTestEventCount("HybNarrow", &before));
  PetscCall(MatTestEventCount("HybAdopt", &adoptions));
  PetscCall(MatTestCreate(PETSC_COMM_SELF, "seqaijhybridgpu", m, n, m, n, H));
  PetscCall(MatSetPreallocationCOO(*H, nnz, ci, cj));
  PetscCall(MatSetValuesCOO(*H, v, INSERT_VALUES));
  PetscCall(MatTestEventCount("HybNarrow", &narrow));
  PetscCall(MatTestEventCount("HybAdopt", &adopted));
  if (device && adopted > adoptions) {
    const PetscBool expected = (PetscBool)(!unknown && m >= PetscMax(2, least) && nnz && (2 * f->nonempty >= m || 5 * (m - f->nonempty) >= 3 * m));

    MatTestCheck(narrow - before == (expected ? 1 : 0), "whether the loops were left out");
  } else
    MatTestSkipped++;
  if (device && m && nnz) MatTestCheck(adopted - adoptions == 1, "the device made it");
  PetscCall(PetscFree(lengths));
  PetscCall(PetscFree3(ci, cj, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Flops(Mat M, PetscLogDouble *flops)
{
  PetscLogDouble before, after;

  PetscFunctionBeginUser;
  PetscCall(PetscGetFlops(&before));
  PetscCall(MatTestUse(M));
  PetscCall(PetscGetFlops(&after));
  *flops = after - before;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the rows as they are printed, of which the type is no part */
static PetscErrorCode Text(Mat M, char **text)
{
  size_t      length = 0;
  FILE       *file   = open_memstream(text, &length);
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for text");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_SELF, file, &viewer));
  PetscCall(MatView(M, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckText(Mat A, Mat M, const char *what)
{
  char       *a = NULL, *b = NULL;
  const char *rowa, *rowb;

  PetscFunctionBeginUser;
  PetscCall(Text(A, &a));
  PetscCall(Text(M, &b));
  rowa = strstr(a, "row 0");
  rowb = strstr(b, "row 0");
  MatTestCheck(!rowa == !rowb && (!rowa || !strcmp(rowa, rowb)), what);
  free(a);
  free(b);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* M says of itself what A, of MATAIJ, says; both of this many entries, f if it is not NULL what is known */
static PetscErrorCode CheckSame(Mat A, Mat M, const Facts *f, const char *what)
{
  PetscBool      flg;
  PetscInt       longest, expected, sizes[4];
  PetscLogDouble flops, expectedflops;
  MatInfo        info, expectedinfo;
  char           text[160];

  PetscFunctionBeginUser;
#define SAYS(cond, which)                                                \
  do {                                                                   \
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s: %s", what, which)); \
    MatTestCheck(cond, text);                                            \
  } while (0)
  PetscCall(MatGetSize(M, &sizes[0], &sizes[1]));
  PetscCall(MatGetLocalSize(A, &sizes[2], &sizes[3]));
  SAYS(sizes[0] == sizes[2] && sizes[1] == sizes[3], "sizes");
  PetscCall(MatEqual(M, A, &flg));
  SAYS(flg, "MatEqual");
  PetscCall(MatSeqAIJGetMaxRowNonzeros(A, &expected));
  PetscCall(MatSeqAIJGetMaxRowNonzeros(M, &longest));
  SAYS(longest == expected, "the longest row");
  PetscCall(Flops(A, &expectedflops));
  PetscCall(Flops(M, &flops));
  SAYS(flops == expectedflops, "counts of operations");
  if (f) {
    SAYS(longest == f->longest, "the longest row as it was made");
    SAYS(flops == PETSC_FLOPS_PER_OP * (2.0 * f->nnz - f->nonempty), "rows with entries as they were made");
  }
  PetscCall(MatGetInfo(A, MAT_LOCAL, &expectedinfo));
  PetscCall(MatGetInfo(M, MAT_LOCAL, &info));
  SAYS(info.nz_used == expectedinfo.nz_used && info.mallocs == expectedinfo.mallocs && info.nz_allocated >= info.nz_used, "MatGetInfo()");
  if (sizes[0] < 100) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s: MatView()", what));
    PetscCall(CheckText(A, M, text));
  }
  MatTestCheckMult(M, A, what);
  PetscCall(PetscMallocValidate(__LINE__, PETSC_FUNCTION_NAME, __FILE__));
#undef SAYS
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new values, and with fresh new entries, in the first, a middle and the last row */
static PetscErrorCode Insert(Mat M, PetscBool fresh)
{
  PetscInt m, n, last[3];

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(M, &m, &n));
  for (int k = 0; k < 3 && m && n; k++) { /* the last column of each of the rows; -1, which is left out */
    const PetscInt *cols;
    PetscInt        ncols;

    PetscCall(MatGetRow(M, k * (m - 1) / 2, &ncols, &cols, NULL));
    last[k] = ncols ? cols[ncols - 1] : -1;
    PetscCall(MatRestoreRow(M, k * (m - 1) / 2, &ncols, &cols, NULL));
  }
  if (fresh) {
    PetscCall(MatTestLetIn(M));
    PetscCall(MatSetOption(M, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  }
  for (PetscInt k = 0; k < 3 && m && n; k++) {
    const PetscInt r = k * (m - 1) / 2;

    if (fresh) {
      const PetscInt    c[] = {n - 1, 0, n / 2};
      const PetscScalar v[] = {2.0, 3.0, 4.0};

      PetscCall(MatSetValues(M, 1, &r, n > 2 ? 3 : 1, c, v, INSERT_VALUES));
    } else {
      const PetscScalar v = 5.0;

      PetscCall(MatSetValues(M, 1, &r, 1, &last[k], &v, ADD_VALUES));
    }
  }
  PetscCall(MatTestAssemble(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ZeroSome(Mat M, PetscBool keep)
{
  PetscInt m, rows[2] = {0, 0};

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(M, &m, NULL));
  rows[1] = m - 1;
  PetscCall(MatSetOption(M, MAT_KEEP_NONZERO_PATTERN, keep));
  PetscCall(MatTestLetIn(M));
  PetscCall(MatZeroRows(M, m > 1 ? 2 : (m ? 1 : 0), rows, 0.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same to a copy of each */
#define BOTH(what, operation)                         \
  do {                                                \
    Mat a_ = NULL, h_ = NULL, M;                      \
                                                      \
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &a_)); \
    PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &h_)); \
    M = a_;                                           \
    PetscCall(operation);                             \
    M = h_;                                           \
    PetscCall(operation);                             \
    PetscCall(CheckSame(a_, h_, NULL, what));         \
    PetscCall(MatDestroy(&a_));                       \
    PetscCall(MatDestroy(&h_));                       \
  } while (0)

static PetscErrorCode Derived(Mat A, Mat H, const Facts *f)
{
  Mat a, h;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &a));
  PetscCall(MatTranspose(H, MAT_INITIAL_MATRIX, &h));
  PetscCall(CheckSame(a, h, NULL, "transpose"));
  PetscCall(MatTestDestroy(&a, &h));
  if (f->m > 1 && f->n > 1) {
    IS rows, cols;

    PetscCall(ISCreateStride(PETSC_COMM_SELF, (f->m + 1) / 2, 0, 2, &rows));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, f->n - 1, 1, 1, &cols));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &a));
    PetscCall(MatCreateSubMatrix(H, rows, cols, MAT_INITIAL_MATRIX, &h));
    PetscCall(CheckSame(a, h, NULL, "submatrix"));
    PetscCall(MatTestDestroy(&a, &h, &rows, &cols));
  }
  if (f->m == f->n && f->nnz) {
    PetscReal difference = 1;
    PetscInt  longest, expected;

    PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &a));
    PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &h));
    PetscCall(MatTestDifference(h, a, &difference));
    MatTestCheck(difference < ROUNDED(1e-12), "product");
    PetscCall(MatSeqAIJGetMaxRowNonzeros(a, &expected));
    PetscCall(MatSeqAIJGetMaxRowNonzeros(h, &longest));
    MatTestCheck(longest == expected, "the longest row of a product");
    PetscCall(MatTestDestroy(&a, &h));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what asks for the diagonal's places; M: H, or its conversion. relax: no two rows are of equal pattern, which AIJ may
   relax together or not */
static PetscErrorCode Diagonal(Mat A, Mat M, PetscBool full, PetscBool relax, const char *what)
{
  Vec      d, e;
  PetscInt m, n;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &n));
#if PETSC_VERSION_LT(3, 19, 0)
  if (m == n) {
    PetscBool missing[2];
    PetscInt  where[2] = {-1, -1};

    PetscCall(MatMissingDiagonal(A, &missing[0], &where[0]));
    PetscCall(MatMissingDiagonal(M, &missing[1], &where[1]));
    MatTestCheck(missing[0] == missing[1] && (!missing[0] || where[0] == where[1]), what);
  }
#endif
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecDuplicate(d, &e));
  if (m == n) {
    PetscCall(MatGetDiagonal(A, d));
    PetscCall(MatGetDiagonal(M, e));
    VecTestCheckSame(e, d, what);
  }
  if (full) {
    Mat pair[2] = {A, M};
    Vec b, sol[2] = {d, e};

    PetscCall(VecDuplicate(d, &b));
    PetscCall(VecSetRandom(b, NULL));
    for (int k = 0; k < 2; k++) {
      KSP ksp;
      PC  pc;

      PetscCall(VecSet(sol[k], 0.0));
      if (relax) PetscCall(MatSOR(pair[k], b, 1.0, SOR_LOCAL_SYMMETRIC_SWEEP, 0.0, 2, 1, sol[k]));
      PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
      PetscCall(KSPSetOperators(ksp, pair[k], pair[k]));
      PetscCall(KSPSetType(ksp, KSPPREONLY));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCSetType(pc, PCILU));
      PetscCall(VecAXPY(sol[k], 1.0, b));
      PetscCall(KSPSolve(ksp, sol[k], sol[k]));
      PetscCall(KSPDestroy(&ksp));
    }
    VecTestCheckSame(e, d, what);
    PetscCall(VecDestroy(&b));
  }
  PetscCall(MatTestDestroy(&d, &e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by AIJ's own loops over what it was given */
static PetscErrorCode InPlace(size_t s)
{
  Mat   A, H;
  Facts f;

  PetscFunctionBeginUser;
  PetscCall(Make(s, &A, &H, &f));
  PetscCall(MatConvert(H, MATSEQAIJ, MAT_INPLACE_MATRIX, &H));
  PetscCall(CheckSame(A, H, &f, "converted in place"));
  MatTestBoth(Insert, A, H, PETSC_TRUE);
  PetscCall(CheckSame(A, H, NULL, "converted in place, new entries"));
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shape(size_t s)
{
  Mat       A, H, C;
  Facts     f;
  PetscBool full, relax;

  PetscFunctionBeginUser;
  MatTestName = shapes[s].name;
  PetscCall(Make(s, &A, &H, &f));
  full  = (PetscBool)(f.m == f.n && f.m > 0 && shapes[s].diagonal);
  relax = (PetscBool)(shapes[s].length != Dense);
  PetscCall(CheckSame(A, H, &f, "the matrix"));
  /* by PETSc's own operations: a conversion takes over what AIJ keeps */
  PetscCall(MatConvert(H, MATAIJ, MAT_INITIAL_MATRIX, &C));
  PetscCall(CheckSame(A, C, &f, "converted"));
  PetscCall(Diagonal(A, C, full, relax, "the diagonal, converted"));
  PetscCall(Insert(C, PETSC_TRUE));
  PetscCall(MatDestroy(&C));
  PetscCall(Diagonal(A, H, full, relax, "the diagonal"));
  BOTH("values into a duplicate", Insert(M, PETSC_FALSE));
  BOTH("new entries in a duplicate", Insert(M, PETSC_TRUE));
  BOTH("rows of zeros in a duplicate", ZeroSome(M, PETSC_FALSE));
  PetscCall(Derived(A, H, &f));
  /* in the matrix itself */
  MatTestBoth(Insert, A, H, PETSC_FALSE);
  PetscCall(CheckSame(A, H, &f, "values into it"));
  MatTestBoth(ZeroSome, A, H, PETSC_TRUE);
  PetscCall(CheckSame(A, H, &f, "rows of zeros kept"));
  MatTestBoth(ZeroSome, A, H, PETSC_FALSE);
  PetscCall(CheckSame(A, H, NULL, "rows of zeros"));
  MatTestBoth(Insert, A, H, PETSC_TRUE);
  PetscCall(CheckSame(A, H, NULL, "new entries in it"));
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* allocations of a block with a number for each row */
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  size_t least;
  int    n;
} Blocks;

static PetscErrorCode CountBlocks(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  Blocks.n += bytes >= Blocks.least && bytes < Blocks.least + 64;
  return (*Blocks.malloc)(bytes, clear, line, function, file, array);
}

/* The blocks of a product that went are the next one's (petsc/storage/rowblocks.c), and nobody else's. Not if they are
   small. */
static PetscErrorCode Kept(size_t s, PetscBool kept)
{
  const PetscInt *i[2], *j;
  void           *between[8];
  PetscInt        m;
  PetscBool       done;
  Mat             A, H, C;
  Facts           f;

  PetscFunctionBeginUser;
  MatTestName = "kept blocks";
  PetscCall(Make(s, &A, &H, &f));
  Blocks.malloc = PetscTrMalloc;
  Blocks.least  = (size_t)f.m * sizeof(PetscInt);
  for (int k = 0; k < 2; k++) {
    Blocks.n      = 0;
    PetscTrMalloc = CountBlocks;
    PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscTrMalloc = Blocks.malloc;
    PetscCall(MatGetRowIJ(C, 0, PETSC_FALSE, PETSC_FALSE, &m, &i[k], &j, &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No rows");
    MatTestCheck(!k || !kept || (i[0] == i[1] && Blocks.n == 0), "the second product has the first one's blocks");
    for (int b = 0; k && b < 8; b++) MatTestCheck((const char *)between[b] + Blocks.least <= (const char *)i[1] || (const char *)(i[1] + m + 1) <= (const char *)between[b], "a block of its own");
    PetscCall(MatDestroy(&C));
    for (int b = 0; !k && b < 8; b++) PetscCall(PetscMalloc(Blocks.least, &between[b]));
  }
  for (int b = 0; b < 8; b++) PetscCall(PetscFree(between[b]));
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char     backend[64] = "";
  PetscInt blocks      = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-hyb_test_frame_unknown", &unknown, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_narrow_min", &least, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_row_blocks_min", &blocks, NULL));
  device = (PetscBool)!strcmp(backend, "cuda");
  if (PetscDefined(USE_DEBUG) || PetscDefined(HAVE_THREADSAFETY)) unknown = PETSC_TRUE;
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(shapes); s++) {
    PetscCall(Shape(s));
    PetscCall(InPlace(s));
    if (shapes[s].m == 6000) PetscCall(Kept(s, (PetscBool)(device && !unknown && blocks == 1)));
  }
  return MatTestEnd();
}
