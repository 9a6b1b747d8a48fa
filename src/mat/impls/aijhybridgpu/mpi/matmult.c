/*
  Products of the parallel type with vectors:

    begin    entries that others need are on their way, beside all that follows
    D        the diagonal block's product is queued; nothing has waited so far
    end      others' entries are there; the device waits for them, and the host for messages alone
    O        the off-diagonal block's product with them, added

  and transposed: O^T x begins its way to the owners, D^T x is queued, what others send is added in the order of their
  ranks. So the same bits come out in every run, and those of PETSc's own scatter.

  Where all that is short, as on coarse levels of a multigrid, it is one launch (comm/peermult.cu).

  Vectors of the host are staged once for both blocks. Where the comm room does not serve (halo.c), it is the parent's
  product, with PETSc's scatter.

  A process that fails tells those who wait for its entries.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

typedef struct {
  Mat          A, blocks[2];
  HybExec      x;
  HybHalo      halo;
  HybVecAccess dx, dy, dz;
  PetscBool    inplace;
} HybMPIMult;

static void HybMPIMultThroughHost(PetscLogDouble bytes, const char *way)
{
  if (!way[0]) return;
  HybGlueState.counts.hosthalos++;
  HybGlueState.counts.hosthalobytes += bytes;
  (void)snprintf(HybGlueState.counts.halofrom, sizeof(HybGlueState.counts.halofrom), "%s", way);
}

/* PETSc's scatter takes vectors of a device through the host where MPI is not GPU-aware; else only those of the host */
static const char *HybMPIMultScatter(PetscBool device)
{
#if defined(PETSC_HAVE_DEVICE)
  if (device) return use_gpu_aware_mpi ? "" : "PETSc's scatter, since MPI is not GPU-aware";
#endif
  return "PETSc's scatter of vectors of the host";
}

/* what crosses the bus for others' entries, and for those that they need */
static PetscErrorCode HybMPIMultLog(const HybHalo h, PetscBool transpose)
{
  const PetscLogDouble ghosts = sizeof(PetscScalar) * (PetscLogDouble)h->nghost, sent = sizeof(PetscScalar) * (PetscLogDouble)h->nsend;

  PetscFunctionBegin;
  if (HybHaloFromCardToCard(h, transpose)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLogToHost(transpose ? ghosts : sent));
  PetscCall(HybLogToDevice(transpose ? sent : ghosts));
  HybMPIMultThroughHost(sent + ghosts, HybHaloWay(h, transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIMultForward(HybMPIMult *m, HybSpMVMode mode)
{
  const PetscScalar *y     = m->inplace ? m->dz.there : m->dy.there;
  PetscScalar       *ghost = NULL;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(HybHaloBegin(m->halo, &m->x, sizeof(PetscScalar), m->dx.there));
  ierr = MatSeqAIJHybridGPUMultArrays(m->blocks[0], &m->x, PETSC_FALSE, m->dx.there, mode, y, m->dz.there);
  if (!ierr) ierr = HybRecordBegin(HYB_RECORD_GHOSTS, m->A, &m->x); /* others wait for the end in any case */
  PetscCall(HybHaloEnd(m->halo, &m->x, ierr, &ghost));
  PetscCall(HybMPIMultLog(m->halo, PETSC_FALSE));
  PetscCall(HybRecordEnd(HYB_RECORD_GHOSTS, m->A, &m->x, HybHaloBy(m->halo, PETSC_FALSE), "", 0, 0));
  PetscCall(MatSeqAIJHybridGPUMultArrays(m->blocks[1], &m->x, PETSC_FALSE, ghost, mode == HYB_SPMV_SET ? HYB_SPMV_ADD : mode, m->dz.there, m->dz.there));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIMultReverse(HybMPIMult *m, HybSpMVMode mode, PetscScalar *ghost)
{
  const PetscScalar *y = m->inplace ? m->dz.there : m->dy.there;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(HybHaloReverseBegin(m->halo, &m->x, PETSC_TRUE, ghost));
  ierr = MatSeqAIJHybridGPUMultArrays(m->blocks[0], &m->x, PETSC_TRUE, m->dx.there, mode, y, m->dz.there);
  if (!ierr) ierr = HybRecordBegin(HYB_RECORD_GHOSTS, m->A, &m->x); /* others wait for the end in any case */
  PetscCall(HybHaloReverseEnd(m->halo, &m->x, ierr, m->dz.there));
  PetscCall(HybMPIMultLog(m->halo, PETSC_TRUE));
  PetscCall(HybRecordEnd(HYB_RECORD_GHOSTS, m->A, &m->x, HybHaloBy(m->halo, PETSC_TRUE), "", 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Begin to End as one launch, with both blocks' products. *may: it can be done. */
static PetscErrorCode HybMPIMultTogetherLook(HybMPIMult *m, PetscBool transpose, HybPeerProduct *p, PetscBool *may)
{
  PetscFunctionBegin;
  *may = HybHaloMultiplies(m->halo, transpose);
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUMultBegin(m->blocks[0], &m->x, transpose, &p->D.csr, &p->D.lanes));
  PetscCall(MatSeqAIJHybridGPUMultBegin(m->blocks[1], &m->x, transpose, &p->O.csr, &p->O.lanes));
  *may = (PetscBool)(p->D.lanes && p->O.lanes && (!transpose || p->O.csr.nnz <= HYB_HALO_BESIDE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIMultTogether(HybMPIMult *m, HybSpMVMode mode, HybPeerProduct *p)
{
  const HybRecordOp op = HybMultRecord(p->transpose, mode);
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  p->x    = (const HybScalar *)m->dx.there;
  p->y    = (const HybScalar *)(m->inplace ? m->dz.there : m->dy.there);
  p->z    = (HybScalar *)m->dz.there;
  p->mode = (int)mode;
  ierr    = HybRecordBegin(op, m->blocks[0], &m->x);
  if (!ierr) ierr = HybEventBegin(HYB_OP_MULT, m->A);
  if (!ierr) ierr = PetscLogGpuTimeBegin();
  if (ierr) HybHaloAbandon(m->halo, &m->x, sizeof(HybScalar), p->transpose, ierr);
  PetscCall(ierr);
  HybCallBoth(HybHaloMult(m->halo, &m->x, p), PetscLogGpuTimeEnd());
  PetscCall(HybEventEnd(HYB_OP_MULT, m->A));
  PetscCall(HybRecordEnd(op, m->blocks[0], &m->x, "one launch", "", 2.0 * ((PetscLogDouble)p->D.csr.nnz + (PetscLogDouble)p->O.csr.nnz), HybMultBytes(&p->D.csr, mode) + HybMultBytes(&p->O.csr, HYB_SPMV_ADD)));
  PetscCall(MatSeqAIJHybridGPUMultEnd(m->blocks[0], &m->x, p->transpose, mode));
  PetscCall(MatSeqAIJHybridGPUMultEnd(m->blocks[1], &m->x, p->transpose, p->transpose ? HYB_SPMV_SET : mode == HYB_SPMV_SET ? HYB_SPMV_ADD
                                                                                                                            : mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* of arrays that are known; ierr: an error of this process's, of which those are told who wait for it */
static PetscErrorCode HybMPIMultArrays(HybMPIMult *m, PetscErrorCode ierr, PetscBool transpose, HybSpMVMode mode)
{
  HybScalar           *ghost    = NULL;
  Mat_SeqAIJHybridGPU *block    = NULL;
  HybPeerProduct       product  = {.transpose = transpose};
  PetscBool            together = PETSC_FALSE;

  PetscFunctionBegin;
  if (!ierr) ierr = MatSeqAIJHybridGPUGetData(m->blocks[0], &block);
  if (!ierr) HybHaloBeside(m->halo, block->copy.csr.nnz); /* 0 before its first product */
  if (!ierr) ierr = HybMPIMultTogetherLook(m, transpose, &product, &together);
  if (!ierr && transpose && !together) {
    ierr = HybHaloRoom(m->halo, &ghost);
    if (!ierr) ierr = MatSeqAIJHybridGPUMultArrays(m->blocks[1], &m->x, PETSC_TRUE, m->dx.there, HYB_SPMV_SET, NULL, (PetscScalar *)ghost);
  }
  if (ierr) HybHaloAbandon(m->halo, &m->x, sizeof(HybScalar), transpose, ierr);
  PetscCall(ierr);
  if (together)
    PetscCall(HybMPIMultTogether(m, mode, &product));
  else if (transpose)
    PetscCall(HybMPIMultReverse(m, mode, (PetscScalar *)ghost));
  else
    PetscCall(HybMPIMultForward(m, mode));
  PetscCall(MatMPIAIJHybridGPUTellWay(m->A, transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIMultApply(HybMPIMult *m, PetscErrorCode before, PetscBool transpose, Vec x, HybSpMVMode mode, Vec y, Vec z)
{
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  m->dx.v = m->dy.v = m->dz.v = NULL;
  if (!ierr) ierr = HybVecGet(&m->x, x, PETSC_TRUE, PETSC_FALSE, &m->dx);
  if (!ierr) ierr = HybVecGet(&m->x, m->inplace ? NULL : y, PETSC_TRUE, PETSC_FALSE, &m->dy);
  if (!ierr) ierr = HybVecGet(&m->x, z, m->inplace, PETSC_TRUE, &m->dz);
  ierr = HybMPIMultArrays(m, ierr, transpose, mode);
  ierr = HybVecRestore(ierr, &m->dz);
  ierr = HybVecRestore(ierr, &m->dy);
  PetscCall(HybVecRestore(ierr, &m->dx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's functions compare what all processes have together, and for some products nothing else */
static PetscErrorCode HybMPIMultCheckSize(Vec v, const char *name, PetscLayout map)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCheck(n == map->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Vector %s of a product has %" PetscInt_FMT " entries on this process, and must have %" PetscInt_FMT " for this matrix: MatCreateVecs() makes such", name, n, map->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMPIMultCheckSizes(Mat A, PetscBool transpose, Vec x, Vec y, Vec z)
{
  const PetscLayout from = transpose ? A->rmap : A->cmap, to = transpose ? A->cmap : A->rmap;

  PetscFunctionBegin;
  PetscCall(HybMPIMultCheckSize(x, "x", from));
  if (y) PetscCall(HybMPIMultCheckSize(y, "y", to));
  PetscCall(HybMPIMultCheckSize(z, "z", to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The halo that serves; where only this process cannot go by it, those are told who wait for its entries */
static PetscErrorCode HybMPIMultHalo(HybMPIMult *m, PetscBool device, PetscBool transpose)
{
  PetscErrorCode ierr = MatMPIAIJHybridGPUGetHalo(m->A, device, m->blocks, &m->x, &m->halo);

  PetscFunctionBegin;
  if (ierr && m->halo) HybHaloAbandon(m->halo, &m->halo->arena.exec, sizeof(HybScalar), transpose, ierr);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* before: an error of this process's, of which those are told who wait for its entries. *done: PETSC_FALSE where it is
   the parent's to do. */
static PetscErrorCode MatMPIAIJHybridGPUMult(Mat A, PetscErrorCode before, PetscBool transpose, Vec x, HybSpMVMode mode, Vec y, Vec z, PetscBool *done)
{
  HybMPIMult     m;
  PetscBool      xdevice, zdevice, xkind, zkind;
  PetscErrorCode fits;

  PetscFunctionBegin;
  m.A         = A;
  m.blocks[1] = NULL;
  fits        = before ? before : HybMPIMultCheckSizes(A, transpose, x, mode == HYB_SPMV_SET ? NULL : y, z);
  PetscCall(HybVecOnDevice(x, &xdevice));
  PetscCall(HybVecOnDevice(z, &zdevice));
  PetscCall(HybVecOfDevice(x, &xkind));
  PetscCall(HybVecOfDevice(z, &zkind));
  PetscCall(HybMPIMultHalo(&m, (PetscBool)(xkind || zkind), transpose));
  *done = (PetscBool)(m.halo != NULL);
  if (!*done) PetscCall(fits);
  if (!*done && m.blocks[1] && (xdevice || zdevice || (HybGlueState.device && HybGlueState.choices.backend == HYB_BACKEND_CUDA)))
    HybMPIMultThroughHost(sizeof(PetscScalar) * (PetscLogDouble)m.blocks[1]->cmap->n, HybMPIMultScatter((PetscBool)(xdevice || zdevice)));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybWhereStaged(m.blocks[0], xdevice, zdevice));
  m.inplace = (PetscBool)(mode != HYB_SPMV_SET && y == z);
  if (mode == HYB_SPMV_SET) y = NULL;
  PetscCall(HybMPIMultApply(&m, fits, transpose, x, mode, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, or y + A x, or the same of A^T; y NULL: nothing is added */
static PetscErrorCode HybMPIMultOrParents(Mat A, PetscBool transpose, Vec x, Vec y, Vec z)
{
  const struct _MatOps *parent = &HybGlueState.mpi;
  PetscBool             done   = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUMult(A, PETSC_SUCCESS, transpose, x, y ? HYB_SPMV_ADD : HYB_SPMV_SET, y, z, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (y)
    PetscCall((*(transpose ? parent->multtransposeadd : parent->multadd))(A, x, y, z));
  else
    PetscCall((*(transpose ? parent->multtranspose : parent->mult))(A, x, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_MPIAIJHybridGPU(Mat A, Vec x, Vec y)
{
  return HybMPIMultOrParents(A, PETSC_FALSE, x, NULL, y);
}

PetscErrorCode MatMultAdd_MPIAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  return HybMPIMultOrParents(A, PETSC_FALSE, x, y, z);
}

PetscErrorCode MatMultTranspose_MPIAIJHybridGPU(Mat A, Vec x, Vec y)
{
  return HybMPIMultOrParents(A, PETSC_TRUE, x, NULL, y);
}

PetscErrorCode MatMultTransposeAdd_MPIAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  return HybMPIMultOrParents(A, PETSC_TRUE, x, y, z);
}

/* r = b - A x, in one pass over r for each block; a program's own product comes first */
PetscErrorCode MatResidual_MPIAIJHybridGPU(Mat A, Vec b, Vec x, Vec r)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (A->ops->mult == MatMult_MPIAIJHybridGPU) PetscCall(MatMPIAIJHybridGPUMult(A, HybResidualCheck(A, b, x, r), PETSC_FALSE, x, HYB_SPMV_RESIDUAL, b, r, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  if (HybGlueState.mpi.residual)
    PetscCall((*HybGlueState.mpi.residual)(A, b, x, r));
  else
    PetscCall(HybResidualByMult(A, b, x, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParArraysBegin(Mat A, Vec like, HybExec *x, PetscBool *may)
{
  Mat       blocks[2] = {NULL, NULL};
  HybHalo   halo;
  PetscBool device = PETSC_TRUE;

  PetscFunctionBegin;
  if (like) PetscCall(HybVecOfDevice(like, &device));
  PetscCall(MatMPIAIJHybridGPUGetHalo(A, device, blocks, x, &halo));
  *may = (PetscBool)(halo && A->ops->mult == MatMult_MPIAIJHybridGPU); /* a program's own comes first */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParForget(Mat A)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  if (hyb->halo.halo) HybHaloForget(hyb->halo.halo);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParHalo(Mat A, HybHalo *halo)
{
  Mat     blocks[2] = {NULL, NULL};
  HybExec x;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetHalo(A, PETSC_TRUE, blocks, &x, halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParMultArrays(Mat A, PetscErrorCode before, const PetscScalar *x, PetscScalar *y)
{
  HybMPIMult m;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&m, sizeof(m)));
  m.A = A;
  PetscCall(HybMPIMultHalo(&m, PETSC_TRUE, PETSC_FALSE));
  PetscCheck(m.halo, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "A product of arrays whose exchange is gone");
  m.dx.there = (PetscScalar *)x;
  m.dz.there = y;
  PetscCall(HybMPIMultArrays(&m, before, PETSC_FALSE, HYB_SPMV_SET));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParHasMult(Mat A, PetscBool *flg)
{
  const struct _MatOps *o     = A->ops;
  PetscBool             bound = PETSC_FALSE;

  PetscFunctionBegin;
  if (PetscDefined(HAVE_DEVICE)) PetscCall(MatBoundToCPU(A, &bound)); /* without devices it says so of every matrix */
  *flg = (PetscBool)(MatIsMPIAIJHybridGPU(A) && !bound && A->assembled && !A->structure_only && o->mult == MatMult_MPIAIJHybridGPU && o->multadd == MatMultAdd_MPIAIJHybridGPU && o->multtranspose == MatMultTranspose_MPIAIJHybridGPU && o->multtransposeadd == MatMultTransposeAdd_MPIAIJHybridGPU && o->residual == MatResidual_MPIAIJHybridGPU);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParGetMult(Mat A, const HybExec *x, PetscBool transpose, HybCSR csr[2], HybSpMV *plan[2])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(HybMatGetMult(block[k], x, transpose, &csr[k], &plan[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatParRestoreMult(Mat A, const HybExec *x)
{
  Mat    block[2];
  HybCSR csr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(HybMatRestoreCSR(block[k], x, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}
