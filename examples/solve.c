static char help[] = "Solves A x = b for anybody's matrix with the options given, and reports residual, iterations, times and memory.\n\
  -A <file>          : matrix, PETSc binary or Matrix Market (- reads Matrix Market from standard input)\n\
  -b <file>          : right-hand side, PETSc binary or Matrix Market; without it b = A*1, and the error is reported too\n\
  -block_size <bs>   : block size of the matrix, e.g. 3 for 3D elasticity\n\
  -solves <n>        : solve n times, the same system again (default 1)\n\
  -x <file>          : write the solution here, PETSc binary\n\
PETSc's own options choose the rest: -mat_type, -ksp_type, -pc_type, -ksp_rtol, -ksp_monitor, ...\n\n";

/*
  Nothing in here knows of the plugin. It comes in by options, as into any other program:

    examples/solve -A matrix.mtx -ksp_type cg -pc_type gamg -dll_append $PWD/lib/libaijhybridgpu.so -mat_type
    aijhybridgpu

  Exit status: 0 converged, 1 not converged, otherwise PETSc's error code. Runs on any number of processes: the first
  one reads a Matrix Market file and its entries travel by MatSetValuesCOO().
*/
#include <petscksp.h>
#include "mmreader.h"

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

typedef struct {
  PetscLogDouble read, assembly, setup, solve, again;
} Times;

/* the first line tells a Matrix Market file from a PETSc binary one */
static PetscErrorCode IsMatrixMarket(const char name[], PetscBool *mm)
{
  int rank, is = 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0 && strcmp(name, "-")) {
    FILE *f = fopen(name, "rb");
    char  first[2];

    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", name);
    /* PETSc's binary files begin with a class number whose first byte is zero; a compressed one begins with 1f 8b and
       PETSc reads it */
    is = fread(first, 1, 2, f) == 2 && (first[0] == 0 || (first[0] == 0x1f && first[1] == (char)0x8b)) ? 0 : 1;
    fclose(f);
  } else
    is = 1;
  PetscCallMPI(MPI_Bcast(&is, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  *mm = is ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first process reads; the sizes go to all, the entries stay there */
static PetscErrorCode ReadMatrixMarket(const char name[], MMEntries *e)
{
  int      rank;
  PetscInt sizes[2] = {0, 0};

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(e, sizeof *e));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) {
    FILE          *f = strcmp(name, "-") ? fopen(name, "r") : stdin;
    PetscErrorCode ierr;

    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", name);
    ierr = MMEntriesRead(f, f == stdin ? "standard input" : name, e);
    if (f != stdin) fclose(f);
    PetscCall(ierr);
    sizes[0] = e->m;
    sizes[1] = e->n;
  }
  PetscCallMPI(MPI_Bcast(sizes, 2, MPIU_INT, 0, PETSC_COMM_WORLD));
  e->m = sizes[0];
  e->n = sizes[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadMatrix(const char name[], PetscInt bs, Times *t, Mat *A)
{
  PetscBool      mm;
  PetscLogDouble t0, t1, t2;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&t0));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(PetscObjectSetName((PetscObject)*A, "A"));
  PetscCall(IsMatrixMarket(name, &mm));
  if (mm) {
    MMEntries e;

    PetscCall(ReadMatrixMarket(name, &e));
    PetscCall(PetscTime(&t1));
    PetscCheck(e.m % bs == 0 && e.n % bs == 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "-block_size %" PetscInt_FMT " does not divide %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", bs, e.m, e.n);
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, e.m, e.n));
    PetscCall(MatSetBlockSize(*A, bs));
    PetscCall(MatSetFromOptions(*A));
    PetscCall(MatSetPreallocationCOO(*A, e.nz, e.i, e.j));
    PetscCall(MatSetValuesCOO(*A, e.a, INSERT_VALUES));
    PetscCall(MMEntriesDestroy(&e));
  } else {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
    PetscCall(MatSetBlockSize(*A, bs));
    PetscCall(MatSetFromOptions(*A));
    PetscCall(PetscTime(&t1));
    PetscCall(MatLoad(*A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(PetscTime(&t2));
  t->read += t1 - t0;
  t->assembly += t2 - t1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoadVector(const char name[], Vec b, Times *t)
{
  PetscBool      mm;
  PetscLogDouble t0, t1;
  PetscInt       N;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&t0));
  PetscCall(VecGetSize(b, &N));
  PetscCall(IsMatrixMarket(name, &mm));
  if (mm) {
    MMEntries e;

    PetscCall(ReadMatrixMarket(name, &e));
    PetscCheck(e.m == N && e.n == 1, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s is %" PetscInt_FMT " x %" PetscInt_FMT "; the right-hand side of this matrix is %" PetscInt_FMT " x 1", name, e.m, e.n, N);
    for (PetscCount k = 0; k < e.nz; k++) PetscCall(VecSetValues(b, 1, e.i + k, e.a + k, ADD_VALUES));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
    PetscCall(MMEntriesDestroy(&e));
  } else {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
    PetscCall(VecLoad(b, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(PetscTime(&t1));
  t->read += t1 - t0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the Krylov method measured: a small preconditioned residual may go with a true one that is not */
static const char *ConvergedBy(KSP ksp)
{
  KSPNormType norm = KSP_NORM_NONE;

  if (KSPGetNormType(ksp, &norm)) return "";
  switch (norm) {
  case KSP_NORM_PRECONDITIONED:
    return " (preconditioned residual)";
  case KSP_NORM_UNPRECONDITIONED:
    return " (true residual)";
  case KSP_NORM_NATURAL:
    return " (natural norm)";
  default:
    return " (no residual computed)";
  }
}

/* How it ended. The residual is computed anew: what an iteration keeps of it may have drifted. x is changed where b is
   A times ones, and the error is known. */
static PetscErrorCode Report(KSP ksp, Mat A, Vec b, Vec x, PetscBool ones)
{
  KSPConvergedReason reason;
  const char        *ksptype, *pctype;
  PetscReal          rnorm, bnorm, xnorm;
  PetscInt           its, N;
  PC                 pc;
  Vec                r;

  PetscFunctionBeginUser;
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetType(ksp, &ksptype));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCGetType(pc, &pctype));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(VecNorm(b, NORM_2, &bnorm));
  PetscCall(VecDestroy(&r));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solver      %s, %s: %s after %" PetscInt_FMT " iterations%s\n", ksptype, pctype, KSPConvergedReasons[reason], its, ConvergedBy(ksp)));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "residual    |b - A x| = %g, |b - A x| / |b| = %g\n", (double)rnorm, (double)(bnorm > 0 ? rnorm / bnorm : rnorm)));
  if (ones) {
    PetscCall(VecGetSize(x, &N));
    PetscCall(VecShift(x, -1));
    PetscCall(VecNorm(x, NORM_2, &xnorm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "error       |x - 1| / |1| = %g\n", (double)(N ? xnorm / PetscSqrtReal((PetscReal)N) : 0)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat                A;
  Vec                x, b;
  KSP                ksp;
  char               fileA[PETSC_MAX_PATH_LEN] = "", fileb[PETSC_MAX_PATH_LEN], filex[PETSC_MAX_PATH_LEN];
  PetscBool          hasA, hasb, hasx, leastsquares;
  PetscInt           M, N, bs = 1, nsolves = 1;
  MatInfo            info;
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
  const char        *mattype;
  Times              t = {0, 0, 0, 0, 0};
  PetscLogDouble     t0, t1, memory = 0, total = 0;
  int                size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscMemorySetGetMaximumUsage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Solve A x = b", NULL);
  PetscCall(PetscOptionsString("-A", "Matrix: PETSc binary or Matrix Market file", NULL, "", fileA, sizeof fileA, &hasA));
  PetscCall(PetscOptionsString("-b", "Right-hand side; without it b = A*1", NULL, "", fileb, sizeof fileb, &hasb));
  PetscCall(PetscOptionsString("-x", "Where to write the solution", NULL, "", filex, sizeof filex, &hasx));
  PetscCall(PetscOptionsInt("-block_size", "Block size of the matrix", NULL, bs, &bs, NULL));
  PetscCall(PetscOptionsInt("-solves", "How often to solve", NULL, nsolves, &nsolves, NULL));
  PetscOptionsEnd();
  PetscCheck(hasA && fileA[0], PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "Give the matrix: -A <file>, PETSc binary or Matrix Market");
  PetscCheck(bs >= 1, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-block_size %" PetscInt_FMT " is less than 1", bs);
  PetscCheck(nsolves >= 1, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-solves %" PetscInt_FMT " is less than 1", nsolves);

  PetscCall(LoadMatrix(fileA, bs, &t, &A));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetType(A, &mattype));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "matrix      %s: %" PetscInt_FMT " x %" PetscInt_FMT ", %.0f nonzeros, block size %" PetscInt_FMT ", type %s, %d process%s\n", fileA, M, N, info.nz_used, bs, mattype, size, size > 1 ? "es" : ""));
  PetscCall(MatCreateVecs(A, &x, &b));
  if (hasb)
    PetscCall(LoadVector(fileb, b, &t));
  else {
    PetscCall(VecSet(x, 1));
    PetscCall(MatMult(A, x, b));
  }

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &leastsquares, KSPLSQR, KSPCGLS, ""));
  PetscCheck(M == N || leastsquares, PETSC_COMM_WORLD, PETSC_ERR_ARG_SIZ, "%s is %" PetscInt_FMT " x %" PetscInt_FMT "; a linear system is square. For least squares: -ksp_type lsqr -pc_type none", fileA, M, N);
  PetscCall(PetscTime(&t0));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PetscTime(&t1));
  t.setup = t1 - t0;
  for (PetscInt k = 0; k < nsolves; k++) {
    PetscCall(VecSet(x, 0));
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(PetscTime(&t1));
    if (k == 0)
      t.solve = t1 - t0;
    else
      t.again += (t1 - t0) / (PetscLogDouble)(nsolves - 1);
  }
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(PetscMemoryGetMaximumUsage(&memory));
  PetscCallMPI(MPI_Reduce(&memory, &total, 1, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD));
  if (hasx) {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, filex, FILE_MODE_WRITE, &viewer));
    PetscCall(VecView(x, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(Report(ksp, A, b, x, (PetscBool)!hasb));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "times       read %.3f s, assembly %.3f s, setup %.3f s, solve %.3f s", t.read, t.assembly, t.setup, t.solve));
  if (nsolves > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", again %.3f s", t.again));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\nmemory      %.1f MB at most, resident in all processes\n", total / 1048576.));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return reason > 0 ? 0 : 1;
}
