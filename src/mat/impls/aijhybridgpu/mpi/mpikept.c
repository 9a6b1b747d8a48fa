/*
  The values of a parallel product, and a result that keeps a pattern of its own which is wider than the product's
  (seq/kept.c), in columns that the product may lack.
*/
#include "product.h"

PetscErrorCode HybMPIProductNoteBlocks(Mat C, HybMPIProduct *mp)
{
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  for (int k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *b = NULL;
    HybLent              l;

    PetscCall(MatSeqAIJHybridGPUGetData(block[k], &b));
    PetscCall(HybLentGet(block[k], PETSC_FALSE, &l));
    PetscCall(PetscObjectGetId((PetscObject)block[k], &mp->block[k].id));
    mp->block[k].made         = b->made;
    mp->block[k].adoptions    = b->adoptions;
    mp->block[k].generation   = b->generation;
    mp->block[k].nnz          = l.csr.nnz;
    mp->block[k].nonzerostate = block[k]->nonzerostate;
    PetscCall(HybLentRestore(block[k], &l));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: have C's blocks still the pattern that they had after the symbolic phase, where the product runs? */
PetscErrorCode HybMPIProductSameResult(Mat C, HybMPIProduct *mp, PetscBool *same)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  Mat                  block[2];
  const PetscInt      *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  *same = (PetscBool)(HybMPIPatternIsWhole(C) || (mp->pending && C->preallocated && C->insertmode == NOT_SET_VALUES));
  for (int k = 0; k < 2 && *same; k++) {
    Mat_SeqAIJHybridGPU *b = NULL;
    PetscObjectId        id;
    PetscBool            ondevice = PETSC_FALSE;
    HybLent              l;
    HybExec              x;

    PetscCall(PetscObjectGetId((PetscObject)block[k], &id));
    *same = (PetscBool)(MatIsSeqAIJHybridGPU(block[k]) && id == mp->block[k].id);
    if (!*same) break;
    PetscCall(MatSeqAIJHybridGPUGetData(block[k], &b));
    PetscCall(HybLentGet(block[k], PETSC_FALSE, &l));
    *same = (PetscBool)(l.csr.nnz == mp->block[k].nnz && b->made == mp->block[k].made && b->adoptions == mp->block[k].adoptions && b->generation == mp->block[k].generation && block[k]->nonzerostate == mp->block[k].nonzerostate);
    PetscCall(HybLentRestore(block[k], &l));
    if (!*same || !HybExecOnDevice(&mp->exec)) continue;
    PetscCall(MatSeqAIJHybridGPUWriteOnDevice(block[k], &x, &ondevice));
    if (ondevice) continue;
    PetscCall(HybGlueGetExec(C, &hyb->choices, HYB_ANY_SIZE, &x)); /* C may have been bound to the CPU since */
    *same = HybExecOnDevice(&x);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: the product's columns of others as C numbers them; none where C lacks one of them */
static PetscErrorCode HybMPIKeepColumns(const HybExec *x, PetscInt n, const PetscInt *garray, HybArena *arena, const HybParCSR *result, PetscInt **j)
{
  PetscInt      *map, *there;
  PetscBool      all = PETSC_TRUE, other = (PetscBool)(n != result->O.n);
  PetscErrorCode ierr = PETSC_SUCCESS;
  HybArena       work;

  PetscFunctionBegin;
  *j = NULL;
  PetscCall(PetscMalloc1(result->O.n + 1, &map));
  for (PetscInt k = 0, c = 0; k < result->O.n && all; k++) {
    while (c < n && garray[c] < result->garray[k]) c++;
    all    = (PetscBool)(c < n && garray[c] == result->garray[k]);
    other  = (PetscBool)(other || c != k);
    map[k] = c;
  }
  PetscCall(HybArenaInit(&work, x));
  if (all) {
    *j = result->O.j;
    if (other) {
      ierr = HybArenaAlloc(arena, HYB_WORK(x), result->O.nnz, sizeof(PetscInt), j);
      if (!ierr) ierr = HybArenaAlloc(&work, HYB_WORK(x), (PetscCount)result->O.n + 1, sizeof(PetscInt), &there);
      if (!ierr) ierr = x->backend->copy(x, there, map, sizeof(PetscInt) * (size_t)result->O.n, HYB_COPY_HOST_TO_DEVICE);
      if (!ierr) ierr = x->backend->copy(x, *j, result->O.j, sizeof(PetscInt) * (size_t)result->O.nnz, HYB_COPY_DEVICE_TO_DEVICE);
      if (!ierr) ierr = x->backend->local->mapcolumns(x, result->O.nnz, there, *j);
      if (!ierr) ierr = x->backend->sync(x); /* map goes */
    }
  }
  PetscCall(HybArenaReset(&work));
  PetscCall(PetscFree(map));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: is each block of the result within C's; is it the same? */
static PetscErrorCode HybMPIKeepWithin(Mat C, HybMPIProduct *mp, HybArena out[2], const HybParCSR *result, PetscBool *within, PetscBool equal[2], PetscInt **j)
{
  const HybExec  *x = &mp->exec;
  Mat             block[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  *within = PETSC_FALSE;
  if (!HybMPIPatternIsWhole(C)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  if (!block[0] || !block[1] || !MatIsSeqAIJHybridGPU(block[0]) || !MatIsSeqAIJHybridGPU(block[1]) || (!garray && result->O.n)) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 1; k < block[1]->cmap->n; k++)
    if (garray[k - 1] >= garray[k]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybMPIKeepColumns(x, block[1]->cmap->n, garray, &out[1], result, j));
  *within = (PetscBool)(*j != NULL);
  for (int k = 0; k < 2 && *within; k++) {
    HybCSR csr = k ? result->O : result->D;

    PetscCall(x->backend->zero(x, csr.a, sizeof(HybScalar) * (size_t)csr.nnz));
    if (k) {
      csr.j = *j;
      csr.n = block[1]->cmap->n;
    }
    PetscCall(HybKeptWithin(block[k], x, &csr, within, &equal[k]));
  }
  equal[1] = (PetscBool)(equal[1] && *j == result->O.j);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *kept: C keeps its pattern, on all processes */
PetscErrorCode HybMPIKeep(Mat C, HybMPIProduct *mp, PetscErrorCode before, HybArena out[2], const HybParCSR *result, PetscBool *kept)
{
  PetscBool      within = PETSC_FALSE, equal[2] = {PETSC_FALSE, PETSC_FALSE};
  PetscInt      *j    = NULL;
  int            mine = 0;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  *kept = PETSC_FALSE;
  if (!ierr) ierr = HybMPIKeepWithin(C, mp, out, result, &within, equal, &j);
  PetscCall(HybParProductAgree(mp->product, ierr, "Comparing a parallel product with the matrix that is used again"));
  mine = within;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)C)));
  if (!mine) PetscFunctionReturn(PETSC_SUCCESS);
  *kept = PETSC_TRUE;
  for (int k = 0; k < 2; k++) {
    if (equal[k]) continue; /* its arrays go with out */
    PetscCall(HybKeptSet(&mp->kept[k], &out[k], k ? &result->O : &result->D));
    if (k) mp->kept[1].j = j;
  }
  PetscCall(HybMPIProductNoteBlocks(C, mp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whose values a block of an operand has, where they can be known again: device copies of ours follow the object's
   state as well. Others may be written past it. */
static PetscErrorCode HybMPIProductValues(HybMPIProduct *mp, PetscInt k, int b, Mat A, PetscBool note, PetscBool *seen)
{
  PetscObjectId    id    = 0;
  PetscObjectState state = 0;
  PetscCount       moves = 0;

  PetscFunctionBegin;
  if (HybExecOnDevice(&mp->exec) && MatIsSeqAIJHybridGPU(A) && A->spptr) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    moves = hyb->moves;
    PetscCall(PetscObjectGetId((PetscObject)A, &id));
    PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  }
  *seen = (PetscBool)(*seen && id && id == mp->values[k].id[b] && state == mp->values[k].state[b] && moves == mp->values[k].moves[b]);
  if (!note) PetscFunctionReturn(PETSC_SUCCESS);
  mp->values[k].id[b]    = id;
  mp->values[k].state[b] = state;
  mp->values[k].moves[b] = moves;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: which operands have the values of the last numeric phase here; note: this one sees them */
PetscErrorCode HybMPIProductValuesSeen(HybMPIProduct *mp, HybMPIOperands *o, PetscBool note, PetscBool seen[3])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < 3; k++) {
    seen[k] = (PetscBool)(k < o->n);
    for (int b = 0; b < 2 && k < o->n; b++) PetscCall(HybMPIProductValues(mp, k, b, o->block[k][b], note, &seen[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybMPIProductValuesForget(HybMPIProduct *mp)
{
  for (PetscInt k = 0; k < 3; k++) {
    mp->values[k].id[0] = mp->values[k].id[1] = 0;
    mp->stays[k]                              = PETSC_FALSE;
  }
}

/* Not collective. An error came while C's values were written, or before any were, here or on another process: nobody
   takes them for a result. AIJ asks this of all that is not assembled; the next numeric phase that ends well, or an
   assembly, makes C whole. */
void HybMPIProductHalfMade(Mat C, HybMPIProduct *mp)
{
  Mat             block[2];
  const PetscInt *garray;

  HybMPIProductValuesForget(mp);
  mp->zeros = PETSC_FALSE;
  (void)MatMPIAIJHybridGPUUnmade(C);
  (void)PetscObjectStateIncrease((PetscObject)C);
  if (MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray)) return;
  for (int k = 0; k < 2; k++)
    if (block[k] && MatIsSeqAIJHybridGPU(block[k])) (void)MatSeqAIJHybridGPUValuesMoved(block[k]);
}

/* Not collective, but for the room's numeric phase. Into C's storage. */
static PetscErrorCode HybMPIProductValuesOf(Mat C, HybMPIProduct *mp, PetscErrorCode before, HybMPIOperands *o, HybKeptWrite w[2])
{
  HybParCSR       result;
  Mat             block[2] = {NULL, NULL};
  const PetscInt *garray   = NULL;
  PetscBool       seen[3]  = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE};
  PetscErrorCode  ierr     = before, later;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&result, sizeof(result)));
  if (!ierr) ierr = MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray);
  if (!ierr) ierr = HybMPIProductValuesSeen(mp, o, PETSC_TRUE, seen);
  /* after an error too: what stays on all processes decides which messages they wait for */
  later = HybParProductUnchanged(mp->product, seen, mp->stays);
  if (!ierr) ierr = later;
  for (int k = 0; k < 2 && !ierr; k++) {
    ierr                         = HybKeptBegin(block[k], &mp->exec, &w[k]);
    *(k ? &result.O : &result.D) = mp->kept[k].padded ? mp->kept[k].csr : w[k].csr;
  }
  result.rows    = C->rmap->range;
  result.columns = C->cmap->range;
  result.garray  = garray;
  PetscCall(HybParProductNumeric(mp->product, ierr, &o->csr[0], &o->csr[1], o->n == 3 ? &o->csr[2] : NULL, &result));
  for (int k = 0; k < 2; k++) {
    PetscCall(HybKeptEnd(block[k], &mp->exec, &mp->kept[k], PETSC_FALSE, &w[k]));
    PetscCall(PetscObjectStateIncrease((PetscObject)block[k])); /* as an assembly */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values. An error of one process is one of all; before: one of this process's. */
PetscErrorCode HybMPIProductCompute(Mat C, HybMPIProduct *mp, PetscErrorCode before, HybMPIOperands *o)
{
  HybKeptWrite   w[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(w)));
  for (int k = 0; k < 2; k++) PetscCall(HybArenaInit(&w[k].side, &mp->exec));
  ierr = HybMPIProductValuesOf(C, mp, before, o, w);
  for (int k = 0; k < 2; k++) {
    PetscErrorCode later = HybKeptFree(&w[k]);

    if (!ierr) ierr = later;
  }
  ierr = HybParProductAgree(mp->product, ierr, "The values of a parallel product");
  if (ierr) HybMPIProductHalfMade(C, mp);
  PetscCall(ierr);
  mp->zeros = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
