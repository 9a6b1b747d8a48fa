/*
  PCGAMG on the type beside PCGAMG on MATAIJ: what programs hand over that is odd. Near-null vectors that depend on each
  other, of which LAPACK's rounding makes columns; rows whose columns are out of order, of which products sort a copy:
  that level and those below are PETSc's own, since all else goes by their order.

TEST np=1,2 -mat_aijhybridgpu_backend host
TEST np=1,2 @emulated
*/
#include "gamgtest.h"

/* multiples of one vector */
static PetscErrorCode AttachMultiples(Mat A, PetscInt nvec)
{
  PetscFunctionBeginUser;
  ATTACH(A, PETSC_FALSE, nvec, 0, (k + 1.0) * (1 + r % 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestMultiples(void)
{
  Mat S, A, H;

  PetscFunctionBeginUser;
  MatTestName = "vectors that depend on each other";
  /* a debugging PETSc wants orthonormal ones; the coarse operators are singular */
  if (PetscDefined(USE_DEBUG)) MatTestSkipped++;
  WithoutSolve = PETSC_TRUE;
  for (PetscInt nvec = 2; nvec < 5 && !PetscDefined(USE_DEBUG); nvec++) {
    for (unsigned long seed = 1; seed < 4; seed++) {
      PetscCall(Random(150, 4, seed, PETSC_TRUE, 3.0, &S));
      PetscCall(AttachMultiples(S, nvec));
      PetscCall(OfBothTypes(S, &A, &H));
      PetscCall(Beside(A, H, "-pc_gamg_agg_nsmooths 0 -mg_coarse_sub_pc_type svd", ALL, GIVEN));
      PetscCall(MatTestDestroy(&S, &A, &H));
    }
  }
  WithoutSolve = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A graph whose rows begin with the diagonal, or have their columns in the order of a walk; sided: some edges have one
   direction. On several processes the diagonal blocks are so, and nothing else is there. */
static PetscErrorCode Disorder(PetscInt n, PetscBool walk, PetscBool sided, Mat *A, Mat *H)
{
  PetscInt          i[401], j[2000], oi[401] = {0}, nz = 0;
  PetscScalar       a[2000];
  const PetscMPIInt size   = MatTestSize();
  const PetscInt    step[] = {0, 3, 40, -3, -40};
  Mat               W;

  PetscFunctionBeginUser;
  for (PetscInt r = 0; r < n; r++) {
    i[r] = nz;
    for (int k = 0; k < 5; k++) {
      const int      e = walk ? (k + r) % 5 : k;
      const PetscInt c = r + step[e];

      if (c < 0 || c >= n || (sided && r % 7 == 2 && e == 4)) continue;
      j[nz]   = c;
      a[nz++] = e ? -1 : 5;
    }
  }
  i[n] = nz;
  if (size == 1)
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, n, n, i, j, a, &W));
  else
    PetscCall(MatCreateMPIAIJWithSplitArrays(PETSC_COMM_WORLD, n, n, PETSC_DETERMINE, PETSC_DETERMINE, i, j, a, oi, j, a, &W));
  PetscCall(MatDuplicate(W, MAT_COPY_VALUES, A));
  PetscCall(MatConvert(W, "aijhybridgpu", MAT_INITIAL_MATRIX, H));
  PetscCall(MatDestroy(&W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDisorder(void)
{
  const char *const lines[] = {"", "-pc_gamg_threshold 0.01", "-pc_gamg_aggressive_coarsening 0 -pc_gamg_agg_nsmooths 0"};

  PetscFunctionBeginUser;
  MatTestName = "rows out of order";
  for (int way = 0; way < 4; way++) {
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(lines); k++) {
      Mat A, H;

      PetscCall(Disorder(400, (PetscBool)(way & 1), (PetscBool)(way >> 1), &A, &H));
      PetscCall(Beside(A, H, lines[k], NONE, LOOSE));
      PetscCall(MatTestDestroy(&A, &H));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  if (Covers) {
    PetscCall(TestMultiples());
    PetscCall(TestDisorder());
  }
  return MatTestEnd();
}
