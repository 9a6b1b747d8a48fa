/*
  mattest.h: what the tests of the type share. They are plain PETSc programs: the plugin comes by -dll_append. Each
  operation of the type is compared with the same operation of MATAIJ on the same entries.
*/
#ifndef MATTEST_H
#define MATTEST_H
#include <petscksp.h>
#include "rounding.h"
#include <dlfcn.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

static PetscInt    MatTestPassed, MatTestFailed, MatTestSkipped;
static const char *MatTestName = "";
static PetscInt    MatTestSeed = 1;

static inline PetscMPIInt MatTestRank(void)
{
  PetscMPIInt rank;

  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  return rank;
}

static inline PetscMPIInt MatTestSize(void)
{
  PetscMPIInt size;

  MPI_Comm_size(PETSC_COMM_WORLD, &size);
  return size;
}

static inline void MatTestCount(PetscBool ok, const char *what, const char *file, int line)
{
  if (ok)
    MatTestPassed++;
  else {
    MatTestFailed++;
    if (!MatTestRank()) printf("FAILED %s: %s (%s:%d, seed %d)\n", MatTestName, what, file, line, (int)MatTestSeed);
  }
}
#define MatTestCheck(cond, what) MatTestCount((PetscBool)(cond), what, __FILE__, __LINE__)

/* before PetscInitialize(): what is a little memory for entries of 12 bytes is as little for those of 64-bit indices */
static inline void MatTestLimit(int argc, char **argv)
{
  static char limit[32];

  for (int k = 1; k + 1 < argc && PetscDefined(USE_64BIT_INDICES); k++) {
    if (strcmp(argv[k], "-mat_aijhybridgpu_memory_limit")) continue;
    snprintf(limit, sizeof(limit), "%.0f", atof(argv[k + 1]) / 12 * (double)(sizeof(PetscScalar) + sizeof(PetscInt)));
    argv[k + 1] = limit;
  }
}

/* and each process that uses the emulated device has a card of its own, or they have -cards N */
static inline void MatTestCards(int argc, char **argv)
{
  (void)setenv("HYB_EMULATOR_CARDS", "8", 1);
  for (int k = 1; k + 1 < argc; k++)
    if (!strcmp(argv[k], "-cards")) (void)setenv("HYB_EMULATOR_CARDS", argv[k + 1], 1);
  MatTestLimit(argc, argv);
}

/* main()'s beginning with such cards */
static inline PetscErrorCode MatTestInitialize(int *argc, char ***argv, PetscMPIInt *rank, PetscMPIInt *size)
{
  MatTestCards(*argc, *argv);
  PetscCall(PetscInitialize(argc, argv, NULL, NULL));
  *rank = MatTestRank();
  *size = MatTestSize();
  return PETSC_SUCCESS;
}

static inline PetscErrorCode MatTestFinalize(int *code)
{
  PetscInt none = !(MatTestPassed + MatTestFailed + MatTestSkipped), all;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Allreduce(&none, &all, 1, MPIU_INT, MPI_MIN, PETSC_COMM_WORLD));
  if (all) MatTestCheck(PETSC_FALSE, "the program has checked nothing");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d passed, %d failed, %d skipped\n", (int)MatTestPassed, (int)MatTestFailed, (int)MatTestSkipped));
  *code = MatTestFailed ? 1 : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* main()'s end: the line of counts, and the exit code */
static inline int MatTestEnd(void)
{
  int code = 1;

  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}

/* errors that are caught leave a debugging PETSc's stack of functions in disorder */
#if defined(PETSC_USE_DEBUG) && !defined(PETSC_HAVE_THREADSAFETY)
  #define STACK_SAVE    const PetscStack stack_ = petscstack
  #define STACK_RESTORE petscstack = stack_
#else
  #define STACK_SAVE    (void)0
  #define STACK_RESTORE (void)0
#endif

/* error = call, and nothing is printed */
#define QUIETLY(error, call)                                         \
  do {                                                               \
    STACK_SAVE;                                                      \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    error = call;                                                    \
    PetscCall(PetscPopErrorHandler());                               \
    STACK_RESTORE;                                                   \
  } while (0)

static inline PetscErrorCode MatTestAssemble(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode VecTestAssemble(Vec x)
{
  PetscFunctionBeginUser;
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x: this process's rows become value, an expression in r */
#define VecTestFill(x, r, value)                                                                 \
  do {                                                                                           \
    PetscInt start_, end_;                                                                       \
    PetscCall(VecGetOwnershipRange(x, &start_, &end_));                                          \
    for (PetscInt r = start_; r < end_; r++) PetscCall(VecSetValue(x, r, value, INSERT_VALUES)); \
    PetscCall(VecTestAssemble(x));                                                               \
  } while (0)

/* these objects of PETSc's, of any classes, in this order */
static inline PetscErrorCode MatTestDestroy_Private(void **objects)
{
  PetscFunctionBeginUser;
  for (; *objects; objects++) PetscCall(PetscObjectDestroy((PetscObject *)*objects));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define MatTestDestroy(...) MatTestDestroy_Private((void *[]){__VA_ARGS__, NULL})

/* the same of two matrices, or vectors */
#define MatTestBoth(op, A, B, ...)     \
  do {                                 \
    PetscCall(op((A), ##__VA_ARGS__)); \
    PetscCall(op((B), ##__VA_ARGS__)); \
  } while (0)

/* an option with this value, or without it again */
static inline PetscErrorCode MatTestOption(PetscBool on, const char name[], const char value[])
{
  PetscFunctionBeginUser;
  if (on)
    PetscCall(PetscOptionsSetValue(NULL, name, value));
  else
    PetscCall(PetscOptionsClearValue(NULL, name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MatTestCreate(MPI_Comm comm, MatType type, PetscInt m, PetscInt n, PetscInt M, PetscInt N, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, M, N));
  PetscCall(MatSetType(*A, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The share of this process of N rows or columns: the more the higher its rank, and none of the last but one process of
   three or more */
static inline PetscInt MatTestUneven(PetscInt N)
{
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  PetscInt          weights = 0, first = 0, mine;

  for (PetscMPIInt r = 0; r < size; r++) weights += size > 2 && r == size - 2 ? 0 : 1 + r;
  for (PetscMPIInt r = 0; r < rank; r++) first += size > 2 && r == size - 2 ? 0 : 1 + r;
  mine = size > 2 && rank == size - 2 ? 0 : 1 + rank;
  return (first + mine) * N / weights - first * N / weights;
}

/* A matrix of a sparse type, with room for so many entries in each row of either block; which rows are this
   process's */
static inline PetscErrorCode MatTestRoom(MatType type, PetscInt m, PetscInt n, PetscInt M, PetscInt N, PetscInt room, Mat *A, PetscInt *start, PetscInt *end)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, m, n, M, N, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, room, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, room, NULL, room, NULL));
  PetscCall(MatGetOwnershipRange(*A, start, end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new entries may come */
static inline PetscErrorCode MatTestLetIn(Mat A)
{
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* whether the options database has this value for the option */
static inline PetscErrorCode MatTestOptionIs(const char *option, const char *value, PetscBool *is)
{
  char text[256] = "";

  PetscFunctionBeginUser;
  *is = PETSC_FALSE;
  PetscCall(PetscOptionsGetString(NULL, NULL, option, text, sizeof(text), NULL));
  PetscCall(PetscStrcmp(text, value, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how often an event of the log has happened */
static inline PetscErrorCode MatTestEventCount(const char *name, PetscInt *count)
{
  PetscLogEvent      event;
  PetscEventPerfInfo info;

  PetscFunctionBeginUser;
  *count = 0;
  PetscCall(PetscLogEventGetId(name, &event));
  PetscCheck(event >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "No event %s", name);
  PetscCall(PetscLogEventGetPerfInfo(0, event, &info));
  *count = (PetscInt)info.count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ||A - B|| / ||B|| over the union of the patterns, and whether the patterns agree; A and B of any types */
static inline PetscErrorCode MatTestDifference(Mat A, Mat B, PetscReal *difference)
{
  Mat       a, b;
  PetscReal n, d;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &a));
  PetscCall(MatConvert(B, MATAIJ, MAT_INITIAL_MATRIX, &b));
  PetscCall(MatNorm(b, NORM_FROBENIUS, &n));
  PetscCall(MatAXPY(a, -1.0, b, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatNorm(a, NORM_FROBENIUS, &d));
  *difference = n > 0 ? d / n : d;
  PetscCall(MatTestDestroy(&a, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MatTestSame(Mat A, Mat B, const char *what, const char *file, int line)
{
  PetscReal d = 0;

  PetscFunctionBeginUser;
  PetscCall(MatTestDifference(A, B, &d));
  if (!(d < ROUNDED(1e-12))) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "difference %g\n", (double)d));
  MatTestCount((PetscBool)(d < ROUNDED(1e-12)), what, file, line);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define MatTestCheckSame(A, B, what) PetscCall(MatTestSame(A, B, what, __FILE__, __LINE__))

static inline PetscErrorCode VecTestSame(Vec x, Vec y, const char *what, const char *file, int line)
{
  Vec       d;
  PetscReal n, e;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(y, &d));
  PetscCall(VecCopy(x, d));
  PetscCall(VecNorm(y, NORM_2, &n));
  PetscCall(VecAXPY(d, -1.0, y));
  PetscCall(VecNorm(d, NORM_2, &e));
  PetscCall(VecDestroy(&d));
  if (!(e <= ROUNDED(1e-12) * (n > 0 ? n : 1))) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "difference %g of %g\n", (double)e, (double)n));
  MatTestCount((PetscBool)(e <= ROUNDED(1e-12) * (n > 0 ? n : 1)), what, file, line);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define VecTestCheckSame(x, y, what) PetscCall(VecTestSame(x, y, what, __FILE__, __LINE__))

/* y = op(A, ...) and z = op(H, ...) are one */
#define VecTestBoth(op, A, H, y, z, ...)    \
  do {                                      \
    PetscCall(op((A), ##__VA_ARGS__, (y))); \
    PetscCall(op((H), ##__VA_ARGS__, (z))); \
    VecTestCheckSame(z, y, #op);            \
  } while (0)

/* every product with vectors by both */
static inline PetscErrorCode MatTestMults(Mat A, Mat H)
{
  Vec x, b, c, y, z, yt, zt;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &b));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(x, &c));
  PetscCall(VecDuplicate(x, &yt));
  PetscCall(VecDuplicate(x, &zt));
  MatTestBoth(VecSetRandom, x, b, NULL);
  PetscCall(VecSetRandom(c, NULL));
  VecTestBoth(MatMult, A, H, y, z, x);
  VecTestBoth(MatResidual, A, H, y, z, b, x);
  VecTestBoth(MatMultAdd, A, H, y, z, x, b);
  PetscCall(VecCopy(b, z));
  PetscCall(MatMultAdd(H, x, z, z));
  VecTestCheckSame(z, y, "MatMultAdd in place");
  VecTestBoth(MatMultTranspose, A, H, yt, zt, b);
  VecTestBoth(MatMultTransposeAdd, A, H, yt, zt, b, c);
  VecTestBoth(MatMultHermitianTranspose, A, H, yt, zt, b);
  VecTestBoth(MatMultHermitianTransposeAdd, A, H, yt, zt, b, c);
  PetscCall(MatTestDestroy(&x, &b, &c, &y, &z, &yt, &zt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a product with a vector, which brings what it needs */
static inline PetscErrorCode MatTestUse(Mat A)
{
  Vec x, y;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatTestDestroy(&x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = A x or A^T x by both, for a random x */
static inline PetscErrorCode MatTestMult(Mat H, Mat A, PetscBool transpose, const char *what, const char *file, int line)
{
  Vec x, y, z;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, transpose ? &y : &x, transpose ? &x : &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(transpose ? MatMultTranspose(A, x, y) : MatMult(A, x, y));
  PetscCall(transpose ? MatMultTranspose(H, x, z) : MatMult(H, x, z));
  PetscCall(VecTestSame(z, y, what, file, line));
  PetscCall(MatTestDestroy(&x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#define MatTestCheckMult(H, A, what)          PetscCall(MatTestMult(H, A, PETSC_FALSE, what, __FILE__, __LINE__))
#define MatTestCheckMultTranspose(H, A, what) PetscCall(MatTestMult(H, A, PETSC_TRUE, what, __FILE__, __LINE__))

/* C, which MatProductCreate() made, up to its pattern; algorithm: or NULL */
static inline PetscErrorCode MatTestSymbolic(MatProductType type, const char *algorithm, Mat C)
{
  PetscFunctionBeginUser;
  PetscCall(MatProductSetType(C, type));
  if (algorithm) PetscCall(MatProductSetAlgorithm(C, algorithm));
  PetscCall(MatProductSetFill(C, PETSC_DEFAULT));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D = product of `type, with an error where there is none; D, not NULL, is the caller's to destroy also then */
static inline PetscErrorCode MatTestProduct(MatProductType type, Mat A, Mat B, Mat C, Mat *D)
{
  PetscFunctionBeginUser;
  PetscCall(MatProductCreate(A, B, C, D));
  PetscCall(MatTestSymbolic(type, NULL, *D));
  PetscCall(MatProductNumeric(*D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the library that an option names, which the program has loaded; NULL if it has not */
static inline PetscErrorCode MatTestLibrary(const char *option, void **library)
{
  char      path[PETSC_MAX_PATH_LEN] = "";
  PetscBool named;

  PetscFunctionBeginUser;
  *library = NULL;
  PetscCall(PetscOptionsGetString(NULL, NULL, option, path, sizeof(path), &named));
  if (named) *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* M x N with about `a row entries a row, some rows empty; the entries do not depend on the number of processes */
static inline PetscErrorCode MatTestRandom(PetscInt M, PetscInt N, PetscInt arow, PetscInt seed, Mat *A)
{
  PetscInt      start, end;
  unsigned long s;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(MATAIJ, PETSC_DECIDE, PETSC_DECIDE, M, N, 3 * arow + 2, A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt n;

    s = (unsigned long)(r * 2654435761u + seed * 40503u + 12345u);
#define MATTEST_NEXT(s) ((s) = (s)*6364136223846793005ul + 1442695040888963407ul, ((s) >> 33))
    (void)MATTEST_NEXT(s);
    n = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)(2 * arow + 1));
    if (r % 7 == 3) n = 0;
    if (r == M / 2) n = 3 * arow;
    for (PetscInt k = 0; k < n && N > 0; k++) {
      PetscInt    c = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)N);
      PetscScalar v = (PetscScalar)((PetscReal)(MATTEST_NEXT(s) % 1000) / 500.0 - 0.9995);

      PetscCall(MatSetValues(*A, 1, &r, 1, &c, &v, INSERT_VALUES));
    }
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* finite differences on an n^dim grid: 2 dim + 1 points, or 3^dim with full; conv adds convection (nonsymmetric) */
static inline PetscErrorCode MatTestStencil(PetscInt dim, PetscInt n, PetscBool full, PetscReal conv, MatType type, Mat *A)
{
  PetscInt start, end, size = 1;

  PetscFunctionBeginUser;
  for (PetscInt d = 0; d < dim; d++) size *= n;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, PETSC_DECIDE, PETSC_DECIDE, size, size, A));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, full ? 27 : 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, full ? 27 : 7, NULL, full ? 27 : 7, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    PetscInt i = r % n, j = (r / n) % n, k = dim == 3 ? r / (n * n) : 0, count = 0;

    for (PetscInt dk = (dim == 3 ? -1 : 0); dk <= (dim == 3 ? 1 : 0); dk++)
      for (PetscInt dj = -1; dj <= 1; dj++)
        for (PetscInt di = -1; di <= 1; di++) {
          PetscInt    taxi = PetscAbsInt(di) + PetscAbsInt(dj) + PetscAbsInt(dk), c = r + di + dj * n + dk * n * n;
          PetscScalar v = -1.0 - conv * di;

          if (!taxi || (!full && taxi > 1)) continue;
          count++;
          if (i + di < 0 || i + di >= n || j + dj < 0 || j + dj >= n || k + dk < 0 || (dim == 3 && k + dk >= n)) continue;
          PetscCall(MatSetValues(*A, 1, &r, 1, &c, &v, INSERT_VALUES));
        }
    PetscCall(MatSetValue(*A, r, r, (PetscScalar)count, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a first product, which opens the device */
static inline PetscErrorCode MatTestOpenDevice(void)
{
  Mat A, H;

  PetscFunctionBeginUser;
  PetscCall(MatTestRandom(5, 5, 2, 1, &A));
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  MatTestCheckMult(H, A, "a first product");
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
