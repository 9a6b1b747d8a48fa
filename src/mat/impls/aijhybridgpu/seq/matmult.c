/*
  MatMult and its relatives: vector arrays go to the spmv room, with a plan that is rebuilt only when the pattern moved.
  They run where their vectors are: on the device if any vector is there or the matrix lives there, with the other
  vectors staged; else on the host. On the device a transposed product is one with an explicit transpose, which is kept
  and refreshed by a gather when the values moved.
*/
#include "seq.h"
#include "../storage/where.h"

/* The block size that rows and columns share, 1 where they do not */
static PetscErrorCode HybMultBlockSize(Mat A, PetscInt *bs)
{
  PetscInt rbs, cbs;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  *bs = rbs > 1 && rbs == cbs && A->rmap->n % rbs == 0 && A->cmap->n % rbs == 0 ? rbs : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MULT_PHASE  6   /* microseconds of a product, on an H200: its launch */
#define MULT_PLAN   140 /* of a plan: launches and waits */
#define MULT_RATE   3e5 /* nonzeros a microsecond */
#define MULT_PASSES 2   /* over the nonzeros, that a plan takes */

/* Have products without a plan taken as long as making one? By sizes, so that runs repeat. */
static PetscBool HybMultPlanPays(HybMultPlan *p, PetscCount nnz)
{
  const PetscInt  after = HybTuningGet()->plan_after;
  const PetscReal pass  = (PetscReal)nnz / MULT_RATE;

  p->spent += MULT_PHASE + pass;
  return (PetscBool)(after >= 0 ? p->spent >= PetscMax(1, after) * (MULT_PHASE + pass) : p->spent >= MULT_PLAN + MULT_PASSES * pass);
}

/*
  Of the transpose neither blocks nor empty rows are known.

  A plan costs some products, which its own are faster than: the first ones with a large new pattern on the device have
  none. Their sums may be of another order.
*/
static PetscErrorCode HybMultPlanSetUp(const HybView *v, const HybCSR *csr, const HybPatternKey *key, PetscBool transpose, HybMultPlan *p)
{
  const HybExec             *x      = &v->x;
  const Mat_SeqAIJHybridGPU *hyb    = v->hyb;
  const Mat                  A      = v->A;
  const char                *method = "auto";
  PetscInt                   bs     = 1;
  PetscBool                  again  = PETSC_FALSE;

  PetscFunctionBegin;
  if (p->ready && HybPatternKeyEqual(key, &p->key)) {
    p->plan.exec.stream = x->stream;
    /* a plan waits, which the recording of a graph does not bear */
    if (!p->onceonly || x->backend->recording(x) || !HybMultPlanPays(p, csr->nnz)) PetscFunctionReturn(PETSC_SUCCESS);
    again = PETSC_TRUE;
  }
  p->spent = 0;
  PetscCall(HybMultPlanDestroy(p));
  if (!transpose) PetscCall(HybMultBlockSize(A, &bs));
  /* a method that only the other side has: this side chooses for itself */
  for (const HybSpMVMethod *const *m = x->backend->spmv; m && *m; m++)
    if (!strcmp(hyb->choices.spmv, (*m)->name)) method = hyb->choices.spmv;
  p->onceonly = (PetscBool)(!strcmp(hyb->choices.spmv, "auto") && !again && !transpose && HybExecOnDevice(x) && csr->nnz >= HybGlueState.options.planmin);
  PetscCall(HybSpMVInit(&p->plan, x, method, bs));
  p->plan.once = p->onceonly;
  if (!transpose && HybExecOnDevice(x)) p->plan.longest = hyb->copy.longest;
  p->ready = PETSC_TRUE; /* from here on there is something to destroy */
  PetscCall(PetscMemzero(&p->key, sizeof(p->key)));
  PetscCall(HybSpMVSetUp(&p->plan, csr));
  p->nonemptyrows = transpose ? (PetscCount)csr->m : (HybExecOnDevice(x) ? hyb->copy.nonemptyrows : HybCountNonemptyRows(csr, NULL));
  p->key          = *key;
  if (HybRecording()) {
    char text[256];

    PetscCall(PetscSNPrintf(text, sizeof(text), "%.1f nonzeros a row%s", csr->m ? (double)csr->nnz / (double)csr->m : 0., p->onceonly ? ", no plan for one product" : ""));
    PetscCall(HybCountersDescribe(&p->plan.counters, text, sizeof(text)));
    HybRecordWhy(text);
  }
  PetscCall(PetscInfo(A, "SpMV method %s%s on the %s, %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt64_FMT " nonzeros\n", p->plan.method->name, p->onceonly ? " without a plan" : "", HybExecOnDevice(x) ? "device" : "host", csr->m, csr->n, (PetscInt64)csr->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose on the device, up to date */
PetscErrorCode HybViewTranspose(const HybView *v, PetscBool conjugate, HybDeviceTranspose **transpose)
{
  const HybExec             *x   = &v->x;
  const HybCSR              *csr = &v->csr;
  const Mat_SeqAIJHybridGPU *hyb = v->hyb;
  HybDeviceTranspose        *t   = &v->hyb->transpose;

  PetscFunctionBegin;
  *transpose = t;
  if (!PetscDefined(USE_COMPLEX)) conjugate = PETSC_FALSE;
  if (t->ready && !HybPatternKeyEqual(&t->key, &hyb->copy.key)) {
    t->ready = PETSC_FALSE;
    PetscCall(HybMultPlanDestroy(&t->mult));
    PetscCall(HybArenaReset(&t->arena));
  }
  if (t->ready && !t->stale && t->state == hyb->copy.mark.state && t->conjugated == conjugate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEventBegin(HYB_OP_KEEPTRANSPOSE, v->A));
  if (!t->ready) {
    HybArena work;
    HybExec  w = *x;

    w.result = HYB_MEM_DEVICE;
    t->arena = HybArenaOn(&w);
    work     = HybArenaOn(&w);
    t->ready = PETSC_TRUE; /* from here on there is something to free */
    PetscCall(PetscMemzero(&t->key, sizeof(t->key)));
    HybCallBoth(x->backend->csr->transpose(&w, &t->arena, &work, csr, conjugate, &t->csr, &t->perm), HybArenaReset(&work));
    t->key = hyb->copy.key;
  } else
    PetscCall(x->backend->csr->gather(x, t->csr.nnz, t->perm, conjugate, csr->a, t->csr.a));
  t->state      = hyb->copy.mark.state;
  t->conjugated = conjugate;
  t->stale      = PETSC_FALSE;
  PetscCall(HybEventEnd(HYB_OP_KEEPTRANSPOSE, v->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

HybRecordOp HybMultRecord(PetscBool transpose, HybSpMVMode mode)
{
  if (transpose) return mode == HYB_SPMV_SET ? HYB_RECORD_MULTTRANSPOSE : HYB_RECORD_MULTTRANSPOSEADD;
  return mode == HYB_SPMV_SET ? HYB_RECORD_MULT : mode == HYB_SPMV_ADD ? HYB_RECORD_MULTADD
                                                                       : HYB_RECORD_RESIDUAL;
}

/* The matrix's arrays, or its transpose's, on the device, and the plan of a product with them */
static PetscErrorCode HybMultPrepare(HybView *v, PetscBool transpose, PetscBool conjugate, HybCSR *csr, HybMultPlan **plan)
{
  PetscFunctionBegin;
  PetscCall(HybViewSend(v, PETSC_TRUE));
  if (transpose) {
    HybDeviceTranspose *t = NULL;

    PetscCall(HybViewTranspose(v, conjugate, &t));
    *csr  = t->csr;
    *plan = &t->mult;
    PetscCall(HybMultPlanSetUp(v, csr, &t->key, PETSC_TRUE, *plan));
  } else {
    *csr  = v->csr;
    *plan = &v->hyb->device;
    PetscCall(HybMultPlanSetUp(v, csr, &v->hyb->copy.key, PETSC_FALSE, *plan));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMultLogFlops(const HybMultPlan *plan, PetscCount nnz, HybSpMVMode mode)
{
  const PetscLogDouble flops = 2.0 * nnz - (mode == HYB_SPMV_SET ? plan->nonemptyrows : 0);

  PetscFunctionBegin;
  PetscCall(PetscLogGpuFlops(flops));
  if (!PetscDefined(HAVE_DEVICE)) PetscCall(PetscLogFlops(flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* arrays where x executes; yy may be zz */
static PetscErrorCode HybMultArrays(HybView *v, PetscBool transpose, PetscBool conjugate, const PetscScalar *xx, HybSpMVMode mode, const PetscScalar *yy, PetscScalar *zz)
{
  HybMultPlan *plan = NULL;
  HybSpMV     *by;
  HybCSR       csr;

  PetscFunctionBegin;
  PetscCall(HybMultPrepare(v, transpose, conjugate, &csr, &plan));
  if (transpose)
    by = &plan->plan;
  else
    PetscCall(HybMultOrderedNext(v, &csr, plan, &by));
  plan->by = by;
  PetscCall(HybEventBegin(HYB_OP_MULT, v->A));
  PetscCall(PetscLogGpuTimeBegin());
  HybCallBoth(HybSpMVApply(by, &csr, (const HybScalar *)xx, mode, (const HybScalar *)yy, (HybScalar *)zz), PetscLogGpuTimeEnd());
  PetscCall(HybEventEnd(HYB_OP_MULT, v->A));
  PetscCall(HybMultLogFlops(plan, csr.nnz, mode));
  PetscCall(MatSeqAIJHybridGPUReadEnd(v->A, &v->x));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMultOnDevice(HybView *v, PetscBool transpose, PetscBool conjugate, Vec xx, HybSpMVMode mode, Vec yy, Vec zz)
{
  const HybExec *x = &v->x;
  HybVecAccess   dx, dy = {.v = NULL}, dz = {.v = NULL};
  PetscBool      inplace = (PetscBool)(mode != HYB_SPMV_SET && yy == zz);
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybVecGet(x, xx, PETSC_TRUE, PETSC_FALSE, &dx));
  ierr = HybVecGet(x, mode == HYB_SPMV_SET || inplace ? NULL : yy, PETSC_TRUE, PETSC_FALSE, &dy);
  if (!ierr) ierr = HybVecGet(x, zz, inplace, PETSC_TRUE, &dz);
  if (!ierr) ierr = HybMultArrays(v, transpose, conjugate, dx.there, mode, inplace ? dz.there : dy.there, dz.there);
  ierr = HybVecRestore(ierr, &dz);
  ierr = HybVecRestore(ierr, &dy);
  PetscCall(HybVecRestore(ierr, &dx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by a plan that is there; inline, since the mode is known where it is called */
static inline __attribute__((always_inline)) PetscErrorCode HybMultByPlan(HybMultPlan *p, const HybCSR *csr, Vec xx, HybSpMVMode mode, Vec yy, Vec zz)
{
  const PetscScalar *xa, *y = NULL;
  PetscScalar       *z;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(xx, &xa));
  if (mode != HYB_SPMV_SET && yy != zz) PetscCall(VecGetArrayRead(yy, &y));
  if (mode == HYB_SPMV_SET || y)
    PetscCall(VecGetArrayWrite(zz, &z));
  else
    PetscCall(VecGetArray(zz, &z));
  PetscCall(HybSpMVApply(&p->plan, csr, xa, mode, mode == HYB_SPMV_SET ? NULL : (y ? y : z), z));
  if (mode == HYB_SPMV_SET || y)
    PetscCall(VecRestoreArrayWrite(zz, &z));
  else
    PetscCall(VecRestoreArray(zz, &z));
  if (y) PetscCall(VecRestoreArrayRead(yy, &y));
  PetscCall(VecRestoreArrayRead(xx, &xa));
  PetscCall(PetscLogFlops(2.0 * csr->nnz - (mode == HYB_SPMV_SET ? p->nonemptyrows : 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a matrix that no device can be meant for, the host's transposed products are AIJ's */
static inline PetscBool HybMultIsParents(Mat A)
{
  const Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  return (PetscBool)(hyb && hyb->hostonly && !A->structure_only && !HybRecording());
}

/* Of a matrix that no device can be meant for: what its arrays and their plan are, without a question to anybody. Of a
   small one all else would take as long as its product. */
static inline HybMultPlan *HybMultAtHand(Mat A, HybCSR *csr)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);
  const HybPatternKey *key;

  if (!hyb || !hyb->hostonly || !hyb->host.ready || !HybFrameKnown() || HybRecording()) return NULL;
  key = &hyb->host.key;
  HybFrameArrays(A, &csr->i, &csr->j, &csr->a);
  csr->m   = A->rmap->n;
  csr->n   = A->cmap->n;
  csr->nnz = key->nnz;
  if (key->i != csr->i || key->j != csr->j || key->m != csr->m || key->n != csr->n || key->nonzerostate != A->nonzerostate || key->generation != hyb->generation || !csr->m || csr->i[csr->m] != csr->nnz || !csr->a) return NULL;
  return &hyb->host;
}
#define HybMultIfAtHand(A, xx, mode, yy, zz)                            \
  do {                                                                  \
    HybCSR       csr_;                                                  \
    HybMultPlan *plan_ = HybMultAtHand(A, &csr_);                       \
                                                                        \
    if (plan_) {                                                        \
      HybGlueState.counts.mults++;                                      \
      PetscCall(HybMultByPlan(plan_, &csr_, (xx), (mode), (yy), (zz))); \
      PetscFunctionReturn(PETSC_SUCCESS);                               \
    }                                                                   \
  } while (0)

/* what a product has to read and write at least: each entry of the matrix and of the vectors once */
PetscLogDouble HybMultBytes(const HybCSR *csr, HybSpMVMode mode)
{
  return (PetscLogDouble)csr->nnz * (sizeof(PetscInt) + sizeof(HybScalar)) + ((PetscLogDouble)csr->m + 1) * sizeof(PetscInt) + ((PetscLogDouble)csr->n + (mode == HYB_SPMV_SET ? 1.0 : 2.0) * csr->m) * sizeof(HybScalar);
}

/* parents: whether it is the parent's to do, as of transposes on the host; of others it may be NULL */
static PetscErrorCode MatSeqAIJHybridGPUMult(Mat A, PetscBool transpose, PetscBool conjugate, Vec xx, HybSpMVMode mode, Vec yy, Vec zz, PetscBool *parents)
{
  HybView v;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  PetscCheck(v.host.a || !v.host.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY): it cannot be multiplied with a vector", (PetscInt64)v.host.nnz);
  PetscCall(HybWhereMult(&v, transpose, mode, xx, zz));
  PetscCall(HybRecordBegin(HybMultRecord(transpose, mode), A, &v.x));
  if (HybExecOnDevice(&v.x))
    PetscCall(HybMultOnDevice(&v, transpose, conjugate, xx, mode, yy, zz));
  else if (!transpose) {
    PetscCall(HybMultPlanSetUp(&v, &v.host, &v.key, PETSC_FALSE, &v.hyb->host));
    PetscCall(HybMultByPlan(&v.hyb->host, &v.host, xx, mode, yy, zz));
  }
  if (parents) *parents = (PetscBool)(transpose && !HybExecOnDevice(&v.x));
  if (parents && *parents) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.counts.mults++;
  if (HybRecording()) {
    const HybSpMV *by = HybExecOnDevice(&v.x) ? (transpose ? &v.hyb->transpose.mult : &v.hyb->device)->by : &v.hyb->host.plan;

    PetscCall(HybRecordEnd(HybMultRecord(transpose, mode), A, &v.x, by->method->name, "", 2.0 * v.host.nnz, HybMultBytes(&v.host, mode)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a block of a parallel matrix: what another function's kernel needs to do its product. lanes 0: it cannot. */
PetscErrorCode MatSeqAIJHybridGPUMultBegin(Mat A, const HybExec *x, PetscBool transpose, HybCSR *csr, int *lanes)
{
  HybMultPlan *plan = NULL;
  HybView      v;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  v.x = *x;
  PetscCall(HybMultPrepare(&v, transpose, PETSC_FALSE, csr, &plan));
  *lanes = HybSpMVLanes(&plan->plan);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts a product that another function's kernel has done */
PetscErrorCode MatSeqAIJHybridGPUMultEnd(Mat A, const HybExec *x, PetscBool transpose, HybSpMVMode mode)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybMultLogFlops(transpose ? &hyb->transpose.mult : &hyb->device, hyb->copy.csr.nnz, mode));
  PetscCall(MatSeqAIJHybridGPUReadEnd(A, x));
  HybGlueState.counts.deviceops++;
  HybGlueState.counts.mults++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of a block of a parallel matrix */
PetscErrorCode MatSeqAIJHybridGPUMultArrays(Mat A, const HybExec *x, PetscBool transpose, const PetscScalar *xx, HybSpMVMode mode, const PetscScalar *yy, PetscScalar *zz)
{
  HybView v;

  PetscFunctionBegin;
  PetscCall(HybRecordBegin(HybMultRecord(transpose, mode), A, x));
  PetscCall(HybViewOpen(A, &v));
  v.x = *x;
  PetscCall(HybMultArrays(&v, transpose, PETSC_FALSE, xx, mode, yy, zz));
  HybGlueState.counts.mults++;
  if (HybRecording()) PetscCall(HybRecordEnd(HybMultRecord(transpose, mode), A, x, (transpose ? &v.hyb->transpose.mult : &v.hyb->device)->by->method->name, "", 2.0 * v.csr.nnz, HybMultBytes(&v.csr, mode)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatHasMult(Mat A, PetscBool *flg)
{
  const struct _MatOps *o = A->ops, *own = &HybGlueState.own;
  PetscBool             bound = PETSC_FALSE;

  PetscFunctionBegin;
  *flg = HybMatIsSeq(A);
  if (PetscDefined(HAVE_DEVICE)) PetscCall(MatBoundToCPU(A, &bound)); /* without devices it says so of every matrix */
  *flg = (PetscBool)(*flg && !bound && !A->structure_only && o->mult == own->mult && o->multadd == own->multadd && o->multtranspose == own->multtranspose && o->multtransposeadd == own->multtransposeadd && o->residual == own->residual);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetMultExec(Mat A, Vec x, Vec b, HybExec *exec)
{
  HybView v;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  PetscCall(HybWhereMult(&v, PETSC_FALSE, HYB_SPMV_SET, x, b));
  *exec = v.x;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetMult(Mat A, const HybExec *x, PetscBool transpose, HybCSR *csr, HybSpMV **plan)
{
  HybMultPlan *p = NULL;
  HybView      v;

  PetscFunctionBegin;
  PetscCall(HybViewOpen(A, &v));
  v.x = *x;
  if (HybExecOnDevice(x)) {
    PetscCall(HybMultPrepare(&v, transpose, PETSC_FALSE, csr, &p));
    if (p->onceonly) { /* the plan is for many products */
      p->spent = PETSC_MAX_REAL / 2;
      PetscCall(HybMultPrepare(&v, transpose, PETSC_FALSE, csr, &p));
    }
  } else {
    PetscCheck(!transpose, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The host has no transpose");
    p    = &v.hyb->host;
    *csr = v.host;
    PetscCall(HybMultPlanSetUp(&v, csr, &v.key, PETSC_FALSE, p));
  }
  *plan = &p->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatGetMoves(Mat A, PetscCount *moves)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  *moves = hyb->moves;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_SeqAIJHybridGPU(Mat A, Vec x, Vec y)
{
  PetscFunctionBegin;
  HybMultIfAtHand(A, x, HYB_SPMV_SET, NULL, y);
  HybLeaveIfOverlaid(A, mult, A, x, y);
  PetscCall(MatSeqAIJHybridGPUMult(A, PETSC_FALSE, PETSC_FALSE, x, HYB_SPMV_SET, NULL, y, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_SeqAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  HybMultIfAtHand(A, x, HYB_SPMV_ADD, y, z);
  HybLeaveIfOverlaid(A, multadd, A, x, y, z);
  PetscCall(MatSeqAIJHybridGPUMult(A, PETSC_FALSE, PETSC_FALSE, x, HYB_SPMV_ADD, y, z, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybResidualCheckSizes(Vec v, const char *name, PetscLayout map, PetscErrorCode code)
{
  PetscLayout own;

  PetscFunctionBegin;
  PetscCall(VecGetLayout(v, &own));
  PetscCheck(own->n == map->n && own->N == map->N, PETSC_COMM_SELF, code, "Vector %s of the residual b - A x has %" PetscInt_FMT " entries, %" PetscInt_FMT " of them on this process, and must have %" PetscInt_FMT " and %" PetscInt_FMT " for this matrix: MatCreateVecs() makes such", name, own->N, own->n, map->N, map->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's MatResidual() asks nothing where a type has an operation for it. MatMult() and VecAYPX(), which it calls
   else, do, and these are their questions and errors, but that r may be b here. */
PetscErrorCode HybResidualCheck(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The residual of a matrix that is not assembled: MatAssemblyBegin() and MatAssemblyEnd() come before");
  PetscCheck(!A->factortype, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The residual of a factored matrix: take the matrix that was factored");
  PetscCheck(x != r, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The residual b - A x cannot take the place of x: VecDuplicate() makes another vector for it");
  PetscCall(HybResidualCheckSizes(x, "x", A->cmap, PETSC_ERR_ARG_SIZ));
  PetscCall(HybResidualCheckSizes(r, "r", A->rmap, PETSC_ERR_ARG_SIZ));
  PetscCall(HybResidualCheckSizes(b, "b", A->rmap, PETSC_ERR_ARG_INCOMP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x by MatMult(), whoever's that is */
PetscErrorCode HybResidualByMult(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  if (r == b) { /* the product would take b's place before it is read */
    Vec w;

    PetscCall(VecDuplicate(r, &w));
    PetscCall(MatMult(A, x, w));
    PetscCall(VecAXPY(r, -1.0, w));
    PetscCall(VecDestroy(&w));
  } else {
    PetscCall(MatMult(A, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x in one pass; after MatSetOperation(A, MATOP_MULT, ...) by the program's product, as of any AIJ */
PetscErrorCode MatResidual_SeqAIJHybridGPU(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, residual, A, b, x, r);
  PetscCall(HybResidualCheck(A, b, x, r));
  if (A->ops->mult != HybGlueState.own.mult) {
    PetscCall(HybResidualByMult(A, b, x, r));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybMultIfAtHand(A, x, HYB_SPMV_RESIDUAL, b, r);
  PetscCall(MatSeqAIJHybridGPUMult(A, PETSC_FALSE, PETSC_FALSE, x, HYB_SPMV_RESIDUAL, b, r, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A^H x, or y + that, in the parent's way: conjugate(A^T conjugate(x)) */
static PetscErrorCode HybMultHermitianOnHost(Mat A, Vec x, Vec y, Vec z)
{
  Vec w, product = z;

  PetscFunctionBegin;
  if (y) PetscCall(VecDuplicate(z, &product));
  PetscCall(VecDuplicate(x, &w));
  PetscCall(VecCopy(x, w));
  PetscCall(VecConjugate(w));
  PetscCall((*HybGlueState.seq.multtranspose)(A, w, product));
  PetscCall(VecDestroy(&w));
  PetscCall(VecConjugate(product));
  if (!y) PetscFunctionReturn(PETSC_SUCCESS);
  if (z == y)
    PetscCall(VecAXPY(z, 1.0, product));
  else
    PetscCall(VecWAXPY(z, 1.0, product, y));
  PetscCall(VecDestroy(&product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A^T x or A^H x, or y + that; y NULL: nothing is added. On the host it is the parent's. */
static PetscErrorCode HybMultTransposed(Mat A, PetscBool conjugate, Vec x, Vec y, Vec z)
{
  const HybSpMVMode mode = y ? HYB_SPMV_ADD : HYB_SPMV_SET;
  PetscBool         parents;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUMult(A, PETSC_TRUE, conjugate, x, mode, y, z, &parents));
  if (!parents) PetscFunctionReturn(PETSC_SUCCESS);
  if (conjugate)
    PetscCall(HybMultHermitianOnHost(A, x, y, z));
  else if (y)
    PetscCall((*HybGlueState.seq.multtransposeadd)(A, x, y, z));
  else
    PetscCall((*HybGlueState.seq.multtranspose)(A, x, z));
  PetscCall(HybRecordEnd(HybMultRecord(PETSC_TRUE, mode), A, NULL, "aij", "", 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTranspose_SeqAIJHybridGPU(Mat A, Vec x, Vec y)
{
  PetscFunctionBegin;
  if (HybMultIsParents(A)) return (*HybGlueState.seq.multtranspose)(A, x, y);
  HybLeaveIfOverlaid(A, multtranspose, A, x, y);
  PetscCall(HybMultTransposed(A, PETSC_FALSE, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTransposeAdd_SeqAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  if (HybMultIsParents(A)) return (*HybGlueState.seq.multtransposeadd)(A, x, y, z);
  HybLeaveIfOverlaid(A, multtransposeadd, A, x, y, z);
  PetscCall(HybMultTransposed(A, PETSC_FALSE, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent has no operations for these: what PETSc does without */
#define HybLeaveHermitianIfOverlaid(A, call)       \
  do {                                             \
    if (PetscUnlikely(!MatIsSeqAIJHybridGPU(A))) { \
      PetscCall(MatSeqAIJHybridGPULeave(A));       \
      PetscCall(call);                             \
      PetscFunctionReturn(PETSC_SUCCESS);          \
    }                                              \
  } while (0)

PetscErrorCode MatMultHermitianTranspose_SeqAIJHybridGPU(Mat A, Vec x, Vec y)
{
  PetscFunctionBegin;
  HybLeaveHermitianIfOverlaid(A, MatMultHermitianTranspose(A, x, y));
  PetscCall(HybMultTransposed(A, PETSC_TRUE, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultHermitianTransposeAdd_SeqAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  HybLeaveHermitianIfOverlaid(A, MatMultHermitianTransposeAdd(A, x, y, z));
  PetscCall(HybMultTransposed(A, PETSC_TRUE, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
