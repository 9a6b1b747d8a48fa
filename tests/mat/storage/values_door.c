/*
  MatSetValues(), MatGetRow() and MatGetValues() go past the door to AIJ's values, and small matrices have few names:
  what the door counts is right before and after, also after an error in between, and names that PETSc asks for are
  found all the same. A value that is written while its array is held is seen by each product; one that nobody is told
  of, because the door stayed shut, would not be on a device.

TEST np=1,2
TEST np=1 -mat_seqaij_type seqaijhybridgpu
TEST np=1,2 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror
*/
#include "mattest.h"
#include <petsc/private/petscimpl.h> /* PetscObjectState */

static PetscErrorCode Block(Mat A, Mat *block)
{
  PetscBool mpi;

  PetscFunctionBeginUser;
  *block = A;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, block, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the product with a vector of ones is the sum of this process's first row */
static PetscErrorCode FirstRow(Mat A, PetscScalar *sum)
{
  Vec                x, y;
  const PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecGetArrayRead(y, &v));
  *sum = v[0];
  PetscCall(VecRestoreArrayRead(y, &v));
  PetscCall(MatTestDestroy(&x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an array is held over products: each one sees what was written before it */
static PetscErrorCode Held(Mat A, const char *what)
{
  Mat          block;
  PetscScalar *a, before, sum;

  PetscFunctionBeginUser;
  PetscCall(Block(A, &block));
  PetscCall(FirstRow(A, &before));
  PetscCall(MatSeqAIJGetArray(block, &a));
  for (int k = 1; k <= 3; k++) {
    a[0] += 1.0;
    PetscCall(FirstRow(A, &sum));
    MatTestCheck(PetscAbsScalar(sum - before - (PetscReal)k) < 1e-6, what);
  }
  PetscCall(MatSeqAIJRestoreArray(block, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an entry where there is room for none, or a column that there is not */
static PetscErrorCode Refused(Mat A, PetscInt row, PetscInt col)
{
  const PetscScalar v[] = {1.0, 1.0};
  const PetscInt    c[] = {row, col};
  PetscErrorCode    ierr;

  PetscFunctionBeginUser;
  QUIETLY(ierr, MatSetValues(A, 1, &row, 2, c, v, ADD_VALUES));
  MatTestCheck(ierr != PETSC_SUCCESS, "the entry is refused");
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Passing(MatType type)
{
  Mat                A, E;
  PetscInt           start, end, n;
  const PetscInt    *cols;
  const PetscScalar *v;
  PetscScalar        value, sum, before;

  PetscFunctionBeginUser;
  PetscCall(MatTestStencil(2, 6, PETSC_FALSE, 0.0, type, &A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  MatTestName = "an array that is held";
  PetscCall(Held(A, "a product sees what was written before it"));
  MatTestName = "entries, then an array that is held";
  PetscCall(FirstRow(A, &before));
  PetscCall(MatSetValue(A, start, start, 2.0, ADD_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(FirstRow(A, &sum));
  MatTestCheck(PetscAbsScalar(sum - before - 2.0) < 1e-6, "a product sees an entry");
  PetscCall(Held(A, "a product sees what was written before it"));
  MatTestName = "an entry that is refused, then an array that is held";
  PetscCall(Refused(A, start, start ? 0 : end - 1)); /* none of the stencil's */
  PetscCall(Held(A, "a product sees what was written before it"));
  PetscCall(Refused(A, start, 36)); /* no column */
  PetscCall(Held(A, "a product sees what was written before it"));
  MatTestName = "a row and values that are read, then an array that is held";
  PetscCall(MatGetRow(A, start, &n, &cols, &v));
  MatTestCheck(n == (start ? 4 : 3) && cols[0] == (start ? start - 6 : 0), "the row");
  PetscCall(MatRestoreRow(A, start, &n, &cols, &v));
  PetscCall(MatGetValues(A, 1, &start, 1, &start, &value));
  MatTestCheck(PetscRealPart(value) > 4.0, "the value");
  PetscCall(Held(A, "a product sees what was written before it"));
  MatTestName = "the same in a product";
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
  PetscCall(Held(E, "a product sees what was written before it"));
  PetscCall(FirstRow(E, &before));
  PetscCall(MatSetValue(E, start, start, 3.0, ADD_VALUES));
  PetscCall(MatTestAssemble(E));
  PetscCall(FirstRow(E, &sum));
  MatTestCheck(PetscAbsScalar(sum - before - 3.0) < 1e-6, "a product sees an entry");
  PetscCall(Held(E, "a product sees what was written before it"));
  PetscCall(MatTestDestroy(&E, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* conversions that PETSc finds by no name of ours, twice (the second time by one), and one that nobody has a way for */
static PetscErrorCode Names(MatType type)
{
  static const char *const types[] = {MATSEQBAIJ, MATBAIJ, MATSEQDENSE, MATDENSE, MATSEQAIJPERM, MATAIJPERM, MATSEQSELL, MATMPIAIJ, MATSEQAIJ};

  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat A[2], B[2], back;

    MatTestName = types[k];
    PetscCall(MatTestStencil(2, 5, PETSC_FALSE, 0.5, MATAIJ, &A[0]));
    PetscCall(MatTestStencil(2, 5, PETSC_FALSE, 0.5, type, &A[1]));
    for (int again = 0; again < 2; again++) {
      for (int s = 0; s < 2; s++) PetscCall(MatConvert(A[s], types[k], MAT_INITIAL_MATRIX, &B[s]));
      {
        MatType          made[2];
        PetscBool        same;
        PetscInt64       states[2];
        PetscObjectState state;

        for (int s = 0; s < 2; s++) {
          PetscCall(MatGetType(B[s], &made[s]));
          PetscCall(PetscObjectStateGet((PetscObject)B[s], &state));
          states[s] = (PetscInt64)state;
        }
        PetscCall(PetscStrcmp(made[0], made[1], &same));
        MatTestCheck(same, "the type");
        MatTestCheck(states[0] == states[1] || !strncmp(types[k], "seqaij", 6) || !strncmp(types[k], "aij", 3), "the state");
      }
      MatTestCheckMult(B[0], B[1], "what was converted");
      PetscCall(MatConvert(B[1], type, MAT_INITIAL_MATRIX, &back));
      MatTestCheckMult(A[0], back, "and back");
      PetscCall(MatDestroy(&back));
      for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&B[s]));
    }
    PetscCall(MatConvert(A[1], types[k], MAT_INPLACE_MATRIX, &A[1]));
    MatTestCheckMult(A[0], A[1], "in place");
    for (int s = 0; s < 2; s++) PetscCall(MatDestroy(&A[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt rank, size;
  PetscBool   plain;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_seqaij_type", &plain));
  PetscCall(Passing(plain ? MATAIJ : "aijhybridgpu"));
  if (size == 1 && !plain) PetscCall(Names("aijhybridgpu"));
  return MatTestEnd();
}
