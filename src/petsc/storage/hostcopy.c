/*
  Duplicates on the host of large matrices.

  The parent's duplicate reads and writes with one core, and its new pages come one by one, at each one's first touch: a
  gigabyte and a half a second. Here it makes everything but the entries, and those are copied by all cores of this
  process, or from the device through pinned buffers without moving the original's pages; whoever copies touches the new
  pages first. They are asked for as large ones where the kernel makes such on demand.

  The parent takes the number of entries to copy from the last row offset, after it has allocated:

    a watcher of the allocator                passes on to the one before, and notes what is given out
    the parent's duplicate:
      allocates imax, ilen, i, j, a           Watch: as many bytes as these need have been given out? then the last row
                                              offset = 0
      copies imax, ilen, i, and 0 entries
    no watcher, and both last offsets back
    are the duplicate's arrays among what was noted, and large enough?
      yes: copy j and a                       no (another release of PETSc): destroy, and the parent's as it is

  Blocks of as many bytes as the rows need (their lengths, their offsets) are written by the parent, with one core:
  whoever makes these gets them with their pages, which all cores have touched, where the device library has threads for
  that (an eighth of the time).

  Nothing of the parent's is assumed: what it has
  made is PETSc's own, and it is looked at before it is used.

  Why not arrays of our own, round which a matrix is made as in narrow.c: a duplicate owns its arrays, and PETSc frees
  them when new entries come (3.22 and later whoever owns them) or when a plain MATAIJ goes, which has no place for an
  arena. And the parent's duplicate has no loops over rows, it copies what they found.

  A duplicate whose allocations never came by (PETSc's linear solver server has memory of its own) was copied whole by
  the parent.
*/
#include "../../mat/impls/aijhybridgpu/storage/where.h"

/* nonzeros from which on it is worth the trouble */
#define HYB_HOST_COPY_MIN ((PetscCount)1 << 14)
/* bytes of a block from which on it is touched by several threads */
#define HYB_HOST_TOUCH_MIN ((size_t)8 << 20)
#define HYB_HEAP_MOST      (((size_t)32 << 20) - ((size_t)64 << 10)) /* of a block that glibc may take from its heap */
/* for the large pages at both ends, and what is allocated besides */
#define HYB_HEAP_SPARE ((size_t)4 << 20)

static PetscErrorCode HybWatchMalloc(HybWatcher *w, size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  const PetscBool large = (PetscBool)(bytes >= HYB_HOST_TOUCH_MIN);
  PetscErrorCode  ierr  = PETSC_SUCCESS;

  *array = clear ? NULL : HybRowBlocksTake(bytes);
  if (!*array) {
    PetscBool any = PETSC_FALSE;

    if (HybGlueState.rowblocks.n && large) { /* what is kept is no reason to fail */
      ierr = HYB_QUIETLY(HybMallocBelow(w, bytes, PETSC_FALSE, line, function, file, array));
      if (ierr) PetscCall(HybRowBlocksDrop(&any));
    }
    if (any || !*array) ierr = HybMallocBelow(w, bytes, large ? PETSC_FALSE : clear, line, function, file, array);
    if (ierr || !*array) return ierr;
    if (large) {
      HybAskLargePages(*array, bytes);
      if (bytes <= HybGlueState.watch.touched && HybGlueState.device) {
        const HybExec x = {HybGlueState.device, NULL, HYB_MEM_HOST};

        (void)HybGlueState.device->touch(&x, *array, bytes);
      }
      if (clear) memset(*array, 0, bytes);
    }
  }
  if (bytes >= HybGlueState.watch.least && HybGlueState.watch.n < HYB_WATCHED) {
    HybGlueState.watch.block[HybGlueState.watch.n].at      = (char *)*array;
    HybGlueState.watch.block[HybGlueState.watch.n++].bytes = bytes;
  }
  HybGlueState.watch.seen += bytes;
  if (HybGlueState.watch.last && HybGlueState.watch.seen >= HybGlueState.watch.wanted) {
    *HybGlueState.watch.last = 0;
    HybGlueState.watch.last  = NULL;
  }
  return PETSC_SUCCESS;
}

/* glibc takes blocks above a threshold from the system and gives them back at once, and cuts its heap where twice as
   much lies free at the end: a matrix that goes takes its pages with it, and the next one's are fresh. It raises the
   threshold to the largest block that was ever given back, up to 32 MiB. One that nobody touches does. Programs with
   small matrices keep the threshold that they had. */
static void HybKeepPages(PetscInt rows)
{
#if defined(__GLIBC__)
  void *volatile block;

  if (HybGlueState.watch.keeps || (size_t)rows * sizeof(PetscInt) < ((size_t)128 << 10)) return;
  HybGlueState.watch.keeps = PETSC_TRUE;
  block                    = malloc(HYB_HEAP_MOST);
  free(block);
#endif
}

/* The heap grows block by block, so one of less than some large pages gets small ones. Here it grows for a matrix's
   row offsets and lengths at once: what is free at its end stays there, by HybKeepPages(), and is what PETSc gets. */
static void HybHeapAhead(PetscInt rows)
{
#if defined(__GLIBC__)
  const size_t bytes = 3 * sizeof(PetscInt) * ((size_t)rows + 1) + HYB_HEAP_SPARE;
  void *volatile block;

  if (!HybGlueState.watch.keeps || bytes < 2 * HYB_HEAP_SPARE || bytes > HYB_HEAP_MOST) return;
  block = malloc(bytes);
  if (block) HybAskLargePages(block, bytes);
  free(block);
#endif
}

void HybLargePagesBegin(PetscInt rows)
{
  HybKeepPages(rows);
  if (!HybMayWatch() || HybGlueState.watch.depth++) return;
  HybHeapAhead(rows);
  /* some releases allocate two of a row's numbers as one block; with debugging there is a head */
  HybGlueState.watch.touched        = 2 * sizeof(PetscInt) * ((size_t)rows + 1) + 1024;
  HybGlueState.watch.least          = PTRDIFF_MAX;
  HybGlueState.watch.watcher.malloc = HybWatchMalloc;
  HybWatchBegin(&HybGlueState.watch.watcher);
}

void HybLargePagesEnd(void)
{
  if (!HybMayWatch() || --HybGlueState.watch.depth) return;
  HybWatchEnd();
}

static PetscBool HybWatchGave(const void *array, size_t bytes)
{
  for (int k = 0; k < HybGlueState.watch.n; k++)
    if ((const char *)array >= HybGlueState.watch.block[k].at && (const char *)array + bytes <= HybGlueState.watch.block[k].at + HybGlueState.watch.block[k].bytes) return PETSC_TRUE;
  return PETSC_FALSE;
}

/* *cut: j and a of *B, and its last offset, are still to be written */
static PetscErrorCode HybDuplicateCut(Mat A, PetscInt *i, Mat *B, PetscBool *cut)
{
  const PetscInt  m = A->rmap->n, nnz = i[m];
  const PetscInt *bi, *bj;
  PetscScalar    *ba;
  PetscMemType    mtype;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  HybLargePagesBegin(m);
  HybGlueState.watch.wanted = (size_t)nnz * (sizeof(PetscScalar) + sizeof(PetscInt)) + (3 * (size_t)m + 1) * sizeof(PetscInt);
  HybGlueState.watch.seen   = 0;
  HybGlueState.watch.n      = 0;
  HybGlueState.watch.least  = PetscMin(4096, ((size_t)m + 1) * sizeof(PetscInt));
  HybGlueState.watch.last   = i + m;
  ierr                      = (*HybGlueState.seq.duplicate)(A, MAT_COPY_VALUES, B);
  HybLargePagesEnd();
  *cut                     = (PetscBool)!HybGlueState.watch.last;
  HybGlueState.watch.last  = NULL;
  HybGlueState.watch.least = PTRDIFF_MAX;
  i[m]                     = nnz;
  PetscCall(ierr);
  if (!*cut) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(*B, &bi, &bj, &ba, &mtype));
  if (HybWatchGave(bi, sizeof(PetscInt) * ((size_t)m + 1)) && HybWatchGave(bj, sizeof(PetscInt) * (size_t)nnz) && HybWatchGave(ba, sizeof(PetscScalar) * (size_t)nnz))
    ((PetscInt *)bi)[m] = nnz;
  else {
    PetscCall(MatDestroy(B));
    *cut = PETSC_FALSE;
    PetscCall((*HybGlueState.seq.duplicate)(A, MAT_COPY_VALUES, B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* who copies for a matrix that is large and may be handled so; else x->backend is NULL */
static PetscErrorCode HybHostCopyExec(Mat A, const PetscInt *i, const PetscScalar *a, HybExec *x)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscBool            plain;

  PetscFunctionBegin;
  x->backend = NULL;
  if (!HybMayWatch() || !i || !a || i[A->rmap->n] < HYB_HOST_COPY_MIN) PetscFunctionReturn(PETSC_SUCCESS);
  if (A->structure_only || A->factortype != MAT_FACTOR_NONE || !A->assembled || !A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  if (HybHashActive(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  /* the program's offsets are not ours to write; by -mat_seqaij_type a matrix may have such, unseen */
  PetscCall(PetscStrcmp(((PetscObject)A)->type_name, MATSEQAIJ, &plain));
  if (hyb->lentarrays || (plain && i != hyb->adopted)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueGetExec(A, &hyb->choices, HybBorn(hyb) ? HYB_ANY_SIZE : i[A->rmap->n], x));
  if (!HybExecOnDevice(x)) x->backend = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybHostDuplicate(Mat A, PetscBool values, Mat *B)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybExec              x;
  PetscBool            cut = PETSC_FALSE;
  const PetscInt      *i, *j, *bi, *bj;
  PetscScalar         *a, *ba;
  PetscMemType         mtype;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, &mtype));
  PetscCall(HybHostCopyExec(A, i, a, &x));
  if (!x.backend) {
    PetscCall(MatSeqAIJHybridGPUMove(A, values, PETSC_FALSE));
    PetscCall((*HybGlueState.seq.duplicate)(A, values ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, B));
    PetscCall(MatSeqAIJHybridGPUMove(A, values, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  PetscCall(HybDuplicateCut(A, (PetscInt *)i, B, &cut));
  if (cut) {
    const PetscCount nnz     = i[A->rmap->n];
    const PetscBool  jshared = (PetscBool)(hyb->copy.pattern && hyb->lives == HYB_LIVES_SHARED && hyb->copy.csr.j == j);
    const PetscBool  ashared = (PetscBool)(hyb->copy.pattern && HybShared(hyb) && (PetscScalar *)hyb->copy.csr.a == a);

    PetscCall(MatSeqAIJGetCSRAndMemType(*B, &bi, &bj, &ba, &mtype));
    PetscCall(HybEventBegin(HYB_OP_HOSTDUPLICATE, A));
    ierr = x.backend->copy(&x, (void *)bj, j, sizeof(PetscInt) * (size_t)nnz, jshared ? HYB_COPY_DEVICE_TO_HOST : HYB_COPY_HOST_TO_HOST);
    if (!ierr && values) ierr = x.backend->copy(&x, ba, a, sizeof(PetscScalar) * (size_t)nnz, ashared ? HYB_COPY_DEVICE_TO_HOST : HYB_COPY_HOST_TO_HOST);
    if (ierr) (void)MatDestroy(B); /* its entries are nothing yet */
    PetscCall(ierr);
    PetscCall(HybLogToHost(((jshared ? sizeof(PetscInt) : 0) + (ashared && values ? sizeof(PetscScalar) : 0)) * (PetscLogDouble)nnz));
    PetscCall(HybEventEnd(HYB_OP_HOSTDUPLICATE, A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSeqAIJHybridGPUHostDuplicate(Mat A, PetscBool values, Mat *B)
{
  Mat_SeqAIJHybridGPU *a = NULL;

  PetscFunctionBegin;
  PetscCall(HybHostDuplicate(A, values, B));
  if (!MatIsSeqAIJHybridGPU(A) || !MatIsSeqAIJHybridGPU(*B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &a));
  if (a->inodesleft) PetscCall(HybInodesLeave(*B)); /* the parent copies what it knows of them, which is nothing yet */
  PetscFunctionReturn(PETSC_SUCCESS);
}
