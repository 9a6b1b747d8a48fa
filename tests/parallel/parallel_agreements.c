/*
  How often processes meet in products of parallel matrices, in assemblies and in products with vectors: reductions are
  counted by MPI's profiling interface (stepcounts.h), of the type and of MATAIJ in the same steps. A first product may
  have so many besides those with which PETSc makes the matrix that holds it; again with new values two; an assembly one
  more than MATAIJ's; a product with a vector that has been made before, none. docs/gpus.md has the list. Results are
  MATAIJ's.

TEST np=2,3 -mat_aijhybridgpu_backend host
TEST np=2+3 @emulated
TEST np=+2 @emulated -mat_aijhybridgpu_comm mpi

  -show: prints the counts of the first process
*/
#include "stepcounts.h"

/* with which PETSc makes a parallel matrix of blocks */
#define PETSCS (PETSC_VERSION_LT(3, 19, 0) ? 3 : 4)

typedef enum {
  ASSEMBLED,
  AB,
  AB_AGAIN,
  PTAP,
  PTAP_AGAIN,
  ATB,
  ATB_AGAIN,
  MULT,
  MULT_AGAIN,
  STEPS
} What;
static const char *const Names[STEPS] = {"an assembly", "A B", "A B again", "P^T A P", "P^T A P again", "A^T B", "A^T B again", "A x", "A x again"};
static int               Reductions[2][STEPS];

/* three points of a line and one far away, or an interpolation from every second point */
static PetscErrorCode Fill(Mat A, PetscBool interpolation, PetscScalar factor)
{
  PetscInt start, end, N;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(MatGetSize(A, NULL, &N));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    first = interpolation ? r / 2 : r, cols[3] = {first % N, (first + 1) % N, (first + N / 2) % N};
    const PetscScalar v[3] = {2.0 * factor, -factor, 0.25 * factor};

    PetscCall(MatSetValues(A, 1, &r, 3, cols, v, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Count(PetscBool ours, What what, Step *step)
{
  StepEnd(step);
  Reductions[ours][what] = (int)StepFind(step, "MPI_Allreduce")->n;
  memset(step, 0, sizeof(*step));
}
#define COUNT(what, ...)      \
  do {                        \
    StepBegin(&step);         \
    PetscCall(__VA_ARGS__);   \
    Count(ours, what, &step); \
  } while (0)

/* C: A B, P^T A P, A^T B, each with the values of the second time */
static PetscErrorCode Steps(PetscBool ours, Mat C[3])
{
  static Step step;
  PetscInt    n = 60, start, end;
  Mat         A, P;
  Vec         x, y;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(ours ? "aijhybridgpu" : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, &A, &start, &end));
  PetscCall(MatTestRoom(ours ? "aijhybridgpu" : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, n, n / 2, 3, &P, &start, &end));
  PetscCall(Fill(A, PETSC_FALSE, 1.0));
  PetscCall(Fill(P, PETSC_TRUE, 1.0));
  COUNT(ASSEMBLED, Fill(A, PETSC_FALSE, 2.0));
  COUNT(AB, MatMatMult(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
  COUNT(PTAP, MatPtAP(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[1]));
  COUNT(ATB, MatTransposeMatMult(P, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[2]));
  for (int again = 0; again < 3; again++) {
    PetscCall(Fill(A, PETSC_FALSE, 3.0 + again));
    PetscCall(Fill(P, PETSC_TRUE, 3.0 + again));
    COUNT(AB_AGAIN, MatMatMult(A, P, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[0]));
    COUNT(PTAP_AGAIN, MatPtAP(A, P, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[1]));
    COUNT(ATB_AGAIN, MatTransposeMatMult(P, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[2]));
  }
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  COUNT(MULT, MatMult(A, x, y));
  COUNT(MULT_AGAIN, MatMult(A, x, y));
  PetscCall(MatTestDestroy(&x, &y, &A, &P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void AtMost(What what, int most)
{
  char text[120];

  snprintf(text, sizeof(text), "%s: %d reductions, of at most %d; MATAIJ has %d", Names[what], Reductions[1][what], most, Reductions[0][what]);
  MatTestCheck(Reductions[1][what] <= most, text);
}

int main(int argc, char **argv)
{
  PetscMPIInt rank, size;
  PetscBool   show, device, mpi;
  int         peer;
  Mat         C[2][3];

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-show", &show));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &device));
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_comm", "mpi", &mpi));
  peer = device && !mpi;
  PetscCall(StepOpen());
  PetscCall(Steps(PETSC_TRUE, C[1])); /* what is opened once for a process */
  for (int k = 0; k < 3; k++) PetscCall(MatDestroy(&C[1][k]));
  for (int ours = 0; ours < 2; ours++) PetscCall(Steps((PetscBool)ours, C[ours]));
  for (int k = 0; k < 3; k++) {
    MatTestName = Names[k == 0 ? AB : k == 1 ? PTAP
                                             : ATB];
    MatTestCheckSame(C[1][k], C[0][k], "the product with other values");
    PetscCall(MatTestDestroy(&C[0][k], &C[1][k]));
  }
  if (show && !rank)
    for (int k = 0; k < STEPS; k++) printf("%s: %d reductions, MATAIJ's %d\n", Names[k], Reductions[1][k], Reductions[0][k]);
  MatTestName = "reductions";
  /* peer access is made ready after an agreement, and before another: once for what moves at once */
  AtMost(AB, 8 + PETSCS + peer);
  AtMost(PTAP, 11 + PETSCS + 2 * peer);
  AtMost(ATB, 11 + PETSCS + 2 * peer);
  AtMost(AB_AGAIN, 2);
  AtMost(PTAP_AGAIN, 2);
  AtMost(ATB_AGAIN, 2);
  AtMost(ASSEMBLED, Reductions[0][ASSEMBLED] + 1);
  AtMost(MULT, device ? 5 : 2);
  AtMost(MULT_AGAIN, 0);
  return MatTestEnd();
}
