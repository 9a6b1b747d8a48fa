/*
  The eigenvalues of a symmetric tridiagonal matrix by the LAPACK that PETSc uses: dsteqr or its like of other numbers.

  The plugin links no LAPACK. libpetsc does, so its function is found by name in the running process.
*/
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "../../ksp/ksp/impls/cg/cgimpl.h"
#include <petscblaslapack.h>
#include <dlfcn.h>

#define NAME_(x) #x
#define NAME(x)  NAME_(x)

typedef void (*HybSteqr)(const char *, const PetscBLASInt *, PetscReal *, PetscReal *, PetscScalar *, const PetscBLASInt *, PetscReal *, PetscBLASInt *);

static HybSteqr Steqr(void)
{
  static HybSteqr steqr;

  if (!steqr) steqr = (HybSteqr)dlsym(RTLD_DEFAULT, NAME(LAPACKsteqr_));
  return steqr;
}

PetscBool HybTridiagonalMay(void)
{
  return (PetscBool)(Steqr() != NULL);
}

PetscErrorCode HybTridiagonalEigenvalues(PetscInt n, PetscReal d[], PetscReal e[])
{
  PetscBLASInt N, one = 1, info = 0;

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscBLASIntCast(n, &N));
  PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_OFF));
  (*Steqr())("N", &N, d, e, NULL, &one, NULL, &info);
  PetscCall(PetscFPTrapPop());
  PetscCheck(!info, PETSC_COMM_SELF, PETSC_ERR_LIB, "LAPACK's eigenvalues of a tridiagonal matrix of %" PetscInt_FMT " rows: %" PetscBLASInt_FMT " did not converge", n, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}
