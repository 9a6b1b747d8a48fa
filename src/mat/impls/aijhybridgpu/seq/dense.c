/*
  Products with dense matrices, C = A B and C = A^T B, for sequential A of ours: on the device where the dense matrices
  are (MATSEQDENSECUDA) or where A lives there, like products with vectors. Those on the host are staged. The transposed
  product is one with the explicit transpose that MatMultTranspose() keeps. Everything else (A B^T, P^T A P with dense
  matrices) is the parent's.
*/
#include "seq.h"
#include "../storage/where.h"

static PetscErrorCode HybDenseExec(Mat A, Mat B, PetscCount nnz, HybExec *x)
{
  PetscBool bdevice = PETSC_FALSE;

  PetscFunctionBegin;
#if HYB_HAS_CUDA
  if (!B->boundtocpu) PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQDENSECUDA, &bdevice));
#endif
  PetscCall(HybWhereDense(A, bdevice, nnz, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMultDense(Mat A, const HybExec *x, const HybLent *l, PetscBool transpose, Mat B, Mat C, HybArena *work)
{
  HybCSR            csr = l->csr;
  HybMatDenseAccess b, c;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  if (HybExecOnDevice(x)) {
    HybDeviceTranspose *t = NULL;
    HybView             v;

    PetscCall(HybViewOpen(A, &v));
    v.x = *x;
    PetscCall(HybViewSend(&v, PETSC_TRUE));
    if (transpose) PetscCall(HybViewTranspose(&v, PETSC_FALSE, &t));
    csr = transpose ? t->csr : v.csr;
  } else if (transpose) { /* begun on the device, bound to the CPU since */
    PetscCall(x->backend->csr->transpose(x, work, work, &l->csr, PETSC_FALSE, &csr, NULL));
  }
  PetscCall(HybMatDenseGet(x, B, 0, B->cmap->n, PETSC_FALSE, &b));
  ierr = HybMatDenseGet(x, C, 0, C->cmap->n, PETSC_TRUE, &c);
  if (!ierr) ierr = x->backend->csr->multdense(x, &csr, C->cmap->n, (HybScalar *)b.there, b.ld, (HybScalar *)c.there, c.ld);
  ierr = HybMatDenseRestore(ierr, &c);
  PetscCall(HybMatDenseRestore(ierr, &b));
  if (HybExecOnDevice(x)) PetscCall(MatSeqAIJHybridGPUReadEnd(A, x)); /* with B and C on the card nobody has waited */
  PetscCall(HybLogFlops(x, 2.0 * (PetscLogDouble)csr.nnz * C->cmap->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybDenseNumeric(Mat A, PetscBool transpose, Mat B, Mat C)
{
  HybExec  x;
  HybLent  l;
  HybArena work;

  PetscFunctionBegin;
  PetscCall(HybLentGet(A, PETSC_TRUE, &l));
  PetscCheck(l.csr.a || !l.csr.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY): it cannot be multiplied with a dense one", (PetscInt64)l.csr.nnz);
  PetscCheck((transpose ? l.csr.m : l.csr.n) == B->rmap->n && (transpose ? l.csr.n : l.csr.m) == C->rmap->n && B->cmap->n == C->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A %" PetscInt_FMT " x %" PetscInt_FMT " matrix%s and a dense one of %" PetscInt_FMT " x %" PetscInt_FMT " have no product of %" PetscInt_FMT " x %" PetscInt_FMT, l.csr.m,
             l.csr.n, transpose ? ", transposed," : "", B->rmap->n, B->cmap->n, C->rmap->n, C->cmap->n);
  PetscCall(HybDenseExec(A, B, l.csr.nnz, &x));
  PetscCall(HybEventBegin(HYB_OP_DENSE, A));
  work = HybArenaOn(&x);
  HybCallBoth(HybMultDense(A, &x, &l, transpose, B, C, &work), HybArenaReset(&work));
  PetscCall(HybEventEnd(HYB_OP_DENSE, A));
  PetscCall(HybLentRestore(A, &l));
  if (HybExecOnDevice(&x)) HybGlueState.counts.deviceops++;
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatMultNumeric_SeqAIJHybridGPU_SeqDense(Mat A, Mat B, Mat C)
{
  return HybDenseNumeric(A, PETSC_FALSE, B, C);
}

static PetscErrorCode MatTransposeMatMultNumeric_SeqAIJHybridGPU_SeqDense(Mat A, Mat B, Mat C)
{
  return HybDenseNumeric(A, PETSC_TRUE, B, C);
}

static PetscErrorCode MatProductNumeric_SeqAIJHybridGPU_SeqDense(Mat C)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(HybDenseNumeric(product->A, (PetscBool)(product->type == MATPRODUCT_AtB), product->B, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_SeqAIJHybridGPU_SeqDense(Mat C)
{
  Mat_Product *product = C->product;
  PetscBool    transpose, dense = PETSC_FALSE;
  PetscInt     m, p;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  transpose = (PetscBool)(product->type == MATPRODUCT_AtB);
  m         = transpose ? product->A->cmap->n : product->A->rmap->n;
  p         = product->B->cmap->n;
  PetscCall(MatSetSizes(C, m, p, m, p));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)C, MATSEQDENSE, &dense)); /* the program may have chosen one */
  if (!dense) PetscCall(MatSetType(C, ((PetscObject)product->B)->type_name));
  PetscCall(MatSetUp(C));
  C->ops->productnumeric = MatProductNumeric_SeqAIJHybridGPU_SeqDense;
  if (transpose)
    C->ops->transposematmultnumeric = MatTransposeMatMultNumeric_SeqAIJHybridGPU_SeqDense;
  else
    C->ops->matmultnumeric = MatMatMultNumeric_SeqAIJHybridGPU_SeqDense;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_SeqAIJHybridGPU_SeqDense(Mat C)
{
  Mat_Product *product = C->product;
  Mat          A = product->A, B = product->B;
  char         name[128];
  PetscErrorCode (*f)(Mat) = NULL;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  if ((product->type == MATPRODUCT_AB || product->type == MATPRODUCT_AtB) && MatIsSeqAIJHybridGPU(A) && A->assembled && !A->structure_only) {
    HybLent l;
    HybExec x;

    PetscCall(HybLentGet(A, PETSC_FALSE, &l));
    PetscCall(HybDenseExec(A, B, l.csr.nnz, &x));
    PetscCall(HybLentRestore(A, &l));
    if (HybExecOnDevice(&x)) {
      C->ops->productsymbolic = MatProductSymbolic_SeqAIJHybridGPU_SeqDense;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_seqaij_%s_C", ((PetscObject)B)->type_name));
  PetscCall(PetscObjectQueryFunction((PetscObject)B, name, &f));
  if (f) PetscCall((*f)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On A, by the parent's name: PETSc looks there before it looks at the dense matrix, which knows the parent's
   function */
PetscErrorCode MatSeqAIJHybridGPUComposeDense(Mat A, PetscBool on)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_seqaij_seqdense_C", on ? MatProductSetFromOptions_SeqAIJHybridGPU_SeqDense : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_seqaij_seqdensecuda_C", on ? MatProductSetFromOptions_SeqAIJHybridGPU_SeqDense : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
