/*
  A parallel matrix made of blocks that are there: what the base class keeps beside them, and the blocks' contents.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

/* Not collective: C's blocks become empty ones of the type, with C's rows and as many columns as they have */
static PetscErrorCode HybFromBlocksEmpty(Mat C, const PetscObjectState was[2])
{
  Mat             block[2], empty;
  const PetscInt *garray;
  PetscErrorCode  ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  for (int k = 0; k < 2 && !ierr; k++) {
    PetscCall(MatCreate(PETSC_COMM_SELF, &empty));
    ierr = MatSetSizes(empty, C->rmap->n, block[k]->cmap->n, C->rmap->n, block[k]->cmap->n);
    if (!ierr) ierr = MatSetType(empty, MATSEQAIJHYBRIDGPU);
    /* adoption counts on from there: to what the parent's have that are new, else the sum never comes to a former
       pattern's number */
    empty->nonzerostate = empty->ass_nonzerostate = was[k] ? was[k] : block[k]->nonzerostate - 1;
    if (!ierr) ierr = MatHeaderReplace(block[k], &empty);
    if (ierr) (void)MatDestroy(&empty);
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A throw-away MATMPIAIJ with C's columns and these of others, whose processes have a row each, which no process has to
  be asked: for what the base class keeps beside the blocks. A process that has an error of its own meets the others
  before anything is sent.
*/
#if HYB_HAS_CREATE_GARRAY
static PetscErrorCode HybFromBlocksMakeOne(PetscInt n, Mat *block)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 1, n, 0, NULL, block));
  PetscCall(MatAssemblyBegin(*block, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*block, MAT_FINAL_ASSEMBLY));
  /* whatever -mat_seqaij_type says: T is a MATMPIAIJ */
  PetscCall(MatConvert(*block, MATSEQAIJ, MAT_INPLACE_MATRIX, block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks without entries, and the ghost columns' numbers given to PETSc: it does not look for them. With an error there
   is T on all processes or on none, unless PETSc's own creation of T fails on one alone. */
static PetscErrorCode HybFromBlocksMake(HybComm comm, PetscErrorCode before, Mat C, PetscInt ncols, const PetscInt *garray, void *lent[2], Mat *T)
{
  Mat            block[2] = {NULL, NULL}, made;
  PetscInt      *own      = NULL; /* T's */
  PetscSFNode   *remote   = NULL; /* its scatter's */
  PetscErrorCode ierr     = before;

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(ncols + 1, &own);
  if (!ierr) ierr = PetscMalloc1(ncols, &remote);
  if (!ierr) ierr = HybFromBlocksMakeOne(C->cmap->n, &block[0]);
  if (!ierr) ierr = HybFromBlocksMakeOne(ncols, &block[1]);
  if (!ierr) ierr = HybScatterDefer(C, block[1]);
  ierr = HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix");
  if (ierr) {
    (void)PetscFree(own);
    (void)PetscFree(remote);
    for (int k = 0; k < 2; k++) (void)MatDestroy(&block[k]);
  }
  PetscCall(ierr);
  PetscCall(PetscArraycpy(own, garray, ncols));
  PetscCall(MatCreateMPIAIJWithSeqAIJ(PetscObjectComm((PetscObject)C), comm->size, C->cmap->N, block[0], block[1], own, &made));
  *T = made;
  PetscCall(HybScatterSetGraph(C, *T, block[1], ncols, garray, remote));
  if (ncols) block[1]->nonzerostate++; /* as where PETSc numbers the columns anew */
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
/* PETSc looks for the columns, of a row that has them all. lent: that row's arrays, which T uses. */
static PetscErrorCode HybFromBlocksMake(HybComm comm, PetscErrorCode before, Mat C, PetscInt ncols, const PetscInt *garray, void *lent[2], Mat *T)
{
  PetscInt       i[2] = {0, 0}, oi[2] = {0, ncols}, none = 0, *oj = NULL;
  PetscScalar    nothing = 0, *oa = NULL;
  Mat            made;
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(ncols + 1, &oj);
  if (!ierr) ierr = PetscCalloc1(ncols + 1, &oa);
  lent[0] = oj;
  lent[1] = oa;
  PetscCall(HybCommAgree(comm, ierr, "Memory for the columns of others of a parallel matrix"));
  PetscCall(PetscArraycpy(oj, garray, ncols));
  PetscCall(MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)C), 1, C->cmap->n, comm->size, C->cmap->N, i, &none, &nothing, oi, oj, oa, &made));
  *T = made;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* C's data become those of a parallel matrix with these columns of others, and take its options; the blocks get their
   rows with their contents. */
PetscErrorCode MatMPIAIJHybridGPUSetFrame(Mat C, PetscErrorCode before, PetscInt ncols, const PetscInt *garray, PetscBool *made)
{
  Mat_MPIAIJHybridGPU *hyb     = NULL;
  void                *lent[2] = {NULL, NULL}, *data;
  HybComm              comm;
  Mat                  T = NULL, block[2];
  const PetscInt      *old;
  PetscObjectState     was[2] = {0, 0};
  PetscErrorCode       ierr   = before, later;

  PetscFunctionBegin;
  PetscCall(HybCommGet(PetscObjectComm((PetscObject)C), &comm)); /* there is one: it is looked up */
  if (!ierr) ierr = MatMPIAIJHybridGPUGetData(C, &hyb);
  if (!ierr) ierr = MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &old);
  for (int k = 0; k < 2 && !ierr; k++)
    if (block[k]) was[k] = block[k]->nonzerostate;
  later = HybMPIHoldWorld(PetscObjectComm((PetscObject)C)); /* so that what its products open stays */
  ierr  = HybFromBlocksMake(comm, ierr ? ierr : later, C, ncols, garray, lent, &T);
  *made = (PetscBool)(T != NULL);
  if (T) {
    if (!ierr) ierr = MatSetOption(T, MAT_IGNORE_OFF_PROC_ENTRIES, hyb->ignoreoffproc);
    if (!ierr) ierr = MatSetOption(T, MAT_ROW_ORIENTED, (PetscBool)!hyb->bycolumns);
    data    = C->data;
    C->data = T->data;
    T->data = data;
    later   = MatDestroy(&T);
    if (later) (void)MatDestroy(&T); /* the rest of it */
    if (!ierr) ierr = later;
    later = HybFromBlocksEmpty(C, was); /* which stop using what is lent before it goes */
    if (!ierr) ierr = later;
  }
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(lent[k]));
  PetscCall(HybCommRestore(&comm));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUAdoptBlocks(Mat C, const HybExec *x, HybArena out[2], const HybParCSR *csr)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  Mat                  block[2];
  const PetscInt      *garray;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJHybridGPUGetData(C, &hyb));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], &garray));
  for (int k = 0; k < 2; k++) {
    const HybCSR        *part  = k ? &csr->O : &csr->D;
    Mat_SeqAIJHybridGPU *b     = NULL;
    PetscBool            taken = PETSC_FALSE;

    PetscCall(MatSetBlockSizes(block[k], PetscAbs(C->rmap->bs), k ? 1 : PetscAbs(C->cmap->bs)));
    PetscCall(MatSeqAIJHybridGPUGetData(block[k], &b));
    b->choices = hyb->choices;
    b->block   = PETSC_TRUE;
    if (!HybExecOnDevice(x)) PetscCall(MatSeqAIJHybridGPUTakeSmall(block[k], &out[k], part, &taken));
    if (!taken) PetscCall(HybExecOnDevice(x) ? MatSeqAIJHybridGPUAdoptDevice(block[k], x, &out[k], part) : MatSeqAIJHybridGPUAdopt(block[k], &out[k], part));
    block[k]->num_ass    = 1; /* as the parent's, which preallocates them */
    b->aspreallocated    = PETSC_TRUE;
    b->neverpreallocated = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define HYB_ASSEMBLED_SMALL   128  /* rows a process in the mean, which each process knows without asking */
#define HYB_ASSEMBLED_ENTRIES 4096 /* of each process */

/* Not collective: has each column of others an entry, so that an assembly finds these and no others? */
static PetscErrorCode HybFromBlocksInUse(const HybParCSR *csr, PetscBool *all)
{
  PetscBool *used;
  PetscInt   n = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(csr->O.n, &used));
  for (PetscCount k = 0; k < csr->O.nnz; k++) used[csr->O.j[k]] = PETSC_TRUE;
  for (PetscInt c = 0; c < csr->O.n; c++) n += used[c] && (!c || csr->garray[c - 1] < csr->garray[c]);
  PetscCall(PetscFree(used));
  *all = (PetscBool)(n == csr->O.n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: rows of zeros, by global columns. length: of each row, in each block; state: of the blocks' patterns
   before an entry came. */
static PetscErrorCode HybFromBlocksSetRows(Mat C, const HybParCSR *csr, PetscInt *const length[2], PetscObjectState state[2])
{
  const PetscInt m = C->rmap->n;
  Mat            block[2];
  PetscInt       most = 0, *cols;
  PetscScalar   *zeros;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    length[0][r] = csr->D.i[r + 1] - csr->D.i[r];
    length[1][r] = csr->O.i[r + 1] - csr->O.i[r];
    most         = PetscMax(most, length[0][r] + length[1][r]);
  }
  PetscCall(MatMPIAIJSetPreallocation(C, 0, length[0], 0, length[1]));
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) state[k] = block[k]->nonzerostate;
  PetscCall(PetscCalloc2(most, &cols, most, &zeros));
  for (PetscInt r = 0; r < m && !ierr; r++) {
    const PetscInt row = C->rmap->rstart + r;
    PetscInt       n   = 0;

    for (PetscInt k = csr->D.i[r]; k < csr->D.i[r + 1]; k++) cols[n++] = C->cmap->rstart + csr->D.j[k];
    for (PetscInt k = csr->O.i[r]; k < csr->O.i[r + 1]; k++) cols[n++] = csr->garray[csr->O.j[k]];
    ierr = (*HybGlueState.mpi.setvalues)(C, 1, &row, n, cols, zeros, INSERT_VALUES);
  }
  PetscCall(HybErrorFirst(ierr, PetscFree2(cols, zeros)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: what all processes assemble then */
static PetscErrorCode HybFromBlocksFill(Mat C, const HybParCSR *csr, PetscObjectState state[2])
{
  PetscInt      *length[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(C->rmap->n, &length[0], C->rmap->n, &length[1]));
  ierr = HybFromBlocksSetRows(C, csr, length, state);
  PetscCall(HybErrorFirst(ierr, PetscFree2(length[0], length[1])));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: C's blocks have these entries and no others; else a numeric phase would write past them. Its
   entries count as no change of the pattern after the preallocation, as where AIJ makes all of them at once. */
static PetscErrorCode HybFromBlocksEnd(Mat C, const HybParCSR *csr, const PetscObjectState state[2])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    const PetscCount nnz = k ? csr->O.nnz : csr->D.nnz;
    HybLent          l;

    PetscCall(HybLentGet(block[k], PETSC_FALSE, &l));
    PetscCall(HybLentRestore(block[k], &l));
    PetscCheck(l.csr.nnz == nnz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The assembly of a small parallel product has left %" PetscInt64_FMT " entries of %" PetscInt64_FMT, (PetscInt64)l.csr.nnz, (PetscInt64)nnz);
    block[k]->nonzerostate = block[k]->ass_nonzerostate = state[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective. A new C gets this pattern, with zeros, as the program would assemble it: of few rows the matrix that
  MatMPIAIJHybridGPUSetFrame() throws away, and blocks of its own, cost more than all else of a product. csr is the
  host's. *made: C has the pattern, or the error that is returned came after all processes had agreed to make it. Not
  made: C is nobody's yet; a process that had filled it leaves blocks that SetFrame() replaces.
*/
PetscErrorCode MatMPIAIJHybridGPUAssembleSmall(Mat C, PetscErrorCode before, const HybParCSR *csr, PetscBool *made)
{
  const MPI_Comm   comm  = PetscObjectComm((PetscObject)C);
  const char      *what  = "Making a small parallel matrix";
  const PetscBool  alone = C->nooffprocentries, was = C->preallocated;
  PetscObjectState state[2] = {0, 0};
  PetscMPIInt      size;
  PetscErrorCode   ierr = before, later;

  PetscFunctionBegin;
  *made = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (C->rmap->N / size > HYB_ASSEMBLED_SMALL) PetscFunctionReturn(before);
  later = HybMPIHoldWorld(comm);
  ierr  = HybErrorFirst(ierr, later);
  *made = (PetscBool)(!C->preallocated && !C->structure_only && csr->D.nnz + csr->O.nnz <= HYB_ASSEMBLED_ENTRIES);
  if (!ierr && *made) ierr = HybFromBlocksInUse(csr, made);
  if (!ierr && *made) ierr = HybFromBlocksFill(C, csr, state);
  ierr = HybAgreeAll(comm, ierr, what, made);
  if (ierr) *made = PETSC_FALSE;
  if (!*made) C->preallocated = was;
  PetscCall(ierr);
  if (!*made) PetscFunctionReturn(PETSC_SUCCESS);
  C->nooffprocentries = PETSC_TRUE;
  ierr                = (*HybGlueState.mpi.assemblybegin)(C, MAT_FINAL_ASSEMBLY);
  if (!ierr) ierr = (*HybGlueState.mpi.assemblyend)(C, MAT_FINAL_ASSEMBLY);
  C->nooffprocentries = alone;
  PetscCall(ierr);
  PetscCall(HybFromBlocksEnd(C, csr, state));
  PetscCall(MatMPIAIJHybridGPUSetBlocks(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
