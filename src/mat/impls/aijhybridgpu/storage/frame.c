/*
  Where PETSc keeps what this type must reach in a MATSEQAIJ: three pointers and a table of functions. Mat_SeqAIJ is
  private and no installed header shows it, so its places are found in the PETSc that runs, and proven, before they are
  used.

  Wanted, in A->data:

    i, j, a   the pointers to the row offsets, column indices and values
    door      Mat_SeqAIJOps: seven functions that MatSeqAIJGetArray() and its relatives call where they are not NULL (door.c)

  How they are found:

    make a 2 x 2 matrix round three arrays of our own; the allocator tells how long its data is
    i, j, a   the one word each that equals the array's address
    door      for each seven words in a row that are NULL: put a function of ours into the first one and call MatSeqAIJGetArray();
              take it out again. One place alone calls ours.

  How they are proven: with another array in the place of a, MatSeqAIJGetArrayRead(), MatGetRow() and
  MatSeqAIJGetCSRAndMemType() give that one; each of the first six functions of the table, put there alone, is called by
  its own public function and by no other.

  Where any of this fails HybFrameKnown() is false: values then stay where AIJ put them, and host writes are noticed by
  the object's state alone.
*/
#include "parent.h"

#define HYB_DOOR_WORDS 7

/* The allocator, watched while the matrix is made: its data's length is what was given out at that address */
#define HYB_FRAME_WATCHED 1024 /* PETSc composes some thirty functions on a new matrix, with a few blocks each */
struct _HybGiven {
  HybMallocFn before;
  int         n;
  struct {
    void  *at;
    size_t bytes;
  } block[HYB_FRAME_WATCHED];
};

static PetscErrorCode HybFrameMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  const PetscErrorCode ierr = (*HybGlueState.frame.given->before)(bytes, clear, line, function, file, array);

  if (!ierr && *array) {
    HybGlueState.frame.given->block[HybGlueState.frame.given->n % HYB_FRAME_WATCHED].at      = *array;
    HybGlueState.frame.given->block[HybGlueState.frame.given->n++ % HYB_FRAME_WATCHED].bytes = bytes;
  }
  return ierr;
}

/* Each notes which function of the table was called last; for the search and the proof */
#define HYB_PROBE(name, number, type)             \
  static PetscErrorCode name(Mat A, type **array) \
  {                                               \
    (void)A;                                      \
    *array                    = NULL;             \
    HybGlueState.frame.called = number;           \
    return PETSC_SUCCESS;                         \
  }
HYB_PROBE(HybProbe0, 0, PetscScalar)
HYB_PROBE(HybProbe1, 1, PetscScalar)
HYB_PROBE(HybProbe2, 2, const PetscScalar)
HYB_PROBE(HybProbe3, 3, const PetscScalar)
HYB_PROBE(HybProbe4, 4, PetscScalar)
HYB_PROBE(HybProbe5, 5, PetscScalar)
static void (*const probes[])(void) = {(void (*)(void))HybProbe0, (void (*)(void))HybProbe1, (void (*)(void))HybProbe2, (void (*)(void))HybProbe3, (void (*)(void))HybProbe4, (void (*)(void))HybProbe5};
#define HYB_PROBES ((int)(sizeof(probes) / sizeof(probes[0])))

static PetscErrorCode HybFrameCall(Mat T, int number)
{
  PetscScalar       *w = NULL;
  const PetscScalar *r = NULL;

  PetscFunctionBegin;
  HybGlueState.frame.called = -1;
  switch (number) {
  case 0:
    PetscCall(MatSeqAIJGetArray(T, &w));
    break;
  case 1:
    PetscCall(MatSeqAIJRestoreArray(T, &w));
    break;
  case 2:
    PetscCall(MatSeqAIJGetArrayRead(T, &r));
    break;
  case 3:
    PetscCall(MatSeqAIJRestoreArrayRead(T, &r));
    break;
  case 4:
    PetscCall(MatSeqAIJGetArrayWrite(T, &w));
    break;
  default:
    PetscCall(MatSeqAIJRestoreArrayWrite(T, &w));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *at = the one word of the n that equals value, n if there is none or more than one */
static void HybFrameWord(void *const *words, size_t n, const void *value, size_t *at)
{
  *at = n;
  for (size_t k = 0; k < n; k++) {
    if (words[k] != value) continue;
    if (*at < n) {
      *at = n;
      return;
    }
    *at = k;
  }
}

static PetscErrorCode HybFrameFindDoor(Mat T, void **words, size_t n, size_t *at)
{
  PetscFunctionBegin;
  *at = n;
  for (size_t k = 0; k + HYB_DOOR_WORDS <= n; k++) {
    PetscBool      null = PETSC_TRUE;
    PetscErrorCode ierr;

    for (size_t w = 0; w < HYB_DOOR_WORDS; w++) null = (PetscBool)(null && !words[k + w]);
    if (!null) continue;
    memcpy(&words[k], &probes[0], sizeof(void *));
    ierr     = HybFrameCall(T, 0);
    words[k] = NULL;
    PetscCall(ierr);
    if (HybGlueState.frame.called != 0) continue;
    if (*at < n) { /* a second place: neither is trusted */
      *at = n;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    *at = k;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameProveDoor(Mat T, void **words, size_t door, PetscBool *proven)
{
  PetscFunctionBegin;
  *proven = PETSC_TRUE;
  for (int k = 0; k < HYB_PROBES && *proven; k++) {
    memcpy(&words[door + (size_t)k], &probes[k], sizeof(void *));
    for (int q = 0; q < HYB_PROBES && *proven; q++) {
      const PetscErrorCode ierr = HybFrameCall(T, q);

      if (ierr) words[door + (size_t)k] = NULL;
      PetscCall(ierr);
      *proven = (PetscBool)(HybGlueState.frame.called == (q == k ? k : -1));
    }
    words[door + (size_t)k] = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameProveValues(Mat T, void **words, size_t a, const PetscInt *i, const PetscInt *j, PetscBool *proven)
{
  PetscScalar        other[3] = {5.0, 6.0, 7.0}, *csra;
  void              *before   = words[a];
  const PetscScalar *read, *row;
  const PetscInt    *csri, *csrj;
  PetscInt           n;
  PetscMemType       mtype;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  words[a] = other;
  ierr     = MatSeqAIJGetArrayRead(T, &read);
  if (!ierr) ierr = MatSeqAIJGetCSRAndMemType(T, &csri, &csrj, &csra, &mtype);
  if (!ierr) ierr = MatGetRow(T, 1, &n, NULL, &row);
  *proven = (PetscBool)(!ierr && read == other && csra == other && csri == i && csrj == j && n == 1 && row == other + 2);
  if (!ierr) ierr = MatRestoreRow(T, 1, &n, NULL, &row);
  if (!ierr) ierr = MatSeqAIJRestoreArrayRead(T, &read);
  words[a] = before;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameFindIn(Mat T, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  void    **words = (void **)T->data;
  size_t    n     = 0, at[3], door;
  PetscBool proven;

  PetscFunctionBegin;
  for (int k = 0; k < PetscMin(HybGlueState.frame.given->n, HYB_FRAME_WATCHED); k++)
    if (HybGlueState.frame.given->block[k].at == T->data) n = HybGlueState.frame.given->block[k].bytes / sizeof(void *);
  HybFrameWord(words, n, i, &at[0]);
  HybFrameWord(words, n, j, &at[1]);
  HybFrameWord(words, n, a, &at[2]);
  if (at[0] == n || at[1] == n || at[2] == n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybFrameFindDoor(T, words, n, &door));
  if (door == n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybFrameProveDoor(T, words, door, &proven));
  if (proven) PetscCall(HybFrameProveValues(T, words, at[2], i, j, &proven));
  if (!proven) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.frame.a     = at[2] * sizeof(void *);
  HybGlueState.frame.door  = door * sizeof(void *);
  HybGlueState.frame.bytes = n * sizeof(void *);
  HybGlueState.frame.known = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Called when the parent's operations are taken, before anything of ours lies over them, so that T is the parent's
  whatever -mat_seqaij_type says.
*/
PetscErrorCode HybFrameFind(void)
{
  PetscInt         i[] = {0, 2, 3}, j[] = {0, 1, 1};
  PetscScalar      a[] = {1.0, 2.0, 3.0};
  PetscOptions     none;
  struct _HybGiven given;
  PetscErrorCode   ierr;
  PetscBool        off = (PetscBool)(HybGlueState.options.frameunknown != 0);
  Mat              T   = NULL;

  PetscFunctionBegin;
  if (HybGlueState.frame.asked) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.frame.asked = PETSC_TRUE;
  if (PetscDefined(HAVE_THREADSAFETY)) off = PETSC_TRUE; /* the allocator is not ours to watch */
  if (!off) {
    PetscCall(PetscOptionsCreate(&none)); /* no option of the program's concerns T */
    PetscCall(PetscOptionsPush(none));
    HybGlueState.frame.given         = &given;
    HybGlueState.frame.given->n      = 0;
    HybGlueState.frame.given->before = PetscTrMalloc;
    PetscTrMalloc                    = HybFrameMalloc;
    ierr                             = MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 2, 2, i, j, a, &T);
    PetscTrMalloc                    = HybGlueState.frame.given->before;
    if (!ierr) ierr = HybFrameFindIn(T, i, j, a);
    if (!ierr) ierr = PetscInfo(T, HybGlueState.frame.known ? "The places of a MATSEQAIJ's values and access functions are known\n" : "The places of a MATSEQAIJ's values are not known in this PETSc: they stay where it puts them\n");
    if (T) (void)MatDestroy(&T);
    (void)PetscOptionsPop();
    (void)PetscOptionsDestroy(&none);
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybFrameKnown(void)
{
  return HybGlueState.frame.known;
}

size_t HybFrameBytes(void)
{
  return HybGlueState.frame.bytes;
}

PetscScalar **HybFrameValues(Mat A)
{
  return (PetscScalar **)((char *)A->data + HybGlueState.frame.a);
}

HybDoor *HybFrameDoor(Mat A)
{
  return (HybDoor *)((char *)A->data + HybGlueState.frame.door);
}
