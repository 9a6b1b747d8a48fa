/*
  bench_aij.c: is any operation of Mat slower than MATAIJ's? Each one on matrices of both types in one process, by
  turns; the least of many turns of processor time, of the slowest process. Every result is compared with MATAIJ's.

    make bench-aij [BENCH_AIJ_ARGS="-sizes 10,1000 -only MatAXPY"] [BENCH_AIJ_NP="1 2"]

  Runs with -dll_append .../libaijhybridgpu.so. One line for each operation and size where the type takes more than 1.1
  times MATAIJ's time and 3 us for each matrix that is made (-all: for every one), and at the end the worst. -limit F:
  another factor, and an error where something takes more; -slack: microseconds a call that count for nothing. What is
  over the limit is measured twice more before it is believed.

  -than aijcusparse: beside that type in place of MATAIJ, on a card. Time is then the clock's, until the card has done
  what it was given.
*/
#include <petscmat.h>
#include <time.h>
#include "bench_wait.h"

#define BENCH_EACH 3e-6 /* seconds for each matrix that is made */

typedef struct {
  Mat      A, D, E, P, C; /* a 5-point matrix, its duplicate, A*A, an interpolation; what an operation has made */
  Vec      x, y, z;
  IS       rows;
  PetscInt n, first, end, side;
} Fixture;

typedef PetscErrorCode (*Operation)(Fixture *);

static char      than[64] = MATAIJ;
static PetscBool card; /* that a clock shows what a card does */

static double Clock(void)
{
  struct timespec t;

  clock_gettime(card ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define OPERATION(name, ...)             \
  static PetscErrorCode name(Fixture *f) \
  {                                      \
    PetscFunctionBegin;                  \
    __VA_ARGS__;                         \
    PetscFunctionReturn(PETSC_SUCCESS);  \
  }
#define ASSEMBLE(M)                                     \
  do {                                                  \
    PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY)); \
    PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));   \
  } while (0)

/* row r's columns and values; how many */
static PetscInt Row(const Fixture *f, PetscInt r, PetscInt cols[5], PetscScalar v[5])
{
  const PetscInt steps[] = {-f->side, -1, 0, 1, f->side};
  PetscInt       n       = 0;

  for (int k = 0; k < 5; k++) {
    const PetscInt c = r + steps[k];

    if (c < 0 || c >= f->n || (k == 1 && r % f->side == 0) || (k == 3 && c % f->side == 0)) continue;
    cols[n] = c;
    v[n++]  = steps[k] ? -1.0 + 0.001 * (PetscReal)(r % 7) : 4.5;
  }
  return n;
}

static PetscErrorCode Fill(const Fixture *f, Mat M)
{
  PetscInt    cols[5];
  PetscScalar v[5];

  PetscFunctionBegin;
  for (PetscInt r = f->first; r < f->end; r++) {
    const PetscInt n = Row(f, r, cols, v);

    PetscCall(MatSetValues(M, 1, &r, n, cols, v, INSERT_VALUES));
  }
  ASSEMBLE(M);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode New(MatType type, PetscInt m, PetscInt n, PetscInt width, Mat *M)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, M));
  PetscCall(MatSetSizes(*M, PETSC_DECIDE, PETSC_DECIDE, m, n));
  PetscCall(MatSetType(*M, type));
  PetscCall(MatSeqAIJSetPreallocation(*M, width, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*M, width, NULL, width, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* clang-format off */
OPERATION(Singles, PetscInt c[5]; PetscScalar v[5]; for (PetscInt r = f->first; r < f->end; r++) { const PetscInt n = Row(f, r, c, v); for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(f->D, r, c[k], v[k], INSERT_VALUES)); } ASSEMBLE(f->D))
OPERATION(Rows, PetscCall(Fill(f, f->D)))
OPERATION(Elements, PetscCall(MatZeroEntries(f->D)); for (PetscInt r = f->first; r + 1 < f->end; r++) { const PetscInt c[] = {r, r + 1}; const PetscScalar v[] = {1, -1, -1, 1}; if ((r + 1) % f->side) PetscCall(MatSetValues(f->D, 2, c, 2, c, v, ADD_VALUES)); } ASSEMBLE(f->D))
OPERATION(GetRows, const PetscInt *c; const PetscScalar *v; PetscInt n; for (PetscInt r = f->first; r < f->end; r++) { PetscCall(MatGetRow(f->A, r, &n, &c, &v)); PetscCall(MatRestoreRow(f->A, r, &n, &c, &v)); })
OPERATION(GetValues, PetscScalar v; for (PetscInt r = f->first; r < f->end; r++) PetscCall(MatGetValues(f->A, 1, &r, 1, &r, &v)))
OPERATION(Empty, ASSEMBLE(f->D))
OPERATION(Zero, PetscCall(MatZeroEntries(f->D)))
OPERATION(Create, MatType type; PetscCall(MatGetType(f->A, &type)); PetscCall(New(type, f->n, f->n, 5, &f->C)); PetscCall(Fill(f, f->C)))
OPERATION(Duplicate, PetscCall(MatDuplicate(f->A, MAT_COPY_VALUES, &f->C)))
OPERATION(Pattern, PetscCall(MatDuplicate(f->A, MAT_DO_NOT_COPY_VALUES, &f->C)))
OPERATION(Transpose, PetscCall(MatTranspose(f->A, MAT_INITIAL_MATRIX, &f->C)))
OPERATION(Product, PetscCall(MatMatMult(f->A, f->A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &f->C)))
OPERATION(ProductAgain, PetscCall(MatMatMult(f->A, f->A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &f->E)))
OPERATION(TransposeProduct, PetscCall(MatTransposeMatMult(f->P, f->A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &f->C)))
OPERATION(Galerkin, PetscCall(MatPtAP(f->A, f->P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &f->C)))
OPERATION(SubMatrix, PetscCall(MatCreateSubMatrix(f->A, f->rows, f->rows, MAT_INITIAL_MATRIX, &f->C)))
OPERATION(Copy, PetscCall(MatCopy(f->A, f->D, SAME_NONZERO_PATTERN)))
OPERATION(Convert, PetscCall(MatConvert(f->A, MATBAIJ, MAT_INITIAL_MATRIX, &f->C)))
OPERATION(Scale, PetscCall(MatScale(f->D, 1.0000001)))
OPERATION(Shift, PetscCall(MatShift(f->D, 1e-7)))
OPERATION(AXPYSame, PetscCall(MatAXPY(f->D, 1e-7, f->A, SAME_NONZERO_PATTERN)))
OPERATION(AXPYSubset, PetscCall(MatAXPY(f->E, 1e-7, f->A, SUBSET_NONZERO_PATTERN)))
OPERATION(AXPYDifferent, PetscCall(MatDuplicate(f->A, MAT_COPY_VALUES, &f->C)); PetscCall(MatAXPY(f->C, 1e-7, f->E, DIFFERENT_NONZERO_PATTERN)))
OPERATION(DiagonalScale, PetscCall(MatDiagonalScale(f->D, f->x, f->x)))
OPERATION(GetDiagonal, PetscCall(MatGetDiagonal(f->A, f->y)))
OPERATION(DiagonalSet, PetscCall(MatDiagonalSet(f->D, f->x, INSERT_VALUES)))
OPERATION(Norm, PetscReal norm; PetscCall(MatNorm(f->A, NORM_FROBENIUS, &norm)))
OPERATION(Mult, PetscCall(MatMult(f->A, f->x, f->y)))
OPERATION(MultAdd, PetscCall(MatMultAdd(f->A, f->x, f->z, f->y)))
OPERATION(MultTranspose, PetscCall(MatMultTranspose(f->A, f->x, f->y)))
OPERATION(Residual, PetscCall(MatResidual(f->A, f->z, f->x, f->y)))
OPERATION(Info, MatInfo info; PetscCall(MatGetInfo(f->A, MAT_LOCAL, &info)))
OPERATION(ZeroRows, PetscInt r = f->first; PetscCall(MatZeroRows(f->D, f->first < f->end, &r, 1.0, NULL, NULL)))
/* clang-format on */

static const struct {
  const char *name;
  Operation   f;
  int         made;   /* matrices */
  int         writes; /* D, which is A again afterwards */
} operations[] = {
  {.name = "MatSetValue",             .f = Singles,          .made = 0, .writes = 1},
  {.name = "MatSetValues, rows",      .f = Rows,             .made = 0, .writes = 1},
  {.name = "MatSetValues, elements",  .f = Elements,         .made = 0, .writes = 1},
  {.name = "MatGetRow",               .f = GetRows,          .made = 0, .writes = 0},
  {.name = "MatGetValues",            .f = GetValues,        .made = 0, .writes = 0},
  {.name = "assembly, nothing to do", .f = Empty,            .made = 0, .writes = 0},
  {.name = "MatZeroEntries",          .f = Zero,             .made = 0, .writes = 1},
  {.name = "create, fill, assemble",  .f = Create,           .made = 1, .writes = 0},
  {.name = "MatDuplicate",            .f = Duplicate,        .made = 1, .writes = 0},
  {.name = "MatDuplicate, no values", .f = Pattern,          .made = 1, .writes = 0},
  {.name = "MatTranspose",            .f = Transpose,        .made = 1, .writes = 0},
  {.name = "MatMatMult",              .f = Product,          .made = 1, .writes = 0},
  {.name = "MatMatMult, again",       .f = ProductAgain,     .made = 0, .writes = 0},
  {.name = "MatTransposeMatMult",     .f = TransposeProduct, .made = 1, .writes = 0},
  {.name = "MatPtAP",                 .f = Galerkin,         .made = 1, .writes = 0},
  {.name = "MatCreateSubMatrix",      .f = SubMatrix,        .made = 1, .writes = 0},
  {.name = "MatCopy",                 .f = Copy,             .made = 0, .writes = 1},
  {.name = "MatConvert to baij",      .f = Convert,          .made = 1, .writes = 0},
  {.name = "MatScale",                .f = Scale,            .made = 0, .writes = 1},
  {.name = "MatShift",                .f = Shift,            .made = 0, .writes = 1},
  {.name = "MatAXPY, same pattern",   .f = AXPYSame,         .made = 0, .writes = 1},
  {.name = "MatAXPY, subset",         .f = AXPYSubset,       .made = 0, .writes = 0},
  {.name = "MatAXPY, other pattern",  .f = AXPYDifferent,    .made = 2, .writes = 0},
  {.name = "MatDiagonalScale",        .f = DiagonalScale,    .made = 0, .writes = 1},
  {.name = "MatGetDiagonal",          .f = GetDiagonal,      .made = 0, .writes = 0},
  {.name = "MatDiagonalSet",          .f = DiagonalSet,      .made = 0, .writes = 1},
  {.name = "MatNorm",                 .f = Norm,             .made = 0, .writes = 0},
  {.name = "MatMult",                 .f = Mult,             .made = 0, .writes = 0},
  {.name = "MatMultAdd",              .f = MultAdd,          .made = 0, .writes = 0},
  {.name = "MatMultTranspose",        .f = MultTranspose,    .made = 0, .writes = 0},
  {.name = "MatResidual",             .f = Residual,         .made = 0, .writes = 0},
  {.name = "MatGetInfo",              .f = Info,             .made = 0, .writes = 0},
  {.name = "MatZeroRows",             .f = ZeroRows,         .made = 0, .writes = 1}
};

static PetscErrorCode FixtureCreate(MatType type, PetscInt rows, Fixture *f)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(f, sizeof(*f)));
  for (f->side = 1; f->side * f->side < rows; f->side++) {}
  f->n = f->side * f->side;
  PetscCall(New(type, f->n, f->n, 5, &f->A));
  PetscCall(MatGetOwnershipRange(f->A, &f->first, &f->end));
  PetscCall(Fill(f, f->A));
  PetscCall(New(type, f->n, (f->n + 1) / 2, 2, &f->P));
  for (PetscInt r = f->first; r < f->end; r++) {
    PetscCall(MatSetValue(f->P, r, r / 2, r % 2 ? 0.5 : 1.0, INSERT_VALUES));
    if (r % 2 && r / 2 + 1 < (f->n + 1) / 2) PetscCall(MatSetValue(f->P, r, r / 2 + 1, 0.5, INSERT_VALUES));
  }
  ASSEMBLE(f->P);
  PetscCall(MatDuplicate(f->A, MAT_COPY_VALUES, &f->D));
  PetscCall(MatSetOption(f->D, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatMatMult(f->A, f->A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &f->E));
  PetscCall(MatCreateVecs(f->A, &f->x, &f->y));
  PetscCall(VecDuplicate(f->y, &f->z));
  for (PetscInt r = f->first; r < f->end; r++) PetscCall(VecSetValue(f->x, r, 1.0 + 0.01 * (PetscReal)(r % 5), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(f->x));
  PetscCall(VecAssemblyEnd(f->x));
  PetscCall(VecCopy(f->x, f->z));
  PetscCall(VecCopy(f->x, f->y));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (f->end - f->first + 1) / 2, f->first, 2, &f->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FixtureDestroy(Fixture *f)
{
  PetscFunctionBegin;
  PetscCall(MatDestroy(&f->A));
  PetscCall(MatDestroy(&f->D));
  PetscCall(MatDestroy(&f->E));
  PetscCall(MatDestroy(&f->P));
  PetscCall(VecDestroy(&f->x));
  PetscCall(VecDestroy(&f->y));
  PetscCall(VecDestroy(&f->z));
  PetscCall(ISDestroy(&f->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* seconds a call, calls in a row */
static PetscErrorCode Turn(Fixture *f, Operation op, PetscInt calls, double *least)
{
  double begin, mine, slowest;

  PetscFunctionBegin;
  if (card) PetscCall(Synchronize());
  begin = Clock();
  for (PetscInt k = 0; k < calls; k++) {
    PetscCall((*op)(f));
    PetscCall(MatDestroy(&f->C));
  }
  if (card) PetscCall(Synchronize());
  mine = (Clock() - begin) / (double)calls;
  PetscCallMPI(MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, PETSC_COMM_WORLD));
  *least = PetscMin(*least, slowest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what an operation can have changed, in one number */
static PetscErrorCode Result(Fixture *f, size_t k, PetscReal *sum)
{
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall((*operations[k].f)(f));
  PetscCall(MatNorm(f->C ? f->C : operations[k].writes ? f->D
                                                       : f->E,
                    NORM_FROBENIUS, sum));
  PetscCall(VecNorm(f->y, NORM_2, &norm));
  *sum += norm;
  PetscCall(MatDestroy(&f->C));
  if (operations[k].writes) PetscCall(Fill(f, f->D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(Fixture f[2], size_t k, PetscInt turns, double t[2])
{
  const PetscInt calls = PetscMax(1, 3000 / f[0].n);

  PetscFunctionBegin;
  t[0] = t[1] = 1e9;
  for (PetscInt r = 0; r < turns; r++) {
    for (int s = 0; s < 2; s++) {
      PetscCall(Turn(&f[s], operations[k].f, calls, &t[s]));
      if (operations[k].writes) PetscCall(Fill(&f[s], f[s].D));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  double      over; /* of what is allowed */
  const char *name;
  PetscInt    n;
  double      t[2];
} Worst;

static PetscErrorCode Size(PetscInt rows, PetscInt turns, double limit, double slack, PetscBool all, const char only[], Worst *worst)
{
  Fixture f[2];

  PetscFunctionBegin;
  PetscCall(FixtureCreate(than, rows, &f[0]));
  PetscCall(FixtureCreate("aijhybridgpu", rows, &f[1]));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(operations); k++) {
    double    t[2], allowed = 0, over = 0;
    PetscReal sum[2];

    if (only[0] && !strstr(operations[k].name, only)) continue;
    for (int s = 0; s < 2; s++) PetscCall(Result(&f[s], k, &sum[s]));
    PetscCheck(PetscAbsReal(sum[0] - sum[1]) <= 1e-8 * PetscAbsReal(sum[0]), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s of %" PetscInt_FMT " rows: %g, %s has %g", operations[k].name, f[0].n, (double)sum[1], than, (double)sum[0]);
    for (int attempt = 0; attempt < 3; attempt++) {
      PetscCall(Measure(f, k, turns << attempt, t));
      allowed = limit * t[0] + BENCH_EACH * operations[k].made + slack;
      over    = t[1] / allowed;
      if (over <= 1) break;
    }
    if (all || over > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%8" PetscInt_FMT "  %-26s %12.3f %12.3f %6.2f%s\n", f[0].n, operations[k].name, 1e6 * t[0], 1e6 * t[1], t[1] / t[0], over > 1 ? "  *" : ""));
    if (over > worst->over) *worst = (Worst){
                              over, operations[k].name, f[0].n, {t[0], t[1]}
 };
  }
  for (int s = 0; s < 2; s++) PetscCall(FixtureDestroy(&f[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  sizes[16] = {9, 100, 1000, 10000, 100000, 1000000}, n = 16, turns = 7;
  PetscReal limit = 1.1, slack = 0;
  PetscBool set, strict, all = PETSC_FALSE;
  char      only[64] = "";
  Worst     worst    = {
           0, "none", 0, {0, 0}
  };

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-sizes", sizes, &n, &set));
  if (!set) n = 6;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-turns", &turns, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-limit", &limit, &strict));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-slack", &slack, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-all", &all, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-than", than, sizeof(than), &card));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "    rows  operation              %14s, us      ours, us  ratio\n", than));
  for (PetscInt k = 0; k < n; k++) PetscCall(Size(sizes[k], turns, (double)limit, 1e-6 * (double)slack, all, only, &worst));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "worst: %s of %" PetscInt_FMT " rows, %.2f times what is allowed (%.3f us, %s %.3f)\n", worst.name, worst.n, worst.over, 1e6 * worst.t[1], than, 1e6 * worst.t[0]));
  PetscCheck(!strict || worst.over <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s of %" PetscInt_FMT " rows takes more than %g times the time of %s", worst.name, worst.n, (double)limit, than);
  PetscCall(PetscFinalize());
  return 0;
}
