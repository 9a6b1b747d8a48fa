/*
  What a product's result keeps of its own between two numeric phases: a pattern that is wider than the product's, be it
  that entries came, coordinates gave it one, or an operand lost some; its coordinates, its states. Each step is done
  with MATAIJ and with the type; errors, entries, patterns and states are compared.

TEST np=1,2+3
TEST np=1+2,3 @emulated
TEST np=+2 @emulated -mat_aijhybridgpu_comm mpi
TEST np=1+2 @emulated -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -mat_aijhybridgpu_promote never
*/
#include "resultlog.h"
#include <petsc/private/petscimpl.h>

typedef struct {
  MatType          type;
  MatProductType   product;
  Mat              A, B, C;
  PetscInt         start, end;
  PetscObjectState was;
} Three;

/* the entries, which ones there are, and whether the pattern is said to be another one */
static PetscErrorCode Look(Three *t, Log *log)
{
  PetscReal        sum[3] = {0, 0, 0};
  PetscObjectState now;
  PetscBool        assembled;

  PetscFunctionBeginUser;
  PetscCall(MatAssembled(t->C, &assembled));
  Note(log, assembled, "assembled");
  PetscCall(MatGetNonzeroState(t->C, &now));
  Note(log, now != t->was, "another pattern");
  t->was = now;
  if (!assembled) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt r = t->start; r < t->end; r++) {
    const PetscInt    *c;
    const PetscScalar *v;
    PetscInt           n;

    PetscCall(MatGetRow(t->C, r, &n, &c, &v));
    for (PetscInt k = 0; k < n; k++) {
      sum[0] += (PetscReal)((31 * r + 17 * c[k]) % 97);
      sum[1] += PetscRealPart(v[k]) * (PetscReal)(1 + (5 * r + 3 * c[k]) % 7);
      sum[2] += 1;
    }
    PetscCall(MatRestoreRow(t->C, r, &n, &c, &v));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPIU_REAL, MPI_SUM, PETSC_COMM_WORLD));
  Note(log, sum[2], "entries");
  Note(log, sum[0], "where they are");
  Note(log, sum[1], "values");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Begin(MatType type, MatProductType product, Three *t)
{
  PetscFunctionBeginUser;
  t->type    = type;
  t->product = product;
  t->was     = 0;
  PetscCall(Make(type, 1, 2, 0, &t->A));
  PetscCall(Make(type, 1, -1, 5, &t->B));
  PetscCall(MatTestProduct(product, t->A, t->B, product == MATPRODUCT_ABC ? t->A : NULL, &t->C));
  PetscCall(MatGetOwnershipRange(t->C, &t->start, &t->end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Three *t)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestDestroy(&t->A, &t->B, &t->C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* once more; and the type's is the product, whatever MATAIJ's is */
static PetscErrorCode Again(Three *t, Log *log)
{
  Mat fresh;

  PetscFunctionBeginUser;
  TRY(log, MatProductNumeric(t->C));
  PetscCall(Look(t, log));
  if (t->type != Ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTestProduct(t->product, t->A, t->B, t->product == MATPRODUCT_ABC ? t->A : NULL, &fresh));
  MatTestCheckSame(t->C, fresh, "the product");
  PetscCall(MatDestroy(&fresh));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries come one by one */
static PetscErrorCode Entries(Three *t, Log *log)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestLetIn(t->C));
  for (PetscInt turn = 0; turn < 2; turn++) {
    TRY(log, MatSetValue(t->C, t->start, (t->start + 6 + turn) % N, 1.0, INSERT_VALUES));
    TRY(log, MatTestAssemble(t->C));
    PetscCall(Look(t, log));
    PetscCall(Again(t, log));
    PetscCall(MatScale(t->A, 2.0));
    PetscCall(Again(t, log));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values are set where there are some */
static PetscErrorCode Values(Three *t, Log *log)
{
  PetscFunctionBeginUser;
  for (PetscInt turn = 0; turn < 3; turn++) {
    TRY(log, MatSetValue(t->C, t->start, t->start, 1.0, turn ? ADD_VALUES : INSERT_VALUES));
    TRY(log, MatTestAssemble(t->C));
    PetscCall(Look(t, log));
    PetscCall(MatScale(t->A, 2.0));
    PetscCall(Again(t, log));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* another matrix is added */
static PetscErrorCode Sum(Three *t, Log *log)
{
  Mat X;

  PetscFunctionBeginUser;
  PetscCall(Make(t->type, 5, 6, 3, &X));
  for (PetscInt turn = 0; turn < 2; turn++) {
    TRY(log, MatAXPY(t->C, 1.0, X, turn ? SUBSET_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatGetNonzeroState(t->C, &t->was)); /* MATAIJ may give the sum the number that the result had */
    PetscCall(Look(t, log));
    PetscCall(Again(t, log));
    PetscCall(MatScale(t->B, 2.0));
    PetscCall(Again(t, log));
  }
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the first operand loses entries */
static PetscErrorCode Loses(Three *t, Log *log)
{
  PetscFunctionBeginUser;
  PetscCall(MatZeroRows(t->A, 1, &t->start, 2.0, NULL, NULL));
  PetscCall(Again(t, log));
  PetscCall(MatScale(t->A, 2.0));
  PetscCall(Again(t, log));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* another one, with fewer entries, comes in its place */
static PetscErrorCode Fewer(Three *t, Log *log)
{
  Mat X;

  PetscFunctionBeginUser;
  PetscCall(Make(t->type, 1, 0, 3, &X));
  for (PetscInt turn = 0; turn < 2; turn++) {
    Mat was = t->A;

    TRY(log, MatProductReplaceMats(X, NULL, t->product == MATPRODUCT_ABC ? X : NULL, t->C));
    t->A = X;
    X    = was;
    PetscCall(Again(t, log));
  }
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* coordinates for the result, among them all entries of the product */
static PetscErrorCode Coordinates(Three *t, Log *log)
{
  PetscInt    n = 0, i[12 * N], j[12 * N];
  PetscScalar v[12 * N];

  PetscFunctionBeginUser;
  for (PetscInt r = t->start; r < t->end; r++)
    for (PetscInt c = 0; c < 11; c++) {
      i[n]   = r;
      j[n]   = (r + c - 4 + N) % N;
      v[n++] = (PetscReal)(1 + c + r);
    }
  TRY(log, MatSetPreallocationCOO(t->C, n, i, j));
  TRY(log, MatSetValuesCOO(t->C, v, INSERT_VALUES));
  /* MATAIJ counts entries in some products */
  if (Size > 1 && PETSC_VERSION_LT(3, 22, 0)) PetscCall(MatGetNonzeroState(t->C, &t->was));
  PetscCall(Look(t, log));
  for (PetscInt turn = 0; turn < 2; turn++) {
    PetscCall(Again(t, log));
    TRY(log, MatSetValuesCOO(t->C, v, turn ? ADD_VALUES : INSERT_VALUES));
    PetscCall(Look(t, log));
    PetscCall(MatScale(t->A, 2.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the preallocation of before: a result's, with entries that came since, a copy's, a sum's */
static PetscErrorCode Reset(Three *t, Log *log)
{
  Mat copy, X;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(t->C, MAT_COPY_VALUES, &copy));
  TRY(log, MatResetPreallocation(copy));
  PetscCall(MatDestroy(&copy));
  for (PetscInt turn = 0; turn < 2; turn++) {
    TRY(log, MatResetPreallocation(t->C));
    PetscCall(Look(t, log));
    TRY(log, MatSetValue(t->C, t->start, t->start, 3.0, INSERT_VALUES));
    TRY(log, MatTestAssemble(t->C));
    PetscCall(Look(t, log));
    /* most of the result's entries are gone: MATAIJ's parallel A B goes by the places that they had */
    if (!turn || Size == 1 || (t->product != MATPRODUCT_AB && t->product != MATPRODUCT_ABC)) PetscCall(Again(t, log));
    if (turn) break;
    PetscCall(MatTestLetIn(t->C));
    TRY(log, MatSetValue(t->C, t->start, (t->start + 6) % N, 1.0, INSERT_VALUES));
    TRY(log, MatTestAssemble(t->C));
    PetscCall(Look(t, log));
  }
  PetscCall(Make(t->type, 5, 6, 3, &X));
  TRY(log, MatAXPY(t->C, 1.0, X, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatGetNonzeroState(t->C, &t->was));
  TRY(log, MatResetPreallocation(t->C));
  PetscCall(Look(t, log));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the symbolic phase again, which some products allow */
static PetscErrorCode Twice(Three *t, Log *log)
{
  PetscFunctionBeginUser;
  for (PetscInt turn = 0; turn < 2; turn++) {
    PetscErrorCode ierr;

    QUIETLY(ierr, MatProductSymbolic(t->C));
    Note(log, ierr, "MatProductSymbolic()");
    if (ierr) break;
    PetscCall(MatProductSetFromOptions(t->C));
    PetscCall(Look(t, log));
    PetscCall(Again(t, log));
    PetscCall(MatScale(t->A, 2.0));
    PetscCall(Again(t, log));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the numbers that a pattern has which coordinates have made, once and again */
static PetscErrorCode Numbers(Three *t, Log *log)
{
  Mat A;

  PetscFunctionBeginUser;
  if (t->product != MATPRODUCT_AB) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, t->type, PETSC_DECIDE, PETSC_DECIDE, N, N, &A));
  for (PetscInt turn = 0; turn < 5; turn++) {
    PetscInt         n = 0, i[3 * N], j[3 * N];
    PetscScalar      v[3 * N];
    PetscObjectState state, pattern;

    for (PetscInt r = t->start; r < t->end; r++)
      for (PetscInt c = 0; c < (turn ? 3 : 1); c++) { /* at first a diagonal */
        i[n]   = turn == 4 ? (r + 1) % N : r;         /* others' rows */
        j[n]   = turn == 2 ? (r + 3 * c) % N : (r + c) % N;
        v[n++] = (PetscReal)(1 + c + r);
      }
    TRY(log, MatSetPreallocationCOO(A, n, i, j));
    for (PetscInt again = 0; again < 3; again++) {
      PetscCall(MatGetNonzeroState(A, &pattern));
      Note(log, (PetscReal)pattern, "state of the pattern");
      PetscCall(PetscObjectStateGet((PetscObject)A, &state));
      Note(log, (PetscReal)state, "state");
      TRY(log, MatSetValuesCOO(A, v, again ? ADD_VALUES : INSERT_VALUES));
    }
    PetscCall(MatGetNonzeroState(A, &pattern));
    Note(log, (PetscReal)pattern, "state of the pattern");
    if (turn == 2) TRY(log, MatProductNumeric(t->C));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* entries of another process's row are under way when the product is made again; MATAIJ adds entries itself in some */
static PetscErrorCode UnderWay(Three *t, Log *log)
{
  const PetscInt  r    = t->end % N;
  const PetscBool adds = (PetscBool)(t->product == MATPRODUCT_AtB || t->product == MATPRODUCT_PtAP);

  PetscFunctionBeginUser;
  for (PetscInt turn = 0; turn < 4; turn++) {
    if (turn == 2) PetscCall(MatSetOption(t->C, MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
    if (turn % 2 || adds)
      TRY(log, MatSetValue(t->C, r, r, 50, ADD_VALUES));
    else
      TRY(log, MatSetValue(t->C, r, r, 50, INSERT_VALUES));
    TRY(log, MatProductNumeric(t->C));
    PetscCall(Look(t, log));
    TRY(log, MatTestAssemble(t->C));
    PetscCall(Look(t, log));
    PetscCall(MatScale(t->A, 2.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is known of a result after each phase, and that nobody may use it before the numeric one */
static PetscErrorCode States(Three *t, Log *log)
{
  Vec x;
  Mat C;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(t->A, &x, NULL));
  PetscCall(VecSet(x, 1));
  PetscCall(MatProductCreate(t->A, t->B, t->product == MATPRODUCT_ABC ? t->A : NULL, &C));
  PetscCall(MatTestSymbolic(t->product, NULL, C));
  for (PetscInt phase = 0; phase < 3; phase++) {
    PetscObjectState state, pattern;
    PetscBool        assembled;
    MatInfo          info;

    if (phase) TRY(log, MatProductNumeric(C));
    PetscCall(PetscObjectStateGet((PetscObject)C, &state));
    PetscCall(MatGetNonzeroState(C, &pattern));
    PetscCall(MatAssembled(C, &assembled));
    PetscCall(MatGetInfo(C, MAT_LOCAL, &info));
    Note(log, (PetscReal)state, "state");
    /* before 3.22 MATAIJ's parallel ones count the entries that they set */
    if (Size == 1 || PETSC_VERSION_GE(3, 22, 0)) Note(log, (PetscReal)pattern, "state of the pattern");
    Note(log, assembled, "assembled");
    if (Size == 1) Note(log, (PetscReal)info.assemblies, "assemblies");
    if (!assembled) TRY(log, MatMult(C, x, x));
    /* others' rows: refused by some */
    if (phase && Size > 1 && t->start > 0) TRY(log, MatSetValue(C, 0, 0, 1.0, ADD_VALUES));
    if (phase) TRY(log, MatTestAssemble(C));
  }
  PetscCall(MatTestDestroy(&C, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*run)(Three *, Log *);
  PetscBool wide; /* the result gets a wider pattern */
} Cases[] = {
  {"values",      Values,      PETSC_FALSE},
  {"entries",     Entries,     PETSC_TRUE },
  {"sum",         Sum,         PETSC_TRUE },
  {"loses",       Loses,       PETSC_FALSE},
  {"fewer",       Fewer,       PETSC_FALSE},
  {"coordinates", Coordinates, PETSC_TRUE },
  {"states",      States,      PETSC_FALSE},
  {"reset",       Reset,       PETSC_FALSE},
  {"twice",       Twice,       PETSC_FALSE},
  {"numbers",     Numbers,     PETSC_FALSE},
  {"under way",   UnderWay,    PETSC_FALSE}
};

/* what MATAIJ does not do, or does wrong */
static PetscBool Fits(MatProductType type, size_t c)
{
  if (Size > 1 && (type == MATPRODUCT_ABt || type == MATPRODUCT_RARt)) return PETSC_FALSE;
  /* before 3.22 nothing of the pattern is left, into which its numeric phases cannot put the product */
  if (Size > 1 && PETSC_VERSION_LT(3, 22, 0) && Cases[c].run == Reset) return PETSC_FALSE;
  /* it transposes into the pattern that A had */
  if (type == MATPRODUCT_AtB && (Cases[c].run == Loses || Cases[c].run == Fewer)) return PETSC_FALSE;
  /* it clears one value more than there are, which only its own symbolic phase has room for */
  if (type == MATPRODUCT_ABt && Cases[c].wide) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* What MATAIJ does wrong in parallel: its A B goes by the places that the product's entries had, and the right operand
   by those that it had */
static PetscBool Alone(MatProductType type, size_t c)
{
  if (Size == 1) return PETSC_FALSE;
  if (Cases[c].wide) return (PetscBool)(type == MATPRODUCT_AB || type == MATPRODUCT_ABC);
  return (PetscBool)(type == MATPRODUCT_ABC && (Cases[c].run == Loses || Cases[c].run == Fewer));
}

int main(int argc, char **argv)
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};
  PetscInt                    only    = -1;
  PetscMPIInt                 rank;

  MatTestName = Name;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &Size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-case", &only, NULL));
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(Cases); c++)
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
      Log   log[2] = {{.n = 0}, {.n = 0}};
      Three t;

      if (!Fits(types[k], c) || (only >= 0 && only != (PetscInt)c)) continue;
      PetscCall(PetscSNPrintf(Name, sizeof(Name), "%s, %s", Cases[c].name, MatProductTypes[types[k]]));
      for (int o = Alone(types[k], c); o < 2; o++) {
        PetscCall(Begin(o ? Ours : MATAIJ, types[k], &t));
        PetscCall(Look(&t, &log[o]));
        PetscCall((*Cases[c].run)(&t, &log[o]));
        PetscCall(End(&t));
      }
      if (!log[0].n) continue;
      PetscCall(CompareLogs(log));
    }
  return MatTestEnd();
}
