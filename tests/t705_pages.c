/*
  Pages of the host that a thread makes while the device computes a result of many rows (storage/pages.c): the first
  product has them made, the next ones find them, and all are right.

TEST np=2 @emulated
TEST np=2 -mat_aijhybridgpu_backend host
*/
#define _GNU_SOURCE
#include "mattest.h"
#include <sched.h>
#if defined(__GLIBC__)
  #include <malloc.h>
#endif
#include <sys/resource.h>

#define ROWS 270000 /* of a process: an array of numbers for these has a MiB */

static PetscMPIInt Rank, Size;

/* faults of this process's other threads, which have nothing else to do */
static long Others(void)
{
  struct rusage all, mine;

  (void)getrusage(RUSAGE_SELF, &all);
  (void)getrusage(RUSAGE_THREAD, &mine);
  return all.ru_minflt - mine.ru_minflt;
}

/* y = A (A x) by hand, A = 2 on the diagonal and 1 five columns from there */
static PetscErrorCode Right(Mat C)
{
  Vec                x, y;
  PetscInt           start, end;
  const PetscScalar *v;
  PetscScalar       *w;
  PetscBool          right = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(C, &x, &y));
  PetscCall(VecGetOwnershipRange(x, &start, &end));
  PetscCall(VecGetArrayWrite(x, &w));
  for (PetscInt r = start; r < end; r++) w[r - start] = r % 11;
  PetscCall(VecRestoreArrayWrite(x, &w));
  PetscCall(MatMult(C, x, y));
  PetscCall(VecGetArrayRead(y, &v));
  for (PetscInt r = start; r < end && right; r++) right = (PetscBool)(v[r - start] == (PetscScalar)(4 * (r % 11) + 4 * ((r + 5) % (ROWS * Size) % 11) + (r + 10) % (ROWS * Size) % 11));
  PetscCall(VecRestoreArrayRead(y, &v));
  MatTestCheck(right, "the square, with a vector");
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int       code = 1;
  cpu_set_t cores;
  PetscBool threads, device;
  PetscInt  start, end;
  long      before;
  Mat       A, C;

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  MatTestName = "pages";
  /* all cores, wherever mpiexec has put this process */
  memset(&cores, 0xff, sizeof(cores));
  (void)sched_setaffinity(0, sizeof(cores), &cores);
  threads = (PetscBool)(!sched_getaffinity(0, sizeof(cores), &cores) && CPU_COUNT(&cores) > 1);
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "host", &device));
  device = (PetscBool)!device;
  for (int times = 0; times < 2; times++) {
    PetscCall(MatTestRoom("aijhybridgpu", ROWS, ROWS, PETSC_DETERMINE, PETSC_DETERMINE, 2, &A, &start, &end));
    for (PetscInt r = start; r < end; r++) {
      PetscCall(MatSetValue(A, r, r, 2, INSERT_VALUES));
      PetscCall(MatSetValue(A, r, (r + 5) % (ROWS * Size), 1, INSERT_VALUES));
    }
    PetscCall(MatTestAssemble(A));
#if defined(__GLIBC__)
    if (!times) (void)malloc_trim(0); /* no pages are left of the assembly */
#else
    threads = PETSC_FALSE;
#endif
    before = Others();
    PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    if (!times && device && threads)
      MatTestCheck(Others() - before >= 256, "a thread has made an array's pages at least");
    else if (!device)
      MatTestCheck(Others() - before < 256, "the host has nothing to do meanwhile");
    PetscCall(Right(C));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
