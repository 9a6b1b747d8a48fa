/*
  smoother.c: the numbers of a smoother's steps.

  PETSc has no function that tells the bounds of eigenvalues which KSPCHEBYSHEV uses, and part of them are written past
  its functions. So its own code is asked: its solve runs on a problem of one unknown, with the identity for
  preconditioner. With A = 0 and b = 1 one step from zero gives the scale s, and two give 2 w s, w being the weight of
  the second step, of which all later ones follow. What these numbers would do to another problem of one unknown, with
  all steps, is then compared with what PETSc does: that tells the first kind from the fourth, and both from all else.
*/
#include "mgimpl.h"

#define TINY_WORK 6 /* the most work vectors of a solver */

/* what the program's log is not to have of it */
static PetscErrorCode Quiet(PetscBool on)
{
  const PetscLogEvent events[] = {MAT_Mult, PC_Apply, PC_SetUp};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(events); k++) {
    if (on)
      PetscCall(PetscLogEventDeactivatePush(events[k]));
    else
      PetscCall(PetscLogEventDeactivatePop(events[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The problem of one unknown: kept until PetscFinalize(), for making it takes longer than its solves, of which each
   level has three after new values */
static struct {
  Vec v[TINY_WORK + 2]; /* right-hand side, solution, work */
  PC  pc;
} tiny_;

static PetscErrorCode TinyDestroy(void)
{
  PetscFunctionBegin;
  PetscCall(PCDestroy(&tiny_.pc));
  for (int k = 0; k < TINY_WORK + 2; k++) PetscCall(VecDestroy(&tiny_.v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TinyCreate(void)
{
  PC pc;

  PetscFunctionBegin;
  if (tiny_.pc) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < TINY_WORK + 2; k++)
    if (!tiny_.v[k]) PetscCall(VecCreateSeq(PETSC_COMM_SELF, 1, &tiny_.v[k]));
  PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(PetscRegisterFinalize(TinyDestroy));
  tiny_.pc = pc;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* one unknown: x after so many steps from zero, for the right-hand side 1 and the matrix a */
static PetscErrorCode TinySolve(KSP ksp, PetscReal a, PetscInt steps, PetscScalar *x)
{
  struct _p_KSP      was;
  Mat                A;
  PetscErrorCode     ierr, second;
  const PetscScalar *value;

  PetscFunctionBegin;
  PetscCall(TinyCreate());
  PetscCall(MatCreateConstantDiagonal(PETSC_COMM_SELF, 1, 1, 1, 1, a, &A));
  PetscCall(PCSetOperators(tiny_.pc, A, A));
  PetscCall(MatDestroy(&A)); /* the preconditioner's */
  PetscCall(VecSet(tiny_.v[0], 1));
  PetscCall(VecSet(tiny_.v[1], 0));
  was             = *ksp;
  ksp->pc         = tiny_.pc;
  ksp->vec_rhs    = tiny_.v[0];
  ksp->vec_sol    = tiny_.v[1];
  ksp->work       = tiny_.v + 2;
  ksp->max_it     = steps;
  ksp->guess_zero = PETSC_TRUE;
  ierr            = Quiet(PETSC_TRUE);
  if (!ierr) {
    ierr = (*ksp->ops->solve)(ksp);
    ierr = HybErrorFirst(ierr, Quiet(PETSC_FALSE));
  }
  ksp->pc         = was.pc;
  ksp->vec_rhs    = was.vec_rhs;
  ksp->vec_sol    = was.vec_sol;
  ksp->work       = was.work;
  ksp->max_it     = was.max_it;
  ksp->guess_zero = was.guess_zero;
  ksp->its        = was.its;
  ksp->reason     = was.reason;
  ksp->rnorm      = was.rnorm;
  second          = VecGetArrayRead(tiny_.v[1], &value);
  *x              = second ? 0 : *value;
  if (!second) second = VecRestoreArrayRead(tiny_.v[1], &value);
  PetscCall(HybErrorFirst(ierr, second));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the first kind, by the scale and the second step's weight */
static void FirstKind(PetscInt steps, PetscReal scale, PetscReal second, PetscReal c[])
{
  /* alpha^2; the weights are even in alpha */
  const PetscReal alpha = PetscSqrtReal(PetscAbsReal(2 - 2 * scale / second)), mu = 1 / alpha, product = 2 / alpha;
  PetscReal       before = 1, now = mu;

  c[0] = scale;
  c[1] = 1;
  c[2] = 0;
  for (PetscInt k = 1; k < steps; k++) {
    const PetscReal next = 2 * mu * now - before, w = k == 1 ? second / scale : product * now / next;

    c[3 * k]     = k == 1 ? second : w * scale;
    c[3 * k + 1] = w;
    c[3 * k + 2] = 1 - w;
    before       = now;
    now          = next;
  }
}

/* the fourth kind without its optimal weights: d_k+1 = u d_k + v D^-1 r, where d_k is the last change of x */
static void FourthKind(PetscInt steps, PetscReal scale, PetscReal c[])
{
  const PetscReal rho = scale * 3 / 4;

  c[0] = scale;
  c[1] = 1;
  c[2] = 0;
  for (PetscInt k = 1; k < steps; k++) {
    const PetscReal u = (2 * k - (PetscReal)1) / (2 * k + 3);

    c[3 * k]     = rho * (8 * k + 4) / (2 * k + 3);
    c[3 * k + 1] = 1 + u;
    c[3 * k + 2] = -u;
  }
}

/* The first member of the structure of Richardson's method: its scale, of which HybMGSmootherNumbers() makes sure */
PetscReal HybMGFirstNumber(KSP ksp)
{
  const char *type  = ((PetscObject)ksp)->type_name;
  PetscReal   first = 0;

  if (ksp->data && type && !strcmp(type, KSPRICHARDSON)) (void)memcpy(&first, ksp->data, sizeof(first));
  return first;
}

static void Richardson(PetscInt steps, PetscReal scale, PetscReal c[])
{
  for (PetscInt k = 0; k < steps; k++) {
    c[3 * k]     = scale;
    c[3 * k + 1] = 1;
    c[3 * k + 2] = 0;
  }
}

/* what the numbers do to one unknown */
static PetscReal Predicted(PetscReal a, PetscInt steps, const PetscReal c[])
{
  PetscReal last = 0, x = 0;

  for (PetscInt k = 0; k < steps; k++) {
    const PetscReal next = c[3 * k + 2] * last + c[3 * k + 1] * x + c[3 * k] * (1 - a * x);

    last = x;
    x    = next;
  }
  return x;
}

PetscErrorCode HybMGSmootherNumbers(KSP ksp, PetscReal c[], PetscBool *threeterm, PetscBool *known)
{
  const PetscInt steps = ksp->max_it;
  PetscScalar    scale, two = 0, found;
  PetscReal      s, a;
  PetscBool      richardson;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPRICHARDSON, &richardson));
  *known     = (PetscBool)(ksp->nwork <= TINY_WORK);
  *threeterm = (PetscBool)!richardson;
  if (!steps || !*known) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(TinySolve(ksp, 0, 1, &scale));
  s = PetscRealPart(scale);
  if (steps > 1 && !richardson) PetscCall(TinySolve(ksp, 0, 2, &two));
  *known = (PetscBool)(s == s && s != 0 && PetscAbsReal(s) < PETSC_MAX_REAL && PetscImaginaryPart(scale) == 0);
  /* a change of the scale is seen by that alone */
  if (richardson && HybMGFirstNumber(ksp) != s) *known = PETSC_FALSE;
  if (!*known) PetscFunctionReturn(PETSC_SUCCESS);
  a = (PetscReal)0.7 / s;
  PetscCall(TinySolve(ksp, a, steps, &found));
  *known = PETSC_FALSE;
  for (int kind = 0; kind < 2 && !*known; kind++) {
    PetscReal expected;

    if (richardson)
      Richardson(steps, s, c);
    else if (kind == 0)
      FirstKind(steps, s, PetscRealPart(two) / 2, c);
    else
      FourthKind(steps, s, c);
    expected = Predicted(a, steps, c);
    *known   = (PetscBool)(PetscAbsScalar(found - expected) <= 64 * PETSC_MACHINE_EPSILON * (1 + steps) * PetscAbsReal(expected));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
