/*
  MatAXPY() and MatAYPX() beside MATAIJ: patterns that are the same, within each other or neither, by every
  MatStructure, with matrices of every birth (assembled, from coordinates, products, duplicates, written on the
  device). Compared are not the entries alone: the class of an error, states that moved, claims of symmetry, null
  spaces, maps, names, what is composed, counts, whether there is room for another entry, and whether
  MatSetValuesCOO() goes on. What PETSc does with them: TSBEULER, GAMG of a graph.

TEST np=1,2
TEST np=1,2 @emulated -every 2
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 3

-every N: one in N of the sums and of the operations, others for each birth.
*/
#include "mattest.h"
#include <petscts.h>
#include <petsc/private/petscimpl.h> /* PetscObjectStateGet() */

#define N 12
typedef enum {
  TRIDIAGONAL,
  WIDER, /* and two more columns */
  DIAGONAL,
  NEIGHBOURS, /* tridiagonal without the diagonal */
  SHIFTED,    /* as many entries in each row as tridiagonal, elsewhere */
  EMPTY,
  PATTERNS
} Pattern;
typedef enum {
  ASSEMBLED,
  COORDINATES,
  PRODUCT,
  DUPLICATE,
  WRITTEN, /* twice, by operations, after it was used: it moves to the device */
  BIRTHS
} Birth;
static const char *const PatternNames[] = {"tridiagonal", "wider", "diagonal", "neighbours", "shifted", "empty"};
static const char *const BirthNames[]   = {"assembled", "coordinates", "product", "duplicate", "written"};
static const char *const Structures[]   = {"DIFFERENT", "SUBSET", "SAME", "UNKNOWN"};
static PetscBool         Device;
static PetscMPIInt       Size;
static PetscInt          Every = 1;
static char              Case[256];

/* the coordinates of a row */
static PetscInt Columns(Pattern p, PetscInt row, PetscInt c[])
{
  PetscInt n = 0;

  for (PetscInt j = 0; j < N; j++) {
    const PetscInt d = j - row, e = (j + 3) % N - row;
    PetscBool      in = PETSC_FALSE;

    switch (p) {
    case TRIDIAGONAL: in = (PetscBool)(d >= -1 && d <= 1); break;
    case WIDER: in = (PetscBool)((d >= -1 && d <= 1) || j == N - 1 || j == 0); break;
    case DIAGONAL: in = (PetscBool)(d == 0); break;
    case NEIGHBOURS: in = (PetscBool)(d == -1 || d == 1); break;
    case SHIFTED: in = (PetscBool)(e >= -1 && e <= 1); break;
    default: break;
    }
    if (in) c[n++] = j;
  }
  return n;
}

static PetscBool Within(Pattern p, Pattern q)
{
  for (PetscInt r = 0; r < N; r++) {
    PetscInt c[2][N], n[2] = {Columns(p, r, c[0]), Columns(q, r, c[1])};

    for (PetscInt k = 0; k < n[0]; k++) {
      PetscInt l = 0;

      while (l < n[1] && c[1][l] != c[0][k]) l++;
      if (l == n[1]) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

static PetscScalar Value(PetscInt i, PetscInt j, PetscInt seed)
{
  return (PetscScalar)(1 + ((PetscMin(i, j) * 7 + PetscMax(i, j) * 5 + seed * 3) % 11));
}

static PetscErrorCode Coordinates(Mat A, Pattern p, PetscInt seed, PetscInt i[], PetscInt j[], PetscScalar v[], PetscInt *n)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  *n = 0;
  for (PetscInt r = start; r < end; r++) {
    PetscInt c[N], m = Columns(p, r, c);

    for (PetscInt k = 0; k < m; k++) {
      if (i) i[*n] = r;
      if (j) j[*n] = c[k];
      v[(*n)++] = Value(r, c[k], seed);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CoordinateValues(Mat A, Pattern p, PetscInt seed)
{
  PetscScalar v[N * N];
  PetscInt    n;

  PetscFunctionBeginUser;
  PetscCall(Coordinates(A, p, seed, NULL, NULL, v, &n));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(MatType type, Birth birth, Pattern p, PetscInt seed, Mat *A)
{
  PetscInt    i[N * N], j[N * N], n, start;
  PetscScalar v[N * N];
  Mat         B;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, N, N));
  PetscCall(MatSetBlockSize(*A, 2));
  PetscCall(MatSetType(*A, type));
  if (birth == COORDINATES || birth == DUPLICATE) {
    PetscLayout map;

    PetscCall(MatGetLayouts(*A, &map, NULL));
    PetscCall(PetscLayoutSetUp(map));
    PetscCall(Coordinates(*A, p, seed, i, j, v, &n));
    PetscCall(MatSetPreallocationCOO(*A, n, i, j));
    PetscCall(MatSetValuesCOO(*A, v, INSERT_VALUES));
  } else {
    PetscCall(MatSeqAIJSetPreallocation(*A, N, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, N, NULL, N, NULL));
    PetscCall(MatGetOwnershipRange(*A, &start, NULL));
    PetscCall(Coordinates(*A, p, seed, i, j, v, &n));
    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, i[k], j[k], v[k], INSERT_VALUES));
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  }
  if (birth == PRODUCT) { /* with the unit matrix */
    Mat unit;

    PetscCall(Make(type, ASSEMBLED, DIAGONAL, 0, &unit));
    PetscCall(MatZeroEntries(unit));
    PetscCall(MatShift(unit, 1.0));
    PetscCall(MatMatMult(*A, unit, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B));
    PetscCall(MatDestroy(&unit));
    PetscCall(MatDestroy(A));
    *A = B;
  } else if (birth == DUPLICATE) {
    PetscCall(MatDuplicate(*A, MAT_COPY_VALUES, &B));
    PetscCall(MatDestroy(A));
    *A = B;
  } else if (birth == WRITTEN) {
    Vec x, y;

    PetscCall(MatCreateVecs(*A, &x, &y));
    PetscCall(VecSet(x, 1.0));
    for (int k = 0; k < 3; k++) {
      PetscCall(MatMult(*A, x, y));
      PetscCall(MatScale(*A, k == 1 ? 0.25 : 2.0));
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a program may hang on a matrix */
static PetscErrorCode Decorate(Mat A)
{
  MatNullSpace           constant;
  ISLocalToGlobalMapping map;
  PetscInt               start, end, *blocks;
  Vec                    v;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectSetName((PetscObject)A, "decorated"));
  PetscCall(MatSetOptionsPrefix(A, "decorated_"));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &constant));
  PetscCall(MatSetNullSpace(A, constant));
  PetscCall(MatSetTransposeNullSpace(A, constant));
  PetscCall(MatSetNearNullSpace(A, constant));
  PetscCall(MatNullSpaceDestroy(&constant));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc1((end - start) / 2, &blocks));
  for (PetscInt k = 0; k < (end - start) / 2; k++) blocks[k] = start / 2 + k;
  PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_WORLD, 2, (end - start) / 2, blocks, PETSC_OWN_POINTER, &map));
  PetscCall(MatSetLocalToGlobalMapping(A, map, map));
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_HERMITIAN, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatCreateVecs(A, &v, NULL));
  PetscCall(PetscObjectCompose((PetscObject)A, "hung on it", (PetscObject)v));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is seen of a matrix beside its entries */
#define SEEN        23
#define ISASSEMBLED 8
#define ASSEMBLIES  10
static const char *const SeenNames[SEEN] = {"symmetric known", "symmetric", "Hermitian known", "Hermitian", "structurally symmetric known", "structurally symmetric", "positive definite known", "positive definite",
                                            "assembled", "entries", "assemblies", "mallocs", "null space", "transpose's null space", "near null space", "row map", "column map", "row block size", "column block size", "name", "prefix",
                                            "composed", "references"};
typedef struct {
  PetscObjectState state, nonzero;
  PetscInt         is[SEEN];
} Seen;

static PetscErrorCode Look(Mat A, Seen *s)
{
  PetscBool              set, flg;
  MatInfo                info;
  MatNullSpace           space;
  ISLocalToGlobalMapping rows, columns;
  const char            *text;
  PetscObject            composed;
  PetscInt               n = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectStateGet((PetscObject)A, &s->state));
  PetscCall(MatGetNonzeroState(A, &s->nonzero));
#define LOOKAT(call)       \
  set = flg = PETSC_FALSE; \
  PetscCall(call);         \
  s->is[n++] = set;        \
  s->is[n++] = set ? flg : 0
  LOOKAT(MatIsSymmetricKnown(A, &set, &flg));
  LOOKAT(MatIsHermitianKnown(A, &set, &flg));
  LOOKAT(MatIsStructurallySymmetricKnown(A, &set, &flg));
  LOOKAT(MatIsSPDKnown(A, &set, &flg));
#undef LOOKAT
  PetscCall(MatAssembled(A, &flg));
  s->is[n++] = flg;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  s->is[n++] = (PetscInt)info.nz_used;
  s->is[n++] = (PetscInt)info.assemblies;
  s->is[n++] = (PetscInt)info.mallocs;
  PetscCall(MatGetNullSpace(A, &space));
  s->is[n++] = !!space;
  PetscCall(MatGetTransposeNullSpace(A, &space));
  s->is[n++] = !!space;
  PetscCall(MatGetNearNullSpace(A, &space));
  s->is[n++] = !!space;
  PetscCall(MatGetLocalToGlobalMapping(A, &rows, &columns));
  s->is[n++] = !!rows;
  s->is[n++] = !!columns;
  PetscCall(MatGetBlockSizes(A, &s->is[n], &s->is[n + 1]));
  n += 2;
  text       = ((PetscObject)A)->name;
  s->is[n++] = text ? (PetscInt)text[0] : 0;
  PetscCall(MatGetOptionsPrefix(A, &text));
  s->is[n++] = text ? (PetscInt)text[0] : 0;
  PetscCall(PetscObjectQuery((PetscObject)A, "hung on it", &composed));
  s->is[n++] = !!composed;
  s->is[n++] = ((PetscObject)A)->refct;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries, NaN and infinities too */
static PetscErrorCode Same(Mat A, Mat B, PetscBool values, PetscBool *same)
{
  PetscInt start, end;
  int      mine = 1, all;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt           n[2];
    const PetscInt    *c[2];
    const PetscScalar *v[2];

    PetscCall(MatGetRow(A, r, &n[0], &c[0], &v[0]));
    PetscCall(MatGetRow(B, r, &n[1], &c[1], &v[1]));
    if (n[0] != n[1]) mine = 0;
    for (PetscInt k = 0; k < n[0] && mine; k++) {
      const PetscReal a = PetscRealPart(v[0][k]), b = PetscRealPart(v[1][k]);

      if (c[0][k] != c[1][k]) mine = 0;
      if (values && (PetscIsNanReal(a) || PetscIsNanReal(b) ? !(PetscIsNanReal(a) && PetscIsNanReal(b)) : PetscIsInfReal(a) || PetscIsInfReal(b) ? a != b
                                                                                                                                                 : !(PetscAbsReal(a - b) <= 1e-12 * (1 + PetscAbsReal(a))))) mine = 0;
    }
    PetscCall(MatRestoreRow(A, r, &n[0], &c[0], &v[0]));
    PetscCall(MatRestoreRow(B, r, &n[1], &c[1], &v[1]));
  }
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  *same = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Differs(const char *what, PetscInt aij, PetscInt ours)
{
  char text[512];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s: %s, MATAIJ %d, ours %d", Case, what, (int)aij, (int)ours));
  MatTestCheck(aij == ours, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A pair, of which [0] is MATAIJ, beside what was seen of it before */
typedef struct {
  Mat  m[2], copy; /* of [0], a MATAIJ of before */
  Seen before[2];
} Twins;

static PetscErrorCode TwinsMake(Birth birth, Pattern p, PetscInt seed, PetscBool decorated, Twins *t)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, birth, p, seed, &t->m[k]));
    if (decorated) PetscCall(Decorate(t->m[k]));
    PetscCall(Look(t->m[k], &t->before[k]));
  }
  PetscCall(MatDuplicate(t->m[0], MAT_DO_NOT_COPY_VALUES, &t->copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TwinsDestroy(Twins *t)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&t->m[k]));
  PetscCall(MatDestroy(&t->copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same happened to both */
static PetscErrorCode TwinsCompare(Twins *t, const PetscErrorCode error[2])
{
  Seen      now[2];
  PetscBool same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(Differs("error", (PetscInt)error[0], (PetscInt)error[1]));
  for (int k = 0; k < 2; k++) PetscCall(Look(t->m[k], &now[k]));
  PetscCall(Differs("state moved", now[0].state != t->before[0].state, now[1].state != t->before[1].state));
  /* MATAIJ's number may stay by chance where another matrix takes the place: then ours is free to move, but not
     with the pattern as it was */
  if (t->copy && now[1].is[ISASSEMBLED]) PetscCall(Same(t->copy, t->m[1], PETSC_FALSE, &same));
  if (!same && now[0].nonzero != t->before[0].nonzero) PetscCall(Differs("pattern's state moved with the pattern", PETSC_TRUE, now[1].nonzero != t->before[1].nonzero));
  if (Size == 1 && same && t->copy && now[0].nonzero == t->before[0].nonzero) PetscCall(Differs("pattern's state moved", PETSC_FALSE, now[1].nonzero != t->before[1].nonzero));
  for (int q = 0; q < SEEN; q++) {
    /* what was added, or all where another matrix took its place */
    if (q == ASSEMBLIES && now[0].is[q] - t->before[0].is[q] == now[1].is[q] - t->before[1].is[q]) continue;
    PetscCall(Differs(SeenNames[q], now[0].is[q], now[1].is[q]));
  }
  if (now[0].is[ISASSEMBLED] && now[1].is[ISASSEMBLED]) {
    PetscCall(Same(t->m[0], t->m[1], PETSC_TRUE, &same));
    PetscCall(Differs("entries", PETSC_TRUE, same));
  }
  for (int k = 0; k < 2; k++) t->before[k] = now[k];
  PetscCall(MatDestroy(&t->copy));
  if (now[0].is[ISASSEMBLED]) PetscCall(MatDuplicate(t->m[0], MAT_DO_NOT_COPY_VALUES, &t->copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define QUIETLY(error, call)                                         \
  do {                                                               \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    error = call;                                                    \
    PetscCall(PetscPopErrorHandler());                               \
  } while (0)

/* an entry that the pattern lacks */
static PetscErrorCode Insert(Mat A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatSetValue(A, start + 1, (start + 7) % N, 1.0, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += X or Y = a Y + X: again, after new values, and what is left behind */
static PetscErrorCode TestSum(Birth by, Birth bx, Pattern py, Pattern px, MatStructure str, PetscBool aypx, PetscScalar alpha, MatOption option, PetscBool decorated)
{
  Twins          y, x;
  PetscErrorCode error[2];
  PetscBool      goeson;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "%s, Y %s %s, X %s %s, %s, %g%s%s", aypx ? "MatAYPX" : "MatAXPY", PatternNames[py], BirthNames[by], PatternNames[px], BirthNames[bx], Structures[str], (double)PetscRealPart(alpha), decorated ? ", decorated" : "", option == MAT_OPTION_MIN ? "" : ", no new entries"));
  MatTestName = Case;
  PetscCall(TwinsMake(by, py, 1, decorated, &y));
  PetscCall(TwinsMake(bx, px, 2, PETSC_FALSE, &x));
  if (option != MAT_OPTION_MIN)
    for (int k = 0; k < 2; k++) PetscCall(MatSetOption(y.m[k], option, (PetscBool)(option != MAT_NEW_NONZERO_LOCATIONS)));
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 2; k++)
      if (aypx)
        QUIETLY(error[k], MatAYPX(y.m[k], alpha, x.m[k], str));
      else
        QUIETLY(error[k], MatAXPY(y.m[k], alpha, x.m[k], str));
    PetscCall(TwinsCompare(&y, error));
    if (error[0] || error[1]) break;
    if (round || by != COORDINATES) continue;
    /* MATAIJ reads past its coordinates where there are more entries now, and before 3.21 has none in the matrix
       that took the other's place */
    goeson = Within(px, py);
    if (PETSC_VERSION_LT(3, 21, 0) && (str == DIFFERENT_NONZERO_PATTERN || (str == UNKNOWN_NONZERO_PATTERN && (py != px || Size > 1)))) goeson = PETSC_FALSE;
    if (!goeson) continue;
    for (int k = 0; k < 2; k++) QUIETLY(error[k], CoordinateValues(y.m[k], py, 5));
    PetscCall(TwinsCompare(&y, error));
  }
  if (!error[0] && !error[1]) {
    for (int k = 0; k < 2; k++) QUIETLY(error[k], Insert(y.m[k]));
    PetscCall(Differs("error of a new entry", (PetscInt)error[0], (PetscInt)error[1]));
  }
  PetscCall(TwinsDestroy(&y));
  PetscCall(TwinsDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where new entries are forbidden or ignored */
static PetscErrorCode TestOptions(void)
{
  const MatOption options[] = {MAT_NEW_NONZERO_LOCATIONS, MAT_NEW_NONZERO_LOCATION_ERR, MAT_NEW_NONZERO_ALLOCATION_ERR, MAT_IGNORE_ZERO_ENTRIES};

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++)
    for (int str = 0; str < 4; str++) {
      if (str == SAME_NONZERO_PATTERN || Size > 1) continue;
      PetscCall(TestSum(COORDINATES, COORDINATES, NEIGHBOURS, TRIDIAGONAL, (MatStructure)str, PETSC_FALSE, 1.0, options[k], PETSC_TRUE));
      PetscCall(TestSum(PRODUCT, ASSEMBLED, NEIGHBOURS, WIDER, (MatStructure)str, PETSC_FALSE, 2.0, options[k], PETSC_FALSE));
      PetscCall(TestSum(COORDINATES, PRODUCT, WIDER, TRIDIAGONAL, (MatStructure)str, PETSC_TRUE, 0.0, options[k], PETSC_FALSE));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other numbers of entries, SAME said: MATAIJ adds past the end where it does not look (a PETSc without checks),
   so the device's alone. And a matrix with itself. */
static PetscErrorCode TestRefused(void)
{
  Mat            Y, X, B;
  PetscErrorCode error;
  PetscBool      same;
  Twins          t;
  PetscErrorCode errors[2];

  PetscFunctionBeginUser;
  MatTestName = "SAME of other patterns, aliases";
  if (Device && Size == 1) {
    PetscCall(Make("aijhybridgpu", COORDINATES, TRIDIAGONAL, 1, &Y));
    PetscCall(Make("aijhybridgpu", COORDINATES, WIDER, 2, &X));
    PetscCall(MatConvert(Y, MATAIJ, MAT_INITIAL_MATRIX, &B));
    QUIETLY(error, MatAXPY(Y, 2.0, X, SAME_NONZERO_PATTERN));
    MatTestCheck(error == PETSC_ERR_ARG_WRONG, "the class of the error");
    PetscCall(Same(B, Y, PETSC_TRUE, &same));
    MatTestCheck(same, "nothing was added");
    PetscCall(MatDestroy(&Y));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&B));
  } else
    MatTestSkipped++;
  for (int str = 0; str < 4; str++)
    for (int c = 0; c < 3; c++) {
      PetscCall(PetscSNPrintf(Case, sizeof(Case), "with itself, %s, %d", Structures[str], c));
      PetscCall(TwinsMake(c ? COORDINATES : PRODUCT, WIDER, 1, PETSC_TRUE, &t));
      for (int k = 0; k < 2; k++) QUIETLY(errors[k], MatAXPY(t.m[k], c ? -1.0 : 0.0, t.m[k], (MatStructure)str));
      PetscCall(TwinsCompare(&t, errors));
      /* before 3.26 PETSc's MatAYPX() of a matrix and itself scales both */
      for (int k = 0; k < 2; k++) QUIETLY(errors[k], MatAYPX(t.m[k], c == 2 ? 0.0 : 3.0, t.m[k], (MatStructure)str));
      PetscCall(TwinsCompare(&t, errors));
      PetscCall(TwinsDestroy(&t));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* u' + A u = B u, both Jacobians from coordinates: TS adds the second one's to the first one's by
   UNKNOWN_NONZERO_PATTERN, in each step */
static PetscErrorCode Left(TS ts, PetscReal time, Vec u, Vec v, Vec f, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(f, 4.0, u, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LeftJacobian(TS ts, PetscReal time, Vec u, Vec v, PetscReal shift, Mat A, Mat P, void *ctx)
{
  PetscScalar a[N * N];
  PetscInt    i[N * N], j[N * N], n;

  PetscFunctionBeginUser;
  PetscCall(Coordinates(P, TRIDIAGONAL, 0, i, j, a, &n));
  for (PetscInt k = 0; k < n; k++) a[k] = i[k] == j[k] ? shift + 4.0 : 0.0;
  PetscCall(MatSetValuesCOO(P, a, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RightJacobian(TS ts, PetscReal time, Vec u, Mat A, Mat P, void *ctx)
{
  PetscScalar a[N * N];
  PetscInt    i[N * N], j[N * N], n;

  PetscFunctionBeginUser;
  PetscCall(Coordinates(P, TRIDIAGONAL, 0, i, j, a, &n));
  for (PetscInt k = 0; k < n; k++) a[k] = i[k] == j[k] ? -2.0 - time : 1.0;
  PetscCall(MatSetValuesCOO(P, a, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Right(TS ts, PetscReal time, Vec u, Vec f, void *ctx)
{
  Mat *A = (Mat *)ctx;

  PetscFunctionBeginUser;
  PetscCall(RightJacobian(ts, time, u, *A, *A, ctx));
  PetscCall(MatMult(*A, u, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestEuler(void)
{
  Vec              u[2];
  PetscObjectState nonzero[2];

  PetscFunctionBeginUser;
  MatTestName = "TSBEULER";
  for (int k = 0; k < 2; k++) {
    TS             ts;
    Mat            A, B, C;
    PetscErrorCode error;

    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, TRIDIAGONAL, 1, &A));
    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, TRIDIAGONAL, 1, &B));
    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, TRIDIAGONAL, 1, &C));
    PetscCall(MatCreateVecs(A, &u[k], NULL));
    PetscCall(VecSet(u[k], 1.0));
    PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
    PetscCall(TSSetType(ts, TSBEULER));
    PetscCall(TSSetIFunction(ts, NULL, Left, NULL));
    PetscCall(TSSetIJacobian(ts, A, A, LeftJacobian, NULL));
    PetscCall(TSSetRHSFunction(ts, NULL, Right, &C));
    PetscCall(TSSetRHSJacobian(ts, B, B, RightJacobian, NULL));
    PetscCall(TSSetTimeStep(ts, 0.1));
    PetscCall(TSSetMaxSteps(ts, 4));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    PetscCall(MatGetNonzeroState(A, &nonzero[0]));
    QUIETLY(error, TSSolve(ts, u[k]));
    MatTestCheck(!error, k ? "ours, all steps" : "MATAIJ, all steps");
    PetscCall(MatGetNonzeroState(A, &nonzero[1]));
    if (Size == 1) MatTestCheck(nonzero[1] == nonzero[0], "the Jacobian's pattern is what it was");
    PetscCall(TSDestroy(&ts));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
  }
  VecTestCheckSame(u[1], u[0], "the solution");
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&u[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GAMG adds a graph without a diagonal to its square, and says SUBSET */
static PetscErrorCode TestGraph(void)
{
  PetscReal      norm[2] = {0, 0};
  PetscErrorCode error[2];

  PetscFunctionBeginUser;
  MatTestName = "GAMG of a graph";
  for (int k = 0; k < 2; k++) {
    Mat A;
    PC  pc;
    Vec x, y;

    PetscCall(Make(k ? "aijhybridgpu" : MATAIJ, COORDINATES, NEIGHBOURS, 1, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecSet(x, 1.0));
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_pc_gamg_aggressive_coarsening", "1"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_pc_gamg_coarse_eq_limit", "2"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_mg_levels_pc_type", "none"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_mg_levels_ksp_type", "richardson"));
    PetscCall(PetscOptionsSetValue(NULL, "-graph_mg_coarse_sub_pc_factor_shift_type", "nonzero"));
    PetscCall(PCSetOptionsPrefix(pc, "graph_"));
    PetscCall(PCSetFromOptions(pc));
    PetscCall(PCSetOperators(pc, A, A));
    QUIETLY(error[k], PCSetUp(pc));
    if (!error[k]) QUIETLY(error[k], PCApply(pc, x, y));
    if (!error[k]) PetscCall(VecNorm(y, NORM_2, &norm[k]));
    PetscCall(PCDestroy(&pc));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "GAMG"));
  PetscCall(Differs("error", (PetscInt)error[0], (PetscInt)error[1]));
  PetscCall(PetscInfo(NULL, "GAMG: %g and %g\n", (double)norm[0], (double)norm[1]));
  /* nearly singular, so the last digits differ */
  MatTestCheck(PetscAbsReal(norm[0] - norm[1]) <= 0.1 * (1 + PetscAbsReal(norm[0])) || (PetscIsInfOrNanReal(norm[0]) && PetscIsInfOrNanReal(norm[1])), "what it does");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is said of a matrix between its coordinates and their values */
static PetscErrorCode TestSaidBefore(void)
{
  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "said before the values"));
  MatTestName = Case;
  {
    Mat      A[2];
    Seen     now[2];
    PetscInt i[N * N], j[N * N], n = 0;

    for (int k = 0; k < 2; k++) {
      PetscLayout map;

      PetscCall(MatCreate(PETSC_COMM_WORLD, &A[k]));
      PetscCall(MatSetSizes(A[k], PETSC_DECIDE, PETSC_DECIDE, N, N));
      PetscCall(MatSetType(A[k], k ? "aijhybridgpu" : MATAIJ));
      PetscCall(MatGetLayouts(A[k], &map, NULL));
      PetscCall(PetscLayoutSetUp(map));
    }
    /* Coordinates come in the first and the third one. Of a parallel MATAIJ the second ones' pattern has by chance the
       number of the first ones'. */
    for (int round = 0; round < (Size > 1 ? 2 : 4); round++) {
      for (int k = 0; k < 2; k++) {
        PetscScalar v[N * N];

        PetscCall(Coordinates(A[k], round < 2 ? TRIDIAGONAL : WIDER, round, i, j, v, &n));
        if (round % 2 == 0) PetscCall(MatSetPreallocationCOO(A[k], n, i, j));
        PetscCall(MatSetOption(A[k], MAT_SYMMETRIC, PETSC_TRUE));
        PetscCall(MatSetOption(A[k], MAT_SPD, PETSC_TRUE));
        PetscCall(MatSetValuesCOO(A[k], v, INSERT_VALUES));
        PetscCall(Look(A[k], &now[k]));
      }
      for (int q = 0; q < SEEN; q++) PetscCall(Differs(SeenNames[q], now[0].is[q], now[1].is[q]));
    }
    for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operations on one matrix, and what they make */
typedef enum {
  OP_SCALE_0,
  OP_SCALE_1,
  OP_SCALE_NAN,
  OP_ZERO,
  OP_SHIFT_0,
  OP_SHIFT,
  OP_LEFT,
  OP_RIGHT,
  OP_BOTH,
  OP_SCALE_LEFT_WRONG,
  OP_SCALE_RIGHT_WRONG,
  OP_SCALE_NAN_VECTOR,
  OP_SET_INSERT,
  OP_SET_ADD,
  OP_SET_MAX,
  OP_SET_WRONG,
  OP_NORM_1,
  OP_NORM_FROBENIUS,
  OP_NORM_INFINITY,
  OP_NORM_2,
  OP_DIAGONAL,
  OP_DIAGONAL_WRONG,
  OP_ROWMAXABS,
  OP_ROWMAX,
  OP_ROWMIN,
  OP_ROWSUM,
  OP_COPY_SAME,
  OP_COPY_DIFFERENT,
  OP_COPY_SELF,
  OP_COPY_WRONG,
  OP_TRANSPOSE,
  OP_TRANSPOSE_INPLACE,
  OP_TRANSPOSE_AGAIN,
  OP_TRANSPOSE_FOREIGN,
  OP_DUPLICATE,
  OP_DUPLICATE_PATTERN,
  OP_SUB,
  OP_SUB_RANGE,
  OP_SUB_TWICE,
  OP_SUB_EMPTY,
  OPS
} Op;

static PetscErrorCode Operate(Op op, Mat A, PetscReal out[], Mat *made)
{
  PetscInt           m, n;
  PetscReal          nothing = 0;
  const PetscScalar *a;
  Vec                l, r, d, w;
  IS                 rows, columns;
  PetscErrorCode     error = PETSC_SUCCESS;

  PetscFunctionBeginUser;
  *made = NULL;
  for (int k = 0; k <= N; k++) out[k] = 0;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatCreateVecs(A, &r, &l));
  PetscCall(VecDuplicate(l, &d));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, m + 3, &w));
  for (PetscInt k = 0; k < m; k++) PetscCall(VecSetValue(l, k, (PetscScalar)(k + 2), INSERT_VALUES));
  for (PetscInt k = 0; k < n; k++) PetscCall(VecSetValue(r, k, (PetscScalar)(5 - k), INSERT_VALUES));
  PetscCall(VecSet(w, 3.0));
  switch (op) {
  case OP_SCALE_0: error = MatScale(A, 0.0); break;
  case OP_SCALE_1: error = MatScale(A, 1.0); break;
  case OP_SCALE_NAN: error = MatScale(A, nothing / nothing); break;
  case OP_ZERO: error = MatZeroEntries(A); break;
  case OP_SHIFT_0: error = MatShift(A, 0.0); break;
  case OP_SHIFT: error = MatShift(A, -20.0); break;
  case OP_LEFT: error = MatDiagonalScale(A, l, NULL); break;
  case OP_RIGHT: error = MatDiagonalScale(A, NULL, r); break;
  case OP_BOTH: error = MatDiagonalScale(A, l, r); break;
  case OP_SCALE_LEFT_WRONG: error = MatDiagonalScale(A, w, NULL); break;
  case OP_SCALE_RIGHT_WRONG: error = MatDiagonalScale(A, NULL, w); break;
  case OP_SCALE_NAN_VECTOR:
    if (m > 1) PetscCall(VecSetValue(l, 1, 1 / nothing, INSERT_VALUES));
    PetscCall(VecSetValue(r, 2, 0.0, INSERT_VALUES));
    error = MatDiagonalScale(A, l, r);
    break;
  case OP_SET_INSERT: error = MatDiagonalSet(A, l, INSERT_VALUES); break;
  case OP_SET_ADD: error = MatDiagonalSet(A, l, ADD_VALUES); break;
  case OP_SET_MAX: error = MatDiagonalSet(A, l, MAX_VALUES); break;
  case OP_SET_WRONG: error = MatDiagonalSet(A, w, ADD_VALUES); break;
  case OP_NORM_1: error = MatNorm(A, NORM_1, out); break;
  case OP_NORM_FROBENIUS: error = MatNorm(A, NORM_FROBENIUS, out); break;
  case OP_NORM_INFINITY: error = MatNorm(A, NORM_INFINITY, out); break;
  case OP_NORM_2: error = MatNorm(A, NORM_2, out); break;
  case OP_DIAGONAL: error = MatGetDiagonal(A, d); break;
  case OP_DIAGONAL_WRONG: error = MatGetDiagonal(A, w); break;
  case OP_ROWMAXABS: error = MatGetRowMaxAbs(A, d, NULL); break;
  case OP_ROWMAX: error = MatGetRowMax(A, d, NULL); break;
  case OP_ROWMIN: error = MatGetRowMin(A, d, NULL); break;
  case OP_ROWSUM: error = MatGetRowSum(A, d); break;
  case OP_COPY_SAME:
  case OP_COPY_DIFFERENT:
    PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, made));
    error = MatCopy(A, *made, op == OP_COPY_SAME ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN);
    break;
  case OP_COPY_SELF: error = MatCopy(A, A, SAME_NONZERO_PATTERN); break;
  case OP_COPY_WRONG: /* fewer entries than promised */
    PetscCall(Make(((PetscObject)A)->type_name, COORDINATES, DIAGONAL, 3, made));
    error = MatCopy(A, *made, SAME_NONZERO_PATTERN);
    break;
  case OP_TRANSPOSE: error = MatTranspose(A, MAT_INITIAL_MATRIX, made); break;
  case OP_TRANSPOSE_INPLACE: error = MatTranspose(A, MAT_INPLACE_MATRIX, &A); break;
  case OP_TRANSPOSE_AGAIN:
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, made));
    PetscCall(MatSetOption(*made, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatScale(A, 3.0));
    error = MatTranspose(A, MAT_REUSE_MATRIX, made);
    break;
  case OP_TRANSPOSE_FOREIGN:
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, made));
    error = MatTranspose(A, MAT_REUSE_MATRIX, made);
    break;
  case OP_DUPLICATE: error = MatDuplicate(A, MAT_COPY_VALUES, made); break;
  case OP_DUPLICATE_PATTERN: error = MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, made); break;
  case OP_SUB:
  case OP_SUB_RANGE:
  case OP_SUB_TWICE:
  case OP_SUB_EMPTY: {
    const PetscInt out_[] = {0, n + 2}, twice[] = {1, 1};

    PetscCall(ISCreateStride(PETSC_COMM_SELF, op == OP_SUB_EMPTY ? 0 : m / 2, 0, 2, &rows));
    if (op == OP_SUB_RANGE || op == OP_SUB_TWICE)
      PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 2, op == OP_SUB_TWICE ? twice : out_, PETSC_COPY_VALUES, &columns));
    else
      PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, 0, 1, &columns));
    if (op != OP_SUB_RANGE) error = MatCreateSubMatrix(A, rows, columns, MAT_INITIAL_MATRIX, made); /* MATAIJ does not look */
    if (!error && op != OP_SUB_RANGE) PetscCall(MatScale(A, 2.0));
    if (!error && op != OP_SUB_RANGE) error = MatCreateSubMatrix(A, rows, columns, MAT_REUSE_MATRIX, made);
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&columns));
  } break;
  default: break;
  }
  if (!error && op >= OP_DIAGONAL && op <= OP_ROWSUM) {
    PetscCall(VecGetArrayRead(d, &a));
    for (PetscInt k = 0; k < m; k++) out[k] = PetscRealPart(a[k]);
    PetscCall(VecRestoreArrayRead(d, &a));
  }
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&d));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(error);
}

/* odd: 0 as it is, 1 with NaN, 2 with infinities, 3 with both; shape: 0 square, 1 wide, 2 tall, 3 without rows */
static PetscErrorCode TestOperation(Op op, Birth birth, Pattern p, int odd, int shape)
{
  Twins          t, made;
  PetscErrorCode error[2];
  PetscReal      out[2][N + 1], nothing = 0;
  PetscBool      same = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&made, sizeof(made)));
  PetscCall(PetscSNPrintf(Case, sizeof(Case), "operation %d, %s, %s, odd %d, shape %d", (int)op, PatternNames[p], BirthNames[birth], odd, shape));
  MatTestName = Case;
  PetscCall(TwinsMake(birth, p, 1, PETSC_FALSE, &t));
  if (shape) {
    IS  rows, columns;
    Mat B;

    PetscCall(ISCreateStride(PETSC_COMM_SELF, shape == 3 ? 0 : shape == 2 ? N
                                                                          : 5,
                             0, 1, &rows));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, shape == 2 ? 5 : N, 0, 1, &columns));
    for (int k = 0; k < 2; k++) {
      PetscCall(MatCreateSubMatrix(t.m[k], rows, columns, MAT_INITIAL_MATRIX, &B));
      PetscCall(MatDestroy(&t.m[k]));
      t.m[k] = B;
    }
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&columns));
  }
  for (int k = 0; k < 2; k++) {
    MatInfo      info;
    PetscScalar *a;

    PetscCall(MatGetInfo(t.m[k], MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(t.m[k], &a));
    if (odd & 1 && info.nz_used > 4) a[3] = nothing / nothing;
    if (odd & 2 && info.nz_used > 4) a[1] = 1 / nothing;
    PetscCall(MatSeqAIJRestoreArray(t.m[k], &a));
    if (!shape) PetscCall(Decorate(t.m[k]));
    if (op == OP_TRANSPOSE_INPLACE && !shape)
      for (int q = 0; q < 3; q++) PetscCall(MatSetOption(t.m[k], q == 0 ? MAT_SPD : q == 1 ? MAT_HERMITIAN
                                                                                           : MAT_SYMMETRIC,
                                                         PETSC_FALSE));
    PetscCall(Look(t.m[k], &t.before[k]));
  }
  PetscCall(MatDestroy(&t.copy));
  PetscCall(MatDuplicate(t.m[0], MAT_DO_NOT_COPY_VALUES, &t.copy));
  for (int k = 0; k < 2; k++) QUIETLY(error[k], Operate(op, t.m[k], out[k], &made.m[k]));
  if (op == OP_TRANSPOSE_INPLACE) PetscCall(MatDestroy(&t.copy));
  PetscCall(TwinsCompare(&t, error));
  for (PetscInt k = 0; k <= N; k++) {
    const PetscReal x = out[0][k], y = out[1][k];

    if (PetscIsNanReal(x) ? !PetscIsNanReal(y) : PetscIsInfReal(x) ? x != y
                                                                   : !(PetscAbsReal(x - y) <= 1e-12 * (1 + PetscAbsReal(x)))) same = PETSC_FALSE;
  }
  PetscCall(Differs("numbers", PETSC_TRUE, same));
  if (made.m[0] && made.m[1] && !error[0] && !error[1]) {
    PetscCall(PetscStrlcat(Case, ", made", sizeof(Case)));
    for (int k = 0; k < 2; k++) {
      PetscCall(Look(made.m[k], &made.before[k]));
      made.before[k].is[ASSEMBLIES] = 0;
      made.before[k].state = made.before[k].nonzero = 0;
    }
    for (int k = 0; k < 2; k++) PetscCall(Look(made.m[k], &t.before[k]));
    for (int q = 0; q < SEEN; q++) PetscCall(Differs(SeenNames[q], t.before[0].is[q], t.before[1].is[q]));
    PetscCall(Same(made.m[0], made.m[1], PETSC_TRUE, &same));
    PetscCall(Differs("entries", PETSC_TRUE, same));
  }
  PetscCall(TwinsDestroy(&made));
  PetscCall(TwinsDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Sums of matrices\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &Device));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &Every, NULL));
  for (int by = 0; by < BIRTHS; by++)
    for (int bx = 0; bx < BIRTHS; bx++)
      for (int py = 0; py < PATTERNS; py++)
        for (int px = 0; px < PATTERNS; px++)
          for (int str = 0; str < 4; str++) {
            if (str == SAME_NONZERO_PATTERN && py != px) continue;
            if ((py * 7 + px * 3 + str + by + 2 * bx) % (by == COORDINATES && bx <= COORDINATES ? 2 : 13)) continue; /* some of all */
            if ((py + px + str + by + bx) % Every) continue;
            if (Size > 1 && (by > COORDINATES || bx > COORDINATES || (py * 7 + px * 3 + by + bx) % 5)) continue;
            PetscCall(TestSum((Birth)by, (Birth)bx, (Pattern)py, (Pattern)px, (MatStructure)str, (PetscBool)((py + px) % 2), -1.5, MAT_OPTION_MIN, (PetscBool)((py + by) % 2)));
          }
  PetscCall(TestOptions());
  PetscCall(TestRefused());
  PetscCall(TestSaidBefore());
  if (Size == 1 || PETSC_VERSION_GE(3, 21, 0)) PetscCall(TestEuler()); /* MATAIJ reads coordinates that are gone, as above */
  PetscCall(TestGraph());
  for (int op = 0; op < OPS && Size == 1; op++)
    for (int birth = 0; birth < BIRTHS; birth++)
      for (int odd = 0; odd < 4; odd++)
        for (int shape = 0; shape < 4; shape++) {
          if ((op + birth + odd + shape) % Every) continue;
          /* PETSc compares functions then, and goes entry by entry */
          if (op == OP_COPY_WRONG && (shape || birth == ASSEMBLED || birth == WRITTEN)) continue;
          /* MATAIJ writes past the diagonal */
          if (PETSC_VERSION_LT(3, 25, 0) && shape == 2 && op >= OP_SET_INSERT && op <= OP_SET_MAX) continue;
          PetscCall(TestOperation((Op)op, (Birth)birth, (Pattern)((op + odd) % 4), odd, shape));
        }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
