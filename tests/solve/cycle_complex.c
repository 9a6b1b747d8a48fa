/*
  Multigrid's cycle and KSPCG for matrices of complex numbers, Hermitian and complex symmetric ones, on the type beside
  MATAIJ: either kind of inner products, asked for by options and by a program, norms, first guesses, other methods.

TEST np=1 -mat_aijhybridgpu_backend host
TEST np=1 @emulated
TEST np=2 -mat_aijhybridgpu_backend host

-line K: one line only.
*/
#include "solvetest.h"

#if defined(PETSC_USE_COMPLEX)
  #define CG "-ksp_type cg -pc_type gamg "

static const struct {
  const char *options;
  Numbers     numbers;
} Lines[] = {
  {CG,                                                                          HERMITIAN   },
  {CG "-ksp_norm_type unpreconditioned",                                        HERMITIAN   },
  {CG "-ksp_norm_type natural",                                                 HERMITIAN   },
  {CG "-ksp_initial_guess_nonzero",                                             HERMITIAN   },
  {CG "-ksp_cg_type hermitian -mg_levels_ksp_type richardson",                  HERMITIAN   },
  {CG "-ksp_cg_type symmetric",                                                 DAMPED      },
  {CG "-ksp_cg_type symmetric -ksp_norm_type unpreconditioned",                 DAMPED      },
  {CG "-ksp_cg_type symmetric -ksp_norm_type natural -pc_mg_cycle_type w",      DAMPED      },
  {CG "-ksp_cg_type symmetric -ksp_initial_guess_nonzero",                      DAMPED      },
  {CG "-ksp_cg_type symmetric -mg_levels_ksp_max_it 3 -pc_gamg_threshold 0.05", DAMPED      },
  {CG "-ksp_max_it 6",                                                          DAMPED      },
  {"-ksp_type gmres -pc_type gamg",                                             DAMPED      },
  {"-ksp_type fgmres -pc_type gamg -mg_levels_ksp_type richardson",             IMAGINARY   },
  {"-ksp_type gmres -pc_type gamg -mg_levels_ksp_max_it 1",                     UNSYMMETRIC_},
  {"-ksp_type gmres -pc_type gamg -pc_gamg_agg_nsmooths 0",                     HERMITIAN   }
};

static PetscErrorCode Matrix(Numbers numbers, Mat *A)
{
  Mat R;

  PetscFunctionBeginUser;
  PetscCall(MatTestStencil(2, 24, PETSC_FALSE, 0.0, MATAIJ, &R));
  PetscCall(OfNumbers(&R, numbers, A));
  if (numbers == HERMITIAN) PetscCall(MatSetOption(*A, MAT_HERMITIAN, PETSC_TRUE));
  if (numbers == DAMPED) PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* with imaginary parts */
static PetscErrorCode Turned(Pair *p, PetscInt round)
{
  PetscFunctionBeginUser;
  SIDES(side) {
    PetscCall(RightHandSide(p->b[side], round));
    PetscCall(VecScale(p->b[side], PetscCMPLX(0.6, -0.8)));
    PetscCall(VecShift(p->b[side], PetscCMPLX(0, 0.5)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunLine(const char *line, Numbers numbers)
{
  char options[512];
  Pair p;
  Mat  S;

  PetscFunctionBeginUser;
  MatTestName = "complex numbers";
  snprintf(options, sizeof(options), "%s %s", BASE, line);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Matrix(numbers, &S));
  PetscCall(PairCreate(S, &p));
  p.tol = 1e-7; /* of estimates */
  if (strstr(options, "guess_nonzero")) {
    BOTH(VecSet(p.x[side], PetscCMPLX(0.5, 0.25)));
  }
  for (int k = 0; k < 3; k++) {
    PetscCall(Turned(&p, k));
    /* a residual of a guess is counted */
    PetscCall(PairSolve(&p, strstr(line, "guess_nonzero") ? WHATEVER : MADE, line));
  }
  /* new values */
  BOTH(Change(p.A[side], 1));
  PetscCall(PairSolve(&p, strstr(line, "guess_nonzero") ? WHATEVER : MADE, line));
  PetscCall(PairDestroy(&p));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a program changes its mind, with a graph that is captured for the other kind */
static PetscErrorCode Program(void)
{
  const KSPCGType types[] = {KSP_CG_SYMMETRIC, KSP_CG_HERMITIAN, KSP_CG_SYMMETRIC};
  Pair            p;
  Mat             S;

  PetscFunctionBeginUser;
  MatTestName = "the kind of inner products";
  PetscCall(Options(BASE " -ksp_type cg -pc_type gamg", PETSC_TRUE));
  PetscCall(Matrix(DAMPED, &S));
  PetscCall(PairCreate(S, &p));
  p.tol = 1e-7;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    SIDES(side) {
      PetscCall(KSPCGSetType(p.ksp[side], types[k]));
      PetscCall(KSPSetTolerances(p.ksp[side], PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, types[k] == KSP_CG_HERMITIAN ? 5 : 40));
    }
    for (int turn = 0; turn < 3; turn++) {
      PetscCall(Turned(&p, turn));
      PetscCall(PairSolve(&p, MADE, "KSPCGSetType()"));
    }
  }
  PetscCall(PairDestroy(&p));
  PetscCall(Options(BASE " -ksp_type cg -pc_type gamg", PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  PetscInt only = -1;
  int      code = 1;

  PetscCall(SolveBegin(argc, argv));
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-line", &only, NULL));
#if defined(PETSC_USE_COMPLEX)
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(Lines); k++)
    if (only < 0 || only == k) PetscCall(RunLine(Lines[k].options, Lines[k].numbers));
  if (only < 0) PetscCall(Program());
#else
  MatTestSkipped++; /* numbers are real */
#endif
  PetscCall(SolveEnd(PETSC_TRUE, &code));
  return code;
}
