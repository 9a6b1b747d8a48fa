/*
  arnoldi.c: Arnoldi's process of the room krylov for a parallel matrix of the type, whose processes have a device each:
  what estimates of eigenvalues begin with, GAMG's and those of Chebyshev's smoothers.
*/
#include <petsc/private/matimpl.h>
#include "aijhybridgpu/private/hybkrylov.h"
#include "aijhybridgpu/private/hybmat.h"
#include "smoothers.h"

static PetscErrorCode HybArnoldiMult(void *ctx, PetscErrorCode before, const HybScalar *x, HybScalar *y)
{
  PetscFunctionBegin;
  PetscCall(HybMatParMultArrays((Mat)ctx, before, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
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

/* the reciprocals of the diagonal, and, without a vector to begin with, the noise */
static PetscErrorCode HybArnoldiVectors(Mat A, const HybExec *x, HybArena *work, Vec b, HybScalar **dinv, HybVecAccess *start)
{
  const HybKrylovOps *ops = x->backend->krylov;
  HybParCSR           csr;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), A->rmap->n, sizeof(**dinv), dinv));
  ierr = HybMatGetParCSR(A, x, PETSC_TRUE, &csr);
  if (!ierr) ierr = (*x->backend->csr->getdiagonal)(x, &csr.D, *dinv);
  PetscCall(HybErrorFirst(ierr, HybMatRestoreParCSR(A, x, &csr)));
  /* PCJACOBI takes 1 for a zero */
  if (A->rmap->n) PetscCall((*ops->reciprocal)(x, work, A->rmap->n, *dinv, 1.0, *dinv, NULL));
  if (b) {
    PetscCall(HybVecGet(x, b, PETSC_TRUE, PETSC_FALSE, start));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), A->rmap->n, sizeof(HybScalar), &start->there));
  if (A->rmap->n) PetscCall((*ops->noise)(x, A->rmap->rstart, A->rmap->n, (HybScalar *)start->there));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybEstimatorArnoldi(Mat A, const HybExec *x, HybArena *work, Vec b, PetscInt steps, PetscScalar *H, PetscInt *done)
{
  const HybKrylovPar op    = {.mult = HybArnoldiMult, .sum = HybArnoldiSum, .ctx = A};
  HybScalar         *dinv  = NULL;
  HybVecAccess       start = {.v = NULL};
  PetscErrorCode     ierr  = HybArnoldiVectors(A, x, work, b, &dinv, &start);

  PetscFunctionBegin;
  ierr = HybKrylovArnoldiPar(x, work, &op, ierr, A->rmap->n, dinv, (const HybScalar *)start.there, steps, (HybScalar *)H, done);
  (void)HybVecRestore(PETSC_SUCCESS, &start); /* it was read: an error would be this process's alone */
  if (ierr) (void)HybMatParForget(A);         /* an error of one is one of all by now */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
