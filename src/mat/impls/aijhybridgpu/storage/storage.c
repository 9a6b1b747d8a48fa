/*
  Where a sequential matrix lives, and who goes where.

    HOST       arrays of the host's: AIJ's own, or those of a product on the host, which AIJ uses as its own.
    COPIED     the same; the device has a copy of the pattern and of values, sent again when they have moved.
    LOCKED     COPIED, but AIJ's pointer to the values names page-locked memory of ours; its own array is put aside.
    PROMOTED   COPIED, but AIJ's pointer to the values names managed memory, which the device uses as well; its own
               array is put aside.
    SHARED     born on the device (a product, coordinates, a duplicate): AIJ was made round column indices and values in
               managed memory.
    MIRRORED   born on the device, where there is no managed memory for it: arrays there, and others on the host, which
               AIJ was made round; whoever writes on the device copies to the host at once.

  The host's values are right in every state, whenever nothing is queued. Row offsets are on both sides always (PETSc
  rewrites its own).

    from                 to          when                                                          by
    HOST                 COPIED      the device reads it                                           copy.c
    COPIED               HOST        the pattern has changed                                       copy.c
    COPIED               LOCKED      new values were sent n times                                  locked.c
    COPIED               PROMOTED    the device has written it twice, no host write between        promoted.c
    LOCKED, PROMOTED     COPIED      the parent may free or replace the array, or (PROMOTED) the   storage.c: Demote
                                     host writes entries
    any                  SHARED,     a result of the device takes the matrix's place               adopt.c
                         MIRRORED
    any                  HOST        a result of the host does                                     adopt.c
    SHARED, MIRRORED     HOST        the parent needs arrays of its own, or has moved on           adopt.c, copy.c

  Nothing moves while somebody holds the values (readers, writers, rows): then LOCKED and PROMOTED are not entered, and
  an array that must be left is kept until it is given back (HybStorageRetire()).

  Verbs, for all other glue:

    read                   HybViewOpen() and HybViewSend(), or both as MatSeqAIJHybridGPUGetDeviceCSR(), then
                           MatSeqAIJHybridGPUReadEnd() where the work is only queued
    write, begin and end   MatSeqAIJHybridGPUWriteBegin(), then MatSeqAIJHybridGPUDeviceWritten() or
                           MatSeqAIJHybridGPUWriteEnd()
    leave to the parent    MatSeqAIJHybridGPUHostWrites() before it writes values where they are,
                           MatSeqAIJHybridGPUDemote() before it may free or replace the array of values,
                           MatSeqAIJHybridGPUDisown() before it may free or replace any array
*/
#include "storage.h"
#include "where.h"

/* names as docs/architecture.md has them, and what MatView() with ascii_info_detail says beside */
static const struct {
  const char *name, *text;
} states[HYB_LIVES] = {
  [HYB_LIVES_HOST]     = {.name = "host",     .text = "host"                                                             },
  [HYB_LIVES_COPIED]   = {.name = "copied",   .text = "host, with a copy on the device"                                  },
  [HYB_LIVES_LOCKED]   = {.name = "locked",   .text = "host, its values in page-locked memory, with a copy on the device"},
  [HYB_LIVES_PROMOTED] = {.name = "promoted", .text = "device and the host in one storage, moved there"                  },
  [HYB_LIVES_SHARED]   = {.name = "shared",   .text = "device and the host in one storage"                               },
  [HYB_LIVES_MIRRORED] = {.name = "mirrored", .text = "device, mirrored on the host"                                     },
};
/* where a matrix may live next */
#define TO(state) (1u << (HYB_LIVES_##state))
#define ADOPTED   (TO(HOST) | TO(SHARED) | TO(MIRRORED)) /* from everywhere: a result takes its place */
static const unsigned next[HYB_LIVES] = {
  [HYB_LIVES_HOST]     = ADOPTED | TO(COPIED),
  [HYB_LIVES_COPIED]   = ADOPTED | TO(COPIED) | TO(LOCKED) | TO(PROMOTED),
  [HYB_LIVES_LOCKED]   = ADOPTED | TO(COPIED),
  [HYB_LIVES_PROMOTED] = ADOPTED | TO(COPIED),
  [HYB_LIVES_SHARED]   = ADOPTED,
  [HYB_LIVES_MIRRORED] = ADOPTED,
};
#undef TO
#undef ADOPTED

PetscErrorCode HybStorageGo(Mat_SeqAIJHybridGPU *hyb, HybLives to)
{
  PetscFunctionBegin;
  PetscCheck(next[hyb->lives] & (1u << to), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix on the %s cannot be on the %s next", states[hyb->lives].text, states[to].text);
  hyb->lives = to;
  hyb->entered[to]++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's values are from here on those at to, in hyb->moved; its own stay for when they come back */
PetscErrorCode HybStorageMoveValues(Mat A, Mat_SeqAIJHybridGPU *hyb, HybLives lives, PetscCount nnz, HybScalar *to)
{
  PetscFunctionBegin;
  PetscCall(HybStorageGo(hyb, lives));
  hyb->former   = HybFrameValues(A);
  hyb->movednnz = nnz;
  hyb->movedto  = (PetscScalar *)to;
  hyb->pass     = NULL;
  HybFrameSetValues(A, hyb->movedto);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const char *HybStorageName(const Mat_SeqAIJHybridGPU *hyb)
{
  return states[hyb->lives].name;
}

/* which states it has been in, and how often it came there */
PetscErrorCode HybStorageView(const Mat_SeqAIJHybridGPU *hyb, PetscViewer viewer)
{
  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU: state %s: the matrix is on the %s\n", states[hyb->lives].name, states[hyb->lives].text));
  for (int k = 0; k < HYB_LIVES; k++)
    if (hyb->entered[k] && (k != (int)hyb->lives || hyb->entered[k] > 1)) PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU: it came to the %s %" PetscInt64_FMT " times\n", states[k].text, (PetscInt64)hyb->entered[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSetParentType(Mat A, MatType parent)
{
  const PetscObjectState nonzerostate = A->nonzerostate;
  PetscObjectState       state;
  HybComposeOrdered      outer;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(HybComposeOrderBegin((PetscObject)A, (PetscBool)!strcmp(parent, MATSEQAIJ), &outer));
  ierr = MatSetType(A, parent);
  HybComposeOrderEnd((PetscObject)A, &outer);
  PetscCall(ierr);
  PetscCall(PetscObjectStateSet((PetscObject)A, state));
  A->nonzerostate = nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJ's options as they stand in A's data, whoever has set them; where the frame does not show them, what came by
   MatSetOption() remains */
void MatSeqAIJHybridGPULookAtOptions(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb   = (Mat_SeqAIJHybridGPU *)A->spptr;
  PetscBool            known = PETSC_TRUE;

  for (int k = 0; k < HYB_ASKED_GROUPS && known; k++) {
    HybAsked asked = {PETSC_TRUE, MAT_OPTION_MAX, PETSC_FALSE};

    known = HybFrameOption(A, (HybAskedGroup)k, &asked.op, &asked.flg);
    if (known) hyb->asked[k] = asked;
  }
  if (known) hyb->optionsknown = PETSC_TRUE;
}

void HybStorageExpect(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  if (hyb->expected || !HybWhereMayBe(A, &hyb->choices)) return;
  hyb->expected = PETSC_TRUE;
  if (!HybBorn(hyb)) MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE);
}

/*
  The private data of A. They are made at their first use, and again where the data of a plain matrix was merged into A.
  Where MatHeaderReplace() or MatHeaderMerge() gave A another header's data, the object's state is A's, so that nothing
  follows from the marks: the values are taken for new.
*/
PetscErrorCode HybStorageMake(Mat A, Mat_SeqAIJHybridGPU **data)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;

  PetscFunctionBegin;
  if (!hyb) {
    PetscCall(HybGivenDrop());
    if (HybGlueState.spare) {
      hyb                = (Mat_SeqAIJHybridGPU *)HybGlueState.spare;
      HybGlueState.spare = NULL;
      PetscCall(PetscMemzero(hyb, sizeof(*hyb)));
    } else
      PetscCall(PetscNew(&hyb));
    A->spptr    = hyb;
    hyb->owner  = A;
    hyb->made   = ++HybGlueState.made;
    hyb->arrays = HybArenaOn(&HybExecHost);
    hyb->moved  = HybArenaOn(&HybExecHost);
    PetscCall(HybGlueReadChoices(&hyb->choices));
    MatSeqAIJHybridGPULookAtOptions(A);
    HybStorageExpect(A, hyb);
    PetscCall(HybHostOnlyBegin(A, hyb));
  } else if (hyb->owner != A) {
    hyb->owner    = A;
    hyb->hostonly = PETSC_TRUE; /* or it was another header's table */
    HybHostOnlyEnd(A, hyb);
    HybStorageMoved(hyb);
  }
  *data = hyb;
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct _HybRetired {
  HybArena   arena;
  HybRetired next;
};

/* does somebody hold its values? */
PetscBool HybStorageHeld(const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(hyb->readers || hyb->writers || hyb->rows);
}

/* does somebody hold any of its arrays? */
PetscBool HybStorageLent(const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(HybStorageHeld(hyb) || hyb->patterns);
}

/* Arrays that A no longer uses are freed, or kept while somebody holds them. *arena is empty afterwards, whatever
   fails. */
PetscErrorCode HybStorageRetire(Mat_SeqAIJHybridGPU *hyb, HybArena *arena)
{
  HybRetired kept;

  PetscFunctionBegin;
  if (HybStorageLent(hyb) && arena->blocks && !PetscNew(&kept)) {
    HybArenaGive(arena, &kept->arena);
    kept->next   = hyb->retired;
    hyb->retired = kept;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaReset(arena));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What was kept for who held it, once nobody does; and at the end */
PetscErrorCode HybStorageFreeRetired(Mat_SeqAIJHybridGPU *hyb)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  while (hyb->retired) {
    HybRetired kept = hyb->retired;

    hyb->retired = kept->next;
    ierr         = HybErrorFirst(ierr, HybArenaReset(&kept->arena));
    PetscCall(PetscFree(kept));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybRetiredDestroy(void *retired)
{
  Mat_SeqAIJHybridGPU hyb;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&hyb, sizeof(hyb)));
  hyb.retired = (HybRetired)retired;
  PetscCall(HybStorageFreeRetired(&hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A becomes one of the parent's, which counts no holders: what somebody holds of it now stays for as long as A does */
PetscErrorCode HybStorageLeaveRetired(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  HybRetired kept = hyb->retired, last = NULL;

  PetscFunctionBegin;
  if (!kept || !HybStorageLent(hyb)) {
    PetscCall(HybStorageFreeRetired(hyb));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  hyb->retired = NULL;
  PetscCall(HybContainerGet((PetscObject)A, "HybRetired", &last)); /* of an earlier time */
  if (last) {
    while (last->next) last = last->next;
    last->next = kept;
  } else
    PetscCall(HybContainerCompose((PetscObject)A, "HybRetired", kept, HybRetiredDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybStorageGivenBack(Mat_SeqAIJHybridGPU *hyb)
{
  PetscFunctionBegin;
  if (hyb->retired && !HybStorageLent(hyb)) PetscCall(HybStorageFreeRetired(hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is queued, and may read the values of now, ends: once until the device reads again */
PetscErrorCode HybStorageQuiet(Mat_SeqAIJHybridGPU *hyb)
{
  HybExec *x = hyb->lives == HYB_LIVES_PROMOTED ? &hyb->moved.exec : &hyb->arrays.exec;

  PetscFunctionBegin;
  if (!HybShared(hyb) || hyb->quiet) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybExecRefresh(x));
  PetscCall(x->backend->sync(x));
  hyb->quiet = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host is about to write values where they are */
PetscErrorCode MatSeqAIJHybridGPUHostWrites(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  HybStorageMoved(hyb);
  PetscCall(HybStorageQuiet(hyb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent has changed column indices where they are (MatSeqAIJSetColumnIndices()) */
PetscErrorCode MatSeqAIJHybridGPUPatternMoved(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->generation++;
  HybStorageMoved(hyb);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees what was made for the device, goes on after an error and reports the first one: what a failing call of the
   device leaves is that call's memory alone */
PetscErrorCode MatSeqAIJHybridGPUDestroyDevice(Mat_SeqAIJHybridGPU *hyb)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybMultPlanDestroy(&hyb->device);
  if (hyb->transpose.ready) {
    ierr                 = HybErrorFirst(ierr, HybMultPlanDestroy(&hyb->transpose.mult));
    ierr                 = HybErrorFirst(ierr, HybArenaReset(&hyb->transpose.arena));
    hyb->transpose.ready = PETSC_FALSE;
  }
  ierr = HybErrorFirst(ierr, HybDerivedDestroy(&hyb->derived));
  if (hyb->copy.pattern && hyb->lives != HYB_LIVES_SHARED && hyb->lives != HYB_LIVES_MIRRORED)
    ierr = HybErrorFirst(ierr, HybArenaReset(&hyb->copy.arena));
  PetscCall(PetscMemzero(&hyb->copy, sizeof(hyb->copy)));
  if (hyb->lives == HYB_LIVES_COPIED) hyb->lives = HYB_LIVES_HOST;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJ's own array of values takes the place of ours again, with the values of now. Needed before the parent may free or
  replace that array, which it would do with ours as well. The object's states and the pattern stand, and so does the
  device's copy of the pattern.
*/
PetscErrorCode MatSeqAIJHybridGPUDemote(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybExec             *x;
  PetscBool            promoted;
  size_t               bytes;

  PetscFunctionBegin;
  if (!MatIsSeqAIJHybridGPU(A) || !hyb || !hyb->movedto) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (HybFrameValues(A) != hyb->movedto) { /* the parent has arrays of its own already */
    PetscCall(HybStorageDropMoved(A, hyb));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  promoted = (PetscBool)(hyb->lives == HYB_LIVES_PROMOTED);
  bytes    = sizeof(PetscScalar) * (size_t)hyb->movednnz;
  x        = &hyb->moved.exec;
  PetscCall(HybExecRefresh(x));
  if (bytes) PetscCall(x->backend->copy(x, hyb->former, hyb->movedto, bytes, promoted ? HYB_COPY_DEVICE_TO_HOST : HYB_COPY_HOST_TO_HOST));
  if (promoted) {
    PetscCall(x->backend->sync(x));
    PetscCall(HybLogToHost((PetscLogDouble)bytes));
    hyb->copy.csr.a  = NULL; /* the copy's values were these */
    hyb->copy.values = PETSC_FALSE;
    hyb->writes      = 0;
    hyb->returned    = PETSC_TRUE;
  } else
    hyb->locknever = PETSC_TRUE;
  HybFrameSetValues(A, hyb->former); /* not before the values are there */
  hyb->movedto = NULL;
  PetscCall(HybStorageGo(hyb, HYB_LIVES_COPIED));
  if (!hyb->copy.pattern) hyb->lives = HYB_LIVES_HOST;
  MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE);
  PetscCall(HybStorageRetire(hyb, &hyb->moved));
  PetscCall(PetscInfo(A, promoted ? "Written on the host again: the values return to the array of before\n" : "The values leave page-locked memory\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For who replaces or destroys all that A has: AIJ's array is AIJ's again, and what it holds does not matter */
PetscErrorCode HybStorageDropMoved(Mat A, Mat_SeqAIJHybridGPU *hyb)
{
  PetscFunctionBegin;
  if (!hyb->movedto) PetscFunctionReturn(PETSC_SUCCESS);
  if (HybFrameValues(A) == hyb->movedto) HybFrameSetValues(A, hyb->former);
  if (hyb->lives == HYB_LIVES_PROMOTED) { /* the copy's values were these */
    hyb->copy.csr.a  = NULL;
    hyb->copy.values = PETSC_FALSE;
  }
  hyb->movedto = NULL;
  hyb->lives   = hyb->copy.pattern ? HYB_LIVES_COPIED : HYB_LIVES_HOST;
  PetscCall(HybStorageRetire(hyb, &hyb->moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the parent has replaced is of no more use to anybody but who holds it */
PetscErrorCode HybStorageSettle(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  const PetscInt      *i;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->neverpreallocated = PETSC_FALSE;
  if (!hyb->arrays.blocks || !A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  if (i == hyb->adopted) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  if (hyb->lives != HYB_LIVES_HOST) PetscCall(HybStorageGo(hyb, HYB_LIVES_HOST));
  MatSeqAIJHybridGPUSetBornOps(A, PETSC_FALSE);
  hyb->adopted = NULL;
  PetscCall(HybStorageRetire(hyb, &hyb->arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUMove(Mat A, PetscBool values, PetscBool todevice)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybExec             *x;

  PetscFunctionBegin;
  if (!hyb || !HybShared(hyb)) PetscFunctionReturn(PETSC_SUCCESS);
  x = hyb->lives == HYB_LIVES_PROMOTED ? &hyb->moved.exec : &hyb->arrays.exec;
  PetscCall(HybExecRefresh(x));
  if (hyb->lives == HYB_LIVES_SHARED) PetscCall(x->backend->prefetch(x, hyb->copy.csr.j, sizeof(PetscInt) * (size_t)hyb->copy.csr.nnz, todevice));
  if (values) PetscCall(x->backend->prefetch(x, hyb->copy.csr.a, sizeof(HybScalar) * (size_t)hyb->copy.csr.nnz, todevice));
  if (!todevice) PetscCall(x->backend->sync(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMatOrderedForget(HybMatOrdered *o)
{
  const PetscErrorCode ierr = o->planned ? HybSpMVDestroy(&o->plan) : PETSC_SUCCESS;

  PetscFunctionBegin;
  o->asked = o->planned = o->filled = PETSC_FALSE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybMultPlanDestroy(HybMultPlan *p)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (p->ordered) ierr = HybMatOrderedForget(p->ordered);
  PetscCall(PetscFree(p->ordered));
  p->by = NULL;
  if (p->ready) {
    p->ready = PETSC_FALSE;
    ierr     = HybErrorFirst(ierr, HybSpMVDestroy(&p->plan));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDerivedDestroy(HybDerived *d)
{
  PetscFunctionBegin;
  d->perm = NULL;
  for (int k = 0; k < 2; k++) {
    d->is[k].kept = PETSC_FALSE;
    PetscCall(PetscFree(d->is[k].indices));
  }
  if (d->ready) {
    d->ready = PETSC_FALSE;
    PetscCall(HybArenaReset(&d->arena));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc takes its fast way between two matrices where both have the same function: only what lives on a device has ones
   of its own, and what a device has a copy of, or may get one, that which copies: into a matrix that lives there. A
   result's entries are added to without MatSetValues(), which would look twice for each one. */
void MatSeqAIJHybridGPUSetBornOps(Mat A, PetscBool born)
{
  const Mat_SeqAIJHybridGPU *hyb = MatIsSeqAIJHybridGPU(A) ? (const Mat_SeqAIJHybridGPU *)A->spptr : NULL;

  A->ops->copy = born || (hyb && (hyb->copy.pattern || hyb->expected)) ? HybGlueState.born.copy : HybGlueState.seq.copy;
  A->ops->axpy = born || (hyb && hyb->arrays.blocks) ? HybGlueState.born.axpy : HybGlueState.seq.axpy;
}
