/*
  Whole solves with the type against the same solves with MATAIJ: KSP with GAMG, Jacobi and overlapping Schwarz, on 5,
  7, 9 and 27 points, elasticity in blocks of three, and nonsymmetric convection. First solve, a second one with nothing
  changed (which must set nothing up), new values on the same pattern, and a larger pattern.

TEST np=1,2
TEST np=1 -mat_aijhybridgpu_spmv segsum -mat_aijhybridgpu_spgemm rowmerge
TEST np=1 -pc_gamg_reuse_interpolation true
*/
#include "mattest.h"

/* displacement in three directions on an n^3 grid: a vector Laplacian that couples the directions, one face held */
static PetscErrorCode Elasticity(PetscInt n, MatType type, Mat *A)
{
  PetscInt start, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, 3 * n * n * n, 3 * n * n * n));
  PetscCall(MatSetBlockSize(*A, 3));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 81, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 81, NULL, 81, NULL));
  PetscCall(MatGetOwnershipRange(*A, &start, &end));
  for (PetscInt p = start / 3; p < end / 3; p++) {
    const PetscInt i = p % n, j = p / n % n, k = p / (n * n);
    PetscScalar    diagonal[9] = {0};

    /* each neighbour pulls along the line to it, and a little across it; what leaves the grid holds the face k = -1
       only */
    for (PetscInt dk = -1; dk <= 1; dk++)
      for (PetscInt dj = -1; dj <= 1; dj++)
        for (PetscInt di = -1; di <= 1; di++) {
          const PetscReal d[3] = {(PetscReal)di, (PetscReal)dj, (PetscReal)dk}, length = di * di + dj * dj + dk * dk;
          const PetscBool inside = (PetscBool)(i + di >= 0 && i + di < n && j + dj >= 0 && j + dj < n && k + dk >= 0 && k + dk < n);
          PetscScalar     block[9];
          PetscInt        c = p + di + dj * n + dk * n * n;

          if (length == 0 || (!inside && k + dk >= 0)) continue;
          for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
              block[3 * a + b] = -(d[a] * d[b] / length + (a == b ? 0.1 : 0.0)) / length;
              diagonal[3 * a + b] -= block[3 * a + b];
            }
          if (inside) PetscCall(MatSetValuesBlocked(*A, 1, &p, 1, &c, block, INSERT_VALUES));
        }
    PetscCall(MatSetValuesBlocked(*A, 1, &p, 1, &p, diagonal, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat A;
  Vec x, b;
  KSP ksp;
} Problem;

static PetscErrorCode Create(int which, MatType type, const char *solver, Problem *p)
{
  PC       pc;
  PetscInt start, end;

  PetscFunctionBeginUser;
  switch (which) {
  case 0:
    PetscCall(MatTestStencil(2, 40, PETSC_FALSE, 0, type, &p->A));
    break;
  case 1:
    PetscCall(MatTestStencil(2, 40, PETSC_TRUE, 0, type, &p->A));
    break;
  case 2:
    PetscCall(MatTestStencil(3, 12, PETSC_FALSE, 0, type, &p->A));
    break;
  case 3:
    PetscCall(MatTestStencil(3, 10, PETSC_TRUE, 0, type, &p->A));
    break;
  case 4:
    PetscCall(Elasticity(7, type, &p->A));
    break;
  default:
    PetscCall(MatTestStencil(3, 11, PETSC_FALSE, 0.4, type, &p->A));
  }
  PetscCall(MatCreateVecs(p->A, &p->x, &p->b));
  PetscCall(VecGetOwnershipRange(p->b, &start, &end));
  for (PetscInt r = start; r < end; r++) PetscCall(VecSetValue(p->b, r, (PetscScalar)(1.0 + (PetscReal)(r * 7 % 13) / 13), INSERT_VALUES));
  PetscCall(VecTestAssemble(p->b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &p->ksp));
  PetscCall(KSPSetOperators(p->ksp, p->A, p->A));
  PetscCall(KSPSetType(p->ksp, which == 5 ? KSPGMRES : KSPCG));
  PetscCall(KSPSetTolerances(p->ksp, PetscDefined(USE_REAL_SINGLE) ? 1e-5 : 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
  PetscCall(KSPGetPC(p->ksp, &pc));
  PetscCall(PCSetType(pc, solver));
  PetscCall(PCASMSetType(pc, PC_ASM_BASIC)); /* symmetric, as CG needs it */
  PetscCall(KSPSetFromOptions(p->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Problem *p)
{
  PetscFunctionBeginUser;
  PetscCall(MatTestDestroy(&p->ksp, &p->x, &p->b, &p->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define CLOSE (PetscDefined(USE_REAL_SINGLE) ? 1e-3 : 1e-7)

/* Both solve; residuals are computed anew, by MATAIJ's matrix */
static PetscErrorCode SolveBoth(Problem *a, Problem *h, const char *what)
{
  KSPConvergedReason ra, rh;
  PetscInt           ia, ih;
  Vec                r;
  PetscReal          rnorm, bnorm, dnorm, xnorm;

  PetscFunctionBeginUser;
  MatTestBoth(VecSet, a->x, h->x, 0);
  PetscCall(KSPSolve(a->ksp, a->b, a->x));
  PetscCall(KSPSolve(h->ksp, h->b, h->x));
  PetscCall(KSPGetConvergedReason(a->ksp, &ra));
  PetscCall(KSPGetConvergedReason(h->ksp, &rh));
  PetscCall(KSPGetIterationNumber(a->ksp, &ia));
  PetscCall(KSPGetIterationNumber(h->ksp, &ih));
  MatTestCheck(ra > 0, "MATAIJ converges");
  MatTestCheck(rh > 0, what);
  if (PetscAbsInt(ia - ih) > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "iterations: MATAIJ %d, ours %d\n", (int)ia, (int)ih));
  MatTestCheck(PetscAbsInt(ia - ih) <= 1, what);
  PetscCall(VecDuplicate(a->b, &r));
  PetscCall(MatMult(a->A, h->x, r));
  PetscCall(VecAYPX(r, -1, a->b));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(VecNorm(a->b, NORM_2, &bnorm));
  if (!(rnorm <= CLOSE * bnorm)) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "residual %g of %g\n", (double)rnorm, (double)bnorm));
  MatTestCheck(rnorm <= CLOSE * bnorm, what);
  PetscCall(VecCopy(h->x, r));
  PetscCall(VecAXPY(r, -1, a->x));
  PetscCall(VecNorm(r, NORM_2, &dnorm));
  PetscCall(VecNorm(a->x, NORM_2, &xnorm));
  if (!(dnorm <= 10 * CLOSE * xnorm)) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solutions differ by %g of %g\n", (double)dnorm, (double)xnorm));
  MatTestCheck(dnorm <= 10 * CLOSE * xnorm, what);
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* how often an event ran so far */
static PetscErrorCode Count(const char *event, PetscInt *count)
{
  PetscLogEvent      id;
  PetscEventPerfInfo info;

  PetscFunctionBeginUser;
  PetscCall(PetscLogEventGetId(event, &id));
  *count = 0;
  if (id >= 0) {
    PetscCall(PetscLogEventGetPerfInfo(0, id, &info));
    *count = (PetscInt)info.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char *const names[] = {"5 points", "9 points", "7 points", "27 points", "elasticity", "convection"}, *const solvers[] = {PCGAMG, PCJACOBI, PCASM};
  char name[64];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, "Solves with MATAIJHYBRIDGPU against MATAIJ\n"));
  PetscCall(PetscLogDefaultBegin());
  MatTestName = name;
  for (int which = 0; which < 6; which++) {
    for (int s = 0; s < 3; s++) {
      Problem     a, h;
      PetscInt    before, after, products0, products1;
      PetscMPIInt size;
      MatType     type;
      PetscBool   ours;
      Vec         d;

      PetscCall(PetscSNPrintf(name, sizeof name, "%s, %s", names[which], solvers[s]));
      PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
      PetscCall(Create(which, MATAIJ, solvers[s], &a));
      PetscCall(Create(which, "aijhybridgpu", solvers[s], &h));
      PetscCall(MatGetType(h.A, &type));
      PetscCall(PetscStrcmp(type, size > 1 ? "mpiaijhybridgpu" : "seqaijhybridgpu", &ours));
      MatTestCheck(ours, "the type is ours");
      PetscCall(Count("HybProdNum", &products0));
      PetscCall(SolveBoth(&a, &h, "first solve"));
      PetscCall(Count("HybProdNum", &products1));
      if (s == 0) MatTestCheck(products1 > products0, "GAMG's products are ours");

      PetscCall(Count("MatPtAPNumeric", &before));
      PetscCall(Count("HybProdNum", &products0));
      PetscCall(SolveBoth(&a, &h, "nothing changed"));
      PetscCall(Count("MatPtAPNumeric", &after));
      PetscCall(Count("HybProdNum", &products1));
      MatTestCheck(before == after && products0 == products1, "nothing is set up when nothing changed");

      PetscCall(MatCreateVecs(a.A, &d, NULL));
      PetscCall(VecSet(d, 0.75));
      MatTestBoth(MatDiagonalSet, a.A, h.A, d, ADD_VALUES);
      MatTestBoth(MatScale, a.A, h.A, 3);
      PetscCall(VecDestroy(&d));
      PetscCall(SolveBoth(&a, &h, "new values"));

      if (which != 4) { /* a pattern with more entries: far apart, small */
        PetscInt start, end, rows;

        PetscCall(MatGetSize(a.A, &rows, NULL));
        for (int k = 0; k < 2; k++) {
          Mat M = k ? h.A : a.A;

          PetscCall(MatSetOption(M, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
          PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
          PetscCall(MatGetOwnershipRange(M, &start, &end));
          for (PetscInt r = start; r < end; r += 17) PetscCall(MatSetValue(M, r, rows - 1 - r, -0.01, ADD_VALUES));
          for (PetscInt r = start; r < end; r++)
            if ((rows - 1 - r) % 17 == 0) PetscCall(MatSetValue(M, r, rows - 1 - r, -0.01, ADD_VALUES));
          PetscCall(MatTestAssemble(M));
        }
        PetscCall(SolveBoth(&a, &h, "a larger pattern"));
      }
      PetscCall(Destroy(&a));
      PetscCall(Destroy(&h));
    }
  }
  return MatTestEnd();
}
