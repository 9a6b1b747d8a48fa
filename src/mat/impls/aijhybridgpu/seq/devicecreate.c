/*
  Operations that make a matrix from another one on the device: duplicates, transposes, submatrices. What they make is
  born there; the host writes its row offsets and no more.

  The values of a transpose and of a submatrix are the parent's in another order. That order (one integer a nonzero) is
  kept with the result, so that MAT_REUSE_MATRIX is one gather for as long as both patterns stand. Where they do not, or
  the result was never born on the device, the work begins anew or is the parent type's.
*/
#include "coo.h"
#include "seq.h"
#include "../storage/where.h"
#include "aijhybridgpu/private/hybcsrcopy.h"

#define HYB_PARENT HybGlueState.seq

PetscErrorCode MatSeqAIJHybridGPUSetTypeOf(Mat A, Mat B)
{
  PetscFunctionBegin;
  PetscCall(MatSetType(B, ((PetscObject)A)->type_name));
  /* A got our operations while -mat_seqaij_type said so, and kept its name: B is alike, also where that is over */
  if (!MatIsSeqAIJHybridGPU(B)) {
    PetscCall(MatSetType(B, MATSEQAIJHYBRIDGPU));
    PetscCall(PetscObjectChangeTypeName((PetscObject)B, ((PetscObject)A)->type_name));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCreateLike(Mat A, PetscInt m, PetscInt n, PetscInt rbs, PetscInt cbs, Mat B)
{
  Mat_SeqAIJHybridGPU *a = NULL, *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &a));
  PetscCall(MatSetSizes(B, m, n, m, n));
  PetscCall(MatSetBlockSizes(B, rbs, cbs));
  PetscCall(MatSeqAIJHybridGPUSetTypeOf(A, B));
  PetscCall(MatSeqAIJHybridGPUGetData(B, &b));
  b->choices = a->choices;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUCreateLike(Mat A, PetscInt m, PetscInt n, PetscInt rbs, PetscInt cbs, Mat *B)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), B));
  ierr = HybCreateLike(A, m, n, rbs, cbs, *B);
  if (ierr) (void)MatDestroy(B);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUDeriveExec(Mat A, HybExec *x, PetscBool *device)
{
  HybView v;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  if (!A->assembled || A->factortype) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybViewOpen(A, &v));
  if (v.hyb->hostcopy || (!v.host.a && v.host.nnz)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &v.hyb->choices, HybBorn(v.hyb) ? HYB_ANY_SIZE : v.host.nnz, x));
  *device = HybExecOnDevice(x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same for what is born there: of rows that ascend alone */
static PetscErrorCode MatSeqAIJHybridGPUBirthExec(Mat A, HybExec *x, PetscBool *device)
{
  HybCSR csr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDeriveExec(A, x, device));
  if (HybStorageServed()) *device = PETSC_FALSE;
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_FALSE, &csr));
  PetscCall(MatSeqAIJHybridGPURowsAscend(A, x, &csr, device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybIndicesKeep(IS is, HybIndices *held)
{
  const PetscInt *indices;
  PetscBool       stride;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(held, sizeof(*held)));
  if (!is) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISGetLocalSize(is, &held->n));
  PetscCall(PetscObjectTypeCompare((PetscObject)is, ISSTRIDE, &stride));
  if (stride)
    PetscCall(ISStrideGetInfo(is, &held->first, &held->step));
  else {
    PetscCall(PetscMalloc1(held->n + 1, &held->indices));
    PetscCall(ISGetIndices(is, &indices));
    PetscCall(PetscArraycpy(held->indices, indices, held->n));
    PetscCall(ISRestoreIndices(is, &indices));
  }
  held->kept = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does an index set hold what was kept of it, or of another one? */
static PetscErrorCode HybIndicesSame(IS is, const HybIndices *held, PetscBool *same)
{
  const PetscInt *indices;
  PetscInt        n, first, step;
  PetscBool       stride;

  PetscFunctionBegin;
  *same = (PetscBool)(!is == !held->kept);
  if (!is || !*same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(PetscObjectTypeCompare((PetscObject)is, ISSTRIDE, &stride));
  *same = (PetscBool)(n == held->n && !stride == (held->indices != NULL));
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  if (stride) {
    PetscCall(ISStrideGetInfo(is, &first, &step));
    *same = (PetscBool)(first == held->first && step == held->step);
  } else {
    PetscCall(ISGetIndices(is, &indices));
    PetscCall(PetscArraycmp(indices, held->indices, n, same));
    PetscCall(ISRestoreIndices(is, &indices));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, just adopted, remembers that its values are A's through perm, a block of keep */
static PetscErrorCode HybDerivedKeep(Mat A, Mat B, HybArena *keep, PetscInt *perm, IS rows, IS cols)
{
  Mat_SeqAIJHybridGPU *a = NULL, *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &a));
  PetscCall(MatSeqAIJHybridGPUGetData(B, &b));
  PetscCall(HybDerivedDestroy(&b->derived));
  PetscCall(HybIndicesKeep(rows, &b->derived.is[0]));
  PetscCall(HybIndicesKeep(cols, &b->derived.is[1]));
  HybArenaGive(keep, &b->derived.arena);
  b->derived.parent    = ((PetscObject)A)->id;
  b->derived.perm      = perm;
  b->derived.ready     = PETSC_TRUE;
  b->derived.parentkey = a->copy.key;
  b->derived.key       = b->copy.key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B's values again from A's, if B remembers how and both patterns stand */
static PetscErrorCode HybDerivedRefresh(Mat A, Mat B, const HybExec *x, IS rows, IS cols, PetscBool *done)
{
  Mat_SeqAIJHybridGPU *a = NULL, *b = NULL;
  HybExec              xb;
  HybCSR               ac, bc;
  PetscBool            device, same;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!MatIsSeqAIJHybridGPU(B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &a));
  PetscCall(MatSeqAIJHybridGPUGetData(B, &b));
  if (!b->derived.ready || ((PetscObject)A)->id != b->derived.parent) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    PetscCall(HybIndicesSame(k ? cols : rows, &b->derived.is[k], &same));
    if (!same) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(B, &xb, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &ac));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(B, x, PETSC_TRUE, &bc));
  if (!HybPatternKeyEqual(&a->copy.key, &b->derived.parentkey) || !HybPatternKeyEqual(&b->copy.key, &b->derived.key)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->csr->gather(x, bc.nnz, b->derived.perm, PETSC_FALSE, ac.a, bc.a));
  PetscCall(MatSeqAIJHybridGPUDeviceWritten(B, x));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix with the pattern of a device-born one: the device copies, the host writes row offsets only */
static PetscErrorCode MatSeqAIJHybridGPUCloneOnDevice(Mat A, const HybExec *x, PetscBool values, Mat B)
{
  HybCSR         csr, result;
  HybArena       arrays;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  arrays = HybArenaOn(x);
  ierr   = HybCSRCopy(x, &arrays, x->result, &csr, values, HYB_COPY_DEVICE_TO_DEVICE, &result);
  if (!ierr && !values) ierr = HybArenaCalloc(&arrays, x->result, csr.nnz, sizeof(HybScalar), &result.a);
  if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(B, x, &arrays, &result);
  if (ierr) (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SeqAIJHybridGPU(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_SeqAIJHybridGPU *a = NULL, *b = NULL;
  HybExec              x;
  PetscBool            device = PETSC_FALSE, ended;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, duplicate, A, op, B);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &a));
  if (op != MAT_SHARE_NONZERO_PATTERN && !a->hostcopy && (a->lives != HYB_LIVES_PROMOTED || a->optionsknown)) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(A, &x, &device));
  if (device) PetscCall(MatSeqAIJHybridGPUBirthExec(A, &x, &device));
  if (!device) {
    const int readers = a->readers; /* before 3.26 the parent gets the values twice, and restores them once */

    if (op == MAT_COPY_VALUES)
      ierr = MatSeqAIJHybridGPUHostDuplicate(A, PETSC_TRUE, B);
    else {
      HybLargePagesBegin(A->rmap->n);
      ierr = (*HYB_PARENT.duplicate)(A, op, B);
      HybLargePagesEnd();
      if (!ierr && a->inodesleft && MatIsSeqAIJHybridGPU(*B)) ierr = HybInodesLeave(*B);
    }
    a->readers = readers;
    PetscCall(ierr);
    PetscCall(MatSeqAIJHybridGPUShare(A, *B));
    if (a->neverpreallocated && MatIsSeqAIJHybridGPU(*B)) {
      PetscCall(MatSeqAIJHybridGPUGetData(*B, &b));
      b->neverpreallocated = PETSC_TRUE;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_DUPLICATE, A));
  PetscCall(MatSeqAIJHybridGPUCreateLike(A, A->rmap->n, A->cmap->n, A->rmap->bs, A->cmap->bs, B));
  PetscCall(PetscLayoutReference(A->rmap, &(*B)->rmap));
  PetscCall(PetscLayoutReference(A->cmap, &(*B)->cmap));
  ierr = MatSeqAIJHybridGPUCloneOnDevice(A, &x, (PetscBool)(op == MAT_COPY_VALUES), *B);
  if (ierr) (void)MatDestroy(B);
  PetscCall(ierr);
  PetscCall(HybEventEnd(HYB_OP_DUPLICATE, A));
  PetscCall(MatSeqAIJHybridGPUShare(A, *B));
  (*B)->num_ass = 0; /* a duplicate was never assembled itself */
  PetscCall(MatSeqAIJHybridGPUGetData(*B, &b));
  /* the number by which a pattern is known goes with it, as AIJ's does: MatHeaderReplace() by a duplicate is no news */
  (*B)->nonzerostate = (*B)->ass_nonzerostate = A->nonzerostate;
  b->copy.key.nonzerostate = b->checkkey.nonzerostate = A->nonzerostate;
  if (!a->inodesleft) {
    PetscCall(HybInodesEnded(A, &ended));
    if (ended) b->inodesleft = PETSC_FALSE;
  }
  for (int k = 0; k < HYB_ASKED_GROUPS; k++)
    if (b->asked[k].said) PetscCall((*HYB_PARENT.setoption)(*B, b->asked[k].op, b->asked[k].flg));
  PetscCall(PetscFunctionListDuplicate(((PetscObject)A)->qlist, &((PetscObject)(*B))->qlist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The transpose's arrays on the device, values included, and in keep the permutation */
static PetscErrorCode HybTransposeOnDevice(Mat A, const HybExec *x, HybArena *arrays, HybArena *keep, HybCSR *T, PetscInt **perm)
{
  HybCSR   csr;
  HybArena work;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  work = HybArenaOn(x);
  HybCallBoth(x->backend->csr->transpose(x, arrays, &work, &csr, PETSC_FALSE, T, perm), HybArenaReset(&work));
  PetscCall(HybArenaMove(arrays, keep, *perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has A another pattern than when B became its transpose? Then the parent makes a new matrix in B's place. */
static PetscErrorCode HybDerivedChanged(Mat A, Mat B, PetscBool *changed)
{
  Mat_SeqAIJHybridGPU *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(B, &b));
  *changed = (PetscBool)(b->derived.ready && ((PetscObject)A)->id == b->derived.parent && A->nonzerostate != b->derived.parentkey.nonzerostate);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new transpose, made as one of the parent's: PETSc's way from that to A's type is by its name, for which it makes
   one more matrix of the type */
static PetscErrorCode HybNewTransposeOfParent(Mat A, Mat *B)
{
  char           parent[] = MATSEQAIJ, *type = ((PetscObject)A)->type_name;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!strcmp(type, MATSEQAIJHYBRIDGPU)) ((PetscObject)A)->type_name = parent;
  ierr                        = (*HYB_PARENT.transpose)(A, MAT_INITIAL_MATRIX, B);
  ((PetscObject)A)->type_name = type;
  PetscCall(ierr);
  if (!strcmp(type, MATSEQAIJHYBRIDGPU)) PetscCall((*HybGlueState.convertseq)(*B, MATSEQAIJHYBRIDGPU, MAT_INPLACE_MATRIX, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By the parent, which writes the pattern of a transpose that is used again, too: another one where A is another matrix
   (MatTransposeSetPrecursor()) or has columns that were written where they are. To look for that takes as long as half
   of a transpose. */
static PetscErrorCode HybTransposeOfParent(Mat A, MatReuse reuse, Mat *B)
{
  Mat_SeqAIJHybridGPU *b     = NULL;
  PetscBool            known = PETSC_FALSE;
  HybPatternKey        own, other;
  HybInPlace           w;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX && MatIsSeqAIJHybridGPU(*B) && (*B)->assembled) {
    PetscCall(MatSeqAIJHybridGPUGetData(*B, &b));
    PetscCall(HybPatternKeyNow(A, &other));
    PetscCall(HybPatternKeyNow(*B, &own));
    known = (PetscBool)(((PetscObject)A)->id == b->transposed.id && HybPatternKeyEqual(&own, &b->transposed.own) && HybPatternKeyEqual(&other, &b->transposed.other));
    if (known) PetscCall(MatSeqAIJHybridGPUHostWrites(*B));
  }
  PetscCall(HybInPlaceBegin(reuse == MAT_REUSE_MATRIX && !known ? *B : NULL, &w));
  HybCallBoth(reuse == MAT_INITIAL_MATRIX ? HybNewTransposeOfParent(A, B) : (*HYB_PARENT.transpose)(A, reuse, B), HybInPlaceEnd(reuse == MAT_REUSE_MATRIX && !known ? *B : NULL, &w));
  if (reuse == MAT_INPLACE_MATRIX || known || !MatIsSeqAIJHybridGPU(*B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(*B, &b));
  b->transposed.id = ((PetscObject)A)->id;
  PetscCall(HybPatternKeyNow(A, &b->transposed.other));
  PetscCall(HybPatternKeyNow(*B, &b->transposed.own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatCreateGraph() adds a graph's transpose to it, in a new matrix, where PETSc does not know that the pattern is
   symmetric. It does not look. So here it is told, of its own matrix, which it calls symmetric when it is done. */
static PetscErrorCode HybTransposeTellSymmetry(Mat A, Mat B)
{
  const PetscInt *ai, *aj, *bi, *bj;
  const PetscInt  m = A->rmap->n;
  PetscMemType    mtype;

  PetscFunctionBegin;
  if (!HybGlueState.graphs || m != A->cmap->n || A->structurally_symmetric != PETSC_BOOL3_UNKNOWN || !A->assembled || !B->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &ai, &aj, NULL, &mtype));
  PetscCall(MatSeqAIJGetCSRAndMemType(B, &bi, &bj, NULL, &mtype));
  if (!ai || !bi || memcmp(ai, bi, ((size_t)m + 1) * sizeof(*ai)) || memcmp(aj, bj, (size_t)ai[m] * sizeof(*aj))) PetscFunctionReturn(PETSC_SUCCESS);
  A->structurally_symmetric = PETSC_BOOL3_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if HYB_GRAPH_AS_318
static PetscErrorCode MatCreateGraph_SeqAIJHybridGPU(Mat A, PetscBool sym, PetscBool scale, PetscReal filter, Mat *G)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, creategraph, A, sym, scale, filter, G);
  HybGlueState.graphs++;
  ierr = (*HYB_PARENT.creategraph)(A, sym, scale, filter, G);
  HybGlueState.graphs--;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatTranspose_SeqAIJHybridGPU(Mat A, MatReuse reuse, Mat *B)
{
  HybExec        x;
  HybArena       arrays, keep;
  HybCSR         csr;
  PetscInt      *perm = NULL;
  PetscBool      device, again, done = PETSC_FALSE, changed = PETSC_FALSE;
  PetscErrorCode ierr;
  Mat            T = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, transpose, A, reuse, B);
  PetscCall(MatSeqAIJHybridGPUBirthExec(A, &x, &device));
  /* a result that the host made, or that lives on the host now, is the host's to write */
  if (device && reuse == MAT_REUSE_MATRIX) {
    HybExec xb;

    device = MatIsSeqAIJHybridGPU(*B);
    if (device) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(*B, &xb, &device));
  }
  if (!device) {
    Mat_SeqAIJHybridGPU *hyb = NULL;
    HybChoices           choices;
    PetscCount           adoptions;

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    choices   = hyb->choices;
    adoptions = hyb->adoptions;
    PetscCall(HybTransposeOfParent(A, reuse, B));
    if (reuse == MAT_INITIAL_MATRIX) PetscCall(HybTransposeTellSymmetry(A, *B));
    if (reuse == MAT_INPLACE_MATRIX) { /* it is another matrix's data now */
      PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
      hyb->choices   = choices;
      hyb->adoptions = adoptions + 1;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybEventBegin(HYB_OP_TRANSPOSE, A));
  if (reuse == MAT_REUSE_MATRIX) PetscCall(HybDerivedRefresh(A, *B, &x, NULL, NULL, &done));
  if (!done) {
    arrays = HybArenaOn(&x);
    keep   = HybArenaOn(&x);
    ierr   = HybTransposeOnDevice(A, &x, &arrays, &keep, &csr, &perm);
    if (!ierr && reuse == MAT_REUSE_MATRIX) ierr = HybDerivedChanged(A, *B, &changed);
    again = (PetscBool)(reuse == MAT_REUSE_MATRIX && !changed);
    if (!ierr && !again) ierr = MatSeqAIJHybridGPUCreateLike(A, A->cmap->n, A->rmap->n, A->cmap->bs, A->rmap->bs, &T);
    if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(again ? *B : T, &x, &arrays, &csr);
    if (ierr) {
      (void)HybArenaReset(&arrays);
      (void)HybArenaReset(&keep);
      (void)MatDestroy(&T);
    }
    PetscCall(ierr);
    if (reuse == MAT_INPLACE_MATRIX) {
      PetscCall(HybArenaReset(&keep));
      if (A->rmap->n != A->cmap->n) PetscCall(MatProductClear(A)); /* what made A does not fit any more */
      PetscCall(HybHeaderMerge(A, &T));
      PetscCall(MatSeqAIJHybridGPUForgetCOO(A));
    } else {
      PetscCall(HybDerivedKeep(A, again ? *B : T, &keep, perm, NULL, NULL));
      if (changed) {
        PetscCall(HybHeaderMerge(*B, &T));
        PetscCall(MatTransposeSetPrecursor(A, *B));
      } else if (!again)
        *B = T;
    }
  }
  PetscCall(HybEventEnd(HYB_OP_TRANSPOSE, A));
  HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The submatrix's arrays on the device, values included, and in keep the permutation; its columns are cstart to cend-1
   of A's, or those that colmap says */
static PetscErrorCode HybSubMatrixOnDevice(Mat A, const HybExec *x, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, PetscInt ncols, const PetscInt *colmap, PetscBool ascending, HybArena *arrays, HybArena *keep, HybCSR *S, PetscInt **perm)
{
  HybCSR         csr;
  HybArena       work;
  PetscInt      *rowsdevice, *mapdevice = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  work = HybArenaOn(x);
  ierr = HybArenaAlloc(&work, HYB_MEM_DEVICE, nrows, sizeof(PetscInt), &rowsdevice);
  if (!ierr) ierr = x->backend->copy(x, rowsdevice, rows, sizeof(PetscInt) * (size_t)nrows, HYB_COPY_HOST_TO_DEVICE);
  if (colmap) {
    if (!ierr) ierr = HybArenaAlloc(&work, HYB_MEM_DEVICE, csr.n, sizeof(PetscInt), &mapdevice);
    if (!ierr) ierr = x->backend->copy(x, mapdevice, colmap, sizeof(PetscInt) * (size_t)csr.n, HYB_COPY_HOST_TO_DEVICE);
    if (!ierr) ierr = x->backend->csr->submatrixmapped(x, arrays, &work, &csr, nrows, rowsdevice, ncols, mapdevice, ascending, S, perm);
  } else if (!ierr)
    ierr = x->backend->csr->submatrixsymbolic(x, arrays, &work, &csr, nrows, rowsdevice, cstart, cend, S, perm);
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&work)));
  PetscCall(HybArenaAlloc(arrays, x->result, S->nnz, sizeof(HybScalar), &S->a));
  PetscCall(x->backend->csr->gather(x, S->nnz, *perm, PETSC_FALSE, csr.a, S->a));
  PetscCall(HybArenaMove(arrays, keep, *perm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For each column of A its number in iscol or -1; *colmap is NULL if iscol names one twice or none of A's */
static PetscErrorCode HybColumnMap(Mat A, IS iscol, PetscInt ncols, PetscInt **colmap, PetscBool *ascending)
{
  const PetscInt *cols;
  PetscBool       ok = PETSC_TRUE;

  PetscFunctionBegin;
  *ascending = PETSC_TRUE;
  PetscCall(PetscMalloc1(A->cmap->n + 1, colmap));
  for (PetscInt c = 0; c < A->cmap->n; c++) (*colmap)[c] = -1;
  PetscCall(ISGetIndices(iscol, &cols));
  for (PetscInt k = 0; k < ncols && ok; k++) {
    if (cols[k] < 0 || cols[k] >= A->cmap->n || (*colmap)[cols[k]] >= 0)
      ok = PETSC_FALSE;
    else
      (*colmap)[cols[k]] = k;
    if (k && cols[k] < cols[k - 1]) *ascending = PETSC_FALSE;
  }
  PetscCall(ISRestoreIndices(iscol, &cols));
  if (!ok) PetscCall(PetscFree(*colmap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* csr, on the device, is what B, which is used again, shall hold. Where B has that pattern and lives there it gets the
   values, and remembers where they come from. Else the parent does it: it refuses rows of other lengths, and writes
   other columns where the old ones are. */
static PetscErrorCode HybSubMatrixAgain(Mat A, Mat B, const HybExec *x, const HybCSR *csr, HybArena *keep, PetscInt *perm, IS isrow, IS iscol, PetscBool *done)
{
  HybExec       xb;
  HybCSR        b;
  const HybCSR *both[2] = {&b, csr};
  HybArena      work;
  uint64_t      hash[2];

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUWriteOnDevice(B, &xb, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(B, x, PETSC_TRUE, &b));
  *done = (PetscBool)(b.m == csr->m && b.n == csr->n && b.nnz == csr->nnz);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  work = HybArenaOn(x);
  HybCallBoth(x->backend->csr->patternhash(x, &work, 2, both, hash), HybArenaReset(&work));
  *done = (PetscBool)(hash[0] == hash[1]);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->copy(x, b.a, csr->a, sizeof(HybScalar) * (size_t)b.nnz, HYB_COPY_DEVICE_TO_DEVICE));
  PetscCall(MatSeqAIJHybridGPUDeviceWritten(B, x));
  PetscCall(HybDerivedKeep(A, B, keep, perm, isrow, iscol));
  PetscCall(MatSeqAIJHybridGPUAssembleWritten(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJHybridGPUSubMatrix(Mat A, IS isrow, IS iscol, MatReuse reuse, Mat *B, PetscBool *done)
{
  HybExec         x;
  HybArena        arrays, keep;
  HybCSR          csr;
  const PetscInt *rows;
  PetscInt        nrows, ncols, first = 0, step = 1, rmin, rmax, rbs, cbs, *perm = NULL, *colmap = NULL;
  PetscBool       device, stride, ascending = PETSC_TRUE;
  PetscErrorCode  ierr;
  Mat             S;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatSeqAIJHybridGPUBirthExec(A, &x, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISGetLocalSize(isrow, &nrows));
  PetscCall(ISGetLocalSize(iscol, &ncols));
  PetscCall(PetscObjectTypeCompare((PetscObject)iscol, ISSTRIDE, &stride));
  if (stride) PetscCall(ISStrideGetInfo(iscol, &first, &step));
  /* the parent says what is wrong with it */
  if (stride && step == 1 && (first < 0 || first > A->cmap->n - ncols)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISGetMinMax(isrow, &rmin, &rmax));
  /* the parent says what is wrong with it */
  if (nrows && (rmin < 0 || rmax >= A->rmap->n)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEventBegin(HYB_OP_SUBMATRIX, A));
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(HybDerivedRefresh(A, *B, &x, isrow, iscol, done));
    if (*done) PetscCall(MatSeqAIJHybridGPUAssembleWritten(*B)); /* as the parent */
    if (*done || !MatIsSeqAIJHybridGPU(*B) || (*B)->rmap->n != nrows || (*B)->cmap->n != ncols) {
      PetscCall(HybEventEnd(HYB_OP_SUBMATRIX, A));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  arrays = HybArenaOn(&x);
  keep   = HybArenaOn(&x);
  if (!stride || step != 1) PetscCall(HybColumnMap(A, iscol, ncols, &colmap, &ascending));
  if (colmap || (stride && step == 1)) {
    PetscCall(ISGetIndices(isrow, &rows));
    ierr = HybSubMatrixOnDevice(A, &x, nrows, rows, first, first + ncols, ncols, colmap, ascending, &arrays, &keep, &csr, &perm);
    PetscCall(ISRestoreIndices(isrow, &rows));
    PetscCall(PetscFree(colmap));
  } else { /* a column twice, or one that is not there */
    PetscCall(HybEventEnd(HYB_OP_SUBMATRIX, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_REUSE_MATRIX) {
    if (!ierr) ierr = HybSubMatrixAgain(A, *B, &x, &csr, &keep, perm, isrow, iscol, done);
    ierr = HybErrorFirst(ierr, HybArenaReset(&arrays));
    PetscCall(HybErrorFirst(ierr, HybArenaReset(&keep))); /* empty where B remembers */
  } else {
    S = NULL;
    if (!ierr) ierr = ISGetBlockSize(isrow, &rbs);
    if (!ierr) ierr = ISGetBlockSize(iscol, &cbs);
    if (!ierr) ierr = MatSeqAIJHybridGPUCreateLike(A, nrows, ncols, rbs, cbs, &S);
    if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(S, &x, &arrays, &csr);
    if (!ierr) ierr = MatSetOption(S, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_TRUE); /* the parent preallocates it */
    if (!ierr) ierr = HybDerivedKeep(A, S, &keep, perm, isrow, iscol);
    if (ierr) {
      (void)HybArenaReset(&arrays);
      (void)HybArenaReset(&keep);
      (void)MatDestroy(&S);
    }
    PetscCall(ierr);
    ((Mat_SeqAIJHybridGPU *)S->spptr)->aspreallocated = PETSC_TRUE;
    *B                                                = S;
    *done                                             = PETSC_TRUE;
  }
  PetscCall(HybEventEnd(HYB_OP_SUBMATRIX, A));
  if (*done) HybGlueState.counts.deviceops++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSubMatrixOfParent(Mat A, IS isrow, IS iscol, MatReuse reuse, Mat *B)
{
  Mat            one[2] = {*B, NULL}, *S = one;
  HybInPlace     w;
  PetscErrorCode ierr, later;

  PetscFunctionBegin;
  PetscCall(HybInPlaceBegin(reuse == MAT_REUSE_MATRIX ? *B : NULL, &w));
  ierr  = (*HYB_PARENT.createsubmatrices)(A, 1, &isrow, &iscol, reuse, &S);
  later = HybInPlaceEnd(reuse == MAT_REUSE_MATRIX ? *B : NULL, &w);
  PetscCall(ierr);
  *B = S[0];
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(PetscFree(S));
  PetscCall(later);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatCreateSubMatrix() of a sequential AIJ matrix comes here as well */
static PetscErrorCode MatCreateSubMatrices_SeqAIJHybridGPU(Mat A, PetscInt n, const IS isrow[], const IS iscol[], MatReuse reuse, Mat *B[])
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, createsubmatrices, A, n, isrow, iscol, reuse, B);
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(PetscCalloc1(n + 1, B));
  for (PetscInt k = 0; k < n && !ierr; k++) {
    PetscBool done = PETSC_FALSE;

    ierr = MatSeqAIJHybridGPUSubMatrix(A, isrow[k], iscol[k], reuse, &(*B)[k], &done);
    if (!ierr && !done) ierr = HybSubMatrixOfParent(A, isrow[k], iscol[k], reuse, &(*B)[k]);
  }
  if (ierr && reuse == MAT_INITIAL_MATRIX) { /* nothing of a failed call stays behind */
    for (PetscInt k = 0; k < n; k++) (void)MatDestroy(&(*B)[k]);
    (void)PetscFree(*B);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSeqAIJHybridGPUSetCreateOps(Mat A, PetscBool on)
{
  static const struct _MatOps ours = {
    .duplicate = MatDuplicate_SeqAIJHybridGPU,
    .transpose = MatTranspose_SeqAIJHybridGPU,
#if HYB_GRAPH_AS_318
    .creategraph = MatCreateGraph_SeqAIJHybridGPU,
#endif
    .createsubmatrices = MatCreateSubMatrices_SeqAIJHybridGPU,
  };

  HybOpsOver(A, &ours, &HYB_PARENT, on);
}
