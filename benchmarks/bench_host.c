/*
  bench_host.c: the host's products against PETSc's own MATAIJ, in one process, in interleaved repetitions; medians of processor
  time.

    bench_host [-case NAME,...] [-op aa,ptap] [-methods binned,...] [-algorithms sorted,...] [-reps 5] [-matrices DIR] [-scale 1]

  A case is a stencil (5pt, 7pt, 9pt, 27pt), elasticity (27-point, block size 3), rmat, random, or the name of a file NAME.mtx.xz in DIR. For each
  method a line: first call (symbolic and numeric), numeric alone, the peak of the arenas over 12 bytes a nonzero of C, counters. Every
  result is compared with PETSc's before its time is printed.
*/
#if !defined(_POSIX_C_SOURCE)
  #define _POSIX_C_SOURCE 200809L
#endif
#include <petscksp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <aijhybridgpu/private/hybptap.h>

/* the time of this process, not of whatever else the machine does */
static PetscErrorCode Clock(PetscLogDouble *t)
{
  struct timespec now;

  PetscFunctionBegin;
  PetscCheck(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), PETSC_COMM_SELF, PETSC_ERR_SYS, "No process clock");
  *t = (PetscLogDouble)now.tv_sec + 1e-9 * (PetscLogDouble)now.tv_nsec;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Grid(PetscInt points, PetscInt nx, PetscInt ny, PetscInt nz, PetscInt bs, Mat *A)
{
  const PetscInt n = nx * ny * nz;
  PetscInt      *i, *j;
  PetscScalar   *a;
  PetscCount     nnz = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)n * bs + 1, &i));
  PetscCall(PetscMalloc1((size_t)n * bs * bs * points, &j));
  PetscCall(PetscMalloc1((size_t)n * bs * bs * points, &a));
  i[0] = 0;
  for (PetscInt r = 0; r < n; r++) {
    const PetscInt x = r % nx, y = r / nx % ny, z = r / nx / ny;

    for (PetscInt c = 0; c < bs; c++) {
      for (PetscInt dz = -1; dz <= 1; dz++) {
        for (PetscInt dy = -1; dy <= 1; dy++) {
          for (PetscInt dx = -1; dx <= 1; dx++) {
            const PetscInt steps = PetscAbs(dx) + PetscAbs(dy) + PetscAbs(dz);

            if ((points == 5 || points == 7) && steps > 1) continue;
            if ((points == 5 || points == 9) && dz) continue;
            if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz) continue;
            for (PetscInt d = 0; d < bs; d++) {
              j[nnz]   = (r + dx + nx * (dy + ny * dz)) * bs + d;
              a[nnz++] = steps ? -1.0 / steps * (c == d ? 1.0 : 0.1) : (c == d ? points : 0.2);
            }
          }
        }
      }
      i[r * bs + c + 1] = (PetscInt)nnz;
    }
  }
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n * bs, n * bs, i, j, a, A));
  PetscCall(MatSetBlockSize(*A, bs));
  {
    Mat B;

    PetscCall(MatDuplicate(*A, MAT_COPY_VALUES, &B));
    PetscCall(MatDestroy(A));
    *A = B;
  }
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* skewed: the quadrants' probabilities are those of Graph500, else even */
static PetscErrorCode RMat(PetscInt scale, PetscInt degree, PetscBool skewed, Mat *A)
{
  const PetscInt n = (PetscInt)1 << scale;
  PetscInt      *ci, *cj;
  uint64_t       state = 12345;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2((size_t)n * degree, &ci, (size_t)n * degree, &cj));
  for (PetscInt e = 0; e < n * degree; e++) {
    PetscInt r = 0, c = 0;

    for (PetscInt b = 0; b < scale; b++) {
      double u;

      state = state * 6364136223846793005ull + 1442695040888963407ull;
      u     = (double)(state >> 11) / 9007199254740992.0;
      r     = 2 * r + (u >= (skewed ? 0.76 : 0.5));
      c     = 2 * c + (skewed ? (u >= 0.57 && u < 0.76) || u >= 0.95 : (u >= 0.25 && u < 0.5) || u >= 0.75);
    }
    ci[e] = r;
    cj[e] = c;
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, n, n, n, n));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSetPreallocationCOO(*A, (PetscCount)n * degree, ci, cj));
  {
    PetscScalar *v;

    PetscCall(PetscMalloc1((size_t)n * degree, &v));
    for (PetscInt e = 0; e < n * degree; e++) v[e] = 1.0 + e % 7;
    PetscCall(MatSetValuesCOO(*A, v, ADD_VALUES));
    PetscCall(PetscFree(v));
  }
  PetscCall(PetscFree2(ci, cj));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Read(const char *dir, const char *name, Mat *A)
{
  char      line[1024], symmetry[64], field[64];
  FILE     *f;
  long      m, n, nz;
  PetscInt *ci, *cj, e = 0;
  double   *v;

  PetscFunctionBegin;
  *A = NULL;
  snprintf(line, sizeof(line), "xz -dc '%s/%s.mtx.xz' 2>/dev/null", dir, name);
  f = popen(line, "r");
  if (!f || !fgets(line, sizeof(line), f)) {
    if (f) pclose(f);
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: not found in %s, skipped\n", name, dir));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(sscanf(line, "%%%%MatrixMarket matrix coordinate %63s %63s", field, symmetry) == 2, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: %s", name, line);
  do {
    PetscCheck(fgets(line, sizeof(line), f), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s ends early", name);
  } while (line[0] == '%');
  PetscCheck(sscanf(line, "%ld %ld %ld", &m, &n, &nz) == 3, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: %s", name, line);
  PetscCall(PetscMalloc3((size_t)2 * nz, &ci, (size_t)2 * nz, &cj, (size_t)2 * nz, &v));
  for (long k = 0; k < nz; k++) {
    long   r, c;
    double x = 1;
    char  *p = line;

    PetscCheck(fgets(line, sizeof(line), f), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s ends early", name);
    r = strtol(p, &p, 10) - 1;
    c = strtol(p, &p, 10) - 1;
    if (strcmp(field, "pattern")) x = strtod(p, &p);
    ci[e]  = (PetscInt)r;
    cj[e]  = (PetscInt)c;
    v[e++] = x;
    if (strcmp(symmetry, "general") && r != c) {
      ci[e]  = (PetscInt)c;
      cj[e]  = (PetscInt)r;
      v[e++] = x;
    }
  }
  pclose(f);
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, (PetscInt)m, (PetscInt)n, (PetscInt)m, (PetscInt)n));
  PetscCall(MatSetType(*A, MATSEQAIJ));
  PetscCall(MatSetPreallocationCOO(*A, e, ci, cj));
  {
    PetscScalar *w;

    PetscCall(PetscMalloc1(e, &w));
    for (PetscInt k = 0; k < e; k++) w[k] = v[k];
    PetscCall(MatSetValuesCOO(*A, w, INSERT_VALUES));
    PetscCall(PetscFree(w));
  }
  PetscCall(PetscFree3(ci, cj, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  /* PETSc's default PtAP keeps a larger pattern now and then: what is ours must be there, what is not must be zero there */
  for (PetscInt r = 0; r < V.m; r++) {
    PetscInt k = C->i[r];

    for (PetscInt l = V.i[r]; l < V.i[r + 1]; l++) {
      PetscScalar ours = 0;

      if (k < C->i[r + 1] && C->j[k] == V.j[l]) ours = C->a[k++];
      else extra++;
      worst = PetscMax(worst, PetscAbsScalar(ours - V.a[l]));
      size  = PetscMax(size, PetscAbsScalar(V.a[l]));
    }
    PetscCheck(k == C->i[r + 1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " of the result differs in pattern from PETSc's", what, r);
  }
  PetscCheck(worst <= 1e-12 * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the result differs from PETSc's by %g of %g", what, (double)worst, (double)size);
  if (extra) PetscCall(PetscPrintf(PETSC_COMM_SELF, "    %s: PETSc stores %ld more\n", what, (long)extra));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Ascending(const void *x, const void *y)
{
  const double a = *(const double *)x, b = *(const double *)y;

  return (a > b) - (a < b);
}

static double Median(double *t, int n)
{
  qsort(t, n, sizeof(*t), Ascending);
  return t[n / 2];
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
  HybExec        exec = {&counting, NULL, HYB_MEM_HOST};
  HybSpGEMM      mm;
  HybPtAP        pp;
  HybArena       out;
  HybCSR         C;
  HybCounters   *counters;
  PetscLogDouble t0 = 0, t1 = 0, t2 = 0;

  PetscFunctionBegin;
  counting       = HybBackendHost;
  counting.alloc = CountingAlloc;
  counting.free  = CountingFree;
  most           = held;
  PetscCall(HybArenaInit(&out, &exec));
  PetscCall(Clock(&t0));
  if (ptap) {
    const HybPtAPMethod *const *m = exec.backend->ptap;

    PetscCall(PetscMemzero(&pp, sizeof(pp)));
    pp.exec = exec;
    PetscCall(HybArenaInit(&pp.keep, &exec));
    PetscCall(HybArenaInit(&pp.work, &exec));
    while (*m && strcmp((*m)->name, method)) m++;
    PetscCheck(*m, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "No PtAP method %s", method);
    pp.method = *m;
    PetscCall(PetscMemzero(&C, sizeof(C)));
    PetscCall(pp.method->symbolic(&pp, A, B, &out, &C));
    if (!C.a) {
      PetscCall(HybArenaAlloc(&out, HYB_MEM_HOST, C.nnz, sizeof(PetscScalar), &C.a));
      PetscCall(pp.method->numeric(&pp, A, B, &C));
    }
    counters = &pp.counters;
  } else {
    PetscCall(HybSpGEMMInit(&mm, &exec, method, width));
    PetscCall(HybSpGEMMSymbolic(&mm, A, B, &out, &C));
    if (!C.a) {
      PetscCall(HybArenaAlloc(&out, HYB_MEM_HOST, C.nnz, sizeof(PetscScalar), &C.a));
      PetscCall(HybSpGEMMNumeric(&mm, A, B, &C));
    }
    counters = &mm.counters;
  }
  PetscCall(Clock(&t1));
  if (ptap) PetscCall(pp.method->numeric(&pp, A, B, &C));
  else PetscCall(HybSpGEMMNumeric(&mm, A, B, &C));
  PetscCall(Clock(&t2));
  *first = t1 - t0;
  *again = t2 - t1;
  /* per-row arrays apart: the offsets of C and the costs of the plan */
  *peak  = ((double)most - (double)A->m * (sizeof(PetscCount) + sizeof(PetscInt))) / (12.0 * C.nnz);
  if (R) PetscCall(Compare(what, &C, R));
  text[0] = 0;
  if (!ptap && !strcmp(method, "auto")) snprintf(text, length, " =%s", mm.method->name);
  for (PetscInt k = 0; k < counters->n; k++) snprintf(text + strlen(text), length - strlen(text), " %s=%ld", counters->name[k], (long)counters->value[k]);
  if (ptap) {
    if (pp.method->destroy) PetscCall(pp.method->destroy(&pp));
    PetscCall(HybArenaReset(&pp.keep));
    PetscCall(HybArenaReset(&pp.work));
  } else PetscCall(HybSpGEMMDestroy(&mm));
  PetscCall(HybArenaReset(&out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Theirs(PetscBool ptap, const char *algorithm, Mat A, Mat B, double *first, double *again, Mat *R)
{
  PetscLogDouble t0 = 0, t1 = 0, t2 = 0;

  PetscFunctionBegin;
  PetscCall(Clock(&t0));
  PetscCall(MatProductCreate(A, B, NULL, R));
  PetscCall(MatProductSetType(*R, ptap ? MATPRODUCT_PtAP : MATPRODUCT_AB));
  PetscCall(MatProductSetAlgorithm(*R, algorithm));
  PetscCall(MatProductSetFill(*R, PETSC_DEFAULT));
  PetscCall(MatProductSetFromOptions(*R));
  PetscCall(MatProductSymbolic(*R));
  PetscCall(MatProductNumeric(*R));
  PetscCall(Clock(&t1));
  PetscCall(MatProductNumeric(*R));
  PetscCall(Clock(&t2));
  *first = t1 - t0;
  *again = t2 - t1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Race(const char *name, const char *op, Mat A, Mat B, PetscInt nmethods, char **methods, PetscInt nalgs, char **algs, PetscInt width, PetscInt reps)
{
  const PetscBool ptap = (PetscBool)!strcmp(op, "ptap");
  double          first[2 * MAXALG][MAXREPS], again[2 * MAXALG][MAXREPS], peak[MAXALG];
  char            text[MAXALG][512], what[128];
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
    const double f = Median(first[k], (int)reps), g = Median(again[k], (int)reps);
    static double basef, baseg;

    if (k == 0) basef = f, baseg = g;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-18s %-5s %-6s %-12s first %9.2f ms  %5.2fx  again %9.2f ms  %5.2fx", name, op, k < nalgs ? "aij" : "ours", k < nalgs ? algs[k] : methods[k - nalgs], 1e3 * f, basef / f, 1e3 * g, baseg / g));
    if (k >= nalgs) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  mem %.2f%s", peak[k - nalgs], text[k - nalgs]));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Prolongator(Mat A, Mat *P)
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

int main(int argc, char **argv)
{
  static char help[] = "The host's products against MATAIJ's\n";
  char       *cases[64], *methods[MAXALG], *algs[MAXALG], *ops[4], dir[PETSC_MAX_PATH_LEN] = "../shared/matrices";
  PetscInt    ncases = 64, nmethods = MAXALG, nalgs = MAXALG, nops = 4, reps = 5, width = 0;
  PetscReal   scale = 1;
  PetscBool   set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
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
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-scale", &scale, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-matrices", dir, sizeof(dir), NULL));
  reps = PetscMin(reps, MAXREPS);
  for (PetscInt c = 0; c < ncases; c++) {
    const char *name = cases[c];
    const double s2 = PetscSqrtReal(scale), s3 = PetscPowReal(scale, 1.0 / 3.0);
    Mat          A, P;

    if (!strcmp(name, "5pt")) PetscCall(Grid(5, 500 * s2, 500 * s2, 1, 1, &A));
    else if (!strcmp(name, "9pt")) PetscCall(Grid(9, 400 * s2, 400 * s2, 1, 1, &A));
    else if (!strcmp(name, "7pt")) PetscCall(Grid(7, 60 * s3, 60 * s3, 60 * s3, 1, &A));
    else if (!strcmp(name, "27pt")) PetscCall(Grid(27, 48 * s3, 48 * s3, 48 * s3, 1, &A));
    else if (!strcmp(name, "elasticity")) PetscCall(Grid(27, 24 * s3, 24 * s3, 24 * s3, 3, &A));
    else if (!strcmp(name, "rmat")) PetscCall(RMat(16 + (PetscInt)PetscLog2Real(scale), 16, PETSC_TRUE, &A));
    else if (!strcmp(name, "random")) PetscCall(RMat(21 + (PetscInt)PetscLog2Real(scale), 4, PETSC_FALSE, &A));
    else PetscCall(Read(dir, name, &A));
    if (!A) continue;
    for (PetscInt o = 0; o < nops; o++) {
      if (!strcmp(ops[o], "aa")) PetscCall(Race(name, "aa", A, A, nmethods, methods, nalgs, algs, width, reps));
      else if (!strcmp(ops[o], "ap") || !strcmp(ops[o], "ptap")) {
        PetscCall(Prolongator(A, &P));
        PetscCall(Race(name, ops[o], A, P, nmethods, methods, nalgs, algs, width, reps));
        PetscCall(MatDestroy(&P));
      }
    }
    PetscCall(MatDestroy(&A));
  }
  for (PetscInt k = 0; k < ncases; k++) PetscCall(PetscFree(cases[k]));
  for (PetscInt k = 0; k < nmethods; k++) PetscCall(PetscFree(methods[k]));
  for (PetscInt k = 0; k < nalgs; k++) PetscCall(PetscFree(algs[k]));
  for (PetscInt k = 0; k < nops; k++) PetscCall(PetscFree(ops[k]));
  PetscCall(PetscFinalize());
  return 0;
}
