/*
  Every operation of the type on a matrix that lives on the device: the result is MATAIJ's, the device did it (the
  operation's own event was logged), and the host did not touch the arrays. For the last the emulator forbids the host
  all managed arrays while the operation runs, and counts the bytes that are copied to the host: row offsets and
  vectors, but no array with an entry for each nonzero. On a real device the events stand for it. Without a device only
  the results are looked at.

TEST np=1
TEST np=1 @emulated
TEST np=1 @emulated -mat_seqaij_type seqaijhybridgpu
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"
#include <petsc/private/petscimpl.h> /* PetscObjectStateGet() */

static PetscBool Device, HandsOff;
static void (*HandsOffFunction)(int);
static unsigned long long (*BytesToHost)(void);

/* Before 3.25 the base class looks for the diagonal entries of each matrix that it is given, on the host: what makes a
   matrix cannot keep it away from j */
#define MAKES_HANDSOFF (HandsOff && PETSC_VERSION_GE(3, 25, 0))

/* the statement, done by the device under the event's name, with at most so many bytes brought to the host */
#define ONDEVICE(event, bytes, statement)      ONDEVICE_(event, bytes, HandsOff, statement)
#define MAKESONDEVICE(event, bytes, statement) ONDEVICE_(event, bytes, MAKES_HANDSOFF, statement)
#define ONDEVICE_(event, bytes, handsoff, statement)                                                                             \
  do {                                                                                                                           \
    PetscInt           before_, after_;                                                                                          \
    unsigned long long bytes_;                                                                                                   \
    PetscCall(MatTestEventCount(event, &before_));                                                                               \
    bytes_ = HandsOff ? BytesToHost() : 0;                                                                                       \
    if (handsoff) HandsOffFunction(1);                                                                                           \
    PetscCall(statement);                                                                                                        \
    if (handsoff) HandsOffFunction(0);                                                                                           \
    PetscCall(MatTestEventCount(event, &after_));                                                                                \
    if (Device)                                                                                                                  \
      MatTestCheck(after_ > before_, "the event " event " of " #statement);                                                      \
    else                                                                                                                         \
      MatTestSkipped++;                                                                                                          \
    if (HandsOff) {                                                                                                              \
      if (BytesToHost() - bytes_ > (unsigned long long)(bytes)) printf("%llu bytes came to the host\n", BytesToHost() - bytes_); \
      MatTestCheck(BytesToHost() - bytes_ <= (unsigned long long)(bytes), "bytes to the host by " #statement);                   \
    }                                                                                                                            \
  } while (0)

/* a product's result, born on the device: A times a matrix with two entries a row */
static PetscErrorCode Born(PetscInt m, PetscInt n, PetscInt seed, Mat *A, Mat *H)
{
  Mat X, Y, HX, HY;

  PetscFunctionBeginUser;
  PetscCall(MatTestRandom(m, n, 12, seed, &X));
  PetscCall(MatTestRandom(n, n, 1, seed + 1, &Y));
  PetscCall(MatShift(Y, 2.0));
  PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &HX));
  PetscCall(MatConvert(Y, "aijhybridgpu", MAT_INITIAL_MATRIX, &HY));
  PetscCall(MatMatMult(X, Y, MAT_INITIAL_MATRIX, PETSC_DEFAULT, A));
  PetscCall(MatMatMult(HX, HY, MAT_INITIAL_MATRIX, PETSC_DEFAULT, H));
  PetscCall(MatTestDestroy(&X, &Y, &HX, &HY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* into G, which lives on the device, from a matrix that the host has made of A */
static PetscErrorCode CopyOfTheHosts(Mat A, Mat G)
{
  Mat H;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &H));
  PetscCall(MatScale(H, 0.5));
  ONDEVICE("HybCopy", 0, MatCopy(H, G, SAME_NONZERO_PATTERN));
  MatTestCheckSame(G, H, "MatCopy of a matrix of the host's");
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestValues(PetscInt m, PetscInt n)
{
  Mat             A, H, B, G, X, HX, Y, HY;
  Vec             l, r, d, e;
  PetscReal       na = 0, nh = 0;
  const NormType  norms[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};
  const PetscInt  offsets = (m + 1) * (PetscInt)sizeof(PetscInt) + 256, partial = 1 << 15;
  const PetscBool square = (PetscBool)(m == n);

  PetscFunctionBeginUser;
  PetscCall(Born(m, n, 11, &A, &H));
  PetscCall(MatCreateVecs(A, &r, &l));
  MatTestBoth(VecSetRandom, l, r, NULL);
  ONDEVICE("HybScale", 0, MatScale(H, -1.5));
  PetscCall(MatScale(A, -1.5));
  MatTestCheckSame(H, A, "MatScale");
  ONDEVICE("HybDiagScale", 0, MatDiagonalScale(H, l, r));
  PetscCall(MatDiagonalScale(A, l, r));
  MatTestCheckSame(H, A, "MatDiagonalScale");
  for (int k = 0; k < 3; k++) { /* partial sums of a fixed grid come to the host */
    ONDEVICE("HybNorm", partial, MatNorm(H, norms[k], &nh));
    PetscCall(MatNorm(A, norms[k], &na));
    MatTestCheck(PetscAbsReal(na - nh) <= ROUNDED(1e-12) * na, "MatNorm");
  }
  MAKESONDEVICE("HybDuplicate", offsets, MatDuplicate(H, MAT_COPY_VALUES, &G));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  MatTestCheckSame(G, B, "MatDuplicate");
  ONDEVICE("HybZero", 0, MatZeroEntries(G));
  PetscCall(MatNorm(G, NORM_FROBENIUS, &nh));
  MatTestCheck(nh == 0, "MatZeroEntries");
  ONDEVICE("HybCopy", 0, MatCopy(H, G, SAME_NONZERO_PATTERN));
  MatTestCheckSame(G, B, "MatCopy");
  PetscCall(CopyOfTheHosts(A, G));
  PetscCall(MatCopy(H, G, SAME_NONZERO_PATTERN));
  ONDEVICE("HybAXPY", 0, MatAXPY(G, 0.75, H, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(B, 0.75, A, SAME_NONZERO_PATTERN));
  MatTestCheckSame(G, B, "MatAXPY same");
  ONDEVICE("HybAXPY", 0, MatAYPX(G, 0.25, H, SAME_NONZERO_PATTERN));
  PetscCall(MatAYPX(B, 0.25, A, SAME_NONZERO_PATTERN));
  MatTestCheckSame(G, B, "MatAYPX same");
  PetscCall(MatDestroy(&G));
  MAKESONDEVICE("HybDuplicate", offsets, MatDuplicate(H, MAT_DO_NOT_COPY_VALUES, &G));
  PetscCall(MatNorm(G, NORM_FROBENIUS, &nh));
  MatTestCheck(nh == 0, "MatDuplicate without values");
  PetscCall(MatDestroy(&G));
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &G));
  PetscCall(MatCopy(A, B, SAME_NONZERO_PATTERN));
  { /* another pattern, then a subset of the sum's */
    PetscCall(Born(m, n, 29, &X, &HX));
    MAKESONDEVICE("HybAXPY", offsets, MatAXPY(G, -2.0, HX, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatAXPY(B, -2.0, X, DIFFERENT_NONZERO_PATTERN));
    MatTestCheckSame(G, B, "MatAXPY different");
    ONDEVICE("HybAXPY", 64, MatAXPY(G, 0.5, HX, SUBSET_NONZERO_PATTERN));
    PetscCall(MatAXPY(B, 0.5, X, SUBSET_NONZERO_PATTERN));
    MatTestCheckSame(G, B, "MatAXPY subset");
    ONDEVICE("HybAXPY", 0, MatAYPX(G, -0.5, HX, SUBSET_NONZERO_PATTERN)); /* which is known now */
    PetscCall(MatAYPX(B, -0.5, X, SUBSET_NONZERO_PATTERN));
    MatTestCheckSame(G, B, "MatAYPX subset");
    PetscCall(Born(m, n, 31, &Y, &HY));
    MAKESONDEVICE("HybAXPY", offsets, MatAXPY(G, -1.0, HY, DIFFERENT_NONZERO_PATTERN)); /* other places */
    PetscCall(MatAXPY(B, -1.0, Y, DIFFERENT_NONZERO_PATTERN));
    for (int k = 0; k < 2; k++) {
      ONDEVICE("HybAXPY", k ? 0 : 64, MatAXPY(G, 0.25, HX, SUBSET_NONZERO_PATTERN));
      PetscCall(MatAXPY(B, 0.25, X, SUBSET_NONZERO_PATTERN));
    }
    MatTestCheckSame(G, B, "MatAXPY subset of a pattern that has grown");
    PetscCall(MatTestDestroy(&X, &HX, &Y, &HY));
  }
  if (square) {
    /* a full diagonal first: the sum with the unit matrix */
    PetscCall(MatDestroy(&X));
    PetscCall(MatTestRandom(n, n, 0, 1, &X));
    PetscCall(MatShift(X, 1.0));
    PetscCall(MatConvert(X, "aijhybridgpu", MAT_INITIAL_MATRIX, &HX));
    MAKESONDEVICE("HybAXPY", offsets, MatAXPY(G, 3.0, HX, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatAXPY(B, 3.0, X, DIFFERENT_NONZERO_PATTERN));
    MatTestCheckSame(G, B, "MatAXPY different, a host-born operand");
    PetscCall(MatTestDestroy(&X, &HX));
    PetscCall(VecDuplicate(l, &d));
    PetscCall(VecDuplicate(l, &e));
    ONDEVICE("HybDiagSet", 64, MatShift(G, 3.0));
    PetscCall(MatShift(B, 3.0));
    MatTestCheckSame(G, B, "MatShift");
    ONDEVICE("HybDiagSet", 64, MatDiagonalSet(G, l, ADD_VALUES));
    PetscCall(MatDiagonalSet(B, l, ADD_VALUES));
    MatTestCheckSame(G, B, "MatDiagonalSet add");
    ONDEVICE("HybDiagSet", 64, MatDiagonalSet(G, r, INSERT_VALUES));
    PetscCall(MatDiagonalSet(B, r, INSERT_VALUES));
    MatTestCheckSame(G, B, "MatDiagonalSet insert");
    ONDEVICE("HybGetDiag", n * sizeof(PetscScalar), MatGetDiagonal(G, d));
    PetscCall(MatGetDiagonal(B, e));
    VecTestCheckSame(d, e, "MatGetDiagonal");
    PetscCall(MatTestDestroy(&d, &e));
  }
  PetscCall(MatTestDestroy(&l, &r, &A, &H, &B, &G));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestTranspose(PetscInt m, PetscInt n)
{
  Mat              A, H, T, S;
  const PetscInt   offsets = (n + 1) * (PetscInt)sizeof(PetscInt) + 1024;
  PetscObjectState state, after;

  PetscFunctionBeginUser;
  PetscCall(Born(m, n, 43, &A, &H));
  PetscCall(PetscObjectStateGet((PetscObject)H, &state));
  MAKESONDEVICE("HybMatTrans", offsets, MatTranspose(H, MAT_INITIAL_MATRIX, &S));
  PetscCall(PetscObjectStateGet((PetscObject)H, &after));
  MatTestCheck(state == after, "MatTranspose leaves its operand's state");
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  MatTestCheckSame(S, T, "MatTranspose");
  for (int k = 0; k < 2; k++) {
    MatTestBoth(MatScale, A, H, 1.25);
    ONDEVICE("HybMatTrans", 0, MatTranspose(H, MAT_REUSE_MATRIX, &S));
    PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &T));
    MatTestCheckSame(S, T, "MatTranspose reuse");
  }
  { /* the transpose in use: products and its own transpose */
    Vec x, y, z;
    Mat U;

    PetscCall(MatCreateVecs(T, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(VecSetRandom(x, NULL));
    PetscCall(MatMult(T, x, y));
    PetscCall(MatMult(S, x, z));
    VecTestCheckSame(z, y, "MatMult of the transpose");
    MAKESONDEVICE("HybMatTrans", (m + 1) * sizeof(PetscInt) + 1024, MatTranspose(S, MAT_INITIAL_MATRIX, &U));
    MatTestCheckSame(U, A, "the transpose's transpose");
    PetscCall(MatTestDestroy(&U, &x, &y, &z));
  }
  { /* the pattern moves: the host inserts an entry */
    for (int k = 0; k < 2; k++) {
      Mat M = k ? H : A;

      PetscCall(MatTestLetIn(M));
      PetscCall(MatSetValue(M, 3, n - 1, 5.0, INSERT_VALUES));
      PetscCall(MatSetValue(M, 3, 0, 7.0, INSERT_VALUES));
      PetscCall(MatTestAssemble(M));
    }
    MAKESONDEVICE("HybMatTrans", offsets, MatTranspose(H, MAT_REUSE_MATRIX, &S));
    PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &T));
    MatTestCheckSame(S, T, "MatTranspose reuse, another pattern");
  }
#if defined(PETSC_HAVE_DEVICE)
  PetscCall(MatBindToCPU(H, PETSC_TRUE));
  MatTestBoth(MatScale, A, H, 0.5);
  PetscCall(MatTranspose(H, MAT_REUSE_MATRIX, &S));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &T));
  MatTestCheckSame(S, T, "MatTranspose reuse, bound to the CPU");
  PetscCall(MatBindToCPU(H, PETSC_FALSE));
#endif
  PetscCall(MatDestroy(&S));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &T));
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &S));
  MAKESONDEVICE("HybMatTrans", offsets, MatTranspose(S, MAT_INPLACE_MATRIX, &S));
  PetscCall(MatTranspose(T, MAT_INPLACE_MATRIX, &T));
  MatTestCheckSame(S, T, "MatTranspose in place");
  PetscCall(MatTestDestroy(&A, &H, &T, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSubMatrix(PetscInt m, PetscInt n)
{
  Mat A, H, S, T;
  IS  rows, cols;

  PetscFunctionBeginUser;
  PetscCall(Born(m, n, 57, &A, &H));
  for (int k = 0; k < 6; k++) {
    PetscInt nrows = k == 0 ? m / 3 : (k == 2 ? 0 : m), general[200];

    PetscCall(ISCreateStride(PETSC_COMM_SELF, nrows, 0, k == 0 ? 3 : 1, &rows));
    if (k < 3)
      PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, n / 5, 1, &cols));
    else if (k == 3)
      PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, 1, 2, &cols));
    else {
      for (PetscInt c = 0; c < n; c++) general[c] = k == 4 ? c : (7 * c + 3) % n; /* 7 divides no n here */
      PetscCall(ISCreateGeneral(PETSC_COMM_SELF, k == 4 ? n - 2 : n, general + (k == 4 ? 1 : 0), PETSC_COPY_VALUES, &cols));
    }
    MAKESONDEVICE("HybSubMat", (nrows + 1) * sizeof(PetscInt) + 512, MatCreateSubMatrix(H, rows, cols, MAT_INITIAL_MATRIX, &S));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &T));
    MatTestCheckSame(S, T, "MatCreateSubMatrix");
    MatTestBoth(MatScale, A, H, 1.25);
    ONDEVICE("HybSubMat", 0, MatCreateSubMatrix(H, rows, cols, MAT_REUSE_MATRIX, &S));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, &T));
    MatTestCheckSame(S, T, "MatCreateSubMatrix reuse");
    PetscCall(MatTestDestroy(&S, &T, &rows, &cols));
  }
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Index sets that are changed where they are, which PETSc tells nobody: a submatrix that is used again is of what they
   hold now, and of another set that holds the same it is again by the device alone */
static PetscErrorCode TestIndices(void)
{
  static const PetscInt general[2][5] = {
    {9, 3, 7, 1, 5},
    {2, 4, 6, 8, 0}
  };
  const PetscInt n = 20;
  Mat            A[2], S[2];
  IS             rows, cols, other;

  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, n, n, n, NULL, &A[0]));
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt c = 0; c < n; c++) PetscCall(MatSetValue(A[0], r, c, (PetscScalar)(1 + 100 * r + c), INSERT_VALUES));
  PetscCall(MatTestAssemble(A[0]));
  PetscCall(MatConvert(A[0], "aijhybridgpu", MAT_INITIAL_MATRIX, &A[1]));
  for (int how = 0; how < 5; how++) {
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 5, general[0], PETSC_COPY_VALUES, &rows));
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 5, general[1], PETSC_COPY_VALUES, &other));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, 6, 2, 1, &cols));
    for (int t = 0; t < 2; t++) PetscCall(MatCreateSubMatrix(A[t], rows, cols, MAT_INITIAL_MATRIX, &S[t]));
    if (how == 0) PetscCall(ISStrideSetStride(cols, 6, 8, 1));
    if (how == 1) PetscCall(ISGeneralSetIndices(rows, 5, general[1], PETSC_COPY_VALUES));
    if (how == 2) PetscCall(ISSort(rows));
    if (how == 3) PetscCall(ISShift(cols, 3, cols));
    if (how == 4) PetscCall(ISCopy(other, rows));
    for (int t = 0; t < 2; t++) PetscCall(MatCreateSubMatrix(A[t], rows, cols, MAT_REUSE_MATRIX, &S[t]));
    MatTestCheckSame(S[1], S[0], "MatCreateSubMatrix reuse of index sets that have changed");
    PetscCall(ISDestroy(&other));
    PetscCall(ISDuplicate(rows, &other));
    for (int t = 0; t < 2; t++) PetscCall(MatScale(A[t], 1.25));
    PetscCall(MatCreateSubMatrix(A[0], other, cols, MAT_REUSE_MATRIX, &S[0]));
    ONDEVICE("HybSubMat", 0, MatCreateSubMatrix(A[1], other, cols, MAT_REUSE_MATRIX, &S[1]));
    MatTestCheckSame(S[1], S[0], "MatCreateSubMatrix reuse of another index set that is alike");
    for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&S[t]));
    PetscCall(MatTestDestroy(&rows, &cols, &other));
  }
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&A[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDense(PetscInt m, PetscInt n)
{
  Mat A, H, B, C, D, X, Y, Z;
  Vec x, y, z;

  PetscFunctionBeginUser;
  PetscCall(Born(m, n, 71, &A, &H));
  for (PetscInt p = 1; p <= 11; p += 5) {
    PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, p, NULL, &B));
    PetscCall(MatSetRandom(B, NULL));
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    ONDEVICE("HybDense", m * p * sizeof(PetscScalar), MatMatMult(H, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    MatTestCheckSame(D, C, "sparse times dense");
    PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, p, NULL, &X));
    PetscCall(MatSetRandom(X, NULL));
    PetscCall(MatTransposeMatMult(A, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &Y));
    ONDEVICE("HybDense", n * p * sizeof(PetscScalar) + 2048, MatTransposeMatMult(H, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &Z));
    MatTestCheckSame(Z, Y, "sparse transposed times dense");
    MatTestBoth(MatScale, A, H, 1.5);
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
    ONDEVICE("HybDense", m * p * sizeof(PetscScalar), MatMatMult(H, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
    MatTestCheckSame(D, C, "sparse times dense again");
    PetscCall(MatTransposeMatMult(A, X, MAT_REUSE_MATRIX, PETSC_DEFAULT, &Y));
    ONDEVICE("HybDense", n * p * sizeof(PetscScalar), MatTransposeMatMult(H, X, MAT_REUSE_MATRIX, PETSC_DEFAULT, &Z));
    MatTestCheckSame(Z, Y, "sparse transposed times dense again");
#if defined(PETSC_HAVE_DEVICE)
    PetscCall(MatBindToCPU(H, PETSC_TRUE));
    PetscCall(MatMatMult(H, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &D));
    MatTestCheckSame(D, C, "sparse times dense, bound to the CPU");
    PetscCall(MatTransposeMatMult(H, X, MAT_REUSE_MATRIX, PETSC_DEFAULT, &Z));
    MatTestCheckSame(Z, Y, "sparse transposed times dense, bound to the CPU");
    PetscCall(MatBindToCPU(H, PETSC_FALSE));
#endif
    PetscCall(MatTestDestroy(&B, &C, &D, &X, &Y, &Z));
  }
  /* products with vectors: the transposed ones go through the explicit transpose */
  PetscCall(MatCreateVecs(A, &y, &x));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecSetRandom(x, NULL));
  ONDEVICE("HybMult", m * sizeof(PetscScalar) + 2048, MatMult(H, y, x)); /* a first one looks at rows */
  PetscCall(MatMult(A, y, x));
  ONDEVICE("HybMult", m * sizeof(PetscScalar), MatMultAdd(H, y, x, x));
  ONDEVICE("HybMult", m * sizeof(PetscScalar), MatResidual(H, x, y, x));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMultHermitianTranspose(A, x, y));
  ONDEVICE("HybMult", n * sizeof(PetscScalar) + 1024, MatMultHermitianTranspose(H, x, z));
  VecTestCheckSame(z, y, "MatMultHermitianTranspose");
  PetscCall(MatMultHermitianTransposeAdd(A, x, y, y));
  ONDEVICE("HybMult", n * sizeof(PetscScalar) + 1024, MatMultHermitianTransposeAdd(H, x, z, z));
  VecTestCheckSame(z, y, "MatMultHermitianTransposeAdd");
  ONDEVICE("HybMult", n * sizeof(PetscScalar) + 1024, MatMultTransposeAdd(H, x, z, z));
  PetscCall(MatMultTransposeAdd(A, x, y, y));
  VecTestCheckSame(z, y, "MatMultTransposeAdd");
  PetscCall(MatTestDestroy(&x, &y, &z, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestCOO(PetscInt m, PetscInt n)
{
  enum {
    N = 4000
  };
  static PetscInt    i[2][N], j[2][N];
  static PetscScalar v[N];
  Mat                M[2], D;
  unsigned long      s       = 815;
  const PetscInt     offsets = (m + 1) * (PetscInt)sizeof(PetscInt) + 1024;
  PetscObjectState   state, after;

  PetscFunctionBeginUser;
  for (int k = 0; k < N; k++) {
    i[0][k] = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)m);
    j[0][k] = (PetscInt)(MATTEST_NEXT(s) % (unsigned long)n);
    if (k % 19 == 3) i[0][k] = -1 - (PetscInt)(MATTEST_NEXT(s) % 5);
    if (k % 23 == 7) j[0][k] = -2;
    if (k % 4 == 3) i[0][k] = i[0][k - 2], j[0][k] = j[0][k - 2];
    i[1][k] = i[0][k];
    j[1][k] = j[0][k];
  }
  for (int t = 0; t < 2; t++) {
    PetscCall(MatTestCreate(PETSC_COMM_SELF, t ? "aijhybridgpu" : MATAIJ, m, n, m, n, &M[t]));
  }
  PetscCall(MatSetPreallocationCOO(M[0], N, i[0], j[0]));
  MAKESONDEVICE("HybCOOPattern", offsets, MatSetPreallocationCOO(M[1], N, i[1], j[1]));
  for (int pass = 0; pass < 5; pass++) {
    const InsertMode mode = pass == 1 || pass == 2 ? ADD_VALUES : INSERT_VALUES;

    for (int k = 0; k < N; k++) v[k] = (PetscScalar)((PetscReal)(MATTEST_NEXT(s) % 1000) / 250.0 - 2.0);
    PetscCall(MatSetValuesCOO(M[0], v, mode));
    ONDEVICE("HybCOOValues", 0, MatSetValuesCOO(M[1], v, mode));
    MatTestCheckSame(M[1], M[0], "MatSetValuesCOO");
    PetscCall(PetscObjectStateGet((PetscObject)M[1], &state));
    MatTestCheckMult(M[1], M[0], "MatMult after MatSetValuesCOO");
    PetscCall(PetscObjectStateGet((PetscObject)M[1], &after));
    MatTestCheck(state == after, "MatMult leaves the state");
    if (pass == 3) {                     /* the host writes an entry that is there */
      PetscInt r = i[0][0], c = j[0][0]; /* sorted by now: negative ones are first */

      for (int k = 0; k < N && (r < 0 || c < 0); k++) r = i[1][k], c = j[1][k];
      for (int t = 0; t < 2; t++) {
        PetscCall(MatSetValue(M[t], r, c, 41.0, INSERT_VALUES));
        PetscCall(MatTestAssemble(M[t]));
      }
      MatTestCheckSame(M[1], M[0], "MatSetValues after MatSetValuesCOO");
      MatTestCheckMult(M[1], M[0], "MatMult after MatSetValues");
      MatTestBoth(MatSetValuesCOO, M[0], M[1], v, ADD_VALUES);
      MatTestCheckSame(M[1], M[0], "MatSetValuesCOO after MatSetValues");
      /* once more from the beginning */
      for (int k = 0; k < N; k++) i[0][k] = i[1][k], j[0][k] = j[1][k];
      PetscCall(MatSetPreallocationCOO(M[0], N, i[0], j[0]));
      MAKESONDEVICE("HybCOOPattern", offsets, MatSetPreallocationCOO(M[1], N, i[1], j[1]));
    }
  }
  /* duplicates take values from the same coordinates; the parent's of 3.18 cannot */
  if (Device || PETSC_VERSION_GE(3, 22, 0)) {
    PetscCall(MatDuplicate(M[1], MAT_DO_NOT_COPY_VALUES, &D));
    PetscCall(MatSetValuesCOO(M[0], v, INSERT_VALUES));
    ONDEVICE("HybCOOValues", 0, MatSetValuesCOO(D, v, INSERT_VALUES));
    MatTestCheckSame(D, M[0], "MatSetValuesCOO of a duplicate");
#if defined(PETSC_HAVE_DEVICE)
    PetscCall(MatBindToCPU(D, PETSC_TRUE));
    MatTestBoth(MatSetValuesCOO, M[0], D, v, ADD_VALUES);
    MatTestCheckSame(D, M[0], "MatSetValuesCOO bound to the CPU");
    PetscCall(MatBindToCPU(D, PETSC_FALSE));
    PetscCall(MatSetValuesCOO(M[0], v, ADD_VALUES));
    ONDEVICE("HybCOOValues", 0, MatSetValuesCOO(D, v, ADD_VALUES));
    MatTestCheckSame(D, M[0], "MatSetValuesCOO no longer bound");
#endif
    PetscCall(MatDestroy(&D));
  }
  for (int t = 0; t < 2; t++) PetscCall(MatDestroy(&M[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is made of rows out of order is as they are: its diagonal, once it is written on the device, and its sum with
   another pattern */
static PetscErrorCode TestDisorderGoesOn(Mat M[2], Mat X[2])
{
  static const PetscInt general[] = {3, 4, 5, 9, 11, 12, 20, 21, 25, 30};
  Mat                   B[2];
  Vec                   d[2], x, y;
  IS                    is;

  PetscFunctionBeginUser;
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 10, general, PETSC_COPY_VALUES, &is));
  for (int made = 0; made < 3; made++) {
    for (int t = 0; t < 2; t++) {
      if (made == 0) PetscCall(MatDuplicate(M[t], MAT_COPY_VALUES, &B[t]));
      if (made == 1) PetscCall(MatTranspose(M[t], MAT_INITIAL_MATRIX, &B[t]));
      if (made == 2) PetscCall(MatCreateSubMatrix(M[t], is, is, MAT_INITIAL_MATRIX, &B[t]));
      if (t == 0) PetscCall(MatCreateVecs(B[t], &x, &y));
      PetscCall(VecDuplicate(y, &d[t]));
      PetscCall(VecSet(x, 1.0));
      PetscCall(MatMult(B[t], x, y));
      PetscCall(MatScale(B[t], 2.0));
      PetscCall(MatScale(B[t], 0.25));
      PetscCall(MatGetDiagonal(B[t], d[t]));
    }
    VecTestCheckSame(d[0], d[1], "MatGetDiagonal of what was made of rows out of order");
    for (int t = 0; t < 2 && made < 2; t++) {
      PetscCall(MatAXPY(B[t], 2.0, X[t], DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatMult(B[t], x, d[t]));
    }
    VecTestCheckSame(d[0], d[1], "MatAXPY to what was made of rows out of order");
    for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&B[t], &d[t]));
    PetscCall(MatTestDestroy(&x, &y));
  }
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of n rows of three entries: what AIJ wraps, copies of both types, vectors of ones and of their products */
static PetscErrorCode OfArrays(PetscInt n, PetscInt i[], PetscInt j[], PetscScalar a[], Mat *W, Mat M[2], Vec *x, Vec *y, Vec d[2])
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 3 * n; k++) a[k] = 1 + k;
  for (PetscInt r = 0; r <= n; r++) i[r] = 3 * r;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n, n, i, j, a, W));
  PetscCall(MatDuplicate(*W, MAT_COPY_VALUES, &M[0]));
  PetscCall(MatConvert(*W, "aijhybridgpu", MAT_INITIAL_MATRIX, &M[1]));
  PetscCall(MatCreateVecs(*W, x, y));
  for (int t = 0; t < 2; t++) PetscCall(VecDuplicate(*y, &d[t]));
  PetscCall(VecSet(*x, 1.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays that a program hands to PETSc may have a row's columns in any order, or one twice. What goes by their order on
   the device is not for them: the diagonal is AIJ's, of a matrix that the device has, and of one that it wrote, and so
   is a sum with another pattern. */
static PetscErrorCode TestDisorder(PetscBool twice)
{
  static const PetscInt ascending[] = {0, 1, 2}, other[] = {5, 0, 3}; /* from the diagonal on, columns go round */
  Mat                   W, M[2], X[2];
  Vec                   d[2], x, y;
  const PetscInt        n = 40;
  PetscInt              i[41], j[120];
  PetscScalar           a[120];

  PetscFunctionBeginUser;
  for (PetscInt r = 0; r < n; r++) {
    for (int k = 0; k < 3; k++) j[3 * r + k] = (r + (r % 3 ? ascending : other)[k]) % n;
    if (twice && r % 3 == 0) j[3 * r] = r;
  }
  PetscCall(OfArrays(n, i, j, a, &W, M, &x, &y, d));
  for (int round = 0; round < 3; round++) {
    for (int t = 0; t < 2; t++) {
      PetscCall(MatMult(M[t], x, y));
      if (round) PetscCall(MatScale(M[t], 2.0));
      if (round) PetscCall(MatScale(M[t], 0.25));
      PetscCall(MatGetDiagonal(M[t], d[t]));
    }
    VecTestCheckSame(d[0], d[1], "MatGetDiagonal of rows out of order");
  }
  PetscCall(MatTestRandom(n, n, 4, 7, &X[0]));
  PetscCall(MatConvert(X[0], "aijhybridgpu", MAT_INITIAL_MATRIX, &X[1]));
  PetscCall(TestDisorderGoesOn(M, X));
  for (int t = 0; t < 2; t++) {
    PetscCall(MatMult(X[t], x, y));
    PetscCall(MatAXPY(M[t], 2.0, X[t], DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatMult(M[t], x, d[t]));
  }
  VecTestCheckSame(d[0], d[1], "MatAXPY to rows out of order");
  for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&M[t], &X[t], &d[t]));
  PetscCall(MatTestDestroy(&x, &y, &W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of a row's diagonal entries, where it has several, one is set, on the host and on the device the same: a matrix that
   the device has a copy of, and one that lives there */
static PetscErrorCode TestDiagonalTwice(PetscBool promoted)
{
  Mat            W, M[2];
  Vec            d[2], x, y;
  const PetscInt n = 40;
  PetscInt       i[41], j[120];
  PetscScalar    a[120];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 3 * n; k++) j[k] = k % 3 == 1 ? (k / 3 + n - 1) % n : k / 3;
  PetscCall(OfArrays(n, i, j, a, &W, M, &x, &y, d));
  for (int t = 0; t < 2; t++) {
    PetscCall(MatMult(M[t], x, y));
    for (int k = 0; k < 2 && promoted; k++) PetscCall(MatScale(M[t], 0.5));
    PetscCall(VecSet(y, 7.0));
    PetscCall(MatDiagonalSet(M[t], y, INSERT_VALUES));
    PetscCall(MatMult(M[t], x, d[t]));
  }
  VecTestCheckSame(d[0], d[1], "MatMult after MatDiagonalSet");
  for (int t = 0; t < 2; t++) PetscCall(MatGetDiagonal(M[t], d[t]));
  VecTestCheckSame(d[0], d[1], "MatGetDiagonal after MatDiagonalSet");
  for (int t = 0; t < 2; t++) PetscCall(MatTestDestroy(&M[t], &d[t]));
  PetscCall(MatTestDestroy(&x, &y, &W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool      mirror;
  void          *library     = NULL;
  const PetscInt shapes[][2] = {
    {90,  90 },
    {70,  120},
    {120, 50 }
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Operations of MATAIJHYBRIDGPU on the device\n"));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &Device));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  { /* opens the device */
    Mat A, H;

    PetscCall(Born(5, 5, 3, &A, &H));
    PetscCall(MatTestDestroy(&A, &H));
  }
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  /* PETSc looks at all arrays in its debugging configuration */
  if (Device && library && !mirror && !PetscDefined(USE_DEBUG)) {
    *(void **)&HandsOffFunction = dlsym(library, "HybEmulatorHandsOff");
    *(void **)&BytesToHost      = dlsym(library, "HybEmulatorBytesToHost");
    HandsOff                    = (PetscBool)(HandsOffFunction && BytesToHost);
    dlclose(library);
  }
  for (int k = 0; k < 3; k++) {
    char name[64];

    PetscCall(PetscSNPrintf(name, sizeof(name), "%d x %d", (int)shapes[k][0], (int)shapes[k][1]));
    MatTestName = name;
    PetscCall(TestValues(shapes[k][0], shapes[k][1]));
    PetscCall(TestTranspose(shapes[k][0], shapes[k][1]));
    PetscCall(TestSubMatrix(shapes[k][0], shapes[k][1]));
    PetscCall(TestDense(shapes[k][0], shapes[k][1]));
    PetscCall(TestCOO(shapes[k][0], shapes[k][1]));
  }
  MatTestName = "index sets";
  PetscCall(TestIndices());
  MatTestName = "rows out of order";
  MatTestBoth(TestDisorder, PETSC_FALSE, PETSC_TRUE);
  MatTestBoth(TestDiagonalTwice, PETSC_FALSE, PETSC_TRUE);
  return MatTestEnd();
}
