/*
  Factorizations by cuSPARSE where the program asks for them (-pc_factor_mat_solver_type cusparse): those of
  aijcusparse, given a matrix of that type that is made from ours before the symbolic phase and gets our values before
  each numeric one. By default, and in a PETSc without CUDA, factorizations are PETSc's host ones. These refuse dense
  matrices that live on the device as right-hand sides, which KSPMatSolve() makes where vectors do: such ones are solved
  for through their host copies (not where the program asks for MATSOLVERPETSC by name: there PETSc takes the parent's
  entry, whose name ours begins with).
*/
#include "seq.h"

#if HYB_HAS_CUDA

typedef PetscErrorCode (*HybSymbolicLU)(Mat, Mat, IS, IS, const MatFactorInfo *);
typedef PetscErrorCode (*HybSymbolicCholesky)(Mat, Mat, IS, const MatFactorInfo *);
typedef PetscErrorCode (*HybNumeric)(Mat, Mat, const MatFactorInfo *);

typedef PetscErrorCode (*HybMatSolve)(Mat, Mat, Mat);

/* What goes with a factor: its own operations, and the matrix that they are given */
typedef struct {
  PetscBool           host; /* PETSc's own: given our matrix as it is */
  Mat                 A;
  PetscObjectId       id;
  PetscObjectState    nonzerostate;
  HybSymbolicLU       lu, ilu;
  HybSymbolicCholesky cholesky, icc;
  HybNumeric          lunumeric, choleskynumeric;
  HybMatSolve         solve, solvetranspose;
} HybFactor;

static PetscErrorCode HybFactorDestroy(void *ctx)
{
  HybFactor *f = (HybFactor *)ctx;

  PetscFunctionBegin;
  PetscCall(MatDestroy(&f->A));
  PetscCall(PetscFree(f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFactorGet(Mat F, HybFactor **f)
{
  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)F, "HybFactor", f));
  PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The factor is none of this type's");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f->A = A as aijcusparse, its values at least */
static PetscErrorCode HybFactorConvert(HybFactor *f, Mat A)
{
  const PetscObjectId id = ((PetscObject)A)->id;

  PetscFunctionBegin;
  if (f->A && (id != f->id || f->nonzerostate != A->nonzerostate)) PetscCall(MatDestroy(&f->A));
  PetscCall(MatConvert(A, MATSEQAIJCUSPARSE, f->A ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &f->A));
  f->id           = id;
  f->nonzerostate = A->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* M, dense and on the device, as a host matrix over its host copy */
static PetscErrorCode HybDenseHostView(Mat M, PetscScalar *array, Mat *H)
{
  PetscInt lda;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLDA(M, &lda));
  PetscCall(MatCreate(PETSC_COMM_SELF, H));
  PetscCall(MatSetSizes(*H, M->rmap->n, M->cmap->n, M->rmap->n, M->cmap->n));
  PetscCall(MatSetType(*H, MATSEQDENSE));
  PetscCall(MatDenseSetLDA(*H, lda));
  PetscCall(MatSeqDenseSetPreallocation(*H, array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatMatSolveBy(Mat F, Mat B, Mat X, PetscBool transpose)
{
  HybFactor   *f = NULL;
  HybMatSolve  solve;
  PetscScalar *b = NULL, *x;
  Mat          HB, HX;
  PetscBool    ishost[2];

  PetscFunctionBegin;
  PetscCall(HybFactorGet(F, &f));
  solve = transpose ? f->solvetranspose : f->solve;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQDENSE, &ishost[0]));
  PetscCall(PetscObjectTypeCompare((PetscObject)X, MATSEQDENSE, &ishost[1]));
  if (ishost[0] && ishost[1]) {
    PetscCall((*solve)(F, B, X));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (X == B)
    PetscCall(MatDenseGetArray(X, &x));
  else {
    PetscCall(MatDenseGetArrayRead(B, (const PetscScalar **)&b));
    PetscCall(MatDenseGetArrayWrite(X, &x));
  }
  PetscCall(HybDenseHostView(X, x, &HX));
  if (X == B)
    HB = HX;
  else
    PetscCall(HybDenseHostView(B, b, &HB));
  PetscCall((*solve)(F, HB, HX));
  if (X == B)
    PetscCall(MatDenseRestoreArray(X, &x));
  else {
    PetscCall(MatDestroy(&HB));
    PetscCall(MatDenseRestoreArrayRead(B, (const PetscScalar **)&b));
    PetscCall(MatDenseRestoreArrayWrite(X, &x));
  }
  PetscCall(MatDestroy(&HX));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatMatSolve(Mat F, Mat B, Mat X)
{
  return HybMatMatSolveBy(F, B, X, PETSC_FALSE);
}

static PetscErrorCode HybMatMatSolveTranspose(Mat F, Mat B, Mat X)
{
  return HybMatMatSolveBy(F, B, X, PETSC_TRUE);
}

static PetscErrorCode HybFactorNumeric(Mat F, Mat A, const MatFactorInfo *info, PetscBool lu)
{
  HybFactor *f = NULL;

  PetscFunctionBegin;
  PetscCall(HybFactorGet(F, &f));
  if (!f->host) PetscCall(HybFactorConvert(f, A));
  PetscCall(HybRecordBegin(HYB_RECORD_FACTOR, A, NULL));
  PetscCall((*(lu ? f->lunumeric : f->choleskynumeric))(F, f->host ? A : f->A, info));
  PetscCall(HybRecordEnd(HYB_RECORD_FACTOR, A, NULL, f->host ? "petsc" : "cusparse", "", 0, 0));
  /* each numeric phase sets the factor's solves anew */
  if (F->ops->matsolve && F->ops->matsolve != HybMatMatSolve) {
    f->solve         = F->ops->matsolve;
    F->ops->matsolve = HybMatMatSolve;
  }
  if (F->ops->matsolvetranspose && F->ops->matsolvetranspose != HybMatMatSolveTranspose) {
    f->solvetranspose         = F->ops->matsolvetranspose;
    F->ops->matsolvetranspose = HybMatMatSolveTranspose;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybLUFactorNumeric(Mat F, Mat A, const MatFactorInfo *info)
{
  return HybFactorNumeric(F, A, info, PETSC_TRUE);
}

static PetscErrorCode HybCholeskyFactorNumeric(Mat F, Mat A, const MatFactorInfo *info)
{
  return HybFactorNumeric(F, A, info, PETSC_FALSE);
}

/* The symbolic phases have set the factor's numeric one: ours goes over it */
static void HybFactorWrapNumeric(Mat F, HybFactor *f)
{
  if (F->ops->lufactornumeric && F->ops->lufactornumeric != HybLUFactorNumeric) {
    f->lunumeric            = F->ops->lufactornumeric;
    F->ops->lufactornumeric = HybLUFactorNumeric;
  }
  if (F->ops->choleskyfactornumeric && F->ops->choleskyfactornumeric != HybCholeskyFactorNumeric) {
    f->choleskynumeric            = F->ops->choleskyfactornumeric;
    F->ops->choleskyfactornumeric = HybCholeskyFactorNumeric;
  }
}

/* lu: of LU or ILU, with a column permutation; else of Cholesky or ICC */
static PetscErrorCode HybFactorSymbolic(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info, PetscBool lu, PetscBool incomplete)
{
  HybFactor *f = NULL;

  PetscFunctionBegin;
  PetscCall(HybFactorGet(F, &f));
  if (!f->host) {
    PetscCall(HybFactorConvert(f, A));
    A = f->A;
  }
  if (lu)
    PetscCall((*(incomplete ? f->ilu : f->lu))(F, A, row, col, info));
  else
    PetscCall((*(incomplete ? f->icc : f->cholesky))(F, A, row, info));
  HybFactorWrapNumeric(F, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybLUFactorSymbolic(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  return HybFactorSymbolic(F, A, row, col, info, PETSC_TRUE, PETSC_FALSE);
}

static PetscErrorCode HybILUFactorSymbolic(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  return HybFactorSymbolic(F, A, row, col, info, PETSC_TRUE, PETSC_TRUE);
}

static PetscErrorCode HybCholeskyFactorSymbolic(Mat F, Mat A, IS perm, const MatFactorInfo *info)
{
  return HybFactorSymbolic(F, A, perm, NULL, info, PETSC_FALSE, PETSC_FALSE);
}

static PetscErrorCode HybICCFactorSymbolic(Mat F, Mat A, IS perm, const MatFactorInfo *info)
{
  return HybFactorSymbolic(F, A, perm, NULL, info, PETSC_FALSE, PETSC_TRUE);
}

/* the factor of PETSc's type `parent`, with our operations over its own */
static PetscErrorCode HybGetFactor(MatSolverType solver, MatType parent, PetscBool host, Mat A, MatFactorType ftype, Mat *F)
{
  HybFactor *f;
  PetscErrorCode (*create)(Mat, MatFactorType, Mat *) = NULL;

  PetscFunctionBegin;
  PetscCall(MatSolverTypeGet(solver, parent, ftype, NULL, NULL, &create));
  PetscCheck(create, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s has no factorization %s", solver, MatFactorTypes[ftype]);
  PetscCall((*create)(A, ftype, F));
  if (!*F) PetscFunctionReturn(PETSC_SUCCESS); /* as PETSc says that it cannot */
  PetscCall(PetscNew(&f));
  f->host = host;
  PetscCall(HybContainerCompose((PetscObject)*F, "HybFactor", f, HybFactorDestroy));
  f->lu       = (*F)->ops->lufactorsymbolic;
  f->ilu      = (*F)->ops->ilufactorsymbolic;
  f->cholesky = (*F)->ops->choleskyfactorsymbolic;
  f->icc      = (*F)->ops->iccfactorsymbolic;
  if (f->lu) (*F)->ops->lufactorsymbolic = HybLUFactorSymbolic;
  if (f->ilu) (*F)->ops->ilufactorsymbolic = HybILUFactorSymbolic;
  if (f->cholesky) (*F)->ops->choleskyfactorsymbolic = HybCholeskyFactorSymbolic;
  if (f->icc) (*F)->ops->iccfactorsymbolic = HybICCFactorSymbolic;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_SeqAIJHybridGPU_CUSPARSE(Mat A, MatFactorType ftype, Mat *F)
{
  return HybGetFactor(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, PETSC_FALSE, A, ftype, F);
}

static PetscErrorCode MatGetFactor_SeqAIJHybridGPU_PETSc(Mat A, MatFactorType ftype, Mat *F)
{
  return HybGetFactor(MATSOLVERPETSC, MATSEQAIJ, PETSC_TRUE, A, ftype, F);
}
#endif

/* PETSc's own stays the default: it is registered for this type as well, before cuSPARSE's */
PetscErrorCode HybGlueRegisterFactors(void)
{
  PetscFunctionBegin;
#if HYB_HAS_CUDA
  {
    const MatFactorType types[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

    for (int k = 0; k < 4; k++) {
      PetscErrorCode (*host)(Mat, MatFactorType, Mat *) = NULL, (*device)(Mat, MatFactorType, Mat *) = NULL;

      PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, types[k], NULL, NULL, &host));
      PetscCall(MatSolverTypeGet(MATSOLVERCUSPARSE, MATSEQAIJCUSPARSE, types[k], NULL, NULL, &device));
      if (!host || !device) continue;
      PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSEQAIJHYBRIDGPU, types[k], MatGetFactor_SeqAIJHybridGPU_PETSc));
      PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATSEQAIJHYBRIDGPU, types[k], MatGetFactor_SeqAIJHybridGPU_CUSPARSE));
    }
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
