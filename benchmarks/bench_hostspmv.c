/*
  bench_hostspmv.c: the host's SpMV methods beside PETSc's MatMult with MATAIJ (inodes included), in one process, in interleaved repetitions;
  medians of the thread's processor time. Every result is compared with PETSc's before its time is printed.

    make bench-spmv-host [BENCH_SPMV_HOST_ARGS="-reps 40 -only 27-point"] [MATRICES=DIR]

  One line a matrix, as a table in Markdown: milliseconds of aij and of each method, how many times faster than aij each is, and
  the bytes a second of the first method (values, columns, offsets, both vectors, counted once).
*/
#include <petscmat.h>
#include <hybtest.h>
#include <aijhybridgpu/private/hybspmv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_METHODS 8
#define MAX_REPS    400

static double Clock(void)
{
  struct timespec t;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int Compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

static double Median(double *t, PetscInt n)
{
  qsort(t, (size_t)n, sizeof(double), Compare);
  return t[n / 2];
}

static void Blocks(PetscInt points, PetscInt n, PetscInt bs, RefMat *A)
{
  RefMat P;

  HybTestMatStencil(points, n, n, n, &P);
  HybTestMatBlock(&P, bs, A);
  RefMatDestroy(&P);
}

/* case k; PETSC_FALSE behind the last one. *there: the matrix could be made */
static PetscBool Case(PetscInt k, char name[64], RefMat *A, PetscBool make, PetscBool *there)
{
  static const char *const files[] = {"boyd1", "hand_elasticity", "uk-2007-05_100000", "cnr-2000", "circuitscape_1m", "Cornell5", "G2_circuit"};

  *there = PETSC_TRUE;
#define CASE(number, text, call) \
  case number: \
    snprintf(name, 64, "%s", text); \
    if (make) call; \
    return PETSC_TRUE
  switch (k) {
    CASE(0, "5-point 1000^2", HybTestMatStencil(5, 1000, 1000, 1, A));
    CASE(1, "7-point 80^3", HybTestMatStencil(7, 80, 80, 80, A));
    CASE(2, "9-point 700^2", HybTestMatStencil(9, 700, 700, 1, A));
    CASE(3, "27-point 48^3", HybTestMatStencil(27, 48, 48, 48, A));
    CASE(4, "27-point 80^3", HybTestMatStencil(27, 80, 80, 80, A));
    CASE(5, "7-point 40^3, blocks of 3", Blocks(7, 40, 3, A));
    CASE(6, "27-point 20^3, blocks of 3", Blocks(27, 20, 3, A));
    CASE(7, "27-point 36^3, blocks of 3", Blocks(27, 36, 3, A));
    CASE(8, "power law, 200k rows", HybTestMatPowerLaw(200000, 200000, 10, A));
    CASE(9, "prolongator, 1M x 125k", HybTestMatProlongator(1000000, 125000, 4, A));
    CASE(10, "19 of 20 rows empty, 1M rows", HybTestMatRandom(1000000, 1000000, 7, 7, A); for (PetscInt q = 0; q < 19; q++) HybTestMatEmptyRows(A, q, 1000000, 20));
  default:
    k -= 11;
    if (k >= (PetscInt)PETSC_STATIC_ARRAY_LENGTH(files)) return PETSC_FALSE;
    snprintf(name, 64, "%s", files[k]);
    if (make) *there = HybTestMatRead(files[k], A);
    return PETSC_TRUE;
  }
#undef CASE
}

static PetscErrorCode Measure(const char *name, RefMat *R, PetscInt reps)
{
  static double                     times[MAX_METHODS + 1][MAX_REPS];
  const HybSpMVMethod *const *const table = HybTestExec()->backend->spmv;
  HybSpMV                           mv[MAX_METHODS];
  PetscInt                          n = 0;
  Mat                               A, L;
  Vec                               x, y, z;
  const PetscScalar                *xa;
  PetscScalar                      *za;
  PetscReal                         difference, size;
  double                            aij, first = 0;

  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, R->csr.m, R->csr.n, R->csr.i, R->csr.j, R->csr.a, &L));
  PetscCall(MatDuplicate(L, MAT_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(y, NORM_INFINITY, &size));
  for (; table[n] && n < MAX_METHODS; n++) {
    PetscCall(HybSpMVInit(&mv[n], HybTestExec(), table[n]->name, 1));
    PetscCall(HybSpMVSetUp(&mv[n], &R->csr));
  }
  PetscCall(VecGetArrayRead(x, &xa));
  for (PetscInt r = 0; r < reps; r++) {
    double t = Clock();

    PetscCall(MatMult(A, x, y));
    times[MAX_METHODS][r] = Clock() - t;
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(VecGetArrayWrite(z, &za));
      t = Clock();
      PetscCall(HybSpMVApply(&mv[k], &R->csr, xa, HYB_SPMV_SET, NULL, za));
      times[k][r] = Clock() - t;
      PetscCall(VecRestoreArrayWrite(z, &za));
      if (r) continue;
      PetscCall(VecAXPY(z, -1.0, y));
      PetscCall(VecNorm(z, NORM_INFINITY, &difference));
      PetscCheck(difference <= 1e-10 * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s differs from MatMult() by %g", name, table[k]->name, (double)difference);
    }
  }
  PetscCall(VecRestoreArrayRead(x, &xa));
  aij = Median(times[MAX_METHODS], reps);
  printf("| %s | %td | %.3f |", name, R->csr.nnz, aij);
  for (PetscInt k = 0; k < n; k++) {
    const double t = Median(times[k], reps);

    if (!k) first = t;
    printf(" %.3f | %.2f |", t, aij / t);
    PetscCall(HybSpMVDestroy(&mv[k]));
  }
  printf(" %.1f |\n", ((double)R->csr.nnz * (sizeof(PetscScalar) + sizeof(PetscInt)) + (double)R->csr.m * (sizeof(PetscScalar) + sizeof(PetscInt)) + (double)R->csr.n * sizeof(PetscScalar)) / first * 1e-6);
  fflush(stdout);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&L));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  const HybSpMVMethod *const *table = HybTestExec()->backend->spmv;
  char                        name[64], only[64] = "";
  PetscInt                    reps = 40;
  RefMat                      R;
  PetscBool                   there;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &reps, NULL));
  reps = PetscMax(1, PetscMin(reps, MAX_REPS));
  printf("| matrix | nonzeros | aij, ms |");
  for (PetscInt k = 0; table[k] && k < MAX_METHODS; k++) printf(" %s, ms | times faster |", table[k]->name);
  printf(" %s, GB/s |\n|---|---|---|", table[0]->name);
  for (PetscInt k = 0; table[k] && k < MAX_METHODS; k++) printf("---|---|");
  printf("---|\n");
  HybTestBegin("the benchmark");
  for (PetscInt k = 0; Case(k, name, &R, PETSC_FALSE, &there); k++) {
    if (only[0] && !strstr(name, only)) continue;
    (void)Case(k, name, &R, PETSC_TRUE, &there);
    if (!there) continue;
    HybTestCall(Measure(name, &R, reps));
    RefMatDestroy(&R);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
