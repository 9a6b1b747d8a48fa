/*
  bench_mat.c: what a PETSc user sees of a matrix type: MatMult, A*A first and again, KSP with GAMG (setup cold and
  warm, solves, setup again with new values), assembly from coordinates and what a matrix made that way is used for, on
  stencils on an n^3 grid (9 points: n^2), or linear elasticity on one (81 points: 27 vertices of three unknowns, block
  size 3, with the six rigid-body modes attached). Any type: -mat_type aijhybridgpu (with the plugin), aijcusparse, aij.
  Every figure is checked against the same operation of MATAIJ through random vectors before it is printed.

    [mpiexec -n RANKS] bench_mat -points 7|9|27|81 -n 96 -mat_type TYPE [-ops mult,reassemble,assembly,aa,gamg,ptap]
    [-repeat 10] [-ksp_rtol 1e-5]
    bench_mat -file MATRIX -mat_type TYPE -ops mult,aa

  MATRIX is one of PETSc's binary files; its lines say 0 points, and n is its rows. Sliced ELLPACK on a GPU is -mat_type
  seqsellcuda, with -ops mult.

  On several processes the rows are dealt out in slabs, every process waits for the others before a clock is read, and a
  figure's remarks say what crossed the bus, all processes together: what PETSc and the type log of it, which pages of
  managed memory that move by faults are not. reassemble and assembly are for one process.

  reassemble is a product with a vector after the host has written new values of the same pattern, which cross the bus
  first; and what a page-locked copy of as many takes. assembly makes another matrix by MatSetPreallocationCOO() and
  MatSetValuesCOO(), values where the type's vectors are: its first product with a vector, operations on its values,
  copies and conversions. ptap is the product of A with the finest prolongator of GAMG. The solves stop at PETSc's own
  default tolerance unless -ksp_rtol says otherwise.

  Output: one line a figure, tab-separated: points, n, type, operation, milliseconds (minimum over the repeats, the
  median for GAMG's setup again and for products of a second matrix, or the one first call), remarks.
*/
#include <petscksp.h>
#include "bench_time.h"
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice.h>
#endif

static PetscInt       points = 7, n = 96, repeat = 10;
static PetscMPIInt    size = 1;
static PetscLogDouble todevice0, tohost0;
static const char    *type;

#include "bench_problems.h"

/* what this process has logged of the bus so far */
static void Bus(PetscLogDouble *todevice, PetscLogDouble *tohost)
{
  *todevice = *tohost = 0;
#if defined(PETSC_HAVE_DEVICE)
  *todevice = petsc_ctog_sz;
  *tohost   = petsc_gtoc_sz;
#endif
}

/* since the last call, all processes together, for each of `times` operations; appended to text */
static PetscErrorCode BusSince(PetscInt times, char text[], size_t length)
{
  PetscLogDouble now[2], sum[2];
  char           more[128];

  PetscFunctionBeginUser;
  Bus(&now[0], &now[1]);
  sum[0] = now[0] - todevice0;
  sum[1] = now[1] - tohost0;
  if (size > 1) {
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
    PetscCall(PetscSNPrintf(more, sizeof(more), "%s%d processes, logged bus bytes each time: %.0f to the cards, %.0f to the host", text[0] ? "; " : "", (int)size, (double)(sum[0] / times), (double)(sum[1] / times)));
    PetscCall(PetscStrlcat(text, more, length));
  }
  todevice0 = now[0];
  tohost0   = now[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is counted from here on */
static void BusBegin(void)
{
  Bus(&todevice0, &tohost0);
}

static PetscErrorCode Report(const char *operation, PetscLogDouble seconds, const char *remarks)
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d\t%d\t%s\t%s\t%.3f\t%s\n", (int)points, (int)n, type, operation, 1e3 * seconds, remarks));
  fflush(PETSC_STDOUT);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y against A0 x, both by MATAIJ */
static PetscErrorCode CheckMult(Mat A0, Vec x, Vec y, const char *what)
{
  Vec       x0, y0;
  PetscReal error, norm;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A0, &x0, &y0));
  PetscCall(VecCopy(x, x0));
  PetscCall(MatMult(A0, x0, y0));
  PetscCall(VecCopy(y, x0));
  PetscCall(VecAXPY(x0, -1.0, y0));
  PetscCall(VecNorm(x0, NORM_2, &error));
  PetscCall(VecNorm(y0, NORM_2, &norm));
  PetscCheck(error <= BENCH_TOLERANCE * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is wrong by %g", what, (double)(error / norm));
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDestroy(&y0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* || C x - op x || / || op x || with op x, A A x or P^T A P x, by products of MATAIJ with vectors */
static PetscErrorCode CheckProduct(Mat A, Mat P, Mat C, PetscReal *error)
{
  Vec       x, y, z;
  PetscReal norm;

  PetscFunctionBeginUser;
  if (P) {
    Vec Px, APx;

    PetscCall(MatCreateVecs(P, &x, &Px));
    PetscCall(VecDuplicate(Px, &APx));
    PetscCall(VecDuplicate(x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(VecSetRandom(x, NULL));
    PetscCall(MatMult(P, x, Px));
    PetscCall(MatMult(A, Px, APx));
    PetscCall(MatMultTranspose(P, APx, y));
    PetscCall(VecDestroy(&Px));
    PetscCall(VecDestroy(&APx));
  } else {
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(VecSetRandom(x, NULL));
    PetscCall(MatMult(A, x, z));
    PetscCall(MatMult(A, z, y));
  }
  PetscCall(VecNorm(y, NORM_2, &norm));
  {
    Vec xc, yc;
    PetscCall(MatCreateVecs(C, &xc, &yc));
    PetscCall(VecCopy(x, xc));
    PetscCall(MatMult(C, xc, yc));
    PetscCall(VecCopy(yc, z));
    PetscCall(VecDestroy(&xc));
    PetscCall(VecDestroy(&yc));
  }
  PetscCall(VecAXPY(z, -1.0, y));
  PetscCall(VecNorm(z, NORM_2, error));
  *error /= norm;
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one call, the device's work included */
#define TIMED_TO(seconds, statement) BENCH_TIME(Synchronize(), seconds, statement)
#define TIMED(operation, remarks, statement)       \
  do {                                             \
    PetscLogDouble seconds_;                       \
    char           text_[512] = remarks;           \
    BusBegin();                                    \
    TIMED_TO(seconds_, statement);                 \
    PetscCall(BusSince(1, text_, sizeof(text_)));  \
    PetscCall(Report(operation, seconds_, text_)); \
  } while (0)

/* many products in a row; what the bus carried for each of them is appended to text */
static PetscErrorCode LaterMults(Mat A, Vec x, Vec y, PetscLogDouble *best, char text[], size_t length)
{
  PetscLogDouble seconds;

  PetscFunctionBeginUser;
  BusBegin();
  *best = 1e9;
  for (PetscInt k = 0; k < repeat; k++) {
    PetscLogDouble t0, t1;

    PetscCall(Synchronize());
    PetscCall(PetscTime(&t0));
    for (int m = 0; m < 20; m++) PetscCall(MatMult(A, x, y));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    seconds = (t1 - t0) / 20;
    *best   = PetscMin(*best, seconds);
  }
  PetscCall(BusSince(20 * PetscMax(1, repeat), text, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the median of what was measured, which is sorted; on a busy host one sample says little */
static PetscErrorCode ReportMedian(const char *operation, int samples, PetscReal seconds[], const char *bus)
{
  const PetscReal first = seconds[0];
  char            text[512];

  PetscFunctionBeginUser;
  PetscCall(PetscSortReal(samples, seconds));
  PetscCall(PetscSNPrintf(text, sizeof(text), "median of %d, first %.3f, least %.3f, most %.3f%s%s", samples, 1e3 * first, 1e3 * seconds[0], 1e3 * seconds[samples - 1], bus[0] ? "; " : "", bus));
  PetscCall(Report(operation, seconds[samples / 2], text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = A A, or P^T A P with P */
static PetscErrorCode ProductCall(Mat A, Mat P, MatReuse reuse, Mat *C)
{
  PetscFunctionBeginUser;
  if (P)
    PetscCall(MatPtAP(A, P, reuse, PETSC_DEFAULT, C));
  else
    PetscCall(MatMatMult(A, A, reuse, PETSC_DEFAULT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(const char *name, Mat A, Mat P, Mat A0)
{
  PetscLogDouble best = 1e9, seconds;
  PetscReal      error, second[5];
  char           operation[64], text[512], bus[256] = "";
  Mat            C, P0 = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(operation, sizeof(operation), "%s first", name));
  TIMED(operation, "", ProductCall(A, P, MAT_INITIAL_MATRIX, &C));
  /* new values each time, the last time those of A0: nothing may be left out */
  if (repeat % 2) PetscCall(MatScale(A, 2.0));
  BusBegin();
  for (PetscInt k = 0; k < repeat; k++) {
    PetscCall(MatScale(A, (k + repeat) % 2 ? 0.5 : 2.0));
    TIMED_TO(seconds, ProductCall(A, P, MAT_REUSE_MATRIX, &C));
    best = PetscMin(best, seconds);
  }
  PetscCall(BusSince(PetscMax(1, repeat), bus, sizeof(bus)));
  if (P) PetscCall(MatConvert(P, MATAIJ, MAT_INITIAL_MATRIX, &P0));
  PetscCall(CheckProduct(A0, P0, C, &error));
  PetscCall(MatDestroy(&P0));
  PetscCheck(error < BENCH_TOLERANCE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is wrong by %g", name, (double)error);
  PetscCall(PetscSNPrintf(text, sizeof(text), "relative error %.1e%s%s", (double)error, bus[0] ? "; " : "", bus));
  PetscCall(PetscSNPrintf(operation, sizeof(operation), "%s again", name));
  PetscCall(Report(operation, best, text));
  PetscCall(MatDestroy(&C));
  /* of a second matrix: pools are warm */
  bus[0] = 0;
  BusBegin();
  for (int k = 0; k < 5; k++) {
    TIMED_TO(seconds, ProductCall(A, P, MAT_INITIAL_MATRIX, &C));
    second[k] = (PetscReal)seconds;
    PetscCall(MatDestroy(&C));
  }
  PetscCall(BusSince(5, bus, sizeof(bus)));
  PetscCall(PetscSNPrintf(operation, sizeof(operation), "%s second matrix", name));
  PetscCall(ReportMedian(operation, 5, second, bus));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the least of several times that an operation on values takes, and the bytes that it must move a nonzero */
#define VALUES(operation, bytes, statement)                                                                                   \
  do {                                                                                                                        \
    PetscLogDouble best_ = 1e9, seconds_;                                                                                     \
    for (PetscInt k_ = 0; k_ <= repeat; k_++) {                                                                               \
      TIMED_TO(seconds_, statement);                                                                                          \
      best_ = PetscMin(best_, seconds_);                                                                                      \
    }                                                                                                                         \
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.0f GB/s at %d bytes a nonzero", (bytes)*nnz / best_ / 1e9, (int)(bytes))); \
    PetscCall(Report(operation, best_, text));                                                                                \
  } while (0)

/* the first of its kind, and the second, for which the pools are warm */
#define MAKES(operation, M, statement)                                                                                     \
  do {                                                                                                                     \
    PetscLogDouble first_, seconds_;                                                                                       \
    TIMED_TO(first_, statement);                                                                                           \
    PetscCall(MatDestroy(&M));                                                                                             \
    TIMED_TO(seconds_, statement);                                                                                         \
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.1f ns a row, the first %.3f ms", 1e9 * seconds_ / rows, 1e3 * first_)); \
    PetscCall(Report(operation, seconds_, text));                                                                          \
  } while (0)

/* B, of the entries of A0, to MATAIJ, and with vectors on a card to MATAIJCUSPARSE and back */
static PetscErrorCode Conversions(Mat A0, Mat B, Vec x, Vec y)
{
  const PetscInt rows = Vertices();
  Mat            C;
  PetscReal      error;
  char           text[256];

  PetscFunctionBeginUser;
  MAKES("MatConvert to aij", C, MatConvert(B, MATAIJ, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatAXPY(C, -1.0, A0, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &error));
  PetscCheck(error == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatConvert to aij is wrong by %g", (double)error);
  PetscCall(MatDestroy(&C));
#if defined(PETSC_HAVE_CUDA)
  {
    PetscBool host, theirs, card;
    MatType   own;
    Mat       T;

    PetscCall(PetscStrcmp(type, MATAIJ, &host));
    PetscCall(PetscStrcmp(type, MATAIJCUSPARSE, &theirs));
    PetscCall(PetscObjectTypeCompare((PetscObject)x, VECSEQCUDA, &card));
    if (host || theirs || !card) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatGetType(B, &own));
    MAKES("MatConvert to aijcusparse", C, MatConvert(B, MATSEQAIJCUSPARSE, MAT_INITIAL_MATRIX, &C));
    MAKES("MatConvert from aijcusparse", T, MatConvert(C, own, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatMult(T, x, y));
    PetscCall(CheckMult(A0, x, y, "MatConvert from aijcusparse"));
    PetscCall(MatDestroy(&T));
    PetscCall(MatDestroy(&C));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix from coordinates on the host and values where the type's vectors are, and what is done with it */
static PetscErrorCode Assembly(Mat A0, Vec x, Vec y)
{
  const PetscInt     rows = Vertices();
  PetscInt           N, *ci, *cj;
  const PetscInt    *i, *j;
  const PetscScalar *a, *va;
  PetscScalar       *v;
  PetscMemType       mtype;
  PetscBool          done;
  PetscLogDouble     first, second, best;
  PetscCount         nnz;
  VecType            vtype;
  Vec                values;
  Mat                B, C;
  char               text[256];

  PetscFunctionBeginUser;
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "assembly is for one process");
  PetscCall(MatGetRowIJ(A0, 0, PETSC_FALSE, PETSC_FALSE, &N, &i, &j, &done));
  nnz = i[rows];
  PetscCall(PetscMalloc2(nnz, &ci, nnz, &cj)); /* the function may change them */
  PetscCall(PetscArraycpy(cj, j, nnz));
  for (PetscInt r = 0; r < rows; r++)
    for (PetscInt e = i[r]; e < i[r + 1]; e++) ci[e] = r;
  PetscCall(VecGetType(x, &vtype));
  PetscCall(VecCreate(PETSC_COMM_SELF, &values));
  PetscCall(VecSetSizes(values, (PetscInt)nnz, (PetscInt)nnz));
  PetscCall(VecSetType(values, vtype));
  PetscCall(MatSeqAIJGetArrayRead(A0, &a));
  PetscCall(VecGetArrayWrite(values, &v));
  PetscCall(PetscArraycpy(v, a, nnz));
  PetscCall(VecRestoreArrayWrite(values, &v));
  PetscCall(MatSeqAIJRestoreArrayRead(A0, &a));
  PetscCall(MatCreate(PETSC_COMM_SELF, &B));
  PetscCall(MatSetSizes(B, rows, rows, rows, rows));
  PetscCall(MatSetType(B, type));
  TIMED("MatSetPreallocationCOO", "", MatSetPreallocationCOO(B, nnz, ci, cj));
  PetscCall(PetscFree2(ci, cj));
  PetscCall(MatRestoreRowIJ(A0, 0, PETSC_FALSE, PETSC_FALSE, &N, &i, &j, &done));
  PetscCall(VecGetArrayReadAndMemType(values, &va, &mtype));
  TIMED("MatSetValuesCOO first", "", MatSetValuesCOO(B, va, INSERT_VALUES));
  PetscCall(MatMult(A0, x, y)); /* y has its memory, and so has what a first kernel needs */
  TIMED_TO(first, MatMult(B, x, y));
  TIMED_TO(second, MatMult(B, x, y));
  PetscCall(CheckMult(A0, x, y, "MatMult after assembly"));
  text[0] = 0;
  PetscCall(LaterMults(B, x, y, &best, text, sizeof(text)));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%.1f later ones of %.3f ms, the second %.3f ms", first / best, 1e3 * best, 1e3 * second));
  PetscCall(Report("MatMult first after assembly", first, text));
  /* two lists of PetscCount, the value, the entry */
  VALUES("MatSetValuesCOO again", 32, MatSetValuesCOO(B, va, INSERT_VALUES));
  PetscCall(VecRestoreArrayReadAndMemType(values, &va));
  PetscCall(VecDestroy(&values));
  PetscCall(MatMult(B, x, y));
  PetscCall(CheckMult(A0, x, y, "MatSetValuesCOO"));
  MAKES("MatDuplicate", C, MatDuplicate(B, MAT_COPY_VALUES, &C));
  TIMED("MatMult first of the duplicate", "kernels loaded, pools warm", MatMult(C, x, y));
  VALUES("MatScale", 16, MatScale(C, k_ % 2 ? 2.0 : 0.5));
  VALUES("MatCopy same", 16, MatCopy(B, C, SAME_NONZERO_PATTERN));
  VALUES("MatAXPY same", 24, MatAXPY(C, k_ % 2 ? -1.0 : 1.0, B, SAME_NONZERO_PATTERN));
  PetscCall(MatCopy(B, C, SAME_NONZERO_PATTERN));
  PetscCall(MatMult(C, x, y));
  PetscCall(CheckMult(A0, x, y, "MatCopy"));
  PetscCall(MatDestroy(&C));
  MAKES("MatTranspose", C, MatTranspose(B, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatMult(C, x, y)); /* A is symmetric */
  PetscCall(CheckMult(A0, x, y, "MatTranspose"));
  PetscCall(MatDestroy(&C));
  PetscCall(Conversions(A0, B, x, y));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of the same pattern by the host, as at each step of many programs: what the next product costs. Beside it,
   in turn with it, what it costs to send as many values of page-locked memory that the host has just written: no way
   over the bus is faster. A type may move values that are sent again and again to memory of its own, which the array's
   address tells: the figure is of the products after that, those before and the one that it happened in are in the
   remarks. */
static PetscErrorCode Reassemble(Mat A, Mat A0, Vec x, Vec y, PetscCount nnz)
{
  PetscLogDouble     seconds, best = 1e9, before = 0, move = 0, last = 0, copy = 1e9;
  PetscInt           moved = 0;
  const PetscScalar *where = NULL;
  char               text[512];
  Vec                locked = NULL;

  PetscFunctionBeginUser;
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "reassemble is for one process");
#if defined(PETSC_HAVE_CUDA)
  if (PetscDeviceInitialized(PETSC_DEVICE_CUDA)) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &locked));
    PetscCall(VecSetPinnedMemoryMin(locked, 0));
    PetscCall(VecSetSizes(locked, (PetscInt)nnz, (PetscInt)nnz));
    PetscCall(VecSetType(locked, VECSEQCUDA));
  }
#endif
  PetscCall(MatMult(A, x, y));
  /* an even number: the last values are the first ones */
  for (PetscInt k = 0; k < 2 * (13 + (PetscMax(1, repeat) + 1) / 2); k++) {
    PetscScalar *a;

    PetscCall(MatSeqAIJGetArray(A, &a));
    if (where && where != a) {
      moved  = k;
      move   = last;
      before = best;
      best   = 1e9;
    }
    where = a;
    for (PetscCount e = 0; e < nnz; e++) a[e] *= k % 2 ? 0.5 : 2.0;
    PetscCall(MatSeqAIJRestoreArray(A, &a));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    TIMED_TO(last, MatMult(A, x, y));
    best = PetscMin(best, last);
    if (locked) {
      const PetscScalar *there;
      PetscMemType       mtype;

      PetscCall(VecGetArrayWrite(locked, &a));
      for (PetscCount e = 0; e < nnz; e++) a[e] = (PetscScalar)(e + k);
      PetscCall(VecRestoreArrayWrite(locked, &a));
      TIMED_TO(seconds, VecGetArrayReadAndMemType(locked, &there, &mtype));
      PetscCheck(PetscMemTypeDevice(mtype), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The page-locked vector stayed on the host");
      PetscCall(VecRestoreArrayReadAndMemType(locked, &there));
      copy = PetscMin(copy, seconds);
    }
  }
  PetscCall(VecDestroy(&locked));
  PetscCall(CheckMult(A0, x, y, "MatMult after new values"));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%.1f GB/s of values over the bus", 8 * (double)nnz / best / 1e9));
  if (moved) {
    size_t used;

    PetscCall(PetscStrlen(text, &used));
    PetscCall(PetscSNPrintf(text + used, sizeof(text) - used, "; the first %" PetscInt_FMT " times %.3f ms at least, the one after which the values are elsewhere %.3f", moved - 1, 1e3 * before, 1e3 * move));
  }
  PetscCall(Report("MatMult after host values", best, text));
  if (copy < 1e9) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.1f GB/s; the product after new values takes %.2f times as long", 8 * (double)nnz / copy / 1e9, best / copy));
    PetscCall(Report("page-locked copy of values", copy, text));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a solver as GAMG's users make it */
static PetscErrorCode MultigridCreate(Mat A, KSP *ksp, PC *pc)
{
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPGetPC(*ksp, pc));
  PetscCall(PCSetType(*pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the hierarchy, by which runs can be compared */
static PetscErrorCode MultigridDescribe(PC pc, char text[], size_t length)
{
  PetscInt levels;

  PetscFunctionBeginUser;
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCall(PetscStrncpy(text, "rows and nonzeros:", length));
  for (PetscInt l = levels - 1; l >= 0; l--) {
    KSP      smoother;
    Mat      Al;
    MatInfo  info;
    PetscInt rows;
    char     one[64];

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &Al, NULL));
    PetscCall(MatGetSize(Al, &rows, NULL));
    PetscCall(MatGetInfo(Al, MAT_GLOBAL_SUM, &info));
    PetscCall(PetscSNPrintf(one, sizeof(one), " %d %.0f%s", (int)rows, info.nz_used, l ? "," : ""));
    PetscCall(PetscStrlcat(text, one, length));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the true residual by MATAIJ */
static PetscErrorCode CheckSolve(Mat A0, Vec x, Vec y, PetscReal rtol)
{
  Vec       x0, y0, r0;
  PetscReal rn, bn;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A0, &x0, &y0));
  PetscCall(VecDuplicate(x0, &r0));
  PetscCall(VecCopy(y, y0));
  PetscCall(VecCopy(x, x0));
  PetscCall(MatMult(A0, y0, r0));
  PetscCall(VecAXPY(r0, -1.0, x0));
  PetscCall(VecNorm(r0, NORM_2, &rn));
  PetscCall(VecNorm(x0, NORM_2, &bn));
  /* rtol is that of the preconditioned residual */
  PetscCheck(rn < 1e3 * rtol * bn, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve is wrong: relative residual %g", (double)(rn / bn));
  PetscCall(VecDestroy(&x0));
  PetscCall(VecDestroy(&y0));
  PetscCall(VecDestroy(&r0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* setups whose matrix has new values on the same pattern */
static PetscErrorCode MultigridAgain(KSP ksp, Mat A)
{
  PetscLogDouble best;
  PetscReal      again[64];
  const int      samples = (int)PetscMin(64, 1 + 2 * repeat);

  PetscFunctionBeginUser;
  for (int k = 0; k < samples; k++) {
    PetscCall(MatScale(A, k % 2 ? 1 / 1.5 : 1.5));
    PetscCall(KSPSetOperators(ksp, A, A));
    TIMED_TO(best, KSPSetUp(ksp));
    again[k] = (PetscReal)best;
  }
  PetscCall(ReportMedian("GAMG setup again", samples, again, ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CG with GAMG: the process's first setup, two solves, another KSP's setup and solve on the same matrix ("warm"), setup
   again; the product with its finest prolongator */
static PetscErrorCode Multigrid(Mat A, Mat A0, Vec x, Vec y, PetscBool ptap)
{
  KSP            ksp;
  PC             pc;
  PetscInt       its;
  PetscReal      rtol;
  PetscLogDouble best;
  PetscLogStage  stage[2];
  char           text[512];

  PetscFunctionBeginUser;
  PetscCall(PetscLogStageRegister("GAMG setup", &stage[0])); /* what -log_view tells apart */
  PetscCall(PetscLogStageRegister("GAMG setup warm", &stage[1]));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  for (int warm = 0; warm < 2; warm++) {
    PetscCall(MultigridCreate(A, &ksp, &pc));
    PetscCall(KSPGetTolerances(ksp, &rtol, NULL, NULL, NULL));
    PetscCall(PetscLogStagePush(stage[warm]));
    TIMED_TO(best, KSPSetUp(ksp));
    PetscCall(PetscLogStagePop());
    PetscCall(MultigridDescribe(pc, text, sizeof(text)));
    PetscCall(Report(warm ? "GAMG setup warm" : "GAMG setup", best, text));
    for (int k = 0; k < 2; k++) {
      BusBegin();
      TIMED_TO(best, KSPSolve(ksp, x, y));
      PetscCall(KSPGetIterationNumber(ksp, &its));
      PetscCall(PetscSNPrintf(text, sizeof(text), "%d iterations to %g", (int)its, (double)rtol));
      PetscCall(BusSince(1, text, sizeof(text)));
      PetscCall(Report(warm ? (k ? "second solve warm" : "first solve warm") : k ? "second solve"
                                                                                 : "first solve",
                       best, text));
    }
    PetscCall(CheckSolve(A0, x, y, rtol));
    if (!warm) PetscCall(KSPDestroy(&ksp));
  }
  if (ptap) {
    PetscInt levels;
    Mat      P;

    PetscCall(PCMGGetLevels(pc, &levels));
    PetscCall(PCMGGetInterpolation(pc, levels - 1, &P));
    PetscCall(Product("MatPtAP", A, P, A0));
  }
  PetscCall(MultigridAgain(ksp, A));
  PetscCall(KSPSolve(ksp, x, y));
  TIMED("solve after setup again", "", KSPSolve(ksp, x, y));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Load(const char *file, Mat *A)
{
  PetscViewer viewer;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to sliced ELLPACK on a GPU there is a way from that on the host alone */
static PetscErrorCode Convert(Mat A0, Mat *A)
{
  PetscBool sell;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(type, "seqsellcuda", &sell));
  PetscCall(MatConvert(A0, sell ? MATSEQSELL : type, MAT_INITIAL_MATRIX, A));
  if (sell) PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat            A0, A;
  Vec            x, y;
  char           ops[256] = "mult,aa,gamg", typename[64] = MATAIJ, file[PETSC_MAX_PATH_LEN] = "", text[512], bus[256] = "";
  PetscLogDouble best;
  MatInfo        info;
  PetscInt       rows;
  char          *found;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "A matrix type as a PETSc user sees it\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &points, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeat", &repeat, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ops", ops, sizeof(ops), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", typename, sizeof(typename), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-file", file, sizeof(file), NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(points == 7 || points == 9 || points == 27 || points == 81, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-points %d is not 7, 9, 27 or 81", (int)points);
  type = typename;
  if (file[0]) {
    PetscCall(Load(file, &A0));
    PetscCall(MatGetSize(A0, &n, NULL));
    points = 0;
  } else
    PetscCall(points == 81 ? Elasticity(&A0) : Stencil(&A0));
  PetscCall(MatGetInfo(A0, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetSize(A0, &rows, NULL));
  PetscCall(Convert(A0, &A));
  PetscCall(MatSetFromOptions(A));
  if (points == 81) PetscCall(AttachRigidBodyModes(A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(PetscStrstr(ops, "mult", &found));
  if (found) {
    TIMED("MatMult first", "", MatMult(A, x, y));
    TIMED("MatMult second", "", MatMult(A, x, y));
    PetscCall(LaterMults(A, x, y, &best, bus, sizeof(bus)));
    PetscCall(CheckMult(A0, x, y, "MatMult"));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.0f GB/s at 12 bytes a nonzero and 20 a row%s%s", (12 * info.nz_used + 20.0 * rows) / best / 1e9, bus[0] ? "; " : "", bus));
    PetscCall(Report("MatMult", best, text));
  }
  PetscCall(PetscStrstr(ops, "reassemble", &found));
  if (found) PetscCall(Reassemble(A, A0, x, y, (PetscCount)info.nz_used));
  PetscCall(PetscStrstr(ops, "assembly", &found));
  if (found) PetscCall(Assembly(A0, x, y));
  PetscCall(PetscStrstr(ops, "aa", &found));
  if (found) PetscCall(Product("A*A", A, NULL, A0));
  PetscCall(PetscStrstr(ops, "gamg", &found));
  if (found) {
    PetscCall(PetscStrstr(ops, "ptap", &found));
    PetscCall(Multigrid(A, A0, x, y, (PetscBool)(found != NULL)));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&A0));
  PetscCall(PetscFinalize());
  return 0;
}
