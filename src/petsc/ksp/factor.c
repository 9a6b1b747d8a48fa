/*
  The QR factorization of an aggregate's near-null vectors by the LAPACK that PETSc uses: dgeqrf and dorgqr, or their
  like of other numbers, called as PETSc calls them. On the host all aggregates are factored by it, from a device those
  in which rounding decides a sign or a vector, so that it is the same rounding as PETSc's.

  The plugin links no LAPACK. libpetsc does, so its functions are found by name in the running process.
*/
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "../../ksp/pc/impls/gamg/gamgimpl.h"

#if HYB_GAMG
  #include <petscblaslapack.h>
  #include <dlfcn.h>

  #define NAME_(x) #x
  #define NAME(x)  NAME_(x)

typedef void (*HybGeqrf)(const PetscBLASInt *, const PetscBLASInt *, PetscScalar *, const PetscBLASInt *, PetscScalar *, PetscScalar *, const PetscBLASInt *, PetscBLASInt *);
typedef void (*HybOrgqr)(const PetscBLASInt *, const PetscBLASInt *, const PetscBLASInt *, PetscScalar *, const PetscBLASInt *, const PetscScalar *, PetscScalar *, const PetscBLASInt *, PetscBLASInt *);

static struct {
  PetscBool looked;
  HybGeqrf  geqrf;
  HybOrgqr  orgqr;
} Lapack;

static PetscErrorCode HybGAMGFactorAligned(PetscInt bs, PetscInt m, PetscInt n, PetscScalar *B, PetscReal *R)
{
  PetscBLASInt M, N, nwork, info = 0;
  PetscScalar  tau[HYB_AGG_VECTORS], *work;

  PetscFunctionBegin;
  PetscCall(PetscBLASIntCast(m, &M));
  PetscCall(PetscBLASIntCast(n, &N));
  PetscCall(PetscBLASIntCast(n * bs, &nwork)); /* PETSc's choice */
  PetscCall(PetscMalloc1(nwork, &work));
  PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_OFF));
  (*Lapack.geqrf)(&M, &N, B, &M, tau, work, &nwork, &info);
  for (PetscInt c = 0; c < n && !info; c++)
    for (PetscInt k = 0; k < n; k++) R[c * n + k] = k <= c ? PetscRealPart(B[(size_t)c * m + k]) : 0;
  if (!info) (*Lapack.orgqr)(&M, &N, &N, B, &M, tau, work, &nwork, &info);
  PetscCall(PetscFPTrapPop());
  PetscCall(PetscFree(work));
  PetscCheck(!info, PETSC_COMM_SELF, PETSC_ERR_LIB, "LAPACK's QR factorization of the near-null vectors of an aggregate, %" PetscInt_FMT " x %" PetscInt_FMT ", returned %" PetscBLASInt_FMT, m, n, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of several aggregates come one behind the other. LAPACK's rounding may go by where one begins: OpenBLAS's is
   another at odd multiples of 8 bytes. PETSc's blocks begin as all of its memory does. Of complex numbers it factors
   real ones as complex ones. */
static PetscErrorCode HybGAMGFactor(void *ctx, PetscInt m, PetscInt n, PetscReal *B, PetscReal *R)
{
  const size_t   size = (size_t)m * n;
  PetscScalar   *copy = (PetscScalar *)(void *)B;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (PetscDefined(USE_COMPLEX) || (uintptr_t)B % PETSC_MEMALIGN) {
    PetscCall(PetscMalloc1(size, &copy));
    for (size_t k = 0; k < size; k++) copy[k] = B[k];
  }
  ierr = HybGAMGFactorAligned(*(PetscInt *)ctx, m, n, copy, R);
  if ((void *)copy != (void *)B) {
    for (size_t k = 0; k < size && !ierr; k++) B[k] = PetscRealPart(copy[k]);
    PetscCall(PetscFree(copy));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

HybAggFactor HybGAMGGetFactor(void)
{
  if (!Lapack.looked) {
    Lapack.geqrf  = (HybGeqrf)dlsym(RTLD_DEFAULT, NAME(LAPACKgeqrf_));
    Lapack.orgqr  = (HybOrgqr)dlsym(RTLD_DEFAULT, NAME(LAPACKorgqr_));
    Lapack.looked = PETSC_TRUE;
  }
  return Lapack.geqrf && Lapack.orgqr ? HybGAMGFactor : NULL;
}
#endif
