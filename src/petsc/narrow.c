/*
  A MATSEQAIJ round arrays that exist, without PETSc's loops over its rows.

  MatCreateSeqAIJWithArrays() and the assembly in it go along all rows three times, with one core: in that time a device
  computes several such matrices. What they find is known before: the rows' lengths (imax, ilen), the longest one and
  how many rows have entries, which all cores find from the offsets (HybCSROps.rowlengths). So PETSc is told of one row,
  and what it would have found is put in:

    i[1] = nnz                            the arrays are those of one row, for this moment
    a watcher of the allocator             passes on to the one before; MatCreateSeqAIJWithArrays() asks for one row,
                                          and gets m times as much
    T = MatCreateSeqAIJWithArrays(1, n, i, j, a)
    no watcher, i[1] back; T's layout of rows = one of m
    imax, ilen = the lengths              by all cores, which so are the first to touch the pages, while the device may
                                          still be writing columns; of a matrix with a list, see below, from that: most
                                          of its pages stay untouched
    diag = the diagonal's places          from the device, in releases of PETSc whose assembly looks for them (3.18
                                          does, 3.26 does not): it reads j on the host, which waits until that is there
    rmax, nonzerorowcnt = longest, nonempty
    compressedrow = the rows that have entries, and where they begin, if 60 % of the rows or more are empty: the device
                                          lists them (HybLocalOps.compressrows). Blocks of parallel matrices that hold
                                          the columns of other processes are such

  Mat_SeqAIJ is private: these places in T->data are found and proven in the PETSc that runs, as those of frame.c are.
  Three small matrices are made both ways. In their data, compared integer by integer, must differ, at the same places
  in all three:

    two pointers, or three                to what the allocator gave, which holds the rows' lengths, and the diagonal's
                                          places, where all rows were told of
    rmax                                  one integer: the longest row, and nnz where one row was told of;
                                          MatSeqAIJGetMaxRowNonzeros() says it
    nonzerorowcnt                         one integer: the rows with entries, and 1 there

  and nothing else. So with these put in nothing differs that anybody could read. Two more have 60 % of empty rows, just
  as many as PETSc begins to list the others at, and more. There one place differs besides, that of the list
  (Mat_CompressedRow), whose array MatCheckCompressedRow() asked the allocator for.

  Where the proof fails the loops make all matrices; where that of the list fails, those of which more than half the
  rows are empty. They always make those of few rows, empty ones, and those of which more than half and less than 60 %
  of the rows are empty. The caller must have left out the search for inodes, which needs the rows (HybNoInodeBegin()).
  With PETSC_USE_DEBUG PETSc looks at the columns of each row, with thread safety the allocator is not ours to change.

  Work: none but copies of m integers, two or three of them, none or one where the rows are listed. Memory: none but
  what PETSc would take.
*/
#include "parent.h"
#if defined(__linux__)
  #include <sys/mman.h>
  #include <unistd.h>
#endif

#define HYB_NARROW_PROBES  5
#define HYB_NARROW_DENSE   3 /* of them: less than 60 % of their rows are empty */
#define HYB_NARROW_ROWS    12
#define HYB_NARROW_ENTRIES 16

/* The allocator, while a matrix is made: who asks for so many bytes gets more, and where these are is noted */
static PetscErrorCode HybNarrowMalloc(HybWatcher *w, size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  const char *const who = HybGlueState.narrow.room.n < 2 ? "MatCreateSeqAIJWithArrays" : "MatMarkDiagonal_SeqAIJ";
  /* or rounded up */
  const PetscBool      rows = (PetscBool)(HybGlueState.narrow.room.n < 3 && function && !strcmp(function, who) && bytes >= HybGlueState.narrow.room.asked && bytes < HybGlueState.narrow.room.asked + 64);
  const PetscErrorCode ierr = HybMallocBelow(w, rows ? bytes - HybGlueState.narrow.room.asked + HybGlueState.narrow.room.given : bytes, clear, line, function, file, array);

  if (!ierr && rows) HybGlueState.narrow.room.at[HybGlueState.narrow.room.n++] = *array;
  if (!ierr && rows && HybGlueState.narrow.room.asked == sizeof(PetscInt)) HybGlueState.narrow.more = bytes - HybGlueState.narrow.room.asked;
  if (!ierr && function && !strcmp(function, "MatCheckCompressedRow")) HybGlueState.narrow.room.list = *array;
  return ierr;
}

/* *T, NULL on an error, as if csr had one row, or as it is */
static PetscErrorCode HybNarrowMake(const HybCSR *csr, PetscBool one, Mat *T)
{
  const PetscInt second = csr->i[1], rows = one ? 1 : csr->m;
  PetscLayout    rmap = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *T                                      = NULL;
  HybGlueState.narrow.room.n              = 0;
  HybGlueState.narrow.room.list           = NULL;
  HybGlueState.narrow.room.asked          = (size_t)rows * sizeof(PetscInt);
  HybGlueState.narrow.room.given          = (size_t)csr->m * sizeof(PetscInt);
  HybGlueState.narrow.room.watcher.malloc = HybNarrowMalloc;
  HybWatchBegin(&HybGlueState.narrow.room.watcher);
  if (one) csr->i[1] = (PetscInt)csr->nnz;
  ierr      = MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, csr->n, csr->i, csr->j, (PetscScalar *)csr->a, T);
  csr->i[1] = second;
  HybWatchEnd();
  if (!ierr && one) ierr = PetscLayoutCreateFromSizes(PETSC_COMM_SELF, csr->m, csr->m, 1, &rmap);
  if (!ierr && one) ierr = PetscLayoutDestroy(&(*T)->rmap);
  if (!ierr && one) (*T)->rmap = rmap;
  if (ierr && *T) (void)MatDestroy(T);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt HybNarrowGet(Mat T, size_t at)
{
  PetscInt value;

  memcpy(&value, (const char *)T->data + at, sizeof(value));
  return value;
}

static void HybNarrowPut(Mat T, size_t at, PetscCount value)
{
  const PetscInt v = (PetscInt)value; /* counts of rows and of a row's entries */

  memcpy((char *)T->data + at, &v, sizeof(v));
}

int HybNarrowArrays(void)
{
  return HybGlueState.narrow.known ? HybGlueState.narrow.n : 0;
}

PetscInt *HybNarrowArray(Mat T, int k)
{
  void *array;

  memcpy(&array, (const char *)T->data + HybGlueState.narrow.array[k], sizeof(array));
  return (PetscInt *)array;
}

/* where T's data name this array, in one place alone; all of their bytes if there is none */
static size_t HybNarrowFindPointer(Mat T, size_t bytes, const void *array)
{
  size_t found = bytes;

  for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
    if (memcmp((const char *)T->data + at, &array, sizeof(void *))) continue;
    if (found < bytes) return bytes;
    found = at;
  }
  return found;
}

/* Is this what PETSc says of csr's rows? */
static PetscErrorCode HybNarrowExpected(const HybCSR *csr, int k, const PetscInt *array, PetscBool *same)
{
  PetscInt        expected[HYB_NARROW_ROWS], other[HYB_NARROW_ROWS];
  PetscInt *const both[2] = {expected, other};
  PetscCount      longest, nonempty;

  PetscFunctionBegin;
  if (k < 2)
    PetscCall(HybBackendHost.csr->rowlengths(NULL, csr->m, csr->i, both, &longest, &nonempty));
  else
    PetscCall(HybBackendHost.csr->diagonalplaces(NULL, csr, expected));
  *same = (PetscBool)!memcmp(expected, array, sizeof(PetscInt) * (size_t)csr->m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does PETSc list the rows that have entries? */
static PetscBool HybNarrowIsListed(PetscInt m, PetscCount nonempty)
{
  const PetscReal ratio = 0.6;

  return (PetscBool) !((PetscInt)(m - nonempty) < ratio * m);
}

static Mat_CompressedRow HybNarrowList(Mat T, size_t at)
{
  Mat_CompressedRow list;

  memcpy(&list, (const char *)T->data + at, sizeof(list));
  return list;
}

/* Where O has the list of csr's rows that have entries, in an array that it got from the allocator, and T none; all of
   their bytes if that is nowhere */
static size_t HybNarrowFindList(Mat O, const void *array, Mat T, const HybCSR *csr, PetscCount nonempty)
{
  const size_t      bytes = HybFrameBytes(), found = array ? HybNarrowFindPointer(O, bytes, array) : bytes, at = found - offsetof(Mat_CompressedRow, i);
  PetscInt          k = 0;
  Mat_CompressedRow o, t;

  if (found == bytes || found < offsetof(Mat_CompressedRow, i) || at + sizeof(o) > bytes) return bytes;
  o = HybNarrowList(O, at);
  t = HybNarrowList(T, at);
  if (!o.use || o.nrows != nonempty || t.use || t.nrows || t.i || t.rindex) return bytes;
  /* both in that array */
  if (o.rindex < o.i + nonempty + 1 || (char *)o.rindex >= (char *)(o.i + nonempty + 1) + 64) return bytes;
  for (PetscInt r = 0; r < csr->m; r++) {
    if (csr->i[r + 1] == csr->i[r]) continue;
    if (o.i[k] != csr->i[r] || o.rindex[k] != r) return bytes;
    k++;
  }
  return o.i[k] == csr->nnz ? at : bytes;
}

/* O knows of all rows and got the arrays given[], T of one and got those in `room': do they differ in the places sought
   alone, which are those found before if any were? */
static PetscBool HybNarrowCompare(Mat O, void *const given[], const void *listed, Mat T, const HybCSR *csr, PetscCount longest, PetscCount nonempty)
{
  const size_t bytes = HybFrameBytes(), list = HybNarrowIsListed(csr->m, nonempty) ? HybNarrowFindList(O, listed, T, csr, nonempty) : bytes;
  size_t       pointer[3], most = bytes, count = bytes;

  if ((list == bytes) == HybNarrowIsListed(csr->m, nonempty) || (!listed) != (list == bytes)) return PETSC_FALSE;

  for (int k = 0; k < HybGlueState.narrow.room.n; k++) {
    pointer[k] = HybNarrowFindPointer(T, bytes, HybGlueState.narrow.room.at[k]);
    if (pointer[k] == bytes || HybNarrowFindPointer(O, bytes, given[k]) != pointer[k]) return PETSC_FALSE;
  }
  for (size_t at = 0; at + sizeof(PetscInt) <= bytes; at += sizeof(PetscInt)) {
    const PetscInt o = HybNarrowGet(O, at), t = HybNarrowGet(T, at);
    PetscBool      ofpointer = PETSC_FALSE;

    for (int k = 0; k < HybGlueState.narrow.room.n; k++) ofpointer = (PetscBool)(ofpointer || at - at % sizeof(void *) == pointer[k]);
    if (o == t || ofpointer || (list <= at && at < list + sizeof(Mat_CompressedRow))) continue;
    if (most == bytes && o == longest && t == csr->nnz)
      most = at;
    else if (count == bytes && o == nonempty && t == 1)
      count = at;
    else
      return PETSC_FALSE;
  }
  if (most == bytes || count == bytes) return PETSC_FALSE;
  if (list < bytes) {
    if (HybGlueState.narrow.list && HybGlueState.narrow.list != list) return PETSC_FALSE;
    HybGlueState.narrow.list = list;
  }
  if (HybGlueState.narrow.found) return (PetscBool)(HybGlueState.narrow.room.n == HybGlueState.narrow.n && !memcmp(pointer, HybGlueState.narrow.array, (size_t)HybGlueState.narrow.room.n * sizeof(*pointer)) && most == HybGlueState.narrow.longest && count == HybGlueState.narrow.nonempty);
  HybGlueState.narrow.found = PETSC_TRUE;
  HybGlueState.narrow.n     = HybGlueState.narrow.room.n;
  memcpy(HybGlueState.narrow.array, pointer, (size_t)HybGlueState.narrow.room.n * sizeof(*pointer));
  HybGlueState.narrow.longest  = most;
  HybGlueState.narrow.nonempty = count;
  return PETSC_TRUE;
}

/* T lists the rows that have entries: room for them, and their number */
static PetscErrorCode HybNarrowListMake(Mat T, PetscCount nonempty)
{
  Mat_CompressedRow list = {PETSC_TRUE, (PetscInt)nonempty, NULL, NULL};

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(nonempty + 1, &list.i, nonempty, &list.rindex));
  memcpy((char *)T->data + HybGlueState.narrow.list, &list, sizeof(list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One matrix both ways */
static PetscErrorCode HybNarrowProbe(const HybCSR *csr, Mat *O, Mat *T, PetscBool *proven)
{
  void      *given[3], *listed;
  PetscCount longest, nonempty;
  PetscInt   before, after;
  PetscBool  equal, same = PETSC_TRUE;
  int        all;

  PetscFunctionBegin;
  *proven = PETSC_FALSE;
  PetscCall(HybBackendHost.csr->rowlengths(NULL, csr->m, csr->i, NULL, &longest, &nonempty));
  PetscCall(HybNarrowMake(csr, PETSC_FALSE, O));
  all    = HybGlueState.narrow.room.n;
  listed = HybGlueState.narrow.room.list;
  memcpy(given, HybGlueState.narrow.room.at, sizeof(given));
  if (all < 2) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < all && same; k++) PetscCall(HybNarrowExpected(csr, k, (const PetscInt *)given[k], &same));
  if (!same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybNarrowMake(csr, PETSC_TRUE, T));
  if (HybGlueState.narrow.room.n != all || HybGlueState.narrow.room.list || !HybNarrowCompare(*O, given, listed, *T, csr, longest, nonempty)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetMaxRowNonzeros(*T, &before));
  for (int k = 0; k < all; k++) memcpy(HybNarrowArray(*T, k), given[k], sizeof(PetscInt) * (size_t)csr->m);
  HybNarrowPut(*T, HybGlueState.narrow.longest, longest);
  HybNarrowPut(*T, HybGlueState.narrow.nonempty, nonempty);
  if (HybNarrowIsListed(csr->m, nonempty)) {
    const Mat_CompressedRow from = HybNarrowList(*O, HybGlueState.narrow.list);
    Mat_CompressedRow       to;

    PetscCall(HybNarrowListMake(*T, nonempty));
    to = HybNarrowList(*T, HybGlueState.narrow.list);
    memcpy(to.i, from.i, sizeof(PetscInt) * ((size_t)nonempty + 1));
    memcpy(to.rindex, from.rindex, sizeof(PetscInt) * (size_t)nonempty);
  }
  PetscCall(MatSeqAIJGetMaxRowNonzeros(*T, &after));
  PetscCall(MatEqual(*O, *T, &equal));
  *proven = (PetscBool)(equal && before == csr->nnz && after == longest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the longest row, the rows with entries, nnz, and 1 are four numbers in each of them; the diagonal is in the first
   place, in the second, and missing. Of the last two 3 of 5 and 9 of 12 rows are empty. listed: what was sought in
   these was proven too. */
static PetscErrorCode HybNarrowProve(PetscBool *proven, PetscBool *listed)
{
  static const PetscInt rows[HYB_NARROW_PROBES]                     = {6, 8, 3, 5, 12};
  static const PetscInt lengths[HYB_NARROW_PROBES][HYB_NARROW_ROWS] = {
    {2, 0, 5, 1, 3, 0, 0, 0, 0, 0, 0, 0},
    {0, 3, 0, 0, 6, 2, 0, 2, 0, 0, 0, 0},
    {1, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {0, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0},
    {0, 0, 1, 0, 0, 0, 5, 0, 0, 2, 0, 0}
  };
  PetscInt  i[HYB_NARROW_ROWS + 1] = {0}, j[HYB_NARROW_ENTRIES];
  HybScalar a[HYB_NARROW_ENTRIES];

  PetscFunctionBegin;
  *proven = *listed = PETSC_TRUE;
  for (int p = 0; p < HYB_NARROW_PROBES && *proven && *listed; p++) {
    PetscBool *const which = p < HYB_NARROW_DENSE ? proven : listed;
    HybCSR           csr   = {rows[p], 16, 0, i, j, a};
    Mat              O = NULL, T = NULL;

    PetscErrorCode ierr;

    for (PetscInt r = 0; r < csr.m; r++) {
      for (PetscInt k = 0; k < lengths[p][r]; k++, csr.nnz++) {
        j[csr.nnz] = PetscMax(r - 1, 0) + k;
        a[csr.nnz] = (PetscReal)(csr.nnz + 1);
      }
      i[r + 1] = (PetscInt)csr.nnz;
    }
    ierr = HybNarrowProbe(&csr, &O, &T, which);
    if (T) (void)MatDestroy(&T);
    if (O) (void)MatDestroy(&O);
    if (ierr) *which = PETSC_FALSE;
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybNoInodeBegin(PetscOptions *noinode)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(noinode));
  PetscCall(PetscOptionsSetValue(*noinode, "-mat_no_inode", NULL));
  PetscCall(PetscOptionsPush(*noinode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybNoInodeEnd(PetscOptions *noinode)
{
  (void)PetscOptionsPop();
  (void)PetscOptionsDestroy(noinode);
}

/* Called after HybFrameFind(), which knows how long a matrix's data are. What was found is told in A's name: in the
   class of matrices. */
PetscErrorCode HybNarrowFind(Mat A)
{
  PetscOptions   noinode = NULL;
  PetscBool      proven = PETSC_FALSE, listed = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (HybGlueState.narrow.asked) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.narrow.asked = PETSC_TRUE;
  if (!HybFrameKnown() || PetscDefined(USE_DEBUG) || !HybMayWatch()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybNoInodeBegin(&noinode));
  ierr = PetscPushErrorHandler(PetscReturnErrorHandler, NULL); /* an error: the loops */
  if (!ierr) {
    (void)HybNarrowProve(&proven, &listed);
    HybGlueState.narrow.known     = proven;
    HybGlueState.narrow.listknown = (PetscBool)(proven && listed);
    ierr                          = PetscPopErrorHandler();
  }
  HybNoInodeEnd(&noinode);
  PetscCall(ierr);
  PetscCall(PetscInfo(A, HybGlueState.narrow.known ? "A MATSEQAIJ can be made without loops over its rows\n" : "How a MATSEQAIJ could be made without loops over its rows is not known in this PETSc\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is what is known of so many rows wanted? */
PetscBool HybNarrowTakes(PetscInt m)
{
  return (PetscBool)(HybGlueState.narrow.known && m >= 2 && m >= HybGlueState.options.narrowmin);
}

/* The rows that have entries, so many, too? */
PetscBool HybNarrowTakesList(PetscInt m, PetscCount nonempty)
{
  return (PetscBool)(HybGlueState.narrow.listknown && HybNarrowTakes(m) && nonempty && HybNarrowIsListed(m, nonempty));
}

/* Of the diagonal too? */
PetscBool HybNarrowTakesDiagonal(void)
{
  return (PetscBool)(HybGlueState.narrow.n > 2);
}

/* Zeros. Private pages that are given back to the kernel come again as such when somebody touches them, and the first
   word shows whether these are private. Whole pages alone: the kernel would round up, into what is another's. */
static void HybNarrowZero(char *begin, size_t bytes)
{
  char *const end = begin + bytes;
#if defined(__linux__) && defined(MADV_DONTNEED)
  const long      size = sysconf(_SC_PAGESIZE);
  const uintptr_t page = size > 0 ? (uintptr_t)size : 1;
  char *const first = (char *)(((uintptr_t)begin + page - 1) / page * page), *const last = (char *)((uintptr_t)end / page * page);

  if (size > 0 && bytes >= 16 * page) {
    *(volatile char *)first = 1;
    if (!madvise(first, (size_t)(last - first), MADV_DONTNEED) && !*(volatile char *)first) {
      memset(begin, 0, (size_t)(first - begin));
      memset(last, 0, (size_t)(end - last));
      return;
    }
  }
#endif
  memset(begin, 0, (size_t)(end - begin));
}

/* The rows that have entries, and what the others' lengths are too: zeros, whose pages nobody need touch */
static PetscErrorCode HybNarrowFillListed(Mat T, const HybExec *x, const HybNarrowRows *rows)
{
  const size_t      n = (size_t)rows->nonempty;
  Mat_CompressedRow list;

  PetscFunctionBegin;
  PetscCall(HybNarrowListMake(T, rows->nonempty));
  list = HybNarrowList(T, HybGlueState.narrow.list);
  PetscCall(x->backend->copy(x, list.i, rows->begin, sizeof(PetscInt) * (n + 1), HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->copy(x, list.rindex, rows->list, sizeof(PetscInt) * n, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybLogToHost((PetscLogDouble)sizeof(PetscInt) * (2 * (PetscLogDouble)rows->nonempty + 1)));
  PetscCall(x->backend->sync(x));
  for (int k = 0; k < 2; k++) {
    PetscInt *const length = HybNarrowArray(T, k);

    HybNarrowZero((char *)length, sizeof(PetscInt) * (size_t)T->rmap->n);
    for (size_t r = 0; r < n; r++) length[list.rindex[r]] = list.i[r + 1] - list.i[r];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybNarrowFill(Mat T, const HybExec *x, const HybCSR *csr, const HybNarrowRows *rows)
{
  const size_t bytes = sizeof(PetscInt) * (size_t)csr->m;

  PetscFunctionBegin;
  if (rows->list)
    PetscCall(HybNarrowFillListed(T, x, rows));
  else {
    PetscInt *const length[2] = {HybNarrowArray(T, 0), HybNarrowArray(T, 1)};
    PetscCount      longest, nonempty;

    PetscCall(x->backend->csr->rowlengths(x, csr->m, csr->i, length, &longest, &nonempty));
  }
  if (HybGlueState.narrow.n > 2) {
    PetscCall(x->backend->copy(x, HybNarrowArray(T, 2), rows->diagonal, bytes, HYB_COPY_DEVICE_TO_HOST));
    PetscCall(HybLogToHost((PetscLogDouble)bytes));
  }
  HybNarrowPut(T, HybGlueState.narrow.longest, rows->longest);
  HybNarrowPut(T, HybGlueState.narrow.nonempty, rows->nonempty);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybNarrowCreate(const HybExec *x, const HybCSR *csr, const HybNarrowRows *rows, Mat *T)
{
  const size_t   touched = HybGlueState.watch.touched;
  PetscBool      as      = PETSC_TRUE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *T = NULL;
  if (!rows || !HybNarrowTakes(csr->m) || !csr->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  if (rows->nonempty < csr->m - rows->nonempty && !rows->list) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(HybGlueState.event.narrow, 0, 0, 0, 0));
  if (HybNarrowTakesDiagonal()) PetscCall(x->backend->sync(x)); /* PETSc looks for one in j */
  if (rows->list) HybGlueState.watch.touched = 0;               /* hostcopy.c: nor before they are filled */
  ierr                       = HybNarrowMake(csr, PETSC_TRUE, T);
  HybGlueState.watch.touched = touched;
  PetscCall(ierr);
  /* whoever allocated otherwise this time: places for one row are not written beyond */
  for (int k = 0; k < HybGlueState.narrow.n; k++) as = (PetscBool)(as && HybGlueState.narrow.room.n == HybGlueState.narrow.n && HybNarrowArray(*T, k) == HybGlueState.narrow.room.at[k]);
  if (!as)
    PetscCall(MatDestroy(T));
  else {
    ierr = HybNarrowFill(*T, x, csr, rows);
    if (ierr) (void)MatDestroy(T);
    PetscCall(ierr);
  }
  PetscCall(PetscLogEventEnd(HybGlueState.event.narrow, 0, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
