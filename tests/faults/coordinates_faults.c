/*
  Coordinates in parallel where one process alone fails, at each of its allocations and calls of the device in turn, of
  the pattern or of the values: all processes get an error, none waits for another, and the same matrix takes the same
  coordinates and values afterwards.

TEST np=2 @emulated -every 6
TEST np=2 @emulated -mat_aijhybridgpu_memory mirror -every 20

-every N: the first eight, and of the others one in N
*/
#include "matfault.h"
#include <petsc/private/matimpl.h> /* layouts */
#include <unistd.h>

static int Host; /* allocations of mpicoo.c that failed */

#define ROWS 12
#define COO  (4 * ROWS)

/* of own rows and of the next process's first one */
static void Coordinates(PetscInt start, PetscInt end, PetscInt M, PetscInt i[], PetscInt j[], PetscScalar v[])
{
  for (PetscInt k = 0; k < COO; k++) {
    i[k] = k % 7 == 3 ? end % M : start + k % (end - start);
    j[k] = (start + 5 * k) % M;
    v[k] = 1.0 + (PetscReal)(k % 5);
  }
}

static PetscErrorCode Make(MatType type, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, ROWS, ROWS, PETSC_DETERMINE, PETSC_DETERMINE, A));
  PetscCall(PetscLayoutSetUp((*A)->rmap));
  PetscCall(PetscLayoutSetUp((*A)->cmap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Pattern(Mat A, PetscScalar v[])
{
  PetscInt i[COO], j[COO], start, end, M;

  PetscFunctionBeginUser;
  PetscCall(PetscLayoutGetRange(A->rmap, &start, &end));
  PetscCall(MatGetSize(A, &M, NULL));
  Coordinates(start, end, M, i, j, v);
  PetscCall(MatSetPreallocationCOO(A, COO, i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what fails: a pattern, one of a matrix that has one and values, or values */
typedef enum {
  PATTERN,
  AGAIN,
  VALUES
} Step;

static PetscErrorCode Faults(Mat A, PetscMPIInt faulty, Step step, PetscInt every)
{
  const PetscMPIInt rank = MatTestRank(), size = MatTestSize();
  PetscScalar       v[COO];
  int               errors, fired = 1, failed = 0, n = 0;

  PetscFunctionBeginUser;
  for (int k = 1; fired && k < 10000; k += k < 8 ? 1 : (int)every) {
    Mat            H;
    PetscErrorCode ierr;

    PetscCall(Make("aijhybridgpu", &H));
    if (step != PATTERN) PetscCall(Pattern(H, v));
    if (step == AGAIN) PetscCall(MatSetValuesCOO(H, v, INSERT_VALUES));
    (void)alarm(100);
    MatFaultTry(rank == faulty ? k : 0, ierr, fired, step == VALUES ? MatSetValuesCOO(H, v, INSERT_VALUES) : Pattern(H, v));
    (void)alarm(0);
    if (rank == faulty && fired && strstr(MatFault.last, "mpicoo.c")) Host++;
    PetscCallMPI(MPI_Bcast(&fired, 1, MPI_INT, faulty, PETSC_COMM_WORLD));
    errors = ierr ? 1 : 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    /* what fails where memory is given back, or where the plugin has another way, is nobody's error */
    MatTestCheck(errors == 0 || errors == size, "all processes get the error, or none");
    if (errors != 0 && errors != size) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "call %d: %d of %d processes\n", k, errors, (int)size));
    failed += errors != 0;
    if (errors && step != VALUES) PetscCall(Pattern(H, v));
    PetscCall(MatSetValuesCOO(H, v, INSERT_VALUES));
    MatTestCheckSame(H, A, "the same coordinates afterwards");
    PetscCall(MatDestroy(&H));
    n++;
  }
  MatTestCheck(failed > 2, "calls that failed");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "process %d, %s: %d calls made to fail, %d errors\n", (int)faulty, step == VALUES ? "values" : step == AGAIN ? "pattern again"
                                                                                                                                                       : "pattern",
                        n, failed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A;
  PetscScalar v[COO];
  PetscInt    every = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  MatFaultWatch(PETSC_TRUE);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(Make("aijhybridgpu", &A)); /* the plugin's first use of the device */
  PetscCall(Pattern(A, v));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(MatDestroy(&A));
  PetscCall(MatTestHook(MatFaultAsk, &MatFault.device));
  PetscCall(Make(MATAIJ, &A));
  PetscCall(Pattern(A, v));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  for (PetscMPIInt faulty = 0; faulty < 2; faulty++) {
    MatTestName = faulty ? "the last process fails" : "the first process fails";
    for (int step = PATTERN; step <= VALUES; step++) PetscCall(Faults(A, faulty, (Step)step, every));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &Host, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  MatTestCheck(Host > 0, "no allocation of the host's has failed");
  PetscCall(MatDestroy(&A));
  MatFaultWatch(PETSC_FALSE);
  return MatTestEnd();
}
