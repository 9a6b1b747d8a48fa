/*
  hostcases.h: the matrices of the host's benchmarks, by name, made with the tests' generators
  (tests/harness/hybtest.h). Values are those of a Laplacian, or of something like elasticity where a node has several
  unknowns, so that multigrid takes them; random and real matrices keep theirs.
*/
#ifndef AIJHYBRIDGPU_BENCHMARKS_HOSTCASES_H
#define AIJHYBRIDGPU_BENCHMARKS_HOSTCASES_H
#include <petscksp.h>
#include <hybtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* the time of this process, in milliseconds, not of whatever else the machine does */
static inline double HostClock(void)
{
  struct timespec t;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static inline int HostCompare_Private(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static inline double HostMedian(double *t, PetscInt n)
{
  qsort(t, (size_t)n, sizeof(double), HostCompare_Private);
  return t[n / 2];
}

static inline void HostCaseGrid_Private(PetscInt points, PetscInt nx, PetscInt ny, PetscInt nz, PetscInt bs, RefMat *A)
{
  RefMat P;

  HybTestMatStencil(points, nx, ny, nz, bs > 1 ? &P : A);
  if (bs > 1) {
    HybTestMatBlock(&P, bs, A);
    RefMatDestroy(&P);
  }
  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      const PetscInt  c    = A->csr.j[k];
      const PetscReal same = r % bs == c % bs ? 1.0 : 0.1;

      A->csr.a[k] = r == c ? points : (r / bs == c / bs ? 0.2 : -same / 2);
    }
  }
}

/* the quadrants' probabilities are those of Graph500 (skewed), else even: a uniformly random matrix */
static inline void HostCaseRMat_Private(PetscInt scale, PetscInt degree, PetscBool skewed, RefMat *A)
{
  const PetscInt   n  = (PetscInt)1 << scale;
  const PetscCount e  = (PetscCount)n * degree;
  PetscInt        *ci = (PetscInt *)RefAlloc(e, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(e, sizeof(PetscInt));
  PetscScalar     *v = (PetscScalar *)RefAlloc(e, sizeof(PetscScalar));

  for (PetscCount k = 0; k < e; k++) {
    for (PetscInt b = 0; b < scale; b++) {
      const PetscReal u = HybTestRandomReal();

      ci[k] = 2 * ci[k] + (u >= (skewed ? 0.76 : 0.5));
      cj[k] = 2 * cj[k] + (skewed ? (u >= 0.57 && u < 0.76) || u >= 0.95 : (u >= 0.25 && u < 0.5) || u >= 0.75);
    }
    v[k] = 1.0 + (PetscReal)(k % 7);
  }
  RefCOO(n, n, e, ci, cj, v, A);
  free(ci);
  free(cj);
  free(v);
}

/* name: one of the generated ones below, "large-" before a stencil for one too large for the caches, or NAME of
   NAME.mtx.xz in -matrices. *bs: its block size.
   PETSC_FALSE: not there, which has been said */
static inline PetscBool HostCase(const char *name, RefMat *A, PetscInt *bs)
{
  const PetscBool large = (PetscBool)!strncmp(name, "large-", 6);
  const char     *stem  = large ? name + 6 : name;

  *bs = 1;
  if (!strcmp(stem, "5pt"))
    HostCaseGrid_Private(5, large ? 1400 : 500, large ? 1400 : 500, 1, 1, A);
  else if (!strcmp(stem, "9pt"))
    HostCaseGrid_Private(9, large ? 1000 : 400, large ? 1000 : 400, 1, 1, A);
  else if (!strcmp(stem, "7pt"))
    HostCaseGrid_Private(7, large ? 120 : 60, large ? 120 : 60, large ? 120 : 60, 1, A);
  else if (!strcmp(stem, "27pt"))
    HostCaseGrid_Private(27, large ? 80 : 48, large ? 80 : 48, large ? 80 : 48, 1, A);
  else if (!strcmp(stem, "elasticity"))
    HostCaseGrid_Private(27, large ? 36 : 24, large ? 36 : 24, large ? 36 : 24, *bs = 3, A);
  else if (!strcmp(name, "rmat"))
    HostCaseRMat_Private(16, 16, PETSC_TRUE, A);
  else if (!strcmp(name, "random"))
    HostCaseRMat_Private(21, 4, PETSC_FALSE, A);
  else if (!strcmp(name, "power-law"))
    HybTestMatPowerLaw(200000, 200000, 10, A);
  else if (!strcmp(name, "prolongator"))
    HybTestMatProlongator(1000000, 125000, 4, A);
  else if (!strcmp(name, "empty-rows")) {
    HybTestMatRandom(1000000, 1000000, 7, 7, A);
    for (PetscInt q = 0; q < 19; q++) HybTestMatEmptyRows(A, q, 1000000, 20); /* 19 of 20 */
  } else
    return HybTestMatRead(name, A);
  return PETSC_TRUE;
}

/* as MATAIJ of its own arrays */
static inline PetscErrorCode HostCaseMat(const RefMat *R, PetscInt bs, Mat *A)
{
  Mat L;

  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, R->csr.m, R->csr.n, R->csr.i, R->csr.j, R->csr.a, &L));
  PetscCall(MatSetBlockSize(L, bs));
  PetscCall(MatDuplicate(L, MAT_COPY_VALUES, A));
  PetscCall(MatDestroy(&L));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the finest prolongator of PCGAMG with its defaults */
static inline PetscErrorCode HostProlongator(Mat A, Mat *P)
{
  PC       pc;
  PetscInt levels;
  Mat      interpolation;

  PetscFunctionBegin;
  PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(PCSetUp(pc));
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCall(PCMGGetInterpolation(pc, levels - 1, &interpolation));
  PetscCall(MatDuplicate(interpolation, MAT_COPY_VALUES, P));
  PetscCall(PCDestroy(&pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
