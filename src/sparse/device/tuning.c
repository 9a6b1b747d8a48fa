/*
  tuning.c: what may be chosen of how kernels run, in one table: names, defaults and the values that are allowed.

  Rooms read no options. They take the fields of HybTuning, a device library through the pointer that comes with
  HybServices. HybTuningRead() takes them from the options -mat_aijhybridgpu_NAME, once in a process; HybTuningSet()
  is for tests, which go through all ways that there are, and for benchmarks.

  By default most are left to the kernels, which choose by the matrix as it was measured.
*/
#include "aijhybridgpu/private/hyb.h"
#include <stddef.h>
#include <string.h>

#define TUNING_PREFIX "-mat_aijhybridgpu_"

typedef struct {
  const char *name;
  size_t      field;
  PetscInt    value;       /* by default */
  PetscInt    least, most; /* where there is no list */
  /* allowed values, a blank around each: numbers, or words for numbers that follow each other */
  const char *list;
  PetscInt    words; /* what the first word stands for; TUNING_NUMBERS: values are numbers */
  const char *text;
} Tuning;

#define TUNING_NUMBERS (-99)
#define RANGE(n, v, lo, hi, what)                                                                                           \
  {                                                                                                                         \
    .name = #n, .field = offsetof(HybTuning, n), .value = v, .least = lo, .most = hi, .words = TUNING_NUMBERS, .text = what \
  }
#define LIST(n, v, values, what)                                                                                           \
  {                                                                                                                        \
    .name = #n, .field = offsetof(HybTuning, n), .value = v, .list = " " values " ", .words = TUNING_NUMBERS, .text = what \
  }
#define WORDS(n, v, first, values, what)                                                                          \
  {                                                                                                               \
    .name = #n, .field = offsetof(HybTuning, n), .value = v, .list = " " values " ", .words = first, .text = what \
  }

static const Tuning TuningTable[] = {
  WORDS(segsum_repair, 0, 0, "device cpu", "who puts the sums of segsum's dirty tiles in order on a device"),
  LIST(segsum_threads, 128, "64 128 256", "threads of a tile of segsum"),
  LIST(segsum_items, 7, "3 5 7", "entries of each thread of a tile of segsum"),
  RANGE(segsum_blocks, 0, 0, 32, "blocks of a multiprocessor for segsum's tiles; 0: as many as fit"),
  WORDS(rowgroup_way, -1, -1, "auto stream direct bins", "how rowgroup goes through the rows"),
  LIST(rowgroup_lanes, 0, "0 1 2 4 8 16 32", "lanes of a row; 0: by the mean row, else rowgroup's way is direct"),
  LIST(rowgroup_batch, 0, "0 4 8", "entries of a lane that are under way together; 0: by the mean row"),
  WORDS(rowgroup_near, -1, -1, "auto no yes", "are columns kept as 16-bit distances where they fit; auto: not for one product"),
  LIST(rowstream_threads, 0, "0 64 128 256", "threads of a tile of streamed rows; 0: by the mean row"),
  LIST(rowstream_lanes, 0, "0 1 2 4 8 16", "lanes of a streamed row; 0: by the mean row"),
  RANGE(rowstream_blocks, 0, 0, 32, "blocks of a multiprocessor that stream rows; 0: as many as are resident"),
  RANGE(rowstream_run, -1, -1, PETSC_MAX_INT, "tiles of a run, 0: all of a multiprocessor's; -1: by the second-level cache"),
  LIST(block_lanes, 0, "0 1 32 128", "threads of a block row; 1: its rows are streamed whatever their length; 0: so where they fit, else by their number"),
  WORDS(rowshape_words, 1, 0, "no yes", "are rows told apart by their diagonals where these are few"),
  /* below, a sort takes no longer than the search and its synchronisation */
  RANGE(transpose_offsets, 1048576, 0, PETSC_MAX_INT, "nonzeros from which on a transpose looks for few diagonals"),
  RANGE(diagonal_fewest, 1048576, 0, PETSC_MAX_INT, "nonzeros of A from which on products look for few diagonals, and parallel ones for rows apart, on the host from a 64th on"),
  LIST(diagonal_rows, 0, "0 32 64 128", "rows of a block of the method diagonal; 0: by its shared memory"),
  LIST(diagonal_threads, 0, "0 256 512", "threads of a block of the method diagonal; 0: by its shared memory"),
  WORDS(diagonal_runs, 1, 0, "no yes", "are neighbouring diagonals taken together"),
  RANGE(hash_lists, 3, 0, 64, "entries of lists for a nonzero that C is known to have; 0: no lists"),
  RANGE(hash_places, -1, -1, 1000, "percent of C's bytes that a product may keep for its numeric phases; 0: nothing is kept, -1: 100 below 2^27 products, 60 above"),
  LIST(masks_lanes, 0, "0 4 8 16", "lanes of a row of C where products are planned by masks; 0: by its mean row"),
  LIST(product_parts, 0, "0 1 2 4", "parts that A P of P^T A P is made in, again; 0: by its memory"),
  WORDS(tile_precision, 0, 0, "double half", "what the method tile multiplies in; half: values of 16 bits, sums of 32"),
  RANGE(fused_plan, -1, -1, PETSC_MAX_INT, "bytes of a plan of the fused P^T A P; -1: a multiple of the operands'"),
  WORDS(comm, 0, 0, "auto mpi peer petsc gpuaware", "how the cards of several processes exchange entries; auto: by peer access, else by GPU-aware MPI, else by MPI from the host; petsc: PETSc's own scatter"),
  RANGE(comm_timeout, 3600, 1, PETSC_MAX_INT, "seconds that a process waits on its card for another's entries before it gives up with an error"),
  RANGE(comm_segment, 128, 1, 65536, "MiB of each card that the node's other processes can reach by peer access"),
  RANGE(comm_after, 2, 0, PETSC_MAX_INT, "exchanges of a halo, or of a product's rows, that go by messages before peer access is set up for them"),
  RANGE(comm_aware_min, 16384, 0, PETSC_MAX_INT, "with a GPU-aware MPI, exchanges go through page-locked buffers if no message of any process has so many bytes"),
};

static HybTuning TuningState;
static PetscBool TuningMade = PETSC_FALSE;

static PetscInt *TuningField(const Tuning *t)
{
  return (PetscInt *)((char *)&TuningState + t->field);
}

static void TuningReset(void)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(TuningTable); k++) *TuningField(&TuningTable[k]) = TuningTable[k].value;
  TuningMade = PETSC_TRUE;
}

const HybTuning *HybTuningGet(void)
{
  if (!TuningMade) TuningReset();
  return &TuningState;
}

/* which word of the list this is, -1: none of them */
static PetscInt TuningWord(const char *list, const char *word)
{
  const size_t length = strlen(word);
  PetscInt     n      = 0;

  for (const char *p = list + 1; *p; n++) {
    const char *end = strchr(p, ' ');

    if ((size_t)(end - p) == length && !strncmp(p, word, length)) return n;
    p = end + 1;
  }
  return -1;
}

/* what PETSc's own options take for no and yes */
static PetscErrorCode TuningBool(const char **value)
{
  static const char *const other[][2] = {
    {"false", "no" },
    {"true",  "yes"},
    {"0",     "no" },
    {"1",     "yes"},
    {"off",   "no" },
    {"on",    "yes"},
    {"no",    "no" },
    {"yes",   "yes"},
    {"",      "yes"}
  };
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(other) && !same; k++) {
    PetscCall(PetscStrcasecmp(*value, other[k][0], &same));
    if (same) *value = other[k][1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuningFind(const char *name, const Tuning **t)
{
  PetscFunctionBegin;
  *t = NULL;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(TuningTable) && !*t; k++)
    if (!strcmp(name, TuningTable[k].name)) *t = &TuningTable[k];
  PetscCheck(*t, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "There is no %s%s", TUNING_PREFIX, name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TuningAllowed(const Tuning *t, char text[], size_t length)
{
  PetscFunctionBegin;
  if (t->list)
    PetscCall(PetscSNPrintf(text, length, "one of%.*s", (int)strlen(t->list) - 1, t->list));
  else
    PetscCall(PetscSNPrintf(text, length, "%" PetscInt_FMT " to %" PetscInt_FMT, t->least, t->most));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTuningDescribe(const char *option, char value[], char allowed[], char text[], size_t length)
{
  const Tuning *t;
  const char   *word;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(TuningFind(option + strlen(TUNING_PREFIX), &t));
  PetscCall(TuningAllowed(t, allowed, length));
  PetscCall(PetscStrncpy(text, t->text, length));
  PetscCall(PetscSNPrintf(value, length, "%" PetscInt_FMT, t->value));
  if (t->words == TUNING_NUMBERS) PetscFunctionReturn(PETSC_SUCCESS);
  for (word = t->list + 1, n = t->value - t->words; n > 0; n--) word = strchr(word, ' ') + 1;
  PetscCall(PetscSNPrintf(value, length, "%.*s", (int)(strchr(word, ' ') - word), word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTuningSet(const char *name, const char *value)
{
  const Tuning *t;
  const char   *word = value;
  char          allowed[128], digits[32];
  PetscInt      number = 0;
  PetscBool     fits;

  PetscFunctionBegin;
  (void)HybTuningGet();
  PetscCall(TuningFind(name, &t));
  if (!value) {
    *TuningField(t) = t->value;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(TuningAllowed(t, allowed, sizeof(allowed)));
  if (t->words == TUNING_NUMBERS) {
    PetscCall(PetscOptionsStringToInt(value, &number));
    PetscCall(PetscSNPrintf(digits, sizeof(digits), "%" PetscInt_FMT, number));
    word = digits;
  } else if (TuningWord(t->list, "yes") >= 0)
    PetscCall(TuningBool(&word));
  fits = t->list ? (PetscBool)(TuningWord(t->list, word) >= 0) : (PetscBool)(number >= t->least && number <= t->most);
  PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s%s is %s, not %s: %s", TUNING_PREFIX, name, allowed, value, t->text);
  *TuningField(t) = t->words == TUNING_NUMBERS ? number : t->words + TuningWord(t->list, word);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTuningRead(HybOptionGet get)
{
  PetscFunctionBegin;
  TuningReset();
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(TuningTable); k++) {
    char      option[64], value[64];
    PetscBool set;

    PetscCall(PetscSNPrintf(option, sizeof(option), "%s%s", TUNING_PREFIX, TuningTable[k].name));
    PetscCall((*get)(option, value, sizeof(value), &set));
    if (set) PetscCall(HybTuningSet(TuningTable[k].name, value));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
