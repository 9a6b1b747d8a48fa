/*
  KSPMatSolve() with KSPCG and multigrid: the type's, which solves columns at once on a device, beside PETSc's loop over
  columns on MATAIJ, and beside KSPSolve() for each column on the type. Each column's iterations, reason, norm and
  solution, what the KSP and the levels' solvers say afterwards, the history, and the way that it went. Columns that end
  at different times, a column of zeros, one with NaN; few iterations allowed; three norms; smoothers of several kinds;
  gaps between columns; batches; new values, another pattern, KSPReset(), other types; and what is PETSc's own.

TEST np=1
TEST np=1 @emulated -few
TEST np=+1 @emulated
TEST np=2 -few
TEST np=+2
TEST np=+1 @emulated -mat_aijhybridgpu_memory mirror
TEST np=1 @emulated -errors

  -few: of the kinds of solves one of three
*/
#include "mattest.h"
#include <petsc/private/kspimpl.h>
#include <petsc/private/pcmgimpl.h>
#include <math.h>
#include <stdlib.h>

#define COLUMNS 17
#define HISTORY 100
#if defined(PETSC_USE_REAL_SINGLE)
  #define CLOSE 5e-2
  #define GOAL  "1e-4"
#else
  #define CLOSE 1e-6
  #define GOAL  "1e-8"
#endif
#define BASE "-ksp_type cg -pc_type gamg -pc_gamg_coarse_eq_limit 10 -ksp_max_it 40 -ksp_rtol " GOAL " "

/* which way a solve of several columns goes on a device */
typedef enum {
  OURS,
  PETSCS, /* PETSc's loop */
  LATE,   /* the first time only a look tells */
  EITHER  /* by what older releases leave undone until a solve, after which it is looked at again */
} Way;

/* what is told after each column */
typedef struct {
  PetscInt           n, its[COLUMNS];
  KSPConvergedReason reason[COLUMNS];
  PetscReal          norm[COLUMNS];
} Told;

static PetscBool Device; /* solves of several columns can be ours */
static PetscBool Rough;  /* rounding decides what comes out: what sums in another order is not compared */

static PetscErrorCode Tell(KSP ksp, void *ctx)
{
  Told *t = (Told *)ctx;

  PetscFunctionBeginUser;
  if (t->n < COLUMNS) {
    t->its[t->n]    = ksp->its;
    t->reason[t->n] = ksp->reason;
    t->norm[t->n]   = ksp->rnorm;
  }
  t->n++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* right-hand sides that end at different times: rough and smooth ones, of all sizes, and one of zeros */
static PetscErrorCode Fill(Mat B, PetscInt round, PetscBool nan)
{
  PetscInt     rows, columns, start, end, ld;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(B, &rows, &columns));
  PetscCall(MatGetOwnershipRange(B, &start, &end));
  PetscCall(MatDenseGetLDA(B, &ld));
  PetscCall(MatDenseGetArray(B, &a));
  for (PetscInt c = 0; c < columns; c++)
    for (PetscInt r = start; r < end; r++) {
      const PetscReal t = (r + 0.5) / rows, size = PetscPowRealInt(10.0, c % 7 - 3);
      PetscScalar     v = c % 3 == 0 ? PetscSinReal((1 + c) * 3 * t) : c % 3 == 1 ? (PetscReal)((r * (37 + 2 * c + 6 * round) + 5 * c) % 101) / 50 - 1
                                                                                  : (PetscReal)(r % (c + 2) == 0);

      if (PetscDefined(USE_COMPLEX)) v += PETSC_i * PetscCosReal((2 + c) * t);
      a[r - start + c * ld] = c == 4 ? 0 : size * v;
    }
  if (nan && columns > 1) a[1 * ld] = (PetscReal)NAN;
  PetscCall(MatDenseRestoreArray(B, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a matrix of the problem, of MATAIJ */
static PetscErrorCode Matrix(int problem, Mat *A)
{
  Mat      S;
  PetscInt n;

  PetscFunctionBeginUser;
  PetscCall(MatTestStencil(problem == 0 ? 3 : 2, problem == 0 ? 7 : 14, (PetscBool)(problem == 1), 0.0, MATAIJ, &S));
  if (problem < 2) {
    *A = S;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* blocks of two that are coupled */
  PetscCall(MatGetSize(S, &n, NULL));
  PetscCall(MatTestCreate(PETSC_COMM_WORLD, MATAIJ, PETSC_DECIDE, PETSC_DECIDE, 2 * n, 2 * n, A));
  PetscCall(MatSetBlockSize(*A, 2));
  PetscCall(MatSetUp(*A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  {
    PetscInt start, end;

    PetscCall(MatGetOwnershipRange(S, &start, &end));
    for (PetscInt r = start; r < end; r++) {
      const PetscInt    *j;
      const PetscScalar *v;
      PetscInt           many;

      PetscCall(MatGetRow(S, r, &many, &j, &v));
      for (PetscInt k = 0; k < many; k++) {
        const PetscScalar block[4] = {(PetscReal)1.5 * v[k], (PetscReal)0.3 * v[k], (PetscReal)0.3 * v[k], v[k]};

        PetscCall(MatSetValuesBlocked(*A, 1, &r, 1, &j[k], block, INSERT_VALUES));
      }
      PetscCall(MatRestoreRow(S, r, &many, &j, &v));
    }
  }
  PetscCall(MatTestAssemble(*A));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* [0] MATAIJ, KSPMatSolve(); [1] the type, KSPMatSolve(); [2] the type, KSPSolve() for each column */
typedef struct {
  Mat  A[3];
  KSP  ksp[3];
  Told told[3];
} Three;

static PetscErrorCode ThreeCreate(int problem, const char *options, Three *t)
{
  Mat S;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  PetscCall(Matrix(problem, &S));
  PetscCall(MatSetOption(S, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PetscOptionsInsertString(NULL, BASE));
  PetscCall(PetscOptionsInsertString(NULL, options));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatConvert(S, k ? "aijhybridgpu" : MATAIJ, MAT_INITIAL_MATRIX, &t->A[k]));
    PetscCall(MatSetOption(t->A[k], MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &t->ksp[k]));
    PetscCall(KSPSetOperators(t->ksp[k], t->A[k], t->A[k]));
    PetscCall(KSPSetResidualHistory(t->ksp[k], NULL, HISTORY, PETSC_TRUE));
    PetscCall(KSPSetFromOptions(t->ksp[k]));
    PetscCall(KSPConvergedReasonViewSet(t->ksp[k], Tell, &t->told[k], NULL));
  }
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ThreeDestroy(Three *t, const char *options)
{
  char **word;
  int    n;

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) PetscCall(MatTestDestroy(&t->ksp[k], &t->A[k]));
  PetscCall(PetscStrToArray(options, ' ', &n, &word));
  for (int k = 0; k < n; k++)
    if (word[k][0] == '-') PetscCall(PetscOptionsClearValue(NULL, word[k]));
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* which: 0: KSPMatSolve(), 1: KSPSolve() for each column */
static PetscErrorCode Solve(KSP ksp, int which, Mat B, Mat X, Told *told)
{
  PetscInt columns;

  PetscFunctionBeginUser;
  told->n = 0;
  PetscCall(MatGetSize(B, NULL, &columns));
  if (!which) PetscCall(KSPMatSolve(ksp, B, X));
  for (PetscInt c = 0; which && c < columns; c++) {
    Vec b, x;

    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(MatDenseGetColumnVecWrite(X, c, &x));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(MatDenseRestoreColumnVecWrite(X, c, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of each column: do the solutions agree? */
static PetscErrorCode SameSolutions(Mat X, Mat Y, const char *what)
{
  PetscInt columns;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(X, NULL, &columns));
  for (PetscInt c = 0; c < columns; c++) {
    Vec       x, y, d;
    PetscReal norm, apart;

    PetscCall(MatDenseGetColumnVecRead(X, c, &x));
    PetscCall(MatDenseGetColumnVecRead(Y, c, &y));
    PetscCall(VecDuplicate(x, &d));
    PetscCall(VecCopy(x, d));
    PetscCall(VecAXPY(d, -1.0, y));
    PetscCall(VecNorm(y, NORM_2, &norm));
    PetscCall(VecNorm(d, NORM_2, &apart));
    if (!(apart <= CLOSE * norm) && !(norm != norm && apart != apart)) printf("%s: column %d is %g apart, of %g\n", what, (int)c, (double)apart, (double)norm);
    MatTestCheck(apart <= CLOSE * norm || (norm != norm && apart != apart), "the solutions");
    PetscCall(VecDestroy(&d));
    PetscCall(MatDenseRestoreColumnVecRead(Y, c, &y));
    PetscCall(MatDenseRestoreColumnVecRead(X, c, &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* exact: of the type both, so that norms differ by rounding alone */
static void SameTold(const Told *a, const Told *b, PetscBool exact, const char *what)
{
  const PetscInt slack = PetscDefined(USE_REAL_SINGLE) ? 1 : 0;
  PetscBool      same  = (PetscBool)(a->n == b->n);

  if (!same) printf("%s: told of %d columns, not %d\n", what, (int)a->n, (int)b->n);
  for (PetscInt c = 0; same && c < PetscMin(a->n, COLUMNS); c++) {
    const PetscReal norm = b->norm[c], apart = PetscAbsReal(a->norm[c] - norm);

    same = (PetscBool)(PetscAbsInt(a->its[c] - b->its[c]) <= slack && a->reason[c] == b->reason[c]);
    if (same && !slack) same = (PetscBool)(apart <= (exact ? 1e-5 : 1e-3) * norm || norm != norm);
    if (!same) printf("%s: column %d: %d iterations, reason %d, norm %g, not %d, %d, %g\n", what, (int)c, (int)a->its[c], (int)a->reason[c], (double)a->norm[c], (int)b->its[c], (int)b->reason[c], (double)norm);
  }
  MatTestCheck(same, what);
}

/* what the KSP, its history and the levels' solvers say */
static PetscErrorCode SameAfterwards(KSP a, KSP b, const char *what)
{
  const PetscReal *h[2];
  PetscInt         n[2];
  PC               pc[2];
  PetscBool        same;

  PetscFunctionBeginUser;
  if (PetscDefined(USE_REAL_SINGLE)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetResidualHistory(a, &h[0], &n[0]));
  PetscCall(KSPGetResidualHistory(b, &h[1], &n[1]));
  same = (PetscBool)(n[0] == n[1]);
  for (PetscInt k = 0; same && k < n[0]; k++) same = (PetscBool)(PetscAbsReal(h[0][k] - h[1][k]) <= 1e-4 * h[1][k] || h[1][k] != h[1][k]);
  if (!same) printf("%s: histories of %d and %d\n", what, (int)n[0], (int)n[1]);
  MatTestCheck(same, "the history is the last column's");
  MatTestCheck(a->its == b->its && a->reason == b->reason && a->totalits == b->totalits, "what the solver says");
  PetscCall(KSPGetPC(a, &pc[0]));
  PetscCall(KSPGetPC(b, &pc[1]));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc[0], PCGAMG, &same));
  if (same) {
    const PC_MG   *mg[2]  = {(const PC_MG *)pc[0]->data, (const PC_MG *)pc[1]->data};
    const PetscInt levels = mg[0]->levels && mg[1]->levels ? PetscMin(mg[0]->levels[0]->levels, mg[1]->levels[0]->levels) : 0;

    for (PetscInt l = 0; l < levels; l++) {
      const KSP s[2] = {mg[0]->levels[l]->smoothd, mg[1]->levels[l]->smoothd};

      same = (PetscBool)(s[0]->its == s[1]->its && s[0]->reason == s[1]->reason && s[0]->totalits == s[1]->totalits);
      if (!same) printf("%s, level %d: iterations %d, %d; in all %d, %d; reason %d, %d\n", what, (int)l, (int)s[0]->its, (int)s[1]->its, (int)s[0]->totalits, (int)s[1]->totalits, (int)s[0]->reason, (int)s[1]->reason);
      MatTestCheck(same, "what the levels' solvers say");
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Did the solve go this way? first: the first one of its solver, in which the coarsest level's inverse is made by
   KSPMatSolve() too */
static PetscErrorCode WayWas(PetscInt calls[2], PetscInt columns, Way way, PetscBool first)
{
  const PetscBool ours = (PetscBool)(Device && way == OURS && columns > 1);
  PetscInt        at, one;
  const PetscBool late = (PetscBool)(Device && ((way == LATE && first) || (way != PETSCS && columns == 1)));

  PetscFunctionBeginUser;
  if (way == EITHER) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatTestEventCount("KSPMatSolve", &at));
  PetscCall(MatTestEventCount("KSPSolve", &one));
  if (ours)
    MatTestCheck(at == calls[0] + 1 && one - calls[1] < columns, "the columns are solved at once");
  else
    MatTestCheck((at == calls[0] + (late ? 1 : 0) || (first && at == calls[0] + 1)) && one - calls[1] >= columns, "PETSc solves column by column");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all three solve so many right-hand sides; gap: rows between columns */
static PetscErrorCode Compare(Three *t, PetscInt columns, PetscInt gap, PetscInt round, PetscBool nan, Way way, PetscBool first)
{
  PetscInt     n, N, calls[2];
  Mat          B[3], X[3], again;
  PetscScalar *room[6];

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    PetscCall(MatGetLocalSize(t->A[k], &n, NULL));
    PetscCall(MatGetSize(t->A[k], &N, NULL));
    PetscCall(PetscCalloc1((n + gap + 1) * columns, &room[2 * k]));
    PetscCall(PetscCalloc1((n + gap + 1) * columns, &room[2 * k + 1]));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, N, columns, NULL, &B[k]));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, N, columns, NULL, &X[k]));
    if (gap) {
      PetscCall(MatTestDestroy(&B[k], &X[k]));
      for (int x = 0; x < 2; x++) {
        Mat *const M = x ? &X[k] : &B[k];

        PetscCall(MatCreate(PETSC_COMM_WORLD, M));
        PetscCall(MatSetSizes(*M, n, PETSC_DECIDE, N, columns));
        PetscCall(MatSetType(*M, MATDENSE));
        PetscCall(MatDenseSetLDA(*M, n + gap));
        PetscCall(MatSeqDenseSetPreallocation(*M, room[2 * k + x]));
        PetscCall(MatMPIDenseSetPreallocation(*M, room[2 * k + x]));
        PetscCall(MatTestAssemble(*M));
      }
    }
    PetscCall(Fill(B[k], round, nan));
    PetscCall(Fill(X[k], round + 1, PETSC_FALSE)); /* it is not read */
    if (k == 1) {
      PetscCall(MatTestEventCount("KSPMatSolve", &calls[0]));
      PetscCall(MatTestEventCount("KSPSolve", &calls[1]));
    }
    PetscCall(Solve(t->ksp[k], k == 2, B[k], X[k], &t->told[k]));
    if (k == 1) PetscCall(WayWas(calls, columns, way, first));
  }
  SameTold(&t->told[1], &t->told[2], PETSC_TRUE, "columns beside one at a time");
  SameTold(&t->told[1], &t->told[0], PETSC_FALSE, "columns beside MATAIJ");
  PetscCall(SameSolutions(X[1], X[2], "beside one at a time"));
  if (!Rough) PetscCall(SameSolutions(X[1], X[0], "beside MATAIJ"));
  PetscCall(SameAfterwards(t->ksp[1], t->ksp[2], "beside one at a time"));
  /* the same bits again, of which NaN are no equals */
  PetscCall(MatDuplicate(X[1], MAT_COPY_VALUES, &again));
  PetscCall(Solve(t->ksp[1], 0, B[1], X[1], &t->told[1]));
  PetscCall(Solve(t->ksp[2], 1, B[2], X[2], &t->told[2]));
  for (PetscInt c = 0; c < columns && way != EITHER && !t->ksp[1]->guess; c++) {
    const PetscScalar *x, *y;
    Vec                vx, vy;

    PetscCall(MatDenseGetColumnVecRead(X[1], c, &vx));
    PetscCall(MatDenseGetColumnVecRead(again, c, &vy));
    PetscCall(VecGetArrayRead(vx, &x));
    PetscCall(VecGetArrayRead(vy, &y));
    MatTestCheck(!memcmp(x, y, sizeof(*x) * (size_t)n), "the same bits again");
    PetscCall(VecRestoreArrayRead(vx, &x));
    PetscCall(VecRestoreArrayRead(vy, &y));
    PetscCall(MatDenseRestoreColumnVecRead(again, c, &vy));
    PetscCall(MatDenseRestoreColumnVecRead(X[1], c, &vx));
  }
  PetscCall(MatDestroy(&again));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatTestDestroy(&B[k], &X[k]));
    PetscCall(PetscFree(room[2 * k]));
    PetscCall(PetscFree(room[2 * k + 1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name, *options;
  Way         way;
} Cases[] = {
  {"the defaults",                 "",                                                                                           OURS  },
  {"unpreconditioned norm",        "-ksp_norm_type unpreconditioned",                                                            OURS  },
  {"natural norm",                 "-ksp_norm_type natural",                                                                     OURS  },
  {"three iterations",             "-ksp_max_it 3",                                                                              OURS  },
  {"W cycles, three steps",        "-pc_mg_cycle_type w -mg_levels_ksp_max_it 3",                                                OURS  },
  {"one step of Richardson",       "-mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6 -mg_levels_ksp_max_it 1", OURS  },
  {"tolerances",                   "-ksp_atol 1e-3 -ksp_min_it 2",                                                               OURS  },
  {"a convergence test's options", "-ksp_converged_maxits -ksp_max_it 5",                                                        OURS  },
#if defined(PETSC_USE_COMPLEX)
  {"symmetric",                    "-ksp_cg_type symmetric",                                                                     OURS  },
#endif
  {"batches of three",             "-ksp_matsolve_batch_size 3",                                                                 OURS  },
  {"SOR",                          "-mg_levels_pc_type sor",                                                                     LATE  },
  {"a coarsest level of PETSc's",  "-mg_coarse_pc_type sor",                                                                     LATE  },
  {"a guess of former solves",     "-ksp_guess_type fischer",                                                                    PETSCS},
  {"no norm",                      "-ksp_norm_type none -ksp_max_it 4 -ksp_convergence_test skip",                               PETSCS},
  {"eigenvalues",                  "-ksp_view_eigenvalues ascii:/dev/null",                                                      PETSCS},
  {"Jacobi",                       "-pc_type jacobi",                                                                            PETSCS},
  {"the cycle is off",             "-pc_mg_aijhybridgpu 0",                                                                      PETSCS},
};

static PetscErrorCode Columns(void)
{
  static const PetscInt counts[] = {6, 17, 3, 1, 9};
  PetscBool             few;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-few", &few));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Cases); k += few ? 3 : 1) {
    for (int problem = 0; problem < (k < 1 ? 3 : 1); problem++) {
      char  name[96];
      Three t;

      PetscCall(PetscSNPrintf(name, sizeof(name), "%s, problem %d", Cases[k].name, problem));
      MatTestName = name;
      PetscCall(ThreeCreate(problem, Cases[k].options, &t));
      for (size_t c = 0; c < (k < 1 ? PETSC_STATIC_ARRAY_LENGTH(counts) : k < 4 ? 2
                                                                                : 1);
           c++) PetscCall(Compare(&t, counts[c], c == 2 ? 3 : 0, (PetscInt)c, (PetscBool)(k == 0 && c == 1), Cases[k].way, (PetscBool)!c));
      PetscCall(ThreeDestroy(&t, Cases[k].options));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewValues(Three *t)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    Vec d;

    PetscCall(MatCreateVecs(t->A[k], &d, NULL));
    PetscCall(VecSet(d, 0.75));
    PetscCall(MatDiagonalSet(t->A[k], d, ADD_VALUES));
    PetscCall(MatScale(t->A[k], 3.0));
    PetscCall(VecDestroy(&d));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewPattern(Three *t)
{
  PetscInt start, end, rows;

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    Mat M = t->A[k];

    PetscCall(MatGetSize(M, &rows, NULL));
    PetscCall(MatSetOption(M, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatGetOwnershipRange(M, &start, &end));
    for (PetscInt r = start; r < end; r++)
      if (r % 17 == 0 || (rows - 1 - r) % 17 == 0) PetscCall(MatSetValue(M, r, rows - 1 - r, -0.01, ADD_VALUES));
    PetscCall(MatTestAssemble(M));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt its, PetscReal norm, void *ctx)
{
  return PETSC_SUCCESS;
}

#define EACH(call)              \
  for (int k = 0; k < 3; k++) { \
    const KSP ksp = t.ksp[k];   \
                                \
    PetscCall(call);            \
  }

/* one solver, of which something changes again and again */
static PetscErrorCode Changes(void)
{
  Three        t;
  MatNullSpace null;
  PetscReal    history[4096];

  PetscFunctionBeginUser;
  MatTestName = "changes";
  PetscCall(ThreeCreate(0, "", &t));
  PetscCall(Compare(&t, 6, 0, 0, PETSC_FALSE, OURS, PETSC_TRUE));
  PetscCall(NewValues(&t));
  MatTestName = "new values";
  PetscCall(Compare(&t, 6, 0, 1, PETSC_FALSE, OURS, PETSC_FALSE));
  EACH(KSPReset(ksp));
  EACH(KSPSetOperators(ksp, t.A[k], t.A[k]));
  MatTestName = "after KSPReset()";
  PetscCall(Compare(&t, 4, 0, 2, PETSC_FALSE, EITHER, PETSC_FALSE));
  PetscCall(NewPattern(&t));
  for (int k = 0; k < 3; k++) { /* older releases cannot change the levels' sizes otherwise */
    PC pc;

    PetscCall(KSPGetPC(t.ksp[k], &pc));
    PetscCall(PCSetType(pc, PCNONE));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PCSetFromOptions(pc));
  }
  MatTestName = "another pattern and preconditioner";
  PetscCall(Compare(&t, 3, 0, 2, PETSC_FALSE, EITHER, PETSC_TRUE));
  PetscCall(Compare(&t, 3, 0, 3, PETSC_FALSE, OURS, PETSC_FALSE));
  EACH(KSPMonitorSet(ksp, Monitor, NULL, NULL));
  MatTestName = "a monitor";
  PetscCall(Compare(&t, 3, 0, 4, PETSC_FALSE, PETSCS, PETSC_FALSE));
  EACH(KSPMonitorCancel(ksp));
  MatTestName = "no monitor any more";
  PetscCall(Compare(&t, 3, 0, 5, PETSC_FALSE, OURS, PETSC_FALSE));
  EACH(KSPSetResidualHistory(ksp, k ? NULL : history, 4096, PETSC_FALSE));
  MatTestName = "a history of all solves";
  PetscCall(Compare(&t, 3, 0, 6, PETSC_FALSE, PETSCS, PETSC_FALSE));
  EACH(KSPSetResidualHistory(ksp, NULL, HISTORY, PETSC_TRUE));
  EACH(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  MatTestName = "a first guess";
  {
    PetscInt calls[2], n;
    Mat      B[2], X[2];

    for (int k = 0; k < 2; k++) {
      PetscCall(MatGetSize(t.A[k], &n, NULL));
      PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, 3, NULL, &B[k]));
      PetscCall(MatDuplicate(B[k], MAT_DO_NOT_COPY_VALUES, &X[k]));
      PetscCall(Fill(B[k], 7, PETSC_FALSE));
      PetscCall(Fill(X[k], 8, PETSC_FALSE));
      PetscCall(MatTestEventCount("KSPMatSolve", &calls[0]));
      PetscCall(MatTestEventCount("KSPSolve", &calls[1]));
      PetscCall(Solve(t.ksp[k], 0, B[k], X[k], &t.told[k]));
    }
    PetscCall(WayWas(calls, 3, PETSCS, PETSC_FALSE));
    SameTold(&t.told[1], &t.told[0], PETSC_FALSE, "a first guess");
    PetscCall(SameSolutions(X[1], X[0], "a first guess"));
    EACH(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
#if PETSC_VERSION_GE(3, 20, 0)
    MatTestName = "the transpose";
    for (int k = 0; k < 2; k++) {
      PetscCall(MatTestEventCount("KSPMatSolve", &calls[0]));
      t.told[k].n = 0;
      PetscCall(KSPMatSolveTranspose(t.ksp[k], B[k], X[k]));
    }
    SameTold(&t.told[1], &t.told[0], PETSC_FALSE, "the transpose");
    PetscCall(SameSolutions(X[1], X[0], "the transpose"));
#endif
    for (int k = 0; k < 2; k++) PetscCall(MatTestDestroy(&B[k], &X[k]));
  }
  MatTestName = "after all that";
  PetscCall(KSPReset(t.ksp[0]));
  PetscCall(KSPReset(t.ksp[1]));
  PetscCall(KSPReset(t.ksp[2]));
  for (int k = 0; k < 3; k++) {
    PetscCall(KSPDestroy(&t.ksp[k]));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &t.ksp[k]));
    PetscCall(KSPSetOperators(t.ksp[k], t.A[k], t.A[k]));
    PetscCall(KSPSetFromOptions(t.ksp[k]));
    PetscCall(KSPConvergedReasonViewSet(t.ksp[k], Tell, &t.told[k], NULL));
  }
  PetscCall(Compare(&t, 3, 0, 9, PETSC_FALSE, OURS, PETSC_TRUE));
  EACH(KSPSetType(ksp, KSPFCG));
  MatTestName = "another method";
  PetscCall(Compare(&t, 3, 0, 10, PETSC_FALSE, PETSCS, PETSC_FALSE));
  EACH(KSPSetType(ksp, KSPCG));
  MatTestName = "the method again";
  PetscCall(Compare(&t, 3, 0, 11, PETSC_FALSE, OURS, PETSC_FALSE));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  for (int k = 0; k < 3; k++) PetscCall(MatSetNullSpace(t.A[k], null));
  PetscCall(MatNullSpaceDestroy(&null));
  MatTestName = "a null space";
  EACH(KSPSetTolerances(ksp, 1e-2, PETSC_DEFAULT, PETSC_DEFAULT, 3));
  PetscCall(Compare(&t, 2, 0, 12, PETSC_FALSE, PETSCS, PETSC_FALSE));
  PetscCall(ThreeDestroy(&t, ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* matrices that make the method stop before it has converged */
static PetscErrorCode Stops(void)
{
  const PetscMPIInt size = MatTestSize();
  Three             t;

  PetscFunctionBeginUser;
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS); /* factorizations of parallel matrices need other packages */
  for (int way = 0; way < 2; way++) {
    MatTestName = way ? "a negative matrix" : "an indefinite matrix";
    PetscCall(ThreeCreate(1, "-mg_coarse_pc_type lu", &t));
    PetscCall(Compare(&t, 3, 0, 0, PETSC_FALSE, OURS, PETSC_TRUE));
    for (int k = 0; k < 3; k++) {
      PC pc;

      /* the preconditioner stays that of the first matrix */
      PetscCall(KSPGetPC(t.ksp[k], &pc));
      PetscCall(KSPSetReusePreconditioner(t.ksp[k], PETSC_TRUE));
      if (way)
        PetscCall(MatScale(t.A[k], -1.0));
      else
        PetscCall(MatShift(t.A[k], -2.0));
    }
    Rough = PetscDefined(USE_REAL_SINGLE);
    PetscCall(Compare(&t, 6, 0, 1, PETSC_FALSE, OURS, PETSC_FALSE));
    Rough = PETSC_FALSE;
    PetscCall(ThreeDestroy(&t, "-mg_coarse_pc_type lu"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is an error after KSPSolve() is one after KSPMatSolve() */
static PetscErrorCode Errors(void)
{
  static const char *const options[] = {"-ksp_max_it 2", "-ksp_max_it 40"};
  Three                    t;
  PetscInt                 n;
  Mat                      B[2], X[2];

  PetscFunctionBeginUser;
  for (int nan = 0; nan < 2; nan++) {
    MatTestName = nan ? "NaN is an error" : "too few iterations are an error";
    PetscCall(ThreeCreate(0, options[nan], &t));
    PetscCall(MatGetSize(t.A[0], &n, NULL));
    for (int k = 0; k < 2; k++) {
      PetscErrorCode ierr;

      PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, 5, NULL, &B[k]));
      PetscCall(MatDuplicate(B[k], MAT_DO_NOT_COPY_VALUES, &X[k]));
      PetscCall(Fill(B[k], 0, (PetscBool)nan));
      PetscCall(KSPSetErrorIfNotConverged(t.ksp[k], PETSC_TRUE));
      QUIETLY(ierr, KSPMatSolve(t.ksp[k], B[k], X[k]));
      MatTestCheck(ierr == PETSC_ERR_NOT_CONVERGED || (nan && ierr), "an error");
    }
    PetscCall(ThreeDestroy(&t, options[nan])); /* B and X stay: PETSc's loop has left their columns lent */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool   cuda, errors = PETSC_FALSE;
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCall(MatTestInitialize(&argc, &argv, &rank, &size));
  PetscCall(PetscLogDefaultBegin());
  PetscCall(MatTestOptionIs("-mat_aijhybridgpu_backend", "cuda", &cuda));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-errors", &errors, NULL));
  Device = (PetscBool)(cuda && size == 1);
  if (errors)
    PetscCall(Errors());
  else {
    PetscCall(Columns());
    PetscCall(Changes());
    PetscCall(Stops());
  }
  return MatTestEnd();
}
