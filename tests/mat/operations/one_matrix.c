/*
  Operations on one matrix beside MATAIJ, and what they make: scalings, diagonals, norms, rows' extremes, copies,
  transposes, duplicates and parts of matrices of every origin (pairs.h), square and not, without rows, with NaN and
  infinities among the values. Compared is all that pairs.h sees, of the matrix and of what was made.

TEST np=1
TEST np=1 @emulated -every 6
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 12

-every N: one in N of the operations, others for each origin.
*/
#include "pairs.h"

#define ROWS 12
static MatNullSpace Constant;

typedef enum {
  OP_SCALE_0,
  OP_SCALE_1,
  OP_SCALE_NAN,
  OP_ZERO,
  OP_SHIFT_0,
  OP_SHIFT,
  OP_LEFT,
  OP_RIGHT,
  OP_BOTH,
  OP_SCALE_LEFT_WRONG,
  OP_SCALE_RIGHT_WRONG,
  OP_SCALE_NAN_VECTOR,
  OP_SET_INSERT,
  OP_SET_ADD,
  OP_SET_MAX,
  OP_SET_WRONG,
  OP_NORM_1,
  OP_NORM_FROBENIUS,
  OP_NORM_INFINITY,
  OP_NORM_2,
  OP_DIAGONAL,
  OP_DIAGONAL_WRONG,
  OP_ROWMAXABS,
  OP_ROWMAX,
  OP_ROWMIN,
  OP_ROWSUM,
  OP_COPY_SAME,
  OP_COPY_DIFFERENT,
  OP_COPY_SELF,
  OP_COPY_WRONG,
  OP_TRANSPOSE,
  OP_TRANSPOSE_INPLACE,
  OP_TRANSPOSE_AGAIN,
  OP_TRANSPOSE_FOREIGN,
  OP_DUPLICATE,
  OP_DUPLICATE_PATTERN,
  OP_SUB,
  OP_SUB_RANGE, /* columns out of range, at which MATAIJ does not look: not done */
  OP_SUB_TWICE,
  OP_SUB_EMPTY,
  OPS
} Op;

/* a part of A, and the same part again after A was scaled */
static PetscErrorCode OperateParts(Op op, Mat A, Mat *part)
{
  const PetscInt twice[] = {1, 1};
  PetscInt       m, n;
  IS             rows, columns;
  PetscErrorCode error;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, op == OP_SUB_EMPTY ? 0 : m / 2, 0, 2, &rows));
  if (op == OP_SUB_TWICE)
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 2, twice, PETSC_COPY_VALUES, &columns));
  else
    PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, 0, 1, &columns));
  error = MatCreateSubMatrix(A, rows, columns, MAT_INITIAL_MATRIX, part);
  if (!error) PetscCall(MatScale(A, 2.0));
  if (!error) error = MatCreateSubMatrix(A, rows, columns, MAT_REUSE_MATRIX, part);
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscFunctionReturn(error);
}

static PetscErrorCode Operate(Op op, Mat A, PetscReal out[], Mat *made)
{
  PetscInt           m, n;
  PetscReal          nothing = 0;
  const PetscScalar *a;
  Vec                l, r, d, w;
  PetscErrorCode     error = PETSC_SUCCESS;

  PetscFunctionBeginUser;
  *made = NULL;
  for (int k = 0; k <= ROWS; k++) out[k] = 0;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatCreateVecs(A, &r, &l));
  PetscCall(VecDuplicate(l, &d));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, m + 3, &w));
  for (PetscInt k = 0; k < m; k++) PetscCall(VecSetValue(l, k, (PetscScalar)(k + 2), INSERT_VALUES));
  for (PetscInt k = 0; k < n; k++) PetscCall(VecSetValue(r, k, (PetscScalar)(5 - k), INSERT_VALUES));
  PetscCall(VecSet(w, 3.0));
  switch (op) {
  case OP_SCALE_0: error = MatScale(A, 0.0); break;
  case OP_SCALE_1: error = MatScale(A, 1.0); break;
  case OP_SCALE_NAN: error = MatScale(A, nothing / nothing); break;
  case OP_ZERO: error = MatZeroEntries(A); break;
  case OP_SHIFT_0: error = MatShift(A, 0.0); break;
  case OP_SHIFT: error = MatShift(A, -20.0); break;
  case OP_LEFT: error = MatDiagonalScale(A, l, NULL); break;
  case OP_RIGHT: error = MatDiagonalScale(A, NULL, r); break;
  case OP_BOTH: error = MatDiagonalScale(A, l, r); break;
  case OP_SCALE_LEFT_WRONG: error = MatDiagonalScale(A, w, NULL); break;
  case OP_SCALE_RIGHT_WRONG: error = MatDiagonalScale(A, NULL, w); break;
  case OP_SCALE_NAN_VECTOR:
    if (m > 1) PetscCall(VecSetValue(l, 1, 1 / nothing, INSERT_VALUES));
    PetscCall(VecSetValue(r, 2, 0.0, INSERT_VALUES));
    error = MatDiagonalScale(A, l, r);
    break;
  case OP_SET_INSERT: error = MatDiagonalSet(A, l, INSERT_VALUES); break;
  case OP_SET_ADD: error = MatDiagonalSet(A, l, ADD_VALUES); break;
  case OP_SET_MAX: error = MatDiagonalSet(A, l, MAX_VALUES); break;
  case OP_SET_WRONG: error = MatDiagonalSet(A, w, ADD_VALUES); break;
  case OP_NORM_1: error = MatNorm(A, NORM_1, out); break;
  case OP_NORM_FROBENIUS: error = MatNorm(A, NORM_FROBENIUS, out); break;
  case OP_NORM_INFINITY: error = MatNorm(A, NORM_INFINITY, out); break;
  case OP_NORM_2: error = MatNorm(A, NORM_2, out); break;
  case OP_DIAGONAL: error = MatGetDiagonal(A, d); break;
  case OP_DIAGONAL_WRONG: error = MatGetDiagonal(A, w); break;
  case OP_ROWMAXABS: error = MatGetRowMaxAbs(A, d, NULL); break;
  case OP_ROWMAX: error = MatGetRowMax(A, d, NULL); break;
  case OP_ROWMIN: error = MatGetRowMin(A, d, NULL); break;
  case OP_ROWSUM: error = MatGetRowSum(A, d); break;
  case OP_COPY_SAME:
  case OP_COPY_DIFFERENT:
    PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, made));
    error = MatCopy(A, *made, op == OP_COPY_SAME ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN);
    break;
  case OP_COPY_SELF: error = MatCopy(A, A, SAME_NONZERO_PATTERN); break;
  case OP_COPY_WRONG: /* fewer entries than promised */
    PetscCall(PairsMakeCOO(((PetscObject)A)->type_name, DIAGONAL, ROWS, ROWS, made));
    error = MatCopy(A, *made, SAME_NONZERO_PATTERN);
    break;
  case OP_TRANSPOSE: error = MatTranspose(A, MAT_INITIAL_MATRIX, made); break;
  case OP_TRANSPOSE_INPLACE: error = MatTranspose(A, MAT_INPLACE_MATRIX, &A); break;
  case OP_TRANSPOSE_AGAIN:
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, made));
    PetscCall(MatSetOption(*made, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatScale(A, 3.0));
    error = MatTranspose(A, MAT_REUSE_MATRIX, made);
    break;
  case OP_TRANSPOSE_FOREIGN:
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, made));
    error = MatTranspose(A, MAT_REUSE_MATRIX, made);
    break;
  case OP_DUPLICATE: error = MatDuplicate(A, MAT_COPY_VALUES, made); break;
  case OP_DUPLICATE_PATTERN: error = MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, made); break;
  case OP_SUB:
  case OP_SUB_TWICE:
  case OP_SUB_EMPTY: error = OperateParts(op, A, made); break;
  default: break;
  }
  if (!error && op >= OP_DIAGONAL && op <= OP_ROWSUM) {
    PetscCall(VecGetArrayRead(d, &a));
    for (PetscInt k = 0; k < m; k++) out[k] = PetscRealPart(a[k]);
    PetscCall(VecRestoreArrayRead(d, &a));
  }
  PetscCall(MatTestDestroy(&l, &r, &d, &w));
  PetscFunctionReturn(error);
}

/* rows and columns of the part of both that is wide (1), tall (2) or without rows (3) */
static PetscErrorCode Shape(Pair *p, int shape)
{
  IS  rows, columns;
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, shape == 3 ? 0 : shape == 2 ? ROWS
                                                                        : 5,
                           0, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, shape == 2 ? 5 : ROWS, 0, 1, &columns));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateSubMatrix(p->m[k], rows, columns, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatDestroy(&p->m[k]));
    p->m[k] = B;
  }
  PetscCall(MatTestDestroy(&rows, &columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* odd: 0 as it is, 1 with NaN, 2 with infinities, 3 with both; shape: 0 square, see Shape() */
static PetscErrorCode TestOperation(Op op, Kind kind, Pattern pattern, int odd, int shape)
{
  PetscReal out[2][ROWS + 1], nothing = 0;
  PetscBool same = PETSC_TRUE;
  char      name[128];
  Pair      p;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "operation %d, pattern %d, %s, odd %d, shape %d", (int)op, (int)pattern, KindNames[kind], odd, shape));
  PetscCall(PairMake(&p, kind, pattern, ROWS, ROWS));
  if (shape) PetscCall(Shape(&p, shape));
  for (int k = 0; k < 2; k++) {
    MatInfo      info;
    PetscScalar *a;

    PetscCall(MatGetInfo(p.m[k], MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(p.m[k], &a));
    if (odd & 1 && info.nz_used > 4) a[3] = nothing / nothing;
    if (odd & 2 && info.nz_used > 4) a[1] = 1 / nothing;
    PetscCall(MatSeqAIJRestoreArray(p.m[k], &a));
    if (!shape) PetscCall(PairsDecorate(p.m[k], Constant));
    if (op == OP_TRANSPOSE_INPLACE && !shape)
      for (int q = 0; q < 3; q++) PetscCall(MatSetOption(p.m[k], q == 0 ? MAT_SPD : q == 1 ? MAT_HERMITIAN
                                                                                           : MAT_SYMMETRIC,
                                                         PETSC_FALSE));
    PetscCall(SeenGet(p.m[k], &p.before[k]));
  }
  for (int k = 0; k < 2; k++) QUIETLY(p.error[k], Operate(op, p.m[k], out[k], &p.out[k]));
  PetscCall(PairsCount((PetscBool)(p.error[0] == p.error[1]), name, "errors"));
  PetscCall(PairsCompare(p.m[0], p.m[1], p.before, name));
  for (PetscInt k = 0; k <= ROWS; k++) same = (PetscBool)(same && PairsScalarsAgree(out[0][k], out[1][k], PetscIsInfOrNanReal(out[0][k]) ? 0 : PetscAbsReal(out[0][k])));
  PetscCall(PairsCount(same, name, "numbers"));
  if (p.out[0] && p.out[1] && !p.error[0] && !p.error[1]) PetscCall(PairsCompare(p.out[0], p.out[1], NULL, "what it made"));
  PetscCall(PairDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt every = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Operations on one matrix\n"));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &Constant));
  PairsCounts    = PETSC_TRUE;
  PairsBlockSize = 2;
  PairsRoom      = ROWS;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  for (int op = 0; op < OPS; op++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int odd = 0; odd < 4; odd++)
        for (int shape = 0; shape < 4; shape++) {
          if ((op + kind + odd + shape) % every) continue;
          /* PETSc compares functions then, and goes entry by entry */
          if (op == OP_COPY_WRONG && (shape || kind == HOSTMADE || kind == PROMOTED || kind == LOCKED || kind == CONVERTED)) continue;
          /* MATAIJ writes past the diagonal */
          if (PETSC_VERSION_LT(3, 25, 0) && shape == 2 && op >= OP_SET_INSERT && op <= OP_SET_MAX) continue;
          PetscCall(TestOperation((Op)op, (Kind)kind, (Pattern)((op + odd) % PATTERNS), odd, shape));
        }
  PetscCall(MatNullSpaceDestroy(&Constant));
  return MatTestEnd();
}
