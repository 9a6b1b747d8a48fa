/*
  The second step of Newton's method costs what the third does: set-ups by PCGAMG and solves with new values in the same
  matrix, and the first repetition of a product, counted: launches, copies and their bytes, waits, memory, messages and
  collectives.

TEST np=1,2,4 @emulated
*/
#include "stepcounts.h"

#define STEPS 5

typedef enum {
  SETUP,
  SOLVE,
  PRODUCT,
  KINDS
} Kind;
static const char *const Kinds[KINDS] = {"set-up", "solve", "product"};
static Step              Steps[KINDS][STEPS + 1];

static void Print(Kind kind, PetscBool all)
{
  Step *last = &Steps[kind][STEPS];

  for (int k = 0; k < last->n; k++) {
    const char *name = last->of[k].name;
    StepCount  *c[STEPS + 1];

    for (int s = 1; s <= STEPS; s++) c[s] = StepFind(&Steps[kind][s], name);
    if (!all && c[2]->n == c[3]->n && c[2]->bytes == c[3]->bytes) continue;
    if (!c[1]->n && !c[2]->n && !c[3]->n && !c[4]->n) continue;
    printf("%-8s %-60.60s", Kinds[kind], name);
    for (int s = 1; s <= STEPS; s++) printf(" %6llu %9llu", c[s]->n, c[s]->bytes);
    printf("\n");
  }
}

int main(int argc, char **argv)
{
  Mat         A, P = NULL, C;
  KSP         ksp;
  PC          pc;
  Vec         x, b;
  PetscMPIInt rank, size;
  PetscInt    n = 14, show = -1, its;
  PetscBool   full = PETSC_FALSE, all = PETSC_FALSE, host = PETSC_FALSE, cold = PETSC_FALSE;
  int         code = 0;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-show", &show, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-full", &full, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-all", &all, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-host", &host, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cold", &cold, NULL));
  for (int warm = cold; warm < 2; warm++) {
    PetscCall(MatTestStencil(3, n, full, 0, "aijhybridgpu", &A));
    PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(KSPSetFromOptions(ksp));
    if (warm) PetscCall(StepOpen());
    for (int s = 1; s <= (warm ? STEPS : 3); s++) {
      if (s > 1) PetscCall(MatScale(A, s % 2 ? 1.5 : 1 / 1.5));
      StepBegin(&Steps[SETUP][s]);
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(KSPSetUp(ksp));
      StepEnd(&Steps[SETUP][s]);
      StepBegin(&Steps[SOLVE][s]);
      PetscCall(KSPSolve(ksp, b, x));
      StepEnd(&Steps[SOLVE][s]);
    }
    PetscCall(KSPGetIterationNumber(ksp, &its));
    if (rank == PetscMax(show, 0)) printf("%d iterations\n", (int)its);
    {
      PetscInt levels;

      PetscCall(PCMGGetLevels(pc, &levels));
      PetscCall(PCMGGetInterpolation(pc, levels - 1, &P));
      for (int s = 1; s <= (warm ? STEPS : 3); s++) {
        if (s > 1) PetscCall(MatScale(A, s % 2 ? 1.5 : 1 / 1.5));
        StepBegin(&Steps[PRODUCT][s]);
        PetscCall(MatPtAP(A, P, s > 1 ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
        StepEnd(&Steps[PRODUCT][s]);
      }
      PetscCall(MatDestroy(&C));
    }
    if (!warm) memset(Steps, 0, sizeof(Steps));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  for (int k = 0; k < KINDS; k++)
    if (rank == show) Print((Kind)k, all);
  MatTestCheck(PETSC_TRUE, "x");
  PetscCall(MatTestFinalize(&code));
  PetscCall(PetscFinalize());
  return code;
}
