/*
  hybtest.h: what the unit tests stand on.

  A program is one file tests/tNNN_name.c:

    #include "hybtest.h"

    static PetscErrorCode Body(void)
    {
      PetscFunctionBegin;
      HybTestBegin("transpose of an empty matrix");
      HybTestCall(...);                        // an error fails the case, not the program
      HybTestCheck(x == y, "x is %d", (int)x);
      PetscFunctionReturn(PETSC_SUCCESS);
    }

    HYB_TEST_MAIN(Body)

  It is run as tNNN_name [-backend host|/abs/lib.so] [-seed N] [-matrices DIR] [-part K/N] [-result device|managed]
  [-mirror] [-times] [-small] and ends with the line "N passed, N failed, N skipped", counted in cases. A case that
  checked nothing counts as failed, and so does a program that leaves memory of the library allocated.

  The same source runs on the host, under the emulator and on a real device: inputs are made on the host and uploaded,
  results are downloaded and compared with the reference (reference/ref.h).
*/
#ifndef AIJHYBRIDGPU_TESTS_HYBTEST_H
#define AIJHYBRIDGPU_TESTS_HYBTEST_H
#include <aijhybridgpu/private/hyb.h>
#include "rounding.h"
#include "reference/ref.h"

/* "tile" multiplies real numbers of double precision alone */
#define HYBTEST_TILES (PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_COMPLEX))

extern int HybTestMain(int argc, char **argv, PetscErrorCode (*body)(void)); /* the three below in one */
#define HYB_TEST_MAIN(body)               \
  int main(int argc, char **argv)         \
  {                                       \
    return HybTestMain(argc, argv, body); \
  }
extern void HybTestInit(int *argc, char ***argv);
/* a value of the options database, for HybTuningRead() */
extern PetscErrorCode HybTestOption(const char option[], char value[], size_t length, PetscBool *set);
extern int            HybTestFinalize(void); /* prints the line, returns the exit code */

/* How often the host has waited for a device so far: the emulator sees all of it; on a card these are the copies to the
   host and calls that wait of what was handed to HybTestCountWaits(), which puts another backend into it (one at a
   time) */
extern unsigned long long HybTestWaits(void);
extern void               HybTestCountWaits(HybExec *);
extern const HybExec     *HybTestExec(void);   /* where the methods under test execute */
extern const HybBackend  *HybTestScarce(void); /* the same, but it says that it has 4 MiB of memory left */
/* a device library is told that so many processes are on the card, and that it may take so many bytes more than it
   holds;
   0: as at first */
extern void HybTestServe(int processes, size_t more);
/* an emulated device, or -small: keep sizes small */
extern PetscBool   HybTestSlow(void);
extern PetscInt    HybTestSize(PetscInt full, PetscInt slow); /* slow ? slow : full */
extern const char *HybTestFolder(void);                       /* -matrices; empty if none was given */

/* cases */
extern void HybTestBegin(const char *format, ...) PETSC_ATTRIBUTE_FORMAT(1, 2);
/* the open case counts as skipped, the reason is printed */
extern void HybTestSkip(const char *format, ...) PETSC_ATTRIBUTE_FORMAT(1, 2);
/* has a check of the open case failed? */
extern PetscBool HybTestFailed(void);
extern PetscBool HybTestCheck_Private(PetscBool ok, const char *file, int line, const char *format, ...) PETSC_ATTRIBUTE_FORMAT(4, 5);
extern PetscBool HybTestCall_Private(PetscErrorCode ierr, const char *what, const char *file, int line);
extern void      HybTestExpect_Private(PetscBool begin);
extern PetscBool HybTestExpected_Private(PetscErrorCode ierr, PetscErrorCode expected, const char *what, const char *file, int line);
/* has the value PETSC_TRUE when the condition holds; the text says what was found instead */
#define HybTestCheck(condition, ...) HybTestCheck_Private((PetscBool) !!(condition), __FILE__, __LINE__, __VA_ARGS__)
/* has the value PETSC_TRUE when the call succeeds; an error fails the case */
#define HybTestCall(call) HybTestCall_Private((PetscErrorCode)(call), #call, __FILE__, __LINE__)
/* the call must fail with this error code; nothing is printed meanwhile */
#define HybTestCallFails(error, call) (HybTestExpect_Private(PETSC_TRUE), HybTestExpected_Private((PetscErrorCode)(call), (PetscErrorCode)(error), #call, __FILE__, __LINE__))

/* A long program asks this before each of its pieces, which stand by themselves: PETSC_FALSE where the piece falls to
   another -part. Random numbers start anew with each. */
extern PetscBool HybTestMine(void);
/* those of these functions that are this process's */
#define HybTestPieces(...)                                             \
  do {                                                                 \
    static void (*const pieces_[])(void) = {__VA_ARGS__};              \
    for (size_t k_ = 0; k_ < PETSC_STATIC_ARRAY_LENGTH(pieces_); k_++) \
      if (HybTestMine()) pieces_[k_]();                                \
  } while (0)

/* random numbers of the program's seed */
extern PetscInt     HybTestRandomInt(PetscInt lo, PetscInt hi); /* lo <= r < hi */
extern PetscReal    HybTestRandomReal(void);                    /* 0 <= r < 1 */
extern PetscScalar  HybTestRandomScalar(void);                  /* parts in -1..1, never 0 */
extern void         HybTestRandomize(RefMat *A);                /* other values on the same pattern */
extern PetscScalar *HybTestRandomVector(PetscCount n);          /* from malloc */

/* matrices on the host, random values; RefMatDestroy() frees them */
/* copies; a may be NULL */
extern void HybTestMatArrays(PetscInt m, PetscInt n, const PetscInt *i, const PetscInt *j, const PetscScalar *a, RefMat *A);
/* random columns, the given row lengths (cut to n) */
extern void HybTestMatLengths(PetscInt m, PetscInt n, const PetscInt *lengths, RefMat *A);
/* row lengths lo..hi */
extern void HybTestMatRandom(PetscInt m, PetscInt n, PetscInt lo, PetscInt hi, RefMat *A);
/* few long rows and popular columns, many short ones and empty ones */
extern void HybTestMatPowerLaw(PetscInt m, PetscInt n, PetscInt average, RefMat *A);
/* 5, 7, 9, 27 on a grid; 5 and 9 take nz = 1 */
extern void HybTestMatStencil(PetscInt points, PetscInt nx, PetscInt ny, PetscInt nz, RefMat *A);
/* each entry becomes a dense bs x bs block */
extern void HybTestMatBlock(const RefMat *pattern, PetscInt bs, RefMat *A);
extern void HybTestMatBanded(PetscInt m, PetscInt n, PetscInt lower, PetscInt upper, RefMat *A);
/* one full row, the others of length others */
extern void HybTestMatDenseRow(PetscInt m, PetscInt n, PetscInt row, PetscInt others, RefMat *A);
extern void HybTestMatDenseColumn(PetscInt m, PetscInt n, PetscInt col, PetscInt others, RefMat *A);
extern void HybTestMatEmpty(PetscInt m, PetscInt n, RefMat *A);
/* empties rows from, from+step, ... < to */
extern void HybTestMatEmptyRows(RefMat *A, PetscInt from, PetscInt to, PetscInt step);
/* tridiagonal, but every fifth row has its columns in descending order, or (twice) its first one twice: PETSc lets
   programs make such, for all but products of matrices */
extern void HybTestMatLoose(PetscInt m, PetscBool twice, RefMat *A);
/* row r: up to width columns about r*n/m */
extern void HybTestMatProlongator(PetscInt m, PetscInt n, PetscInt width, RefMat *A);
/* one of these as an expression: HybTestMat(Banded, m, n, lower, upper) */
#define HybTestMat(shape, ...)             \
  ({                                       \
    RefMat mat_;                           \
    HybTestMat##shape(__VA_ARGS__, &mat_); \
    mat_;                                  \
  })
/* The zoo: matrix k of a list that holds every shape above, small; PETSC_FALSE behind the last one. square: only square
   ones */
extern PetscBool HybTestZoo(PetscInt k, PetscBool square, char name[64], RefMat *A);
/* reads NAME.mtx.xz of -matrices; PETSC_FALSE, and the open case skipped, when it is not there or does not fit this
   PETSc */
extern PetscBool HybTestMatRead(const char *name, RefMat *A);

/* these arenas, begun and reset; the first error */
extern PetscErrorCode HybTestArenasInit(const HybExec *, HybArena *const arenas[]); /* the last one is NULL */
#define HybTestArenas(exec, ...) HybTestArenasInit(exec, (HybArena *[]){__VA_ARGS__, NULL})
extern PetscErrorCode HybTestResetAll(HybArena *const arenas[]); /* the last one is NULL */
#define HybTestReset(...) HybTestResetAll((HybArena *[]){__VA_ARGS__, NULL})

/* between the host and where the exec computes */
/* arrays that are exactly as long as they must be */
extern PetscErrorCode HybTestUpload(HybArena *, const HybCSR *host, HybCSR *there);
/* a may be NULL there: zeros here */
extern PetscErrorCode HybTestDownload(const HybCSR *there, RefMat *host);
extern PetscErrorCode HybTestUploadArray(HybArena *, PetscCount n, size_t size, const void *host, void *ptr);
/* A with its last offset at nnz; all but its rows' beginnings stay where they are, and i[0] is not 0 */
extern PetscErrorCode HybTestUploadMoved(HybArena *, const RefMat *A, PetscCount nnz, HybCSR *);
extern PetscErrorCode HybTestDownloadArray(PetscCount n, size_t size, const void *there, void *host);

/* comparisons (each one a check). there: where the exec computes */
extern PetscBool HybTestSamePattern(const HybCSR *there, const RefMat *expected);
/* the same pattern; values within c*eps*terms*magnitude */
extern PetscBool HybTestSameMatrix(const HybCSR *there, const RefMat *expected, PetscReal c);
extern PetscBool HybTestSameInts(PetscCount n, const PetscInt *there, const PetscInt *expected);
extern PetscBool HybTestSameCounts(PetscCount n, const PetscCount *there, const PetscCount *expected);
extern PetscBool HybTestSameScalars(PetscCount n, const PetscScalar *there, const PetscScalar *expected, const PetscReal *mag, const PetscCount *terms, PetscReal c);
extern PetscBool HybTestSameBits(PetscCount n, size_t size, const void *there, const void *expected);
/* one value on the host; NaN equals NaN, an infinity equals itself */
extern PetscBool HybTestClose(PetscScalar found, PetscScalar expected, PetscReal mag, PetscCount terms, PetscReal c);

/* Runs run(ctx) with the k-th allocation failing, k = 1, 2, ... (sparser from 16 on under the emulator) until a run
   sees no failure; after each, cleanup(ctx) (may be NULL; nothing fails meanwhile) must bring the library's bytes back
   to what they were before. Allocations are those of PETSc's malloc and, on a device, all that passes the backend's
   fault hook; HybTestUpload(), HybTestDownload() and the comparisons are exempt. run takes its memory from arenas that
   cleanup resets, and may itself check results: it returns 0 only if all went well. */
extern void HybTestFaults(PetscErrorCode (*run)(void *ctx), PetscErrorCode (*cleanup)(void *ctx), void *ctx);
/* the same on several processes, on one of which something fails (of PETSc's malloc what the library asks for): run
   must give an error on all of them or, where other memory may serve instead, on none */
extern void HybTestFaultsServed(PetscMPIInt which, PetscErrorCode (*run)(void *ctx), PetscErrorCode (*cleanup)(void *ctx), void *ctx);
#endif
