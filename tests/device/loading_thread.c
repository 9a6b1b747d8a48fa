/*
  The thread that makes a device ready ends with the process, however that ends: by PetscFinalize(), by exit(), by an
  error, in a child of a fork, which has no such thread, and whether it was asked for once or twice. The program starts
  itself again for each way.
*/
#include "hybtest.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* how a process ended that may take a minute; -1: it did not, and was killed */
static int Ended(pid_t child)
{
  int status = 0;

  for (int k = 0; k < 6000; k++) {
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    usleep(10000);
  }
  kill(child, SIGKILL);
  (void)waitpid(child, &status, 0);
  return -1;
}

static PetscErrorCode Ends(const HybExec *x, const char *how)
{
  pid_t child;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(x->backend->expect(0));
  if (!strcmp(how, "exit")) exit(7);
  if (!strcmp(how, "error")) SETERRABORT(PETSC_COMM_SELF, PETSC_ERR_USER, "An error on purpose");
  if (!strcmp(how, "fork")) {
    child = fork();
    if (child == 0) {
      (void)x->backend->expect(0);
      exit(5);
    }
    exit(child > 0 && Ended(child) == 5 ? 9 : 10);
  }
  HybTestCheck(!strcmp(how, "finalize"), "a way to end that is known");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* this program again, as if nobody had started MPI before */
static int Again(const char *backend, const char *how)
{
  const char *const argv[] = {"loading_thread", "-backend", backend, "-end", how, NULL};
  const pid_t       child  = fork();

  if (child) return child < 0 ? -2 : Ended(child);
  for (char **e = environ; *e;) {
    char name[256];

    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
    if (!strncmp(name, "OMPI_", 5) && !strstr(name, "ALLOW_RUN_AS_ROOT") && !strstr(name, "OMPI_MCA_")) {
      (void)unsetenv(name);
      e = environ;
    } else if (!strncmp(name, "PMIX_", 5) || !strncmp(name, "HYBTEST_", 8)) {
      (void)unsetenv(name);
      e = environ;
    } else
      e++;
  }
  if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
  (void)execve("/proc/self/exe", (char *const *)argv, environ);
  _exit(127);
}

static PetscErrorCode Body(void)
{
  const HybExec *x          = HybTestExec();
  const char    *ways[]     = {"finalize", "exit", "error", "fork"};
  const int      expected[] = {0, 7, -1, 9}; /* -1: the error's, whichever */
  char           how[32] = "", backend[PETSC_MAX_PATH_LEN] = "host";
  PetscBool      flg;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-end", how, sizeof(how), &flg));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  if (!x->backend->expect) {
    HybTestBegin("the host needs none");
    HybTestCheck(!x->backend->device, "every device can be made ready");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (flg) {
    HybTestBegin("ends");
    PetscCall(Ends(x, how));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ways); k++) {
    int status;

    /* CUDA's own handlers are not for the children of a fork */
    if (!strcmp(ways[k], "fork") && strcmp(x->backend->name, "emulated")) continue;
    HybTestBegin("ends by %s", ways[k]);
    status = Again(backend, ways[k]);
    HybTestCheck(expected[k] < 0 ? status > 0 && status != 126 && status != 127 : status == expected[k], "its status is %d", status);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)
