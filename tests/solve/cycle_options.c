/*
  Multigrid's cycle on the type beside PETSc's own on MATAIJ, option by option: what is covered is made here, all else
  is left to PETSc's code, and either way residuals, iterations, solutions, KSPView() and what the levels' solvers say
  are PETSc's. Each line is solved twice, for two right-hand sides.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=2 -mat_aijhybridgpu_backend host -every 4
TEST np=1 @emulated -every 2
TEST np=+1 @emulated
TEST np=+1 @emulated -pc_mg_aijhybridgpu_precision single
TEST np=+1 @emulated -mat_aijhybridgpu_tuning iterations_ahead=2,restrict_first=0
TEST np=2 @emulated -every 12
TEST np=+2 @emulated -every 4
TEST np=+2 @emulated -every 5 -mat_aijhybridgpu_tuning whole=0
TEST np=+2 @emulated -every 5 -mat_aijhybridgpu_tuning comm_together=0
TEST np=+2 @emulated -every 5 -mat_aijhybridgpu_comm mpi

  -every N: one line of N, and those with a first guess; -line N: this one alone
*/
#include "solvetest.h"

typedef enum {
  SQUARE,    /* five points on a square */
  CONVECTED, /* unsymmetric */
  POINTS27,
  CLOSED,  /* singular, with its null space */
  CONSTANT /* a null space, on a matrix that is regular */
} Example;

typedef struct {
  const char *options;
  Example     problem;
  Cycle       cycle;
} Line;

#define CG   "-ksp_type cg -pc_type gamg "
#define RICH CG "-mg_levels_ksp_type richardson "
/* no steps: ten rows of the coarsest level, of which two would be solved at once */
#define EMPTY "-mg_levels_ksp_max_it 0 -pc_gamg_coarse_eq_limit 10"

static const Line Lines[] = {
  {CG,                                                                                                                                              SQUARE,    MADE    },
  {CG,                                                                                                                                              POINTS27,  MADE    },
  {"-ksp_type gmres -pc_type gamg",                                                                                                                 CONVECTED, MADE    },
  {"-ksp_type fgmres -pc_type gamg",                                                                                                                CONVECTED, MADE    },
  {"-ksp_type bcgs -pc_type gamg -pc_gamg_agg_nsmooths 0 -mg_levels_ksp_chebyshev_eigenvalues 0.2,2.2",                                             CONVECTED, MADE    },
  {"-ksp_type gmres -ksp_pc_side right -pc_type gamg",                                                                                              CONVECTED, MADE    },
  {CG "-pc_mg_cycle_type w",                                                                                                                        SQUARE,    MADE    },
  {CG "-pc_mg_cycle_type w",                                                                                                                        POINTS27,  MADE    },
  {CG EMPTY,                                                                                                                                        SQUARE,    MADE    },
  {CG "-mg_levels_ksp_max_it 1",                                                                                                                    SQUARE,    MADE    },
  {CG "-mg_levels_ksp_max_it 3",                                                                                                                    SQUARE,    MADE    },
  {CG "-mg_levels_ksp_max_it 4",                                                                                                                    SQUARE,    MADE    },
  {CG "-mg_levels_ksp_max_it 5",                                                                                                                    POINTS27,  MADE    },
  {CG "-mg_levels_ksp_max_it 24",                                                                                                                   SQUARE,    MADE    },
  {CG "-mg_levels_ksp_max_it 25",                                                                                                                   SQUARE,    LEFT    },
  {CG "-mg_levels_1_ksp_max_it 3 -mg_levels_2_ksp_max_it 1",                                                                                        SQUARE,    MADE    },
  {CG "-pc_mg_cycle_type w -mg_levels_ksp_max_it 1",                                                                                                SQUARE,    MADE    },
  {CG EMPTY " -pc_mg_cycle_type w",                                                                                                                 SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_eigenvalues 0.2,2.3",                                                                                               SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_eigenvalues 0.2,2.3 -mg_levels_ksp_max_it 6",                                                                       SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_eigenvalues 1.1,1.2 -mg_levels_ksp_max_it 4",                                                                       SQUARE,    MADE    },
  {CG "-pc_gamg_recompute_esteig 0 -pc_gamg_use_sa_esteig 0",                                                                                       SQUARE,    MADE    },
  {RICH,                                                                                                                                            SQUARE,    MADE    },
  {RICH "-mg_levels_ksp_richardson_scale 0.6",                                                                                                      SQUARE,    MADE    },
  {RICH EMPTY " -mg_levels_ksp_richardson_scale 0.6",                                                                                               SQUARE,    MADE    },
  {RICH "-mg_levels_ksp_richardson_scale 0.6 -mg_levels_ksp_max_it 1",                                                                              SQUARE,    MADE    },
  {RICH "-mg_levels_ksp_richardson_scale 0.6 -mg_levels_ksp_max_it 3",                                                                              SQUARE,    MADE    },
  {RICH "-mg_levels_ksp_richardson_scale 0.6 -pc_mg_cycle_type w",                                                                                  SQUARE,    MADE    },
  {RICH "-mg_levels_ksp_richardson_self_scale",                                                                                                     SQUARE,    LEFT    },
  {CG "-mg_levels_1_ksp_type richardson -mg_levels_1_ksp_richardson_scale 0.7",                                                                     SQUARE,    MADE    },
  {CG "-mg_coarse_ksp_type richardson -mg_coarse_ksp_max_it 2",                                                                                     SQUARE,    LEFT    },
  {CG "-ksp_norm_type unpreconditioned",                                                                                                            SQUARE,    MADE    },
  {CG "-ksp_norm_type unpreconditioned -ksp_initial_guess_nonzero",                                                                                 SQUARE,    WHATEVER},
  {CG "-ksp_norm_type natural -ksp_initial_guess_nonzero",                                                                                          SQUARE,    WHATEVER},
  {CG "-ksp_initial_guess_nonzero -ksp_converged_use_initial_residual_norm",                                                                        SQUARE,    WHATEVER},
  {CG "-ksp_initial_guess_nonzero -ksp_converged_use_min_initial_residual_norm",                                                                    SQUARE,    WHATEVER},
  {CG "-ksp_initial_guess_nonzero -ksp_atol 1e9",                                                                                                   SQUARE,    WHATEVER},
  {CG "-ksp_initial_guess_nonzero -ksp_atol 1e9 -ksp_min_it 1",                                                                                     SQUARE,    WHATEVER},
  {CG "-ksp_initial_guess_nonzero -ksp_check_norm_iteration 1",                                                                                     SQUARE,    WHATEVER},
  {CG "-ksp_initial_guess_nonzero -ksp_max_it 1 -ksp_converged_maxits",                                                                             SQUARE,    WHATEVER},
  {CG "-ksp_max_it 1",                                                                                                                              SQUARE,    MADE    },
  {CG "-ksp_max_it 0",                                                                                                                              SQUARE,    MADE    },
  {CG "-ksp_max_it 3 -ksp_converged_maxits",                                                                                                        SQUARE,    MADE    },
  {CG "-ksp_min_it 15",                                                                                                                             SQUARE,    MADE    },
  {CG "-ksp_check_norm_iteration 3",                                                                                                                SQUARE,    MADE    },
  {CG "-ksp_cg_single_reduction",                                                                                                                   SQUARE,    MADE    },
  {CG "-ksp_initial_guess_knoll",                                                                                                                   SQUARE,    WHATEVER},
  {CG "-ksp_diagonal_scale",                                                                                                                        SQUARE,    WHATEVER},
  {CG "-ksp_view_singularvalues ascii:/dev/null",                                                                                                   POINTS27,  MADE    },
  {CG "-ksp_view_eigenvalues ascii:/dev/null -ksp_norm_type natural",                                                                               SQUARE,    MADE    },
  {CG "-ksp_view_singularvalues ascii:/dev/null -pc_mg_aijhybridgpu 0",                                                                             SQUARE,    OFF     },
  {CG "-ksp_atol 1e-1",                                                                                                                             SQUARE,    MADE    },
  {CG "-ksp_divtol 1e-3",                                                                                                                           SQUARE,    MADE    },
  {CG "-ksp_norm_type none -ksp_max_it 4",                                                                                                          SQUARE,    MADE    },
  {CG "-ksp_guess_type fischer",                                                                                                                    SQUARE,    WHATEVER},
  {CG "-mg_coarse_pc_type svd",                                                                                                                     SQUARE,    MADE    },
  {CG "-mg_coarse_pc_type lu",                                                                                                                      SQUARE,    MADE    },
  {CG "-mg_coarse_pc_type cholesky",                                                                                                                SQUARE,    MADE    },
  {CG "-mg_coarse_pc_type jacobi",                                                                                                                  SQUARE,    MADE    },
  {CG "-mg_coarse_pc_type sor",                                                                                                                     SQUARE,    MADE    },
  {CG "-mg_coarse_sub_ksp_type cg -mg_coarse_sub_pc_type jacobi -mg_coarse_sub_ksp_max_it 3",                                                       SQUARE,    MADE    },
  {CG "-mg_coarse_sub_ksp_monitor ascii:/dev/null",                                                                                                 SQUARE,    MADE    },
  {CG "-mg_coarse_pc_type redundant",                                                                                                               SQUARE,    MADE    },
  {CG "-mg_coarse_pc_type ilu",                                                                                                                     SQUARE,    MADE    },
  {CG "-mg_coarse_ksp_monitor ascii:/dev/null",                                                                                                     SQUARE,    LEFT    },
  {CG "-pc_gamg_coarse_eq_limit 100",                                                                                                               POINTS27,  MADE    },
  {CG "-pc_gamg_coarse_eq_limit 60",                                                                                                                SQUARE,    MADE    },
  {CG "-pc_mg_type additive",                                                                                                                       SQUARE,    LEFT    },
  {CG "-pc_mg_type full",                                                                                                                           SQUARE,    LEFT    },
  {CG "-pc_mg_type kaskade",                                                                                                                        SQUARE,    LEFT    },
  {CG "-pc_mg_multiplicative_cycles 2",                                                                                                             SQUARE,    LEFT    },
  {CG "-mg_levels_pc_type sor",                                                                                                                     SQUARE,    LEFT    },
  {CG "-mg_levels_pc_type pbjacobi",                                                                                                                SQUARE,    LEFT    },
  {CG "-mg_levels_1_pc_type sor",                                                                                                                   SQUARE,    LEFT    },
  {CG "-mg_levels_pc_type none",                                                                                                                    SQUARE,    LEFT    },
  {CG "-mg_levels_pc_jacobi_type rowmax",                                                                                                           SQUARE,    MADE    },
  {CG "-mg_levels_pc_jacobi_abs",                                                                                                                   SQUARE,    MADE    },
  {CG "-mg_levels_ksp_norm_type preconditioned",                                                                                                    SQUARE,    LEFT    },
  {CG "-mg_levels_ksp_norm_type unpreconditioned",                                                                                                  SQUARE,    LEFT    },
  {CG "-mg_levels_1_ksp_norm_type preconditioned",                                                                                                  SQUARE,    LEFT    },
  {CG "-mg_levels_ksp_monitor ascii:/dev/null",                                                                                                     SQUARE,    LEFT    },
  {CG "-mg_levels_1_ksp_converged_reason ascii:/dev/null",                                                                                          SQUARE,    LEFT    },
  {CG "-mg_levels_1_ksp_view ascii:/dev/null",                                                                                                      SQUARE,    LEFT    },
  {CG "-mg_levels_1_ksp_view_final_residual ascii:/dev/null",                                                                                       SQUARE,    LEFT    },
  {"-ksp_type fgmres -pc_type gamg -mg_levels_ksp_type cg",                                                                                         SQUARE,    LEFT    },
  {"-ksp_type fgmres -pc_type gamg -mg_levels_ksp_type gmres",                                                                                      SQUARE,    LEFT    },
  {"-ksp_type fgmres -pc_type gamg -mg_levels_ksp_pc_side right -mg_levels_ksp_type gmres",                                                         SQUARE,    LEFT    },
  {CG "-pc_mg_distinct_smoothup",                                                                                                                   SQUARE,    MADE    },
  {CG "-pc_mg_distinct_smoothup -mg_levels_1_ksp_max_it 1 -mg_levels_2_up_ksp_max_it 3",                                                            SQUARE,    MADE    },
  {CG "-pc_mg_distinct_smoothup -mg_levels_1_up_pc_type sor",                                                                                       SQUARE,    LEFT    },
  {CG "-pc_mg_distinct_smoothup -pc_mg_cycle_type w",                                                                                               SQUARE,    WHATEVER},
  {CG "-pc_mg_log",                                                                                                                                 SQUARE,    LEFT    },
  {CG "-pc_mg_aijhybridgpu 0",                                                                                                                      SQUARE,    OFF     },
  {CG "-pc_mg_aijhybridgpu 1",                                                                                                                      SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_esteig_steps 5 -mg_levels_esteig_ksp_type cg -mg_levels_ksp_chebyshev_esteig 0,0.1,0,1.2 -pc_gamg_use_sa_esteig 0", SQUARE,    MADE    },
  {"-ksp_type bicg -pc_type gamg",                                                                                                                  CONVECTED, WHATEVER},
  {"-ksp_type richardson -pc_type gamg",                                                                                                            SQUARE,    ASIDE   },
  {"-ksp_type richardson -pc_type gamg -pc_mg_cycle_type w",                                                                                        SQUARE,    ASIDE   },
  {"-ksp_type richardson -ksp_richardson_scale 0.9 -pc_type gamg",                                                                                  SQUARE,    MADE    },
  {"-ksp_type preonly -pc_type gamg",                                                                                                               SQUARE,    MADE    },
  {"-ksp_type cg -pc_type gamg -ksp_norm_type natural",                                                                                             SQUARE,    MADE    },
  {"-ksp_type cg -ksp_initial_guess_nonzero -pc_type gamg",                                                                                         SQUARE,    WHATEVER},
  {CG "-mg_coarse_pc_type svd",                                                                                                                     CLOSED,    MADE    },
  {CG "-mg_coarse_sub_pc_type svd",                                                                                                                 CONSTANT,  LEFT    },
#if !PETSC_VERSION_LT(3, 20, 0)
  {CG "-pc_mg_distinct_smoothup -mg_levels_1_up_pc_jacobi_type rowl1",                                                                              SQUARE,    LEFT    },
#endif
#if !PETSC_VERSION_LT(3, 19, 0)
  {CG "-mg_levels_ksp_chebyshev_kind fourth",                                                                                                       SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_kind fourth -mg_levels_ksp_max_it 4",                                                                               SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_kind fourth -mg_levels_ksp_max_it 1",                                                                               SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_kind fourth -mg_levels_ksp_max_it 3 -pc_mg_cycle_type w",                                                           SQUARE,    MADE    },
  {CG "-mg_levels_ksp_chebyshev_kind opt_fourth",                                                                                                   SQUARE,    LEFT    },
  {CG "-mg_levels_ksp_chebyshev_kind opt_fourth -mg_levels_ksp_max_it 4",                                                                           SQUARE,    LEFT    },
#endif
};

static PetscErrorCode Stencil(Example problem, Mat *A)
{
  MatNullSpace null;

  PetscFunctionBeginUser;
  if (problem == POINTS27)
    PetscCall(MatTestStencil(3, 6, PETSC_TRUE, 0.0, MATAIJ, A));
  else
    PetscCall(MatTestStencil(2, problem == CONVECTED ? 24 : 18, PETSC_FALSE, problem == CONVECTED ? 0.4 : 0.0, MATAIJ, A));
  if (problem == CLOSED) { /* rows' sums become zero */
    Vec sums, ones;

    PetscCall(MatCreateVecs(*A, &ones, &sums));
    PetscCall(VecSet(ones, -1.0));
    PetscCall(MatMult(*A, ones, sums));
    PetscCall(MatDiagonalSet(*A, sums, ADD_VALUES));
    PetscCall(MatTestDestroy(&sums, &ones));
  }
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, (PetscBool)(problem != CONVECTED)));
  if (problem == CLOSED || problem == CONSTANT) {
    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
    PetscCall(MatSetNullSpace(*A, null));
    PetscCall(MatNullSpaceDestroy(&null));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the options in which each line begins are the last ones that PETSc takes */
static PetscErrorCode RunLine(const Line *line)
{
  char options[512];
  Pair p;
  Mat  S;

  PetscFunctionBeginUser;
  if (strstr(line->options, "-mg_coarse_pc_type ") && NoFactors(strstr(line->options, "-mg_coarse_pc_type ") + 19)) PetscFunctionReturn(PETSC_SUCCESS);
  /* without steps a cycle is the coarse level's alone: CG ends by chance, and rounding decides when */
  if (Single && strstr(line->options, "max_it 0")) PetscFunctionReturn(PETSC_SUCCESS);
  MatTestName = "options";
  /* four levels, the coarsest of two rows */
  snprintf(options, sizeof(options), "%s -pc_gamg_coarse_eq_limit 9 %s", BASE, line->options);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Stencil(line->problem, &S));
  PetscCall(PairCreate(S, &p));
  /* where levels are estimated apart, and in BiCGStab, rounding grows */
  if (line->cycle == LEFT) p.tol = 1e-5;
  if (strstr(options, "bcgs")) p.tol = 1e-8;
  /* of a guess that nobody wrote, PETSc knows with some types of vectors that it is zero, and spares an application */
  if (strstr(options, "guess_nonzero")) {
    for (int side = 0; side < 2; side++) PetscCall(VecSet(p.x[side], 0.5));
  }
  for (int k = 0; k < 2; k++) {
    for (int side = 0; side < 2; side++) PetscCall(RightHandSide(p.b[side], k));
    PetscCall(PairSolve(&p, line->cycle, line->options));
  }
  PetscCall(SameView(p.ksp[0], p.ksp[1], line->options));
  PetscCall(PairDestroy(&p));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt only = -1, every = 1;
  int      code = 1;

  PetscCall(SolveBegin(argc, argv));
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-line", &only, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Lines); k++)
    if (only >= 0 ? k == only : k % every == 0 || strstr(Lines[k].options, "guess_nonzero")) PetscCall(RunLine(&Lines[k]));
  PetscCall(SolveEnd(PETSC_TRUE, &code));
  return code;
}
