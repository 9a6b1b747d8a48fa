/*
  Sparse matrix products as stages.

  Each of PETSc's sparse products is a short list of transposes and multiplications:

    AB    C = A B
    AtB   T = A^T,  C = T B
    ABt   T = B^T,  C = A T
    PtAP  T = P^T,  W = A P,    C = T W
    RARt  T = R^T,  W = A T,    C = R W
    ABC   W = A B,  C = W C'

  so one driver over the rooms csr (transpose) and spgemm serves all of them on every backend; PtAP goes to a fused
  method of the ptap room instead where that method's cost rule says that it is cheaper.

    symbolic:  transpose symbolically what is to be transposed (keeping the permutation of the values);
               for each multiplication: symbolic product on patterns; W's pattern and values are kept for the numeric
               phases
    numeric: the first time, the methods' plans; gather the transpose's new values through the permutation, unless the
    caller says that the operand's are the old ones, or a plan takes the operand's by the permutation itself; for each
    multiplication: numeric product

  Memory: the transpose lives as long as the product (12 bytes a nonzero in double and 32-bit indices, 8 of them only
  where its values are gathered, plus 4 for the permutation, or 1 where a plan has places in its stead), and so does W;
  but columns of either are given back once the plans tell what is needed of them, before W's values are taken, and on a
  device these live in numeric phases alone, where memory comes from a pool. The transpose comes first: sorting takes
  more than it leaves.
  Cost: that of the multiplications; a transpose is O(nnz + rows + columns) once and one gather a numeric phase.

  No conjugation anywhere: PETSc's AtB, PtAP, RARt are plain transposes in complex arithmetic too.
*/
#include "aijhybridgpu/private/hybproduct.h"

#define HYB_PARTS_ASK   ((size_t)1 << 20)  /* bytes of A P's values from which the card is asked what is free */
#define HYB_PARTS_LARGE ((size_t)64 << 20) /* bytes of A P's values that come at once */

typedef struct {
  PetscBool used;
  PetscBool current; /* its values are those of the last numeric phase */
  PetscInt  operand; /* which of the caller's operands is transposed */
  HybCSR    T;
  PetscInt *perm; /* of its values; NULL: a plan knows them */
} Transposed;

struct _HybProduct {
  HybExec        exec;
  HybProductType type;
  char           method[32];
  PetscInt       width;
  HybArena       keep, work;
  Transposed     transposed;
  PetscInt       nstages;
  HybSpGEMM     *stage[2];           /* made when they are needed: a block of this size comes at once */
  const HybCSR  *left[2], *right[2]; /* of each stage; from phase to phase, T and W alone are the same */
  HybCSR        *made[2];
  HybCSR         W;                 /* the intermediate product of two-stage products */
  HybPtAP       *fused;             /* NULL: the stages do it */
  PetscBool      frugal;            /* the last numeric phase took no memory */
  PetscCount     lost;              /* plans given back until its end */
  PetscInt       inparts;           /* what A P is made in; 0: not known yet */
  PetscBool      reuse;             /* more than one numeric phase is expected */
  PetscInt       blocksize;         /* of all operands, as the caller says */
  PetscBool      pattern;           /* the caller has room for the result's values */
  PetscBool      same[3];           /* operands that the next numeric phase sees with the values of the last one */
  PetscCount     gathers;           /* of a transpose's values */
  PetscCount     shed;              /* columns given back */
  size_t         resultbytes, peak; /* the most ever held, result included */
};

static const char *const HybProductTypes[] = {"AB", "AtB", "ABt", "PtAP", "RARt", "ABC"};

PetscErrorCode HybProductCreate(const HybExec *x, HybProductType type, const char *method, PetscInt width, HybProduct *product)
{
  HybProduct p;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(1, &p));
  *product = p;
  p->exec  = *x;
  p->type  = type;
  p->width = width;
  p->reuse = (PetscBool)(type == HYB_PRODUCT_PTAP || type == HYB_PRODUCT_RART);
  PetscCall(PetscStrncpy(p->method, method && method[0] ? method : "auto", sizeof(p->method)));
  p->keep = HybArenaOn(x);
  p->work = HybArenaOn(x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A plan that was given back since will be missed, or made again; one that is due takes memory, clears some of it, and
   waits. */
PetscBool HybProductWasFrugal(HybProduct p)
{
  for (PetscInt s = 0; s < p->nstages; s++)
    if (p->stage[s]->due) return PETSC_FALSE;
  return (PetscBool)(p->frugal && HybProductGetCounter(p, "plans given back") == p->lost);
}

void HybProductSetStream(HybProduct p, void *stream)
{
  /* not the arenas': what they take and clear is in the order of the stream in use, see HybBackend.use() */
  p->exec.stream = stream;
  for (int k = 0; k < 2; k++) {
    if (p->stage[k]) p->stage[k]->exec.stream = stream;
  }
  if (p->fused) p->fused->exec.stream = stream;
}

static PetscErrorCode HybProductResetFused(HybProduct p)
{
  HybPtAP       *fused = p->fused;
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!fused) PetscFunctionReturn(PETSC_SUCCESS);
  p->fused = NULL;
  if (fused->method->destroy) ierr = fused->method->destroy(fused);
  ierr = HybErrorFirst(ierr, HybArenaResetBoth(&fused->keep, &fused->work));
  PetscCall(HybErrorFirst(ierr, PetscFree(fused)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees what an earlier symbolic phase left: all of it, and then reports the first error */
static PetscErrorCode HybProductReset(HybProduct p)
{
  PetscErrorCode ierr[5];

  PetscFunctionBegin;
  for (PetscInt s = 0; s < 2; s++) {
    ierr[s] = p->stage[s] ? HybSpGEMMDestroy(p->stage[s]) : PETSC_SUCCESS;
    ierr[s] = HybErrorFirst(ierr[s], PetscFree(p->stage[s]));
  }
  ierr[2]            = HybProductResetFused(p);
  p->nstages         = 0;
  p->transposed.used = p->transposed.current = PETSC_FALSE;
  p->gathers = p->shed = p->inparts = 0;
  p->frugal                         = PETSC_FALSE;
  ierr[3]                           = HybArenaReset(&p->work);
  ierr[4]                           = HybArenaReset(&p->keep);
  for (int k = 0; k < 5; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybProductDestroy(HybProduct *product)
{
  PetscFunctionBegin;
  if (!*product) PetscFunctionReturn(PETSC_SUCCESS);
  HybCallBoth(HybProductReset(*product), PetscFree(*product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybProductCheckShapes(HybProduct p, const HybCSR *A, const HybCSR *B, const HybCSR *C)
{
  PetscBool ok = PETSC_FALSE;

  PetscFunctionBegin;
  switch (p->type) {
  case HYB_PRODUCT_AB:
    ok = (PetscBool)(A->n == B->m);
    break;
  case HYB_PRODUCT_ATB:
    ok = (PetscBool)(A->m == B->m);
    break;
  case HYB_PRODUCT_ABT:
    ok = (PetscBool)(A->n == B->n);
    break;
  case HYB_PRODUCT_PTAP:
    ok = (PetscBool)(A->m == A->n && A->n == B->m);
    break;
  case HYB_PRODUCT_RART:
    ok = (PetscBool)(A->m == A->n && A->n == B->n);
    break;
  case HYB_PRODUCT_ABC:
    PetscCheck(C, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "The product ABC needs three operands");
    PetscCheck(B->n == C->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Sizes do not conform for the product ABC: B is %" PetscInt_FMT " x %" PetscInt_FMT ", C %" PetscInt_FMT " x %" PetscInt_FMT, B->m, B->n, C->m, C->n);
    ok = (PetscBool)(A->n == B->m);
    break;
  }
  PetscCheck(ok, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Sizes do not conform for the product %s: the first operand is %" PetscInt_FMT " x %" PetscInt_FMT ", the second %" PetscInt_FMT " x %" PetscInt_FMT, HybProductTypes[p->type], A->m, A->n, B->m, B->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What each stage multiplies and makes, and the number of stages. T and W are the product's own. */
static PetscInt HybProductOperands(HybProduct p, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybCSR *result)
{
  const HybCSR *const T = &p->transposed.T, *const W = &p->W;
  const HybCSR *const left[][2] = {
    {A, NULL},
    {T, NULL},
    {A, NULL},
    {A, T   },
    {A, B   },
    {A, W   }
  }; /* by HybProductType */
  const HybCSR *const right[][2] = {
    {B, NULL},
    {B, NULL},
    {T, NULL},
    {B, W   },
    {T, W   },
    {B, C   }
  };
  const PetscInt n = left[p->type][1] ? 2 : 1;

  for (PetscInt s = 0; s < n; s++) {
    p->left[s]  = left[p->type][s];
    p->right[s] = right[p->type][s];
    p->made[s]  = s == n - 1 ? result : &p->W;
  }
  return n;
}

static PetscErrorCode HybProductTransposeSymbolic(HybProduct p, PetscInt operand, const HybCSR *M)
{
  Transposed *t = &p->transposed;
  HybExec     x = p->exec;

  PetscFunctionBegin;
  x.result = HYB_WORK(&p->exec);
  PetscCall(x.backend->csr->transposesymbolic(&x, &p->keep, &p->work, M, &t->T, &t->perm));
  PetscCall(HybArenaReset(&p->work));
  t->T.a     = NULL;
  t->used    = PETSC_TRUE;
  t->operand = operand;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* W's values live as long as a numeric phase */
static PetscBool HybProductPasses(HybProduct p, const HybCSR *C)
{
  return (PetscBool)(C == &p->W && HYB_WORK(&p->exec) == HYB_MEM_DEVICE);
}

/* One multiplication: its pattern, and room for its values. A numeric phase follows in any case, so the method does not
   see values, which it might multiply at once. M: what is transposed. */
static PetscErrorCode HybProductStageSymbolic(HybProduct p, PetscInt s, const HybCSR *M, HybMem result, HybArena *out)
{
  const HybCSR *L = p->left[s];
  HybCSR       *C = p->made[s], left = *L, right = *p->right[s];
  HybExec       x     = p->exec;
  PetscBool     fused = PETSC_FALSE;

  PetscFunctionBegin;
  left.a = right.a = NULL;
  x.result         = result;
  /* a fused method is none of a stage: where it declined, or where it was named for a parallel P^T A P and this is
     another of its products */
  for (const struct _HybPtAPMethod *const *m = p->exec.backend->ptap; m && *m && !fused; m++) PetscCall(PetscStrcmp(p->method, (*m)->name, &fused));
  PetscCall(PetscNew(&p->stage[s]));
  PetscCall(HybSpGEMMInit(p->stage[s], &x, fused ? "auto" : p->method, p->width));
  p->stage[s]->reuse      = p->reuse;
  p->stage[s]->blocksize  = p->blocksize;
  p->stage[s]->transposed = L == &p->transposed.T ? M->i : NULL;
  PetscCall(PetscMemzero(C, sizeof(*C)));
  PetscCall(HybSpGEMMSymbolic(p->stage[s], &left, &right, out, C));
  if (!C->a && !HybProductPasses(p, C) && !(p->pattern && C != &p->W)) PetscCall(HybArenaAlloc(out, result, C->nnz, sizeof(HybScalar), &C->a));
  p->nstages = s + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A fused Galerkin method: the one that was named, else the first that says it is cheaper than the stages. It may find
   that it cannot take the operands: then the stages do. */
static PetscErrorCode HybProductTryFused(HybProduct p, const HybCSR *A, const HybCSR *P, HybArena *out, HybCSR *result)
{
  PetscBool isauto, named;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(p->method, "auto", &isauto));
  for (const struct _HybPtAPMethod *const *m = p->exec.backend->ptap; m && *m && !p->fused; m++) {
    PetscBool flg = PETSC_TRUE;

    PetscCall(PetscStrcmp(p->method, (*m)->name, &named));
    if (!named && !isauto) continue;
    PetscCall(PetscNew(&p->fused));
    p->fused->exec   = p->exec;
    p->fused->method = *m;
    p->fused->keep   = HybArenaOn(&p->exec);
    p->fused->work   = HybArenaOn(&p->exec);
    if (!named && (*m)->applicable) PetscCall((*m)->applicable(p->fused, A, P, &flg));
    if (!flg) PetscCall(HybProductResetFused(p));
  }
  if (!p->fused) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(result, sizeof(*result)));
  PetscCall(p->fused->method->symbolic(p->fused, A, P, out, result));
  PetscCall(HybArenaReset(&p->fused->work));
  if (p->fused->declined) {
    PetscCall(HybProductResetFused(p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!result->a) PetscCall(HybArenaAlloc(out, p->exec.result, result->nnz, sizeof(HybScalar), &result->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybProductSymbolic_Inner(HybProduct p, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybArena *out, HybCSR *result)
{
  static const PetscInt transposed[] = {-1, 0, 1, 1, 1, -1}; /* by HybProductType */
  const PetscInt        operand      = transposed[p->type];
  PetscInt              n;

  PetscFunctionBegin;
  PetscCall(HybProductReset(p));
  PetscCall(HybProductCheckShapes(p, A, B, C));
  if (p->type == HYB_PRODUCT_PTAP) PetscCall(HybProductTryFused(p, A, B, out, result));
  if (!p->fused) {
    if (operand >= 0) PetscCall(HybProductTransposeSymbolic(p, operand, operand ? B : A));
    n = HybProductOperands(p, A, B, C, result);
    for (PetscInt s = 0; s < n; s++) PetscCall(HybProductStageSymbolic(p, s, operand ? B : A, s == n - 1 ? p->exec.result : HYB_WORK(&p->exec), s == n - 1 ? out : &p->keep));
  }
  p->resultbytes = out->bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what the product holds between phases */
static size_t HybProductHeld(HybProduct p)
{
  size_t bytes = p->keep.bytes + p->resultbytes;

  for (PetscInt s = 0; s < p->nstages; s++) bytes += p->stage[s]->keep.bytes;
  return bytes + (p->fused ? p->fused->keep.bytes : 0);
}

PetscErrorCode HybProductSymbolic(HybProduct p, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybArena *out, HybCSR *result)
{
  HybMemoryReport before, after;

  PetscFunctionBegin;
  PetscCall(HybProductReset(p));
  p->peak = 0;
  PetscCall(p->exec.backend->usage(&before, PETSC_TRUE));
  PetscCall(HybProductSymbolic_Inner(p, A, B, C, out, result));
  PetscCall(p->exec.backend->usage(&after, PETSC_FALSE));
  p->peak = after.since - (before.device_bytes + before.managed_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybProductSetReuse(HybProduct p)
{
  p->reuse = PETSC_TRUE;
}

void HybProductSetBlockSize(HybProduct p, PetscInt bs)
{
  p->blocksize = bs;
}

void HybProductSetPattern(HybProduct p)
{
  p->pattern = PETSC_TRUE;
}

PetscErrorCode HybProductUnchanged(HybProduct p, const PetscBool same[3])
{
  PetscFunctionBegin;
  PetscCall(PetscArraycpy(p->same, same, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of the product's own that no numeric phase reads any more go */
static PetscErrorCode HybProductShedOf(HybProduct p, HybCSR *M)
{
  int reads = 0;

  PetscFunctionBegin;
  for (PetscInt s = 0; s < p->nstages; s++) reads |= p->stage[s]->reads & ((p->left[s] == M ? HYB_SPGEMM_READS_A : 0) | (p->right[s] == M ? HYB_SPGEMM_READS_B : 0) | (p->made[s] == M ? HYB_SPGEMM_READS_C : 0));
  if (reads || !M->j) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt s = 0; s < p->nstages; s++)
    if (p->left[s] == M || p->right[s] == M || p->made[s] == M) p->stage[s]->columnsgone = PETSC_TRUE;
  PetscCall(HybArenaFree(&p->keep, &M->j));
  p->shed += M->nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybProductShed(HybProduct p)
{
  PetscFunctionBegin;
  if (p->transposed.used) PetscCall(HybProductShedOf(p, &p->transposed.T));
  if (p->nstages > 1) PetscCall(HybProductShedOf(p, &p->W));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose's values, if they are the old ones no more; of a stage that takes them by the permutation, where they
   stand in the operand */
static PetscErrorCode HybProductTransposeNumeric(HybProduct p, const HybCSR *M)
{
  Transposed *t = &p->transposed;

  PetscFunctionBegin;
  for (PetscInt s = 0; s < p->nstages; s++) {
    if (p->left[s] != &t->T) continue;
    p->stage[s]->transposed = M->i; /* also of a method that plans in this phase: the last one's may be gone */
    if (!p->stage[s]->permutes) continue;
    if (t->current) PetscCall(HybArenaFree(&p->keep, &t->T.a)); /* gathered before there was that plan */
    t->current               = PETSC_FALSE;
    p->stage[s]->permutation = t->perm;
    t->T.a                   = M->a;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (t->current && p->same[t->operand]) PetscFunctionReturn(PETSC_SUCCESS);
  t->current = PETSC_FALSE;
  if (!t->T.a) PetscCall(HybArenaAlloc(&p->keep, HYB_WORK(&p->exec), t->T.nnz, sizeof(HybScalar), &t->T.a));
  PetscCall(p->exec.backend->csr->gather(&p->exec, t->T.nnz, t->perm, PETSC_FALSE, M->a, t->T.a));
  t->current = PETSC_TRUE;
  p->gathers++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In how many parts A P is made. Each doubling costs an eighth to a fifth of the time (docs/tried.md, Thresholds). So
   two are for values that take more than half of what A does, and more are for where a part would take more than a
   quarter of what is free in the first numeric phase. */
static PetscErrorCode HybProductParts(HybProduct p)
{
  const size_t   bytes = (size_t)p->W.nnz * sizeof(HybScalar);
  const PetscInt asked = HybTuningGet()->product_parts;
  PetscInt       parts = 1;

  PetscFunctionBegin;
  if (p->type == HYB_PRODUCT_PTAP && p->nstages == 2 && HybProductPasses(p, &p->W) && p->stage[0]->parts && p->stage[0]->hascut && p->stage[1]->parts) {
    if (asked)
      parts = asked;
    else if (bytes > HYB_PARTS_ASK) {
      size_t spare;

      PetscCall(HybMemorySpare(&p->exec, &spare));
      if (bytes > HYB_PARTS_LARGE && 2 * bytes > (size_t)p->left[0]->nnz * (sizeof(PetscInt) + sizeof(HybScalar))) parts = 2;
      while (parts < HYB_SPGEMM_PARTS && bytes / parts > spare) parts *= 2;
    }
  }
  p->inparts = parts;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The methods' plans, before the first numeric phase; M: what is transposed. One whose making failed is not made
   again. */
static PetscErrorCode HybProductPlan(HybProduct p, const HybCSR *M)
{
  Transposed *t = &p->transposed;

  PetscFunctionBegin;
  for (PetscInt s = 0; s < p->nstages; s++) {
    HybSpGEMM     *mm = p->stage[s];
    PetscErrorCode ierr;

    mm->permutation = p->left[s] == &t->T ? t->perm : NULL;
    mm->transposed  = p->left[s] == &t->T ? M->i : NULL;
    ierr            = HybSpGEMMPlan(mm, p->left[s], p->right[s], p->made[s]);
    mm->permutation = NULL;
    PetscCall(ierr);
    if (mm->placed && t->perm) PetscCall(HybArenaFree(&p->keep, &t->perm));
    PetscCall(HybProductShed(p));
  }
  PetscCall(HybProductParts(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybProductStagesNumeric(HybProduct p)
{
  const PetscCount m    = p->W.m;
  PetscCount       most = 0;
  PetscInt         n, step;

  PetscFunctionBegin;
  n    = p->inparts;
  step = HYB_SPGEMM_PARTS / n;
  if (n == 1) {
    if (p->nstages > 1 && HybProductPasses(p, &p->W)) PetscCall(HybArenaAlloc(&p->work, HYB_MEM_DEVICE, p->W.nnz, sizeof(HybScalar), &p->W.a));
    for (PetscInt s = 0; s < p->nstages; s++) PetscCall(HybSpGEMMNumeric(p->stage[s], p->left[s], p->right[s], p->made[s]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt q = 0; q < HYB_SPGEMM_PARTS; q += step) most = PetscMax(most, p->stage[0]->cut[q + step] - p->stage[0]->cut[q]);
  PetscCall(HybArenaAlloc(&p->work, HYB_MEM_DEVICE, most, sizeof(HybScalar), &p->W.a));
  for (PetscInt q = 0; q < HYB_SPGEMM_PARTS; q += step) {
    for (PetscInt s = 0; s < 2; s++) {
      HybSpGEMMPart part = {
        (PetscBool)s, {(PetscInt)(m * q / HYB_SPGEMM_PARTS), (PetscInt)(m * (q + step) / HYB_SPGEMM_PARTS)},
         {p->stage[0]->cut[q],                  p->stage[0]->cut[q + step]                   }
      };
      PetscErrorCode ierr;

      p->stage[s]->part = &part;
      ierr              = HybSpGEMMNumeric(p->stage[s], p->left[s], p->right[s], p->made[s]);
      p->stage[s]->part = NULL;
      PetscCall(ierr);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybProductNumeric_Inner(HybProduct p, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybCSR *result)
{
  PetscFunctionBegin;
  if (p->fused) {
    PetscCall(p->fused->method->numeric(p->fused, A, B, result));
    PetscCall(HybArenaReset(&p->fused->work));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(p->nstages > 0, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The numeric phase of the product %s was called before its symbolic phase", HybProductTypes[p->type]);
  (void)HybProductOperands(p, A, B, C, result);
  if (!p->inparts) PetscCall(HybProductPlan(p, p->transposed.operand ? B : A));
  if (p->transposed.used) PetscCall(HybProductTransposeNumeric(p, p->transposed.operand ? B : A));
  PetscCall(HybProductStagesNumeric(p));
  PetscCall(HybProductShed(p)); /* and those that a plan of this phase has made needless */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybProductNumeric(HybProduct p, const HybCSR *A, const HybCSR *B, const HybCSR *C, HybCSR *result)
{
  HybMemoryReport before, after;
  PetscErrorCode  ierr;
  size_t          held;

  PetscFunctionBegin;
  held      = HybProductHeld(p);
  p->frugal = PETSC_FALSE;
  PetscCall(p->exec.backend->usage(&before, PETSC_TRUE));
  ierr = HybProductNumeric_Inner(p, A, B, C, result);
  PetscCall(PetscArrayzero(p->same, 3));
  if (HybProductPasses(p, &p->W)) p->W.a = NULL;
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&p->work)));
  PetscCall(p->exec.backend->usage(&after, PETSC_FALSE));
  p->peak   = PetscMax(p->peak, held + (after.since - (before.device_bytes + before.managed_bytes)));
  p->frugal = (PetscBool)(after.since == before.device_bytes + before.managed_bytes && after.device_bytes == before.device_bytes && after.managed_bytes == before.managed_bytes && after.pinned_bytes == before.pinned_bytes);
  /* the host gives none back */
  if (p->exec.backend->device) p->lost = HybProductGetCounter(p, "plans given back");
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybProductGetInfo(HybProduct p, PetscLogDouble *flops, size_t *bytes, size_t *peak)
{
  *flops = 0;
  *bytes = HybProductHeld(p) - p->resultbytes;
  *peak  = p->peak;
  for (PetscInt s = 0; s < p->nstages; s++) *flops += 2.0 * (PetscLogDouble)p->stage[s]->stats.products;
  if (p->fused) *flops += 2.0 * (PetscLogDouble)HybCountersGet(&p->fused->counters, "products");
}

PetscErrorCode HybProductDescribe(HybProduct p, char text[], size_t length)
{
  char           one[256];
  size_t         bytes, peak;
  PetscLogDouble flops;

  PetscFunctionBegin;
  text[0] = 0;
  if (p->fused) {
    PetscCall(PetscSNPrintf(one, sizeof(one), "%s: method %s", HybProductTypes[p->type], p->fused->method->name));
    PetscCall(PetscStrlcat(text, one, length));
    PetscCall(HybCountersDescribe(&p->fused->counters, text, length));
  }
  for (PetscInt s = 0; s < p->nstages; s++) {
    PetscCall(PetscSNPrintf(one, sizeof(one), "%s%s stage %" PetscInt_FMT ": method %s, products %" PetscInt64_FMT, s ? "; " : "", HybProductTypes[p->type], s + 1, p->stage[s]->method->name, (PetscInt64)p->stage[s]->stats.products));
    PetscCall(PetscStrlcat(text, one, length));
    PetscCall(HybCountersDescribe(&p->stage[s]->counters, text, length));
  }
  HybProductGetInfo(p, &flops, &bytes, &peak);
  PetscCall(PetscSNPrintf(one, sizeof(one), "; bytes kept %zu, most %zu", bytes, peak));
  PetscCall(PetscStrlcat(text, one, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const char *HybProductGetMethod(HybProduct p)
{
  return p->fused ? p->fused->method->name : (p->nstages ? p->stage[p->nstages - 1]->method->name : "none");
}

PetscCount HybProductGetCounter(HybProduct p, const char *name)
{
  PetscCount value = p->fused ? HybCountersGet(&p->fused->counters, name) : 0;

  if (!strcmp(name, "transposed values")) value += p->gathers;
  if (!strcmp(name, "columns given back")) value += p->shed;
  if (!strcmp(name, "parts")) value += p->inparts;
  for (PetscInt s = 0; s < p->nstages; s++) value += HybCountersGet(&p->stage[s]->counters, name);
  return value;
}
