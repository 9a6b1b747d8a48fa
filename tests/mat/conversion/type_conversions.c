/*
  Conversions against those of MATAIJ: from every type that PETSc can convert to AIJ, to the types derived from AIJ
  and to others; products of mixed types and of converted results; transposes. What is compared is what a program sees:
  the error if there is one, the type, the number of nonzeros, block sizes, claims (symmetric and its like), null
  spaces, the local-to-global mapping, what was composed, name and prefix, and the values by a product with a vector.

TEST np=1
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=2
TEST np=+3
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=2 @emulated
TEST np=+3 @emulated
*/
#include "mattest.h"
#include <petsc/private/matimpl.h>

#define OURS "aijhybridgpu"
#define ROWS 36

#if PETSC_VERSION_LT(3, 19, 0)
  #define MATTRANSPOSEVIRTUAL "transpose" /* not yet the name of this type */
#endif

/* tridiagonal, symmetric, with a stored zero in row 4 */
static PetscErrorCode Base(MatType type, PetscReal factor, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, ROWS, ROWS));
  PetscCall(MatSetBlockSize(*A, 3));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetUp(*A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt c = PetscMax(0, r - 1); c < PetscMin(ROWS, r + 2); c++) PetscCall(MatSetValue(*A, r, c, (PetscScalar)(factor * (r == c ? 4 + r : -1)), INSERT_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShellMult(Mat S, Vec x, Vec y)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatShellGetContext(S, &A));
  PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum {
  DENSE,
  BAIJ,
  SBAIJ,
  SELL,
  MAIJ,
  KAIJ,
  NEST,
  TRANSPOSED,
  NORMAL,
  SHELL,
  COMPOSITE,
  LOCAL,
  HYPRE,
  SCALAPACK,
  PERM,
  AIJSELL,
  CRL,
  PLAIN,
  KINDS
} Kind;
static const char *const Names[] = {"dense", "baij", "sbaij", "sell", "maij", "kaij", "nest", "transposed", "normal", "shell", "composite", "is", "hypre", "scalapack", "aijperm", "aijsell", "aijcrl", "aij"};

/* A matrix of this kind, of parts of type `inner` where it has parts; NULL where this PETSc has none. parts: what
   the program has to keep as long. */
static PetscErrorCode Make(Kind kind, MatType inner, PetscReal factor, Mat *part, Mat *S)
{
  const MatType names[] = {MATDENSE, MATBAIJ, MATSBAIJ, MATSELL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, MATAIJPERM, MATAIJSELL, MATAIJCRL, MATAIJ};
  Mat           A, B;

  PetscFunctionBeginUser;
  *S = *part = NULL;
  if (names[kind] && kind != SBAIJ) {
    PetscCall(Base(names[kind], factor, S));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Base(inner, factor, &A));
  switch (kind) {
  case SBAIJ:
    PetscCall(Base(MATAIJ, factor, &B));
    PetscCall(MatSetOption(B, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatConvert(B, MATSBAIJ, MAT_INITIAL_MATRIX, S));
    PetscCall(MatTestDestroy(&B, &A));
    break;
  case MAIJ:
    PetscCall(MatCreateMAIJ(A, 3, S));
    break;
  case KAIJ: {
    const PetscScalar t[] = {1, 2, 3, 4};

    PetscCall(MatDestroy(&A));
    PetscCall(Base(MATAIJ, factor, &A)); /* the type under its own name is refused on one process */
    PetscCall(MatCreateKAIJ(A, 2, 2, NULL, t, S));
    break;
  }
  case NEST: {
    Mat blocks[4];

    blocks[0] = blocks[3] = A;
    blocks[1]             = NULL;
    blocks[2]             = A;
    PetscCall(MatCreateNest(PETSC_COMM_WORLD, 2, NULL, 2, NULL, blocks, S));
    break;
  }
  case TRANSPOSED:
    PetscCall(MatCreateTranspose(A, S));
    break;
  case NORMAL:
    PetscCall(MatCreateNormal(A, S));
    break;
  case SHELL:
    PetscCall(MatCreateShell(PETSC_COMM_WORLD, A->rmap->n, A->cmap->n, ROWS, ROWS, A, S));
    PetscCall(MatShellSetOperation(*S, MATOP_MULT, (void (*)(void))ShellMult));
    break;
  case COMPOSITE: {
    Mat two[2];

    two[0] = two[1] = A;
    PetscCall(MatCreateComposite(PETSC_COMM_WORLD, 2, two, S));
    break;
  }
  case LOCAL:
    PetscCall(MatConvert(A, MATIS, MAT_INITIAL_MATRIX, S));
    break;
  case HYPRE:
#if defined(PETSC_HAVE_HYPRE)
    PetscCall(MatConvert(A, MATHYPRE, MAT_INITIAL_MATRIX, S));
#endif
    break;
  case SCALAPACK:
#if defined(PETSC_HAVE_SCALAPACK)
    PetscCall(MatConvert(A, MATSCALAPACK, MAT_INITIAL_MATRIX, S));
#endif
    break;
  default:
    break;
  }
  *part = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that a program can hang on a matrix */
static PetscErrorCode Decorate(Mat S)
{
  MatNullSpace           null;
  ISLocalToGlobalMapping map[2];
  PetscContainer         user;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectSetName((PetscObject)S, "decorated"));
  PetscCall(MatSetOptionsPrefix(S, "deco_"));
  PetscCall(MatSetOption(S, MAT_SYMMETRIC, PETSC_TRUE));
  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  (void)MatSetOption(S, MAT_SPD, PETSC_TRUE); /* some types know nothing of it in some releases */
  (void)PetscPopErrorHandler();
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  PetscCall(MatSetNullSpace(S, null));
  PetscCall(MatSetTransposeNullSpace(S, null));
  PetscCall(MatSetNearNullSpace(S, null));
  PetscCall(MatNullSpaceDestroy(&null));
  for (int k = 0; k < 2; k++) {
    PetscLayout layout = k ? S->cmap : S->rmap;
    IS          is;

    PetscCall(ISCreateStride(PETSC_COMM_WORLD, layout->n, layout->rstart, 1, &is));
    PetscCall(ISLocalToGlobalMappingCreateIS(is, &map[k]));
    PetscCall(ISDestroy(&is));
  }
  if (!S->rmap->mapping) PetscCall(MatSetLocalToGlobalMapping(S, map[0], map[1]));
  for (int k = 0; k < 2; k++) PetscCall(ISLocalToGlobalMappingDestroy(&map[k]));
  PetscCall(PetscContainerCreate(PETSC_COMM_WORLD, &user));
  PetscCall(PetscObjectCompose((PetscObject)S, "user", (PetscObject)user));
  PetscCall(PetscContainerDestroy(&user));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what a program sees of a matrix beside its entries, the library's name left out of the type */
static PetscErrorCode Describe(Mat M, char text[], size_t length)
{
  char         type[64], *end;
  MatInfo      info;
  MatNullSpace null[3];
  PetscObject  user, parent;
  PetscBool    ownname;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(type, ((PetscObject)M)->type_name, sizeof(type)));
  PetscCall(PetscStrrstr(type, "hybridgpu", &end));
  if (end) *end = 0;
  PetscCall(PetscStrrstr(type, "perm", &end));
  if (end) *end = 0;
  PetscCall(MatGetInfo(M, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetNullSpace(M, &null[0]));
  PetscCall(MatGetTransposeNullSpace(M, &null[1]));
  PetscCall(MatGetNearNullSpace(M, &null[2]));
  PetscCall(PetscObjectQuery((PetscObject)M, "user", &user));
  PetscCall(PetscObjectQuery((PetscObject)M, "MatTransposeParent", &parent));
  PetscCall(PetscStrcmp(((PetscObject)M)->name, "decorated", &ownname));
  PetscCall(PetscSNPrintf(text, length, "%s %dx%d %d nonzeros, blocks %d %d, symmetric %d hermitian %d structurally %d spd %d eternal %d %d, null spaces %d %d %d, mappings %d %d, user %d, parent %d, name %d, prefix %s, assembled %d", type, (int)M->rmap->N, (int)M->cmap->N, (int)info.nz_used,
                          (int)PetscAbs(M->rmap->bs), (int)PetscAbs(M->cmap->bs), (int)M->symmetric, (int)M->hermitian, (int)M->structurally_symmetric, (int)M->spd, (int)M->symmetry_eternal, (int)M->structural_symmetry_eternal, !!null[0], !!null[1], !!null[2], !!M->rmap->mapping, !!M->cmap->mapping, !!user, !!parent,
                          (int)ownname, ((PetscObject)M)->prefix ? ((PetscObject)M)->prefix : "none", (int)M->assembled));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckAlike(Mat H, Mat A, const char *what, int line)
{
  char      ours[1024], aij[1024];
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(Describe(A, aij, sizeof(aij)));
  PetscCall(Describe(H, ours, sizeof(ours)));
  PetscCall(PetscStrcmp(ours, aij, &same));
  if (!same) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  aij:  %s\n  ours: %s\n", aij, ours));
  MatTestCount(same, what, __FILE__, line);
  PetscCall(MatTestMult(H, A, PETSC_FALSE, what, __FILE__, line));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Quietly(Mat S, MatType type, MatReuse reuse, Mat *M)
{
  PetscErrorCode ierr;

  (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
  ierr = MatConvert(S, type, reuse, M);
  (void)PetscPopErrorHandler();
  return ierr;
}

/* From every kind, in all three ways, with parts of AIJ or of ours */
static PetscErrorCode Sources(Kind kind, PetscBool decorated, PetscBool oursinside, MatReuse reuse)
{
  static char    what[256];
  const char    *reuses[] = {"initial", "reuse", "ignore", "in place"};
  Mat            S[2], part[2], M[2] = {NULL, NULL}, again[2], partagain[2];
  PetscErrorCode ierr[2];
  /* PETSc's own leaves the old values there, and frees data of its source: a new matrix says what is right */
  const PetscBool wrong = (PetscBool)(reuse == MAT_REUSE_MATRIX && (kind == PERM || kind == AIJSELL || kind == PLAIN));

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "from %s%s%s, %s", Names[kind], decorated ? ", decorated" : "", oursinside ? ", ours inside" : "", reuses[reuse]));
  MatTestName = what;
  PetscCall(PetscInfo(NULL, "%s\n", what));
  for (int k = 0; k < 2; k++) {
    PetscCall(Make(kind, k && oursinside ? OURS : MATAIJ, 1, &part[k], &S[k]));
    if (!S[k]) {
      PetscCall(MatDestroy(&part[k]));
      continue;
    }
    if (decorated) PetscCall(Decorate(S[k]));
  }
  if (!S[0] || !S[1]) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    MatType type = k ? OURS : kind == PLAIN ? MATAIJPERM
                                            : MATAIJ; /* AIJ to itself is no conversion */

    again[k] = partagain[k] = NULL;
    if (reuse == MAT_INPLACE_MATRIX) {
      M[k]    = S[k];
      ierr[k] = Quietly(S[k], type, reuse, &M[k]);
    } else {
      ierr[k] = Quietly(S[k], type, MAT_INITIAL_MATRIX, &M[k]);
      if (reuse == MAT_REUSE_MATRIX && !ierr[k]) { /* the values of another one of the same pattern */
        PetscCall(Make(kind, k && oursinside ? OURS : MATAIJ, 3, &partagain[k], &again[k]));
        if (wrong && !k) {
          PetscCall(MatDestroy(&M[0]));
          ierr[0] = Quietly(again[0], type, MAT_INITIAL_MATRIX, &M[0]);
        } else
          ierr[k] = Quietly(again[k], type, MAT_REUSE_MATRIX, &M[k]);
      }
    }
  }
  if (ierr[0] != ierr[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: error %d of aij, %d of ours\n", what, (int)ierr[0], (int)ierr[1]));
  MatTestCheck(ierr[0] == ierr[1], "the error");
  if (ierr[0] || ierr[1]) PetscFunctionReturn(PETSC_SUCCESS); /* what is left of a failed conversion is nobody's */
  if (wrong)
    MatTestCheckMult(M[1], M[0], "values");
  else
    PetscCall(CheckAlike(M[1], M[0], "alike", __LINE__));
  for (int k = 0; k < 2; k++) {
    if (reuse != MAT_INPLACE_MATRIX) PetscCall(MatDestroy(&S[k]));
    PetscCall(MatTestDestroy(&M[k], &part[k], &again[k], &partagain[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From SBAIJ of blocks into a matrix that is there already: PETSc's own leaves one that is none, ours is compared
   with a new one of AIJ */
static PetscErrorCode Symmetric(void)
{
  Mat S[2], part, A, H;

  PetscFunctionBeginUser;
  MatTestName = "from sbaij, reuse";
  for (int k = 0; k < 2; k++) PetscCall(Make(SBAIJ, MATAIJ, 1 + k, &part, &S[k]));
  PetscCall(MatConvert(S[1], MATAIJ, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatConvert(S[0], OURS, MAT_INITIAL_MATRIX, &H));
  PetscCall(MatConvert(S[1], OURS, MAT_REUSE_MATRIX, &H));
  MatTestCheckMult(H, A, "values");
  MatTestCheckSame(H, A, "entries");
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&S[k]));
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product's result that was converted in place is computed again */
static PetscErrorCode Results(MatType type)
{
  static char what[128];
  Mat         A[2], C[2], P[2];
  MatReuse    reuse = MAT_INITIAL_MATRIX;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "products converted to %s", type));
  MatTestName = what;
  for (int k = 0; k < 2; k++) PetscCall(Base(k ? OURS : MATAIJ, 1, &A[k]));
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatMatMult(A[k], A[k], reuse, PETSC_DEFAULT, &C[k]));
      PetscCall(MatPtAP(A[k], A[k], reuse, PETSC_DEFAULT, &P[k]));
      if (!round) PetscCall(MatConvert(C[k], type, MAT_INPLACE_MATRIX, &C[k]));
      if (!round) PetscCall(MatConvert(P[k], type, MAT_INPLACE_MATRIX, &P[k]));
      PetscCall(MatScale(A[k], 2.0));
    }
    PetscCall(CheckAlike(C[1], C[0], "AB", __LINE__));
    PetscCall(CheckAlike(P[1], P[0], "PtAP", __LINE__));
    reuse = MAT_REUSE_MATRIX;
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &C[k], &P[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Transposes of a matrix that the program assembled, or that a product made, and what hangs on them.
   MAT_INPLACE_MATRIX and a changed pattern put a new matrix in an old one's place. */
static PetscErrorCode Transposes(PetscBool result, PetscBool square)
{
  static char what[128];
  Mat         A[2], T[2];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "transposes%s%s", result ? " of a product's result" : "", square ? "" : ", not square"));
  MatTestName = what;
  for (int k = 0; k < 2; k++) {
    Mat B;

    PetscCall(MatTestRandom(60, square ? 60 : 40, 5, 3, &A[k]));
    if (k) PetscCall(MatConvert(A[k], OURS, MAT_INPLACE_MATRIX, &A[k]));
    if (result) {
      PetscCall(MatTransposeMatMult(A[k], A[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B));
      PetscCall(MatProductClear(B));
      PetscCall(MatDestroy(&A[k]));
      A[k] = B;
    }
    PetscCall(Decorate(A[k]));
    PetscCall(MatSetOption(A[k], MAT_SPD, PETSC_FALSE));
    PetscCall(MatSetOption(A[k], MAT_SYMMETRIC, PETSC_FALSE));
    PetscCall(MatTranspose(A[k], MAT_INITIAL_MATRIX, &T[k]));
  }
  PetscCall(CheckAlike(T[1], T[0], "a new one", __LINE__));
  for (int k = 0; k < 2; k++) {
    PetscCall(Decorate(T[k]));
    PetscCall(MatScale(A[k], 2.0));
    PetscCall(MatTranspose(A[k], MAT_REUSE_MATRIX, &T[k]));
  }
  PetscCall(CheckAlike(T[1], T[0], "again", __LINE__));
  {
    for (int k = 0; k < 2; k++) {
      PetscInt start;

      PetscCall(MatGetOwnershipRange(A[k], &start, NULL));
      PetscCall(MatTestLetIn(A[k]));
      for (PetscInt c = A[k]->cmap->rstart; c < A[k]->cmap->rend; c++) PetscCall(MatSetValue(A[k], start, c, (PetscScalar)c, INSERT_VALUES));
      PetscCall(MatTestAssemble(A[k]));
    }
    if (((PetscObject)A[0])->type_name[0] == 's') { /* MPIAIJ refuses another pattern */
      for (int k = 0; k < 2; k++) PetscCall(MatTranspose(A[k], MAT_REUSE_MATRIX, &T[k]));
      PetscCall(CheckAlike(T[1], T[0], "another pattern", __LINE__));
      for (int k = 0; k < 2; k++) {
        PetscCall(MatScale(A[k], 2.0));
        PetscCall(MatTranspose(A[k], MAT_REUSE_MATRIX, &T[k]));
      }
      PetscCall(CheckAlike(T[1], T[0], "another pattern, again", __LINE__));
    }
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&T[k]));
    PetscCall(MatTranspose(A[k], MAT_INPLACE_MATRIX, &A[k]));
  }
  PetscCall(CheckAlike(A[1], A[0], "in place", __LINE__));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(A[k], 2.0));
    PetscCall(MatTranspose(A[k], MAT_INPLACE_MATRIX, &A[k]));
    if ((square || result) && ((PetscObject)A[k])->type_name[0] == 's') PetscCall(MatShift(A[k], 1.0));
  }
  PetscCall(CheckAlike(A[1], A[0], "in place and back", __LINE__));
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of ours with a type derived from AIJ has the type that one of AIJ has. Not A B^T on one process: PETSc's
   own crashes where types differ. */
static PetscErrorCode Products(MatType type)
{
  const MatProductType products[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};
  static char          what[128];

  PetscFunctionBeginUser;
  MatTestName = what;
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(products); p++)
    for (int where = 0; where < (products[p] == MATPRODUCT_ABC ? 3 : 2); where++) {
      Mat M[2][3], C[2];

      PetscCall(PetscSNPrintf(what, sizeof(what), "%s, operand %d of type %s", MatProductTypes[products[p]], where, type));
      for (int k = 0; k < 2; k++) {
        for (int j = 0; j < 3; j++) PetscCall(Base(j == where ? type : k ? OURS
                                                                         : MATAIJ,
                                                   1, &M[k][j]));
        PetscCall(MatTestProduct(products[p], M[k][0], M[k][1], products[p] == MATPRODUCT_ABC ? M[k][2] : NULL, &C[k]));
      }
      PetscCall(CheckAlike(C[1], C[0], "alike", __LINE__));
      for (int k = 0; k < 2; k++) {
        for (int j = 0; j < 3; j++) PetscCall(MatScale(M[k][j], 2.0));
        PetscCall(MatProductNumeric(C[k]));
      }
      PetscCall(CheckAlike(C[1], C[0], "again", __LINE__));
      for (int k = 0; k < 2; k++) {
        for (int j = 0; j < 3; j++) PetscCall(MatDestroy(&M[k][j]));
        PetscCall(MatDestroy(&C[k]));
      }
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From ours to the types derived from AIJ and to others, new, in place, and again into what is there. PETSc's own
   leaves the old values in aijperm, aijsell and aijcrl: a new one says what is right. */
static PetscErrorCode Targets(MatType type, PetscBool derived, MatReuse reuse)
{
  static char what[128];
  const char *reuses[] = {"initial", "reuse", "ignore", "in place"};
  Mat         A[2], Z[2];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "to %s, %s", type, reuses[reuse]));
  MatTestName = what;
  for (int k = 0; k < 2; k++) {
    PetscCall(Base(k ? OURS : MATAIJ, 1, &A[k]));
    PetscCall(MatTranspose(A[k], MAT_INPLACE_MATRIX, &A[k])); /* ours is born on the device where there is one */
    PetscCall(Decorate(A[k]));
    Z[k] = A[k];
    PetscCall(MatConvert(A[k], type, reuse == MAT_INPLACE_MATRIX ? reuse : MAT_INITIAL_MATRIX, &Z[k]));
  }
  PetscCall(CheckAlike(Z[1], Z[0], reuse == MAT_INPLACE_MATRIX ? "in place" : "a new one", __LINE__));
  if (reuse == MAT_REUSE_MATRIX) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatScale(A[k], 3.0));
      if (k || !derived)
        PetscCall(MatConvert(A[k], type, MAT_REUSE_MATRIX, &Z[k]));
      else {
        PetscCall(MatDestroy(&Z[k]));
        PetscCall(MatConvert(A[k], type, MAT_INITIAL_MATRIX, &Z[k]));
      }
    }
    PetscCall(CheckAlike(Z[1], Z[0], "again", __LINE__));
  }
  for (int k = 0; k < 2; k++) {
    if (reuse != MAT_INPLACE_MATRIX) PetscCall(MatDestroy(&A[k]));
    PetscCall(MatDestroy(&Z[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Kronecker's product: PETSc's own takes a second factor of the very type seqaij alone */
static PetscErrorCode Kronecker(void)
{
  Mat               M[2][2], C[2];
  const PetscMPIInt size = MatTestSize();

  PetscFunctionBeginUser;
  MatTestName = "MatSeqAIJKron()";
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    PetscCall(Base(k ? OURS : MATAIJ, 1, &M[k][0]));
    PetscCall(Base(k ? OURS : MATAIJ, 2, &M[k][1]));
    PetscCall(MatSeqAIJKron(M[k][0], M[k][1], MAT_INITIAL_MATRIX, &C[k]));
  }
  PetscCall(CheckAlike(C[1], C[0], "a new one", __LINE__));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatScale(M[k][1], 3.0));
    PetscCall(MatSeqAIJKron(M[k][0], M[k][1], MAT_REUSE_MATRIX, &C[k]));
  }
  PetscCall(CheckAlike(C[1], C[0], "again", __LINE__));
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&M[k][0], &M[k][1], &C[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -matconvert_type decides for itself, and is obeyed once */
static PetscErrorCode Option(Kind kind)
{
  Mat       S, part;
  PetscBool ours;

  PetscFunctionBeginUser;
  MatTestName = "-matconvert_type";
  PetscCall(Make(kind, MATAIJ, 1, &part, &S));
  PetscCall(MatSetOptionsPrefix(S, "opt_"));
  PetscCall(PetscOptionsSetValue(NULL, "-opt_matconvert_type", OURS));
  for (int way = 0; way < 2; way++) {
    Mat M = S;

    PetscCall(MatConvert(S, MATAIJ, way ? MAT_INPLACE_MATRIX : MAT_INITIAL_MATRIX, &M));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)M, &ours, "seqaijhybridgpu", "mpiaijhybridgpu", ""));
    MatTestCheck(ours, Names[kind]);
    if (!way) PetscCall(MatDestroy(&M));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-opt_matconvert_type"));
  PetscCall(MatTestDestroy(&S, &part));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the sequential type is another than that of a parallel matrix of one process */
static PetscErrorCode Alone(void)
{
  Mat               A, B;
  const PetscMPIInt size = MatTestSize();
  PetscBool         same;

  PetscFunctionBeginUser;
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  MatTestName = "a parallel matrix of one process into the sequential type";
  PetscCall(Base(MATMPIAIJ, 1, &A));
  for (int again = 0; again < 2; again++) {
    PetscCall(MatConvert(A, "seq" OURS, again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &B));
    PetscCall(PetscObjectTypeCompare((PetscObject)B, "seq" OURS, &same));
    MatTestCheck(same, "of the sequential type");
    MatTestCheckSame(B, A, again ? "again" : "first");
    PetscCall(MatScale(A, 2.0));
  }
  PetscCall(MatTestDestroy(&A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const MatReuse ways[] = {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX, MAT_INPLACE_MATRIX};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Conversions are those of AIJ\n"));
  for (int kind = 0; kind < KINDS; kind++)
    for (int way = 0; way < 3; way++)
      for (int d = 0; d < 2; d++) {
        /* PETSc's own writes the row offsets of blocks into a matrix of entries, which is none any more: Symmetric() */
        if (kind == SBAIJ && way == 1) continue;
        const PetscBool parts = (PetscBool)(kind > SELL && kind < PERM && kind != KAIJ);

        PetscCall(Sources((Kind)kind, (PetscBool)d, PETSC_FALSE, ways[way]));
        /* with parts of another type PETSc goes another way, which forgets that the pattern is symmetric */
        if (kind == NEST && way == 1 && d) continue;
        if (parts) PetscCall(Sources((Kind)kind, (PetscBool)d, PETSC_TRUE, ways[way]));
      }
  PetscCall(Symmetric());
  PetscCall(Kronecker());
  MatTestBoth(Option, DENSE, PERM);
  PetscCall(Option(NEST));
  for (int way = 0; way < 4; way++) PetscCall(Transposes((PetscBool)(way % 2), (PetscBool)(way / 2)));
  for (int way = 0; way < 3; way++) {
    MatTestBoth(Targets, MATAIJPERM, MATAIJSELL, PETSC_TRUE, ways[way]);
    PetscCall(Targets(MATAIJCRL, PETSC_TRUE, ways[way]));
    PetscCall(Targets(MATBAIJ, PETSC_FALSE, ways[way]));
    /* again is refused by PETSc's own */
    PetscCall(Targets(MATSBAIJ, PETSC_FALSE, way == 1 ? MAT_INITIAL_MATRIX : ways[way]));
    MatTestBoth(Targets, MATSELL, MATDENSE, PETSC_FALSE, ways[way]);
  }
  PetscCall(Alone());
  MatTestBoth(Results, MATAIJ, MATAIJPERM);
  PetscCall(Results(MATAIJSELL));
  MatTestBoth(Products, MATAIJPERM, MATAIJSELL);
  PetscCall(Products(MATAIJCRL));
  return MatTestEnd();
}
