/*
  A MATSEQAIJ round arrays that exist, without PETSc's loops over its rows.

  MatCreateSeqAIJWithArrays() and the assembly in it go along all rows three times, with one core: some 5 ns a row,
  40 ms for eight million, in which a device computes several such matrices. What they find is known before: the rows'
  lengths (imax, ilen), the longest one and how many rows have entries, which the device counts in one kernel
  (HybCSROps.rowlengths). So PETSc is told of one row, and what it would have found is put in:

    i[1] = nnz                            the arrays are those of one row, for this moment
    PetscTrMalloc = HybNarrowMalloc       passes on to the one before; MatCreateSeqAIJWithArrays() asks for one row,
                                          and gets m times as much
    T = MatCreateSeqAIJWithArrays(1, n, i, j, a)
    PetscTrMalloc, i[1] back; T's layout of rows = one of m
    imax, ilen = the lengths              from the device; all cores copy, and so are the first to touch the pages
    diag = the diagonal's places          the same, in releases of PETSc whose assembly looks for them (3.18 does, 3.26
                                          does not): it reads j on the host
    rmax, nonzerorowcnt = longest, nonempty

  Mat_SeqAIJ is private: these places in T->data are found and proven in the PETSc that runs, as those of frame.c are.
  Three small matrices are made both ways. In their data, compared integer by integer, must differ, at the same places
  in all three:

    two pointers, or three                to what the allocator gave, which holds the rows' lengths, and the diagonal's
                                          places, where all rows were told of
    rmax                                  one integer: the longest row, and nnz where one row was told of;
                                          MatSeqAIJGetMaxRowNonzeros() says it
    nonzerorowcnt                         one integer: the rows with entries, and 1 there

  and nothing else. So with these put in nothing differs that anybody could read.

  Where the proof fails the loops make all matrices. They always make those of few rows, and those of which more than
  half the rows are empty: PETSc leaves empty rows out from 60 % on (compressed rows), and half is what one of the three
  has. The caller must have left out the search for inodes, which needs the rows (HybNoInodeBegin()). With
  PETSC_USE_DEBUG PETSc looks at the columns of each row, with thread safety the allocator is not ours to change.

  Work: none but two or three copies of m integers. Memory: none but what PETSc would take.
*/
#include "parent.h"

#define HYB_NARROW_PROBES  3
#define HYB_NARROW_ROWS    8
#define HYB_NARROW_ENTRIES 16

/* The allocator, while a matrix is made: who asks for so many bytes gets more, and where these are is noted */
static PetscErrorCode HybNarrowMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  const char *const who = HybGlueState.narrow.room.n < 2 ? "MatCreateSeqAIJWithArrays" : "MatMarkDiagonal_SeqAIJ";
  /* or rounded up */
  const PetscBool      rows = (PetscBool)(HybGlueState.narrow.room.n < 3 && function && !strcmp(function, who) && bytes >= HybGlueState.narrow.room.asked && bytes < HybGlueState.narrow.room.asked + 64);
  const PetscErrorCode ierr = (*HybGlueState.narrow.room.before)(rows ? bytes - HybGlueState.narrow.room.asked + HybGlueState.narrow.room.given : bytes, clear, line, function, file, array);

  if (!ierr && rows) HybGlueState.narrow.room.at[HybGlueState.narrow.room.n++] = *array;
  return ierr;
}

/* *T, NULL on an error, as if csr had one row, or as it is */
static PetscErrorCode HybNarrowMake(const HybCSR *csr, PetscBool one, Mat *T)
{
  const PetscInt second = csr->i[1], rows = one ? 1 : csr->m;
  PetscLayout    rmap = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *T                              = NULL;
  HybGlueState.narrow.room.n      = 0;
  HybGlueState.narrow.room.asked  = (size_t)rows * sizeof(PetscInt);
  HybGlueState.narrow.room.given  = (size_t)csr->m * sizeof(PetscInt);
  HybGlueState.narrow.room.before = PetscTrMalloc;
  PetscTrMalloc                   = HybNarrowMalloc;
  if (one) csr->i[1] = (PetscInt)csr->nnz;
  ierr          = MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, rows, csr->n, csr->i, csr->j, (PetscScalar *)csr->a, T);
  csr->i[1]     = second;
  PetscTrMalloc = HybGlueState.narrow.room.before;
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

static PetscInt *HybNarrowArray(Mat T, int k)
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
  PetscInt   expected[HYB_NARROW_ROWS];
  PetscCount longest, nonempty;

  PetscFunctionBegin;
  if (k < 2)
    PetscCall(HybBackendHost.csr->rowlengths(NULL, NULL, csr, expected, &longest, &nonempty));
  else
    PetscCall(HybBackendHost.csr->diagonalplaces(NULL, csr, expected));
  *same = (PetscBool)!memcmp(expected, array, sizeof(PetscInt) * (size_t)csr->m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* O knows of all rows and got the arrays given[], T of one and got those in `room': do they differ in the places sought
   alone, which are those found before if any were? */
static PetscBool HybNarrowCompare(Mat O, void *const given[], Mat T, const HybCSR *csr, PetscCount longest, PetscCount nonempty)
{
  const size_t bytes = HybFrameBytes();
  size_t       pointer[3], most = bytes, count = bytes;

  for (int k = 0; k < HybGlueState.narrow.room.n; k++) {
    pointer[k] = HybNarrowFindPointer(T, bytes, HybGlueState.narrow.room.at[k]);
    if (pointer[k] == bytes || HybNarrowFindPointer(O, bytes, given[k]) != pointer[k]) return PETSC_FALSE;
  }
  for (size_t at = 0; at + sizeof(PetscInt) <= bytes; at += sizeof(PetscInt)) {
    const PetscInt o = HybNarrowGet(O, at), t = HybNarrowGet(T, at);
    PetscBool      ofpointer = PETSC_FALSE;

    for (int k = 0; k < HybGlueState.narrow.room.n; k++) ofpointer = (PetscBool)(ofpointer || at - at % sizeof(void *) == pointer[k]);
    if (o == t || ofpointer) continue;
    if (most == bytes && o == longest && t == csr->nnz)
      most = at;
    else if (count == bytes && o == nonempty && t == 1)
      count = at;
    else
      return PETSC_FALSE;
  }
  if (most == bytes || count == bytes) return PETSC_FALSE;
  if (HybGlueState.narrow.found) return (PetscBool)(HybGlueState.narrow.room.n == HybGlueState.narrow.n && !memcmp(pointer, HybGlueState.narrow.array, (size_t)HybGlueState.narrow.room.n * sizeof(*pointer)) && most == HybGlueState.narrow.longest && count == HybGlueState.narrow.nonempty);
  HybGlueState.narrow.found = PETSC_TRUE;
  HybGlueState.narrow.n     = HybGlueState.narrow.room.n;
  memcpy(HybGlueState.narrow.array, pointer, (size_t)HybGlueState.narrow.room.n * sizeof(*pointer));
  HybGlueState.narrow.longest  = most;
  HybGlueState.narrow.nonempty = count;
  return PETSC_TRUE;
}

/* One matrix both ways */
static PetscErrorCode HybNarrowProbe(const HybCSR *csr, Mat *O, Mat *T, PetscBool *proven)
{
  void      *given[3];
  PetscCount longest, nonempty;
  PetscInt   before, after;
  PetscBool  equal, same = PETSC_TRUE;
  int        all;

  PetscFunctionBegin;
  *proven = PETSC_FALSE;
  PetscCall(HybBackendHost.csr->rowlengths(NULL, NULL, csr, NULL, &longest, &nonempty));
  PetscCall(HybNarrowMake(csr, PETSC_FALSE, O));
  all = HybGlueState.narrow.room.n;
  memcpy(given, HybGlueState.narrow.room.at, sizeof(given));
  if (all < 2) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < all && same; k++) PetscCall(HybNarrowExpected(csr, k, (const PetscInt *)given[k], &same));
  if (!same) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybNarrowMake(csr, PETSC_TRUE, T));
  if (HybGlueState.narrow.room.n != all || !HybNarrowCompare(*O, given, *T, csr, longest, nonempty)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetMaxRowNonzeros(*T, &before));
  for (int k = 0; k < all; k++) memcpy(HybNarrowArray(*T, k), given[k], sizeof(PetscInt) * (size_t)csr->m);
  HybNarrowPut(*T, HybGlueState.narrow.longest, longest);
  HybNarrowPut(*T, HybGlueState.narrow.nonempty, nonempty);
  PetscCall(MatSeqAIJGetMaxRowNonzeros(*T, &after));
  PetscCall(MatEqual(*O, *T, &equal));
  *proven = (PetscBool)(equal && before == csr->nnz && after == longest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the longest row, the rows with entries, nnz, and 1 are four numbers in each of them; the diagonal is in the first
   place, in the second, and missing */
static PetscErrorCode HybNarrowProve(PetscBool *proven)
{
  static const PetscInt rows[HYB_NARROW_PROBES]                     = {6, 8, 3};
  static const PetscInt lengths[HYB_NARROW_PROBES][HYB_NARROW_ROWS] = {
    {2,  0, 5, 1, 3, 0},
    {0, 3, 0,  0, 6, 2, 0, 2},
    {1, 4, 2}
  };
  PetscInt  i[HYB_NARROW_ROWS + 1] = {0}, j[HYB_NARROW_ENTRIES];
  HybScalar a[HYB_NARROW_ENTRIES];

  PetscFunctionBegin;
  *proven = PETSC_TRUE;
  for (int p = 0; p < HYB_NARROW_PROBES && *proven; p++) {
    HybCSR csr = {rows[p], 16, 0, i, j, a};
    Mat    O = NULL, T = NULL;

    PetscErrorCode ierr;

    for (PetscInt r = 0; r < csr.m; r++) {
      for (PetscInt k = 0; k < lengths[p][r]; k++, csr.nnz++) {
        j[csr.nnz] = PetscMax(r - 1, 0) + k;
        a[csr.nnz] = (PetscReal)(csr.nnz + 1);
      }
      i[r + 1] = (PetscInt)csr.nnz;
    }
    ierr = HybNarrowProbe(&csr, &O, &T, proven);
    if (T) (void)MatDestroy(&T);
    if (O) (void)MatDestroy(&O);
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called after HybFrameFind(), which knows how long a matrix's data are. What was found is told in A's name: in the
   class of matrices. */
PetscErrorCode HybNarrowFind(Mat A)
{
  PetscOptions   noinode = NULL;
  PetscBool      proven  = PETSC_FALSE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (HybGlueState.narrow.asked) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.narrow.asked = PETSC_TRUE;
  if (!HybFrameKnown() || PetscDefined(USE_DEBUG) || PetscDefined(HAVE_THREADSAFETY)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybNoInodeBegin(&noinode));
  ierr = PetscPushErrorHandler(PetscReturnErrorHandler, NULL); /* an error: the loops */
  if (!ierr) {
    HybGlueState.narrow.known = (PetscBool)(!HybNarrowProve(&proven) && proven);
    ierr                      = PetscPopErrorHandler();
  }
  HybNoInodeEnd(&noinode);
  PetscCall(ierr);
  PetscCall(PetscInfo(A, HybGlueState.narrow.known ? "A MATSEQAIJ can be made without loops over its rows\n" : "How a MATSEQAIJ could be made without loops over its rows is not known in this PETSc\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the lengths of so many rows wanted from the device? */
PetscBool HybNarrowTakes(PetscInt m)
{
  return (PetscBool)(HybGlueState.narrow.known && m >= 2 && m >= HybGlueState.options.narrowmin);
}

/* Of the diagonal too? */
PetscBool HybNarrowTakesDiagonal(void)
{
  return (PetscBool)(HybGlueState.narrow.n > 2);
}

static PetscErrorCode HybNarrowFill(Mat T, const HybExec *x, const HybCSR *csr, const HybRowLengths *rows)
{
  const size_t bytes = sizeof(PetscInt) * (size_t)csr->m;

  PetscFunctionBegin;
  PetscCall(x->backend->copy(x, HybNarrowArray(T, 0), rows->length, bytes, HYB_COPY_DEVICE_TO_HOST));
  if (HybGlueState.narrow.n > 2) PetscCall(x->backend->copy(x, HybNarrowArray(T, 2), rows->diagonal, bytes, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(x->backend->sync(x));
  PetscCall(x->backend->copy(x, HybNarrowArray(T, 1), HybNarrowArray(T, 0), bytes, HYB_COPY_HOST_TO_HOST));
  PetscCall(HybLogToHost((PetscLogDouble)bytes * (HybGlueState.narrow.n - 1)));
  HybNarrowPut(T, HybGlueState.narrow.longest, rows->longest);
  HybNarrowPut(T, HybGlueState.narrow.nonempty, rows->nonempty);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybNarrowCreate(const HybExec *x, const HybCSR *csr, const HybRowLengths *rows, Mat *T)
{
  PetscBool      as = PETSC_TRUE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *T = NULL;
  if (!rows || !rows->length || !HybNarrowTakes(csr->m) || !csr->nnz || rows->nonempty < csr->m - rows->nonempty) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(HybGlueState.event.narrow, 0, 0, 0, 0));
  PetscCall(HybNarrowMake(csr, PETSC_TRUE, T));
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
