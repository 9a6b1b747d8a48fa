/*
  moduli.c: are the moduli of complex numbers that a backend computes those of the host's C library, to the last bit?

  A graph without weak edges is PETSc's where they are. C libraries may round otherwise than modulus.h: older ones of
  GNU, others, or those whose processor has a fused product and addition. So it is tried, by numbers of all magnitudes,
  far from each other and near, equal ones, small integers, zeros, denormal ones, infinities, and what is no number.
*/
#include "agghost.h"
#include <math.h>

PetscErrorCode HybAggModuli_Host(const HybExec *exec, PetscCount n, const HybScalar *v, PetscReal *modulus)
{
  PetscFunctionBegin;
  for (PetscCount k = 0; k < n; k++) modulus[k] = PetscAbsScalar(v[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_USE_COMPLEX)
  #define MODULI 16384

/* Marsaglia's xorshift */
static PetscInt64 HybModuliNext(unsigned long long *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (PetscInt64)(*state >> 11);
}

static PetscReal HybModuliNumber(unsigned long long *state)
{
  static const PetscReal odd[]    = {0, -0.0, 1, 3, 4, PETSC_MAX_REAL, PETSC_MIN_REAL, HUGE_VAL, NAN};
  const PetscInt64       bits     = HybModuliNext(state);
  const PetscReal        fraction = 1 + (PetscReal)bits / (PetscReal)(1LL << 53);
  const int              exponent = (int)(HybModuliNext(state) % 4096), all = sizeof(PetscReal) == sizeof(float) ? 128 : 1024;

  switch (HybModuliNext(state) % 8) {
  case 0: return odd[bits % (PetscInt64)PETSC_STATIC_ARRAY_LENGTH(odd)];
  case 1: return (PetscReal)(bits % 1000);
  case 2: return fraction;
  case 3: return -(PetscReal)ldexp((double)fraction, exponent % 120 - 60);
  case 4: return (PetscReal)ldexp((double)fraction, all / 2 + exponent % (all / 2));
  case 5: return (PetscReal)ldexp((double)fraction, -all / 2 - exponent % (all / 2 + 53));
  default: return (PetscReal)ldexp((double)fraction, exponent % 40 - 20);
  }
}

/* other, or a number that makes a near tie with it, or hardly adds to it */
static PetscReal HybModuliPartner(unsigned long long *state, PetscReal other)
{
  const PetscInt64 bits = HybModuliNext(state);

  switch (bits % 6) {
  case 0: return other;
  case 1: return other * (1 + PETSC_MACHINE_EPSILON);
  case 2: return other / 2 * (1 + (PetscReal)(bits / 6 % 9 - 4) * PETSC_MACHINE_EPSILON);
  case 3: return other * (PetscReal)ldexp(1 + 0.3 * (double)(bits / 6 % 4), -(int)(bits / 24 % 60));
  default: return HybModuliNumber(state);
  }
}

static PetscErrorCode HybModuliTry(const HybExec *exec, HybArena *work, PetscBool *alike)
{
  unsigned long long state = 88172645463325252ULL;
  HybScalar         *there, *v;
  PetscReal         *result, *modulus;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, MODULI, sizeof(*v), &v));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, MODULI, sizeof(*modulus), &modulus));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), MODULI, sizeof(*there), &there));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), MODULI, sizeof(*result), &result));
  for (PetscInt k = 0; k < MODULI; k++) {
    const PetscReal x = HybModuliNumber(&state), y = HybModuliPartner(&state, x);

    v[k] = k % 2 ? PetscCMPLX(x, y) : PetscCMPLX(y, x);
  }
  PetscCall(exec->backend->copy(exec, there, v, MODULI * sizeof(*v), HYB_COPY_HOST_TO_DEVICE));
  PetscCall((*exec->backend->agg->moduli)(exec, MODULI, there, result));
  PetscCall(exec->backend->copy(exec, modulus, result, MODULI * sizeof(*modulus), HYB_COPY_DEVICE_TO_HOST));
  for (PetscInt k = 0; k < MODULI; k++) {
    const PetscReal host = PetscAbsScalar(v[k]);

    if (host != modulus[k] && (host == host || modulus[k] == modulus[k])) *alike = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybAggModuliAlike(const HybExec *exec, PetscBool *alike)
{
  HybArena work;

  PetscFunctionBegin;
  *alike = (PetscBool)(!exec->backend->device || HybTuningGet()->device_moduli);
  if (!exec->backend->device || !*alike) PetscFunctionReturn(PETSC_SUCCESS);
  work = HybArenaOn(exec);
  HybCallBoth(HybModuliTry(exec, &work, alike), HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode HybAggModuliAlike(const HybExec *exec, PetscBool *alike)
{
  PetscFunctionBegin;
  *alike = PETSC_TRUE; /* of real numbers nothing is rounded */
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
