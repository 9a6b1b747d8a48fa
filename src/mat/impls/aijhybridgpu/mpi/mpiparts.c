/*
  What the parent's parallel "backend" products ask for by name: the local rows of an operand as one sequential matrix,
  and values of sequential products, which they hand to the owners of the entries. The parent does both by walking over
  host arrays, which costs a page fault for every page of what lives on the device, both ways. Here the device puts the
  values together, and only those for other processes, and from them, cross the bus, in large pieces.
*/
#include "mpi.h"
#include "../seq/coo.h"

/*
  The values of a parallel product's sequential ones, on their way to the result:

    for each sequential product S                   the parent's loop, which asks for
      if S has rows of other processes
        MatSeqAIJCopySubArray(S, off, w)            values to be sent: they go to the host's array
        MatSeqAIJCopySubArray(S, own, v)            values of this process's rows: they stay on the device, in a list at the place that they have in v
      else
        MatSeqAIJCopySubArray(S, all, v)            likewise
    send w, receive the end of v                    MPI
    MatSetValuesCOO(C, v)                           the end of v to the device, behind what stayed; one kernel a block (mpicoo.c)

  v is the host's, as the parent made it, but what is this process's own is never written there. Places are mostly
  consecutive ones, since P's own columns come first: lists of them are looked at once, and sent once where they are
  not.
*/
PetscErrorCode HybPartsReset(HybParts *p)
{
  PetscFunctionBegin;
  if (p->ncalls) PetscCall(HybArenaReset(&p->places));
  PetscCall(PetscMemzero(p, sizeof(*p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before a numeric phase of C whose values are the device's to write: those of parts that are there need not leave
   it */
PetscErrorCode HybPartsBegin(Mat C, const HybExec *x, PetscCount ncoo, HybParts *p)
{
  PetscFunctionBegin;
  p->exec = *x;
  p->C    = C;
  p->last = NULL;
  p->call = p->nown = 0;
  p->ncoo           = ncoo;
  p->used           = 0;
  PetscCall(HybArenaInit(&p->work, &p->exec));
  p->values          = NULL;
  HybGlueState.parts = p; /* from here on HybPartsEnd() is needed */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* There is room for the values from here on: not while the sequential products need theirs */
static PetscErrorCode HybPartsRoom(HybParts *p)
{
  PetscFunctionBegin;
  if (!p->values) PetscCall(HybArenaAlloc(&p->work, HYB_MEM_DEVICE, p->ncoo, sizeof(PetscScalar), &p->values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPartsEnd(HybParts *p)
{
  PetscFunctionBegin;
  if (HybGlueState.parts != p) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.parts = NULL;
  PetscCall(HybArenaReset(&p->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  In a product's symbolic phase the parent's host reads the patterns of the parts, which the device has made, to number
  C's coordinates. They are moved to where they are read, and back, in one go each instead of by page faults.
*/
/* A sequential product has its pattern */
static PetscErrorCode HybPartsSymbolicMade(Mat part)
{
  HybPartsPatterns *s = HybGlueState.patterns;

  PetscFunctionBegin;
  if (s->n == HYB_PARTS_CALLS) PetscFunctionReturn(PETSC_SUCCESS);
  s->part[s->n++] = part;
  PetscCall(MatSeqAIJHybridGPUMove(part, PETSC_FALSE, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybPartsSymbolicBegin(HybPartsPatterns *s)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  HybGlueState.patterns  = s;
  HybGlueState.partsmade = HybPartsSymbolicMade;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* failed: the parts may be gone */
PetscErrorCode HybPartsSymbolicEnd(HybPartsPatterns *s, PetscBool failed)
{
  PetscFunctionBegin;
  HybGlueState.patterns  = NULL;
  HybGlueState.partsmade = NULL;
  for (int k = 0; k < s->n && !failed; k++) PetscCall(MatSeqAIJHybridGPUMove(s->part[k], PETSC_FALSE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybPartsSend(HybParts *p, const PetscScalar v[], PetscCount at, PetscCount n)
{
  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(p->exec.backend->copy(&p->exec, p->values + at, v + at, sizeof(PetscScalar) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(HybLogToDevice(sizeof(PetscScalar) * (PetscLogDouble)n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *all = the values of C's coordinates on the device, NULL where no numeric phase of C is in progress; v: the parent's
   list, of which the host has what is not there */
PetscErrorCode HybPartsGet(Mat C, const PetscScalar v[], const PetscScalar **all)
{
  HybParts *p = HybGlueState.parts;

  PetscFunctionBegin;
  *all = NULL;
  if (!p || p->C != C) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybPartsRoom(p));
  for (int k = 0; k < p->nown; k++) {
    PetscCheck(p->own[k].v == v + p->own[k].at, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Part %d of a product is not where MatSetValuesCOO() finds it", k);
    if (!p->own[k].device) PetscCall(HybPartsSend(p, v, p->own[k].at, p->own[k].n));
  }
  PetscCall(HybPartsSend(p, v, p->used, p->ncoo - p->used));
  *all = p->values;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The n values at idx of a part: consecutive ones from *first on, or those at *place, on the device. The parent's lists
   stand as long as its product does. */
static PetscErrorCode HybPartsPlaces(HybParts *p, const HybExec *x, PetscInt n, const PetscInt idx[], PetscInt *first, PetscInt **place)
{
  HybPartsCall *c;
  PetscInt      k = 1;

  PetscFunctionBegin;
  PetscCheck(p->call < HYB_PARTS_CALLS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A product of more than %d parts", HYB_PARTS_CALLS / 2);
  if (!p->ncalls) PetscCall(HybArenaInit(&p->places, x));
  c         = &p->calls[p->call++];
  p->ncalls = PetscMax(p->ncalls, p->call);
  if (c->idx != idx || c->n != n) {
    c->idx = NULL; /* nothing, if this fails */
    PetscCall(HybArenaFree(&p->places, &c->place));
    while (k < n && idx[k] == idx[0] + k) k++;
    if (k < n) {
      PetscCall(HybArenaAlloc(&p->places, HYB_MEM_DEVICE, n, sizeof(PetscInt), &c->place));
      PetscCall(x->backend->copy(x, c->place, idx, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
      PetscCall(HybLogToDevice(sizeof(PetscInt) * (PetscLogDouble)n));
    }
    c->first = idx[0];
    c->n     = n;
    c->idx   = idx;
  }
  *first = c->first;
  *place = c->place;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v = the n values of A at the places idx, or the first n, A being on the device; v is there too, or on the host */
static PetscErrorCode HybPartsCopy(Mat A, const HybExec *x, HybParts *p, HybArena *work, PetscInt n, const PetscInt idx[], PetscScalar v[], PetscBool vdevice)
{
  HybCSR           csr;
  const HybScalar *from;
  PetscInt        *place = NULL, first = 0;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_TRUE, &csr));
  if (idx && p)
    PetscCall(HybPartsPlaces(p, x, n, idx, &first, &place));
  else if (idx) {
    PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(PetscInt), &place));
    PetscCall(x->backend->copy(x, place, idx, sizeof(PetscInt) * (size_t)n, HYB_COPY_HOST_TO_DEVICE));
    PetscCall(HybLogToDevice(sizeof(PetscInt) * (PetscLogDouble)n));
  }
  from = csr.a + first;
  if (place) {
    HybScalar *some = (HybScalar *)v;

    if (!vdevice) PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, n, sizeof(HybScalar), &some));
    PetscCall(x->backend->csr->gather(x, n, place, PETSC_FALSE, csr.a, some));
    from = some;
  }
  if (place && vdevice) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->copy(x, v, from, sizeof(PetscScalar) * (size_t)n, vdevice ? HYB_COPY_DEVICE_TO_DEVICE : HYB_COPY_DEVICE_TO_HOST));
  if (!vdevice) PetscCall(HybLogToHost(sizeof(PetscScalar) * (PetscLogDouble)n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJCopySubArray_SeqAIJHybridGPU(Mat A, PetscInt n, const PetscInt idx[], PetscScalar v[])
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybParts            *p   = HybGlueState.parts;
  HybExec              x;
  PetscBool            device = PETSC_FALSE, vdevice, own = PETSC_FALSE;

  PetscFunctionBegin;
  if (p) { /* of a part with rows of other processes those come first */
    own     = (PetscBool)(!idx || A == p->last);
    p->last = own ? NULL : A;
  }
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCOOIsOnDevice(v, &vdevice));
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    if (HybShared(hyb) || vdevice || own) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(A, &x, &device)); /* in mirror mode the host has the values anyway */
  }
  if (own) {
    PetscCheck(p->nown < HYB_PARTS_CALLS && p->used + n <= p->ncoo, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The parts of a product are more than its result was made for");
    p->own[p->nown].v        = v;
    p->own[p->nown].at       = p->used;
    p->own[p->nown].n        = n;
    p->own[p->nown++].device = device;
    if (device) {
      PetscCall(HybPartsRoom(p));
      v       = p->values + p->used;
      vdevice = PETSC_TRUE;
    }
    p->used += n;
  }
  if (device) {
    HybArena       work;
    PetscErrorCode ierr;

    PetscCall(HybArenaInit(&work, &x));
    ierr = HybPartsCopy(A, &x, p, &work, n, idx, v, vdevice);
    if (!ierr && !own) ierr = x.backend->sync(&x);
    PetscCall(HybArenaReset(&work));
    PetscCall(ierr);
  } else {
    const PetscScalar *a;

    PetscCheck(!vdevice, PETSC_COMM_SELF, PETSC_ERR_SUP, "Values of a matrix on the host are wanted on the device");
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    if (idx)
      for (PetscInt k = 0; k < n; k++) v[k] = a[idx[k]];
    else
      PetscCall(PetscArraycpy(v, a, n));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the values of the merged matrix come from: entry k is entry perm[k] of the diagonal block's values followed by
   the off-diagonal block's; NULL where the host puts them together. And whose values it has, for who asks again without
   others. */
typedef struct {
  HybArena         arena;
  PetscInt        *perm;
  HybPatternKey    block[2], merged;
  PetscBool        current;
  PetscObjectId    id[4]; /* of the blocks, the merged matrix and the parallel one */
  PetscObjectState state[4];
  PetscCount       moves[4];
} HybMerge;

/* Are the merged matrix's values those of the blocks as they are now? If not, they are about to be. */
static PetscErrorCode HybMergeCurrent(HybMerge *g, Mat A, Mat merged, Mat blocks[2], PetscBool *current)
{
  PetscFunctionBegin;
  *current = g->current;
  for (int p = 0; p < 4; p++) {
    Mat              M     = p < 2 ? blocks[p] : p == 2 ? merged
                                                        : A;
    const PetscCount moves = p == 3 ? 0 : MatIsSeqAIJHybridGPU(M) && M->spptr ? ((Mat_SeqAIJHybridGPU *)M->spptr)->moves
                                                                              : -1;
    PetscObjectId    id;
    PetscObjectState state;

    PetscCall(PetscObjectGetId((PetscObject)M, &id));
    PetscCall(PetscObjectStateGet((PetscObject)M, &state));
    *current    = (PetscBool)(*current && moves >= 0 && id == g->id[p] && state == g->state[p] && moves == g->moves[p]);
    g->id[p]    = id;
    g->state[p] = state;
    g->moves[p] = moves;
  }
  g->current = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybMergeNote(HybMerge *g, Mat A, Mat merged, Mat blocks[2])
{
  PetscBool flg;

  PetscFunctionBegin;
  PetscCall(HybMergeCurrent(g, A, merged, blocks, &flg));
  g->current = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  HybExec         x = {&HybBackendHost, NULL, HYB_MEM_HOST};
  HybPatternKey   key;
  PetscBool       device[2], same;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (int p = 0; p < 2; p++) {
    device[p] = PETSC_FALSE;
    if (MatIsSeqAIJHybridGPU(blocks[p])) PetscCall(MatSeqAIJHybridGPUWriteOnDevice(blocks[p], &x, &device[p]));
  }
  if (reuse == MAT_REUSE_MATRIX && !glob) PetscCall(HybContainerGet((PetscObject)*merged, "HybMerge", &g));
  if (g) {
    PetscBool there = PETSC_FALSE;

    PetscCall(HybMergeCurrent(g, A, *merged, blocks, &same));
    if (same) {
      g->current = PETSC_TRUE;
      PetscCall(PetscInfo(A, "The local rows have the values of last time\n"));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (g->perm && device[0] && device[1] && MatIsSeqAIJHybridGPU(*merged)) {
      same = PETSC_TRUE;
      for (int p = 0; p < 2; p++) {
        PetscCall(HybKeyOf(blocks[p], &key));
        same = (PetscBool)(same && HybPatternKeyEqual(&key, &g->block[p]));
      }
      PetscCall(HybKeyOf(*merged, &key));
      same = (PetscBool)(same && HybPatternKeyEqual(&key, &g->merged));
      PetscCall(MatSeqAIJHybridGPUWriteOnDevice(*merged, &x, &there));
      there = (PetscBool)(there && same);
    }
    if (there)
      PetscCall(HybMergeValues(&x, *merged, g, blocks));
    else
      PetscCall(HybMergeOnHost(A, reuse, glob, merged));
    PetscCall(HybMergeNote(g, A, *merged, blocks));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybMergeOnHost(A, reuse, glob, merged));
  if (reuse == MAT_INITIAL_MATRIX && MatIsSeqAIJHybridGPU(*merged)) {
    PetscErrorCode ierr = PETSC_SUCCESS;

    PetscCall(PetscNew(&g));
    PetscCall(HybArenaInit(&g->arena, &x));
    /* In mirror mode the host has the values anyway, and what it puts together crosses the bus once. */
    if (device[0] && device[1] && x.result == HYB_MEM_MANAGED) {
      ierr = HybMergeMove(&x, *merged, g, blocks);
      for (int p = 0; p < 2 && !ierr; p++) ierr = HybKeyOf(blocks[p], &g->block[p]);
      if (!ierr) ierr = HybKeyOf(*merged, &g->merged);
    }
    if (!ierr) ierr = HybMergeNote(g, A, *merged, blocks);
    if (ierr) (void)HybMergeDestroy(g);
    PetscCall(ierr);
    PetscCall(HybContainerCompose((PetscObject)*merged, "HybMerge", g, HybMergeDestroy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
