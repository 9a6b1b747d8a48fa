/*
  What the parent's parallel "backend" products ask for by name: the local rows of an operand as one sequential matrix, and values of sequential products, which they hand to
  the owners of the entries. The parent does both by walking over host arrays, which costs a page fault for every page of what lives on the device, both ways. Here the device
  puts the values together, and only those that are wanted cross the bus, in large pieces.
*/
#include "../aijhybridgpuimpl.h"

/* v = the n values of A at the places idx, or the first n; v is the host's or a device's */
PetscErrorCode MatSeqAIJCopySubArray_SeqAIJHybridGPU(Mat A, PetscInt n, const PetscInt idx[], PetscScalar v[])
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  PetscBool            device = PETSC_FALSE, vdevice;

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCOOIsOnDevice(v, &vdevice));
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    if (hyb->copy.shared || vdevice) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(A, &x, &device)); /* in mirror mode the host has the values anyway */
  }
  if (device) {
    HybArena         work;
    HybCSR           csr;
    const HybScalar *from;
    PetscErrorCode   ierr = PETSC_SUCCESS;

    PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, &x, PETSC_TRUE, &csr));
    PetscCall(HybArenaInit(&work, &x));
    from = csr.a;
    if (idx) {
      PetscInt  *place = NULL;
      HybScalar *some  = NULL;

      ierr = HybArenaAlloc(&work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &place);
      if (!ierr) ierr = x.backend->copy(&x, place, idx, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE);
      if (!ierr) ierr = HybLogToDevice(sizeof(PetscInt) * (PetscLogDouble)n);
      if (!ierr && !vdevice) ierr = HybArenaAlloc(&work, HYB_MEM_DEVICE, n, sizeof(HybScalar), &some);
      if (!ierr) ierr = x.backend->csr->gather(&x, n, place, PETSC_FALSE, csr.a, vdevice ? (HybScalar *)v : some);
      from = some;
    }
    if (!ierr && (!idx || !vdevice)) {
      ierr = x.backend->copy(&x, v, from, sizeof(PetscScalar) * (size_t)n, vdevice ? HYB_COPY_DEVICE_TO_DEVICE : HYB_COPY_DEVICE_TO_HOST);
      if (!ierr && !vdevice) ierr = HybLogToHost(sizeof(PetscScalar) * (PetscLogDouble)n);
    }
    if (!ierr) ierr = x.backend->sync(&x);
    PetscCall(HybArenaReset(&work));
    PetscCall(ierr);
  } else {
    const PetscScalar *a;

    PetscCheck(!vdevice, PETSC_COMM_SELF, PETSC_ERR_SUP, "Values of a matrix on the host are wanted on the device");
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    if (idx)
      for (PetscInt k = 0; k < n; k++) v[k] = a[idx[k]];
    else PetscCall(PetscArraycpy(v, a, n));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the values of the merged matrix come from: entry k is entry perm[k] of the diagonal block's values followed by the off-diagonal block's */
typedef struct {
  HybArena      arena;
  PetscInt     *perm;
  HybPatternKey block[2], merged;
} HybMerge;

static PetscErrorCode HybMergeDestroy(void *ctx)
{
  HybMerge *g = (HybMerge *)ctx;

  PetscFunctionBegin;
  PetscCall(HybArenaReset(&g->arena));
  PetscCall(PetscFree(g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKeyOf(Mat A, HybPatternKey *key)
{
  HybLent l;

  PetscFunctionBegin;
  PetscCall(HybLentGet(A, PETSC_FALSE, &l));
  PetscCall(HybPatternKeyGet(A, &l.csr, key));
  PetscCall(HybLentRestore(A, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the parent's own way */
static PetscErrorCode HybMergeOnHost(Mat A, MatReuse reuse, IS *glob, Mat *merged)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatMPIAIJGetLocalMatMerge_C", NULL));
  ierr = MatMPIAIJGetLocalMatMerge(A, reuse, glob, merged);
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatMPIAIJGetLocalMatMerge_C", MatMPIAIJGetLocalMatMerge_MPIAIJHybridGPU));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The merged matrix moves to storage that is valid on both sides, as a result of the device's */
static PetscErrorCode HybMergeMove(const HybExec *x, Mat merged, HybMerge *g, Mat blocks[2])
{
  HybLent        l, b[2];
  HybArena       arrays;
  HybCSR         csr;
  PetscInt      *perm;
  PetscCount     k = 0, at[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) PetscCall(HybLentGet(blocks[p], PETSC_FALSE, &b[p]));
  PetscCall(PetscMalloc1(b[0].csr.nnz + b[1].csr.nnz, &perm));
  at[0] = 0;
  at[1] = b[0].csr.nnz;
  for (PetscInt r = 0; r < b[0].csr.m; r++)
    for (int p = 0; p < 2; p++)
      for (PetscInt e = b[p].csr.i[r]; e < b[p].csr.i[r + 1]; e++) perm[k++] = (PetscInt)at[p]++;
  for (int p = 0; p < 2; p++) PetscCall(HybLentRestore(blocks[p], &b[p]));
  PetscCall(HybLentGet(merged, PETSC_TRUE, &l));
  csr = l.csr;
  PetscCall(HybArenaInit(&arrays, x));
  ierr = HybArenaAlloc(&arrays, HYB_MEM_DEVICE, (PetscCount)csr.m + 1, sizeof(PetscInt), &csr.i);
  if (!ierr) ierr = HybArenaAlloc(&arrays, x->result, csr.nnz, sizeof(PetscInt), &csr.j);
  if (!ierr) ierr = HybArenaAlloc(&arrays, x->result, csr.nnz, sizeof(HybScalar), &csr.a);
  if (!ierr) ierr = HybArenaAlloc(&g->arena, HYB_MEM_DEVICE, csr.nnz, sizeof(PetscInt), &g->perm);
  if (!ierr) ierr = x->backend->copy(x, csr.i, l.csr.i, sizeof(PetscInt) * ((size_t)csr.m + 1), HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = x->backend->copy(x, csr.j, l.csr.j, sizeof(PetscInt) * (size_t)csr.nnz, HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = x->backend->copy(x, csr.a, l.csr.a, sizeof(HybScalar) * (size_t)csr.nnz, HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = x->backend->copy(x, g->perm, perm, sizeof(PetscInt) * (size_t)csr.nnz, HYB_COPY_HOST_TO_DEVICE);
  if (!ierr) ierr = HybLogToDevice((PetscLogDouble)sizeof(PetscInt) * (2.0 * (PetscLogDouble)csr.nnz + csr.m + 1) + (PetscLogDouble)sizeof(HybScalar) * (PetscLogDouble)csr.nnz);
  PetscCall(HybLentRestore(merged, &l));
  PetscCall(PetscFree(perm));
  if (!ierr) ierr = MatSeqAIJHybridGPUAdoptDevice(merged, x, &arrays, &csr);
  if (ierr) (void)HybArenaReset(&arrays);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMergeValues(const HybExec *x, Mat merged, HybMerge *g, Mat blocks[2])
{
  HybCSR         csr, b[2];
  HybArena       work;
  HybScalar     *both = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(blocks[p], x, PETSC_TRUE, &b[p]));
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(merged, x, PETSC_TRUE, &csr));
  PetscCall(HybArenaInit(&work, x));
  ierr = HybArenaAlloc(&work, HYB_MEM_DEVICE, csr.nnz, sizeof(HybScalar), &both);
  if (!ierr) ierr = x->backend->copy(x, both, b[0].a, sizeof(HybScalar) * (size_t)b[0].nnz, HYB_COPY_DEVICE_TO_DEVICE);
  if (!ierr) ierr = x->backend->copy(x, both + b[0].nnz, b[1].a, sizeof(HybScalar) * (size_t)b[1].nnz, HYB_COPY_DEVICE_TO_DEVICE);
  if (!ierr) ierr = x->backend->csr->gather(x, csr.nnz, g->perm, PETSC_FALSE, both, csr.a);
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  PetscCall(MatSeqAIJHybridGPUDeviceWritten(merged, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJGetLocalMatMerge_MPIAIJHybridGPU(Mat A, MatReuse reuse, IS *glob, Mat *merged)
{
  Mat             blocks[2];
  const PetscInt *garray;
  HybMerge       *g = NULL;
  HybExec         x;
  HybPatternKey   key;
  PetscBool       device[2], same;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (int p = 0; p < 2; p++) {
    device[p] = PETSC_FALSE;
    if (MatIsSeqAIJHybridGPU(blocks[p])) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(blocks[p], &x, &device[p]));
  }
  if (reuse == MAT_REUSE_MATRIX && !glob && device[0] && device[1] && MatIsSeqAIJHybridGPU(*merged)) {
    PetscCall(HybContainerGet((PetscObject)*merged, "HybMerge", &g));
    if (g) {
      PetscBool there;

      same = PETSC_TRUE;
      for (int p = 0; p < 2; p++) {
        PetscCall(HybKeyOf(blocks[p], &key));
        same = (PetscBool)(same && HybPatternKeyEqual(&key, &g->block[p]));
      }
      PetscCall(HybKeyOf(*merged, &key));
      same = (PetscBool)(same && HybPatternKeyEqual(&key, &g->merged));
      PetscCall(MatSeqAIJHybridGPUWriteOnDevice(*merged, &x, &there));
      if (same && there) {
        PetscCall(HybMergeValues(&x, *merged, g, blocks));
        PetscFunctionReturn(PETSC_SUCCESS);
      }
    }
  }
  PetscCall(HybMergeOnHost(A, reuse, glob, merged));
  /* In mirror mode the host has the values anyway, and what it puts together crosses the bus once. */
  if (reuse == MAT_INITIAL_MATRIX && device[0] && device[1] && x.result == HYB_MEM_MANAGED && MatIsSeqAIJHybridGPU(*merged)) {
    PetscErrorCode ierr;

    PetscCall(PetscNew(&g));
    PetscCall(HybArenaInit(&g->arena, &x));
    ierr = HybMergeMove(&x, *merged, g, blocks);
    for (int p = 0; p < 2 && !ierr; p++) ierr = HybKeyOf(blocks[p], &g->block[p]);
    if (!ierr) ierr = HybKeyOf(*merged, &g->merged);
    if (ierr) (void)HybMergeDestroy(g);
    PetscCall(ierr);
    PetscCall(HybContainerCompose((PetscObject)*merged, "HybMerge", g, HybMergeDestroy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
