/*
  Operations of a parallel matrix on the device, where one process alone fails, at each of its allocations and calls of
  the device in turn: none waits for ever for another. What the parent does with all processes comes after what one does
  alone with its blocks, so an error of that is one of all, and the same operation does it afterwards. What fails within
  the parent's functions, between what they do with all, leaves the others waiting as it does MATAIJ's: that is not
  here.

TEST np=2 @emulated
TEST np=2 @emulated -promoted
TEST np=2 @emulated -promoted -mat_aijhybridgpu_memory mirror
TEST np=+3 @emulated -promoted

-every N: the first eight, and of the others one in N. -op NAME: that one alone. -promoted: the host has made the
matrix, and the device has written it. -trace: errors are printed.
*/
#include "matfault.h"
#include <signal.h>
#include <unistd.h>

#define ROWS 12
#define COO  (5 * ROWS)

static PetscMPIInt Rank, Size;
static PetscBool   Promoted;

/* A matrix, and what an operation has made of it before, since it may fail when it comes again */
typedef struct {
  Mat A, S, *all;
  IS  is[2];
} Data;

static PetscErrorCode Halo(Data *d)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestUse(d->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of own rows and of the next process's first one; the diagonal has entries */
static PetscErrorCode Make(MatType type, Mat *A)
{
  const PetscInt M = ROWS * Size, start = ROWS * Rank;
  PetscInt       i[COO], j[COO];
  PetscScalar    v[COO];

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, ROWS, ROWS, M, M, A));
  for (PetscInt k = 0; k < COO; k++) {
    i[k] = k % 7 == 3 ? (start + ROWS) % M : start + k % ROWS;
    j[k] = k < ROWS ? i[k] : (start + 5 * k) % M;
    v[k] = 1.0 + (PetscReal)(k % 5);
  }
  if (!Promoted) {
    PetscCall(MatSetPreallocationCOO(*A, COO, i, j));
    PetscCall(MatSetValuesCOO(*A, v, INSERT_VALUES));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatMPIAIJSetPreallocation(*A, ROWS, NULL, ROWS, NULL));
  for (PetscInt k = 0; k < COO; k++) PetscCall(MatSetValue(*A, i[k], j[k], v[k], ADD_VALUES));
  PetscCall(MatTestAssemble(*A));
  for (int k = 0; k < 3; k++) {
    Data d = {
      *A, NULL, NULL, {NULL, NULL}
    };

    PetscCall(Halo(&d));
    PetscCall(MatScale(*A, 1.5));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* own rows but the last one, own columns */
static PetscErrorCode Rows(IS is[2])
{
  PetscFunctionBeginUser;
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, ROWS - 1, ROWS * Rank, 1, &is[0]));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, ROWS, ROWS * Rank, 1, &is[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char *name;
  PetscErrorCode (*prepare)(Data *);
  PetscErrorCode (*run)(Data *);
  PetscBool alone; /* memory that is given back at its end may be an error of one process */
} Op;

static PetscErrorCode ZeroRows(Data *d)
{
  const PetscInt rows[] = {ROWS * Rank + 2, (ROWS * Rank + ROWS) % (ROWS * Size)};

  return MatZeroRows(d->A, 2, rows, 2.0, NULL, NULL);
}

static PetscErrorCode ZeroRowsColumns(Data *d)
{
  const PetscInt rows[] = {ROWS * Rank + 2, (ROWS * Rank + ROWS) % (ROWS * Size)};

  return MatZeroRowsColumns(d->A, 2, rows, 2.0, NULL, NULL);
}

static PetscErrorCode Others(Data *d)
{
  const PetscInt r = (ROWS * Rank + ROWS) % (ROWS * Size);

  PetscFunctionBeginUser;
  if (Rank == Size - 1) PetscCall(MatSetValue(d->A, r, r, 3.0, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assembly(Data *d)
{
  PetscErrorCode ierr = MatAssemblyBegin(d->A, MAT_FINAL_ASSEMBLY);

  return ierr ? ierr : MatAssemblyEnd(d->A, MAT_FINAL_ASSEMBLY);
}

static PetscErrorCode Part(Data *d)
{
  PetscFunctionBeginUser;
  PetscCall(Rows(d->is));
  PetscCall(MatCreateSubMatrix(d->A, d->is[0], d->is[1], MAT_INITIAL_MATRIX, &d->S));
  for (int k = 0; k < 3; k++) { /* the device reads and writes it */
    Data s = {
      d->S, NULL, NULL, {NULL, NULL}
    };

    PetscCall(Halo(&s));
    PetscCall(MatScale(d->S, 2.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PartAgain(Data *d)
{
  return MatCreateSubMatrix(d->A, d->is[0], d->is[1], MAT_REUSE_MATRIX, &d->S);
}

static PetscErrorCode Parts(Data *d)
{
  PetscFunctionBeginUser;
  PetscCall(Rows(d->is));
  PetscCall(MatCreateSubMatrices(d->A, 1, d->is, d->is + 1, MAT_INITIAL_MATRIX, &d->all));
  PetscCall(MatScale(d->all[0], 2.0));
  PetscCall(MatScale(d->all[0], 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PartsAgain(Data *d)
{
  return MatCreateSubMatrices(d->A, 1, d->is, d->is + 1, MAT_REUSE_MATRIX, &d->all);
}

static PetscErrorCode Plain(Data *d)
{
  return MatConvert(d->A, MATMPIAIJ, MAT_INPLACE_MATRIX, &d->A);
}

static const Op ops[] = {
  {"zerorows",        NULL,   ZeroRows,        PETSC_FALSE},
  {"zerorowscolumns", NULL,   ZeroRowsColumns, PETSC_FALSE},
  {"assembly",        Others, Assembly,        PETSC_FALSE},
  {"partagain",       Part,   PartAgain,       PETSC_FALSE},
  {"partsagain",      Parts,  PartsAgain,      PETSC_FALSE},
  {"plain",           Halo,   Plain,           PETSC_TRUE },
};

static PetscErrorCode Clear(Data *d)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestDestroy(&d->A, &d->S));
  if (d->all) PetscCall(MatDestroySubMatrices(1, &d->all));
  for (int k = 0; k < 2; k++) PetscCall(ISDestroy(&d->is[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a process waits for ever */
static void Waits(int signal)
{
  if (MatFault.target || MatFault.last[0]) printf("FAILED: %s: process %d waits, or another one does, since its call %d failed, %s\n", MatTestName, (int)Rank, MatFault.count, MatFault.last);
  fflush(stdout);
  _exit(signal);
}

static PetscErrorCode Faults(const Op *op, PetscMPIInt faulty, PetscInt every)
{
  Data twin = {
    NULL, NULL, NULL, {NULL, NULL}
  };
  int fired = 1, failed = 0, n = 0, some = 0;

  PetscFunctionBeginUser;
  MatTestName = op->name;
  PetscCall(Make(MATAIJ, &twin.A));
  if (op->prepare) PetscCall((*op->prepare)(&twin));
  PetscCall((*op->run)(&twin));
  for (int k = 1; fired && k < 10000; k += k < 8 ? 1 : (int)every, n++) {
    Data d = {
      NULL, NULL, NULL, {NULL, NULL}
    };
    PetscErrorCode ierr;
    int            errors;

    PetscCall(Make("aijhybridgpu", &d.A));
    if (op->prepare) PetscCall((*op->prepare)(&d));
    (void)alarm(100);
    MatFaultTry(Rank == faulty ? k : 0, ierr, fired, (*op->run)(&d));
    errors = ierr != PETSC_SUCCESS;
    PetscCallMPI(MPI_Bcast(&fired, 1, MPI_INT, faulty, PETSC_COMM_WORLD));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
    (void)alarm(0);
    failed += errors != 0;
    some += errors != 0 && errors != Size;
    if (!op->alone && errors != 0 && errors != Size && Rank == faulty) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, call %d, %s: %d of %d processes have an error\n", op->name, k, MatFault.last, errors, (int)Size));
    if (!fired) MatTestCheck(!errors, "an error without a failing call");
    MatTestCheck(op->alone || !errors || errors == Size, "an error of one process is one of all");
    if (errors == Size) PetscCall((*op->run)(&d));
    if (!op->alone || !errors || errors == Size) MatTestCheckSame(d.A, twin.A, "the matrix after the same operation");
    PetscCall(Clear(&d));
  }
  PetscCall(Clear(&twin));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "process %d, %s: %d calls made to fail, %d errors, %d of some processes alone\n", (int)faulty, op->name, n, failed, some));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 22, 0)
/* MatCreateMPIAIJWithSeqAIJ() gives the arrays of B, which are ours, to the second block, and says
   MAT_NO_OFF_PROC_ENTRIES: the block gets others in an assembly in which nothing has to be sent */
static PetscErrorCode GivenPart(MatType type, PetscInt n, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_SELF, type, ROWS, n, ROWS, n, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 2, NULL));
  for (PetscInt r = 0; r < ROWS; r++)
    for (PetscInt k = 0; k < 2; k++) PetscCall(MatSetValue(*A, r, (r + 3 * k) % n, 1.0 + (PetscReal)(r % 4), ADD_VALUES));
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GivenMake(MatType type, PetscInt n, Mat *A, Mat *B)
{
  Mat left, right;

  PetscFunctionBeginUser;
  PetscCall(GivenPart(type, ROWS, A));
  PetscCall(GivenPart(type, ROWS, &left));
  PetscCall(GivenPart(type, n, &right));
  PetscCall(MatTestProduct(MATPRODUCT_AB, left, right, NULL, B));
  PetscCall(MatTestDestroy(&left, &right));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Given(PetscMPIInt faulty)
{
  const PetscInt n = 7;
  PetscInt       garray[7];
  Mat            A, B, C[2] = {NULL, NULL};
  PetscErrorCode ierr;
  int            fired, errors;

  PetscFunctionBeginUser;
  MatTestName = "MatCreateMPIAIJWithSeqAIJ";
  for (PetscInt c = 0; c < n; c++) garray[c] = ROWS * ((Rank + 1) % Size) + c;
  PetscCall(GivenMake("seqaijhybridgpu", n, &A, &B));
  (void)alarm(100);
  MatFault.only = "given.c";
  MatFaultTry(Rank == faulty ? 1 : 0, ierr, fired, MatCreateMPIAIJWithSeqAIJ(PETSC_COMM_WORLD, A, B, garray, &C[0]));
  MatFault.only = NULL;
  errors        = ierr != PETSC_SUCCESS;
  PetscCallMPI(MPI_Bcast(&fired, 1, MPI_INT, faulty, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  (void)alarm(0);
  MatTestCheck(fired && errors == Size, "memory that is missing on one process is an error of all");
  PetscCall(MatDestroy(&C[0]));
  for (int k = 0; k < 2; k++) {
    PetscCall(GivenMake(k ? MATSEQAIJ : "seqaijhybridgpu", n, &A, &B));
    PetscCall(MatCreateMPIAIJWithSeqAIJ(PETSC_COMM_WORLD, A, B, garray, &C[k]));
  }
  MatTestCheckMult(C[0], C[1], "the same matrix afterwards");
  PetscCall(MatTestDestroy(&C[0], &C[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  Data d = {
    NULL, NULL, NULL, {NULL, NULL}
  };
  PetscInt every   = 1;
  char     one[64] = "";

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  MatFaultWatch(PETSC_TRUE);
  (void)signal(SIGALRM, Waits);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-promoted", &Promoted, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-trace", &MatFault.trace, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-op", one, sizeof(one), NULL));
  PetscCall(Make("aijhybridgpu", &d.A)); /* the plugin's first use of the device, and of peer access */
  for (int k = 0; k < 3; k++) PetscCall(Halo(&d));
  PetscCall(Clear(&d));
  PetscCall(MatTestHook(MatFaultAsk, &MatFault.device));
  for (PetscMPIInt faulty = 0; faulty < Size; faulty += Size - 1) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(ops); k++)
      if (!one[0] || !strcmp(one, ops[k].name)) PetscCall(Faults(&ops[k], faulty, every));
#if PETSC_VERSION_LT(3, 22, 0)
    if (!one[0] || !strcmp(one, "given")) PetscCall(Given(faulty));
#endif
  }
  MatFaultWatch(PETSC_FALSE);
  return MatTestEnd();
}
