/*
  Where PETSc keeps what this type must reach in a MATSEQAIJ: three pointers and a table of functions. Mat_SeqAIJ is
  private and no installed header shows it, so its places are found in the PETSc that runs, and proven, before they are
  used.

  Wanted, in A->data:

    i, j, a   the pointers to the row offsets, column indices and values
    door      Mat_SeqAIJOps: seven functions that MatSeqAIJGetArray() and its relatives call where they are not NULL
              (door.c)

  How they are found:

    make a 2 x 2 matrix round three arrays of our own; the allocator tells how long its data is
    i, j, a   the one word each that equals the array's address
    door      for each seven words in a row that are NULL: put a function of ours into the first one and call
              MatSeqAIJGetArray(); take it out again. One place alone calls ours.

  How they are proven: with another array in the place of a, MatSeqAIJGetArrayRead(), MatGetRow() and
  MatSeqAIJGetCSRAndMemType() give that one; each of the first six functions of the table, put there alone, is called by
  its own public function and by no other.

  Where any of this fails HybFrameKnown() is false: values then stay where AIJ put them, and host writes are noticed by
  the object's state alone.

  Options of MatSetOption() that AIJ keeps in its data are found by what they do: each is set both ways, and all that
  changes has to lie in one word, another one for each group of options. What is in that word afterwards tells the
  option of any other matrix. Two options that a MATMPIAIJ keeps besides what its blocks do are found in its data in the
  same way, and so are the pointers to its blocks: MatMPIAIJGetSeqAIJ() compares names, at each call.
*/
#include "parent.h"

#define HYB_DOOR_WORDS 7

static const struct {
  MatOption     op;
  HybAskedGroup group;
} settings[HYB_FRAME_SETTINGS] = {
  {.op = MAT_ROW_ORIENTED,                .group = HYB_ASKED_ROW_ORIENTED},
  {.op = MAT_KEEP_NONZERO_PATTERN,        .group = HYB_ASKED_KEEP_PATTERN},
  {.op = MAT_IGNORE_ZERO_ENTRIES,         .group = HYB_ASKED_IGNORE_ZEROS},
  {.op = MAT_NEW_NONZERO_LOCATIONS,       .group = HYB_ASKED_NEW_NONZEROS},
  {.op = MAT_NEW_NONZERO_LOCATION_ERR,    .group = HYB_ASKED_NEW_NONZEROS},
  {.op = MAT_NEW_NONZERO_ALLOCATION_ERR,  .group = HYB_ASKED_NEW_NONZEROS},
  {.op = MAT_UNUSED_NONZERO_LOCATION_ERR, .group = HYB_ASKED_UNUSED      },
  {.op = MAT_USE_INODES,                  .group = HYB_ASKED_INODES      }
};

/* The allocator, watched while the matrix is made: its data's length is what was given out at that address */
#define HYB_FRAME_WATCHED 1024 /* PETSc composes some thirty functions on a new matrix, with a few blocks each */
typedef struct {
  HybWatcher watcher;
  int        n;
  struct {
    void  *at;
    size_t bytes;
  } block[HYB_FRAME_WATCHED];
} HybFrameBlocks;

static PetscErrorCode HybFrameMalloc(HybWatcher *w, size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **array)
{
  HybFrameBlocks      *given = (HybFrameBlocks *)w;
  const PetscErrorCode ierr  = HybMallocBelow(w, bytes, clear, line, function, file, array);

  if (!ierr && *array) {
    given->block[given->n % HYB_FRAME_WATCHED].at      = *array;
    given->block[given->n++ % HYB_FRAME_WATCHED].bytes = bytes;
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

static void HybFrameWatch(HybFrameBlocks *given)
{
  given->n              = 0;
  given->watcher.malloc = HybFrameMalloc;
  HybWatchBegin(&given->watcher);
}

/* bytes of what was given out at this address, 0 where that was not watched */
static size_t HybFrameGiven(const HybFrameBlocks *given, const void *at)
{
  for (int k = PetscMin(given->n, HYB_FRAME_WATCHED) - 1; k >= 0; k--)
    if (given->block[k].at == at) return given->block[k].bytes;
  return 0;
}

static PetscErrorCode HybFrameCall(Mat T, int number)
{
  PetscScalar       *w = NULL;
  const PetscScalar *r = NULL;

  HybGlueState.frame.called = -1;
  switch (number) {
  case 0:
    return MatSeqAIJGetArray(T, &w);
  case 1:
    return MatSeqAIJRestoreArray(T, &w);
  case 2:
    return MatSeqAIJGetArrayRead(T, &r);
  case 3:
    return MatSeqAIJRestoreArrayRead(T, &r);
  case 4:
    return MatSeqAIJGetArrayWrite(T, &w);
  default:
    return MatSeqAIJRestoreArrayWrite(T, &w);
  }
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

static size_t HybFrameWordBytes(HybAskedGroup g)
{
  return g == HYB_ASKED_NEW_NONZEROS || g == HYB_ASKED_UNUSED ? sizeof(PetscInt) : sizeof(PetscBool);
}

/* All that the options of g change in T's data, which were `before`, is one word: where it is, and what they write */
static PetscErrorCode HybFrameFindWord(Mat T, size_t n, const unsigned char *before, HybAskedGroup g, PetscBool *found)
{
  unsigned char *data  = (unsigned char *)T->data;
  const size_t   width = HybFrameWordBytes(g);

  PetscFunctionBegin;
  *found                     = PETSC_FALSE;
  HybGlueState.frame.word[g] = n;
  for (size_t s = 0; s < HYB_FRAME_SETTINGS; s++)
    for (int flg = 0; flg < 2 && settings[s].group == g; flg++) {
      PetscCall(MatSetOption(T, settings[s].op, (PetscBool)flg));
      for (size_t k = 0; k < n; k++) {
        if (data[k] == before[k]) continue;
        if (HybGlueState.frame.word[g] == n) HybGlueState.frame.word[g] = k / width * width;
        if (k / width * width != HybGlueState.frame.word[g]) PetscFunctionReturn(PETSC_SUCCESS);
      }
    }
  if (HybGlueState.frame.word[g] + width > n) PetscFunctionReturn(PETSC_SUCCESS);
  for (size_t s = 0; s < HYB_FRAME_SETTINGS; s++)
    for (int flg = 0; flg < 2 && settings[s].group == g; flg++) {
      PetscCall(MatSetOption(T, settings[s].op, (PetscBool)flg));
      memcpy(HybGlueState.frame.held[s][flg], data + HybGlueState.frame.word[g], width);
    }
  memcpy(data + HybGlueState.frame.word[g], before + HybGlueState.frame.word[g], width);
  *found = PETSC_TRUE;
  for (int other = 0; other < (int)g; other++) *found = (PetscBool)(*found && HybGlueState.frame.word[other] != HybGlueState.frame.word[g]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameFindOptions(Mat T, size_t n)
{
  unsigned char *before;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &before));
  memcpy(before, T->data, n);
  HybGlueState.frame.options = PETSC_TRUE;
  for (int g = 0; g < HYB_FRAME_OPTIONS && HybGlueState.frame.options; g++) PetscCall(HybFrameFindWord(T, n, before, (HybAskedGroup)g, &HybGlueState.frame.options));
  PetscCall(PetscFree(before));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameFindIn(Mat T, const HybFrameBlocks *given, const PetscInt *i, const PetscInt *j, const PetscScalar *a)
{
  void    **words = (void **)T->data;
  size_t    n     = HybFrameGiven(given, T->data) / sizeof(void *), at[3], door;
  PetscBool proven;

  PetscFunctionBegin;
  HybFrameWord(words, n, i, &at[0]);
  HybFrameWord(words, n, j, &at[1]);
  HybFrameWord(words, n, a, &at[2]);
  if (at[0] == n || at[1] == n || at[2] == n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybFrameFindDoor(T, words, n, &door));
  if (door == n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybFrameProveDoor(T, words, door, &proven));
  if (proven) PetscCall(HybFrameProveValues(T, words, at[2], i, j, &proven));
  if (!proven) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.frame.ij[0] = at[0] * sizeof(void *);
  HybGlueState.frame.ij[1] = at[1] * sizeof(void *);
  HybGlueState.frame.a     = at[2] * sizeof(void *);
  HybGlueState.frame.door  = door * sizeof(void *);
  HybGlueState.frame.bytes = n * sizeof(void *);
  HybGlueState.frame.known = PETSC_TRUE;
  PetscCall(HybFrameFindOptions(T, HybGlueState.frame.bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* not where a test has switched it off */
static PetscBool HybFrameMayLook(void)
{
  return (PetscBool)(!HybGlueState.frame.hidden && HybMayWatch());
}

/*
  Called when the parent's operations are taken, before anything of ours lies over them, so that T is the parent's
  whatever -mat_seqaij_type says.
*/
PetscErrorCode HybFrameFind(void)
{
  PetscInt       i[] = {0, 2, 3}, j[] = {0, 1, 1};
  PetscScalar    a[] = {1.0, 2.0, 3.0};
  PetscOptions   none;
  HybFrameBlocks given;
  PetscErrorCode ierr;
  Mat            T = NULL;

  PetscFunctionBegin;
  if (HybGlueState.frame.asked) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.frame.asked = PETSC_TRUE;
  if (HybFrameMayLook()) {
    PetscCall(PetscOptionsCreate(&none)); /* no option of the program's concerns T */
    PetscCall(PetscOptionsPush(none));
    HybFrameWatch(&given);
    ierr = MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 2, 2, i, j, a, &T);
    HybWatchEnd();
    if (!ierr) ierr = HybFrameFindIn(T, &given, i, j, a);
    if (!ierr) ierr = PetscInfo(T, HybGlueState.frame.known ? "The places of a MATSEQAIJ's values and access functions are known\n" : "The places of a MATSEQAIJ's values are not known in this PETSc: they stay where it puts them\n");
    if (T) (void)MatDestroy(&T);
    (void)PetscOptionsPop();
    (void)PetscOptionsDestroy(&none);
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

size_t HybFrameBytes(void)
{
  return HybGlueState.frame.bytes;
}

void HybFrameSetPattern(Mat A, PetscInt *i, PetscInt *j)
{
  memcpy((char *)A->data + HybGlueState.frame.ij[0], &i, sizeof(void *));
  memcpy((char *)A->data + HybGlueState.frame.ij[1], &j, sizeof(void *));
}

/* How an option stands in A's data; false where that is not known */
PetscBool HybFrameOption(Mat A, HybAskedGroup g, MatOption *op, PetscBool *flg)
{
  if (!HybGlueState.frame.options || !A->data) return PETSC_FALSE;
  for (size_t s = 0; s < HYB_FRAME_SETTINGS; s++)
    for (int on = 1; on >= 0; on--) {
      if (settings[s].group != g || memcmp((char *)A->data + HybGlueState.frame.word[g], HybGlueState.frame.held[s][on], HybFrameWordBytes(g))) continue;
      *op  = settings[s].op;
      *flg = (PetscBool)on;
      return PETSC_TRUE;
    }
  return PETSC_FALSE;
}

PetscBool HybUnusedIsError(Mat A)
{
  MatOption op;
  PetscBool flg;

  return (PetscBool)(HybFrameOption(A, HYB_ASKED_UNUSED, &op, &flg) && flg);
}

/* What an option changes in a MATMPIAIJ's data, both ways, is one PetscBool: where it is */
static PetscErrorCode HybFrameFindFlag(Mat T, size_t n, MatOption op, size_t *at)
{
  unsigned char *data = (unsigned char *)T->data, *off;
  PetscBool      flg[2];

  PetscFunctionBegin;
  *at = n;
  PetscCall(PetscMalloc1(n, &off));
  PetscCall(MatSetOption(T, op, PETSC_FALSE));
  memcpy(off, data, n);
  PetscCall(MatSetOption(T, op, PETSC_TRUE));
  for (size_t k = 0; k < n; k++) {
    if (data[k] == off[k]) continue;
    if (*at < n && k / sizeof(PetscBool) * sizeof(PetscBool) != *at) {
      *at = n;
      break;
    }
    *at = k / sizeof(PetscBool) * sizeof(PetscBool);
  }
  if (*at + sizeof(PetscBool) <= n) {
    memcpy(&flg[0], off + *at, sizeof(PetscBool));
    memcpy(&flg[1], data + *at, sizeof(PetscBool));
    if (flg[0] != PETSC_FALSE || flg[1] != PETSC_TRUE) *at = n;
  }
  PetscCall(PetscFree(off));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The one word each that names T's blocks; proven: exchanged they are the other way round for PETSc, too */
static PetscErrorCode HybFrameFindBlocks(Mat T, size_t bytes)
{
  void          **words = (void **)T->data;
  const size_t    n     = bytes / sizeof(void *);
  Mat             block[2], seen[2];
  size_t          at[2];
  const PetscInt *garray;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(T, &block[0], &block[1], &garray));
  for (int k = 0; k < 2; k++) HybFrameWord(words, n, block[k], &at[k]);
  if (!block[0] || !block[1] || at[0] == n || at[1] == n) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) words[at[k]] = block[1 - k];
  ierr = MatMPIAIJGetSeqAIJ(T, &seen[0], &seen[1], &garray);
  for (int k = 0; k < 2; k++) words[at[k]] = block[k];
  PetscCall(ierr);
  for (int k = 0; k < 2; k++) HybGlueState.frame.block[k] = at[k] * sizeof(void *);
  HybGlueState.frame.blocksknown = (PetscBool)(seen[0] == block[1] && seen[1] == block[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybFrameFindParallelIn(Mat *T)
{
  HybFrameBlocks given;
  size_t         n;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  HybFrameWatch(&given);
  ierr = MatCreate(PETSC_COMM_SELF, T);
  if (!ierr) ierr = MatSetSizes(*T, 2, 2, 2, 2);
  if (!ierr) ierr = MatSetType(*T, MATMPIAIJ);
  HybWatchEnd();
  PetscCall(ierr);
  PetscCall(MatMPIAIJSetPreallocation(*T, 1, NULL, 1, NULL));
  n = HybFrameGiven(&given, (*T)->data);
  PetscCall(HybFrameFindBlocks(*T, n));
  for (int k = 0; k < 2; k++) {
    PetscCall(HybFrameFindFlag(*T, n, k ? MAT_IGNORE_OFF_PROC_ENTRIES : MAT_ROW_ORIENTED, &HybGlueState.frame.flag[k]));
    if (HybGlueState.frame.flag[k] + sizeof(PetscBool) > n) PetscFunctionReturn(PETSC_SUCCESS);
  }
  HybGlueState.frame.flagsknown = (PetscBool)(HybGlueState.frame.flag[0] != HybGlueState.frame.flag[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybFrameParallelFind(void)
{
  Mat            T = NULL;
  PetscOptions   none;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (HybGlueState.frame.flagsasked) PetscFunctionReturn(PETSC_SUCCESS);
  HybGlueState.frame.flagsasked = PETSC_TRUE;
  if (!HybFrameMayLook()) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsCreate(&none));
  PetscCall(PetscOptionsPush(none));
  ierr = HybFrameFindParallelIn(&T);
  if (T) (void)MatDestroy(&T);
  (void)PetscOptionsPop();
  (void)PetscOptionsDestroy(&none);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How MAT_ROW_ORIENTED and MAT_IGNORE_OFF_PROC_ENTRIES stand in a parallel matrix's data, whoever has set them; what
   cannot be known is left. Not collective. */
PetscErrorCode HybFrameParallelOptions(Mat A, PetscBool *roworiented, PetscBool *ignoreoffproc)
{
  PetscFunctionBegin;
  PetscCall(HybFrameParallelFind());
  if (!HybGlueState.frame.flagsknown || !A->data) PetscFunctionReturn(PETSC_SUCCESS);
  memcpy(roworiented, (char *)A->data + HybGlueState.frame.flag[0], sizeof(PetscBool));
  memcpy(ignoreoffproc, (char *)A->data + HybGlueState.frame.flag[1], sizeof(PetscBool));
  PetscFunctionReturn(PETSC_SUCCESS);
}
