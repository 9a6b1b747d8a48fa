/*
  Products of parallel matrices: those of the parent's "backend" algorithm, which are built of sequential products of
  the blocks' type.
*/
#include "mpiimpl.h"

/* Before 3.22 the parent's "backend" results claim their arrays were allocated one by one, and the first new entry
   frees an address that nothing allocated: the blocks get arrays of their own */
static PetscErrorCode MatMPIAIJHybridGPUOwnArrays(Mat C)
{
  PetscFunctionBegin;
#if PETSC_VERSION_LT(3, 22, 0)
  {
    Mat             blocks[2], copy;
    const PetscInt *garray;

    PetscCall(MatMPIAIJGetSeqAIJ(C, &blocks[0], &blocks[1], &garray));
    for (PetscInt k = 0; k < 2; k++) {
      PetscCall(MatDuplicate(blocks[k], MAT_COPY_VALUES, &copy));
      PetscCall(MatHeaderReplace(blocks[k], &copy));
    }
  }
#else
  (void)C;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's "backend" products keep the blocks of the operands that their symbolic phase saw: another matrix of the
  same pattern in the place of an operand (MAT_REUSE_MATRIX, MatProductReplaceMats()) would go unseen. What was seen is
  kept here, and the symbolic phase is repeated for other operands.
*/
typedef struct {
  char method[64]; /* that was asked for, if any */
  PetscErrorCode (*numeric)(Mat);
  PetscBool        ours; /* the result was of our type */
  PetscObjectId    id[2];
  PetscObjectState nonzerostate[2];
  HybParts         parts;
} HybMPIProduct;

static PetscErrorCode MatProductSymbolic_MPIAIJHybridGPU(Mat);

static PetscErrorCode HybMPIProductDestroy(void *mp)
{
  PetscFunctionBegin;
  PetscCall(HybPartsReset(&((HybMPIProduct *)mp)->parts));
  PetscCall(PetscFree(mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIProductGet(Mat C, HybMPIProduct **mp)
{
  PetscFunctionBegin;
  PetscCall(HybContainerGet((PetscObject)C, "HybMPIProduct", mp));
  if (!*mp) {
    PetscCall(PetscNew(mp));
    PetscCall(HybContainerCompose((PetscObject)C, "HybMPIProduct", *mp, HybMPIProductDestroy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_MPIAIJHybridGPU(Mat C)
{
  Mat_Product   *product = C->product;
  Mat            operand[2];
  HybMPIProduct *mp    = NULL;
  PetscBool      other = PETSC_FALSE;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  operand[0] = product->A;
  operand[1] = product->B;
  PetscCall(HybMPIProductGet(C, &mp));
  if (mp->ours && C->ops->destroy != MatDestroy_MPIAIJHybridGPU) {
    PetscCall(HybMatProductAside(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt k = 0; k < 2; k++) {
    PetscObjectId id;

    PetscCall(PetscObjectGetId((PetscObject)operand[k], &id));
    other = (PetscBool)(other || id != mp->id[k] || operand[k]->nonzerostate != mp->nonzerostate[k]);
  }
  if (other) {
    PetscCall(PetscInfo(C, "Other operands than the symbolic phase saw, which is repeated\n"));
    if (product->destroy) {
#if PETSC_VERSION_LT(3, 25, 0)
      PetscCall((*product->destroy)(product->data));
#else
      PetscCall((*product->destroy)(&product->data));
#endif
    }
    product->destroy = NULL;
    product->data    = NULL;
    PetscCall(MatProductSymbolic_MPIAIJHybridGPU(C));
    PetscCall(HybMPIProductGet(C, &mp));
  }
  {
    const PetscLogDouble todevice = HybGlueState.counts.todevice, tohost = HybGlueState.counts.tohost;
    PetscErrorCode       ierr;

    ierr = HybPartsBegin(C, &mp->parts);
    if (!ierr) ierr = (*mp->numeric)(C);
    PetscCall(HybPartsEnd(&mp->parts));
    PetscCall(ierr);
    PetscCall(PetscInfo(C, "Numeric phase of the product %s: %.0f bytes taken to the device, %.0f to the host\n", MatProductTypes[product->type], (double)(HybGlueState.counts.todevice - todevice), (double)(HybGlueState.counts.tohost - tohost)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The state of the pattern as the parent's MatAssemblyEnd() will set it: the sum of the blocks'. Else the first
   assembly would tell of another pattern. */
PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat C)
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscInt64      own, all;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &blocks[0], &blocks[1], &garray));
  own = (PetscInt64)(blocks[0]->nonzerostate + blocks[1]->nonzerostate);
  PetscCallMPI(MPI_Allreduce(&own, &all, 1, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)C)));
  C->nonzerostate = C->ass_nonzerostate = (PetscObjectState)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's "backend" algorithm, with a name of ours passed on to the sequential products that it is made of. The
  parent reads the algorithm's option again and knows none of our names: then it is asked under an empty options
  database.
*/
static PetscErrorCode MatProductSymbolic_MPIAIJHybridGPU(Mat C)
{
  char           method[64];
  PetscBool      asked;
  PetscOptions   empty = NULL;
  HybMPIProduct *mp    = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  HybRecordProduct(C, MatProductTypes[C->product->type], C->product->A);
  PetscCall(HybMPIProductGet(C, &mp));
  PetscCall(HybPartsReset(&mp->parts));
  PetscCall(PetscStrncpy(method, mp->method, sizeof(method)));
  asked = (PetscBool)(method[0] != 0);
  PetscCall(MatProductSetAlgorithm(C, "backend"));
  C->ops->productsymbolic = NULL;
  if (asked) {
    PetscCall(PetscOptionsCreate(&empty));
    PetscCall(PetscOptionsPush(empty));
  }
  ierr = (*HybGlueState.mpi.productsetfromoptions)(C);
  if (asked) {
    (void)PetscOptionsPop();
    (void)PetscOptionsDestroy(&empty);
  }
  PetscCall(ierr);
  PetscCheck(C->ops->productsymbolic && C->ops->productsymbolic != MatProductSymbolic_MPIAIJHybridGPU, PetscObjectComm((PetscObject)C), PETSC_ERR_SUP, "PETSc has no parallel product %s of type %s for algorithm \"%s\"", MatProductTypes[C->product->type], MATMPIAIJ, asked ? method : "backend");
  if (asked) PetscCall(PetscStrncpy(HybGlueState.method, method, sizeof(HybGlueState.method)));
  {
    HybPartsPatterns patterns;
    PetscErrorCode   later;

    PetscCall(HybPartsSymbolicBegin(&patterns));
    HybLargePagesBegin(0); /* the parent's lists of coordinates */
    ierr = (*C->ops->productsymbolic)(C);
    HybLargePagesEnd();
    later = HybPartsSymbolicEnd(&patterns, (PetscBool)(ierr != PETSC_SUCCESS));
    if (!ierr) ierr = later;
  }
  HybGlueState.method[0] = 0;
  PetscCall(ierr);
  PetscCall(MatMPIAIJHybridGPUOwnArrays(C));
  PetscCall(MatMPIAIJHybridGPUSumStates(C));
  {
    Mat operand[2];

    operand[0] = C->product->A;
    operand[1] = C->product->B;
    /* the older ones' "backend" forgets block sizes */
    PetscCall(MatSetBlockSizes(C, PetscAbs(C->product->type == MATPRODUCT_AB ? operand[0]->rmap->bs : C->product->type == MATPRODUCT_AtB ? operand[0]->cmap->bs
                                                                                                                                         : operand[1]->cmap->bs),
                               PetscAbs(operand[1]->cmap->bs)));
    PetscCall(HybMPIProductGet(C, &mp));
    PetscCall(PetscStrncpy(mp->method, method, sizeof(mp->method)));
    mp->numeric            = C->ops->productnumeric;
    mp->ours               = (PetscBool)(C->ops->destroy == MatDestroy_MPIAIJHybridGPU);
    C->ops->productnumeric = MatProductNumeric_MPIAIJHybridGPU;
    for (PetscInt k = 0; k < 2; k++) {
      PetscCall(PetscObjectGetId((PetscObject)operand[k], &mp->id[k]));
      mp->nonzerostate[k] = operand[k]->nonzerostate;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  D = A B C in parallel as two products of the parent's "backend": W = A B, D = W C. The second one is the parent's own
  on D: while it is asked, D's product reads "AB of W and C".
*/
typedef struct {
  Mat         W;
  Mat_Product inner; /* D's product as the second stage sees it: its data and destroy function are kept here between calls */
  PetscErrorCode (*numeric)(Mat);
} HybProductABC;

static PetscErrorCode HybProductABCSwap(Mat D, HybProductABC *abc, Mat_Product *outer, PetscBool in)
{
  Mat_Product *product = D->product;

  PetscFunctionBegin;
  if (in) {
    *outer           = *product;
    product->type    = MATPRODUCT_AB;
    product->A       = abc->W;
    product->B       = outer->C;
    product->C       = NULL;
    product->data    = abc->inner.data;
    product->destroy = abc->inner.destroy;
    product->view    = NULL;
  } else {
    abc->inner       = *product;
    product->type    = outer->type;
    product->A       = outer->A;
    product->B       = outer->B;
    product->C       = outer->C;
    product->data    = outer->data;
    product->destroy = outer->destroy;
    product->view    = outer->view;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybProductABCDestroy(HybProductCtxArg *arg)
{
  HybProductABC *abc = (HybProductABC *)HYB_PRODUCT_CONTEXT(arg);

  PetscFunctionBegin;
  if (abc->inner.destroy) {
#if PETSC_VERSION_LT(3, 25, 0)
    PetscCall((*abc->inner.destroy)(abc->inner.data));
#else
    PetscCall((*abc->inner.destroy)(&abc->inner.data));
#endif
  }
  PetscCall(MatDestroy(&abc->W));
  PetscCall(PetscFree(abc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_ABC_MPIAIJHybridGPU(Mat D)
{
  HybProductABC *abc = (HybProductABC *)D->product->data;
  Mat_Product    outer;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatProductReplaceMats(D->product->A, D->product->B, NULL, abc->W));
  PetscCall(MatProductNumeric(abc->W));
  PetscCall(HybProductABCSwap(D, abc, &outer, PETSC_TRUE));
  ierr = (*abc->numeric)(D);
  PetscCall(HybProductABCSwap(D, abc, &outer, PETSC_FALSE));
  D->ops->productnumeric = MatProductNumeric_ABC_MPIAIJHybridGPU; /* the second stage may have repeated its symbolic phase */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatMatMultNumeric_MPIAIJHybridGPU(Mat A, Mat B, Mat C, Mat D)
{
  PetscFunctionBegin;
  PetscCall(MatProductReplaceMats(A, B, C, D));
  PetscCall(MatProductNumeric_ABC_MPIAIJHybridGPU(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_ABC_MPIAIJHybridGPU(Mat D)
{
  Mat_Product   *product = D->product, outer;
  HybProductABC *abc;
  HybMPIProduct *mp = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybMPIProductGet(D, &mp));
  PetscCall(PetscNew(&abc));
  product->data    = abc; /* D's from here on, whatever fails */
  product->destroy = HybProductABCDestroy;
  PetscCall(MatProductCreate(product->A, product->B, NULL, &abc->W));
  PetscCall(MatProductSetType(abc->W, MATPRODUCT_AB));
  if (mp->method[0]) PetscCall(MatProductSetAlgorithm(abc->W, mp->method));
  PetscCall(MatProductSetFromOptions(abc->W));
  PetscCall(MatProductSymbolic(abc->W));
  PetscCall(HybProductABCSwap(D, abc, &outer, PETSC_TRUE));
  ierr = MatProductSymbolic_MPIAIJHybridGPU(D);
  PetscCall(HybProductABCSwap(D, abc, &outer, PETSC_FALSE));
  PetscCall(ierr);
  abc->numeric              = D->ops->productnumeric;
  D->ops->productnumeric    = MatProductNumeric_ABC_MPIAIJHybridGPU;
  D->ops->matmatmultnumeric = MatMatMatMultNumeric_MPIAIJHybridGPU;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_MPIAIJHybridGPU(Mat C)
{
  Mat_Product *product = C->product;
  char         method[64];
  PetscBool    ours, asked, backend, derived = PETSC_FALSE;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(HybGlueProductAlgorithm(C, PETSC_FALSE, method, sizeof(method), &ours, &asked));
  if (ours && !asked) PetscCall(HybProductIsDerived(C, PETSC_FALSE, &derived));
  backend = (PetscBool)(product->type == MATPRODUCT_AB || product->type == MATPRODUCT_AtB || product->type == MATPRODUCT_PtAP);
  if (!ours) {
    HybGlueState.counts.fallbacks++;
    HybGlueState.counts.fallbacksasked++;
    PetscCall(PetscStrncpy(HybGlueState.counts.parents, method, sizeof(HybGlueState.counts.parents)));
    PetscCall(PetscInfo(C, "Product %s by the parent's algorithm %s, as asked\n", MatProductTypes[product->type], method));
  } else if (!derived && (product->type == MATPRODUCT_ABC || backend)) {
    HybMPIProduct *mp = NULL;

    PetscCall(HybMPIProductGet(C, &mp));
    PetscCall(PetscStrncpy(mp->method, asked ? method : "", sizeof(mp->method)));
    C->ops->productsymbolic = product->type == MATPRODUCT_ABC ? MatProductSymbolic_ABC_MPIAIJHybridGPU : MatProductSymbolic_MPIAIJHybridGPU;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall((*HybGlueState.mpi.productsetfromoptions)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
