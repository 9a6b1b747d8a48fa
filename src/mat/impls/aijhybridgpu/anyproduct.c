/*
  Products of ours with operands of any type.
*/
#include "family.h"

/*
  P^T A P with a P that is one interpolation for each of several unknowns (MAIJ, as DMDA makes it): the parent's product
  of that form is a row at a time with dense work rows in sequence, and in parallel turns P into AIJ in place by
  default. As P would for PETSc's own device types, it becomes a matrix of the type in place, unless an algorithm of the
  parent's was named.
*/
static PetscErrorCode HybProductExpandMAIJ(Mat C)
{
  Mat_Product *product = C->product;
  char         method[64];
  PetscBool    maij, seq, mpi, ours = PETSC_FALSE, asked;
  PetscInt     rbs, cbs;
  Mat          P = product->B;

  PetscFunctionBegin;
  if (product->type != MATPRODUCT_PtAP) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)P, &maij, MATSEQMAIJ, MATMPIMAIJ, ""));
  PetscCall(PetscObjectTypeCompare((PetscObject)product->A, MATSEQAIJHYBRIDGPU, &seq));
  PetscCall(PetscObjectTypeCompare((PetscObject)product->A, MATMPIAIJHYBRIDGPU, &mpi));
  if (maij && (seq || mpi)) PetscCall(HybGlueProductAlgorithm(C, seq, method, sizeof(method), &ours, &asked));
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscInfo(C, "P is expanded from MAIJ to AIJ\n"));
  PetscCall(MatGetBlockSizes(P, &rbs, &cbs));
  PetscCall(MatConvert(P, seq ? MATSEQAIJ : MATMPIAIJ, MAT_INPLACE_MATRIX, &P));
  PetscCall(MatSetBlockSizes(P, rbs, cbs)); /* which PETSc's conversion of a sequential one forgets */
  PetscCall(MatConvert(P, ((PetscObject)product->A)->type_name, MAT_INPLACE_MATRIX, &P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* with a dense matrix on this process, or on its card */
static PetscErrorCode HybProductIsDense(const Mat_Product *product, PetscBool *dense)
{
  PetscFunctionBegin;
  *dense = PETSC_FALSE;
  if (product->type != MATPRODUCT_ABC) PetscCall(PetscObjectTypeCompare((PetscObject)product->A, MATSEQAIJHYBRIDGPU, dense));
  if (*dense) PetscCall(PetscObjectTypeCompareAny((PetscObject)product->B, dense, MATSEQDENSE, MATSEQDENSECUDA, ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Everything else: PETSc asks for this when no function was composed under the operands' own type names. The look-up is
  repeated under the parents' names (dense, MAIJ, IS, transposes and others know those), then the other operands' own
  catch-alls are asked, which ours would shadow.
*/
PetscErrorCode MatProductSetFromOptions_AnyHybridGPU(Mat C)
{
  Mat_Product *product = C->product;
  const Mat    mats[3] = {product->A, product->B, product->C};
  PetscInt     n       = product->type == MATPRODUCT_ABC ? 3 : 2;
  char         name[256];
  PetscBool    renamed     = PETSC_FALSE, dense;
  PetscErrorCode (*f)(Mat) = NULL;

  PetscFunctionBegin;
  PetscCall(HybProductIsDense(product, &dense));
  if (dense) PetscCall(MatProductSetFromOptions_SeqAIJHybridGPU_SeqDense(C));
  if (C->ops->productsymbolic) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybProductExpandMAIJ(C));
  for (int parallel = 0; parallel < 2; parallel++) {
    PetscBool aij = PETSC_TRUE;

    for (PetscInt k = 0; k < n && aij; k++) PetscCall(PetscObjectBaseTypeCompare((PetscObject)mats[k], parallel ? MATMPIAIJ : MATSEQAIJ, &aij));
    if (!aij) continue;
    PetscCall(parallel ? MatProductSetFromOptions_MPIAIJHybridGPU(C) : MatProductSetFromOptions_SeqAIJHybridGPU(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrncpy(name, "MatProductSetFromOptions", sizeof(name)));
  for (PetscInt k = 0; k < n; k++) {
    const char *own = ((PetscObject)mats[k])->type_name, *type = own;

    if (own && !strcmp(own, MATSEQAIJHYBRIDGPU)) type = MATSEQAIJ;
    if (own && !strcmp(own, MATMPIAIJHYBRIDGPU)) type = MATMPIAIJ;
    renamed = (PetscBool)(renamed || type != own);
    PetscCall(PetscStrlcat(name, "_", sizeof(name)));
    PetscCall(PetscStrlcat(name, type, sizeof(name)));
  }
  PetscCall(PetscStrlcat(name, "_C", sizeof(name)));
  if (renamed) {
    for (PetscInt k = 0; k < n && !f; k++) PetscCall(PetscObjectQueryFunction((PetscObject)mats[k], name, &f));
    if (f) PetscCall((*f)(C));
  }
  for (PetscInt k = 0; k < n && !C->ops->productsymbolic; k++) {
    PetscCall(PetscObjectQueryFunction((PetscObject)mats[k], "MatProductSetFromOptions_anytype_C", &f));
    if (f && f != MatProductSetFromOptions_AnyHybridGPU) PetscCall((*f)(C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatAIJHybridGPUGetProductMethod - Gets the name of the method that computes a product

   Not Collective

   Input Parameter:
.  C - a matrix that `MatProductSymbolic()`, `MatMatMult()`, `MatPtAP()` or the like has made

   Output Parameter:
. method - the method's name, a constant, or `NULL` if the product is not one of ours; of a parallel product, the one
that has computed this process's rows in its own columns

   Level: advanced

.seealso: `MATAIJHYBRIDGPU`, `MatAIJHybridGPUGetProductCounter()`, `MatProductSetAlgorithm()`
@*/
PetscErrorCode MatAIJHybridGPUGetProductMethod(Mat C, const char **method)
{
  HybMatProduct *mp;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(C, MAT_CLASSID, 1);
  mp      = HybMatProductOf(C);
  *method = mp ? HybMatProductDo(mp, HybProductGetMethod, HybParProductGetMethod) : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatAIJHybridGPUGetProductCounter - Gets what a product's method counted of itself, as -info :mat shows it

   Not Collective

   Input Parameters:
+  C    - a matrix made by a product of ours
-  name - the counter's name, for example "growths"

   Output Parameter:
.  value - the sum over the product's stages; 0 if the method does not know the name, or the product is not one of ours

   Level: advanced

.seealso: `MATAIJHYBRIDGPU`, `MatAIJHybridGPUGetProductMethod()`
@*/
PetscErrorCode MatAIJHybridGPUGetProductCounter(Mat C, const char name[], PetscInt64 *value)
{
  HybMatProduct *mp;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(C, MAT_CLASSID, 1);
  mp     = HybMatProductOf(C);
  *value = mp ? (PetscInt64)HybMatProductDo(mp, HybProductGetCounter, HybParProductGetCounter, name) : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
