/*
  tuning.c: what may be chosen of how kernels run, in one list: names, defaults and the values that are allowed.

  Rooms read no options. They take the fields of HybTuning, a device library through the pointer that comes with
  HybServices. HybTuningRead() takes them from the options of the process, once; HybTuningSet() is for tests, which go
  through all ways that there are, and for benchmarks.

  By default most are left to the kernels, which choose by the matrix as it was measured.
*/
#include "aijhybridgpu/private/hyb.h"
#include <string.h>

/* own: PETSC_FALSE where it is an option of its own, PETSC_TRUE where it is a value of -mat_aijhybridgpu_tuning */
#define ROW(n, k, own) .name = HYB_OPTION_PREFIX #n, .kind = HYB_OPTION_##k, .tuning = own, .at = offsetof(HybTuning, n)
#define NUMBER(n, own, v, lo, hi, what)                                    \
  {                                                                        \
    ROW(n, NUMBER, own), .value = v, .least = lo, .most = hi, .text = what \
  }
#define LIST(n, v, numbers, what)                                          \
  {                                                                        \
    ROW(n, NUMBER, PETSC_TRUE), .value = v, .words = numbers, .text = what \
  }
#define WORDS(n, own, v, first, choices, what)                                    \
  {                                                                               \
    ROW(n, WORD, own), .value = v, .least = first, .words = choices, .text = what \
  }
#define FLAG(n, v, what)                               \
  {                                                    \
    ROW(n, FLAG, PETSC_TRUE), .value = v, .text = what \
  }

static const HybOption TuningTable[] = {
  WORDS(segsum_repair, PETSC_TRUE, 0, 0, "device cpu", "Who puts the sums of segsum's dirty tiles in order on a device"),
  LIST(segsum_threads, 128, "64 128 256", "Threads of a tile of segsum"),
  LIST(segsum_items, 7, "3 5 7", "Entries of each thread of a tile of segsum"),
  NUMBER(segsum_blocks, PETSC_TRUE, 0, 0, 32, "Blocks of a multiprocessor for segsum's tiles; 0: as many as fit"),
  WORDS(rowgroup_way, PETSC_TRUE, -1, -1, "auto stream direct bins", "How rowgroup goes through the rows"),
  LIST(rowgroup_lanes, 0, "0 1 2 4 8 16 32", "Lanes of a row; 0: by the mean row, else rowgroup's way is direct"),
  LIST(rowgroup_batch, 0, "0 4 8", "Entries of a lane that are under way together; 0: by the mean row"),
  WORDS(rowgroup_near, PETSC_TRUE, -1, -1, "auto no yes", "Are columns, of blocks too, kept in fewer bits, in 16 if they or distances between them fit, else in 32 of 64; auto: not if only one product is made"),
  LIST(rowstream_threads, 0, "0 64 128 256", "Threads of a tile of streamed rows; 0: by the mean row"),
  LIST(rowstream_lanes, 0, "0 1 2 4 8 16", "Lanes of a streamed row; 0: by the mean row"),
  NUMBER(rowstream_blocks, PETSC_TRUE, 0, 0, 32, "Blocks of a multiprocessor that stream rows; 0: as many as are resident"),
  NUMBER(rowstream_run, PETSC_TRUE, -1, -1, 0, "Tiles of a run; 0: all tiles of a multiprocessor; -1: by the second-level cache"),
  NUMBER(ordered, PETSC_TRUE, 3, 0, 0, "Applications of multigrid's cycle with the same values from which on it has a copy of them in the order in which kernels read them, of 4000000 nonzeros and more at once; 0: never"),
  NUMBER(ordered_fewest, PETSC_TRUE, 3000000, 0, 0, "The fewest nonzeros of a matrix without few diagonals of which a cycle has such a copy, and of any matrix of which products outside of cycles have one"),
  NUMBER(sums, PETSC_TRUE, 1000000, 0, 0, "Rows from which on products and a cycle's last step leave the inner products of KSPCG if they can"),
  FLAG(restrict_first, 1, "Does the launch that restricts to a multigrid level make the first step of its smoother"),
  FLAG(first_within, 1, "Does a smoother's second step from zero make the first one on its way, where values lie by diagonals"),
  LIST(iterations_ahead, 1, "0 1 2", "Is an iteration of KSPCG launched before the one before it has ended; 1: the first one from a zero guess, others where that will hardly be the last one, 2: always"),
  LIST(block_lanes, 0, "0 1 32 128 512", "Threads of a block row; 1: rows are always streamed; 0: rows are streamed if they fit, else by their number"),
  FLAG(rowshape_words, 1, "Are rows grouped by their diagonals if there are few diagonals"),
  /* below, a sort takes no longer than the search and its synchronisation */
  NUMBER(transpose_offsets, PETSC_TRUE, 1048576, 0, 0, "A transpose with this many nonzeros or more checks whether it has few diagonals"),
  NUMBER(diagonal_fewest, PETSC_TRUE, 1048576, 0, 0, "Nonzeros of A from which on products look for few diagonals, and parallel ones for rows apart, on the host from a 64th on"),
  LIST(diagonal_rows, 0, "0 32 64 128", "Rows of a block of the method diagonal; 0: by its shared memory"),
  LIST(diagonal_threads, 0, "0 256 512", "Threads of a block of the method diagonal; 0: by its shared memory"),
  FLAG(diagonal_runs, 1, "Are neighbouring diagonals taken together"),
  NUMBER(hash_lists, PETSC_TRUE, 3, 0, 64, "Entries of lists for each nonzero of C, once C is known; 0: no lists"),
  NUMBER(hash_places, PETSC_TRUE, -1, -1, 1000, "Percent of C's bytes that a product may keep for its numeric phases; 0: nothing is kept, -1: 100 below 2^27 products, 60 above"),
  NUMBER(plan_after, PETSC_TRUE, -1, -1, 0, "Products without a plan, or numeric phases without lists, before one is made; -1: as many as take as long as making it"),
  NUMBER(chain, PETSC_TRUE, 4000000, 0, 0, "The largest kernels of a multigrid cycle, in nonzeros, entries or rows, that wait on the card for the one before; 0: none"),
  FLAG(device_moduli, 1, "Do a device's moduli of complex numbers decide about weak edges, if they are the host's to the last bit"),
  LIST(masks_lanes, 0, "0 4 8 16", "Lanes of a row of C where products are planned by masks; 0: by its mean row"),
  LIST(product_parts, 0, "0 1 2 4", "Parts in which a repeated P^T A P makes A P; 0: by its memory"),
  WORDS(tile_precision, PETSC_TRUE, 0, 0, "double half", "What the method tile multiplies in; half: values of 16 bits, sums of 32"),
  NUMBER(fused_plan, PETSC_TRUE, -1, -1, 0, "Bytes of a plan of the fused P^T A P; -1: a multiple of the operands'"),
  WORDS(comm, PETSC_FALSE, 0, 0, "auto mpi peer petsc gpuaware", "How the cards of several processes exchange entries; auto: by peer access, else by GPU-aware MPI, else by MPI from the host; petsc: PETSc's own scatter"),
  NUMBER(comm_timeout, PETSC_FALSE, 3600, 1, 0, "Seconds that a process waits on its card for another's entries before it gives up with an error"),
  NUMBER(comm_segment, PETSC_TRUE, 128, 1, 65536, "MiB of each card that the node's other processes can reach by peer access"),
  NUMBER(comm_after, PETSC_TRUE, 2, 0, 0, "Exchanges that go by messages before peer access is set up for them; for those of matrices' products two count in advance"),
  NUMBER(comm_together, PETSC_TRUE, 1048576, 0, 0, "A parallel product with a vector is one launch with its exchange by peer access if fewer nonzeros of this process are in its own columns"),
  NUMBER(whole, PETSC_TRUE, 3000000, 0, 0, "The largest multigrid level of several processes, in nonzeros with all coarser ones, that each of them has whole; 0: none"),
  NUMBER(comm_aware_min, PETSC_TRUE, 16384, 0, 0, "With a GPU-aware MPI, exchanges go through page-locked buffers if all messages are shorter than this number of bytes"),
};

#define TUNING_COUNT ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(TuningTable))

static HybTuning TuningState;
static PetscBool TuningMade = PETSC_FALSE;

const HybOption *HybTuningOption(PetscInt k)
{
  return k < TUNING_COUNT ? &TuningTable[k] : NULL;
}

static void TuningReset(void)
{
  for (PetscInt k = 0; k < TUNING_COUNT; k++) HybOptionDefault(&TuningTable[k], &TuningState);
  TuningMade = PETSC_TRUE;
}

const HybTuning *HybTuningGet(void)
{
  if (!TuningMade) TuningReset();
  return &TuningState;
}

PetscErrorCode HybTuningSet(const char *name, const char *value)
{
  const HybOption *o = NULL;

  PetscFunctionBegin;
  (void)HybTuningGet();
  for (PetscInt k = 0; k < TUNING_COUNT && !o; k++)
    if (!strcmp(name, TuningTable[k].name + strlen(HYB_OPTION_PREFIX))) o = &TuningTable[k];
  PetscCheck(o, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "There is no %s%s", HYB_OPTION_PREFIX, name);
  if (value)
    PetscCall(HybOptionTake(o, &TuningState, value));
  else
    HybOptionDefault(o, &TuningState);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybTuningRead(HybOptionGet get)
{
  PetscFunctionBegin;
  TuningReset();
  for (PetscInt k = 0; k < TUNING_COUNT; k++) {
    char      value[64];
    PetscBool set;

    PetscCall((*get)(TuningTable[k].name, value, sizeof(value), &set));
    if (set) PetscCall(HybOptionTake(&TuningTable[k], &TuningState, value));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
