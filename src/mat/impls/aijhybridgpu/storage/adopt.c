/*
  Handing results back to the AIJ base class without a copy.
*/
#include "storage.h"

#define HYB_TAKEN_SMALL 3000 /* entries, and rows */

/* The search for inodes has chosen these together with the data: orderings number nodes in one and expand them by the
   other */
static void HybInodeOpsTake(struct _MatOps *to, const struct _MatOps *from)
{
  to->getrowij          = from->getrowij;
  to->restorerowij      = from->restorerowij;
  to->getcolumnij       = from->getcolumnij;
  to->restorecolumnij   = from->restorecolumnij;
  to->coloringpatch     = from->coloringpatch;
  to->multdiagonalblock = from->multdiagonalblock;
}

/* exchanges what AIJ keeps, and the operations that it has chosen by it */
static PetscErrorCode MatSeqAIJHybridGPUExchangeData(Mat A, Mat B)
{
  const struct _MatOps ops  = *A->ops;
  void                *data = A->data;

  PetscFunctionBegin;
  A->data = B->data;
  B->data = data;
  HybInodeOpsTake(A->ops, B->ops);
  HybInodeOpsTake(B->ops, &ops);
  HybDoorOpen(A);
  PetscCall(HybDoorClose(B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* T has what were A's data. MatInvertBlockDiagonal() has lent inverses that lie there, for which AIJ has one place as
   long as the matrix lives, and a preconditioner that is used again goes by: these last ones stay as long. */
static PetscErrorCode HybDataGone(Mat A, Mat_SeqAIJHybridGPU *hyb, Mat *T)
{
  PetscFunctionBegin;
  if (hyb->inverted) PetscCall(PetscObjectCompose((PetscObject)A, "HybInverses", (PetscObject)*T));
  hyb->inverted = PETSC_FALSE;
  PetscCall(MatDestroy(T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C, whose states were these, has got a result for its contents */
static PetscErrorCode HybAdopted(Mat C, Mat_SeqAIJHybridGPU *hyb, PetscObjectState nonzerostate, PetscObjectState state)
{
  PetscFunctionBegin;
  C->preallocated  = PETSC_TRUE;
  C->assembled     = PETSC_TRUE;
  C->was_assembled = PETSC_FALSE;
  C->num_ass++;
  C->nonzerostate = C->ass_nonzerostate = nonzerostate + 1;
  PetscCall(PetscMemzero(&C->info, sizeof(C->info)));
  PetscCall(PetscObjectStateSet((PetscObject)C, state + 1));
  HybStorageMoved(hyb);
  PetscCall(HybPatternKeyNow(C, &hyb->checkkey)); /* our own results are sorted */
#if defined(PETSC_HAVE_DEVICE)
  C->offloadmask = PETSC_OFFLOAD_CPU;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The base class adopts the arrays: a throw-away MATSEQAIJ is made round them by MatCreateSeqAIJWithArrays(), and its
  data is exchanged with C's. The arrays stay ours (C's private data frees them after the parent's destroy); everything
  else that AIJ keeps beside them is of the parent's own making, so every inherited operation is right. rows, which may
  be NULL, are what is known of their rows, and x the device that they come from: with these the throw-away matrix is
  made without the parent's loops (narrow.c).
*/
static PetscErrorCode HybAdopt(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr, const HybNarrowRows *rows, HybLives lives)
{
  Mat                  T;
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscObjectState     state;
  HybArena             old;
  PetscBool            narrow;

  PetscFunctionBegin;
  /* the table goes, and the operations that lie over C's */
  if (HybHashActive(C)) PetscCall(MatSeqAIJSetPreallocation(C, 0, NULL));
  PetscCall(HybEventBegin(HYB_OP_ADOPT, C));
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  HybHostOnlyEnd(C, hyb);
  PetscCall(PetscLayoutSetUp(C->rmap));
  PetscCall(PetscLayoutSetUp(C->cmap));
  PetscCall(HybNarrowCreate(x, csr, rows, &T));
  narrow = (PetscBool)(T != NULL);
  if (!T && x) PetscCall(x->backend->sync(x)); /* the parent reads the columns */
  if (!T) PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, csr->m, csr->n, csr->i, csr->j, (PetscScalar *)csr->a, &T));
  PetscCall(MatSetOption(T, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE)); /* as after a product of the parent's */
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  PetscCall(HybStorageDropMoved(C, hyb));
  PetscCall(MatSeqAIJHybridGPUExchangeData(C, T));
  /* from here on C owns them, whatever fails */
  old = hyb->arrays;
  HybArenaGive(arrays, &hyb->arrays);
  hyb->pass           = NULL;
  hyb->adopted        = csr->i;
  hyb->narrow         = narrow;
  hyb->stored         = PETSC_FALSE;
  hyb->aspreallocated = hyb->inodesleft = hyb->neverpreallocated = PETSC_FALSE;
  PetscCall(PetscFree(hyb->preallocated));
  hyb->adoptions++;
  PetscCall(HybStorageGo(hyb, lives));
  MatSeqAIJHybridGPUSetBornOps(C, PETSC_FALSE);
  /* whatever C held before goes with T, before the arrays under it */
  PetscCall(HybDataGone(C, hyb, &T));
  PetscCall(HybStorageRetire(hyb, &old));
  PetscCall(PetscObjectStateGet((PetscObject)C, &state));
  PetscCall(HybAdopted(C, hyb, C->nonzerostate, state));
  PetscCall(HybInodesLend(C, PETSC_TRUE));
  PetscCall(HybEventEnd(HYB_OP_ADOPT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of a small result in AIJ's own arrays. Afterwards C's data are those of a product of the parent's. */
static PetscErrorCode HybFillRows(Mat C, const HybCSR *csr)
{
  PetscInt    *length;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(csr->m, &length));
  for (PetscInt r = 0; r < csr->m; r++) length[r] = csr->i[r + 1] - csr->i[r];
  PetscCall((*(PetscErrorCode(*)(Mat, PetscInt, const PetscInt[]))HybGlueState.setpreallocation)(C, 0, length));
  PetscCall(PetscFree(length));
  PetscCall((*(PetscErrorCode(*)(Mat, PetscInt[]))HybGlueState.setcolumnindices)(C, csr->j));
  PetscCall(MatSeqAIJGetArray(C, &a));
  PetscCall(PetscArraycpy(a, (const PetscScalar *)csr->a, csr->nnz));
  PetscCall(MatSeqAIJRestoreArray(C, &a));
  PetscCall((*HybGlueState.seq.assemblyend)(C, MAT_FINAL_ASSEMBLY));
  PetscCall((*HybGlueState.seq.setoption)(C, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The matrix that HybAdopt() throws away costs as much as a small product does: entries of so few are copied instead.
  For a C that is new, of a result on the host. *taken: arrays is empty afterwards, and C is as after HybAdopt().
*/
static PetscErrorCode HybTakeSmall(Mat C, HybArena *arrays, const HybCSR *csr, PetscBool *taken)
{
  const PetscObjectState nonzerostate = C->nonzerostate;
  Mat_SeqAIJHybridGPU   *hyb          = NULL;
  PetscObjectState       state;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  *taken = (PetscBool)(HybGlueState.setcolumnindices && csr->nnz <= HYB_TAKEN_SMALL && csr->m <= HYB_TAKEN_SMALL && !C->preallocated && hyb->lives == HYB_LIVES_HOST && !hyb->arrays.blocks && !HybStorageServed());
  if (HybHashActive(C)) *taken = PETSC_FALSE;
  if (!*taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybEventBegin(HYB_OP_ADOPT, C));
  PetscCall(PetscObjectStateGet((PetscObject)C, &state));
  HybInside(C, HybFillRows(C, csr));
  hyb->neverpreallocated = PETSC_TRUE;
  hyb->adoptions++;
  PetscCall(HybAdopted(C, hyb, nonzerostate, state));
  PetscCall(HybEventEnd(HYB_OP_ADOPT, C));
  PetscCall(HybArenaReset(arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybAdoptDevice(Mat C, const HybExec *x, HybArena *work, HybArena *arrays, const HybCSR *csr)
{
  Mat_SeqAIJHybridGPU *hyb  = NULL;
  HybCSR               host = *csr;
  HybDeviceCopy        copy;
  HybMem               jmem, amem;
  PetscBool            shared;
  PetscOptions         noinode = NULL;
  HybNarrowRows        rows    = {NULL, NULL, NULL, 0, 0};
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(C, &hyb));
  /* PETSc rewrites row offsets on the host: each side has its own. The device may still be writing columns. */
  PetscCall(HybArenaAlloc(arrays, HYB_MEM_HOST, (PetscCount)csr->m + 1, sizeof(PetscInt), &host.i));
  PetscCall(x->backend->copy(x, host.i, csr->i, sizeof(PetscInt) * ((size_t)csr->m + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->csr->rowlengths(x, csr->m, host.i, NULL, &rows.longest, &rows.nonempty));
  if (HybNarrowTakes(csr->m)) {
    if (HybNarrowTakesDiagonal()) {
      PetscCall(HybArenaAlloc(work, HYB_WORK(x), csr->m, sizeof(PetscInt), &rows.diagonal));
      PetscCall(x->backend->csr->diagonalplaces(x, csr, rows.diagonal));
    }
    if (HybNarrowTakesList(csr->m, rows.nonempty)) {
      HybExec   device = *x;
      HybCSR    packed;
      PetscInt *map;

      device.result = HYB_WORK(x);
      PetscCall(x->backend->local->compressrows(&device, work, work, csr, &packed, &rows.list, &map));
      rows.begin = packed.i;
    }
  }
  PetscCall(HybArenaMemory(arrays, csr->j, &jmem));
  PetscCall(HybArenaMemory(arrays, csr->a, &amem));
  PetscCall(PetscMemzero(&copy, sizeof(copy)));
  copy.pattern = copy.values = PETSC_TRUE;
  copy.csr                   = *csr;
  shared                     = (PetscBool)(jmem == HYB_MEM_MANAGED && amem == HYB_MEM_MANAGED);
  if (!shared) {
    PetscCall(HybArenaAlloc(arrays, HYB_MEM_HOST, csr->nnz, sizeof(PetscInt), &host.j));
    PetscCall(HybArenaAlloc(arrays, HYB_MEM_HOST, csr->nnz, sizeof(HybScalar), &host.a));
    PetscCall(x->backend->copy(x, host.j, csr->j, sizeof(PetscInt) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(x->backend->copy(x, host.a, csr->a, sizeof(HybScalar) * (size_t)csr->nnz, HYB_COPY_DEVICE_TO_HOST));
  }
  PetscCall(HybLogToHost(sizeof(PetscInt) * ((PetscLogDouble)csr->m + 1) + (shared ? 0.0 : (PetscLogDouble)(sizeof(PetscInt) + sizeof(HybScalar)) * csr->nnz)));
  copy.nonemptyrows = rows.nonempty;
  copy.longest      = rows.longest;
  PetscCall(HybNoInodeBegin(&noinode));
  ierr = HybAdopt(C, x, arrays, &host, &rows, shared ? HYB_LIVES_SHARED : HYB_LIVES_MIRRORED);
  HybNoInodeEnd(&noinode);
  PetscCall(ierr);
  PetscCall(HybPatternKeyNow(C, &copy.key));
  /* MatDuplicate() and MatTranspose() count the state once more: pages that are shared need not be asked back for that.
     Should it have been the host that wrote, they come back by themselves */
  PetscCall(HybMarkSet(C, shared, &copy.mark));
  hyb->copy = copy;
  PetscCall(HybInodesLeave(C));
  MatSeqAIJHybridGPUSetBornOps(C, PETSC_TRUE);
  PetscCall(x->backend->sync(x)); /* the host may look at any time */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUAdoptDevice(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr)
{
  PetscErrorCode ierr;
  HybArena       work = HybArenaOn(x);

  PetscFunctionBegin;
  HybLargePagesBegin(csr->m);
  ierr = HybAdoptDevice(C, x, &work, arrays, csr);
  HybLargePagesEnd();
  HybCallBoth(ierr, HybArenaReset(&work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUAdopt(Mat C, const HybExec *x, PetscBool copies, HybArena *arrays, const HybCSR *csr)
{
  PetscBool taken = PETSC_FALSE;

  PetscFunctionBegin;
  if (HybExecOnDevice(x)) {
    PetscCall(MatSeqAIJHybridGPUAdoptDevice(C, x, arrays, csr));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (copies) PetscCall(HybTakeSmall(C, arrays, csr, &taken));
  if (!taken) PetscCall(HybAdopt(C, NULL, arrays, csr, NULL, HYB_LIVES_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  C, just born, takes A's place, as by PETSc's MatHeaderMerge(), which old releases hide: what AIJ does where a result
  of its own replaces a matrix. A keeps its name, prefix, operations, product and references, and from 3.21 on what is
  composed with it. All else is C's: claims of symmetry, null spaces, mappings, options, counts.
*/
PetscErrorCode HybHeaderMerge(Mat A, Mat *C)
{
  PetscObject    a = (PetscObject)A, c = (PetscObject)*C;
  struct _p_Mat  was     = *A;
  struct _MatOps found   = (*C)->ops[0];
  MatStencilInfo stencil = (*C)->stencil;
  PetscCount     adoptions;

  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  adoptions = hyb->adoptions;
#if HYB_REPLACE_TAKES_LISTS
  PetscCall(PetscFunctionListDuplicate(a->qlist, &c->qlist));
  PetscCall(PetscObjectListDuplicate(a->olist, &c->olist));
#endif
  /* MatHeaderReplace() exchanges all: what A keeps is exchanged before */
  a->name         = c->name;
  a->prefix       = c->prefix;
  a->type_name    = c->type_name;
  A->product      = (*C)->product;
  A->redundant    = (*C)->redundant;
  c->name         = was.hdr.name;
  c->prefix       = was.hdr.prefix;
  c->type_name    = was.hdr.type_name;
  (*C)->product   = was.product;
  (*C)->redundant = was.redundant;
  c->bops[0]      = a->bops[0];
  (*C)->ops[0]    = A->ops[0];
  HybInodeOpsTake((*C)->ops, &found); /* by the inodes of C's data */
  PetscCall(MatHeaderReplace(A, C));
  A->stencil = stencil;
  MatSeqAIJHybridGPUSetBornOps(A, PETSC_TRUE);
  hyb            = (Mat_SeqAIJHybridGPU *)A->spptr;
  hyb->owner     = A;
  hyb->adoptions = adoptions + 1; /* a product that made A sees that it is another one now */
  PetscCall(HybMarkSet(A, HybShared(hyb), &hyb->copy.mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What MatStoreValues() keeps beside the arrays of `from` goes to A, of the same pattern; the values of `from` are
   lost */
static PetscErrorCode HybMoveStoredValues(Mat from, Mat A, const Mat_SeqAIJHybridGPU *hyb)
{
  typedef PetscErrorCode (*Function)(Mat);
  const PetscInt *i, *j;
  PetscScalar    *old, *a, *now;
  PetscMemType    mtype;
  const HybAsked *asked = &hyb->asked[HYB_ASKED_NEW_NONZEROS];

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(from, &i, &j, &old, &mtype));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &mtype));
  PetscCall(PetscMalloc1(i[A->rmap->n], &now));
  PetscCall(PetscArraycpy(now, a, i[A->rmap->n]));
  /* the parent stores and retrieves only where no new nonzeros are allowed */
  PetscCall((*HybGlueState.seq.setoption)(from, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall((*(Function)HybGlueState.retrievevalues)(from));
  PetscCall(PetscArraycpy(a, old, i[A->rmap->n]));
  PetscCall((*HybGlueState.seq.setoption)(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall((*(Function)HybGlueState.storevalues)(A));
  PetscCall((*HybGlueState.seq.setoption)(A, asked->said ? asked->op : MAT_NEW_NONZERO_LOCATIONS, asked->said ? asked->flg : PETSC_TRUE));
  PetscCall(PetscArraycpy(a, now, i[A->rmap->n]));
  PetscCall(PetscFree(now));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D's data, which are all the parent's, become A's */
static PetscErrorCode HybTakeHostData(Mat A, Mat *D)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybArena             arrays;
  void                *data;

  PetscFunctionBegin;
  HybHostOnlyEnd(A, hyb);
  PetscCall(MatSeqAIJHybridGPUHostWrites(A)); /* what is queued reads the arrays that go */
  data       = A->data;
  A->data    = (*D)->data;
  (*D)->data = data;
  HybDoorOpen(A);
  PetscCall(HybDoorClose(*D));
  if (hyb->stored) {
    MatSeqAIJHybridGPULookAtOptions(A);
    PetscCall(HybMoveStoredValues(*D, A, hyb));
  }
  HybArenaGive(&hyb->arrays, &arrays);
  hyb->adopted = NULL;
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  PetscCall(HybStorageGo(hyb, HYB_LIVES_HOST));
  MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE);
  PetscCall(HybDataGone(A, hyb, D));
  PetscCall(HybStorageRetire(hyb, &arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The base class gets arrays of its own, after which nothing of a result is ours any more. Needed before new entries may
  come: from 3.22 on the parent then frees the old arrays as if it had allocated them, whoever owns them. State and
  pattern stand.
*/
PetscErrorCode MatSeqAIJHybridGPUDisown(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  Mat                  D;
  PetscBool            assembled;
  PetscErrorCode       ierr;
  const PetscInt      *i;

  PetscFunctionBegin;
  if (!hyb) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  if (!hyb->arrays.blocks) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  /* the base class has moved on by itself; somebody may still read ours */
  if (i != hyb->adopted) PetscFunctionReturn(PETSC_SUCCESS);
  assembled    = A->assembled;
  A->assembled = PETSC_TRUE; /* MatSetValues() has said otherwise already, the arrays are still whole */
  ierr         = HybInodesFind(A);
  if (!ierr) ierr = MatSeqAIJHybridGPUHostDuplicate(A, PETSC_TRUE, &D);
  A->assembled = assembled;
  PetscCall(ierr);
  if (HybUnusedIsError(A)) PetscCall((*HybGlueState.seq.setoption)(D, MAT_UNUSED_NONZERO_LOCATION_ERR, PETSC_TRUE));
  if (hyb->aspreallocated && !hyb->preallocated) { /* what it was preallocated with goes */
    PetscCall(PetscMalloc1(A->rmap->n, &hyb->preallocated));
    for (PetscInt r = 0; r < A->rmap->n; r++) hyb->preallocated[r] = i[r + 1] - i[r];
  }
  PetscCall(HybTakeHostData(A, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's data, preallocated with the lengths of rows that AIJ would have had for A, and A's entries */
static PetscErrorCode HybPreallocatedData(Mat A, const PetscInt length[], Mat D)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  const PetscInt      *i, *j;
  PetscScalar         *a;
  PetscMemType         mtype;

  PetscFunctionBegin;
  PetscCall(MatSetSizes(D, A->rmap->n, A->cmap->n, A->rmap->n, A->cmap->n));
  PetscCall(MatSetType(D, MATSEQAIJ));
  PetscCall(MatSeqAIJSetPreallocation(D, 0, length));
  PetscCall(MatSetOption(D, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &mtype));
  for (PetscInt r = 0; r < A->rmap->n; r++)
    if (i[r + 1] > i[r]) PetscCall(MatSetValues(D, 1, &r, i[r + 1] - i[r], j + i[r], a + i[r], INSERT_VALUES));
  /* the data become A's, and keep the number of the pattern whose rows of equal pattern they know; some releases count
     each new entry */
  D->nonzerostate = A->nonzerostate;
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  MatSeqAIJHybridGPULookAtOptions(A);
  for (int k = 0; k < HYB_ASKED_GROUPS; k++)
    if (hyb->asked[k].said) PetscCall((*HybGlueState.seq.setoption)(D, hyb->asked[k].op, hyb->asked[k].flg));
  if (HybUnusedIsError(A)) PetscCall((*HybGlueState.seq.setoption)(D, MAT_UNUSED_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent is about to go back to A's preallocation (MatResetPreallocation()): it finds what AIJ would have had */
PetscErrorCode MatSeqAIJHybridGPUAsPreallocated(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  const PetscInt      *i;
  PetscInt            *length = NULL;
  Mat                  D;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (!A->preallocated || !A->assembled || !(hyb->preallocated || (hyb->aspreallocated && hyb->arrays.blocks))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  if (hyb->preallocated) {
    length            = hyb->preallocated;
    hyb->preallocated = NULL;
  } else {
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    PetscCall(PetscMalloc1(A->rmap->n, &length));
    for (PetscInt r = 0; r < A->rmap->n; r++) length[r] = i[r + 1] - i[r];
  }
  PetscCall(MatCreate(PETSC_COMM_SELF, &D));
  ierr = HybPreallocatedData(A, length, D);
  PetscCall(PetscFree(length));
  if (ierr) (void)MatDestroy(&D);
  PetscCall(ierr);
  PetscCall(HybTakeHostData(A, &D));
  hyb->aspreallocated = PETSC_FALSE; /* AIJ's data say it */
  PetscFunctionReturn(PETSC_SUCCESS);
}
