/*
  Values in page-locked memory.

  A matrix that the host writes, and the device multiplies after each such step, is sent as often. From pageable memory the values pass through page-locked buffers; from page-locked
  memory the bus takes them as they are. On an H200 and its host, 880 MB (27-point 160^3), ms:

    sent through the buffers                      18.3 to 21.8, by what the caches hold
    sent from page-locked memory                  16.1
    moved there: pages touched and values copied  45
                 and locked                       20
                 adopted by the base class        25, by rows

  So at the n-th sending of new values they move to page-locked memory of ours, which the AIJ base class uses from then on. The time that the sendings before have lost then is what the
  move costs: (45 + 20 + 25) / (20 - 16.1) = 23, and a program is never behind by more than once that, whenever it ends. With aijcusparse each sending takes 99.

  PETSc's own array is not locked where it is: PETSc frees it unseen. As with promotion (promote.c), what AIJ was stays aside as "former", here with its row offsets and
  column indices in use by both, so that the device's copy, its plan and the object's states stand. Who has the old array still, to read, finds there what it held. The values return
  before anything that may move or free the arrays: new entries, another preallocation, stored values. They do not move a second time then.

  What AIJ keeps beside its arrays (options) is given to the new base class as far as this type has seen it being set: all of it for a matrix that was born as one of this
  type, not for one converted from another. MatSetValues() and duplicates go by these options, so the values of a converted matrix return at the first of these; and MatSetValues() makes room for new entries where they are
  allowed, so values that come by MatSetValues() move only where new entries are an error or are ignored, as a preallocation by the program has it.

  Not moved: arrays that the program lent, or that it may have lent (-mat_seqaij_type); those whose places a coloring for finite differences remembers; those of products; blocks of parallel matrices, whose parent writes past the sequential type.
*/
#include "../aijhybridgpuimpl.h"

/* are new entries an error, or ignored? */
static PetscBool HybNewEntriesRefused(const Mat_SeqAIJHybridGPU *hyb)
{
  const HybAsked *asked = &hyb->asked[HYB_ASKED_NEW_NONZEROS];

  return (PetscBool)(asked->said && (asked->op == MAT_NEW_NONZERO_LOCATIONS ? !asked->flg : asked->flg));
}

PetscBool MatSeqAIJHybridGPULockedTakesValues(const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(hyb->locked && hyb->optionsknown && HybNewEntriesRefused(hyb));
}

PetscErrorCode MatSeqAIJHybridGPULockedTakesDiagonal(Mat A, PetscBool *takes)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybPatternKey        key;
  HybLent              l;
  PetscInt             where = 0;

  PetscFunctionBegin;
  *takes = (PetscBool)(hyb && MatSeqAIJHybridGPULockedTakesValues(hyb));
  if (!*takes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybLentGet(A, PETSC_FALSE, &l));
  PetscCall(HybPatternKeyGet(A, &l.csr, &key));
  if (!HybPatternKeyEqual(&key, &hyb->diagonalkey)) { /* looked at once for a pattern */
    for (PetscInt r = 0; r < PetscMin(l.csr.m, l.csr.n) && where >= 0; r++) PetscCall(PetscFindInt(r, l.csr.i[r + 1] - l.csr.i[r], l.csr.j + l.csr.i[r], &where));
    if (where >= 0) hyb->diagonalkey = key;
    *takes = (PetscBool)(where >= 0);
  }
  PetscCall(HybLentRestore(A, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPULockedLetDuplicate(Mat A)
{
  const Mat_SeqAIJHybridGPU *hyb = (const Mat_SeqAIJHybridGPU *)A->spptr;

  PetscFunctionBegin;
  if (hyb && hyb->locked && !hyb->optionsknown) PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJHybridGPULockDue(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybCSR *csr, PetscBool *due)
{
  const size_t    bytes = sizeof(HybScalar) * (size_t)csr->nnz;
  HybMemoryReport r;
  PetscBool       plain;

  PetscFunctionBegin;
  *due = PETSC_FALSE;
  if (!HybGlueState.lockafter || hyb->sendings < HybGlueState.lockafter || bytes < (size_t)HybGlueState.lockmin) PetscFunctionReturn(PETSC_SUCCESS);
  if (hyb->locknever || hyb->former || hyb->arrays.blocks || hyb->lentarrays || hyb->block || !A->assembled || A->structure_only || A->factortype != MAT_FACTOR_NONE) PetscFunctionReturn(PETSC_SUCCESS);
  if ((hyb->inserted || A->sortedfull) && !(hyb->optionsknown && HybNewEntriesRefused(hyb))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, MATSEQAIJ, &plain));
  if (plain) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(x->backend->usage(&r, PETSC_FALSE));
  *due = (PetscBool)(r.locked_bytes <= r.locked_share && bytes <= r.locked_share - r.locked_bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *from: the values, in page-locked memory; and whether the base class would take such arrays, which a PETSc with debugging looks at */
static PetscErrorCode HybLockedValues(const HybExec *x, const HybCSR *csr, const HybCSR *device, HybArena *arrays, PetscCount *nbad, HybScalar **from)
{
  HybArena       work;
  PetscErrorCode ierr;
  PetscInt       badrow;

  PetscFunctionBegin;
  PetscCall(HybArenaInit(&work, x));
  ierr = x->backend->csr->check(x, &work, device, nbad, &badrow);
  PetscCall(HybArenaReset(&work));
  PetscCall(ierr);
  if (*nbad) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_LOCKED, csr->nnz, sizeof(HybScalar), from));
  PetscCall(x->backend->copy(x, *from, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_HOST_TO_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSeqAIJHybridGPULock(Mat A, Mat_SeqAIJHybridGPU *hyb, HybArena *arrays, const HybCSR *csr)
{
  HybSeenStates  seen;
  HybPatternKey  checkkey  = hyb->checkkey;
  PetscCount     adoptions = hyb->adoptions;
  PetscBool      stored    = hyb->stored;
  PetscInt       nodes;
  PetscOptions   noinode = NULL;
  PetscErrorCode ierr;
  Mat            former;

  PetscFunctionBegin;
  PetscCall(MatInodeGetInodeSizes(A, &nodes, NULL, NULL));
  PetscCall(HybSeenStatesGet(A, &seen));
  if (!nodes) PetscCall(HybNoInodeBegin(&noinode));
  HybLargePagesBegin(csr->m);
  ierr = MatSeqAIJHybridGPUAdopt(A, arrays, csr, &former);
  HybLargePagesEnd();
  if (noinode) HybNoInodeEnd(&noinode);
  PetscCall(ierr);
  hyb->former    = former;
  hyb->locked    = PETSC_TRUE;
  hyb->checkkey  = checkkey;
  hyb->adoptions = adoptions;
  hyb->stored    = stored;
  PetscCall(HybSeenStatesSet(A, &seen));
  for (int k = 0; k < HYB_ASKED_GROUPS; k++)
    if (hyb->asked[k].said) PetscCall((*HybGlueState.seq.setoption)(A, hyb->asked[k].op, hyb->asked[k].flg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUSendFrom(Mat A, Mat_SeqAIJHybridGPU *hyb, const HybExec *x, const HybCSR *csr, const HybCSR *device, const HybScalar **from)
{
  HybArena       arrays;
  HybCSR         result = *csr;
  PetscCount     nbad   = 0;
  PetscBool      due;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *from = csr->a;
  hyb->sendings++;
  PetscCall(MatSeqAIJHybridGPULockDue(A, hyb, x, csr, &due));
  hyb->inserted = PETSC_FALSE;
  if (!due) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybArenaInit(&arrays, x));
  /* without the memory the values stay where they are: that is no error */
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = HybLockedValues(x, csr, device, &arrays, &nbad, &result.a);
  PetscCall(PetscPopErrorHandler());
  if (ierr || nbad) {
    hyb->locknever = PETSC_TRUE;
    PetscCall(HybArenaReset(&arrays));
    PetscCall(PetscInfo(A, "The values, sent %" PetscInt_FMT " times, stay in pageable memory: %s\n", hyb->sendings, nbad ? "columns are not sorted" : "there is no page-locked memory for them"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ierr = MatSeqAIJHybridGPULock(A, hyb, &arrays, &result);
  if (ierr) (void)HybArenaReset(&arrays); /* what was not taken over */
  PetscCall(ierr);
  *from = result.a;
  PetscCall(PetscInfo(A, "Sent %" PetscInt_FMT " times after the host had written: the values, %" PetscInt64_FMT " nonzeros, move to page-locked memory (-mat_aijhybridgpu_lock_after 0 leaves them where they are)\n", hyb->sendings, (PetscInt64)csr->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}
