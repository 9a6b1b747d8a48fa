/*
  PCGAMG on the type beside PCGAMG on MATAIJ for matrices of complex numbers: complex symmetric ones as of waves that
  are damped, Hermitian ones, imaginary couplings, of which a graph takes the moduli where a vertex has one unknown and
  the real parts where it has several, and near-null vectors with imaginary parts, of which PETSc takes the real ones.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -short
TEST np=2 -mat_aijhybridgpu_backend host
TEST np=2 @emulated -short
TEST np=1,2 @emulated -mat_aijhybridgpu_tuning device_moduli=0 -problem 0
TEST np=1 @emulated -mat_aijhybridgpu_tuning device_moduli=0 -problem 8
TEST np=+3 -mat_aijhybridgpu_backend host -short

-short: fewer problems. -problem K: one problem only. With device_moduli=0 a device's moduli count as others than the
host's: PETSc's own code does levels that have a threshold, if they have one unknown a vertex.
*/
#include "gamgtest.h"

#if defined(PETSC_USE_COMPLEX)
static const struct {
  const char *name;
  PetscInt    dim, n, bs, vectors; /* vectors: attached; 0: none */
  Numbers     numbers;
  PetscBool   said; /* the program says that it is symmetric or Hermitian, and positive definite */
} Problems[] = {
  {"damped waves, 2D",                       2, 40, 1, 0, DAMPED,       PETSC_FALSE},
  {"damped waves, 3D, said to be symmetric", 3, 11, 1, 0, DAMPED,       PETSC_TRUE },
  {"Hermitian, 2D",                          2, 37, 1, 0, HERMITIAN,    PETSC_FALSE},
  {"Hermitian, 3D, said to be definite",     3, 12, 1, 0, HERMITIAN,    PETSC_TRUE },
  {"imaginary couplings",                    2, 35, 1, 0, IMAGINARY,    PETSC_FALSE},
  {"unsymmetric",                            2, 33, 1, 0, UNSYMMETRIC_, PETSC_FALSE},
  {"a near-null vector",                     2, 36, 1, 1, HERMITIAN,    PETSC_FALSE},
  {"two near-null vectors",                  2, 34, 1, 2, DAMPED,       PETSC_FALSE},
  {"two unknowns, damped",                   2, 24, 2, 0, DAMPED,       PETSC_FALSE},
  {"three unknowns, Hermitian",              2, 18, 3, 0, HERMITIAN,    PETSC_FALSE},
  {"two unknowns, imaginary couplings",      2, 22, 2, 0, IMAGINARY,    PETSC_FALSE},
  {"two unknowns, two vectors",              2, 21, 2, 2, HERMITIAN,    PETSC_FALSE},
  {"three unknowns, six vectors",            2, 16, 3, 6, UNSYMMETRIC_, PETSC_FALSE},
  {"three unknowns, one vector",             2, 17, 3, 1, DAMPED,       PETSC_FALSE},
};

/* blocks of bs unknowns, joined among each other at a vertex */
static PetscErrorCode Joined(PetscInt n, PetscInt bs, Mat *A)
{
  PetscInt start, end;
  Mat      B;

  PetscFunctionBeginUser;
  PetscCall(Blocks(n, bs, &B));
  PetscCall(MatGetOwnershipRange(B, &start, &end));
  PetscCall(MatTestRoom(MATAIJ, end - start, end - start, n * n * bs, n * n * bs, 5 + bs, A, &start, &end));
  PetscCall(MatSetBlockSize(*A, bs));
  for (PetscInt r = start; r < end; r++) {
    const PetscInt    *j;
    const PetscScalar *v;
    PetscInt           nz;

    PetscCall(MatGetRow(B, r, &nz, &j, &v));
    PetscCall(MatSetValues(*A, 1, &r, nz, j, v, INSERT_VALUES));
    PetscCall(MatRestoreRow(B, r, &nz, &j, &v));
    for (PetscInt u = 0; u < bs; u++)
      if (u != r % bs) PetscCall(MatSetValue(*A, r, r / bs * bs + u, 0.3, INSERT_VALUES));
  }
  PetscCall(MatTestAssemble(*A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* with imaginary parts */
static PetscErrorCode AttachComplex(Mat A, PetscInt nvec)
{
  PetscFunctionBeginUser;
  ATTACH(A, PETSC_FALSE, nvec, 2, PetscCMPLX(PetscSinReal((PetscReal)(r * (3 * k + 1)) * 0.7 + (PetscReal)k) + (r % 3 ? 0.6 : -0.4), PetscCosReal((PetscReal)(r * (k + 2)) * 0.3)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Problem(PetscInt k, Mat *A)
{
  Mat R;

  PetscFunctionBeginUser;
  if (Problems[k].bs > 1)
    PetscCall(Joined(Problems[k].n, Problems[k].bs, &R));
  else
    PetscCall(Grid(Problems[k].dim, Problems[k].n, LAPLACE, &R));
  PetscCall(OfNumbers(&R, Problems[k].numbers, A));
  if (Problems[k].said) PetscCall(MatSetOption(*A, Problems[k].numbers == HERMITIAN ? MAT_SPD : MAT_SYMMETRIC, PETSC_TRUE));
  if (Problems[k].vectors) PetscCall(AttachComplex(*A, Problems[k].vectors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* new values of the same pattern, with and without the interpolation that is there */
static PetscErrorCode Again(Mat A, Mat H)
{
  static const char *const lines[] = {"-pc_gamg_eigenvalues 0.1,2.2", "-pc_gamg_eigenvalues 0.1,2.2 -pc_gamg_reuse_interpolation 0"};
  const PetscScalar        by      = PetscCMPLX(0.6, 0.8);
  const PetscMPIInt        size    = MatTestSize();

  PetscFunctionBeginUser;
  for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(lines); l++) {
    KSP      ksp[2];
    PC       pc[2];
    PetscInt levels;

    PetscCall(Options(lines[l], PETSC_TRUE));
    for (int k = 0; k < 2; k++) {
      PetscCall(Solver(k ? H : A, &ksp[k]));
      PetscCall(KSPGetPC(ksp[k], &pc[k]));
      PetscCall(KSPSetUp(ksp[k]));
    }
    for (int turn = 0; turn < 2; turn++) {
      MatTestBoth(MatScale, A, H, by);
      for (int k = 0; k < 2; k++) PetscCall(KSPSetUp(ksp[k]));
      PetscCall(SameHierarchy(pc[0], pc[1], GIVEN, lines[l], &levels));
      PetscCall(Solve(ksp[0], ksp[1], lines[l]));
    }
    for (int k = 0; k < 2; k++) PetscCall(KSPDestroy(&ksp[k]));
    PetscCall(Options(lines[l], PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* with thresholds, where the device's moduli are not to decide */
static PetscErrorCode OthersModuli(Mat A, Mat H, PetscInt bs)
{
  const Way one = bs == 1 ? NONE : ALL, below = bs == 1 ? SOME : ALL;

  PetscFunctionBeginUser;
  PetscCall(Beside(A, H, "-pc_gamg_eigenvalues 0.1,2.2", ALL, GIVEN));
  PetscCall(Beside(A, H, "-pc_gamg_threshold 0.05 -pc_gamg_eigenvalues 0.1,2.2", one, GIVEN));
  PetscCall(Beside(A, H, "-pc_gamg_threshold -1,0.02 -pc_gamg_eigenvalues 0.1,2.2", below, GIVEN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(PetscInt only, PetscBool few, PetscBool others)
{
  static const char *const lines[] = {"-pc_gamg_agg_nsmooths 0", "-pc_gamg_agg_nsmooths 2 -pc_gamg_eigenvalues 0.1,2.2", "-pc_gamg_aggressive_coarsening 0 -pc_gamg_eigenvalues 0.1,2.2", "-pc_gamg_aggressive_square_graph 0 -pc_gamg_eigenvalues 0.1,2.2"};
  const PetscMPIInt        size    = MatTestSize();

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Problems); k++) {
    /* a coarse matrix is P^T A P, which is Hermitian no more: without the transpose edges may have one direction, and
       what is said to be definite PETSc takes for symmetric */
    const PetscBool sided = (PetscBool)(Problems[k].numbers == HERMITIAN || Problems[k].numbers == UNSYMMETRIC_), claimed = (PetscBool)(Problems[k].numbers == HERMITIAN && Problems[k].said);
    Mat             S, A, H;

    if (only >= 0 ? k != only : few && k % 3) continue;
    MatTestName = Problems[k].name;
    PetscCall(Problem(k, &S));
    PetscCall(OfBothTypes(S, &A, &H));
    if (others) {
      PetscCall(OthersModuli(A, H, Problems[k].bs));
      PetscCall(MatTestDestroy(&S, &A, &H));
      continue;
    }
    PetscCall(Beside(A, H, "", ALL, LOOSE));
    PetscCall(Beside(A, H, "-pc_gamg_eigenvalues 0.1,2.2", ALL, GIVEN));
    for (size_t l = 0; l < PETSC_STATIC_ARRAY_LENGTH(lines); l++) PetscCall(Beside(A, H, lines[l], ALL, GIVEN));
    if (size == 1 || !claimed) PetscCall(Thresholds(A, H, claimed || (size > 1 && sided) ? EITHER : ALL, sided ? UNSYMMETRIC : PLAIN, (PetscBool)(few || k % 2)));
    PetscCall(Again(A, H));
    PetscCall(MatTestDestroy(&S, &A, &H));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
#if defined(PETSC_USE_COMPLEX)
  PetscBool others = PETSC_FALSE;
#endif

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
#if defined(PETSC_USE_COMPLEX)
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_tuning", &others));
  if (PETSC_VERSION_GE(3, 21, 0)) PetscCall(Test(Only, Few, others));
#else
  MatTestSkipped++; /* numbers are real */
#endif
  return MatTestEnd();
}
