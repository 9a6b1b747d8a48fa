/*
  MatProduct for sequential matrices of ours and for mixed operands: which algorithm was asked for, symbolic and numeric
  phases over the product room, and the results' way into the base class.
*/
#include "seq.h"
#include "coo.h"
#include "kept.h"
#include "../storage/where.h"

/* What a product keeps */
typedef struct {
  HybProduct     product;
  HybProductType type;       /* as it is computed */
  char           method[32]; /* that was asked for, by the product's algorithm or the options */
  HybExec        exec;
  PetscInt       noperands;
  struct {
    PetscObjectId id;
    HybPatternKey key;
    PetscInt      m, n;
    PetscCount    nnz;
    uint64_t      pattern;  /* a hash of i and j, 0: not known */
    PetscBool     unsorted; /* a copy of it was sorted */
  } operand[3];
  struct { /* whose values the last numeric phase saw; id 0: nobody's */
    PetscObjectId    id;
    PetscObjectState state;
    PetscCount       moves;
  } values[3];
  PetscBool hashes;  /* patterns are known by their hashes too: other operands have taken the first ones' place */
  PetscBool again;   /* the numeric phase is not the first one */
  PetscBool pending; /* no numeric phase has made C whole yet */
  struct {           /* C's pattern, in which the product's is: another operation may have given it another one since */
    PetscCount       made, adoptions, generation, nnz;
    PetscObjectState nonzerostate;
  } result;
  HybKept kept; /* where C has entries that the product lacks, be it by MAT_FORCE_DIAGONAL_ENTRIES */
} HybMatProduct;

static PetscErrorCode HybMatProductEmpty(HybMatProduct *mp)
{
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  ierr  = HybProductDestroy(&mp->product);
  later = HybKeptReset(&mp->kept);
  PetscCall(ierr);
  PetscCall(later);
  PetscFunctionReturn(PETSC_SUCCESS);
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

/* PETSc hands the context over again where this fails (MatProductClear(), then MatDestroy()): it goes with the call
   that ends well */
static PetscErrorCode HybMatProductDestroy(HybProductCtxArg *arg)
{
  HybMatProduct *mp = (HybMatProduct *)HYB_PRODUCT_CONTEXT(arg);

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
  char           text[1024];

  PetscFunctionBegin;
  if (!mp) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybProductDescribe(mp->product, text, sizeof(text)));
  PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU product %s\n", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Where the parent keeps nothing in C->product->data its symbolic phase may come again, which PETSc refuses where there
  is something. So ours goes with a matrix without a type, which PETSc has room for beside the product, and destroys
  with it. mp is taken over.
*/
static PetscErrorCode HybMatProductSet(Mat C, HybMatProduct *mp)
{
  Mat_Product *product = C->product;

  PetscFunctionBegin;
  if (product->type == MATPRODUCT_AB || product->type == MATPRODUCT_PtAP) {
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

/* Operands as the host sees them, and as the executing backend does */
typedef struct {
  Mat        mat[3];
  HybLent    lent[3];
  HybCSR     csr[3];
  PetscBool  copied[3]; /* csr is a copy's whose rows are sorted */
  HybArena   sent;      /* device copies of operands that are not ours, and sorted ones */
  PetscInt   n;
  PetscCount work; /* nonzeros of all operands */
} HybOperands;

static PetscErrorCode HybOperandsGet(Mat C, PetscBool values, HybOperands *o)
{
  Mat_Product *product = C->product;
  Mat          mats[3];

  PetscFunctionBegin;
  mats[0] = product->A;
  mats[1] = product->B;
  mats[2] = product->C;
  o->n    = product->type == MATPRODUCT_ABC ? 3 : 2;
  o->work = 0;
  for (PetscInt k = 0; k < o->n; k++) {
    o->mat[k] = mats[k];
    PetscCheck(mats[k], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s is missing", (char)('A' + k), MatProductTypes[product->type]);
    /* the parent's symbolic phases make a pattern and leave the assembly to the numeric one: parallel products of mixed
       types build on such results */
    PetscCheck(mats[k]->assembled || (!values && mats[k]->product && mats[k]->preallocated) || HybPatternIsWhole(mats[k]), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s is not assembled", (char)('A' + k), MatProductTypes[product->type]);
    PetscCall(HybLentGet(mats[k], values, &o->lent[k]));
    PetscCheck(!values || o->lent[k].csr.a || !o->lent[k].csr.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Operand %c of the product %s holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY)", (char)('A' + k), MatProductTypes[product->type], (PetscInt64)o->lent[k].csr.nnz);
    o->csr[k] = o->lent[k].csr;
    o->work += o->lent[k].csr.nnz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the operands to where the product runs. One matrix may be several operands. */
static PetscErrorCode HybOperandsSend(HybOperands *o, const HybExec *x, PetscBool values)
{
  PetscFunctionBegin;
  PetscCall(HybArenaInit(&o->sent, x));
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < o->n; k++) {
    PetscInt same = 0;

    while (o->mat[same] != o->mat[k]) same++;
    if (same < k)
      o->csr[k] = o->csr[same];
    else
      PetscCall(HybOperandSend(o->mat[k], &o->lent[k], x, values, &o->sent, &o->csr[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* told: -info knows that it is not sorted */
static PetscErrorCode HybOperandSort(HybOperands *o, PetscInt k, const HybExec *x, PetscBool told)
{
  static const char *const roles[] = {"A", "B", "C"};
  PetscInt                 same    = 0;

  PetscFunctionBegin;
  if (o->copied[k]) PetscFunctionReturn(PETSC_SUCCESS);
  while (o->mat[same] != o->mat[k]) same++;
  if (same < k) {
    o->csr[k]    = o->csr[same];
    o->copied[k] = o->copied[same];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  o->copied[k] = told;
  PetscCall(HybLentSort(o->mat[k], &o->lent[k], x, NULL, roles[k], &o->sent, &o->csr[k], &o->copied[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybOperandsRestore(HybOperands *o)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&o->sent));
  for (PetscInt k = 0; k < o->n; k++) PetscCall(HybLentRestore(o->mat[k], &o->lent[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whose rows are the result's, and whose columns: operand dim[d] / 2, its rows if dim[d] is even, else its columns */
static void HybMatProductShape(HybProductType type, const HybOperands *o, int dim[2], PetscInt size[2])
{
  static const int dims[][2] = {
    {0, 3},
    {1, 3},
    {0, 2},
    {3, 3},
    {2, 2},
    {0, 5}
  }; /* by HybProductType */

  for (int d = 0; d < 2; d++) {
    const HybCSR *M = &o->lent[dims[type][d] / 2].csr;

    dim[d]  = dims[type][d];
    size[d] = dim[d] % 2 ? M->n : M->m;
  }
}

/* C gets the product's pattern, whose arrays are taken over; again: it may keep a wider one that it has */
static PetscErrorCode HybMatProductPattern(Mat C, HybMatProduct *mp, PetscBool again, HybArena *arrays, HybCSR *result)
{
  const HybExec       *x      = &mp->exec;
  PetscBool            within = PETSC_FALSE, equal = PETSC_FALSE, taken = PETSC_FALSE;
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  if (again) PetscCall(HybKeptWithin(C, x, result, &within, &equal));
  if (equal)
    PetscCall(HybArenaReset(arrays));
  else if (within)
    PetscCall(HybKeptSet(&mp->kept, arrays, result));
  else {
    if (C->force_diagonals)
      PetscCall(HybKeptForceDiagonal(x, &mp->kept, arrays, result));
    else if (!again && !HybExecOnDevice(x))
      PetscCall(MatSeqAIJHybridGPUTakeSmall(C, arrays, result, &taken));
    if (!taken) PetscCall(HybExecOnDevice(x) ? MatSeqAIJHybridGPUAdoptDevice(C, x, arrays, result) : MatSeqAIJHybridGPUAdopt(C, arrays, result));
    PetscCall(HybCOOParentsGone((PetscObject)C, "HybCOO", &hyb->coocount));
  }
  PetscCall(HybLentGet(C, PETSC_FALSE, &l));
  mp->result.made         = hyb->made;
  mp->result.adoptions    = hyb->adoptions;
  mp->result.generation   = hyb->generation;
  mp->result.nnz          = l.csr.nnz;
  mp->result.nonzerostate = C->nonzerostate;
  PetscCall(HybLentRestore(C, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Symbolic phase on operands that are where it runs; C's old contents, if any, are replaced, or kept (again) */
static PetscErrorCode HybMatProductSymbolic(Mat C, HybMatProduct *mp, PetscBool again, HybOperands *o)
{
  HybArena       arrays;
  HybCSR         result;
  const HybExec *x = &mp->exec;
  const char    *method;
  const HybCSR  *list[3];
  uint64_t       hash[3];
  PetscInt       of[3], n = 0;
  char           text[1024];
  PetscBool      info;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  mp->noperands = 0; /* of none, if this fails */
  mp->again     = PETSC_FALSE;
  HybRecordProduct(C, MatProductTypes[C->product->type], o->mat[0]);
  PetscCall(HybRecordBegin(HYB_RECORD_SYMBOLIC, C, x));
  for (PetscInt k = 0; k < o->n; k++) {
    PetscCall(HybOperandSort(o, k, x, PETSC_FALSE));
    PetscCall(PetscObjectGetId((PetscObject)o->mat[k], &mp->operand[k].id));
    PetscCall(HybPatternKeyGet(o->mat[k], &o->lent[k].csr, &mp->operand[k].key));
    mp->operand[k].m        = o->csr[k].m;
    mp->operand[k].n        = o->csr[k].n;
    mp->operand[k].nnz      = o->csr[k].nnz;
    mp->operand[k].unsorted = o->copied[k];
    mp->operand[k].pattern  = 0;
    /* of ours it is known whether they are the same ones; for others in their place the phase is repeated once, on the
       host, before hashes are made, which take a fifth of a first product of short rows */
    if (!mp->hashes && !HybExecOnDevice(x) && mp->operand[k].key.made) continue;
    list[n] = &o->csr[k];
    of[n++] = k;
  }
  PetscCall(HybPatternHash(x, n, list, hash));
  for (PetscInt q = 0; q < n; q++) mp->operand[of[q]].pattern = hash[q];
  PetscCall(HybKeptReset(&mp->kept));
  PetscCall(HybArenaInit(&arrays, x));
  PetscCall(HybEventBegin(HybGlueState.event.productsymbolic, C, 0, 0, 0));
  ierr = HybProductSetBlockSize(mp->product, HybMatProductBlockSize(o->n, o->mat));
  if (!ierr) ierr = HybProductSymbolic(mp->product, &o->csr[0], &o->csr[1], o->n == 3 ? &o->csr[2] : NULL, &arrays, &result);
  /* a symbolic result may be used as it is: no stray values */
  if (!ierr) ierr = x->backend->zero(x, result.a, sizeof(HybScalar) * (size_t)result.nnz);
  if (!ierr) ierr = HybMatProductPattern(C, mp, again, &arrays, &result);
  if (ierr) { /* nothing of a failed result stays behind */
    (void)HybArenaReset(&arrays);
    PetscCall(ierr);
  }
  PetscCall(HybEventEnd(HybGlueState.event.productsymbolic, C, 0, 0, 0));
  if (HybExecOnDevice(x)) HybGlueState.counts.deviceops++;
  mp->noperands = o->n;
  PetscCall(HybProductGetMethod(mp->product, &method));
  PetscCall(HybGlueCountProduct(method));
  PetscCall(PetscInfoEnabled(MAT_CLASSID, &info));
  text[0] = 0;
  if (info || HybRecording()) PetscCall(HybProductDescribe(mp->product, text, sizeof(text)));
  HybRecordTell(text);
  PetscCall(HybRecordEnd(HYB_RECORD_SYMBOLIC, C, x, method, MatProductTypes[C->product->type], 0, 0));
  PetscCall(PetscInfo(C, "Product on the %s: %s; result %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros\n", HybExecOnDevice(x) ? "device" : "host", text, result.m, result.n, (PetscInt64)result.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the operands of the pattern that the symbolic phase saw? Other Mats may stand in for the first ones. Of matrices
   of ours it is known that nothing has moved; of others nothing is: states begin anew where PETSc replaces what a
   matrix holds, and may come to the same number. Nothing is noted unless all are of the plan's patterns: else the
   next phase would take them for those of the plan. */
static PetscErrorCode HybMatProductSamePattern(HybMatProduct *mp, HybOperands *o, PetscBool *same)
{
  PetscObjectId id[3];
  HybPatternKey key[3];
  const HybCSR *list[3];
  uint64_t      hash[3];
  PetscInt      of[3], n = 0;

  PetscFunctionBegin;
  *same = (PetscBool)(mp->noperands == o->n);
  for (PetscInt k = 0; k < o->n && *same; k++) {
    HybCSR *M = &o->csr[k];

    PetscCall(PetscObjectGetId((PetscObject)o->mat[k], &id[k]));
    PetscCall(HybPatternKeyGet(o->mat[k], &o->lent[k].csr, &key[k]));
    if (key[k].made && id[k] == mp->operand[k].id && HybPatternKeyEqual(&key[k], &mp->operand[k].key)) continue;
    *same   = (PetscBool)(M->m == mp->operand[k].m && M->n == mp->operand[k].n && M->nnz == mp->operand[k].nnz && mp->operand[k].pattern);
    list[n] = M;
    of[n++] = k;
  }
  if (*same) PetscCall(HybPatternHash(&mp->exec, n, list, hash));
  for (PetscInt q = 0; q < n && *same; q++) *same = (PetscBool)(hash[q] == mp->operand[of[q]].pattern);
  for (PetscInt k = 0; k < o->n && *same; k++) {
    mp->operand[k].id  = id[k];
    mp->operand[k].key = key[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has nobody given C another pattern than it had after the symbolic phase? Its arrays may lie elsewhere. And does the
   product still run where it ran? C may have been bound to the CPU since. */
static PetscErrorCode HybMatProductSameResult(Mat C, const HybMatProduct *mp, PetscCount work, PetscBool *same)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybLent              l;
  PetscBool            ondevice = PETSC_FALSE;
  HybExec              x;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  PetscCall(HybLentGet(C, PETSC_FALSE, &l));
  *same = (PetscBool)(HybPatternIsWhole(C) && l.csr.nnz == mp->result.nnz && hyb->made == mp->result.made && hyb->adoptions == mp->result.adoptions && hyb->generation == mp->result.generation && C->nonzerostate == mp->result.nonzerostate);
  PetscCall(HybLentRestore(C, &l));
  if (!*same || !HybExecOnDevice(&mp->exec)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(C, &x, &ondevice));
  if (ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(C, &hyb->choices, work, &x));
  *same = HybExecOnDevice(&x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whose values an operand has, where they can be known again: device copies of ours follow the object's state as well.
   Others may be written past it. */
static PetscErrorCode HybMatProductValues(HybMatProduct *mp, Mat A, PetscObjectId *id, PetscObjectState *state, PetscCount *moves)
{
  PetscFunctionBegin;
  *id    = 0;
  *state = 0;
  *moves = 0;
  if (HybExecOnDevice(&mp->exec) && MatIsSeqAIJHybridGPU(A) && A->spptr) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    *moves = hyb->moves;
    PetscCall(PetscObjectGetId((PetscObject)A, id));
    PetscCall(PetscObjectStateGet((PetscObject)A, state));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The symbolic phase once more, for operands of another pattern, or because C lives elsewhere now */
static PetscErrorCode HybMatProductRepeat(Mat C, HybMatProduct *mp, HybOperands *o)
{
  HybChoices          *choices;
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  PetscInt             size[2];
  int                  dim[2];

  PetscFunctionBegin;
  mp->noperands = 0; /* of none, if this fails */
  mp->hashes    = PETSC_TRUE;
  HybMatProductShape(mp->type, o, dim, size);
  PetscCheck(size[0] == C->rmap->n && size[1] == C->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The operands' product %s is %" PetscInt_FMT " x %" PetscInt_FMT ", but the matrix to be used again is %" PetscInt_FMT " x %" PetscInt_FMT ": make a new one (MAT_INITIAL_MATRIX)", MatProductTypes[C->product->type], size[0], size[1],
             C->rmap->n, C->cmap->n);
  PetscCall(PetscInfo(C, "An operand's pattern, or where C lives, may have changed since the symbolic phase, which is repeated\n"));
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  choices = &hyb->choices;
  PetscCall(HybGlueGetExec(C, choices, o->work, &x));
  if (x.backend != mp->exec.backend) {
    HybProduct     product;
    PetscErrorCode ierr;

    PetscCall(HybProductCreate(&x, mp->type, HybMatProductMethod(&x, mp->method), choices->width, &product));
    ierr        = HybProductDestroy(&mp->product);
    mp->exec    = x;
    mp->product = product;
    PetscCall(ierr);
    PetscCall(HybArenaReset(&o->sent));
    for (PetscInt k = 0; k < o->n; k++) {
      o->csr[k]    = o->lent[k].csr;
      o->copied[k] = PETSC_FALSE;
    }
    PetscCall(HybOperandsSend(o, &x, PETSC_TRUE));
  }
  PetscCall(HybMatProductSymbolic(C, mp, PETSC_TRUE, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error came while C's values were written: nobody takes them for a result, be they read here or on the device. AIJ
   asks this of all that is not assembled; the next numeric phase that ends well, or an assembly, makes C whole. */
static PetscErrorCode HybMatProductHalfMade(Mat C)
{
  PetscFunctionBegin;
  C->assembled = C->was_assembled = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUValuesMoved(C));
  PetscCall(PetscObjectStateIncrease((PetscObject)C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values in C's storage */
static PetscErrorCode HybMatProductValuesOf(Mat C, HybMatProduct *mp, HybOperands *o)
{
  PetscBool      seen[3] = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};
  HybKeptWrite   w;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < o->n; k++) {
    PetscObjectId    id;
    PetscObjectState state;
    PetscCount       moves;

    PetscCall(HybMatProductValues(mp, o->mat[k], &id, &state, &moves));
    seen[k]          = (PetscBool)(id && id == mp->values[k].id && state == mp->values[k].state && moves == mp->values[k].moves);
    mp->values[k].id = 0; /* of nobody, if this fails */
  }
  PetscCall(HybProductUnchanged(mp->product, seen));
  ierr = HybKeptBegin(C, &mp->exec, &w);
  if (!ierr) ierr = HybProductNumeric(mp->product, &o->csr[0], &o->csr[1], o->n == 3 ? &o->csr[2] : NULL, mp->kept.padded ? &mp->kept.csr : &w.csr);
  for (PetscInt k = 0; k < o->n && !ierr; k++) ierr = HybMatProductValues(mp, o->mat[k], &mp->values[k].id, &mp->values[k].state, &mp->values[k].moves);
  if (!ierr) ierr = HybKeptEnd(C, &mp->exec, &mp->kept, PETSC_TRUE, &w);
  PetscCall(HybKeptFree(&w));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the first numeric phase knows, and the pattern's did not: how much of a value half precision loses */
PetscErrorCode HybMatProductTellLost(Mat C, HybProduct product, HybParProduct parallel)
{
  static const char *const names[] = {"1e-9 of values of A lost in half precision", "1e-9 of values of B lost in half precision"};
  PetscCount               lost[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(product ? HybProductGetCounter(product, names[k], &lost[k]) : HybParProductGetCounter(parallel, names[k], &lost[k]));
  if (lost[0] || lost[1]) PetscCall(PetscInfo(C, "Half precision: up to %g of a value of a left factor is lost, %g of a right one\n", 1e-9 * (double)lost[0], 1e-9 * (double)lost[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMatProductCompute(Mat C, HybMatProduct *mp, HybOperands *o)
{
  PetscLogDouble flops;
  size_t         bytes, peak;

  PetscFunctionBegin;
  PetscCall(HybRecordBegin(mp->again ? HYB_RECORD_AGAIN : HYB_RECORD_NUMERIC, C, &mp->exec));
  PetscCall(HybEventBegin(HybGlueState.event.productnumeric, C, 0, 0, 0));
  PetscCall(HybMatProductValuesOf(C, mp, o));
  PetscCall(HybProductGetInfo(mp->product, &flops, &bytes, &peak));
  if (HybExecOnDevice(&mp->exec) && PetscDefined(HAVE_DEVICE))
    PetscCall(PetscLogGpuFlops(flops));
  else
    PetscCall(PetscLogFlops(flops));
  PetscCall(HybEventEnd(HybGlueState.event.productnumeric, C, 0, 0, 0));
  if (HybRecording()) {
    const char *method;

    PetscCall(HybProductGetMethod(mp->product, &method));
    PetscCall(HybRecordEnd(mp->again ? HYB_RECORD_AGAIN : HYB_RECORD_NUMERIC, C, &mp->exec, method, MatProductTypes[C->product->type], flops, 0));
  }
  if (!mp->again && HybExecOnDevice(&mp->exec)) PetscCall(HybMatProductTellLost(C, mp->product, NULL));
  mp->again = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's numeric phases end with an assembly. What was said of values that were there before holds no more. */
void HybMatProductAssembled(Mat C, PetscBool before)
{
  if (before) C->was_assembled = PETSC_TRUE;
  C->assembled  = PETSC_TRUE;
  C->insertmode = NOT_SET_VALUES;
  if (C->num_ass) {
    if (!C->symmetry_eternal) C->symmetric = C->hermitian = PETSC_BOOL3_UNKNOWN;
    if (!C->structural_symmetry_eternal && C->ass_nonzerostate != C->nonzerostate) C->structurally_symmetric = PETSC_BOOL3_UNKNOWN;
    if (!C->spd_eternal) C->spd = PETSC_BOOL3_UNKNOWN;
  }
  C->num_ass++;
  C->ass_nonzerostate = C->nonzerostate;
}

static PetscErrorCode HybMatProductNumeric(Mat C, HybMatProduct *mp, HybOperands *o)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscBool            same;
  PetscCount           adoptions;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  PetscCall(HybExecRefresh(&mp->exec));
  PetscCall(HybProductSetStream(mp->product, mp->exec.stream));
  PetscCall(HybOperandsSend(o, &mp->exec, PETSC_TRUE));
  for (PetscInt k = 0; k < mp->noperands; k++)
    if (mp->operand[k].unsorted) PetscCall(HybOperandSort(o, k, &mp->exec, PETSC_TRUE));
  PetscCall(HybMatProductSamePattern(mp, o, &same));
  if (same) PetscCall(HybMatProductSameResult(C, mp, o->work, &same));
  adoptions = hyb->adoptions;
  ierr      = same ? PETSC_SUCCESS : HybMatProductRepeat(C, mp, o);
  if (ierr && hyb->adoptions == adoptions) PetscCall(ierr); /* C is what it was */
  if (!ierr) ierr = HybMatProductCompute(C, mp, o);
  if (ierr) (void)HybMatProductHalfMade(C);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C was converted to another type since its symbolic phase: the product is computed aside, and its values are copied */
PetscErrorCode HybMatProductAside(Mat C)
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

static PetscErrorCode MatProductNumeric_SeqAIJHybridGPU(Mat C)
{
  const PetscBool before = C->assembled;
  HybMatProduct  *mp;
  HybOperands     o;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  if (!MatIsSeqAIJHybridGPU(C)) {
    PetscCall(HybMatProductAside(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  mp = HybMatProductGet(C);
  PetscCheck(mp, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The symbolic phase's data of this product is gone (MatProductClear()): call MatProductSetFromOptions() and MatProductSymbolic() again");
  PetscCall(PetscMemzero(&o, sizeof(o)));
  PetscCall(HybOperandsGet(C, PETSC_TRUE, &o));
  /* the symbolic phase's pattern is whole */
  if (mp->pending && C->preallocated && C->insertmode == NOT_SET_VALUES && C->nonzerostate == mp->result.nonzerostate) C->assembled = PETSC_TRUE;
  ierr = HybMatProductNumeric(C, mp, &o);
  if (ierr && mp->pending && !before) C->assembled = PETSC_FALSE;
  PetscCall(HybOperandsRestore(&o));
  PetscCall(ierr);
  mp->pending = PETSC_FALSE;
  HybMatProductAssembled(C, before);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In-tree code also calls the old slots, which name their operands. These are the product's own, except where a caller
   swapped them. */
static PetscErrorCode MatMatMatOldNumeric_SeqAIJHybridGPU(Mat A, Mat B, Mat C, Mat D)
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
  ierr       = MatProductNumeric_SeqAIJHybridGPU(D);
  product->A = were[0];
  product->B = were[1];
  product->C = were[2];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatOldNumeric_SeqAIJHybridGPU(Mat A, Mat B, Mat C)
{
  PetscFunctionBegin;
  MatCheckProduct(C, 3);
  PetscCall(MatMatMatOldNumeric_SeqAIJHybridGPU(A, B, NULL, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what MatMatMult() and its like call for the numeric phase alone of products that are there */
void HybMatProductOldNumeric(Mat C, PetscErrorCode (*two)(Mat, Mat, Mat), PetscErrorCode (*three)(Mat, Mat, Mat, Mat))
{
  switch (C->product->type) {
  case MATPRODUCT_AB:
    C->ops->matmultnumeric = two;
    break;
  case MATPRODUCT_AtB:
    C->ops->transposematmultnumeric = two;
    break;
  case MATPRODUCT_ABt:
    C->ops->mattransposemultnumeric = two;
    break;
  case MATPRODUCT_PtAP:
    C->ops->ptapnumeric = two;
    break;
  case MATPRODUCT_RARt:
    C->ops->rartnumeric = two;
    break;
  case MATPRODUCT_ABC:
    C->ops->matmatmultnumeric = three;
    break;
  default:
    break;
  }
}

/* The first symbolic phase. As the parent's it leaves the assembly to the numeric one, and counts a new pattern
   alone. */
static PetscErrorCode HybMatProductFirst(Mat C, HybMatProduct *mp, HybOperands *o)
{
  const PetscObjectState assembled = C->ass_nonzerostate;
  const PetscInt         count     = C->num_ass;
  Mat_SeqAIJHybridGPU   *hyb       = NULL;
  PetscObjectState       state;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)C, &state));
  PetscCall(HybMatProductSymbolic(C, mp, PETSC_FALSE, o));
  PetscCall(PetscObjectStateSet((PetscObject)C, state));
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  if (hyb->copy.values) PetscCall(HybMarkSet(C, PETSC_FALSE, &hyb->copy.mark));
  C->assembled        = PETSC_FALSE;
  C->num_ass          = count;
  C->ass_nonzerostate = assembled;
  mp->pending         = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_SeqAIJHybridGPU(Mat C)
{
  Mat_Product         *product = C->product;
  Mat_SeqAIJHybridGPU *hyb     = NULL;
  HybMatProduct       *mp;
  HybOperands          o;
  HybProductType       type = HYB_PRODUCT_AB;
  PetscBool            ours, asked;
  PetscErrorCode       ierr;
  Mat                  first = NULL;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCheck(!product->data, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The product's data is not empty");
  PetscCall(HybMatProductType(product->type, &type));
  PetscCall(PetscMemzero(&o, sizeof(o)));
  PetscCall(HybOperandsGet(C, PETSC_FALSE, &o));
  for (PetscInt k = 0; k < o.n && !first; k++)
    if (MatIsSeqAIJHybridGPU(o.mat[k])) first = o.mat[k];
  PetscCheck(first, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No operand of the product is of type %s", MATSEQAIJHYBRIDGPU);
  {
    PetscInt size[2];
    int      dim[2];

    HybMatProductShape(type, &o, dim, size);
    PetscCall(MatSetSizes(C, size[0], size[1], size[0], size[1]));
    /* block sizes go with the sizes: GAMG and the block methods live by them */
    for (PetscInt k = 0; k < 2; k++) {
      PetscLayout map = dim[k] % 2 ? o.mat[dim[k] / 2]->cmap : o.mat[dim[k] / 2]->rmap;

      if (map->bs > 0) PetscCall(PetscLayoutSetBlockSize(k ? C->cmap : C->rmap, map->bs));
    }
  }
  PetscCall(MatSeqAIJHybridGPUGetData(first, &hyb));
  if (!MatIsSeqAIJHybridGPU(C)) { /* new: it runs where its operands do */
    Mat_SeqAIJHybridGPU *c = NULL;

    PetscCall(MatSeqAIJHybridGPUSetTypeOf(first, C));
    PetscCall(MatSeqAIJHybridGPUGetData(C, &c));
    c->choices = hyb->choices;
  } else
    PetscCall(MatSetType(C, ((PetscObject)first)->type_name));
  PetscCall(PetscNew(&mp));
  /* A^T A of a matrix that is said to be symmetric is A A, as AIJ's: also where it is not, GAMG's graphs but for
     rounding */
  mp->type = type == HYB_PRODUCT_ATB && product->A == product->B && product->A->symmetric == PETSC_BOOL3_TRUE ? HYB_PRODUCT_AB : type;
  /* the algorithm named for this product, else the one of the first operand's options */
  ierr = HybGlueProductAlgorithm(C, PETSC_TRUE, mp->method, sizeof(mp->method), &ours, &asked);
  if (!ierr && !asked) ierr = PetscStrncpy(mp->method, hyb->choices.spgemm, sizeof(mp->method));
  if (!ierr) ierr = HybGlueGetExec(C, &hyb->choices, o.work, &mp->exec);
  if (!ierr) ierr = HybOperandsSend(&o, &mp->exec, PETSC_FALSE);
  if (!ierr) ierr = HybProductCreate(&mp->exec, mp->type, HybMatProductMethod(&mp->exec, mp->method), hyb->choices.width, &mp->product);
  if (!ierr) ierr = HybMatProductFirst(C, mp, &o);
  if (ierr) {
    (void)HybProductDestroy(&mp->product);
    (void)HybKeptReset(&mp->kept);
    (void)PetscFree(mp);
  }
  PetscCall(HybOperandsRestore(&o));
  PetscCall(ierr);
  PetscCall(HybMatProductSet(C, mp));
  C->ops->productnumeric = MatProductNumeric_SeqAIJHybridGPU;
  HybMatProductOldNumeric(C, MatMatOldNumeric_SeqAIJHybridGPU, MatMatMatOldNumeric_SeqAIJHybridGPU);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operands that are sequential and of the AIJ family */
static PetscErrorCode HybOperandIsSeqAIJ(Mat A, PetscBool *flg)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By an algorithm of the parent's, whose numeric phases write C's array past all functions, that of A B^T one value
   more than there are: the values stay where they are */
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

PetscErrorCode MatProductSetFromOptions_SeqAIJHybridGPU(Mat C)
{
  Mat_Product *product = C->product;
  char         method[64];
  PetscBool    ours, asked, aij = PETSC_TRUE, derived = PETSC_FALSE;

  PetscFunctionBegin;
  MatCheckProduct(C, 1);
  PetscCall(HybOperandIsSeqAIJ(product->A, &aij));
  if (aij) PetscCall(HybOperandIsSeqAIJ(product->B, &aij));
  if (aij && product->type == MATPRODUCT_ABC) PetscCall(HybOperandIsSeqAIJ(product->C, &aij));
  if (!aij) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueProductAlgorithm(C, PETSC_TRUE, method, sizeof(method), &ours, &asked));
  if (ours && !asked) PetscCall(HybMatProductIsDerived(C, PETSC_TRUE, &derived));
  if (derived)
    PetscCall((*HybGlueState.seq.productsetfromoptions)(C));
  else if (ours)
    C->ops->productsymbolic = MatProductSymbolic_SeqAIJHybridGPU;
  else {
    HybGlueState.counts.fallbacks++;
    HybGlueState.counts.fallbacksasked++;
    PetscCall(PetscStrncpy(HybGlueState.counts.parents, method, sizeof(HybGlueState.counts.parents)));
    PetscCall(PetscInfo(C, "Product %s by the parent's algorithm %s, as asked\n", MatProductTypes[product->type], method));
    PetscCall((*HybGlueState.seq.productsetfromoptions)(C));
    if (C->ops->productsymbolic) C->ops->productsymbolic = MatProductSymbolic_SeqAIJHybridGPU_Parents;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUGetProduct(Mat C, HybProduct *product)
{
  PetscFunctionBegin;
  *product = C->ops->productnumeric == MatProductNumeric_SeqAIJHybridGPU && HybMatProductGet(C) ? HybMatProductGet(C)->product : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
