/*
  The thread that loads kernels is there where -mat_aijhybridgpu_ahead says so, and nowhere else: matrices without
  entries, as a process's block of others' columns often is, do not bring it.

TEST np=1 @emulated
TEST np=1 @emulated -mat_aijhybridgpu_ahead 0
*/
#define _GNU_SOURCE /* of sched.h */
#include "mattest.h"
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>

/* of this process; the emulated device has none of its own */
static int Threads(void)
{
  DIR *tasks = opendir("/proc/self/task");
  int  n     = 0;

  if (!tasks) return 0;
  for (const struct dirent *d = readdir(tasks); d; d = readdir(tasks)) n += d->d_name[0] != '.';
  (void)closedir(tasks);
  return n;
}

static PetscErrorCode Make(PetscInt each)
{
  const PetscInt n = 50;
  Mat            A, T;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, "aijhybridgpu", n, n, n, n, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSeqAIJSetPreallocation(A, each, NULL));
  for (PetscInt r = 0; r < n && each; r++) PetscCall(MatSetValue(A, r, r, 2, INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatTestDestroy(&T, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool ahead = PETSC_TRUE, device = PETSC_FALSE;
  void     *library = NULL;
  int       before;
  cpu_set_t cores;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  MatTestName = "threads";
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_aijhybridgpu_ahead", &ahead, NULL));
  if (sched_getaffinity(0, sizeof(cores), &cores) || CPU_COUNT(&cores) < 2) ahead = PETSC_FALSE;
  before = Threads();
  PetscCall(Make(1));
  PetscCall(MatTestLibrary("-mat_aijhybridgpu_cuda_library", &library));
  if (library) {
    device = (PetscBool)(dlsym(library, "HybEmulatorBytesToHost") != NULL); /* CUDA has threads of its own */
    dlclose(library);
  }
  if (device && before) {
    PetscCall(Make(0));
    MatTestCheck(Threads() == before + (ahead ? 1 : 0), "a thread that was not asked for, or none that was");
  } else
    MatTestSkipped++;
  return MatTestEnd();
}
