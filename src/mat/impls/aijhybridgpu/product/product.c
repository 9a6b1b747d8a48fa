/*
  MatProduct for matrices of ours, sequential and parallel, and for mixed operands: which algorithm was asked for,
  symbolic and numeric phases over the rooms product and parprod, and the results' way into the base class.

  PETSc's own parallel products are made where an algorithm of its own is asked for, where the result would have a type
  derived from AIJ that leaves products to AIJ, with MAT_FORCE_DIAGONAL_ENTRIES, and with
  -mat_aijhybridgpu_tuning parallel_products=0.

  All is collective. What a process does alone is followed by an agreement: an error of one is one of all. A sequential
  product agrees with nobody.
*/
#include "product.h"

static PetscErrorCode HybMatProductEmpty(HybMatProduct *mp)
{
  PetscErrorCode ierr = mp->blocks == 2 ? HybParProductDestroy(&mp->several) : HybProductDestroy(&mp->one);

  PetscFunctionBegin;
  for (int b = 0; b < mp->blocks; b++) ierr = HybErrorFirst(ierr, HybKeptReset(&mp->block[b].kept));
  for (int k = 0; k < 3; k++) (void)PetscFree(mp->columns[k].garray);
  PetscFunctionReturn(ierr);
}

static PetscErrorCode HybMatProductFree(void *ctx)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybMatProductEmpty((HybMatProduct *)ctx);
  PetscCall(PetscFree(ctx));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* arg: the context, from 3.25 on its address. PETSc hands it over again where this fails (MatProductClear(), then
   MatDestroy()): it goes with the call that ends well */
static PetscErrorCode HybMatProductDestroy(void *arg)
{
  HybMatProduct *mp = (HybMatProduct *)(HYB_CONTEXT_BY_ADDRESS ? *(void **)arg : arg);

  PetscFunctionBegin;
  PetscCall(HybMatProductEmpty(mp));
  PetscCall(PetscFree(mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of the matrix without a type that goes with a product */
static PetscErrorCode HybMatProductDestroyBeside(Mat beside)
{
  void *mp = beside->data;

  PetscFunctionBegin;
  beside->data = NULL;
  if (mp) PetscCall(HybMatProductFree(mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static HybMatProduct *HybMatProductGet(Mat C)
{
  const Mat_Product *product = C->product;

  if (!product) return NULL;
  if (product->data) return (HybMatProduct *)product->data;
  return product->Dwork && product->Dwork->ops->destroy == HybMatProductDestroyBeside ? (HybMatProduct *)product->Dwork->data : NULL;
}

static PetscErrorCode HybMatProductView(Mat C, PetscViewer viewer)
{
  HybMatProduct *mp = HybMatProductGet(C);
  char           text[2048];

  PetscFunctionBegin;
  if (!mp || !(mp->one || mp->several)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMatProductDo(mp, HybProductDescribe, HybParProductDescribe, text, sizeof(text)));
  PetscCall(PetscViewerASCIIPrintf(viewer, mp->blocks == 2 ? "AIJHybridGPU parallel product, on the first process: %s\n" : "AIJHybridGPU product %s\n", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Where the sequential parent keeps nothing in C->product->data its symbolic phase may come again, which PETSc refuses
  where there is something. So ours goes with a matrix without a type, which PETSc has room for beside the product, and
  destroys with it. mp is taken over.
*/
static PetscErrorCode HybMatProductSet(Mat C, HybMatProduct *mp)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  if (mp->blocks == 1 && (product->type == MATPRODUCT_AB || product->type == MATPRODUCT_PtAP)) {
    Mat            beside;
    PetscErrorCode ierr = MatCreate(PETSC_COMM_SELF, &beside);

    if (ierr) (void)HybMatProductFree(mp);
    PetscCall(ierr);
    beside->data         = mp;
    beside->ops->destroy = HybMatProductDestroyBeside;
    PetscCall(MatDestroy(&product->Dwork));
    product->Dwork = beside;
  } else {
    product->data    = mp;
    product->destroy = HybMatProductDestroy;
  }
  product->view = HybMatProductView;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which layouts meet, and whose are the result's: operand n / 2, its rows if n is even, else its columns */
static PetscLayout HybOperandsLayout(const HybOperands *o, int n)
{
  return n % 2 ? o->mat[n / 2]->cmap : o->mat[n / 2]->rmap;
}

static const int shapes[6][6] = {
  /* result's rows and columns, pairs that must agree */
  {0, 3, 1, 2, 1, 2}, /* by HybProductType */
  {1, 3, 0, 2, 0, 2},
  {0, 2, 1, 3, 1, 3},
  {3, 3, 1, 2, 0, 2},
  {2, 2, 1, 3, 0, 3},
  {0, 5, 1, 2, 3, 4}
};

/* Of a parallel product; the room product looks at the sizes of a sequential one */
static PetscErrorCode HybOperandsConform(Mat C, HybProductType type, const HybOperands *o)
{
  PetscFunctionBegin;
  for (int p = 2; p < 6 && o->blocks == 2; p += 2) {
    PetscLayout a = HybOperandsLayout(o, shapes[type][p]), b = HybOperandsLayout(o, shapes[type][p + 1]);
    PetscBool   same;

    PetscCall(PetscLayoutCompare(a, b, &same));
    PetscCheck(same, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_SIZ, "Matrix local dimensions are incompatible for the product %s: %" PetscInt_FMT " of %" PetscInt_FMT ", and %" PetscInt_FMT " of %" PetscInt_FMT, MatProductTypes[C->product->type], a->n, a->N, b->n, b->N);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: what computes, and where, on all processes alike: on the device if it is worth while for one and all have
   it */
static PetscErrorCode HybMatProductCreate(Mat C, HybMatProduct *mp, const HybChoices *choices, PetscErrorCode before, HybOperands *o, HybExec *x)
{
  HybExec        can = HybExecHost, want = can;
  PetscInt64     any[2];
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (o->blocks == 1) {
    PetscCall(ierr);
    PetscCall(HybOperandsWork(C, choices, mp->type, o));
    mp->work = o->work;
    PetscCall(HybGlueGetExec(C, choices, o->work, x));
    PetscCall(HybProductCreate(x, mp->type, HybMatProductMethod(x, mp->method), choices->width, &mp->one));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ierr) ierr = HybGlueGetExec(C, choices, HYB_ANY_SIZE, &can);
  if (!ierr) ierr = HybGlueGetExec(C, choices, o->work, &want);
  HybWhereAsk(&can, HybExecOnDevice(&want), any);
  PetscCall(HybParProductCreate(PetscObjectComm((PetscObject)C), ierr, mp->type, 2, any, &mp->several));
  HybWhereAll(any, &can, x);
  PetscCall(HybParProductSetExec(mp->several, x, HybMatProductMethod(x, mp->method), choices->width));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The symbolic phase is over: it is counted, and told */
static PetscErrorCode HybMatProductTell(Mat C, HybMatProduct *mp, const HybParCSR *result)
{
  const HybExec *x = &mp->exec;
  const char    *method, *where = HybExecOnDevice(x) ? "device" : "host";
  char           text[2048];
  PetscBool      info;

  PetscFunctionBegin;
  PetscCall(HybEventEnd(HYB_OP_PRODUCTSYMBOLIC, C));
  if (HybExecOnDevice(x)) HybGlueState.counts.deviceops++;
  method = HybMatProductDo(mp, HybProductGetMethod, HybParProductGetMethod);
  PetscCall(HybGlueCountProduct(method));
  PetscCall(PetscInfoEnabled(MAT_CLASSID, &info));
  text[0] = 0;
  if (info || HybRecording()) PetscCall(HybMatProductDo(mp, HybProductDescribe, HybParProductDescribe, text, sizeof(text)));
  HybRecordWhy(text);
  PetscCall(HybRecordEnd(HYB_RECORD_SYMBOLIC, C, x, method, MatProductTypes[C->product->type], 0, 0));
  if (mp->blocks == 2)
    PetscCall(PetscInfo(C, "Parallel product on the %s: %s; result here %" PetscInt_FMT " rows, %" PetscInt64_FMT " nonzeros in own columns, %" PetscInt64_FMT " in %" PetscInt_FMT " of others\n", where, text, result->D.m, (PetscInt64)result->D.nnz, (PetscInt64)result->O.nnz, result->O.n));
  else
    PetscCall(PetscInfo(C, "Product on the %s: %s; result %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros\n", where, text, result->D.m, result->D.n, (PetscInt64)result->D.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Symbolic phase on operands that are where it runs; C's old contents, if any, are replaced, or kept (again) */
static PetscErrorCode HybMatProductSymbolic(Mat C, HybMatProduct *mp, PetscBool again, PetscErrorCode before, HybOperands *o)
{
  const HybExec *x = &mp->exec;
  HybArena       out[2];
  HybParCSR      result;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  mp->noperands = 0; /* of none, if this fails */
  mp->again     = PETSC_FALSE;
  HybRecordProduct(C, MatProductTypes[C->product->type], o->mat[0]);
  ierr = HybErrorFirst(ierr, HybRecordBegin(HYB_RECORD_SYMBOLIC, C, x)); /* others wait for the end in any case */
  for (int b = 0; b < mp->blocks && !ierr; b++) ierr = HybKeptReset(&mp->block[b].kept);
  if (!ierr) ierr = HybOperandsNote(mp, o);
  PetscCall(PetscMemzero(&result, sizeof(result)));
  for (int b = 0; b < 2; b++) out[b] = HybArenaOn(x);
  HybMatProductDo(mp, HybProductSetBlockSize, HybParProductSetBlockSize, HybMatProductBlockSize(o->n, o->mat));
  ierr = HybErrorFirst(ierr, HybEventBegin(HYB_OP_PRODUCTSYMBOLIC, C));
  if (mp->blocks == 2) {
    ierr = HybParProductSymbolic(mp->several, ierr, &o->csr[0], &o->csr[1], o->n == 3 ? &o->csr[2] : NULL, out, &result);
    ierr = HybParResultPattern(C, mp, ierr, again, out, &result);
  } else {
    if (!ierr) ierr = HybProductSymbolic(mp->one, &o->csr[0].D, &o->csr[1].D, o->n == 3 ? &o->csr[2].D : NULL, out, &result.D);
    if (!ierr) ierr = HybResultPattern(C, mp, again, out, &result.D);
  }
  for (int b = 0; b < mp->blocks; b++) (void)HybArenaReset(&out[b]); /* nothing of a failed result stays behind */
  PetscCall(ierr);
  PetscCall(HybMatProductTell(C, mp, &result));
  mp->noperands = o->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Symbolic phase again: an operand's pattern, or where C lives, has changed */
static PetscErrorCode HybMatProductRepeat(Mat C, HybMatProduct *mp, HybOperands *o)
{
  HybChoices    *choices;
  HybExec        x;
  PetscBool      moves;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  mp->noperands = 0; /* of none, if this fails */
  mp->hashes    = PETSC_TRUE;
  PetscCall(HybOperandsConform(C, mp->type, o));
  for (int d = 0; d < 2; d++) {
    PetscLayout from = HybOperandsLayout(o, shapes[mp->type][d]), to = d ? C->cmap : C->rmap;
    PetscBool   same;

    PetscCall(PetscLayoutCompare(from, to, &same));
    PetscCheck(same, PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_SIZ, "The operands' product %s has %" PetscInt_FMT " of %" PetscInt_FMT " %s here, but the matrix to be used again %" PetscInt_FMT " of %" PetscInt_FMT ": make a new one (MAT_INITIAL_MATRIX)", MatProductTypes[C->product->type], from->n, from->N, d ? "columns" : "rows", to->n, to->N);
  }
  PetscCall(PetscInfo(C, "An operand's pattern, or where C lives, may have changed since the symbolic phase, which is repeated\n"));
  PetscCall(HybMatProductChoices(C, mp->blocks, &choices));
  HybOperandsValuesForget(mp);
  /* an error of one process waits until all can be told */
  ierr = mp->blocks == 2 ? HybParProductDestroy(&mp->several) : HybProductDestroy(&mp->one);
  PetscCall(HybMatProductCreate(C, mp, choices, ierr, o, &x));
  moves    = (PetscBool)(x.backend != mp->exec.backend);
  mp->exec = x;
  if (moves) ierr = HybOperandsSend(o, &x, PETSC_TRUE);
  PetscCall(HybMatProductSymbolic(C, mp, PETSC_TRUE, ierr, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, of a parallel product: can the plan of the symbolic phase be used by all processes? */
static PetscErrorCode HybMatProductMeet(Mat C, HybMatProduct *mp, PetscErrorCode ierr, HybOperands *o, PetscBool *same)
{
  PetscBool  seen[3] = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};
  PetscInt64 any[6]; /* another pattern; values that were set; new entries may come; other values of an operand */

  PetscFunctionBegin;
  if (!ierr) ierr = HybOperandsValuesSeen(mp, o, PETSC_FALSE, seen);
  any[0] = !*same;
  any[1] = C->insertmode != NOT_SET_VALUES;
  any[2] = HybParResultTakesNew(C);
  for (int k = 0; k < 3; k++) any[3 + k] = !seen[k];
  PetscCall(HybAgreeMax(PetscObjectComm((PetscObject)C), ierr, "The operands of a parallel product", 6, any));
  *same        = (PetscBool)!any[0];
  mp->assemble = (PetscBool)(any[1] || any[2]);
  for (int k = 0; k < 3; k++) mp->stays[k] = (PetscBool)!any[3 + k];
  /* the parent's, which add entries, begin with MatZeroEntries() */
  PetscCheck(!any[1] || (C->product->type != MATPRODUCT_AtB && C->product->type != MATPRODUCT_PtAP), PetscObjectComm((PetscObject)C), PETSC_ERR_ARG_WRONGSTATE, "The result of the product %s is one in which values were set and not yet assembled, on this process or another", MatProductTypes[C->product->type]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the operands are there, with the plan of the symbolic phase, or with one that is made anew */
static PetscErrorCode HybMatProductPlan(Mat C, HybMatProduct *mp, HybOperands *o)
{
  PetscBool      same = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybOperandsGet(C, PETSC_TRUE, o);
  /* the sequential symbolic phase's pattern is whole */
  if (!ierr && mp->blocks == 1 && mp->pending && C->preallocated && C->insertmode == NOT_SET_VALUES && C->nonzerostate == mp->block[0].result.nonzerostate) C->assembled = PETSC_TRUE;
  if (!ierr) ierr = HybExecRefresh(&mp->exec);
  if (!ierr && (mp->one || mp->several)) HybMatProductDo(mp, HybProductSetStream, HybParProductSetStream, mp->exec.stream);
  if (!ierr) ierr = HybOperandsSend(o, &mp->exec, PETSC_TRUE);
  if (!ierr && (mp->one || mp->several)) ierr = HybOperandsSame(mp, o, &same);
  if (!ierr && same) ierr = HybResultSame(C, mp, mp->blocks == 2 ? HYB_ANY_SIZE : PetscMax(o->work, mp->work), &same);
  if (mp->blocks == 2) ierr = HybMatProductMeet(C, mp, ierr, o, &same);
  PetscCall(ierr);
  if (!same) PetscCall(HybMatProductRepeat(C, mp, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective, but for the room's numeric phase. Into C's storage. */
static PetscErrorCode HybMatProductValues(Mat C, HybMatProduct *mp, PetscErrorCode before, HybOperands *o, HybKeptWrite w[2])
{
  HybParCSR       result;
  Mat             block[2] = {NULL, NULL};
  const PetscInt *garray   = NULL;
  PetscBool       seen[3]  = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};
  PetscErrorCode  ierr     = before;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&result, sizeof(result)));
  if (!ierr) ierr = HybMatProductBlocks(C, mp->blocks, block, &garray);
  if (!ierr) ierr = HybOperandsValuesSeen(mp, o, PETSC_TRUE, seen);
  /* after an error too: what stays on all processes decides which messages they wait for */
  ierr = HybErrorFirst(ierr, mp->blocks == 2 ? HybParProductUnchanged(mp->several, seen, mp->stays) : HybProductUnchanged(mp->one, seen));
  for (int b = 0; b < mp->blocks && !ierr; b++) {
    ierr                        = HybKeptBegin(block[b], &mp->exec, &w[b]);
    *HybParCSRBlock(&result, b) = mp->block[b].kept.padded ? mp->block[b].kept.csr : w[b].csr;
  }
  result.rows    = C->rmap->range;
  result.columns = C->cmap->range;
  result.garray  = garray;
  if (mp->blocks == 2)
    ierr = HybParProductNumeric(mp->several, ierr, &o->csr[0], &o->csr[1], o->n == 3 ? &o->csr[2] : NULL, &result);
  else if (!ierr)
    ierr = HybProductNumeric(mp->one, &o->csr[0].D, &o->csr[1].D, o->n == 3 ? &o->csr[2].D : NULL, &result.D);
  PetscCall(ierr);
  for (int b = 0; b < mp->blocks; b++) {
    PetscCall(HybKeptEnd(block[b], &mp->exec, &mp->block[b].kept, (PetscBool)(mp->blocks == 1), &w[b]));
    if (mp->blocks == 2) PetscCall(PetscObjectStateIncrease((PetscObject)block[b])); /* as an assembly */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values. An error of one process is one of all; before: one of this process's. The state of a pattern that the
   symbolic phase left out is agreed upon with it. */
static PetscErrorCode HybMatProductCompute(Mat C, HybMatProduct *mp, PetscErrorCode before, HybOperands *o)
{
  HybKeptWrite   w[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int b = 0; b < mp->blocks; b++) {
    PetscCall(PetscMemzero(&w[b], sizeof(w[b])));
    w[b].side = HybArenaOn(&mp->exec);
  }
  ierr = HybMatProductValues(C, mp, before, o, w);
  for (int b = 0; b < mp->blocks; b++) ierr = HybErrorFirst(ierr, HybArenaReset(&w[b].side));
  if (mp->blocks == 2) {
    /* as the assembly that the symbolic phase left out */
    if (mp->pending) ierr = HybErrorFirst(ierr, MatMPIAIJHybridGPUSetBlocks(C));
    ierr = mp->pending ? MatMPIAIJHybridGPUSumStates(C, ierr, "The values of a parallel product") : HybAgree(PetscObjectComm((PetscObject)C), ierr, "The values of a parallel product");
    if (ierr) HybParProductForget(mp->several);
  }
  if (ierr) HybResultHalfMade(C, mp);
  PetscCall(ierr);
  mp->zeros = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the first numeric phase on a device knows, and the pattern's did not: how much of a value half precision
   loses */
static PetscErrorCode HybMatProductTellLost(Mat C, HybMatProduct *mp)
{
  static const char *const names[] = {"1e-9 of values of A lost in half precision", "1e-9 of values of B lost in half precision"};
  PetscCount               lost[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) lost[k] = HybMatProductDo(mp, HybProductGetCounter, HybParProductGetCounter, names[k]);
  if (lost[0] || lost[1]) PetscCall(PetscInfo(C, "Half precision: up to %g of a value of a left factor is lost, %g of a right one\n", 1e-9 * (double)lost[0], 1e-9 * (double)lost[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *whole: C has its values, on all processes. What fails then is this process's alone. */
static PetscErrorCode HybMatProductNumeric(Mat C, HybMatProduct *mp, HybOperands *o, PetscBool *whole)
{
  PetscLogDouble flops;
  size_t         bytes, peak;
  const char    *method;
  HybRecordOp    op;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *whole = PETSC_FALSE;
  PetscCall(HybMatProductPlan(C, mp, o));
  op   = mp->again ? HYB_RECORD_AGAIN : HYB_RECORD_NUMERIC;
  ierr = HybRecordBegin(op, C, &mp->exec);
  ierr = HybErrorFirst(ierr, HybEventBegin(HYB_OP_PRODUCTNUMERIC, C));
  PetscCall(HybMatProductCompute(C, mp, ierr, o));
  *whole = PETSC_TRUE;
  if (mp->blocks == 2)
    HybParProductGetInfo(mp->several, &flops, &bytes);
  else
    HybProductGetInfo(mp->one, &flops, &bytes, &peak);
  PetscCall(HybLogFlops(&mp->exec, flops));
  PetscCall(HybEventEnd(HYB_OP_PRODUCTNUMERIC, C));
  if (HybRecording()) {
    method = HybMatProductDo(mp, HybProductGetMethod, HybParProductGetMethod);
    PetscCall(HybRecordEnd(op, C, &mp->exec, method, MatProductTypes[C->product->type], flops, 0));
  }
  if (!mp->again && HybExecOnDevice(&mp->exec)) PetscCall(HybMatProductTellLost(C, mp));
  mp->again = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C was converted to another type since its symbolic phase: the product is computed aside, and its values are copied */
static PetscErrorCode HybMatProductAside(Mat C)
{
  const Mat_Product *product = C->product;
  Mat                T;

  PetscFunctionBegin;
  PetscCall(MatProductCreate(product->A, product->B, product->type == MATPRODUCT_ABC ? product->C : NULL, &T));
  PetscCall(MatSetOptionsPrefix(T, ((PetscObject)C)->prefix));
  PetscCall(MatProductSetType(T, product->type));
  PetscCall(MatProductSetAlgorithm(T, product->alg));
  PetscCall(MatProductSetFill(T, product->fill));
  T->product->api_user = product->api_user;
  T->force_diagonals   = C->force_diagonals;
  PetscCall(MatProductSetFromOptions(T));
  PetscCall(MatProductSymbolic(T));
  PetscCall(MatProductNumeric(T));
  PetscCall(MatCopy(T, C, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_AIJHybridGPU(Mat C)
{
  const PetscLogDouble todevice = HybGlueState.counts.todevice, tohost = HybGlueState.counts.tohost;
  const PetscBool      before = C->assembled;
  const int            blocks = MatIsSeqAIJHybridGPU(C) ? 1 : MatIsMPIAIJHybridGPU(C) ? 2
                                                                                      : 0;
  HybMatProduct       *mp;
  HybOperands          o;
  PetscBool            whole;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  if (!blocks) {
    PetscCall(HybMatProductAside(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  mp = HybMatProductGet(C);
  PetscCheck(mp, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER, "The symbolic phase's data of this product is gone (MatProductClear()): call MatProductSetFromOptions() and MatProductSymbolic() again");
  PetscCall(HybOperandsMats(C, blocks, &o));
  ierr = HybMatProductNumeric(C, mp, &o, &whole);
  /* Zeros of a symbolic phase may be used until their numeric phase fails, wherever that is. On all processes alike:
     C->assembled is each one's own. */
  if (ierr && mp->zeros) HybResultHalfMade(C, mp);
  if (ierr && blocks == 1 && mp->pending && !before) C->assembled = PETSC_FALSE;
  ierr = HybErrorFirst(ierr, HybOperandsRestore(&o));
  if (blocks == 2 && whole) ierr = HybErrorFirst(ierr, HybParResultEnd(C, mp, before)); /* the others are there */
  PetscCall(ierr);
  if (blocks == 1) {
    mp->pending = PETSC_FALSE;
    HybResultAssembled(C, before);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscInfo(C, "Numeric phase of the product %s: %.0f bytes taken to the device, %.0f to the host\n", MatProductTypes[C->product->type], (double)(HybGlueState.counts.todevice - todevice), (double)(HybGlueState.counts.tohost - tohost)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In-tree code also calls the old slots, which name their operands. These are the product's own, except where a caller
   swapped them. */
static PetscErrorCode MatMatMatOldNumeric_AIJHybridGPU(Mat A, Mat B, Mat C, Mat D)
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
  ierr       = MatProductNumeric_AIJHybridGPU(D);
  product->A = were[0];
  product->B = were[1];
  product->C = were[2];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatOldNumeric_AIJHybridGPU(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  MatCheckProduct(C, 3);
  PetscCall(MatMatMatOldNumeric_AIJHybridGPU(A, B, NULL, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what MatMatMult() and its like call for the numeric phase alone of products that are there */
static void HybMatProductSetOps(Mat C)
{
  C->ops->productnumeric = MatProductNumeric_AIJHybridGPU;
  switch (C->product->type) {
  case MATPRODUCT_AB:
    C->ops->matmultnumeric = MatMatOldNumeric_AIJHybridGPU;
    break;
  case MATPRODUCT_AtB:
    C->ops->transposematmultnumeric = MatMatOldNumeric_AIJHybridGPU;
    break;
  case MATPRODUCT_ABt:
    C->ops->mattransposemultnumeric = MatMatOldNumeric_AIJHybridGPU;
    break;
  case MATPRODUCT_PtAP:
    C->ops->ptapnumeric = MatMatOldNumeric_AIJHybridGPU;
    break;
  case MATPRODUCT_RARt:
    C->ops->rartnumeric = MatMatOldNumeric_AIJHybridGPU;
    break;
  case MATPRODUCT_ABC:
    C->ops->matmatmultnumeric = MatMatMatOldNumeric_AIJHybridGPU;
    break;
  default:
    break;
  }
}

/* C as an empty matrix of the type, with the choices of the first operand that has some; *choices: this product's */
static PetscErrorCode HybMatProductHeader(Mat C, HybProductType type, HybOperands *o, HybChoices **choices)
{
  PetscLayout rows = HybOperandsLayout(o, shapes[type][0]), columns = HybOperandsLayout(o, shapes[type][1]);
  HybChoices *from;
  PetscBool   ours  = o->blocks == 2 ? MatIsMPIAIJHybridGPU(C) : MatIsSeqAIJHybridGPU(C);
  Mat         first = NULL;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n && !first; k++)
    if (o->blocks == 2 ? MatIsMPIAIJHybridGPU(o->mat[k]) : MatIsSeqAIJHybridGPU(o->mat[k])) first = o->mat[k];
  PetscCheck(first, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "No operand of the product is of type %s", o->blocks == 2 ? MATMPIAIJHYBRIDGPU : MATSEQAIJHYBRIDGPU);
  PetscCall(MatSetSizes(C, rows->n, columns->n, rows->N, columns->N));
  /* block sizes go with the sizes: GAMG and the block methods live by them */
  if (rows->bs > 0) PetscCall(PetscLayoutSetBlockSize(C->rmap, rows->bs));
  if (columns->bs > 0) PetscCall(PetscLayoutSetBlockSize(C->cmap, columns->bs));
  if (o->blocks == 2) {
    PetscErrorCode ierr = HybParLayoutAs(rows, &C->rmap);

    ierr = HybErrorFirst(ierr, HybParLayoutAs(columns, &C->cmap));
    /* also after an error: it takes PETSc's tags, of which all must have taken as many */
    if (!ours) ierr = HybErrorFirst(ierr, MatSetType(C, MATMPIAIJHYBRIDGPU));
    PetscCall(ierr);
  } else if (ours)
    PetscCall(MatSetType(C, ((PetscObject)first)->type_name));
  else
    PetscCall(MatSeqAIJHybridGPUSetTypeOf(first, C));
  PetscCall(HybMatProductChoices(first, o->blocks, &from));
  PetscCall(HybMatProductChoices(C, o->blocks, choices));
  if (!ours) **choices = *from; /* new: it runs where its operands do */
  if (o->blocks == 1) *choices = from;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first symbolic phase. As the parent's, whose most parallel ones end with an assembly; the sequential ones, and
   P^T A P, leave it to the numeric phase and count a new pattern alone. */
static PetscErrorCode HybMatProductFirst(Mat C, PetscErrorCode before, const HybChoices *choices, HybOperands *o, HybMatProduct *mp)
{
  const PetscObjectState nonzerostate = C->nonzerostate, assembled = C->ass_nonzerostate;
  const PetscInt         count = C->num_ass;
  PetscObjectState       state;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)C, &state));
  PetscCall(HybMatProductCreate(C, mp, choices, before, o, &mp->exec));
  ierr = HybOperandsSend(o, &mp->exec, PETSC_FALSE);
  PetscCall(HybMatProductSymbolic(C, mp, PETSC_FALSE, ierr, o));
  mp->pending = (PetscBool)(mp->blocks == 1 || mp->type == HYB_PRODUCT_PTAP);
  PetscCall(PetscObjectStateSet((PetscObject)C, state + (mp->pending ? 0 : 1)));
  if (mp->blocks == 1) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
    if (hyb->copy.values) PetscCall(HybMarkSet(C, PETSC_FALSE, &hyb->copy.mark));
    C->assembled        = PETSC_FALSE;
    C->num_ass          = count;
    C->ass_nonzerostate = assembled;
  } else if (mp->pending) {
    PetscCall(MatMPIAIJHybridGPUUnmade(C));
    C->nonzerostate     = nonzerostate;
    C->ass_nonzerostate = assembled;
  } else
    C->num_ass++;
  if (mp->refuses) PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatProductMake(Mat C, int blocks, HybMatProduct *mp, PetscErrorCode before)
{
  const Mat_Product *product  = C->product;
  const PetscBool    parallel = (PetscBool)(blocks == 2);
  HybChoices        *choices  = NULL;
  HybOperands        o;
  PetscBool          ours, asked = PETSC_FALSE;
  PetscErrorCode     ierr = before;

  PetscFunctionBegin;
  mp->blocks = blocks;
  PetscCall(HybMatProductType(product->type, &mp->type));
  PetscCall(HybOperandsMats(C, mp->blocks, &o));
  PetscCall(HybOperandsConform(C, mp->type, &o));
  if (!ierr) ierr = HybOperandsGet(C, PETSC_FALSE, &o);
  if (parallel || !ierr) ierr = HybErrorFirst(ierr, HybMatProductHeader(C, mp->type, &o, &choices));
  /* A^T A of a matrix that is said to be symmetric is A A, as AIJ's: also where it is not, GAMG's graphs but for
     rounding */
  if (!parallel && mp->type == HYB_PRODUCT_ATB && product->A == product->B && product->A->symmetric == PETSC_BOOL3_TRUE) mp->type = HYB_PRODUCT_AB;
  /* the algorithm named for this product, else the one of the options */
  if (!ierr) ierr = HybGlueProductAlgorithm(C, (PetscBool)!parallel, mp->method, sizeof(mp->method), &ours, &asked);
  if (!ierr && !asked) ierr = PetscStrncpy(mp->method, choices->spgemm, sizeof(mp->method));
  /* here: an error after the symbolic phase would be this process's alone */
  if (!ierr && parallel) ierr = HybParResultRefusesOthers(mp->type, &mp->refuses);
  HybCallBoth(HybMatProductFirst(C, ierr, choices, &o, mp), HybOperandsRestore(&o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatProductNew(Mat C, int blocks)
{
  HybMatProduct *mp = NULL, none;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCheck(!C->product->data, PetscObjectComm((PetscObject)C), PETSC_ERR_PLIB, "The product's data is not empty");
  ierr = PetscCalloc(sizeof(*mp) + (size_t)blocks * sizeof(mp->block[0]), &mp);
  if (ierr) mp = NULL;
  ierr = HybMatProductMake(C, blocks, mp ? mp : &none, ierr);
  if (ierr && mp) (void)HybMatProductFree(mp);
  PetscCall(ierr);
  PetscCall(HybMatProductSet(C, mp));
  HybMatProductSetOps(C);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_SeqAIJHybridGPU(Mat C)
{
  return HybMatProductNew(C, 1);
}

static PetscErrorCode MatProductSymbolic_MPIAIJHybridGPU(Mat C)
{
  return HybMatProductNew(C, 2);
}

/* By an algorithm of the sequential parent's, whose numeric phases write C's array past all functions, that of A B^T
   one value more than there are: the values stay where they are */
static PetscErrorCode MatProductSymbolic_SeqAIJHybridGPU_Parents(Mat C)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(MatSeqAIJHybridGPUDemote(C)); /* the arrays are replaced */
  PetscCall((*HybGlueState.seq.productsetfromoptions)(C));
  PetscCall((*C->ops->productsymbolic)(C));
  if (!MatIsSeqAIJHybridGPU(C)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  hyb->lentarrays = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the parallel parent, which knows no name of ours, and would read it again */
static PetscErrorCode HybMatProductByDefault(Mat C)
{
  PetscOptions   empty = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatProductSetAlgorithm(C, "default"));
  PetscCall(PetscOptionsCreate(&empty));
  PetscCall(PetscOptionsPush(empty));
  ierr = (*HybGlueState.mpi.productsetfromoptions)(C);
  (void)PetscOptionsPop();
  (void)PetscOptionsDestroy(&empty);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatProductSetFromOptions(Mat C, PetscBool seq)
{
  Mat_Product *product = C->product;
  const Mat    mats[3] = {product->A, product->B, product->C};
  char         method[64];
  PetscBool    ours, asked, derived = PETSC_FALSE, aij = PETSC_TRUE;

  PetscFunctionBegin;
  for (int k = 0; k < (product->type == MATPRODUCT_ABC ? 3 : 2) && aij; k++) PetscCall(PetscObjectBaseTypeCompare((PetscObject)mats[k], seq ? MATSEQAIJ : MATMPIAIJ, &aij));
  if (seq && !aij) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueProductAlgorithm(C, seq, method, sizeof(method), &ours, &asked));
  if (ours && !asked) PetscCall(HybMatProductIsDerived(C, seq, &derived));
  if (ours && !derived) {
    if (aij && (seq || HybGlueState.options.parallelproducts))
      C->ops->productsymbolic = seq ? MatProductSymbolic_SeqAIJHybridGPU : MatProductSymbolic_MPIAIJHybridGPU;
    else
      PetscCall(HybMatProductByDefault(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!ours) {
    HybGlueState.counts.fallbacks++;
    HybGlueState.counts.fallbacksasked++;
    PetscCall(PetscStrncpy(HybGlueState.counts.parents, method, sizeof(HybGlueState.counts.parents)));
    PetscCall(PetscInfo(C, "Product %s by the parent's algorithm %s, as asked\n", MatProductTypes[product->type], method));
  }
  PetscCall((*(seq ? &HybGlueState.seq : &HybGlueState.mpi)->productsetfromoptions)(C));
  if (seq && !ours && C->ops->productsymbolic) C->ops->productsymbolic = MatProductSymbolic_SeqAIJHybridGPU_Parents;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_SeqAIJHybridGPU(Mat C)
{
  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(HybMatProductSetFromOptions(C, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_MPIAIJHybridGPU(Mat C)
{
  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(HybMatProductSetFromOptions(C, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

HybMatProduct *HybMatProductOf(Mat C)
{
  HybMatProduct *mp = C->ops->productnumeric == MatProductNumeric_AIJHybridGPU ? HybMatProductGet(C) : NULL;

  return mp && (mp->one || mp->several) ? mp : NULL;
}
