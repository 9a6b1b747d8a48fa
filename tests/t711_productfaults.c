/*
  One process of several runs out of luck in a parallel product: the first, the second, the third, ... allocation and
  call of the device fails there and nowhere else. Each time all processes get an error and none waits for ever;
  afterwards the plugin holds what it held before, and the same operands make the same product.

  Allocations are those made by this plugin's files; on a device also all that passes the hook that it asks before each
  allocation, CUDA call, launch and primitive.

TEST np=2,3 -mat_aijhybridgpu_backend host -every 3
TEST np=2 @emulated -every 97

-every N: the first eight, and of the others one in N.
*/
#include "matfault.h"
#include <stdlib.h>

static PetscMPIInt Rank, Size;

/* again: the numeric phase of a product that is there */
static PetscErrorCode Faults(MatProductType type, PetscBool again, Mat hostA, Mat hostP)
{
  int      fired = 1, k, n = 0;
  PetscInt every = 1;
  Mat      expected;
  char     name[64];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", MatProductTypes[type], again ? " again" : ""));
  MatTestName = name;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(MatTestProduct(type, hostA, hostP, NULL, &expected));
  for (k = 1; fired && k < 100000; k += k < 8 ? 1 : (int)every, n++) {
    const PetscMPIInt victim = (PetscMPIInt)(k % Size);
    Mat               A, P, C = NULL;
    size_t            before, after;
    int               error, errors, held;
    PetscErrorCode    ierr;

    PetscCall(MatFaultHeld(&before));
    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    if (again) {
      PetscCall(MatTestProduct(type, A, P, NULL, &C));
      PetscCall(MatScale(A, 1.0));
    }
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    STACK_SAVE;
    MatFault.count  = 0;
    MatFault.last   = "";
    MatFault.target = Rank == victim ? k : 0;
    ierr            = again ? MatProductNumeric(C) : MatTestProduct(type, A, P, NULL, &C);
    fired           = Rank == victim && MatFault.count >= k;
    MatFault.target = 0;
    STACK_RESTORE;
    PetscCall(PetscPopErrorHandler());
    error = errors = ierr != PETSC_SUCCESS;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(errors == (fired ? (int)Size : 0), fired ? "an error of one process is one of all" : "an error without a failing call");
    if (errors != (fired ? (int)Size : 0)) printf("  call %d of process %d failing, %s: error %d on process %d\n", k, (int)victim, MatFault.last, error, (int)Rank);
    /* the operands serve */
    if (!again) PetscCall(MatDestroy(&C));
    if (again)
      PetscCall(MatProductNumeric(C));
    else
      PetscCall(MatTestProduct(type, A, P, NULL, &C));
    MatTestCheckSame(C, expected, "the result after a failure");
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
    PetscCall(MatFaultHeld(&after));
    held = after != before;
    if (held) printf("  call %d of process %d failing, process %d: %zu bytes before, %zu after\n", k, (int)victim, (int)Rank, before, after);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &held, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(!held, "bytes of ours are held");
  }
  MatTestCheck(n > 2, "nothing could fail");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: up to call %d\n", name, k));
  PetscCall(MatDestroy(&expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows of three points of a grid, and an interpolation from every second one, both with entries of others */
static PetscErrorCode Make(PetscInt n, PetscBool interpolation, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, interpolation ? n / 2 : n, 4, NULL, 4, NULL, A));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    N = interpolation ? n / 2 : n, c[4] = {interpolation ? r / 2 : r, interpolation ? PetscMin(r / 2 + 1, N - 1) : (r + 1) % N, (r + N / 2) % N, (r + 2) % N};
    const PetscScalar v[4] = {2.0, -0.5, 0.25 + 0.001 * (PetscReal)r, 0.125};

    for (int k = 0; k < (interpolation ? 3 : 4); k++) PetscCall(MatSetValue(*A, r, c[k], v[k], ADD_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, P;
  int code = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Every allocation and every device call of one process failing in turn\n"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  MatFaultWatch(PETSC_TRUE);
  PetscCall(Make(24, PETSC_FALSE, &A));
  PetscCall(Make(24, PETSC_TRUE, &P));
  { /* what is made once and kept: staging buffers, the device itself */
    Mat a, p, c;

    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &a));
    PetscCall(MatConvert(P, "aijhybridgpu", MAT_INITIAL_MATRIX, &p));
    PetscCall(MatTestProduct(MATPRODUCT_PtAP, a, p, NULL, &c));
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&p));
    PetscCall(MatDestroy(&c));
  }
  PetscCall(MatTestHook(MatFaultAsk, &MatFault.device));
  PetscCall(Faults(MATPRODUCT_AB, PETSC_FALSE, A, P));
  PetscCall(Faults(MATPRODUCT_PtAP, PETSC_FALSE, A, P));
  PetscCall(Faults(MATPRODUCT_PtAP, PETSC_TRUE, A, P));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(MatTestFinalize(&code));
  MatFaultWatch(PETSC_FALSE);
  PetscCall(PetscFinalize());
  return code;
}
