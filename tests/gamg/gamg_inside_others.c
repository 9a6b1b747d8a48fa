/*
  PCGAMG of the type inside other PCs, beside the same on MATAIJ: HMG, TELESCOPE, FIELDSPLIT, BJACOBI, ASM, REDUNDANT,
  KSP and MG's coarsest level, and three in one COMPOSITE. The same iterations, levels that were made here, and again
  with new values. What sets an inner PC up does not say so in a hierarchy that this test could look at: gamg_problems
  and gamg_blocks compare those.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated
TEST np=+2 -mat_aijhybridgpu_backend host
*/
#include "gamgtest.h"

typedef struct {
  const char *options;
  PetscBool   fields;  /* of two unknowns a vertex */
  PetscBool   several; /* on several processes too */
  int         gamgs;   /* PCs of this type, of at least one level each */
} Line;
static const Line Lines[] = {
  {"-pc_type bjacobi -sub_pc_type gamg",                                                                                                                                    PETSC_FALSE, PETSC_TRUE,  1},
  {"-pc_type asm -pc_asm_blocks 1 -sub_pc_type gamg",                                                                                                                       PETSC_FALSE, PETSC_FALSE, 1},
  {"-pc_type redundant -redundant_pc_type gamg",                                                                                                                            PETSC_FALSE, PETSC_FALSE, 1},
  {"-pc_type ksp -ksp_ksp_type richardson -ksp_ksp_max_it 1 -ksp_pc_type gamg",                                                                                             PETSC_FALSE, PETSC_TRUE,  1},
  {"-pc_type telescope -telescope_pc_type gamg",                                                                                                                            PETSC_FALSE, PETSC_FALSE, 1},
  {"-pc_type composite -pc_composite_pcs gamg,gamg,gamg -sub_1_pc_gamg_aggressive_coarsening 0 -sub_2_pc_gamg_agg_nsmooths 0",                                              PETSC_FALSE, PETSC_TRUE,  3},
  {"-pc_type mg -pc_mg_levels 1 -mg_levels_pc_type gamg -mg_levels_ksp_type richardson",                                                                                    PETSC_FALSE, PETSC_TRUE,  1},
  {"-pc_type hmg -hmg_inner_pc_type gamg -pc_hmg_reuse_interpolation 0",                                                                                                    PETSC_FALSE, PETSC_TRUE,  1},
  {"-pc_type fieldsplit -pc_fieldsplit_block_size 2 -fieldsplit_pc_type gamg -fieldsplit_ksp_type preonly",                                                                 PETSC_TRUE,  PETSC_TRUE,  2},
  {"-pc_type fieldsplit -pc_fieldsplit_block_size 2 -pc_fieldsplit_type schur -pc_fieldsplit_schur_precondition a11 -fieldsplit_pc_type gamg -fieldsplit_ksp_type preonly", PETSC_TRUE,  PETSC_FALSE, 2}
};

/* both solve, of matrices that changed or are new; how many levels ran here since */
static PetscErrorCode Both(KSP a, KSP h, const Line *line, PetscBool reused, const char *when)
{
  PetscInt before, after;
  char     why[64];

  PetscFunctionBeginUser;
  PetscCall(Levels(&before));
  PetscCall(Solve(a, h, line->options));
  PetscCall(Levels(&after));
  snprintf(why, sizeof(why), "%d levels, %s", (int)(after - before), when);
  if (Covers) Check3((PetscBool)(reused || after - before >= line->gamgs), "levels that were made here", line->options, why, __LINE__);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Inside(const Line *line)
{
  Mat S, A, H;
  KSP a, h;

  PetscFunctionBeginUser;
  if (line->fields)
    PetscCall(Blocks(20, 2, &S));
  else
    PetscCall(Grid(2, 40, LAPLACE, &S));
  PetscCall(OfBothTypes(S, &A, &H));
  PetscCall(Options(line->options, PETSC_TRUE));
  PetscCall(Solver(A, &a));
  PetscCall(Solver(H, &h));
  PetscCall(Both(a, h, line, PETSC_FALSE, "the first"));
  MatTestBoth(MatScale, A, H, 2.0);
  MatTestBoth(MatShift, A, H, 0.5);
  PetscCall(KSPSetOperators(a, A, A));
  PetscCall(KSPSetOperators(h, H, H));
  PetscCall(Both(a, h, line, PETSC_TRUE, "new values"));
  PetscCall(MatTestDestroy(&a, &h));
  PetscCall(Options(line->options, PETSC_FALSE));
  PetscCall(MatTestDestroy(&S, &A, &H));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(Begin(&argc, &argv));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  MatTestName = "GAMG inside";
  for (PetscInt k = 0; Covers && k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Lines); k++)
    if ((Only < 0 || k == Only) && (size == 1 || Lines[k].several)) PetscCall(Inside(&Lines[k]));
  return MatTestEnd();
}
