/*
  Products with a vector by a copy of the values in the kernel's order (seq/ordered.c), beside MATAIJ: values that are
  changed in every way between products, other patterns, arrays that somebody holds, several processes; that the copy is
  made when it should be, and the same bits with it and without.

TEST np=1 @emulated -mat_aijhybridgpu_tuning mult_ordered=2,ordered_fewest=0 -after 2
TEST np=2+3 @emulated -mat_aijhybridgpu_tuning mult_ordered=2,ordered_fewest=0,comm_together=0,rowgroup_lanes=1
TEST np=+1 @emulated -mat_aijhybridgpu_tuning mult_ordered=1,ordered_fewest=0 -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -mat_aijhybridgpu_tuning mult_ordered=1,ordered_fewest=0,rowgroup_lanes=1 -kind 1
TEST np=+1 @emulated -mat_aijhybridgpu_tuning mult_ordered=1,ordered_fewest=0 -hyb_test_frame_unknown -held 0
TEST np=+1 @emulated -mat_aijhybridgpu_tuning mult_ordered=3,ordered_fewest=0 -mat_aijhybridgpu_lock_after 2 -mat_aijhybridgpu_lock_min 1

  -kind 0: five points, by diagonals; 1: scattered entries, by slices of rows; -after N: products before the
  copy; -held 0: not where values are written that a program holds, which a frame that is not known does not tell
*/
#include "mattest.h"
#include <petsc/private/petscimpl.h>
#include <unistd.h>

static PetscInt  kind, grid = 40; /* points on a side: the method shape wants 1024 rows */
static PetscBool held = PETSC_TRUE;

/* entry k of row i: a column, and a value of time t; *n: how many the row has */
static void Row(PetscInt i, PetscInt shift, PetscInt t, PetscInt *n, PetscInt cols[], PetscScalar vals[])
{
  const PetscInt N = grid * grid, five[] = {-grid, -1, 0, 1, grid};

  *n = 0;
  for (PetscInt k = 0; k < 5; k++) {
    const PetscInt c     = kind ? (i * (k + 1) + 7 * k + shift) % N : i + five[k] * (five[k] == 1 || five[k] == -1 ? 1 + shift : 1);
    PetscBool      there = PETSC_FALSE;

    if (c < 0 || c >= N) continue;
    for (PetscInt q = 0; q < *n; q++)
      if (cols[q] == c) there = PETSC_TRUE;
    if (there) continue;
    cols[*n] = c;
    vals[*n] = (PetscScalar)(1 + ((i + 3 * k + t) % 17) / 16.0);
    (*n)++;
  }
}

static PetscErrorCode Fill(Mat A, PetscInt shift, PetscInt t)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  for (PetscInt i = start; i < end; i++) {
    PetscInt    n, cols[5];
    PetscScalar vals[5];

    Row(i, shift, t, &n, cols, vals);
    PetscCall(MatSetValues(A, 1, &i, n, cols, vals, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(MatType type, PetscInt shift, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, grid * grid, grid * grid, 12, A, &start, &end));
  PetscCall(MatTestLetIn(*A));
  PetscCall(Fill(*A, shift, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* products of each kind, some of them; A of ours, B AIJ's */
static PetscErrorCode Multiply(Mat A, Mat B, PetscInt times, const char *what)
{
  Vec x[2], y[2], z[2], before;

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateVecs(k ? B : A, &x[k], &y[k]));
    PetscCall(VecDuplicate(y[k], &z[k]));
    VecTestFill(x[k], r, (PetscScalar)(1 + (r % 13) / 8.0));
    VecTestFill(y[k], r, (PetscScalar)(r % 5));
  }
  PetscCall(VecDuplicate(y[0], &before));
  for (PetscInt t = 0; t < times; t++) {
    PetscBool same;

    PetscCall(MatMult(A, x[0], z[0]));
    PetscCall(MatMult(B, x[1], z[1]));
    PetscCall(VecTestSame(z[0], z[1], what, __FILE__, __LINE__));
    if (t) {
      PetscCall(VecEqual(before, z[0], &same));
      MatTestCheck(same, "the same bits each time");
    }
    PetscCall(VecCopy(z[0], before));
    PetscCall(MatMultAdd(A, x[0], y[0], z[0]));
    PetscCall(MatMultAdd(B, x[1], y[1], z[1]));
    PetscCall(VecTestSame(z[0], z[1], what, __FILE__, __LINE__));
    PetscCall(MatMultTranspose(A, x[0], z[0]));
    PetscCall(MatMultTranspose(B, x[1], z[1]));
    PetscCall(VecTestSame(z[0], z[1], what, __FILE__, __LINE__));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&x[k], &y[k], &z[k]));
  PetscCall(VecDestroy(&before));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const Ways[] = {"nothing", "MatScale", "MatSetValues", "MatShift", "MatDiagonalScale", "MatZeroEntries", "MatCopy", "MatAXPY", "arrays of the host", "an array that is held", "MatZeroRows", "another pattern", "coordinates", "a state that is increased", "MatHeaderReplace", "MatConvert to AIJ and back", "bound to the CPU and no longer"};
#define WAYS ((int)PETSC_STATIC_ARRAY_LENGTH(Ways))

static PetscErrorCode HostArrays(Mat M, PetscScalar factor)
{
  Mat          blocks[2] = {M, NULL};
  PetscBool    seq;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)M, MATSEQAIJ, &seq));
  if (!seq) PetscCall(MatMPIAIJGetSeqAIJ(M, &blocks[0], &blocks[1], NULL));
  for (int b = 0; b < 2 && blocks[b]; b++) {
    MatInfo info;

    PetscCall(MatGetInfo(blocks[b], MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(blocks[b], &a));
    for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] *= factor;
    PetscCall(MatSeqAIJRestoreArray(blocks[b], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same to both */
static PetscErrorCode Change(Mat M, int way, Mat other, PetscInt t)
{
  PetscFunctionBeginUser;
  switch (way) {
  case 1: PetscCall(MatScale(M, 1.5)); break;
  case 2: PetscCall(Fill(M, 0, t)); break;
  case 3: PetscCall(MatShift(M, 0.25)); break;
  case 4: {
    Vec l, r;

    PetscCall(MatCreateVecs(M, &r, &l));
    VecTestFill(l, i, (PetscScalar)(1 + (i % 3)));
    VecTestFill(r, i, (PetscScalar)(2 - (i % 2) * 0.5));
    PetscCall(MatDiagonalScale(M, l, r));
    PetscCall(MatTestDestroy(&l, &r));
    break;
  }
  case 5: PetscCall(MatZeroEntries(M)); break;
  case 6: PetscCall(MatCopy(other, M, SAME_NONZERO_PATTERN)); break;
  case 7: PetscCall(MatAXPY(M, 0.5, other, SAME_NONZERO_PATTERN)); break;
  case 8: PetscCall(HostArrays(M, 0.75)); break;
  case 10: {
    PetscInt start, end;

    PetscCall(MatGetOwnershipRange(M, &start, &end));
    PetscCall(MatSetOption(M, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    PetscCall(MatZeroRows(M, end > start, &start, 3.0, NULL, NULL));
    break;
  }
  case 11: PetscCall(Fill(M, 1, t)); break;
  case 12: {
    PetscInt     start, end, n = 0, *ci, *cj;
    PetscScalar *v;

    PetscCall(MatGetOwnershipRange(M, &start, &end));
    PetscCall(PetscMalloc3(5 * (end - start), &ci, 5 * (end - start), &cj, 5 * (end - start), &v));
    for (PetscInt i = start; i < end; i++) {
      PetscInt k;

      Row(i, 0, t, &k, cj + n, v + n);
      for (PetscInt q = 0; q < k; q++) ci[n + q] = i;
      n += k;
    }
    PetscCall(MatSetPreallocationCOO(M, n, ci, cj));
    PetscCall(MatSetValuesCOO(M, v, INSERT_VALUES));
    for (PetscInt q = 0; q < n; q++) v[q] *= 2;
    PetscCall(MatSetValuesCOO(M, v, INSERT_VALUES));
    PetscCall(PetscFree3(ci, cj, v));
    break;
  }
  case 13: PetscCall(PetscObjectStateIncrease((PetscObject)M)); break;
  case 14: {
    Mat B;

    PetscCall(MatDuplicate(M, MAT_COPY_VALUES, &B));
    PetscCall(MatScale(B, 0.5));
    PetscCall(MatHeaderReplace(M, &B));
    break;
  }
  case 15: {
    PetscBool ours;

    PetscCall(PetscObjectTypeCompareAny((PetscObject)M, &ours, "seqaijhybridgpu", "mpiaijhybridgpu", ""));
    PetscCall(MatConvert(M, MATAIJ, MAT_INPLACE_MATRIX, &M));
    PetscCall(MatScale(M, 1.25));
    if (ours) PetscCall(MatConvert(M, "aijhybridgpu", MAT_INPLACE_MATRIX, &M));
    break;
  }
  case 16:
    PetscCall(MatBindToCPU(M, PETSC_TRUE));
    PetscCall(HostArrays(M, 1.5));
    PetscCall(MatBindToCPU(M, PETSC_FALSE));
    break;
  default: break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a program writes values that it holds, between products */
static PetscErrorCode Held(Mat M[])
{
  Mat               own[2] = {M[0], M[1]};
  PetscScalar      *a[2];
  const PetscMPIInt size = MatTestSize();

  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) {
    if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(M[k], &own[k], NULL, NULL));
    PetscCall(MatSeqAIJGetArray(own[k], &a[k]));
  }
  for (PetscInt t = 0; t < 4; t++) {
    for (int k = 0; k < 2; k++) a[k][t] = 9 + t;
    PetscCall(Multiply(M[0], M[1], 1, "values that are held"));
  }
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJRestoreArray(own[k], &a[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* after each of these ways each other one, with few and with many products in between */
static PetscErrorCode RunWays(PetscInt often)
{
  PetscFunctionBeginUser;
  for (int first = 0; first < WAYS; first++) {
    Mat M[2], other[2];

    for (int k = 0; k < 2; k++) {
      PetscCall(Make(k ? MATAIJ : "aijhybridgpu", 0, &M[k]));
      PetscCall(Make(k ? MATAIJ : "aijhybridgpu", 0, &other[k]));
      PetscCall(MatScale(other[k], 3.0));
    }
    PetscCall(Multiply(M[0], M[1], often, "first"));
    for (int second = 0; second < WAYS; second++) {
      const int way = second % 2 ? first : second;

      MatTestName = Ways[way];
      /* another pattern is not the other matrix's any more */
      if ((way == 6 || way == 7) && (first == 11 || first == 12 || first == 3)) continue;
      if (way == 9) {
        if (held) PetscCall(Held(M));
      } else
        for (int k = 0; k < 2; k++) PetscCall(Change(M[k], way, other[k], 1 + second));
      PetscCall(Multiply(M[0], M[1], second % 3 ? often : 1, "afterwards"));
      if (way == 11) break;
    }
    for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&M[k], &other[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static char InfoName[64], InfoFile[80];

/* How many copies this process has made says -info, into a file from here on */
static PetscErrorCode CopiesBegin(void)
{
  const PetscMPIInt rank = MatTestRank();

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(InfoName, sizeof(InfoName), "/tmp/products_ordered-%d", (int)getpid()));
  PetscCall(PetscSNPrintf(InfoFile, sizeof(InfoFile), "%s.%d", InfoName, rank)); /* as PETSc calls it */
  PetscCall(PetscInfoSetFile(InfoName, "w"));
  PetscCall(PetscInfoAllow(PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copies(PetscInt *n)
{
  char  line[512];
  FILE *f;

  PetscFunctionBeginUser;
  (void)fflush(NULL);
  *n = 0;
  f  = fopen(InfoFile, "r");
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot read %s", InfoFile);
  while (fgets(line, sizeof(line), f)) *n += strstr(line, "have a copy of the values") ? 1 : 0;
  (void)fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunWhen(PetscInt after)
{
  Mat      A;
  Vec      x, y;
  PetscInt n;

  PetscFunctionBeginUser;
  MatTestName = "when";
  PetscCall(Make("aijhybridgpu", 0, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (PetscInt t = 0; t < after; t++) PetscCall(MatMult(A, x, y));
  PetscCall(Copies(&n));
  MatTestCheck(!n, "none at first");
  PetscCall(MatMult(A, x, y));
  PetscCall(Copies(&n));
  MatTestCheck(n == 1, "one after so many products");
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatScale(A, 2.0));
  for (PetscInt t = 0; t < after; t++) PetscCall(MatMult(A, x, y));
  PetscCall(Copies(&n));
  MatTestCheck(n == 1, "none where values were applied once");
  PetscCall(MatMult(A, x, y));
  PetscCall(Copies(&n));
  MatTestCheck(n == 2, "and again");
  PetscCall(MatTestDestroy(&A, &x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;
  PetscInt    after = 0, n;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Products by a copy of the values\n"));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-kind", &kind, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-after", &after, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-held", &held, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1 || kind) grid = 24;
  PetscCall(CopiesBegin());
  if (after) PetscCall(RunWhen(after));
  MatTestBoth(RunWays, 1, 4);
  PetscCall(Copies(&n));
  MatTestName = "all";
  MatTestCheck(n > after, "copies were made");
  PetscCall(PetscInfoAllow(PETSC_FALSE));
  (void)remove(InfoFile);
  return MatTestEnd();
}
