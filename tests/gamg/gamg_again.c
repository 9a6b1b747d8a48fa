/*
  PCGAMG on the type beside PCGAMG on MATAIJ: setups again with new values, new entries, another matrix; types set
  again, coordinates, prefixes, PCs side by side; errors and failed allocations in the middle of a setup. An older
  PETSc, where the plugin replaces nothing, cannot do some of this by itself: there it is skipped.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated -short

-short: less of it; of the calls that fail the first few and then ever fewer.
*/
#include "gamgtest.h"
#include "matfault.h"

/* two solvers, set up now, and how many levels ran here */
static PetscErrorCode SetUpBoth(KSP a, KSP h, Way way, PetscReal tol, const char *what)
{
  PC       pa, ph;
  PetscInt before, nlevels;

  PetscFunctionBeginUser;
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(KSPSetUp(a));
  PetscCall(Levels(&before));
  PetscCall(KSPSetUp(h));
  PetscCall(SameHierarchy(pa, ph, tol, what, &nlevels));
  PetscCall(CheckWay(way, before, nlevels, what));
  PetscCall(Solve(a, h, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Operators(KSP a, KSP h, Mat A, Mat H)
{
  PetscFunctionBeginUser;
  PetscCall(KSPSetOperators(a, A, A));
  PetscCall(KSPSetOperators(h, H, H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNewValues(KSP a, KSP h, Mat A, Mat H, Way renewed)
{
  PetscFunctionBeginUser;
  for (PetscInt step = 0; step < 2; step++) {
    MatTestBoth(ChangeValues, A, H, step);
    PetscCall(Operators(a, h, A, H));
    PetscCall(SetUpBoth(a, h, renewed, LOOSE, "new values"));
  }
  PetscCall(SameView(a, h, "new values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* an error in the middle of a setup, then the same PC again */
static PetscErrorCode TestAfterError(KSP a, KSP h, const char *options)
{
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(Options("-pc_gamg_esteig_ksp_type nosuch", PETSC_TRUE));
  QUIETLY(ierr, KSPSetUp(h));
  Check3((PetscBool)(ierr == PETSC_ERR_ARG_UNKNOWN_TYPE), "an unknown type of KSP is an error", options, "", __LINE__);
  PetscCall(Options("-pc_gamg_esteig_ksp_type nosuch", PETSC_FALSE));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "after an error"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestAgain(const char *options, Way renewed)
{
  Mat S, A, H, A2, H2;
  KSP a, h;
  PC  pa, ph;

  PetscFunctionBeginUser;
  MatTestName = "setup again";
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(MatDestroy(&S));
  PetscCall(Random(1600, 5, 3, PETSC_TRUE, 1.0, &S));
  PetscCall(OfBothTypes(S, &A2, &H2));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "the first"));
  PetscCall(TestNewValues(a, h, A, H, renewed));
  PetscCall(PCReset(pa)); /* another matrix of the same sizes: PETSc does not look at its pattern */
  PetscCall(PCReset(ph));
  PetscCall(Operators(a, h, A2, H2));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "another matrix"));
  MatTestBoth(KSPReset, a, h);
  PetscCall(Operators(a, h, A, H));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "after KSPReset()"));
  MatTestBoth(MatTestLetIn, A, H);
  for (PetscInt r = 0; r < 300; r += 3) {
    for (int k = 0; k < 2; k++) {
      PetscCall(MatSetValue(k ? H : A, r, r + 700, -0.3, INSERT_VALUES));
      PetscCall(MatSetValue(k ? H : A, r + 700, r, -0.3, INSERT_VALUES));
    }
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatTestAssemble(k ? H : A));
  }
  PetscCall(Operators(a, h, A, H));
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "new entries"));
  MatTestBoth(PCGAMGSetType, pa, ph, PCGAMGAGG);
  PetscCall(PCGAMGSetType(ph, PCGAMGCLASSICAL));
  PetscCall(PCGAMGSetType(ph, PCGAMGAGG));
  MatTestBoth(PCReset, pa, ph);
  PetscCall(Operators(a, h, A, H));
  MatTestBoth(KSPSetFromOptions, a, h);
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "PCGAMGSetType() again"));
  PetscCall(PCSetType(ph, PCJACOBI));
  PetscCall(PCSetType(ph, PCGAMG));
  PetscCall(PCSetType(pa, PCJACOBI));
  PetscCall(PCSetType(pa, PCGAMG));
  PetscCall(Operators(a, h, A, H)); /* before 3.26 a KSP that was set up does not see that its PC is another one */
  MatTestBoth(KSPSetFromOptions, a, h);
  PetscCall(SetUpBoth(a, h, ALL, LOOSE, "PCSetType() away and back"));
  PetscCall(MatTestDestroy(&a, &h, &S, &A, &H, &A2, &H2));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* several unknowns a vertex: new values, an error in the middle, another matrix */
static PetscErrorCode TestBlocks(const char *options, PetscBool attached, Way renewed)
{
  Mat S, A, H, A2, H2;
  KSP a, h;
  PC  pa, ph;

  PetscFunctionBeginUser;
  MatTestName = attached ? "blocks again, vectors" : "blocks again";
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Blocks(15, 3, &S));
  if (attached) PetscCall(AttachVectors(S, 2));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(MatDestroy(&S));
  PetscCall(Blocks(17, 2, &S));
  PetscCall(OfBothTypes(S, &A2, &H2));
  PetscCall(MatDestroy(&S));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(KSPGetPC(a, &pa));
  PetscCall(KSPGetPC(h, &ph));
  PetscCall(TestAfterError(a, h, options));
  PetscCall(TestNewValues(a, h, A, H, renewed));
  MatTestBoth(KSPReset, a, h);
  if (renewed == NONE) { /* else PETSc would take the vectors it kept */
    PetscCall(Operators(a, h, A2, H2));
    PetscCall(SetUpBoth(a, h, ALL, LOOSE, "another matrix"));
  }
  PetscCall(MatTestDestroy(&a, &h, &A, &H, &A2, &H2));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* coordinates, which PETSc makes near-null vectors of; a PC that never sees its options; one under a prefix */
static PetscErrorCode TestOthers(void)
{
  Mat       S, A, H;
  PetscReal coords[1600];

  PetscFunctionBeginUser;
  MatTestName = "other ways";
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  for (PetscInt r = 0; r < 1600; r++) coords[r] = (PetscReal)(r % 40);
  for (int which = 0; which < 3; which++) {
    KSP         a, h, ksp[2];
    const char *what[] = {"coordinates", "without options", "under a prefix, switched off"};

    PetscCall(Options("-x_pc_gamg_aijhybridgpu 0", PETSC_TRUE));
    PetscCall(Solver(A, &a));
    PetscCall(Solver(H, &h));
    ksp[0] = a;
    ksp[1] = h;
    for (int k = 0; k < 2; k++) {
      PC pc;

      PetscCall(KSPGetPC(ksp[k], &pc));
      PetscCall(PCSetOperators(pc, k ? H : A, k ? H : A));
      if (which == 0) PetscCall(PCSetCoordinates(pc, 1, 1600, coords));
      if (which == 1) {
        PetscCall(PCSetType(pc, PCNONE));
        PetscCall(PCSetType(pc, PCGAMG));
      }
      if (which == 2) {
        PetscCall(KSPSetOptionsPrefix(ksp[k], "x_"));
        PetscCall(KSPSetFromOptions(ksp[k]));
      }
    }
    PetscCall(SetUpBoth(a, h, which == 2 ? NONE : ALL, LOOSE, what[which]));
    PetscCall(MatTestDestroy(&a, &h));
    PetscCall(Options("-x_pc_gamg_aijhybridgpu 0", PETSC_FALSE));
  }
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestError(void)
{
  Mat S, A, H;
  KSP a, h;

  PetscFunctionBeginUser;
  MatTestName = "error";
  PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(TestAfterError(a, h, ""));
  PetscCall(MatTestDestroy(&a, &h, &S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every allocation of ours that a setup makes, and every call of the device, fails once: an error, after which the same
   PC does its setup, or, where we can do without, the hierarchy all the same */
static struct {
  PetscErrorCode (*malloc)(size_t, PetscBool, int, const char[], const char[], void **);
  int count, target;
} F;

/* A smoother that cannot be created (src/ksp/ksp) is left out: PETSc's driver then ends a setup between its levels, and
   the next one of the same PC reads levels that are not there: no code of ours */
static PetscErrorCode Malloc(size_t bytes, PetscBool clear, int line, const char func[], const char file[], void **ptr)
{
  if (file && (strstr(file, "src/ksp/pc/") || strstr(file, "src/petsc/ksp/") || strstr(file, "src/sparse/")) && !strstr(file, "petsc-") && ++F.count == F.target) {
    *ptr = NULL;
    return PetscError(PETSC_COMM_SELF, line, func, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected");
  }
  return (*F.malloc)(bytes, clear, line, func, file, ptr);
}

/* what a device library asks before each allocation, call and launch */
static int DeviceFault(const char *what)
{
  return F.target && ++F.count == F.target;
}

/* bs: unknowns a vertex; sided: with edges of one direction */
static PetscErrorCode TestFaults(PetscInt bs, PetscBool sided, PetscBool few)
{
  const PetscInt row = 13 * bs;
  Mat            S, A, H;
  KSP            a;
  int            failed = 0, tried = 0;
  PetscBool      fired = PETSC_TRUE;

  PetscFunctionBeginUser;
  MatTestName = bs > 1 ? "faults, blocks" : "faults";
  if (bs > 1)
    PetscCall(Blocks(12, bs, &S));
  else
    PetscCall(Grid(2, 25, LAPLACE, &S));
  if (sided) {
    PetscCall(MatSetOption(S, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
    for (PetscInt k = row; k < row + bs; k++) PetscCall(MatZeroRows(S, 1, &k, 4.0, NULL, NULL));
  }
  PetscCall(AttachVectors(S, bs > 1 ? 2 : 1));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(Solver(A, &a));
  for (int target = 1; fired; target += tried < (few ? 3 : 16) ? 1 : few ? 1 + target / 2
                                                                         : 2) {
    KSP            h;
    PetscErrorCode ierr;

    PetscCall(Solver(H, &h));
    PetscCall(MatTestHook(DeviceFault, NULL));
    F.count  = 0;
    F.target = target;
    F.malloc = PetscTrMalloc;
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    PetscTrMalloc = Malloc;
    ierr          = KSPSetUp(h);
    PetscTrMalloc = F.malloc;
    fired         = (PetscBool)(F.count >= F.target);
    F.target      = 0;
    PetscCall(PetscPopErrorHandler());
    Check3((PetscBool)(fired || !ierr), "no call failed, nor the setup", "", "", __LINE__);
    tried++;
    failed += ierr != PETSC_SUCCESS;
    if (fired) PetscCall(SetUpBoth(a, h, ierr ? ALL : NONE, LOOSE, ierr ? "after a failed call" : "a failed call that does not matter"));
    PetscCall(KSPDestroy(&h));
  }
  Check3((PetscBool)(failed > 10), "allocations failed", "", "", __LINE__);
  PetscCall(MatTestDestroy(&a, &S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  if (Covers) {
    PetscCall(TestOthers());
    PetscCall(TestError());
    PetscCall(TestAgain("", NONE));
    if (!Few) PetscCall(TestAgain("-pc_gamg_recompute_esteig 0 -pc_gamg_use_sa_esteig 0", NONE));
    PetscCall(TestAgain("-pc_gamg_reuse_interpolation 0", ALL));
    for (int attached = 0; attached < 2; attached++) {
      PetscCall(TestBlocks("", (PetscBool)attached, NONE));
      PetscCall(TestBlocks("-pc_gamg_reuse_interpolation 0", (PetscBool)attached, ALL));
    }
    MatTestBoth(TestFaults, 1, 3, PETSC_FALSE, Few);
    PetscCall(TestFaults(Few ? 1 : 3, PETSC_TRUE, PETSC_TRUE));
    PetscCall(TestAgain("-pc_gamg_reuse_interpolation 0 -pc_gamg_threshold 0.03,0.01", ALL));
    PetscCall(Options("-pc_gamg_threshold 0.03,0.01", PETSC_TRUE));
    MatTestBoth(TestFaults, 1, 3, PETSC_FALSE, Few);
    PetscCall(TestFaults(Few ? 3 : 1, PETSC_TRUE, PETSC_TRUE));
    PetscCall(Options("-pc_gamg_threshold 0.03,0.01", PETSC_FALSE));
  }
  return MatTestEnd();
}
