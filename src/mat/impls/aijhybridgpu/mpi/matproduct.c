/*
  MatProduct for parallel matrices of ours and for mixed operands: the operands' blocks are lent to the room parprod,
  which passes rows between the processes and multiplies, and the result's blocks become those of a MATMPIAIJ.

  PETSc's own parallel products are made where an algorithm of its own is asked for, where the result would have a type
  derived from AIJ that leaves products to AIJ, with MAT_FORCE_DIAGONAL_ENTRIES, and with
  -mat_aijhybridgpu_tuning parallel_products=0.

  All is collective. What a process does alone is followed by an agreement: an error of one is one of all.
*/
#include "product.h"
#include "../seq/coo.h"

static PetscErrorCode HybMPIProductFree(HybMPIProduct *mp)
{
  PetscErrorCode ierr = HybParProductDestroy(&mp->product);

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscErrorCode later = HybKeptReset(&mp->kept[k]);

    if (!ierr) ierr = later;
  }
  for (int k = 0; k < 3; k++) (void)PetscFree(mp->operand[k].garray);
  PetscFunctionReturn(ierr);
}

/* PETSc hands the context over again where this fails (MatProductClear(), then MatDestroy()): it goes with the call
   that ends well */
static PetscErrorCode HybMPIProductDestroy(HybProductCtxArg *arg)
{
  HybMPIProduct *mp = (HybMPIProduct *)HYB_PRODUCT_CONTEXT(arg);

  PetscFunctionBegin;
  PetscCall(HybMPIProductFree(mp));
  PetscCall(PetscFree(mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIProductView(Mat C, PetscViewer viewer)
{
  HybMPIProduct *mp = (HybMPIProduct *)C->product->data;
  char           text[2048];

  PetscFunctionBegin;
  if (!mp || !mp->product) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybParProductDescribe(mp->product, text, sizeof(text)));
  PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU parallel product, on the first process: %s\n", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which layouts meet, and whose are the result's: operand n / 2, its rows if n is even, else its columns */
static PetscLayout HybMPIOperandsLayout(const HybMPIOperands *o, int n)
{
  return n % 2 ? o->mat[n / 2]->cmap : o->mat[n / 2]->rmap;
}

static const int HybMPIShapes[6][6] = {
  /* result's rows and columns, pairs that must agree */
  {0, 3, 1, 2, 1, 2}, /* by HybProductType */
  {1, 3, 0, 2, 0, 2},
  {0, 2, 1, 3, 1, 3},
  {3, 3, 1, 2, 0, 2},
  {2, 2, 1, 3, 0, 3},
  {0, 5, 1, 2, 3, 4}
};

static PetscErrorCode HybMPIOperandsConform(Mat C, HybProductType type, const HybMPIOperands *o)
{
  PetscFunctionBegin;
  for (int p = 2; p < 6; p += 2) {
    PetscLayout a = HybMPIOperandsLayout(o, HybMPIShapes[type][p]), b = HybMPIOperandsLayout(o, HybMPIShapes[type][p + 1]);
    PetscBool   same;

    PetscCall(PetscLayoutCompare(a, b, &same));
    PetscCheck(same, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_SIZ, "Matrix local dimensions are incompatible for the product %s: %" PetscInt_FMT " of %" PetscInt_FMT ", and %" PetscInt_FMT " of %" PetscInt_FMT, MatProductTypes[C->product->type], a->n, a->N, b->n, b->N);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the product runs, on all processes alike: on the device if it is worth while for one and all have it */
static PetscErrorCode HybMPIProductExec(Mat C, const HybChoices *choices, PetscErrorCode before, const HybMPIOperands *o, HybExec *x)
{
  HybExec        can, want;
  PetscErrorCode ierr = before;
  PetscBool      fails;

  PetscFunctionBegin;
  if (!ierr) ierr = HybGlueGetExec(C, choices, HYB_ANY_SIZE, &can);
  if (!ierr) ierr = HybGlueGetExec(C, choices, o->work, &want);
  PetscCall(HybWhereTogether(PetscObjectComm((PetscObject)C), ierr, &can, (PetscBool)(!ierr && HybExecOnDevice(&want)), x, &fails));
  PetscCall(ierr);
  PetscCheck(!fails, PETSC_COMM_SELF, PETSC_ERR_LIB, "The operands of the product %s cannot be used on another process, which says why", MatProductTypes[C->product->type]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: the blocks get their contents */
static PetscErrorCode HybMPIProductBlocks(Mat C, HybMPIProduct *mp, HybArena out[2], const HybParCSR *result)
{
  const HybBackend *backend = mp->exec.backend;

  PetscFunctionBegin;
  /* a symbolic result may be used as it is: no stray values */
  PetscCall(backend->zero(&mp->exec, result->D.a, sizeof(HybScalar) * (size_t)result->D.nnz));
  PetscCall(backend->zero(&mp->exec, result->O.a, sizeof(HybScalar) * (size_t)result->O.nnz));
  PetscCall(MatMPIAIJHybridGPUAdoptBlocks(C, &mp->exec, out, result));
  PetscCall(HybMPIProductNoteBlocks(C, mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective */
static PetscErrorCode HybMPIProductAdopted(Mat C, PetscBool again, const HybAsked asked[2][HYB_LEFT])
{
  PetscFunctionBegin;
  PetscCall(PetscObjectStateIncrease((PetscObject)C));
  if (again)
    PetscCall(MatMPIAIJHybridGPUSetLeftOptions(C, asked)); /* what the program said of C since */
  else
    PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE)); /* as the parent's from coordinates */
  PetscCall(MatMPIAIJHybridGPUSetBlocks(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: C has these columns of others already, on all processes. Then its blocks stay the objects that they are,
   which a program may have borrowed (MatGetDiagonalBlock(), MatMPIAIJGetSeqAIJ()), and so do garray and the options. */
static PetscErrorCode HybMPIProductSameColumns(Mat C, const HybMPIProduct *mp, const HybParCSR *result, PetscBool *same)
{
  int mine = 0;

  PetscFunctionBegin;
  if (mp->block[0].id && C->preallocated) {
    Mat             block[2];
    const PetscInt *garray;

    PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
    mine = block[0] && block[1] && MatIsSeqAIJHybridGPU(block[0]) && MatIsSeqAIJHybridGPU(block[1]) && block[1]->cmap->n == result->O.n && (garray || !result->O.n);
    for (PetscInt k = 0; k < result->O.n && mine; k++) mine = garray[k] == result->garray[k];
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)C)));
  *same = (PetscBool)mine;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* repeated, on all processes: C is the result of an earlier symbolic phase */
static PetscErrorCode HybMPIProductAdopt(Mat C, HybMPIProduct *mp, PetscBool repeated, HybArena out[2], const HybParCSR *result)
{
  const PetscBool      again = (PetscBool)(mp->block[0].id && C->preallocated);
  HybAsked             asked[2][HYB_LEFT];
  Mat_MPIAIJHybridGPU *hyb  = NULL;
  PetscBool            stay = PETSC_FALSE;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  if (again) PetscCall(MatMPIAIJHybridGPULeftOptions(C, asked));
  PetscCall(HybCOOParentsGone((PetscObject)C, "HybMPICOO", &hyb->coocount));
  if (repeated) PetscCall(HybMPIProductSameColumns(C, mp, result, &stay));
  /* until all of it is there C is nobody's result, and has nothing that entries could be set in */
  C->preallocated = C->assembled = C->was_assembled = PETSC_FALSE;
  if (!stay) PetscCall(MatMPIAIJHybridGPUSetFrame(C, result->O.n, result->garray));
  mp->zeros = PETSC_TRUE;
  ierr      = HybMPIProductBlocks(C, mp, out, result);
  /* so that an assembly, which sums, leaves it; what P^T A P leaves to its numeric phase keeps its state (below) */
  if (repeated || C->product->type != MATPRODUCT_PtAP) PetscCall(MatMPIAIJHybridGPUSumStates(C));
  C->preallocated = C->assembled = PETSC_TRUE;
  if (!ierr) ierr = HybMPIProductAdopted(C, again, (const HybAsked(*)[HYB_LEFT])asked);
  ierr = HybParProductAgree(mp->product, ierr, "Taking over the result of a parallel product");
  if (ierr) C->preallocated = C->assembled = PETSC_FALSE;
  PetscCall(ierr);
  if (stay) { /* the parent forgets its room for a row, which may be longer now */
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where a report is written its timer may fail: ierr, of this process's, is one of all */
static PetscErrorCode HybMPIProductRecorded(HybMPIProduct *mp, PetscErrorCode ierr)
{
  PetscFunctionBegin;
  if (HybRecording()) PetscCall(HybParProductAgree(mp->product, ierr, "The report's time of a parallel product"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Symbolic phase on operands that are where it runs; C's old contents, if any, are replaced, or kept (again) */
static PetscErrorCode HybMPIProductSymbolic(Mat C, HybMPIProduct *mp, PetscBool again, PetscErrorCode before, HybMPIOperands *o)
{
  const HybExec *x = &mp->exec;
  HybArena       out[2];
  HybParCSR      result;
  const char    *method;
  char           text[2048];
  PetscBool      kept = PETSC_FALSE;
  PetscErrorCode ierr = before, later;

  PetscFunctionBegin;
  mp->noperands = 0; /* of none, if this fails */
  mp->again     = PETSC_FALSE;
  HybRecordProduct(C, MatProductTypes[C->product->type], o->mat[0]);
  later = HybRecordBegin(HYB_RECORD_SYMBOLIC, C, x); /* others wait for the end in any case */
  if (!ierr) ierr = later;
  for (int k = 0; k < 2 && !ierr; k++) ierr = HybKeptReset(&mp->kept[k]);
  if (!ierr) ierr = HybMPIOperandsNote(mp, o);
  PetscCall(PetscMemzero(&result, sizeof(result)));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaInit(&out[k], x));
  PetscCall(HybParProductSetBlockSize(mp->product, HybMatProductBlockSize(o->n, o->mat)));
  later = HybEventBegin(HybGlueState.event.productsymbolic, C, 0, 0, 0);
  if (!ierr) ierr = later;
  ierr = HybParProductSymbolic(mp->product, ierr, &o->csr[0], &o->csr[1], o->n == 3 ? &o->csr[2] : NULL, out, &result);
  if (!ierr && again) ierr = HybMPIKeep(C, mp, ierr, out, &result, &kept);
  if (!ierr && !kept) ierr = HybMPIProductAdopt(C, mp, again, out, &result);
  for (int k = 0; k < 2; k++) (void)HybArenaReset(&out[k]); /* nothing of a failed result stays behind */
  PetscCall(ierr);
  PetscCall(HybEventEnd(HybGlueState.event.productsymbolic, C, 0, 0, 0));
  if (HybExecOnDevice(x)) HybGlueState.counts.deviceops++;
  PetscCall(HybParProductGetMethod(mp->product, &method));
  PetscCall(HybGlueCountProduct(method));
  PetscCall(HybParProductDescribe(mp->product, text, sizeof(text)));
  HybRecordTell(text);
  PetscCall(HybMPIProductRecorded(mp, HybRecordEnd(HYB_RECORD_SYMBOLIC, C, x, method, MatProductTypes[C->product->type], 0, 0)));
  mp->noperands = o->n;
  PetscCall(PetscInfo(C, "Parallel product on the %s: %s; result here %" PetscInt_FMT " rows, %" PetscInt64_FMT " nonzeros in own columns, %" PetscInt64_FMT " in %" PetscInt_FMT " of others\n", HybExecOnDevice(x) ? "device" : "host", text, result.D.m, (PetscInt64)result.D.nnz, (PetscInt64)result.O.nnz,
                      result.O.n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Symbolic phase again: an operand's pattern, or where C lives, has changed */
static PetscErrorCode HybMPIProductRepeat(Mat C, HybMPIProduct *mp, HybMPIOperands *o)
{
  Mat_MPIAIJHybridGPU *hyb  = NULL;
  HybProductType       type = HYB_PRODUCT_AB;
  HybExec              x;
  PetscErrorCode       ierr, later;

  PetscFunctionBegin;
  mp->noperands = 0; /* of none, if this fails */
  PetscCall(HybMatProductType(C->product->type, &type));
  PetscCall(HybMPIOperandsConform(C, type, o));
  for (int d = 0; d < 2; d++) {
    PetscLayout from = HybMPIOperandsLayout(o, HybMPIShapes[type][d]), to = d ? C->cmap : C->rmap;
    PetscBool   same;

    PetscCall(PetscLayoutCompare(from, to, &same));
    PetscCheck(same, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_SIZ, "The operands' product %s has %" PetscInt_FMT " of %" PetscInt_FMT " %s here, but the matrix to be used again %" PetscInt_FMT " of %" PetscInt_FMT ": make a new one (MAT_INITIAL_MATRIX)", MatProductTypes[C->product->type], from->n, from->N, d ? "columns" : "rows", to->n, to->N);
  }
  PetscCall(PetscInfo(C, "An operand's pattern, or where C lives, has changed since the symbolic phase, which is repeated\n"));
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(HybMPIProductExec(C, &hyb->choices, PETSC_SUCCESS, o, &x));
  HybMPIProductValuesForget(mp);
  /* an error of one process waits until all can be told */
  ierr = HybArenaReset(&o->sent);
  for (PetscInt k = 0; k < o->n; k++) {
    o->csr[k].D = o->lent[k][0].csr;
    o->csr[k].O = o->lent[k][1].csr;
  }
  later = HybParProductDestroy(&mp->product);
  if (!ierr) ierr = later;
  mp->exec = x;
  PetscCall(HybParProductCreate(PetscObjectComm((PetscObject)C), &x, type, HybMatProductMethod(&x, mp->method[0] ? mp->method : hyb->choices.spgemm), hyb->choices.width, &mp->product));
  if (!ierr) ierr = HybMPIOperandsSend(o, &x, PETSC_TRUE);
  PetscCall(HybMPIProductSymbolic(C, mp, PETSC_TRUE, ierr, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: C lets new entries in (nonew of the parent's diagonal block is 0) */
static PetscBool HybMPIProductTakesNew(Mat C)
{
  HybAsked asked[2][HYB_LEFT];

  if (!C->preallocated || MatMPIAIJHybridGPULeftOptions(C, asked)) return PETSC_FALSE;
  return (PetscBool)(asked[0][0].said && asked[0][0].op == MAT_NEW_NONZERO_LOCATIONS && asked[0][0].flg);
}

/* Collective: can the plan of the symbolic phase be used by all processes? If not, it is made anew. */
static PetscErrorCode HybMPIProductPlan(Mat C, HybMPIProduct *mp, HybMPIOperands *o)
{
  PetscBool      same = PETSC_FALSE, there = PETSC_FALSE, seen[3] = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};
  int            mine[7], all[7];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybExecRefresh(&mp->exec);
  if (!ierr) ierr = HybMPIOperandsGet(C, PETSC_TRUE, o);
  if (!ierr && mp->product) ierr = HybParProductSetStream(mp->product, mp->exec.stream);
  if (!ierr) ierr = HybMPIOperandsSend(o, &mp->exec, PETSC_TRUE);
  if (!ierr && mp->product) ierr = HybMPIOperandsSame(mp, o, &same);
  if (!ierr) ierr = HybMPIProductSameResult(C, mp, &there);
  if (!ierr) ierr = HybMPIProductValuesSeen(mp, o, PETSC_FALSE, seen);
  mine[0] = ierr != PETSC_SUCCESS;
  mine[1] = !same || !there;
  mine[2] = C->insertmode != NOT_SET_VALUES;
  mine[3] = HybMPIProductTakesNew(C);
  for (int k = 0; k < 3; k++) mine[4 + k] = !seen[k];
  PetscCallMPI(MPI_Allreduce(mine, all, 7, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)C)));
  mp->assemble = (PetscBool)(all[2] || all[3]);
  for (int k = 0; k < 3; k++) mp->stays[k] = (PetscBool)!all[4 + k];
  PetscCall(ierr);
  /* the parent's, which add entries, begin with MatZeroEntries() */
  PetscCheck(!all[2] || (C->product->type != MATPRODUCT_AtB && C->product->type != MATPRODUCT_PtAP), PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_WRONGSTATE, "The result of the product %s is one in which values were set and not yet assembled, on this process or another", MatProductTypes[C->product->type]);
  PetscCheck(!all[0], PETSC_COMM_SELF, PETSC_ERR_LIB, "The operands of the product %s cannot be used on another process, which says why", MatProductTypes[C->product->type]);
  if (all[1]) PetscCall(HybMPIProductRepeat(C, mp, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIProductNumeric(Mat C, HybMPIProduct *mp, HybMPIOperands *o)
{
  PetscLogDouble flops;
  size_t         bytes;
  const char    *method;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  PetscCall(HybMPIProductPlan(C, mp, o));
  ierr  = HybRecordBegin(mp->again ? HYB_RECORD_AGAIN : HYB_RECORD_NUMERIC, C, &mp->exec);
  later = HybEventBegin(HybGlueState.event.productnumeric, C, 0, 0, 0);
  if (!ierr) ierr = later;
  PetscCall(HybMPIProductCompute(C, mp, ierr, o));
  PetscCall(HybParProductGetInfo(mp->product, &flops, &bytes));
  PetscCall(HybLogFlops(&mp->exec, flops));
  PetscCall(HybEventEnd(HybGlueState.event.productnumeric, C, 0, 0, 0));
  if (HybRecording()) {
    PetscCall(HybParProductGetMethod(mp->product, &method));
    PetscCall(HybMPIProductRecorded(mp, HybRecordEnd(mp->again ? HYB_RECORD_AGAIN : HYB_RECORD_NUMERIC, C, &mp->exec, method, MatProductTypes[C->product->type], flops, 0)));
  }
  mp->again = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A numeric phase has ended; before: C was assembled when it began. What AIJ does besides the values. */
static PetscErrorCode HybMPIProductEnd(Mat C, HybMPIProduct *mp, PetscBool before)
{
  const MatProductType type = C->product->type;
  Mat_MPIAIJHybridGPU *hyb  = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  hyb->unmade = PETSC_FALSE;
  if (mp->pending) { /* the assembly that the symbolic phase left out */
    mp->pending = PETSC_FALSE;
    PetscCall(MatMPIAIJHybridGPUSumStates(C));
    PetscCall(MatMPIAIJHybridGPUSetBlocks(C));
  }
  if (mp->assemble) { /* as the parent's ends */
    C->assembled = before;
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  } else {
    HybMatProductAssembled(C, before);
    PetscCall(PetscObjectStateIncrease((PetscObject)C));
  }
  /* its zeros */
  if (type == MATPRODUCT_AtB || type == MATPRODUCT_PtAP) PetscCall(PetscObjectStateIncrease((PetscObject)C));
  if (type == MATPRODUCT_AtB) PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_MPIAIJHybridGPU(Mat C)
{
  const PetscLogDouble todevice = HybGlueState.counts.todevice, tohost = HybGlueState.counts.tohost;
  const PetscBool      before = C->assembled;
  HybMPIProduct       *mp;
  HybMPIOperands       o;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  if (!MatIsMPIAIJHybridGPU(C)) {
    PetscCall(HybMatProductAside(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(C->product->data, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER, "The symbolic phase's data of this product is gone (MatProductClear()): call MatProductSetFromOptions() and MatProductSymbolic() again");
  PetscCall(HybMPIOperandsMats(C, &o));
  mp   = (HybMPIProduct *)C->product->data;
  ierr = HybMPIProductNumeric(C, mp, &o);
  /* Zeros of a symbolic phase may be used until their numeric phase fails, wherever that is. On all processes alike:
     C->assembled is each one's own. */
  if (ierr && mp->zeros) HybMPIProductHalfMade(C, mp);
  PetscCall(HybMPIOperandsRestore(&o));
  PetscCall(ierr);
  PetscCall(HybMPIProductEnd(C, mp, before));
  PetscCall(HybMatProductTellLost(C, NULL, mp->product));
  PetscCall(PetscInfo(C, "Numeric phase of the product %s: %.0f bytes taken to the device, %.0f to the host\n", MatProductTypes[C->product->type], (double)(HybGlueState.counts.todevice - todevice), (double)(HybGlueState.counts.tohost - tohost)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In-tree code also calls the old slots, which name their operands. These are the product's own, except where a caller
   swapped them. */
static PetscErrorCode MatMatMatOldNumeric_MPIAIJHybridGPU(Mat A, Mat B, Mat C, Mat D)
{
  Mat_Product   *product;
  Mat            were[3];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  MatCheckProduct(D, 4);
  product    = D->product;
  were[0]    = product->A;
  were[1]    = product->B;
  were[2]    = product->C;
  product->A = A;
  product->B = B;
  if (C) product->C = C;
  ierr       = MatProductNumeric_MPIAIJHybridGPU(D);
  product->A = were[0];
  product->B = were[1];
  product->C = were[2];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatOldNumeric_MPIAIJHybridGPU(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  MatCheckProduct(C, 3);
  PetscCall(MatMatMatOldNumeric_MPIAIJHybridGPU(A, B, NULL, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIProductSetOps(Mat C)
{
  PetscFunctionBegin;
  C->ops->productnumeric = MatProductNumeric_MPIAIJHybridGPU;
  HybMatProductOldNumeric(C, MatMatOldNumeric_MPIAIJHybridGPU, MatMatMatOldNumeric_MPIAIJHybridGPU);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C as an empty matrix of the type, with the choices of the first operand that has some */
static PetscErrorCode HybMPIProductHeader(Mat C, HybProductType type, HybMPIOperands *o)
{
  Mat_MPIAIJHybridGPU *from = NULL, *to = NULL;
  PetscLayout          rows = HybMPIOperandsLayout(o, HybMPIShapes[type][0]), columns = HybMPIOperandsLayout(o, HybMPIShapes[type][1]);
  Mat                  first = NULL;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n && !first; k++)
    if (MatIsMPIAIJHybridGPU(o->mat[k])) first = o->mat[k];
  PetscCheck(first, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "No operand of the product is of type %s", MATMPIAIJHYBRIDGPU);
  PetscCall(MatSetSizes(C, rows->n, columns->n, rows->N, columns->N));
  /* block sizes go with the sizes: GAMG and the block methods live by them */
  if (rows->bs > 0) PetscCall(PetscLayoutSetBlockSize(C->rmap, rows->bs));
  if (columns->bs > 0) PetscCall(PetscLayoutSetBlockSize(C->cmap, columns->bs));
  PetscCall(PetscLayoutSetUp(C->rmap)); /* the processes meet here: what follows may fail for one */
  PetscCall(PetscLayoutSetUp(C->cmap));
  if (!MatIsMPIAIJHybridGPU(C)) {
    PetscCall(MatSetType(C, MATMPIAIJHYBRIDGPU));
    PetscCall(MatMPIAIJHybridGPUGetData(first, &from));
    PetscCall(MatMPIAIJHybridGPUGetData(C, &to));
    to->choices = from->choices;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: do AIJ's products A B say MAT_NO_OFF_PROC_ENTRIES of their result? Some releases' do. One of nothing
   but this process tells. */
static PetscErrorCode HybMPIProductRefusesOthers(PetscBool *refuses)
{
  PetscErrorCode ierr;
  Mat            A, C = NULL;

  PetscFunctionBegin;
  if (!HybGlueState.productrefuses) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    ierr = MatSetSizes(A, 1, 1, 1, 1);
    if (!ierr) ierr = MatSetType(A, MATMPIAIJ);
    if (!ierr) ierr = MatMPIAIJSetPreallocation(A, 1, NULL, 0, NULL);
    if (!ierr) ierr = MatSetValue(A, 0, 0, 1.0, INSERT_VALUES);
    if (!ierr) ierr = MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
    if (!ierr) ierr = MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
    if (!ierr) ierr = MatProductCreate(A, A, NULL, &C);
    if (!ierr) ierr = MatSetOptionsPrefix(C, "mat_aijhybridgpu_probe_");
    if (!ierr) ierr = MatProductSetType(C, MATPRODUCT_AB);
    if (!ierr) ierr = MatProductSetFromOptions(C);
    if (!ierr) ierr = MatProductSymbolic(C);
    if (!ierr) HybGlueState.productrefuses = C->nooffprocentries ? 1 : -1;
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&A));
    PetscCall(ierr);
  }
  *refuses = (PetscBool)(HybGlueState.productrefuses > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIProductFirst(Mat C, PetscErrorCode before, HybProductType type, const char *method, HybMPIOperands *o, HybMPIProduct *mp)
{
  const PetscObjectState nonzerostate = C->nonzerostate, assembled = C->ass_nonzerostate;
  Mat_MPIAIJHybridGPU   *hyb = NULL;
  PetscObjectState       state;
  PetscBool              refuses = PETSC_FALSE;
  PetscErrorCode         ierr    = before;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)C, &state));
  /* here: an error after the symbolic phase would be this process's alone */
  if (!ierr && (type == HYB_PRODUCT_AB || type == HYB_PRODUCT_ABC || type == HYB_PRODUCT_ABT)) ierr = HybMPIProductRefusesOthers(&refuses);
  if (!ierr) ierr = MatMPIAIJHybridGPUGetData(C, &hyb);
  if (!ierr) ierr = HybMPIOperandsGet(C, PETSC_FALSE, o);
  PetscCall(HybMPIProductExec(C, hyb ? &hyb->choices : NULL, ierr, o, &mp->exec));
  PetscCall(PetscStrncpy(mp->method, method, sizeof(mp->method)));
  PetscCall(HybParProductCreate(PetscObjectComm((PetscObject)C), &mp->exec, type, HybMatProductMethod(&mp->exec, method[0] ? method : hyb->choices.spgemm), hyb->choices.width, &mp->product));
  ierr = HybMPIOperandsSend(o, &mp->exec, PETSC_FALSE);
  PetscCall(HybMPIProductSymbolic(C, mp, PETSC_FALSE, ierr, o));
  /* as the parent's: most end with an assembly, P^T A P leaves it to the numeric phase */
  PetscCall(PetscObjectStateSet((PetscObject)C, state + (type == HYB_PRODUCT_PTAP ? 0 : 1)));
  if (type == HYB_PRODUCT_PTAP) {
    mp->pending = PETSC_TRUE;
    PetscCall(MatMPIAIJHybridGPUUnmade(C));
    C->nonzerostate     = nonzerostate;
    C->ass_nonzerostate = assembled;
  } else
    C->num_ass++;
  if (refuses) PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_MPIAIJHybridGPU(Mat C)
{
  Mat_Product   *product = C->product;
  HybMPIProduct *mp      = NULL;
  HybMPIOperands o;
  HybProductType type       = HYB_PRODUCT_AB;
  char           method[64] = "";
  PetscBool      ours, asked;
  HybMPIProduct  none;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCheck(!product->data, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "The product's data is not empty");
  PetscCall(HybMatProductType(product->type, &type));
  PetscCall(HybMPIOperandsMats(C, &o));
  PetscCall(HybMPIOperandsConform(C, type, &o));
  ierr = HybMPIProductHeader(C, type, &o);
  if (!ierr) ierr = HybGlueProductAlgorithm(C, PETSC_FALSE, method, sizeof(method), &ours, &asked);
  if (!ierr && !asked) method[0] = 0;
  if (!ierr) ierr = PetscNew(&mp);
  ierr = HybMPIProductFirst(C, ierr, type, method, &o, mp ? mp : &none);
  if (ierr) {
    if (mp) (void)HybMPIProductFree(mp);
    (void)PetscFree(mp);
  }
  PetscCall(HybMPIOperandsRestore(&o));
  PetscCall(ierr);
  product->data    = mp;
  product->destroy = HybMPIProductDestroy;
  product->view    = HybMPIProductView;
  PetscCall(HybMPIProductSetOps(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUGetProduct(Mat C, HybParProduct *product)
{
  PetscFunctionBegin;
  *product = NULL;
  if (C->product && C->product->data && C->ops->productnumeric == MatProductNumeric_MPIAIJHybridGPU) *product = ((HybMPIProduct *)C->product->data)->product;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_MPIAIJHybridGPU(Mat C)
{
  Mat_Product *product = C->product;
  char         method[64];
  PetscOptions empty = NULL;
  PetscBool    ours, asked, derived = PETSC_FALSE, mpi = PETSC_TRUE;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(HybGlueProductAlgorithm(C, PETSC_FALSE, method, sizeof(method), &ours, &asked));
  if (ours && !asked) PetscCall(HybMatProductIsDerived(C, PETSC_FALSE, &derived));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->B, MATMPIAIJ, &mpi));
  if (mpi && product->type == MATPRODUCT_ABC) PetscCall(PetscObjectBaseTypeCompare((PetscObject)product->C, MATMPIAIJ, &mpi));
  if (ours && !derived && mpi && HybGlueState.options.parallelproducts) {
    C->ops->productsymbolic = MatProductSymbolic_MPIAIJHybridGPU;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ours) {
    HybGlueState.counts.fallbacks++;
    HybGlueState.counts.fallbacksasked++;
    PetscCall(PetscStrncpy(HybGlueState.counts.parents, method, sizeof(HybGlueState.counts.parents)));
    PetscCall(PetscInfo(C, "Product %s by the parent's algorithm %s, as asked\n", MatProductTypes[product->type], method));
  } else if (!derived) { /* the parent knows no name of ours, and would read it again */
    PetscErrorCode ierr;

    PetscCall(MatProductSetAlgorithm(C, "default"));
    PetscCall(PetscOptionsCreate(&empty));
    PetscCall(PetscOptionsPush(empty));
    ierr = (*HybGlueState.mpi.productsetfromoptions)(C);
    (void)PetscOptionsPop();
    (void)PetscOptionsDestroy(&empty);
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall((*HybGlueState.mpi.productsetfromoptions)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
