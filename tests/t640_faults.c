/*
  Faults at the level of Mat: a small PtAP and a small SpMV with the first, the second, the third, ... allocation and
  call of the device failing, on the host and on the emulated device. Each time: a PETSc error, our own bytes back at
  the level before, and operands with which the same operation then succeeds.

  Allocations are those made by this plugin's files (PETSc's own unwinding after its allocations fail is not ours to
  test); on a device also all that passes the hook that it asks before each allocation, CUDA call, launch and primitive.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_memory mirror -every 4
TEST np=1 @emulated -mat_product_algorithm fused -every 8
TEST np=1 @emulated -mat_aijhybridgpu_lock_after 1 -mat_aijhybridgpu_lock_min 1 -only 12

-every N: the first sixteen, and of the others one in N; of a sequence of operations fewer.
*/
#include "matfault.h"
#include <stdlib.h>

#define MAXLIVE 4096
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  PetscErrorCode (*free)(void *, int, const char[], const char[]);
  PetscErrorCode (*realloc)(size_t, int, const char[], const char[], void **);
  void             *live[MAXLIVE];
  size_t            size[MAXLIVE], bytes;
  int               n, count, target;
  const char       *last; /* that was made to fail */
  const HybBackend *device;
} F;

static int Fault(const char *what)
{
  if (!F.target || ++F.count != F.target) return 0;
  F.last = what;
  return 1;
}

static PetscBool Ours(const char *file)
{
  return (PetscBool)(file && (!strncmp(file, "src/sparse/", 11) || !strncmp(file, "src/mat/impls/aijhybridgpu/", 27) || strstr(file, "/src/sparse/") || strstr(file, "/src/mat/impls/aijhybridgpu/")));
}

static PetscErrorCode Malloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  PetscErrorCode ierr;

  if (Ours(file) && Fault(file)) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected");
  }
  ierr = (*F.malloc)(bytes, clear, line, func, file, ptr);
  if (!ierr && *ptr && Ours(file) && F.n < MAXLIVE) {
    F.live[F.n]   = *ptr;
    F.size[F.n++] = bytes;
    F.bytes += bytes;
  }
  return ierr;
}

static void Forget(void *ptr)
{
  for (int k = F.n - 1; ptr && k >= 0; k--) {
    if (F.live[k] != ptr) continue;
    F.bytes -= F.size[k];
    F.live[k] = F.live[--F.n];
    F.size[k] = F.size[F.n];
    return;
  }
}

static PetscErrorCode Free(void *ptr, int line, const char func[], const char file[])
{
  Forget(ptr);
  return (*F.free)(ptr, line, func, file);
}

static PetscErrorCode Realloc(size_t bytes, int line, const char func[], const char file[], void **ptr)
{
  Forget(*ptr);
  return (*F.realloc)(bytes, line, func, file, ptr);
}

/* what the plugin holds here and on the device */
static PetscErrorCode Held(size_t *bytes)
{
  PetscFunctionBeginUser;
  *bytes = F.bytes;
  if (F.device) {
    HybMemoryReport r;
    HybExec         x = {F.device, NULL, HYB_MEM_DEVICE};

    PetscCall(PetscMemzero(&r, sizeof(r)));
    PetscCall(F.device->sync(&x));
    PetscCall(F.device->memory(&r));
    *bytes += r.device_bytes + r.managed_bytes + r.locked_bytes;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a PETSc with debugging keeps a stack of its functions' names, which an error that is caught leaves in disorder */
#if defined(PETSC_USE_DEBUG) && !defined(PETSC_HAVE_THREADSAFETY)
  #define STACK_SAVE    const PetscStack stack = petscstack
  #define STACK_RESTORE petscstack = stack
#else
  #define STACK_SAVE    (void)0
  #define STACK_RESTORE (void)0
#endif

static Mat hostA, hostP, hostC, hostD, hostQ, hostL, hostResult[11];
static IS  rows, cols;
static Vec x, expected, transposed;

/* C, not NULL, is the caller's to destroy also when this fails */
static PetscErrorCode Product(Mat A, Mat P, Mat *C)
{
  PetscFunctionBeginUser;
  PetscCall(MatProductCreate(A, P, NULL, C));
  PetscCall(MatProductSetType(*C, MATPRODUCT_PtAP));
  PetscCall(MatProductSetFill(*C, PETSC_DEFAULT));
  PetscCall(MatProductSetFromOptions(*C));
  PetscCall(MatProductSymbolic(*C));
  PetscCall(MatProductNumeric(*C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  PetscCall(MatCreate(PETSC_COMM_SELF, C));
  PetscCall(MatSetSizes(*C, 7, 11, 7, 11));
  PetscCall(MatSetType(*C, type));
  PetscCall(MatSetPreallocationCOO(*C, 60, i, j));
  PetscCall(MatSetValuesCOO(*C, v, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what: 0 a product with a vector, 1 a first PtAP, 2 its numeric part again, 3 a transpose, 4 a submatrix, 5 assembly
   from coordinates, 6 and 7 a dense product and a transposed one, 8 a duplicate of a transpose plus another pattern, 9
   a large transpose as aij, which the device copies to the host, 10 what writes or reads the values of C, begun with
   A's, which has its pattern; 11 a transposed product with a vector; 12 products with a vector between writes by the
   host, after which the values may move to page-locked memory and return: what fails of the move itself is no error */
static PetscErrorCode Operation(int what, Mat A, Mat P, Vec y, Mat *C)
{
  PetscFunctionBeginUser;
  switch (what) {
  case 0:
    PetscCall(MatMult(A, x, y));
    break;
  case 1:
    PetscCall(Product(A, P, C));
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
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatMult(A, x, y));
    break;
  case 11:
    PetscCall(MatMultTranspose(A, x, y));
    break;
  case 6:
  case 7:
    PetscCall(MatProductCreate(A, hostD, NULL, C));
    PetscCall(MatProductSetType(*C, what == 6 ? MATPRODUCT_AB : MATPRODUCT_AtB));
    PetscCall(MatProductSetFromOptions(*C));
    PetscCall(MatProductSymbolic(*C));
    PetscCall(MatProductNumeric(*C));
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

    PetscCall(Held(&before));
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
      PetscCall(Product(A, P, &C));
      PetscCall(MatScale(A, 1.0));
    }
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    STACK_SAVE;
    F.count  = 0;
    F.last   = "";
    F.target = k;
    ierr     = Operation(what, A, P, y, &C);
    fired    = F.count >= F.target;
    F.target = 0;
    STACK_RESTORE;
    PetscCall(PetscPopErrorHandler());
    failures = MatTestFailed;
    MatTestCheck(fired ? ierr != 0 || what == 12 : ierr == 0, fired ? "a failing call was not noticed" : "an error without a failing call");
    /* the operands serve */
    if (what != 2 && what != 10) PetscCall(MatDestroy(&C));
    PetscCall(Operation(what, A, P, y, &C));
    if (what == 0 || what == 12)
      VecTestCheckSame(y, expected, "the product after a failure");
    else if (what == 11)
      VecTestCheckSame(y, transposed, "the transposed product after a failure");
    else
      MatTestCheckSame(C, what <= 2 ? hostC : hostResult[what], "the result after a failure");
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
    PetscCall(VecDestroy(&y));
    PetscCall(Held(&after));
    MatTestCheck(after == before, "bytes of ours are held");
    if (MatTestFailed > failures) printf("  call %d failing, %s, error %d: %zu bytes before, %zu after\n", k, F.last, (int)ierr, before, after);
  }
  MatTestCheck(n > 2 || (!F.device && what > 4), "nothing could fail"); /* on the host those are the parent's */
  printf("%s: %d calls and allocations made to fail\n", names[what], n - 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt only = -1;
  int      code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Every allocation and every device call failing in turn\n"));
  F.malloc       = PetscTrMalloc;
  F.free         = PetscTrFree;
  F.realloc      = PetscTrRealloc;
  PetscTrMalloc  = Malloc;
  PetscTrFree    = Free;
  PetscTrRealloc = Realloc;
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
    PetscCall(Operation(0, A, P, y, &C));
    PetscCall(Operation(1, A, P, y, &C));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
    PetscCall(MatDestroy(&C));
    PetscCall(VecDestroy(&y));
  }
  PetscCall(MatTestHook(Fault, &F.device));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &only, NULL));
  for (int what = 0; what < 13; what++)
    if (only < 0 || what == only) PetscCall(Faults(what));
  for (int what = 3; what < 11; what++) PetscCall(MatDestroy(&hostResult[what]));
  PetscCall(MatDestroy(&hostL));
  PetscCall(MatDestroy(&hostD));
  PetscCall(MatDestroy(&hostQ));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(MatDestroy(&hostA));
  PetscCall(MatDestroy(&hostP));
  PetscCall(MatDestroy(&hostC));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&expected));
  PetscCall(VecDestroy(&transposed));
  PetscCall(MatTestFinalize(&code));
  PetscTrMalloc  = F.malloc;
  PetscTrFree    = F.free;
  PetscTrRealloc = F.realloc;
  PetscCall(PetscFinalize());
  return code;
}
