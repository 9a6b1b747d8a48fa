/*
  Entries that the host writes, or reads row by row: MATSEQAIJ's own operations, before which a matrix is where they
  expect it.
*/
#include "seq.h"
#include "../../../../petsc/storage/door.h"
#include "../storage/where.h"

/* Are all of these columns, of n columns that there are, among those of a row? They come in order as a rule, each
   behind the one before. Those out of range are the parent's to refuse or to ignore. */
static PetscBool HybRowHas(PetscInt length, const PetscInt *row, PetscInt n, PetscInt ncols, const PetscInt cols[])
{
  PetscInt at = 0;

  for (PetscInt c = 0; c < ncols; c++) {
    const PetscInt col = cols[c];
    PetscInt       end = length;

    if (col < 0 || col >= n) continue;
    if (at >= length || row[at] > col) at = 0;
    while (end - at > 32) {
      const PetscInt middle = at + (end - at) / 2;

      if (row[middle] > col)
        end = middle;
      else
        at = middle;
    }
    while (at < end && row[at] < col) at++;
    if (at >= end || row[at] != col) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* of the arrays i and j, m rows of n columns that there are; a whole row in order is seen at once */
static PetscBool HybRowsHave(PetscInt nrows, PetscInt n, const PetscInt *i, const PetscInt *j, PetscInt m, const PetscInt rows[], PetscInt ncols, const PetscInt cols[])
{
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt r = rows[k];

    if (r < 0 || r >= nrows || (ncols == i[r + 1] - i[r] && !memcmp(cols, j + i[r], sizeof(PetscInt) * (size_t)ncols))) continue;
    if (!HybRowHas(i[r + 1] - i[r], j + i[r], n, ncols, cols)) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/*
  Entries that a result's pattern has are written where they are. The base class needs arrays of its own before it makes
  room for others: it cannot enlarge ours. Promoted values return to the host, which is the writer from here on, unless
  somebody holds them.
*/
PetscErrorCode MatSeqAIJHybridGPUSetValuesBegin(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[])
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  const PetscInt      *i, *j;

  PetscFunctionBegin;
  if (!hyb) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->inserted = PETSC_TRUE;
  if ((!hyb->arrays.blocks && !hyb->movedto) || MatSeqAIJHybridGPULockedTakesValues(hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->lives == HYB_LIVES_PROMOTED && !HybStorageHeld(hyb)) PetscCall(MatSeqAIJHybridGPUDemote(A));
  if (!hyb->arrays.blocks && !hyb->movedto) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, NULL, NULL));
  if ((hyb->movedto || i == hyb->adopted) && HybRowsHave(A->rmap->n, A->cmap->n, i, j, m, rows, n, cols))
    PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  else
    PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of what has to be looked at first, and afterwards is told all that the door would be told */
static HYB_SELDOM PetscErrorCode HybSetValuesTold(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  Mat_SeqAIJHybridGPU *hyb;
  PetscErrorCode       ierr;
  PetscBool            ours;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, setvalues, A, m, rows, n, cols, v, mode);
  PetscCall(MatSeqAIJHybridGPUSetValuesBegin(A, m, rows, n, cols));
  hyb  = (Mat_SeqAIJHybridGPU *)A->spptr;
  ours = (PetscBool)(hyb && HybDoorIsOurs(A));
  if (ours) {
    PetscCall(MatSeqAIJHybridGPUHostWrites(A));
    HybDoorShut(A);
  }
  ierr = (*HybGlueState.seq.setvalues)(A, m, rows, n, cols, v, mode);
  if (ours) HybDoorPassed(A);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries that a result of the host has, whose arrays AIJ did not allocate: the door is passed as with its own */
static inline PetscBool HybResultHas(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[])
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);
  PetscInt            *i, *j;

  if (!hyb || hyb->lives != HYB_LIVES_HOST || !hyb->adopted || hyb->movedto || !HybDoorIsOurs(A)) return PETSC_FALSE;
  HybFramePattern(A, &i, &j);
  if (i != hyb->adopted || !HybRowsHave(A->rmap->n, A->cmap->n, i, j, m, rows, n, cols)) return PETSC_FALSE;
  HybDoorShut(A);
  hyb->inserted = PETSC_TRUE;
  HybStorageMoved(hyb);
  return PETSC_TRUE;
}

static PetscErrorCode MatSetValues_SeqAIJHybridGPU(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (PetscUnlikely(!HybDoorPass(A) && !HybResultHas(A, m, rows, n, cols))) {
    PetscCall(HybSetValuesTold(A, m, rows, n, cols, v, mode));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ierr = (*HybGlueState.seq.setvalues)(A, m, rows, n, cols, v, mode);
  HybDoorPassed(A);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatZeroRows() makes rows shorter unless A is to keep its pattern (*whole): what AIJ knows of rows alike ends then,
   and it has to have looked for them */
PetscErrorCode MatSeqAIJHybridGPUZeroRowsLook(Mat A, PetscBool *whole)
{
  const Mat_SeqAIJHybridGPU *hyb = (const Mat_SeqAIJHybridGPU *)A->spptr;

  PetscFunctionBegin;
  if (hyb) MatSeqAIJHybridGPULookAtOptions(A);
  *whole = (PetscBool)(hyb && hyb->asked[HYB_ASKED_KEEP_PATTERN].said && hyb->asked[HYB_ASKED_KEEP_PATTERN].flg);
  if (!*whole) PetscCall(HybInodesFind(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's MatZeroRows() and MatZeroRowsColumns() go by what AIJ keeps beside the arrays (options), and insert a
   diagonal entry that a row lacks past our MatSetValues(): the base class needs arrays of its own then */
static PetscErrorCode HybZeroRowsBegin(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, PetscBool columns)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybLent              l;
  PetscBool            lacks = PETSC_FALSE, whole = columns, stays; /* whole: no row gets shorter */

  PetscFunctionBegin;
  if (!columns) PetscCall(MatSeqAIJHybridGPUZeroRowsLook(A, &whole));
  stays = (PetscBool)(hyb && (hyb->lives == HYB_LIVES_LOCKED || HybStorageHeld(hyb)) && whole); /* moved values */
  if (!stays) PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  if (!hyb || (!hyb->arrays.blocks && !hyb->movedto) || diag == (PetscScalar)0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_FALSE, &l));
  for (PetscInt k = 0; k < n && !lacks; k++) {
    PetscInt where;

    if (rows[k] < 0 || rows[k] >= l.csr.m || rows[k] >= l.csr.n) continue; /* the parent says what is wrong with it */
    PetscCall(PetscFindInt(rows[k], l.csr.i[rows[k] + 1] - l.csr.i[rows[k]], l.csr.j + l.csr.i[rows[k]], &where));
    lacks = (PetscBool)(where < 0);
  }
  PetscCall(HybLentRestore(A, &l));
  if (lacks) PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_SeqAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, zerorows, A, n, rows, diag, x, b);
  PetscCall(HybZeroRowsBegin(A, n, rows, diag, PETSC_FALSE));
  PetscCall((*HybGlueState.seq.zerorows)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_SeqAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, zerorowscolumns, A, n, rows, diag, x, b);
  PetscCall(HybZeroRowsBegin(A, n, rows, diag, PETSC_TRUE));
  PetscCall((*HybGlueState.seq.zerorowscolumns)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if HYB_HAS_ELIMINATEZEROS
/* the parent shortens the rows where they are */
static PetscErrorCode MatEliminateZeros_SeqAIJHybridGPU(Mat A, PetscBool keep)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, eliminatezeros, A, keep);
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  PetscCall((*HybGlueState.seq.eliminatezeros)(A, keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*
  A coloring for finite differences remembers where each value lies, and writes there at each of its calls: the arrays
  have to be AIJ's own and to stay from now on.
*/
PetscErrorCode MatSeqAIJHybridGPUStay(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->lentarrays = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFDColoringSetUp_SeqAIJHybridGPU(Mat A, ISColoring iscoloring, MatFDColoring c)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, fdcoloringsetup, A, iscoloring, c);
  PetscCall(MatSeqAIJHybridGPUStay(A));
  PetscCall((*HybGlueState.seq.fdcoloringsetup)(A, iscoloring, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *values lie in the parent's data */
static PetscErrorCode MatInvertBlockDiagonal_SeqAIJHybridGPU(Mat A, const PetscScalar **values)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, invertblockdiagonal, A, values);
  PetscCall((*HybGlueState.seq.invertblockdiagonal)(A, values));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->inverted = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Functions that PETSc finds by name. PETSc copies an object's list of them to plain matrices too
  (MatGetMultiProcBlock(), factors): of such A nothing of ours is true.
*/
PetscErrorCode MatStoreValues_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.storevalues)(A));
  if (!MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->stored = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRetrieveValues_SeqAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUHostWrites(A)); /* the parent writes them and leaves the object's state */
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.retrievevalues)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the host assembles will be sent, if a device is in use: what that takes of memory can be made meanwhile */
PetscErrorCode MatSeqAIJHybridGPUExpect(Mat A)
{
  const HybGlue       *g   = &HybGlueState;
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  MatInfo              info;
  size_t               bytes;

  PetscFunctionBegin;
  if (!HybWhereMayBe(A, &hyb->choices)) {
    PetscCall(HybHostOnlyBegin(A, hyb));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybStorageExpect(A, hyb);
  if (!g->device->expect || hyb->copy.pattern || HybBorn(hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  bytes = sizeof(PetscScalar) * (size_t)PetscMax(info.nz_used, info.nz_allocated);
  if (bytes) PetscCall((*g->device->expect)(bytes)); /* 0 asks for kernels, which an option may not want */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJSetPreallocation_SeqAIJHybridGPU(Mat A, PetscInt nz, const PetscInt nnz[])
{
  PetscFunctionBegin;
  if (MatIsSeqAIJHybridGPU(A) && A->spptr) {
    ((Mat_SeqAIJHybridGPU *)A->spptr)->coopattern = PETSC_FALSE;
    PetscCall(PetscFree(((Mat_SeqAIJHybridGPU *)A->spptr)->preallocated));
  }
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  HybWithLargePages(A->rmap->n, (*(PetscErrorCode(*)(Mat, PetscInt, const PetscInt[]))HybGlueState.setpreallocation)(A, nz, nnz));
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(HybStorageSettle(A));
    PetscCall(MatSeqAIJHybridGPUExpect(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A result that AIJ would have preallocated is as it would be after that: its rows have the room that they need */
static PetscErrorCode HybResetAsPreallocated(Mat A)
{
  const PetscInt *i;
  PetscInt       *length;

  PetscFunctionBegin;
  if (HYB_RESET_KEEPS_ROOM) {
    PetscCall(MatZeroEntries(A)); /* the parent's: the room is what the rows have */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  PetscCall(PetscMalloc1(A->rmap->n, &length));
  for (PetscInt r = 0; r < A->rmap->n; r++) length[r] = i[r + 1] - i[r];
  PetscCall(MatSeqAIJSetPreallocation(A, 0, length));
  PetscCall(PetscFree(length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatResetPreallocation_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = MatIsSeqAIJHybridGPU(A) ? (Mat_SeqAIJHybridGPU *)A->spptr : NULL;

  PetscFunctionBegin;
  /* the parent asks as much first */
  PetscCheck(!hyb || !hyb->neverpreallocated || (HYB_RESET_LEAVES_NEW && (!A->num_ass || !A->rmap->n)), PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "The matrix was never preallocated, and cannot be reset to a preallocation");
  if (hyb && hyb->aspreallocated && hyb->arrays.blocks && A->preallocated) {
    PetscCall(HybResetAsPreallocated(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  if (hyb) PetscCall(MatSeqAIJHybridGPUAsPreallocated(A));
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.resetpreallocation[0])(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if HYB_HAS_HASH
/* The parent frees what is there */
PetscErrorCode MatResetHash_SeqAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall((*(PetscErrorCode(*)(Mat))HybGlueState.resethash)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent writes column indices where they are */
PetscErrorCode MatSeqAIJSetColumnIndices_SeqAIJHybridGPU(Mat A, PetscInt indices[])
{
  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUDisown(A)); /* the parent goes by what it has allocated */
  PetscCall((*(PetscErrorCode(*)(Mat, PetscInt[]))HybGlueState.setcolumnindices)(A, indices));
  if (MatIsSeqAIJHybridGPU(A)) PetscCall(MatSeqAIJHybridGPUPatternMoved(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are lent are counted: PETSc's function has given the array back when it returns, and the row points into
   it. What that does is done here, once for each row as it is called, without a look at the door. */
static PetscErrorCode MatGetRow_SeqAIJHybridGPU(Mat A, PetscInt row, PetscInt *n, PetscInt **cols, PetscScalar **v)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  PetscFunctionBegin;
  if (PetscLikely(hyb && HybFrameKnown())) {
    PetscInt    *i, *j;
    PetscScalar *a;

    HybFrameArrays(A, &i, &j, &a);
    *n = i[row + 1] - i[row];
    if (v) *v = a ? a + i[row] : NULL;
    if (cols) *cols = *n && j ? j + i[row] : NULL;
    hyb->rows++;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybLeaveIfOverlaid(A, getrow, A, row, n, cols, v);
  PetscCall((*HybGlueState.seq.getrow)(A, row, n, cols, v));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->rows++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatRestoreRow_SeqAIJHybridGPU(Mat A, PetscInt row, PetscInt *n, PetscInt **cols, PetscScalar **v)
{
  Mat_SeqAIJHybridGPU *hyb = HybStorageAtHand(A);

  PetscFunctionBegin;
  if (PetscUnlikely(!hyb)) {
    HybLeaveIfOverlaid(A, restorerow, A, row, n, cols, v);
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  }
  if (HybGlueState.seq.restorerow) PetscCall((*HybGlueState.seq.restorerow)(A, row, n, cols, v));
  if (hyb->rows) hyb->rows--;
  if (PetscUnlikely(hyb->retired)) PetscCall(HybStorageGivenBack(hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent reads a few entries, and has given the array back when it returns: nobody need be told */
static PetscErrorCode MatGetValues_SeqAIJHybridGPU(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], PetscScalar v[])
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, getvalues, A, m, rows, n, cols, v);
  if (PetscUnlikely(!HybDoorIsOurs(A))) {
    PetscCall((*HybGlueState.seq.getvalues)(A, m, rows, n, cols, v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybDoorShutRead(A);
  ierr = (*HybGlueState.seq.getvalues)(A, m, rows, n, cols, v);
  HybDoorPassedRead(A);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent writes the array itself, past the door */
static PetscErrorCode MatConjugate_SeqAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, conjugate, A);
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  PetscCall((*HybGlueState.seq.conjugate)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSeqAIJHybridGPUSetValuesOps(Mat A, PetscBool on)
{
  static const struct _MatOps ours = {
    .zerorows = MatZeroRows_SeqAIJHybridGPU,
#if HYB_HAS_ELIMINATEZEROS
    .eliminatezeros = MatEliminateZeros_SeqAIJHybridGPU,
#endif
    .zerorowscolumns     = MatZeroRowsColumns_SeqAIJHybridGPU,
    .fdcoloringsetup     = MatFDColoringSetUp_SeqAIJHybridGPU,
    .invertblockdiagonal = MatInvertBlockDiagonal_SeqAIJHybridGPU,
    .getrow              = MatGetRow_SeqAIJHybridGPU,
    .getvalues           = MatGetValues_SeqAIJHybridGPU,
    .restorerow          = MatRestoreRow_SeqAIJHybridGPU,
  };
  struct _MatOps *ops = A->ops, *p = &HybGlueState.seq;

  HybOpsOver(A, &ours, &HybGlueState.seq, on);
  /* MAT_SORTED_FULL has one of its own, which makes no room */
  if (!A->sortedfull) ops->setvalues = on ? MatSetValues_SeqAIJHybridGPU : p->setvalues;
  if (p->conjugate) ops->conjugate = on ? MatConjugate_SeqAIJHybridGPU : p->conjugate;
}
