/*
  What smoothers ask of matrices of the type: loops over the entries of a vector that PETSc runs on the host alone.
*/
#include "family.h"
#include "storage/where.h"
#include "aijhybridgpu/private/hybkrylov.h"

PetscErrorCode HybMatGetLocal(Mat A, Mat *local)
{
  PetscBool parallel;

  PetscFunctionBegin;
  *local = NULL;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJHYBRIDGPU, &parallel));
  if (parallel && A->assembled)
    PetscCall(MatMPIAIJGetSeqAIJ(A, local, NULL, NULL));
  else if (!parallel)
    *local = A;
  if (*local && !HybMatIsSeq(*local)) *local = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What has its vectors on the host and was never sent is not sent for this: the host may be where the program works */
PetscErrorCode HybMatGetSmootherExec(Mat local, HybExec *x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  *x = HybExecHost;
  PetscCall(MatSeqAIJHybridGPUGetData(local, &hyb));
  if (hyb->hostcopy) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->copy.pattern || HybBorn(hyb))
    PetscCall(HybGlueGetExec(local, &hyb->choices, HYB_ANY_SIZE, x));
  else if (local->defaultvectype && strstr(local->defaultvectype, VECCUDA))
    PetscCall(HybMatGetExec(local, x));
  if (HybExecOnDevice(x) && !x->backend->krylov) *x = HybExecHost;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A reciprocal may be 0 where the entry is not: of an infinite one, or of a complex one whose square overflows. Those
   of zeros are made 0: the reciprocals alone are counted. */
static PetscErrorCode HybDiagonalZerosIn(const HybExec *x, HybArena *work, const HybCSR *csr, PetscCount *zeros)
{
  HybScalar *d;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(x), csr->m, sizeof(HybScalar), &d));
  PetscCall(x->backend->csr->getdiagonal(x, csr, d));
  PetscCall(x->backend->krylov->reciprocal(x, work, csr->m, d, 0, d, NULL));
  PetscCall(x->backend->krylov->reciprocal(x, work, csr->m, d, 0, NULL, zeros));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatDiagonalZeros(Mat A, PetscBool *known, PetscCount *zeros)
{
  Mat            local;
  HybExec        x;
  HybCSR         csr;
  HybArena       work;
  PetscBool      ascends;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *known = PETSC_FALSE;
  *zeros = 0;
  PetscCall(HybMatGetLocal(A, &local));
  /* a program may have put another way to the diagonal into the matrix */
  if (!local || local->ops->getdiagonal != HybGlueState.own.getdiagonal || (local != A && A->ops->getdiagonal != HybGlueState.mpi.getdiagonal) || local->rmap->n != local->cmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatGetSmootherExec(local, &x));
  if (!HybExecOnDevice(&x)) PetscFunctionReturn(PETSC_SUCCESS);
  /* of a row that has its diagonal twice the device may see the other one; MatGetDiagonal() will ask the same */
  PetscCall(HybMatAscends(local, &x, &ascends));
  if (!ascends) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEventBegin(HYB_OP_ZEROS, A));
  PetscCall(HybMatGetCSR(local, &x, PETSC_TRUE, &csr));
  work = HybArenaOn(&x);
  ierr = HybDiagonalZerosIn(&x, &work, &csr, zeros);
  (void)HybArenaReset(&work);
  PetscCall(HybMatRestoreCSR(local, &x, &csr));
  PetscCall(ierr);
  PetscCall(HybEventEnd(HYB_OP_ZEROS, A));
  *known = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatNoise(Mat A, Vec v)
{
  Mat          local;
  HybExec      x = HybExecHost;
  HybVecAccess d;
  PetscInt     first, end;

  PetscFunctionBegin;
  PetscCall(HybMatGetLocal(A, &local));
  if (local) PetscCall(HybMatGetSmootherExec(local, &x));
  PetscCall(VecGetOwnershipRange(v, &first, &end));
  PetscCall(HybEventBegin(HYB_OP_NOISE, A));
  PetscCall(HybVecGet(&x, v, PETSC_FALSE, PETSC_TRUE, &d));
  PetscCall(HybVecRestore(x.backend->krylov->noise(&x, first, end - first, (HybScalar *)d.there), &d));
  PetscCall(HybEventEnd(HYB_OP_NOISE, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
