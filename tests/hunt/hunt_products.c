/*
  Random sequences: a product is made, and then made again after anything has happened to its operands, to itself or to
  nobody. Operands get other values and other patterns, on all processes or on one alone, by coordinates, by another
  matrix's contents, by sums, by conversions, or others take their places. Each operand has a twin of type MATAIJ to
  which the same is done, and each result is compared with a new product of the twins.

TEST np=1,2 -runs 12
TEST np=+3 -runs 10
TEST np=1,3+2 @emulated -seed 10 -runs 1
TEST np=+2 @emulated -seed 11 -runs 1 -mat_aijhybridgpu_comm mpi

-seed N: the first sequence's; -runs N: so many sequences; -steps N: products again in each.
*/
#include "mattest.h"
#include <stdlib.h>

static PetscMPIInt Rank, Size;
static const char *Ours = "aijhybridgpu";

/* drawn alike on all processes */
static unsigned long State;
static PetscInt      Draw(PetscInt n)
{
  State = State * 6364136223846793005ul + 1442695040888963407ul;
  return (PetscInt)((State >> 33) % (unsigned long)n);
}

static PetscInt M, Local; /* rows of all, and of this process */

/* of each process: who draws the same number has the same entries */
typedef struct {
  PetscInt band, a, b, seed; /* band: two entries beside the diagonal, so that the counts are those of many others */
} Pattern;

static void PatternDraw(Pattern *p)
{
  const PetscInt alone = Draw(3) ? -1 : Draw(Size), mirror = Draw(2);
  Pattern        q = {.band = Draw(4), .a = 1 + Draw(2), .b = 3 + Draw(PetscMax(1, M / 3)), .seed = Draw(100000)};

  if (mirror && p->band) { /* as many entries as before everywhere, elsewhere: nothing that is counted tells */
    q   = *p;
    q.a = -p->a;
    q.b = -p->b;
  }
  if (alone < 0 || alone == Rank) *p = q; /* the others stay as they are */
}

static PetscInt Columns(const Pattern *p, PetscInt r, PetscInt c[4])
{
  unsigned long s = (unsigned long)(r + 1) * 2654435761ul + (unsigned long)p->seed * 40503ul;
  PetscInt      n = 0;

  if (p->band) {
    c[n++] = r;
    c[n++] = ((r + p->a) % M + M) % M;
    c[n++] = ((r + p->b) % M + M) % M;
    if (c[2] == c[1] || c[2] == c[0]) n--;
    return n;
  }
  for (int k = (int)(s % 5); k > 0; k--) {
    PetscInt was = 0;

    s = s * 6364136223846793005ul + 1442695040888963407ul;
    for (c[n] = (PetscInt)((s >> 33) % (unsigned long)M); was < n && c[was] != c[n];) was++;
    n += was == n; /* columns once */
  }
  return n;
}

static PetscErrorCode Coordinates(Mat A, const Pattern *p)
{
  PetscInt start, end, *i, *j, c[4], n = 0;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc2(4 * Local, &i, 4 * Local, &j));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt k = 0, m = Columns(p, r, c); k < m; k++) {
      i[n]   = r;
      j[n++] = c[k];
    }
  PetscCall(MatSetPreallocationCOO(A, n, i, j));
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Values(Mat A, const Pattern *p, PetscInt seed)
{
  PetscInt     start, end, c[4], n = 0;
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &start, &end));
  PetscCall(PetscMalloc1(4 * Local + 1, &v));
  for (PetscInt r = start; r < end; r++)
    for (PetscInt k = 0, m = Columns(p, r, c); k < m; k++) v[n++] = PetscSinReal((PetscReal)(3 * r + 7 * c[k]) + (PetscReal)seed) + 1.5;
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(MatType type, const Pattern *p, PetscInt seed, Mat *A)
{
  PetscLayout rows, columns;

  PetscFunctionBeginUser;
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, type, Local, Local, M, M, A));
  PetscCall(MatGetLayouts(*A, &rows, &columns));
  MatTestBoth(PetscLayoutSetUp, rows, columns);
  PetscCall(Coordinates(*A, p));
  PetscCall(Values(*A, p, seed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an operand and its twin */
typedef struct {
  Mat     H, T;
  Pattern p;
} Operand;

static PetscErrorCode OperandMake(Operand *o)
{
  const PetscInt seed = Draw(1000);

  PetscFunctionBeginUser;
  PatternDraw(&o->p);
  PetscCall(Make(Draw(5) ? Ours : MATAIJ, &o->p, seed, &o->H));
  PetscCall(Make(MATAIJ, &o->p, seed, &o->T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* both get coordinates anew; somebody may multiply before the values come */
static PetscErrorCode Anew(Operand *o)
{
  const PetscInt seed = Draw(1000), between = Draw(3), convert = Draw(3);
  MatType        was;
  char           type[64];

  PetscFunctionBeginUser;
  PatternDraw(&o->p);
  PetscCall(MatGetType(o->H, &was));
  PetscCall(PetscStrncpy(type, was, sizeof(type)));
  if (!convert) PetscCall(MatConvert(o->H, MATAIJ, MAT_INPLACE_MATRIX, &o->H));
  PetscCall(Coordinates(o->H, &o->p));
  PetscCall(Coordinates(o->T, &o->p));
  if (!between) {
    PetscBool ready[2];

    PetscCall(MatAssembled(o->H, &ready[0]));
    PetscCall(MatAssembled(o->T, &ready[1]));
    if (ready[0] && ready[1]) MatTestCheckMult(o->H, o->T, "a product with a vector before the values");
  }
  PetscCall(Values(o->H, &o->p, seed));
  PetscCall(Values(o->T, &o->p, seed));
  if (!convert) PetscCall(MatConvert(o->H, type, MAT_INPLACE_MATRIX, &o->H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* something happens to an operand */
static PetscErrorCode Happen(Operand *o, const char **what)
{
  PetscScalar factor = (PetscReal)(1 + Draw(7)) / 4;
  Operand     x      = {.p = o->p};
  PetscInt    row, start, end;

  PetscFunctionBeginUser;
  switch (Draw(7)) {
  case 0:
  case 1:
    *what = "coordinates anew";
    PetscCall(Anew(o));
    break;
  case 2:
    *what = "another one's contents";
    PetscCall(OperandMake(&x));
    PetscCall(MatHeaderReplace(o->H, &x.H));
    PetscCall(MatHeaderReplace(o->T, &x.T));
    o->p = x.p;
    break;
  case 3:
    *what = "a sum";
    PetscCall(OperandMake(&x));
    PetscCall(MatAXPY(o->T, factor, x.T, DIFFERENT_NONZERO_PATTERN));
    if (Draw(2)) PetscCall(MatConvert(x.H, Ours, MAT_INPLACE_MATRIX, &x.H));
    PetscCall(MatAXPY(o->H, factor, x.H, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatTestDestroy(&x.H, &x.T));
    break;
  case 4:
    *what = "rows zeroed";
    row   = Draw(M);
    PetscCall(MatGetOwnershipRange(o->T, &start, &end));
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSetOption(k ? o->H : o->T, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
      PetscCall(MatZeroRows(k ? o->H : o->T, row >= start && row < end, &row, 0.0, NULL, NULL));
    }
    break;
  case 5:
    *what = "scaled";
    MatTestBoth(MatScale, o->H, o->T, factor);
    break;
  default:
    *what = "a product with a vector";
    MatTestCheckMult(o->H, o->T, *what);
    MatTestCheckMultTranspose(o->H, o->T, *what);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* other matrices take operands' places */
static PetscErrorCode Exchange(Operand o[3], int n, Mat C)
{
  Operand x[3];

  PetscFunctionBeginUser;
  for (int k = 0; k < n; k++) {
    x[k] = o[k];
    if (Draw(2)) {
      PetscCall(MatDuplicate(o[k].H, MAT_COPY_VALUES, &x[k].H));
      PetscCall(MatDuplicate(o[k].T, MAT_COPY_VALUES, &x[k].T));
    } else {
      PetscCall(OperandMake(&x[k]));
      PetscCall(MatConvert(x[k].H, Ours, MAT_INPLACE_MATRIX, &x[k].H));
    }
  }
  PetscCall(MatProductReplaceMats(x[0].H, x[1].H, n > 2 ? x[2].H : NULL, C));
  for (int k = 0; k < n; k++) {
    PetscCall(MatTestDestroy(&o[k].H, &o[k].T));
    o[k] = x[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the result gets other values or another pattern */
static PetscErrorCode Disturb(Mat C)
{
  PetscInt    row = Draw(M), way = Draw(3), start, end, c;
  PetscScalar v = 1;
  PetscBool   assembled;

  PetscFunctionBeginUser;
  c = Draw(M);
  PetscCall(MatAssembled(C, &assembled));
  if (!assembled) PetscFunctionReturn(PETSC_SUCCESS); /* a new symbolic phase has left it so: no value of it is there */
  if (!way) {
    PetscCall(MatScale(C, 3.0));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetOwnershipRange(C, &start, &end));
  PetscCall(MatTestLetIn(C));
  PetscCall(MatSetOption(C, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  if (way == 1) PetscCall(MatZeroRows(C, row >= start && row < end, &row, 0.0, NULL, NULL));
  if (row >= start && row < end) PetscCall(MatSetValues(C, 1, &row, 1, &c, &v, INSERT_VALUES));
  PetscCall(MatTestAssemble(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(MatProductType type, const Operand o[3], Mat C, const char *what)
{
  Mat E;

  PetscFunctionBeginUser;
  if (type == MATPRODUCT_ABC) { /* which MATAIJ has not in parallel everywhere */
    Mat W;

    PetscCall(MatMatMult(o[0].T, o[1].T, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &W));
    PetscCall(MatMatMult(W, o[2].T, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &E));
    PetscCall(MatDestroy(&W));
  } else
    PetscCall(MatTestProduct(type, o[0].T, o[1].T, NULL, &E));
  MatTestCheckSame(C, E, what);
  PetscCall(MatDestroy(&E));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(PetscInt steps)
{
  const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt, MATPRODUCT_ABC};
  const MatProductType type    = types[Draw(6)];
  const int            n       = type == MATPRODUCT_ABC ? 3 : 2;
  Operand              o[3]    = {{.H = NULL}, {.H = NULL}, {.H = NULL}};
  const char          *what    = "first";
  Mat                  C;

  PetscFunctionBeginUser;
  MatTestName = MatProductTypes[type];
  M           = Draw(2) ? 6 + Draw(30) : Size * (3 + Draw(8));
  Local       = M / Size + (Rank < M % Size);
  if (Size > 1 && !Draw(3)) { /* the last has nothing, or the first has all but one of each */
    const PetscMPIInt last = Size - 1;

    if (Draw(2))
      Local = Rank == last ? 0 : M / last + (Rank < M % last);
    else
      Local = Rank ? 1 : M - last;
  }
  for (int k = 0; k < n; k++) PetscCall(OperandMake(&o[k]));
  PetscCall(MatConvert(o[0].H, Ours, MAT_INPLACE_MATRIX, &o[0].H)); /* one at least is ours */
  PetscCall(MatTestProduct(type, o[0].H, o[1].H, n > 2 ? o[2].H : NULL, &C));
  PetscCall(Compare(type, o, C, what));
  for (PetscInt s = 0; s < steps; s++) {
    for (PetscInt k = Draw(3); k >= 0; k--) {
      const PetscInt choice = Draw(6);

      if (!choice) {
        what = "other matrices";
        PetscCall(Exchange(o, n, C));
      } else if (choice == 1) {
        what = "a result that was changed";
        PetscCall(Disturb(C));
      } else
        PetscCall(Happen(&o[Draw(n)], &what));
    }
    PetscCall(MatConvert(o[0].H, Ours, MAT_INPLACE_MATRIX, &o[0].H));
    PetscCall(MatProductNumeric(C));
    PetscCall(Compare(type, o, C, what));
    if (!Draw(3)) PetscCall(MatProductNumeric(C));
  }
  PetscCall(Compare(type, o, C, "at the end"));
  for (int k = 0; k < n; k++) PetscCall(MatTestDestroy(&o[k].H, &o[k].T));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt seed = 1, runs = 12, steps = 6;

  PetscCall(MatTestInitialize(&argc, &argv, &Rank, &Size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-runs", &runs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
  for (PetscInt r = 0; r < runs; r++) {
    const PetscInt failed = MatTestFailed;

    MatTestSeed = seed + r;
    State       = (unsigned long)MatTestSeed * 2654435761ul + 12345ul;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "-seed %" PetscInt_FMT "\n", MatTestSeed)); /* should it never come back */
    PetscCall(Run(steps));
    if (MatTestFailed > failed) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "again: -seed %" PetscInt_FMT " -runs 1 -steps %" PetscInt_FMT "\n", MatTestSeed, steps));
  }
  return MatTestEnd();
}
