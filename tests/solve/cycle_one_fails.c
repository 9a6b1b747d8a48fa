/*
  Multigrid's cycle on several processes where one process alone fails, at each of its allocations and calls of the
  device in turn: in applications that make the cycle, in those that capture it, and in those of the graph. Nobody waits
  for ever, an error is one of the process that fails at least, and once all have heard of it applications give what
  they gave before.

TEST np=2 @emulated -first 3 -every 307
TEST np=+2 @emulated -every 89
TEST np=+2 @emulated -first 3 -every 97 -mat_aijhybridgpu_tuning comm_together=0
TEST np=+3 @emulated -first 3 -every 151 -mat_aijhybridgpu_comm mpi
TEST np=2 @emulated -solves -first 3 -every 499
TEST np=+2 @emulated -solves -every 211
TEST np=+2 @emulated -solves -first 3 -every 307 -ksp_initial_guess_nonzero
TEST np=+2 @emulated -first 3 -every 101 -mat_aijhybridgpu_tuning whole=0
TEST np=+3 @emulated -solves -first 3 -every 401
TEST np=+2 @emulated -solves -first 3 -every 401 -mat_aijhybridgpu_tuning iterations_ahead=2

  -every N: the first sixteen (-first), and of the others one in N; -from K: from the K-th on; -solves: solves by KSPCG
  instead of applications; -verbose: says what failed
*/
#include "gamgtest.h"
#include "matfault.h"
#include <unistd.h>

static PetscBool Solves;

/* n applications, until one has an error; on how many processes */
static PetscErrorCode Applications(KSP ksp, int n, Vec b, Vec x, int *errors)
{
  PC pc;

  PetscFunctionBeginUser;
  *errors = 0;
  PetscCall(KSPGetPC(ksp, &pc));
  for (int k = 0; k < n && !*errors; k++) {
    PetscErrorCode ierr;

    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = Solves ? KSPSolve(ksp, b, x) : PCApply(pc, b, x);
    PetscCall(PetscPopErrorHandler());
    *errors = ierr ? 1 : 0;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc numbers messages by counters, one a process: two that differ wait for each other for ever, sooner or later */
static PetscErrorCode SameNumbers(Mat H)
{
  PetscMPIInt tag, ends[2];

  PetscFunctionBeginUser;
  PetscCall(PetscCommGetNewTag(PetscObjectComm((PetscObject)H), &tag));
  ends[0] = tag;
  ends[1] = -tag;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)H)));
  MatTestCheck(ends[0] == -ends[1], "processes number their messages alike");
  while (tag > ends[0]) PetscCall(PetscCommGetNewTag(PetscObjectComm((PetscObject)H), &tag));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* made: the solver has applied its cycle before */
static PetscErrorCode Faults(Mat H, PetscMPIInt faulty, PetscBool made, int from, int first, int every)
{
  const PetscMPIInt rank    = MatTestRank();
  PetscBool         verbose = PETSC_FALSE;
  Vec               b, x, expected;
  KSP               h;
  PC                pc;
  int               fired = 1, errors, failed = 0, n = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-verbose", &verbose));
  PetscCall(MatCreateVecs(H, &x, &b));
  PetscCall(VecDuplicate(x, &expected));
  VecTestFill(b, r, 1.0 + (PetscReal)((r * 37) % 11));
  for (int k = from; fired && k < 100000; k += k < first ? 1 : every, n++) {
    PetscErrorCode ierr;

    PetscCall(Solver(H, &h));
    PetscCall(KSPSetUp(h));
    PetscCall(KSPGetPC(h, &pc));
    PetscCall(MatFaultDiagonals(pc));
    if (made) PetscCall(Applications(h, 4, b, expected, &errors));
    (void)alarm(60);
    MatFaultTry(rank == faulty ? k : 0, ierr, fired, Applications(h, 4, b, x, &errors));
    PetscCall(ierr);
    PetscCallMPI(MPI_Bcast(&fired, 1, MPI_INT, faulty, PETSC_COMM_WORLD));
    if (verbose && rank == faulty) printf("call %d, %s: %d processes have an error\n", k, MatFault.last, errors);
    failed += errors > 0;
    if (!errors && made) VecTestCheckSame(x, expected, "applications without an error");
    /* what others learn late */
    for (int turn = 0; turn < 3 && errors; turn++) {
      /* PETSc's KSPSolve() counts those that have not ended */
      if (Solves) PetscCall(KSPDestroy(&h));
      if (Solves) PetscCall(Solver(H, &h));
      PetscCall(Applications(h, 1, b, x, &errors));
    }
    MatTestCheck(!errors, "an application after an error");
    if (!errors) PetscCall(Applications(h, 3, b, x, &errors));
    MatTestCheck(!errors, "applications after an error");
    if (!errors && made) VecTestCheckSame(x, expected, "applications after an error");
    PetscCall(SameNumbers(H));
    PetscCall(KSPDestroy(&h));
    (void)alarm(0);
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "process %d, %s: %d calls made to fail, %d errors\n", (int)faulty, made ? "graphs" : "making", n - 1, failed));
  MatTestCheck(failed > 2, "calls fail");
  PetscCall(MatTestDestroy(&b, &x, &expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt    every = 1, from = 1, first = 16;
  PetscBool   own;
  Mat         S, A, H;
  KSP         h;
  PetscMPIInt size;

  MatTestCards(argc, argv);
  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-from", &from, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  PetscCall(Options("-mat_aijhybridgpu_comm_timeout 5 -pc_gamg_coarse_eq_limit 10 -pc_gamg_process_eq_limit 1", PETSC_TRUE));
  PetscCall(Grid(2, 20, LAPLACE, &S));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-solves", &Solves));
  if (Solves) PetscCall(Options("-ksp_type cg -ksp_max_it 3 -ksp_error_if_not_converged 0", PETSC_TRUE));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(Solver(H, &h)); /* the first use of all */
  PetscCall(KSPSetUp(h));
  PetscCall(KSPDestroy(&h));
  if (Solves) PetscCall(MatTestOwnCards(&own));
  PetscCall(MatTestHook(MatFaultAsk, NULL));
  if (Solves && !own) MatTestSkipped++; /* KSPCG is PETSc's there, which waits for ever for a process that has failed */
  for (PetscMPIInt faulty = 0; faulty < size && (!Solves || own); faulty += size - 1) {
    for (int made = 0; made < 2; made++) {
      MatTestName = faulty ? "the last process fails" : "the first process fails";
      PetscCall(Faults(H, faulty, (PetscBool)made, (int)from, (int)first, (int)every));
    }
  }
  PetscCall(MatTestHook(NULL, NULL));
  PetscCall(MatTestDestroy(&S, &A, &H));
  return MatTestEnd();
}
