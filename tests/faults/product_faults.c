/*
  One process, of several or alone, runs out of luck in a product: the first, the second, the third, ... allocation and
  call of the device fails there and nowhere else. Each time all processes get an error and none waits for ever;
  afterwards the plugin holds what it held before, and the same operands make the same product.

  Allocations are those made by this plugin's files; on a device also all that passes the hook that it asks before each
  allocation, CUDA call, launch and primitive. What a failed product leaves is what was there before, or its result, or
  nothing that can be used.

TEST np=1,2+3 -mat_aijhybridgpu_backend host -every 53
TEST np=1 @emulated -few -every 97
TEST np=+2 @emulated -few -every 997
TEST np=2 -mat_aijhybridgpu_backend host -band -every 397 -mat_aijhybridgpu_diagonal_fewest 0
TEST np=+2 @emulated -band -few -every 41 -mat_aijhybridgpu_diagonal_fewest 0
TEST np=1,2 @emulated -first -every 97
TEST np=2 @emulated -few -every 997 -reported
TEST np=2 @emulated -few -logs
TEST np=2,3 -mat_aijhybridgpu_backend host -ends
TEST np=2 @emulated -mults -every 41
TEST np=+2 @emulated -mults -every 41 -mat_aijhybridgpu_comm mpi

-every N: the first ones, and of the others one in N. -few: fewer first ones, and P^T A P alone. -first: products made
for the first time, alone. -reported: a report of the run is written, whose timers may fail too. -mults: products with
vectors instead of those of matrices. -band: of matrices most of whose rows meet nobody else's (parprod/inner.c). -logs:
the log's events of products fail, alone. -ends: so does the end of the event of a numeric phase, once all processes
have the result: an error of one process, for which nobody waits.
*/
#include "logfault.h"
#include "matfault.h"
#include <stdlib.h>
#include <unistd.h>

static PetscMPIInt Rank, Size;
static PetscBool   Few, Band, Ends;

typedef enum {
  FIRST, /* both phases */
  AGAIN, /* the numeric phase of a product that is there, with other values */
  OWN,   /* the first numeric phase, of a pattern to which the program added values of its own */
  OTHER, /* the same with another first operand, of another pattern: the symbolic phase is repeated */
  WIDER, /* as AGAIN, into a result that has got more entries */
  LISTS  /* the first numeric phase, every call of it: a device makes lists there, without which it goes on */
} Phase;

/* What a failed product has left is one of these two results, or nothing that can be used: on all processes alike */
static PetscErrorCode HalfMade(Mat C, Mat before, Mat after)
{
  PetscBool assembled;
  PetscReal d[2] = {1, 1};
  int       usable;

  PetscFunctionBeginUser;
  PetscCall(MatAssembled(C, &assembled));
  usable = (int)assembled;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  MatTestCheck(!usable || usable == (int)Size, "the result is usable on some processes");
  if (usable != (int)Size) PetscFunctionReturn(PETSC_SUCCESS);
  if (before) PetscCall(MatTestDifference(C, before, &d[0]));
  PetscCall(MatTestDifference(C, after, &d[1]));
  MatTestCheck(d[0] < ROUNDED(1e-12) || d[1] < ROUNDED(1e-12), "a half-made result passes as one");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* adds v, which may be 0, to all of each process's first row */
static PetscErrorCode Widen(Mat C, PetscScalar v)
{
  PetscInt start, end, N;

  PetscFunctionBeginUser;
  PetscCall(MatTestLetIn(C));
  PetscCall(MatGetOwnershipRange(C, &start, &end));
  PetscCall(MatGetSize(C, NULL, &N));
  for (PetscInt c = 0; c < N; c++) PetscCall(MatSetValue(C, start, c, v, ADD_VALUES));
  PetscCall(MatTestAssemble(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* times: numeric phases besides the first one, since later ones go other ways */
static PetscErrorCode Prepare(MatProductType type, Phase phase, int times, Mat A, Mat P, Mat *other, Mat hostother, Mat *C)
{
  PetscFunctionBeginUser;
  *other = NULL;
  *C     = NULL;
  if (phase == FIRST) PetscFunctionReturn(PETSC_SUCCESS);
  if (phase == OWN || phase == LISTS) {
    PetscCall(MatProductCreate(A, P, NULL, C));
    PetscCall(MatTestSymbolic(type, NULL, *C));
    if (phase == OWN)
      PetscCall(Widen(*C, 7.0));
    else
      PetscCall(MatCopy(hostother, A, DIFFERENT_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTestProduct(type, A, P, NULL, C));
  for (int k = 0; k < times; k++) PetscCall(MatProductNumeric(*C));
  if (phase == WIDER) PetscCall(Widen(*C, 0.0));
  if (phase != OTHER)
    PetscCall(MatCopy(hostother, A, DIFFERENT_NONZERO_PATTERN));
  else {
    PetscCall(MatConvert(hostother, "aijhybridgpu", MAT_INITIAL_MATRIX, other));
    PetscCall(MatProductReplaceMats(*other, NULL, NULL, *C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What failed here may be page-locked memory, instead of which other memory serves, or memory for lists, without which
   the product goes on: then nobody has an error */
static int MayBeServed(void)
{
  return !strcmp(MatFault.last, "alloc") || strstr(MatFault.last, "arena.c") || strstr(MatFault.last, "memory.cu") || strstr(MatFault.last, "HostRegister");
}

/* hostA is the first operand, and hostother what it is when the product comes again */
static PetscErrorCode Faults(MatProductType type, Phase phase, Mat hostA, Mat hostP, Mat hostother)
{
  static const char *names[] = {"", " again", " after values of the program's own", " again, of another pattern", " again, into a wider pattern", " after the symbolic phase"};

  int      fired = 1, k, n = 0, without = 0;
  PetscInt every = 1;
  Mat      former, expected;
  char     name[64];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", MatProductTypes[type], names[phase]));
  MatTestName = name;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(MatTestProduct(type, hostA, hostP, NULL, &former));
  PetscCall(MatTestProduct(type, hostother, hostP, NULL, &expected));
  if (phase == OWN) {
    PetscCall(MatZeroEntries(former));
    PetscCall(Widen(former, 7.0));
  }
  for (k = 1; fired && k < 100000; k += phase == LISTS || k < (Few ? 3 : 8) ? 1 : (int)every, n++) {
    const PetscMPIInt victim = (PetscMPIInt)(k % Size);
    Mat               A, P, C, other;
    size_t            before, after;
    int               error, errors, held, served;
    PetscErrorCode    ierr;

    PetscCall(MatFaultHeld(&before));
    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    PetscCall(Prepare(type, phase, phase == AGAIN ? k % 3 : 0, A, P, &other, hostother, &C));
    MatFaultTry(Rank == victim ? k : 0, ierr, fired, phase == FIRST ? MatTestProduct(type, A, P, NULL, &C) : MatProductNumeric(C));
    error = errors = ierr != PETSC_SUCCESS;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    served = fired && !errors && MayBeServed();
    without += served && Rank == victim && !strcmp(MatFault.last, "alloc");
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &served, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(served || errors == (fired ? (int)Size : 0) || (Ends && fired && errors), fired ? "an error of one process is one of all" : "an error without a failing call");
    if (served) MatTestCheckSame(C, phase == FIRST ? former : expected, "the result where other memory served");
    if (!served && !Ends && errors != (fired ? (int)Size : 0)) printf("  call %d of process %d failing, %s: error %d on process %d\n", k, (int)victim, MatFault.last, error, (int)Rank);
    if (Ends)
      MatTestCheckSame(C, expected, "the result of a phase whose end failed");
    else if (errors)
      PetscCall(HalfMade(C, phase == FIRST ? NULL : former, phase == FIRST ? former : expected));
    /* the operands serve, and what was there serves again, or goes */
    if (phase == FIRST || k % 4 == 0) {
      PetscCall(MatDestroy(&C));
      PetscCall(MatTestProduct(type, phase == OTHER ? other : A, P, NULL, &C));
    } else
      PetscCall(MatProductNumeric(C));
    MatTestCheckSame(C, phase == FIRST ? former : expected, "the result after a failure");
    PetscCall(MatTestDestroy(&C, &A, &P, &other));
    PetscCall(MatFaultHeld(&after));
    held = after != before;
    if (held) printf("  call %d of process %d failing, process %d: %zu bytes before, %zu after\n", k, (int)victim, (int)Rank, before, after);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &held, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    MatTestCheck(!held, "bytes of ours are held");
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &without, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  MatTestCheck(phase != LISTS || without > 0, "no memory of the device is gone without");
  /* on the host small products take no memory for that */
  MatTestCheck(n > (MatFault.logs ? 1 : 2) || (phase == AGAIN && (Size == 1 || !MatFault.device)), "nothing could fail");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: up to call %d\n", name, k));
  PetscCall(MatTestDestroy(&former, &expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a product keeps is given up, a call of the device fails there, and the matrix is destroyed: PETSc hands the
   product's context over a second time then. On the host nothing fails there. */
static PetscErrorCode Clears(Mat hostA, Mat hostP)
{
  int fired = 1, k, errors = 0;

  PetscFunctionBeginUser;
  MatTestName = "a product given up";
  for (k = 1; fired; k++) {
    const PetscMPIInt victim = (PetscMPIInt)(k % Size);
    Mat               A, P, C;
    size_t            before, after;
    PetscErrorCode    ierr;

    PetscCall(MatFaultHeld(&before));
    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    PetscCall(MatConvert(hostP, "aijhybridgpu", MAT_INITIAL_MATRIX, &P));
    PetscCall(MatTestProduct(MATPRODUCT_PtAP, A, P, NULL, &C));
    for (int times = 0; times < 2; times++) PetscCall(MatProductNumeric(C));
    MatFaultTry(Rank == victim ? k : 0, ierr, fired, MatProductClear(C));
    errors += ierr != PETSC_SUCCESS;
    PetscCall(MatTestDestroy(&C, &A, &P));
    PetscCall(MatFaultHeld(&after));
    MatTestCheck(after == before, "bytes of ours are held");
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  MatTestCheck(errors > 0 || !MatFault.device, "nothing could fail");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %d of %d calls' errors\n", MatTestName, errors, k - 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with vectors of fresh matrices, whose halos are made: who fails has an error, and the same product is right
   afterwards */
static PetscErrorCode Mults(Mat hostA)
{
  int      fired = 1, k;
  PetscInt every = 1;
  Vec      x, y;

  PetscFunctionBeginUser;
  MatTestName = "products with vectors";
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(MatCreateVecs(hostA, &x, &y));
  PetscCall(VecSetRandom(x, NULL));
  for (k = 1; fired && k < 100000; k += k < 60 ? 1 : (int)every) {
    const PetscMPIInt victim = (PetscMPIInt)(k % Size);
    PetscErrorCode    ierr;
    Mat               A;

    PetscCall(MatConvert(hostA, "aijhybridgpu", MAT_INITIAL_MATRIX, &A));
    MatFaultTry(Rank == victim ? k : 0, ierr, fired, MatMult(A, x, y));
    if (fired) MatTestCheck(ierr || MayBeServed(), "who fails has an error, but where other memory serves");
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    if (!fired) MatTestCheck(!ierr, "an error without a failing call");
    MatTestCheckMult(A, hostA, "a product after a failure");
    MatTestCheckMultTranspose(A, hostA, "a transposed product after a failure");
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: up to call %d\n", MatTestName, k));
  PetscCall(MatTestDestroy(&x, &y));
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
    const PetscInt    N = interpolation ? n / 2 : n, c[4] = {interpolation ? r / 2 : r, interpolation ? PetscMin(r / 2 + 1, N - 1) : (r + 1) % N, ((interpolation && Band ? r / 2 - 1 + N : r) + (Band ? 3 : N / 2)) % N, (Band ? r - 1 + N : r + 2) % N};
    const PetscScalar v[4] = {2.0, -0.5, 0.25 + 0.001 * (PetscReal)r, 0.125};

    for (int k = 0; k < (interpolation ? 3 : 4); k++) PetscCall(MatSetValue(*A, r, c[k], v[k], ADD_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A report's file of this process, before PETSc reads its options; NULL: none is asked for */
static char *Reported(int argc, char **argv)
{
  static char name[] = "/tmp/aijhybridgpu-product_faults-XXXXXX.html";
  char        options[2048];
  int         asked = 0, file;

  for (int k = 1; k < argc; k++) asked = asked || !strcmp(argv[k], "-reported");
  file = asked ? mkstemps(name, 5) : -1;
  if (file < 0) return NULL;
  (void)close(file);
  (void)snprintf(options, sizeof(options), "%s -mat_aijhybridgpu_report %s", getenv("PETSC_OPTIONS") ? getenv("PETSC_OPTIONS") : "", name);
  (void)setenv("PETSC_OPTIONS", options, 1);
  return name;
}

int main(int argc, char **argv)
{
  char     *report = Reported(argc, argv);
  Mat       A, P, twice, other;
  PetscBool mults = PETSC_FALSE, first = PETSC_FALSE;
  int       code = 0;

  PetscFunctionBeginUser;
  MatTestCards(argc, argv);
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Every allocation and every device call of one process failing in turn\n"));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &Rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &Size));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-reported", &first)); /* it was read before */
  first = PETSC_FALSE;
  MatFaultWatch(PETSC_TRUE);
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-band", &Band, NULL));
  PetscCall(Make(Band ? 64 : 24, PETSC_FALSE, &A));
  PetscCall(Make(Band ? 64 : 24, PETSC_TRUE, &P));
  { /* what is made once and kept: staging buffers, the device itself */
    Mat a, p, c;

    PetscCall(MatConvert(A, "aijhybridgpu", MAT_INITIAL_MATRIX, &a));
    PetscCall(MatConvert(P, "aijhybridgpu", MAT_INITIAL_MATRIX, &p));
    PetscCall(MatTestProduct(MATPRODUCT_PtAP, a, p, NULL, &c));
    for (int times = 0; times < 2; times++) PetscCall(MatProductNumeric(c)); /* peer access */
    PetscCall(MatTestDestroy(&a, &p, &c));
  }
  PetscCall(MatTestHook(MatFaultAsk, &MatFault.device));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &Few, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mults", &mults, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-first", &first, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-logs", &MatFault.logs, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-ends", &Ends, NULL));
  LogFault.ends = Ends;
  MatFault.logs = (PetscBool)(MatFault.logs || Ends);
  if (MatFault.logs) PetscCall(LogFaultWatch(Ends ? NULL : "HybProdSym", "HybProdNum", MatFaultCount));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &twice));
  PetscCall(MatScale(twice, 2.0));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &other));
  if (mults)
    PetscCall(Mults(A));
  else if (Ends) {
    (void)alarm(100);
    PetscCall(Faults(MATPRODUCT_AB, AGAIN, A, P, twice));
    PetscCall(Faults(MATPRODUCT_PtAP, OWN, A, P, A));
    PetscCall(Faults(MATPRODUCT_AB, WIDER, A, P, twice));
    (void)alarm(0);
  } else if (first) {
    PetscCall(Faults(MATPRODUCT_AB, FIRST, A, P, A));
    MatTestBoth(Faults, MATPRODUCT_AB, MATPRODUCT_PtAP, OWN, A, P, A);
  } else {
    if (!MatFault.logs) PetscCall(Clears(A, P));
    if (!Few) PetscCall(Faults(MATPRODUCT_AB, FIRST, A, P, A));
    PetscCall(Faults(MATPRODUCT_PtAP, FIRST, A, P, A));
    if (!Few) PetscCall(Faults(MATPRODUCT_AB, AGAIN, A, P, twice));
    if (MatFault.device && Size > 1 && !Band && !MatFault.logs) PetscCall(Faults(MATPRODUCT_AB, LISTS, A, P, twice));
    PetscCall(Faults(MATPRODUCT_PtAP, AGAIN, A, P, twice));
    PetscCall(Faults(MATPRODUCT_PtAP, OTHER, A, P, other));
    PetscCall(Faults(Few ? MATPRODUCT_PtAP : MATPRODUCT_AB, WIDER, A, P, twice));
  }
  PetscCall(MatTestDestroy(&twice, &other, &A, &P));
  PetscCall(MatTestFinalize(&code));
  MatFaultWatch(PETSC_FALSE);
  PetscCall(PetscFinalize());
  if (report) (void)unlink(report);
  return code;
}
