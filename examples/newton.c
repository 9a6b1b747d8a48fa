static char help[] = "Newton's method with assembly from coordinates: new values in the same pattern at every step, on a GPU without the host.\n\
  -n <n>           : points in each direction of a square (default 200)\n\
  -lambda <lambda> : how nonlinear it is, below 6.8 (default 6)\n\
  -steps <steps>   : Newton steps at most (default 20)\n\n";

/*
  Bratu's problem, -Laplace(u) = lambda exp(u) in the unit square, u = 0 on its boundary, by 5-point differences:

    F(u) = K u - h^2 lambda exp(u),   J(u) = K - h^2 lambda diag(exp(u))

  The pattern is told once, MatSetPreallocationCOO(). Entries that stand at the same place are added, so what changes,
  the diagonal, is a second list of coordinates behind those of K. The values of both lists lie in one vector; at each
  step the end of it is filled from exp(u) by operations of vectors, and MatSetValuesCOO() takes its array where it
  lies. With

    -dll_append /path/libaijhybridgpu.so -mat_type aijhybridgpu -vec_type cuda

  it is the card's memory: nothing crosses the bus.
*/
#include <petscksp.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

typedef struct {
  PetscInt   n;
  PetscReal  h2lambda;
  Mat        K, J;
  Vec        values; /* of J's coordinates: K's, then the diagonal's */
  Vec        e;      /* exp(u) */
  VecScatter tail;   /* e to the end of the values */
} Bratu;

typedef enum {
  RESIDUAL,
  VALUES,
  SETUP,
  SOLVE,
  PHASES
} Phase;

/* Coordinates of this process's rows of K, then of its diagonal once more; *nk is how many the former are */
static PetscErrorCode Coordinates(PetscInt n, PetscInt first, PetscInt last, PetscInt *nk, PetscInt **rows, PetscInt **columns)
{
  PetscInt k = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(6 * (last - first), rows, 6 * (last - first), columns));
  for (PetscInt row = first; row < last; row++) {
    const PetscInt x = row % n, y = row / n;
    const PetscInt beside[] = {row, x > 0 ? row - 1 : -1, x < n - 1 ? row + 1 : -1, y > 0 ? row - n : -1, y < n - 1 ? row + n : -1};

    for (int j = 0; j < 5; j++) {
      if (beside[j] < 0) continue;
      (*rows)[k]      = row;
      (*columns)[k++] = beside[j];
    }
  }
  *nk = k;
  for (PetscInt row = first; row < last; row++, k++) (*rows)[k] = (*columns)[k] = row;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of a pattern, of the type that -mat_type says */
static PetscErrorCode CreateMatrix(Vec u, PetscInt ncoo, PetscInt rows[], PetscInt columns[], Mat *A)
{
  PetscInt m, M;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(u, &m));
  PetscCall(VecGetSize(u, &M));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)u), A));
  PetscCall(MatSetSizes(*A, m, m, M, M));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetPreallocationCOO(*A, ncoo, rows, columns));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The array of the values where it lies, on the host or on a card */
static PetscErrorCode SetValues(Mat A, Vec values)
{
  const PetscScalar *v;
  PetscMemType       where;

  PetscFunctionBeginUser;
  PetscCall(VecGetArrayReadAndMemType(values, &v, &where));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(VecRestoreArrayReadAndMemType(values, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BratuCreate(Bratu *b, Vec u)
{
  PetscInt     first, last, nk, start, *rows, *columns;
  PetscScalar *v;
  VecType      type;
  IS           from, to;

  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(u, &first, &last));
  PetscCall(Coordinates(b->n, first, last, &nk, &rows, &columns));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)u), &b->values));
  PetscCall(VecSetSizes(b->values, nk + last - first, PETSC_DECIDE));
  PetscCall(VecGetType(u, &type));
  PetscCall(VecSetType(b->values, type));
  PetscCall(VecGetArrayWrite(b->values, &v));
  for (PetscInt k = 0; k < nk + last - first; k++) v[k] = k >= nk ? 0 : (rows[k] == columns[k] ? 4 : -1);
  PetscCall(VecRestoreArrayWrite(b->values, &v));
  /* PETSc may change the coordinates that it is given: each matrix has its own */
  PetscCall(CreateMatrix(u, nk + last - first, rows, columns, &b->J));
  PetscCall(PetscFree2(rows, columns));
  PetscCall(Coordinates(b->n, first, last, &nk, &rows, &columns));
  PetscCall(CreateMatrix(u, nk + last - first, rows, columns, &b->K));
  PetscCall(PetscFree2(rows, columns));
  PetscCall(SetValues(b->K, b->values));

  PetscCall(VecDuplicate(u, &b->e));
  PetscCall(VecGetOwnershipRange(b->values, &start, NULL));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, last - first, first, 1, &from));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, last - first, start + nk, 1, &to));
  PetscCall(VecScatterCreate(b->e, from, b->values, to, &b->tail));
  PetscCall(ISDestroy(&from));
  PetscCall(ISDestroy(&to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f = F(u), and e = -h^2 lambda exp(u), which J's diagonal needs too */
static PetscErrorCode BratuResidual(Bratu *b, Vec u, Vec f, PetscReal *norm)
{
  PetscFunctionBeginUser;
  PetscCall(VecCopy(u, b->e));
  PetscCall(VecExp(b->e));
  PetscCall(VecScale(b->e, -b->h2lambda));
  PetscCall(MatMultAdd(b->K, u, b->e, f));
  PetscCall(VecNorm(f, NORM_2, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BratuJacobian(Bratu *b)
{
  PetscFunctionBeginUser;
  PetscCall(VecScatterBegin(b->tail, b->e, b->values, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(b->tail, b->e, b->values, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(SetValues(b->J, b->values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds since the last call; what is queued on a card counts where somebody waits for it */
static PetscErrorCode Lap(PetscLogDouble *last, PetscLogDouble *spent)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&now));
  *spent += now - *last;
  *last = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Newton(Bratu *b, KSP ksp, Vec u, PetscInt steps, PetscBool *converged)
{
  PetscLogDouble spent[PHASES] = {0, 0, 0, 0}, last;
  PetscReal      norm = 0, norm0 = 0;
  PetscInt       its, total      = 0, step;
  Vec            f, d;

  PetscFunctionBeginUser;
  *converged = PETSC_FALSE;
  PetscCall(VecDuplicate(u, &f));
  PetscCall(VecDuplicate(u, &d));
  PetscCall(PetscTime(&last));
  for (step = 0; step <= steps; step++) {
    PetscCall(BratuResidual(b, u, f, &norm));
    PetscCall(Lap(&last, &spent[RESIDUAL]));
    if (!step) norm0 = norm;
    PetscCall(PetscPrintf(PetscObjectComm((PetscObject)u), "step %2" PetscInt_FMT "  |F(u)| = %.6e\n", step, (double)norm));
    *converged = (PetscBool)(norm <= 1e-8 * norm0);
    if (*converged || step == steps) break;
    PetscCall(BratuJacobian(b));
    PetscCall(Lap(&last, &spent[VALUES]));
    PetscCall(KSPSetOperators(ksp, b->J, b->J));
    PetscCall(KSPSetUp(ksp));
    PetscCall(Lap(&last, &spent[SETUP]));
    PetscCall(KSPSolve(ksp, f, d));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(VecAXPY(u, -1, d));
    PetscCall(Lap(&last, &spent[SOLVE]));
    total += its;
  }
  PetscCall(PetscPrintf(PetscObjectComm((PetscObject)u), "%s after %" PetscInt_FMT " steps, %" PetscInt_FMT " linear iterations\n", *converged ? "converged" : "NOT converged", step, total));
  PetscCall(PetscPrintf(PetscObjectComm((PetscObject)u), "times  residual %.3f s, values %.3f s, setup %.3f s, solve %.3f s\n", spent[RESIDUAL], spent[VALUES], spent[SETUP], spent[SOLVE]));
  PetscCall(VecDestroy(&f));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bratu     b;
  Vec       u;
  KSP       ksp;
  PC        pc;
  MatType   type;
  PetscReal lambda = 6, largest;
  PetscInt  steps  = 20;
  PetscBool converged;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  b.n = 200;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &b.n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-lambda", &lambda, NULL));
  PetscCheck(b.n >= 1 && b.n <= 10000, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-n %" PetscInt_FMT " lies outside 1 to 10000", b.n);
  b.h2lambda = lambda / ((b.n + 1) * (b.n + 1));

  PetscCall(VecCreate(PETSC_COMM_WORLD, &u));
  PetscCall(VecSetSizes(u, PETSC_DECIDE, b.n * b.n));
  PetscCall(VecSetFromOptions(u));
  PetscCall(VecSet(u, 0));
  PetscCall(BratuCreate(&b, u));
  PetscCall(MatGetType(b.J, &type));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Bratu's problem: %" PetscInt_FMT " unknowns, matrices of type %s\n", b.n * b.n, type));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Newton(&b, ksp, u, steps, &converged));
  PetscCall(VecNorm(u, NORM_INFINITY, &largest));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "largest u %.6f\n", (double)largest));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecScatterDestroy(&b.tail));
  PetscCall(VecDestroy(&b.e));
  PetscCall(VecDestroy(&b.values));
  PetscCall(MatDestroy(&b.J));
  PetscCall(MatDestroy(&b.K));
  PetscCall(VecDestroy(&u));
  PetscCall(PetscFinalize());
  return converged ? 0 : 1;
}
