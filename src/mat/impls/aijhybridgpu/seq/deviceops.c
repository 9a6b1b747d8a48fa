/*
  Operations on values and patterns that run on the device where the matrix was born there, and are the parent's
  otherwise. Of a matrix that only has a copy there, both sides do the operation (storage/write.c).
*/
#include "seq.h"
#include "../storage/where.h"

#define HYB_PARENT HybGlueState.seq

/* Is zero times NaN zero? In AIJ's MatScale() the BLAS decides, and its releases differ: AIJ is asked, once. */
static PetscErrorCode HybZeroWins(PetscBool *zero)
{
  PetscInt    i[2] = {0, 32}, j[32];
  PetscScalar a[32];
  Mat         T;

  PetscFunctionBegin;
  if (!HybGlueState.zeroknown) {
    for (PetscInt k = 0; k < 32; k++) {
      j[k] = k;
      a[k] = (PetscReal)NAN; /* 0 / 0 would be a trap with -fp_trap */
    }
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 1, 32, i, j, a, &T));
    PetscCall((*HYB_PARENT.scale)(T, 0.0));
    PetscCall(MatDestroy(&T));
    HybGlueState.zeroknown = HybGlueState.zerowins = PETSC_TRUE;
    for (PetscInt k = 0; k < 32; k++)
      if (a[k] != (PetscScalar)0) HybGlueState.zerowins = PETSC_FALSE;
  }
  *zero = HybGlueState.zerowins;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From so many values on the device scales alone, and the host's move there or come from there over the bus, instead of
   being scaled by one core */
#define HYB_SCALE_ALONE 2000000

static PetscErrorCode MatScale_SeqAIJHybridGPU(Mat A, PetscScalar alpha)
{
  HybExec         x;
  HybCSR          csr;
  PetscBool       device, zero = PETSC_FALSE;
  HybWriteThrough w;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, scale, A, alpha);
  /* BLAS may round a complex product otherwise, and takes zero times anything for zero */
  PetscCall(MatSeqAIJHybridGPUWriteBegin(A, (PetscBool)(!PetscDefined(USE_COMPLEX) && alpha != (PetscScalar)0), HYB_SCALE_ALONE, &x, &device, &w));
  if (!device) {
    if (!w.back) HybInside(A, (*HYB_PARENT.scale)(A, alpha));
    if (w.both) PetscCall(x.backend->csr->scale(&x, w.csr.nnz, (HybScalar *)&alpha, w.csr.a));
    if (w.back) {
      PetscCall(MatSeqAIJHybridGPUWriteBack(A, &x, &w));
      PetscCall(HybLogFlops(&x, (PetscLogDouble)w.csr.nnz));
    }
    PetscCall(MatSeqAIJHybridGPUWriteEnd(A, &w, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_SCALE, A));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
  if (alpha == (PetscScalar)0) PetscCall(HybZeroWins(&zero));
  if (zero)
    PetscCall(x.backend->zero(&x, csr.a, sizeof(HybScalar) * (size_t)csr.nnz));
  else
    PetscCall(x.backend->csr->scale(&x, csr.nnz, (HybScalar *)&alpha, csr.a));
  PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(A, &x, PETSC_TRUE));
  PetscCall(HybEventEnd(HYB_OP_SCALE, A));
  PetscCall(HybLogFlops(&x, (PetscLogDouble)csr.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroEntries_SeqAIJHybridGPU(Mat A)
{
  HybExec         x;
  HybCSR          csr;
  PetscBool       device;
  HybWriteThrough w;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, zeroentries, A);
  PetscCall(MatSeqAIJHybridGPUWriteBegin(A, PETSC_TRUE, 0, &x, &device, &w));
  if (!device) {
    HybInside(A, (*HYB_PARENT.zeroentries)(A));
    if (w.both) PetscCall(x.backend->zero(&x, w.csr.a, sizeof(HybScalar) * (size_t)w.csr.nnz));
    PetscCall(MatSeqAIJHybridGPUWriteEnd(A, &w, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_ZERO, A));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
  PetscCall(x.backend->zero(&x, csr.a, sizeof(HybScalar) * (size_t)csr.nnz));
  PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(A, &x, PETSC_TRUE));
  PetscCall(HybEventEnd(HYB_OP_ZERO, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybDiagonalScaleOnDevice(const HybExec *x, HybCSR *csr, Vec l, Vec r)
{
  HybVecAccess   dl, dr = {.v = NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybVecGet(x, l, PETSC_TRUE, PETSC_FALSE, &dl));
  ierr = HybVecGet(x, r, PETSC_TRUE, PETSC_FALSE, &dr);
  if (!ierr) ierr = x->backend->csr->diagonalscale(x, csr, (HybScalar *)dl.there, (HybScalar *)dr.there);
  ierr = HybVecRestore(ierr, &dr);
  PetscCall(HybVecRestore(ierr, &dl));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the host both sides in one pass, where each of AIJ's two goes through all values: the products' bits are the
   same */
static PetscErrorCode HybDiagonalScaleOnHost(Mat A, Vec l, Vec r)
{
  const PetscScalar *left, *right;
  PetscScalar       *a;
  HybView            v;
  PetscInt           m = -1, n = -1;

  PetscFunctionBegin;
  if (l) PetscCall(VecGetLocalSize(l, &m));
  if (r) PetscCall(VecGetLocalSize(r, &n));
  if (PetscDefined(USE_COMPLEX) || m != A->rmap->n || n != A->cmap->n) {
    PetscCall((*HYB_PARENT.diagonalscale)(A, l, r));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybViewOpen(A, &v));
  PetscCall(VecGetArrayRead(l, &left));
  PetscCall(VecGetArrayRead(r, &right));
  PetscCall(MatSeqAIJGetArray(A, &a));
  v.host.a = (HybScalar *)a;
  PetscCall(HybBackendHost.csr->diagonalscale(&HybExecHost, &v.host, (const HybScalar *)left, (const HybScalar *)right));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(PetscObjectStateIncrease((PetscObject)A)); /* a step for each pass, as AIJ */
  PetscCall(VecRestoreArrayRead(r, &right));
  PetscCall(VecRestoreArrayRead(l, &left));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)v.host.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MPIAIJ calls this for its blocks, not MatDiagonalScale(), which counts the state once more. By -mat_seqaij_type
   anything may be a block. */
static PetscErrorCode MatDiagonalScale_SeqAIJHybridGPU(Mat A, Vec l, Vec r)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybCSR               csr;
  PetscBool            device, interface;
  HybWriteThrough      w;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, diagonalscale, A, l, r);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, MATSEQAIJHYBRIDGPU, &interface));
  if (hyb->block) interface = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUWriteBegin(A, (PetscBool)!PetscDefined(USE_COMPLEX), 0, &x, &device, &w));
  if (!device) {
    HybInside(A, HybDiagonalScaleOnHost(A, l, r));
    if (w.both) PetscCall(HybDiagonalScaleOnDevice(&x, &w.csr, l, r));
    PetscCall(MatSeqAIJHybridGPUWriteEnd(A, &w, interface));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (l) {
    PetscInt n;
    PetscCall(VecGetLocalSize(l, &n));
    PetscCheck(n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Left scaling vector has %" PetscInt_FMT " entries, the matrix %" PetscInt_FMT " rows", n, A->rmap->n);
  }
  if (r) {
    PetscInt n;
    PetscCall(VecGetLocalSize(r, &n));
    PetscCheck(n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Right scaling vector has %" PetscInt_FMT " entries, the matrix %" PetscInt_FMT " columns", n, A->cmap->n);
  }
  PetscCall(HybEventBegin(HYB_OP_DIAGONALSCALE, A));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
  PetscCall(HybDiagonalScaleOnDevice(&x, &csr, l, r));
  PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(A, &x, interface));
  PetscCall(HybEventEnd(HYB_OP_DIAGONALSCALE, A));
  PetscCall(PetscLogGpuFlops((PetscLogDouble)csr.nnz * ((l != NULL) + (r != NULL))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGetDiagonalOnDevice(const HybExec *x, const HybCSR *csr, Vec v, PetscInt n)
{
  HybVecAccess   d;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(HybVecGet(x, v, PETSC_FALSE, PETSC_TRUE, &d));
  if (n > PetscMin(csr->m, csr->n)) ierr = x->backend->zero(x, d.there, sizeof(PetscScalar) * (size_t)n);
  if (!ierr) ierr = x->backend->csr->getdiagonal(x, csr, (HybScalar *)d.there);
  PetscCall(HybVecRestore(ierr, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal goes where the vector is; the matrix is read on the device if it lives there or is there already */
static PetscErrorCode MatGetDiagonal_SeqAIJHybridGPU(Mat A, Vec v)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybCSR               csr;
  PetscInt             n;
  PetscBool            ascend;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, getdiagonal, A, v);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(VecGetLocalSize(v, &n));
  if (hyb->copy.pattern && !A->factortype && n == A->rmap->n)
    PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, &x));
  else
    x.backend = &HybBackendHost;
  if (!HybExecOnDevice(&x)) {
    PetscCall((*HYB_PARENT.getdiagonal)(A, v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_FALSE, &csr));
  PetscCall(MatSeqAIJHybridGPURowsAscend(A, &x, &csr, &ascend));
  if (!ascend) {
    PetscCall((*HYB_PARENT.getdiagonal)(A, v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_GETDIAGONAL, A));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
  PetscCall(HybGetDiagonalOnDevice(&x, &csr, v, n));
  PetscCall(MatSeqAIJHybridGPUReadEnd(A, &x));
  PetscCall(HybEventEnd(HYB_OP_GETDIAGONAL, A));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybDiagonalSetOnDevice(const HybExec *x, HybCSR *csr, Vec v, const PetscScalar *alpha, PetscBool add, PetscCount *missing)
{
  HybArena       work = HybArenaOn(x);
  HybVecAccess   d;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybVecGet(x, v, PETSC_TRUE, PETSC_FALSE, &d));
  ierr = x->backend->csr->diagonalset(x, &work, csr, (HybScalar *)d.there, (const HybScalar *)alpha, add, missing);
  ierr = HybErrorFirst(ierr, HybArenaReset(&work));
  PetscCall(HybVecRestore(ierr, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds to or sets the diagonal, by a vector or a number; where the pattern lacks an entry the parent makes room for
   it */
static PetscErrorCode MatSeqAIJHybridGPUDiagonalSet(Mat A, Vec v, const PetscScalar *alpha, InsertMode mode)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybCSR               csr;
  PetscBool            device = PETSC_FALSE, add = (PetscBool)(mode == ADD_VALUES), full, ascend;
  PetscCount           missing = 0;
  HybWriteThrough      w;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&w, sizeof(w)));
  if (add || mode == INSERT_VALUES) PetscCall(MatSeqAIJHybridGPUWriteBegin(A, PETSC_TRUE, 0, &x, &device, &w));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (device || w.both) { /* of several diagonal entries of a row the device might take another one */
    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_FALSE, &csr));
    PetscCall(MatSeqAIJHybridGPURowsAscend(A, &x, &csr, &ascend));
    if (!ascend) {
      device = w.both = PETSC_FALSE;
      PetscCall(HybStorageQuiet(hyb));
    }
  }
  if (device && !v && !hyb->copy.csr.nnz) device = PETSC_FALSE; /* AIJ preallocates an empty matrix */
#if HYB_SHIFT_IN_PLACE
  /* AIJ goes entry by entry, and refuses the rows below; before, it wrote past them */
  if (A->rmap->n > A->cmap->n) device = PETSC_FALSE;
#endif
  if (device) {
    PetscCall(HybEventBegin(HYB_OP_DIAGONALSET, A));
    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
    PetscCall(HybDiagonalSetOnDevice(&x, &csr, v, alpha, add, &missing));
    if (!missing) PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(A, &x, PETSC_TRUE));
#if !HYB_SHIFT_IN_PLACE
    if (!missing && !v) { /* AIJ's MatShift() ends with an assembly */
      PetscCall(MatSeqAIJHybridGPUAssembleWritten(A));
      PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
      hyb->copy.mark.step = PETSC_TRUE;
    }
#endif
    PetscCall(HybEventEnd(HYB_OP_DIAGONALSET, A));
    if (!missing) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJHybridGPUDiagonalIsFull(A, &full));
  if (!full) PetscCall(MatSeqAIJHybridGPUDisown(A)); /* the parent makes room for new entries */
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  w.both = (PetscBool)(w.both && hyb->copy.pattern); /* disowning takes the device's copy along */
  if (v)
    HybInside(A, (*HYB_PARENT.diagonalset)(A, v, mode));
  else
    HybInside(A, (*HYB_PARENT.shift)(A, *alpha));
  if (w.both) PetscCall(HybDiagonalSetOnDevice(&x, &w.csr, v, alpha, add, &missing));
  if (!missing) PetscCall(MatSeqAIJHybridGPUWriteEnd(A, &w, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_SeqAIJHybridGPU(Mat A, PetscScalar alpha)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, shift, A, alpha);
  PetscCall(MatSeqAIJHybridGPUDiagonalSet(A, NULL, &alpha, ADD_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalSet_SeqAIJHybridGPU(Mat A, Vec v, InsertMode mode)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, diagonalset, A, v, mode);
  PetscCall(MatSeqAIJHybridGPUDiagonalSet(A, v, NULL, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_SeqAIJHybridGPU(Mat A, NormType type, PetscReal *norm)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybCSR               csr;
  HybArena             work;
  HybNorm              which;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, norm, A, type, norm);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  x.backend = &HybBackendHost;
  if (HybBorn(hyb) && (type == NORM_1 || type == NORM_FROBENIUS || type == NORM_INFINITY)) PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, &x));
  if (!HybExecOnDevice(&x)) {
    PetscCall((*HYB_PARENT.norm)(A, type, norm));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  which = type == NORM_1 ? HYB_NORM_1 : (type == NORM_FROBENIUS ? HYB_NORM_FROBENIUS : HYB_NORM_INFINITY);
  PetscCall(HybEventBegin(HYB_OP_NORM, A));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
  work = HybArenaOn(&x);
  HybCallBoth(x.backend->csr->norm(&x, &work, &csr, which, norm), HybArenaReset(&work));
  PetscCall(HybEventEnd(HYB_OP_NORM, A));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* those of A, which l lends; sent: A has been on the device */
static PetscErrorCode HybCopyLentValues(Mat A, const HybLent *l, PetscBool sent, Mat B, const HybExec *x)
{
  HybCSR a = l->csr, b;

  PetscFunctionBegin;
  if (sent) PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &a));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(B, x, PETSC_TRUE, &b));
  PetscCheck(a.nnz == b.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP, "Number of nonzeros in the two matrices differ: %" PetscInt64_FMT " and %" PetscInt64_FMT ", though SAME_NONZERO_PATTERN was said", (PetscInt64)a.nnz, (PetscInt64)b.nnz);
  PetscCheck(a.a || !a.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix holds a structure of %" PetscInt64_FMT " nonzeros without values (MAT_STRUCTURE_ONLY)", (PetscInt64)a.nnz);
  PetscCall(x->backend->copy(x, b.a, a.a, sizeof(HybScalar) * (size_t)a.nnz, sent ? HYB_COPY_DEVICE_TO_DEVICE : HYB_COPY_HOST_TO_DEVICE));
  if (!sent) PetscCall(HybLogToDevice(sizeof(HybScalar) * (PetscLogDouble)a.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that are on the device already are copied there, others sent */
static PetscErrorCode MatSeqAIJHybridGPUCopyValues(Mat A, Mat B, PetscBool *done)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  HybLent              l;
  PetscBool            device = PETSC_FALSE, sent, seq;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, &seq));
  if (seq && A != B && MatIsSeqAIJHybridGPU(B)) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(B, &x, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEventBegin(HYB_OP_COPY, B));
  sent = PETSC_FALSE;
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    sent = hyb->copy.pattern;
  }
  PetscCall(HybLentGet(A, PETSC_TRUE, &l));
  HybCallBoth(HybCopyLentValues(A, &l, sent, B, &x), HybLentRestore(A, &l));
  PetscCall(MatSeqAIJHybridGPUDeviceWrittenStep(B, &x, PETSC_TRUE));
  PetscCall(HybEventEnd(HYB_OP_COPY, B));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUTakeValues(Mat B, Mat A)
{
  PetscErrorCode (*own)(Mat, Mat, MatStructure) = B->ops->copy;
  PetscErrorCode ierr;
  PetscBool      done;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUCopyValues(A, B, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (A->ops->copy == HYB_PARENT.copy) B->ops->copy = HYB_PARENT.copy; /* the parent's fast way */
  ierr         = MatCopy(A, B, SAME_NONZERO_PATTERN);
  B->ops->copy = own;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCopy_SeqAIJHybridGPU(Mat A, Mat B, MatStructure str)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  /* the parent's rule for a common pattern: it was promised, or the numbers of nonzeros agree and the promise is the
     caller's */
  if (str == SAME_NONZERO_PATTERN && MatIsSeqAIJHybridGPU(A)) PetscCall(MatSeqAIJHybridGPUCopyValues(A, B, &done));
  if (!done) {
    PetscErrorCode (*own)(Mat, Mat, MatStructure) = A->ops->copy;
    PetscErrorCode ierr;

    PetscCall(MatSeqAIJHybridGPUHostWrites(B)); /* which may write the array itself */
    /* the parent takes its fast way, array to array, where both matrices have the same function */
    if (B->ops->copy == HYB_PARENT.copy) A->ops->copy = HYB_PARENT.copy;
    ierr         = (*HYB_PARENT.copy)(A, B, str);
    A->ops->copy = own;
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does Y know that the entries of X are among its own, the two having these patterns? */
static PetscBool HybPatternsAmong(const Mat_SeqAIJHybridGPU *yd, Mat X, const HybPatternKey *own, const HybPatternKey *other)
{
  return (PetscBool)(((PetscObject)X)->id == yd->among.id && HybPatternKeyEqual(other, &yd->among.other) && HybPatternKeyEqual(own, &yd->among.own));
}

static void HybPatternsKeep(Mat_SeqAIJHybridGPU *yd, Mat X, const HybPatternKey *own, const HybPatternKey *other)
{
  yd->among.id    = ((PetscObject)X)->id;
  yd->among.own   = *own;
  yd->among.other = *other;
}

/* X's entries are among those of Y, a result in arrays of ours, both on the host. AIJ sets them entry by entry. *done:
   not where one of them is missing, or rows do not ascend. */
static PetscErrorCode HybAXPYSubsetOnHost(Mat Y, Mat_SeqAIJHybridGPU *yd, PetscScalar alpha, Mat X, PetscBool *done)
{
  HybView        v[2];
  PetscScalar   *a;
  PetscCount     missing = 0;
  PetscInt       row;
  PetscBool      among;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  for (int k = 0; k < 2 && !missing; k++) {
    PetscCall(HybViewOpen(k ? Y : X, &v[k]));
    PetscCall(HybRowsLook(v[k].A, &v[k].key, &HybExecHost, &v[k].host, &missing, &row));
    if (!v[k].host.a) missing = 1;
  }
  if (missing) PetscFunctionReturn(PETSC_SUCCESS);
  among = HybPatternsAmong(yd, X, &v[1].key, &v[0].key);
  PetscCall(MatSeqAIJGetArray(Y, &a));
  v[1].host.a = (HybScalar *)a;
  ierr        = HybBackendHost.csr->axpysubset(&HybExecHost, NULL, (HybScalar *)&alpha, &v[0].host, &v[1].host, among ? NULL : &missing);
  PetscCall(MatSeqAIJRestoreArray(Y, &a));
  PetscCall(ierr);
  if (missing) PetscFunctionReturn(PETSC_SUCCESS);
  if (!among) HybPatternsKeep(yd, X, &v[1].key, &v[0].key);
  PetscCall(MatAssemblyBegin(Y, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(Y, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)v[0].host.nnz));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The base class does it, which may leave Y with arrays of the host's */
static PetscErrorCode HybAXPYOnHost(Mat Y, PetscScalar alpha, Mat X, MatStructure str)
{
  Mat_SeqAIJHybridGPU *hyb  = NULL;
  PetscBool            done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(Y, &hyb));
  if (str == SUBSET_NONZERO_PATTERN && X != Y && hyb->lives == HYB_LIVES_HOST && hyb->arrays.blocks && MatIsSeqAIJHybridGPU(X)) PetscCall(HybAXPYSubsetOnHost(Y, hyb, alpha, X, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUHostWrites(Y));
  PetscCall((*HYB_PARENT.axpy)(Y, alpha, X, str));
  PetscCall(MatSeqAIJHybridGPUGetData(Y, &hyb));
  if (!HybBorn(hyb)) MatSeqAIJHybridGPUSetBornOps(Y, PETSC_FALSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B = Y + alpha X with the union of the patterns, on the device */
static PetscErrorCode HybUnionOnDevice(Mat B, const HybExec *x, const HybCSR *yc, PetscScalar alpha, const HybCSR *xc, PetscCount *nnz)
{
  HybCSR         result;
  PetscScalar    one = 1.0;
  PetscErrorCode ierr;
  HybArena       work = HybArenaOn(x), arrays = HybArenaOn(x);

  PetscFunctionBegin;
  ierr = x->backend->csr->addsymbolic(x, &arrays, &work, yc, xc, &result);
  if (!ierr) ierr = HybArenaAlloc(&arrays, x->result, result.nnz, sizeof(HybScalar), &result.a);
  if (!ierr) ierr = x->backend->csr->addnumeric(x, (HybScalar *)&one, yc, (HybScalar *)&alpha, xc, &result);
  if (!ierr) *nnz = result.nnz;
  if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(B, x, &arrays, &result);
  if (ierr) (void)HybArenaReset(&arrays);
  HybCallBoth(ierr, HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, just born on the device, takes the place of Y, which lives there; same: their patterns are. B gets what of ours
   Y had. */
static PetscErrorCode MatSeqAIJHybridGPUMerge(Mat Y, Mat *B, PetscBool same)
{
  Mat_SeqAIJHybridGPU *b = NULL, *y = NULL;
  PetscObject          coo = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(*B, &b));
  PetscCall(MatSeqAIJHybridGPUGetData(Y, &y));
  b->block       = y->block;
  b->staysonhost = y->staysonhost;
  b->moves       = y->moves + 1;
  b->coocount    = same ? y->coocount : -1;
  /* AIJ takes B's number, which may by chance be Y's of another pattern */
  (*B)->nonzerostate = (*B)->ass_nonzerostate = Y->nonzerostate + (same ? 0 : 1);
  b->copy.key.nonzerostate = b->checkkey.nonzerostate = (*B)->nonzerostate;
  if (same)
    PetscCall(PetscObjectQuery((PetscObject)Y, "HybCOO", &coo));
  else
    PetscCall(PetscObjectCompose((PetscObject)Y, "HybCOO", NULL));
  if (coo) PetscCall(PetscObjectCompose((PetscObject)*B, "HybCOO", coo));
  PetscCall(HybHeaderMerge(Y, B));
  PetscCall(HybMarkSet(Y, PETSC_FALSE, &b->copy.mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybAXPYUnion(Mat Y, PetscScalar alpha, const HybExec *x, const HybCSR *xc, const HybCSR *yc)
{
  Mat            B;
  PetscCount     nnz = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUCreateLike(Y, Y->rmap->n, Y->cmap->n, Y->rmap->bs, Y->cmap->bs, &B));
  ierr = PetscLayoutReference(Y->rmap, &B->rmap);
  if (!ierr) ierr = PetscLayoutReference(Y->cmap, &B->cmap);
  if (!ierr) ierr = HybUnionOnDevice(B, x, yc, alpha, xc, &nnz);
  if (!ierr) ierr = MatSetOption(B, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_TRUE); /* AIJ preallocates it */
  if (!ierr) ((Mat_SeqAIJHybridGPU *)B->spptr)->aspreallocated = PETSC_TRUE;
  if (!ierr) ierr = MatSeqAIJHybridGPUMerge(Y, &B, (PetscBool)(nnz == yc->nnz)); /* X's entries are all Y's then */
  if (ierr) (void)MatDestroy(&B);
  PetscCall(ierr);
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Y += alpha X with both on the device. As AIJ does it: array to array where the patterns are the same, which
  UNKNOWN_NONZERO_PATTERN asks for; entry by entry where X's are said to be Y's; else another matrix, with the union
  of both patterns, takes Y's place. *done: not where the host has to do it.
*/
static PetscErrorCode HybAXPYOnDevice(Mat Y, PetscScalar alpha, Mat X, MatStructure str, const HybExec *x, PetscBool *done)
{
  Mat_SeqAIJHybridGPU *xd = NULL, *yd = NULL;
  const HybPatternKey *xkey, *ykey;
  HybCSR               xc, yc;
  HybArena             work;
  PetscBool            among, equal, ascend = PETSC_FALSE;
  PetscCount           missing = 1;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(X, x, PETSC_TRUE, &xc));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(Y, x, PETSC_TRUE, &yc));
  PetscCall(MatSeqAIJHybridGPUGetData(X, &xd));
  PetscCall(MatSeqAIJHybridGPUGetData(Y, &yd));
  xkey  = &xd->copy.key;
  ykey  = &yd->copy.key;
  among = HybPatternsAmong(yd, X, ykey, xkey);
  equal = (PetscBool)(xkey->nnz == ykey->nnz && (among || (xkey->i == ykey->i && xkey->j == ykey->j)));
  if (str == SAME_NONZERO_PATTERN) {
    PetscCheck(xc.nnz == yc.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Number of nonzeros in the two matrices differ: %" PetscInt64_FMT " and %" PetscInt64_FMT ", though SAME_NONZERO_PATTERN was said", (PetscInt64)xc.nnz, (PetscInt64)yc.nnz);
    if (!PetscDefined(USE_DEBUG)) equal = PETSC_TRUE; /* the caller's word is taken */
  }
  if (str != DIFFERENT_NONZERO_PATTERN && equal) {
    PetscCall(x->backend->csr->axpy(x, yc.nnz, (HybScalar *)&alpha, xc.a, yc.a));
    missing = 0;
  } else if (str == SUBSET_NONZERO_PATTERN && among) {
    PetscCall(x->backend->csr->axpysubset(x, NULL, (HybScalar *)&alpha, &xc, &yc, NULL));
    missing = 0;
  } else {
    PetscCall(MatSeqAIJHybridGPURowsAscend(X, x, &xc, &ascend));
    if (ascend) PetscCall(MatSeqAIJHybridGPURowsAscend(Y, x, &yc, &ascend)); /* of a program's, promoted */
    if (!ascend) {
      *done = PETSC_FALSE;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    /* as many entries, and all of X's among Y's: the same pattern, and the sum is there */
    if (str == SUBSET_NONZERO_PATTERN || (str != DIFFERENT_NONZERO_PATTERN && xkey->nnz == ykey->nnz && xd->copy.nonemptyrows == yd->copy.nonemptyrows && xd->copy.longest == yd->copy.longest)) {
      work = HybArenaOn(x);
      HybCallBoth(x->backend->csr->axpysubset(x, &work, (HybScalar *)&alpha, &xc, &yc, &missing), HybArenaReset(&work));
    }
    if (!missing) HybPatternsKeep(yd, X, ykey, xkey);
  }
  if (missing) {
    PetscCheck(str != SAME_NONZERO_PATTERN, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The patterns of the two matrices differ, though SAME_NONZERO_PATTERN was said");
    if (str == SUBSET_NONZERO_PATTERN || HybStorageServed())
      *done = PETSC_FALSE; /* AIJ inserts what is missing, or refuses it; or makes the sum */
    else
      PetscCall(HybAXPYUnion(Y, alpha, x, &xc, &yc));
  } else {
    PetscCall(MatSeqAIJHybridGPUDeviceWritten(Y, x));
    if (str == SUBSET_NONZERO_PATTERN) PetscCall(MatSeqAIJHybridGPUAssembleWritten(Y));
  }
  if (*done) PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)xc.nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAXPY_SeqAIJHybridGPU(Mat Y, PetscScalar alpha, Mat X, MatStructure str)
{
  HybExec   x;
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  if (X != Y && MatIsSeqAIJHybridGPU(X) && MatIsSeqAIJHybridGPU(Y)) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(Y, &x, &device));
  if (device) {
    PetscCall(HybEventBegin(HYB_OP_AXPY, Y));
    PetscCall(HybAXPYOnDevice(Y, alpha, X, str, &x, &device));
    PetscCall(HybEventEnd(HYB_OP_AXPY, Y));
  }
  if (!device) PetscCall(HybAXPYOnHost(Y, alpha, X, str));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
/* Operations follow the flag, which PETSc has set, at once; storage stays where it is valid for both */
static PetscErrorCode MatBindToCPU_SeqAIJHybridGPU(Mat A, PetscBool flg)
{
  PetscFunctionBegin;
  if (flg) PetscCall(MatSeqAIJHybridGPUHostWrites(A)); /* from now on */
  PetscCall(MatAIJHybridGPUSetVecType(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

#if HYB_HAS_CURRENTMEMTYPE
static PetscErrorCode MatGetCurrentMemType_SeqAIJHybridGPU(Mat A, PetscMemType *mtype)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  *mtype = PETSC_MEMTYPE_HOST;
  if (PetscUnlikely(!MatIsSeqAIJHybridGPU(A))) PetscFunctionReturn(PETSC_SUCCESS); /* another type lies over this one */
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  #if defined(PETSC_HAVE_CUDA) /* another PETSc knows no such memory, and the arrays are the host's as well */
  if (hyb->copy.pattern && !A->boundtocpu) *mtype = PETSC_MEMTYPE_CUDA;
  #endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

void MatSeqAIJHybridGPUSetDeviceOps(Mat A, PetscBool on)
{
  static const struct _MatOps ours = {
    .scale         = MatScale_SeqAIJHybridGPU,
    .zeroentries   = MatZeroEntries_SeqAIJHybridGPU,
    .diagonalscale = MatDiagonalScale_SeqAIJHybridGPU,
    .getdiagonal   = MatGetDiagonal_SeqAIJHybridGPU,
    .shift         = MatShift_SeqAIJHybridGPU,
    .diagonalset   = MatDiagonalSet_SeqAIJHybridGPU,
    .norm          = MatNorm_SeqAIJHybridGPU,
#if defined(PETSC_HAVE_DEVICE)
    .bindtocpu = MatBindToCPU_SeqAIJHybridGPU,
#endif
#if HYB_HAS_CURRENTMEMTYPE
    .getcurrentmemtype = MatGetCurrentMemType_SeqAIJHybridGPU,
#endif
  };

  HybOpsOver(A, &ours, &HYB_PARENT, on);
  MatSeqAIJHybridGPUSetCreateOps(A, on);
  HybGlueState.born.copy = MatCopy_SeqAIJHybridGPU;
  HybGlueState.born.axpy = MatAXPY_SeqAIJHybridGPU;
  MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE);
}
