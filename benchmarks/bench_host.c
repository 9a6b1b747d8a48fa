/*
  bench_host.c: the host's products against PETSc's own MATAIJ, in one process, in interleaved repetitions; medians of
  processor time.

    bench_host [-case NAME,...] [-op aa,ptap] [-methods binned,...] [-algorithms sorted,...] [-reps 5] [-matrices DIR]

  Cases are those of hostcases.h: stencils (5pt, 7pt, 9pt, 27pt), elasticity (27-point, block size 3), rmat, random, or
  the name of a file NAME.mtx.xz in DIR. For each method a line: first call (symbolic and numeric), numeric alone, the
  peak of the arenas over 12 bytes a nonzero of C, counters. Of P^T A P, methods are fused, stages and auto, which
  chooses. Every result is compared with PETSc's before its time is printed.
*/
#include <petscksp.h>
#include "hostcases.h"
#include <aijhybridgpu/private/hybproduct.h>

static PetscErrorCode View(Mat A, HybCSR *V)
{
  const PetscInt *i, *j;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &V->m, &i, &j, &done));
  PetscCall(MatGetSize(A, NULL, &V->n));
  PetscCall(MatSeqAIJGetArray(A, &V->a));
  V->i   = (PetscInt *)i;
  V->j   = (PetscInt *)j;
  V->nnz = i[V->m];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const char *what, const HybCSR *C, Mat R)
{
  HybCSR     V;
  PetscReal  worst = 0, size = 0;
  PetscCount extra = 0;

  PetscFunctionBegin;
  PetscCall(View(R, &V));
  /* PETSc's default PtAP keeps a larger pattern now and then: what is ours must be there, what is not must be zero
     there */
  for (PetscInt r = 0; r < V.m; r++) {
    PetscInt k = C->i[r];

    for (PetscInt l = V.i[r]; l < V.i[r + 1]; l++) {
      PetscScalar ours = 0;

      if (k < C->i[r + 1] && C->j[k] == V.j[l])
        ours = C->a[k++];
      else
        extra++;
      worst = PetscMax(worst, PetscAbsScalar(ours - V.a[l]));
      size  = PetscMax(size, PetscAbsScalar(V.a[l]));
    }
    PetscCheck(k == C->i[r + 1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " of the result differs in pattern from PETSc's", what, r);
  }
  PetscCheck(worst <= 1e-12 * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the result differs from PETSc's by %g of %g", what, (double)worst, (double)size);
  if (extra) PetscCall(PetscPrintf(PETSC_COMM_SELF, "    %s: PETSc stores %ld more\n", what, (long)extra));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MAXALG  8
#define MAXREPS 64

/* the host backend, its bytes counted across all arenas */
static HybBackend counting;
static size_t     held, most;

static PetscErrorCode CountingAlloc(const HybExec *exec, HybMem mem, size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  PetscCall(HybBackendHost.alloc(exec, mem, bytes, ptr));
  held += bytes;
  most = PetscMax(most, held);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CountingFree(const HybExec *exec, HybMem mem, size_t bytes, void *ptr)
{
  PetscFunctionBegin;
  PetscCall(HybBackendHost.free(exec, mem, bytes, ptr));
  held -= bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ours(PetscBool ptap, const char *method, PetscInt width, const HybCSR *A, const HybCSR *B, double *first, double *again, double *peak, char text[], size_t length, const char *what, Mat R)
{
  HybExec    exec    = {&counting, NULL, HYB_MEM_HOST};
  HybProduct product = NULL;
  HybSpGEMM  mm;
  HybCSR     C;
  double     t0, t1, t2;
  HybArena   out = HybArenaOn(&exec);

  PetscFunctionBegin;
  counting       = HybBackendHost;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  most           = held;
  t0             = HostClock();
  if (ptap) {
    const PetscBool stages = (PetscBool)!strcmp(method, "stages");

    if (stages) counting.ptap = NULL;
    PetscCall(HybProductCreate(&exec, HYB_PRODUCT_PTAP, stages ? "auto" : method, width, &product));
    PetscCall(HybProductSymbolic(product, A, B, NULL, &out, &C));
    PetscCall(HybProductNumeric(product, A, B, NULL, &C));
  } else {
    PetscCall(HybSpGEMMInit(&mm, &exec, method, width));
    PetscCall(HybSpGEMMSymbolic(&mm, A, B, &out, &C));
    if (!C.a) {
      PetscCall(HybArenaAlloc(&out, HYB_MEM_HOST, C.nnz, sizeof(PetscScalar), &C.a));
      PetscCall(HybSpGEMMNumeric(&mm, A, B, &C));
    }
  }
  t1 = HostClock();
  if (ptap)
    PetscCall(HybProductNumeric(product, A, B, NULL, &C));
  else
    PetscCall(HybSpGEMMNumeric(&mm, A, B, &C));
  t2     = HostClock();
  *first = t1 - t0;
  *again = t2 - t1;
  /* per-row arrays apart: the offsets of C and the costs of the plan */
  *peak = ((double)most - (double)A->m * (sizeof(PetscCount) + sizeof(PetscInt))) / (12.0 * C.nnz);
  if (R) PetscCall(Compare(what, &C, R));
  text[0] = 0;
  if (ptap) {
    text[0] = '\n';
    PetscCall(HybProductDescribe(product, text + 1, length - 1));
    PetscCall(HybProductDestroy(&product));
  } else {
    if (!strcmp(method, "auto")) snprintf(text, length, " =%s", mm.method->name);
    for (PetscInt k = 0; k < mm.counters.n; k++) snprintf(text + strlen(text), length - strlen(text), " %s=%ld", mm.counters.name[k], (long)mm.counters.value[k]);
    PetscCall(HybSpGEMMDestroy(&mm));
  }
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Theirs(PetscBool ptap, const char *algorithm, Mat A, Mat B, double *first, double *again, Mat *R)
{
  double t0, t1, t2;

  PetscFunctionBegin;
  t0 = HostClock();
  PetscCall(MatProductCreate(A, B, NULL, R));
  PetscCall(MatProductSetType(*R, ptap ? MATPRODUCT_PtAP : MATPRODUCT_AB));
  PetscCall(MatProductSetAlgorithm(*R, algorithm));
  PetscCall(MatProductSetFill(*R, PETSC_DEFAULT));
  PetscCall(MatProductSetFromOptions(*R));
  PetscCall(MatProductSymbolic(*R));
  PetscCall(MatProductNumeric(*R));
  t1 = HostClock();
  PetscCall(MatProductNumeric(*R));
  t2     = HostClock();
  *first = t1 - t0;
  *again = t2 - t1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Race(const char *name, const char *op, Mat A, Mat B, PetscInt nmethods, char **methods, PetscInt nalgs, char **algs, PetscInt width, PetscInt reps)
{
  const PetscBool ptap = (PetscBool)!strcmp(op, "ptap");
  double          first[2 * MAXALG][MAXREPS], again[2 * MAXALG][MAXREPS], peak[MAXALG];
  char            text[MAXALG][1024], what[128];
  HybCSR          VA, VB;

  PetscFunctionBegin;
  PetscCall(View(A, &VA));
  PetscCall(View(B, &VB));
  for (PetscInt rep = 0; rep < reps; rep++) {
    Mat R = NULL;

    for (PetscInt k = 0; k < nalgs; k++) {
      PetscCall(MatDestroy(&R));
      PetscCall(Theirs(ptap, algs[k], A, B, &first[k][rep], &again[k][rep], &R));
    }
    for (PetscInt k = 0; k < nmethods; k++) {
      snprintf(what, sizeof(what), "%s %s %s", name, op, methods[k]);
      PetscCall(Ours(ptap, methods[k], width, &VA, &VB, &first[nalgs + k][rep], &again[nalgs + k][rep], &peak[k], text[k], sizeof(text[k]), what, R));
    }
    PetscCall(MatDestroy(&R));
  }
  for (PetscInt k = 0; k < nalgs + nmethods; k++) {
    const double  f = HostMedian(first[k], reps), g = HostMedian(again[k], reps);
    static double basef, baseg;

    if (k == 0) basef = f, baseg = g;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-18s %-5s %-6s %-12s first %9.2f ms  %5.2fx  again %9.2f ms  %5.2fx", name, op, k < nalgs ? "aij" : "ours", k < nalgs ? algs[k] : methods[k - nalgs], f, basef / f, g, baseg / g));
    if (k >= nalgs) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  mem %.2f%s", peak[k - nalgs], text[k - nalgs]));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Body(void)
{
  char     *cases[64], *methods[MAXALG], *algs[MAXALG], *ops[4];
  PetscInt  ncases = 64, nmethods = MAXALG, nalgs = MAXALG, nops = 4, reps = 5, width = 0;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-case", cases, &ncases, &set));
  if (!set) {
    static const char *all[] = {"5pt", "7pt", "9pt", "27pt", "elasticity", "rmat"};

    for (ncases = 0; ncases < 6; ncases++) PetscCall(PetscStrallocpy(all[ncases], &cases[ncases]));
  }
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-op", ops, &nops, &set));
  if (!set) {
    PetscCall(PetscStrallocpy("aa", &ops[0]));
    nops = 1;
  }
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-methods", methods, &nmethods, &set));
  if (!set) {
    PetscCall(PetscStrallocpy("binned", &methods[0]));
    nmethods = 1;
  }
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-algorithms", algs, &nalgs, &set));
  if (!set) {
    PetscCall(PetscStrallocpy("default", &algs[0]));
    nalgs = 1;
  }
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &reps, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-width", &width, NULL));
  reps = PetscMin(reps, MAXREPS);
  for (PetscInt c = 0; c < ncases; c++) {
    RefMat   R;
    PetscInt bs;
    Mat      A, P;

    HybTestBegin("%s", cases[c]);
    if (!HostCase(cases[c], &R, &bs)) continue;
    PetscCall(HostCaseMat(&R, bs, &A));
    RefMatDestroy(&R);
    for (PetscInt o = 0; o < nops; o++) {
      if (!strcmp(ops[o], "aa"))
        HybTestCall(Race(cases[c], "aa", A, A, nmethods, methods, nalgs, algs, width, reps));
      else if (!strcmp(ops[o], "ap") || !strcmp(ops[o], "ptap")) {
        PetscCall(HostProlongator(A, &P));
        HybTestCall(Race(cases[c], ops[o], A, P, nmethods, methods, nalgs, algs, width, reps));
        PetscCall(MatDestroy(&P));
      }
    }
    PetscCall(MatDestroy(&A));
  }
  for (PetscInt k = 0; k < ncases; k++) PetscCall(PetscFree(cases[k]));
  for (PetscInt k = 0; k < nmethods; k++) PetscCall(PetscFree(methods[k]));
  for (PetscInt k = 0; k < nalgs; k++) PetscCall(PetscFree(algs[k]));
  for (PetscInt k = 0; k < nops; k++) PetscCall(PetscFree(ops[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return HybTestMain(argc, argv, Body);
}
