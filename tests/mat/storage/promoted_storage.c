/*
  Matrices that the host assembled and that operations write afterwards, against MATAIJ: the first operation is done on
  both sides, the second in a row moves the matrix to the device's storage (MatScale() of a large one the first), and
  the host's way leads back, with the options, stored values and inodes of before. Object state and pattern state tell
  nothing of it. Where nothing is promoted (no device, mirror mode) the results are the same.

TEST np=1,2
TEST np=1 @emulated
TEST np=2 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=2 @emulated -mat_aijhybridgpu_memory mirror -mat_seqaij_type seqaijhybridgpu -only_marks
TEST np=1 @emulated -mat_aijhybridgpu_promote never
TEST np=1 @emulated -mat_aijhybridgpu_managed_limit 0.000000001
*/
#include "mattest.h"
#include <petsc/private/petscimpl.h> /* PetscObjectState */

static PetscBool Expected; /* are matrices promoted in this run? */
static unsigned long long (*BytesToHost)(void);

static PetscErrorCode Diagonal(Mat A, Mat *block)
{
  PetscBool mpi;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi)
    PetscCall(MatMPIAIJGetSeqAIJ(A, block, NULL, NULL));
  else
    *block = A;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where the values are that the host sees */
static PetscErrorCode Values(Mat A, const PetscScalar **a)
{
  Mat                block;
  const PetscScalar *array;

  PetscFunctionBeginUser;
  PetscCall(Diagonal(A, &block));
  PetscCall(MatSeqAIJGetArrayRead(block, &array));
  *a = array;
  PetscCall(MatSeqAIJRestoreArrayRead(block, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one writing operation on both */
static PetscErrorCode Write(int op, Mat A, Mat H, Vec l, Vec r)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    Mat M = k ? H : A;

    switch (op) {
    case 0:
      PetscCall(MatScale(M, 1.25));
      break;
    case 1:
      PetscCall(MatShift(M, 0.5));
      break;
    case 2:
      PetscCall(MatDiagonalScale(M, l, r));
      break;
    case 3:
      PetscCall(MatDiagonalScale(M, NULL, r));
      break;
    case 4:
      PetscCall(MatDiagonalSet(M, l, ADD_VALUES));
      break;
    case 5:
      PetscCall(MatDiagonalSet(M, l, INSERT_VALUES));
      break;
    default:
      PetscCall(MatZeroEntries(M));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Host ways out of promotion */
static PetscErrorCode HostWrite(int way, Mat A, Mat H)
{
  PetscInt start, end, n;
  Mat      b[2];

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatGetSize(A, NULL, &n));
  for (int k = 0; k < 2; k++) {
    Mat M = k ? H : A;

    switch (way) {
    case 0: /* entries of the pattern */
      for (PetscInt row = start; row < end; row += 3) PetscCall(MatSetValue(M, row, row, 4.0 + (PetscReal)(row % 5), ADD_VALUES));
      break;
    case 1: /* new ones */
      for (PetscInt row = start; row < end; row += 5) PetscCall(MatSetValue(M, row, (row + n / 2) % n, 0.25, ADD_VALUES));
      break;
    case 2: /* by the array */
      PetscCall(Diagonal(M, &b[k]));
      {
        PetscScalar *a;
        PetscInt     rows;

        PetscCall(MatSeqAIJGetArray(b[k], &a));
        PetscCall(MatGetLocalSize(b[k], &rows, NULL));
        if (rows) a[0] += 1.0;
        PetscCall(MatSeqAIJRestoreArray(b[k], &a));
        PetscCall(PetscObjectStateIncrease((PetscObject)M));
      }
      break;
    default: { /* rows, of which the pattern is kept: an option that AIJ has beside the arrays */
      PetscInt row = start + (end - start) / 2;

      PetscCall(MatZeroRows(M, 1, &row, 3.0, NULL, NULL));
    }
    }
    PetscCall(MatTestAssemble(M));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values written through the array right after a diagonal scaling, of which a parallel matrix counts its blocks' states
   otherwise than a sequential one does. Of MATAIJ too: with
   -mat_seqaij_type its blocks have our operations. */
static PetscErrorCode CheckMarks(MatType type)
{
  Mat A, D, block;
  Vec l, r;

  PetscFunctionBeginUser;
  MatTestName = "marks";
  PetscCall(MatTestStencil(2, 9, PETSC_FALSE, 0.2, type, &D));
  PetscCall(MatCreateVecs(D, &r, &l));
  PetscCall(VecSet(l, 2.0));
  PetscCall(VecSet(r, 0.25));
  for (int duplicate = 0; duplicate < 2; duplicate++) {
    if (duplicate)
      PetscCall(MatDuplicate(D, MAT_COPY_VALUES, &A));
    else {
      PetscCall(PetscObjectReference((PetscObject)D));
      A = D;
    }
    for (int turn = 0; turn < 3; turn++) {
      Mat          now;
      PetscScalar *a;
      MatInfo      info;

      MatTestCheckMult(A, A, "to the device");
      PetscCall(MatDiagonalScale(A, l, r));
      PetscCall(Diagonal(A, &block));
      PetscCall(MatGetInfo(block, MAT_LOCAL, &info));
      PetscCall(MatSeqAIJGetArray(block, &a));
      for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] *= 3;
      PetscCall(MatSeqAIJRestoreArray(block, &a));
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &now)); /* its values are the host's of now */
      MatTestCheckMult(A, now, "written");
      PetscCall(MatDestroy(&now));
    }
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatTestDestroy(&D, &l, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A result is written by the host: entries that it has, where they are; stored values; all values from a matrix that is
   none of ours; then new entries */
static PetscErrorCode CheckWrittenResult(void)
{
  Mat                A[2], C[2], X[2], B;
  const PetscScalar *a0, *a1;

  PetscFunctionBeginUser;
  MatTestName = "a result written by the host";
  PetscCall(MatTestRandom(90, 80, 9, 3, &A[0]));
  PetscCall(MatTestRandom(80, 70, 5, 4, &X[0]));
  PetscCall(MatConvert(A[0], "aijhybridgpu", MAT_INITIAL_MATRIX, &A[1]));
  PetscCall(MatConvert(X[0], "aijhybridgpu", MAT_INITIAL_MATRIX, &X[1]));
  for (int k = 0; k < 2; k++) PetscCall(MatMatMult(A[k], X[k], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[k]));
  MatTestCheckMult(C[1], C[0], "the product");
  PetscCall(Values(C[1], &a0));
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSetOption(C[k], MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
      if (round == 0) PetscCall(MatStoreValues(C[k]));
      for (PetscInt r = 1; r < 90; r += 4) {
        PetscInt           n;
        const PetscInt    *j;
        const PetscScalar *v;
        PetscInt           cols[80];
        PetscScalar        w[80];

        PetscCall(MatGetRow(C[k], r, &n, &j, &v));
        for (PetscInt e = 0; e < n; e++) {
          cols[e] = j[round == 1 ? n - 1 - e : e]; /* also in another order */
          w[e]    = 0.5 + (PetscReal)(r % 3) + (PetscReal)e / 8;
        }
        PetscCall(MatRestoreRow(C[k], r, &n, &j, &v));
        PetscCall(MatSetValues(C[k], 1, &r, n, cols, w, round ? ADD_VALUES : INSERT_VALUES));
      }
      PetscCall(MatTestAssemble(C[k]));
    }
    PetscCall(Values(C[1], &a1));
    MatTestCheck(a0 == a1, "entries of the pattern are written where they are");
    MatTestCheckSame(C[1], C[0], "written");
    MatTestCheckMult(C[1], C[0], "written");
    if (round == 1) { /* values by way of a matrix of PETSc's own */
      PetscCall(MatDuplicate(C[0], MAT_COPY_VALUES, &B));
      PetscCall(MatScale(B, -2.0));
      for (int k = 0; k < 2; k++) PetscCall(MatCopy(B, C[k], SAME_NONZERO_PATTERN));
      MatTestCheckSame(C[1], C[0], "MatCopy");
      MatTestCheckMult(C[1], C[0], "MatCopy");
      PetscCall(MatScale(B, 3.0));
      for (int k = 0; k < 2; k++) PetscCall(MatConvert(B, k ? "aijhybridgpu" : MATAIJ, MAT_REUSE_MATRIX, &C[k]));
      MatTestCheckSame(C[1], C[0], "MatConvert of the same pattern");
      MatTestCheckMult(C[1], C[0], "MatConvert of the same pattern");
      PetscCall(MatDestroy(&B));
      PetscCall(Values(C[1], &a1));
      MatTestCheck(a0 == a1, "it stays where it is");
      /* written by the array right after: nothing of the copy's own may hide it */
      for (int k = 0; k < 2; k++) {
        PetscScalar *a;

        PetscCall(MatSeqAIJGetArray(C[k], &a));
        a[0] += 4.0;
        PetscCall(MatSeqAIJRestoreArray(C[k], &a));
      }
      MatTestCheckMult(C[1], C[0], "MatConvert, then an array");
    }
  }
  /* stored values outlive the arrays: the base class gets its own */
  PetscCall(MatConvert(C[1], MATAIJ, MAT_INPLACE_MATRIX, &C[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetOption(C[k], MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatScale(C[k], 7.0));
    PetscCall(MatRetrieveValues(C[k]));
  }
  MatTestCheckSame(C[1], C[0], "stored values");
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&A[k], &X[k], &C[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* without zeros, beside A */
static PetscErrorCode TwoVectors(Mat A, Vec *l, Vec *r)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, r, l));
  PetscCall(VecGetOwnershipRange(*l, &start, &end));
  for (PetscInt k = start; k < end; k++) {
    PetscCall(VecSetValue(*l, k, 1.0 + (PetscReal)(k % 7) / 7, INSERT_VALUES));
    PetscCall(VecSetValue(*r, k, 2.0 - (PetscReal)(k % 5) / 5, INSERT_VALUES));
  }
  PetscCall(VecTestAssemble(*l));
  PetscCall(VecTestAssemble(*r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* operations in a row, by which the matrix moves, a way back to the host, and once more round */
static PetscErrorCode CheckWay(int op, int way, PetscBool full, PetscMPIInt size)
{
  static char        name[128];
  Mat                A, H, W, D;
  Vec                l, r, d, e;
  const PetscScalar *a0, *a1, *a2;
  PetscObjectState   s0, s1, s2;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "operation %d, way back %d, %s", op, way, full ? "9 points" : "5 points"));
  MatTestName = name;
  PetscCall(MatTestStencil(2, 9, full, 0.2, MATAIJ, &A));
  PetscCall(MatTestStencil(2, 9, full, 0.2, "aijhybridgpu", &H));
  for (int k = 0; k < 2; k++) { /* of its own storage: the program's options */
    PetscCall(MatSetOption(k ? H : A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    PetscCall(MatSetOption(k ? H : A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  }
  PetscCall(TwoVectors(A, &l, &r));
  MatTestCheckMult(H, A, "assembled");
  PetscCall(Values(H, &a0));

  PetscCall(PetscObjectStateGet((PetscObject)H, &s0));
  PetscCall(Write(op, A, H, l, r));
  PetscCall(PetscObjectStateGet((PetscObject)H, &s1));
  PetscCall(Values(H, &a1));
  MatTestCheck(a0 == a1, "one operation leaves the matrix where it is");
  MatTestCheckMult(H, A, "after one operation");
  {
    PetscObjectState n0, n1;

    PetscCall(MatGetNonzeroState(H, &n0));
    PetscCall(Write(op, A, H, l, r));
    PetscCall(PetscObjectStateGet((PetscObject)H, &s2));
    PetscCall(MatGetNonzeroState(H, &n1));
    PetscCall(Values(H, &a2));
    MatTestCheck((a2 != a0) == (Expected && (size == 1 || op != 1)), /* a parallel MatShift() goes entry by entry */
                 "a second operation in a row moves it, where this is to be");
    MatTestCheck(n0 == n1, "the pattern's state stands");
    MatTestCheck(s2 > s1 && s1 > s0, "the object's state moves as ever");
  }
  MatTestCheckSame(H, A, "after two operations");
  MatTestCheckMult(H, A, "after two operations");
  PetscCall(Write(op, A, H, l, r));
  MatTestCheckMult(H, A, "after three operations");
  PetscCall(VecDuplicate(l, &d));
  PetscCall(VecDuplicate(l, &e));
  VecTestBoth(MatGetDiagonal, A, H, d, e);
  PetscCall(MatTestDestroy(&d, &e));
  PetscCall(MatDuplicate(H, MAT_COPY_VALUES, &D));
  MatTestCheckSame(D, A, "its duplicate");
  PetscCall(MatDestroy(&D));

  PetscCall(HostWrite(way, A, H));
  MatTestCheckSame(H, A, "written on the host");
  MatTestCheckMult(H, A, "written on the host");
  if (way != 2) {
    PetscCall(Values(H, &a1));
    if (way != 1) MatTestCheck(a1 == a0, "its own arrays again");
    /* the option that was set before it moved */
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &W));
    MatTestCheckSame(H, W, "after all");
    PetscCall(MatDestroy(&W));
  }
  /* once more round */
  PetscCall(Write(op, A, H, l, r));
  PetscCall(Write(op, A, H, l, r));
  MatTestCheckMult(H, A, "moved a second time");
  PetscCall(MatConvert(H, MATAIJ, MAT_INPLACE_MATRIX, &H));
  MatTestCheckSame(H, A, "converted in place");
  PetscCall(MatTestDestroy(&l, &r, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* stored values, and a program's own arrays */
static PetscErrorCode CheckStored(void)
{
  Mat         A, H;
  PetscInt    i[] = {0, 2, 4}, j[] = {0, 1, 0, 1};
  PetscScalar a[] = {1, 2, 3, 4}, b[] = {1, 2, 3, 4};

  PetscFunctionBeginUser;
  MatTestName = "stored values";
  PetscCall(MatTestStencil(2, 9, PETSC_FALSE, 0.2, MATAIJ, &A));
  PetscCall(MatTestStencil(2, 9, PETSC_FALSE, 0.2, "aijhybridgpu", &H));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetOption(k ? H : A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatStoreValues(k ? H : A));
  }
  MatTestCheckMult(H, A, "before");
  for (int k = 0; k < 3; k++) PetscCall(Write(0, A, H, NULL, NULL));
  MatTestCheckMult(H, A, "moved");
  MatTestBoth(MatRetrieveValues, A, H);
  MatTestCheckSame(H, A, "retrieved");
  MatTestCheckMult(H, A, "retrieved");
  PetscCall(MatTestDestroy(&A, &H));

  MatTestName = "the program's own arrays";
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 2, 2, i, j, a, &A));
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 2, 2, i, j, b, &H));
  PetscCall(MatConvert(H, "aijhybridgpu", MAT_INPLACE_MATRIX, &H));
  MatTestCheckMult(H, A, "before");
  for (int k = 0; k < 3; k++) PetscCall(Write(0, A, H, NULL, NULL));
  MatTestCheckMult(H, A, "scaled");
  MatTestCheck(b[3] == a[3] && a[3] != 4.0, "are written");
  a[2] = b[2] = 7;
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(PetscObjectStateIncrease((PetscObject)H));
  MatTestCheckMult(H, A, "written by the program");
  PetscCall(MatTestDestroy(&A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the values of a large matrix come from the device: the same bits as the host's own, and counted alike */
static PetscErrorCode CheckLarge(void)
{
  const PetscInt     m = 1450, n = 1400;
  const PetscScalar *a[2];
  PetscObjectState   before[2], after[2];
  PetscInt          *j, start, end, copies = 0, more = 0;
  PetscScalar       *v, *held[2];
  PetscLogDouble     flops[2], work[2];
  PetscBool          same;
  Mat                M[2];

  PetscFunctionBeginUser;
  MatTestName = "large";
  PetscCall(PetscMalloc2(n, &j, n, &v));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestRoom(k ? "aijhybridgpu" : MATAIJ, m, n, m, n, n, &M[k], &start, &end));
    for (PetscInt r = 0; r < m; r++) {
      for (PetscInt c = 0; c < n; c++) {
        j[c] = c;
        v[c] = 1.0 / (1 + (r * 31 + c * 17) % 1009);
      }
      PetscCall(MatSetValues(M[k], 1, &r, n, j, v, INSERT_VALUES));
    }
    PetscCall(MatTestAssemble(M[k]));
  }
  MatTestCheckMult(M[1], M[0], "large");
  /* who holds the values may have written them since the device got them */
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJGetArray(M[k], &held[k]));
  for (int k = 0; k < 2; k++) held[k][0] = 5;
  MatTestCheckMult(M[1], M[0], "large, held and written");
  for (int k = 0; k < 2; k++) {
    held[k][0] = 7;
    PetscCall(MatScale(M[k], 3.0));
  }
  MatTestCheck(held[1][0] == held[0][0] && held[0][0] == 21.0, "large, scaled while held");
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJRestoreArray(M[k], &held[k]));
  MatTestCheckSame(M[1], M[0], "large, scaled while held");
  MatTestCheckMult(M[1], M[0], "large, scaled while held");
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscObjectStateGet((PetscObject)M[k], &before[k]));
    if (k) PetscCall(MatTestEventCount("HybCopyFr", &copies));
    PetscCall(PetscGetFlops(&flops[0]));
    PetscCall(MatScale(M[k], -1.0 / 3));
    PetscCall(PetscGetFlops(&flops[1]));
    work[k] = flops[1] - flops[0];
    if (k) PetscCall(MatTestEventCount("HybCopyFr", &more));
    PetscCall(PetscObjectStateGet((PetscObject)M[k], &after[k]));
    PetscCall(Values(M[k], &a[k]));
  }
  PetscCall(PetscArraycmp(a[0], a[1], (size_t)m * n, &same));
  MatTestCheck(same, "large, scaled");
  MatTestCheck(work[0] == work[1], "large, scaled: its work is logged");
  MatTestCheck(after[0] - before[0] == after[1] - before[1], "large, scaled, counted");
  /* complex: its bits are not the host's */
  if (Expected && !PetscDefined(USE_COMPLEX)) MatTestCheck(more == copies + 1, "large, scaled by the device");
  MatTestCheckMult(M[1], M[0], "large, scaled");
  for (int k = 0; k < 2; k++) PetscCall(MatScale(M[k], 3.0));
  MatTestCheckSame(M[1], M[0], "large, scaled twice");
  MatTestCheckMult(M[1], M[0], "large, scaled twice");
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&M[k]));
  PetscCall(PetscFree2(j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A large matrix that the host made and the device multiplied, on each process: scaled, its values stay on the device.
   After the host has written they come back at each scaling, until two follow each other. */
static PetscErrorCode CheckStays(PetscMPIInt size)
{
  const PetscInt     m = 1450, n = 1400;
  const PetscScalar *a[3];
  PetscInt          *j, start, end, copies = 0, more = 0;
  PetscScalar       *v;
  Mat                M[2];

  PetscFunctionBeginUser;
  MatTestName = "large, first write";
  PetscCall(PetscMalloc2(n + 1, &j, n + 1, &v));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestRoom(k ? "aijhybridgpu" : MATAIJ, m, n, size * m, size * n, n + 1, &M[k], &start, &end));
    for (PetscInt r = start; r < end; r++) {
      const PetscInt first = start / m * n;

      for (PetscInt c = 0; c <= n; c++) {
        j[c] = (first + c) % (size * n);
        v[c] = 1.0 / (1 + (r * 31 + c * 17) % 1009);
      }
      PetscCall(MatSetValues(M[k], 1, &r, size > 1 ? n + 1 : n, j, v, INSERT_VALUES));
    }
    PetscCall(MatTestAssemble(M[k]));
  }
  MatTestCheckMult(M[1], M[0], "large");
  PetscCall(Values(M[1], &a[0]));
  PetscCall(MatScale(M[0], -1.0 / 3));
  PetscCall(MatTestEventCount("HybCopyFr", &copies));
  if (BytesToHost) {
    const unsigned long long before = BytesToHost();

    PetscCall(MatScale(M[1], -1.0 / 3));
    if (Expected) MatTestCheck(BytesToHost() - before < 1000, "large, scaled: nothing comes to the host");
  } else
    PetscCall(MatScale(M[1], -1.0 / 3));
  PetscCall(MatTestEventCount("HybCopyFr", &more));
  PetscCall(Values(M[1], &a[1]));
  MatTestCheck((a[1] != a[0]) == (Expected && !PetscDefined(USE_COMPLEX)), "large, scaled: moves at once, where this is to be");
  if (Expected) MatTestCheck(more == copies, "large, scaled: no copy from the device");
  MatTestCheckMult(M[1], M[0], "large, scaled where it is");
  MatTestCheckSame(M[1], M[0], "large, scaled where it is");
  for (int step = 0; step < 2; step++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSetValue(M[k], start, start / m * n, 2.0 + step, INSERT_VALUES));
      PetscCall(MatTestAssemble(M[k]));
    }
    MatTestCheckMult(M[1], M[0], "large, written by the host");
    for (int k = 0; k < 2; k++) PetscCall(MatScale(M[k], 3.0));
    PetscCall(Values(M[1], &a[2]));
    MatTestCheck(a[2] == a[0], "large, scaled after the host has written: stays");
    MatTestCheckMult(M[1], M[0], "large, written by the host and scaled");
  }
  for (int k = 0; k < 2; k++) PetscCall(MatScale(M[k], 0.5));
  PetscCall(Values(M[1], &a[2]));
  MatTestCheck((a[2] != a[0]) == Expected, "large, scaled twice in a row: moves again");
  MatTestCheckSame(M[1], M[0], "large, scaled twice in a row");
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&M[k]));
  PetscCall(PetscFree2(j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 22, 0)
/* a matrix of the host's, written by two operations */
static PetscErrorCode WrittenBlock(MatType type, PetscInt m, PetscInt n, PetscInt from, PetscInt to, Mat *B)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, m, n, m, n, B));
  PetscCall(MatSeqAIJSetPreallocation(*B, 3, NULL));
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = 0; k < 3; k++) PetscCall(MatSetValue(*B, r, from + (5 * r + 7 * k) % (to - from), (PetscScalar)(1 + r + 3 * k), INSERT_VALUES));
  PetscCall(MatTestAssemble(*B));
  PetscCall(MatTestUse(*B));
  for (int k = 0; k < 2; k++) PetscCall(MatScale(*B, 3.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of such matrices PETSc makes a parallel one, and numbers the columns of the second anew: another pattern, in whose
   place the values lie elsewhere */
static PetscErrorCode CheckBlocks(void)
{
  const PetscInt    m    = 20;
  const PetscMPIInt rank = MatTestRank();
  Mat               M[2], block[2];

  PetscFunctionBeginUser;
  MatTestName = "blocks of a parallel matrix";
  for (int k = 0; k < 2; k++) {
    PetscCall(WrittenBlock(k ? "seqaijhybridgpu" : MATSEQAIJ, m, m, 0, m, &block[0]));
    PetscCall(WrittenBlock(k ? "seqaijhybridgpu" : MATSEQAIJ, m, 2 * m, rank ? 0 : m, rank ? m : 2 * m, &block[1]));
    PetscCall(MatCreateMPIAIJWithSeqAIJ(PETSC_COMM_WORLD, 2 * m, 2 * m, block[0], block[1], NULL, &M[k]));
  }
  MatTestCheckMult(M[1], M[0], "MatMult");
  MatTestCheckMultTranspose(M[1], M[0], "MatMultTranspose");
  for (int k = 0; k < 2; k++) PetscCall(MatScale(M[k], 0.5));
  MatTestCheckMult(M[1], M[0], "MatMult, scaled again");
  for (int k = 0; k < 2; k++) PetscCall(MatDestroy(&M[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* -fp_trap ends a program that divides by zero: what MatScale() by zero does with NaN, AIJ is asked without that. It is
   asked once in a process. */
static PetscErrorCode CheckTraps(void)
{
  Mat M[2], C[2];

  PetscFunctionBeginUser;
  MatTestName = "traps";
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestStencil(2, 6, PETSC_FALSE, 0.0, k ? "aijhybridgpu" : MATAIJ, &M[k]));
    PetscCall(MatTestProduct(MATPRODUCT_AB, M[k], M[k], NULL, &C[k]));
    PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_ON));
    PetscCall(MatScale(C[k], 0.0));
    PetscCall(PetscFPTrapPop());
  }
  MatTestCheckSame(C[1], C[0], "MatScale() by zero");
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&C[k], &M[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscReal   share = 0.5;
  PetscBool   mirror, never, cuda, flg;
  PetscMPIInt size;
  void       *library = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Host-born matrices that move to the device's storage, and back\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_aijhybridgpu_managed_limit", &share, NULL));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_memory", "mirror", &mirror));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_promote", "never", &never));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &cuda));
  Expected = (PetscBool)(cuda && !mirror && !never && share > 0.01);
  PetscCall(PetscLogDefaultBegin());
  PetscCall(MatTestOpenDevice());
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  if (cuda && library) {
    *(void **)&BytesToHost = dlsym(library, "HybEmulatorBytesToHost");
    dlclose(library);
  }
  PetscCall(CheckTraps());
  PetscCall(CheckMarks("aijhybridgpu"));
  PetscCall(CheckMarks(MATAIJ));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-only_marks", &flg));
  if (size == 1) PetscCall(CheckWrittenResult());
  for (int full = 0; full < 2 && !flg; full++)
    for (int op = 0; op < 7; op++)
      for (int way = 0; way < 4; way++) PetscCall(CheckWay(op, way, (PetscBool)full, size));
  if (size == 1) PetscCall(CheckStored());
  if (size == 1) PetscCall(CheckLarge());
  if (!flg) PetscCall(CheckStays(size));
#if PETSC_VERSION_GE(3, 22, 0)
  if (size == 2) PetscCall(CheckBlocks());
#endif
  return MatTestEnd();
}
