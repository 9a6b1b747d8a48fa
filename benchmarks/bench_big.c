/*
  bench_big.c: one matrix of more than 2^31 entries on one card, for a PETSc of 64-bit indices, with CUDA or without:
  the 27-point operator on n^3 points, 26 on the diagonal, -1 beside it, rows at the boundary shorter, hence definite.
  With n = 440 it has 2.3e9 entries, 37 GB.

    bench_big -n 440 -mat_type TYPE [-repeat 10] [-solve 0] [-ksp_rtol 1e-5]

  The least n with more than 2^31 entries is 431. In all a card's memory has to hold about 970 bytes a row: 78 GB for n
  = 431, 83 GB for n = 440; without the solve 440 bytes. The host holds 45 GB.

  The host has the matrix once, in the arrays that it is made from, and the card once. So nothing here is compared with
  another matrix: the product with ones is known, 27 less the row's entries, to the last bit, and residuals are formed
  from the stencil alone.

  Output: one line a figure, tab-separated: n, type, what, seconds, remarks. At the end
  -mat_aijhybridgpu_view_memory prints the most that was held. With a PETSc without CUDA vectors are the host's: a
  product then takes two of them over the bus.
*/
#include <petscksp.h>
#include "bench_time.h"
#include <dlfcn.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

static PetscInt    n = 440, repeat = 10;
static const char *type;

/* the driver's, if the type has opened a card: what PETSc without CUDA cannot be asked for */
static void *Driver(const char *name)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

  return driver ? dlsym(driver, name) : NULL;
}

static PetscErrorCode Wait(void)
{
  int (*wait)(void) = (int (*)(void))Driver("cuCtxSynchronize");
  const int failed  = wait ? wait() : 0;

  PetscFunctionBeginUser;
  /* 3 and 201: nobody has used a card yet */
  PetscCheck(!failed || failed == 3 || failed == 201, PETSC_COMM_SELF, PETSC_ERR_GPU, "cuCtxSynchronize() failed: %d", failed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* appended to text: the card's memory in use, all of it, and the most that the host has held of this process */
static PetscErrorCode Memory(char text[], size_t length)
{
  int (*info)(size_t *, size_t *) = (int (*)(size_t *, size_t *))Driver("cuMemGetInfo_v2");
  size_t left, all;
  double most = 0;
  char   line[256];
  FILE  *f = fopen("/proc/self/status", "r");

  PetscFunctionBeginUser;
  while (f && fgets(line, sizeof(line), f)) {
    if (!strncmp(line, "VmHWM:", 6)) most = atof(line + 6) / 1e6; /* kB */
  }
  if (f) fclose(f);
  if (info && !info(&left, &all)) {
    PetscCall(PetscSNPrintf(line, sizeof(line), "%scard %.1f of %.1f GB in use", text[0] ? "; " : "", (double)(all - left) / 1e9, (double)all / 1e9));
    PetscCall(PetscStrlcat(text, line, length));
  }
  PetscCall(PetscSNPrintf(line, sizeof(line), "%shost at most %.1f GB", text[0] ? "; " : "", most));
  PetscCall(PetscStrlcat(text, line, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(const char *what, PetscLogDouble seconds, const char *remarks)
{
  char text[512];

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(text, remarks, sizeof(text)));
  PetscCall(Memory(text, sizeof(text)));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d\t%s\t%s\t%.4f\t%s\n", (int)n, type, what, seconds, text));
  fflush(PETSC_STDOUT);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define TIMED_TO(seconds, statement) BENCH_TIME(Wait(), seconds, statement)

/* the points next to a coordinate, itself among them */
static PetscInt Near(PetscInt x)
{
  return 1 + (x > 0) + (x < n - 1);
}

/* the operator's entries; the arrays have no room to spare */
static PetscErrorCode Arrays(PetscInt **i, PetscInt **j, PetscScalar **a)
{
  const PetscInt nnz = (3 * n - 2) * (3 * n - 2) * (3 * n - 2);
  PetscInt       k = 0, r = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n * n * n + 1, i));
  PetscCall(PetscMalloc1(nnz, j));
  PetscCall(PetscMalloc1(nnz, a));
  for (PetscInt z = 0; z < n; z++) {
    for (PetscInt y = 0; y < n; y++) {
      for (PetscInt x = 0; x < n; x++, r++) {
        const PetscInt first = x > 0 ? -1 : 0, last = x < n - 1 ? 1 : 0;

        (*i)[r] = k;
        for (PetscInt dz = z > 0 ? -1 : 0; dz <= (z < n - 1 ? 1 : 0); dz++) {
          for (PetscInt dy = y > 0 ? -1 : 0; dy <= (y < n - 1 ? 1 : 0); dy++) {
            const PetscInt middle = r + n * (dy + n * dz);

            for (PetscInt c = middle + first; c <= middle + last; c++, k++) {
              (*j)[k] = c;
              (*a)[k] = (PetscReal)(c == r ? 26 : -1);
            }
          }
        }
      }
    }
  }
  (*i)[r] = k;
  PetscCheck(k == nnz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " entries, not %" PetscInt_FMT, k, nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b is what A makes of ones? */
static PetscErrorCode CheckOnes(Vec b, const char *what)
{
  const PetscScalar *v;
  PetscInt           r = 0;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayRead(b, &v));
  for (PetscInt z = 0; z < n; z++) {
    for (PetscInt y = 0; y < n; y++) {
      for (PetscInt x = 0; x < n; x++, r++) {
        const PetscScalar sum = (PetscReal)(27 - Near(x) * Near(y) * Near(z));

        PetscCheck(v[r] == sum, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " is %g, not %g", what, r, (double)PetscRealPart(v[r]), (double)PetscRealPart(sum));
      }
    }
  }
  PetscCall(VecRestoreArrayRead(b, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* || b - A x || / || b || from the stencil, and the largest entry of x - 1 */
static PetscErrorCode TrueResidual(Vec b, Vec x, PetscReal *residual, PetscReal *error)
{
  const PetscScalar *vb, *vx;
  PetscReal          bb = 0, rr = 0, most = 0;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayRead(b, &vb));
  PetscCall(VecGetArrayRead(x, &vx));
  for (PetscInt z = 0; z < n; z++) {
    PetscReal bbz = 0, rrz = 0; /* sums of a layer: 8e7 squares in one number would lose digits */

    for (PetscInt y = 0; y < n; y++) {
      for (PetscInt i = 0; i < n; i++) {
        const PetscInt r     = i + n * (y + n * z);
        PetscScalar    t     = vb[r] - (PetscReal)27 * vx[r];
        const PetscInt first = i > 0 ? -1 : 0, last = i < n - 1 ? 1 : 0;

        for (PetscInt dz = z > 0 ? -1 : 0; dz <= (z < n - 1 ? 1 : 0); dz++)
          for (PetscInt dy = y > 0 ? -1 : 0; dy <= (y < n - 1 ? 1 : 0); dy++)
            for (PetscInt dx = first; dx <= last; dx++) t += vx[r + dx + n * (dy + n * dz)];
        bbz += PetscRealPart(vb[r] * PetscConj(vb[r]));
        rrz += PetscRealPart(t * PetscConj(t));
        most = PetscMax(most, PetscAbsScalar(vx[r] - (PetscReal)1));
      }
    }
    bb += bbz;
    rr += rrz;
  }
  PetscCall(VecRestoreArrayRead(b, &vb));
  PetscCall(VecRestoreArrayRead(x, &vx));
  *residual = PetscSqrtReal(rr / bb);
  *error    = most;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Mat A, Vec x, Vec b)
{
  PetscLogDouble best = 1e9, seconds;
  MatInfo        info;
  char           text[256];

  PetscFunctionBeginUser;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%.0f entries", info.nz_used));
  TIMED_TO(seconds, MatMult(A, x, b));
  PetscCall(CheckOnes(b, "The first product"));
  PetscCall(Report("MatMult first", seconds, text));
  PetscCall(VecSet(b, -1));
  for (PetscInt k = 0; k < repeat; k++) {
    TIMED_TO(seconds, MatMult(A, x, b));
    best = PetscMin(best, seconds);
  }
  PetscCall(CheckOnes(b, "A later product"));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%.3f ms, %.0f GB/s at %d bytes a nonzero", 1e3 * best, (double)(sizeof(PetscScalar) + sizeof(PetscInt)) * info.nz_used / best / 1e9, (int)(sizeof(PetscScalar) + sizeof(PetscInt))));
  PetscCall(Report("MatMult", best, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the options are those of bench_mat's gamg */
static PetscErrorCode Solves(Mat A, Vec x, Vec b)
{
  KSP                ksp;
  PC                 pc;
  KSPConvergedReason reason;
  PetscInt           levels, its;
  PetscReal          residual = 0, error = 0;
  PetscLogDouble     seconds;
  char               text[256];

  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-5, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(ksp));
  TIMED_TO(seconds, KSPSetUp(ksp));
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCall(PetscStrncpy(text, "rows and nonzeros:", sizeof(text)));
  for (PetscInt l = levels - 1; l >= 0; l--) {
    KSP      smoother;
    Mat      Al;
    MatInfo  info;
    PetscInt rows;
    char     one[64];

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &Al, NULL));
    PetscCall(MatGetSize(Al, &rows, NULL));
    PetscCall(MatGetInfo(Al, MAT_LOCAL, &info));
    PetscCall(PetscSNPrintf(one, sizeof(one), " %" PetscInt_FMT " %.0f%s", rows, info.nz_used, l ? "," : ""));
    PetscCall(PetscStrlcat(text, one, sizeof(text)));
  }
  PetscCall(Report("GAMG setup", seconds, text));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecSet(x, 0));
    TIMED_TO(seconds, KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve has not converged: %d", (int)reason);
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(TrueResidual(b, x, &residual, &error));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%d iterations, true relative residual %.2e, error at most %.2e", (int)its, (double)residual, (double)error));
    PetscCall(Report(k ? "second solve" : "first solve", seconds, text));
    PetscCheck(residual <= 2e-5, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve is wrong: relative residual %g", (double)residual);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat            A;
  Vec            x, b;
  char           name[64] = MATAIJ;
  PetscMPIInt    size;
  PetscInt      *i, *j;
  PetscScalar   *a;
  PetscBool      solve = PETSC_TRUE, same, memory;
  PetscLogDouble seconds;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_view_memory", "1")); /* the command line goes before it */
  PetscCall(PetscInitialize(&argc, &argv, NULL, "One matrix of more than 2^31 entries\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeat", &repeat, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-solve", &solve, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_aijhybridgpu_view_memory", &memory, NULL)); /* no option is left */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", name, sizeof(name), NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "bench_big is for one process");
  PetscCheck(n > 0 && 27 * (double)n * (double)n * (double)n < (double)PETSC_MAX_INT, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-n %d needs a PETSc with 64-bit indices", (int)n);
  type = name;
  TIMED_TO(seconds, Arrays(&i, &j, &a));
  PetscCall(Report("arrays", seconds, ""));
  TIMED_TO(seconds, MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n * n * n, n * n * n, i, j, a, &A));
  PetscCall(Report("MatCreateSeqAIJWithArrays", seconds, ""));
  PetscCall(PetscStrcmp(type, MATAIJ, &same));
  if (!same) {
    TIMED_TO(seconds, MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
    PetscCall(Report("MatConvert in place", seconds, ""));
  }
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(x, 1));
  PetscCall(Products(A, x, b));
  if (solve) PetscCall(Solves(A, x, b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(a));
  PetscCall(PetscFinalize());
  return 0;
}
