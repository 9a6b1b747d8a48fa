/*
  twins.h: a MATAIJ and a matrix of the type of N rows, of every birth (assembled, from coordinates, products,
  duplicates, written on the device), and what a program sees of them beside entries: states that moved, claims of
  symmetry, null spaces, maps, names, what is composed, counts.
*/
#ifndef TWINS_H
#define TWINS_H
#include "mattest.h"
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
static PetscMPIInt       Size;
static char              Case[256];

/* the coordinates of a row */
static inline PetscInt Columns(Pattern p, PetscInt row, PetscInt c[])
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

static inline PetscScalar Value(PetscInt i, PetscInt j, PetscInt seed)
{
  return (PetscScalar)(1 + ((PetscMin(i, j) * 7 + PetscMax(i, j) * 5 + seed * 3) % 11));
}

static inline PetscErrorCode Coordinates(Mat A, Pattern p, PetscInt seed, PetscInt i[], PetscInt j[], PetscScalar v[], PetscInt *n)
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

static inline PetscErrorCode Make(MatType type, Birth birth, Pattern p, PetscInt seed, Mat *A)
{
  PetscInt    i[N * N], j[N * N], n = 0, start;
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
static inline PetscErrorCode Decorate(Mat A)
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

static inline PetscErrorCode Look(Mat A, Seen *s)
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
static inline PetscErrorCode Same(Mat A, Mat B, PetscBool values, PetscBool *same)
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

static inline PetscErrorCode Differs(const char *what, PetscInt aij, PetscInt ours)
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

static inline PetscErrorCode TwinsMake(Birth birth, Pattern p, PetscInt seed, PetscBool decorated, Twins *t)
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

static inline PetscErrorCode TwinsDestroy(Twins *t)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&t->m[k]));
  PetscCall(MatDestroy(&t->copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same happened to both */
static inline PetscErrorCode TwinsCompare(Twins *t, const PetscErrorCode error[2])
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
#endif
