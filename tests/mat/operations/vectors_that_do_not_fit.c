/*
  Vectors that a product cannot take: PETSc's MatResidual() asks nothing of them where a type has an operation for it,
  and of those of MatMultAdd() and MatMultTransposeAdd() what all processes have together alone. Residuals beside
  MATAIJ's: errors where it has some, with its codes, but for b in the place of the residual, which is right here; and
  vectors of other layouts are an error, where MATAIJ may read what is not there.

TEST np=1,2
TEST np=1,2 @emulated
*/
#include "mattest.h"

typedef enum {
  RESIDUAL,
  RESIDUAL_IN_B,
  RESIDUAL_IN_X,
  RESIDUAL_SHORT_X,
  RESIDUAL_SHORT_B,
  RESIDUAL_SHORT_R,
  RESIDUAL_LAYOUT_X,
  RESIDUAL_LAYOUT_B,
  RESIDUAL_LAYOUT_R,
  RESIDUAL_UNASSEMBLED,
  ADD_LAYOUT_X,
  ADD_LAYOUT_Y,
  ADD_LAYOUT_Z,
  TRANSPOSE_LAYOUT_X,
  TRANSPOSE_LAYOUT_Y,
  TRANSPOSE_LAYOUT_Z,
  CASES
} Case;
static const char *const names[] = {"a residual", "the residual in the place of b", "the residual in the place of x", "a short x", "a short b", "a short r", "an x of another layout", "a b of another layout", "an r of another layout", "a matrix that is not assembled", "MatMultAdd, an x of another layout", "MatMultAdd, a y of another layout", "MatMultAdd, a z of another layout", "MatMultTransposeAdd, an x of another layout", "MatMultTransposeAdd, a y of another layout", "MatMultTransposeAdd, a z of another layout"};

static PetscErrorCode Vector(PetscInt n, PetscInt N, Vec *v)
{
  PetscInt     start;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(VecSetSizes(*v, n, N));
  PetscCall(VecSetType(*v, VECSTANDARD));
  PetscCall(VecGetOwnershipRange(*v, &start, NULL));
  PetscCall(VecGetLocalSize(*v, &n));
  PetscCall(VecGetArrayWrite(*v, &a));
  for (PetscInt k = 0; k < n; k++) a[k] = (PetscScalar)(1 + (start + k) % 7);
  PetscCall(VecRestoreArrayWrite(*v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 40 rows of five entries; one process has more of `other` than of the matrix */
static PetscErrorCode Try(Case c, MatType type, PetscErrorCode *error, Vec *result)
{
  const PetscInt    N    = 40;
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  PetscInt          start, end;
  Mat               A;
  Vec               x, b, less, other;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, N, N, 5, &A, &start, &end));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt k = 0; k < 5; k++) PetscCall(MatSetValue(A, r, (r + k * k) % N, (PetscScalar)(1 + (r + k) % 5), INSERT_VALUES));
  if (c != RESIDUAL_UNASSEMBLED) PetscCall(MatTestAssemble(A));
  PetscCall(Vector(PETSC_DECIDE, N, &x));
  PetscCall(Vector(PETSC_DECIDE, N, &b));
  PetscCall(Vector(PETSC_DECIDE, N, result));
  PetscCall(Vector(PETSC_DECIDE, N - 11, &less));
  PetscCall(Vector(size == 1 ? N : rank ? N / 2 + 3
                                        : N / 2 - 3,
                   N, &other));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  switch (c) {
  case RESIDUAL_IN_B:
    *error = VecCopy(b, *result);
    if (!*error) *error = MatResidual(A, *result, x, *result);
    break;
  case RESIDUAL_IN_X:
    *error = MatResidual(A, b, x, x);
    break;
  case RESIDUAL_SHORT_X:
  case RESIDUAL_LAYOUT_X:
    *error = MatResidual(A, b, c == RESIDUAL_SHORT_X ? less : other, *result);
    break;
  case RESIDUAL_SHORT_B:
  case RESIDUAL_LAYOUT_B:
    *error = MatResidual(A, c == RESIDUAL_SHORT_B ? less : other, x, *result);
    break;
  case RESIDUAL_SHORT_R:
  case RESIDUAL_LAYOUT_R:
    *error = MatResidual(A, b, x, c == RESIDUAL_SHORT_R ? less : other);
    break;
  case ADD_LAYOUT_X:
  case ADD_LAYOUT_Y:
  case ADD_LAYOUT_Z:
    *error = MatMultAdd(A, c == ADD_LAYOUT_X ? other : x, c == ADD_LAYOUT_Y ? other : b, c == ADD_LAYOUT_Z ? other : *result);
    break;
  case TRANSPOSE_LAYOUT_X:
  case TRANSPOSE_LAYOUT_Y:
  case TRANSPOSE_LAYOUT_Z:
    *error = MatMultTransposeAdd(A, c == TRANSPOSE_LAYOUT_X ? other : x, c == TRANSPOSE_LAYOUT_Y ? other : b, c == TRANSPOSE_LAYOUT_Z ? other : *result);
    break;
  default:
    *error = MatResidual(A, b, x, *result);
  }
  PetscCall(PetscPopErrorHandler());
  PetscCall(MatTestDestroy(&x, &b, &less, &other, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Vectors that a product cannot take\n"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int c = 0; c < CASES; c++) {
    const PetscBool layout = (PetscBool)((c >= RESIDUAL_LAYOUT_X && c <= RESIDUAL_LAYOUT_R) || c >= ADD_LAYOUT_X);
    PetscErrorCode  ours, parents, plain;
    Vec             result, expected;

    MatTestName = names[c];
    if (layout && size == 1) continue;
    PetscCall(Try((Case)c, "aijhybridgpu", &ours, &result));
    /* it reads and writes past arrays of other layouts in some of these */
    if (c < ADD_LAYOUT_X) PetscCall(Try((Case)c, MATAIJ, &parents, &expected));
    if (layout)
      MatTestCheck(ours == PETSC_ERR_ARG_SIZ || ours == PETSC_ERR_ARG_INCOMP, "an error");
    else if (c == RESIDUAL_IN_B) {
      PetscCall(VecDestroy(&expected));
      PetscCall(Try(RESIDUAL, MATAIJ, &plain, &expected));
      MatTestCheck(ours == parents || (!ours && !plain), "an error of MATAIJ's, or none");
      if (!ours) VecTestCheckSame(result, expected, "b - A x");
    } else {
      MatTestCheck(ours == parents, "MATAIJ's error");
      if (c == RESIDUAL) VecTestCheckSame(result, expected, "b - A x");
    }
    PetscCall(VecDestroy(&result));
    if (c < ADD_LAYOUT_X) PetscCall(VecDestroy(&expected));
  }
  return MatTestEnd();
}
