/*
  The type on several processes against MATAIJ: layouts that are uneven and leave one process without rows, and matrices
  whose processes have rows without entries. Products with vectors, every matrix product with its reuse, transposes,
  assembly from coordinates that belong to other processes, and a multigrid solve that is repeated.

TEST np=1,3+2,4
TEST np=2+3 -mat_aijhybridgpu_spgemm rowmerge
TEST np=1,2 -mat_seqaij_type seqaijhybridgpu
TEST np=2 @emulated
TEST np=+2 @emulated -mat_aijhybridgpu_memory mirror
TEST np=+2 @emulated -mat_aijhybridgpu_comm mpi
*/
#include "mattest.h"

static unsigned long Next(unsigned long *s)
{
  *s = *s * 6364136223846793005ul + 1442695040888963407ul;
  return *s >> 33;
}

/* M x N entries that do not depend on the number of processes; every fifth row is empty, one is long */
static PetscErrorCode Random(PetscInt M, PetscInt N, PetscInt row, PetscInt seed, MatType type, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, MatTestUneven(M), MatTestUneven(N), M, N, 4 * row, A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    unsigned long s = (unsigned long)r * 2654435761ul + (unsigned long)seed * 40503ul + 7ul;
    PetscInt      n;

    (void)Next(&s);
    n = r % 5 == 2 ? 0 : (r == M / 3 ? 4 * row : 1 + (PetscInt)(Next(&s) % (unsigned long)(2 * row)));
    for (PetscInt k = 0; k < n; k++) {
      PetscInt  c  = (PetscInt)(Next(&s) % (unsigned long)N);
      PetscReal re = (PetscReal)(Next(&s) % 1000) / 500 - 0.9995;
#if defined(PETSC_USE_COMPLEX)
      PetscScalar v = PetscCMPLX(re, (PetscReal)(Next(&s) % 1000) / 700 - 0.7);
#else
      PetscScalar v = re;
#endif

      PetscCall(MatSetValue(*A, r, c, v, INSERT_VALUES));
    }
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckType(Mat A, const char *what)
{
  const PetscMPIInt size = MatTestSize();
  PetscBool         ours;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, size > 1 ? "mpiaijhybridgpu" : "seqaijhybridgpu", &ours));
  MatTestCheck(ours, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Vectors(Mat A, Mat H)
{
  PetscFunctionBeginUser;
  MatTestName = "vectors";
  for (int pass = 0; pass < 2; pass++) { /* the second time what was prepared in the first is used */
    PetscCall(MatTestMults(A, H));
    MatTestBoth(MatScale, A, H, 1.25);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(void)
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};
  /* rows and columns of the three operands of each, for sizes 60, 45, 52, 31 */
  static const PetscInt sizes[6][6] = {
    {60, 45, 45, 52, 0,  0 },
    {60, 45, 60, 52, 0,  0 },
    {60, 45, 52, 45, 0,  0 },
    {60, 60, 60, 31, 0,  0 },
    {60, 60, 31, 60, 0,  0 },
    {60, 45, 45, 52, 52, 31}
  };
  const PetscMPIInt size = MatTestSize();

  PetscFunctionBeginUser;
  for (int t = 0; t < 6; t++) {
    Mat            a[3] = {NULL}, h[3] = {NULL}, o[3] = {NULL}, D = NULL, E = NULL;
    PetscErrorCode ierr;

    MatTestName = MatProductTypes[types[t]];
    for (int k = 0; k < 3 && sizes[t][2 * k]; k++) {
      PetscCall(Random(sizes[t][2 * k], sizes[t][2 * k + 1], 4, 10 * t + k, MATAIJ, &a[k]));
      PetscCall(Random(sizes[t][2 * k], sizes[t][2 * k + 1], 4, 10 * t + k, "aijhybridgpu", &h[k]));
      PetscCall(MatDuplicate(h[k], MAT_COPY_VALUES, &o[k]));
      MatTestCheckSame(h[k], a[k], "operands");
    }
    QUIETLY(ierr, MatTestProduct(types[t], a[0], a[1], a[2], &D));
    if (ierr) { /* MATAIJ has no parallel product of this type in this release */
      MatTestSkipped++;
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "SKIPPED %s: MATAIJ has no such product here\n", MatTestName));
      PetscCall(MatDestroy(&D));
    } else {
      PetscCall(MatTestProduct(types[t], h[0], h[1], h[2], &E));
      PetscCall(CheckType(E, "the result is of the type"));
      MatTestCheckSame(E, D, "first product");
      for (int mixed = 0; mixed < (a[2] ? 3 : 2); mixed++) { /* one operand is MATAIJ's, and all others but one are */
        for (int turn = 0; turn < 2; turn++) {
          Mat m[3], F;

          for (int k = 0; k < 3; k++) m[k] = (k == mixed) == (turn == 0) ? a[k] : h[k];
          PetscCall(MatTestProduct(types[t], m[0], m[1], m[2], &F));
          MatTestCheckSame(F, D, "mixed operands");
          PetscCall(MatProductNumeric(F));
          MatTestCheckSame(F, D, "mixed operands, again");
          PetscCall(MatDestroy(&F));
        }
      }
      for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < 3 && a[k]; k++)
          MatTestBoth(MatScale, a[k], h[k], -0.5 - k);
        /* PETSc's parallel one keeps the transpose that it made first, with its values */
        if (size > 1 && types[t] == MATPRODUCT_ABt) {
          PetscCall(MatDestroy(&D));
          PetscCall(MatTestProduct(types[t], a[0], a[1], a[2], &D));
        }
        MatTestBoth(MatProductNumeric, D, E);
        MatTestCheckSame(E, D, "again with other values");
        if (!pass) { /* whoever used the result leaves it fit for the next product */
          Mat T;

          PetscCall(Vectors(D, E));
          PetscCall(MatTranspose(E, MAT_INITIAL_MATRIX, &T));
          PetscCall(MatDestroy(&T));
          MatTestName = MatProductTypes[types[t]];
        }
      }
      /* other matrices of the same pattern in their place */
      for (int k = 0; k < 3 && a[k]; k++) {
        PetscCall(MatScale(o[k], 3));
        PetscCall(MatCopy(o[k], a[k], SAME_NONZERO_PATTERN));
      }
      PetscCall(MatProductReplaceMats(o[0], o[1], o[2], E));
      if (size > 1 && types[t] == MATPRODUCT_ABt) {
        PetscCall(MatDestroy(&D));
        PetscCall(MatTestProduct(types[t], a[0], a[1], a[2], &D));
      }
      MatTestBoth(MatProductNumeric, D, E);
      MatTestCheckSame(E, D, "other matrices of the same pattern");
    }
    PetscCall(MatTestDestroy(&D, &E));
    for (int k = 0; k < 3; k++) PetscCall(MatTestDestroy(&a[k], &h[k], &o[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposes(Mat A, Mat H)
{
  Mat T, S;

  PetscFunctionBeginUser;
  MatTestName = "transposes";
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatTranspose(H, MAT_INITIAL_MATRIX, &S));
  PetscCall(CheckType(S, "the transpose is of the type"));
  MatTestCheckSame(S, T, "MAT_INITIAL_MATRIX");
  MatTestBoth(MatScale, A, H, 2);
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &T));
  PetscCall(MatTranspose(H, MAT_REUSE_MATRIX, &S));
  MatTestCheckSame(S, T, "MAT_REUSE_MATRIX");
  PetscCall(MatTestDestroy(&T, &S));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &T));
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &S));
  PetscCall(MatTranspose(T, MAT_INPLACE_MATRIX, &T));
  PetscCall(MatTranspose(S, MAT_INPLACE_MATRIX, &S));
  PetscCall(CheckType(S, "the type stays"));
  MatTestCheckSame(S, T, "MAT_INPLACE_MATRIX");
  PetscCall(Vectors(T, S));
  PetscCall(MatTestDestroy(&T, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operands that are results themselves: on a device they were born there, and a repeated product neither fetches their
   values nor sends them again */
static PetscErrorCode ResultsAsOperands(void)
{
  Mat               a[3], h[3], D[2], E[2]; /* A, P = A Q, A A; P^T A P and P^T (A A) */
  Mat               q, hq;
  PetscLogEvent     event;
  const PetscMPIInt size = MatTestSize();
  PetscBool         born, mirror;

  PetscFunctionBeginUser;
  MatTestName = "results as operands";
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &born));
  /* then the parent's copies of blocks are of that type too, and the host's */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_seqaij_type", &mirror));
  if (mirror) born = PETSC_FALSE;
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  PetscCall(Random(60, 60, 4, 41, MATAIJ, &a[0]));
  PetscCall(Random(60, 60, 4, 41, "aijhybridgpu", &h[0]));
  PetscCall(Random(60, 31, 3, 42, MATAIJ, &q));
  PetscCall(Random(60, 31, 3, 42, "aijhybridgpu", &hq));
  PetscCall(MatTestProduct(MATPRODUCT_AB, a[0], q, NULL, &a[1]));
  PetscCall(MatTestProduct(MATPRODUCT_AB, h[0], hq, NULL, &h[1]));
  PetscCall(MatTestProduct(MATPRODUCT_AB, a[0], a[0], NULL, &a[2]));
  PetscCall(MatTestProduct(MATPRODUCT_AB, h[0], h[0], NULL, &h[2]));
  PetscCall(MatTestProduct(MATPRODUCT_PtAP, a[0], a[1], NULL, &D[0]));
  PetscCall(MatTestProduct(MATPRODUCT_PtAP, h[0], h[1], NULL, &E[0]));
  PetscCall(MatTestProduct(MATPRODUCT_AtB, a[1], a[2], NULL, &D[1]));
  PetscCall(MatTestProduct(MATPRODUCT_AtB, h[1], h[2], NULL, &E[1]));
  PetscCall(PetscLogEventGetId("HybCopyTo", &event));
  for (int pass = 0; pass < 4; pass++) {
    for (int k = 0; k < 2; k++) {
      PetscEventPerfInfo before, after;

      PetscCall(PetscLogEventGetPerfInfo(0, event, &before));
      if (pass)
        MatTestBoth(MatProductNumeric, D[k], E[k]);
      PetscCall(PetscLogEventGetPerfInfo(0, event, &after));
      MatTestCheckSame(E[k], D[k], k ? "P^T (A A)" : "P^T A P");
      /* of others' rows of P alone the host has the values; once the host has written, its are sent */
      if (born && !mirror && size > 1 && (pass == 1 || pass == 2)) MatTestCheck(after.count - before.count <= (k ? 0 : 1), "the operands' values stayed on the device");
    }
    for (int k = 1; k < 3; k++)
      MatTestBoth(MatScale, a[k], h[k], pass % 2 ? 2.0 : -0.75);
    if (pass == 2) { /* the host has the last word */
      PetscInt start, end, first[60];

      for (int k = 0; k < 2; k++) {
        Mat *m = k ? h : a;

        PetscCall(MatGetOwnershipRange(m[2], &start, &end));
        for (PetscInt r = start; r < end; r++) {
          const PetscInt *cols;
          PetscInt        n;

          PetscCall(MatGetRow(m[2], r, &n, &cols, NULL));
          first[r] = n ? cols[0] : -1;
          PetscCall(MatRestoreRow(m[2], r, &n, &cols, NULL));
        }
        for (PetscInt r = start; r < end; r++)
          if (first[r] >= 0) PetscCall(MatSetValue(m[2], r, first[r], 0.125, INSERT_VALUES));
        PetscCall(MatTestAssemble(m[2]));
      }
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&D[k], &E[k]));
  for (int k = 0; k < 3; k++) PetscCall(MatTestDestroy(&a[k], &h[k]));
  PetscCall(MatTestDestroy(&q, &hq));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries anywhere in the matrix, most of them another process's, with repetitions and with negative indices, which
   count for nothing */
static PetscErrorCode Coordinates(void)
{
  const PetscInt    M = 37, N = 41, n = 300;
  PetscInt          i[300], j[300], ii[300], jj[300];
  PetscScalar       v[300];
  Mat               A, H, B;
  const PetscMPIInt rank = MatTestRank();
  unsigned long     s;

  PetscFunctionBeginUser;
  MatTestName = "coordinates";
  s           = 99ul + 31ul * (unsigned long)rank;
  for (int k = 0; k < n; k++) {
    i[k] = (PetscInt)(Next(&s) % (unsigned long)M);
    j[k] = (PetscInt)(Next(&s) % (unsigned long)N);
    if (k % 19 == 7) i[k] = -2;
    if (k % 23 == 9) j[k] = -1;
    if (k % 4 == 3) i[k] = i[k - 1], j[k] = j[k - 1];
  }
  for (int again = 0; again < 2; again++) { /* the second time with a pattern of half the entries */
    const PetscInt m = again ? n / 2 : n;

    for (int k = 0; k < 2; k++) {
      Mat *C = k ? &H : &A;

      if (!again)
        PetscCall(MatTestCreate(PETSC_COMM_WORLD, k ? "aijhybridgpu" : MATAIJ, MatTestUneven(M), MatTestUneven(N), M, N, C));
      PetscCall(PetscArraycpy(ii, i, m)); /* the preallocation may change them */
      PetscCall(PetscArraycpy(jj, j, m));
      PetscCall(MatSetPreallocationCOO(*C, m, ii, jj));
    }
    for (int pass = 0; pass < 3; pass++) {
      for (int k = 0; k < n; k++) v[k] = (PetscScalar)((PetscReal)(Next(&s) % 1000) / 300 - 1.5);
      MatTestBoth(MatSetValuesCOO, A, H, v, pass == 1 ? ADD_VALUES : INSERT_VALUES);
      MatTestCheckSame(H, A, pass == 1 ? "ADD_VALUES" : "INSERT_VALUES");
    }
    PetscCall(CheckType(H, "the type stays"));
    PetscCall(Vectors(A, H));
    MatTestName = "coordinates";
  }
  /* the pattern's entries can be set one by one as well, from any process */
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &B));
  for (int k = 0; k < n / 2; k++) {
    if (i[k] < 0 || j[k] < 0) continue;
    MatTestBoth(MatSetValue, A, B, i[k], j[k], 0.25, ADD_VALUES);
  }
  MatTestBoth(MatTestAssemble, A, B);
  MatTestCheckSame(B, A, "MatSetValue for other processes on a duplicate");
  PetscCall(MatTestDestroy(&A, &H, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own derived types on top of ours, as they lie with -mat_seqaij_type */
static PetscErrorCode Overlaid(void)
{
  Mat       A, H, T, S;
  Vec       d;
  PetscReal na, nh;

  PetscFunctionBeginUser;
  MatTestName = "another derived type";
  PetscCall(Random(40, 40, 5, 3, MATAIJ, &A));
  PetscCall(Random(40, 40, 5, 3, MATAIJPERM, &H));
  MatTestCheckSame(H, A, "entries");
  PetscCall(Vectors(A, H));
  MatTestName = MATAIJPERM;
  PetscCall(MatNorm(A, NORM_FROBENIUS, &na));
  PetscCall(MatNorm(H, NORM_FROBENIUS, &nh));
  MatTestCheck(PetscAbsReal(na - nh) <= ROUNDED(1e-12) * na, "MatNorm");
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatTranspose(H, MAT_INITIAL_MATRIX, &S));
  MatTestCheckSame(S, T, "MatTranspose");
  PetscCall(MatTestDestroy(&T, &S));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &T));
  PetscCall(MatMatMult(H, H, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &S));
  MatTestCheckSame(S, T, "MatMatMult");
  PetscCall(MatTestDestroy(&T, &S));
  for (int c = 0; c < 2; c++) { /* the diagonal is new in most rows */
    Mat M = c ? H : A;

    PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatShift(M, 2.0));
    PetscCall(MatCreateVecs(M, &d, NULL));
    PetscCall(VecSet(d, 0.5));
    PetscCall(MatDiagonalSet(M, d, ADD_VALUES));
    PetscCall(VecDestroy(&d));
  }
  MatTestCheckSame(H, A, "MatShift and MatDiagonalSet");
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P^T A P with an interpolation for each of two unknowns: by a product of ours, unless an algorithm of the parent's is
   named; reused with other values */
static PetscErrorCode SeveralUnknowns(void)
{
  PetscFunctionBeginUser;
  MatTestName = "PtAP with MAIJ";
  for (int named = 0; named < 2; named++) {
    Mat      S, M, A[2], P[2], C[2];
    PetscInt before, after;

    if (named) PetscCall(PetscOptionsSetValue(NULL, "-mat_product_algorithm", "allatonce"));
    for (int k = 0; k < 2; k++) {
      PetscCall(Random(30, 30, 4, 3, MATAIJ, &S));
      PetscCall(MatCreateMAIJ(S, 2, &M));
      PetscCall(MatConvert(M, MATAIJ, MAT_INITIAL_MATRIX, &A[k]));
      if (k) PetscCall(MatConvert(A[k], "aijhybridgpu", MAT_INPLACE_MATRIX, &A[k]));
      PetscCall(MatTestDestroy(&M, &S));
      PetscCall(Random(30, 13, 2, 5, k && named ? "aijhybridgpu" : MATAIJ, &S));
      PetscCall(MatCreateMAIJ(S, 2, &P[k]));
      PetscCall(MatDestroy(&S));
      PetscCall(MatTestEventCount("HybProdNum", &before));
      PetscCall(MatTestProduct(MATPRODUCT_PtAP, A[k], P[k], NULL, &C[k]));
      PetscCall(MatTestEventCount("HybProdNum", &after));
      if (k) MatTestCheck((after > before) == !named, "whose product it is");
    }
    if (!named) PetscCall(CheckType(C[1], "the result is of the type")); /* the parent's is plain AIJ in sequence */
    MatTestCheckSame(C[1], C[0], "first product");
    for (int k = 0; k < 2; k++) {
      PetscCall(MatScale(A[k], -2.5));
      PetscCall(MatProductNumeric(C[k]));
    }
    MatTestCheckSame(C[1], C[0], "again with other values");
    MatTestCheckMult(P[1], P[0], "the interpolation afterwards");
    if (named) PetscCall(PetscOptionsClearValue(NULL, "-mat_product_algorithm"));
    for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&C[k], &P[k], &A[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Multigrid with both types: the same iterations; the second solve sets nothing up; new values reuse the products */
static PetscErrorCode Multigrid(void)
{
  KSP      ksp[2];
  Mat      A[2];
  Vec      x[2], b[2], d;
  PetscInt iterations[2], before[3], after[3];

  PetscFunctionBeginUser;
  MatTestName = "multigrid";
  for (int k = 0; k < 2; k++) {
    PC pc;

    PetscCall(MatTestStencil(3, 9, PETSC_FALSE, 0, k ? "aijhybridgpu" : MATAIJ, &A[k]));
    PetscCall(MatCreateVecs(A[k], &x[k], &b[k]));
    PetscCall(VecSet(b[k], 1));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[k]));
    PetscCall(KSPSetOperators(ksp[k], A[k], A[k]));
    PetscCall(KSPSetType(ksp[k], KSPCG));
    PetscCall(KSPSetTolerances(ksp[k], PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-9, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(ksp[k], &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PCGAMGSetReuseInterpolation(pc, PETSC_TRUE));
    PetscCall(KSPSetFromOptions(ksp[k]));
  }
  PetscCall(CheckType(A[1], "the type of the operator"));
  for (int solve = 0; solve < 4; solve++) {
    if (solve == 2) { /* new values on the same pattern */
      for (int k = 0; k < 2; k++) {
        PetscCall(MatCreateVecs(A[k], &d, NULL));
        PetscCall(VecSet(d, 0.5));
        PetscCall(MatDiagonalSet(A[k], d, ADD_VALUES));
        PetscCall(VecDestroy(&d));
      }
    }
    for (int k = 0; k < 2; k++) {
      KSPConvergedReason reason;

      PetscCall(MatTestEventCount("PCSetUp", &before[0]));
      PetscCall(MatTestEventCount("MatPtAPNumeric", &before[1]));
      PetscCall(MatTestEventCount("HybProdNum", &before[2]));
      PetscCall(VecSet(x[k], 0));
      PetscCall(KSPSolve(ksp[k], b[k], x[k]));
      PetscCall(MatTestEventCount("PCSetUp", &after[0]));
      PetscCall(MatTestEventCount("MatPtAPNumeric", &after[1]));
      PetscCall(MatTestEventCount("HybProdNum", &after[2]));
      PetscCall(KSPGetConvergedReason(ksp[k], &reason));
      PetscCall(KSPGetIterationNumber(ksp[k], &iterations[k]));
      MatTestCheck(reason > 0, "converges");
      if (solve % 2)
        MatTestCheck(after[0] == before[0] && after[1] == before[1] && after[2] == before[2], "nothing is set up when nothing changed");
      else {
        MatTestCheck(after[0] > before[0], "what changed is set up");
        if (k) MatTestCheck(after[2] > before[2], "products of ours");
      }
    }
    if (iterations[0] != iterations[1]) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations: MATAIJ %d, ours %d\n", (int)iterations[0], (int)iterations[1]));
    MatTestCheck(iterations[0] == iterations[1], "iterations");
    PetscCall(VecAXPY(x[1], -1, x[0]));
    {
      PetscReal n, e;

      PetscCall(VecNorm(x[0], NORM_2, &n));
      PetscCall(VecNorm(x[1], NORM_2, &e));
      MatTestCheck(e <= (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-8) * n, "the solution");
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&ksp[k], &x[k], &b[k], &A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, H;

  PetscFunctionBeginUser;
  MatTestCards(argc, argv);
  PetscCall(PetscInitialize(&argc, &argv, NULL, "MATAIJHYBRIDGPU on several processes against MATAIJ\n"));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(Random(83, 47, 6, 1, MATAIJ, &A));
  PetscCall(Random(83, 47, 6, 1, "aijhybridgpu", &H));
  MatTestName = "assembly";
  PetscCall(CheckType(H, "the type"));
  MatTestCheckSame(H, A, "entries");
  PetscCall(Vectors(A, H));
  PetscCall(Transposes(A, H));
  PetscCall(MatTestDestroy(&A, &H));
  PetscCall(Products());
  PetscCall(ResultsAsOperands());
  PetscCall(Coordinates());
  PetscCall(Overlaid());
  PetscCall(SeveralUnknowns());
  PetscCall(Multigrid());
  return MatTestEnd();
}
