/*
  bench_mat.c: what a PETSc user sees of a matrix type: MatMult, A*A first and again, KSP with GAMG (setup, solves, setup again with new values),
  on stencils on an n^3 grid. Any type: -mat_type aijhybridgpu (with the plugin), aijcusparse, aij. Every figure is checked against the same operation of
  MATAIJ through random vectors before it is printed.

    [mpiexec -n RANKS] bench_mat -points 7|27 -n 96 -mat_type TYPE [-ops mult,reassemble,aa,gamg,ptap] [-repeat 10] [-ksp_rtol 1e-5]

  On several processes the rows are dealt out in slabs, every process waits for the others before a clock is read, and a figure's remarks say what crossed the bus, all
  processes together: what PETSc and the type log of it, which pages of managed memory that move by faults are not. reassemble is for one process.

  reassemble is a product with a vector after the host has written new values of the same pattern, which cross the bus first. ptap is the product of A with the finest
  prolongator of GAMG. The solves stop at PETSc's own default tolerance unless -ksp_rtol says otherwise.

  Output: one line a figure, tab-separated: points, n, type, operation, milliseconds (minimum over the repeats, or the one first call), remarks.
*/
#include <petscksp.h>
#include <petsctime.h>
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice.h>
#endif

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

static PetscInt       points = 7, n = 96, repeat = 10;
static PetscMPIInt    size   = 1;
static PetscLogDouble todevice0, tohost0;
static const char    *type;

static PetscErrorCode Synchronize(void)
{
  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  {
    PetscDeviceContext dctx;
    PetscCall(PetscDeviceContextGetCurrentContext(&dctx));
    PetscCall(PetscDeviceContextSynchronize(dctx));
  }
#endif
  if (size > 1) PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

/* the stencil as MATAIJ, arrays first: assembly is not what is measured */
static PetscErrorCode Stencil(Mat *A)
{
  const PetscInt N = n * n * n;
  PetscInt       m = PETSC_DECIDE, rows = N, first, *i, *j;
  PetscScalar   *a;
  PetscCount     nnz = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &m, &rows));
  PetscCallMPI(MPI_Scan(&m, &first, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  first -= m;
  PetscCall(PetscMalloc1(m + 1, &i));
  PetscCall(PetscMalloc1((size_t)m * points, &j));
  PetscCall(PetscMalloc1((size_t)m * points, &a));
  i[0] = 0;
  for (PetscInt r = first; r < first + m; r++) {
    PetscInt x = r % n, y = (r / n) % n, z = r / (n * n);

    for (PetscInt dz = -1; dz <= 1; dz++)
      for (PetscInt dy = -1; dy <= 1; dy++)
        for (PetscInt dx = -1; dx <= 1; dx++) {
          PetscInt taxi = PetscAbsInt(dx) + PetscAbsInt(dy) + PetscAbsInt(dz);

          if ((points == 7 && taxi > 1) || x + dx < 0 || x + dx >= n || y + dy < 0 || y + dy >= n || z + dz < 0 || z + dz >= n) continue;
          j[nnz]   = r + dx + dy * n + dz * n * n;
          a[nnz++] = taxi ? -1.0 : (PetscScalar)(points - 1);
        }
    i[r - first + 1] = (PetscInt)nnz;
  }
  if (size == 1) PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, N, N, i, j, a, A));
  else {
    PetscCall(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, m, m, N, N, i, j, a, A)); /* a copy */
    PetscCall(PetscFree(i));
    PetscCall(PetscFree(j));
    PetscCall(PetscFree(a));
  }
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

int main(int argc, char **argv)
{
  Mat            A0, A;
  Vec            x, y;
  char           ops[256] = "mult,aa,gamg", typename[64] = MATAIJ, text[512], bus[256] = "";
  PetscLogDouble t0, t1, best;
  PetscReal      error;
  char          *found;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "A matrix type as a PETSc user sees it\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &points, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeat", &repeat, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ops", ops, sizeof(ops), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", typename, sizeof(typename), NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(points == 7 || points == 27, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-points %d is not 7 or 27", (int)points);
  type = typename;
  PetscCall(Stencil(&A0));
  PetscCall(MatConvert(A0, typename, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(PetscStrstr(ops, "mult", &found));
  if (found) {
    Vec x0, y0;

    PetscCall(Synchronize());
    BusBegin();
    PetscCall(PetscTime(&t0));
    PetscCall(MatMult(A, x, y));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    text[0] = 0;
    PetscCall(BusSince(1, text, sizeof(text)));
    PetscCall(Report("MatMult first", t1 - t0, text));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t0));
    PetscCall(MatMult(A, x, y));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    PetscCall(Report("MatMult second", t1 - t0, ""));
    BusBegin();
    best = 1e9;
    for (PetscInt k = 0; k < repeat; k++) {
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t0));
      for (int m = 0; m < 20; m++) PetscCall(MatMult(A, x, y));
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t1));
      best = PetscMin(best, (t1 - t0) / 20);
    }
    bus[0] = 0;
    PetscCall(BusSince(20 * PetscMax(1, repeat), bus, sizeof(bus)));
    PetscCall(MatCreateVecs(A0, &x0, &y0));
    PetscCall(VecCopy(x, x0));
    PetscCall(MatMult(A0, x0, y0));
    PetscCall(VecCopy(y, x0));
    PetscCall(VecAXPY(x0, -1.0, y0));
    PetscCall(VecNorm(x0, NORM_2, &error));
    PetscCheck(error < 1e-8, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatMult is wrong by %g", (double)error);
    {
      MatInfo info;
      PetscCall(MatGetInfo(A0, MAT_GLOBAL_SUM, &info));
      PetscCall(PetscSNPrintf(text, sizeof(text), "%.0f GB/s at 12 bytes a nonzero and 20 a row%s%s", (12 * info.nz_used + 20.0 * n * n * n) / best / 1e9, bus[0] ? "; " : "", bus));
    }
    PetscCall(Report("MatMult", best, text));
    PetscCall(VecDestroy(&x0));
    PetscCall(VecDestroy(&y0));
  }
  PetscCall(PetscStrstr(ops, "reassemble", &found));
  if (found) { /* new values of the same pattern by the host, as at each step of many programs: what the next product costs */
    Vec     x0, y0;
    MatInfo info;

    PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "reassemble is for one process");
    PetscCall(MatMult(A, x, y));
    best = 1e9;
    for (PetscInt k = 0; k < 2 * PetscMax(1, repeat); k++) {
      PetscScalar *a;

      PetscCall(MatGetInfo(A0, MAT_LOCAL, &info));
      PetscCall(MatSeqAIJGetArray(A, &a));
      for (PetscCount e = 0; e < (PetscCount)info.nz_used; e++) a[e] *= k % 2 ? 0.5 : 2.0;
      PetscCall(MatSeqAIJRestoreArray(A, &a));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t0));
      PetscCall(MatMult(A, x, y));
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t1));
      best = PetscMin(best, t1 - t0);
    }
    PetscCall(MatCreateVecs(A0, &x0, &y0));
    PetscCall(VecCopy(x, x0));
    PetscCall(MatMult(A0, x0, y0));
    PetscCall(VecCopy(y, x0));
    PetscCall(VecAXPY(x0, -1.0, y0));
    PetscCall(VecNorm(x0, NORM_2, &error));
    PetscCheck(error < 1e-8, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatMult after new values is wrong by %g", (double)error);
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.1f GB/s of values over the bus", 8 * info.nz_used / best / 1e9));
    PetscCall(Report("MatMult after host values", best, text));
    PetscCall(VecDestroy(&x0));
    PetscCall(VecDestroy(&y0));
  }
  PetscCall(PetscStrstr(ops, "aa", &found));
  if (found) {
    Mat C;

    PetscCall(Synchronize());
    BusBegin();
    PetscCall(PetscTime(&t0));
    PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    text[0] = 0;
    PetscCall(BusSince(1, text, sizeof(text)));
    PetscCall(Report("A*A first", t1 - t0, text));
    best = 1e9;
    for (PetscInt k = 0; k < repeat; k++) {
      PetscCall(PetscTime(&t0));
      PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t1));
      best = PetscMin(best, t1 - t0);
    }
    bus[0] = 0;
    PetscCall(BusSince(PetscMax(1, repeat), bus, sizeof(bus)));
    PetscCall(CheckProduct(A0, NULL, C, &error));
    PetscCheck(error < 1e-10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A*A is wrong by %g", (double)error);
    PetscCall(PetscSNPrintf(text, sizeof(text), "relative error %.1e%s%s", (double)error, bus[0] ? "; " : "", bus));
    PetscCall(Report("A*A again", best, text));
    PetscCall(MatDestroy(&C));
    PetscCall(PetscTime(&t0));
    PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    PetscCall(Report("A*A second matrix", t1 - t0, "pools warm"));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(PetscStrstr(ops, "gamg", &found));
  if (found) {
    KSP      ksp;
    PC       pc;
    PetscInt its;
    PetscReal rtol;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPGetTolerances(ksp, &rtol, NULL, NULL, NULL));
    PetscCall(Synchronize());
    BusBegin();
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSetUp(ksp));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    text[0] = 0;
    PetscCall(BusSince(1, text, sizeof(text)));
    PetscCall(Report("GAMG setup", t1 - t0, text));
    for (int k = 0; k < 2; k++) {
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t0));
      PetscCall(KSPSolve(ksp, x, y));
      PetscCall(Synchronize());
      PetscCall(PetscTime(&t1));
      PetscCall(KSPGetIterationNumber(ksp, &its));
      PetscCall(PetscSNPrintf(text, sizeof(text), "%d iterations to %g", (int)its, (double)rtol));
      PetscCall(BusSince(1, text, sizeof(text)));
      PetscCall(Report(k ? "second solve" : "first solve", t1 - t0, text));
    }
    { /* the true residual by MATAIJ */
      Vec x0, y0, r0;
      PetscReal rn, bn;
      PetscCall(MatCreateVecs(A0, &x0, &y0));
      PetscCall(VecDuplicate(x0, &r0));
      PetscCall(VecCopy(y, y0));
      PetscCall(VecCopy(x, x0));
      PetscCall(MatMult(A0, y0, r0));
      PetscCall(VecAXPY(r0, -1.0, x0));
      PetscCall(VecNorm(r0, NORM_2, &rn));
      PetscCall(VecNorm(x0, NORM_2, &bn));
      PetscCheck(rn < 1e3 * rtol * bn, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The solve is wrong: relative residual %g", (double)(rn / bn)); /* rtol is that of the preconditioned residual */
      PetscCall(VecDestroy(&x0));
      PetscCall(VecDestroy(&y0));
      PetscCall(VecDestroy(&r0));
    }
    PetscCall(PetscStrstr(ops, "ptap", &found));
    if (found) {
      PetscInt levels;
      Mat      P, P0, C;

      PetscCall(PCMGGetLevels(pc, &levels));
      PetscCall(PCMGGetInterpolation(pc, levels - 1, &P));
      for (int k = 0; k < 2; k++) {
        PetscCall(Synchronize());
        BusBegin();
        PetscCall(PetscTime(&t0));
        PetscCall(MatPtAP(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
        PetscCall(Synchronize());
        PetscCall(PetscTime(&t1));
        PetscCall(PetscStrncpy(text, k ? "pools warm" : "", sizeof(text)));
        PetscCall(BusSince(1, text, sizeof(text)));
        PetscCall(Report(k ? "MatPtAP second matrix" : "MatPtAP first", t1 - t0, text));
        if (!k) PetscCall(MatDestroy(&C));
      }
      BusBegin();
      best = 1e9;
      for (PetscInt k = 0; k < repeat; k++) {
        PetscCall(PetscTime(&t0));
        PetscCall(MatPtAP(A, P, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
        PetscCall(Synchronize());
        PetscCall(PetscTime(&t1));
        best = PetscMin(best, t1 - t0);
      }
      bus[0] = 0;
      PetscCall(BusSince(PetscMax(1, repeat), bus, sizeof(bus)));
      PetscCall(MatConvert(P, MATAIJ, MAT_INITIAL_MATRIX, &P0));
      PetscCall(CheckProduct(A0, P0, C, &error));
      PetscCheck(error < 1e-10, PETSC_COMM_SELF, PETSC_ERR_PLIB, "P^T A P is wrong by %g", (double)error);
      PetscCall(PetscSNPrintf(text, sizeof(text), "relative error %.1e%s%s", (double)error, bus[0] ? "; " : "", bus));
      PetscCall(Report("MatPtAP again", best, text));
      PetscCall(MatDestroy(&P0));
      PetscCall(MatDestroy(&C));
    }
    PetscCall(MatScale(A, 1.5)); /* new values, same pattern */
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSetUp(ksp));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    PetscCall(Report("GAMG setup again", t1 - t0, ""));
    PetscCall(KSPSolve(ksp, x, y));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSolve(ksp, x, y));
    PetscCall(Synchronize());
    PetscCall(PetscTime(&t1));
    PetscCall(Report("solve after setup again", t1 - t0, ""));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&A0));
  PetscCall(PetscFinalize());
  return 0;
}
