/*
  Rows of equal pattern (inodes). AIJ relaxes, orders and colors them together, and looks for them at each assembly. The
  search reads all of j on the host, so it is left out where the device makes a matrix, until somebody goes by them:

    MatSOR()
    MatGetRowIJ(), MatGetColumnIJ()   for one row of each node: orderings and colorings
    a conversion to the parent's type

  After the search the operations that AIJ chooses by what it has found are AIJ's.
*/
#include "storage.h"

typedef PetscErrorCode (*HybGetIJ)(Mat, PetscInt, PetscBool, PetscBool, PetscInt *, const PetscInt *[], const PetscInt *[], PetscBool *);

PetscErrorCode HybInodesFind(Mat A)
{
  static const char *const options[] = {"-mat_no_inode", "-mat_no_unroll"};
  Mat_SeqAIJHybridGPU     *hyb       = (Mat_SeqAIJHybridGPU *)A->spptr;
  PetscBool                no        = PETSC_FALSE;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !hyb->inodesleft) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->inodesleft = PETSC_FALSE;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options) && !no; k++) {
    PetscBool set;

    PetscCall(PetscOptionsGetBool(((PetscObject)A)->options, ((PetscObject)A)->prefix, options[k], &no, &set));
  }
  if (no) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUMove(A, PETSC_FALSE, PETSC_FALSE));
  PetscCall((*HybGlueState.seq.setoption)(A, MAT_USE_INODES, PETSC_TRUE));
  PetscCall((*HybGlueState.seq.assemblyend)(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSeqAIJHybridGPUMove(A, PETSC_FALSE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who asks for the number alone (a natural ordering) numbers rows, which need no search */
static PetscErrorCode MatGetRowIJ_SeqAIJHybridGPU(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n, const PetscInt *ia[], const PetscInt *ja[], PetscBool *done)
{
  HybGetIJ get;

  PetscFunctionBegin;
  if (compressed && ia) PetscCall(HybInodesFind(A));
  get = A->ops->getrowij != MatGetRowIJ_SeqAIJHybridGPU ? A->ops->getrowij : HybGlueState.seq.getrowij;
  PetscCall((*get)(A, shift, symmetric, compressed, n, ia, ja, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetColumnIJ_SeqAIJHybridGPU(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n, const PetscInt *ia[], const PetscInt *ja[], PetscBool *done)
{
  HybGetIJ get;

  PetscFunctionBegin;
  if (compressed && ia) PetscCall(HybInodesFind(A));
  get = A->ops->getcolumnij != MatGetColumnIJ_SeqAIJHybridGPU ? A->ops->getcolumnij : HybGlueState.seq.getcolumnij;
  PetscCall((*get)(A, shift, symmetric, compressed, n, ia, ja, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's data were made without the search */
PetscErrorCode HybInodesLeave(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->inodesleft     = PETSC_TRUE;
  A->ops->getrowij    = MatGetRowIJ_SeqAIJHybridGPU;
  A->ops->getcolumnij = MatGetColumnIJ_SeqAIJHybridGPU;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Eisenstat variant of the parent's does not give back what it reads */
static PetscErrorCode MatSOR_SeqAIJHybridGPU(Mat A, Vec b, PetscReal omega, MatSORType flag, PetscReal shift, PetscInt its, PetscInt lits, Vec x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, sor, A, b, omega, flag, shift, its, lits, x);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybInodesFind(A));
  {
    const int            readers = hyb->readers;
    const PetscErrorCode ierr    = (*HybGlueState.seq.sor)(A, b, omega, flag, shift, its, lits, x);

    hyb->readers = readers;
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Off: a matrix without ours has no search to make up for */
PetscErrorCode HybInodesSetOps(Mat A, PetscBool on)
{
  struct _MatOps *ops = A->ops, *p = &HybGlueState.seq;

  PetscFunctionBegin;
  ops->sor = on ? MatSOR_SeqAIJHybridGPU : p->sor;
  if (ops->getrowij == MatGetRowIJ_SeqAIJHybridGPU) ops->getrowij = p->getrowij;
  if (ops->getcolumnij == MatGetColumnIJ_SeqAIJHybridGPU) ops->getcolumnij = p->getcolumnij;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybNoInodeBegin(PetscOptions *noinode)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(noinode));
  PetscCall(PetscOptionsSetValue(*noinode, "-mat_no_inode", NULL));
  PetscCall(PetscOptionsPush(*noinode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybNoInodeEnd(PetscOptions *noinode)
{
  (void)PetscOptionsPop();
  (void)PetscOptionsDestroy(noinode);
}
