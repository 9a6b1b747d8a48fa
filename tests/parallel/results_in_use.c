/*
  What a program does with a product's result between two numeric phases: it borrows blocks, sets entries and options,
  gives it coordinates, leaves operands or the result itself not assembled. Each step is done with MATAIJ and with the
  type; errors and norms are compared.

TEST np=1,2+3
TEST np=1,2+3 @emulated
TEST np=+2 @emulated -mat_aijhybridgpu_comm mpi
*/
#include "resultlog.h"

static PetscErrorCode NoteNorm(Log *log, Mat C)
{
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(MatNorm(C, NORM_FROBENIUS, &norm));
  Note(log, norm, "norm");
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat      A, B, C;
  PetscInt start, end;
} Three;

static PetscErrorCode Begin(MatType type, MatProductType product, Three *t)
{
  PetscFunctionBeginUser;
  PetscCall(Make(type, 1, 2, 0, &t->A));
  PetscCall(Make(type, 1, 2, 5, &t->B));
  PetscCall(MatTestProduct(product, t->A, t->B, NULL, &t->C));
  PetscCall(MatGetOwnershipRange(t->C, &t->start, &t->end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Three *t)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestDestroy(&t->A, &t->B, &t->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the diagonal block is borrowed, something happens, and the product is made again: it is the block still */
static PetscErrorCode Borrowed(MatType type, int way, Log *log)
{
  const PetscScalar one = 1;
  Three             t;
  Mat               D, now;

  PetscFunctionBeginUser;
  PetscCall(Begin(type, MATPRODUCT_AB, &t));
  PetscCall(MatGetDiagonalBlock(t.C, &D));
  if (way == 0) {
    PetscCall(MatSetValues(t.C, 1, &t.start, 1, &t.start, &one, ADD_VALUES));
    PetscCall(MatTestAssemble(t.C));
  }
  if (way == 1) PetscCall(MatShift(t.C, one));
  if (way == 2) PetscCall(MatZeroRows(t.A, 1, &t.start, 1.0, NULL, NULL));
  TRY(log, MatProductNumeric(t.C));
  PetscCall(MatGetDiagonalBlock(t.C, &now));
  Note(log, D == now, "the same block");
  PetscCall(NoteNorm(log, now));
  PetscCall(NoteNorm(log, t.C));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries outside of the pattern, which the program allows; they are not the product's, but setting them is no error */
static PetscErrorCode NewEntries(MatType type, int way, Log *log)
{
  Three t;

  PetscFunctionBeginUser;
  PetscCall(Begin(type, MATPRODUCT_AB, &t));
  PetscCall(MatTestLetIn(t.C));
  for (PetscInt turn = 0; turn < 3; turn++) {
    TRY(log, MatSetValue(t.C, t.start, (t.start + 6 + turn) % N, 1.0, INSERT_VALUES));
    TRY(log, MatTestAssemble(t.C));
    PetscCall(NoteNorm(log, t.C));
    TRY(log, MatProductNumeric(t.C));
    PetscCall(NoteNorm(log, t.C));
  }
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoteMoved(Log *log, Mat C, PetscObjectState *state)
{
  PetscObjectState now;

  PetscFunctionBeginUser;
  PetscCall(MatGetNonzeroState(C, &now));
  Note(log, now != *state, "another pattern");
  *state = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATAIJ sets a diagonal block by block, and the whole matrix hears of their new patterns at the next assembly: that of
   the product, where new entries are allowed. After that its A B on several processes ends the program. */
static PetscErrorCode LateState(MatType type, int way, Log *log)
{
  const MatProductType types[] = {MATPRODUCT_AtB, MATPRODUCT_PtAP};
  Mat                  A, C;
  Vec                  d;
  PetscObjectState     state;
  PetscInt             start, end;

  PetscFunctionBeginUser;
  PetscCall(MatTestRoom(type, PETSC_DECIDE, PETSC_DECIDE, N, N, 3, &A, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(MatSetValue(A, r, way == 0 ? (2 * r) % N : (r + 1) % N, 1 + PetscSinReal((PetscReal)r), INSERT_VALUES));
  PetscCall(MatTestAssemble(A));
  PetscCall(MatTestProduct(types[way], A, A, NULL, &C));
  PetscCall(MatCreateVecs(C, &d, NULL));
  PetscCall(VecSet(d, 1));
  PetscCall(MatGetNonzeroState(C, &state));
  PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  TRY(log, MatDiagonalSet(C, d, ADD_VALUES));
  PetscCall(NoteMoved(log, C, &state));
  for (int turn = 0; turn < 2; turn++) {
    TRY(log, MatProductNumeric(C));
    PetscCall(NoteMoved(log, C, &state));
    PetscCall(NoteNorm(log, C));
  }
  PetscCall(MatTestDestroy(&d, &C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries that are there are set in an operand, and not assembled */
static PetscErrorCode OpenOperand(MatType type, int way, Log *log)
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_PtAP, MATPRODUCT_AtB};
  const PetscScalar           value   = 20;
  Three                       t;
  Mat                         M;

  PetscFunctionBeginUser;
  /* MATAIJ multiplies with a transpose that it made before */
  if (way == 4 && Size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Begin(type, types[way / 2], &t));
  M = way % 2 ? t.B : t.A;
  PetscCall(MatSetValues(M, 1, &t.start, 1, &t.start, &value, INSERT_VALUES));
  TRY(log, MatProductNumeric(t.C));
  PetscCall(NoteNorm(log, t.C));
  PetscCall(MatTestAssemble(M));
  TRY(log, MatProductNumeric(t.C));
  PetscCall(NoteNorm(log, t.C));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the result is not assembled when it is made again: a numeric phase ends with what an assembly ends with */
static PetscErrorCode OpenResult(MatType type, int way, Log *log)
{
  const PetscScalar one = 1;
  Three             t;

  PetscFunctionBeginUser;
  PetscCall(Begin(type, way ? MATPRODUCT_PtAP : MATPRODUCT_AB, &t));
  PetscCall(MatSetValues(t.C, 1, &t.start, 1, &t.start, &one, ADD_VALUES));
  TRY(log, MatProductNumeric(t.C));
  TRY(log, MatSetValues(t.C, 1, &t.start, 1, &t.start, &one, INSERT_VALUES));
  TRY(log, MatTestAssemble(t.C));
  PetscCall(NoteNorm(log, t.C));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A^T A, A A^T and A^T A A of a matrix that is said to be symmetric and is not; then it is no more said to be */
static PetscErrorCode Claimed(MatType type, int way, Log *log)
{
  const MatProductType product[] = {MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP};
  Mat                  A, C;

  PetscFunctionBeginUser;
  /* docs/limits.md: AIJ's keeps B's first values */
  if (product[way] == MATPRODUCT_ABt && Size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Make(type, 1, 3, 0, &A));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatTestProduct(product[way], A, A, NULL, &C));
  PetscCall(NoteNorm(log, C));
  PetscCall(MatScale(A, 3));
  PetscCall(MatProductNumeric(C));
  PetscCall(NoteNorm(log, C));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_FALSE));
  PetscCall(MatProductNumeric(C));
  PetscCall(NoteNorm(log, C));
  PetscCall(MatDestroy(&C));
  PetscCall(MatTestProduct(product[way], A, A, NULL, &C));
  PetscCall(NoteNorm(log, C));
  PetscCall(MatTestDestroy(&C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*run)(MatType, int way, Log *);
  int ways;
} Uses[] = {
  {"a borrowed block",       Borrowed,    3},
  {"new entries",            NewEntries,  1},
  {"a state that lags",      LateState,   2},
  {"an operand in assembly", OpenOperand, 6},
  {"a result in assembly",   OpenResult,  2},
  {"a claim that is wrong",  Claimed,     3}
};

/* coordinates for the result: as with MATAIJ; an error where the product has taken the lists away, never a crash */
static PetscErrorCode Coordinates(void)
{
  PetscFunctionBeginUser;
  for (int way = 0; way < 2; way++) {
    PetscReal norm[2][2] = {{0}};
    int       failed[2]  = {0, 0};

    PetscCall(PetscSNPrintf(Name, sizeof(Name), "coordinates, way %d", way));
    for (int k = 0; k < 2; k++) {
      Three       t;
      Mat         C;
      PetscInt    n = 0, i[5 * N], j[5 * N];
      PetscScalar v[5 * N];
      Log         log = {.n = 0};

      PetscCall(Begin(k ? Ours : MATAIJ, MATPRODUCT_AB, &t));
      for (PetscInt r = t.start; r < t.end; r++)
        for (PetscInt c = 0; c < 5; c++) {
          i[n]   = r;
          j[n]   = (r + c) % N;
          v[n++] = (PetscReal)(1 + c + r);
        }
      if (way) {
        PetscCall(MatTestCreate(PETSC_COMM_WORLD, k ? Ours : MATAIJ, PETSC_DECIDE, PETSC_DECIDE, N, N, &C));
        PetscCall(MatSetPreallocationCOO(C, n, i, j));
        PetscCall(MatSetValuesCOO(C, v, INSERT_VALUES));
        PetscCall(MatProductCreateWithMat(t.A, t.B, NULL, C));
        PetscCall(MatTestSymbolic(MATPRODUCT_AB, NULL, C));
      } else {
        C = t.C;
        PetscCall(PetscObjectReference((PetscObject)C));
        PetscCall(MatSetPreallocationCOO(C, n, i, j));
        PetscCall(MatSetValuesCOO(C, v, INSERT_VALUES));
      }
      PetscCall(MatProductNumeric(C));
      PetscCall(MatNorm(C, NORM_FROBENIUS, &norm[k][0]));
      TRY(&log, MatSetValuesCOO(C, v, INSERT_VALUES));
      failed[k] = log.seen[0] != 0;
      PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failed[k], 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
      if (!failed[k]) PetscCall(MatNorm(C, NORM_FROBENIUS, &norm[k][1]));
      PetscCall(MatDestroy(&C));
      PetscCall(End(&t));
    }
    MatTestCheck(PetscAbsReal(norm[0][0] - norm[1][0]) < (PetscReal)1e-5 * norm[0][0], "the product");
    /* the symbolic phase makes another matrix, of whose coordinates MATAIJ reads on */
    MatTestCheck(failed[0] == failed[1] || (way && !failed[0]), "an error or not");
    if (!failed[0] && !failed[1]) MatTestCheck(PetscAbsReal(norm[0][1] - norm[1][1]) < (PetscReal)1e-5 * norm[0][1], "the values");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an operand gets another pattern, which the type alone allows: the result's state never comes back to a former one */
static PetscErrorCode States(void)
{
  PetscObjectState state[3];
  Three            t;
  Mat              other;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Name, sizeof(Name), "the state of the result's pattern"));
  PetscCall(Begin(Ours, MATPRODUCT_AB, &t));
  PetscCall(Make(Ours, 3, 5, 7, &other));
  PetscCall(MatGetNonzeroState(t.C, &state[0]));
  for (int k = 1; k < 3; k++) {
    PetscCall(MatProductReplaceMats(t.A, k == 1 ? other : t.B, NULL, t.C));
    PetscCall(MatProductNumeric(t.C));
    PetscCall(MatGetNonzeroState(t.C, &state[k]));
    /* the first product's pattern is within the second's, which stays */
    MatTestCheck(k == 1 ? state[1] > state[0] : state[2] >= state[1], "it went back, or stayed");
  }
  PetscCall(MatDestroy(&other));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One process alone sets an entry of the pattern that the symbolic phase left, so that its zeros are assembled on the
   others and not there. Whatever the numeric phase says, it says it to all, and an assembly makes the result whole. */
static PetscErrorCode OneEntry(MatProductType type)
{
  const PetscScalar one = 1;
  Log               seen[2];
  Three             t;
  Mat               C;
  PetscErrorCode    ierr;
  const PetscMPIInt rank = MatTestRank();
  int               errors[2];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(Name, sizeof(Name), "%s, one process sets an entry before the numeric phase", MatProductTypes[type]));
  PetscCall(Begin(Ours, type, &t));
  seen[0].n = seen[1].n = 0;
  PetscCall(NoteNorm(&seen[0], t.C));
  PetscCall(MatProductCreate(t.A, t.B, NULL, &C));
  PetscCall(MatTestSymbolic(type, NULL, C));
  if (!rank) PetscCall(MatSetValues(C, 1, &t.start, 1, &t.start, &one, ADD_VALUES));
  QUIETLY(ierr, MatProductNumeric(C));
  errors[0] = ierr != PETSC_SUCCESS;
  errors[1] = -errors[0];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, errors, 2, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  MatTestCheck(errors[0] == -errors[1], "an error of one process is one of all");
  PetscCall(MatTestAssemble(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(NoteNorm(&seen[1], C));
  MatTestCheck(PetscAbsReal(seen[0].seen[0] - seen[1].seen[0]) <= (PetscReal)1e-5 * seen[0].seen[0], "the product afterwards");
  PetscCall(MatDestroy(&C));
  PetscCall(End(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt rank;

  MatTestName = Name;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &Size));
  for (size_t u = 0; u < PETSC_STATIC_ARRAY_LENGTH(Uses); u++)
    for (int way = 0; way < Uses[u].ways; way++) {
      Log log[2] = {{.n = 0}, {.n = 0}};

      PetscCall(PetscSNPrintf(Name, sizeof(Name), "%s, way %d", Uses[u].name, way));
      for (int k = 0; k < 2; k++) PetscCall(Uses[u].run(k ? Ours : MATAIJ, way, &log[k]));
      PetscCall(CompareLogs(log));
    }
  PetscCall(Coordinates());
  PetscCall(States());
  MatTestBoth(OneEntry, MATPRODUCT_AB, MATPRODUCT_AtB);
  return MatTestEnd();
}
