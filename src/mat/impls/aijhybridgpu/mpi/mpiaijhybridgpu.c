/*
  The parallel type: MATMPIAIJ whose diagonal and off-diagonal blocks are MATSEQAIJHYBRIDGPU. Its products are in
  mpiproduct.c.
*/
#include "../aijhybridgpuimpl.h"
#include <petscsf.h>

PetscErrorCode MatMPIAIJHybridGPUGetData(Mat A, Mat_MPIAIJHybridGPU **data)
{
  PetscFunctionBegin;
  if (!A->spptr) {
    Mat_MPIAIJHybridGPU *hyb = NULL;

    PetscCall(PetscNew(&hyb));
    A->spptr = hyb;
    PetscCall(HybGlueReadChoices(&hyb->choices));
  }
  *data = (Mat_MPIAIJHybridGPU *)A->spptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAIJHybridGPUGetCOOCount(Mat A, PetscCount **count)
{
  PetscFunctionBegin;
  if (MatIsSeqAIJHybridGPU(A)) {
    Mat_SeqAIJHybridGPU *hyb = NULL;

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    *count = &hyb->coocount;
  } else {
    Mat_MPIAIJHybridGPU *hyb = NULL;

    PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
    *count = &hyb->coocount;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What crosses the bus at a product with a vector whose parts live on devices: the entries received, which the
   off-diagonal block's product sends to its device, and those that others need. With GPU-aware MPI PETSc hands over
   device buffers, and nothing does. */
static PetscErrorCode MatMPIAIJHybridGPUInfoHalo(Mat A, Mat B)
{
  char text[64] = "";

  PetscFunctionBegin;
  if (!B || !HybGlueState.device) PetscFunctionReturn(PETSC_SUCCESS);
#if PETSC_VERSION_GE(3, 26, 0)
  {
    PetscSF            halo = NULL;
    PetscMPIInt        nranks, rank;
    const PetscMPIInt *ranks;
    const PetscInt    *offset, *places;
    PetscInt64         sent = 0;

    PetscErrorCode (*get)(Mat, PetscSF *);

    /* MatGetMultPetscSF() refuses a matrix whose assembly is about to end, as this one's may be */
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGetMultPetscSF_C", &get));
    if (get) PetscCall((*get)(A, &halo));
    if (halo) {
      PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)A), &rank));
      PetscCall(PetscSFGetLeafRanks(halo, &nranks, &ranks, &offset, &places));
      for (PetscMPIInt k = 0; k < nranks; k++)
        if (ranks[k] != rank) sent += offset[k + 1] - offset[k];
      PetscCall(PetscSNPrintf(text, sizeof(text), " and %" PetscInt64_FMT " to the host", sent * (PetscInt64)sizeof(PetscScalar)));
    }
  }
#endif
  PetscCall(PetscInfo(A, "A product with a vector takes %" PetscInt64_FMT " bytes of other processes' entries to the device%s\n", (PetscInt64)B->cmap->n * (PetscInt64)sizeof(PetscScalar), text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 26, 0)
  #define HYB_HALO 1
/*
  Products with a vector are the parent's, but for one thing: it receives other processes' entries into a vector of the
  host's, made before the blocks had their type, from where they would be staged at each product. Here they are received
  into one on the device.
*/
static PetscErrorCode MatMPIAIJHybridGPUGetHalo(Mat A, Vec x, Mat blocks[2], VecScatter *scatter, Vec *halo)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  const PetscInt      *garray;
  PetscBool            device;
  PetscInt             n = 0;

  PetscErrorCode (*get)(Mat, PetscSF *);

  PetscFunctionBegin;
  *halo = NULL;
  PetscCall(HybVecOnDevice(x, &device));
  if (!device || A->boundtocpu || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGetMultPetscSF_C", &get));
  if (!get) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*get)(A, scatter));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  if (!*scatter || !blocks[0] || !blocks[1]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  if (hyb->halo) PetscCall(VecGetLocalSize(hyb->halo, &n));
  if (hyb->halo && n != blocks[1]->cmap->n) PetscCall(VecDestroy(&hyb->halo));
  if (!hyb->halo) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &hyb->halo));
    PetscCall(VecSetSizes(hyb->halo, blocks[1]->cmap->n, blocks[1]->cmap->n));
    PetscCall(VecSetType(hyb->halo, VECSEQCUDA));
  }
  *halo = hyb->halo;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_MPIAIJHybridGPU(Mat A, Vec x, Vec y)
{
  Mat        blocks[2];
  VecScatter scatter = NULL;
  Vec        halo;
  PetscInt   n;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetHalo(A, x, blocks, &scatter, &halo));
  if (!halo) {
    PetscCall((*HybGlueState.mpi.mult)(A, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetLocalSize(x, &n));
  PetscCheck(n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The matrix has %" PetscInt_FMT " columns on this process, the vector %" PetscInt_FMT " entries", A->cmap->n, n);
  PetscCall(VecScatterBegin(scatter, x, halo, INSERT_VALUES, SCATTER_FORWARD));
  PetscUseTypeMethod(blocks[0], mult, x, y);
  PetscCall(VecScatterEnd(scatter, x, halo, INSERT_VALUES, SCATTER_FORWARD));
  PetscUseTypeMethod(blocks[1], multadd, halo, y, y);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_MPIAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  Mat        blocks[2];
  VecScatter scatter = NULL;
  Vec        halo;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetHalo(A, x, blocks, &scatter, &halo));
  if (!halo) {
    PetscCall((*HybGlueState.mpi.multadd)(A, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecScatterBegin(scatter, x, halo, INSERT_VALUES, SCATTER_FORWARD));
  PetscUseTypeMethod(blocks[0], multadd, x, y, z);
  PetscCall(VecScatterEnd(scatter, x, halo, INSERT_VALUES, SCATTER_FORWARD));
  PetscUseTypeMethod(blocks[1], multadd, halo, z, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = y + A^T x; without y: z = A^T x */
static PetscErrorCode MatMPIAIJHybridGPUMultTranspose(Mat A, Vec x, Vec y, Vec z, PetscBool *done)
{
  Mat        blocks[2];
  VecScatter scatter = NULL;
  Vec        halo;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetHalo(A, x, blocks, &scatter, &halo));
  *done = (PetscBool)(halo != NULL);
  if (!halo) PetscFunctionReturn(PETSC_SUCCESS);
  PetscUseTypeMethod(blocks[1], multtranspose, x, halo);
  if (y)
    PetscUseTypeMethod(blocks[0], multtransposeadd, x, y, z);
  else
    PetscUseTypeMethod(blocks[0], multtranspose, x, z);
  PetscCall(VecScatterBegin(scatter, halo, z, ADD_VALUES, SCATTER_REVERSE));
  PetscCall(VecScatterEnd(scatter, halo, z, ADD_VALUES, SCATTER_REVERSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_MPIAIJHybridGPU(Mat A, Vec x, Vec y)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUMultTranspose(A, x, NULL, y, &done));
  if (!done) PetscCall((*HybGlueState.mpi.multtranspose)(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_MPIAIJHybridGPU(Mat A, Vec x, Vec y, Vec z)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUMultTranspose(A, x, y, z, &done));
  if (!done) PetscCall((*HybGlueState.mpi.multtransposeadd)(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent makes its blocks as MATSEQAIJ; off-diagonal columns are renumbered in place, and plans are keyed on their
   number too */
PetscErrorCode MatMPIAIJHybridGPUSetBlocks(Mat A)
{
  Mat                  blocks[2];
  const PetscInt      *garray;
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *block;

    if (!blocks[k]) continue;
    PetscCall(MatSetType(blocks[k], MATSEQAIJHYBRIDGPU));
    PetscCall(MatSeqAIJHybridGPUGetData(blocks[k], &block));
    block->choices    = hyb->choices;
    block->lentarrays = hyb->lentarrays; /* its blocks' arrays are the parent's own but after MatCreateMPIAIJWithSplitArrays() */
    block->block      = PETSC_TRUE;
#if defined(PETSC_HAVE_DEVICE)
    PetscCall(MatBindToCPU(blocks[k], A->boundtocpu));
#endif
  }
  HybRecordBlocks(A, blocks[0], blocks[1]);
  PetscCall(MatMPIAIJHybridGPUInfoHalo(A, blocks[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New entries may come, also from other processes: see MatSeqAIJHybridGPUDisown() */
static PetscErrorCode MatMPIAIJHybridGPUDisownBlocks(Mat A)
{
  Mat             blocks[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++)
    if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) PetscCall(MatSeqAIJHybridGPUDisown(blocks[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent writes into the blocks past their own MatSetValues(). Where somebody holds a block's values they stay, as
  long as the entries exist.
*/
static PetscErrorCode MatMPIAIJHybridGPUSetValuesBegin(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[])
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscInt       *local[2], count[2], rstart, rend, cstart, cend;
  PetscBool       held = PETSC_FALSE, missing = PETSC_FALSE;

  PetscFunctionBegin;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++)
    if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k]) && blocks[k]->spptr && HybStorageHeld((Mat_SeqAIJHybridGPU *)blocks[k]->spptr)) held = PETSC_TRUE;
  if (!held || !blocks[0] || !blocks[1] || !garray) {
    PetscCall(MatMPIAIJHybridGPUDisownBlocks(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  PetscCall(MatGetOwnershipRangeColumn(A, &cstart, &cend));
  PetscCall(PetscMalloc2(n, &local[0], n, &local[1]));
  count[0] = count[1] = 0;
  for (PetscInt c = 0; c < n; c++) {
    PetscInt where = -1;

    if (cols[c] < 0) continue;
    if (cols[c] >= cstart && cols[c] < cend)
      local[0][count[0]++] = cols[c] - cstart;
    else {
      PetscCall(PetscFindInt(cols[c], blocks[1]->cmap->n, garray, &where));
      if (where >= 0)
        local[1][count[1]++] = where;
      else
        missing = PETSC_TRUE;
    }
  }
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt r = rows[k] - rstart;

    if (rows[k] < rstart || rows[k] >= rend) continue;
    for (int b = 0; b < 2; b++)
      if (MatIsSeqAIJHybridGPU(blocks[b])) PetscCall(b && missing ? MatSeqAIJHybridGPUDisown(blocks[b]) : MatSeqAIJHybridGPUSetValuesBegin(blocks[b], 1, &r, count[b], local[b]));
  }
  PetscCall(PetscFree2(local[0], local[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error ended a function of the parent's between getting a block's values and restoring them. Who else writes them
   restores them in vain. */
static PetscErrorCode MatMPIAIJHybridGPUNotGivenBack(Mat A)
{
  Mat             blocks[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++) {
    Mat_SeqAIJHybridGPU *hyb = blocks[k] && MatIsSeqAIJHybridGPU(blocks[k]) ? (Mat_SeqAIJHybridGPU *)blocks[k]->spptr : NULL;

    if (hyb && hyb->writers) hyb->writers--;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 20, 0)
/* The parent has changed the blocks past their own functions */
static PetscErrorCode MatMPIAIJHybridGPUBlocksMoved(Mat A)
{
  Mat             blocks[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++)
    if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) PetscCall(MatSeqAIJHybridGPUPatternMoved(blocks[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatSetValues_MPIAIJHybridGPU(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUSetValuesBegin(A, m, rows, n, cols));
  ierr = (*HybGlueState.mpi.setvalues)(A, m, rows, n, cols, v, mode);
  if (ierr) PetscCall(MatMPIAIJHybridGPUNotGivenBack(A)); /* by the parent */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 20, 0)
/* the parent calls its own function for the blocks, which shortens their rows where they are */
static PetscErrorCode MatEliminateZeros_MPIAIJHybridGPU(Mat A, PetscBool keep)
{
  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUDisownBlocks(A));
  PetscCall((*HybGlueState.mpi.eliminatezeros)(A, keep));
  PetscCall(MatMPIAIJHybridGPUBlocksMoved(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* the parent goes by what its blocks keep beside their arrays */
static PetscErrorCode MatMPIAIJHybridGPUDemoteBlocks(Mat A)
{
  Mat             blocks[2];
  const PetscInt *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (PetscInt k = 0; k < 2; k++)
    if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) PetscCall(MatSeqAIJHybridGPUDemote(blocks[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_MPIAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUDemoteBlocks(A));
  PetscCall((*HybGlueState.mpi.zerorows)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_MPIAIJHybridGPU(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diag, Vec x, Vec b)
{
  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUDemoteBlocks(A));
  PetscCall((*HybGlueState.mpi.zerorowscolumns)(A, n, rows, diag, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Submatrices. Before 3.26 the parent takes the arrays of the blocks' own ones for those of a matrix that it makes, and
  frees them with it: they have to be AIJ's own. A result that is used again the parent writes past all functions.
*/
PetscErrorCode MatMPIAIJHybridGPUHostWrites(Mat B)
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscBool       mpi;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUHostWrites(B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIAIJHYBRIDGPU, &mpi));
  if (!mpi || !B->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(B, &blocks[0], &blocks[1], &garray));
  for (int k = 0; k < 2; k++)
    if (blocks[k]) PetscCall(MatSeqAIJHybridGPUHostWrites(blocks[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Submatrices with columns in another order. Older PETSc numbers the columns of the off-diagonal block anew and leaves
  its rows in the old order; newer PETSc leaves garray in the old order. Products are of rows and of garrays in order:
  the first is sorted in its place, the second is made anew, and once more when it is used again.
*/
#define HYB_MADE_ANEW "MatCreateSubMatrix_AIJHybridGPU_Anew"

/* T's rows to B, which has their pattern or room for it */
static PetscErrorCode MatMPIAIJHybridGPUCopyRows(Mat T, Mat B)
{
  PetscFunctionBegin;
  for (PetscInt r = T->rmap->rstart; r < T->rmap->rend; r++) {
    const PetscInt    *columns;
    const PetscScalar *values;
    PetscInt           n;

    PetscCall(MatGetRow(T, r, &n, &columns, &values));
    PetscCall(MatSetValues(B, 1, &r, n, columns, values, INSERT_VALUES));
    PetscCall(MatRestoreRow(T, r, &n, &columns, &values));
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUMakeAnew(Mat *B)
{
  Mat             T = *B, S, blocks[2];
  const PetscInt *garray, *i[2], *j[2];
  PetscInt        m, *length[2];
  PetscBool       done;
  PetscContainer  mark;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(T, &blocks[0], &blocks[1], &garray));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGetRowIJ(blocks[k], 0, PETSC_FALSE, PETSC_FALSE, &m, &i[k], &j[k], &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A block of %" PetscInt_FMT " rows lends no pattern", blocks[k]->rmap->n);
    PetscCall(PetscMalloc1(m, &length[k]));
    for (PetscInt r = 0; r < m; r++) length[k][r] = i[k][r + 1] - i[k][r];
    PetscCall(MatRestoreRowIJ(blocks[k], 0, PETSC_FALSE, PETSC_FALSE, &m, &i[k], &j[k], &done));
  }
  PetscCall(MatCreate(PetscObjectComm((PetscObject)T), &S));
  PetscCall(MatSetSizes(S, T->rmap->n, T->cmap->n, T->rmap->N, T->cmap->N));
  PetscCall(MatSetBlockSizesFromMats(S, T, T));
  PetscCall(MatSetType(S, ((PetscObject)T)->type_name));
  PetscCall(MatMPIAIJSetPreallocation(S, 0, length[0], 0, length[1]));
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(length[k]));
  PetscCall(MatMPIAIJHybridGPUCopyRows(T, S));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &mark));
  PetscCall(PetscObjectCompose((PetscObject)S, HYB_MADE_ANEW, (PetscObject)mark));
  PetscCall(PetscContainerDestroy(&mark));
  PetscCall(MatDestroy(B));
  *B = S;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUSortColumns(Mat *B)
{
  Mat             blocks[2];
  const PetscInt *garray, *ai, *aj;
  PetscBool       mpi, sorted = PETSC_TRUE, done;
  PetscInt        m;
  int             own, any;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)*B, MATMPIAIJ, &mpi));
  if (!mpi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(*B, &blocks[0], &blocks[1], &garray));
  if (garray) PetscCall(PetscSortedInt(blocks[1]->cmap->n, garray, &sorted));
  own = !sorted;
  PetscCallMPI(MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)*B)));
  if (any) {
    PetscCall(MatMPIAIJHybridGPUMakeAnew(B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The off-diagonal block of %" PetscInt_FMT " rows lends no pattern", blocks[1]->rmap->n);
  for (PetscInt r = 0; r < m && sorted; r++)
    if (ai[r + 1] > ai[r]) PetscCall(PetscSortedInt(ai[r + 1] - ai[r], aj + ai[r], &sorted));
  PetscCall(MatRestoreRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
  if (!sorted) {
    PetscScalar *a;

    PetscCall(MatSeqAIJGetArray(blocks[1], &a));
    PetscCall(MatGetRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
    for (PetscInt r = 0; r < m; r++)
      if (ai[r + 1] > ai[r]) PetscCall(PetscSortIntWithScalarArray(ai[r + 1] - ai[r], (PetscInt *)aj + ai[r], a + ai[r]));
    PetscCall(MatRestoreRowIJ(blocks[1], 0, PETSC_FALSE, PETSC_FALSE, &m, &ai, &aj, &done));
    PetscCall(MatSeqAIJRestoreArray(blocks[1], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrix_MPIAIJHybridGPU(Mat A, IS isrow, IS iscol, MatReuse reuse, Mat *B)
{
  Mat                  blocks[2];
  const PetscInt      *garray;
  Mat_SeqAIJHybridGPU *hyb[2] = {NULL, NULL};
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscObject anew = NULL;

    PetscCall(PetscObjectQuery((PetscObject)*B, HYB_MADE_ANEW, &anew));
    if (anew) {
      Mat T;

      PetscCall(MatCreateSubMatrix_MPIAIJHybridGPU(A, isrow, iscol, MAT_INITIAL_MATRIX, &T));
      PetscCall(MatMPIAIJHybridGPUCopyRows(T, *B));
      PetscCall(MatDestroy(&T));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(MatMPIAIJHybridGPUHostWrites(*B));
  }
  if (PETSC_VERSION_LT(3, 26, 0) && A->preallocated) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
    for (int k = 0; k < 2; k++)
      if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) PetscCall(MatSeqAIJHybridGPUGetData(blocks[k], &hyb[k]));
  }
  for (int k = 0; k < 2; k++)
    if (hyb[k]) hyb[k]->hostcopy = PETSC_TRUE;
  ierr = (*HybGlueState.mpi.createsubmatrix)(A, isrow, iscol, reuse, B);
  for (int k = 0; k < 2; k++)
    if (hyb[k]) hyb[k]->hostcopy = PETSC_FALSE;
  PetscCall(ierr);
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatMPIAIJHybridGPUSortColumns(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrices_MPIAIJHybridGPU(Mat A, PetscInt n, const IS isrow[], const IS iscol[], MatReuse reuse, Mat *B[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n && reuse == MAT_REUSE_MATRIX; k++) PetscCall(MatMPIAIJHybridGPUHostWrites((*B)[k]));
  PetscCall((*HybGlueState.mpi.createsubmatrices)(A, n, isrow, iscol, reuse, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyBegin_MPIAIJHybridGPU(Mat A, MatAssemblyType mode)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  if (!hyb->assembling && !A->nooffprocentries) { /* entries of other processes may be new ones, and are set past MatSetValues() */
    PetscInt n, blocked;
    int      sent, any;

    PetscCall(MatStashGetInfo(A, &n, NULL, &blocked, NULL));
    sent = n || blocked;
    PetscCallMPI(MPI_Allreduce(&sent, &any, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
    if (any) PetscCall(MatMPIAIJHybridGPUDisownBlocks(A));
  }
  PetscCall((*HybGlueState.mpi.assemblybegin)(A, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_MPIAIJHybridGPU(Mat A, MatAssemblyType mode)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  hyb->assembling = PETSC_FALSE;
  PetscCall((*HybGlueState.mpi.assemblyend)(A, mode));
  if (mode == MAT_FINAL_ASSEMBLY) {
    PetscCall(MatMPIAIJHybridGPUSetBlocks(A));
    HybGlueState.counts.assemblies++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent keeps these to itself, beside the blocks: coordinates on the device give it others */
static PetscErrorCode MatSetOption_MPIAIJHybridGPU(Mat A, MatOption op, PetscBool flg)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall((*HybGlueState.mpi.setoption)(A, op, flg));
  if (op == MAT_IGNORE_OFF_PROC_ENTRIES) hyb->ignoreoffproc = flg;
  if (op == MAT_ROW_ORIENTED) hyb->bycolumns = (PetscBool)!flg;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_MPIAIJHybridGPU(Mat A, MatDuplicateOption op, Mat *B)
{
  PetscObject container = NULL;

  PetscFunctionBegin;
  PetscCall((*HybGlueState.mpi.duplicate)(A, op, B));
  if ((*B)->ops->duplicate == MatDuplicate_MPIAIJHybridGPU) { /* it takes values from the same coordinates */
    Mat_MPIAIJHybridGPU *a = NULL, *b = NULL;

    PetscCall(MatMPIAIJHybridGPUGetData(A, &a));
    PetscCall(MatMPIAIJHybridGPUGetData(*B, &b));
    b->choices       = a->choices;
    b->coocount      = a->coocount;
    b->ignoreoffproc = a->ignoreoffproc;
    b->bycolumns     = a->bycolumns;
    PetscCall(PetscObjectQuery((PetscObject)A, "HybMPICOO", &container));
    if (container) PetscCall(PetscObjectCompose((PetscObject)*B, "HybMPICOO", container));
    if ((*B)->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(*B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The state of the pattern as the parent's MatAssemblyEnd() will set it: the sum of the blocks'. Else the first
   assembly would tell of another pattern. */
PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat C)
{
  Mat             blocks[2];
  const PetscInt *garray;
  PetscInt64      own, all;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &blocks[0], &blocks[1], &garray));
  own = (PetscInt64)(blocks[0]->nonzerostate + blocks[1]->nonzerostate);
  PetscCallMPI(MPI_Allreduce(&own, &all, 1, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)C)));
  C->nonzerostate = C->ass_nonzerostate = (PetscObjectState)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 23, 0)
static PetscErrorCode MatSetFromOptions_MPIAIJHybridGPU(Mat A, PetscOptionItems *items)
#else
static PetscErrorCode MatSetFromOptions_MPIAIJHybridGPU(Mat A, PetscOptionItems items)
#endif
{
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (HybGlueState.mpi.setfromoptions) PetscCall((*HybGlueState.mpi.setfromoptions)(A, items));
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  PetscCall(MatSeqAIJHybridGPUOptions(A, &hyb->choices, items));
  if (A->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's converters to types derived from it duplicate the matrix and take the duplicate for a plain one, private
  data included: ours are taken off first
*/
PetscErrorCode MatConvert_MPIAIJHybridGPU_Derived(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat B = A;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(HybConvertCopyToDerived(A, *newmat));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert_MPIAIJHybridGPU_MPIAIJ(A, MATMPIAIJ, reuse, &B));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  *newmat = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc has no way back from these types but a new matrix, entry by entry */
PetscErrorCode MatConvert_Derived_MPIAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX)
    PetscCall(HybConvertCopy(A, *newmat, PETSC_TRUE));
  else
    PetscCall(MatConvertFrom_AIJHybridGPU(A, type, reuse, newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
static PetscErrorCode MatBindToCPU_MPIAIJHybridGPU(Mat A, PetscBool flg)
{
  PetscFunctionBegin;
  if (A->assembled) {
    Mat             blocks[2];
    const PetscInt *garray;

    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
    for (PetscInt k = 0; k < 2; k++) PetscCall(MatBindToCPU(blocks[k], flg));
  }
  PetscCall(MatAIJHybridGPUSetVecType(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The parent's sums of columns are added to vectors fresh from MatCreateVecs(), which it takes for cleared arrays on
   the host. What it has of a vector on the card is memory that nobody has written: for so long its vectors are the
   host's. */
static PetscErrorCode MatNorm_MPIAIJHybridGPU(Mat A, NormType type, PetscReal *norm)
{
  static char     host[] = VECSTANDARD;
  Mat             m[3];
  VecType         vectype[3];
  const PetscInt *garray;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  m[0] = A;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &m[1], &m[2], &garray));
  for (int k = 0; k < 3; k++) {
    vectype[k]           = m[k]->defaultvectype;
    m[k]->defaultvectype = host;
  }
  ierr = (*HybGlueState.mpi.norm)(A, type, norm);
  for (int k = 0; k < 3; k++) m[k]->defaultvectype = (char *)vectype[k];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFDColoringSetUp_MPIAIJHybridGPU(Mat A, ISColoring iscoloring, MatFDColoring c)
{
  Mat                  blocks[2];
  const PetscInt      *garray;
  Mat_MPIAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  hyb->lentarrays = PETSC_TRUE; /* each assembly tells the blocks */
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJHybridGPUStay(blocks[k]));
  PetscCall((*HybGlueState.mpi.fdcoloringsetup)(A, iscoloring, c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMPIAIJHybridGPUSetOps(Mat A, PetscBool on)
{
  struct _MatOps *ops = A->ops, *p = &HybGlueState.mpi;

  PetscFunctionBegin;
  ops->destroy = on ? MatDestroy_MPIAIJHybridGPU : p->destroy;
#if defined(HYB_HALO)
  ops->mult             = on ? MatMult_MPIAIJHybridGPU : p->mult;
  ops->multadd          = on ? MatMultAdd_MPIAIJHybridGPU : p->multadd;
  ops->multtranspose    = on ? MatMultTranspose_MPIAIJHybridGPU : p->multtranspose;
  ops->multtransposeadd = on ? MatMultTransposeAdd_MPIAIJHybridGPU : p->multtransposeadd;
#endif
  ops->norm            = on ? MatNorm_MPIAIJHybridGPU : p->norm;
  ops->setvalues       = on ? MatSetValues_MPIAIJHybridGPU : p->setvalues;
  ops->zerorows        = on ? MatZeroRows_MPIAIJHybridGPU : p->zerorows;
  ops->zerorowscolumns = on ? MatZeroRowsColumns_MPIAIJHybridGPU : p->zerorowscolumns;
#if PETSC_VERSION_GE(3, 20, 0)
  ops->eliminatezeros = on ? MatEliminateZeros_MPIAIJHybridGPU : p->eliminatezeros;
#endif
  ops->fdcoloringsetup       = on ? MatFDColoringSetUp_MPIAIJHybridGPU : p->fdcoloringsetup;
  ops->createsubmatrix       = on ? MatCreateSubMatrix_MPIAIJHybridGPU : p->createsubmatrix;
  ops->createsubmatrices     = on ? MatCreateSubMatrices_MPIAIJHybridGPU : p->createsubmatrices;
  ops->assemblybegin         = on ? MatAssemblyBegin_MPIAIJHybridGPU : p->assemblybegin;
  ops->assemblyend           = on ? MatAssemblyEnd_MPIAIJHybridGPU : p->assemblyend;
  ops->setfromoptions        = on ? MatSetFromOptions_MPIAIJHybridGPU : p->setfromoptions;
  ops->setoption             = on ? MatSetOption_MPIAIJHybridGPU : p->setoption;
  ops->duplicate             = on ? MatDuplicate_MPIAIJHybridGPU : p->duplicate;
  ops->convertfrom           = on ? MatConvertFrom_AIJHybridGPU : p->convertfrom;
  ops->productsetfromoptions = on ? MatProductSetFromOptions_MPIAIJHybridGPU : p->productsetfromoptions;
#if defined(PETSC_HAVE_DEVICE)
  ops->bindtocpu = on ? MatBindToCPU_MPIAIJHybridGPU : p->bindtocpu;
  A->boundtocpu  = (PetscBool)!on; /* MatCreate() binds what does not say otherwise */
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatDestroy_MPIAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  HybRecordGone(A);
  if (A->spptr) PetscCall(VecDestroy(&((Mat_MPIAIJHybridGPU *)A->spptr)->halo));
  PetscCall(PetscFree(A->spptr));
  if (((PetscObject)A)->qlist) PetscCall(MatAIJHybridGPUCompose(A, PETSC_FALSE, PETSC_FALSE)); /* none are left when MatHeaderMerge() empties A */
  PetscCall((*HybGlueState.mpi.destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_MPIAIJ_MPIAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat                  B;
  Mat_MPIAIJHybridGPU *hyb = NULL;
  PetscBool            own;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
  else
    *newmat = A;
  B   = *newmat;
  own = (PetscBool)(B->ops->destroy == MatDestroy_MPIAIJHybridGPU);
  if (!own) {
    if (!HybGlueState.captured_mpi) {
      HybGlueState.mpi          = *B->ops;
      HybGlueState.captured_mpi = PETSC_TRUE;
    }
    PetscCall(MatMPIAIJHybridGPUSetOps(B, PETSC_TRUE));
    PetscCall(MatAIJHybridGPUCompose(B, PETSC_FALSE, PETSC_TRUE));
  }
  PetscCall(MatMPIAIJHybridGPUGetData(B, &hyb));
  if (!own && reuse == MAT_INPLACE_MATRIX && B->preallocated) hyb->lentarrays = PETSC_TRUE;
  PetscCall(MatAIJHybridGPUSetVecType(B));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATMPIAIJHYBRIDGPU));
  if (B->assembled) PetscCall(MatMPIAIJHybridGPUSetBlocks(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_MPIAIJHybridGPU_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat B;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, newmat));
  else
    *newmat = A;
  B = *newmat;
  if (B->assembled) {
    Mat             blocks[2];
    const PetscInt *garray;

    PetscCall(MatMPIAIJGetSeqAIJ(B, &blocks[0], &blocks[1], &garray));
    for (PetscInt k = 0; k < 2; k++)
      if (blocks[k] && MatIsSeqAIJHybridGPU(blocks[k])) PetscCall(MatConvert(blocks[k], MATSEQAIJ, MAT_INPLACE_MATRIX, &blocks[k]));
  }
  if (B->spptr) PetscCall(VecDestroy(&((Mat_MPIAIJHybridGPU *)B->spptr)->halo));
  PetscCall(PetscFree(B->spptr));
  PetscCall(MatAIJHybridGPUCompose(B, PETSC_FALSE, PETSC_FALSE));
  PetscCall(MatMPIAIJHybridGPUSetOps(B, PETSC_FALSE));
  PetscCall(MatAIJHybridGPUSetVecType(B));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATMPIAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATMPIAIJHYBRIDGPU - "mpiaijhybridgpu" - the parallel form of `MATAIJHYBRIDGPU`

   Level: beginner

.seealso: `MATAIJHYBRIDGPU`
M*/

PetscErrorCode MatCreate_MPIAIJHybridGPU(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATMPIAIJ));
  PetscCall(MatConvert_MPIAIJ_MPIAIJHybridGPU(A, MATMPIAIJHYBRIDGPU, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatCreateAIJHybridGPU - Creates a sparse matrix of type `MATAIJHYBRIDGPU`: sequential on one process, parallel on
   several

   Collective

   Input Parameters:
+  comm  - an MPI communicator
.  m     - number of local rows, or `PETSC_DECIDE`
.  n     - number of local columns, or `PETSC_DECIDE`
.  M     - number of global rows, or `PETSC_DETERMINE`
.  N     - number of global columns, or `PETSC_DETERMINE`
.  d_nz  - number of nonzeros a row in the diagonal block (the same for all local rows), ignored if `d_nnz` is given
.  d_nnz - array of numbers of nonzeros of the local rows in the diagonal block, or `NULL`
.  o_nz  - number of nonzeros a row in the off-diagonal block, ignored if `o_nnz` is given
-  o_nnz - array of numbers of nonzeros of the local rows in the off-diagonal block, or `NULL`

   Output Parameter:
.  A - the matrix, preallocated, to be filled with `MatSetValues()` and destroyed with `MatDestroy()`

   Level: intermediate

   Note:
   `MatAIJHybridGPUInitializePackage()` must have been called, or the library loaded with -dll_append: without that the
   type is unknown (`PETSC_ERR_ARG_UNKNOWN_TYPE`).

.seealso: `MATAIJHYBRIDGPU`, `MatCreateSeqAIJHybridGPU()`, `MatCreateAIJ()`
@*/
PetscErrorCode MatCreateAIJHybridGPU(MPI_Comm comm, PetscInt m, PetscInt n, PetscInt M, PetscInt N, PetscInt d_nz, const PetscInt d_nnz[], PetscInt o_nz, const PetscInt o_nnz[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, M, N));
  PetscCall(MatSetType(*A, MATAIJHYBRIDGPU));
  PetscCall(MatSeqAIJSetPreallocation(*A, d_nz, d_nnz));
  PetscCall(MatMPIAIJSetPreallocation(*A, d_nz, d_nnz, o_nz, o_nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}
