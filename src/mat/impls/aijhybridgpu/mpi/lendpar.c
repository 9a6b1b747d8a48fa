/*
  What glue outside of src/mat asks of parallel matrices of the type: their blocks' arrays where an operation runs, and
  matrices made of results.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

PetscErrorCode HybMatIsPar(Mat A, PetscBool *flg)
{
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  *flg = (PetscBool)(MatIsMPIAIJHybridGPU(A) && A->assembled);
  if (!*flg) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  *flg = (PetscBool)(block[0] && block[1] && MatIsSeqAIJHybridGPU(block[0]) && MatIsSeqAIJHybridGPU(block[1]));
  if (*flg) PetscCall(PetscSortedInt(block[1]->cmap->n, garray, flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetParExec(Mat A, HybExec *x)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  Mat                  block[2];
  HybExec              can    = HybExecHost, want;
  PetscBool            device = PETSC_FALSE;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  ierr = MatMPIAIJHybridGPUGetData(A, &hyb);
  if (!ierr) ierr = MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL);
  if (!ierr) ierr = MatSeqAIJHybridGPUDeriveExec(block[0], &want, &device);
  if (!ierr) ierr = HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, &can);
  PetscCall(HybWhereTogether(PetscObjectComm((PetscObject)A), ierr, "Using a part of a parallel matrix", &can, device, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetParCSR(Mat A, const HybExec *x, PetscBool values, HybParCSR *csr)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(PetscMemzero(csr, sizeof(*csr)));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &csr->garray));
  csr->rows    = A->rmap->range;
  csr->columns = A->cmap->range;
  PetscCall(HybMatGetCSR(block[0], x, values, &csr->D));
  PetscCall(HybMatGetCSR(block[1], x, values, &csr->O));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatRestoreParCSR(Mat A, const HybExec *x, HybParCSR *csr)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  if (csr->D.i) PetscCall(HybMatRestoreCSR(block[0], x, &csr->D));
  if (csr->O.i) PetscCall(HybMatRestoreCSR(block[1], x, &csr->O));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatAscendsPar(Mat A, const HybExec *x, PetscBool *yes)
{
  Mat       block[2];
  PetscBool D, O = PETSC_FALSE;

  PetscFunctionBegin;
  *yes = PETSC_FALSE;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(HybMatAscends(block[0], x, &D));
  if (D) PetscCall(HybMatAscends(block[1], x, &O));
  *yes = O;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All ranges are known: nobody is asked. Collective, for a PETSc that debugs. After an error there is the former
   one. */
static PetscErrorCode HybParLayout(MPI_Comm comm, const PetscInt *ranges, PetscInt bs, PetscLayout *map)
{
  PetscLayout made = NULL;

  PetscFunctionBegin;
  PetscCall(PetscLayoutCreateFromRanges(comm, ranges, PETSC_COPY_VALUES, bs, &made));
  PetscCall(PetscLayoutDestroy(map));
  *map = made;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParLayoutAs(PetscLayout like, PetscLayout *map)
{
  PetscFunctionBegin;
  if (!(*map)->range) PetscCall(HybParLayout((*map)->comm, like->range, (*map)->bs, map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective, once all have their layouts */
static PetscErrorCode HybParType(Mat A, PetscErrorCode before, Mat C)
{
  Mat_MPIAIJHybridGPU *a = NULL, *c = NULL;

  PetscFunctionBegin;
  /* also after an error: it takes PETSc's tags, of which all must have taken as many */
  PetscCall(MatSetType(C, MATMPIAIJHYBRIDGPU));
  PetscCall(before);
  PetscCall(MatMPIAIJHybridGPUGetData(A, &a));
  PetscCall(MatMPIAIJHybridGPUGetData(C, &c));
  c->choices = a->choices;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParCreate(Mat A, const HybExec *x, PetscErrorCode before, HybArena out[2], const HybParCSR *csr, PetscInt rbs, PetscInt cbs, Mat C)
{
  PetscErrorCode ierr = before;
  PetscBool      made;

  PetscFunctionBegin;
  /* after an error too: the others are on their way to agree */
  ierr = HybErrorFirst(ierr, HybParLayout(PetscObjectComm((PetscObject)C), A->rmap->range, rbs, &C->rmap));
  ierr = HybErrorFirst(ierr, HybParLayout(PetscObjectComm((PetscObject)C), csr->columns, cbs, &C->cmap));
  ierr = MatMPIAIJHybridGPUSetFrame(C, HybParType(A, ierr, C), csr->O.n, csr->garray, &made);
  if (!made) PetscFunctionReturn(ierr);
  if (!ierr) ierr = MatMPIAIJHybridGPUAdoptBlocks(C, x, out, csr);
  C->preallocated = C->assembled = PETSC_TRUE;
  C->num_ass                     = 1;
  PetscCall(PetscObjectStateIncrease((PetscObject)C));
  if (!ierr) ierr = MatMPIAIJHybridGPUSetBlocks(C);
  PetscCall(MatMPIAIJHybridGPUSumStates(C, ierr, "A part of a parallel matrix"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatCreateFromParCSR(Mat A, const HybExec *x, PetscErrorCode before, HybArena out[2], const HybParCSR *csr, PetscInt rbs, PetscInt cbs, Mat *C)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), C));
  ierr = HybParCreate(A, x, before, out, csr, rbs, cbs, *C);
  if (ierr) (void)MatDestroy(C);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
