/*
  Faults at the level of Mat: a small PtAP and a small SpMV with the first, the second, the third, ... allocation and
  call of the device failing, on the host and on the emulated device. Each time: a PETSc error, our own bytes back at
  the level before, and operands with which the same operation then succeeds.

  Allocations are those made by this plugin's files (PETSc's own unwinding after its allocations fail is not ours to
  test); on a device also all that passes the hook that it asks before each allocation, CUDA call, launch and primitive.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -every 3
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 12
TEST np=1 @emulated -mat_product_algorithm fused -every 16
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1 -only 12

-every N: the first sixteen, and of the others one in N; of a sequence of operations fewer.
*/
#include "matfault.h"
#include <stdlib.h>

static Mat hostA, hostP, hostC, hostD, hostQ, hostL, hostResult[11];
static IS  rows, cols;
static Vec x, expected, transposed;

/* entries (k mod 7, 3 k mod 11), k < 60, of value 1 + k; C is the caller's also when this fails */
static PetscErrorCode Coordinates(MatType type, Mat *C)
{
  PetscInt    i[60], j[60];
  PetscScalar v[60];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 60; k++) {
    i[k] = k % 7;
    j[k] = (3 * k) % 11;
    v[k] = 1.0 + (PetscReal)k;
  }
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, 7, 11, 7, 11, C));
  PetscCall(MatSetPreallocationCOO(*C, 60, i, j));
  PetscCall(MatSetValuesCOO(*C, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what: 0 a product with a vector, 1 a first PtAP, 2 its numeric part again, 3 a transpose, 4 a submatrix, 5 assembly
   from coordinates, 6 and 7 a dense product and a transposed one, 8 a duplicate of a transpose plus another pattern, 9
   a large transpose as aij, which the device copies to the host, 10 what writes or reads the values of C, begun with
   A's, which has its pattern; 11 a transposed product with a vector; 12 products with a vector between writes by the
   host, after which the values may move to page-locked memory and return: what fails of the move itself is no error.
   Nor is it one where the plan of a Galerkin product's numeric phases finds no memory. */
static PetscErrorCode Operation(int what, Mat A, Mat P, Vec y, Mat *C)
{
  PetscFunctionBeginUser;
  switch (what) {
  case 0:
    PetscCall(MatMult(A, x, y));
    break;
  case 1:
    PetscCall(MatTestProduct(MATPRODUCT_PtAP, A, P, NULL, C));
    break;
  case 2:
    PetscCall(MatProductNumeric(*C));
    break;
  case 3:
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, C));
    break;
  case 4:
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, C));
    break;
  case 5:
    PetscCall(Coordinates("aijhybridgpu", C));
    break;
  case 10: {
    PetscReal norm;

    PetscCall(MatCopy(A, *C, SAME_NONZERO_PATTERN));
    PetscCall(MatScale(*C, 2.0));
    PetscCall(MatDiagonalScale(*C, x, expected));
    PetscCall(MatShift(*C, 0.5));
    PetscCall(MatDiagonalSet(*C, x, ADD_VALUES));
    PetscCall(MatAXPY(*C, -3.0, A, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(*C, NORM_1, &norm));
    PetscCall(MatNorm(*C, NORM_FROBENIUS, &norm));
    PetscCall(MatGetDiagonal(*C, y));
  } break;
  case 12:
    for (int k = 0; k < 5; k++) {
      PetscScalar       *a;
      const PetscScalar *now;
      PetscInt           row = 0;

      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY)); /* also after a failing one of these */
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatMult(A, x, y));
      PetscCall(MatSeqAIJGetArrayRead(A, &now));
      {
        const PetscScalar first = now[0]; /* of the diagonal */

        PetscCall(MatSeqAIJRestoreArrayRead(A, &now));
        if (k < 3) { /* the same values, but who knows that */
          PetscCall(MatSeqAIJGetArray(A, &a));
          a[0] = first;
          PetscCall(MatSeqAIJRestoreArray(A, &a));
        } else
          PetscCall(MatSetValues(A, 1, &row, 1, &row, &first, INSERT_VALUES));
      }
    }
    PetscCall(MatTestAssemble(A));
    PetscCall(MatMult(A, x, y));
    break;
  case 11:
    PetscCall(MatMultTranspose(A, x, y));
    break;
  case 6:
  case 7:
    PetscCall(MatTestProduct(what == 6 ? MATPRODUCT_AB : MATPRODUCT_AtB, A, hostD, NULL, C));
    break;
  default: { /* the transpose is the caller's to destroy */
    Mat T = NULL;

    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
    {
      PetscErrorCode ierr = what == 9 ? MatConvert(T, MATAIJ, MAT_INITIAL_MATRIX, C) : MatDuplicate(T, MAT_COPY_VALUES, C);

      if (!ierr && what == 8) ierr = MatAXPY(*C, 2.0, P, DIFFERENT_NONZERO_PATTERN);
      PetscCall(MatDestroy(&T));
      PetscCall(ierr);
    }
  } break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a product whose plan found no memory goes on without, and says so by a counter */
static PetscErrorCode WithoutPlan(Mat C, PetscBool *without)
{
  PetscErrorCode (*counter)(Mat, const char[], PetscInt64 *);
  PetscInt64 n = 0;
  void      *library;

  PetscFunctionBeginUser;
  PetscCall(MatTestLibrary("-dll_append", &library));
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_USER, "This test wants the plugin by -dll_append");
  *(void **)&counter = dlsym(library, "MatAIJHybridGPUGetProductCounter");
  PetscCheck(counter, PETSC_COMM_SELF, PETSC_ERR_LIB, "The plugin lacks the public functions");
  PetscCall((*counter)(C, "plans without room", &n));
  *without = (PetscBool)(n > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what an operation on C's values has left, whichever that is, host and device have alike */
static PetscErrorCode Sides(Mat C)
{
  PetscBool assembled;
  Mat       H;

  PetscFunctionBeginUser;
  PetscCall(MatAssembled(C, &assembled));
  if (!assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatConvert(C, MATAIJ, MAT_INITIAL_MATRIX, &H));
  MatTestCheckMult(C, H, "both sides after a failure");
  PetscCall(MatDestroy(&H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Faults(int what)
{
  static const char *const names[] = {"MatMult", "a first PtAP", "PtAP again", "MatTranspose", "MatCreateSubMatrix", "MatSetPreallocationCOO and MatSetValuesCOO", "times dense", "transposed times dense", "MatDuplicate and MatAXPY", "MatConvert to aij", "operations on values", "MatMultTranspose", "values sent again"};
  int                      fired = 1, k, n = 0;
  PetscInt                 every = 1;

  PetscFunctionBeginUser;
  MatTestName = names[what];
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  if (what == 10) every *= 3; /* many operations, of which the first calls are much alike */
  for (k = 1; fired && k < 100000; k += k < 16 ? 1 : (int)every, n++) {
    Mat            A, P, C = NULL;
    Vec            y;
    size_t         before, after;
    PetscErrorCode ierr;
    PetscInt       failures;
    PetscBool      without = PETSC_FALSE;

    PetscCall(MatFaultHeld(&before));
    PetscCall(MatConvert(what == 9 ? hostL : hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(what == 8 ? hostQ : hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    PetscCall(VecDuplicate(expected, &y));
    if (what == 10) { /* both live on the device */
      Mat T;

      PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
      PetscCall(MatDestroy(&A));
      PetscCall(MatTranspose(T, MAT_INITIAL_MATRIX, &A));
      PetscCall(MatDestroy(&T));
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
    }
    if (what == 2) {
      PetscCall(MatTestProduct(MATPRODUCT_PtAP, A, P, NULL, &C));
      PetscCall(MatScale(A, 1.0));
    }
    MatFaultTry(k, ierr, fired, Operation(what, A, P, y, &C));
    failures = MatTestFailed;
    if (!ierr && fired && (what == 1 || what == 2)) {
      PetscCall(WithoutPlan(C, &without));
      MatTestCheckSame(C, hostC, "the result without a plan");
    }
    /* a report's timer that fails fails nothing */
    MatTestCheck(fired ? ierr != 0 || what == 12 || without || strstr(MatFault.last, "timer") : ierr == 0, fired ? "a failing call was not noticed" : "an error without a failing call");
    if (ierr && what == 10) PetscCall(Sides(C));
    /* the operands serve */
    if (what != 2 && what != 10) PetscCall(MatDestroy(&C));
    PetscCall(Operation(what, A, P, y, &C));
    if (what == 0 || what == 12)
      VecTestCheckSame(y, expected, "the product after a failure");
    else if (what == 11)
      VecTestCheckSame(y, transposed, "the transposed product after a failure");
    else
      MatTestCheckSame(C, what <= 2 ? hostC : hostResult[what], "the result after a failure");
    PetscCall(MatTestDestroy(&C, &A, &P, &y));
    PetscCall(MatFaultHeld(&after));
    MatTestCheck(after == before, "bytes of ours are held");
    if (MatTestFailed > failures) printf("  call %d failing, %s, error %d: %zu bytes before, %zu after\n", k, MatFault.last, (int)ierr, before, after);
  }
  /* on the host those are the parent's, and of a transpose the private data alone are ours */
  MatTestCheck(n > (!MatFault.device && what == 3 ? 1 : 2) || (!MatFault.device && what > 4), "nothing could fail");
  printf("%s: %d calls and allocations made to fail\n", names[what], n - 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 22, 0)
/* Before 3.22 PETSc gives the arrays of B, which are ours, to the second block of a parallel matrix. What has failed on
   the way can be destroyed, and the same works afterwards. */
static PetscErrorCode Given(void)
{
  const PetscInt garray[7] = {0, 1, 2, 3, 4, 5, 6};
  int            fired = 1, n = 0;

  PetscFunctionBeginUser;
  MatTestName = "MatCreateMPIAIJWithSeqAIJ";
  for (int k = 0; fired && k < 1000; k++) { /* none fails in the first, in which what is made once is made */
    Mat            A, B, P, C = NULL, taken = NULL;
    size_t         before, after;
    PetscErrorCode ierr;
    MatType        type;

    PetscCall(MatFaultHeld(&before));
    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    PetscCall(MatTestProduct(MATPRODUCT_AB, A, P, NULL, &B));
    MatFaultTry(k, ierr, fired, MatCreateMPIAIJWithSeqAIJ(PETSC_COMM_SELF, A, B, garray, &C));
    if (!k) fired = 1;
    n += ierr != PETSC_SUCCESS;
    PetscCall(MatGetType(C, &type));
    if (type) PetscCall(MatMPIAIJGetSeqAIJ(C, &taken, NULL, NULL));
    if (!taken) PetscCall(MatTestDestroy(&A, &B)); /* it failed before */
    MatTestCheck((fired && k) || !ierr, "an error without a failing call");
    PetscCall(MatTestDestroy(&C, &P));
    PetscCall(MatFaultHeld(&after));
    MatTestCheck(after == before, "bytes of ours are held");
    if (after != before) printf("  call %d failing, %s, error %d: %zu bytes before, %zu after\n", k, MatFault.last, (int)ierr, before, after);
  }
  MatTestCheck(n > 0, "nothing could fail");
  printf("%s: %d calls and allocations failed\n", MatTestName, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  PetscInt only = -1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Every allocation and every device call failing in turn\n"));
  MatFaultWatch(PETSC_TRUE);
  PetscCall(MatTestStencil(2, 5, PETSC_FALSE, 0.3, MATAIJ, &hostA));
  PetscCall(MatTestRandom(25, 7, 2, 3, &hostP));
  PetscCall(MatPtAP(hostA, hostP, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &hostC));
  PetscCall(MatCreateVecs(hostA, &x, &expected));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(MatMult(hostA, x, expected));
  PetscCall(VecDuplicate(x, &transposed));
  PetscCall(MatDuplicate(hostA, MAT_COPY_VALUES, &hostResult[10]));
  PetscCall(Operation(10, hostA, NULL, transposed, &hostResult[10]));
  PetscCall(MatMultTranspose(hostA, x, transposed));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, 25, 3, NULL, &hostD));
  PetscCall(MatSetRandom(hostD, NULL));
  PetscCall(MatTestRandom(25, 25, 2, 9, &hostQ));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 9, 2, 2, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 11, 23, -2, &cols));
  PetscCall(MatTranspose(hostA, MAT_INITIAL_MATRIX, &hostResult[3]));
  PetscCall(MatCreateSubMatrix(hostA, rows, cols, MAT_INITIAL_MATRIX, &hostResult[4]));
  PetscCall(Coordinates(MATAIJ, &hostResult[5]));
  PetscCall(MatMatMult(hostA, hostD, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &hostResult[6]));
  PetscCall(MatTransposeMatMult(hostA, hostD, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &hostResult[7]));
  PetscCall(MatDuplicate(hostResult[3], MAT_COPY_VALUES, &hostResult[8]));
  PetscCall(MatAXPY(hostResult[8], 2.0, hostQ, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatTestStencil(2, 60, PETSC_FALSE, 0.3, MATAIJ, &hostL)); /* enough entries for that */
  PetscCall(MatTranspose(hostL, MAT_INITIAL_MATRIX, &hostResult[9]));
  { /* what is made once and kept: staging buffers, the device itself */
    Mat A, P, C = NULL;
    Vec y;

    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    PetscCall(VecDuplicate(expected, &y));
    MatTestBoth(Operation, 0, 1, A, P, y, &C);
    PetscCall(MatTestDestroy(&A, &P, &C, &y));
  }
  PetscCall(MatTestHook(MatFaultAsk, &MatFault.device));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &only, NULL));
  for (int what = 0; what < 13; what++)
    if (only < 0 || what == only) PetscCall(Faults(what));
#if PETSC_VERSION_LT(3, 22, 0)
  if (only < 0 || only == 13) PetscCall(Given());
#endif
  for (int what = 3; what < 11; what++) PetscCall(MatDestroy(&hostResult[what]));
  PetscCall(MatTestDestroy(&hostL, &hostD, &hostQ, &rows, &cols, &hostA, &hostP, &hostC, &x, &expected, &transposed));
  MatFaultWatch(PETSC_FALSE);
  return MatTestEnd();
}
