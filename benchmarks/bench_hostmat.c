/*
  bench_hostmat.c: what a PETSc user without a GPU sees of the type: MatMult, MatMultTranspose, A*A, P^T A P with GAMG's
  own prolongator (first call and again with the same pattern) and the setup of GAMG, each beside MATAIJ in the same
  process, in interleaved repetitions; medians of processor time. Every result is compared with MATAIJ's before its time
  is printed.

    make bench [MATRICES=DIR] [BENCH_ARGS="-only 27pt -reps 5"]

  Runs with -dll_append .../libaijhybridgpu.so. One line a figure: matrix, nonzeros, operation, milliseconds of aij,
  milliseconds of the type, aij over type; with
  -csv FILE in that file too.
*/
#include "hostcases.h"

#define MAX_REPS 400

static FILE *csv;

static PetscErrorCode Report(const char *name, PetscInt64 nnz, const char *operation, double t[2][MAX_REPS], PetscInt reps)
{
  const double theirs = HostMedian(t[0], reps), ours = HostMedian(t[1], reps);

  PetscFunctionBegin;
  printf("%-20s %10lld  %-16s %10.3f %10.3f  %6.2f\n", name, (long long)nnz, operation, theirs, ours, theirs / ours);
  fflush(stdout);
  if (csv) {
    fprintf(csv, "%s,%lld,%s,%.4f,%.4f,%.3f\n", name, (long long)nnz, operation, theirs, ours, theirs / ours);
    fflush(csv);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* || y - x || <= c || x || */
static PetscErrorCode Same(const char *what, Vec x, Vec y, PetscReal c)
{
  PetscReal norm, difference;

  PetscFunctionBegin;
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(VecAXPY(y, -1.0, x));
  PetscCall(VecNorm(y, NORM_2, &difference));
  PetscCheck(difference <= c * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s differs from MATAIJ's by %g of %g", what, (double)difference, (double)norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MultOnce(Mat A[2], PetscBool transpose, PetscInt reps, double t[2][MAX_REPS])
{
  Vec x, y[2];

  PetscFunctionBegin;
  if (transpose)
    PetscCall(MatCreateVecs(A[0], &y[0], &x));
  else
    PetscCall(MatCreateVecs(A[0], &x, &y[0]));
  PetscCall(VecDuplicate(y[0], &y[1]));
  PetscCall(VecSetRandom(x, NULL));
  for (PetscInt r = -2; r < reps; r++) { /* two runs are not counted: a plan is made there */
    for (int k = 0; k < 2; k++) {
      const double begin = HostClock();

      PetscCall((transpose ? MatMultTranspose : MatMult)(A[k], x, y[k]));
      if (r >= 0) t[k][r] = HostClock() - begin;
    }
  }
  PetscCall(Same(transpose ? "MatMultTranspose" : "MatMult", y[0], y[1], 1e-12));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y[0]));
  PetscCall(VecDestroy(&y[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductOnce(Mat A[2], Mat P[2], PetscInt reps, double first[2][MAX_REPS], double again[2][MAX_REPS])
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < reps; r++) {
    Mat C[2];
    Vec x, y[2];

    for (int k = 0; k < 2; k++) {
      double begin = HostClock();

      if (P)
        PetscCall(MatPtAP(A[k], P[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[k]));
      else
        PetscCall(MatMatMult(A[k], A[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[k]));
      first[k][r] = HostClock() - begin;
      begin       = HostClock();
      if (P)
        PetscCall(MatPtAP(A[k], P[k], MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[k]));
      else
        PetscCall(MatMatMult(A[k], A[k], MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[k]));
      again[k][r] = HostClock() - begin;
    }
    PetscCall(MatCreateVecs(C[0], &x, &y[0]));
    PetscCall(VecDuplicate(y[0], &y[1]));
    PetscCall(VecSetRandom(x, NULL));
    for (int k = 0; k < 2; k++) PetscCall(MatMult(C[k], x, y[k]));
    PetscCall(Same(P ? "P^T A P" : "A*A", y[0], y[1], 1e-10));
    PetscCall(VecDestroy(&x));
    for (int k = 0; k < 2; k++) {
      PetscCall(VecDestroy(&y[k]));
      PetscCall(MatDestroy(&C[k]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpOnce(Mat A[2], PetscInt reps, double t[2][MAX_REPS])
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < reps; r++) {
    Vec x, y[2];

    PetscCall(MatCreateVecs(A[0], &x, &y[0]));
    PetscCall(VecDuplicate(y[0], &y[1]));
    PetscCall(VecSetRandom(x, NULL));
    for (int k = 0; k < 2; k++) {
      KSP    ksp;
      PC     pc;
      double begin;

      PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
      PetscCall(KSPSetOperators(ksp, A[k], A[k]));
      PetscCall(KSPSetType(ksp, KSPCG));
      PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCSetType(pc, PCGAMG));
      begin = HostClock();
      PetscCall(KSPSetUp(ksp));
      t[k][r] = HostClock() - begin;
      PetscCall(KSPSolve(ksp, x, y[k]));
      PetscCall(KSPDestroy(&ksp));
    }
    PetscCall(Same("CG+GAMG's solution", y[0], y[1], 1e-6));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y[0]));
    PetscCall(VecDestroy(&y[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const char *name, RefMat *R, PetscInt bs, const char *operations, PetscInt reps)
{
  static double first[2][MAX_REPS], again[2][MAX_REPS];
  Mat           A[2], P[2] = {NULL, NULL};

  PetscFunctionBegin;
  PetscCall(HostCaseMat(R, bs, &A[0]));
  PetscCall(MatConvert(A[0], "aijhybridgpu", MAT_INITIAL_MATRIX, &A[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetFromOptions(A[k]));
    PetscCall(MatSetOption(A[k], MAT_SYMMETRIC, (PetscBool) !!strchr(operations, 'G')));
  }
  PetscCall(MultOnce(A, PETSC_FALSE, 20 * reps, first));
  PetscCall(Report(name, R->csr.nnz, "MatMult", first, 20 * reps));
  PetscCall(MultOnce(A, PETSC_TRUE, 5 * reps, first));
  PetscCall(Report(name, R->csr.nnz, "MatMultTranspose", first, 5 * reps));
  if (strchr(operations, 'A')) {
    PetscCall(ProductOnce(A, NULL, reps, first, again));
    PetscCall(Report(name, R->csr.nnz, "A*A first", first, reps));
    PetscCall(Report(name, R->csr.nnz, "A*A again", again, reps));
  }
  if (strchr(operations, 'G')) {
    PetscCall(HostProlongator(A[0], &P[0]));
    PetscCall(MatConvert(P[0], "aijhybridgpu", MAT_INITIAL_MATRIX, &P[1]));
    PetscCall(ProductOnce(A, P, reps, first, again));
    PetscCall(Report(name, R->csr.nnz, "P^T A P first", first, reps));
    PetscCall(Report(name, R->csr.nnz, "P^T A P again", again, reps));
    PetscCall(SetUpOnce(A, reps, first));
    PetscCall(Report(name, R->csr.nnz, "GAMG setup", first, reps));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&A[k]));
    PetscCall(MatDestroy(&P[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  /* A: square it (boyd1's square has 8.7e9 nonzeros); G: symmetric and fit for multigrid */
  static const struct {
    const char *name, *operations;
  } all[] = {
    {"5pt",               "AG"},
    {"7pt",               "AG"},
    {"9pt",               "AG"},
    {"27pt",              "AG"},
    {"elasticity",        "AG"},
    {"large-5pt",         ""  },
    {"large-7pt",         ""  },
    {"large-9pt",         ""  },
    {"large-27pt",        ""  },
    {"large-elasticity",  ""  },
    {"rmat",              "A" },
    {"circuitscape_1m",   "A" },
    {"cnr-2000",          "A" },
    {"uk-2007-05_100000", "A" },
    {"Cornell5",          "A" },
    {"boyd1",             ""  }
  };
  char     only[64] = "", path[PETSC_MAX_PATH_LEN] = "";
  PetscInt reps = 3, bs;
  RefMat   R;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", path, sizeof(path), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &reps, NULL));
  reps = PetscMax(1, PetscMin(reps, MAX_REPS / 20));
  if (path[0]) {
    csv = fopen(path, "w");
    PetscCheck(csv, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot write %s", path);
    fprintf(csv, "matrix,nonzeros,operation,aij_ms,aijhybridgpu_ms,times_faster\n");
  }
  printf("%-20s %10s  %-16s %10s %10s  %6s\n", "matrix", "nonzeros", "operation", "aij, ms", "type, ms", "faster");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) {
    if (only[0] && !strstr(all[k].name, only)) continue;
    HybTestBegin("%s", all[k].name);
    if (!HostCase(all[k].name, &R, &bs)) continue;
    HybTestCall(Measure(all[k].name, &R, bs, all[k].operations, reps));
    RefMatDestroy(&R);
  }
  if (csv) fclose(csv);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
