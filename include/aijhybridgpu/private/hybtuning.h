/*
  hybtuning.h: what may be chosen. HybOption is the form of a line in the lists of all options: the process's and a
  matrix's are in src/mat/process/options.c, those of the kernels in src/sparse/device/tuning.c. HybTuning holds the
  values of the latter, which the rooms read.
*/
#ifndef AIJHYBRIDGPU_HYBTUNING_H
#define AIJHYBRIDGPU_HYBTUNING_H

#include <petscsys.h>
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
  HYB_OPTION_NUMBER, /* a PetscInt */
  HYB_OPTION_REAL,   /* a PetscReal */
  HYB_OPTION_WORD,   /* a PetscInt: the place of the word among the words, counted from least */
  HYB_OPTION_METHOD, /* HYB_NAME_LENGTH characters: auto, or a name that names() gives */
  HYB_OPTION_PATH,   /* PETSC_MAX_PATH_LEN characters */
  HYB_OPTION_FLAG    /* a PetscInt, 0 or 1 */
} HybOptionKind;

#define HYB_NAME_LENGTH   32
#define HYB_OPTION_PREFIX "-mat_aijhybridgpu_"

typedef struct {
  const char   *name; /* begins with HYB_OPTION_PREFIX */
  HybOptionKind kind;
  PetscBool     ofmatrix; /* the option may stand under a matrix's prefix; its member is in HybChoices */
  /* NAME is a value of -mat_aijhybridgpu_tuning; the option of that name goes with the next release */
  PetscBool tuning;
  size_t    at;          /* bytes: where the member begins in its struct */
  double    value;       /* the default; of a word, its number. A number's default is always allowed */
  double    least, most; /* of a number that is not in words; most 0: there is no upper end */
  /* WORD: the words; NUMBER: the numbers that are allowed, if the first of them is a digit; else what the value is */
  const char *words;
  PetscErrorCode (*names)(const char *const **); /* METHOD alone */
  const char *shown;                             /* the default in the documents; NULL: the value says it */
  const char *text;
} HybOption;

/* in all of these, at is the address of the struct that has the option's member */
extern void HybOptionDefault(const HybOption *, void *at);
/* Stores a value that is allowed. Else PETSC_ERR_ARG_OUTOFRANGE (of a method: PETSC_ERR_ARG_UNKNOWN_TYPE) names the
   option, the value and what is allowed, and nothing changes. A number without a value stays as it is. */
extern PetscErrorCode HybOptionTake(const HybOption *, void *at, const char *value);
/* the value in words; at NULL: the default */
extern PetscErrorCode HybOptionShow(const HybOption *, const void *at, char text[], size_t length);
extern PetscErrorCode HybOptionAllowed(const HybOption *, char text[], size_t length);
/* How many letters are to be changed, put in or left out to make a of b, whatever their case; of names longer than
   HYB_OPTION_LENGTH: HYB_OPTION_LENGTH */
#define HYB_OPTION_LENGTH 96
extern int HybOptionDistance(const char *a, const char *b);

/* How kernels run. tuning.c has the lists of words and what each value means. */
typedef struct _HybTuning {
  PetscInt segsum_repair; /* 0: the device, 1: the CPU */
  PetscInt segsum_threads, segsum_items, segsum_blocks;
  PetscInt rowgroup_way; /* -1: chosen, 0: stream, 1: direct, 2: bins */
  PetscInt rowgroup_lanes, rowgroup_batch;
  PetscInt rowgroup_near; /* -1: chosen, 0: no, 1: yes */
  PetscInt rowstream_threads, rowstream_lanes, rowstream_blocks, rowstream_run;
  PetscInt ordered; /* applications; 0: never */
  PetscInt ordered_fewest, sums;
  PetscInt restrict_first;   /* 0: no, 1: yes */
  PetscInt first_within;     /* 0: no, 1: yes */
  PetscInt iterations_ahead; /* 0: never, 1: by the norms, 2: always */
  PetscInt block_lanes;
  PetscInt rowshape_words; /* 0: no, 1: yes */
  PetscInt transpose_offsets;
  PetscInt diagonal_fewest, diagonal_rows, diagonal_threads;
  PetscInt diagonal_runs; /* 0: no, 1: yes */
  PetscInt hash_lists, hash_places, masks_lanes, fused_plan;
  PetscInt product_parts;  /* 0: chosen */
  PetscInt tile_precision; /* 0: double, 1: half */
  PetscInt comm;           /* HybCommChoice */
  PetscInt comm_timeout;   /* seconds */
  PetscInt comm_segment;   /* MiB */
  PetscInt comm_after;     /* exchanges */
  PetscInt comm_aware_min; /* bytes */
  PetscInt comm_together;  /* nonzeros of a process's own columns */
  PetscInt whole;          /* nonzeros; 0: none */
  PetscInt chain;          /* nonzeros or entries; 0: no kernel waits on the card */
  PetscInt plan_after;     /* numeric phases; -1: by their cost */
  PetscInt device_moduli;  /* 0: no, 1: yes */
} HybTuning;

/* the ways of exchanges between devices, in the order of -mat_aijhybridgpu_comm's words */
typedef enum {
  HYB_COMM_AUTO,
  HYB_COMM_MPI,
  HYB_COMM_PEER,
  HYB_COMM_PETSC, /* for products with vectors: PETSc's own scatter */
  HYB_COMM_GPUAWARE
} HybCommChoice;

extern const HybTuning *HybTuningGet(void);
/* the k-th option of HybTuning, NULL behind the last one */
extern const HybOption *HybTuningOption(PetscInt k);
/* Sets all from the options of the process, which get() reads since this room reads none; an option that is not given
   gets its default. Called once in a process, before the first use. */
typedef PetscErrorCode (*HybOptionGet)(const char option[], char value[], size_t length, PetscBool *set);
extern PetscErrorCode HybTuningRead(HybOptionGet get);
/* Sets one, for tests and benchmarks. name has no HYB_OPTION_PREFIX; value NULL: the default. Errors are those of
   HybOptionTake(). */
extern PetscErrorCode HybTuningSet(const char *name, const char *value);

#if defined(__cplusplus)
}
#endif
#endif
