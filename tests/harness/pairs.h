/*
  pairs.h: a matrix of MATAIJ and one of the type, made and worked on alike. After each operation both are asked
  for all that a program may see: entries and products, sizes, block sizes, claims, null spaces, mappings, names,
  counts, and whether their states have moved. Entries and products may hold Inf and NaN.
*/
#ifndef PAIRS_H
#define PAIRS_H
#include "mattest.h"
#include <petsc/private/matimpl.h> /* states, claims and null spaces as they are, not as their functions tell them */

/* How a matrix came to be where it is. Where there is no device all of them are the host's. */
typedef enum {
  HOSTMADE,   /* by MatSetValues(), and used once */
  BORN,       /* made by the device: from coordinates */
  PRODUCT,    /* a product's result */
  DUPLICATED, /* a duplicate of a born one */
  PROMOTED,   /* host-made, and written twice in a row by operations */
  LOCKED,     /* host-made, new values sent several times */
  /* the same of one that was a MATAIJ before, of which the type does not know all options; written by its array */
  CONVERTED,
  KINDS
} Kind;
static const char *const KindNames[] = {"host-made", "born", "product", "duplicate", "promoted", "locked", "converted"};

/* Which columns row r has */
typedef enum {
  TRIDIAGONAL,
  NODIAGONAL, /* its two neighbours alone */
  WIDE,       /* tridiagonal, and two more: the others are subsets of it */
  DIAGONAL,
  LAST,    /* the first and the last column */
  EMPTY,   /* no entries */
  NODES,   /* three rows each with the same columns */
  SHIFTED, /* as many entries in each row as tridiagonal, elsewhere */
  PATTERNS
} Pattern;

typedef struct {
  PetscObjectState state, nonzerostate;
  PetscObjectId    blocks[2]; /* of a parallel one */
  const void      *data;
  /* the last: assembled before, so that the next assembly ends claims */
  PetscBool      assembled, preallocated, before;
  int            claims[7];
  PetscInt       sizes[6];
  MatNullSpace   nullspaces[3];
  PetscInt       mapping[2]; /* -1: none */
  PetscLogDouble nonzeros;
  PetscInt       counts[4]; /* assemblies, mallocs, what is composed, references */
  char           name[64], prefix[64], type[64];
} Seen;

typedef struct {
  Mat            m[2], q[2], out[2]; /* MATAIJ and ours; a second operand; what an operation makes */
  Vec            x[2];
  PetscErrorCode error[2];
  PetscInt       arg[4];
  PetscReal      real, found[2];
  Seen           before[2];
} Pair;

/* with the first the second tells whether all checks so far have passed, and nothing is counted */
static PetscBool PairsQuiet, PairsAgreed;
static PetscReal PairsTolerance = ROUNDED(1e-11);
static PetscBool PairsVerbose, PairsTrail PETSC_UNUSED; /* tell of equal errors, too; print what is done before it is */
/* compare these counts, too; block size, and room in each row of either block, of matrices that are made */
static PetscBool PairsCounts;
static PetscInt  PairsBlockSize = 1, PairsRoom;
static PetscBool PairsShort; /* ours may lack memory, which is the error of the comparison then */

/* true on all processes */
static inline PetscErrorCode PairsAll(PetscBool *ok)
{
  PetscMPIInt all = *ok ? 1 : 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
  *ok = all ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -kind N: of this one alone */
static inline PetscBool PairsWanted(Kind kind)
{
  PetscInt only = KINDS;

  PetscCallAbort(PETSC_COMM_SELF, PetscOptionsGetInt(NULL, NULL, "-kind", &only, NULL));
  return (PetscBool)(only == KINDS || only == (PetscInt)kind);
}

/* Columns of row r of an M x N matrix, sorted: how many, at most 5 */
static inline PetscInt PairsColumns(Pattern pattern, PetscInt r, PetscInt N, PetscInt c[5])
{
  const PetscInt offsets[5] = {-4, -1, 0, 1, 4};
  PetscInt       n          = 0;

  if (pattern == LAST) {
    if (N > 0) c[n++] = 0;
    if (N > 1) c[n++] = N - 1;
    return n;
  }
  for (PetscInt k = 0; k < N && pattern == SHIFTED; k++)
    if (PetscAbsInt((k + 3) % N - r) < 2) c[n++] = k;
  for (PetscInt k = 0; k < 3 && pattern == NODES; k++)
    if (3 * (r / 3) + k < N) c[n++] = 3 * (r / 3) + k;
  for (int k = 0; k < 5; k++) {
    PetscBool in = (PetscBool)(pattern == WIDE || (pattern == TRIDIAGONAL && PetscAbsInt(offsets[k]) < 2) || (pattern == NODIAGONAL && PetscAbsInt(offsets[k]) == 1) || (pattern == DIAGONAL && !offsets[k]));

    if (in && r + offsets[k] >= 0 && r + offsets[k] < N) c[n++] = r + offsets[k];
  }
  return n;
}

static inline PetscScalar PairsValue(PetscInt r, PetscInt c, PetscInt round)
{
  return (PetscScalar)(r == c ? 4.0 + (PetscReal)((r + round) % 3) : -1.0 - (PetscReal)((PetscMin(r, c) + 2 * round) % 5) / 8.0);
}

static inline PetscErrorCode PairsWrite(Mat A, Pattern pattern, PetscInt round)
{
  PetscInt N, start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt    c[5], n = PairsColumns(pattern, r, N, c);
    PetscScalar v[5];

    for (PetscInt k = 0; k < n; k++) v[k] = PairsValue(r, c[k], round);
    PetscCall(MatSetValues(A, 1, &r, n, c, v, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the values of the coordinates of PairsMake() */
static inline PetscErrorCode PairsWriteCOO(Mat A, Pattern pattern, PetscInt round, InsertMode mode)
{
  PetscInt     M, N, start, end, n = 0;
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc1(5 * (end - start) + 1, &v));
  for (PetscInt r = start; r < end; r++) {
    PetscInt c[5], count = PairsColumns(pattern, r, N, c);

    for (PetscInt k = 0; k < count; k++) v[n++] = PairsValue(r, c[k], round);
  }
  PetscCall(MatSetValuesCOO(A, v, mode));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairsPatternCOO(Mat A, Pattern pattern)
{
  PetscInt N, start, end, n = 0, *i, *j;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  PetscCall(PetscLayoutGetRange(A->rmap, &start, &end));
  PetscCall(PetscMalloc2(5 * (end - start) + 1, &i, 5 * (end - start) + 1, &j));
  for (PetscInt r = start; r < end; r++) {
    PetscInt count = PairsColumns(pattern, r, N, j + n);

    for (PetscInt k = 0; k < count; k++) i[n + k] = r;
    n += count;
  }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairsMakeCOO(MatType type, Pattern pattern, PetscInt M, PetscInt N, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, M, N));
  if (PairsBlockSize > 1) PetscCall(MatSetBlockSize(*A, PairsBlockSize));
  PetscCall(MatSetType(*A, type));
  PetscCall(PairsPatternCOO(*A, pattern));
  PetscCall(PairsWriteCOO(*A, pattern, 0, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairsMakeHost(MatType type, Pattern pattern, PetscInt M, PetscInt N, Mat *A)
{
  PetscInt start, end, n = 0, *own, *other, first, last;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, M, N));
  if (PairsBlockSize > 1) PetscCall(MatSetBlockSize(*A, PairsBlockSize));
  PetscCall(MatSetType(*A, type));
  PetscCall(PetscLayoutSetUp((*A)->rmap));
  PetscCall(PetscLayoutSetUp((*A)->cmap));
  PetscCall(PetscLayoutGetRange((*A)->rmap, &start, &end));
  PetscCall(PetscLayoutGetRange((*A)->cmap, &first, &last));
  PetscCall(PetscCalloc2(end - start, &own, end - start, &other));
  for (PetscInt r = start; r < end; r++) {
    PetscInt c[5];

    n = PairsColumns(pattern, r, N, c);
    for (PetscInt k = 0; k < n; k++) (c[k] >= first && c[k] < last ? own : other)[r - start]++;
    own[r - start]   = PetscMin(PetscMax(own[r - start], PairsRoom), last - first);
    other[r - start] = PetscMin(PetscMax(other[r - start], PairsRoom), N - (last - first));
  }
  PetscCall(MatSeqAIJSetPreallocation(*A, 0, own));
  PetscCall(MatMPIAIJSetPreallocation(*A, 0, own, 0, other));
  PetscCall(PetscFree2(own, other));
  PetscCall(PairsWrite(*A, pattern, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all values that this process holds of a sequential matrix, or of its blocks */
static inline PetscErrorCode PairsWriteArrays(Mat A, PetscInt round)
{
  Mat       block[2] = {A, NULL};
  PetscBool parallel;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &parallel));
  if (parallel) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int b = 0; b < 2 && block[b]; b++) {
    MatInfo      info;
    PetscScalar *a;

    PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(block[b], &a));
    for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = 1.0 + (PetscReal)((3 * k + 5 * round + b) % 17) / 4.0;
    PetscCall(MatSeqAIJRestoreArray(block[b], &a));
  }
  if (parallel) PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairsMake(Kind kind, Pattern pattern, MatType type, PetscInt M, PetscInt N, Mat *A)
{
  PetscFunctionBeginUser;
  switch (kind) {
  case BORN: PetscCall(PairsMakeCOO(type, pattern, M, N, A)); break;
  case DUPLICATED: {
    Mat B;

    PetscCall(PairsMakeCOO(type, pattern, M, N, &B));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, A));
    PetscCall(MatDestroy(&B));
  } break;
  case PRODUCT: {
    Mat E, B;

    PetscCall(PairsMakeHost(type, DIAGONAL, M, M, &E));
    PetscCall(PairsMakeHost(type, pattern, M, N, &B));
    PetscCall(MatMatMult(E, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, A));
    PetscCall(MatTestDestroy(&E, &B));
  } break;
  case CONVERTED:
    PetscCall(PairsMakeHost(MATAIJ, pattern, M, N, A));
    PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
    break;
  default: PetscCall(PairsMakeHost(type, pattern, M, N, A));
  }
  PetscCall(MatTestUse(*A));
  if (kind == PROMOTED) {
    PetscCall(MatScale(*A, 2.0));
    PetscCall(MatScale(*A, 0.5));
  }
  for (PetscInt round = 1; round < 5 && kind == LOCKED; round++) {
    PetscCall(PairsWrite(*A, pattern, round));
    PetscCall(MatTestUse(*A));
  }
  for (PetscInt round = 1; round < 5 && kind == CONVERTED; round++) {
    PetscCall(PairsWriteArrays(*A, round));
    PetscCall(MatTestUse(*A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a program may hang on a matrix of blocks of two */
static inline PetscErrorCode PairsDecorate(Mat A, MatNullSpace constant)
{
  ISLocalToGlobalMapping map;
  PetscInt               start, end, *blocks;
  Vec                    v;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectSetName((PetscObject)A, "decorated"));
  PetscCall(MatSetOptionsPrefix(A, "decorated_"));
  PetscCall(MatSetNullSpace(A, constant));
  PetscCall(MatSetTransposeNullSpace(A, constant));
  PetscCall(MatSetNearNullSpace(A, constant));
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

static inline PetscErrorCode PairMake(Pair *p, Kind kind, Pattern pattern, PetscInt M, PetscInt N)
{
  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscCall(PairsMake(kind, pattern, MATAIJ, M, N, &p->m[0]));
  PetscCall(PairsMake(kind, pattern, "aijhybridgpu", M, N, &p->m[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairOperand(Pair *p, Kind kind, Pattern pattern, PetscInt M, PetscInt N)
{
  PetscFunctionBeginUser;
  PetscCall(PairsMake(kind, pattern, MATAIJ, M, N, &p->q[0]));
  PetscCall(PairsMake(kind, pattern, "aijhybridgpu", M, N, &p->q[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairDestroy(Pair *p)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&p->m[k], &p->q[k], &p->out[k], &p->x[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SeenGet(Mat A, Seen *s)
{
  const char *text;
  MatInfo     info;
  PetscBool   parallel;
  Mat         block[2];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscCall(PetscObjectStateGet((PetscObject)A, &s->state));
  s->nonzerostate  = A->nonzerostate;
  s->assembled     = A->assembled;
  s->preallocated  = A->preallocated;
  s->before        = A->num_ass ? PETSC_TRUE : PETSC_FALSE;
  s->claims[0]     = (int)A->symmetric;
  s->claims[1]     = (int)A->hermitian;
  s->claims[2]     = (int)A->structurally_symmetric;
  s->claims[3]     = (int)A->spd;
  s->claims[4]     = (int)A->symmetry_eternal;
  s->claims[5]     = (int)A->structural_symmetry_eternal;
  s->claims[6]     = (int)A->spd_eternal;
  s->sizes[0]      = A->rmap->n;
  s->sizes[1]      = A->cmap->n;
  s->sizes[2]      = A->rmap->N;
  s->sizes[3]      = A->cmap->N;
  s->sizes[4]      = PetscAbsInt(A->rmap->bs); /* negative: nobody set it */
  s->sizes[5]      = PetscAbsInt(A->cmap->bs);
  s->nullspaces[0] = A->nullsp;
  s->nullspaces[1] = A->transnullsp;
  s->nullspaces[2] = A->nearnullsp;
  for (int k = 0; k < 2; k++) {
    ISLocalToGlobalMapping map = k ? A->cmap->mapping : A->rmap->mapping;

    s->mapping[k] = -1;
    if (map) PetscCall(ISLocalToGlobalMappingGetSize(map, &s->mapping[k]));
  }
  s->data = A->data;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &parallel));
  if (parallel && A->preallocated) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int k = 0; k < 2; k++)
      if (block[k]) PetscCall(PetscObjectGetId((PetscObject)block[k], &s->blocks[k]));
  }
  s->nonzeros = -1;
  if (A->assembled && A->ops->getinfo) {
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    s->nonzeros = info.nz_used;
    if (PairsCounts) s->counts[0] = (PetscInt)info.assemblies;
    if (PairsCounts) s->counts[1] = (PetscInt)info.mallocs;
  }
  if (PairsCounts) {
    PetscObject composed;

    PetscCall(PetscObjectQuery((PetscObject)A, "hung on it", &composed));
    s->counts[2] = composed ? 1 : 0;
    s->counts[3] = ((PetscObject)A)->refct;
  }
  PetscCall(PetscStrncpy(s->name, ((PetscObject)A)->name ? ((PetscObject)A)->name : "", sizeof(s->name)));
  PetscCall(MatGetOptionsPrefix(A, &text));
  PetscCall(PetscStrncpy(s->prefix, text ? text : "", sizeof(s->prefix)));
  PetscCall(MatGetType(A, &text));
  PetscCall(PetscStrncpy(s->type, text ? text : "", sizeof(s->type)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one of ours is beside one of MATAIJ, any other beside its own */
static inline PetscBool SeenTypesFit(const char *a, const char *h)
{
  if (!strcmp(a, MATSEQAIJ)) return (PetscBool)(!strcmp(h, MATSEQAIJ) || !strcmp(h, "seqaijhybridgpu"));
  if (!strcmp(a, MATMPIAIJ)) return (PetscBool)(!strcmp(h, MATMPIAIJ) || !strcmp(h, "mpiaijhybridgpu"));
  return (PetscBool)!strcmp(a, h);
}

static inline PetscErrorCode PairsCount(PetscBool ok, const char *what, const char *detail)
{
  char text[256];

  PetscFunctionBeginUser;
  PetscCall(PairsAll(&ok));
  if (PairsQuiet) {
    PairsAgreed = (PetscBool)(PairsAgreed && ok);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s: %s", what, detail));
  MatTestCount(ok, text, "", 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscBool PairsScalarsAgree(PetscScalar a, PetscScalar h, PetscReal size)
{
  PetscReal d;

  if (PetscIsInfOrNanScalar(a) || PetscIsInfOrNanScalar(h)) {
#if defined(PETSC_USE_COMPLEX)
    return (PetscBool)(PetscIsInfOrNanScalar(a) && PetscIsInfOrNanScalar(h));
#else
    return (PetscBool)(a == h || (a != a && h != h));
#endif
  }
  d = PetscAbsScalar(a - h);
  return (PetscBool)(d <= PairsTolerance * (1 + size));
}

static inline PetscErrorCode PairsVectors(Vec a, Vec h, const char *what, const char *detail)
{
  const PetscScalar *va, *vh;
  PetscInt           n, nh;
  PetscReal          size = 0;
  PetscBool          same;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(a, &n));
  PetscCall(VecGetLocalSize(h, &nh));
  PetscCall(VecGetArrayRead(a, &va));
  PetscCall(VecGetArrayRead(h, &vh));
  same = (PetscBool)(n == nh);
  for (PetscInt k = 0; k < n; k++)
    if (!PetscIsInfOrNanScalar(va[k])) size = PetscMax(size, PetscAbsScalar(va[k]));
  for (PetscInt k = 0; k < n && same; k++) {
    same = PairsScalarsAgree(va[k], vh[k], size);
    if (!same && PairsVerbose && !PairsQuiet) printf("entry %d: MATAIJ %g, ours %g\n", (int)k, (double)PetscRealPart(va[k]), (double)PetscRealPart(vh[k]));
  }
  PetscCall(VecRestoreArrayRead(a, &va));
  PetscCall(VecRestoreArrayRead(h, &vh));
  PetscCall(PairsCount(same, what, detail));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* products with vectors, the transposed one too */
/* Does M multiply transposed by what it was said to be? The shadow of aijsell goes by a claim of symmetry, which AIJ
   does not look at. */
static inline PetscErrorCode PairsByClaim(Mat M, PetscBool *byclaim)
{
  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)M, byclaim, MATSEQAIJSELL, MATMPIAIJSELL, ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PairsProducts(Mat A, Mat H, const char *what)
{
  PetscErrorCode ierr[2];
  PetscBool      claim[2];
  Vec            x, y, z;
  PetscInt       start, end;
  PetscScalar    v;
  STACK_SAVE;

  PetscFunctionBeginUser;
  PetscCall(PairsByClaim(A, &claim[0]));
  PetscCall(PairsByClaim(H, &claim[1]));
  for (int t = 0; t < (claim[0] == claim[1] ? 2 : 1); t++) {
    PetscCall(MatCreateVecs(A, t ? &y : &x, t ? &x : &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(VecGetOwnershipRange(x, &start, &end));
    for (PetscInt k = start; k < end; k++) {
      v = 1.0 + (PetscReal)((5 * k) % 13) / 4.0;
      PetscCall(VecSetValues(x, 1, &k, &v, INSERT_VALUES));
    }
    PetscCall(VecTestAssemble(x));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    for (int k = 0; k < 2; k++) ierr[k] = t ? MatMultTranspose(k ? H : A, x, k ? z : y) : MatMult(k ? H : A, x, k ? z : y);
    PetscCall(PetscPopErrorHandler());
    STACK_RESTORE;
    if (PairsShort && ierr[1] == PETSC_ERR_MEM) PetscCall(ierr[1]);
    PetscCall(PairsCount((PetscBool)(ierr[0] == ierr[1]), what, t ? "errors of MatMultTranspose" : "errors of MatMult"));
    if (!ierr[0] && !ierr[1]) PetscCall(PairsVectors(y, z, what, t ? "MatMultTranspose" : "MatMult"));
    PetscCall(MatTestDestroy(&x, &y, &z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the own rows' columns and values, in order: MATAIJ leaves some parts' rows unsorted */
static inline PetscErrorCode PairsEntries(Mat A, Mat H, const char *what)
{
  PetscInt  start, end;
  PetscBool columns = PETSC_TRUE, values = PETSC_TRUE, is;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is, MATSEQSBAIJ, MATMPISBAIJ, ""));
  if (!A->ops->getrow || is) PetscFunctionReturn(PETSC_SUCCESS); /* some hold a part of a row only */
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt           na, nh, *copy, *copyh, n;
    const PetscInt    *ca, *ch;
    const PetscScalar *va, *vh;
    PetscScalar       *v, *w;
    PetscReal          size = 0;

    PetscCall(MatGetRow(A, r, &na, &ca, &va));
    n = na;
    PetscCall(PetscMalloc2(n, &copy, n, &v));
    for (PetscInt k = 0; k < n; k++) {
      copy[k] = ca[k];
      v[k]    = va[k];
      if (!PetscIsInfOrNanScalar(v[k])) size = PetscMax(size, PetscAbsScalar(v[k]));
    }
    PetscCall(MatRestoreRow(A, r, &na, &ca, &va));
    PetscCall(MatGetRow(H, r, &nh, &ch, &vh));
    if (nh != n) columns = PETSC_FALSE;
    PetscCall(PetscMalloc2(nh, &copyh, nh, &w));
    PetscCall(PetscArraycpy(copyh, ch, nh));
    PetscCall(PetscArraycpy(w, vh, nh));
    PetscCall(MatRestoreRow(H, r, &nh, &ch, &vh));
    PetscCall(PetscSortIntWithScalarArray(n, copy, v));
    PetscCall(PetscSortIntWithScalarArray(nh, copyh, w));
    for (PetscInt k = 0; k < PetscMin(n, nh); k++) {
      if (copy[k] != copyh[k]) columns = PETSC_FALSE;
      if (!PairsScalarsAgree(v[k], w[k], size)) values = PETSC_FALSE;
    }
    PetscCall(PetscFree2(copyh, w));
    PetscCall(PetscFree2(copy, v));
  }
  PetscCall(PairsCount(columns, what, "columns"));
  PetscCall(PairsCount(values, what, "values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* before: of both, NULL for new ones */
static inline PetscErrorCode PairsCompareSeen(const Seen s[2], const Seen *before, const char *what)
{
  static const char *const claims[] = {"symmetric", "Hermitian", "structurally symmetric", "SPD", "symmetric for ever", "structurally symmetric for ever", "SPD for ever"};
  static const char *const counts[] = {"assemblies", "mallocs", "what is composed", "references"};

  PetscFunctionBeginUser;
  PetscCall(PairsCount(SeenTypesFit(s[0].type, s[1].type), what, "types"));
  PetscCall(PairsCount((PetscBool)(s[0].assembled == s[1].assembled), what, "assembled"));
  PetscCall(PairsCount((PetscBool)(s[0].preallocated == s[1].preallocated), what, "preallocated"));
  PetscCall(PairsCount((PetscBool)(s[0].before == s[1].before), what, "assembled before"));
  for (int k = 0; k < 7; k++) {
    if (s[0].claims[k] != s[1].claims[k] && PairsVerbose && !PairsQuiet) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "claim %s: %d of MATAIJ, %d of ours\n", claims[k], s[0].claims[k], s[1].claims[k]));
    PetscCall(PairsCount((PetscBool)(s[0].claims[k] == s[1].claims[k]), what, claims[k]));
  }
  PetscCall(PairsCount((PetscBool)!memcmp(s[0].sizes, s[1].sizes, sizeof(s[0].sizes)), what, "sizes and block sizes"));
  for (int k = 0; k < 3 && PairsVerbose && !PairsQuiet; k++)
    if (s[0].nullspaces[k] != s[1].nullspaces[k]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "null space %d: %s MATAIJ, %s ours\n", k, s[0].nullspaces[k] ? "in" : "not in", s[1].nullspaces[k] ? "in" : "not in"));
  PetscCall(PairsCount((PetscBool)!memcmp(s[0].nullspaces, s[1].nullspaces, sizeof(s[0].nullspaces)), what, "null spaces"));
  PetscCall(PairsCount((PetscBool)!memcmp(s[0].mapping, s[1].mapping, sizeof(s[0].mapping)), what, "mappings from local to global"));
  if (s[0].nonzeros != s[1].nonzeros && PairsVerbose && !PairsQuiet) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "nonzeros: %g of MATAIJ, %g of ours\n", (double)s[0].nonzeros, (double)s[1].nonzeros));
  PetscCall(PairsCount((PetscBool)(s[0].nonzeros == s[1].nonzeros), what, "number of nonzeros"));
  PetscCall(PairsCount((PetscBool)!strcmp(s[0].prefix, s[1].prefix), what, "prefix"));
  for (int k = 0; k < 4 && PairsCounts; k++) {
    /* of assemblies those that were added, or all where another matrix took its place */
    PetscBool added = (PetscBool)(!k && before && s[0].counts[0] - before[0].counts[0] == s[1].counts[0] - before[1].counts[0]);

    PetscCall(PairsCount((PetscBool)(added || s[0].counts[k] == s[1].counts[k]), what, counts[k]));
  }
  if (before) {
    /* where MATAIJ's contents are another matrix's now, or its blocks are, the state of the pattern is the one
       that those happen to have */
    PetscBool replaced = (PetscBool)(s[0].data != before[0].data || memcmp(s[0].blocks, before[0].blocks, sizeof(s[0].blocks)));
    PetscBool moved[2] = {(PetscBool)(s[0].nonzerostate != before[0].nonzerostate), (PetscBool)(s[1].nonzerostate != before[1].nonzerostate)};

    if (PairsVerbose && !replaced && moved[0] != moved[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "pattern states: MATAIJ %d to %d, ours %d to %d\n", (int)before[0].nonzerostate, (int)s[0].nonzerostate, (int)before[1].nonzerostate, (int)s[1].nonzerostate));
    PetscCall(PairsCount((PetscBool)((s[0].state != before[0].state) == (s[1].state != before[1].state)), what, "one state moved"));
    PetscCall(PairsCount((PetscBool)(replaced || moved[0] == moved[1]), what, "one pattern's state moved"));
    PetscCall(PairsCount((PetscBool)(!strcmp(s[0].name, before[0].name) == !strcmp(s[1].name, before[1].name)), what, "one name changed"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products first: they work with what is on the device */
static inline PetscErrorCode PairsCompare(Mat A, Mat H, const Seen *before, const char *what)
{
  Seen now[2];

  PetscFunctionBeginUser;
  PetscCall(SeenGet(A, &now[0]));
  PetscCall(SeenGet(H, &now[1]));
  PetscCall(PairsCompareSeen(now, before, what));
  if (!now[0].assembled || !now[1].assembled || memcmp(now[0].sizes, now[1].sizes, 4 * sizeof(PetscInt))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PairsProducts(A, H, what));
  PetscCall(PairsEntries(A, H, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
