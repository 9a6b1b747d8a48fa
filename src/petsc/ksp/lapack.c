/*
  The LAPACK that PETSc uses, called as PETSc calls it: dsteqr, dgeev, dgeqrf and dorgqr, or their like of other
  numbers. The plugin links no LAPACK. libpetsc does, so its functions are found by name in the running process.
*/
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "../../ksp/pc/impls/gamg/gamgimpl.h"
#include "../../ksp/smoothers.h"
#include "aijhybridgpu/private/hybkrylov.h"
#include <petscblaslapack.h>
#include <dlfcn.h>

#define NAME_(x) #x
#define NAME(x)  NAME_(x)

typedef PetscBLASInt Int;

/* of one process, and the same for all of its solvers */
static struct {
  PetscBool looked;
  void (*steqr)(const char *, const Int *, PetscReal *, PetscReal *, PetscScalar *, const Int *, PetscReal *, Int *);
#if PetscDefined(USE_COMPLEX)
  void (*geev)(const char *, const char *, const Int *, PetscScalar *, const Int *, PetscScalar *, PetscScalar *, const Int *, PetscScalar *, const Int *, PetscScalar *, const Int *, PetscReal *, Int *);
#else
  void (*geev)(const char *, const char *, const Int *, PetscScalar *, const Int *, PetscScalar *, PetscScalar *, PetscScalar *, const Int *, PetscScalar *, const Int *, PetscScalar *, const Int *, Int *);
#endif
  void (*geqrf)(const Int *, const Int *, PetscScalar *, const Int *, PetscScalar *, PetscScalar *, const Int *, Int *);
  void (*orgqr)(const Int *, const Int *, const Int *, PetscScalar *, const Int *, const PetscScalar *, PetscScalar *, const Int *, Int *);
} lapack_;

static void LapackLook(void)
{
  if (!lapack_.looked) {
    *(void **)&lapack_.steqr = dlsym(RTLD_DEFAULT, NAME(LAPACKsteqr_));
    *(void **)&lapack_.geev  = dlsym(RTLD_DEFAULT, NAME(LAPACKgeev_));
    *(void **)&lapack_.geqrf = dlsym(RTLD_DEFAULT, NAME(LAPACKgeqrf_));
    *(void **)&lapack_.orgqr = dlsym(RTLD_DEFAULT, NAME(LAPACKorgqr_));
    lapack_.looked           = PETSC_TRUE;
  }
}

/* each is asked for alone: a LAPACK that is linked statically has no more than what libpetsc calls */
PetscBool HybLapackHasTridiagonal(void)
{
  LapackLook();
  return (PetscBool) !!lapack_.steqr;
}

PetscBool HybLapackHasHessenberg(void)
{
  LapackLook();
  return (PetscBool) !!lapack_.geev;
}

PetscErrorCode HybLapackTridiagonal(PetscInt n, PetscReal d[], PetscReal e[])
{
  PetscBLASInt N, one = 1, info = 0;

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscBLASIntCast(n, &N));
  PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_OFF));
  (*lapack_.steqr)("N", &N, d, e, NULL, &one, NULL, &info);
  PetscCall(PetscFPTrapPop());
  PetscCheck(!info, PETSC_COMM_SELF, PETSC_ERR_LIB, "LAPACK's eigenvalues of a tridiagonal matrix of %" PetscInt_FMT " rows: %" PetscBLASInt_FMT " did not converge", n, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybLapackHessenberg(PetscInt n, const PetscScalar H[], PetscReal r[], PetscReal c[])
{
  PetscBLASInt bn = (PetscBLASInt)n, lwork = 5 * (HYB_KRYLOV_STEPS + 1), one = 1, info = 0;
  PetscScalar  square[HYB_KRYLOV_STEPS * HYB_KRYLOV_STEPS], work[5 * (HYB_KRYLOV_STEPS + 1)], none = 0;
#if PetscDefined(USE_COMPLEX)
  PetscScalar found[HYB_KRYLOV_STEPS];
  PetscReal   rwork[2 * HYB_KRYLOV_STEPS];
#endif

  PetscFunctionBegin;
  for (PetscInt q = 0; q < n; q++)
    for (PetscInt k = 0; k < n; k++) square[q * n + k] = H[q * (n + 1) + k];
  PetscCall(PetscFPTrapPush(PETSC_FP_TRAP_OFF));
#if PetscDefined(USE_COMPLEX)
  (*lapack_.geev)("N", "N", &bn, square, &bn, found, &none, &one, &none, &one, work, &lwork, rwork, &info);
  for (PetscInt k = 0; k < n; k++) {
    r[k] = PetscRealPart(found[k]);
    c[k] = PetscImaginaryPart(found[k]);
  }
#else
  (*lapack_.geev)("N", "N", &bn, square, &bn, r, c, &none, &one, &none, &one, work, &lwork, &info);
#endif
  PetscCall(PetscFPTrapPop());
  PetscCheck(!info, PETSC_COMM_SELF, PETSC_ERR_LIB, "LAPACK's eigenvalues of a Hessenberg matrix of %" PetscInt_FMT " rows: geev returned %" PetscBLASInt_FMT, n, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if HYB_GAMG
/* The QR factorization of an aggregate's near-null vectors. On the host all aggregates are factored by it, from a
   device those in which rounding decides a sign or a vector, so that it is the same rounding as PETSc's. */
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
  (*lapack_.geqrf)(&M, &N, B, &M, tau, work, &nwork, &info);
  for (PetscInt c = 0; c < n && !info; c++)
    for (PetscInt k = 0; k < n; k++) R[c * n + k] = k <= c ? PetscRealPart(B[(size_t)c * m + k]) : 0;
  if (!info) (*lapack_.orgqr)(&M, &N, &N, B, &M, tau, work, &nwork, &info);
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
  LapackLook();
  return lapack_.geqrf && lapack_.orgqr ? HybGAMGFactor : NULL;
}
#endif
