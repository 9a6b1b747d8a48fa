/*
  Host-born matrices that the program writes by operations (MatScale(), MatShift(), MatDiagonalScale(), ...) instead of
  entry by entry.

  The first such operation is done twice, on the host's arrays and on the device's copy, where both round alike: then
  nothing is sent again. The second one in a row, no host write between them, promotes the matrix: its values move to
  managed memory, which AIJ's pointer to them names from then on (frame.c), and the device alone does the work. The
  pattern stays where it is, on both sides. Where one core would take longer to do it on the host than the values take
  over the bus, as in MatScale() of millions, the first one promotes a matrix that the host has not written since the
  device got it, and whose values never returned: there is then nothing to bring back. A program whose host writes
  between such operations, step by step, is not moved to and fro.

  AIJ's own array of values is put aside. When the program returns to the host's way (MatSetValues(), MatZeroRows(), a
  new preallocation) the values go back there (MatSeqAIJHybridGPUDemote()), and it is as if the matrix had never moved.
  Arrays that the program lent to PETSc (MatCreateSeqAIJWithArrays()) are never left: the program may write them. Nor
  are values that somebody holds, or that PETSc's solver server reads.

  Neither way is seen from outside: PetscObjectState and nonzerostate stand.
*/
#include "storage.h"

/* shall A move now? first: by the first operation already */
PetscErrorCode MatSeqAIJHybridGPUPromotionDue(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, PetscBool first, PetscBool *due)
{
  PetscObjectState state;
  HybMemoryReport  r;
  size_t           bytes;

  PetscFunctionBegin;
  *due = PETSC_FALSE;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (!HybMarkCurrent(&hyb->written, state)) hyb->writes = 0;
  if ((!hyb->writes && !first) || HybGlueState.options.promotenever || HybStorageServed() || x->result != HYB_MEM_MANAGED) PetscFunctionReturn(PETSC_SUCCESS);
  if ((hyb->lives != HYB_LIVES_COPIED && hyb->lives != HYB_LIVES_LOCKED) || hyb->arrays.blocks || HybStorageHeld(hyb) || !HybStorageIsOwn(A, hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  bytes = (size_t)hyb->copy.csr.nnz * sizeof(HybScalar);
  PetscCall(x->backend->usage(&r, PETSC_FALSE));
  *due = (PetscBool)(r.managed_bytes <= r.managed_share && bytes <= r.managed_share - r.managed_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values in managed memory; PETSC_ERR_MEM where there is no more of it */
static PetscErrorCode HybPromotedValues(const HybExec *x, const HybCSR *csr, HybArena *arrays, HybScalar **to)
{
  HybMem mem;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_MANAGED, csr->nnz, sizeof(HybScalar), to));
  PetscCall(HybArenaMemory(arrays, *to, &mem));
  if (mem != HYB_MEM_MANAGED) PetscFunctionReturn(PETSC_ERR_MEM);
  PetscCall(x->backend->copy(x, *to, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(x->backend->sync(x)); /* the host may look at any time */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUPromote(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, PetscBool *done)
{
  HybCSR         csr;
  HybScalar     *to = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUDemote(A)); /* from page-locked memory, if the values are there */
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  if (hyb->lives != HYB_LIVES_COPIED) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->moved = HybArenaOn(x);
  /* without the room the matrix stays where it is: that is no error */
  ierr = HYB_QUIETLY(HybPromotedValues(x, &csr, &hyb->moved, &to));
  if (ierr) {
    PetscCall(HybArenaReset(&hyb->moved));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaFree(&hyb->copy.arena, &hyb->copy.csr.a));
  hyb->copy.csr.a = to;
  PetscCall(HybStorageMoveValues(A, hyb, HYB_LIVES_PROMOTED, csr.nnz, to));
  MatSeqAIJHybridGPUSetBornOps(A, PETSC_TRUE);
  PetscCall(PetscInfo(A, "Written on the device without a host write: the values, %" PetscInt64_FMT " nonzeros, move to managed memory (-mat_aijhybridgpu_promote never keeps them on the host)\n", (PetscInt64)csr.nnz));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
