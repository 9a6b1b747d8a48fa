/*
  bench_hostspmv.c: the host's SpMV methods beside PETSc's MatMult with MATAIJ (inodes included), in one process, in
  interleaved repetitions; medians of processor time. Every result is compared with PETSc's before its time is printed.

    make bench-spmv-host [BENCH_SPMV_HOST_ARGS="-reps 40 -only 27pt"] [MATRICES=DIR]

  One line a matrix, as a table in Markdown: milliseconds of aij and of each method, how many times faster than aij each
  is, and the bytes a second of the first method (values, columns, offsets, both vectors, counted once).
*/
#include "hostcases.h"
#include <aijhybridgpu/private/hybspmv.h>

#define MAX_METHODS 8
#define MAX_REPS    400

static PetscErrorCode Measure(const char *name, RefMat *R, PetscInt bs, PetscInt reps)
{
  static double                     times[MAX_METHODS + 1][MAX_REPS];
  const HybSpMVMethod *const *const table = HybTestExec()->backend->spmv;
  HybSpMV                           mv[MAX_METHODS];
  PetscInt                          n = 0;
  Mat                               A;
  Vec                               x, y, z;
  const PetscScalar                *xa;
  PetscScalar                      *za;
  PetscReal                         difference, size;
  double                            aij, first = 0;

  PetscFunctionBegin;
  PetscCall(HostCaseMat(R, bs, &A));
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
    double t = HostClock();

    PetscCall(MatMult(A, x, y));
    times[MAX_METHODS][r] = HostClock() - t;
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(VecGetArrayWrite(z, &za));
      t = HostClock();
      PetscCall(HybSpMVApply(&mv[k], &R->csr, xa, HYB_SPMV_SET, NULL, za));
      times[k][r] = HostClock() - t;
      PetscCall(VecRestoreArrayWrite(z, &za));
      if (r) continue;
      PetscCall(VecAXPY(z, -1.0, y));
      PetscCall(VecNorm(z, NORM_INFINITY, &difference));
      PetscCheck(difference <= 1e-10 * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s differs from MatMult() by %g", name, table[k]->name, (double)difference);
    }
  }
  PetscCall(VecRestoreArrayRead(x, &xa));
  aij = HostMedian(times[MAX_METHODS], reps);
  printf("| %s | %td | %.3f |", name, R->csr.nnz, aij);
  for (PetscInt k = 0; k < n; k++) {
    const double t = HostMedian(times[k], reps);

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
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  static const char *const    all[]    = {"5pt", "large-5pt", "7pt", "large-7pt", "9pt", "large-9pt", "27pt", "large-27pt", "elasticity", "large-elasticity", "power-law", "prolongator", "empty-rows", "boyd1", "hand_elasticity", "uk-2007-05_100000", "cnr-2000", "circuitscape_1m", "Cornell5", "G2_circuit"};
  const HybSpMVMethod *const *table    = HybTestExec()->backend->spmv;
  char                        only[64] = "";
  PetscInt                    reps     = 40, bs;
  RefMat                      R;

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
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(all); k++) {
    if (only[0] && !strstr(all[k], only)) continue;
    if (!HostCase(all[k], &R, &bs)) continue;
    HybTestCall(Measure(all[k], &R, bs, reps));
    RefMatDestroy(&R);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
