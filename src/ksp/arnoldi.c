/*
  arnoldi.c: Arnoldi's process of the room krylov with Jacobi, what estimates of eigenvalues begin with, GAMG's and
  those of Chebyshev's smoothers: for a sequential matrix, and for a parallel one whose processes have a device each.
*/
#include <petsc/private/matimpl.h>
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybmat.h"
#include "smoothers.h"

static PetscErrorCode HybArnoldiMult(void *ctx, PetscErrorCode before, const HybScalar *x, HybScalar *y)
{
  return HybMatParMultArrays((Mat)ctx, before, x, y);
}

/* one message more tells how many processes have an error */
static PetscErrorCode HybArnoldiSum(void *ctx, PetscErrorCode before, PetscInt n, HybScalar *v)
{
  HybScalar sums[HYB_KRYLOV_STEPS + 2];

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) sums[k] = v[k];
  sums[n] = before ? 1 : 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, (PetscMPIInt)(n + 1), MPIU_SCALAR, MPIU_SUM, PetscObjectComm((PetscObject)ctx)));
  PetscCall(before);
  PetscCheck(sums[n] == 0.0, PETSC_COMM_SELF, PETSC_ERR_LIB, "The estimate of eigenvalues failed on another process, which says why");
  for (PetscInt k = 0; k < n; k++) v[k] = sums[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The reciprocals of D's diagonal, and, without a vector to begin with, the noise of its rows, which begin with number
   `first` */
static PetscErrorCode HybArnoldiVectors(const HybExec *x, HybArena *work, const HybCSR *D, PetscInt first, Vec b, HybScalar **dinv, HybVecAccess *start)
{
  const HybKrylovOps *ops = x->backend->krylov;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), D->m, sizeof(**dinv), dinv));
  PetscCall((*x->backend->csr->getdiagonal)(x, D, *dinv));
  /* PCJACOBI takes 1 for a zero */
  if (D->m) PetscCall((*ops->reciprocal)(x, work, D->m, *dinv, 1.0, *dinv, NULL));
  if (b) {
    PetscCall(HybVecGet(x, b, PETSC_TRUE, PETSC_FALSE, start));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), D->m, sizeof(HybScalar), &start->there));
  if (D->m) PetscCall((*ops->noise)(x, first, D->m, (HybScalar *)start->there));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybEstimatorArnoldi(const HybExec *x, const HybCSR *A, HybSpMV *mult, Vec b, PetscInt steps, PetscScalar *H, PetscInt *done)
{
  HybArena       work  = HybArenaOn(x);
  HybVecAccess   start = {.v = NULL};
  HybScalar     *dinv  = NULL;
  PetscErrorCode ierr  = HybArnoldiVectors(x, &work, A, 0, b, &dinv, &start);

  PetscFunctionBegin;
  if (!ierr) ierr = HybKrylovArnoldi(mult, &work, A, dinv, (const HybScalar *)start.there, steps, (HybScalar *)H, done);
  ierr = HybVecRestore(ierr, &start);
  (void)HybArenaReset(&work);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybEstimatorArnoldiPar(Mat A, const HybExec *x, Vec b, PetscInt steps, PetscScalar *H, PetscInt *done)
{
  const HybKrylovPar op    = {.mult = HybArnoldiMult, .sum = HybArnoldiSum, .ctx = A};
  HybArena           work  = HybArenaOn(x);
  HybScalar         *dinv  = NULL;
  HybVecAccess       start = {.v = NULL};
  HybParCSR          csr;
  PetscErrorCode     ierr = HybMatGetParCSR(A, x, PETSC_TRUE, &csr);

  PetscFunctionBegin;
  if (!ierr) ierr = HybArnoldiVectors(x, &work, &csr.D, A->rmap->rstart, b, &dinv, &start);
  ierr = HybErrorFirst(ierr, HybMatRestoreParCSR(A, x, &csr));
  ierr = HybKrylovArnoldiPar(x, &work, &op, ierr, A->rmap->n, dinv, (const HybScalar *)start.there, steps, (HybScalar *)H, done);
  (void)HybVecRestore(PETSC_SUCCESS, &start); /* it was read: an error would be this process's alone, as one of work */
  (void)HybArenaReset(&work);
  if (ierr) (void)HybMatParForget(A); /* an error of one is one of all by now */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
