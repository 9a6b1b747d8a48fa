/*
  Rows of equal pattern (inodes). AIJ relaxes, orders and colors them together, and looks for them at each assembly. The
  search reads all of j on the host, so it is left out where the device makes a matrix, until somebody goes by them:

    MatSOR()
    MatGetRowIJ(), MatGetColumnIJ()   for one row of each node: orderings and colorings
    a conversion to the parent's type
    another pattern: where AIJ found no nodes it never looks again in the same data

  Where the pattern is on the device, that compares each row with the one before, and if there are too few nodes the
  state is that of AIJ after its search: none are used.

  After the search the operations that AIJ chooses by what it has found are AIJ's.
*/
#include "storage.h"
#include "where.h"

/* Has somebody said that no nodes are wanted? */
static PetscErrorCode HybInodesRefused(Mat A, PetscBool *no)
{
  static const char *const options[] = {"-mat_no_inode", "-mat_no_unroll"};

  PetscFunctionBegin;
  *no = PETSC_FALSE;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options) && !*no; k++) {
    PetscBool set;

    PetscCall(PetscOptionsGetBool(((PetscObject)A)->options, ((PetscObject)A)->prefix, options[k], no, &set));
  }
  /* AIJ has no array for the columns of no entries, and takes that for no nodes; for most products it has */
  if (!*no && !A->product) {
    const PetscInt *i;

    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    *no = (PetscBool)(!A->rmap->n || !i[A->rmap->n]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJ's search, by the rows that are like the one before: nodes have at most so many rows, and they are none where less
   than a fifth of the rows is saved */
static PetscErrorCode HybInodesCount(Mat A, const HybExec *x, HybArena *work, PetscBool *none)
{
  unsigned char *same, *host;
  HybCSR         csr;
  PetscInt       limit = 5, rows = 0, nodes = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(((PetscObject)A)->options, ((PetscObject)A)->prefix, "-mat_inode_limit", &limit, NULL));
  limit = PetscMin(limit, 5);
  PetscCall(MatSeqAIJHybridGPUGetDeviceCSR(A, x, PETSC_FALSE, &csr));
  PetscCall(HybArenaAlloc(work, HYB_MEM_DEVICE, csr.m, 1, &same));
  PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, csr.m, 1, &host));
  PetscCall(x->backend->csr->samerows(x, &csr, same));
  PetscCall(x->backend->copy(x, host, same, (size_t)csr.m, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybLogToHost((PetscLogDouble)csr.m));
  /* at least as many nodes as rows that differ from the one before: mostly that tells */
  for (PetscInt r = 0; r < csr.m; r++) nodes += !host[r];
  if (nodes <= 0.8 * csr.m) {
    nodes = 0;
    for (PetscInt r = 0; r < csr.m; r++) {
      rows = host[r] && rows < limit ? rows + 1 : 1;
      nodes += rows == 1;
    }
  }
  *none = (PetscBool)(nodes > 0.8 * csr.m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybInodesEnded(Mat A, PetscBool *ended)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  MatOption            op;
  PetscBool            use;
  HybExec              x;
  HybArena             work;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  *ended = PETSC_FALSE;
  if (!hyb->inodesleft) {
    *ended = (PetscBool)(HybFrameOption(A, HYB_ASKED_INODES, &op, &use) && !use);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybInodesRefused(A, ended));
  if (*ended || !hyb->copy.pattern) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, &x));
  if (!HybExecOnDevice(&x)) PetscFunctionReturn(PETSC_SUCCESS);
  work = HybArenaOn(&x);
  HybCallBoth(HybInodesCount(A, &x, &work, ended), HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybInodesLook(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  PetscBool            ended;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !hyb->inodesleft) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybInodesEnded(A, &ended));
  if (ended) hyb->inodesleft = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybInodesFind(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(HybInodesLook(A));
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !hyb->inodesleft) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUMove(A, PETSC_FALSE, PETSC_FALSE));
  hyb->inodesleft = PETSC_FALSE;
  ierr            = (*HybGlueState.seq.setoption)(A, MAT_USE_INODES, PETSC_TRUE);
  if (!ierr) ierr = (*HybGlueState.seq.assemblyend)(A, MAT_FINAL_ASSEMBLY);
  if (!ierr) ierr = HybInodesLend(A, PETSC_TRUE);
  if (ierr) hyb->inodesleft = PETSC_TRUE; /* after an error the search is still left out */
  PetscCall(ierr);
  PetscCall(MatSeqAIJHybridGPUMove(A, PETSC_FALSE, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJ chooses the functions that lend its pattern by what the search found. Ours lie over them where the search is left
  out, or where the arrays are ours: who holds rows i and j is counted then, so that they last as long. AIJ's are kept
  in the private data; none are where PETSc gave A another header's data.

  Who asks for the number alone (a natural ordering) numbers rows, which need no search.
*/
static PetscErrorCode HybGetIJ(Mat A, HybLend which, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n, const PetscInt *ia[], const PetscInt *ja[], PetscBool *done)
{
  const HybLendFn      parents[] = {HybGlueState.seq.getrowij, HybGlueState.seq.restorerowij, HybGlueState.seq.getcolumnij};
  Mat_SeqAIJHybridGPU *hyb       = NULL;
  HybLendFn            f         = NULL;

  PetscFunctionBegin;
  if (compressed && ia && which != HYB_LEND_ROWS_END) PetscCall(HybInodesFind(A));
  if (MatIsSeqAIJHybridGPU(A)) {
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    f = hyb->lend[which];
  }
  PetscCall((*(f ? f : parents[which]))(A, shift, symmetric, compressed, n, ia, ja, done));
  if (!hyb || !ia || which == HYB_LEND_COLUMNS) PetscFunctionReturn(PETSC_SUCCESS); /* columns are a copy */
  if (which == HYB_LEND_ROWS)
    hyb->patterns++;
  else if (hyb->patterns) {
    hyb->patterns--;
    PetscCall(HybStorageGivenBack(hyb));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowIJ_SeqAIJHybridGPU(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n, const PetscInt *ia[], const PetscInt *ja[], PetscBool *done)
{
  return HybGetIJ(A, HYB_LEND_ROWS, shift, symmetric, compressed, n, ia, ja, done);
}

static PetscErrorCode MatRestoreRowIJ_SeqAIJHybridGPU(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n, const PetscInt *ia[], const PetscInt *ja[], PetscBool *done)
{
  return HybGetIJ(A, HYB_LEND_ROWS_END, shift, symmetric, compressed, n, ia, ja, done);
}

static PetscErrorCode MatGetColumnIJ_SeqAIJHybridGPU(Mat A, PetscInt shift, PetscBool symmetric, PetscBool compressed, PetscInt *n, const PetscInt *ia[], const PetscInt *ja[], PetscBool *done)
{
  return HybGetIJ(A, HYB_LEND_COLUMNS, shift, symmetric, compressed, n, ia, ja, done);
}

static const HybLendFn lend[HYB_LENDS] = {MatGetRowIJ_SeqAIJHybridGPU, MatRestoreRowIJ_SeqAIJHybridGPU, MatGetColumnIJ_SeqAIJHybridGPU};

/* Ours lie over what AIJ has chosen now, or AIJ's are back */
PetscErrorCode HybInodesLend(Mat A, PetscBool on)
{
  Mat_SeqAIJHybridGPU *hyb                = NULL;
  HybLendFn           *ops[HYB_LENDS]     = {&A->ops->getrowij, &A->ops->restorerowij, &A->ops->getcolumnij};
  const HybLendFn      parents[HYB_LENDS] = {HybGlueState.seq.getrowij, HybGlueState.seq.restorerowij, HybGlueState.seq.getcolumnij};

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  for (int k = 0; k < HYB_LENDS; k++) {
    if (on && *ops[k] != lend[k]) {
      hyb->lend[k] = *ops[k];
      *ops[k]      = lend[k];
    } else if (!on && *ops[k] == lend[k])
      *ops[k] = hyb->lend[k] ? hyb->lend[k] : parents[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's data were made without the search */
PetscErrorCode HybInodesLeave(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->inodesleft = PETSC_TRUE;
  PetscCall(HybInodesLend(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Eisenstat variant of the parent's does not give back what it reads */
static PetscErrorCode MatSOR_SeqAIJHybridGPU(Mat A, Vec b, PetscReal omega, MatSORType flag, PetscReal shift, PetscInt its, PetscInt lits, Vec x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, sor, A, b, omega, flag, shift, its, lits, x);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybInodesFind(A));
  {
    const int            readers = hyb->readers;
    const PetscErrorCode ierr    = (*HybGlueState.seq.sor)(A, b, omega, flag, shift, its, lits, x);

    hyb->readers = readers;
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybInodesSetOps(Mat A, PetscBool on)
{
  A->ops->sor = on ? MatSOR_SeqAIJHybridGPU : HybGlueState.seq.sor;
}
